"""What functions that a loop over batches calls count element by element, in containers that outlive the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import Func, New
from ddpify.facts.tree import inside, walk
from ddpify.facts.writes import Batches, container
from ddpify.rules.context import Context
from ddpify.rules.loop.live_out import made_under
from ddpify.rules.loop.meters import meter


def counted_elsewhere(context: Context, loop: Batches) -> Iterator[ast.Subscript]:
    """The elements that such a function adds to, `counts[kind] += 1`, where which one it is follows from the rows of a batch."""
    run, within = context.facts.after, inside(loop)
    for store in run.trace.stores:
        node = store.node
        if not isinstance(node, ast.Subscript) or node in within or not any(up.node is loop for up in store.loops):
            continue
        chosen = any(run.value(n).batches() for n in keys(node))
        added = isinstance(context.facts.tree_of(node).parent.get(node), ast.AugAssign)
        if added and chosen and _outlives(context, loop, container(node), within):
            yield node


def keys(node: ast.expr) -> Iterator[ast.expr]:
    """What is read to tell which element of a container an expression is about."""
    while isinstance(node, ast.Subscript):
        yield from (n for n in walk(node.slice) if isinstance(n, ast.expr))
        node = node.value


def _outlives(context: Context, loop: Batches, holder: ast.expr, within: frozenset[ast.AST]) -> bool:
    """Whether a container is made neither by the function that adds to it nor in the loop; meters and modules are known otherwise."""
    run = context.facts.after
    if isinstance(holder, ast.Attribute):
        called = {o: run.calls_on.get(o, ()) for o in run.value(holder.value).instances()}
        owners = [o for o, calls in called.items() if any(up.node is loop for c in calls for up in c.loops)]
        return any(not (made_under(o, within) or run.interpreter.is_module(o) or _is_total(context, o, holder.attr)) for o in owners)
    if not isinstance(holder, ast.Name):
        return False
    function, objs = context.facts.tree_of(holder).function(holder), run.value(holder).instances()
    if run.scopes.owner(holder) is not function:
        return not objs or not all(made_under(o, within) for o in objs)
    return isinstance(function, ast.FunctionDef) and _is_given_from_outside(context, loop, function, holder.id, within)


def _is_total(context: Context, obj: New, name: str) -> bool:
    """Whether an attribute is a total of a meter, this rank's own or that of all ranks already."""
    return meter(context, obj) is not None and bool(context.facts.after.attribute(obj, name).origins)


def _is_given_from_outside(context: Context, loop: Batches, function: ast.FunctionDef, name: str, within: frozenset[ast.AST]) -> bool:
    """Whether calls in a loop pass a function, as its argument `name`, what the loop does not bind."""
    bound = {n.id for n in within if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    for call in context.facts.after.trace.calls:
        if call.node not in within or not any(isinstance(o, Func) and o.node is function for o in call.func.objs):
            continue
        given = dict(zip(names[len(names) - len(call.args) :] if names[:1] == ["self"] else names, call.node.args, strict=False))
        given |= {k.arg: k.value for k in call.node.keywords if k.arg}
        passed = given.get(name)
        if isinstance(passed, (ast.Name, ast.Attribute)) and getattr(passed, "id", "") not in bound:
            return True
    return False
