"""Random numbers that do not depend on how many processes there are.

A draw of torch's own generator depends on the seed that was set, on what is drawn and on how often that was drawn before: what else
a script draws in between does not matter. A draw for the rows of the current batch depends on each row's sample and on the step, so that
a sample meets the same noise on whichever rank it is. Draws from a generator of the script's own stay as they are.
"""

from __future__ import annotations

import contextlib
import functools
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ddpify_rehearsal import record, stage
from ddpify_rehearsal.stage import Call

_DRAWS = frozenset(
    """
        rand randn randint randperm normal bernoulli multinomial poisson binomial rand_like randn_like randint_like normal_ uniform_
        bernoulli_ exponential_ random_ cauchy_ geometric_ log_normal_ gumbel_softmax rrelu kaiming_uniform_ kaiming_normal_ trunc_normal_
    """.split()
)
_rows: list[str] = []  # the samples of the current batch
_steps = 0
_trains = False  # something was gone back through
_counts: Counter[Any] = Counter()
_scope: Any = None  # the sampler or the sample on whose account is drawn
_STATES = (  # of the generators, however the script comes to read and set them
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (torch.get_rng_state, torch.set_rng_state),
)
SEED = 3407  # with which the script's generators start; each rank has another


def _states() -> list[Any]:
    return [get() for get, _ in _STATES]


def _restore(states: list[Any]) -> None:
    for (_, put), state in zip(_STATES, states, strict=True):
        put(state)


def batch(samples: list[str]) -> None:
    """The samples of the batch that a loader has just handed out."""
    global _rows
    _rows = samples
    _forget_step()


def trains() -> None:
    """The script goes back through a loss."""
    global _trains
    _trains = True


def stepped() -> None:
    """An optimizer has taken a step."""
    global _steps
    _steps += 1
    _forget_step()


def _forget_step() -> None:
    for key in [k for k in _counts if k[0] == "row"]:
        del _counts[key]


@contextlib.contextmanager
def on_account_of(*key: Any) -> Iterator[None]:
    """Let all that is drawn here depend on `key` alone, Python's and numpy's random numbers, too."""
    global _scope, _counts
    outside, states = (_scope, _counts), _states()
    seed = _seed(key)
    _scope, _counts = key, Counter()
    random.seed(seed), np.random.seed(seed % 2**32), torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        _scope, _counts = outside
        _restore(states)


class Account:
    """The same for code that draws bit by bit, such as a sampler: each `with` goes on where the last one ended."""

    def __init__(self, *key: Any) -> None:
        seed = _seed(key)
        generator = torch.Generator().manual_seed(seed)
        self._key, self._counts = key, Counter[Any]()
        self._states = [random.Random(seed).getstate(), np.random.RandomState(seed).get_state(), generator.get_state()]
        self._outside: list[Any] = []

    def __enter__(self) -> None:
        global _scope, _counts
        self._outside.append((_scope, _counts, _states()))
        _scope, _counts = self._key, self._counts
        _restore(self._states)

    def __exit__(self, *_: object) -> None:
        global _scope, _counts
        self._states = _states()
        _scope, _counts, states = self._outside.pop()
        _restore(states)


def inside() -> bool:
    """Whether what runs draws on the account of a sampler or a sample."""
    return _scope is not None


def _seed(key: Any) -> int:
    return zlib.crc32(repr(key).encode())


