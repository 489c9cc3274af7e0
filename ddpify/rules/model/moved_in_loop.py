"""Models that only the training loop moves to the device: they are moved before they are wrapped, or made to start alike."""

from __future__ import annotations

import ast

from ddpify.facts.model import Call, Lit, New, Obj
from ddpify.facts.wrap_places import first_run
from ddpify.rules.context import Context


def move(context: Context, objs: frozenset[Obj], name: str, at: ast.stmt) -> tuple[str, tuple[str, ...]]:
    """The statement that moves a model where it is wrapped, and what it needs; nothing where the script has moved it by then."""
    facts, run = context.facts, context.facts.before
    backwards = (c.order for trained in facts.loops for c in run.calls(trained.backward.node))
    first = first_run(facts, facts.models, objs) or min(backwards, default=0)  # trained by methods other than its forward
    around = run.around(objs)
    moves = [c for c in run.trace.calls if run.unwrap(c.receiver) & around and _to_device(context, c)]
    made = {loop.node for o in objs if isinstance(o, New) for c in run.calls(o.node) for loop in c.loops}  # such as one over folds
    training = facts.training_loops - made
    early = [c for c in moves if c.order < first and not any(loop.node in training for loop in c.loops)]
    if not moves or early:
        return "", ()
    device, needs = context.device_at(at)
    return f"{name}.to({device})\n", needs


def _to_device(context: Context, call: Call) -> bool:
    """Whether a call moves something to a device, which may be a GPU."""
    if call.method == "cuda":
        return True
    given = call.argument(0, "device") if call.method == "to" else None
    if given is None:
        return False
    named = any(isinstance(o, Lit) and str(o.value).startswith("cuda") for o in given.objs)
    return named or any(isinstance(o, New) and o.path == "torch.device" and not context.is_cpu(o) for o in given.objs)
