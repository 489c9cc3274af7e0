"""Converts scripts, runs each original beside its conversion on ranks, and sorts what came of them."""

from __future__ import annotations

import math
import multiprocessing
import re
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import torch
from ranks import Case, Outcome, run_many
from scripts import APEX

import ddpify
from ddpify.rules.base import Safety

from .compose import Generated
from .pieces import INSIDE


class Kind(Enum):
    EQUAL = "exit 0 and equal"
    FALSE_ALARM = "exit 1 and equal"
    ASKED = "exit 1 and different"
    SILENT = "exit 0 and different"
    CRASH = "crash"
    INVALID = "the original itself is no fair script"


_NOT_SHARED = ("every rank may train on the same inputs", "they cannot be divided among the ranks")
"""What findings say of data that is left whole: where the ranks then train as the original did, each did all of its work."""


@dataclass(frozen=True)
class Converted:
    """What `convert` made of a script; `error` is the traceback of a crash."""

    code: str = ""
    exit_code: int = 2
    modules: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Result:
    """A script, what `convert` made of it, and what was seen when both ran."""

    script: Generated
    converted: Converted
    kind: Kind
    problems: tuple[str, ...] = ()

    @property
    def signature(self) -> tuple[Kind, frozenset[str], frozenset[str]]:
        """What has to stay while the script is reduced: the outcome, the codes of findings, and the properties that do not hold."""
        codes = frozenset(text.split()[0] for text in self.converted.findings)
        return self.kind, codes, frozenset(text.split(":")[0] for text in self.problems)


def convert(script: Generated) -> Converted:
    """The conversion of a script in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="generate-") as name:
        for path, content in {**script.files, "train.py": script.text}.items():
            Path(name, path).parent.mkdir(parents=True, exist_ok=True)
            Path(name, path).write_text(content)
        try:
            done = ddpify.convert(Path(name, "train.py"), script.options)
        except Exception:
            return Converted(error=traceback.format_exc())
        if done.status != "convert":
            return Converted(error=f"{done.status}: {done.reason}")
        if failed := [f.message for f in done.findings if f.code in ("DDP901", "DDP904")]:
            return Converted(error=failed[0])
        found = [f"{f.code} {Path(f.file).name}:{f.line} {f.message}" for f in done.findings if f.level >= Safety.REVIEW]
        found += [f"{c.code} {Path(c.file).name}:{c.line} {c.why}" for c in done.changes if c.level >= Safety.REVIEW]
        modules = tuple((str(module.path.relative_to(name)), module.code) for module in done.edited)
        return Converted(done.code, done.exit_code, modules, tuple(found))


def examine(scripts: Sequence[Generated], ranks: int = 2, processes: int = 2, limit: float = 120.0, asked: bool = True) -> list[Result]:
    """Converts and runs all scripts, those that are asked about apart from the others, since a conversion of theirs may hang.

    Without `asked` those are not run, and count as rightly asked about.
    """
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=50) as pool:
        conversions = pool.map(convert, scripts, 1)
    pairs = enumerate(zip(scripts, conversions, strict=True))
    results = {i: Result(s, c, *((Kind.CRASH, (c.error,)) if c.error else (Kind.ASKED, ()))) for i, (s, c) in pairs}
    for code in (0, 1) if asked else (0,):
        chosen = [i for i, c in enumerate(conversions) if not c.error and c.exit_code == code]
        seen = judged([scripts[i] for i in chosen], [conversions[i] for i in chosen], ranks, limit) if chosen else []
        results |= dict(zip(chosen, seen, strict=True))
    return [results[i] for i in range(len(scripts))]


def judged(scripts: Sequence[Generated], conversions: Sequence[Converted], ranks: int, limit: float) -> list[Result]:
    """What comes of conversions that are run beside their originals."""
    outcomes = run_many([_case(s, c) for s, c in zip(scripts, conversions, strict=True)], ranks, limit)
    return [sorted_out(s, c, outcome) for s, c, outcome in zip(scripts, conversions, outcomes, strict=True)]


def _case(script: Generated, converted: Converted) -> Case:
    apex = script.options.level or script.options.ddp == "apex"
    files: dict[str, str | bytes] = {**(APEX if apex else {}), **script.files}
    return Case(script.text, converted.code, script.args, files, dict(converted.modules))


def sorted_out(script: Generated, converted: Converted, outcome: Outcome) -> Result:
    """Which of the outcomes it is."""
    steps = outcome.single.steps
    if outcome.single.error or not steps or _rests([state for number, state in steps if number == steps[0][0]]):
        return Result(script, converted, Kind.INVALID, (outcome.single.error or "no step moves the parameters",))
    if not all(step.isfinite().all() for _, step in steps):
        return Result(script, converted, Kind.INVALID, ("the parameters become infinite",))
    apart = (*script.apart, "keys") if script.options.level else script.apart  # checkpoints hold amp's state
    problems = [text for text in (*outcome.problems(apart), *numbers(outcome)) if not rounding(text)]
    if converted.exit_code:
        if any(said in text for said in _NOT_SHARED for text in converted.findings):
            problems.append("shares: all ranks train on all samples")
        return Result(script, converted, Kind.ASKED if problems else Kind.FALSE_ALARM, tuple(problems))
    return Result(script, converted, Kind.SILENT if problems else Kind.EQUAL, tuple(problems))


def _rests(states: Sequence[torch.Tensor]) -> bool:
    """Whether no step moves the parameters."""
    return bool((states[0] == states[-1]).all())


def rounding(problem: str) -> bool:
    """Whether parameters differ by no more than rounding errors that steps have enlarged."""
    by = re.match(r"(?:trajectory|ranks): .* by (\S+)$", problem)
    return by is not None and float(by[1]) < 1e-7


def numbers(outcome: Outcome) -> list[str]:
    """Lines, printed and written, whose numbers are not the original's, without those about one batch."""
    before, after = outcome.single, outcome.ranks[0]
    texts = {"numbers": (before.stdout, after.stdout), "logged": (logged(before.stderr), logged(after.stderr))}
    for path in before.files.keys() & after.files.keys():
        if path.endswith((".csv", ".txt", ".json")):
            texts[f"numbers in {path}"] = before.files[path].decode(), after.files[path].decode()
    found = []
    for what, pair in texts.items():
        old, new = ([line for line in text.splitlines() if not line.startswith(INSIDE)] for text in pair)
        odd = [f"{a!r} became {b!r}" for a, b in zip(old, new, strict=False) if not alike(a, b)]
        if odd or len(old) != len(new):
            found.append(f"{what}: {len(old)} and {len(new)} lines; " + "; ".join(odd[:2]))
    return found


def logged(stderr: str) -> str:
    return "\n".join(line for line in stderr.splitlines() if re.match(r"epoch \d+ train", line))


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def alike(a: str, b: str) -> bool:
    """Whether two lines are the same text with the same numbers, but for rounding."""
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=False)
    close = all(x == y or math.isclose(float(x), float(y), rel_tol=1e-6, abs_tol=2e-6) for x, y in pairs)
    return close and _NUMBER.sub("0", a) == _NUMBER.sub("0", b)


def named(script: Generated, text: str, files: dict[str, str]) -> Generated:
    """The same script with other text."""
    return replace(script, text=text, files=files)
