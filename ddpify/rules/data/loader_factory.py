"""One call makes the loader that trains, and others: what tells them apart where it stands."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ddpify.edits import AddParameter, Edit, FreshName, SetArgument
from ddpify.facts.interpret.loops import names_of_entries
from ddpify.facts.model import NOTHING, Call, Class, Func, Lit, New
from ddpify.facts.tree import Tree, walk
from ddpify.records import dataclass
from ddpify.rules.context import Context

_Literal = str | bool
_PLAIN = frozenset(("staticmethod", "classmethod"))
_NAMES = ("training", "trains", "for_training", "is_training")
_DEEPEST = 4
_COMPREHENSIONS = (ast.DictComp, ast.ListComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Condition:
    """The condition under which a call makes a loader that trains, and the edits by which that is known there."""

    text: str
    edits: tuple[Edit, ...] = ()


def condition(context: Context, node: ast.Call, trained: list[New], others: list[New]) -> Condition | None:
    """What tells the loader that trains from others that a call makes: a phase of the loop around it, a parameter, or one that is added.

    None where nothing can.
    """
    makers = {o: o.stack if o.node is node else (*o.stack, o.node) for o in (*trained, *others)}
    return _condition(context, node, trained, others, makers)


def _condition(
    context: Context, node: ast.Call, trained: list[New], others: list[New], makers: dict[New, tuple[ast.AST, ...]], depth: int = 0
) -> Condition | None:
    """What tells them apart at a call, by which all of them are made."""
    text = _phase(context, node, trained) or _parameter(context, node, trained, others)
    if text:
        return Condition(text)
    function = context.tree.function(node)
    if depth == _DEEPEST or not isinstance(function, ast.FunctionDef) or not _takes_keyword(context, function):
        return None
    sites = {o: stack[-1 - depth] for o, stack in makers.items() if len(stack) > depth}
    texts: dict[ast.Call, str] = {}
    edits: list[Edit] = []
    for site in dict.fromkeys(sites.get(o) for o in trained):
        if not isinstance(site, ast.Call) or not _runs(context, site, function):
            return None
        mine, beside = ([o for o in objs if sites.get(o) is site] for objs in (trained, others))
        found = _condition(context, site, mine, beside, makers, depth + 1) if beside else Condition("True")
        if found is None:
            return None
        texts[site] = found.text
        edits += found.edits
    memo = context.facts.project.memo  # what the same calls pass has one name
    name = FreshName(_NAMES, memo.setdefault(("trains", function, frozenset(texts.items())), ast.Pass()), function)  # type: ignore[arg-type]
    edits += [SetArgument(site, str(name), text) for site, text in texts.items()]
    return Condition(str(name), (AddParameter(function, str(name), "False", optional=True, binds=(name,)), *edits))


def _takes_keyword(context: Context, function: ast.FunctionDef) -> bool:
    """Whether a function can be given one more keyword argument."""
    plain = all(isinstance(d, ast.Name) and d.id in _PLAIN for d in function.decorator_list)
    return plain and context.facts.is_edited(function)


def _runs(context: Context, site: ast.Call, function: ast.FunctionDef) -> bool:
    """Whether a call that may be edited runs a function, itself or as a constructor, and no other."""
    run = context.facts.after
    called = {o for call in run.calls(site) for o in call.func.objs}
    made = {f for o in called if isinstance(o, Class) for f in (run.interpreter.find(o, "__init__") or NOTHING).functions()}
    known = all(isinstance(o, (Class, Func)) for o in called)
    return context.facts.is_edited(site) and known and made | {o.node for o in called if isinstance(o, Func)} == {function}


def _phase(context: Context, node: ast.Call, loaders: list[New]) -> str:
    """The phase, of those that a loop spells out, in which the loader is the one that trains."""
    around = next((up for up in context.tree.ancestors(node) if isinstance(up, (*_COMPREHENSIONS, ast.stmt))), None)
    if isinstance(around, _COMPREHENSIONS):
        target, phases = around.generators[0].target, around.generators[0].iter
    else:
        loop = next((up for up in context.tree.ancestors(node) if isinstance(up, ast.For)), None)
        if loop is None:
            return ""
        target, phases = loop.target, loop.iter
    if isinstance(phases, ast.Call) and isinstance(target, ast.Tuple) and isinstance(phases.func, ast.Attribute):  # over a dict's items
        target = target.elts[0]
    train = [part for part in _phases(context, phases) if any(part in loader.stack for loader in loaders)]
    if not isinstance(target, ast.Name) or len(train) != 1 or not isinstance(train[0], ast.Constant):
        return ""
    return f"{target.id} == {context.source(train[0])}"


def _phases(context: Context, over: ast.expr) -> list[ast.expr]:
    """The phases that a loop over something goes through, where it spells them out: in a list, or as the names of a dict's entries."""
    parts = list(getattr(over, "elts", ()))
    of = over.func.value if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else over
    return parts or [k for o in context.facts.after.value(of).instances() for k in names_of_entries(o.node)]


