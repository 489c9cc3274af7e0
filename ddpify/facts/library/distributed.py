"""Rows of torch.distributed: what is of one rank, and what is the same on all of them afterwards."""

from __future__ import annotations

import ast

from ddpify.facts.library.flow import agreed, whole
from ddpify.facts.library.paths import AGREEING, JOINED
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import NOTHING, Lit, New, Value
from ddpify.facts.origins import Origin


def _made_equal(use: Use) -> Value:
    """`all_reduce(x)`: what it was given, and what a list of its own holds, is the same on every rank from here on."""
    run, target = use.run, use.node.args[0] if use.node.args else None
    if isinstance(target, ast.Name):
        value = run.lookup(target.id)
        run.bind(target.id, agreed(value))
        for obj in value.objs:
            for name, inner in run.memory.of(obj) if isinstance(obj, New) and obj.path == "list" else ():
                run.memory[obj, name] = _of_all(use, inner)
    elif isinstance(target, ast.Attribute):
        receiver = run.expression(target.value)
        for obj in receiver.objs:
            run.set_attribute(obj, target.attr, agreed(run.trace.values.get(target, NOTHING)), len(receiver.objs) == 1)
    return NOTHING


def _of_all(use: Use, value: Value) -> Value:
    """What all ranks have of a value, and of the entries of a list that it may be, which is another list from here on."""
    lists = frozenset(o for o in value.instances() if o.path == "list")
    if not lists:
        return agreed(value)
    run, made = use.run, use.run.objects.new("list", use.node, use.run.stack)
    for name, inner in [pair for each in lists for pair in run.memory.of(each)]:
        run.memory[made, name] = run.memory.get((made, name), NOTHING) | agreed(inner)
    return agreed(Value(value.objs - lists | {made}, value.origins, value.scale, value.shape))


def _gathered(use: Use) -> Value:
    """`all_gather(parts, rows)`: the list holds all ranks' rows from here on."""
    if len(use.args) < 2:
        return NOTHING
    parts, all_rows = use.args[0], whole(use.args[1])
    for obj in parts.instances():
        for name, _ in use.run.memory.of(obj):
            use.run.memory[obj, name] = all_rows
    if isinstance(use.node.args[0], ast.Name):
        use.run.bind(use.node.args[0].id, Value(parts.objs, all_rows.origins))
    return NOTHING


ROWS: dict[str, Rule] = {
    **dict.fromkeys(JOINED, lambda use: Value(frozenset((Lit(True),)), frozenset((Origin("literal", use.node),)))),
    "torch.distributed.get_rank": lambda use: Value(frozenset(), frozenset((Origin("rank"),))),
    "torch.distributed.get_world_size": lambda use: Value(frozenset(), frozenset((Origin("world"),))),
    **dict.fromkeys(AGREEING, _made_equal),
    "torch.distributed.all_gather": _gathered,
}
