"""A project that is made up: 30 modules that import one another, of about so many lines together, and the script that trains with them.

`python tests/big_project.py FOLDER [--lines N]` writes it; `benchmark_convert.py` times it.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

ENTRY = """\
import os
import time

import torch
import torch.nn as nn

from data.loaders import make_loaders
from engine.evaluate import evaluate
from engine.train import train_one_epoch
from losses.mixed import MixedLoss
from models.registry import build
from options.base import parse
from utils.checkpoint import save_checkpoint
from utils.log import Log
from utils.seeds import seed_all


def main():
    args = parse()
    seed_all(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, test_loader = make_loaders(args)
    model = build(args).to(device)
    criterion = MixedLoss(args.smoothing)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)
    os.makedirs(args.out, exist_ok=True)
    log = Log(os.path.join(args.out, "log.txt"))
    best = 0.0
    for epoch in range(args.epochs):
        start = time.time()
        loss = train_one_epoch(model, train_loader, criterion, optimizer, device, epoch, log)
        accuracy = evaluate(model, test_loader, device)
        scheduler.step()
        log.write(f"epoch {epoch}: loss {loss:.4f} accuracy {accuracy:.4f} in {time.time() - start:.0f} s")
        if accuracy > best:
            best = accuracy
            save_checkpoint(os.path.join(args.out, "best.pt"), model, optimizer, epoch)
    print("best", best)


if __name__ == "__main__":
    main()
"""
ALONE = """\
import argparse
import os
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(TensorDataset(torch.randn(256, 3, 8, 8), torch.randint(10, (256,))), args.batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(10, (64,))), args.batch_size)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)
    os.makedirs(args.out, exist_ok=True)
    best = 0.0
    for epoch in range(args.epochs):
        start = time.time()
        model.train()
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = count = 0
        with torch.no_grad():
            for x, y in test_loader:
                x, y = x.to(device), y.to(device)
                right += (model(x).argmax(1) == y).sum().item()
                count += len(y)
        scheduler.step()
        print(f"epoch {epoch}: accuracy {right / count:.4f} in {time.time() - start:.0f} s")
        if right / count > best:
            best = right / count
            torch.save({"model": model.state_dict(), "epoch": epoch}, os.path.join(args.out, "best.pt"))
    print("best", best)


if __name__ == "__main__":
    main()
"""
BLOCK = '''

class {name}Block{i}(nn.Module):
    """A residual block."""

    def __init__(self, width, drop=0.0):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.drop = nn.Dropout(drop)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x):
        out = torch.relu(self.norm1(self.first(x)))
        out = self.norm2(self.second(self.drop(out)))
        return torch.relu(out + x)
'''
NET = '''

class {name}(nn.Module):
    """Blocks one after another."""

    def __init__(self, classes=10, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential({blocks})
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(x.mean((2, 3)))


def {lower}(**options):
    return {name}(**options)
'''
HELPER = '''

def {kind}_{i}(values, scale={i}.5, names=()):
    """What the numbers of a table come to."""
    total, seen = 0.0, {{}}
    for k, value in enumerate(values):
        if value is None or (names and names[k % len(names)] == "skip"):
            continue
        seen.setdefault(int(value) % {n}, []).append(scale * value)
        total += scale * value
    if not seen:
        return 0.0, {{}}
    means = {{key: sum(held) / len(held) for key, held in seen.items()}}
    return total / len(seen), means


class {Kind}Table{i}:
    def __init__(self, size={n}):
        self.size, self.rows = size, []

    def add(self, row):
        self.rows.append([{kind}_{i}(row, scale)[0] for scale in range(1, self.size)])
        if len(self.rows) > self.size:
            self.rows = self.rows[-self.size :]

    def text(self):
        return "\\n".join(" ".join(f"{{cell:8.3f}}" for cell in row) for row in self.rows)
'''
NETS = [f"net_{name}" for name in ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel")]
OTHERS = {
    "options/base.py": """\
import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="alder")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--smoothing", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="out")
    return parser.parse_args()
""",
    "data/pictures.py": """\
import torch
from torch.utils.data import Dataset

from data.changes import change


class Pictures(Dataset):
    def __init__(self, count, train=True):
        draw = torch.Generator().manual_seed(int(train))
        self.pictures = torch.randn(count, 3, 8, 8, generator=draw)
        self.labels = torch.randint(10, (count,), generator=draw)
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        picture = self.pictures[i]
        return (change(picture) if self.train else picture), self.labels[i]
""",
    "data/changes.py": """\
def change(picture):
    return picture.flip(2) * 1.1
""",
    "data/loaders.py": """\
from torch.utils.data import DataLoader

from data.pictures import Pictures


