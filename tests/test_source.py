"""Reading, mending, parsing and writing back: nothing may be lost, and garbage gets its place and a hint."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ddpify import source as src
from ddpify.errors import DdpifyError

# --- what must come back byte for byte -----------------------------------------------------------------------------------

FAITHFUL = {
    "empty": b"",
    "no newline at the end": b"x = 1",
    "unix": b"x = 1\ny = 2\n",
    "windows": b"x = 1\r\ny = 2\r\n",
    "old mac": b"x = 1\ry = 2\r",
    "mixed newlines": b"x = 1\r\ny = 2\rz = 3\n\r\n",
    "BOM": b"\xef\xbb\xbfx = 1\n",
    "BOM and windows": b"\xef\xbb\xbfx = '\xc3\xa9'\r\ny = 2\r\n",
    "BOM alone": b"\xef\xbb\xbf",
    "declared latin-1": b"# -*- coding: latin-1 -*-\nx = '\xe9\xff'\n",
    "declared on the second line": b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    "declared gbk": b"# coding: gbk\nx = '\xc4\xe3\xba\xc3'\n",
    "declared utf-8 behind a BOM": b"\xef\xbb\xbf# coding: utf-8\nx = 1\n",
    "tabs and trailing blanks": b"if x:\n\ty = 1 \t\n\n\n",
    "form feed and unicode line separators": "x = 1\n\x0c\ny = '\u2028\x85'\n".encode(),
    "utf-8 beyond the BMP": "x = '\U0001f600'\n".encode(),
}


@pytest.mark.parametrize("data", FAITHFUL.values(), ids=FAITHFUL)
def test_bytes_survive(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    source = src.read(path)
    assert source.encode(source.text) == data
    assert source.text == source.original
    assert not source.text.startswith("\ufeff")
    assert "".join(src.split_lines(source.text)) == source.text


@pytest.mark.parametrize(
    ("data", "newline"),
    [(b"", "\n"), (b"x\ny\r\n", "\n"), (b"x\r\ny\r\nz\n", "\r\n"), (b"x", "\n"), (b"x\ry\r", "\n")],
    ids=["empty", "a tie is unix", "mostly windows", "none", "old mac"],
)
def test_newline_for_new_lines(data: bytes, newline: str) -> None:
    assert src.from_bytes(data, "train.py").newline == newline


def test_text_with_a_bom() -> None:
    source = src.from_text("\ufeffx = 1\n")
    assert source.bom
    assert source.encode(source.text) == b"\xef\xbb\xbfx = 1\n"


def test_lines_are_counted_as_python_counts_them() -> None:
    text = "a = 1\r\nb = 2\rc = '\x0b\u2028'\n\x0cd = 4\n"
    last = ast.parse(text).body[-1]
    assert src.split_lines(text)[last.lineno - 1].startswith("\x0cd")


def test_a_character_that_the_encoding_lacks() -> None:
    source = src.from_bytes(b"# coding: latin-1\n", "train.py")
    with pytest.raises(DdpifyError, match="latin-1"):
        source.encode("x = '\u4f60'")


# --- what cannot be read -------------------------------------------------------------------------------------------------

UNREADABLE = {
    "binary": (b"\x7fELF\x02\x01\n\x01\x00\x00", "binary", "train.py:2:2"),
    "utf-16": ("x = 1\n".encode("utf-16"), "UTF-16", "train.py"),
    "latin-1 without a declaration": (b"x = 1\ny = '\xc3\xa9\xe9'\n", "0xe9 is not UTF-8", "train.py:2:7"),
    "not the declared encoding": (b"# coding: ascii\nx = '\xe9'\n", "0xe9 is not ascii", "train.py:2:6"),
    "unknown encoding": (b"\n# coding: klingon\n", "klingon", "train.py:2:1"),
    "a codec that is no text encoding": (b"# coding: rot13\nx = 1\n", "rot13", "train.py:1:1"),
    "an encoding that does not survive": (b"# coding: utf-7\nx = '+AGE-'\n", "utf-7", "train.py:1:1"),
    "a BOM against the declaration": (b"\xef\xbb\xbf# coding: latin-1\n", "latin-1", "train.py:1:1"),
    "notebook without its suffix": (b'{\n "cells": [], "nbformat": 4}', "notebook", "train.py"),
}


@pytest.mark.parametrize(("data", "title", "where"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable(data: bytes, title: str, where: str) -> None:
    with pytest.raises(DdpifyError, match=title) as caught:
        src.from_bytes(data, "train.py")
    assert str(caught.value.where) == where
    assert caught.value.hint


def test_a_dictionary_is_no_notebook() -> None:
    assert src.from_text('{"a": 1}\n').text
    assert src.from_text('cells = {"cells": 1}\n').text


def test_nul_in_text() -> None:
    with pytest.raises(DdpifyError, match="NUL"):
        src.from_text("x = 1\0")


@pytest.mark.parametrize("name", ["", ".", "missing.py", "folder", "x" * 5000, "nul\0.py", "/dev/null"])
def test_paths_that_hold_no_script(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DdpifyError) as caught:
        src.read(Path(name))
    assert caught.value.where is not None
    assert caught.value.hint


# --- what cannot be parsed -----------------------------------------------------------------------------------------------

PYTHON2 = {
    "print of a text": 'print "x"',
    "print of a name": "print loss",
    "print to a stream": 'print >>f, "x" % 3, 4 5',
    "exec": "exec code in space",
    "except with a comma": "try:\n    f()\nexcept E, e:\n    print e",
    "raise with a comma": 'raise E, "x"',
    "backticks": "x = `y`",
    "unlike": "if x <> y: pass",
    "octal": "mode = 0777",
    "long": "x = 10L",
    "long behind a text": "f('%x', 10L)",
    "hexadecimal long": "x = 0xFFL",
    "unicode raw": 'x = ur"y"',
}


@pytest.mark.parametrize("text", PYTHON2.values(), ids=PYTHON2)
def test_python_2(text: str) -> None:
    with pytest.raises(DdpifyError, match="Python 2") as caught:
        src.parse(src.from_text(f"import os\n{text}\n"), "train.py")
    assert "2to3" in caught.value.hint
    assert caught.value.where is not None
    assert caught.value.where.text in text.splitlines()


@pytest.mark.parametrize("text", ["x = '<> `", "foo(", "x = = 1", "print('a' 'b'", "x = 1 if", "1x = 2", "x = 0xFG", "x = 10l2"])
def test_broken_python_3_is_not_called_python_2(text: str) -> None:
    with pytest.raises(DdpifyError) as caught:
        src.parse(src.from_text(text), "train.py")
    assert "Python 2" not in caught.value.title
    assert "2to3" not in caught.value.hint


@pytest.mark.parametrize("text", ["xrange(3)", "print", "x = '''print \"y\"'''", "raise E(a, b)", "x = 0o777\ny = 00\n", "e = 1, 2"])
def test_valid_python_3_that_looks_old(text: str) -> None:
    src.parse(src.from_text(text), "train.py")


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(DdpifyError) as caught:
        src.parse(src.from_text("a = 1\r\nb = 'é' +* 2\r\n"), "x/train.py")
    where = caught.value.where
    assert where is not None
    assert (str(where), where.text) == ("x/train.py:2:10", "b = 'é' +* 2")


@pytest.mark.parametrize(
    ("line", "hint"), [("%matplotlib inline", "notebook"), ("!pip install torch", "notebook"), ("<<<<<<< HEAD", "merge conflict")]
)
def test_hints(line: str, hint: str) -> None:
    with pytest.raises(DdpifyError) as caught:
        src.parse(src.from_text(f"x = 1\n{line}\n"), "train.py")
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + ")" * 5000,
        "x = " + "-" * 100_000 + "1",
        "if x:\n" + "\n".join(" " * i + "if x:" for i in range(1, 200)),
    ],
    ids=["brackets", "signs", "blocks"],
)
def test_huge_nesting(text: str) -> None:
    with pytest.raises(DdpifyError):
        src.parse(src.from_text(text), "train.py")


def test_warnings_are_silent(recwarn: pytest.WarningsRecorder) -> None:
    src.parse(src.from_text("x = '\\d'\nassert (x, 'y')\nx is 1\n"), "train.py")
    assert not recwarn.list


def test_an_escape_in_the_offending_line_does_not_reach_the_terminal() -> None:
    with pytest.raises(DdpifyError) as caught:
        src.parse(src.from_text("x = = '\x1b[2J'\n"), "train.py")
    assert caught.value.where is not None
    assert "\x1b" not in caught.value.where.text


# --- async= --------------------------------------------------------------------------------------------------------------

UNMENDED = {
    "in a string": "s = 'x.cuda(async=True)'\n",
    "in a comment": "x = 1  # x.cuda(async=True)\n",
    "in a docstring": 'def f():\n    """Call x.cuda(async=True)."""\n',
    "compared": "x.cuda(async == True)\n",
    "a parameter": "def cuda(x, async=False):\n    pass\n",
    "of a call that is not torch's": "pool.map(f, async=True)\n",
    "of a function named like the method": "cuda(async=True)\n",
    "in an inner bracket": "x.cuda([1, async=True])\n",
    "as a name": "x.cuda(0)\nasync = 1\n",
    "async functions": "async def f():\n    async with a as b:\n        await c\n",
}


@pytest.mark.parametrize("text", UNMENDED.values(), ids=UNMENDED)
def test_async_left_alone(text: str) -> None:
    source = src.from_text(text)
    assert (source.text, source.mended) == (text, ())


MENDED = {
    "alone": ("x.cuda(async=True)\n", "x.cuda(non_blocking=True)\n", [1]),
    "blanks": ("x.cuda(0, async  =  True)", "x.cuda(0, non_blocking  =  True)", [1]),
    "two in a line": (
        "a, b = a.cuda(async=True), b.to(d, async=True)\n",
        "a, b = a.cuda(non_blocking=True), b.to(d, non_blocking=True)\n",
        [1],
    ),
    "over lines": (
        "y = (\r\n  x.cuda(  # async=1\r\n    async=f(1),\r\n))\r\n",
        "y = (\r\n  x.cuda(  # async=1\r\n    non_blocking=f(1),\r\n))\r\n",
        [3],
    ),
    "behind other letters": ("é = 'é'; é.cuda(async=True)\n", "é = 'é'; é.cuda(non_blocking=True)\n", [1]),
    "old mac": ("y = 1\rx.cuda(async=True)\r", "y = 1\rx.cuda(non_blocking=True)\r", [2]),
    "behind a form feed": ("\x0c\nx.cuda(async=True)\n", "\x0c\nx.cuda(non_blocking=True)\n", [2]),
    "after a nested call": ("x.cuda(f(1), async=True)\n", "x.cuda(f(1), non_blocking=True)\n", [1]),
}


@pytest.mark.parametrize(("text", "mended", "lines"), MENDED.values(), ids=MENDED)
def test_async_mended(text: str, mended: str, lines: list[int]) -> None:
    source = src.from_text(text)
    assert source.text == mended
    assert source.original == text
    assert sorted({line for line, _ in source.mended}) == lines
    src.parse(source, "train.py")


def test_mending_stops_where_the_file_is_broken() -> None:
    with pytest.raises(DdpifyError, match="Python 2"):
        src.parse(src.from_text("x.cuda(async=True)\nprint x\n"), "train.py")


# --- writing -------------------------------------------------------------------------------------------------------------


def test_the_mode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"old")
    path.chmod(0o751)
    src.write_all({path: b"new"})
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o751)
    assert os.listdir(tmp_path) == ["train.py"]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    src.write_all({tmp_path / "new.py": b"x"})
    assert (tmp_path / "new.py").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to("real.py")
    src.write_all({link: b"new"})
    assert link.is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"


def test_a_device_is_not_replaced() -> None:
    src.write_all({Path("/dev/null"): b"x"})
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_all_files_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    for bad in (tmp_path / "folder", tmp_path / "missing" / "c.py"):
        with pytest.raises(DdpifyError, match="cannot be written"):
            src.write_all({first: b"new", second: b"new", bad: b"new"})
        assert first.read_bytes() == b"old"
        assert sorted(os.listdir(tmp_path)) == ["a.py", "folder"]


def test_what_was_replaced_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_bytes(b"old")
    real = os.replace

    def full(old: Path, new: Path) -> None:
        if Path(new).name == "b.py":
            raise OSError(28, "No space left on device")
        real(old, new)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DdpifyError, match="No space"):
        src.write_all({first: b"new", second: b"new"})
    assert first.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True, capture_output=True)


def test_dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train [1].py"
    path.write_text("x = 1\n")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert not src.is_dirty(path)  # no repository
    git(tmp_path, "init")
    assert src.is_dirty(path)  # never committed
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    assert not src.is_dirty(path)
    (tmp_path / "other.py").write_text("")
    assert not src.is_dirty(path)
    path.write_text("x = 2\n")
    assert src.is_dirty(path)
    monkeypatch.setenv("PATH", "")
    assert not src.is_dirty(path)  # no git


def test_reading_imports_little() -> None:
    code = "import sys, ddpify.source; print([m for m in ('libcst', 'torch', 'rich', 'jinja2', 'subprocess') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
