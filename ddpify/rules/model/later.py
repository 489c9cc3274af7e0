"""What changes a model after it was wrapped, and its wrapper does not see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.collect import made_in
from ddpify.facts.model import Lit, New, Part, Value
from ddpify.rules.base import Finding
from ddpify.rules.context import Context

CODE = "DDP201"

_DRAWN = frozenset(("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "trunc_normal_"))


def changes(context: Context) -> Iterator[Finding]:
    """Writes to a wrapped model that its wrapper does not see."""
    facts, run = context.facts, context.facts.after
    seen: set[ast.AST] = set()
    training = facts.training_loops
    training -= {
        node for m in facts.models for node in made_in(facts.before, m)
    }  # folds, in which a model is made, filled and wrapped anew
    for call in run.trace.calls:
        if call.node in seen:
            continue
        wrapped = facts.wrapped(call.receiver) is not False
        if wrapped and call.method in ("cpu", "half", "float", "double", "bfloat16", "to_empty"):
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                f"`.{call.method}()` moves the wrapped model's parameters away from what the wrapper averages gradients for",
                "save a copy instead: {k: v.cpu() for k, v in model.module.state_dict().items()}",
            )
        elif wrapped and call.method == "apply" and any(loop.node in training for loop in call.loops):
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
        own = call.receiver.of_kind("parameters") or (
            isinstance(call.node.func, ast.Attribute)
            and isinstance(call.node.func.value, ast.Attribute)
            and call.node.func.value.attr == "grad"
        )
        what = ""
        if call.method == "register_hook" and call.receiver.of_kind("parameters"):
            what = "a hook on a parameter sees this rank's own gradient, before it is averaged"
        elif "torch.autograd.grad" in call.func.paths() and any(v.of_kind("parameters") for v in call.args[1:2]):
            what = "autograd.grad over parameters gives this rank's own gradient: the wrapper averages `.backward()` alone"
        elif inside and call.method.endswith("_") and own and ({"random", "batch", "decided"} & set(mixed) or call.method in _DRAWN):
            what = "a parameter or its gradient is changed by numbers that differ between ranks"
        elif any(p.startswith("torch.nn.Lazy") for p in call.func.paths()):
            what = "a lazy layer has no parameters yet when the model is wrapped"
        elif (
            inside
            and (
                call.method in ("reset_parameters", "init_weights", "apply")
                or any(p.startswith("torch.nn.init.") for p in call.func.paths())
            )
            and any(v.of_kind("parameters") or _belongs(context, v) for v in (call.receiver, *call.args))
        ):
            what = "the model is initialised again after the wrap: each rank draws its own weights"
        elif call.method == "backward" and any(
            not (isinstance(o, Lit) and not o.value) for o in call.keywords.get("retain_graph", Value()).objs
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
    for store in run.trace.stores:
        if isinstance(store.node, ast.Attribute) and store.node.attr in ("grad", "data") and store.node not in seen:
            if store.node.attr == "data" and not isinstance(facts.tree_of(store.node).parent[store.node], ast.AugAssign):
                continue
            inside = any(loop.node in training for loop in store.loops)
            own = store.receiver.of_kind("parameters") or any(
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
        if parts and any(r in m.objs for o in parts if isinstance(o, (New, Part)) for r in run.roots(o) for m in facts.models):
            seen.add(store.node)
            yield context.manual(
                CODE,
                store.node,
                "parts of the wrapped model are frozen or freed while it trains: the wrapper goes on with the old set",
                "wrap the model again after each such change",
            )


def _belongs(context: Context, value: Value) -> bool:
    """Whether a value is a trained model or a part of one."""
    run = context.facts.after
    return any(r in m.objs for o in run.unwrap(value) if isinstance(o, (New, Part)) for r in run.roots(o) for m in context.facts.models)
