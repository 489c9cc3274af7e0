"""What the libraries do, as far as values go: torch, argparse, the built-ins, and everything else by default."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddpify.facts import drivers, named, sources, tensors, uniform
from ddpify.facts.model import (
    NOTHING,
    Call,
    Ext,
    Func,
    Lit,
    Method,
    Module,
    New,
    Obj,
    Origin,
    Part,
    Pick,
    Super,
    Tup,
    Value,
    join,
    just,
    origins_of,
)
from ddpify.facts.names import canonical
from ddpify.facts.tree import is_main_test, last_name
from ddpify.placement import rows
from ddpify.placement.shape import Scale, Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

DATALOADER = "torch.utils.data.DataLoader"
DATAPARALLEL = "torch.nn.DataParallel"
JOINED = frozenset(("torch.distributed.is_initialized", "torch.distributed.is_available"))
DISTRIBUTED_SAMPLER = "torch.utils.data.DistributedSampler"
SETTINGS = frozenset(("absl.flags.FLAGS",))  # what the command line fills
# dicts whose entries are attributes, too
ATTRIBUTE_DICTS = frozenset(
    """
        easydict.EasyDict munch.Munch addict.Dict box.Box ml_collections.ConfigDict attrdict.AttrDict yacs.config.CfgNode
    """.split()
)
OF_DICTS = frozenset(("keys", "values", "items", "get", "pop", "update", "copy", "setdefault"))
DICTS = ATTRIBUTE_DICTS | {"dict", "collections.defaultdict", "collections.OrderedDict", "collections.Counter"}
PARTS = "torch.Tensor.split"  # the parts of a batch that are trained on one after another
GIVEN = "[given]"  # what an object that is not known was handed: it may give it back
_KNOWN = (
    "torch.",
    "tqdm.",
    "argparse.",
    "logging",
    "list",
    "dict",
    "range",
    "enumerate",
    "zip",
    "generator",
    "open",
    "os.",
    "torchmetrics.",
    "tensorboardX.",
    "tensorboard_logger.",
    "visdom.",
    "wandb.",
    "mlflow.",
    "neptune.",
    "comet_ml.",
    "aim.",
    "clearml.",
    "loguru.",
    "matplotlib.",
)
DDP = "torch.nn.parallel.DistributedDataParallel"
APEX_DDP = "apex.parallel.DistributedDataParallel"
DDPS = frozenset((DDP, APEX_DDP))
WRAPPERS = DDPS | {DATAPARALLEL}
INITIALIZE, SCALE_LOSS, MASTER_PARAMS = "apex.amp.initialize", "apex.amp.scale_loss", "apex.amp.master_params"
_SAME_MODEL = ("torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.convert_syncbn_model")
_SAME_LAYER = tuple(f"torch.nn.utils.{name}" for name in ("weight_norm", "spectral_norm", "parametrizations.", "remove_"))
CLASS_CONSTRUCTORS = frozenset(("from_pretrained", "from_config", "_from_config"))  # class methods that classes inherit from a library
NO_GRAD = frozenset(("torch.no_grad", "torch.inference_mode"))
AUTOCASTS = frozenset(("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"))
SCALERS = frozenset(("torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"))
NO_RETURN = frozenset(("sys.exit", "exit", "quit", "os._exit"))
STARS = {
    "torch.optim": ("SGD", "Adam", "AdamW", "RMSprop", "lr_scheduler"),
    "torch.utils.data": ("DataLoader", "Dataset", "TensorDataset", "Subset", "random_split"),
    "torch.nn": ("Module", "Linear", "Sequential", "Conv2d", "DataParallel", "CrossEntropyLoss", "MSELoss"),
    "tqdm": ("tqdm", "trange"),
}
SAME_METHODS = frozenset(
    """
    to cuda cpu train eval half float double bfloat16 apply requires_grad_ share_memory type to_empty xpu
""".split()
)
PARAMETER_METHODS = frozenset(
    """
    parameters named_parameters children named_children modules named_modules buffers named_buffers
""".split()
)
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
COLLECTIONS = frozenset(
    ("dict", "list", "set", "collections.defaultdict", "collections.OrderedDict", "collections.deque", "collections.Counter")
)
COPIES = frozenset(("copy.deepcopy", "copy.copy"))
ORIGINAL = "[original]"  # what a copy was made of
CONTAINERS = frozenset(("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"))
_LOADER_ARGUMENTS = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last"),
    *("timeout", "worker_init_fn", "multiprocessing_context", "generator"),
)
# how the layers of torch begin that have parameters; the others compute, drop, pool or compare
_LAYERS = tuple(
    """
        AdaptiveLogSoftmaxWithLoss BatchNorm Bilinear Conv Embedding GRU GroupNorm InstanceNorm LSTM LayerNorm Lazy Linear
        MultiheadAttention Parameter PReLU RMSNorm RNN SyncBatchNorm Transformer Uninitialized
    """.split()
)
# what clips gradients, or hands over those that are clipped
_CLIPS = ("torch.nn.utils.clip_grad", "torch.nn.utils.get_total_norm", "apex.amp.master_params")
_PASSING = frozenset(
    """
        iter tqdm.tqdm reversed list tuple sorted tqdm.trange prefetch_generator.BackgroundGenerator itertools.cycle
        itertools.islice progressbar.progressbar
    """.split()
)
_SCRIPTS = ("torch.jit.script", "torch.jit.trace", "torch.jit.freeze", "torch.jit.optimize_for_inference")
_DESCRIBES = ("functools.", "inspect.")  # these do not call what they are given
_FROM_FILES = frozenset(("importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader", "imp.load_source"))
_IMPORTS = frozenset(("importlib.import_module", "__import__"))
# how a configuration is asked, beside by attribute and key
_ASKS = frozenset(("get", "getint", "getfloat", "getboolean"))
HOLDERS = ATTRIBUTE_DICTS | {"argparse.Namespace", "types.SimpleNamespace"}
RANK_CALLS = {"torch.distributed.get_rank": "rank", "torch.distributed.get_world_size": "world"}
ENVIRONMENT = {"RANK": "rank", "LOCAL_RANK": "rank", "WORLD_SIZE": "world", "LOCAL_WORLD_SIZE": "world"}
AGREEING = frozenset(
    (
        "torch.distributed.all_reduce",
        "torch.distributed.broadcast",
        "torch.distributed.all_gather_object",
        "torch.distributed.broadcast_object_list",
    )
)
COLLECTIVES = AGREEING | {"torch.distributed.barrier", "torch.distributed.all_gather", "torch.distributed.reduce"}
_CLOCKS = frozenset(
    """
        time.time time.time_ns time.perf_counter time.monotonic time.process_time timeit.default_timer time.strftime time.ctime
        time.asctime time.localtime time.gmtime os.getpid
    """.split()
)
_DRAWN = frozenset(("uuid.uuid1", "uuid.uuid4", "tempfile.mkdtemp", "tempfile.mktemp", "tempfile.TemporaryDirectory", "secrets.token_hex"))
_PURE = frozenset(
    """
    torch numpy math os random time json sys re shutil pathlib copy string glob itertools operator datetime sklearn scipy
