"""The functions, classes and methods that the interpreter or a rule asks for by name.

A set here is one word of the field ("wrappers", "containers"): whoever adds a path to it adds it for all that ask. What calling something
gives is not said here, but by the rows of its library (`torch.py`, `python.py`, ...).
"""

from __future__ import annotations

import random
import re

# ------------------------------------------------------------------------------------------------ data

DATALOADER = "torch.utils.data.DataLoader"
GRAPH_LOADER = "torch_geometric.loader.DataLoader"  # it takes what torch's takes, and puts graphs side by side
NODE_LOADER = "torch_geometric.loader.NeighborLoader"  # torch's, over the nodes it samples around; what it takes first is the graph
IMAGE_LOADER = "timm.data.create_loader"  # a function: asked to train, its loader shuffles, and drops the last batch
LOADERS = frozenset((DATALOADER, GRAPH_LOADER, NODE_LOADER, IMAGE_LOADER))
STACKING = frozenset(  # collate functions that put the samples along the first dimension, and pad nothing
    """
        torch.utils.data.default_collate torch.utils.data.dataloader.default_collate torch.utils.data._utils.collate.default_collate
        monai.data.list_data_collate monai.data.utils.list_data_collate
    """.split()
)
COLLATING = frozenset("torch numpy transformers monai timm builtins".split())  # whose collate functions give one row for each sample
STREAMS = tuple(  # data sets that only yield
    "torchtext.datasets. webdataset. torchdata.datapipes.iter. torch.utils.data.datapipes.iter. datasets.IterableDataset".split()
)
DISTRIBUTED_SAMPLER = "torch.utils.data.DistributedSampler"
_SEEDS = (
    "this loader samples around the same seed nodes on every rank: all ranks would train on the same samples",
    "input_nodes=torch.arange(data.num_nodes)[mask][rank::world_size] (of edges: edge_label_index, alike), cut to as many on all ranks, "
    "and batch_size=B // world_size",
)
SHARED_BY_HAND = {  # loaders that are not edited: why each rank needs a share, and how it gets one
    **{f"torch_geometric.loader.{name}": _SEEDS for name in ("NeighborLoader", "LinkNeighborLoader", "HGTLoader", "NodeLoader")},
    "webdataset.WebLoader": (
        "this loader reads a stream of its own: every rank would train on all of it",
        "split the shards between ranks, wds.WebDataset(urls, nodesplitter=wds.split_by_node), with batch_size=B // world_size "
        "and .with_epoch(n) alike on all ranks",
    ),
    IMAGE_LOADER: (
        "timm's loader is not distributed here: every rank would train on all samples",
        "create_loader(..., batch_size=B // world_size, distributed=True), and loader.sampler.set_epoch(epoch) before each epoch",
    ),
}
SEEDS_ALL = frozenset(  # these seed the generators of torch, numpy and Python
    """
        transformers.set_seed transformers.trainer_utils.set_seed accelerate.utils.set_seed diffusers.training_utils.set_seed
        torch_geometric.seed_everything torch_geometric.seed.seed_everything monai.utils.set_determinism monai.utils.misc.set_determinism
        pytorch_lightning.seed_everything lightning.seed_everything lightning.pytorch.seed_everything timm.utils.random_seed
    """.split()
)
NO_DRAWS = tuple(  # what makes or seeds generators, by the ends of their paths
    "seed default_rng RandomState Generator Random SystemRandom get_state set_state getstate setstate".split()
)
GENERATORS = ("generator", "random_state", "seed")  # the arguments that say what a function draws from
ORDERING: dict[str, dict[str, tuple[str, ...]]] = {  # methods that draw an order or a part of the data, by package ("": any other)
    "shuffle": {
        "torch_geometric": ("torch",),
        "datasets": ("numpy",),
        **dict.fromkeys("random numpy torch torchdata tensorflow keras webdataset".split(), ()),  # by its own generator, or when read
        "": ("numpy", "random", "torch"),
    },
    "train_test_split": {"datasets": ("numpy",)},
    "split": {"torchtext": ("random",)},
    "sample": {"pandas": ("numpy",)},
}
SHUFFLES = frozenset(("random.shuffle", "numpy.random.shuffle"))
DOWNLOADS = ("torch_geometric.datasets.", "ogb.")  # the data sets of these packages fetch what is missing, without being asked to
LISTINGS = frozenset(("os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob"))  # in an order that the disk decides

# ------------------------------------------------------------------------------------------------ processes

JOINED = frozenset(("torch.distributed.is_initialized", "torch.distributed.is_available"))
AGREEING = frozenset(
    f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "all_gather_object", "broadcast_object_list")
)  # what they are given is the same on every rank afterwards
COLLECTIVES = AGREEING | {"torch.distributed.barrier", "torch.distributed.all_gather", "torch.distributed.reduce"}
ENVIRONMENT = {"RANK": "rank", "LOCAL_RANK": "rank", "WORLD_SIZE": "world", "LOCAL_WORLD_SIZE": "world"}
NO_RETURN = frozenset(("sys.exit", "exit", "quit", "os._exit"))

# ------------------------------------------------------------------------------------------------ models

