"""Keep gradients by a batch's own rows as large as they are on one device.

What it does: where the gradient of an average over the batch is taken by the batch's own rows (adversarial samples, perturbations,
    saliency), it is divided by the number of ranks. Where only its direction is used, as by `sign()`, nothing is done.
Why: each rank averages over its own share of the batch, in which a row counts as many times more as there are ranks.
Safety: applied where every backward call of the function was seen, and all rows are of batches that ranks share; otherwise REVIEW.
References: https://arxiv.org/abs/1412.6572
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts import tensors
from ddpify.facts.collect import TrainingLoop
from ddpify.facts.model import Value
from ddpify.facts.tree import Tree
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.model.directions import SAME, only_direction

CODE = "DDP208"
TITLE = "keep the size of gradients by a batch's rows"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "only the direction is used",
        "x.requires_grad_(True)\n"
        "slope = torch.autograd.grad(criterion(model(x), y), x)[0]\n"
        "loss = criterion(model(x.detach() + 0.1 * slope.sign()), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "the gradient of a total",
        "x.requires_grad_(True)\n"
        "slope = torch.autograd.grad(model(x).sum(), x)[0]\n"
        "loss = criterion(model(x.detach() + 0.1 * slope), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a step along the gradient of an average",
        "x.requires_grad_(True)\n"
        "slope = torch.autograd.grad(criterion(model(x), y), x)[0]\n"
        "loss = criterion(model(x.detach() + 0.1 * slope), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "x.requires_grad_(True)\n"
        "slope = torch.autograd.grad(criterion(model(x), y) / world_size, x)[0]\n"
        "loss = criterion(model(x.detach() + 0.1 * slope), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip

_WHY = "a rank's mean is over fewer rows, so that gradients by the rows are larger: divided by the number of ranks, they are as before"
_LARGER = "this reads gradients of a mean over this rank's part of the batch: they are world_size times larger than in the original"
_FIX = "divide them by dist.get_world_size(), or use only their direction"
_SCALED = "apex takes its loss scale out of the parameters' gradients alone: this gradient of a batch's rows may be many times too large"
_UNSCALED = "take the gradient with torch.autograd.grad(loss, rows), or use its direction alone"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Divide the gradients whose size is used."""
    if context.options.batch_size == "per-rank":  # a rank's batch is as large as the one device's
        return
    for tree in context.facts.trees.values():
        for read in tree.of(ast.Attribute):
            if _reads_gradient_of_batch(context, read) and not _of_total(context, tree, read) and not only_direction(tree, read):
                yield from _read(context, tree, read)
    for call in {c.node: c for c in context.facts.after.trace.calls if "torch.autograd.grad" in c.func.paths()}.values():
        if isinstance(call.node, ast.Call) and not only_direction(context.facts.tree_of(call.node), call.node):
            yield from _taken(context, call.node)


def _read(context: Context, tree: Tree, read: ast.Attribute) -> Iterator[Change | Finding]:
    """What is done about a `.grad` whose size is used."""
    node = _with_same(tree, read)
    up = tree.parent[node]
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.left is node and _counts_ranks(context, up.right):
        return
    here = _backwards_here(context, tree, read)
    trained = [loop for loop in here if loop in context.facts.loops]
    known = bool(here) and all(loop in trained or loop.loss.scale == "mean" for loop in here)
    if trained and context.options.level:
        yield context.manual(CODE, read, _SCALED, _UNSCALED, level=Safety.REVIEW)
        return
    if not known or not context.facts.is_edited(node) or not _is_share(context, context.facts.after.value(read.value)):
        yield context.manual(CODE, read, _LARGER, _FIX, level=Safety.REVIEW)
        return
    text = f"{{0}} / {context.names['world_size']}"
    alone = isinstance(up, (ast.Assign, ast.Call, ast.keyword, ast.Return)) and getattr(up, "func", None) is not node
    yield Change(CODE, _WHY, tree.shown, node, (Replace(node, text if alone else f"({text})", (node,)),))


def _taken(context: Context, node: ast.Call) -> Iterator[Change | Finding]:
    """What is done about a call of `torch.autograd.grad` by rows, whose result's size is used."""
    run = context.facts.after
    pairs = [
        (of, by) for c in run.calls(node) if len(c.args) < 3 for of, by in [tensors.differentiated(run.interpreter, c.args, c.keywords)]
    ]
    feeding = set(context.facts.feeding)
    if not any(of.scale == "mean" and by.scale == "sample" and of.batches() & feeding for of, by in pairs):
        return
    outputs = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "outputs"), None)
    known = all(of.scale == "mean" and by.scale == "sample" and _is_share(context, of) for of, by in pairs)
    if outputs is None or not known or not context.facts.is_edited(node) or isinstance(outputs, (ast.List, ast.Tuple)):
        yield context.manual(CODE, node, _LARGER, _FIX, level=Safety.REVIEW)
        return
    simple = isinstance(outputs, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    text = f"{'{0}' if simple else '({0})'} / {context.names['world_size']}"
    yield Change(CODE, _WHY, context.tree.shown, outputs, (Replace(outputs, text, (outputs,)),))


def _is_share(context: Context, value: Value) -> bool:
    """Whether all batches that a value is computed from are this rank's share of them."""
    return bool(value.batches()) and value.batches() <= set(context.facts.feeding)


def _counts_ranks(context: Context, node: ast.expr) -> bool:
    return bool(context.facts.after.value(node).of_kind("world"))


def _reads_gradient_of_batch(context: Context, read: ast.Attribute) -> bool:
    """Whether `.grad` of a batch's rows is read, or of what is computed from them."""
    if read.attr != "grad" or not isinstance(read.ctx, ast.Load):
        return False
    base = context.facts.after.value(read.value)
    return base.scale == "sample" and not base.of_kind("parameters") and bool(base.batches() & set(context.facts.feeding))


def _backwards_here(context: Context, tree: Tree, read: ast.Attribute) -> list[TrainingLoop]:
    """The backward calls of the function that reads a gradient."""
    facts, function = context.facts, tree.function(read)
    here = [loop for loop in (*facts.discarded, *facts.loops) if loop.backward.node in tree.parent]
    return [loop for loop in here if tree.function(loop.backward.node) is function]


def _of_total(context: Context, tree: Tree, read: ast.Attribute) -> bool:
    """Whether a gradient of a batch's rows comes from a total over them, of which each rank's rows get what they got before."""
    here = _backwards_here(context, tree, read)
    return bool(here) and all(loop in context.facts.discarded and loop.loss.scale == "sum" for loop in here)


def _with_same(tree: Tree, node: ast.expr) -> ast.expr:
    """An expression with what is called on it and gives the same numbers: `x.grad.detach()` of `x.grad`."""
    up = tree.parent[node]
    if not isinstance(up, ast.Attribute) or up.attr not in SAME:
        return node
    call = tree.parent[up]
    return _with_same(tree, call if isinstance(call, ast.Call) and call.func is up else up)
