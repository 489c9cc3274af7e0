"""What is known of a setting in two places of a script can, or cannot, be true at once."""

import pytest

from ddpify.facts.interpret.settings import TRUE, excluded
from ddpify.facts.model import Lit

NET, OTHER = Lit("net", 1), Lit("other", 2)
POSSIBLE = [
    ((NET, "a", True), (NET, "a", True)),
    ((NET, "a", True), (OTHER, "b", True)),
    ((NET, "a", False), (NET, "b", False)),
    ((NET, "a", True), (NET, "b", False)),
    ((NET, TRUE, True), (NET, "a", True)),
    ((NET, TRUE, True), (NET, "a", False)),
    ((NET, TRUE, False), (NET, None, True)),
    ((NET, TRUE, False), (NET, "a", False)),
]
IMPOSSIBLE = [
    ((NET, "a", True), (NET, "a", False)),
    ((NET, "a", True), (NET, "b", True)),
    ((NET, TRUE, True), (NET, TRUE, False)),
    ((NET, TRUE, True), (NET, None, True)),
    ((NET, TRUE, True), (NET, "", True)),
    ((NET, TRUE, False), (NET, "a", True)),
]


@pytest.mark.parametrize(("one", "other"), POSSIBLE)
def test_both_may_be_true(one: tuple[Lit, object, bool], other: tuple[Lit, object, bool]) -> None:
    assert not excluded(frozenset([one]), frozenset([other]))
    assert not excluded(frozenset([other]), frozenset([one]))


@pytest.mark.parametrize(("one", "other"), IMPOSSIBLE)
def test_one_excludes_the_other(one: tuple[Lit, object, bool], other: tuple[Lit, object, bool]) -> None:
    assert excluded(frozenset([one, (OTHER, "c", True)]), frozenset([other]))
    assert excluded(frozenset([other]), frozenset([one]))
