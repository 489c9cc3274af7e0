"""What one file binds, and what each of its functions uses: syntax only, and only of the parts that are asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from ddpify.facts.tree import same, walk
from ddpify.project import SourceFile
from ddpify.records import dataclass, field

Chain = tuple[str, ...]
"""A dotted expression: `nn.parallel.DataParallel` is ("nn", "parallel", "DataParallel")."""

_LEAVES = frozenset(leaf for kind in (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop) for leaf in kind.__subclasses__())
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(eq=False)
class Uses:
    """What a piece of code does with names: calls, mentions, attributes and its own bindings."""

    calls: list[ast.Call] = field(default_factory=list)
    mentions: set[Chain] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    annotated: list[tuple[ast.expr, ast.Call]] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    aliases: dict[str, list[Chain]] = field(default_factory=dict)
    imported: dict[str, list[str]] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    looks_up_globals: bool = False
    looks_up_self: bool = False
    looks_up_others: bool = False
    imports_by_name: bool = False
    dotted: list[str] = field(default_factory=list)  # texts handed to calls that may name what a module holds: "package.module.Name"
    patterns: list[str] = field(default_factory=list)

    @property
    def dynamic(self) -> bool:
        """Whether names are looked up at run time."""
        return self.looks_up_globals or self.looks_up_self or self.looks_up_others


@dataclass(eq=False)
class Unit:
    """A module's own statements, a class's, or a function with all that is nested in it."""

    module: Module
    kind: Literal["module", "class", "function"]
    name: str
    node: ast.AST
    body: list[ast.AST]
    owner: Unit | None = None
    methods: dict[str, Unit] = field(default_factory=dict)
    _uses: Uses | None = None
    _nodes: list[ast.AST] | None = None

    @property
    def uses(self) -> Uses:
        """What the code uses; found when first asked for."""
        if self._uses is None:
            self._uses = _uses(self)
        return self._uses

    def walk(self) -> list[ast.AST]:
        """Every node of the unit's code, in no particular order."""
        if self._nodes is None:
            self._nodes = list(self.body)
            for node in self._nodes:
                self._nodes.extend(self.below(node))
        return self._nodes

    def below(self, node: ast.AST) -> list[ast.AST]:
        """The children of `node` that run with the unit: no dead branches, and none of a module's own definitions."""
        if isinstance(node, ast.If) and _is_dead(node.test, self.module.file.name):
            return list(node.orelse)
        below = children(node)
        return [child for child in below if not isinstance(child, _DEFS)] if self.kind == "module" else below

    def join(self, other: Unit) -> None:
        """Take in another definition of the same name: either may be the one that runs."""
        self.body.extend(other.body)
        for name, method in other.methods.items():
            self.methods.setdefault(name, method)


