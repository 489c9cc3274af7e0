"""A row of a library's table: a dotted path, and the rule that says what a call of it gives.

A row of a package holds for all paths that begin with its own (`"numpy.random"` for `numpy.random.rand`), that of a class for the class
alone, not for `dict.fromkeys`; of several rows the longest decides: `"torch.load"` comes before `"torch"`. A rule that gives None passes
the call on to the next shorter row. What no row knows is an object of an unknown class (`generic.instance`). To add a row, name the path
as `facts/names.py` spells it, and choose a rule of `generic.py`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ddpify.facts.library import flow
from ddpify.facts.model import NOTHING, Call, Ext, New, Obj, Value

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

T = TypeVar("T")
_NOBODY = Ext("")
_LOWER_CASE = frozenset(("collections.defaultdict", "collections.deque", "itertools.chain", "tqdm.tqdm"))  # classes


class Use(NamedTuple):
    """One call of a library's function or class by its `path`, or of the method `path` of an object `of`, or of any of those `alike`."""

    run: Interpreter
    event: Call
    path: str
    args: list[Value]
    keywords: dict[str, Value]
    of: Obj = _NOBODY
    alike: frozenset[Obj] = frozenset()

    @property
    def node(self) -> ast.Call:
        """The call expression."""
        return self.event.node

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def mixed(self) -> Value:
        """What an unknown function would make of the arguments."""
        return flow.mixed(self.args, self.keywords)

    def argument(self, position: int, *keywords: str) -> Value:
        """The argument that is passed by one of some keywords, or at a position; NOTHING where there is none."""
        named = next((self.keywords[k] for k in keywords if k in self.keywords), None)
        return named if named is not None else self.args[position] if position < len(self.args) else NOTHING

    def instance(self, path: str = "") -> New:
        """The object that the call makes, of the class that is called or another one."""
        return self.run.objects.new(path or self.path, self.node, self.run.stack)


Rule = Callable[[Use], Value | None]


def rows_of(table: Mapping[str, T], path: str, of_classes: bool = True) -> list[T]:
    """The rows that a dotted path begins with, the longest first; those of the classes that it lies in only if `of_classes`."""
    parts = path.split(".")
    starts = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return [table[start] for start in starts if start in table and (of_classes or start == path or not _is_class(start))]


def _is_class(path: str) -> bool:
    """Whether a path is that of a class, by the names that classes have, or of one of Python's own."""
    last = path.rpartition(".")[2]
    return last[:1].isupper() or path in _LOWER_CASE or (path == last and isinstance(getattr(builtins, path, None), type))


def row_of(table: Mapping[str, T], path: str) -> T | None:
    """The longest row that a dotted path begins with."""
    return next(iter(rows_of(table, path)), None)
