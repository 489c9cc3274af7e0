"""What a library's object keeps of what it is constructed with, by the path of its class.

A row names the arguments in their order: each that is given is kept under its name (`"dataset"`), where rules and the interpreter look for
it. Where there is more to it, the row is a function. A row holds for all classes of a package if it is the package's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ddpify.facts import named, tensors
from ddpify.facts.library import containers, paths
from ddpify.facts.library.flow import is_literal
from ddpify.facts.library.row import row_of
from ddpify.facts.model import NOTHING, Lit, New, Value, join, just

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter


class Construction(NamedTuple):
    """An object that is constructed, as an instance of the library's class `path`."""

    run: Interpreter
    obj: New
    path: str
    args: list[Value]
    keywords: dict[str, Value]

    def keep(self, name: str, value: Value) -> None:
        """Let the object hold a value."""
        self.run.memory[self.obj, name] = value

    def keep_settings(self) -> None:
        """Let the object hold all that it is given, as settings."""
        tensors.set_up(self.run, self.obj, self.args, self.keywords)


def _dict_of_settings(new: Construction) -> None:
    run, obj, of_dict = new.run, new.obj, new.path in paths.DICTS
    for value in new.args:
        run.update(obj, value)
        if not value.objs and of_dict:  # a batch that is a dict
            run.memory.add((obj, "[?]"), value)
    for name, value in new.keywords.items():
        if name != "**":
            new.keep(name, value)
            run.keys.setdefault(obj, set()).add(name)
            if of_dict:
                run.set_attribute(obj, "[]", value, False)


def _named_tuple(new: Construction) -> None:
    fields = new.keywords.get("field_names", new.args[1] if len(new.args) > 1 else NOTHING)
    named.declare_tuple(new.run, new.obj, fields)


def _wrapper(new: Construction) -> None:
    inner = new.keywords.get("module", new.args[0] if new.args else NOTHING)
    new.keep("module", Value(inner.objs - {new.obj}, inner.origins))


def _container(new: Construction) -> None:
    """Modules in a row: each under its number or its key, and any of them as an element."""
    run, args = new.run, new.args
    if new.path == "torch.nn.ModuleDict":
        new.keep("[]", NOTHING)
        for given in args:
            containers.put_in(run, new.obj, given)
        return
    collections = [o for a in args[:1] for o in a.instances() if o.path in paths.COLLECTIONS]
    if new.path == paths.SEQUENTIAL and not collections:  # Sequential(first, second)
        elements, parts = args, {str(i): item for i, item in enumerate(args)}
    else:
        elements = [] if collections else [run.element(a) for a in args if a.objs]
        parts = {n: v for a in args for o in a.instances() for n, v in run.memory.of(o) if not n.startswith("[") and n != "iterable"}
    new.keep("[]", join([*elements, *(run.memory.get((o, "[]"), NOTHING) for o in collections)]))
    for name, item in parts.items():
        new.keep(name, item)


_AVERAGED = ("size_average", "reduce", "reduction")
_BY_PLACE = {  # the settings of losses in the order in which they are taken
    **dict.fromkeys(("CrossEntropyLoss", "NLLLoss", "NLLLoss2d"), ("weight", "size_average", "ignore_index", "reduce", "reduction")),
    **dict.fromkeys(("BCELoss", "BCEWithLogitsLoss"), ("weight", *_AVERAGED)),
    **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "KLDivLoss", "SoftMarginLoss", "MultiLabelMarginLoss"), _AVERAGED),
    **dict.fromkeys(("MarginRankingLoss", "HingeEmbeddingLoss", "CosineEmbeddingLoss"), ("margin", *_AVERAGED)),
    "HuberLoss": ("reduction",),
    "MultiLabelSoftMarginLoss": ("weight", *_AVERAGED),
}
_OF_LOSSES = ("weight", "ignore_index", "pos_weight", "reduction", "size_average", "reduce", "label_smoothing")


def _layer(new: Construction) -> None:
    """A layer or a loss of torch: its settings, and how a loss averages."""
    name = new.path.rpartition(".")[2]
    given = {**dict(zip(_BY_PLACE.get(name, ()), new.args, strict=False)), **new.keywords}
    new.keep_settings()
    for setting in _OF_LOSSES:
        if setting in given and not given[setting].is_none():
            new.keep(setting, given[setting])
    if is_literal(given.get("size_average", NOTHING), False):
        new.keep("reduction", just(Lit("sum")))
    if is_literal(given.get("reduce", NOTHING), False):
        new.keep("reduction", just(Lit("none")))


def _image_loader(new: Construction) -> None:
    """`create_loader(dataset, input_size, batch_size, is_training)` of timm: in training, it shuffles and drops the last batch."""
    given = dict(zip(("dataset", "input_size", "batch_size", "is_training"), new.args, strict=False)) | new.keywords
    for name in ("dataset", "batch_size", "num_workers", "collate_fn"):
        new.keep(name, given.get(name, NOTHING))
    for name in ("shuffle", "drop_last"):
        new.keep(name, given.get("is_training", just(Lit(False))))
    if not is_literal(given.get("distributed", just(Lit(False))), False):
        sampler = new.run.objects.new(paths.DISTRIBUTED_SAMPLER, new.obj.node, new.obj.stack)
        new.run.memory[sampler, "shuffle"] = given.get("is_training", just(Lit(False)))
        new.keep("sampler", just(sampler))


