"""Functions and classes of a script that nothing names but themselves, and one another: nobody runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import PurePath

from ddpify.facts.tree import Tree, last_name, walk

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOKS_UP = frozenset(("eval", "exec", "globals", "locals"))  # they find what a script defines by a text
_FINDERS = frozenset(("__main__", "import_module", "__import__", "getmembers", "getmodule"))  # they find modules, and what is in them
_CODE = re.compile(r"(?<=\.)\w+|\w+(?= ?\()")  # what a text names that may be looked up, or run


def unnamed(tree: Tree, others: Collection[Tree]) -> frozenset[ast.AST]:
    """The definitions of a script's module that neither it nor other modules name, in texts of code, too; none where a text may name any.

    What follows a dot is something else's, `model.train`, and so are names in other modules, unless the script is looked up as a module.
    """
    own = {s.name for s in tree.root.body if isinstance(s, _DEFINITIONS)}
    if any(isinstance(n, ast.Call) and _looks_up(n, own) for n in tree.nodes()):
        return frozenset()
    finders = _FINDERS | {PurePath(tree.shown).stem}
    of_modules = any(_finds_modules(node, other, finders) for other in others for node in other.nodes())
    waiting = {s: set(_names(s, of_modules)) for s in tree.root.body if isinstance(s, _DEFINITIONS) and not s.decorator_list}
    beside = (node for other in others if other is not tree for node in other.nodes())
    named = {name for node in beside if of_modules or isinstance(node, ast.Constant) for name in _words(node, of_modules)}
    named |= {name for s in tree.root.body if s not in waiting for name in _names(s, of_modules)}
    while found := [s for s in waiting if s.name in named]:
        for statement in found:
            named |= waiting.pop(statement)
    return frozenset(waiting)


def _looks_up(call: ast.Call, own: Collection[str]) -> bool:
    """Whether a call may find definitions by a text, or offers all of them on the command line; one of the `own` does not."""
    name = call.func.id if isinstance(call.func, ast.Name) and call.func.id not in own else ""
    of_python = name in _LOOKS_UP or (name == "vars" and not call.args)
    return of_python or last_name(call.func) == "Fire"


def _finds_modules(node: ast.AST, tree: Tree, finders: frozenset[str]) -> bool:
    """Whether a node finds a module that may be the script: by `import`, by one of the functions that do, or by `sys.modules`."""
    match node:
        case ast.alias(name=name):
            return not finders.isdisjoint(name.split("."))
        case ast.Name(id=name):
            return name in _FINDERS
        case ast.Attribute(attr="modules"):  # of a model, they are called
            up = tree.parent[node]
            return not (isinstance(up, ast.Call) and up.func is node)
        case ast.Attribute(attr=name):
            return name in _FINDERS
    return False


def _names(node: ast.AST, of_modules: bool) -> Iterator[str]:
    return (name for part in walk(node) for name in _words(part, of_modules))


def _words(node: ast.AST, of_modules: bool) -> Collection[str]:
    """The names that a node is, those of attributes where they may be a module's, or that stand in its text."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(attr=name) if of_modules:
            return (name,)
        case ast.alias(name=name):
            return name.split(".")
        case ast.Constant(value=str(text)):
            return (text, *_CODE.findall(text)) if of_modules else _CODE.findall(text)
    return ()
