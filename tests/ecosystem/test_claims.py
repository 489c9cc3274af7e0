"""What is known of packages as rows or as source, beside what the real packages compute."""

import ast

import pytest
import torch
from torch import nn

from ddpify.facts.library import labelled
from ddpify.resources import template_dir

_SMALL = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
_BERT = {**_SMALL, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 4}
_GPT2 = {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
_SIDES = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))}
_BART = {"vocab_size": 40, "d_model": 16, **_SIDES, "dropout": 0.0, "pad_token_id": 0, "decoder_start_token_id": 2}
_T5 = {"vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
MODELS = {
    "BertForSequenceClassification": ("BertConfig", _BERT, "rows"),
    "BertForQuestionAnswering": ("BertConfig", {**_BERT, "num_labels": 2}, "places"),
    "BertForTokenClassification": ("BertConfig", _BERT, "tokens"),
    "BertForMaskedLM": ("BertConfig", _BERT, "tokens"),
    "BertLMHeadModel": ("BertConfig", {**_BERT, "is_decoder": True}, "tokens"),
    "GPT2LMHeadModel": ("GPT2Config", _GPT2, "tokens"),
    "LlamaForCausalLM": ("LlamaConfig", {**_SMALL, "num_key_value_heads": 2}, "tokens"),
    "T5ForConditionalGeneration": ("T5Config", _T5, "tokens"),
    "BartForConditionalGeneration": ("BartConfig", _BART, "tokens"),
    "MarianMTModel": ("MarianConfig", _BART, "tokens"),
    "PegasusForConditionalGeneration": ("PegasusConfig", _BART, "tokens"),
    "BartForCausalLM": ("BartConfig", _BART, "tokens"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loss_is_the_average_that_its_row_says(name: str) -> None:
    transformers = pytest.importorskip("transformers", reason="pip install ddpify[test-ecosystem]")
    config, settings, kind = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**settings)).eval()
    ids, labels = torch.randint(3, 40, (6, 8)), torch.randint(0, 4, (6, 8))
    labels[torch.rand(6, 8) < 0.4] = -100
    labels[4:, 0], labels[:4, 0] = -100, 1
    labels = labels if kind == "tokens" else labels[:, 0].clamp(min=0)
    names = ("start_positions", "end_positions") if kind == "places" else ("labels",)
    origin = labelled(f"transformers.{name}", ast.Call(ast.Name("model"), [], []), frozenset(names))
    assert origin is not None
    over = origin.of.over.format("labels") if origin.of.over else "torch.tensor(len(labels))"  # type: ignore[attr-defined]

    def total(rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
        amount = eval(over, {"labels": labels[rows], "torch": torch})
        return model(input_ids=ids[rows], **dict.fromkeys(names, labels[rows])).loss * amount, amount

    with torch.no_grad():
        (whole, n), first, second = total(slice(0, 6)), total(slice(0, 4)), total(slice(4, 6))
    assert first[1] + second[1] == n
    assert torch.allclose(first[0] + second[0], whole, rtol=1e-4)


@pytest.fixture
def source() -> dict[str, object]:
    namespace: dict[str, object] = {}
    exec((template_dir() / "library" / "timm.py").read_text(), namespace)
    return namespace


def test_a_meter_is_the_packages(source: dict[str, object]) -> None:
    utils = pytest.importorskip("timm.utils", reason="pip install ddpify[test-ecosystem]")
    meters = [source["AverageMeter"](), utils.AverageMeter()]  # type: ignore[operator]
    for meter in meters:
        for value, n in ((1.0, 2), (4.0, 6), (0.5, 1)):
            meter.update(value, n)
    assert vars(meters[0]) == vars(meters[1])


@pytest.mark.parametrize("name", ["LabelSmoothingCrossEntropy", "SoftTargetCrossEntropy"])
def test_a_loss_is_the_packages(source: dict[str, object], name: str) -> None:
    losses = pytest.importorskip("timm.loss", reason="pip install ddpify[test-ecosystem]")
    scores, kinds = torch.randn(6, 4), torch.randint(0, 4, (6,))
    target = kinds if name.startswith("Label") else torch.rand(6, 4).softmax(1)
    mine, theirs = source[name]()(scores, target), getattr(losses, name)()(scores, target)  # type: ignore[operator]
    assert torch.allclose(mine, theirs)


def test_accuracy_is_the_packages(source: dict[str, object]) -> None:
    utils = pytest.importorskip("timm.utils", reason="pip install ddpify[test-ecosystem]")
    scores, kinds = torch.randn(12, 6), torch.randint(0, 6, (12,))
    mine, theirs = source["accuracy"](scores, kinds, topk=(1, 5)), utils.accuracy(scores, kinds, topk=(1, 5))  # type: ignore[operator]
    assert torch.allclose(torch.stack(mine), torch.stack(theirs))


@pytest.mark.parametrize("name", ["ModelEmaV2", "ModelEmaV3"])
def test_an_average_of_weights_is_the_packages(source: dict[str, object], name: str) -> None:
    utils = pytest.importorskip("timm.utils", reason="pip install ddpify[test-ecosystem]")
    model = nn.Linear(4, 3)
    averages = [source[name](model, decay=0.9), getattr(utils, name)(model, decay=0.9)]  # type: ignore[operator]
    for _ in range(3):
        with torch.no_grad():
            model.weight.add_(1.0)
        for average in averages:
            average.update(model)
    assert torch.allclose(averages[0].module.weight, averages[1].module.weight)


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_conditional_random_field_is_the_packages(batch_first: bool) -> None:
    package = pytest.importorskip("torchcrf", reason="pip install ddpify[test-ecosystem]")
    source: dict[str, object] = {}
    exec((template_dir() / "library" / "torchcrf.py").read_text(), source)
    mine, theirs = source["CRF"](5, batch_first), package.CRF(5, batch_first)  # type: ignore[operator]
    mine.load_state_dict(theirs.state_dict())
    scores, tags, mask = torch.randn(6, 8, 5), torch.randint(0, 5, (6, 8)), torch.arange(8) < torch.tensor([[8], [3], [1], [5], [2], [8]])
    if not batch_first:
        scores, tags, mask = scores.transpose(0, 1), tags.T, mask.T
    for reduction in ("none", "sum", "mean", "token_mean"):
        for kept in (mask, None):
            losses = [crf(scores, tags, mask=kept, reduction=reduction) for crf in (mine, theirs)]
            assert torch.allclose(*losses, atol=1e-5)
    assert mine.decode(scores, mask) == theirs.decode(scores, mask)
