"""Starts ranks as a launcher does, but from one process that has imported torch: `start_ranks.py LAUNCHER NPROC PORT SCRIPT [ARGUMENTS]`.

LAUNCHER is the module whose place it takes. SCRIPT is a path, or `-m` and a module. `{local_rank}` in an argument is each rank's own.
"""

import gc
import os
import runpy
import sys
import time
from pathlib import Path

import numpy as np
import torch._dynamo  # noqa: F401, the first optimizer imports it


def run(rank: int, nproc: int, port: str, line: list[str]) -> None:
    """What a rank does: in an interpreter that is like a new one, the script."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": nproc, "LOCAL_WORLD_SIZE": nproc}
    os.environ.update({name: str(value) for name, value in {**common, "RANK": rank, "LOCAL_RANK": rank}.items()})
    line = [part.replace("{local_rank}", str(rank)) for part in line]
    sys.orig_argv[1:] = line
    np.random.seed()  # random does so by itself
    gc.unfreeze()
    if "DDPIFY_REHEARSAL" in os.environ:  # where `sitecustomize` saw a launcher
        import ddpify_rehearsal

        ddpify_rehearsal.install()
    if line[0] == "-m":
        sys.argv, sys.path[0] = line[1:], str(Path.cwd())
        runpy.run_module(line[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = line, str(Path(line[0]).resolve().parent)
        runpy.run_path(line[0], run_name="__main__")


def main(nproc: int, port: str, line: list[str]) -> int:
    """Start them, end all as soon as one fails, and return whether one failed."""
    gc.collect()
    gc.freeze()  # while ranks are forked, so that they have in common what was imported
    running: dict[int, int] = {}
    for rank in range(nproc):
        child = os.fork()
        if not child:
            run(rank, nproc, port, line)
            sys.exit()
        running[child] = rank
    failed = 0
    while running:
        for child in list(running):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                continue
            del running[child]
            code = os.waitstatus_to_exitcode(status)
            if code and not failed:
                failed = code
                for other in running:
                    os.kill(other, 15)
        time.sleep(0.02)
    if failed:
        print(f"exitcode: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
