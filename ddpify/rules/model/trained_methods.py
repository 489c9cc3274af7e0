"""A model that is trained through a method of its own: a small module whose forward calls the method is wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import FreshName, InsertAfter, Replace
from ddpify.facts.collect import TrainedModel
from ddpify.rules.base import Change, Finding, Obligation
from ddpify.rules.context import Context
from ddpify.rules.model import batch_norm, unused

CODE = "DDP201"


def wraps(context: Context) -> Iterator[Change | Finding]:
    """The wraps, and the calls that go through them."""
    facts = context.facts
    for trained in facts.trained_methods:
        model = TrainedModel(frozenset((trained.start.module,)) if trained.start.module is not None else frozenset(), frozenset())
        name, inside = trained.start.what, trained.start.what.rpartition(".")[0]
        attributes = frozenset(n.attr for n in context.tree.of(ast.Attribute))
        own = FreshName(("loss_of", "loss_through_ddp"), trained.start.after, avoid=attributes)
        loss = f"{inside}.{own}" if inside else str(own)
        rests = ", find_unused_parameters=True" if trained.partly or unused.unused(context, model) else ""
        inner = f"{context.names['training_loss']}({name})"
        code = f"{loss} = {context.wrapper(inner, name, rests)}"
        if batch_norm.sync(context, model):
            code = batch_norm.converted(context, model, name) + code
        yield Change(
            CODE,
            f"DDP averages gradients only of what its forward runs: here `{trained.method}`, which trains the model",
            context.tree.shown,
            trained.start.after,
            (InsertAfter(trained.start.after, code, (own,)), *(Replace(site.func, loss) for site in trained.sites)),
            context.wrapper_imports,
            discharges=tuple(Obligation("gradients", node) for node in _backwards(context, model)),
            needs=("training_loss", f"method:{trained.method}"),
        )
        yield from batch_norm.findings(context, model, trained.start.after)


def _backwards(context: Context, model: TrainedModel) -> Iterator[ast.AST]:
    """The backward calls that go through a model."""
    run = context.facts.before
    for loop in context.facts.loops:
        if run.part_of((obj for obj, _ in loop.loss.of_kind("forward")), model.objs):
            yield loop.backward.node
