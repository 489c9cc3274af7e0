"""Transfer rules for operations that move entries: where the dimension of the samples lies afterwards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ddpify.placement.shape import (
    CHOSEN,
    COUPLED,
    MISSING,
    NO_CLAIM,
    OWN,
    ROWS,
    SEVERAL,
    UNKNOWN,
    Argument,
    AtMost,
    Result,
    Shape,
    Use,
    broadcast,
    shape_of,
)
from ddpify.placement.transfer import APART, JOINED, PARTS, REORDERED, STEPS, WHOLE, Rule, of_constants, together


def _numbers(use: Use, *names: str) -> tuple[Argument, ...]:
    """The sizes or dimensions that follow the tensor, one by one or in a tuple."""
    given = use.args[1:] or tuple(use.keywords[n] for n in names if n in use.keywords)
    return given[0].items if len(given) == 1 and given[0].items is not None else given


def _of_rows(move: Callable[[Use, Argument, Shape], Result]) -> Rule:
    """The rule for moving the entries of rows, of these dimensions; a number, or a constant, depends on the batch as it did."""

    @functools.wraps(move)
    def rule(use: Use) -> Result:
        x = use.get(0, "input")
        return move(use, x, shape_of(x)) if x.scale in ROWS else Result(x.scale)

    return rule


def _position(shape: Shape, dim: object, more: int = 0) -> int | None:
    """A dimension counted from the front; None where it is not known. `more`: of a tensor with so many more dimensions."""
    if type(dim) is not int or (dim < 0 and shape.base is not None):
        return None
    return dim + shape.dims + more if dim < 0 else dim


@_of_rows
def squeeze(use: Use, x: Argument, shape: Shape) -> Result:
    """Without one dimension, or all, of one entry."""
    given = use.get(1, "dim", "axis")
    if given is MISSING:
        if shape.base is None and (shape.dims < 2 or (shape.dims == 2 and shape.single)):
            return Result(x.scale, Shape(None, 1))
        front = shape.front and shape.axis == 1  # the last state of one layer: (1, batch, size)
        return Result(x.scale, Shape(UNKNOWN)) if shape.axis == 0 or front else NO_CLAIM
    if shape.base is not None and type(given.literal) is int and given.literal < 0:
        return Result(x.scale, Shape(UNKNOWN, 0, shape.axis, shape.sure))  # that of the samples stays, as they are several
    side = use.side(shape, given.literal)
    if side == 0:
        return Result(x.scale, shape)  # as it is, but for a share of one sample
    if side is None:
        return NO_CLAIM
    if shape.ndim is not None and shape.single and given.literal in (-1, shape.ndim - 1):
        return Result(x.scale, shape.resized(-1))
    if shape.second and given.literal == 1:
        return Result(x.scale, shape.resized(-1))
    if shape.front and given.literal == 0:
        return Result(x.scale, shape.resized(-1, shape.axis - 1))
    if side < 0:
        return NO_CLAIM
    if shape.base is None:
        use.shows.append((UNKNOWN, shape.dims - 1))  # one that has more entries stays
    return Result(x.scale, Shape(UNKNOWN, 0, shape.axis, shape.sure))


def at_least_one(use: Use) -> Result:
    """`atleast_1d(x)`: rows as they are; of several tensors, it makes a tuple."""
    x = use.get(0, "input")
    return Result(x.scale, x.shape) if len(use.args) == 1 and x.scale in ROWS else NO_CLAIM


def unsqueeze(use: Use) -> Result:
    """With one more dimension, of one entry."""
    x, dim = use.get(0, "input"), use.get(1, "dim", "axis").literal
    if x.scale not in ROWS:
        shape = x.shape.resized(1)._replace(front=dim == 0) if x.shape is not None else None
        return Result(x.scale, shape)
    shape = shape_of(x)
    if dim == -1:
        return Result(x.scale, shape.resized(1)._replace(single=True))
    at = _position(shape, dim, 1)
    if at is None:
        return Result(x.scale, shape.resized(1)) if type(dim) is int and use.at_least(shape, shape.axis - dim) else NO_CLAIM
    if shape.base is not None and at > 0:
        use.shows.append((shape.base, at - shape.dims))
    return Result(x.scale, shape.resized(1, shape.axis + (at <= shape.axis))._replace(front=at == 0, second=shape.axis == 0 and at == 1))


@_of_rows
def permuted(use: Use, x: Argument, shape: Shape) -> Result:
    """`permute(...)`: the dimensions in another order, all of them named."""
    dims = [a.literal for a in _numbers(use, "dims")]
    if not all(type(d) is int for d in dims) or (shape.base is None and len(dims) != shape.dims):
        return NO_CLAIM
    places = [d % len(dims) for d in dims if isinstance(d, int)]
    if shape.axis not in places:
        return NO_CLAIM
    if shape.base is not None:
        use.shows.append((shape.base, len(dims) - shape.dims))
    front = shape.second and places[:2] == [1, 0]
    sizes = tuple(shape.sizes[p] for p in places) if len(shape.sizes) == len(places) else ()
    return Result(x.scale, Shape(None, len(dims), places.index(shape.axis), shape.sure, front=front, sizes=sizes))


def _turned(move: Callable[[Use, Argument, Shape], Result]) -> Rule:
    """The rule for turning rows, which leaves a constant as many dimensions as it has."""

    @functools.wraps(move)
    def rule(use: Use) -> Result:
        x = use.get(0, "input")
        if x.scale is None and x.shape is not None:
            return Result(None, x.shape._replace(uniform=False, single=False, front=False))
        return _of_rows(move)(use)

    return rule


@_turned
def transposed(use: Use, x: Argument, shape: Shape) -> Result:
    """Two dimensions change places; numpy's function is given all, in their new order."""
    first, second = use.get(1, "dim0", "axis0", "axes"), use.get(2, "dim1", "axis1")
    if first.items is not None:
        return permuted(use.over(x, first))
    sides = [use.side(shape, a.literal) for a in (first, second)]
    if None in sides:
        return NO_CLAIM
    if 0 not in sides:
        return Result(x.scale, shape.resized())
    other = second if sides[0] == 0 else first
    if sides == [0, 0]:
        return Result(x.scale, shape)
    at = _position(shape, other.literal)
    if at is None:
        return NO_CLAIM
    sizes = list(shape.sizes) if 0 <= at < len(shape.sizes) == shape.ndim else []
    if sizes:
        sizes[shape.axis], sizes[at] = sizes[at], sizes[shape.axis]
    return Result(x.scale, shape.resized(0, at)._replace(front=shape.second and at == 1, sizes=tuple(sizes)))


