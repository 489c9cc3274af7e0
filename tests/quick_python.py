"""A Python whose processes need not import torch: each is a fork of one that has.

`python()` is the path of a program to use in the place of `sys.executable`, wherever tests start processes that are not about starting.
It runs `FILE`, `-m MODULE` and `-c CODE` in a fork, with the caller's arguments, files, folder and environment; anything else, and where an
environment asks for what only a new interpreter can do, is started as usual. `quick_python.py SOCKET` is the process that is forked.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import functools
import gc
import importlib.util
import io
import json
import multiprocessing.process
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "ddpify/rehearse/inside"))
import ddpify_forks  # noqa: E402, what a process like a new one is made with

sys.path.pop()
_LARGEST = 1 << 20  # bytes of a request
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_HIGH = 1 << 10  # the first number of files while others take on theirs

# What runs in the caller's place: it hands over what it was given, passes signals on, and ends as the fork does.
_CALLER = """\
#!{python} -ISB
import os, sys
words, environment = sys.argv[1:], os.environ
new = "DDPIFY_REHEARSAL" in environment or any(
    name.startswith(("PYTHON", "TORCH_")) and name not in {common} and value != {known}.get(name) for name, value in environment.items()
)
at = 0
while words[at:] and words[at] in ("-u", "-B"):
    at += 1
if new or not words[at:] or words[at].startswith("-") and words[at] not in ("-m", "-c"):
    os.execv({python!r}, [{python!r}, *words])
import array, json, signal, socket
server = socket.socket(socket.AF_UNIX)
try:
    server.connect({path!r})
except OSError:
    os.execv({python!r}, [{python!r}, *words])
own = server.fileno()
files = []
for number in map(int, os.listdir("/proc/self/fd")):
    try:
        if number != own and (number < 3 or os.get_inheritable(number)):
            files.append(number)
    except OSError:
        pass
