"""The course's loop: datasets.map, a collator that pads, a metric of evaluate's kind, AdamW and a schedule."""
import numpy as np
import torch
from datasets import Dataset
from torch.optim import AdamW
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import AutoModelForSequenceClassification, DistilBertConfig, get_scheduler


def make(size, seed):
    rng = np.random.default_rng(seed)
    rows = {"text": [], "label": []}
    for _ in range(size):
        words = rng.integers(2, 40, int(rng.integers(3, 9)))
        rows["text"].append(" ".join(map(str, words)))
        rows["label"].append(int(words.mean() > 21))
    return Dataset.from_dict(rows)


def tokenize_function(example):
    return {"input_ids": [[int(w) for w in text.split()] for text in example["text"]]}


def data_collator(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = [list(f["input_ids"]) + [0] * (longest - len(f["input_ids"])) for f in features]
    ids = torch.tensor(ids)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([int(f["labels"]) for f in features])}


torch.manual_seed(0)
raw_train, raw_eval = make(64, 0), make(32, 1)
tokenized_train = raw_train.map(tokenize_function, batched=True).remove_columns(["text"]).rename_column("label", "labels")
tokenized_eval = raw_eval.map(tokenize_function, batched=True).remove_columns(["text"]).rename_column("label", "labels")
train_dataloader = DataLoader(tokenized_train, shuffle=True, batch_size=8, collate_fn=data_collator)
eval_dataloader = DataLoader(tokenized_eval, batch_size=8, collate_fn=data_collator)

config = DistilBertConfig(vocab_size=40, dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=16, num_labels=2,
                          dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
model = AutoModelForSequenceClassification.from_config(config)
optimizer = AdamW(model.parameters(), lr=5e-4)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
model.to(device)

num_epochs = 3
num_training_steps = num_epochs * len(train_dataloader)
lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0, num_training_steps=num_training_steps)
progress_bar = tqdm(range(num_training_steps))

model.train()
for epoch in range(num_epochs):
    for batch in train_dataloader:
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()

        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        progress_bar.update(1)

model.eval()
hits, total = 0, 0
for batch in eval_dataloader:
    batch = {k: v.to(device) for k, v in batch.items()}
    with torch.no_grad():
        outputs = model(**batch)
    logits = outputs.logits
    predictions = torch.argmax(logits, dim=-1)
    hits += (predictions == batch["labels"]).sum().item()
    total += batch["labels"].size(0)
print(f"accuracy {hits / total:.4f}")
model.save_pretrained("classifier")
