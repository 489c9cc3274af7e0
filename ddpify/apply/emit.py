"""What is written anew: imports, inserted statements, blocks, arguments; in the layout that the file has already."""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from ddpify.edits import AddEntry, AddFirst, AddParameter, Drop, InsertAfter, InsertBefore
from ddpify.records import dataclass
from ddpify.rules.base import Change

Lines = list[cst.EmptyLine]


@dataclass(frozen=True, eq=False)
class Extend:
    """Import `names` (such as `X` or `X as Y`), too, in the statement `from … import` that is there."""

    node: ast.ImportFrom
    names: tuple[str, ...]


# Imports


@dataclass(frozen=True)
class _Need:
    """One name to import: `module`, with the dots of a relative import, is empty for `import thing as name`.

    `limit` is the index of the first statement that uses it.
    """

    module: str
    thing: str
    name: str
    limit: int
    change: Change

    @property
    def text(self) -> str:
        return self.thing if self.name in (self.thing, self.thing.partition(".")[0]) else f"{self.thing} as {self.name}"

    @property
    def root(self) -> str:
        return _root(self.module or self.thing)


def merge_imports(tree: ast.Module, changes: Sequence[Change]) -> list[tuple[InsertBefore | InsertAfter | Extend, Change]]:
    """The edits that give the module the imports of `changes`, each before its first use, each with a change that needs it."""
    dropped = {edit.node for change in changes for edit in change.edits if isinstance(edit, Drop)}
    section = _section(tree, dropped)
    groups: dict[tuple[Any, ast.stmt], list[_Need]] = {}
    for need in _missing(tree, changes, dropped):
        groups.setdefault(_anchor(tree, section, need), []).append(need)
    return [(_edit(kind, node, needs, tree), needs[0].change) for (kind, node), needs in groups.items()]


def _missing(tree: ast.Module, changes: Sequence[Change], dropped: set[ast.stmt]) -> list[_Need]:
    have: dict[tuple[str, str], int] = {}
    for index, statement in enumerate(tree.body):
        if statement not in dropped:
            for binding in _bindings(statement):
                have.setdefault(binding, index)
    out: list[_Need] = []
    wanted = dict.fromkeys((text, alias) for change in changes for text in change.imports for alias in _aliases(text))
    for text, (module, thing, name) in wanted:
        carriers = [change for change in changes if text in change.imports]
        limit = _first_use(tree, name, carriers, changes)
        full = f"{module}.{thing}" if module else thing
        if have.get((name, full), limit) >= limit:
            have[name, full] = -1
            out.append(_Need(module, thing, name, limit, carriers[0]))
    return out


def _root(dotted: str) -> str:
    """The package that a module belongs to; a dot for the file's own."""
    return "." if dotted.startswith(".") else dotted.partition(".")[0]


def _module(statement: ast.ImportFrom) -> str:
    return "." * statement.level + (statement.module or "")


def _aliases(text: str) -> Iterator[tuple[str, str, str]]:
    """(module, thing, name) for each name that an import statement binds."""
    (statement,) = ast.parse(text).body
    assert isinstance(statement, (ast.Import, ast.ImportFrom)), text
    for alias in statement.names:
        module = _module(statement) if isinstance(statement, ast.ImportFrom) else ""
        yield module, alias.name, alias.asname or (alias.name if module else alias.name.partition(".")[0])


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """The names that `statement` surely imports, with the dotted name of the thing."""
    if isinstance(statement, (ast.Try, ast.With)):
        for inner in statement.body:
            yield from _bindings(inner)
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
            if not alias.asname:
                yield root, alias.name
    elif isinstance(statement, ast.ImportFrom):
        yield from ((alias.asname or alias.name, f"{_module(statement)}.{alias.name}") for alias in statement.names)


