"""Parameters that switch a function between its uses: `run(train=True)` in one place, `run(train=False)` in another."""

from __future__ import annotations

import ast
from collections import defaultdict

from ddpify.project import Project, SourceFile

_Calls = dict[str, list[ast.Call]]


def flags(project: Project, func: ast.AST, made: str = "") -> frozenset[str]:
    """The parameters of a function that its calls give different constants; where all agree, a constant is only a setting.

    `made` is the class of which a function is the constructor: it is called by that name.
    """
    key = (f"flags {made}", func)
    if key not in project.memo:
        found = _flags(project, func, made) if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) else ()
        project.memo[key] = frozenset(found)
    return project.memo[key]  # type: ignore[return-value]


def _flags(project: Project, func: ast.FunctionDef | ast.AsyncFunctionDef, made: str) -> list[str]:
    called = made if func.name == "__init__" else func.name
    if not called or called.startswith("__"):
        return []
    spec = func.args
    positional = [*spec.posonlyargs, *spec.args]
    names = [p.arg for p in positional]
    defaults: dict[str, ast.expr | None] = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
    defaults |= {p.arg: d for p, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)}
    given: dict[str, set[object]] = defaultdict(set)
    for file in (project.entry, *project.files.values()):
        for call in _calls(project, file).get(called, ()):
            passed = dict(zip(names[1:] if names[:1] == ["self"] else names, call.args, strict=False))
            passed |= {k.arg: k.value for k in call.keywords if k.arg is not None}
            for name in (*names, *(p.arg for p in spec.kwonlyargs)):
                value = passed.get(name, defaults.get(name))
                if isinstance(value, ast.Constant) and isinstance(value.value, (str, bool)):
                    given[name].add(value.value)
    return [name for name, values in given.items() if len(values) > 1]


def _calls(project: Project, file: SourceFile) -> _Calls:
    key = ("calls", file.tree)
    if key not in project.memo:
        found: _Calls = defaultdict(list)
        for node in file.standing.of(ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found[name].append(node)
        project.memo[key] = found
    return project.memo[key]  # type: ignore[return-value]
