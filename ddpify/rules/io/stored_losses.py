"""The numbers of a training step that a file keeps, such as the loss in a checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Call
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context
from ddpify.rules.loop.sharded_parts import sharded_parts

_STORES = frozenset(("torch.save", "pickle.dump", "joblib.dump", "json.dump", "yaml.dump", "yaml.safe_dump"))


def stored_numbers(context: Context) -> tuple[dict[ast.expr, str], list[ast.expr]]:
    """The averages of a training step that files keep, with what makes them those of all ranks; and other numbers that they keep."""
    return context.once(_find_stored)


def _find_stored(context: Context) -> tuple[dict[ast.expr, str], list[ast.expr]]:
    """The averages over a rank's own batch that are stored while it trains, with what makes them those of all ranks; and the others."""
    names, run = context.names, context.facts.after
    averaged: dict[ast.expr, str] = {}
    others: list[ast.expr] = []
    for node in dict.fromkeys(n for call in run.trace.calls if call.func.paths() & _STORES for n in _stored_by(context, call)):
        parts = sharded_parts(context, node)
        if parts is not None and all(run.value(p).scale == "mean" for p in parts) and not _alone(context, node):
            averaged |= dict.fromkeys(parts, f"{names['sum_over_ranks']}({{0}}) / {names['world_size']}")
        elif run.value(node).scale in ("mean", "sum", "count", "total"):
            others.append(node)
    return averaged, others


def averaged(context: Context, lifted: Iterable[Change]) -> Iterator[Change | Finding]:
    """The averages in place, where nothing was taken out of the statement that stores them; and the others, which are to do."""
    means, others = stored_numbers(context)
    done = {e.node for change in lifted for e in change.edits if isinstance(e, Replace)}
    for node, template in means.items():
        if node not in done:
            why = "a file keeps this: it is averaged over the ranks, so that it is the value of the global batch"
            edits = (Replace(node, template, (node,)),)
            yield Change("DDP404", why, context.tree.shown, node, edits, needs=("sum_over_ranks",))
    for node in others:
        yield context.manual(
            "DDP404",
            node,
            "the file would hold a value of rank 0's part of the batch, not of the global batch",
            "sum or average it over the ranks first",
        )


def _stored_by(context: Context, call: Call) -> Iterator[ast.expr]:
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
        if context.from_sharded_data(context.facts.after.value(node)):
            yield node
        elif isinstance(node, ast.Name) and (display := _display(context, node)) is not None:
            inner = [display]
    for part in inner:
        yield from _numbers(context, part)


def _display(context: Context, name: ast.Name) -> ast.expr | None:
    """The display that a name holds where it is read, if it can be but one."""
    found = context.facts.after.definitions.reaching(name).definitions
    bound = context.facts.tree_of(name).parent.get(found[0]) if len(found) == 1 else None
    value = bound.value if isinstance(bound, ast.Assign) and len(bound.targets) == 1 else None
    return value if isinstance(value, (ast.Dict, ast.List, ast.Tuple)) else None


def _alone(context: Context, node: ast.expr) -> bool:
    """Whether a place is one that not all ranks come to."""
    tests = [up.test for up in context.facts.tree_of(node).ancestors(node) if isinstance(up, (ast.If, ast.While, ast.IfExp))]
    return any(context.differs(context.facts.after.value(t)) and t not in context.assumed.replicated_branches for t in tests)
