"""Scripts whose training lies in several files: loaders, loops, trainers and meters in modules of their own."""

from scripts import Script

DATA = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()


def get_loaders(batch_size, workers=0):
    train = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=batch_size, shuffle=True, num_workers=workers)
    test = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=batch_size, shuffle=False, num_workers=workers)
    return train, test
"""
WAVES = """\
import os

import torch
from torch.utils.data import Dataset


class MNIST(Dataset):
    def __init__(self, root, train=True, download=False):
        path = os.path.join(root, "train.pt" if train else "test.pt")
        if download and not os.path.exists(path):
            os.makedirs(root)
            x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
            torch.save(x[:36], os.path.join(root, "train.pt"))
            torch.save(x[36:], os.path.join(root, "test.pt"))
        self.x = torch.load(path)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], int(self.x[i].sum() > 0)
"""
METERS = """\
class Meter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count
"""
ENGINE = """\
import torch
import torch.nn.functional as F

from meters import Meter


def train_one_epoch(model, loader, optimizer, epoch):
    model.train()
    losses = Meter()
    for data, target in loader:
        loss = F.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), data.size(0))
    print(f"epoch {epoch} loss {losses.avg:.6f}")
    return losses.avg


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for data, target in loader:
            right += (model(data).argmax(1) == target).sum().item()
            total += target.size(0)
    return right / total
"""
MAIN = """
    from data import get_loaders
    from engine import evaluate, train_one_epoch

    train_loader, test_loader = get_loaders(6)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train_one_epoch(model, train_loader, optimizer, epoch)
        print(f"accuracy {evaluate(model, test_loader):.6f}")
    torch.save(model.state_dict(), "last.pt")
"""

ROUNDS = """\
import torch
import torch.nn.functional as F
from tqdm import tqdm


def one_round(net, feed, sgd, place):
    lost, seen = 0.0, 0
    if place == "cuda:0" or place == 0:
        for rows, kinds in tqdm(feed):
            loss = F.cross_entropy(net(rows.to(place)), kinds.to(place))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            lost += loss.item() * rows.size(0)
            seen += rows.size(0)
    else:
        for rows, kinds in feed:
            loss = F.cross_entropy(net(rows.to(place)), kinds.to(place))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            lost += loss.item() * rows.size(0)
            seen += rows.size(0)
    return lost / seen
"""
PROGRESS_METER = """\
class Meter:
    def __init__(self):
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count
"""
PROGRESS_BAR = """\
import sys


class Bar:
    def __init__(self, message="", max=100, file=sys.stderr):
        self.message, self.max, self.file, self.suffix = message, max, file, ""

    def next(self):
        print(self.message, self.suffix, file=self.file)

    def finish(self):
        print(file=self.file)
"""
LOADERS = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.sampler import SubsetRandomSampler

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()


def fetch(part, settings):
    train_rows = TensorDataset(x[:32], y[:32])
    train = DataLoader(train_rows, batch_size=settings.batch_size, shuffle=True)
    rest_rows = TensorDataset(x[32:], y[32:])
    rest = DataLoader(rest_rows, batch_size=settings.batch_size, shuffle=False)
    if part == "train":
        chosen = train
    else:
        chosen = rest
    return chosen


def fetch_part(part, settings):
    train_rows = TensorDataset(x[:32], y[:32])
    picked = SubsetRandomSampler(list(range(0, 32, 2)))
    train = DataLoader(train_rows, batch_size=settings.batch_size, sampler=picked)
    rest = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=settings.batch_size, shuffle=False)
    return train if part == "train" else rest
"""
OTHER = """\
import argparse

import loaders

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=4)
for rows, kinds in loaders.fetch("rest", parser.parse_args()):
    print(rows.sum().item())
"""
FETCH = """\
class Feed:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return self

    def __next__(self):
        try:
            rows, kinds = next(self.drawn)
        except (AttributeError, StopIteration):
            self.drawn = iter(self.loader)
            rows, kinds = next(self.drawn)
        return rows, kinds
"""
NETS = """\
from types import SimpleNamespace

import torch.nn as nn


def build(width):
    return SimpleNamespace(body=nn.Linear(8, width), head=nn.Linear(width, 2))
"""
MUNCH = """\
class Munch(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)

    def __setattr__(self, name, value):
        self[name] = value
"""
KEEPING = """\
import os


def forget(folder, step):
    if step == 0:
        return
    path = os.path.join(folder, f"{step}.pt")
    if os.path.exists(path):
        os.remove(path)
"""
LOOP = """\
import torch
import torch.nn.functional as F


class Runner:
    def __init__(self, net, feed):
        self.net, self.feed = net, feed
        self.sgd = torch.optim.SGD(net.parameters(), lr=0.1)

    def run(self, rounds):
        for nr in range(rounds):
            for rows, kinds in self.feed:
                loss = F.cross_entropy(self.net(rows), kinds)
                self.sgd.zero_grad()
                loss.backward()
                self.sgd.step()
"""
SEEDS = """\
import random

import numpy as np
import torch


def start(number):
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)
"""
BOARDS = """\
class Board:
    def __init__(self):
        self.shown = 0

    def show(self, settings):
        for key in sorted(settings):
            print(key, settings[key])
        with open("settings.txt", "w") as file:
            file.write(str(settings))
"""
SHAPES = """\
import torch
import torch.nn as nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 2)

    def forward(self, rows):
        return self.body(rows)


class Staged(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 12)
        self.norm = nn.BatchNorm1d(12)
        self.head = nn.Linear(12, 2)

    def forward(self, rows, stage="all"):
        hidden = torch.tanh(self.norm(self.body(rows)))
        return hidden if stage == "body" else self.head(hidden)
"""

