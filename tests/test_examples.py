"""Every example is converted, held against its committed result, and executed beside its original."""

from pathlib import Path

import pytest
from ranks import Case, Outcome, launch, run_many

import ddpify

ROOT = Path(__file__).parents[1] / "examples"
NAMES = ["dataparallel_toplevel", "imagenet_style", "trainer_class"]

# lines of numbers that are the whole data set's, and so the same on one process and on two
WHOLE = {"dataparallel_toplevel": ("epoch", "saved"), "imagenet_style": (" * Acc",), "trainer_class": ("epoch",)}
COUNT = {"dataparallel_toplevel": 3, "imagenet_style": 3, "trainer_class": 4}  # and how many there are
# findings that are no proof of a fault, by code: what a user is told to look at
EXPECTED: dict[str, set[str]] = {"dataparallel_toplevel": set(), "imagenet_style": set(), "trainer_class": set()}


def original(name: str) -> str:
    return (ROOT / name / "train.py").read_text()


def converted(name: str) -> str:
    return (ROOT / name / "train_ddp.py").read_text()


def whole(stdout: str, name: str) -> list[str]:
    return [line for line in stdout.splitlines() if line.startswith(WHOLE[name])]


@pytest.mark.parametrize("name", NAMES)
def test_the_conversion_is_the_committed_one(name: str, update_golden: bool) -> None:
    done = ddpify.convert(ROOT / name / "train.py")
    assert done.status == "convert"
    if update_golden:
        (ROOT / name / "train_ddp.py").write_bytes(done.bytes)
    assert done.code == converted(name)
    open_ends = {finding.code for finding in done.findings if finding.level.name in ("REVIEW", "MANUAL")}
    assert open_ends == EXPECTED[name]
    assert done.exit_code == (1 if EXPECTED[name] else 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_conversion_changes_nothing(name: str) -> None:
    again = ddpify.convert(ROOT / name / "train_ddp.py")
    assert (again.code, again.exit_code) == (converted(name), 0)


def resumed(outcome: Outcome) -> Case:
    """The image script once more, from the checkpoint that its original wrote."""
    files = {"checkpoint.pth.tar": outcome.single.files["checkpoint.pth.tar"]}
    return Case(outcome.case.original, outcome.case.converted, ["--resume", "checkpoint.pth.tar", "--epochs", "5"], dict(files))


@pytest.fixture(scope="module", params=[2, 1], ids=["two ranks", "no launcher"])
def outcomes(request: pytest.FixtureRequest) -> dict[str, Outcome]:
    cases = [Case(original(name), converted(name)) for name in NAMES]
    done = dict(zip(NAMES, run_many(cases, request.param), strict=True))
    (done["resumed"],) = run_many([resumed(done["imagenet_style"])], request.param)
    return done


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_as_the_original_step_by_step(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name].problems() == []
    assert len(outcomes[name].single.steps) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_the_whole_data_set_are_the_originals(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert len(whole(outcome.single.stdout, name)) == COUNT[name]
    assert whole(outcome.ranks[0].stdout, name) == whole(outcome.single.stdout, name)


def test_the_originals_checkpoint_is_resumed(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["resumed"]
    assert outcome.problems() == []
    assert "=> loaded checkpoint 'checkpoint.pth.tar' (epoch 3)" in outcome.ranks[0].stdout
    assert len(outcome.single.steps) == 16
    assert whole(outcome.ranks[0].stdout, "imagenet_style") == whole(outcome.single.stdout, "imagenet_style")


def test_the_original_resumes_the_conversions_checkpoint(outcomes: dict[str, Outcome]) -> None:
    done = outcomes["imagenet_style"]
    own, converted_one = ({"checkpoint.pth.tar": run.files["checkpoint.pth.tar"]} for run in (done.single, done.ranks[0]))
    original = done.case.original
    again = Case(original, original, ["--resume", "checkpoint.pth.tar", "--epochs", "5"], own, converted_one)
    (outcome,) = run_many([again], 1)
    assert outcome.problems() == []
    assert outcome.single.steps


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_under_torchrun_as_a_user_runs_it(name: str, tmp_path: Path) -> None:
    script = tmp_path / "train_ddp.py"
    script.write_text(converted(name))
    done = launch(script)
    assert done.returncode == 0 or "exitcode  : -6" in done.stderr, done.stderr  # gloo may abort after the work (pytorch#190489)
    assert len(whole(done.stdout, name)) == COUNT[name]
