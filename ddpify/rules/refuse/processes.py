"""The script starts training processes of its own.

What it does: refuses a script that starts processes in which it trains, without a process group: Hogwild training, where all of them
    write to one model in shared memory, or copies that are trained apart.
Why: Hogwild has no common step: its processes update the weights whenever they are ready. No DistributedDataParallel script does the
    same, and one that trains in step is a different training.
Safety: processes that only load data, act in an environment or evaluate do not count: what they run must reach a backward call.
References: https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#asynchronous-multiprocess-training-e-g-hogwild
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.distributed import starts
from ddpify.rules.refuse.reach import Reach, Use, reach
from ddpify.rules.refuse.scan import Unit, chain_of
from ddpify.rules.refuse.training import gradients
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP914"
TITLE = "starts training processes of its own"

EXAMPLES = (
    Example(
        "a process that prepares data",
        "import torch.multiprocessing as mp\n\n\ndef load(queue):\n    queue.put(1)\n\n\n"
        "mp.Process(target=load, args=(queue,)).start()\nloss.backward()\n",
    ),
    Example("a start method is no process", "import torch.multiprocessing as mp\nmp.set_start_method('spawn')\nloss.backward()\n"),
    Example(
        "refused: Hogwild",
        "import torch.multiprocessing as mp\n\n\ndef train(model):\n    model(x).sum().backward()\n\n\nmodel.share_memory()\n"
        "mp.Process(target=train, args=(model,)).start()\n",
    ),
)


def check(project: Project) -> Verdict | None:
    """A refusal if a process is started whose function trains."""
    reached = reach(project)
    if starts(reached):
        return None
    for use in _started(reached):
        if gradients(Reach(reached.resolver, list(_functions(reached, use)))):
            return Verdict("refuse", CODE, _reason(reached, use), use.line, use.file)
    return None


def _started(reached: Reach) -> Iterator[Use]:
    """The calls that start processes, and those that hand work to a pool of them."""
    for use in reached.calls(("torch", "multiprocessing"), ("Process", "spawn", "start_processes")):
        if any(name.startswith(("torch.multiprocessing.", "multiprocessing.")) for name in use.names):
            yield use
    if any(reached.calls(("torch", "multiprocessing", "concurrent"), ("Pool", "ProcessPoolExecutor"))):
        yield from reached.methods("map", "starmap", "apply", "apply_async", "imap", "imap_unordered", "submit")


def _functions(reached: Reach, use: Use) -> Iterator[Unit]:
    """The local functions and classes that the new process may run."""
    for target in use.targets:
        if isinstance(target, Unit):
            yield target
    for argument in use.arguments:
        for target in reached.resolver.resolve(use.unit, chain_of(argument) or ()):
            if isinstance(target, Unit):
                yield target


def _reason(reached: Reach, use: Use) -> str:
    shared = next(reached.methods("share_memory", "share_memory_"), None)
    if shared:
        return (f"Hogwild training: processes started at {use.place} update the model shared at {shared.place} whenever they are ready; "
                "DistributedDataParallel trains in step, which is another training")  # fmt: skip
    return (f"this script starts its own training processes at {use.place} and joins them to no process group; "
            "give ddpify the script in which one process trains")  # fmt: skip
