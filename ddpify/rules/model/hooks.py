"""Gradients within a backward, of hooks: they are a rank's own, those on parameters before a wrapper averages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Call, Func
from ddpify.facts.tree import last_name, same, walk
from ddpify.facts.weight_writes import Weights
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context, argument

CODE = "DDP201"
_BOUNDS = frozenset("clamp clip clamp_min clamp_max hardtanh tanh norm normalize sign renorm".split())
_BEFORE = "a hook on a parameter runs before gradients are averaged"
_IN_HOOK = "average the gradient in the hook: dist.all_reduce(gradient); gradient /= world_size"
_DRAW_ALIKE = "draw from a torch.Generator of its own that has the same seed on all ranks, and average the gradient in the hook"
_AFTERWARDS = "change gradients between the backward call and the step: for p in model.parameters(): p.grad.clamp_(-1, 1)"
_HOOKS = frozenset(("register_full_backward_hook", "register_backward_hook", "register_full_backward_pre_hook"))


def findings(context: Context) -> Iterator[Change | Finding]:
    """What hooks on parameters are given, and what the owner of another backward hook within a trained model must know."""
    weights, seen = Weights(context.facts), set[ast.AST]()
    for node in _module_hooks(context):
        yield _report(context, node, "a backward hook changes")
    for call in context.facts.after.calls_named("register_hook"):
        if call.node in seen or _scales(context, call):
            continue
        seen.add(call.node)
        if weights.hold(call.receiver):
            yield from _averaged(context, call)
        elif any(_returns_gradient(o.node) for v in call.args for o in v.objs if isinstance(o, Func)):
            yield _report(context, call.node, "this hook changes")
    for node in {c.node: None for c in context.facts.after.calls_named("register_post_accumulate_grad_hook") if weights.hold(c.receiver)}:
        yield context.manual(CODE, node, f"{_BEFORE}, and so does one that is called once they are accumulated", _AFTERWARDS)
    for method in _backward_methods(context):
        if (at := _bounds(method)) is not None:
            yield _report(context, at, "this backward bounds")


def _module_hooks(context: Context) -> Iterator[ast.Call]:
    """The calls that register a backward hook which gives a gradient of its own, on a trained module or a part of one."""
    run, trained = context.facts.after, context.facts.trained
    for node in {c.node: c for c in run.trace.calls if c.method in _HOOKS}:
        calls = run.calls(node)
        if any(run.part_of(run.unwrap(c.receiver), trained) for c in calls):
            hooks = [o.node for c in calls for o in (c.argument(0, "hook") or c.receiver).objs if isinstance(o, Func)]
            if not hooks or any(_returns_gradient(h) for h in hooks):
                yield node


def _backward_methods(context: Context) -> Iterator[ast.FunctionDef]:
    """The `backward` methods of the script's own autograd functions."""
    calls = (c for c in context.facts.after.trace.calls if c.method == "apply")
    classes = {o.cls.node for c in calls for o in c.func.objs if isinstance(o, Func) and o.cls}
    for cls in sorted(classes, key=lambda n: n.lineno):
        yield from (m for m in cls.body if isinstance(m, ast.FunctionDef) and m.name == "backward")


def _averaged(context: Context, call: Call) -> Iterator[Change | Finding]:
    """A hook on a parameter that is given the average, unless it averages what it is given itself."""
    run, hook = context.facts.after, argument(call.node, 0, "hook")
    functions = [o.node for v in (*call.args, *call.keywords.values()) for o in v.objs if isinstance(o, Func)]
    called = [c for f in functions for n in walk(f) for c in run.calls(n)]
    if any("torch.distributed.all_reduce" in c.func.paths() for c in called):
        return
    if any(c.result.of_kind("drawn") for c in called):
        yield context.manual(CODE, call.node, f"{_BEFORE}, and this one draws other numbers on each rank", _DRAW_ALIKE)
    elif hook is None or not context.facts.is_edited(call.node):
        yield context.manual(CODE, call.node, f"{_BEFORE}: it sees this rank's gradient only", _IN_HOOK)
    else:
        edit = Replace(hook, f"{context.names['with_averaged_gradient']}({{0}})", (hook,))
        why = f"{_BEFORE}: it is given their average, which the wrapper leaves as it is"
        yield Change(CODE, why, context.tree.shown, call.node, (edit,), needs=("with_averaged_gradient",))


