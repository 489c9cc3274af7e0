"""Transfer rules for `x[...]` and for sizes: which entries and dimensions are left, and which of the sizes is the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

from ddpify.placement.reshaping import picked
from ddpify.placement.shape import COUPLED, LENGTH, NO_CLAIM, NUMBERS, PLACES, ROWS, UNKNOWN, Argument, Result, Shape, Use, shape_of
from ddpify.placement.transfer import elementwise


def indexed(use: Use) -> Result:
    """`x[...]`: operands are the tensor and one for each entry of the index: a number, a slice, None, an ellipsis, or a tensor.

    A slice with the scale of a count goes from one multiple of the batch's length to another: a block of what was put together.
    """
    x, entries = use.args[0], use.args[1:]
    if not entries:  # `x[()]`
        return Result(x.scale, x.shape)
    if x.scale not in ROWS:
        return _of_constant(x, entries) if x.scale is None else Result(x.scale if all(e.scale is None for e in entries) else "other")
    if shape_of(x).packed:
        return Result("chosen", shape_of(x).steps()) if [e.literal for e in entries] == [0] else NO_CLAIM
    if _is_prefix(entries[0]):
        first, others = entries[0]._replace(scale=None, shape=None), entries[1:]
        own = shape_of(x).axis == 0 and all(e.scale is None for e in others)
        return _along_dimensions(use, shape_of(x), x._replace(scale="chosen"), (first, *others)) if own else NO_CLAIM
    tensors = [e for e in entries if e.scale in ROWS]
    if any(e.scale not in (None, "count", *ROWS) for e in entries):
        return NO_CLAIM
    if tensors:
        return NO_CLAIM if any(map(_is_block, entries)) else _by_rows(use, shape_of(x), x, entries)
    return _along_dimensions(use, shape_of(x), x, entries)


def _is_block(entry: Argument) -> bool:
    """Whether an entry of an index takes as many entries as the batch has samples."""
    return entry.scale == "count" and isinstance(entry.literal, slice)


def _is_prefix(entry: Argument) -> bool:
    """Whether an entry of an index takes the samples that pass a test of numbers in whose order they lie: the first of them."""
    return entry.scale == "sum" and entry.literal == slice(None) and shape_of(entry).falling == LENGTH


def _of_constant(x: Argument, entries: Sequence[Argument]) -> Result:
    """Entries of a constant: each sample's own, as many as there are samples, or the same on every rank."""
    rows = [e for e in entries if e.scale in ROWS]
    if rows:
        return _chosen_by_rows(x, entries, rows)
    if _is_block(entries[0]):
        return _one_for_each_sample(x, entries[1:])
    if any(e.scale is not None for e in entries):
        return NO_CLAIM
    lists = [e for e in entries if e.literal is UNKNOWN and e.shape is not None and e.shape.ndim == 1]  # of numbers, or a mask
    literals = [e.literal for e in entries if e not in lists]
    if x.shape is None or x.shape.base is not None or not all(n is None or n is ... or isinstance(n, (int, slice)) for n in literals):
        return Result()
    more = sum(n is None for n in literals) - sum(type(n) is int for n in literals) - max(len(lists) - 1, 0)
    front = entries[0].literal is None or (x.shape.front and entries[0].literal == slice(None))
    return Result(None, x.shape.resized(more)._replace(front=front))


def _one_for_each_sample(x: Argument, others: Sequence[Argument]) -> Result:
    """As many entries of a constant as there are samples: on each rank the first, whichever samples it has."""
    if x.shape is None or not x.shape.uniform or any(e.scale is not None for e in others):
        return COUPLED
    return Result("sample", x.shape.resized()) if all(e.literal == slice(None) for e in others) else NO_CLAIM


def _chosen_by_rows(x: Argument, entries: Sequence[Argument], rows: Sequence[Argument]) -> Result:
    """Entries of a constant that each sample chooses."""
    if any(r.literal == PLACES for r in rows) and not (x.shape is not None and x.shape.uniform):
        return COUPLED
    if len({r.scale for r in rows}) > 1 or entries[0].scale not in ROWS or any(e.scale not in (None, *ROWS) for e in entries):
        return NO_CLAIM
    index, ndim = shape_of(rows[0]), x.shape.ndim if x.shape is not None else None
    if ndim is None or len(entries) > 1:
        return Result(rows[0].scale, Shape(UNKNOWN, 0, index.axis))
    return Result(rows[0].scale, index.resized(ndim - 1))


