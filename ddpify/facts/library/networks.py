"""The networks that other libraries make."""

from __future__ import annotations

from ddpify.facts.library.transformers import LANGUAGE_MODELS
from ddpify.facts.model import New, Obj


def is_library_model(obj: Obj) -> bool:
    """Whether an object is a network that another library made."""
    if not isinstance(obj, New) or obj.cls is not None:
        return False
    root, _, rest = obj.path.partition(".")
    if root in LANGUAGE_MODELS:
        return ("Model" in rest or "For" in rest) and not rest.partition(".")[0].endswith(("Config", "Tokenizer", "Processor"))
    return (root == "torchvision" and rest.startswith("models.")) or root in ("timm", "segmentation_models_pytorch", "efficientnet_pytorch")
