"""Keep the parameters of all ranks equal where the script writes to them itself.

What it does: shows each place in the training where parameters are changed in place by a number that may differ between ranks, or handed
    to a function of a package that nobody has described.
Why: DistributedDataParallel makes parameters equal once, when the model is wrapped. After it only equal gradients keep them so.
Safety: MANUAL: the write stays as it is. Say what the function does in `[tool.ddpify.placements]`, or broadcast what it has written.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts import sources
from ddpify.facts.model import Call, Ext, Method, New, Value
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop import unknown

CODE = "DDP207"
TITLE = "writes to parameters agree"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "weights that are clamped",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for p in model.parameters():\n"
        "    p.data.clamp_(-1, 1)\n",
        frame="step",
    ),
    Example(
        "a model that is shown to a package before it trains",
        "import pictures\n"
        "pictures.plot(model)\n",
        frame="start",
    ),
)  # fmt: skip

_BROADCAST = "for p in model.parameters(): dist.broadcast(p.data, 0)"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Show the writes to parameters that ranks may make differently."""
    seen: set[ast.AST] = set()
    for call in context.facts.after.trace.calls:
        if call.node in seen or not any(loop.node in context.facts.training_loops for loop in call.loops):
            continue
        finding = _in_place(context, call) or _by_unknown(context, call)
        if finding is not None:
            seen.add(call.node)
            yield finding


def _in_place(context: Context, call: Call) -> Finding | None:
    """A finding on `parameter.add_(...)` by what is not known to be the same on all ranks."""
    if not call.method.endswith("_") or call.method.startswith("__") or not _parameters(context, call.receiver):
        return None
    names = sorted({name for v in (*call.args, *call.keywords.values()) for name in unknown.names(context, v)})
    if not names:
        return None
    why = f"{unknown.listed(names)} may give each rank something else, and what it is written to trains: the ranks' parameters drift apart"
    return context.manual(CODE, call.node, why, unknown.say(names))


def _by_unknown(context: Context, call: Call) -> Finding | None:
    """A finding on a function of an unknown package that is handed a model in training."""
    given = [*call.args, *call.keywords.values()]
    if not any(_trained(context, v) for v in given):
        return None
    paths = [o.path for o in call.func.objs if isinstance(o, Ext)]
    for method in (o for o in call.func.objs if isinstance(o, Method)):
        inner = sources.path_of(context.facts.after.interpreter, method.of)
        paths += [f"{inner}.{method.name}"] if inner else []
    known = context.facts.project.placements
    names = sorted(p for p in paths if sources.source(p) == "unknown" and p not in known)
    if not names or guards_of(context).by_rank_zero(call):
        return None
    why = f"{unknown.listed(names)} is handed the model while it trains; if it writes to it, the ranks' parameters drift apart"
    return context.manual(CODE, call.node, why, unknown.say(names), level=Safety.REVIEW)


def _parameters(context: Context, value: Value) -> bool:
    """Whether a value is a parameter, or the data of one."""
    models = {o for m in context.facts.models for o in m.objs}
    return bool(value.of_kind("parameters") or value.of_kind("weight")) or any(
        root in models for o in value.objs if not isinstance(o, Ext) for root in context.facts.after.roots(o)
    )


def _trained(context: Context, value: Value) -> bool:
    """Whether a value is a trained model, wrapped or not, or its parameters."""
    run = context.facts.after
    inside = {*run.unwrap(value), *value.of_kind("parameters")}
    return any(o in m.objs for m in context.facts.models for o in inside if isinstance(o, New)) and not value.of_kind("forward")
