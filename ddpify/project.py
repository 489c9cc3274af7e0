"""The entry file and the local modules it imports."""

from __future__ import annotations

import ast
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify import comments
from ddpify.errors import DdpifyError
from ddpify.progress import doing
from ddpify.records import dataclass, field
from ddpify.resources import template_dir
from ddpify.search_path import additions, packages_in
from ddpify.sharing import NOT_OURS, Member, other_scripts, shared
from ddpify.source import NOTEBOOK, Source, parse, read, read_bytes, script_path

if TYPE_CHECKING:
    from ddpify.facts.model import Objects
    from ddpify.facts.tree import Tree

_INSTALLED = ("site-packages", "dist-packages")
ADDED = "What scripts and modules ask of the ranks they run on; without a process group there is one."
_MARKS = ("setup.py", "setup.cfg", "pyproject.toml", ".git")
_COMPILED = frozenset(("torch", "torchvision", "numpy", "apex"))  # whose own sources say less than what is known of them
_LEVELS = 2  # so many folders up, a script without a marked project looks for modules


@cache
def _known_libraries() -> frozenset[str]:
    return frozenset(path.stem for path in (template_dir() / "library").glob("*.py"))


@cache
def _library(package: str) -> SourceFile:
    path = template_dir() / "library" / f"{package}.py"
    source = read(path)
    return SourceFile(f"<{package}>", path, f"<{package}>", source, parse(source, str(path)))


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
    above: tuple[Path, ...] = ()  # those of `roots` that no line of the script names
    files: dict[str, SourceFile] = field(default_factory=dict)
    broken: dict[str, DdpifyError] = field(default_factory=dict)
    objects: Objects = field(default_factory=_objects)
    overlay: dict[Path, Source] = field(default_factory=dict)  # texts that stand for files, or that there are no files of yet
    parsed: dict[tuple[Path, str], SourceFile] = field(default_factory=dict)  # modules that need not be read again, by path and name
    memo: dict[tuple[object, ...], object] = field(default_factory=dict)
    placements: Mapping[str, str] = field(default_factory=dict)  # what is said of functions by dotted path, of lines by `train.py:31`
    libraries: dict[str, SourceFile] = field(default_factory=dict)  # what is known of packages, as source, by the name of its module
    _missing: set[str] = field(default_factory=set)

    def said_of_lines(self, file: str) -> dict[int, str]:
        """What is said of the values that lines of a file compute; `file` is the path shown."""
        places = ((*place.rpartition(":"), said) for place, said in self.placements.items())
        return {int(line): said for name, _, line, said in places if name == file and line.isdigit()}

    def module(self, name: str) -> SourceFile | None:
        """The local module `name`, parsed; None where it is not local or cannot be parsed (then `broken` says why)."""
        if name in self.files:
            return self.files[name]
        if name in self._missing or self._is_inside_module(name):
            return None
        for path in self._candidates(name):
            file = self.parsed.get((path, name))
            doing(f"reading {shown(path)}")
            try:
                source = file.source if file is not None else self.overlay.get(path) or read(path)
                tree = file.tree if file is not None else parse(source, str(path))
            except DdpifyError as error:  # its values are unknown, and the plan says so
                self.broken[name] = error
                break
            self.files[name] = file if file is not None else SourceFile(name, path, shown(path), source, tree)
            self._search(_additions(source, tree, path))
            return self.files[name]
        if self._look_around(name):
            return self.module(name)
        self._missing.add(name)
        return None

    def _is_inside_module(self, name: str) -> bool:
        """Whether a name is that of something in a module that is no package: with `net.py`, there is no module `net.net`."""
        up = name.rpartition(".")[0]
        holder = self.module(up) if up else None
        return holder is not None and not holder.is_package

    def _look_around(self, name: str) -> bool:
        """Whether a folder around the script holds a module that is found nowhere else: it is run with that folder on Python's path."""
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in _COMPILED:
            return False
        found = next((f for f in self.around if f not in self.roots and any(self._candidates(name, (f,)))), None)
        self._search((found,) if found is not None else ())
        return found is not None

    @cached_property
    def around(self) -> list[Path]:
        """The folders around the script up to the project's top, and those that its packages are installed from."""
        folder, top = self.entry.path.parent, self._top
        if top is None:
            return [up for up in folder.parents[:_LEVELS] if up != Path.home() and up.parent != up]
        between = [up for up in folder.parents if up == top or top in up.parents]
        return [*between, *(top / name for name in packages_in(top))]

    def library(self, package: str) -> SourceFile | None:
        """What classes and functions of a package compute, as source (templates/library); None where nothing is known so."""
        file = _library(package) if package in _known_libraries() else None
        if file is not None:
            self.libraries[file.name] = file
        return file

    def file(self, name: str) -> SourceFile:
        """A module whose code is run, by its name; `__main__` is the entry."""
        return self.entry if name == self.entry.name else self.files.get(name) or self.libraries[name]

    def has_file(self, name: str) -> bool:
        """Whether a module has code that is run: a folder without any, such as a submodule that was not fetched, has none."""
        return name == self.entry.name or name in self.files or name in self.libraries

    @property
    def analysed(self) -> dict[str, SourceFile]:
        """The modules whose code is run: those of the project, and what is known of packages."""
        return {**self.files, **self.libraries}

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
    def _top(self) -> Path | None:
        return _top_folder(self.entry.path.parent)

    @property
    def top(self) -> Path:
        """The project's folder: the first above the entry with a `.git` or a `pyproject.toml`, else that of where the entry finds modules.

        A folder beside the entry's that the script itself names, such as `../lib`, is a part of it.
        """
        folder = self.entry.path.parent
        if self._top is not None:
            return self._top
        above = [root for root in self.roots if root in folder.parents]
        beside = [root.parent for root in self.roots if root.parent in folder.parents[:2] and root not in (folder, *above)]
        started = Path.cwd()  # which counts where nothing else does
        named = [*beside, *(root for root in above if root != started)]
        return min(named or above, key=lambda root: len(root.parts), default=folder)

    def may_edit(self, name: str) -> bool:
        """Whether a module's file belongs to the project: it lies in its folder, whatever links lead to it, and is no one else's.

        A comment may ask that it stays as it is.
        """
        if name not in self.files or comments.skips_file(self.files[name].source.text):
            return False
        path = self.files[name].path
        inside = self.top.resolve() in path.resolve().parents and self.top in path.parents
        return inside and not self.is_ours(name) and not NOT_OURS & set(path.relative_to(self.top).parts)

    def root_of(self, name: str) -> Path:
        """The folder that Python finds a module in by its whole name."""
        folder = self.files[name].path.parent
        for _ in range(name.count(".") + self.files[name].is_package):
            folder = folder.parent
        return folder

    def common_folder(self, names: Sequence[str]) -> tuple[Path, str]:
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
        roots = list(dict.fromkeys(self.root_of(name) for name in names))
        if len(roots) > 1 and not self.package:  # Python looks beside the entry from the start, in other folders once the script says so
            return folder, ""
        return next((root for root in roots if root != folder), folder), ""

    def is_ours(self, name: str) -> bool:
        """Whether a module is one that a conversion has added."""
        file = self.module(name)
        return file is not None and file.source.text.startswith(f'"""{ADDED}"""')

    def is_shared(self, name: str) -> bool:
        """Whether other scripts than the entry use a module, too."""
        return name in self._shared

    def known_apart(self, name: str) -> Path | None:
        """A script that knows a module by another name than the entry does, as a part of a package."""
        return self._shared.get(name)

    @cached_property
    def _shared(self) -> dict[str, Path | None]:
        members = {name: Member(file.path, file.source.text, self.root_of(name)) for name, file in self.files.items()}
        return shared(members, lambda name: self.imports(self.files[name]), self.other_scripts())

    def other_scripts(self) -> Iterator[tuple[Path, str]]:
        """The project's other scripts, and the modules that the entry does not import, with their texts."""
        return other_scripts({file.path: file.source.text for file in self.files.values()}, self.entry.path, self.top)

    def is_local(self, name: str) -> bool:
        """Whether `name` is a module or a namespace package of the project."""
        found = self.module(name) is not None
        folders = (root / name.replace(".", "/") for root in self._roots(name))
        return found or any(f.is_dir() and not self._installed(f / "__init__.py") for f in folders)

    def names(self, text: str) -> bool:
        """Whether a text names what a module of the project holds: `package.module.Name`."""
        return self.module(text.rpartition(".")[0]) is not None

    def imports(self, file: SourceFile) -> list[str]:
        """The modules that a file may import, wherever it says so, and the packages around them; there may be none of a name."""
        here = f"{self.package}.{file.name}".lstrip(".") if file is self.entry else file.name
        inside = here.split(".") if file.is_package and file is not self.entry else here.split(".")[:-1]
        names: list[str] = []
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                if node.level > len(inside) + 1:  # more dots than packages: Python refuses it
                    continue
                start = inside[: len(inside) - node.level + 1] if node.level else []
                base = ".".join([*start, *([node.module] if node.module else [])])
                names += [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names if alias.name != "*")]
            elif isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in ("import_module", "__import__"):
                names += self._chosen(node.args[0])
        parts = [name.split(".") for name in names]
        return list(dict.fromkeys(".".join(part[: i + 1]) for part in parts for i in range(len(part)) if part[0]))

    def _chosen(self, name: ast.expr) -> list[str]:
        """The module of a name that is spelled out, or all of a package, where only that is."""
        parts = [part for part in ast.walk(name) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        known = str(parts[0].value) if parts else ""
        if isinstance(name, ast.Constant) or not known.endswith("."):
            return [known.lstrip(".")] if isinstance(name, ast.Constant) else []
        folders = (root / known[:-1].replace(".", "/") for root in self.roots)
        return [f"{known}{path.stem}" for folder in folders for path in sorted(folder.glob("*.py"))]

    def reachable(self) -> list[Path]:
        """The files of the project that imports lead to, wherever these stand, in their order; those that cannot be parsed, too."""
        found: dict[Path, None] = {}
        todo, seen = [self.entry], {""}
        while todo:
            for name in self.imports(todo.pop(0)):
                if name not in seen:
                    seen.add(name)
                    file = self.module(name)
                    found.update(dict.fromkeys(itertools.islice(self._candidates(name), 1)))
                    todo += [file] if file is not None else []
        return [path for path in found if self.top in path.parents and not NOT_OURS & set(path.relative_to(self.top).parts)]

    def base(self, files: Iterable[Path]) -> Path:
        """The folder that holds the entry and `files`, and the package that the entry is a part of."""
        folder = self.roots[0] if self.package else self.entry.path.parent
        return Path(os.path.commonpath([folder, *(file.parent for file in files)]))

    def _roots(self, name: str) -> Sequence[Path]:
        """Where to look for a module: a package whose sources lie around the script is what is known of it."""
        known = name.partition(".")[0] in _COMPILED
        return [root for root in self.roots if root not in self.above] if known else self.roots

    def _candidates(self, name: str, roots: Sequence[Path] = ()) -> Iterator[Path]:
        relative = name.replace(".", "/")
        for root in roots or self._roots(name):
            for path in (root / relative / "__init__.py", root / f"{relative}.py"):
                if (path in self.overlay or path.is_file()) and path != self.entry.path and not self._installed(path):
                    yield path

    def _installed(self, path: Path) -> bool:
        """Whether a file belongs to the libraries that are installed: to a script among these, only its own folder is local."""
        libraries, folder = _libraries(path.parent), self.entry.path.parent
        return libraries is not None and (folder == libraries or folder not in path.parents)


@cache
def _libraries(folder: Path) -> Path | None:
    """The folder of installed libraries, or of the standard library, that a folder lies in."""
    around = (folder, *folder.parents)
    return next((f for f in around if f.name in _INSTALLED or (f.name.startswith("python3") and f.parent.name in ("lib", "lib64"))), None)


def shown(path: Path) -> str:
    """A path as messages call it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def load(path: Path) -> Project:
    """The project whose entry is `path`, a script or a notebook. Raises DdpifyError where the file cannot be read or parsed."""
    if path.suffix == NOTEBOOK:
        from ddpify.notebook.script import script

        source = script(read_bytes(path), str(path), path.parent)
        return of_source(source, script_path(path), str(script_path(path)))
    source = read(path)
    return of_source(source, path, str(path))


def of_source(source: Source, path: Path | None, shown: str) -> Project:
    """The project of a source text; without a path there are no local modules."""
    tree = parse(source, shown)
    where = (path or Path(shown)).absolute()
    where = where.parent.resolve() / where.name if ".." in where.parts else where
    entry = SourceFile("__main__", where, shown, source, tree)
    if path is None:
        return Project(entry, ())
    package = _package(entry, where.parent)
    first = where.parents[package.count(".") + 1] if package else where.parent
    named = tuple(dict.fromkeys((first, *_additions(source, tree, where))))
    above = tuple(root for root in dict.fromkeys(_packages_above(where.parent)) if root not in named)
    return Project(entry, (*named, *above), package, above)


def _package(entry: SourceFile, folder: Path) -> str:
    """The package that a script is a part of, if it imports by its place there (`from .data import loaders`)."""
    levels = [n.level for n in entry.standing.of(ast.ImportFrom)]
    if not any(levels):
        return ""
    names = [folder.name]
    while folder.parent.name and (_in_a_package(folder) or len(names) < max(levels)):
        folder = folder.parent
        names.insert(0, folder.name)
    return ".".join(names)


def _in_a_package(folder: Path) -> bool:
    """Whether a package is a part of another."""
    return (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file()


def _top_folder(folder: Path) -> Path | None:
    """The first folder, from one upwards, that a project's files mark as its top."""
    return next((up for up in (folder, *folder.parents) if any((up / mark).exists() for mark in _MARKS)), None)


def _packages_above(folder: Path) -> Iterator[Path]:
    """Where `python -m package.module` or a run from the repository's top would look: the first folder above the packages."""
    above = folder
    while (above / "__init__.py").is_file():
        above = above.parent
    if above != folder:
        yield above
    marked = _top_folder(folder)
    if marked is not None:
        yield marked
    working = Path.cwd()
    if working != folder and working in folder.parents:
        yield working


def _additions(source: Source, tree: ast.Module, path: Path) -> Iterator[Path]:
    """The folders that a file adds to `sys.path`."""
    return additions(tree, path) if "sys" in source.text or "addsitedir" in source.text else iter(())
