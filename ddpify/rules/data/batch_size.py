"""Find the batch size's other readers.

What it does: reports where the number given to a training loader as its batch size also shapes a tensor, divides a loss, or is compared
    with a batch's length: there it means this rank's batch, not the global one.
Why: left global, a comparison skips every batch and a shape does not fit.
Safety: MANUAL; intervals, schedules, names and messages rightly go on meaning the global batch.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Call, Lit, New, Obj, Part, Tup, Value
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument

CODE = "DDP303"
TITLE = "what else the batch size sizes"
EXAMPLES: tuple[Example, ...] = ()

_SHAPES = frozenset("zeros ones full empty rand randn randint normal arange view reshape expand repeat init_hidden initHidden FloatTensor LongTensor "
                    "Tensor resize_ new_zeros new_ones uniform standard_normal split chunk".split())


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Divide the batch size where it means this rank's batch."""
    run = context.facts.after
    sources: set[Obj] = set()
    arguments: set[ast.AST] = set()
    for loader in context.facts.loaders:
        size = run.held(loader, "batch_size")
        sources |= {o for o in size.objs if isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1)}
        sources |= {o for o in size.of_kind("from") if isinstance(o, (Part, Lit))}
        if isinstance(loader.node, ast.Call):
            node = argument(loader.node, 1, "batch_size")
            arguments |= set(ast.walk(node)) if node is not None else set()
    if not sources:
        return
    seen: set[ast.AST] = set()
    for call in run.trace.calls:
        if call.method in _SHAPES and not any(isinstance(o, New) and o.cls is not None and call.method[:1].isupper() for o in call.func.objs):
            for arg in [*call.node.args, *(k.value for k in call.node.keywords)]:
                for part in (arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg]):
                    if part not in seen and _reads(run.value(part), sources) and _in_training(context, call):
                        seen.add(part)
                        yield from _divide(context, part, "a shape made with the batch size holds one rank's batch")
    for name, file in context.facts.trees.items():
        for node in file.nodes():
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if any(run.value(s).scale == "count" for s in sides):
                    for side in sides:
                        if _reads(run.value(side), sources) and side not in arguments:
                            yield from _divide(context, side, "a batch's length is compared with one rank's batch size")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)) and name == "__main__":
                left, right = run.value(node.left), run.value(node.right)
                if left.scale == "sum" and _reads(right, sources) and node.right not in arguments:
                    yield from _divide(context, node.right, "a batch's total is divided by one rank's batch size")


def _reads(value: Value, sources: set[Obj]) -> bool:
    if value.scale is not None or any(o.kind == "world" for o in value.origins):
        return False
    return bool(sources & value.objs)


def _in_training(context: Context, call: Call) -> bool:
    """Whether what a call makes meets a training batch: it runs in a loop over training data, or reaches a loss."""
    loaders = set(context.facts.loaders)
    feeding = [loop for loop in call.loops if _batches(loop.element)]
    if feeding:
        return bool(_batches(feeding[-1].element) & loaders)
    return any(call.node in loop.loss.of_kind("sized") for loop in context.facts.loops)


def _batches(value: Value) -> set[object]:
    out = set(value.of_kind("batch"))
    for obj in value.objs:
        if isinstance(obj, Tup):
            for item in obj.items:
                out |= _batches(item)
    return out


def _divide(context: Context, node: ast.expr, why: str) -> Iterator[Change | Finding]:
    if not context.facts.is_entry(node):
        yield context.manual(CODE, node, f"{why}, and every rank now has its share of it", f"{ast.unparse(node)} // dist.get_world_size()")
        return
    yield Change(CODE, why, context.tree.shown, node, (Replace(node, f"{context.names['per_rank']}({{0}})", (node,)),), needs=("per_rank",))
