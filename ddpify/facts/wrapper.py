"""What a wrapper around a model has to cope with, and what apex's does not cope with that torch's does."""

from __future__ import annotations

import ast

from ddpify.facts.collect import Facts, TrainedModel
from ddpify.facts.left_out import left_out
from ddpify.facts.model import NOTHING, Lit, Obj
from ddpify.facts.stepped import not_averaged

_CHECKPOINTS = frozenset(("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"))


def apex_fails(facts: Facts, model: TrainedModel) -> tuple[ast.AST | None, str]:
    """Where and why apex's wrapper does not serve a model; the reason is empty where it does, the place None where it is no single one."""
    if model in facts.needs_no_wrapper:
        return None, ""
    if again := reentrant(facts, model):
        return (
            again,
            "apex's wrapper averages only the gradients of the first part of this model that is computed again",
        )
    if call := next(not_averaged(facts, model, thrown_away=True), None):
        return call.node, "apex's wrapper fails at a second backward through one forward"
    if _shares_parts(facts, model):
        return None, "a part of this model is in another wrapped one, too, and apex's wrapper expects its gradients after its own forward"
    if _chosen(facts, model):
        return None, "this model uses different parts from step to step, and apex's wrapper expects the same on all ranks: it may hang"
    return None, ""


def _shares_parts(facts: Facts, model: TrainedModel) -> bool:
    """Whether a layer of a model is one of another wrapped model, too."""
    run = facts.before
    others = frozenset[Obj]().union(*(m.objs for m in facts.models if m is not model and m not in facts.needs_no_wrapper))
    around = (run.around((layer,)) for layer in run.run if not run.has_no_parameters(layer))
    return any(holders & model.objs and holders & others for holders in around)


def reentrant(facts: Facts, model: TrainedModel) -> ast.Call | None:
    """The first call under the model's forwards that computes activations again in a backward of its own (`use_reentrant=True`)."""
    calls = (c for c in facts.before.trace.calls if c.func.paths() & _CHECKPOINTS and model.forwards & set(c.stack))
    asked = ((c.node, c.keywords.get("use_reentrant", NOTHING).objs) for c in calls)
    return next((node for node, objs in asked if not any(isinstance(o, Lit) and o.value is False for o in objs)), None)


def _chosen(facts: Facts, model: TrainedModel) -> bool:
    """Whether the forward chooses the parts that it uses."""
    parts = (each for loop in facts.loops for each in left_out(facts.before, model, loop))
    return any(
        part not in uses.by_condition and (part in facts.before.run or getattr(part, "path", "") == "torch.nn.Parameter")
        for _, part, uses in parts
    )
