import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--local_rank", type=int, default=0)
    return parser


def main():
    args = get_parser().parse_args()
    os.environ["MASTER_ADDR"] = "localhost"
    dist.init_process_group("gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(args.local_rank)
    points = torch.sin(torch.arange(160.0)).view(40, 4)
    dataset = TensorDataset(points, points.sum(1, keepdim=True))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler, num_workers=1)
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if args.local_rank == 0:
            print("epoch", epoch, "on", dist.get_world_size())
    if args.local_rank == 0:
        torch.save(model.module.state_dict(), "line.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
