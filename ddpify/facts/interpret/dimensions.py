"""Questions for how many dimensions a tensor has, which what was done with it before may have answered."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from ddpify.facts.interpret.literals import literal
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING

_ORDERS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def asks_for_dimensions(run: Interpreter, node: ast.Compare) -> bool | None:
    """Whether a tensor has so many dimensions as a test asks for: `x.dim() == 4`; None where that is not known, or not asked."""
    order, tensor = _ORDERS.get(type(node.ops[0])), _measured(node.left)
    if order is None or tensor is None or len(node.ops) > 1:
        return None
    value = run.lookup(tensor.id) if isinstance(tensor, ast.Name) else run.trace.values.get(tensor, NOTHING)  # of all times, joined
    asked = literal(run.trace.values.get(node.comparators[0], NOTHING))
    ndim = value.shape.ndim if value.shape is not None and value.shape.several is False and value.shape.sure else None
    known = ndim is not None and not value.objs and type(asked) is int
    return order(ndim, asked) if known else None  # type: ignore[arg-type]


def _measured(node: ast.expr) -> ast.expr | None:
    """The tensor for whose number of dimensions an expression stands: `x.ndim`, `x.dim()`, `len(x.shape)`."""
    match node:
        case ast.Attribute(value=tensor, attr="ndim"):
            return tensor
        case ast.Call(func=ast.Attribute(value=tensor, attr="dim" | "ndimension"), args=[], keywords=[]):
            return tensor
        case ast.Call(func=ast.Name("len"), args=[ast.Attribute(value=tensor, attr="shape")], keywords=[]):
            return tensor
        case ast.Call(func=ast.Name("len"), args=[ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[])], keywords=[]):
            return tensor
    return None
