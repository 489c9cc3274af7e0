"""Objects of the project's own classes that add up what they are given: which attributes are totals, and which follow from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from ddpify.facts.definitions import GROWS
from ddpify.facts.model import New
from ddpify.facts.tree import walked
from ddpify.records import dataclass
from ddpify.rules.context import Context


@dataclass(frozen=True)
class Meter:
    """How a class of the project's own adds up what it is given: the attributes it adds to, and those it computes from them."""

    totals: tuple[str, ...]
    derived: tuple[tuple[str, ast.expr], ...]
    others: frozenset[str]


def meter(context: Context, obj: New) -> Meter | None:
    """The meter that an object is; None where its class adds nothing up, or keeps more than that."""
    if obj.cls is None or context.facts.after.interpreter.is_module(obj):
        return None
    totals: dict[str, None] = {}
    assigned: dict[str, list[ast.expr]] = {}
    methods = list(_methods(context, obj))
    adding = {m.name for m in methods if any(isinstance(n, ast.AugAssign) and _self_attribute(n.target) for n in walked(m))}
    for method in methods:
        if not adding & {method.name, *_called_methods(method)} and not _called_between(context, obj, method.name, adding):
            continue  # it shows what there is after the loop
        if any(isinstance(n, ast.Attribute) and n.attr in GROWS and _self_attribute(n.value) for n in _callees(method)):
            return None
        starts = method.name in ("__init__", "reset", "clear")
        for node in walked(method):
            if isinstance(node, ast.AugAssign) and _self_attribute(node.target):
                totals.setdefault(_self_attribute(node.target))
            elif isinstance(node, ast.Assign) and not starts:
                for target in filter(_self_attribute, node.targets):
                    assigned.setdefault(_self_attribute(target), []).append(node.value)
    derived = {name: values[0] for name, values in assigned.items() if len(values) == 1 and _follows(values[0], totals.keys())}
    others = assigned.keys() - derived.keys()
    if others & totals.keys():
        return None
    return Meter(tuple(totals), tuple(derived.items()), frozenset(others)) if totals else None


def _follows(value: ast.expr, totals: Set[str]) -> bool:
    """Whether an expression is computed from totals alone."""
    reads = {_self_attribute(n) for n in ast.walk(value) if isinstance(n, ast.Attribute)} - {""}
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - {"self", "float", "max"}
    return bool(reads) and reads <= totals and not names


def _callees(method: ast.FunctionDef) -> list[ast.expr]:
    return [n.func for n in walked(method) if isinstance(n, ast.Call)]


def _called_methods(method: ast.FunctionDef) -> set[str]:
    """The methods of its own object that a method calls."""
    return {func.attr for func in _callees(method) if isinstance(func, ast.Attribute) and _self_attribute(func)}


def _called_between(context: Context, obj: New, name: str, adding: set[str]) -> bool:
    """Whether a method of an object is called in a loop that adds to it."""
    calls = [c for c in context.facts.after.calls_on.get(obj, ()) if c.loops]
    growing = {c.loops[-1].node for c in calls if c.method in adding}
    return any(loop.node in growing for c in calls if c.method == name for loop in c.loops)


def _methods(context: Context, obj: New) -> Iterator[ast.FunctionDef]:
    todo = [obj.cls]
    while todo:
        cls = todo.pop()
        if cls is not None:
            yield from (n for n in cls.node.body if isinstance(n, ast.FunctionDef))
            todo += [b for base in cls.bases for b in base.objs if isinstance(b, type(cls))]


def _self_attribute(node: ast.AST) -> str:
    """The attribute of `self` that an expression is, or an element of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else ""


def is_meter(context: Context, obj: New) -> bool:
    """Whether an object of a class of the project accumulates what a loop over sharded batches passes to it."""
    found = meter(context, obj)
    return found is not None and any(context.from_sharded_data(context.facts.after.attribute(obj, n)) for n in found.totals)
