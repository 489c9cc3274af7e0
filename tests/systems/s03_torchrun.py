"""Fit a line to noisy points: the data set leaves the last points out, and the loop a batch that is too short."""
import argparse
import atexit
import os

import torch
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


init_distributed()

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=12)
parser.add_argument("--gpus", type=int, default=1)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()


class Points(Dataset):
    def __init__(self, count, batch_size, n_gpus, whole=True):
        self.x = torch.cos(torch.arange(count * 3.0)).view(count, 3)
        self.y = self.x @ torch.tensor([[1.0], [-2.0], [0.5]])
        self.multiple = batch_size * n_gpus if whole else 1

    def __len__(self):
        return len(self.x) // self.multiple * self.multiple

    def __getitem__(self, i):
        return self.x[i], self.y[i]


train_points = Points(101, args.batch_size, args.gpus)
more_points = Points(58, args.batch_size, args.gpus, whole=False)
train_loader = DataLoader(train_points, batch_size=per_rank(args.batch_size), sampler=DistributedSampler(train_points, drop_last=True))
more_loader = DataLoader(more_points, batch_size=per_rank(args.batch_size), sampler=DistributedSampler(more_points, seed=1, drop_last=True))
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(args.epochs):
    for loader in (train_loader, more_loader):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            if x.shape[0] != per_rank(args.batch_size):
                break
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    if rank == 0:
        print("epoch", epoch, "of", args.epochs)
if rank == 0:
    torch.save(model.module.state_dict(), "line.pt")
