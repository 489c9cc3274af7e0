"""What makes conversions of projects fast, as far as it can be seen without a clock."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path

import big_project
import libcst
import pytest

import ddpify
from ddpify import progress
from ddpify.apply.rewrite import _parse
from ddpify.facts.assumed import AssumedEdits
from ddpify.facts.interpret.machine import Machine
from ddpify.facts.memory import Memory, Version
from ddpify.facts.model import Ext, Value, just
from ddpify.facts.origins import Origin, union
from ddpify.facts.runs import run
from ddpify.project import load

LINES = 1500


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    return big_project.write(tmp_path, LINES)


def test_the_made_up_project_has_thirty_modules_and_converts(entry: Path) -> None:
    texts = big_project.files()
    assert sum(bool(text) for name, text in texts.items() if name != "train.py") == 30
    assert 6000 <= sum(len(text.splitlines()) for text in texts.values()) < 6500
    done = ddpify.convert(entry)
    assert done.exit_code == 0
    assert {module.path.name for module in done.edited} == {"loaders.py", "train.py", "evaluate.py", "ddp_utils.py"}


def test_modules_without_edits_are_never_parsed_by_libcst(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    _parse.cache_clear()  # what another test has parsed
    parse = libcst.parse_module
    monkeypatch.setattr(libcst, "parse_module", lambda text, *more: (parsed.append(text), parse(text, *more))[1])
    done = ddpify.convert(entry)
    texts = [done.source.text, *(module.source.text for module in done.modules if not module.added)]
    changed = [done.source.text, *(module.source.text for module in done.edited if not module.added)]
    assert sorted(text for text in parsed if text in texts) == sorted(changed)  # each once
    assert len(texts) > 30 > len(changed) > 3


def test_modules_without_edits_are_parsed_once_for_the_input_and_the_output(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = ddpify.project.parse
    monkeypatch.setattr(ddpify.project, "parse", lambda source, shown: (parsed.append(shown), parse(source, shown))[1])
    done = ddpify.convert(entry)
    twice = {Path(name) for name in parsed if parsed.count(name) > 1}
    assert twice == {entry, *(module.path for module in done.edited if not module.added)}


def test_what_was_run_is_not_run_again(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Machine] = []
    once = Machine.run
    monkeypatch.setattr(Machine, "run", lambda self: (seen.append(self), once(self))[1])
    project = load(entry)
    assert run(project) is run(project)
    assert run(project, AssumedEdits(ignore_dp=True)) is not run(project)
    assert len(seen) == 2


# --- memory ------------------------------------------------------------------------------------------------------------------


def _joined(states: list[dict[tuple[str, str], Value]]) -> dict[tuple[str, str], Value]:
    out: dict[tuple[str, str], Value] = {}
    for state in states:
        for key, value in state.items():
            out[key] = out[key] | value if key in out else value
    return out


@pytest.mark.parametrize("seed", range(40))
def test_versions_of_memory_are_what_copies_would_be(seed: int) -> None:
    draw = random.Random(seed)
    memory, plain = Memory(), dict[tuple[str, str], Value]()
    kept: list[tuple[Version, dict[tuple[str, str], Value]]] = []
    for _ in range(300):
        step = draw.random()
        if step < 0.5:
            key, value = (draw.choice("abcd"), draw.choice("xyz")), just(Ext(str(draw.randrange(9))))
            memory[key] = plain[key] = value
        elif step < 0.7:
            kept.append((memory.fork(), dict(plain)))
        elif kept and step < 0.85:
            version, copy = draw.choice(kept)
            memory.restore(version)
            plain = dict(copy)
        elif kept:
            chosen = draw.choices(kept, k=draw.randint(1, 4))
            memory.join([version for version, _ in chosen])
            plain = _joined([copy for _, copy in chosen])
        assert dict(memory) == plain
        assert dict(memory.of("a")) == {name: value for (owner, name), value in plain.items() if owner == "a"}


def test_what_holds_both_of_two_sets_is_not_made_again() -> None:
    large = frozenset(Origin("drawn", i) for i in range(100))
    part, other = frozenset(list(large)[:60]), frozenset(Origin("time", i) for i in range(50))
    assert union(large, part) is large
    assert union(large, other) is union(large, other) == large | other
    assert Value(origins=large) | Value(origins=part) == Value(origins=large)


# --- progress ----------------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Standard error that is, or is not, a terminal."""

    def __init__(self, is_one: bool) -> None:
        super().__init__()
        self.is_one = is_one

    def isatty(self) -> bool:
        return self.is_one


def _told(monkeypatch: pytest.MonkeyPatch, entry: Path, is_one: bool, after: float) -> str:
    error = Terminal(is_one)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(progress, "AFTER", after)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with progress.shown():
        ddpify.convert(entry)
    return error.getvalue()


def test_a_terminal_shows_what_is_being_done_and_then_nothing(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _told(monkeypatch, entry, True, 0.0)
    assert "utils/log.py" in text
    assert "planning" in text
    assert text.endswith("\r\x1b[K")
    assert "\n" not in text


def test_a_short_conversion_shows_nothing(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _told(monkeypatch, entry, True, 1000.0) == ""


def test_what_is_no_terminal_gets_nothing(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _told(monkeypatch, entry, False, 0.0) == ""
