"""What operators make of two values."""

from __future__ import annotations

import ast
from typing import Any

from ddpify.facts import library, named, tensor_entries, tensors
from ddpify.facts.interpret.literals import is_whole, joined_texts, literal, marked_as_sized, sources_of
from ddpify.facts.interpret.state import ELEMENT, Interpreter
from ddpify.facts.interpret.texts import as_texts
from ddpify.facts.model import NOTHING, Lit, New, Part, Tup, Value, join, just, origins_of, outermost
from ddpify.facts.operands import entries
from ddpify.facts.origins import Origin, of_kind, without
from ddpify.facts.record import Kind
from ddpify.placement.shape import EXTREMES, Scale, Shape
from ddpify.records import replace


def evaluate_binop(run: Interpreter, node: ast.BinOp) -> Value:
    """`a + b` and the like."""
    left, right = run.expression(node.left), run.expression(node.right)
    value = binary(run, node.op, left, right, node)
    literal = isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)
    lists = [o for v in (left, right) for o in v.instances() if o.path == "list"] if isinstance(node.op, ast.Mult) else []
    if lists and not value.objs and value.scale is None:
        value = _repeated(run, lists, value, node)
    if lists and (rows := _for_each_sample(run, node, lists, value)) is not None:
        return rows
    return marked_as_sized(value, node) if lists and not literal else value  # so many entries


def _for_each_sample(run: Interpreter, node: ast.BinOp, lists: list[New], value: Value) -> Value | None:
    """A list of one constant as often as a batch has samples, `[start] * len(x)`: a row for each; None of anything else."""
    count = run.trace.values.get(node.right if lists[0].node is node.left else node.left, NOTHING)
    held = [entries(run, o) for o in lists]
    if value.scale != "count" or count.scale != "count" or count.shape is not None or len(held) > 1 or len(held[0]) != 1:
        return None
    if held[0][0].scale is not None or not isinstance(lists[0].node, ast.List) or len(lists[0].node.elts) != 1:
        return None
    inner = _depth(run, held[0][0])
    return Value(frozenset(), count.origins, "sample", Shape(None, 1 + inner)) if inner is not None else None


def _depth(run: Interpreter, value: Value) -> int | None:
    """How many lists there are around each number of a list of lists; None where they are not equally many."""
    lists = [o for o in value.instances() if o.path == "list"]
    within = {_depth(run, entry) for o in lists for entry in entries(run, o)}
    return 0 if not lists else 1 + next(iter(within)) if len(within) == 1 and None not in within else None  # type: ignore[operator]


def _repeated(run: Interpreter, lists: list[New], value: Value, node: ast.BinOp) -> Value:
    """A list of the entries of others, as often as a number says."""
    made = run.objects.new("list", node, run.stack)
    run.memory[made, ELEMENT] = join([run.memory.get((o, ELEMENT), NOTHING) for o in lists])
    value = Value(frozenset((made,)), value.origins)
    run.events.append((Kind.MAKE, node, None, value))
    return value


_DATA_SETS = tuple(f"torch.utils.data.{name}" for name in ("Dataset", "TensorDataset", "ConcatDataset", "Subset"))
_NEGLIGIBLE = 1e-4  # what is not larger is added to a divisor lest it be zero
_METHODS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitOr: "or", ast.BitAnd: "and", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_OF_NUMBERS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_SCALAR = Value(shape=Shape(None, 0))


def by_class(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST, kind: str = "") -> Value | None:
    """What an operator makes where classes of the project define it, by `__add__`, or another kind, as `__iadd__`; None where none does."""
    name = f"__{kind}{_METHODS[type(op)]}__"
    given = {o: v for o in left.instances() if o.cls is not None and (v := run.invoke_named(o, name, node, [right])) is not None}
    rest = Value(left.objs - given.keys(), left.origins, left.scale, left.shape)
    if not given or not (rest.objs or rest.origins or rest.scale):
        return join(list(given.values())) if given else None
    return join([*given.values(), binary(run, op, *((right, rest) if kind == "r" else (rest, right)), node)])


