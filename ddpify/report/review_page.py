"""A conversion as a page: what is left to do first, then every file's diff with the reasons beside it and a switch per choice."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ddpify import __version__
from ddpify.attribution import Line, attributed
from ddpify.choices import INSTEAD
from ddpify.errors import DdpifyError
from ddpify.report.diff import opcodes, split
from ddpify.report.highlight import escaped, highlighted
from ddpify.report.rule import Rule, all_rules
from ddpify.report.variants import Block, Pieces, Switch, variants
from ddpify.rules.base import Change, Finding, Safety
from ddpify.source import read

if TYPE_CHECKING:
    from ddpify.conversion import Conversion
    from ddpify.options import Options

CONTEXT = 3  # unchanged lines around what is shown
FOLDED = 4  # unchanged lines that are worth a fold
_LONG = 400  # characters of an unchanged line that are shown
FAMILIES = {
    "DDP1": "processes, randomness",
    "DDP2": "model, gradients",
    "DDP3": "data, evaluation",
    "DDP4": "loop, loss, precision",
    "DDP5": "output, files",
    "DDP9": "not understood",
}
LEVELS = {
    Safety.MANUAL: "not applied: to be written by hand",
    Safety.REVIEW: "not proven to train the same: to be read",
    Safety.NOTE: "trains as the original, and worth knowing",
    Safety.SAFE: "trains as the original",
}


@dataclass(frozen=True)
class Row:
    """A line as it is shown: `slot` is its place beside the other side's lines, `again` that it has the codes of the line above."""

    kind: str
    old: int | None
    new: int | None
    html: Markup
    ids: tuple[str, ...]
    codes: tuple[tuple[str, str], ...]
    again: bool
    slot: int
    mark: str


@dataclass(frozen=True)
class Way:
    """A variant of a block, by the bits of the switches that are off."""

    mask: int
    shown: bool
    rows: list[Row]


@dataclass(frozen=True)
class Changed:
    """Neighbouring changed lines in all their ways."""

    switches: tuple[str, ...]
    ways: list[Way]


@dataclass(frozen=True)
class Note:
    """A finding, where it is about a line; `number` names it on the page."""

    number: int
    finding: Finding
    title: str


@dataclass(frozen=True)
class Entry:
    """One change in a card; `others` are the changes that its switch turns off with it."""

    change: Change
    switch: str
    others: tuple[str, ...]


@dataclass
class Card:
    """Changes of a hunk that have one reason."""

    code: str
    title: str
    why: str
    level: Safety
    without: str
    instead: str
    entries: list[Entry] = field(default_factory=list)


@dataclass
class Hunk:
    """Lines that are shown and the reasons of their changes; `refers` are changes that are explained at another hunk."""

    inside: str
    units: list[Any]
    cards: list[Card] = field(default_factory=list)
    refers: list[Change] = field(default_factory=list)


@dataclass(frozen=True)
class Fold:
    """Unchanged lines that are folded, or, of a file that stays as it is, left out."""

    first: int
    last: int
    rows: list[Row]


@dataclass
class File:
    """A file of the page."""

    shown: str
    state: str  # "changed", "added" or "unchanged"
    parts: list[Hunk | Fold]
    digits: int  # room for the line numbers
    plus: int = 0
    minus: int = 0


@dataclass(frozen=True)
class Explained:
    """A rule's text in sections, and its shortest example."""

    code: str
    title: str
    summary: str
    sections: list[tuple[str, str]]
    example: tuple[str, str, list[str], list[str]] | None


