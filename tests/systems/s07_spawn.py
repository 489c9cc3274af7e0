"""Tell waves apart; everything is said in the main block, and functions read it."""

import atexit
import os
import socket

import torch
import torch.nn as nn
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


# One process per GPU: mp.spawn starts them, and init_distributed tells each which one it is.
rank = local_rank = 0
world_size = int(os.environ.get("WORLD_SIZE", 1))


def init_distributed(process):
    """Join the group of the processes that mp.spawn has started."""
    global rank, local_rank
    rank = local_rank = process
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=rank)
    atexit.register(dist.destroy_process_group)


def prepare_spawn(processes):
    """Tell the processes to come how many they are, unless WORLD_SIZE says it, and where they meet; return their number."""
    os.environ.setdefault("WORLD_SIZE", str(processes))
    os.environ["LOCAL_WORLD_SIZE"] = os.environ["WORLD_SIZE"]
    os.environ.setdefault("MASTER_ADDR", "localhost")
    if "MASTER_PORT" not in os.environ:
        with socket.create_server(("localhost", 0)) as free:
            os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    return int(os.environ["WORLD_SIZE"])


def per_rank(batch_size):
    """This rank's share of a global batch."""
    if batch_size % world_size:
        lower = batch_size - batch_size % world_size
        sizes = f"{lower} or {lower + world_size}" if lower else f"{world_size}"
        raise ValueError(f"a batch size of {batch_size} cannot be divided among {world_size} ranks; {sizes} can")
    return batch_size // world_size


class Waves(Dataset):
    def __len__(self):
        return 72

    def __getitem__(self, i):
        return torch.sin(torch.arange(10.0) * (1 + i % 3) / 3 + i), i % 3


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 3))

    def forward(self, wave):
        return self.layers(wave)


def one_epoch(epoch):
    loader.sampler.set_epoch(epoch)
    for wave, kind in loader:
        with torch.autocast("cuda", dtype=torch.float16, enabled=torch.cuda.is_available()):
            loss = criterion(reader(wave.to(device)), kind.to(device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    if rank == 0:
        print("epoch", epoch, "done")


def worker(process):
    """What one of the spawned processes does."""
    global criterion, device, loader, optimizer, reader, scaler
    init_distributed(process)
    for kind in (Reader,):
        kind.__module__ = "__main__"  # models are pickled under the name that others load
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(4)
    train_dataset = Waves()
    loader = DataLoader(train_dataset, batch_size=per_rank(12), sampler=DistributedSampler(train_dataset, shuffle=False))
    reader = Reader().to(device)
    reader = DistributedDataParallel(reader, device_ids=[local_rank] if next(reader.parameters()).is_cuda else None)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(reader.parameters(), lr=0.2, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(3):
        one_epoch(epoch)
    if rank == 0:
        torch.save(reader.module, "reader.pt")


if __name__ == "__main__":
    mp.spawn(worker, nprocs=prepare_spawn(torch.cuda.device_count() or 1))
