"""Runs an original script as one process and its converted text as two gloo ranks, and compares what the two did.

    outcome, = run_many([Case(original, converted)])
    assert outcome.problems() == []

One group of ranks runs many scripts in sequence. Importing torch takes seconds, so groups are forked from one process, `ranks_worker.py`.
"""

import atexit
import contextlib
import functools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
from quick_python import forked, python

WORKER = Path(__file__).with_name("ranks_worker.py")
GROUP_JOBS = 200  # scripts that one group of processes runs: gloo leaves a thread behind for each
START_LIMIT = 1200.0  # seconds for the processes to import torch, on however busy a machine
_WARNING = re.compile(r"^.*:\d+: \w*Warning: .*\n(  .*\n?)?", re.MULTILINE)  # Python's own, with the line it quotes: each process tells it
_ABORTED = "terminate called without an active exception"  # what gloo's threads let a process say
_LEFT = re.compile(r"in destroy_process_group$|<no Python frame>$|^Current thread .*\n  File .* in <module>$", re.MULTILINE)
ATTEMPTS = 5  # gloo may abort a process after its work, and a launcher then ends the others within theirs (pytorch#190489)


@dataclass
class Case:
    """A script, its converted text, its command line, and the files beside it (path: content).

    `converted_files` are laid over `files` for the converted run: its local modules, where those were converted too.
    """

    original: str
    converted: str
    args: Sequence[str] = ()
    files: dict[str, str | bytes] = field(default_factory=dict)
    converted_files: dict[str, str | bytes] = field(default_factory=dict)
    name: str = "train.py"

    def has_original_of(self, other: "Case") -> bool:
        """Whether the originals of both are one run."""
        return self.original == other.original and [*self.args] == [*other.args] and (self.files, self.name) == (other.files, other.name)


@dataclass
class Run:
    """What one process did.

    `steps` holds (number of the optimizer, all its parameters flattened) after each step, `files` what it wrote (path: final
    content), `saves` its checkpoints flattened, `epochs` the epochs of each shuffling DistributedSampler, one per pass.
    """

    rank: int = 0
    steps: list[tuple[int, torch.Tensor]] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    saves: dict[str, dict[str, Any]] = field(default_factory=dict)
    epochs: list[list[int]] = field(default_factory=list)
    left_open: bool = False
    error: str = ""


@dataclass
class Outcome:
    """The original's run beside the converted text's, one per rank."""

    case: Case
    single: Run
    ranks: list[Run]

    def problems(self, ignore: Sequence[str] = ()) -> list[str]:
        """What does not hold, each as `property: what was seen`; `ignore` names properties that need not hold."""
        found = self._failures() or [*self._training(), *self._output(), *self._files()]
        return [text for text in found if text.split(":")[0] not in ignore]

    def _failures(self) -> list[str]:
        found = [f"error: original: {self.single.error}"] if self.single.error else []
        return found + [f"error: rank {run.rank}: {run.error}" for run in self.ranks if run.error]

    def _training(self) -> list[str]:
        first, found = self.ranks[0], []
        if not self.single.steps:
            found.append("steps: the original takes no optimizer step")
        counts = [len(run.steps) for run in self.ranks]
        if set(counts) != {len(self.single.steps)}:
            found.append(f"steps: {len(self.single.steps)} in the original, {counts} on the ranks")
        for run in self.ranks[1:]:
            if (by := apart(first.steps, run.steps)) > 1e-12:
                found.append(f"ranks: rank {run.rank} differs from rank 0 by {by:.1e}")
        if (by := apart(self.single.steps, first.steps)) > 1e-8:
            found.append(f"trajectory: rank 0 differs from the original by {by:.1e}")
        stale = [epochs for run in self.ranks for epochs in run.epochs if len(epochs) > 1 and len(set(epochs)) == 1]
        if stale:
            found.append(f"epochs: {len(stale)} shuffling samplers repeat one order, epochs {stale[0]}")
        found += [f"teardown: rank {run.rank} leaves the process group open" for run in self.ranks if run.left_open]
        return found

    def _output(self) -> list[str]:
        found = []
        told = {_shape(line) for line in _WARNING.sub("", self.single.stderr).splitlines() if line.strip()}
        for run in self.ranks[1:]:
            lines = run.stdout.splitlines() + [line for line in run.stderr.splitlines() if _shape(line) in told]
            if lines:
                found.append(f"prints: rank {run.rank}: {lines[:3]}")
        before, after = ([_shape(line) for line in run.stdout.splitlines()] for run in (self.single, self.ranks[0]))
        if before != after:
            missing = [line for line in before if line not in after]
            found.append(f"output: {len(before)} lines in the original, {len(after)} from rank 0; missing {missing[:3]}")
        return found

    def _files(self) -> list[str]:
        found = [f"writes: rank {run.rank}: {sorted(run.files)[:3]}" for run in self.ranks[1:] if run.files]
        before, after = (sorted(map(_shape, run.files)) for run in (self.single, self.ranks[0]))
        if before != after:
            found.append(f"files: {before} from the original, {after} from rank 0")
        for path, old in self.single.saves.items():
            new = self.ranks[0].saves.get(path)
            if new is None:
                continue
            if odd := sorted(old.keys() ^ new.keys()):
                found.append(f"keys: {path}: only on one side {odd[:4]}")
            if odd := [key for key in old.keys() & new.keys() if not _same(old[key], new[key])]:
                found.append(f"values: {path}: " + ", ".join(f"{key} {_brief(old[key])} and {_brief(new[key])}" for key in sorted(odd)[:4]))
        return found


