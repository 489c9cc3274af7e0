"""The order of sets: that of texts differs from process to process, and with it what is numbered by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Lit, New, Part, Tup, Value
from ddpify.facts.tree import Tree, same
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.loop.fresh import assigned
from ddpify.rules.loop.last_batch import given_as

_WHY = "a set of strings has a different order in every process: sorted, all ranks number its elements alike"
_IN_ORDER = frozenset(
    """
        list tuple enumerate zip map filter iter collections.deque collections.OrderedDict numpy.array numpy.asarray torch.tensor
        itertools.chain itertools.product itertools.combinations itertools.permutations itertools.islice itertools.cycle
    """.split()
)
_METHODS_IN_ORDER = frozenset(("join", "extend", "fromkeys", "writelines"))
_BY_KEY = frozenset(("sorted", "min", "max"))  # what is equal by the key keeps its order
_IN_ANY_ORDER = frozenset("sorted set frozenset len sum any all min max".split())
_MADE_OF_SETS = frozenset("copy difference intersection symmetric_difference union".split())
_KEEPS_NO_ORDER = frozenset("print add discard remove pop warn warning info debug error".split())


def sort_sets(context: Context, code: str) -> Iterator[Change | Finding]:
    """Sort the sets that are gone through one element after the other where something is trained."""
    for tree in context.facts.trees.values() if context.facts.loops else ():
        for given, edit in _gone_through(context, tree):
            cut = isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice)  # which no set is
            if cut or _sorted_if_set(context, given) or not _holds_texts(context, context.facts.after.value(given)):
                continue
            if context.facts.is_edited(given) and "sorted" not in tree.bound:
                yield Change(code, _WHY, context.tree.shown, given, (edit,), level=Safety.NOTE)
            else:
                yield context.manual(code, given, _WHY, "sorted(...) instead", level=Safety.REVIEW)


def _gone_through(context: Context, tree: Tree) -> Iterator[tuple[ast.expr, Replace]]:
    """The expressions whose elements are taken in their order, with the edit that sorts them."""
    for node in tree.nodes():
        match node:
            case ast.For(iter=given, body=body) if not all(map(_keeps_no_order, body)):
                yield given, _sort(context, given)
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp() if not _in_any_order(context, tree, node):
                yield from ((g.iter, _sort(context, g.iter)) for g in node.generators)
            case ast.Starred(value=given) if not _in_any_order(context, tree, node):
                yield given, _sort(context, given)
            case ast.AugAssign(op=ast.Add(), value=given):
                yield given, _sort(context, given)
            case ast.Call() if not _in_any_order(context, tree, node):
                yield from _of_call(context, node)


def _of_call(context: Context, call: ast.Call) -> Iterator[tuple[ast.expr, Replace]]:
    """The arguments of a call whose elements are taken in their order."""
    paths = context.facts.after.value(call.func).paths()
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if paths == {"list"} and len(call.args) == 1 and _is_set(context, call.args[0]):
        yield call.args[0], Replace(call.func, "sorted")
    elif paths & _IN_ORDER or method in _METHODS_IN_ORDER or (paths & _BY_KEY and call.keywords):
        yield from ((given, _sort(context, given)) for given in call.args if not isinstance(given, ast.Starred))


def _sort(context: Context, given: ast.expr) -> Replace:
    """The edit that sorts an expression; where it may be something else that has an order of its own, it is asked first."""
    sure = not isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)) or _is_set(context, given)
    text = "sorted({0})" if sure else "sorted({0}) if isinstance({0}, (set, frozenset)) else {0}"
    alone = sure or isinstance(context.facts.tree_of(given).parent.get(given), (ast.Call, ast.For, ast.AugAssign))
    return Replace(given, text if alone else f"({text})", (given,))


def _sorted_if_set(context: Context, node: ast.expr) -> bool:
    """Whether an expression is sorted where it is a set: `sorted(names) if isinstance(names, set) else names`."""
    match node:
        case ast.IfExp(test=ast.Call(func=func, args=[asked, _]), orelse=other):
            return context.facts.after.value(func).paths() == {"isinstance"} and same(asked, other)
    return False


def _is_set(context: Context, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is always a set, by what it is written as, or what its name was given."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.BinOp(left=left, op=ast.Sub() | ast.BitOr() | ast.BitAnd() | ast.BitXor()):
            return _is_set(context, left, depth)
        case ast.Call(func=func):
            of = func.value if isinstance(func, ast.Attribute) and func.attr in _MADE_OF_SETS else None
            made = context.facts.after.value(func).paths()
            return (bool(made) and made <= {"set", "frozenset"}) or (of is not None and _is_set(context, of, depth))
        case ast.Name() | ast.Attribute() if depth < 4:
            run = context.facts.after
            definitions = run.definitions.reaching(node).definitions
            trees = ((d, run.scopes.tree(d)) for d in definitions)  # none has a wrapper that is assumed
            values = [assigned(tree, d) if tree is not None and isinstance(d, ast.expr) else None for d, tree in trees]
            if definitions and not any(isinstance(d, ast.expr) for d in definitions):
                values = [*given_as(context, node)] if isinstance(node, ast.Name) else []
            return bool(values) and all(v is not None and _is_set(context, v, depth + 1) for v in values)
    return False


def _keeps_no_order(statement: ast.stmt) -> bool:
    """Whether what a statement does to one element after the other comes to the same in any order."""
    match statement:
        case ast.If(body=body, orelse=orelse):
            return all(map(_keeps_no_order, [*body, *orelse]))
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _KEEPS_NO_ORDER
    return isinstance(statement, (ast.Delete, ast.Assert, ast.Raise, ast.Pass, ast.Continue))


def _in_any_order(context: Context, tree: Tree, node: ast.AST) -> bool:
    """Whether what takes the elements from an expression at once gives the same in any order."""
    up = tree.parent.get(node)
    if isinstance(up, ast.SetComp | ast.Set):
        return True
    if isinstance(up, ast.comprehension):
        return isinstance(tree.parent.get(up), ast.SetComp)
    whole = isinstance(up, ast.Call) and up.args[:1] == [node] and not up.keywords
    return whole and bool(context.facts.after.value(up.func).paths() & _IN_ANY_ORDER)  # type: ignore[union-attr]


def _holds_texts(context: Context, value: Value) -> bool:
    """Whether a value is a set of what may be texts: neither numbers nor parts of a model, nor other objects."""
    memory = context.facts.after.memory
    entries = [memory.get((o, "[]"), Value()) for o in value.instances() if o.path == "set"]
    return any(_may_be_text(context, entry) for entry in entries)


def _may_be_text(context: Context, entry: Value) -> bool:
    numbers = bool(entry.objs) and all(isinstance(o, Lit) and not isinstance(o.value, (str, bytes)) for o in entry.objs)
    if numbers or entry.scale is not None or entry.of_kind("parameters"):
        return False
    return all(isinstance(o, (Lit, Tup)) or (isinstance(o, Part) and not _of_a_model(context, o)) for o in entry.objs)


def _of_a_model(context: Context, part: Part) -> bool:
    run = context.facts.after
    return any(isinstance(o, New) and run.interpreter.is_module(o) for o in run.roots(part))
