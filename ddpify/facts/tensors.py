"""Tensors in the interpreter: its values as operands of the transfer rules, and what these say as values again."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ddpify.facts import graphs, orders, prefixes, uniform
from ddpify.facts.model import NOTHING, Lit, New, Obj, Tup, Value, join
from ddpify.facts.operands import argument, drawn_inside, entries, given, is_open
from ddpify.facts.origins import Origin, of_kind, only, ungraded, without
from ddpify.placement import rows
from ddpify.placement.shape import (
    COUPLED,
    NO_CLAIM,
    OWN,
    PLACES,
    ROOT,
    ROWS,
    SEVERAL,
    UNKNOWN,
    Argument,
    AtMost,
    Base,
    Just,
    Result,
    Scale,
    Shape,
)
from ddpify.placement.transfer import APART, JOINED, TOTAL, WHOLE, Rule

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

# These divide by the weights of the valid targets; other losses by how many entries there are, whatever their weights.
BY_WEIGHT = frozenset(("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "NLLLoss2d"))
_NONE: Mapping[str, Rule] = {}
INTO_CELLS = frozenset("index_add index_add_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_put index_put_ put_".split())
START = "[start]"  # the key of where a `range` starts
TRANSPOSES = frozenset(("T", "mT", "H", "mH"))
_MAKES = frozenset(["zeros", "empty", "arange", "linspace", "logspace", "eye", "as_tensor"])
_LEFT_BEHIND = {  # what a value is no longer of: in the graph, or a parameter whose sizes alone are taken
    **dict.fromkeys("item tolist numpy detach detach_".split(), ("forward", "graded")),
    **dict.fromkeys(
        "new new_zeros new_ones new_empty new_full zeros_like ones_like empty_like full_like rand_like randn_like randint_like".split(),
        ("parameters", "weight", "output", "sometimes"),
    ),
    **dict.fromkeys(("numel", "nelement"), ("output", "sometimes")),
}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
}
KNOWN = frozenset(rows.NAMES) | frozenset(f"{name}_" for name in rows.NAMES)
_OF_ANYTHING = frozenset("to cuda cpu float double half long int data copy pin_memory eq ne detach type item index_select".split())
# These leave the numbers of a sample's own rows: its place times as many rows as a sample has, plus one's number among them.
_IN_PLACE = frozenset(
    "tensor as_tensor asarray array from_numpy to cuda cpu long int type type_as detach contiguous view reshape flatten unsqueeze "
    "squeeze expand expand_as repeat mul add".split()
)
_MAKES_PLACES = frozenset(("arange", "nonzero", "argwhere", "where"))
_BY_PLACES = frozenset(("index_add", "index_add_", "index_copy", "index_copy_"))  # their rules ask where the rows stand
OF_TUPLES = frozenset("cat concat concatenate stack hstack vstack dstack row_stack column_stack block_diag".split())
_SIZES_ONLY = frozenset(
    "zeros_like ones_like full_like empty_like rand_like randn_like zero_ fill_ numel nelement new new_zeros new_ones new_full "
    "new_empty".split()
)
_OF_SIZES = frozenset("view reshape zeros ones empty rand randn new_zeros new_ones new_empty".split())
_OF_ONE = frozenset(
    "Linear LazyLinear Identity Sequential Embedding Flatten Unflatten Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm "
    "GroupNorm Dropout Dropout1d Dropout2d Dropout3d ReLU LeakyReLU GELU SiLU Sigmoid Tanh Softmax LogSoftmax".split()
)
_OF_SEVERAL = frozenset(("values", "indices"))
_AS_LARGE = frozenset(("view_as", "reshape_as", "expand_as", "type_as"))
_INDEXED = frozenset(("scatter", "scatter_add", "gather"))
_QUOTIENTS = frozenset("div divide true_divide floor_divide".split())
_ASKS = frozenset("eq ne lt le gt ge isnan isinf isfinite isin isclose bool logical_and logical_or logical_not nonzero argwhere".split())
_UNGRADED = _ASKS.union("item tolist numpy detach detach_ argmax argmin argsort long int short byte multinomial".split())


def any_function(parts: Sequence[Value]) -> Scale | None:
    """How what a function that is not known makes of `parts` depends on the batch: taken to be for each sample, as networks are."""
    if uneven(parts):
        return "other"
    seen = {p.scale for p in parts} - {None}
    if not seen:
        return None
    if seen & set(ROWS):
        return "sample" if seen <= {"sample", "count"} else "chosen" if seen <= {"chosen", "count"} else "other"
    return "count" if seen <= {"count", "total"} else "other"


def uneven(parts: Sequence[Value]) -> bool:
    """Whether a rank's own rows meet all ranks' rows, or numbers made of those."""
    for part in parts:
        if part.scale in ROWS:
            return any(p.scale is None and p.of_kind("whole") for p in parts)
    return False


def _are_uneven(name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """The same of the operands of a function: numbers for each column, and a matrix that each row is multiplied by, meet all rows alike."""
    own = next((v.shape for v in args if v.scale in ROWS), None)
    if name in ("matmul", "mm") and len(args) == 2 and args[0].scale in ROWS and args[1].scale is None:
        return uneven(args) and not (_is_matrix(args[0].shape) and _is_matrix(args[1].shape) and own is not None and own.axis == 0)
    if name.removesuffix("_") in rows.ALIGNED - _INDEXED:
        args = [v for v in args if v.scale is not None or not _is_under(v.shape, own)]
    inside = [v for given in args for o in given.objs if isinstance(o, Tup) for v in o.items if v.scale is None]  # `x.view((1, n, -1))`
    return uneven([*args, *inside, *keywords.values()])


def _is_matrix(shape: Shape | None) -> bool:
    return shape is not None and shape.ndim == 2


def _is_under(shape: Shape | None, rows: Shape | None) -> bool:
    """Whether none of a tensor's dimensions meets that of some samples: it has fewer behind it, or one entry there."""
    if shape is None or rows is None or shape.ndim is None or rows.ndim is None:
        return False
    return shape.ndim < rows.ndim - rows.axis or (shape.front and shape.ndim == rows.ndim - rows.axis)


