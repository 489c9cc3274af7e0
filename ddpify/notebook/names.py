"""What the names of a notebook stand for, as far as its imports and definitions say."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

PYPLOT = "matplotlib.pyplot"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SETTINGS = frozenset(
    """show savefig close rc rcdefaults ion ioff set_cmap switch_backend clf cla draw pause get_cmap get_fignums gcf set set_theme set_style
    set_context set_palette color_palette load_dataset despine reset_orig""".split()
)  # functions of pyplot and seaborn that draw nothing
_PLOTS = frozenset(("plot", "hist", "boxplot"))  # methods of tables that draw


class Names:
    """The imports and functions of all cells."""

    def __init__(self, trees: list[ast.Module]) -> None:
        self.imported: dict[str, str] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.bound: set[str] = set()
        self.figures: set[str] = set()
        for node in (node for tree in trees for node in ast.walk(tree)):
            self._add(node)
        self.draws, self.saves, self.shows = map(self._reaching, (self._is_drawing, self._is_saving, self._is_showing))

    def _add(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.imported[name] = alias.name if alias.asname else name
            case ast.ImportFrom(module=str(module), names=aliases):
                self.imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in aliases}
            case ast.FunctionDef(name=name):
                self.functions[name] = node
                self.bound.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                self.bound.add(name)
            case ast.Assign(targets=[target], value=ast.Call(func=func)) if self.path(func) in (f"{PYPLOT}.figure", f"{PYPLOT}.subplots"):
                first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                self.figures |= {first.id} if isinstance(first, ast.Name) else set()

    def is_bound(self, name: str) -> bool:
        """Whether some cell binds a name."""
        return name in self.bound or name in self.imported

    def path(self, node: ast.AST) -> str:
        """The dotted path that an expression names, by way of the imports; empty for any other."""
        if isinstance(node, ast.Name):
            if node.id in ("display", "get_ipython") and not self.is_bound(node.id):
                return f"IPython.display.{node.id}" if node.id == "display" else "IPython.get_ipython"
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def pyplot(self) -> str:
        """What the notebook calls matplotlib.pyplot."""
        return next((name for name, path in self.imported.items() if path == PYPLOT), "plt")

    def draws_in(self, node: ast.AST) -> bool:
        """Whether what runs here draws."""
        return any(self._is_drawing(call) or _name(call) in self.draws for call in running(node))

    def saves_in(self, node: ast.AST) -> bool:
        """Whether what runs here saves what was drawn."""
        return any(self._is_saving(call) or _name(call) in self.saves for call in running(node))

    def shows_in(self, node: ast.AST) -> bool:
        """Whether what runs here shows what was drawn, or closes it."""
        return any(self._is_showing(call) or _name(call) in self.shows for call in running(node))

    def is_figure(self, node: ast.AST) -> bool:
        """Whether an expression is a figure that a cell made."""
        return isinstance(node, ast.Name) and node.id in self.figures

    def _is_drawing(self, call: ast.Call) -> bool:
        module, _, name = self.path(call.func).rpartition(".")
        if module in (PYPLOT, "seaborn"):
            return name not in _SETTINGS
        function = call.func
        if not isinstance(function, ast.Attribute) or self.path(function) or "pandas" not in self.imported.values():
            return False
        return function.attr in _PLOTS or (isinstance(function.value, ast.Attribute) and function.value.attr == "plot")

    def _is_saving(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and call.func.attr == "savefig"

    def _is_showing(self, call: ast.Call) -> bool:
        own = isinstance(call.func, ast.Attribute) and call.func.attr == "show" and self.is_figure(call.func.value)
        return own or self.path(call.func) in (f"{PYPLOT}.show", f"{PYPLOT}.close")

    def _reaching(self, wanted: Callable[[ast.Call], bool]) -> frozenset[str]:
        """The functions whose calls do what is wanted, by way of others, too."""
        calls = {name: [c for s in function.body for c in running(s)] for name, function in self.functions.items()}
        found = {name for name in calls if any(wanted(call) for call in calls[name])}
        while more := {name for name in calls.keys() - found if any(_name(call) in found for call in calls[name])}:
            found |= more
        return frozenset(found)


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def running(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that are made where a statement runs, not where what it defines is called."""
    if isinstance(node, _DEFINITIONS):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from running(child)
