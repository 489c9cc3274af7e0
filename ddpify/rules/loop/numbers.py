"""The parts of an expression that are a rank's own numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.rules.context import Context


def own_parts(context: Context, node: ast.expr, text: str = "") -> list[ast.expr] | None:
    """The largest parts of an expression that are averages, totals or counts over a rank's own samples.

    With them replaced by those of all ranks the whole is what it was; None where something else of a rank's own is left. What
    `text` names is carried on from before, and agreed already.
    """
    parts: list[ast.expr] = []
    return parts if _gather(context, node, text, parts) else None


def _gather(context: Context, node: ast.expr, text: str, parts: list[ast.expr]) -> bool:
    value = context.facts.after.value(node)
    if ast.unparse(node) == text or not (context.shared(value) or context.local(value)):
        return True
    carried = text and text in {ast.unparse(n) for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))}
    if value.scale in ("sum", "count", "mean") and not value.made() and not carried and not value.of_kind("offset"):
        parts.append(node)
        return True
    if isinstance(node, (ast.Name, ast.Attribute, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.Starred)):
        return False
    inner = [c for c in expressions(node) if not (isinstance(node, ast.Call) and c is node.func and isinstance(c, ast.Name))]
    return bool(inner) and all(_gather(context, c, text, parts) for c in inner)


def expressions(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of an expression: of a method call, what it is called on."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func.value
        yield from node.args
        yield from (k.value for k in node.keywords)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.keyword):
                yield child.value
