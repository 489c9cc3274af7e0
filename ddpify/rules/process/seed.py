"""Let the ranks' random numbers differ once training starts, in scripts that seed them alike.

What it does: before the training loop of a script that seeds torch, each rank moves its seed on by its rank.
Why: with one seed everywhere all ranks draw the same dropout masks, noise and augmentation.
Safety: NOTE; rank 0 goes on with the script's own seed, so a group of one trains as before.
References: https://docs.pytorch.org/docs/stable/notes/randomness.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertBefore
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP103"
TITLE = "different random numbers on each rank"
EXAMPLES: tuple[Example, ...] = ()


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Reseed before the first training loop of a seeded script."""
    run = context.facts.after
    seeds = [c for c in run.trace.calls if "torch.manual_seed" in c.func.paths() and c.node.args]
    if not seeds or any(o.kind == "rank" for c in seeds for a in c.args for o in a.origins):
        return
    loops = sorted({loop.backward.order: loop for loop in context.facts.loops}.items())
    if not loops:
        return
    loop = loops[0][1]
    around = loop.backward.loops
    if not around:
        return
    node = around[0].node
    if not context.facts.is_entry(node) or not isinstance(node, ast.stmt):
        calls = [n for n in loop.backward.stack if context.facts.is_entry(n)]
        if not calls:
            return
        node = context.tree.statement(calls[-1])
    if any(c.order > loop.backward.order for c in seeds):
        yield context.manual(CODE, seeds[-1].node, "the seed is set while training: all ranks draw the same numbers from here on",
                             f"torch.manual_seed(... + {context.names['rank']})", level=Safety.REVIEW)
        return
    yield Change(CODE, "each rank draws its own dropout, noise and augmentation from here on", context.tree.shown, node,
                 (InsertBefore(node, f"torch.manual_seed(torch.initial_seed() + {context.names['rank']})"),), ("import torch",), Safety.NOTE)
