"""A verdict as a page: the loss curves of both runs, how far apart they are, and who wrote what when."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from ddpify import __version__
from ddpify.rehearse.compare import Pair, between_ranks, differences
from ddpify.rehearse.history import Event, Rank
from ddpify.rehearse.scratch import shown_in
from ddpify.report.curves import Curve, Plot, decades, linear, number, second_ticks
from ddpify.report.verdict import WORDS, clean, conditions, counted, ended, left, summary

if TYPE_CHECKING:
    from ddpify.rehearse.verify import Verdict

_POINTS = 24_000  # of all curves together
_CHARTS = 12
_LOSSES = 4  # of one step that get a chart each; more of them are averaged
_BINS = 800  # of the timeline's lanes together: marks this close are one
_FILES = 300
_LINES = 40  # of a process that are shown, the first and the last


@dataclass(frozen=True)
class Mark:
    """Something on the timeline: where, in percent, what kind of thing, and its text."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True)
class Said:
    """A line that a process printed, in seconds after its run began."""

    at: str
    stream: str
    text: str


@dataclass
class Lane:
    """A process on the timeline. Spans are from-to in percent; `silent` is from its last sign to the end that others made it."""

    name: str
    role: str
    life: tuple[float, float]
    silent: tuple[float, float] | None
    training: tuple[float, float] | None
    text: str
    marks: list[Mark] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    lines: int = 0

    @property
    def left_out(self) -> int:
        """How many lines are not shown."""
        return self.lines - len(self.said)


@dataclass(frozen=True)
class File:
    """A file that was written: how often by each process, in the order of the lanes, and whether a further rank did."""

    path: str
    checkpoint: bool
    times: list[int]
    stray: bool


def render(verdict: Verdict, command: str = "") -> str:
    """The page, self-contained; `command` is what repeats the rehearsal."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from ddpify.resources import template_dir

    loader = FileSystemLoader(template_dir() / "verify")
    environment = Environment(loader=loader, undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pair = verdict.pair
    lanes, seconds = _lanes(verdict, pair) if pair else ([], 0.0)
    losses, left_out = _losses(pair) if pair else ([], 0)
    apart = _apart(pair) if pair else []
    limit = min(max(_POINTS // max(len(losses) + len(apart), 1) // (3 + verdict.setting.nproc), 40), 800)
    files = _files(pair) if pair else []
    page = environment.get_template("page.html").render(
        verdict=verdict,
        version=__version__,
        words={holds: word for holds, (word, _) in WORDS.items()},
        summary=summary(verdict),
        ran=_ran(verdict),
        left=left(verdict),
        began=_began(pair) if pair else "",
        conditions=conditions(verdict),
        command=command,
        losses=[plot.drawn(limit) for plot in losses],
        losses_left_out=left_out,
        apart=[plot.drawn(limit) for plot in apart],
        lanes=lanes,
        seconds=second_ticks(seconds),
        files=files[:_FILES],
        files_left_out=max(len(files) - _FILES, 0),
        ended=list(ended(verdict)),
    )
    return clean(page)


def _ran(verdict: Verdict) -> str:
    setting, (one, other) = verdict.setting, verdict.seconds
    text = f"{verdict.converted} as {setting.nproc} ranks under {verdict.launcher}, against {verdict.original} as one process"
    if verdict.pair is None:
        return text
    steps = len(verdict.pair.single.first.steps)
    precision = "float64" if setting.double else "float32"
    return f"{text}: {counted(steps, 'optimizer step')} in {precision}; the original took {one:.1f} s, the ranks {other:.1f} s"


def _began(pair: Pair) -> str:
    at = min((e["at"] for rank in pair.single.ranks.values() for e in rank.events), default=0.0)
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC" if at else ""


# --- curves ---------------------------------------------------------------------------------------------------------------
def _losses(pair: Pair) -> tuple[list[Plot], int]:
    """A chart for each loss that an optimizer's step follows, and how many charts are left out."""
    single, ranks = pair.single.first, list(pair.ranks.ranks.values())
    total = _steps(pair)
    most: dict[int, int] = {}
    for run in (single, *ranks):
        for step in run.steps:
            if step.losses:
                most[step.optimizer] = max(most.get(step.optimizer, 0), len(step.losses))
    plots = []
    for optimizer, count in sorted(most.items()):
        for position in range(count) if count <= _LOSSES else [None]:
            name = _loss_name(position, count)
            whose = _optimizer_name(optimizer, single, *ranks) if len(most) > 1 else ""
            title = f"{whose}, {name}" if whose and name else whose or name.capitalize() or "Original and ranks"
            plots.append(_loss(title, single, ranks, optimizer, position, total))
    return plots[:_CHARTS], max(len(plots) - _CHARTS, 0)


