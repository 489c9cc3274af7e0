"""A call that is repeated leaves the same run behind as one that is interpreted, and is interpreted where what it reads has changed."""

from pathlib import Path

import pytest

from ddpify.facts.interpret import definitions
from ddpify.facts.interpret.machine import Machine
from ddpify.facts.interpret.state import Frame, Interpreter
from ddpify.facts.model import Lit, New, Value
from ddpify.project import Project, load, of_source
from ddpify.source import from_text

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*/train.py"))
HOOKS = """
import torch
from torch import nn

class Scaled:
    def __init__(self, name):
        self.name = name
        self.uses = 0
    def __call__(self, module, inputs):
        self.uses += 1
        setattr(module, self.name, getattr(module, self.name + "_plain") * 2)

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.inner.weight_plain = self.inner.weight
        self.inner.register_forward_pre_hook(Scaled("weight"))
        self.seen = None
    def forward(self, x):
        if self.seen is None:
            self.seen = [x]
        parts = [part for part in (x, self.inner(x))]
        return parts[1] + self.seen[0]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(8) for _ in range(3)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def run(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        total += loss.item()
        if loss > 3:
            continue
        loss.backward()
        optimizer.step()
    return total

data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 8))
loader = torch.utils.data.DataLoader(data, batch_size=4)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    print(run(model, loader, optimizer), run(model, loader, optimizer))
"""

ALIASES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.seen = torch.zeros(4, 8)
        self.first = torch.zeros(8)
    def forward(self, x):
        rows = x
        self.seen = rows
        self.first = rows[0]
        return self.inner(x)

data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 8))
net = Net()
for x, y in torch.utils.data.DataLoader(data, batch_size=4):
    net(x)
net.seen = torch.zeros(4, 8)
for x, y in torch.utils.data.DataLoader(data, batch_size=4):
    net(x)
    x.add_(y.mean())
    print(net.seen, net.first)
