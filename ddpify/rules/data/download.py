"""Let one rank of each node download, the others wait.

What it does: a statement that makes a data set with `download=True`, or one of those that fetch what is missing unasked, goes under
    `with first_on_node():`, with the `with` around it, or the condition that asks whether the files are there.
Why: all ranks would write the same files at once, and read them half-written.
Safety: safe; the barrier is passed once by every rank.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpify.edits import Under
from ddpify.facts import disk, library
from ddpify.facts.barriers import one_rank_ahead
from ddpify.facts.disk import Paths, Touch
from ddpify.facts.model import Class, Func
from ddpify.facts.tree import Tree, arguments, walk
from ddpify.records import dataclass
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument
from ddpify.rules.data.turns import calls_under, free, in_turns, tests_existence

CODE = "DDP302"
TITLE = "download once per node"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "nothing to download",
        'digits = datasets.MNIST("data", train=True)\n',
        frame="start",
    ),
    Example(
        "a download that is switched off",
        'digits = datasets.MNIST("data", train=True, download=False)\n',
        frame="start",
    ),
    Example(
        "a function of a package whose data sets download",
        "def lines():\n"
        "    from torch_geometric.datasets.utils import read_lines\n"
        '    return read_lines("rows.txt")\n'
        "rows = lines()\n",
        frame="start",
    ),
    Example(
        "a download in a function that is not called",
        "def prepare():\n"
        '    return datasets.MNIST("data", download=True)\n',
        frame="start",
    ),
    Example(
        "a download",
        'digits = datasets.MNIST("data", train=True, download=True)\n',
        "with first_on_node():\n"
        '    digits = datasets.MNIST("data", train=True, download=True)\n',
        frame="start",
    ),
    Example(
        "a data set that downloads what is missing",
        "def prepare():\n"
        "    from torch_geometric.datasets import TUDataset\n"
        '    graphs = TUDataset("data", name="MUTAG")\n'
        "    return graphs\n"
        "graphs = prepare()\n",
        "def prepare():\n"
        "    from torch_geometric.datasets import TUDataset\n"
        "    with first_on_node():\n"
        '        graphs = TUDataset("data", name="MUTAG")\n'
        "    return graphs\n"
        "graphs = prepare()\n",
        frame="start",
    ),
)  # fmt: skip


_WHY = "one rank of each node downloads while the others wait; otherwise all would write the same files"
_SPLITS = re.compile(r"torchtext\.(legacy\.)?datasets\..*\.(splits|iters|download)")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.With)
_AT_ONCE = "every rank would download these files at once"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Guard downloads in the edited files, report them elsewhere."""
    done: set[ast.stmt] = set()
    for download in context.once(_unguarded):
        yield from _guard(context, download, done)


@dataclass(frozen=True)
class _Download:
    """A download that all ranks make at once: the statements that one rank can run first, in the entry or around it."""

    tree: Tree
    node: ast.Call
    callers: list[ast.stmt]
    turns: list[ast.stmt]


def _unguarded(context: Context) -> list[_Download]:
    loaders = (o.node for o in (*context.facts.loaders, *context.sharded_evaluation) if isinstance(o.node, ast.Call))
    given = (argument(node, 0, "dataset") for node in loaders)
    named = {n for dataset in given if dataset is not None and before_loader(context, dataset) for n in walk(dataset)}
    out: list[_Download] = []
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            if named.isdisjoint((node, *_leading(context, node))) and _is_unguarded(context, tree, node):
                callers = _callers(context, node) if tree.name != "__main__" else []
                own = [tree.statement(node)] if tree in context.tree.trees else []
                turns = dict.fromkeys(turn for s in callers or own for turn in _turns(context, s, node))
                out.append(_Download(tree, node, callers, list(turns)))
    return out


def statements(context: Context) -> list[ast.stmt]:
    """The statements that one rank of each node runs before the others, so that it downloads in them."""
    return [statement for download in context.once(_unguarded) for statement in download.turns if _goes_under(context, download, statement)]


def _goes_under(context: Context, download: _Download, statement: ast.stmt) -> bool:
    """Whether a statement can be run by one rank first: a condition if it is not the one that downloads."""
    own = download.tree.statement(download.node)
    return isinstance(statement, _SIMPLE) or (isinstance(statement, ast.If) and statement is not own)


def _turns(context: Context, statement: ast.stmt, node: ast.Call) -> list[ast.stmt]:
    """The statements that ranks run one after another for a download; a condition that asks for its files is answered in turn, too."""
    asked = _asked_before(context, statement, node)
    if asked is None:
        return in_turns(context, statement)
    return in_turns(context, asked) if free(context, asked, calls_under(context, asked)) else []


def _asked_before(context: Context, statement: ast.stmt, node: ast.Call) -> ast.If | None:
    """The outermost condition around a statement that asks whether files are there which a download brings."""
    paths = Paths(context.facts)
    brought = [paths.of(Touch("make", call, a)) for call in context.facts.after.calls(node) for a in arguments(node)]
    around = [up for up in context.tree.path(statement) if isinstance(up, ast.If) and up is not statement]
    asks = [up for up in around if any(disk.may_hold(b, paths.of(t)) for t in tests_existence(context, up.test) for b in brought)]
    return asks[-1] if asks else None


