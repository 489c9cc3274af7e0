"""Whether a model may hold parameters that a forward does not use: `find_unused_parameters`."""

from __future__ import annotations

import ast

from ddpify.facts.collect import TrainedModel
from ddpify.facts.held_parts import HeldParts
from ddpify.facts.left_out import leaves_out, leaves_out_outputs
from ddpify.facts.model import Class, New
from ddpify.facts.runs import Run
from ddpify.facts.tree import is_number, last_name, walk
from ddpify.rules.context import Context

# Models of transformers 5.23 whose last layer makes an output of its own of the first token's state.
_POOLING = frozenset(
    """
        AutoModel AlbertModel AltRobertaModel BeitModel BertModel BigBirdModel BlipTextModel BridgeTowerTextModel
        BrosModel CLIPVisionModel CamembertModel CanineModel ChineseCLIPTextModel ClapTextModel DPTModel
        Data2VecTextModel Data2VecVisionModel DeiTModel ErnieModel EsmModel FNetModel FlavaImageModel
        FlavaMultimodalModel FlavaTextModel GteModel HieraModel IBertModel IJepaModel LayoutLMModel LayoutLMv2Model
        LiltModel LongformerModel LukeModel MPNetModel MarkupLMModel MegatronBertModel MobileBertModel NomicBertModel
        RemBertModel RoCBertModel RobertaModel RobertaPreLayerNormModel SqueezeBertModel TapasModel ViTModel ViltModel
        VisualBertModel VivitModel XLMRobertaModel XLMRobertaXLModel XmodModel YolosModel
    """.split()
)


def unused(context: Context, model: TrainedModel) -> bool:
    """Whether the model may hold parameters that its forward does not use."""
    asked = context.options.find_unused_parameters
    if asked != "auto":
        return asked == "on"
    if any(_without_pooler(context, model, obj) or _without_stages(context, obj) for obj in model.objs if isinstance(obj, New)):
        return True
    run = context.facts.before
    left_out = any(leaves_out(run, model, loop) or leaves_out_outputs(run, model, loop) for loop in context.facts.loops)
    return left_out or any(_conditional(context, node) for node in model.forwards)


def _without_pooler(context: Context, model: TrainedModel, obj: New) -> bool:
    """Whether a model takes the states of an encoder of the transformers library, and leaves out what its last layer makes of the first."""
    run = context.facts.before
    held = HeldParts(run).parts(obj)
    pooled = [o for o in held if isinstance(o, New) and o.path.startswith("transformers.") and o.path.split(".")[1] in _POOLING]
    if not pooled or any("add_pooling_layer" in c.keywords for o in pooled for c in run.calls(o.node)):
        return False
    readers = _classes_in(run, obj, set()) or [context.facts.tree_of(f).function(f) for f in model.forwards]
    encoders = frozenset(pooled)
    return not any(_takes_pooled(context, n, encoders) for reader in readers for n in walk(reader))


def _without_stages(context: Context, obj: New) -> bool:
    """Whether a model of segmentation_models_pytorch (0.6) is made with fewer stages than its encoder holds."""
    run, root = context.facts.before, "segmentation_models_pytorch."
    held = [o for o in HeldParts(run).parts(obj) if isinstance(o, New) and o.path.startswith(root)]
    return any("encoder_depth" in c.keywords for o in held for c in run.calls(o.node))


def _classes_in(run: Run, obj: New, seen: set[New]) -> list[ast.AST]:
    """The project's classes of a module and of those inside it."""
    seen.add(obj)
    inner = [c for o in run.parts(obj) if isinstance(o, New) and o not in seen for c in _classes_in(run, o, seen)]
    return [*(_with_bases(obj.cls) if obj.cls is not None else ()), *inner]


def _with_bases(cls: Class) -> list[ast.AST]:
    """A class of the project, and those that it inherits from."""
    return [cls.node, *(node for base in cls.bases for o in base.objs if isinstance(o, Class) for node in _with_bases(o))]


def _takes_pooled(context: Context, node: ast.AST, encoders: frozenset[New]) -> bool:
    """Whether a node may take, in every step, the second output of an encoder: by its index, its name, or its place in a tuple."""
    run = context.facts.before
    match node:
        case ast.Subscript(value=base, slice=index) if is_number(index, 1):
            takes = not _is_shape(base)
        case ast.Attribute(attr="pooler_output"):
            takes = True
        case ast.Assign(targets=[ast.Tuple(elts=[_, second, *_])], value=ast.Call() as call):
            called = [o for c in run.calls(call) for o in run.unwrap(c.func)]
            takes = not called or not encoders.isdisjoint(called)
            if isinstance(second, ast.Name):
                reads = (n for n in walk(context.facts.tree_of(node).function(node)) if isinstance(n, ast.Name) and n.id == second.id)
                takes = takes and any(isinstance(n.ctx, ast.Load) for n in reads)
        case _:
            return False
    return takes and not _is_chosen(context, node)


def _is_chosen(context: Context, node: ast.AST) -> bool:
    """Whether a function comes to a node under a condition alone."""
    tree = context.facts.tree_of(node)
    within = set(walk(tree.function(node)))
    return any(isinstance(up, (ast.If, ast.IfExp)) and up in within for up in tree.ancestors(node))


def _is_shape(node: ast.expr) -> bool:
    """Whether an expression is the sizes of a tensor."""
    return "size" in (last_name(node.func) if isinstance(node, ast.Call) else "") or (
        isinstance(node, ast.Attribute) and node.attr == "shape"
    )


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
            for n in walk(function)
            if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and tree.after(n, statement)
        ]
        if all(any(isinstance(up, (ast.If, ast.IfExp)) and up not in around for up in tree.ancestors(n)) for n in reads):
            return True
    return False
