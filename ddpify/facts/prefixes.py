"""The first rows of a batch in the order of numbers of their own, as many as pass a test of these: `h[: sum(n > t for n in lengths)]`.

Which rows these are, each says by its own number, as with a mask. A loop over the steps of a rank's longest sample takes fewer and fewer.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ddpify.facts import operands
from ddpify.facts.model import NOTHING, Lit, New, Tup, Value
from ddpify.facts.origins import Origin, without
from ddpify.placement.shape import EXTREMES, LENGTH, MASK, NUMBERED, ROWS, Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

ROUNDS = "rounds"  # the kind of what counts the rounds of a loop that a rank's own rows end: in each, it is the same on all ranks
FIRST = "prefix"  # the kind of the first rows in an order


def falling(value: Value) -> str:
    """Whether numbers, or a test of them, are in an order in which the samples lie, the largest first."""
    return value.shape.falling if value.shape is not None and value.scale == "sample" else ""


def tested(node: ast.Compare, left: Value, right: Value, found: Value) -> Value:
    """What a comparison gives: of numbers in such an order with one number, whether the first of them are larger."""
    larger = _is_larger(node, left, right)
    if not larger or found.scale != "sample" or found.shape is None:
        return found
    return Value(found.objs, found.origins, found.scale, found.shape._replace(falling=MASK))


def tests_each(run: Interpreter, node: ast.ListComp | ast.GeneratorExp, over: Value) -> bool:
    """Whether a comprehension asks of each of such numbers whether it is larger than one number: `[n > t for n in lengths]`."""
    test, each = node.elt, node.generators[0].target
    if len(node.generators) > 1 or node.generators[0].ifs or not isinstance(test, ast.Compare) or not isinstance(each, ast.Name):
        return False
    left, right = (over if isinstance(p, ast.Name) and p.id == each.id else _now(run, p) for p in (test.left, test.comparators[-1]))
    return _is_larger(test, left, right)


def _is_larger(node: ast.Compare, left: Value, right: Value) -> bool:
    if len(node.ops) > 1 or not isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE)):
        return False
    numbers, bound = (left, right) if isinstance(node.ops[0], (ast.Gt, ast.GtE)) else (right, left)
    return falling(numbers) == NUMBERED and _is_one_number(bound)


def _is_one_number(value: Value) -> bool:
    """Whether a value is one number that no sample has a part in, as far as it is the same on all ranks."""
    literal = bool(value.objs) and all(isinstance(o, Lit) and type(o.value) in (int, float) for o in value.objs)
    counts = not value.objs and bool(value.of_kind("index")) and not value.of_kind("places") and not value.of_kind("drawn")
    return value.scale is None and (literal or counts)


def _now(run: Interpreter, node: ast.expr) -> Value:
    """What an expression was last seen to be: what a name holds."""
    return run.lookup(node.id) if isinstance(node, ast.Name) else run.trace.values.get(node, NOTHING)


def first_of(run: Interpreter, base: Value, entry: ast.expr) -> frozenset[object]:
    """The sort in whose order an entry of an index takes the first rows of `base`, as many as pass a test; none of anything else."""
    if not isinstance(entry, ast.Slice) or entry.lower is not None or entry.step is not None or entry.upper is None:
        return frozenset()
    end = _now(run, entry.upper)
    sorts = end.of_kind("ordered")
    if end.scale != "sum" or end.shape is None or end.shape.falling != LENGTH or not sorts or base.scale not in ROWS or base.objs:
        return frozenset()
    own = base.of_kind("ordered")
    in_order = own == sorts or (not own and bool(base.of_kind(BLANK)))
    some = base.scale == "sample" or base.of_kind(FIRST) == sorts
    return sorts if in_order and some and end.batches() <= base.batches() else frozenset()


def number(over: Value, obj: New, run: Interpreter, node: ast.AST | None) -> Value | None:
    """What counts the rounds of a loop that goes as far as the largest or smallest number of a rank's rows; None of any other."""
    end = run.memory.get((obj, operands.ENDS), NOTHING)
    if end.scale not in EXTREMES:
        return None
    return Value(frozenset(), without(over.origins, "coupled") | {Origin("index", node), Origin(ROUNDS, obj)})


