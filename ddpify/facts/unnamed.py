"""Functions and classes of a script that nothing names but themselves, and one another: nobody runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ddpify.facts.tree import Tree, last_name, walk

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOKS_UP = frozenset(("eval", "exec", "globals", "locals"))  # they find what a script defines by a text
_WORD = re.compile(r"\w+")


def unnamed(tree: Tree, others: Iterable[Tree]) -> frozenset[ast.AST]:
    """The definitions of a script's module that neither it nor other modules name, in texts, too; none where a text may name any."""
    if any(isinstance(n, ast.Call) and _looks_up(n) for n in tree.nodes()):
        return frozenset()
    waiting = {s: set(_names(s)) for s in tree.root.body if isinstance(s, _DEFINITIONS) and not s.decorator_list}
    named = {name for other in others if other is not tree for node in other.nodes() for name in _words(node)}
    named |= {name for s in tree.root.body if s not in waiting for name in _names(s)}
    while found := [s for s in waiting if s.name in named]:
        for statement in found:
            named |= waiting.pop(statement)
    return frozenset(waiting)


def _looks_up(call: ast.Call) -> bool:
    """Whether a call may find definitions by a text, or offers all of them on the command line."""
    of_python = isinstance(call.func, ast.Name) and (call.func.id in _LOOKS_UP or (call.func.id == "vars" and not call.args))
    return of_python or last_name(call.func) == "Fire"


def _names(node: ast.AST) -> Iterator[str]:
    return (name for part in walk(node) for name in _words(part))


def _words(node: ast.AST) -> Iterable[str]:
    """The names that a node is, or that stand in its text."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return (name,)
        case ast.alias(name=name):
            return name.split(".")
        case ast.Constant(value=str(text)):
            return _WORD.findall(text)
    return ()
