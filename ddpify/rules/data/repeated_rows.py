"""Rows that are one and the same for each sample of a batch: `[row for _ in range(batch_size)]`; a rank has fewer of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.tree import Tree, is_number, names_read, names_stored, walk
from ddpify.rules.base import Change
from ddpify.rules.context import Context

_LIBRARIES = ("torch.", "numpy.")


def repeats_one_row(context: Context, node: ast.AST) -> bool:
    """Whether a comprehension gives the same constant again and again, and what it gives is read by the training alone."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1 or not context.facts.is_edited(node):
        return False
    (loop,) = node.generators
    counters = {n.id for n in names_stored(loop.target)}
    if loop.ifs or not isinstance(loop.iter, ast.Call) or len(loop.iter.args) != 1 or counters & {n.id for n in names_read(node.elt)}:
        return False
    run = context.facts.after
    values = [run.value(n) for n in walk(node.elt) if isinstance(n, ast.expr)]
    if any(v.batches() or v.scale is not None or any(map(v.of_kind, ("random", "drawn", "time", "unknown", "index"))) for v in values):
        return False
    called = [run.value(n.func) for n in walk(node.elt) if isinstance(n, ast.Call)]
    if not all(v.paths() and all(p.startswith(_LIBRARIES) for p in v.paths()) for v in called):
        return False
    return all(_is_of_training(context, place) for place in _reads(context, node))


def divided(context: Context, node: ast.ListComp | ast.GeneratorExp, code: str) -> Change:
    """The change that gives a rank as many rows as it has samples."""
    (size,) = node.generators[0].iter.args  # type: ignore[attr-defined]
    edits, needs = context.divided(size)
    why = "this repeats a row for each sample of a batch: on a rank, for each sample of its part"
    return Change(code, why, context.facts.tree_of(node).shown, node, tuple(edits), needs=needs)


def _reads(context: Context, node: ast.expr) -> Iterator[ast.AST]:
    """Where what a comprehension gives is read: by the names of it, but for their first entries; else where it stands."""
    tree = context.facts.tree_of(node)
    statement = tree.statement(node)
    if not isinstance(statement, ast.Assign) or not all(isinstance(t, ast.Name) for t in statement.targets):
        yield node
        return
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    for other in context.facts.trees.values():
        for part in other.nodes():
            if (isinstance(part, ast.alias) and part.name in names) or (
                isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in names and not _takes_first(other, part)
            ):
                yield part


def _takes_first(tree: Tree, read: ast.Name) -> bool:
    up = tree.parent.get(read)
    return isinstance(up, ast.Subscript) and up.value is read and (is_number(up.slice, 0) or is_number(up.slice, -1))


def _is_of_training(context: Context, node: ast.AST) -> bool:
    """Whether a place is run by the loops of the training only."""
    loops, tree = context.facts.training_loops, context.facts.tree_of(node)
    if not loops.isdisjoint(tree.ancestors(node)):
        return True
    function = tree.function(node)
    calls = context.facts.after.calls_to(function)
    return bool(calls) and all(any(loop.node in loops for loop in c.loops) for c in calls)
