"""What a backward call starts from: the numbers that are added up, scaled or averaged to a loss, through functions that compute it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from ddpify.facts import library
from ddpify.facts.model import NOTHING, New, Value
from ddpify.facts.tree import structure, walk
from ddpify.rules.context import Context

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_ADDED = frozenset(("sum", "torch.stack", "torch.sum", "torch.mean"))  # of what they are given, each entry is a term
_AVERAGED = frozenset(("mean", "sum", "squeeze", "float"))


def loss_terms(context: Context, backward: ast.Call) -> set[ast.AST]:
    """The names and calls whose values a backward call starts from, added up, scaled or averaged; but for names of rows."""
    return {node for node, _ in _terms(context, backward)}


def plain_terms(context: Context, backward: ast.Call) -> set[ast.AST]:
    """Those terms of a loss that nothing averages: each is a number itself, or has one among the things that it gives."""
    return {node for node, averaged in _terms(context, backward) if not averaged}


def _terms(context: Context, backward: ast.Call) -> set[tuple[ast.AST, bool]]:
    """The terms of a loss, each with whether it is averaged."""
    out: set[tuple[ast.AST, bool]] = set()
    start = [backward.func.value] if isinstance(backward.func, ast.Attribute) else backward.args
    todo, seen = [(node, False) for node in start], set[tuple[ast.AST, bool]]()
    while todo:
        node, averaged = todo.pop()
        if (node, averaged) in seen:
            continue
        seen.add((node, averaged))
        if isinstance(node, ast.Call) and scales(context, node):
            todo += [(part, averaged) for part in node.args]
            continue
        value = context.facts.after.value(node)
        inner = list(_operands(context, node)) if value.scale != "mean" or computed_elsewhere(context, value) else []
        if isinstance(node, ast.Call) or (isinstance(node, ast.Name) and not (averaged and _are_rows(context, value, inner))):
            out.add((node, averaged))
        averaged |= isinstance(node, ast.Call) and _is_averaged(context, node)
        todo += [(part, averaged) for part in inner]
    return out


def scales(context: Context, node: ast.Call) -> bool:
    """Whether a call is that of a grad scaler, which gives the loss that it is given times a number."""
    scaler = context.facts.after.value(node.func.value) if isinstance(node.func, ast.Attribute) else NOTHING
    return any(o.path in library.SCALERS for o in scaler.instances())


def _are_rows(context: Context, value: Value, assigned: list[ast.expr]) -> bool:
    """Whether a name holds rows of the batch, and no loss that nobody knows."""
    losses = [n for n in assigned if isinstance(n, ast.Call) and _is_unknown(context.facts.after.value(n), n)]
    return value.scale == "sample" and not losses


def _is_unknown(value: Value, node: ast.Call) -> bool:
    """Whether nothing is known of what a call of something that nobody has described gives."""
    made_here = any(isinstance(o, New) and o.node is node for o in value.objs)
    return made_here or (value.shape is not None and value.shape.base is node and value.shape.several is None)


def computed_elsewhere(context: Context, loss: Value) -> bool:
    """Whether a loss comes from an object of a package that nobody has described, which may combine the samples that it is given."""
    return any(node in context.once(_of_packages) for _, node in loss.of_kind("forward"))


def _of_packages(context: Context) -> set[ast.AST]:
    """The calls of such objects, which no optimizer trains, with what a network gives and what it is compared with."""
    out: set[ast.AST] = set()
    for call in context.facts.after.trace.calls:
        made, given = call.func.instances(), [*call.args, *call.keywords.values()]
        unknown = made and all(o.cls is None for o in made) and _is_unknown(call.result, call.node)
        compared = {bool(v.of_kind("forward")) for v in given if v.of_kind("batch")} == {True, False}
        if unknown and compared and not call.no_grad and not context.facts.after.part_of(made, context.facts.trained):
            out.add(call.node)
    return out


def _operands(context: Context, node: ast.expr) -> Iterator[ast.expr]:
    """What a term is made of, each of which is a term, too."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield from context.once(_assigned).get((_scope(context, node), structure(node)), ())
        if isinstance(node, ast.Attribute):
            yield node.value
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts
    elif isinstance(node, ast.Dict):
        yield from node.values
    elif isinstance(node, _COMPREHENSIONS):
        yield node.elt
    elif isinstance(node, ast.Call):
        yield from _of_call(context, node)


def _of_call(context: Context, node: ast.Call) -> Iterator[ast.expr]:
    """What a function of the project returns, or what is added up or averaged."""
    func = context.facts.after.value(node.func)
    returned = [r for f in _functions(context, func) for r in context.once(_returned).get(f, ())]
    if returned:
        yield from returned
    elif func.paths() & _ADDED:
        yield from node.args[:1]
    elif _is_averaged(context, node):
        yield node.func.value  # type: ignore[attr-defined]


def _is_averaged(context: Context, node: ast.Call) -> bool:
    """Whether a call is that of a method such as `mean`."""
    named = isinstance(node.func, ast.Attribute) and node.func.attr in _AVERAGED
    return named and not context.facts.after.value(node.func).functions()


def _functions(context: Context, func: Value) -> frozenset[ast.AST]:
    """The functions of the project that a call runs: those called, or the forwards of modules."""
    run = context.facts.after
    modules = [o for o in run.unwrap(func) if isinstance(o, New)]
    return func.functions() | {f.node for o in modules for name in ("forward", "__call__") for f in run.methods(o, name)}


def _scope(context: Context, node: ast.AST) -> ast.AST | None:
    """Where a name means the same: the function around it; the file, of an attribute."""
    tree = context.facts.tree_of(node)
    return tree.root if isinstance(node, ast.Attribute) else tree.function(node)


def _assigned(context: Context) -> dict[tuple[ast.AST | None, Hashable], list[ast.expr]]:
    """What names and attributes are bound to, also as one of several, or are added to or filled with."""
    out: dict[tuple[ast.AST | None, Hashable], list[ast.expr]] = {}
    for tree in context.facts.trees.values():
        pairs = [(t, n.value) for n in tree.of(ast.Assign) for t in n.targets]
        pairs += [(n.target, n.value) for n in tree.of(ast.AugAssign)]
        pairs += [(n.target, n.value) for n in tree.of(ast.AnnAssign) if n.value is not None]
        for target, value in pairs:
            for part in walk(target):
                if isinstance(part, (ast.Name, ast.Attribute)):
                    out.setdefault((_scope(context, part), structure(part)), []).append(value)
    return out


def _returned(context: Context) -> dict[ast.AST, list[ast.expr]]:
    """What each function returns."""
    out: dict[ast.AST, list[ast.expr]] = {}
    for tree in context.facts.trees.values():
        for n in tree.of(ast.Return):
            if n.value is not None:
                out.setdefault(tree.function(n), []).append(n.value)
    return out
