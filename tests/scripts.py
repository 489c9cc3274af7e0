"""Small training scripts for the tables of tests: what they have in common, and what of their output must be the original's."""

import textwrap
from dataclasses import dataclass, field

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
    """A script after HEAD; `same` is how lines begin whose numbers are the whole data set's, and so the original's."""

    text: str
    same: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    files: dict[str, str | bytes] = field(default_factory=dict)


def text(script: Script) -> str:
    return HEAD + "\n" + textwrap.dedent(script.text).lstrip()


def told(stdout: str, begin: tuple[str, ...]) -> list[str]:
    """The printed lines that begin in one of these ways."""
    return [line for line in stdout.splitlines() if line.startswith(begin)]
