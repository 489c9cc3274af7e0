"""`ddpify new`: what is rendered, what is refused, and that all or nothing is written."""

from __future__ import annotations

import ast
import itertools
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ddpify import cli, scaffold
from ddpify.errors import DdpifyError
from ddpify.resources import template_dir
from ddpify.scaffold import CHOICES, Settings, package_name, render

ALL = [
    Settings(task=task, launcher=launcher, amp=amp, ddp=ddp)
    for task, launcher, amp, ddp in itertools.product(CHOICES["task"], CHOICES["launcher"], CHOICES["amp"], ("torch", "apex"))
]
TRACKED = [Settings(task=task, tracker=tracker) for task in CHOICES["task"] for tracker in ("tensorboard", "wandb")]


@pytest.fixture
def ddpify(monkeypatch, tmp_path, capfdbinary):
    """Run the command line in an empty folder; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ddpify", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfdbinary.readouterr()
        return ended.value.code or 0, out.decode(), err.decode()

    return run


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# --- what is rendered ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of project."""
    top = tmp_path_factory.mktemp("projects")
    for settings in (*ALL, *TRACKED):
        name = "-".join((settings.task, settings.launcher, settings.amp, settings.ddp, settings.tracker))
        scaffold.write(top / name, render(settings))
    return top


