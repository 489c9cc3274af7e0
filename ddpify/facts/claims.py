"""What claims about tensors depend on: how many dimensions tensors were seen to have, and what was taken to be a tuple of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal, TypeAlias

from ddpify.facts.origins import Origin
from ddpify.placement.shape import AtMost, Base, Just, Seen

Noted: TypeAlias = "tuple[Literal['shown', 'used', 'taken', 'needed', 'written'], Hashable, int]"


class Claims:
    """What one run has noted, in its order: what a call notes is a slice of it."""

    __slots__ = ("_ndims", "_open", "_taken", "_used", "_written", "log")

    def __init__(self) -> None:
        self.log: list[Noted] = []
        self._ndims: dict[Hashable, int] = {}  # how many dimensions there are at least, of what they are counted from
        self._used: set[Hashable] = set()  # what batches and outputs were used as a tensor, and so are no tuples
        self._taken: set[Hashable] = set()  # of what may be a tuple of tensors, the bases of those that were taken
        self._open: set[tuple[Hashable, int]] = set()  # the numbers of dimensions that claims depend on
        self._written: set[Hashable] = set()  # where constants were made some of whose entries are changed in place

    def note(self, kind: Literal["shown", "used", "taken", "needed", "written"], base: Hashable, least: int = 0) -> None:
        """Note that something has so many dimensions, is used as a tensor, taken for a tuple, needs so many, or is written to."""
        self.log.append((kind, base, least))
        if kind == "shown":
            if isinstance(base, AtMost):
                self._ndims[base] = min(self._ndims.get(base, least), least)
            elif self._ndims.get(base, 0) < least:
                self._ndims[base] = least
        elif kind == "needed":
            self._open.add((base, least))
        elif kind == "written":
            self._written.add(base)
        else:
            (self._used if kind == "used" else self._taken).add(base)

    def repeat(self, noted: Iterable[Noted]) -> None:
        """Note once more what a call noted."""
        for each in noted:
            self.note(*each)

    def has(self, base: Hashable, least: int) -> bool:
        """Whether something was seen to have so many dimensions; or where it should have just so many, not seen to have others."""
        if isinstance(base, Just):
            return self._ndims.get(base, least) == least
        if isinstance(base, Seen):
            return self._ndims.get(Just(base.base)) == least or self._at_least(base.base) >= least == self._ndims.get(AtMost(base.base))
        return self._at_least(base) >= least

    def is_tensor(self, base: Hashable) -> bool:
        """Whether what might be a tuple of tensors was used as one tensor."""
        return base in self._used

    def is_tuple(self, base: Hashable) -> bool:
        """Whether what might be a tuple of tensors was taken for one, or for a dict."""
        return base in self._taken and base not in self._used

    def _at_least(self, base: Hashable) -> int:
        known = self._ndims.get(base, 1)  # that of the samples
        if isinstance(base, Base) and isinstance(base.of, frozenset):
            known = max(known, min(s.dims if s.base is None else s.dims + self._at_least(s.base) for s in base.of))
        return known

    def unmet(self) -> frozenset[Origin]:
        """The marks of the claims that do not hold: too few dimensions were seen, what was taken for a tuple is a tensor, or rows
        that were all the same are not."""
        open_ = {Origin("needs", need) for need in self._open if not self.has(*need)}
        open_ |= {Origin("uniform", node) for node in self._written}
        return frozenset(open_ | {Origin("entry", base) for base in self._taken & self._used})
