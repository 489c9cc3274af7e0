"""Whether a model may hold parameters that a forward does not use: `find_unused_parameters`."""

from __future__ import annotations

import ast

from ddpify.facts.collect import TrainedModel, TrainingLoop
from ddpify.facts.left_out import left_out
from ddpify.facts.model import New
from ddpify.facts.tree import is_number, walked
from ddpify.rules.context import Context

_POOLING = frozenset("AutoModel BertModel RobertaModel XLMRobertaModel AlbertModel CamembertModel ViTModel".split())


def unused(context: Context, model: TrainedModel) -> bool:
    """Whether the model may hold parameters that its forward does not use."""
    asked = context.options.find_unused_parameters
    if asked != "auto":
        return asked == "on"
    if any(_without_pooler(context, obj) for obj in model.objs if isinstance(obj, New)):
        return True
    return any(_leaves_out(context, model, loop) or _leaves_out_outputs(model, loop) for loop in context.facts.loops) or any(
        _conditional(context, node) for node in model.forwards
    )


def _leaves_out(context: Context, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether a part of the model may be left out by the forwards that a backward goes back through."""
    return any(
        not (part in uses.by_condition and uses.held.optional(part, obj)) for obj, part, uses in left_out(context.facts.before, model, loop)
    )


def _without_pooler(context: Context, obj: New) -> bool:
    """Whether a model takes the states of an encoder of the transformers library, and leaves out what its last layer makes of the first."""
    run = context.facts.before
    encoders = [o for o in run.parts(obj) if isinstance(o, New) and o.path.startswith("transformers.")]
    pooled = [o for o in encoders if o.path.split(".")[1] in _POOLING]
    asked = any("add_pooling_layer" in c.keywords for o in pooled for c in run.calls(o.node))
    return obj.cls is not None and bool(pooled) and not asked and not any(map(_may_take_pooled, walked(obj.cls.node)))


def _may_take_pooled(node: ast.AST) -> bool:
    """Whether a node may take the second output of an encoder: by its index, its name, or its place in a tuple."""
    if isinstance(node, ast.Subscript):
        return is_number(node.slice, 1)
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call)
    return isinstance(node, ast.Attribute) and node.attr == "pooler_output"


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether one of the names that a library model's outputs are unpacked to is read nowhere, or only under a condition."""
    tree = context.facts.tree_of(node)
    statement = tree.parent.get(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return False
    called = {o for c in context.facts.before.calls(node) for o in context.facts.before.unwrap(c.func)}
    if all(isinstance(o, New) and (o.cls is not None or o.path.startswith("torch.nn.")) for o in called):
        return False
    around = set(tree.ancestors(statement))
    function = tree.function(statement)
    for target in statement.targets[0].elts:
        if not isinstance(target, ast.Name):
            continue
        reads = [
            n
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and tree.after(n, statement)
        ]
        if all(any(isinstance(up, (ast.If, ast.IfExp)) and up not in around for up in tree.ancestors(n)) for n in reads):
            return True
    return False


def _leaves_out_outputs(model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether parts of the model only lead to outputs that a backward does not start from."""
    reached: dict[object, set[object]] = {}
    outputs: dict[object, dict[object, frozenset[object]]] = {}
    for node, name, all_of in loop.loss.of_kind("output"):
        if node in model.forwards:
            reached.setdefault(node, set()).add(name)
            outputs[node] = dict(all_of)
    for node, names in reached.items():
        used = frozenset().union(*(outputs[node].get(n, frozenset()) for n in names))
        if any(not parts <= used for parts in outputs[node].values()):
            return True
    return False
