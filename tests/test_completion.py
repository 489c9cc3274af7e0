"""Completion in the shells, as `--show-completion` sets it up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ddpify`, as pip installs it."""
    path = tmp_path_factory.mktemp("bin") / "ddpify"
    path.write_text(f"#!{sys.executable}\nfrom ddpify.cli import main\nmain()\n")
    path.chmod(0o755)
    return path


def run(command: Path, args: list[str], **extra: str) -> str:
    root = str(Path(__file__).parent.parent)
    environment = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": root} | extra
    return subprocess.run(args, env=environment, cwd=command.parent, capture_output=True, text=True, timeout=300).stdout


def script(command: Path, shell: str) -> str:
    return run(command, [str(command)], _DDPIFY_COMPLETE=f"source_{shell}")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ddpify con", ["convert"]),
        ("ddpify convert --amp apex-", ["apex-O0", "apex-O1", "apex-O2", "apex-O3"]),
        ("ddpify convert --launcher ", ["torchrun", "launch", "spawn"]),
        ("ddpify rules DDP30", ["DDP301", "DDP302", "DDP303", "DDP304", "DDP305", "DDP307", "DDP308"]),
        ("ddpify rev", ["review"]),
    ],
)
def test_bash(command: Path, words: str, found: list[str]) -> None:
    last = len(words.split(" ")) - 1
    ask = f'COMP_WORDS=({words} ""); COMP_CWORD={last}; _ddpify_completion ddpify; printf "%s\\n" "${{COMPREPLY[@]}}"'
    assert run(command, ["bash", "-c", f"{script(command, 'bash')}\n{ask}"]).split() == found


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh(command: Path) -> None:
    text = script(command, "zsh")
    assert text.lstrip().startswith("#compdef ddpify")
    ask = "compdef() { }; _arguments() { print -l $1 }; _describe() { print -l ${(P)3:-${(P)2}} }; words=(ddpify con); CURRENT=2\n"
    shown = run(command, ["zsh", "-f", "-c", f"{ask}{text}\n_ddpify_completion"])
    assert "convert" in shown


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish(command: Path) -> None:
    shown = run(command, ["fish", "--no-config", "-c", f"{script(command, 'fish')}\ncomplete -C 'ddpify con'"])
    assert shown.startswith("convert")
