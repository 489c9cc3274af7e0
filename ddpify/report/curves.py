"""Curves as what an SVG needs of them: axes with ticks, paths, and no more points than a page should carry.

A plot is WIDTH by HEIGHT units, which the page stretches to the width that it has; ticks and rules are given in percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 2000, 1000
_EDGE = 0.08  # of the height, kept for what a scale cannot show
_NOISE = 1e-6  # a range this small, relative to the values, is not stretched over the whole height

Values = Sequence["float | None"]  # None: there is no value at this step


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in percent from the left or from the top, and what stands there."""

    at: float
    label: str


@dataclass(frozen=True)
class Curve:
    """A line of a chart: its name, its role (which the style goes by), its value at each of the chart's steps."""

    name: str
    role: str
    values: Values


@dataclass(frozen=True)
class Drawn:
    """A curve as a path; `dots` marks its points where they are few."""

    name: str
    role: str
    path: str
    dots: str
    first: str
    last: str


@dataclass(frozen=True)
class Chart:
    """A chart, ready to be shown.

    `rules` are lines across it; `numbers` is what a pointer over it is shown; `thinned` says that not all of its steps are drawn.
    """

    title: str
    describes: str
    unit: str
    across: list[Tick]
    up: list[Tick]
    curves: list[Drawn]
    rules: list[Tick]
    numbers: dict[str, object]
    note: str = ""
    thinned: bool = False

    @property
    def margin(self) -> int:
        """How many characters the labels at the left need."""
        return max((len(tick.label) for tick in self.up), default=1)


@dataclass(frozen=True)
class Axis:
    """The vertical axis, its ticks `step` apart. `zero` and `beyond` keep the lower and the upper edge for values that it cannot show."""

    low: float
    high: float
    log: bool = False
    zero: bool = False
    beyond: bool = False
    step: float = 1.0

    def at(self, value: float) -> float:
        """Where a value lies, 0 at the top and 1 at the bottom."""
        if not math.isfinite(value):
            return 0.0
        if self.log and value <= 0:
            return 1.0
        low, high, x = (math.log10(n) for n in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        top, bottom = _EDGE if self.beyond else 0.0, 1 - _EDGE if self.zero else 1.0
        return min(max(bottom - (x - low) / (high - low) * (bottom - top), 0.0), 1.0)

    def ticks(self) -> list[Tick]:
        """Round numbers along the axis, from the bottom."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            every = max(1, math.ceil((last - first) / 6))
            found = [Tick(100 * self.at(10.0**n), _power(n)) for n in range(first, last + 1, every)]
        else:
            numbers = range(round(self.low / self.step), round(self.high / self.step) + 1)
            found = [Tick(100 * self.at(n * self.step), _decimal(n * self.step, self.step)) for n in numbers]
        edges = [Tick(100.0, "0")] if self.zero else []
        return edges + found + ([Tick(0.0, "∞, NaN")] if self.beyond else [])


def linear(values: Values) -> Axis:
    """The axis of values such as losses: logarithmic only where they span several powers of ten."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    beyond = len(finite) < sum(v is not None for v in values)
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low > 0 and high > 1000 * low:
        return Axis(10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)), log=True, beyond=beyond)
    if high - low <= _NOISE * max(abs(low), abs(high)):
        middle, half = (low + high) / 2, 0.1 * max(abs(low), abs(high)) or 1.0
        low, high = middle - half, middle + half
    step = _round_step((high - low) / 4)
    return Axis(step * math.floor(low / step), step * math.ceil(high / step), beyond=beyond, step=step)


def decades(values: Values, marked: float) -> Axis:
    """The logarithmic axis of differences: whole powers of ten with `marked` within, and zero at the lower edge."""
    found = [v for v in values if v is not None]
    positive = [v for v in found if v > 0 and math.isfinite(v)] + [marked]
    low = min(math.floor(math.log10(min(positive))), math.floor(math.log10(marked)) - 3)
    high = max(math.ceil(math.log10(max(positive))), math.ceil(math.log10(marked)) + 1)
    return Axis(10.0**low, 10.0**high, True, any(v <= 0 for v in found), any(not math.isfinite(v) for v in found))


