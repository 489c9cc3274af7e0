"""A conversion and an error as the lines a terminal shows: what was done, then what is left to do, then what to run next."""

from __future__ import annotations

import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ddpify.errors import DdpifyError
from ddpify.rules.base import Change, Finding, Safety

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

LEVELS = {Safety.MANUAL: "31", Safety.REVIEW: "33", Safety.NOTE: "36", Safety.SAFE: "32"}
"""How each level is coloured."""
_COUNTED = ((Safety.MANUAL, "to do by hand", "to do by hand"), (Safety.REVIEW, "to review", "to review"), (Safety.NOTE, "note", "notes"))
_WIDTH = 160
_LINES = 12  # that are shown where nothing is left to do
_CONVERTED = " (converted)"  # after the file of a finding about the result
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # what moves the cursor, turns the text round or is not seen


def wants_colour(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that shows colours and links (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def report(conversion: Conversion, commands: str, verbose: bool = False, colour: bool = False) -> str:
    """What was changed, a line for each rule or, `verbose`, for each change; what is left to do; how sure the result is; `commands`.

    Where nothing is left to do and not `verbose`, these are at most twelve lines.
    """
    items: list[Change | Finding] = [*conversion.changes, *conversion.findings]
    left = [item for item in items if item.level >= Safety.REVIEW]
    done = [item for item in items if item.level < Safety.REVIEW]
    if verbose:
        text = "".join(_each(item, colour) for item in sorted(done, key=lambda item: (-item.level, item.file, item.line, _column(item))))
    else:
        alone = {item.file for item in items} == {conversion.shown}
        rows = _rows(done, None if alone else conversion.shown.removesuffix(Path(conversion.shown).name), colour)
        room = len(rows) if left else max(_LINES - 1 - commands.count("\n"), 1)
        text = "".join(f"{row}\n" for row in _joined(rows, room))
    text += "".join(f"\n{block}" for block in _blocks(left, _texts(conversion), colour))
    return text + "\n" * bool(left) + _closing(conversion, bool(left)) + commands


def summary(conversion: Conversion) -> str:
    """One line: how much changed and how much is left."""
    levels = conversion.levels
    parts = [_plural(len(conversion.changes), "change", "changes")]
    parts += [_plural(levels.count(level), one, many) for level, one, many in _COUNTED if level in levels]
    return f"{conversion.shown}: {', '.join(parts)}\n"


def command(label: str, lines: str) -> str:
    """A command to run next; several lines stand below the label."""
    return f"{label} {lines}\n" if "\n" not in lines else f"{label}\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def error(failure: DdpifyError, colour: bool = False) -> str:
    """The error with its place, the line, a caret and what to do."""
    text = f"{paint('error:', '1;31', colour)} {failure.title}\n"
    if where := failure.where:
        text += f"  {where}\n"
        if where.text:
            text += _caret(where.text, where.column)
    return text + (f"{paint('hint:', '1;36', colour)} {failure.hint}\n" if failure.hint else "")


def finding(item: Change | Finding, places: str, colour: bool) -> str:
    """A finding, or a change to review: what it says, `places`, each on a line of its own, and what to write."""
    said, fix = (item.message, item.fix) if isinstance(item, Finding) else (item.why, "")
    return f"{paint(item.level.name, LEVELS[item.level], colour)} {item.code}: {said}\n{places}{_indented('write: ', fix)}"


def place(file: str, line: int, colour: bool) -> str:
    """A file and a line, which a terminal opens when it is clicked."""
    return _linked(f"{file}:{line}", file, line, colour)


def printable(text: str) -> str:
    """A text with nothing in it that a terminal would obey, or hide."""
    return "".join("?" if c != "\t" and unicodedata.category(c) in _HIDDEN else c for c in text)


def paint(text: str, code: str, colour: bool) -> str:
    """A text in a colour."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


# --- what was done -------------------------------------------------------------------------------------------------------


def _joined(rows: list[str], room: int) -> list[str]:
    """The rows on as many lines as there is room for: the shortest neighbours share one."""
    while len(rows) > room:
        at = min(range(len(rows) - 1), key=lambda i: len(rows[i]) + len(rows[i + 1]))
        rows = [*rows[:at], f"{rows[at]}; {rows[at + 1]}", *rows[at + 2 :]]
    return rows


def _rows(items: Iterable[Change | Finding], folder: str | None, colour: bool) -> list[str]:
    """For each rule a line: its title, the lines that it changed, and its notes; `folder` is the script's, None where all is about it."""
    from ddpify.report.rule import all_rules

    changed = defaultdict[str, list[Change]](list)
    notes = defaultdict[str, dict[str, list[Finding]]](lambda: defaultdict(list))
    for item in items:
        if isinstance(item, Change):
            changed[item.code].append(item)
        if isinstance(item, Finding) or item.level is Safety.NOTE:
            said = item.message if isinstance(item, Finding) else item.why
            notes[item.code][said] += [item] if isinstance(item, Finding) else []
    rows = []
    for code in sorted({*changed, *notes}):
        parts = [f"{all_rules()[code].title}: {_lines(changed[code], folder, colour)}"] if code in changed else []
        for said, found in notes[code].items():
            parts.append(f"note{' on ' * bool(found)}{_lines(found, folder, colour)}: {said}")
        rows.append(f"{paint(code, LEVELS[Safety.NOTE if notes[code] else Safety.SAFE], colour)}  {'; '.join(parts)}")
    return rows


def _lines(items: Iterable[Change | Finding], folder: str | None, colour: bool) -> str:
    """The lines of some changes, those that follow one another joined, such as 71, 110, 179-180; with their files as seen from `folder`."""
    by_file = defaultdict[str, list[int]](list)
    for item in items:
        by_file[item.file].append(item.line)
    parts = []
    for file, lines in sorted(by_file.items()):
        joined: list[list[int]] = []
        for line in sorted(set(lines)):
            if joined and line == joined[-1][-1] + 1:
                joined[-1].append(line)
            else:
                joined.append([line])
        shown = [_linked(f"{run[0]}-{run[-1]}" if run[1:] else f"{run[0]}", file, run[0], colour) for run in joined]
        parts.append(("" if folder is None else f"{file.removeprefix(folder)}:") + ", ".join(shown))
    return "; ".join(parts)


def _each(item: Change | Finding, colour: bool) -> str:
    said, fix = (item.message, item.fix) if isinstance(item, Finding) else (item.why, "")
    at = _linked(f"{item.file}:{item.line}:{_column(item)}", item.file, item.line, colour)
    return f"{at}: {paint(item.level.name, LEVELS[item.level], colour)} {item.code} {said}\n{_indented('write: ', fix)}"


def _column(item: Change | Finding) -> int:
    return item.column if isinstance(item, Finding) else int(getattr(item.node, "col_offset", 0)) + 1


# --- what is left to do --------------------------------------------------------------------------------------------------


def _blocks(items: Iterable[Change | Finding], texts: Mapping[str, list[str]], colour: bool) -> Iterable[str]:
    """What is left to do, the gravest last: what says the same of several places is said once."""
    alike = defaultdict[tuple[str, str, str], list[Change | Finding]](list)
    for item in sorted(items, key=lambda item: (item.level, item.file, item.line, _column(item))):
        key = (item.code, item.message, item.fix) if isinstance(item, Finding) else (item.code, item.why, "")
        alike[key].append(item)
    for same in alike.values():
        places = {(item.file, item.line): None for item in same}
        yield finding(same[0], "".join(f"  {place(*at, colour)}: {_source(texts, *at)}".rstrip() + "\n" for at in places), colour)


def _source(texts: Mapping[str, list[str]], file: str, line: int) -> str:
    lines = texts.get(file, [])
    return printable(lines[line - 1].strip())[:_WIDTH] if 0 < line <= len(lines) else ""


def _texts(conversion: Conversion) -> dict[str, list[str]]:
    """The lines of the script and its modules, before and after, by the files that findings name."""
    files = [(conversion.shown, conversion.source, conversion.code), *((m.shown, m.source, m.code) for m in conversion.modules)]
    before = {shown: source.text.splitlines() for shown, source, _ in files}
    return before | {f"{shown}{_CONVERTED}": code.splitlines() for shown, _, code in files}


def _closing(conversion: Conversion, left: bool) -> str:
    """How much was done, and how sure the result is."""
    trial = conversion.trial
    if trial is not None:
        ran = f"In {trial.steps} steps, {trial.ranks} ranks trained like the original, largest relative difference {trial.difference:.1e}"
        ran = ran if trial.steps else "It ran, but no training was compared"
        sure = f"{'read the lines above' if left else 'nothing left to do'}. {ran}"
    elif not left:
        sure = "nothing left to do" + ". The analysis proves each change; the result has not been run" * bool(conversion.changes)
    elif not conversion.changes:
        sure = "nothing was converted. Change the lines above first, and convert again"
    elif any(item.level is Safety.MANUAL for item in conversion.findings):
        sure = "not finished. Until the lines above are changed by hand, the result may fail, hang or train wrongly"
    else:
        sure = "not proven to train like the original. Read the lines above, and compare by running both"
    return f"{summary(conversion).rstrip()}; {sure}.\n"


# --- words and looks -----------------------------------------------------------------------------------------------------


def _linked(text: str, file: str, line: int, colour: bool) -> str:
    """A text that leads to a line of a file (https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda)."""
    path = Path(os.path.abspath(file))
    if not colour or file.endswith(_CONVERTED) or not path.exists():
        return text
    return f"\x1b]8;;{path.as_uri()}#{line}\x1b\\{text}\x1b]8;;\x1b\\"


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