def _is_decided(parts: Sequence[Value]) -> bool:
    """Whether a rank's rows meet a number that was chosen by its rows: `2.0 if rows.mean() > 0 else 1.0`."""
    chosen = [d for p in parts if p.scale is None and (d := p.of_kind("decided"))]
    return bool(chosen) and any(p.scale in ROWS and any(d & p.batches() for d in chosen) for p in parts)


def _is_plain(value: Value) -> bool:
    """Whether a value has nothing of a batch, and no dimensions that are known."""
    if value.scale is not None or value.shape is not None:
        return False
    return not value.objs or all(isinstance(o, Lit) for o in value.objs)


def differentiated(run: Interpreter, args: list[Value], keywords: Mapping[str, Value]) -> tuple[Value, Value]:
    """What `torch.autograd.grad(outputs, inputs)` takes the gradient of, and by what: the one tensor of a list, or the list."""
    given = [*args[:2], *([NOTHING] * (2 - len(args)))]
    of, by = keywords.get("outputs", given[0]), keywords.get("inputs", given[1])
    listed = [v for o in by.objs for v in (o.entries if isinstance(o, Tup) else entries(run, o) if isinstance(o, New) else ())]
    return NOTHING if "grad_outputs" in keywords else of, listed[0] if len(listed) == 1 and len(by.objs) == 1 else by


# ------------------------------------------------------------------------------------------------ results


def _is_of_any(base: Hashable) -> bool:
    """Whether dimensions are counted from those of any entry that a call gives, `batch.values()`: others may have others."""
    return isinstance(base, Base) and isinstance(base.of, tuple) and isinstance(base.of[-1], ast.Call)


def value_of(run: Interpreter, found: Result, node: ast.AST, origins: frozenset[Origin], places: bool = False) -> Value:
    """What a transfer rule says, as a value made at `node` of what `origins` tell; `places`: it stands for the places of the samples."""
    for base, least in found.shows:
        if not (isinstance(base, (Just, AtMost)) and _is_of_any(base.base)):
            run.claims.note("shown", node if base is UNKNOWN else base, least)  # of the result itself
    for need in found.needs:
        run.claims.note("needed", *need)
    if found.needs:
        origins = origins.union([Origin("needs", need) for need in found.needs])
    value = _value(found, node, origins)
    if value.shape is None or value.shape.places is places:
        return value
    return Value(value.objs, value.origins, value.scale, value.shape._replace(places=places))