def run_many(cases: Sequence[Case], nproc: int = 2, limit: float = 300.0) -> list[Outcome]:
    """Runs the originals in one process and the converted texts on `nproc` ranks (1: one process without a launcher).

    An original that several cases have in common runs once. `limit` is the time in seconds that one script may take; a group that hangs
    is killed and its script reported.
    """
    originals: list[Case] = []
    for case in cases:
        if not any(map(case.has_original_of, originals)):
            originals.append(case)
    with tempfile.TemporaryDirectory(prefix="ranks-") as name, ThreadPoolExecutor(2) as pool:
        singles, groups = Path(name, "single"), Path(name, "ranks")
        before = [_job(singles, f"{i}", case, case.original, case.files, True) for i, case in enumerate(originals)]
        after = [_job(groups, f"{i}", case, case.converted, case.files | case.converted_files, False) for i, case in enumerate(cases)]
        single, ranks = pool.map(_run_jobs, (before, after), (1, nproc), (limit, limit))
    ones = [next(one[0] for other, one in zip(originals, single, strict=True) if case.has_original_of(other)) for case in cases]
    return [Outcome(case, one, many) for case, one, many in zip(cases, ones, ranks, strict=True)]


def run_ranks(cases: Sequence[Case], nproc: int = 2, limit: float = 300.0) -> list[list[Run]]:
    """Runs the converted texts alone, on `nproc` ranks: one run per rank of each case."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as name:
        jobs = [_job(Path(name), f"{i}", case, case.converted, case.files | case.converted_files, False) for i, case in enumerate(cases)]
        return _run_jobs(jobs, nproc, limit)


def run_alone(case: Case, limit: float = 90.0) -> Outcome:
    """Runs the converted text as `python train.py`, without a launcher."""
    return run_many([case], 1, limit)[0]


def launch(script: Path, args: Sequence[str] = (), nproc: int = 2, limit: float = 120.0) -> subprocess.CompletedProcess:
    """Runs a script in its folder under torchrun, as a user would, with nothing patched."""
    command = [python(), "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={nproc}", script.name, *args]
    return run_unless_aborted(command, script.parent, _environ(), limit)


def run_unless_aborted(command: Sequence[str], folder: Path, env: dict[str, str], limit: float) -> subprocess.CompletedProcess:
    """Runs a command that starts ranks, again where gloo aborted one of them; at the last attempt such an end counts, too.

    Each attempt finds the folder as the first one did: a checkpoint that an aborted one left would be resumed from.
    At the first one, gloo may also keep a rank from leaving its group.
    """
    with tempfile.TemporaryDirectory(prefix="before-") as before:
        shutil.copytree(folder, before, symlinks=True, dirs_exist_ok=True)
        for attempt in range(ATTEMPTS):
            if attempt:
                shutil.rmtree(folder)
                shutil.copytree(before, folder, symlinks=True)
            done = _run(command, folder, env, limit, may_stay=attempt == 0)
            if "SIGABRT" not in done.stderr:
                break
    return done


def _run(command: Sequence[str], folder: Path, env: dict[str, str], limit: float, may_stay: bool) -> subprocess.CompletedProcess:
    """Runs a command. One that does not end has its processes aborted; the error has their stacks, unless all had finished their work."""
    with subprocess.Popen(
        command, cwd=folder, env=env | {"PYTHONFAULTHANDLER": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            started = [*psutil.Process(process.pid).children(recursive=True), *forked()]
            for each in started:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.send_signal(signal.SIGABRT)
            psutil.wait_procs(started, timeout=10)  # a fork ends at once with whoever asked for it
            process.send_signal(signal.SIGABRT)
            stdout, stderr = process.communicate()
            if not (may_stay and _at_the_end(stderr)):
                raise AssertionError(f"{command} did not end within {limit} s\n{stdout}\n{stderr}") from error
            stderr += "\nSIGABRT: ended while leaving the process group"
    if _ABORTED in stderr:  # the writing of the stacks may fail then, and the process end by another signal
        stderr += "\nSIGABRT: gloo aborted a process"
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _at_the_end(stacks: str) -> bool:
    """Whether the processes of a job that were aborted had nothing left to do but to leave their group.

    A process that stays in a line of the module itself has left what the line called, and is taking down what was made there.
    """
    ranks = [stack for stack in stacks.split("Fatal Python error: Aborted")[1:] if "torch/distributed/run.py" not in stack]
    return bool(ranks) and all(_LEFT.search(stack) for stack in ranks)


# --- processes --------------------------------------------------------------------------------------------------------
def _job(folder: Path, name: str, case: Case, text: str, files: dict[str, str | bytes], fake_cuda: bool) -> dict[str, Any]:
    contents = {path: c.encode() if isinstance(c, str) else c for path, c in {**files, case.name: text}.items()}
    job = {"name": name, "script": case.name, "args": list(case.args), "cwd": str(folder / name), "out": str(folder / f"{name}.out")}
    fake_cuda = fake_cuda or "apex/__init__.py" in files  # apex runs on GPUs only
    fake_cuda = fake_cuda and any(word in c for c in (*contents.values(), *map(str.encode, case.args)) for word in (b"cuda", b"device("))
    return job | {"fake_cuda": fake_cuda, "contents": contents}


def _run_jobs(jobs: list[dict[str, Any]], nproc: int, limit: float) -> list[list[Run]]:
    """Runs all jobs, so many in one group of processes; one that dies or hangs is replaced for the jobs after the guilty one."""
    done: list[list[Run]] = []
    while len(done) < len(jobs):
        todo = jobs[len(done) : len(done) + GROUP_JOBS]
        why = _run_group(todo, nproc, limit)
        for job in todo:
            runs = [_read(job, rank) for rank in range(nproc)]
            if not any(runs) and job is not todo[0] and not Path(f"{job['out']}.0.started").exists():
                break  # the group ended before this job
            done.append([run or Run(rank, error=f"no result: {why}") for rank, run in enumerate(runs)])
            if not all(runs) or (nproc > 1 and any(run.error for run in done[-1])):
                break  # and with this job
    return done


class _Starter:
    """The process that groups of ranks are forked from; it ends with this one."""

    def __init__(self) -> None:
        command = [sys.executable, str(WORKER)]  # whose scripts bring modules of their own, of any name
        self.process = subprocess.Popen(command, env=_environ(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
        atexit.register(self.end)

    def start(self, jobs: Path, nproc: int, port: int, log: Path) -> None:
        """Asks for a group of so many processes, which does the jobs of a file."""
        assert self.process.stdin
        group = {"jobs": str(jobs), "nproc": nproc, "port": port, "log": str(log)}
        os.write(self.process.stdin.fileno(), json.dumps(group).encode() + b"\n")

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(60)


@functools.cache
def _starter() -> _Starter:
    return _Starter()


def _run_group(jobs: list[dict[str, Any]], nproc: int, limit: float) -> str:
    """Starts processes that work through the jobs and waits for them; returns how they ended."""
    folder = Path(jobs[0]["cwd"]).parent
    for job in jobs:
        shutil.rmtree(job["cwd"], ignore_errors=True)
        for path, content in job["contents"].items():
            file = Path(job["cwd"], path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        for old in folder.glob(Path(job["out"]).name + ".*"):
            old.unlink()
    ports = _free_ports(len(jobs))
    plain = [{k: v for k, v in job.items() if k != "contents"} | {"port": port} for job, port in zip(jobs, ports, strict=True)]
    told = folder / f"jobs_from_{jobs[0]['name']}.json"
    told.write_text(json.dumps(plain))
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False) if nproc > 1 else None
    _starter().start(told, nproc, store.port if store else 0, folder / "log.txt")
    codes = [Path(f"{told}.{rank}.code") for rank in range(nproc)]
    results = [Path(f"{job['out']}.{rank}.pt") for job in jobs for rank in range(nproc)]
    since, allowed = time.monotonic(), START_LIMIT
    begun = Path(f"{jobs[0]['out']}.0.started")
    while not all(code.exists() for code in codes):
        time.sleep(0.01)
        if allowed != limit and begun.exists():  # it has started, and works on the first of them
            since, allowed = time.monotonic(), limit
        while results and results[0].exists():
            results.pop(0)
            since, allowed = time.monotonic(), limit
        ends = [code.read_text() if code.exists() else "" for code in codes]
        failed = any(end not in ("", "0") for end in ends)
        if time.monotonic() - since > (1 if failed else allowed):  # what one rank ended with, the others may end with, too
            _kill(told, nproc)
            waiting = f"nothing happened for {limit:.0f} s, as when one rank waits for another"
            return f"{f'the processes ended with {ends}' if failed else waiting}\n{_tail(folder)}"
    return f"the processes ended with {[code.read_text() for code in codes]}\n{_tail(folder)}"


def _tail(folder: Path) -> str:
    log = folder / "log.txt"
    return log.read_text(errors="replace")[-3000:] if log.exists() else ""


def _kill(told: Path, nproc: int) -> None:
    """Lets the processes of a group tell where they are, and ends them by their ids."""
    left = [rank for rank in range(nproc) if not Path(f"{told}.{rank}.code").exists()]
    for number in (signal.SIGUSR1, signal.SIGKILL):
        for rank in left:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(int(Path(f"{told}.{rank}.pid").read_text()), number)
        time.sleep(0.5)


def _read(job: dict[str, Any], rank: int) -> Run | None:
    file = Path(f"{job['out']}.{rank}.pt")
    if not file.exists():
        return None
    fields = torch.load(file, weights_only=False)
    numbers, sizes, parameters = fields.pop("steps")
    fields["steps"] = [*zip(numbers, parameters.split(sizes), strict=True)] if numbers else []
    written = {path: Path(job["cwd"], path) for path in sorted(fields.pop("writes"))}
    return Run(files={path: file.read_bytes() if file.is_file() else b"" for path, file in written.items()}, **fields)


def _environ() -> dict[str, str]:
    drop = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES")
    return {k: v for k, v in os.environ.items() if k not in drop} | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those that the system hands out of itself."""
    ports: list[int] = []
    for port in random.sample(range(20000, 30000), 1000):
        with contextlib.suppress(OSError), socket.create_server(("localhost", port)):
            ports.append(port)
        if len(ports) == count:
            break
    return ports


# --- comparing --------------------------------------------------------------------------------------------------------
def apart(a: list[tuple[int, torch.Tensor]], b: list[tuple[int, torch.Tensor]]) -> float:
    """The largest relative difference over the steps that both took."""
    worst = 0.0
    for (i, x), (j, y) in zip(a, b, strict=False):
        if i != j or x.shape != y.shape:
            return float("inf")
        difference = float((x - y).abs().max() / x.abs().max().clamp(min=1e-12))
        worst = max(worst, difference) if difference == difference else float("inf")
    return worst


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and bool(torch.allclose(a.double(), b.double(), rtol=1e-9, atol=1e-12, equal_nan=True))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return type(a) is type(b) and not isinstance(a, torch.Tensor) and a == b


def _brief(value: Any) -> str:
    return f"tensor{tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)


def _shape(text: str) -> str:
    """A line without its numbers."""
    return re.sub(r"(?:[\s\d.|#%\u2588-\u258f]|-(?=\d))+|(?<=\d)e[+-]?\d+|\b(inf|nan)\b", "0", text)
