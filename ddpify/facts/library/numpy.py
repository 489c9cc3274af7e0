"""Rows of numpy: functions of arrays that have a placement rule by their name, new arrays, and random numbers."""

from __future__ import annotations

from ddpify.facts import tensors
from ddpify.facts.library.generic import array_function, computed, drawn, shuffled
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.library.torch import drawn_of_size, of_size
from ddpify.facts.model import Value


def _of_arrays(use: Use) -> Value:
    known = use.name in tensors.KNOWN and use.args and (not use.args[0].objs or use.name in tensors.OF_TUPLES)
    return array_function(use) if known else computed(use)


_SIZED = "zeros ones full empty arange linspace logspace eye".split()
_DRAWN_SIZED = "rand randn randint normal uniform standard_normal random_sample".split()

ROWS: dict[str, Rule] = {
    "numpy": _of_arrays,
    **{f"numpy.{name}": of_size for name in _SIZED},
    "numpy.random": drawn,
    **{f"numpy.random.{name}": drawn_of_size for name in _DRAWN_SIZED},
    "numpy.random.shuffle": shuffled,
}
