"""Runs a script as one process or as ranks, watches it, and ends everything that it started."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from ddpify.errors import DdpifyError
from ddpify.rehearse.declared import Place
from ddpify.rehearse.scratch import INSIDE, Scratch

_NAMED = 16  # characters that name a run
_TAIL = 200_000  # characters of output that are kept
_OF_A_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


@dataclass(frozen=True)
class Ended:
    """How a run ended: `code` is its exit code, None where it had to be ended; `stacks` of its processes if so, and why.

    `seconds` is wall-clock time, `output` the end of what it printed on both streams.
    """

    record: Path
    code: int | None
    output: str
    seconds: float
    why: str = ""
    stacks: str = ""


@dataclass(frozen=True)
class Setting:
    """What both runs have in common: the interpreter, the ranks that share a batch, the steps (0: all), the seconds, the precision.

    `gpus` says whether there is a GPU for each rank; else CUDA is hidden, and played by the CPU. After `idle` seconds without any work,
    processes are taken to wait for each other. `clock` is for a second run, where all that depends on the time is to differ. `lines` are
    places of the user's files, each a path and a line, of which the original's record tells that the run came to them, `watched` the
    expressions whose values both records tell.
    """

    python: str
    nproc: int
    steps: int
    limit: float
    double: bool
    gpus: bool = False
    idle: float = 45.0
    clock: bool = False
    lines: tuple[tuple[Path, int], ...] = ()
    watched: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Command:
    """What is to run: a script (its path, or `-m` and its module) with its arguments, under torchrun, launch, spawn or as one process."""

    launcher: str
    script: tuple[str, ...]
    args: tuple[str, ...]

    @property
    def launches(self) -> bool:
        """Whether ranks are started by a launcher."""
        return self.launcher in ("torchrun", "launch")

    def line(self, setting: Setting) -> list[str]:
        """The command line."""
        line = [setting.python]
        if self.launches:
            line += ["-m", f"torch.distributed.{'run' if self.launcher == 'torchrun' else 'launch'}", f"--nproc-per-node={setting.nproc}"]
            line += ["--master-addr=127.0.0.1", f"--master-port={_free_port()}"]
        return [*line, *self.script, *self.args]


def run(
    command: Command, cwd: Path, record: Path, setting: Setting, scratch: Scratch, progress: Callable[[int], None], forks: Forks
) -> Ended:
    """Run a command to its end, or to the end of its time. `progress` is given the number of optimizer steps so far."""
    record.mkdir(parents=True)
    began = time.monotonic()
    terminal = _Terminal()
    reading, writing = os.pipe()
    name = secrets.token_hex(_NAMED // 2)
    environment = _environment(record, setting, scratch, name)
    try:
        process = forks.start(command, cwd, record, setting, environment, (terminal.stdin, writing)) or subprocess.Popen(
            command.line(setting),
            cwd=cwd,
            env=environment,
            stdin=terminal.stdin,
            stdout=writing,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        os.close(reading)
        terminal.close()
        raise DdpifyError(
            f"{setting.python} cannot be started: {error.strerror}", "name an interpreter that has torch: --python EXE"
        ) from error
    finally:
        os.close(writing)
    output = _Output(reading)
    watch = _Watch(process, record, name)
    why = ""
    try:
        while process.poll() is None:
            time.sleep(0.1)
            progress(watch.steps())
            if time.monotonic() - began > setting.limit:
                why = f"it had not ended after {setting.limit:g} s"
            elif watch.idle() > setting.idle:
                why = f"its processes waited for each other: none did anything for {setting.idle:g} s"
            if why:
                break
        stacks = watch.stacks() if why else ""
    finally:
        watch.end()
        output.close()
        terminal.close()
    return Ended(record, None if why else process.returncode, output.text(), time.monotonic() - began, why, stacks)


def bare(line: Sequence[str], cwd: Path, limit: float) -> Ended:
    """Run a command as the user would, without a record: does it fail by itself?"""
    env = {name: value for name, value in os.environ.items() if name not in _OF_A_LAUNCHER}
    began = time.monotonic()
    terminal = _Terminal()
    try:
        done = subprocess.run(line, cwd=cwd, env=env, stdin=terminal.stdin, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Ended(cwd, None, "", limit, "it had not ended")
    finally:
        terminal.close()
    return Ended(cwd, done.returncode, (done.stdout + done.stderr).decode(errors="replace")[-_TAIL:], time.monotonic() - began)


def _environment(record: Path, setting: Setting, scratch: Scratch, name: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_LAUNCHER}
    searched = [scratch.own(entry) for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    path = os.pathsep.join([str(INSIDE), *searched])
    if not setting.gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return {
        "WANDB_MODE": "offline",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        **environment,
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "DDPIFY_REHEARSAL": str(record),
        "DDPIFY_RUN": name,
        "DDPIFY_SCRATCH": str(scratch.base),
        "DDPIFY_RANKS": str(setting.nproc),
        "DDPIFY_STEPS": str(setting.steps),
        "DDPIFY_DOUBLE": str(int(setting.double)),
        "DDPIFY_CLOCK": str(int(setting.clock)),
        "DDPIFY_LINES": json.dumps([(str(scratch.path(path)), line) for path, line in setting.lines]),
    }


def _free_port() -> int:
    """A port that nobody listens on, below those that a system hands out by itself, so that no neighbour is given it meanwhile."""
    for port in random.SystemRandom().sample(range(20000, 32000), 100):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise DdpifyError("no port is free for the process group", "end what listens on ports 20000 to 32000")


class Process(Protocol):
    """What is known of a process that was started."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Its exit code, where it has ended."""

    def wait(self) -> int | None:
        """Wait for its end."""