@_turned
def reversed_dims(use: Use, x: Argument, shape: Shape) -> Result:
    """`x.t()`, `x.T`: all dimensions in reverse, two of them as a rule."""
    if shape.base is not None:
        return Result(x.scale, Shape(None, 2, 1 - shape.axis)) if shape.axis < 2 and use.at_least(shape, 2) else NO_CLAIM
    return Result(x.scale, shape.resized(0, shape.dims - 1 - shape.axis))


def transposed_matrix(use: Use) -> Result:
    """`x.t()`: of no more than two dimensions."""
    shape = shape_of(use.get(0, "input"))
    if shape.base is not None:
        use.shows.append((AtMost(shape.base), 2 - shape.dims))
    return reversed_dims(use)


def matrices_transposed(use: Use) -> Result:
    """`x.mT`: the last two dimensions change places."""
    return transposed(use.over(use.get(0, "input"), Argument(literal=-1), Argument(literal=-2)))


@_of_rows
def moved(use: Use, x: Argument, shape: Shape) -> Result:
    """`movedim(source, destination)`."""
    first, second = use.get(1, "source"), use.get(2, "destination")
    one, other = _position(shape, first.literal), _position(shape, second.literal)
    if one is None or other is None:
        return NO_CLAIM
    places = [p for p in range(max(shape.dims, one, other, shape.axis) + 1) if p != one]
    places.insert(other, one)
    return Result(x.scale, shape.resized(0, places.index(shape.axis)))


def flatten(use: Use) -> Result:
    """Several dimensions in one; of a sample alone, or the samples' with those of each."""
    x, first, last = use.get(0, "input"), use.get(1, "start_dim"), use.get(2, "end_dim")
    start, end = (0 if first is MISSING else first.literal), (-1 if last is MISSING else last.literal)
    if x.scale in ROWS:
        return _flattened(use, x, start, end)
    if x.scale is None and x.shape is not None and type(start) is int and type(end) is int and 0 <= start <= end:
        return Result(None, x.shape.resized(start - end))
    return Result(x.scale)


