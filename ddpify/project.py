"""The entry file and the local modules it imports."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify.errors import DdpifyError
from ddpify.search_path import additions
from ddpify.source import Source, parse, read

if TYPE_CHECKING:
    from ddpify.facts.model import Objects
    from ddpify.facts.tree import Tree

ADDED = "What scripts and modules ask of the ranks they run on; without a process group there is one."
NOT_OURS = frozenset(("site-packages", "dist-packages", "third_party", "vendor", "node_modules", "__pycache__"))
MAIN = re.compile(r"^if __name__ *== *['\"]__main__['\"]", re.M)
_MARKS = ("setup.py", "setup.cfg", "pyproject.toml", ".git")


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

    @cached_property
    def standing(self) -> Tree:
        """Where its nodes stand."""
        from ddpify.facts.tree import Tree

        return Tree(self.name, self.shown, self.tree)


@dataclass(eq=False)
class Project:
    """The entry and, found when asked for, the modules below the directories that Python would search for it.

    `package` is the package that the entry belongs to, where it is run as a part of one (`python -m package.train`), else empty.
    """

    entry: SourceFile
    roots: tuple[Path, ...]
    package: str = ""
    files: dict[str, SourceFile] = field(default_factory=dict)
    broken: dict[str, DdpifyError] = field(default_factory=dict)
    objects: Objects = field(default_factory=_objects)
    overlay: dict[Path, Source] = field(default_factory=dict)  # texts that stand for files, or that there are no files of yet
    parsed: dict[Path, SourceFile] = field(default_factory=dict)  # modules that need not be read again
    memo: dict[tuple[str, ast.AST], object] = field(default_factory=dict)
    _missing: set[str] = field(default_factory=set)

    def module(self, name: str) -> SourceFile | None:
        """The local module `name`, parsed; None where it is not local or cannot be parsed (then `broken` says why)."""
        if name in self.files:
            return self.files[name]
        if name in self._missing:
            return None
        for path in self._candidates(name):
            file = self.parsed.get(path)
            try:
                source = file.source if file is not None else self.overlay.get(path) or read(path)
                tree = file.tree if file is not None else parse(source, str(path))
            except DdpifyError as error:  # its values are unknown, and the plan says so
                self.broken[name] = error
                break
            self.files[name] = file if file is not None and file.name == name else SourceFile(name, path, shown(path), source, tree)
            self._search(_additions(source, tree, path))
            return self.files[name]
        self._missing.add(name)
        return None

    def _search(self, folders: Iterable[Path]) -> None:
        """Look for modules in further folders, too."""
        new = [folder for folder in folders if folder not in self.roots]
        if new:
            self.roots = (*self.roots, *dict.fromkeys(new))
            self._missing.clear()

    @property
    def runs(self) -> str:
        """The module that the entry is run as (`python -m package.train`); empty where it is run by its path."""
        name = self.entry.path.stem
        return "" if not self.package else self.package if name == "__main__" else f"{self.package}.{name}"

    @cached_property
    def top(self) -> Path:
        """The project's folder: the first above the entry with a `.git` or a `pyproject.toml`, else where the entry finds modules."""
        folder = self.entry.path.parent
        marked = _marked(folder)
        if marked is not None:
            return marked
        above = [root for root in self.roots if root in folder.parents]
        return min(above, key=lambda root: len(root.parts), default=folder)

    def may_edit(self, name: str) -> bool:
        """Whether a module's file belongs to the project: it lies in its folder, whatever links lead to it, and is no one else's."""
        path = self.files[name].path
        inside = self.top.resolve() in path.resolve().parents and self.top in path.parents
        return inside and not self.is_ours(name) and not NOT_OURS & set(path.relative_to(self.top).parts)

    def root_of(self, name: str) -> Path:
        """The folder that Python finds a module in by its whole name."""
        folder = self.files[name].path.parent
        for _ in range(name.count(".") + self.files[name].is_package):
            folder = folder.parent
        return folder

    def home(self, names: Sequence[str]) -> tuple[Path, str]:
        """The folder for a module that the entry and the modules `names` import, and the package that this folder is, or none."""
        folder = self.entry.path.parent
        if not self.package and all(self.root_of(name) == folder for name in names):
            return folder, ""
        tops = {name.partition(".")[0] for name in names if "." in name or self.files[name].is_package}
        tops |= {self.package.partition(".")[0]} if self.package else set()
        if len(tops) == 1 and all(name.partition(".")[0] in tops for name in names):  # who imports one module of a package finds all
            (package,) = tops
            root = self.root_of(names[0]) if names else next(r for r in self.roots if (r / self.package.replace(".", "/")) == folder)
            return root / package, package
        roots = [self.root_of(name) for name in names]
        return next((root for root in roots if root != folder), folder), ""

    def is_ours(self, name: str) -> bool:
        """Whether a module is one that a conversion has added."""
        file = self.module(name)
        return file is not None and file.source.text.startswith(f'"""{ADDED}"""')

    @cached_property
    def scripts(self) -> dict[Path, str]:
        """The texts of the project's other scripts, and of the modules that the entry does not import."""
        known = {f.path: f.source.text for f in self.files.values()}
        out = {path: text for path, text in known.items() if MAIN.search(text)}
        for path in itertools.islice(scripts_below(self.top), 1000) if self.files else ():
            if path not in known and path != self.entry.path:
                with contextlib.suppress(OSError):
                    out[path] = path.read_text(encoding="utf-8", errors="replace")
        return out

    def is_shared(self, name: str) -> bool:
        """Whether a module is a script, too, or other scripts than the entry may import it, or a module that imports it."""
        return name in self._shared

    @cached_property
    def _shared(self) -> frozenset[str]:
        found = [name for name in self.files if self._is_imported(name)]
        shared = dict.fromkeys(found)
        while found:
            file = self.files[found.pop()]
            further = [n for n in _imported(file, self.package) if n not in shared and n in self.files]
            further += [up for n in _imported(file, self.package) if (up := n.rpartition(".")[0]) in self.files and up not in shared]
            shared |= dict.fromkeys(further)
            found += further
        return frozenset(shared)

    def _is_imported(self, name: str) -> bool:
        """Whether a module is a script, or a script of the project imports it."""
        top, _, rest = name.partition(".")
        last, root = re.escape(rest.rpartition(".")[2] or top), self.root_of(name)
        imports = re.compile(rf"^\s*(?:from\s+[\w.]*\b{last}\s+import|import\s+.*\b{last}\b|from\s+[\w.]+\s+import\s+.*\b{last}\b)", re.M)
        if MAIN.search(self.files[name].source.text):
            return True
        return any(imports.search(text) and _finds(path, text, root, top) for path, text in self.scripts.items())

    def is_local(self, name: str) -> bool:
        """Whether `name` is a module or a namespace package of the project."""
        return self.module(name) is not None or any((root / name.replace(".", "/")).is_dir() for root in self.roots)

    def reachable(self) -> list[Path]:
        """The files of the project that imports lead to, wherever these stand, in their order; those that cannot be parsed, too."""
        found: dict[Path, None] = {}
        todo, seen = [("__main__", self.entry)], {"__main__"}
        while todo:
            _, here = todo.pop(0)
            for name in self._chosen(_imported(here, self.package)):
                parts = name.split(".")
                for name_here in (".".join(parts[: i + 1]) for i in range(len(parts))):
                    if name_here not in seen:
                        seen.add(name_here)
                        file = self.module(name_here)
                        found.update(dict.fromkeys(itertools.islice(self._candidates(name_here), 1)))
                        todo += [(name_here, file)] if file is not None else []
        return [path for path in found if self.top in path.parents and not NOT_OURS & set(path.relative_to(self.top).parts)]

    def _chosen(self, names: Iterable[str]) -> Iterator[str]:
        """The names of modules, with all of a package for `package.*`."""
        for name in names:
            if not name.endswith(".*"):
                yield name
                continue
            folders = (root / name[:-2].replace(".", "/") for root in self.roots)
            yield from (f"{name[:-2]}.{path.stem}" for folder in folders for path in sorted(folder.glob("*.py")))

    def base(self, files: Iterable[Path]) -> Path:
        """The folder that holds the entry and `files`, and the package that the entry is a part of."""
        folder = self.roots[0] if self.package else self.entry.path.parent
        return Path(os.path.commonpath([folder, *(file.parent for file in files)]))

    def _candidates(self, name: str) -> Iterator[Path]:
        relative = name.replace(".", "/")
        for root in self.roots:
            for path in (root / relative / "__init__.py", root / f"{relative}.py"):
                if (path in self.overlay or path.is_file()) and path != self.entry.path:
                    yield path


