"""Learn to sharpen blurred patches; the GPUs are named on the command line."""
import argparse
import os
import atexit

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
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


class Patches(Dataset):
    """Patch number i depends on i alone."""

    def __init__(self, count, side=8):
        self.count = count
        self.axis = torch.linspace(0, 3, side)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        sharp = torch.sin((self.axis[:, None] + 0.3 * i) * (self.axis[None] + 0.7)).unsqueeze(0)
        return {"blurred": nn.functional.avg_pool2d(sharp, 3, stride=1, padding=1), "sharp": sharp}


class Sharpener(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.Tanh(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, image):
        return image + self.body(image)


def train(args):
    device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() and args.gpu_ids else "cpu")
    patches = Patches(96)
    loader = DataLoader(patches, batch_size=per_rank(args.batch_size), num_workers=workers_per_rank(args.workers), sampler=DistributedSampler(patches, shuffle=False))

    torch.manual_seed(args.seed)
    net = Sharpener(6).to(device)
    net = DistributedDataParallel(net, device_ids=[local_rank] if next(net.parameters()).is_cuda else None)
    if rank == 0:
        print("patches:", len(patches))
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr, betas=(args.beta1, 0.999))
    loss_fn = nn.L1Loss()

    step = 0
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for inputs in loader:
            blurred = inputs["blurred"].to(device)
            sharp = inputs["sharp"].to(device)
            output = net(blurred)
            loss = loss_fn(output, sharp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and step % args.show_every == 0:
                print("after {} steps the loss is {:.5f}".format(step, loss.item()))
            step += 1
        os.makedirs(args.save_dir, exist_ok=True)
        kept = net.module if hasattr(net, "module") else net
        if rank == 0:
            torch.save(kept.state_dict(), os.path.join(args.save_dir, "sharpener_%d.pth" % epoch))


if __name__ == "__main__":
    init_distributed()
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu_ids", default="0,1", help="numbers of the GPUs, separated by commas")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--beta1", type=float, default=0.9)
    parser.add_argument("--show_every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--save_dir", default="checkpoints")
    parser.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")
    args = parser.parse_args()
    args.gpu_ids = [int(i) for i in args.gpu_ids.split(",") if int(i) >= 0]
    train(args)
