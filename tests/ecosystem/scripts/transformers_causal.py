"""Train a small GPT-2 on blocks of tokens: labels in the forward, gradient accumulation, perplexity."""
import argparse
import math

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, GPT2Config, get_cosine_schedule_with_warmup


class Blocks(Dataset):
    def __init__(self, size, block, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, 64, (size, block), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.tokens[i].clone()}


def evaluate(model, loader, device):
    model.eval()
    losses = []
    for batch in loader:
        with torch.no_grad():
            outputs = model(batch["input_ids"].to(device), labels=batch["labels"].to(device))
        losses.append(outputs.loss.repeat(batch["input_ids"].shape[0]))
    loss = torch.cat(losses).mean()
    try:
        perplexity = math.exp(loss)
    except OverflowError:
        perplexity = float("inf")
    return loss.item(), perplexity


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--per_device_train_batch_size", type=int, default=4)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--output_dir", type=str, default="gpt")
    parser.add_argument("--gradient_checkpointing", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=2, n_head=2, use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = AutoModelForCausalLM.from_config(config)
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    model.to(device)

    train_loader = DataLoader(Blocks(64, 16, 0), shuffle=True, batch_size=args.per_device_train_batch_size)
    eval_loader = DataLoader(Blocks(16, 16, 1), batch_size=args.per_device_train_batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    updates = math.ceil(len(train_loader) / args.gradient_accumulation_steps)
    scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=args.num_train_epochs * updates)

    completed = 0
    for epoch in range(args.num_train_epochs):
        model.train()
        total_loss = 0.0
        for step, batch in enumerate(train_loader):
            batch = {name: tensor.to(device) for name, tensor in batch.items()}
            outputs = model(**batch)
            loss = outputs.loss / args.gradient_accumulation_steps
            total_loss += loss.detach().float()
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0 or step == len(train_loader) - 1:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                completed += 1
        eval_loss, perplexity = evaluate(model, eval_loader, device)
        print(f"epoch {epoch}: train {total_loss.item() / len(train_loader):.4f} eval {eval_loss:.4f} perplexity {perplexity:.3f}")
    model.save_pretrained(args.output_dir)


if __name__ == "__main__":
    main()
