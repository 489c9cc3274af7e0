"""Every message that a conversion can give is given by the conversion of an example."""

import ast
import contextlib
import dataclasses
import functools
import importlib
import re
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import test_honesty
import test_refuse
from messages import EXAMPLES, FROM_TABLES, NEVER_SHOWN
from rule_examples import converted, script
from scripts import converted as converted_in

import ddpify
from ddpify import Conversion, DdpifyError, Options
from ddpify.facts.interpret import machine
from ddpify.rules import refuse
from ddpify.rules.registry import RULES

pytestmark = pytest.mark.xdist_group("examples")
PACKAGE = Path(ddpify.__file__).parent
SPEAK_OF_SCRIPTS = ("rules", "facts", "launchers/spawn.py", "plan.py", "conversion.py", "comments.py", "draft.py")
PROSE = re.compile(r"(?<![\w.])[A-Za-z'-]+,? [a-z'-]+,? [a-z'-]+(?![\w.(\[])")
OF_PYTHON = re.compile(r"\b(for|import|if|else|lambda)\b")


def templates(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The lines and the fixed parts of the messages that a module makes: its strings that hold three words in a row, and are no code."""
    tree = ast.parse(text)
    apart = {id(n.value) for n in ast.walk(tree) if isinstance(n, (ast.Expr, ast.Attribute))}  # docstrings, and lists of words to split
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart |= {id(n) for n in node.values}
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(n, ast.Name) and n.id in ("EXAMPLES", "TITLE") for target in targets for n in ast.walk(target)):
            apart |= {id(n) for n in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in apart or not isinstance(node, (ast.Constant, ast.JoinedStr)):
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        fixed = [str(n.value) if isinstance(n, ast.Constant) and isinstance(n.value, str) else None for n in parts]
        if _is_prose("".join("x1" if part is None else part for part in fixed)):
            yield node.lineno, tuple(part for part in fixed if part is not None)


def _is_prose(text: str) -> bool:
    if "\\" in text or not PROSE.search(OF_PYTHON.sub("()", text)):  # a regular expression, or no sentence
        return False
    for code in (text, f"({text})", f"{text}\n    pass"):
        with contextlib.suppress(SyntaxError):
            ast.parse(code)
            return False
    return True


def shows(said: str, template: tuple[str, ...]) -> bool:
    """Whether a text that was given holds the fixed parts of a message, in their order."""
    place = 0
    for part in template:
        place = said.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


@functools.cache
def given() -> frozenset[str]:
    """All that the conversions of the examples give to be read."""
    texts: set[str] = set()
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(machine, "_BUDGET", 4000):  # a script too large is a short one
        for number, (text, options, files) in enumerate(_scripts()):
            place = Path(folder) / str(number)
            for name, content in {**files, "train.py": text}.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(content)
            texts |= _said(lambda place=place, options=options: ddpify.convert(place / "train.py", options))
        tables = [importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("table_*.py"))]
        scripts = {title: script for table in tables for title, script in table.SCRIPTS.items()}
        for title in FROM_TABLES:
            texts |= _said(lambda title=title: converted_in(scripts[title], Path(folder) / title))
    for example in (example for rule in RULES for example in rule.EXAMPLES):
        texts |= _said(functools.partial(converted, script(example.before, example.frame), example.options))
    texts |= _said(lambda: ddpify.convert(Path(__file__).parent / "project" / "tools" / "train.py"))
    return frozenset(texts)


def _scripts() -> Iterator[tuple[str, Options, dict[str, str]]]:
    for shown in EXAMPLES.values():
        yield shown.text, dataclasses.replace(shown.options, whole_batches="never"), shown.files  # each rule's own messages
    for told in test_honesty.SCRIPTS.values():
        files = {n: textwrap.dedent(t).lstrip() for n, t in (told if isinstance(told, dict) else {"train.py": told}).items()}
        yield files.pop("train.py"), Options(whole_batches="never"), files
    refused = [text for _, text in test_refuse.REFUSED.values()] + [e.before for rule in refuse.RULES for e in rule.EXAMPLES]
    for text in (*refused, *test_refuse.DRIVEN.values(), *test_refuse.DISTRIBUTED.values(), *test_refuse.UNTRAINED.values()):
        yield text, Options(), {}


def _said(convert: functools.partial[Conversion]) -> set[str]:
    try:
        done = convert()
    except DdpifyError as error:
        return {error.title, error.hint}
    changes = {text for c in done.changes for text in (c.why, c.without)}
    return changes | {text for f in done.findings for text in (f.message, f.fix)} | {done.reason, done.install}


@functools.cache
def not_shown() -> list[tuple[str, str]]:
    """The messages of the package that no example shows, each with its place."""
    out = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(SPEAK_OF_SCRIPTS):
            for line, template in templates(path.read_text(encoding="utf-8")):
                if not any(shows(said, template) for said in given()):
                    out.append((f"{name}:{line}", "{}".join(template)))
    return out


def test_every_message_is_shown_by_an_example() -> None:
    never = {text for texts in NEVER_SHOWN.values() for text in texts}
    assert [(place, text) for place, text in not_shown() if text not in never] == []
    assert never - {text for _, text in not_shown()} == set()


def test_a_new_message_is_found() -> None:
    text = 'def f(name):\n    """Not this one."""\n    yield f"`{name}` differs between the ranks", "write it by hand", "x for x in y"\n'
    assert list(templates(text)) == [(3, ("`", "` differs between the ranks")), (3, ("write it by hand",))]
    assert shows("`x` differs between the ranks", ("`", "` differs between the ranks"))
    assert not shows("`x` is the same on all ranks", ("`", "` differs between the ranks"))
