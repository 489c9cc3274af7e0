"""The entry file and the local modules it imports."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify.source import Source, parse, read

if TYPE_CHECKING:
    from ddpify.facts.model import Objects

ADDED = "What scripts and modules ask of the ranks they run on; without a process group there is one."
_NOT_OURS = frozenset(("site-packages", "dist-packages", "third_party", "vendor", "node_modules", "__pycache__"))
_MAIN = re.compile(r"^if __name__ *== *['\"]__main__['\"]", re.M)


def _objects() -> Objects:
    from ddpify.facts.model import Objects

    return Objects()


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One parsed file: `name` is its dotted module name (`__main__` for the entry), `source` its text and how it was encoded."""

    name: str
    path: Path
    shown: str
    source: Source
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether relative imports start at the module itself."""
        return self.path.name == "__init__.py"


@dataclass(eq=False)
class Project:
    """The entry and, found when asked for, the modules below the directories that Python would search for it."""

    entry: SourceFile
    roots: tuple[Path, ...]
    files: dict[str, SourceFile] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    objects: Objects = field(default_factory=_objects)
    overlay: dict[Path, Source] = field(default_factory=dict)  # texts that stand for files, or that there are no files of yet
    memo: dict[tuple[str, ast.AST], object] = field(default_factory=dict)
    _missing: set[str] = field(default_factory=set)

    def module(self, name: str) -> SourceFile | None:
        """The local module `name`, parsed; None where it is not local or cannot be parsed (then `broken` says why)."""
        if name in self.files:
            return self.files[name]
        if name in self._missing:
            return None
        for path in self._candidates(name):
            try:
                source = self.overlay.get(path) or read(path)
                tree = parse(source, str(path))
            except Exception as error:  # an imported module that no Python 3 can read: its values are unknown, and the plan says so
                self.broken[name] = str(error)
                break
            self.files[name] = SourceFile(name, path, _shown(path, self.entry.path), source, tree)
            return self.files[name]
        self._missing.add(name)
        return None

    def may_edit(self, name: str) -> bool:
        """Whether a module's file belongs to the project: it lies where the entry does, or below, and is no one else's."""
        path = self.files[name].path.resolve()
        folder = self.entry.path.parent.resolve()
        return folder in path.parents and not self.is_ours(name) and not _NOT_OURS & set(path.parts)

    def is_ours(self, name: str) -> bool:
        """Whether a module is one that a conversion has added."""
        file = self.module(name)
        return file is not None and file.source.text.startswith(f'"""{ADDED}"""')

    @cached_property
    def scripts(self) -> list[str]:
        """The texts of the folder's other scripts, and of the modules that the entry does not import."""
        known = {f.path: f.source.text for f in self.files.values()}
        out = [text for text in known.values() if _MAIN.search(text)]
        for path in itertools.islice(_scripts_below(self.entry.path.parent), 1000) if self.files else ():
            if path not in known and path != self.entry.path:
                with contextlib.suppress(OSError):
                    out.append(path.read_text(encoding="utf-8", errors="replace"))
        return out

    def is_shared(self, name: str) -> bool:
        """Whether a module is a script, too, or other scripts than the entry may import it."""
        last = re.escape(name.rpartition(".")[2])
        imports = re.compile(rf"^\s*(?:from\s+[\w.]*\b{last}\s+import|import\s+.*\b{last}\b|from\s+[\w.]+\s+import\s+.*\b{last}\b)", re.M)
        return bool(_MAIN.search(self.files[name].source.text)) or any(imports.search(text) for text in self.scripts)

    def is_local(self, name: str) -> bool:
        """Whether `name` is a module or a namespace package of the project."""
        return self.module(name) is not None or any((root / name.replace(".", "/")).is_dir() for root in self.roots)

    def _candidates(self, name: str) -> Iterator[Path]:
        relative = name.replace(".", "/")
        for root in self.roots:
            for path in (root / relative / "__init__.py", root / f"{relative}.py"):
                if (path in self.overlay or path.is_file()) and path != self.entry.path:
                    yield path


def _shown(path: Path, entry: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _scripts_below(folder: Path) -> Iterator[Path]:
    """The Python files of a folder and those in it, installed packages and hidden folders left out."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _NOT_OURS)
        yield from (Path(here, name) for name in sorted(names) if name.endswith(".py"))


def load(path: Path) -> Project:
    """The project whose entry is `path`. Raises DdpifyError where the file cannot be read or parsed."""
    source = read(path)
    return of_source(source, path, str(path))


def of_source(source: Source, path: Path | None, shown: str) -> Project:
    """The project of a source text; without a path there are no local modules."""
    tree = parse(source, shown)
    where = (path or Path(shown)).absolute()
    roots: tuple[Path, ...] = ()
    if path is not None:
        roots = (where.parent, *_path_additions(tree, where.parent), *_packages_above(where.parent))
    return Project(SourceFile("__main__", where, shown, source, tree), roots)


def _packages_above(folder: Path) -> Iterator[Path]:
    """Where `python -m package.module` or a run from the repository's top would look: the first folder above the packages."""
    above = folder
    while (above / "__init__.py").is_file():
        above = above.parent
    if above != folder:
        yield above
    for folder_up in (folder, *folder.parents):
        if any((folder_up / mark).exists() for mark in ("setup.py", "pyproject.toml", ".git")):
            yield folder_up
            break
    working = Path.cwd()
    if working != folder and working in folder.parents:
        yield working


def _path_additions(tree: ast.Module, folder: Path) -> Iterator[Path]:
    """The folders that the script itself adds to `sys.path`, where they are literal."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "insert")
            and ast.unparse(node.func.value) == "sys.path"
            and node.args
        ):
            last = node.args[-1]
            if isinstance(last, ast.Constant) and isinstance(last.value, str):
                yield (folder / last.value).resolve()
            elif any(isinstance(n, ast.Constant) and n.value in ("..", "../") for n in ast.walk(last)) or "dirname" in ast.unparse(last):
                yield folder.parent
