"""Projects of several files: how they are written, and that scripts which are not converted go on using the modules."""

import errno
import os
import subprocess
from pathlib import Path
from typing import IO

import pytest
from quick_python import python
from scripts import Script, text
from table_projects import DATA, ENGINE, MAIN, METERS
from typer.testing import CliRunner

import ddpify
from ddpify import Conversion, Options, cli
from ddpify.project import load
from ddpify.rules.base import Safety
from ddpify.source import read

ALONE = """\
import torch

from data import get_loaders
from engine import evaluate, train_one_epoch

torch.manual_seed(3)
train, test = get_loaders(6)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    print([int(label) for _, target in train for label in target])
    train_one_epoch(model, train, optimizer, epoch)
print(evaluate(model, test), [p.sum().item() for p in model.parameters()])
"""
FILES = {"data.py": DATA, "engine.py": ENGINE, "meters.py": METERS, "alone.py": ALONE, "train.py": text(Script(MAIN))}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.py")}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python(), *command], cwd=folder, capture_output=True, text=True, check=False)


def test_a_script_that_is_not_converted_trains_as_before(project: Path) -> None:
    before = run(project, "alone.py")
    assert before.returncode == 0, before.stderr
    assert run(project, "-m", "ddpify", "convert", "train.py", "-w").returncode == 0
    assert (project / "ddp_utils.py").exists()
    assert contents(project)["alone.py"] == ALONE
    after = run(project, "alone.py")
    assert (after.returncode, after.stdout) == (0, before.stdout), after.stderr


def test_scripts_that_share_what_finds_their_modules_train_as_before(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    adding = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n"
    for name, content in {**FILES, "paths.py": adding}.items():
        folder = tools if name in ("train.py", "alone.py", "paths.py") else tmp_path / "lib"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"import paths\n{content}" if name in ("train.py", "alone.py") else content)
    before = run(tools, "alone.py")
    assert before.returncode == 0, before.stderr
    assert run(tools, "-m", "ddpify", "convert", "train.py", "-w").returncode == 0
    after = run(tools, "alone.py")
    assert (after.returncode, after.stdout) == (0, before.stdout), after.stderr


LOADERS = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def numbers(batch_size=4, shuffle=True):
    return DataLoader(TensorDataset(torch.arange(8.0).view(8, 1)), shuffle=shuffle, batch_size=batch_size)
"""
TRAINED = """\
import torch

from loaders import numbers

net = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = numbers()
for epoch in range(2):
    for (rows,) in loader:
        optimizer.zero_grad()
        net(rows).mean().backward()
        optimizer.step()
"""
LISTED = "from loaders import numbers\n\nprint([rows.flatten().tolist() for (rows,) in numbers(shuffle=False)])\n"


def test_a_script_that_is_not_converted_gets_the_order_it_asks_for(tmp_path: Path) -> None:
    for name, content in {"loaders.py": LOADERS, "train.py": TRAINED, "listed.py": LISTED}.items():
        (tmp_path / name).write_text(content)
    assert run(tmp_path, "-m", "ddpify", "convert", "train.py", "-w").returncode == 0
    assert "DistributedSampler" in contents(tmp_path)["loaders.py"]
    assert run(tmp_path, "listed.py").stdout == "[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]\n"


def test_a_folder_gets_all_that_runs(project: Path) -> None:
    (project / "out").mkdir()
    assert run(project, "-m", "ddpify", "convert", "train.py", "-o", "out").returncode == 0
    assert contents(project) == FILES
    assert sorted(contents(project / "out")) == ["data.py", "ddp_utils.py", "engine.py", "meters.py", "train.py"]
    assert run(project / "out", "train.py").returncode == 0


def test_one_file_cannot_hold_several(project: Path) -> None:
    done = run(project, "-m", "ddpify", "convert", "train.py", "-o", "one.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "data.py" in done.stderr and "-o DIR" in done.stderr
    assert contents(project) == FILES


def test_all_or_none_is_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, replaced = os.replace, []

    def full_at_the_third(source: Path, target: Path) -> None:
        replaced.append(target)
        if len(replaced) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full_at_the_third)
    done = CliRunner().invoke(cli.app, ["convert", str(project / "train.py"), "-w"])
    assert len(replaced) == 3
    assert done.exit_code == 2 and "No space left" in done.stderr
    assert contents(project) == FILES
    assert {path.name for path in project.iterdir()} == set(FILES)


def test_the_diff_applies(project: Path) -> None:
    diff = run(project, "-m", "ddpify", "convert", "train.py").stdout
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "apply"], cwd=project, check=True, input=diff, text=True)
    done = ddpify.convert(project / "train.py")
    assert done.status == "nothing"
    assert read(project / "ddp_utils.py").text.startswith('"""')


