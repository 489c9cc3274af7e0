"""What changes a model after it was wrapped, and its wrapper does not see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.collect import first_order, loss_of, made_in
from ddpify.facts.model import Call, Lit, New, Part, Value
from ddpify.facts.moved_saves import moved_saves
from ddpify.rules.base import Finding, Obligation
from ddpify.rules.context import Context
from ddpify.rules.model import hooks, late_layers

CODE = "DDP201"

_DRAWN = frozenset(("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "trunc_normal_"))


def findings(context: Context) -> Iterator[Finding]:
    """Writes to a wrapped model that its wrapper does not see."""
    facts, run = context.facts, context.facts.after
    seen: set[ast.AST] = set()
    training = facts.training_loops
    training -= {
        node for m in facts.models for node in made_in(facts.before, m)
    }  # folds, in which a model is made, filled and wrapped anew
    yield from late_layers.findings(context, training)
    for call in run.trace.calls:
        if call.node in seen:
            continue
        wrapped = facts.wrapped(call.receiver) is not False and call.node not in moved_saves(facts)
        if wrapped and call.method in ("cpu", "half", "float", "double", "bfloat16", "to_empty") and not _afterwards(context, call):
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                f"`.{call.method}()` moves the wrapped model's parameters away from what the wrapper averages gradients for",
                "save a copy instead: {k: v.cpu() for k, v in model.module.state_dict().items()}",
            )
        elif wrapped and call.method == "apply" and (any(loop.node in training for loop in call.loops) or _trained_before(context, call)):
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                "the model is initialised again after the wrap: each rank draws its own weights",
                "seed all ranks alike before it, or wrap the model again after it",
            )
    for call in run.trace.calls:
        if call.node in seen:
            continue
        inside = any(loop.node in training for loop in call.loops)
        mixed = [o.kind for v in (*call.args, *call.keywords.values()) for o in v.origins]
        own = call.receiver.of_kind("parameters") or _is_gradient(context, call.node.func)
        what = ""
        if call.method == "register_hook" and call.receiver.of_kind("parameters") and not hooks.scales(context, call):
            what = "a hook on a parameter sees this rank's own gradient, before it is averaged"
        elif "torch.autograd.grad" in call.func.paths() and any(v.of_kind("parameters") for v in call.args[1:2]):
            what = "autograd.grad over parameters gives this rank's own gradient: the wrapper averages `.backward()` alone"
        elif (
            inside
            and call.method.endswith("_")
            and (own or _belongs(context, call.receiver))
            and ({"random", "batch", "decided"} & set(mixed) or call.method in _DRAWN)
        ):
            what = "a parameter or its gradient is changed by numbers that differ between ranks"
        elif any(p.startswith("torch.nn.Lazy") for p in call.func.paths()):
            what = "a lazy layer has no parameters yet when the model is wrapped"
        elif (
            (call.method in ("reset_parameters", "init_weights", "apply") or any(p.startswith("torch.nn.init.") for p in call.func.paths()))
            and any(v.of_kind("parameters") or _belongs(context, v) for v in (call.receiver, *call.args))
            and (inside or _trained_before(context, call))
        ):
            what = "the model is initialised again after the wrap: each rank draws its own weights"
        elif (
            call.method == "backward"
            and any(not (isinstance(o, Lit) and not o.value) for o in call.keywords.get("retain_graph", Value()).objs)
            and not _served(context, call)
        ):
            what = "a second backward through one forward is not averaged by the wrapper"
        if what:
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                what,
                "average .grad over the ranks before the step: for p in params: dist.all_reduce(p.grad); p.grad /= world_size",
            )
    for loop in facts.loops:
        direct = {obj for obj, _ in loop.loss.of_kind("forward")}
        for model in facts.models:
            graded = {obj for obj, _ in loop.loss.of_kind("graded")} & model.objs
            if graded and not direct & model.objs and loop.backward.node not in seen:
                seen.add(loop.backward.node)
                yield context.manual(
                    CODE,
                    loop.backward.node,
                    "a penalty on gradients has a backward of its own, which gives some parameters no gradient: the wrapper waits for all",
                    "add the penalty to the loss, so that one backward does both",
                    (Obligation("gradients", loop.backward.node),),
                )
    for store in run.trace.stores:
        cell = isinstance(store.node, ast.Subscript)
        if (cell or (isinstance(store.node, ast.Attribute) and store.node.attr in ("grad", "data"))) and store.node not in seen:
            if (
                isinstance(store.node, ast.Attribute)
                and store.node.attr == "data"
                and not isinstance(facts.tree_of(store.node).parent[store.node], ast.AugAssign)
            ):
                continue
            inside = any(loop.node in training for loop in store.loops)
            own = (not cell and store.receiver.of_kind("parameters")) or any(
                isinstance(o, New) and o.path == "torch.nn.Parameter" for o in store.receiver.objs
            )
            if inside and own and (store.value.of_kind("drawn") or context.local(store.value)):
                seen.add(store.node)
                yield context.manual(
                    CODE,
                    store.node,
                    "a parameter or its gradient is changed by numbers that differ between ranks",
                    "draw them alike on all ranks, or average them first",
                )
    for store in run.trace.stores:
        attr = store.node.attr if isinstance(store.node, ast.Attribute) else ""
        if attr != "requires_grad" or store.node in seen or not any(loop.node in training for loop in store.loops):
            continue
        touched = store.receiver.of_kind("parameters")
        parts = [
            o
            for o in touched
            if not any(o in m.objs for m in facts.models) and not (isinstance(o, New) and o.path.endswith("DistributedDataParallel"))
        ]
        held = [m for o in parts if isinstance(o, (New, Part)) for r in run.roots(o) for m in facts.models if r in m.objs]
        if any(m not in facts.plain for m in held):
            seen.add(store.node)
            yield context.manual(
                CODE,
                store.node,
                "parts of the wrapped model are frozen or freed while it trains: the wrapper goes on with the old set",
                "wrap the model again after each such change",
            )


def _afterwards(context: Context, call: Call) -> bool:
    """Whether a call is made when nothing is trained any more."""
    last = max((t.backward.last for t in context.facts.loops), default=0)
    own = {loop.node for loop in call.loops}
    return min((c.order for c in context.facts.before.calls(call.node)), default=0) > last and not own & context.facts.training_loops


def _is_gradient(context: Context, function: ast.expr) -> bool:
    """Whether a method is of a gradient, not of that of a batch's rows, which is a rank's own."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Attribute) or function.value.attr != "grad":
        return False
    of = context.facts.after.value(function.value.value)
    return of.scale != "sample" or not of.batches() or bool(of.of_kind("parameters"))


def _trained_before(context: Context, call: Call) -> bool:
    """Whether a call is made on a model that was trained already, or a part of it."""
    facts = context.facts
    asked = [
        o for c in facts.before.calls(call.node) for v in (c.receiver, *c.args) for o in (*facts.before.unwrap(v), *v.of_kind("parameters"))
    ]
    roots = {r for o in asked if isinstance(o, (New, Part)) for r in facts.before.roots(o)}
    orders = [c.order for c in facts.before.calls(call.node)]
    return any(roots & m.objs and min(orders) > first_order(facts, m) for m in facts.models)


def _served(context: Context, call: Call) -> bool:
    """Whether the gradients of all that a backward call reaches are averaged before the steps."""
    models = [m for m in context.facts.models for pair in loss_of(call).of_kind("forward") if pair[0] in m.objs]
    return all(m in context.facts.plain for m in models) and bool(context.facts.served)


def _belongs(context: Context, value: Value) -> bool:
    """Whether a value is a trained model or a part of one."""
    run = context.facts.after
    return any(r in m.objs for o in run.unwrap(value) if isinstance(o, (New, Part)) for r in run.roots(o) for m in context.facts.models)
