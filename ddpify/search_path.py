"""The folders that a file adds to `sys.path`, where its text says which, and those that a project's packages are installed from."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SAME = frozenset(("abspath", "realpath", "normpath", "expanduser", "fspath", "str", "Path", "PurePath", "resolve", "absolute", "as_posix"))
_DEPTH = 12


def additions(tree: ast.Module, file: Path) -> Iterator[Path]:
    """The folders that the module at `file` adds to `sys.path`; a relative one is taken to start where the file lies."""
    names = {n.targets[0].id: n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}
    for node in _added(tree):
        found = _path(node, names, file)
        if found is not None:
            yield Path(os.path.normpath(file.parent / found))


def packages_in(top: Path) -> list[str]:
    """The folders of a project, by their names, that its packages lie in: what its pyproject.toml says, and `src`."""
    try:
        tool = tomllib.loads((top / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        tool = {}
    said = tool.get("setuptools", {}) if isinstance(tool, dict) else {}
    packages = said.get("packages", {}) if isinstance(said, dict) else {}
    where = packages.get("find", {}).get("where", []) if isinstance(packages, dict) else []
    home = said.get("package-dir", {}).get("", "") if isinstance(said, dict) else ""
    return [name for name in dict.fromkeys((*where, home, "src")) if isinstance(name, str) and name not in ("", ".")]


def _added(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that are added, those given to a function which adds what it is given included."""
    adds: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = [a.arg for a in node.args.args]
            inside = [e.id for e in _expressions(node) if isinstance(e, ast.Name)]
            adds |= {node.name: given} if set(given) & set(inside) else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in adds:
            yield from node.args[:1]
    yield from _expressions(tree)


def _expressions(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name, last = ast.unparse(node.func), node.args[-1]
            if name in ("sys.path.append", "sys.path.insert"):
                yield last
            elif name == "sys.path.extend" and isinstance(last, (ast.List, ast.Tuple)):
                yield from last.elts
            elif name == "site.addsitedir":
                yield node.args[0]
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
            whole = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(whole, ast.Attribute) and ast.unparse(whole) == "sys.path":
                yield from (e for part in ast.walk(node.value) if isinstance(part, ast.List) for e in part.elts)


def _path(node: ast.expr, names: dict[str, ast.expr], file: Path, depth: int = 0) -> str | None:
    """The path that an expression gives."""

    def inner(part: ast.expr) -> str | None:
        return _path(part, names, file, depth + 1) if depth < _DEPTH else None

    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return str(file) if node.id == "__file__" else inner(names[node.id]) if node.id in names else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Add)):
        parts = [inner(node.left), inner(node.right)]
        between = "/" if isinstance(node.op, ast.Div) else ""
    elif isinstance(node, ast.JoinedStr):
        parts, between = [inner(v.value if isinstance(v, ast.FormattedValue) else v) for v in node.values], ""
    elif isinstance(node, ast.Attribute):
        whole = ast.unparse(node)
        if whole in ("os.pardir", "os.path.pardir", "os.curdir"):
            return ".." if node.attr == "pardir" else "."
        up = inner(node.value) if node.attr == "parent" else None
        return None if up is None else str(Path(up).parent)
    elif isinstance(node, ast.Subscript):
        return _parents(node, inner(node.value.value)) if isinstance(node.value, ast.Attribute) and node.value.attr == "parents" else None
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "getcwd":
            return str(Path.cwd())
        given = [*([node.func.value] if isinstance(node.func, ast.Attribute) and not node.args else []), *node.args]
        if name == "dirname" and given:
            whole_path = inner(given[0])
            return None if whole_path is None else str(Path(whole_path).parent)
        if name in _SAME and given:
            return inner(given[0])
        if name not in ("join", "joinpath") or not given:
            return None
        if name == "joinpath" and isinstance(node.func, ast.Attribute):
            given = [node.func.value, *node.args]
        parts, between = [inner(g) for g in given], "/"
    else:
        return None
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return None
    return str(Path(*known)) if between else "".join(known)


def _parents(node: ast.Subscript, path: str | None) -> str | None:
    at = node.slice.value if isinstance(node.slice, ast.Constant) else None
    parents = Path(path).parents if path is not None else ()
    return str(parents[at]) if isinstance(at, int) and 0 <= at < len(parents) else None
