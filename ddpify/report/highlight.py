"""Python as HTML, line by line: what a token is as a class, and nothing that a reader would not see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape

# control characters, what turns the direction of writing, and what has no width: a reviewer must see that they are there
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
_CLASSES = (  # of Pygments' token types, the first that holds a token
    ("Token.Keyword", "k"),
    ("Token.Operator.Word", "k"),
    ("Token.Name.Builtin", "b"),
    ("Token.Name.Decorator", "d"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Literal.String.Interpol", ""),
    ("Token.Literal.String", "s"),
    ("Token.Literal.Number", "m"),
    ("Token.Comment", "c"),
)


def highlighted(lines: Sequence[str]) -> list[str]:
    """The lines of a file, without their ends, as HTML."""
    from pygments.lexers.python import PythonLexer

    text = "".join(lines)
    out = [""]
    # a lone carriage return is no end of a line here
    for start, kind, value in PythonLexer().get_tokens_unprocessed(text.replace("\r", " ")):
        name = _class(str(kind))
        for by, part in enumerate(text[start : start + len(value)].split("\n")):
            if by:
                out.append("")
            part = part.removesuffix("\r") if text.startswith("\n", start + len(part)) else part
            start += len(part) + 1
            out[-1] += f'<span class="{name}">{escaped(part)}</span>' if name and part.strip() else escaped(part)
    return out[: len(lines)]


def escaped(text: str) -> str:
    """A text as HTML; a character that has no look of its own is spelled."""
    return _ODD.sub(lambda found: f'<span class="odd">U+{ord(found[0]):04X}</span>', escape(text))


@cache
def _class(kind: str) -> str:
    return next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "")
