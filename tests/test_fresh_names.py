"""The names that emitted code takes: one for each thing, none that the script or the runtime block has."""

from __future__ import annotations

import ast
import re

import pytest

from ddpify import convert
from ddpify.apply.names import chosen
from ddpify.edits import FreshName, InsertBefore, Replace
from ddpify.rules.base import Change

MODULE = ast.parse("a = make()\nb = make()\n\n\ndef first():\n    pass\n\n\ndef second():\n    pass\n")
A, B, FIRST, SECOND = MODULE.body


def change(name: FreshName, *others: FreshName) -> Change:
    edits = [InsertBefore(A, f"{n} = {n}_of({n})", binds=(n,)) for n in (name, *others)]
    return Change("DDP301", "", "train.py", A, (*edits, Replace(A.value, f"f({name})")))


def texts(*changes: Change, bound: frozenset[str] = frozenset()) -> list[str]:
    return [getattr(edit, "code", getattr(edit, "template", "")) for c in chosen(changes, bound) for edit in c.edits]


def test_the_first_that_is_wished_for() -> None:
    assert texts(change(FreshName(("data", "samples"), A))) == ["data = data_of(data)", "f(data)"]


def test_another_where_the_script_has_it() -> None:
    assert texts(change(FreshName(("data", "samples"), A)), bound=frozenset({"data"}))[1] == "f(samples)"


def test_none_that_must_be_avoided() -> None:
    assert texts(change(FreshName(("data",), A, avoid=frozenset({"data", "data2"}))))[1] == "f(data3)"


def test_none_that_an_import_of_the_changes_binds() -> None:
    one = change(FreshName(("os", "data"), A))
    other = Change("DDP501", "", "train.py", B, (), ("import os.path",))
    assert texts(one, other)[1] == "f(data)"


def test_what_is_introduced_twice_has_two_names() -> None:
    assert texts(change(FreshName(("data",), A)), change(FreshName(("data",), B)))[1::2] == ["f(data)", "f(data2)"]


def test_equal_ones_are_one_name() -> None:
    assert texts(change(FreshName(("data",), A)), change(FreshName(("data",), A)))[1::2] == ["f(data)", "f(data)"]


def test_two_functions_may_bind_one_name_and_the_module_none_of_theirs() -> None:
    names = [FreshName(("result",), A, FIRST), FreshName(("result",), A, SECOND), FreshName(("result",), B)]
    assert texts(*map(change, [names[0]]), change(names[1]), change(names[2]))[1::2] == ["f(result)", "f(result)", "f(result2)"]


def test_there_are_enough_for_any_number() -> None:
    nodes = [ast.parse("x").body[0] for _ in range(60)]
    found = texts(*(change(FreshName(("data",), node)) for node in nodes))[1::2]
    assert len(set(found)) == 60


SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
"""
LOADER = "loader_{0} = DataLoader(TensorDataset(x + {0}, y), batch_size=8, shuffle=True)\n"
LOOP = """\
    for a, b in loader_{0}:
        optimizer.zero_grad()
        criterion(model(a), b).backward()
        optimizer.step()
"""


def test_every_data_set_that_is_made_in_a_loader_gets_a_name_of_its_own() -> None:
    numbers = range(7)
    text = SCRIPT + "".join(map(LOADER.format, numbers)) + "for epoch in range(3):\n" + "".join(map(LOOP.format, numbers))
    done = convert(text)
    assert done.exit_code == 0, done.findings
    names = re.findall(r"^(\w+) = TensorDataset", done.code, re.M)
    assert len(set(names)) == 7
    assert re.findall(r"DistributedSampler\((\w+)\)", done.code) == names
    assert "__fresh" not in done.code


def test_a_line_of_output_that_calls_its_value_rank_does_not_take_the_rank() -> None:
    best = "def best(model):\n    model.eval()\n    return int(model(x).argmax(1).sum())\n\n\n"
    said = '    print(f"rank {best(model)}")\n'
    code = convert(SCRIPT + LOADER.format(0) + best + "for epoch in range(3):\n" + LOOP.format(0) + said).code
    assert '    result = best(model.module)\n    if rank == 0:\n        print(f"rank {result}")\n' in code


@pytest.mark.parametrize(
    "binding",
    [
        "try:\n    import nothing\nexcept ImportError as {name}:\n    print({name})",
        "match [1, 2]:\n    case [first, *{name}]:\n        print({name})",
        "match 3:\n    case int() as {name}:\n        print({name})",
        "match {{'a': 1}}:\n    case {{'a': 1, **{name}}}:\n        print({name})",
    ],
)
@pytest.mark.parametrize("name", ["rank", "world_size"])
def test_none_that_the_script_binds_without_an_assignment(binding: str, name: str) -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n"
        + binding.format(name=name)
        + "\nloader = DataLoader(TensorDataset(torch.randn(48, 8)), batch_size=6, shuffle=True)\n"
        "net = torch.nn.Linear(8, 1)\nsgd = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for epoch in range(2):\n    for (rows,) in loader:\n        loss = net(rows).mean()\n"
        "        sgd.zero_grad()\n        loss.backward()\n        sgd.step()\n"
    )
    converted = convert(text)
    assert converted.exit_code == 0
    emitted = [n.id for n in ast.walk(ast.parse(converted.code)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    assert name not in emitted
