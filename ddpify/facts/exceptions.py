"""The exceptions that a script raises and catches by their names: some end a run or a loop as `break` does, and are no errors."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ddpify.facts.collect import Facts
from ddpify.facts.model import Class, Ext, Obj, Tup, Value
from ddpify.facts.tree import walk

ENDS = frozenset(("KeyboardInterrupt", "StopIteration", "SystemExit"))


def raised(facts: Facts) -> dict[ast.Raise, frozenset[Obj]]:
    """What each statement raises, by its class."""
    if raised not in facts.after.known:
        nodes = [n for tree in facts.trees.values() for n in tree.of(ast.Raise)]
        facts.after.known[raised] = {n: _class_of(facts, n.exc) for n in nodes if n.exc is not None}
    return facts.after.known[raised]  # type: ignore[return-value]


def named(value: Value) -> frozenset[Obj]:
    """The classes that `except` names: one, or a tuple of several."""
    return frozenset(o for held in value.objs for o in ((v for e in held.entries for v in e.objs) if isinstance(held, Tup) else (held,)))


def lineage(kind: Obj) -> Iterator[Obj]:
    """A class, and those of the script and of Python that it descends from."""
    yield kind
    for base in kind.bases if isinstance(kind, Class) else ():
        for o in base.objs:
            yield from lineage(o)


def exits(exits_by: ast.Call | ast.Raise) -> bool:
    """Whether `sys.exit(code)`, or `raise SystemExit(code)`, may end a process without an error."""
    call = exits_by.exc if isinstance(exits_by, ast.Raise) else exits_by
    code = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return not isinstance(code, ast.Constant) or code.value in (0, None)


def leaves(facts: Facts, function: ast.AST) -> bool:
    """Whether a function raises what ends a process without an error, or what the script catches by its name."""
    return any(isinstance(n, ast.Raise) and is_left_by(facts, n, _caught(facts)) for n in walk(function))


def is_left_by(facts: Facts, node: ast.Raise, caught: Collection[Obj]) -> bool:
    """Whether a statement raises one of the exceptions that are caught, or ends the process without an error."""
    kinds = raised(facts).get(node, frozenset[Obj]())
    ends = any(isinstance(o, Ext) and o.path == "SystemExit" for o in kinds) and exits(node)
    return ends or any(not set(caught).isdisjoint(lineage(o)) for o in kinds)


def _class_of(facts: Facts, node: ast.expr) -> frozenset[Obj]:
    return facts.after.value(node.func if isinstance(node, ast.Call) else node).objs


def _caught(facts: Facts) -> frozenset[Obj]:
    """The script's own exceptions, and those that end a loop, which some handler names."""
    if _caught not in facts.after.known:
        handlers = (h for tree in facts.trees.values() for h in tree.of(ast.ExceptHandler) if h.type is not None)
        kinds = (o for h in handlers if h.type is not None for o in named(facts.after.value(h.type)))
        facts.after.known[_caught] = frozenset(o for o in kinds if isinstance(o, Class) or (isinstance(o, Ext) and o.path in ENDS))
    return facts.after.known[_caught]  # type: ignore[return-value]