def _by_rows(use: Use, shape: Shape, x: Argument, entries: Sequence[Argument]) -> Result:
    """Rows chosen by a mask or by numbers that each sample has."""
    first = entries[0]
    tensors = [e for e in entries if e.scale in ROWS]
    if first.scale == "chosen" and first.literal == PLACES:
        return _of_chosen_places(use, shape, x, entries)
    if x.scale == "sample" and first.literal == PLACES and shape.axis == 0 and (by := _side_by_side(use, entries)):
        left = shape.resized(shape_of(first).dims - by) if by > 1 else shape
        return Result("sample", left) if use.proves(shape, len(entries)) else NO_CLAIM
    if [e for e in entries[: shape.axis] if e.literal == slice(None)] + [entries[-1]] == list(entries) and _is_mask(entries[-1], x):
        return Result("chosen", shape.resized())  # `x[:, mask]`, and of rows that were chosen before
    if first.scale == "sample" and first.literal == NUMBERS and shape_of(first).ndim in (1, None) and shape.axis == 0:
        return COUPLED
    if first.scale != "sample" or len(tensors) > 1 or shape.axis != 0 or x.scale != "sample":
        return COUPLED if len(tensors) > 1 or first.scale is None else NO_CLAIM
    mask = shape_of(first)
    ndim = shape.dims - mask.dims + 1 if shape.base == mask.base and len(entries) == 1 else None
    return Result("chosen", Shape(None, ndim) if ndim is not None and ndim > 0 else Shape(UNKNOWN))


def _of_chosen_places(use: Use, shape: Shape, x: Argument, entries: Sequence[Argument]) -> Result:
    """The rows that a mask chooses, by where they stand, and of each an entry by the numbers beside: `weights[places, nth, None]`."""
    beside = [e for e in entries if e.scale is not None]
    others = entries[len(beside) :]
    flat = all(e.scale == "chosen" and shape_of(e).ndim in (1, None) and shape_of(e).axis == 0 for e in beside)
    known = x.scale == "sample" and shape.axis == 0 and flat
    whole = all(e.scale is None and e.literal in (None, slice(None)) for e in others)
    if not known or not whole or not use.proves(shape, len(entries) - sum(e.literal is None for e in others)):
        return NO_CLAIM
    return Result("chosen", shape.resized(sum(e.literal is None for e in others) - len(beside) + 1))


def places_of_chosen(use: Use) -> Result:
    """`mask.nonzero()`, `where(mask)`: where the rows stand that a mask chooses, and numbers of their entries beside."""
    mask, apart = use.get(0, "input", "condition"), use.get(1, "as_tuple")
    if mask.scale is None:
        return Result()
    shape = shape_of(mask)
    if mask.scale != "sample" or shape.axis or apart.literal is UNKNOWN:
        return NO_CLAIM
    if apart.literal is True:
        return Result("chosen", Shape(None, 1, several=True, places=True))
    return Result("chosen", Shape(None, 2, single=shape.ndim == 1, places=True))


def chosen_by(use: Use) -> Result:
    """`where(condition, one, other)`: entry by entry; `where(condition)`: the places of what is true, in a tuple."""
    if len(use.args) + len(use.keywords) > 1:
        return elementwise(use)
    return places_of_chosen(use.over(use.get(0, "condition"), Argument(literal=True)))


def added_at(use: Use) -> Result:
    """`x.index_add(0, places, rows)`: into the rows that a mask chooses goes what is theirs; else as `picked`."""
    x, dim, index, source = use.get(0, "input"), use.get(1, "dim"), use.get(2, "index"), use.get(3, "source", "tensor", "value")
    if index.literal != PLACES or index.scale != "chosen":
        return picked(use)
    own = source.scale is None or (source.scale == "chosen" and shape_of(source).axis == 0)
    return Result("sample", shape_of(x).resized()) if own and x.scale == "sample" and shape_of(x).axis == dim.literal == 0 else COUPLED


