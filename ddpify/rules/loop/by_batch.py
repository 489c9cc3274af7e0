"""Numbers of a batch that are reduced where they are made: what is read after the loop is computed from them as no reduction undoes.

Of a number that is no average or total of samples, such as a batch's F1 score, the rows that it is computed from are gathered.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ddpify.edits import Replace
from ddpify.facts.model import New, Obj, Tup, Value, ordered
from ddpify.facts.origins import by_kind
from ddpify.facts.runs import Run
from ddpify.facts.tree import last_name, walk
from ddpify.placement.values import is_rows
from ddpify.records import replace
from ddpify.rules.base import Change
from ddpify.rules.context import Context
from ddpify.rules.loop import coupled_losses, padding
from ddpify.rules.loop.branches import has_own_test, passes_alike, under_own_test
from ddpify.rules.loop.coupled_losses import loss_in, of_training
from ddpify.rules.loop.sharded_parts import is_no_tensor, reduce_edits

_WHY = "what is read after the loop is computed from the numbers of batches, and is no total of them: each is made that of all ranks"
_WHY_OF_ROWS = "what is read after the loop is made of a number that no average over ranks gives: it is computed from all ranks' rows"
_ARRAYS = ("cpu", "numpy", "tolist")
_GRAPH = frozenset(("forward", "graded", "weight", "parameters"))
_OTHER = frozenset(("decided", "offset", "thinned", "part"))
_KEYED = ("setdefault", "insert", "__setitem__")
_DEPTH = 4  # of containers and objects in one another


def reduce(context: Context, code: str, uses: Collection[ast.AST]) -> Change | None:
    """The change by which no use is of a rank's own numbers any more; None where there is none."""
    for detached in (True, False):
        numbers = _first(context, list(_numbers(context, detached)), uses)
        if numbers and not are_own(_with(context, numbers, "agreed"), uses):
            numbers = _needed(context, numbers, uses)
            edits, needs = reduce_edits(context, numbers)
            shown, agreed = context.facts.tree_of(numbers[0]).shown, tuple((n, "agreed") for n in numbers)
            return Change(code, _WHY, shown, numbers[0], tuple(edits), needs=tuple(needs), redistributes=agreed)
    return None


def gather(context: Context, code: str, uses: Collection[ast.AST], start: Context, lists: Collection[ast.AST]) -> Change | None:
    """The change by which uses are computed from all ranks' rows; None where there is none.

    So are those of `lists`, which are a rank's own at the `start`: gathered after the loop, they would be in another order.
    """
    rows = _first(context, list(_rows(context)), uses)
    beside = _first(start, list(_rows(start)), lists) if rows and lists else []
    if not rows or are_own(_with(context, rows, "whole"), uses) or (lists and are_own(_with(start, [*rows, *beside], "whole"), lists)):
        return None
    rows = list(dict.fromkeys((*_needed(context, rows, uses, "whole"), *beside)))
    gathered, shown = tuple((n, "whole") for n in rows), context.facts.tree_of(rows[0]).shown
    edits = tuple(Replace(n, f"{context.names['from_all_ranks']}({{0}})", (n,)) for n in rows)
    return Change(code, _WHY_OF_ROWS, shown, rows[0], edits, needs=("from_all_ranks",), redistributes=gathered)


def _needed(context: Context, numbers: list[ast.expr], uses: Collection[ast.AST], how: str = "agreed") -> list[ast.expr]:
    """Those of some numbers, or rows, without which uses would be of a rank's own: what comes of the others is reduced after the loop."""
    for number in numbers:
        rest = [n for n in numbers if n is not number]
        if rest and not are_own(_with(context, rest, how), uses):
            numbers = rest
    return numbers


def _with(context: Context, numbers: list[ast.expr], how: str) -> Context:
    """The context of the script once some numbers are something else."""
    known = context.assumed
    return context.assuming(replace(known, redistributed={**known.redistributed, **dict.fromkeys(numbers, how)}))


def _first(context: Context, numbers: list[ast.expr], uses: Collection[ast.AST]) -> list[ast.expr]:
    """Those of some numbers that uses are computed from, and that are not computed from others; none that a loss is computed from."""
    if not numbers:
        return []
    marked = _with(context, numbers, "mark").facts.after
    trained = {n for t in context.facts.loops for n in loss_in(marked, t.backward.node).of_kind("mark")}
    used = {n for v in _held(marked, uses) for n in v.of_kind("mark")} - trained
    first = [n for n in numbers if n in used and marked.value(n).of_kind("mark") - trained == {n}]
    return list(dict.fromkeys(_as_number(context, n) for n in first))


