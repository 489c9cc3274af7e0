"""What one run of the interpreter sees, in its order, and what a part of it reads that was there before."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from ddpify.facts.aliases import Aliases
from ddpify.facts.memory import Reads
from ddpify.facts.model import NOTHING, Call, Known, Loop, Obj, Stack, Store, Value


class Repeated:
    """What stands for all that a call did which is not interpreted again."""

    __slots__ = ()

    def nodes(self) -> set[ast.AST]:
        """The expressions that were seen."""
        return set()

    def values(self) -> dict[ast.AST, Value]:
        """What expressions were seen to be."""
        return {}

    def visited(self) -> set[ast.AST]:
        """The statements that ran."""
        return set()

    def calls(self) -> Iterable[Seen]:
        """The evaluations of calls."""
        return ()


class Log:
    """What one run sees, in its order: of it, what a call sees is a slice."""

    __slots__ = ("calls", "noted", "stores", "visited")

    def __init__(self) -> None:
        self.noted: list[tuple[ast.AST, Value] | Repeated] = []
        self.visited: list[ast.AST | Repeated] = []
        self.calls: list[Seen | Repeated] = []
        self.stores: list[Store] = []


class Seen:
    """One evaluation of a call expression."""

    __slots__ = ("args", "call", "func", "keywords", "last", "loops", "no_grad", "now", "order", "receiver", "result", "stack")

    def __init__(
        self,
        call: Call,
        func: Value,
        args: list[Value],
        keywords: dict[str, Value],
        receiver: Value,
        loops: tuple[Loop, ...],
        order: int,
        no_grad: bool,
    ) -> None:
        self.call, self.stack = call, call.stack
        self.func, self.args, self.keywords, self.receiver, self.now = func, args, keywords, receiver, receiver
        self.loops = loops
        self.order = self.last = order
        self.result = NOTHING
        self.no_grad = no_grad

    def copy(self) -> Seen:
        """The same once more."""
        out = Seen(self.call, self.func, self.args, self.keywords, self.receiver, self.loops, self.order, self.no_grad)
        out.last, out.now, out.result, out.stack = self.last, self.now, self.result, self.stack
        return out


class Recording(Reads):
    """What a running function reads that was there before it, and writes."""

    __slots__ = ("aliases", "closures", "driven", "functions", "made", "other", "settings", "settings_asked")

    def __init__(self, driven: int, settings: frozenset[Known]) -> None:
        super().__init__()
        self.settings = settings  # what is known of settings where it begins
        self.settings_asked: set[Obj] = set()  # of which settings it makes a difference what is known
        self.made: dict[Obj, frozenset[Known]] = {}  # what was made, and what was known there of settings beside that
        self.other: dict[tuple[str, object], object] = {}  # what was asked of the run beside its memory
        self.closures: dict[tuple[ast.AST, Stack], Any] = {}  # the frames in which functions were defined
        self.functions: set[tuple[ast.AST, Stack]] = set()
        self.aliases = Aliases()  # which names and attributes were given the same tensor
        self.driven = driven  # how many functions a command line was known to run

    def add(self, inner: Recording) -> None:
        """What a function that was called has read and written."""
        self.include(inner, inner.saved.__getitem__)
        self.add_rest(inner, inner.settings)
        self.aliases.include(inner.aliases)

    def add_rest(self, inner: Recording, settings: frozenset[Known]) -> None:
        """What it has asked beside the memory; `settings` are what was known of them where it began."""
        self.settings_asked |= inner.settings_asked
        for obj, known in inner.made.items():
            self.make(obj, known | settings)
        self.sound = self.sound and inner.sound
        self.functions |= inner.functions
        self.closures |= inner.closures
        for key, value in inner.other.items():
            if key[0] != "outer" or key[1][0] not in self.closures:  # type: ignore[index]
                self.other.setdefault(key, value)

    def make(self, obj: Obj, settings: frozenset[Known]) -> None:
        """Note that an object is made where this is known of settings."""
        known = settings - self.settings
        self.made[obj] = self.made.get(obj, known) & known


def merge(call: Call, seen: Seen, loops: tuple[Loop, ...]) -> None:
    """Let a call be one more evaluation, too, which is inside some loops."""
    call.now, call.no_grad = seen.now, call.no_grad and seen.no_grad
    if call.func is not seen.func:
        call.func = call.func | seen.func
    if call.receiver is not seen.receiver:
        call.receiver = call.receiver | seen.receiver
    if seen.args:
        call.args = [a if a is b else a | b for a, b in zip(call.args, seen.args, strict=False)] + seen.args[len(call.args) :]
    for name, value in seen.keywords.items():
        call.keywords[name] = call.keywords[name] | value if name in call.keywords else value
    if len(loops) >= len(call.loops):
        call.loops = loops
