"""`convert --prove`: what a run of both scripts shows closes findings, what it does not show stays open, and what fails is not written."""

import ast
import functools
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
from quick_python import left, python

import ddpify
from ddpify import records
from ddpify.cli import app
from ddpify.conversion import Conversion
from ddpify.facts import sources
from ddpify.facts.model import Value
from ddpify.facts.origins import Origin
from ddpify.options import PLACEMENTS
from ddpify.rehearse import declared
from ddpify.rehearse import prove as proving
from ddpify.rehearse.compare import DOUBLE, SINGLE
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.prove import prove
from ddpify.rules.base import Finding, Observed, Safety

ROOT = Path(__file__).parents[1]
_PACKAGE = """\
import torch
import torch.nn.functional as F


def mean(out, y):
    return F.cross_entropy(out, torch.as_tensor(y))


def total(out, y):
    return F.cross_entropy(out, torch.as_tensor(y), reduction="sum")


def squares(out, y):
    return (out[range(len(y)), y] ** 2).sum()


def weighted(out, y):
    return F.cross_entropy(out, torch.as_tensor(y), weight=torch.tensor([0.2, 1.8], dtype=out.dtype))


def score(out, y):
    return float((out**2).mean())


def largest(out, y):
    return float(out.max())


def always(out, y):
    return 0.5


def augment(x):
    return 2 * x


def running(out, y):
    before.append(float(F.cross_entropy(out, y, reduction="sum")))
    return max(before[-3:])


before = []


class Net(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.used, self.idle = torch.nn.Linear(inputs, outputs), torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.used(x)


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
        loss = marginlib.mean(model(a), [int(v) for v in b])
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
    assert [*_started(tmp_path), *left()] == []


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
    return subprocess.run([python(), "-m", "ddpify", "convert", "train.py", *args], capture_output=True, text=True, check=False)


def _in_process(capsys: pytest.CaptureFixture[str], *args: str) -> subprocess.CompletedProcess[str]:
    """What `_command` does, with no launcher that starts the ranks."""
    with pytest.raises(SystemExit) as stopped:
        app(["convert", "train.py", "--python", python(), *args])
    out, err = capsys.readouterr()
    return subprocess.CompletedProcess(args, int(stopped.value.code or 0), out, err)


def _proved(text: str, steps: int = 6) -> Conversion:
    Path("train.py").write_text(text)
    conversion = ddpify.convert(Path("train.py"), ddpify.Options(whole_batches="never"))
    assert conversion.exit_code == 1
    return prove(conversion, Path("train.py"), Setting(python(), 2, steps, 120.0, True))[0]


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
    rare = "        if len(sys.argv) > 1: marginlib.mean(model(a), [int(v) for v in b]).backward()\n"
    late = "        step += 1\n        if step == 22:\n            marginlib.adjust(model.train())  # the last\n"
    step = "        marginlib.adjust(model)\n        optimizer.step()\n"
    text = _SCRIPT.replace("        optimizer.step()\n", rare + step + late).replace("for epoch", "step = 0\nfor epoch")
    conversion = _proved(text, steps=0)
    assert (conversion.exit_code, conversion.changed) == (1, True)
    assert [_on(conversion, line).level for line in ("loss.backward()", "adjust(model)")] == [Safety.NOTE, Safety.NOTE]
    for line, why in (("[int(v) for v in b]).backward()", "on a line of its own"), ("# the last", "did not come to this line")):
        finding = _on(conversion, line)
        assert finding.level is Safety.REVIEW
        assert why in finding.message


def test_what_does_not_hold_is_not_written(folder: Path) -> None:
    (folder / "train.py").write_text(_SCRIPT.replace("mean(", "weighted("))
    before = (folder / "train.py").read_bytes()
    done = _command("--prove", "--steps", "6", "--whole-batches", "never", "-w", "--allow-dirty")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "FAILS     same trajectory as the original" in done.stderr
    assert "DDP402" in done.stderr
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("train.py", before)]


_EVALUATED = """\
    total = 0.0
    for a, b in val_loader:
        total += marginlib.running(model(a), b)
    print("epoch", epoch, total / len(x))
