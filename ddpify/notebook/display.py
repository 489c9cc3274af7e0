"""What a notebook shows by itself: figures are saved instead, values printed, and what only a notebook can show is left out."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from ddpify.notebook.names import PYPLOT, Names
from ddpify.notebook.remark import Edit, Remark, edited
from ddpify.records import dataclass, field
from ddpify.source import split_lines

_BLOCKS = ("body", "orelse", "finalbody")
_RICH = frozenset("HTML Image Markdown Latex SVG Video Audio YouTubeVideo IFrame Javascript JSON Math FileLink ProgressBar".split())
_NOISE = re.compile(r"^\[?<|^\(?(Text|array\(\[\]|\d+\. *\[)|^\w+\(\n")  # what plots, seeds and modules are shown as
_EFFECTS = frozenset(("print", "exec", "setattr", "delattr", "exit", "quit", "input", "next", "open", "__import__"))
_SHOWN = frozenset(dir(builtins)) - _EFFECTS
_VALUES = frozenset("head tail describe sample value_counts item tolist size mean sum std min max argmax numel keys items".split())
_TQDM = {"tqdm_notebook": "tqdm", "tnrange": "trange"}


@dataclass(frozen=True)
class Cell:
    """A code cell as Python: its text, its tree, whether the notebook has run it, and the text that it then showed as its value."""

    text: str
    tree: ast.Module
    was_run: bool
    value: str | None


@dataclass(eq=False)
class Figures:
    """The files that figures are saved to; where one place draws several, they are counted while the script runs."""

    counted: bool = False
    count: int = 0
    needs: set[str] = field(default_factory=set)

    def file(self) -> str:
        """The next figure's file, as Python."""
        if self.counted:
            return 'f"figure_{next(figure_numbers)}.png"'
        self.count += 1
        return f'"figure_{self.count}.png"'