def _flattened(use: Use, x: Argument, start: object, end: object) -> Result:
    """Rows, with several dimensions in one."""
    shape = shape_of(x)
    if shape.base is not None:
        return _flattened_from_front(use, x, start, end)
    one, other = _position(shape, start), _position(shape, end)
    if one is None or other is None:
        return NO_CLAIM
    count = max(shape.dims - max(other - one, 0), 1)
    if one <= shape.axis <= other:
        by_step = shape.axis > one
        longer = other > one + (shape.single and other == shape.dims - 1)
        marks = STEPS if by_step else REORDERED if longer else frozenset()
        return Result(x.scale, Shape(None, count, one, shape.sure, by_step=by_step), marks)
    return Result(x.scale, Shape(None, count, shape.axis - (other - one if other < shape.axis else 0), shape.sure))


def _flattened_from_front(use: Use, x: Argument, start: object, end: object) -> Result:
    """Several dimensions in one, of nobody knows how many: all that lie behind one, or between two that are counted from one end."""
    shape = shape_of(x)
    if type(start) is int and type(end) is int and start <= end < 0:
        use.at_least(shape, shape.axis + 1 - start)
        return Result(x.scale, shape.resized(start - end))
    if type(start) is not int or start < 0 or type(end) is not int or 0 <= end < start:
        return NO_CLAIM
    if end >= start:
        use.shows.append((shape.base, end + 1 - shape.dims))
        within = start <= shape.axis <= end
        axis = start if within else shape.axis - (end - start if end < shape.axis else 0)
        new = shape.resized(start - end, axis)._replace(by_step=start < shape.axis) if within else shape.resized(start - end, axis)
        return Result(x.scale, new, _order(start, shape) if within and end > start else frozenset())
    if start > shape.axis or end < -1:
        use.shows.append((shape.base, start - end - shape.dims))
    if end < -1:
        use.at_least(shape, max(start, shape.axis) - end)
    new = Shape(None, start - end, min(start, shape.axis), shape.sure, by_step=start < shape.axis)
    return Result(x.scale, new, _order(start, shape) if start <= shape.axis else frozenset())


def _order(start: int, shape: Shape) -> frozenset[str]:
    """How rows follow one another where the dimensions from `start` on are put in one, that of the samples among them."""
    return STEPS if start < shape.axis else REORDERED


@_of_rows
def unflatten(use: Use, x: Argument, shape: Shape) -> Result:
    """One dimension in several."""
    dim, sizes = use.get(1, "dim").literal, use.get(2, "sizes", "unflattened_size").items
    side = use.side(shape, dim)
    if side is None or sizes is None:
        return NO_CLAIM
    if side == 0 and shape.by_step:
        return _steps_apart(x, sizes, shape.resized(len(sizes) - 1))
    if side == 0:
        return Result(x.scale, shape.resized(len(sizes) - 1), REORDERED) if sizes[0].literal == -1 or sizes[0].scale else NO_CLAIM
    return Result(x.scale, shape.resized(len(sizes) - 1, shape.axis + (len(sizes) - 1 if side < 0 else 0)))


def reshaped(use: Use) -> Result:
    """`view(...)`, `reshape(...)`: into sizes that are given; `(-1, n)` is taken to cut samples into parts, not to put several in one."""
    x, sizes = use.get(0, "input"), _numbers(use, "shape", "size")
    if x.scale not in ROWS:
        return _constant_reshaped(x, sizes)
    if len(use.args) == 2 and use.args[1].first:
        new = Shape(UNKNOWN, sure=shape_of(x).sure, single=shape_of(x).ndim == 1)  # what follows has one entry
        return _samples_first(x, use.args[1].first, new) if shape_of(x).axis == 0 else NO_CLAIM
    if len(use.args) == 2 and use.args[1].items is None and use.args[1].scale == "count" and use.args[1].shape is not None:
        sizes_of = use.args[1].shape._replace(single=shape_of(x).ndim == 1 and use.args[1].shape.base is not None)
        return as_other(use.over(x, Argument("sample", sizes_of)))  # x.view(y.shape)
    if x.scale == "chosen":  # `chosen.view(len(chosen), -1)`
        sizes = tuple(s._replace(scale="count") if s.literal == CHOSEN else s for s in sizes)
    if len(sizes) == 1 and sizes[0].is_number:
        sizes = (Argument(literal=-1),)  # one number: as many as there are
    unknown = len(sizes) == 1 and sizes[0].literal is UNKNOWN and sizes[0].scale is None
    if not sizes or unknown or any(s.scale not in (None, "count") for s in sizes):
        return NO_CLAIM
    shape = shape_of(x)
    said = tuple(s.literal if type(s.literal) is int and s.literal > 0 else UNKNOWN for s in sizes)
    new = Shape(None, len(sizes), 0, shape.sure, len(sizes) > 1 and sizes[-1].literal == 1, sizes=said)
    if shape.by_step and shape.axis == 0:
        if sizes[0].literal == OWN and _counts(sizes) == [0]:
            return Result(x.scale, new._replace(by_step=True))
        cut = not _counts(sizes) and _rest(sizes) == [0] and shape.ndim is not None and len(sizes) <= shape.ndim
        return Result(x.scale, new._replace(by_step=True), PARTS) if cut else _steps_apart(x, sizes, new)
    first = shape.axis == 0 or (shape.axis == 1 and shape.front)
    return _samples_first(x, sizes, new) if first else _samples_behind(use, x, sizes, new)