def test_a_name_that_is_taken(project: Path) -> None:
    (project / "ddp_utils.py").write_text("mine = 1\n")
    done = ddpify.convert(project / "train.py")
    assert [module.path.name for module in done.modules if module.added] == ["ddp_ranks.py"]


@pytest.mark.parametrize("name", ["site-packages", "vendor"])
def test_modules_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    for file in ("data.py", "engine.py", "meters.py"):
        (tmp_path / name / file).write_text(FILES[file])
    (tmp_path / "train.py").write_text(f"import sys\nsys.path.append({name!r})\n" + FILES["train.py"])
    done = ddpify.convert(tmp_path / "train.py")
    assert done.edited == ()
    assert {finding.file.rpartition("/")[2] for finding in done.findings} >= {"data.py"}
    assert done.exit_code == 1


def test_modules_in_a_folder_beside_the_entry_s_are_edited(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "tools").mkdir()
    for file in ("data.py", "engine.py", "meters.py"):
        (tmp_path / "lib" / file).write_text(FILES[file])
    above = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n"
    (tmp_path / "tools" / "train.py").write_text(above + FILES["train.py"])
    done = ddpify.convert(tmp_path / "tools" / "train.py")
    assert done.exit_code == 0
    assert {module.path.parent for module in done.edited} == {(tmp_path / "lib").resolve()}


def test_a_folder_beside_the_project_is_not_part_of_it(tmp_path: Path) -> None:
    for name in ("project", "other"):
        (tmp_path / name).mkdir()
        for file in FILES:
            (tmp_path / name / file).write_text(FILES[file])
    loaded = load(tmp_path / "project" / "train.py")
    assert loaded.top == tmp_path / "project"


def test_a_module_that_cannot_be_parsed(project: Path) -> None:
    with (project / "engine.py").open("a") as file:
        file.write("loss = (\n")
    before = contents(project)
    done = run(project, "-m", "ddpify", "convert", "train.py", "-w")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"engine.py:{len(before['engine.py'].splitlines())}:8" in done.stderr and "never closed" in done.stderr
    assert contents(project) == before


def test_a_module_in_an_old_spelling_of_which_nothing_else_changes(project: Path) -> None:
    (project / "moving.py").write_text("def moved(rows):\n    return rows.cuda(async=True)\n")
    script = project / "train.py"
    script.write_text("from moving import moved\n" + script.read_text())
    done = ddpify.convert(script)
    assert done.exit_code == 0
    assert {m.path.name: m.code for m in done.edited}["moving.py"] == "def moved(rows):\n    return rows.cuda(non_blocking=True)\n"


def test_a_module_that_no_one_can_read(project: Path) -> None:
    (project / "data.py").write_bytes(b"\xff\xfe\x00 no text")
    done = run(project, "-m", "ddpify", "convert", "train.py", "-w")
    assert (done.returncode, done.stdout) == (2, "")
    assert "data.py" in done.stderr and "UTF-16" in done.stderr
    assert (project / "train.py").read_text() == FILES["train.py"]


def test_a_module_that_cannot_be_read_where_the_script_can_do_without_it(project: Path) -> None:
    (project / "extra.py").write_text("print 1\n")
    lines = "try:\n    import extra\nexcept Exception:\n    extra = None\n"
    (project / "train.py").write_text(lines + FILES["train.py"])
    done = ddpify.convert(project / "train.py")
    (told,) = (f for f in done.findings if "extra" in f.message)
    assert (told.code, told.level, told.line) == ("DDP900", Safety.MANUAL, 2)
    assert done.changed


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to anything")
def test_a_module_that_is_read_only(project: Path) -> None:
    (project / "engine.py").chmod(0o444)
    done = run(project, "-m", "ddpify", "convert", "train.py", "-w")
    assert done.returncode == 2 and "engine.py" in done.stderr and "read-only" in done.stderr
    assert contents(project) == FILES