def binary(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
    """What an operator makes of two values."""
    for way in (_by_classes, _united, _text, _joined, _concatenated):
        if (made := way(run, op, left, right, node)) is not None:
            return made
    origins = _origins(left, right)
    scalars = (_is_scalar(run, left), _is_scalar(run, right))
    first, second = (_number(v) if scalar else v for scalar, v in zip(scalars, (left, right), strict=True))
    found = tensors.binary(run, op, first, second, origins, node)
    scale, origins = found.scale, found.origins if of_kind(origins, "offset") else without(found.origins, "offset")
    if isinstance(op, ast.Div):
        scale, origins = _divided(run, left, right, scale, origins)
    elif isinstance(op, ast.Mult):
        scale, origins = _multiplied(left, right, scale, origins)
    elif isinstance(op, ast.Add) and isinstance(node, ast.BinOp) and _is_by_zero(node.right) and left.scale in ("mean", "sum", "weighted"):
        scale = left.scale
    if scale in ("mean", "sum", "count", "total", *EXTREMES) and any(v.scale is None and v.of_kind("decided") for v in (left, right)):
        scale = "other"  # a number chosen by a rank's own batch
    if scale in ("sum", "count", "total") and isinstance(op, (ast.Add, ast.Sub)):
        constant, number = (left, right) if left.scale is None else (right, left)
        if not number.of_kind("last") and constant.scale is None and not _is_negligible(constant):
            origins |= {Origin("offset")}  # a total and something more, which totals over ranks would count several times
        if scale == "sum" and constant.scale is None and _of_all(run, constant):
            scale = "other"  # a total and a term that is the same on every rank: no one factor fits
    return Value(frozenset(), origins, scale, _SCALAR.shape if all(scalars) and isinstance(op, _OF_NUMBERS) else found.shape)


def _number(value: Value) -> Value:
    """A number, of which it need not be known what says so: an option of the command line."""
    written_out = all(isinstance(o, Lit) for o in value.objs)
    return value if written_out else Value(frozenset(), value.origins, value.scale, _SCALAR.shape)


def _is_scalar(run: Interpreter, value: Value) -> bool:
    """Whether a value is a number: written out, counted in a loop, of the ranks, or of the command line, or computed from such."""
    held = [o for obj in value.objs for o in named.option(run, obj).objs]
    numbers = bool(held) and value.scale is None and all(isinstance(o, Lit) and type(o.value) in (int, float) for o in held)
    return numbers or is_whole(value) or (not value.objs and value.scale is None and _is_world(value))


def _origins(left: Value, right: Value) -> frozenset[Origin]:
    """Where both operands come from."""
    return library.mixed([left, right], {}).origins | sources_of(left) | sources_of(right)


def _by_classes(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value | None:
    """What the class of either operand makes of it."""
    return by_class(run, op, left, right, node) or by_class(run, op, right, left, node, "r")


def _text(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value | None:
    """The text, or the path, that is put together of texts; None where it is none."""
    texts = [o for o in (literal(left), literal(right)) if isinstance(o, str)]
    if isinstance(op, ast.Add) and (text := joined_texts([left, right]) or (named.text(run, [left, right]) if texts else None)):
        return Value(text, left.origins | right.origins)
    if isinstance(op, ast.Mod) and texts:
        filled = [right, *as_texts(run, right, node)]
        return Value(named.filled_in(run, left), left.origins | origins_of(filled) | sources_of(right), tensors.any_function(filled))
    return Value(left.objs, _origins(left, right)) if isinstance(op, ast.Div) and texts else None


def _one_of_tuples(left: Value, right: Value) -> Value | None:
    """What follows one another of two tuples, either of which may be one of several, as in a loop that adds to one; else None."""
    first, second = ([o for o in v.objs if isinstance(o, Tup)] for v in (left, right))
    if not (first and second) or len(first) + len(second) < len(left.objs) + len(right.objs) or len(first) + len(second) < 3:
        return None
    known = min(len(o.items) for o in first)
    more = [e for o in first for e in o.entries[known:]] + [e for o in second for e in o.entries]
    front = tuple(join(list(each)) for each in zip(*(o.items[:known] for o in first), strict=True))
    return just(Tup(front, (), join(more)) if more else Tup(front))


def _joined(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value | None:
    """The tuple or the list of the entries of two; None where it is none."""
    if not isinstance(op, ast.Add):
        return None
    tuples = [o for v in (left, right) for o in v.objs if isinstance(o, Tup)]
    if len(tuples) == 2 and len(left.objs) == len(right.objs) == 1:
        first, second = tuples
        if first.rest is None:
            return just(Tup(first.items + second.items, (), second.rest))
        return just(Tup(first.items, (), join([first.rest, *second.items])))
    if (either := _one_of_tuples(left, right)) is not None:
        return either
    lists = frozenset(o for v in (left, right) for o in v.instances() if o.path == "list")
    several = tuples or lists or tensor_entries.repeats_constants(node)
    if several and (sizes := tensor_entries.sizes_joined(run, left, right, node)) is not None:
        return sizes
    if len(tuples) == len(left.objs) == 1 and tuples[0] in left.objs and not right.objs and right.scale != "count":
        rest = Value(frozenset(), right.origins, right.scale and "other")  # the entries of a tuple that is not known
        return just(replace(tuples[0], names=(), rest=rest if tuples[0].rest is None else tuples[0].rest | rest))
    held = lists or frozenset(o for v in (left, right) for o in v.instances() if o.path == "torch.nn.ModuleList")
    return Value(held, _origins(left, right)) if held else None


def _concatenated(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value | None:
    """The data set that torch makes of the samples of two; None where neither is one."""
    sets = [*left.instances(), *right.instances()]
    if not isinstance(op, ast.Add) or not sets or not all(run.is_a(o, *_DATA_SETS) for o in sets):
        return None
    made = run.objects.new("torch.utils.data.ConcatDataset", node, run.stack)
    run.memory[made, "dataset"] = left | right
    value = Value(frozenset((made,)), _origins(left, right))
    run.events.append((Kind.MAKE, node, None, value))
    return value


def _divided(
    run: Interpreter, left: Value, right: Value, scale: Scale | None, origins: frozenset[Origin]
) -> tuple[Scale | None, frozenset[Origin]]:
    """The scale and the origins of a quotient, by what its divisor counts."""
    if (left.scale, right.scale) == ("sum", "count") and not right.of_kind("part"):
        origins = without(origins, "part")  # a part's total, of all rows: the parts add up to the average
    if scale == "mean" and right.of_kind("offset"):  # by one sample less, for example: no average of ranks' quotients is that of all
        scale = "other"
    if right.scale is None and _is_batch_size(run, right, left.of_kind("batch")):
        if left.scale == "sum":
            scale = "mean"
        elif left.scale == "count":  # how full a batch is: the same on all ranks
            origins, scale = without(origins, "batch"), None
    if scale == "mean" and right.scale is None and _is_world(right):
        scale = "sum"  # a rank's part of an average over all samples
    return scale, origins


def _is_negligible(value: Value) -> bool:
    """Whether a constant adds nothing to a number of samples or a total, but that it is never zero."""
    constant = literal(value) if not value.origins else None
    return isinstance(constant, (int, float)) and abs(constant) <= _NEGLIGIBLE


def _is_by_zero(node: ast.AST) -> bool:
    """Whether a term is a product by zero, which lets a loss reach parameters and adds nothing: `loss + 0 * output[0]`."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(isinstance(n, ast.Constant) and n.value == 0 for n in (node.left, node.right))
    )


def _multiplied(left: Value, right: Value, scale: Scale | None, origins: frozenset[Origin]) -> tuple[Scale | None, frozenset[Origin]]:
    """The scale and the origins of a product, one factor of which may be the number of ranks."""
    if any(a.scale == "weighted" and b.of_kind("world") for a, b in ((left, right), (right, left))):
        return "mean", origins  # an average by weights, times this rank's part of them
    if scale == "count" and any(v.scale is None and v.of_kind("world") for v in (left, right)):
        return None, without(origins, "batch")  # all ranks' batches have one length: this counts them all
    if scale == "sum" and any(v.scale is None and _is_world(v) for v in (left, right)):
        return "mean", origins  # a rank's total, times the number of ranks
    return scale, origins


def _united(run: Interpreter, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value | None:
    """The set that an operator makes of sets, or of the keys of dicts, or the counter it makes of counters; None of anything else."""
    kinds = {o.path for v in (left, right) for o in v.instances()}
    views = isinstance(op, (ast.BitOr, ast.BitAnd, ast.BitXor)) and kinds == {"list"}
    counters = kinds == {"collections.Counter"} and isinstance(op, (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd))
    if not (views or counters or (isinstance(op, (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)) and "set" in kinds)):
        return None
    made = run.objects.new("collections.Counter" if counters else "set", node, run.stack)
    if counters:
        run.memory[made, ELEMENT] = join([run.memory.get((o, ELEMENT), NOTHING) for v in (left, right) for o in v.instances()])
    else:
        run.memory[made, ELEMENT] = join([run.element(v) for v in ((left,) if isinstance(op, ast.Sub) else (left, right))])
    value = Value(frozenset((made,)), library.mixed([left, right], {}).origins)
    run.events.append((Kind.MAKE, node, None, value))
    return value


def _is_batch_size(run: Interpreter, value: Value, loaders: frozenset[Any]) -> bool:
    """Whether a number is the batch size of one of `loaders`."""
    mine = {*value.objs, *value.of_kind("from")}
    if {o.kind for o in value.origins} == {"share"} and value.of_kind("share") <= loaders:
        return True  # the loader's own number
    batches = [o for loader in loaders for o in run.memory.get((loader, "batch_sampler"), NOTHING).instances()]
    for loader in (*loaders, *batches):
        size = run.memory.get((loader, "batch_size"))
        if size is not None and mine & {*size.objs, *size.of_kind("from")} and bool(size.of_kind("world")) == bool(value.of_kind("world")):
            return True
    return False


def _is_world(value: Value) -> bool:
    """Whether a number is how many ranks there are."""
    return {o.kind for o in value.origins} == {"world"}


def _of_all(run: Interpreter, value: Value) -> bool:
    """Whether a number is that of all ranks' samples, or of the weights, though it is not a constant of the script."""
    if any(value.of_kind(kind) for kind in ("parameters", "whole", "weight")):
        return True
    parts = (o[0] if isinstance(o, tuple) else o for kind in ("method", "from") for o in value.of_kind(kind))
    made_by = (outermost(o) for o in parts if isinstance(o, Part))
    return any(isinstance(o, New) and (run.is_module(o) or o.path.startswith("torch.nn.")) for o in made_by)
