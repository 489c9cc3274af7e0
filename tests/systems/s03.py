"""Fit a line to noisy points: the data set leaves the last points out, and the loop a batch that is too short."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=12)
parser.add_argument("--gpus", type=int, default=1)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()


class Points(Dataset):
    def __init__(self, count, batch_size, n_gpus, whole=True):
        self.x = torch.cos(torch.arange(count * 3.0)).view(count, 3)
        self.y = self.x @ torch.tensor([[1.0], [-2.0], [0.5]])
        self.multiple = batch_size * n_gpus if whole else 1

    def __len__(self):
        return len(self.x) // self.multiple * self.multiple

    def __getitem__(self, i):
        return self.x[i], self.y[i]


train_points = Points(101, args.batch_size, args.gpus)
more_points = Points(58, args.batch_size, args.gpus, whole=False)
train_loader = DataLoader(train_points, batch_size=args.batch_size, shuffle=True)
more_loader = DataLoader(more_points, batch_size=args.batch_size, shuffle=True)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(args.epochs):
    for loader in (train_loader, more_loader):
        for x, y in loader:
            if x.shape[0] != args.batch_size:
                break
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    print("epoch", epoch, "of", args.epochs)
torch.save(model.state_dict(), "line.pt")
