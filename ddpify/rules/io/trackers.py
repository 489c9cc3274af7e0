"""The trackers, such as wandb, that do nothing on other ranks by a setting of theirs."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ddpify.facts.interpret.state import UNNAMED
from ddpify.facts.library.effects import SWITCHES
from ddpify.facts.model import New, Value
from ddpify.facts.tree import walk
from ddpify.rules.context import Context, argument
from ddpify.rules.io.output_statements import Guards


def switched(context: Context, guards: Guards) -> tuple[str, ...]:
    """The trackers whose every run is opened by the entry on all ranks, and switched off on all but one."""
    opened: dict[str, bool] = {}
    for call in context.facts.after.trace.calls:
        for path in call.func.paths() & SWITCHES.keys():
            root = path.partition(".")[0]
            here = context.facts.is_edited(call.node) and not guards.guarded(call.node) and _switch_is_known(context, call.node, path)
            opened[f"{root}."] = opened.get(f"{root}.", True) and here
    return tuple(root for root, here in opened.items() if here and _read_by_all(context, guards, root))


def _read_by_all(context: Context, guards: Guards, root: str) -> bool:
    """Whether all ranks read something of a tracker's run, such as its settings, or enter a part of it: `with experiment.train():`.

    Where none does, but what rank 0 alone will run, rank 0 alone needs a run.
    """
    run, tree = context.facts.after, context.tree
    for node in tree.of(ast.Attribute):
        entered = isinstance(tree.parent.get(tree.parent[node]), ast.withitem)
        if not isinstance(node.ctx, ast.Load) or not (node.attr in _RUN_PARTS or entered) or guards.silent(node):
            continue
        base = run.value(node.value)
        if not any(p.startswith(root) for p in (*(f"{p}." for p in base.paths()), *(o.path for o in base.instances()))):
            continue
        statement = tree.statement(node)
        only_says = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and node in walk(statement.value.func)
        if not only_says:
            return True
    return False


_RUN_PARTS = frozenset(("config", "run", "summary", "name", "id", "dir", "url"))


def _switch_is_known(context: Context, call: ast.Call, path: str) -> bool:
    """Whether it is known if a call is passed the argument that switches its run off: `**settings` may hold one."""
    name = SWITCHES[path][0]
    run = context.facts.after
    spread = [run.value(k.value).objs for k in call.keywords if k.arg is None]
    return argument(call, None, name) is not None or all(
        objs and all(isinstance(o, New) and o.path == "dict" and not _may_hold(run.memory, o, name) for o in objs) for objs in spread
    )


def _may_hold(memory: Mapping[tuple[object, str], Value], obj: New, name: str) -> bool:
    return (obj, name) in memory or (obj, UNNAMED) in memory
