"""Where the wrapper of a model gets into what is saved as a whole object, or a module: in a dict, a list or an object of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddpify.facts import library
from ddpify.facts.model import Call, Class, Func, New, Obj, Tup, Value
from ddpify.facts.tree import Tree, arguments

if TYPE_CHECKING:
    from ddpify.facts.runs import Run

_SAVES = frozenset(("save", "dump", "dumps", "save_checkpoint"))
_PUTS = frozenset(("append", "appendleft", "insert", "add", "update", "setdefault"))
_DEPTH = 6


def saves(run: Run) -> Iterator[Call]:
    """The calls of a library that write a whole object, with a wrapper somewhere inside what they are given."""
    for call in run.trace.calls:
        own = any(isinstance(o, (Func, Class)) for o in call.func.objs)
        if call.method in _SAVES and not own and any(_holds_model(run, value) for value in (*call.args, *call.keywords.values())):
            yield call


def keys(run: Run) -> Iterator[tuple[Call, Value]]:
    """The calls that ask modules for their state dict which have a wrapper somewhere inside, and these modules."""
    for call in run.trace.calls:
        asked = call.receiver.instances() if call.method == "state_dict" else frozenset()
        modules = Value(frozenset(o for o in asked if run.interpreter.is_module(o) or o.path.startswith("torch.nn.")))
        if _holds_model(run, modules):
            yield call, modules


def whole(run: Run, models: frozenset[Obj]) -> Iterator[Call]:
    """The calls that pickle one of some models, alone or inside of something."""
    for call in run.trace.calls:
        if call.func.paths() & library.PICKLES and any(_reaches(run, value, models) for value in (*call.args, *call.keywords.values())):
            yield call


def _reaches(run: Run, value: Value, models: frozenset[Obj]) -> bool:
    """Whether a value is one of some models, or holds one."""
    within = (held for _, inner in _within(run, value) for held in inner)
    return any(run.unwrap(held) & models for held in (value, *within))


def entries(run: Run, tree: Tree) -> dict[ast.expr, ast.Call]:
    """The expressions of some files that put a wrapper into what is saved, each with a call that saves it."""
    out: dict[ast.expr, ast.Call] = {}
    saved = [(call, value) for call in saves(run) for value in (*call.args, *call.keywords.values())]
    for call, value in (*saved, *keys(run)):
        for node in _put_inside(run, tree, value):
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and node in tree.parent and _is_wrapper(run.value(node)):
                out.setdefault(node, call.node)
    return out


def _put_inside(run: Run, tree: Tree, value: Value, depth: int = 0) -> Iterator[ast.AST]:
    """The expressions that were put into the holders of wrappers in a value, and into what these were made of: `nn.ModuleList(models)`."""
    for holder in _holders(run, value):
        for node in (n for given in _stored_expressions(run, tree, holder) for n in _either(given)):
            yield node
            if isinstance(holder, New) and holder.path in library.CONTAINERS and isinstance(node, ast.expr) and depth < _DEPTH:
                yield from _put_inside(run, tree, run.value(node), depth + 1)


def _either(node: ast.AST) -> Iterator[ast.AST]:
    """An expression; where a condition chooses between two, both."""
    if isinstance(node, ast.IfExp):
        yield from (*_either(node.body), *_either(node.orelse))
    else:
        yield node


def _is_wrapper(value: Value) -> bool:
    """Whether a value is a wrapper wherever it is a model."""
    instances = [o for o in value.instances() if o.path in library.DDPS]
    return bool(instances) and all(o in instances or not isinstance(o, New) for o in value.objs)


def _holds_model(run: Run, value: Value) -> bool:
    return next(_holders(run, value), None) is not None


def _holders(run: Run, value: Value) -> Iterator[New | Tup]:
    """The containers and objects in a value that hold a wrapper themselves."""
    for obj, inner in _within(run, value):
        if isinstance(obj, (New, Tup)) and any(o.path in library.DDPS for v in inner for o in v.instances()):
            yield obj


def _within(run: Run, value: Value) -> Iterator[tuple[Obj, list[Value]]]:
    """The objects in a value, each once, and what they hold."""
    seen, layer = set[Obj](), set(value.objs)
    for _ in range(_DEPTH):
        seen |= layer
        found = [(obj, _inside(run, obj)) for obj in layer]
        yield from found
        layer = {o for _, inner in found for held in inner for o in held.objs} - seen


def _inside(run: Run, obj: Obj) -> list[Value]:
    """What a container or an object of the project holds; a network of a library is one thing."""
    if isinstance(obj, Tup):
        return list(obj.items)
    container = isinstance(obj, New) and (obj.path in library.COLLECTIONS | library.CONTAINERS or obj.path in library.HOLDERS)
    own = isinstance(obj, New) and (obj.cls is not None or obj.path == "torch.nn.Module")
    return list(run.of(obj).values()) if container or own else []


def _stored_expressions(run: Run, tree: Tree, holder: New | Tup) -> Iterator[ast.AST]:
    """The expressions whose values a container or an object was given."""
    if isinstance(holder, Tup):
        for node in tree.of(ast.Tuple):
            if holder in run.value(node).objs:
                yield from node.elts
        return
    match holder.node:
        case ast.Dict(values=entries) | ast.List(elts=entries) | ast.Tuple(elts=entries) | ast.Set(elts=entries):
            yield from entries
        case ast.DictComp(value=entry) | ast.ListComp(elt=entry) | ast.SetComp(elt=entry) | ast.GeneratorExp(elt=entry):
            yield entry
        case ast.Call() as call:
            yield from arguments(call)
    for store in run.trace.stores:
        statement = tree.parent.get(store.node)
        constructed = holder.cls is not None and holder.node in store.stack
        if not constructed and holder in store.receiver.objs and isinstance(statement, ast.Assign) and store.node in statement.targets:
            yield statement.value
    for put in run.trace.calls:
        if put.method in _PUTS and holder in put.receiver.objs:
            yield from arguments(put.node)
