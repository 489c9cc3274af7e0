"""Which statements have no side effect but output and files, so that rank 0 alone may run them."""

from __future__ import annotations

import ast
from functools import cached_property

from ddpify.facts.effects import Effects, maker
from ddpify.facts.model import Call, Func, Value
from ddpify.facts.runs import Run
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.io.all_rank_calls import Required


@dataclass(frozen=True, eq=False)
class Guards:
    """Which statements of the edited files have no side effect but output and files.

    `quiet` and `quiet_logging` say that the set-up closes other ranks' standard output and loggers. `muted` are the functions that have
    no side effect but output and are only called as statements.
    """

    context: Context
    effects: Effects
    quiet: bool = False
    quiet_logging: bool = False
    muted: frozenset[ast.AST] = frozenset()

    @cached_property
    def run(self) -> Run:
        """The run of the interpreter that they are about."""
        return self.context.facts.after

    @cached_property
    def required(self) -> Required:
        """What all ranks must do inside an expression."""
        return Required(self.context, self.effects)

    def by_rank_zero(self, call: Call) -> bool:
        """Whether a call stands, or will stand, under the guard of rank 0."""
        tree = self.context.tree
        return any(
            self.guarded(n) or any(isinstance(s, ast.stmt) and self.only_outputs(s) for s in (tree.statement(n), *tree.ancestors(n)))
            for n in (*call.stack, call.node)
            if n in tree.parent
        )

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
            return self.guarded(node) or any(self.only_outputs(s) for s in self.context.tree.path(statement))
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
        """Whether all output of a statement already runs on rank 0 alone."""
        speaking = [n for n in ast.walk(statement) if isinstance(n, (ast.Expr, ast.Assign, ast.With)) and self.only_outputs(n)]
        return bool(speaking) and all(self.guarded(n) for n in speaking)

    # ------------------------------------------------------------------------------------------------ what is output

    def is_output(self, statement: ast.stmt) -> bool:
        """Whether a simple statement is output, and nothing in its arguments must run on all ranks."""
        return self.is_output_statement(statement) and not any(True for _ in self.required.parts(statement, self.top(statement)))

    @staticmethod
    def top(statement: ast.stmt) -> ast.expr | None:
        """The expression that a simple statement is there for."""
        return getattr(statement, "value", None)

    def is_output_statement(self, statement: ast.stmt) -> bool:
        """Whether a simple statement is output, whatever its arguments are."""
        if isinstance(statement, ast.Expr):
            value = statement.value
            if isinstance(value, ast.Call):
                return self._is_output_call(value)
            if isinstance(value, ast.BoolOp):
                return isinstance(value.values[-1], ast.Call) and self._is_output_call(value.values[-1])
            if isinstance(value, ast.IfExp):
                return all(
                    isinstance(v, ast.Constant) or (isinstance(v, ast.Call) and self._is_output_call(v)) for v in (value.body, value.orelse)
                )
            return isinstance(value, ast.ListComp) and isinstance(value.elt, ast.Call) and self._is_output_call(value.elt)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Subscript):
            return self.of_writer(self.run.value(statement.targets[0].value))  # run["lr"] = 0.1
        return False

    def _is_output_call(self, call: ast.Call) -> bool:
        """Whether a call prints, logs or writes."""
        if call in self.effects.at:
            return self.effects.at[call] != "folder" and not self.silenced(call)
        if isinstance(call.func, ast.Attribute) and self.of_writer(self.run.value(call.func.value)):
            return True
        if any(self.effects.is_writer(o) for o in self.run.value(call).instances()) or self._unseen(call):
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
        """Whether the set-up closes what a call prints to on other ranks."""
        if self.effects.at.get(call) != "print":
            return False
        func = self.run.value(call.func)
        paths = {*func.paths(), *(m.path for m in map(maker, func.objs) if m is not None)}
        if any(p.startswith("logging.") for p in paths):
            return self.quiet_logging
        to_stdout = not any(p.startswith(("sys.stderr", "loguru.")) for p in paths) and not any(k.arg == "file" for k in call.keywords)
        return self.quiet and to_stdout

    def only_outputs(self, statement: ast.stmt) -> bool:
        """Whether a simple or compound statement has no side effect but output and files."""
        if isinstance(statement, ast.Expr):
            return self.is_output(statement) or (isinstance(statement.value, ast.Constant))
        if isinstance(statement, ast.Assign):
            return self.is_output(statement)
        if isinstance(statement, ast.If):
            return (
                not self.required.any(statement.test)
                and all(self.only_outputs(s) for s in (*statement.body, *statement.orelse))
                and any(not isinstance(s, ast.Pass) for s in statement.body)
            )
        if isinstance(statement, ast.For):
            return (
                not self.required.any(statement.iter)
                and not statement.orelse
                and all(self.only_outputs(s) for s in statement.body)
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
        return self.effects.at.get(call) == "file" or any(self.effects.is_writer(o) for o in self.run.value(call).instances())

    def _writes_in(self, statement: ast.stmt, block: ast.With) -> bool:
        """Whether a statement inside `with open(...) as f` only writes to `f`."""
        handles = {i.optional_vars.id for i in block.items if isinstance(i.optional_vars, ast.Name)}
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            named = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            return (bool(named & handles) and not self.required.any(call)) or self.only_outputs(statement)
        if isinstance(statement, (ast.For, ast.If)):
            return not self.required.any(statement.iter if isinstance(statement, ast.For) else statement.test) and all(
                self._writes_in(s, block) for s in (*statement.body, *statement.orelse)
            )
        if isinstance(statement, ast.Assign):  # writer = csv.writer(f)
            names = all(isinstance(n, (ast.Name, ast.Tuple)) for n in statement.targets)
            return names and not self.required.any(statement.value)
        return self.only_outputs(statement)

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