""".split()
)
_FACTORIES = frozenset(
    """
        zeros ones full empty rand randn randint normal uniform Tensor FloatTensor LongTensor DoubleTensor IntTensor ByteTensor
        BoolTensor HalfTensor standard_normal arange random_sample rand_like randn_like randint_like linspace logspace eye
    """.split()
)
SEQUENTIAL = "torch.nn.Sequential"
_SIZING = frozenset("repeat expand tile new_zeros new_ones new_full new_empty repeat_interleave".split())
SHUFFLES = frozenset(("random.shuffle", "numpy.random.shuffle"))
FILLS = frozenset(("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_", "geometric_"))
REFILLS = FILLS | {"copy_", "resize_", "resize_as_"}  # what leaves nothing of a tensor's old values, or of its shape
_SPLITS = frozenset(("sklearn.model_selection.train_test_split", "sklearn.utils.shuffle", "sklearn.utils.resample"))
_RANDOM = frozenset(
    """
        torch.rand torch.randn torch.randint torch.randperm torch.normal torch.bernoulli torch.multinomial torch.rand_like
        torch.randn_like torch.randint_like torch.poisson
    """.split()
)


def mixed(args: Sequence[Value], keywords: dict[str, Value]) -> Value:
    """What an unknown function gives: nothing known, from everything that went in."""
    parts = [*args, *keywords.values()]
    flat = _flat(parts)
    return Value(frozenset(), origins_of(flat), tensors.any_function(flat))


def _flat(parts: Sequence[Value]) -> list[Value]:
    out = []
    for p in parts:
        out.append(p)
        for obj in p.objs:
            if isinstance(obj, Tup):
                out += obj.items
    return out


def gradient_of(value: Value) -> Value:
    """A gradient of what was computed from a batch: of this rank's rows, and of an average over them."""
    return Value(frozenset(), without_graph(value).origins, "other" if value.of_kind("batch") else None)


def without_graph(value: Value) -> Value:
    """The value cut off from the autograd graph."""
    return Value(value.objs, frozenset(o for o in value.origins if o.kind not in ("forward", "graded")), value.scale, value.shape)


def bare(path: str) -> bool:
    """Whether a library's class is a module without parameters of its own, or no module at all."""
    if (
        path in CONTAINERS
        or path == "torch.nn.Module"
        or path in COLLECTIONS
        or path.startswith(("torch.device", "argparse.", "logging", "math."))
    ):
        return True
    return _is_layer(path) and not has_parameters(path)


def has_parameters(path: str) -> bool:
    """Whether a class of torch is a parameter, or a layer that has some."""
    return _is_layer(path) and path.rpartition(".")[2].startswith(_LAYERS)


def _is_layer(path: str) -> bool:
    place, _, name = path.rpartition(".")
    return (place == "torch.nn" or place.startswith("torch.nn.modules.")) and name.lstrip("_")[:1].isupper()


def clips(path: str) -> bool:
    """Whether a function, by its path or name, clips gradients or measures them for that."""
    return path.startswith(_CLIPS) or "clip_grad" in path


def output_of(base: Value, loss: bool) -> Value:
    """One part of what a classifier of the transformers library returns: its loss, an average over the batch, or another."""
    if not base.of_kind("labelled"):
        return Value(frozenset(), base.origins, base.scale, base.shape)
    return Value(frozenset(), frozenset(o for o in base.origins if o.kind != "labelled"), "mean" if loss else base.scale, base.shape)


def detector_losses(run: Interpreter, obj: New, call: Call, given: int, flow: Value) -> Value | None:
    """What a detector of torchvision 0.2x gives for images and targets: averages over as many proposals, or objects, of each image."""
    package, _, name = obj.path.rpartition(".")
    averaged = name.lower().startswith(("fasterrcnn", "retinanet"))
    if not package.startswith("torchvision.models") or not averaged or given < 2:
        return None
    losses = run.objects.new("dict", call.node, run.stack)
    run.memory[losses, "[]"] = Value(frozenset(), flow.origins, "mean", Shape(None, 0))
    return Value(frozenset((losses,)), flow.origins)


def averages(path: str) -> bool:
    """Whether a library's model, given labels, returns the plain average of its losses over the batch, whatever the labels are."""
    return path.startswith("transformers.") and any(f"For{task}Classification" in path for task in ("Sequence", "Image", "Audio"))


def tensor_attribute(base: Value, name: str) -> Value:
    """An attribute of something that is no known object, most often a tensor."""
    value = output_of(base, name == "loss")
    if name in ("device", "dtype", "ndim", "is_cuda", "requires_grad", "layout"):
        return NOTHING
    if name == "data" and value.shape is not None and value.shape.packed:
        return Value(value.objs, value.origins, "chosen", value.shape.steps())
    if name in ("data", "grad"):
        return without_graph(value)
    return value


