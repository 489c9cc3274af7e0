"""How the copies of a value that N ranks hold relate to the value that the original's one process has at the same point.

The words are those of torch.distributed.tensor. Claims are ordered: `Replicate` claims most, `Unknown` nothing; what two ways of
computing a value have in common is the placement of the values joined (`Value.__or__`). Reference: https://docs.pytorch.org/docs/stable/distributed.tensor.html
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ddpify.records import dataclass

Op = Literal["mean", "sum", "count", "weighted", "max", "min"]


@dataclass(frozen=True, slots=True)
class Replicate:
    """Every rank holds the original's value."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The original's rows are those of all ranks, as the `sources` share them out; `axis` is None where it may be any."""

    sources: frozenset[object] = frozenset()
    axis: int | None = 0


@dataclass(frozen=True, slots=True)
class Partial:
    """The original's value is the mean over ranks, the sum, a sum of counts of rows, the mean by what each rank counted, or an extreme."""

    op: Op
    sources: frozenset[object] = frozenset()


@dataclass(frozen=True, slots=True)
class PerRank:
    """Each rank's own on purpose, and the original's value is no function of them: a clock, a process, a choice by a rank's own rows."""

    why: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing is claimed; `why` names what is not known."""

    why: frozenset[str] = frozenset()


Placement: TypeAlias = "Replicate | Shard | Partial | PerRank | Unknown"
REPLICATE = Replicate()
