"""Translation with a small BART: DataCollatorForSeq2Seq, label smoothing of our own, generate and exact match."""
import argparse
import json
import os

import numpy as np
import torch
import torch.nn as nn
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import BartConfig, BartForConditionalGeneration, DataCollatorForSeq2Seq, PreTrainedTokenizerFast, get_scheduler, set_seed


class Copies(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            length = int(torch.randint(3, 8, (1,), generator=g))
            source = torch.randint(4, 30, (length,), generator=g).tolist()
            self.rows.append({"input_ids": source + [2], "attention_mask": [1] * (length + 1), "labels": source[::-1] + [2]})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return dict(self.rows[i])


def get_tokenizer():
    vocab = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, **{f"t{i}": i for i in range(4, 30)}}
    core = Tokenizer(WordLevel(vocab, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per_device_train_batch_size", type=int, default=8)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=3e-3)
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--max_train_steps", type=int, default=None)
    parser.add_argument("--num_warmup_steps", type=int, default=2)
    parser.add_argument("--lr_scheduler_type", default="cosine")
    parser.add_argument("--label_smoothing", type=float, default=0.1)
    parser.add_argument("--output_dir", default="translation")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = parse_args()
    set_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if args.output_dir is not None:
        os.makedirs(args.output_dir, exist_ok=True)
    tokenizer = get_tokenizer()
    sides = {f"{s}_{k}": v for s in ("encoder", "decoder") for k, v in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))}
    config = BartConfig(vocab_size=30, d_model=16, max_position_embeddings=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                        decoder_start_token_id=2, forced_eos_token_id=2, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, **sides)
    model = BartForConditionalGeneration(config).to(device)
    collator = DataCollatorForSeq2Seq(tokenizer, model=model, label_pad_token_id=-100, pad_to_multiple_of=4)
    train_dataloader = DataLoader(Copies(64, 0), shuffle=True, collate_fn=collator, batch_size=args.per_device_train_batch_size)
    eval_dataloader = DataLoader(Copies(16, 1), collate_fn=collator, batch_size=args.per_device_eval_batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    if args.max_train_steps is None:
        args.max_train_steps = args.num_train_epochs * len(train_dataloader)
    lr_scheduler = get_scheduler(args.lr_scheduler_type, optimizer, args.num_warmup_steps, args.max_train_steps)
    completed_steps = 0
    for epoch in range(args.num_train_epochs):
        model.train()
        for batch in tqdm(train_dataloader):
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = model(**batch)
            if args.label_smoothing > 0:
                criterion = nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=args.label_smoothing)
                loss = criterion(outputs.logits.view(-1, config.vocab_size), batch["labels"].view(-1))
            else:
                loss = outputs.loss
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            completed_steps += 1
            if completed_steps >= args.max_train_steps:
                break
        model.eval()
        right = total = 0
        for batch in eval_dataloader:
            with torch.no_grad():
                generated = model.generate(batch["input_ids"].to(device), attention_mask=batch["attention_mask"].to(device), max_length=10, num_beams=2)
            labels = batch["labels"].numpy()
            labels = np.where(labels != -100, labels, tokenizer.pad_token_id)
            predictions = tokenizer.batch_decode(generated.cpu().numpy(), skip_special_tokens=True)
            references = tokenizer.batch_decode(labels, skip_special_tokens=True)
            right += sum(p.split()[:1] == r.split()[:1] for p, r in zip(predictions, references))
            total += len(references)
        result = {"first": right / total}
        print(f"epoch {epoch}: {result}")
    with open(os.path.join(args.output_dir, "all_results.json"), "w") as f:
        json.dump(result, f)
    model.save_pretrained(args.output_dir)
    tokenizer.save_pretrained(args.output_dir)


if __name__ == "__main__":
    main()
