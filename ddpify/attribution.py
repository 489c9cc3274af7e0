"""Which changes each line of a conversion's diff belongs to.

A line belongs to a change if it is another one, or is not there, when the conversion is made without that change. So nothing of how edits
are carried out has to be known, and lines that several changes had a part in belong to all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ddpify.progress import doing
from ddpify.report.diff import Opcode, opcodes, relative_name, split
from ddpify.rules.base import span

if TYPE_CHECKING:
    from ddpify.conversion import Conversion
    from ddpify.rules.base import Change


@dataclass(frozen=True)
class Line:
    """A line of a diff with its end, its 1-based numbers in the file before and after, and the ids of the changes that it belongs to."""

    kind: Literal[" ", "-", "+"]
    text: str
    old: int | None
    new: int | None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileDiff:
    """All lines of a file that a conversion changes, or adds; `shown` is its path in findings, `name` that in the patch."""

    shown: str
    name: str
    added: bool
    lines: tuple[Line, ...]

    def hunks(self, context: int = 3, change: str | None = None) -> Iterator[tuple[Line, ...]]:
        """The changed lines, all or those of one change, with `context` other ones around them, as the patch has them."""
        changed = [at for at, line in enumerate(self.lines) if (line.kind != " " if change is None else change in line.changes)]
        start = end = 0
        for at in changed:
            if end and at > end + context:
                yield self.lines[start:end]
            start, end = (start if end and at <= end + context else max(at - context, 0)), at + 1 + context
        if end:
            yield self.lines[start:end]


@dataclass
class _File:
    """One file before and after, and what has been found of its lines: ids by index."""

    shown: str
    name: str
    added: bool
    before: list[str]
    after: list[str]
    old: defaultdict[int, list[str]]
    new: defaultdict[int, list[str]]

    @cached_property
    def opcodes(self) -> list[Opcode]:
        return opcodes(self.before, self.after)


def attributed(conversion: Conversion) -> tuple[FileDiff, ...]:
    """The files that a conversion changes, each with the changes that its lines belong to; every changed line has one."""
    unmoved = conversion.remade((), "rewritten")
    files = _files(unmoved)
    for at, change in enumerate(conversion.changes):
        doing(f"finding the lines of each change, {at} of {len(conversion.changes)} done")
        _compare(files, _texts(conversion.remade({change.id}, "rewritten")), change.id)
    moving = [change.id for change in conversion.changes if change.code == "DDP106"]
    if unmoved.code != conversion.code:
        files[conversion.shown] = _moved(files[conversion.shown], split(_bom(conversion) + conversion.code), moving)
    return tuple(_finished(file, conversion.changes) for file in files.values() if file.before != file.after)


def _bom(conversion: Conversion) -> str:
    return "\ufeff" if conversion.source.bom else ""


def _files(conversion: Conversion) -> dict[str, _File]:
    entry = _bom(conversion)
    name = relative_name(conversion.path, conversion.shown)
    texts = [(conversion.shown, name, False, entry + conversion.original, entry + conversion.code)]
    for module in conversion.edited:
        mark = "\ufeff" if module.source.bom else ""
        before = "" if module.added else mark + module.source.original
        texts.append((module.shown, relative_name(module.path, module.shown), module.added, before, mark + module.code))
    return {
        shown: _File(shown, name, added, split(before), split(after), defaultdict(list), defaultdict(list))
        for shown, name, added, before, after in texts
    }


def _texts(conversion: Conversion) -> dict[str, list[str]]:
    """The lines of each file that is changed."""
    return {shown: file.after for shown, file in _files(conversion).items()}


def _compare(files: dict[str, _File], without: dict[str, list[str]], change: str) -> None:
    """Note the lines that are not the same without a change."""
    for shown, file in files.items():
        other = without.get(shown, file.before)
        if other == file.after:
            continue
        around = opcodes(other, file.after)
        for kind, _, _, start, end in around:
            for at in range(start, end) if kind != "equal" else ():
                file.new[at].append(change)
        common = _common_lines(file, other, around)
        for kind, start, end, _, _ in file.opcodes:
            for at in range(start, end) if kind != "equal" else ():
                if at in common:
                    file.old[at].append(change)


def _common_lines(file: _File, other: list[str], around: Sequence[Opcode]) -> set[int]:
    """The lines of the file before that are in another text of it, which `around` compares with the file after.

    Most lines of all three are the same ones: only what lies between these is searched.
    """
    in_other = {k + by: i + by for kind, i, j, k, _ in around if kind == "equal" for by in range(j - i)}
    old = new = 0
    kept: set[int] = set()
    for kind, i, j, k, _ in (*file.opcodes, ("equal", len(file.before), len(file.before) + 1, len(file.after), len(file.after) + 1)):
        for by in range(j - i) if kind == "equal" else ():
            at = in_other.get(k + by) if i + by < len(file.before) else len(other)
            if at is None:
                continue
            for same, a, b, _, _ in opcodes(file.before[old : i + by], other[new:at]) if old < i + by and new < at else ():
                kept.update(range(old + a, old + b) if same == "equal" else ())
            kept.add(i + by)
            old, new = i + by + 1, at + 1
    return kept


def _moved(file: _File, after: list[str], moving: list[str]) -> _File:
    """A file under mp.spawn: its lines, further in, still belong to what they belonged to."""
    new: defaultdict[int, list[str]] = defaultdict(list)
    stripped = [line.strip() for line in file.after], [line.strip() for line in after]
    for kind, i, _, start, end in opcodes(*stripped):
        for by, at in enumerate(range(start, end)):
            if kind == "equal":
                new[at] += file.new[i + by]
                new[at] += moving if file.after[i + by] != after[at] else []
            else:
                new[at] += moving
    done = _File(file.shown, file.name, file.added, file.before, after, file.old, new)
    for kind, start, end, _, _ in done.opcodes:
        for at in range(start, end) if kind != "equal" else ():
            done.old[at] = done.old[at] or list(moving)
    return done


def _finished(file: _File, changes: Sequence[Change]) -> FileDiff:
    """The lines in the order of a diff; those that no change alone had a part in go to the changes around them."""
    mine = [change for change in changes if change.file == file.shown] or list(changes)
    owning = {*(n for ids in (*file.old.values(), *file.new.values()) for n in ids)}
    early = [change for change in mine if change.edits and change.id not in owning]  # carried out before all others
    lines: list[Line] = []
    for kind, i, j, k, m in file.opcodes:
        if kind == "equal":
            lines += [Line(" ", file.before[i + by], i + by + 1, k + by + 1) for by in range(j - i)]
            continue
        for at in range(i, j):
            file.old[at] += [c.id for c in early if any(start <= at + 1 <= end for start, end in _spans(c))]
        around = [*(n for at in range(i, j) for n in file.old[at]), *(n for at in range(k, m) for n in file.new[at])]
        around = around or _near(mine, i + 1, max(j, i + 1))
        old, new = ([ids[at] for at in span] for ids, span in ((file.old, range(i, j)), (file.new, range(k, m))))
        lines += [Line("-", file.before[i + at], i + at + 1, None, _ids(one or around)) for at, one in enumerate(old)]
        lines += [Line("+", file.after[k + at], None, k + at + 1, _ids(_next(new, at) or around)) for at in range(m - k)]
    return FileDiff(file.shown, file.name, file.added, tuple(lines))


def _next(ids: Sequence[list[str]], at: int) -> list[str]:
    """The ids of a line; of one that several changes share, such as the head of their block, those of the lines behind it, or before."""
    return next((one for one in (*ids[at:], *reversed(ids[:at])) if one), [])


def _near(changes: Sequence[Change], first: int, last: int) -> list[str]:
    """The changes about lines of the file before, else the one that is nearest to them."""
    inside = [c.id for c in changes if any(start <= last and end >= first for start, end in _spans(c))]
    return inside or [min(changes, key=lambda c: min(abs(c.line - first), abs(c.line - last))).id]


def _spans(change: Change) -> list[tuple[int, int]]:
    """The first and the last line of what a change is about."""
    return [span(node) for node in (change.node, *(edit.node for edit in change.edits))]


def _ids(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))
