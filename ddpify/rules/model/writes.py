"""Keep the parameters of all ranks equal where the script writes to them itself.

What it does: where the training writes into weights or their gradients, by whatever means, averages, totals and counts of a rank's own
    batch become those of all ranks; of other statistics the rows are gathered. What nobody knows to be the same on all ranks
    becomes rank 0's, and what is drawn is drawn by rank 0 (rules/loop/steering.py). Where a model is handed to a function of a
    package that nobody has described, that is shown.
Why: DistributedDataParallel makes parameters equal once, when the model is wrapped. After it only equal gradients keep them so.
Safety: safe for what is averaged, added up or gathered; a NOTE where rank 0 is followed; MANUAL for other numbers of a rank's own
    batch; REVIEW for functions that may write to the model: say what they do in `[tool.ddpify.placements]`, or broadcast what they
    have written.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from ddpify.edits import Replace
from ddpify.facts import sources
from ddpify.facts.model import Call, Ext, Lit, Method, New, Obj, Value
from ddpify.facts.weight_writes import Write
from ddpify.placement.lattice import REPLICATE
from ddpify.rules.base import SAME_GRADIENTS, Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop import gathered_rows, unknown
from ddpify.rules.loop.branches import under_own_test
from ddpify.rules.loop.sharded_parts import reduce_edits, sharded_parts

CODE = "DDP207"
TITLE = "write the same parameters on all ranks"
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
        "weights that shrink by a number of the script's",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for p in model.parameters():\n"
        "    p.data.mul_(0.999)\n",
        frame="step",
    ),
    Example(
        "a copy that follows the weights",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for kept, p in zip(average, model.parameters()):\n"
        "    kept.mul_(0.99).add_(p.detach(), alpha=0.01)\n",
        frame="step",
    ),
    Example(
        "weights that shrink by the loss of a batch",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for p in model.parameters():\n"
        "    p.data.mul_(1 - 0.01 * loss.item())\n",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for p in model.parameters():\n"
        "    p.data.mul_(sum_over_ranks(1 - 0.01 * loss.item()) / world_size)\n",
        frame="step",
    ),
    Example(
        "weights that shrink as a package says that nobody has described",
        "import policies\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for p in model.parameters():\n"
        "    p.data.mul_(policies.decay())\n",
        "import policies\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "for p in model.parameters():\n"
        "    p.data.mul_(same_on_all_ranks(policies.decay()))\n",
        frame="step",
    ),
)  # fmt: skip


_BY_OWN_NUMBERS = "a parameter or its gradient is changed by a value that differs between ranks: the ranks' parameters drift apart"
_AVERAGE = "make it the same on all ranks: average it first (dist.all_reduce)"
_BY_ALL = "what is written to parameters follows the batches of all ranks, so that they stay equal on all"
_RENORMED = "max_norm scales down the rows of the weights that a rank looks up, and others on each rank: they drift apart"
_RENORM = (
    "leave max_norm out of the embedding, and scale down all rows on all ranks, after each step:\n"
    "with torch.no_grad():\n"
    "    torch.embedding_renorm_(weight, torch.arange(len(weight), device=weight.device), max_norm, 2.0)"
)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Show the writes to parameters that ranks may make differently."""
    seen: set[ast.AST] = set()
    for write in context.weight_writes:
        if write.node not in seen and (item := _written(context, write)) is not None:
            seen.add(write.node)
            yield item
    for call in context.facts.after.trace.calls:
        if call.node in seen or not any(loop.node in context.facts.training_loops for loop in call.loops):
            continue
        item = _by_lookup(context, call) or _by_unknown(context, call)
        if item is not None:
            seen.add(call.node)
            yield item


def _written(context: Context, write: Write) -> Change | Finding | None:
    """What to do about a write of numbers that are not known to be the same on all ranks."""
    run, names = context.facts.after, context.names
    if not any(map(context.differs, write.values)):
        return None
    unknowns = {node: functions for node in write.given if (functions := unknown.names(context, run.value(node)))}
    if unknowns:
        listed = sorted({name for functions in unknowns.values() for name in functions})
        if not context.facts.is_edited(write.node):
            why = f"{unknown.listed(listed)} may differ between ranks, and is written to parameters: they would drift apart"
            return context.manual(CODE, write.node, why, unknown.say(listed))
        edits = tuple(Replace(node, f"{names['same_on_all_ranks']}({{0}})", (node,)) for node in unknowns)
        why = unknown.followed(listed)
        return Change(CODE, why, context.tree.shown, write.node, edits, level=Safety.NOTE, needs=("same_on_all_ranks",))
    own = [node for node in write.given if context.differs(run.value(node))]
    found = [sharded_parts(context, node) for node in own if context.facts.is_edited(node)]
    if not own or under_own_test(context, write.node):
        return context.manual(CODE, write.node, _BY_OWN_NUMBERS, _AVERAGE)
    if not all(found) or len(found) < len(own):
        rows = gathered_rows.gathered(context, own)
        if rows is None:
            return context.manual(CODE, write.node, _BY_OWN_NUMBERS, _AVERAGE)
        shown = context.facts.tree_of(write.node).shown
        return Change(CODE, _BY_ALL, shown, write.node, rows.edits, needs=rows.needs, redistributes=rows.redistributes)
    reduced, needs = reduce_edits(context, [part for parts in found for part in parts or ()])
    return Change(CODE, _BY_ALL, context.tree.shown, write.node, tuple(reduced), needs=tuple(sorted(needs)))


def _by_lookup(context: Context, call: Call) -> Finding | None:
    """A finding on an embedding that scales down the rows which it is asked for, and is asked for others on each rank."""
    run = context.facts.after
    limits = [made.argument(3, "max_norm") for o in run.unwrap(call.func) if _is_embedding(o) for made in run.calls(o.node)]
    limits += [call.argument(3, "max_norm")] if "torch.nn.functional.embedding" in call.func.paths() else []
    is_set = any(v is not None and not (v.objs and all(isinstance(o, Lit) and o.value is None for o in v.objs)) for v in limits)
    if not is_set or not call.args or context.placement(call.args[0]) == REPLICATE:
        return None
    return context.manual(CODE, call.node, _RENORMED, _RENORM)


def _is_embedding(obj: Obj) -> TypeGuard[New]:
    return isinstance(obj, New) and obj.path in ("torch.nn.Embedding", "torch.nn.EmbeddingBag")


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
    if not names or guards_of(context).guarded_call(call.node, call.stack):
        return None
    why = f"{unknown.listed(names)} gets the model during training: if it writes to the parameters, they may drift apart between ranks"
    # What it writes to parameters is compared on all ranks after the next step, whose gradients follow from it.
    return context.manual(CODE, call.node, why, unknown.say(names), level=Safety.REVIEW, answered_by=SAME_GRADIENTS)


def _trained(context: Context, value: Value) -> bool:
    """Whether a value is a trained model, wrapped or not, or its parameters."""
    run = context.facts.after
    inside = {*run.unwrap(value), *value.of_kind("parameters")}
    return any(o in m.objs for m in context.facts.models for o in inside if isinstance(o, New)) and not value.of_kind("forward")
