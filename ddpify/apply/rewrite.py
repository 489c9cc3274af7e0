"""One pass over the concrete tree that carries out edits, each as a function of the updated node.

Within one expression the arguments of a call are edited before the call is replaced. A change that cannot be carried out whole
is left out whole, and the pass starts again without it.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import libcst as cst

from ddpify.apply import emit
from ddpify.apply.pairing import pair
from ddpify.edits import (
    AddEntry,
    AddFirst,
    AddParameter,
    Drop,
    DropArgument,
    DropEntry,
    InsertAfter,
    InsertBefore,
    NameArgument,
    Replace,
    SetArgument,
    Under,
    Unwrap,
    Within,
)
from ddpify.facts.tree import walk
from ddpify.records import dataclass, field, fields
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
_IN_PLACE = (Replace, SetArgument, DropArgument, NameArgument, AddFirst, AddEntry, DropEntry, AddParameter)
_COMPOSING = (Replace, SetArgument, DropArgument, NameArgument, InsertBefore, Under)


class BrokenOutput(AssertionError):
    """The rewritten text is not Python: a defect of ddpify, never of the script."""


def _without_empty_else(original: cst.If, updated: cst.If) -> cst.If:
    """An `if` without the `else` of which an edit left nothing, not even a comment."""
    if not isinstance(updated.orelse, cst.Else) or updated.orelse is original.orelse or not isinstance(original.orelse, cst.Else):
        return updated
    block, before = updated.orelse.body, original.orelse.body
    lines = [*updated.orelse.leading_lines, *(line for s in block.body for line in getattr(s, "leading_lines", ()))]
    lines += [block.header, *block.footer] if isinstance(block, cst.IndentedBlock) else []
    empty = isinstance(block, cst.IndentedBlock) and len(block.body) == 1 and _is_pass(block.body[0])
    if not empty or any(line.comment for line in lines) or (len(before.body) == 1 and _is_pass(before.body[0])):
        return updated
    return updated.with_changes(orelse=None)


def _is_pass(line: cst.CSTNode) -> bool:
    """Whether a line of a body is `pass` alone."""
    return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(line.body[0], cst.Pass)


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

    before: list[tuple[cst.Module, _Step]] = field(default_factory=list)
    after: list[cst.Module] = field(default_factory=list)
    inside: list[cst.Module] = field(default_factory=list)
    header: str = ""
    inner: bool = False
    block: Any = None
    filled: _Step | None = None
    along: bool = False
    opens: list[tuple[Within, Any]] = field(default_factory=list)
    closes: list[Within] = field(default_factory=list)
    gone: bool = False
    unwrapped: bool = False

    @property
    def alone(self) -> bool:
        """Whether the statement cannot share its line."""
        return bool(self.header) or self.gone or self.unwrapped


@dataclass
class _Line:
    """What became of one line, or compound statement, by some edits inside it, with what the body around it needs of that."""

    updated: Any
    holes: dict[int, cst.CSTNode]
    lifted: dict[tuple[Change, int], cst.CSTNode]
    placed: list[int]
    last: _Step | None


class Rewritten:
    """What was worked out of one file that is rewritten several times: where the same edits meet the same lines, they make the same."""

    def __init__(self) -> None:
        self.around: dict[int, tuple[int, ...]] = {}  # for each concrete node that an edit names: the lines that it is inside
        self.lines: dict[tuple[int, tuple[Any, ...]], _Line] = {}
        self.templates: dict[str, cst.BaseExpression] = {}
        self.blocks: dict[str, Any] = {}
        self.codes: dict[int, tuple[cst.CSTNode, str]] = {}
        self.module: cst.Module | None = None

    def parsed(self, code: str) -> cst.Module | None:
        """The concrete tree of the file, parsed once; None where there is none."""
        if self.module is None:
            self.module = _parse(code)
        return self.module


def rewrite(text: str, tree: ast.Module, changes: Sequence[Change], known: Rewritten | None = None) -> tuple[str, tuple[Change, ...]]:
    """Carry `changes` out on `text`, of which `tree` is the abstract tree: the new text, and the changes that could not be made.

    `known` is what was worked out of the file before. Raises `BrokenOutput` if the result cannot be parsed.
    """
    kept = list(changes)
    if not any(change.edits or change.imports for change in kept):
        return text, ()
    code = re.sub(r"(?<=[\r\n])[ \t\f]+\Z", "", text)  # libcst forgets spaces behind the last newline
    known = Rewritten() if known is None else known
    with _deep():
        module = known.parsed(code)
        while module is not None and kept:
            try:
                result = _Rewriter(module, tree, kept, known).run() + text[len(code) :]
            except _Conflict as conflict:
                kept.remove(conflict.change)
            except RecursionError:
                break
            else:
                _prove(result)
                return result, tuple(change for change in changes if change not in kept)
    return text, tuple(changes)


@functools.lru_cache(maxsize=4)
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


@functools.lru_cache(256)
def _inserted(code: str, newline: str) -> cst.Module:
    """Statements to insert, which most conversions have in common."""
    _ast(code)
    return emit.parse_code(code, newline)


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
    return type(edit), *(getattr(edit, f.name) for f in fields(edit))


class _Rewriter(cst.CSTTransformer):
    def __init__(self, module: cst.Module, tree: ast.Module, changes: Sequence[Change], known: Rewritten) -> None:
        super().__init__()
        self.module, self.known = module, known
        self.stack: list[Any] = []
        self.done: dict[int, list[_Step]] = {}
        self.last: _Step | None = None
        self.updated: dict[int, cst.CSTNode] = {}
        steps = self._steps(tree, changes)
        _check_losses([step for step in steps if isinstance(step.edit, _COMPOSING)])
        self.pairs = pair(tree, module, {node for s in steps for node in _nodes(s.edit)})
        self.expressions: dict[int, list[_Step]] = {}
        self.places: dict[int, _Place] = {}
        self.place_steps: dict[int, list[_Step]] = {}
        self.holes: set[int] = set()
        self.lifted: dict[tuple[Change, int], cst.CSTNode] = {}
        for step in steps:
            self._register(step)
        self.named: dict[int, list[tuple[Any, ...]]] = {}  # for each concrete node, the edits that name it
        for number, step in enumerate(steps):
            for node in {self._partner(node, step) for node in _nodes(step.edit)}:
                self.named.setdefault(node, []).append((number, _key(step.edit), id(step.change)))
        self.inside: dict[int, list[int]] = {}  # for each line, the nodes inside it that edits name
        self.located = all(node in self.known.around for node in self.named)
        for node in self.named if self.located else ():
            self._locate(node)
        self.again: dict[int, _Line] = {}

    def _locate(self, node: int) -> None:
        for line in self.known.around[node]:
            self.inside.setdefault(line, []).append(node)

    def _edits_in(self, line: int) -> tuple[Any, ...]:
        """The edits inside a line, in their order: what it becomes depends on nothing else."""
        found = sorted({edit[0]: edit for node in self.inside.get(line, ()) for edit in self.named[node]}.items())
        return line, tuple((key, change) for _, (_, key, change) in found)

    def _steps(self, tree: ast.Module, changes: Sequence[Change]) -> list[_Step]:
        ranks = {change: rank for rank, change in enumerate(changes)}
        imports, edits = emit.merge_imports(tree, changes), [(edit, change) for change in changes for edit in change.edits]
        heads = [pair for pair in imports if isinstance(pair[0], InsertBefore)]  # before all that others put there
        pairs = [*(pair for pair in imports if pair not in heads), *edits, *heads]
        unique: dict[tuple[Any, ...], _Step] = {}
        for edit, change in pairs:
            unique.setdefault(_key(edit), _Step(edit, change, ranks[change]))
        return list(unique.values())

    def _partner(self, node: ast.AST, step: _Step) -> int:
        if node not in self.pairs.partner:
            raise _Conflict(step.change)
        return id(self.pairs.partner[node])

    def _register(self, step: _Step) -> None:
        edit, key = step.edit, self._partner(step.edit.node, step)
        self.holes |= {self._partner(hole, step) for hole in getattr(edit, "holes", ())}
        if isinstance(edit, (*_IN_PLACE, emit.Extend)):
            self.expressions.setdefault(key, []).append(step)
            return
        self.place_steps.setdefault(key, []).append(step)
        try:
            self._place(step, self.places.setdefault(key, _Place()))
        except _BROKEN:
            raise _Conflict(step.change) from None

    def _place(self, step: _Step, place: _Place) -> None:
        edit = step.edit
        if isinstance(edit, (InsertBefore, InsertAfter)):
            holes = getattr(edit, "holes", ())
            code = edit.code.format(*_hole_names(holes)) if holes else edit.code
            parsed = _inserted(code, self.module.default_newline)
            if isinstance(edit, InsertBefore):
                place.before.insert(0 if edit.first else len(place.before), (parsed, step))
            else:
                (place.inside if edit.inside else place.after).append(parsed)
        elif isinstance(edit, Drop):
            place.gone = True
        elif isinstance(edit, Unwrap):
            place.unwrapped = True
        elif isinstance(edit, Within):
            last = self.places.setdefault(self._partner(edit.last, step), _Place())
            place.opens.append((edit, self._block(edit.header)))
            last.closes.append(edit)
        else:
            header = edit.header.rstrip(": ").format(*_hole_names(edit.holes)) if edit.holes else edit.header.rstrip(": ")
            place.header = _both(place.header, place.inner, header, edit.inner)
            place.block = self._block(place.header)
            place.filled = step if edit.holes else None
            place.along, place.inner = place.along or edit.along, edit.inner

    def _block(self, header: str) -> Any:
        if header not in self.known.blocks:
            self.known.blocks[header] = cst.parse_statement(f"{header}: pass", config=self.module.config_for_parsing)
        return self.known.blocks[header]

    def run(self) -> str:
        """The new text."""
        try:
            module = self.module.visit(self)
        except cst.CSTValidationError:  # of a node above the last one that was edited
            if self.last is None:
                raise
            raise _Conflict(self.last.change) from None
        for steps in self.place_steps.values():  # what no body holds: an `elif`
            raise _Conflict(steps[-1].change)
        return self._code(module)

    def _code(self, module: cst.Module) -> str:
        """The text of the module, of which most statements are those of another time."""
        parts = (*module.header, *module.body, *module.footer)
        if not parts or not module.has_trailing_newline:
            return module.code
        codes = self.known.codes
        for node in parts:
            if id(node) not in codes:
                codes[id(node)] = node, self.module.code_for_node(node)
        return "".join(codes[id(node)][1] for node in parts)

    # The pass

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _SPACE) or (isinstance(node, _LINES) and not self._enters(node)):
            return False
        self.stack.append(node)
        if not self.located and id(node) in self.named:
            self.known.around[id(node)] = tuple(id(line) for line in self.stack if isinstance(line, _LINES))
            self._locate(id(node))
        return True

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing is done for single attributes."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """Nothing is done for single attributes."""

    def _enters(self, line: cst.CSTNode) -> bool:
        """Whether a line has to be gone through: it holds edits, and not the same as another time."""
        key = id(line)
        if not self.located or key not in self.pairs.path:
            return key in self.pairs.path
        known = self.known.lines.get(self._edits_in(key)) if key in self.inside else None
        if known is not None:
            self.again[key] = known
            self.updated |= known.holes
            self.lifted |= known.lifted
            self.last = known.last
            for node in known.placed:
                self.place_steps.pop(node, None)
        return key in self.inside and known is None

    def _keep(self, line: cst.CSTNode, updated: Any) -> None:
        """Note what became of a line."""
        nodes = self.inside.get(id(line), ())
        holes = {node: self.updated[node] for node in nodes if node in self.updated}
        lifted = {key: node for key, node in self.lifted.items() if key[1] in nodes}
        placed = [node for node in nodes if node not in self.place_steps]
        self.known.lines[self._edits_in(id(line))] = _Line(updated, holes, lifted, placed, self.last)

    def on_leave(self, original: Any, updated: Any) -> Any:
        if not self.stack or self.stack[-1] is not original:
            return self.again[id(original)].updated if id(original) in self.again else updated
        updated = self._left(original, updated)
        if isinstance(original, _LINES):
            self._keep(original, updated)
        return updated

    def _left(self, original: Any, updated: Any) -> Any:
        """What becomes of a node whose parts are done."""
        self.stack.pop()
        key = id(original)
        for step in sorted(
            self.expressions.get(key, ()), key=lambda step: (isinstance(step.edit, Replace), isinstance(step.edit, AddFirst))
        ):
            self.last = step
            self.lifted[step.change, key] = updated
            self.done.setdefault(next((id(node) for node in reversed(self.stack) if isinstance(node, _LINES)), 0), []).append(step)
            try:
                updated = self._carry_out(step, original, updated)
            except _BROKEN:
                raise _Conflict(step.change) from None
        if key in self.holes:
            self.updated[key] = updated
        if isinstance(original, cst.If):
            updated = _without_empty_else(original, updated)
        if isinstance(original, _LINES):
            self._check(original, updated)
        if isinstance(original, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            return self._body(original, updated)
        return self._labelled(original, updated) if isinstance(original, cst.FormattedString) else updated

    def _check(self, original: Any, updated: Any) -> None:
        """That the statement (without its body) is Python, if anything in it was edited."""
        done = self.done.get(id(original))
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
        if isinstance(edit, (AddFirst, AddEntry, AddParameter)):
            return emit.added(edit, updated, self.module.config_for_parsing)
        if isinstance(edit, DropEntry):
            return emit.remove_entry(updated, edit.index)
        index = _find(edit, updated)
        if isinstance(edit, NameArgument):
            if index is None:
                raise ValueError
            named = updated.args[index].keyword is not None
            return updated if named else _with_argument(updated, index, keyword=cst.Name(edit.keyword), equal=_EQUAL)
        if isinstance(edit, DropArgument):
            return updated if index is None else _drop_argument(updated, index)
        value = _fit(self._fill(edit, {}), cst.Arg)
        if index is not None:
            return _with_argument(updated, index, value=value)
        return emit.append_argument(updated, cst.Arg(value, cst.Name(edit.keyword), equal=_EQUAL))

    def _fill(self, edit: Any, own: dict[ast.expr, Any]) -> Any:
        """The template of `edit` with its holes filled; `own` overrides what a hole is now."""
        template = _quoted(edit.template, self.stack)
        names = _hole_names(edit.holes)
        if template not in self.known.templates:
            self.known.templates[template] = cst.parse_expression(template.format(*names).strip(), config=self.module.config_for_parsing)
        values = [own[hole] if hole in own else self.updated[id(self.pairs.partner[hole])] for hole in edit.holes]
        return _Fill(dict(zip(names, values, strict=True))).fill(self.known.templates[template])

    def _replace(self, edit: Replace, original: Any, updated: Any) -> Any:
        _require(isinstance(original, cst.BaseExpression) and not isinstance(original, cst.StarredElement))
        if edit.template.strip() == "{0}" and edit.holes == (edit.node,):
            return updated
        outside = bool(updated.lpar) and not isinstance(updated, (cst.Tuple, cst.GeneratorExp)) and not _leads(edit)
        inner = updated.with_changes(lpar=(), rpar=()) if outside else updated
        new = self._fill(edit, {edit.node: inner})
        if outside and not new.lpar and not (isinstance(new, cst.Name) and not edit.holes):
            return new.with_changes(lpar=updated.lpar, rpar=updated.rpar)
        parent = self.stack[-1]
        new = _fit(new, type(parent), updated)
        if not new.lpar and not isinstance(parent, _BRACKETED) and self._breaks(new) and not self._breaks(updated):
            return emit.parenthesize(new)
        return new

    def _breaks(self, node: Any) -> bool:
        """Whether the expression is written over several lines and only brackets around it hold it together."""
        code = self.module.code_for_node(node).strip()
        if "\n" not in code and "\r" not in code:
            return False
        try:
            _ast(code)
        except SyntaxError:
            return True
        return len(getattr(_ast(code), "body", ())) != 1

    def _labelled(self, original: cst.FormattedString, updated: cst.FormattedString) -> cst.FormattedString:
        """What `{x=}` prints before the value stays, whatever becomes of `x`."""
        if not isinstance(updated, cst.FormattedString) or len(original.parts) != len(updated.parts):
            return updated  # another expression stands there now
        parts: list[cst.BaseFormattedStringContent] = []
        for before, after in zip(original.parts, updated.parts, strict=True):
            if isinstance(before, cst.FormattedStringExpression) and isinstance(after, cst.FormattedStringExpression) and before.equal:
                label = self.module.code_for_node(before.expression)
                if self.module.code_for_node(after.expression) != label:
                    label = self.module.code_for_node(before.whitespace_before_expression) + label + self.module.code_for_node(before.equal)
                    parts.append(cst.FormattedStringText(label.replace("{", "{{").replace("}", "}}")))
                    conversion = after.conversion or (None if after.format_spec else "r")
                    after = after.with_changes(equal=None, conversion=conversion)
            parts.append(after)
        return updated.with_changes(parts=parts)

    # Bodies

    def _body(self, original: Any, updated: Any) -> Any:
        lines = [(original, updated)] if isinstance(original, cst.SimpleStatementSuite) else zip(original.body, updated.body, strict=True)
        pieces = [piece for before, after in lines for piece in self._pieces(before, after)]
        if not any(place for place, _ in pieces):
            return updated
        blocks = [original, *reversed(self.stack)]
        indent = next((node.indent for node in blocks if isinstance(node, cst.IndentedBlock)), None)
        module = isinstance(original, cst.Module)
        body = emit.Body(indent, original.header if module else None)
        ends = {edit: number for number, (place, _) in enumerate(pieces) for edit in (place.closes if place else ())}
        open_: list[tuple[emit.Body, Any, Within]] = []  # the blocks that grow, the innermost last
        for place, statement in pieces:
            if place and place.opens:
                around = open_[-1][0] if open_ else body
                above, statement = statement.leading_lines, statement.with_changes(leading_lines=())
                around.hold(above)
                for code, step in place.before:
                    around.insert(self._lifted(code, step))
                place.before = []
                for edit, block in sorted(place.opens, key=lambda o: -ends[o[0]]):  # what ends last is around the others
                    open_.append((emit.Body(indent, None), block, edit))
            if not open_:
                self._add(body, place, statement)
                continue
            closes = place.closes if place else []
            after = place.after if place and closes else []
            if place and closes:
                place.after = []
            self._add(open_[-1][0], place, self._moved(statement, indent, len(open_)))
            for _ in closes:
                inner, block, edit = open_.pop()
                _require(edit in closes)
                held, rest = inner.close(False)
                around = open_[-1][0] if open_ else body
                around.add(block.with_changes(body=cst.IndentedBlock(held, indent=indent), leading_lines=()))
                around.hold(rest)
            for code in after:
                (open_[-1][0] if open_ else body).insert(code)
        _require(not open_)
        statements, rest = body.close(module)
        if isinstance(updated, cst.SimpleStatementSuite):
            return cst.IndentedBlock(statements, footer=rest, indent=indent)
        updated = updated.with_changes(body=statements, footer=emit.join_lines(rest, updated.footer))
        return updated.with_changes(header=body.heading) if module else updated

    def _pieces(self, original: Any, updated: Any) -> Iterator[tuple[_Place | None, Any]]:
        """A line cut into as few lines as its edits need, each with what happens to it."""
        if not isinstance(original, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            self.place_steps.pop(id(original), None)
            yield self.places.get(id(original)), updated
            return
        runs: list[tuple[list[_Place | None], list[Any]]] = []
        for before, after in zip(original.body, updated.body, strict=True):
            self.place_steps.pop(id(before), None)
            place = self.places.get(id(before))
            last = runs[-1][0][-1] if runs else None
            ends = last and (last.after or last.inside or last.alone or last.closes)
            cut = (place and (place.before or place.alone or place.opens)) or ends
            if not runs or cut:
                runs.append(([], []))
            runs[-1][0].append(place)
            runs[-1][1].append(after)
        if len(runs) == 1 and isinstance(updated, cst.SimpleStatementLine):
            yield _joined(runs[0][0]), updated
            return
        for number, (places, smalls) in enumerate(runs):
            if number < len(runs) - 1:
                smalls[-1] = smalls[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            leading = getattr(updated, "leading_lines", ()) if number == 0 else ()
            trailing = updated.trailing_whitespace if number == len(runs) - 1 else cst.TrailingWhitespace()
            line = cst.SimpleStatementLine(smalls, leading_lines=leading, trailing_whitespace=trailing)
            yield _joined(places), line

    def _add(self, body: emit.Body, place: _Place | None, statement: Any) -> None:
        if place is None:
            body.add(statement)
            return
        if place.before or place.gone:
            above, own = emit.split_lines(statement.leading_lines, any(getattr(s.edit, "first", False) for _, s in place.before))
            body.hold(above)
            statement = statement.with_changes(leading_lines=own)
        for code, step in place.before:
            lifted = self._lifted(code, step)
            if place.along and not getattr(step.edit, "first", False):
                for part in lifted.body:
                    body.add(self._moved(part, body.indent, 1), place.block, place.header)
            else:
                body.insert(lifted)
        if place.gone:
            body.drop()
        else:
            parts, rest = self._unwrapped(statement, body.indent) if place.unwrapped else ([statement], ())
            for part in parts:
                if place.header:
                    block = place.block if place.filled is None else self._lifted(place.block, place.filled)
                    body.add(self._moved(part, body.indent, 1), block, place.header)
                else:
                    body.add(part)
            body.hold(rest)
        for code in place.inside:
            for part in code.body if place.header else ():
                body.add(self._moved(part, body.indent, 1), place.block, place.header)
            if not place.header:
                body.insert(code)
        if place.filled is not None:
            body.open = ""  # shared with none
        for code in place.after:
            body.insert(code)

    def _lifted(self, code: Any, step: _Step) -> Any:
        """Code to insert, with its holes filled: with what stood there before the same change took it away."""
        values = {}
        for name, hole in zip(_hole_names(step.edit.holes), step.edit.holes, strict=True):
            key = id(self.pairs.partner[hole])
            value: Any = self.lifted.get((step.change, key), self.updated[key])
            values[name] = emit.parenthesize(value) if self._breaks(value) else value
            if isinstance(step.edit, Under) and isinstance(value, cst.BinaryOperation):  # an argument there
                values[name] = value.with_changes(lpar=(), rpar=())
        return _Fill(values).fill(code) if values else code

    def _unwrapped(self, statement: Any, indent: str | None) -> tuple[list[Any], Sequence[cst.EmptyLine]]:
        """The statements of the body of `statement`, and the comments at its end."""
        suite = statement.body
        if isinstance(suite, cst.SimpleStatementSuite):
            line = cst.SimpleStatementLine(suite.body, statement.leading_lines, suite.trailing_whitespace)
            return [line], ()
        parts = [self._moved(part, suite.indent or indent, -1) for part in suite.body]
        above = list(statement.leading_lines)
        if suite.header.comment:
            above.append(cst.EmptyLine(comment=suite.header.comment))
        own = parts[0].leading_lines
        first = next((number for number, line in enumerate(own) if not emit.is_blank(line)), len(own))
        parts[0] = parts[0].with_changes(leading_lines=[*above, *own[first:]])
        return parts, suite.footer

    def _moved(self, statement: Any, indent: str | None, way: int) -> Any:
        return statement.visit(emit.Moved(indent or self.module.default_indent, way))


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _joined(places: Sequence[_Place | None]) -> _Place | None:
    """What happens to a run of statements on one line: inserts only at its ends, the rest only where it is alone."""
    first, last = places[0], places[-1]
    if first is None or last is None or first is last:
        return first or last
    return _Place(before=first.before, after=last.after, inside=last.inside, opens=first.opens, closes=last.closes)


def _nodes(edit: Any) -> tuple[ast.AST, ...]:
    """The nodes that an edit names."""
    return edit.node, *getattr(edit, "holes", ()), *([edit.last] if isinstance(edit, Within) else [])


def _hole_names(holes: Sequence[ast.expr]) -> list[str]:
    return [f"_ddpify_hole_{index}_" for index in range(len(holes))]


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _find(edit: Any, call: Any) -> int | None:
    """The index in `call` of the argument that `edit` means."""
    _require(isinstance(call, cst.Call))
    for index, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == edit.keyword:
            return index
    position = edit.position
    if position is None or position >= len(call.args) or any(arg.star or arg.keyword for arg in call.args[: position + 1]):
        return None
    return int(position)


def _with_argument(call: cst.Call, index: int, **changes: Any) -> cst.Call:
    args = list(call.args)
    args[index] = args[index].with_changes(**changes)
    return call.with_changes(args=args)


def _drop_argument(call: cst.Call, index: int) -> cst.Call:
    if call.args[index].keyword is None:
        _require(not any(arg.keyword is None and arg.star != "**" for arg in call.args[index + 1 :]))
    return emit.remove_argument(call, index)


def _leads(edit: Replace) -> bool:
    """Whether the template begins with the hole that is the edited node itself."""
    number = re.match(r"\s*\{(\d+)\}", edit.template)
    return number is not None and edit.holes[int(number[1])] is edit.node


def _quoted(template: str, stack: Iterable[Any]) -> str:
    """`template` with quotes that may stand in the f-strings around it (before Python 3.12 not the f-string's own)."""
    for quote in {node.end for node in stack if isinstance(node, cst.FormattedString)}:
        _require(not re.search(r"[\\#\r\n]", template))
        other = "'" if quote == '"' else '"'
        if len(quote) == 1 and quote in template:
            _require(other not in template)
            template = template.replace(quote, other)
    return template


def _power(node: Any) -> int:
    kind = type(getattr(node, "operator", node))
    if isinstance(node, cst.ConcatenatedString) or node.lpar:
        return _ATOM
    return _POWER.get(type(node), _POWER.get(kind, _ATOM))


def _fit(new: Any, parent: type[Any], old: Any = None) -> Any:
    """`new` as it may stand below a `parent`, where `old` stood: in parentheses if need be."""
    power = _power(new)
    if isinstance(new, (cst.Integer, cst.Float)) and issubclass(parent, cst.Attribute):
        return emit.parenthesize(new)
    if issubclass(parent, cst.FormattedStringExpression) and isinstance(new, (cst.BaseDict, cst.BaseSet)):
        return emit.parenthesize(new)
    if power == _ATOM or (old is not None and power >= _power(old)):
        return new
    if power > int(not issubclass(parent, (cst.Arg, cst.Assign, cst.Return))) and issubclass(parent, _ROOMY):
        return new
    if issubclass(parent, cst.BooleanOperation) and power >= _POWER[cst.Not]:
        return new
    if issubclass(parent, (cst.Comparison, cst.ComparisonTarget)) and power > _POWER[cst.Comparison]:
        return new
    return emit.parenthesize(new)


class _Fill(cst.CSTTransformer):
    """Puts nodes in the place of names."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__()
        self.values = values
        self.stack: list[Any] = []

    def fill(self, template: Any) -> Any:
        """`template` filled."""
        if isinstance(template, cst.Name) and template.value in self.values:
            _require(isinstance(self.values[template.value], cst.BaseExpression))
            return self.values[template.value]
        return template.visit(self)

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.stack.append(node)
        return True

    def on_leave(self, original: Any, updated: Any) -> Any:
        self.stack.pop()
        if isinstance(original, cst.Arg) and isinstance(original.value, cst.Name):
            value = self.values.get(original.value.value)
            if isinstance(value, cst.Arg):
                return updated.with_changes(star=value.star, value=value.value)
        if not isinstance(original, cst.Name) or original.value not in self.values:
            return updated
        value, parent = self.values[original.value], self.stack[-1]
        if isinstance(value, cst.Arg) and isinstance(parent, cst.Arg) and not parent.star and not parent.keyword:
            return updated
        _require(isinstance(value, cst.BaseExpression) and not isinstance(value, cst.StarredElement))
        quotes = {node.end for node in self.stack if isinstance(node, cst.FormattedString)}
        _require(not quotes or not any(mark in cst.Module([]).code_for_node(value) for mark in (*quotes, "\\", "#", "\n", "\r")))
        grouped = isinstance(parent, cst.BinaryOperation) and parent.left is original and isinstance(value, cst.BinaryOperation)
        if grouped and type(value.operator) is type(parent.operator) and _power(parent) <= _POWER[cst.Multiply]:
            return value  # the same operator again groups from the left
        if isinstance(parent, cst.BooleanOperation) and type(getattr(value, "operator", None)) is type(parent.operator):
            return value  # `a and (b and c)` is `a and b and c`
        return _fit(value, type(parent))


def _both(one: str, inside: bool, other: str, inner: bool) -> str:
    """The header of a block for two edits, of which one is to be inside of the other."""
    if one in ("", other):
        return other
    _require(inside != inner and one.startswith("with ") and other.startswith("with "))
    outer, last = (other, one) if inside else (one, other)
    return f"{outer}, {last.removeprefix('with ')}"


def _check_losses(steps: Sequence[_Step]) -> None:
    """Blame the later of two changes where an edit would throw away what an edit of another change has made."""
    edited: dict[ast.AST, list[_Step]] = {}
    moved: dict[Change, set[ast.AST]] = {}
    for step in steps:
        if isinstance(step.edit, (InsertBefore, Under)):
            moved.setdefault(step.change, set()).update(node for hole in step.edit.holes for node in walk(hole))
        if not isinstance(step.edit, (InsertBefore, Under)):
            edited.setdefault(step.edit.node, []).append(step)
    for step in steps:
        edit = step.edit
        holes = getattr(edit, "holes", ())
        place = edit.node if isinstance(edit, Replace) else _argument(edit) if isinstance(edit, SetArgument) else None
        below = set(walk(edit.node)) if place is not None or holes else set()
        if any(hole not in below for hole in holes):
            raise _Conflict(step.change)
        if place is not None:
            lost = edited.keys() & set(walk(place)) - {node for hole in holes for node in walk(hole)} - moved.get(step.change, set())
            _blame(step, [s for node in lost for s in edited[node] if node is not edit.node or _precedes(s, step)])
        if isinstance(edit, (SetArgument, DropArgument)):
            same = (SetArgument, DropArgument)
            _blame(step, [s for s in edited[edit.node] if isinstance(s.edit, same) and s.edit.keyword == edit.keyword])


def _precedes(other: _Step, step: _Step) -> bool:
    return other.rank < step.rank or not isinstance(other.edit, Replace)


def _argument(edit: SetArgument) -> ast.expr | None:
    """The value that the argument has so far."""
    for keyword in edit.node.keywords:
        if keyword.arg == edit.keyword:
            return keyword.value
    args = edit.node.args
    if edit.position is None or edit.position >= len(args) or any(isinstance(arg, ast.Starred) for arg in args[: edit.position + 1]):
        return None
    return args[edit.position]


def _blame(step: _Step, others: Iterable[_Step]) -> None:
    rivals = [other for other in others if other.change is not step.change]
    if rivals:
        raise _Conflict(max([step, *rivals], key=lambda one: one.rank).change)
