"""Blocks that one rank runs ahead of the others: their context manager holds the others at a barrier."""

from __future__ import annotations

import ast

from ddpify.facts.model import Func, Method
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, walk

BARRIERS = frozenset(("torch.distributed.barrier", "torch.distributed.monitored_barrier"))
_FIRST = frozenset(("main_process_first", "local_main_process_first"))  # of accelerate and of transformers


def one_rank_ahead(run: Run, tree: Tree, node: ast.AST) -> bool:
    """Whether a place stands in a block that one rank runs before the others."""
    blocks = (up for up in tree.ancestors(node) if isinstance(up, (ast.With, ast.AsyncWith)))
    return any(waits(run, item.context_expr) for block in blocks for item in block.items)


def waits(run: Run, manager: ast.expr) -> bool:
    """Whether entering or leaving a context manager runs a barrier."""
    if isinstance(manager, ast.Call):
        called = run.value(manager.func).objs
        if any(isinstance(o, Method) and o.name in _FIRST for o in called) or any(_runs_barrier(run, o) for o in called):
            return True
    methods = [f for o in run.value(manager).objs for name in ("__enter__", "__exit__") for f in run.methods(o, name)]
    return any(_runs_barrier(run, f) for f in methods)


def _runs_barrier(run: Run, obj: object) -> bool:
    calls = (n for n in walk(obj.node) if isinstance(n, ast.Call)) if isinstance(obj, Func) else ()
    return any(run.value(n.func).paths() & BARRIERS for n in calls)
