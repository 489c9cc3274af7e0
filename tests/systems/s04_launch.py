"""Classify short sums; the loaders work ahead."""
import argparse
import atexit
import os

import torch
import torch.nn.functional as F
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


# One process per GPU: torch.distributed.launch tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))


def init_distributed():
    """Join the process group that torch.distributed.launch describes, or be a group of one."""
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


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch-size", type=int, default=16)
    parser.add_argument("-j", "--workers", type=int, default=3)
    parser.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")
    return parser.parse_args()


def run(args):
    numbers = torch.sin(torch.arange(400.0)).view(80, 5)
    labels = (numbers.sum(1) > 0).long()
    train_dataset = TensorDataset(numbers, labels)
    loader = DataLoader(
        train_dataset, per_rank(args.batch_size), num_workers=workers_per_rank(args.workers), pin_memory=True, persistent_workers=True, sampler=DistributedSampler(train_dataset)
    )
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 2)
    model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for _ in range(2):
        loader.sampler.set_epoch(_)
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), "sums.pt")


if __name__ == "__main__":
    init_distributed()
    run(get_args())
