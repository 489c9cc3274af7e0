"""The parts of an expression that are a rank's own numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.rules.context import Context


def own_parts(context: Context, node: ast.expr, text: str) -> Iterator[ast.expr]:
    """The largest parts of an expression that are a rank's own numbers and do not hold what is carried on."""
    run = context.facts.after
    value = run.value(node)
    if not context.shared(value):
        return
    if text not in {ast.unparse(n) for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))}:
        if value.scale in ("sum", "count", "mean") and not value.made():
            yield node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and ast.unparse(child) != text:
            yield from own_parts(context, child, text)
