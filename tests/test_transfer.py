"""Every transfer rule, run by torch on whole tensors and on shares of them: what it claims of the result is so.

Functions, modules, patterns of einops, indexing and sizes. Rows concatenate to the whole's, averages average to it, totals add up to it,
constants are the same; of what is unknown nothing is asked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import einops
import einops.layers.torch
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import coo_array
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from transfer_samples import (
    EINOPS,
    ENTRIES,
    FUNCTIONAL,
    INDEX,
    LAST,
    LOSSES,
    MODULES,
    POOL,
    SAMPLES,
    SIZE,
    C,
    Call,
    Dim,
    Layer,
    P,
    Q,
    Rows,
    Setting,
    Sum,
    X,
    Y,
    built,
    call,
)
from transfer_variants import BASE, BATCH, Claimed, Refused, Unsuited, Variant, module

from ddpify.placement import rows, transfer
from ddpify.placement.shape import Argument, AtMost, Bound, Result

SHARES = ((6, 6), (4, 4, 4))  # of equal length
UNEQUAL = ((5, 4, 3),)
SHAPE_ONLY = frozenset(
    (
        *rows._RANDOM,
        "empty",
        "empty_like",
        "Tensor",
        "new_empty",
        "new",
        "rand",
        "randn",
        "randint",
        "standard_normal",
        "random_sample",
        "IntTensor",
        "BoolTensor",
        "ByteTensor",
        "HalfTensor",
        "FloatTensor",
        "DoubleTensor",
        "LongTensor",
        "gumbel_softmax",
        "bernoulli",
        "rsample",
        "sample",
        "multinomial",
    )
)
OTHER_ROWS = {"reordered", "parts", "steps"}
STEPS = range(1, 25)  # so many there may be where rows follow one another step by step
CONSTANT = ("linspace", "logspace", "eye")  # no batch has a part in them
Splits = tuple[tuple[int, ...], ...]
EVEN = ("floor_divide",)  # of counts, nothing is taken to be left over
ONE_SEQUENCE = frozenset(  # of two dimensions, these take one sequence, and no batch: nobody's batch is one
    """
        LSTM GRU RNN MultiheadAttention Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer
    """.split()
)


class Spelling(NamedTuple):
    """One way to write an operation: how it runs, what its row says, and what it is tried with."""

    path: str
    function: Callable[..., Any]
    claimed: Claimed
    calls: list[Call]


def holds(bounds: tuple[Bound, ...], ndim: int) -> bool:
    return all(base == BASE and ndim >= least for base, least in bounds)


@functools.cache
def shares(lengths: tuple[int, ...]) -> list[torch.Tensor]:
    return list(torch.arange(BATCH).split(list(lengths)))


@functools.cache
def interleaved(n: int) -> list[torch.Tensor]:
    return [torch.arange(rank, BATCH, n) for rank in range(n)]


def close(one: Any, other: Any) -> bool:
    a, b = (torch.as_tensor(np.asarray(v) if not isinstance(v, torch.Tensor) else v).resolve_conj() for v in (one, other))
    if a.dtype in (torch.bfloat16, torch.float16) or b.dtype in (torch.bfloat16, torch.float16):
        return a.shape == b.shape and torch.allclose(a.double(), b.double(), atol=0.05)
    return a.shape == b.shape and torch.allclose(
        a.double() if not a.is_complex() else torch.view_as_real(a).double(),
        b.double() if not b.is_complex() else torch.view_as_real(b).double(),
        equal_nan=True,
        atol=1e-5,
    )


def sorted_rows(value: torch.Tensor, axis: int) -> torch.Tensor:
    flat = value.double().movedim(axis, 0).flatten(1) if value.dim() > 1 else value.double()[:, None]
    return torch.stack(sorted(flat, key=lambda row: tuple(row.tolist()))) if len(flat) else flat


def check(claim: Result, whole: Any, run: Callable[[torch.Tensor], Any], shape_only: bool, splits: Splits) -> None:
    """Whether what is claimed of an operation is so."""
    if claim.parts:
        for i, part in enumerate(claim.parts):
            check(part, whole[i], lambda r, i=i: run(r)[i], shape_only, splits)  # type: ignore[misc]
        return
    shape = claim.shape
    if shape is not None and shape.several:
        assert isinstance(whole, (tuple, list))
        for i in range(len(whole)):
            check(claim._replace(shape=shape._replace(several=False)), whole[i], lambda r, i=i: run(r)[i], shape_only, splits)  # type: ignore[misc]
        return
    if claim.scale is None and isinstance(whole, (tuple, list)):
        for i in range(len(whole)):
            check(claim, whole[i], lambda r, i=i: run(r)[i], shape_only, splits)  # type: ignore[misc]
        return
    if shape is not None and shape.base is None and claim.scale in ("sample", "chosen", None):
        assert torch.as_tensor(whole).dim() == shape.dims, (torch.as_tensor(whole).shape, shape)
        assert not shape.single or whole.shape[-1] == 1
        assert not shape.front or whole.shape[0] == 1
        assert not shape.second or whole.shape[1] == 1
    if claim.scale in ("sample", "chosen"):
        _check_rows(claim, torch.as_tensor(whole), run, shape_only, splits)
    elif shape_only or "offset" in claim.marks:
        return
    elif claim.scale in ("mean", "weighted", None):
        for parts in SHARES:
            each = [torch.as_tensor(run(p)) for p in shares(parts)]
            if claim.scale == "weighted":
                low, high = (getattr(torch.stack(each), how)(0).values for how in ("min", "max"))
                assert ((low - 1e-9 <= whole) & (whole <= high + 1e-9)).all()
            elif claim.scale is None:
                assert all(close(e, whole) for e in each)
            else:
                assert close(torch.stack(each).mean(0), whole)
    elif claim.scale in ("sum", "count", "total", "largest", "smallest"):
        of_all = {"largest": torch.amax, "smallest": torch.amin}.get(claim.scale, torch.sum)
        for parts in splits:
            each = [torch.as_tensor(run(p)) for p in shares(parts)]
            assert close(of_all(torch.stack(each), 0), whole)


def _check_rows(claim: Result, whole: torch.Tensor, run: Callable[[torch.Tensor], Any], shape_only: bool, splits: Splits) -> None:
    axis = 0 if claim.shape is None else claim.shape.axis
    for parts in splits:
        each = [torch.as_tensor(run(p)) for p in shares(parts)]
        together = torch.cat(each, axis)
        assert together.shape == whole.shape
        if shape_only or (claim.shape is not None and claim.shape.places):
            continue
        if claim.shape is not None and claim.shape.by_step:
            steps = [n for n in STEPS if all(e.shape[axis] % n == 0 for e in each)]
            apart = [torch.cat([e.unflatten(axis, (n, -1)) for e in each], axis + 1) for n in steps]
            assert any(close(a.flatten(axis, axis + 1), whole) for a in apart)
        if close(together, whole):
            continue
        if len(set(parts)) == 1 and claim.scale == "sample":  # of every N-th row
            each = [torch.as_tensor(run(p)) for p in interleaved(len(parts))]
            if not OTHER_ROWS & claim.marks and close(torch.stack(each, axis + 1).flatten(axis, axis + 1), whole):
                continue
        assert close(sorted_rows(together, axis), sorted_rows(whole, axis))
        assert OTHER_ROWS & claim.marks or len(set(parts)) > 1, "rows in another order"


def focal_loss(inputs: torch.Tensor, targets: torch.Tensor, reduction: str = "none") -> torch.Tensor:
    """As torchvision.ops.sigmoid_focal_loss, which is not needed to be installed."""
    each = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    each = (1 - torch.exp(-each)) ** 2 * each
    return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()


def by_row(name: str, particular: Mapping[str, Any]) -> Claimed:
    return lambda args, keywords: rows.function(name, args, keywords, particular)


def packed_and_padded(x: torch.Tensor, batch_first: bool = False) -> Any:
    """A batch of sequences of other lengths, packed and padded again."""
    lengths = [x.shape[1 - (not batch_first)]] * x.shape[0 if batch_first else 1]
    return pad_packed_sequence(pack_padded_sequence(x, torch.tensor(lengths), batch_first), batch_first)


def claimed_of_packed(args: list[Argument], keywords: dict[str, Argument]) -> Result:
    first = args[1] if len(args) > 1 else Argument(literal=False)
    packed = rows.function("pack_padded_sequence", [args[0], Argument(), first], {})
    return rows.function("pad_packed_sequence", [Argument(packed.scale, packed.shape), first], {}) if packed.scale == "sample" else packed


def operands(name: str) -> list[Call]:
    """What a row is tried with."""
    rule = rows.NAMES.get(name)
    by_entry = rule in (transfer.elementwise, transfer.kept, transfer.rounded, transfer.random, transfer.filled)
    return SAMPLES.get(name) or SAMPLES.get(name.rstrip("_")) or LOSSES.get(name) or (ENTRIES if by_entry else POOL)


def distribution(kind: str, *parameters: torch.Tensor | float) -> torch.distributions.Distribution:
    made: torch.distributions.Distribution = getattr(torch.distributions, kind)(*parameters, validate_args=False)
    return made


def density(kind: str, *parameters: torch.Tensor | float) -> torch.Tensor:
    """What tells a distribution from another of its kind: how likely one number is."""
    made = distribution(kind, *parameters)
    return made.log_prob(torch.full(made.batch_shape, 0.5, dtype=torch.float64))  # type: ignore[no-untyped-call, no-any-return]


def divergence(*parameters: torch.Tensor | float) -> torch.Tensor:
    return torch.distributions.kl_divergence(distribution("Normal", *parameters[:2]), distribution("Normal", *parameters[2:]))


def claimed_of_divergence(args: list[Argument], keywords: dict[str, Argument]) -> Result:
    made = [rows.function("Normal", pair, {}, rows.DISTRIBUTIONS) for pair in (args[:2], args[2:])]
    known = [Argument(m.scale, m.shape) for m in made]
    return rows.function("kl_divergence", known, {}, rows.DISTRIBUTIONS)


def distributions(name: str) -> list[Spelling]:
    """A distribution of single numbers, by its parameters, and how far two are from each other."""
    if name == "kl_divergence":
        return [Spelling(name, divergence, claimed_of_divergence, [call(X, P, Y, Q), call(X, P, 0.0, 1.0), call(X, 1.0, LAST, 2.0)])]
    calls = [call(P), call(P, Q), call(X, P), call(LAST, P), call(P, Rows("positive", narrow=True)), call(P, 1.0), call(Sum("mean"), 1.0)]
    return [Spelling(name, functools.partial(density, name), by_row(name, rows.DISTRIBUTIONS), calls)]


def functions(name: str) -> list[Spelling]:
    """How a row's operation is written: as a method, as a function of torch, of torch.nn.functional, or of numpy."""
    calls = operands(name)
    if name in ("log_prob", "cdf", "icdf", "entropy", "rsample", "sample"):
        of_distribution = [call(P), call(P, (3,)), call(P, C((2,)))] if name.endswith("sample") else [call(X), call(X, Y), call(X, LAST)]
        return [Spelling(name, lambda x, *more: getattr(distribution("Normal", x, 1.0), name)(*more), by_row(name, {}), of_distribution)]
    if name in ("pack_padded_sequence", "pad_packed_sequence"):
        return [Spelling(name, packed_and_padded, claimed_of_packed, calls)]
    if name == "pad_sequence":
        return [Spelling(name, lambda x, *more: pad_sequence(list(x), *more), by_row(name, {}), calls)]
    if name in LOSSES or name in rows._POOLS:
        return [Spelling(f"F.{name}", getattr(F, name, focal_loss), by_row(name, rows.FUNCTIONAL), calls)]
    homes = [
        torch.Tensor,
        torch,
        torch.linalg,
        torch.special,
        torch.fft,
        *([np.random] if name in SHAPE_ONLY else []),
        *([F] if name not in FUNCTIONAL else []),
    ]
    claimed = by_row(name, {})
    out: list[Spelling] = []
    for home in homes:
        found = getattr(home, name, None)
        if callable(found):
            out.append(Spelling(f"{home.__name__}.{name}", found, claimed, calls))
        elif found is not None and home is torch.Tensor:
            out.append(Spelling(f"Tensor.{name}", lambda x: getattr(x, name), claimed, calls))
    if name == "from_numpy":
        return [Spelling("torch.from_numpy", lambda x: torch.from_numpy(x.numpy()), claimed, calls)]
    if name in ("toarray", "todense"):
        return [Spelling(f"sparse.{name}", lambda x: getattr(coo_array(x.numpy()), name)(), claimed, calls)]
    if not out and hasattr(np, name):
        of_numpy = getattr(np, name)
        out.append(Spelling(f"numpy.{name}", lambda *a, **k: of_numpy(*a, **k), claimed, calls))
    if hasattr(np.ndarray, name) and not hasattr(torch.Tensor, name) and name != "fill":  # which gives nothing
        out.append(Spelling(f"ndarray.{name}", lambda x, *a, **k: getattr(x.numpy(), name)(*a, **k), claimed, calls))
    if name.endswith("_"):
        out = [s._replace(function=(lambda f: lambda x, *a, **k: f(x.clone(), *a, **k))(s.function)) for s in out]
    return out


