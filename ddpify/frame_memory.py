"""Room for deep calls.

CPython keeps the frames of running functions in chunks of 16 KB. Where a loop far down calls across the end of a chunk, each call
maps memory and each return gives it back; the analysis, which calls itself for everything nested, loses a fifth of its time so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ENTRIES = 1 << 16  # half of a chunk of 1 MB: the other half is for what the function calls


def with_large_frame(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function's frame be so large that those above it share its chunk."""
    function.__code__ = function.__code__.replace(co_stacksize=_ENTRIES)
    return function
