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
from collections.abc import Iterator

from ddpify.edits import InsertAfter, Under
from ddpify.facts import disk
from ddpify.facts.barriers import one_rank_ahead, waits
from ddpify.facts.disk import Paths, Touch
from ddpify.facts.effects import maker
from ddpify.facts.fetched import CHECKING, FETCHES, fetches
from ddpify.facts.library.effects import HANDLERS
from ddpify.facts.model import Call, Class, Func, New, Obj
from ddpify.facts.tree import inside, walk
from ddpify.records import dataclass, field
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.data.download import downloads, statements
from ddpify.rules.data.turns import calls_under, free, in_turns, tests_existence
from ddpify.rules.io.guarded import guards_of

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
_MISSING = frozenset(("FileNotFoundError", "OSError", "IOError"))


@dataclass
class Preparation:
    """The statements that prepare files, and how one rank of each node is let do it first.

    `once_per_node` go under `first_on_node`, `alone` under `local_rank == 0`; `fetched` are the calls that fetch or unpack in another
    place, `waiting` the statements that the script has under such guards already, and `downloading` those in which a library downloads, of
    which another rule takes care.
    """

    context: Context
    once_per_node: list[ast.stmt] = field(default_factory=list)
    alone: list[ast.stmt] = field(default_factory=list)
    waiting: list[ast.With] = field(default_factory=list)
    downloading: list[ast.stmt] = field(default_factory=list)
    fetched: list[Call] = field(default_factory=list)

    def covers(self, call: Call) -> bool:
        """Whether a call is evaluated under a statement that prepares."""
        return self._within(call, {*self.once_per_node, *self.alone, *self.waiting})

    def in_turns(self, call: Call) -> bool:
        """Whether ranks make a call one after another: then none may wait there for the others."""
        return self.covers(call) or self._within(call, set(self.downloading))

    def _within(self, call: Call, statements: set[ast.stmt]) -> bool:
        return any(up in statements for n in (*call.stack, call.node) for up in (n, *self.context.tree.ancestors(n)))

    def holds(self, statement: ast.stmt) -> bool:
        """Whether a statement is a part of one that prepares."""
        return not {*self.once_per_node, *self.alone, *self.waiting}.isdisjoint(self.context.tree.ancestors(statement))

    def writes(self, statement: ast.stmt) -> bool:
        """Whether a statement writes files, and does so only where files are prepared; a writer that rank 0 alone has prepares nothing."""
        run, effects = self.context.facts.after, guards_of(self.context).effects
        calls = [c for n in walk(statement) if isinstance(n, ast.Call) for c in run.calls(n)]
        called = (run.value(c.node.func.value) for c in calls if isinstance(c.node.func, ast.Attribute))
        makers = (m for value in called for o in value.objs if (m := maker(o)) is not None and effects.is_writer(m))
        if not all(map(self._made_here, makers)):
            return False
        return any("file" in effects.kinds(c.node) for c in calls) and all(self.covers(c) for c in calls)

    def _made_here(self, made: New) -> bool:
        """Whether an object is made under a statement that prepares."""
        return any(self.covers(c) for c in self.context.facts.after.calls(made.node) if made in c.result.objs)


def preparation(context: Context) -> Preparation:
    """The statements of the edited files that prepare others."""
    return context.once(_find_preparation)


def _find_preparation(context: Context) -> Preparation:
    waiting = [n for n in context.tree.of(ast.With) if any(waits(context.facts.after, i.context_expr) for i in n.items)]
    downloading = statements(context)
    out = Preparation(context, _looking_first(context, [*waiting, *downloading]), waiting=waiting, downloading=downloading)
    for call in context.facts.after.trace.calls:
        if fetches(call) and not out.in_turns(call) and not guards_of(context).guarded(call.node):
            if context.facts.is_edited(call.node):
                _place_fetch(context, call, out)
            else:
                _place_leading(context, call, out)
    return out


def _looking_first(context: Context, waiting: list[ast.stmt]) -> list[ast.stmt]:
    """The outermost statements that make files which they look for first, those under a guard left out."""
    paths, touched, preparing = Paths(context.facts), disk.touched(context.facts.after), list[ast.stmt]()
    for node in context.tree.nodes():  # outermost first
        if not isinstance(node, ast.stmt) or node not in context.facts.after.trace.visited or not _looks_first(context, node):
            continue
        if {node, *context.tree.ancestors(node)}.isdisjoint([*waiting, *preparing]):
            calls = calls_under(context, node)
            if _worth_it(context, paths, touched, node, calls) and _free(context, node, calls):
                preparing += in_turns(context, node)
    return [s for s in preparing if not _within_another(context, s, [*preparing, *waiting])]


def _place_fetch(context: Context, call: Call, out: Preparation) -> None:
    """Add a call that fetches or unpacks files to what prepares them: under which guard its statement goes, if it can."""
    statement, alone = context.tree.statement(call.node), _acting(context, call)
    within, also_in_turns = context.tree.function(statement), any(out.in_turns(c) for c in context.facts.after.calls(call.node))
    returned = isinstance(within, ast.FunctionDef) and _returns_early(context, within)
    if (
        also_in_turns
        or returned
        or any(isinstance(up, ast.If) and tests_existence(context, up.test) for up in context.tree.path(statement))
    ):
        out.fetched.append(call)  # a rank may ask when another has the files, and would not come to the barrier
    elif alone is not None and not guards_of(context).guarded(alone):
        out.alone += [alone] if alone not in out.alone else []
    elif call.func.paths() & CHECKING and _free(context, statement, calls_under(context, statement)):
        out.once_per_node.append(statement)
    else:
        out.fetched.append(call)