_ROWS: dict[str, tuple[str, ...] | Callable[[Construction], None]] = {
    paths.DATALOADER: (
        *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last"),
        *("timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    ),
    paths.GRAPH_LOADER: (
        *("dataset", "batch_size", "shuffle", "follow_batch", "exclude_keys", "sampler", "batch_sampler", "num_workers", "pin_memory"),
        *("drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    ),
    paths.NODE_LOADER: (
        *("data", "num_neighbors", "input_nodes", "input_time", "replace", "subgraph_type", "disjoint", "temporal_strategy", "time_attr"),
        *("weight_attr", "transform", "transform_sampler_output", "is_sorted", "filter_per_worker", "neighbor_sampler", "directed"),
        *("batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "pin_memory", "drop_last"),
    ),
    paths.IMAGE_LOADER: _image_loader,
    "torch.utils.data.BatchSampler": ("sampler", "batch_size", "drop_last"),
    "torch.utils.data.Subset": ("dataset",),
    "torch.utils.data.ConcatDataset": ("dataset",),
    "torch.utils.data.TensorDataset": Construction.keep_settings,
    "torchvision.datasets": lambda new: new.keep("transform", new.keywords.get("transform", NOTHING)),
    paths.DISTRIBUTED_SAMPLER: lambda new: new.keep("shuffle", new.keywords.get("shuffle", just(Lit(True)))),
    "torch.optim.lr_scheduler": ("optimizer",),
    "torch.nn": _layer,
    **dict.fromkeys((*paths.CONTAINERS, "torchmetrics.MetricCollection", "torchmetrics.collections.MetricCollection"), _container),
    **dict.fromkeys(paths.WRAPPERS, _wrapper),
    **dict.fromkeys(paths.COPIES, (paths.ORIGINAL,)),
    "einops.layers.torch": Construction.keep_settings,
    **dict.fromkeys(paths.HOLDERS | paths.DICTS, _dict_of_settings),
    named.TUPLE: _named_tuple,
}
_OPTIMIZER = ("params",)
_DERIVED = (
    paths.DICTS | paths.CONTAINERS | {paths.DATALOADER}
)  # classes of the project that derive from these, or from an optimizer, are constructed alike

# How the optimizers of a package are called, by how their names end ("": all of its classes); no row: it has none.
_NAMES = ("Adam", "AdamW", "SGD", "LAMB", "Lamb", "Adafactor", "AdamW8bit")
_OPTIMIZERS: dict[str, tuple[str, ...]] = {
    "torch.optim": ("",),
    "torch.optim.lr_scheduler": (),
    "torch.optim.swa_utils": (),
    **dict.fromkeys(("transformers", "pytorch_transformers", "pytorch_pretrained_bert"), _NAMES),
    **dict.fromkeys(("apex.optimizers", "timm.optim", "torch_optimizer", "bitsandbytes.optim"), _NAMES),
}


def optimizer_path(path: str) -> bool:
    """Whether a library class is an optimizer, by where it lives and by its name."""
    name = path.rpartition(".")[2]
    return (name == "*" or name[:1].isupper()) and name.endswith(row_of(_OPTIMIZERS, path) or ())


def is_optimizer(run: Interpreter, obj: object) -> bool:
    """Whether an object is a torch optimizer or of a class derived from one."""
    return isinstance(obj, New) and any(map(optimizer_path, (obj.path, *(run.library_bases(obj.cls) if obj.cls is not None else ()))))


def construct(run: Interpreter, obj: New, args: list[Value], keywords: dict[str, Value]) -> None:
    """Let an instance hold what its library constructor was given."""
    for path in (obj.path,) if obj.cls is None else run.library_bases(obj.cls):
        optimizer = optimizer_path(path)
        row = _OPTIMIZER if optimizer else row_of(_ROWS, path)
        if row is None or not (optimizer or obj.cls is None or path in _DERIVED):
            continue
        new = Construction(run, obj, path, args, keywords)
        if callable(row):
            row(new)
            return
        for i, name in enumerate(row):
            if name in keywords or i < len(args):
                value = keywords.get(name, args[i] if i < len(args) else NOTHING)
                value = named.without_settings(run, value) if name == "collate_fn" else value
                new.keep(name, run.memory.get((obj, name), NOTHING) | value if name == "dataset" else value)
        return


def construction(name: str, args: list[Value], keywords: dict[str, Value]) -> tuple[list[Value], dict[str, Value]]:
    """What a class is constructed with by `from_pretrained(path, *args, config=config)` or `from_config(config)`."""
    if name != "from_pretrained":
        return args, keywords
    return [keywords.get("config", NOTHING), *args[1:]], {k: v for k, v in keywords.items() if k != "config"}
