"""Functions and classes where they are defined."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ddpify.facts import drivers, library
from ddpify.facts.interpret.literals import is_own
from ddpify.facts.interpret.state import Frame, Interpreter
from ddpify.facts.model import (
    NOTHING,
    Class,
    Func,
    New,
    Obj,
    Value,
    join,
    just,
    ordered,
)
from ddpify.facts.record import Kind
from ddpify.facts.recording import Recording
from ddpify.facts.repeats import Outcome, Outcomes, find, keep, lengths
from ddpify.facts.tree import names_in

_ALL_NAMES = frozenset(("locals", "vars", "eval", "exec", "dir"))  # what reads names that are not written out


def execute_def(run: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Bind a function, its defaults and decorators evaluated."""
    inside, made = isinstance(run.frame.node, ast.ClassDef), () if run.frame.local is None else run.stack
    value = just(run.objects.func(node, run.frame.file, None, run.frame.cls if inside else None, made))
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
        run.expression(default)
    decorators = [(decorator, run.expression(decorator)) for decorator in node.decorator_list]
    if run.frame.local is not None:  # a method does not see the names of its class
        run.close_over(node, made)
    run.bind(node.name, value)
    run.bind(node.name, _decorated(run, decorators, value))
    return True


def _decorated(run: Interpreter, decorators: list[tuple[ast.expr, Value]], value: Value) -> Value:
    """What a definition's name holds, once the project's own decorators have been given it."""
    if any(isinstance(d, ast.Name) and d.id in ("property", "staticmethod", "classmethod") for d, _ in decorators):
        return value
    for node, decorator in reversed(decorators):
        drivers.adopt(run, decorator, value)
        given = [apply(run, o, node, [value], {}) for o in ordered(decorator.objs) if isinstance(o, (Func, Class, New)) and is_own(o)]
        value = drivers.grouped(run, node, decorator, next((v for v in [join(given)] if v.objs), value))
    return value


def apply(run: Interpreter, obj: Obj, node: ast.AST, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Call something of the project's own where no call is written: as a decorator, or by a library."""
    if isinstance(obj, Func):
        return run.call_function(obj, node, args, keywords)
    if isinstance(obj, Class):
        return run.construct(obj, node, args, keywords)
    return (run.invoke_named(obj, "__call__", node, args, keywords) if isinstance(obj, New) else None) or NOTHING


def execute_class(run: Interpreter, node: ast.ClassDef) -> bool:
    """Run the body of a class, and bind it."""
    cls = run.classes.get(node)
    if cls is None:
        cls = run.classes[node] = run.objects.cls(node, run.frame.file, tuple(run.expression(b) for b in node.bases))
    decorators = [(decorator, run.expression(decorator)) for decorator in node.decorator_list]
    if not decorators and len(cls.bases) == 1 and cls.bases[0].paths() == {library.DATAPARALLEL} and _reads_inside(node):
        run.bind(node.name, cls.bases[0])  # it does what its base does
        return True
    run.frames.append(Frame(run.frame.file, {}, node))
    run.frame.around, run.frame.cls = run.frames[-2] if run.frames[-2].local is not None else None, cls
    run.block(node.body)
    body = run.frames.pop().local or {}
    for name, value in body.items():
        owned = frozenset(run.objects.bound(o, None, cls) if isinstance(o, Func) else o for o in value.objs)
        run.memory[cls, name] = Value(owned, value.origins, value.scale, value.shape)
    run.bind(node.name, just(cls))
    run.bind(node.name, _decorated(run, decorators, just(cls)))
    return True


def _reads_inside(node: ast.ClassDef) -> bool:
    """Whether a class adds nothing to its base but a way to read what lies inside of it."""
    rest = [s for s in node.body if not isinstance(s, (ast.Pass, ast.Expr))]
    return not node.keywords and all(isinstance(s, ast.FunctionDef) and s.name == "__getattr__" for s in rest)


def evaluate_lambda(run: Interpreter, node: ast.Lambda) -> Value:
    """`lambda x: body`."""
    if run.frame.local is not None:
        run.close_over(node, run.stack)
    return just(run.objects.func(node, run.frame.file, made=() if run.frame.local is None else run.stack))


def carry_out(run: Interpreter, func: Func, frame: Frame) -> None:
    """Run a function's body; what it does is known where it has run so before."""
    if frame.local is None:
        run_body(run, func, frame)
        return
    tests = () if run.loops else tuple(test for test, _ in run.tests)
    forward = run.is_module(func.owner) and getattr(func.node, "name", "") == "forward"
    stack = () if forward else run.stack
    around = run.no_grad > 0, bool(run.loops), tests, run.deciding, frozenset(run.batch_sources.items())
    key = func, stack, frame.owners, *around, _given_values(run, func.node, frame.local)
    known: Outcomes = run.project.memo.setdefault(("outcomes", run.project.entry.tree), {})  # type: ignore[assignment]
    outcome = find(run, known, key)
    if outcome is not None:
        outcome.repeat(run, frame)
        return
    outer, start = run.memory.watch, lengths(run)
    run.memory.watch = recording = Recording(len(run.driven), run.settings)
    run_body(run, func, frame)
    run.memory.watch = outer
    if recording.sound and len(run.driven) == recording.driven and not run.trace.exhausted:
        recording.functions.add((func.node, func.made))
        keep(known, key, Outcome(run, frame, recording, start))
    if isinstance(outer, Recording):
        outer.add(recording)


def _given_values(run: Interpreter, function: ast.AST, local: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    """The parameters that a function reads, with their values."""
    key = ("read", function)
    if key not in run.project.memo:
        run.project.memo[key] = names_in(function)
    names: set[str] = run.project.memo[key]  # type: ignore[assignment]
    return tuple(local.items()) if names & _ALL_NAMES else tuple(item for item in local.items() if item[0] in names)


def run_body(run: Interpreter, func: Func, frame: Frame) -> None:
    """Run the body of a function in a frame."""
    run.frames.append(frame)
    run.events.append((Kind.ENTER, func.node, None, NOTHING))
    if isinstance(func.node, ast.Lambda):
        frame.returned = run.expression(func.node.body)
    else:
        if run.block(func.node.body):
            frame.exits.append(run.memory.fork())
        if frame.exits:
            run.memory.join(frame.exits)
        if frame.goes_into:  # what it makes of a tensor stands for what it makes of what holds tensors
            frame.returned = Value(frozenset(), frame.returned.origins, frame.returned.scale, frame.returned.shape)
    run.frames.pop()
