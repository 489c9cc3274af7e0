"""Which modules of a project other scripts use, too: edits there must also hold for these."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ddpify.records import dataclass

NOT_OURS = frozenset(("site-packages", "dist-packages", "third_party", "vendor", "node_modules", "__pycache__"))
MAIN = re.compile(r"^if __name__ *== *['\"]__main__['\"]", re.M)
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|.*)|import[ \t]+(.*))", re.M)
_MOST = 1000  # scripts that are looked at


@dataclass(frozen=True)
class Member:
    """A module of a project: its file, its text, and the folder that Python finds it in by its whole name."""

    path: Path
    text: str
    root: Path


def shared(
    members: Mapping[str, Member], imports: Callable[[str], Iterable[str]], others: Iterable[tuple[Path, str]]
) -> dict[str, Path | None]:
    """The modules that are scripts, too, that other scripts than the entry may import, or that such modules import.

    Each with a script that knows it by another name, as a part of a package that is none for the entry. `others` are these scripts with
    their texts.
    """
    adding = {name.rpartition(".")[2] for name, member in members.items() if "sys.path" in member.text}  # for all scripts that import them
    words_of = [(path, text, _words(text)) for path, text in others]
    imported = [(path, "sys.path" in text or not adding.isdisjoint(words), words) for path, text, words in words_of]
    found: dict[str, Path | None] = {}
    for name, member in members.items():
        last, root = name.rpartition(".")[2], member.root
        users = [(path, searches) for path, searches, words in imported if last in words and root.name in words]
        apart = [path for path, searches in users if not _finds(path, searches, root, name.partition(".")[0])]
        by_name = (p for p, searches, words in imported if last in words and _finds(p, searches, root, name.partition(".")[0]))
        if MAIN.search(member.text) or apart or next(by_name, None) is not None:
            found[name] = apart[0] if apart else None
    todo = list(found)
    while todo:
        further = [n for n in imports(todo.pop()) if n in members and n not in found]
        found |= dict.fromkeys(further)
        todo += further
    return found


def other_scripts(known: Mapping[Path, str], entry: Path, top: Path) -> Iterator[tuple[Path, str]]:
    """The scripts of a folder beside the entry, and the modules that it does not import, with their texts; `known` are those it does."""
    yield from ((path, text) for path, text in known.items() if MAIN.search(text))
    for path in itertools.islice(scripts_below(top), _MOST) if known else ():
        if path not in known and path != entry:
            with contextlib.suppress(OSError):
                yield path, path.read_text(encoding="utf-8", errors="replace")


def scripts_below(folder: Path, ending: str = ".py") -> Iterator[Path]:
    """The Python files, or those of another ending, of a folder and those in it, installed packages and hidden folders left out."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in NOT_OURS)
        yield from (Path(here, name) for name in sorted(names) if name.endswith(ending))


def _words(text: str) -> set[str]:
    """The words of a script's import statements."""
    return {word for found in _IMPORT.finditer(text) for part in found.groups() if part for word in re.findall(r"\w+", part)}


def _finds(script: Path, searches: bool, root: Path, top: str) -> bool:
    """Whether a script of the project may find the module or package `top` of the folder `root`, and no other of that name."""
    folder = script.parent
    if folder == root:
        return True
    own = (folder / f"{top}.py").is_file() or (folder / top).is_dir()
    return not own and (root in folder.parents or folder in root.parents or searches)
