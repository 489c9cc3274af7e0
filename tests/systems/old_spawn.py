import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def join(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "23987"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def train(rank, world_size, epochs):
    join(rank, world_size)
    points = torch.sin(torch.arange(160.0)).view(40, 4)
    dataset = TensorDataset(points, points.sum(1, keepdim=True))
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print("epoch", epoch, "on", world_size)
    if rank == 0:
        torch.save(model.module.state_dict(), "line.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    processes = 2
    mp.spawn(train, args=(processes, 2), nprocs=processes, join=True)
