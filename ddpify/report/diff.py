"""A unified diff that `git apply` and `patch -p1` accept."""

from __future__ import annotations

import os
import re
from pathlib import Path

_COLOURS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))


def unified(before: str, after: str, name: str, new: bool = False) -> str:
    """The diff from `before` to `after`, the empty string where they agree; `new` for a file that was not there before.

    Carriage returns stay inside their lines.
    """
    from difflib import unified_diff

    end = "\t" if " " in name else ""  # ends a file name that holds blanks
    lines = unified_diff(_lines(before), _lines(after), "/dev/null" if new else f"a/{name}{end}", f"b/{name}{end}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


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
    return "".join(_colour(line) for line in _lines(diff))


def _colour(line: str) -> str:
    for start, code in _COLOURS:
        if line.startswith(start):
            return f"\x1b[{code}m{line.rstrip()}\x1b[0m\n"
    return line


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
