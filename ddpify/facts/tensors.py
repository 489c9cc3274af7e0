"""Tensors in the interpreter: its values as operands of the transfer rules, and what these say as values again."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ddpify.facts import uniform
from ddpify.facts.model import NOTHING, Lit, New, Obj, Origin, Tup, Value, join, just
from ddpify.placement import rows
from ddpify.placement.shape import COUPLED, PLACES, ROWS, UNKNOWN, Argument, Base, Result, Scale, Shape
from ddpify.placement.transfer import Rule

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

# These divide by the weights of the valid targets; other losses by how many entries there are, whatever their weights.
BY_WEIGHT = frozenset(("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "NLLLoss2d"))
_NONE: Mapping[str, Rule] = {}
INTO_CELLS = frozenset("index_add index_add_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_put index_put_ put_".split())
ENDS = "[ends]"  # the key of what a `range` goes to
TURNED_OVER = frozenset(("T", "mT", "H", "mH"))
_MAKES = frozenset(["zeros", "empty", "arange", "linspace", "logspace", "eye", "as_tensor"])
_DETACHING = frozenset(["item", "tolist", "numpy", "detach", "detach_"])
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
}
KNOWN = frozenset(rows.NAMES) | frozenset(f"{name}_" for name in rows.NAMES)
_OF_ANYTHING = frozenset("to cuda cpu float double half long int data copy pin_memory eq ne detach type item index_select".split())
# These leave the numbers of a sample's own rows: its place times as many rows as a sample has, plus one's number among them.
_IN_PLACE = frozenset(
    "tensor as_tensor asarray array from_numpy to cuda cpu long int type type_as detach contiguous view reshape flatten unsqueeze "
    "squeeze expand expand_as mul add".split()
)
_SIZES_ONLY = frozenset(
    "zeros_like ones_like full_like empty_like rand_like randn_like zero_ fill_ numel nelement new new_zeros new_ones new_full "
    "new_empty".split()
)
_OF_SEVERAL = frozenset(("values", "indices"))
_WHOLE = Argument(literal=slice(None))
_BLOCK = Argument("count", literal=slice(None))  # from one multiple of a batch's length to another
_SOME = Argument(literal=slice(1, None))
_ONE = Argument(literal=0)


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


def _is_plain(value: Value) -> bool:
    """Whether a value has nothing of a batch, and no dimensions that are known."""
    if value.scale is not None or value.shape is not None:
        return False
    return not value.objs or all(isinstance(o, Lit) for o in value.objs)


# ------------------------------------------------------------------------------------------------ operands


def argument(run: Interpreter, value: Value) -> Argument:
    """A value as an operand of a transfer rule."""
    items, literal = None, UNKNOWN
    if _is_places(run, value):
        return Argument("sample", Shape(None, 1, places=True), PLACES)
    if len(value.objs) == 1:
        (only,) = value.objs
        if isinstance(only, Lit):
            literal = only.value if value.scale is None else UNKNOWN
        elif isinstance(only, Tup):
            items = tuple(argument(run, i) for i in only.items)
        elif isinstance(only, New) and only.path == "list":
            items = tuple(argument(run, v) for v in _entries(run, only))
            if value.shape is not None and value.shape.base == only:  # one entry for each sample
                return Argument(value.scale, value.shape)
    elif (several := _of_lists(run, value)) is not None:
        return several
    if literal is UNKNOWN and value.shape is not None and value.shape.places:
        literal = PLACES
    shape = value.shape
    if shape is None and value.scale in ROWS:
        shape = Shape(Base(value), sure=False)
    return Argument(value.scale, shape, literal, items)


def _of_lists(run: Interpreter, value: Value) -> Argument | None:
    """What `rows + [more]` holds, where all its entries are rows of the batch: several tensors; None of anything else."""
    lists = [o for o in value.instances() if o.path == "list"]
    entries = [argument(run, v) for o in lists for v in _entries(run, o)] if len(lists) == len(value.objs) else []
    shapes = [e.shape for e in entries if e.shape is not None and e.scale in ROWS]
    if not entries or len(shapes) < len(entries) or len({(e.scale, s.axis) for e, s in zip(entries, shapes, strict=True)}) > 1:
        return None
    common = shapes[0] if all(s == shapes[0] for s in shapes) else Shape(Base(value), 0, shapes[0].axis, all(s.sure for s in shapes))
    return Argument(entries[0].scale, common._replace(several=True))


def _is_places(run: Interpreter, value: Value) -> bool:
    """Whether a value is `range(len(x))`, or a list of its numbers."""
    listed = [run.element(just(o)) for o in value.objs if isinstance(o, New) and o.path in ("list", "range")]
    return bool(listed) and len(listed) == len(value.objs) and all(v.of_kind(PLACES) and v.scale is None and not v.objs for v in listed)


def differentiated(run: Interpreter, args: list[Value], keywords: Mapping[str, Value]) -> tuple[Value, Value]:
    """What `torch.autograd.grad(outputs, inputs)` takes the gradient of, and by what: the one tensor of a list, or the list."""
    given = [*args[:2], *([NOTHING] * (2 - len(args)))]
    of, by = keywords.get("outputs", given[0]), keywords.get("inputs", given[1])
    listed = [v for o in by.objs for v in (o.items if isinstance(o, Tup) else _entries(run, o) if isinstance(o, New) else ())]
    return NOTHING if "grad_outputs" in keywords else of, listed[0] if len(listed) == 1 and len(by.objs) == 1 else by


def _entries(run: Interpreter, made: New) -> list[Value]:
    """The entries of a list: one by one where it was written out, else what all of them are."""
    out: list[Value] = []
    while (made, str(len(out))) in run.memory:
        out.append(run.memory[made, str(len(out))])
    held = run.memory.get((made, "[]"))
    return out if out and (held is None or join(out).scale == held.scale) else [held] if held is not None else []


def given(run: Interpreter, args: Iterable[Value], keywords: Mapping[str, Value]) -> tuple[list[Argument], dict[str, Argument]]:
    """The operands of a call."""
    return [argument(run, a) for a in args], {k: argument(run, v) for k, v in keywords.items()}


def drawn_inside(run: Interpreter, values: Iterable[Value]) -> frozenset[Origin]:
    """Where what lists hold, and lists in them, was drawn."""
    todo, seen, found = [o for v in values for o in v.objs], set[Obj](), set[Origin]()
    while todo:
        obj = todo.pop()
        listed = isinstance(obj, New) and obj.path in ("list", "dict", "set")
        if obj in seen or not (listed or isinstance(obj, Tup)):
            continue
        seen.add(obj)
        for value in obj.items if isinstance(obj, Tup) else [run.element(just(obj))]:
            found |= {o for o in value.origins if o.kind in ("random", "drawn")}
            todo += value.objs
    return frozenset(found)


# ------------------------------------------------------------------------------------------------ results


def value_of(run: Interpreter, found: Result, node: ast.AST, origins: frozenset[Origin], places: bool = False) -> Value:
    """What a transfer rule says, as a value made at `node` of what `origins` tell; `places`: it stands for the places of the samples."""
    for base, least in found.shows:
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
    if found.marks:
        origins |= {Origin("coupled", node) if m == "coupled" else Origin(m, node) for m in found.marks}
    if found.parts:
        return Value(frozenset((Tup(tuple(_value(p, node, origins) for p in found.parts)),)), origins)
    shape = found.shape
    if shape is not None and shape.base is UNKNOWN:
        shape = shape._replace(base=node)
    return Value(frozenset(), origins, found.scale, shape)


def settle(run: Interpreter) -> None:
    """Take back what was claimed of tensors that were not seen to have as many dimensions as that depends on, or to be tuples."""
    open_ = run.claims.unmet()
    if not open_:
        return
    made: dict[Value, Value] = {}

    def settled(value: Value) -> Value:
        if value not in made:
            objs = frozenset(
                Tup(tuple(settled(i) for i in o.items), o.names, settled(o.rest) if o.rest is not None else None)
                if isinstance(o, Tup)
                else o
                for o in value.objs
            )
            held = value.scale is None or open_.isdisjoint(value.origins)
            made[value] = (
                value if held and objs == value.objs else Value(objs, value.origins, value.scale if held else "other", value.shape)
            )
        return made[value]

    trace = run.trace
    trace.values = {node: settled(v) for node, v in trace.values.items()}
    for call in trace.calls:
        call.args, call.keywords = [settled(a) for a in call.args], {k: settled(v) for k, v in call.keywords.items()}
        call.receiver, call.result, call.now = settled(call.receiver), settled(call.result), settled(call.now)
    for store in trace.stores:
        store.value, store.receiver = settled(store.value), settled(store.receiver)
    for key, value in list(run.memory.items()):
        run.memory[key] = settled(value)


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
    origins |= drawn_inside(run, args) | uniform.repeats(name, node, args)
    if name not in (*_MAKES, "repeat") and all(map(_is_plain, args)) and all(map(_is_plain, keywords.values())):
        return Value(frozenset(), _kept_graph(name, origins))
    args = [_scores(args[0]), *args[1:]] if args and name in BY_WEIGHT else args
    operands, named = given(run, args, {k: v for k, v in keywords.items() if k != "**"})
    if uneven([*args, *keywords.values()]):
        return Value(frozenset(), origins, "other")
    if name in ("view", "reshape"):
        operands[1:] = [_size(run, args[0], v, o) for v, o in zip(args[1:], operands[1:], strict=True)]
    if name in BY_WEIGHT and run.ignores():
        named.setdefault("ignore_index", Argument())
    if name not in _OF_ANYTHING:
        _use(run, operands)
    found = rows.function(name, operands, named, particular)
    places = (found.shape is not None and found.shape.places) if name == "arange" else _still_places(name, operands)
    if not places and name not in _SIZES_ONLY and any(o.literal == PLACES for o in (*operands, *named.values())):
        found = COUPLED  # as numbers, places start at 0 on every rank, where those of the whole batch go on
    value = value_of(run, found, node, origins, places)
    shape = value.shape
    if shape is not None and isinstance(node, ast.Call) and _is_starred(node.args):
        shape = shape._replace(base=node, dims=0)
    if name == "repeat" and value.scale is None and any(o.kind == "repeated" and o.of is node for o in origins):
        shape = Shape(None, len(args) - 1)
    if shape is not None and shape.uniform != (alike := value.scale is None and uniform.is_uniform(name, args)):
        shape = shape._replace(uniform=alike)
    if shape is value.shape and name not in _DETACHING:
        return value
    return Value(value.objs, _kept_graph(name, value.origins), value.scale, shape)


def _still_places(name: str, operands: list[Argument]) -> bool:
    """Whether what is computed stands for the places of the samples, or for rows of theirs, each by its number in view of all."""
    others = {o.scale for o in operands if o.literal != PLACES}
    if name not in _IN_PLACE or all(o.literal != PLACES for o in operands):
        return False
    return None not in others if name == "add" else name != "mul" or others.isdisjoint(ROWS)


def _scores(value: Value) -> Value:
    """What a network gives for a batch is its rows, where these were not followed through what was made of the batch for it."""
    lost = value.scale is None and value.of_kind("forward") and value.of_kind("batch") and not value.of_kind("whole")
    return Value(value.objs, value.origins, "sample", Shape(Base(value), sure=False)) if lost else value


def _size(run: Interpreter, rows: Value, size: Value, operand: Argument) -> Argument:
    """A size of what some rows are viewed as, or a list of sizes: the number of samples, where it is their loader's own."""
    if operand.items is not None:
        (made,) = size.objs
        entries = made.items if isinstance(made, Tup) else _entries(run, made) if isinstance(made, New) else ()
        sizes = [_size(run, rows, v, o) for v, o in zip(entries, operand.items, strict=True)]
        return operand._replace(items=tuple(sizes))
    return Argument("count") if _is_batch_size(run, rows, size) else operand


