"""How the statements of a loop write to what lives outside it: they add to it, append to it, or assign it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Literal

from ddpify.facts.model import New, Value
from ddpify.facts.tree import last_name, same, scope_nodes, walk
from ddpify.records import dataclass

# "total": it is added to. "entries": one entry is appended at a time. "samples": a list is extended, "rows": a tensor or array is.
# "cells": elements of it are added to. "object": its methods are called. "last": it is assigned, so the last batch's stays.
How = Literal["total", "entries", "samples", "rows", "cells", "object", "last"]
Batches = ast.For | ast.AsyncFor | ast.While
_JOINS = frozenset(("cat", "concat", "concatenate", "append", "hstack", "vstack"))
_VIEWS = frozenset(("loc", "iloc", "at", "iat", "flat"))  # of pandas and numpy
_IN_PLACE = {"add_": "total", "sub_": "total", "index_add_": "cells", "scatter_add_": "cells", "index_put_": "cells"}


@dataclass(frozen=True)
class Write:
    """One statement of a loop that changes `target`; `added` is what it adds or assigns, where that is one expression."""

    how: How
    node: ast.AST
    added: ast.expr | None
    target: ast.expr


def writes(loop: Batches) -> Iterator[Write]:
    """The writes of a loop, to its own variables and by its statements; inner functions left out."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        yield from _assigned(loop.target, None, loop)
    for node in scope_nodes(*loop.body):
        yield from writes_of(node)


def writes_of(node: ast.AST) -> Iterator[Write]:
    """The writes of one statement, or of an assignment inside an expression."""
    if isinstance(node, ast.AugAssign):
        added = isinstance(node.op, (ast.Add, ast.Sub))
        if added and isinstance(node.value, ast.List) and len(node.value.elts) == 1:  # `losses += [loss]` appends
            yield _write(node.target, "entries", node, node.value.elts[0])
        else:
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


def container(target: ast.expr) -> ast.expr:
    """What an assignment changes, where its target is an element of it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def viewed(node: ast.expr, value_of: Callable[[ast.expr], Value]) -> ast.expr:
    """What is changed by way of a library's view of it: `frame` by `frame.loc`, an array by `array.flat`; else the node itself."""
    if not isinstance(node, ast.Attribute) or node.attr not in _VIEWS:
        return node
    return node.value if all(isinstance(o, New) and o.cls is None for o in value_of(node.value).objs) else node


def loop_carried(loop: ast.stmt) -> frozenset[str]:
    """The names that a pass of a loop may read before it assigns them."""
    fresh = _names(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
    carried = _read(loop.test) if isinstance(loop, ast.While) else set()
    _follow(getattr(loop, "body", []), fresh, carried)
    return frozenset(carried)


def _follow(body: list[ast.stmt], fresh: set[str], carried: set[str]) -> None:
    """Tell the names that statements read before they are assigned from those that are assigned on every way."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                carried |= _read(item) - fresh
            _follow(statement.body, fresh, carried)
            continue
        carried |= _read(statement) - fresh
        if isinstance(statement, ast.Assign):
            fresh |= {name for target in statement.targets for name in _names(target)}


def _read(node: ast.AST) -> set[str]:
    nodes = walk(node)
    added = {n.target for n in nodes if isinstance(n, ast.AugAssign)}
    return {n.id for n in nodes if isinstance(n, ast.Name) and (isinstance(n.ctx, ast.Load) or n in added)}


def _names(target: ast.expr) -> set[str]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return {n.id for part in parts for n in ([part] if isinstance(part, ast.Name) else [])}


def _write(target: ast.expr, how: How, node: ast.AST, added: ast.expr | None) -> Write:
    """A write to a name, an attribute, or an element: under a constant key it is that one, under a computed one the whole is meant."""
    part = target
    while isinstance(part, ast.Subscript):
        if not isinstance(part.slice, ast.Constant):
            return Write("cells" if how == "total" else how, node, added, container(part))
        part = part.value
    return Write(how, node, added, target)


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
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for mine, other in ((value.left, value.right), (value.right, value.left)):
            if same(mine, target) or _got(mine, target):
                yield _write(target, "total", node, other)
                return
    if isinstance(value, ast.Call) and last_name(value.func) in _JOINS and value.args:
        joined = value.args[0].elts if isinstance(value.args[0], (ast.List, ast.Tuple)) else value.args[:1]
        if any(same(part, target) for part in joined):
            others = [part for part in (*joined, *value.args[1:]) if not same(part, target)]
            yield _write(target, "rows", node, others[0] if len(others) == 1 else None)
            return
    yield _write(target, "last", node, value)


def _got(mine: ast.expr, target: ast.expr) -> bool:
    """Whether an expression is what a dict has under the key that is assigned, or zero: `counts[key] = counts.get(key, 0) + 1`."""
    match mine, target:
        case ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, ast.Constant(value=0)], keywords=[]), ast.Subscript():
            return same(of, target.value) and same(key, target.slice)
    return False


def _called(call: ast.Call, func: ast.Attribute) -> Write:
    added = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if func.attr == "at" and isinstance(func.value, ast.Attribute) and func.value.attr == "add" and call.args:
        return Write("cells", call, None, call.args[0])
    how: How = "object"
    if func.attr in ("append", "extend") and added is not None:
        how = "entries" if func.attr == "append" else "samples"
    elif func.attr in _IN_PLACE:
        how = _IN_PLACE[func.attr]  # type: ignore[assignment]
    target = func.value
    if isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and target.func.attr == "setdefault":
        return Write(how, call, added, container(target.func.value))  # an element, made where there was none
    return _write(target, how, call, added)