def render(conversion: Conversion, options: Options, flags: Sequence[str] = (), left_out: frozenset[str] = frozenset()) -> str:
    """The page, self-contained. `flags` are those that made the conversion; it is shown with the changes of `left_out` turned off."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from ddpify.resources import template_dir

    loader = FileSystemLoader(template_dir() / "review")
    environment = Environment(loader=loader, undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"plain": lambda text: Markup(escaped(text)), "sentence": _sentence}
    files, switches = variants(conversion, attributed(conversion)) if conversion.changed else ([], ())
    codes = [*(change.code for change in conversion.changes), *(finding.code for finding in conversion.findings)]
    known = all_rules()
    titles = {code: rule.title for code, rule in known.items()}
    rules = [_rule(known[code]) for code in sorted(set(codes) & set(known))]
    notes = [Note(n, finding, titles.get(finding.code, "")) for n, finding in enumerate(_graver(conversion.findings), 1)]
    pages = list(_files(conversion, files, switches, notes, titles, left_out, options))
    path = "-" if conversion.shown == "<stdin>" else conversion.shown
    command = shlex.join(["ddpify", "convert", path, *flags])
    offered = [i for switch in switches for i in switch.ids]
    return environment.get_template("page.html").render(
        conversion=conversion,
        version=__version__,
        asked=shlex.join(flags),
        batch=_batch(options),
        precision=_precision(options),
        command=command,
        chosen=[i for i in offered if i in left_out],
        offered=offered,
        files=pages,
        notes=notes,
        placed={
            unit.number for page in pages for part in page.parts if isinstance(part, Hunk) for unit in part.units if isinstance(unit, Note)
        },
        review=[change for change in conversion.changes if change.level == Safety.REVIEW],
        known=[change for change in conversion.changes if change.level == Safety.NOTE],
        rules=rules,
        families=_counted((code[:4] for code in codes), FAMILIES),
        levels=_counted(conversion.levels, LEVELS),
        meaning=LEVELS,
        Safety=Safety,
        run=conversion.run_command("train.py" if path == "-" else path),
    )


def _batch(options: Options) -> str:
    """What becomes of the batch and the learning rate."""
    if options.batch_size == "global":
        return "The global batch stays as large as it was, shared out among the ranks; the steps and the learning rate stay, too."
    rate = "stays" if options.scale_lr == "none" else f"is scaled with it ({options.scale_lr})"
    return f"Each rank takes batches of the script's size: the global batch grows with the number of ranks; the learning rate {rate}."


def _precision(options: Options) -> str:
    """What becomes of the precision."""
    return "Precision stays as the script has it." if options.amp == "keep" else f"Precision is that of --amp {options.amp}."


def _sentence(text: str) -> Markup:
    """A sentence as HTML: what stands between backticks is code, an address is a link."""
    parts = escaped(text).split("`")
    out = "".join(f"<code>{part}</code>" if at % 2 and at + 1 < len(parts) else "`" * (at % 2) + part for at, part in enumerate(parts))
    return Markup(re.sub(r"https://[^\s<>]*[^\s<>.,;)]", lambda url: f'<a href="{url[0]}" rel="noreferrer">{url[0]}</a>', out))


def _counted(found: Iterable[Any], names: dict[Any, str]) -> list[tuple[Any, str, int]]:
    """What there is of a kind, in the order of `names`."""
    all_ = list(found)
    return [(key, name, all_.count(key)) for key, name in names.items() if key in all_]


def _graver(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda f: (-f.level, f.file, f.line, f.column, f.code))


# --- files ----------------------------------------------------------------------------------------------------------------
class _Drawn:
    """Makes the rows of one file: numbers them, and remembers how each line is highlighted."""

    def __init__(self, before: Sequence[str], after: Sequence[str], codes: dict[str, str]) -> None:
        self._old, self._new = highlighted(before), highlighted(after)
        self._by_text = dict(zip((*after, *before), (*self._new, *self._old), strict=True))
        self._codes = codes
        crlf = 2 * sum(line.endswith("\r\n") for line in before or after) > len(before or after)
        self._end = "\r\n" if crlf else "\n"
        self.number = 0

    def rows(self, lines: Sequence[Line], counted: bool = True) -> list[Row]:
        """The rows of lines; only those that are `counted` have numbers in the file after the conversion."""
        out: list[Row] = []
        slots = _slots(lines)
        for line, slot in zip(lines, slots, strict=True):
            new = None
            if line.kind != "-" and counted:
                self.number += 1
                new = self.number
            codes = tuple({self._codes[i]: i for i in reversed(line.changes)}.items())[::-1]
            again = bool(out) and bool(codes) and out[-1].codes == codes and out[-1].kind == line.kind
            html = self._html(line)
            out.append(Row(line.kind, line.old, new, html, line.changes, codes, again, slot, self._mark(line.text)))
        return out

    def _html(self, line: Line) -> Markup:
        if len(line.text) > _LONG and line.kind == " " and not line.changes:
            return Markup(f'{escaped(line.text[:_LONG])}<span class="odd">{len(line.text) - _LONG} more characters</span>')
        if line.kind != "+" and line.old is not None and line.old <= len(self._old):
            return Markup(self._old[line.old - 1])
        if line.new is not None and line.new <= len(self._new):
            return Markup(self._new[line.new - 1])
        return Markup(self._by_text.get(line.text) or highlighted([line.text])[0])

    def _mark(self, text: str) -> str:
        """What is unusual about a line's end."""
        if not text.endswith("\n"):
            return "no newline at the end of the file"
        return "" if text.endswith("\r\n") == (self._end == "\r\n") else "ends with CRLF" if text.endswith("\r\n") else "ends with LF"