def _report(context: Context, node: ast.AST, what: str) -> Finding:
    why = f"{what} gradients before they are averaged: on each rank these are world_size times larger than in the original"
    fix = "multiply thresholds and added terms by the number of ranks; factors may stay"
    return context.manual(CODE, node, why, fix, level=Safety.REVIEW)


def _bounds(backward: ast.FunctionDef) -> ast.Call | None:
    """Where a function's own backward does more than multiply the gradients it is given."""
    names = {a.arg for a in backward.args.args[1:]}
    for node in walk(backward):
        if isinstance(node, ast.Assign) and any(isinstance(n, ast.Name) and n.id in names for n in walk(node.value)):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    for node in walk(backward):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr.rstrip("_") not in _BOUNDS:
            continue
        if any(isinstance(n, ast.Name) and n.id in names for part in (node.func.value, *node.args[:1]) for n in walk(part)):
            return node
    return None


def _returns_gradient(hook: ast.AST) -> bool:
    """Whether a hook gives back a gradient of its own."""
    if isinstance(hook, ast.Lambda):
        return not (
            isinstance(hook.body, ast.Constant) or (isinstance(hook.body, ast.Call) and last_name(hook.body.func) in ("append", "update"))
        )
    return any(
        isinstance(n, ast.Return) and n.value is not None and not (isinstance(n.value, ast.Constant) and n.value.value is None)
        for n in walk(hook)
    )


def _scales(context: Context, call: Call) -> bool:
    """Whether a hook multiplies a gradient by a number that all ranks share: before or after the average is the same."""
    run = context.facts.after
    functions = [o.node for v in call.args for o in v.objs if isinstance(o, Func)]
    return bool(functions) and all(_scaled(context, f) for f in functions) and not any(run.unwrap(v) for v in call.keywords.values())


def _scaled(context: Context, function: ast.AST) -> bool:
    """Whether a function gives its first argument, negated or times a number that all ranks share."""
    body = function.body if isinstance(function, ast.Lambda) else None
    if isinstance(function, ast.FunctionDef) and len(function.body) == 1 and isinstance(function.body[0], ast.Return):
        body = function.body[0].value
    arguments = function.args.args if isinstance(function, (ast.Lambda, ast.FunctionDef)) else []
    if not arguments or body is None:
        return False
    return _multiplied(context, body, arguments[0])


def _multiplied(context: Context, node: ast.expr, gradient: ast.arg) -> bool:
    """Whether an expression is a gradient, or a copy of it, negated or times numbers that all ranks share."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner) | ast.Call(ast.Attribute(inner, "clone" | "neg" | "detach"), [], []):
            return _multiplied(context, inner, gradient)
        case ast.Call(ast.Attribute(inner, "mul" | "div"), [factor], []):
            return _is_shared(context, factor, gradient) and _multiplied(context, inner, gradient)
        case ast.BinOp(inner, ast.Mult() | ast.Div() as op, factor):
            parts = [(inner, factor), (factor, inner)] if isinstance(op, ast.Mult) else [(inner, factor)]
            return any(_multiplied(context, of, gradient) and _is_shared(context, by, gradient) for of, by in parts)
    return same(node, gradient)


def _is_shared(context: Context, factor: ast.expr, gradient: ast.arg) -> bool:
    """Whether a factor is the same on all ranks, and is not computed from the gradient."""
    parts = [n for n in walk(factor) if isinstance(n, ast.expr)]
    values = map(context.facts.after.value, parts)
    return not any(same(n, gradient) for n in parts) and not any(context.differs(v) or v.of_kind("drawn") for v in values)
