import os
if "LOCAL_RANK" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,3"
import argparse
import atexit

import torch
import torch.distributed as dist
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

# One process per GPU: torch.distributed.launch tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")


def init_distributed():
    """Join the process group that torch.distributed.launch describes, or be a group of one."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
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


init_distributed()

parser = argparse.ArgumentParser(description="letters from strokes")
parser.add_argument("--batch-size", type=int, default=24)
parser.add_argument("--workers", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")
args = parser.parse_args()

strokes = torch.sin(torch.arange(1440.0) ** 1.1).view(144, 10)
letters = strokes[:, :4].argmax(1)
train_dataset = TensorDataset(strokes[:120], letters[:120])
train_loader = DataLoader(train_dataset, batch_size=per_rank(args.batch_size), num_workers=workers_per_rank(args.workers), sampler=DistributedSampler(train_dataset))
val_dataset = TensorDataset(strokes[120:], letters[120:])
valid_loader = DataLoader(val_dataset, batch_size=args.batch_size, num_workers=workers_per_rank(args.workers), sampler=batches_of_rank(val_dataset, args.batch_size))

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)
model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
criterion = torch.nn.CrossEntropyLoss()
scaler = GradScaler("cuda")

if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(1, args.epochs + 1):
    model.train()
    train_loader.sampler.set_epoch(epoch)
    for stroke, letter in train_loader:
        stroke, letter = stroke.to(device), letter.to(device)
        with autocast("cuda"):
            output = model(stroke)
            loss = criterion(output, letter)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    right = 0
    model.eval()
    with torch.no_grad():
        for stroke, letter in valid_loader:
            output = model.module(stroke.to(device))
            right += (output.argmax(1) == letter.to(device)).float().sum()
        right = sum_over_ranks(right)
    if rank == 0:
        print(f"epoch {epoch}: {right / len(valid_loader.dataset):.4f} of the letters are right")
