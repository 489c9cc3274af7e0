"""What values were computed from: sets of origins, which grow to thousands in a deep model and of which few differ.

What is asked of a set more than once is kept until a conversion is over.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Origin(NamedTuple):
    """What a value was computed from: a kind of source, and which one.

    - batch: the rows that a loader gives this rank; whole: all ranks' rows of a batch; share: a loader's own batch size
    - turned: the call after which the first dimension may not be that of the samples, or which gives their places in the batch
    - coupled: where samples are combined with a number of all of a batch; thinned: a loader that may leave samples out
    - forward, graded: a model and the call of its forward, or of which only the gradient is used; parameters: a model; weight: a parameter
    - output: one of what a forward gives, and the model's parts that lead to each; sometimes: one of which no gradient is in all steps
    - apart: a forward of which some steps use other outputs than others do
    - alike: an iteration over a loader, or over something else that all ranks may have alike
    - mixed: a forward on a rank's own rows, of whose results not all are such rows
    - random, drawn, time, rank: a library's generator, a draw, the clock, the rank; index: a loop that counts
    - compared: some comparison; sizes: those of rows; divided: where a number of samples is divided
    - single: where one sample of a batch is taken, which has no dimension of the samples
    - edges, graph: a loader of graphs, of whose nodes or graphs these are numbers; rows: how many rows there are; last: the last number
    - scaled: a gradient scaler; kept: the statement that keeps a value; from: any other object
    """

    kind: str
    of: object = None


Origins = frozenset[Origin]
NONE: frozenset[Any] = frozenset()

_UNIONS: dict[tuple[Origins, Origins], Origins] = {}
_KINDS: dict[Origins, dict[str, frozenset[Any]]] = {}
_PARTS: dict[tuple[Origins, bool, tuple[str, ...]], Origins] = {}
_SMALL = 24


def union(one: Origins, other: Origins) -> Origins:
    """Both sets in one; `one` itself where it holds the other."""
    if other is one or not other:
        return one
    if not one:
        return other
    if len(other) < _SMALL:
        return one if other <= one else one | other
    merged = _UNIONS.get((one, other))
    if merged is None:
        merged = one if other <= one else one | other
        merged = _UNIONS[one, other] = _UNIONS.setdefault((merged, merged), merged)
    return merged


def by_kind(origins: Origins) -> dict[str, frozenset[Any]]:
    """What the origins of each kind name."""
    found = _KINDS.get(origins)
    if found is None:
        sets: dict[str, set[Any]] = {}
        for kind, of in origins:
            sets.setdefault(kind, set()).add(of)
        found = _KINDS[origins] = {kind: frozenset(of) for kind, of in sets.items()}
    return found


def of_kind(origins: Origins, kind: str) -> frozenset[Any]:
    """What the origins of one kind name."""
    return by_kind(origins).get(kind, NONE) if origins else NONE


def without(origins: Origins, *kinds: str) -> Origins:
    """The origins of all other kinds."""
    return _part(origins, False, kinds)


def only(origins: Origins, *kinds: str) -> Origins:
    """The origins of some kinds."""
    return _part(origins, True, kinds)


def ungraded(origins: Origins) -> Origins:
    """The origins of what no gradient goes back from: its outputs get one in no step, or from something else."""
    outputs = of_kind(origins, "output")
    return without(origins, "output") | {Origin("sometimes", of) for of in outputs} if outputs else origins


def some_output(origins: Origins, name: str) -> Origins:
    """The origins of one of several outputs of a forward that have one name: the others get no gradient from it."""
    outputs = {o for o in of_kind(origins, "output") if o[1] == name}
    return origins - {Origin("output", o) for o in outputs} | {Origin("sometimes", o) for o in outputs} if outputs else origins


def apart(one: Origins, other: Origins) -> Origins:
    """The forwards of which two ways use outputs, and not the same ones."""
    first, second = (of_kind(way, "output") | of_kind(way, "sometimes") for way in (one, other))
    in_both = {o[0] for o in first} & {o[0] for o in second}
    return frozenset(Origin("apart", o[0]) for o in first ^ second if o[0] in in_both)


def _part(origins: Origins, inside: bool, kinds: tuple[str, ...]) -> Origins:
    if not origins or by_kind(origins).keys().isdisjoint(kinds):
        return NONE if inside else origins
    found = _PARTS.get((origins, inside, kinds))
    if found is None:
        found = _PARTS[origins, inside, kinds] = frozenset([o for o in origins if (o.kind in kinds) == inside])
    return found


def forget() -> None:
    """Let go of what is kept."""
    for kept in (_UNIONS, _KINDS, _PARTS):
        kept.clear()
