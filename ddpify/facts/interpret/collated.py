"""What a loader gives: its batches, laid out by a collate function of the project's own, as far as that is known."""

from __future__ import annotations

import ast

from ddpify.facts import collate, dataset_items, library
from ddpify.facts.dataset_items import Item, Same
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Class, Ext, Func, Lit, Method, New, Obj, Part, Tup, Value, join
from ddpify.facts.origins import Origin
from ddpify.placement.shape import Base, Scale, Shape


def batch_of(run: Interpreter, loader: Obj) -> Value:
    """A batch of a loader."""
    collated, origins = run.memory.get((loader, "collate_fn"), NOTHING), frozenset((Origin("batch", loader),))
    default = all((isinstance(o, Lit) and o.value is None) or (isinstance(o, Ext) and o.path in library.STACKING) for o in collated.objs)
    scale: Scale = "chosen" if is_foreign(collated) else "sample"  # such as the nodes of the samples' graphs
    whole = Value(frozenset(), origins, scale, Shape(loader, sure=default, several=None))
    items = _items(run, loader)
    laid_out = layouts(run, collated, items=items)
    parts = [_part(run, whole, (loader, i), layout) for i, layout in enumerate(laid_out)]
    if laid_out == ["columns"] and isinstance(loader, New):
        made = library.columns(run, run.objects.new("list", loader.node, loader.stack), origins)
        return Value(frozenset((made,)), origins)
    if len(parts) < 2:
        return parts[0] if parts else whole
    return Value(frozenset((Tup(tuple(parts)),)), origins)


def is_foreign(collated: Value) -> bool:
    """Whether a collate function may be one of a package of which it is not known whether it gives one row for each sample."""
    homes = {o.of if isinstance(o, (Method, Part)) else o for o in collated.objs}
    paths = {o.path for o in homes if isinstance(o, Ext) or (isinstance(o, New) and o.cls is None)}
    return any(path.partition(".")[0] not in library.COLLATING and path not in ("list", "tuple") for path in paths)


def _part(run: Interpreter, whole: Value, place: tuple[Obj, int], layout: collate.Layout) -> Value:
    if isinstance(layout, int):
        run.claims.note("shown", Base(place), 2 if isinstance(layout, collate.Padded) else layout + 1)
        return Value(frozenset(), whole.origins, "sample", Shape(Base(place), axis=layout))
    if isinstance(layout, Same):
        return join([run.memory.get((o, str(layout)), NOTHING) for o in run.memory.get((place[0], "dataset"), NOTHING).objs])
    if isinstance(layout, collate.Mixed) and layout.rows:
        return Value(frozenset(), whole.origins | {Origin("coupled", layout.node)}, "other", Shape(Base(place), sure=False, several=None))
    if layout == "rows":
        return Value(frozenset(), whole.origins, "chosen", Shape(Base(place)))
    origins = whole.origins | {Origin("thinned", place[0])} if layout == "thinned" else whole.origins
    return Value(frozenset(), origins, "sample", Shape(Base(place), sure=False, several=None))


def _items(run: Interpreter, loader: Obj) -> tuple[Item, ...]:
    """The entries of a sample of the one data set of the project's own that a loader may have."""
    classes = {o.cls if isinstance(o, New) else None for o in run.memory.get((loader, "dataset"), NOTHING).objs}
    cls = classes.pop() if len(classes) == 1 else None
    found = run.find(cls, "__getitem__") if cls is not None else None
    (func,) = found.objs if found is not None and len(found.objs) == 1 else (None,)
    if not isinstance(func, Func) or cls is None:
        return ()
    return dataset_items.items(func.node, cls.node, FileNames(run, func.file, func.cls))


def layouts(run: Interpreter, collated: Value, of_dict: bool = False, items: tuple[Item, ...] = ()) -> list[collate.Layout]:
    """How the one collate function that a loader may have lays out the parts of a batch; empty where it is not the project's own.

    With `of_dict`, those of the entries of a dict; `items` are the entries of a sample.
    """
    (only,) = collated.objs if len(collated.objs) == 1 else (None,)
    called = run.find(only.cls, "__call__") if isinstance(only, New) and only.cls is not None else None
    (func,) = called.objs if called is not None and len(called.objs) == 1 else (only,)
    if not isinstance(func, Func):
        return []
    key = ("entries" if of_dict else "layouts", func.node, items)
    if key not in run.project.memo:
        run.project.memo[key] = collate.layouts(func.node, FileNames(run, func.file, func.cls), of_dict, items)
    return run.project.memo[key]  # type: ignore[return-value]


class FileNames:
    """What the names of a file of the project stand for."""

    def __init__(self, run: Interpreter, file: str, cls: Class | None = None) -> None:
        self.run, self.file, self.cls = run, file, cls

    def path(self, node: ast.expr) -> str:
        """The dotted path of something of a library, or of Python; empty of anything else."""
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return f"{base}.{node.attr}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        held = self.run.memory.held((self.file, node.id))
        paths = held.paths() if held is not None else {node.id}
        return next(iter(paths)) if len(paths) == 1 else ""

    def function(self, node: ast.expr) -> tuple[ast.FunctionDef, FileNames] | None:
        """A function of the project, and the names of its file."""
        held = self.run.memory.held((self.file, node.id)) if isinstance(node, ast.Name) else None
        method = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
        if method and self.cls is not None:
            held = self.run.find(self.cls, node.attr)  # type: ignore[attr-defined]
        (only,) = held.objs if held is not None and len(held.objs) == 1 else (None,)
        if not isinstance(only, Func) or not isinstance(only.node, ast.FunctionDef) or only.owner is not None:
            return None
        return only.node, FileNames(self.run, only.file, only.cls)
