"""Rehearsals of whatever does not end well, and from the command line: each ends, and leaves nothing behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from mutants import BASES, MUTANTS, Base, seen, started
from quick_python import left, python

from ddpify.rehearse import launch
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.scratch import Scratch
from ddpify.rehearse.verify import Original, verify

ROOT = Path(__file__).parents[1]


# --- scripts that do not end well -----------------------------------------------------------------------------------------
_ORIGINAL = """\
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
data = TensorDataset(torch.randn(32, 3), torch.randn(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(data, 8):
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
_CONVERTED = """\
import atexit, os, signal, subprocess, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(3, 1))
data = TensorDataset(torch.randn(32, 3), torch.randn(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step, (x, y) in enumerate(DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=False))):
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()
    HERE
if rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Bad:
    """What a script does after a step, or an original instead of its own text, and what is said of it.

    `also` says that it depends on how the ranks come about: it is run under a launcher as well.
    """

    here: str = "pass"
    original: str = _ORIGINAL
    row: str = "ran"
    told: str = ""
    cause: str = ""
    reason: str = ""
    args: tuple[str, ...] = ()
    limit: float = 300.0
    also: bool = False


BAD = {
    "a collective on rank 0 alone": Bad(
        "if rank == 0 and step == 1: dist.all_reduce(torch.ones(1))", told="waited for each other", cause="DDP403", also=True
    ),
    "a rank that is killed": Bad("if rank == 1 and step == 1: os.kill(os.getpid(), signal.SIGKILL)", told="rank 1 was ended", also=True),
    "a rank that leaves with success": Bad("if rank == 1 and step == 1: sys.exit(0)", cause="DDP403", also=True),
    "a rank that leaves at once": Bad("if rank == 1 and step == 1: os._exit(0)", told="rank 1", also=True),
    "a gigabyte of output": Bad("if rank == 0 and step == 1: [print('x' * 2**20) for _ in range(2**10)]", row=""),
    "a gigabyte in one line": Bad("if rank == 0 and step == 1: [os.write(1, b'x' * 2**20) for _ in range(2**10)]", row=""),
    "processes that do not want to end": Bad(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN); rank == 0 and dist.barrier()",
        told="waited for each other",
        also=True,
    ),
    "processes in the background": Bad("subprocess.Popen(['sleep', '600'], start_new_session=True)", row="", also=True),
    "a loop without an end": Bad("while rank == 1: pass", told="had not ended", limit=9.0, also=True),
    "data that is missing": Bad(original="open('data/train.csv')\n", reason="needs data that is not there"),
    "an original that fails": Bad(
        original=_ORIGINAL + "raise KeyError('never right')\n", reason="itself fails: KeyError: 'never right'", also=True
    ),
    "a module that is missing": Bad(original="import no_such_module_anywhere\n", reason="needs the module no_such_module_anywhere"),
    "arguments that are refused": Bad(
        original="import argparse\nargparse.ArgumentParser().parse_args()\n", args=("--depth", "3"), reason="refuses its arguments: "
    ),
    "an original that never ends": Bad(original="while True: pass\n", reason="did not come to", limit=6.0),
}


def _left() -> list[psutil.Process]:
    """Processes of any rehearsal of this process's, by the folder that their environment names."""
    me = psutil.Process()
    found = [p for p in psutil.process_iter() if _environment(p).get("DDPIFY_TEST") == str(me.pid)]
    mine = [me, *(p for p in me.children() if _environment(p).get("DDPIFY_RUN", "").strip("0") == "")]
    return [process for process in [*found, *left()] if process not in mine]  # what `right` is forked from goes on


def _environment(process: psutil.Process) -> dict[str, str]:
    """Nothing of a process that has ended, or is somebody else's."""
    try:
        return process.environ() if process.status() != psutil.STATUS_ZOMBIE else {}
    except (psutil.Error, OSError):
        return {}


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to rehearse in; whatever is started there must be gone in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DDPIFY_TEST", str(os.getpid()))
    yield tmp_path
    assert _left() == []


class Patient(Original):
    """An original that runs to its end, however long a conversion of it may take."""

    def run(self, setting: Setting, *args: Any, **how: Any) -> tuple[launch.Ended, Scratch]:
        return super().run(replace(setting, limit=300.0), *args, **how)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """The original that most conversions are held against, which runs once."""
    path = tmp_path_factory.mktemp("right") / "train.py"
    path.write_text(_ORIGINAL)
    with Patient(path) as original:
        yield original


@pytest.mark.parametrize(
    ("title", "by"), [*((title, "forks") for title in BAD), *((title, "a launcher") for title, bad in BAD.items() if bad.also)]
)
def test_a_script_that_does_not_end_well_is_ended(
    alone: Path, right: Patient, monkeypatch: pytest.MonkeyPatch, title: str, by: str
) -> None:
    bad = BAD[title]
    original: Path | Original = right
    if bad.original == _ORIGINAL:
        monkeypatch.chdir(right.path.parent)
    else:
        original = Path("train.py")
        original.write_text(bad.original)
    Path("train_ddp.py").write_text(_CONVERTED.replace("HERE", bad.here))
    setting = Setting(python(), 2, 0, bad.limit, False, idle=6.0)
    with started() if by == "a launcher" else contextlib.nullcontext():
        verdict = verify(original, Path("train_ddp.py"), setting, "torchrun", bad.args)
    if bad.reason:
        assert (verdict.status, verdict.exit_code) == ("not run", 2)
        assert bad.reason in verdict.reason
        return
    if not bad.row:
        assert seen(verdict) == "all hold"
        return
    assert verdict.exit_code == 1
    row = next(row for row in verdict.rows if row.name == bad.row)
    assert row.holds is False
    assert bad.told in row.seen
    assert bad.cause in row.rule
    if "waited" in bad.told:  # where each rank stands
        assert verdict.stacks.count("train_ddp.py") >= 2


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_ends_verify_ends_what_it_started(alone: Path, number: int) -> None:
    Path("train.py").write_text(_ORIGINAL)
    Path("train_ddp.py").write_text(_CONVERTED.replace("HERE", "open('started', 'w'); time.sleep(600)"))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    running = subprocess.Popen([sys.executable, "-m", "ddpify", "verify", "train.py", "train_ddp.py"], env=env)
    while running.poll() is None and len(_left()) < 4:  # itself, what all are forked from, two ranks
        time.sleep(0.1)
    assert running.poll() is None
    running.send_signal(number)
    assert running.wait() == 128 + number


# --- the user's files -----------------------------------------------------------------------------------------------------
_WRITES = """\
import os, shutil, sys
import torch
from pathlib import Path

state = torch.load("checkpoints/last.pt")
torch.save({"weight": state["weight"] + 1}, "checkpoints/last.pt")
torch.save(state, "checkpoints/new.pt")
with open("data/train/labels.txt", "a") as f:
    f.write("more\\n")
os.makedirs("data/train/cache", exist_ok=True)
Path("data/train/cache/index.json").write_text("[]")
Path("data/train/labels.txt").with_suffix(".bak").write_text("x")
os.replace("data/train/labels.txt", "data/train/labels.old")
os.remove("data/notes.txt")
with open("data/size.bin", "r+b") as f:
    f.write(b"??")
os.truncate("data/size.bin", 1)
shutil.rmtree("data/old")
shutil.copy("checkpoints/last.pt", "checkpoints/best.pt")
Path("log.txt").write_text("new")
Path("../beside/shared.txt").write_text("new")
os.chmod("data/mode.txt", 0o600)
Path("data/touched.txt").touch()
os.chdir("results")
Path("scores.txt").write_text("new")
Path("more.txt").write_text("new")
os.chdir("..")
"""


def _files(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def test_nothing_of_the_users_is_written_to(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    project = alone / "project"
    for folder in ("checkpoints", "data/train", "data/old", "results", "../beside"):
        (project / folder).mkdir(parents=True)
    torch.save({"weight": torch.ones(2)}, project / "checkpoints/last.pt")
    for name in ("data/train/labels.txt", "data/notes.txt", "data/size.bin", "data/old/a.txt", "log.txt", "../beside/shared.txt"):
        (project / name).write_text("of the user")
    for name in ("data/mode.txt", "data/touched.txt", "results/scores.txt"):
        (project / name).write_text("of the user")
    monkeypatch.chdir(project)
    Path("train.py").write_text(_WRITES + _ORIGINAL)
    guarded = "    " + _WRITES.replace("\n", "\n    ").replace('    f.write("more', '    f.write("more')
    converted = _CONVERTED.replace("torch.manual_seed(0)\n", f"torch.manual_seed(0)\nif rank == 0:\n{guarded}\n").replace("HERE", "pass")
    Path("train_ddp.py").write_text(converted)
    before = _files(alone)
    verdict = verify(Path("train.py"), Path("train_ddp.py"), Setting(python(), 2, 0, 300.0, False), "torchrun")
    assert seen(verdict) == "all hold"
    assert "checkpoints/last.pt" in next(row.seen for row in verdict.rows if row.name == "writes")
    assert _files(alone) == before


def test_a_script_from_another_folder_runs_in_a_copy_of_the_current_one(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone / "there").mkdir()
    (alone / "here/runs").mkdir(parents=True)
    monkeypatch.chdir(alone / "here")
    here = 'open("rows.txt")\nopen("./log.txt", "a").write("more")\nopen("runs/new.txt", "w").write("new")\n'
    Path("rows.txt").write_text("of the user")
    Path("log.txt").write_text("of the user")
    original, converted = alone / "there/train.py", alone / "there/train_ddp.py"
    original.write_text(here + _ORIGINAL)
    guarded = "if rank == 0:\n    " + here.replace("\n", "\n    ") + "pass\n"
    converted.write_text(_CONVERTED.replace("torch.manual_seed(0)\n", guarded + "torch.manual_seed(0)\n").replace("HERE", "pass"))
    before = _files(alone)
    verdict = verify(original, converted, Setting(python(), 2, 0, 300.0, False), "torchrun")
    assert seen(verdict) == "all hold"
    assert _files(alone) == before
    written = next(row.seen for row in verdict.rows if row.name == "writes")
    assert all(name in written for name in ("here/log.txt", "here/model.pt", "here/runs/new.txt"))


# --- the command line -----------------------------------------------------------------------------------------------------
def _command(*args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run([python(), "-m", "ddpify", "verify", *args], capture_output=True, text=True, env=env, check=False)


ASKED = {
    "set_epoch is not called": "set_epoch",
    "all ranks print": "prints",
    "a sum loss": "trajectory",
    "all ranks make the folder": "ran",
}


@pytest.mark.parametrize("title", ASKED)
def test_a_mistake_on_the_command_line(alone: Path, title: str) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.title == title)
    Path("train.py").write_text(Base.texts(mutant.base)[0])
    Path("train_ddp.py").write_text(mutant.text())
    done = _command("train.py", "train_ddp.py", "--json", "--steps", "0", "--", *BASES[mutant.base].args)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    row = next(row for row in report["rows"] if row["name"] == ASKED[title])
    assert row["holds"] is False
    assert mutant.cause in f"{row['cause']} {row['rule']}"


def test_an_example_on_the_command_line(alone: Path) -> None:
    Path("train.py").write_text(Base.texts("dots")[0])
    done = _command("train.py", "--steps", "6")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all hold" in done.stdout
    assert done.stderr == ""


def test_what_cannot_run_on_the_command_line(alone: Path) -> None:
    Path("train.py").write_text("import torch\nopen('data.csv')\n")
    Path("train_ddp.py").write_text("")
    done = _command("train.py", "train_ddp.py")
    assert done.returncode == 2
    assert 'File "train.py", line 2' in done.stdout + done.stderr
    assert "needs data that is not there" in done.stdout + done.stderr


def test_modules_of_the_project_are_the_converted_ones_wherever_they_are_searched_for(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(alone))
    (alone / "work").mkdir()
    (alone / "work/rows.py").write_text(
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def rows():
    x = torch.sin(torch.arange(160.0)).view(20, 8)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4, shuffle=True)
"""
    )
    (alone / "work/train.py").write_text(
        """\
import torch
from work.rows import rows

loader = rows()
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    )
    done = _command("work/train.py", "--steps", "6")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all hold" in done.stdout


def test_a_traceback_is_the_scripts(alone: Path) -> None:
    Path("train.py").write_text(_ORIGINAL)
    Path("train_ddp.py").write_text(_CONVERTED.replace("HERE", "model(x.cuda()[:, :2])  # too few"))
    done = _command("train.py", "train_ddp.py")
    assert done.returncode == 1
    shown = done.stdout.partition("failed:")[2].partition("\n\n")[0].splitlines()
    at = next(i for i, line in enumerate(shown) if "# too few" in line)
    assert 'File "train_ddp.py"' in shown[at - 1]
    assert "ddpify_" not in done.stdout
    assert "RuntimeError" in shown[-1]


# --- who waits, and who is kept waiting -----------------------------------------------------------------------------------
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell how long a process waits for a processor")
def test_a_process_that_others_keep_from_running_is_not_idle() -> None:
    line = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(flush=True)\n"
    busy = [subprocess.Popen([sys.executable, "-c", line + "while True: pass"], stdout=subprocess.PIPE) for _ in range(3)]
    idle = subprocess.Popen([sys.executable, "-c", line + "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        watched = [psutil.Process(process.pid) for process in (*busy, idle)]
        for process in (*busy, idle):
            assert process.stdout
            process.stdout.readline()
        since, before = time.monotonic(), [*map(launch._worked, watched)]
        time.sleep(1.5)
        spent, elapsed = [now - then for now, then in zip(map(launch._worked, watched), before, strict=True)], time.monotonic() - since
        assert all(seconds > 0.5 * elapsed for seconds in spent[:3])  # all three on one processor
        assert spent[3] < 0.05 * elapsed
    finally:
        for process in (*busy, idle):
            process.kill()
            process.wait()
