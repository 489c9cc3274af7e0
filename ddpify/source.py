"""Bytes to text and back: encoding, BOM and newlines are kept, and what cannot be read is said with its place."""

from __future__ import annotations

import ast
import codecs
import contextlib
import os
import re
import stat
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify.errors import DdpifyError, Where
from ddpify.records import dataclass

if TYPE_CHECKING:
    from ddpify.notebook.remark import Remark

NOTEBOOK = ".ipynb"
"""How the name of a notebook's file ends."""
_NEWLINE = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")  # PEP 263
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_ASYNC = re.compile(r"\basync\s*=(?!=)")
_ASYNC_METHODS = frozenset({"cuda", "to", "type", "copy_"})


@dataclass(frozen=True)
class Source:
    """A script's text, decoded and without its BOM, and all it takes to write it back byte for byte.

    `text` is what is parsed. It differs from `original` only where an old spelling had to be mended; `mended` lists those
    places as (line, sentence). Of a script that was made from a notebook, `notebook` is the notebook's path, and `remarks` has what
    was said of its cells.
    """

    text: str
    encoding: str = "utf-8"
    bom: bool = False
    newline: str = "\n"
    mended: tuple[tuple[int, str], ...] = ()
    original: str = ""
    notebook: str = ""
    remarks: tuple[Remark, ...] = ()

    @property
    def unchanged(self) -> bytes:
        """The script as it is before the conversion."""
        return self.encode(self.original)

    def encode(self, text: str) -> bytes:
        """The bytes of `text` in this file's encoding, with its BOM. Raises DdpifyError for a character the encoding lacks."""
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DdpifyError(f"{error.object[error.start]!r} cannot be written in {self.encoding}", "save the script as UTF-8") from error
        return (codecs.BOM_UTF8 if self.bom else b"") + data


def split_lines(text: str) -> list[str]:
    """The lines as Python counts them, each with its newline. (`str.splitlines` also splits at form feeds and the like.)"""
    return _LINE.findall(text)


