"""Two encoders, of which a batch may leave one unused; a run goes on at the epoch that it is told."""
import argparse
import atexit
import os

import torch
import torch.distributed as dist
from torch import nn
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


init_distributed()

parser = argparse.ArgumentParser()
parser.add_argument("--start_epoch", type=int, default=1)
parser.add_argument("--n_epochs", type=int, default=4)
parser.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")
FLAGS = parser.parse_args()


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Linear(6, 4)
        self.text = nn.Linear(6, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x, with_text):
        hidden = self.image(x) + self.text(x) if with_text else self.image(x)
        return self.head(torch.tanh(hidden))


data = torch.sin(torch.arange(480.0) * 0.9).view(80, 6)
sampler = None
train_dataset = TensorDataset(data, data.prod(1, keepdim=True))
loader = DataLoader(train_dataset, batch_size=per_rank(20), sampler=DistributedSampler(train_dataset))
torch.manual_seed(9)
net = Pair()
net = DistributedDataParallel(net, device_ids=[local_rank] if next(net.parameters()).is_cuda else None, find_unused_parameters=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(FLAGS.start_epoch, FLAGS.n_epochs):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x, epoch % 2 == 0), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print("epoch", epoch)
