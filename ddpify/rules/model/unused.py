"""Whether a model may hold parameters that a forward does not use: `find_unused_parameters`."""

from __future__ import annotations

import ast

from ddpify.facts.collect import TrainedModel, TrainingLoop
from ddpify.facts.model import New
from ddpify.rules.context import Context


def unused(context: Context, model: TrainedModel) -> bool:
    """Whether the model may hold parameters that its forward does not use."""
    asked = context.options.find_unused_parameters
    if asked != "auto":
        return asked == "on"
    for obj in model.objs:
        if isinstance(obj, New) and obj.cls is not None and _forgotten(obj.cls.node):
            return True
    return any(_dropped(context, model, loop) for loop in context.facts.loops) or any(
        _conditional(context, node) for node in model.forwards
    )


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether one of the names that a forward's outputs are unpacked to is read nowhere, or only under a condition."""
    tree = context.facts.tree_of(node)
    statement = tree.parent.get(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return False
    around = set(tree.ancestors(statement))
    function = tree.function(statement)
    for target in statement.targets[0].elts:
        if not isinstance(target, ast.Name):
            continue
        reads = [
            n
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and n.lineno >= statement.lineno
        ]
        if all(any(isinstance(up, (ast.If, ast.IfExp)) and up not in around for up in tree.ancestors(n)) for n in reads):
            return True
    return False


def _dropped(context: Context, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether a backward starts from some of what a forward of the model returns, and not from the rest."""
    reached: dict[object, set[int]] = {}
    lengths: dict[object, int] = {}
    for node, index, length in loop.loss.of_kind("output"):
        if node in model.forwards:
            reached.setdefault(node, set()).add(index)
            lengths[node] = length
    return any(len(found) < lengths[node] for node, found in reached.items())


def _forgotten(node: ast.ClassDef) -> bool:
    """Whether a class assigns a submodule in `__init__` that no other line mentions."""
    made: set[str] = set()
    read: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
            (made if isinstance(n.ctx, ast.Store) else read).add(n.attr)
        if isinstance(n, ast.Call) and ast.unparse(n.func) in (
            "getattr",
            "self.children",
            "self.modules",
            "self.named_children",
            "self.__getattr__",
        ):
            return False
    layers = {
        t.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Assign)
        and isinstance(n.value, ast.Call)
        and ast.unparse(n.value.func).startswith(("nn.", "torch.nn."))
        and ast.unparse(n.value.func).rpartition(".")[2][:1].isupper()
        and not ast.unparse(n.value.func)
        .rpartition(".")[2]
        .startswith(
            (
                "ReLU",
                "Dropout",
                "MaxPool",
                "AvgPool",
                "Softmax",
                "LogSoftmax",
                "Sigmoid",
                "Tanh",
                "Flatten",
                "Identity",
                "Upsample",
                "LeakyReLU",
                "Adaptive",
                "Parameter",
            )
        )
        for t in n.targets
        if isinstance(t, ast.Attribute)
    }
    return bool(layers & (made - read))
