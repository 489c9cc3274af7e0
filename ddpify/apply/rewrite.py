"""One pass over the concrete tree that carries out edits, each as a function of the updated node.

Within one expression the arguments of a call are edited before the call is replaced. A change that cannot be carried out whole
is left out whole, and the pass starts again without it.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from ddpify.apply import emit
from ddpify.apply.pairing import pair
from ddpify.edits import Drop, DropArgument, Edit, InsertAfter, InsertBefore, NameArgument, Replace, SetArgument, Under, Unwrap
from ddpify.rules.base import Change

_BROKEN = (cst.CSTValidationError, cst.ParserSyntaxError, SyntaxError, LookupError, ValueError, TypeError, AttributeError)
_SPACE = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine)
_LINES = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
_ROOMY: tuple[type[cst.CSTNode], ...] = (
    cst.AnnAssign, cst.Annotation, cst.Arg, cst.Assert, cst.Assign, cst.AugAssign, cst.DictElement, cst.Element, cst.Expr, cst.For,
    cst.FormattedStringExpression, cst.If, cst.Index, cst.Lambda, cst.Param, cst.Raise, cst.Return, cst.While, cst.WithItem,
)  # fmt: skip
"""Where an expression needs no parentheses."""
_BRACKETED = (cst.Arg, cst.DictElement, cst.Element, cst.Index)
_POWER: dict[type[cst.CSTNode], int] = {
    cst.Yield: 0, cst.Tuple: 0, cst.GeneratorExp: 0, cst.NamedExpr: 0, cst.Lambda: 1, cst.IfExp: 2, cst.Or: 3, cst.And: 4, cst.Not: 5,
    cst.Comparison: 6, cst.BitOr: 7, cst.BitXor: 8, cst.BitAnd: 9, cst.LeftShift: 10, cst.RightShift: 10, cst.Add: 11, cst.Subtract: 11,
    cst.Multiply: 12, cst.Divide: 12, cst.FloorDivide: 12, cst.Modulo: 12, cst.MatrixMultiply: 12, cst.Plus: 13, cst.Minus: 13,
    cst.BitInvert: 13, cst.Power: 14, cst.Await: 15,
}  # fmt: skip
_ATOM = 16


class BrokenOutput(AssertionError):
    """The rewritten text is not Python: a defect of ddpify, never of the script."""


class _Conflict(Exception):
    """This change cannot be carried out."""

    def __init__(self, change: Change) -> None:
        super().__init__(change.why)
        self.change = change


@dataclass
class _Step:
    edit: Any
    change: Change
    rank: int


@dataclass
class _Place:
    """What happens to one statement as a whole."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    header: str = ""
    gone: bool = False
    unwrapped: bool = False

    @property
    def alone(self) -> bool:
        """Whether the statement cannot share its line."""
        return bool(self.header) or self.gone or self.unwrapped


def rewrite(text: str, tree: ast.Module, changes: Sequence[Change]) -> tuple[str, tuple[Change, ...]]:
    """Carry `changes` out on `text`, of which `tree` is the abstract tree: the new text, and the changes that could not be made.

    Raises `BrokenOutput` if the result cannot be parsed.
    """
    kept = list(changes)
    if not any(change.edits or change.imports for change in kept):
        return text, ()
    with _deep():
        module = _parse(text)
        while module is not None and kept:
            try:
                result = _Rewriter(module, tree, kept).run()
            except _Conflict as conflict:
                kept.remove(conflict.change)
            except RecursionError:
                break
            else:
                _prove(result)
                return result, tuple(change for change in changes if change not in kept)
    return text, tuple(changes)


def _parse(text: str) -> cst.Module | None:
    """The concrete tree; None where libcst does not give the text back (form feeds and bare carriage returns, at places)."""
    try:
        module = cst.parse_module(text)
        return module if not re.search("[\r\f\v]", text) or module.code == text else None
    except (cst.ParserSyntaxError, RecursionError):
        return None


def _prove(result: str) -> None:
    try:
        _ast(result)
    except SyntaxError as error:
        line = (result.splitlines()[(error.lineno or 1) - 1 :] or [""])[0]
        raise BrokenOutput(f"line {error.lineno} of the rewritten text cannot be parsed: {error.msg}: {line!r}") from error


