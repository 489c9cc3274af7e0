"""A plan and a rewrite with known outcomes, so that what surrounds them can be tested alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection
from types import ModuleType

from ddpify.records import dataclass, replace
from ddpify.rules.base import Change, Finding, Safety

SCRIPT = "import torch\nbatch = 32  # per process\nprint(batch)\n"
CONVERTED = "import torch\nbatch = 16  # per process\nprint(batch)\n"


@dataclass(frozen=True)
class FakePlan:
    status: str = "convert"
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    command: str = "torchrun --nproc-per-node 2 {script}"
    reason: str = ""
    added: None = None
    install: str = ""
    bound: frozenset[str] = frozenset()

    def without(self, ids: Collection[str]) -> FakePlan:
        return replace(self, changes=tuple(c for c in self.changes if c.id not in ids))


def finding(level: Safety = Safety.MANUAL, line: int = 1, fix: str = "", file: str = "train.py") -> Finding:
    return Finding("DDP301", level, f"a {level.name.lower()} thing", file, line, 3, fix)


def halve_batch(project, level: Safety = Safety.SAFE) -> Change:
    """The change of `SCRIPT` into `CONVERTED`."""
    node = next(node for node in project.entry.tree.body if isinstance(node, ast.Assign))
    return Change("DDP303", "each rank loads its part of the batch", project.entry.shown, node, (), level=level)


def apply_halving(text, tree, changes, known=None):
    return (text.replace("32", "16") if changes else text), ()


def install(monkeypatch, make_plan=None, rewrite=apply_halving, check=lambda project, plan: ()) -> None:
    """Let `convert` find these in place of the plan and the rewrite."""
    plan, apply = ModuleType("ddpify.plan"), ModuleType("ddpify.apply.rewrite")
    made = make_plan or (lambda project, options: FakePlan(changes=(halve_batch(project),)))
    plan.make_plan = lambda project, options, marks=(), unfinished=False: made(project, options)
    plan.check = check
    plan.first = lambda project, options: None
    apply.rewrite = lambda text, tree, changes, known: rewrite(text, tree, changes)
    apply.Rewritten = object
    monkeypatch.setitem(sys.modules, "ddpify.plan", plan)
    monkeypatch.setitem(sys.modules, "ddpify.apply.rewrite", apply)
