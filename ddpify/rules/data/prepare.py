"""Prepare files once per node.

What it does: a statement that looks whether a file is there, and builds, fetches or unpacks it where it is not, goes under
    `with first_on_node():`. A download or an unpacking that is always made goes under `if local_rank == 0:`, with a barrier after it.
Why: all ranks would write the same files at once, and read them half-written.
Safety: safe where every rank comes to the statement and nothing in it trains or waits for other ranks; MANUAL where something is fetched
    in another place.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpify.edits import InsertAfter, Under
from ddpify.facts import disk
from ddpify.facts.disk import Paths, Touch
from ddpify.facts.model import Call, Class, Func, Lit, Obj
from ddpify.records import dataclass, field
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.data.download import downloads
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.process.setup import works_at_import

CODE = "DDP305"
TITLE = "prepare files once per node"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a file that is looked for and read",
        'if os.path.exists("start.pt"):\n'
        '    start = torch.load("start.pt", map_location="cpu")\n',
        frame="start",
    ),
    Example(
        "a folder that may be there",
        'if not os.path.isdir("data"):\n'
        '    os.makedirs("data", exist_ok=True)\n',
        frame="start",
    ),
    Example(
        "a preparing function that is not called",
        "def prepare():\n"
        '    if not os.path.exists("features.pt"):\n'
        '        torch.save(torch.ones(3), "features.pt")\n',
        frame="start",
    ),
    Example(
        "a cache",
        'if os.path.exists("features.pt"):\n'
        '    features = torch.load("features.pt", map_location="cpu")\n'
        "else:\n"
        "    features = torch.ones(3)\n"
        '    torch.save(features, "features.pt")\n',
        "with first_on_node():\n"
        '    if os.path.exists("features.pt"):\n'
        '        features = torch.load("features.pt", map_location="cpu")\n'
        "    else:\n"
        "        features = torch.ones(3)\n"
        '        torch.save(features, "features.pt")\n',
        frame="start",
    ),
    Example(
        "an archive that is always unpacked",
        'os.system("unzip -q data.zip")\n',
        "if local_rank == 0:\n"
        '    os.system("unzip -q data.zip")\n'
        "dist.barrier()\n",
        frame="start",
    ),
)  # fmt: skip
_FETCHES = frozenset(
    """
        urllib.request.urlretrieve wget.download gdown.download gdown.download_folder gdown.cached_download shutil.unpack_archive
        torch.hub.download_url_to_file
    """.split()
)
_CHECKING = frozenset(  # they look for themselves what is there
    (
        "torchvision.datasets.utils.download_url",
        "torchvision.datasets.utils.download_and_extract_archive",
        "torchvision.datasets.utils.download_file_from_google_drive",
        "nltk.download",
    )
)
_MISSING = frozenset(("FileNotFoundError", "OSError", "IOError"))
_SHELLS = ("os.system", "os.popen", "subprocess.")
_TOOLS = re.compile(r"\b(wget|curl|unzip|tar|gdown|gunzip|7z|git|kaggle|aria2c|gsutil|aws)\b")
_TOGETHER = frozenset(("backward", "step", "zero_grad", "all_reduce", "barrier", "broadcast", "all_gather", "broadcast_object_list"))


@dataclass
class Preparation:
    """The statements that prepare files, and how one rank of each node is let do it first.

    `once_per_node` go under `first_on_node`, `alone` under `local_rank == 0`; `fetched` are the calls that fetch or unpack in another
    place, and `waiting` the statements that the script has under such guards already.
    """

    context: Context
    once_per_node: list[ast.stmt] = field(default_factory=list)
    alone: list[ast.stmt] = field(default_factory=list)
    waiting: list[ast.stmt] = field(default_factory=list)
    fetched: list[Call] = field(default_factory=list)

    def covers(self, call: Call) -> bool:
        """Whether a call is evaluated under a statement that prepares."""
        within = {*self.once_per_node, *self.alone, *self.waiting}
        tree = self.context.tree
        return any(
            n in tree.parent and (tree.statement(n) in within or any(up in within for up in tree.ancestors(n)))
            for n in (*call.stack, call.node)
        )

    def writes(self, statement: ast.stmt) -> bool:
        """Whether a statement writes files, and does so only where files are prepared."""
        run, effects = self.context.facts.after, guards_of(self.context).effects
        calls = [c for n in ast.walk(statement) if isinstance(n, ast.Call) for c in run.calls(n)]
        return any("file" in effects.kinds(c.node) for c in calls) and all(self.covers(c) for c in calls)


def preparation(context: Context) -> Preparation:
    """The statements of the edited files that prepare others."""
    return context.once(_find_preparation)


def _find_preparation(context: Context) -> Preparation:
    out = Preparation(context)
    run, tree = context.facts.after, context.tree
    out.waiting = [n for n in tree.nodes() if isinstance(n, ast.With) and any(_lets_first(context, i.context_expr) for i in n.items)]
    touched = disk.touched(run)
    paths = Paths(context.facts)
    for node in tree.nodes():  # outermost first
        if isinstance(node, ast.stmt) and node in run.trace.visited and not _inside(context, node, [*out.waiting, *out.once_per_node]):
            if not _looks_first(context, node):
                continue
            calls = calls_under(context, node)
            if _worth_it(context, paths, touched, node, calls) and _free(context, node, calls):
                out.once_per_node.append(node)
    out.once_per_node = [s for s in out.once_per_node if not _within_another(context, s, out.once_per_node)]
    for call in run.trace.calls:
        if not _fetches(call) or out.covers(call) or not context.facts.is_edited(call.node) or guards_of(context).guarded(call.node):
            continue
        statement = _acting(context, call)
        if statement is not None and not guards_of(context).guarded(statement):
            if statement not in out.alone:
                out.alone.append(statement)
        elif call.func.paths() & _CHECKING and _free(context, tree.statement(call.node), calls_under(context, tree.statement(call.node))):
            out.once_per_node.append(tree.statement(call.node))
        else:
            out.fetched.append(call)
    return out


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Put what prepares files under its guard."""
    tree, names = context.tree, context.names
    done = preparation(context)
    for statement in done.once_per_node:
        yield Change(
            CODE,
            "one rank of each node prepares the files, the others then find them",
            tree.shown,
            statement,
            (Under(statement, f"with {names['first_on_node']}()"),),
            needs=("first_on_node",),
        )
    for statement in done.alone:
        yield Change(
            CODE,
            "one rank of each node prepares the files, the others wait for it",
            tree.shown,
            statement,
            (Under(statement, f"if {names['local_rank']} == 0"), InsertAfter(statement, f"{names['dist']}.barrier()")),
        )
    seen: set[ast.AST] = set()
    for call in done.fetched:
        if call.node not in seen:
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                "every rank would fetch or unpack these files at once",
                f"move it into a statement of its own under `with {names['first_on_node']}():`, after a look whether it is there",
            )