def _first_use(tree: ast.Module, name: str, carriers: Sequence[Change], changes: Sequence[Change]) -> int:
    """The index of the first statement of the module before which `name` must be bound."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
    uses = [e for change in changes for e in change.edits if any(word.search(getattr(e, f, "")) for f in ("code", "template", "header"))]
    uses = uses or [edit for change in carriers for edit in change.edits]
    at: dict[ast.AST, int] = {statement: index for index, statement in enumerate(tree.body)}
    ends = [statement.end_lineno or 0 for statement in tree.body]
    places = [at.get(edit.node, bisect_left(ends, edit.node.lineno)) + isinstance(edit, InsertAfter) for edit in uses]
    return min(places, default=len(tree.body))


def _section(tree: ast.Module, dropped: set[ast.stmt]) -> list[int]:
    """The indices of the imports at the head of the module."""
    out: list[int] = []
    for index, statement in enumerate(tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While)):
            break
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and not _is_future(statement) and statement not in dropped:
            out.append(index)
    return out


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _roots(statement: Any) -> set[str]:
    if isinstance(statement, ast.ImportFrom):
        return {_root(_module(statement))}
    return {alias.name.partition(".")[0] for alias in statement.names}


def _anchor(tree: ast.Module, section: list[int], need: _Need) -> tuple[Any, ast.stmt]:
    """The kind of edit, and the statement, that brings `need` to its kin."""
    before = [tree.body[index] for index in section if index < need.limit]
    for statement in before:
        if isinstance(statement, ast.ImportFrom) and need.module and _takes(statement, need.module):
            return Extend, statement
    stdlib = need.root in sys.stdlib_module_names
    kin = [s for s in before if (_roots(s) & sys.stdlib_module_names if stdlib else need.root in _roots(s))]
    alike = [s for s in kin if isinstance(s, ast.ImportFrom) == bool(need.module)]
    if kin:
        return InsertAfter, (alike or kin)[-1]
    if before:
        return (InsertBefore, before[0]) if stdlib else (InsertAfter, before[-1])
    start = _prologue(tree)
    return (InsertBefore, tree.body[start]) if start < len(tree.body) else (InsertAfter, tree.body[-1])


def _takes(statement: ast.ImportFrom, module: str) -> bool:
    return _module(statement) == module and statement.names[0].name != "*"


def _prologue(tree: ast.Module) -> int:
    """How many statements (docstring, `__future__`) must stay first."""
    start = int(ast.get_docstring(tree, clean=False) is not None)
    while start < len(tree.body) and _is_future(tree.body[start]):
        start += 1
    return start


def _edit(kind: Any, node: ast.stmt, needs: list[_Need], tree: ast.Module) -> InsertBefore | InsertAfter | Extend:
    if kind is Extend:
        assert isinstance(node, ast.ImportFrom)
        return Extend(node, tuple(need.text for need in needs))
    kin = _roots(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else set()
    needs = sorted(needs, key=lambda need: (need.root not in sys.stdlib_module_names, need.root not in kin))
    code = [f"import {need.text}\n" for need in needs if not need.module]
    for module in dict.fromkeys(need.module for need in needs if need.module):
        code.append(f"from {module} import {', '.join(need.text for need in needs if need.module == module)}\n")
    if kind is InsertAfter:
        alone = not isinstance(node, (ast.Import, ast.ImportFrom)) or _is_future(node)
        other = [need.root not in sys.stdlib_module_names for need in needs]
        alone |= bool(kin) and kin <= sys.stdlib_module_names and all(other)
        alone |= bool(kin) and "." not in kin and all(need.root == "." for need in needs)
        return InsertAfter(node, "\n" * alone + "".join(code))
    start = tree.body.index(node)
    glued = start > 0 and node.lineno - (tree.body[start - 1].end_lineno or 0) == 1
    gap = 2 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else 1
    return InsertBefore(node, "\n" * glued + "".join(code) + "\n" * gap, first=True)


def extend_import(node: cst.ImportFrom, names: Sequence[str]) -> cst.ImportFrom:
    """`node` with `names` added, one per line if it is laid out so."""
    for name in names:
        assert not isinstance(node.names, cst.ImportStar)
        thing, _, asname = name.partition(" as ")
        alias = cst.ImportAlias(cst.Name(thing), cst.AsName(cst.Name(asname)) if asname else None)
        opening = node.lpar.whitespace_after if node.lpar else cst.SimpleWhitespace("")
        closing = node.rpar.whitespace_before if node.rpar else cst.SimpleWhitespace("")
        elements, closing = grow(node.names, alias, opening, closing)
        node = node.with_changes(names=elements, rpar=node.rpar.with_changes(whitespace_before=closing) if node.rpar else None)
    return node


# Elements between commas

Space = cst.BaseParenthesizableWhitespace


def grow(elements: Sequence[Any], new: Any, opening: Space, closing: Space) -> tuple[list[Any], Space]:
    """`elements` with `new` at the end; `opening` and `closing` are the space inside the brackets, the second without trailing comma."""
    last = elements[-1]
    previous = elements[-2].comma if len(elements) > 1 else None
    gap = previous.whitespace_after if isinstance(previous, cst.Comma) else opening
    trailing = last.comma if isinstance(last.comma, cst.Comma) else None
    end: Space = trailing.whitespace_after if trailing else closing
    between: Space = cst.SimpleWhitespace(" ")
    if isinstance(gap, cst.ParenthesizedWhitespace):
        line = cst.TrailingWhitespace()
        if isinstance(end, cst.ParenthesizedWhitespace):
            line, end = end.first_line, end.with_changes(first_line=cst.TrailingWhitespace())
        between = gap.with_changes(first_line=line, empty_lines=())
    comma = (trailing or cst.Comma()).with_changes(whitespace_after=between)
    if trailing:
        new, end = new.with_changes(comma=trailing.with_changes(whitespace_after=end)), closing
    return [*elements[:-1], last.with_changes(comma=comma), new], end


def append_argument(call: cst.Call, new: cst.Arg) -> cst.Call:
    """`call` with the argument `new` at the end, on its own line if the arguments are laid out so."""
    if not call.args:
        return call.with_changes(args=[new], whitespace_before_args=cst.SimpleWhitespace(""))
    last = call.args[-1]
    if isinstance(last.value, cst.GeneratorExp):
        last = last.with_changes(value=parenthesize(last.value))
    bare = last.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
    args, closing = grow([*call.args[:-1], bare], new, call.whitespace_before_args, last.whitespace_after_arg)
    args[-1] = args[-1].with_changes(whitespace_after_arg=closing)
    return call.with_changes(args=args)


def added(edit: AddFirst | AddEntry | AddParameter, updated: Any, config: cst.PartialParserConfig) -> Any:
    """`updated` with one more argument, entry or parameter."""
    if isinstance(edit, AddFirst):
        value = cst.parse_expression(edit.template, config=config)
        if not updated.args:
            return updated.with_changes(args=[cst.Arg(value)])
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        return updated.with_changes(args=[cst.Arg(value, comma=comma), *updated.args])
    if isinstance(edit, AddParameter):
        return updated.with_changes(params=_with_parameter(updated.params, edit))
    entry = cst.DictElement(cst.parse_expression(edit.key, config=config), cst.parse_expression(edit.value, config=config))
    if not updated.elements:
        return updated.with_changes(elements=[entry])
    elements, closing = grow(updated.elements, entry, updated.lbrace.whitespace_after, updated.rbrace.whitespace_before)
    return updated.with_changes(elements=elements, rbrace=updated.rbrace.with_changes(whitespace_before=closing))


def remove_entry(display: cst.Dict, index: int) -> cst.Dict:
    """`display` without its entry at `index`."""
    gone, rest = display.elements[index], [*display.elements[:index], *display.elements[index + 1 :]]
    if rest and index == len(rest):
        rest[-1] = rest[-1].with_changes(comma=gone.comma)
    return display.with_changes(elements=rest)


def _with_parameter(params: cst.Parameters, edit: AddParameter) -> cst.Parameters:
    """One more parameter: behind the positional ones, or among those that are only passed by keyword."""
    new = cst.Param(cst.Name(edit.name))
    space, none = cst.SimpleWhitespace(" "), cst.SimpleWhitespace("")
    if any(p.name.value == edit.name for p in (*params.params, *params.kwonly_params)):
        return params
    if edit.optional or (params.params and params.params[-1].default is not None and not isinstance(params.star_arg, cst.CSTNode)):
        new = new.with_changes(default=cst.parse_expression(edit.default), equal=cst.AssignEqual(none, none))
    if isinstance(params.star_arg, (cst.Param, cst.ParamStar)):
        kept = _comma_between(params.kwonly_params)
        return params.with_changes(kwonly_params=[*kept, new])
    if not params.params:
        return params.with_changes(params=[new])
    last = params.params[-1]
    if params.star_kwarg is not None:
        return params.with_changes(params=[*params.params, new.with_changes(comma=cst.Comma(whitespace_after=space))])
    elements, end = grow(params.params, new, none, last.whitespace_after_param)
    elements[-2] = elements[-2].with_changes(whitespace_after_param=none)
    elements[-1] = elements[-1].with_changes(whitespace_after_param=end)
    return params.with_changes(params=elements)


def _comma_between(params: Sequence[cst.Param]) -> list[cst.Param]:
    return [
        p if isinstance(p.comma, cst.Comma) else p.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))) for p in params
    ]


def remove_argument(call: cst.Call, index: int) -> cst.Call:
    """`call` without its argument at `index`; a comment behind the argument before it stays."""
    gone, rest = call.args[index], [*call.args[:index], *call.args[index + 1 :]]
    if not rest:
        return call.with_changes(args=rest, whitespace_before_args=cst.SimpleWhitespace(""))
    if index == len(rest):
        last = rest[-1]
        comment = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else None
        trailing = gone.comma if isinstance(gone.comma, cst.Comma) else None
        end: Space = trailing.whitespace_after if trailing else gone.whitespace_after_arg
        if isinstance(comment, cst.ParenthesizedWhitespace) and comment.first_line.comment:
            end = (end if isinstance(end, cst.ParenthesizedWhitespace) else comment).with_changes(first_line=comment.first_line)
        if trailing:
            rest[-1] = last.with_changes(comma=trailing.with_changes(whitespace_after=end))
        else:
            rest[-1] = last.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=end)
    elif index > 0:  # a line that ended behind the argument ends behind the one before it
        before, ended = rest[index - 1], gone.comma
        if (
            isinstance(before.comma, cst.Comma)
            and isinstance(ended, cst.Comma)
            and isinstance(ended.whitespace_after, cst.ParenthesizedWhitespace)
            and not isinstance(before.comma.whitespace_after, cst.ParenthesizedWhitespace)
        ):
            rest[index - 1] = before.with_changes(comma=ended)
    return call.with_changes(args=rest)


def parenthesize(node: cst.BaseExpression) -> cst.BaseExpression:
    """`node` in parentheses, unless it has some."""
    return node if node.lpar else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


# Lines and bodies


def parse_code(code: str, newline: str) -> cst.Module:
    """Statements to insert, in the file's newline and, where it is used, indentation."""
    code = code.replace("\r\n", "\n")
    return cst.parse_module((code if code.endswith("\n") else code + "\n").replace("\n", newline))