def _parameter(context: Context, node: ast.Call, trained: list[New], others: list[New]) -> str:
    """The test of a parameter that every call of the function around gives a literal, another one where it trains."""
    function = context.tree.function(node)
    if not isinstance(function, ast.FunctionDef):
        return ""
    inside = (n for s in function.body for n in walk(s))
    rebound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for name in _names(function):
        if name in rebound:
            continue
        train = [_literal_argument(context, function, name, loader) for loader in trained]
        rest = [_literal_argument(context, function, name, loader) for loader in others]
        if not train or None in train or None in rest or set(train) & set(rest) or len(set(train)) != 1 or len(set(map(type, train))) != 1:
            continue
        literal = train[0]
        if literal is True:
            return name
        if literal is False:
            return f"not {name}"
        return f"{name} == {context.quoted(str(literal))}"
    return ""


def _names(function: ast.FunctionDef) -> list[str]:
    """The parameters, those first whose name says what they tell."""
    spec = function.args
    names = [p.arg for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return sorted(names, key=lambda n: "train" not in n and n not in ("split", "mode", "phase"))


def _literal_argument(context: Context, function: ast.FunctionDef, name: str, loader: New) -> _Literal | None:
    """The literal that a parameter has where a loader is made; None where it is not one."""
    run, find = context.facts.after, context.facts.after.interpreter.find
    inits = (find(loader.cls, "__init__") or NOTHING).objs if loader.cls is not None else ()
    if any(isinstance(o, Func) and o.node is function for o in inits):
        return next((_literal(function, name, c, True) for c in run.calls(loader.node) if c.stack == loader.stack), None)
    for depth in range(len(loader.stack) - 1, -1, -1):
        for call in run.calls(loader.stack[depth]):
            mine = [o for o in call.func.objs if isinstance(o, Func) and o.node is function]
            if mine and call.stack == loader.stack[:depth]:
                return _literal(function, name, call, any(o.owner is not None for o in mine))
    return None


def _literal(function: ast.FunctionDef, name: str, call: Call, method: bool) -> _Literal | None:
    spec = function.args
    positional = [p.arg for p in (*spec.posonlyargs, *spec.args)]
    if any(isinstance(a, ast.Starred) for a in call.node.args) or any(k.arg is None for k in call.node.keywords):
        return None
    defaults: dict[str, ast.expr | None] = dict(zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True))
    defaults |= {p.arg: d for p, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)}
    passed = dict(zip(positional[1:] if method else positional, zip(call.node.args, call.args, strict=False), strict=False))
    passed |= {k.arg: (k.value, call.keywords[k.arg]) for k in call.node.keywords if k.arg is not None and k.arg in call.keywords}
    expression, value = passed.get(name, (defaults.get(name), NOTHING))
    if isinstance(expression, ast.Constant):
        return expression.value if isinstance(expression.value, (str, bool)) else None
    only = next(iter(value.objs)) if len(value.objs) == 1 else None
    return only.value if isinstance(only, Lit) and isinstance(only.value, (str, bool)) else None


def negated(condition: str) -> str:
    """The opposite of a condition."""
    if " and " in condition:
        return f"not ({condition})"
    if condition.startswith("not "):
        return condition[4:]
    return condition.replace(" == ", " != ") if " == " in condition else f"not {condition}"


def several(context: Context, loader: New, node: ast.Call) -> bool:
    """Whether one object stands for loaders that are kept side by side: made in a comprehension, or put into a list or dict in a loop."""
    tree, run = context.tree, context.facts.after
    if any(isinstance(n, ast.Call) and run.value(n.func).paths() & {"map", "filter"} for n in loader.stack):
        return True
    for at in (node, *(n for n in loader.stack if isinstance(n, ast.Call) and n in tree.parent)):
        for over in _repeated_over(tree, at):
            if not any(part in loader.stack for part in _phases(context, over)):
                return True
    return False


def _repeated_over(tree: Tree, node: ast.Call) -> Iterator[ast.expr]:
    """What the comprehensions around a call go through, and, where its result is put into a list or dict, the loops."""
    statement = tree.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = isinstance(statement, ast.Expr) or any(isinstance(t, ast.Subscript) for t in targets)
    for up in itertools.takewhile(lambda n: not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)), tree.ancestors(node)):
        if isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            yield up.generators[0].iter
        elif isinstance(up, ast.For) and kept:
            yield up.iter
