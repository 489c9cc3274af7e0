"""Which of the lines that were asked about the script came to. The script is traced no longer than until it has come to all of them."""

from __future__ import annotations

import json
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

from ddpify_rehearsal import record

_asked: dict[str, dict[int, int]] = {}  # by file, the lines to come, and their numbers in the list
_within: dict[CodeType, bool] = {}  # whether there are lines to come in a function


def _entered(frame: FrameType, event: str, argument: Any) -> Any:
    """A function is called: its lines are followed where some of them are asked about."""
    code = frame.f_code
    if code not in _within:
        lines = _asked.get(code.co_filename)
        _within[code] = bool(lines) and any(line in lines for _, _, line in code.co_lines())
    return _followed if _within[code] else None


def _followed(frame: FrameType, event: str, argument: Any) -> Any:
    file, line = frame.f_code.co_filename, frame.f_lineno
    if event == "line" and line in _asked.get(file, ()):
        record.emit("line_ran", number=_asked[file].pop(line))
        if not any(_asked.values()):
            threading.settrace(None)  # type: ignore[arg-type]
            sys.settrace(None)
            return None
    return _followed


def install() -> None:
    """Begin to follow the script."""
    for number, (file, line) in enumerate(json.loads(os.environ.get("DDPIFY_LINES", "[]"))):
        _asked.setdefault(file, {})[line] = number
    if _asked:
        threading.settrace(_entered)
        sys.settrace(_entered)
