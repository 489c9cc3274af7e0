"""Learn to tell which of three rhythms a noisy sequence follows."""
import argparse
import json
import random
import atexit
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.optim import Adam
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, random_split
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


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class RhythmDataset(Dataset):
    def __init__(self, size, length):
        generator = torch.Generator().manual_seed(7)
        t = torch.arange(length)
        self.labels = torch.randint(0, 3, (size,), generator=generator)
        clean = torch.stack([torch.sin(t * (0.4 + 0.25 * int(label))) for label in self.labels])
        self.sequences = (clean + 0.6 * torch.randn(size, length, generator=generator)).unsqueeze(-1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"sequence": self.sequences[i], "label": self.labels[i]}


class RhythmModel(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.gru = nn.GRU(1, hidden_size, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden_size, hidden_size), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden_size, 3))

    def forward(self, x):
        _, hidden = self.gru(x)
        return self.head(hidden[-1])


class Trainer:
    def __init__(self, config):
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.out_dir = Path(config.out_dir)
        self.out_dir.mkdir(parents=True, exist_ok=True)

        dataset = RhythmDataset(config.samples, config.length)
        n_val = len(dataset) // 5
        train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])
        self.train_loader = DataLoader(train_set, batch_size=per_rank(config.batch_size), drop_last=True, sampler=DistributedSampler(train_set, drop_last=True))
        self.val_loader = DataLoader(val_set, batch_size=config.batch_size, sampler=batches_of_rank(val_set, config.batch_size))

        self.model = RhythmModel(config.hidden_size).to(self.device)
        self.model = DistributedDataParallel(self.model, device_ids=[local_rank] if next(self.model.parameters()).is_cuda else None)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = Adam(self.model.parameters(), lr=config.lr)
        self.scheduler = ReduceLROnPlateau(self.optimizer, factor=0.5, patience=0)
        self.best_loss = float("inf")
        self.history = []

    def fit(self):
        if rank == 0:
            print(f"{sum(p.numel() for p in self.model.parameters())} parameters on {self.device}")
        if rank != 0:
            torch.manual_seed(torch.initial_seed() + rank)
            random.seed(torch.initial_seed() % 2**32)
        for epoch in range(1, self.config.epochs + 1):
            train_loss = self.train_epoch(epoch)
            val_loss, val_acc = self.evaluate()
            self.scheduler.step(val_loss)
            lr = self.optimizer.param_groups[0]["lr"]
            if rank == 0:
                print(f"epoch {epoch}: train loss {train_loss:.4f}, val loss {val_loss:.4f}, val acc {val_acc:.3f}, lr {lr:.1e}")
            self.history.append({"epoch": epoch, "train_loss": train_loss, "val_loss": val_loss, "val_acc": val_acc})
            if val_loss < self.best_loss:
                self.best_loss = val_loss
                self.save("best.pt", epoch)
        self.save("last.pt", self.config.epochs)
        if rank == 0:
            with open(self.out_dir / "history.json", "w") as f:
                json.dump(self.history, f, indent=2)

    def train_epoch(self, epoch):
        self.model.train()
        total_loss = 0.0
        self.train_loader.sampler.set_epoch(epoch)
        for step, batch in enumerate(self.train_loader):
            x = batch["sequence"].to(self.device)
            y = batch["label"].to(self.device)

            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
            self.optimizer.step()

            total_loss += loss.item()
            if rank == 0 and step % self.config.log_every == 0:
                print(f"  epoch {epoch} step {step}/{len(self.train_loader)} loss {loss.item():.4f}")
        total_loss = sum_over_ranks(total_loss) / world_size
        return total_loss / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total_loss, correct = 0.0, 0
        for batch in self.val_loader:
            x = batch["sequence"].to(self.device)
            y = batch["label"].to(self.device)
            logits = self.model.module(x)
            total_loss += self.criterion(logits, y).item() * y.size(0)
            correct += (logits.argmax(dim=1) == y).sum().item()
        correct = sum_over_ranks(correct)
        total_loss = sum_over_ranks(total_loss)
        n = len(self.val_loader.dataset)
        return total_loss / n, correct / n

    def save(self, name, epoch):
        if rank == 0:
            torch.save({"epoch": epoch, "model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(), "best_loss": self.best_loss},
                       self.out_dir / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=700)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--hidden-size", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--log-every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out-dir", default="runs/rhythm")
    config = parser.parse_args()

    set_seed(config.seed)
    trainer = Trainer(config)
    trainer.fit()


if __name__ == "__main__":
    init_distributed()
    main()
