"""The README of a new project, followed by a new user: its commands, typed into an empty directory after `ddpify new`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from quick_python import python

from ddpify.options import Cluster, Launcher, Task

ROOT = Path(__file__).parents[1]
INSTALLS = ("python3 -m venv", "pip install", "git clone")  # what the commands need is here already
# Other machines, pages to look at, and downloads.
ELSEWHERE = ("NNODES=", "sbatch", "srun", "docker", "kubectl", "wandb", "tensorboard", "PYTHON=$HOME", "distilbert")
OWN_DATA = {
    "book.txt": b"It was a bright cold day in April, and the clocks were striking thirteen. " * 400,
    "tokens.bin": b"".join((i % 1000).to_bytes(2, "little") for i in range(40000)),
    "table.csv": b"age,height,weight\n" + b"".join(b"%d,%d,%d\n" % (i % 90, 150 + i % 50, i % 50 + i % 90) for i in range(600)),
}
KINDS: list[tuple[Task, Launcher, Cluster]] = [
    ("tabular", "torchrun", "slurm"),
    ("image", "launch", "kubernetes"),
    ("language-model", "torchrun", "none"),
    ("distillation", "spawn", "none"),
]  # the first always, the others with --all-projects


def commands(readme: str) -> list[str]:
    """What a README tells to type: the lines of shell blocks, and the first column of the table of commands."""
    blocks = re.findall(r"```sh\n(.*?)```", readme, flags=re.DOTALL)
    cells = re.findall(r"^\| `([^`]+)` \|", readme, flags=re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line] + cells


def test_all_commands_are_found() -> None:
    readme = "# a\n\n```sh\npip install x\n./run.sh\n```\n\n| command | what |\n|---|---|\n| `python a.py` | runs `b` |\n"
    assert commands(readme) == ["pip install x", "./run.sh", "python a.py"]


@pytest.mark.parametrize(("task", "launcher", "cluster"), KINDS, ids=[kind[0] for kind in KINDS])
def test_the_commands_of_the_readme_work(
    task: Task, launcher: Launcher, cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if task != KINDS[0][0] and not request.config.getoption("--all-projects"):
        pytest.skip("--all-projects asks for it")
    bin_folder = tmp_path / "bin"  # python is the tests' interpreter, as in an environment that was activated
    bin_folder.mkdir()
    for name in ("python", "python3"):
        (bin_folder / name).write_text(f'#!/bin/sh\nexec "{python()}" "$@"\n')
    for tool in ("ruff", "mypy"):
        (bin_folder / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {tool} "$@"\n')
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    environment |= {"MASTER_PORT": "29631", "COLUMNS": "100", "PYTHON": "python3"}

    def type_in(command: str, folder: Path, **more: str) -> None:
        ran = subprocess.run(["bash", "-c", command], cwd=folder, env=environment | more, capture_output=True, text=True, timeout=400)
        assert ran.returncode == 0, f"{command}\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}"

    choices = f"--defaults --task {task} --launcher {launcher} --cluster {cluster}"
    type_in(f"python -m ddpify new faces {choices}", tmp_path, PYTHONPATH=str(ROOT))
    project = tmp_path / "faces"
    for name, data in OWN_DATA.items():
        (project / name).write_bytes(data)
    told = commands((project / "README.md").read_text())
    typed = [command for command in told if not any(word in command for word in (*INSTALLS, *ELSEWHERE))]
    assert {"./run.sh", "python -m pytest"} <= set(typed), told
    for command in typed:
        type_in(_shortened(command), project)
    lasting = {Path(found).parent.name for found in project.glob("runs/*/checkpoint.pt")}
    assert {"first", "two"} <= lasting, lasting


def _shortened(command: str) -> str:
    """A command that trains stops after some steps: it is the command that is tried here, not how well it trains."""
    if re.search(r"run\.sh|train\.py", command):
        return f"{command} --max-steps=3"
    return f"{command} --steps=1 --batch-size=8" if "benchmark.py" in command else command
