"""Wrap each trained model in DistributedDataParallel.

What it does: `model = DistributedDataParallel(model, device_ids=...)` after the last statement that writes to the model's parameters
    (moving, loading, re-initialising, replacing layers, freezing) and before its first training forward.
Why: the wrapper broadcasts rank 0's parameters once and averages gradients only for what it was built over: what is changed later, or
    run past it, silently drifts apart.
Safety: applied where every training forward was seen to go through the wrapper; otherwise MANUAL. A NOTE on batch norm, which sees a
    rank's own samples.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertAfter
from ddpify.facts.collect import TrainedModel, uncovered
from ddpify.facts.model import New
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP201"
TITLE = "wrap the trained model"
EXAMPLES: tuple[Example, ...] = ()


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """The wraps, and what stands in the way of one."""
    facts = context.facts
    yield from _unseen(context)
    for model in facts.models:
        discharged = tuple(Obligation("gradients", loop.backward.node) for loop in facts.loops
                           if any(pair[0] in model.objs for pair in loop.loss.of_kind("forward")))  # type: ignore[index]
        if model.wrapped:
            yield from (Proof(o, "the model is wrapped") for o in discharged)
            continue
        if model.wrap is None:
            first = min(model.forwards, key=lambda n: getattr(n, "lineno", 0))
            yield context.manual(CODE, first, "no place was found where wrapping the model reaches this forward and nothing else",
                                 "wrap the model after its last change: model = DistributedDataParallel(model, device_ids=[local_rank])", discharged)
            continue
        statement, target = model.wrap
        name = ast.unparse(target)
        options = "device_ids=[{}] if torch.cuda.is_available() else None".format(context.names["local_rank"])
        if unused(context, model):
            options += ", find_unused_parameters=True"
        code = f"{name} = DistributedDataParallel({name}, {options})"
        if not facts.is_entry(statement):
            yield context.manual(CODE, statement, "the model is made and trained in another module", f"after this line: {code}", discharged)
            continue
        yield Change(CODE, "gradients are averaged over the ranks; parameters start as rank 0's", context.tree.shown, statement,
                     (InsertAfter(statement, code),), ("import torch", "from torch.nn.parallel import DistributedDataParallel"), Safety.SAFE,
                     discharges=discharged)


def _unseen(context: Context) -> Iterator[Finding]:
    for optimizer, obj in uncovered(context.facts):
        what = "parameters that belong to no module seen" if obj is None else "parameters of a module whose forward does not lead to a backward call seen"
        yield context.manual(CODE, optimizer.node, f"this optimizer moves {what}: their gradients would differ between ranks",
                             "average them before the step: for p in params: dist.all_reduce(p.grad); p.grad /= world_size")


def unused(context: Context, model: TrainedModel) -> bool:
    """Whether the model may hold parameters that its forward does not use."""
    asked = context.options.find_unused_parameters
    if asked != "auto":
        return asked == "on"
    for obj in model.objs:
        if isinstance(obj, New) and obj.cls is not None and _forgotten(obj.cls.node):
            return True
    return False


def _forgotten(node: ast.ClassDef) -> bool:
    """Whether a class assigns a submodule in `__init__` that no other line mentions."""
    made: set[str] = set()
    read: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
            (made if isinstance(n.ctx, ast.Store) else read).add(n.attr)
        if isinstance(n, ast.Call) and ast.unparse(n.func) in ("getattr", "self.children", "self.modules", "self.named_children", "self.__getattr__"):
            return False
    layers = {t.attr for n in ast.walk(node) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
              and ast.unparse(n.value.func).startswith(("nn.", "torch.nn.")) and ast.unparse(n.value.func).rpartition(".")[2][:1].isupper()
              and not ast.unparse(n.value.func).rpartition(".")[2].startswith(("ReLU", "Dropout", "MaxPool", "AvgPool", "Softmax", "LogSoftmax", "Sigmoid",
                                                                               "Tanh", "Flatten", "Identity", "Upsample", "LeakyReLU", "Adaptive", "Parameter"))
              for t in n.targets if isinstance(t, ast.Attribute)}
    return bool(layers & (made - read))
