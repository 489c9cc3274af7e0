"""A loader that prepares the next batch while the current one is used, on a stream of its own where there is a GPU."""
import queue
import threading
import atexit
import os

import torch
import torch.distributed as dist
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


class Background(threading.Thread):
    def __init__(self, batches, ahead=3):
        super().__init__(daemon=True)
        self.queue = queue.Queue(ahead)
        self.batches = batches
        self.start()

    def run(self):
        for batch in self.batches:
            self.queue.put(batch)
        self.queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        batch = self.queue.get()
        if batch is None:
            raise StopIteration
        return batch


class PrefetchLoader(DataLoader):
    def __init__(self, device, **kwargs):
        super().__init__(**kwargs)
        self.device = device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __iter__(self):
        self.ahead = Background(super().__iter__())
        self.preload()
        return self

    def preload(self):
        self.batch = next(self.ahead, None)
        if self.batch is None:
            return
        if self.stream is None:
            self.batch = [part.to(self.device) for part in self.batch]
            return
        with torch.cuda.stream(self.stream):
            self.batch = [part.to(self.device, non_blocking=True) for part in self.batch]

    def __next__(self):
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        if batch is None:
            raise StopIteration
        self.preload()
        return batch


class Faces(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return torch.cos(torch.arange(9.0) * (i % 5 + 1) + i), i % 5


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dataset = Faces()
    loader = PrefetchLoader(device, dataset=train_dataset, batch_size=per_rank(12), drop_last=True, sampler=DistributedSampler(train_dataset, drop_last=True))
    torch.manual_seed(8)
    model = torch.nn.Linear(9, 5).to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for face, person in loader:
            loss = torch.nn.functional.cross_entropy(model(face), person)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print("epoch", epoch)
    if rank == 0:
        torch.save(model.module.state_dict(), "faces.pt")


if __name__ == "__main__":
    init_distributed()
    main()
