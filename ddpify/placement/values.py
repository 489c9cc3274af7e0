"""The placement of a value: what the interpreter saw it computed from, given which loaders give each rank its own share."""

from __future__ import annotations

from collections.abc import Collection

from ddpify.facts.model import Origin, Value
from ddpify.placement.lattice import REPLICATE, Op, Partial, PerRank, Placement, Shard, Unknown
from ddpify.placement.shape import Scale

CLOCK = "the clock"
CHOICE = "a choice by a rank's own batch"
_OPS: dict[Scale, Op] = {
    "mean": "mean",
    "sum": "sum",
    "count": "count",
    "total": "sum",
    "weighted": "weighted",
    "largest": "max",
    "smallest": "min",
}


def placement(value: Value, sharded: Collection[object]) -> Placement:
    """How a value differs between ranks where the loaders `sharded` give each rank its own share of the data."""
    unknown = frozenset(o.of for o in value.origins if o.kind == "unknown")
    if unknown:
        return Unknown(frozenset(map(str, unknown)))
    sources = frozenset(o.of for o in value.origins if o.kind == "batch" and o.of in sharded)
    if sources:
        return _of_batch(value, sources)
    own = frozenset(why for o in value.origins if (why := _own(o, sharded)))
    return PerRank(own) if own else REPLICATE


def _of_batch(value: Value, sources: frozenset[object]) -> Placement:
    if value.scale == "sample":
        return Shard(sources, None if value.of_kind("reordered") or value.of_kind("parts") else 0)
    if value.scale in _OPS:
        return Partial(_OPS[value.scale], sources)
    return Unknown()


def _own(origin: Origin, sharded: Collection[object]) -> str:
    """Why a value that was computed from this differs between ranks; empty where it does not."""
    if origin.kind == "time":
        return CLOCK
    if origin.kind == "process":
        return str(origin.of)
    return CHOICE if origin.kind == "decided" and origin.of in sharded else ""
