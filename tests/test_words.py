"""What is written in the package, its templates and its documentation is in the words of the field."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    path
    for folder in ("ddpify", "templates", "examples")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".j2", ".md", ".html", ".js", ".css") and "__pycache__" not in path.parts
]
PRIVATE = re.compile(
    r"(?<![a-z])(told|dealt|settles?|turned_over|hoist(s|ed)?|taken_out|served|meetings?|residues?|speaks?)(?![a-z])", flags=re.IGNORECASE
)


def found(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if PRIVATE.search(line)]


@pytest.mark.parametrize("path", [ROOT / "README.md", *FILES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_word_means_something_here_alone(path: Path) -> None:
    assert found(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", ["told = 1", "def _settle(run):", "# batches are dealt to ranks", "Rank 0 speaks.", "TOLD = 2"])
def test_such_a_word_is_found(line: str) -> None:
    assert found(line) == [line]


@pytest.mark.parametrize("line", ["def reserved():", "unsettled = 1", "observed", "the sampler returned it"])
def test_another_word_is_none(line: str) -> None:
    assert found(line) == []
