"""What a refusal says."""

from __future__ import annotations

from typing import Literal

from ddpify.records import dataclass


@dataclass(frozen=True)
class Verdict:
    """Why a script is left as it is: "nothing" where there is nothing to do, "refuse" where ddpify must not touch it.

    `reason` is one sentence for the user; `line` counts from 1 in `file`, the path as the user would give it.
    """

    status: Literal["nothing", "refuse"]
    code: str
    reason: str
    line: int
    file: str
