"""The properties of a right conversion, one row each, as two histories show them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ddpify.rehearse.history import Digest, Event, History, Rank

_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may be apart, relative to their size; `floor` is the size, relative to all parameters, that counts at least."""

    relative: float
    floor: float
    printed: float

    @property
    def exact(self) -> bool:
        """Whether it is that of float64."""
        return self is DOUBLE


DOUBLE = Tolerance(1e-6, 1e-5, 1e-6)
SINGLE = Tolerance(5e-4, 1.0, 1e-3)


@dataclass(frozen=True)
class Row:
    """A property: whether it holds (None: nothing was seen of it), what was seen, and for a failure the likely cause and its rule."""

    name: str
    title: str
    holds: bool | None
    seen: str
    cause: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Pair:
    """The original's history and the converted script's.

    `again` is a second run of the original, where there was one: what the original does not repeat is not compared. `shown` makes a path
    of either run one that the user knows.
    """

    single: History
    ranks: History
    nproc: int
    tolerance: Tolerance
    shown: Callable[[str], str]
    again: History | None = None
    stopped: bool = False


# --- parameters -----------------------------------------------------------------------------------------------------------
def apart(a: list[Digest], b: list[Digest], tolerance: Tolerance) -> tuple[float, int]:
    """The largest relative difference of two lists of parameters, and which of them has it."""
    each = each_apart(a, b, tolerance)
    return max(((by, i) for i, by in enumerate(each)), key=lambda found: found[0], default=(0.0, 0)) if each is not None else (math.inf, 0)


def each_apart(a: list[Digest], b: list[Digest], tolerance: Tolerance) -> list[float] | None:
    """The relative difference of each of two lists of parameters; None where they are not equally many."""
    if len(a) != len(b):
        return None
    total = max(math.sqrt(math.fsum(p[-1] ** 2 for p in side if math.isfinite(p[-1]))) for side in (a, b)) if a else 0.0
    found = []
    for p, q in zip(a, b, strict=True):
        finite = all(map(math.isfinite, (*p, *q)))
        if p == q or (not finite and [str(x) for x in p] == [str(x) for x in q]):
            found.append(0.0)
            continue
        scale = max(p[-1], q[-1], tolerance.floor * total, 1e-300)
        found.append(max(abs(x - y) for x, y in zip(p, q, strict=True)) / scale if finite else math.inf)
    return found


@dataclass(frozen=True)
class Parting:
    """How far two ranks' parameters are apart at most, the first step at which they part, and those that part there, the farthest first."""

    most: float
    step: int | None = None
    names: tuple[str, ...] = ()


def differences(a: Rank, b: Rank, tolerance: Tolerance) -> Iterator[tuple[float, int]]:
    """How far the parameters of two runs are apart after each step that both took, and which parameter is the farthest."""
    for one, other in zip(a.steps, b.steps, strict=False):
        yield apart(one.parameters, other.parameters, tolerance) if one.optimizer == other.optimizer else (math.inf, 0)


def between_ranks(tolerance: Tolerance) -> Tolerance:
    """How far ranks of one run may be apart: they do the same sums in the same order."""
    return Tolerance(1e-9 if tolerance is DOUBLE else 1e-6, tolerance.floor, 0)


def parting(a: Rank, b: Rank, tolerance: Tolerance) -> Parting:
    """Where the parameters of two runs part."""
    most, first, names = 0.0, None, tuple[str, ...]()
    for i, (by, _) in enumerate(differences(a, b, tolerance)):
        most = max(most, by)
        if by > tolerance.relative and first is None:
            first, names = i, _parting_names(a, b, i, tolerance)
    return Parting(most, first, names)


