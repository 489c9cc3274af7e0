"""Forwards that combine the samples of a batch, as by a statistic of them: what they combine there is gathered.

So are the rows of averages from which a loss is computed that is no average, and counts of samples become those of all ranks, as in
`torch.arange(len(rows))`, the labels of rows that are compared with one another.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts import collect, library
from ddpify.facts.assumed import GRADED
from ddpify.facts.model import NOTHING, Call, Stack, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import walk
from ddpify.placement.shape import EXTREMES
from ddpify.placement.values import is_rows
from ddpify.rules.context import Context
from ddpify.rules.loop import coupled_losses, shared_numbers
from ddpify.rules.loop.branches import has_own_test, made_once
from ddpify.rules.loop.coupled_losses import loss_in, of_training
from ddpify.rules.loop.sharded_parts import expressions
from ddpify.rules.loop.shared_numbers import SharedNumbers

_Operands = Callable[[Run, ast.expr], list[ast.expr]]
_AVERAGED = ("mean", "sum", *EXTREMES)
_MOST = 5  # so many statistics may each be computed from the one before


def places(context: Context, run: Run, loss: Value) -> list[ast.AST]:
    """Where a forward that is trained couples the samples of a batch."""
    found: set[ast.AST] = set()
    for call in run.trace.calls:
        if call.node in context.training:
            before = frozenset(n for a in (*call.args, *call.keywords.values()) for n in a.of_kind("coupled"))
            made = frozenset(n for v in library.with_entries([call.result]) for n in v.of_kind("coupled"))
            found |= (made & loss.of_kind("coupled")) - before
    return sorted(found, key=lambda n: (context.facts.tree_of(n).shown, getattr(n, "lineno", 0)))


def gathered(context: Context, node: ast.Call, loss: Value) -> SharedNumbers | None:
    """The edits by which a forward combines all ranks' samples, and a loss becomes that of the whole batch; None where none were found."""
    if coupled_losses.pads(context, loss) or coupled_losses.may_vary_in_shape(context, loss):
        return None
    if any(context.facts.after.attribute(o, name).instances() for o in loss.of_kind("batch") for name in ("sampler", "batch_sampler")):
        return None  # whose batches the ranks may not share equally
    if any("torch.autograd.grad" in c.func.paths() and _is_by_weights(c) for c in context.facts.after.trace.calls):
        return None  # a rank's own part of the gradient
    searched = (_search(context, node, operands) for operands in (_rows_of, _rows_on_the_right, _rows_in_turn))
    return next((found for found in searched if found is not None), None)


def _is_by_weights(call: Call) -> bool:
    """Whether a gradient is by parameters, and not by rows."""
    by = call.argument(1, "inputs") or NOTHING
    return any(v.of_kind("parameters") or v.of_kind("weight") for v in library.with_entries([by]))


def _search(context: Context, node: ast.Call, operands: _Operands) -> SharedNumbers | None:
    """The edits, where forwards combine these operands; what is computed from rows that were gathered is looked at anew."""
    run, how = context.facts.after, dict[ast.expr, str]()
    for _ in range(_MOST):
        for nodes in _candidates(context, run, how, node, operands):
            if found := _further(context, how, nodes):
                break
        else:
            return None
        how |= found
        run = collect.redistributed_run(context.facts, how)
        if coupled_losses.is_of_all_ranks(context, run, node):
            return SharedNumbers(how, tuple(_edit(context, n, kind) for n, kind in how.items()))
    return None


def _candidates(context: Context, run: Run, how: dict[ast.expr, str], node: ast.Call, operands: _Operands) -> Iterator[list[ast.expr]]:
    """What may be gathered next, the most specific first."""
    yield _combined(context, run, how, node, operands)
    yield _averaged(context, run, how, node)
    yield _counted(context, run, how, node)


def _combined(context: Context, run: Run, how: dict[ast.expr, str], node: ast.Call, operands: _Operands) -> list[ast.expr]:
    """The rows that forwards combine, or compute the averages and totals from that they combine with others."""
    found = list[ast.expr]()
    for place in places(context, run, loss_in(run, node)):
        if not isinstance(place, ast.expr):
            continue
        direct = isinstance(place, ast.Call) or (isinstance(place, ast.BinOp) and isinstance(place.op, ast.MatMult))
        rows = operands(run, place) if direct or operands is _rows_in_turn else []
        if not rows:
            marked, averages = _marked(context, run, how)
            used = frozenset(n for part in expressions(place) for n in marked.value(part).of_kind("mark"))
            rows = [row for average in averages if average in used for row in _rows_of(run, average)]
        found += rows
    return found


def _averaged(context: Context, run: Run, how: dict[ast.expr, str], node: ast.Call) -> list[ast.expr]:
    """The rows of the averages and totals that a loss is computed from, in what trains."""
    marked, averages = _marked(context, run, how)
    used = loss_in(marked, node).of_kind("mark")
    inside = {c.node for c in run.trace.calls if not context.training.isdisjoint(c.stack)}
    made = [n for n in averages if n in used and (n in inside or isinstance(n, ast.BinOp))]
    return [row for average in made for row in _rows_of(run, average)]


