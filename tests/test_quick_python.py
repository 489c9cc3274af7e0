"""Processes of `quick_python`: they are to their callers what those of the interpreter are."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from quick_python import left, python

SCRIPTS = {
    "what it is told": "import os, sys; print(sys.argv, os.getcwd(), os.environ['TOLD'], sys.stdin.read())",
    "an error": "import sys; sys.stdout.write('half'); 1 / 0",
    "an exit": "import sys; sys.exit(7)",
    "a message": "raise SystemExit('no data')",
    "a signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "torch": "import torch; torch.manual_seed(0); print(torch.rand(3), torch.get_num_threads())",
    "what is left to do": "import atexit, threading; atexit.register(print, 'last'); threading.Thread(target=print, args=(1,)).start()",
}
SPAWNS = """\
import os
import sys

import torch
import torch.multiprocessing as mp


def work(i, rank):
    sys.stdout.write(f"{rank} {i} {os.path.basename(sys.argv[0])}\\n")


if __name__ == "__main__":
    sys.stdout.write(f"rank {os.environ['RANK']} {'torch._dynamo' in sys.modules}\\n")
    mp.spawn(work, (os.environ["RANK"],), 2)
"""


@pytest.mark.parametrize("title", SCRIPTS)
def test_it_ends_and_says_what_the_interpreter_does(title: str, tmp_path: Path) -> None:
    environment = os.environ | {"TOLD": "so", "OMP_NUM_THREADS": "1"}
    one, other = (
        subprocess.run(
            [program, "-c", SCRIPTS[title], "a", "b c"], input="typed", cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        for program in (sys.executable, python())
    )
    assert (other.returncode, other.stdout, other.stderr) == (one.returncode, one.stdout, one.stderr)


def test_ranks_and_children_that_are_spawned_are_quick_too(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SPAWNS)
    command = [python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        [f"{i} {j} train.py" for i in range(2) for j in range(2)] + [f"rank {i} True" for i in range(2)]
    )


def test_each_draws_its_own_numbers() -> None:
    code = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1).item())"
    drawn = [subprocess.run([python(), "-c", code], capture_output=True, text=True).stdout.split() for _ in range(2)]
    assert not set(drawn[0]) & set(drawn[1]) and len(drawn[0]) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_is_ended_ends(number: int) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([python(), "-c", code], stdout=subprocess.PIPE) as running:
        assert running.stdout
        child = psutil.Process(int(running.stdout.readline()))
        running.send_signal(number)
        assert running.wait() == -number
        psutil.wait_procs([child], 60)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert left() == []