"""


def of(text: str) -> Project:
    return of_source(from_text(text), None, "<string>")


def wherever(seen: object) -> object:
    """What was seen, but for where lists were made: those of a forward are the same ones wherever it is called from."""
    if isinstance(seen, New) and seen.path == "list":
        return seen.path, seen.node
    if isinstance(seen, Value):
        return frozenset(map(wherever, seen.objs)), seen.origins, seen.scale, seen.shape
    if isinstance(seen, (list, tuple)):
        return tuple(map(wherever, seen))
    return {wherever(k): wherever(v) for k, v in seen.items()} if isinstance(seen, dict) else seen


def left_behind(run: Interpreter) -> dict[str, object]:
    """All that a run has recorded."""
    calls = {
        key: (c.order, c.last, c.func, c.args, c.keywords, c.receiver, c.result, c.now, c.no_grad, [loop.node for loop in c.loops])
        for key, c in run.calls.items()
    }
    stores = {key: (s.order, s.receiver, s.value, [loop.node for loop in s.loops]) for key, s in run.stores.items()}
    record = run.record
    return {
        "values": wherever(run.trace.values),
        "visited": run.trace.visited,
        "calls": wherever(calls),
        "stores": wherever(stores),
        "decisions": [(d.node, d.stack, d.test) for d in run.trace.decisions],
        "memory": wherever(dict(run.memory)),
        "events": wherever(record.events),
        "points": (record.starts, record.before, record.extents, record.calls, record.again),
        "aliases": {holder: run.aliases.of(holder) for holder in run.aliases.together if not isinstance(holder[0], Frame)},
        "rest": (run.keys, run.hooks, run.order, run.trace.views),
    }


def runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[Interpreter]:
    """Three runs over a project: one that repeats nothing, one that repeats its own calls, one that repeats those of the one before."""
    out = []
    with monkeypatch.context() as patched:
        patched.setattr(definitions, "find", lambda *_: None)
        out.append(Machine(project))
        out[0].run()
    project.memo.clear()
    for _ in range(2):
        out.append(Machine(project))
        out[-1].run()
    return out


@pytest.mark.parametrize("source", [*EXAMPLES, HOOKS, ALIASES], ids=[*(p.parent.name for p in EXAMPLES), "hooks", "aliases"])
def test_a_run_that_repeats_calls_records_what_one_that_does_not_records(source: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    project = load(source) if isinstance(source, Path) else of(source)
    plain, own, again = runs(project, monkeypatch)
    expected = left_behind(plain)
    for other in (own, again):
        assert {name: held == expected[name] for name, held in left_behind(other).items()} == dict.fromkeys(expected, True)
    assert again.spent < own.spent <= plain.spent


CHANGING = {
    "a global": (
        "value = 1\ndef read():\n    return value\nfor _ in range(3):\n    out = read()\n    value = 2\n",
        {1, 2},
    ),
    "an attribute": (
        "class Box:\n"
        "    pass\n"
        "box = Box()\n"
        "box.held = 1\n"
        "def read():\n"
        "    return box.held\n"
        "for _ in range(3):\n"
        "    out = read()\n"
        "    box.held = 2\n",
        {1, 2},
    ),
    "an element": (
        "held = [1]\ndef read():\n    return held[0]\nfor _ in range(3):\n    out = read()\n    held[0] = 2\n",
        {1, 2},
    ),
    "a name of the function around": (
        "def outer():\n"
        "    value = 1\n"
        "    def read():\n"
        "        return value\n"
        "    for _ in range(3):\n"
        "        out = read()\n"
        "        value = 2\n"
        "    return out\n"
        "out = outer()\n",
        {1, 2},
    ),
    "what a function inside reads": (
        "value = 1\ndef inner():\n    return value\ndef read():\n    return inner()\nfor _ in range(3):\n    out = read()\n    value = 2\n",
        {1, 2},
    ),
    "what it has written itself": (
        "class Box:\n"
        "    held = 1\n"
        "box = Box()\n"
        "def read():\n"
        "    before = box.held\n"
        "    box.held = 2\n"
        "    return before\n"
        "for _ in range(3):\n"
        "    out = read()\n",
        {2},
    ),
    "what one branch has written": (
        "import sys\n"
        "class Box:\n"
        "    held = 1\n"
        "box = Box()\n"
        "box.held = 1\n"
        "def read():\n"
        "    if sys.argv:\n"
        "        box.held = 2\n"
        "    return box.held\n"
        "for _ in range(3):\n"
        "    out = read()\n"
        "    box.held = 3\n",
        {1, 2, 3},
    ),
    "what is known of a setting": (
        "import argparse\n"
        "from torch import nn\n"
        "class First:\n"
        "    value = 1\n"
        "class Second:\n"
        "    value = 2\n"
        "class Net(nn.Module):\n"
        "    def forward(self):\n"
        "        return held.value\n"
        "net, args = Net(), argparse.ArgumentParser().parse_args()\n"
        'if args.kind == "first":\n'
        "    held = First()\n"
        "else:\n"
        "    held = Second()\n"
        "for _ in range(3):\n"
        "    out = 2\n"
        '    if args.kind == "first":\n'
        "        net()\n"
        "    else:\n"
        "        out = net()\n",
        {2},
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_call_is_interpreted_anew_where_what_it_reads_has_changed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = CHANGING[name]
    plain, *others = runs(of(text), monkeypatch)
    for run in (plain, *others):
        seen = run.memory["__main__", "out"].objs
        assert {o.value for o in seen if isinstance(o, Lit)} == expected
    assert left_behind(others[0])["values"] == left_behind(plain)["values"]


IN_BRANCHES = """
import argparse
import torch
from torch import nn

class Inner(nn.Module):
    def forward(self, x):
        return x * 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x) + 1

args = argparse.ArgumentParser().parse_args()
net, x = Net(), torch.ones(2)
for _ in range(2):
    if args.half:
        out = net(x)
    elif args.double:
        out = net(x)
    else:
        out = net(x)
"""


def test_a_forward_is_interpreted_once_under_all_settings_that_make_no_difference_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run_body = definitions.run_body
    monkeypatch.setattr(definitions, "run_body", lambda run, func, frame: (ran.append(func.cls.node.name), run_body(run, func, frame))[1])
    Machine(of(IN_BRANCHES)).run()
    assert [name for name in ran if name == "Inner"] == ["Inner"]
