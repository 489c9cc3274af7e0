"""Scripts that are forked from one process, which has imported torch: each finds what it would find in a new interpreter.

`ddpify_forks.py SOCKET` is asked for scripts over the socket of that number. A request is the path of a JSON file, sent with the script's
input and output. It is answered with the script's process, and later with how that ended. When the socket is closed, all ends.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

_TURN = 0.02  # seconds
_PATIENCE = 30  # seconds that a launcher leaves ranks to end in when one has failed


def main() -> None:
    """Answer requests; in a process that is forked, be what was asked for."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    own, before = _own_name(), set(os.environ)
    import numpy as np
    import torch._dynamo  # noqa: F401, the first optimizer imports it

    gc.collect()
    gc.freeze()  # what was imported is the same for all scripts, and none looks through it again
    connection.send(json.dumps({"threads": len(os.listdir("/proc/self/task"))}).encode())  # noqa: PTH208, names are enough
    asked = _asked(connection)
    np.random.seed()  # random does so by itself
    _become(own, {name: value for name, value in os.environ.items() if name not in before}, *asked)
    line = list(asked[0]["line"])
    if asked[0]["ranks"]:
        line = _ranks(asked[0]["ranks"], line, asked[0]["local_rank_passed"])
    sys.orig_argv[1:] = line
    import ddpify_rehearsal

    ddpify_rehearsal.install()
    from ddpify_rehearsal import record

    record.condition("forked")
    _run(line)


def _asked(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What is asked for, in a new process; in this one, the end."""
    running: set[int] = set()
    while True:
        if select.select([connection], [], [], _TURN if running else None)[0]:
            message, files, _, _ = socket.recv_fds(connection, 1 << 12, 2)
            if not message:
                for child in running:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                os._exit(0)
            child = os.fork()
            if not child:
                connection.close()
                return json.loads(Path(os.fsdecode(message)).read_text()), files
            for file in files:
                os.close(file)
            running.add(child)
            connection.send(json.dumps({"process": child}).encode())
        for child, code in _ended(running):
            running.remove(child)
            connection.send(json.dumps({"process": child, "code": code}).encode())


def _ended(children: set[int]) -> list[tuple[int, int]]:
    """The children that have ended, and their exit codes: those of a signal are negative."""
    looked = ((child, *os.waitpid(child, os.WNOHANG)) for child in children)
    return [(child, os.waitstatus_to_exitcode(status)) for child, ended, status in looked if ended]


# --- a process like a new one ---------------------------------------------------------------------------------------------
def _own_name() -> int:
    """Where the process keeps the run that it belongs to, among what the system tells of its environment."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    return int(getenv(b"DDPIFY_RUN"))


def _become(own: int, added: dict[str, str], asked: dict[str, Any], files: list[int]) -> None:
    """Take on the session, files, folder and environment that were asked for; `added` is what torch puts into an environment."""
    os.setsid()
    for file, at in zip((*files, files[1]), (0, 1, 2), strict=True):
        os.dup2(file, at)
    for file in files:
        os.close(file)
    os.chdir(asked["folder"])
    ctypes.memmove(own, asked["environment"]["DDPIFY_RUN"].encode(), len(os.environ["DDPIFY_RUN"]))
    before = _searched(os.environ)
    os.environ.clear()
    os.environ.update(added | asked["environment"])
    sys.path[1:] = dict.fromkeys([*_searched(os.environ), *(path for path in sys.path[1:] if path not in before)])


def _searched(environment: Any) -> list[str]:
    return [str(Path(path).absolute()) for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def _run(line: list[str]) -> None:
    """Run a script as the interpreter itself does: by its path, or by the name of its module after `-m`."""
    as_main(lambda names: _execute(line, names))


def _execute(line: list[str], names: dict[str, Any]) -> None:
    if line[0] == "-m":
        sys.argv, sys.path[0] = line[1:], str(Path.cwd())
        runpy._run_module_as_main(line[1])  # type: ignore[attr-defined]
    else:
        sys.argv, sys.path[0] = line, str(Path(line[0]).resolve().parent)
        names.update(__file__=line[0], __cached__=None, __loader__=SourceFileLoader("__main__", line[0]))
        with io.open_code(line[0]) as file:
            text = file.read()
        exec(compile(text, line[0], "exec", dont_inherit=True), names)


def as_main(execute: Callable[[dict[str, Any]], None]) -> None:
    """Execute something among the names of a new main module; its errors are shown and end the process, as the interpreter's are."""
    names = vars(sys.modules["__main__"])
    names.clear()
    names.update(__name__="__main__", __doc__=None, __package__=None, __spec__=None, __annotations__={}, __builtins__=builtins)
    try:
        execute(names)
    except SystemExit:
        raise
    except BaseException as error:
        own = error.__traceback__
        while own and own.tb_frame.f_code.co_filename in (__file__, execute.__code__.co_filename):
            own = own.tb_next
        error.__traceback__ = own
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1) from None


# --- ranks ----------------------------------------------------------------------------------------------------------------
def _ranks(number: int, line: list[str], passed: bool) -> list[str]:
    """Be a launcher of ranks, which never returns; in each rank, what it runs. `passed`: its local rank is one of the arguments."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    ranks: dict[int, int] = {}
    for rank in range(number):
        child = os.fork()
        if not child:
            listening.close()
            os.environ.update(_environment(rank, number, port))
            for each in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):  # a launcher handles them, so that its ranks do not ignore them
                signal.signal(each, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            at = 2 if line[0] == "-m" else 1
            return [*line[:at], *([f"--local-rank={rank}"] if passed else []), *line[at:]]
        ranks[child] = rank
    from torch.distributed import TCPStore

    _store = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach())
    os._exit(_looked_after(ranks))


def _environment(rank: int, number: int, port: int) -> dict[str, str]:
    """What torchrun tells a rank."""
    found = {"RANK": rank, "LOCAL_RANK": rank, "ROLE_RANK": rank, "GROUP_RANK": 0, "ROLE_NAME": "default", "GROUP_WORLD_SIZE": 1}
    found |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"), number)
    found |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_USE_AGENT_STORE": True}
    found |= {"TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0}
    return {name: str(value) for name, value in found.items()}


def _looked_after(ranks: dict[int, int]) -> int:
    """Wait for all ranks, end them as soon as one fails, and tell of it as torchrun does."""
    running, failed, until = set(ranks), "", 0.0
    while running:
        for child, code in _ended(running):
            running.remove(child)
            if code and not failed:
                name = f" ({signal.Signals(-code).name})" if code < 0 else ""
                failed = f"ChildFailedError\nRoot Cause:\n  rank : {ranks[child]}\n  exitcode : {code} (pid: {child}){name}\n"
                until = time.monotonic() + _PATIENCE
                for other in running:
                    os.kill(other, signal.SIGTERM)
        if failed and time.monotonic() > until:
            for other in running:
                os.kill(other, signal.SIGKILL)
        time.sleep(_TURN)
    os.write(2, failed.encode())
    return 1 if failed else 0


if __name__ == "__main__":
    import ddpify_forks  # this file as a module: `__main__` is to be the script's

    ddpify_forks.main()