def _is_batch_size(run: Interpreter, rows: Value, size: Value) -> bool:
    """Whether a size is the number, or the setting, that the loader of some rows was given for its batches."""
    told = [run.memory.get((o, "batch_size"), NOTHING).objs for o in rows.batches() if isinstance(o, New)]
    return rows.scale in ROWS and size.scale is None and bool(size.objs) and any(size.objs <= objs for objs in told)


def _use(run: Interpreter, operands: list[Argument]) -> None:
    """Note that what may be tuples are tensors."""
    for operand in operands:
        if operand.shape is not None and operand.shape.several is None:
            run.claims.note("used", operand.shape.base)


def _kept_graph(name: str, origins: frozenset[Origin]) -> frozenset[Origin]:
    return frozenset(o for o in origins if o.kind not in ("forward", "graded")) if name in _DETACHING else origins


def _is_starred(nodes: Iterable[ast.expr]) -> bool:
    """Whether some of the operands are given by unpacking, so that it is not known how many there are."""
    return any(isinstance(n, ast.Starred) or (isinstance(n, (ast.Tuple, ast.List)) and _is_starred(n.elts)) for n in nodes)


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
    sizes = [keywords[k] for k in ("size", "shape") if k in keywords]
    tuples = [a for a in args if any(isinstance(o, Tup) or getattr(o, "path", "") in ("list", "range") for o in a.objs)]
    if name.endswith("_like") or any(a.scale in ROWS for a in args) or (name.endswith("Tensor") and tuples):
        return function(run, name if name.endswith("_like") else "as_tensor", node, args, keywords, origins)
    if name in ("arange", "linspace", "logspace", "eye"):
        return function(run, name, node, args, {}, origins)
    if name in ("randint", "normal", "uniform", "full"):
        sizes = sizes or tuples[:1] or args[2:] or (args[:1] if name == "full" else [])
    one_number = name in ("ones", "zeros") or (name == "full" and all(a.shape is None for a in args))
    return function(run, "zeros" if one_number else "empty", node, sizes or args, {}, origins)


