"""The order in which rules are asked changes nothing: none leaves anything behind for another."""

import random
from pathlib import Path

import pytest
import table_apex
import table_loaders
import table_models
import table_numbers
from scripts import converted

import ddpify
from ddpify import plan

EXAMPLES = sorted(Path(__file__).parents[1].glob("examples/*/train.py"))
SCRIPTS = [(f"{table.__name__}: {title}", script) for table in (table_apex, table_loaders, table_models, table_numbers)
           for title, script in list(table.SCRIPTS.items())[::24]]  # fmt: skip


def shuffled(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    order = list(plan.ASKED)
    random.Random(seed).shuffle(order)
    assert order != list(plan.ASKED)
    monkeypatch.setattr(plan, "ASKED", tuple(order))


def outcome(conversion: ddpify.Conversion) -> tuple[str, list[str]]:
    """The text and the findings, without the nodes of the tree that each conversion parses anew."""
    return conversion.code, [repr((f.code, f.level, f.message, f.file, f.line, f.column, f.fix)) for f in conversion.findings]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_are_the_same_whoever_is_asked_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ddpify.convert(path)
    shuffled(monkeypatch, 1)
    other = ddpify.convert(path)
    assert outcome(other) == outcome(usual)


@pytest.mark.parametrize(("title", "script"), SCRIPTS, ids=[title for title, _ in SCRIPTS])
def test_scripts_are_the_same_whoever_is_asked_first(title: str, script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = converted(script, tmp_path)
    shuffled(monkeypatch, len(title))
    other = converted(script, tmp_path)
    assert outcome(other) == outcome(usual)
