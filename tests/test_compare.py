"""The comparison with other tools: each row of its page is what examples/compare.py counts, for the tools that are installed."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest
from quick_python import python

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "examples" / "guides" / "comparison.md").read_text()
NEEDS = {"accelerate": "accelerate", "fabric": "lightning_fabric", "ignite": "ignite"}
ROWS = [line for line in PAGE.splitlines() if line.startswith(("| ddpify |", "| by hand ", "| accelerate ", "| fabric ", "| ignite "))]


def is_installed(row: str) -> bool:
    package = NEEDS.get(row.split()[1])
    return package is None or importlib.util.find_spec(package) is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_row_is_what_is_counted(row: str) -> None:
    if not is_installed(row):
        pytest.skip("not installed")
    way = row.split("|")[1].strip().replace(" ", "_")
    command = [python(), ROOT / "examples" / "compare.py", way]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True, timeout=900)
    assert done.stdout.splitlines()[-1] == row
    assert done.stdout.splitlines()[0] in PAGE


def test_every_way_has_a_row() -> None:
    ways = {path.stem for path in (ROOT / "examples" / "comparison").glob("*_*.py")} | {"ddpify"}
    assert {row.split("|")[1].strip().replace(" ", "_") for row in ROWS} == ways
