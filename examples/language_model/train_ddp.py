"""Train a small character-level language model on sentences of a made-up grammar."""
import argparse
import math
import os
import random
import time
import contextlib
import atexit

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

# One process per GPU: torchrun tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))


def init_distributed():
    """Join the process group that torchrun describes, or be a group of one."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)


def per_rank(batch_size):
    """This rank's share of a global batch."""
    if batch_size % world_size:
        lower = batch_size - batch_size % world_size
        sizes = f"{lower} or {lower + world_size}" if lower else f"{world_size}"
        raise ValueError(f"a batch size of {batch_size} cannot be divided among {world_size} ranks; {sizes} can")
    return batch_size // world_size


def batches_of_rank(dataset, batch_size):
    """Every world_size-th batch of a data set, as indices: together the ranks evaluate each sample once."""
    starts = range(rank * batch_size, len(dataset), world_size * batch_size)
    return [i for start in starts for i in range(start, min(start + batch_size, len(dataset)))]


def sum_over_ranks(value):
    """The total over all ranks of a number, array or tensor that each computed from its own share of the data."""
    parts = [None] * world_size
    dist.all_gather_object(parts, value.detach().cpu().numpy() if torch.is_tensor(value) else value)
    total = sum(parts)
    return torch.as_tensor(total, device=value.device) if torch.is_tensor(value) else total


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
    loader.sampler.set_epoch(loader.sampler.epoch + 1)
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        with contextlib.nullcontext() if (i + 1) % args.accumulate == 0 or i + 1 == len(loader) else model.no_sync():
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
    total = sum_over_ranks(total) / world_size
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total, count = 0.0, 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        total += loss_of(model(inputs), targets).item() * targets.numel()
        count += targets.numel()
    count = sum_over_ranks(count)
    total = sum_over_ranks(total)
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
    train_loader = DataLoader(train_set, batch_size=per_rank(args.batch_size), drop_last=True, pin_memory=device.type == "cuda", sampler=DistributedSampler(train_set, drop_last=True))
    val_loader = DataLoader(val_set, batch_size=args.batch_size, sampler=batches_of_rank(val_set, args.batch_size))

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
        if rank == 0:
            print(f"resumed after epoch {checkpoint['epoch']}")
    model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)

    parameters = sum(p.numel() for p in model.parameters())
    if rank == 0:
        print(f"{parameters} parameters, {len(train_set)} windows, {steps_per_epoch} steps an epoch")
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
        random.seed(torch.initial_seed() % 2**32)
    for epoch in range(start_epoch, args.epochs):
        began = time.time()
        train_loss = train_epoch(model, train_loader, optimizer, scheduler, scaler, device, args)
        perplexity = evaluate(model.module, val_loader, device)
        if rank == 0:
            print(f"epoch {epoch}: loss {train_loss:.4f}, validation perplexity {perplexity:.3f}")
            print(f"took {time.time() - began:.1f} s")
        best = min(best, perplexity)
        checkpoint = {
            "model": model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "epoch": epoch,
            "best": best,
        }
        if rank == 0:
            torch.save(checkpoint, os.path.join(args.out, "last.pt"))
            if best == perplexity:
                torch.save(checkpoint, os.path.join(args.out, "best.pt"))
    if rank == 0:
        print(f"best perplexity {best:.3f}")


if __name__ == "__main__":
    init_distributed()
    main()
