"""A tree of links to run a script in: its code is copied, and what it writes stays there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from ddpify.errors import DdpifyError

_NOT_CODE = frozenset((".git", ".hg", ".svn", "__pycache__", "node_modules", "site-packages", ".venv", "venv", ".tox", ".mypy_cache"))
_CODE = (".py", ".pyi")
_ABOVE = 2  # folders above the project that relative paths may reach
_FROM_THERE = "run ddpify verify from the script's folder"
_LIMIT = 20_000  # entries that are looked at for code
INSIDE = Path(__file__).with_name("inside")
_RANK = r"(?:\[rank\d+\]: ?)?"
_OWN = re.compile(rf'^{_RANK}  File "{re.escape(str(INSIDE))}[^\n]*\n(?:{_RANK}    [^\n]*\n)*', re.MULTILINE)


class Scratch:
    """The folder `cwd`, with `script` and `texts` (path: content) in the place of the user's files, below the new folder `base`."""

    def __init__(self, base: Path, cwd: Path, scripts: list[Path], texts: dict[Path, bytes]) -> None:
        self.base = base
        real = [path.resolve() for path in (cwd, *(script.parent for script in scripts))]
        try:
            self._named = Path(os.path.commonpath(real))
            real += [path.parent.resolve() for path in texts]
            self._root = Path(os.path.commonpath(real))
        except ValueError as error:  # on two drives
            raise DdpifyError("the script and the current folder are on different drives", _FROM_THERE) from error
        if len(self._root.parts) < 2:
            raise DdpifyError("the script and the current folder have nothing in common", _FROM_THERE)
        self._needed = {folder for path in real for folder in (path, *path.parents)}
        above = [self._root, *self._root.parents][: _ABOVE + 1]
        above = [folder for folder in above if len(folder.parts) > 1]
        self._top = above[-1]
        self._seen = 0
        for folder, inner in zip(reversed(above), [*reversed(above[:-1]), None], strict=True):
            if inner is None:
                self._mirror(folder)
            else:
                self._link(folder, inner.name)
        for path, content in texts.items():
            target = self.path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.write_bytes(content)

    def path(self, real: Path) -> Path:
        """Where a file or folder of the user's lies in the tree."""
        return self.base / self._top.name / real.resolve().relative_to(self._top)

    def own(self, folder: str) -> str:
        """A folder in which modules are searched for: the tree's where it is one of the project's."""
        inside = Path(folder).is_absolute() and Path(folder).resolve().is_relative_to(self._root)
        return str(self.path(Path(folder))) if inside else folder

    def shown(self, path: str) -> str:
        """A path that the script wrote to, as the user knows it: relative to the project, or absolute outside the tree."""
        root = str(self.path(self._named))
        return (
            os.path.relpath(path, root)
            if path.startswith(root + os.sep)
            else path.replace(str(self.base / self._top.name), str(self._top), 1)
        )

    def _link(self, folder: Path, but: str) -> None:
        """A folder whose entries are links, `but` for one that follows."""
        own = self.base / self._top.name / folder.relative_to(self._top)
        own.mkdir(parents=True, exist_ok=True)
        for entry in _entries(folder):
            if entry.name != but:
                (own / entry.name).symlink_to(entry.path)

    def _mirror(self, folder: Path) -> None:
        """A folder with copies of its code and links to all else. What is needed is no link: who runs in one runs in the user's."""
        own = self.base / self._top.name / folder.relative_to(self._top)
        own.mkdir(parents=True, exist_ok=True)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False) and (Path(entry.path) in self._needed or self._has_code(entry)):
                self._mirror(Path(entry.path))
            elif entry.name.endswith(_CODE) and entry.is_file():
                shutil.copy2(entry.path, own / entry.name)
            else:
                (own / entry.name).symlink_to(entry.path)

    def _has_code(self, folder: os.DirEntry[str]) -> bool:
        """Whether there is code of the project somewhere in a folder."""
        if folder.name in _NOT_CODE or Path(folder.path, "pyvenv.cfg").exists():
            return False
        for _, folders, files in os.walk(folder.path):
            folders[:] = [name for name in folders if name not in _NOT_CODE]
            self._seen += len(files) + len(folders)
            if any(name.endswith(_CODE) for name in files):
                return True
            if self._seen > _LIMIT:
                return False
        return False


def shown_in(text: str, shown: Callable[[str], str]) -> str:
    """A traceback, or stacks, with the paths made those that the user knows, without calls of the rehearsal's own."""
    return re.sub(r'(?<=File ")[^"\n]+', lambda found: shown(found[0]), _OWN.sub("", text))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
