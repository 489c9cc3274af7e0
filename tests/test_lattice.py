"""Placements form a lattice: joining them is associative, commutative, idempotent and monotone, and Unknown is on top."""

from hypothesis import given
from hypothesis import strategies as st

from ddpify.placement.lattice import REPLICATE, Partial, PerRank, Placement, Shard, Unknown, join

_SOURCES = st.frozensets(st.sampled_from(("train", "test")), max_size=2)
_WHYS = st.frozensets(st.sampled_from(("the clock", "psutil")), max_size=2)
PLACEMENTS: st.SearchStrategy[Placement] = st.one_of(
    st.just(REPLICATE),
    st.builds(Shard, _SOURCES, st.sampled_from((0, 1, None))),
    st.builds(Partial, st.sampled_from(("mean", "sum", "count", "weighted")), _SOURCES),
    st.builds(PerRank, _WHYS),
    st.builds(Unknown, _WHYS),
)


def at_most(one: Placement, other: Placement) -> bool:
    """Whether `one` claims at least what `other` does."""
    return join(one, other) == other


@given(PLACEMENTS, PLACEMENTS, PLACEMENTS)
def test_joins_are_associative(a: Placement, b: Placement, c: Placement) -> None:
    assert join(join(a, b), c) == join(a, join(b, c))


@given(PLACEMENTS, PLACEMENTS)
def test_joins_are_commutative(a: Placement, b: Placement) -> None:
    assert join(a, b) == join(b, a)


@given(PLACEMENTS)
def test_joins_are_idempotent(a: Placement) -> None:
    assert join(a, a) == a


@given(PLACEMENTS, PLACEMENTS, PLACEMENTS)
def test_joins_are_monotone(a: Placement, b: Placement, c: Placement) -> None:
    assert at_most(a, join(a, c))
    assert at_most(join(a, c), join(join(a, b), c))


@given(PLACEMENTS, _WHYS)
def test_unknown_is_on_top(a: Placement, why: frozenset[str]) -> None:
    assert isinstance(join(a, Unknown(why)), Unknown)


@given(PLACEMENTS)
def test_what_is_replicated_adds_nothing(a: Placement) -> None:
    assert join(REPLICATE, a) == a