@dataclass(eq=False)
class Module:
    """A file's bindings at module level: definitions, imports, aliases and star imports."""

    file: SourceFile
    package: str
    definitions: dict[str, Unit] = field(default_factory=dict)
    imported: dict[str, list[str]] = field(default_factory=dict)
    aliases: dict[str, list[Chain]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    registered: list[Unit] = field(default_factory=list)
    main: Unit = field(init=False)

    def __post_init__(self) -> None:
        body: list[ast.AST] = [node for node in self.file.tree.body if not isinstance(node, _DEFS)]
        self.main = Unit(self, "module", "", self.file.tree, body)
        _bind(self, self.file.tree.body, certain=True)


def chain_of(node: ast.AST) -> Chain | None:
    """The dotted name that an expression is, if it is one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return tuple(reversed(parts))


def children(node: ast.AST) -> list[ast.AST]:
    """The children that hold code, without the operators and contexts (ast.iter_child_nodes yields those too)."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found.extend(item for item in value if isinstance(item, ast.AST) and item.__class__ not in _LEAVES)
        elif isinstance(value, ast.AST) and value.__class__ not in _LEAVES:
            found.append(value)
    return found


def absolute(module: str | None, level: int, package: str) -> str | None:
    """The absolute name of what `from {level dots}{module} import` names, seen from `package`; None above the top."""
    if not level:
        return module
    parts = package.split(".") if package else []
    if level - 1 > len(parts):
        return None
    parts = parts[: len(parts) - (level - 1)]
    return ".".join([*parts, *([module] if module else [])])


def _bind(module: Module, body: list[ast.stmt], certain: bool) -> None:
    """Enter what `body` binds; a binding that is `certain` replaces the ones before it, another one joins them."""
    for node in body:
        if isinstance(node, _DEFS):
            _define(module, node, certain)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _bind_import(module, node, certain)
        elif isinstance(node, ast.Assign):
            _bind_names(module, node, certain)
        for block in _blocks(module, node):
            _bind(module, block, certain=False)


def _define(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, certain: bool) -> None:
    unit = _unit_of(module, node, None)
    if certain:
        module.imported.pop(node.name, None)
        module.aliases.pop(node.name, None)
    if not certain and node.name in module.definitions:
        module.definitions[node.name].join(unit)
    else:
        module.definitions[node.name] = unit
    if _registers(node):
        module.registered.append(unit)


def _unit_of(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, owner: Unit | None) -> Unit:
    if not isinstance(node, ast.ClassDef):
        return Unit(module, "function", node.name, node, [node.args, *node.body, *node.decorator_list], owner)
    unit = Unit(module, "class", node.name, node, [*node.bases, *node.keywords, *node.decorator_list])
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            method = _unit_of(module, item, unit)
            if item.name in unit.methods:  # the setter of a property
                unit.methods[item.name].join(method)
            else:
                unit.methods[item.name] = method
        else:
            unit.body.append(item)
    return unit


def _registers(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator may hand the definition to somebody who calls it: a command, a hook, an entry of a registry."""
    for decorator in node.decorator_list:
        chain = chain_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if chain is None or (chain[0] not in ("torch", "functools", "numba", "dataclasses", "contextlib") and chain[-1] not in _PLAIN):
            return True
    return False


_PLAIN = frozenset({"property", "staticmethod", "classmethod", "dataclass", "no_grad", "inference_mode", "lru_cache", "wraps",
                    "contextmanager", "jit", "njit"})  # fmt: skip


def _bind_import(module: Module, node: ast.Import | ast.ImportFrom, certain: bool) -> None:
    imports, stars = _imports(node, module.package)
    module.stars.extend(stars)
    for name, target in imports:
        if certain:
            module.definitions.pop(name, None)
            module.aliases.pop(name, None)
        if certain and not isinstance(node, ast.Import):
            module.imported[name] = [target]
        elif target not in module.imported.setdefault(name, []):
            module.imported[name].append(target)


def _imports(node: ast.Import | ast.ImportFrom, package: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The names an import binds with what each stands for, and the modules imported by star."""
    if isinstance(node, ast.Import):
        return [(a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2 for a in node.names], []
    base = absolute(node.module, node.level, package)
    if base is None:
        return [], []
    dot = base + "." if base else ""
    return [(a.asname or a.name, dot + a.name) for a in node.names if a.name != "*"], [base for a in node.names if a.name == "*"]


def _bind_names(module: Module, node: ast.Assign, certain: bool) -> None:
    chains = _alias_chains(node.value)
    for target in node.targets:
        if not isinstance(target, ast.Name):
            continue
        name = target.id
        if certain and not _mentions(node.value, name):
            module.imported.pop(name, None)
            module.definitions.pop(name, None)
            module.aliases[name] = chains
        elif chains:
            module.aliases.setdefault(name, []).extend(chain for chain in chains if chain[0] != name)


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in walk(value))


def _alias_chains(value: ast.expr) -> list[Chain]:
    if isinstance(value, ast.IfExp):
        return [*_alias_chains(value.body), *_alias_chains(value.orelse)]
    chain = chain_of(value)
    return [chain] if chain else []


def _blocks(module: Module, node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement that are run: not the main block of an imported module, not `if False:`."""
    if isinstance(node, ast.If):
        if not _is_dead(node.test, module.file.name):
            yield node.body
        yield node.orelse
        return
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body
    for case in getattr(node, "cases", []):
        yield case.body


def _is_dead(test: ast.expr, module: str) -> bool:
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
        return module != "__main__" and isinstance(test.ops[0], ast.Eq)
    if isinstance(test, ast.Constant):
        return not test.value
    return (chain_of(test) or ("",))[-1] == "TYPE_CHECKING"


def _uses(unit: Unit) -> Uses:
    uses = Uses()
    stack = list(unit.body)
    while stack:
        node = stack.pop()
        kind = node.__class__
        if note := _NOTES.get(kind):
            note(uses, unit, node)
        if kind is ast.Attribute:
            chain = chain_of(node)
            uses.attributes.update(chain[1:] if chain else (node.attr,))  # type: ignore[attr-defined]
            if chain:
                uses.mentions.add(chain)
                continue
        if kind is not ast.Name and kind is not ast.Constant:
            stack.extend(unit.below(node))
    return uses


def _note_name(uses: Uses, unit: Unit, node: ast.Name) -> None:
    if isinstance(node.ctx, ast.Load):
        uses.mentions.add((node.id,))
    else:
        uses.stored.add(node.id)


def _note_call(uses: Uses, unit: Unit, node: ast.Call) -> None:
    uses.calls.append(node)
    texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    uses.dotted += [text for text in texts if "." in text and all(part.isidentifier() for part in text.split("."))]
    if node.args and (chain_of(node.func) or ("",))[-1] in ("import_module", "__import__"):
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and not name.value.startswith("."):
            uses.modules.append(name.value)
        else:
            uses.imports_by_name = True
            uses.patterns.append(_pattern(unit, name))
    if isinstance(node.func, ast.Attribute) and node.func.attr == "Fire" and not node.args:
        uses.looks_up_globals = True
    if not isinstance(node.func, ast.Name):
        return
    if node.func.id == "getattr" and len(node.args) > 1:
        name = node.args[1]
        if isinstance(name, ast.Constant):
            uses.attributes.add(str(name.value))
        elif chain_of(node.args[0]) == ("self",):
            uses.looks_up_self = True
        else:
            uses.looks_up_others = True
    elif node.func.id in ("globals", "eval", "exec"):
        uses.looks_up_globals = True


def _pattern(unit: Unit, node: ast.expr) -> str:
    """What is known of a text that is put together: `models.*_model`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _pattern(unit, node.left) + _pattern(unit, node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _pattern(unit, node.left).replace("%s", "*")
    if isinstance(node, ast.JoinedStr):
        return "".join(_pattern(unit, v) for v in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return re.sub(r"\{\w*\}", "*", _pattern(unit, node.func.value))
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        given = [n for s in unit.body for n in walk(s) if isinstance(n, ast.Assign) and same(n.targets[0], node)]
        if len(given) == 1 and not _mentions(given[0].value, node.id):
            return _pattern(unit, given[0].value)
    return "*"


def _note_alias(uses: Uses, unit: Unit, node: ast.Assign) -> None:
    if chains := _alias_chains(node.value):
        for target in node.targets:
            if isinstance(target, ast.Name):
                uses.aliases.setdefault(target.id, []).extend(chain for chain in chains if chain[0] != target.id)


def _note_annotation(uses: Uses, unit: Unit, node: ast.AnnAssign) -> None:
    if isinstance(node.value, ast.Call):
        uses.annotated.append((node.annotation, node.value))


def _note_import(uses: Uses, unit: Unit, node: ast.Import | ast.ImportFrom) -> None:
    imports, stars = _imports(node, unit.module.package)
    uses.modules.extend(stars)
    if isinstance(node, ast.Import):
        uses.modules.extend(alias.name for alias in node.names)
    else:
        uses.modules.extend(base for base in [absolute(node.module, node.level, unit.module.package)] if base)
        uses.members.extend(target for _, target in imports)
    if unit.kind == "function":
        for name, target in imports:
            uses.imported.setdefault(name, []).append(target)


def _note_global(uses: Uses, unit: Unit, node: ast.Global) -> None:
    uses.shared.update(node.names)


def _note_parameter(uses: Uses, unit: Unit, node: ast.arg) -> None:
    uses.stored.add(node.arg)


def _note_definition(uses: Uses, unit: Unit, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    uses.stored.add(node.name)


_NOTES: Mapping[type[ast.AST], Callable[[Uses, Unit, Any], None]] = {
    ast.Name: _note_name,
    ast.Call: _note_call,
    ast.Assign: _note_alias,
    ast.AnnAssign: _note_annotation,
    ast.Import: _note_import,
    ast.ImportFrom: _note_import,
    ast.Global: _note_global,
    ast.arg: _note_parameter,
    ast.FunctionDef: _note_definition,
    ast.AsyncFunctionDef: _note_definition,
    ast.ClassDef: _note_definition,
}
