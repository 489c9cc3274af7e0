"""Arguments that are given by unpacking: `model(*batch)`."""

from __future__ import annotations

import ast

from ddpify.facts import library, named, tensor_entries
from ddpify.facts.interpret.items import sliced
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Class, Func, New, Obj, Tup, Value


def entries(run: Interpreter, node: ast.Starred, value: Value, func: Value, given: int) -> list[Value]:
    """What `*value` passes to `func` behind the `given` arguments before it; of what has any number of parts, as many as are taken."""
    (only,) = value.objs if len(value.objs) == 1 else (None,)
    if isinstance(only, Tup):
        return list(only.entries)
    if isinstance(only, New) and (known := _in_order(run, node, only)):
        return known
    taken = max((_taken(run, o) for o in func.objs), key=len, default=[])[given:]
    sizes = value.shape.ndim if value.scale == "count" and value.shape is not None else None  # `*x.shape`
    parts = tensor_entries.unpacked(run, value, n, node) if (n := sizes or len(taken)) > 1 else None
    if parts:
        return parts
    held = [run.memory.get((only, str(i))) for i in range(len(taken))]
    each = run.element(value)
    return [each | otherwise if own is None else own for own, otherwise in zip(held, taken, strict=True)] or [each]


def _in_order(run: Interpreter, node: ast.Starred, obj: New) -> list[Value]:
    """The entries of a list that was written out, or the modules of `*sequential` or `*sequential[1:]`; none where they are not known."""
    held = run.memory.written_out(obj)
    if held is None and obj.path in library.CONTAINERS and not any((obj, key) in run.memory for key in ("[?]", "[many]", "iterable")):
        held = run.memory.numbered(obj)
    if held is None:
        return []
    part = node.value.slice if isinstance(node.value, ast.Subscript) else None
    some = sliced(run, Tup(tuple(held)), part) if isinstance(part, ast.Slice) else Tup(tuple(held))
    return list(some.items) if some is not None else []


def _taken(run: Interpreter, obj: Obj) -> list[Value]:
    """The arguments that something takes by their places, each with what it is where it is not given; none of a library's."""
    if isinstance(obj, Func):
        spec = obj.node.args
        names = [*spec.posonlyargs, *spec.args]
        defaults = [run.trace.values.get(d, NOTHING) for d in spec.defaults]
        return [*[NOTHING] * (len(names) - len(defaults)), *defaults][obj.owner is not None :]
    if isinstance(obj, New) and obj.path == named.TUPLE:
        return [NOTHING] * len(named.fields_of_tuple(run, obj))
    if isinstance(obj, New) and obj.path in library.WRAPPERS:
        return max((_taken(run, o) for o in run.memory.get((obj, "module"), NOTHING).objs), key=len, default=[])
    cls = obj if isinstance(obj, Class) else obj.cls if isinstance(obj, New) else None
    methods = ("__init__",) if isinstance(obj, Class) else ("forward", "__call__")
    found = [run.find(cls, name) for name in methods] if cls is not None else []
    return max((_taken(run, o)[1:] for v in found if v is not None for o in v.objs if isinstance(o, Func)), key=len, default=[])
