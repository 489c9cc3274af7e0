"""All that a user may ask of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
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

# what `ddpify new` asks beside the launcher and whose DDP
Task = Literal["image", "pix2pix", "language-model", "distillation", "tabular"]
Precision = Literal["none", "torch", "torch-bf16", "apex-O0", "apex-O1", "apex-O2", "apex-O3"]
Tracker = Literal["none", "tensorboard", "wandb"]
Cluster = Literal["none", "slurm", "kubernetes"]

_CHOICES = {
    "launcher": Launcher,
    "amp": Amp,
    "ddp": Ddp,
    "backend": Backend,
    "guards": Guards,
    "find_unused_parameters": FindUnused,
    "sync_bn": SyncBN,
    "eval": Evaluation,
    "batch_size": BatchSize,
    "scale_lr": ScaleLR,
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
    amp: Amp = "keep"
    ddp: Ddp = "auto"
    loss_scale: str = "auto"
    fused_adam: bool = False

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in get_args(choices) and (given, name) != (None, "launcher"):
                raise DdpifyError(f"{name} cannot be {given!r}", f"choose one of {', '.join(get_args(choices))}")
        if self.scale_lr != "none" and self.batch_size == "global":
            raise DdpifyError(
                f"scale_lr {self.scale_lr!r} does not go with a global batch size", "the batch stays as large; or ask for per-rank batches"
            )
        if self.loss_scale not in ("auto", "dynamic") and not _is_scale(self.loss_scale):
            raise DdpifyError(f"loss_scale cannot be {self.loss_scale!r}", "choose dynamic or a positive number")
        if self.loss_scale != "auto" and self.amp != "torch" and not self.level:
            raise DdpifyError(f"loss_scale does not go with amp {self.amp!r}", "losses are scaled with amp torch or one of apex's levels")

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
        given = {name: value for name, (value, default) in every.items() if value != default or settings.get(name, value) != value}
        flags = {name: f"--{name.replace('_', '-')}" for name in given}
        return " ".join(flags[name] if value is True else f"{flags[name]} {value}" for name, value in given.items())


def _is_scale(text: str) -> bool:
    """Whether a text is a number that losses can be multiplied by."""
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False