def call_tensor(run: Interpreter, call: Call, args: list[Value], keywords: dict[str, Value], no_grad: bool) -> Value:
    """A method of a tensor, or an unknown function."""
    name = call.method
    receiver = call.now
    flow = mixed([receiver, *args], keywords)
    if name == "repeat":
        flow = Value(flow.objs, flow.origins | uniform.repeats(name, call.node, [receiver, *args]), flow.scale, flow.shape)
    if name in ("copy_", "resize_as_", "resize_") and args and not receiver.of_kind("parameters") and not receiver.of_kind("weight"):
        return _refilled(name, receiver, args)
    if name in FILLS:
        return Value(frozenset(), flow.origins | _drawn("torch", call.node), receiver.scale or flow.scale, flow.shape)
    if receiver.scale is None and flow.scale is None and name in _SIZING and any(_is_number(a) for a in _flat(args)):
        flow = Value(flow.objs, flow.origins | {Origin("sized", call.node)})
        if receiver.shape is None:
            return flow
    if name == "register_hook" and args:
        run.hooked([args[0]], call.node, [gradient_of(receiver)])
    known = receiver.shape is not None or (name in ("repeat", "expand", "tile") and flow.scale == "count")
    if not receiver.origins and not receiver.scale and not known:
        return flow
    if name in ("split", "chunk") and (cut := in_parts(run, call.node, receiver, args, keywords)) is not None:
        return cut
    if name == "requires_grad_" and not receiver.of_kind("batch") and not receiver.of_kind("parameters"):
        return receiver if args else receiver | weight(run, call.node)
    if name in ("size", "numel", "nelement") and (how := run.timed(receiver)):
        along = name == "size" and len(args) == 1 and _is_index(args[0], 0 if how == "columns" else 1)
        return agreed(Value(frozenset(), flow.origins)) if along else Value(frozenset(), flow.origins, "other")
    if name == "size":
        if args or keywords:
            value = tensors.length(run, receiver, args[0] if args else keywords.get("dim", NOTHING), call.node)
        else:
            value = tensors.attribute(run, receiver, "shape", call.node) or NOTHING
        return agreed(value) if value.scale is None else value  # a length that is no batch's
    if name in ("dim", "ndimension", "element_size", "data_ptr", "get_device", "stride"):
        return agreed(Value(frozenset(), flow.origins))
    if name in tensors.INTO_CELLS and receiver.scale is None and flow.scale in ("sample", "chosen"):
        return Value(frozenset(), flow.origins, "other")  # the cells are no samples
    if receiver.scale is None and receiver.shape is None and name not in tensors.KNOWN:
        return flow
    return tensors.function(run, name, call.node, [receiver, *args], keywords, flow.origins)


def allocates(path: str) -> bool:
    """Whether a function of torch makes a tensor of the shape that it is given."""
    root, _, last = path.rpartition(".")
    return root in ("torch", "torch.cuda") and last in ("empty", "zeros", "ones", "Tensor", "FloatTensor", "DoubleTensor", "HalfTensor")


def _refilled(name: str, tensor: Value, args: list[Value]) -> Value:
    """A tensor that takes another one's rows (`copy_`) or shape, as do inputs that are made once and filled anew for each batch."""
    if name == "copy_":
        return Value(frozenset(), args[0].origins, args[0].scale, args[0].shape)
    scales_ = {v.scale for v in _flat(args)}
    scale = "sample" if scales_ & {"sample", "count"} else tensor.scale
    return Value(frozenset(), tensor.origins | origins_of(args), scale)


def in_parts(run: Interpreter, node: ast.AST, value: Value, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    """A batch that is cut into parts of its rows: all of them together, or one after another where something goes through them."""
    lengths = args[0] if args else keywords.get("split_size", keywords.get("split_size_or_sections", keywords.get("chunks", NOTHING)))
    along = args[1] if len(args) > 1 else keywords.get("dim", NOTHING)
    listed = any(isinstance(o, Tup) or (isinstance(o, New) and o.path in COLLECTIONS) for o in lengths.objs)
    if value.scale != "sample" or value.objs or not value.of_kind("batch") or listed or (along.objs and not _is_index(along, 0)):
        return None
    made = run.objects.new(PARTS, node, run.stack)
    run.memory[made, "[]"] = Value(frozenset(), value.origins | {Origin("part", node)}, "sample")
    run.memory[made, "whole"] = value
    return Value(frozenset((made,)), value.origins, "sample")


def _is_number(value: Value) -> bool:
    """Whether a value may be a setting or a number above one, or is computed from such."""
    numbers = any(isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1) for o in value.objs)
    return numbers or bool(value.of_kind("from"))


def _is_index(value: Value, index: int) -> bool:
    return any(isinstance(o, Lit) and type(o.value) is int and o.value == index for o in value.objs)


def construction(name: str, args: list[Value], keywords: dict[str, Value]) -> tuple[list[Value], dict[str, Value]]:
    """What a class is constructed with by `from_pretrained(path, *args, config=config)` or `from_config(config)`."""
    if name != "from_pretrained":
        return args, keywords
    return [keywords.get("config", NOTHING), *args[1:]], {k: v for k, v in keywords.items() if k != "config"}


def construct(run: Interpreter, made: New, args: list[Value], keywords: dict[str, Value]) -> None:
    """Let an instance hold what its library constructor was given."""
    if made.cls is not None and run.is_a(made, *DICTS):
        for value in args:
            run.update(made, value)
        for name, value in keywords.items():
            if name != "**":
                run.memory[made, name] = value
                run.keys.setdefault(made, set()).add(name)
                run.set_attribute(made, "[]", value, False)
    elif run.is_a(made, DATALOADER):
        for i, name in enumerate(_LOADER_ARGUMENTS):
            if name in keywords or i < len(args):
                given = keywords.get(name, args[i] if i < len(args) else NOTHING)
                run.memory[made, name] = run.memory.get((made, name), NOTHING) | given if name == "dataset" else given
    elif made.path in HOLDERS:
        for value in args:
            run.update(made, value)
            if not value.objs and made.path in DICTS:  # a batch that is a dict
                run.memory[made, "[?]"] = run.memory.get((made, "[?]"), NOTHING) | value
        for name, value in keywords.items():
            if name != "**":
                run.memory[made, name] = value
                run.keys.setdefault(made, set()).add(name)
                if made.path in DICTS:
                    run.set_attribute(made, "[]", value, False)
    elif made.path == named.TUPLE:
        named.declare_tuple(run, made, keywords.get("field_names", args[1] if len(args) > 1 else NOTHING))
    elif made.path == DISTRIBUTED_SAMPLER:
        run.memory[made, "shuffle"] = keywords.get("shuffle", just(Lit(True)))
    elif made.path == "torch.utils.data.BatchSampler":
        for i, name in enumerate(("sampler", "batch_size", "drop_last")):
            if name in keywords or i < len(args):
                run.memory[made, name] = keywords.get(name, args[i] if i < len(args) else NOTHING)
    elif made.path.startswith("torch.optim.lr_scheduler.") and args:
        run.memory[made, "optimizer"] = args[0]
    elif is_optimizer(run, made):
        params = keywords.get("params", args[0] if args else NOTHING)
        run.memory[made, "params"] = params
    elif made.path in COPIES and args:
        run.memory[made, ORIGINAL] = args[0]
    elif made.path in WRAPPERS:
        inner = keywords.get("module", args[0] if args else NOTHING)
        run.memory[made, "module"] = Value(inner.objs - {made}, inner.origins)
    elif made.path in CONTAINERS:
        listed = [o for a in args[:1] for o in a.instances() if o.path in COLLECTIONS]
        whole = made.path == SEQUENTIAL and not listed
        items = args if whole else [run.element(a) if a.objs and not listed else NOTHING for a in args]
        run.memory[made, "[]"] = join([*items, *(run.memory.get((o, "[]"), NOTHING) for o in listed)])
        parts = {str(i): item for i, item in enumerate(args)} if whole else {}
        for given in args if not whole else ():
            parts |= {n: v for o in given.instances() for n, v in run.memory.of(o) if not n.startswith("[") and n != "iterable"}
        for name, item in parts.items():
            run.memory[made, name] = item
    elif made.path.startswith("torch.nn."):
        for i, value in enumerate(args[:1]):
            if made.path.rpartition(".")[2] in ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss") and i == 0:
                run.memory[made, "weight"] = value
        tensors.set_up(run, made, args, keywords)
        for name in ("weight", "ignore_index", "pos_weight", "reduction", "size_average", "reduce", "label_smoothing"):
            if name in keywords and not _is(keywords[name], None):
                run.memory[made, name] = keywords[name]
        if _is(keywords.get("size_average", NOTHING), False) or ("Loss" in made.path and any(_is(a, False) for a in args[:2])):
            run.memory[made, "reduction"] = just(Lit("sum"))
        if _is(keywords.get("reduce", NOTHING), False):
            run.memory[made, "reduction"] = just(Lit("none"))
    elif made.path == "torch.utils.data.TensorDataset" or made.path.startswith("einops.layers.torch."):
        tensors.set_up(run, made, args, keywords)
    elif made.path in ("torch.utils.data.Subset", "torch.utils.data.ConcatDataset") and args:
        run.memory[made, "dataset"] = args[0]