def _drawn(call: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name not in _DRAWS or kwargs.get("generator") is not None or any(isinstance(a, torch.Generator) for a in args):
        return call(*args, **kwargs)
    rows = len(_rows)
    if rows and _scope is None and not any(isinstance(a, torch.nn.Parameter) for a in (*args, *kwargs.values())):
        if name == "randperm" and args == (rows,):
            return _permuted(call, rows, kwargs)
        for axis in (0, 1):
            if (parts := _sliced(name, args, kwargs, rows, axis)) is not None:
                return _by_rows(call, name, args, parts, axis)
    if _trains and not rows and _scope is None:
        record.condition("no_rows")
    what = (_scope or torch.initial_seed(), name, _sizes(args, kwargs))
    _counts[what] += 1
    return _seeded((what, _counts[what]), call, *args, **kwargs)


def _sizes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What is drawn: sizes and bounds, not where it lies."""
    given = (*args, *(kwargs[k] for k in sorted(kwargs) if k not in ("device", "out", "dtype", "layout", "pin_memory", "requires_grad")))
    return repr([tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in given if not isinstance(a, (torch.dtype, torch.device))])


def _seeded(key: Any, call: Call, *args: Any, **kwargs: Any) -> Any:
    get, put = _STATES[2]
    state = get()
    torch.default_generator.manual_seed(_seed(key))
    try:
        return call(*args, **kwargs)
    finally:
        put(state)


def _sliced(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], rows: int, axis: int) -> Any:
    """How the arguments become those of one row; None where the draw is not one for each row of the batch, which lie along an axis.

    That may be the second one of three or more: several draws for each row.
    """
    found = False

    def is_of_rows(shape: Any) -> bool:
        return len(shape) > 2 * axis and all(isinstance(n, int) for n in shape) and shape[axis] == rows

    def one(value: Any, size: bool, i: int) -> Any:
        nonlocal found
        if isinstance(value, torch.Tensor) and is_of_rows(value.shape):
            found = True
            return value.narrow(axis, i, 1)
        if size and isinstance(value, (tuple, list)) and is_of_rows(value):
            found = True
            return (*value[:axis], 1, *value[axis + 1 :])
        return value

    sized = name in ("rand", "randn", "randint", "normal", "binomial", "poisson")
    flat = name in ("rand", "randn") and bool(args) and all(isinstance(a, int) for a in args)

    def row(i: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if flat:
            return one(args, True, i), kwargs
        return tuple(one(a, sized, i) for a in args), {k: one(v, k == "size", i) for k, v in kwargs.items()}

    row(0)
    return row if found else None


def _by_rows(call: Call, name: str, args: tuple[Any, ...], parts: Any, axis: int) -> Any:
    record.condition("noise")
    shape = _sizes(*parts(0))
    key = ("row", name, shape)
    _counts[key] += 1
    seen: Counter[str] = Counter()
    drawn = []
    for i, sample in enumerate(_rows):
        seen[sample] += 1
        some, named = parts(i)
        with torch.no_grad() if name.endswith("_") else contextlib.nullcontext():
            drawn.append(_seeded((_steps, *key, _counts[key], sample, seen[sample]), call, *some, **named))
    if name.endswith("_"):
        return args[0]
    out = torch.cat([d.detach() if d.is_leaf else d for d in drawn], axis)
    return out.requires_grad_() if any(d.requires_grad and d.is_leaf for d in drawn) else out


def _permuted(call: Call, rows: int, kwargs: dict[str, Any]) -> torch.Tensor:
    """A permutation of the batch's rows that mixes only rows which one rank has: every `record.RANKS`-th."""
    record.condition("mixing")
    key = ("row", "randperm")
    _counts[key] += 1
    alone = record.world() == 1
    turns = record.RANKS if alone and rows % record.RANKS == 0 else 1
    out = torch.empty(rows, dtype=torch.int64)
    for turn in range(turns):
        rank = turn if alone else max(record.rank(), 0)
        out[turn::turns] = _seeded((_steps, *key, _counts[key], rank), call, rows // turns, **kwargs) * turns + turn
    return out


# --- Python's and numpy's random numbers ----------------------------------------------------------------------------------
_PYTHON = """
    random uniform triangular randint choice randrange sample shuffle choices normalvariate lognormvariate expovariate vonmisesvariate
    gammavariate gauss betavariate paretovariate weibullvariate getrandbits
""".split()
_NUMPY = """
    rand randn randint random random_sample ranf sample normal uniform standard_normal beta binomial choice permutation shuffle exponential
    gamma poisson laplace lognormal multinomial multivariate_normal dirichlet triangular geometric
""".split()
_SIZED = {
    "rand": 0,
    "randn": 0,
    "random": 0,
    "random_sample": 0,
    "ranf": 0,
    "sample": 0,
    "standard_normal": 0,
    "normal": 2,
    "uniform": 2,
    "randint": 2,
}
_seeds: dict[str, Any] = {}


def _keyed(module: Any, name: str, of_seed: Call) -> None:
    """Let a function of a module's hidden generator depend on the module's seed and on how often it was called so."""
    real, where = getattr(module, name), module.__name__

    @functools.wraps(real)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        if _scope is not None:
            return real(*args, **kwargs)
        if where == "numpy.random" and (found := _rows_of_numpy(name, args, kwargs, of_seed)) is not None:
            return found
        if _trains and not _rows:
            record.condition("no_rows")
        sizes = [len(a) if hasattr(a, "__len__") and not isinstance(a, tuple) else a for a in (*args, *kwargs.values())]
        what = (where, _seeds[where], name, repr(sizes))
        _counts[what] += 1
        return getattr(of_seed(_seed((what, _counts[what]))), name)(*args, **kwargs)

    setattr(module, name, drawn)


def _rows_of_numpy(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], of_seed: Call) -> Any:
    """numpy's numbers for the rows of the batch; None where it is not asked for such."""
    at = _SIZED.get(name)
    if at is None or not _rows:
        return None
    several = name in ("rand", "randn")
    size = args if several else kwargs.get("size", args[at] if len(args) > at else None)
    shape = (size,) if isinstance(size, (int, np.integer)) else tuple(size) if isinstance(size, (tuple, list)) else ()
    if not shape or any(not isinstance(n, (int, np.integer)) for n in shape) or shape[0] != len(_rows):
        return None
    record.condition("noise")
    rest = () if several else tuple(args[:at])
    named = {k: v for k, v in kwargs.items() if k != "size"}
    key = ("row", name, repr((shape[1:], rest, named)))
    _counts[key] += 1
    seen: Counter[str] = Counter()
    drawn = []
    for sample in _rows:
        seen[sample] += 1
        draw = getattr(of_seed(_seed((_steps, *key, _counts[key], sample, seen[sample]))), name)
        drawn.append(draw(1, *shape[1:]) if several else draw(*rest, size=(1, *shape[1:]), **named))
    return np.concatenate(drawn)


def _key_modules() -> None:
    for module, names, of_seed in ((random, _PYTHON, random.Random), (np.random, _NUMPY, np.random.RandomState)):
        for name in names:
            if hasattr(module, name):
                _keyed(module, name, of_seed)
        _remember_seed(module)
    _keep_state(random, "getstate", "setstate")
    _keep_state(np.random, "get_state", "set_state")


def _remember_seed(module: Any) -> None:
    seed, where = module.seed, module.__name__

    @functools.wraps(seed)
    def seeded(*args: Any, **kwargs: Any) -> Any:
        if _scope is None:
            _seeds[where] = repr((args, kwargs)) if args or kwargs else None
            _recount(where, {})
        return seed(*args, **kwargs)

    module.seed = seeded


class _State(tuple[Any, ...]):
    """The state of a module's generator as a script keeps it, or hands it to another rank, with what its numbers depend on here."""

    drawn: tuple[Any, dict[Any, int]]


def _keep_state(module: Any, get: str, put: str) -> None:
    """Let the state of a module's hidden generator hold what its numbers depend on."""
    real_get, real_put, where = getattr(module, get), getattr(module, put), module.__name__

    def state(*args: Any, **kwargs: Any) -> Any:
        real = real_get(*args, **kwargs)
        if _scope is not None or not isinstance(real, tuple):
            return real
        kept = _State(real)
        kept.drawn = _seeds[where], {k: n for k, n in _counts.items() if k[0] == where}
        return kept

    def set_state(state: Any) -> None:
        real_put(state)
        if _scope is None and isinstance(state, _State):
            _seeds[where], counts = state.drawn
            _recount(where, counts)

    setattr(module, get, functools.wraps(real_get)(state))
    setattr(module, put, functools.wraps(real_put)(set_state))


def _keep_torch_state() -> None:
    """The same for torch's own generator, whose seed is part of its state."""
    get, put = torch.get_rng_state, torch.set_rng_state

    def state() -> torch.Tensor:
        kept = get()
        kept.__dict__["_rehearsed_drawn"] = {k: n for k, n in _counts.items() if k[0] == torch.initial_seed()}
        return kept

    def set_state(new_state: torch.Tensor) -> None:
        put(new_state)
        if _scope is None and (counts := new_state.__dict__.get("_rehearsed_drawn")) is not None:
            _recount(torch.initial_seed(), counts)

    torch.get_rng_state = torch.random.get_rng_state = state
    torch.set_rng_state = torch.random.set_rng_state = set_state


def _recount(where: Any, counts: dict[Any, int]) -> None:
    """What was drawn of a generator so far is what is given."""
    for key in [k for k in _counts if k[0] == where]:
        del _counts[key]
    _counts.update(counts)


_manual_seed = torch.manual_seed


def _reseeded(seed: Any) -> Any:
    generator = _manual_seed(seed)
    _recount(generator.initial_seed(), {})
    return generator


def install() -> None:
    """Seed this process as its rank, and take hold of what is drawn."""
    own = SEED + 1000 * max(record.rank(), 0)
    _key_modules()
    random.seed(own), np.random.seed(own), torch.manual_seed(own)
    torch.manual_seed = torch.random.manual_seed = _reseeded
    _keep_torch_state()
    stage.around(_drawn)
