"""Gradients that the training computes by the weights itself: each rank has its own, and they become the average over the ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts import tensors
from ddpify.facts.model import Call, Lit, Value
from ddpify.facts.weight_writes import Weights
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context

CODE = "DDP201"
_HELPER = "averages_over_ranks"
_OWN = "autograd.grad returns this rank's gradient: DDP averages in `.backward()` only, and parameters would drift apart"
_FIX = "average the gradients over the ranks, before they are used: for g in gradients: dist.all_reduce(g); g /= world_size"
_WHY = "DDP averages gradients in `.backward()` only: these are averaged over the ranks here, so that all ranks go on with the same"


def averages(context: Context) -> Iterator[Change | Finding]:
    """The calls of `torch.autograd.grad` by weights."""
    weights, calls = Weights(context.facts), context.facts.after.calls_of("torch.autograd.grad")
    for node in dict.fromkeys(c.node for c in calls if any(map(weights.hold, _by(context, c)))):
        if node in context.assumed.redistributed or _is_averaged(context, node):
            continue
        seen = context.facts.after.calls(node)
        if context.facts.is_edited(node) and all(_of_average(context, c) for c in seen):
            edit = Replace(node, f"{context.names[_HELPER]}({{0}})", (node,))
            agreed = ((node, "agreed"),)
            yield Change(CODE, _WHY, context.tree.shown, node, (edit,), needs=(_HELPER,), redistributes=agreed)
        else:
            yield context.manual(CODE, node, _OWN, _FIX)


def _by(context: Context, call: Call) -> list[Value]:
    """What a gradient is taken by: a tensor, or those of a list."""
    run, given = context.facts.after.interpreter, call.argument(1, "inputs") or Value()
    return [given, run.element(given), tensors.differentiated(run, call.args, call.keywords)[1]]


def _of_average(context: Context, call: Call) -> bool:
    """Whether it is the gradient of an average over a batch, of which nothing is differentiated again."""
    of = tensors.differentiated(context.facts.after.interpreter, call.args, call.keywords)[0]
    return of.scale == "mean" and not keeps_graph(call) and len(call.args) < 3


def keeps_graph(call: Call) -> bool:
    """Whether a gradient may be differentiated again."""
    graph = call.argument(4, "create_graph")
    return graph is not None and not (graph.objs and all(isinstance(o, Lit) and not o.value for o in graph.objs))


def _is_averaged(context: Context, node: ast.AST) -> bool:
    """Whether a converted script averages what a call gives."""
    up = context.facts.tree_of(node).parent[node]
    return isinstance(up, ast.Call) and any(_HELPER in c.method for c in context.facts.after.calls(up))
