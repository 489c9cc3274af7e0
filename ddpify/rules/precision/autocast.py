"""Run the training's forwards and losses in half precision.

What it does: with `--amp torch` (float16) or `--amp torch-bf16` (bfloat16), `with torch.autocast(...)` goes around the statements from the
    first trained forward to the one that makes the loss: in the loop, a step function, a closure or a method. Backward, optimizer and
    evaluation stay outside. A binary cross entropy of probabilities, which CUDA refuses to cast, stays outside, too, on float32 inputs.
    float16 is for GPUs only and is off on the CPU; bfloat16 works on both.
Why: matrix products and convolutions are several times faster in half precision; autocast keeps what needs it in float32.
Safety: safe; numbers differ by what was asked for. A script that casts already is only switched (see DDP411). Where a forward is run in
    another module, or in one expression with a backward that cannot be taken apart, it is MANUAL.
References: https://docs.pytorch.org/docs/stable/amp.html, https://docs.pytorch.org/docs/stable/notes/amp_examples.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, FreshName, InsertBefore, Replace, Under, Within
from ddpify.facts.model import Call, New
from ddpify.facts.tree import walk
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.precision import existing, outputs, region, scaler
from ddpify.rules.precision.existing import Backward
from ddpify.rules.precision.region import Regions

CODE = "DDP412"
TITLE = "run forward and loss under autocast"
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
        "a forward that is cast already",
        "with torch.autocast(device.type, dtype=torch.bfloat16):\n"
        "    loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
    Example(
        "an evaluation",
        "other = Net()\n"
        "with torch.no_grad():\n"
        "    other(images)\n",
        frame="end",
        options=Options(amp="torch-bf16"),
    ),
    Example(
        "a forward and a loss",
        "output = model(x)\n"
        "loss = criterion(output, y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "with torch.autocast(device.type, dtype=torch.bfloat16):\n"
        "    output = model(x)\n"
        "    loss = criterion(output, y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
    Example(
        "a loss of probabilities",
        "p = torch.sigmoid(model(x)[:, 0])\n"
        "loss = F.binary_cross_entropy(p, y.float())\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "with torch.autocast(device.type, dtype=torch.bfloat16):\n"
        "    p = torch.sigmoid(model(x)[:, 0])\n"
        "loss = F.binary_cross_entropy(p.float(), y.float())\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
)  # fmt: skip

_WHY = "forward and loss in half precision; backward and the update stay outside"


def changes(context: Context) -> Iterator[Change | Finding]:
    """The autocasts, and the forwards that none is put around."""
    if context.options.amp not in ("torch", "torch-bf16"):
        return
    every = existing.backwards(context)
    done = [b for b in every if any(existing.covered(context, f) for f in b.forwards)]
    todo = [b for b in every if b not in done]
    if done and todo:
        yield from _partly(context, todo)
        return
    yield from _without_forwards(context, todo)
    if _lacks_scaler(context, every):
        return
    found = region.find_regions(context, [b for b in todo if context.facts.is_edited(b.call.node)])
    for first, last in found.runs:
        if away(context, first):
            yield _by_hand(context, context.facts.after.calls(todo[0].call.node)[0], first)
        else:
            yield _around(context, first, last, found.penalties.get(first))
    for backward in found.joined:
        yield _apart(context, backward)
    yield from _unsafe(context, found)
    for edit in outputs.widened(context, todo):
        yield Change(CODE, "numpy cannot compute with bfloat16: the value is converted to float32", context.tree.shown, edit.node, (edit,))
    for call in found.missed:
        yield _by_hand(context, call)


def _without_forwards(context: Context, todo: list[Backward]) -> Iterator[Finding]:
    """Backward calls in modules that are not edited, and those whose forwards were not seen."""
    casts = existing.autocasts(context)
    for backward in todo:
        if not context.facts.is_edited(backward.call.node):
            yield _by_hand(context, backward.call)
        if not casts and not backward.forwards:
            yield _by_hand(context, backward.call)


def _lacks_scaler(context: Context, every: list[Backward]) -> bool:
    """Whether float16 would train without a scaler, and badly."""
    return context.options.amp == "torch" and not any(existing.scaled(b.loss) for b in every) and any(scaler.obstacles(context))


def _around(context: Context, first: ast.stmt, last: ast.stmt, penalty: ast.expr | None) -> Change:
    """An autocast around some statements; a `penalty` in them, which differentiates by itself, is computed before."""
    head, needs = cast(context, first)
    edits: tuple[Edit, ...] = (Within(first, last, f"with {head}"),)
    if penalty is not None:
        name = FreshName(("penalty", "grad_penalty"), penalty)
        edits += (InsertBefore(first, f"{name} = {{0}}", (penalty,), (name,)), Replace(penalty, str(name)))
    return Change(CODE, _WHY, context.tree.shown, first, edits, ("import torch",), needs=needs)


def cast(context: Context, node: ast.AST, enabled: bool = True) -> tuple[str, tuple[str, ...]]:
    """An autocast at a place, and what it needs of the runtime block."""
    if context.options.amp == "torch":
        how = "dtype=torch.float16, enabled=torch.cuda.is_available()" if enabled else "enabled=False"
        return f"torch.autocast({context.quoted('cuda')}, {how})", ()
    name, needs = context.device_at(node)
    if needs and context.distributed:
        return f"torch.autocast({context.quoted('cuda')}, {'dtype=torch.bfloat16' if enabled else 'enabled=False'})", ()
    spelled = not needs and name != context.own_device and not _is_device_object(context, node, name)
    device = f"torch.device({name}).type" if spelled else f"{name}.type"
    return f"torch.autocast({device}, {'dtype=torch.bfloat16' if enabled else 'enabled=False'})", needs


def _is_device_object(context: Context, node: ast.AST, name: str) -> bool:
    """Whether a name is a torch.device here, and not only the text of one."""
    function = context.tree.function(node)
    values = [context.facts.after.value(n) for n in walk(function) if isinstance(n, ast.Name) and n.id == name]
    values += [context.facts.after.value(n) for n in walk(function) if isinstance(n, ast.arg) and n.arg == name]
    objs = {o for v in values for o in v.objs}
    return bool(objs) and all(isinstance(o, New) and o.path == "torch.device" for o in objs)


def _apart(context: Context, backward: Backward) -> Change:
    """`criterion(model(x), y).backward()`: the loss is made under the autocast first."""
    node = backward.receiver
    name = FreshName(("loss", "train_loss"), node)
    statement = context.tree.statement(node)
    head, needs = cast(context, statement)
    bind = InsertBefore(statement, f"with {head}:\n    {name} = {{0}}", (node,), (name,))
    edits: tuple[Edit, ...] = (bind, Replace(node, str(name)))
    return Change(CODE, _WHY, context.tree.shown, statement, edits, ("import torch",), needs=needs)


def _unsafe(context: Context, found: Regions) -> Iterator[Change | Finding]:
    """The losses that CUDA refuses to cast: they stay beside the autocast, or turn it off."""
    tree, names = context.tree, list[FreshName]()
    for call in (*found.alone, *found.within):
        if not context.facts.is_edited(call.node):
            yield context.manual(
                CODE,
                call.node,
                "CUDA refuses this loss of probabilities under autocast",
                'with torch.autocast("cuda", enabled=False): around it, with .float() on what it compares; or BCEWithLogitsLoss on logits',
            )
            continue
        statement = tree.statement(call.node)
        within = call in found.within
        lifted = [a for a in region.arguments(call) if any(n in context.training for n in walk(a))]
        names += [FreshName(("output", "prediction", "network_output"), a) for a in lifted[len(names) :]]
        edits: list[Edit] = [
            Replace(a, f"{names[lifted.index(a)]}.float()" if a in lifted else "{0}.float()", () if a in lifted else (a,))
            for a in region.arguments(call)
            if a in lifted or _half(context, a)
        ]
        head, needs = cast(context, statement, not within)
        holes = [f"{name} = {{{i}}}" for i, name in enumerate(names[: len(lifted)])]
        if lifted:
            code = "\n".join(holes) if within else f"with {head}:\n    " + "\n    ".join(holes)
            edits.append(InsertBefore(statement, code, tuple(lifted), tuple(names[: len(lifted)])))
        if within:
            edits.append(Under(statement, f"with {head}"))
        if edits:
            why = "CUDA refuses this loss of probabilities under autocast: it is computed in float32"
            yield Change(CODE, why, tree.shown, call.node, tuple(edits), ("import torch",) if lifted or within else (), needs=needs)


def _half(context: Context, argument: ast.expr) -> bool:
    """Whether an argument comes from a forward."""
    return bool(context.facts.after.value(argument).of_kind("forward"))


def away(context: Context, node: ast.AST) -> bool:
    """Whether a node stands in a module that other scripts use, too: their precision is not asked about."""
    name = context.facts.tree_of(node).name
    return name != "__main__" and context.facts.project.is_shared(name)


def _by_hand(context: Context, call: Call, node: ast.AST | None = None) -> Finding:
    dtype = "float16" if context.options.amp == "torch" else "bfloat16"
    return context.manual(
        CODE,
        node or call.node,
        "this part of the training does not run under autocast yet",
        f'around forward and loss, not around backward: with torch.autocast("cuda", dtype=torch.{dtype}):',
    )


def _partly(context: Context, todo: list[Backward]) -> Iterator[Finding]:
    """A script that casts some of its forwards decides by itself when."""
    for node in dict.fromkeys(b.call.node for b in todo):
        why = "the script has mixed precision of its own, which this backward call is not a part of: it stays so"
        yield context.manual(CODE, node, why, level=Safety.NOTE)
