"""Layers that a model gets after its training began."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import Call, New, Store, Value
from ddpify.facts.wrap_places import first_run
from ddpify.rules.base import Finding
from ddpify.rules.context import Context

CODE = "DDP201"
_PUTTING = ("add_module", "register_module", "register_parameter", "append", "insert", "extend")


def findings(context: Context, training: frozenset[ast.AST]) -> Iterator[Finding]:
    """Layers that a model gets while it trains, or later."""
    trace = context.facts.before.trace
    puts: list[tuple[Store | Call, list[Value]]] = [
        (s, [s.value]) for s in trace.stores if isinstance(s.node, (ast.Attribute, ast.Subscript))
    ]
    puts += [(c, c.args) for c in trace.calls if c.method in _PUTTING]
    late = {event.node for event, values in puts if _gives_late(context, event, values, training)}
    for node in dict.fromkeys(event.node for event, _ in puts if event.node in late):
        why = "the model gets a new layer during training: DDP does not average its gradients, and each rank draws different weights for it"
        yield context.manual(CODE, node, why, "broadcast the new layer's parameters from rank 0, and wrap the model again after this")


def _gives_late(context: Context, event: Store | Call, values: list[Value], training: frozenset[ast.AST]) -> bool:
    """Whether a model is given a layer that is not one of its own, when its training has begun."""
    facts, run = context.facts, context.facts.before
    layers = {o for v in values for o in v.instances() if o.path.startswith("torch.nn.") or run.interpreter.is_module(o)}
    given = {r for o in run.unwrap(event.receiver) if layers for r in run.roots(o)}
    roots = {r for r in given if not (isinstance(r, New) and r.node in event.stack)}  # while it is made, it is given its own
    models = [m for m in facts.models if roots & m.objs and not layers & m.objs]
    inside = any(loop.node in training for loop in event.loops)
    return any(inside or event.order > first_run(facts, (m,), roots) for m in models)
