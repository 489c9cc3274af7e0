"""What modules that are not edited print and log, outside the calls that rank 0 alone makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.effects import maker
from ddpify.facts.model import Call
from ddpify.rules.context import Context
from ddpify.rules.io.output_statements import Guards

_STDOUT = ("print", "sys.stdout", "pprint")


def prints(context: Context, guards: Guards) -> bool:
    """Whether a module that is not edited prints, outside the calls that are guarded here."""
    return any(any(p.startswith(_STDOUT) for p in c.func.paths()) for c in unguarded_output(context, guards))


def logs(context: Context, guards: Guards) -> bool:
    """Whether a module that is not edited logs, outside the calls that are guarded here."""
    return any(is_logged(c) for c in unguarded_output(context, guards))


def is_logged(call: Call) -> bool:
    """Whether a call goes through `logging`."""
    roots = [m.path for o in call.func.objs if (m := maker(o)) is not None]
    return any(p.startswith("logging.") for p in (*call.func.paths(), *roots))


def unguarded_output(context: Context, guards: Guards) -> Iterator[Call]:
    """The output of other modules that every rank would make."""
    for call in context.facts.after.trace.calls:
        if context.facts.is_edited(call.node) or guards.effects.at.get(call.node) != "print":
            continue
        if not guards.guarded_call(call.node, call.stack) and not has_own_guard(context, call.node):
            yield call


def has_own_guard(context: Context, node: ast.AST) -> bool:
    """Whether a place of such a module stands under a guard of its own."""
    above = context.facts.tree_of(node).ancestors(node)
    return any(context.asks_for_rank(up.test) for up in above if isinstance(up, ast.If))
