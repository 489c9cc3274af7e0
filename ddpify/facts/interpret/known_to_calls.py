"""What a call may know of a batch beside what it is given: what its object holds, or what is around its function."""

from __future__ import annotations

import ast

from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Func, New, Obj, Tup, Value
from ddpify.facts.tree import names_read, names_stored, walk

_NESTED = 3  # so deep it is looked into what objects hold


def knows_batch(run: Interpreter, func: Value) -> bool:
    """Whether what is called holds something of a batch, or reads a name that does and is not its own."""
    for obj in func.objs:
        if isinstance(obj, (New, Func)) and any(depends(run, v, 1) for v in _held(run, obj)):
            return True
        if isinstance(obj, Func):
            inside = {n.id for n in names_stored(obj.node)} | {a.arg for a in walk(obj.node) if isinstance(a, ast.arg)}
            outer = {n.id for n in names_read(obj.node)} - inside
            held = [run.memory.get((obj.file, name), NOTHING) for name in outer]
            held += [run.lookup(name) for name in outer if obj.file == run.frame.file]
            if any(depends(run, v) for v in held):
                return True
    return False


def depends(run: Interpreter, value: Value, depth: int = 0, whole: bool = True) -> bool:
    """Whether a value, or what it holds, is computed from a batch; `whole`: or from all ranks' rows of one."""
    if value.of_kind("batch") or (whole and value.of_kind("whole")):
        return True
    inner: list[Value] = []
    for obj in value.objs if depth < _NESTED else ():
        inner += obj.entries if isinstance(obj, Tup) else _held(run, obj)
    return any(depends(run, v, depth + 1, whole) for v in inner)


def _held(run: Interpreter, obj: Obj) -> list[Value]:
    owner = obj.owner if isinstance(obj, Func) else obj
    return [v for _, v in run.memory.of(owner)] if isinstance(owner, New) else []
