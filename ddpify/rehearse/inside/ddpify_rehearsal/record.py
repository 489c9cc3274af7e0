"""The record: lines of JSON, one file per process."""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import signal
import sys
import time
from typing import Any

FOLDER = os.environ["DDPIFY_REHEARSAL"]
RANKS = int(os.environ.get("DDPIFY_RANKS", "1"))
STEPS = int(os.environ.get("DDPIFY_STEPS", "0"))
DOUBLE = os.environ.get("DDPIFY_DOUBLE") == "1"
CLOCK = os.environ.get("DDPIFY_CLOCK") == "1"
_now = time.time  # whatever clock the script sees

_open: dict[int, int] = {}  # this process's file; a forked one gets its own
_conditions: set[str] = set()
_closed = False
_SETTLED = 0.25  # seconds in which gloo's threads end, which abort a process that ends with them (pytorch#190489)


def rank() -> int:
    """This process's rank; -1 where it is not known (yet)."""
    group = sys.modules.get("torch.distributed")
    if group is not None and group.is_available() and group.is_initialized():
        return int(group.get_rank())
    return int(os.environ.get("RANK", -1))


def world() -> int:
    """The ranks of the process group, or those that the launcher started; 1 for a process alone."""
    group = sys.modules.get("torch.distributed")
    if group is not None and group.is_available() and group.is_initialized():
        return int(group.get_world_size())
    return int(os.environ.get("WORLD_SIZE", 1))


def emit(kind: str, **data: Any) -> None:
    """Add an event; nothing more once the rehearsed part is over."""
    if _closed and kind != "exit":
        return
    pid = os.getpid()
    if pid not in _open:
        _open.clear()
        _open[pid] = os.open(f"{FOLDER}/{pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    event = {"at": _now(), "pid": pid, "rank": rank(), "world": world(), "kind": kind, **data}
    os.write(_open[pid], (json.dumps(event, default=str) + "\n").encode())


def condition(name: str) -> None:
    """Note, once, that the comparison rests on something."""
    if name not in _conditions:
        _conditions.add(name)
        emit("condition", name=name)


def close() -> None:
    """End the record: what follows is not compared."""
    global _closed
    emit("enough")
    _closed = True


def start() -> None:
    """Begin the record of this process."""
    emit("start", argv=sys.orig_argv[1:])
    if hasattr(signal, "SIGUSR1"):  # asked for when the ranks hang
        stacks = open(f"{FOLDER}/{os.getpid()}.stacks", "w")  # noqa: SIM115, it stays open
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    atexit.register(_end)


def _end() -> None:
    group = sys.modules.get("torch.distributed")
    left = group is not None and group.is_available() and group.is_initialized()
    emit("exit", left_open=bool(left))
    if group is not None and left:
        group.destroy_process_group()
    if RANKS > 1:
        time.sleep(_SETTLED)