def test_every_combination_compiles_and_is_neat(everything: Path) -> None:
    assert len(list(everything.iterdir())) == len(ALL) + len(TRACKED) == 264
    for path in everything.rglob("*.py"):
        ast.parse(path.read_text())
    for command in (["check", "-q"], ["format", "--check", "-q"]):
        done = subprocess.run([sys.executable, "-m", "ruff", *command, "--no-cache", "."], cwd=everything, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    for path in everything.rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert text.endswith("\n") and not text.endswith("\n\n") and "{{" not in text and "{%" not in text, path
            assert "\n\n\n" not in text or path.suffix == ".py", path
    for path in everything.glob("*/run.sh"):
        assert os.access(path, os.X_OK)
    done = subprocess.run(["sh", "-n", *everything.glob("*/run.sh")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_project_is_small(everything: Path) -> None:
    for project in everything.iterdir():
        lines = sum(len(path.read_text().splitlines()) for path in project.rglob("*.py") if path.name != "benchmark.py")
        assert lines < 650, project


def test_types(everything: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    projects = sorted(everything.iterdir())
    some = [everything / f"{task}-{end}" for task, end in SOME_TYPES.items()]
    for project in projects if request.config.getoption("--all-projects") else some:
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True)
        assert done.returncode == 0, f"{project.name}\n{done.stdout}"


SOME_TYPES = {"pix2pix": "spawn-apex-O1-apex-none", "language-model": "torchrun-torch-torch-none", "distillation": "launch-none-torch-none"}


def test_the_runtime_is_the_one_that_convert_emits() -> None:
    made = render(Settings())["my_project/distributed.py"].decode()
    texts = {path.stem: path.read_text() for path in (template_dir() / "runtime").glob("*.py")}
    used = {name for name, text in texts.items() if text in made}
    assert {"setup", "device", "init_distributed", "per_rank", "workers_per_rank", "batches_of_rank", "sum_over_ranks"} <= used
    defined = {node.name for node in ast.parse(made).body if isinstance(node, ast.FunctionDef)}
    assert defined - used == {"drift"}


def test_a_project_needs_no_ddpify(everything: Path) -> None:
    assert not [path for path in everything.rglob("*.py") if "ddpify" in path.read_text()]


# --- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["faces", "my_run", "GPT2", "a1"])
def test_names_that_will_do(name: str) -> None:
    assert package_name(name) == name


@pytest.mark.parametrize(
    ("name", "better"),
    {
        "my-run": "my_run",
        "my run": "my_run",
        "2nd": "run_2nd",
        "class": "class_project",
        "torch": "torch_project",
        "Random": "Random_project",
        "test": "test_project",
        "tests": "tests_project",
        "train": "train_project",
        "wandb": "wandb_project",
        "__main__": "main",
        "_": "my_project",
        "___": "my_project",
        "_runs_": "runs_project",
        "_1st": "run_1st",
        "faces_": "faces",
        "été": "t",
        "…": "my_project",
        "": "my_project",
        "a.b": "a_b",
        "my-Run": "my_run",
        "-for-": "for_project",
    }.items(),
)
def test_names_that_will_not_do(name: str, better: str) -> None:
    assert package_name(name) == better == package_name(better)
    with pytest.raises(DdpifyError) as failure:
        Settings(name)
    assert better in failure.value.hint


# --- the command ---------------------------------------------------------------------------------------------------------


def test_a_new_project(ddpify, tmp_path: Path) -> None:
    code, out, err = ddpify("new", "faces", "--task", "pix2pix")
    assert code == 0
    assert sorted(out.split()) == [f"faces/{name}" for name in below(tmp_path / "faces") if (tmp_path / "faces" / name).is_file()]
    assert "cd faces" in err and "./run.sh" in err
    assert below(tmp_path / "faces" / "faces")


def test_nothing_is_asked_without_a_terminal(ddpify, tmp_path: Path) -> None:
    assert ddpify("new")[0] == 0
    assert (tmp_path / "my_project" / "my_project" / "model.py").exists()


def test_pretending_writes_nothing(ddpify, tmp_path: Path) -> None:
    code, out, err = ddpify("new", "faces", "--pretend")
    assert (code, below(tmp_path)) == (0, [])
    assert out.splitlines()[-1] == "faces/train.py" and "would be written" in err


def test_an_empty_folder_is_filled(ddpify, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "faces").mkdir()
    monkeypatch.chdir(tmp_path / "faces")
    assert ddpify("new", ".", "--defaults")[0] == 0
    assert (tmp_path / "faces" / "faces" / "data.py").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("my-run",), "my_run"),
        (("full",), "is not empty"),
        (("file",), "is a file"),
        (("link",), "name a folder that does not exist yet"),
        (("file/inside",), "cannot be"),
        (("faces", "--task", "chess"), "chess"),
        (("faces", "--amp", "keep"), "keep"),
        (("faces", "--launcher", "spawn", "--cluster", "slurm"), "one machine"),
        (("faces", "--template", "missing"), "missing"),
        (("faces", "--template", "file"), "file"),
        (("faces", "--template", "empty"), "no files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refused(ddpify, tmp_path: Path, arguments, said) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".hidden").touch()
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    before = below(tmp_path)
    code, out, err = ddpify("new", *arguments)
    assert (code, out) == (2, "")
    assert said in err and "Traceback" not in err
    assert below(tmp_path) == before


def test_it_asks_on_a_terminal(tmp_path: Path) -> None:
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "ddpify", "new"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(cli.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, cwd=tmp_path, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE, env=environment) as asked:
        os.close(terminal)
        os.write(main, b"faces\nchess\ntabular\n\ntorch-bf16\n\n\n\n")  # chess is asked again
        out = asked.communicate(timeout=300)[0]
    os.close(main)
    assert asked.returncode == 0
    assert b"faces/faces/model.py" in out
    assert "table" in (tmp_path / "faces" / "faces" / "data.py").read_text()
    assert "torch.bfloat16" in (tmp_path / "faces" / "train.py").read_text()


# --- writing -------------------------------------------------------------------------------------------------------------


def test_all_or_nothing(tmp_path: Path, monkeypatch) -> None:
    files = {"a.txt": b"a", "deep/er/b.txt": b"b", "z.txt": b"z"}
    replaced: list[object] = []

    def fails(*paths: Path) -> None:
        replaced.append(paths)
        if len(replaced) == 3:
            raise OSError(28, "No space left on device")
        Path(paths[0]).rename(paths[1])

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        for folder in ("new", "new/far/away", "empty"):
            (tmp_path / "empty").mkdir(exist_ok=True)
            replaced.clear()
            with pytest.raises(DdpifyError, match="No space left"):
                scaffold.write(tmp_path / folder, files)
            assert below(tmp_path) == ["empty"]
    scaffold.write(tmp_path / "new" / "far", files)
    assert below(tmp_path / "new" / "far") == ["a.txt", "deep", "deep/er", "deep/er/b.txt", "z.txt"]


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "/tmp/out-of-the-project.txt"])
def test_nothing_leads_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(DdpifyError, match="leads out of the project"):
        scaffold.write(tmp_path / "new", {"a.txt": b"a", name: b"no"})
    assert below(tmp_path) == []


# --- templates of one's own ----------------------------------------------------------------------------------------------


def test_a_folder_of_templates(ddpify, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "__package__").mkdir(parents=True)
    (own / "_part.j2").write_text("part of {{ package }}")
    (own / "__package__" / "__init__.py.j2").write_text('{{ runtime("per_rank") }}\n')
    (own / "notes.md.j2").write_text(
        "{% include '_part.j2' %}: {{ task }} {{ launcher }} {{ amp }} {{ ddp }} {{ tracker }} {{ cluster }}\n"
    )
    (own / "picture.bin").write_bytes(bytes(range(256)))
    (own / "start").write_text("#!/bin/sh\n{{ not rendered }}\n")
    assert ddpify("new", "faces", "--template", "own", "--amp", "apex-O1")[0] == 0
    assert below(tmp_path / "faces") == ["faces", "faces/__init__.py", "notes.md", "picture.bin", "start"]
    assert (tmp_path / "faces" / "notes.md").read_text() == "part of faces: image torchrun apex-O1 apex none none\n"
    assert "def per_rank" in (tmp_path / "faces" / "faces" / "__init__.py").read_text()
    assert (tmp_path / "faces" / "picture.bin").read_bytes() == bytes(range(256))
    assert os.access(tmp_path / "faces" / "start", os.X_OK)


def test_folders_for_tasks_and_clusters(tmp_path: Path) -> None:
    for name in ("common/a.txt", "common/b.txt", "tasks/image/b.txt", "tasks/tabular/c.txt", "clusters/slurm/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    made = render(Settings(cluster="slurm"), tmp_path)
    assert made == {"a.txt": b"common/a.txt", "b.txt": b"tasks/image/b.txt", "d.txt": b"clusters/slurm/d.txt"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("fine\n{{ unknown }}\n", 2),
        ("{{ package.nothing }}\n", 1),
        ("fine\n\n{% if %}\n", 3),
        ("{% for x in 3 %}{% endfor %}", 1),
        ("{{ runtime('nothing') }}", 0),
        ("{{ runtime('../../ddpify/cli') }}", 0),
        ("{{ ''.__class__.__mro__ }}", 1),
        ("{{ package.missing() }}", 1),
        ("{% include 'missing' %}", 1),
        ("{{ 1 / 0 }}", 1),
    ],
)
def test_faulty_templates(ddpify, tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").touch()
    (tmp_path / "own" / "b.txt.j2").write_text(text)
    code, out, err = ddpify("new", "faces", "--template", "own")
    assert (code, out) == (2, "")
    assert "Traceback" not in err and (not line or f"own/b.txt.j2:{line}" in err)
    assert not (tmp_path / "faces").exists()