class Moved(cst.CSTTransformer):
    """Makes a statement fit for another depth, beyond the indentation and the lines in brackets, which libcst moves itself.

    Blank lines stay empty; lines that a backslash continues go one unit in (`way` 1) or out (-1); blocks get the indentation `unit`.
    """

    def __init__(self, indent: str = "", way: int = 0, unit: str | None = None) -> None:
        super().__init__()
        self.indent = re.escape(indent) if way < 0 else indent
        self.way = way
        self.unit = unit

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """One node moved."""
        if isinstance(updated_node, cst.EmptyLine):
            return emptied(updated_node)
        if isinstance(updated_node, cst.IndentedBlock) and self.unit is not None:
            return updated_node.with_changes(indent=self.unit)
        if isinstance(updated_node, cst.SimpleWhitespace) and "\\" in updated_node.value and self.way:
            out, into = (f"(?:{self.indent})?", "") if self.way < 0 else ("", self.indent)
            return updated_node.with_changes(value=re.sub(rf"(\\\r?\n){out}", lambda found: found[1] + into, updated_node.value))
        return updated_node


def emptied(line: cst.EmptyLine) -> cst.EmptyLine:
    """A blank line without the indentation of its surroundings."""
    return line.with_changes(indent=False) if is_blank(line) and not line.whitespace.value else line


