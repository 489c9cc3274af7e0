"""`convert --prove`: what a run of both scripts shows closes findings, what it does not show stays open, and what fails is not written."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import verdicts

import ddpify
from ddpify import records
from ddpify.conversion import Conversion
from ddpify.rehearse import prove as proving
from ddpify.rehearse.compare import SINGLE
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.prove import prove
from ddpify.rules.base import Finding, Observed, Safety

ROOT = Path(__file__).parents[1]
_PACKAGE = """\
import torch
import torch.nn.functional as F


def mean(out, y):
    return F.cross_entropy(out, y)


def total(out, y):
    return F.cross_entropy(out, y, reduction="sum")


def weighted(out, y):
    return F.cross_entropy(out, y, weight=torch.tensor([0.2, 1.8], dtype=out.dtype))


def adjust(model):
    for parameter in model.parameters():
        parameter.data.mul_(0.999)
"""
_SCRIPT = """\
import sys
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import marginlib

torch.manual_seed(0)
x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        loss = marginlib.mean(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch)
torch.save(model.state_dict(), "model.pt")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project's folder, and beside it a package that nobody has described; whatever is started there must be gone in the end."""
    (tmp_path / "packages/marginlib").mkdir(parents=True)
    (tmp_path / "packages/marginlib/__init__.py").write_text(_PACKAGE)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    paths = [str(ROOT), str(tmp_path / "packages"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("DDPIFY_TEST", str(tmp_path))
    yield tmp_path / "project"
    assert _started(tmp_path) == []


def _started(folder: Path) -> list[psutil.Process]:
    """The processes that were started by a test, by the folder that their environment names."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DDPIFY_TEST") == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "ddpify", "convert", "train.py", *args], capture_output=True, text=True, check=False)


def _proved(text: str, steps: int = 6) -> Conversion:
    Path("train.py").write_text(text)
    conversion = ddpify.convert(Path("train.py"))
    assert conversion.exit_code == 1
    return prove(conversion, Path("train.py"), Setting(sys.executable, 2, steps, 120.0, True))[0]


def _on(conversion: Conversion, text: str) -> Finding:
    """The gravest finding on the line that has a text."""
    line = next(i for i, line in enumerate(conversion.original.splitlines(), 1) if text in line)
    return max((f for f in conversion.findings if f.line == line), key=lambda f: f.level)


# --- what a run shows -----------------------------------------------------------------------------------------------------
def test_what_holds_is_closed_and_written(folder: Path) -> None:
    (folder / "train.py").write_text(_SCRIPT)
    done = _command("--prove", "--steps", "6", "--format", "json", "-o", "train_ddp.py")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (finding,) = (f for f in report["findings"] if f["code"] == "DDP402")
    assert finding["level"] == "NOTE"
    assert (finding["observed"]["held"], finding["observed"]["steps"]) == (True, 6)
    assert finding["observed"]["difference"] < 1e-6
    assert "held in 6 steps" in finding["message"]
    assert report["trial"]["status"] == "holds"
    assert "DistributedDataParallel" in (folder / "train_ddp.py").read_text()
    assert sorted(p.name for p in folder.iterdir()) == ["train.py", "train_ddp.py"]


def test_what_the_run_does_not_come_to_stays_open(folder: Path) -> None:
    rare = "        if len(sys.argv) > 1: marginlib.mean(model(a), b).backward()\n"
    late = "        step += 1\n        if step == 22:\n            marginlib.adjust(model.train())  # the last\n"
    step = "        marginlib.adjust(model)\n        optimizer.step()\n"
    text = _SCRIPT.replace("        optimizer.step()\n", rare + step + late).replace("for epoch", "step = 0\nfor epoch")
    conversion = _proved(text, steps=0)
    assert (conversion.exit_code, conversion.changed) == (1, True)
    assert [_on(conversion, line).level for line in ("loss.backward()", "adjust(model)")] == [Safety.NOTE, Safety.NOTE]
    for line, why in (("b).backward()", "on a line of its own"), ("# the last", "did not come to this line")):
        finding = _on(conversion, line)
        assert finding.level is Safety.REVIEW
        assert why in finding.message


def test_what_does_not_hold_is_not_written(folder: Path) -> None:
    (folder / "train.py").write_text(_SCRIPT.replace("mean(", "weighted("))
    before = (folder / "train.py").read_bytes()
    done = _command("--prove", "--steps", "6", "-w", "--allow-dirty")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "FAILS     same trajectory as the original" in done.stderr
    assert "DDP402" in done.stderr
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("train.py", before)]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])  # to which the size of gradients matters, and does not
def test_what_holds_otherwise_is_shown(folder: Path, optimizer: str) -> None:
    (folder / "train.py").write_text(_SCRIPT.replace("mean(", "total(").replace("SGD", optimizer))
    done = _command("--prove", "--steps", "6")
    assert done.returncode == 0, done.stderr
    assert "(loss * world_size).backward()" in done.stdout
    assert "`marginlib.total` is taken as their sum (held in 6 steps" in done.stderr


def test_what_holds_otherwise_where_the_run_did_not_come_is_not_taken(folder: Path) -> None:
    rare = "        if len(sys.argv) > 1:\n            other = marginlib.total(model(a), b)\n            other.backward()\n"
    text = _SCRIPT.replace("mean(", "total(").replace("        optimizer.step()\n", f"{rare}        optimizer.step()\n")
    (folder / "train.py").write_text(text)
    done = _command("--prove", "--steps", "6", "-o", "train_ddp.py")
    assert done.returncode == 1
    assert "FAILS" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    "said", [("weighted", "[tool.ddpify.placements]\n'marginlib.weighted' = 'mean'\n", ""), ("total", "", "  # ddpify: mean")]
)
def test_what_the_user_says_is_run_too(folder: Path, said: tuple[str, str, str]) -> None:
    loss, settings, comment = said
    text = _SCRIPT.replace("mean(model(a), b)", f"{loss}(model(a), b){comment}")
    (folder / "train.py").write_text(text)
    (folder / "pyproject.toml").write_text(settings)
    conversion = ddpify.convert(folder / "train.py", ddpify.Options(placements=(("marginlib.weighted", "mean"),) if settings else ()))
    assert conversion.exit_code == 0  # it is believed
    done = _command("--prove", "--steps", "6", "-o", "train_ddp.py")
    assert done.returncode == 1
    assert "FAILS" in done.stderr
    assert not (folder / "train_ddp.py").exists()


def test_gradients_of_another_size_are_not_closed_where_the_optimizer_does_not_mind(folder: Path) -> None:
    conversion = _proved(_SCRIPT.replace("mean(", "total(").replace("SGD", "Adam"))
    finding = _on(conversion, "loss.backward()")
    assert (conversion.exit_code, conversion.changed, finding.level) == (1, True, Safety.REVIEW)
    assert "the gradients were not the original's" in finding.message


def test_rows_that_are_all_the_same_show_nothing(folder: Path) -> None:
    conversion = _proved(_SCRIPT.replace("y = (x", "x = torch.ones(44, 8)\ny = (x"))
    finding = _on(conversion, "loss.backward()")
    assert (conversion.exit_code, finding.level) == (1, Safety.REVIEW)
    assert "all ranks had the same losses" in finding.message


def test_float32_shows_nothing() -> None:
    pair = verdicts.verdict().pair
    assert pair is not None
    assert "float32" in proving._same_gradients(replace(pair, tolerance=SINGLE)).said


def test_a_mistake_in_the_conversion_is_not_closed(folder: Path) -> None:
    Path("train.py").write_text(_SCRIPT)
    conversion = ddpify.convert(Path("train.py"))
    wrong = records.replace(
        conversion, code=conversion.code.replace("sampler=DistributedSampler(", "sampler=torch.utils.data.RandomSampler(")
    )
    assert wrong.code != conversion.code
    proved, verdict = prove(wrong, Path("train.py"), Setting(sys.executable, 2, 6, 120.0, True))
    assert (verdict.exit_code, proved.exit_code, proved.changed, proved.changes) == (1, 1, False, ())
    assert not any(f.observed for f in proved.findings)


def test_only_what_a_rule_says_is_answered() -> None:
    held = {"gradients": Observed(True, "held in 6 steps", 6, 0.0)}
    here, there = (Path("train.py"), 1), (Path("train.py"), 2)
    review = Finding("DDP402", Safety.REVIEW, "a doubt", "train.py", 1)
    assert proving._observed(review, here, {here}, held).level is Safety.REVIEW
    assert proving._observed(records.replace(review, answered_by="gradients"), there, {here}, held).level is Safety.REVIEW
    assert proving._observed(records.replace(review, answered_by="gradients"), here, {here}, held).level is Safety.NOTE
    by_hand = records.replace(review, level=Safety.MANUAL, answered_by="gradients")
    assert proving._observed(by_hand, here, {here}, held) == by_hand


@pytest.mark.parametrize(
    ("text", "line", "runs"),
    [
        ("f(x).backward()", 1, True),
        ("y = g(\n    f(x).backward()\n)", 2, True),
        ("if f(x).backward():\n    pass", 1, True),
        ("if c: f(x).backward()", 1, False),
        ("a = 1; f(x).backward()", 1, False),
        ("c and f(x).backward()", 1, False),
        ("y = f(x).backward() if c else 0", 1, False),
        ("y = lambda: f(x).backward()", 1, False),
        ("y = [f(x).backward() for x in z]", 1, False),
    ],
)
def test_which_expressions_run_with_their_line(text: str, line: int, runs: bool) -> None:
    column = text.splitlines()[line - 1].index("f(x)")
    assert proving._runs_with_its_line(ast.parse(text), line, column) is runs


# --- runs that do not end well ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("more", "args", "said"),
    [
        ("if len(sys.argv) == 1: raise KeyError('never right')\n", (), "the original itself fails: KeyError: 'never right'"),
        ("while True: pass\n", ("--time-limit", "8"), "the original did not come to"),
        ("import no_such_module_anywhere\n", (), "needs the module no_such_module_anywhere"),
    ],
    ids=["an error", "no end", "a module that is missing"],
)
def test_what_cannot_run_is_not_written(folder: Path, more: str, args: tuple[str, ...], said: str) -> None:
    (folder / "train.py").write_text(_SCRIPT.replace("torch.manual_seed(0)\n", f"torch.manual_seed(0)\n{more}"))
    done = _command("--prove", "-o", "train_ddp.py", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (folder / "train_ddp.py").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_interrupts_it_leaves_nothing(folder: Path, number: int) -> None:
    (folder / "train.py").write_text(_SCRIPT.replace("        optimizer.step()", "        optimizer.step()\n        time.sleep(60)"))
    text = (folder / "train.py").read_text()
    (folder / "train.py").write_text(f"import time\n{text}")
    running = subprocess.Popen([sys.executable, "-m", "ddpify", "convert", "train.py", "--prove", "-w"])
    before = (folder / "train.py").read_bytes()
    while running.poll() is None and len(_started(folder.parent)) < 2:  # itself, and the original
        time.sleep(0.1)
    time.sleep(1.0)
    running.send_signal(number)
    assert running.wait() != 0
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("train.py", before)]


def test_nothing_runs_unless_it_is_asked_for(folder: Path) -> None:
    (folder / "train.py").write_text("open('started', 'w')\n" + _SCRIPT)
    assert _command().returncode == 1
    assert _command("--steps", "3").returncode == 2
    assert [p.name for p in folder.iterdir()] == ["train.py"]
