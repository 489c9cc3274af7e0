"""Whether what a library gave is the same in every process, and what the user says of that."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from ddpify.facts.library.ranks import ROWS, Source
from ddpify.facts.library.row import row_of
from ddpify.facts.model import Call, Ext, Method, New, Obj, Part, Value
from ddpify.facts.origins import Origin, without
from ddpify.placement.shape import Scale

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_SCALES: dict[str, Scale] = {"shard": "sample", "mean": "mean", "sum": "sum"}
_OWN = ("process", "unknown")
_CLAIMED = ("needs", "uniform", "entry")  # marks of what the analysis claims, and may take back


@lru_cache(maxsize=4096)
def source(path: str) -> Source:
    """Whether a library's function, or a method of an object that its class or function made, gives all processes the same."""
    return row_of(ROWS, path) or "unknown"


def marked(run: Interpreter, node: ast.AST, path: str, result: Value) -> Value:
    """What a library gave, with where it comes from if that may differ between processes; as the user says, where they do."""
    if path in run.project.placements:
        run.trace.believed[node] = path, run.project.placements[path]
        return as_said(run.project.placements[path], result)
    kind = source(path)
    if kind == "same" or path.rpartition(".")[2][:1].isupper():  # an object says nothing until it is asked
        return result
    return Value(result.objs, result.origins | {Origin(kind, path)}, result.scale, result.shape)


def paths(run: Interpreter, call: Call) -> list[str]:
    """The dotted paths of the library's functions, and methods, that a call may be of."""
    found = [o.path for o in call.func.objs if isinstance(o, Ext)]
    of = {o: path_of(run, o.of) for o in call.func.objs if isinstance(o, Method)}
    unseen = {path_of(run, obj): name for obj, name in call.result.of_kind("method")} if not call.func.objs else {}
    return sorted({*found, *(f"{path}.{o.name}" for o, path in of.items() if path), *(f"{p}.{name}" for p, name in unseen.items() if p)})


def as_said(said: str, value: Value) -> Value:
    """A value that differs between ranks as the user says."""
    known = without(value.origins, *_OWN, *_CLAIMED)
    if said == "replicate":
        return Value(value.objs, without(known, "batch", "decided", "time", "random", "drawn"))
    if said == "per-rank":
        return Value(value.objs, known | {Origin("process", "a line declared per-rank")}, value.scale, value.shape)
    if said == "coupled":
        of_all = value.of_kind("whole") and not value.of_kind("batch")
        return Value(frozenset(), known, None if of_all else "other")
    return Value(frozenset(), known, _SCALES[said])


def path_of(run: Interpreter, obj: Obj) -> str:
    """The dotted path of what made a library's object, with the attributes that lead to it; empty where no library did."""
    names: list[str] = []
    while isinstance(obj, Part):
        names.append(obj.name)
        obj = obj.of
    if not isinstance(obj, New):
        return ""
    path = obj.path
    if obj.cls is not None:
        path = next(iter(run.library_bases(obj.cls)), "")
    return ".".join([path, *reversed(names)]) if path else ""
