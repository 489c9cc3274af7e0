"""Statements that do one thing."""

from __future__ import annotations

import ast

from ddpify.facts import library
from ddpify.facts.interpret.literals import is_data, literal
from ddpify.facts.interpret.state import ELEMENT, Interpreter
from ddpify.facts.model import NOTHING, Lit, Value, join
from ddpify.facts.origins import Origin, apart
from ddpify.facts.record import Kind


def execute_expr(run: Interpreter, node: ast.Expr) -> bool:
    """An expression as a statement; nothing follows a call that does not return."""
    run.expression(node.value)
    if isinstance(node.value, ast.Call):
        changed_by_library(run, node.value)
    return not (isinstance(node.value, ast.Call) and run.trace.values.get(node.value.func, NOTHING).paths() & library.NO_RETURN)


def changed_by_library(run: Interpreter, node: ast.Call) -> None:
    """A library's function whose result nobody takes changes what it is given: lists and arrays may hold the rest of it from here on.

    What collectives change has rules of its own.
    """
    call = run.calls.get((node, run.stack))
    paths = call.func.paths() if call is not None else frozenset()
    if call is None or not paths or paths & library.COLLECTIVES or any(library.row_of(library.EFFECTS, path) is not None for path in paths):
        return
    given = [*zip(node.args, call.args, strict=False), *((k.value, call.keywords.get(k.arg or "", NOTHING)) for k in node.keywords)]
    for expression, value in given:
        rest = library.mixed([v for e, v in given if e is not expression], {})
        kept = Origin("kept", node)
        if not rest.of_kind("batch") or (value.of_kind("batch") and kept not in value.origins):
            continue
        put = Value(frozenset(), rest.origins | {kept}, "other")
        run.events.append((Kind.CHANGE, expression, None, value))
        for obj in value.instances():
            if obj.path in library.COLLECTIONS:
                run.set_attribute(obj, ELEMENT, put, False)
        if isinstance(expression, ast.Name) and not value.objs and any(path.startswith("numpy.") for path in paths):
            run.bind(expression.id, Value(frozenset(), value.origins | put.origins, "other", value.shape))


def execute_return(run: Interpreter, node: ast.Return) -> bool:
    """`return value`."""
    value = run.expression(node.value) if node.value is not None else NOTHING
    if value.objs and all(isinstance(o, Lit) for o in value.objs):
        value = run.decided(value)  # which says nothing but which way was taken
    if not (run.frame.idle and is_data(run.memory, value)):  # what only other settings give
        either = apart(run.frame.returned.origins, value.origins)
        run.frame.returned = run.frame.returned | Value(value.objs, value.origins | either, value.scale, value.shape)
    if not all(isinstance(o, Lit) for o in value.objs):
        run.frame.leaves()
    run.frame.exits.append(run.memory.fork())
    return False


def execute_raise(run: Interpreter, node: ast.Raise) -> bool:
    """`raise error`."""
    for part in (node.exc, node.cause):
        if part is not None:
            run.expression(part)
    return False


def execute_assert(run: Interpreter, node: ast.Assert) -> bool:
    """`assert test, message`; the message is asked for where the test fails, which ends the script."""
    run.expression(node.test)
    if node.msg is not None:
        run.expression(node.msg)
    return True


def execute_global(run: Interpreter, node: ast.Global) -> bool:
    """`global name`."""
    run.frame.globals.update(node.names)
    return True


def execute_nonlocal(run: Interpreter, node: ast.Nonlocal) -> bool:
    """`nonlocal name`."""
    run.frame.nonlocals.update(node.names)
    return True


def execute_jump(run: Interpreter, node: ast.stmt) -> bool:
    """`break` and `continue`: the state goes to the end of the loop."""
    if run.breaks:
        run.breaks[-1].append(run.fork())
        if isinstance(node, ast.Continue):
            run.record.come_again(run.breaks[-1][-1][1].point)
    return False


def execute_with(run: Interpreter, node: ast.With) -> bool:
    """`with a as b`: under `no_grad`, without gradients."""
    quiet = 0
    for item in node.items:
        value = run.expression(item.context_expr)
        if value.kinds() & library.NO_GRAD or any(literal(run.memory.get((o, "mode"), NOTHING)) is False for o in value.instances()):
            quiet += 1
        if item.optional_vars is not None:
            entered = [run.invoke_named(o, "__enter__", node) for o in value.instances() if o.cls is not None]
            made = join([e for e in entered if e is not None]) if any(e is not None for e in entered) else value
            if any(o.path == "generator" for o in value.instances()):
                made = run.element(value)
            run.assign(item.optional_vars, made)
    run.no_grad += quiet
    alive = run.block(node.body)
    run.no_grad -= quiet
    return alive
