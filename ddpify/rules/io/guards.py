"""Rank 0 speaks and writes.

What it does: statements that print, log, draw, save or delete go under `if rank == 0:`; an `if` that holds nothing else gets the rank
    into its own condition. An object that writes (a SummaryWriter, a logger of the project's own) is made on rank 0 and its calls guarded.
    Where another module of the project prints, the other ranks' standard output is closed instead.
Why: N ranks would print everything N times and write over each other's files.
Safety: a statement is guarded only if nothing else depends on it: no assignment, no collective, no draw from a loader. MANUAL where a
    file is written by another module.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Replace, Under
from ddpify.facts.effects import Effects, is_writer
from ddpify.facts.model import Call, New
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context

CODE = "DDP501"
TITLE = "rank 0 speaks and writes"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "an assignment",
        'message = "starting".upper()\n',
        frame="end",
    ),
    Example(
        "a printing function that is not called",
        "def usage():\n"
        '    raise SystemExit("train.py --epochs N")\n',
        frame="end",
    ),
    Example(
        "text that is made and kept",
        "lines = []\n"
        'lines.append(f"epochs {args.epochs}")\n',
        frame="end",
    ),
    Example(
        "a file that is read",
        'with open("names.txt") as f:\n'
        "    names = f.read().split()\n",
        frame="end",
    ),
    Example(
        "an error that ends the script",
        "if args.epochs < 1:\n"
        '    raise ValueError("no epochs")\n',
        frame="start",
    ),
    Example(
        "a line of output",
        'print("epoch", epoch, "done")\n',
        "if rank == 0:\n"
        '    print("epoch", epoch, "done")\n',
        frame="epoch",
    ),
    Example(
        "a condition around nothing but output",
        "if epoch % 10 == 0:\n"
        '    print("epoch", epoch)\n',
        "if rank == 0 and epoch % 10 == 0:\n"
        '    print("epoch", epoch)\n',
        frame="epoch",
    ),
    Example(
        "output beside what every rank must do",
        "if epoch == 5:\n"
        '    print("enough")\n'
        "    break\n",
        "if epoch == 5:\n"
        "    if rank == 0:\n"
        '        print("enough")\n'
        "    break\n",
        frame="epoch",
    ),
    Example(
        "a writer",
        'writer = SummaryWriter("runs")\n'
        'writer.add_text("settings", str(args))\n',
        'writer = SummaryWriter("runs") if rank == 0 else None\n'
        "if rank == 0:\n"
        '    writer.add_text("settings", str(args))\n',
        frame="end",
    ),
)  # fmt: skip
_WHY = "rank 0 speaks for all"
_EXISTS = frozenset(("exists", "isfile", "isdir", "is_file", "is_dir", "_check_exists", "check_preprocess", "check_integrity"))


class Guards:
    """Which statements of the entry do nothing but speak and write."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.run = context.facts.after
        self.effects = Effects(context.facts)
        self.quiet = context.options.guards == "quiet" or self.speaks_elsewhere()
        self.writers = self._writers()
        self.plain: set[ast.stmt] = set()

    def speaks_elsewhere(self) -> bool:
        """Whether a module that is not edited prints, outside the calls that are guarded here."""
        for call in self.run.trace.calls:
            if call.file == "__main__" or self.effects.at.get(call.node) != "print" or self.effects_guarded(call.node, call.stack):
                continue
            if any(p.startswith(("print", "sys.stdout", "pprint")) for p in call.func.paths()):
                return True
        return False

    def effects_guarded(self, node: ast.AST, stack: tuple[ast.AST, ...]) -> bool:
        """Whether one of the calls that lead to a place is a statement of the entry that is, or will be, run by rank 0 alone."""
        for above in stack:
            if self.context.facts.is_entry(above):
                statement = self.context.tree.statement(above)
                if self.guarded(above) or (
                    isinstance(statement, ast.Expr) and statement.value is above and self.effects.output_only(above)
                ):
                    return True
        return False

    def guarded(self, node: ast.AST) -> bool:
        """Whether a statement already runs on rank 0 alone."""
        child = node
        for up in self.context.tree.ancestors(node):
            if isinstance(up, ast.If) and child in up.body and self._rank_test(up.test):
                return True
            if isinstance(up, ast.IfExp) and child is up.body and self._rank_test(up.test):
                return True
            child = up
        return False

    def _rank_test(self, test: ast.expr) -> bool:
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for p in parts:
            if (
                isinstance(p, ast.Compare)
                and isinstance(p.ops[0], ast.Eq)
                and any(o.kind == "rank" for s in (p.left, *p.comparators) for o in self.run.value(s).origins)
            ):
                return True
            if any(o.kind == "rank" for o in self.run.value(p).origins) and isinstance(p, (ast.Name, ast.Attribute, ast.Call)):
                return True
        return False

    def _writers(self) -> dict[str, ast.Assign]:
        """Names that hold a writer and nothing else, with the statement that makes it."""
        out: dict[str, ast.Assign] = {}
        many: set[str] = set()
        for node in self.context.tree.nodes():
            if (
                isinstance(node, ast.Assign)
                and len(node.targets) == 1
                and isinstance(node.targets[0], (ast.Name, ast.Attribute))
                and isinstance(node.value, ast.Call)
            ):
                made = self.run.value(node.value).made()
                if made and all(is_writer(o) or self._writes_only(o, node.value) for o in made):
                    text = ast.unparse(node.targets[0])
                    many |= {text} & set(out)
                    out[text] = node
        return {k: v for k, v in out.items() if k not in many}

    def _writes_only(self, obj: New, call: ast.Call) -> bool:
        """Whether making an object of the project's own class opens files and no more."""
        made = any(o is obj.cls for o in self.run.value(call.func).objs)
        return (
            made
            and obj.cls is not None
            and obj.cls.file != "__main__"
            and "file" in self.effects.kinds(call)
            and self.effects.output_only(call)
        )

    def speaks(self, statement: ast.stmt) -> bool:
        """Whether a statement only speaks or writes."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if not self._alone(call):
                return False
            if call in self.effects.at and self.effects.at[call] != "folder":
                return not (self.quiet and self._printed(call))
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in self.writers:
                return True
            if any(is_writer(o) for o in self.run.value(call.func.value).made()) if isinstance(call.func, ast.Attribute) else False:
                return True
            inner = self.effects.under.get(call, [])
            elsewhere = bool(inner) and all(c.file != "__main__" or c.node not in self.effects.at for c in inner)
            return elsewhere and self.effects.output_only(call) and not (self.quiet and self.effects.kinds(call) <= {"print"})
        return False

    def _printed(self, call: ast.Call) -> bool:
        paths = self.run.value(call.func).paths()
        return any(p == "print" or p.startswith(("sys.stdout", "pprint")) for p in paths) and not any(
            k.arg == "file" for k in call.keywords
        )

    def _alone(self, call: ast.Call) -> bool:
        """Whether nothing inside a call must happen on every rank."""
        meetings = self.context.meetings
        for node in ast.walk(call):
            if isinstance(node, (ast.NamedExpr, ast.Yield, ast.Await)) or node in meetings:
                return False
            if isinstance(node, ast.Call):
                paths = self.run.value(node.func).paths()
                if (
                    "next" in paths
                    or "input" in paths
                    or (isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "popleft", "step", "backward"))
                ):
                    return False
        return True

    def only_speaks(self, statement: ast.stmt) -> bool:
        """Whether a simple or compound statement does nothing but speak and write."""
        if isinstance(statement, ast.Expr):
            return self.speaks(statement) or (isinstance(statement.value, ast.Constant))
        if isinstance(statement, ast.If):
            return (
                self._pure(statement.test)
                and all(self.only_speaks(s) for s in (*statement.body, *statement.orelse))
                and any(not isinstance(s, ast.Pass) for s in statement.body)
            )
        if isinstance(statement, ast.For):
            return (
                self._pure(statement.iter)
                and not statement.orelse
                and all(self.only_speaks(s) for s in statement.body)
                and not any(self.run.is_loader(o) for o in self.run.value(statement.iter).objs)
            )
        if isinstance(statement, ast.With):
            return (
                all(self._opens(i) for i in statement.items)
                and all(self._writes_in(s, statement) for s in statement.body)
                and not self._read_outside(statement)
            )
        return isinstance(statement, ast.Pass)

    def done(self, statement: ast.stmt) -> bool:
        """Whether all that speaks in a statement already runs on rank 0 alone."""
        speaking = [n for n in ast.walk(statement) if isinstance(n, (ast.Expr, ast.With)) and self.only_speaks(n)]
        return bool(speaking) and all(self.guarded(n) for n in speaking)

    def _pure(self, node: ast.expr) -> bool:
        return not any(
            isinstance(n, (ast.NamedExpr, ast.Yield, ast.Await))
            or (
                isinstance(n, ast.Call)
                and (
                    n in self.effects.at
                    or n in self.context.meetings
                    or "next" in self.run.value(n.func).paths()
                    or bool(self.context.facts.wrapped(self.run.value(n.func)))
                )
            )
            for n in ast.walk(node)
        )

    def _read_outside(self, statement: ast.With) -> bool:
        """Whether a name that the block binds is read outside it."""
        inside = set(ast.walk(statement))
        bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        function = self.context.tree.function(statement)
        others = [n for n in ast.walk(function) if isinstance(n, ast.With) and n is not statement]
        rebound = {n for o in others for n in ast.walk(o)}
        return any(
            isinstance(n, ast.Name)
            and n.id in bound
            and isinstance(n.ctx, ast.Load)
            and n not in inside
            and n not in rebound
            and n.lineno > statement.lineno
            for n in ast.walk(function)
        )

    def _opens(self, item: ast.withitem) -> bool:
        return isinstance(item.context_expr, ast.Call) and self.effects.at.get(item.context_expr) == "file"

    def _writes_in(self, statement: ast.stmt, block: ast.With) -> bool:
        """Whether a statement inside `with open(...) as f` only writes to `f`."""
        handles = {i.optional_vars.id for i in block.items if isinstance(i.optional_vars, ast.Name)}
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            named = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            return (bool(named & handles) and self._alone(call)) or self.only_speaks(statement)
        if isinstance(statement, (ast.For, ast.If)):
            return self._pure(statement.iter if isinstance(statement, ast.For) else statement.test) and all(
                self._writes_in(s, block) for s in (*statement.body, *statement.orelse)
            )
        if isinstance(statement, ast.Assign):  # writer = csv.writer(f)
            return isinstance(statement.value, ast.Call) and bool(
                {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)} & handles
            )
        return self.only_speaks(statement)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Guard what speaks and writes in the entry; report files written elsewhere."""
    guards = context.guards
    header = f"if {context.names['rank']} == 0"
    yield from _block(context, guards, context.tree.root.body, header)
    yield from _made(context, guards)
    yield from _files_elsewhere(context, guards)
    if guards.quiet and not _silenced(context):
        where = _last_import(context)
        yield Change(
            CODE,
            "modules that are not edited print, too: only rank 0's standard output is shown",
            context.tree.shown,
            where,
            (),
            needs=("quiet",),
        )