class Displays:
    """The edits of one cell."""

    def __init__(self, cell: Cell, names: Names, figures: Figures) -> None:
        self.cell, self.names, self.figures = cell, names, figures
        self._remarks: list[Remark] = []
        self._lines = split_lines(cell.text)
        self._edits: list[Edit] = []

    def result(self, remarks: list[Remark]) -> tuple[str, list[Remark]]:
        """The cell as a script has it, with the remarks about its lines."""
        self._block(self.cell.tree.body)
        last = self.cell.tree.body[-1] if self.cell.tree.body else None
        if isinstance(last, ast.Expr) and not self._is_edited(last):
            self._value(last)
        self._imports()
        end = len(self.cell.text.rstrip())
        self._edits.append((end, end, "".join(f"\n{line}" for line in self._at_the_end())))
        return edited(self.cell.text, self._edits, [*remarks, *self._remarks])

    def _at_the_end(self) -> list[str]:
        """What takes the place of the figures that the notebook shows, and closes, when a cell has run."""
        drawn = saved = False
        for statement in self.cell.tree.body:
            drawn, saved = drawn or self.names.draws_in(statement), saved and not self.names.draws_in(statement)
            saved = saved or self.names.saves_in(statement)
            drawn = drawn and not self.names.shows_in(statement)
        last = self.cell.tree.body[-1] if self.cell.tree.body else None
        if not drawn or (isinstance(last, ast.Expr) and self.names.is_figure(last.value)):
            return []
        plt = self.names.pyplot()
        return [*([] if saved else [f"{plt}.savefig({self.figures.file()})"]), f"{plt}.close()"]

    # --- statements

    def _block(self, body: list[ast.stmt]) -> None:
        for at, statement in enumerate(body):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._call(statement, statement.value, body, at)
            for name in (*_BLOCKS, "handlers", "cases"):
                inner = getattr(statement, name, [])
                for part in inner if name in ("handlers", "cases") else ():
                    self._block(part.body)
                if name in _BLOCKS:
                    self._block(inner)

    def _call(self, statement: ast.Expr, call: ast.Call, body: list[ast.stmt], at: int) -> None:
        """A call that shows something."""
        path, plt = self.names.path(call.func), self.names.pyplot()
        if path == f"{PYPLOT}.show":
            saved = at > 0 and any(isinstance(n, ast.Attribute) and n.attr == "savefig" for n in ast.walk(body[at - 1]))
            plt = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else plt
            self._statement(statement, [*([] if saved else [f"{plt}.savefig({self.figures.file()})"]), f"{plt}.close()"], body)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "show" and self.names.is_figure(call.func.value):
            self._statement(statement, self._figure(ast.unparse(call.func.value)), body)
        elif path == "IPython.display.clear_output":
            self._statement(statement, [], body)
        elif path == "IPython.display.display":
            self._statement(statement, [line for argument in call.args for line in self._displayed(argument)], body)
        elif path.startswith("IPython.display.") and path.rpartition(".")[2] in _RICH:
            self._left_out(statement)
            self._statement(statement, [], body)

    def _displayed(self, argument: ast.expr) -> list[str]:
        """What takes the place of `display(argument)`."""
        plt = self.names.pyplot()
        if isinstance(argument, ast.Call) and self.names.path(argument.func).rpartition(".")[2] in _RICH:
            self._left_out(argument)
            return []
        if isinstance(argument, ast.Call) and self.names.path(argument.func) == f"{PYPLOT}.gcf":
            return [f"{plt}.savefig({self.figures.file()})", f"{plt}.close()"]
        if isinstance(argument, ast.Name) and self.names.is_figure(argument):
            return self._figure(argument.id)
        return [f"print({ast.get_source_segment(self.cell.text, argument)})"]

    def _figure(self, name: str) -> list[str]:
        """What takes the place of a figure that is shown."""
        return [f"{name}.savefig({self.figures.file()})", f"{self.names.pyplot()}.close({name})"]

    def _left_out(self, node: ast.AST) -> None:
        said = f"`{ast.unparse(node)}` shows something in the notebook, and is left out"
        self._remarks.append(Remark(getattr(node, "lineno", 1) - 1, "NOTE", said))

    def _value(self, last: ast.Expr) -> None:
        """The expression at a cell's end, which the notebook shows: it is printed where it is there for its value."""
        start, end = self._span(last)
        if isinstance(last.value, ast.Name) and self.names.is_figure(last.value):
            self._statement(last, self._figure(last.value.id), self.cell.tree.body)
        elif self._is_shown(last.value) and not self.cell.text[end:].lstrip(" \t").startswith(";"):
            written = self.cell.text[start:end]
            inner = written[1:-1] if isinstance(last.value, ast.Tuple) and written.startswith("(") else written
            self._edits.append((start, end, f"print({inner})"))

    def _is_shown(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Constant):
            return not isinstance(value.value, (str, type(None), type(...)))
        if isinstance(value, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.ListComp, ast.Lambda)):
            return False
        if not isinstance(value, ast.Call):
            return True
        if self.names.draws_in(value):
            return False
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        if name in self.names.functions:
            returned = [n for n in ast.walk(self.names.functions[name]) if isinstance(n, ast.Return)]
            return any(n.value is not None and not (isinstance(n.value, ast.Constant) and n.value.value is None) for n in returned)
        if name and not self.names.is_bound(name):
            return name in _SHOWN
        if self.cell.value is None:
            return not self.cell.was_run and isinstance(value.func, ast.Attribute) and value.func.attr in _VALUES
        return not _NOISE.match(self.cell.value)

    # --- imports

    def _imports(self) -> None:
        """Imports of what works in notebooks only."""
        for node in ast.walk(self.cell.tree):
            if isinstance(node, ast.ImportFrom) and node.module == "tqdm.notebook":
                self._replaced(node, re.sub(r"\btqdm\.notebook\b", "tqdm", self._written(node), count=1))
            elif isinstance(node, ast.ImportFrom) and node.module == "tqdm":
                for alias in node.names:
                    if alias.name in _TQDM:
                        bound, name = alias.asname or alias.name, _TQDM[alias.name]
                        self._replaced(alias, name if bound == name else f"{name} as {bound}")
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "tqdm.notebook":
                        self._replaced(alias, f"tqdm as {alias.asname}" if alias.asname else "tqdm")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self.names.imported.get(node.value.id) == "tqdm":
                if node.attr in _TQDM:
                    self._replaced(node, f"{node.value.id}.{_TQDM[node.attr]}")
                elif node.attr == "notebook":
                    self._replaced(node, node.value.id)

    # --- places in the text

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node stands in the cell's text."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _offset(self, line: int, column: int) -> int:
        return sum(map(len, self._lines[: line - 1])) + len(self._lines[line - 1].encode()[:column].decode())

    def _written(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.cell.text[start:end]

    def _replaced(self, node: ast.AST, text: str) -> None:
        self._edits.append((*self._span(node), text))

    def _is_edited(self, node: ast.AST) -> bool:
        start, end = self._span(node)
        return any(start <= s < end for s, _, _ in self._edits)

    def _statement(self, statement: ast.stmt, new: list[str], body: list[ast.stmt]) -> None:
        """Put statements in the place of one."""
        start, end = self._span(statement)
        line = self._lines[statement.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        alone = not self.cell.text[:start].rpartition("\n")[2].strip() and not re.match(r"[ \t]*;", self.cell.text[end:])
        if not new and (len(body) > 1 or statement.col_offset == 0) and alone:
            rest = re.match(r"[ \t]*(#[^\n]*)?\n?", self.cell.text[end:])
            assert rest is not None
            self._edits.append((start - len(indent), end + rest.end(), ""))
            return
        self._edits.append((start, end, (f"\n{indent}" if alone else "; ").join(new or ["pass"])))


def repeated(trees: list[ast.Module], names: Names) -> bool:
    """Whether a figure is shown where the script may come by more than once."""

    def shows(nodes: list[ast.stmt]) -> bool:
        wanted = (f"{PYPLOT}.show", "IPython.display.display")
        return any(isinstance(n, ast.Call) and (names.path(n.func) in wanted) for s in nodes for n in ast.walk(s))

    inside = (ast.FunctionDef, ast.For, ast.While)
    return any(isinstance(n, inside) and shows(n.body) for tree in trees for n in ast.walk(tree))


def only_here(tree: ast.Module, names: Names) -> Iterator[tuple[ast.stmt, ast.alias, str]]:
    """The imports that work in notebooks only: the statement, what it imports, and the name that this binds."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                module = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
                if module.startswith(("IPython.", "google.colab", "ipywidgets")) or module == "IPython":
                    yield node, alias, (alias.asname or alias.name).partition(".")[0]
