"""Objects of the project's own classes that add up what they are given: which attributes are totals, and which follow from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from ddpify.facts.definitions import GROWS
from ddpify.facts.library import DICTS
from ddpify.facts.model import Lit, New, Value, join
from ddpify.facts.tree import names_in, walk
from ddpify.facts.writes import Write, writes_of
from ddpify.records import dataclass
from ddpify.rules.context import Context

_STARTS = ("__init__", "reset", "clear")


@dataclass(frozen=True)
class Meter:
    """How a class of the project's own adds up what it is given: the attributes it adds to, and those it computes from them."""

    totals: tuple[str, ...]
    derived: tuple[tuple[str, ast.expr], ...]
    others: frozenset[str]
    running: tuple[str, ...]  # of the others, those that are computed from what they were before
    by_sample: frozenset[str]  # totals that are added to in a loop, under a condition, or element by element


def meter(context: Context, obj: New) -> Meter | None:
    """The meter that an object is; None where its class adds nothing up, or keeps more than that."""
    if obj.cls is None or context.facts.after.interpreter.is_module(obj):
        return None
    filling = _filling(context, obj)
    totals = dict.fromkeys(name for m in filling for name in _added(m))
    assigned: dict[str, list[ast.expr]] = {}
    for name, value in (pair for m in filling if m.name not in _STARTS for pair in _assigned(m)):
        assigned.setdefault(name, []).append(value)
    derived = {name: values[0] for name, values in assigned.items() if len(values) == 1 and _follows(values[0], totals.keys())}
    others = assigned.keys() - derived.keys()
    if not totals or others & totals.keys() or any(map(_collects, filling)):
        return None
    plain = {name for m in filling for name in _added_once(context, m)}
    several = frozenset(name for m in filling for name in _added(m) if name not in plain)
    running = tuple(name for name in sorted(others) if any(_reads(value, name) for value in assigned[name]))
    return Meter(tuple(totals), tuple(derived.items()), frozenset(others), running, several)


def _filling(context: Context, obj: New) -> list[ast.FunctionDef]:
    """The methods of an object that add to what it has, and those that are called between them."""
    methods = list(methods_of(obj))
    adding = {m.name for m in methods if any(_added(m))}
    return [m for m in methods if adding & {m.name, *_called_methods(m)} or _called_between(context, obj, m.name, adding)]


def _added(method: ast.FunctionDef) -> Iterator[str]:
    """The attributes that a method adds to."""
    return filter(None, (self_attribute(w.target) for n in walk(method) for w in writes_of(n) if _adds(w)))


def _adds(write: Write) -> bool:
    """Whether an assignment adds to what it assigns, or computes it from what it was."""
    return isinstance(write.node, ast.AugAssign) or (isinstance(write.node, ast.Assign) and write.how in ("total", "cells"))


def _added_once(context: Context, method: ast.FunctionDef) -> Iterator[str]:
    """The attributes that a method adds to once each time that it is called; of a dict, what it has under a name that the call gives."""
    for write in (w for n in method.body for w in writes_of(n) if _adds(w)):
        whole = next(t for t in (getattr(write.node, "target", None), *getattr(write.node, "targets", ())) if t is not None)
        if isinstance(whole, ast.Attribute) or (isinstance(whole, ast.Subscript) and _is_name(context.facts.after.value(whole.slice))):
            yield self_attribute(whole)


def _is_name(key: Value) -> bool:
    """Whether a key is one of some strings that are written out."""
    return bool(key.objs) and all(isinstance(o, Lit) and isinstance(o.value, str) for o in key.objs) and not key.origins


def _assigned(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """The attributes that a method assigns, and what it assigns them."""
    adding = {w.node for n in walk(method) for w in writes_of(n) if _adds(w)}
    assignments = (n for n in walk(method) if isinstance(n, ast.Assign) and n not in adding)
    return ((name, n.value) for n in assignments for target in n.targets if (name := self_attribute(target)))


def _collects(method: ast.FunctionDef) -> bool:
    """Whether a method puts something into a list or the like of its object."""
    return any(isinstance(f, ast.Attribute) and f.attr in GROWS and self_attribute(f.value) for f in _callees(method))


def _callees(method: ast.FunctionDef) -> list[ast.expr]:
    return [n.func for n in walk(method) if isinstance(n, ast.Call)]


def _follows(value: ast.expr, totals: Set[str]) -> bool:
    """Whether an expression is computed from totals alone."""
    reads = {self_attribute(n) for n in walk(value) if isinstance(n, ast.Attribute)} - {""}
    names = names_in(value) - {"self", "float", "max"}
    return bool(reads) and reads <= totals and not names


def _reads(value: ast.expr, name: str) -> bool:
    """Whether an expression reads an attribute of `self`."""
    return any(isinstance(n, ast.Attribute) and self_attribute(n) == name for n in walk(value))


def _called_methods(method: ast.FunctionDef) -> set[str]:
    """The methods of its own object that a method calls."""
    return {func.attr for func in _callees(method) if isinstance(func, ast.Attribute) and self_attribute(func)}


def _called_between(context: Context, obj: New, name: str, adding: set[str]) -> bool:
    """Whether a method of an object is called in a loop that adds to it."""
    calls = [c for c in context.facts.after.calls_on.get(obj, ()) if c.loops]
    growing = {c.loops[-1].node for c in calls if c.method in adding}
    return any(loop.node in growing for c in calls if c.method == name for loop in c.loops)


def methods_of(obj: New) -> Iterator[ast.FunctionDef]:
    """The methods of an object's class, and of those of the project that it descends from."""
    todo = [obj.cls]
    while todo:
        cls = todo.pop()
        if cls is not None:
            yield from (n for n in cls.node.body if isinstance(n, ast.FunctionDef))
            todo += [b for base in cls.bases for b in base.objs if isinstance(b, type(cls))]


def self_attribute(node: ast.AST) -> str:
    """The attribute of `self` that an expression is, or an element of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else ""


def is_meter(context: Context, obj: New) -> bool:
    """Whether an object of a class of the project accumulates what a loop over sharded batches passes to it."""
    kind = meter(context, obj)
    return kind is not None and any(context.from_sharded_data(total_of(context, obj, n)) for n in kind.totals)


def total_of(context: Context, obj: New, name: str) -> Value:
    """What an attribute of a meter has added up: a number or an array, or what is in a dict."""
    run = context.facts.after
    value, filled = run.attribute(obj, name), _filled(context, obj, name)
    if filled is not None:
        value = Value(value.objs, value.origins, filled.scale, filled.shape)
    held = join([run.attribute(o, "[]") for o in value.instances() if o.path in DICTS])
    return Value(value.objs, value.origins | held.origins, value.scale or held.scale, value.shape)


def _filled(context: Context, obj: New, name: str) -> Value | None:
    """What an attribute is where it is added to; None where every method that assigns it takes part in that."""
    run, filling = context.facts.after, _filling(context, obj)
    stores = [s for s in run.stores_as.get(name, ()) if obj in s.receiver.objs]
    by = {s.node: context.facts.tree_of(s.node).function(s.node) for s in stores}
    added = [s.value for s in stores if by[s.node] in filling]
    return join(added) if added and any(f not in filling and getattr(f, "name", "") not in _STARTS for f in by.values()) else None
