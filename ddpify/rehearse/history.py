"""The record of a run, read: what each rank did, in order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Digest = list[float]


@dataclass
class Step:
    """An optimizer step: parameters and gradients as digests (projections, then the norm), the losses and samples that led to it.

    `samples` holds (number of the training loader, sample) pairs, `shapes` what the tensors of its batches have beside their rows.
    """

    optimizer: int
    parameters: list[Digest]
    rates: list[float]
    gradients: list[Digest | None] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    samples: list[tuple[int, str]] = field(default_factory=list)
    shapes: list[list[list[int]]] = field(default_factory=list)


@dataclass
class Rank:
    """One rank: its events in order, those of its loader workers after those of the process itself."""

    number: int
    events: list[Event]
    steps: list[Step] = field(default_factory=list)
    optimizers: dict[int, Event] = field(default_factory=dict)
    loaders: list[Event] = field(default_factory=list)  # those that train, in the order in which they began to

    def of(self, *kinds: str) -> Iterator[Event]:
        """The events of some kinds."""
        return (event for event in self.events if event["kind"] in kinds)

    @property
    def ended(self) -> bool:
        """Whether it came to its end."""
        return any(True for _ in self.of("exit"))


@dataclass
class History:
    """A run: its ranks by number, and the process that spawned them, if there was one."""

    ranks: dict[int, Rank]
    parent: list[Event]
    world: int

    @property
    def first(self) -> Rank:
        """Rank 0, or the only process."""
        return self.ranks.get(0) or Rank(0, [])

    def conditions(self) -> set[str]:
        """What the comparison rests on, by name."""
        return {e["name"] for rank in self.ranks.values() for e in rank.of("condition")}

    def rank_zero_events(self) -> list[Event]:
        """The events of rank 0 and of the process that spawned it, in order of time."""
        return sorted((*self.parent, *self.first.events), key=lambda e: float(e["at"]))


def read(folder: Path, ranks: int) -> History:
    """The history of a run, with one process or as `ranks`."""
    processes: dict[int, list[Event]] = {}
    for file in sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime):
        events = [event for line in file.read_bytes().splitlines() if (event := _event(line))]
        if events:
            processes[int(file.stem)] = events
    numbers = {pid: max(e["rank"] for e in events) for pid, events in processes.items()}
    spawned = ranks > 1 and any(number >= 0 for number in numbers.values())
    parent = [e for pid, number in numbers.items() for e in processes[pid] if spawned and number < 0]
    by_rank: dict[int, list[list[Event]]] = defaultdict(list)
    for pid, number in numbers.items():
        if not (spawned and number < 0):
            by_rank[max(number, 0)].append(processes[pid])
    found = {number: _rank(number, lists) for number, lists in sorted(by_rank.items())}
    world = max((e["world"] for events in processes.values() for e in events), default=1)
    return History(found, parent, world)


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:  # the process was ended while it wrote
        return None
    return event if isinstance(event, dict) else None


def _rank(number: int, processes: list[list[Event]]) -> Rank:
    """A rank out of its processes: the one that trains comes first."""
    processes = sorted(processes, key=lambda events: (-sum(e["kind"] == "step" for e in events), events[0]["at"]))
    rank = Rank(number, [event for events in processes for event in events])
    main = processes[0]
    order: dict[int, int] = {}
    for event in main:
        if event["kind"] == "trains":
            order.setdefault(event["loader"], len(order))
    rank.loaders = [e for loader in order for e in main if e["kind"] == "loader" and e["loader"] == loader]
    gradients: list[Digest | None] = []
    losses: list[float] = []
    samples: list[tuple[int, str]] = []
    shapes: list[list[list[int]]] = []
    for event in main:
        kind = event["kind"]
        if kind == "optimizer":
            rank.optimizers[event["optimizer"]] = event
        elif kind == "gradients":
            gradients = event["gradients"]
        elif kind == "loss":
            losses.append(event["value"])
        elif kind == "batch" and event["loader"] in order:
            samples += [(order[event["loader"]], sample) for sample in event["samples"]]
            shapes.append(event.get("shapes", []))
        elif kind == "step":
            rank.steps.append(Step(event["optimizer"], event["parameters"], event["rates"], gradients, losses, samples, shapes))
            gradients, losses, samples, shapes = [], [], [], []
    return rank
