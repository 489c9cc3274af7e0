"""What one run of the interpreter reads and writes, in its order, and how that order branches and joins.

A point is a straight stretch of the run: `events` from its start to the start of the next one. `before` tells which points control comes
from; the end of a loop's body is one of those before its head, so that what a pass writes reaches the next one.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

from ddpify.facts.model import Value


class Kind(IntEnum):
    """What happens to a name, an attribute, or an object."""

    READ = 0  # `node` is evaluated, to `value`; of an attribute or an element, `base` is what it is taken from
    WRITE = 1  # `node` is bound, or set on `base`
    CALL = 2  # `node` has called something, a method of `base` where that is not None, and the result is `value`
    MAKE = 3  # a display, or a comprehension, makes the object `value`
    FILL = 4  # all elements of `value` are written
    ENTER = 5  # a function is entered: its names are new
    CHANGE = 6  # a library's function changes `value`, which it is given as `node`


class Event(NamedTuple):
    """One of the things that happen."""

    kind: Kind
    node: ast.AST
    base: Value | None
    value: Value


class Extent(NamedTuple):
    """The points of one execution of a loop, all passes of it: from `first`, and before `after`."""

    first: int
    after: int


class Record:
    """The events of a run, the points that they fall into, and which of them are inside which loop."""

    __slots__ = ("again", "before", "calls", "events", "extents", "log", "starts")

    def __init__(self) -> None:
        self.events: list[tuple[Kind, ast.AST, Value | None, Value]] = []
        self.starts = [0]
        self.before: list[list[int]] = [[]]
        self.extents: dict[ast.AST, list[Extent]] = {}
        self.calls: dict[ast.AST, list[tuple[int, int]]] = {}  # the events that happen inside each call of the project's own functions
        self.again: set[int] = set()  # the points that end in `continue`
        self.log: list[tuple[str, ast.AST | None, int, int]] = []  # what was noted in `calls`, `extents` and `again`, in its order

    def point(self, before: list[int]) -> int:
        """Begin a new point; what happens from now on falls into it."""
        self.starts.append(len(self.events))
        self.before.append(before)
        return len(self.starts) - 1

    @property
    def current(self) -> int:
        """The point that is running."""
        return len(self.starts) - 1

    def repeat(self, head: int, ends: list[int]) -> None:
        """Let control come to the head of a loop from the ends of its body, too."""
        self.before[head] += ends

    def run_again(self, first: int) -> None:
        """Begin the second pass of a loop, in which all happens that did in the first, at the points from `first` on."""
        self.point([first - 1])
        self.log.append(("replaced", None, first, self.current))

    def ran(self, loop: ast.AST, first: int) -> None:
        """Note that a loop, whose first head was `first`, is over."""
        self.extents.setdefault(loop, []).append(Extent(first, self.current))
        self.log.append(("extents", loop, first, self.current))

    def come_again(self, point: int) -> None:
        """Note that a point ends in `continue`."""
        self.again.add(point)
        self.log.append(("again", None, point, point))

    def called(self, node: ast.AST, first: int) -> None:
        """Note that a call, the events of which are those from `first` on, is over."""
        self.calls.setdefault(node, []).append((first, len(self.events)))
        self.log.append(("calls", node, first, len(self.events)))

    def repeated(self, of: Record, events: tuple[int, int], log: tuple[int, int], points: tuple[int, int]) -> None:
        """Let once more happen what happened in a stretch of a record: of its events, its log and its points."""
        here, there = self.current, points[0]
        later, on = len(self.events) - events[0], here - there
        self.starts += [start + later for start in of.starts[there + 1 : points[1] + 1]]
        self.before += [
            [before[0] + on] if len(before) == 1 else [point + on for point in before]  # most points have one before them
            for before in of.before[there + 1 : points[1] + 1]
        ]
        self.events += of.events[events[0] : events[1]]
        for kind, node, first, last in of.log[log[0] : log[1]]:
            shift = later if kind == "calls" else on
            if kind == "again":
                self.again.add(first + shift)
            elif kind == "calls":
                self.calls.setdefault(node, []).append((first + shift, last + shift))  # type: ignore[arg-type]
            elif kind == "extents":
                self.extents.setdefault(node, []).append(Extent(first + shift, last + shift))  # type: ignore[arg-type]
            self.log.append((kind, node, first + shift, last + shift))

    def without_replaced(self) -> Record:
        """The same without the first passes of loops that were run twice."""
        kept = bytearray(b"\1" * len(self.starts))
        instead: dict[int, int] = {}  # of replaced points, where the second pass begins
        for kind, _, first, last in self.log:
            if kind == "replaced":
                kept[first:last] = bytes(last - first)
                instead.update(dict.fromkeys(range(first, last), last))
        out = Record()
        place = [0, *accumulate(kept)]  # of each point that is kept; of another, the place of the next that is
        out.starts, out.before = [], []
        for first, last in _stretches(kept):
            start, end = self.starts[first], self.starts[last] if last < len(kept) else len(self.events)
            later = len(out.events) - start
            out.starts += [at + later for at in self.starts[first:last]]
            out.events += self.events[start:end]
            out.before += [
                [place[before[0]]]
                if len(before) == 1 and kept[before[0]]
                else [place[p] for p in before if kept[p]] or [place[instead[p]] for p in before[:1]]
                for before in self.before[first:last]
            ]
        out.again = {place[point] for point in self.again if kept[point]}
        for loop, extents in self.extents.items():
            out.extents[loop] = [Extent(place[e.first], place[e.after]) for e in extents if place[e.first] < place[e.after]]
        starts = [*out.starts, len(out.events)]

        def moved(at: int) -> int:
            point = bisect_right(self.starts, at) - 1
            return starts[place[point]] + (at - self.starts[point] if kept[point] else 0)

        for node, stretches in self.calls.items():
            out.calls[node] = [(moved(first), moved(last)) for first, last in stretches if kept[bisect_right(self.starts, first) - 1]]
        return out


def _stretches(kept: bytearray) -> Iterator[tuple[int, int]]:
    """Where stretches of points that are kept begin, and end."""
    last = 0
    while (first := kept.find(1, last)) >= 0:
        last = kept.find(0, first)
        last = len(kept) if last < 0 else last
        yield first, last
