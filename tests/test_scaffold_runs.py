"""New projects train: on two gloo ranks the loss falls, the ranks agree, and a run that was cut off ends as one that was not."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import torch

from ddpify import scaffold
from ddpify.scaffold import CHOICES, Settings

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
SHORT = {  # a few steps an epoch
    "image": ["--batch-size=256"],
    "pix2pix": ["--batch-size=128"],
    "language-model": ["--batch-size=256"],
    "distillation": ["--batch-size=1024"],
    "tabular": ["--batch-size=512"],
}
COMMON = ["--epochs=2", "--workers=0", "--warmup=2", "--save-every=3"]


@dataclass
class Job:
    """One start of a project's train.py; `ok` once it ended well on all ranks."""

    settings: Settings
    args: list[str]
    nproc: int = 2
    double: bool = False
    logs: list[str] = field(default_factory=list)
    ok: bool = False

    @property
    def name(self) -> str:
        s = self.settings
        return "-".join((s.task, s.launcher, s.amp, s.ddp, s.tracker))


def made(top: Path, settings: Settings) -> Path:
    """The project's folder."""
    folder = top / "-".join((settings.task, settings.launcher, settings.amp, settings.ddp, settings.tracker))
    if not folder.exists():
        scaffold.write(folder, scaffold.render(settings))
    return folder


def environment(nproc: int | None = None) -> dict[str, str]:
    """As a user's, with one thread for each process."""
    out = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "RANK", "WORLD_SIZE")}
    return out | {"OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"} | ({"WORLD_SIZE": str(nproc)} if nproc else {})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def run_all(top: Path, jobs: list[Job]) -> None:
    """Run jobs, in order, on ranks that keep torch imported; as many as each job asks for."""
    for nproc in sorted({job.nproc for job in jobs}):
        mine = [job for job in jobs if job.nproc == nproc]
        told = []
        for i, job in enumerate(mine):
            apex = [str(HERE / "apex_double")] if "apex" in (job.settings.amp.partition("-")[0], job.settings.ddp) else []
            cwd = str(made(top, job.settings))
            log = str(top / f"{job.name}.{nproc}.{i}.log")
            told.append({"cwd": cwd, "args": job.args, "log": log, "path": apex, "double": job.double, "limit": 300})
        listed = top / f"jobs.{nproc}.json"
        listed.write_text(json.dumps(told))
        ranks = [
            subprocess.Popen([sys.executable, HERE / "scaffold_worker.py", str(rank), str(nproc), listed], env=environment())
            for rank in range(nproc)
        ]
        for rank in ranks:
            rank.wait()
        for job, one in zip(mine, told, strict=True):
            job.logs = [Path(f"{one['log']}.{rank}").read_text(errors="replace") for rank in range(nproc)]
            job.ok = all(Path(f"{one['log']}.{rank}.code").read_text() == "0" for rank in range(nproc))


