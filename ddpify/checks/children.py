"""A process that never joined the group does not use it: the workers of loaders and pools, and the processes that a script starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from ddpify.checks.order import is_collective
from ddpify.checks.problem import Problem
from ddpify.facts import library
from ddpify.facts.model import Call, Class, Func, Lit, New, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import walk
from ddpify.launchers.pure import Purity

_PROCESSES = frozenset(f"{package}.Process" for package in ("multiprocessing", "torch.multiprocessing", "multiprocessing.context"))
_POOLS = frozenset(
    ("multiprocessing.Pool", "torch.multiprocessing.Pool", "multiprocessing.pool.Pool", "concurrent.futures.ProcessPoolExecutor")
)
_HANDED_OVER = frozenset(("map", "imap", "imap_unordered", "starmap", "apply", "apply_async", "map_async", "starmap_async", "submit"))
_OF_DATASETS = ("__getitem__", "__getitems__", "__iter__", "__next__")


class _Place(NamedTuple):
    """A function, and the module that it stands in."""

    node: ast.AST
    file: str


def problems(run: Run) -> Iterator[Problem]:
    """The collectives that other processes than the ranks themselves would run."""
    todo = list(dict.fromkeys(_started(run)))
    seen = set(todo)
    purity: dict[str, Purity] = {}
    while todo:
        place = todo.pop()
        for node in walk(place.node):
            if not isinstance(node, ast.Call):
                continue
            value = run.value(node.func)
            names = purity.setdefault(place.file, Purity(_tree(run, place.file)))
            paths = value.paths() | {names.path(node.func)}
            if any(is_collective(path) for path in paths):
                what = ast.unparse(node.func)
                why = f"{what} runs in a process of its own here, which never joined the process group"
                yield Problem(place.file, node, why, ("child", place.file, what))
            for found in _called(run, value, names, node, place.file):
                if found not in seen:
                    seen.add(found)
                    todo.append(found)


def _tree(run: Run, file: str) -> ast.Module:
    project = run.interpreter.project
    return project.entry.tree if file == project.entry.name else project.files[file].tree


def _called(run: Run, value: Value, names: Purity, node: ast.Call, file: str) -> Iterator[_Place]:
    """The functions of the project that a call runs: by its value where it was seen, else by the name in its module."""
    yield from _functions(run, value)
    if not value.objs and isinstance(node.func, ast.Name) and node.func.id in names.functions:
        yield _Place(names.functions[node.func.id], file)


def _functions(run: Run, value: Value) -> Iterator[_Place]:
    for obj in value.objs:
        if isinstance(obj, Func):
            yield _Place(obj.node, obj.file)
        elif isinstance(obj, Class):
            yield from _methods(run, obj, ("__init__",))
        elif isinstance(obj, New) and obj.cls is not None:
            yield from _methods(run, obj.cls, ("__call__", "forward"))


def _methods(run: Run, cls: Class, names: tuple[str, ...]) -> Iterator[_Place]:
    for name in names:
        found = run.interpreter.find(cls, name)
        for func in found.objs if found is not None else ():
            if isinstance(func, Func):
                yield _Place(func.node, func.file)


def _started(run: Run) -> Iterator[_Place]:
    """What processes beside the ranks run."""
    for call in run.trace.calls:
        paths = call.func.paths()
        if paths & _PROCESSES and (target := call.argument(1, "target")) is not None:
            yield from _functions(run, target)
        elif paths & _POOLS and (first := call.keywords.get("initializer")) is not None:
            yield from _functions(run, first)
        elif call.method in _HANDED_OVER and call.receiver.kinds() & _POOLS and call.args:
            yield from _functions(run, call.args[0])
        elif not library.LOADERS.isdisjoint(paths) and _has_workers(call):
            for name, position in (("collate_fn", 6), ("worker_init_fn", 10)):
                yield from _functions(run, call.argument(position, name) or Value())
            for dataset in (call.argument(0, "dataset") or Value()).instances():
                if dataset.cls is not None:
                    yield from _methods(run, dataset.cls, _OF_DATASETS)
        for obj in call.func.objs:
            if isinstance(obj, Class) and any(base in _PROCESSES for base in run.interpreter.library_bases(obj)):
                yield from _methods(run, obj, ("run",))


def _has_workers(call: Call) -> bool:
    """Whether a loader may have workers of its own: there are none unless it says so."""
    given = call.argument(5, "num_workers")
    if given is None:
        return "**" in call.keywords
    return {o.value for o in given.objs if isinstance(o, Lit)} != {0} or len(given.objs) != 1