def modules(name: str) -> list[Spelling]:
    """A module as it is constructed in several ways: of losses, with what their functions are given by keyword."""
    out: list[Spelling] = []
    for (args, keywords), given in _settings(name):
        of_settings = Variant((args, keywords), 1, 0, ())
        try:
            values = [of_settings.value(a, None) for a in args], {k: of_settings.value(v, None) for k, v in keywords.items()}
            module(name, *values)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        known = {str(i): of_settings.argument(a, False) for i, a in enumerate(args)}
        known |= {k: of_settings.argument(v, False) for k, v in keywords.items()}
        for inner in args:
            known |= {"batch_first": Argument(literal=inner.batch_first)} if isinstance(inner, Layer) else {}
        claimed = functools.partial(_claimed_of_module, name, known)
        out.append(Spelling(f"{name}({args}, {keywords})", functools.partial(_of_module, name, values), claimed, [given]))
    return out


def _settings(name: str) -> list[Setting]:
    if name in MODULES:
        return MODULES[name]
    losses = dict(pair.split(":") for pair in rows._LOSS_MODULES)
    if name in losses:
        return [(call(**how), (args, {})) for args, how in LOSSES[losses[name]]]
    return built([call()], *ENTRIES) if name in dict(pair.split(":") for pair in rows._ACTIVATIONS) else []