def lines(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def learned(out: Path) -> None:
    """The loss fell, and the ranks agree."""
    validated = [line for line in lines(out) if "val/loss" in line]
    first = lines(out)[0]
    loss = "train/l1" if "train/l1" in first else "train/loss"
    last = [line for line in lines(out) if loss in line][-1]
    assert last[loss] < first[loss]
    assert validated[-1]["val/loss"] < validated[0]["val/loss"]
    assert [line["drift"] for line in validated] == [0] * len(validated)


def checkpoint(out: Path) -> dict:
    return torch.load(out / "checkpoint.pt", weights_only=True)


def differences(one: object, other: object, where: str = "") -> list[str]:
    """Where two checkpoints are not the same, bit for bit."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [d for key in one for d in differences(one[key], other[key], f"{where}/{key}")]
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        return [d for i, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{where}/{i}")]
    same = torch.equal(one, other) if torch.is_tensor(one) and torch.is_tensor(other) else one == other
    return [] if same else [where]


# --- every task and launcher ---------------------------------------------------------------------------------------------

LAUNCHED = [Settings(task=task, launcher=launcher) for task in CHOICES["task"] for launcher in ("torchrun", "launch")]
PRECISE = [Settings(task="tabular", amp=amp, ddp=ddp) for amp in CHOICES["amp"] for ddp in ("torch", "apex")]
PRECISE += [Settings(task="pix2pix", amp=amp, ddp=ddp) for amp, ddp in (("apex-O1", "apex"), ("torch", "apex"), ("torch-bf16", "torch"))]
PRECISE += [Settings(task="distillation", amp="apex-O2"), Settings(task="image", amp="torch-bf16")]
RUN = [*LAUNCHED, *PRECISE[1:]]
RESUMED = [s for s in RUN if s.launcher == "torchrun" and (s.task != "tabular" or s.amp in ("none", "torch", "apex-O1", "apex-O2"))]


def run_id(settings: Settings) -> str:
    return " ".join((settings.task, settings.launcher, settings.amp, settings.ddp))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[Settings, tuple[list[Job], Path, Path]]:
    """For each kind of project, a run from start to end, and for some or all, one that was cut off and resumed in another folder."""
    top = tmp_path_factory.mktemp("projects")
    resumed = RUN if request.config.getoption("--all-projects") else RESUMED
    jobs, found = [], {}
    for settings in RUN:
        folder = made(top, settings)
        once, twice = folder / "runs" / "once", folder / "runs" / "twice"
        args = [*COMMON, *SHORT[settings.task], "--accumulate=2"] + ["--local-rank=0"] * (settings.launcher == "launch")
        starts = [[f"--out={once}"], [f"--out={twice}", "--max-steps=5"], [f"--out={twice}"]]
        mine = [Job(settings, [*args, *more]) for more in starts[: 3 if settings in resumed else 1]]
        jobs += mine
        found[settings] = (mine, once, twice)
    run_all(top, jobs)
    return found


@pytest.mark.parametrize("settings", RUN, ids=run_id)
def test_it_trains_and_resumes(settings: Settings, runs) -> None:
    jobs, once, twice = runs[settings]
    for job in jobs:
        assert job.ok, "\n".join(job.logs)
        assert not job.logs[1].strip(), "only rank 0 speaks"
        assert "Warning" not in job.logs[0], job.logs[0]
    learned(once)
    if len(jobs) > 1:
        assert not differences(checkpoint(once), checkpoint(twice))


@pytest.mark.parametrize("task", CHOICES["task"])
def test_spawned_processes_train(task: str, tmp_path: Path) -> None:
    folder = made(tmp_path, Settings(task=task, launcher="spawn"))  # type: ignore[arg-type]
    command = [sys.executable, "train.py", *COMMON, *SHORT[task], "--out=out"]
    done = subprocess.run(command, cwd=folder, env=environment(2), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    learned(folder / "out")


def real(settings: Settings) -> bool:
    """Whether it is started for real by default, by its own launcher and tests."""
    return (settings.task, settings.launcher) in (("tabular", "spawn"), ("distillation", "launch"))


@pytest.mark.parametrize("settings", [Settings(task=t, launcher=x) for t in CHOICES["task"] for x in CHOICES["launcher"]], ids=run_id)
def test_its_own_tests_pass(settings: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not (real(settings) or request.config.getoption("--all-projects")):
        pytest.skip("with --all-projects")
    folder = made(tmp_path, settings)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


# --- what N ranks mean ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone_and_together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each task in double precision and without dropout: one process, two ranks, and two ranks after one process."""
    top = tmp_path_factory.mktemp("projects")
    jobs = []
    for task, args in SHORT.items():
        settings = Settings(task=task)  # type: ignore[arg-type]
        folder = made(top, settings)
        path = folder / settings.name / "model.py"
        path.write_text(re.sub(r"dropout=0\.\d+", "dropout=0.0", path.read_text()))
        base = [*COMMON, *args, "--epochs=1"]
        jobs += [
            Job(settings, [*base, f"--out={top / task}.one"], 1, True),
            Job(settings, [*base, f"--out={top / task}.half", "--max-steps=2"], 1, True),
            Job(settings, [*base, f"--out={top / task}.two", "--accumulate=2"], 2, True),
            Job(settings, [*base, f"--out={top / task}.half"], 2, True),
        ]
    run_all(top, jobs)
    for job in jobs:
        assert job.ok, "\n".join(job.logs)
    return top


@pytest.mark.parametrize("task", CHOICES["task"])
def test_ranks_train_as_one_process_would(task: str, alone_and_together: Path) -> None:
    one, two, half = (alone_and_together / f"{task}.{name}" for name in ("one", "two", "half"))
    for other in (two, half):
        last, theirs = lines(one)[-1], lines(other)[-1]
        assert last.keys() == theirs.keys()
        assert [theirs[key] for key in last] == pytest.approx(list(last.values()), rel=1e-7, abs=1e-9)
        states = [checkpoint(out)["parts"] for out in (one, other)]
        for name in ("model", "generator", "discriminator"):
            for key, weight in states[0].get(name, {}).items():
                torch.testing.assert_close(states[1][name][key], weight, rtol=1e-6, atol=1e-8, msg=f"{name} {key}")


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    settings = Settings(task="tabular")
    args = [*COMMON, f"--out={tmp_path / 'out'}", "--max-steps=2"]
    jobs = [
        Job(settings, [*args, "--batch-size=512"], 1),
        Job(settings, [*args, "--batch-size=256"], 1),
        Job(settings, [*args, "--batch-size=9999"], 1),
        Job(settings, [*args, "--batch-size=10", "--accumulate=3"], 1),
    ]
    run_all(tmp_path, jobs)
    assert [job.ok for job in jobs] == [True, False, False, False]
    assert "choose another --out" in jobs[1].logs[0]
    assert "choose a smaller --batch-size" in jobs[2].logs[0]
    assert "choose another --accumulate" in jobs[3].logs[0]


def test_text_and_token_files_and_tables(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("all work and no play makes jack a dull boy\n" * 1000)
    (tmp_path / "tokens.bin").write_bytes(b"".join((i * i % 999).to_bytes(2, "little") for i in range(20000)))
    (tmp_path / "table.csv").write_text("a,b,c\n" + "".join(f"{i / 99},{i % 7},{i % 7 - i / 50}\n" for i in range(1000)))
    text, table = Settings(task="language-model"), Settings(task="tabular")
    common = ["--epochs=2", "--workers=2"]
    jobs = [
        Job(text, [*common, f"--data={tmp_path / 'book.txt'}", f"--out={tmp_path / 'text'}"], 1),
        Job(text, [*common, f"--data={tmp_path / 'tokens.bin'}", "--vocabulary=999", "--context=32", f"--out={tmp_path / 'tokens'}"], 1),
        Job(table, [*common, f"--data={tmp_path / 'table.csv'}", f"--out={tmp_path / 'table'}"], 1),
    ]
    run_all(tmp_path, jobs)
    for job, out in zip(jobs, ("text", "tokens", "table"), strict=True):
        assert job.ok, job.logs
        losses = [line["train/loss"] for line in lines(tmp_path / out) if "train/loss" in line]
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb"])
def test_trackers(tmp_path: Path, tracker: str) -> None:
    pytest.importorskip(tracker)
    job = Job(Settings(task="tabular", tracker=tracker), [*COMMON, *SHORT["tabular"], f"--out={tmp_path / 'out'}"])  # type: ignore[arg-type]
    run_all(tmp_path, [job])
    assert job.ok, job.logs
    learned(tmp_path / "out")
    assert list((tmp_path / "out").glob("events.*" if tracker == "tensorboard" else "wandb/offline-run-*"))


# --- on the engines that people use --------------------------------------------------------------------------------------


def test_a_killed_worker_is_made_good(tmp_path: Path) -> None:
    folder = made(tmp_path, Settings(task="tabular"))
    args = ["--epochs=3", "--workers=0", "--save-every=3", "--batch-size=64"]
    start = [*TORCHRUN, "--nproc-per-node=2", "--max-restarts=3", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "train.py", *args]
    subprocess.run([*start, "--out=calm"], cwd=folder, env=environment(), check=True, timeout=300, capture_output=True)
    with open(folder / "log.txt", "wb") as log:
        run = subprocess.Popen([*start, "--out=killed"], cwd=folder, env=environment(), stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while run.poll() is None and not (folder / "killed" / "checkpoint.pt").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        workers = [process for process in psutil.Process(run.pid).children() if "train.py" in process.cmdline()]
        workers[-1].send_signal(signal.SIGKILL)
        assert run.wait(300) == 0, (folder / "log.txt").read_text()
    assert "SIGKILL" in (folder / "log.txt").read_text() or "-9" in (folder / "log.txt").read_text()
    assert not differences(checkpoint(folder / "calm"), checkpoint(folder / "killed"))
    steps = [line["step"] for line in lines(folder / "killed") if "train/loss" in line]
    assert steps[-1] == checkpoint(folder / "calm")["step"]


@pytest.mark.parametrize("task", CHOICES["task"])
def test_two_machines(task: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if task != "language-model" and not request.config.getoption("--all-projects"):
        pytest.skip("with --all-projects")
    folder = made(tmp_path, Settings(task=task))  # type: ignore[arg-type]
    both = {
        **environment(),
        "NNODES": "2",
        "NPROC_PER_NODE": "1",
        "MASTER_PORT": str(free_port()),
        "MASTER_ADDR": "localhost",
        "PYTHON": sys.executable,
    }
    args = [*COMMON, *SHORT[task], f"--out={tmp_path / 'out'}"]
    agents = [
        subprocess.Popen(["./run.sh", *args], cwd=folder, env=both, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)
    ]
    said = [agent.communicate(timeout=300)[0].decode() for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], "\n".join(said)
    learned(tmp_path / "out")
    assert sum("val/loss" in text for text in said) == 1
