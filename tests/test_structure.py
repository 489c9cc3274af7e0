"""How the package is built: data flows one way, and no rule runs another."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ddpify
from ddpify.rules.precision import removal
from ddpify.rules.registry import PLANNING

PACKAGE = Path(ddpify.__file__).parent
INSIDE = PACKAGE / "rehearse" / "inside"  # put on the path of a rehearsed script: not a part of the package

AWAITED = [["ddpify.facts.collect", "ddpify.facts.discarded", "ddpify.facts.optional_wraps"]]  # by the type of what is collected


def modules() -> dict[str, Path]:
    out = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if INSIDE not in path.parents:
            parts = ("ddpify", *path.relative_to(PACKAGE).with_suffix("").parts)
            out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports, wherever the import stands."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            out |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name} imports relatively"
            out |= {full if (full := f"{node.module}.{alias.name}") in known else str(node.module) for alias in node.names}
    return {n for n in out if n in known} - {name}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import one another, by way of others, too."""

    def reached(start: str) -> set[str]:
        out: set[str] = set()
        todo = [start]
        while todo:
            for name in graph[todo.pop()] - out:
                out.add(name)
                todo.append(name)
        return out

    reach = {name: reached(name) for name in graph}
    groups = {tuple(sorted({name, *(n for n in reach[name] if name in reach[n])})) for name in graph if name in reach[name]}
    return [list(group) for group in sorted(groups)]


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: imported(name, path, known) for name, path in known.items()}


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(graph()) == AWAITED


def test_a_circle_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def rules() -> list[Path]:
    return sorted((PACKAGE / "rules").rglob("*.py"))


def reruns(tree: ast.Module) -> list[int]:
    """The lines at which a module reads what another rule yields."""
    names = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    out = []
    for node in ast.walk(tree):
        taken = isinstance(node, ast.ImportFrom) and any(a.name == "changes" for a in node.names)
        asked = isinstance(node, ast.Attribute) and node.attr == "changes" and isinstance(node.value, ast.Name) and node.value.id in names
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "changes"
        if taken or asked or called:
            out.append(node.lineno)
    return out


def test_no_rule_runs_a_rule() -> None:
    found = {str(path.relative_to(PACKAGE)): lines for path in rules() if (lines := reruns(ast.parse(path.read_text())))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "from ddpify.rules.loop import loss\nloss.changes(context)\n",
        "from ddpify.rules.loop.loss import changes\n",
        "def changes(context): ...\ndef refused(context): return changes(context)\n",
        "import ddpify.rules.loop.loss as loss\nlist(map(loss.changes, ()))\n",
    ],
)
def test_a_rule_that_runs_a_rule_would_be_found(text: str) -> None:
    assert reruns(ast.parse(text))


def test_what_yields_changes_is_registered() -> None:
    yielding = {
        path for path in rules() if any(isinstance(n, ast.FunctionDef) and n.name == "changes" for n in ast.parse(path.read_text()).body)
    }
    assert yielding == {Path(str(rule.__file__)) for rule in (*PLANNING, removal)}


def test_rules_choose_no_names() -> None:
    """A name that emitted code takes is an `edits.FreshName`: which one it gets is decided when all edits are known."""
    asking = {path.name for path in rules() if "first_free" in path.read_text()}
    assert asking == {"context.py"}  # the names of the runtime block, which follow from the files alone
