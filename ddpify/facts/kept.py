"""What a loop leaves behind, and how its statements build it up."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Literal

from ddpify.records import dataclass

# "total": it is added to. "entries": one entry is appended at a time. "samples": a list is extended, "rows": a tensor or array is.
# "cells": elements of it are added to. "object": its methods are called. "last": it is assigned, so the last batch's stays.
How = Literal["total", "entries", "samples", "rows", "cells", "object", "last"]
_JOINS = frozenset(("cat", "concat", "concatenate", "append", "hstack", "vstack"))
_IN_PLACE = {"add_": "total", "sub_": "total", "index_add_": "cells", "scatter_add_": "cells", "index_put_": "cells"}


@dataclass(frozen=True)
class Write:
    """One statement of a loop that changes what `text` names; `added` is what it adds or assigns, where that is one expression."""

    text: str
    how: How
    node: ast.AST
    added: ast.expr | None
    target: ast.expr


def writes(loop: ast.For | ast.AsyncFor | ast.While) -> Iterator[Write]:
    """What the statements of a loop change under names that live outside it; inner functions left out."""
    for node in _nodes(loop.body):
        if isinstance(node, ast.AugAssign):
            added = isinstance(node.op, (ast.Add, ast.Sub))
            yield _write(node.target, "total" if added else "last", node, node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(target, node.value, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _assigned(node.target, node.value, node)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.NamedExpr)):
            yield from _assigned(node.target, None, node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            yield _called(node.value, node.value.func)


def read_back(body: list[ast.stmt]) -> frozenset[ast.AST]:
    """The statements of a loop that add to something, or change a part of it, which another statement of the loop reads."""
    nodes, out = list(_nodes(body)), set[ast.AST]()
    reads: dict[str, list[ast.Name | ast.Attribute]] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            reads.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Attribute):
            reads.setdefault(ast.unparse(node), []).append(node)
    for node in nodes:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []:
            base = whole(target)
            if isinstance(base, (ast.Name, ast.Attribute)):
                inside, found = set(ast.walk(node)), reads.get(ast.unparse(base), [])
                changed = isinstance(node, ast.AugAssign) or base is not target or any(r in inside and r is not base for r in found)
                if changed and from_before(body, ast.unparse(base)) and any(r not in inside and isinstance(r.ctx, ast.Load) for r in found):
                    out.add(node)
    return frozenset(out)


def from_before(body: Sequence[ast.AST], text: str) -> bool:
    """Whether the first that statements do with what `text` names is to read it, or to add to it."""
    nodes = [n for s in body for n in ast.walk(s)]
    added = {n.target for n in nodes if isinstance(n, ast.AugAssign)}
    found = [n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == text]
    first = min(found, key=lambda n: (n.lineno, isinstance(n.ctx, ast.Store), n.col_offset), default=None)
    return first is not None and (isinstance(first.ctx, ast.Load) or first in added)


def whole(target: ast.expr) -> ast.expr:
    """What an assignment changes, where its target is an element of it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def _write(target: ast.expr, how: How, node: ast.AST, added: ast.expr | None) -> Write:
    """A write to a name, an attribute, or an element: under a constant key it is named, under a computed one the whole is meant."""
    part = target
    while isinstance(part, ast.Subscript):
        if not isinstance(part.slice, ast.Constant):
            base = whole(part)
            return Write(ast.unparse(base), "cells" if how == "total" else how, node, added, base)
        part = part.value
    return Write(ast.unparse(target), how, node, added, target)


def _assigned(target: ast.expr, value: ast.expr | None, node: ast.AST) -> Iterator[Write]:
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = (
            value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else [None] * len(target.elts)
        )
        for item, part in zip(target.elts, parts, strict=True):
            yield from _assigned(item, part, node)
        return
    if isinstance(target, ast.Starred):
        target = target.value
    text = ast.unparse(target)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for mine, other in ((value.left, value.right), (value.right, value.left)):
            if ast.unparse(mine) == text:
                yield _write(target, "total", node, other)
                return
    if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _JOINS and value.args:
        parts = value.args[0].elts if isinstance(value.args[0], (ast.List, ast.Tuple)) else value.args[:1]
        if any(ast.unparse(part) == text for part in parts if part is not None):
            yield _write(target, "rows", node, None)
            return
    yield _write(target, "last", node, value)


def _called(call: ast.Call, func: ast.Attribute) -> Write:
    added = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if ast.unparse(func).endswith("add.at") and call.args:
        return Write(ast.unparse(call.args[0]), "cells", call, None, call.args[0])
    how: How = "object"
    if func.attr in ("append", "extend") and added is not None:
        how = "entries" if func.attr == "append" else "samples"
    elif func.attr in _IN_PLACE:
        how = _IN_PLACE[func.attr]  # type: ignore[assignment]
    return _write(func.value, how, call, added)