def _of_module(name: str, settings: tuple[Any, Any], *args: Any) -> Any:
    return module(name, *settings)(*args)


def _claimed_of_module(name: str, known: dict[str, Argument], args: list[Argument], keywords: dict[str, Argument]) -> Result:
    found = rows.module(name, known, args, keywords)
    assert found is not None
    return found


def indexing() -> list[Spelling]:
    def indexed(x: torch.Tensor, *entries: Any) -> Any:
        return x[entries if len(entries) != 1 else entries[0]]

    return [Spelling("index", indexed, lambda args, _: rows.index(args[0], args[1:]), INDEX)]


def sizes() -> list[Spelling]:
    return [Spelling("size", lambda x, dim: x.shape[dim], lambda args, _: rows.size(args[0], args[1]), SIZE)]


def spellings(kind: str, name: str) -> list[Spelling]:
    """All ways in which an operation that has a row is written."""
    if kind == "function":
        return functions(name)
    if kind == "module":
        return modules(name)
    if kind == "functional":
        return [Spelling(f"F.{name}", getattr(F, name), by_row(name, rows.FUNCTIONAL), FUNCTIONAL.get(name, []))]
    if kind == "distribution":
        return distributions(name)
    if kind == "einops":
        return [Spelling(f"einops.{name}", getattr(einops, name), by_row(name, rows.EINOPS), EINOPS.get(name, []))]
    return indexing() if kind == "index" else sizes()


