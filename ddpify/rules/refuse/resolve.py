"""What a dotted expression means: something of a library, a local definition, or a local module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.project import Project, SourceFile
from ddpify.records import dataclass, field
from ddpify.rules.refuse.frameworks import ROOTS
from ddpify.rules.refuse.scan import Chain, Module, Unit, chain_of

_LONGEST = 12  # a package that imports a module of its own which is not there would look for it ever deeper
_LIBRARIES = ROOTS | {"torch", "apex"}

Target = str | Unit | Module
"""The dotted name of something that is not local, a local definition, or a local module."""


@dataclass(eq=False)
class Resolver:
    """Resolves names through the import tables of the entry and of the local modules, re-exports included."""

    project: Project
    entry: Module = field(init=False)
    _modules: dict[str, Module | None] = field(default_factory=dict)
    _known: dict[tuple[Unit, Chain], tuple[Target, ...]] = field(default_factory=dict)
    _tops: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.entry = Module(self.project.entry, self.project.package)

    def module(self, name: str) -> Module | None:
        """The local module `name`, with its bindings."""
        if name not in self._modules:
            file = self.project.module(name) if self.may_be_local(name) else None
            self._modules[name] = Module(file, _package(file)) if file else None
        return self._modules[name]

    def forget(self) -> None:
        """Look anew for what was not found."""
        self._modules = {name: module for name, module in self._modules.items() if module is not None}
        self._tops.clear()
        self._known.clear()

    def holds(self, name: str) -> bool:
        """Whether `name` was found: a local module, or a folder without `__init__.py` from which one was imported."""
        return self.module(name) is not None or any(module and known.startswith(f"{name}.") for known, module in self._modules.items())

    def may_be_local(self, name: str) -> bool:
        """Whether the first part of `name` is a file or a folder of the project.

        The source of torch or of a framework, in the working directory, is no part of a script that merely lies in its repository.
        """
        top = name.partition(".")[0]
        if top not in self._tops:
            roots = self.project.roots[:1] if top in _LIBRARIES else (*self.project.roots, *self.project.around)
            self._tops[top] = any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in roots)
        return self._tops[top]

    def resolve(self, unit: Unit, chain: Chain) -> tuple[Target, ...]:
        """What a dotted expression in `unit` stands for; empty where that is a value of the script's own."""
        if not chain or len(chain) > _LONGEST:
            return ()
        key = (unit, chain)
        if key not in self._known:
            self._known[key] = ()  # a name that stands for itself stands for nothing
            self._known[key] = tuple(dict.fromkeys(self._in_unit(unit, chain)))
        return self._known[key]

    def bases(self, unit: Unit) -> tuple[str, ...]:
        """The classes outside the project that a local class derives from, at any depth."""
        found: dict[str, None] = {}
        pending, seen = [unit], {unit}
        while pending:
            here = pending.pop()
            for base in here.node.bases if isinstance(here.node, ast.ClassDef) else ():
                for target in self.resolve(here, chain_of(base) or ()):
                    if isinstance(target, str):
                        found[target] = None
                    elif isinstance(target, Unit) and target not in seen:
                        seen.add(target)
                        pending.append(target)
        return tuple(found)

    def _in_unit(self, unit: Unit, chain: Chain) -> Iterator[Target]:
        first, rest = chain[0], chain[1:]
        if unit.kind == "function":
            uses = unit.uses
            for name in uses.imported.get(first, ()):
                yield from self._dotted((*name.split("."), *rest))
            for alias in uses.aliases.get(first, ()):
                yield from self.resolve(unit, (*alias, *rest))
            if first in uses.imported or (first in uses.stored and first not in uses.shared):
                return
        yield from self._in_module(unit.module, chain)

    def _in_module(self, module: Module, chain: Chain) -> Iterator[Target]:
        first, rest = chain[0], chain[1:]
        if first in module.definitions:
            unit = module.definitions[first]
            yield unit
            if rest and rest[0] in unit.methods:
                yield unit.methods[rest[0]]
        for name in module.imported.get(first, ()):
            yield from self._dotted((*name.split("."), *rest))
        for alias in module.aliases.get(first, ()):
            yield from self.resolve(module.main, (*alias, *rest))
        if first not in module.definitions and first not in module.imported and first not in module.aliases:
            for star in module.stars:
                yield from self._dotted((*star.split("."), *chain))

    def _dotted(self, parts: Chain) -> Iterator[Target]:
        """What an absolute dotted name stands for."""
        for length in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:length]))
            if module is None:
                continue
            if length == len(parts) or parts[length] == "__dict__":
                yield module
            else:
                yield from self.resolve(module.main, parts[length:])
                return
            if length > 1 and (package := self.module(".".join(parts[: length - 1]))):
                yield from self.resolve(package.main, parts[length - 1 :])  # a function that hides the module of its name
            return
        yield ".".join(parts)


def _package(file: SourceFile) -> str:
    """The package that relative imports of `file` start from: "" at a root."""
    return file.name if file.is_package else file.name.rpartition(".")[0]
