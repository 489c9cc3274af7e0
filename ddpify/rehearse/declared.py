"""What is said of values, held against the values themselves: those of the original and of every rank, as a run passes the place.

The expression is found in the original by its place and in the result by what is called, or by its statement, and its text is put into a
call that tells the value. A place that is not found again in the result, or that an edit has taken away, is not compared.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpify.conversion import Conversion, line_after
from ddpify.facts.tree import value_of_line
from ddpify.rehearse.compare import Pair, Row, Tolerance
from ddpify.rehearse.history import Event, Rank
from ddpify.rules.base import Claim

_TITLE = "values are as declared"
Part = dict[str, object]


@dataclass(frozen=True, order=True)
class Place:
    """An expression of a file of the user's, by the positions of its first and last character, as `ast` counts them."""

    path: Path
    start: tuple[int, int]
    end: tuple[int, int]


def claims(conversion: Conversion) -> dict[Place, tuple[str, str]]:
    """What a conversion takes as said of values: for each expression, the place as a user knows it, and the placement."""
    files = {conversion.shown: conversion.path, **{m.shown: m.path for m in conversion.modules}}
    found = ((f, f.claim, files.get(f.file)) for f in conversion.findings)
    return {_place(path, claim): (f"{f.file}:{f.line}", claim.said) for f, claim, path in found if claim is not None and path is not None}


def _place(path: Path, claim: Claim) -> Place:
    return Place(path.absolute(), claim.start, claim.end)


def instrumented(texts: Mapping[Path, str], places: Sequence[Place]) -> dict[Path, str]:
    """The texts of the original's files that hold such places, with calls that tell their values; `texts` are those before."""
    out = {}
    for path, numbered in _by_file(places).items():
        if path in texts:
            nodes = {(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset): n for n in _expressions(texts[path])}
            found = {number: nodes.get((*place.start, *place.end)) for number, place in numbered}
            out[path] = _calling(texts[path], {number: node for number, node in found.items() if node is not None})
    return out


def instrumented_result(before: Mapping[Path, str], after: Mapping[Path, str], places: Sequence[Place]) -> dict[Path, str]:
    """The same for the texts of the result, whose places are those of the original."""
    out = {}
    for path, numbered in _by_file(places).items():
        if path in before and path in after:
            line, old, new = line_after(before[path], after[path]), ast.parse(before[path]), ast.parse(after[path])
            nodes = {(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset): n for n in _expressions(before[path])}
            known = ((number, nodes.get((*place.start, *place.end))) for number, place in numbered)
            found = {number: _again(old, new, node, line) for number, node in known if node is not None}
            out[path] = _calling(after[path], {number: node for number, node in found.items() if node is not None})
    return out


def _by_file(places: Sequence[Place]) -> dict[Path, list[tuple[int, Place]]]:
    out: dict[Path, list[tuple[int, Place]]] = defaultdict(list)
    for number, place in enumerate(places):
        out[place.path].append((number, place))
    return out


def _expressions(text: str) -> Iterator[ast.expr]:
    return (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.expr))