def _ast(code: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


@contextmanager
def _deep() -> Iterator[None]:
    """Room for long chains of operators: libcst recurses some five frames per level."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 12_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _key(edit: Any) -> tuple[Any, ...]:
    return type(edit), *(getattr(edit, f.name) for f in dataclasses.fields(edit))


class _Rewriter(cst.CSTTransformer):
    def __init__(self, module: cst.Module, tree: ast.Module, changes: Sequence[Change]) -> None:
        super().__init__()
        self.module = module
        self.continued = "\\\n" in module.code if False else False
        self.stack: list[Any] = []
        self.done: list[tuple[_Step, int]] = []
        self.updated: dict[int, cst.CSTNode] = {}
        self.templates: dict[str, cst.BaseExpression] = {}
        steps = self._steps(tree, changes)
        _check_losses([step for step in steps if isinstance(step.edit, (Replace, SetArgument, DropArgument, NameArgument))])
        self.pairs = pair(tree, module, {node for s in steps for node in (s.edit.node, *getattr(s.edit, "holes", ()))})
        self.expressions: dict[int, list[_Step]] = {}
        self.places: dict[int, _Place] = {}
        self.place_steps: dict[int, list[_Step]] = {}
        self.holes: set[int] = set()
        for step in steps:
            self._register(step)

    def _steps(self, tree: ast.Module, changes: Sequence[Change]) -> list[_Step]:
        ranks = {change: rank for rank, change in enumerate(changes)}
        pairs = [*emit.merge_imports(tree, changes), *((edit, change) for change in changes for edit in change.edits)]
        unique = {_key(edit): _Step(edit, change, ranks[change]) for edit, change in reversed(pairs)}
        return list(reversed(unique.values()))

    def _partner(self, node: ast.AST, step: _Step) -> int:
        if node not in self.pairs.partner:
            raise _Conflict(step.change)
        return id(self.pairs.partner[node])

    def _register(self, step: _Step) -> None:
        edit, key = step.edit, self._partner(step.edit.node, step)
        self.holes |= {self._partner(hole, step) for hole in getattr(edit, "holes", ())}
        if isinstance(edit, (Replace, SetArgument, DropArgument, NameArgument, emit.Extend)):
            self.expressions.setdefault(key, []).append(step)
            return
        self.place_steps.setdefault(key, []).append(step)
        place = self.places.setdefault(key, _Place())
        if isinstance(edit, InsertBefore):
            place.before.append(edit.code)
        elif isinstance(edit, InsertAfter):
            place.after.append(edit.code)
        elif isinstance(edit, Drop):
            place.gone = True
        elif isinstance(edit, Unwrap):
            place.unwrapped = True
        elif place.header and place.header != edit.header:
            raise _Conflict(step.change)
        else:
            place.header = edit.header

    def run(self) -> str:
        """The new text."""
        try:
            module = self.module.visit(self)
        except cst.CSTValidationError:
            raise _Conflict(self.done[-1][0].change) from None
        for steps in self.place_steps.values():  # what no body holds: an `elif`
            raise _Conflict(steps[-1].change)
        return module.code

    # The pass

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _SPACE) or isinstance(node, _LINES) and id(node) not in self.pairs.path:
            return False
        self.stack.append(node)
        return True

    def on_leave(self, original: Any, updated: Any) -> Any:  # type: ignore[override]
        if not self.stack or self.stack[-1] is not original:
            return updated
        self.stack.pop()
        key = id(original)
        for step in sorted(self.expressions.get(key, ()), key=lambda step: isinstance(step.edit, Replace)):
            self.done.append((step, next((id(node) for node in reversed(self.stack) if isinstance(node, _LINES)), 0)))
            try:
                updated = self._carry_out(step, original, updated)
            except _BROKEN:
                raise _Conflict(step.change) from None
        if key in self.holes:
            self.updated[key] = updated
        if isinstance(original, _LINES):
            self._check(original, updated)
        if isinstance(original, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            return self._body(original, updated)
        return updated

    def _check(self, original: Any, updated: Any) -> None:
        """That the statement (without its body) is Python, if anything in it was edited."""
        done = [step for step, line in self.done if line == id(original)]
        if not done or isinstance(original, (cst.Try, cst.TryStar, cst.Match)):
            return
        alone = updated.with_changes(leading_lines=())
        if not isinstance(original, cst.SimpleStatementLine):
            alone = alone.with_changes(body=cst.SimpleStatementSuite([cst.Pass()]))
            if getattr(alone, "orelse", None) is not None:
                alone = alone.with_changes(orelse=None)
        try:
            _ast(self.module.code_for_node(alone))
        except SyntaxError:
            raise _Conflict(max(done, key=lambda step: step.rank).change) from None

    # Expressions

    def _carry_out(self, step: _Step, original: Any, updated: Any) -> Any:
        edit = step.edit
        if isinstance(edit, emit.Extend):
            return emit.extend_import(updated, edit.names)
        if isinstance(edit, Replace):
            return self._replace(edit, original, updated)
        index = _find(edit, original, updated)
        if isinstance(edit, NameArgument):
            named = {"keyword": cst.Name(edit.keyword), "equal": _EQUAL}
            if index is None or updated.args[index].keyword is None:
                return _with_argument(updated, index, **named)
            return updated
        if isinstance(edit, DropArgument):
            return updated if index is None else emit.remove_argument(updated, index)
        value = self._value(edit)
        if index is not None:
            return _with_argument(updated, index, value=value)
        return emit.append_argument(updated, cst.Arg(value, cst.Name(edit.keyword), equal=_EQUAL))
