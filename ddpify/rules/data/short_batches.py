"""Batches that training leaves out because they are short: then no sample is repeated to fill one, or it would train."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import Lit, New, Obj
from ddpify.facts.tree import Tree, inside
from ddpify.rules.context import Context

_LESS, _MORE = (ast.Lt,), (ast.Gt,)


def are_left_out(context: Context, loader: New) -> bool:
    """Whether training goes on without those batches of a loader that have fewer samples than its batch size."""
    size = context.facts.after.attribute(loader, "batch_size").objs
    return any(loader in loaders and (other & size or _equal(other, size)) for loaders, other in context.once(_skipping))


def _equal(one: frozenset[Obj], other: frozenset[Obj]) -> bool:
    """Whether two numbers are written out, and equal."""
    written = [{o.value for o in objs if isinstance(o, Lit)} for objs in (one, other)]
    return len(one) == len(other) == 1 and written[0] == written[1] != set()


def _skipping(context: Context) -> list[tuple[frozenset[New], frozenset[Obj]]]:
    """The loaders whose batches are left out where their length is not some number, and what that number may be."""
    return [found for tree in context.facts.trees.values() for node in tree.of(ast.Compare) for found in _skipped(context, tree, node)]


def _skipped(context: Context, tree: Tree, node: ast.AST) -> Iterator[tuple[frozenset[New], frozenset[Obj]]]:
    value = context.facts.after.value
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    for length, size, less in ((node.left, node.comparators[0], _LESS), (node.comparators[0], node.left, _MORE)):
        short = isinstance(node.ops[0], (ast.NotEq, ast.IsNot, *less))
        if value(length).scale == "count" and (short or isinstance(node.ops[0], (ast.Eq, ast.Is))) and _decides(context, tree, node, short):
            yield value(length).batches(), value(size).objs


def _decides(context: Context, tree: Tree, test: ast.expr, short: bool) -> bool:
    """Whether nothing trains on a batch where a test says that it is `short`, or does not say that it is whole."""
    up = tree.parent[test]
    if isinstance(up, ast.BoolOp) and isinstance(up.op, ast.Or if short else ast.And):
        test, up = up, tree.parent[up]
    if not isinstance(up, ast.If) or up.test is not test:
        return False
    last = up.body[-1]
    if short:
        return isinstance(last, (ast.Continue, ast.Break)) or (isinstance(last, ast.Return) and last.value is None)
    within = inside(up)
    return not up.orelse and any(n in within for loop in context.facts.loops for n in (loop.backward.node, *loop.backward.stack))