def _is(value: Value, what: object) -> bool:
    return any(isinstance(o, Lit) and o.value is what for o in value.objs)


def is_optimizer(run: Interpreter, obj: object) -> bool:
    """Whether an object is a torch optimizer or of a class derived from one."""
    if not isinstance(obj, New):
        return False
    paths = [obj.path, *(run.library_bases(obj.cls) if obj.cls is not None else ())]
    return any(optimizer_path(p) for p in paths)


def optimizer_path(path: str) -> bool:
    """Whether a library class is an optimizer, by where it lives and by its name."""
    name = path.rpartition(".")[2]
    if path.startswith("torch.optim."):
        return not path.startswith(("torch.optim.lr_scheduler.", "torch.optim.swa_utils.")) and (name == "*" or name[:1].isupper())
    return path.startswith(
        (
            "transformers.",
            "apex.optimizers.",
            "timm.optim",
            "torch_optimizer.",
            "bitsandbytes.optim",
            "pytorch_transformers.",
            "pytorch_pretrained_bert.",
        )
    ) and name.endswith(("Adam", "AdamW", "SGD", "LAMB", "Lamb", "Adafactor", "AdamW8bit"))


def weight(run: Interpreter, node: ast.AST, origins: frozenset[Origin] = frozenset(), shape: Shape | None = None) -> Value:
    """A tensor that gradients are computed for."""
    made = run.objects.new("torch.nn.Parameter", node, run.stack)
    return Value(frozenset((made,)), origins | {Origin("weight", made)}, None, shape)


def _drawn(root: str, node: ast.AST) -> set[Origin]:
    """Where a random number comes from: the library whose generator gives it, and the call that draws it."""
    return {Origin("random", root), Origin("drawn", node)}


def _shuffled(run: Interpreter, event: Call, value: Value, drawn: frozenset[Origin]) -> None:
    """What is shuffled in place is in an order that was drawn."""
    target = event.node.args[0] if event.node.args else None
    if isinstance(target, (ast.Name, ast.Attribute)):
        run.assign(target, Value(value.objs, value.origins | drawn, value.scale, value.shape))


