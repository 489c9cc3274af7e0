"""`# ddpify: skip` in a script: what its owner has decided, written beside the line that it is about.

`# ddpify: skip` leaves out every change of its line, `# ddpify: skip[DDP501]` those of the rules named, and what is reported of the line is
then no more than a note. `# ddpify: skip-file` leaves the whole file as it is. `# ddpify: replicate` says of the value that a line
computes how it differs between ranks: not at all; or `shard`, `mean`, `sum`, `coupled`, `per-rank`, as in
`[tool.ddpify.placements]`. Beside a backward call, it is said of the loss.
`# ddpify: MANUAL DDP201: ...` is ddpify's own: it stands, in a draft, above what is to be done by hand.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Mapping
from functools import lru_cache

from ddpify.choices import refuse
from ddpify.errors import DdpifyError, Where
from ddpify.options import PLACEMENTS
from ddpify.rules.base import Change

_SAID = re.compile(rf"#\s*ddpify:\s*({'|'.join(('skip-file', 'skip', *PLACEMENTS))})\b\s*(?:\[([^\]]*)\])?")


_MARK = re.compile(r"#\s*ddpify: MANUAL (DDP\d{3}): (.*)")


def mark(code: str, message: str) -> str:
    """The comment that marks what is to be done by hand."""
    return f"# ddpify: MANUAL {code}: {' '.join(message.replace('#', '').split())}"


def marked(text: str) -> list[tuple[int, str, str]]:
    """The places that are marked so: line, code and message."""
    found = ((line, _MARK.fullmatch(comment)) for line, comment in _comments(text))
    return [(line, match[1], match[2]) for line, match in found if match is not None]


@lru_cache(maxsize=256)
def skips(text: str, shown: str) -> Mapping[int, tuple[str, ...]]:
    """For each line with such a comment the codes that it names; none where it means all rules. Raises DdpifyError for what is no code."""
    out = {}
    for line, kind, codes in _said(text):
        if kind == "skip":
            named = tuple(code.strip().upper() for code in (codes or "").split(",") if code.strip())
            for code in named:
                if not re.fullmatch(r"DDP\d{1,3}", code):
                    raise DdpifyError(f"{code} is not a rule's code", "write one such as DDP501; see `ddpify rules`", Where(shown, line))
            out[line] = named
    return out


def skips_file(text: str) -> int:
    """The line of the comment that leaves the file as it is; 0 where there is none."""
    return next((line for line, kind, _ in _said(text) if kind == "skip-file"), 0)


def placements(text: str) -> dict[int, str]:
    """For each line with a comment that says how its value differs between ranks: what it says."""
    return {line: kind for line, kind, _ in _said(text) if kind in PLACEMENTS}


def meant(codes: Collection[str], code: str) -> bool:
    """Whether a rule's code is among those that a comment names, by how they begin."""
    return not codes or code.startswith(tuple(codes))


def left_out(changes: Collection[Change], texts: Mapping[str, str]) -> frozenset[str]:
    """The ids of the changes that comments leave out; `texts` has each file's text by its path shown. Raises DdpifyError for others."""
    out = []
    for change in changes:
        asked = skips(texts.get(change.file, ""), change.file)
        first, last = change.span
        if any(first <= line <= last and meant(codes, change.code) for line, codes in asked.items()):
            out.append(change)
    refuse(out, "take the comment away")
    return frozenset(change.id for change in out)


def _said(text: str) -> list[tuple[int, str, str | None]]:
    """What the comments of a script's owner say: line, word and the codes in brackets."""
    found = ((line, _SAID.search(comment)) for line, comment in _comments(text))
    return [(line, match[1], match[2]) for line, match in found if match is not None]


def _comments(text: str) -> list[tuple[int, str]]:
    if "ddpify:" not in text:
        return []
    try:
        return [(t.start[0], t.string) for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError):
        return []
