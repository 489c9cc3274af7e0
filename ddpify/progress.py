"""What a conversion is doing, on a line of standard error that a terminal shows when it takes longer than a second."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AFTER = 1.0  # seconds
_EVERY = 0.1
_listener: Callable[[str], None] | None = None


def doing(what: str) -> None:
    """Tell what is being done, where someone looks on."""
    if _listener is not None:
        _listener(what)


@contextmanager
def shown() -> Iterator[None]:
    """Show what is being done inside, where standard error is a terminal; the line is gone afterwards."""
    global _listener
    if not sys.stderr.isatty():
        yield
        return
    begun, last = time.monotonic(), 0.0

    def show(what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - begun > AFTER and now - last > _EVERY:
            text = what[: shutil.get_terminal_size((80, 24)).columns - 1]
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            last = now

    _listener = show
    try:
        yield
    finally:
        _listener = None
        if last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
