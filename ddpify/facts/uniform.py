"""Constants whose rows are all the same: as many of them as a rank's batch has samples are those of any share of the batch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, Lit, Origin, Value

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

# All entries of what these give of a constant are one number, and of these where all entries of what they are given are.
_FILLED = frozenset("zeros ones full zeros_like ones_like full_like fill_ zero_ new_zeros new_ones new_full".split())
_STILL_UNIFORM = frozenset(
    "to cuda cpu float double half long int type detach contiguous clone view reshape flatten unsqueeze squeeze expand repeat "
    "resize_ from_numpy astype requires_grad_".split()
)
_UNIFORM_OF_ALL = frozenset("add sub mul div neg".split())


def is_uniform(name: str, args: list[Value]) -> bool:
    """Whether all entries of what a function gives of constants are the same number."""
    if name in _FILLED:
        return True
    of = args[:1] if name in _STILL_UNIFORM else args if name in _UNIFORM_OF_ALL else []
    numbers = [a for a in of if a.objs and all(isinstance(o, Lit) for o in a.objs)]
    return bool(of) and all(a in numbers or (a.shape is not None and a.shape.uniform) for a in of)


def repeats(name: str, node: ast.AST, args: list[Value]) -> frozenset[Origin]:
    """That `x.repeat(n, 1, 1)` has one row n times, as has what each of these rows becomes, or that rows are then told apart again."""
    x, sizes = (args[0], args[1:]) if args else (NOTHING, [])
    if x.of_kind("repeated"):
        mine = x.shape.dims if x.shape is not None and x.shape.base is None else None
        apart = [a.shape for a in sizes if a.scale is None and a.shape is not None and not a.shape.uniform and not a.of_kind("repeated")]
        return frozenset((Origin("displaced", node),)) if any(s.base is None and s.dims == mine for s in apart) else frozenset()
    if name != "repeat" or x.scale is not None or len(sizes) < 2 or x.objs:
        return frozenset()
    once = all(len(s.objs) == 1 and all(isinstance(o, Lit) and o.value == 1 for o in s.objs) for s in sizes[1:])
    one_row = x.shape is None or x.shape.front or (x.shape.base is None and x.shape.dims < len(sizes))
    return frozenset((Origin("repeated", node),)) if once and one_row else frozenset()


def relied_on(constant: Value) -> frozenset[Origin]:
    """The marks of what is claimed as a constant's rows are all the same: it holds where none of what it was made of is written to."""
    return frozenset([Origin("uniform", node) for node in constant.of_kind("sized")])


def written(run: Interpreter, held: Value) -> None:
    """Note that entries of a tensor may differ from here on, by whatever name it is read."""
    if held.scale is None:
        for node in held.of_kind("sized"):
            run.claims.note("written", node)
