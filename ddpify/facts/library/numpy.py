"""Rows of numpy and scipy: functions of arrays that have a placement rule by their name, new arrays, and random numbers."""

from __future__ import annotations

from ddpify.facts import tensors
from ddpify.facts.library.flow import is_literal
from ddpify.facts.library.generic import array_function, computed, drawn, shuffled
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.library.torch import drawn_of_size, of_size
from ddpify.facts.model import Value
from ddpify.placement import rows, shape

_ARRAYS = ("array", "asarray")


def _of_arrays(use: Use) -> Value:
    """A function that is known by its name, or that works on each number by itself; any other one may combine samples."""
    known = use.name in tensors.KNOWN - _OTHERWISE and use.args
    if known and (not use.args[0].objs or use.name in tensors.OF_TUPLES or (use.name in _ARRAYS and _is_list_of_samples(use.args[0]))):
        return array_function(use, rows.LINALG)
    looked_up = _LOOKED_UP.get(use.name)
    alone = looked_up is None or (not any(v.scale for i, v in enumerate(use.args) if i != looked_up) and not use.keywords)
    return computed(use) if use.name in (*_OF_EACH_NUMBER, *_LOOKED_UP) and alone else _combined(computed(use))


def _is_list_of_samples(value: Value) -> bool:
    """Whether a value is a list with an entry for each sample."""
    return value.scale == "sample" and value.shape is not None and value.objs == {value.shape.base}


def _combined(value: Value) -> Value:
    """What may be of several samples."""
    return Value(value.objs, value.origins, "other" if value.scale in shape.ROWS else value.scale, value.shape)


def _special(use: Use) -> Value:
    """A function of each number by itself, or along an axis: along all of them where no axis is given."""
    if use.name not in ("softmax", "log_softmax", "logsumexp"):
        return computed(use)
    return array_function(use) if "axis" in use.keywords else _combined(computed(use))


def _chosen(use: Use) -> Value:
    """`choice(numbers, size)`: so many numbers, each drawn by itself where it may be drawn again."""
    return _combined(drawn(use)) if is_literal(use.argument(2, "replace"), False) else _of_distribution(use)


def _of_distribution(use: Use) -> Value:
    """`binomial(1, 0.5, size)`: so many numbers, each drawn by itself; `multinomial(1, shares, size)`: so many rows of them."""
    size = use.argument(SIZE_AT[use.name], "size")
    others = (v for v in (*use.args, *use.keywords.values()) if v is not size)
    if not (size.scale is not None or size.objs) or any(v.scale is not None for v in others):
        return _combined(drawn(use))
    alike = drawn_of_size(use._replace(path="numpy.random.rand", args=[size], keywords={}))
    rows = alike.shape and alike.shape.resized(1) if use.name in _OF_ROWS else alike.shape
    return Value(alike.objs, alike.origins | use.mixed.origins, alike.scale, rows)


_OTHERWISE = frozenset(("pad",))  # which torch does to the last dimension first
_OF_EACH_NUMBER = frozenset("around asanyarray bool_ cbrt degrees fabs int_ isreal radians rint".split())
_LOOKED_UP = {"digitize": 0, "interp": 0, "isin": 0, "searchsorted": 1}  # where each number is that is looked up in the others
_SIZED = "zeros ones full empty arange linspace logspace eye".split()
_DRAWN_SIZED = "rand randn randint normal uniform standard_normal random_sample".split()
SIZE_AT = {  # which argument of a distribution is how many numbers are drawn
    **dict.fromkeys("random standard_exponential standard_cauchy".split(), 0),
    **dict.fromkeys("choice poisson exponential geometric dirichlet rayleigh chisquare standard_gamma".split(), 1),
    **dict.fromkeys("binomial multinomial beta gamma laplace gumbel logistic lognormal multivariate_normal".split(), 2),
    "triangular": 3,
}
_OF_ROWS = frozenset(("dirichlet", "multinomial", "multivariate_normal"))

ROWS: dict[str, Rule] = {
    "numpy": _of_arrays,
    **{f"numpy.{name}": of_size for name in _SIZED},
    "numpy.random": lambda use: _combined(drawn(use)),
    **{f"numpy.random.{name}": drawn_of_size for name in _DRAWN_SIZED},
    **{f"numpy.random.{name}": _of_distribution for name in SIZE_AT},
    "numpy.random.choice": _chosen,
    "numpy.random.shuffle": shuffled,
    "scipy": lambda use: _combined(computed(use)),
    "scipy.special": _special,
}