def _steps(pair: Pair) -> int:
    """The optimizer steps of the process that took most."""
    return max(len(rank.steps) for rank in (pair.single.first, *pair.ranks.ranks.values()))


def _loss(title: str, single: Rank, ranks: list[Rank], optimizer: int, position: int | None, total: int) -> Plot:
    def at(run: Rank, i: int) -> float | None:
        step = run.steps[i] if i < len(run.steps) else None
        if step is None or step.optimizer != optimizer or not step.losses:
            return None
        if position is None:
            return math.fsum(step.losses) / len(step.losses) if all(map(math.isfinite, step.losses)) else math.nan
        return step.losses[position] if position < len(step.losses) else None

    steps = [i for i in range(total) if any(at(run, i) is not None for run in (single, *ranks))]
    own = {rank.number: [at(rank, i) for i in steps] for rank in ranks}
    curves = [Curve(f"rank {n}", "rank", values) for n, values in own.items() if len(own) > 1]
    curves.append(Curve("original", "original", [at(single, i) for i in steps]))
    curves.append(
        Curve("mean over ranks" if len(own) > 1 else "ranks", "ranks", [_mean(values) for values in zip(*own.values(), strict=True)])
    )
    axis = linear([v for curve in curves for v in curve.values])
    return Plot(title, "loss" + (", logarithmic" if axis.log else ""), [i + 1 for i in steps], total, curves, axis)


def _mean(values: tuple[float | None, ...]) -> float | None:
    known = [v for v in values if v is not None]
    if not known:
        return None
    return math.fsum(known) / len(known) if all(map(math.isfinite, known)) else math.nan


def _loss_name(position: int | None, count: int) -> str:
    if position is None:
        return f"mean of up to {count} losses of a step"
    names = ("first", "second", "third", "fourth")
    return f"{names[position]} loss of a step" if count > 1 else ""


def _optimizer_name(optimizer: int, *runs: Rank) -> str:
    event = next((run.optimizers[optimizer] for run in runs if optimizer in run.optimizers), {})
    names = event.get("names", [])
    of = f" of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else ""
    return f"{event.get('type', 'Optimizer')}{of}"


def _apart(pair: Pair) -> list[Plot]:
    """How far the original and rank 0, and the ranks among each other, are apart after each step."""
    first, total = pair.ranks.first, _steps(pair)
    found = [by for by, _ in differences(pair.single.first, first, pair.tolerance)]
    plots = []
    if found:
        curves = [Curve("original to rank 0", "ranks", found)]
        plots.append(_difference("Original and rank 0", curves, pair.tolerance.relative, total))
    tight = between_ranks(pair.tolerance)
    others = [rank for rank in pair.ranks.ranks.values() if rank is not first and rank.steps]
    among = {rank.number: [by for by, _ in differences(first, rank, tight)] for rank in others if first.steps}
    if among:
        length = max(map(len, among.values()))
        curves = [Curve(f"rank 0 to rank {n}", "ranks", [*by, *[None] * (length - len(by))]) for n, by in among.items()]
        plots.append(_difference("Rank 0 and the other ranks", curves, tight.relative, total))
    return plots


def _difference(title: str, curves: list[Curve], tolerance: float, total: int) -> Plot:
    values = [v for curve in curves for v in curve.values]
    steps = list(range(1, len(curves[0].values) + 1))
    rules = [(tolerance, f"tolerance {tolerance:.0e}".replace("e-0", "e-"))]
    known = [v for v in values if v is not None]
    note = "0 after every step." if not any(known) else f"{number(max(known))} at most."
    unit = "largest relative difference of a parameter"
    return Plot(title, unit, steps, total, curves, decades(values, tolerance), rules, note)


