"""What one rank of each node can run ahead of the others: which statements, and the blocks around them that may hold a lock."""

from __future__ import annotations

import ast
import itertools

from ddpify.facts import disk
from ddpify.facts.disk import Touch
from ddpify.facts.library.effects import HANDLES
from ddpify.facts.model import Call
from ddpify.facts.tree import calls_in, inside, walk
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of

_LOCK_FREE = ("torch.", "numpy.", "warnings.", "tempfile.", "tqdm.", "contextlib.suppress", "contextlib.redirect_std", *HANDLES)
_TOGETHER = frozenset(("backward", "step", "zero_grad", "all_reduce", "barrier", "broadcast", "all_gather", "broadcast_object_list"))


def in_turns(context: Context, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that ranks must run one after another so that they do so with this one: itself, or `with` statements around it.

    The context manager of a `with` may hold a lock, and a rank that does so must not wait for one that asks for this lock.
    """
    stacks = {call.stack for node in calls_in(statement) for call in context.facts.after.calls(node)} or {()}
    ways = ([*filter(context.facts.is_edited, stack), statement] for stack in stacks)
    return context.tree.in_order({_outermost_with(context, way) for way in ways})


def _outermost_with(context: Context, way: list[ast.AST]) -> ast.stmt:
    """The outermost `with` on the way to a statement that ranks can run one after another; the statement, where there is none."""
    blocks = (up for node in way for up in reversed(context.tree.path(node)) if isinstance(up, (ast.With, ast.AsyncWith)))
    locked = (block for block in blocks if not all(_holds_no_lock(context, i.context_expr) for i in block.items))
    return next((block for block in locked if free(context, block, calls_under(context, block))), context.tree.statement(way[-1]))


def _holds_no_lock(context: Context, manager: ast.expr) -> bool:
    """Whether a context manager surely makes no other process wait."""
    run = context.facts.after
    paths = {*run.value(manager).paths(), *(o.path for o in run.value(manager).instances())}
    paths |= run.value(manager.func).paths() if isinstance(manager, ast.Call) else set()
    return bool(paths) and all(path.startswith(_LOCK_FREE) for path in paths)


def calls_under(context: Context, statement: ast.stmt) -> list[Call]:
    """The calls that run while a statement does."""
    run, under = context.facts.after, guards_of(context).effects.under
    calls = [c for n in walk(statement) if isinstance(n, ast.Call) for c in (*run.calls(n), *under.get(n, ()))]
    return sorted({id(c): c for c in calls}.values(), key=lambda c: c.order)


def free(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether every rank comes to a statement, and nothing in it trains or waits for other ranks."""
    facts, guards = context.facts, guards_of(context)
    if not context.assumed.replicated_branches.isdisjoint(inside(node)):
        return False  # all ranks ask rank 0 there
    if guards.guarded(node) or _before_the_group(context, node, calls) or _led_by_rank_zero(context, node, calls):
        return False
    for call in calls:
        if call.node in context.training or call.method in _TOGETHER or call.func.paths() & {"torch.nn.parallel.DistributedDataParallel"}:
            return False
        if facts.wrapped(call.func) is not False or facts.model_of(call.func) is not None:
            return False
        if any(facts.after.is_loader(o) for loop in call.loops for o in loop.over.objs):
            return False
        if any(o.kind in ("batch", "decided", "rank", "time") for test, value in call.tests for o in value.origins):
            return False
    return getattr(context.tree.function(node), "name", "") not in ("__getitem__", "__iter__", "collate_fn")


def tests_existence(context: Context, test: ast.expr) -> list[Touch]:
    """What a condition asks of files, itself or in the functions that it calls: whether they are there."""
    run, under = context.facts.after, guards_of(context).effects.under
    calls = [c for n in walk(test) if isinstance(n, ast.Call) for c in (*run.calls(n), *under.get(n, ()))]
    return [t for c in calls for t in disk.touches(c) if t.kind == "look"]


def _led_by_rank_zero(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether rank 0 alone comes to a statement on the way to one of its calls."""
    guards, tree, within = guards_of(context), context.tree, inside(node)
    ways = (itertools.takewhile(lambda n: n not in within, call.stack) for call in calls)
    above = [n for n in dict.fromkeys(itertools.chain(*ways)) if n in tree.parent]
    return any(guards.guarded(n) or any(map(guards.only_outputs, tree.path(n))) for n in above)


def _before_the_group(context: Context, node: ast.stmt, calls: list[Call]) -> bool:
    """Whether a statement runs where the entry imports a module, before it can join the process group."""
    return node not in context.tree.trees[0].parent and any(not context.facts.in_main((*c.stack, c.node)[0]) for c in calls)
