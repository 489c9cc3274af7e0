"""Which statements have no side effect but output and files, so that rank 0 alone may run them."""

from __future__ import annotations

import ast
from functools import cached_property

from ddpify.facts.effects import Effects, maker, opens_path
from ddpify.facts.library import effects
from ddpify.facts.model import Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import calls_in, inside, names_in, names_stored, walk
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.io.all_rank_calls import Required, chain

OPENS = effects.OPENS | effects.HANDLERS
"""What opens a file for writing."""


@dataclass(frozen=True, eq=False)
class Guards:
    """Which statements of the edited files have no side effect but output and files.

    `quiet` and `quiet_logging` say that the set-up closes other ranks' standard output and loggers. `muted` are the functions that have
    no side effect but output and are only called as statements. `kept` are the assignments that keep what a writer gave, such as a window,
    where only output reads it.
    """

    context: Context
    effects: Effects
    quiet: bool = False
    quiet_logging: bool = False
    muted: frozenset[ast.AST] = frozenset()
    kept: frozenset[ast.AST] = frozenset()

    @cached_property
    def run(self) -> Run:
        """The run of the interpreter that they are about."""
        return self.context.facts.after

    @cached_property
    def required(self) -> Required:
        """What all ranks must do inside an expression."""
        return Required(self.context, self.effects)

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
        return any(self.context.facts.is_edited(above) and self.silent(above) for above in (*stack, node))

    def silent(self, node: ast.AST) -> bool:
        """Whether a place of the entry is, or will be, run by rank 0 alone."""
        if not isinstance(node, ast.Module):
            statement = self.context.tree.statement(node)
            outputs = any(self.only_outputs(s) for s in self.context.tree.path(statement))
            return outputs or self.guarded(node) or self._stays_in_output(statement, node)
        return False

    def _stays_in_output(self, statement: ast.stmt, node: ast.AST) -> bool:
        """Whether a part of a line of output is still in it once what all ranks must do is taken out."""
        top = self.top(statement)
        if not isinstance(statement, ast.Expr) or not isinstance(top, ast.Call) or not self.is_output_statement(statement):
            return False
        parts = self.required.parts(top, top)
        taken = (n for p in parts for n in walk(chain(self.context, p.node, top)))
        return bool(parts) and not any(p.stuck for p in parts) and node not in set(taken)

    def _rank_test(self, test: ast.expr) -> bool:
        """Whether a condition holds on rank 0 alone: `rank == 0`, or what the script computes from its rank."""
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        return any(map(self._asks_for_rank, parts))

    def _asks_for_rank(self, test: ast.expr) -> bool:
        if isinstance(test, ast.Compare):
            return isinstance(test.ops[0], ast.Eq) and any(map(self._of_rank, (test.left, *test.comparators)))
        return isinstance(test, (ast.Name, ast.Attribute, ast.Call)) and self._of_rank(test)

    def _of_rank(self, node: ast.expr) -> bool:
        """Whether an expression is computed from the rank; where it was not seen to run, whether its name is that of such a number."""
        value = self.run.value(node)
        if value.of_kind("rank") or not isinstance(node, ast.Name) or node in self.run.trace.visited:
            return bool(value.of_kind("rank"))
        tree = self.context.facts.tree_of(node)
        function = tree.function(node)
        if isinstance(function, ast.Module):
            own: set[str] = set()
        else:
            own = {n.id for n in names_stored(function)} | {n.arg for n in walk(function) if isinstance(n, ast.arg)}
        return node.id not in own and bool(self.run.attribute(tree.name, node.id).of_kind("rank"))  # type: ignore[arg-type]

    def done(self, statement: ast.stmt) -> bool:
        """Whether all output of a statement already runs on rank 0 alone."""
        outputs = [n for n in walk(statement) if isinstance(n, (ast.Expr, ast.Assign, ast.With)) and self.only_outputs(n)]
        return bool(outputs) and all(self.guarded(n) for n in outputs)

    # ------------------------------------------------------------------------------------------------ what is output

    def is_output(self, statement: ast.stmt) -> bool:
        """Whether a simple statement is output, and nothing in its arguments must run on all ranks."""
        return self.is_output_statement(statement) and not self.required.parts(statement, self.top(statement))

    @staticmethod
    def top(statement: ast.stmt) -> ast.expr | None:
        """The expression that a simple statement is there for."""
        return getattr(statement, "value", None)

    def is_output_statement(self, statement: ast.stmt) -> bool:
        """Whether a simple statement is output, whatever its arguments are."""
        if isinstance(statement, ast.Expr):
            return self._outputs(statement.value)
        if statement in self.kept:
            return True
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Subscript):
            return self.of_writer(self.run.value(statement.targets[0].value))  # run["lr"] = 0.1
        return False

    def _outputs(self, value: ast.expr) -> bool:
        """Whether an expression that stands alone is output, in each way that it may take."""
        match value:
            case ast.Call():
                return self._is_output_call(value)
            case ast.BoolOp():
                return isinstance(value.values[-1], ast.Call) and self._is_output_call(value.values[-1])
            case ast.IfExp():
                ways = (value.body, value.orelse)
                return all(isinstance(way, ast.Constant) or (isinstance(way, ast.Call) and self._is_output_call(way)) for way in ways)
            case ast.ListComp():
                return isinstance(value.elt, ast.Call) and self._is_output_call(value.elt)
        return False

    def _is_output_call(self, call: ast.Call) -> bool:
        """Whether a call prints, logs or writes."""
        if call in self.effects.at:
            writes = any(self.effects.at.get(inner) == "file" for inner in calls_in(call))  # print(torch.save(...)), too
            return self.effects.at[call] != "folder" and (writes or not self.silenced(call))
        called = self.run.value(call.func).functions()
        if self._uses_writer(call) or self._unseen(call) or not self.muted.isdisjoint(called):
            return True
        inner = self.effects.nodes_under(call)
        elsewhere = bool(inner) and not any(self.context.facts.is_edited(n) for n in inner if n in self.effects.at)
        lambdas = bool(called) and all(isinstance(f, ast.Lambda) for f in called)
        if not (elsewhere or lambdas) or not self.effects.output_only(call):
            return False
        return not (self.quiet and self.effects.kinds(call) <= {"print"})

    def _uses_writer(self, call: ast.Call) -> bool:
        """Whether a call is a method of a writer, or makes one."""
        if isinstance(call.func, ast.Attribute) and self.of_writer(self.run.value(call.func.value)):
            return True
        return any(self.effects.is_writer(o) for o in self.run.value(call).instances())

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
        if self.effects.at.get(call) != "print" or self._before_set_up(call):
            return False
        func = self.run.value(call.func)
        paths = {*func.paths(), *(m.path for m in map(maker, func.objs) if m is not None)}
        if any(p.startswith("logging.") for p in paths):
            return self.quiet_logging
        elsewhere = ("sys.stderr", "loguru.", "absl.", "logzero.", "colorlog.")
        to_stdout = not any(p.startswith(elsewhere) for p in paths) and not any(k.arg in ("file", "err") for k in call.keywords)
        return self.quiet and to_stdout

    def _before_set_up(self, call: ast.Call) -> bool:
        """Whether a call is made before the main block, in which the set-up may be."""
        main, entry = self.context.main_block, self.context.tree.trees[0]
        first = [(*c.stack, c.node)[0] for c in self.run.calls(call)]
        return main is not None and any(n in entry.parent and main not in entry.ancestors(n) for n in first)

    def only_outputs(self, statement: ast.stmt) -> bool:
        """Whether a simple or compound statement has no side effect but output and files."""
        match statement:
            case ast.Expr():
                return self.is_output(statement) or isinstance(statement.value, ast.Constant)
            case ast.Assign():
                return self.is_output(statement)
            case ast.If():
                return not self.required.any(statement.test) and self._only_output_inside(statement)
            case ast.For():
                free = not statement.orelse and not self.required.any_of_loop(statement)
                return free and self._only_output_inside(statement)
            case ast.With():
                opens = all(map(self._opens, statement.items))
                return opens and all(self._writes_in(s, statement) for s in statement.body) and not self.read_outside(statement, statement)
        return isinstance(statement, ast.Pass)

    def _only_output_inside(self, statement: ast.If | ast.For) -> bool:
        """Whether the blocks of a statement have no side effect but output, and say something."""
        says = any(not isinstance(s, ast.Pass) for s in statement.body)
        return says and all(map(self.only_outputs, (*statement.body, *statement.orelse)))

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
            named = names_in(call)
            return (bool(named & handles) and not self.required.any(call)) or self.only_outputs(statement)
        if isinstance(statement, (ast.For, ast.If)):
            required = self.required.any_of_loop(statement) if isinstance(statement, ast.For) else self.required.any(statement.test)
            return not required and all(self._writes_in(s, block) for s in (*statement.body, *statement.orelse))
        if isinstance(statement, ast.Assign):  # writer = csv.writer(f), f["rows"] = rows
            names = all(isinstance(n, (ast.Name, ast.Tuple)) or _element_of(n, handles) for n in statement.targets)
            return names and not self.required.any(statement.value)
        return self.only_outputs(statement)

    def read_outside(self, statement: ast.stmt, block: ast.stmt) -> bool:
        """Whether a name that a statement binds is read outside a block."""
        own = inside(block)
        return any(use not in own for name in names_stored(statement) for use in self.run.definitions.touches(name))


def is_method_of_path(guards: Guards, node: ast.Call) -> bool:
    """Whether a call opens a file by the method of a path."""
    return any(map(opens_path, guards.run.calls(node)))


def _element_of(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression is an element of what has one of these names."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names
