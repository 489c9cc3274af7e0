"""Exceptions by which a script leaves its training as a `break` would: what it raises itself, and catches around its steps."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from ddpify.facts import exceptions, library
from ddpify.facts.model import Class, Ext, Obj, library_bases
from ddpify.facts.tree import Tree, inside, walk
from ddpify.rules.context import Context

_OF_DATA = frozenset(("__getitem__", "__getitems__", "__iter__", "__next__", "__len__"))


def handlers(context: Context) -> Iterator[tuple[Tree, ast.ExceptHandler]]:
    """The handlers around training steps that go on as if nothing had happened."""
    for tree in context.facts.trees.values():
        around = [n for n in tree.of(ast.Try) if any(not inside(s).isdisjoint(context.training) for s in n.body)]
        visited = [n for n in around if n in context.facts.after.trace.visited]
        yield from ((tree, h) for n in visited for h in n.handlers if not quits(context, h))


def ends_loop(context: Context, handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches only what ends a run or a loop, which is no error of one rank: all of them, where there are several."""
    kinds = _caught_by(context, handler)
    return bool(kinds) and all(
        (isinstance(o, Ext) and o.path in exceptions.ENDS) or (isinstance(o, Class) and _is_own(context, o)) for o in kinds
    )


def leaving(context: Context) -> frozenset[ast.Raise]:
    """The statements that leave the training so: no error ends the other ranks there."""
    caught = {o for _, h in handlers(context) if ends_loop(context, h) for o in _caught_by(context, h)}
    return frozenset(n for n in exceptions.raised(context.facts) if exceptions.is_left_by(context.facts, n, caught))


def _caught_by(context: Context, handler: ast.ExceptHandler) -> frozenset[Obj]:
    return exceptions.named(context.facts.after.value(handler.type)) if handler.type is not None else frozenset()


def _is_own(context: Context, kind: Class) -> bool:
    """Whether an exception is one of the script's own that the training itself raises: there, tests are judged as those of `break`."""
    bases = [getattr(builtins, b, None) for b in library_bases(kind)]
    own = all(isinstance(b, type) and issubclass(b, BaseException) for b in bases)
    raising = [n for n, kinds in exceptions.raised(context.facts).items() if any(kind in exceptions.lineage(o) for o in kinds)]
    return own and bool(raising) and all(_in_training(context, n) for n in raising)


def _in_training(context: Context, node: ast.Raise) -> bool:
    """Whether it is no error of one rank that raises an exception: none that is handled, nor that a data set has with its samples."""
    tree = context.facts.tree_of(node)
    of_data = getattr(tree.function(node), "name", "") in _OF_DATA
    return not of_data and not any(isinstance(up, ast.ExceptHandler) for up in tree.ancestors(node))


def quits(context: Context, handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends with an error, or raises at once where there are several ranks."""
    first, last = handler.body[0], handler.body[-1]
    if isinstance(last, ast.Raise):
        return not any(isinstance(n, (ast.Continue, ast.Break, ast.Return)) for s in handler.body for n in walk(s))
    if isinstance(first, ast.If) and isinstance(first.body[-1], ast.Raise) and context.facts.after.value(first.test).of_kind("world"):
        return True
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and bool(context.facts.after.value(last.value.func).paths() & library.NO_RETURN)
    )