def module(
    run: Interpreter, made: New, node: ast.AST, args: list[Value], keywords: dict[str, Value], origins: frozenset[Origin]
) -> Value | None:
    """What a module of torch.nn gives; None where there is no row for it."""
    name = made.path.rpartition(".")[2]
    if name not in rows.MODULES or not made.path.startswith(("torch.nn.", "einops.layers.torch.")):
        return None
    set_up = settings(run, made) | {k: v for k, v in run.memory.of(made) if k in ("weight", "reduction")}
    for inner in set_up.get("0", NOTHING).instances() if name.startswith("Transformer") else ():  # a layer, in a stack of its like
        set_up = {k: v for k, v in settings(run, inner).items() if k == "batch_first"} | set_up
    args = [_scores(args[0]), *args[1:]] if args and name in BY_WEIGHT else args
    operands, named = given(run, args, {k: v for k, v in keywords.items() if k != "**"})
    if uneven([*args, *keywords.values()]):
        return Value(frozenset(), origins, "other")
    _use(run, operands)
    known = {k: argument(run, v)._replace(scale=None, shape=None) for k, v in set_up.items() if k != "**"}
    if name in BY_WEIGHT and run.ignores():
        known.setdefault("ignore_index", Argument())
    found = rows.module(name, known, operands, named)
    if found is not None and any(o.literal == PLACES for o in (*operands, *named.values())) and name != "Identity":
        found = COUPLED
    return value_of(run, found, node, origins) if found is not None else None


