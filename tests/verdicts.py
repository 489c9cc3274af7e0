"""Verdicts made by hand, of runs that never were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ddpify.rehearse.compare import DOUBLE, Pair, Row
from ddpify.rehearse.history import Event, History, Rank, Step
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.verify import Verdict

START = 1_700_000_000.0
ROWS = (
    Row("ran", "ran to the end", True, "2 ranks, 20 optimizer steps"),
    Row("ranks_agree", "ranks agree after every step", True, "after each of 20 steps"),
    Row("trajectory", "same trajectory as the original", True, "largest relative difference 1.4e-15 over 20 steps"),
    Row("samples", "every sample once per epoch", None, "no pass was seen"),
    Row("writes", "rank 0 alone wrote", True, "out/model.pt"),
)
FAILED = (
    *ROWS[:2],
    Row(
        "trajectory",
        "same trajectory as the original",
        False,
        "largest relative difference 3.1e-01; they part at step 4, in net.0.weight",
        "the loss is not an average over equally many samples on every rank, or couples a batch's samples",
        "DDP402",
    ),
    ROWS[3],
    Row("writes", "rank 0 alone wrote", False, "rank 1 wrote out/<script>.txt", "a file that every rank writes: `if rank == 0:`", "DDP503"),
)


def rank(
    number: int,
    steps: int = 20,
    losses: int = 1,
    optimizers: Sequence[int] = (0,),
    off: float = 0.0,
    events: Sequence[tuple[float, str, dict[str, Any]]] = (),
    begins: float = 0.0,
    ends: bool = True,
) -> Rank:
    """A rank whose loss falls; `off` is how far its parameters come to be from the original's."""

    def at(seconds: float, kind: str, **data: Any) -> Event:
        return {"at": START + begins + seconds, "pid": 100 + number, "rank": number, "world": 2, "kind": kind, **data}

    told = [at(0.0, "start", argv=[]), *(at(seconds, kind, **data) for seconds, kind, data in events)]
    found = Rank(number, told)
    for o in set(optimizers):
        names = [f"{'net' if o == 0 else 'critic'}.{i}.weight" for i in range(2)]
        event = at(0.1, "optimizer", optimizer=o, type="Adam", names=names, seed=number)
        found.optimizers[o] = event
        told.append(event)
    for i in range(steps):
        o = optimizers[i % len(optimizers)]
        share = 0.05 * math.sin(7.1 * i) * (-1 if number == 1 else 1 if number == 0 else 0)
        value = 0.4 + 2.0 * math.exp(-3 * i / max(steps, 20)) + 0.05 * math.cos(i / 3)
        moved = off * min(i / 10, 1.0)
        parameters = [[1.0 + moved, 0.5, -0.5, 2.0, 2.5], [0.1, 0.2, 0.3, 0.4, 0.5]]
        own = [value * (1 + k) + share + moved for k in range(losses if o == 0 else 1)]
        found.steps.append(Step(o, parameters, [0.1], losses=own))
        told.append(at(0.5 + 3.0 * i / max(steps, 1), "step", optimizer=o))
    if ends:
        told.append(at(4.0, "exit", left_open=False))
    told.sort(key=lambda e: float(e["at"]))
    return found


def verdict(
    rows: Sequence[Row] = ROWS,
    single: Rank | None = None,
    ranks: Sequence[Rank] | None = None,
    parent: Sequence[Event] = (),
    **more: Any,
) -> Verdict:
    """A verdict on these ranks."""
    single = single or rank(2)
    ranks = ranks or [rank(0, begins=10), rank(1, begins=10)]
    setting = Setting("python", len(ranks), 20, 300.0, True)
    pair = Pair(History({0: single}, [], 1), History({r.number: r for r in ranks}, list(parent), 2), len(ranks), DOUBLE, lambda path: path)
    told: dict[str, Any] = {"conditions": ("cuda", "double", "steps"), "seconds": (4.2, 4.6), "pair": pair} | more
    return Verdict("train.py", "train.py (converted)", "torchrun", setting, tuple(rows), **told)
