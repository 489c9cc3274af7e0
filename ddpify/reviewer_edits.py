"""Lines that a reviewer edits: taken out of a conversion onto a sheet for the editor, and put back."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddpify.attribution import FileDiff
from ddpify.conversion import Conversion
from ddpify.errors import DdpifyError
from ddpify.records import replace
from ddpify.report.diff import opcodes, split
from ddpify.source import Source

MARK = "# >>> ddpify: "
"""What the lines begin with that say, on a sheet, where the lines below them are from."""


@dataclass(frozen=True)
class Place:
    """Lines of a file that are edited: from the index `start` up to `end`."""

    shown: str
    start: int
    end: int


def texts(conversion: Conversion) -> dict[str, str]:
    """What each changed file holds after the conversion, by the path shown."""
    return {conversion.shown: conversion.code} | {module.shown: module.code for module in conversion.edited}


def places(files: Sequence[FileDiff], change: str, now: Mapping[str, str]) -> list[Place]:
    """Where the hunks of a change are in the files as they are `now`: other changes may have been left out, and lines edited."""
    out = []
    for file in files:
        if file.shown not in now:
            continue
        after = [line.text.removeprefix("\ufeff") for line in file.lines if line.kind != "-"]
        codes = opcodes(after, split(now[file.shown]))
        for hunk in file.hunks(change=change):
            new = [line.new - 1 for line in hunk if line.new is not None]
            if new:
                out.append(Place(file.shown, _moved(codes, new[0])[0], _moved(codes, new[-1])[1]))
    return out


def _moved(codes: Sequence[tuple[str, int, int, int, int]], at: int) -> tuple[int, int]:
    """Where a line went: from this index up to that one."""
    kind, i, _, k, m = next(code for code in codes if code[1] <= at < code[2])
    return (k + at - i, k + at - i + 1) if kind == "equal" else (k, m)


def sheet(where: Sequence[Place], now: Mapping[str, str], why: str) -> str:
    """The lines for the editor, below what they are about; their ends are those of Unix."""
    out = f"{MARK}{why}\n{MARK}lines like this one stay where they are, and go away again\n"
    for place in where:
        lines = split(now[place.shown])[place.start : place.end]
        out += f"{MARK}{place.shown}, from line {place.start + 1}\n" + "".join(f"{_without_newline(line)}\n" for line in lines)
    return out


def put_back(edited: str, where: Sequence[Place], now: Mapping[str, str], sources: Mapping[str, Source]) -> dict[str, str]:
    """The files with what was written on a sheet. Raises DdpifyError where it cannot be separated, parsed or encoded."""
    parts: list[list[str]] = []
    for line in edited.replace("\r\n", "\n").removesuffix("\n").split("\n"):
        if line.startswith(MARK):
            parts.append([])
        elif parts:
            parts[-1].append(line)
        elif line.strip():
            raise DdpifyError(f"there is a line before the first {MARK.strip()!r}", "leave these lines where they are")
    if len(parts) != len(where) + 2:
        raise DdpifyError(f"the lines that begin with {MARK.strip()!r} are not those that were there", "leave them where they are")
    out = dict(now)
    for place, part in reversed(list(zip(where, parts[2:], strict=True))):
        lines = split(out[place.shown])
        lines[place.start : place.end] = _ended(lines[place.start : place.end], part, sources[place.shown].newline)
        out[place.shown] = "".join(lines)
    for shown, text in out.items():
        if text != now[shown]:
            _check(shown, text, sources[shown])
    return out


def _ended(old: Sequence[str], new: Sequence[str], newline: str) -> list[str]:
    """Edited lines with their ends: those that stay keep theirs."""
    out: list[str] = []
    for kind, i, j, k, m in opcodes([_without_newline(line) for line in old], new):
        out += old[i:j] if kind == "equal" else [line + newline for line in new[k:m]]
    return [line if line.endswith("\n") or at + 1 == len(out) else line + newline for at, line in enumerate(out)]


def _check(shown: str, text: str, source: Source) -> None:
    source.encode(text)
    try:
        ast.parse(text)
    except SyntaxError as error:
        number = error.lineno or 1
        line = (text.splitlines() or [""])[min(number, text.count("\n") + 1) - 1].strip()
        raise DdpifyError(f"{shown} can then not be read: {error.msg}, line {number}: {line}", "edit it again") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise DdpifyError(f"{shown} can then not be read: {error}", "edit it again") from error


def _without_newline(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def rewritten(conversion: Conversion, now: Mapping[str, str]) -> Conversion:
    """The conversion with these texts."""
    modules = tuple(replace(module, code=now.get(module.shown, module.code)) for module in conversion.modules)
    return replace(conversion, code=now[conversion.shown], modules=modules)
