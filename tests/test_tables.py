"""Tables of scripts, each converted and executed: ranks must train, print, write and decide as the one process did."""

import ast
import collections
import functools
import importlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import table_unused
import table_wraps
from ranks import Case, Outcome, run_many
from scripts import Script, converted, modules, text, told, write
from whole_batches import WHOLE as WHOLE_BATCHES

import ddpify
from ddpify import Conversion
from ddpify.records import replace
from ddpify.rules.base import Safety

TABLES = [importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("table_*.py"))]
SCRIPTS: dict[str, Script] = {title: script for table in TABLES for title, script in table.SCRIPTS.items()}
assert len(SCRIPTS) == sum(len(table.SCRIPTS) for table in TABLES), "two scripts have one title"
WHOLE = [title for title, script in SCRIPTS.items() if not script.told]
TOLD = [title for title, script in SCRIPTS.items() if script.told]
RUNS = [(title, ranks) for title in WHOLE for ranks in SCRIPTS[title].ranks]
_NOT_THERE = {"a package's loss of labels in a list and in an array"}  # it imports what is no package
AT_ONCE = 60
"""How many scripts one process of the tests works on, before it may leave the next ones to another."""
PART = {title: i // AT_ONCE for i, title in enumerate(SCRIPTS)}


def by_title(titles: Iterable[str]) -> list[object]:
    return [pytest.param(title, id=title, marks=pytest.mark.xdist_group(f"tables {PART[title]}")) for title in titles]


def by_run(runs: Iterable[tuple[str, int]]) -> list[object]:
    return [pytest.param(*run, id=f"{run[0]}-{run[1]}", marks=pytest.mark.xdist_group(f"tables {PART[run[0]]}")) for run in runs]


@pytest.fixture(scope="module")
def conversion(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Conversion]:
    """The conversion of a script, made once, and kept while its part is worked on, without what it would be made anew from."""
    folder = tmp_path_factory.mktemp("scripts")
    number = {title: str(i) for i, title in enumerate(SCRIPTS)}
    return functools.lru_cache(AT_ONCE)(lambda title: replace(converted(SCRIPTS[title], folder / number[title]), again=None))


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest, conversion: Callable[[str], Conversion]) -> Callable[[str, int], Outcome]:
    """What was seen of a script on so many ranks. All of its part that are asked about run in one group."""
    asked = [item.callspec.params for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    wanted = {(params.get("title"), params.get("ranks")) for params in asked}

    @functools.lru_cache(3)  # on two, three and four ranks
    def of_part(part: int, ranks: int) -> dict[str, Outcome]:
        titles = [title for title, n in RUNS if n == ranks and PART[title] == part and (title, n) in wanted]
        return dict(zip(titles, run_many([_case(title, conversion(title)) for title in titles], ranks), strict=True))

    return lambda title, ranks: of_part(PART[title], ranks)[title]


def _asked(title: str) -> Script:
    """A script of which whole batches are asked for."""
    script = SCRIPTS[title]
    return replace(script, told=(), options=replace(script.options, whole_batches="from-rank-zero"))


def _case(title: str, done: Conversion) -> Case:
    script = SCRIPTS[title]
    return Case(text(script), done.code, script.args, script.files | script.stand_ins, modules(done))


@pytest.mark.parametrize("title", by_title(SCRIPTS))
def test_what_is_left_to_do_is_told(conversion: Callable[[str], Conversion], title: str) -> None:
    done = conversion(title)
    findings = [(f.code, f.line, f.message) for f in done.findings if f.level >= Safety.REVIEW]
    findings += [(c.code, c.line, c.why) for c in done.changes if c.level >= Safety.REVIEW]
    assert {code for code, _, _ in findings} >= set(SCRIPTS[title].told)
    if not SCRIPTS[title].told:
        assert findings == []
    assert (done.status, done.exit_code) == ("convert", int(bool(SCRIPTS[title].told)))


@pytest.fixture(scope="module")
def on_whole_batches(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Conversion, Outcome | None]]:
    """The conversion of a script in which rank 0 reads whole batches for all, and what was seen of it. All of a part run in one group."""
    asked = {i.callspec.params.get("title") for i in request.session.items if isinstance(i, pytest.Function) and hasattr(i, "callspec")}
    folder = tmp_path_factory.mktemp("scripts")

    @functools.lru_cache(1)
    def of_part(part: int) -> dict[str, tuple[Conversion, Outcome | None]]:
        titles = [title for title in TOLD if title in WHOLE_BATCHES & asked and PART[title] == part]
        done = [replace(converted(_asked(t), folder / f"{part}.{i}"), again=None) for i, t in enumerate(titles)]
        runs = run_many([_case(title, each) for title, each in zip(titles, done, strict=True) if title not in _NOT_THERE], 2)
        seen = dict(zip((t for t in titles if t not in _NOT_THERE), runs, strict=True))
        return {title: (each, seen.get(title)) for title, each in zip(titles, done, strict=True)}

    return lambda title: of_part(PART[title])[title]