def read(path: Path) -> Source:
    """The script at `path`. Raises DdpifyError where there is no readable Python text."""
    return from_bytes(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """What the file at `path` holds. Raises DdpifyError where it cannot be read."""
    shown = str(path)
    if not path.name and shown in ("", "."):
        raise DdpifyError("no script was named", "give the path of the training script", Where(shown))
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DdpifyError("this is a directory", "name the script that starts the training", Where(shown))
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise DdpifyError("this is not a file", "name the script that starts the training", Where(shown))
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DdpifyError("no such file", "check the path; it is taken relative to the current directory", Where(shown)) from error
    except (OSError, ValueError) as error:
        raise DdpifyError(f"cannot be read: {_reason(error)}", "check the path and its permissions", Where(shown)) from error


def from_text(text: str, shown: str = "<string>") -> Source:
    """A script given as text; a leading BOM is kept apart. Raises DdpifyError for NULs and notebooks."""
    bom = text.startswith("\ufeff")
    return _checked(text[1:] if bom else text, "utf-8", bom, shown)


def from_bytes(data: bytes, shown: str) -> Source:
    """A script given as the bytes of a file. Raises DdpifyError where they are not Python text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DdpifyError("this is UTF-16 text, which Python does not read", "save the script as UTF-8", Where(shown))
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    if b"\0" in body:
        raise DdpifyError("this is a binary file, not a Python script", "name the .py file", _place(body, body.index(b"\0"), shown))
    line, declared = _declared(body)
    encoding = declared or "utf-8"
    try:
        text = body.decode(encoding)
        faithful = text.encode(encoding) == body
    except LookupError as error:
        where = Where(shown, line, 1, _shown_line(body, line))
        raise DdpifyError(f"unknown encoding {encoding!r}", "correct the `coding:` comment, or save the script as UTF-8", where) from error
    except UnicodeError as error:
        raise _undecodable(body, error, declared, shown) from error
    if not faithful or (bom and codecs.lookup(encoding).name != "utf-8"):
        where = Where(shown, line, 1, _shown_line(body, line))
        raise DdpifyError(f"the bytes are not plain {encoding} text", "save the script as UTF-8", where)
    return _checked(text, encoding, bom, shown)


def _checked(text: str, encoding: str, bom: bool, shown: str) -> Source:
    if "\0" in text:
        raise DdpifyError("this holds NUL characters and is no Python script", "name the .py file", Where(shown))
    if is_notebook(text):
        raise DdpifyError("this is a notebook", "name it as one, in a file that ends in .ipynb", Where(shown))
    newline = "\r\n" if 2 * text.count("\r\n") > len(_NEWLINE.findall(text)) else "\n"
    mended_text, mended = _mend_async(text)
    return Source(mended_text, encoding, bom, newline, mended, text)


def is_notebook(text: str) -> bool:
    """Whether a text is that of a notebook, and no script."""
    return text.lstrip()[:1] == "{" and re.search(r'"cells"\s*:', text) is not None


def script_path(path: Path) -> Path:
    """Where the script lies that a path stands for: beside a notebook, by its name; any other is the script itself."""
    return path.with_suffix(".py") if path.suffix == NOTEBOOK else path


def _declared(data: bytes) -> tuple[int, str]:
    """The line and the name of the encoding that the first two lines declare; (1, "") without a declaration."""
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2], 1):
        if found := _COOKIE.match(line):
            return number, found[1].decode("ascii", "replace")
        if not _BLANK.match(line):
            break
    return 1, ""


def _undecodable(data: bytes, error: UnicodeError, declared: str, shown: str) -> DdpifyError:
    start = error.start if isinstance(error, UnicodeDecodeError) else 0
    what = f"byte 0x{data[start]:02x} is not {declared or 'UTF-8'}" if data else "cannot be decoded"
    hint = "correct the `coding:` comment" if declared else "put `# -*- coding: latin-1 -*-` (or what it is) on the first line"
    return DdpifyError(what, f"{hint}, or save the script as UTF-8", _place(data, start, shown))


def _place(data: bytes, offset: int, shown: str) -> Where:
    before = _NEWLINE.split(data[:offset].decode("utf-8", "backslashreplace"))
    return Where(shown, len(before), len(before[-1]) + 1, _shown_line(data, len(before)))


def _shown_line(data: bytes, number: int) -> str:
    lines = _NEWLINE.split(data.decode("utf-8", "backslashreplace"))
    return _printable(lines[number - 1])[:200] if number <= len(lines) else ""


def _printable(line: str) -> str:
    """Nothing that would move a terminal's cursor or colour it."""
    return "".join(c if c == "\t" or c.isprintable() else "?" for c in line)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


# --- old spellings -------------------------------------------------------------------------------------------------------


def _mend_async(text: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    """`x.cuda(async=True)` is `x.cuda(non_blocking=True)` since torch 0.4; `async` became a keyword in Python 3.7."""
    if not _ASYNC.search(text):
        return text, ()
    lines = split_lines(text)
    places = _async_arguments(lines)
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + "non_blocking" + line[column + len("async") :]
    sentence = "`async` is a keyword since Python 3.7; torch calls this argument `non_blocking`"
    return "".join(lines), tuple((row, sentence) for row, _ in places)


def _async_arguments(lines: list[str]) -> list[tuple[int, int]]:
    """Where `async=` is an argument of a torch method that had it: (line, column), in order."""
    import tokenize

    places: list[tuple[int, int]] = []
    callees: list[str] = []  # for every open bracket, the method it calls, or ""
    last = [""] * 3  # the three significant tokens before this one
    candidate: tuple[int, int] | None = None
    feed = iter([line.rstrip("\r\n") + "\n" for line in lines])
    skipped = (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # the parser will say what is wrong with the file
        for token in tokenize.generate_tokens(lambda: next(feed, "")):
            if token.type in skipped:
                continue
            if candidate and token.string == "=":
                places.append(candidate)
            is_argument = token.string == "async" and bool(callees and callees[-1]) and last[-1] in ("(", ",")
            candidate = token.start if is_argument else None
            if token.type == tokenize.OP and token.string in "([{":
                method = last[-1] if token.string == "(" and last[-2] == "." and last[-1] in _ASYNC_METHODS else ""
                callees.append(method)
            elif token.type == tokenize.OP and token.string in ")]}" and callees:
                callees.pop()
            last = [*last[1:], token.string]
    return places


# --- parsing -------------------------------------------------------------------------------------------------------------


def parse(source: Source, shown: str) -> ast.Module:
    """The tree of `source.text`. Raises DdpifyError with the place of what Python 3 cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        raise _unparsable(source.text, error, shown) from error
    except (RecursionError, MemoryError) as error:
        raise DdpifyError("the code is nested too deeply to be read", "take the deepest expression apart", Where(shown)) from error
    except ValueError as error:
        raise DdpifyError(f"cannot be parsed: {error}", "name a Python script", Where(shown)) from error


_PYTHON2_MESSAGE = re.compile(
    r"Missing parentheses in call to '(?:print|exec)'|multiple exception types must be parenthesized|leading zeros in decimal integer"
)
_PYTHON2_LINE = re.compile(
    r"""^\s*print\s+["'\w] | ^\s*print\s*>> | ^\s*exec\s+["'\w]   # statements that became functions
      | ^\s*except\b[^:#]*,\s*\w+\s*:                             # except E, e:
      | ^\s*raise\s+[\w.]+\s*,                                    # raise E, "text"
      | ^[^"'#]*<> | ^[^"'#]*`                                    # <> and backticks
      | ^[^"'#]*\b0[0-7]+[lL]?\b                                 # 0777
      | \bur["']                                                  # ur"..."
    """,
    re.VERBOSE,
)
_LONG = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|\d+)[lL]\b")


def _unparsable(text: str, error: SyntaxError, shown: str) -> DdpifyError:
    lines = split_lines(text)
    number = min(error.lineno or 1, max(len(lines), 1))
    line = lines[number - 1].rstrip("\r\n") if lines else ""
    where = Where(shown, number, max(error.offset or 1, 1), _printable(line))
    is_long = error.msg.endswith("imal literal") and _LONG.search(line)
    if _PYTHON2_MESSAGE.match(error.msg) or is_long or (error.msg == "invalid syntax" and _PYTHON2_LINE.search(line)):
        return DdpifyError("this is Python 2", f"translate it to Python 3 first: 2to3 -w {shown}", where)
    return DdpifyError(error.msg, _syntax_hint(line, error), where)


def _syntax_hint(line: str, error: SyntaxError) -> str:
    if line.lstrip().startswith(("%", "!", "?")):
        return "this line is for notebooks only; take it out"
    if line.startswith(("<<<<<<<", "=======", ">>>>>>>")):
        return "resolve the merge conflict first"
    if isinstance(error, TabError):
        return "indent with either tabs or spaces"
    version = ".".join(map(str, sys.version_info[:2]))
    return f"the script must run before it can be converted (read as Python {version})"


# --- writing -------------------------------------------------------------------------------------------------------------


def write_all(files: dict[Path, bytes], read: Mapping[Path, bytes] | None = None) -> None:
    """Write every file, or leave every file as it was; `read` is what files held when they were read. Raises DdpifyError."""
    staged: list[tuple[Path, Path, bytes | None]] = []
    done: list[tuple[Path, bytes | None]] = []
    path = Path()
    try:
        for path, data in files.items():
            staged.append(_stage(path, data))
            if read and path in read and staged[-1][2] != read[path]:
                raise DdpifyError("it was changed while it was converted", "no file was changed; convert it again", Where(str(path)))
        for path, temporary, before in staged:
            if temporary == path:
                continue
            os.replace(temporary, path)
            done.append((path, before))
    except (OSError, ValueError) as error:
        _undo(done)
        raise DdpifyError(f"cannot be written: {_reason(error)}", "no file was changed", Where(str(path))) from error
    except BaseException:
        _undo(done)
        raise
    finally:
        for target, temporary, _ in staged:
            if temporary != target:
                temporary.unlink(missing_ok=True)


def _stage(path: Path, data: bytes) -> tuple[Path, Path, bytes | None]:
    """The data beside its target: (target, temporary file, what the target held)."""
    target = Path(os.path.realpath(path))  # a link stays a link
    exists = target.exists()
    if exists and not target.is_file():
        if target.is_dir():
            raise IsADirectoryError(21, "it is a directory")
        target.write_bytes(data)  # a pipe or a device cannot be replaced
        return target, target, None
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    before = target.read_bytes() if exists else None
    temporary = target.with_name(f".{target.name[:40]}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if exists:
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target, temporary, before


def _undo(done: list[tuple[Path, bytes | None]]) -> None:
    for path, before in done:
        with contextlib.suppress(OSError):  # the first failure is the one to report
            if before is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(before)


def is_dirty(path: Path) -> bool:
    """Whether git has no commit of what this file holds now. False outside a repository, for ignored files and without git."""
    import subprocess

    real = Path(os.path.realpath(path))
    command = ["git", "--literal-pathspecs", "--no-optional-locks", "-C", str(real.parent), "status", "--porcelain", "--", real.name]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return answer.returncode == 0 and bool(answer.stdout.strip())
