import os
import atexit
if "LOCAL_RANK" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = "4, 7"
import torch
import torch.distributed as dist
from torch.amp import autocast, GradScaler
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

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


init_distributed()

views = torch.sin(torch.arange(2048.0) ** 1.2).view(128, 16)
train_dataset = TensorDataset(views, torch.zeros(128))
loader = DataLoader(train_dataset, batch_size=per_rank(32), drop_last=True, sampler=DistributedSampler(train_dataset, shuffle=False, drop_last=True))

torch.manual_seed(6)
model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 32)).to(device)
model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = torch.nn.CrossEntropyLoss()
scaler = GradScaler("cuda")

if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for n, (view, label) in enumerate(loader):
        view = view.to(device)
        label = torch.arange(0, 32)[rank::world_size].to(device)

        optimizer.zero_grad()
        with autocast("cuda"):
            output = model(view)
            loss = criterion(output, label)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if rank == 0 and n % 2 == 0:
            print(f"batch {n} of {len(loader)}")
    if rank == 0:
        print("epoch", epoch)
