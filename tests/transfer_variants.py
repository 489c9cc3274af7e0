"""Operands of transfer rules, as torch gets them and as a rule does, and the modules of torch and einops that are tried."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import einops.layers.torch
import torch
from transfer_samples import SIZES, Block, Call, Constant, Dim, Layer, NoWeight, Places, Rows, Size, Sum

from ddpify.placement.shape import PLACES, Argument, Result, Shape

torch.set_num_threads(1)
BATCH = 12
WEIGHTS = torch.tensor([0, 0, 0, 0, *range(1, 9)], dtype=torch.float64)  # the first of three ranks has none
BASE = "a tensor"  # whose number of dimensions is not known
Claimed = Callable[[list[Argument], dict[str, Argument]], Result]


def module(name: str, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> torch.nn.Module:
    home = einops.layers.torch if hasattr(einops.layers.torch, name) else torch.nn
    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a traceback for each kind of device that is not there
    made: torch.nn.Module = getattr(home, name)(*args, **keywords)
    return made.double().eval()


class Refused(Exception):
    """These operands do not fit."""


class Unsuited(Refused):
    """Nor do others of their kind."""


def generator(*seed: object) -> torch.Generator:
    return torch.Generator().manual_seed(sum(ord(c) * (i + 1) for i, c in enumerate(repr(seed))))


@functools.cache
def tensor(kind: str, sizes: tuple[int, ...], seed: object = 0) -> torch.Tensor:
    drawn = torch.rand(sizes, generator=generator(kind, sizes, seed), dtype=torch.float64)
    if kind == "bool":
        return drawn > 0.4
    if kind in ("long", "class", "index", "class-list"):
        return (drawn * 4).long()
    if kind in ("four", "two", "label"):
        return (drawn * 4).long() + 1 if kind == "label" else torch.full(sizes, 4 if kind == "four" else 2)
    if kind == "sign":
        return (drawn > 0.5).double() * 2 - 1
    if kind == "covariance":
        return drawn @ drawn.transpose(-1, -2) + torch.eye(sizes[-2], dtype=torch.float64)
    if kind == "sorted":
        return drawn.sort().values * 4 - 2
    if kind == "complex":
        return torch.complex(drawn, 1 - drawn)
    return drawn * 4 - 2 if kind in ("float", "chosen") else drawn + 0.5 if kind == "positive" else drawn


class Variant:
    """A call with its operands made: of so many dimensions, with the samples along `axis`, from and back dimensions `dims`."""

    def __init__(self, call: Call, ndim: int, axis: int, dims: tuple[int, ...]) -> None:
        self.call, self.ndim, self.axis = call, ndim, axis
        left = list(dims)
        self.filled = [[self.fill(a, left) for a in call[0]], {k: self.fill(a, left) for k, a in call[1].items()}]

    def fill(self, given: Any, dims: list[int]) -> Any:
        if isinstance(given, Dim):
            return dims.pop(0)
        return tuple(self.fill(g, dims) for g in given) if isinstance(given, tuple) else given

    def sizes(self, given: Rows) -> tuple[tuple[int, ...], int]:
        """The sizes of a tensor with rows of a batch, and which of them is that of the samples."""
        if given.flat:
            return (BATCH,), 0
        ndim = self.ndim + given.more
        axis = self.axis if given.axis is None else given.axis
        if given.kind == "class":
            ndim -= 1
            axis = axis if axis == 0 else axis - 1
        if not 0 <= axis < ndim:
            raise Refused
        sizes = list(SIZES[: ndim - 1])
        sizes.insert(axis, BATCH)
        if given.kind == "class" and len(sizes) > 1:
            sizes = [n for i, n in enumerate(self.sizes(Rows(axis=given.axis))[0]) if i != 1]
        if given.swapped:
            if ndim < 2:
                raise Refused
            sizes[-1], sizes[-2] = sizes[-2], sizes[-1]
            axis = ndim - 2 if axis == ndim - 1 else ndim - 1 if axis == ndim - 2 else axis
        if given.narrow or given.wide:
            if axis == ndim - 1:
                raise Refused
            sizes[-1] = given.wide or 1
        if given.kind == "affine":
            sizes = [BATCH, 2, 3]
        if given.kind == "covariance" and (ndim < 3 or axis > ndim - 3):
            raise Refused
        if given.kind == "covariance":
            sizes[-1] = sizes[-2]
        return tuple(sizes), axis

    def value(self, given: Any, rows_of: torch.Tensor | None) -> Any:
        """An operand as torch gets it: the whole's, or that of some rows."""
        if isinstance(given, Rows):
            sizes, axis = self.sizes(given)
            whole = tensor(given.kind, sizes, given.seed)
            mine = whole.clone() if rows_of is None else whole.index_select(axis, rows_of)
            if given.twice:
                mine = torch.cat([mine, mine + 1], axis)
            mine = mine[None] if given.leading else mine
            return mine[mine.select(1, 0) > 0 if mine.dim() > 1 else mine > 0] if given.kind == "chosen" and axis == 0 else mine
        if isinstance(given, Constant):
            sizes = tuple(self.sizes(Rows())[0][n] if n < 0 else n for n in given.sizes)
            if any(n < -self.ndim or (n < 0 and self.ndim + n == self.axis) for n in given.sizes):
                raise Refused
            return tensor(given.kind, sizes)
        if isinstance(given, Size):
            return BATCH if rows_of is None else len(rows_of)
        if isinstance(given, Block):
            n = BATCH if rows_of is None else len(rows_of)
            return slice(given.start * n, given.end if given.end is None else given.end * n)
        if isinstance(given, Places):
            return torch.arange(BATCH if rows_of is None else len(rows_of)).view(-1, *[1] * given.more)
        if isinstance(given, Layer):
            return module(given.name, given.args, {"batch_first": given.batch_first})
        if isinstance(given, Sum):
            x = tensor("long" if given.scale == "sum" else "positive", (BATCH,) if given.one else (BATCH, 3)).double()
            x, weights = (x, WEIGHTS) if rows_of is None else (x[rows_of], WEIGHTS[rows_of])
            return x.sum(0) if given.scale == "sum" else x.mean(0) if given.scale == "mean" else weights @ x / weights.sum()
        if isinstance(given, NoWeight):
            return (WEIGHTS if rows_of is None else WEIGHTS[rows_of]).sum() == 0
        if isinstance(given, tuple):
            return tuple(self.value(g, rows_of) for g in given)
        return given

    def argument(self, given: Any, symbolic: bool) -> Argument:
        """An operand as the rule gets it."""
        if isinstance(given, Rows):
            sizes, axis = self.sizes(given)
            single = sizes[-1] == 1
            shape = Shape(None, len(sizes), axis, True, single)
            if symbolic and not given.flat:
                shape = Shape(BASE, len(sizes) - self.ndim, axis)
            if given.leading:
                shape = shape._replace(dims=shape.dims + 1, axis=shape.axis + 1, front=True)
            return Argument("chosen" if given.kind == "chosen" else "sample", shape)
        if isinstance(given, Constant):
            return Argument(None, Shape(None, len(given.sizes), uniform=given.kind in ("four", "two")))
        if isinstance(given, Size):
            return Argument("count")
        if isinstance(given, Sum):
            return Argument(given.scale, Shape(None, 0 if given.one else 1))
        if isinstance(given, Block):
            return Argument("count", literal=slice(None))
        if isinstance(given, NoWeight):
            return Argument("other")
        if isinstance(given, Places):
            return Argument("sample", Shape(None, 1 + given.more), PLACES)
        if isinstance(given, Layer):
            return Argument()
        if isinstance(given, tuple):
            return Argument(items=tuple(self.argument(g, symbolic) for g in given))
        return Argument(literal=given)

    def run(self, function: Callable[..., Any], rows_of: torch.Tensor | None) -> Any:
        args, keywords = self.filled
        torch.default_generator.manual_seed(0)
        try:
            return function(*(self.value(a, rows_of) for a in args), **{k: self.value(v, rows_of) for k, v in keywords.items()})
        except Refused:
            raise
        except TypeError as problem:
            raise Unsuited from problem
        except Exception as problem:
            raise Refused from problem

    def claim(self, claimed: Claimed, symbolic: bool) -> Result:
        args, keywords = self.filled
        return claimed([self.argument(a, symbolic) for a in args], {k: self.argument(v, symbolic) for k, v in keywords.items()})