def _value(found: Result, node: ast.AST, origins: frozenset[Origin]) -> Value:
    if found.marks >= WHOLE:
        origins = without(origins, "parts")
    elif found.marks >= APART:
        origins = without(origins, "steps", "joined")
    elif found.marks >= TOTAL:
        origins = without(origins, "coupled")
    elif found.shape == ROOT and found.marks and of_kind(origins, "coupled"):
        found = found._replace(shape=None)  # samples have met before
    elif found.marks:
        origins |= {Origin(m, node) for m in found.marks}
    if found.parts:
        return Value(frozenset((Tup(tuple(_value(p, node, origins) for p in found.parts)),)), origins)
    shape = found.shape
    if shape is not None and shape.base is UNKNOWN:
        shape = shape._replace(base=node)
    shared = found.scale not in (None, *ROWS) and of_kind(origins, "sampled")  # other ranks may have some of these rows, too
    return Value(frozenset(), origins, "other" if shared else found.scale, shape)


def withdraw(run: Interpreter) -> None:
    """Take back what was claimed of tensors that were not seen to have as many dimensions as that depends on, or to be tuples."""
    unmet = run.claims.unmet()
    if not unmet:
        return
    known: dict[int, tuple[Value, Value]] = {}  # by the value's identity: few of them differ, and comparing them takes long

    def proven(value: Value) -> Value:
        found = known.get(id(value))
        if found is None:
            objs = frozenset([o.each(proven) if isinstance(o, Tup) else o for o in value.objs]) if value.objs else value.objs
            scale, origins = value.scale, value.origins
            if not unmet.isdisjoint(origins):
                scale = scale and "other"
                origins = origins | {Origin("mixed")} if of_kind(origins, "whole") else origins  # what was gathered may be no rows
            same = objs == value.objs and scale == value.scale and origins is value.origins
            found = known[id(value)] = value, value if same else Value(objs, origins, scale, value.shape)
        return found[1]

    trace = run.trace
    trace.values = {node: proven(v) for node, v in trace.values.items()}
    for call in trace.calls:
        call.args, call.keywords = [proven(a) for a in call.args], {k: proven(v) for k, v in call.keywords.items()}
        call.receiver, call.result, call.now = proven(call.receiver), proven(call.result), proven(call.now)
    for store in trace.stores:
        store.value, store.receiver = proven(store.value), proven(store.receiver)
    for key, value in list(run.memory.items()):
        if (now := proven(value)) is not value:
            run.memory[key] = now


# ------------------------------------------------------------------------------------------------ operations


def function(
    run: Interpreter,
    name: str,
    node: ast.AST,
    args: list[Value],
    keywords: dict[str, Value],
    origins: frozenset[Origin],
    particular: Mapping[str, Rule] = _NONE,
) -> Value:
    """What `torch.name(...)`, or a method called `name` of the first of `args`, gives."""
    if (found_order := orders.by_order(run, name, node, args, keywords)) is not None:
        return found_order
    if (of_graphs := graphs.by_graph(run, name, node, args, keywords)) is not None:
        return of_graphs
    if prefixes.is_lost(name, args, [*args[1:], *keywords.values()]):
        return Value(frozenset(), origins | {Origin("coupled", node)}, "other")
    origins = prefixes.kept(name, graphs.kept(name, orders.kept(name, origins)))
    if name in _AS_LARGE and args:
        origins = without(origins, "output", "sometimes") | only(args[0].origins, "output", "sometimes")
    if name in _ASKS:
        origins |= {Origin("compared")}
    origins |= drawn_inside(run, args) | uniform.repeats(name, node, [*args, *_in_lists(run, args)])
    if name not in (*_MAKES, "repeat") and all(map(_is_plain, (*args, *keywords.values()))):
        return Value(frozenset(), _still_of(name, origins))
    if name in _QUOTIENTS and _are_of_one_batch(args):
        return Value(frozenset(), without(origins, "batch", "forward", "multiple"))
    operands, named = given(run, args, keywords)
    if _are_uneven(name, args, keywords) or _is_decided(args):
        return Value(frozenset(), origins, "other")
    if name in ("view", "reshape"):
        sizes = args[1:]
        operands[1:] = [_size(run, args[0], v, o) for v, o in zip(sizes, operands[1:], strict=True)]
        operands = [operands[0], Argument()] if _are_sizes_or_ones(run, args[0], sizes) else operands
        origins = without(origins, "multiple") | only(args[0].origins, "multiple")  # that of a size is none of the rows'
    if name.removesuffix("_") in ("scatter", "scatter_add") and len(args) > 2:
        operands[0] = _to_fill(run, args[0], args[2], operands[0])
    if name in BY_WEIGHT and run.ignores():
        named.setdefault("ignore_index", Argument())
    if name not in _OF_ANYTHING:
        _use(run, operands, name in OF_TUPLES)
    if name in ("matmul", "mm") and len(args) == 2:
        _show_matrix(run, name, *args)
    found = rows.function(name, operands, named, particular)
    if found.marks or name == "masked_select":
        origins = without(origins, prefixes.FIRST)
    if found.scale == "chosen" and _of_single_rows(name, node):
        found = found._replace(scale="sample")
    if found.marks >= WHOLE and any(v.of_kind("parts") for v in (*args[1:], *_in_lists(run, args[1:]))):
        found = found._replace(marks=frozenset())  # as many as there are parts
    elif found.marks >= WHOLE and _are_of_several(args[:1]) and not _are_of_several([*args[1:], *_in_lists(run, args[1:])]):
        found = COUPLED
    elif _is_beside_whole_samples(name, found, args):
        origins = without(origins, "parts")
    made = name in _MAKES_PLACES and not _among_places(operands, named)
    places = found.shape is not None and found.shape.places if made else _still_places(name, operands)
    if orders.differ([*args, *keywords.values(), *_in_lists(run, args)]):
        found = COUPLED
    places = places and not found.marks >= JOINED
    if not places and name not in _SIZES_ONLY | _BY_PLACES and _among_places(operands, named):
        found = COUPLED
    if _is_of_unknown_rows(found, args):
        found = found._replace(scale="other")
    value = value_of(run, found, node, origins, places)
    shape = _known_shape(run, name, node, args, value)
    if shape is not None and shape.base is node and value.scale in ROWS and name in _OF_SIZES:
        run.claims.note("shown", node, _sizes_at_least(node))
    if shape is value.shape and name not in _LEFT_BEHIND and name not in _UNGRADED:
        return value
    return Value(value.objs, _still_of(name, value.origins), value.scale, shape)


