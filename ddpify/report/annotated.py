"""Diffs on a terminal, with what each line belongs to: for `ddpify convert` and `ddpify review`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ddpify.attribution import FileDiff, Line
from ddpify.report.diff import span
from ddpify.report.terminal import LEVELS, paint, printable
from ddpify.rules.base import Change

MARGIN = 7  # columns: a rule's code and a blank
_COLOURS = {"+": "32", "-": "31", " ": ""}


def with_codes(files: Iterable[FileDiff], changes: Iterable[Change], colour: bool) -> str:
    """A unified diff with the codes of the rules on the left, each on the first line of its change.

    Codes of further changes that a line belongs to stand on the lines below, where these belong to the same.
    """
    out = []
    looks = {change.id: LEVELS[change.level] for change in changes}
    for file in files:
        out += [_row("", line, "1", colour) for line in head(file)]
        for hunk in file.hunks():
            out.append(_row("", _place(hunk), "36", colour))
            before: tuple[str, ...] = ()
            codes: list[str] = []
            for line in hunk:
                if line.changes != before:
                    new = [change for change in line.changes if change not in before] or line.changes[:1]
                    codes = list(dict.fromkeys(paint(f"{change[:6]:6}", looks[change], colour) for change in new))
                before = line.changes
                out.append(_row(codes.pop(0) if codes else "", _shown(line), _COLOURS[line.kind], colour) + _unended(line, " " * MARGIN))
    return "".join(out)


def of_change(file: FileDiff, change: str, colour: bool) -> Iterator[tuple[Sequence[Line], str]]:
    """The hunks of one change and how they are shown: lines of other changes around it are dim, or marked with a dot without colours."""
    for hunk in file.hunks(change=change):
        text = paint(_place(hunk), "36", colour) + "\n"
        for line in hunk:
            mine = line.kind == " " or change in line.changes
            row = paint(_shown(line), _COLOURS[line.kind] if mine else "2", colour)
            text += f"{row}\n" if mine or colour else f"{row[0]}.{row[1:]}\n"
            text += _unended(line, "")
        yield hunk, text


def head(file: FileDiff) -> tuple[str, str]:
    """The two lines that name a file in a diff."""
    return "--- /dev/null" if file.added else f"--- a/{printable(file.name)}", f"+++ b/{printable(file.name)}"


def _row(code: str, text: str, look: str, colour: bool) -> str:
    return f"{code or ' ' * (MARGIN - 1)} {paint(text, look, colour)}\n"


def _shown(line: Line) -> str:
    return line.kind + printable(line.text.rstrip("\r\n").removeprefix("\ufeff"))


def _unended(line: Line, margin: str) -> str:
    return "" if line.text.endswith("\n") else f"{margin}\\ No newline at end of file\n"


def _place(hunk: Sequence[Line]) -> str:
    """The head of a hunk."""
    old, new = ([n for line in hunk if (n := getattr(line, side))] for side in ("old", "new"))
    before, after = (span(lines[0] - 1 if lines else 0, lines[-1] if lines else 0) for lines in (old, new))
    return f"@@ -{before} +{after} @@"
