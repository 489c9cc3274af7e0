"""What the script's own expressions give at the places that were asked about: their text is put into a call of `seen`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from ddpify_rehearsal import record
from ddpify_rehearsal.loaders import batch_now
from ddpify_rehearsal.training import digest

_TIMES = 200  # the value at a place is recorded so often
_ROWS = 256  # rows of a tensor that are recorded one by one
_PARTS = 8  # entries of a list, a tuple or a dict that are recorded
_recorded: Counter[int] = Counter()


def seen(number: int, value: Any) -> Any:
    """Record what the place with a number gives, and return it."""
    if _recorded[number] < _TIMES:
        _recorded[number] += 1
        record.emit("value", number=number, batch=batch_now(), parts=_parts(value))
    return value


def _parts(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=str)]
    if isinstance(value, (list, tuple)):
        return [part for entry in value[:_PARTS] for part in _parts(entry)]
    if value is None or isinstance(value, (str, bytes)):
        return [{"text": repr(value)[:200]}]
    try:
        tensor = torch.as_tensor(value).detach()
        rows = [digest(row)[0] for row in tensor[:_ROWS]] if tensor.dim() else []
        return [{"digest": digest(tensor), "rows": rows, "whole": not tensor.dim() or len(tensor) <= _ROWS}]
    except (TypeError, ValueError, RuntimeError):  # no number, nor a tensor of numbers
        return [{"unknown": type(value).__name__}]
