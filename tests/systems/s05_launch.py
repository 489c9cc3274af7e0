"""Denoise drawings and show how it goes: curves, grids of pictures, the model as text, checkpoints."""
import os
import atexit

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter
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


def grid_of(pictures):
    return torch.cat([p for p in pictures[:4].detach().cpu()], dim=2)


def main():
    clean = torch.sin(torch.arange(64 * 36.0) / 7).view(64, 1, 6, 6)
    noisy = clean + 0.3 * torch.cos(torch.arange(64 * 36.0) ** 1.3).view(64, 1, 6, 6)
    train_dataset = TensorDataset(noisy, clean)
    loader = DataLoader(train_dataset, batch_size=per_rank(16), sampler=DistributedSampler(train_dataset))
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
    net = DistributedDataParallel(net, device_ids=[local_rank] if next(net.parameters()).is_cuda else None)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    writer = SummaryWriter("runs") if rank == 0 else None
    if rank == 0:
        print("net\n", net.module)
    step = 0
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, target in loader:
            output = net(x)
            loss = nn.functional.l1_loss(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 3 == 0:
                for group in optimizer.param_groups:
                    rate = group["lr"]
                if rank == 0:
                    writer.add_scalar("rate", rate, step)
                    writer.add_scalar("loss", loss.item(), step)
                    writer.add_image("pictures", grid_of(output), step)
                    print("step {}: {:.4f}".format(step, loss.item()))
            step += 1
        os.makedirs("saved", exist_ok=True)
        if rank == 0:
            torch.save({"net": net.module.state_dict(), "epoch": epoch}, "saved/last.pt")
    if rank == 0:
        writer.close()


if __name__ == "__main__":
    init_distributed()
    main()
