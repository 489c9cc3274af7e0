"""Where a node stands in its file: parents, statements, blocks, functions, and the names a file uses."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Node = TypeVar("_Node", bound=ast.AST)
_SHARED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)  # one object each in all trees
_BLOCKS = ("body", "orelse", "finalbody")


class Tree:
    """One file's ast with its parents."""

    def __init__(self, name: str, shown: str, root: ast.Module) -> None:
        self.name = name
        self.shown = shown
        self.root = root
        self._order: list[ast.AST] = [root]
        self.parent: dict[ast.AST, ast.AST] = {}
        for node in self._order:
            children: list[ast.AST] = []
            for field in node._fields:
                held = getattr(node, field, None)
                if isinstance(held, list):
                    children += [child for child in held if isinstance(child, ast.AST)]
                elif isinstance(held, ast.AST):
                    children.append(held)
            for child in children:
                if not isinstance(child, _SHARED):
                    self.parent[child] = node
                    self._order.append(child)

    def nodes(self) -> list[ast.AST]:
        """All nodes, breadth first."""
        return self._order

    def of(self, *kinds: type[_Node]) -> list[_Node]:
        """The nodes of some classes, breadth first; not of those derived from them."""
        places = sorted(i for kind in kinds for i in self._places.get(kind, ()))
        return [self._order[i] for i in places]  # type: ignore[misc]

    @cached_property
    def _places(self) -> dict[type[ast.AST], list[int]]:
        out: dict[type[ast.AST], list[int]] = {}
        for i, node in enumerate(self._order):
            out.setdefault(type(node), []).append(i)
        return out

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, innermost first."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds `node` (itself, if it is one)."""
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    def function(self, node: ast.AST) -> ast.AST:
        """The innermost function around `node`, or the module."""
        for up in self.ancestors(node):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
                return up
        return self.root

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that `statement` stands in."""
        parent = self.parent[statement]
        for field in _BLOCKS:
            body = getattr(parent, field, None)
            if isinstance(body, list) and any(s is statement for s in body):
                return body
        for handler in getattr(parent, "handlers", ()):
            if any(s is statement for s in handler.body):
                return list(handler.body)
        return [statement]

    def path(self, node: ast.AST) -> list[ast.stmt]:
        """The statements around `node` within its function, innermost first, itself included."""
        out = [self.statement(node)]
        for up in self.ancestors(out[0]):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                break
            if isinstance(up, ast.stmt):
                out.append(up)
        return out

    @cached_property
    def bound(self) -> frozenset[str]:
        """Every name that the file binds anywhere, or uses as a parameter."""
        out: set[str] = set()
        for node in self._order:
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                out.add(node.id)
            elif isinstance(node, ast.arg):
                out.add(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                out.add(node.name)
            elif isinstance(node, ast.alias):
                out.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                out.update(node.names)
        return frozenset(out)


def first_free(preferred: Sequence[str], bound: Collection[str]) -> str:
    """The first of `preferred` that is not bound; the last with a number if all are."""
    numbered = (f"{preferred[-1]}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(preferred, numbered) if name not in bound)


class Forest(Tree):
    """The files that are edited, asked as one: the first is the entry."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.name, self.shown, self.root = trees[0].name, trees[0].shown, trees[0].root
        self.trees = tuple(trees)
        self._order = [node for tree in trees for node in tree.nodes()]
        self.parent = {node: up for tree in trees for node, up in tree.parent.items()}