def is_blank(line: cst.EmptyLine) -> bool:
    """Whether there is no comment on `line`."""
    return line.comment is None


def split_lines(lines: Sequence[cst.EmptyLine], headed: bool = False) -> tuple[Lines, Lines]:
    """Lines above a statement: those up to the last blank one, and the comments that belong to the statement.

    A comment between blank lines is `headed` where it is the heading of all that follows.
    """
    blank = [index + 1 for index, line in enumerate(lines) if is_blank(line)]
    ends = [cut for cut in blank if cut + 1 not in blank]  # of runs of blank lines
    cut = (ends[0] if headed else ends[-1]) if ends else 0
    return list(lines[:cut]), list(lines[cut:])


def join_lines(above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine]) -> Lines:
    """Both; where blank lines meet blank lines, the longer run alone."""
    tail = next((n for n, line in enumerate(reversed(above)) if not is_blank(line)), len(above))
    head = next((n for n, line in enumerate(below) if not is_blank(line)), len(below))
    return [*above, *below[min(tail, head) :]]


def strip_end(lines: Lines) -> Lines:
    """Without the blank lines at the end."""
    while lines and is_blank(lines[-1]):
        lines = lines[:-1]
    return lines


class Body:
    """A body under construction: lines of comment that wait for a statement, and blocks that still grow."""

    def __init__(self, indent: str | None, heading: Sequence[cst.EmptyLine] | None) -> None:
        """`indent` is the unit of new blocks (None: the file's), `heading` what stands above the first statement of a module."""
        self.indent = indent
        self.nested = heading is None
        self.heading = strip_end(list(heading or ()))
        self.out: list[Any] = []
        self.waiting: Lines = list(heading or ())[len(self.heading) :]
        self.open = ""
        self.trim = False

    def hold(self, lines: Sequence[cst.EmptyLine]) -> None:
        """Keep `lines` for the next statement."""
        self.waiting = join_lines(self.waiting, lines)

    def drop(self) -> None:
        """Note that a statement is left out here."""
        self.trim = self.trim or not (self.out or self.waiting or self.heading)

    def add(self, statement: Any, block: Any = None, header: str = "") -> None:
        """Add a statement; with a `block` under it, or under the last one if that has the same `header`."""
        lines = join_lines(self.waiting, statement.leading_lines)
        if self.trim and not self.out:
            lines = lines[next((n for n, line in enumerate(lines) if not is_blank(line)), len(lines)) :]
        self.waiting = []
        if header and header == self.open:
            block = self.out[-1]
            inner = [*block.body.body, statement.with_changes(leading_lines=[emptied(line) for line in lines])]
            self.out[-1] = block.with_changes(body=block.body.with_changes(body=inner))
        elif header:
            suite = cst.IndentedBlock([statement.with_changes(leading_lines=())], indent=self.indent)
            self.out.append(block.with_changes(body=suite, leading_lines=lines))
        else:
            own = lines == [*statement.leading_lines]
            self.out.append(statement if own else statement.with_changes(leading_lines=lines))
        self.open = header

    def insert(self, code: cst.Module) -> None:
        """Add parsed code, with its comments and blank lines."""
        if self.nested:
            code = code.visit(Moved(unit=self.indent))
        self.hold(code.header)
        for statement in code.body:
            self.add(statement)
        self.hold(code.footer)

    def close(self, may_be_empty: bool) -> tuple[list[Any], Lines]:
        """The statements, and the comments that are left over."""
        if not self.out and not may_be_empty:
            self.waiting = strip_end(self.waiting)
            self.add(cst.SimpleStatementLine([cst.Pass()]))
        return self.out, strip_end(self.waiting)
