"""Files of a library's own that are opened as if to change them, and are only read."""

from __future__ import annotations

import ast

from ddpify.facts.effects import maker
from ddpify.facts.library.effects import STORES
from ddpify.facts.model import New, Value
from ddpify.rules.context import Context

_READING = frozenset("keys values items get close visit visititems astype asstr mean sum min max copy view reshape tolist len".split())
_READERS = ("numpy.", "torch.", "pandas.")
_WRITING = frozenset("numpy.copyto numpy.put numpy.place numpy.putmask numpy.fill_diagonal numpy.random.shuffle".split())
_ASKING = frozenset("len list tuple sorted dict print str int float isinstance type enumerate zip range".split())


def mode_of_read_file(context: Context, node: ast.Call) -> ast.Constant | None:
    """The mode `r+` of a call that opens a file, if nothing is written to the file, so that `r` would do; else None."""
    run = context.facts.after
    mode = next((m for p in run.value(node.func).paths() if p in STORES for m in [_mode(node, p)]), None)
    if mode is None or mode.value != "r+":
        return None
    for tree in context.facts.trees.values():
        deleted = [
            n.value for d in tree.nodes() if isinstance(d, ast.Delete) for n in d.targets if isinstance(n, (ast.Subscript, ast.Attribute))
        ]
        if any(_of_file(run.value(n), node) for n in deleted):
            return None
    for store in run.trace.stores:
        if _of_file(store.receiver, node):
            return None
    for call in run.trace.calls:
        if _of_file(call.receiver, node) and call.method not in _READING:
            return None
        given = (*call.args, *call.keywords.values())
        if call.node is not node and any(_of_file(v, node) for v in given) and not _reads(call.func, call.receiver):
            return None
    return mode


def _mode(node: ast.Call, path: str) -> ast.Constant | None:
    opening = STORES[path]
    at = opening.position
    places = [] if at is None else node.args[at : at + 1]
    given = next((k.value for k in node.keywords if k.arg == opening.mode), None) or next(iter(places), None)
    return given if isinstance(given, ast.Constant) else None


def _of_file(value: Value, node: ast.Call) -> bool:
    """Whether a value is the file that a call opens, or a part of it."""
    return any(m is not None and m.node is node for m in map(maker, value.objs))


def _reads(func: Value, receiver: Value) -> bool:
    """Whether a function only reads what it is given: one of arrays, or what puts it into a list."""
    paths = func.paths()
    in_list = any(isinstance(o, New) and o.path == "list" for o in receiver.objs)
    arrays = bool(paths) and all(p in _ASKING or (p.startswith(_READERS) and p not in _WRITING) for p in paths)
    return arrays or in_list or bool(func.functions())
