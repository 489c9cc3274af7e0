"""A conversion and an error as the lines a terminal shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from ddpify.errors import DdpifyError
from ddpify.rules.base import Safety

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

_COLOURS = {Safety.MANUAL: "31", Safety.REVIEW: "33", Safety.NOTE: "36", Safety.SAFE: "32"}
_COUNTED = ((Safety.MANUAL, "to do by hand", "to do by hand"), (Safety.REVIEW, "to review", "to review"), (Safety.NOTE, "note", "notes"))
_WIDTH = 160


def wants_colour(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that shows colours (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def findings(conversion: Conversion, colour: bool = False) -> str:
    """What was changed and why, and what is left to do: the gravest first, then by line; one line each, and a summary."""
    rows = [(f.level, f.file, f.line, f.column, f.code, f.message, f.fix) for f in conversion.findings]
    for change in conversion.changes:
        column = getattr(change.node, "col_offset", 0) + 1
        rows.append((change.level, change.file, change.line, column, change.code, change.why, ""))
    text = ""
    for level, file, line, column, code, message, fix in sorted(rows, key=lambda row: (-row[0], row[1:])):
        word = _paint(level.name, _COLOURS[level], colour)
        text += f"{file}:{line}:{column}: {word} {code} {message}\n"
        text += _indented("write: ", fix)
    return text + summary(conversion)


def summary(conversion: Conversion) -> str:
    """One line: how much changed and how much is left."""
    levels = conversion.levels
    parts = [_plural(len(conversion.changes), "change", "changes")]
    parts += [_plural(levels.count(level), one, many) for level, one, many in _COUNTED if level in levels]
    return f"{conversion.shown}: {', '.join(parts)}\n"


def command(label: str, lines: str) -> str:
    """The command that runs the result; several lines stand below the label."""
    return f"{label} {lines}\n" if "\n" not in lines else f"{label}\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def error(failure: DdpifyError, colour: bool = False) -> str:
    """The error with its place, the line, a caret and what to do."""
    text = f"{_paint('error:', '1;31', colour)} {failure.title}\n"
    if where := failure.where:
        text += f"  {where}\n"
        if where.text:
            text += _caret(where.text, where.column)
    return text + (f"{_paint('hint:', '1;36', colour)} {failure.hint}\n" if failure.hint else "")


def _caret(line: str, column: int) -> str:
    start = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    line = line[start : start + _WIDTH]
    before = "".join("\t" if c == "\t" else " " for c in line[: max(column - 1 - start, 0)])
    return f"    {line}\n    {before}^\n" if column else f"    {line}\n"


def _indented(label: str, text: str) -> str:
    lines = text.rstrip().splitlines()
    return "".join(f"    {label if i == 0 else ' ' * len(label)}{line}\n" for i, line in enumerate(lines))


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _paint(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text
