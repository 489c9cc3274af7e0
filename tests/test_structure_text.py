"""No decision is made by comparing unparsed text or line numbers: structures are compared, and places by their order in the tree."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ddpify"
ROOMS = ("facts", "placement", "rules", "plan.py")
_TEXTS = frozenset(("unparse", "dump"))
_LINES = frozenset(("lineno", "end_lineno", "col_offset", "end_col_offset"))
_TESTED = frozenset(("startswith", "endswith", "match", "fullmatch", "search"))  # a method or function that tests a text

# Where a line number is compared and nothing is decided by it about what the script does: file, function, and why.
ALLOWED: dict[tuple[str, str], str] = {}
# Files whose comparisons are being replaced.
AWAITED: frozenset[str] = frozenset(
    """
        rules/loop/coupled_losses.py
    """.split()
)


def _sources() -> list[Path]:
    found = [p for room in ROOMS for p in ([PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py")))]
    return [p for p in found if p.exists()]


def _is_source(node: ast.AST) -> bool:
    """Whether an expression is text made from a node, or the place of one in its file."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TEXTS:
        return isinstance(node.func.value, ast.Name) and node.func.value.id == "ast"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
        return isinstance(node.args[1], ast.Constant) and node.args[1].value in _LINES
    return isinstance(node, ast.Attribute) and node.attr in _LINES


def _holds(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is such a text or place, is made of one, or is a name that was given one."""
    if isinstance(node, ast.JoinedStr):
        return False  # a message
    if isinstance(node, ast.IfExp):
        return _holds(node.body, names) or _holds(node.orelse, names)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return _holds(node.elt, names)
    if isinstance(node, ast.DictComp):
        return _holds(node.key, names)
    if isinstance(node, ast.Compare) or (isinstance(node, ast.Name) and node.id in names) or _is_source(node):
        return not isinstance(node, ast.Compare)
    if isinstance(node, ast.Call):  # what another function makes of a text is looked at there
        texts = isinstance(node.func, ast.Attribute) and _holds(node.func.value, names)
        plain = isinstance(node.func, ast.Name) and node.func.id in ("min", "max", "set", "sorted", "tuple", "list", "frozenset")
        return texts or (plain and any(_holds(a, names) for a in node.args))
    if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.BinOp, ast.BoolOp, ast.Subscript, ast.Starred, ast.NamedExpr)):
        return any(_holds(child, names) for child in ast.iter_child_nodes(node))
    return False


def _named(function: ast.AST) -> set[str]:
    """The names of a function that are given such a text or place."""
    names: set[str] = set()
    for _ in range(3):
        for node in ast.walk(function):
            given: list[tuple[ast.expr, ast.expr]] = []
            if isinstance(node, ast.Assign):
                given = [(t, node.value) for t in node.targets]
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)) and node.value is not None:
                given = [(node.target, node.value)]
            for target, value in given:
                parts = [(target, value)]
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    parts = list(zip(target.elts, value.elts, strict=False))
                names |= {t.id for t, v in parts if isinstance(t, ast.Name) and _holds(v, names)}
    return names


def _compared(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The functions that compare or test such a text or place, and the lines."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        names = _named(function)
        for node in ast.walk(function):
            tested: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                tested = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TESTED:
                tested = [node.func.value, *node.args]
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
                tested = [node.left, node.right]
            if any(_holds(t, names) for t in tested):
                yield getattr(function, "name", "<lambda>"), node.lineno


@functools.cache
def _found(path: Path) -> set[tuple[str, str, int]]:
    name = str(path.relative_to(PACKAGE))
    return {(name, function, line) for function, line in _compared(ast.parse(path.read_text()))}


@pytest.mark.parametrize("path", _sources(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nothing_is_decided_by_text_or_lines(path: Path) -> None:
    name = str(path.relative_to(PACKAGE))
    found = {entry for entry in _found(path) if entry[:2] not in ALLOWED}
    assert not found or name in AWAITED, sorted(found, key=lambda f: f[2])
    assert found or name not in AWAITED, f"{name} is clean: take it off the list"


def test_each_exception_is_needed() -> None:
    found = {entry[:2] for path in _sources() for entry in _found(path)}
    assert set(ALLOWED) <= found


@pytest.mark.parametrize(
    "text",
    [
        "ast.unparse(a) == ast.unparse(b)",
        "'first' in ast.unparse(a)",
        "ast.unparse(a).endswith('environ')",
        "ast.unparse(a).rpartition('.')[2] in NAMES",
        "a.lineno > b.lineno",
        "getattr(a, 'lineno', 0) >= (b.end_lineno or 0)",
        "(a.lineno, a.col_offset) < last",
        "{ast.unparse(t) for t in a} & read",
        "re.search('x', ast.unparse(a))",
    ],
)
def test_a_comparison_is_seen(text: str) -> None:
    assert list(_compared(ast.parse(f"def f(a, b):\n    return {text}\n")))


@pytest.mark.parametrize(
    "text",
    [
        "text = ast.unparse(a)\n    return text == b",
        "lines = {n.lineno for n in a}\n    return b in lines",
        "x, y = a, b.lineno\n    return x < y",
    ],
)
def test_a_comparison_of_a_name_is_seen(text: str) -> None:
    assert list(_compared(ast.parse(f"def f(a, b):\n    {text}\n")))


@pytest.mark.parametrize(
    "text", ["sorted(a, key=lambda n: n.lineno)", "f'`{ast.unparse(a)}` is shown' if a == b else ''", "same(a, b)", "ast.unparse(a)"]
)
def test_showing_and_sorting_are_no_decision(text: str) -> None:
    assert not list(_compared(ast.parse(f"def f(a, b):\n    return {text}\n")))