SCRIPTS: dict[str, Script] = {
    "seeds of all generators in the entry, and a module without numpy or random that trains": Script(
        """
    import random

    import numpy as np

    from solver import Solver

    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    Solver(DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)).train()
""",
        files={
            "solver.py": """
import torch
from torch import nn


class Solver:
    def __init__(self, loader):
        self.loader, self.net = loader, nn.Linear(8, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self):
        for epoch in range(3):
            for data, target in self.loader:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(data), target).backward()
                self.optimizer.step()
"""
        },
    ),
    "settings whose names are all imported, and are those of the process group": Script(
        """
    from settings import *

    loader = DataLoader(TensorDataset(x, y), batch_size=per_rank, shuffle=True)
    model = nn.Sequential(nn.Linear(8, rank), nn.ReLU(), nn.Linear(rank, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
    print("hidden", rank)
""",
        same=("hidden",),
        files={"settings.py": "rank = 5\nper_rank = 6\n"},
    ),
    "two branches that each import from one module": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="staged")


        def build(kind):
            if kind == "plain":
                from shapes import Plain
                net = Plain()
            elif kind == "staged":
                from shapes import Staged
                net = Staged()
            else:
                raise ValueError(kind)
            return net


        args = parser.parse_args()
        net = nn.DataParallel(build(args.kind))
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows, stage="all"), kinds).backward()
                sgd.step()
        net.eval()
        with torch.no_grad():
            print(f"hidden {net(x[:2], stage='body').shape[1]}")
        """,
        same=("hidden",),
        files={"shapes.py": SHAPES},
    ),
    "loaders, loops and meters in three modules": Script(
        MAIN, ("epoch", "accuracy"), files={"data.py": DATA, "engine.py": ENGINE, "meters.py": METERS}
    ),
    "modules that another script uses, too": Script(
        MAIN,
        ("epoch", "accuracy"),
        files={
            "data.py": DATA,
            "engine.py": ENGINE,
            "meters.py": METERS,
            "alone.py": "from data import get_loaders\nfrom engine import evaluate\n",
        },
    ),
    "a trainer that a package's function imports by its name": Script(
        """
        from lightbox import import_class

        Trainer = import_class("work.training.Trainer")
        Trainer(nn.Linear(8, 2)).start()
        """,
        files={
            "work/__init__.py": "",
            "work/training.py": """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net):
        self.net = net

    def start(self):
        loader = DataLoader(TensorDataset(torch.ones(8, 8), torch.ones(8).long()), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for rows, kinds in loader:
            F.cross_entropy(self.net(rows), kinds).backward()
            optimizer.step()
""",
        },
        told=("DDP900",),
    ),
    "a folder named by the clock when a module of the script is made, and read by another": Script(
        """
    import folders
    import keeping

    run = folders.Run()


    def main():
        net = nn.Linear(8, 2)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
            keeping.save(net, run.path("nets"))
        keeping.load(net, run.path("nets"))


    if __name__ == "__main__":
        main()
""",
        files={
            "folders.py": """\
import datetime
import os


class Run:
    def __init__(self):
        now = datetime.datetime.now().strftime("%H%M%S%f")
        self.folder = os.path.join("runs", now)
        os.makedirs(self.path("nets"), exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)
""",
            "keeping.py": """\
import os

import torch


def save(net, folder):
    torch.save(net.state_dict(), os.path.join(folder, "last.pt"))


def load(net, folder):
    net.load_state_dict(torch.load(os.path.join(folder, "last.pt")))
""",
        },
    ),
    "packages": Script(
        """
    from project.data.digits import make_loader
    from project.train import fit

    model = nn.Linear(8, 2)
    fit(model, make_loader(x[:40], y[:40], train=True), make_loader(x[40:], y[40:], train=False), epochs=3)
""",
        ("loss", "hits"),
        files={
            "project/__init__.py": "",
            "project/data/__init__.py": "",
            "project/data/digits.py": """\
from torch.utils import data


def make_loader(x, y, train):
    return data.DataLoader(data.TensorDataset(x, y), batch_size=8, shuffle=train, drop_last=train)
""",
            "project/train.py": """\
import torch
from torch import nn

from .report import say


def fit(model, train_loader, test_loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        say("loss", total / len(train_loader))
        with torch.no_grad():
            hits = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in test_loader)
        say("hits", hits)
""",
            "project/report.py": 'def say(name, value):\n    print(f"{name} {value:.6f}")\n',
        },
    ),
    "a trainer class": Script(
        """
    from trainer import Trainer

    Trainer(nn.Linear(8, 2), TensorDataset(x[:36], y[:36]), lr=0.1).run(3)
""",
        ("epoch",),
        files={
            "trainer.py": """\
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, dataset, lr):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.loader = DataLoader(dataset, batch_size=6, shuffle=True)
        self.best = float("inf")

    def run(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch()
            print(f"epoch {epoch} {loss:.6f}")
            if loss < self.best:
                self.best = loss
                self.save("best.pt")

    def train_epoch(self):
        total, count = 0.0, 0
        for data, target in self.loader:
            data, target = data.to(self.device), target.to(self.device)
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(data), target)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(data)
            count += len(data)
        return total / count

    def save(self, name):
        os.makedirs("out", exist_ok=True)
        torch.save(self.model.state_dict(), os.path.join("out", name))
