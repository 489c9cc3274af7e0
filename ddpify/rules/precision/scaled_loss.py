"""Scale losses by apex.

What it does: where DDP414 begins apex's mixed precision, every backward call starts from `amp.scale_loss(loss, optimizer)`, with the
    optimizers that step along its gradients, and a scaler of its own where there are several such calls. Gradients are clipped on
    `amp.master_params(optimizer)`; checkpoints hold amp's state beside the optimizer's, and give it back if they have it.
Why: float16 gradients that are small become zero; scaled, they do not. At O2 the optimizer moves float32 parameters of its own: clipping
    the model's would clip nothing.
Safety: safe; all that stands in the way is told by DDP414.
References: https://nvidia.github.io/apex/advanced.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, FreshName, Replace, Under
from ddpify.facts import averaged, library
from ddpify.facts.initialize import Site
from ddpify.facts.model import Call, New
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Safety
from ddpify.rules.context import Context
from ddpify.rules.precision import apex, concerned, outputs, present, region, saved
from ddpify.rules.precision.present import Backward

CODE = "DDP415"
TITLE = "losses scaled by apex"
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
    every, steps = apex.wanted(context), present.steps(context)
    if not every or not isinstance(context.amp, Site) or any(f.level is Safety.MANUAL for f in apex.obstacles(context, every)):
        return
    names = concerned.Names(context)
    backwards = list(dict.fromkeys(b.call.node for b in every))
    scaled = FreshName(("scaled_loss", "amp_loss"), backwards[0])
    edits: list[Edit] = []
    for at, node in enumerate(sorted(backwards, key=lambda n: (n.lineno, n.col_offset))):
        of = [b for b in every if b.call.node is node]
        given = names.at(node, frozenset().union(*(concerned.optimizers(context, b, steps) for b in of)))
        own = f", loss_id={at}" if len(backwards) > 1 else ""
        header = f"with amp.scale_loss({{0}}, {_braced(given)}{own}) as {scaled}"
        edits += [Under(context.tree.statement(node), header, (of[0].receiver,), (scaled,)), Replace(of[0].receiver, str(scaled))]
    edits += clips(context, names)
    edits += zeroed(context)
    files = list(saved.sites(context, set(context.facts.optimizers), "amp"))
    edits += [e for f in files for e in f.edits("amp", "amp")]
    edits += [*names.edits]
    if context.options.level == "O1":
        edits += _wide(context, every)
    yield Change(CODE, _WHY, context.tree.shown, backwards[0], tuple(edits), (apex.IMPORT,))


def clips(context: Context, names: concerned.Names) -> Iterator[Edit]:
    """Gradients are clipped on the parameters that the optimizer moves, which are others than the model's at O2."""
    for call in clipping(context):
        owners = clipped(context, call)
        given = names.at(call.node, owners) if owners and context.facts.is_edited(call.node) else ""
        if not given:
            continue
        parts = given[1:-1].split(", ") if given.startswith("[") else [given]
        texts = [f"amp.master_params({_braced(p)})" for p in parts]
        yield Replace(call.node.args[0], texts[0] if len(texts) == 1 else f"[{', '.join('*' + t for t in texts)}]")


def clipping(context: Context) -> list[Call]:
    """The calls that clip, each once."""
    every = [c for c in context.facts.after.trace.calls if any(map(library.clips, c.func.paths() - {library.MASTER_PARAMS}))]
    calls = {c.node: c for c in every if c.node.args}
    masters = {c.node for c in context.facts.after.trace.calls if library.MASTER_PARAMS in c.func.paths()}
    return [c for c in calls.values() if not masters & set(ast.walk(c.node.args[0]))]


def clipped(context: Context, call: Call) -> frozenset[New]:
    """The optimizers whose parameters a call clips, all of them and no others; none where that is not so."""
    run = context.facts.after
    clipped = {o for c in run.calls(call.node) for o in run.parameters(c.args[0]) | run.loose(c.args[0])}
    mine = {o: averaged.owners(context.facts, o) for o in context.facts.optimizers}
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


def _wide(context: Context, every: list[Backward]) -> Iterator[Edit]:
    """float32 for what apex refuses in float16, and for numpy."""
    for call in region.unsafe(context):
        for argument in region.arguments(call) if context.facts.is_edited(call.node) else ():
            if context.facts.after.value(argument).of_kind("forward"):
                yield Replace(argument, "{0}.float()", (argument,))
    yield from outputs.widened(context, every)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
