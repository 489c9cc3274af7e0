"""Prepares every interpreter that a rehearsal starts: launched ranks, spawned children and loader workers alike.

Python imports this module by itself when its folder is on the path. It then lets the environment's own `sitecustomize` go ahead.
"""

import os
import sys


def _rehearsing() -> bool:
    """Whether this interpreter runs the script, not a launcher or a helper process of multiprocessing."""
    line = " ".join(sys.orig_argv[1:4])
    others = ("torch.distributed.run", "torch.distributed.launch", "resource_tracker", "forkserver")
    return "DDPIFY_REHEARSAL" in os.environ and not any(name in line for name in others)


def _go_on() -> None:
    """Import the `sitecustomize` that this one hides."""
    import importlib.util
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH120, pathlib takes longer to import than this
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_go_on()
if _rehearsing():
    import gc

    collects = gc.isenabled()
    gc.disable()  # what is imported stays: looking through it again and again takes a sixth of the time that importing torch takes
    import ddpify_rehearsal

    ddpify_rehearsal.install()
    if collects:
        gc.enable()
