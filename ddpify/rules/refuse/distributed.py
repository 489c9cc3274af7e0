"""The script is distributed already.

What it does: leaves a script alone that wraps a model in DistributedDataParallel (torch's or apex's), in FSDP or another sharding wrapper
    and starts a process group, or that averages gradients or parameters over the ranks by hand. Switches such as `if args.distributed:`
    and helpers in other modules count, as long as the script reaches them.
Why: converting such a script again would start a second process group and shard the data twice; and the output of a conversion must
    convert to itself.
Safety: Imports, `isinstance` checks and unused arguments such as `--local_rank` prove nothing: only a call does.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.tree import names_in, walk
from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.reach import Reach, Use, reach
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP911"
TITLE = "already distributed"

EXAMPLES = (
    Example(
        "DistributedDataParallel is imported and never used",
        "from torch.nn.parallel import DistributedDataParallel\nmodel(x).sum().backward()\n",
    ),
    Example(
        "an unused --local_rank argument",
        "import torch\nparser.add_argument('--local_rank', type=int)\nmodel = torch.nn.DataParallel(model)\nmodel(x).sum().backward()\n",
    ),
    Example(
        "a type check is no wrap",
        "from torch import nn\nif isinstance(model, nn.parallel.DistributedDataParallel):\n    model = model.module\n",
    ),
    Example(
        "nothing to do: a wrap behind a switch",
        "import torch\nif args.distributed:\n    torch.distributed.init_process_group('nccl')\n"
        "    model = torch.nn.parallel.DistributedDataParallel(model)\n",
    ),
)

_ROOTS = ("torch", "apex", "fairscale")
WRAPS = frozenset({
    "DistributedDataParallel", "DistributedDataParallelCPU", "FullyShardedDataParallel", "fully_shard", "ShardedDataParallel",
    "parallelize_module", "PipelineStage", "PostLocalSGDOptimizer",
})  # fmt: skip
STARTS = frozenset({"init_process_group", "init_device_mesh", "init_distributed_device", "init_dist", "init_distributed"})
_AVERAGES = frozenset({"all_reduce", "all_reduce_coalesced", "all_reduce_multigpu", "reduce", "all_gather", "reduce_scatter_tensor"})


def check(project: Project) -> Verdict | None:
    """A refusal if a reached call wraps a model, or averages gradients, and a reached call starts the process group."""
    reached = reach(project)
    start = starts(reached)
    wrap = next(_wraps(reached), None)
    if wrap and (start or wrap.file == project.entry.shown):
        what = f"{wrap.shown.rpartition('.')[2]} at {wrap.place}"
        group = f"process group started at {start.place}" if start else "where the process group is started was not found"
        return Verdict("nothing", CODE, f"already distributed: nothing to do ({what}, {group})", wrap.line, wrap.file)
    average = next(averages(reached), None)
    if average and start:
        how = f"gradients averaged by hand at {average.place}, process group started at {start.place}"
        reason = f"already distributed: nothing to do ({how})"
        return Verdict("nothing", CODE, reason, average.line, average.file)
    return None


def starts(reached: Reach) -> Use | None:
    """The call that starts the process group."""
    return next(reached.calls(("torch", "timm", "mmcv", "mmengine", "deepspeed"), STARTS), None)


def averages(reached: Reach) -> Iterator[Use]:
    """Collective calls on gradients or on parameters."""
    for use in reached.calls(("torch",), _AVERAGES):
        if use.names[0].startswith("torch.distributed.") and any(_is_gradient(use, argument) for argument in use.arguments):
            yield use


def _is_gradient(use: Use, argument: ast.expr) -> bool:
    known: set[str] = set()
    size = -1
    while size < len(known):
        size = len(known)
        for node in use.unit.walk():
            if isinstance(node, (ast.For, ast.comprehension)) and _mentions_gradients(node.iter, known):
                known |= names_in(node.target)
            elif isinstance(node, ast.Assign) and _mentions_gradients(node.value, known):
                known.update(*map(names_in, node.targets))
            elif isinstance(node, ast.Call) and _collects(node) and any(_mentions_gradients(item, known) for item in node.args):
                known |= names_in(node.func)
    return _mentions_gradients(argument, known)


def _collects(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "extend")


def _mentions_gradients(value: ast.expr, known: set[str]) -> bool:
    for node in walk(value):
        if isinstance(node, ast.Attribute) and node.attr in ("grad", "parameters", "named_parameters"):
            return True
        if isinstance(node, ast.Name) and node.id in known:
            return True
    return False


def _wraps(reached: Reach) -> Iterator[Use]:
    for use in reached.uses:
        if use.is_from(_ROOTS, WRAPS):
            yield use
        elif "functools.partial" in use.names:
            first = reached.named(use, 0)
            if any(name.partition(".")[0] in _ROOTS and name.rpartition(".")[2] in WRAPS for name in first):
                yield use
