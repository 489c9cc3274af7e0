"""An encoder of transformers with a head of its own: class weights, frozen embeddings, two learning rates."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModel, BertConfig, get_linear_schedule_with_warmup


class Classifier(nn.Module):
    def __init__(self, config, classes):
        super().__init__()
        self.encoder = AutoModel.from_config(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(0.0)
        self.head = nn.Linear(config.hidden_size, classes)

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).float()
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
        return self.head(self.dropout(pooled))


def build(size, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 50, (size, 10), generator=g)
    lengths = torch.randint(4, 11, (size,), generator=g)
    mask = (torch.arange(10)[None] < lengths[:, None]).long()
    labels = (ids[:, 0] % 3).long()
    return TensorDataset(ids * mask, mask, labels)


def train(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    total_loss = 0
    for input_ids, attention_mask, labels in loader:
        input_ids, attention_mask, labels = input_ids.to(device), attention_mask.to(device), labels.to(device)
        model.zero_grad()
        logits = model(input_ids, attention_mask)
        loss = criterion(logits, labels)
        total_loss += loss.item()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    return total_loss / len(loader)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                        max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = Classifier(config, 3).to(device)
    for p in model.encoder.embeddings.parameters():
        p.requires_grad = False
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5], device=device))
    optimizer = torch.optim.AdamW(
        [{"params": model.encoder.encoder.parameters(), "lr": 1e-4}, {"params": model.head.parameters(), "lr": 1e-3}]
    )
    loader = DataLoader(build(64, 0), batch_size=8, shuffle=True)
    epochs = 3
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=epochs * len(loader))
    for epoch in range(epochs):
        loss = train(model, loader, criterion, optimizer, scheduler, device)
        print(f"epoch {epoch} loss {loss:.4f}")
    torch.save(model.state_dict(), "classifier.pt")


if __name__ == "__main__":
    main()