def is_round(run: Interpreter, over: Value) -> bool:
    """Whether a loop has as many rounds as a rank's own rows say."""
    ranges = [o for o in over.instances() if o.path == "range"]
    return bool(ranges) and any(run.memory.get((o, operands.ENDS), NOTHING).scale in EXTREMES for o in ranges)


def after_rounds(node: ast.AST, value: Value, over: Value) -> Value:
    """What a name holds after such a loop, which has bound it anew in each round: what a rank's last round has left."""
    tuples = frozenset(o for o in value.objs if isinstance(o, Tup))
    objs = value.objs - tuples | {o.each(lambda entry: after_rounds(node, entry, over)) for o in tuples}
    if objs and not all(isinstance(o, Lit) for o in value.objs):
        return Value(objs, value.origins, value.scale, value.shape)
    origins = value.origins | {o for o in over.origins if o.kind == "batch"} | {Origin("coupled", node)}
    return Value(frozenset(), origins, "other", value.shape)


def rows(found: Value, sorts: frozenset[object]) -> Value:
    """The first rows in an order, as an index has found them."""
    if not sorts or found.scale != "chosen":
        return found
    marks = {Origin(kind, of) for of in sorts for kind in (FIRST, "ordered")}
    return Value(found.objs, without(found.origins, BLANK) | marks, "chosen", found.shape)


def counted(values: Value) -> Shape | None:
    """That of the number of samples that pass a test, in a list of whether each does; None of any other total."""
    return Shape(None, 0, falling=LENGTH) if falling(values) == MASK else None


# ------------------------------------------------------------------------------------------------ as long as a rank's longest sample

RAGGED = "ragged"  # the kind of what a rank has as long as its own longest sample, along the dimension that it names
ZEROS = "zeros"  # and of which all that no sample reaches is zero
BLANK = "blank"  # the kind of what nothing of a sample was written into yet
_STILL = frozenset("to cuda cpu float double half long detach contiguous clone type type_as".split())


def sizes(given: list[Value]) -> tuple[list[Value], frozenset[Origin]]:
    """The sizes of a tensor, one of which may be the largest number of a rank's rows; then it is marked as one that is as long."""
    own = [i for i, v in enumerate(given) if v.scale in EXTREMES and not v.objs]
    if len(own) != 1 or sum(v.scale == "count" for v in given) != 1:
        return given, frozenset()
    return [NOTHING if i in own else v for i, v in enumerate(given)], frozenset((Origin(RAGGED, own[0]), Origin(ZEROS)))


def is_lost(name: str, args: list[Value], others: list[Value]) -> bool:
    """Whether a function may count, or let samples see, what lies behind the last of a sample's own in a tensor that is longer."""
    given = [v for v in (*args, *others) if v.of_kind(RAGGED)]
    if not given or name in _STILL or not args:
        return bool(given) and not args
    first = args[0]
    if given != [first]:
        return True
    return name != "pack_padded_sequence" and not (name == "sum" and first.of_kind(ZEROS) and _dims(others) == first.of_kind(RAGGED))


def _dims(values: list[Value]) -> frozenset[object]:
    return frozenset(o.value if isinstance(o, Lit) else None for v in values for o in v.objs)


def kept(name: str, origins: frozenset[Origin]) -> frozenset[Origin]:
    """The origins of what a function makes: packed, or added up, it is no longer than a sample is."""
    if name in _STILL:
        return origins
    return without(origins, BLANK, ZEROS, *((RAGGED,) if name in ("pack_padded_sequence", "sum") else ()))


def written_in_step(run: Interpreter, target: ast.Subscript, first: bool) -> bool:
    """Whether what is written is of the samples alone that go as far as a round of the loop: `words[:n, t] = out(h)`."""
    entries = target.slice.elts if isinstance(target.slice, ast.Tuple) else []
    return first and any(_now(run, e).of_kind(ROUNDS) for e in entries[1:])