@dataclass
class Plot:
    """A chart to be: its curves over the numbered steps `steps`, of `total` in all."""

    title: str
    unit: str
    steps: Sequence[int]
    total: int
    curves: list[Curve]
    axis: Axis
    rules: list[tuple[float, str]] = field(default_factory=list)
    note: str = ""

    def drawn(self, limit: int) -> Chart:
        """The chart, with at most about `limit` points a curve: of each stretch of steps the lowest and the highest are kept."""
        kept = _sampled(len(self.steps), [c.values for c in self.curves if c.role != "rank"], limit)
        places = [round(WIDTH * across(self.steps[i], self.total)) for i in kept]
        curves = []
        for curve in self.curves:
            values = [curve.values[i] for i in kept]
            present = [v for v in curve.values if v is not None]
            few = len(kept) <= 40 and curve.role != "rank"
            line = _path(places, values, self.axis)
            dots = "".join(f"M{x} {round(HEIGHT * self.axis.at(v))}h0" for x, v in zip(places, values, strict=True) if v is not None)
            curves.append(
                Drawn(curve.name, curve.role, line, dots if few else "", number(present[0]), number(present[-1]))
                if present
                else _nothing(curve)
            )
        numbers = {
            "steps": [self.steps[i] for i in kept],
            "at": [round(100 * x / WIDTH, 2) for x in places],
            "curves": [{"name": c.name, "role": c.role, "values": [_as_text(c.values[i]) for i in kept]} for c in self.curves],
        }
        rules = [Tick(100 * self.axis.at(value), label) for value, label in self.rules]
        up, describes = self.axis.ticks(), _described(self, curves)
        thinned = len(kept) < len(self.steps)
        return Chart(self.title, describes, self.unit, step_ticks(self.total), up, curves, rules, numbers, self.note, thinned)


def across(step: int, total: int) -> float:
    """Where a step lies from left to right, 0 to 1; a single one in the middle."""
    return (step - 1) / (total - 1) if total > 1 else 0.5


def step_ticks(total: int) -> list[Tick]:
    """The first step, and round numbers after it."""
    every = max(1, round(_round_step(total / 5)))
    numbers = [1, *(n for n in range(every, total + 1, every) if n > 1 + every / 2)]
    return [Tick(100 * across(n, total), str(n)) for n in numbers]


def second_ticks(total: float) -> list[Tick]:
    """Round numbers of seconds from 0 on."""
    step = _round_step(max(total, 1e-3) / 5)
    return [Tick(100 * n * step / total if total else 0.0, _decimal(n * step, step)) for n in range(math.floor(total / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A value in a few digits."""
    if not math.isfinite(value):
        return "NaN" if value != value else "∞" if value > 0 else "-∞"
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:.5g}"


def _sampled(count: int, curves: list[Values], limit: int) -> list[int]:
    if count <= limit:
        return list(range(count))
    stretch = math.ceil(count * 2 * max(len(curves), 1) / limit)
    sampled = {0, count - 1}
    for start in range(0, count, stretch):
        for values in curves:
            present = [i for i in range(start, min(start + stretch, count)) if values[i] is not None]
            if present:
                sampled |= {min(present, key=lambda i: _size(values[i])), max(present, key=lambda i: _size(values[i]))}
    return sorted(sampled)


def _size(value: float | None) -> float:
    return math.inf if value is None or value != value else value


def _path(places: Sequence[int], values: Values, axis: Axis) -> str:
    """The line through the points, broken where a value is missing."""
    path, run = "", ""
    for x, value in [*zip(places, values, strict=True), (0, None)]:
        if value is not None:
            run += f" {x} {round(HEIGHT * axis.at(value))}"
        elif run:
            path += f"M{run[1:]}" + ("h0" if run.count(" ") == 2 else "")
            run = ""
    return path


def _nothing(curve: Curve) -> Drawn:
    return Drawn(curve.name, curve.role, "", "", "no value", "no value")


def _as_text(value: float | None) -> str | None:
    return None if value is None else number(value)


def _described(plot: Plot, curves: list[Drawn]) -> str:
    text = "; ".join(f"{c.name}: {c.first}" + (f" at first, {c.last} at last" if c.path and plot.total > 1 else "") for c in curves)
    rules = "".join(f"; a line across at {number(value)}: {label}" for value, label in plot.rules)
    return f"{plot.unit} over {plot.total} optimizer {'step' if plot.total == 1 else 'steps'}. {text}{rules}."


def _round_step(about: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(about)) if about > 0 else 1.0
    return next((n * power for n in (1.0, 2.0, 5.0) if n * power >= about * (1 - 1e-9)), 10 * power)


def _decimal(value: float, step: float) -> str:
    if value and (abs(value) >= 1e6 or step < 1e-6):
        return f"{value:.{max(1, min(8, math.ceil(math.log10(abs(value) / step))))}e}"
    return f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def _power(exponent: int) -> str:
    return (
        f"{10**exponent:g}" if 0 <= exponent <= 4 else f"{10.0**exponent:g}" if -3 <= exponent < 0 else f"1e{exponent:+d}".replace("+", "")
    )
