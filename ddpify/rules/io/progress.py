"""One progress bar.

What it does: `tqdm(...)` gets `disable=rank != 0`.
Why: N bars write over each other.
Safety: safe; a disabled bar's methods do nothing.
References: https://tqdm.github.io/docs/tqdm/
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import SetArgument
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument

CODE = "DDP502"
TITLE = "one progress bar"
EXAMPLES = (
    Example("an own function of that name", "def tqdm(x):\n    return x\nfor i in tqdm([1]):\n    pass\n"),
    Example("a bar", "for x in tqdm(loader):\n    pass\n", "for x in tqdm(loader, disable=rank != 0):\n    pass\n"),
)
_BARS = frozenset(("tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm"))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Disable bars on other ranks; report bars in other modules."""
    run = context.facts.after
    for tree in context.facts.trees.values():
        for node in tree.nodes():
            if not isinstance(node, ast.Call) or not run.value(node.func).paths() & _BARS or argument(node, None, "disable") is not None:
                continue
            if tree is not context.tree:
                if tree.statement(node) in run.trace.visited:
                    yield context.manual(CODE, node, "every rank draws this progress bar", "disable=dist.get_rank() != 0")
                continue
            yield Change(
                CODE,
                "one progress bar, on rank 0",
                tree.shown,
                node,
                (SetArgument(node, "disable", f"{context.names['rank']} != 0"),),
                group="guards",
            )
