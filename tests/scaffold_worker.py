"""One rank that trains new projects one after another, each in a fork of its own: `scaffold_worker.py RANK NPROC JOBS`.

It saves the seconds that importing torch takes. JOBS is a file of JSON: a list of {cwd, args, log, path, double, limit}. `log` with the
rank gets what a rank says, and with .code its exit code. Where one rank fails, the others are ended.
"""

import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
import traceback
from pathlib import Path


def main(rank: int, nproc: int, jobs: list[dict]) -> None:
    for name in ("torch.utils.data", "torch._dynamo", "torch.distributed._composable.replicate", "torch.onnx", "tqdm"):
        importlib.import_module(name)  # what an optimizer and DistributedDataParallel import when they are first used
    for job in jobs:
        port = meet(rank, job)
        child = os.fork()
        if child == 0:
            run(rank, nproc, port, job)
        ended, since = (0, 0), time.monotonic()
        while not ended[0]:
            ended = os.waitpid(child, os.WNOHANG)
            failed = any(code(job, other) not in ("", "0") for other in range(nproc))
            if not ended[0] and (failed or time.monotonic() - since > job["limit"]):
                os.kill(child, signal.SIGKILL)
            time.sleep(0.01)
        put(Path(f"{job['log']}.{rank}.code"), str(os.waitstatus_to_exitcode(ended[1])))


def meet(rank: int, job: dict) -> int:
    """The port of a job: rank 0 looks for a free one, the others wait for what it found."""
    path = Path(f"{job['log']}.port")
    if rank == 0:
        with socket.create_server(("127.0.0.1", 0)) as free:
            put(path, str(free.getsockname()[1]))
    while not path.exists():
        time.sleep(0.01)
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


def run(rank: int, nproc: int, port: int, job: dict) -> None:
    """What the fork does; it never returns."""
    with open(f"{job['log']}.{rank}", "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": nproc, "LOCAL_WORLD_SIZE": nproc, "MASTER_PORT": port}
    os.environ.update({key: str(value) for key, value in place.items()}, MASTER_ADDR="127.0.0.1")
    os.chdir(job["cwd"])
    sys.path[:0] = [job["cwd"], *job["path"]]
    sys.argv = ["train.py", *job["args"]]
    if job["double"]:  # so that many ranks and one can be compared
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
    main(int(sys.argv[1]), int(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text()))
