"""A model that is run to be shown, which rank 0 does alone: batch norm over all ranks' samples would wait there for the others."""

from __future__ import annotations

import ast

from ddpify.facts.model import Func
from ddpify.facts.runs import RUNS_TO_SHOW
from ddpify.facts.tree import arguments
from ddpify.rules.context import Context
from ddpify.rules.model import batch_norm

_SUMMARIES = frozenset("torchsummary.summary torchsummary.summary_string torchsummaryX.summary torchinfo.summary".split())


def copies(context: Context) -> dict[ast.expr, str]:
    """What becomes of wrapped models that are run to be shown: copies that evaluate, where their batch norm is that of all ranks."""
    facts, out = context.facts, dict[ast.expr, str]()
    for call in facts.after.trace.calls:
        shows = call.method in RUNS_TO_SHOW and not any(isinstance(o, Func) for o in call.func.objs)
        for node in arguments(call.node) if shows or call.func.paths() & _SUMMARIES else ():
            model = facts.model_of(facts.after.value(node)) if node in facts.unwrapped_arguments else None
            if model is not None and batch_norm.sync(context, model):
                out[node] = "copy.deepcopy({0}).eval()"
    return out
