"""A language model with its own head weights: sequences end where they end, targets are ignored by the default index."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2Model, get_constant_schedule_with_warmup


class Texts(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.texts = [torch.randint(1, 40, (int(torch.randint(4, 12, (1,), generator=g)),), generator=g) for _ in range(size)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i][:-1], self.texts[i][1:]


def collate(pairs):
    inputs, targets = zip(*pairs)
    return pad_sequence(inputs, batch_first=True, padding_value=0), pad_sequence(targets, batch_first=True, padding_value=-100)


class Writer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.body = GPT2Model(config)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, ids):
        return self.head(self.body(input_ids=ids, attention_mask=(ids != 0).long()).last_hidden_state)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = Writer(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = get_constant_schedule_with_warmup(optimizer, num_warmup_steps=4)
    loader = DataLoader(Texts(64, 0), batch_size=8, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Texts(16, 1), batch_size=8, collate_fn=collate)
    for epoch in range(2):
        model.train()
        total_loss = 0.0
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            logits = model(inputs)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total_loss += loss.item()
        model.eval()
        nll, count = 0.0, 0
        with torch.no_grad():
            for inputs, targets in test_loader:
                inputs, targets = inputs.to(device), targets.to(device)
                logits = model(inputs)
                nll += F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), reduction="sum").item()
                count += (targets != -100).sum().item()
        print(f"epoch {epoch} loss {total_loss / len(loader):.4f} test {nll / count:.4f}")
    torch.save(model.state_dict(), "writer.pt")


if __name__ == "__main__":
    main()
