"""New projects train: on two gloo ranks the loss falls, the ranks agree, and a run that was cut off ends as one that was not."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import torch
from quick_python import python
from scaffold_ranks import Job, Ranks, environment, made

from ddpify.scaffold import CHOICES, Settings

SHORT = {  # a few steps an epoch
    "image": ["--batch-size=128"],
    "pix2pix": ["--batch-size=64"],
    "language-model": ["--batch-size=96"],
    "distillation": ["--batch-size=1024"],
    "tabular": ["--batch-size=512"],
    "transformers": ["--batch-size=256"],
}
INSTALLED = [task for task in CHOICES["task"] if task != "transformers" or importlib.util.find_spec("transformers")]
Runs = dict[Settings, tuple[list[Job], Path, Path]]  # by kinds of projects: starts, the folder of a whole run, that of one in two parts
COMMON = ["--epochs=2", "--workers=0", "--warmup=2", "--save-every=3"]
LONG = [*COMMON, "--accumulate=2"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


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

LAUNCHED = [Settings(task=task, launcher=launcher) for task in INSTALLED for launcher in CHOICES["launcher"]]
PRECISE = [Settings(task="tabular", amp=amp, ddp=ddp) for amp in CHOICES["amp"] for ddp in ("torch", "apex")]
PRECISE += [Settings(task="pix2pix", amp=amp, ddp=ddp) for amp, ddp in (("apex-O1", "apex"), ("torch", "apex"), ("torch-bf16", "torch"))]
PRECISE += [Settings(task="distillation", amp="apex-O2"), Settings(task="image", amp="torch-bf16")]
RUN = [*LAUNCHED, *PRECISE[1:]]
RESUMED = [*LAUNCHED, *(s for s in PRECISE if s.amp in ("torch", "apex-O1", "apex-O2") and (s.task, s.ddp) != ("pix2pix", "torch"))]


def run_id(settings: Settings) -> str:
    return " ".join((settings.task, settings.launcher, settings.amp, settings.ddp))


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    """The processes that train."""
    processes = Ranks()
    yield processes
    processes.close()


@pytest.fixture(scope="module")
def runs(ranks: Ranks, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Runs:
    """For each kind of project, a run from start to end, and for some or all, one that was cut off and resumed in another folder."""
    top = tmp_path_factory.mktemp("projects")
    resumed = RUN if request.config.getoption("--all-projects") else RESUMED
    jobs, found = [], {}
    for settings in RUN:
        folder = made(top, settings)
        once, twice = folder / "runs" / "once", folder / "runs" / "twice"
        args = [*LONG, *SHORT[settings.task]] + ["--local-rank=0"] * (settings.launcher == "launch")
        starts = [[f"--out={once}"], [f"--out={twice}", "--max-steps=5"], [f"--out={twice}"]]
        mine = [Job(settings, [*args, *more]) for more in starts[: 3 if settings in resumed else 1]]
        jobs += mine
        found[settings] = (mine, once, twice)
    ranks.run(top, jobs)
    return found


@pytest.mark.parametrize("settings", RUN, ids=run_id)
def test_it_trains_and_resumes(settings: Settings, runs) -> None:
    jobs, once, twice = runs[settings]
    for job in jobs:
        assert job.ok, "\n".join(job.logs)
        assert "Warning" not in job.logs[0], job.logs[0]
        said = job.logs[0].splitlines()
        assert len(said) == len(set(said)) and not "".join(job.logs[1:]).strip(), "only rank 0 speaks"
    learned(once)
    if len(jobs) > 1:
        assert not differences(checkpoint(once), checkpoint(twice))


def test_processes_are_spawned(tmp_path: Path) -> None:
    """As they are for users: the processes of `runs` are forked."""
    folder = made(tmp_path, Settings(task="tabular", launcher="spawn"))
    command = ["./run.sh", *LONG, *SHORT["tabular"], "--out=out"]
    given = environment(2) | {"PYTHON": python()}
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    learned(folder / "out")


@pytest.mark.parametrize("settings", LAUNCHED, ids=run_id)
def test_its_own_tests_pass(settings: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """By default those of one project, typed in by test_scaffold_readme.py."""
    if not request.config.getoption("--all-projects"):
        pytest.skip("with --all-projects")
    folder = made(tmp_path, settings, smaller=False)
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


# --- what N ranks mean ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone_and_together(tmp_path_factory: pytest.TempPathFactory, ranks: Ranks) -> Path:
    """Each task in double precision and without dropout: one process, two ranks, and two ranks after one process."""
    top = tmp_path_factory.mktemp("projects")
    jobs = []
    for task in INSTALLED:
        args, settings = SHORT[task], Settings(task=task)  # type: ignore[arg-type]
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
    jobs.sort(key=lambda job: job.nproc)
    ranks.run(top, jobs)
    for job in jobs:
        assert job.ok, "\n".join(job.logs)
    return top


@pytest.mark.parametrize("task", INSTALLED)
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


@dataclass(frozen=True)
class Optional:
    """What the settings that a run need not have did: by names, starts and folders."""

    jobs: dict[str, Job]
    top: Path


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory, ranks: Ranks) -> Optional:
    """Runs with a file of settings, averaged weights, early stopping, a profile, few batches, and SIGTERM on one rank."""
    top = tmp_path_factory.mktemp("projects")
    table, image = Settings(task="tabular"), Settings(task="image")
    objective = made(top, table) / table.name / "objective.py"
    objective.write_text(objective.read_text().replace("    return F.mse_loss", TERMINATES + "    return F.mse_loss"))
    (top / "settings.yaml").write_text("batch-size: 512\nlr: 1e-3\nepochs: 9\nema: 0.5\nout: nowhere\nworkers: 0\nlog_every: 2\n")
    (top / "wrong.yaml").write_text("batchsize: 512\n")
    few = [*COMMON, *SHORT["tabular"]]
    averaged = [*COMMON, *SHORT["image"], "--ema=0.8"]
    config = [f"--config={top / 'settings.yaml'}", "--epochs=2"]
    starts: dict[str, tuple[Settings, list[str], str]] = {
        "config": (table, config, "config"),
        "wrong": (table, [f"--config={top / 'wrong.yaml'}"], "wrong"),
        "averaged": (image, averaged, "averaged"),
        "half": (image, [*averaged, "--max-steps=5"], "resumed"),
        "resumed": (image, averaged, "resumed"),
        "other": (image, averaged[:-1], "averaged"),
        "patient": (table, [*few, "--epochs=5", "--lr=0", "--patience=1"], "patient"),
        "over": (table, [*few, "--epochs=5", "--lr=0", "--patience=1"], "patient"),
        "profiled": (table, [*few, "--profile=2"], "profiled"),
        "overfit": (table, [*few, "--overfit-batches=2", "--epochs=20"], "overfit"),
        "calm": (table, [*few, "--log-every=2"], "calm"),
        "terminated": (table, [*few, "--log-every=2"], "terminated"),
        "after": (table, [*few, "--log-every=2"], "terminated"),
    }
    jobs = {name: Job(settings, [*args, f"--out={top / out}"]) for name, (settings, args, out) in starts.items()}
    ranks.run(top, [job for name, job in jobs.items() if name not in ("wrong", "other", "terminated", "after")])
    (made(top, table) / "terminate").touch()
    for name in ("wrong", "other", "terminated", "after"):  # one by one: where a rank fails, the other is ended
        ranks.run(top, [jobs[name]])
    return Optional(jobs, top)


TERMINATES = """    import os, signal

    if os.path.exists("terminate") and torch.distributed.get_rank() == 1:
        os.remove("terminate")
        os.kill(os.getpid(), signal.SIGTERM)
