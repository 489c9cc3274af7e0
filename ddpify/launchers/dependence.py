"""Which statements must keep their order: one changes what the other reads or changes, by name or through an object that a name holds."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property

from ddpify.facts.tree import names_in, walk
from ddpify.launchers.pure import READS, Purity

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BUILTINS = frozenset(dir(builtins)) - {"next", "setattr", "delattr", "exec", "eval"}
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"torch", "torchvision", "numpy"}
_IN_PLACE = ("shuffle",)


class Dependence:
    """The names that statements of one file read, and those whose values they may change; functions that they run are looked into."""

    def __init__(self, tree: ast.Module, pure: Purity) -> None:
        self.tree, self.pure = tree, pure
        self._known: dict[str, tuple[set[str], set[str]]] = {}

    @cached_property
    def _definitions(self) -> dict[str, ast.stmt]:
        return {s.name: s for s in self.tree.body if isinstance(s, _DEFINITIONS)}

    @cached_property
    def _fixed(self) -> set[str]:
        """The names that hold the same thing all along: modules, and what is defined."""
        return set(self._definitions) | set(self.pure.imports)

    def reads(self, nodes: Sequence[ast.AST]) -> set[str]:
        """The names that nodes mention, and those that the functions and classes that they mention take from the module."""
        return set[str]().union(*(names for names, _ in self._parts(nodes)))

    def changes(self, nodes: Sequence[ast.AST]) -> set[str]:
        """The names that nodes bind, and those that hold what they may change, themselves or by what they call."""
        return set[str]().union(*(changed for _, changed in self._parts(nodes)))

    def _parts(self, nodes: Sequence[ast.AST]) -> Iterator[tuple[set[str], set[str]]]:
        """What nodes mention and change, and what the functions and classes do that they mention, themselves or one another."""
        todo, seen = list[str](), set[str]()
        for node in nodes:
            names = names_in(node)
            todo += names & self._definitions.keys()
            yield names, set(self._changed(node))
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                names, changed = self._inside(name)
                todo += names & self._definitions.keys()
                yield names, changed

    def _inside(self, name: str) -> tuple[set[str], set[str]]:
        """What a function or class of the module takes from it, and may change there."""
        if name not in self._known:
            node = self._definitions[name]
            local = _local(node)
            names = names_in(node) - local
            self._known[name] = names, set(self._changed(node)) - local
        return self._known[name]

    def _changed(self, node: ast.AST) -> Iterator[str]:
        for inner in walk(node):
            if isinstance(inner, ast.Global):
                yield from inner.names
            elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                yield inner.id
            elif isinstance(inner, (ast.Attribute, ast.Subscript)) and not isinstance(inner.ctx, ast.Load):
                yield from self._object_name(inner.value)
            elif isinstance(inner, ast.Call):
                yield from self._changed_by(inner)

    def _changed_by(self, call: ast.Call) -> Iterator[str]:
        """What a call may change: the object whose method it is, and what it is given, unless it is known to leave that alone."""
        path = self.pure.path(call.func)
        if isinstance(call.func, ast.Attribute) and call.func.attr not in READS:
            yield from self._object_name(call.func.value)
        known = path in _BUILTINS or (path.partition(".")[0] in _LIBRARIES and not path.endswith(_IN_PLACE))
        if not known and not self.pure.calls(call):
            for given in (*call.args, *(k.value for k in call.keywords)):
                yield from self._object_name(given.value if isinstance(given, ast.Starred) else given)

    def _object_name(self, node: ast.expr) -> Iterator[str]:
        """The name that an object is held by, which is not that of a module or a definition."""
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name) and node.id not in self._fixed and node.id not in _BUILTINS:
            yield node.id


def _local(node: ast.AST) -> set[str]:
    """The names of a function that are its own."""
    bound = {a.arg for n in walk(node) if isinstance(n, ast.arguments) for a in _parameters(n)}
    bound |= {n.id for n in walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return bound - {name for n in walk(node) if isinstance(n, ast.Global) for name in n.names}


def _parameters(spec: ast.arguments) -> list[ast.arg]:
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *(a for a in (spec.vararg, spec.kwarg) if a is not None)]
