"""Layers that a model gets after its training began."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.collect import first_order
from ddpify.facts.model import Loop, New, Part, Value
from ddpify.rules.base import Finding
from ddpify.rules.context import Context

CODE = "DDP201"


def findings(context: Context, training: frozenset[ast.AST]) -> Iterator[Finding]:
    """Layers that a model gets while it trains, or later."""
    facts, run = context.facts, context.facts.before
    seen: set[ast.AST] = set()
    found: list[tuple[ast.AST, int, tuple[Loop, ...], Value, tuple[Value, ...]]] = [
        (s.node, s.order, s.loops, s.receiver, (s.value,)) for s in run.trace.stores if isinstance(s.node, (ast.Attribute, ast.Subscript))
    ]
    puts = ("add_module", "register_module", "register_parameter", "append", "insert", "extend")
    found += [(c.node, c.order, c.loops, c.receiver, tuple(c.args)) for c in run.trace.calls if c.method in puts]
    for node, order, loops, receiver, values in found:
        layers = [
            o for v in values for o in v.objs if isinstance(o, New) and (o.path.startswith("torch.nn.") or run.interpreter.is_module(o))
        ]
        roots = {r for o in run.unwrap(receiver) if isinstance(o, (New, Part)) for r in run.roots(o)}
        for model in facts.models:
            late = order > first_order(facts, model) or any(loop.node in training for loop in loops)
            if node not in seen and late and layers and roots & model.objs and not set(layers) & model.objs:
                seen.add(node)
                yield context.manual(
                    CODE,
                    node,
                    "the model gets a layer after training began: no wrapper knows of it, and each rank draws its own weights for it",
                    "broadcast the new layer's parameters from rank 0, and wrap the model again after this",
                )
