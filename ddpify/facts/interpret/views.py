"""Tensors and arrays that are views of others: what changes the one in place changes the other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from ddpify.facts.model import NOTHING, Lit, Tup, Value

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_SAME = frozenset(("detach", "numpy", "requires_grad_"))
_VIEWS = frozenset(
    "view reshape flatten ravel t transpose permute squeeze unsqueeze narrow select chunk split unbind diagonal view_as reshape_as "
    "swapaxes movedim unflatten".split()
)
_ATTRIBUTES = frozenset(("T", "mT", "data", "real", "imag"))
_OF_FIRST = frozenset(("torch.from_numpy", "torch.as_tensor", "numpy.asarray"))


class Viewed(NamedTuple):
    """The name or attribute of the tensor that an expression is a view of; `part`: of some of it, or as another shape.

    `sure`: it is a view whatever the tensor is made of, and no number that is read from it.
    """

    tensor: ast.expr
    part: bool
    sure: bool


def viewed(run: Interpreter, node: ast.expr) -> Viewed | None:
    """What an expression is a view of, itself included; None where it is a tensor of its own, or of nobody knows what."""
    part, sure = False, False
    while True:
        inner = _inside(run, node)
        if inner is None:
            break
        sliced = isinstance(node, ast.Subscript) and any(isinstance(i, ast.Slice) for i in _indices(node))
        same = isinstance(node, ast.Call) and (not isinstance(node.func, ast.Attribute) or node.func.attr not in _VIEWS)
        part, sure = part or not (same or _is_data(node)), sure or sliced or isinstance(node, ast.Call)
        node = inner
    if not isinstance(node, (ast.Name, ast.Attribute)) or run.trace.values.get(node, NOTHING).objs:
        return None
    return Viewed(node, part, sure)


def _inside(run: Interpreter, node: ast.expr) -> ast.expr | None:
    """What an expression is a view of at once."""
    if isinstance(node, ast.Subscript):
        return None if any(_picks(run, i) for i in _indices(node)) else node.value
    if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        return None if run.trace.values.get(node.value, NOTHING).objs else node.value
    if not isinstance(node, ast.Call):
        return None
    func = run.trace.values.get(node.func, NOTHING)
    if func.paths() and func.paths() <= _OF_FIRST and node.args:
        return node.args[0]
    if not isinstance(node.func, ast.Attribute) or run.trace.values.get(node.func.value, NOTHING).objs:
        return None
    return node.func.value if node.func.attr in _VIEWS | _SAME else None


def _is_data(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _picks(run: Interpreter, index: ast.expr) -> bool:
    """Whether an index picks entries one by one, so that what it gives is a tensor of its own."""
    if isinstance(index, (ast.Compare, ast.List)) or (isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert)):
        return True
    value = run.trace.values.get(index, NOTHING)
    if any(not isinstance(o, (Lit, Tup)) for o in value.objs):
        return True
    return value.shape is not None and (value.shape.base is not None or value.shape.dims > 0)


def is_in_place(run: Interpreter, name: ast.Name, old: Value) -> bool:
    """Whether `x += value` changes the tensor that a name holds, which is no number of Python's."""
    numbers = old.shape is None or (old.shape.base is None and old.shape.dims == 0)
    holder = run.holder_of(name.id)
    run.asks_alias(holder)
    return not numbers or run.aliases.parts.get(holder, False)
