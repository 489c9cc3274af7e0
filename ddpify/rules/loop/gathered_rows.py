"""What training keeps and is no average or total, as the standard deviation that scales a layer: its rows are gathered."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpify.edits import Edit, Replace
from ddpify.facts import collect
from ddpify.facts.tree import walk
from ddpify.placement.lattice import REPLICATE
from ddpify.placement.values import is_rows
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.loop import coupled_losses
from ddpify.rules.loop.coupled_forwards import by_all_ranks
from ddpify.rules.loop.sharded_parts import expressions

_DEPTH = 12  # so many steps back from what is kept, at most


@dataclass(frozen=True)
class GatheredRows:
    """The edits by which something is computed from all ranks' rows, and what each of these expressions becomes."""

    edits: tuple[Edit, ...]
    redistributes: tuple[tuple[ast.expr, str], ...]
    needs: tuple[str, ...] = ("from_all_ranks",)


def gathered(context: Context, given: Sequence[ast.expr], loss_follows: bool = False) -> GatheredRows | None:
    """The rows that some expressions are computed from, gathered; None where these are not the same on all ranks then.

    Nothing else may come of these rows, unless `loss_follows`: the rule for the loss judges then what does.
    """
    own = [node for node in given if context.differs(context.facts.after.value(node))]
    rows = list(dict.fromkeys(row for node in own for row in _rows(context, node)))
    if not rows or not all(context.facts.is_edited(row) and by_all_ranks(context, row) for row in rows):
        return None
    become = dict.fromkeys(rows, "whole")
    after = collect.redistributed_run(context.facts, become)
    functions = {context.facts.tree_of(row).function(row) for row in rows}
    mixed = any(coupled_losses.mixes(context, after, walk(function)) for function in functions)
    if (mixed and not loss_follows) or any(context.placement(after.value(node)) != REPLICATE for node in given):
        return None
    edits = tuple(Replace(row, coupled_losses.gathered(context, row, False), (row,)) for row in rows)
    return GatheredRows(edits, tuple(become.items()))


def _rows(context: Context, node: ast.expr, depth: int = _DEPTH) -> Iterator[ast.expr]:
    """The rows of a rank's own batch that an expression is computed from, in its function."""
    value = context.facts.after.value(node)
    if not depth or not context.differs(value):
        return
    if is_rows(value):
        yield node
    elif isinstance(node, ast.Name):
        tree = context.facts.tree_of(node)
        for definition in context.facts.after.definitions.reaching(node).definitions:
            made = tree.parent.get(definition)
            if isinstance(made, ast.Assign):
                yield from _rows(context, made.value, depth - 1)
    else:
        for part in expressions(node):
            yield from _rows(context, part, depth - 1)
