"""What there is to say of a notebook's cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ddpify.records import dataclass, replace

Level = Literal["NOTE", "REVIEW", "MANUAL"]
Edit = tuple[int, int, str]
"""Where a piece of a text begins and ends, and what takes its place."""


@dataclass(frozen=True)
class Remark:
    """A sentence about a line of a cell, counted from 0, and what to write there."""

    line: int
    level: Level
    message: str
    fix: str = ""


def edited(text: str, edits: Sequence[Edit], remarks: Sequence[Remark]) -> tuple[str, list[Remark]]:
    """A text after edits, without the empty lines around it, and its remarks with the lines that they then stand at."""
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n"), len(text)]
    offsets = [starts[min(remark.line, len(starts) - 1)] for remark in remarks]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
        offsets = [max(start, at + len(new) - (end - start)) if at >= end else min(at, start) for at in offsets]
    empty = len(text) - len(text.lstrip("\n"))
    lines = [max(0, text.count("\n", 0, at) - empty) for at in offsets]
    text = text.strip("\n")
    return text, [replace(r, line=min(line, text.count("\n"))) for r, line in zip(remarks, lines, strict=True)]
