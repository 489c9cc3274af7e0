"""Tables of scripts, each converted and executed: ranks must train, print, write and decide as the one process did."""

import ast
import collections
import importlib
from pathlib import Path

import pytest
from ranks import Case, Outcome, run_many
from scripts import Script, converted, modules, text, told

import ddpify
from ddpify import Conversion
from ddpify.rules.base import Safety

TABLES = [importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("table_*.py"))]
SCRIPTS: dict[str, Script] = {title: script for table in TABLES for title, script in table.SCRIPTS.items()}
assert len(SCRIPTS) == sum(len(table.SCRIPTS) for table in TABLES), "two scripts have one title"
WHOLE = [title for title, script in SCRIPTS.items() if not script.told]
RUNS = [(title, ranks) for title in WHOLE for ranks in SCRIPTS[title].ranks]


class Conversions(dict[str, Conversion]):
    """The conversions of the scripts, each made when it is first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders = folders

    def __missing__(self, title: str) -> Conversion:
        self[title] = converted(SCRIPTS[title], self.folders.mktemp("script"))
        return self[title]


@pytest.fixture(scope="module")
def conversions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Conversion]:
    return Conversions(tmp_path_factory)


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, conversions: dict[str, Conversion]) -> dict[tuple[str, int], Outcome]:
    params = [item.callspec.params for item in request.session.items if "outcomes" in getattr(item, "fixturenames", ())]
    asked = {(p["title"], p["ranks"]) for p in params if {"title", "ranks"} <= p.keys()}
    out: dict[tuple[str, int], Outcome] = {}
    for ranks in sorted({ranks for _, ranks in asked}):
        titles = [title for title, n in RUNS if n == ranks and (title, n) in asked]
        scripts = {title: SCRIPTS[title] for title in titles}
        cases = [
            Case(text(s), conversions[title].code, s.args, s.files | s.stand_ins, modules(conversions[title]))
            for title, s in scripts.items()
        ]
        out |= {(title, ranks): one for title, one in zip(titles, run_many(cases, ranks), strict=True)}
    return out


@pytest.mark.parametrize("title", SCRIPTS)
def test_what_is_left_to_do_is_told(conversions: dict[str, Conversion], title: str) -> None:
    done = conversions[title]
    findings = [(f.code, f.line, f.message) for f in done.findings if f.level >= Safety.REVIEW]
    findings += [(c.code, c.line, c.why) for c in done.changes if c.level >= Safety.REVIEW]
    assert {code for code, _, _ in findings} >= set(SCRIPTS[title].told)
    if not SCRIPTS[title].told:
        assert findings == []
    assert (done.status, done.exit_code) == ("convert", int(bool(SCRIPTS[title].told)))


@pytest.mark.parametrize("title", SCRIPTS)
def test_nothing_is_defined_twice(conversions: dict[str, Conversion], title: str) -> None:
    before, after = (
        collections.Counter(n.name for n in ast.parse(t).body if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
        for t in (conversions[title].source.text, conversions[title].code)
    )
    assert {name for name, count in (after - before).items() if before[name] or count > 1} == set()


@pytest.mark.parametrize("title", WHOLE)
def test_converting_again_changes_nothing(conversions: dict[str, Conversion], title: str, tmp_path: Path) -> None:
    script = SCRIPTS[title]
    again = _again(conversions[title], script, tmp_path)
    assert (again.code, again.exit_code) == (conversions[title].code, 0)


def _again(done: Conversion, script: Script, folder: Path) -> Conversion:
    converted(script, folder)
    for name, content in {**modules(done), "train.py": done.code}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(str(content))
    return ddpify.convert(folder / "train.py", script.options)


@pytest.mark.parametrize(("title", "ranks"), RUNS)
def test_ranks_do_what_the_original_did(outcomes: dict[tuple[str, int], Outcome], title: str, ranks: int) -> None:
    outcome = outcomes[title, ranks]
    assert outcome.problems(SCRIPTS[title].apart) == []
    assert len(outcome.single.steps) >= 12


@pytest.mark.parametrize(("title", "ranks"), [run for run in RUNS if SCRIPTS[run[0]].same])
def test_numbers_of_the_whole_data_set_are_the_originals(outcomes: dict[tuple[str, int], Outcome], title: str, ranks: int) -> None:
    outcome, same = outcomes[title, ranks], SCRIPTS[title].same
    original = told(outcome.single.stdout, same)
    assert original
    assert told(outcome.ranks[0].stdout, same) == original
