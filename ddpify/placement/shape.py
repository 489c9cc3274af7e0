"""What the transfer rules know of their operands: how each depends on the batch, and along which of its dimensions the samples lie."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

# How a number depends on the samples of a batch. "sample": one entry, or block of entries, for each sample; "chosen": entries of some
# samples, of which ranks have different numbers; "mean": an average over the samples; "sum": a total; "count": how many there are,
# "total": counts added up; "weighted": an average by weights or over chosen entries; "largest", "smallest": of all entries; "other":
# nothing is known.
Scale: TypeAlias = Literal["sample", "chosen", "mean", "sum", "count", "total", "weighted", "largest", "smallest", "other"]

ROWS: Final = ("sample", "chosen")
EXTREMES: Final = ("largest", "smallest")
PLACES: Final = "places"  # the literal of `arange(len(x))`: where each row stands in its rank's share
NUMBERS: Final = "numbers"  # the literal of rows that are no mask, as far as is known: as an index, they may name any sample
LATER: Final = "later"  # the literal of `range(1, x.ndim)`: some dimensions, of which the first is none
SEVERAL: Final = "several"  # the literal of a size that is the number of samples several times
OWN: Final = "own rows"  # the literal of how many rows there are of several steps, as a size that these are viewed by
CHOSEN: Final = "rows"  # the literal of how many rows a rank has of those that were chosen
NUMBERED: Final = "numbers"  # of `falling`: numbers of which none is larger than the one before
MASK: Final = "mask"  # of `falling`: which of such numbers pass a test that only the first of them pass
LENGTH: Final = "length"  # of `falling`: how many do
UNKNOWN: Final = object()  # a literal that is not known
Bound: TypeAlias = "tuple[Hashable, int]"  # what counts dimensions, and how many it has at least


class Base:
    """What dimensions are counted from; its hash, of what may hold others, is found once."""

    __slots__ = ("_hash", "of")

    def __init__(self, of: Hashable) -> None:
        self.of = of
        self._hash = hash(of)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Base) and self._hash == other._hash and self.of == other.of)


class Just(NamedTuple):
    """What dimensions are counted from, where it has just so many, and not only so many at least."""

    base: Hashable


class AtMost(NamedTuple):
    """What dimensions are counted from, where it has no more."""

    base: Hashable


class Seen(NamedTuple):
    """What dimensions are counted from, where it was seen to have just so many."""

    base: Hashable


class Shape(NamedTuple):
    """The dimensions of a tensor: how many, and which is that of the samples.

    `dims` is their number where `base` is None, else how many more there are than what `base` stands for has. `sure`: whether the axis
    of the samples is known, and not only the usual one. `single`: the last dimension has one entry, `front`: the first,
    `second`: the second, where the samples come first.
    `several`: a tuple of such tensors (None: it may be one).
    `uniform`: a constant whose rows are all the same. `places`: what the places of the samples in their rank's share are numbered by.
    `packed`: sequences in one PackedSequence, whose `data`, its first entry, has the steps of all of them. `by_step`: there are rows of
    several steps, one step after another, each with one row of every sample. `sizes`: what a view has said of each dimension's length,
    its number or UNKNOWN. `falling`: the samples lie in the order of these numbers of theirs, the largest first (NUMBERED), of which these
    are a test (MASK), or which so many pass (LENGTH).
    """

    base: Hashable | None = None
    dims: int = 0
    axis: int = 0
    sure: bool = True
    single: bool = False
    several: bool | None = False
    front: bool = False
    second: bool = False
    uniform: bool = False
    places: bool = False
    packed: bool = False
    by_step: bool = False
    sizes: tuple[object, ...] = ()
    falling: str = ""

    @property
    def ndim(self) -> int | None:
        """The number of dimensions, where it is known."""
        return self.dims if self.base is None else None

    def resized(self, more: int = 0, axis: int | None = None) -> Shape:
        """With more or fewer dimensions, and the samples along another one."""
        return self._replace(
            dims=self.dims + more,
            axis=self.axis if axis is None else axis,
            single=False,
            several=False,
            front=False,
            second=False,
            uniform=False,
            places=False,
            packed=False,
            by_step=self.by_step and axis in (None, self.axis),
            sizes=(),
            falling="",
        )

    def steps(self) -> Shape:
        """Of the steps of packed sequences: one row for each."""
        return self.resized(-1, 0)._replace(sure=True)


INVERSE: Final = Shape("inverse")  # that of a number that is one over the number of samples; its scale is "other"
ROOT: Final = Shape("root")  # that of a number whose square is a total over the samples; its scale is "other"


class Argument(NamedTuple):
    """What is known of one operand; `items` are those of a tuple or list, `first` those of one that has more, nobody knows how many."""

    scale: Scale | None = None
    shape: Shape | None = None
    literal: object = UNKNOWN
    items: tuple[Argument, ...] | None = None
    first: tuple[Argument, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether it is one number that is the same on all ranks."""
        return self.scale is None and self.shape is not None and self.shape.ndim == 0

    @property
    def is_tensor(self) -> bool:
        """Whether it is, for all that is known, a tensor."""
        return self.scale in ROWS or (self.shape is not None and not self.is_number) or (self.scale is not None and self.literal is UNKNOWN)