def set_up(run: Interpreter, made: New, args: list[Value], keywords: Mapping[str, Value]) -> None:
    """Remember what a module, or a data set of tensors, is constructed with."""
    for name, value in (*((str(i), value) for i, value in enumerate(args)), *keywords.items()):
        known = all(isinstance(o, (Lit, Tup)) or (isinstance(o, New) and o.path.startswith("torch.nn.")) for o in value.objs)
        run.memory[made, f"[={name}]"] = value if known else Value(frozenset(), value.origins, value.scale, value.shape)


def settings(run: Interpreter, made: New) -> dict[str, Value]:
    """What a module, or a data set of tensors, was constructed with: by name, or by place ("0", "1", ...)."""
    return {name[2:-1]: value for name, value in run.memory.of(made) if name.startswith("[=")}


def kind_of(run: Interpreter, made: New) -> Hashable:
    """What a module of torch is, and what it was constructed with, where that is known: modules that have it in common do the same."""
    return made.path, tuple((k, tuple(str(o.value) for o in v.objs if isinstance(o, Lit))) for k, v in settings(run, made).items())


def attribute(run: Interpreter, base: Value, name: str, node: ast.AST | None) -> Value | None:
    """An attribute of a tensor that is not simply a part of it; None for the others."""
    if name in TURNED_OVER and base.scale is not None:
        return function(run, {"H": "T", "mH": "mT"}.get(name, name), node or ast.Pass(), [base], {}, base.origins)
    if name in ("shape", "size"):
        scale: Scale | None = {"sample": "count", "chosen": "sum"}.get(base.scale or "")  # type: ignore[assignment]
        return Value(frozenset(), base.origins, scale, argument(run, base).shape if scale else None)
    if name in _OF_SEVERAL and base.shape is not None and base.shape.several:
        return Value(base.objs, base.origins, base.scale, base.shape._replace(several=False))
    return None


def length(run: Interpreter, value: Value, dim: Value, node: ast.AST) -> Value:
    """`x.size(dim)`, `x.shape[dim]`."""
    scales: dict[Scale | None, Scale] = {"count": "sample", "sum": "chosen", "sample": "sample", "chosen": "chosen"}
    x = Argument(scales.get(value.scale), value.shape or Shape(Base(value)))
    found = rows.size(x, argument(run, dim))
    return value_of(run, found, node, value.origins)


