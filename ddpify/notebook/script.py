"""From the bytes of a notebook to the text of a script."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ddpify.errors import DdpifyError, Where
from ddpify.notebook.display import Cell, Displays, Figures, only_here, repeated
from ddpify.notebook.lines import translated
from ddpify.notebook.names import Names
from ddpify.notebook.remark import Edit, Remark, edited
from ddpify.records import replace
from ddpify.source import Source, split_lines

_FORMAT = 4
_LONGEST = 3  # lines of a text that become a comment
_WIDEST = 120
_MARKUP = re.compile(r"[<$|]|!\[|\]\(|^\s*[-*+] |^```")
_COUNTER = "figure_numbers"
_MODULES = {_COUNTER: "import itertools", "os": "import os", "plt": "import matplotlib.pyplot as plt"}
"""The imports of what the lines that are written here may need."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def script(data: bytes, shown: str, folder: Path) -> Source:
    """The script that a notebook's code cells make, one after another. Raises DdpifyError for what is no notebook of Python."""
    found = _notebook(data, shown)
    code = [(number, cell) for number, cell in enumerate(found.cells, 1) if cell.cell_type == "code" and cell.source.strip()]
    if not code:
        raise DdpifyError("this notebook has no code", "name a notebook whose cells train a model", Where(shown))
    bound = _bound([cell.source for _, cell in code])
    cells: dict[int, Cell] = {}
    remarks: dict[int, list[Remark]] = {}
    for number, cell in code:
        lines, said = translated(cell.source, bound.__contains__, lambda name, text: _holds(folder / name, text))
        text = "".join(f"{line}\n" for _, line in lines)
        tree = _parsed(text, [n for n, _ in lines], cell.source, f"{shown}, cell {number}")
        cells[number] = Cell(text, tree, cell.get("execution_count") is not None, _value(cell))
        remarks[number] = [replace(r, line=next((i for i, (n, _) in enumerate(lines) if n >= r.line), len(lines))) for r in said]
    for number, sentence in _order(code):
        remarks[number].insert(0, sentence)
    blocks = _blocks(found.cells, cells, remarks)
    return _source(blocks, shown)


# --- reading ------------------------------------------------------------------------------------------------------------


