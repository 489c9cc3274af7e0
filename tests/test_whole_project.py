"""A project of many files in `project/`, with all that only its structure tells: converted, proved on two ranks, shared with a script.

`tools/train.py` finds the packages by a folder that another module adds to `sys.path`. They import each other relatively, absolutely, in a
circle, by `*` and under conditions, one without an `__init__.py`. Networks are registered by a decorator and built by the name in a
configuration file, losses and the optimizer are looked up by name, options come from a parser in a module and get attributes of their own,
batches come from a generator, and the trainer inherits its loop. `tools/probe.py` uses the same modules and is not converted.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from quick_python import python

import ddpify
from ddpify import Options
from ddpify.options import Launcher
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.verify import verify

ROOT = Path(__file__).parent / "project"
SCRIPT = Path("tools", "train.py")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__", "runs", "probe"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run([python(), *command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(done: ddpify.Conversion, folder: Path) -> set[str]:
    return {module.path.relative_to(folder).as_posix() for module in done.edited}


def test_decisions_are_made_in_the_files_they_belong_to(project: Path) -> None:
    done = ddpify.convert(SCRIPT)
    assert (done.status, done.exit_code) == ("convert", 0)
    assert names(done, project) == {
        "blobs/data/loaders.py",  # the sampler
        "blobs/ddp_utils.py",  # what several files need
        "blobs/engine/base.py",  # the wrapper, the writer, the checkpoints
        "blobs/engine/trainer.py",  # the epoch, the meter
        "blobs/options.py",  # the device
        "blobs/utils.py",  # the log
    }


def test_it_is_converted_alike_from_anywhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = ddpify.convert(SCRIPT)
    monkeypatch.chdir("/")
    outside = ddpify.convert(project / SCRIPT)
    assert outside.code == inside.code
    assert {m.path: m.code for m in outside.edited} == {project / m.path: m.code for m in inside.edited}


@pytest.mark.parametrize("launcher", ["torchrun", "launch", "spawn"])
def test_it_trains_as_before(project: Path, launcher: Launcher) -> None:
    done = ddpify.convert(SCRIPT, Options(launcher))
    found = verify(SCRIPT, done, Setting(python(), 2, 0, 240, True), launcher)
    assert (found.status, [row.name for row in found.rows if row.holds is False]) == ("holds", [])
    assert found.left == 0


def test_a_script_that_is_not_converted_goes_on_as_before(project: Path) -> None:
    before = run(project, "tools/probe.py")
    assert before.count("epoch") == 1
    run(project, "-m", "ddpify", "convert", "tools/train.py", "-w")
    assert (project / "blobs" / "ddp_utils.py").exists()
    assert (project / "tools" / "probe.py").read_text() == (ROOT / "tools" / "probe.py").read_text()
    assert run(project, "tools/probe.py") == before


def test_the_folder_that_is_written_runs(project: Path, tmp_path: Path) -> None:
    before = run(project, "tools/train.py")
    out = tmp_path / "out"
    out.mkdir()
    run(project, "-m", "ddpify", "convert", "tools/train.py", "-o", str(out))
    assert {p.relative_to(out) for p in out.rglob("*.py")} == {
        *(p.relative_to(project) for p in project.rglob("*.py") if p.name != "probe.py"),
        Path("blobs", "ddp_utils.py"),
    }
    shutil.copytree(project / "config", out / "config")
    again = ddpify.convert(out / SCRIPT)
    assert (again.status, again.exit_code, again.changed) == ("nothing", 0, False)
    assert [line.partition(":")[0] for line in run(out, "tools/train.py").splitlines()] == [
        line.partition(":")[0] for line in before.splitlines()
    ]


def test_the_entry_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m blobs.main`, which imports by its place in the package."""
    shutil.copytree(ROOT, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "tools"))
    text = (ROOT / "tools" / "train.py").read_text().replace("import _paths  # noqa: F401\n", "").replace("from blobs.", "from .")
    (tmp_path / "blobs" / "main.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    script = Path("blobs", "main.py")
    done = ddpify.convert(script)
    assert (done.exit_code, done.command) == (0, "torchrun --standalone --nproc-per-node=2 -m blobs.main")
    assert "blobs/ddp_utils.py" in names(done, tmp_path)
    assert verify(script, done, Setting(python(), 2, 0, 240, True)).status == "holds"
    run(tmp_path, "-m", "ddpify", "convert", "blobs/main.py", "-w", "--emit-launcher", "run.sh")
    assert "-m blobs.main" in (tmp_path / "run.sh").read_text()
    started = subprocess.run(["sh", "run.sh"], env=_env(NPROC_PER_NODE="1"), capture_output=True, text=True, check=False)
    assert started.returncode == 0 and "epoch 2" in started.stdout, started.stderr


def _env(**variables: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **variables}
