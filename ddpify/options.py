"""All that a user may ask of a conversion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from ddpify.errors import DdpifyError

Launcher = Literal["torchrun", "launch", "spawn"]
Amp = Literal["keep", "none", "torch", "torch-bf16"]
Guards = Literal["explicit", "quiet"]
Backend = Literal["auto", "nccl", "gloo"]
FindUnused = Literal["auto", "on", "off"]
SyncBN = Literal["auto", "on", "off"]
Evaluation = Literal["auto", "shard", "replicate"]
BatchSize = Literal["global", "per-rank"]
ScaleLR = Literal["none", "linear", "sqrt"]

_CHOICES = {
    "launcher": Launcher,
    "amp": Amp,
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

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in get_args(choices) and (given, name) != (None, "launcher"):
                raise DdpifyError(f"{name} cannot be {given!r}", f"choose one of {', '.join(get_args(choices))}")
        if self.scale_lr != "none" and self.batch_size == "global":
            raise DdpifyError(
                f"scale_lr {self.scale_lr!r} does not go with a global batch size", "the batch stays as large; or ask for per-rank batches"
            )

    @property
    def starts(self) -> Launcher:
        """What starts the processes of a script that is converted."""
        return self.launcher or "torchrun"

    def command_line(self) -> str:
        """The flags of `ddpify convert` that ask for what is not the default."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in given.items())
