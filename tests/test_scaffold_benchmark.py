"""benchmark.py of an image project: a row for each way to train, a plot, a reason for what is left out; the times are not looked at."""

import os
import subprocess
from pathlib import Path

import pytest
from quick_python import python

from ddpify.scaffold import Settings, render, write

DOUBLE = Path(__file__).parent / "apex_double"
FORKED = """
import runpy
import torch._dynamo
import torch.multiprocessing as mp
mp.spawn = lambda function, args, nprocs: mp.start_processes(function, args, nprocs, start_method="fork")
runpy.run_path("benchmark.py", run_name="__main__")
"""  # processes that need not import torch anew


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("benchmark") / "run"
    write(folder, render(Settings()))
    return folder


def benchmark(project: Path, *arguments: str, path: str = "") -> dict[str, str]:
    """The lines of the table by the names of the ways."""
    started = ["-c", FORKED] if "--ranks=1" in arguments else ["benchmark.py"]
    command = [python(), *started, "--steps=1", "--batch-size=8", *arguments]
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return {line[:16].strip(): line[16:] for line in ran.stdout.splitlines() if line[16:].strip()}


def test_on_the_cpu_it_times_what_there_is_and_says_what_it_left_out(project: Path) -> None:
    rows = benchmark(project)
    for name, processes in {"DataParallel": "1", "DDP": "2", "DDP, bfloat16": "2"}.items():
        assert rows[name].split()[0] == processes, rows
        assert float(rows[name].split()[1]) > 0
    assert "needs a GPU" in rows["DDP, float16"]
    assert all("no apex" in rows[name] for name in ("apex DDP", "apex DDP, O1", "apex DDP, O2", "apex DDP, O3"))
    assert (project / "benchmark.png").read_bytes().startswith(b"\x89PNG")


def test_with_apex_its_levels_are_timed_too_and_without_matplotlib_there_is_no_plot(project: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n")
    rows = benchmark(project, "--ranks=1", "--plot=none.png", path=f"{tmp_path}:{DOUBLE}")
    assert all(float(rows[name].split()[1]) > 0 for name in ("apex DDP", "apex DDP, O1", "apex DDP, O2", "apex DDP, O3")), rows
    assert not (project / "none.png").exists()


def test_a_batch_that_the_ranks_cannot_share_is_refused(project: Path) -> None:
    ran = subprocess.run([python(), "benchmark.py", "--batch-size=9", "--ranks=2"], cwd=project, capture_output=True, text=True)
    assert ran.returncode == 2 and "9 samples cannot be divided among 2 ranks" in ran.stderr
