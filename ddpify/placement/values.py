"""The placement of a value: what the interpreter saw it computed from, given which loaders give each rank its own share."""

from __future__ import annotations

from collections.abc import Collection

from ddpify.facts.model import Lit, Value
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


def is_rows(value: Value, several: bool = False) -> bool:
    """Whether a value is a tensor with one row for each sample in its first dimension; with `several`, or that many one after another."""
    if any(map(value.of_kind, ("reordered", "steps", "ordered", "decided"))) or (value.of_kind("parts") and not several):
        return False
    first = value.shape is None or (value.shape.axis == 0 and not value.shape.places)
    return value.scale == "sample" and first and all(isinstance(o, Lit) and type(o.value) in (int, float) for o in value.objs)  # or a start


def placement(value: Value, sharded: Collection[object]) -> Placement:
    """How a value differs between ranks where the loaders `sharded` give each rank its own share of the data."""
    unknown = value.of_kind("unknown")
    if unknown:
        return Unknown(frozenset(map(str, unknown)))
    sources = frozenset(of for of in value.of_kind("batch") if of in sharded)
    if sources:
        return _of_batch(value, sources)
    own = set(map(str, value.of_kind("process")))
    if value.of_kind("time"):
        own.add(CLOCK)
    if any(of in sharded for of in value.of_kind("decided")):
        own.add(CHOICE)
    return PerRank(frozenset(own)) if own else REPLICATE


def _of_batch(value: Value, sources: frozenset[object]) -> Placement:
    if value.scale == "sample":
        return Shard(sources, None if any(map(value.of_kind, ("reordered", "steps", "ordered", "parts"))) else 0)
    if value.scale in _OPS:
        return Partial(_OPS[value.scale], sources)
    return Unknown()
