"""How a conversion's diff looks for every choice of what can be left out, in pieces that depend on a few changes each.

A block is a run of changed lines. Which changes may be left out of it is known from its lines; changes that share blocks are
neighbours, and of a few neighbours every choice is made and cut at the unchanged lines around the block. Neighbours too many for
that, such as the prints of a long report, are left out together. Blocks without common changes do not depend on each other, so one
conversion serves all of them; where that turns out not to hold, changes that need the same helper are neighbours, too, and at the
last nothing is offered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ddpify.attribution import FileDiff, Line
from ddpify.progress import doing
from ddpify.report.diff import opcodes, split

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

_MOST = 4  # switches that one block may depend on: 16 variants


@dataclass(frozen=True)
class Switch:
    """What a reader turns off together."""

    ids: tuple[str, ...]

    @property
    def key(self) -> str:
        """The switch's name."""
        return self.ids[0]


@dataclass
class Block:
    """Neighbouring changed lines. `switches` are what they depend on; of `variants`, bit n of an index says that switch n is off."""

    lines: tuple[Line, ...]
    start: int  # among the lines after the conversion
    end: int
    switches: tuple[Switch, ...] = ()
    variants: dict[int, tuple[Line, ...]] = field(default_factory=dict)

    def mask(self, left_out: frozenset[str]) -> int:
        """The index of the variant without some changes."""
        return sum(1 << bit for bit, switch in enumerate(self.switches) if left_out.issuperset(switch.ids))


@dataclass
class Pieces:
    """A changed file as unchanged lines and blocks, in order."""

    file: FileDiff
    parts: list[Line | Block]

    @property
    def blocks(self) -> list[Block]:
        """The changed parts."""
        return [part for part in self.parts if isinstance(part, Block)]


def variants(conversion: Conversion, files: Sequence[FileDiff]) -> tuple[list[Pieces], tuple[Switch, ...]]:
    """The files in pieces, each with its variants, and all switches; `files` are those of `attributed` for this conversion."""
    optional = {change.id: {*change.needs, *change.imports} for change in conversion.changes if change.without}
    for bonded in (False, True) if optional else ():
        pieces = [_pieces(file) for file in files]
        switches = _switched(pieces, optional, bonded)
        if _vary(conversion, pieces, switches):
            return pieces, tuple(switch for together in switches for switch in together)
    return [_varied(_pieces(file)) for file in files], ()


def _pieces(file: FileDiff) -> Pieces:
    parts: list[Line | Block] = []
    run: list[Line] = []
    number = 0
    for line in file.lines:
        if line.kind != " ":
            run.append(line)
            continue
        if run:
            parts.append(_block(run, number))
            number, run = parts[-1].end, []  # type: ignore[union-attr]
        parts.append(line)
        number += 1
    return Pieces(file, [*parts, _block(run, number)] if run else parts)


def _block(run: Sequence[Line], start: int) -> Block:
    return Block(tuple(run), start, start + sum(line.kind == "+" for line in run))


def _varied(pieces: Pieces) -> Pieces:
    for block in pieces.blocks:
        block.variants = {0: block.lines}
    return pieces


def _switched(pieces: Sequence[Pieces], optional: dict[str, set[str]], bonded: bool) -> list[tuple[Switch, ...]]:
    """The switches, neighbours together, noted in their blocks; `bonded` where those that need something are neighbours, too."""
    group = {change: {change} for change in optional}

    def join(ids: Sequence[str]) -> None:
        together = set().union(*(group[i] for i in ids))
        group.update(dict.fromkeys(together, together))

    needing = [i for i, needs in optional.items() if needs] if bonded else []
    if needing:
        join(needing)
    blocks = [(block, [i for i in optional if any(i in line.changes for line in block.lines)]) for p in pieces for block in p.blocks]
    for _, ids in blocks:
        if ids:
            join(ids)
    made: dict[int, tuple[Switch, ...]] = {}
    for together in group.values():
        mine = tuple(i for i in optional if i in together)
        made.setdefault(id(together), tuple(Switch((i,)) for i in mine) if len(mine) <= _MOST else (Switch(mine),))
    for block, ids in blocks:
        owners = ids or needing  # what many share, such as an import, is not there without all of them
        block.switches = made[id(group[owners[0]])] if owners else ()
    return list(made.values())