def _parting_names(a: Rank, b: Rank, step: int, tolerance: Tolerance) -> tuple[str, ...]:
    """The parameters that part at a step, the farthest first."""
    known = a.optimizers.get(a.steps[step].optimizer, {}).get("names", [])
    each = each_apart(a.steps[step].parameters, b.steps[step].parameters, tolerance)
    if each is None or len(each) != len(known):
        return ()
    apart_there = [(by, name) for by, name in zip(each, known, strict=True) if by > tolerance.relative]
    return tuple(name for _, name in sorted(apart_there, key=lambda found: -found[0]))


_GONE = re.compile(r"Connection (?:closed|reset)|Read error|Write error|Broken pipe|remote process exited")


def ran(pair: Pair) -> Row:
    """Whether each rank came to its end. A rank that the launcher killed, or that left early, did not."""
    missing = [r for r in range(pair.nproc) if r not in pair.ranks.ranks or not pair.ranks.ranks[r].ended]
    failed = [(r.number, e) for r in pair.ranks.ranks.values() for e in r.of("failed")]
    aborted = len(pair.ranks.ranks) >= pair.nproc and not missing  # by gloo, at the very end: see `verify`
    failed += [(-1, e) for e in pair.ranks.parent if e["kind"] == "failed" and not (aborted and "SIGABRT" in e["error"])]
    failed = [(event.get("child", number), event) for number, event in failed]
    left = [(r.number, e["status"]) for r in pair.ranks.ranks.values() for e in r.of("leaves")]
    steps = {r: len(rank.steps) for r, rank in pair.ranks.ranks.items()}
    gone = [(number, event) for number, event in failed if _GONE.search(event["error"])]  # another rank's end, as these saw it
    failed = [found for found in failed if found not in gone]
    left = [found for found in left if found[0] not in dict(gone)]
    if failed:
        number, event = min(failed, key=lambda found: float(found[1]["at"]))
        who = f"rank {number}" if number >= 0 else "the process that spawns"
        return Row("ran", "ran to the end", False, f"{who}: {event['error']}")
    if left:
        said = [e["text"] for e in pair.ranks.ranks[left[0][0]].of("line") if e["stream"] == "stderr"]
        return Row("ran", "ran to the end", False, f"rank {left[0][0]} exits with {left[0][1]}{f': {said[-1]}' if said else ''}")
    if gone and not missing:
        number = gone[0][0]
        early = [r for r in steps if r not in dict(gone)]
        who = f"rank {early[0]} ended after {steps[early[0]]} steps, while rank {number} waited for it" if early else f"rank {number}"
        return Row("ran", "ran to the end", False, f"{who}: {gone[0][1]['error']}")
    if pair.ranks.world < 2 or len(steps) < pair.nproc:
        return Row("ran", "ran to the end", False, f"{max(pair.ranks.world, len(steps))} of {pair.nproc} ranks took part")
    if missing:
        return Row("ran", "ran to the end", False, f"rank {missing[0]} was ended from outside after {steps.get(missing[0], 0)} steps")
    return Row("ran", "ran to the end", True, f"{pair.nproc} ranks, {len(pair.ranks.first.steps)} optimizer steps")


def agree(pair: Pair) -> Row:
    """Whether all ranks have the same parameters after every step."""
    title, ranks = "ranks agree after every step", pair.ranks.ranks
    trained = [r for r, rank in ranks.items() if rank.steps]
    if not trained:
        return Row("ranks_agree", title, False if pair.single.first.steps else None, "no rank took an optimizer step")
    if len(trained) < pair.nproc:
        return Row("ranks_agree", title, False, f"only {len(trained)} of {pair.nproc} ranks took optimizer steps")
    counts = [len(rank.steps) for rank in ranks.values()]
    if len(set(counts)) > 1:
        return Row("ranks_agree", title, False, f"{_listed(counts)} steps on the ranks")
    for number, rank in ranks.items():
        found = parting(pair.ranks.first, rank, between_ranks(pair.tolerance))
        if found.step is not None:
            seen = f"rank {number} differs from rank 0 by {found.most:.1e} from step {found.step + 1} on{_of(found.names)}"
            return Row("ranks_agree", title, False, seen)
    sums = {number: [float(e["value"]) for e in rank.of("plateau")] for number, rank in ranks.items()}
    for number, values in sums.items():
        for a, b in zip(sums[min(sums)], values, strict=False):
            if not math.isclose(a, b, rel_tol=between_ranks(pair.tolerance).relative) and math.isfinite(a + b):
                return Row("ranks_agree", title, False, f"a plateau schedule is given {a:g} on rank 0, {b:g} on rank {number}")
    return Row("ranks_agree", title, True, f"after each of {counts[0]} steps")


