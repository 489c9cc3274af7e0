"""Entries of tensors in the interpreter: `x[...]`, `x.shape[...]`, `a, b = x`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddpify.facts import graphs, orders, prefixes, uniform, written_samples
from ddpify.facts.interpret.literals import literal
from ddpify.facts.model import NOTHING, Lit, New, Tup, Value, join, just
from ddpify.facts.operands import argument
from ddpify.facts.origins import Origin, without
from ddpify.facts.tensors import is_batch_size, length, settings, value_of
from ddpify.placement import rows
from ddpify.placement.shape import LENGTH, NUMBERS, PLACES, ROWS, UNKNOWN, Argument, Base, Result, Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_WHOLE = Argument(literal=slice(None))
_BLOCK = Argument("count", literal=slice(None))  # from one multiple of a batch's length to another
_SOME = Argument(literal=slice(1, None))
_ONE = Argument(literal=0)


def item(run: Interpreter, base: Value, index: Value, node: ast.Subscript) -> Value:
    """`x[...]` of what is no known object: a tensor, several of them, what a loader gives, sizes."""
    origins = base.origins | index.origins
    if base.shape is not None and _are_sizes(base):
        return _size(run, base, base.shape, index, node)
    if base.scale == "count":
        return Value(frozenset(), origins, "count" if _is_zero(index) else None)
    if graphs.is_last(base, literal(index)):
        return graphs.last(base)
    if (of_graph := graphs.taken(base, index, node)) is not None:
        return of_graph
    given = index
    if isinstance(node.slice, ast.Tuple):
        if not _chooses_rows(node.slice.elts):
            return _indexed(run, base, index, node, origins)
        index = join([o.entries[0] for o in index.objs if isinstance(o, Tup) and o.entries])  # `x[order, :]` is `x[order]`
        origins |= index.origins
    if base.scale in ROWS and not isinstance(node.slice, ast.Slice) and (index.scale is None or _is_drawn(base, index)):
        found = _entry(run, base, index, node, origins)
        if found is not None:
            return found
    if isinstance(node.slice, ast.Slice) and (some := _some_of_several(run, base, node.slice)) is not None:
        return some
    if isinstance(node.slice, ast.Slice) and _is_from_behind(run, node.slice) and (turned := orders.from_behind(base)) is not None:
        return turned
    return _indexed(run, base, given, node, origins)


def _some_of_several(run: Interpreter, base: Value, part: ast.Slice) -> Value | None:
    """`features[2:]` of what may be a tuple of tensors, and is not used as one tensor, or is known to be several; None of anything else."""
    if base.scale in ROWS and base.shape is not None and base.shape.several and not base.objs:
        return base
    if base.shape is not None and base.scale in ROWS and not base.objs and written_samples.are_lists(run, base.shape.base):
        return Value(base.objs, base.origins, base.scale, base.shape._replace(several=True))
    lower = [o.value for o in run.trace.values.get(part.lower, NOTHING).objs if isinstance(o, Lit)] if part.lower is not None else []
    if part.upper is not None or part.step is not None or len(lower) != 1 or type(lower[0]) is not int or lower[0] < 1:
        return None
    if base.shape is None or base.shape.several is not None or base.objs:
        return None
    found = part_of_several(run, base, part)
    return found and Value(found.objs, found.origins, found.scale, found.shape and found.shape._replace(several=True))


def _is_from_behind(run: Interpreter, part: ast.Slice) -> bool:
    """Whether a slice is `[::-1]`."""
    step = run.trace.values.get(part.step, NOTHING) if part.step is not None else NOTHING
    return part.lower is part.upper is None and bool(step.objs) and all(isinstance(o, Lit) and o.value == -1 for o in step.objs)


def _is_drawn(base: Value, index: Value) -> bool:
    """Whether an index is drawn by chance itself, and not computed from rows that were; what a draw passes a test by is a mask."""
    if index.scale == "chosen" or index.of_kind("compared"):
        return False
    draws = index.of_kind("drawn")
    return bool(index.of_kind("random")) and not (draws and draws <= base.of_kind("drawn"))


def _are_sizes(value: Value) -> bool:
    """Whether a value is the sizes of rows, or some of them: a total over the rows is none."""
    return value.scale == "count" or (value.scale == "sum" and bool(value.of_kind("sizes")))


def _size(run: Interpreter, base: Value, shape: Shape, index: Value, node: ast.Subscript) -> Value:
    """`x.shape[i]`, `x.shape[i:j]`."""
    origins = base.origins | index.origins
    if not isinstance(node.slice, ast.Slice):
        origins = without(origins, "sizes")
        found = length(run, base, index, node)
        return Value(frozenset(), origins | found.origins, found.scale)
    lower = run.trace.values.get(node.slice.lower, NOTHING) if node.slice.lower is not None else NOTHING
    start = next((o.value for o in lower.objs if isinstance(o, Lit) and type(o.value) is int), 0)
    if start < 0 and node.slice.upper is None and (found := length(run, base, lower, node)).scale is None:  # x.shape[-2:]
        return just(Tup((Value(frozenset(), origins | found.origins),) * -start))
    some = _some_sizes(shape, start, node)
    if start > shape.axis and some.ndim is not None and node.slice.step is None:
        return just(Tup((Value(frozenset(), origins),) * some.ndim))
    if start > shape.axis or (some.ndim is not None and some.axis >= some.ndim):
        return Value(frozenset(), origins)
    return Value(frozenset(), origins, base.scale, some)


def _entry(run: Interpreter, base: Value, index: Value, node: ast.Subscript, origins: frozenset[Origin]) -> Value | None:
    """One of several tensors, or rows in an order that a draw, a loop or the batch tells; None of anything else."""
    unknown = index.scale is None and (index.shape is None or index.shape.ndim == 0)
    if unknown and not any(isinstance(o, Tup) or getattr(o, "path", "") in ("list", "slice") for o in index.objs):  # which number rows
        literal = next((o.value for o in index.objs if isinstance(o, Lit)), UNKNOWN) if len(index.objs) == 1 else UNKNOWN
        part = part_of_several(run, base, node if literal is UNKNOWN else literal)
        if part is not None:
            return Value(frozenset(), origins | part.origins, part.scale, part.shape)
    other_sample = index.of_kind("places") and isinstance(node.slice, ast.BinOp)  # `x[i - 1]`, in a loop over the samples
    of_samples = base.shape is None or base.shape.axis == 0  # else the number of a layer or step, before that of the sample
    beside = bool(index.objs) and bool(index.of_kind(PLACES))  # a list of numbers of this rank's samples
    by_length = _is_drawn(base, index) and bool(index.of_kind("batch"))  # a rank draws among its own rows
    if (by_length or (index.of_kind("index") and not beside)) and not base.of_kind("forward") and not other_sample and of_samples:
        return Value(frozenset(), origins, base.scale, base.shape and base.shape._replace(falling=""))
    if unknown and index.of_kind("batch") and not index.objs and not other_sample:
        shape = base.shape and base.shape._replace(falling="")
        return Value(frozenset(), origins | {Origin("reordered", node)}, base.scale, shape)
    return None


def part_of_several(run: Interpreter, value: Value, key: object, unpacked: bool = False) -> Value | None:
    """An entry of a tuple of tensors, or of what a loader gives; None of what is a tensor. Nobody unpacks the rows of a batch."""
    shape = value.shape
    if value.scale not in ROWS:
        return None
    if shape is None:
        return Value(frozenset(), value.origins, value.scale, Shape(Base((value, key)), several=None))
    if shape.several:
        first = key == 0  # of what `mask.nonzero()` gives, and of what a sort does
        kept = shape._replace(several=False, places=shape.places and first, falling=shape.falling if first else "")
        return Value(frozenset(), value.origins, value.scale, kept)
    if shape.several is None and (unpacked or not run.claims.is_tensor(shape.base)):
        if not unpacked:
            run.claims.note("taken", shape.base)
        origins = value.origins if unpacked else value.origins | {Origin("entry", shape.base)}
        part = shape._replace(base=Base((shape.base, key)), dims=0)
        lists = shape.sure and written_samples.are_lists(run, part.base)
        return Value(frozenset(), origins, value.scale, _column(run, shape, key) or (part._replace(several=True) if lists else part))
    return None


def _column(run: Interpreter, shape: Shape, key: object) -> Shape | None:
    """The dimensions of one of the tensors of a `TensorDataset`, from which a loader takes its batches."""
    if not isinstance(shape.base, New) or not shape.sure or type(key) is not int:
        return None
    held = run.memory.get((shape.base, "dataset"), NOTHING)
    if held.kinds() != {"torch.utils.data.TensorDataset"} or len(held.objs) > 1:
        return None
    (dataset,) = held.instances()
    column = settings(run, dataset).get(str(key), NOTHING)
    known = column.shape is not None and column.shape.base is None and column.scale is None
    return column.shape._replace(axis=0, several=False) if known and column.shape is not None else None


def entries(run: Interpreter, base: Value, index: Value, node: ast.Subscript) -> Value:
    """What `x[...] = ...` writes to, of a tensor: where the order of samples is drawn, nobody knows which of them."""
    return _indexed(run, base, index, node, base.origins | index.origins)


def _indexed(run: Interpreter, base: Value, index: Value, node: ast.Subscript, origins: frozenset[Origin]) -> Value:
    """`x[...]` of a tensor."""
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values: Sequence[Value | None] = [index if e is node.slice else None for e in entries]
    for obj in index.objs if isinstance(node.slice, ast.Tuple) else ():
        values = obj.items if isinstance(obj, Tup) and len(obj.items) == len(entries) else values
    operands = [_index_entry(run, e, value, base.scale in ROWS) for e, value in zip(entries, values, strict=True)]
    axis = base.shape.axis if base.shape is not None else 0
    whole = axis < len(values) and all(o.literal == slice(None) for i, o in enumerate(operands) if i != axis)
    if whole and (ordered := orders.put_in_order(base, values[axis] or run.trace.values.get(entries[axis], NOTHING))) is not None:
        return ordered
    if sorts := prefixes.first_of(run, base, entries[0]) if entries else frozenset[object]():
        operands[0], origins = Argument("sum", Shape(falling=LENGTH), slice(None)), base.origins
    if (states := _states(run, base, entries, operands, origins)) is not None:
        return states
    others = entries[bool(sorts) :]
    own = base.scale in ROWS and isinstance(node.slice, ast.Tuple) and any(run.own_length(e) for e in others)
    x = _with_rows_alike(base, argument(run, base))
    first = x.scale == "chosen" and [o.literal for o in operands] == [slice(None), 0]  # of what `mask.nonzero()` gives
    places = x.literal == PLACES and (first or all(o.literal is None or o.literal == slice(None) for o in operands))
    if x.scale is None and x.shape is not None and x.shape.uniform and any(o.literal == PLACES or o.scale == "count" for o in operands):
        origins = origins.union(uniform.relied_on(base))
    chosen = [prefixes.FIRST] if any(o.scale is not None or o.is_tensor for o in operands) else []
    joined = ["joined"] if operands[:1] == [_BLOCK] and axis == 0 else []
    origins = without(origins, "order", "restores", *chosen, *joined)
    found = rows.index(x, operands)
    if found == Result() and any(o.literal is UNKNOWN and o.shape is not None and o.shape.ndim == 1 for o in operands[:1]):
        found = Result(None, Shape(node))  # rows, of nobody knows how many dimensions, that a list of numbers picks
    if base.scale in ROWS and axis < len(operands) and type(operands[axis].literal) is int:
        origins |= {Origin("single", node)}
    value = uniform.taken(base, prefixes.rows(value_of(run, found, node, origins, places), sorts), operands[:1] == [_BLOCK])
    return Value(value.objs, value.origins | {Origin("reordered", node)}, value.scale, value.shape) if own else uniform.part(value, node)


def _with_rows_alike(base: Value, x: Argument) -> Argument:
    """An operand, known to have the same rows where it is one row repeated, and nothing has made them differ since."""
    if base.scale is not None or not base.of_kind("repeated") or base.of_kind("displaced"):
        return x
    return x._replace(shape=(x.shape or Shape(Base(base), sure=False))._replace(uniform=True))


def _some_sizes(shape: Shape, start: int, node: ast.Subscript) -> Shape:
    """The dimensions of `x.shape[start:end]`, as far as they are known."""
    end = node.slice.upper if isinstance(node.slice, ast.Slice) else None
    try:
        last = ast.literal_eval(end) if end is not None else 0
    except ValueError:
        last = None
    if start < 0 or type(last) is not int:
        return Shape(node, 0, max(shape.axis - max(start, 0), 0), shape.sure)
    if last > 0:
        return Shape(None, min(last, shape.ndim or last) - start, shape.axis - start, shape.sure)
    return shape.resized(last - start, shape.axis - start)


def sizes_joined(run: Interpreter, left: Value, right: Value, node: ast.AST) -> Value | None:
    """The sizes of a tensor of more dimensions: `x.shape + (1,)`, `[len(x)] + [1] * more`; None of anything else."""
    listed = [argument(run, v).items for v in (left, right)]
    known = [items for items in listed if items is not None]
    if left.scale == "count" and left.shape is not None and left.shape.ndim is not None and repeats_constants(node):
        return Value(frozenset(), left.origins | right.origins, "count", Shape(node, left.shape.ndim, left.shape.axis))
    if len(known) != 1:
        return None
    n, front = len(known[0]), listed[0] is not None
    sizes = right if front else left
    at = next((i for i, item in enumerate(known[0]) if item.scale == "count"), None)
    rest = [item.scale for i, item in enumerate(known[0]) if i != at]
    if any(rest):
        return None
    if at is not None and front and _is_repeated(sizes):  # as many more as nobody knows
        shape = Shape(node, n, at)
    elif at is None and sizes.scale == "count" and sizes.shape is not None:
        shape = sizes.shape.resized(n, sizes.shape.axis + n * front)
    else:
        return None
    return Value(frozenset(), left.origins | right.origins, "count", shape)


def repeats_constants(node: ast.AST) -> bool:
    """Whether constants are added as often as a number says: `x.shape[:2] + (1,) * more`."""
    more = node.right if isinstance(node, ast.BinOp) else None
    if not isinstance(more, ast.BinOp) or not isinstance(more.op, ast.Mult):
        return False
    return any(isinstance(n, (ast.Tuple, ast.List)) and all(isinstance(e, ast.Constant) for e in n.elts) for n in (more.left, more.right))


def _is_repeated(value: Value) -> bool:
    """Whether a value is what is repeated as often as nobody knows, as `(1,) * more`, and has nothing of a batch."""
    return value.scale is None and value.shape is None and all(isinstance(o, New) and isinstance(o.node, ast.BinOp) for o in value.objs)


def sizes_with(run: Interpreter, sizes: Value, index: Value, size: Value) -> Value | None:
    """A tensor's sizes, with another number in the place of the samples': `sizes = list(x.shape); sizes[0] = 1`; None of anything else."""
    at, shape = literal(index), sizes.shape
    if sizes.scale != "count" or sizes.objs or shape is None or shape.ndim is None or type(at) is not int or size.scale is not None:
        return None
    held = tuple(size if i == shape.axis else NOTHING for i in range(shape.ndim))
    return just(Tup(held)) if at % shape.ndim == shape.axis else None


def _chooses_rows(entries: Sequence[ast.expr]) -> bool:
    """Whether an index chooses by its first entry and takes all of the dimensions after it."""
    whole = all(isinstance(e, ast.Slice) and e.lower is e.upper is e.step is None for e in entries[1:])
    return bool(entries) and whole and not isinstance(entries[0], (ast.Slice, ast.Constant))


def _states(
    run: Interpreter, base: Value, entries: Sequence[ast.expr], operands: Sequence[Argument], origins: frozenset[Origin]
) -> Value | None:
    """As many entries of a constant as a batch has samples, along a dimension as long as a batch: `state[:, : x.size(0)]`; else None."""
    at = next((i for i, o in enumerate(operands) if o == _BLOCK), 0)
    made = [n for n in base.of_kind("sized") if isinstance(n, ast.Call)]
    if not at or base.scale is not None or base.shape is None or not base.shape.uniform or len(made) != 1:
        return None
    if any(o.literal != slice(None) for o in operands) or sum(o == _BLOCK for o in operands) > 1:
        return None
    sizes = [part for a in made[0].args for part in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
    end = getattr(entries[at], "upper", None)
    count = run.trace.values.get(end, NOTHING) if end is not None else NOTHING
    size = run.trace.values.get(sizes[at], NOTHING) if at < len(sizes) else NOTHING
    as_long = is_batch_size(run, Value(frozenset(), count.origins, "sample"), size)
    return Value(frozenset(), origins, "sample", base.shape.resized(axis=at)) if as_long else None


def _index_entry(run: Interpreter, node: ast.expr, value: Value | None, rows: bool) -> Argument:
    """An entry of an index as an operand; `rows`: of a tensor of samples."""
    if isinstance(node, ast.Slice):
        return _slice(run, node, rows)
    if isinstance(node, ast.Constant) and node.value is ...:
        return Argument(literal=...)
    value = run.trace.values.get(node, NOTHING) if value is None else value
    if value.kinds() == {"slice"}:
        return _slice_object(run, value)
    number = value.shape.ndim == 0 if value.shape is not None else value.of_kind("index") and not value.of_kind("drawn")
    if value.scale is None and not value.objs and number:
        return _ONE
    if "range" in value.kinds():
        return Argument("sample", Shape(None, 1), PLACES)
    entry = argument(run, value)
    return entry._replace(literal=NUMBERS) if entry.literal is UNKNOWN and value.scale in ROWS and not value.of_kind("compared") else entry


def _slice_object(run: Interpreter, value: Value) -> Argument:
    """`slice(None)`, as an entry of an index what `:` is there, or, beside places that are chosen, a choice of all of them."""
    whole = all(
        isinstance(o, New) and isinstance(o.node, ast.Call) and all(isinstance(a, ast.Constant) and a.value is None for a in o.node.args)
        for o in value.objs
    )
    if not whole or value.scale not in (None, "chosen"):
        return Argument("other")  # nobody knows what it takes
    return _WHOLE if value.scale is None else argument(run, Value(frozenset(), value.origins, value.scale, value.shape))


def _slice(run: Interpreter, node: ast.Slice, rows: bool) -> Argument:
    """All entries, some, or those from one multiple of the batch's length to another."""
    bounds = [run.trace.values.get(b, NOTHING) if b is not None else None for b in (node.lower, node.upper)]
    counts = [b for b in bounds if b is not None and not _is_zero(b)]
    if node.step is None and all(b.scale == "count" and not b.of_kind("fraction") for b in counts):
        return (_BLOCK if rows or bounds[0] not in counts else Argument("count")) if counts else _WHOLE
    return _SOME if rows or all(b.scale is None and not _goes_with_batches(run, b) for b in counts) else Argument("count")


