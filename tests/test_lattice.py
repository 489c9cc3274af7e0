"""What a value may be on either of two ways: joining values is associative, commutative, idempotent and monotone, and Unknown stays."""

from hypothesis import given
from hypothesis import strategies as st

from ddpify.facts.model import NOTHING, Value
from ddpify.facts.origins import Origin
from ddpify.placement.lattice import REPLICATE, Partial, PerRank, Placement, Shard, Unknown
from ddpify.placement.shape import Shape
from ddpify.placement.values import placement

LOADERS = ("train", "test")
_BATCHES = st.frozensets(st.sampled_from([Origin("batch", loader) for loader in LOADERS]), min_size=1)
_OTHERS = st.frozensets(
    st.sampled_from([Origin("time"), Origin("process", "psutil"), Origin("unknown", "theirs.f"), Origin("random", "numpy")])
)
_SCALES = st.sampled_from(("sample", "mean", "sum", "count", "total", "weighted", "other"))
_SHAPES = st.one_of(st.none(), st.builds(lambda dims, axis: Shape(dims=dims, axis=axis), st.sampled_from((1, 2)), st.sampled_from((0, 1))))
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.just(NOTHING),
    st.builds(lambda others: Value(origins=others), _OTHERS),
    st.builds(
        lambda batches, others, scale, shape: Value(origins=batches | others, scale=scale, shape=shape), _BATCHES, _OTHERS, _SCALES, _SHAPES
    ),
)


def claims(value: Value) -> Placement:
    return placement(value, LOADERS)


def at_most(one: Placement, other: Placement) -> bool:
    """Whether `one` claims at least what `other` does."""
    if isinstance(one, Shard) and isinstance(other, Shard):
        return one.sources <= other.sources and other.axis in (one.axis, None)
    if isinstance(one, Partial) and isinstance(other, Partial):
        return one.op == other.op and one.sources <= other.sources
    if isinstance(one, PerRank) and isinstance(other, PerRank):
        return one.why <= other.why
    return one == REPLICATE or isinstance(other, Unknown) or (isinstance(one, PerRank) and isinstance(other, Shard | Partial))


def alike(one: Value, other: Value) -> bool:
    """Whether two values claim the same; which of a number's dimensions was that of the samples is no claim."""
    return one.origins == other.origins and claims(one) == claims(other) and (one.scale != "sample" or one.shape == other.shape)


@given(VALUES, VALUES, VALUES)
def test_joins_are_associative(a: Value, b: Value, c: Value) -> None:
    assert alike((a | b) | c, a | (b | c))


@given(VALUES, VALUES)
def test_joins_are_commutative(a: Value, b: Value) -> None:
    assert alike(a | b, b | a)


@given(VALUES)
def test_joins_are_idempotent(a: Value) -> None:
    assert a | a == a


@given(VALUES, VALUES)
def test_a_join_claims_no_more_than_either(a: Value, b: Value) -> None:
    assert at_most(claims(a), claims(a | b)), (claims(a), claims(a | b))


@given(VALUES, VALUES, VALUES)
def test_joins_are_monotone(a: Value, b: Value, c: Value) -> None:
    assert at_most(claims(a | c), claims(a | b | c))


@given(VALUES)
def test_what_is_not_known_stays_unknown(a: Value) -> None:
    assert isinstance(claims(a | Value(origins=frozenset([Origin("unknown", "theirs.g")]))), Unknown)


@given(VALUES)
def test_nothing_adds_nothing(a: Value) -> None:
    assert NOTHING | a == a
