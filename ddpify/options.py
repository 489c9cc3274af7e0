"""All that a user may ask of a conversion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ddpify.errors import DdpifyError

Launcher = Literal["torchrun"]
Guards = Literal["explicit", "quiet"]
Backend = Literal["auto", "nccl", "gloo"]
FindUnused = Literal["auto", "on", "off"]
SyncBN = Literal["auto", "on", "off"]
Evaluation = Literal["auto", "shard", "replicate"]

_CHOICES = {
    "launcher": Launcher,
    "backend": Backend,
    "guards": Guards,
    "find_unused_parameters": FindUnused,
    "sync_bn": SyncBN,
    "eval": Evaluation,
}


@dataclass(frozen=True)
class Options:
    """What `ddpify convert` was asked for; the defaults keep the training what it was. Raises DdpifyError for an unknown choice."""

    launcher: Launcher = "torchrun"
    backend: Backend = "auto"
    guards: Guards = "explicit"
    find_unused_parameters: FindUnused = "auto"
    sync_bn: SyncBN = "auto"
    eval: Evaluation = "auto"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (given := getattr(self, name)) not in get_args(choices):
                raise DdpifyError(f"{name} cannot be {given!r}", f"choose one of {', '.join(get_args(choices))}")