def part_of_several(run: Interpreter, value: Value, key: object, unpacked: bool = False) -> Value | None:
    """An entry of a tuple of tensors, or of what a loader gives; None of what is a tensor. Nobody unpacks the rows of a batch."""
    shape = value.shape
    if value.scale not in ROWS:
        return None
    if shape is None:
        return Value(frozenset(), value.origins, value.scale, Shape(Base((value, key)), several=None))
    if shape.several:
        return Value(frozenset(), value.origins, value.scale, shape._replace(several=False))
    if shape.several is None:
        if not unpacked:
            run.claims.note("taken", shape.base)
        return Value(
            frozenset(),
            value.origins if unpacked else value.origins | {Origin("entry", shape.base)},
            value.scale,
            _column(run, shape, key) or shape._replace(base=Base((shape.base, key)), dims=0),
        )
    return None


def _column(run: Interpreter, shape: Shape, key: object) -> Shape | None:
    """The dimensions of one of the tensors of a `TensorDataset`, from which a loader takes its batches."""
    if not isinstance(shape.base, New) or not shape.sure or type(key) is not int:
        return None
    held = run.memory.get((shape.base, "dataset"), NOTHING)
    if held.kinds() != {"torch.utils.data.TensorDataset"} or len(held.objs) > 1:
        return None
    (made,) = held.instances()
    column = settings(run, made).get(str(key), NOTHING)
    known = column.shape is not None and column.shape.base is None and column.scale is None
    return column.shape._replace(axis=0, several=False) if known and column.shape is not None else None


def indexed(run: Interpreter, base: Value, index: Value, node: ast.Subscript, origins: frozenset[Origin]) -> Value:
    """`x[...]` of a tensor."""
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    operands = [_index_entry(run, e, index if e is node.slice else None, base.scale in ROWS) for e in entries]
    own = base.scale in ROWS and isinstance(node.slice, ast.Tuple) and any(run.own_length(e) for e in entries)
    x = argument(run, base)
    places = x.literal == PLACES and all(o.literal is None or o.literal == slice(None) for o in operands)
    if base.scale is None and base.of_kind("repeated") and not base.of_kind("displaced"):
        x = x._replace(shape=(x.shape or Shape(Base(base), sure=False))._replace(uniform=True))
    if x.scale is None and x.shape is not None and x.shape.uniform and any(o.literal == PLACES or o.scale == "count" for o in operands):
        origins = origins.union(uniform.relied_on(base))
    value = value_of(run, rows.index(x, operands), node, origins, places)
    return Value(value.objs, value.origins | {Origin("turned", node)}, value.scale, value.shape) if own else value


def item(run: Interpreter, base: Value, index: Value, node: ast.Subscript) -> Value:
    """`x[...]` of what is no known object: a tensor, several of them, what a loader gives, sizes."""
    origins = base.origins | index.origins
    if base.scale in ("count", "sum") and base.shape is not None:
        if not isinstance(node.slice, ast.Slice):
            found = length(run, base, index, node)
            return Value(frozenset(), origins | found.origins, found.scale)
        lower = run.trace.values.get(node.slice.lower, NOTHING) if node.slice.lower is not None else NOTHING
        start = next((o.value for o in lower.objs if isinstance(o, Lit) and type(o.value) is int), 0)
        if start < 0 and node.slice.upper is None and (found := length(run, base, lower, node)).scale is None:  # x.shape[-2:]
            return Value(frozenset(), origins | found.origins)
        behind = start > base.shape.axis
        return Value(frozenset(), origins, None if behind else base.scale, None if behind else _some_sizes(base.shape, start, node))
    if base.scale == "count":
        return Value(frozenset(), origins, "count" if _is_zero(index) else None)
    if isinstance(node.slice, ast.Tuple) and _chooses_rows(node.slice.elts):
        index = run.trace.values.get(node.slice.elts[0], NOTHING)  # `x[order, :]` is `x[order]`
    elif isinstance(node.slice, ast.Tuple):
        return indexed(run, base, index, node, origins)
    if base.scale not in ROWS or isinstance(node.slice, ast.Slice):
        return indexed(run, base, index, node, origins)
    if index.scale is None or index.of_kind("random"):
        literal = next((o.value for o in index.objs if isinstance(o, Lit)), UNKNOWN) if len(index.objs) == 1 else UNKNOWN
        part = part_of_several(run, base, node if literal is UNKNOWN else literal) if index.shape is None and index.scale is None else None
        if part is not None:
            return Value(frozenset(), origins | part.origins, part.scale, part.shape)
        if (index.of_kind("random") or index.of_kind("index")) and not base.of_kind("forward"):
            return Value(frozenset(), origins, base.scale, base.shape)  # rows in an order that was drawn, or one after another
        if index.scale is None and index.of_kind("batch") and not index.objs and index.shape is None:
            return Value(frozenset(), origins | {Origin("turned", node)}, base.scale, base.shape)  # in an order that the batch tells
    return indexed(run, base, index, node, origins)


