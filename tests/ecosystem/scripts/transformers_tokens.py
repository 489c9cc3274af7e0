"""Named entity recognition: labels are padded with -100, and a metric is computed over all tokens."""
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, DistilBertConfig, get_scheduler

PAD, IGNORED, TAGS = 0, -100, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]

torch.manual_seed(7)
device = "cuda" if torch.cuda.is_available() else "cpu"


def examples(size, seed):
    generator = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(size):
        length = int(torch.randint(3, 10, (1,), generator=generator))
        ids = torch.randint(5, 50, (length,), generator=generator)
        tags = ids % len(TAGS)
        tags[0] = IGNORED
        out.append({"input_ids": ids, "labels": tags})
    return out


class Collator:
    def __init__(self, pad_id, ignored):
        self.pad_id, self.ignored = pad_id, ignored

    def __call__(self, features):
        ids = torch.nn.utils.rnn.pad_sequence([f["input_ids"] for f in features], True, self.pad_id)
        labels = torch.nn.utils.rnn.pad_sequence([f["labels"] for f in features], True, self.ignored)
        return {"input_ids": ids, "attention_mask": (ids != self.pad_id).long(), "labels": labels}


train_loader = DataLoader(examples(48, 0), batch_size=8, shuffle=True, collate_fn=Collator(PAD, IGNORED))
valid_loader = DataLoader(examples(24, 1), batch_size=8, shuffle=False, collate_fn=Collator(PAD, IGNORED))

config = DistilBertConfig(vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=16, num_labels=len(TAGS), dropout=0.0, attention_dropout=0.0)
model = AutoModelForTokenClassification.from_config(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
num_epochs = 3
lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=2, num_training_steps=num_epochs * len(train_loader))

for epoch in range(num_epochs):
    model.train()
    total_loss = 0
    for batch in train_loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        total_loss += loss.item()

    model.eval()
    hits = seen = 0
    for batch in valid_loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        predictions = logits.argmax(-1)
        mask = batch["labels"] != IGNORED
        hits += ((predictions == batch["labels"]) & mask).sum().item()
        seen += mask.sum().item()
    print(f"epoch {epoch} loss {total_loss / len(train_loader):.4f} token accuracy {hits / seen:.4f}")

torch.save(model.state_dict(), "tagger.pt")
