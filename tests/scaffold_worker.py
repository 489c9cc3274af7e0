"""One rank that trains new projects one after another, each in a fork of its own: `scaffold_worker.py RANK NPROC JOBS`.

It saves the seconds that importing torch takes. JOBS is a file of JSON: a list of {cwd, args, port, log, path, double}. A process that
fails is ended with all ranks of its job; `log` gets what it says, and log.code its exit code.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path


def main(rank: int, nproc: int, jobs: list[dict]) -> None:
    for name in ("torch.utils.data", "torch._dynamo", "torch.distributed._composable.replicate", "torch.onnx", "tqdm"):
        importlib.import_module(name)  # what an optimizer and DistributedDataParallel import when they are first used
    for job in jobs:
        child = os.fork()
        if child == 0:
            run(rank, nproc, job)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        Path(f"{job['log']}.{rank}.code").write_text(str(code))


def run(rank: int, nproc: int, job: dict) -> None:
    """What the fork does; it never returns."""
    signal.alarm(job["limit"])
    with open(f"{job['log']}.{rank}", "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": nproc, "LOCAL_WORLD_SIZE": nproc, "MASTER_PORT": job["port"]}
    os.environ.update({key: str(value) for key, value in place.items()}, MASTER_ADDR="127.0.0.1")
    os.chdir(job["cwd"])
    sys.path[:0] = [job["cwd"], *job["path"]]
    sys.argv = ["train.py", *job["args"]]
    if job["double"]:  # so that many ranks and one can be compared
        import torch

        torch.set_default_dtype(torch.float64)
        torch.nn.Dropout.forward = lambda self, x: x  # type: ignore[method-assign]
    code = 0
    try:
        runpy.run_path("train.py", run_name="__main__")
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text()))