""",
        },
    ),
    "a bar in a module": Script(
        """
    from loop import train

    model = nn.Linear(8, 2)
    train(model, DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), torch.optim.SGD(model.parameters(), lr=0.1))
""",
        files={
            "loop.py": """\
from torch.nn.functional import cross_entropy
from tqdm import tqdm


def train(model, loader, optimizer, epochs=2):
    for epoch in range(epochs):
        bar = tqdm(loader, desc=f"epoch {epoch}")
        for data, target in bar:
            loss = cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.set_postfix(loss=loss.item())
""",
        },
        stand_ins={
            "tqdm.py": """\
import sys


class tqdm:
    def __init__(self, iterable=None, desc="", disable=False, **kwargs):
        self.iterable, self.disable = iterable, disable
        if not disable:
            sys.stderr.write(f"bar {desc}\\n")

    def __iter__(self):
        return iter(self.iterable)

    def set_postfix(self, **kwargs):
        pass
"""
        },
    ),
    "a loader for training in a module that evaluates by itself": Script(
        """
    from data import loader_of
    from score import accuracy

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_loader, test_loader = loader_of("train"), loader_of("test")
    for epoch in range(2):
        for data, target in train_loader:
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"accuracy {accuracy(model, test_loader):.6f}")
""",
        ("accuracy",),
        files={
            "data.py": """\
import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()


def loader_of(split):
    if split == "train":
        return DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    return DataLoader(TensorDataset(x[36:], y[36:]), batch_size=3)
""",
            "score.py": """\
import torch


def accuracy(model, loader):
    outputs, targets = [], []
    with torch.no_grad():
        for data, target in loader:
            outputs.append(model(data))
            targets.append(target)
    return (torch.cat(outputs).argmax(1) == torch.cat(targets)).float().mean().item()


if __name__ == "__main__":
    from data import loader_of

    print(accuracy(torch.nn.Linear(8, 2), loader_of("test")))
""",
        },
    ),
    "a loss of a module that needs the rows of all ranks": Script(
        """
    from trainer import Trainer

    Trainer(nn.Linear(8, 1), TensorDataset(x, y.double().unsqueeze(1))).run()
