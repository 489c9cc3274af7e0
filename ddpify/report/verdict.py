"""A verdict as the table a terminal shows, and as JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from json import dumps
from typing import TYPE_CHECKING, Any

from ddpify.rehearse.scratch import shown_in

if TYPE_CHECKING:
    from ddpify.rehearse.compare import Row
    from ddpify.rehearse.verify import Verdict

VERSION = 1
WORDS = {True: ("holds", "32"), False: ("FAILS", "1;31"), None: ("not seen", "2")}
_INDENT = 10  # of the column after the words
_NARROW = 50  # columns for what was seen, below which it gets lines of its own
_SEEN = 300  # characters of it

CONDITIONS = {
    "cuda": "CUDA is played by the CPU, nccl by gloo; each tensor is marked with the device it would be on",
    "double": "computed in float64",
    "batch_norm": "batch norm uses each sample's own statistics",
    "dropout": "dropout is off",
    "autocast": "autocast is off",
    "scaler": "the loss scale stays 1024",
    "noise": "numbers drawn for the rows of a batch depend on the sample and the step",
    "mixing": "a permutation of the batch mixes only rows that one rank has",
    "forked": "both are forked from a process that has imported torch; no launcher starts the ranks",
    "steps": "ended after the steps asked for; what comes later was not seen",
    "again": "what the original itself does not repeat in a second run is left out",
}
_ALWAYS = (
    "one order of the samples, shared out among the ranks; a sample's augmentation depends on the sample alone",
    "both start with the same seed, further ranks with others; one thread each",
    "run in copies of the project, into which all that is written goes",
)


def conditions(verdict: Verdict) -> list[str]:
    """What the comparison rests on, in sentences."""
    return [*_ALWAYS, *(text for name, text in CONDITIONS.items() if name in verdict.conditions)]


def terminal(verdict: Verdict, colour: bool = False, width: int = 120) -> str:
    """The table in `width` columns, what went wrong, and what the comparison rests on."""
    width = min(max(width, 60), 160)
    if verdict.reason:
        printed = "".join(f"{title}:\n{textwrap.indent(tail(lines), '  ')}\n\n" for title, lines in ended(verdict))
        return printed + _wrapped(f"could not run: {clean(verdict.reason)}", width)
    titles = max((len(row.title) for row in verdict.rows), default=0)
    text = "".join(_row(row, titles, width, colour) for row in verdict.rows)
    for title, lines in [*ended(verdict)][:1]:
        text += f"\n{title}:\n{textwrap.indent(lines if verdict.stacks else tail(lines), '  ')}\n"
    text += "\nunder these conditions:\n" + "".join(_wrapped(f"  - {line}", width, 4) for line in conditions(verdict))
    text += f"\n{_wrapped(left(verdict), width)}" if verdict.left else ""
    code = WORDS[not any(row.holds is False for row in verdict.rows)][1]
    ran = f"{verdict.setting.nproc} ranks under {verdict.launcher}"
    return f"{text}\n{_paint(f'{verdict.converted}: {summary(verdict)}', code, colour)} ({ran})\n"


def _row(row: Row, titles: int, width: int, colour: bool) -> str:
    word, code = WORDS[row.holds]
    head = f"{_paint(f'{word:{_INDENT - 2}}', code, colour)}  {row.title:{titles}}"
    seen = textwrap.shorten(clean(row.seen), _SEEN, placeholder=" ...")
    column = _INDENT + titles + 2
    if len(seen) <= width - column or width - column >= _NARROW:
        text = f"{head}  {_wrapped(' ' * column + seen, width, column).lstrip(' ')}"
    else:
        text = f"{head.rstrip()}\n{_wrapped(' ' * _INDENT + seen, width, _INDENT)}"
    if row.holds is False and row.cause:
        column = column if width - column >= _NARROW else _INDENT
        text += _wrapped(f"{'':{column}}likely cause: {row.cause}{f' ({row.rule})' if row.rule else ''}", width, column)
    return text


def summary(verdict: Verdict) -> str:
    """How many properties hold, in a few words."""
    failed, unseen = (sum(row.holds is holds for row in verdict.rows) for holds in (False, None))
    text = f"{failed} of {len(verdict.rows)} fail" if failed else "all hold"
    return text + (f", {unseen} not seen" if unseen else "")


def left(verdict: Verdict) -> str:
    """What the conversion itself says that it leaves to do; the empty string where that is nothing."""
    places = counted(verdict.left, "place")
    return f"The conversion leaves {places} to review or to do by hand: `ddpify convert {verdict.original}` tells." if verdict.left else ""


def ended(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What a run that failed left behind, what tells most first: a title, and lines."""
    if verdict.stacks:
        yield "where the processes stood, the deepest call first", clean(verdict.stacks)
    failed = [(e, rank.number) for rank in (verdict.pair.ranks.ranks.values() if verdict.pair else ()) for e in rank.of("failed")]
    failed += [(e, -1) for e in (verdict.pair.ranks.parent if verdict.pair else ()) if e["kind"] == "failed"]
    for event, number in sorted(failed, key=lambda found: float(found[0]["at"])):
        trace = str(event.get("text") or event["error"])
        who = f"rank {number}" if number >= 0 else "the process that spawns"
        yield f"how {who} failed", clean(shown_in(trace, verdict.pair.shown) if verdict.pair else trace)
    if verdict.output.strip():
        yield f"the end of what the {'original' if verdict.reason else 'ranks'} printed", tail(verdict.output, 60)


def tail(output: str, lines: int = 25) -> str:
    """The last lines of what was printed."""
    found = [line.rstrip()[:200] for line in clean(output).splitlines() if line.strip()]
    return "\n".join(found[-lines:])


def clean(text: str) -> str:
    """A text of the scripts' without what would steer a terminal, or could not be encoded."""
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", re.sub(r"\r\n?", "\n", text))


def counted(number: int, one: str) -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else one + 's'}"


def _wrapped(text: str, width: int, indent: int = 0) -> str:
    """A paragraph; what begins it is kept, further lines are indented."""
    start = text[: len(text) - len(text.lstrip(" "))]
    lines = textwrap.wrap(text.lstrip(" "), width, initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False)
    return "\n".join(lines or [start]) + "\n"


def _paint(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def report(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain data; `holds` is null where nothing was seen of a property, times are in seconds."""
    return {
        "version": VERSION,
        "original": verdict.original,
        "converted": verdict.converted,
        "status": verdict.status,
        "exit_code": verdict.exit_code,
        "reason": verdict.reason,
        "left": verdict.left,
        "launcher": verdict.launcher,
        "nproc": verdict.setting.nproc,
        "steps": verdict.setting.steps,
        "precision": "float64" if verdict.setting.double else "float32",
        "seconds": {"original": verdict.seconds[0], "ranks": verdict.seconds[1]},
        "rows": [
            {"name": r.name, "title": r.title, "holds": r.holds, "seen": r.seen, "cause": r.cause, "rule": r.rule} for r in verdict.rows
        ],
        "conditions": conditions(verdict),
        "stacks": verdict.stacks,
        "output": verdict.output[-4000:],
    }


def render_json(verdict: Verdict) -> str:
    """The report as text."""
    return dumps(report(verdict), indent=2) + "\n"
