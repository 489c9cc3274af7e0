"""What a reviewer may leave out: ids that stay, subsets that are applied, lines that know their changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ddpify.attribution import FileDiff, attributed
from ddpify.choices import leaving_out
from ddpify.conversion import Conversion, convert
from ddpify.errors import DdpifyError
from ddpify.options import Options

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*/train.py"))
ASKED = [Options(), Options(launcher="spawn"), Options(amp="torch"), Options(amp="apex-O1", launcher="launch")]


GIVEN = [(path, options) for i, path in enumerate(EXAMPLES) for options in (ASKED[0], ASKED[1 + i % (len(ASKED) - 1)])]


@pytest.fixture(scope="module", params=GIVEN, ids=lambda g: f"{g[0].parent.name} {g[1].command_line()}")
def conversion(request: pytest.FixtureRequest) -> Conversion:
    return convert(*request.param)


@pytest.fixture(scope="module")
def files(conversion: Conversion) -> tuple[FileDiff, ...]:
    """The files of the conversion, each line with its changes."""
    return attributed(conversion)


def optional(conversion: Conversion) -> list[str]:
    return [change.id for change in conversion.changes if change.without]


def test_ids_are_the_changes_own(conversion: Conversion) -> None:
    ids = [change.id for change in conversion.changes]
    assert len(set(ids)) == len(ids)
    assert all(i.startswith(c.code) for i, c in zip(ids, conversion.changes, strict=True))


def test_ids_stay_when_other_lines_come() -> None:
    text = EXAMPLES[0].read_text()
    longer = text.replace("\nimport torch\n", "\nimport json\n\nimport torch\n", 1)
    assert longer != text
    ids = {c.id for c in convert(text).changes}
    assert len(ids & {c.id for c in convert(longer).changes}) >= len(ids) - 1  # the set-up may come before another line


def test_every_changed_line_has_a_change(conversion: Conversion, files: tuple[FileDiff, ...]) -> None:
    ids = {change.id for change in conversion.changes}
    for file in files:
        for line in file.lines:
            assert bool(line.changes) == (line.kind != " ")
            assert set(line.changes) <= ids
        assert "".join(line.text for line in file.lines if line.kind != "-") == conversion.code
        assert "".join(line.text for line in file.lines if line.kind != "+") == conversion.original
        assert [line.old for line in file.lines if line.kind != "+"] == list(range(1, conversion.original.count("\n") + 1))
    hunks = [line for file in files for hunk in file.hunks() for line in hunk]
    assert [f"{line.kind}{line.text}" for line in hunks] == [
        line for line in conversion.diff().splitlines(keepends=True) if not line.startswith(("---", "+++", "@@"))
    ]


def test_each_change_that_edits_owns_a_line(conversion: Conversion, files: tuple[FileDiff, ...]) -> None:
    owned = {i for file in files for line in file.lines for i in line.changes}
    assert {change.id for change in conversion.changes if change.edits} <= owned


def test_what_is_left_out_is_not_done(conversion: Conversion) -> None:
    for one in optional(conversion):
        part = conversion.without([one])
        assert part.code != conversion.code
        ast.parse(part.code)
        assert one not in {change.id for change in part.changes}
    none = conversion
    for one in optional(conversion):
        none = none.without([one])
    assert not optional(none)
    assert none.code == conversion.without(optional(conversion)).code
    assert "".join(line.text for file in attributed(none) for line in file.lines if line.kind != "-") == none.code


def test_the_core_stands_together(conversion: Conversion) -> None:
    for change in conversion.changes:
        if not change.without:
            with pytest.raises(DdpifyError, match="cannot be left out"):
                conversion.without([change.id])


def test_codes_and_ids() -> None:
    done = convert(next(p for p in EXAMPLES if p.parent.name == "imagenet_style"))
    prints = set(optional(done))
    assert leaving_out(done.changes, select=["DDP3"]) == prints
    assert leaving_out(done.changes, select=["DDP501"]) == frozenset()
    assert leaving_out(done.changes, skip=[min(prints)]) == {min(prints)}
    with pytest.raises(DdpifyError, match="DDP304") as refused:
        leaving_out(done.changes, ignore=["DDP304"])
    assert "--eval replicate" in refused.value.hint
    with pytest.raises(DdpifyError, match="there is no change"):
        leaving_out(done.changes, skip=["DDP304-nothing"])
