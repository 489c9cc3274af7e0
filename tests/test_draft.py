"""`convert --draft`: the whole conversion with a comment above what is to be done by hand, and nothing of it twice."""

import ast
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from scripts import Script, converted, modules

import ddpify
from ddpify import Conversion, Options, draft

_MARK = "# ddpify: MANUAL "
_BLOCKED = {  # scripts of which nothing is changed without --draft, and others with something to do by hand
    "table_gradients": ("gradients asked for and set",),
    "table_weights": ("a hook on a parameter that draws",),
    "table_structures": ("one of too many networks",),
    "table_inside": ("the sizes of gradients that a hook sees, averaged",),
    "table_apex": ("bfloat16 without a scaler, to apex",),
}


def _drafted(script: Script, folder: Path) -> Conversion:
    """The draft of a script, written over it."""
    done = converted(replace(script, options=replace(script.options, draft=True)), folder)
    for name, text in {"train.py": done.code, **modules(done)}.items():
        (folder / name).write_text(text if isinstance(text, str) else text.decode())
    return done


@pytest.mark.parametrize(("table", "title"), [(table, title) for table, titles in _BLOCKED.items() for title in titles])
def test_a_draft_is_marked_once(tmp_path: Path, table: str, title: str) -> None:
    script = import_module(table).SCRIPTS[title]
    plain = converted(script, tmp_path)
    done = _drafted(script, tmp_path)
    texts = {"train.py": done.code, **modules(done)}
    by_hand = [f for f in done.findings if f.level.name == "MANUAL"]
    assert (plain.exit_code, done.exit_code) == (1, 1)
    assert done.changed
    marks = {line.strip() for text in texts.values() for line in str(text).splitlines() if line.strip().startswith(_MARK)}
    assert {mark.removeprefix(_MARK).partition(":")[0] for mark in marks} == {f.code for f in by_hand}
    for text in texts.values():
        ast.parse(text)
    again = ddpify.convert(tmp_path / "train.py", replace(script.options, draft=True))
    assert not again.changed
    assert again.exit_code == 1
    assert {f.code for f in again.findings if f.level.name == "MANUAL"} >= {f.code for f in by_hand}


def test_where_the_mark_stands_and_when_it_is_gone(tmp_path: Path) -> None:
    script = import_module("table_weights").SCRIPTS["a hook on a parameter that draws"]
    done = _drafted(script, tmp_path)
    lines = done.code.splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.strip().startswith(_MARK))
    assert lines[at].strip().startswith(f"{_MARK}DDP201: a hook on a parameter runs before gradients are averaged")
    assert "register_hook" in lines[at + 1]
    assert len(lines[at]) - len(lines[at].lstrip()) == len(lines[at + 1]) - len(lines[at + 1].lstrip())
    (tmp_path / "train.py").write_text("\n".join((*lines[:at], *lines[at + 1 :], "")))
    finished = ddpify.convert(tmp_path / "train.py")
    assert (finished.changed, finished.exit_code) == (False, 0)


def test_without_anything_to_do_by_hand_a_draft_is_the_conversion(tmp_path: Path) -> None:
    text = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)), 8):
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
"""
    assert ddpify.convert(text, Options(draft=True)).code == ddpify.convert(text).code


def test_what_nothing_is_known_of_is_left_as_it_is(tmp_path: Path) -> None:
    script = import_module("table_structures").SCRIPTS["a module of which nothing is known"]
    done = _drafted(script, tmp_path)
    assert (done.changed, done.exit_code) == (False, 1)


def test_an_elif_is_marked_above_its_if() -> None:
    text = "if a:\n    x\nelif b:\n    y\nelse:\n    if c: z\n"
    tree = ast.parse(text)
    found = [draft._statement(tree, line) for line in range(1, 8)]
    assert [statement and statement.lineno for statement in found] == [1, 2, 1, 4, 1, 6, 6]
