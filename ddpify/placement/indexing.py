"""Transfer rules for `x[...]` and for sizes: which entries and dimensions are left, and which of the sizes is the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

from ddpify.placement.shape import COUPLED, NO_CLAIM, PLACES, ROWS, UNKNOWN, Argument, Result, Shape, Use, shape_of


def indexed(use: Use) -> Result:
    """`x[...]`: operands are the tensor and one for each entry of the index: a number, a slice, None, an ellipsis, or a tensor.

    A slice with the scale of a count goes from one multiple of the batch's length to another: a block of what was put together.
    """
    x, entries = use.args[0], use.args[1:]
    if x.scale not in ROWS:
        return _of_constant(x, entries) if x.scale is None else Result(x.scale if all(e.scale is None for e in entries) else "other")
    if shape_of(x).packed:
        return Result("chosen", shape_of(x).steps()) if [e.literal for e in entries] == [0] else NO_CLAIM
    tensors = [e for e in entries if e.scale in ROWS]
    if any(e.scale not in (None, "count", *ROWS) for e in entries):
        return NO_CLAIM
    blocks = sum(e.scale == "count" and isinstance(e.literal, slice) for e in entries)
    if tensors:
        return NO_CLAIM if blocks else _by_rows(use, shape_of(x), x, entries)
    return _walked(use, shape_of(x), x, entries, blocks)


def _of_constant(x: Argument, entries: Sequence[Argument]) -> Result:
    """Entries of a constant that each sample chooses, or as many as there are samples: on each rank the first, whichever samples it has."""
    rows = [e for e in entries if e.scale in ROWS]
    if entries[0].scale == "count" and isinstance(entries[0].literal, slice) and not rows:
        if x.shape is None or not x.shape.uniform or any(e.scale is not None for e in entries[1:]):
            return COUPLED
        return Result("sample", x.shape.resized()) if all(e.literal == slice(None) for e in entries[1:]) else NO_CLAIM
    if not rows:
        if any(e.scale is not None for e in entries):
            return NO_CLAIM
        literals = [e.literal for e in entries]
        if x.shape is None or x.shape.base is not None or not all(n is None or n is ... or isinstance(n, (int, slice)) for n in literals):
            return Result()
        return Result(None, x.shape.resized(sum(n is None for n in literals) - sum(type(n) is int for n in literals)))
    index = shape_of(rows[0])
    if any(r.literal == PLACES for r in rows) and not (x.shape is not None and x.shape.uniform):
        return COUPLED
    if len({r.scale for r in rows}) > 1 or entries[0].scale not in ROWS or any(e.scale not in (None, *ROWS) for e in entries):
        return NO_CLAIM
    ndim = x.shape.ndim if x.shape is not None else None
    more = [e for e in entries if e.literal is None]
    known = ndim is not None and index.base is None and len(entries) == 1 and not more
    return Result(
        rows[0].scale, Shape(None, index.dims + ndim - 1, index.axis) if known and ndim is not None else Shape(UNKNOWN, 0, index.axis)
    )


def _by_rows(use: Use, shape: Shape, x: Argument, entries: Sequence[Argument]) -> Result:
    """Rows chosen by a mask or by numbers that each sample has."""
    first = entries[0]
    tensors = [e for e in entries if e.scale in ROWS]
    if x.scale == "sample" and first.literal == PLACES and shape.axis == 0 and (by := _side_by_side(use, entries)):
        left = shape.resized(shape_of(first).dims - by) if by > 1 else shape
        return Result("sample", left) if use.proves(shape, len(entries)) else NO_CLAIM
    if first.scale != "sample" or len(tensors) > 1 or shape.axis != 0 or x.scale != "sample":
        return COUPLED if len(tensors) > 1 or first.scale is None else NO_CLAIM
    mask = shape_of(first)
    ndim = shape.dims - mask.dims + 1 if shape.base == mask.base and len(entries) == 1 else None
    return Result("chosen", Shape(None, ndim) if ndim is not None and ndim > 0 else Shape(UNKNOWN))


def _side_by_side(use: Use, entries: Sequence[Argument]) -> int:
    """How many of the entries choose together, one for each place of a sample (`x[arange(B)[:, None], heads, chosen, :]`), whole
    dimensions after them; 0 where they may choose otherwise."""
    by = next((i for i, e in enumerate(entries) if isinstance(e.literal, slice)), len(entries))
    places = shape_of(entries[0])
    alike = all(
        e.scale is None or (shape_of(e).axis == 0 and shape_of(e).ndim in (None, places.dims) and use.at_least(shape_of(e), places.dims))
        for e in entries[:by]
    )
    known = places.base is None and places.axis == 0 and not any(e.literal is None or e.literal is ... for e in entries[:by])
    return by if alike and known and all(e.literal == slice(None) for e in entries[by:]) else 0


def _grown(entries: Sequence[Argument], tensors: Sequence[Argument]) -> int | None:
    """By how many dimensions an index is larger than what it takes; None where the dimensions of its tensors are not known."""
    if any(e.shape is None or e.shape.base is not None for e in tensors):
        return None
    return sum(e.literal is None for e in entries) + max(e.shape.dims for e in tensors if e.shape is not None) - len(tensors)


def _walked(use: Use, shape: Shape, x: Argument, entries: Sequence[Argument], blocks: int) -> Result:
    """The dimensions one by one: those that are left, and where the samples are among them; `blocks` are to be of samples."""
    taken = [e for e in entries if e.literal is not None and e.literal is not ...]
    at, new, axis, unsure = 0, 0, None, False
    for n, entry in enumerate(entries):
        if entry.literal is None:
            new += 1
        elif entry.literal is ...:
            skipped = max(shape.dims - len(taken), 0) if shape.base is None else 0
            if axis is None and (shape.base is not None or at <= shape.axis < at + skipped):
                if not use.at_least(shape, shape.axis + 1 + sum(e in taken for e in entries[n + 1 :])):
                    return NO_CLAIM
                axis = new + shape.axis - at
            at, new = at + skipped, new + skipped
        else:
            keeps, drops = isinstance(entry.literal, slice) or entry.items is not None, type(entry.literal) is int
            if axis is None and (at == shape.axis or not (keeps or drops)):
                if at != shape.axis or entry.literal != slice(None):
                    return NO_CLAIM
                axis, blocks = new, blocks - (entry.scale is not None)
            unsure |= not (keeps or drops)
            at, new = at + 1, new + keeps
    if shape.base is not None:
        use.shows.append((shape.base, len(taken) - shape.dims))
    if blocks:
        return NO_CLAIM
    behind = axis is None
    if axis is None:
        axis = new + shape.axis - at
    if unsure:
        tensors = [i for i, e in enumerate(entries) if e.literal is not None and e.literal is not ... and not isinstance(e.literal, slice)]
        if tensors[-1] - tensors[0] >= len(tensors):
            return NO_CLAIM  # what stands apart comes first in the result
        grown = None if behind else _grown(entries, [entries[i] for i in tensors])
        return Result(x.scale, Shape(UNKNOWN, 0, axis) if grown is None else shape.resized(grown, axis))
    more = sum(e.literal is None for e in entries) - sum(type(e.literal) is int for e in taken)
    last = any(e.literal is ... for e in entries) or shape.ndim == len(taken)  # a new dimension at the end of the index is the last one
    return Result(x.scale, shape.resized(more, axis)._replace(single=last and entries[-1].literal is None))


def size(use: Use) -> Result:
    """`x.size(dim)`, `x.shape[dim]`: how many samples a rank has, or a length that is the same on every rank."""
    x, dim = use.args[0], use.get(1, "dim")
    if x.scale not in ROWS:
        return Result(None)
    side = use.side(shape_of(x), dim.literal)
    if side is None:
        return NO_CLAIM if dim.literal is UNKNOWN else Result("count")
    return Result(("count" if x.scale == "sample" else "sum") if side == 0 else None)
