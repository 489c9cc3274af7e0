"""Batches that are trained on in parts of so many rows, with one step for all parts: a rank has its share of each part.

Rank r holds every N-th row of a batch from the r-th on. Cut into parts of n / N rows, the ranks' first parts are together the first n rows
of the batch, and so on: as many parts, of the same rows, each averaged over all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit
from ddpify.facts.model import Value
from ddpify.facts.tree import last_name
from ddpify.rules.base import Change, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument

CODE = "DDP402"


def share_parts(context: Context, node: ast.Call, loss: Value, obligations: tuple[Obligation, ...]) -> Iterator[Change | Finding | Proof]:
    """Give each rank its share of each part of a batch that this loss is an average over."""
    edits: list[Edit] = []
    needs: tuple[str, ...] = ()
    for cut in sorted(loss.of_kind("part"), key=lambda n: (n.lineno, n.col_offset)):
        sizes = _sizes(context, cut)
        if sizes and all(_of_batches(context, s) for s in sizes):
            continue  # as many rows as a batch has: of several batches put together, as many parts on every rank
        single = any(isinstance(s, ast.Constant) and s.value == 1 for s in sizes)
        if not sizes or single or any(context.facts.after.value(s).scale is not None for s in sizes):
            why = "these parts of a batch weigh the same: a rank may get fewer or shorter ones, and gradients differ from the original's"
            fix = "weigh each part by its rows: loss * part.size(0) / batch.size(0)"
            yield context.manual(CODE, cut, why, fix, obligations, Safety.REVIEW)
            return
        for size in sizes:
            if not context.facts.is_edited(size):
                fix = f"{ast.unparse(size)} // dist.get_world_size()"
                yield context.manual(
                    CODE,
                    size,
                    "this cuts a batch into parts of so many rows, and every rank has only its part of the batch",
                    fix,
                    obligations,
                )
                return
            if not context.facts.after.value(size).of_kind("world") and not context.sizes_a_batch(size):
                more, needs = context.divided(size)
                edits += more
    if not edits:
        yield Proof(obligations[0])
        return
    why = "each rank has its own rows of each part of a batch"
    yield Change(CODE, why, context.tree.shown, node, tuple(edits), needs=needs, discharges=obligations)


def _of_batches(context: Context, size: ast.expr) -> bool:
    """Whether a size is a multiple of how many samples a batch has."""
    value = context.facts.after.value(size)
    return value.scale == "count" and not value.of_kind("fraction")


def _sizes(context: Context, cut: ast.expr) -> list[ast.expr]:
    """The expressions that say how many rows a part has."""
    if isinstance(cut, ast.Call):
        of_library = context.facts.after.value(cut.func).paths() & {"torch.split"}
        size = argument(cut, 1 if of_library else 0, "split_size") or argument(cut, None, "split_size_or_sections")
        return [size] if size is not None and last_name(cut.func) == "split" else []
    return []
