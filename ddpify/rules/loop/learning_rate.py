"""Scale the learning rate with the global batch, where that was asked for.

What it does: with `--batch-size per-rank --scale-lr linear` (or `sqrt`), multiplies the learning rates that optimizers, parameter groups,
    one-cycle and cyclic schedules and statements of the script's own are given by the number of ranks (by its root).
Why: the global batch is then as many times as large; linear scaling keeps the size of an epoch's steps together (Goyal et al. 2017), the
    root keeps their noise, as is usual for Adam.
Safety: NOTE; the default keeps the batch, and with it the learning rate: REVIEW for a script that multiplies it by the number of ranks
    itself. What is computed from an optimizer's rate is scaled already.
References: https://arxiv.org/abs/1706.02677
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Replace, SetArgument
from ddpify.facts.model import New, Obj, Part, Value, ordered
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument

CODE = "DDP407"
TITLE = "scale the learning rate"
_LINEAR = Options(batch_size="per-rank", scale_lr="linear")
EXAMPLES: tuple[Example, ...] = (
    Example(
        "the batch of all ranks stays as large",
        "optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)\n",
        frame="end",
    ),
    Example(
        "a rate that follows from the optimizer's own",
        'optimizer.param_groups[0]["lr"] *= 0.5\n',
        frame="epoch",
        options=_LINEAR,
    ),
    Example(
        "a rate of the script's own",
        'optimizer.param_groups[0]["lr"] = 0.1 * 0.5**epoch\n',
        'optimizer.param_groups[0]["lr"] = 0.1 * 0.5**epoch * world_size\n',
        frame="epoch",
        options=_LINEAR,
    ),
)  # fmt: skip

_DEFAULTS = {
    "SGD": "1e-3", "Adam": "1e-3", "AdamW": "1e-3", "RAdam": "1e-3", "NAdam": "2e-3", "Adamax": "2e-3", "RMSprop": "1e-2",
    "Adagrad": "1e-2", "ASGD": "1e-2", "Rprop": "1e-2", "Adadelta": "1.0",
}  # fmt: skip
_SCHEDULES = {"OneCycleLR": (("max_lr", 1),), "CyclicLR": (("base_lr", 1), ("max_lr", 2))}


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Multiply every learning rate that is given as a number."""
    if context.options.scale_lr == "none":
        yield from _growing(context)
        return
    for optimizer in ordered(context.facts.optimizers):
        if isinstance(optimizer.node, ast.Call):
            yield from _initial_rate(context, optimizer, optimizer.node)
    for rate in (*_of_groups(context), *_of_schedules(context), *_of_statements(context)):
        yield from _scaled(context, rate)


def _growing(context: Context) -> Iterator[Finding]:
    """The rates that the script multiplies by the number of ranks, as there will be, while the batch of all ranks stays as large."""
    if context.options.batch_size != "global" or context.begins_group:
        return  # it is converted: numbers of all ranks are divided by how many there are
    made = [argument(o.node, 1, "lr") for o in ordered(context.facts.optimizers) if isinstance(o.node, ast.Call)]
    why = "this learning rate depends on the number of ranks, while the batch of all ranks stays as large as it was"
    fix = "leave the number of ranks out, or convert with --batch-size per-rank"
    for rate in (*(r for r in made if r is not None), *_of_groups(context), *_of_schedules(context), *_of_statements(context)):
        if context.facts.after.value(rate).of_kind("world"):
            yield context.manual(CODE, rate, why, fix, level=Safety.REVIEW)


def _of_groups(context: Context) -> Iterator[ast.expr]:
    """The rates of parameter groups: `{"params": ..., "lr": ...}`."""
    for node in context.tree.of(ast.Dict):
        keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
        if {"params", "lr"} <= set(keys):
            yield node.values[keys.index("lr")]


def _of_schedules(context: Context) -> Iterator[ast.expr]:
    """The rates that schedules are given as numbers of their own."""
    for call in {c.node: c for c in context.calls()}.values():
        schedules = [p.rpartition(".")[2] for p in call.func.paths() if p.startswith("torch.optim.lr_scheduler.")]
        for name, position in (rate for schedule in schedules for rate in _SCHEDULES.get(schedule, ())):
            if (given := argument(call.node, position, name)) is not None:
                yield given


def _of_statements(context: Context) -> Iterator[ast.expr]:
    """What the script itself assigns as a rate."""
    for store in {s.node: s for s in context.facts.after.trace.stores}.values():
        node = store.node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "lr":
            statement = context.facts.tree_of(node).statement(node)
            if isinstance(statement, ast.Assign) and not _from_optimizer(context, store.value):
                yield statement.value


def _initial_rate(context: Context, optimizer: New, node: ast.Call) -> Iterator[Change | Finding]:
    """What an optimizer is made with."""
    given = argument(node, 1, "lr")
    if given is not None:
        yield from _scaled(context, given)
        return
    default = _DEFAULTS.get(optimizer.path.rpartition(".")[2])
    if default is None or not context.facts.is_edited(node) or any(k.arg is None for k in node.keywords):
        yield context.manual(
            CODE,
            node,
            "the learning rate of this optimizer could not be found, and every rank loads a full batch",
            f"lr=... * {_factor(context)}",
        )
    else:
        yield _change(context, node, SetArgument(node, "lr", f"{default} * {_factor(context)}"))


def _scaled(context: Context, rate: ast.expr) -> Iterator[Change | Finding]:
    value = context.facts.after.value(rate)
    if any(o.kind == "world" for o in value.origins) or _from_optimizer(context, value):
        return
    if not context.facts.is_edited(rate):
        yield context.manual(
            CODE,
            rate,
            "this learning rate is set in a module that is not edited, and every rank loads a full batch",
            f"{ast.unparse(rate)} * dist.get_world_size()",
        )
        return
    yield _change(context, rate, Replace(rate, f"{{0}} * {_factor(context)}", (rate,)))


def _change(context: Context, node: ast.AST, edit: Edit) -> Change:
    how = "" if context.options.scale_lr == "linear" else "the root of "
    why = f"every rank loads a full batch: the learning rate is multiplied by {how}their number"
    return Change(CODE, why, context.tree.shown, node, (edit,), level=Safety.NOTE)


def _factor(context: Context) -> str:
    return context.names["world_size"] + ("" if context.options.scale_lr == "linear" else "**0.5")


def _from_optimizer(context: Context, value: Value) -> bool:
    """Whether a number is computed from a learning rate that an optimizer has."""
    run = context.facts.after
    sources: set[Obj] = {*value.objs, *value.of_kind("from")}
    while sources:
        if any(run.is_optimizer(o) for o in sources):
            return True
        sources = {o.of for o in sources if isinstance(o, Part)}
    return any(run.is_optimizer(of) for of, _ in value.of_kind("method"))