def _show_matrix(run: Interpreter, name: str, left: Value, right: Value) -> None:
    """Rows that are multiplied by a matrix of weights have two dimensions at least: there are not as many samples as it has rows."""
    matrix = right.scale is None and right.shape is not None and right.shape.ndim == 2 and bool(right.of_kind("weight"))
    if left.scale in ROWS and left.shape is not None and left.shape.base is not None and (matrix or name == "mm"):
        run.claims.note("shown", left.shape.base, left.shape.axis + 2 - left.shape.dims)


def _are_of_one_batch(counts: list[Value]) -> bool:
    """Whether counts are of the samples, or of all entries, of one batch: each sample has as many, `x.numel() // x.size(0)`."""
    if len(counts) != 2 or any(c.scale != "count" or c.objs or c.of_kind("fraction") or c.of_kind("offset") for c in counts):
        return False
    batch, other = (c.of_kind("batch") for c in counts)
    return bool(batch) and batch == other


def _of_single_rows(name: str, node: ast.AST) -> bool:
    """Whether tensors are put one after another that have one entry each: `cat([row.unsqueeze(0) for row in rows])`."""
    given = node.args[0] if name in rows.JOINS and isinstance(node, ast.Call) and node.args else None
    match given.elt if isinstance(given, (ast.ListComp, ast.GeneratorExp)) else None:
        case ast.Call(func=ast.Attribute(attr="unsqueeze")) as call:
            dims = [*call.args, *(k.value for k in call.keywords)][-1:]
            return [d.value for d in dims if isinstance(d, ast.Constant)] == [0]
        case ast.Subscript(slice=ast.Constant(value=None)) | ast.Subscript(slice=ast.Tuple(elts=[ast.Constant(value=None), *_])):
            return True
    return False


def _is_of_unknown_rows(found: Result, args: Iterable[Value]) -> bool:
    """Whether a loss is computed of what comes from a batch, of which it is not known whether it is rows of it."""
    given = [v for v in args if v.of_kind("batch")]
    return found.scale in ("mean", "sum", "weighted") and bool(given) and all(v.scale is None for v in given)


def _are_of_several(values: Iterable[Value]) -> bool:
    """Whether there are several batches of rows one after another: with one row for each sample, each would have rows of other samples."""
    return any(v.of_kind("joined") for v in values)


def _is_beside_whole_samples(name: str, found: Result, args: Iterable[Value]) -> bool:
    """Whether rows that may be parts of samples are combined, entry by entry, with one row for each sample: then they are that, too."""
    if name.removesuffix("_") not in rows.ALIGNED or found.marks or found.shape is None or found.scale != "sample":
        return False
    whole = [v.shape for v in args if v.scale == "sample" and v.shape is not None and not v.of_kind("parts")]
    return any(s.sure and s.axis == found.shape.axis == 0 and s.ndim is not None and s.ndim == found.shape.ndim for s in whole)