"""
_OTHERWISE = {
    "a sum": ([("mean(", "total(")], ["(loss * world_size).backward()"], "`marginlib.total` as `sum` did (held in 6 steps"),
    "a sum, and an optimizer that does not mind": (
        [("mean(", "total("), ("SGD", "Adam")],
        ["(loss * world_size).backward()"],
        "`marginlib.total` as `sum` did (held in 6 steps",
    ),
    "a part without gradients": (
        [
            ("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)"),
            ("nn.Linear(8, 2)", "marginlib.Net(8, 2)"),
        ],
        ["find_unused_parameters=True"],
        "--find-unused-parameters on did (held in 6 steps",
    ),
    "an evaluation that remembers": (
        [
            ("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)"),
            ("range(2)", "range(1)"),
            ("for epoch", "val_loader = DataLoader(TensorDataset(x, y), batch_size=4)\nfor epoch"),
            ('    print("epoch", epoch)\n', _EVALUATED),
        ],
        ["total += marginlib.running(model.module(a), b)\n"],
        "--eval replicate did (held in 11 steps",
    ),
}
_OTHERWISE |= {
    "an average that is not seen to be one": (
        [
            ("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)"),
            ("range(2):\n", "range(1):\n    seen = 0.0\n"),
            ("        optimizer.step()\n", "        optimizer.step()\n        seen += float(a.sort(0).values.mean())\n"),
            ('    print("epoch", epoch)\n', '    print("epoch", epoch, seen)\n'),
        ],
        ["seen = sum_over_ranks(seen) / world_size"],
        "converted with `train.py:19` as `mean`, as its values were (held in 6 steps",
    ),
    "an average that is collected": (
        [
            ("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)"),
            ("range(2):\n", "range(1):\n    seen = []\n"),
            ("        optimizer.step()\n", "        optimizer.step()\n        seen.append(float(a.sort(0).values.mean()))\n"),
            ('    print("epoch", epoch)\n', '    print("epoch", epoch, sum(seen) / len(seen))\n'),
        ],
        ["seen.append(sum_over_ranks(float(a.sort(0).values.mean())) / world_size)"],
        "converted with `train.py:19` as `mean`, as its values were (held in 6 steps",
    ),
    "a number of whole batches only": (
        [
            ("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)"),
            ("range(2):\n", "range(1):\n    seen = []\n"),
            ("        optimizer.step()\n", "        optimizer.step()\n        seen.append(float(a.sort(0).values.mean()) ** 2)\n"),
            ('    print("epoch", epoch)\n', '    print("epoch", epoch, sum(seen) / len(seen))\n'),
        ],
        ["WholeBatches"],
        "In 11 steps, 2 ranks trained like the original",
    ),
    "all that is not known, at once": (
        [
            ("range(2):\n", "range(1):\n    scores, seen = [], 0.0\n"),
            (
                "loss = marginlib.mean(model(a), [int(v) for v in b])",
                "out, wanted = model(marginlib.augment(a)), [int(v) for v in b]\n"
                "        loss = marginlib.total(out, wanted) + 0.5 * marginlib.squares(out, wanted)\n"
                "        scores.append(marginlib.score(out, b))\n"
                "        seen += marginlib.total(out, wanted).item()",
            ),
            ('    print("epoch", epoch)\n', '    print("epoch", epoch, sum(scores) / len(scores), seen)\n'),
        ],
        ["(loss * world_size).backward()", "sum_over_ranks(marginlib.score(out, b)) / world_size", "seen = sum_over_ranks(seen)"],
        "`marginlib.augment` as `shard` and `marginlib.squares` as `sum`, as its values were (held in 6 steps",
    ),
}
"""By what is wrong in the first conversion: what makes the script so, lines of the one that holds, and what is told."""


@pytest.mark.parametrize("title", _OTHERWISE)
def test_what_holds_otherwise_is_shown(folder: Path, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, (edits, lines, told) = _SCRIPT, _OTHERWISE[title]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "train.py").write_text(text)
    (folder / "pyproject.toml").write_text("[tool.ddpify.placements]\n'marginlib.running' = 'sum'\n")
    done = _in_process(capsys, "--prove", "--steps", "0" if "evaluation" in title or "whole" in title else "6", "-o", "train_ddp.py")
    assert done.returncode == 0, done.stdout + done.stderr
    code = (folder / "train_ddp.py").read_text()
    assert all(line in code for line in lines), code
    assert told in done.stderr


def test_what_holds_otherwise_where_the_run_did_not_come_is_not_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rare = (
        "        if len(sys.argv) > 1:\n            other = marginlib.total(model(a), [int(v) for v in b])\n            other.backward()\n"
    )
    text = _SCRIPT.replace("mean(", "total(").replace("        optimizer.step()\n", f"{rare}        optimizer.step()\n")
    (folder / "train.py").write_text(text)
    done = _in_process(capsys, "--prove", "--steps", "6", "--whole-batches", "never", "-o", "train_ddp.py")
    assert done.returncode == 1
    assert "FAILS" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["train.py"]
    done = _in_process(capsys, "--prove", "--steps", "6", "-o", "train_ddp.py")
    assert (done.returncode, "WholeBatches" in (folder / "train_ddp.py").read_text()) == (0, True)  # of which nothing is in doubt


@pytest.mark.parametrize("function", ["largest", "always"])
def test_a_number_that_is_no_average_nor_total_stays_open(folder: Path, function: str, capsys: pytest.CaptureFixture[str]) -> None:
    total = f"        seen += marginlib.{function}(model(a), b)\n        optimizer.step()\n"
    text = _SCRIPT.replace("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)")
    text = text.replace("        optimizer.step()\n", total).replace("range(2):", "range(1):\n    seen = 0.0")
    (folder / "train.py").write_text(text.replace('("epoch", epoch)', '("epoch", epoch, seen)'))
    done = _in_process(capsys, "--prove", "--steps", "0", "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [f["level"] for f in report["findings"] if f["code"] == "DDP404" and "part of the data only" in f["message"]] == ["MANUAL"]
    tried = {"largest": [], "always": ["as converted: holds", "`marginlib.always` as `mean`: holds"]}  # what all ranks share shows nothing
    assert report["trial"]["tried"] == tried[function]


@pytest.mark.parametrize(
    "said", [("weighted", "[tool.ddpify.placements]\n'marginlib.weighted' = 'mean'\n", ""), ("total", "", "  # ddpify: mean")]
)
def test_what_the_user_says_is_run_too(folder: Path, said: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    loss, settings, comment = said
    text = _SCRIPT.replace("mean(model(a), [int(v) for v in b])", f"{loss}(model(a), [int(v) for v in b]){comment}")
    (folder / "train.py").write_text(text)
    (folder / "pyproject.toml").write_text(settings)
    conversion = ddpify.convert(folder / "train.py", ddpify.Options(placements=(("marginlib.weighted", "mean"),) if settings else ()))
    assert conversion.exit_code == 0  # it is believed
    done = _in_process(capsys, "--prove", "--steps", "6", "-o", "train_ddp.py")
    assert done.returncode == 1
    assert "FAILS     values are as declared" in done.stderr
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
    assert "float32" in proving._same_gradients(replace(pair, tolerance=SINGLE), True).said


def test_a_mistake_in_the_conversion_is_not_closed(folder: Path) -> None:
    Path("train.py").write_text(_SCRIPT)
    conversion = ddpify.convert(Path("train.py"))
    wrong = records.replace(
        conversion, code=conversion.code.replace("sampler=DistributedSampler(", "sampler=torch.utils.data.RandomSampler(")
    )
    assert wrong.code != conversion.code
    proved, verdict = prove(wrong, Path("train.py"), Setting(python(), 2, 6, 120.0, True))
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
        ("while True: pass\n", ("--time-limit", "6"), "the original did not come to"),
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


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
@pytest.mark.parametrize(("size", "said"), [(500, "no copies of the project can be made")])
def test_where_there_is_no_room_nothing_is_written(folder: Path, size: int, said: str) -> None:
    import resource

    (folder / "train.py").write_text(_SCRIPT)
    command = [sys.executable, "-m", "ddpify", "convert", "train.py", "--prove", "-w", "--allow-dirty"]
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))  # no file may become longer, as on a full disk
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # no module's bytecode is to be cut short
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("train.py", _SCRIPT)]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_interrupts_it_leaves_nothing(folder: Path, number: int) -> None:
    (folder / "train.py").write_text(_SCRIPT.replace("        optimizer.step()", "        optimizer.step()\n        time.sleep(60)"))
    text = (folder / "train.py").read_text()
    unwilling = "import signal\nimport time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"  # so that there is something to wait for
    (folder / "train.py").write_text(unwilling + text)
    running = subprocess.Popen([sys.executable, "-m", "ddpify", "convert", "train.py", "--prove", "-w"])
    before = (folder / "train.py").read_bytes()
    while running.poll() is None and len(_started(folder.parent)) < 3:  # itself, what scripts are forked from, and the original
        time.sleep(0.1)
    time.sleep(1.0)
    running.send_signal(number)
    time.sleep(0.3)
    running.send_signal(number)  # who is impatient disturbs nothing
    assert running.wait() != 0
    assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("train.py", before)]


_DRAWN = """\
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)


