"""Which calls speak (print, log, draw) and which write files, and which of the project's functions do nothing else."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import Literal

from ddpify.facts.collect import Facts
from ddpify.facts.model import Call, Ext, Lit, Method, New, Value

Effect = Literal["print", "file", "folder"]

_SPEAKS = (
    "print",
    "pprint.",
    "logging.",
    "sys.stdout.",
    "sys.stderr.",
    "torchsummary.summary",
    "torchinfo.summary",
    "IPython.display",
    "prettytable",
)
_WRITES = (
    "torch.save",
    "torchvision.utils.save_image",
    "numpy.save",
    "json.dump",
    "pickle.dump",
    "yaml.dump",
    "shutil.",
    "os.remove",
    "os.rename",
    "os.replace",
    "os.unlink",
    "os.rmdir",
    "cv2.imwrite",
    "imageio.",
    "matplotlib.",
    "seaborn.",
    "joblib.dump",
    "scipy.io.savemat",
    "wandb.",
    "tensorboard_logger.",
    "mlflow.",
    "neptune.",
    "os.system",
    "torch.onnx.export",
    "safetensors.torch.save",
    "scipy.misc.imsave",
    "torchvision.utils.save",
)
_FOLDERS = frozenset(("os.mkdir", "os.makedirs"))
_READS = frozenset(
    (
        "json.dumps",
        "pickle.dumps",
        "yaml.dumps",
        "shutil.which",
        "imageio.imread",
        "imageio.v2.imread",
        "matplotlib.use",
        "shutil.disk_usage",
        "matplotlib.pyplot.imread",
        "shutil.get_terminal_size",
        "imageio.get_reader",
        "matplotlib.pyplot.switch_backend",
    )
)
WRITERS = ("SummaryWriter", "tensorboard_logger.Logger", "visdom.Visdom", "FileWriter", "Visdom")
_LOGGERS = ("logging.getLogger", "loguru.logger")
_WRITING_METHODS = frozenset(
    ("to_csv", "to_json", "to_pickle", "savefig", "save_pretrained", "imsave", "to_excel", "to_parquet", "write_png", "dump")
)
_PATH_METHODS = frozenset(("write_text", "write_bytes", "touch", "unlink"))
_LOG_METHODS = frozenset(("info", "debug", "warning", "warn", "error", "critical", "log", "exception"))


def effect(call: Call) -> Effect | None:
    """What one call of a library does to the world."""
    paths = [o.path for o in call.func.objs if isinstance(o, Ext)]
    for path in paths:
        if path in _FOLDERS:
            return "folder"
        if path == "logging.basicConfig":
            return "file" if "filename" in call.keywords else None
        if path.startswith(_SPEAKS) and not path.startswith(
            ("logging.getLogger", "logging.Formatter", "logging.StreamHandler", "logging.basicConfig", "logging.FileHandler")
        ):
            return "print"
        if path.startswith(_WRITES) and path not in _READS:
            return "file"
        if path in ("open", "io.open", "codecs.open", "gzip.open", "logging.FileHandler") and writes(call):
            return "file"
        if path == "tqdm.tqdm.write":
            return "print"
    for obj in call.func.objs:
        if isinstance(obj, Method) and isinstance(obj.of, New):
            if is_writer(obj.of):
                return "file"
            if obj.of.path.startswith(_LOGGERS) and obj.name in _LOG_METHODS:
                return "print"
    if (
        call.method in _WRITING_METHODS
        and not call.func.paths()
        and not any(isinstance(o, Lit) for o in call.receiver.objs)
        and (call.method != "dump")
        and isinstance(call.node.func, ast.Attribute)
    ):
        return "file"
    if call.method in _PATH_METHODS and isinstance(call.node.func, ast.Attribute) and not call.func.paths():
        return "file"
    if call.method in ("rename", "replace", "rmdir") and any(
        isinstance(o, New) and o.path.startswith("pathlib.") for o in call.receiver.objs
    ):
        return "file"
    if call.method == "mkdir" and isinstance(call.node.func, ast.Attribute):
        return "folder"
    return None


def is_writer(obj: object) -> bool:
    """Whether an object writes an event file or talks to a board."""
    return isinstance(obj, New) and (obj.path.endswith(WRITERS) or obj.path.startswith("wandb.init"))


def writes(call: Call) -> bool:
    """Whether an `open` call opens for writing; unknown modes count as reading."""
    path = next((o.path for o in call.func.objs if isinstance(o, Ext)), "")
    if path == "logging.FileHandler":
        return True
    mode = call.argument(1, "mode")
    if mode is None:
        return False
    return any(isinstance(o, Lit) and isinstance(o.value, str) and any(c in o.value for c in "wax+") for o in mode.objs)


class Effects:
    """The effects of a run, by call node."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.under: dict[ast.AST, list[Call]] = defaultdict(list)
        self.stores_under: dict[ast.AST, list[Value]] = defaultdict(list)
        self.at: dict[ast.AST, Effect] = {}
        for call in facts.after.trace.calls:
            kind = effect(call)
            if kind is not None:
                self.at[call.node] = kind
            for above in dict.fromkeys(call.stack):
                self.under[above].append(call)
        for store in facts.after.trace.stores:
            for above in dict.fromkeys(store.stack):
                self.stores_under[above].append(store.receiver)

    def kinds(self, node: ast.AST) -> set[Effect]:
        """The effects of a call and of all that runs under it."""
        own = {self.at[node]} if node in self.at else set()
        return own | {self.at[c.node] for c in self.under.get(node, ()) if c.node in self.at}

    def output_only(self, node: ast.AST) -> bool:
        """Whether a call of a project's function does nothing but speak and write: it trains nothing and changes no object it was given."""
        if not self.kinds(node):
            return False
        for call in self.under.get(node, ()):
            if call.method in (
                "backward",
                "step",
                "all_reduce",
                "barrier",
                "broadcast",
                "seed",
                "manual_seed",
                "shuffle",
                "train",
                "zero_grad",
            ):
                return False
            if self.facts.wrapped(call.func) is not False or self.facts.model_of(call.func) is not None:
                return False
            if "next" in call.func.paths() or any(self.facts.after.is_loader(o) for loop in call.loops for o in loop.over.objs):
                return False
        for receiver in self.stores_under.get(node, ()):
            if any(isinstance(o, New) and node not in o.stack and o.node is not node for o in receiver.objs):
                return False
        return True
