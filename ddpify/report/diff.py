"""A unified diff that `git apply` and `patch -p1` accept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

Opcode = tuple[str, int, int, int, int]
"""`equal`, `replace`, `insert` or `delete`, and the lines that it is about, before and after."""

_COLOURS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))


def unified(before: str, after: str, name: str, new: bool = False, context: int = 3) -> str:
    """The diff from `before` to `after`, the empty string where they agree; `new` for a file that was not there before."""
    old, now = split(before), split(after)
    end = "\t" if " " in name else ""  # ends a file name that holds blanks
    out = [f"--- {'/dev/null' if new else f'a/{name}{end}'}\n", f"+++ b/{name}{end}\n"]
    for hunk in grouped(opcodes(old, now), context):
        (_, i, _, k, _), (_, _, j, _, m) = hunk[0], hunk[-1]
        out.append(f"@@ -{_span(i, j)} +{_span(k, m)} @@\n")
        for kind, i, j, k, m in hunk:
            if kind == "equal":
                out += [f" {line}" for line in old[i:j]]
            else:
                out += [*(f"-{line}" for line in old[i:j]), *(f"+{line}" for line in now[k:m])]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out if out[2:])


def opcodes(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    """How one text becomes another; the lines that both begin and end with are not searched."""
    most = min(len(before), len(after))
    head = next((i for i in range(most) if before[i] != after[i]), most)
    tail = next((i for i in range(most - head) if before[-1 - i] != after[-1 - i]), most - head)
    inner = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False).get_opcodes()
    first: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    last: list[Opcode] = [("equal", len(before) - tail, len(before), len(after) - tail, len(after))] if tail else []
    return [*first, *((kind, i + head, j + head, k + head, m + head) for kind, i, j, k, m in inner), *last]


def grouped(codes: Sequence[Opcode], context: int) -> Iterator[list[Opcode]]:
    """The hunks: what is changed, with `context` lines around it."""
    hunk: list[Opcode] = []
    for at, (kind, i, j, k, m) in enumerate(codes):
        if kind != "equal":
            hunk.append((kind, i, j, k, m))
            continue
        if hunk:
            end = j - i if j - i <= 2 * context and at + 1 < len(codes) else min(j - i, context)
            hunk.append((kind, i, i + end, k, k + end))
            if end == j - i and at + 1 < len(codes):
                continue
            yield hunk
            hunk = []
        if at + 1 < len(codes):
            start = min(j - i, context)
            hunk = [(kind, j - start, j, m - start, m)]
    if hunk:
        yield hunk


def _span(start: int, end: int) -> str:
    """Lines as a hunk's head names them."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"


def relative_name(path: Path | None, shown: str) -> str:
    """The file's name in a diff: relative to the current directory where it lies below it, else without the leading slash."""
    if path is None:
        return shown.strip("<>") or "script.py"
    absolute = Path(os.path.abspath(path))
    try:
        return absolute.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return absolute.relative_to(absolute.anchor).as_posix()


def coloured(diff: str) -> str:
    """The diff for a terminal."""
    return "".join(_colour(line) for line in split(diff))


def _colour(line: str) -> str:
    for start, code in _COLOURS:
        if line.startswith(start):
            return f"\x1b[{code}m{line.rstrip()}\x1b[0m\n"
    return line


def split(text: str) -> list[str]:
    """The lines of a text with their ends; carriage returns stay inside their lines."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
