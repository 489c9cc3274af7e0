"""Every helper of the runtime block is given what it takes: a tensor where it gathers rows, a number where it adds up."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.checks.problem import Problem
from ddpify.facts.model import Call, Class, Ext, Func, Lit, Method, New, Tup, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import walk
from ddpify.runtime import HELPERS, Kind

_CONTAINERS: dict[str, Kind] = {"list": "list", "dict": "dict", "set": "set", "tuple": "tuple", "collections.OrderedDict": "dict"}
_WORDS: dict[Kind, str] = {"none": "None", "text": "a text", "array": "an array", "object": "an object"}
_HOLD_OTHERS: frozenset[Kind] = frozenset(("list", "dict", "set", "tuple"))


def problems(run: Run, helpers: Mapping[ast.AST, str]) -> Iterator[Problem]:
    """The arguments of wrong kinds; `helpers` has the definitions of the helpers, and which pieces of the runtime block they are."""
    reported: set[tuple[ast.AST, int]] = set()
    theirs = {n for helper in helpers for n in walk(helper)}  # which look at what they are given
    for call in (c for c in run.trace.calls if c.node not in theirs):
        for key in {helpers[o.node] for o in call.func.objs if isinstance(o, (Func, Class)) and o.node in helpers}:
            for position, takes in enumerate(HELPERS[key].takes):
                value = _argument(call, position)
                wrong = [] if takes is None or value is None else misfits(value, takes)
                if wrong and takes is not None and (call.node, position) not in reported:
                    reported.add((call.node, position))
                    name = ast.unparse(call.node.func)
                    what = f"{name} takes {_either(sorted(takes))}, and is given {_either(wrong)} here"
                    yield Problem(call.file, call.node, what, ("kind", call.file, name, what))


def _argument(call: Call, position: int) -> Value | None:
    """What is passed at a position, where it is known."""
    if any(isinstance(a, ast.Starred) for a in call.node.args) or position >= len(call.args):
        return None
    return call.args[position]


def misfits(value: Value, takes: frozenset[Kind]) -> list[Kind]:
    """The kinds that a value may be of and a helper does not take; a container beside None, text or an object counts as that one."""
    found = {kind for obj in value.objs if (kind := _kind(obj)) is not None}
    wrong = found - takes
    if wrong & _HOLD_OTHERS and not found & takes & _HOLD_OTHERS:
        return sorted(wrong & _HOLD_OTHERS)
    known = len(found) == 1 or found == wrong
    return sorted(wrong) if known and wrong and not value.origins and len(found) >= len({type(o) for o in value.objs}) else []


def _kind(obj: object) -> Kind | None:
    """The kind of an abstract object; None where it is not known."""
    if isinstance(obj, Tup):
        return "tuple"
    if isinstance(obj, Lit):
        return "none" if obj.value is None else "text" if isinstance(obj.value, (str, bytes)) else "number"
    if isinstance(obj, New):
        return "object" if obj.cls is not None else _CONTAINERS.get(obj.path)
    return "function" if isinstance(obj, (Func, Class, Method, Ext)) else None


def _either(kinds: list[Kind]) -> str:
    return " or ".join(_WORDS.get(kind, f"a {kind}") for kind in kinds)
