"""All that a user may ask of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from ddpify.errors import DdpifyError

Launcher = Literal["torchrun", "launch", "spawn"]
Amp = Literal["keep", "none", "torch", "torch-bf16", "apex-O0", "apex-O1", "apex-O2", "apex-O3"]
Ddp = Literal["auto", "torch", "apex"]
Guards = Literal["explicit", "quiet"]
Backend = Literal["auto", "nccl", "gloo"]
FindUnused = Literal["auto", "on", "off"]
SyncBN = Literal["auto", "on", "off"]
Evaluation = Literal["auto", "shard", "replicate"]
BatchSize = Literal["global", "per-rank"]
ScaleLR = Literal["none", "linear", "sqrt"]
WholeBatches = Literal["auto", "from-rank-zero", "never"]

# what `ddpify new` asks beside the launcher and whose DDP
Task = Literal["image", "pix2pix", "language-model", "distillation", "tabular", "transformers"]
Precision = Literal["none", "torch", "torch-bf16", "apex-O0", "apex-O1", "apex-O2", "apex-O3"]
Tracker = Literal["none", "tensorboard", "wandb"]
Cluster = Literal["none", "slurm", "kubernetes"]

PLACEMENTS = ("replicate", "shard", "mean", "sum", "coupled", "per-rank")
"""What a user may say of a value: the same on all ranks, a row for each of a rank's samples, their mean, their sum, a number that
combines them with one another, a rank's own."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "launcher": get_args(Launcher),
    "amp": get_args(Amp),
    "ddp": get_args(Ddp),
    "backend": get_args(Backend),
    "guards": get_args(Guards),
    "find_unused_parameters": get_args(FindUnused),
    "sync_bn": get_args(SyncBN),
    "eval": get_args(Evaluation),
    "batch_size": get_args(BatchSize),
    "scale_lr": get_args(ScaleLR),
    "whole_batches": get_args(WholeBatches),
}


@dataclass(frozen=True)
class Options:
    """What `ddpify convert` was asked for; the defaults keep the training what it was. Raises DdpifyError for an unknown choice.

    `launcher` None is torchrun for a script that is converted; a distributed script keeps the one that it has.
    """

    launcher: Launcher | None = None
    backend: Backend = "auto"
    guards: Guards = "explicit"
    find_unused_parameters: FindUnused = "auto"
    sync_bn: SyncBN = "auto"
    eval: Evaluation = "auto"
    batch_size: BatchSize = "global"
    scale_lr: ScaleLR = "none"
    whole_batches: WholeBatches = "auto"
    amp: Amp = "keep"
    ddp: Ddp = "auto"
    loss_scale: str = "auto"
    fused_adam: bool = False
    draft: bool = False  # convert what can be, where a part of the core must be written by hand, too, and mark these places
    placements: tuple[tuple[str, str], ...] = ()  # what is said of functions by their dotted paths, or of lines; settings alone hold it

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in _CHOICES}
        check_choices({name: value for name, value in given.items() if (name, value) != ("launcher", None)}, _CHOICES)
        if self.scale_lr != "none" and self.batch_size == "global":
            raise DdpifyError(
                f"scale_lr {self.scale_lr!r} does not go with a global batch size", "the batch stays as large; or ask for per-rank batches"
            )
        if self.loss_scale not in ("auto", "dynamic") and not _is_scale(self.loss_scale):
            raise DdpifyError(f"loss_scale cannot be {self.loss_scale!r}", "choose dynamic or a positive number")
        for path, said in self.placements:
            if said not in PLACEMENTS:
                raise DdpifyError(f"{path} cannot be {said!r}", f"choose one of {', '.join(PLACEMENTS)}")
        if self.loss_scale != "auto" and self.amp != "torch" and not self.level:
            raise DdpifyError(f"loss_scale does not go with amp {self.amp!r}", "losses are scaled with amp torch or one of apex's levels")

    def assuming(self, option: str, value: object) -> Options:
        """The same with another choice; what is said of a function or a line is said beside what is known of others."""
        return replace(self, **{option: (*self.placements, value) if option == "placements" else value})  # type: ignore[arg-type]

    @property
    def level(self) -> str:
        """The optimisation level of apex.amp that was asked for, such as O1; empty without one."""
        return self.amp.removeprefix("apex-") if self.amp.startswith("apex-") else ""

    @property
    def apex_ddp(self) -> bool:
        """Whether models are wrapped in apex's DistributedDataParallel."""
        return self.ddp == "apex" or (self.ddp == "auto" and bool(self.level))

    @property
    def starts(self) -> Launcher:
        """What starts the processes of a script that is converted."""
        return self.launcher or "torchrun"

    def command_line(self, otherwise: Mapping[str, object] | None = None) -> str:
        """The flags of `ddpify convert` that ask for what is not the default, nor what a project's settings ask for otherwise."""
        settings = otherwise or {}
        every = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        every.pop("placements")
        given = {name: value for name, (value, default) in every.items() if value != default or settings.get(name, value) != value}
        flags = {name: f"--{name.replace('_', '-')}" for name in given}
        return " ".join(flags[name] if value is True else f"{flags[name]} {value}" for name, value in given.items())


def check_choices(given: Mapping[str, object], choices: Mapping[str, tuple[str, ...]]) -> None:
    """Raises DdpifyError for the first value that is none of its choices."""
    for name, value in given.items():
        if value not in choices[name]:
            raise DdpifyError(f"{name} cannot be {value!r}", f"choose one of {', '.join(choices[name])}")


def _is_scale(text: str) -> bool:
    """Whether a text is a number that losses can be multiplied by."""
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False
