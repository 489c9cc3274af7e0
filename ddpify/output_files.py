"""Where a result goes, and what is written there: one file, a folder with all modules, or in place; all of it or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify.errors import DdpifyError
from ddpify.source import NOTEBOOK, script_path

if TYPE_CHECKING:
    from ddpify.conversion import Conversion


def in_place(path: str) -> str:
    """The file that -w writes: the script itself, or the new one beside a notebook. Raises DdpifyError where that is there already."""
    script = str(script_path(Path(path)))
    if script != path and Path(script).exists():
        raise DdpifyError(f"{script} is there already", f"-o {script} writes it anew, -o FILE another one")
    return script


def target_of(path: str, output: str | None) -> Path | None:
    """The file to write; None where the result goes to standard output. Raises DdpifyError for one that cannot be written."""
    if output is None or output == "-":
        return None
    if output.endswith(NOTEBOOK):
        raise DdpifyError("the result is a script, and no notebook is written", "name a file that ends in .py")
    if not output:
        raise DdpifyError("-o got an empty path", "name a file or a folder")
    target = Path(output)
    if is_folder(output):
        if path == "-":
            raise DdpifyError("standard input has no name to use in a folder", "name the file: -o FILE")
        target = target / _below(Path(path))
    folder = Path(output) if is_folder(output) else target.parent
    if not folder.is_dir():
        raise DdpifyError(f"cannot write {output!r}: there is no folder {str(folder)!r}", "make the folder first")
    return target


def _below(path: Path) -> Path:
    """Where a script lies in the folder that it and its modules have in common."""
    from ddpify.project import load

    project = load(path)
    return project.entry.path.relative_to(project.base(project.reachable()))


def starter_of(conversion: Conversion, file: str | None, script: str, allow_dirty: bool) -> tuple[Path, str] | None:
    """The shell script that starts the result, and where it goes; None where none is asked for, or there is no result to start."""
    from ddpify.launchers import start
    from ddpify.source import is_dirty

    if file is None:
        return None
    path = Path(file)
    if not file or path.is_dir() or not path.parent.is_dir():
        raise DdpifyError(f"cannot write the launcher to {file!r}", "name a file in a folder that exists")
    if script == "-":
        raise DdpifyError("standard input has no name that a launcher could start", "name the file: -o FILE")
    if conversion.status == "refuse" or not conversion.command:
        return None
    if path.exists() and not allow_dirty and is_dirty(path):
        raise DdpifyError(f"{path} has uncommitted changes", "commit them first, or pass --allow-dirty to overwrite them")
    return path, start.script(conversion.command, Path(os.path.relpath(script, path.parent)).as_posix())


def write_starter(path: Path, text: str) -> None:
    """Write a shell script that can be run."""
    from ddpify.source import write_all

    write_all({path: text.encode()})
    path.chmod(path.stat().st_mode | 0o111)


def is_folder(output: str) -> bool:
    """Whether `-o` names a folder."""
    return output.endswith(("/", os.sep)) or Path(output).is_dir()


def files_of(conversion: Conversion, target: Path, path: str, into_folder: bool, allow_dirty: bool) -> dict[Path, bytes]:
    """What is to be written. Raises DdpifyError where one file cannot hold it all, or git has no commit of what would be lost."""
    from ddpify.source import is_dirty

    changed = {module.path: module.bytes for module in conversion.edited}
    if _in_place(target, path):
        new = conversion.code != conversion.original or conversion.source.notebook
        files = ({target: conversion.bytes} if new else {}) | changed
        dirty = [file for file in files if not allow_dirty and file.exists() and is_dirty(file)]
        if dirty:
            raise DdpifyError(f"{dirty[0]} has uncommitted changes", "commit them first, or pass --allow-dirty to overwrite them")
        return files
    if into_folder:
        return {target: conversion.bytes} | _layout(Path(path), target, changed)
    if changed:
        names = ", ".join(module.shown for module in conversion.edited)
        fix = "write in place with -w, or into a folder that is there with -o DIR"
        raise DdpifyError(f"one file cannot hold this: {names} changes, too", fix)
    return {target: conversion.bytes}


def _in_place(target: Path, path: str) -> bool:
    script = script_path(Path(path))
    there = target.exists() and script.exists() and target.samefile(script)
    return path != "-" and (there or target.resolve() == script.resolve())


def write(conversion: Conversion, target: Path, path: str, into_folder: bool, allow_dirty: bool) -> None:
    """Write the files, all or none. Raises DdpifyError where they cannot be, or were changed since they were read."""
    from ddpify.source import write_all

    files, stays = files_of(conversion, target, path, into_folder, allow_dirty), _in_place(target, path)
    for folder in {file.parent for file in files} if into_folder and not stays else ():
        folder.mkdir(parents=True, exist_ok=True)
    script = {} if conversion.source.notebook else {target: conversion.source}
    sources = script | {m.path: m.source for m in conversion.edited if not m.added}
    write_all(files, {file: source.encode(source.original) for file, source in sources.items()} if stays else {})


def _layout(path: Path, target: Path, changed: dict[Path, bytes]) -> dict[Path, bytes]:
    """The modules that a script needs, changed or not, where they lie beside its `target`."""
    from ddpify.project import load

    project = load(path)
    modules = dict.fromkeys((*project.reachable(), *changed))
    base = project.base(modules)
    folder = target.absolute().parents[len(project.entry.path.relative_to(base).parts) - 1]
    try:
        return {folder / m.relative_to(base): changed[m] if m in changed else m.read_bytes() for m in modules}
    except OSError as error:
        raise DdpifyError(f"{error.filename} cannot be read: {error.strerror}", "make it readable, or write in place with -w") from error
