"""Batches that a loop puts together row by row: lists that it appends to, and begins anew once they are as long as a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddpify.facts.batch_source import BatchSource
from ddpify.facts.model import Value
from ddpify.facts.origins import by_kind
from ddpify.facts.tree import Tree, own_nodes, walk

if TYPE_CHECKING:
    from ddpify.facts.runs import Run

_OWN = frozenset(("forward", "rank", "time"))  # of rows that each rank has for itself


def collected_batches(run: Run, tree: Tree) -> Iterator[BatchSource]:
    """The lists where they are read, as long as a batch: `rows.append(row)`, and then `if len(rows) == size: ...; rows = []`."""
    for test in tree.of(ast.If):
        loop = next((up for up in tree.ancestors(test) if isinstance(up, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef))), None)
        size = _full(test.test)
        if size is None or not isinstance(loop, ast.For):
            continue
        rows = _appended(run, loop) & {name for s in _once_full(tree, test) for name in _emptied(s)}
        names = [n for n in own_nodes(tree.function(test)) if isinstance(n, ast.Name) and n.id in rows]
        for node in tree.in_order(names):
            stored = [tree.statement(n) for n in names if isinstance(n.ctx, ast.Store) and n.id == node.id]
            last = tree.in_order([s for s in stored if tree.after(node, s)])[-1:]
            made = any(node.id not in _emptied(s) for s in last)  # of the rows: `rows = pad(rows)`
            if isinstance(node.ctx, ast.Load) and not made and not _kept(tree, node):
                yield BatchSource("rows", node, size)


def _full(test: ast.expr) -> ast.expr | None:
    """How many rows are enough: the size in `len(rows) == size`, `len(rows) < size`, `(i + 1) % size == 0`."""
    for part in walk(test):
        match part:
            case ast.Compare(
                left=ast.Call(func=ast.Name("len"), args=[ast.Name()]), ops=[ast.Eq() | ast.GtE() | ast.Lt()], comparators=[size]
            ):
                return size
            case ast.Compare(left=ast.BinOp(op=ast.Mod(), right=size), ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
                return size
    return None


def _once_full(tree: Tree, test: ast.If) -> list[ast.stmt]:
    """What runs once there are enough rows: the body of the test, or what follows it where its body goes on to the next row."""
    if not isinstance(test.body[-1], ast.Continue):
        return test.body
    block = tree.block(test)
    return block[block.index(test) + 1 :]


def _appended(run: Run, loop: ast.For) -> set[str]:
    """The lists that a loop appends rows to, if they are the same on all ranks."""
    added: set[str] = set()
    for node in walk(loop):
        match node:
            case ast.Call(func=ast.Attribute(attr="append", value=ast.Name(id=name)), args=[row]):
                if _is_own(run, loop, run.value(row)):
                    return set()
                added.add(name)
    return added


def _is_own(run: Run, loop: ast.For, row: Value) -> bool:
    """Whether each rank may have a row of its own: one that is drawn in the loop, or that a model had a part in."""
    kinds = by_kind(row.origins)
    drawn = (call for node in kinds.get("drawn", ()) for call in run.calls(node))
    return not _OWN.isdisjoint(kinds) or any(around.node is loop for call in drawn for around in call.loops)


def _emptied(statement: ast.stmt) -> set[str]:
    """The lists that a statement begins anew: `rows = []`, `rows, labels = [], []`, `rows.clear()`."""
    out: set[str] = set()
    for node in walk(statement):
        match node:
            case ast.Assign(targets=targets, value=ast.List(elts=[]) | ast.Call(func=ast.Name("list"), args=[])):
                out |= {t.id for t in targets if isinstance(t, ast.Name)}
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=given)):
                pairs = zip(names, given, strict=False)
                out |= {n.id for n, v in pairs if isinstance(n, ast.Name) and isinstance(v, ast.List) and not v.elts}
            case ast.Call(func=ast.Attribute(attr="clear", value=ast.Name(id=name))):
                out.add(name)
    return out


def _kept(tree: Tree, node: ast.Name) -> bool:
    """Whether a list is only appended to, measured or asked about here."""
    up = tree.parent[node]
    if isinstance(up, ast.Call):
        return isinstance(up.func, ast.Name) and up.func.id == "len"
    return isinstance(up, ast.Attribute) or (isinstance(up, (ast.If, ast.While)) and up.test is node)
