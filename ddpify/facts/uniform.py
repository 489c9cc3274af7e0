"""Constants whose rows are all the same: as many of them as a rank's batch has samples are those of any share of the batch."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, Lit, Tup, Value
from ddpify.facts.origins import NONE, Origin, without
from ddpify.placement.shape import ROWS, Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

# All entries of what these give of a constant are one number, and of these where all entries of what they are given are.
_FILLED = frozenset("zeros ones full zeros_like ones_like full_like fill_ zero_ new_zeros new_ones new_full".split())
_STILL_UNIFORM = frozenset(
    "to cuda cpu float double half long int type detach contiguous clone view reshape flatten unsqueeze squeeze expand repeat "
    "resize_ from_numpy astype requires_grad_".split()
)
_UNIFORM_OF_ALL = frozenset("add sub mul div neg".split())
_PARTS = frozenset("chunk diagonal index_select masked_select narrow select split take unbind unfold".split())
_IN_GRAPH = ("output", "sometimes", "forward", "graded", "parameters", "weight")
_ALIKE_IN_PLACE = _UNIFORM_OF_ALL | frozenset("abs clamp clip exp floor log relu round sigmoid sqrt square tanh".split())


def is_uniform(name: str, args: list[Value]) -> bool:
    """Whether all entries of what a function gives of constants are the same number."""
    if name in _FILLED:
        return True
    of = args[:1] if name in _STILL_UNIFORM else args if name in _UNIFORM_OF_ALL else []
    numbers = [a for a in of if a.objs and all(isinstance(o, Lit) for o in a.objs)]
    return bool(of) and all(a in numbers or (a.shape is not None and a.shape.uniform) for a in of)


def keeps_rows_alike(name: str, tensor: Value, args: list[Value]) -> bool:
    """Whether a method changes all entries of a tensor in place by the same numbers, where its rows are alike: `x.div_(255)`."""
    numbers = all(a.scale is None and a.objs and all(isinstance(o, Lit) for o in a.objs) for a in args)
    return numbers and name.removesuffix("_") in _ALIKE_IN_PLACE and not tensor.of_kind("view")


def drawn_alike(tensor: Value, node: ast.AST, args: list[Value], keywords: Mapping[str, Value]) -> Value:
    """What is drawn for a number of rows that a batch's size gives, as `(n // 2 + 1,)`: any of the rows may be any sample's."""
    (size, *others) = [v for v in (*args, *keywords.values()) if len(v.objs) == 1 and isinstance(next(iter(v.objs)), Tup)] or [NOTHING]
    sizes = [o.items for o in size.objs if isinstance(o, Tup) and o.rest is None]
    if tensor.scale != "other" or others or not sizes or not sizes[0] or sizes[0][0].scale not in ("count", "total", "other"):
        return tensor
    if any(v.scale is not None for v in sizes[0][1:]):
        return tensor
    return Value(frozenset(), tensor.origins | {Origin("repeated", node)}, "chosen", Shape(None, len(sizes[0])))


def taken(base: Value, found: Value, as_many: bool) -> Value:
    """What is taken of rows that may be any sample's: where these are as many as a batch has, each sample's own."""
    if not as_many or base.scale != "chosen" or not base.of_kind("repeated") or base.of_kind("displaced"):
        return found
    return Value(found.objs, found.origins, "sample", found.shape)


def part(of: Value, node: ast.AST | None) -> Value:
    """Some entries of a tensor, as `x[0]`, whose rows were all alike: what changes these in place tells the rows apart.

    Of `x.repeat(n, 1)[:m]` nothing else is left.
    """
    if of.scale is not None or not of.of_kind("repeated") or (isinstance(node, ast.Subscript) and node.value in of.of_kind("repeated")):
        return of
    return Value(of.objs, of.origins | {Origin("view", node)}, None, of.shape)


def repeats(name: str, node: ast.AST, args: list[Value]) -> frozenset[Origin]:
    """That `x.repeat(n, 1, 1)` has one row n times, as has what each of these rows becomes, or that rows then differ again."""
    alike = [a for a in args if a.of_kind("repeated")]
    if not alike:
        made = name == "repeat" and bool(args) and _is_one_row_repeated(args[0], args[1:])
        return frozenset((Origin("repeated", node),)) if made else frozenset()
    others = [a for a in args if a not in alike]
    apart = any(o.scale in ROWS for o in others) or any(_tells_apart(a, others) for a in alike)
    return frozenset(Origin(kind, node) for kind, so in (("view", name in _PARTS), ("displaced", apart)) if so)


def _tells_apart(repeated: Value, others: list[Value]) -> bool:
    """Whether rows that are all the same are put together with a constant of as many dimensions, whose rows may differ."""
    constants = [a.shape for a in others if a.scale is None]
    known = [s.dims for s in constants if s is not None and not s.uniform and s.base is None]
    return repeated.shape is not None and repeated.shape.base is None and repeated.shape.dims in known


def _is_one_row_repeated(x: Value, sizes: list[Value]) -> bool:
    """Whether `x.repeat(n, 1, 1)` is of one row, and repeats nothing else."""
    if x.scale is not None or x.objs or len(sizes) < 2:
        return False
    once = all(len(s.objs) == 1 and all(isinstance(o, Lit) and o.value == 1 for o in s.objs) for s in sizes[1:])
    return once and (x.shape is None or x.shape.front or (x.shape.base is None and x.shape.dims < len(sizes)))


def lengths(of: Value) -> frozenset[Origin]:
    """The origins of the sizes of a tensor: numbers, which have no rows, and of which no gradient goes back to a network."""
    network = frozenset((Origin("agreed"),)) if of.of_kind("forward") else NONE
    return network | without(of.origins, *_IN_GRAPH, *(("repeated", "displaced", "view") if of.of_kind("repeated") else ()))


def relied_on(constant: Value) -> frozenset[Origin]:
    """The marks of what is claimed as a constant's rows are all the same: it holds where none of what it was made of is written to."""
    return frozenset([Origin("uniform", node) for node in constant.of_kind("sized")])


def written(run: Interpreter, held: Value) -> None:
    """Note that entries of a tensor may differ from here on, by whatever name it is read."""
    if held.scale is None:
        for node in held.of_kind("sized"):
            run.claims.note("written", node)
