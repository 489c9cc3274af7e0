"""What models of timm and torchvision give; losses, meters and schedulers of timm: templates/library. Checked on timm 1.0.31."""

from __future__ import annotations

import ast
import re

from ddpify.facts.model import New
from ddpify.placement.shape import Shape

_OF_OTHERS = frozenset(("features_only", "out_indices", "global_pool", None))  # settings by which a model gives something else


_CLASSIFIERS = re.compile(
    r"torchvision\.models\.(alexnet|vgg|resnet|resnext|wide_resnet|densenet|squeezenet|mobilenet|mnasnet|shufflenet|efficientnet|regnet"
    r"|convnext|vit|swin|maxvit)[a-z0-9_]*"
)  # but those that give several outputs in training


def output_shape(obj: New) -> Shape | None:
    """The dimensions of what a classifier gives: a row of scores, or of features, for each sample; None of any other model."""
    if _CLASSIFIERS.fullmatch(obj.path):
        return Shape(None, 2)
    if obj.path != "timm.create_model" or not isinstance(obj.node, ast.Call) or _OF_OTHERS & {k.arg for k in obj.node.keywords}:
        return None
    return Shape(None, 2)
