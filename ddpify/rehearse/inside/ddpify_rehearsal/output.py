"""What a process says: the lines that it prints, its warnings, and how it fails."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from types import FrameType
from typing import Any, NoReturn

from ddpify_rehearsal import record

_LINES = 20_000  # lines of one process that are kept
_LENGTH = 500
_PROJECT = os.environ.get("DDPIFY_SCRATCH", "") or "?"
_recorded = 0
_warning = False  # a warning is shown: it is recorded as one, not as lines


class _Recorded:
    """A stream whose whole lines are recorded, too; redrawn ones, such as progress bars, are not."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name, self._line = stream, name, ""

    def write(self, text: str) -> Any:
        """Write, and tell the lines that are complete."""
        written = self._stream.write(text)
        if isinstance(text, str) and _recorded < _LINES:
            *lines, rest = (self._line + text[-1_000_000:]).split("\n")
            for line in lines:
                _tell(self._name, line)
            self._line = rest[-10 * _LENGTH :]
        return written

    def writelines(self, lines: Any) -> None:
        """Write line by line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush what lies below."""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _tell(stream: str, line: str) -> None:
    global _recorded
    redrawn = "\r" in line
    line = line.split("\r")[-1].rstrip()
    if line and _recorded < _LINES and not _warning and not _by_a_package():
        _recorded += 1
        record.emit("line", stream=stream, text=line[:_LENGTH], redrawn=redrawn)
        if _recorded == _LINES:
            record.emit("lines_cut")


def _by_a_package() -> bool:
    """Whether a package says it while it is imported, which nothing that the script could write keeps to one rank."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_PROJECT):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _text(*failure: Any) -> str:
    return "".join(traceback.format_exception(*failure))[-50_000:]


def _error(kind: str, text: str) -> dict[str, Any]:
    """The error in a line; of a spawned child, which its parent tells, the child's."""
    if child := re.match(r"\s*-- Process (\d+) terminated with the following error:", text):
        lines = text.rstrip().splitlines()
        found = [line for line in lines if re.match(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b", line)] or lines
        return {"error": found[-1][:_LENGTH], "child": int(child[1])}
    return {"error": f"{kind}: {text}"[:_LENGTH]}


def install() -> None:
    """Listen."""
    sys.stdout, sys.stderr = _Recorded(sys.stdout, "stdout"), _Recorded(sys.stderr, "stderr")  # type: ignore[assignment]
    show, hook = warnings.showwarning, sys.excepthook

    def warned(message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
        by = sys._getframe(1)  # whoever warns; `filename` may be its caller's
        while by.f_back is not None and by.f_code.co_filename == warnings.__file__:
            by = by.f_back
        source = by.f_code.co_filename
        record.emit("warning", category=category.__name__, text=str(message)[:_LENGTH], file=filename, line=lineno, by=source)
        global _warning
        _warning = True
        show(message, category, filename, lineno, file, line)
        _warning = False

    def failed(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        record.emit("failed", text=_text(kind, value, trace), **_error(kind.__name__, str(value)))
        hook(kind, value, trace)

    leave = sys.exit

    def leaving(status: Any = None) -> NoReturn:
        if status not in (None, 0):
            record.emit("leaves", status=str(status)[:_LENGTH])
        leave(status)

    warnings.showwarning, sys.excepthook, sys.exit = warned, failed, leaving
