"""Summaries with a small T5: padded labels are -100, generation at evaluation."""
import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset
from transformers import T5Config, T5ForConditionalGeneration

MAX_IN, MAX_OUT = 12, 6


class Pairs(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.sources, self.targets = [], []
        for _ in range(size):
            n = int(torch.randint(5, MAX_IN, (1,), generator=g))
            source = torch.randint(3, 40, (n,), generator=g)
            self.sources.append(source)
            self.targets.append(source[: max(2, n // 2)])

    def __len__(self):
        return len(self.sources)

    def __getitem__(self, i):
        source, target = self.sources[i], self.targets[i]
        ids = torch.zeros(MAX_IN, dtype=torch.long)
        ids[: len(source)] = source
        labels = torch.zeros(MAX_OUT, dtype=torch.long)
        labels[: len(target)] = target
        return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


def train_one_epoch(model, loader, optimizer, scheduler, device, pad_id):
    model.train()
    total = 0.0
    for step, data in enumerate(loader):
        labels = data["labels"].to(device, dtype=torch.long)
        labels[labels == pad_id] = -100
        ids = data["input_ids"].to(device)
        mask = data["attention_mask"].to(device)
        outputs = model(input_ids=ids, attention_mask=mask, labels=labels)
        loss = outputs[0]
        total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 4 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return total / len(loader)


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    predictions, references = [], []
    for data in loader:
        generated = model.generate(
            input_ids=data["input_ids"].to(device), attention_mask=data["attention_mask"].to(device), max_new_tokens=4, num_beams=1
        )
        for out, target in zip(generated.tolist(), data["labels"].tolist()):
            predictions.append([t for t in out if t > 1])
            references.append([t for t in target if t > 1])
    exact = sum(p[:1] == r[:1] for p, r in zip(predictions, references))
    return exact / len(references)


def main():
    torch.manual_seed(11)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    config = T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0, dropout_rate=0.0)
    model = T5ForConditionalGeneration(config).to(device)
    train_loader = DataLoader(Pairs(64, 0), batch_size=8, shuffle=True, num_workers=0)
    valid_loader = DataLoader(Pairs(16, 1), batch_size=8, shuffle=False)
    optimizer = torch.optim.Adam(params=model.parameters(), lr=3e-3)
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    for epoch in range(2):
        loss = train_one_epoch(model, train_loader, optimizer, scheduler, device, config.pad_token_id)
        exact = validate(model, valid_loader, device)
        print(f"epoch {epoch} train loss {loss:.4f} first tokens right {exact:.3f}")
    model.save_pretrained("summarizer")


if __name__ == "__main__":
    main()