DATAPARALLEL = "torch.nn.DataParallel"
DDP = "torch.nn.parallel.DistributedDataParallel"
APEX_DDP = "apex.parallel.DistributedDataParallel"
DDPS = frozenset((DDP, APEX_DDP))
WRAPPERS = DDPS | {DATAPARALLEL}
PICKLES = frozenset(("torch.save", "pickle.dump", "pickle.dumps", "joblib.dump"))  # whole objects, with all that they hold
UNPICKLES = frozenset(("torch.load", "pickle.load", "pickle.loads", "joblib.load"))  # what gives such objects back
SEQUENTIAL = "torch.nn.Sequential"
CONTAINERS = frozenset((SEQUENTIAL, "torch.nn.ModuleList", "torch.nn.ModuleDict"))
PARAMETER = "torch.nn.Parameter"
MODULES = re.compile(r"\.Module$|Model$|\.MessagePassing$|\.LightningModule$|\.ModelMixin$|^transformers\.\w+For[A-Z]\w+$")  # as a base
OF_REPLICAS = "__data_parallel_replicate__"  # a method by which batch norm learns that it is one of a DataParallel's replicas
COPIES = frozenset(("copy.deepcopy", "copy.copy"))
CLASS_CONSTRUCTORS = frozenset(("from_pretrained", "from_config", "_from_config"))  # class methods that classes inherit from a library
SAME_METHODS = frozenset(
    "to cuda cpu train eval half float double bfloat16 apply requires_grad_ share_memory type to_empty xpu".split()
)  # they give the module back
STATE_METHODS = frozenset(("state_dict", "load_state_dict"))
NAMING_METHODS = frozenset("named_parameters named_modules named_children named_buffers".split())  # what gives names with what they name
PARAMETER_METHODS = frozenset("parameters named_parameters children named_children modules named_modules buffers named_buffers".split())
MODULE_METHODS = (
    SAME_METHODS
    | PARAMETER_METHODS
    | frozenset(
        """
            state_dict load_state_dict zero_grad register_buffer register_parameter add_module forward __call__ register_forward_hook
            register_module compile get_submodule get_parameter
        """.split()
    )
)
FORWARD_HOOKS = frozenset(("register_forward_hook", "register_forward_pre_hook"))
MODULE_HOOKS = FORWARD_HOOKS | {"register_full_backward_hook", "register_backward_hook", "register_full_backward_pre_hook"}
MODULE_WRITERS = (SAME_METHODS - {"train", "eval"}) | frozenset(
    """
        load_state_dict from_pretrained init_weights add_module register_module register_parameter register_buffer append extend insert
        set_submodule tie_weights resize_token_embeddings gradient_checkpointing_enable compile
    """.split()
)
ORIGINAL = "[original]"  # what a copy holds as what it was made of

# ------------------------------------------------------------------------------------------------ metrics

METRICS = ("torchmetrics.", "monai.metrics.")  # packages whose metrics are of all ranks, where their result is asked for
METRIC_RESULTS = frozenset(("compute", "aggregate"))

# ------------------------------------------------------------------------------------------------ tensors, gradients and precision

PARTS = "torch.Tensor.split"  # the parts of a batch that are trained on one after another
FILLS = frozenset(f"{name}_" for name in "uniform normal random bernoulli exponential log_normal cauchy geometric".split())
REFILLS = FILLS | {"copy_", "resize_", "resize_as_"}  # what leaves nothing of a tensor's old values, or of its shape
NO_GRAD = frozenset(("torch.no_grad", "torch.inference_mode"))
AUTOCASTS = frozenset(("torch.autocast", *(f"torch.{place}amp.autocast" for place in ("", "cuda.", "cpu."))))
SCALERS = frozenset(f"torch.{place}amp.GradScaler" for place in ("", "cuda.", "cpu."))
INITIALIZE, SCALE_LOSS, MASTER_PARAMS = "apex.amp.initialize", "apex.amp.scale_loss", "apex.amp.master_params"

# ------------------------------------------------------------------------------------------------ containers and settings

# dicts whose entries are attributes, too
ATTRIBUTE_DICTS = frozenset(
    """
        easydict.EasyDict munch.Munch addict.Dict box.Box ml_collections.ConfigDict attrdict.AttrDict yacs.config.CfgNode
    """.split()
)
DICTS = ATTRIBUTE_DICTS | {"dict", "collections.defaultdict", "collections.OrderedDict", "collections.Counter"}
OF_DICTS = frozenset(("keys", "values", "items", "get", "pop", "update", "copy", "setdefault"))
COLLECTIONS = (DICTS - ATTRIBUTE_DICTS) | {"list", "set", "collections.deque"}
MAPPED = frozenset(("torch.vmap", "torch.func.vmap"))  # functions that are called for each slice along a dimension
HOLDERS = ATTRIBUTE_DICTS | {"argparse.Namespace", "types.SimpleNamespace"}
SETTINGS = frozenset(("absl.flags.FLAGS", "gflags.FLAGS"))  # what the command line fills
GIVEN = "[given]"  # what an object that is not known was handed: it may give it back

# what `from torch.nn import *` binds for sure; any other name that nothing binds may be one of all modules that are so imported
STARS = {
    "numpy": ("random",),
    "random": tuple(random.__all__),
    "torch.optim": ("SGD", "Adam", "AdamW", "RMSprop", "lr_scheduler"),
    "torch.utils.data": ("DataLoader", "Dataset", "TensorDataset", "Subset", "random_split"),
    "torch.nn": ("Module", "Linear", "Sequential", "Conv2d", "DataParallel", "CrossEntropyLoss", "MSELoss"),
    "tqdm": ("tqdm", "trange"),
}
