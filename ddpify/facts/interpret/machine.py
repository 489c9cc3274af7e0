"""The interpreter: runs a project abstractly, statement by statement, with the state and the rules of the other rooms."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ddpify import comments
from ddpify.facts import library, sources, tensors
from ddpify.facts.assumed import GIVEN, GRADED, IN_PARTS, SEVERAL_IN_PARTS, SHARE
from ddpify.facts.interpret import (
    assignment,
    attributes,
    branches,
    calls,
    definitions,
    expressions,
    importing,
    items,
    loops,
    operators,
    statements,
)
from ddpify.facts.interpret.assignment import reduce_in_place, wrap
from ddpify.facts.interpret.batches import cut, gathered, given_rows, read_whole
from ddpify.facts.interpret.calls import changed_in_place
from ddpify.facts.interpret.expressions import mixed_parts
from ddpify.facts.interpret.known_to_calls import knows_batch
from ddpify.facts.interpret.settings import possible
from ddpify.facts.interpret.state import Frame, Interpreter
from ddpify.facts.model import NOTHING, New, Trace, Value, join, just
from ddpify.facts.origins import Origin
from ddpify.facts.recording import Recording
from ddpify.facts.tree import value_of_line
from ddpify.progress import doing
from ddpify.project import SourceFile

_BUDGET = 150_000
_REPORTED = 500  # after so many statements


_GRADED = {with_gradients: how for how, with_gradients in GRADED.items()}


def _turn(value: Value, how: str, node: ast.expr) -> Value:
    if how == "whole" and value.scale is None and value.of_kind("whole"):
        return Value(value.objs, value.origins, "other")  # all ranks' rows, as often as there are ranks
    if how == "whole":
        no_rows = value.scale == "other" or (value.scale == "sample" and value.shape is not None and value.shape.axis > 0)
        return Value(value.objs, value.origins, "other") if no_rows else library.whole(value)
    if how == "agreed":
        return Value(value.objs, library.agreed(value).origins, None, value.shape)
    if how == SHARE:
        return library.share_of(value) if value.of_kind("whole") else value
    if how in ("mean", "sum"):
        return Value(value.objs, value.origins, how)  # type: ignore[arg-type]
    return Value(value.objs, value.origins | {Origin(how, node)}, value.scale, value.shape)


class Machine(Interpreter):
    """The interpreter with all that it can carry out."""

    assign = assignment.assign
    imports = importing.imports
    import_module = importing.import_module
    of_library = importing.of_library
    attribute = attributes.attribute
    of_batches = items.of_batches
    own_length = items.own_length
    update = expressions.update
    binary = operators.binary
    per_sample = loops.per_sample
    knows_batch = knows_batch
    element = items.element
    invoke = calls.invoke
    invoke_one = calls.invoke_one
    in_a_row = calls.in_a_row
    construct = calls.construct
    hooked = calls.hooked
    invoke_named = calls.invoke_named
    call_function = calls.call_function

    def run(self) -> Trace:
        """Run the entry as `__main__`."""
        self.run_module(self.project.entry)
        self.memory.drop_versions()
        self.record = self.record.without_replaced()
        self.trace.calls = sorted(self.calls.values(), key=lambda c: c.order)
        self.trace.stores = sorted(self.stores.values(), key=lambda s: s.order)
        tensors.withdraw(self)
        return self.trace

    def run_module(self, file: SourceFile) -> None:
        """Run a file of the project, once; where another branch has run it, what it left is there, too."""
        imported = file.tree, "imported"
        if imported in self.memory:
            return
        if file.name in self.imported:
            for key, (value, new) in self.imported[file.name].items():
                if new:
                    self.memory[key] = value
                else:
                    self.memory.add(key, value)
            return
        self.memory.doubt()
        outer, self.memory.watch = self.memory.watch, Recording(len(self.driven), self.settings)
        self.memory[imported] = NOTHING
        self.imported[file.name] = {}
        saved = self.stack, self.loops, self.tests, self.no_grad, self.deciding
        if file is not self.project.entry:
            self.stack, self.loops, self.tests, self.no_grad, self.deciding = (*self.stack, file.tree), (), (), 0, frozenset()
        self.frames.append(Frame(file.name, None, file.tree))
        self.block(file.tree.body)
        self.frames.pop()
        self.stack, self.loops, self.tests, self.no_grad, self.deciding = saved
        reads, self.memory.watch = self.memory.watch, outer
        written = {key: self.memory.held(key) for key in reads.written}
        self.imported[file.name] = {k: (v, reads.saved[k] is None) for k, v in written.items() if v is not None}

    def block(self, body: list[ast.stmt]) -> bool:
        """Run statements; False when control does not come out at the end."""
        settings = self.settings
        alive = all(map(self.statement, body))
        self.settings_left, self.settings = self.settings, settings
        return alive

    def statement(self, node: ast.stmt) -> bool:
        """Run one statement; False when control does not pass it."""
        self.spent += 1
        self.log.visited.append(node)
        if self.spent > _BUDGET:
            self.trace.exhausted = True
            return False
        if not self.spent % _REPORTED:
            doing(f"following {self.file_of(self.frame.file).shown}")
        self.trace.visited.add(node)
        around, said = self.said, self.placement_said(node)
        self.said = (value_of_line(node), said) if said else (None, "")
        handler = _STATEMENTS.get(type(node))
        alive = True if handler is None else handler(self, node)
        self.said = around
        if alive and node in self.wraps:
            for target in self.wraps[node]:
                wrap(self, node, target)
        if alive and node in self.replicated_after:
            for target in self.replicated_after[node]:
                reduce_in_place(self, target)
        return alive

    def placement_said(self, node: ast.stmt) -> str:
        """What a comment beside a statement says of how its value differs between ranks; empty without one."""
        file = self.file_of(self.frame.file)
        key = ("said", file.tree)
        if key not in self.project.memo:
            self.project.memo[key] = comments.placements(file.source.text) | self.project.said_of_lines(file.shown)
        lines: Mapping[int, str] = self.project.memo[key]  # type: ignore[assignment]
        if not lines:
            return ""
        body = getattr(node, "body", None)
        last = body[0].lineno if isinstance(body, list) and body else (node.end_lineno or node.lineno) + 1
        said = next((lines[at] for at in range(node.lineno, last) if at in lines), "")
        if said:
            self.trace.believed[node] = "", said
        return said

    def expression(self, node: ast.expr) -> Value:
        """Evaluate an expression."""
        handler = _EXPRESSIONS.get(type(node))
        value = mixed_parts(self, node) if handler is None else handler(self, node)
        if node in self.special:
            value = self.overridden(node, value)
        if node is self.said[0]:
            value = sources.as_said(self.said[1], value)
        if len(value.objs) > 1:
            value = possible(self, value)
        self.log.noted.append((node, value))
        seen = self.trace.values.get(node)
        if seen is not value:
            self.trace.values[node] = value if seen is None else seen | value
        return value

    def overridden(self, node: ast.expr, value: Value) -> Value:
        """What an expression gives of which the interpreter assumes something."""
        if node in self.batch_sources:
            value = cut(self, self.batch_sources[node], value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in library.FILLS:
                changed_in_place(self, node.func, NOTHING, value)
        if node in self.assumed.read_whole:
            value = read_whole(self, value, self.assumed.read_whole[node])
        if node in self.unwraps:
            value = join(
                [
                    self.memory.get((o, "module"), NOTHING) if isinstance(o, New) and o.path in library.WRAPPERS else just(o)
                    for o in value.objs
                ]
            )
        how = self.redistributed.get(node)
        if how in _GRADED:
            how = None if self.no_grad else _GRADED[how]
        if how == GIVEN:
            return given_rows(self, node, value)
        if how is not None and how.startswith(IN_PARTS):
            value = gathered(self, node, value, how.startswith(SEVERAL_IN_PARTS))
            return _turn(value, SHARE, node) if how.endswith(SHARE) else value
        return value if how is None else _turn(value, how, node)


_STATEMENTS: dict[type, Callable[..., bool]] = {
    ast.Expr: statements.execute_expr,
    ast.Assign: assignment.execute_assign,
    ast.AnnAssign: assignment.execute_annassign,
    ast.AugAssign: assignment.execute_augassign,
    ast.Return: statements.execute_return,
    ast.Raise: statements.execute_raise,
    ast.Assert: statements.execute_assert,
    ast.Delete: assignment.execute_delete,
    ast.Global: statements.execute_global,
    ast.Nonlocal: statements.execute_nonlocal,
    ast.Break: statements.execute_jump,
    ast.Continue: statements.execute_jump,
    ast.If: branches.execute_if,
    ast.For: loops.execute_for,
    ast.AsyncFor: loops.execute_for,
    ast.While: loops.execute_while,
    ast.With: statements.execute_with,
    ast.AsyncWith: statements.execute_with,
    ast.Try: branches.execute_try,
    ast.Match: branches.execute_match,
    ast.FunctionDef: definitions.execute_def,
    ast.AsyncFunctionDef: definitions.execute_def,
    ast.ClassDef: definitions.execute_class,
    ast.Import: importing.execute_import,
    ast.ImportFrom: importing.execute_from,
}


_EXPRESSIONS: dict[type, Callable[..., Value]] = {
    ast.Constant: expressions.evaluate_constant,
    ast.Name: expressions.evaluate_name,
    ast.Attribute: attributes.evaluate_attribute,
    ast.Subscript: items.evaluate_subscript,
    ast.Tuple: expressions.evaluate_tuple,
    ast.List: expressions.evaluate_list,
    ast.Set: expressions.evaluate_list,
    ast.Dict: expressions.evaluate_dict,
    ast.IfExp: branches.evaluate_ifexp,
    ast.BoolOp: branches.evaluate_boolop,
    ast.BinOp: operators.evaluate_binop,
    ast.Compare: branches.evaluate_compare,
    ast.UnaryOp: expressions.evaluate_unary,
    ast.Lambda: definitions.evaluate_lambda,
    ast.ListComp: loops.evaluate_comprehension,
    ast.SetComp: loops.evaluate_comprehension,
    ast.GeneratorExp: loops.evaluate_comprehension,
    ast.DictComp: loops.evaluate_comprehension,
    ast.JoinedStr: expressions.evaluate_joined,
    ast.NamedExpr: expressions.evaluate_named,
    ast.Starred: expressions.evaluate_starred,
    ast.Yield: expressions.evaluate_yield,
    ast.YieldFrom: expressions.evaluate_yield_from,
    ast.Await: expressions.evaluate_await,
    ast.Call: calls.evaluate_call,
}
