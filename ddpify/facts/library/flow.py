"""What flows out of a call: of what it was computed, on which ranks it is the same, whether it is in the autograd graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ddpify.facts import tensors
from ddpify.facts.library.paths import PARAMETER
from ddpify.facts.model import Lit, New, Tup, Value, origins_of
from ddpify.facts.origins import Origin, only, ungraded, without
from ddpify.facts.prefixes import BLANK
from ddpify.placement.shape import Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_OF_ONE_RANK = frozenset("random drawn time listing kept process unknown".split())


def mixed(args: Iterable[Value], keywords: dict[str, Value]) -> Value:
    """What an unknown function gives: nothing known, from everything that went in."""
    parts = list(with_entries([*args, *keywords.values()]))
    return Value(frozenset(), without(origins_of(parts), BLANK), tensors.any_function(parts))


def with_entries(values: Iterable[Value]) -> Iterator[Value]:
    """Values, each followed by the entries of the tuples that it may be."""
    for value in values:
        yield value
        for obj in value.objs:
            if isinstance(obj, Tup):
                yield from obj.entries


def agreed(value: Value, shares: frozenset[New] | None = None) -> Value:
    """The value when it is the same on every rank, as far as it comes from `shares` (None: from any loader)."""
    own = only(value.origins, "batch", "decided")
    kept = without(value.origins, *_OF_ONE_RANK) - (own if shares is None else {o for o in own if o.of in shares})
    return Value(value.objs, kept if kept or not value.origins else frozenset((Origin("agreed"),)))


def whole(value: Value) -> Value:
    """All ranks' rows of what each rank has some of: the same on every rank, as is what is computed from them."""
    kept = agreed(value).origins - {Origin("agreed")}
    return Value(frozenset(), kept | {Origin("whole", of) for of in value.of_kind("batch")}, None, value.shape)


def same_rows(batch: Value) -> Value:
    """A batch that all ranks have alike, and what it consists of."""
    parts = (obj.each(same_rows) if isinstance(obj, Tup) else obj for obj in batch.objs)
    return Value(frozenset(parts), whole(batch).origins, None, batch.shape)


def share_of(value: Value) -> Value:
    """This rank's rows of what holds rows of the whole batch, the same on every rank."""
    rows = only(value.origins, "batch", "forward") | {Origin("batch", of) for of in value.of_kind("whole")}
    return Value(frozenset(), rows, "sample", value.shape and value.shape._replace(several=False))  # no tuple has rows


def without_graph(value: Value) -> Value:
    """The value cut off from the autograd graph."""
    return Value(value.objs, ungraded(without(value.origins, "forward", "graded")), value.scale, value.shape)


def gradient_of(value: Value) -> Value:
    """A gradient of what was computed from a batch: of this rank's rows, and of an average over them."""
    return Value(frozenset(), without_graph(value).origins, "other" if value.of_kind("batch") else None)


def drawn(path: str, node: ast.AST) -> frozenset[Origin]:
    """Where a random number comes from: the library whose generator gives it, and the call that draws it."""
    return frozenset((Origin("random", path.partition(".")[0]), Origin("drawn", node)))


def weight(run: Interpreter, node: ast.AST, origins: frozenset[Origin] = frozenset(), shape: Shape | None = None) -> Value:
    """A tensor that gradients are computed for; rows that are alike at first are not when they are moved."""
    shape = shape._replace(uniform=False) if shape is not None else None
    parameter = run.objects.new(PARAMETER, node, run.stack)
    return Value(frozenset((parameter,)), origins | {Origin("weight", parameter)}, None, shape)


def is_literal(value: Value, what: object) -> bool:
    """Whether a value may be the literal `what`: None, True or False."""
    return any(isinstance(o, Lit) and o.value is what for o in value.objs)


def is_index(value: Value, index: int) -> bool:
    """Whether a value may be the whole number `index`."""
    return any(isinstance(o, Lit) and type(o.value) is int and o.value == index for o in value.objs)


def texts_of(value: Value) -> list[str]:
    """The texts that a value may be."""
    return [o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, str)]
