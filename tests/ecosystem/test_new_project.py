"""A new project of the task transformers passes its own tests: it learns on two ranks, and a run that was cut off goes on as it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddpify.scaffold import Settings, render, write


def test_it_trains_and_resumes_on_two_ranks(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install ddpify[test-ecosystem]")
    project = tmp_path / "verdicts"
    write(project, render(Settings(name="verdicts", task="transformers")))
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}  # nothing is fetched
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
