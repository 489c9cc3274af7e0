"""What becomes of batch norm, which sees the samples of one rank: taken over all ranks, or each rank's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.collect import TrainedModel
from ddpify.facts.model import New
from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context

CODE = "DDP201"


def told(context: Context, model: TrainedModel, statement: ast.stmt) -> Iterator[Finding]:
    """What the owner of a wrapped model must know of its batch norm and its other buffers."""
    if may_hold_batch_norm(context, model):
        yield context.manual(
            CODE,
            statement,
            "batch norm on GPUs takes its statistics over all ranks' samples, as the one GPU did; on the CPU each rank's own"
            if sync(context, model)
            else "batch norm takes its statistics over each rank's own samples, as DataParallel did over each device's",
            level=Safety.NOTE,
        )
        if _forwards_twice(context, model):
            yield context.manual(
                CODE,
                statement,
                "this model runs twice before one backward call: with batch norm that needs torch 2.12 or newer",
                level=Safety.NOTE,
            )
    yield from _batch_statistics(context, model)


def may_hold_batch_norm(context: Context, model: TrainedModel) -> bool:
    """Whether batch norm layers may be inside the model: some are made, or it comes from a library."""
    run = context.facts.after
    for obj in model.objs:
        if not (isinstance(obj, New) and obj.cls is not None) and not getattr(obj, "path", "").startswith("torch.nn."):
            return True
    return any(p.startswith("torch.nn.BatchNorm") for c in run.trace.calls for p in c.func.paths())


def sync(context: Context, model: TrainedModel) -> bool:
    """Whether to take batch norm over all ranks: asked for, or a single-GPU original did."""
    asked = context.options.sync_bn
    if asked != "auto":
        return asked == "on"
    before = context.facts.before
    parallel = any("torch.nn.DataParallel" in c.func.paths() for c in before.trace.calls)
    return not parallel and may_hold_batch_norm(context, model)


def _forwards_twice(context: Context, model: TrainedModel) -> bool:
    return any(len({pair[1] for pair in loop.loss.of_kind("forward") if pair[0] in model.objs}) > 1 for loop in context.facts.loops)


def _batch_statistics(context: Context, model: TrainedModel) -> Iterator[Finding]:
    """Buffers that the model computes from its batches: the wrapper overwrites them with rank 0's."""
    for obj in model.objs:
        if not isinstance(obj, New) or obj.cls is None:
            continue
        names = {
            n.args[0].value
            for n in ast.walk(obj.cls.node)
            if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr == "register_buffer"
            and n.args
            and isinstance(n.args[0], ast.Constant)
        }
        for method in obj.cls.node.body:
            if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
                continue
            for n in ast.walk(method):
                written = isinstance(n, ast.Attribute) and (isinstance(n.ctx, ast.Store) or n.attr.endswith("_"))
                at = (
                    n
                    if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                    else n.value
                    if isinstance(n, ast.Attribute)
                    else None
                )
                if written and isinstance(at, ast.Attribute) and at.attr in names and ast.unparse(at.value) == "self":
                    yield context.manual(
                        CODE,
                        n,
                        f"`{at.attr}` is computed from this rank's share of the batch, and rank 0's replaces it at the next step",
                        "sum or average what it is computed from over the ranks",
                        level=Safety.REVIEW,
                    )
                    return