def _counted(context: Context, run: Run, how: dict[ast.expr, str], node: ast.Call) -> list[ast.expr]:
    """The numbers of samples that a loss is computed from."""
    counts: list[ast.expr] = [c.node for c in run.trace.calls if not c.func.functions()]
    counts += [n for tree in context.facts.trees.values() for n in tree.of(ast.Subscript)]
    counts = [n for n in counts if (v := run.value(n)).scale == "count" and v.shape is None and not v.objs]
    if not _further(context, how, counts):
        return []
    marked = collect.redistributed_run(context.facts, how | dict.fromkeys(counts, "mark"))
    used = loss_in(marked, node).of_kind("mark")
    return [n for n in dict.fromkeys(counts) if n in used]


def _marked(context: Context, run: Run, how: dict[ast.expr, str]) -> tuple[Run, list[ast.expr]]:
    """A run in which the averages and totals of a rank's own rows are marked, and these; none where none of the rows can be gathered."""
    averages: list[ast.expr] = [c.node for c in run.trace.calls if c.result.scale in _AVERAGED and not c.func.functions()]
    products = (n for tree in context.facts.trees.values() for n in tree.of(ast.BinOp) if isinstance(n.op, ast.MatMult))
    averages += [n for n in products if run.value(n).scale in _AVERAGED]
    averages = [n for n in dict.fromkeys(averages) if any(run.value(part).scale == "sample" for part in expressions(n))]
    if not _further(context, how, (row for average in averages for row in _rows_of(run, average))):
        return run, []
    return collect.redistributed_run(context.facts, how | dict.fromkeys(averages, "mark")), averages


def _rows_of(run: Run, node: ast.expr) -> list[ast.expr]:
    """The rows that a call, or a product, is of."""
    return [row for part in expressions(node) for row in _rows_in(run, part)]


def _rows_on_the_right(run: Run, node: ast.expr) -> list[ast.expr]:
    """The rows that each sample's own are multiplied by, as in attention among samples: `queries @ keys.t()`."""
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    return [row for part in list(expressions(node))[-1:] for row in _rows_in(run, part)] if product else _rows_of(run, node)


def _rows_in_turn(run: Run, node: ast.expr) -> list[ast.expr]:
    """What calls are made on in a loop over layers, where what one gives is the rows of the next: rows, if those before them are."""
    calls = [next(expressions(n), None) for n in walk(node) if isinstance(n, ast.Call)]
    return [n for n in calls if n is not None and run.value(n).scale in ("sample", "other") and not run.value(n).objs]


def _rows_in(run: Run, node: ast.expr) -> list[ast.expr]:
    """An operand that is rows, or the rows that it is another view or a multiple of: `rows.t()`, `scale * rows`."""
    value, parts = run.value(node), list(expressions(node))
    own = [part for part in parts if run.value(part).scale == "sample"]
    multiple = isinstance(node, ast.BinOp) and len(own) == 1 and all(run.value(part).scale is None for part in parts if part not in own)
    if value.scale == "sample" and (multiple or not is_rows(value)):
        return [row for part in own for row in _rows_in(run, part)]
    return [node] if is_rows(value) else []


def _further(context: Context, how: dict[ast.expr, str], nodes: Iterable[ast.expr]) -> dict[ast.expr, str]:
    """Those of some rows and counts that can be gathered beside what is gathered already."""
    return dict(_kinds(context, (n for n in nodes if n not in how)))


def _kinds(context: Context, nodes: Iterable[ast.expr]) -> Iterable[tuple[ast.expr, str]]:
    """How each of some rows and counts changes: without gradients, in an evaluation, it does not; those that all ranks can gather."""
    for node in filter(context.facts.may_edit, dict.fromkeys(nodes)):
        calls = _calls_beside(context, node)
        trained = [c for c in calls if not c.no_grad]
        if _are_alike(context, trained):
            yield node, "whole" if len(trained) == len(calls) else GRADED["whole"]


def by_all_ranks(context: Context, node: ast.expr) -> bool:
    """Whether all ranks compute an expression, with gradients or without, from batches that they share equally.

    What the first of these batches sets up, nothing computes after it.
    """
    calls = _calls_beside(context, node)
    trained = [c for c in calls if _are_alike(context, [other for other in calls if other.stack == c.stack])]
    first = min((c.order for c in trained), default=0)
    once = all(c.order > first and made_once(context, c) for c in calls if c not in trained)
    return _are_alike(context, trained if once else calls)


def _calls_beside(context: Context, node: ast.expr) -> list[Call]:
    """The calls that an expression makes, or else those of its statement, or of its function."""
    tree = context.facts.tree_of(node)
    around = (node, tree.statement(node), tree.function(node))
    return next((found for up in around if (found := [c for n in walk(up) for c in context.facts.after.calls(n)])), [])


def _are_alike(context: Context, calls: Iterable[Call]) -> bool:
    """Whether all ranks make some calls, under each of those that lead to them, on rows of training batches."""
    given: dict[Stack, list[Value]] = {}
    for c in calls:
        given.setdefault(c.stack, []).extend(v for v in (c.receiver, *c.args, c.result) if v.of_kind("batch"))
        if has_own_test(context, c):
            return False
    return bool(given) and all(values and all(of_training(context, v) for v in values) for values in given.values())


def _edit(context: Context, node: ast.expr, kind: str) -> Edit:
    """The edit that makes rows, or a count, those of all ranks."""
    if context.facts.after.value(node).scale == "count":
        return shared_numbers.edit(context, node, kind in GRADED.values())
    return Replace(node, coupled_losses.gathered(context, node, kind in GRADED.values()), (node,))