def variants(calls: list[Call], most: int = 4) -> Iterator[Variant]:
    for given in calls:
        dims = sum(isinstance(a, Dim) for a in (*given[0], *given[1].values()))
        for ndim in range(1, most + 1):
            for axis in range(min(ndim, 2)):
                for chosen in itertools.product(range(-ndim, ndim), repeat=dims):
                    yield Variant(given, ndim, axis, chosen)


def tried(kind: str, name: str) -> tuple[int, list[str]]:
    """How many of its variants make a claim, and the variants whose claim does not hold."""
    claims, wrong = 0, []
    written = spellings(kind, name)
    seen: set[tuple[int, str, int, int, tuple[Any, ...]]] = set()
    for spelling in written:
        common = spelling.calls in (POOL, ENTRIES)
        most = 2 if name == "T" else 5 if "3d" in name else 3 if common or name.startswith("swap") else 4  # torch deprecates .T of others
        unsuited: set[int] = set()
        for variant in variants(spelling.calls, most):
            key = (id(variant.call), "", variant.ndim, variant.axis, tuple(map(repr, variant.filled)))
            if id(variant.call) in unsuited or (common and key in seen):
                continue  # its other spellings are the same
            try:
                claimed, problems = judged(spelling, variant, name)
                claims += claimed
                wrong += problems
                seen.add(key)
            except Unsuited:
                unsuited.add(id(variant.call))
            except Refused:
                continue
    return claims, wrong


