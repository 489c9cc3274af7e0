"""Where a node stands in its file: parents, statements, blocks, functions, and the names a file uses."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Node = TypeVar("_Node", bound=ast.AST)
_SHARED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)  # one object each in all trees
_BLOCKS = ("body", "orelse", "finalbody")
_LEFT_OUT = frozenset(("ctx", "kind", "type_comment"))  # what two expressions that say the same may differ in
# the fields that are evaluated in another order than `_fields` lists them
_EVALUATED: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Assign: ("value", "targets"),
    ast.AnnAssign: ("annotation", "value", "target"),
    ast.NamedExpr: ("value", "target"),
    ast.For: ("iter", "target", "body", "orelse"),
    ast.AsyncFor: ("iter", "target", "body", "orelse"),
    ast.comprehension: ("iter", "target", "ifs"),
    ast.ListComp: ("generators", "elt"),
    ast.SetComp: ("generators", "elt"),
    ast.GeneratorExp: ("generators", "elt"),
    ast.DictComp: ("generators", "key", "value"),
    ast.FunctionDef: ("decorator_list", "args", "returns", "body"),
    ast.AsyncFunctionDef: ("decorator_list", "args", "returns", "body"),
    ast.ClassDef: ("decorator_list", "bases", "keywords", "body"),
}


def structure(node: ast.AST) -> Hashable:
    """What a node says: equal for two that say the same, wherever they stand, read or stored. A parameter is as its name."""
    if isinstance(node, ast.Name):
        return "Name", node.id
    if isinstance(node, ast.arg):
        return "Name", node.arg
    if isinstance(node, ast.Attribute):
        return "Attribute", structure(node.value), node.attr
    if isinstance(node, ast.Constant):
        return "Constant", type(node.value), node.value
    return type(node), *(_within(getattr(node, name, None)) for name in node._fields if name not in _LEFT_OUT)


def _within(part: object) -> Hashable:
    if isinstance(part, ast.AST):
        return structure(part)
    return tuple(map(_within, part)) if isinstance(part, list) else part


def same(one: ast.AST, other: ast.AST) -> bool:
    """Whether two nodes say the same."""
    return structure(one) == structure(other)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that a node holds, in the order of its fields: `ast.iter_child_nodes` in half the time."""
    out: list[ast.AST] = []
    for field in node._fields:
        held = getattr(node, field, None)
        if isinstance(held, list):
            out += [child for child in held if isinstance(child, ast.AST)]
        elif isinstance(held, ast.AST):
            out.append(held)
    return out


@lru_cache(16384)
def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node and all nodes in it, breadth first, as `ast.walk` gives them, gone through once."""
    out = [node]
    for each in out:
        out += children(each)
    return tuple(out)


def value_of_line(node: ast.stmt) -> ast.expr | None:
    """What a comment beside a statement is about: what it assigns, returns, tests or appends, or the loss of a backward call."""
    match node:
        case ast.AugAssign(value=ast.List(elts=[entry])) | ast.Expr(ast.Call(ast.Attribute(attr="append" | "add"), [entry], [])):
            return None if isinstance(entry, ast.Starred) else entry
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Return():
            return node.value
        case ast.If() | ast.While():
            return node.test
        case ast.Expr(ast.Call(ast.Attribute(attr="backward") as method)):
            return method.value
    return None


@lru_cache(4096)
def scope_nodes(*roots: ast.AST) -> tuple[ast.AST, ...]:
    """Some nodes and all nodes in them, breadth first, without the bodies of functions and classes that they define."""
    out = list(roots)
    for node in out:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            out += children(node)
    return tuple(out)


def own_nodes(scope: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a function or module, without the bodies of inner functions and classes."""
    return scope_nodes(*children(scope))


@lru_cache(4096)
def is_generator(scope: ast.AST) -> bool:
    """Whether a function yields what it gives."""
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(scope))


def own_statements(scope: ast.AST) -> list[ast.stmt]:
    """The statements of a function or module, without the bodies of inner functions and classes."""
    return [n for n in own_nodes(scope) if isinstance(n, ast.stmt)]


