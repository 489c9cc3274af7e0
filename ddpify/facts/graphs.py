"""Graphs that lie side by side in a batch: rows of nodes and of edges, of which each graph has a number of its own.

The numbers in "edges" are those of nodes, the numbers in "graph" those of graphs. Rows that are taken or added up by them stay with their
own graph, and so on their own rank. "rows" marks how many nodes or edges there are, "last" the number of the last graph.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ddpify.facts.model import NOTHING, Lit, Tup, Value
from ddpify.facts.operands import entries
from ddpify.facts.origins import Origin, of_kind, only, without
from ddpify.placement.shape import Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

MARKS = "edges", "graph"
_NUMBERS = (*MARKS, "rows", "last")
_SAME_NUMBERS = frozenset(
    "to cuda cpu long int item detach clone contiguous unsqueeze expand expand_as view reshape repeat t flip unbind chunk cat stack".split()
)
_ADD_UP = frozenset("index_add scatter_add scatter_reduce index_reduce".split())


def kept(name: str, origins: frozenset[Origin]) -> frozenset[Origin]:
    """The origins of what a function makes, which numbers nodes or graphs itself only where its numbers are the same."""
    return origins if name in _SAME_NUMBERS else without(origins, *_NUMBERS)


def unnumbered(*values: Value) -> frozenset[Origin]:
    """The origins of what is made of some values, and numbers nothing itself."""
    return without(frozenset().union(*(v.origins for v in values)), *_NUMBERS)


def numbers_of(index: Value) -> tuple[str, frozenset[Any]]:
    """Whether rows are numbers of nodes ("edges") or of graphs ("graph"), and from which loaders; "" where they are neither."""
    found = [(kind, loaders) for kind in MARKS if (loaders := index.of_kind(kind))] if index.scale == "chosen" else []
    return found[0] if len(found) == 1 else ("", frozenset())


def taken(rows: Value, index: Value, node: ast.AST) -> Value | None:
    """`x[row]` of nodes, a row for each edge, `x[batch]` of graphs, a row for each node; None of any other rows."""
    kind, loaders = numbers_of(index)
    shape, by = rows.shape or Shape(node), index.shape
    scale = "chosen" if kind == "edges" else "sample"
    if not kind or rows.objs or rows.scale != scale or not loaders <= rows.batches() or shape.axis or by is None or by.ndim is None:
        return None
    return Value(frozenset(), unnumbered(rows, index), "chosen", shape.resized(by.ndim - 1, by.axis))


def added_up(node: ast.AST, index: Value, *rows: Value) -> Value | None:
    """What rows make that are added up, or pooled, by the numbers of an index: rows of nodes, or of graphs; None of anything else.

    Shape: one row for each node or graph, of nobody knows how many dimensions.
    """
    kind, loaders = numbers_of(index)
    if not kind or any(r.scale not in (None, "chosen") or r.objs or not (r.scale is None or loaders <= r.batches()) for r in rows):
        return None
    return Value(frozenset(), unnumbered(index, *rows), "chosen" if kind == "edges" else "sample", Shape(node))


def by_graph(run: Interpreter, name: str, node: ast.AST, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """What a function makes of rows of nodes and edges by their numbers; None where it uses none."""
    name = name.removesuffix("_")
    if name in ("cat", "concat", "concatenate"):
        return _joined(run, node, args, keywords)
    if name == "add" and len(args) == 2:
        return _count_of_graphs(*args) or _count_of_graphs(*args[::-1])
    if not args or not any(v.scale == "chosen" for v in (*args, *keywords.values())):
        return None
    if name == "max" and args[0].of_kind("graph") and len(args) == 1 and not keywords:
        return last(args[0])
    if name == "bincount" and len(args) == 1 and args[0].of_kind("graph") and (found := added_up(node, args[0])) is not None:
        return Value(frozenset(), found.origins, found.scale, Shape(None, 1))
    if name == "index_select" or name in _ADD_UP:
        dim, index = (keywords.get(k, args[i] if len(args) > i else NOTHING) for i, k in ((1, "dim"), (2, "index")))
        if {o.value for o in dim.objs if isinstance(o, Lit)} != {0}:
            return None
        if name == "index_select":
            return taken(args[0], index, node)
        source = next((keywords[k] for k in ("source", "src") if k in keywords), args[3] if len(args) > 3 else NOTHING)
        found = added_up(node, index, source)
        if found is None or args[0].scale != found.scale:
            return None
        return Value(frozenset(), found.origins | unnumbered(args[0]), found.scale, args[0].shape)
    return None


def last(graphs: Value) -> Value:
    """The number of the last graph of a batch, `batch.max()`, `batch[-1]`."""
    marks = {Origin("last", loader) for loader in graphs.of_kind("graph")}
    return Value(frozenset(), without(graphs.origins, "graph") | marks, "largest", Shape(None, 0))


def _count_of_graphs(number: Value, more: Value) -> Value | None:
    """`batch.max() + 1`, how many graphs there are; None of any other sum."""
    if not number.of_kind("last") or {o.value if isinstance(o, Lit) else None for o in more.objs} != {1}:
        return None
    return Value(frozenset(), without(number.origins, "last", "coupled"), "count")


def _joined(run: Interpreter, node: ast.AST, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """Rows of nodes or edges one after another, each of which stays with its graph; None of anything else."""
    parts = [v for o in (args[0].objs if args else ()) for v in (o.items if isinstance(o, Tup) else entries(run, o))]  # type: ignore[arg-type]
    batches = {loader for p in parts for loader in (p.batches() if p.scale == "chosen" else ())}
    if not parts or not any(getattr(loader, "path", "").startswith("torch_geometric.") for loader in batches) or len(batches) > 1:
        return None
    dim = keywords.get("dim", args[1] if len(args) > 1 else NOTHING)
    dims = {o.value for o in dim.objs if isinstance(o, Lit)} or {0}
    shapes = [p.shape or Shape(node) for p in parts]
    if any(p.scale != "chosen" or p.objs or {s.axis} != dims for p, s in zip(parts, shapes, strict=True)):
        return None
    marks = frozenset.intersection(*(only(p.origins, *MARKS) for p in parts))
    return Value(frozenset(), unnumbered(*parts) | marks, "chosen", shapes[0])


def is_last(base: Value, key: object) -> bool:
    """Whether `batch[-1]` is the number of the last graph."""
    return key == -1 and base.scale == "chosen" and bool(of_kind(base.origins, "graph")) and base.shape is not None and base.shape.ndim == 1
