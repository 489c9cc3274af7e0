"""A piece: code for some of the places of a training script, and what it needs of the other pieces.

All pieces use the same names (`model`, `train_loader`, `inputs`, `targets`, `outputs`, `loss`, `epoch`); a script renames them afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

INSIDE = ("step", "iter")
"""How a printed line begins whose numbers are those of one batch, which are a rank's own."""


@dataclass(frozen=True)
class Piece:
    """Code for the places of a script; each place is empty where the piece has nothing to say there.

    `definitions` are classes and functions, `setup` runs once before training, `start`, `batch` and `end` are before, in and after the
    loop over the batches of an epoch, `validation_*` the same of a validation, `after` closes each epoch and `finish` the script.
    `loop` is the loop over batches with `{body}` inside. `task` is "rows" (samples with one label), "tokens" (padded sequences) or "any".
    `tags` are what the piece is, `needs` the tags that others must have and `excludes` those that they must not have. `apart` names the
    properties (see `ranks.Outcome`) that need not be the original's, and `numbers` is false where printed numbers need not be.
    """

    feature: str
    imports: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    definitions: str = ""
    setup: str = ""
    start: str = ""
    batch: str = ""
    end: str = ""
    validation_start: str = ""
    validation_batch: str = ""
    validation_end: str = ""
    after: str = ""
    finish: str = ""
    loop: str = ""
    task: str = "any"
    tags: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    excludes: frozenset[str] = frozenset()
    apart: tuple[str, ...] = ()
    numbers: bool = True
    values: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0

    def fits(self, others: tuple[Piece, ...]) -> bool:
        """Whether the piece can stand in one script with the others that are chosen already."""
        tags = frozenset(tag for other in others for tag in other.tags)
        task = next((other.task for other in others if other.task != "any"), self.task)
        allowed = not self.excludes & tags and not any(other.excludes & self.tags for other in others)
        return allowed and self.needs <= tags and self.task in ("any", task)