def same_trajectory(pair: Pair) -> Row:
    """Whether rank 0's parameters are the original's after every step."""
    title, single, first = "same trajectory as the original", pair.single.first, pair.ranks.first
    if not single.steps:
        return Row("trajectory", title, None, "the original takes no optimizer step")
    found = parting(single, first, pair.tolerance)
    counts = len(single.steps), len(first.steps)
    if counts[0] == counts[1] and not _moves(single):
        return Row("trajectory", title, None, "the original's parameters do not change, so nothing is shown by theirs")
    if found.step is not None:
        seen = f"largest relative difference {found.most:.1e}; they part at step {found.step + 1}{_of(found.names)}"
        return Row("trajectory", title, False, seen)
    if counts[0] != counts[1]:
        return Row("trajectory", title, False, f"{counts[0]} steps in the original, {counts[1]} on the ranks")
    return Row("trajectory", title, True, f"largest relative difference {found.most:.1e} over {counts[0]} steps")


def _moves(rank: Rank) -> bool:
    """Whether any step of a rank changes its parameters."""
    start: dict[int, list[Digest]] = {number: event["parameters"] for number, event in rank.optimizers.items()}
    return any(step.parameters != start.get(step.optimizer) for step in rank.steps)


# --- data -----------------------------------------------------------------------------------------------------------------
def _passes(rank: Rank) -> dict[tuple[int, int], tuple[list[str], bool]]:
    """{(number of the training loader, pass): (its samples, whether it was run through)}."""
    order = {e["loader"]: i for i, e in enumerate(rank.loaders)}
    found: dict[tuple[int, int], tuple[list[str], bool]] = {}
    for event in rank.of("batch", "pass_end"):
        if event["loader"] in order:
            key = order[event["loader"]], event["number"]
            samples, _ = found.get(key, ([], False))
            if event["kind"] == "batch":
                samples.extend(event["samples"])
            found[key] = samples, event["kind"] == "pass_end" and event["whole"]
    return found


def every_sample(pair: Pair) -> Row:
    """Whether the ranks together train on the original's samples, each as often as it does."""
    title = "every sample once per epoch"
    single, ranks = _passes(pair.single.first), [_passes(rank) for rank in pair.ranks.ranks.values()]
    order = {e["loader"]: i for i, e in enumerate(pair.single.first.loaders)}
    sizes: dict[tuple[int, int], list[int]] = {}  # of the original's batches; the ranks may repeat samples to have equally many
    for event in pair.single.first.of("batch"):
        if event["loader"] in order:
            sizes.setdefault((order[event["loader"]], event["number"]), []).append(len(event["samples"]))
    if not any(samples for samples, _ in single.values()):
        return Row("samples", title, None, "the original draws no samples from a training loader")
    if not any(samples for passes in ranks for samples, _ in passes.values()):
        return Row("samples", title, None, "no training loader was seen on the ranks")
    whole = [key for key, (_, run) in single.items() if run and all(key in passes and passes[key][1] for passes in ranks)]
    part = [key for key in single if key not in whole and all(key in passes for passes in ranks)]
    repeated = 0
    for key in whole:
        wanted = Counter(single[key][0])
        got = Counter(s for passes in ranks for s in passes[key][0])
        lost, more = wanted - got, got - wanted
        repeated = max(repeated, more.total())
        if lost or more.total() > sum(-size % pair.nproc for size in sizes[key]):
            seen = f"pass {key[1] + 1}: {wanted.total()} samples in the original, {got.total()} on the ranks together"
            return Row("samples", title, False, seen + (f", {lost.total()} of them missing" if lost else f", {more.total()} repeated"))
    for key in part:
        shares = [set(passes[key][0]) for passes in ranks]
        common = set.intersection(*shares) if len(shares) > 1 else set()
        smallest = min(map(len, shares))
        if smallest > 2 and len(common) > 0.5 * smallest:
            return Row("samples", title, False, f"the ranks train on the same samples: {len(common)} of {smallest} seen by all of them")
    if not whole:
        return Row("samples", title, True if part else None, "no whole pass; the samples seen are divided" if part else "no pass was seen")
    seen = f"{len(whole)} whole {'pass' if len(whole) == 1 else 'passes'}"
    return Row("samples", title, True, seen + (f", {repeated} repeated in the last batch" if repeated else ""))