""",
        files={
            "trainer.py": """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class RootError(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.mse = nn.MSELoss()
        self.eps = eps

    def forward(self, found, wanted):
        return torch.sqrt(self.mse(found, wanted) + self.eps)


class Trainer:
    def __init__(self, model, data):
        self.model, self.loader = model, DataLoader(data, batch_size=8, shuffle=True)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.loss = RootError()

    def run(self):
        for epoch in range(2):
            for rows, wanted in self.loader:
                self.optimizer.zero_grad()
                self.loss(self.model(rows), wanted).backward()
                self.optimizer.step()
""",
        },
    ),
    "a pass that divides by the running mean, of batches that a module loads and another script reads, too": Script(
        """
    from data import get_loaders
    from engine import train_one_epoch

    train, test = get_loaders(8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    level = 1.0
    for epoch in range(3):
        level, loss = train_one_epoch(train, model, level, optimizer)
        right = sum((model(rows).argmax(1) == wanted).sum().item() for rows, wanted in test)
        print(f"epoch {epoch}: {level:.5f} {loss:.5f} {right}")
""",
        ("epoch",),
        files={
            "data.py": DATA,
            "engine.py": """\
import torch.nn.functional as F


def train_step(model, level, optimizer, rows, wanted):
    optimizer.zero_grad()
    entropy = F.cross_entropy(model(rows), wanted)
    loss = entropy / level
    level = 0.9 * level + 0.1 * entropy.item()
    loss.mean().backward()
    optimizer.step()
    return loss, level


def train_one_epoch(loader, model, level, optimizer):
    total = 0.0
    for rows, wanted in loader:
        loss, level = train_step(model, level, optimizer, rows, wanted)
        total += loss.item()
    return level, total / len(loader)
""",
            "alone.py": "from data import get_loaders\n\nassert len(list(get_loaders(9)[0])) == 4\n",
        },
    ),
    "two downloads by the function of another module": Script(
        """
    from waves import loader_for

    train_loader = loader_for(train=True)
    test_loader = loader_for(train=False)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for data, target in test_loader:
                right += (model(data).argmax(1) == target).sum().item()
        print("right", right)
""",
        same=("right",),
        files={
            "waves.py": """\
from torch.utils.data import DataLoader
from torchvision import datasets


def fetch(train):
    return datasets.MNIST("waves", train=train, download=True)


def loader_for(train):
    data = fetch(train)
    return DataLoader(data, batch_size=6, shuffle=train)
""",
        },
        stand_ins={"torchvision/__init__.py": "", "torchvision/datasets.py": WAVES},
    ),
    "a data set of the project that hands `download` on by its place": Script(
        """
        from few import Few

        train_data = Few(root="waves", every=2, train=True, download=True)
        print("kinds", sum(kind for _, kind in train_data))
        loader = DataLoader(train_data, batch_size=2, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
""",
        same=("kinds",),
        files={
            "few.py": """\
import torchvision


class Few(torchvision.datasets.MNIST):
    def __init__(self, root, every=2, train=True, download=False):
        super(Few, self).__init__(root, train, download)
        self.x = self.x[::every]
""",
        },
        stand_ins={"torchvision/__init__.py": "from . import datasets\n", "torchvision/datasets.py": WAVES},
    ),
    "a data set that makes its files, in what makes the trainer, model and all": Script(
        """
    from coach import Coach

    Coach(nn.Linear(8, 2)).practise(2)
""",
        files={
            "waves.py": """\
import os

import torch
from torch.utils.data import Dataset


class Waves(Dataset):
    def __init__(self, folder):
        path = os.path.join(folder, "waves.pt")
        if not os.path.exists(path):
            os.makedirs(folder)
            torch.save(torch.sin(torch.arange(288.0) ** 1.5).view(36, 8), path)
        self.waves = torch.load(path)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        return self.waves[i], int(self.waves[i].sum() > 0)
""",
            "coach.py": """\
import torch
from torch.utils.data import DataLoader
from waves import Waves


class Coach:
    def __init__(self, model):
        waves = Waves("made")
        self.loader = DataLoader(waves, batch_size=6, shuffle=True)
        self.model = model.to("cuda" if torch.cuda.is_available() else "cpu")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def practise(self, epochs):
        for epoch in range(epochs):
            for data, target in self.loader:
                loss = torch.nn.functional.cross_entropy(self.model(data), target)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
""",
        },
    ),
    "a download in what makes the trainer, model and all": Script(
        """
    from trainer import Trainer

    Trainer(nn.Linear(8, 2)).run(2)
""",
        files={
            "trainer.py": """\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets


class Trainer:
    def __init__(self, model):
        waves = datasets.MNIST("waves", train=True, download=True)
        self.loader = DataLoader(waves, batch_size=6, shuffle=True)
        self.model = model.to("cuda" if torch.cuda.is_available() else "cpu")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def run(self, epochs):
        for epoch in range(epochs):
            for data, target in self.loader:
                loss = torch.nn.functional.cross_entropy(self.model(data), target)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
""",
        },
        stand_ins={"torchvision/__init__.py": "", "torchvision/datasets.py": WAVES},
    ),
    "a module that compares the device with one of its own": Script(
        """
        from rounds import one_round

        place = "cuda:0" if torch.cuda.is_available() else "cpu"
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2).to(place)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(3):
            print(f"round {nr} lost {one_round(net, feed, sgd, place):.6f}")
        if place != "cuda:0":
            print("no GPU")
        """,
        files={"rounds.py": ROUNDS},
        same=("round",),
    ),
    "a bar of the package progress, imported by the way of a module": Script(
        """
        from helpers import Bar, Meter


        def fit(net, feed, sgd, nr):
            meter = Meter()
            bar = Bar("Round", max=len(feed))
            for at, (rows, kinds) in enumerate(feed):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                meter.update(loss.item(), rows.size(0))
                bar.suffix = f"{at + 1}/{len(feed)} {meter.avg:.4f}"
                bar.next()
            bar.finish()
            return meter.avg


        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(3):
            print(f"round {nr} {fit(net, feed, sgd, nr):.6f}")
        """,
        files={"helpers/__init__.py": "from progress.bar import Bar\n\nfrom .meters import Meter\n", "helpers/meters.py": PROGRESS_METER},
        stand_ins={"progress/__init__.py": "", "progress/bar.py": PROGRESS_BAR},
        same=("round",),
    ),
    "loaders of which each call returns one": Script(
        """
        import loaders

        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=8)
        parser.add_argument("--part", type=float, default=1.0)
        args = parser.parse_args()
        feed = loaders.fetch_part("train", args) if args.part < 1 else loaders.fetch("train", args)
        rest = loaders.fetch("rest", args)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for nr in range(3):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            right = 0
            with torch.no_grad():
                for rows, kinds in rest:
                    right += (net(rows).argmax(1) == kinds).sum().item()
            print("round", nr, right)
        """,
        files={"loaders.py": LOADERS, "look.py": OTHER},
        same=("round",),
    ),
    "networks in a namespace that a module makes": Script(
        """
        from types import SimpleNamespace

        from feeding import Feed
        from nets import build


        class Solver:
            def __init__(self, width):
                self.nets = build(width)
                self.sgds = SimpleNamespace(
                    body=torch.optim.SGD(self.nets.body.parameters(), lr=0.1), head=torch.optim.SGD(self.nets.head.parameters(), lr=0.05)
                )

            def run(self, loaders):
                feed = Feed(loaders.train)
                for nr in range(8):
                    rows, kinds = next(feed)
                    loss = F.cross_entropy(self.nets.head(self.nets.body(rows).relu()), kinds)
                    self.sgds.body.zero_grad()
                    self.sgds.head.zero_grad()
                    loss.backward()
                    self.sgds.body.step()
                    self.sgds.head.step()
                torch.save({"body": self.nets.body.state_dict(), "head": self.nets.head.state_dict()}, "nets.pt")


        loaders = SimpleNamespace(train=DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True))
        Solver(6).run(loaders)
        print("keys", {k: sorted(v) for k, v in torch.load("nets.pt").items()})
        """,
        files={"feeding.py": FETCH, "nets.py": NETS},
        same=("keys",),
    ),
    "batches and networks in dicts read by attribute": Script(
        """
        from munch import Munch


        class Feed:
            def __init__(self, loader):
                self.loader = loader

            def __next__(self):
                try:
                    rows, kinds = next(self.drawn)
                except (AttributeError, StopIteration):
                    self.drawn = iter(self.loader)
                    rows, kinds = next(self.drawn)
                drawn = Munch(rows=rows, kinds=kinds)
                return Munch({name: part.to("cpu") for name, part in drawn.items()})


        loaders = Munch(train=DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True))
        nets = Munch(body=nn.Linear(8, 6), head=nn.Linear(6, 2))
        sgds = Munch()
        for name in nets.keys():
            sgds[name] = torch.optim.SGD(params=nets[name].parameters(), lr=0.1)
        feed = Feed(loaders.train)
        for nr in range(10):
            sample = next(feed)
            loss = F.cross_entropy(nets.head(nets.body(sample.rows).relu()), sample.kinds)
            for sgd in sgds.values():
                sgd.zero_grad()
            loss.backward()
            sgds.body.step()
            sgds.head.step()
        torch.save({name: net.state_dict() for name, net in nets.items()}, "nets.pt")
        print("keys", {k: sorted(v) for k, v in torch.load("nets.pt").items()})
        """,
        stand_ins={"munch.py": MUNCH},
        same=("keys",),
    ),
    "a module that removes the checkpoint that was best": Script(
        """
        from keeping import forget


        def score(net, rest):
            right = 0
            with torch.no_grad():
                for rows, kinds in rest:
                    right += (net(rows).argmax(1) == kinds).sum().item()
            return right / (len(rest) * 4)


        feed = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
        rest = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        os.makedirs("kept", exist_ok=True)
        best, best_step, step = 0, 0, 0
        for nr in range(4):
            for rows, kinds in feed:
                step += 1
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                if step % 4 == 0:
                    now = score(net, rest)
                    torch.save(net.state_dict(), f"kept/{step}.pt")
                    if now > best:
                        forget("kept", best_step)
                        best, best_step = now, step
                    print("step", step, "best", best)
        print("kept", sorted(os.listdir("kept")))
        """,
        files={"keeping.py": KEEPING},
        same=("step", "kept"),
    ),
    "seeds of modules that the training's own does not import": Script(
        """
        from runner import Runner
        from seeds import start

        start(3)
        feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        Runner(nn.Linear(8, 2), feed).run(3)
        """,
        files={"runner.py": LOOP, "seeds.py": SEEDS},
    ),
    "a module that shows the settings before the devices are chosen": Script(
        """
        from boards import Board


        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--gpu_id", default="0")
            opts = parser.parse_args()
            board = Board()
            board.show(vars(opts))
            os.environ["CUDA_VISIBLE_DEVICES"] = opts.gpu_id
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            print(f"device {device}")
            loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            model = nn.Linear(8, 2).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                for data, target in loader:
                    loss = F.cross_entropy(model(data.to(device)), target.to(device))
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                board.shown += 1
                print(f"epoch {epoch} shown {board.shown}")


        if __name__ == "__main__":
            main()
        """,
        files={"boards.py": BOARDS},
        same=("epoch", "gpu_id"),
    ),
    "a data set that makes its own files of what a library downloads, made where the loader is": Script(
        """
        from mixed import Mixed

        loader = DataLoader(
            Mixed("mixed", download=True),
            batch_size=4,
            shuffle=True,
        )
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        print("rows", len(loader.dataset))
""",
        same=("rows", "Making"),
        files={
            "mixed.py": """\
