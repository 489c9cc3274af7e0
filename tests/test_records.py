"""Records behave like dataclasses: what the package asks of them is compared with what `dataclasses` gives."""

import dataclasses
from types import ModuleType

import pytest

from ddpify import records


def classes(of: ModuleType) -> list[type]:
    """The same classes, declared by either module."""

    @of.dataclass(frozen=True)
    class Plain:
        a: int
        b: str = "b"
        c: list[int] = of.field(default_factory=list, compare=False)

    @of.dataclass(frozen=True, slots=True)
    class Slotted:
        a: int
        b: tuple[int, ...] = ()

    @of.dataclass(frozen=True, slots=True)
    class Empty:
        pass

    @of.dataclass
    class Open:
        a: int
        b: str = of.field(init=False)

        def __post_init__(self) -> None:
            self.b = str(self.a)

    @of.dataclass(frozen=True)
    class Derived(Plain):
        d: int = 4

    @of.dataclass(eq=False)
    class Itself:
        a: int = 1

    return [Plain, Slotted, Empty, Open, Derived, Itself]


OURS, THEIRS = classes(records), classes(dataclasses)
GIVEN = [((1,), {}), ((1, "x"), {}), ((), {"a": 2}), ((), {}), ((1, "x", [3]), {}), ((1,), {"d": 5}), ((1, 2, 3, 4, 5), {}), ((), {"z": 1})]


def outcome(cls: type, given: tuple) -> str:
    """What an instance shows, or that there is none."""
    try:
        return repr(cls(*given[0], **given[1])).replace("classes.<locals>.", "")
    except TypeError:
        return "TypeError"


@pytest.mark.parametrize("ours, theirs", list(zip(OURS, THEIRS, strict=True)), ids=[c.__name__ for c in OURS])
def test_instances_are_made_shown_compared_and_hashed_alike(ours: type, theirs: type) -> None:
    for given in GIVEN:
        assert outcome(ours, given) == outcome(theirs, given)
    fitting = [g for g in GIVEN if outcome(ours, g) != "TypeError"]
    for one in fitting:
        for other in fitting:
            mine, dataclass = ours(*one[0], **one[1]), theirs(*one[0], **one[1])
            assert (mine == ours(*other[0], **other[1])) == (dataclass == theirs(*other[0], **other[1]))
            assert mine != "another kind"
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    if ours.__hash__ is not None and ours.__name__ != "Itself":
        assert hash(ours(*fitting[0][0], **fitting[0][1])) == hash(ours(*fitting[0][0], **fitting[0][1]))


def test_a_frozen_record_refuses_assignments() -> None:
    made = OURS[0](1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.a
    assert made.a == 1


def test_a_default_is_made_anew_each_time() -> None:
    assert OURS[0](1).c is not OURS[0](1).c


def test_replace_gives_another_record_of_the_same_class() -> None:
    made = OURS[4](1, d=7)
    other = records.replace(made, a=2)
    assert (type(other), other.a, other.b, other.d, made.a) == (OURS[4], 2, "b", 7, 1)
    assert records.replace(THEIRS[0](1), a=3).a == 3  # of a dataclass, too


def test_fields_are_named_in_their_order() -> None:
    assert [f.name for f in records.fields(OURS[4](1))] == ["a", "b", "c", "d"]
