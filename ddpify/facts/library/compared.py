"""What models and miners give that compare the samples of a batch with one another, beside rows.

Checked on open_clip 3.3 and pytorch_metric_learning 2.9; `clip` is the package of OpenAI's repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ddpify.facts import sources
from ddpify.facts.library.row import row_of
from ddpify.facts.model import Call, Obj, Tup, Value, just
from ddpify.facts.origins import Origin
from ddpify.placement.shape import Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_Output = Literal["rows", "compared", "constant"]
_FEATURES: tuple[_Output, ...] = ("rows", "rows", "constant")  # of images, of texts, and the temperature
_OUTPUTS: dict[str, tuple[_Output, ...]] = {
    **{f"open_clip.create_model{how}": _FEATURES for how in ("", "_and_transforms", "_from_pretrained")},
    **{f"open_clip.{home}{name}": _FEATURES for home in ("", "model.") for name in ("CLIP", "CustomTextCLIP")},
    "clip.load": ("compared", "compared"),  # how much each image is like each text, and the other way round
    "pytorch_metric_learning.miners": ("compared",),  # the places of pairs or triplets in the batch
}


def compared(run: Interpreter, obj: Obj, call: Call, flow: Value) -> Value | None:
    """What one of these gives for two tensors of a batch; None of anything else."""
    outputs = row_of(_OUTPUTS, sources.path_of(run, obj)) if flow.of_kind("batch") else None
    if outputs is None or len(call.node.args) + len(call.node.keywords) < 2:
        return None
    parts = [_output(kind, call, flow) for kind in outputs]
    if len(parts) == 1:
        return parts[0]
    rest = parts[-1] if outputs[-1] == "constant" else None  # a bias may follow the temperature
    return just(Tup(tuple(parts), (), rest)) | Value(frozenset(), flow.origins)


def _output(kind: _Output, call: Call, flow: Value) -> Value:
    if kind == "constant":
        return Value()
    if kind == "rows":
        return Value(frozenset(), flow.origins, "sample", Shape(None, 2))
    return Value(frozenset(), flow.origins | {Origin("coupled", call.node)}, "other")
