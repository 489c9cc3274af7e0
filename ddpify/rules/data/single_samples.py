"""Dimensions of one entry that `squeeze()` takes away: on a rank that has one sample of a batch, that of the samples must stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Value
from ddpify.placement.values import is_rows
from ddpify.rules.base import Change
from ddpify.rules.context import Context
from ddpify.rules.data.sizes import CODE, Sizes

_WHY = "a rank that has one sample of a batch keeps the dimension of the samples"
_DIMS = 4  # of images with channels


def kept(context: Context, sizes: Sizes) -> Iterator[Change]:
    """Squeeze the dimensions behind that of the samples, where it is known which these are, or that there is one entry for each sample."""
    run = context.facts.after
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            rows = _squeezed(context, node)
            if rows is None or not context.facts.is_edited(node) or _stays(context, tree.parent.get(node)):
                continue
            given = [call.args[0] if rows in node.args else call.receiver for call in run.calls(node)]
            texts = {_by_dims(value, sizes) for value in given}
            if len(texts) == 1 and any(map(context.from_sharded_data, given)) and (text := texts.pop()):
                imports = ("import torch",) if "torch" in text else ()
                yield Change(CODE, _WHY, tree.shown, node, (Replace(node, text, (rows,)),), imports)


def _stays(context: Context, around: ast.AST | None) -> bool:
    """Whether what is squeezed has a dimension in any case."""
    return isinstance(around, ast.Call) and "torch.atleast_1d" in context.facts.after.value(around.func).paths()


def _squeezed(context: Context, node: ast.Call) -> ast.expr | None:
    """What `x.squeeze()` or `torch.squeeze(x)` squeezes, of all its dimensions."""
    if "torch.squeeze" in context.facts.after.value(node.func).paths():
        return node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "squeeze" and not node.args and not node.keywords:
        return node.func.value
    return None


def _by_dims(value: Value, sizes: Sizes) -> str:
    """What squeezes rows: the dimensions behind the samples', the last first, none if there are none, or all, if one entry is left."""
    shape = value.shape
    if not is_rows(value, several=True) or shape is None or shape.several is not False:
        return ""
    if shape.ndim is None:
        return "torch.atleast_1d({0}.squeeze())" if shape.single else ""
    if not 0 < shape.ndim <= _DIMS or not (shape.ndim == 1 or sizes.batches(value) or (shape.single and shape.ndim == 2)):
        return ""
    return "{0}" + "".join(f".squeeze({dim})" for dim in reversed(range(1, shape.ndim)))
