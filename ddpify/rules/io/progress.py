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
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a function of that name",
        "def progress(items):\n"
        "    return items\n"
        "\n"
        "\n"
        "for item in progress([1, 2]):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a bar that is switched by the script itself",
        "for item in tqdm(range(9), disable=args.epochs > 9):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a loop without a bar",
        "for item in range(9):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a bar over the batches",
        'for x, y in tqdm(loader, desc="train"):\n'
        "    update(x, y)\n",
        "loader.sampler.set_epoch(epoch)\n"
        'for x, y in tqdm(loader, desc="train", disable=rank != 0):\n'
        "    update(x, y)\n",
        frame="batches",
    ),
    Example(
        "a bar over the epochs",
        "for epoch in trange(args.epochs):\n"
        "    train(epoch)\n",
        "for epoch in trange(args.epochs, disable=rank != 0):\n"
        "    train(epoch)\n",
        frame="loop",
    ),
)  # fmt: skip
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