def uncounted(claim: Result) -> Result:
    """A claim but for how its dimensions are counted, by which the check of one with known dimensions differs only in asking more."""
    shape = claim.shape._replace(base=None, dims=0) if claim.shape is not None else None
    return claim._replace(shape=shape, parts=tuple(map(uncounted, claim.parts)), needs=(), shows=())


def judged(spelling: Spelling, variant: Variant, name: str) -> tuple[int, list[str]]:
    """How many claims are made of one use, of a tensor whose dimensions are known and of one whose are not, and those that are wrong."""
    claims, wrong, checked = 0, [], []
    run = functools.cache(lambda r: variant.run(spelling.function, r))
    whole = run(None)
    for symbolic in (False, True):
        claim = variant.claim(spelling.claimed, symbolic)
        shown = all(variant.ndim <= n if isinstance(base, AtMost) else n <= variant.ndim for base, n in claim.shows)
        if symbolic and name in ONE_SEQUENCE and not shown:
            continue
        if symbolic and not shown:
            wrong.append(f"{spelling.path} {variant.filled} of {variant.ndim} dims shows {claim.shows}")
        if claim.scale == "other" or not holds(claim.needs, variant.ndim):
            continue
        try:
            if uncounted(claim) not in checked:
                check(claim, whole, run, name in SHAPE_ONLY, SHARES if name in EVEN else (*SHARES, *UNEQUAL))
                checked.append(uncounted(claim))
            claims += claim.scale is not None or name in CONSTANT
        except (AssertionError, RuntimeError, IndexError, ValueError, TypeError) as problem:
            text = f"{spelling.path} {variant.filled} of {variant.ndim} dims, samples at {variant.axis}: {claim} {str(problem)[:90]}"
            wrong.append(text)
    return claims, wrong


@pytest.mark.parametrize("name", ["cuda", "pin_memory"])
def test_what_needs_a_device_keeps_numbers(name: str) -> None:
    assert rows.NAMES[name] is rows.NAMES["cpu"]


ROWS_OF: list[tuple[str, str]] = [
    *(("function", name) for name in sorted(rows.NAMES.keys() - {"cuda", "pin_memory"})),
    *(("functional", name) for name in sorted(rows.FUNCTIONAL)),
    *(("distribution", name) for name in sorted(rows.DISTRIBUTIONS)),
    *(("einops", name) for name in sorted(rows.EINOPS)),
    *(("module", name) for name in sorted(rows.MODULES)),
    *(("index", "index"), ("size", "size")),
]


@pytest.mark.parametrize(("kind", "name"), ROWS_OF, ids=[" ".join(dict.fromkeys(row)) for row in ROWS_OF])
def test_what_a_row_claims_is_so(kind: str, name: str) -> None:
    claims, wrong = tried(kind, name)
    assert wrong[:8] == []
    assert claims > 0, "nothing is claimed of this row's operation as it is tried here: give it operands in transfer_samples.py"
