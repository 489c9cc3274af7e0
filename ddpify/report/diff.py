"""A unified diff that `git apply` and `patch -p1` accept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

Opcode = tuple[str, int, int, int, int]
"""`equal`, `replace`, `insert` or `delete`, and the lines that it is about, before and after."""

_QUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')


def unified(before: str, after: str, name: str, new: bool = False, context: int = 3) -> str:
    """The diff from `before` to `after`, the empty string where they agree; `new` for a file that was not there before."""
    old, now = split(before), split(after)
    out = [f"--- {'/dev/null' if new else _named(f'a/{name}')}\n", f"+++ {_named(f'b/{name}')}\n"]
    for hunk in grouped(opcodes(old, now), context):
        (_, i, _, k, _), (_, _, j, _, m) = hunk[0], hunk[-1]
        out.append(f"@@ -{span(i, j)} +{span(k, m)} @@\n")
        for kind, i, j, k, m in hunk:
            if kind == "equal":
                out += [f" {line}" for line in old[i:j]]
            else:
                out += [*(f"-{line}" for line in old[i:j]), *(f"+{line}" for line in now[k:m])]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out if out[2:])


def _named(name: str) -> str:
    """A file's name as git and patch read it: what would end it is quoted, and a tab ends one that holds blanks."""
    if _QUOTED.search(name):
        return '"' + _QUOTED.sub(lambda found: f"\\{ord(found[0]):03o}", name) + '"'
    return f"{name}\t" if " " in name else name


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


def span(start: int, end: int) -> str:
    """Lines as a hunk's head names them: `start` counts from 0, `end` is the one after the last."""
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


def encoded(diff: str, encoding: str) -> bytes:
    """The diff of one file as a patch has it: the file's name as the system has it, its lines in its own encoding."""
    head, at, lines = diff.partition("\n@@")
    return os.fsencode(head) + (at + lines).encode(encoding)


def split(text: str) -> list[str]:
    """The lines of a text with their ends; carriage returns stay inside their lines."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
