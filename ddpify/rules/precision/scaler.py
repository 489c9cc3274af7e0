"""Scale the loss, so that float16 gradients do not vanish.

What it does: with `--amp torch`, a `torch.amp.GradScaler` is made after the optimizer and handed on to where it is used: every backward
    call starts from `scaler.scale(loss)`, gradients are unscaled before they are clipped or read, `scaler.step(optimizer)` steps and
    `scaler.update()` ends the iteration, after its last step. A scheduler that moves with each step moves only if the step was not
    skipped. The scaler's state joins the optimizer's in checkpoints, and is loaded where a checkpoint has it.
Why: the gradients of a float16 forward are float16, and small ones become zero; scaled, they do not. The scaler skips steps whose gradients
    overflowed, on all ranks alike, for it looks at the averaged gradients.
Safety: safe. MANUAL where an optimizer is given a closure, where parameters are moved by hand, where gradients are read in a place that
    cannot be put in order, and where a step is taken in another module.
References: https://docs.pytorch.org/docs/stable/amp.html, https://docs.pytorch.org/docs/stable/notes/amp_examples.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, FreshName, InsertAfter, InsertBefore, Replace, Under
from ddpify.facts.model import Call
from ddpify.facts.runs import place_of
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding
from ddpify.rules.context import Context
from ddpify.rules.precision import checkpoints, existing, scaler_scope, scaler_update
from ddpify.rules.precision.scaler_scope import ScalerScope

CODE = "DDP413"
TITLE = "scale float16 gradients"
_LOADED = (
    "with torch.autocast({device}, dtype=torch.float16{enabled}):\n"
    "    loss = criterion(model(x), y)\n"
    "optimizer.zero_grad()\n"
)  # fmt: skip
_CAST = _LOADED.format(device='"cuda"', enabled=", enabled=torch.cuda.is_available()")
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
        "bfloat16 needs no scaler",
        'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
        "    loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
    Example(
        "a scaler that is there",
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "\n"
        "model = torch.nn.Linear(8, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        'scaler = torch.amp.GradScaler("cuda")\n'
        'for x, y in DataLoader(torch.load("data.pt"), batch_size=32):\n'
        '    with torch.autocast("cuda"):\n'
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "    optimizer.zero_grad()\n"
        "    scaler.scale(loss).backward()\n"
        "    scaler.step(optimizer)\n"
        "    scaler.update()\n",
        options=Options(amp="torch"),
    ),
    Example(
        "a step, and one whose gradients are clipped",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "optimizer.step()\n",
        f"{_CAST}"
        "scaler.scale(loss).backward()\n"
        "scaler.unscale_(optimizer)\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "scaler.step(optimizer)\n"
        "scaler.update()\n",
        frame="step",
        options=Options(amp="torch"),
    ),
)  # fmt: skip

_WHY = "losses are scaled, so that small float16 gradients do not become zero"
_USE_BF16 = "use --amp torch-bf16, which needs no scaler"
_BY_HAND = (
    "scaler.scale(loss).backward(), scaler.unscale_(optimizer) before gradients are read, scaler.step(optimizer), then scaler.update() "
    "once an iteration; or --amp torch-bf16, which needs no scaler"
)


def changes(context: Context) -> Iterator[Change | Finding]:
    """The scaler through the whole training, or what stands in the way."""
    if context.options.amp != "torch":
        return
    every, steps = existing.backwards(context), _steps(context)
    if not every or any(existing.scaled(b.loss) for b in every) or _apex(context):
        return
    stopped = list(obstacles(context))
    if stopped:
        yield from stopped
        return
    entry = context.facts.is_edited
    backwards = {b.call.node: b.receiver for b in every if entry(b.call.node)}
    nodes = list(dict.fromkeys(s.node for s in steps if entry(s.node)))
    files = list(checkpoints.sites(context, {o for s in steps for o in s.receiver.instances()}))
    found = _scaler_scope(context, every, steps, [f.node for f in files])
    assert found is not None  # else it is an obstacle
    edits: list[Edit] = list(found.edits)
    for node, receiver in backwards.items():
        edits.append(Replace(receiver, f"{found.at(context, node)}.scale({{0}})", (receiver,)))
    for node in nodes:
        assert isinstance(node.func, ast.Attribute)
        edits.append(Replace(node, f"{found.at(context, node)}.step({{0}})", (node.func.value,)))
    edits += _in_order(context, found, every, steps)
    edits += [e for f in files for e in f.edits(found.at(context, f.node))]
    yield Change(CODE, _WHY, context.tree.shown, nodes[0], tuple(edits), ("import torch",))


def _scaler_scope(context: Context, every: list[existing.Backward], steps: list[Call], wished: list[ast.AST]) -> ScalerScope | None:
    """Where the scaler lives."""
    uses: list[ast.AST] = [*(b.call.node for b in every), *(s.node for s in steps), *scaler_update.places(context, every, steps)]
    uses += [statement for statement, _ in scaler_update.unscaled(context, every, steps)]
    loops = [b.call.loops[0].node for b in every if b.call.loops]
    name = FreshName(("scaler", "grad_scaler", "loss_scaler"), every[0].call.node)
    optimizers = sorted({o for s in steps for o in s.receiver.instances()}, key=place_of)
    return scaler_scope.find_scope(context, optimizers, list(dict.fromkeys(uses)), wished, loops, name)


def _in_order(context: Context, found: ScalerScope, every: list[existing.Backward], steps: list[Call]) -> Iterator[Edit]:
    """What stands between backward and step, and what ends the iteration."""
    for statement, optimizer in scaler_update.unscaled(context, every, steps):
        yield InsertBefore(statement, f"{found.at(context, statement)}.unscale_({optimizer})")
    for place in scaler_update.places(context, every, steps):
        name = found.at(context, place)
        scheduler = scaler_update.scheduler(context, place)
        if scheduler is None:
            yield InsertAfter(place, f"{name}.update()")
            continue
        scale = FreshName(("scale", "loss_scale"), place, context.tree.function(place))
        yield InsertAfter(place, f"{scale} = {name}.get_scale()\n{name}.update()", (scale,))
        yield Under(scheduler, f"if {name}.get_scale() >= {scale}")


def _steps(context: Context) -> list[Call]:
    """The steps of torch's optimizers: what a class of the script's own steps, it steps inside itself."""
    find = context.facts.after.interpreter.find
    own = {o for s in existing.steps(context) for o in s.receiver.instances() if o.cls is not None and find(o.cls, "step") is not None}
    return [s for s in existing.steps(context) if not own & s.receiver.instances()]


def obstacles(context: Context) -> Iterator[Finding]:
    """What a scaler cannot go through."""
    every, steps = existing.backwards(context), _steps(context)
    yield from _calls_in_the_way(context, every, steps)
    if not every:
        return
    first = every[0].call.node
    for node in existing.gradient_hooks(context):
        yield context.manual(CODE, node, "this hook sees gradients multiplied by the loss scale: thresholds in it no longer fit", _USE_BF16)
    if not steps:
        yield context.manual(
            CODE,
            first,
            "parameters are updated by hand from gradients that are multiplied by the loss scale: the steps would be far too large",
            _USE_BF16,
        )
    elif all(context.facts.is_edited(call.node) for call in (*steps, *(b.call for b in every))):
        try:
            if _scaler_scope(context, every, steps, []) is None:
                yield context.manual(
                    CODE, first, "there is no line where a grad scaler can be made that all of the training reaches", _BY_HAND
                )
        except scaler_update.Unclear as unclear:
            yield context.manual(CODE, unclear.node, str(unclear), _BY_HAND)


def _calls_in_the_way(context: Context, every: list[existing.Backward], steps: list[Call]) -> Iterator[Finding]:
    """The steps and backward calls that no scaler can be put into."""
    for node in dict.fromkeys(s.node for s in steps):
        if node.args or node.keywords:
            yield context.manual(CODE, node, "a grad scaler cannot step an optimizer that is given a closure", _USE_BF16)
        elif not context.facts.is_edited(node):
            yield context.manual(CODE, node, "this step is taken in a module that is not edited: the scaler cannot take it", _BY_HAND)
    for node in dict.fromkeys(b.call.node for b in every):
        if not context.facts.is_edited(node):
            yield context.manual(CODE, node, "this backward call is made in a module that is not edited: its loss is not scaled", _BY_HAND)
        elif existing.is_unseen_method(context, node):
            yield context.manual(CODE, node, "the analysis could not tell what this backward call does with the loss", _BY_HAND)


def _apex(context: Context) -> bool:
    return any(p.startswith("apex.amp.") for c in context.facts.after.trace.calls for p in c.func.paths())
