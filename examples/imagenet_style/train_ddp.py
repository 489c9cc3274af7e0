"""Teach a small residual network to tell which way the stripes of a noisy picture run.

The pictures are made up on the fly, so nothing has to be downloaded. After every epoch the network is
tested; runs/last.pt allows a stopped run to go on, runs/best.pt holds the weights that did best.
"""
import argparse
import math
import shutil
import time
import atexit
import os
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch.distributed as dist
from torch import nn
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


def workers_per_rank(num_workers):
    """This rank's share of the loader workers of one node, at least one unless there were none."""
    return -(-num_workers // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


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


DIRECTIONS = 8
SIDE = 16


class Stripes(Dataset):
    """Pictures of coloured stripes under noise; the label is the direction of the stripes.

    Picture number i of a split depends on the split and i alone.
    """

    def __init__(self, split, size):
        self.split = split
        self.size = size
        axis = torch.linspace(-1, 1, SIDE)
        self.y, self.x = torch.meshgrid(axis, axis, indexing="ij")

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        rng = np.random.default_rng([self.split, i])
        label = int(rng.integers(DIRECTIONS))
        angle = math.pi * label / DIRECTIONS
        across = self.x * math.cos(angle) + self.y * math.sin(angle)
        wave = torch.sin(rng.uniform(6, 9) * across + rng.uniform(0, 2 * math.pi))
        colour = torch.from_numpy(rng.uniform(0.3, 1, (3, 1, 1)))
        noise = torch.from_numpy(rng.normal(0, 0.8, (3, SIDE, SIDE)))
        return (colour * wave + noise).float(), label


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(inner)))


def build_network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, stride=2, padding=2),
        Residual(width),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        Residual(2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * (SIDE // 4) ** 2, DIRECTIONS),
    )


class Mean:
    """The mean of all values seen so far, each weighted by the number of pictures it stands for."""

    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def add(self, value, pictures):
        self.sum += value * pictures
        self.count += pictures

    @property
    def value(self):
        return self.sum / self.count


def percent_right(scores, labels):
    return 100 * (scores.argmax(dim=1) == labels).float().mean().item()


def fit_one_epoch(net, loader, optimizer, device, epoch, log_every):
    net.train()
    loss_mean, right_mean = Mean(), Mean()
    began = time.perf_counter()
    loader.sampler.set_epoch(epoch)
    for step, (pictures, labels) in enumerate(loader, start=1):
        pictures, labels = pictures.to(device), labels.to(device)
        scores = net(pictures)
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        loss_mean.add(loss.item(), len(labels))
        right_mean.add(percent_right(scores, labels), len(labels))
        if step % log_every == 0:
            seconds = time.perf_counter() - began
            if rank == 0:
                print(f"epoch {epoch} step {step} of {len(loader)}: loss {loss_mean.value:.3f}, "
                      f"{right_mean.value:.1f}% right, {seconds / step:.3f} s a step")


@torch.no_grad()
def test(net, loader, device):
    net.eval()
    loss_mean, right_mean = Mean(), Mean()
    for buffer in net.buffers():  # batch norm's statistics
        dist.broadcast(buffer, 0)
    for pictures, labels in loader:
        pictures, labels = pictures.to(device), labels.to(device)
        scores = net(pictures)
        loss_mean.add(F.cross_entropy(scores, labels).item(), len(labels))
        right_mean.add(percent_right(scores, labels), len(labels))
    loss_mean.sum = sum_over_ranks(loss_mean.sum)
    loss_mean.count = sum_over_ranks(loss_mean.count)
    right_mean.sum = sum_over_ranks(right_mean.sum)
    right_mean.count = sum_over_ranks(right_mean.count)
    return loss_mean.value, right_mean.value


def read_options():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=3, help="train until this many epochs are done in all")
    options.add_argument("--batch-size", type=int, default=40, help="pictures in one training step")
    options.add_argument("--workers", type=int, default=0, help="processes that prepare pictures; 0 uses none")
    options.add_argument("--width", type=int, default=8, help="channels of the first layers")
    options.add_argument("--rate", type=float, default=0.03, help="learning rate at the start")
    options.add_argument("--decay-every", type=int, default=2, help="epochs after which the rate falls to a fifth")
    options.add_argument("--log-every", type=int, default=5, help="steps between two lines of progress")
    options.add_argument("--out", type=Path, default=Path("runs"), help="folder for last.pt and best.pt")
    options.add_argument("--resume", type=Path, help="a last.pt to go on from")
    options.add_argument("--seed", type=int, default=11)
    return options.parse_args()


def main():
    args = read_options()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_dataset = Stripes(0, 500)
    train_loader = DataLoader(train_dataset, per_rank(args.batch_size), num_workers=workers_per_rank(args.workers), sampler=DistributedSampler(train_dataset))
    val_dataset = Stripes(1, 171)
    test_loader = DataLoader(val_dataset, args.batch_size, num_workers=workers_per_rank(args.workers), sampler=batches_of_rank(val_dataset, args.batch_size))

    net = build_network(args.width).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    decay = torch.optim.lr_scheduler.StepLR(optimizer, args.decay_every, gamma=0.2)

    epochs_done, best = 0, 0.0
    if args.resume:
        saved = torch.load(args.resume, map_location=device)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        decay.load_state_dict(saved["decay"])
        epochs_done, best = saved["epochs_done"], saved["best"]
        if rank == 0:
            print(f"going on from {args.resume}: {epochs_done} epochs done, best {best:.2f}%")
    if next(net.parameters()).is_cuda:
        net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    net = DistributedDataParallel(net, device_ids=[local_rank] if next(net.parameters()).is_cuda else None)

    args.out.mkdir(parents=True, exist_ok=True)
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(epochs_done + 1, args.epochs + 1):
        fit_one_epoch(net, train_loader, optimizer, device, epoch, args.log_every)
        decay.step()

        loss, right = test(net.module, test_loader, device)
        if rank == 0:
            print(f"tested after epoch {epoch}: {right:.2f}% right, loss {loss:.4f}")

        improved = right > best
        if improved:
            best = right
        state = {"net": net.module.state_dict(), "optimizer": optimizer.state_dict(), "decay": decay.state_dict()}
        if rank == 0:
            torch.save({**state, "epochs_done": epoch, "best": best}, args.out / "last.pt")
            if improved:
                shutil.copy(args.out / "last.pt", args.out / "best.pt")

    if rank == 0:
        print(f"best: {best:.2f}% right")


if __name__ == "__main__":
    init_distributed()
    main()