def _constant_reshaped(x: Argument, sizes: Sequence[Argument]) -> Result:
    if any(s.scale for s in sizes):
        return NO_CLAIM
    plain = x.scale is None and all(s.items is None and (s.shape is None or s.is_number) for s in sizes)
    known = len(sizes) > 1 or (len(sizes) == 1 and (sizes[0].literal == -1 or sizes[0].is_number))
    return Result(x.scale, Shape(None, len(sizes), front=len(sizes) > 1 and sizes[0].literal == 1) if plain and known else None)


def _counts(sizes: Sequence[Argument]) -> list[int]:
    """Which of some sizes are the number of samples."""
    return [i for i, s in enumerate(sizes) if s.scale == "count"]


def _rest(sizes: Sequence[Argument]) -> list[int]:
    """Which of some sizes is whatever the others leave: -1, or several rows of each sample."""
    return [i for i, s in enumerate(sizes) if s.literal in (-1, SEVERAL) and s.scale is None]


def _samples_first(x: Argument, sizes: Sequence[Argument], new: Shape) -> Result:
    """Rows in other sizes, where nothing, or one entry, stands in front of the samples."""
    shape, counts, rest = shape_of(x), _counts(sizes), _rest(sizes)
    ones = next((i for i, s in enumerate(sizes) if s.literal != 1), len(sizes))
    if counts:
        return Result(x.scale, new._replace(axis=ones, front=ones > 0), WHOLE) if counts == [ones] else NO_CLAIM
    if rest and rest[0] == ones:
        alone = ones == len(sizes) - 1 and (shape.ndim == 1 or (shape.ndim == 2 and shape.single))
        return Result(x.scale, new._replace(axis=ones, front=ones > 0), frozenset() if alone else PARTS)
    if rest and all(type(s.literal) is int for s in sizes[: rest[0]]):
        return NO_CLAIM
    return Result(x.scale, new, REORDERED)  # a batch size that is written out


def _steps_apart(x: Argument, sizes: Sequence[Argument], new: Shape) -> Result:
    """Rows that follow one another step by step, with a dimension for the steps in front of the samples again."""
    counts = _counts(sizes)
    apart = len(counts) == 1 and counts[0] > 0 and all(s.scale is None for i, s in enumerate(sizes) if i not in counts)
    return Result(x.scale, new._replace(axis=new.axis + counts[0], by_step=False), APART) if apart else NO_CLAIM


def _samples_behind(use: Use, x: Argument, sizes: Sequence[Argument], new: Shape) -> Result:
    """Rows in other sizes, where other dimensions stand in front of the samples."""
    shape, counts, n = shape_of(x), _counts(sizes), len(sizes)
    parts = [i for i, s in enumerate(sizes) if s.literal is SEVERAL]
    if counts or parts == [shape.axis]:  # what is in front is taken to be as large as it was, but where it is said to differ
        in_front = zip(new.sizes[: shape.axis], shape.sizes or (UNKNOWN,) * n, strict=False)
        kept_in_front = [*counts, *parts] == [shape.axis] and all(a in (UNKNOWN, b) or (b is UNKNOWN and a != 1) for a, b in in_front)
        return Result(x.scale, new._replace(axis=shape.axis), PARTS if parts else WHOLE) if kept_in_front else NO_CLAIM
    unknown = [s.literal is UNKNOWN for s in sizes[1:]]  # `x.reshape(-1, *sizes)`: those of a sample; a number may be any
    own = n < 3 or all(unknown) or (any(unknown) and shape.ndim == shape.axis + n)  # but beside one of as many as there were
    in_one = own and not counts and _rest(sizes) == [0] and (n == 1 or use.at_least(shape, shape.axis + n))  # all in front, and the samples
    return Result(x.scale, new._replace(by_step=True), STEPS) if in_one else NO_CLAIM


