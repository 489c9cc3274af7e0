"""Which classes of torch.nn have parameters, which functions clip gradients, and which make tensors of a size."""

from __future__ import annotations

from ddpify.facts.library.paths import COLLECTIONS, CONTAINERS, MASTER_PARAMS
from ddpify.facts.library.row import row_of

# How the layers of torch begin that have parameters; the others compute, drop, pool or compare.
_WITH_PARAMETERS = tuple(
    """
        AdaptiveLogSoftmaxWithLoss BatchNorm Bilinear Conv Embedding GRU GroupNorm InstanceNorm LSTM LayerNorm Lazy Linear
        MultiheadAttention Parameter PReLU RMSNorm RNN SyncBatchNorm Transformer Uninitialized
    """.split()
)
_HOMES = frozenset(("nn", "layers", "modules", "networks", "ops"))  # the modules of libraries that hold layers
_BARE = dict.fromkeys((*CONTAINERS, *COLLECTIONS, "torch.nn.Module", "torch.device", "argparse", "logging", "math"), True)
_CLIPS = ("torch.nn.utils.clip_grad", "torch.nn.utils.get_total_norm", MASTER_PARAMS)  # MASTER_PARAMS hands over what is clipped
_SIZED = frozenset("empty zeros ones Tensor FloatTensor DoubleTensor HalfTensor".split())


def bare(path: str) -> bool:
    """Whether a library's class is a module without parameters of its own, or no module at all."""
    return row_of(_BARE, path) is not None or (_is_layer(path) and not has_parameters(path))


def has_parameters(path: str) -> bool:
    """Whether a class is a parameter, or a layer that has some; of other libraries' layers, any may."""
    *places, name = path.split(".")
    if places[:1] != ["torch"]:
        return name[:1].isupper() and not _HOMES.isdisjoint(places)
    return _is_layer(path) and name.startswith(_WITH_PARAMETERS)


def may_have_bias(path: str) -> bool:
    """Whether a layer has a weight, and a bias unless it is made without one."""
    return _is_layer(path) and path.rpartition(".")[2].startswith(("Linear", "Conv"))


def _is_layer(path: str) -> bool:
    place, _, name = path.rpartition(".")
    return (place == "torch.nn" or place.startswith("torch.nn.modules.")) and name.lstrip("_")[:1].isupper()


def clips(path: str) -> bool:
    """Whether a function, by its path or name, clips gradients or measures them for that."""
    return path.startswith(_CLIPS) or "clip_grad" in path


def allocates(path: str) -> bool:
    """Whether a function of torch makes a tensor of the shape that it is given."""
    place, _, name = path.rpartition(".")
    return place in ("torch", "torch.cuda") and name in _SIZED