def shown(path: Path) -> str:
    """A path as messages call it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _finds(script: Path, text: str, root: Path, top: str) -> bool:
    """Whether a script of the project may find the module or package `top` of the folder `root`, and no other of that name."""
    folder = script.parent
    if folder == root:
        return True
    own = (folder / f"{top}.py").is_file() or (folder / top).is_dir()
    return not own and (root in folder.parents or folder in root.parents or "sys.path" in text)


def _imported(file: SourceFile, package: str) -> Iterator[str]:
    """The names of the modules that a file may import; of a package whose modules it chooses by name, all."""
    here = f"{package}.{file.name}".lstrip(".") if file.name == "__main__" else file.name
    inside = here.split(".") if file.is_package and file.name != "__main__" else here.split(".")[:-1]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = inside[: len(inside) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from (".".join(filter(None, (base, alias.name if alias.name != "*" else ""))) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in ("import_module", "__import__"):
            parts = [part for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            known = str(parts[0].value) if parts else ""
            if isinstance(node.args[0], ast.Constant):
                yield known.lstrip(".")
            elif known.endswith("."):
                yield f"{known}*"  # chosen by name


def scripts_below(folder: Path) -> Iterator[Path]:
    """The Python files of a folder and those in it, installed packages and hidden folders left out."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in NOT_OURS)
        yield from (Path(here, name) for name in sorted(names) if name.endswith(".py"))


