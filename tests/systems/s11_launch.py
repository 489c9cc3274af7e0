"""Best and last checkpoints; a run that was stopped goes on from the last one."""
import argparse
import os
import atexit
from os.path import join

import torch
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


init_distributed()

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--keep", type=str, default="kept")
parser.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")
args = parser.parse_args()
folder = join(args.keep, "weights")
os.makedirs(folder, exist_ok=True)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
grid = torch.sin(torch.arange(640.0)).view(80, 8)
side = (grid[:, :4].sum(1) > grid[:, 4:].sum(1)).long()
train_dataset = TensorDataset(grid[:60], side[:60])
train_loader = DataLoader(train_dataset, batch_size=per_rank(10), sampler=DistributedSampler(train_dataset))
val_dataset = TensorDataset(grid[60:], side[60:])
valid_loader = DataLoader(val_dataset, batch_size=10, sampler=batches_of_rank(val_dataset, 10))

torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
last = join(folder, "last.pth")
if os.path.exists(last):
    model.load_state_dict(torch.load(last, map_location=device))
    if rank == 0:
        print("going on from", last)
model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
best_acc = 0.0

if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(1, args.epochs + 1):
    model.train()
    train_loader.sampler.set_epoch(epoch)
    for x, y in train_loader:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in valid_loader:
            right += (model.module(x.to(device)).argmax(1) == y.to(device)).sum().item()
        right = sum_over_ranks(right)
    acc = right / len(valid_loader.dataset)
    if rank == 0:
        print(f"epoch {epoch}: accuracy {acc:.4f}")
    if best_acc < acc:
        if rank == 0:
            print(f"better than {best_acc:.4f}")
        best_acc = acc
        if rank == 0:
            torch.save(model.module.state_dict(), join(folder, "best.pth"))
    if rank == 0:
        torch.save(model.module.state_dict(), last)
    dist.barrier()
    model.module.load_state_dict(torch.load(last, map_location=device))
    if rank == 0:
        print("loaded what was saved")