def as_other(use: Use) -> Result:
    """`view_as(other)`, `reshape_as(other)`: as many entries in another's shape."""
    x, other = use.get(0, "input"), use.get(1, "other")
    if x.scale not in ROWS or other.scale not in ROWS:
        return Result() if x.scale is None and other.scale is None else NO_CLAIM
    alike = x.scale == other.scale and shape_of(x).axis == shape_of(other).axis
    return Result(x.scale, shape_of(other)._replace(several=False)) if alike else NO_CLAIM


def expanded_as(use: Use) -> Result:
    """As often as another has entries."""
    x, other = use.get(0, "input"), use.get(1, "other")
    if x.scale is None and other.scale in ROWS:
        return Result(other.scale, shape_of(other)._replace(several=False))
    return together(use, (x, other))


def all_expanded(use: Use) -> Result:
    """`broadcast_tensors(...)`: each as large as all of them together."""
    found = together(use, use.args)
    return Result(found.scale, parts=(found,) * len(use.args)) if found.scale in ROWS else found


def repeated(use: Use) -> Result:
    """`repeat(...)`, `tile(...)`: as often as is said, along each dimension."""
    x, times = use.get(0, "input"), _numbers(use, "sizes", "repeats", "dims", "reps")
    if x.scale not in ROWS:
        return _spread(x, times)
    shape = shape_of(x)
    more = len(times) - shape.dims if shape.base is None else 0
    if more < 0 or not times or any(t.scale not in (None, "count") for t in times):
        return NO_CLAIM
    if shape.base is not None and len(times) > 1:
        use.at_least(shape, len(times))
    own = times[shape.axis + more] if shape.axis + more < len(times) else MISSING
    if any(t.scale == "count" for t in times):
        return COUPLED
    marks = JOINED if more == 0 and shape.axis == 0 and own.literal != 1 else frozenset()
    front = shape.front and more == 0 and times[0].literal == 1
    made = shape.resized(more, shape.axis + more)._replace(front=front, by_step=shape.by_step or bool(marks))
    return NO_CLAIM if own is MISSING or own.literal is None else Result(x.scale, made, marks)


def expanded(use: Use) -> Result:
    """`expand(...)`: dimensions of one entry become longer, and new ones stand in front."""
    x, sizes = use.get(0, "input"), _numbers(use, "size", "sizes")
    as_rows = len(use.args) == 2 and use.args[1].items is None and use.args[1].scale == "count" and use.args[1].shape is not None
    if as_rows and x.scale is None:
        return expanded_as(use.over(x, Argument("sample", use.args[1].shape)))  # constant.expand(y.shape)
    if x.scale not in ROWS:
        return _spread(x, sizes)
    shape = shape_of(x)
    if len(use.args) == 2 and use.args[1].items is None and use.args[1].scale == "count":
        whole = use.args[1].shape if as_rows else None  # x.expand(y.shape): of y's dimensions
        if whole is None or whole.axis != shape.axis:
            return Result(x.scale, shape.resized())
        unlike = None not in (shape.ndim, whole.ndim) and shape.ndim != whole.ndim
        return NO_CLAIM if unlike else Result(x.scale, whole.resized())
    if len(use.args) == 2 and use.args[1].first[:1] and use.args[1].first[0].literal == -1:
        return Result(x.scale, shape.resized())  # no dimension is new: one that is has its size given
    if not sizes or (any(s.scale not in (None, "count") for s in sizes) and not _keeps(sizes, shape)):
        return NO_CLAIM
    counts = _counts(sizes)
    if shape.base is not None:
        known = use.proves if sizes[0].literal == -1 else use.at_least  # a dimension that is new in front has its size given
        known(shape, len(sizes))
        return Result(x.scale, shape.resized()) if counts in ([], [shape.axis]) else COUPLED
    if shape.ndim is None and counts == [shape.axis] and all(s.literal != -1 for s in sizes):  # new ones in front would have other sizes
        return Result(x.scale, Shape(None, len(sizes), shape.axis, shape.sure))
    more = len(sizes) - shape.dims
    if more < 0:
        return NO_CLAIM
    return Result(x.scale, shape.resized(more, shape.axis + more)) if counts in ([], [shape.axis + more]) else COUPLED


