"""What apex asks of the calls that clip gradients, or set them to zero."""

from __future__ import annotations

from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, Replace, escaped
from ddpify.facts import library, stepped
from ddpify.facts.model import Call, New
from ddpify.facts.tree import walk
from ddpify.rules.context import Context
from ddpify.rules.precision import backward_optimizers


def clips(context: Context, names: backward_optimizers.Names) -> Iterator[Edit]:
    """Gradients are clipped on the parameters that the optimizer moves, which are others than the model's at O2."""
    for call in clipping_calls(context):
        owners = clipped(context, call)
        given = names.at(call.node, owners) if owners and context.facts.is_edited(call.node) else ""
        if not given:
            continue
        parts = given[1:-1].split(", ") if given.startswith("[") else [given]
        texts = [f"amp.master_params({escaped(p)})" for p in parts]
        yield Replace(call.node.args[0], texts[0] if len(texts) == 1 else f"[{', '.join('*' + t for t in texts)}]")


def clipping_calls(context: Context) -> list[Call]:
    """The calls that clip, each once."""
    every = [c for c in context.facts.after.trace.calls if any(map(library.clips, c.func.paths() - {library.MASTER_PARAMS}))]
    calls = {c.node: c for c in every if c.node.args}
    masters = {c.node for c in context.facts.after.trace.calls if library.MASTER_PARAMS in c.func.paths()}
    return [c for c in calls.values() if not masters & set(walk(c.node.args[0]))]


def clipped(context: Context, call: Call) -> frozenset[New]:
    """The optimizers whose parameters a call clips, all of them and no others; none where that is not so."""
    run = context.facts.after
    clipped = {o for c in run.calls(call.node) for o in run.parameters(c.args[0]) | run.single_parameters(c.args[0])}
    mine = {o: stepped.owners(context.facts, o) for o in context.facts.optimizers}
    inside = {o: owned for o, owned in mine.items() if owned and owned <= clipped}
    together = frozenset(p for owned in inside.values() for p in owned)
    if together == clipped:
        return frozenset(inside)
    return frozenset()


def zeroed(context: Context) -> Iterator[Edit]:
    """`zero_grad` takes no argument once apex has replaced it."""
    if context.options.level != "O2":  # and nothing else is lost: it is as good as setting to zero
        return
    run = context.facts.after
    for node in dict.fromkeys(c.node for c in context.calls() if c.method == "zero_grad"):
        optimizer = any(run.is_optimizer(o) for c in run.calls(node) for o in c.receiver.objs)
        if optimizer and (node.args or node.keywords):
            yield DropArgument(node, "set_to_none", 0)