def _silenced(context: Context) -> bool:
    return any(isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "sys.stdout" for n in context.tree.nodes())


def _last_import(context: Context) -> ast.AST:
    return next((s for s in context.tree.root.body if isinstance(s, (ast.Import, ast.ImportFrom))), context.tree.root.body[0])


def _block(context: Context, guards: Guards, body: list[ast.stmt], header: str) -> Iterator[Change]:
    for statement in body:
        if (
            isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            or not guards.only_speaks(statement)
            or isinstance(statement, ast.Pass)
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        ):
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list):
                    yield from _block(context, guards, inner, header)
            for handler in getattr(statement, "handlers", ()):
                yield from _block(context, guards, handler.body, header)
            continue
        if guards.guarded(statement) or guards.done(statement) or context.preparation.writes(statement):
            continue
        edits: tuple[Edit, ...] = (Under(statement, header),)
        if isinstance(statement, ast.If) and not statement.orelse:
            loose = isinstance(statement.test, (ast.IfExp, ast.Lambda, ast.NamedExpr)) or (
                isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.Or)
            )
            inner_text = "({0})" if loose else "{0}"
            edits = (Replace(statement.test, f"{context.names['rank']} == 0 and {inner_text}", (statement.test,)),)
        yield Change(CODE, _WHY, context.tree.shown, statement, edits, group="guards")


