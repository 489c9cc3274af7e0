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
from ddpify.options import PLACEMENTS
from ddpify.rehearse.compare import Pair, Row, parting
from ddpify.rehearse.history import Event, Rank
from ddpify.rules.base import Claim, Finding

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
    return {place: (f"{finding.file}:{finding.line}", claim.said) for place, finding, claim in _claims(conversion)}


def places_of(conversion: Conversion, function: str) -> tuple[Place, ...]:
    """The places where a conversion relies on what is said of a function, by its dotted path."""
    return tuple(place for place, _, claim in _claims(conversion) if claim.of == function)


def _claims(conversion: Conversion) -> Iterator[tuple[Place, Finding, Claim]]:
    files = {conversion.shown: conversion.path, **{m.shown: m.path for m in conversion.modules}}
    for finding in conversion.findings:
        claim, path = finding.claim, files.get(finding.file)
        if claim is not None and path is not None:
            yield Place(path.absolute(), claim.start, claim.end), finding, claim


def place_of_line(path: Path, text: str, line: int) -> Place | None:
    """The place of what is said of a line of a file; None where no statement there computes a value."""
    statements = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    value = value_of_line(max(statements, key=lambda n: n.lineno)) if statements else None
    if value is None:
        return None
    return Place(path.absolute(), (value.lineno, value.col_offset), (value.end_lineno or value.lineno, value.end_col_offset or 0))


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
    compared: set[int] = set()
    for number, time, events in _together(pair):
        place, word = said.get(number, ("", ""))
        by = _apart(word, [e["parts"] for e in events]) if word else None
        if by is None:
            continue
        compared.add(number)
        if by > 10 * pair.tolerance.relative:
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


def measured(pair: Pair) -> dict[int, frozenset[str]]:
    """What may be said of the value at each place, by its number, as the run saw it: what holds each time, while the two train alike.

    Places where all ranks had the same value each time are not among them: such values show nothing.
    """
    found: dict[int, frozenset[str]] = {}
    differ: set[int] = set()
    step = parting(pair.single.first, pair.ranks.first, pair.tolerance).step
    for number, _, events in _together(pair, step):
        sides = [e["parts"] for e in events]
        apart = {word: _apart(word, sides) for word in PLACEMENTS}
        holds = frozenset(word for word, by in apart.items() if by is not None and by <= 10 * pair.tolerance.relative)
        found[number] = found.get(number, holds) & holds
        differ |= {number} if any(side != sides[1] for side in sides[2:]) else set()
    return {number: words for number, words in found.items() if number in differ}


def _together(pair: Pair, until: int | None = None) -> Iterator[tuple[int, int, list[Event]]]:
    """Values that can be held against each other: the place's number, how often it came before, and the original's and each rank's."""
    sides = [_values(rank, until) for rank in (pair.single.first, *pair.ranks.ranks.values())]
    for key in sides[0]:
        if all(len(side.get(key, ())) == len(sides[0][key]) for side in sides):  # else each rank comes there for its own batches
            for time, events in enumerate(zip(*(side[key] for side in sides), strict=True)):
                if _shared(events, pair.nproc):
                    yield key[0], time, list(events)


def _values(rank: Rank, until: int | None) -> dict[tuple[int, tuple[int, ...]], list[Event]]:
    """What a rank's places gave, in order, for each place and the loader's pass that it was in; `until` so many steps were done."""
    out: dict[tuple[int, tuple[int, ...]], list[Event]] = defaultdict(list)
    steps = 0
    for event in rank.of("value", "step"):
        steps += event["kind"] == "step"
        if event["kind"] == "value" and (until is None or steps <= until):
            out[event["number"], tuple(event["batch"][:2])].append(event)
    return out


def _shared(events: Sequence[Event], ranks: int) -> bool:
    """Whether the ranks have equal shares of the original's batch, or there is none."""
    rows = [event["batch"][2] for event in events]
    return all(share * ranks == rows[0] for share in rows[1:]) or not rows[0]


def _apart(word: str, sides: Sequence[Sequence[Part]]) -> float | None:
    """How far the ranks' values are from what is said that they are to the original's, the first; None where nothing can be compared."""
    if word == "per-rank":
        return None
    if len({len(side) for side in sides}) > 1:
        return math.inf
    each = [_part_apart(word, parts) for parts in zip(*sides, strict=True)]
    return max((by for by in each if by is not None), default=None)


def _part_apart(word: str, parts: Sequence[Part]) -> float | None:
    if any("unknown" in part for part in parts):
        return None
    if any("text" in part for part in parts):
        return None if word not in ("replicate", "coupled") else 0.0 if all(part == parts[0] for part in parts) else math.inf
    one, *others = (part["digest"] for part in parts)
    assert isinstance(one, list)
    if word in ("mean", "sum"):
        sums = [math.fsum(side[i] for side in others) / (len(others) if word == "mean" else 1) for i in range(4)]  # type: ignore[index]
        return _difference(one[:4], sums, one[4])
    if word == "shard":
        if not parts[0]["rows"] or not all(part["whole"] for part in parts):
            return None
        rows = sorted(parts[0]["rows"]), sorted(r for part in parts[1:] for r in part["rows"])  # type: ignore[call-overload,attr-defined]
        return math.inf if len(rows[0]) != len(rows[1]) else _difference(*rows, max(map(abs, rows[0]), default=0.0))
    return max(_difference(one, side, one[4]) for side in others)  # type: ignore[arg-type]


def _difference(a: Sequence[float], b: Sequence[float], size: float) -> float:
    if any(math.isnan(x) != math.isnan(y) for x, y in zip(a, b, strict=True)):
        return math.inf
    gaps = (abs(x - y) for x, y in zip(a, b, strict=True) if x != y and not math.isnan(x))
    return max(gaps, default=0.0) / max(size, 1e-12)
