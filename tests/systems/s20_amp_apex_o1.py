import os
import atexit

import torch
import torch.distributed as dist
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


init_distributed()

x = torch.sin(torch.arange(320.0)).view(64, 5)
train_dataset = TensorDataset(x, x.sum(1, keepdim=True))
train_loader = DataLoader(train_dataset, batch_size=per_rank(16), sampler=DistributedSampler(train_dataset, shuffle=False))
model = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.to(device)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
if os.path.isfile("amp_checkpoint.pt"):
    checkpoint = torch.load("amp_checkpoint.pt", map_location=device)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    if checkpoint.get("amp"):
        amp.load_state_dict(checkpoint["amp"])
model = DistributedDataParallel(model)
for epoch in range(4):
    train_loader.sampler.set_epoch(epoch)
    for images, target in train_loader:
        images, target = images.to(device), target.to(device)
        loss = torch.nn.functional.mse_loss(model(images), target)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
checkpoint = {
    "model": model.module.state_dict(),
    "optimizer": optimizer.state_dict(),
    "amp": amp.state_dict(),
}
if rank == 0:
    torch.save(checkpoint, "amp_checkpoint.pt")
