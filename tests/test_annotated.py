"""The diff that `ddpify convert` shows on a terminal: the patch, with the rules' codes on its left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from ddpify.attribution import attributed
from ddpify.conversion import convert
from ddpify.report.annotated import MARGIN, of_change, with_codes

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*/train.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_it_is_the_patch_with_codes_on_its_left(path: Path) -> None:
    done = convert(path)
    rows = with_codes(attributed(done), done.changes, False).splitlines()
    assert [row[MARGIN:] for row in rows] == done.diff().splitlines()
    codes = {row[:MARGIN].strip() for row in rows}
    assert codes - {""} == {change.code for change in done.changes if change.edits}
    assert all(row[MARGIN] in "+-" for row in rows if row[:MARGIN].strip())
    first = next(row for row in rows if row[MARGIN] in "+-" and row[MARGIN : MARGIN + 3] not in ("---", "+++"))
    assert first.startswith("DDP")


def test_what_a_terminal_would_obey_is_not_shown() -> None:
    text = EXAMPLES[0].read_text().replace("import torch\n", "import torch  # \x1b[2J\u202e\x07\n", 1)
    assert "\x1b" in text
    done = convert(text)
    files = attributed(done)
    shown = with_codes(files, done.changes, False) + "".join(hunk for one in done.changes for _, hunk in of_change(files[0], one.id, False))
    assert not {"\x1b", "\u202e", "\x07"} & set(shown)
    assert "import torch  # ?[2J??" in shown


def test_windows_lines_and_a_missing_newline() -> None:
    done = convert("\ufeff" + EXAMPLES[0].read_text().removesuffix("\n").replace("\n", "\r\n"))
    shown = with_codes(attributed(done), done.changes, False)
    assert "\r" not in shown
    assert "\ufeff" not in shown
    assert f"{'':{MARGIN}}\\ No newline at end of file\n" in shown


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_on_a_terminal(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text(EXAMPLES[0].read_text())
    with Terminal(["ddpify", "convert", "train.py"], tmp_path, env) as terminal:
        text = terminal.sees("once written, run it: ")
        assert terminal.ends() == 0
    done = convert(EXAMPLES[0])
    assert with_codes(attributed(done), done.changes, False).split("\n", 2)[2] in text
    assert ("\x1b[" in terminal.raw.replace("\x1b[K", "")) is (not env)
    assert "\nDDP101  set up the process group: 12\n" in terminal.text
    assert ("\x1b[32mDDP101\x1b[0m" in terminal.raw, "\x1b[36mDDP103\x1b[0m" in terminal.raw) == (not env, not env)
    assert (f"\x1b]8;;{(tmp_path / 'train.py').as_uri()}#" in terminal.raw) is (not env)


def test_piped_it_is_the_patch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EXAMPLES[0].read_text())
    with Terminal(["ddpify", "convert", "train.py"], tmp_path, stdout=tmp_path / "patch") as terminal:
        terminal.sees("once written, run it: ")
        assert terminal.ends() == 0
    piped = subprocess.run([sys.executable, "-m", "ddpify", "convert", "train.py"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert (tmp_path / "patch").read_bytes() == piped
    assert piped.startswith(b"--- a/train.py\n+++ b/train.py\n@@ ")
