"""Where the examples of the rules stand: a small training script with places that a piece is put into.

The piece lies between two strings, which stay where they are: what lies between them after the conversion is what became of it.
"""

import functools
import textwrap

import ddpify
from ddpify import Conversion, Options
from ddpify.records import replace

BEGIN, END = '"the piece"', '"the piece ends"'

SCRIPT = """\
import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
from torch.utils.tensorboard import SummaryWriter
from torchvision import datasets, transforms
from tqdm import tqdm, trange

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--gpu", default="0")
parser.add_argument("--epochs", type=int, default=9)
args = parser.parse_args()
<start>


class Net(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.classes = classes
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(x)


images, labels = torch.ones(640, 8), torch.zeros(640).long()
train_set = TensorDataset(images, labels)
test_set = TensorDataset(torch.ones(160, 8), torch.zeros(160).long())
test_loader = DataLoader(test_set, batch_size=100)
<data>
<model>
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)


def update(x, y):
    <step>


def train(epoch):
    model.train()
    <batches>


def evaluate():
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(test_set)


<loop>
<end>
"""

MAIN = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    train_set = TensorDataset(torch.ones(640, 8), torch.ones(640, 1))
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(9):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


<main>
"""

# place: what stands there where no piece does; a place may hold others
PLACES = {
    "start": "",
    "data": "loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)",
    "model": "model = Net()",
    "step": "loss = criterion(model(x), y)\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\nreturn loss.item()",
    "batches": "for x, y in loader:\n    update(x, y)",
    "loop": "for epoch in range(args.epochs):\n    train(epoch)\n    <epoch>",
    "epoch": "",
    "end": "",
    "main": "main()",
}


def script(piece: str, place: str) -> str:
    """The script with a piece in its place; the piece itself, where it has none."""
    if not place:
        return piece
    text = MAIN if place == "main" else SCRIPT
    for name, usual in PLACES.items():
        filling = f"{BEGIN}\n{piece.rstrip()}\n{END}" if name == place else usual
        text = "\n".join(_filled(line, f"<{name}>", filling) for line in text.split("\n"))
    return text


def _filled(line: str, mark: str, filling: str) -> str:
    indent, found, _ = line.partition(mark)
    return textwrap.indent(filling, indent) if found else line


@functools.cache
def converted(text: str, options: Options) -> Conversion:
    """The conversion of an example's script, made once, and kept without what it would be made anew from."""
    return replace(ddpify.convert(text, options), again=None)
