"""What a data set of the script's own gives for a sample: entries of one row, and entries that are the same for all samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, TypeAlias

from ddpify.facts.tree import scope_nodes, walk
from ddpify.placement.rows import ALIGNED

Item: TypeAlias = "Literal['row', ''] | Same"
"""An entry that has one row, one that is the same for all samples, or another."""
TENSORS = frozenset("tensor as_tensor Tensor LongTensor FloatTensor IntTensor BoolTensor DoubleTensor array asarray".split())
KEEP = frozenset("long float double int bool half to cuda cpu type contiguous clone detach requires_grad_ pin_memory numpy astype".split())


class Same(str):
    """The name of an attribute that a data set gives for each sample."""

    __slots__ = ()


class Paths(Protocol):
    """What the names of a file stand for."""

    def path(self, node: ast.expr) -> str:
        """The dotted path of something of a library, or of Python; empty of anything else."""


def items(function: ast.AST, cls: ast.ClassDef, known: Paths) -> tuple[Item, ...]:
    """The entries of the tuple that `__getitem__` gives for a sample; none where it may give several."""
    returns = [n for n in scope_nodes(*getattr(function, "body", ())) if isinstance(n, ast.Return)]
    given = returns[0].value if len(returns) == 1 and isinstance(function, ast.FunctionDef) else None
    if not isinstance(given, ast.Tuple):
        return ()
    rows = dict[str, bool]()
    for statement in function.body:  # type: ignore[attr-defined]
        bound = {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        alone = isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
        is_row = alone and is_one_row(statement.value, known, rows)
        rows |= dict.fromkeys(bound, bool(is_row))
    written = {name for n in _outside_of_init(cls) for name in _may_change(n)}
    return tuple(_item(part, known, rows, written) for part in given.elts)


def _item(node: ast.expr, known: Paths, rows: Mapping[str, bool], written: set[str]) -> Item:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if name not in written:
            return Same(name)
    return "row" if is_one_row(node, known, rows) else ""


def _may_change(node: ast.AST) -> Iterator[str]:
    """The attributes that an expression writes, or that a method or an entry may change: `self.seen = i`, `self.seen.append(i)`."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(value=ast.Attribute(attr=name)) | ast.Subscript(value=ast.Attribute(attr=name), ctx=ast.Store()):
            yield name


def _outside_of_init(cls: ast.ClassDef) -> list[ast.AST]:
    methods = [n for n in cls.body if not (isinstance(n, ast.FunctionDef) and n.name == "__init__")]
    return [n for method in methods for n in walk(method)]


def is_one_row(node: ast.expr, known: Paths, rows: Mapping[str, bool]) -> bool:
    """Whether a tensor has one row: `torch.tensor([label])`, `part.unsqueeze(0)`, `part[None]`, or entrywise of such."""
    match node:
        case ast.Name(id=name):
            return rows.get(name, False)
        case ast.Subscript(slice=ast.Constant(value=None) | ast.Tuple(elts=[ast.Constant(value=None), *_])):
            return True
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[ast.Constant(value=0)]):
            return True
        case ast.Call(func=ast.Attribute(value=of, attr=method)) if method in KEEP:
            return is_one_row(of, known, rows)
        case ast.Call(func=func, args=[ast.List(elts=[only]), *_]) if known.path(func).rpartition(".")[2] in TENSORS:
            return not isinstance(only, ast.Starred)
        case ast.Call(func=func, args=[of]) if known.path(func).startswith("torch.") and known.path(func).rpartition(".")[2] in ALIGNED:
            return is_one_row(of, known, rows)
        case ast.BinOp(left=of, right=ast.Constant()) | ast.BinOp(left=ast.Constant(), right=of):
            return is_one_row(of, known, rows)
    return False