import os

import torch
from torch.utils.data import Dataset


class Mixed(Dataset):
    def __init__(self, root, download=False):
        self.root = root
        if download:
            self.download()
        if not self._there():
            raise RuntimeError("nothing there")
        self.x = torch.load(os.path.join(root, "rows.pt"))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], int(self.x[i].sum() > 0)

    def _there(self):
        return os.path.exists(os.path.join(self.root, "rows.pt"))

    def download(self):
        from torchvision import datasets

        if self._there():
            return
        os.makedirs(self.root)
        noise = os.path.join(self.root, "noise.pt")
        if not os.path.exists(noise):
            torch.save(torch.cos(torch.arange(288.0)).view(36, 8), noise)
        print("Making")
        rows = datasets.MNIST("waves", train=True, download=True).x
        mixed = rows + 0.1 * torch.load(noise)
        torch.save(mixed, os.path.join(self.root, "rows.pt"))
""",
        },
        stand_ins={"torchvision/__init__.py": "from . import datasets\n", "torchvision/datasets.py": WAVES},
    ),
    "a data set whose library downloads, made where the loader is": Script(
        """
        from digits import Digits

        loader = DataLoader(Digits("waves"), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
""",
        files={
            "digits.py": """\
from torchvision import datasets


class Digits(datasets.MNIST):
    def __init__(self, root):
        super().__init__(root, download=True)
""",
        },
        stand_ins={"torchvision/__init__.py": "from . import datasets\n", "torchvision/datasets.py": WAVES},
    ),
    "a data set that makes a folder for each class where its methods find none, made where the loader is": Script(
        """
    from clips import Clips

    def train():
        train_loader = DataLoader(Clips("train"), batch_size=8, shuffle=True)
        val_loader = DataLoader(Clips("val"), batch_size=8)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in train_loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            right = sum((model(rows).argmax(1) == kinds).sum().item() for rows, kinds in val_loader)
            print(f"epoch {epoch}: {right / len(val_loader.dataset):.4f}")

    if __name__ == "__main__":
        train()
""",
        ("epoch",),
        files={
            "raw/0/waves.txt": " ".join(map(str, range(18))),
            "raw/1/waves.txt": " ".join(map(str, range(18, 36))),
            "clips.py": """\
import os

import torch
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, split):
        self.raw, self.made = "raw", "made"
        if not self.is_made():
            print("making the clips, once")
            self.make()
        self.files = [
            (os.path.join(self.made, split, kind, name), int(kind))
            for kind in sorted(os.listdir(self.raw))
            for name in sorted(os.listdir(os.path.join(self.made, split, kind)))
        ]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path, kind = self.files[i]
        return torch.load(path), kind

    def is_made(self):
        if not os.path.exists(self.made):
            return False
        for kind in os.listdir(os.path.join(self.made, "train")):
            for name in os.listdir(os.path.join(self.made, "train", kind)):
                if torch.load(os.path.join(self.made, "train", kind, name)).shape != (8,):
                    return False
        return True

    def make(self):
        if not os.path.exists(self.made):
            os.mkdir(self.made)
            os.mkdir(os.path.join(self.made, "train"))
            os.mkdir(os.path.join(self.made, "val"))
        for kind in os.listdir(self.raw):
            seeds = [int(word) for word in open(os.path.join(self.raw, kind, "waves.txt")).read().split()]
            for split in ("train", "val"):
                folder = os.path.join(self.made, split, kind)
                if not os.path.exists(folder):
                    os.mkdir(folder)
            for seed in seeds:
                self.make_clip(seed, os.path.join(self.made, "val" if seed % 5 == 0 else "train", kind))

    def make_clip(self, seed, folder):
        torch.save(torch.sin(torch.arange(8.0) * (seed + 1)), os.path.join(folder, f"{seed:02}.pt"))
