"""Rows in the order of their samples' own numbers, and back: `lengths, order = lengths.sort(0)`, `x[order]`, `y[order.argsort()]`.

Such rows are "ordered" by the sort; what it gives is the "order", and sorted once more, what "restores" the rows. Each rank sorts its own
rows, and all that is computed of rows in one order is as it was in another. Rows in different orders make pairs of different samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, Lit, New, Value
from ddpify.facts.origins import Origin, without
from ddpify.placement.shape import NUMBERED, ROWS, Base, Shape
from ddpify.records import replace

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_SORTS = frozenset(("sort", "argsort"))
_SAME_NUMBERS = frozenset(
    "to cuda cpu long int type astype detach clone copy contiguous ascontiguousarray numpy from_numpy as_tensor tensor LongTensor tolist"
    " index_select".split()
)


def by_order(run: Interpreter, name: str, node: ast.AST, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """What sorts the samples of a batch gives, or what puts rows into its order; None of any other function."""
    if name in _SORTS and args:
        dim = keywords.get("dim", keywords.get("axis", args[1] if len(args) > 1 else NOTHING))
        found = _sorted(run, node, args[0], dim, name == "sort")
        down = keywords.get("descending", args[2] if len(args) > 2 else NOTHING)
        return _from_the_largest(found, down) if name == "sort" else found
    if name in ("flip", "flipud") and args:
        return from_behind(args[0])
    if name == "index_select" and args:
        dim, index = (keywords.get(word, args[i] if len(args) > i else NOTHING) for i, word in ((1, "dim"), (2, "index")))
        axis = args[0].shape.axis if args[0].shape is not None else 0
        return put_in_order(args[0], index) if {o.value for o in dim.objs if isinstance(o, Lit)} == {axis} else None
    return None


def _sorted(run: Interpreter, node: ast.AST, x: Value, dim: Value, several: bool) -> Value | None:
    shape = x.shape if x.shape is not None else Shape(Base(x), sure=False)
    dims = {o.value for o in dim.objs if isinstance(o, Lit)}
    if shape.base is not None and run.claims.has(shape.base, 2 - shape.dims):
        return None  # not the samples, but the entries of each
    if x.scale != "sample" or x.objs or shape.axis or shape.ndim not in (None, 1) or not dims <= {0, -1} or (dim.objs and not dims):
        return None
    before = x.of_kind("order")
    sort = node, run.stack, x.origins
    marks = {Origin("restores", of) for of in before} if before else {Origin("ordered", sort), Origin("order", sort)}
    origins = without(x.origins, "order", "restores", *(["ordered"] if before else []))
    return Value(frozenset(), origins | marks, "sample", shape.resized()._replace(several=several))


def _from_the_largest(found: Value | None, down: Value) -> Value | None:
    """Numbers of the samples that were sorted, where the largest comes first."""
    if found is None or found.shape is None or not down.objs or not all(isinstance(o, Lit) and o.value is True for o in down.objs):
        return found
    return replace(found, shape=found.shape._replace(falling=NUMBERED))


def from_behind(order: Value) -> Value | None:
    """An order of the samples, the last of them first: `order[::-1]`; None of anything else."""
    sorts = order.of_kind("order")
    if order.scale != "sample" or order.objs or not sorts or order.shape is None or order.shape.ndim not in (None, 1):
        return None
    marks = {Origin("order", ("from behind", sort)) for sort in sorts}
    shape = order.shape._replace(falling="")
    return replace(order, origins=without(order.origins, "order", "restores") | marks, shape=shape)


def sorted_rows(run: Interpreter, node: ast.AST, rows: Value) -> Value:
    """What Python's `sorted` gives of the rows of a batch: the rows in another order; of what is no single number, nobody knows by what."""
    found = _sorted(run, node, rows, NOTHING, several=False)
    if found is None:
        return Value(frozenset(), rows.origins, "other")
    return replace(found, origins=without(found.origins, "order", "restores"))


def lost(run: Interpreter, method: ast.expr, held: Value) -> bool:
    """Let a list of the rows of a batch be in nobody knows which order, as `rows.reverse()` leaves it; False where it is none."""
    if held.scale not in ROWS or not isinstance(method, ast.Attribute) or not isinstance(method.value, (ast.Name, ast.Attribute)):
        return False
    run.assign(method.value, Value(held.objs, held.origins, "other"))
    return True


def numbered(run: Interpreter, node: ast.AST, listed: Value) -> Value:
    """The numbers of the samples of a batch, sorted by what is asked for each: a list that is an order of them."""
    return replace(listed, origins=listed.origins | {Origin("order", (node, run.stack, listed.origins))})


def put_in_order(rows: Value, index: Value) -> Value | None:
    """`rows[order]`: the rows in another order, or in their own again; None where the index is no order of the samples."""
    order, back = index.of_kind("order"), index.of_kind("restores")
    listed = all(isinstance(o, New) and o.path == "list" for o in index.objs)
    if rows.scale != "sample" or rows.objs or not listed or not (order or back):
        return None
    shape = rows.shape and rows.shape._replace(falling="")
    origins = rows.origins | without(index.origins, "order", "restores", "ordered") | {Origin("ordered", sort) for sort in order}
    if not back <= rows.of_kind("ordered"):
        return Value(frozenset(), origins, "other")
    return Value(frozenset(), origins - {Origin("ordered", sort) for sort in back}, "sample", shape)


def kept(name: str, origins: frozenset[Origin]) -> frozenset[Origin]:
    """The origins of what a function makes, which is an order itself only where its numbers are the same."""
    return origins if name in _SAME_NUMBERS else without(origins, "order", "restores")


def differ(values: Iterable[Value]) -> bool:
    """Whether some rows are in another order than others."""
    return len({v.of_kind("ordered") for v in values if v.scale in ROWS}) > 1