def _keeps(sizes: Sequence[Argument], shape: Shape) -> bool:
    """Whether the samples' dimension stays, and none is new, which would have a size: the others may be as long as a batch says."""
    return len(sizes) > shape.axis and sizes[0].literal == sizes[shape.axis].literal == -1


def _spread(x: Argument, sizes: Sequence[Argument]) -> Result:
    """The same for each sample of a batch."""
    counts = _counts(sizes)
    if not counts or any(s.scale not in (None, "count") for s in sizes):
        return Result(x.scale) if not any(s.scale for s in sizes) else NO_CLAIM
    return Result("sample", Shape(None, len(sizes), counts[0])) if x.scale is None and len(counts) == 1 else NO_CLAIM


def each_repeated(use: Use) -> Result:
    """`repeat_interleave(times, dim)`: entries one after another, each as often."""
    x, times, dim = use.get(0, "input"), use.get(1, "repeats"), use.get(2, "dim")
    if x.scale is None and x.shape is not None and x.shape.front and times.scale == "count" and dim.literal == 0:
        return Result("sample", x.shape.resized(axis=0))  # a constant of one entry, once for each sample
    if x.scale not in ROWS or times.scale is not None:
        return Result(x.scale) if times.scale is None else NO_CLAIM
    shape = shape_of(x)
    if dim is MISSING:
        return Result(x.scale, Shape(None, 1), REORDERED) if shape.axis == 0 else NO_CLAIM
    side = use.side(shape, dim.literal)
    if side is None or (times.literal is UNKNOWN and side == 0 and times.shape is not None and not times.is_number):
        return NO_CLAIM
    return Result(x.scale, shape.resized(), REORDERED if side == 0 else frozenset())


def _side_by_side(use: Use) -> tuple[Argument, tuple[Argument, ...], list[Argument]]:
    """What `cat` and `stack` are given: the operand, its tensors and those of them with the samples' rows."""
    parts = use.get(0, "tensors")
    items = parts.items if parts.items is not None else (parts,)
    return parts, items, [p for p in items if p.scale in ROWS]


def _not_alike(items: Sequence[Argument]) -> Result:
    """Rows of the samples beside something else; what is averaged or summed over them couples the samples."""
    return COUPLED if any(p.scale in ("mean", "sum", "weighted") for p in items) else NO_CLAIM


def joined(use: Use) -> Result:
    """`cat(tensors, dim)`: one after another, along the samples or along another dimension."""
    parts, items, rows = _side_by_side(use)
    dim = use.get(1, "dim", "axis")
    if not rows:
        return _alike(items)
    if parts.items is None and not _several(parts):
        if shape_of(parts).axis > 0:  # of one tensor, the entries along its first dimension: `[h for h in hidden]`
            whole = shape_of(parts)
            side = use.side(whole.resized(-1, whole.axis - 1), 0 if dim is MISSING else dim.literal)
            return Result(parts.scale, whole.resized(-1, whole.axis - 1)) if side in (1, -1) else NO_CLAIM
        scale = "chosen" if parts.scale == "sample" else parts.scale  # a sample may have more entries than another one
        return Result(scale, Shape(UNKNOWN), REORDERED) if dim is MISSING or dim.literal == 0 else NO_CLAIM
    if len(rows) + sum(p.scale is None for p in items) < len(items) or len({r.scale for r in rows}) > 1:
        return _not_alike(items)
    shape = _of_all(use, rows)
    if any(p.literal is None for p in items):
        return Result(rows[0].scale, shape)  # never reached: there is no tensor to put beside
    side = use.side(shape, 0 if dim is MISSING else dim.literal) if shape is not None else None
    if shape is None or side is None:
        return NO_CLAIM
    if side == 0 and len(rows) < len(items):
        return NO_CLAIM
    kept = shape.resized()._replace(front=shape.front and side > 0)
    several = len(rows) > 1 or parts.items is None
    return Result(rows[0].scale, kept, JOINED if side == 0 and several else frozenset())


def _of_all(use: Use, rows: Sequence[Argument]) -> Shape | None:
    """The dimensions of tensors side by side, which have as many as one another: that of one whose number is known shows the others'."""
    ndim = next((n for r in rows if (n := shape_of(r).ndim) is not None), None)
    if ndim is not None:
        use.shows += [(s.base, ndim - s.dims) for s in map(shape_of, rows) if s.base is not None]
    return broadcast(rows, ())


