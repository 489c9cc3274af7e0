"""The checks of what a conversion emits, one after another, and what they find as findings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.checks import children, kinds, names, order, rebound, signatures, turns
from ddpify.checks.binding import Binding
from ddpify.checks.problem import Problem
from ddpify.facts import runs
from ddpify.project import Project
from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import NAMES
from ddpify.runtime import HELPERS

CODE = "DDP904"
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def findings(before: Project, after: Project) -> list[Finding]:
    """What is wrong with the texts `after` that was not so `before`, each to be mended by hand."""
    found = list(_problems(after, before))
    if not found:
        return []
    known = {problem.key for problem in _problems(before, after)}
    return list(dict.fromkeys(_finding(after, problem) for problem in found if problem.key not in known))


def _problems(project: Project, other: Project) -> Iterator[Problem]:
    """The problems of a project's texts, of those that differ from another's."""
    run = runs.run(project)
    trees, others = _trees(project), _trees(other)
    changed = {name: tree for name, tree in trees.items() if others.get(name) is not tree}
    marks = order.joining(run)
    bindings = {name: Binding(tree, marks) for name, tree in changed.items()}
    yield from names.problems(bindings, {name: tree for name, tree in others.items() if name in changed})
    yield from rebound.problems(changed, others)
    yield from signatures.problems(run, frozenset(changed))
    if marks:
        yield from order.problems(run, bindings)
        yield from children.problems(run)
    helpers = _helpers(changed, others)
    yield from kinds.problems(run, helpers)
    yield from turns.problems(run, helpers, changed.values())


def _trees(project: Project) -> dict[str, ast.Module]:
    return {"__main__": project.entry.tree} | {name: file.tree for name, file in project.files.items()}


def _helpers(trees: Mapping[str, ast.Module], others: Mapping[str, ast.Module]) -> dict[ast.AST, str]:
    """The definitions of the runtime block's helpers: those that the texts to compare with have not, by names that helpers may have."""
    keys = {name: key for key, names in NAMES.items() if key in HELPERS for name in names}
    out: dict[ast.AST, str] = {}
    for module, tree in trees.items():
        had = {s.name for s in others[module].body if isinstance(s, _DEFINITIONS)} if module in others else set()
        new = [s for s in tree.body if isinstance(s, _DEFINITIONS) and s.name not in had]
        out |= {s: key for s in new if (key := keys.get(s.name.rstrip("0123456789"))) is not None}
    return out


def _finding(project: Project, problem: Problem) -> Finding:
    file = project.entry if problem.module == "__main__" else project.files[problem.module]
    line, column = getattr(problem.node, "lineno", 1), getattr(problem.node, "col_offset", 0) + 1
    return Finding(CODE, Safety.MANUAL, problem.message, f"{file.shown} (converted)", line, column, problem.fix)