def _place_leading(context: Context, call: Call, out: Preparation) -> None:
    """Add the statement that leads to a call which fetches or unpacks files in another module, which is not edited."""
    tree, way = context.tree, [n for n in call.stack if context.facts.is_edited(n)]
    if not way or any(one_rank_ahead(context.facts.after, tree, n) or guards_of(context).guarded(n) for n in way):
        return
    statement = tree.statement(way[-1])
    simple = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr))
    if simple and _free(context, statement, calls_under(context, statement)):
        out.once_per_node += [s for s in in_turns(context, statement) if s not in out.once_per_node]
    elif call.func.paths() & FETCHES:
        out.fetched.append(call)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Put what prepares files under its guard."""
    shown, names, done = context.tree.shown, context.names, preparation(context)
    for statement in done.once_per_node:
        why = "one rank of each node prepares the files while the others wait, and then find them"
        guard = Under(statement, f"with {names['first_on_node']}()", along=True, inner=True)  # with the data set of a loader
        yield Change(CODE, why, shown, statement, (guard,), needs=("first_on_node",))
    for statement in done.alone:
        why = "one rank of each node prepares the files while the others wait; otherwise all would write the same files"
        guard = Under(statement, f"if {names['local_rank']} == 0")
        yield Change(CODE, why, shown, statement, (guard, InsertAfter(statement, f"{names['dist']}.barrier()")))
    for node in dict.fromkeys(call.node for call in done.fetched):
        fix = f"move it into a statement of its own under `with {names['first_on_node']}():`, after a look whether it is there"
        yield context.manual(CODE, node, "every rank would fetch or unpack these files at once", fix)


def _within_another(context: Context, statement: ast.stmt, others: list[ast.stmt]) -> bool:
    """Whether every way to a statement leads through another one that prepares."""
    stacks = [c.stack for n in walk(statement) if isinstance(n, ast.Call) for c in context.facts.after.calls(n)]
    within = [inside(other) for other in others if other is not statement] if stacks else []
    return bool(stacks) and not any(all(nodes.isdisjoint(stack) for nodes in within) for stack in stacks)


def _looks_first(context: Context, node: ast.stmt) -> bool:
    """Whether a statement does something only where a file is not there: by a test, by trying, or by a function that returns early."""
    if isinstance(node, ast.If):
        return bool(tests_existence(context, node.test))
    if isinstance(node, ast.Try):
        return any(h.type is not None and _catches(context, h.type) for h in node.handlers)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
        called = [n for n in walk(node) if isinstance(n, ast.Call)]
        functions = [f for n in called for o in context.facts.after.value(n.func).objs if (f := _body_of(o)) is not None]
        return any(_returns_early(context, f) for f in functions)
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


def _returns_early(context: Context, function: ast.FunctionDef) -> bool:
    """Whether a function returns early where a file is there; one that is not edited may go on where it is, too."""
    edited, visited = context.facts.is_edited(function), context.facts.after.trace.visited
    tests = (s for s in function.body if isinstance(s, ast.If) and s in visited and tests_existence(context, s.test))
    return any(not edited or (not s.orelse and isinstance(s.body[-1], ast.Return)) for s in tests)


def _worth_it(context: Context, paths: Paths, touched: list[Touch], node: ast.stmt, calls: list[Call]) -> bool:
    """Whether files are made here that all ranks then read: fetched ones, or such as are read in an other branch or later."""
    if any(fetches(c) for c in calls):
        return True
    guards = guards_of(context)
    if guards.guarded(node) or (guards.only_outputs(node) and in_turns(context, node) == [node]):
        return False
    making = [c for c in calls if guards.effects.at.get(c.node) == "file" and not c.func.paths() & HANDLERS]  # a log prepares nothing
    written = [t for c in making for t in disk.touches(c) if t.kind == "write"]
    if isinstance(node, ast.If):  # of what is looked for, or in the folder that is
        looked = [paths.of(t) for t in tests_existence(context, node.test)]
        written = [t for t in written if any(disk.may_hold(path, paths.of(t)) for path in looked)]
    for read in (t for t in touched if t.kind == "read"):
        here = not inside(node).isdisjoint((read.call.node, *read.call.stack))
        if any((here or w.call.order < read.call.order) and disk.may_be_one(paths.of(w), paths.of(read)) for w in written):
            return True
    return False


def _free(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether a statement can be prepared in turns, and no library downloads in it, which is the concern of DDP302."""
    of_library = (call for call in calls if not any(isinstance(o, (Class, Func)) for o in call.func.objs))
    if _reads_loaders(context, node):
        return False
    return free(context, node, calls) and not any(downloads(context, call.node) for call in of_library)


def _reads_loaders(context: Context, node: ast.stmt) -> bool:
    """Whether a statement is about a loader of which each rank has a part: one rank alone can neither read it, nor all of it."""
    run, loaders = context.facts.after, context.sharded_loaders | context.facts.whole_loaders
    named = (n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load))
    return bool(loaders) and any(over.objs & loaders for n in named for over in run.iterated(run.value(n)))


def _acting(context: Context, call: Call) -> ast.stmt | None:
    """The statement that does nothing but fetch or unpack, on a line that all ranks run."""
    tree = context.tree
    statement = tree.statement(call.node)
    if not isinstance(statement, ast.Expr) or call.func.paths() & CHECKING:
        return None
    up = tree.parent[statement]
    if isinstance(up, ast.With) and all(isinstance(s, ast.Expr) for s in up.body) and up.items:
        statement = up
    return statement if _free(context, statement, calls_under(context, statement)) else None
