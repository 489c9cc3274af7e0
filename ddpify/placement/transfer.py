"""Transfer rules: how the result of an operation depends on the samples of a batch, given how its operands do.

Each is a pure function of one use of an operation. Which names they are for stands in `rows.py`; what has no row there is unknown.
Every row is checked against torch on whole tensors and on shares of them (tests/test_transfer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

from ddpify.placement.shape import (
    COUPLED,
    EXTREMES,
    INVERSE,
    LATER,
    MISSING,
    NO_CLAIM,
    ROOT,
    ROWS,
    UNKNOWN,
    Argument,
    Result,
    Scale,
    Seen,
    Shape,
    Use,
    broadcast,
    literals,
    shape_of,
)

Rule: TypeAlias = "Callable[[Use], Result]"
REORDERED = frozenset(("reordered",))
PARTS = frozenset(("parts",))
JOINED = frozenset(("joined",))
WHOLE = frozenset(("whole samples",))
STEPS = frozenset(("steps",))
APART = frozenset(("steps apart",))
TOTAL = frozenset(("total",))  # what samples met in is a total over them again
FRACTION = frozenset(("fraction",))  # a part of the number of samples, of which a rank's share may be no whole number
PART = frozenset(("fraction", "divided"))  # the same, by dividing it
MULTIPLE = frozenset(("multiple",))  # several times the number of samples
OFFSET = frozenset(("offset",))  # a total and a constant, which totals over ranks would count several times
_OF_ALL = frozenset(("mean", "sum", "total", "weighted", "count", *EXTREMES))


def of_constants(operands: Iterable[Argument]) -> Result:
    """What any function of constants gives; nothing is claimed where an operand depends on the batch."""
    return Result() if all(a.scale is None for a in operands) else NO_CLAIM


def together(use: Use, parts: Sequence[Argument]) -> Result:
    """What depends on each entry of `parts` alone: rows stay rows, and a number made of all samples makes them meet."""
    rows = [p for p in parts if p.scale in ROWS]
    others = [p for p in parts if p.scale is None]
    if not rows:
        return _entries_of_constants(others) if len(others) == len(parts) else NO_CLAIM
    if len(rows) + len(others) < len(parts):
        met = any(p.scale in ("mean", "sum", "total", "weighted", *EXTREMES) for p in parts)
        return COUPLED if met else NO_CLAIM
    if len({r.scale for r in rows}) > 1:
        return NO_CLAIM
    shapes = [shape_of(r) for r in rows]
    if (columns := _columns(use, shapes)) is not None:
        return Result(rows[0].scale, columns)
    shape = broadcast(rows, others)
    use.as_many(shapes)
    return COUPLED if shape is None else Result(rows[0].scale, shape)


def _columns(use: Use, shapes: Sequence[Shape]) -> Shape | None:
    """Columns for samples, beside one entry for each that was seen to have no other dimension: `x.t() / x.sum(1)`; None of others."""
    known, entries = [s for s in shapes if s.base is None], [s for s in shapes if s.base is not None]
    if not entries or any(s.axis for s in entries) or {(s.dims, s.axis) for s in known} != {(2, 1)}:
        return None
    use.needs += [(Seen(s.base), 1 - s.dims) for s in entries]
    return known[0].resized()


def _entries_of_constants(parts: Sequence[Argument]) -> Result:
    """A function of each entry of some constants: of as many dimensions as the tensor that has the most."""
    tensors = [p.shape for p in parts if not isinstance(p.literal, (int, float))]
    known = [s for s in tensors if s is not None and s.base is None]
    if not known or len(known) < len(tensors):
        return Result()
    return Result(None, max(known, key=lambda s: s.dims)._replace(several=False, uniform=False))


def elementwise(use: Use) -> Result:
    """A function of each entry that need not be linear: rows stay rows, and a function of an average is not the average of it."""
    return together(use, [o for o in use.operands() if o.scale is not None or o.shape is not None])


def masked_fill(use: Use) -> Result:
    """Entry by entry; an average by weights stays one where a rank that has no weights puts 0 in its place."""
    x, value = use.get(0, "input"), use.get(2, "value")
    return _same(x) if x.scale == "weighted" and value.literal == 0 else elementwise(use)


def kept(use: Use) -> Result:
    """The same numbers, elsewhere or of another kind: `.float()`, `.detach()`, `.clone()`."""
    return _same(use.get(0, "input"))


def _same(x: Argument) -> Result:
    return Result(x.scale, x.shape)


def rounded(use: Use) -> Result:
    """Whole numbers: those of an average are not the average of them; counts are whole already."""
    x = use.get(0, "input")
    return _same(x) if x.scale in (None, "count", "total", "sum", *ROWS) else NO_CLAIM


def random(use: Use) -> Result:
    """Entries drawn for each entry of a tensor."""
    x = use.get(0, "input")
    return Result(x.scale, x.shape) if x.scale in (None, *ROWS) else NO_CLAIM


def of_clouds(use: Use, dims: int, several: bool = False) -> Result:
    """An operation on the points of each sample, which gives tensors of so many dimensions."""
    rows = [a for a in use.operands() if a.scale is not None]
    if any(a.scale != "sample" or shape_of(a).axis for a in rows):
        return NO_CLAIM
    return Result("sample", Shape(None, dims, several=several)) if rows else Result()


def drawn_once(use: Use) -> Result:
    """`distribution.sample()`: an entry for each of its parameters; several are asked for by their shape."""
    return random(use) if len(use.operands()) == 1 else NO_CLAIM


def filled(use: Use) -> Result:
    """A tensor as large as another, of one number: `zeros_like`, `full_like`, `fill_`."""
    x = use.get(0, "input")
    if use.get(1, "fill_value", "value").scale is not None:
        return NO_CLAIM
    return Result(x.scale, x.shape) if x.scale in ROWS else Result(None, x.shape)


def copied(use: Use) -> Result:
    """`here.copy_(there)`: what is there."""
    here, there = use.get(0), use.get(1, "src")
    return Result(there.scale, there.shape if here.shape is None or there.scale in ROWS else here.shape)


# ------------------------------------------------------------------------------------------------ arithmetic


def added(use: Use, subtracted: bool = False) -> Result:
    """`a + b`, `a - b`: averages and averages, totals and totals, or rows and rows; a constant beside an average."""
    left, right = use.get(0, "input"), use.get(1, "other")
    if use.get(2, "alpha").scale is not None:
        return NO_CLAIM
    scales = {left.scale, right.scale}
    if scales & {*ROWS} or scales == {None}:
        return together(use, (left, right))
    if scales & {"other", *EXTREMES}:
        return NO_CLAIM
    if scales <= {None, "count", "total"} and not subtracted:
        return Result("total", marks=OFFSET if None in scales else frozenset())
    if left.scale == right.scale:
        return _same(left)
    if None in scales:
        found = left if left.scale else right
        marks = OFFSET | FRACTION if found.scale == "count" else OFFSET if found.scale in ("sum", "total") else frozenset()
        return Result(found.scale, found.shape, marks)
    return NO_CLAIM


def multiplied(use: Use) -> Result:
    """`a * b`: by a constant, what it was; an average times the number of samples is a total, and the other way round."""
    left, right = (_counted(a) for a in (use.get(0, "input"), use.get(1, "other")))
    scales = {left.scale, right.scale}
    if scales & {*ROWS} or scales == {None}:
        return together(use, (left, right))
    if scales & {*EXTREMES}:
        return NO_CLAIM
    if None in scales:
        found, by = (left, right) if left.scale else (right, left)
        if found.scale == "count" and by.literal != 1:
            return Result("count", found.shape, MULTIPLE if type(by.literal) is int else MULTIPLE | FRACTION)
        return _same(found)
    if scales == {"sum", "other"} and INVERSE in (left.shape, right.shape):
        return Result("mean", (left if left.scale == "sum" else right).shape)
    return Result("sum", (left if left.scale == "mean" else right).shape) if scales == {"mean", "count"} else NO_CLAIM


def divided(use: Use) -> Result:
    """`a / b`: by a constant, what it was; a total over the number of samples is an average, a constant over it an `INVERSE`."""
    left, right = (_counted(a) for a in (use.get(0, "input"), use.get(1, "other")))
    if use.get(2, "rounding_mode").literal is not None and left.scale not in (None, *ROWS):
        return NO_CLAIM
    if {left.scale, right.scale} & {*ROWS} or left.scale is right.scale is None:
        return together(use, (left, right))
    if left.scale in EXTREMES:
        return NO_CLAIM
    if right.scale is None:
        return _same(left)._replace(marks=PART if left.scale == "count" else frozenset())
    if left.scale is None and left.shape in (None, Shape()) and right.scale == "count":
        return Result("other", INVERSE)
    return Result("mean", left.shape) if left.scale in ("sum", "count") and right.scale == "count" else NO_CLAIM


def negated(use: Use) -> Result:
    """`-a`."""
    x = use.get(0, "input")
    return NO_CLAIM if x.scale in EXTREMES else _same(x)


def floored(use: Use) -> Result:
    """`a // b`: of rows entry by entry; of a count by a constant, a count (what is left over is taken to be none, and marked)."""
    left, right = (_counted(a) for a in (use.get(0, "input"), use.get(1, "other")))
    if {left.scale, right.scale} == {"count", None} and left.scale == "count":
        return Result("count", marks=PART)
    return together(use, (left, right))


def remainder(use: Use) -> Result:
    """`a % b`."""
    return together(use, (use.get(0, "input"), use.get(1, "other")))


def _counted(operand: Argument) -> Argument:
    return operand._replace(scale="count") if operand.scale == "total" else operand


# ------------------------------------------------------------------------------------------------ reductions


def reduction(
    over_batch: Scale | None,
    use: Use,
    default: object = None,
    several: bool = False,
    dim_at: int = 1,
    keep_at: int = 2,
) -> Result:
    """Over the samples, what `over_batch` says (None: they meet); over other dimensions, a number for each sample.

    `default` is the dimension that is meant where none is given (None: all), `several` whether a second tensor comes with the result;
    `dim_at` and `keep_at` are where these are given by place.
    """
    x, given = use.get(0, "input"), use.get(dim_at, "dim", "axis")
    if x.scale is None:
        over = Argument(literal=default) if given is MISSING else given
        return Result(None, _constant_left(x.shape, over, use.get(keep_at, "keepdim", "keepdims"), several))
    if x.scale not in ROWS:
        return Result(x.scale) if over_batch in ("mean", "sum") and x.scale not in EXTREMES else NO_CLAIM
    if given.literal is LATER and shape_of(x).axis == 0:
        return Result(x.scale, Shape(UNKNOWN))
    dims = (default,) if given is MISSING or given.literal is None else literals(given)
    keep = use.get(keep_at, "keepdim", "keepdims").literal
    shape, over_all = shape_of(x), dims in ((None,), ())
    sides = [0] if over_all else [use.side(shape, d) for d in dims or (UNKNOWN,)]
    if None in sides:
        return NO_CLAIM
    left = Shape() if over_all and keep is not UNKNOWN else _left(shape, sides, keep)
    if 0 not in sides:
        return Result(x.scale, left._replace(several=several, single=keep is True and -1 in (dims or ())))
    if over_batch is None:
        return COUPLED
    return Result("weighted" if over_batch == "mean" and x.scale == "chosen" else over_batch, left._replace(axis=0))


def renormed(use: Use) -> Result:
    """`renorm(x, p, dim, maxnorm)`: each part along one dimension scaled down by its own norm."""
    x, dim = use.get(0, "input"), use.get(2, "dim").literal
    if x.scale not in ROWS or any(a.scale is not None for a in use.operands() if a is not x):
        return of_constants(use.operands())
    side = use.side(shape_of(x), dim)
    return NO_CLAIM if side is None else COUPLED if side else Result(x.scale, shape_of(x).resized())


def norm(use: Use) -> Result:
    """`norm(x, p, dim)`: over the samples, they meet; the square of the Euclidean norm of all entries is a total over them."""
    found = reduction(None, use, dim_at=2, keep_at=3)
    euclidean = use.get(1, "p").literal in (None, 2, "fro") and len(use.args) < 3 and use.keywords.keys() <= {"p", "input"}
    return found._replace(shape=ROOT) if found == COUPLED and euclidean else found


def power(use: Use) -> Result:
    """`a ** b`: entry by entry; the square of a `ROOT` is a total."""
    x, by = use.get(0, "input"), use.get(1, "exponent")
    return Result("sum", Shape(), TOTAL) if x.shape == ROOT and by.scale is None and by.literal == 2 else elementwise(use)


def squared(use: Use) -> Result:
    """`square(a)`."""
    return power(use.over(use.get(0, "input"), Argument(literal=2)))


def counted_up(use: Use) -> Result:
    """`bincount(rows, minlength=n)`: how often each number occurs in the rows, up to one that does not depend on them."""
    x, least, weights = use.get(0, "input", "x"), use.get(2, "minlength"), use.get(1, "weights")
    if x.scale is None and least.scale is None:
        return Result(None)
    up_to = least is not MISSING and least.scale is None and (weights is MISSING or weights.literal is None)
    return Result("sum", Shape(None, 1)) if up_to and x.scale in ROWS else NO_CLAIM


def _constant_left(shape: Shape | None, dim: Argument, keep: Argument, several: bool) -> Shape | None:
    """The dimensions of a constant without some, or without any; None where it is not known which these are."""
    dims = literals(dim)
    if shape is None or keep.literal not in (None, True, False):
        return None
    if dims == (None,):
        return Shape()
    if not dims or not all(type(d) is int for d in dims):
        return None
    if keep.literal:
        return shape.resized()._replace(several=several, front=shape.front or 0 in dims or (shape.ndim is not None and -shape.ndim in dims))
    return shape.resized(-len(dims))._replace(several=several)


def _left(shape: Shape, sides: Sequence[int | None], keep: object) -> Shape:
    """The dimensions of a tensor without some, which lie on these sides of that of the samples; `keep`: they keep one entry."""
    if keep is UNKNOWN:
        return Shape(UNKNOWN)
    return shape.resized() if keep else shape.resized(-len(sides), shape.axis - sides.count(-1))


def extreme(scale: Scale, use: Use) -> Result:
    """`max`, `min`: of all entries, over dimensions, or entry by entry of two tensors."""
    if len(use.operands()) > 1:
        return extreme_of_two(scale, use) if use.get(1, "dim", "axis").is_tensor else reduction(None, use, several=True)
    return COUPLED._replace(scale=scale, shape=Shape()) if use.get(0, "input").scale in ROWS else reduction(None, use, several=True)


def extreme_of_all(scale: Scale, use: Use) -> Result:
    """`amax()`, `any()`: of all entries, or over dimensions."""
    alone = use.get(1, "dim", "axis") is MISSING and use.get(0, "input").scale in ROWS
    return COUPLED._replace(scale=scale, shape=Shape()) if alone else reduction(None, use)


def extreme_of_two(scale: Scale, use: Use) -> Result:
    """`maximum(a, b)`, entry by entry: of what is the largest of some entries each, the largest of all of them."""
    scales = {o.scale for o in use.operands()}
    return Result(scale) if scale in scales <= {None, scale} else elementwise(use)


def along(use: Use, position: int = 1, default: object = UNKNOWN, grow: int = 0, several: bool = False) -> Result:
    """A function of the entries along one dimension, that keeps it: `softmax`, `cumsum`, `sort`; over the samples, they meet."""
    x, given = use.get(0, "input"), use.get(position, "dim", "dims", "axis", "axes")
    if x.scale not in ROWS:
        return _same(x) if x.scale is None else NO_CLAIM
    if any(a.scale is not None for a in use.operands() if a is not x and a.scale != "count"):
        return NO_CLAIM
    shape = shape_of(x)
    meant = default if isinstance(default, tuple) else (default,)
    dims = meant if given is MISSING else literals(given)
    if dims == ("implicit",):
        if shape.base is not None and shape.axis != 1 and use.at_least(shape, 4):
            return Result(x.scale, shape)  # over the second
        dims = (_implicit(shape),)
    sides = [use.side(shape, d) for d in dims or (None,)]
    if None in sides:
        return NO_CLAIM
    front = shape.front and -1 not in sides
    return COUPLED if 0 in sides else Result(x.scale, shape.resized(grow)._replace(several=several, front=front))


def _implicit(shape: Shape) -> int | None:
    """The dimension that a softmax without one goes over."""
    return None if shape.base is not None else 0 if shape.dims in (0, 1, 3) else 1


def softmax(use: Use) -> Result:
    """Over one dimension, or over that which torch chooses where none is given."""
    found, given = along(use, default="implicit"), shape_of(use.get(0, "input"))
    return found._replace(shape=found.shape._replace(second=given.second)) if found.shape is not None else found


def normalize(use: Use) -> Result:
    """`normalize(x, p, dim)`: over one dimension, the second where none is given."""
    return along(use, 2, 1)


def of_last(use: Use, dims: int = 1, grow: int = 0) -> Result:
    """A function of the last `dims` dimensions of each sample."""
    given = [a for a in use.operands() if a.scale is not None or a.shape is not None]
    found = together(use, given)
    if found.scale not in ROWS or found.shape is None:
        return found
    if not use.at_least(found.shape, found.shape.axis + dims + 1):
        return COUPLED
    return Result(found.scale, found.shape.resized(grow)._replace(front=found.shape.front))


def pairwise_distance(use: Use) -> Result:
    """The distance of two rows each: over the last dimension."""
    found = together(use, use.args[:2])
    if found.scale not in ROWS:
        return found
    return reduction(None, use.over(Argument(found.scale, found.shape), Argument(literal=-1), use.get(4, "keepdim")))


def cosine_similarity(use: Use) -> Result:
    """Of two rows each: over one dimension, the second where none is given."""
    found = together(use, [use.get(0, "x1"), use.get(1, "x2")])
    if found.scale not in ROWS:
        return found
    dim = use.get(2, "dim")
    return reduction(None, use.over(Argument(found.scale, found.shape), Argument(literal=1) if dim is MISSING else dim))


def cross(use: Use) -> Result:
    """`cross(a, b, dim)`: of the vectors along one dimension."""
    found, dim = together(use, [use.get(0, "input"), use.get(1, "other")]), use.get(2, "dim")
    if found.scale not in ROWS:
        return found
    return along(use.over(Argument(found.scale, found.shape), Argument(literal=-1) if dim is MISSING else dim))


def counted(use: Use) -> Result:
    """How many entries a tensor has."""
    x = use.get(0, "input")
    scales: dict[Scale, Scale] = {"sample": "count", "chosen": "sum"}
    return Result(scales.get(x.scale) if x.scale is not None else None)


# ------------------------------------------------------------------------------------------------ products


def matmul(use: Use) -> Result:
    """A matrix product: samples stay apart where their dimension is not multiplied out, and only one operand has it."""
    a, b = use.get(0, "input", "mat1", "self"), use.get(1, "other", "mat2", "tensor", "vec")
    if a.scale not in ROWS and b.scale not in ROWS:
        linear = None in (a.scale, b.scale) and {a.scale, b.scale} <= {None, "mean", "sum", "weighted"}
        return Result(a.scale or b.scale) if linear else NO_CLAIM
    if {a.scale, b.scale} - {None, "sample"}:
        return COUPLED if {a.scale, b.scale} & _OF_ALL else NO_CLAIM
    if a.scale is None:
        return _product_beside(use, shape_of(b), first=False, other=a)
    if b.scale is None:
        return _product_beside(use, shape_of(a), first=True, other=b)
    return _product_of_both(use, shape_of(a), shape_of(b))


def batched_product(use: Use) -> Result:
    """`bmm(a, b)`: the products of as many matrices on either side."""
    operands = use.get(0, "input", "self"), use.get(1, "mat2")
    three = all(use.proves(shape_of(a), 3) for a in operands if a.scale in ROWS)
    found = matmul(use.over(*operands)) if three else NO_CLAIM
    first = operands[0].shape is not None and operands[0].shape.second
    return found._replace(shape=found.shape._replace(second=True)) if first and found.shape is not None and found.shape.axis == 0 else found


def _product_beside(use: Use, x: Shape, first: bool, other: Argument) -> Result:
    """The product of samples and a constant matrix; `first`: the samples stand on its left."""
    multiplied_out = 0 if first else 1  # counted from the right: the last dimension on the left, the one before it on the right
    beside = other.shape.ndim if other.shape is not None else None
    if x.base is not None:
        if (beside or 0) > 2:
            return NO_CLAIM
        use.at_least(x, x.axis + multiplied_out + 2)
    elif x.dims == 1 or x.dims - 1 - x.axis == multiplied_out:
        return COUPLED
    lost = 1 if beside == 1 else 0
    more = max((beside or 0) - x.dims, 0) if x.base is None else 0
    before = lost if not first and x.base is None and x.axis == x.dims - 1 else 0
    if beside is None and first:
        if x.base is None:
            use.shows.append((UNKNOWN, x.dims - 1))
        return Result("sample", Shape(UNKNOWN, 0, x.axis))  # one fewer where the other is a vector
    return Result("sample", x.resized(more - lost, x.axis + more - before))


def _product_of_both(use: Use, a: Shape, b: Shape) -> Result:
    """The product of two tensors of samples: apart along dimensions in front, or multiplied out and added up."""
    if a.base is not None or b.base is not None:
        if a.axis != b.axis:
            return COUPLED
        use.at_least(a, a.axis + 3)
        use.at_least(b, b.axis + 3)
        return Result("sample", (a if a.base is not None else b).resized())
    left, right = a.dims - 1 - a.axis, b.dims - 1 - b.axis  # counted from the right
    if left == 0 and right == min(b.dims - 1, 1):
        return Result("sum")
    ndim = max(a.dims, b.dims)
    shape = Shape(None, ndim, ndim - 1 - left, by_step=a.by_step or b.by_step)
    return Result("sample", shape) if left >= 2 and left == right else COUPLED


def added_product(use: Use) -> Result:
    """`addmm(base, a, b)`: a matrix product and what is added to it; factors may stand before the matrices: `base.addmm(1, -2, a, b)`."""
    base, a, b = use.get(0, "input"), use.get(1, "mat1", "mat", "batch1"), use.get(2, "mat2", "vec", "batch2")
    factors = [use.get(-1, name) for name in ("alpha", "beta")]
    if len(use.args) > 3:
        *rest, a, b = use.args
        base = max(rest, key=lambda given: given.scale is not None)
        factors += [given for given in rest if given is not base]
    if any(given.scale is not None for given in factors):
        return NO_CLAIM
    product = matmul(use.over(a, b))
    return product if product.scale == "other" else added(use.over(base, Argument(product.scale, product.shape)))


def vecdot(use: Use) -> Result:
    """The product of two one-dimensional tensors, added up."""
    scales = {a.scale for a in use.args[:2]}
    return Result("sum", Shape()) if scales == {"sample"} else of_constants(use.args)


def inner(use: Use) -> Result:
    """The same, and of tensors of more dimensions the products of all their rows."""
    rows = [a for a in use.args[:2] if a.scale in ROWS]
    return vecdot(use) if not rows or all(shape_of(a).ndim == 1 for a in rows) else NO_CLAIM


def linear(use: Use) -> Result:
    """Each row times a matrix that is the same for all."""
    x = use.get(0, "input")
    more = [a for a in use.operands() if a is not x]
    if x.scale not in ROWS or any(a.scale is not None for a in more):
        return of_constants(use.operands())
    shape = shape_of(x)
    if not use.proves(shape, shape.axis + 2):
        return COUPLED
    single = use.get(-1, "out_features").literal == 1
    return Result(x.scale, shape._replace(single=single, several=False))


def outer(use: Use) -> Result:
    """All products of the entries of two tensors of one dimension."""
    a, b = use.get(0, "input"), use.get(1, "vec2")
    if {a.scale, b.scale} == {"sample", None}:
        return Result("sample", Shape(None, 2, 0 if a.scale else 1))
    return COUPLED if a.scale == b.scale == "sample" else of_constants((a, b))


def cdist(use: Use) -> Result:
    """All distances between two sets of rows: of each sample, or between the samples."""
    a, b = use.get(0, "x1"), use.get(1, "x2")
    if a.scale not in ROWS and b.scale not in ROWS:
        return of_constants((a, b))
    if {a.scale, b.scale} == {"sample"}:
        return of_last(use.over(a, b), 2)
    shape = shape_of(a if a.scale else b)
    if {a.scale, b.scale} != {"sample", None} or not use.proves(shape, shape.axis + 2):
        return NO_CLAIM
    if a.scale is None and (shape.base is not None or shape.axis == shape.dims - 2):
        return Result("sample", shape.resized(0, shape.dims - 1)) if shape.base is None else NO_CLAIM
    return Result("sample", shape.resized())


def einsum(use: Use) -> Result:
    """Samples stay apart where all operands name them by one letter; where that is not in the result, they are added up."""
    equation = use.get(0, "equation").literal
    given = [a for a in use.operands() if a.literal != equation or a.scale is not None]
    operands = [a for each in given for a in (each.items if each.items is not None else (each,))]
    rows = [a for a in operands if a.scale in ROWS]
    if not rows or not isinstance(equation, str) or any(a.scale not in (None, "sample") for a in operands):
        return of_constants(operands)
    terms, output = _terms(equation)
    if len(terms) != len(operands):
        return NO_CLAIM
    terms, output = _without_ellipses(terms, output, [a.shape for a in operands])
    names = {_letter(use, term, shape_of(a)) for term, a in zip(terms, operands, strict=True) if a.scale in ROWS}
    name = names.pop() if len(names) == 1 else None
    if name is None:
        return COUPLED
    places = _letters(output)
    if name not in places:
        return Result("sum")
    axis = places.index(name)
    if "." in places[:axis]:
        return NO_CLAIM
    if "." not in places:
        return Result("sample", Shape(None, len(places), axis))
    counted = {_rest(a, term) for term, a in zip(terms, operands, strict=True) if "..." in term}
    base, rest = counted.pop() if len(counted) == 1 else (UNKNOWN, 0)
    return Result("sample", Shape(base, 0 if base is UNKNOWN else rest + len(places), axis))


def _rest(operand: Argument, term: str) -> tuple[Hashable, int]:
    """How many dimensions "..." stands for in what an equation calls an operand: how many more than what its rows are counted from."""
    shape = operand.shape if operand.scale in ROWS and operand.shape is not None else None
    return (UNKNOWN, 0) if shape is None or shape.base is None else (shape.base, shape.dims - len(_letters(term)))


def _terms(equation: str) -> tuple[list[str], str]:
    """What the operands of an equation are called, and its result: without an arrow, all letters that stand once."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    if not arrow:
        letters = inputs.replace(",", "").replace(".", "")
        output = ("..." if "..." in inputs else "") + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    return inputs.split(","), output


