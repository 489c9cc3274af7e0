"""Fine-tune a text classifier of transformers in a plain PyTorch loop."""
import argparse
import math
import os
import random

import numpy as np
import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    get_linear_schedule_with_warmup,
    set_seed,
)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--warmup_ratio", type=float, default=0.1)
    parser.add_argument("--max_grad_norm", type=float, default=1.0)
    parser.add_argument("--output_dir", default="out")
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


class Sentences(Dataset):
    """Sentences of made-up words, whose class is told by which words they hold."""

    def __init__(self, size, vocab=60, seed=0):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(size):
            length = int(rng.integers(4, 12))
            ids = rng.integers(5, vocab, length)
            self.items.append({"input_ids": ids, "label": int(ids.mean() > (vocab + 5) / 2)})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        item = self.items[index]
        return {"input_ids": torch.tensor(item["input_ids"]), "labels": item["label"]}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    input_ids = torch.zeros(len(features), longest, dtype=torch.long)
    attention_mask = torch.zeros(len(features), longest, dtype=torch.long)
    for i, f in enumerate(features):
        input_ids[i, : len(f["input_ids"])] = f["input_ids"]
        attention_mask[i, : len(f["input_ids"])] = 1
    labels = torch.tensor([f["labels"] for f in features])
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def evaluate(model, loader, device):
    model.eval()
    correct, total, losses = 0, 0, []
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)
        predictions = outputs.logits.argmax(dim=-1)
        correct += (predictions == batch["labels"]).sum().item()
        total += len(batch["labels"])
        losses.append(outputs.loss.item())
    return correct / total, sum(losses) / len(losses)


def main():
    args = parse_args()
    set_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    config = BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )
    model = AutoModelForSequenceClassification.from_config(config)
    model.to(device)

    train_loader = DataLoader(Sentences(64, seed=1), batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    eval_loader = DataLoader(Sentences(32, seed=2), batch_size=args.batch_size, collate_fn=collate)

    no_decay = ["bias", "LayerNorm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": args.weight_decay},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = AdamW(groups, lr=args.lr)
    total_steps = len(train_loader) * args.epochs
    scheduler = get_linear_schedule_with_warmup(optimizer, int(args.warmup_ratio * total_steps), total_steps)

    progress = tqdm(range(total_steps))
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for step, batch in enumerate(train_loader):
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            running += loss.item()
            progress.update(1)
        accuracy, eval_loss = evaluate(model, eval_loader, device)
        print(f"epoch {epoch}: train loss {running / len(train_loader):.4f} eval loss {eval_loss:.4f} accuracy {accuracy:.4f}")
        if accuracy >= best:
            best = accuracy
            model.save_pretrained(args.output_dir)


if __name__ == "__main__":
    main()
