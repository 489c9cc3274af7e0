"""A process group without a wrapped model.

What it does: refuses a script that starts a process group and trains, but neither wraps a model nor averages gradients.
Why: it is half converted: every rank trains a model of its own. What its author has already divided among the ranks, and what not, cannot
    be seen in the text.
Safety: a group that is only imported or mentioned does not count: `init_process_group` must be called in reached code.
References: https://docs.pytorch.org/docs/stable/distributed.html#initialization
"""

from __future__ import annotations

from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.distributed import starts
from ddpify.rules.refuse.reach import reach
from ddpify.rules.refuse.training import trains
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP915"
TITLE = "process group without a wrapped model"

EXAMPLES = (
    Example("torch.distributed imported for nothing", "import torch.distributed as dist\nloss.backward()\n"),
    Example("the group is never started", "import torch.distributed as dist\nprint(dist.is_available())\nloss.backward()\n"),
    Example(
        "refused: started, and no model wrapped",
        "import torch.distributed as dist\ndist.init_process_group('nccl')\nloss.backward()\n",
    ),
)


def check(project: Project) -> Verdict | None:
    """A refusal if a group is started and something trains; wraps are checked before."""
    reached = reach(project)
    start = starts(reached)
    if start is None or trains(reached) is None:
        return None
    reason = (f"half distributed: a process group is started at {start.place}, but no wrapped model and no averaged gradient was found; "
              "take the group out, or wrap the model in DistributedDataParallel by hand")  # fmt: skip
    return Verdict("refuse", CODE, reason, start.line, start.file)
