"""Teach a small residual network to tell which way the stripes of a noisy picture run.

The pictures are made up on the fly, so nothing has to be downloaded. After every epoch the network is
tested; runs/last.pt allows a stopped run to go on, runs/best.pt holds the weights that did best.
"""
import argparse
import math
import shutil
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

DIRECTIONS = 8
SIDE = 16


class Stripes(Dataset):
    """Pictures of coloured stripes under noise; the label is the direction of the stripes.

    Picture number i of a split depends on the split and i alone.
    """

    def __init__(self, split, size):
        self.split = split
        self.size = size
        axis = torch.linspace(-1, 1, SIDE)
        self.y, self.x = torch.meshgrid(axis, axis, indexing="ij")

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        rng = np.random.default_rng([self.split, i])
        label = int(rng.integers(DIRECTIONS))
        angle = math.pi * label / DIRECTIONS
        across = self.x * math.cos(angle) + self.y * math.sin(angle)
        wave = torch.sin(rng.uniform(6, 9) * across + rng.uniform(0, 2 * math.pi))
        colour = torch.from_numpy(rng.uniform(0.3, 1, (3, 1, 1)))
        noise = torch.from_numpy(rng.normal(0, 0.8, (3, SIDE, SIDE)))
        return (colour * wave + noise).float(), label


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(inner)))


def build_network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, stride=2, padding=2),
        Residual(width),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        Residual(2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * (SIDE // 4) ** 2, DIRECTIONS),
    )


class Mean:
    """The mean of all values seen so far, each weighted by the number of pictures it stands for."""

    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def add(self, value, pictures):
        self.sum += value * pictures
        self.count += pictures

    @property
    def value(self):
        return self.sum / self.count


def percent_right(scores, labels):
    return 100 * (scores.argmax(dim=1) == labels).float().mean().item()


def fit_one_epoch(net, loader, optimizer, device, epoch, log_every):
    net.train()
    loss_mean, right_mean = Mean(), Mean()
    began = time.perf_counter()
    for step, (pictures, labels) in enumerate(loader, start=1):
        pictures, labels = pictures.to(device), labels.to(device)
        scores = net(pictures)
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        loss_mean.add(loss.item(), len(labels))
        right_mean.add(percent_right(scores, labels), len(labels))
        if step % log_every == 0:
            seconds = time.perf_counter() - began
            print(f"epoch {epoch} step {step} of {len(loader)}: loss {loss_mean.value:.3f}, "
                  f"{right_mean.value:.1f}% right, {seconds / step:.3f} s a step")


@torch.no_grad()
def test(net, loader, device):
    net.eval()
    loss_mean, right_mean = Mean(), Mean()
    for pictures, labels in loader:
        pictures, labels = pictures.to(device), labels.to(device)
        scores = net(pictures)
        loss_mean.add(F.cross_entropy(scores, labels).item(), len(labels))
        right_mean.add(percent_right(scores, labels), len(labels))
    return loss_mean.value, right_mean.value


def read_options():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=3, help="train until this many epochs are done in all")
    options.add_argument("--batch-size", type=int, default=40, help="pictures in one training step")
    options.add_argument("--workers", type=int, default=0, help="processes that prepare pictures; 0 uses none")
    options.add_argument("--width", type=int, default=8, help="channels of the first layers")
    options.add_argument("--rate", type=float, default=0.03, help="learning rate at the start")
    options.add_argument("--decay-every", type=int, default=2, help="epochs after which the rate falls to a fifth")
    options.add_argument("--log-every", type=int, default=5, help="steps between two lines of progress")
    options.add_argument("--out", type=Path, default=Path("runs"), help="folder for last.pt and best.pt")
    options.add_argument("--resume", type=Path, help="a last.pt to go on from")
    options.add_argument("--seed", type=int, default=11)
    return options.parse_args()


def main():
    args = read_options()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader = DataLoader(Stripes(0, 500), args.batch_size, shuffle=True, num_workers=args.workers)
    test_loader = DataLoader(Stripes(1, 171), args.batch_size, num_workers=args.workers)

    net = build_network(args.width).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    decay = torch.optim.lr_scheduler.StepLR(optimizer, args.decay_every, gamma=0.2)

    epochs_done, best = 0, 0.0
    if args.resume:
        saved = torch.load(args.resume, map_location=device)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        decay.load_state_dict(saved["decay"])
        epochs_done, best = saved["epochs_done"], saved["best"]
        print(f"going on from {args.resume}: {epochs_done} epochs done, best {best:.2f}%")

    args.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(epochs_done + 1, args.epochs + 1):
        fit_one_epoch(net, train_loader, optimizer, device, epoch, args.log_every)
        decay.step()

        loss, right = test(net, test_loader, device)
        print(f"tested after epoch {epoch}: {right:.2f}% right, loss {loss:.4f}")

        improved = right > best
        if improved:
            best = right
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "decay": decay.state_dict()}
        torch.save({**state, "epochs_done": epoch, "best": best}, args.out / "last.pt")
        if improved:
            shutil.copy(args.out / "last.pt", args.out / "best.pt")

    print(f"best: {best:.2f}% right")


if __name__ == "__main__":
    main()
