"""What a loader gives: its batches, laid out by a collate function of the project's own, as far as that is known."""

from __future__ import annotations

import ast

from ddpify.facts import collate, library
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Ext, Func, Lit, New, Obj, Tup, Value
from ddpify.facts.origins import Origin
from ddpify.placement.shape import Base, Shape


def batch_of(run: Interpreter, loader: Obj) -> Value:
    """A batch of a loader."""
    collated, origins = run.memory.get((loader, "collate_fn"), NOTHING), frozenset((Origin("batch", loader),))
    default = all((isinstance(o, Lit) and o.value is None) or (isinstance(o, Ext) and o.path in library.STACKING) for o in collated.objs)
    whole = Value(frozenset(), origins, "sample", Shape(loader, sure=default, several=None))
    parts = [_part(run, whole, (loader, i), layout) for i, layout in enumerate(layouts(run, collated))]
    if len(parts) < 2:
        return parts[0] if parts else whole
    return Value(frozenset((Tup(tuple(parts)),)), origins)


def _part(run: Interpreter, whole: Value, place: tuple[Obj, int], layout: collate.Layout) -> Value:
    if isinstance(layout, int):
        run.claims.note("shown", Base(place), layout + 1)
        return Value(frozenset(), whole.origins, "sample", Shape(Base(place), axis=layout))
    if layout == "rows":
        return Value(frozenset(), whole.origins, "chosen", Shape(Base(place)))
    origins = whole.origins | {Origin("thinned", place[0])} if layout == "thinned" else whole.origins
    return Value(frozenset(), origins, "sample", Shape(Base(place), sure=False, several=None))


def layouts(run: Interpreter, collated: Value, of_dict: bool = False) -> list[collate.Layout]:
    """How the one collate function that a loader may have lays out the parts of a batch; empty where it is not the project's own.

    With `of_dict`, those of the entries of a dict.
    """
    (only,) = collated.objs if len(collated.objs) == 1 else (None,)
    called = run.find(only.cls, "__call__") if isinstance(only, New) and only.cls is not None else None
    (func,) = called.objs if called is not None and len(called.objs) == 1 else (only,)
    if not isinstance(func, Func):
        return []
    key = ("entries" if of_dict else "layouts", func.node)
    if key not in run.project.memo:
        run.project.memo[key] = collate.layouts(func.node, lambda node: _path(run, func.file, node), of_dict)
    return run.project.memo[key]  # type: ignore[return-value]


def _path(run: Interpreter, file: str, node: ast.expr) -> str:
    """The dotted path of something of a library, or of Python, that a function of a file names; empty of anything else."""
    if isinstance(node, ast.Attribute):
        base = _path(run, file, node.value)
        return f"{base}.{node.attr}" if base else ""
    if not isinstance(node, ast.Name):
        return ""
    held = run.memory.held((file, node.id))
    paths = held.paths() if held is not None else {node.id}
    return next(iter(paths)) if len(paths) == 1 else ""
