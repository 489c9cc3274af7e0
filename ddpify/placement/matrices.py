"""Transfer rules for linear algebra and spectra: of the matrices, or the signals, of each sample.

Reference: https://docs.pytorch.org/docs/stable/linalg.html
"""

from __future__ import annotations

from ddpify.placement.shape import COUPLED, MISSING, NO_CLAIM, ROWS, UNKNOWN, Result, Shape, Use, literals, shape_of
from ddpify.placement.transfer import elementwise, of_constants, of_last


def factors(more: tuple[int, ...], use: Use) -> Result:
    """Several tensors from each matrix, each with so many dimensions more than it has: `svd`, `qr`, `eigh`."""
    found = of_last(use.over(use.get(0, "input", "A")), 2)
    if found.scale not in ROWS or found.shape is None:
        return found
    return Result(found.scale, parts=tuple(Result(found.scale, found.shape.resized(n)) for n in more))


def power(use: Use) -> Result:
    """`matrix_power(x, n)`."""
    return of_last(use.over(use.get(0, "input", "A")), 2) if use.get(1, "n").scale is None else NO_CLAIM


def tensordot(use: Use) -> Result:
    """`tensordot(rows, constant, dims)`: products over some dimensions, those of the rows in front of the constant's."""
    a, b, dims = use.get(0, "a"), use.get(1, "b"), use.get(2, "dims")
    if a.scale not in ROWS or b.scale is not None:
        return of_constants((a, b))
    shape, n = shape_of(a), 2 if dims is MISSING else dims.literal
    over = literals(dims.items[0]) if dims.items else tuple(range(-n, 0)) if type(n) is int else None
    sides = [use.side(shape, d) for d in over or (None,)]
    if 0 in sides or None in sides or over is None:
        return COUPLED if 0 in sides else NO_CLAIM
    left, rest = shape.resized(-len(over), shape.axis - sides.count(-1)), b.shape and b.shape.ndim
    return Result(a.scale, left.resized(rest - len(over)) if rest is not None else Shape(UNKNOWN, 0, left.axis, shape.sure))


def by_table(value_at: int, table_at: int, use: Use) -> Result:
    """Each entry by a constant: `bucketize(x, bounds)`, `isin(x, allowed)`, `searchsorted(bounds, x)`."""
    x, table = use.get(value_at, "input", "elements", "values"), use.get(table_at, "boundaries", "test_elements", "sorted_sequence")
    return elementwise(use.over(x)) if table.scale is None else NO_CLAIM


def spectrogram(use: Use) -> Result:
    """`stft(signals, ...)`: frequencies and times of each signal, and, of old, two numbers for each."""
    x, how = use.get(0, "input"), use.get(9, "return_complex").literal
    if any(a.scale is not None for a in use.operands() if a is not x):
        return NO_CLAIM
    found = of_last(use.over(x), 1, 1 if how is True else 2)
    return found if how in (True, False, None) or found.shape is None else found._replace(shape=found.shape._replace(base=UNKNOWN))


def signal(use: Use) -> Result:
    """`istft(spectrograms, ...)`."""
    x = use.get(0, "input")
    return of_last(use.over(x), 2, -1) if all(a.scale is None for a in use.operands() if a is not x) else NO_CLAIM
