"""What one run of the interpreter reads and writes, in its order, and how that order branches and joins.

A point is a straight stretch of the run: `events` from its start to the start of the next one. `before` tells which points control comes
from; the end of a loop's body is one of those before its head, so that what a pass writes reaches the next one.
"""

from __future__ import annotations

import ast
from enum import IntEnum
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

    __slots__ = ("again", "before", "calls", "events", "extents", "starts")

    def __init__(self) -> None:
        self.events: list[tuple[Kind, ast.AST, Value | None, Value]] = []
        self.starts = [0]
        self.before: list[list[int]] = [[]]
        self.extents: dict[ast.AST, list[Extent]] = {}
        self.calls: dict[ast.AST, list[tuple[int, int]]] = {}  # the events that happen inside each call of the project's own functions
        self.again: set[int] = set()  # the points that end in `continue`

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

    def go_on(self, ended: list[int]) -> None:
        """Let control not come here from points at which a loop was left by `break`: it is run once more."""
        self.before[-1] = [point for point in self.before[-1] if point in self.again or point not in ended]

    def ran(self, loop: ast.AST, first: int) -> None:
        """Note that a loop, whose first head was `first`, is over."""
        self.extents.setdefault(loop, []).append(Extent(first, self.current))
