"""What is forked from a process that has imported torch finds what it would find in a new interpreter, and ends as it would."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from mutants import started

from ddpify.rehearse.launch import Command, Ended, Forks, Setting, run
from ddpify.rehearse.scratch import Scratch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked")
_FINDS = """\
import gc, json, os, pickle, random, signal, sys, threading
import numpy
import torch
import beside


class Kept:
    pass


main = sys.modules["__main__"]
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK ROLE_NAME ROLE_WORLD_SIZE GROUP_WORLD_SIZE MASTER_ADDR".split()
elastic = "RUN_ID RESTART_COUNT MAX_RESTARTS USE_AGENT_STORE".split()
given = {name: os.environ.get(name) for name in (*names, *(f"TORCHELASTIC_{name}" for name in elastic))}
found = {
    "given": given,
    "environment": {name: value for name, value in os.environ.items() if name not in ("DDPIFY_RUN", "MASTER_PORT")},
    "arguments": sys.argv,
    "searched": [path for path in sys.path if "ddpify" not in path or "tree" in path],
    "folder": os.getcwd(),
    "module": [__name__, __file__, str(__spec__ and __spec__.name), __package__, main.__dict__ is globals(), sorted(globals())],
    "class": pickle.loads(pickle.dumps(Kept())).__class__ is Kept,
    "streams": [[s.encoding, s.errors, s.write_through, s.isatty(), s.fileno()] for s in (sys.stdout, sys.stderr)],
    "input": [sys.stdin.isatty(), sys.stdin.fileno(), os.get_terminal_size(0)],
    "numbers": [random.random(), float(numpy.random.rand()), float(torch.rand(1)), torch.initial_seed(), hash("seed")],
    "threads": [torch.get_num_threads(), threading.active_count(), threading.current_thread().name, threading.main_thread().is_alive()],
    "signals": [str(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)],
    "gathered": [gc.isenabled(), gc.get_threshold()],
    "handed": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3],
    "flags": [sys.flags.hash_randomization, sys.flags.dont_write_bytecode, sys.executable],
    "read": sys.stdin.read(),
}
with open(f"found{os.environ.get('RANK', '')}.json", "w") as file:
    json.dump(found, file, default=str)
"""


_OF_AN_AGENT = ("TORCHELASTIC_SIGNALS_TO_HANDLE", "TORCHELASTIC_ERROR_FILE", "TORCH_NCCL_ASYNC_ERROR_HANDLING")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with contextlib.closing(Forks()) as found:
        yield found


def _run(folder: Path, name: str, command: Command, forks: Forks, limit: float = 300.0) -> tuple[Ended, Scratch]:
    base = folder.with_name("runs") / name
    scratch = Scratch(base / "tree", folder, [folder / "train.py"], {})
    script = tuple(str(scratch.path(folder / part)) if part.endswith(".py") else part for part in command.script)
    setting = Setting(sys.executable, 2, 0, limit, False)
    ended = run(Command(command.launcher, script, command.args), scratch.path(folder), base / "record", setting, scratch, print, forks)
    return ended, scratch


def _both(folder: Path, command: Command, forks: Forks) -> list[tuple[Ended, Scratch]]:
    """The run of a command that is forked, and of one that is not."""
    forked = _run(folder, "a", command, forks)
    assert forks._connection is not None
    with started():
        return [forked, _run(folder, "b", command, forks)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/beside.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder / "lib"), str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("launcher", ["", "torchrun", "launch"])
@pytest.mark.parametrize("script", [("train.py",), ("-m", "train")])
def test_what_a_script_finds(folder: Path, forks: Forks, launcher: str, script: tuple[str, ...]) -> None:
    (folder / "train.py").write_text(_FINDS)
    found = []
    for ended, scratch in _both(folder, Command(launcher, script, ("--depth", "3")), forks):
        assert ended.code == 0, ended.output
        files = sorted(scratch.path(folder).glob("found*.json"))
        assert [file.name for file in files] == (["found0.json", "found1.json"] if launcher else ["found.json"])
        found.append([json.loads(re.sub(rf"{scratch.base.parent}", "RUN", file.read_text())) for file in files])
    for one, other in zip(*found, strict=True):
        theirs, own = other.pop("environment"), one.pop("environment")
        assert {n: v for n, v in own.items() if theirs.get(n) != v} == {}
        assert [n for n in theirs if n not in own and n not in _OF_AN_AGENT] == []
        assert one == other


ENDS = {
    "an error": "import torch\ndef f():\n    raise KeyError('a')\nf()",
    "text that is none of Python's": "import torch\nx = (",
    "a status": "import sys\nsys.exit(3)",
    "a message": "import sys\nsys.exit('no data')",
    "an interrupt": "raise KeyboardInterrupt",
    "a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "at once": "import os\nos._exit(5)",
    "what is left to do": "import atexit, threading, time\natexit.register(print, 'last', __name__)\n"
    "threading.Thread(target=lambda: (time.sleep(0.3), print('before'))).start()",
}


@pytest.mark.parametrize("title", ENDS)
def test_how_a_script_ends(folder: Path, forks: Forks, title: str) -> None:
    (folder / "train.py").write_text(ENDS[title])
    (one, own), (other, its) = _both(folder, Command("", ("train.py",), ()), forks)
    assert one.output.replace(str(own.base), "") == other.output.replace(str(its.base), "")
    assert bool(one.code) == bool(other.code)
    assert one.code == other.code or title == "an interrupt"


def test_each_run_is_one_by_itself(folder: Path, forks: Forks) -> None:
    (folder / "train.py").write_text(
        "import json, sys\nimport torch\nprint(torch.rand(1).item(), hasattr(json, 'left'))\njson.left = True\ntorch.rand(3)\n"
    )
    outputs = {_run(folder, f"{i}", Command("", ("train.py",), ()), forks)[0].output for i in range(3)}
    assert len(outputs) == 1
    assert "False" in outputs.pop()


def test_where_it_cannot_be_forked_it_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "train.py").write_text("print('done')\n")
    with contextlib.closing(Forks()) as forks:
        _run(folder, "a", Command("", ("train.py",), ()), forks)
        assert forks._server is not None
        os.kill(forks._server.pid, signal.SIGKILL)
        ended, _ = _run(folder, "b", Command("", ("train.py",), ()), forks)
        assert (ended.code, ended.output) == (0, "done\n")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")  # numpy then starts a thread
    with contextlib.closing(Forks()) as forks:
        ended, _ = _run(folder, "c", Command("", ("train.py",), ()), forks)
        assert (ended.code, ended.output, forks._connection) == (0, "done\n", None)


def test_when_whoever_asked_is_killed_all_ends(folder: Path, tmp_path: Path) -> None:
    (folder / "train.py").write_text("import time\nimport torch\nopen('/dev/null')\ntime.sleep(600)\n")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{Path(__file__).parents[1]}{os.pathsep}{os.environ['PYTHONPATH']}",
        "DDPIFY_TEST": str(tmp_path),
    }
    asks = subprocess.Popen([sys.executable, "-m", "ddpify", "verify", "train.py", "train.py"], env=environment)

    def there() -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("DDPIFY_TEST") == str(tmp_path) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    while asks.poll() is None and len(there()) < 3:
        time.sleep(0.1)
    asks.kill()
    asks.wait()
    until = time.monotonic() + 60
    while there() and time.monotonic() < until:
        time.sleep(0.1)
    assert there() == []
