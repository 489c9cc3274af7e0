"""To which function, class, comprehension or module a name belongs, and what two expressions both denote there."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from ddpify.facts.tree import Tree, children, walk
from ddpify.records import dataclass, field

Owner = ast.AST | str
Path = tuple[object, ...]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class _Names:
    """The names that a function or class binds, and those that it takes from around it."""

    bound: set[str] = field(default_factory=set)
    of_module: set[str] = field(default_factory=set)
    of_function: set[str] = field(default_factory=set)


class Scopes:
    """The scopes of a project's names, looked up where they are asked for."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        self._trees = list(trees)
        self._names: dict[ast.AST, _Names] = {}
        self._owners: dict[ast.AST, Owner | None] = {}

    def tree(self, node: ast.AST) -> Tree | None:
        """The file that a node stands in."""
        return self._standing.get(node)

    @cached_property
    def _standing(self) -> dict[ast.AST, Tree]:
        return {node: tree for tree in self._trees for node in tree.nodes()}

    def owner(self, name: ast.Name) -> Owner | None:
        """What a name belongs to: the name of a module, or the node of a function, class or comprehension; None for what is no file's."""
        if name not in self._owners:
            tree = self.tree(name)
            self._owners[name] = None if tree is None else self._owner(tree, name)
        return self._owners[name]

    def _owner(self, tree: Tree, name: ast.Name) -> Owner:
        below: ast.AST = name
        inner = True  # no function is left yet
        for up in tree.ancestors(name):
            if isinstance(up, _COMPREHENSIONS):
                outside = below is up.generators[0] and _within(tree, name, up.generators[0].iter)
                if not outside and any(_binds(g.target, name.id) for g in up.generators):
                    return up
            elif isinstance(up, _FUNCTIONS):
                if _in_body(up, below):
                    names = self.names(up)
                    if name.id in names.of_module:
                        return tree.name
                    if name.id in names.bound and name.id not in names.of_function:
                        return up
                    inner = False
            elif isinstance(up, ast.ClassDef) and inner and below in up.body and name.id in self.names(up).bound:
                return up
            below = up
        return tree.name

    def names(self, scope: ast.AST) -> _Names:
        """What a function or class binds, inner functions, classes and comprehensions left out."""
        if scope not in self._names:
            self._names[scope] = _names(scope)
        return self._names[scope]

    def path(self, node: ast.AST) -> Path | None:
        """What a name, an attribute, or an element under a constant key denotes in its function; None for anything else."""
        if isinstance(node, ast.Name):
            return self.owner(node), node.id
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return None if base is None else (*base, ("attribute", node.attr))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            base = self.path(node.value)
            return None if base is None else (*base, ("element", node.slice.value))
        return None

    def same(self, one: ast.AST | None, other: ast.AST | None) -> bool:
        """Whether two expressions denote the same."""
        if one is None or other is None:
            return False
        path = self.path(one)
        return path is not None and path == self.path(other)


def _names(scope: ast.AST) -> _Names:
    out = _Names()
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        out.bound |= {a.arg for a in given if a is not None}
    body = getattr(scope, "body", [])
    todo: list[ast.AST] = list(body) if isinstance(body, list) else [body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                out.bound.add(node.id)
        elif isinstance(node, ast.Global):
            out.of_module.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            out.of_function.update(node.names)
        elif isinstance(node, ast.alias):
            out.bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.bound.add(node.name)
            continue
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name):
            out.bound.add(node.name)
        elif isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            out.bound |= {n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)}
            continue
        todo += children(node)
    return out


def _in_body(function: ast.AST, below: ast.AST) -> bool:
    """Whether a part of a function sees its names: not so its decorators, defaults and annotations."""
    body = getattr(function, "body", None)
    return any(below is s for s in body) if isinstance(body, list) else below is body


def _within(tree: Tree, node: ast.AST, part: ast.AST) -> bool:
    return node is part or any(up is part for up in tree.ancestors(node))


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(target))
