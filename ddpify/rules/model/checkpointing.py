"""Activations that are computed again by a backward inside the backward: `torch.utils.checkpoint` with `use_reentrant=True`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context

CODE = "DDP201"


def findings(context: Context, node: ast.Call) -> Iterator[Finding]:
    """What must hold where parts of such a model rest."""
    why = (
        "parts of this model get no gradient, and its activations are computed again the older way: that only works while every step "
        "uses the same parts"
    )
    fix = "pass use_reentrant=False, and find_unused_parameters=True to DistributedDataParallel"
    yield context.manual(CODE, node, why, fix, level=Safety.NOTE)
