"""Buffers that are views which no other tensor can be copied into as DDP does: each gets memory of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context
from ddpify.rules.loop.fresh import assigned

CODE = "DDP201"

_TURNING = frozenset(("transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "t", "T", "mT"))
_EXPANDING = frozenset(("expand", "expand_as", "broadcast_to"))
_VIEWS = _TURNING | _EXPANDING | frozenset("unsqueeze squeeze detach data to type float double half long int bool cpu cuda type_as".split())
_WHY = "DDP copies rank 0's buffers to all ranks in each forward, which torch refuses for this view: it gets memory of its own"


def copied(context: Context) -> Iterator[Change | Finding]:
    """Copies of such views where a model that is wrapped registers them."""
    run = context.facts.after
    wrapped = {o for model in context.facts.models if model not in context.facts.needs_no_wrapper for o in model.objs}
    calls = [c for c in run.calls_named("register_buffer") if isinstance(c.node, ast.Call) and run.part_of(c.receiver.objs, wrapped)]
    for node in dict.fromkeys(c.node for c in calls):
        given = next((k.value for k in node.keywords if k.arg == "tensor"), node.args[1] if len(node.args) > 1 else None)
        tree = context.facts.tree_of(node)
        if given is None or not _is_view(context, given) or context.apex_ddp:  # which copies no buffers
            continue
        kept = "{0}" if isinstance(given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else "({0})"
        text = f"{kept}.clone(memory_format=torch.contiguous_format)"
        if context.facts.is_edited(node):
            yield Change(CODE, _WHY, tree.shown, node, (Replace(given, text, (given,)),), ("import torch",))
        else:
            yield context.manual(CODE, node, _WHY)


def _is_view(context: Context, node: ast.expr) -> bool:
    """Whether a tensor has elements that share their memory, or one row whose place among its dimensions was changed."""
    passed = set(_passed(context, node, 0))
    return not passed.isdisjoint(_EXPANDING) or ("unsqueeze" in passed and not passed.isdisjoint(_TURNING))


def _passed(context: Context, node: ast.expr, depth: int) -> Iterator[str]:
    """The methods that gave a tensor its dimensions last, also before it had a name."""
    if isinstance(node, ast.Name) and depth < 8:
        for definition in context.facts.after.definitions.reaching(node).definitions:
            given = assigned(context.facts.tree_of(definition), definition) if isinstance(definition, ast.Name) else None
            if given is not None:
                yield from _passed(context, given, depth + 1)
    view = node.func if isinstance(node, ast.Call) else node
    if isinstance(view, ast.Attribute) and view.attr in _VIEWS:
        if view.attr not in _EXPANDING or not isinstance(node, ast.Call) or not all(map(_keeps_size, node.args)):
            yield view.attr
        yield from _passed(context, view.value, depth)


def _keeps_size(size: ast.expr) -> bool:
    """Whether a size in `x.expand(1, -1)` repeats nothing."""
    if isinstance(size, (ast.Tuple, ast.List)):
        return all(map(_keeps_size, size.elts))
    number = size.operand if isinstance(size, ast.UnaryOp) and isinstance(size.op, ast.USub) else size
    return isinstance(number, ast.Constant) and number.value == 1
