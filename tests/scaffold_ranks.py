"""Projects for tests, and the two processes that train them: see scaffold_worker.py."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from quick_python import python

from ddpify import scaffold
from ddpify.scaffold import Settings

HERE = Path(__file__).parent
SMALLER = {  # data that are made in less time, in numbers that ranks cannot share equally
    "image": ("Stripes(2048, first=0), Stripes(512, first=2048)", "Stripes(1043, first=0), Stripes(201, first=2048)"),
    "pix2pix": ("Shapes(1024, first=0), Shapes(256, first=1024)", "Shapes(331, first=0), Shapes(71, first=1024)"),
    "language-model": ("made_up_text(2000)", "made_up_text(900)"),
}


@dataclass
class Job:
    """One start of a project's train.py; `ok` once it ended well on all ranks."""

    settings: Settings
    args: list[str]
    nproc: int = 2
    double: bool = False
    logs: list[str] = field(default_factory=list)
    ok: bool = False


def title(settings: Settings) -> str:
    """What tells one kind of project from another."""
    return "-".join((settings.task, settings.launcher, settings.amp, settings.ddp, settings.tracker))


def made(top: Path, settings: Settings, smaller: bool = True) -> Path:
    """The project's folder."""
    folder = top / title(settings)
    if not folder.exists():
        files = scaffold.render(settings)
        if smaller and settings.task in SMALLER:
            name, (old, new) = f"{settings.name}/data.py", SMALLER[settings.task]
            assert old.encode() in files[name]
            files[name] = files[name].replace(old.encode(), new.encode())
        scaffold.write(folder, files)
    return folder


def environment(nproc: int | None = None) -> dict[str, str]:
    """As a user's, with one thread for each process."""
    out = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "RANK", "WORLD_SIZE")}
    return out | {"OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"} | ({"WORLD_SIZE": str(nproc)} if nproc else {})


class Ranks:
    """Two processes that keep torch imported and train in forks of theirs."""

    def __init__(self) -> None:
        command = [python(), str(HERE / "scaffold_worker.py")]
        self.processes = [subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE) for _ in range(2)]
        self.started = 0

    def run(self, top: Path, jobs: list[Job]) -> None:
        """Run jobs in order; those of one rank two at a time, but all of a project in one process: a start goes on from the one before."""
        logs = []
        projects = list(dict.fromkeys(title(job.settings) for job in jobs))
        for job in jobs:
            apex = [str(HERE / "apex_double")] if "apex" in (job.settings.amp.partition("-")[0], job.settings.ddp) else []
            spawn = job.settings.launcher == "spawn"
            nproc = 1 if spawn else job.nproc
            self.started += 1
            log = str(top / f"{title(job.settings)}.{self.started}.log")
            told = {"cwd": str(made(top, job.settings)), "args": job.args, "log": log, "path": apex, "double": job.double, "limit": 300}
            for rank in range(nproc):
                stdin = self.processes[rank if nproc == 2 else projects.index(title(job.settings)) % 2].stdin
                assert stdin
                stdin.write(json.dumps(told | {"rank": rank, "nproc": nproc, "spawn": spawn}).encode() + b"\n")
                stdin.flush()
            logs.append([Path(f"{log}.{rank}") for rank in range(nproc)])
        for job, ranks in zip(jobs, logs, strict=True):
            codes = [Path(f"{log}.code") for log in ranks]
            while not all(code.exists() for code in codes):
                assert all(process.poll() is None for process in self.processes)
                time.sleep(0.01)
            job.logs = [log.read_text(errors="replace") for log in ranks]
            job.ok = all(code.read_text() == "0" for code in codes)

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            assert process.stdin
            process.stdin.close()
            process.wait(300)