class Result(NamedTuple):
    """What an operation gives. `marks`: "coupled" where samples meet, "reordered" where rows are in another order or several make a sample,
    "parts" where each sample is cut into rows that follow one another, "whole samples" where such rows make one row for each again,
    "steps" where rows follow one another step by step, "steps apart" where the steps have a dimension of their own again,
    "joined" where the rows of several tensors follow one another.

    `parts` are the results of one that gives a tuple of different ones. The claim holds where `needs` are met; `shows` are the numbers
    of dimensions without which the operation would fail.
    """

    scale: Scale | None = None
    shape: Shape | None = None
    marks: frozenset[str] = frozenset()
    parts: tuple[Result, ...] = ()
    needs: tuple[Bound, ...] = ()
    shows: tuple[Bound, ...] = ()


MISSING: Final = Argument(literal=None)  # an argument that is not given
NO_CLAIM: Final = Result("other")
COUPLED: Final = Result("other", marks=frozenset(("coupled",)))


class Use:
    """One use of an operation: its operands, and what a claim about its result depends on."""

    def __init__(self, args: Iterable[Argument], keywords: Mapping[str, Argument]) -> None:
        self.args = tuple(args)
        self.keywords = keywords
        self.needs: list[Bound] = []
        self.shows: list[Bound] = []

    def over(self, *args: Argument) -> Use:
        """A use of another operation, whose claim depends on the same."""
        inner = Use(args, {})
        inner.needs, inner.shows = self.needs, self.shows
        return inner

    def get(self, position: int, *names: str) -> Argument:
        """The operand at a position, or of one of these names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.args[position] if 0 <= position < len(self.args) else MISSING

    def operands(self) -> list[Argument]:
        """All that it is given, those in lists one by one."""
        return [i for a in (*self.args, *self.keywords.values()) for i in (a.items if a.items is not None else (a,))]

    def side(self, shape: Shape, dim: object) -> int | None:
        """Whether a dimension lies before (-1) or behind (1) that of the samples, or is it (0); None where that is not known."""
        if type(dim) is not int:
            return None
        if dim < 0:
            if shape.base is not None:
                self.at_least(shape, shape.axis - dim + 1)
                return 1
            dim += shape.dims
            if dim < 0:
                return None
        elif shape.base is not None:
            self.shows.append((shape.base, dim + 1 - shape.dims))
        return (dim > shape.axis) - (dim < shape.axis)

    def at_least(self, shape: Shape, ndim: int) -> bool:
        """Whether a tensor has so many dimensions; where it is not known, the claim depends on it."""
        if shape.base is None:
            return shape.dims >= ndim
        self.needs.append((shape.base, ndim - shape.dims))
        return True

    def as_many(self, shapes: Sequence[Shape]) -> None:
        """Note that tensors are taken to have as many dimensions as one of which that is known."""
        known = next((s.dims for s in shapes if s.base is None), None)
        self.needs += [(Just(s.base), known - s.dims) for s in shapes if s.base is not None and known is not None]

    def proves(self, shape: Shape, ndim: int) -> bool:
        """Whether a tensor has so many dimensions; where it is not known, the operation would fail without."""
        if shape.base is None:
            return shape.dims >= ndim
        self.shows.append((shape.base, ndim - shape.dims))
        return True


def literals(argument: Argument) -> tuple[object, ...] | None:
    """The numbers that an operand such as `dim` is: one, or those of a tuple; None where one of them is not known."""
    if argument.items is not None:
        values = tuple(i.literal for i in argument.items)
        return None if UNKNOWN in values else values
    return None if argument.literal in (UNKNOWN, LATER) else (argument.literal,)


def shape_of(argument: Argument) -> Shape:
    """The dimensions of a tensor of samples, as far as known."""
    return argument.shape if argument.shape is not None else Shape(base=UNKNOWN)


def broadcast(rows: Iterable[Argument], others: Iterable[Argument]) -> Shape | None:
    """The dimensions of what an operation entry by entry gives; None where the samples of one would meet all of another.

    Where numbers of dimensions are counted from different bases, they are taken to be equal: only what is known to differ is refused.
    """
    shapes = [shape_of(r) for r in rows]
    bases = {s.base for s in shapes}
    first = next((s for s in shapes if s.base is None), shapes[0])._replace(by_step=any(s.by_step for s in shapes))
    single, front = all(s.single for s in shapes), all(s.front for s in shapes)
    if len(bases) > 1 and single is not any(s.single for s in shapes) and any(s.ndim == 1 for s in shapes):
        return None  # a column and a row
    if len(bases) > 1:
        return first._replace(several=False, single=single, front=front, sizes=()) if len({s.axis for s in shapes}) == 1 else None
    widest = max(s.dims for s in shapes)
    if len({s.dims - s.axis for s in shapes}) > 1:
        return None
    beside = [o.shape.dims for o in others if o.shape is not None and o.shape.base == first.base]
    ndim = max([widest, *beside])
    sizes = first.sizes if len(shapes) == 1 and not beside else ()
    single, front = single and not beside, front and not beside
    axis, sure = first.axis + ndim - first.dims, all(s.sure for s in shapes)
    return first._replace(dims=ndim, axis=axis, several=False, single=single, front=front, sure=sure, sizes=sizes)