# --- who wrote what when --------------------------------------------------------------------------------------------------
def _processes(pair: Pair) -> Iterator[tuple[str, str, list[Event]]]:
    """(name, run, events in order of time) of each process; loader workers are part of their rank."""
    yield "original", "original", _timed(pair.single.first.events)
    if pair.ranks.parent:
        yield "spawning parent", "ranks", _timed(pair.ranks.parent)
    for at, rank in sorted(pair.ranks.ranks.items()):
        yield f"rank {at}", "ranks", _timed(rank.events)


def _timed(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda e: float(e["at"]))


def _lanes(verdict: Verdict, pair: Pair) -> tuple[list[Lane], float]:
    """The timeline, each run counted from its first sign, and its length in seconds."""
    shown = [process for process in _processes(pair) if process[2]]
    start = {run: min(float(events[0]["at"]) for _, r, events in shown if r == run) for _, run, _ in shown}
    ends = {run: max(float(events[-1]["at"]) - start[run] for _, r, events in shown if r == run) for _, run, _ in shown}
    for _, run, events in shown:
        if not any(e["kind"] == "exit" for e in events):
            ends[run] = max(ends[run], verdict.seconds[run == "ranks"])
    total = max(ends.values(), default=0.0) or 1e-3
    bins = min(_BINS // max(len(shown), 1), 250)
    return [_lane(pair, *process, start[process[1]], ends[process[1]], total, bins) for process in shown], total


def _lane(pair: Pair, name: str, run: str, events: list[Event], start: float, ends: float, total: float, bins: int) -> Lane:
    def at(event: Event) -> float:
        return 100 * (float(event["at"]) - start) / total

    exits = any(e["kind"] == "exit" for e in events)
    steps = [e for e in events if e["kind"] == "step"]
    lines = [e for e in events if e["kind"] == "line"]
    writes = [e for e in events if e["kind"] == "write" and e["what"] != "mkdir"]
    number_ = counted(len(steps), "optimizer step")
    end = "came to its end" if exits else "was ended from outside"
    lane = Lane(
        name,
        run,
        (at(events[0]), at(events[-1])),
        None if exits else (at(events[-1]), 100 * ends / total),
        (at(steps[0]), at(steps[-1])) if steps else None,
        f"{number_}, {counted(len(lines), 'line')} printed, {counted(len(writes), 'write')} to files, {end}",
        lines=len(lines),
    )
    lane.marks += _binned(lines, "line", at, lambda e: str(e["text"])[:80], start, bins)
    lane.marks += _binned(writes, "file", at, lambda e: f"{e['what']} {pair.shown(e['path'])}", start, bins)
    group = {"joined": "joins the process group", "left": "leaves the process group"}
    lane.marks += [Mark(at(e), "group", f"{_seconds(e, start)}: {group[e['kind']]}") for e in events if e["kind"] in group]
    lane.marks += [Mark(at(e), "failed", f"{_seconds(e, start)}: {e['error']}") for e in events if e["kind"] == "failed"]
    shown = lines if len(lines) <= _LINES else [*lines[: _LINES // 2], *lines[-_LINES // 2 :]]
    lane.said = [Said(_seconds(e, start), e["stream"], shown_in(e["text"], pair.shown)) for e in shown]
    return lane


def _binned(
    events: list[Event], kind: str, at: Callable[[Event], float], text_of: Callable[[Event], str], start: float, count: int
) -> Iterator[Mark]:
    """Marks; those that would lie on each other are one."""
    bins: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        bins[int(at(event) * count / 100)].append(event)
    for found in bins.values():
        text = f"{_seconds(found[0], start)}: {text_of(found[0])}"
        yield Mark(at(found[0]), kind, text + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""))


def _seconds(event: Event, start: float) -> str:
    return f"{float(event['at']) - start:.2f} s"


def _files(pair: Pair) -> list[File]:
    """The files that were written; folders that a process makes sure of are not shown."""
    processes = [(name, events) for name, _, events in _processes(pair) if events]
    times: dict[str, Counter[str]] = defaultdict(Counter)
    saved: dict[str, Any] = {}
    for name, events in processes:
        for event in events:
            if event["kind"] == "write" and event["what"] != "mkdir":
                times[pair.shown(event["path"])][name] += 1
            elif event["kind"] == "save":
                saved[pair.shown(event["path"])] = True
    usual = ("original", "spawning parent", "rank 0")
    found = [
        File(path, path in saved, [by[name] for name, _ in processes], any(name not in usual for name in by)) for path, by in times.items()
    ]
    return sorted(found, key=lambda file: (not file.stray, file.path))
