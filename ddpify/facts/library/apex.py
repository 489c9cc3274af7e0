"""Rows of apex: models and optimizers come back as they went in, a loss comes back scaled."""

from __future__ import annotations

from ddpify.facts.library.generic import first, nothing
from ddpify.facts.library.paths import INITIALIZE, MASTER_PARAMS, SCALE_LOSS
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import NOTHING, Tup, Value, join, just
from ddpify.facts.origins import Origin


def _initialized(use: Use) -> Value:
    models, optimizers = use.argument(0, "models"), use.argument(1, "optimizers")
    return just(Tup((models, optimizers))) if optimizers.objs else models


def _scaled(use: Use) -> Value:
    loss = use.argument(0, "loss")
    return Value(loss.objs, loss.origins | {Origin("scaled", use.instance())}, loss.scale, loss.shape)


def _master_parameters(use: Use) -> Value:
    return join([use.run.memory.get((o, "params"), NOTHING) for value in use.args[:1] for o in value.instances()])


ROWS: dict[str, Rule] = {
    "apex.amp": nothing,
    INITIALIZE: _initialized,
    SCALE_LOSS: _scaled,
    MASTER_PARAMS: _master_parameters,
    **{f"apex.amp.{register}{kind}_function": first for kind in ("half", "float", "promote") for register in ("", "register_")},
    "apex.parallel.convert_syncbn_model": first,
}