def test_a_read_only_module_as_the_system_tells_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("engine.py") and access(path, mode))
    done = CliRunner().invoke(cli.app, ["convert", str(project / "train.py"), "-w"])
    assert done.exit_code == 2 and "engine.py" in done.stderr and "read-only" in done.stderr
    assert contents(project) == FILES


def test_a_disk_that_is_full_at_the_third_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def full_at_the_third(path: Path, mode: str = "r") -> IO[bytes]:
        if mode == "xb":
            opened.append(str(path))
            if len(opened) == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return open(path, mode)

    monkeypatch.setattr("ddpify.source.open", full_at_the_third, raising=False)
    done = CliRunner().invoke(cli.app, ["convert", str(project / "train.py"), "-w"])
    assert len(opened) == 3
    assert done.exit_code == 2 and "No space left" in done.stderr
    assert contents(project) == FILES
    assert {path.name for path in project.iterdir()} == set(FILES)


def test_a_link_out_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data.py").write_text(DATA)
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("engine.py", "meters.py", "train.py"):
        (folder / name).write_text(FILES[name])
    (folder / "pyproject.toml").write_text("")
    (folder / "data.py").symlink_to(tmp_path / "elsewhere" / "data.py")
    done = run(folder, "-m", "ddpify", "convert", "train.py", "-w")
    assert done.returncode == 1 and "data.py" in done.stderr and "not edited" in done.stderr
    assert (tmp_path / "elsewhere" / "data.py").read_text() == DATA


