"""Loaders that are made again while one training goes on, as in each round of several epochs."""

from __future__ import annotations

import itertools

from ddpify.facts import library
from ddpify.facts.model import Loop, New
from ddpify.rules.context import Context


def made_in_rounds(context: Context, loader: New) -> bool:
    """Whether a loop around several epochs of one training makes a loader again: its orders would be those of the round before."""
    around = {loop.node for call in context.facts.after.calls(loader.node) for loop in call.loops}
    for training in context.facts.loops:
        if loader in training.loaders and training.epoch is not None:
            epochs = training.epoch.node
            rounds = itertools.takewhile(lambda loop, epochs=epochs: loop.node is not epochs, training.backward.loops)  # type: ignore[misc]
            if any(loop.node in around and not trains_anew(context, loop) for loop in rounds):
                return True
    return False


def trains_anew(context: Context, loop: Loop) -> bool:
    """Whether each pass of a loop is a training of its own, of models that are made in it, and no copies: no epoch of another one."""
    run, models = context.facts.after, context.facts.models
    made = [[c for o in model.objs if isinstance(o, New) for c in run.calls(o.node) if o.path not in library.COPIES] for model in models]
    return bool(made) and all(calls and all(any(each.node is loop.node for each in c.loops) for c in calls) for calls in made)
