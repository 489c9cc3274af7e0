"""Masked language modelling with a collator of transformers and its own scheduler; accumulation and autocast."""
import math

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForMaskedLM, get_cosine_schedule_with_warmup, set_seed

set_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MASK = 4


def masked(size, seed):
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(size):
        ids = torch.randint(5, 60, (12,), generator=g)
        hidden = torch.rand(12, generator=g) < 0.3
        hidden[0] = True
        labels = torch.where(hidden, ids, torch.tensor(-100))
        out.append({"input_ids": torch.where(hidden, torch.tensor(MASK), ids), "labels": labels})
    return out


train_loader = DataLoader(masked(64, 0), batch_size=8, shuffle=True)
eval_loader = DataLoader(masked(24, 1), batch_size=8)
config = BertConfig(
    vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
model = BertForMaskedLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
epochs, accumulate = 2, 2
scheduler = get_cosine_schedule_with_warmup(optimizer, 1, epochs * len(train_loader) // accumulate)
for epoch in range(epochs):
    model.train()
    for step, batch in enumerate(train_loader, 1):
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            loss = model(**batch).loss / accumulate
        loss.backward()
        if step % accumulate == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            print(f"epoch {epoch} step {step} loss {loss.item() * accumulate:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for batch in eval_loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            scores = model(input_ids=batch["input_ids"]).logits
            chosen = batch["labels"] != -100
            total += torch.nn.functional.cross_entropy(scores[chosen], batch["labels"][chosen], reduction="sum").item()
            count += chosen.sum().item()
    print(f"epoch {epoch} perplexity {math.exp(total / count):.3f}")
model.save_pretrained("mlm")