def _notebook(data: bytes, shown: str) -> Any:
    """The notebook as nbformat reads it."""
    try:
        import nbformat
    except ImportError as error:
        raise DdpifyError("to read a notebook, ddpify needs nbformat", "pip install nbformat", Where(shown)) from error
    again = "save the notebook once more in Jupyter"
    try:
        text = data.decode("utf-8-sig")
        known = json.loads(text)
        version = known["nbformat"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DdpifyError("this is not a notebook: its text is not the JSON that Jupyter writes", again, Where(shown)) from error
    if version != _FORMAT:
        raise DdpifyError(f"this notebook is of format {version}, and only format 4 is read", again, Where(shown))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, valid = nbformat.validator.normalize(nbformat.from_dict(known))
            nbformat.validate(valid)
            found = nbformat.reads(json.dumps(valid), nbformat.NO_CONVERT)  # which also joins the lines of cells
    except Exception as error:  # of nbformat's own and of the libraries that it checks with
        raise DdpifyError(f"this is not a valid notebook: {str(error).splitlines()[0]}", again, Where(shown)) from error
    metadata = found.metadata
    language = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name") or "python"
    if language.lower() not in ("python", "ipython", "python3"):
        raise DdpifyError(f"the language of this notebook is {language}", "name a notebook whose language is Python", Where(shown))
    return found


def _holds(file: Path, text: str) -> bool:
    """Whether a file is there with this text."""
    try:
        return file.read_text(encoding="utf-8").strip() == text.strip()
    except (OSError, ValueError):
        return False


def _bound(texts: list[str]) -> set[str]:
    """The names that cells assign or import, as far as their text shows it, since it may be no Python yet."""
    return set(
        re.findall(r"^\s*(?:import\s+|from\s+\S+\s+import\s+|for\s+|def\s+)?([A-Za-z_]\w*)\s*(?:=|$|\bin\b|\()", "\n".join(texts), re.M)
    )


def _parsed(text: str, numbers: list[int], cell: str, shown: str) -> ast.Module:
    """A cell's tree. Raises DdpifyError with the place in the cell."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "cell", "exec", dont_inherit=True)  # which refuses more than the parser: an await outside a function
            return ast.parse(text)
    except SyntaxError as error:
        at = numbers[min(error.lineno or 1, len(numbers)) - 1] if numbers else 0
        line = cell.splitlines()[at] if at < len(cell.splitlines()) else ""
        hint = "mend the cell, or make it a cell of text"
        raise DdpifyError(error.msg, hint, Where(shown, at + 1, max(error.offset or 1, 1), line)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise DdpifyError("this cell cannot be parsed", "make it a cell of text", Where(shown)) from error


def _value(cell: Any) -> str | None:
    """What the notebook shows as the value of a cell, as text."""
    shown = [output.data.get("text/plain", "") for output in cell.get("outputs", ()) if output.output_type == "execute_result"]
    return "".join(shown[-1]) if shown else None


def _order(code: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Remark]]:
    """The cells that were run before one that stands above them, and those that were not run where others were."""
    runs = [(number, cell.get("execution_count")) for number, cell in code]
    last, last_number = 0, 0
    for number, count in runs:
        if count is None:
            if any(other is not None for _, other in runs):
                yield number, Remark(0, "NOTE", "the notebook was saved without a run of this cell; the script runs it")
        elif count < last:
            message = (
                f"the notebook ran this cell before cell {last_number}, which stands above it; the script runs the cells in their order"
            )
            yield number, Remark(0, "REVIEW", message, "run all cells from the first to the last, and compare the results")
        else:
            last, last_number = count, number


# --- writing ------------------------------------------------------------------------------------------------------------

Block = tuple[list[str], str, list[Remark]]
"""The comment above a cell, its text, and what is said of its lines."""


def _blocks(every: Sequence[Any], cells: dict[int, Cell], remarks: dict[int, list[Remark]]) -> list[Block]:
    """The cells as a script has them."""
    trees = [cell.tree for cell in cells.values()]
    names = Names(trees)
    figures = Figures(counted=repeated(trees, names))
    first: dict[int, tuple[list[str], str, list[Remark]]] = {}
    comment: list[str] = []
    for number, cell in enumerate(every, 1):
        if cell.cell_type == "markdown":
            comment = _comment(cell.source)
        if number in cells:
            text, said = Displays(cells[number], names, figures).result(remarks[number])
            said = [replace(r, message=f"cell {number}: {r.message}") for r in said]
            first[number] = (comment if text else [], text, said)
            comment = [] if text else comment
    used = {n.id for _, text, _ in first.values() for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return [(comment, *_pruned(text, said, used, names, number)) for number, (comment, text, said) in first.items()]


def _pruned(text: str, said: list[Remark], used: set[str], names: Names, number: int) -> tuple[str, list[Remark]]:
    """A cell without the imports that only a notebook needs; what it still takes from them is said."""
    edits: list[Edit] = []
    tree, lines = ast.parse(text), split_lines(text)
    kept: dict[ast.stmt, list[str]] = {}
    for statement, alias, name in only_here(tree, names):
        kept.setdefault(statement, []).extend([ast.unparse(alias)] if name in used else [])
        if name in used:
            message = f"cell {number}: {alias.name} is for notebooks, and its module may be missing where the script runs"
            said = [*said, Remark(statement.lineno - 1, "MANUAL", message, f"take out the import of {alias.name}, and what uses it")]
    for statement, aliases in kept.items():
        start = sum(map(len, lines[: statement.lineno - 1])) + statement.col_offset
        end = sum(map(len, lines[: (statement.end_lineno or 1) - 1])) + (statement.end_col_offset or 0)
        if isinstance(statement, ast.ImportFrom) and aliases:
            edits.append((start, end, f"from {statement.module} import {', '.join(aliases)}"))
        elif not aliases:
            edits.append(
                (start, end + text.startswith("\n", end) if not statement.col_offset else end, "pass" * bool(statement.col_offset))
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and names.path(node) == "IPython.get_ipython":
            message = f"cell {number}: there is no get_ipython() in a script, which ends with an error here"
            said = [*said, Remark(node.lineno - 1, "MANUAL", message, "take the line out, or write what it does in Python")]
    return edited(text, edits, said)


def _comment(text: str) -> list[str]:
    """A cell of text as a comment, where it is short and plain; of a longer one its heading."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > _LONGEST or any(_MARKUP.search(line) for line in lines):
        lines = [line for line in lines if line.startswith("#")][:1]
    plain = [re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}", "", line.lstrip("#").strip()) for line in lines]
    return [f"# {line}" for line in plain if line and len(line) <= _WIDEST and not _MARKUP.search(line)]


def _source(blocks: list[Block], shown: str) -> Source:
    """The script of the cells' texts."""
    blocks = _with_imports(blocks)
    lines: list[str] = []
    remarks: list[Remark] = []
    waiting: list[Remark] = []  # what is said of cells of which nothing is left stands at the next one
    defined = False
    for comment, text, said in blocks:
        body = ast.parse(text).body
        if not body and not text:
            waiting += said
            continue
        defines = bool(body) and isinstance(body[0], _DEFINITIONS)
        lines += ([""] * (2 if defines or defined else 1) if lines else []) + comment
        remarks += [*(replace(r, line=len(lines) + 1) for r in waiting), *(replace(r, line=len(lines) + 1 + r.line) for r in said)]
        lines += text.split("\n")
        waiting, defined = [], bool(body) and isinstance(body[-1], _DEFINITIONS)
    text = "\n".join(lines) + "\n"
    _parsed(text, list(range(len(lines))), text, f"{shown}, its cells one below another")
    remarks += [*(replace(r, line=max(1, len(lines))) for r in waiting), *_unbound(text)]
    return Source(text, original=text, notebook=shown, remarks=tuple(sorted(remarks, key=lambda remark: remark.line)))


def _with_imports(blocks: list[Block]) -> list[Block]:
    """The cells with the imports, and the counter of figures, that what was written into them needs."""
    first = next((i for i, (_, text, _) in enumerate(blocks) if text), None)
    if first is None:
        return blocks
    nodes = [node for _, text, _ in blocks for statement in ast.parse(text).body for node in ast.walk(statement)]
    missing = _unimported(nodes)
    count: list[Block] = [([], f"{_COUNTER} = itertools.count(1)", [])] if _COUNTER in missing else []
    needed = sorted(_MODULES[name] for name in missing)
    comment, text, said = blocks[first]
    if count and _COUNTER in _unimported(list(ast.walk(ast.parse(text)))):  # in the first cell: the counter stands above it
        return [*blocks[:first], ([], "\n".join(needed), []), *count, *blocks[first:]]
    return [*blocks[:first], (comment, *_below_the_future(text, needed, said)), *count, *blocks[first + 1 :]]


def _below_the_future(text: str, needed: list[str], said: list[Remark]) -> tuple[str, list[Remark]]:
    """A cell with imports at its top, below those from __future__."""
    body, lines = ast.parse(text).body, text.split("\n")
    future = [s for s in body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    at = future[-1].end_lineno or 0 if future else 0
    others = [s for s in body if s not in future]
    apart = needed and others and not isinstance(others[0], (ast.Import, ast.ImportFrom))
    lines[at:at] = [*needed, ""] if apart else needed
    return "\n".join(lines), [replace(r, line=r.line + len(lines) - text.count("\n") - 1) if r.line >= at else r for r in said]


def _unimported(nodes: list[ast.AST]) -> set[str]:
    """The modules that are used before a cell imports them."""
    bound: set[str] = set()
    missing: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Name):
            missing |= {node.id} & _MODULES.keys() - bound
    return missing


def _unbound(text: str) -> Iterator[Remark]:
    """The names that no cell above their use binds: what they were is known to the notebook's kernel alone."""
    from ddpify.checks.binding import Binding

    tree = ast.parse(text)
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree)):
        return
    said: set[str] = set()
    for use in Binding(tree).uses:
        if use.how != "perhaps" and use.name not in said and use.name != "get_ipython":
            said.add(use.name)
            where = "no cell binds" if use.how == "never" else "no cell above binds"
            node = use.call or use.node
            yield Remark(
                getattr(node, "lineno", 1),
                "MANUAL",
                f"{where} {use.name}, and the script ends with an error here: the notebook had it from a cell that is no longer so",
                f"{use.name} = ...  # what the notebook had",
            )
