"""Every failure a user can cause: what happened, where, and what to do about it."""

from __future__ import annotations

from ddpify.records import dataclass


@dataclass(frozen=True)
class Where:
    """A place in a file: `line` counts from 1, `column` from 1, `text` is the offending line."""

    path: str
    line: int = 0
    column: int = 0
    text: str = ""

    def __str__(self) -> str:
        parts = [self.path, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts)


class DdpifyError(Exception):
    """An expected failure, shown without a traceback; the command line exits with 2."""

    def __init__(self, title: str, hint: str = "", where: Where | None = None) -> None:
        super().__init__(title)
        self.title = title
        self.hint = hint
        self.where = where
