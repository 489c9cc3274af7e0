"""Train a small character-level language model on sentences of a made-up grammar."""
import argparse
import math
import os
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

SUBJECTS = ["the otter", "a lighthouse", "our neighbour", "the old clock", "every pilot"]
VERBS = ["forgets", "repairs", "sings to", "waits for", "paints"]
OBJECTS = ["the tide", "a paper boat", "seven lamps", "the last train", "her garden"]
ENDS = [".", " at noon.", " without a word.", " again and again."]


def write_text(sentences, seed):
    rng = random.Random(seed)
    return " ".join(
        f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)}{rng.choice(ENDS)}" for _ in range(sentences)
    )


class CharDataset(Dataset):
    """Windows of the text, each with the same window one character later."""

    def __init__(self, text, vocabulary, window):
        self.codes = torch.tensor([vocabulary[c] for c in text])
        self.window = window

    def __len__(self):
        return (len(self.codes) - 1) // self.window

    def __getitem__(self, i):
        start = i * self.window
        return self.codes[start:start + self.window], self.codes[start + 1:start + self.window + 1]


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class CharModel(nn.Module):
    def __init__(self, vocabulary_size, window, width=32, depth=2, heads=4, dropout=0.1):
        super().__init__()
        self.characters = nn.Embedding(vocabulary_size, width)
        self.positions = nn.Parameter(0.02 * torch.randn(window, width))
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocabulary_size)

    def forward(self, codes):
        x = self.characters(codes) + self.positions[:codes.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def warmup_cosine(warmup_steps, total_steps):
    def factor(step):
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

    return factor


def train_epoch(model, loader, optimizer, scheduler, scaler, device, args):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        with torch.amp.autocast(device.type, dtype=torch.float16, enabled=device.type == "cuda"):
            loss = loss_of(model(inputs), targets)
        scaler.scale(loss / args.accumulate).backward()
        total += loss.item()
        if (i + 1) % args.accumulate == 0 or i + 1 == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total, count = 0.0, 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        total += loss_of(model(inputs), targets).item() * targets.numel()
        count += targets.numel()
    return math.exp(total / count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2, help="batches for each optimizer step")
    parser.add_argument("--window", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=6)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--resume", default="", help="a checkpoint to go on from")
    args = parser.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    os.makedirs(args.out, exist_ok=True)

    train_text, val_text = write_text(170, args.seed), write_text(40, args.seed + 1)
    vocabulary = {c: i for i, c in enumerate(sorted(set(train_text)))}
    train_set = CharDataset(train_text, vocabulary, args.window)
    val_set = CharDataset(val_text, vocabulary, args.window)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True, pin_memory=device.type == "cuda")
    val_loader = DataLoader(val_set, batch_size=args.batch_size)

    model = CharModel(len(vocabulary), args.window).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    steps_per_epoch = math.ceil(len(train_loader) / args.accumulate)
    scheduler = LambdaLR(optimizer, warmup_cosine(args.warmup, args.epochs * steps_per_epoch))
    scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")

    start_epoch, best = 0, float("inf")
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        scaler.load_state_dict(checkpoint["scaler"])
        start_epoch, best = checkpoint["epoch"] + 1, checkpoint["best"]
        print(f"resumed after epoch {checkpoint['epoch']}")

    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters, {len(train_set)} windows, {steps_per_epoch} steps an epoch")
    for epoch in range(start_epoch, args.epochs):
        began = time.time()
        train_loss = train_epoch(model, train_loader, optimizer, scheduler, scaler, device, args)
        perplexity = evaluate(model, val_loader, device)
        print(f"epoch {epoch}: loss {train_loss:.4f}, validation perplexity {perplexity:.3f}")
        print(f"took {time.time() - began:.1f} s")
        best = min(best, perplexity)
        checkpoint = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "epoch": epoch,
            "best": best,
        }
        torch.save(checkpoint, os.path.join(args.out, "last.pt"))
        if best == perplexity:
            torch.save(checkpoint, os.path.join(args.out, "best.pt"))
    print(f"best perplexity {best:.3f}")


if __name__ == "__main__":
    main()
