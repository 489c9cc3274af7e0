"""Where apex's level O1 would go on with casts of weights that have changed since: it keeps those of an evaluation until a loss is scaled.

https://github.com/NVIDIA/apex/pull/132 describes it, and leaves it: what is written into weights between two forwards without gradients
is not seen by the second.
"""

from __future__ import annotations

import ast
from typing import Protocol

from ddpify.facts.library import paths
from ddpify.facts.model import Call, Loop, New, Obj, Part, Value
from ddpify.facts.runs import run_by
from ddpify.facts.tree import walk
from ddpify.facts.weight_writes import Weights
from ddpify.rules.context import Context


class _Event(Protocol):
    """A call or a store: its place in the order of the run, and the loops around it."""

    order: int
    loops: tuple[Loop, ...]


def writes_between(context: Context, backwards: list[Call]) -> dict[ast.AST, ast.stmt | None]:
    """What writes weights between two evaluations with no backward call between them, each with its statement, if one can follow it."""
    run = context.facts.after
    evaluated = [(c, objs) for c in run.trace.calls if c.no_grad and (objs := _models(context, c))]
    forwards = [c for c, _ in evaluated]
    if not forwards:
        return {}
    weights = Weights(context.facts, frozenset().union(*(objs for _, objs in evaluated)))
    first = min(c.order for c in forwards)
    writes: list[tuple[_Event, ast.AST, tuple[ast.AST, ...]]] = [(c, c.node, c.stack) for c in run.trace.calls if any(weights.called(c))]
    writes += [(s, s.node, s.stack) for s in run.trace.stores if weights.stored(s) is not None]
    runs: set[ast.AST] = {n for c in (*forwards, *backwards) for n in (c.node, *c.stack)}
    return {
        node: _statement(context, node, stack, runs)
        for write, node, stack in writes
        if (write.order > first or write.loops)
        and any(_reaches(f, write, backwards) for f in forwards)
        and any(_reaches(write, f, backwards) for f in forwards)
    }


def _models(context: Context, call: Call) -> frozenset[Obj]:
    """What a call runs that may have parameters."""
    run = context.facts.after
    if call.method in paths.MODULE_METHODS - {"forward"} or not (call.args or call.keywords):
        return frozenset()
    return frozenset(o for o in run.unwrap(Value(run_by(call))) if isinstance(o, (New, Part)) and not run.has_no_parameters(o))


def _reaches(one: _Event, other: _Event, stops: list[Call]) -> bool:
    """Whether a run may come from one event to another past none of some calls: straight on, or by another turn of a loop around both."""
    if one.order < other.order and not any(one.order < s.order < other.order for s in stops):
        return True
    nodes = [loop.node for loop in other.loops]
    for at, loop in enumerate(one.loops):
        if loop.node in nodes:
            inside = [s.order for s in stops if loop.node in [around.node for around in s.loops[: at + 1]]]
            if not any(order > one.order or order < other.order for order in inside):
                return True
    return False


def _statement(context: Context, node: ast.AST, stack: tuple[ast.AST, ...], runs: set[ast.AST]) -> ast.stmt | None:
    """The statement of an edited file that makes a write, with the loops around it that run no model; None where nothing can follow it."""
    for at in (n for n in (node, *reversed(stack)) if not isinstance(n, ast.Module) and context.facts.is_edited(n)):
        tree = context.facts.tree_of(at)
        statement = tree.statement(at)
        if not isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)):
            continue  # behind a return nothing is run: its caller's statement is next
        for up in tree.ancestors(statement):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)) or not runs.isdisjoint(walk(up)):
                break
            if isinstance(up, (ast.For, ast.While, ast.With)):
                statement = up
        return statement
    return None