def _again(old: ast.Module, new: ast.Module, node: ast.expr, line: Callable[[int], int]) -> ast.expr | None:
    """The expression of the result that has taken the place of one of the original; None where no single one has."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        here, there = (_calls(tree, name, at) for tree, at in ((old, node.lineno), (new, line(node.lineno))))
        at = next((i for i, n in enumerate(here) if (n.col_offset, n.end_col_offset) == (node.col_offset, node.end_col_offset)), -1)
        return there[at] if len(here) == len(there) and at >= 0 else None
    statements = [n for n in ast.walk(new) if isinstance(n, ast.stmt) and n.lineno == line(node.lineno)]
    values = [v for v in map(value_of_line, statements) if v is not None and ast.unparse(v) == ast.unparse(node)]
    return values[0] if len(values) == 1 else None


def _calls(tree: ast.Module, name: str, line: int) -> list[ast.Call]:
    found = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno == line and ast.unparse(n.func) == name)
    return sorted(found, key=lambda n: (n.col_offset, n.end_col_offset or 0))


def _calling(text: str, nodes: Mapping[int, ast.expr]) -> str:
    """A text with some of its expressions put into a call that tells what they give."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    marks = [
        ((n.lineno, n.col_offset), 1, b'__import__("ddpify_rehearsal.values").values.seen(%d, (' % number) for number, n in nodes.items()
    ]
    marks += [((n.end_lineno or n.lineno, n.end_col_offset or 0), 0, b"))") for n in nodes.values()]
    for (line, column), _, code in sorted(marks, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + code + lines[line - 1][column:]
    return b"".join(lines).decode()


# --- what they were ------------------------------------------------------------------------------------------------------
def row(pair: Pair, said: Mapping[int, tuple[str, str]]) -> Row:
    """Whether the values at places, by their numbers, are what is said of them: the place as a user knows it, and the placement."""
    sides = [_values(pair.single.first), *(_values(rank) for rank in pair.ranks.ranks.values())]
    compared: set[int] = set()
    for key in sides[0]:
        if key[0] not in said or not all(len(side.get(key, ())) == len(sides[0][key]) for side in sides):
            continue  # in an evaluation that is divided, each rank comes there for its own batches
        place, word = said[key[0]]
        for time, events in enumerate(zip(*(side[key] for side in sides), strict=True)):
            if not _shared(events, pair.nproc):
                continue
            compared.add(key[0])
            if (by := _apart(word, [e["parts"] for e in events], pair.tolerance)) is not None:
                seen = f"{place}: taken as {word}, which it is not the {time + 1}. time: relative difference {by:.1e}"
                return Row("declared", _TITLE, False, seen)
    if not compared:
        return Row(
            "declared",
            _TITLE,
            None,
            "the run did not come to what is declared, or not as often on each rank" if said else "nothing is declared",
        )
    places = ", ".join(f"{place} {word}" for number, (place, word) in said.items() if number in compared)
    return Row("declared", _TITLE, True, places)


def _values(rank: Rank) -> dict[tuple[int, tuple[int, ...]], list[Event]]:
    """What a rank's places gave, in order, for each place and the loader's pass that it was in."""
    out: dict[tuple[int, tuple[int, ...]], list[Event]] = defaultdict(list)
    for event in rank.of("value"):
        out[event["number"], tuple(event["batch"][:2])].append(event)
    return out


def _shared(events: Sequence[Event], ranks: int) -> bool:
    """Whether the ranks have equal shares of the original's batch, or there is none."""
    rows = [event["batch"][2] for event in events]
    return all(share * ranks == rows[0] for share in rows[1:]) or not rows[0]


def _apart(word: str, sides: Sequence[Sequence[Part]], tolerance: Tolerance) -> float | None:
    """How far the ranks' values are from what is said that they are to the original's, the first; None where they are it."""
    if word == "per-rank":
        return None
    if len({len(side) for side in sides}) > 1:
        return math.inf
    most = max((_part_apart(word, parts) for parts in zip(*sides, strict=True)), default=0.0)
    return most if most > 10 * tolerance.relative else None


def _part_apart(word: str, parts: Sequence[Part]) -> float:
    if any("unknown" in part for part in parts):
        return 0.0
    if any("text" in part for part in parts):
        return 0.0 if word not in ("replicate", "coupled") or all(part == parts[0] for part in parts) else math.inf
    one, *others = (part["digest"] for part in parts)
    assert isinstance(one, list)
    if word in ("mean", "sum"):
        sums = [math.fsum(side[i] for side in others) / (len(others) if word == "mean" else 1) for i in range(4)]  # type: ignore[index]
        return _difference(one[:4], sums, one[4])
    if word == "shard":
        if not all(part["whole"] for part in parts):
            return 0.0
        rows = sorted(parts[0]["rows"]), sorted(r for part in parts[1:] for r in part["rows"])  # type: ignore[call-overload,attr-defined]
        return math.inf if len(rows[0]) != len(rows[1]) else _difference(*rows, max(map(abs, rows[0]), default=0.0))
    return max(_difference(one, side, one[4]) for side in others)  # type: ignore[arg-type]


def _difference(a: Sequence[float], b: Sequence[float], size: float) -> float:
    if any(math.isnan(x) != math.isnan(y) for x, y in zip(a, b, strict=True)):
        return math.inf
    gaps = (abs(x - y) for x, y in zip(a, b, strict=True) if x != y and not math.isnan(x))
    return max(gaps, default=0.0) / max(size, 1e-12)