def _in_lists(run: Interpreter, args: list[Value]) -> list[Value]:
    """What tuples and lists among some arguments hold."""
    objs = [o for a in args for o in a.objs]
    held = [o.entries if isinstance(o, Tup) else entries(run, o) if isinstance(o, New) and o.path == "list" else () for o in objs]
    return [v for some in held for v in some]


def _known_shape(run: Interpreter, name: str, node: ast.AST, args: list[Value], value: Value) -> Shape | None:
    """The dimensions of what a function gives, by what its arguments are beside operands: unpacked, one number, one row again and again."""
    shape = value.shape
    if shape is not None and isinstance(node, ast.Call) and _is_starred(node.args) and not _are_counted(run, node.args):
        other = _of_its_sizes(run, node) if name in _OF_SIZES else None
        shape = shape._replace(base=node, dims=0) if other is None else shape._replace(base=other.base, dims=other.dims)
    if name == "repeat" and value.scale is None and Origin("repeated", node) in value.origins:
        shape = Shape(None, len(args) - 1)
    if shape is not None and shape.uniform != (alike := value.scale is None and uniform.is_uniform(name, args)):
        shape = shape._replace(uniform=alike)
    return shape


def _of_its_sizes(run: Interpreter, node: ast.Call) -> Shape | None:
    """The dimensions of `x.view(*y.shape, -1)`: those of the other tensor, and as many more as there are other sizes."""
    (one, *others) = [run.trace.values.get(n.value, NOTHING) for n in node.args if isinstance(n, ast.Starred)] or [NOTHING]
    sizes = one.shape if one.scale == "count" and not one.objs and not others else None
    return sizes.resized(len(node.args) - 1) if sizes is not None else None


def _sizes_at_least(node: ast.AST) -> int:
    """How many sizes there are at least in `rows.view(*sizes, -1, 2)`, where those of the samples come first."""
    given = node.args if isinstance(node, ast.Call) else []
    return len(given) if _is_starred(given[:1]) and not _is_starred(given[1:]) else 1


def _among_places(operands: list[Argument], named: Mapping[str, Argument]) -> bool:
    """Whether an operand is the places of the samples: as numbers, they start at 0 on every rank, where those of the whole batch go on."""
    return any(o.literal == PLACES for o in (*operands, *named.values()))


def _still_places(name: str, operands: list[Argument]) -> bool:
    """Whether what is computed stands for the places of the samples, or for rows of theirs, each by its number in view of all."""
    others = {o.scale for o in operands if o.literal != PLACES}
    if name not in _IN_PLACE or all(o.literal != PLACES for o in operands):
        return False
    if any(o.scale == "chosen" for o in operands if o.literal == PLACES):
        return name not in ("mul", "add", "repeat", "expand", "expand_as")
    return None not in others if name == "add" else name != "mul" or others.isdisjoint(ROWS)


def _size(run: Interpreter, rows: Value, size: Value, operand: Argument) -> Argument:
    """A size of what some rows are viewed as, or a list of sizes: the number of samples, where it is their loader's own."""
    if operand.items is not None:
        (only,) = size.objs
        listed = only.items if isinstance(only, Tup) else entries(run, only) if isinstance(only, New) else ()
        sizes = [_size(run, rows, v, o) for v, o in zip(listed, operand.items, strict=True)]
        return operand._replace(items=tuple(sizes))
    if size.scale == "count" and rows.shape is not None and rows.shape.by_step and (size.of_kind("joined") or size.of_kind("steps")):
        return Argument("count", literal=OWN)
    if size.scale == "count" and not size.of_kind("divided") <= rows.of_kind("divided") and not any(map(rows.of_kind, ("parts", "joined"))):
        return Argument("other")  # rows of several samples, which on other ranks are others
    if size.scale == "count" and size.of_kind("multiple") and size.shape is None and (rows.shape is None or rows.shape.axis < 2):
        return Argument(literal=SEVERAL)  # rows of each sample
    return Argument("count") if is_batch_size(run, rows, size) else operand


def _to_fill(run: Interpreter, constant: Value, index: Value, operand: Argument) -> Argument:
    """A constant that is as long as a batch, into whose rows something of each sample goes: rows of the samples themselves."""
    given = [run.trace.values.get(n.args[0], NOTHING) for n in constant.of_kind("sized") if isinstance(n, ast.Call) and n.args]
    listed = [[o.items[0] for o in value.objs if isinstance(o, Tup) and o.items] or [value] for value in given]
    long = bool(given) and all(is_batch_size(run, index, size) for sizes in listed for size in sizes)
    alike = long and operand.scale is None and operand.shape is not None and operand.shape.uniform
    return Argument("sample", operand.shape._replace(axis=0, uniform=False)) if alike and operand.shape else operand


