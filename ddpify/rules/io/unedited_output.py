"""What modules that are not edited print and log, outside the calls that rank 0 alone makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.disk import to_nowhere
from ddpify.facts.effects import maker
from ddpify.facts.model import Call
from ddpify.facts.tree import walk
from ddpify.rules.context import Context
from ddpify.rules.io.output_statements import Guards

_STDOUT = ("print", "sys.stdout", "pprint")


def prints(context: Context, guards: Guards) -> bool:
    """Whether a module that is not edited prints, outside the calls that are guarded here; or other ranks' output goes nowhere already."""
    unguarded = any(any(p.startswith(_STDOUT) for p in c.func.paths()) for c in unguarded_output(context, guards))
    return unguarded or any(has_own_guard(context, node) for node in stdout_closed(context))


def logs(context: Context, guards: Guards) -> bool:
    """Whether a module that is not edited logs, outside the calls that are guarded here; or other ranks' loggers are off already."""
    return any(map(is_logged, unguarded_output(context, guards))) or any(has_own_guard(context, node) for node in logging_disabled(context))


def stdout_closed(context: Context) -> list[ast.Assign]:
    """Where the script itself puts the null device in the place of standard output."""
    run, found = context.facts.after, list[ast.Assign]()
    for node in context.tree.of(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "stdout" and "sys" in run.value(target.value).paths():
            found += [node] if any(to_nowhere(run, part) for part in walk(node.value)) else []
    return found


def logging_disabled(context: Context) -> list[ast.Call]:
    """Where the script itself switches loggers off."""
    calls = context.facts.after.trace.calls
    return [c.node for c in calls if "logging.disable" in c.func.paths() and context.facts.is_edited(c.node)]


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
    """Whether a place stands under a guard of its own."""
    above = context.facts.tree_of(node).ancestors(node)
    return any(context.asks_for_rank(up.test) for up in above if isinstance(up, ast.If))
