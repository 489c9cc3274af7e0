"""Which code a script reaches, through its own modules too, and what every call in that code means."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from ddpify.facts.named import modules_like
from ddpify.project import Project, SourceFile
from ddpify.records import dataclass, field
from ddpify.rules.refuse.resolve import Resolver, Target
from ddpify.rules.refuse.scan import Module, Unit, chain_of

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Pass)
_HARMLESS_BASES = ("torch.nn.", "torch.autograd.", "torch.utils.", "torch.optim.", "abc.", "typing.", "enum.")


@dataclass(frozen=True, eq=False)
class Use:
    """One call, or a decorator or an annotation that stands for one.

    `names` are the dotted names outside the project that it may call (several where imports are alternatives), with the bases
    of a local class that it makes; `shown` is the callee as the script writes it.
    """

    unit: Unit
    node: ast.AST
    line: int
    targets: tuple[Target, ...]
    names: tuple[str, ...]
    shown: str

    @property
    def file(self) -> str:
        """The file's path as the user would give it."""
        return self.unit.module.file.shown

    @property
    def place(self) -> str:
        """The place as messages show it: `train.py:12`."""
        return f"{self.file}:{self.line}"

    @property
    def method(self) -> str:
        """The last part of the callee: `backward` for `loss.backward()` and for `(a + b).backward()`."""
        return self.shown.rpartition(".")[2]

    @property
    def arguments(self) -> list[ast.expr]:
        """The positional and the keyword arguments."""
        return [*self.node.args, *(keyword.value for keyword in self.node.keywords)] if isinstance(self.node, ast.Call) else []

    def is_from(self, roots: Collection[str], last: Collection[str] = ()) -> bool:
        """Whether this calls one of the names `last` (any, if there are none) of one of the packages `roots`."""
        return any(name.partition(".")[0] in roots and (not last or name.rpartition(".")[2] in last) for name in self.names)


