"""Rows of peft: adapters are put into the model that is given, whose forward and losses stay those of its class. Checked on peft 0.21."""

from __future__ import annotations

from ddpify.facts.library.generic import first
from ddpify.facts.library.row import Rule

ROWS: dict[str, Rule] = dict.fromkeys(
    (
        *("peft.get_peft_model", "peft.PeftModel.from_pretrained", "peft.inject_adapter_in_model", "peft.prepare_model_for_kbit_training"),
        *(f"peft.PeftModelFor{task}" for task in ("CausalLM", "Seq2SeqLM", "SequenceClassification", "TokenClassification")),
    ),
    first,
)