def load(path: Path) -> Project:
    """The project whose entry is `path`. Raises DdpifyError where the file cannot be read or parsed."""
    source = read(path)
    return of_source(source, path, str(path))


def of_source(source: Source, path: Path | None, shown: str) -> Project:
    """The project of a source text; without a path there are no local modules."""
    tree = parse(source, shown)
    where = (path or Path(shown)).absolute()
    entry = SourceFile("__main__", where, shown, source, tree)
    if path is None:
        return Project(entry, ())
    package = _package(tree, where.parent)
    first = where.parents[package.count(".") + 1] if package else where.parent
    return Project(entry, tuple(dict.fromkeys((first, *_additions(source, tree, where), *_packages_above(where.parent)))), package)


def _package(tree: ast.Module, folder: Path) -> str:
    """The package that a script is a part of, if it imports by its place there (`from .data import loaders`)."""
    levels = [n.level for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    if not any(levels):
        return ""
    names = [folder.name]
    while ((folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file()) or len(names) < max(levels):
        folder = folder.parent
        names.insert(0, folder.name)
    return ".".join(names)


def _marked(folder: Path) -> Path | None:
    """The first folder, from one upwards, that a project's files mark as its top."""
    return next((up for up in (folder, *folder.parents) if any((up / mark).exists() for mark in _MARKS)), None)


def _packages_above(folder: Path) -> Iterator[Path]:
    """Where `python -m package.module` or a run from the repository's top would look: the first folder above the packages."""
    above = folder
    while (above / "__init__.py").is_file():
        above = above.parent
    if above != folder:
        yield above
    marked = _marked(folder)
    if marked is not None:
        yield marked
    working = Path.cwd()
    if working != folder and working in folder.parents:
        yield working


def _additions(source: Source, tree: ast.Module, path: Path) -> Iterator[Path]:
    """The folders that a file adds to `sys.path`."""
    return additions(tree, path) if "sys" in source.text or "addsitedir" in source.text else iter(())