def _without_ellipses(terms: list[str], output: str, shapes: list[Shape | None]) -> tuple[list[str], str]:
    """An equation with a digit for each dimension that "..." stands for, where all operands' numbers of dimensions are known."""
    ndims = [s.ndim if s is not None else None for s in shapes]
    rests = [n - len(_letters(t)) + 1 for t, n in zip(terms, ndims, strict=True) if n is not None and "..." in t]
    most = max(rests, default=0)
    if len(rests) < sum("..." in t for t in terms) or not all(0 <= r <= most < 10 for r in rests):
        return terms, output
    digits, left = "0123456789"[:most], iter(rests)
    return [t.replace("...", digits[most - next(left) :]) if "..." in t else t for t in terms], output.replace("...", digits)


def _letters(term: str) -> list[str]:
    return list(term.replace("...", "."))


def _letter(use: Use, term: str, shape: Shape) -> str | None:
    """What a term of an equation calls the dimension of the samples."""
    names = _letters(term)
    if "." not in names:
        if shape.base is None and shape.dims != len(names):
            return None
        return names[shape.axis] if shape.axis < len(names) and use.proves(shape, len(names)) else None
    at = names.index(".")
    if shape.axis < at:
        return names[shape.axis]
    behind = len(names) - 1 - at
    return "." if shape.axis == at and use.at_least(shape, shape.axis + behind + 1) else None