def names_read(node: ast.AST) -> list[ast.Name]:
    """The names that are read in a node, breadth first."""
    return [n for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def names_stored(node: ast.AST) -> list[ast.Name]:
    """The names that are bound in a node by assignments, loops and `with`, breadth first."""
    return [n for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def names_in(node: ast.AST) -> set[str]:
    """The names in a node, read or bound."""
    return {n.id for n in walk(node) if isinstance(n, ast.Name)}


def outer_names(node: ast.AST) -> set[str]:
    """The names that functions in a node declare `global` or `nonlocal`."""
    return {name for n in walk(node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}


def calls_in(node: ast.AST) -> list[ast.Call]:
    """The calls in a node, itself included, breadth first."""
    return [n for n in walk(node) if isinstance(n, ast.Call)]


@lru_cache(1024)
def inside(node: ast.AST) -> frozenset[ast.AST]:
    """A node and all nodes in it, to be asked for membership."""
    return frozenset(walk(node))


def last_name(node: ast.AST) -> str:
    """The name behind the last dot of an expression, or the name that it is; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    """`a.b.c`, where an expression is such a chain of names; empty for anything else."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def argument(call: ast.Call, position: int | None, *names: str) -> ast.expr | None:
    """What stands at a position of a call, or is given by one of some names."""
    by_name = next((k.value for k in call.keywords if k.arg in names), None)
    by_place = call.args[position] if position is not None and 0 <= position < len(call.args) else None
    return by_place if by_name is None else by_name


def arguments(call: ast.Call) -> list[ast.expr]:
    """All that a call is given, by place and by name."""
    return [*call.args, *(k.value for k in call.keywords)]


def resizes_alias(node: ast.AST) -> bool:
    """Whether a method gives `x.data` another size, and leaves `x`, which has the same numbers, its own."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="data"), attr="resize_" | "resize_as_"):
            return True
    return False


def is_number(node: ast.AST | None, number: int) -> bool:
    """Whether an expression is this number, written out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return is_number(node.operand, -number)
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


def is_none(node: ast.AST | None) -> bool:
    """Whether an expression is `None`, written out."""
    return isinstance(node, ast.Constant) and node.value is None


def is_main(node: ast.AST) -> bool:
    """Whether a node is `if __name__ == "__main__":`, which holds what only the started module does."""
    return isinstance(node, ast.If) and is_main_test(node.test)


def is_main_test(test: ast.expr) -> bool:
    """Whether a condition asks if this module is the one that was started: `__name__ == "__main__"`."""
    parts = walk(test)
    named = any(isinstance(n, ast.Name) and n.id == "__name__" for n in parts)
    return named and any(isinstance(n, ast.Constant) and n.value == "__main__" for n in parts)


class Tree:
    """One file's ast with its parents."""

    def __init__(self, name: str, shown: str, root: ast.Module) -> None:
        self.name = name
        self.shown = shown
        self.root = root
        self._order: list[ast.AST] = [root]
        self.parent: dict[ast.AST, ast.AST] = {}
        for node in self._order:
            for child in children(node):
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
        """The innermost function around `node`, or the module; what a parameter is by default is evaluated around its function."""
        inner, outside = node, None
        for up in self.ancestors(node):
            if isinstance(up, ast.arguments) and not isinstance(inner, ast.arg):
                outside = self.parent[up]
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)) and up is not outside:
                return up
            inner = up
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

    def before(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether one node begins before another, in the order of evaluation; what holds the other begins before it."""
        return self._spans[one][0] < self._spans[other][0]

    def in_order(self, nodes: Collection[_Node]) -> list[_Node]:
        """Nodes in the order of evaluation."""
        return sorted(nodes, key=lambda n: self._spans[n][0])

    def placed(self, node: ast.AST) -> bool:
        """Whether a node has a place of its own: operators and contexts have none."""
        return node in self._spans

    def after(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether one node comes after all of another, in the order of evaluation."""
        return self._spans[one][0] > self._spans[other][1]

    @cached_property
    def _spans(self) -> dict[ast.AST, tuple[int, int]]:
        """For each node the numbers of itself and of the last node in it, in the order of evaluation."""
        return _numbered([self.root])

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
            elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
                out.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest is not None:
                out.add(node.rest)
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

    @cached_property
    def _spans(self) -> dict[ast.AST, tuple[int, int]]:
        return _numbered([tree.root for tree in self.trees])


def _numbered(roots: list[ast.Module]) -> dict[ast.AST, tuple[int, int]]:
    first: dict[ast.AST, int] = {}
    out: dict[ast.AST, tuple[int, int]] = {}
    todo: list[tuple[ast.AST, bool]] = [(root, False) for root in reversed(roots)]
    while todo:
        node, done = todo.pop()
        if done:
            out[node] = first[node], len(first) - 1
        elif not isinstance(node, _SHARED):
            first[node] = len(first)
            todo.append((node, True))
            todo += [(child, False) for child in reversed(evaluated(node))]
    return out


def evaluated(node: ast.AST) -> list[ast.AST]:
    """What a node holds, in the order in which it is evaluated."""
    if isinstance(node, ast.Dict):
        return [part for pair in zip(node.keys, node.values, strict=True) for part in pair if part is not None]
    listed = _EVALUATED.get(type(node), ())
    parts = [getattr(node, name) for name in (*listed, *(f for f in node._fields if f not in listed))]
    return [child for part in parts for child in (part if isinstance(part, list) else [part]) if isinstance(child, ast.AST)]