@pytest.mark.parametrize("title", by_title(title for title in TOLD if title in WHOLE_BATCHES))
def test_whole_batches_leave_nothing_to_do(
    on_whole_batches: Callable[[str], tuple[Conversion, Outcome | None]], title: str, tmp_path: Path
) -> None:
    done, seen = on_whole_batches(title)
    assert (done.status, done.exit_code) == ("convert", 0)
    files = {**modules(done), "train.py": done.code}
    again = ddpify.convert(write(SCRIPTS[title], tmp_path, files), _asked(title).options)
    assert (again.code, again.exit_code) == (done.code, 0)
    if seen is not None:
        assert seen.problems(SCRIPTS[title].apart) == []
        assert len(seen.single.steps) >= 3


@pytest.mark.parametrize("title", by_title(title for title in TOLD if title not in WHOLE_BATCHES))
def test_something_is_left_to_do_on_whole_batches_too(title: str, tmp_path: Path) -> None:
    assert converted(_asked(title), tmp_path).exit_code == 1


@pytest.mark.parametrize("title", by_title(table_unused.SCRIPTS | table_wraps.SCRIPTS))
def test_only_models_that_leave_parts_out_look_for_them(conversion: Callable[[str], Conversion], title: str) -> None:
    rests = title in table_unused.RESTING | table_wraps.RESTING
    assert ("find_unused_parameters=True" in conversion(title).code) == rests


@pytest.mark.parametrize("title", by_title(SCRIPTS))
def test_nothing_is_defined_twice(conversion: Callable[[str], Conversion], title: str) -> None:
    before, after = (
        collections.Counter(n.name for n in ast.parse(t).body if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
        for t in (conversion(title).source.text, conversion(title).code)
    )
    assert {name for name, count in (after - before).items() if before[name] or count > 1} == set()


@pytest.mark.parametrize("title", by_title(WHOLE))
def test_converting_again_changes_nothing(conversion: Callable[[str], Conversion], title: str, tmp_path: Path) -> None:
    script, done = SCRIPTS[title], conversion(title)
    again = ddpify.convert(write(script, tmp_path, {**modules(done), "train.py": done.code}), script.options)
    assert (again.code, again.exit_code) == (done.code, 0)


@pytest.mark.parametrize(("title", "ranks"), by_run(RUNS))
def test_ranks_do_what_the_original_did(outcome: Callable[[str, int], Outcome], title: str, ranks: int) -> None:
    seen = outcome(title, ranks)
    assert seen.problems(SCRIPTS[title].apart) == []
    assert len(seen.single.steps) >= 12


@pytest.mark.parametrize(("title", "ranks"), by_run(run for run in RUNS if SCRIPTS[run[0]].same))
def test_numbers_of_the_whole_data_set_are_the_originals(outcome: Callable[[str, int], Outcome], title: str, ranks: int) -> None:
    seen, same = outcome(title, ranks), SCRIPTS[title].same
    original = told(seen.single.stdout, same)
    assert original
    assert told(seen.ranks[0].stdout, same) == original
