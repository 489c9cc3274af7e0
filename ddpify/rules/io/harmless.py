"""What every rank may say without harm: prints and log messages of values that all ranks have."""

from __future__ import annotations

import ast

from ddpify.facts.effects import maker
from ddpify.facts.tree import walk
from ddpify.rules.io.output_statements import Guards

_FUNCTIONS = frozenset("abs bool float format int len list max min repr round sorted str sum tuple type".split())
_METHODS = frozenset("format item join keys values items mean numel sum tolist cpu detach size dim lower upper time strftime".split())
_PLAIN = (
    ast.Expr, ast.If, ast.For, ast.Pass, ast.expr_context, ast.Name, ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Tuple, ast.List, ast.Dict, ast.Starred, ast.keyword, ast.Call, ast.IfExp,
)  # fmt: skip


def harmless(guards: Guards, statement: ast.stmt) -> bool:
    """Whether a statement may run on every rank: it prints or logs, and reads nothing that rank 0 alone has."""
    nodes = list(walk(statement))
    outputs = [n.value for n in nodes if isinstance(n, ast.Expr)]
    if not outputs or not all(isinstance(n, _PLAIN) for n in nodes):
        return False
    return all(
        _prints(guards, node) if node in outputs else not isinstance(node, ast.Call) or _computes(guards, node) for node in nodes
    ) and not any(_on_rank_zero(guards, node) for node in nodes if isinstance(node, (ast.Name, ast.Attribute)))


def _prints(guards: Guards, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or any(k.arg in ("file", None) for k in node.keywords):
        return False
    value = guards.run.value(node.func)
    paths = {*value.paths(), *(m.path for m in map(maker, value.objs) if m is not None)}
    return bool(paths) and all(p == "print" or p.startswith("logging.") for p in paths)


def _computes(guards: Guards, call: ast.Call) -> bool:
    """Whether a call inside what is said only reads a value."""
    if isinstance(call.func, ast.Name):
        return guards.run.value(call.func).paths() <= {call.func.id} and call.func.id in _FUNCTIONS
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS


def _on_rank_zero(guards: Guards, node: ast.expr) -> bool:
    """Whether a name holds what the other ranks do not have, such as a writer."""
    objs = guards.run.value(node).objs
    return any(guards.effects.is_writer(m) for m in (*objs, *(m for m in map(maker, objs) if m is not None)))
