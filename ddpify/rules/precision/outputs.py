"""What leaves an autocast for numpy, which has no bfloat16 and sums float16 badly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
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
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _NUMBERS or name in _WIDE:
            return False
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return any(_is_half(context, part, forwards, depth) for part in (*receiver, *node.args))
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return _is_half(context, node.value, forwards, depth)
    if isinstance(node, ast.BinOp):
        return any(_is_half(context, part, forwards, depth) for part in (node.left, node.right))
    if not isinstance(node, ast.Name) or not depth:
        return False
    given = [
        s.value
        for s in ast.walk(context.tree.function(node))
        if isinstance(s, ast.Assign) and any(isinstance(n, ast.Name) and n.id == node.id for t in s.targets for n in ast.walk(t))
    ]
    return bool(given) and all(_is_half(context, value, forwards, depth - 1) for value in given)
