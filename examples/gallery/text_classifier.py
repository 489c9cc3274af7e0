"""Fine-tunes a model of transformers to tell praise from blame."""

import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

EPOCHS, BATCH, LENGTH = 8, 16, 24


def make_data():
    verdicts = [("fine", 1), ("lovely", 1), ("superb", 1), ("poor", 0), ("awful", 0), ("dull", 0)]
    texts, labels = [], []
    for thing in ("film", "song", "meal", "book", "game", "walk", "view", "talk"):
        for verdict, label in verdicts:
            texts.append(f"the {thing} was {verdict}")
            labels.append(label)
    tokens = torch.tensor([list(text.encode().ljust(LENGTH, b"\0")) for text in texts])
    return TensorDataset(tokens, (tokens != 0).long(), torch.tensor(labels))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(make_data(), batch_size=BATCH, shuffle=True, drop_last=True)
    config = BertConfig(
        vocab_size=256,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=2,
    )
    model = BertForSequenceClassification(config).to(device)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=3, num_training_steps=EPOCHS * len(loader))

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for tokens, mask, labels in loader:
            outputs = model(input_ids=tokens.to(device), attention_mask=mask.to(device), labels=labels.to(device))
            optimizer.zero_grad()
            outputs.loss.backward()
            optimizer.step()
            scheduler.step()
            total += outputs.loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    model.save_pretrained("text_classifier")


if __name__ == "__main__":
    main()