def _goes_with_batches(run: Interpreter, bound: Value) -> bool:
    """Whether a number is so many batches further on: the number of a batch, times the size of the batches."""
    loaders = frozenset(o for loop in run.loops if loop.node in bound.of_kind("index") for o in loop.element.batches())
    sizes = {size for o in loaders if isinstance(o, New) for size in run.memory.get((o, "batch_size"), NOTHING).objs}
    written = {size.value for size in sizes if isinstance(size, Lit)}
    by_size = any(o in sizes or (isinstance(o, Lit) and o.value in written) for o in bound.of_kind("from"))
    return by_size or not bound.of_kind("share").isdisjoint(loaders)


def numbers_batches(run: Interpreter, index: Value) -> bool:
    """Whether an index is the number of a loader's batch, in the loop over it."""
    counts = not index.objs and index.scale is None and {o.kind for o in index.origins} == {"index"}
    return counts and any(loop.node in index.of_kind("index") and loop.element.batches() for loop in run.loops)


def _is_zero(value: Value) -> bool:
    return any(isinstance(o, Lit) and o.value == 0 for o in value.objs)


def unpacked(run: Interpreter, value: Value, n: int, node: ast.AST, star: int | None = None) -> list[Value] | None:
    """The parts of `a, b = x`: of the sizes of a tensor, of several tensors, or of one along its first dimension; None of anything else.

    Of sizes, the part `star` may be any number of them: `a, *b, c = x.shape`.
    """
    shape = value.shape
    if shape is not None and n > 1 and _are_sizes(value):
        if shape.base is not None:
            run.claims.note("shown", shape.base, n - (star is not None) - shape.dims)
        lengths = Value(frozenset(), value.origins)
        out = [Value(frozenset(), value.origins, value.scale) if i == shape.axis else lengths for i in range(n if star is None else star)]
        if star is not None:
            out.append(lengths if shape.axis < star else Value(frozenset(), value.origins, value.scale, Shape(node, 0, shape.axis - star)))
            out += [length(run, value, just(Lit(i - n)), node) for i in range(star + 1, n)]
        return out
    if value.scale not in ROWS or value.objs:
        return None
    if shape is None or shape.several is None or shape.several:
        return [part_of_several(run, value, i, unpacked=True) or NOTHING for i in range(n)]
    return [value_of(run, rows.index(argument(run, value), [_ONE]), node, value.origins)] * n