class Pairs(Dataset):
    def draw(self):
        self.others = [(np.random.randint(44), random.randrange(44), int(torch.randint(44, (1,)))) for _ in range(44)]

    def __len__(self):
        return 44

    def __getitem__(self, i):
        return x[i], x[list(self.others[i])].sum(0)


class Net(nn.Linear):
    def forward(self, rows):
        if isinstance(rows.data, torch.cuda.FloatTensor):
            return super().forward(rows)
        raise TypeError("only for GPUs")


model = Net(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = Pairs()
loader = DataLoader(data, batch_size=4, shuffle=True)
for epoch in range(2):
    data.draw()
    for a, b in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(a.cuda()), b.cuda()).backward()
        optimizer.step()
"""


def test_what_ranks_draw_alike_is_what_the_original_draws(folder: Path) -> None:
    (folder / "train.py").write_text(_DRAWN)
    conversion = ddpify.convert(Path("train.py"))
    assert (conversion.exit_code, "drawn_by_rank_zero():" in conversion.code) == (0, True)
    proven, verdict = prove(conversion, Path("train.py"), Setting(python(), 2, 0, 120.0, True))
    assert (verdict.status, proven.changed) == ("holds", True), verdict.rows
    assert len(verdict.pair.single.first.steps) == 22


_SPARSE = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.arange(44 * 3).view(44, 3) * 7 % 11
model = nn.EmbeddingBag(11, 4, sparse=True)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(1):
    for (a,) in DataLoader(TensorDataset(rows), batch_size=4, shuffle=True):
        loss = ((model(a) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_sparse_gradients_are_compared(folder: Path) -> None:
    (folder / "train.py").write_text(_SPARSE)
    conversion = ddpify.convert(Path("train.py"))
    assert conversion.exit_code == 0, conversion.findings
    _, verdict = prove(conversion, Path("train.py"), Setting(python(), 2, 0, 120.0, True))
    assert verdict.status == "holds", (verdict.reason, verdict.rows)


def test_what_a_package_says_when_it_is_imported_is_no_print_of_the_script(folder: Path) -> None:
    with (folder.parent / "packages/marginlib/__init__.py").open("a") as package:
        package.write("\nprint('another release of marginlib is out')\n")
    text = _SCRIPT.replace("marginlib.mean(model(a), [int(v) for v in b])", "nn.functional.cross_entropy(model(a), b)")
    (folder / "train.py").write_text(text)
    _, verdict = prove(ddpify.convert(Path("train.py")), Path("train.py"), Setting(python(), 2, 3, 120.0, True))
    assert verdict.status == "holds", verdict.rows


_SEVERAL = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(1):
    for (a,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
        out = model(a)
        guesses = out + 0.1 * torch.randn(3, a.size(0), 8)
        guesses = guesses + 0.1 * torch.rand((3, len(a), 1)).repeat(1, 1, 8) + 0.1 * torch.empty((3, len(a), 8)).normal_()
        loss = ((guesses - a) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_each_row_has_noise_of_its_own_however_often_it_is_drawn(folder: Path) -> None:
    (folder / "train.py").write_text(_SEVERAL)
    conversion = ddpify.convert(Path("train.py"))
    assert conversion.exit_code == 0, conversion.findings
    _, verdict = prove(conversion, Path("train.py"), Setting(python(), 2, 0, 120.0, True))
    assert verdict.status == "holds", verdict.rows


def test_nothing_runs_unless_it_is_asked_for(folder: Path) -> None:
    (folder / "train.py").write_text("open('started', 'w')\n" + _SCRIPT)
    assert _command().returncode == 0
    assert _command("--steps", "3").returncode == 2
    assert [p.name for p in folder.iterdir()] == ["train.py"]


# --- what is said of values -----------------------------------------------------------------------------------------------
def _claimed(text: str, code: str, start: str, until: str) -> tuple[str, str]:
    """The texts before and after a conversion, with a call that tells what an expression of the first one gives."""
    line, path = next(i for i, each in enumerate(text.splitlines(), 1) if start in each), Path("train.py")
    row = text.splitlines()[line - 1]
    place = declared.Place(path, (line, row.index(start)), (line, row.index(until) + len(until)))
    return declared.instrumented({path: text}, [place])[path], declared.instrumented_result({path: text}, {path: code}, [place])[path]


@pytest.mark.parametrize(
    ("text", "code", "start", "until", "before", "after"),
    [
        (
            "f(x, y).backward()",
            "import a\n(f(g(x), y) * 2).backward()",
            "f(x",
            "y)",
            "SEEN(f(x, y))).backward()",
            "import a\n(SEEN(f(g(x), y))) * 2).backward()",
        ),
        ("f(f(x))", "f(f(x))", "f(x", "x)", "f(SEEN(f(x))))", "f(SEEN(f(x))))"),
        ("a = x, y", "if r:\n    a = x, y", "x,", "y", "a = SEEN(x, y))", "if r:\n    a = SEEN(x, y))"),
        ("a = x + y", "a = g(x) + y", "x +", "y", "a = SEEN(x + y))", "a = g(x) + y"),  # what an edit changed is another value
        ("f(x)", "f(x), f(x)", "f(x", "x)", "SEEN(f(x)))", "f(x), f(x)"),
    ],
)
def test_an_expression_is_found_in_both_texts(text: str, code: str, start: str, until: str, before: str, after: str) -> None:
    seen = '__import__("ddpify_rehearsal.values").values.seen(0, ('
    assert _claimed(text, code, start, until) == (before.replace("SEEN(", seen), after.replace("SEEN(", seen))


def _told(*sides: tuple[float, list[float]]) -> list[list[declared.Part]]:
    return [[{"digest": [n, n, n, n, abs(n)], "rows": rows, "whole": True}] for n, rows in sides]


@pytest.mark.parametrize(
    ("sides", "holds"),
    [
        ([(2.0, []), (1.0, []), (3.0, [])], {"mean"}),
        ([(4.0, []), (1.0, []), (3.0, [])], {"sum"}),
        ([(2.0, []), (2.0, []), (2.0, [])], {"mean", "replicate", "coupled"}),
        ([(5.0, [1.0, 4.0]), (4.0, [4.0]), (1.0, [1.0])], {"sum", "shard"}),
        ([(5.0, [1.0, 4.0]), (4.0, [4.0]), (4.0, [4.0])], set()),
    ],
)
def test_what_values_of_ranks_are_to_the_originals(sides: list[tuple[float, list[float]]], holds: set[str]) -> None:
    apart = {word: declared._apart(word, _told(*sides)) for word in PLACEMENTS}
    assert {word for word, by in apart.items() if by is not None and by <= 10 * DOUBLE.relative} == holds
    assert apart["per-rank"] is None  # there is nothing to compare
    assert (apart["shard"] is None) == (not sides[0][1])


def test_what_is_said_is_not_taken_back_with_a_claim() -> None:
    claimed = Value(origins=frozenset((Origin("needs", ("rows", 3)), Origin("batch"))), scale="other")
    said = sources.as_said("mean", claimed)
    assert (said.scale, said.origins) == ("mean", frozenset((Origin("batch"),)))


# --- what is asked, and whether a run answers it --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("loader", "between", "answered_by"),
    [
        ("batch_size=4", "out = out.cumsum(0)", ["gradients"]),
        ("batch_size=4", "out = F.batch_norm(out, None, None, training=True)", [""]),  # its statistics are taken out of a comparison
        ("batch_size=1", "out = out.relu()", ["batches"]),
        ("batch_size=4, collate_fn=padded", "out = out.relu()", ["gradients of unequal batches"]),
    ],
)
def test_what_is_asked_says_what_answers_it(loader: str, between: str, answered_by: list[str]) -> None:
    model = (
        f"class Net(nn.Linear):\n    def forward(self, x):\n        out = super().forward(x)\n        {between}\n        return out\n\n\n"
    )
    padded = (
        "def padded(rows):\n    a, b = zip(*rows)\n"
        "    return nn.utils.rnn.pad_sequence(a, batch_first=True), nn.utils.rnn.pad_sequence(b, batch_first=True)\n\n\n"
    )
    text = _SCRIPT.replace("import marginlib\n", f"import torch.nn.functional as F\n\n\n{model}{padded}").replace(
        "nn.Linear(8, 2)", "Net(8, 2)"
    )
    text = (
        text.replace("marginlib.mean(model(a), [int(v) for v in b])", "F.mse_loss(model(a), b)")
        .replace("(x.sum(1) > 0).long()", "x[:, :2]")
        .replace("batch_size=4", loader)
    )
    asked = [f.answered_by for f in ddpify.convert(text, ddpify.Options(whole_batches="never")).findings if f.level is Safety.REVIEW]
    assert asked == answered_by
