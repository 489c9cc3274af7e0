"""Make sure that averaging gradients over ranks averages over samples.

What it does: a loss that is an average over the batch needs nothing. A loss that is a total is multiplied by the number of ranks where it
    is differentiated (not where it is printed). Anything else is shown.
Why: DistributedDataParallel averages gradients; the average of totals is too small by the number of ranks, and the average of averages
    over different counts is not the average.
Safety: safe for averages and totals; REVIEW where the average is weighted or the form is not known.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.collect import loss_of
from ddpify.facts.model import New, Value
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP402"
TITLE = "an average over all ranks' samples"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a mean over the batch",
        "loss = F.mse_loss(model(x), x)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a total divided by the number of samples",
        'loss = F.cross_entropy(model(x), y, reduction="sum") / x.size(0)\n'
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "an average by class weights, which is shown",
        "loss = F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 3.0]))\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a total",
        'loss = F.cross_entropy(model(x), y, reduction="sum")\n'
        "loss.backward()\n"
        "optimizer.step()\n",
        'loss = F.cross_entropy(model(x), y, reduction="sum")\n'
        "(loss * world_size).backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip

_REASONS = {
    "weighted": "this loss is an average by weights or over valid entries, whose number differs between ranks",
    "sample": "how this loss averages over the batch was not seen",
    "other": "how this loss depends on the batch was not seen, or it couples the samples of a batch",
    "count": "how this loss depends on the batch was not seen",
}
_FIX = "scale it so that the average over ranks is the loss of the whole batch: loss * world_size * local_count / all_reduced_count"


def _padded(context: Context, loss: Value, node: ast.Call) -> bool:
    """Whether the loader pads its batches and the training flattens them."""
    run = context.facts.after
    pads = False
    for loader in loss.of_kind("batch"):
        for obj in run.held(loader, "collate_fn").objs:
            inner = getattr(obj, "node", None) if not isinstance(obj, New) else obj.cls.node if obj.cls is not None else None
            pads |= (isinstance(obj, New) and "Padding" in obj.path) or (
                isinstance(inner, ast.AST)
                and any(
                    isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] in ("pad_sequence", "pad", "pad_packed_sequence")
                    for n in ast.walk(inner)
                )
            )
    if not pads:
        return False
    function = context.facts.tree_of(node).function(node)
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("view", "reshape", "flatten", "transpose", "permute")
        for n in ast.walk(function)
    )


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Judge the loss of each backward call."""
    by_node: dict[ast.Call, Value] = {}
    for loop in context.facts.loops:
        call = loop.backward
        by_node[call.node] = by_node.get(call.node, Value()) | loss_of(call)
    for node, loss in by_node.items():
        held = (Obligation("loss", node),)
        if not loss.of_kind("batch"):
            yield context.manual(
                CODE,
                node,
                "this loss was not seen to come from a data loader: its inputs may be the same on every rank",
                "give each rank its own share of the inputs",
                held,
            )
        elif loss.scale == "mean" and _padded(context, loss, node):
            yield context.manual(
                CODE,
                node,
                "batches are padded, to another length on every rank, and this average is over all entries",
                _FIX,
                held,
                Safety.REVIEW,
            )
        elif loss.scale == "mean":
            yield Proof(held[0], "an average over equally many samples on every rank")
        elif loss.scale == "sum" and any(o.kind == "world" for o in loss.origins):
            yield Proof(held[0], "a total, multiplied by the number of ranks")
        elif loss.scale == "sum" and context.facts.is_entry(node) and isinstance(node.func, ast.Attribute) and not node.args:
            world = context.names["world_size"]
            yield Change(
                CODE,
                "gradients are averaged over ranks, and this loss is a total",
                context.tree.shown,
                node,
                (Replace(node.func.value, f"({{0}} * {world})", (node.func.value,)),),
                discharges=held,
            )
        else:
            yield context.manual(
                CODE, node, _REASONS.get(loss.scale or "", "how this loss depends on the batch was not seen"), _FIX, held, Safety.REVIEW
            )
