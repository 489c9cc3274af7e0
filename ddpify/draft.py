"""`--draft`: comments above what is to be done by hand, in a script that is converted as far as it can be."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from ddpify.comments import mark, marked
from ddpify.edits import InsertBefore
from ddpify.facts.tree import walk
from ddpify.project import SourceFile
from ddpify.rules.base import Change, Finding, Safety, span

CODE = "DDP906"
_CONVERTED = " (converted)"
_WHY = "this is to be done by hand; the comment goes once it is"


def marks(files: Mapping[str, SourceFile], lines: Mapping[str, Callable[[int], int]], findings: Iterable[Finding]) -> Iterator[Change]:
    """A comment above the statement of each finding to be done by hand, unless it stands there already.

    `files` are those that are edited, by the paths shown; `lines` give, for a line of the converted text, the one it stood on before.
    """
    seen = set[tuple[ast.stmt, str]]()
    for finding in findings:
        shown = finding.file.removesuffix(_CONVERTED)
        if finding.level is not Safety.MANUAL or shown not in files:
            continue
        line = finding.line if shown == finding.file else lines[shown](finding.line)
        statement, text = _statement(files[shown].tree, line), mark(finding.code, finding.message)
        if statement is None or (statement, text) in seen or _stands(files[shown].source.text, statement, text):
            continue
        seen.add((statement, text))
        yield Change(CODE, _WHY, shown, statement, (InsertBefore(statement, text),), without="this place is not marked")


def _statement(tree: ast.Module, line: int) -> ast.stmt | None:
    """The statement that a line belongs to, or the last above; the outermost where several begin there: an `elif` belongs to its `if`."""
    parent = {child: node for node in walk(tree) for child in ast.iter_child_nodes(node)}
    around = [n for n in parent if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    heads = [n for n in around if line <= span(n)[1]]
    above = [n for n in parent if isinstance(n, ast.stmt) and n.lineno <= line]
    found = max(heads or around or above, key=lambda n: (n.lineno, -n.col_offset), default=None)
    while found is not None and isinstance(up := parent[found], ast.If) and up.orelse == [found] and up.col_offset == found.col_offset:
        found = up
    return found


def _stands(text: str, statement: ast.stmt, comment: str) -> bool:
    """Whether a statement has a mark above it already, with nothing but others between."""
    there = {line: mark(code, said) for line, code, said in marked(text)}
    line = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))]) - 1
    while line in there:
        if there[line] == comment:
            return True
        line -= 1
    return False