def joined_or_stacked(dim: int, of_vectors: int | None, use: Use) -> Result:
    """`vstack`, `hstack`, `column_stack`: joined along a dimension; vectors stacked along another one (None: joined)."""
    parts, _, rows = _side_by_side(use)
    shape = broadcast(rows, ()) if rows else None
    if shape is None or not use.at_least(shape, 2):
        vectors = shape is None or of_vectors is None
        return joined(use.over(parts)) if vectors else stacked(use.over(parts, Argument(literal=of_vectors)))
    of_more = Use((parts, Argument(literal=dim)), {})  # whose dimensions are assumed, and not shown
    found = joined(of_more)
    use.needs += of_more.needs
    return found


def stacked(use: Use) -> Result:
    """`stack(tensors, dim)`: side by side along a new dimension."""
    parts, items, rows = _side_by_side(use)
    dim = use.get(1, "dim", "axis")
    if not rows:
        return _alike(items, 1)
    if parts.items is None and not _several(parts):
        place = 0 if dim is MISSING else dim.literal
        return Result(parts.scale, Shape(UNKNOWN, 0, place)) if type(place) is int and place >= 0 else NO_CLAIM
    if len(rows) < len(items) or len({r.scale for r in rows}) > 1:
        return _not_alike(items)
    shape = _of_all(use, rows)
    if shape is None:
        return COUPLED
    found = unsqueeze(use.over(Argument(rows[0].scale, shape), Argument(literal=0) if dim is MISSING else dim))
    return found if found.shape is None else found._replace(shape=found.shape._replace(single=False, front=False))  # a list may grow


def padded(use: Use) -> Result:
    """`pad_sequence(sequences, batch_first)`: the samples' sequences side by side, each as long as the longest of them."""
    parts, first = use.get(0, "sequences"), use.get(1, "batch_first")
    if parts.scale != "sample" or parts.items is not None or _several(parts) or shape_of(parts).axis > 0:
        return of_constants(use.args)
    at = 1 if first is MISSING else {True: 0, False: 1}.get(first.literal) if isinstance(first.literal, bool) else None
    if at is None:
        return NO_CLAIM
    use.shows.append((UNKNOWN, 2))
    return Result("sample", Shape(UNKNOWN, 0, at))


def _several(parts: Argument) -> bool:
    """Whether an operand is a tuple of tensors; else it has one entry for each sample, as a tensor or a list of samples."""
    return parts.shape is not None and parts.shape.several is not False


def _alike(items: Sequence[Argument], more: int = 0) -> Result:
    """Numbers side by side: each is what it was, where all are alike; of constants, with so many dimensions more."""
    seen, shapes = {i.scale for i in items}, {i.shape and (i.shape.base, i.shape.dims) for i in items}
    if seen == {None} and len(shapes) == 1 and (shape := items[0].shape) is not None:
        return Result(None, Shape(shape.base, shape.dims + more))
    return Result(seen.pop()) if len(seen) == 1 else NO_CLAIM if seen != {None, "mean"} else Result("mean")


@_of_rows
def listed(use: Use, x: Argument, shape: Shape) -> Result:
    """`chunk`, `split`: parts along a dimension, in a tuple; along the samples, other rows on each rank."""
    dim = use.get(2, "dim", "axis")
    side, sizes = use.side(shape, 0 if dim is MISSING else dim.literal), use.get(1, "split_size_or_sections").items
    each = side == 0 and sizes is not None and all(s.scale == "count" for s in sizes)  # blocks of as many rows as the batch has
    return Result(x.scale, shape.resized()._replace(several=True)) if side in (1, -1) or each else NO_CLAIM


def unbound(use: Use) -> Result:
    """`unbind(dim)`: the entries along a dimension, in a tuple."""
    found = selected(
        use.over(use.get(0, "input"), use.get(1, "dim") if len(use.args) > 1 or "dim" in use.keywords else Argument(literal=0))
    )
    return found if found.shape is None else found._replace(shape=found.shape._replace(several=True))


@_of_rows
def selected(use: Use, x: Argument, shape: Shape) -> Result:
    """`select(dim, index)`: one entry along a dimension."""
    dim = use.get(1, "dim", "axis")
    side = use.side(shape, dim.literal)
    if side is None or side == 0:
        return NO_CLAIM
    return Result(x.scale, shape.resized(-1, shape.axis - (side < 0)))


