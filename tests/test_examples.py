"""Every example is converted, held against its committed result, and executed beside its original."""

from pathlib import Path

import pytest
from ranks import Case, Outcome, launch, run_many

import ddpify

ROOT = Path(__file__).parents[1] / "examples"
NAMES = ["dataparallel_toplevel", "distillation", "gan", "imagenet_style", "language_model", "trainer_class"]

# lines of numbers that are the whole data set's, and so the same on one process and on two
WHOLE = {
    "dataparallel_toplevel": ("epoch", "saved"),
    "distillation": ("teacher", "student", "best"),
    "gan": ("epoch", "generator"),
    "imagenet_style": ("tested", "best"),
    "language_model": ("epoch", "best"),
    "trainer_class": ("epoch",),
}
COUNT = {  # and how many there are
    "dataparallel_toplevel": 3,
    "distillation": 9,
    "gan": 4,
    "imagenet_style": 4,
    "language_model": 5,
    "trainer_class": 4,
}
# noise that each rank draws for itself, and what takes its place on both sides where steps are compared
DRAWN = {"gan": ("torch.randn(len(images), args.latent, device=device)", "torch.cos(9 * images.flatten(1)[:, : args.latent])")}
# findings that are no proof of a fault, by code: what a user is told to look at
EXPECTED: dict[str, set[str]] = {name: set() for name in NAMES}


def original(name: str) -> str:
    return (ROOT / name / "train.py").read_text()


def converted(name: str) -> str:
    return (ROOT / name / "train_ddp.py").read_text()


def case(name: str) -> Case:
    """The example with no noise that depends on the rank."""
    drawn, fixed = DRAWN.get(name, ("", ""))
    assert original(name).count(drawn) == converted(name).count(drawn) == 1 or not drawn
    texts = (text.replace(drawn, fixed) if drawn else text for text in (original(name), converted(name)))
    return Case(*texts)


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


# example: its checkpoint, the epochs it then goes on to, what it says of it, and the steps it takes
RESUMED = {
    "imagenet_style": ("runs/last.pt", "5", "going on from runs/last.pt: 3 epochs done", 26),
    "language_model": ("checkpoints/last.pt", "6", "resumed after epoch 3", 14),
}


def resumed(outcome: Outcome, name: str) -> Case:
    """A script once more, from the checkpoint that its original wrote."""
    path, epochs, _, _ = RESUMED[name]
    return Case(outcome.case.original, outcome.case.converted, ["--resume", path, "--epochs", epochs], {path: outcome.single.files[path]})


def taught(outcome: Outcome) -> Case:
    """The distillation once more, with the teacher that its original wrote."""
    files = {"teacher.pt": outcome.single.files["teacher.pt"]}
    return Case(outcome.case.original, outcome.case.converted, [], dict(files))


@pytest.fixture(scope="module", params=[2, 1], ids=["two ranks", "no launcher"])
def outcomes(request: pytest.FixtureRequest) -> dict[str, Outcome]:
    cases = [case(name) for name in NAMES]
    done = dict(zip(NAMES, run_many(cases, request.param), strict=True))
    again = run_many([*(resumed(done[name], name) for name in RESUMED), taught(done["distillation"])], request.param)
    return done | dict(zip([*(f"{name}, resumed" for name in RESUMED), "taught"], again, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_as_the_original_step_by_step(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name].problems() == []
    assert len(outcomes[name].single.steps) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_the_whole_data_set_are_the_originals(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert len(whole(outcome.single.stdout, name)) == COUNT[name]
    assert whole(outcome.ranks[0].stdout, name) == whole(outcome.single.stdout, name)


@pytest.mark.parametrize("name", RESUMED)
def test_the_originals_checkpoint_is_resumed(outcomes: dict[str, Outcome], name: str) -> None:
    outcome, (_, _, said, steps) = outcomes[f"{name}, resumed"], RESUMED[name]
    assert outcome.problems() == []
    assert said in outcome.ranks[0].stdout
    assert len(outcome.single.steps) == steps
    assert whole(outcome.ranks[0].stdout, name) == whole(outcome.single.stdout, name)


def test_a_teacher_that_the_original_wrote_is_loaded(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["taught"]
    assert outcome.problems() == []
    assert len(outcome.single.steps) == 80
    assert whole(outcome.ranks[0].stdout, "distillation") == whole(outcome.single.stdout, "distillation")


def test_the_original_resumes_the_conversions_checkpoint(outcomes: dict[str, Outcome]) -> None:
    done = outcomes["imagenet_style"]
    own, converted_one = ({"runs/last.pt": run.files["runs/last.pt"]} for run in (done.single, done.ranks[0]))
    original = done.case.original
    again = Case(original, original, ["--resume", "runs/last.pt", "--epochs", "5"], own, converted_one)
    (outcome,) = run_many([again], 1)
    assert outcome.problems() == []
    assert outcome.single.steps


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_under_torchrun_as_a_user_runs_it(name: str, tmp_path: Path) -> None:
    script = tmp_path / "train_ddp.py"
    script.write_text(converted(name))
    done = launch(script)
    assert done.returncode == 0 or "SIGABRT" in done.stderr, done.stderr
    assert len(whole(done.stdout, name)) == COUNT[name]
