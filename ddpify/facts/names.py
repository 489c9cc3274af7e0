"""One name for each thing of a library, whichever of its homes it is imported from."""

from __future__ import annotations

import functools
import re

_MOVED = (
    (r"^torch\.utils\.data\.(dataloader|dataset|sampler|distributed)\.", "torch.utils.data."),
    (r"^torch\.nn\.modules\.\w+\.", "torch.nn."),
    (r"^torch\.nn\.modules\.", "torch.nn."),
    (r"^torch\.nn\.parallel\.(data_parallel\.)?DataParallel$", "torch.nn.DataParallel"),
    (r"^torch\.nn\.parallel\.distributed\.", "torch.nn.parallel."),
    (r"^torch\.optim\.(sgd|adam|adamw|adagrad|adadelta|rmsprop|lbfgs|asgd|adamax|nadam|radam|rprop|optimizer)\.", "torch.optim."),
    (r"^torch\.autograd\.(variable|function)\.", "torch.autograd."),
    (r"^torch\.autograd\.InplaceFunction$", "torch.autograd.Function"),
    (r"^torch\.nn\.parameter\.", "torch.nn."),
    (r"^torch\.nn\.utils\.clip_grad\.", "torch.nn.utils."),
    (r"^torch\.nn\.functional$", "torch.nn.functional"),
    (r"^torch\._C\._nn\.", "torch.nn.functional."),
    (r"^torch\.(no_grad|enable_grad|set_grad_enabled|inference_mode)$", r"torch.\1"),
    (r"^torch\.autograd\.(grad_mode\.)?(no_grad|enable_grad|set_grad_enabled|inference_mode)$", r"torch.\2"),
    (r"^torch\.distributed\.distributed_c10d\.", "torch.distributed."),
    (r"^torch\.utils\.tensorboard\.writer\.", "torch.utils.tensorboard."),
    (r"^tqdm\.(std|auto|autonotebook|notebook|_tqdm|asyncio)\.", "tqdm."),
    (r"^fastprogress\.fastprogress\.", "fastprogress."),
    (r"^torchvision\.datasets\.\w+\.([A-Z])", r"torchvision.datasets.\1"),
    (r"^torchvision\.models\.\w+\.", "torchvision.models."),
    (r"^torch\.(cuda\.|cpu\.)?amp\.(autocast_mode|grad_scaler)\.", r"torch.\1amp."),
    (r"^torch_geometric\.(loader\.dataloader|data|loader)\.DataLoader$", "torch_geometric.loader.DataLoader"),
    (r"^torch_geometric\.(loader\.neighbor_loader|loader)\.NeighborLoader$", "torch_geometric.loader.NeighborLoader"),
    (r"^monai\.data\.(dataloader\.)?DataLoader$", "torch.utils.data.DataLoader"),
    (r"^monai\.utils\.misc\.", "monai.utils."),
    (r"^generative\.(inferers|losses|metrics|networks\.(nets|schedulers))\.", r"monai.\1."),  # where they were before monai 1.4
    (r"^torchdata\.stateful_dataloader\.(stateful_dataloader\.)?StatefulDataLoader$", "torch.utils.data.DataLoader"),
    (r"^transformers\.(models\.\w+\.)?(modeling|configuration|tokenization)_\w+\.([A-Z])", r"transformers.\3"),
    (r"^transformers\.(optimization|modeling_utils|trainer_utils|data\.data_collator)\.", "transformers."),
    (r"^timm\.data\.loader\.create_loader$", "timm.data.create_loader"),
    (r"^(numpy|np)\.", "numpy."),
    (r"^six\.moves\.", ""),
    (r"^itertools\.i(zip|map|filter|zip_longest)$", r"\1"),  # of Python 2, where a script tries whether there are any
    (r"^pylab\.", "matplotlib.pyplot."),
    (r"^matplotlib\.pylab\.", "matplotlib.pyplot."),
)
# Modules of Python 2, which scripts import where those of Python 3 are missing.
_OF_PYTHON_2 = {
    "urlparse": "urllib.parse", "urllib2": "urllib.request", "httplib": "http.client", "cPickle": "pickle", "Queue": "queue",
    "ConfigParser": "configparser", "StringIO": "io", "cStringIO": "io", "__builtin__": "builtins", "thread": "_thread",
}  # fmt: skip


def _start(pattern: str) -> str:
    """What all that a pattern fits starts with."""
    plain = pattern[1:].replace("\\.", ".")
    return plain[: next((i for i, c in enumerate(plain) if c in "([\\$"), len(plain))]


_RULES = tuple((_start(pattern), pattern, new) for pattern, new in _MOVED)


@functools.lru_cache(maxsize=4096)
def canonical(path: str) -> str:
    """`torch.utils.data.dataloader.DataLoader` -> `torch.utils.data.DataLoader`, and so on."""
    for start, pattern, to in _RULES:
        if path.startswith(start):  # few patterns are ever compiled
            path = re.sub(pattern, to, path, count=1)
    first, dot, rest = path.partition(".")
    return f"{_OF_PYTHON_2[first]}{dot}{rest}" if first in _OF_PYTHON_2 else path
