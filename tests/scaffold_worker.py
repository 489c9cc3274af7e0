"""A process that trains new projects one after another, each in a fork of its own, which saves the seconds that importing torch takes.

Alone, `scaffold_worker.py`, it takes jobs from standard input: a line of JSON for each, {cwd, args, log, path, double, limit, rank, nproc}.
The log gets what is said, and with .code the exit code. Where one rank of a job fails, the others are ended. As the train.py of torchrun's,
it trains the projects in the folder PROJECTS, all in the group of processes that torchrun describes.
"""

import importlib
import json
import os
import runpy
import shlex
import signal
import socket
import sys
import time
import traceback
from pathlib import Path


def serve() -> None:
    """Take jobs until there are no more."""
    for line in sys.stdin:
        job = json.loads(line)
        mine = Path(f"{job['log']}.{job['rank']}")
        port = meet(job)
        child = fork(job, mine, port)
        ended, since = (0, 0), time.monotonic()
        while not ended[0]:
            ended = os.waitpid(child, os.WNOHANG)
            failed = any(code(job, other) not in ("", "0") for other in range(job["nproc"]))
            if not ended[0] and (failed or time.monotonic() - since > job["limit"]):
                os.kill(child, signal.SIGKILL)
            time.sleep(0.005)
        put(Path(f"{mine}.code"), str(os.waitstatus_to_exitcode(ended[1])))


def train_all() -> None:
    """Train the projects of a folder, each with the arguments in its file `arguments`, one after another."""
    for project in sorted(Path(os.environ["PROJECTS"]).iterdir()):
        child = os.fork()
        if child == 0:
            run(str(project), shlex.split((project / "arguments").read_text()), [], False)
        if ended := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            sys.exit(ended)
        (project / f"done.{os.environ['RANK']}").touch()
        while len(list(project.glob("done.*"))) < int(os.environ["WORLD_SIZE"]):
            time.sleep(0.005)  # the next group meets at the same port


def fork(job: dict, log: Path, port: int) -> int:
    """The process that takes part in a job; its number."""
    child = os.fork()
    if child:
        return child
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if job["spawn"]:
        import torch.multiprocessing as mp

        mp.spawn = lambda function, args, nprocs: mp.start_processes(function, args, nprocs, start_method="fork")
        place = {"WORLD_SIZE": 2}
    else:
        place = {"RANK": job["rank"], "LOCAL_RANK": job["rank"], "WORLD_SIZE": job["nproc"], "LOCAL_WORLD_SIZE": job["nproc"]}
        place |= {"MASTER_PORT": port, "MASTER_ADDR": "127.0.0.1"}
    os.environ.update({key: str(value) for key, value in place.items()})
    run(job["cwd"], job["args"], job["path"], job["double"])
    return 0


def meet(job: dict) -> int:
    """The port of a job: rank 0 looks for a free one, the others wait for what it found."""
    path = Path(f"{job['log']}.port")
    if job["rank"] == 0:
        with socket.create_server(("127.0.0.1", 0)) as free:
            put(path, str(free.getsockname()[1]))
    while not path.exists():
        time.sleep(0.005)
    return int(path.read_text())


def code(job: dict, rank: int) -> str:
    """The exit code of a rank; empty while it runs."""
    path = Path(f"{job['log']}.{rank}.code")
    return path.read_text() if path.exists() else ""


def put(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def run(cwd: str, args: list[str], path: list[str], double: bool) -> None:
    """Run a project's train.py as its users do; it never returns."""
    os.chdir(cwd)
    sys.path[:0] = [cwd, *path]
    sys.argv = ["train.py", *args]
    if double:  # so that many ranks and one can be compared
        import torch

        torch.set_default_dtype(torch.float64)
        torch.nn.Dropout.forward = lambda self, x: x  # type: ignore[method-assign]
    failed = False
    try:
        runpy.run_path("train.py", run_name="__main__")
    except BaseException:
        traceback.print_exc()
        failed = True
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(failed))


if __name__ == "__main__":
    for name in ("torch.utils.data", "torch._dynamo", "torch.distributed._composable.replicate", "torch.onnx", "tqdm"):
        importlib.import_module(name)  # what an optimizer and DistributedDataParallel import when they are first used
    train_all() if "PROJECTS" in os.environ else serve()
