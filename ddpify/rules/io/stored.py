"""The numbers of a training step that a file keeps, such as the loss in a checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import Call
from ddpify.rules.context import Context
from ddpify.rules.loop.numbers import own_parts

_STORES = frozenset(("torch.save", "pickle.dump", "joblib.dump", "json.dump", "yaml.dump", "yaml.safe_dump"))


def found(context: Context) -> tuple[dict[ast.expr, str], list[ast.expr]]:
    """The averages over a rank's own batch that are stored while it trains, with what makes them those of all ranks; and what is left."""
    names, run = context.names, context.facts.after
    averaged: dict[ast.expr, str] = {}
    left: list[ast.expr] = []
    for node in dict.fromkeys(n for call in run.trace.calls if call.func.paths() & _STORES for n in _given(context, call)):
        parts = own_parts(context, node)
        if parts is not None and all(run.value(p).scale == "mean" for p in parts) and not _alone(context, node):
            averaged |= {p: f"{names['sum_over_ranks']}({{0}}) / {names['world_size']}" for p in parts}
        elif run.value(node).scale in ("mean", "sum", "count", "total"):
            left.append(node)
    return averaged, left


def _given(context: Context, call: Call) -> Iterator[ast.expr]:
    """The numbers of a rank's own that a call inside the training loop hands to what stores them."""
    loops = {t.batch.node for t in context.facts.loops if t.batch is not None}
    for frame in (*call.stack, call.node):
        if not isinstance(frame, ast.Call) or not loops.intersection(context.facts.tree_of(frame).ancestors(frame)):
            continue
        for given in (*frame.args, *(k.value for k in frame.keywords)):
            yield from _numbers(context, given)
        return


def _numbers(context: Context, node: ast.expr) -> Iterator[ast.expr]:
    """The values inside a display; what is no display is one itself."""
    if isinstance(node, ast.Dict):
        inner = [v for v in node.values if v is not None]
    elif isinstance(node, (ast.List, ast.Tuple)):
        inner = node.elts
    else:
        inner = []
        if context.shared(context.facts.after.value(node)):
            yield node
    for part in inner:
        yield from _numbers(context, part)


def _alone(context: Context, node: ast.expr) -> bool:
    """Whether a place is one that not all ranks come to."""
    tests = [up.test for up in context.facts.tree_of(node).ancestors(node) if isinstance(up, (ast.If, ast.While, ast.IfExp))]
    return any(context.local(context.facts.after.value(t)) and t not in context.agreed for t in tests)