def call(run: Interpreter, event: Call, path: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Call a library's function or class by its canonical path."""
    node = event.node
    root, _, last = path.partition(".")[0], "", path.rpartition(".")[2]
    if path in RANK_CALLS:
        return Value(frozenset(), frozenset((Origin(RANK_CALLS[path]),)))
    if path in ("os.environ.get", "os.getenv") and args:
        kind = ENVIRONMENT.get(str(next((o.value for o in args[0].objs if isinstance(o, Lit)), "")))
        return Value(frozenset(), frozenset((Origin(kind),)) if kind else frozenset())
    if path in AGREEING:
        _agreed(run, event)
        return NOTHING
    if path == "torch.distributed.all_gather":
        _gathered(run, event, args)
        return NOTHING
    if path in _BUILTIN:
        return _BUILTIN[path](run, event, args, keywords)
    driven = drivers.call(run, event, path, args, keywords)
    if driven is not None:
        return driven
    if path in _IMPORTS and args:
        own = path == "__import__"
        package = keywords.get("package", args[1] if len(args) > 1 and not own else NOTHING)
        found = named.imported(run, args[0], package, own and "fromlist" not in keywords and len(args) < 4)
        if found is not None:
            return found
    if path in ("hydra.utils.instantiate", "hydra.utils.call"):
        built = named.instantiated(run, event, args, keywords)
        if built is not None:
            return built
    if path in _FROM_FILES and (place := keywords.get("location", args[1] if len(args) > 1 else args[0] if args else NOTHING)).objs:
        found = named.from_file(run, place)
        if found is not None:
            return found
    if path == "importlib.util.module_from_spec" and args and any(isinstance(o, Module) for o in args[0].objs):
        return args[0]
    if path == "eval":
        value = named.evaluated(run, event)
        if value is not None:
            return value
    if path.startswith("apex.amp."):
        return _apex_amp(run, event, path, args, keywords)
    if path in _SAME_MODEL or path.startswith(_SAME_LAYER):
        return keywords.get("module", args[0] if args else NOTHING)
    if path in ("set", "frozenset"):
        made = run.objects.new("set", node, run.stack)
        held = run.element(args[0]) if args else NOTHING
        run.memory[made, "[]"] = Value(held.objs, held.origins | {Origin("unordered", node)}, held.scale, held.shape)
        return just(made)
    if path in _PASSING:
        made = run.objects.new("list" if path in ("list", "tuple", "sorted") else path, node, run.stack)
        inner = args[0] if args else keywords.get("iterable", NOTHING)
        if path in ("list", "tuple") and not inner.objs and inner.scale == "sample":
            return inner
        if path == "tqdm.trange":
            inner = just(run.objects.new("range", node, run.stack))
        run.memory[made, "iterable"] = inner
        return Value(frozenset((made,)), inner.origins if not inner.objs else frozenset())
    if path in ("itertools.chain", "itertools.chain.from_iterable"):
        made = run.objects.new(path, node, run.stack)
        parts = [run.element(a) for a in args] if path.endswith("from_iterable") else args
        run.memory[made, "iterable"] = join(parts)
        return Value(frozenset((made,)), origins_of(p for p in parts if not p.objs))
    if path in ("torch.split", "torch.chunk") and args:
        cut = in_parts(run, node, args[0], args[1:], keywords)
        if cut is not None:
            return cut
    if path in (DATAPARALLEL,) and run.ignore_dp:
        return keywords.get("module", args[0] if args else NOTHING)
    if path == "torch.nn.parallel.data_parallel" and args:
        return run.invoke(event, args[0], args[1:2], {})
    if path in ("torch.autograd.Variable", "torch.nn.Parameter", "torch.as_tensor", "torch.compile", *_SCRIPTS):
        value = args[0] if args else NOTHING
        if path == "torch.nn.Parameter":
            return weight(run, node, value.origins, value.shape if value.scale is None else None)
        if path == "torch.autograd.Variable" and not value.of_kind("batch") and _is(keywords.get("requires_grad", NOTHING), True):
            return weight(run, node, value.origins)
        return value | Value(frozenset(), mixed(args[1:], keywords).origins)
    if path in _CLOCKS or path.endswith((".now", ".today", ".utcnow")):
        return Value(frozenset(), frozenset((Origin("time", node),)))
    if path in AUTOCASTS:
        return just(run.objects.new(path, node, run.stack))
    if path in NO_GRAD or path in ("torch.enable_grad", "torch.set_grad_enabled"):
        made = run.objects.new(path, node, run.stack)
        run.memory[made, "mode"] = args[0] if path == "torch.set_grad_enabled" and args else NOTHING
        return just(made)
    if last in _FACTORIES and root in ("torch", "numpy", "np", "random"):
        drawn = path in _RANDOM or path.startswith(("random.", "numpy.random."))
        origins = mixed(args, keywords).origins | {Origin("sized", node)} | (_drawn(root, node) if drawn else set())
        tensor = tensors.made(run, last, node, args, keywords, origins)
        return weight(run, node, shape=tensor.shape) if _is(keywords.get("requires_grad", NOTHING), True) else tensor
    if path in ("os.listdir", "glob.glob", "os.scandir", "os.walk", "glob.iglob"):
        return Value(frozenset(), mixed(args, keywords).origins | {Origin("listing", node)})
    if path in _RANDOM or path in _DRAWN or path.startswith(("random.", "numpy.random.")):
        if path in SHUFFLES and args:
            _shuffled(run, event, args[0], frozenset(_drawn(root, node)))
        return Value(frozenset(), mixed(args, keywords).origins | _drawn(root, node), tensors.any_function(args))
    if path == "torch.autograd.grad":
        flow = mixed(args, keywords)
        through = frozenset(Origin("graded", o.of) if o.kind == "forward" else o for o in flow.origins)
        of, by = tensors.differentiated(run, args, keywords)
        scale: Scale | None = "sample" if of.scale == "sum" and by.scale == "sample" and len(args) < 3 else flow.scale
        shape = by.shape if by.shape is not None and not by.objs else Shape(node)
        return Value(frozenset(), through, scale, shape._replace(several=True) if scale else None)
    distribution = path.startswith("torch.distributions.") and last in rows.DISTRIBUTIONS and mixed(args, keywords).scale is not None
    if (
        distribution
        or path.startswith("torch.nn.functional.")
        or (
            root == "torch"
            and last[:1].islower()
            and path not in ("torch.load", "torch.device")
            and not path.startswith(("torch.utils.", "torch.hub", "torch.optim", "torch.cuda", "torch.backends"))
        )
    ):
        flow = mixed(args, keywords)
        particular = rows.FUNCTIONAL if path.startswith("torch.nn.functional.") else rows.DISTRIBUTIONS if distribution else {}
        return tensors.function(run, last, node, args, keywords, flow.origins, particular)
    if path.startswith("einops.") and last in rows.EINOPS:
        return tensors.function(run, last, node, args, keywords, mixed(args, keywords).origins, rows.EINOPS)
    if root == "numpy" and last in tensors.KNOWN and args and not args[0].objs:
        return tensors.function(run, last, node, args, keywords, mixed(args, keywords).origins)
    if path in (
        "min",
        "max",
        "any",
        "all",
        "pow",
        "divmod",
        "print",
        "input",
        "open",
        "repr",
        "format",
        "dir",
        "locals",
        "chr",
        "ord",
    ):
        return mixed(args, keywords) if path != "open" else Value(frozenset((run.objects.new("open", node, run.stack),)))
    saved = run.deciding
    if path.startswith(sources.ASYNCHRONOUS):
        run.deciding |= {Origin("process", path)}
    for value in (*args, *keywords.values()):  # a callback: run it, whatever it will be given
        for obj in value.objs:
            if isinstance(obj, Func) and not path.startswith(("torch.utils.data", *_DESCRIBES)):
                run.call_function(obj, node, [], {})
    run.deciding = saved
    if (
        root in _PURE
        and last[:1].islower()
        and path not in ("torch.load", "torch.device", "copy.deepcopy", "copy.copy", "json.load", "json.loads")
        and not path.startswith(("torch.hub", "torch.utils.data", "torch.optim"))
    ):
        flow = mixed(args, keywords)
        chosen = _drawn("numpy", node) if path in _SPLITS and not keywords.keys() & {"random_state"} else set[Origin]()
        return Value(flow.objs, flow.origins | chosen, flow.scale, flow.shape)
    made = run.objects.new(path, node, run.stack)
    construct(run, made, args, keywords)
    flow = mixed(args, keywords)
    chosen = _drawn("torch", node) if path == "torch.utils.data.random_split" and "generator" not in keywords else set[Origin]()
    return Value(
        frozenset((made,)),
        frozenset(o for o in flow.origins if o.kind in ("batch", "forward", "state", "random", "drawn")) | chosen,
        flow.scale if flow.scale == "sample" else None,
    )


def call_method(run: Interpreter, event: Call, method: Method, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Call a method of a library's object, or one that an object of the project inherits from a library."""
    obj, name = method.of, method.name
    flow = mixed([*args], keywords)
    if isinstance(obj, Lit):
        return call_tensor(run, event, args, keywords, run.no_grad > 0) if event.now.scale or event.now.origins else flow
    if name == "__init__" and isinstance(obj, New):
        construct(run, obj, args, keywords)
        return NOTHING
    if name in ("__call__", "forward") and isinstance(obj, (New, Part)) and not (isinstance(obj, New) and obj.cls is not None):
        return run.invoke(event, just(obj), args, keywords)
    known = run.is_a(obj, *(DICTS if getattr(obj, "cls", None) is not None else ATTRIBUTE_DICTS)) and (
        name != "get" or not args or not _texts_of(args[0])
    )
    if isinstance(obj, New) and (known or obj.path in COLLECTIONS or (obj.path in CONTAINERS and name in ("append", "extend", "insert"))):
        return _collection(run, event, obj, name, args, keywords)
    if name == "scale" and isinstance(obj, New) and obj.path.endswith("GradScaler") and args:
        return Value(args[0].objs, args[0].origins | {Origin("scaled", obj)}, args[0].scale, args[0].shape)
    if name in SAME_METHODS or (name == "manual_seed" and isinstance(obj, New) and obj.path == "torch.Generator"):
        return Value(frozenset((obj,)), event.now.origins, event.now.scale, event.now.shape)
    if name in PARAMETER_METHODS:
        held = frozenset(o for o in _parts(run, obj)) if name in ("children", "modules") else frozenset()
        return Value(held, frozenset((Origin("parameters", obj),)))
    part = [*args, *(keywords[k] for k in ("name", "module", "param") if k in keywords)]
    if name in ("add_module", "register_module", "register_parameter") and len(part) == 2:
        names = [str(o.value) for o in part[0].objs if isinstance(o, Lit)]
        for at in names:
            run.set_attribute(obj, at, part[1], True)
        if not names or run.is_a(obj, *CONTAINERS):  # what holds its parts by name runs over them, too
            run.set_attribute(obj, "[]", part[1], False)
        return NOTHING
    if name == "state_dict":
        return Value(frozenset(), frozenset((Origin("state", obj),)))
    if isinstance(obj, New) and obj.path.endswith("ArgumentParser"):
        if name == "parse_args":
            return just(run.objects.new("argparse.Namespace", event.node, ()))
        if name == "parse_known_args":
            return just(Tup((just(run.objects.new("argparse.Namespace", event.node, ())), NOTHING)))
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers"):
            return just(obj)
    if name in ("__next__", "next") and isinstance(obj, New):
        return run.element(just(obj))
    if isinstance(obj, Part) and obj.name == named.SPACE:
        return named.call_space(run, event, obj, name, args, keywords)
    if name in _ASKS and isinstance(obj, (New, Part)) and args and not event.now.origins and (keys := _texts_of(args[0])):
        return _setting(run, obj, name, keys, args, keywords)
    if name in MODULE_HOOKS and args and isinstance(obj, (New, Part)):
        run.hooks.setdefault(obj, {})[event.node] = (name, args[0])
        run.memory.doubt()
    if isinstance(obj, New) and obj.path == "torch.nn.Parameter" and name in tensors.KNOWN:
        given = mixed(args, keywords).origins
        return tensors.function(run, name, event.node, [Value(frozenset(), event.now.origins), *args], keywords, event.now.origins | given)
    if isinstance(obj, Part) and event.now.scale is not None and event.now.shape is not None and name in tensors.KNOWN:
        return call_tensor(run, event, args, keywords, run.no_grad > 0)
    for value in (*args, *keywords.values()):
        for f in value.objs:
            if isinstance(f, Func) and f.node not in run.commands:
                run.call_function(f, event.node, [], {})
    whole = mixed([*args], keywords)
    if isinstance(obj, New) and obj.cls is None and obj.path and whole.of_kind("batch") and not obj.path.startswith(_KNOWN):
        run.set_attribute(obj, GIVEN, Value(frozenset(), whole.origins, "other"), False)
    return Value(frozenset(), flow.origins | event.now.origins | {Origin("method", (obj, name))}, flow.scale, flow.shape)


def _texts_of(value: Value) -> list[str]:
    return [o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, str)]


def _setting(run: Interpreter, obj: New | Part, name: str, keys: list[str], args: list[Value], keywords: dict[str, Value]) -> Value:
    """`cfg.get("batch_size", 4)`, `config.getint("train", "batch_size")`: what a configuration says, as an attribute of it would."""
    within = _texts_of(args[1]) if len(args) > 1 and isinstance(obj, New) and obj.path.startswith("configparser.") else []
    held = [run.attribute(just(obj), key) for key in keys]
    if within:
        held = [just(run.objects.part(run.objects.part(obj, key), inner)) for key in keys for inner in within]
    held = [Value(frozenset(o for o in v.objs if not isinstance(o, Method)), v.origins, v.scale, v.shape) for v in held]
    return join([*held, *(args[1:2] if not within else ()), *(v for k, v in keywords.items() if k in ("default", "fallback"))])


def _apex_amp(run: Interpreter, event: Call, path: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A function of apex.amp: models and optimizers come back as they went in, a loss comes back scaled."""
    if path == INITIALIZE:
        models, optimizers = (keywords.get(n, args[i] if i < len(args) else NOTHING) for i, n in enumerate(("models", "optimizers")))
        return just(Tup((models, optimizers))) if optimizers.objs else models
    if path == SCALE_LOSS:
        loss = keywords.get("loss", args[0] if args else NOTHING)
        scaler = run.objects.new(path, event.node, run.stack)
        return Value(loss.objs, loss.origins | {Origin("scaled", scaler)}, loss.scale, loss.shape)
    if path == MASTER_PARAMS:
        moved = [o for value in args[:1] for o in value.instances()]
        return join([run.memory.get((o, "params"), NOTHING) for o in moved])
    if path.endswith(("_function", "register_float_function", "register_half_function")):
        return args[0] if args else NOTHING
    return NOTHING


def _parts(run: Interpreter, obj: Obj) -> list[Obj]:
    return [o for _, held in run.memory.of(obj) for o in held.objs if isinstance(o, New)]


def _collection(run: Interpreter, event: Call, obj: New, name: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    element = (obj, "[]")
    if name in ("append", "add", "appendleft", "extend", "insert", "setdefault"):
        if args:
            value = run.element(args[0]) if name == "extend" else args[-1]
            run.set_attribute(obj, "[?]", value, False)
            if name in ("append", "insert", "extend") and any(_is_model(run, o) for o in value.objs):
                _place_model(run, obj, value, name == "append")
            run.set_attribute(obj, "[]", value, False)
        return run.memory.get(element, NOTHING) if name == "setdefault" else NOTHING
    if name == "update":
        for a in args:
            run.update(obj, a)
        for key, value in keywords.items():
            run.set_attribute(obj, key, value, True)
        return NOTHING
    if name in ("copy",):
        return just(obj)
    if name == "keys":
        return _listed(run, event, run.element(just(obj)))
    whole = join([v for _, v in run.memory.of(obj)])
    if name == "items":
        return _listed(run, event, just(Tup((run.element(just(obj)), whole))))
    if name == "values":
        return _listed(run, event, whole)
    if name in ("get", "pop", "popleft", "popitem"):
        keys = [str(o.value) for o in args[0].objs if isinstance(o, Lit)] if args else []
        held = [run.memory[obj, k] for k in keys if (obj, k) in run.memory]
        return join(held + args[1:]) if held else whole | join(args[1:])
    return Value(frozenset(), mixed(args, keywords).origins)


def _listed(run: Interpreter, event: Call, element: Value) -> Value:
    """The list that a method of a dict gives, which is one for all dicts that it may be called on."""
    made = run.objects.new("list", event.node, run.stack)
    run.set_attribute(made, "[]", element, len(event.now.objs) < 2)
    return just(made)


def _place_model(run: Interpreter, obj: New, value: Value, last: bool) -> None:
    """A network put into a list: known by its place at the end, as long as it is sure how many there are before it."""
    places = {name for name, _ in run.memory.of(obj) if name.isdigit()}
    sure = last and not run.loops and all(is_main_test(test) for test, _ in run.tests)
    if sure and (obj, "[many]") not in run.memory and (places or not run.memory.get((obj, "[]"), NOTHING).objs):
        run.memory[obj, str(len(places))] = value
    else:
        run.memory[obj, "[many]"] = NOTHING
    if last:
        run.memory[obj, "-1"] = value
    for name in places if not last else ():
        run.set_attribute(obj, name, run.memory.get((obj, "[]"), NOTHING), False)


def _enumerate(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    made = run.objects.new("enumerate", event.node, run.stack)
    run.memory[made, "iterable"] = args[0] if args else NOTHING
    return just(made)


def _zip(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    made = run.objects.new("zip", event.node, run.stack)
    for i, a in enumerate(args):
        run.memory[made, str(i)] = a
    return just(made)


def _range(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    made, flow = run.objects.new("range", event.node, run.stack), mixed(args, keywords)
    if flow.scale is not None:
        run.memory[made, tensors.ENDS] = Value(frozenset(), flow.origins, flow.scale)
    return Value(frozenset((made,)), flow.origins)


def _next(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    if not args:
        return NOTHING
    own = [run.invoke_named(o, "__next__", event.node) for o in args[0].instances() if o.cls is not None]
    rest = Value(
        frozenset(o for o in args[0].objs if not (isinstance(o, New) and o.cls is not None)), args[0].origins, args[0].scale, args[0].shape
    )
    found = [v for v in own if v is not None]
    return join([*found, run.element(rest)]) if found and rest.objs else join(found) if found else run.element(args[0])


def _len(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    value = args[0] if args else NOTHING
    if PARTS in value.kinds():
        return Value(frozenset(), frozenset((Origin("agreed"),)))
    if run.timed(value) == "columns":
        return agreed(Value(frozenset(), value.origins))  # steps through time, as many on every rank
    if value.shape is not None and value.scale == "sample" and (value.shape.several or (value.shape.sure and value.shape.axis)):
        return agreed(Value(frozenset(), value.origins))
    if value.scale == "sample" and event.node.args and _in_parts(run, event.node.args[0]):
        return agreed(Value(frozenset(), value.origins))  # how many inputs and targets there are, not how many samples
    lengths = frozenset(Origin("length", o) for o in value.objs if isinstance(o, (New, Part)))
    told = frozenset(o for o in value.origins if o.kind not in ("random", "drawn"))  # what is in it was drawn, not how much there is
    chosen = bool(value.of_kind("decided")) and bool(value.objs)  # a list of some of the samples
    if value.scale == "chosen":
        return Value(frozenset(), told | lengths, "sum")
    entries = bool(value.objs) and (value.shape is None or value.shape.base not in value.objs)  # each of which is rows, and not one row
    return Value(
        frozenset(),
        told | lengths,
        "sum" if chosen and value.scale == "sample" else "count" if value.scale == "sample" and not entries else None,
    )


def _in_parts(run: Interpreter, node: ast.expr) -> bool:
    """Whether the function that is running takes a name apart: `x, y = batch`, or `batch[0]` and `batch[1]` of what a loop gives."""
    scope = run.frame.node
    if not isinstance(node, ast.Name) or scope is None:
        return False
    key = (f"parts of {node.id}", scope)
    if key not in run.project.memo:
        run.project.memo[key] = any(_takes_apart(n, node.id) for n in ast.walk(scope))
    return bool(run.project.memo[key])


def _takes_apart(node: ast.AST, name: str) -> bool:
    """Whether a statement takes a tuple apart, or is a loop that does so by `name[0]` and `name[1]`."""
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Name) and node.value.id == name and isinstance(node.targets[0], (ast.Tuple, ast.List))
    if not isinstance(node, ast.For):
        return False
    calls = [n for n in ast.walk(node.iter) if isinstance(n, ast.Call)]
    counted = isinstance(node.target, ast.Tuple) and any(last_name(call.func) == "enumerate" for call in calls)
    target = node.target.elts[-1] if counted and isinstance(node.target, ast.Tuple) else node.target
    if not isinstance(target, ast.Name) or target.id != name:
        return False
    taken = {
        n.slice.value
        for s in node.body
        for n in ast.walk(s)
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name and isinstance(n.slice, ast.Constant)
    }
    return len(taken) > 1 or any(isinstance(t, str) for t in taken)


def _keep(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    value = without_graph(args[0]) if args else NOTHING
    bends = event.method in ("int", "round", "abs") and value.scale == "mean"  # the mean of these is not this of the mean
    return Value(
        frozenset(o for o in value.objs if isinstance(o, (Lit, Part))), value.origins, "other" if bends else value.scale, value.shape
    )


def _sum(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    value = run.element(args[0]) if args else NOTHING
    origins = value.origins | (args[0].origins if args else frozenset())
    samples = bool(args) and args[0].scale == "sample" != value.scale and bool(args[0].objs)  # one entry a sample
    listed = [v for o in args[0].instances() if o.path == "list" for v in _written_out(run, o)] if len(args) == 1 else []
    if len({v.scale for v in listed}) > 1:
        added = listed[0]
        for item in listed[1:]:
            added = run.add(added, item, event.node)
        return Value(frozenset(), origins, added.scale, added.shape)
    return Value(frozenset(), origins, "sum" if samples else value.scale, value.shape)


def _written_out(run: Interpreter, made: New) -> list[Value]:
    """The entries of a list that was written out."""
    out: list[Value] = []
    while (made, str(len(out))) in run.memory:
        out.append(run.memory[made, str(len(out))])
    return out


def _getattr(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    if len(args) < 2:
        return NOTHING
    names = [o.value for o in args[1].objs if isinstance(o, Lit) and isinstance(o.value, str)]
    if names == ["module"] and len(args) == 3 and args[0].kinds() & WRAPPERS:  # a model, with its wrapper taken off if it has one
        inner = [run.memory.get((o, "module"), NOTHING) if isinstance(o, New) and o.path in WRAPPERS else just(o) for o in args[0].objs]
        return join(inner)
    if names:
        return join([run.attribute(args[0], n) for n in names] + args[2:])
    pattern = named.pattern(run, event.node.args[1])
    own = [o for o in args[0].instances() if o.cls is not None]
    if own:  # by a name that is not known: any of the modules that it holds, or a method
        inside = [v for o in own for n, v in run.memory.of(o) if named.like(n, pattern)]
        held = [v for v in inside if any(_is_model(run, o) for o in v.objs)]
        return join([*held, *(just(Pick(o, pattern)) for o in own if not held), *args[2:]])
    picked = [just(Pick(o, pattern)) for o in args[0].objs if isinstance(o, Module)]
    return join([*picked, *(just(Ext(canonical(f"{o.path}.*"))) for o in args[0].objs if isinstance(o, Ext)), *args[2:]])


def _vars(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    return named.space(run, args[0]) if args else NOTHING


def _globals(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    return named.space(run, just(Module(run.frame.file)))


def _is_model(run: Interpreter, obj: Obj) -> bool:
    return run.is_module(obj) or (isinstance(obj, New) and obj.path.startswith("torch.nn."))


def _setattr(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    if len(args) == 3:
        for obj in args[0].objs:
            for o in args[1].objs:
                if isinstance(o, Lit):
                    run.set_attribute(obj, str(o.value), args[2], len(args[0].objs) == len(args[1].objs) == 1)
            if not any(isinstance(o, Lit) for o in args[1].objs) and isinstance(obj, New) and not run.is_module(obj):
                named.unsettled(run, obj, args[2])
    return NOTHING


def _super(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    frame = run.frame
    return Value(frozenset(Super(o, frame.cls) for o in frame.owners)) if frame.cls is not None else NOTHING


def _dict(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value], path: str = "dict") -> Value:
    made = run.objects.new(path, event.node, run.stack)
    run.memory[made, "[]"] = join([v for k, v in keywords.items() if k != "**"])
    for a in args:
        run.update(made, a)
        pairs = [o.items for o in run.element(a).objs if isinstance(o, Tup) and len(o.items) == 2] if a.objs else []
        for key, value in pairs:  # dict(zip(names, losses)), OrderedDict([("first", layer)])
            for place in ("[]", *(_texts_of(key) or ("[?]",))):
                run.set_attribute(made, place, value, False)
        if not a.objs and a.origins:  # dict(model.named_parameters())
            for place in ("[]", "[?]"):
                run.set_attribute(made, place, a, False)
    for name, value in keywords.items():
        if name != "**":
            run.memory[made, name] = value
    return just(made)


def _ordered_dict(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    return _dict(run, event, args, keywords, "collections.OrderedDict")


def _default_dict(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    found = _dict(run, event, args[1:], keywords, "collections.defaultdict")
    if args and args[0].objs:
        for obj in found.objs:
            run.set_attribute(obj, "[]", run.invoke(event, args[0], [], {}), False)
    return found


def _map(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    made = run.objects.new("list", event.node, run.stack)
    run.memory[made, "[]"] = run.invoke(event, args[0], [run.element(a) for a in args[1:]], {}) if args else NOTHING
    return just(made)


def _filter(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    if len(args) < 2:
        return NOTHING
    for obj in args[0].objs:
        if isinstance(obj, Func):
            run.call_function(obj, event.node, [run.element(args[1])], {})
    return args[1]


def _partial(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    return named.partial(run, event.node, args[0], args[1:], keywords) if args else NOTHING


def agreed(value: Value, shares: frozenset[New] | None = None) -> Value:
    """The value when it is the same on every rank, as far as it comes from `shares` (None: from any loader)."""

    def own(origin: Origin) -> bool:
        if origin.kind in ("batch", "decided"):
            return shares is None or origin.of in shares
        return origin.kind in ("random", "drawn", "time", "listing", "kept", "process", "unknown")

    kept = frozenset(o for o in value.origins if not own(o))
    return Value(value.objs, kept if kept or not value.origins else frozenset((Origin("agreed"),)))


def whole(value: Value) -> Value:
    """All ranks' rows of what each rank has some of: the same on every rank, as is what is computed from them."""
    kept = agreed(value).origins - {Origin("agreed")}
    return Value(frozenset(), kept | frozenset(Origin("whole", o.of) for o in value.origins if o.kind == "batch"))


def _gathered(run: Interpreter, event: Call, args: list[Value]) -> None:
    """`all_gather(parts, rows)`: the list holds all ranks' rows from here on."""
    if len(args) < 2:
        return
    for parts in args[0].instances():
        for name, _ in run.memory.of(parts):
            run.memory[parts, name] = whole(args[1])
    if isinstance(event.node.args[0], ast.Name):
        run.bind(event.node.args[0].id, Value(args[0].objs, whole(args[1]).origins))


def _agreed(run: Interpreter, event: Call) -> None:
    """After a collective, what it was given is the same on every rank."""
    if event.node.args:
        target = event.node.args[0]
        if isinstance(target, ast.Name):
            value = run.lookup(target.id)
            run.bind(target.id, agreed(value))
            for obj in value.objs:
                for name, inner in run.memory.of(obj) if getattr(obj, "path", "") == "list" else ():
                    run.memory[obj, name] = agreed(inner)  # a list that is broadcast: what it holds


def _test(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    return NOTHING


_BUILTIN = {
    "enumerate": _enumerate,
    "zip": _zip,
    "range": _range,
    "xrange": _range,
    "next": _next,
    "len": _len,
    "sum": _sum,
    "float": _keep,
    "int": _keep,
    "round": _keep,
    "str": _keep,
    "bool": _keep,
    "abs": _keep,
    "getattr": _getattr,
    "vars": _vars,
    "globals": _globals,
    "setattr": _setattr,
    "super": _super,
    "dict": _dict,
    "collections.OrderedDict": _ordered_dict,
    "collections.defaultdict": _default_dict,
    "map": _map,
    "filter": _filter,
    "functools.partial": _partial,
    "isinstance": _test,
    "hasattr": _test,
    "torch.is_tensor": _test,
    "callable": _test,
    "issubclass": _test,
    "type": _test,
    "id": _test,
    "print": _test,
    "torch.manual_seed": _test,
}