def _slots(lines: Sequence[Line]) -> list[int]:
    """For lines that are shown side by side, the row of each: what agrees but for blanks stands beside each other."""
    slots: list[int] = []
    row = at = 0
    while at < len(lines):
        if lines[at].kind == " ":
            row += 1
            slots.append(row)
            at += 1
            continue
        middle = next((i for i in range(at, len(lines)) if lines[i].kind != "-"), len(lines))
        end = next((i for i in range(middle, len(lines)) if lines[i].kind != "+"), len(lines))
        left, right = lines[at:middle], lines[middle:end]
        rows: dict[int, int] = {}
        for kind, i, j, k, m in opcodes([line.text.strip() for line in left], [line.text.strip() for line in right]):
            # a line and what replaces it stand on one row, the rest on rows of their own
            for by in range(max(j - i, m - k) if kind in ("equal", "replace") else (j - i) + (m - k)):
                row += 1
                if i + by < j:
                    rows[at + i + by] = row
                if k + by < m:
                    rows[middle + k + by] = row
        slots += [rows[n] for n in range(at, end)]
        at = end
    return slots


def _files(
    conversion: Conversion,
    files: Sequence[Pieces],
    switches: Sequence[Switch],
    notes: Sequence[Note],
    titles: dict[str, str],
    left_out: frozenset[str],
    options: Options,
) -> Iterator[File]:
    """The changed files, the script first, then the files that something is said about."""
    codes = {change.id: change.code for change in conversion.changes}
    of_change = {i: switch for switch in switches for i in switch.ids}
    shown_files: set[str] = set()
    homeless = {change.id: change for change in conversion.changes}
    pages = []
    for pieces in files:
        here = [note for note in notes if note.finding.file == pieces.file.shown]
        before = [line.text for line in pieces.file.lines if line.kind != "+"]
        after = [line.text for line in pieces.file.lines if line.kind != "-"]
        drawn = _Drawn(before, after, codes)
        parts = _parts(_units(pieces, here), drawn, left_out, before, True)
        hunks = [part for part in parts if isinstance(part, Hunk)]
        owned = [{i for unit in hunk.units if isinstance(unit, Changed) for row in unit.ways[0].rows for i in row.ids} for hunk in hunks]
        for change in sorted(conversion.changes, key=lambda c: (-c.level, c.line, c.code)):
            with_it = [hunk for hunk, ids in zip(hunks, owned, strict=True) if change.id in ids]
            if with_it and change.id in homeless:
                home = min(with_it, key=lambda hunk: _away(hunk, change.line))
                _explain(home, homeless.pop(change.id), of_change, titles, options)
                with_it.remove(home)
            for hunk in with_it:
                hunk.refers.append(change)
        plus = sum(line.kind == "+" for line in pieces.file.lines)
        minus = sum(line.kind == "-" for line in pieces.file.lines)
        pages.append(File(pieces.file.shown, "added" if pieces.file.added else "changed", parts, _digits(after, before), plus, minus))
        shown_files |= {note.finding.file for note in here}
    for change in homeless.values() if pages else ():  # it has no line of its own
        page = next((page for page in pages if page.shown == change.file), pages[0])
        hunks = [part for part in page.parts if isinstance(part, Hunk)]
        _explain(min(hunks, key=lambda hunk: _away(hunk, change.line)), change, of_change, titles, options)
    yield from sorted(pages, key=lambda page: page.shown != conversion.shown)
    texts = {conversion.shown: (conversion.source.bom, conversion.original)}
    texts |= {module.shown: (module.source.bom, module.source.original) for module in conversion.modules if not module.added}
    for shown in dict.fromkeys(note.finding.file for note in notes if note.finding.file not in shown_files):
        if shown not in texts:  # nothing was converted, so that no module is part of the conversion
            with contextlib.suppress(DdpifyError):
                source = read(Path(shown))
                texts[shown] = source.bom, source.original
        if shown in texts:
            bom, text = texts[shown]
            lines = split("\ufeff" * bom + text)
            units: list[Line | Block | Note] = [Line(" ", line, n, n) for n, line in enumerate(lines, 1)]
            for note in [note for note in notes if note.finding.file == shown][::-1]:
                units.insert(_behind(units, note.finding.line), note)
            yield File(shown, "unchanged", _parts(units, _Drawn(lines, lines, {}), left_out, lines, False), _digits(lines))


def _digits(*texts: Sequence[str]) -> int:
    return len(str(max(map(len, texts)))) + 1


def _away(hunk: Hunk, line: int) -> int:
    numbers = [row.old for unit in hunk.units if not isinstance(unit, Note) for row in _rows(unit) if row.old]
    return min((abs(number - line) for number in numbers), default=1 << 30)


def _rows(unit: list[Row] | Changed) -> list[Row]:
    return unit.ways[0].rows if isinstance(unit, Changed) else unit


def _units(pieces: Pieces, notes: Sequence[Note]) -> list[Line | Block | Note]:
    """Lines, blocks and findings in order: a finding follows the line, or the block with the line, that it is about."""
    units: list[Line | Block | Note] = list(pieces.parts)
    for note in notes[::-1]:
        units.insert(_behind(units, note.finding.line), note)
    return units


