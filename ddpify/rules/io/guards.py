"""Rank 0 speaks and writes.

What it does: statements that print, log, draw, save or delete go under `if rank == 0:`; an `if` that holds nothing else gets the rank
    into its own condition. What all ranks must do inside such a statement (an evaluation, a draw) is taken out and put before it.
    Where another module of the project prints, the other ranks' standard output is closed instead.
Why: N ranks would print everything N times and write over each other's files.
Safety: a statement is guarded only if nothing else depends on it: no assignment, no collective, no draw from a loader. MANUAL where a
    file is written by another module.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertBefore, Replace, Under
from ddpify.facts.barriers import one_rank_ahead
from ddpify.facts.effects import HANDLERS, Effects, maker, only_draws
from ddpify.facts.model import Func, Value
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.io import elsewhere, hoist, output, stored, writers
from ddpify.rules.io.harmless import harmless

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
        "an evaluation that nothing is said of",
        "accuracy = evaluate()\n",
        frame="epoch",
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
        "neighbours that share a block",
        'print("epoch", epoch)\n'
        "if epoch > 5:\n"
        '    print("late")\n',
        "if rank == 0:\n"
        '    print("epoch", epoch)\n'
        "    if epoch > 5:\n"
        '        print("late")\n',
        frame="epoch",
    ),
    Example(
        "an evaluation inside a line of output",
        'print("accuracy", evaluate())\n',
        "accuracy = evaluate()\n"
        "if rank == 0:\n"
        '    print("accuracy", accuracy)\n',
        frame="epoch",
    ),
)  # fmt: skip
_WHY = "rank 0 speaks for all"
_OPENS = frozenset(("open", "io.open", "codecs.open", "gzip.open")) | HANDLERS


class Guards:
    """Which statements of the entry do nothing but speak and write."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.run = context.facts.after
        self.muted: frozenset[ast.AST] = frozenset()
        self.effects = Effects(context.facts, writers.switched(context, self.guarded))
        self.required = hoist.Required(context, self.effects)
        self.quiet = self.quiet_logging = context.options.guards == "quiet"
        self.quiet = self.quiet or elsewhere.speaks(context, self)
        self.quiet_logging = self.quiet_logging or elsewhere.logs(context, self)
        self.muted = output.muted(self)

    # ------------------------------------------------------------------------------------------------ what is guarded

    def guarded(self, node: ast.AST) -> bool:
        """Whether a statement already runs on rank 0 alone, or stands in a function that is only called so."""
        child = node
        for up in self.context.tree.ancestors(node):
            if isinstance(up, ast.If) and child in up.body and self._rank_test(up.test):
                return True
            if isinstance(up, ast.IfExp) and child is up.body and self._rank_test(up.test):
                return True
            if up in self.muted:
                return True
            child = up
        return False

    def guarded_call(self, node: ast.AST, stack: tuple[ast.AST, ...]) -> bool:
        """Whether one of the calls that lead to a place is a statement of the entry that is, or will be, run by rank 0 alone."""
        return any(self.context.facts.is_edited(above) and (self.guarded(above) or self.silent(above)) for above in (*stack, node))

    def silent(self, node: ast.AST) -> bool:
        """Whether a place of the entry is, or will be, run by rank 0 alone."""
        if not isinstance(node, ast.Module):
            statement = self.context.tree.statement(node)
            return self.guarded(node) or any(self.only_speaks(s) for s in self.context.tree.path(statement))
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

    def done(self, statement: ast.stmt) -> bool:
        """Whether all that speaks in a statement already runs on rank 0 alone."""
        speaking = [n for n in ast.walk(statement) if isinstance(n, (ast.Expr, ast.Assign, ast.With)) and self.only_speaks(n)]
        return bool(speaking) and all(self.guarded(n) for n in speaking)

    # ------------------------------------------------------------------------------------------------ what speaks

    def speaks(self, statement: ast.stmt) -> bool:
        """Whether a simple statement only speaks or writes."""
        return self.utters(statement) and not any(True for _ in self.required.parts(statement, self.top(statement)))

    @staticmethod
    def top(statement: ast.stmt) -> ast.expr | None:
        """The expression that a simple statement is there for."""
        return getattr(statement, "value", None)

    def utters(self, statement: ast.stmt) -> bool:
        """Whether a simple statement is there to speak or write, whatever stands in its arguments."""
        if isinstance(statement, ast.Expr):
            value = statement.value
            if isinstance(value, ast.Call):
                return self._says(value)
            if isinstance(value, ast.BoolOp):
                return isinstance(value.values[-1], ast.Call) and self._says(value.values[-1])
            if isinstance(value, ast.IfExp):
                return all(isinstance(v, ast.Constant) or (isinstance(v, ast.Call) and self._says(v)) for v in (value.body, value.orelse))
            return isinstance(value, ast.ListComp) and isinstance(value.elt, ast.Call) and self._says(value.elt)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Subscript):
            return self.of_writer(self.run.value(statement.targets[0].value))  # run["lr"] = 0.1
        return False

    def _says(self, call: ast.Call) -> bool:
        """Whether a call is there to speak or write."""
        if call in self.effects.at:
            return self.effects.at[call] != "folder" and not self.silenced(call)
        if isinstance(call.func, ast.Attribute) and self.of_writer(self.run.value(call.func.value)):
            return True
        if any(self.effects.is_writer(o) for o in self.run.value(call).made()) or self._unseen(call):
            return True
        called = [o.node for o in self.run.value(call.func).objs if isinstance(o, Func)]
        if any(f in self.muted for f in called):
            return True
        if called and all(isinstance(f, ast.Lambda) for f in called) and self.effects.output_only(call):
            return not self.quiet or self.effects.kinds(call) > {"print"}
        inner = self.effects.under.get(call, [])
        elsewhere = bool(inner) and all(not self.context.facts.is_edited(c.node) or c.node not in self.effects.at for c in inner)
        return elsewhere and self.effects.output_only(call) and not (self.quiet and self.effects.kinds(call) <= {"print"})

    def of_writer(self, value: Value) -> bool:
        """Whether a value is a writer, or a part of one."""
        given = [] if value.objs else [o.of[0] for o in value.origins if o.kind == "method"]  # type: ignore[index]
        return any(self.effects.is_writer(m) for m in (*map(maker, value.objs), *map(maker, given)) if m is not None)

    def _unseen(self, call: ast.Call) -> bool:
        """Whether a call prints that was not seen to run, in a function that was."""
        if not isinstance(call.func, ast.Name) or call.func.id != "print" or self.quiet or "print" in self.context.tree.bound:
            return False
        function = self.context.tree.function(call)
        visited = self.run.trace.visited
        return not self.run.calls(call) and any(s in visited for s in getattr(function, "body", ()) if isinstance(s, ast.stmt))

    def silenced(self, call: ast.Call) -> bool:
        """Whether what a call says is cut off on other ranks by the set-up."""
        if self.effects.at.get(call) != "print":
            return False
        func = self.run.value(call.func)
        paths = {*func.paths(), *(m.path for m in map(maker, func.objs) if m is not None)}
        if any(p.startswith("logging.") for p in paths):
            return self.quiet_logging
        to_stdout = not any(p.startswith(("sys.stderr", "loguru.")) for p in paths) and not any(k.arg == "file" for k in call.keywords)
        return self.quiet and to_stdout

    def only_speaks(self, statement: ast.stmt) -> bool:
        """Whether a simple or compound statement does nothing but speak and write."""
        if isinstance(statement, ast.Expr):
            return self.speaks(statement) or (isinstance(statement.value, ast.Constant))
        if isinstance(statement, ast.Assign):
            return self.speaks(statement)
        if isinstance(statement, ast.If):
            return (
                not self.required.any(statement.test)
                and all(self.only_speaks(s) for s in (*statement.body, *statement.orelse))
                and any(not isinstance(s, ast.Pass) for s in statement.body)
            )
        if isinstance(statement, ast.For):
            return (
                not self.required.any(statement.iter)
                and not statement.orelse
                and all(self.only_speaks(s) for s in statement.body)
                and any(not isinstance(s, ast.Pass) for s in statement.body)
                and not any(self.run.is_loader(o) for o in self.run.value(statement.iter).objs)
            )
        if isinstance(statement, ast.With):
            return (
                all(self._opens(i) for i in statement.items)
                and all(self._writes_in(s, statement) for s in statement.body)
                and not self._read_outside(statement)
            )
        return isinstance(statement, ast.Pass)

    def _opens(self, item: ast.withitem) -> bool:
        call = item.context_expr
        if not isinstance(call, ast.Call) or self.required.any(call):
            return False
        return self.effects.at.get(call) == "file" or any(self.effects.is_writer(o) for o in self.run.value(call).made())

    def _writes_in(self, statement: ast.stmt, block: ast.With) -> bool:
        """Whether a statement inside `with open(...) as f` only writes to `f`."""
        handles = {i.optional_vars.id for i in block.items if isinstance(i.optional_vars, ast.Name)}
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            named = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            return (bool(named & handles) and not self.required.any(call)) or self.only_speaks(statement)
        if isinstance(statement, (ast.For, ast.If)):
            return not self.required.any(statement.iter if isinstance(statement, ast.For) else statement.test) and all(
                self._writes_in(s, block) for s in (*statement.body, *statement.orelse)
            )
        if isinstance(statement, ast.Assign):  # writer = csv.writer(f)
            names = all(isinstance(n, (ast.Name, ast.Tuple)) for n in statement.targets)
            return names and not self.required.any(statement.value)
        return self.only_speaks(statement)

    def _read_outside(self, statement: ast.With) -> bool:
        """Whether a name that the block binds is read outside it."""
        inside = set(ast.walk(statement))
        bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        assigned = {n.id for s in inside if isinstance(s, ast.Assign) for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in bound}
        function = self.context.tree.function(statement)
        others = [n for n in ast.walk(function) if isinstance(n, ast.With) and n is not statement]
        rebound = {n for o in others for n in ast.walk(o)}
        if any(isinstance(n, (ast.Global, ast.Nonlocal)) and set(n.names) & bound for n in ast.walk(function)):
            return True
        return any(
            isinstance(n, ast.Name)
            and n.id in bound
            and isinstance(n.ctx, ast.Load)
            and n not in inside
            and ((n not in rebound and self.context.tree.after(n, statement)) or n.id in assigned)
            for n in ast.walk(function)
        )


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Guard what speaks and writes in the entry; report what is written elsewhere."""
    guards = context.guards
    header = f"if {context.names['rank']} == 0"
    guarding = [c for file in context.tree.trees for c in _block(context, guards, file.root.body, header)]
    yield from guarding
    yield from _unguarded(context, guards, [c.node for c in guarding if isinstance(c, Change)])
    yield from stored.changes(context, [c for c in guarding if isinstance(c, Change)])
    yield from elsewhere.changes(context, guards)


def _block(context: Context, guards: Guards, body: list[ast.stmt], header: str) -> Iterator[Change]:
    """The changes of a body: neighbours that speak share one block."""
    run: list[tuple[ast.stmt, tuple[Edit, ...]]] = []
    prepared = output.prepared(guards, body)
    for statement in body:
        lifted = _lifted(context, guards, statement)
        if lifted:
            yield from _together(context, run, header)
            run = [(statement, lifted)]
        elif statement in prepared or _guardable(guards, statement):
            run.append((statement, ()))
        else:
            yield from _together(context, run, header)
            run = []
            yield from _inside(context, guards, statement, header)
    yield from _together(context, run, header)


def _guardable(guards: Guards, statement: ast.stmt) -> bool:
    """Whether a statement only speaks, and is not guarded yet."""
    empty = isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    if empty or not guards.only_speaks(statement) or guards.guarded(statement) or guards.done(statement):
        return False
    return not guards.context.preparation.writes(statement)


def _inside(context: Context, guards: Guards, statement: ast.stmt, header: str) -> Iterator[Change]:
    """The changes of the bodies inside a statement that does more than speak."""
    if statement in guards.muted or (guards.only_speaks(statement) and not isinstance(statement, ast.ClassDef)):
        return
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if isinstance(inner, list):
            yield from _block(context, guards, inner, header)
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from _block(context, guards, part.body, header)


def _lifted(context: Context, guards: Guards, statement: ast.stmt) -> tuple[Edit, ...]:
    """The edits that take out of a line of output what all ranks must do."""
    top = guards.top(statement)
    if not isinstance(statement, ast.Expr) or not isinstance(top, ast.Call) or not guards.utters(statement) or guards.guarded(statement):
        return ()
    return hoist.taken_out(context, guards.required, statement, top) or ()


def _together(context: Context, run: list[tuple[ast.stmt, tuple[Edit, ...]]], header: str) -> Iterator[Change]:
    """The changes that guard neighbours: an `if` that stands alone gets the rank into its own condition."""
    speaks = all(harmless(context.guards, statement) for statement, _ in run)  # else one may make ready what the next says
    for statement, lifted in run:
        edits: tuple[Edit, ...] = (*lifted, Under(statement, header))
        if len(run) == 1 and isinstance(statement, ast.If) and not statement.orelse:
            loose = isinstance(statement.test, (ast.IfExp, ast.Lambda, ast.NamedExpr)) or (
                isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.Or)
            )
            inner_text = "({0})" if loose else "{0}"
            edits = (Replace(statement.test, f"{context.names['rank']} == 0 and {inner_text}", (statement.test,)),)
        asks = any(isinstance(e, InsertBefore) and context.names["sum_over_ranks"] in e.code for e in lifted)
        without = "every rank says this" if speaks and not lifted else ""
        writes = any(context.guards.effects.at.get(n) == "file" for n in ast.walk(statement) if isinstance(n, ast.Call))
        yield Change(
            CODE,
            "rank 0 alone writes" if writes else _WHY,
            context.tree.shown,
            statement,
            edits,
            needs=("sum_over_ranks",) if asks else (),
            without=without,
        )


def _unguarded(context: Context, guards: Guards, changed: list[ast.AST]) -> Iterator[Finding]:
    """What speaks or writes and could not be guarded."""
    covered = {n for statement in changed for n in ast.walk(statement)}
    told: set[ast.AST] = set()
    for call in guards.run.trace.calls:
        kind = guards.effects.at.get(call.node)
        if not context.facts.is_edited(call.node) or kind not in ("print", "file") or call.node in covered or call.node in told:
            continue
        if guards.guarded_call(call.node, call.stack) or guards.silenced(call.node) or _handled(guards, call.node):
            continue
        told.add(call.node)
        if only_draws(call):
            continue
        yield context.manual(
            CODE,
            call.node,
            f"every rank {'says this' if kind == 'print' else 'does this'} ({ast.unparse(call.node.func)})",
            f"take what all ranks need out of it, and guard the rest with `if {context.names['rank']} == 0:`",
            level=Safety.REVIEW,
        )


def _handled(guards: Guards, node: ast.Call) -> bool:
    """Whether another rule sees to a call: handles are opened on the null device, writers made on rank 0, files prepared by one rank."""
    func = guards.run.value(node.func)
    tree, makers = guards.context.tree, {m for m in map(maker, func.objs) if m is not None and guards.effects.is_writer(m)}
    if func.paths() & _OPENS or any(guards.effects.is_writer(o) for o in guards.run.value(node).made()):
        return True
    if makers and all(guards.context.facts.is_edited(m.node) and not guards.guarded(m.node) for m in makers):
        return True
    return one_rank_ahead(guards.run, tree, node)