def _is_unguarded(context: Context, tree: Tree, node: ast.Call) -> bool:
    """Whether a call downloads, itself, on all ranks at once."""
    run = context.facts.after
    if not _by_itself(context, node) or tree.statement(node) not in run.trace.visited or one_rank_ahead(run, tree, node):
        return False
    return not any(one_rank_ahead(run, context.tree, n) for c in run.calls(node) for n in c.stack if context.facts.is_edited(n))


def _guard(context: Context, download: _Download, done: set[ast.stmt]) -> Iterator[Change | Finding]:
    """Let one rank go ahead in the statement of a download, or, in another module, in the statements that lead to it."""
    header = f"with {context.names['first_on_node']}()"
    if not download.turns:
        fix = "if dist.get_rank() != 0: dist.barrier()   # before, and on rank 0 the barrier after it"
        yield context.manual(CODE, download.node, _AT_ONCE, fix)
    for statement in download.turns:
        if statement in done:
            continue
        done.add(statement)
        if _goes_under(context, download, statement):
            shown = context.tree.shown if download.callers else download.tree.shown
            yield Change(CODE, _WHY, shown, statement, (Under(statement, header, inner=True),), needs=("first_on_node",))
        else:
            yield context.manual(CODE, download.node, _AT_ONCE, f"move it into a statement of its own under `{header}:`")


def _downloads(context: Context, node: ast.Call) -> bool:
    """Whether a call is asked to download, or makes a data set that always does."""
    paths = context.facts.after.value(node.func).paths()
    classes = (path for path in paths if path.rpartition(".")[2][:1].isupper())
    if any(map(_SPLITS.fullmatch, paths)) or any(path.startswith(library.DOWNLOADS) for path in classes):
        return True
    value = argument(node, None, "download")
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


def _by_itself(context: Context, node: ast.Call) -> bool:
    """Whether a call downloads, and is none of the project's own, of which a call inside it is the one to guard."""
    own = [o for o in context.facts.after.value(node.func).objs if isinstance(o, (Class, Func))]
    return _downloads(context, node) and all(_hands_on(context, o) for o in own)


def _hands_on(context: Context, own: Class | Func) -> bool:
    """Whether a class of the project is a data set of a library, and hands `download` on by its place, so that none stands in it."""
    if not isinstance(own, Class) or any(_downloads(context, n) for n in walk(own.node) if isinstance(n, ast.Call)):
        return False
    return any(".datasets." in base for base in context.facts.after.interpreter.library_bases(own))


def downloads(context: Context, node: ast.expr) -> bool:
    """Whether evaluating an expression may download."""
    return any(isinstance(n, ast.Call) and _downloads(context, n) for n in walk(node))


def before_loader(context: Context, dataset: ast.expr) -> bool:
    """Whether a data set that a loader is given is downloaded in a statement before the loader, which is made by the loader's rule."""
    leading = context.once(_led_by)
    calls = (n for n in walk(dataset) if isinstance(n, ast.Call))
    if not context.facts.is_edited(dataset) or not any(n in leading or _by_itself(context, n) for n in calls):
        return False
    statement = context.tree.statement(dataset)
    asked = any(_asked_before(context, statement, n) for n in walk(dataset) if isinstance(n, ast.Call) and _downloads(context, n))
    return not asked and in_turns(context, statement) == [statement]


def first_on_node(context: Context, dataset: ast.expr, line: str) -> tuple[str, list[str]]:
    """The statement before a loader that makes its data set, by one rank of each node first if it downloads; and what that needs."""
    if not before_loader(context, dataset):
        return line, []
    return f"with {context.names['first_on_node']}():\n    {line}", ["first_on_node"]


def _leading(context: Context, node: ast.AST) -> set[ast.AST]:
    """The calls in edited files that lead to a download in another module, the nearest on each way."""
    if context.facts.is_edited(node):
        return set()
    ways = ([n for n in call.stack if context.facts.is_edited(n)] for call in context.facts.after.calls(node))
    return {way[-1] for way in ways if way}


def _led_by(context: Context) -> set[ast.AST]:
    """The calls in edited files that lead to downloads in other modules."""
    elsewhere = (n for tree in context.facts.trees.values() if tree not in context.tree.trees for n in tree.of(ast.Call))
    return {up for n in elsewhere if _by_itself(context, n) for up in _leading(context, n)}


def _callers(context: Context, node: ast.AST) -> list[ast.stmt]:
    """The statements of the entry that lead to a download in another module and do nothing that all ranks must do together."""
    statements: dict[ast.stmt, None] = {}
    for call in context.facts.after.calls(node):
        calls = [n for n in call.stack if context.facts.is_edited(n)]
        if not calls or calls[-1] in context.training or _wraps(context, calls[-1]):
            return []
        statements[context.tree.statement(calls[-1])] = None
    run, tree = context.facts.after, context.tree
    free = (isinstance(s, (ast.Assign, ast.Expr, ast.AnnAssign)) and not one_rank_ahead(run, tree, s) for s in statements)
    return list(statements) if all(free) else []


def _wraps(context: Context, node: ast.AST) -> bool:
    """Whether a model is wrapped in what a call runs: that is a collective, which all ranks must reach."""
    functions = {context.facts.tree_of(s).function(s) for s in context.facts.wraps}
    for call in context.facts.after.trace.calls:
        if call.node is node or node in call.stack:
            for obj in call.func.objs:
                if isinstance(obj, Func) and obj.node in functions:
                    return True
                if isinstance(obj, Class) and functions & set(obj.node.body):
                    return True
    return False