def _some_sizes(shape: Shape, start: int, node: ast.Subscript) -> Shape:
    """The dimensions of `x.shape[start:end]`, as far as they are known."""
    end = node.slice.upper if isinstance(node.slice, ast.Slice) else None
    try:
        last = ast.literal_eval(end) if end is not None else 0
    except ValueError:
        last = None
    if start < 0 or type(last) is not int or last > 0:
        return Shape(node, 0, max(shape.axis - max(start, 0), 0), shape.sure)
    return shape.resized(last - start, shape.axis - start)


def sizes_joined(run: Interpreter, left: Value, right: Value, node: ast.AST) -> Value | None:
    """The sizes of a tensor of more dimensions: `x.shape + (1,)`, `[len(x)] + [1] * more`; None of anything else."""
    listed = [argument(run, v).items for v in (left, right)]
    known = [items for items in listed if items is not None]
    if len(known) != 1:
        return None
    n, front = len(known[0]), listed[0] is not None
    sizes = right if front else left
    at = next((i for i, item in enumerate(known[0]) if item.scale == "count"), None)
    rest = [item.scale for i, item in enumerate(known[0]) if i != at]
    if any(rest):
        return None
    if at is not None and front and not sizes.objs and sizes.scale is None and sizes.shape is None:  # as many more as nobody knows
        shape = Shape(node, n, at)
    elif at is None and sizes.scale == "count" and sizes.shape is not None:
        shape = sizes.shape.resized(n, sizes.shape.axis + n * front)
    else:
        return None
    return Value(frozenset(), left.origins | right.origins, "count", shape)


def _chooses_rows(entries: Sequence[ast.expr]) -> bool:
    """Whether an index chooses by its first entry and takes all of the dimensions after it."""
    whole = all(isinstance(e, ast.Slice) and e.lower is e.upper is e.step is None for e in entries[1:])
    return bool(entries) and whole and not isinstance(entries[0], (ast.Slice, ast.Constant))


def _index_entry(run: Interpreter, node: ast.expr, value: Value | None, rows: bool) -> Argument:
    if isinstance(node, ast.Slice):
        bounds = [run.trace.values.get(b, NOTHING) if b is not None else None for b in (node.lower, node.upper, node.step)]
        counts = [b for b in bounds[:2] if b is not None and not _is_zero(b)]
        if bounds[2] is None and all(b.scale == "count" and not b.of_kind("fraction") for b in counts):
            return (_BLOCK if rows or bounds[0] not in counts else Argument("count")) if counts else _WHOLE
        return _SOME if rows or all(b.scale is None for b in counts) else Argument("count")
    if isinstance(node, ast.Constant) and node.value is ...:
        return Argument(literal=...)
    value = run.trace.values.get(node, NOTHING) if value is None else value
    if value.scale is None and value.of_kind("index") and not value.objs:
        return _ONE
    if "range" in value.kinds():
        return Argument("sample", Shape(None, 1), PLACES)
    return argument(run, value)


def _is_zero(value: Value) -> bool:
    return any(isinstance(o, Lit) and o.value == 0 for o in value.objs)


def unpacked(run: Interpreter, value: Value, n: int, node: ast.AST) -> list[Value] | None:
    """The parts of `a, b = x`: of the sizes of a tensor, of several tensors, or of one along its first dimension; None of anything else."""
    shape = value.shape
    if value.scale in ("count", "sum") and shape is not None and n > 1:
        if shape.base is not None:
            run.claims.note("shown", shape.base, n - shape.dims)
        lengths = Value(frozenset(), value.origins)
        return [Value(frozenset(), value.origins, value.scale) if i == shape.axis else lengths for i in range(n)]
    if value.scale not in ROWS or value.objs:
        return None
    if shape is None or shape.several is None or shape.several:
        return [part_of_several(run, value, i, unpacked=True) or NOTHING for i in range(n)]
    return [value_of(run, rows.index(argument(run, value), [_ONE]), node, value.origins)] * n
