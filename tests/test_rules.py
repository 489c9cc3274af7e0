"""Every rule: what it says of itself, and its examples, each inside a whole script."""

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest
from rule_examples import BEGIN, END, PLACES, converted, script

import ddpify
from ddpify.report.rule import Rule, all_rules, explained, pages
from ddpify.rules.base import Change, Example
from ddpify.rules.registry import RULES

pytestmark = pytest.mark.xdist_group("examples")
SECTIONS = ("What it does:", "Why:", "Safety:", "References:")
EXAMPLES = [(rule, example) for rule in RULES for example in rule.EXAMPLES]
IDS = [f"{rule.CODE}: {example.title}" for rule, example in EXAMPLES]


def piece(text: str) -> list[str]:
    """The statements between the two strings that mark the piece."""
    begin, end = (ast.dump(ast.parse(mark).body[0]) for mark in (BEGIN, END))
    for node in ast.walk(ast.parse(text)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            dumps = [ast.dump(statement) for statement in block] if isinstance(block, list) else []
            if begin in dumps:
                return dumps[dumps.index(begin) + 1 : dumps.index(end)]
    raise AssertionError(f"the piece is not in one block any more:\n{text}")


def dumped(text: str) -> list[str]:
    """The statements of a piece, which may return."""
    return [ast.dump(statement) for statement in ast.parse(text).body]


def lines_of(text: str) -> range:
    """The numbers of the lines that the piece takes in the script: all of them, where it is a whole script."""
    lines = [line.strip() for line in text.splitlines()]
    return range(lines.index(BEGIN) + 2, lines.index(END) + 1) if BEGIN in lines else range(1, len(lines) + 1)


def touches(change: Change, lines: range) -> bool:
    """Whether one of the statements and expressions that a change edits lies in these lines."""
    nodes = [edit.node for edit in change.edits]
    return any(node.lineno <= lines[-1] and (node.end_lineno or node.lineno) >= lines[0] for node in nodes)


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_a_rule_says_what_it_does(rule: Rule) -> None:
    text = rule.text
    places = [text.find(f"\n{section}") for section in SECTIONS]
    assert -1 not in places and places == sorted(places)
    assert "https://" in text[places[-1] :]
    first, rest = text.split("\n", 1)
    assert first.endswith(".") and not rest.split("\n", 1)[0]
    assert rule.title and not rule.title.endswith(".")


def test_the_codes_are_each_ones_own_and_in_families() -> None:
    codes = [rule.CODE for rule in RULES]
    assert len(set(codes)) == len(codes)
    family = {"process": "DDP1", "model": "DDP2", "data": "DDP3", "loop": "DDP4", "precision": "DDP4", "io": "DDP5"}
    assert [(rule.CODE, rule.__name__) for rule in RULES if not rule.CODE.startswith(family[rule.__name__.split(".")[-2]])] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.CODE)
def test_examples_of_what_is_left_alone_come_first_and_are_more(rule: ModuleType) -> None:
    left = [example.after is None for example in rule.EXAMPLES]
    assert left == sorted(left, reverse=True)
    assert left.count(True) > left.count(False) > 0


def test_titles_are_sentences_of_their_own() -> None:
    assert len(set(IDS)) == len(IDS)
    assert [title for title in (example.title for _, example in EXAMPLES) if " " not in title or title.endswith(".")] == []


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=IDS)
def test_an_example_is_what_it_says(rule: ModuleType, example: Example) -> None:
    assert example.frame in (*PLACES, "")
    text = script(example.before, example.frame)
    ast.parse(text)
    done = converted(text, example.options)
    assert "DDP901" not in {finding.code for finding in done.findings}
    touching = [change for change in done.changes if change.code == rule.CODE and touches(change, lines_of(text))]
    if example.after is None:
        assert touching == []
        assert not example.frame or piece(done.code) == dumped(example.before)
    else:
        assert touching or not example.frame
        if example.frame:
            assert piece(done.code) == dumped(example.after), done.code
        else:  # what is said of a whole script is a part of what became of it
            assert example.after in done.code
            assert rule.CODE in {change.code for change in done.changes}
    again = ddpify.convert(done.code, example.options)
    assert again.code == done.code


def test_every_code_that_is_told_is_explained() -> None:
    said = {code for path in Path(ddpify.__file__).parent.rglob("*.py") for code in re.findall(r"\"(DDP\d{3})\"", path.read_text())}
    assert said - all_rules().keys() == set()


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_its_explanation_shows_all_of_it(rule: Rule) -> None:
    text = explained(rule)
    assert text.startswith(f"{rule.code}  {rule.title}\n")
    for example in rule.examples:
        assert f"\n--- {example.title}" in text
        assert f"\n{example.before.rstrip()}\n" in text
    assert max(map(len, text.splitlines())) <= 140


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_its_page_shows_all_of_it(rule: Rule) -> None:
    text = pages([rule])
    assert text.startswith(f"## {rule.code}: {rule.title}\n")
    sections = re.findall(r"^\*\*(.+?)\.\*\*", text, flags=re.MULTILINE)
    assert sections[0] == "What it does" and sections[-1] == "References" and {"Why", "Safety"} <= set(sections)
    assert [f"{name}:" for name in sections if f"\n{name}:" not in rule.text] == []
    words = re.sub(r"[*<>.:]|\s", "", text).lower()
    assert [line for line in rule.text.splitlines() if re.sub(r"[*<>.:]|\s", "", line).lower() not in words] == []
    assert text.count("```") == 2 * sum(1 + (example.after is not None) for example in rule.examples)
