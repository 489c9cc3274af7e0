import argparse
import atexit
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from apex import amp
from apex.parallel import DistributedDataParallel

# Needs NVIDIA's apex at its tag 25.05 or older: later ones have no amp and no DistributedDataParallel.
# With torch 1.10 or newer, its amp/utils.py has to say next_functions[0][0] where it says next_functions[1][0].
# The package `apex` of the Python package index is another project.
# One process per GPU: mp.spawn starts them, and init_distributed tells each which one it is.
rank = local_rank = 0
world_size = int(os.environ.get("WORLD_SIZE", 1))


def init_distributed(process):
    """Join the group of the processes that mp.spawn has started."""
    global rank, local_rank
    rank = local_rank = process
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=rank)
    atexit.register(dist.destroy_process_group)


def prepare_spawn(processes):
    """Tell the processes to come how many they are, unless WORLD_SIZE says it, and where they meet; return their number."""
    os.environ.setdefault("WORLD_SIZE", str(processes))
    os.environ["LOCAL_WORLD_SIZE"] = os.environ["WORLD_SIZE"]
    os.environ.setdefault("MASTER_ADDR", "localhost")
    if "MASTER_PORT" not in os.environ:
        with socket.create_server(("localhost", 0)) as free:
            os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    return int(os.environ["WORLD_SIZE"])


def per_rank(batch_size):
    """This rank's share of a global batch."""
    if batch_size % world_size:
        lower = batch_size - batch_size % world_size
        sizes = f"{lower} or {lower + world_size}" if lower else f"{world_size}"
        raise ValueError(f"a batch size of {batch_size} cannot be divided among {world_size} ranks; {sizes} can")
    return batch_size // world_size


parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.02)


def mould(grain):
    return nn.Sequential(nn.Linear(4, grain), nn.ReLU(), nn.Linear(grain, 6))


def main():
    args = parser.parse_args()
    mp.spawn(worker, args=(args,), nprocs=prepare_spawn(torch.cuda.device_count() or 1))


def worker(process, args):
    """What one of the spawned processes does."""
    init_distributed(process)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(71)
    clay = torch.cos(torch.arange(480.0) ** 1.2).view(48, 10)
    train_dataset = TensorDataset(clay[:, :4], clay[:, 4:])
    loader = DataLoader(train_dataset, batch_size=per_rank(args.batch_size), sampler=DistributedSampler(train_dataset))
    potter = mould(16).to(device)
    judge = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(0.1), nn.Linear(12, 1)).to(device)
    potting = torch.optim.Adam(potter.parameters(), lr=args.lr)
    judging = torch.optim.Adam(judge.parameters(), lr=args.lr)
    [potter, judge], [potting, judging] = amp.initialize([potter, judge], [potting, judging], opt_level="O1", num_losses=2)
    potter = DistributedDataParallel(potter)
    judge = DistributedDataParallel(judge)
    fits, real_or_not = nn.L1Loss(), nn.BCEWithLogitsLoss()
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(args.rounds):
        loader.sampler.set_epoch(epoch)
        for source, target in loader:
            source, target = source.to(device), target.to(device)
            output = potter(source)
            d_real, d_fake = judge(target), judge(output.detach())
            caught = real_or_not(d_real, torch.ones_like(d_real)) + real_or_not(d_fake, torch.zeros_like(d_fake))
            judging.zero_grad()
            with amp.scale_loss(caught, judging, loss_id=0) as scaled_loss:
                scaled_loss.backward()
            judging.step()
            d_out = judge(output)
            passed = fits(output, target) + 0.1 * real_or_not(d_out, torch.ones_like(d_out))
            potting.zero_grad()
            with amp.scale_loss(passed, potting, loss_id=1) as scaled_loss:
                scaled_loss.backward()
            potting.step()
        if rank == 0:
            print(f"epoch {epoch} is over")
    if rank == 0:
        torch.save(potter.module.state_dict(), "mould.pth")


if __name__ == "__main__":
    main()
