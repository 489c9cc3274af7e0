"""Token classification: DataCollatorForTokenClassification, seqeval by hand, best checkpoint by F1."""
import torch
from datasets import Dataset
from seqeval.metrics import f1_score
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch.optim import AdamW
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    DistilBertConfig,
    PreTrainedTokenizerFast,
    get_scheduler,
)

LABELS = ["O", "B-PER", "I-PER", "B-LOC"]
id2label = dict(enumerate(LABELS))


def rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    ids, tags = [], []
    for _ in range(n):
        length = int(torch.randint(4, 12, (1,), generator=g))
        tokens = torch.randint(3, 40, (length,), generator=g)
        ids.append(tokens.tolist())
        labels = (tokens % 4).tolist()
        labels[0] = -100
        tags.append(labels)
    return Dataset.from_dict({"input_ids": ids, "attention_mask": [[1] * len(r) for r in ids], "labels": tags})


def postprocess(predictions, labels):
    predictions = predictions.detach().cpu().tolist()
    labels = labels.detach().cpu().tolist()
    true_labels = [[id2label[l] for l in row if l != -100] for row in labels]
    true_predictions = [[id2label[p] for p, l in zip(prow, lrow) if l != -100] for prow, lrow in zip(predictions, labels)]
    return true_labels, true_predictions


torch.manual_seed(0)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
vocab = {"[PAD]": 0, "[UNK]": 1, "[SEP]": 2, **{f"w{i}": i for i in range(3, 40)}}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(vocab, unk_token="[UNK]")), pad_token="[PAD]", unk_token="[UNK]")
data_collator = DataCollatorForTokenClassification(tokenizer=tokenizer)
train_dataloader = DataLoader(rows(64, 0), shuffle=True, collate_fn=data_collator, batch_size=8)
eval_dataloader = DataLoader(rows(24, 1), collate_fn=data_collator, batch_size=8)

config = DistilBertConfig(vocab_size=40, dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=16, dropout=0.0,
                          attention_dropout=0.0, num_labels=len(LABELS))
model = AutoModelForTokenClassification.from_config(config)
model.to(device)
optimizer = AdamW(model.parameters(), lr=2e-3)
num_train_epochs = 3
num_training_steps = num_train_epochs * len(train_dataloader)
lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0, num_training_steps=num_training_steps)

progress_bar = tqdm(range(num_training_steps))
best_f1 = -1.0
for epoch in range(num_train_epochs):
    model.train()
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
    all_labels, all_predictions = [], []
    for batch in eval_dataloader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)
        predictions = outputs.logits.argmax(dim=-1)
        true_labels, true_predictions = postprocess(predictions, batch["labels"])
        all_labels.extend(true_labels)
        all_predictions.extend(true_predictions)
    f1 = f1_score(all_labels, all_predictions)
    print(f"epoch {epoch}: f1 {f1:.4f}")
    if f1 > best_f1:
        best_f1 = f1
        model.save_pretrained("ner-best")
        tokenizer.save_pretrained("ner-best")