def _lets_first(context: Context, node: ast.expr) -> bool:
    """Whether a context manager lets one rank go ahead: it yields between barriers."""
    if not isinstance(node, ast.Call):
        return False
    run = context.facts.after
    for obj in run.value(node.func).objs:
        if isinstance(obj, Func):
            inner = list(ast.walk(obj.node))
            waits = any(isinstance(n, ast.Call) and "torch.distributed.barrier" in run.value(n.func).paths() for n in inner)
            if waits and any(isinstance(n, ast.Yield) for n in inner):
                return True
    return False


def _inside(context: Context, statement: ast.stmt, others: list[ast.stmt]) -> bool:
    return statement in others or any(up in others for up in context.tree.ancestors(statement))


def _within_another(context: Context, statement: ast.stmt, others: list[ast.stmt]) -> bool:
    """Whether every way to a statement leads through another one that prepares."""
    stacks = [c.stack for n in ast.walk(statement) if isinstance(n, ast.Call) for c in context.facts.after.calls(n)]
    inside = {n for other in others if other is not statement for n in ast.walk(other)}
    return bool(stacks) and all(any(n in inside for n in stack) for stack in stacks)


def calls_under(context: Context, statement: ast.stmt) -> list[Call]:
    """The calls that run while a statement does."""
    run, under = context.facts.after, guards_of(context).effects.under
    calls = [c for n in ast.walk(statement) if isinstance(n, ast.Call) for c in (*run.calls(n), *under.get(n, ()))]
    return sorted({id(c): c for c in calls}.values(), key=lambda c: c.order)


def _looks_first(context: Context, node: ast.stmt) -> bool:
    """Whether a statement does something only where a file is not there: by a test, by trying, or by a function that returns early."""
    if isinstance(node, ast.If):
        return _tests_existence(context, node.test)
    if isinstance(node, ast.Try):
        return any(h.type is not None and _catches(context, h.type) for h in node.handlers)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
        called = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        functions = [f for n in called for o in context.facts.after.value(n.func).objs if (f := _body_of(o)) is not None]
        return any(_returns_early(context, s) or _builds(context, f, s) for f in functions for s in f.body)
    return False