def _are_sizes_or_ones(run: Interpreter, constant: Value, sizes: Sequence[Value]) -> bool:
    """Whether a constant is viewed by sizes each of which may be 1 in place of the batch's: with those of a share, it would fail."""
    only = sizes[0] if len(sizes) == 1 else NOTHING
    each = join([v for o in only.instances() if o.path == "list" for v in entries(run, o)] or [only])
    ones = bool(each.objs) and all(isinstance(o, Lit) and o.value == 1 for o in each.objs)
    return constant.scale is None and each.scale == "count" and ones


def is_batch_size(run: Interpreter, rows: Value, size: Value) -> bool:
    """Whether a size is the number, or the setting, that the loader of some rows was given for its batches; or a rank's share of it."""
    if rows.scale not in ROWS or size.scale is not None:
        return False
    sizes = [run.memory.get((o, "batch_size"), NOTHING) for o in rows.batches() if isinstance(o, New)]
    share = not size.objs and bool(size.of_kind("world"))
    return any(size.origins == given.origins if share else size.objs and size.objs <= given.objs for given in sizes)


def _use(run: Interpreter, operands: list[Argument], tuples: bool = False) -> None:
    """Note that what may be tuples are tensors, and so is what slices of such come from, but for what is given `tuples`."""
    for shape in (operand.shape for operand in operands):
        if shape is not None and shape.several is None:
            run.claims.note("used", shape.base)
        elif shape is not None and shape.several and not tuples and (whole := _sliced(shape.base)) is not None:
            run.claims.note("used", whole)


def _sliced(base: Hashable | None) -> Hashable | None:
    """What the dimensions of `several` are counted from, where `base` stands for those of `several[1:]`; None where it does not."""
    match base:
        case Base(of=(whole, ast.Slice())):
            return whole
    return None


def _still_of(name: str, origins: frozenset[Origin]) -> frozenset[Origin]:
    origins = without(origins, *_LEFT_BEHIND[name]) if name in _LEFT_BEHIND else origins
    return ungraded(without(origins, "forward", "graded")) if name in _UNGRADED else origins


def _is_starred(nodes: Iterable[ast.expr]) -> bool:
    """Whether some of the operands are given by unpacking, so that it is not known how many there are."""
    return any(isinstance(n, ast.Starred) or (isinstance(n, (ast.Tuple, ast.List)) and _is_starred(n.elts)) for n in nodes)


def _are_counted(run: Interpreter, nodes: Sequence[ast.expr]) -> bool:
    """Whether all that is unpacked are tuples of one length, as all that a function is given, lists as they are written, or sizes."""
    if any(isinstance(n, (ast.Tuple, ast.List)) and _is_starred(n.elts) for n in nodes):
        return False
    values = [run.trace.values.get(n.value, NOTHING) for n in nodes if isinstance(n, ast.Starred)]
    lengths = [{_length(run, o) for o in v.objs} if v.objs or v.scale != "count" or v.shape is None else {v.shape.ndim} for v in values]
    return bool(lengths) and all(len(each) == 1 and None not in each for each in lengths)


def _length(run: Interpreter, obj: Obj) -> int | None:
    """How many entries a tuple has, or a list that nothing was put into; None where it is not known."""
    if isinstance(obj, Tup):
        return len(obj.items) if obj.rest is None else None
    written = run.memory.written_out(obj)
    return len(written) if written is not None else None


def binary(run: Interpreter, op: ast.operator, left: Value, right: Value, origins: frozenset[Origin], node: ast.AST) -> Value:
    """`left op right`."""
    name = _OPERATORS.get(type(op))
    if left.scale is None and right.scale is None and left.shape is None and right.shape is None:
        return Value(frozenset(), origins)
    return function(run, name or "", node, [left, right], {}, origins)


def entrywise(run: Interpreter, parts: list[Value], origins: frozenset[Origin], node: ast.AST) -> Value:
    """A comparison, or another function of numbers that is not linear."""
    if all(p.scale is None and p.shape is None for p in parts):
        return Value(frozenset(), origins)
    return function(run, "eq", node, parts, {}, origins)


