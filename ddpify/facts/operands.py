"""Values of the interpreter as operands of the transfer rules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, Lit, New, Obj, Tup, Value, join, just, only_literal
from ddpify.facts.origins import Origin
from ddpify.placement.shape import CHOSEN, LATER, PLACES, ROWS, UNKNOWN, Argument, Base, Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter


ENDS = "[ends]"  # the key of what a `range` goes to
MOVED = "[moved]"  # and that a list has, once it was sorted or turned around
_NESTED = 6  # so deep are lists looked into: one may hold itself


def argument(run: Interpreter, value: Value, depth: int = 0) -> Argument:
    """A value as an operand of a transfer rule."""
    if is_places(run, value):
        return Argument("sample", Shape(None, 1, places=True), PLACES)
    if any(len(value.objs) > 1 or (isinstance(o, Tup) and o.rest) for o in value.objs) and (several := _of_lists(run, value, depth)):
        return several
    only = next(iter(value.objs)) if len(value.objs) == 1 else only_literal(value)
    shape = value.shape
    match only:
        case Tup(rest=rest) if rest is not None:  # of more entries than are known
            first = tuple(argument(run, i, depth + 1) for i in only.items) if rest.scale is None and depth < _NESTED else ()
            return Argument("other" if any(i.scale for i in only.entries) else None, first=first)
        case New(path="list") if shape is not None and shape.base == only:  # one entry for each sample
            return Argument(value.scale, shape)
    if shape is None and value.scale in ROWS:
        shape = Shape(Base(value), sure=False)
    if isinstance(only, New) and _starts_later(run, only):
        return Argument(None, literal=LATER)
    tuple_of_batch = value.scale in ROWS and shape is not None and shape.several is not False  # or a list of the one tensor: `[rows]`
    return Argument(value.scale, shape, _literal(value, only), None if tuple_of_batch else _items(run, only, depth))


def _starts_later(run: Interpreter, numbers: New) -> bool:
    """Whether something is `range(1, n)`, or a list of its numbers."""
    if numbers.path == "list":
        return any(_starts_later(run, o) for o in run.memory.get((numbers, "iterable"), NOTHING).instances() if o.path == "range")
    start = run.memory.get((numbers, "[start]"), NOTHING) if numbers.path == "range" else NOTHING
    return bool(start.objs) and all(isinstance(o, Lit) and type(o.value) is int and o.value > 0 for o in start.objs)


def _literal(value: Value, only: Obj | None) -> object:
    """The literal that a value is, the one object that it may be being `only`."""
    literal = only.value if isinstance(only, Lit) and value.scale is None and not value.of_kind("index") else UNKNOWN
    if literal is None and value.shape is not None:  # None or a tensor
        return UNKNOWN
    if literal is UNKNOWN and value.scale == "sum" and value.of_kind("rows"):
        return CHOSEN
    return PLACES if literal is UNKNOWN and value.shape is not None and value.shape.places else literal


def _items(run: Interpreter, only: Obj | None, depth: int) -> tuple[Argument, ...] | None:
    """The entries of a tuple or list, as operands; None of anything else."""
    if depth == _NESTED:
        return None
    match only:
        case Tup():
            return tuple(argument(run, i, depth + 1) for i in only.items)
        case New(path="list", node=ast.BinOp()):  # `[1] * more`
            return None
        case New(path="list", node=ast.Call(args=[_, *_])) if not entries(run, only):  # `list(range(n))`
            return None
        case New(path="list"):
            return tuple(argument(run, v, depth + 1) for v in entries(run, only))
    return None


def _of_lists(run: Interpreter, value: Value, depth: int) -> Argument | None:
    """What `rows + [more]` holds, where all its entries are rows of the batch: several tensors; None of anything else.

    So does one of several tuples, or one of nobody knows how many entries.
    """
    lists = [o for o in value.objs if isinstance(o, Tup) or (isinstance(o, New) and o.path == "list")] if depth < _NESTED else []
    known = [v for o in lists for v in (o.entries if isinstance(o, Tup) else entries(run, o))] if len(lists) == len(value.objs) else []
    held = [argument(run, v, depth + 1) for v in known]
    shapes = [e.shape for e in held if e.shape is not None and e.scale in ROWS]
    if not held or len(shapes) < len(held) or len({(e.scale, s.axis) for e, s in zip(held, shapes, strict=True)}) > 1:
        return None
    common = shapes[0] if all(s == shapes[0] for s in shapes) else Shape(Base(value), 0, shapes[0].axis, all(s.sure for s in shapes))
    return Argument(held[0].scale, common._replace(several=True))


def is_places(run: Interpreter, value: Value) -> bool:
    """Whether a value is `range(len(x))`, or a list of its numbers in their order."""
    return bool(value.objs) and not value.of_kind("drawn") and all(isinstance(o, New) and _in_order(run, o) for o in value.objs)


def _in_order(run: Interpreter, obj: New) -> bool:
    """Whether something numbers the samples of a batch one after another: `range(n)`, `list(range(n))`, `[i for i in range(n)]`."""
    element, inner = run.element(just(obj)), run.memory.get((obj, "iterable"), NOTHING)
    if obj.path not in ("list", "range") or (obj, MOVED) in run.memory or not element.of_kind(PLACES) or element.scale or element.objs:
        return False
    match obj.node:
        case ast.Call(args=[_], keywords=[]) if obj.path == "range":
            return not any(map(run.memory.get((obj, ENDS), NOTHING).of_kind, ("offset", "fraction", "divided", "multiple")))
        case ast.Call(func, [_], []) if run.trace.values.get(func, NOTHING).paths() <= {"list", "tuple"}:
            return is_places(run, inner)
        case ast.ListComp(ast.Name(name), [ast.comprehension(ast.Name(target), over, [])]):
            return name == target and is_places(run, run.trace.values.get(over, NOTHING))
    return False


def entries(run: Interpreter, listed: New) -> list[Value]:
    """The entries of a list: one by one where it was written out, else what all of them are."""
    out = run.memory.numbered(listed)
    held = run.memory.get((listed, "[]"))
    if held is None and (listed, "iterable") in run.memory:  # `list(values)`
        held = run.element(just(listed))
    return out if out and (held is None or join(out).scale == held.scale) else [held] if held is not None else []


def given(run: Interpreter, args: Iterable[Value], keywords: Mapping[str, Value]) -> tuple[list[Argument], dict[str, Argument]]:
    """The operands of a call; `**` is among them where it may pass more than is known."""
    return [argument(run, a) for a in args], {k: argument(run, v) for k, v in keywords.items() if k != "**" or is_open(run, v)}


def is_open(run: Interpreter, mapping: Value) -> bool:
    """Whether `**mapping` may pass what is not known: it is no dict whose keys were all written out."""
    return not mapping.objs or not all(isinstance(o, New) and _is_written_out(run, o) for o in mapping.objs)


def _is_written_out(run: Interpreter, made: New) -> bool:
    if made.path != "dict" or any((made, key) in run.memory for key in ("[?]", "**")):
        return False
    match made.node:
        case ast.Dict(keys=keys):
            return all(isinstance(key, ast.Constant) for key in keys)
        case ast.Call(args=args, keywords=named):
            return not args and all(k.arg is not None for k in named)
    return isinstance(made.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))  # its parameter `**kwargs`


def drawn_inside(run: Interpreter, values: Iterable[Value]) -> frozenset[Origin]:
    """Where what lists hold, and lists in them, was drawn."""
    todo, seen, found = [o for v in values for o in v.objs], set[Obj](), set[Origin]()
    while todo:
        obj = todo.pop()
        listed = isinstance(obj, New) and obj.path in ("list", "dict", "set")
        if obj in seen or not (listed or isinstance(obj, Tup)):
            continue
        seen.add(obj)
        for value in obj.entries if isinstance(obj, Tup) else [run.element(just(obj))]:
            found |= {o for o in value.origins if o.kind in ("random", "drawn")}
            todo += value.objs
    return frozenset(found)
