"""What the models of timm give. What its losses, meters and schedulers compute stands in templates/library. Checked on timm 1.0.31."""

from __future__ import annotations

import ast

from ddpify.facts.model import New
from ddpify.placement.shape import Shape

_OF_OTHERS = frozenset(("features_only", "out_indices", "global_pool", None))  # settings by which a model gives something else


def output_shape(obj: New) -> Shape | None:
    """The dimensions of what a classifier gives: a row of scores, or of features, for each sample; None of any other model."""
    if obj.path != "timm.create_model" or not isinstance(obj.node, ast.Call) or _OF_OTHERS & {k.arg for k in obj.node.keywords}:
        return None
    return Shape(None, 2)