def made(run: Interpreter, name: str, node: ast.AST, args: list[Value], keywords: dict[str, Value], origins: frozenset[Origin]) -> Value:
    """A tensor made by `zeros(...)`, `rand(...)`, `arange(...)`, of sizes or of numbers that are given."""
    tuples = [a for a in args if _is_listed(a)]
    if name.endswith("_like"):
        return function(run, name, node, args, keywords, origins)
    if any(a.scale in ROWS for a in args) or (name.endswith("Tensor") and (tuples or (len(args) == 1 and not _may_be_size(args[0])))):
        return function(run, "as_tensor", node, args, keywords, origins)
    if name in ("arange", "linspace", "logspace", "eye"):
        return function(run, name, node, args, {}, origins)
    sizes = [value for k, value in keywords.items() if k in ("size", "shape")]
    if not sizes and name in ("randint", "normal", "uniform", "full"):
        sizes = tuples[:1] or args[2:] or args[: name == "full"]
    like = "zeros" if name in ("ones", "zeros") or (name == "full" and all(a.shape is None for a in args)) else "empty"
    sizes = sizes or args
    listed = next((o for v in sizes for o in v.objs if isinstance(o, Tup)), None) if len(sizes) == 1 else None
    given, marks = prefixes.sizes(list(listed.items) if listed is not None else sizes) if name == "zeros" else (sizes, frozenset())
    if marks:
        origins = without(origins, "coupled").union(*(only(v.origins, "coupled") for v in given))
    found = function(run, like, node, given if marks else sizes, {}, origins)
    if name != "zeros" or found.scale != "sample":
        return found
    return Value(found.objs, found.origins | marks | {Origin(prefixes.BLANK)}, found.scale, found.shape)


def _may_be_size(value: Value) -> bool:
    """Whether a value is known to be a number or a size, and no data."""
    return value.scale == "count" or value.shape is not None or any(isinstance(o, Lit) for o in value.objs)


def _is_listed(value: Value) -> bool:
    """Whether a value may be a tuple or list of sizes, or of numbers."""
    return any(isinstance(o, Tup) or getattr(o, "path", "") in ("list", "range") for o in value.objs)


def module(
    run: Interpreter, instance: New, node: ast.AST, args: list[Value], keywords: dict[str, Value], origins: frozenset[Origin]
) -> Value | None:
    """What a module of torch.nn gives; None where there is no row for it."""
    name = instance.path.rpartition(".")[2]
    if name not in rows.MODULES or not instance.path.startswith(("torch.nn.", "einops.layers.torch.")):
        return None
    args = args if name == "Identity" else [*map(as_tensor, args[:1]), *args[1:]]
    operands, named = given(run, args, keywords)
    if uneven([*args, *keywords.values()]):
        return Value(frozenset(), origins, "other")
    if any(v.of_kind(prefixes.RAGGED) for v in (*args, *keywords.values())):
        return Value(frozenset(), origins | {Origin("coupled", node)}, "other")
    _use(run, operands)
    set_up = _set_up_as(run, instance, name)
    known = {k: argument(run, v)._replace(scale=None, shape=None) for k, v in set_up.items()}
    if name in BY_WEIGHT and run.ignores():
        known.setdefault("ignore_index", Argument())
    found = rows.module(name, known, operands, named)
    if found is None:
        return None
    beside = orders.differ([*args, *keywords.values()]) or any(_is_of_batch(run, args, v) for v in set_up.values())
    found, origins = COUPLED if beside else found, orders.kept(name, origins)
    if _is_of_unknown_rows(found, args):
        found = found._replace(scale="other")
    return value_of(run, COUPLED if name != "Identity" and _among_places(operands, named) else found, node, origins)


def _is_of_batch(run: Interpreter, args: Sequence[Value], setting: Value) -> bool:
    """Whether a module is given the size of the batches: `LayerNorm([batch_size, 8])` is one over all samples."""
    listed = [v for o in setting.objs if isinstance(o, Tup) for v in o.items]
    return bool(args) and any(is_batch_size(run, args[0], size) for size in (setting, *listed))


def as_tensor(value: Value) -> Value:
    """What may be a tensor or a container of several, as a function is called with one or the other: the tensor."""
    several = {o for o in value.objs if isinstance(o, Tup) or (isinstance(o, New) and o.path in ("list", "dict"))}
    return value if value.scale is None or not several else Value(value.objs - several, value.origins, value.scale, value.shape)


def synced_norm(run: Interpreter, node: ast.AST, args: list[Value], keywords: dict[str, Value], origins: frozenset[Origin]) -> Value:
    """What batch norm gives whose replicas in a DataParallel share their statistics: what torch's gives."""
    found = rows.module("SyncBatchNorm", {}, *given(run, args, keywords))
    return value_of(run, found or NO_CLAIM, node, origins)


