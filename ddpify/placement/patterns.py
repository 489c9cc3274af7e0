"""Transfer rules for einops, whose patterns name the dimensions: `rearrange(x, "b (h w) c -> b c h w", h=8)`.

Reference: https://einops.rocks/api/rearrange/
"""

from __future__ import annotations

import re
import string

from ddpify.placement import transfer
from ddpify.placement.shape import COUPLED, NO_CLAIM, ROWS, UNKNOWN, Argument, Result, Scale, Shape, Use, shape_of
from ddpify.placement.transfer import REORDERED, of_constants

_Term = tuple[str, ...]  # the names that one dimension is made of
_REST: _Term = ("...",)


def rearranged(use: Use) -> Result:
    """`rearrange`, `repeat`: every dimension of the tensor is one of the result, alone or with others."""
    return _patterned(use, None)


def reduced(use: Use) -> Result:
    """`reduce`: the dimensions that the result does not name are averaged, added up, or else."""
    how = use.get(2, "reduction").literal
    over: dict[object, Scale] = {"mean": "mean", "sum": "sum"}
    return _patterned(use, over.get(how))


def einsum(use: Use) -> Result:
    """`einsum(x, y, "batch i, i j -> batch j")`: as torch's, but for words in place of letters, and the pattern behind the tensors."""
    *tensors, last = use.args
    if not isinstance(last.literal, str):
        return of_constants(use.operands())
    words = re.findall(r"[A-Za-z_]\w*", last.literal)
    letters = dict(zip(dict.fromkeys(words), string.ascii_letters, strict=False))
    equation = re.sub(r"[A-Za-z_]\w*", lambda word: letters.get(word[0], "?"), last.literal)
    return transfer.einsum(use.over(Argument(literal=equation), *tensors))


def packed(use: Use) -> Result:
    """`pack([x, ...], "b * d")`: the dimensions between those that are named as one, and the sizes that they had."""
    tensors, pattern = use.get(0, "tensors"), use.get(1, "pattern").literal
    items = tensors.items if tensors.items is not None else (tensors,)
    if not any(i.scale for i in items):
        return Result()
    names = pattern.split() if isinstance(pattern, str) else []
    axes = {shape_of(i).axis if i.scale == "sample" else None for i in items}
    if len(axes) > 1 or "*" not in names or (axis := axes.pop()) is None or axis >= names.index("*"):
        return NO_CLAIM
    for each in items:
        use.proves(shape_of(each), len(names) - 1)
    return Result("sample", parts=(Result("sample", Shape(None, len(names), axis)), Result()))


def unpacked(use: Use) -> Result:
    """`unpack(x, sizes, "b * d")`: the tensors that were packed."""
    x, pattern = use.get(0, "tensor"), use.get(2, "pattern").literal
    names = pattern.split() if isinstance(pattern, str) else []
    if x.scale not in ROWS or use.get(1, "packed_shapes").scale is not None or "*" not in names[shape_of(x).axis + 1 :]:
        return of_constants((x,))
    use.proves(shape_of(x), len(names))
    use.shows.append((UNKNOWN, len(names) - 1))
    return Result(x.scale, Shape(UNKNOWN, 0, shape_of(x).axis, shape_of(x).sure, several=True))


def _patterned(use: Use, over_samples: Scale | None) -> Result:
    x, pattern = use.get(0, "tensor"), use.get(1, "pattern").literal
    sizes = {k: v for k, v in use.keywords.items() if k not in ("tensor", "pattern", "reduction")}
    if any(s.scale not in (None, "count") for s in sizes.values()):
        return NO_CLAIM
    counts = {k for k, v in sizes.items() if v.scale == "count"}
    if not isinstance(pattern, str) or x.items is not None:
        return NO_CLAIM if counts or x.items is not None else of_constants((x,))
    shape = shape_of(x)
    left, right = _sides(pattern, shape)
    if x.scale not in ROWS:
        return _spread(x, right, counts)
    name = _of_samples(use, shape, left, set(sizes) - counts)
    if name is None or counts - {name}:
        return NO_CLAIM
    if _REST not in left:
        use.proves(shape, len(left))
    return _named(x, shape, right, name, over_samples, len(left) if _REST in left else None)


def _named(x: Argument, shape: Shape, right: list[_Term], name: str, over_samples: Scale | None, beside: int | None) -> Result:
    """The result, by where the name of the samples stands in it; `beside`: how many terms the pattern has with a "..."."""
    known = _REST not in right
    at = next((i for i, term in enumerate(right) if name in term), None)
    if at is None:
        found: Scale | None = "weighted" if over_samples == "mean" and x.scale == "chosen" else over_samples
        return COUPLED if found is None else Result(found, Shape(None, len(right)) if known else Shape(UNKNOWN))
    if not known and at > right.index(_REST):
        return NO_CLAIM
    counted = Shape(UNKNOWN, 0, at, shape.sure) if beside is None else shape.resized(len(right) - beside, at)
    made = Shape(None, len(right), at, shape.sure) if known else counted
    return Result(x.scale, made, frozenset() if right[at] == (name,) else REORDERED)


def _spread(x: Argument, right: list[_Term], counts: set[str]) -> Result:
    """Of a constant: the same for each sample where as many are asked for as the batch has."""
    if not counts:
        return Result(x.scale, Shape(None, len(right)) if x.scale is None and _REST not in right else None)
    at = [i for i, term in enumerate(right) if counts & set(term)]
    if x.scale is not None or len(counts) > 1 or len(at) != 1 or _REST in right[: at[0]]:
        return NO_CLAIM
    made = Shape(UNKNOWN, 0, at[0]) if _REST in right else Shape(None, len(right), at[0])
    return Result("sample", made, frozenset() if len(right[at[0]]) == 1 else REORDERED)


def _of_samples(use: Use, shape: Shape, left: list[_Term], constant: set[str]) -> str | None:
    """What a pattern calls the samples; None where that is not known.

    In a dimension of several names they are the first, where the sizes of the others are given.
    """
    if _REST in left and shape.axis >= (at := left.index(_REST)):
        behind = len(left) - 1 - at
        return "..." if shape.axis == at and use.at_least(shape, at + 1 + behind) else None
    if shape.axis >= len(left) or (shape.base is None and _REST not in left and shape.dims != len(left)):
        return None
    term = left[shape.axis]
    if term in ((), ("1",)) or (len(term) > 1 and term[0] in constant):
        return None
    return term[0]


def _sides(pattern: str, shape: Shape) -> tuple[list[_Term], list[_Term]]:
    """What a pattern says that there is, and what is made of it; "..." by a name for each of its dimensions where their number is known."""
    before, _, after = pattern.partition("->")
    left, right = _terms(before), _terms(after)
    if shape.base is None and _REST in left:
        rest = tuple(f"...{i}" for i in range(shape.dims - len(left) + 1))
        left, right = ([t for term in side for t in _without_rest(term, rest)] for side in (left, right))
    return left, right


def _without_rest(term: _Term, rest: _Term) -> list[_Term]:
    if term == _REST:
        return [(name,) for name in rest]
    return [tuple(n for name in term if name for n in (rest if name == "..." else (name,)))]


def _terms(side: str) -> list[_Term]:
    """The dimensions of one side of a pattern."""
    out: list[_Term] = []
    group: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").replace("…", "...").split():
        if word == "(":
            group = []
        elif word == ")":
            out.append(tuple(group or ()) if group != ["..."] else ("", "..."))  # one dimension, of all the rest
            group = None
        elif group is not None:
            group.append(word)
        else:
            out.append((word,))
    return out