def _behind(units: Sequence[Line | Block | Note], line: int) -> int:
    """Where something about a line of the file before the conversion goes."""
    at = 0
    for index, unit in enumerate(units):
        olds = [unit.old] if isinstance(unit, Line) else [each.old for each in unit.lines] if isinstance(unit, Block) else []
        if any(old is not None and old <= line for old in olds):
            at = index + 1
    return at


def _parts(
    units: Sequence[Line | Block | Note], drawn: _Drawn, left_out: frozenset[str], before: Sequence[str], whole: bool
) -> list[Hunk | Fold]:
    """The hunks and what is folded between them; `whole` where what is folded is on the page."""
    seen = [not isinstance(unit, Line) for unit in units]
    near = [any(seen[max(at - CONTEXT, 0) : at + CONTEXT + 1]) for at in range(len(units))]
    runs: list[tuple[bool, list[Line | Block | Note]]] = []
    for shown, unit in zip(near, units, strict=True):
        if not runs or runs[-1][0] != shown:
            runs.append((shown, []))
        runs[-1][1].append(unit)
    joined: list[tuple[bool, list[Line | Block | Note]]] = []
    for at, (shown, run) in enumerate(runs):  # what is too short to fold joins its neighbours
        shown = shown or (len(run) < FOLDED and len(runs) > 1)
        if joined and joined[-1][0] and shown:
            joined[-1][1].extend(run)
        else:
            joined.append((shown, list(run) if at else run))
    parts: list[Hunk | Fold] = []
    for shown, run in joined:
        if shown:
            parts.append(Hunk(_inside(run, before), _shown(run, drawn, left_out)))
            continue
        lines = [unit for unit in run if isinstance(unit, Line)]
        rows = drawn.rows(lines) if whole else []
        drawn.number += 0 if whole else len(lines)
        parts.append(Fold(lines[0].old or 1, lines[-1].old or 1, rows))
    return parts


def _shown(run: Sequence[Line | Block | Note], drawn: _Drawn, left_out: frozenset[str]) -> list[Any]:
    out: list[Any] = []
    for unit in run:
        if isinstance(unit, Note):
            out.append(unit)
        elif isinstance(unit, Line):
            if not out or not isinstance(out[-1], list):
                out.append([])
            out[-1] += drawn.rows([unit])
        else:
            now = unit.mask(left_out)
            ways = [Way(mask, mask == now, drawn.rows(lines, mask == now)) for mask, lines in sorted(unit.variants.items())]
            out.append(Changed(tuple(switch.key for switch in unit.switches), ways))
    return out


def _inside(run: Sequence[Line | Block | Note], before: Sequence[str]) -> str:
    """The function or the class that a hunk begins in."""
    olds = [unit.old for unit in run if isinstance(unit, Line)]
    olds += [line.old for unit in run if isinstance(unit, Block) for line in unit.lines]
    known = [old for old in olds if old]
    if not known or min(known) > len(before):
        return ""
    width = 1 << 30
    for text in reversed(before[: min(known)]):
        indent = len(text) - len(text.lstrip())
        if text.strip() and indent < width:
            width = indent
            if found := re.match(r"\s*((?:async )?def|class) (\w+)", text):
                return f"{found[1]} {found[2]}"
    return ""


def _explain(hunk: Hunk, change: Change, of_change: dict[str, Switch], titles: dict[str, str], options: Options) -> None:
    """Give a hunk the reason of a change; those with the same one share a card."""
    same = [c for c in hunk.cards if (c.code, c.why, c.level, c.without) == (change.code, change.why, change.level, change.without)]
    if not same:
        instead = INSTEAD.get(change.code, "")
        instead = "" if instead in options.command_line() else instead
        same = [Card(change.code, titles.get(change.code, ""), change.why, change.level, change.without, instead)]
        hunk.cards += same
    switch = of_change.get(change.id)
    others = tuple(i for i in switch.ids if i != change.id) if switch else ()
    same[0].entries.append(Entry(change, switch.key if switch else "", others))


# --- rules ----------------------------------------------------------------------------------------------------------------
def _rule(rule: Rule) -> Explained:
    summary, *rest = re.split(r"^(What it does|Why|Safety|References): *", rule.text, flags=re.MULTILINE)
    texts = [(name, " ".join(text.split())) for name, text in zip(rest[::2], rest[1::2], strict=True)]
    shown = [(example, example.after) for example in rule.examples if example.after is not None]
    if not shown:
        return Explained(rule.code, rule.title, summary.strip(), texts, None)
    example, after = min(shown, key=lambda pair: len(pair[0].before) + len(pair[1]))
    sides = highlighted(split(example.before)), highlighted(split(after))
    return Explained(rule.code, rule.title, summary.strip(), texts, (example.title, example.options.command_line(), *sides))
