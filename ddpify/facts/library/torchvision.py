"""What the detectors of torchvision return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddpify.facts.model import Call, New, Value
from ddpify.placement.shape import Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

# Detectors whose losses average over as many proposals, or objects, of each image (torchvision 0.2x), by how their names begin.
_AVERAGED = ("fasterrcnn", "retinanet")


def detector_losses(run: Interpreter, obj: New, call: Call, given: int, flow: Value) -> Value | None:
    """What a detector gives for images and targets: a dict of averages over its images; None of any other model."""
    package, _, name = obj.path.rpartition(".")
    if given < 2 or not package.startswith("torchvision.models") or not name.lower().startswith(_AVERAGED):
        return None
    losses = run.objects.new("dict", call.node, run.stack)
    run.memory[losses, "[]"] = Value(frozenset(), flow.origins, "mean", Shape(None, 0))
    return Value(frozenset((losses,)), flow.origins)