def _epochs(rank: Rank) -> list[list[tuple[int, int]]]:
    """The (seed, epoch) of each pass of a shuffling sampler, a list for each loader and what it trains."""
    trained = {(e["loader"], e["number"]) for e in rank.of("trains")}
    begun: list[tuple[Event, set[int]]] = []  # passes, and the optimizers that step along them
    for event in rank.of("pass", "step"):
        if event["kind"] == "pass" and (event["loader"], event["number"]) in trained:
            begun.append((event, set()))
        elif event["kind"] == "step" and begun:
            begun[-1][1].add(event["optimizer"])
    found: dict[tuple[int, frozenset[int]], list[tuple[int, int]]] = {}
    for event, optimizers in begun:
        if event["epoch"] is not None:
            found.setdefault((event["loader"], frozenset(optimizers)), []).append(tuple(event["epoch"]))
    return list(found.values())


def epochs(pair: Pair) -> Row:
    """Whether the samplers of the training loaders know which epoch it is."""
    title = "set_epoch is effective"
    repeated = [passes for rank in pair.ranks.ranks.values() for passes in _epochs(rank) if len(passes) > 1]
    if not repeated:
        return Row("set_epoch", title, None, "no shuffling DistributedSampler went through two passes")
    stale = [passes for passes in repeated if len(set(passes)) < len(passes)]
    if stale:
        return Row("set_epoch", title, False, f"epochs {_listed([e for _, e in stale[0]])}: the same order comes again")
    return Row("set_epoch", title, True, f"epochs {_listed([e for _, e in repeated[0]])}")


def divided(pair: Pair) -> Row:
    """Whether batch and workers of the training loaders are divided among the ranks."""
    title = "batch and workers divided"
    single, first = pair.single.first.loaders, pair.ranks.first.loaders
    if not single or not first:
        return Row("batch_size", title, None, "no training loader was seen")
    for one, other in zip(single, first, strict=False):
        before, after = one["batch_size"], other["batch_size"]
        if before and after and before != after * pair.nproc:
            return Row("batch_size", title, False, f"batches of {before} in the original, {pair.nproc} x {after} on the ranks")
        workers = math.ceil(one["num_workers"] / pair.nproc)
        if other["num_workers"] > max(workers, 0):
            seen = f"{one['num_workers']} workers in the original, {pair.nproc} x {other['num_workers']} on the ranks"
            return Row("workers", title, False, seen)
    one, other = single[0], first[0]
    workers = f", workers {one['num_workers']} into {pair.nproc} x {other['num_workers']}" if one["num_workers"] else ""
    return Row("batch_size", title, True, f"batches of {one['batch_size']} into {pair.nproc} x {other['batch_size']}{workers}")


