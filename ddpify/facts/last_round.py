"""Which statements of a loop the last round runs in vain: what they compute is for a next round, which there is none of."""

from __future__ import annotations

import ast

from ddpify.facts.tree import walk


def in_vain(loop: ast.For, function: ast.AST) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements of a loop of `function` whose results are not read once it has ended; and all others of it."""
    live, vain, others = _live_after(loop, function) or set(), list[ast.stmt](), list[ast.stmt]()
    for statement in reversed(loop.body):
        bound = _bound(statement)
        if bound is not None and live.isdisjoint(bound):
            vain.append(statement)
            continue
        others.append(statement)
        live = _before(statement, live)
    return vain, others


def _live_after(loop: ast.stmt, around: ast.AST) -> set[str] | None:
    """The names that are read once a statement in `around` has run, before they are given another value; None where it is not in there."""
    for block in _blocks(around):
        for i, statement in enumerate(block):
            live = set[str]() if statement is loop else _live_after(loop, statement)
            if live is None:
                continue
            if isinstance(statement, (ast.For, ast.While)) and statement is not loop:
                live |= _read(statement)
            behind = set[str]()
            for after in reversed(block[i + 1 :]):
                behind = _before(after, behind)
            return live | behind
    return None


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    handlers = [h.body for h in getattr(node, "handlers", [])]
    return [b for b in (getattr(node, field, []) for field in ("body", "orelse", "finalbody")) if isinstance(b, list)] + handlers


def _before(statement: ast.stmt, live: set[str]) -> set[str]:
    """The names whose values are read from a statement on, where those of `live` are read behind it."""
    simple = isinstance(statement, ast.Assign)
    return live - ((_bound(statement) or set()) if simple else set()) | _read(statement)


def _read(node: ast.AST) -> set[str]:
    """The names that a statement reads."""
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _bound(statement: ast.stmt) -> set[str] | None:
    """The names that a statement does nothing but give a value; None where it does something else."""
    match statement:
        case ast.Assign(targets=targets) if all(isinstance(n, (ast.Name, ast.Tuple, ast.expr_context)) for t in targets for n in walk(t)):
            return {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)}
        case ast.If(body=body, orelse=orelse):
            found = [_bound(s) for s in (*body, *orelse)]
            return None if None in found else set().union(*(f for f in found if f is not None))
    return None
