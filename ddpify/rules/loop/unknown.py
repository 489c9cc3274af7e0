"""What is said of values that no one knows to be the same in every process."""

from __future__ import annotations

from ddpify.facts.model import Value
from ddpify.placement.lattice import PerRank, Unknown
from ddpify.placement.values import CHOICE, CLOCK
from ddpify.rules.base import Alternative
from ddpify.rules.context import Context


def names(context: Context, value: Value) -> list[str]:
    """The functions that a value comes from of which it is not known, or known not to be so, that they give all processes the same."""
    placed = context.placement(value)
    return sorted(placed.why - {CLOCK, CHOICE}) if isinstance(placed, (PerRank, Unknown)) else []


def listed(functions: list[str]) -> str:
    """Functions as a message names them, and lines that are no functions."""
    return " and ".join(name if " " in name else f"`{name}`" for name in functions)


def alternatives(*said: tuple[str, list[str]]) -> tuple[Alternative, ...]:
    """What values may be, as a run is to try it, in this order: each a word, and the functions or lines (`train.py:31`) it is said of."""
    return tuple(Alternative("placements", (of, word)) for word, places in said for of in places)


def followed(functions: list[str]) -> str:
    """Why rank 0 is followed."""
    return f"all ranks use rank 0's value: {listed(functions)} may return a different one on each rank"


def say(functions: list[str]) -> str:
    """How the user can say that functions give all ranks the same."""
    table = f'"{functions[0]}" = "replicate" under [tool.ddpify.placements] in pyproject.toml'
    return f"if it is the same on all ranks, say so: {table}, or `# ddpify: replicate` on this line"
