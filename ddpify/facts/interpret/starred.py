"""Arguments that are given by unpacking: `model(*batch)`."""

from __future__ import annotations

import ast

from ddpify.facts import library, tensor_entries
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Class, Func, New, Obj, Tup, Value


def entries(run: Interpreter, node: ast.Starred, value: Value, func: Value, given: int) -> list[Value]:
    """What `*value` passes to `func` behind the `given` arguments before it; of a batch, as many parts as are taken."""
    (only,) = value.objs if len(value.objs) == 1 else (None,)
    if isinstance(only, Tup):
        return list(only.entries)
    taken = max((_positions(run, o) for o in func.objs), default=0) - given
    parts = tensor_entries.unpacked(run, value, taken, node) if taken > 1 else None
    return parts or [run.element(value)]


def _positions(run: Interpreter, obj: Obj) -> int:
    """How many arguments something of the project takes by their places; 0 of anything else."""
    if isinstance(obj, Func):
        return len(obj.node.args.posonlyargs) + len(obj.node.args.args) - (obj.owner is not None)
    if isinstance(obj, New) and obj.path in library.WRAPPERS:
        return max((_positions(run, o) for o in run.memory.get((obj, "module"), NOTHING).objs), default=0)
    cls = obj if isinstance(obj, Class) else obj.cls if isinstance(obj, New) else None
    names = ("__init__",) if isinstance(obj, Class) else ("forward", "__call__")
    found = [run.find(cls, name) for name in names] if cls is not None else []
    return max((_positions(run, o) - 1 for v in found if v is not None for o in v.objs if isinstance(o, Func)), default=0)