class Forks:
    """A process that has imported torch, once for all runs of one original and its conversions, from which each is forked.

    Nothing is forked where a system cannot do so, where a GPU is used, which no process may share with its parent, and where something
    has started threads, which a fork has not.
    """

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def start(
        self, command: Command, cwd: Path, record: Path, setting: Setting, environment: dict[str, str], files: tuple[int, int]
    ) -> Process | None:
        """What was forked to run a command, with its input and output; None where it must be started otherwise."""
        if self._server is None and sys.platform == "linux" and not setting.gpus:
            self._begin(setting.python, record.parent, environment)
        if self._connection is None:
            return None
        request = record.with_name("request.json")
        ranks, line = setting.nproc if command.launches else 0, [*command.script, *command.args]
        passed = command.launcher == "launch"
        asked = {"line": line, "ranks": ranks, "local_rank_passed": passed, "folder": str(cwd), "environment": environment}
        request.write_text(json.dumps(asked))
        try:
            socket.send_fds(self._connection, [os.fsencode(request)], list(files))
            return _Forked(self._connection)
        except (OSError, ValueError):  # it ended, as it cannot go on
            self.close()
            return None

    def _begin(self, python: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        searched = map(Path, environment["PYTHONPATH"].split(os.pathsep))
        path = os.pathsep.join(str(entry) for entry in searched if entry.is_absolute() and not entry.is_relative_to(folder))
        common = {name: value for name, value in environment.items() if name != "DDPIFY_REHEARSAL"}
        try:
            self._server = subprocess.Popen(
                [python, str(INSIDE / "ddpify_forks.py"), str(other.fileno())],
                env=common | {"PYTHONPATH": path, "DDPIFY_RUN": "0" * _NAMED},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[other.fileno()],
            )
        except OSError:
            self._connection.close()
            self._connection = None
            raise
        finally:
            other.close()
        ready = self._connection.recv(1 << 12)
        if not ready or json.loads(ready)["threads"] > 1:
            self.close()

    def close(self) -> None:
        """End it, and what was forked from it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()


class _Forked:
    """A process that is another one's child: that one tells when it ends."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.returncode = connection, None
        self.pid = int(json.loads(connection.recv(1 << 12))["process"])

    returncode: int | None

    def poll(self) -> int | None:
        """Its exit code, where it has ended."""
        return self._report(0.0)

    def wait(self) -> int | None:
        """Wait for its end."""
        return self._report(None)

    def _report(self, patience: float | None) -> int | None:
        while self.returncode is None and select.select([self._connection], [], [], patience)[0]:
            report = self._connection.recv(1 << 12)
            event = json.loads(report) if report else {"process": self.pid, "code": -signal.SIGKILL}  # whoever tells was ended itself
            if event["process"] == self.pid:
                self.returncode = event["code"]
        return self.returncode


class _Terminal:
    """A terminal to ask for its size, as many progress bars do; whoever reads from it gets the end of the input."""

    def __init__(self) -> None:
        self._open: tuple[int, ...] = ()
        self.stdin = subprocess.DEVNULL
        if sys.platform != "win32":
            import fcntl
            import pty
            import termios

            self._open = pty.openpty()
            typed, self.stdin = self._open
            fcntl.ioctl(self.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.write(typed, b"\x04" * 64)

    def close(self) -> None:
        """Close it."""
        for end in self._open:
            os.close(end)


class _Output:
    """Reads what processes print, so that they never wait for a reader, and keeps the end of it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while part := os.read(self._file, 1 << 16):
            self._parts.append(part)
            self._size += len(part)
            while self._size - len(self._parts[0]) > _TAIL:
                self._size -= len(self._parts.popleft())
        os.close(self._file)

    def close(self) -> None:
        """Wait for the last of it."""
        self._thread.join(5)

    def text(self) -> str:
        """The end of what was printed."""
        return b"".join(self._parts)[-_TAIL:].decode(errors="replace")


class _Watch:
    """The processes of a run."""

    def __init__(self, process: Process, record: Path, name: str) -> None:
        self._process, self._record, self._name = process, record, name
        self._at: dict[Path, int] = {}
        self._steps: dict[Path, int] = {}
        self._looked = self._worked = time.monotonic()
        self._spent = -1.0

    def steps(self) -> int:
        """The optimizer steps that the record tells so far, of the process that is ahead."""
        for file in self._record.glob("*.jsonl"):
            with open(file, "rb") as stream:
                stream.seek(self._at.get(file, 0))
                new = stream.read()
            self._at[file] = self._at.get(file, 0) + len(new)
            self._steps[file] = self._steps.get(file, 0) + new.count(b'"kind": "step"')
        return max(self._steps.values(), default=0)

    def idle(self) -> float:
        """Seconds since any process has worked."""
        now = time.monotonic()
        if now - self._looked >= 1:
            running = self._processes()  # a launcher that looks after its ranks is no sign of work
            spent = sum(map(_worked, [p for p in running if p.pid != self._process.pid] or running))
            if abs(spent - self._spent) > 0.05 * (now - self._looked):
                self._worked = now
            self._looked, self._spent = now, spent
        return now - self._worked

    def stacks(self) -> str:
        """Where each process stands, the deepest call first."""
        files = sorted(self._record.glob("*.stacks"))
        if not hasattr(signal, "SIGUSR1"):
            return ""
        for file in files:
            try:
                os.kill(int(file.stem), signal.SIGUSR1)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(1.0)
        traces = [(file, file.read_text(errors="replace").strip()) for file in files]
        return "\n\n".join(f"process {file.stem}:\n{text}" for file, text in traces if text)

    def end(self) -> None:
        """End every process that is left, those that changed their group or their parent, too."""
        running = self._processes()
        for process in running:
            _quietly(process.terminate)
        _, running = psutil.wait_procs(running, timeout=3 if running else 0)
        for process in (*running, *self._processes()):
            _quietly(process.kill)
        if sys.platform != "win32":
            self._process.wait()

    def _processes(self) -> list[psutil.Process]:
        """The processes that this run started: they carry its name in their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("DDPIFY_RUN") == self._name and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


def _worked(process: psutil.Process) -> float:
    """The seconds for which a process has run, or would have if other programs had left it a processor (which only Linux tells)."""
    try:
        times = process.cpu_times()
        schedstat = Path(f"/proc/{process.pid}/schedstat")  # nanoseconds run and waited for a processor, and how often
        waited = int(schedstat.read_text().split()[1]) * 1e-9 if schedstat.exists() else 0.0
    except (psutil.Error, OSError):
        return 0.0
    return float(times.user + times.system) + waited


def _quietly(act: Callable[[], None]) -> None:
    try:
        act()
    except psutil.Error:
        return
