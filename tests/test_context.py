"""What rules are told of a script: all of it is about one run of the interpreter."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

from ddpify.options import Options
from ddpify.plan import _context
from ddpify.project import of_source
from ddpify.rules.base import Change
from ddpify.rules.context import Context
from ddpify.rules.data.prepare import preparation
from ddpify.rules.io.guarded import guards_of
from ddpify.source import from_text

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    total = 0.0
    for a, b in loader:
        loss = ((model(a) - b) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if total > 100:
        print("far away")
"""


@pytest.fixture
def context() -> Context:
    return _context(of_source(from_text(SCRIPT), Path("train.py"), "train.py"), Options())


def agreement(context: Context) -> Change:
    """A change that makes all ranks take the branch after the batch loop alike."""
    (node,) = context.tree.of(ast.If)
    return Change("DDP405", "", "train.py", node, (), replicated_branches=(node,))


def test_what_ranks_agree_on_makes_another_context(context: Context) -> None:
    later = context.after_changes([agreement(context)])
    assert later is not context
    assert later.facts.after is not context.facts.after
    assert later.assumed.replicated_branches and not context.assumed.replicated_branches


def test_what_was_known_of_a_run_does_not_outlive_it(context: Context) -> None:
    before = guards_of(context)
    later = context.after_changes([agreement(context)])
    assert before.run is context.facts.after
    assert guards_of(later).run is later.facts.after
    assert guards_of(context) is before
    assert guards_of(later).effects is not before.effects
    assert preparation(later) is not preparation(context)


def test_an_answer_is_found_once_for_each_context(context: Context) -> None:
    asked: list[Context] = []

    def answer(of: Context) -> int:
        asked.append(of)
        return len(asked)

    later = context.after_changes([agreement(context)])
    assert [context.once(answer), context.once(answer), later.once(answer), later.once(answer)] == [1, 1, 2, 2]
    assert asked == [context, later]


def test_a_context_is_never_changed(context: Context) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.distributed = True  # type: ignore[misc]
