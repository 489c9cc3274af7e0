"""A verdict as the table a terminal shows, and as JSON."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddpify.rehearse.verify import Verdict

VERSION = 1
_WORDS = {True: ("holds", "32"), False: ("FAILS", "31"), None: ("not seen", "2")}

CONDITIONS = {
    "cuda": "CUDA is played by the CPU, nccl by gloo; each tensor is marked with the device it would be on",
    "double": "computed in float64",
    "batch_norm": "batch norm uses each sample's own statistics",
    "dropout": "dropout is off",
    "autocast": "autocast is off",
    "scaler": "the loss scale is 1",
    "noise": "numbers drawn for the rows of a batch depend on the sample and the step",
    "mixing": "a permutation of the batch mixes only rows that one rank has",
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


def terminal(verdict: Verdict, colour: bool = False) -> str:
    """The table, what it rests on, and what went wrong."""
    if verdict.reason:
        return f"the end of what the original printed:\n{_tail(verdict.output)}\n\ncould not run: {verdict.reason}\n"
    width = max(len(row.title) for row in verdict.rows)
    text = ""
    for row in verdict.rows:
        word, code = _WORDS[row.holds]
        shown = f"\x1b[{code}m{word:8}\x1b[0m" if colour else f"{word:8}"
        text += f"{shown}  {row.title:{width}}  {' '.join(row.seen.split())}\n"
        if row.holds is False and row.cause:
            text += f"{'':10}{'':{width}}  likely cause: {row.cause}{f' ({row.rule})' if row.rule else ''}\n"
    if verdict.stacks:
        text += f"\nwhere the ranks stood:\n{verdict.stacks}\n"
    elif verdict.output and verdict.rows[0].holds is False:
        text += f"\nthe end of what the ranks printed:\n{_tail(verdict.output)}\n"
    text += "\nunder these conditions:\n" + "".join(f"  - {line}\n" for line in conditions(verdict))
    failed = sum(row.holds is False for row in verdict.rows)
    ran = f"{verdict.setting.nproc} ranks under {verdict.launcher}"
    return (
        text
        + (f"\n{verdict.converted}: {failed} of {len(verdict.rows)} fail" if failed else f"\n{verdict.converted}: all hold")
        + f" ({ran})\n"
    )


def _tail(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join("  " + line[:200] for line in lines[-25:])


def report(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain data; `holds` is null where nothing was seen of a property, times are in seconds."""
    return {
        "version": VERSION,
        "original": verdict.original,
        "converted": verdict.converted,
        "status": verdict.status,
        "exit_code": verdict.exit_code,
        "reason": verdict.reason,
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
