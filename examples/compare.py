"""Compares ways to train one script on several devices: the lines that change, and what two ranks then do.

    python examples/compare.py                  # every way whose package is installed
    python examples/compare.py ddpify by_hand   # these alone

Each file in examples/comparison is original.py changed for one way: `_quick` as far as the first page of its documentation goes, `_same` until
it does what original.py does. All run on two ranks on the CPU, and what they do there is counted. Prints a Markdown table.
"""

import difflib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch

HERE = Path(__file__).parent / "comparison"
ORIGINAL = HERE / "original.py"
PACKAGES = {"accelerate": "accelerate", "fabric": "lightning_fabric", "ignite": "ignite"}  # by ways: what they import
WAYS = ["ddpify", *(path.stem for path in sorted(HERE.glob("*_*.py")))]
EPOCHS, LIMIT = 3, 240  # seconds, after which a script is taken to hang

PROPERTIES = [
    "steps",
    "samples in a step",
    "each sample once an epoch",
    "another order in each",
    "prints once",
    "prints the loss of all data",
    "keeps the best weights",
    "its keys are the original's",
    "ranks agree",
]


class Run(NamedTuple):
    """Whether a script came to its end, what its ranks trained on, the losses and accuracies printed, and what the saved weights reach."""

    ended: bool
    ranks: list[dict]
    losses: list[str]
    accuracies: list[str]
    best: float | None


def main(wanted: list[str]) -> None:
    """Print the table."""
    ways = [way for way in WAYS if not wanted or way.startswith(tuple(wanted))]
    ways = [way for way in ways if (package := PACKAGES.get(way.split("_")[0])) is None or importlib.util.find_spec(package)]
    for number, way in enumerate(ways):
        cells = compared(way)
        if number == 0:
            print(f"| way | {' | '.join(cells)} |\n|{'---|' * (len(cells) + 1)}")
        print(f"| {way.replace('_', ' ')} | {' | '.join(map(said, cells.values()))} |", flush=True)


def compared(way: str) -> dict[str, object]:
    """The cells of one way, by their columns; of a script that does not come to its end nothing else is said."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train_ddp.py") if way == "ddpify" else HERE / f"{way}.py"
        if way == "ddpify":
            subprocess.run([sys.executable, "-m", "ddpify", "convert", ORIGINAL, "-o", script], check=True, capture_output=True)
        done = run(script, ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"])
        written, removed = lines(script)
        return {
            "lines written": written,
            "lines removed": removed,
            "comes to its end": done.ended,
            **(dict(zip(PROPERTIES, properties(done), strict=True)) if done.ended else dict.fromkeys(PROPERTIES, "")),
            "runs without a launcher": run(script, []).ended,
        }


def properties(done: Run) -> list[object]:
    """What is so of a run, in the order of PROPERTIES."""
    epochs = list(zip(*(by_epoch(rank["rows"]) for rank in done.ranks), strict=True))  # in each, for each rank, its batches
    orders = [[list(chain(*batches)) for batches in epoch] for epoch in epochs]
    losses = [sum(map(sum, epoch)) / sum(map(len, epoch)) for epoch in zip(*(by_epoch(r["losses"]) for r in done.ranks), strict=True)]
    return [
        len(done.ranks[0]["rows"]),
        sum(len(rank["rows"][0]) for rank in done.ranks),
        all(sorted(chain(*order)) == list(range(640)) for order in orders),
        all(a != b for a, b in zip(orders, orders[1:], strict=False)),
        len(done.losses) == EPOCHS,
        all(f"{loss:.4f}" in done.losses for loss in losses),
        done.best is not None and f"{done.best:.4f}" == max(done.accuracies),
        done.best is not None,
        all(rank["parameters"] == done.ranks[0]["parameters"] for rank in done.ranks),
    ]


def run(script: Path, launcher: list[str]) -> Run:
    """Run a script."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *launcher, HERE / "probe.py", script, folder]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "start_new_session": True}
        with subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes) as process:
            try:
                output = process.communicate(timeout=LIMIT)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
                output = process.communicate()[0]
        ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank*.json"))]
        printed = re.findall(r"epoch \d: loss ([\d.]+), accuracy ([\d.]+)", output)
        return Run(process.returncode == 0, ranks, [p[0] for p in printed], [p[1] for p in printed], reached(Path(folder, "best.pt")))


def reached(weights: Path) -> float | None:
    """The accuracy on all data for validation of the weights in a file; None where they have not the keys of the original's."""
    x = torch.sin(torch.arange(6400.0) ** 1.5).view(800, 8)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    try:
        model.load_state_dict(torch.load(weights, map_location="cpu"))
    except (OSError, RuntimeError):
        return None
    return (model(x[640:]).argmax(1) == (x[640:].sum(1) > 0)).float().mean().item()


def by_epoch(steps: list) -> list[list]:
    """What was written down for each step, in the parts that epochs are."""
    size = len(steps) // EPOCHS or 1
    return [steps[i : i + size] for i in range(0, len(steps), size)]


def lines(script: Path) -> tuple[int, int]:
    """How many lines of a script are not in the original, and how many of the original are not in it; blank ones do not count."""
    diff = list(difflib.ndiff(ORIGINAL.read_text().splitlines(), script.read_text().splitlines()))
    return sum(line[:2] == "+ " and bool(line[2:].strip()) for line in diff), sum(line[:2] == "- " for line in diff)


def said(cell: object) -> str:
    """What stands in a cell."""
    return {True: "yes", False: "**no**"}[cell] if isinstance(cell, bool) else str(cell)


if __name__ == "__main__":
    main(sys.argv[1:])