def _vary(conversion: Conversion, pieces: Sequence[Pieces], switches: Sequence[tuple[Switch, ...]]) -> bool:
    """Give every block its variants; whether they are the whole truth."""
    for each in pieces:
        _varied(each)
    for mask in range(1, 1 << max(map(len, switches))):
        doing("trying what can be left out")
        masks = [mask & ((1 << len(together)) - 1) for together in switches]
        pairs = zip(masks, switches, strict=True)
        ids = frozenset(i for m, together in pairs for bit, switch in enumerate(together) if m >> bit & 1 for i in switch.ids)
        texts = _after(conversion.remade(ids, "moved"))
        for each in pieces:
            before = [line.text for line in each.file.lines if line.kind != "+"]
            if not _fits(each, texts.get(each.file.shown, before), ids):
                return False
    offered = frozenset(i for together in switches for switch in together for i in switch.ids)
    for block in (block for each in pieces for block in each.blocks):
        if len({tuple((line.kind, line.text) for line in lines) for lines in block.variants.values()}) == 1:
            block.switches, block.lines = (), _core(block.lines, offered)
            block.variants = {0: block.lines}
    return True


def _after(conversion: Conversion) -> dict[str, list[str]]:
    """The lines of each file that is changed."""
    files = [(conversion.shown, conversion.source.bom, conversion.code)]
    files += [(module.shown, module.source.bom, module.code) for module in conversion.edited]
    return {shown: split("\ufeff" * bom + code) for shown, bom, code in files}


def _fits(pieces: Pieces, text: Sequence[str], left_out: frozenset[str]) -> bool:
    """Note what of a text belongs to each block; whether that and the unchanged lines are all of it."""
    base = [line.text for line in pieces.file.lines if line.kind != "-"]
    equal = [(k, m, i - k) for kind, i, _, k, m in opcodes(text, base) if kind == "equal"]
    starts, ends = [k for k, _, _ in equal], [m for _, m, _ in equal]
    whole: list[str] = []
    for part in pieces.parts:
        if isinstance(part, Line):
            whole.append(part.text)
            continue
        at = bisect_left(ends, part.start)  # the equal lines that end where the block starts, or later
        first = 0 if part.start == 0 else part.start + equal[at][2] if at < len(equal) and starts[at] < part.start else None
        at = bisect_left(ends, part.end + 1)
        last = len(text) if part.end == len(base) else part.end + equal[at][2] if at < len(equal) and starts[at] <= part.end else None
        if first is None or last is None or first > last:
            return False
        lines = text[first:last]
        whole += lines
        mask = part.mask(left_out)
        if mask not in part.variants:
            part.variants[mask] = _lines(part, lines, left_out)
        if [line.text for line in part.variants[mask] if line.kind != "-"] != list(lines):
            return False
    return whole == list(text)


def _lines(block: Block, after: Sequence[str], left_out: frozenset[str]) -> tuple[Line, ...]:
    """A variant of a block. Its lines belong to what they belong to in the block, or to what else is changed there."""
    old = [line for line in block.lines if line.kind == "-"]
    new = [line for line in block.lines if line.kind == "+"]
    known: dict[int, tuple[str, ...]] = {}
    for kind, i, j, k, _ in opcodes([line.text for line in new], after):
        if kind == "equal":
            known |= {k + by: _remaining(new[i + by], left_out) for by in range(j - i)}
    others = tuple(dict.fromkeys(i for line in block.lines for i in _remaining(line, left_out)))
    first = old[0].old or 1 if old else 1
    out: list[Line] = []
    for kind, i, j, k, m in opcodes([line.text for line in old], after):
        if kind == "equal":
            gone = [tuple(c for c in line.changes if c in left_out) for line in old[i:j]]
            out += [Line(" ", old[i + by].text, first + i + by, None, gone[by]) for by in range(j - i)]
            continue
        out += [Line("-", line.text, line.old, None, _remaining(line, left_out) or others) for line in old[i:j]]
        out += [Line("+", after[at], None, None, known.get(at) or others) for at in range(k, m)]
    return tuple(out)


def _core(lines: Sequence[Line], offered: frozenset[str]) -> tuple[Line, ...]:
    """Lines that stay whatever is left out: they belong to the rest."""
    others = tuple(dict.fromkeys(i for line in lines for i in _remaining(line, offered)))
    return tuple(replace(line, changes=_remaining(line, offered) or others or line.changes) for line in lines)


def _remaining(line: Line, left_out: frozenset[str]) -> tuple[str, ...]:
    return tuple(i for i in line.changes if i not in left_out)