# --- devices and output ---------------------------------------------------------------------------------------------------
def devices(pair: Pair) -> Row:
    """Whether each rank computes on a device of its own."""
    title = "each rank on its own device"
    used = {r: sorted({e["index"] for e in rank.of("device")}) for r, rank in pair.ranks.ranks.items()}
    if early := sorted({e["index"] for e in pair.ranks.parent if e["kind"] == "device"}):
        return Row("devices", title, False, f"the process that spawns uses cuda:{', cuda:'.join(map(str, early))}")
    if not any(used.values()):
        return Row("devices", title, None, "CUDA was not used")
    wrong = {r: found for r, found in used.items() if found not in ([r], [])}
    joined = {r: next((e["at"] for e in rank.of("joined")), 0.0) for r, rank in pair.ranks.ranks.items()}
    stray = [(r, e["index"]) for r, rank in pair.ranks.ranks.items() for e in rank.of("device") if e["index"] != r and e["at"] >= joined[r]]
    if wrong and (stray or any(r not in found for r, found in wrong.items())):
        return Row("devices", title, False, "; ".join(f"rank {r} on cuda:{', cuda:'.join(map(str, found))}" for r, found in wrong.items()))
    if wrong:
        return Row(
            "devices", title, False, "; ".join(f"rank {r} touches cuda:{found[0]} before it joins the group" for r, found in wrong.items())
        )
    return Row("devices", title, True, ", ".join(f"rank {r} on cuda:{found[0]}" for r, found in used.items() if found))


def shape(text: str) -> str:
    """A line without its numbers and the cells of its bars."""
    return re.sub(r"[\s\d.\-+e\u2588-\u258f|#]+", "0", text)


def rank0_prints(pair: Pair) -> Row:
    """Whether rank 0 alone prints."""
    title = "rank 0 alone printed"
    expected = {shape(e["text"]) for e in pair.single.rank_zero_events() if e["kind"] == "line"}
    lines = []
    for number, rank in pair.ranks.ranks.items():
        if number:
            lines += [(number, e["text"]) for e in rank.of("line") if e["stream"] == "stdout" or shape(e["text"]) in expected]
    if lines:
        return Row("prints", title, False, f"rank {lines[0][0]} printed {len(lines)} lines, first {lines[0][1][:60]!r}")
    number = sum(e["kind"] == "line" for e in pair.ranks.rank_zero_events())
    return Row("prints", title, True, _many(number, "line"))


def rank0_writes(pair: Pair) -> Row:
    """Whether rank 0 alone writes files. Folders that each rank makes sure of are nobody's."""
    title = "rank 0 alone wrote"
    files = {pair.shown(e["path"]) for e in pair.ranks.rank_zero_events() if e["kind"] == "write" and e["what"] != "mkdir"}
    for number, rank in pair.ranks.ranks.items():
        paths = sorted({pair.shown(e["path"]) for e in rank.of("write") if e["what"] != "mkdir"}) if number else []
        if paths:
            return Row("writes", title, False, f"rank {number} wrote {', '.join(paths[:3])}{' ...' if len(paths) > 3 else ''}")
    shown = sorted(files)
    return Row(
        "writes", title, True, f"{', '.join(shown[:3])}{f' and {len(shown) - 3} more' if len(shown) > 3 else ''}" if shown else "no files"
    )


def _outside(history: History, rank: Rank) -> list[str]:
    """The lines printed outside passes over training loaders: what they say is of the whole data set."""
    trains = {e["loader"] for e in rank.loaders}
    open_passes: set[tuple[int, int]] = set()
    lines = []
    for event in history.rank_zero_events():
        kind = event["kind"]
        if kind == "pass" and event["loader"] in trains:
            open_passes.add((event["loader"], event["number"]))
        elif kind == "pass_end":
            open_passes.discard((event["loader"], event["number"]))
        elif kind == "line" and event["stream"] == "stdout" and not event["redrawn"] and not open_passes:
            lines.append(event["text"])
    return lines


