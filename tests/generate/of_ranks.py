"""Scripts of one process that know of ranks: what they do where there are several, by flags and by functions that ask."""

from __future__ import annotations

import random

from .compose import Generated

_FLAGS = {  # how a script says that there are several ranks, that it is the first one, which one it is, and how many there are
    "an option -1": ("args.local_rank != -1", "args.local_rank in [-1, 0]", "max(args.local_rank, 0)", "1"),
    "an option 0": ("args.local_rank > 0", "args.local_rank == 0", "args.local_rank", "1"),
    "a flag": ("args.distributed", "not args.distributed", "0", "1"),
    "the world of the environment": ("world_size > 1", "rank == 0", "rank", "world_size"),
    "the rank of the environment": ("local_rank != -1", "local_rank in (-1, 0)", "max(local_rank, 0)", "1"),
    "options": ("args.world_size > 1", "args.rank == 0", "args.rank", "args.world_size"),
    "functions": ("is_joined()", "is_first()", "get_rank()", "get_world_size()"),
}
_SAID = {
    "an option -1": 'parser.add_argument("--local_rank", type=int, default=-1)\n',
    "an option 0": 'parser.add_argument("--local_rank", type=int, default=0)\n',
    "a flag": 'parser.add_argument("--distributed", action="store_true")\n',
    "options": 'parser.add_argument("--world_size", type=int, default=1)\nparser.add_argument("--rank", type=int, default=0)\n',
}
_READ = {
    "the world of the environment": 'world_size, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))\n',
    "the rank of the environment": 'local_rank = int(os.environ.get("LOCAL_RANK", -1))\n',
}
_SAMPLERS = (
    "loader = DataLoader(train_set, batch_size={size}, shuffle=True)\n",
    "sampler = DistributedSampler(train_set) if {several} else None\n"
    "loader = DataLoader(train_set, batch_size={size}, shuffle=sampler is None, sampler=sampler)\n",
    "sampler = DistributedSampler(train_set) if {several} else RandomSampler(train_set)\n"
    "loader = DataLoader(train_set, batch_size={size}, sampler=sampler)\n",
    "if {several}:\n    sampler = DistributedSampler(train_set)\nelse:\n    sampler = RandomSampler(train_set)\n"
    "loader = DataLoader(train_set, batch_size={size}, sampler=sampler)\n",
    "if {several}:\n    loader = DataLoader(train_set, batch_size={size}, sampler=DistributedSampler(train_set))\n"
    "else:\n    loader = DataLoader(train_set, batch_size={size}, shuffle=True)\n",
)
_SIZES = (
    "args.batch_size",
    "args.batch_size",
    "args.batch_size // {world}",
    "args.batch_size // {world} if {several} else args.batch_size",
)
_CHECKS = (
    "",
    "check = DataLoader(val_set, batch_size=8)\n",
    "check = DataLoader(val_set, 8, sampler=DistributedSampler(val_set, shuffle=False) if {several} else SequentialSampler(val_set))\n",
)
_EPOCHS = (
    "",
    "    if {several}:\n        loader.sampler.set_epoch(epoch)\n",
    "    if isinstance(loader.sampler, DistributedSampler):\n        loader.sampler.set_epoch(epoch)\n",
    '    if hasattr(loader.sampler, "set_epoch"):\n        loader.sampler.set_epoch(epoch)\n',
)
_ADDED = ("loss.item()", "reduced(loss.detach()).item()")
_AFTER = (
    '    if {first}:\n        print(f"{{epoch}} {{total:.5f}}")\n',
    '    if {first}:\n        torch.save({{"net": net.state_dict(), "total": total}}, f"net_{{epoch}}.pt")\n',
    '    with open("log.txt", "a") as file:\n        if {first}:\n            file.write(f"{{epoch}} {{total:.5f}}\\n")\n',
    "    if {first}:\n        with torch.no_grad():\n            print(sum((net(a).argmax(1) == b).sum().item() for a, b in check))\n",
)
_RATES = ("args.lr", "args.lr", "args.lr", "args.lr * {world}")
_SEEDS = ("0", "0", "0", "{rank}")
_SCRIPT = """\
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.1)
{said}args = parser.parse_args()
{environment}

def is_joined():
    return dist.is_available() and dist.is_initialized()


def get_world_size():
    return dist.get_world_size() if is_joined() else 1


def get_rank():
    if not is_joined():
        return 0
    return dist.get_rank()


def is_first():
    return get_rank() == 0


def reduced(value):
    if not ({several}):
        return value
    value = value.clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


torch.manual_seed({seed})
x, y = torch.randn(48, 6), torch.randint(0, 3, (48,))
train_set, val_set = TensorDataset(x, y), TensorDataset(x[:24] * 0.5, y[:24])
{loader}{check}net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
optimizer = torch.optim.SGD(net.parameters(), lr={rate})
for epoch in range(3):
{epoch}    total = 0.0
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += {added}
    total = total / len(loader)
{after}"""


def of_ranks(seed: int) -> Generated:
    """The script of a seed."""
    rng = random.Random(seed)
    flag = rng.choice(list(_FLAGS))
    several, first, rank, world = _FLAGS[flag]
    names = {"several": several, "first": first, "rank": rank, "world": world}
    parts = {name: rng.choice(of) for name, of in zip(_PARTS, _OF, strict=True)}
    after = rng.choice(_AFTER if parts["check"] else _AFTER[:-1]).format(**names)
    given = {name: text.format(**names, size=parts["size"].format(**names)) for name, text in parts.items()}
    said = {"said": _SAID.get(flag, ""), "environment": _READ.get(flag, "")}
    features = (f"says so: {flag}", *(f"{name}: {text}" for name, text in parts.items()))
    return Generated(seed, _SCRIPT.format(**names, **given, **said, after=after), features)


_PARTS = ("size", "loader", "check", "epoch", "added", "rate", "seed")
_OF = (_SIZES, _SAMPLERS, _CHECKS, _EPOCHS, _ADDED, _RATES, _SEEDS)
