"""Batches that are windows of one long sequence, laid out in rows: `tokens[at : at + B * T].view(B, T)`.

Each row goes on where the one before it ends: of a batch that all ranks cut alike, a rank can take any of the rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.facts.batch_source import BatchSource
from ddpify.facts.manual_batches import measures, resolved
from ddpify.facts.tree import Tree, is_number, last_name, same

_MAKES = frozenset("tensor as_tensor from_numpy LongTensor array asarray".split())
_KEEPS = frozenset("to cuda long int astype clone copy contiguous numpy".split())


def windows(trees: Iterable[Tree]) -> dict[ast.AST, BatchSource]:
    """Where windows are laid out in rows, and how many rows there are."""
    found = (_laid_out(tree, node) for tree in trees for node in tree.of(ast.Call))
    return {each.node: each for each in found if each is not None}


def _laid_out(tree: Tree, node: ast.Call) -> BatchSource | None:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("view", "reshape"):
        return None
    sizes = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
    if len(sizes) != 2 or is_number(sizes[0], -1) or measures(sizes[0]):
        return None
    if isinstance(up := tree.parent.get(node), ast.Attribute) and up.attr in ("t", "T", "transpose"):  # columns are sequences side by side
        return None
    rows = sizes[0]
    known = [rows, resolved(tree, node, rows)]
    all_of_it = is_number(sizes[1], -1)  # `words[: n * B].view(B, -1)`: rows of the data, which are read through time
    bounds = (p.upper for p in _cuts(tree, node.func.value) if p.upper is not None and not (all_of_it and p.lower is None))
    return BatchSource("rows", node, known[-1]) if any(_is_multiple(tree, node, end, known) for end in bounds) else None


def _cuts(tree: Tree, node: ast.expr) -> Iterator[ast.Slice]:
    """The slices that an expression is taken through, from the last to the first."""
    for _ in range(8):
        node = resolved(tree, node, node)
        match node:
            case ast.Subscript(value=of, slice=ast.Slice() as part):
                yield part
                node = of
            case ast.Call(func=ast.Attribute(value=of, attr=name)) if name in _KEEPS:
                node = of
            case ast.Call(func=func, args=[of, *_]) if last_name(func) in _MAKES:
                node = of
            case _:
                return


def _is_multiple(tree: Tree, node: ast.AST, end: ast.expr, rows: list[ast.expr]) -> bool:
    """Whether the end of a slice is so many times something behind its start: `at + B * T`, `at + B * T + 1`."""
    end = resolved(tree, node, end)
    match end:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_multiple(tree, node, left, rows) or _is_multiple(tree, node, right, rows)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = [f for given in (left, right) for f in (given, resolved(tree, node, given))]
            return any(same(f, r) for f in factors for r in rows)
    return False
