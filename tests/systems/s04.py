"""Classify short sums; the loaders work ahead."""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch-size", type=int, default=16)
    parser.add_argument("-j", "--workers", type=int, default=3)
    return parser.parse_args()


def run(args):
    numbers = torch.sin(torch.arange(400.0)).view(80, 5)
    labels = (numbers.sum(1) > 0).long()
    loader = DataLoader(
        TensorDataset(numbers, labels), args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True, persistent_workers=True
    )
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(model.state_dict(), "sums.pt")


if __name__ == "__main__":
    run(get_args())