def _is_mask(entry: Argument, x: Argument) -> bool:
    """Whether an entry of an index says of each row whether it is taken."""
    alike = entry.scale == x.scale and (x.scale == "chosen" or shape_of(x).axis > 0)
    left = shape_of(x).ndim == shape_of(x).axis + 1  # dimensions that it can take from: one
    return alike and entry.literal is UNKNOWN and shape_of(entry).axis == 0 and shape_of(entry).ndim in ((1, None) if left else (1,))


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


def _keeps(entry: Argument) -> bool:
    """Whether an entry of an index leaves the dimension that it takes from."""
    return isinstance(entry.literal, slice) or entry.items is not None


def _takes_from(entry: Argument) -> bool:
    """Whether an entry of an index takes from a dimension: None makes a new one, an ellipsis takes all of any number of them."""
    return entry.literal is not None and entry.literal is not ...


def _is_tensor(entry: Argument) -> bool:
    """Whether an entry of an index may be a tensor, of as many dimensions as it likes."""
    return _takes_from(entry) and not _keeps(entry) and type(entry.literal) is not int


def _axis_left(use: Use, shape: Shape, entries: Sequence[Argument]) -> tuple[int, int | None] | None:
    """The dimension of the result that is that of the samples, and which entry stands for it; None where not all of them are taken."""
    at, new = 0, 0  # dimensions of the tensor and of the result
    for n, entry in enumerate(entries):
        if entry.literal is ...:
            behind = sum(map(_takes_from, entries[n + 1 :]))
            skipped = max(shape.dims - at - behind, 0)
            if shape.base is not None or shape.axis < at + skipped:
                return (new + shape.axis - at, None) if use.at_least(shape, shape.axis + 1 + behind) else None
            at, new = at + skipped, new + skipped
        elif entry.literal is None:
            new += 1
        elif at == shape.axis:
            return (new, n) if entry.literal == slice(None) else None
        elif _is_tensor(entry):
            return None
        else:
            at, new = at + 1, new + _keeps(entry)
    return new + shape.axis - at, None


def _along_dimensions(use: Use, shape: Shape, x: Argument, entries: Sequence[Argument]) -> Result:
    """All of the samples, and entries along other dimensions."""
    found = _axis_left(use, shape, entries)
    if found is None:
        return NO_CLAIM
    axis, own = found
    taken = sum(map(_takes_from, entries))
    if shape.base is not None:
        use.shows.append((shape.base, taken - shape.dims))
    if any(_is_block(e) for n, e in enumerate(entries) if n != own):
        return NO_CLAIM
    new = sum(e.literal is None for e in entries)
    if any(map(_is_tensor, entries)):
        return _by_constant_tensors(shape, x, entries, axis, new)
    last = any(e.literal is ... for e in entries) or shape.ndim == taken  # a new dimension at the end of the index is the last one
    more = new - sum(type(e.literal) is int for e in entries)
    return Result(x.scale, shape.resized(more, axis)._replace(single=last and entries[-1].literal is None))


def _by_constant_tensors(shape: Shape, x: Argument, entries: Sequence[Argument], axis: int, new: int) -> Result:
    """The same, by tensors that are no samples' own: their dimensions stand where they do, if they stand side by side."""
    places = [i for i, e in enumerate(entries) if _takes_from(e) and not isinstance(e.literal, slice)]
    if places[-1] - places[0] >= len(places):
        return NO_CLAIM  # what stands apart comes first in the result
    shapes = [entries[i].shape for i in places]
    known = [s.dims for s in shapes if s is not None and s.base is None]
    if len(known) < len(places):
        return Result(x.scale, Shape(UNKNOWN, 0, axis))
    return Result(x.scale, shape.resized(new + max(known) - len(places), axis))


def size(use: Use) -> Result:
    """`x.size(dim)`, `x.shape[dim]`: how many samples a rank has, or a length that is the same on every rank."""
    x, dim = use.args[0], use.get(1, "dim")
    if x.scale not in ROWS:
        return Result(None)
    side = use.side(shape_of(x), dim.literal)
    if side is None:
        return NO_CLAIM if dim.literal is UNKNOWN else Result("count")
    return Result(("count" if x.scale == "sample" else "sum") if side == 0 else None)