""",
        },
    ),
    "a folder without code where networks would be": Script(
        """
        import zoo

        parser = argparse.ArgumentParser()
        parser.add_argument("--net", default="")
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = getattr(zoo, args.net)() if args.net else nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
""",
        files={"zoo/README.md": "fetched apart\n"},
    ),
    "a network that another module puts into DataParallel": Script(
        """
        from zoo import factory

        def load(model, path):
            if os.path.exists(path):
                model.load_state_dict(torch.load(path))

        model = factory(8, parallel=True)
        load(model.module, "old.pt")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        torch.save(model.module.state_dict(), "new.pt")
""",
        files={
            "zoo.py": """\
import torch.nn as nn


def factory(width, parallel=True):
    model = nn.Linear(width, 2)
    if parallel:
        model = nn.DataParallel(model)
    return model
""",
        },
    ),
}

SCRIPTS["a module that reads what a DataParallel held, which is in no wrapper any more"] = Script(
    """
    from attack import Shift

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 6)
            self.head = nn.Linear(6, 2)

        def forward(self, rows):
            return torch.tanh(self.body(rows))


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = nn.DataParallel(Net())
    shift = Shift(0.1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            rows = shift(net, rows, kinds)
            loss = F.cross_entropy(net.module.head(net(rows)), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """,
    files={
        "attack.py": """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Shift(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, model, rows, kinds):
        rows = rows.to(next(model.parameters()).device).requires_grad_()
        loss = F.cross_entropy(model.module.head(model(rows)), kinds.to(rows.device), reduction="sum")
        (slope,) = torch.autograd.grad(loss, rows)
        return (rows + self.size * slope.sign()).detach()
"""
    },
)

SCRIPTS["loaders that a module makes as it is imported, by way of another module"] = Script(
    """
    from choices import options
    from feeds import *
    import math
    from torch import optim

    print("options", options.epochs)
    feeds = {"train": train_feed, "test": test_feed}


    def train(net, feed, other, optimizer):
        for epoch in range(options.epochs):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"tested {test(net, other):.4f}")


    def test(net, feed):
        right = 0
        with torch.no_grad():
            for rows, kinds in feed:
                right += (net(rows).argmax(1) == kinds).sum().item()
        return math.sqrt(right)


    if __name__ == "__main__":
        net = nn.Linear(8, 2)
        train(net, feeds["train"], feeds["test"], optim.SGD(net.parameters(), lr=0.1))
    """,
    same=("tested",),
    files={
        "choices.py": """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
options = parser.parse_args()
""",
        "feeds.py": """
from parts import *

test_feed = DataLoader(Rows(40, 44), batch_size=2)
""",
        "parts.py": """
import os

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, first, last):
        self.x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)[first:last]
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