def _made(context: Context, guards: Guards) -> Iterator[Change | Finding]:
    """Writers are made on rank 0 where every use of theirs is guarded."""
    for text, statement in guards.writers.items():
        if guards.guarded(statement) or isinstance(statement.value, ast.IfExp):
            continue
        free = [
            n
            for n in context.tree.nodes()
            if isinstance(n, (ast.Name, ast.Attribute))
            and isinstance(n.ctx, ast.Load)
            and ast.unparse(n) == text
            and not any(
                guards.guarded(n) or (isinstance(s, ast.stmt) and guards.only_speaks(s))
                for s in (context.tree.statement(n), *context.tree.ancestors(n))
            )
        ]
        if free:
            yield context.manual(
                CODE,
                free[0],
                f"`{text}` writes files, and is used here by every rank",
                f"make it on rank 0 alone, and guard this with `if {context.names['rank']} == 0:`",
            )
            continue
        yield Change(
            CODE,
            "rank 0 alone writes",
            context.tree.shown,
            statement,
            (Replace(statement.value, f"{{0}} if {context.names['rank']} == 0 else None", (statement.value,)),),
            group="guards",
        )


def _files_elsewhere(context: Context, guards: Guards) -> Iterator[Change | Finding]:
    seen: set[ast.AST] = set()
    prepared: set[ast.stmt] = set()
    for call in context.facts.after.trace.calls:
        if call.file == "__main__" or call.node in seen or guards.effects.at.get(call.node) not in ("file", "folder"):
            continue
        if (
            context.prepared(call)
            or guards.effects_guarded(call.node, call.stack)
            or any(s in {w.value for w in guards.writers.values()} for s in call.stack)
        ):
            continue
        name = call.file
        if name not in context.facts.trees or _own_guard(context, call.node):
            continue
        seen.add(call.node)
        caller = _prepares(context, call)
        if caller is not None:
            if caller not in prepared and not any(
                "first" in ast.unparse(up.items[0].context_expr) for up in context.tree.ancestors(caller) if isinstance(up, ast.With)
            ):
                yield Change(
                    CODE,
                    "one rank of each node prepares the files, the others then find them",
                    context.tree.shown,
                    caller,
                    (Under(caller, f"with {context.names['first_on_node']}()"),),
                    needs=("first_on_node",),
                )
            prepared.add(caller)
            continue
        kind = guards.effects.at[call.node]
        if kind == "folder":
            if any(k.arg == "exist_ok" for k in call.node.keywords):
                continue
            yield context.manual(CODE, call.node, "every rank makes this folder, and all but one fail", "os.makedirs(path, exist_ok=True)")
        else:
            yield context.manual(
                CODE, call.node, f"every rank would write here ({ast.unparse(call.node.func)})", "if dist.get_rank() == 0:"
            )


def _prepares(context: Context, call: Call) -> ast.stmt | None:
    """The statement of the entry that leads to a write which is only made where the file is not there yet."""
    if not any(
        isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] in _EXISTS for test, _ in call.tests for n in ast.walk(test)
    ):
        return None
    above = [n for n in call.stack if context.facts.is_entry(n)]
    if not above or any(n in context.training for n in above):
        return None
    statement = context.tree.statement(above[0])
    return statement if isinstance(statement, (ast.Assign, ast.Expr, ast.AnnAssign)) else None


def _own_guard(context: Context, node: ast.AST) -> bool:
    tree = context.facts.tree_of(node)
    return any(isinstance(up, ast.If) and "rank" in ast.unparse(up.test) for up in tree.ancestors(node))
