"""Scripts that make sure of a single GPU: each rank has one of its own, and sees those of the other ranks, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Drop
from ddpify.facts.tree import same
from ddpify.rules.base import Change
from ddpify.rules.context import Context

_COUNT = "torch.cuda.device_count"
_SINGLE = ((ast.Eq, 1), (ast.LtE, 1), (ast.Lt, 2))
_SEVERAL = ((ast.NotEq, 1), (ast.Gt, 1), (ast.GtE, 2))
_WHY = "each rank trains on one GPU, and sees those of the other ranks, too"


def demanded(context: Context, code: str) -> Iterator[Change]:
    """The statements that go: they fail where there is more than one GPU."""
    for node in context.tree.of(ast.Assert, ast.If):
        raises = isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        if (isinstance(node, ast.Assert) and _compares(context, node.test, _SINGLE)) or (
            isinstance(node, ast.If) and raises and _compares(context, node.test, _SEVERAL)
        ):
            yield Change(code, _WHY, context.tree.shown, node, (Drop(node),))


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