def _as_number(context: Context, node: ast.expr) -> ast.expr:
    """`node.item()`, where that is all that becomes of a tensor."""
    up = context.facts.tree_of(node).parent[node]
    call = context.facts.tree_of(node).parent[up] if isinstance(up, ast.Attribute) and up.attr == "item" else None
    return call if isinstance(call, ast.Call) and call.func is up else node


def _numbers(context: Context, detached: bool) -> Iterator[ast.expr]:
    """The totals, averages and counts of a batch that all ranks compute in training, and that are `detached`: no gradient goes through."""
    for node, value in context.facts.after.trace.values.items():
        made = isinstance(node, (ast.Call, ast.BinOp))
        read = not detached and isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if not isinstance(node, ast.expr) or not (made or read) or value.scale not in ("mean", "sum", "count"):
            continue
        if value.scale == "count" and value.shape is not None:  # all lengths of a tensor, of which only one is of its rows
            continue
        kinds = by_kind(value.origins).keys()
        known = not value.objs and of_training(context, value) and _OTHER.isdisjoint(kinds) and (not detached or _GRAPH.isdisjoint(kinds))
        if known and context.facts.is_edited(node) and _on_all_ranks(context, node):
            yield node


def _rows(context: Context) -> Iterator[ast.expr]:
    """The rows of a batch that all ranks have in training, where they are turned into an array, or given to a function that makes none."""
    for node, value in context.facts.after.trace.values.items():
        read = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        several = value.shape is not None and value.shape.several is True
        if not isinstance(node, ast.expr) or not read or several or not is_rows(value) or not of_training(context, value):
            continue
        varies = coupled_losses.pads(context, value) or coupled_losses.may_vary_in_shape(context, value)
        known = context.facts.is_edited(node) and not varies and not is_no_tensor(context, node)
        if known and _leaves_rows(context, node) and _on_all_ranks(context, node):
            yield node


def _leaves_rows(context: Context, node: ast.expr) -> bool:
    """Whether rows are turned into an array where an expression stands, or given to a function that makes something else of them."""
    up = context.facts.tree_of(node).parent.get(node)
    if isinstance(up, ast.Attribute):
        return up.attr in _ARRAYS and not (isinstance(node, ast.Call) and last_name(node.func) in _ARRAYS)
    given = isinstance(up, ast.Call) and node in up.args and up not in context.training
    return given and isinstance(up, ast.expr) and context.facts.after.value(up).scale == "other"


def _on_all_ranks(context: Context, node: ast.expr) -> bool:
    """Whether all ranks evaluate an expression equally often."""
    run, function = context.facts.after, context.facts.tree_of(node).function(node)
    calls = [c for n in walk(node) for c in run.calls(n)] or run.calls_to(function)
    if under_own_test(context, node) or any(has_own_test(context, c) or padding.own_length(context, c) is not None for c in calls):
        return False
    return all(passes_alike(context, loop) for c in calls for loop in c.loops)


def _held(run: Run, uses: Collection[ast.AST]) -> Iterator[Value]:
    """What some expressions are, and what the tuples, containers and objects that they may be hold; not what is in networks."""
    level, seen = [run.value(use) for use in uses], set[Obj]()
    for _ in range(_DEPTH):
        yield from level
        objs = {o for v in level for o in v.objs} - seen
        seen |= objs
        held = (o for o in ordered(objs) if not (isinstance(o, New) and run.interpreter.is_module(o)))
        level = [v for o in held for v in (o.entries if isinstance(o, Tup) else run.of(o).values())]
    yield from level


def are_own(context: Context, uses: Collection[ast.AST]) -> bool:
    """Whether uses are of a rank's own batches, or of what is kept under names that these gave."""
    run = context.facts.after
    held = list(_held(run, uses))
    objs = {o for v in held for o in v.instances()}
    keys = [(s.receiver, run.value(s.node.slice)) for s in run.trace.stores if isinstance(s.node, ast.Subscript)]
    keys += [(c.receiver, c.args[0]) for name in _KEYED for c in run.calls_named(name) if c.args]
    return any(_is_own(context, v) for v in held) or any(_is_own(context, v) and not objs.isdisjoint(r.objs) for r, v in keys)


def _is_own(context: Context, value: Value) -> bool:
    """Whether a value is of a rank's own batches, or chosen by one."""
    return context.from_sharded_data(value) or context.chosen_by_own_batch(value)
