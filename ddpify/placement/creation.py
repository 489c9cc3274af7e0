"""Transfer rules for tensors that are made of sizes or numbers: one of as many rows as a batch has samples has a row for each."""

from __future__ import annotations

from ddpify.placement.shape import CHOSEN, MISSING, NO_CLAIM, ROWS, UNKNOWN, Result, Shape, Use
from ddpify.placement.transfer import kept, of_constants


def of_data(use: Use) -> Result:
    """`tensor(data)`: the data; of a constant, a tensor of dimensions that are not known."""
    x = use.get(0)
    scales = {item.scale for item in x.items or ()}
    if x.scale is None and scales - {None} and scales.isdisjoint(ROWS):  # numbers that a batch as a whole has a part in
        return Result(scales.pop()) if len(scales) == 1 else NO_CLAIM
    same = kept(use.over(x))
    if same.scale is None and same.shape is not None and x.items is not None:
        return Result(None, same.shape.resized(1))  # a list is as its entries are, with one dimension less
    known = same.scale is not None or same.shape is not None or x.literal is not UNKNOWN
    return same if known else Result(None, Shape(UNKNOWN))


def of_sizes(use: Use) -> Result:
    """`zeros(...)`, `rand(...)`: of sizes that are given; as many rows as a batch has are rows of its samples."""
    sizes = use.args[0].items if len(use.args) == 1 and use.args[0].items is not None else use.args
    counts = [i for i, s in enumerate(sizes) if s.scale == "count" or s.literal == CHOSEN]
    if any(s.scale is not None for i, s in enumerate(sizes) if i not in counts) or len(counts) > 1:
        return NO_CLAIM
    if not counts:
        plain = bool(sizes) and all(s.items is None and (s.shape is None or s.is_number) for s in sizes)
        return Result(None, Shape(None, len(sizes), front=sizes[0].literal == 1) if plain else None)
    if len(sizes) == 1 and sizes[0].shape is not None:
        return Result("sample", sizes[0].shape)  # as large as a tensor of samples: zeros(x.shape)
    return Result("chosen" if sizes[counts[0]].literal == CHOSEN else "sample", Shape(None, len(sizes), counts[0]))


def full(use: Use) -> Result:
    """`full(size, value)`."""
    return of_sizes(use.over(use.get(0, "size"))) if use.get(1, "fill_value").scale is None else NO_CLAIM


def new_full(use: Use) -> Result:
    """`x.new_full(size, value)`."""
    return of_sizes(use.over(use.get(1, "size"))) if use.get(2, "fill_value").scale is None else NO_CLAIM


def spaced(use: Use) -> Result:
    """`linspace(start, end, steps)`: numbers that no batch has a part in."""
    return _of_constants(use, 1)


def eye(use: Use) -> Result:
    """`eye(n)`: one row for each of `n`; of as many as the batch has samples, each stands for its place in this rank's batch."""
    return _of_constants(use, 2)


def _of_constants(use: Use, ndim: int) -> Result:
    return Result(None, Shape(None, ndim)) if all(a.scale is None for a in use.operands()) else NO_CLAIM


def new(use: Use) -> Result:
    """`x.new_zeros(...)`: as the function without `x`."""
    return of_sizes(use.over(*use.args[1:], *(v for k, v in use.keywords.items() if k == "size")))


def new_data(use: Use) -> Result:
    """`x.new(3, 4)` of sizes, `x.new([1, 2])` of numbers."""
    if len(use.args) == 2 and use.args[1].items is not None:
        return of_constants(use.args[1].items)
    return new(use)


def new_tensor(use: Use) -> Result:
    """`x.new_tensor(data)`: what the data is, whatever `x` is."""
    return kept(use.over(use.get(1, "data")))


def integers(use: Use) -> Result:
    """`randint(low, high, size)`."""
    given = (*use.args, *use.keywords.values())
    size = next((a for a in given if a.items is not None), MISSING)
    others = [a for a in given if a is not size]
    return NO_CLAIM if size is MISSING or any(a.scale is not None for a in others) else of_sizes(use.over(size))


def numbered(use: Use) -> Result:
    """`arange(n)`: the places in this rank's batch, not those in all ranks'; from another one on or in other steps, it names other rows."""
    by_name = (use.get(-1, "start"), use.get(0, "end"), use.get(-1, "step"))
    start, end, step = by_name if len(use.args) < 2 else (*use.args[:3], MISSING)[:3]
    if all(e.scale is None for e in (start, end, step)):
        return Result(None, Shape(None, 1))
    in_order = (start is MISSING or start.literal == 0) and (step is MISSING or step.literal == 1)
    return Result("sample", Shape(None, 1, places=True)) if in_order and end.scale == "count" else NO_CLAIM