def takes(instance: New, inputs: int, batch: Value) -> bool:
    """Whether a module can be called with so many inputs, of which the first is `batch`.

    To call one of torch.nn with more or fewer than it takes fails, and with a batch that has more or fewer dimensions.
    """
    package, _, name = instance.path.rpartition(".")
    if package != "torch.nn":
        return True
    dims, shape = rows.dimensions(name), batch.shape
    if dims and batch.scale == "sample" and shape is not None and shape.axis == 0:
        alone = () if shape.sure else tuple(n - 1 for n in dims)  # one sample, which has no dimension for others
        if shape.ndim not in (None, *dims, *alone):
            return False
    return inputs == 1 if name in _OF_ONE else inputs > 1 if name.endswith("Loss") else True


def _set_up_as(run: Interpreter, instance: New, name: str) -> dict[str, Value]:
    """What a module was constructed with, and what it was given since; of a stack of layers, how these order their dimensions, too."""
    out = settings(run, instance) | {k: v for k, v in run.memory.of(instance) if k in ("weight", "reduction", "ignore_index")}
    for layer in out.get("0", NOTHING).instances() if name.startswith("Transformer") else ():
        out = {k: v for k, v in settings(run, layer).items() if k == "batch_first"} | out
    return out


def set_up(run: Interpreter, instance: New, args: list[Value], keywords: Mapping[str, Value]) -> None:
    """Remember what a module, or a data set of tensors, is constructed with."""
    named = ((k, v) for k, v in keywords.items() if k != "**" or is_open(run, v))
    for name, value in (*((str(i), value) for i, value in enumerate(args)), *named):
        (only,) = value.objs if len(value.objs) == 1 else (None,)
        if isinstance(only, New) and only.path == "list" and (listed := run.memory.numbered(only)):
            value = Value(frozenset((Tup(tuple(listed)),)), value.origins)
        known = all(isinstance(o, (Lit, Tup)) or (isinstance(o, New) and o.path.startswith("torch.nn.")) for o in value.objs)
        run.memory[instance, f"[={name}]"] = value if known else Value(frozenset(), value.origins, value.scale, value.shape)


def settings(run: Interpreter, instance: New) -> dict[str, Value]:
    """What a module, or a data set of tensors, was constructed with: by name, or by place ("0", "1", ...)."""
    return {name[2:-1]: value for name, value in run.memory.of(instance) if name.startswith("[=")}


def kind_of(run: Interpreter, instance: New) -> Hashable:
    """What a module of torch is, and what it was constructed with, where that is known: modules that have it in common do the same."""
    return instance.path, tuple((k, tuple(str(o.value) for o in v.objs if isinstance(o, Lit))) for k, v in settings(run, instance).items())


def attribute(run: Interpreter, base: Value, name: str, node: ast.AST | None) -> Value | None:
    """An attribute of a tensor that is not simply a part of it; None for the others."""
    if (name in TRANSPOSES or name in ("real", "imag")) and base.scale is not None:
        return function(run, {"H": "T", "mH": "mT"}.get(name, name), node or ast.Pass(), [base], {}, base.origins)
    if name in ("shape", "size"):
        scale: Scale | None = {"sample": "count", "chosen": "sum"}.get(base.scale or "")  # type: ignore[assignment]
        return Value(frozenset(), uniform.lengths(base) | {Origin("sizes")}, scale, argument(run, base).shape if scale else None)
    if name in _OF_SEVERAL and base.shape is not None and base.shape.several:
        falling = base.shape.falling if name == "values" else ""
        return Value(base.objs, base.origins, base.scale, base.shape._replace(several=False, falling=falling))
    return None


def length(run: Interpreter, value: Value, dim: Value, node: ast.AST) -> Value:
    """`x.size(dim)`, `x.shape[dim]`."""
    scales: dict[Scale | None, Scale] = {"count": "sample", "sum": "chosen", "sample": "sample", "chosen": "chosen"}
    if value.scale == "other" and not value.objs and any(isinstance(o, Lit) and o.value == 0 for o in dim.objs):
        return Value(frozenset(), uniform.lengths(value), "other")
    x = Argument(scales.get(value.scale), value.shape or Shape(Base(value)))
    found = rows.size(x, argument(run, dim))
    counts = {Origin("rows")} if x.scale == "chosen" and found.scale == "sum" else frozenset()
    return value_of(run, found, node, graphs.unnumbered(Value(frozenset(), uniform.lengths(value))) | counts)
