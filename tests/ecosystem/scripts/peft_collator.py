"""LoRA on a causal language model: datasets, a tokenizer made in place, the collator of transformers, perplexity."""
import math
from dataclasses import dataclass

import torch
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model, get_peft_model_state_dict
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, get_scheduler, set_seed

WORDS = "a small cat sat on the mat and saw two red birds in an old tree near my house".split()


@dataclass
class Config:
    lr: float = 5e-3
    epochs: int = 2
    batch_size: int = 8
    accumulation: int = 2
    seed: int = 3


def make_tokenizer():
    vocab = {"[PAD]": 0, "[UNK]": 1, "[EOS]": 2, **{w: i + 3 for i, w in enumerate(WORDS)}}
    tokenizer = Tokenizer(WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", eos_token="[EOS]")


def make_texts(n, seed):
    g = torch.Generator().manual_seed(seed)
    texts = []
    for _ in range(n):
        length = int(torch.randint(5, 12, (1,), generator=g))
        texts.append(" ".join(WORDS[i] for i in torch.randint(0, len(WORDS), (length,), generator=g).tolist()))
    return Dataset.from_dict({"text": texts})


@torch.no_grad()
def perplexity(model, loader, device):
    model.eval()
    losses = []
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        out = model(**batch)
        losses.append(out.loss.item() * len(batch["input_ids"]))
    model.train()
    return math.exp(sum(losses) / len(loader.dataset))


def main():
    cfg = Config()
    set_seed(cfg.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = make_tokenizer()
    tokenize = lambda rows: tokenizer(rows["text"], truncation=True, max_length=12)
    train_set = make_texts(64, 0).map(tokenize, batched=True, remove_columns=["text"])
    val_set = make_texts(16, 1).map(tokenize, batched=True, remove_columns=["text"])
    if "token_type_ids" in train_set.column_names:
        train_set, val_set = train_set.remove_columns("token_type_ids"), val_set.remove_columns("token_type_ids")
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True, collate_fn=collator)
    val_loader = DataLoader(val_set, batch_size=cfg.batch_size, collate_fn=collator)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=2,
                                       resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    model = get_peft_model(model, LoraConfig(task_type=TaskType.CAUSAL_LM, r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["c_attn"]))
    model.print_trainable_parameters()
    model.to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=cfg.lr)
    steps = cfg.epochs * len(train_loader) // cfg.accumulation
    lr_scheduler = get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=steps)
    for epoch in range(cfg.epochs):
        total = 0.0
        for i, batch in enumerate(train_loader):
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = model(**batch).loss / cfg.accumulation
            loss.backward()
            total += loss.detach().float() * cfg.accumulation
            if (i + 1) % cfg.accumulation == 0 or i == len(train_loader) - 1:
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} train {total.item() / len(train_loader):.3f}")
        print(f"epoch {epoch} perplexity {perplexity(model, val_loader, device):.3f}")
    torch.save(get_peft_model_state_dict(model), "lora.pt")


if __name__ == "__main__":
    main()
