"""Numbers of a batch that are reduced where they are made: what is read after the loop is computed from them as no reduction undoes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ddpify.facts.model import New, Obj, Tup, Value, ordered
from ddpify.facts.origins import by_kind
from ddpify.facts.runs import Run
from ddpify.facts.tree import walk
from ddpify.records import replace
from ddpify.rules.base import Change
from ddpify.rules.context import Context
from ddpify.rules.loop import padding
from ddpify.rules.loop.branches import has_own_test, passes_alike, under_own_test
from ddpify.rules.loop.coupled_losses import loss_in, of_training
from ddpify.rules.loop.sharded_parts import reduce_edits

_WHY = "what is read after the loop is computed from the numbers of batches, and is no total of them: each is made that of all ranks"
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


def _needed(context: Context, numbers: list[ast.expr], uses: Collection[ast.AST]) -> list[ast.expr]:
    """Those of some numbers without which uses would be of a rank's own: what comes of the others is reduced after the loop already."""
    for number in numbers:
        rest = [n for n in numbers if n is not number]
        if rest and not are_own(_with(context, rest, "agreed"), uses):
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