def metrics(pair: Pair) -> Row:
    """Whether rank 0 prints what the original prints outside its training loops."""
    title = "printed metrics equal the original's"
    before, after = _outside(pair.single, pair.single.first), _outside(pair.ranks, pair.ranks.first)
    if not before:
        return Row("metrics", title, None, "the original prints nothing outside its training loops")
    again = _outside(pair.again, pair.again.first) if pair.again else before
    unsteady = {i for i, (a, b) in enumerate(zip(before, again, strict=False)) if a != b}
    numbers = 0
    left = list(after)
    shares = {(e["batch_size"], o["batch_size"]) for e, o in zip(pair.single.first.loaders, pair.ranks.first.loaders, strict=False)}
    for i, line in enumerate(before):
        like = next((k for k, other in enumerate(left) if shape(other) == shape(line)), None)
        if like is None:
            if i in unsteady or _forgiven(line):
                continue
            return Row("metrics", title, False, f"the line {line[:70]!r} is missing")
        other = left[like]
        del left[: like + 1]
        if i in unsteady:
            continue
        for a, b in zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=False):
            numbers += 1
            if not _nearly_equal(a, b, pair.tolerance.printed) and (float(a), float(b)) not in shares:
                return Row("metrics", title, False, f"{line[:70]!r} in the original, {other[:70]!r} on rank 0")
    return Row("metrics", title, True, f"{_many(numbers, 'number')} in {_many(len(before), 'line')}")


def _forgiven(line: str) -> bool:
    """Whether a line may be missing: it tells of devices, which differ."""
    return bool(re.search(r"cuda|gpu|device|DataParallel", line, re.IGNORECASE))


def _nearly_equal(a: str, b: str, tolerance: float) -> bool:
    x, y = float(a), float(b)
    digits = [len(n.lower().partition("e")[0].partition(".")[2]) for n in (a, b)]
    last = 10.0 ** -min(digits) if min(digits) and "e" not in (a + b).lower() else 0.0
    return abs(x - y) <= max(tolerance * max(abs(x), abs(y)), 1.01 * last)


# --- checkpoints ----------------------------------------------------------------------------------------------------------
def _saves(history: History) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in history.rank_zero_events():
        if event["kind"] == "save":
            found.setdefault(re.sub(r"\d+", "0", event["path"].rpartition("/")[2]), []).append(event)
    return found


def checkpoints(pair: Pair) -> Row:
    """Whether checkpoints have the original's keys and values."""
    title = "checkpoint keys and values"
    before, after = _saves(pair.single), _saves(pair.ranks)
    again = _saves(pair.again) if pair.again else before
    if not before:
        return Row("checkpoints", title, None, "the original saves no checkpoint")
    count = 0
    for name, saves in before.items():
        others = after.get(name, [])
        path = pair.shown(saves[-1]["path"])
        if not others:
            return Row("checkpoints", title, False, f"{path} is not saved")
        one, other, same = saves[-1]["values"], others[-1]["values"], again.get(name, saves)[-1]["values"]
        if odd := sorted(one.keys() ^ other.keys()):
            sides = [
                next((f"{key} {where}" for key in odd if key in side), "")
                for side, where in ((one, "in the original"), (other, "on rank 0"))
            ]
            return Row("checkpoints", title, False, f"{path}: {len(odd)} keys differ, such as {', '.join(filter(None, sides))}")
        scale = pair.tolerance.floor * math.hypot(*(value["digest"][-1] for value in one.values() if isinstance(value, dict)))
        for key in one:
            count += 1
            found = _unlike(one[key], other[key], scale, pair.tolerance)
            if found and _unlike(one[key], same.get(key), scale, pair.tolerance) is None:
                return Row("checkpoints", title, False, f"{path}: {key}: {found}")
    return Row("checkpoints", title, True, f"{_many(len(before), 'file')}, {_many(count, 'value')}")


