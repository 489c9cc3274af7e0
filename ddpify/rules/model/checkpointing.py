"""Activations that are computed again by a backward inside the backward: `torch.utils.checkpoint` with `use_reentrant=True`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.collect import TrainedModel
from ddpify.facts.model import NOTHING, Lit
from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context

CODE = "DDP201"
_PATHS = frozenset(("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"))


def reentrant(context: Context, model: TrainedModel) -> ast.Call | None:
    """The first call of the older kind of checkpointing under the model's forwards."""
    calls = [
        call
        for call in context.facts.before.trace.calls
        if call.func.paths() & _PATHS
        and model.forwards & set(call.stack)
        and not any(isinstance(o, Lit) and o.value is False for o in call.keywords.get("use_reentrant", NOTHING).objs)
    ]
    return calls[0].node if calls else None


def findings(context: Context, node: ast.Call) -> Iterator[Finding]:
    """What must hold where parts of such a model rest."""
    why = (
        "parts of this model get no gradient, and its activations are computed again the older way: that only works while every step "
        "uses the same parts"
    )
    fix = "pass use_reentrant=False, and find_unused_parameters=True to DistributedDataParallel"
    yield context.manual(CODE, node, why, fix, level=Safety.NOTE)
