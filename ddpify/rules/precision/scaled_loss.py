"""Scale losses by apex.

What it does: where DDP414 begins apex's mixed precision, every backward call starts from `amp.scale_loss(loss, optimizer)`, with the
    optimizers that step along its gradients, and a scaler of its own where there are several such calls. Gradients are clipped on
    `amp.master_params(optimizer)`; checkpoints hold amp's state beside the optimizer's, and give it back if they have it.
Why: float16 gradients that are small become zero; scaled, they do not. At O2 the optimizer moves float32 parameters of its own: clipping
    the model's would clip nothing.
    `autograd.grad` goes back from what is not scaled: the forwards that it goes through at O1 are computed in float32.
Safety: safe; what prevents it is reported by DDP414.
References: https://nvidia.github.io/apex/advanced.html
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpify.edits import Edit, FreshName, Replace, Under, escaped
from ddpify.options import Options
from ddpify.rules.base import Change, Example
from ddpify.rules.context import Context
from ddpify.rules.precision import apex, backward_optimizers, checkpoints, clipping, existing, outputs, region
from ddpify.rules.precision.existing import Backward

CODE = "DDP415"
TITLE = "scale losses with apex"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "precision stays as it is, unless something else is asked for",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a loss that is only looked at",
        "other = Net()\n"
        "with torch.no_grad():\n"
        "    loss = criterion(other(images), labels)\n",
        frame="end",
        options=Options(amp="apex-O1"),
    ),
    Example(
        "a backward call, and gradients that are clipped",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "optimizer.step()\n",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
        "    scaled_loss.backward()\n"
        "nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="apex-O1"),
    ),
)  # fmt: skip

_WHY = "apex scales the loss, so that float16 gradients do not become zero"


def changes(context: Context) -> Iterator[Change]:
    """All backward calls, with what belongs to them."""
    if not apex.begins(context):
        return
    every, steps = apex.wanted(context), existing.steps(context)
    names = backward_optimizers.Names(context)
    backwards = list(dict.fromkeys(b.call.node for b in every))
    scaled = FreshName(("scaled_loss", "amp_loss"), backwards[0])
    edits: list[Edit] = []
    for at, node in enumerate(sorted(backwards, key=lambda n: (n.lineno, n.col_offset))):
        of = [b for b in every if b.call.node is node]
        given = names.at(node, frozenset().union(*(backward_optimizers.optimizers(context, b, steps) for b in of)))
        own = f", loss_id={at}" if len(backwards) > 1 else ""
        header = f"with amp.scale_loss({{0}}, {escaped(given)}{own}) as {scaled}"
        edits += [Under(context.tree.statement(node), header, (of[0].receiver,), (scaled,)), Replace(of[0].receiver, str(scaled))]
    edits += clipping.clips(context, names)
    edits += clipping.zeroed(context)
    files = list(checkpoints.sites(context, set(context.facts.optimizers), "amp"))
    edits += [e for f in files for e in f.edits("amp", "amp")]
    edits += [*names.edits]
    if context.options.level == "O1":
        edits += _wide(context, every)
    yield Change(CODE, _WHY, context.tree.shown, backwards[0], tuple(edits), (apex.IMPORT,))


def _wide(context: Context, every: list[Backward]) -> Iterator[Edit]:
    """float32 for what apex refuses in float16, for what is differentiated without a scale, and for numpy."""
    for call in region.unsafe(context):
        for argument in region.arguments(call) if context.facts.is_edited(call.node) else ():
            if context.facts.after.value(argument).of_kind("forward"):
                yield Replace(argument, "{0}.float()", (argument,))
    run = context.facts.after
    for node in {n: n for c in run.calls_of(existing.GRAD) for n in region.differentiated_by(context, c)}:
        yield Under(context.tree.statement(node), "with amp.disable_casts()")
        for given in node.args:
            if run.value(given).of_kind("forward"):
                yield Replace(given, "{0}.float()", (given,))
    yield from outputs.widened(context, every)
