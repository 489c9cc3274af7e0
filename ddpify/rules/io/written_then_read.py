"""Let the ranks wait for a file that rank 0 wrote.

What it does: a barrier before a checkpoint is loaded that the script has saved earlier in the same run.
Why: rank 0 is still writing while the others look for the file.
Safety: safe where every rank comes to the load; MANUAL under a condition that ranks may not share.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html (save and load checkpoints)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertBefore
from ddpify.facts.model import Lit
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context

CODE = "DDP504"
TITLE = "wait for what rank 0 wrote"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a checkpoint of an earlier run",
        'state = torch.load("start.pt", map_location="cpu")\n',
        frame="start",
    ),
    Example(
        "a file that nothing here writes",
        'labels = torch.load("labels.pt")\n',
        frame="end",
    ),
    Example(
        "a file that numpy wrote",
        'names = np.load("names.npy")\n',
        frame="end",
    ),
    Example(
        "the checkpoint that training has written",
        'torch.save(model.state_dict(), "last.pt")\n'
        'model.load_state_dict(torch.load("last.pt", map_location="cpu"))\n',
        "if rank == 0:\n"
        '    torch.save(model.module.state_dict(), "last.pt")\n'
        "dist.barrier()\n"
        'model.module.load_state_dict(torch.load("last.pt", map_location="cpu"))\n',
        frame="end",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """A barrier between a save and a later load."""
    run = context.facts.after
    saves = [c for c in run.trace.calls if "torch.save" in c.func.paths()]
    barriers = [c.order for c in run.trace.calls if "torch.distributed.barrier" in c.func.paths()]
    done: set[ast.stmt] = set()
    for load in run.trace.calls:
        if "torch.load" not in load.func.paths() or not context.facts.is_entry(load.node):
            continue
        before = [s.order for s in saves if s.order < load.order and not _other_file(s.argument(1, "f"), load.argument(0, "f"))]
        statement = context.tree.statement(load.node)
        if not before or statement in done or any(min(before) < b < load.order for b in barriers):
            continue
        done.add(statement)
        if any(o.kind in ("batch", "decided", "rank", "time") for _, test in load.tests for o in test.origins):
            yield context.manual(
                CODE, load.node, "rank 0 may still be writing what is loaded here", "dist.barrier() before it, where all ranks come by"
            )
            continue
        yield Change(
            CODE,
            "rank 0 may still be writing what all ranks load here",
            context.tree.shown,
            statement,
            (InsertBefore(statement, f"{context.names['dist']}.barrier()"),),
        )


def _other_file(saved: object, loaded: object) -> bool:
    """Whether two paths are known to differ."""
    one = {o.value for o in getattr(saved, "objs", ()) if isinstance(o, Lit)}
    two = {o.value for o in getattr(loaded, "objs", ()) if isinstance(o, Lit)}
    return bool(one) and bool(two) and not one & two