ignored = [int(number) for number in signal.valid_signals() if number < 32 and signal.getsignal(number) is signal.SIG_IGN]
asked = dict(words=words, at=at, folder=os.getcwd(), environment=dict(environment), files=files, ignored=ignored, name=sys.argv[0])
asked = json.dumps(asked).encode()
sent = array.array("i", files)
server.sendmsg([len(asked).to_bytes(8, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
server.sendall(asked)
child = int.from_bytes(server.recv(8), "little")
def passed_on(number, _):
    try:
        os.kill(child, number)
    except ProcessLookupError:
        pass
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    if number not in ignored:
        signal.signal(number, passed_on)
answer = server.recv(8)
code = os.waitstatus_to_exitcode(int.from_bytes(answer, "little")) if answer else 1
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def python() -> str:
    """The program's path; the process that is forked ends with this one."""
    return _server()[0]


def forked(recursive: bool = False) -> list[psutil.Process]:
    """What is forked and still runs, and on demand what such processes have started: none of it is a child of whoever asked for it."""
    import psutil  # not in the process that is forked: a script may bring a module of this name

    found = []
    for process in psutil.Process(_server()[1]).children(recursive):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [process] if process.status() != psutil.STATUS_ZOMBIE else []
    return found


def left() -> list[psutil.Process]:
    """What still runs of the runs that `ddpify verify` gives names to."""
    return [process for process in forked(recursive=True) if _run_of(process).strip("0")]


def _run_of(process: psutil.Process) -> str:
    import psutil

    try:
        return process.environ().get("DDPIFY_RUN", "") if process.status() != psutil.STATUS_ZOMBIE else ""
    except (psutil.Error, OSError):
        return ""


@functools.cache
def _server() -> tuple[str, int]:
    folder = tempfile.TemporaryDirectory(prefix="python-")
    program, path = Path(folder.name, "python"), str(Path(folder.name, "socket"))
    known = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "TORCH_"))} | {"PYTHONHASHSEED": "0"}
    common = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "TORCH_NCCL_ASYNC_ERROR_HANDLING")
    program.write_text(_CALLER.format(python=sys.executable, path=path, common=common, known=known))
    program.chmod(0o755)
    given = {name: value for name, value in os.environ.items() if not name.startswith("DDPIFY_")}
    given |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "DDPIFY_RUN": "0" * 16, "PYTHONHASHSEED": "0"}
    given["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, path]
    server = subprocess.Popen(command, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert server.stdin and server.stdout
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        assert server.stdin
        server.stdin.close()
        server.wait(60)
        folder.cleanup()

    atexit.register(end)
    return str(program), server.pid


# --- the process that is forked -------------------------------------------------------------------------------------------
def main(path: str) -> None:
    """Serve until the input is closed; in a fork, be what was asked for."""
    import libcst  # noqa: F401
    import numpy as np
    import torch._dynamo
    import torch.distributed.elastic.multiprocessing.errors
    import torch.distributed.launcher.api
    import torch.utils.data

    import ddpify.cli  # noqa: F401

    _keep_groups(torch.distributed.distributed_c10d)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)  # what loses its parent stays where it is found
    asked, files = _asked(path)
    np.random.seed()
    torch.default_generator.seed()
    _become(asked, files)
    code = 0
    try:
        _run(asked["words"][asked["at"] :])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    _leave(code)


def _keep_groups(module: Any) -> None:
    """Keep gloo's groups for good: freeing one waits for its threads, which may wait for the interpreter (pytorch#190489)."""

    class Kept(module.ProcessGroupGloo):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    module.ProcessGroupGloo = Kept


def _leave(code: int) -> None:
    """End without freeing all that was imported, which takes longer than most scripts."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code & 0xFF)


def _asked(path: str) -> tuple[dict[str, Any], list[int]]:
    """What is asked for, in a fork; in the server, its end."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(64)
    gc.collect()
    gc.freeze()
    assert threading.active_count() == 1
    os.write(1, b"ready\n")
    callers: dict[int, tuple[int, socket.socket]] = {}  # by what tells that a fork has ended: the fork, and who asked for it
    asking = {listening.fileno(), 0}
    while True:
        waiting = {caller.fileno(): process for process, (_, caller) in callers.items()}
        for ready in select.select([*asking, *callers, *waiting], [], [])[0]:
            if ready == 0:
                os._exit(0)
            elif ready == listening.fileno():
                caller, _ = listening.accept()
                asked, files = _received(caller)
                child = os.fork()
                if not child:
                    for other in (listening, caller, *(each for _, each in callers.values())):
                        other.close()
                    for process in callers:
                        os.close(process)
                    return asked, files
                for file in files:
                    os.close(file)
                caller.sendall(child.to_bytes(8, "little"))
                callers[os.pidfd_open(child)] = child, caller
            elif ready in callers:
                child, caller = callers.pop(ready)
                os.close(ready)
                with contextlib.suppress(OSError):
                    caller.sendall(os.waitpid(child, 0)[1].to_bytes(8, "little"))
                caller.close()
            elif waiting[ready] in callers:  # whoever asked has been killed
                child, caller = callers[waiting[ready]]
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(waiting[ready])
                del callers[waiting[ready]]
                caller.close()


def _received(caller: socket.socket) -> tuple[dict[str, Any], list[int]]:
    size, sent, _, _ = caller.recvmsg(8, socket.CMSG_SPACE(253 * 4))
    files = array.array("i")
    for _, _, numbers in sent:
        files.frombytes(numbers[: len(numbers) - len(numbers) % files.itemsize])
    text = b""
    while len(text) < int.from_bytes(size, "little"):
        text += caller.recv(_LARGEST)
    return json.loads(text), list(files)


def _become(asked: dict[str, Any], files: list[int]) -> None:
    """Take on the session, files, folder, environment and search path of whoever asked."""
    os.setsid()
    high = [fcntl.fcntl(file, fcntl.F_DUPFD, _HIGH) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(high, asked["files"], strict=True):
        os.dup2(file, number)
        os.close(file)
    for number in asked["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.chdir(asked["folder"])
    before = ddpify_forks._searched(os.environ)
    wanted = asked["environment"]
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    os.environ.update({name: value for name, value in wanted.items() if os.environ.get(name) != value})
    sys.path[1:] = dict.fromkeys([*ddpify_forks._searched(wanted), *(path for path in sys.path[1:] if path not in before)])
    sys.executable = asked["name"]
    sys.orig_argv[:] = [asked["name"], *asked["words"]]
    sys.dont_write_bytecode = bool(wanted.get("PYTHONDONTWRITEBYTECODE"))
    multiprocessing.set_executable(sys.executable)
    multiprocessing.process.ORIGINAL_DIR = asked["folder"]  # type: ignore[attr-defined]
    _open_streams(unbuffered="-u" in asked["words"][: asked["at"]] or bool(wanted.get("PYTHONUNBUFFERED")))
    if wanted.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()


def _open_streams(unbuffered: bool) -> None:
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            file = io.FileIO(number, mode, closefd=False)
        except OSError:
            setattr(sys, name, None)
            continue
        binary: Any = io.BufferedReader(file) if mode == "r" else file if unbuffered else io.BufferedWriter(file)
        errors = "backslashreplace" if name == "stderr" else "strict"
        lines = name == "stderr" or file.isatty()
        stream = io.TextIOWrapper(binary, "utf-8", errors, line_buffering=lines, write_through=unbuffered)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(line: list[str]) -> None:
    """Run a script, a module or a text, as the interpreter itself does."""
    spec = PathFinder.find_spec("sitecustomize", sys.path[1:])
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    if line[0] != "-c":
        return ddpify_forks._run(line)
    sys.argv, sys.path[0] = ["-c", *line[2:]], ""
    ddpify_forks.as_main(lambda names: exec(compile(line[1], "<string>", "exec", dont_inherit=True), names))


if __name__ == "__main__":
    import quick_python  # this file as a module: `__main__` is to be the script's

    quick_python.main(sys.argv[1])
