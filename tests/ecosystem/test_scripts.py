"""Scripts in the style of each package's own examples, converted without a hand and run on two ranks with the real packages."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest
from ranks import Case, Outcome, run_many

import ddpify
from ddpify import Conversion
from ddpify.rules.base import Safety

FOLDER = Path(__file__).with_name("scripts")
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))

# What need not be the original's: steps where each rank draws noise, batches or pairs of its own, and what packages say on standard error.
_DRAWN = ("trajectory", "values")
APART = {
    "language_model": _DRAWN,
    "language_model_trainer": _DRAWN,
    "flow_matching": _DRAWN,
    "diffusers_unconditional": _DRAWN,
    "monai_diffusion": _DRAWN,
    "timm_mixup": _DRAWN,
    "peft_lora": ("prints",),
    "datasets_course": ("prints",),
    "datasets_shuffled": ("prints",),
    "peft_collator": ("prints",),
    "tokens_seqeval": ("prints",),
    "functional_averages": ("prints",),
    "hydra_settings": ("writes",),  # hydra's own log and copy of the settings
    "transformers_own_head": ("prints",),
    "torch_geometric_graphs": ("prints",),
    "comet_experiment": ("files",),  # named by the run's random number, as neptune's and aim's are
    "neptune_run": ("files", "prints", "output"),
    "aim_run": ("files", "writes"),  # what aim tries on the disk as it is imported
    "torchdata_stateful": ("prints", "values"),  # how far each rank's loader has come
}
SHOWS_BATCHES = {"metric_learning_pairs", "metric_learning_triplets", "torchmetrics_loop", "transformers_masked", "transformers_summaries"}
SHOWS_TIMES = {"timm_finetuning", "hydra_settings", "neptune_run"}


def packages(name: str) -> set[str]:
    """What a script imports beside torch and the standard library."""
    nodes = list(ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())))
    found = {alias.name.partition(".")[0] for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    found |= {(n.module or "").partition(".")[0] for n in nodes if isinstance(n, ast.ImportFrom)}
    return found - set(sys.stdlib_module_names) - {"torch"}


def missing(name: str) -> list[str]:
    return sorted(package for package in packages(name) if importlib.util.find_spec(package) is None)


def available(name: str) -> object:
    left_out = missing(name)
    reason = f"not installed: {', '.join(left_out)} (pip install ddpify[test-ecosystem])"
    return pytest.param(name, marks=pytest.mark.skipif(bool(left_out), reason=reason))


HERE = [name for name in NAMES if packages(name) - {"numpy"} and not missing(name)]
ALL = [available(name) for name in NAMES if packages(name) - {"numpy"}]
PLAIN = [name for name in NAMES if not packages(name) - {"numpy"}]


@pytest.fixture(scope="module")
def conversions() -> dict[str, Conversion]:
    return {name: ddpify.convert(FOLDER / f"{name}.py") for name in (*HERE, *PLAIN)}


@pytest.fixture(scope="module")
def outcomes(conversions: dict[str, Conversion]) -> dict[str, Outcome]:
    cases = [Case((FOLDER / f"{name}.py").read_text(), done.code) for name, done in conversions.items()]
    return dict(zip(conversions, run_many(cases, 2), strict=True))


@pytest.mark.parametrize("name", [*ALL, *PLAIN])
def test_nothing_is_left_to_do(conversions: dict[str, Conversion], name: str) -> None:
    done = conversions[name]
    assert [(f.code, f.line, f.message) for f in done.findings if f.level >= Safety.REVIEW] == []
    assert (done.status, done.exit_code) == ("convert", 0)


@pytest.mark.parametrize("name", [*ALL, *PLAIN])
def test_two_ranks_train_as_the_one_process_did(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert outcome.problems(APART.get(name, ())) == []
    assert len(outcome.single.steps) >= 8


@pytest.mark.parametrize("name", [*ALL, *PLAIN])
def test_rank_0_prints_the_numbers_of_the_whole_data_set(outcomes: dict[str, Outcome], name: str) -> None:
    if APART.get(name) == _DRAWN or name in SHOWS_BATCHES | SHOWS_TIMES:
        pytest.skip("its numbers are of draws, of single batches, of the clock, or a run's own")
    outcome = outcomes[name]
    assert outcome.ranks[0].stdout == outcome.single.stdout != ""
