"""Scripts that make sure of a single GPU: each rank has one of its own, and sees those of the other ranks, too.

And scripts that make it the default device, where a DistributedSampler would draw its orders by a generator of the CPU.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import Drop
from ddpify.facts.collect import by_rank_zero
from ddpify.facts.library.flow import is_literal
from ddpify.facts.model import Lit
from ddpify.facts.tree import same
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context

_COUNT = "torch.cuda.device_count"
_SINGLE = ((ast.Eq, 1), (ast.LtE, 1), (ast.Lt, 2))
_SEVERAL = ((ast.NotEq, 1), (ast.Gt, 1), (ast.GtE, 2))
_DEVICE, _TYPE = "torch.set_default_device", "torch.set_default_tensor_type"
_ORDERS = "orders are drawn on the default device, and DistributedSampler has a generator of the CPU: on a GPU, the first batch fails"
_WITH_CPU = (
    "class Sampler(DistributedSampler):  # in the place of DistributedSampler\n"
    "    def __iter__(self):\n"
    '        with torch.device("cpu"):\n'
    "            return super().__iter__()"
)
_WHY = "each rank trains on one GPU, and sees those of the other ranks, too"


def demanded(context: Context, code: str) -> Iterator[Change]:
    """The statements that go: they fail where there is more than one GPU."""
    for node in context.tree.of(ast.Assert, ast.If):
        raises = isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        if (isinstance(node, ast.Assert) and _compares(context, node.test, _SINGLE)) or (
            isinstance(node, ast.If) and raises and _compares(context, node.test, _SEVERAL)
        ):
            yield Change(code, _WHY, context.tree.shown, node, (Drop(node),))


def orders(context: Context, code: str) -> Iterator[Finding]:
    """What makes a GPU the default device, where orders are drawn: `torch.randperm` then draws there, and takes no generator of the CPU."""
    run = context.facts.after
    loaders = [o for o in (*context.facts.feeding, *context.facts.whole_loaders) if not by_rank_zero(run, o)]
    shuffled = any(is_literal(run.attribute(loader, "shuffle"), True) for loader in loaders)
    for call in run.trace.calls if shuffled else ():
        given = call.argument(0, "device" if _DEVICE in call.func.paths() else "t")
        if given is None or not call.func.paths() & {_DEVICE, _TYPE} or _is_cpu(given.objs):
            continue
        yield context.manual(code, call.node, _ORDERS, _WITH_CPU)
        return


def _is_cpu(objs: Iterable[object]) -> bool:
    """Whether a device, or a type of tensors, is one of the CPU."""
    texts = [o.value for o in objs if isinstance(o, Lit)]
    return len(texts) == len(list(objs)) and all(isinstance(t, str) and "cuda" not in t and ("cpu" in t or "Tensor" in t) for t in texts)


def _compares(context: Context, test: ast.expr, ways: tuple[tuple[type[ast.cmpop], int], ...]) -> bool:
    """Whether a test compares the number of GPUs in one of some ways."""
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not isinstance(test.comparators[0], ast.Constant):
        return False
    return (type(test.ops[0]), test.comparators[0].value) in ways and _counts_devices(context, test.left)


def _counts_devices(context: Context, node: ast.expr) -> bool:
    """Whether an expression is the number of GPUs, or a name or attribute that holds nothing else."""
    if isinstance(node, ast.Call):
        return _COUNT in context.facts.after.value(node.func).paths()
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    stores = [s for s in context.facts.tree_of(node).of(ast.Assign) if any(same(t, node) for t in s.targets)]
    return bool(stores) and all(isinstance(s.value, ast.Call) and _counts_devices(context, s.value) for s in stores)