def _catches(context: Context, kind: ast.expr) -> bool:
    """Whether an exception handler is for a file that is not there."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(context.facts.after.value(k).paths() & _MISSING for k in kinds)


def _body_of(obj: Obj) -> ast.FunctionDef | None:
    """What runs when a function or a class is called."""
    if isinstance(obj, Class):
        return next((f for f in obj.node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    return obj.node if isinstance(obj, Func) and isinstance(obj.node, ast.FunctionDef) else None


def _builds(context: Context, function: ast.FunctionDef, statement: ast.stmt) -> bool:
    """Whether a statement of a function that is not edited builds what is not there."""
    if context.facts.is_edited(function) or not isinstance(statement, ast.If):
        return False
    return statement in context.facts.after.trace.visited and _tests_existence(context, statement.test)


def _returns_early(context: Context, statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], ast.Return)
        and statement in context.facts.after.trace.visited
        and _tests_existence(context, statement.test)
    )


def _tests_existence(context: Context, test: ast.expr) -> bool:
    """Whether a condition asks if a file is there."""
    run = context.facts.after
    return any(t.kind == "look" for n in ast.walk(test) if isinstance(n, ast.Call) for c in run.calls(n) for t in disk.touches(c))


def _worth_it(context: Context, paths: Paths, touched: list[Touch], node: ast.stmt, calls: list[Call]) -> bool:
    """Whether files are made here that all ranks then read: fetched ones, or such as are read in an other branch or later."""
    if any(_fetches(c) for c in calls):
        return True
    guards = guards_of(context)
    if guards.only_outputs(node) or guards.guarded(node):
        return False
    made = [t for c in calls if guards.effects.at.get(c.node) == "file" for t in disk.touches(c) if t.kind == "write"]
    inside = set(ast.walk(node))
    reads = [t for t in touched if t.kind == "read" and (t.call.node in inside or any(n in inside for n in t.call.stack))]
    later = [t for t in touched if t.kind == "read" and t not in reads]
    return any(disk.may_be_one(paths.of(w), paths.of(r)) for w in made for r in reads) or any(
        w.call.order < r.call.order and disk.may_be_one(paths.of(w), paths.of(r)) for w in made for r in later
    )


def _free(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether a statement can be prepared in turns, and no library downloads in it, which is the concern of DDP302."""
    of_library = (call for call in calls if not any(isinstance(o, (Class, Func)) for o in call.func.objs))
    return free(context, node, calls) and not any(downloads(call.node) for call in of_library)


def free(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether every rank comes to a statement, and nothing in it trains or waits for other ranks."""
    facts, guards = context.facts, guards_of(context)
    if guards.guarded(node) or _before_the_group(context, node, calls) or any(_led_by_rank_zero(context, node, c) for c in calls):
        return False
    for call in calls:
        if call.node in context.training or call.method in _TOGETHER or call.func.paths() & {"torch.nn.parallel.DistributedDataParallel"}:
            return False
        if facts.wrapped(call.func) is not False or facts.model_of(call.func) is not None:
            return False
        if any(facts.after.is_loader(o) for loop in call.loops for o in loop.over.objs):
            return False
        if any(o.kind in ("batch", "decided", "rank", "time") for test, value in call.tests for o in value.origins):
            return False
    return getattr(context.tree.function(node), "name", "") not in ("__getitem__", "__iter__", "collate_fn")


def _led_by_rank_zero(context: Context, node: ast.stmt, call: Call) -> bool:
    """Whether rank 0 alone comes to a statement on the way to one of its calls."""
    guards, tree = guards_of(context), context.tree
    inside = set(ast.walk(node))
    above = [n for n in call.stack if n in tree.parent and n not in inside]
    return any(guards.guarded(n) or any(isinstance(s, ast.stmt) and guards.only_outputs(s) for s in tree.path(n)) for n in above)


def _before_the_group(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether a statement runs at import while the process group is joined in the main block."""
    main = context.main_block
    if main is None or works_at_import(context):
        return False
    inside = set(ast.walk(main))
    return any((*c.stack, c.node)[0] not in inside for c in calls) and node not in inside


def _fetches(call: Call) -> bool:
    """Whether a call fetches files from elsewhere or unpacks them."""
    paths = call.func.paths()
    if paths & (_FETCHES | _CHECKING) or (call.method == "extractall" and isinstance(call.node.func, ast.Attribute)):
        return True
    return any(p.startswith(_SHELLS) for p in paths) and any(_TOOLS.search(text) for text in _command_texts(call))


def _command_texts(call: Call) -> Iterator[str]:
    """The texts of a command."""
    for node in ast.walk(call.node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for value in call.args:
        yield from (o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, str))


def _acting(context: Context, call: Call) -> ast.stmt | None:
    """The statement that does nothing but fetch or unpack, where all ranks come by."""
    tree = context.tree
    statement = tree.statement(call.node)
    if not isinstance(statement, ast.Expr) or call.func.paths() & _CHECKING:
        return None
    up = tree.parent[statement]
    if isinstance(up, ast.With) and all(isinstance(s, ast.Expr) for s in up.body) and up.items:
        statement = up
    return statement if _free(context, statement, calls_under(context, statement)) else None
