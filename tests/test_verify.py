"""Rehearsals: right conversions hold, and mistakes are told with their cause."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mutants import BASES, MISTAKES, MUTANTS, NOT_SEEN, Base, Mutant, Rehearsals, seen

import ddpify
from ddpify import records
from ddpify.rehearse import prove
from ddpify.rules.base import ANSWERED, Finding, Safety

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def rehearsals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsals]:
    with Rehearsals(tmp_path_factory.mktemp("rehearsals")) as found:
        yield found


# --- right conversions and mistakes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("base", BASES)
def test_a_right_conversion_holds(rehearsals: Rehearsals, base: str) -> None:
    verdict = rehearsals.of(base, Base.texts(base)[1])
    assert seen(verdict) == "all hold"
    assert verdict.exit_code == 0
    assert verdict.setting.double


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mutant" in metafunc.fixturenames:
        first = {mutant.mistake: mutant for mutant in reversed(MUTANTS)}
        chosen = MUTANTS if metafunc.config.getoption("--all-mutants") else first.values()
        metafunc.parametrize("mutant", sorted(chosen, key=MUTANTS.index), ids=lambda mutant: mutant.title)


def test_a_mistake_is_told_with_its_cause(rehearsals: Rehearsals, mutant: Mutant) -> None:
    verdict = rehearsals.of(mutant.base, mutant.text(), mutant.launcher)
    assert mutant.caught_by(verdict), seen(verdict)
    assert verdict.exit_code == 1
    asked = [Finding("DDP402", Safety.REVIEW, "a doubt", "train.py", 1, answered_by=by) for by in ANSWERED]
    wrong = records.replace(ddpify.convert(Base.texts(mutant.base)[0]), code=mutant.text(), findings=tuple(asked))
    judged = prove.judged(wrong, verdict, verdict)  # nothing of what is asked is closed by such a run, and nothing is written
    assert (judged.findings, judged.changed, judged.exit_code) == (tuple(asked), False, 1)


def test_every_mistake_is_made_or_said_not_to_be_seen() -> None:
    assert {mutant.mistake for mutant in MUTANTS} | set(NOT_SEEN) == set(MISTAKES)
    assert len({mutant.title for mutant in MUTANTS}) == len(MUTANTS)
