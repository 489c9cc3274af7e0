"""What is read off values and code: literals, keys, flags that a script spells out, and marks of their origins."""

from __future__ import annotations

import ast

from ddpify.facts.memory import Memory
from ddpify.facts.model import Lit, New, Obj, Part, Tup, Value, only_literal
from ddpify.facts.origins import Origin
from ddpify.placement.shape import ROWS


def is_own(obj: Obj) -> bool:
    """Whether something is defined by the project."""
    return not isinstance(obj, New) or obj.cls is not None


def is_number(value: Value) -> bool:
    """Whether a value is a number, or a tensor, that a batch has a part in."""
    return not value.objs and value.scale is not None


def is_data(memory: Memory, value: Value) -> bool:
    """Whether a value is a number or a tensor that a batch has a part in, or tuples and lists of such; or what it began as, or None."""
    if value.scale is not None and all(isinstance(o, Lit) and isinstance(o.value, (int, float, type(None))) for o in value.objs):
        return True
    tuples = [o for o in value.objs if isinstance(o, Tup)]
    lists = [o for o in value.objs if isinstance(o, New) and o.path == "list"]
    entries = all(is_data(memory, v) for o in tuples for v in o.entries) and all(is_number(v) for o in lists for _, v in memory.of(o))
    return bool(value.objs) and len(tuples) + len(lists) == len(value.objs) and entries


def marked_as_sized(value: Value, node: ast.AST) -> Value:
    """A value made for so many samples, marked as such; parts of tuples, too."""
    objs = frozenset(o.each(lambda i: marked_as_sized(i, node)) if isinstance(o, Tup) else o for o in value.objs)
    return Value(objs, value.origins | {Origin("sized", node)}, value.scale, value.shape)


def marked_as_literal(value: Value) -> Value:
    """A name or flag that the script spells out, marked as such; parts of tuples, too."""
    objs = frozenset(o.each(marked_as_literal) if isinstance(o, Tup) else o for o in value.objs)
    literal = len(objs) == 1 and isinstance(next(iter(objs)), Lit)
    return Value(objs, value.origins | {Origin("literal")} if literal else value.origins, value.scale, value.shape)


def joined_texts(parts: list[Value]) -> frozenset[Obj]:
    """The texts that several put together make, where each is one of a few literals."""
    made = [""]
    for part in parts:
        options = [o.value for o in part.objs if isinstance(o, Lit) and isinstance(o.value, str)]
        if not options or len(options) != len(part.objs) or len(options) * len(made) > 16:
            return frozenset()
        made = [a + str(b) for a in made for b in options]
    return frozenset(Lit(text) for text in made)


def literal_keys(index: Value) -> list[str]:
    """The literal keys that an index may be."""
    if index.of_kind("index"):
        return []
    return [str(o.value) for o in index.objs if isinstance(o, Lit) and isinstance(o.value, (str, int))]


def is_whole_number(value: Value) -> bool:
    """Whether a value is a whole number that is written out, or counted from one."""
    return bool(value.objs) and value.scale not in ROWS and all(isinstance(o, Lit) and type(o.value) is int for o in value.objs)


def is_whole(value: Value) -> bool:
    """Whether a value is a whole number that is written out, counted in a loop, or computed from such."""
    computed = not value.objs and value.scale is None and value.shape is not None and value.shape.ndim == 0
    counted = not value.objs and value.scale is None and value.shape is None and {o.kind for o in value.origins} == {"index"}
    return computed or counted or is_whole_number(value)


def literal(value: Value) -> object:
    """The literal that a value is, if it can be but one."""
    only = only_literal(value) if not value.of_kind("index") else None
    return only.value if only is not None else None


def sources_of(value: Value) -> frozenset[Origin]:
    """The settings and numbers that a computed value comes from."""
    return frozenset(
        Origin("from", o) for o in value.objs if isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1)
    )


def decorator_names(node: ast.AST) -> frozenset[str]:
    """The last names of the decorators of a function."""
    out = set()
    for d in getattr(node, "decorator_list", ()):
        d = d.func if isinstance(d, ast.Call) else d
        out.add(d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", ""))
    return frozenset(out)