"""


def test_settings_come_from_a_file(optional: Optional) -> None:
    assert optional.jobs["config"].ok, optional.jobs["config"].logs
    plan = checkpoint(optional.top / "config")["plan"]
    assert (plan["batch_size"], plan["steps"], plan["ema"]) == (512, 2 * (4000 // 512), 0.5)
    wrong = optional.jobs["wrong"]
    assert not wrong.ok and any("has unknown settings: batchsize" in log for log in wrong.logs), (
        wrong.logs
    )  # the first to end ends the other


def test_averaged_weights_are_validated_kept_and_resumed(optional: Optional) -> None:
    for name in ("averaged", "half", "resumed"):
        assert optional.jobs[name].ok, optional.jobs[name].logs
    once, twice = (checkpoint(optional.top / name) for name in ("averaged", "resumed"))
    assert not differences(once, twice)
    kept = torch.load(optional.top / "averaged" / "best.pt", weights_only=True)
    averaged, raw = once["parts"]["averaged"], once["parts"]["model"]
    assert once["best_step"] == once["step"] == averaged["n_averaged"]
    assert all(torch.equal(kept[name], averaged[f"module.{name}"]) for name in raw)
    assert any(not torch.equal(kept[name], raw[name]) for name in raw)
    assert not optional.jobs["other"].ok and "choose another --out" in optional.jobs["other"].logs[0]


def test_it_stops_where_validation_gets_no_better(optional: Optional) -> None:
    assert optional.jobs["patient"].ok and optional.jobs["over"].ok
    state = checkpoint(optional.top / "patient")
    assert (state["step"], state["best_step"]) == (2 * 7, 7)
    assert "nothing to do" in optional.jobs["over"].logs[0]


def test_steps_are_profiled_and_gradients_and_memory_logged(optional: Optional) -> None:
    assert optional.jobs["profiled"].ok, optional.jobs["profiled"].logs
    assert json.loads((optional.top / "profiled" / "trace.json").read_text())["traceEvents"]
    assert {"train/gradient_norm", "gpu_memory_gib"} <= lines(optional.top / "profiled")[0].keys()


def test_few_batches_can_be_learned(optional: Optional) -> None:
    assert optional.jobs["overfit"].ok, optional.jobs["overfit"].logs
    assert checkpoint(optional.top / "overfit")["step"] == 20 * 2
    learned(optional.top / "overfit")


def test_all_ranks_save_and_end_where_one_is_terminated(optional: Optional) -> None:
    assert [optional.jobs[name].ok for name in ("calm", "terminated", "after")] == [True, False, True]
    assert all("SystemExit: 143" in log for log in optional.jobs["terminated"].logs)
    told = [line["step"] for line in lines(optional.top / "terminated") if "train/loss" in line]
    assert told[:2] == [2, 4], "it stopped after two steps, had saved, and went on from there"
    assert not differences(*(checkpoint(optional.top / name) for name in ("calm", "terminated")))


def test_another_run_is_not_gone_on_with(tmp_path: Path, ranks: Ranks) -> None:
    settings = Settings(task="tabular")
    args = [*COMMON, f"--out={tmp_path / 'out'}", "--max-steps=2"]
    jobs = [
        Job(settings, [*args, "--batch-size=512"], 1),
        Job(settings, [*args, "--batch-size=256"], 1),
        Job(settings, [*args, "--batch-size=9999"], 1),
        Job(settings, [*args, "--batch-size=10", "--accumulate=3"], 1),
        Job(settings, [*args, "--batch-size=512"], 1),
    ]
    ranks.run(tmp_path, jobs[:1])
    ranks.run(tmp_path, jobs[1:])
    assert [job.ok for job in jobs] == [True, False, False, False, True]
    assert "choose another --out" in jobs[1].logs[0]
    assert "choose a smaller --batch-size" in jobs[2].logs[0]
    assert "choose another --accumulate" in jobs[3].logs[0]
    assert "is at step 2 of 2" in jobs[4].logs[0]


def test_text_and_token_files_and_tables(tmp_path: Path, ranks: Ranks) -> None:
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
    ranks.run(tmp_path, jobs)
    for job, out in zip(jobs, ("text", "tokens", "table"), strict=True):
        assert job.ok, job.logs
        losses = [line["train/loss"] for line in lines(tmp_path / out) if "train/loss" in line]
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb"])
def test_trackers(tmp_path: Path, ranks: Ranks, tracker: str) -> None:
    pytest.importorskip(tracker)
    job = Job(Settings(task="tabular", tracker=tracker), [*COMMON, *SHORT["tabular"], f"--out={tmp_path / 'out'}"])  # type: ignore[arg-type]
    ranks.run(tmp_path, [job])
    assert job.ok, job.logs
    learned(tmp_path / "out")
    assert list((tmp_path / "out").glob("events.*" if tracker == "tensorboard" else "wandb/offline-run-*"))


# --- on the engines that people use --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", INSTALLED)
def test_a_killed_worker_is_made_good(task: str, tmp_path: Path, runs, request: pytest.FixtureRequest) -> None:
    if task != "image" and not request.config.getoption("--all-projects"):
        pytest.skip("with --all-projects")
    calm, out = runs[Settings(task=task)][1], tmp_path / "out"  # type: ignore[arg-type]
    folder, log = made(tmp_path, Settings(task=task)), tmp_path / "log.txt"  # type: ignore[arg-type]
    with log.open("wb") as file:
        command = ["./run.sh", *LONG, *SHORT[task], f"--out={out}"]
        given = {**environment(), "NPROC_PER_NODE": "2", "PYTHON": sys.executable}
        run = subprocess.Popen(command, cwd=folder, env=given, stdout=file, stderr=file)
        workers: list[psutil.Process] = []
        deadline = time.monotonic() + 120
        while run.poll() is None and not (out / "checkpoint.pt").exists():
            assert time.monotonic() < deadline
            with contextlib.suppress(psutil.Error):  # torchrun starts others, too, which end at once
                workers = workers if len(workers) == 2 else [p for p in psutil.Process(run.pid).children() if "train.py" in p.cmdline()]
            time.sleep(0.002)
        workers[-1].send_signal(signal.SIGKILL)
        try:
            assert run.wait(120) == 0, log.read_text()
        finally:
            run.terminate()
    assert "SIGKILL" in log.read_text() or "-9" in log.read_text()
    assert not differences(checkpoint(calm), checkpoint(out))
    steps = [line["step"] for line in lines(out) if "train/loss" in line or "train/l1" in line]
    assert steps[-1] == checkpoint(calm)["step"]


def test_two_machines(tmp_path: Path) -> None:
    """Two agents of torchrun, which meet by c10d, train each task; see scaffold_worker.py."""
    for task in INSTALLED:
        folder = made(tmp_path / "projects", Settings(task=task))  # type: ignore[arg-type]
        (folder / "arguments").write_text(shlex.join([*COMMON, *SHORT[task], "--out=out"]))
    start = tmp_path / "start"
    start.mkdir()
    shutil.copy(folder / "run.sh", start)
    shutil.copy(Path(__file__).with_name("scaffold_worker.py"), start / "train.py")
    both = {"NNODES": "2", "NPROC_PER_NODE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "PYTHON": python()}
    both = {**environment(), **both, "PROJECTS": str(tmp_path / "projects")}
    agents = [subprocess.Popen(["./run.sh"], cwd=start, env=both, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
    said = [agent.communicate(timeout=300)[0].decode() for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], "\n".join(said)
    for project in (tmp_path / "projects").iterdir():
        learned(project / "out")
        assert len(checkpoint(project / "out")["random"]["cpu"]) == 2
    assert sorted("val/loss" in text for text in said) == [False, True]