def picked(use: Use) -> Result:
    """`narrow(dim, ...)`, `index_select(dim, index)`, `gather(dim, index)`: entries along a dimension that is not that of the samples."""
    x, dim = use.get(0, "input"), use.get(1, "dim", "axis")
    more = [a for a in use.operands() if a is not x and a is not dim]
    rows = [a for a in (x, *more) if a.scale in ROWS]
    if not rows or any(a.scale not in (None, *ROWS) for a in more):
        return of_constants((x, *more))
    if x.scale not in ROWS:
        return NO_CLAIM
    side = use.side(shape_of(x), dim.literal)
    if side is None or side == 0 or len({(r.scale, shape_of(r).axis) for r in rows}) > 1:
        return NO_CLAIM
    return Result(x.scale, shape_of(x).resized())


def narrowed(use: Use) -> Result:
    """`narrow(dim, start, length)`: a block of as many rows as the batch has of what was put together, as `x[:n]`; else as `picked`."""
    x, dim, start, length = use.get(0, "input"), use.get(1, "dim"), use.get(2, "start"), use.get(3, "length")
    block = length.scale == "count" and (start.scale == "count" or start.literal == 0)
    if block and x.scale in ROWS and use.side(shape_of(x), dim.literal) == 0:
        return Result(x.scale, shape_of(x).resized())
    return picked(use)


def looked_up(use: Use) -> Result:
    """`table.index_select(0, rows)`: entries of a constant, chosen for each sample; of rows, for all samples; else as `picked`."""
    x, dim, index = use.get(0, "input"), use.get(1, "dim"), use.get(2, "index")
    if x.scale in ROWS and index.scale in ROWS:
        return COUPLED
    if x.scale is None and index.scale == "sample" and shape_of(index).ndim in (1, None) and dim.literal == 0:  # an index has one
        return Result("sample", Shape(UNKNOWN, 0) if x.shape is None else x.shape._replace(axis=0, uniform=False))
    return picked(use)


def gathered(use: Use) -> Result:
    """`table.gather(dim, rows)`: entries of a constant, chosen where each index stands, along the samples; else as `picked`."""
    x, dim, index = use.get(0, "input"), use.get(1, "dim"), use.get(2, "index")
    if x.scale is None and index.scale in ROWS:
        shape = Shape(None, 1) if x.shape is not None and x.shape.ndim == 1 else shape_of(index)  # as many dimensions as the table
        return Result(index.scale, shape.resized()) if use.side(shape, dim.literal) == 0 else NO_CLAIM
    return picked(use)


def taken(use: Use) -> Result:
    """`take(table, rows)`: entries of a constant, each where its index stands."""
    x, index = use.get(0, "input"), use.get(1, "index")
    return Result(index.scale, shape_of(index).resized()) if x.scale is None and index.scale in ROWS else NO_CLAIM


def taken_along(use: Use) -> Result:
    """`take_along_dim(x, indices, dim)`: as `gather`."""
    dim = use.get(2, "dim")
    return picked(use.over(use.get(0, "input"), dim, use.get(1, "indices"))) if dim is not MISSING else NO_CLAIM


def masked(use: Use) -> Result:
    """`masked_select(mask)`, `nonzero()`: the entries that are chosen, of which ranks have different numbers."""
    given = [a for a in use.operands() if a.scale is not None]
    if not given:
        return Result()
    found = together(use, [a for a in use.operands() if a.scale is not None or a.shape is not None])
    if found.scale not in ROWS or found.shape is None:
        return NO_CLAIM
    return Result("chosen", Shape(None, 1), REORDERED if found.shape.axis else frozenset())


@_of_rows
def diagonal(use: Use, x: Argument, shape: Shape) -> Result:
    """`diagonal(offset, dim1, dim2)`: of the matrices of each sample."""
    dims = [use.get(2, "dim1", "axis1"), use.get(3, "dim2", "axis2")]
    places = [i if d is MISSING else d.literal for i, d in enumerate(dims)]
    sides = [use.side(shape, p) for p in places]
    if None in sides or 0 in sides:
        return COUPLED if 0 in sides else NO_CLAIM
    return Result(x.scale, shape.resized(-1, shape.axis - sides.count(-1)))


@_of_rows
def windows(use: Use, x: Argument, shape: Shape) -> Result:
    """`x.unfold(dim, size, step)`: windows along a dimension, in a new last one."""
    side = use.side(shape, use.get(1, "dimension").literal)
    return Result(x.scale, shape.resized(1)) if side in (1, -1) else NO_CLAIM
