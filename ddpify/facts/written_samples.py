"""What the samples of a project's own data sets are, as the functions that give them write them out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, New, Value
from ddpify.facts.tree import names_stored, scope_nodes
from ddpify.placement.shape import Base
from ddpify.records import dataclass

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_LISTS = (ast.List, ast.Tuple, ast.ListComp)
_INNER = frozenset(("torch.utils.data.Subset", "torch.utils.data.ConcatDataset"))  # whose samples are those of others
_PICTURES = "torchvision.datasets."  # whose samples are a picture, which the transform is given, and its label
_PICTURE = ast.Tuple([ast.Constant(None), ast.Constant(None)])
_VIEWS = "lightly.transforms."  # which give the views of a picture in a list
_DEPTH = 4


@dataclass(frozen=True)
class _Written:
    """An expression that a sample is, or an entry of one, and the object whose function gives it."""

    node: ast.expr
    owner: New
    function: ast.FunctionDef | None


def are_lists(run: Interpreter, batch: object) -> bool:
    """Whether what a loader gives, or an entry of that, is collated from lists or tuples: every sample is known, and written out as one."""
    found = _samples(run, batch)
    return bool(found) and all(isinstance(each.node, _LISTS) for each in found)


def _samples(run: Interpreter, batch: object) -> list[_Written]:
    """What each sample is of which a loader's batch, or an entry of that, is made; empty where one of them is not known."""
    if isinstance(batch, New):
        return _of_sets(run, run.memory.get((batch, "dataset"), NOTHING))
    if not isinstance(batch, Base) or not isinstance(batch.of, tuple) or len(batch.of) != 2:
        return []
    whole, key = batch.of
    entries = [_entry(run, each, key) for each in _samples(run, whole)]
    return [each for entry in entries for each in entry] if all(entries) else []


def _of_sets(run: Interpreter, data: Value) -> list[_Written]:
    """What the samples of some data sets are."""
    out = list[_Written]()
    for made in data.objs:
        if not isinstance(made, New):
            return []
        if made.cls is None and made.path.startswith(_PICTURES):
            inner = [_Written(_PICTURE, made, None)]
        else:
            held = run.memory.get((made, "dataset"), NOTHING)
            inner = _of_sets(run, held) if made.path in _INNER else _given_by(run, made, "__getitem__")
        if not inner:
            return []
        out += inner
    return out


def _given_by(run: Interpreter, owner: New, name: str, depth: int = _DEPTH) -> list[_Written]:
    """What a method of an object of the project gives back, wherever it does; empty where that is not written out."""
    if owner.cls is None and owner.path.startswith(_VIEWS):
        return [_Written(ast.List([]), owner, None)]
    method = run.find(owner.cls, name) if owner.cls is not None else None
    functions = method.functions() if method is not None else ()
    out = list[_Written]()
    for function in functions:
        if not isinstance(function, ast.FunctionDef):
            return []
        given = [n.value for n in scope_nodes(*function.body) if isinstance(n, ast.Return)]
        found = [_resolved(run, _Written(value, owner, function), depth) if value is not None else [] for value in given]
        if not found or not all(found):
            return []
        out += [each for some in found for each in some]
    return out


def _entry(run: Interpreter, sample: _Written, key: object) -> list[_Written]:
    """An entry of a sample, by its place in a tuple or its name in a dict."""
    if sample.node is _PICTURE:
        transforms = run.memory.get((sample.owner, "transform"), NOTHING).objs if key == 0 else ()
        made = [_given_by(run, o, "__call__") if isinstance(o, New) else [] for o in transforms]
        return [each for some in made for each in some] if all(made) else []
    entries: dict[object, ast.expr] = {}
    if isinstance(sample.node, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in sample.node.elts):
        entries = dict(enumerate(sample.node.elts))
    if isinstance(sample.node, ast.Dict):
        entries = {k.value: v for k, v in zip(sample.node.keys, sample.node.values, strict=True) if isinstance(k, ast.Constant)}
    node = entries.get(key)
    return _resolved(run, _Written(node, sample.owner, sample.function), _DEPTH) if node is not None else []


def _resolved(run: Interpreter, written: _Written, depth: int) -> list[_Written]:
    """What a name was bound to, or the method of an object gives that the owner holds; anything else as it is."""
    node, owner, function = written.node, written.owner, written.function
    if isinstance(node, ast.Name) and function is not None and depth:
        inner = [*scope_nodes(*function.body)]
        bound = [n.value for n in inner if isinstance(n, ast.Assign) and _binds(n, node.id)]
        added = [n for n in inner if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)]  # what it is, it stays
        stored = {n for n in names_stored(function) if n.id == node.id} - {n.target for n in added}
        return _resolved(run, _Written(bound[-1], owner, function), depth - 1) if bound and len(stored) == len(bound) else []
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name("self"), attr=name)) if depth:
            held = run.memory.get((owner, name), NOTHING).objs
            found = [_given_by(run, o, "__call__", depth - 1) if isinstance(o, New) else [] for o in held]
            found = found or [_given_by(run, owner, name, depth - 1)]
            return [each for some in found for each in some] if all(found) else []
    return [written]


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
