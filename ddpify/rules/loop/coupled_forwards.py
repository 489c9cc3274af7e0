"""Forwards that combine the samples of a batch, as by a statistic of them: what they combine there is gathered."""

from __future__ import annotations

import ast

from ddpify.edits import Replace
from ddpify.facts import collect
from ddpify.facts.model import Call, Value
from ddpify.facts.runs import Run
from ddpify.placement.shape import EXTREMES
from ddpify.placement.values import is_rows
from ddpify.rules.context import Context
from ddpify.rules.loop import coupled_losses
from ddpify.rules.loop.coupled_losses import WholeBatchLoss
from ddpify.rules.loop.sharded_parts import expressions

_REDUCED = ("mean", "sum", *EXTREMES)
_MOST = 4  # so many statistics may each be computed from the one before


def places(context: Context, run: Run, loss: Value) -> list[ast.AST]:
    """Where a forward that is trained couples the samples of a batch."""
    found: set[ast.AST] = set()
    for call in run.trace.calls:
        if call.node in context.training:
            before = frozenset(n for a in (*call.args, *call.keywords.values()) for n in a.of_kind("coupled"))
            found |= (call.result.of_kind("coupled") & loss.of_kind("coupled")) - before
    return sorted(found, key=lambda n: (context.facts.tree_of(n).shown, getattr(n, "lineno", 0)))


def gathered(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """The edits by which a forward combines all ranks' samples, and a loss becomes an average over them; None where none were found."""
    if coupled_losses.pads(context, loss) or coupled_losses.may_vary_in_shape(context, loss):
        return None
    run, rows = context.facts.after, dict[ast.expr, str]()
    for _ in range(_MOST):
        found = places(context, run, coupled_losses.loss_in(run, node))
        operands = [row for place in found for row in _operands(context, run, rows, place)]
        if not found:  # what is computed from averages may be no average
            operands = _averaged(context, run, rows, node)
        if rows.keys() >= set(operands):
            return None
        rows |= dict.fromkeys(operands, "whole")
        run = collect.redistributed_run(context.facts, rows)
        if coupled_losses.is_of_all_ranks(context, run, node):
            edits = tuple(Replace(row, coupled_losses.gathered(context, row), (row,)) for row in rows)
            return WholeBatchLoss(next(iter(rows)), edits, tuple(rows))
    return None


def _operands(context: Context, run: Run, whole: dict[ast.expr, str], place: ast.AST) -> list[ast.expr]:
    """The rows that a forward combines at a place, or computes the averages and totals from that it uses there."""
    if isinstance(place, ast.Call) and (rows := _rows_of(context, run, place)):
        return rows
    if not isinstance(place, ast.expr):
        return []
    marked, averages = _marked(context, run, whole)
    used = frozenset(n for part in expressions(place) for n in marked.value(part).of_kind("mark"))
    return [row for node in averages if node in used for row in _rows_of(context, run, node)]


def _averaged(context: Context, run: Run, whole: dict[ast.expr, str], node: ast.Call) -> list[ast.expr]:
    """The rows of which a forward computes averages and totals that a loss is made from."""
    marked, averages = _marked(context, run, whole)
    used = coupled_losses.loss_in(marked, node).of_kind("mark")
    inside = {n: any(not context.training.isdisjoint(c.stack) for c in run.calls(n)) for n in averages if n in used}
    return [row for n, forward in inside.items() if forward for row in _rows_of(context, run, n)]


def _marked(context: Context, run: Run, whole: dict[ast.expr, str]) -> tuple[Run, list[ast.Call]]:
    """A run in which averages and totals of a rank's own rows are marked, and these."""
    averages = list(dict.fromkeys(c.node for c in run.trace.calls if _reduces(c)))
    return collect.redistributed_run(context.facts, whole | dict.fromkeys(averages, "mark")), averages


def _rows_of(context: Context, run: Run, node: ast.Call) -> list[ast.expr]:
    """The rows that a call is given, where all ranks make it in training, and nothing else does."""
    if not context.facts.may_edit(node) or not coupled_losses.called_by_all_ranks(context, node):
        return []
    if any(c.no_grad for c in run.calls(node)):
        return []
    given = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args, *(k.value for k in node.keywords)]
    return [n for n in given if is_rows(run.value(n))]


def _reduces(call: Call) -> bool:
    """Whether a call of a library gives an average, a total or an extreme of rows."""
    rows = any(v.scale == "sample" for v in (call.receiver, *call.args, *call.keywords.values()))
    return rows and call.result.scale in _REDUCED and not call.func.functions()
