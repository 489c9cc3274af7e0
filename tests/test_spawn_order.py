"""Under mp.spawn, statements that change what others read keep their order, in whichever process they then run."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from test_systems import run

import ddpify
from ddpify import Options
from ddpify.launchers.dependence import Dependence
from ddpify.launchers.pure import Purity

HEAD = """\
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()
sizes = {"small": 4, "large": 8}
"""
MAIN = """

def main():
    args = parser.parse_args()
    feed = DataLoader(TensorDataset(x, y), batch_size=4)
    net = nn.Sequential(nn.Linear(8, sizes[args.arch]), nn.Tanh(), nn.Linear(sizes[args.arch], 2))
    for p in net.parameters():
        nn.init.constant_(p, 0.1)
    nn.init.eye_(net[0].weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        total = 0.0
        for rows, labels in feed:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(rows), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch} of {args.arch}: {total / len(feed.dataset):.5f}")


if __name__ == "__main__":
    main()
"""
SCRIPTS = {
    "choices that are computed": """
        names = sorted(name for name in sizes if name.islower() and callable(sizes.get))
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--arch", default="small", choices=names)
        """,
    "choices that a function tells, which does more": """
        def known():
            with open("asked.txt", "a") as file:
                file.write("x")
            return sorted(sizes)


        names = known()
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--arch", default="small", choices=names)
        """,
    "arguments that a function adds, which does more": """
        def add(parser):
            torch.manual_seed(len(sizes))
            parser.add_argument("--arch", default="small", choices=sorted(sizes))


        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=2)
        add(parser)
        """,
    "a variable of a comprehension that a loop binds, too": """
        numbers = {name: i for i, name in enumerate(sizes)}
        for i, name in enumerate(numbers):
            sizes[name] = 4 * (i + 1)
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--arch", default="small", choices=sorted(numbers))
        """,
    "arguments that are copied before the training": """
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--arch", default="small")
        args = parser.parse_args()
        state = {k: v for k, v in args._get_kwargs()}
        assert state["arch"] in sizes
        if len(state) > 1:
            parser = parser
        """,
    "a default that is changed below what reads it": """
        settings = {"epochs": 2}
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=settings["epochs"])
        settings["epochs"] = torch.ones(2, 3).numel()
        parser.add_argument("--arch", default="small" if settings["epochs"] == 6 else "large")
        """,
}

LOOSE = """
try:
    import random
    from collections import OrderedDict
except ImportError:
    raise

if len(x) > 8:
    feed = DataLoader(TensorDataset(x, y), batch_size=4)
net = nn.Linear(8, 2)
nn.init.constant_(net.weight, 0.1)
nn.init.constant_(net.bias, 0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    total = 0.0
    for rows, labels in feed:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(rows), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
        width = rows.shape[1]
    print(f"epoch {epoch} {width}: {total / len(feed.dataset):.5f}")
"""
WHOLE = {title: HEAD + textwrap.dedent(text) + MAIN for title, text in SCRIPTS.items()} | {
    "names that some paths bind": HEAD + LOOSE,
    "imports in a try": "try:\n"
    + textwrap.indent(HEAD[: HEAD.index("\nx = ")], "    ")
    + "\nexcept ImportError:\n    raise\n"
    + HEAD[HEAD.index("\nx = ") :]
    + LOOSE,
}


@pytest.mark.parametrize("title", WHOLE)
def test_the_ranks_do_what_the_one_process_did(title: str, tmp_path: Path) -> None:
    text = WHOLE[title]
    done = ddpify.convert(text, Options("spawn"))
    assert (done.exit_code, "mp.spawn(" in done.code) == (0, True), [f.message for f in done.findings]
    outputs = []
    for name, script in (("one", text), ("two", done.code)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(script)
        outputs.append(run(tmp_path / name / "train.py", WORLD_SIZE="2"))
    single, spawned = outputs
    assert (single.returncode, spawned.returncode) == (0, 0), single.stderr + spawned.stderr
    assert len(single.stdout.splitlines()) == 2
    assert spawned.stdout == single.stdout


CHANGED = {
    "a name": ("a = 1", {"a"}),
    "an item": ("a['x'] = b", {"a"}),
    "an attribute of an item": ("a[0].lr = b", {"a"}),
    "by a method": ("a.append(b)", {"a"}),
    "by a method of what a method gives": ("a.group().add(b)", {"a", "b"}),
    "by a function that is not known": ("fill(a, *b)", {"a", "b"}),
    "not by a builtin": ("print(a, len(b))", set()),
    "not by torch": ("torch.save(a, 'b')", set()),
    "but by a shuffle": ("random.shuffle(a)", {"a"}),
    "not a module": ("torch.backends.cudnn.benchmark = True", set()),
    "by a global of what is called": ("work()", {"a"}),
    "through what is called": ("indirect()", {"a"}),
    "not a local of what is called": ("inner()", set()),
}
CONTEXT = """\
import random
import torch
from elsewhere import fill
def work():
    global a
    a = 1
def indirect():
    work()
def inner():
    c = []
    c.append(1)
"""


@pytest.mark.parametrize("title", CHANGED)
def test_what_a_statement_may_change(title: str) -> None:
    statement, names = CHANGED[title]
    tree = ast.parse(f"{CONTEXT}{statement}\n")
    assert Dependence(tree, Purity(tree)).changes(tree.body[-1:]) == names


def test_what_a_statement_reads_is_what_its_functions_read_too() -> None:
    tree = ast.parse("def f(p):\n    return p + g()\ndef g():\n    return h\nf(a)\n")
    assert Dependence(tree, Purity(tree)).reads(tree.body[-1:]) == {"f", "a", "g", "h"}