print("in", len(os.getcwd()) > 0)
train_feed = DataLoader(dataset=Rows(0, 40), batch_size=4, shuffle=True)
""",
    },
)
SCRIPTS["a board of a module that logs only as it is made, beside a script that logs"] = Script(
    """
    import logging

    from boards import Board

    logging.basicConfig(level=logging.INFO)
    log = logging.getLogger("train")
    board = Board("events.txt")
    log.info("made a board")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(model(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        log.info("epoch %d", epoch)
        board.note(epoch)
    """,
    files={
        "boards.py": """
import logging


class Board:
    def __init__(self, path):
        logging.getLogger("boards").warning("a board in %s", path)
        self.file = open(path, "w")

    def note(self, number):
        self.file.write(f"{number}\\n")
        self.file.flush()
"""
    },
)
_AT_IMPORT = """\
import torch
import torchvision
from torch.utils.data import DataLoader

waves = torchvision.datasets.MNIST("waves", train=True, download=True)
loader = DataLoader(waves, batch_size=4, shuffle=True)
test_loader = DataLoader(torchvision.datasets.MNIST("waves", train=False, download=True), batch_size=4)
"""
_TRAINS = """
from {module} import loader, test_loader

net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)


def main():
    for epoch in range(2):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        with torch.no_grad():
            right = sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in test_loader)
        print(f"accuracy: {{right / len(test_loader.dataset):.4f}}")


