"""What the models of transformers return: their loss, given labels, and their other outputs. Checked on transformers 5.23.

A row of `_LOSSES` says how the classes average, whose names hold a text: "" for a plain average over the batch, whatever the labels are,
`_COMPARED` where it compares the samples, else how many labels a loss is an average over. The first row that fits decides; a class that no
row fits is not known.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from ddpify.facts.model import Value
from ddpify.facts.origins import Origin, without
from ddpify.facts.tree import same
from ddpify.placement.shape import Scale, Shape

LANGUAGE_MODELS = ("transformers", "pytorch_transformers", "pytorch_pretrained_bert")  # the package, and what it was called before
_VALID = "({0} != -100).sum()"
_NEXT = "({0}[:, 1:] != -100).sum()"  # each token is predicted from those before it: the first has none

_SEQUENCE_TO_SEQUENCE = """
    Bart BigBirdPegasus Blenderbot BlenderbotSmall LED LongT5 M2M100 MBart MT5 Mvp Pegasus PegasusX PLBart
    Speech2Text T5 T5Gemma UMT5 Whisper
""".split()
# Their decoders alone are given each token that is wanted at its own place, as those of `ForCausalLM` else are not.
_DECODERS = "Bart BigBirdPegasus Blenderbot BlenderbotSmall MBart Marian Mvp PLBart Pegasus TrOCR Whisper".split()
_COMPARED = "compared"  # images with texts, each with those of all other samples of the batch
_COMPARING = "AlignModel AltCLIPModel CLIPModel ChineseCLIPModel ClapModel Siglip2Model SiglipModel XCLIPModel".split()
_OTHERWISE = ("ProphetNet", "Tapas")  # whose losses are others than their names tell
_COPIES = frozenset(("clone", "detach", "contiguous", "long"))
# Outputs with a tensor for each layer.
OF_LAYERS = frozenset("hidden_states encoder_hidden_states decoder_hidden_states attentions encoder_attentions cross_attentions".split())
_OF_SAMPLES = ("Sequence", "Image", "Audio", "Video")  # classified as a whole: a row of scores for each
_LOSSES: dict[str, str] = {
    **{f".{name}": _COMPARED for name in _COMPARING},
    **{f"For{task}Classification": "" for task in _OF_SAMPLES},
    "ForMultipleChoice": "",
    "ForQuestionAnswering": "",  # of two places in each text
    "ForNextSentencePrediction": "",
    "ForTokenClassification": _VALID,
    "ForMaskedLM": _VALID,
    "ForSeq2SeqLM": _VALID,
    "ForSpeechSeq2Seq": _VALID,
    **dict.fromkeys(("EncoderDecoderModel", "MarianMTModel"), _VALID),
    **{f".{name}ForConditionalGeneration": _VALID for name in _SEQUENCE_TO_SEQUENCE},
    "XLNetLMHeadModel": _VALID,
    **{f".{name}ForCausalLM": _VALID for name in _DECODERS},
    "ForCausalLM": _NEXT,
    "GPT2LMHeadModel": _NEXT,
    "BertLMHeadModel": _NEXT,
    "OpenAIGPTLMHeadModel": _NEXT,
}


class Labelled(NamedTuple):
    """The call of a model that computes its loss: how that averages over labels, and whether labels were given.

    `inputs` says that the labels are the inputs: as these number the rows of an embedding, none is left out, not even padding.
    """

    call: ast.Call
    over: str
    given: bool | None  # None: they may be in a dict
    inputs: bool

    @property
    def counted(self) -> bool:
        """Whether the loss is an average over those labels that count."""
        return bool(self.over) and not self.inputs


def labelled(path: str, call: ast.Call, given: frozenset[str]) -> Origin | None:
    """What the outputs of a library's model are marked with, if its loss is known."""
    if not path.startswith("transformers."):
        return None
    over = None if any(name in path for name in _OTHERWISE) else next((over for text, over in _LOSSES.items() if text in path), None)
    labels = True if given & {"labels", "start_positions"} else None if "**" in given else False
    return None if over is None else Origin("labelled", Labelled(call, over, labels, _given_inputs(call)))


def _given_inputs(call: ast.Call) -> bool:
    """Whether the labels that a model is given are its inputs: `model(ids, labels=ids)`, `model(**batch, labels=batch["input_ids"])`."""
    named = {k.arg: k.value for k in call.keywords}
    labels, inputs = named.get("labels"), named.get("input_ids", call.args[0] if call.args else None)
    while isinstance(labels, ast.Call) and isinstance(labels.func, ast.Attribute) and labels.func.attr in _COPIES and not labels.args:
        labels = labels.func.value
    match labels:
        case ast.Subscript(value=batch, slice=ast.Constant(value="input_ids")) | ast.Attribute(value=batch, attr="input_ids"):
            if inputs is None and None in named:
                return same(batch, named[None])
    return labels is not None and inputs is not None and same(labels, inputs)


def output_of(base: Value, name: str) -> Value:
    """An output of a model of the transformers library by its name."""
    calls = base.of_kind("labelled")
    origins = without(base.origins, "labelled")
    if any(c.over == _COMPARED for c in calls):
        if base.scale != "sample" or name in ("image_embeds", "text_embeds"):
            return Value(frozenset(), origins, base.scale, Shape(None, 2))
        return Value(frozenset(), origins | {Origin("coupled", c.call) for c in calls}, "other")
    if not calls or name not in ("loss", "logits"):
        return Value(frozenset(), origins, base.scale, base.shape)
    if name == "logits":
        dims = {3 if c.over else 2 for c in calls}  # scores for each token, or for each sample
        shape = Shape(None, dims.pop()) if len(dims) == 1 and base.scale == "sample" else base.shape
        return Value(frozenset(), origins, base.scale, shape)
    scale: Scale = "other" if base.scale != "sample" or any(c.given is False for c in calls) else "mean"
    if scale == "mean" and any(c.counted for c in calls):
        scale = "weighted"
    marks = {Origin("valid" if c.counted else "tokens", c) for c in calls if c.over}
    return Value(frozenset(), origins | marks, scale, Shape())


def first_output_of(base: Value) -> Value:
    """`outputs[0]`: the loss where there are labels, else the scores; where that is not known, nothing is claimed."""
    given = {c.given for c in base.of_kind("labelled")}
    if given == {False}:
        return output_of(base, "logits")
    part = output_of(base, "loss")
    return part if given == {True} else Value(frozenset(), part.origins, "other", part.shape)