def make_loaders(args):
    train, test = Pictures(128), Pictures(64, train=False)
    return (
        DataLoader(train, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True),
        DataLoader(test, batch_size=args.batch_size, num_workers=args.workers),
    )
""",
    "engine/train.py": """\
from utils.log import note
from utils.meters import Meter


def train_one_epoch(model, loader, criterion, optimizer, device, epoch, log):
    model.train()
    losses = Meter()
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), x.size(0))
        if step % 10 == 0:
            note(log, f"epoch {epoch} step {step} loss {losses.average:.4f}")
    return losses.average
""",
    "engine/evaluate.py": """\
import torch


def evaluate(model, loader, device):
    model.eval()
    right = count = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            right += (model(x).argmax(1) == y).sum().item()
            count += y.size(0)
    return right / count
""",
    "engine/schedule.py": """\
from engine.train import train_one_epoch


def several(count, *args):
    return [train_one_epoch(*args) for _ in range(count)]
""",
    "utils/meters.py": """\
class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / max(self.count, 1)
""",
    "utils/log.py": """\
class Log:
    def __init__(self, path):
        self.path = path

    def write(self, line):
        print(line)
        with open(self.path, "a") as file:
            file.write(line + "\\n")


def note(log, line):
    log.write(line)
""",
    "utils/checkpoint.py": """\
import torch


def save_checkpoint(path, model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)
""",
    "utils/seeds.py": """\
import random

import torch


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)
""",
    "utils/tables.py": "import math  # noqa: F401\n",
    "utils/files.py": "import os  # noqa: F401\n",
    "utils/text.py": "import re  # noqa: F401\n",
    "losses/mixed.py": """\
import torch.nn as nn

from losses.smooth import SmoothLoss


class MixedLoss(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smooth = SmoothLoss(smoothing)

    def forward(self, outputs, labels):
        return self.smooth(outputs, labels)
""",
    "losses/smooth.py": """\
import torch.nn as nn


class SmoothLoss(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.inner = nn.CrossEntropyLoss(label_smoothing=smoothing)

    def forward(self, outputs, labels):
        return self.inner(outputs, labels)
""",
    "losses/tables.py": "from losses.smooth import SmoothLoss  # noqa: F401\n",
    "losses/weights.py": "import math  # noqa: F401\n",
    "data/tables.py": "from data.changes import change  # noqa: F401\n",
    "engine/hooks.py": "from utils.tables import tables_0  # noqa: F401\n",
    "utils/shapes.py": "import random  # noqa: F401\n",
}
_UNUSED = (
    *("data.tables", "engine.hooks", "engine.schedule", "losses.tables", "losses.weights"),
    *("utils.files", "utils.shapes", "utils.tables", "utils.text"),
)
PACKAGES = ("data", "engine", "losses", "models", "options", "utils")


def files(lines: int = 6000) -> dict[str, str]:
    """The project's modules by their paths (empty `__init__.py` included), and `train.py`, together about so many lines."""
    out = {"train.py": ENTRY, **OTHERS}
    each = lines // 28  # options and the registry stay short
    for name in NETS:
        out[f"models/{name}.py"] = _net(name.removeprefix("net_"), each)
    names = [name.removeprefix("net_") for name in NETS]
    imports = "".join(f"from models.net_{name} import {name}\n" for name in names)
    nets = ", ".join(f'"{name}": {name}' for name in names)
    used = "".join(f"import {m}  # noqa: F401\n" for m in _UNUSED)
    build = "\n\ndef build(args):\n    return NETS[args.model](classes=10)\n"
    out["models/registry.py"] = f"{used}{imports}\nNETS = {{{nets}}}\n{build}"
    fill = [name for name in out if name != "train.py" and name.partition("/")[0] not in ("models", "options")]
    for name in sorted(fill):
        kind = Path(name).stem
        out[name] += "".join(_until(each - out[name].count("\n"), HELPER, kind=kind, Kind=kind.title()))
    return out | {f"{package}/__init__.py": "" for package in PACKAGES if package != "utils"}


def _until(lines: int, text: str, **names: str) -> Iterator[str]:
    for i in range(max(0, round(lines / text.count("\n")))):
        yield text.format(i=i, n=3 + i % 5, **names)


def _net(name: str, lines: int) -> str:
    blocks = list(_until(lines - NET.count("\n"), BLOCK, name=name.title()))
    made = ", ".join(f"{name.title()}Block{i}(width)" for i in range(len(blocks)))
    return "import torch\nimport torch.nn as nn\n" + "".join(blocks) + NET.format(name=name.title(), lower=name, blocks=made)


def write(folder: Path, lines: int = 6000) -> Path:
    """Write the project into a folder; gives its entry."""
    for name, text in files(lines).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "train.py"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=6000)
    arguments = parser.parse_args()
    print(write(arguments.folder, arguments.lines))
