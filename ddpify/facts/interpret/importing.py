"""Imports: the modules of the project that they run, and the names that they bind."""

from __future__ import annotations

import ast

from ddpify.facts import library
from ddpify.facts.interpret.literals import literal
from ddpify.facts.interpret.state import STARS, Interpreter
from ddpify.facts.model import (
    NOTHING,
    Ext,
    Module,
    Tup,
    Value,
    just,
)
from ddpify.facts.names import canonical
from ddpify.project import SourceFile


def execute_import(run: Interpreter, node: ast.Import) -> bool:
    """`import a.b as c`."""
    for alias in node.names:
        top = alias.name if alias.asname else alias.name.partition(".")[0]
        run.bind(alias.asname or top, import_module(run, alias.name, top))
    return True


def execute_from(run: Interpreter, node: ast.ImportFrom) -> bool:
    """`from a import b as c`."""
    base = _absolute(run, node, run.frame.file)
    if base is not None:
        _packages(run, base)
    file = run.project.module(base) if base else None
    for alias in node.names:
        if alias.name == "*":
            _star(run, base, file)
            continue
        value = NOTHING
        if file is not None:
            value = run.memory.get((base, alias.name), NOTHING)
        if not value.objs and base is not None and run.project.is_local(f"{base}.{alias.name}"):
            value = import_module(run, f"{base}.{alias.name}", f"{base}.{alias.name}")
        if not value.objs and file is None and base:
            value = of_library(run, canonical(f"{base}.{alias.name}"))
        run.bind(alias.asname or alias.name, value)
    return True


def _star(run: Interpreter, base: str | None, file: SourceFile | None) -> None:
    if file is None or base is None:
        if base:
            for name in library.STARS.get(base, ()):
                run.bind(name, just(Ext(canonical(f"{base}.{name}"))))
            run.memory.add((run.frame.file, STARS), just(Ext(base)))
        return
    listed = _listed(run, base)
    for name, value in run.memory.of(base):
        if name == STARS:
            run.memory.add((run.frame.file, STARS), value)
        elif name in listed if listed else not name.startswith("_"):
            run.bind(name, value)
    inside = [module.rpartition(".")[2] for module in run.project.files if module.rpartition(".")[0] == base]  # names of the package, too
    for name in inside:
        if (base, name) not in run.memory and not name.startswith("_"):
            run.bind(name, just(Module(f"{base}.{name}")))


def _listed(run: Interpreter, module: str) -> set[object]:
    """The names that the `__all__` of a module lists; none where it has none, or may list more than is known."""
    value = run.memory.get((module, "__all__"), NOTHING)
    (only,) = value.objs if len(value.objs) == 1 else (None,)
    held = only.items if isinstance(only, Tup) else run.memory.written_out(only) or ()
    names = {literal(v) for v in held}
    return names if all(isinstance(n, str) for n in names) else set()


def imports(run: Interpreter, node: ast.Import | ast.ImportFrom, file: str) -> set[str]:
    """The modules that an import statement of a file may run, the packages around them left out."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    base = _absolute(run, node, file) or ""
    return {base, *(f"{base}.{alias.name}" for alias in node.names)}


def _absolute(run: Interpreter, node: ast.ImportFrom, file: str) -> str | None:
    if not node.level:
        return node.module
    here = run.file_of(file)
    name = here.name if here is not run.project.entry else f"{run.project.package}.{here.name}".lstrip(".")
    parts = name.split(".")
    drop = node.level - (1 if here.is_package and here is not run.project.entry else 0)
    if drop > len(parts):  # more dots than packages: Python refuses it
        return None
    parts = parts[: len(parts) - drop]
    return ".".join([*parts, *([node.module] if node.module else [])])


def import_module(run: Interpreter, name: str, bound: str) -> Value:
    """Import `name`, give what `bound` (itself or its first part) is."""
    _packages(run, name)
    return just(Module(bound)) if run.project.is_local(bound) else just(Ext(canonical(bound)))


def of_library(run: Interpreter, path: str) -> Value:
    """What a dotted path of a library is: the class or function that is known as source, else what its rows say."""
    package, _, name = path.rpartition(".")
    file = run.project.library(package.partition(".")[0]) if package else None
    if file is None:
        return just(Ext(path))
    run.run_module(file)
    return run.memory.get((file.name, name)) or just(Ext(path))


def _packages(run: Interpreter, name: str) -> None:
    """Run a local module, and the packages around it first."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        file = run.project.module(".".join(parts[:i]))
        if file is not None:
            run.run_module(file)
