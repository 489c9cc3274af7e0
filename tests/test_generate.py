"""Generated training scripts: none is converted wrongly in silence, and none stops the conversion."""

from dataclasses import replace

import pytest
from generate.choices import chosen
from generate.compose import compose
from generate.epoch_metrics import metric
from generate.expressions import forward, loss
from generate.gradients import gradients
from generate.kept_state import kept
from generate.mixed import mixed
from generate.mutations import FAULTS, is_found, outcomes
from generate.of_ranks import of_ranks
from generate.reduce import applied
from generate.runner import Kind, Result, alike, examine
from generate.variants import VARIANTS, variants

from ddpify import Options

SEEDS = range(20_000, 20_040)
LINES = range(30_000, 30_020)
BAD = (Kind.SILENT, Kind.CRASH, Kind.INVALID)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return examine([compose(seed) for seed in SEEDS], asked=False, limit=300.0)


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: kind.value)
def test_no_generated_script_ends_badly(results: list[Result], kind: Kind) -> None:
    assert {result.script.seed: result.problems for result in results if result.kind is kind} == {}


def test_no_random_line_ends_badly() -> None:
    scripts = [made(seed) for made in (loss, forward, metric, kept, chosen, mixed, gradients, of_ranks) for seed in LINES]
    results = examine(scripts, asked=False, limit=300.0)
    assert {r.script.features: r.problems for r in results if r.kind in (Kind.SILENT, Kind.CRASH)} == {}
    assert sum(r.kind is Kind.EQUAL for r in results) > 0.75 * len(results)


ASKED = (Options("spawn"), Options("spawn", amp="apex-O2"), Options("launch", amp="apex-O1"))


@pytest.mark.parametrize("asked", ASKED, ids=Options.command_line)
def test_no_choice_of_the_user_ends_badly(asked: Options) -> None:
    results = examine([replace(compose(seed), options=asked) for seed in SEEDS[:8]], asked=False, limit=300.0)
    assert {result.script.seed: result.problems for result in results if result.kind in BAD} == {}
    assert sum(result.kind is Kind.EQUAL for result in results) > len(results) / 3


def test_most_conversions_are_whole(results: list[Result]) -> None:
    assert sum(result.kind is Kind.EQUAL for result in results) > len(results) / 2


def test_a_seed_gives_one_script() -> None:
    for seed in range(20):
        assert compose(seed) == compose(seed)
    assert len({compose(seed).text for seed in range(20)}) == 20


def test_edits_of_the_reducer_take_statements_away() -> None:
    script = compose(1)
    assert applied(script, []) is not None
    shorter = applied(script, [("delete", ("train.py", 1), 0)])
    assert shorter is not None and shorter.text.count("\n") < script.text.count("\n")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("epoch 1 loss 0.250000", "epoch 1 loss 0.250001", True),
        ("epoch 1 loss 0.250000", "epoch 1 loss 0.251000", False),
        ("epoch 1", "epoch 1 loss 0.25", False),
        ("done", "finished", False),
    ],
)
def test_numbers_are_compared_but_for_rounding(a: str, b: str, same: bool) -> None:
    assert alike(a, b) is same


def test_variants_are_scripts_of_their_own() -> None:
    made = [(name, variant) for seed in range(20_000, 20_030) for name, variant in variants(compose(seed)).items()]
    assert {name for name, _ in made} == set(VARIANTS)
    for name, variant in made:
        compile(variant.text, name, "exec")


def test_faults_in_rules_are_found() -> None:
    faults = [fault for fault in FAULTS if fault.title in ("the sampler does not shuffle", "guards are inverted")]
    ends = outcomes(faults, [compose(seed) for seed in SEEDS[:8]], 3)
    assert len(ends) == 2 and all(map(is_found, ends.values()))
