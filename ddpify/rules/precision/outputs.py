"""What leaves an autocast for numpy, which has no bfloat16 and sums float16 badly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.tree import last_name, walk
from ddpify.rules.context import Context
from ddpify.rules.precision.existing import Backward

_NUMBERS = frozenset(
    ("argmax", "argmin", "max", "min", "topk", "sort", "argsort", "long", "int", "bool", "eq", "ne", "gt", "ge", "lt", "le")
)
_WIDE = frozenset(("float", "double", "to", "type", "numpy", "item", "tolist"))


def widened(context: Context, todo: list[Backward]) -> Iterator[Replace]:
    """`.float()` before each `.numpy()` of an output."""
    forwards = frozenset(f.node for b in todo for f in b.forwards)
    for call in dict.fromkeys(c.node for c in context.calls() if c.method == "numpy" and not c.no_grad):
        if isinstance(call.func, ast.Attribute) and _is_half(context, call.func.value, forwards, 4):
            yield Replace(call.func.value, "{0}.float()", (call.func.value,))


def _is_half(context: Context, node: ast.expr, forwards: frozenset[ast.AST], depth: int) -> bool:
    """Whether an expression is an output, or computed from one, and neither an index, a truth value nor cast already."""
    if node in forwards:
        return True
    match node:
        case ast.Call():
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            parts = [] if last_name(node.func) in _NUMBERS | _WIDE else [*receiver, *node.args]
            return any(_is_half(context, part, forwards, depth) for part in parts)
        case ast.Attribute() | ast.Subscript():
            return _is_half(context, node.value, forwards, depth)
        case ast.BinOp():
            return _is_half(context, node.left, forwards, depth) or _is_half(context, node.right, forwards, depth)
        case ast.Name() if depth:
            values = _assigned(context.tree.function(node), node.id)
            return bool(values) and all(_is_half(context, value, forwards, depth - 1) for value in values)
    return False


def _assigned(function: ast.AST, name: str) -> list[ast.expr]:
    """What a function assigns to a name, or to a part of it."""
    statements = (s for s in walk(function) if isinstance(s, ast.Assign))
    return [s.value for s in statements if any(isinstance(n, ast.Name) and n.id == name for t in s.targets for n in walk(t))]
