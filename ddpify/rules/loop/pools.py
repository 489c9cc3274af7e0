"""Pools of what earlier batches gave: a method that keeps some of the rows it is handed, and gives back as many, old and new.

Each rank hands it the rows of the whole batch, and all draw the same random numbers: each then holds the pool that one process would hold.
Of what the method gives, each rank takes its own rows.
"""

from __future__ import annotations

import ast

from ddpify.edits import Replace
from ddpify.facts.model import Call, Func, New
from ddpify.facts.tree import argument, is_number, walk
from ddpify.facts.writes import container
from ddpify.records import replace
from ddpify.rules.base import Change, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import draws
from ddpify.rules.loop.coupled_losses import evaluated_by_all_ranks, row_arguments

_JOINS = frozenset(("torch.cat", "torch.concat", "torch.stack"))
_WHY = "later steps read what this keeps: all ranks gather the whole batch for it and draw alike; each takes its rows of what comes back"


def shared(context: Context, code: str, target: ast.expr) -> list[Change]:
    """The changes by which all ranks share the pool that `target`, an entry of an attribute, is stored into; none where there is none."""
    tree, pool = context.facts.tree_of(target), container(target)
    method = tree.function(target)
    if not isinstance(pool, ast.Attribute) or not isinstance(method, ast.FunctionDef):
        return []
    if not _is_its_own(context, pool, method) or not _gives_one_for_each(context, method):
        return []
    calls = {c.node: c for c in context.facts.after.calls_to(method)}
    changes = [_shared(context, code, call) for call in calls.values()]
    return [change for change in changes if change is not None] if all(changes) else []


def _is_its_own(context: Context, pool: ast.Attribute, method: ast.FunctionDef) -> bool:
    """Whether nothing but a method, and what makes its object, reads or writes an attribute."""
    run, objs = context.facts.after, context.facts.after.value(pool.value).objs
    others = (
        n
        for tree in context.facts.trees.values()
        for n in tree.of(ast.Attribute)
        if n.attr == pool.attr and tree.function(n) is not method and getattr(tree.function(n), "name", "") != "__init__"
    )
    return all(isinstance(o, New) for o in objs) and not any(run.value(n.value).objs & objs for n in others)


def _gives_one_for_each(context: Context, method: ast.FunctionDef) -> bool:
    """Whether a method gives one row for each row that it is handed: each pass of a loop over these adds one to the list that it joins."""
    tree, run = context.facts.tree_of(method), context.facts.after
    joins = [n for n in walk(method) if isinstance(n, ast.Call) and run.value(n.func).paths() & _JOINS]
    if len(joins) != 1 or not joins[0].args or not isinstance(joins[0].args[0], ast.Name):
        return False
    (join,), rows, dim = joins, joins[0].args[0].id, argument(joins[0], 1, "dim")
    added = [n for n in walk(method) if _adds(n, rows)]
    loops = {next((up for up in tree.ancestors(n) if isinstance(up, (ast.For, ast.While, ast.FunctionDef))), method) for n in added}
    loop = loops.pop() if len(loops) == 1 else None
    parameters = {a.arg for a in method.args.args}
    if not isinstance(loop, ast.For) or _root(loop.iter) not in parameters or _added(loop.body, rows) != {1}:
        return False
    assigns = [s for s in walk(method) if isinstance(s, ast.Assign) and join in walk(s.value)]
    joined = {t.id for s in assigns for t in s.targets if isinstance(t, ast.Name)}
    given = [n.value for n in walk(method) if isinstance(n, ast.Return)]
    ends = all(v is not None and (join in walk(v) or _root(v) in joined | parameters) for v in given)
    return ends and (dim is None or is_number(dim, 0))


def _added(body: list[ast.stmt], rows: str) -> set[int]:
    """How many entries statements add to a list, on each way through them; -1 where that is not seen."""
    ways = {0}
    for statement in body:
        if isinstance(statement, ast.If):
            here = _added(statement.body, rows) | _added(statement.orelse, rows)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Pass)):
            here = {sum(_adds(n, rows) for n in walk(statement))}
        else:
            here = {-1}
        ways = {-1 if -1 in (way, more) else way + more for way in ways for more in here}
    return ways


def _adds(node: ast.AST, rows: str) -> bool:
    """Whether a node is `rows.append(...)`."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "append" and isinstance(func.value, ast.Name) and func.value.id == rows


def _root(node: ast.expr) -> str:
    """The name that an expression is an attribute of, or a call of a method of; else empty."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _shared(context: Context, code: str, call: Call) -> Change | None:
    """One call of the method, with all ranks' rows."""
    node, value = call.node, context.facts.after.value(call.node)
    statement = context.facts.tree_of(node).statement(node)
    if not context.facts.is_edited(node) or not isinstance(statement, ast.Assign) or value.objs or value.of_kind("turned"):
        return None
    rows = row_arguments(context, node)
    if not rows or not evaluated_by_all_ranks(context, node, value):
        return None
    names, drawn = context.names, draws.of(context, frozenset(o for o in call.func.objs if isinstance(o, Func)))
    if drawn.unshared or drawn.workers:
        return None
    edits = [Replace(r, f"{names['from_all_ranks']}({{0}})", (r,)) for r in rows]
    edits.append(Replace(node, f"{names['rows_of_rank']}({{0}})", (node,)))
    change = Change(code, _WHY, context.facts.tree_of(node).shown, statement, tuple(edits), level=Safety.NOTE)
    if drawn.generators:
        under = draws.under_rank_zero(context, code, _WHY, statement, drawn.generators)
        change = replace(change, edits=(*change.edits, *under.edits), imports=under.imports, needs=under.needs)
    turned = (*((r, "whole") for r in rows), (node, "share"))
    return replace(change, needs=("from_all_ranks", "rows_of_rank", *change.needs), redistributes=turned)