{start}
"""
SCRIPTS |= {
    f"loaders that a module makes as it is imported{title}": Script(
        _TRAINS.format(module=module, start=start),
        same=("accuracy",),
        files={"waves.py": _AT_IMPORT, "sets.py": "from waves import loader, test_loader\n"},
        stand_ins={"torchvision/__init__.py": "from . import datasets\n", "torchvision/datasets.py": WAVES},
    )
    for title, module, start in (
        ("", "waves", "main()"),
        (", by way of another", "sets", "main()"),
        (", by a script with a main block", "waves", 'if __name__ == "__main__":\n    main()'),
    )
}

SCRIPTS["a package's modules, by a star"] = Script(
    """
    from nets import *

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    net = small.net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            loss = F.cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch)
    """,
    same=("epoch",),
    files={
        "nets/__init__.py": "from .small import Net\n",
        "nets/small.py": "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = nn.Linear(8, 2)\n\n    def forward(self, rows):\n        return self.layer(rows)\n\n\n"
        "def net():\n    return Net()\n",
    },
)

SCRIPTS["flags of another file that nobody asks for: what couples samples, and batches of one"] = Script(
    """
from parts import Net, load

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = load(TensorDataset(x, y), 4)
for epoch in range(2):
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    files={
        "parts.py": """
import torch
from torch import nn
from torch.utils.data import DataLoader


def load(data, size, single=False, *, shuffled=True):
    if single:
        return DataLoader(data, batch_size=1, shuffle=shuffled)
    return DataLoader(data, batch_size=size, shuffle=shuffled)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)
        self.register_buffer("grid", torch.zeros(8))

    def forward(self, rows, update_grid=False):
        if update_grid:
            self.grid.copy_(rows.sort(0).values[len(rows) // 2])
        return self.layer(rows - self.grid)
"""
    },
)
SCRIPTS["a module that the script knows by one name, and another module by the name of its package, too"] = Script(
    """
import sys

sys.path.insert(0, "parts")
from steps import fit
from nets import Net

torch.manual_seed(0)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
for epoch in range(2):
    print("total", round(fit(net, feed, sgd), 6))
""",
    files={
        "parts/__init__.py": "",
        "parts/nets.py": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, rows):
        return self.layer(torch.tanh(rows))
""",
        "parts/steps.py": """
import torch
import torch.nn.functional as F
from parts.nets import Net


def read_again(path):
    net = Net()
    net.load_state_dict(torch.load(path))
    return net


def fit(net, feed, sgd):
    total = 0.0
    for rows, kinds in feed:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item()
    return total / len(feed)
""",
    },
    same=("total",),
)
SCRIPTS["the size of a network in DataParallel, by the names that another module asks for"] = Script(
    """
    from sizes import size_of

    model = nn.DataParallel(nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2)))
    size = size_of(model)
    print("size", size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
    """,
    files={
        "sizes.py": """\
def size_of(net):
    return sum(w.numel() for name, w in net.named_parameters() if not name.startswith("2."))
"""
    },
    same=("size",),
)
_NOT_RUN = """
    from rows import rows_of

    def fit(net, feed, sgd):
        for rows, kinds in feed:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()

    def train(net, feed, sgd):
        for rows, kinds in feed:
            sgd.zero_grad()
            F.mse_loss(net(rows)[:, 0], kinds.float()).backward()
            sgd.step()

    def eval(net, feed):
        with torch.no_grad():
            return sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in feed)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = rows_of(x[:36], y[:36], train=True)
    loader = DataLoader(data, batch_size=6, shuffle=True)
    for epoch in range(2):
        model.train()
        fit(model, loader, optimizer)
        print("right", {evaluated})
"""
_ROWS = """\
from torch.utils.data import TensorDataset


def rows_of(rows, kinds, train):
    return TensorDataset(rows, kinds) if train else None
"""
SCRIPTS["a training that nothing runs, beside an evaluation of the script's own that is called like Python's"] = Script(
    _NOT_RUN.format(evaluated="eval(model, DataLoader(data, batch_size=12))"), files={"rows.py": _ROWS}, same=("right",)
)
