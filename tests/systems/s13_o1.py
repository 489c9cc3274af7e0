import argparse
import atexit
import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from apex import amp
from apex.parallel import DistributedDataParallel

# Needs NVIDIA's apex at its tag 25.05 or older: later ones have no amp and no DistributedDataParallel.
# With torch 1.10 or newer, its amp/utils.py has to say next_functions[0][0] where it says next_functions[1][0].
# The package `apex` of the Python package index is another project.
# One process per GPU: torchrun tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")


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


def sum_over_ranks(value):
    """The total over all ranks of a number, array or tensor that each computed from its own share of the data."""
    parts = [None] * world_size
    dist.all_gather_object(parts, value.detach().cpu().numpy() if torch.is_tensor(value) else value)
    total = sum(parts)
    return torch.as_tensor(total, device=value.device) if torch.is_tensor(value) else total


init_distributed()

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=12)
parser.add_argument("--local_rank", default=0, type=int)
args = parser.parse_args()

tones = torch.sin(torch.arange(960.0) ** 1.3).view(96, 10)
train_dataset = TensorDataset(tones, tones[:, :3].argmax(1))
train_loader = DataLoader(train_dataset, batch_size=per_rank(args.batch_size), sampler=DistributedSampler(train_dataset, shuffle=False))
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device)
criterion = nn.CrossEntropyLoss().to(device)
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
model = DistributedDataParallel(model)
model.train()
for epoch in range(3):
    total = 0
    train_loader.sampler.set_epoch(epoch)
    for tone, name in train_loader:
        tone, name = tone.to(device), name.to(device)
        out = model(tone)
        loss = criterion(out, name)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        total += loss.item()
    total = sum_over_ranks(total) / world_size
    if rank == 0:
        print("epoch", epoch, "loss", round(total / len(train_loader), 6))
