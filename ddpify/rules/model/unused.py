"""Whether a model may hold parameters that a forward does not use: `find_unused_parameters`."""

from __future__ import annotations

import ast

from ddpify.facts.collect import TrainedModel, TrainingLoop
from ddpify.facts.model import Call, New, Obj
from ddpify.facts.used_parameters import Uses
from ddpify.rules.context import Context

_POOLING = frozenset("AutoModel BertModel RobertaModel XLMRobertaModel AlbertModel CamembertModel ViTModel".split())


def unused(context: Context, model: TrainedModel) -> bool:
    """Whether the model may hold parameters that its forward does not use."""
    asked = context.options.find_unused_parameters
    if asked != "auto":
        return asked == "on"
    if any(_without_pooler(context, obj) for obj in model.objs if isinstance(obj, New)):
        return True
    return any(_at_rest(context, model, loop) or _dropped(context, model, loop) for loop in context.facts.loops) or any(
        _conditional(context, node) for node in model.forwards
    )


def chosen(context: Context, model: TrainedModel) -> bool:
    """Whether the forward chooses the parts that it uses."""
    return any(_at_rest(context, model, loop, True) for loop in context.facts.loops)


def _at_rest(context: Context, model: TrainedModel, loop: TrainingLoop, by_choice: bool = False) -> bool:
    """Whether a part of the model may be left out by the forwards that a backward goes back through; `by_choice`: under a condition."""
    run = context.facts.before
    forwards: dict[Obj, dict[ast.AST, list[Call]]] = {}
    for obj, node in loop.loss.of_kind("forward"):
        calls = [c for c in run.calls(node) if not c.no_grad]
        if obj in model.objs and calls:
            forwards.setdefault(obj, {})[node] = calls
    for obj, nodes in forwards.items():
        uses = Uses(run)
        parts = uses.parts(obj)
        if not parts:
            continue
        found = [uses.forward(obj, calls) for calls in nodes.values()]
        tests = {tuple(id(t) for t, _ in c.tests) for calls in nodes.values() for c in calls}
        if len(tests) == 1:  # all of them run before the backward
            found = [frozenset().union(*found)]
        left = parts - found[0].intersection(*found[1:])
        used = [p for p in left if p in run.run or getattr(p, "path", "") == "torch.nn.Parameter"]
        if by_choice and any(p not in uses.by_condition for p in used):
            return True
        if not by_choice and any(not (p in uses.by_condition and uses.optional(p, obj)) for p in left):
            return True
    return False


def _without_pooler(context: Context, obj: New) -> bool:
    """Whether a model takes the states of an encoder of the transformers library, and leaves out what its last layer makes of the first."""
    encoders = [o for o in context.facts.before.parts(obj) if isinstance(o, New) and o.path.startswith("transformers.")]
    pooled = [o for o in encoders if o.path.split(".")[1] in _POOLING]
    if obj.cls is None or not pooled:
        return False
    if any("add_pooling_layer" in c.keywords for o in pooled for c in context.facts.before.calls(o.node)):
        return False
    nodes = list(ast.walk(obj.cls.node))
    second = any(isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant) and n.slice.value == 1 for n in nodes)
    unpacked = any(isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple) and isinstance(n.value, ast.Call) for n in nodes)
    return not second and not unpacked and not any(isinstance(n, ast.Attribute) and n.attr == "pooler_output" for n in nodes)


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


def _dropped(context: Context, model: TrainedModel, loop: TrainingLoop) -> bool:
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