def test_a_file_that_is_changed_meanwhile(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = cli._convert

    def slowly(path: str, options: Options) -> Conversion:
        done = convert(path, options)
        (project / "engine.py").write_text(ENGINE + "# saved by an editor\n")
        return done

    monkeypatch.setattr(cli, "_convert", slowly)
    done = CliRunner().invoke(cli.app, ["convert", str(project / "train.py"), "-w"])
    assert done.exit_code == 2 and "engine.py" in done.stderr and "changed while it was converted" in done.stderr
    assert contents(project) == FILES | {"engine.py": ENGINE + "# saved by an editor\n"}


AROUND = {
    "the folder above, that nothing marks": ("runs", "", {}),
    "two folders above": ("runs/digits", "", {}),
    "a folder between the script and the project's": ("digits/runs", "digits", {"setup.py": ""}),
    "the folder of packages": ("runs", "src", {"pyproject.toml": ""}),
    "the folder that packages are said to be in": ("runs", "pkg", {"pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["pkg"]\n'}),
    "the folder of the package without a name": ("runs", "lib", {"pyproject.toml": '[tool.setuptools]\npackage-dir = {"" = "lib"}\n'}),
}


@pytest.mark.parametrize("title", AROUND)
def test_modules_are_found_around_the_script(tmp_path: Path, title: str) -> None:
    at, home, marks = AROUND[title]
    top = tmp_path / "of" / "one" / "project"
    for name, content in FILES.items():
        file = top / (at if name == "train.py" else home) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for name, content in marks.items():
        (top / name).write_text(content)
    found = os.environ | {"PYTHONPATH": str(top / home)}
    before = subprocess.run([python(), "train.py"], cwd=top / at, capture_output=True, text=True, env=found)
    assert before.returncode == 0, before.stderr
    done = run(top / at, "-m", "ddpify", "convert", "train.py", "-w", "--allow-dirty")
    assert done.returncode == 0, done.stderr
    assert "per_rank" in (top / home / "data.py").read_text()
    after = subprocess.run([python(), "train.py"], cwd=top / at, capture_output=True, text=True, env=found)
    assert after.returncode == 0, after.stderr
    assert len(after.stdout.splitlines()) == len(before.stdout.splitlines()) > 0


def test_modules_farther_up_are_no_part_of_a_script(tmp_path: Path) -> None:
    for name, content in FILES.items():
        file = tmp_path / ("one/two/three" if name == "train.py" else "") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    done = load(tmp_path / "one" / "two" / "three" / "train.py")
    assert done.module("data") is None and done.module("engine") is None


def test_a_module_beside_the_script_comes_before_one_above(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for folder in (tmp_path, tmp_path / "runs"):
        (folder / "data.py").write_text(DATA)
    (tmp_path / "runs" / "train.py").write_text("import data\nimport random\nimport torch\n")
    (tmp_path / "random.py").write_text("")
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "setup.py").write_text("")
    found = load(tmp_path / "runs" / "train.py")
    file = found.module("data")
    assert file is not None and file.path == tmp_path / "runs" / "data.py"
    assert not found.is_local("torch")


def test_a_module_that_is_called_like_its_folder_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "net.py").write_text("class net:\n    pass\n")
    (tmp_path / "net" / "train.py").write_text("from net import net\n")
    (tmp_path / "setup.py").write_text("")
    found = load(tmp_path / "net" / "train.py")
    assert found.module("net") is not None and found.module("net.net") is None
    assert found.reachable() == [tmp_path / "net" / "net.py"]


def test_a_folder_is_its_script(project: Path) -> None:
    (project / "alone.py").unlink()
    done = run(project.parent, "-m", "ddpify", "convert", project.name)
    assert done.returncode == 0 and f"{project.name}/train.py" in done.stderr
    assert done.stdout == run(project.parent, "-m", "ddpify", "convert", f"{project.name}/train.py").stdout


def test_files_are_named_as_seen_from_the_script(project: Path) -> None:
    rows = run(project.parent, "-m", "ddpify", "convert", f"{project.name}/train.py").stderr.splitlines()
    assert any("engine.py:" in row for row in rows)
    assert [row for row in rows if row.startswith("DDP") and project.name in row] == []


def test_a_folder_with_several_scripts(project: Path) -> None:
    done = run(project, "-m", "ddpify", "convert", ".", "-w")
    assert (done.returncode, done.stdout) == (2, "")
    assert "1  alone.py" in done.stderr and "2  train.py" in done.stderr and "engine.py" not in done.stderr
    assert contents(project) == FILES


def test_a_folder_without_a_script(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("import torch\nNet = torch.nn.Linear\n")
    done = run(tmp_path, "-m", "ddpify", "convert", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no script" in done.stderr


TRAINING = """\
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=8)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for rows, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(rows), labels).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("dots", [1, 2, 3, 4, 9, 40])
@pytest.mark.parametrize("where", ["", "from .far import x\n"])
def test_relative_imports_with_any_number_of_dots(tmp_path, dots, where) -> None:
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "__init__.py").write_text("")
    (tmp_path / "near" / "far.py").write_text(f"from {'.' * dots}other import y\nfrom {'.' * dots} import z\nx = 1\n")
    script = tmp_path / "near" / "train.py"
    script.write_text(f"import torch\n{where or f'from {chr(46) * dots}other import y'}\n" + TRAINING)
    done = ddpify.convert(script)
    assert "DDP901" not in {finding.code for finding in done.findings}
    assert "DistributedDataParallel(model" in done.code


SEEDED = """\
import random

import torch


def seed_worker(worker):
    random.seed(7 + worker)


def rows():
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
    return torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, worker_init_fn=seed_worker)


def unused(worker):
    random.seed(7 + worker)
"""


NUMBERED = """\
import random

import torch


class Rows(torch.utils.data.Dataset):
    started = False

    def __len__(self):
        return 64

    def __getitem__(self, i):
        worker = torch.utils.data.get_worker_info()
        if worker is not None and not self.started:
            random.seed(worker.id)
            self.started = True
        return torch.full((8,), random.random()), i % 2


def rows():
    return torch.utils.data.DataLoader(Rows() + Rows(), batch_size=8, num_workers=2)
"""


def test_a_module_of_data_that_seed_their_workers_by_number(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    (tmp_path / "rows.py").write_text(NUMBERED)
    script.write_text("import torch\nfrom rows import rows\n\nloader = rows()\n" + "".join(TRAINING.splitlines(True)[2:]))
    done = ddpify.convert(script)
    changed = {module.path.name: module.code for module in done.edited}
    assert not done.findings
    assert changed["rows.py"].count("random.seed(worker.id + 1000 * get_rank())") == 1


def test_a_module_that_seeds_the_workers_of_a_loader(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    (tmp_path / "rows.py").write_text(SEEDED)
    script.write_text("import torch\nfrom rows import rows\n\nloader = rows()\n" + "".join(TRAINING.splitlines(True)[2:]))
    done = ddpify.convert(script)
    changed = {module.path.name: module.code for module in done.edited}
    assert not done.findings
    assert changed["rows.py"].count("random.seed(7 + worker + 1000 * get_rank())") == 1