@dataclass(eq=False)
class Reach:
    """The code that runs when `seeds` do, as far as names tell: functions that nobody mentions are left out.

    A function or class that is mentioned counts as reached, a method once its name is used as an attribute anywhere in reached
    code. `imported` are the modules that were asked for.
    """

    resolver: Resolver
    seeds: list[Unit]
    units: dict[Unit, None] = field(default_factory=dict)
    imported: dict[str, None] = field(default_factory=dict)
    _attributes: set[str] = field(default_factory=set)
    _waiting: dict[str, list[Unit]] = field(default_factory=dict)
    _uses: list[Use] | None = None
    _by_unit: dict[Unit, list[Use]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        roots: tuple[Path, ...] | None = None
        while roots != self.resolver.project.roots:  # a module that is read may say where others are
            roots = self.resolver.project.roots
            self.resolver.forget()
            for found in (self.units, self.imported, self._attributes, self._waiting):
                found.clear()
            self._reach()

    def _reach(self) -> None:
        pending = list(self.seeds)
        while pending:
            unit = pending.pop()
            if unit not in self.units:
                self.units[unit] = None
                pending.extend(self._reached_by(unit))

    @property
    def files(self) -> list[SourceFile]:
        """The files that were read, the entry first."""
        return list(dict.fromkeys(unit.module.file for unit in self.units))

    @property
    def dynamic(self) -> bool:
        """Whether the code looks names up at run time, so that more may be reached than is known."""
        return any(unit.uses.dynamic for unit in self.units)

    @property
    def uses(self) -> list[Use]:
        """Every call in the reached code, file by file, by line."""
        if self._uses is None:
            order = {file: position for position, file in enumerate(self.files)}
            found = [use for unit in self.units for use in self.uses_of(unit)]
            self._uses = sorted(found, key=lambda use: (order[use.unit.module.file], use.line))
        return self._uses

    def calls(self, roots: Collection[str], last: Collection[str] = ()) -> Iterator[Use]:
        """The calls of the names `last` of the packages `roots`."""
        return (use for use in self.uses if use.is_from(roots, last))

    def methods(self, *names: str) -> Iterator[Use]:
        """The calls `….name(…)`, whatever they are called on."""
        return (use for use in self.uses if isinstance(use.node, ast.Call) and isinstance(use.node.func, ast.Attribute)
                and use.node.func.attr in names)  # fmt: skip

    def named(self, use: Use, position: int) -> tuple[str, ...]:
        """The dotted names that a positional argument may stand for."""
        chain = chain_of(use.arguments[position]) if len(use.arguments) > position else None
        return tuple(target for target in self.resolver.resolve(use.unit, chain or ()) if isinstance(target, str))

    def imports(self, package: str) -> bool:
        """Whether a reached file imports the package or something in it."""
        return any(name.partition(".")[0] == package for name in self.imported)

    def uses_of(self, unit: Unit) -> list[Use]:
        """The calls in one unit."""
        if unit not in self._by_unit:
            self._by_unit[unit] = list(self._found_in(unit))
        return self._by_unit[unit]

    def _found_in(self, unit: Unit) -> Iterator[Use]:
        for node in unit.uses.calls:
            shown = ".".join(chain_of(node.func) or ("…", getattr(node.func, "attr", "")))
            yield self._use(unit, node, node.func, shown)
        for annotation, made in unit.uses.annotated:
            yield self._use(unit, made, annotation, ".".join(chain_of(annotation) or ()))
        for decorator in getattr(unit.node, "decorator_list", ()):
            if chain := chain_of(decorator):
                yield self._use(unit, decorator, decorator, ".".join(chain))

    def _use(self, unit: Unit, node: ast.expr, callee: ast.expr, shown: str) -> Use:
        targets = self.resolver.resolve(unit, chain_of(callee) or ())
        names = [target for target in targets if isinstance(target, str)]
        for target in targets:
            if isinstance(target, Unit) and target.kind == "class":
                names.extend(self.resolver.bases(target))
        return Use(unit, node, node.lineno, targets, tuple(names), shown)

    def _reached_by(self, unit: Unit) -> Iterator[Unit]:
        uses = unit.uses
        self.imported.update(dict.fromkeys(uses.modules))
        patterns = [p for p in uses.patterns if "." in p and not p.startswith(("*", "."))]
        found = [name for pattern in patterns for name in modules_like(self.resolver.project, pattern)]
        for name in (*uses.modules, *uses.members, *found):
            yield from self._imported(name)
        for name in found:  # anything in them may be called
            if (module := self.resolver.module(name)) is not None:
                yield from _definitions(module)
        for chain in sorted(uses.mentions):
            for target in self.resolver.resolve(unit, chain):
                yield from _definitions(target)
        if uses.looks_up_globals:
            yield from unit.module.definitions.values()
        if uses.looks_up_self and unit.owner:
            yield from unit.owner.methods.values()
        for name in sorted(uses.attributes - self._attributes):
            yield from self._waiting.pop(name, ())
        self._attributes |= uses.attributes
        if unit.kind == "class":
            yield from self._methods_of(unit)

    def _imported(self, name: str) -> Iterator[Unit]:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            module = self.resolver.module(".".join(parts[:length]))
            if module is not None:
                yield module.main
                yield from module.registered

    def _methods_of(self, unit: Unit) -> Iterator[Unit]:
        """The methods of a reached class that are reached with it; the others wait for their name to be used."""
        hooked = any(not base.startswith(_HARMLESS_BASES) for base in self.resolver.bases(unit))
        for name, method in unit.methods.items():
            if hooked or name == "forward" or name in self._attributes or (name.startswith("__") and name.endswith("__")):
                yield method
            else:
                self._waiting.setdefault(name, []).append(method)


def reach(project: Project) -> Reach:
    """The code that `project` reaches; worked out once and kept on the project."""
    kept: dict[str, object] = vars(project)
    known = kept.get("_reach")
    if not isinstance(known, Reach):
        resolver = Resolver(project)
        known = kept["_reach"] = Reach(resolver, _starting_points(resolver.entry))
    return known


def _starting_points(entry: Module) -> list[Unit]:
    """What runs by itself; all of a file that only defines, since others run it."""
    if not _only_defines(entry.file.tree.body):
        return [*entry.registered, entry.main]
    units = list(entry.definitions.values())
    return [*units, *(method for unit in units for method in unit.methods.values()), entry.main]


def _only_defines(body: list[ast.stmt]) -> bool:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            if not _only_defines([*node.body, *node.orelse]):
                return False
        elif not isinstance(node, _DEFINITIONS) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return False
    return True


def _definitions(target: Target) -> Iterator[Unit]:
    if isinstance(target, Unit):
        yield target
    elif isinstance(target, Module):  # the module itself is handed on: anything in it may be called
        yield target.main
        yield from target.definitions.values()