def _unlike(a: Any, b: Any, scale: float, tolerance: Tolerance) -> str | None:
    """How two values of a checkpoint differ; `scale` is the size that counts at least for a tensor."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a["shape"] != b["shape"]:
            return f"shape {a['shape']} in the original, {b['shape']} on the ranks"
        p, q = a["digest"], b["digest"]
        by = 0.0 if str(p) == str(q) else max(abs(x - y) for x, y in zip(p, q, strict=True)) / max(p[-1], q[-1], scale, 1e-300)
        return f"relative difference {by:.1e}" if not by <= 10 * tolerance.relative else None
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool):
        return (
            None
            if math.isclose(a, b, rel_tol=tolerance.printed, abs_tol=1e-9) or (a != a and b != b)
            else f"{a} in the original, {b} on rank 0"
        )
    return None if a == b or (isinstance(a, str) and isinstance(b, str)) else f"{a!r} in the original, {b!r} on rank 0"


# --- noise, group, warnings -----------------------------------------------------------------------------------------------
def own_noise(pair: Pair) -> Row:
    """Whether the ranks draw different random numbers for their rows: dropout, noise, augmentation."""
    title = "ranks draw noise of their own"
    if not pair.ranks.conditions() & {"dropout", "noise", "mixing"}:
        return Row("own_noise", title, None, "nothing random was seen in the training")
    seeds = [next((e["seed"] for e in rank.of("optimizer")), None) for rank in pair.ranks.ranks.values()]
    if None in seeds or len(seeds) < 2:
        return Row("own_noise", title, None, "no rank trained")
    if len(set(seeds)) == 1:
        return Row("own_noise", title, False, f"all ranks draw with the seed {seeds[0]}: the same dropout masks and noise on each")
    return Row("own_noise", title, True, "each rank has its own seed")


def group(pair: Pair) -> Row:
    """Whether the process group is torn down."""
    title = "process group torn down"
    if not any(True for rank in pair.ranks.ranks.values() for _ in rank.of("joined")):
        return Row("group", title, False if pair.nproc > 1 else None, "no rank joined a process group")
    left = [r for r, rank in pair.ranks.ranks.items() if any(e["left_open"] for e in rank.of("exit"))]
    if left and all(any(True for _ in pair.ranks.ranks[r].of("enough")) for r in left):
        return Row("group", title, None, "the steps asked for were done before the end")
    if left:
        return Row("group", title, False, f"{_many(len(left), 'rank')} of {pair.nproc} leave it open: {_listed(left)}")
    if not all(rank.ended for rank in pair.ranks.ranks.values()):
        return Row("group", title, None, "not every rank came to its end")
    return Row("group", title, True, "on every rank")


def deprecated(pair: Pair) -> Row:
    """Whether the converted script uses nothing that torch warns will go, where the original does not."""
    title = "nothing deprecated"
    known = {e["text"] for e in pair.single.rank_zero_events() if e["kind"] == "warning"}
    for rank in pair.ranks.ranks.values():
        for event in rank.of("warning"):
            if (
                event["category"] in ("FutureWarning", "DeprecationWarning")
                and "torch" in event["by"] + event["file"] + event["text"]
                and event["text"] not in known
            ):
                return Row("deprecated", title, False, event["text"][:140])
    return Row("deprecated", title, True, "no warning of torch's")


PROPERTIES = (
    ran,
    agree,
    same_trajectory,
    every_sample,
    epochs,
    divided,
    devices,
    rank0_prints,
    rank0_writes,
    metrics,
    checkpoints,
    own_noise,
    group,
    deprecated,
)


def rows(pair: Pair) -> Iterator[Row]:
    """All rows, in the order in which they are shown."""
    return (check(pair) for check in PROPERTIES)


def _many(number: int, what: str) -> str:
    return f"{number} {what if number == 1 else what + 's'}"


def _of(names: Sequence[str]) -> str:
    """The parameters in which two sides part, at most three by name."""
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f", in {', '.join(names[:3])}{rest}" if names else ""


def _listed(values: list[Any]) -> str:
    return ", ".join(map(str, values[:6])) + (" ..." if len(values) > 6 else "")
