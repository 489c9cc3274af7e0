"""Small training scripts for the tables of tests: what they have in common, and what of their output must be the original's."""

import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

import ddpify
from ddpify import Conversion, Options

_DOUBLE = Path(__file__).with_name("apex_double")
APEX = {file.relative_to(_DOUBLE).as_posix(): file.read_text() for file in sorted(_DOUBLE.rglob("*.py"))}

HEAD = """\
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()
"""


@dataclass
class Script:
    """A script after HEAD, with lines above it and files beside it; `stand_ins` are modules that take a library's place when it runs.

    `same` is how lines begin whose numbers are the whole data set's, and so the original's. `told` holds the codes of what is
    left to do by hand; without any, the conversion must be whole. It is run on as many ranks as each of `ranks` says, with the
    first `rows` rows of HEAD's data. `options` are what the conversion is asked for,
    `apart` the properties that then need not be the original's.
    """

    text: str
    same: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    files: dict[str, str | bytes] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    stand_ins: dict[str, str] = field(default_factory=dict)
    ranks: tuple[int, ...] = (2,)
    rows: int = 44
    options: Options = field(default_factory=Options)
    apart: tuple[str, ...] = ()
    above: str = ""


def on_three(scripts: dict[str, Script], rows: int = 44) -> dict[str, Script]:
    """The scripts, run on three ranks, too."""
    return {title: replace(script, ranks=(2, 3), rows=rows) for title, script in scripts.items()}


def text(script: Script) -> str:
    head = HEAD if script.rows == 44 else HEAD.replace(".view(44, 8)", f".view(44, 8)[:{script.rows}]")
    return script.above + head + "\n" + textwrap.dedent(script.text).lstrip()


def told(stdout: str, begin: tuple[str, ...]) -> list[str]:
    """The printed lines that begin in one of these ways."""
    return [line for line in stdout.splitlines() if line.startswith(begin)]


def write(script: Script, folder: Path, changed: dict[str, str | bytes] | None = None) -> Path:
    """Writes a script into `folder` with its files, those of `changed` over them; returns its path."""
    for name, content in {**script.files, "train.py": text(script), **(changed or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / "train.py"


def converted(script: Script, folder: Path) -> Conversion:
    """The conversion of a script that lies in `folder` with its files."""
    return ddpify.convert(write(script, folder), replace(script.options, whole_batches="never") if script.told else script.options)


def modules(conversion: Conversion) -> dict[str, str | bytes]:
    """The modules that a conversion has changed or added, by their path beside the script."""
    assert conversion.path is not None
    return {str(module.path.relative_to(conversion.path.parent)): module.code for module in conversion.edited}
