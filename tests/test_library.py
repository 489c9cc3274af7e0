"""The rows of the libraries: how they are spelled, and which of them decides."""

from __future__ import annotations

import builtins
import importlib
import sys

import pytest

from ddpify.facts.library import _ROWS, _rules, constructors, distributed, effects, files, generic, methods, paths, ranks, torch
from ddpify.facts.library.row import row_of, rows_of
from ddpify.facts.names import canonical

TABLES = {
    "functions": _ROWS,
    "constructors": constructors._ROWS,
    "optimizers": constructors._OPTIMIZERS,
    "classes with methods": methods._OF_CLASS,
    "files": files.FUNCTIONS,
    "effects": effects.EFFECTS,
    "ranks": ranks.ROWS,
    "collectives": paths.COLLECTIVES,
    "wrappers": paths.WRAPPERS,
    "precision": paths.AUTOCASTS | paths.SCALERS | paths.NO_GRAD,
}


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_spelled_as_paths_are_looked_up(table: str) -> None:
    assert [path for path in TABLES[table] if canonical(path) != path] == []


MADE_UP = ["torch.sparse.BoolTensor"]  # among the types that dense tensors have


def exists(path: str) -> bool:
    """Whether a module, or what a module holds, has a path."""
    parts = path.split(".")
    for n in range(len(parts), -1, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]) or "builtins")
        except ImportError:
            continue
        for name in parts[n:]:
            found = getattr(found, name, None)
        return found is not None
    return False


@pytest.mark.parametrize("table", ["functions", "constructors", "classes with methods", "files", "effects", "collectives"])
def test_what_has_a_row_exists(table: str) -> None:
    known = frozenset(("torch", "numpy", *dir(builtins), *sys.stdlib_module_names))
    assert [path for path in TABLES[table] if path.partition(".")[0] in known and path not in MADE_UP and not exists(path)] == []


def test_the_longest_row_decides() -> None:
    table = {"torch": 1, "torch.nn": 2, "torch.nn.Linear": 3}
    assert [row_of(table, path) for path in ("torch.nn.Linear", "torch.nn.Conv2d", "torch.load", "torchvision.ops")] == [3, 2, 1, None]
    assert rows_of(table, "torch.nn.Linear.forward") == [3, 2, 1]


def test_what_has_no_row_is_an_object() -> None:
    assert _rules("somebody.elses") == (generic.instance,)


def test_a_rule_that_gives_nothing_passes_the_call_on() -> None:
    assert _rules("torch.distributed.all_gather") == (
        distributed.ROWS["torch.distributed.all_gather"],
        torch.ROWS["torch"],
        generic.instance,
    )


@pytest.mark.parametrize(
    ("path", "optimizer"),
    [
        ("torch.optim.SGD", True),
        ("torch.optim.lr_scheduler.StepLR", False),
        ("torch.optim.swa_utils.AveragedModel", False),
        ("torch.optim.*", True),
        ("transformers.AdamW", True),
        ("transformers.Trainer", False),
        ("apex.optimizers.FusedAdam", True),
        ("somebody.elses.Adam", False),
    ],
)
def test_optimizers_are_known_by_their_package_and_name(path: str, optimizer: bool) -> None:
    assert constructors.optimizer_path(path) is optimizer


def test_a_file_that_is_moved_is_written_and_removed() -> None:
    assert [(row.kind, row.position) for row in files.FUNCTIONS["shutil.move"]] == [("write", 1), ("remove", 0)]


@pytest.mark.parametrize(
    ("path", "does"),
    [
        ("print", "print"),
        ("shutil.copy", "file"),
        ("shutil.which", None),
        ("os.makedirs", "folder"),
        ("json.dumps", None),
        ("wandb.log", "file"),
    ],
)
def test_effects_by_path(path: str, does: str | None) -> None:
    assert row_of(effects.EFFECTS, path) == does
