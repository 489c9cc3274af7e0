"""The scripts, or notebooks, of a folder that start a training."""

from __future__ import annotations

import itertools
from pathlib import Path

from ddpify.errors import DdpifyError
from ddpify.project import Project, load
from ddpify.sharing import MAIN, scripts_below
from ddpify.source import NOTEBOOK

_MOST = 1000  # files that are looked at
_TESTS = frozenset(("test", "tests", "testing", "docs", "build", "dist"))


def entries(folder: Path) -> list[Path]:
    """The scripts at or below a folder that train on one device, or else the notebooks, as seen from it, the shallowest first.

    A script is a file with a main block, or one that no other imports; what is distributed already or driven by a framework is left out.
    Raises DdpifyError where a folder holds too much to be one project.
    """
    from ddpify.rules.refuse import verdict

    paths = list(itertools.islice(scripts_below(folder), _MOST + 1))
    if len(paths) > _MOST:
        raise DdpifyError(f"{folder} holds more than {_MOST} Python files", "name the script that starts the training")
    projects = [project for path in paths if (project := _project(path, folder)) is not None]
    imported = {file for project in projects for file in project.reachable()}
    scripts = [p for p in projects if MAIN.search(p.entry.source.text) or p.entry.path not in imported]
    found = [p.entry.path.relative_to(folder.absolute()) for p in scripts if verdict(p) is None]
    if not found:
        notebooks = itertools.islice(scripts_below(folder, NOTEBOOK), _MOST)
        found = [path.relative_to(folder) for path in notebooks if (p := _project(path, folder)) is not None and verdict(p) is None]
    return sorted(found, key=lambda path: (len(path.parts), path))


def _project(path: Path, folder: Path) -> Project | None:
    """The project of a script; None for one that cannot be read, and for tests."""
    if path.name.startswith(("test_", "conftest", "setup")) or _TESTS & {part.lower() for part in path.relative_to(folder).parts}:
        return None
    try:
        return load(path)
    except DdpifyError:
        return None
