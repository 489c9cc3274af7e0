"""Rows of a training batch that are read by a number which is written out: a rank's part of the batch may have fewer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import Lit
from ddpify.facts.tree import Tree
from ddpify.placement.values import is_rows
from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.data.sizes import CODE, Sizes

_FEW, _MANY = 2, 8  # ranks: as many as there are at least, and as one machine has as a rule
_ROWS = 4  # that each rank has of a batch whose size nobody knows
_WHY = "every rank has only its part of a batch, which may not have the row of this number"
_OF_MANY = "with more ranks, a part of a batch has no row of this number"
_FIX = "read no more rows than there are: for i in range(min(n, len(batch)))"


def findings(context: Context, sizes: Sizes) -> Iterator[Finding]:
    """What reads a row that a rank may not have."""
    run = context.facts.after
    written = [o.value for o in sizes.numbers if isinstance(o, Lit) and type(o.value) is int]
    few, many = (max(min(written) // ranks, 1) if written else None for ranks in (_FEW, _MANY))
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Subscript):
            rows = run.value(node.value)
            tensor = rows.shape is not None and rows.shape.several is False
            if isinstance(node.ctx, ast.Load) and tensor and is_rows(rows) and context.from_sharded_data(rows):
                index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
                number = _largest(context, tree, index)
                if number is not None and few is not None and number >= few:
                    yield context.manual(CODE, node, _WHY, _FIX)
                elif number is not None and number >= (many or _ROWS):
                    yield context.manual(CODE, node, _OF_MANY, level=Safety.NOTE)


def _largest(context: Context, tree: Tree, index: ast.expr) -> int | None:
    """The largest number that an index is, of those that are written out: itself, or those of a loop; None where that is not known."""
    if isinstance(index, ast.BinOp) and isinstance(index.op, (ast.Add, ast.Mult)):
        left, right = (_largest(context, tree, side) for side in (index.left, index.right))
        if left is None or right is None:
            return None
        return left + right if isinstance(index.op, ast.Add) else left * right
    value = context.facts.after.value(index)
    numbers = [o.value for o in value.objs if isinstance(o, Lit) and type(o.value) is int]
    if numbers and len(numbers) == len(value.objs):
        return max(n if n >= 0 else -n - 1 for n in numbers)
    return _last_of_loop(context, tree, index) if isinstance(index, ast.Name) else None


def _last_of_loop(context: Context, tree: Tree, name: ast.Name) -> int | None:
    """The last number of the innermost `for name in range(...)` around a name, whose bounds are written out."""
    run = context.facts.after
    for up in tree.ancestors(name):
        loops = getattr(up, "generators", []) if not isinstance(up, ast.For) else [up]
        for loop in loops:
            if not isinstance(loop.target, ast.Name) or loop.target.id != name.id:
                continue
            if not isinstance(loop.iter, ast.Call) or run.value(loop.iter.func).paths() != {"range"}:
                return None
            bounds = [run.value(a).objs for a in loop.iter.args]
            numbers = [o.value for objs in bounds for o in objs if isinstance(o, Lit) and type(o.value) is int]
            if len(numbers) < len(bounds) or any(len(objs) != 1 for objs in bounds):
                return None
            return max(range(*numbers), default=None)
    return None
