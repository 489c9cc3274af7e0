"""What one branch of a test alone binds: where that is not taken, there is nothing by its name."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ddpify.facts.tree import Tree, inside, own_nodes, same, walk


def lone_branch(tree: Tree, store: ast.AST, stores: Sequence[ast.AST]) -> ast.If | None:
    """The outermost test around a store whose other branch has none of the stores of the same."""
    path = tree.path(store)
    for up in reversed(path):
        if isinstance(up, ast.If):
            first = any(s in up.body for s in path)
            if not any(n in inside(s) for s in (up.orelse if first else up.body) for n in stores):
                return up
    return None


def is_there(tree: Tree, target: ast.expr, at: ast.stmt) -> bool:
    """Whether a target holds something before a statement of its function: no branch alone gives it what it holds, or it is read anyway."""
    function, path = tree.function(at), tree.path(at)
    named = [n for n in own_nodes(function) if isinstance(n, (ast.Name, ast.Attribute)) and same(n, target)]
    given = [n for n in named if isinstance(n.ctx, ast.Store)]
    parameters = {a.arg for a in walk(function) if isinstance(a, ast.arg) and tree.parent[a] is getattr(function, "args", None)}
    if not given or (isinstance(target, ast.Name) and target.id in parameters):
        return True
    if any(not isinstance(n.ctx, ast.Store) and _is_read_anyway(tree, n, path) for n in named):
        return True
    return any((branch := lone_branch(tree, n, given)) is None or branch in path for n in given if tree.before(n, at))


def _is_read_anyway(tree: Tree, read: ast.AST, path: Sequence[ast.stmt]) -> bool:
    """Whether no branch of a test decides that something is read, but those around a statement."""
    within = tree.path(read)
    return not any(isinstance(up, ast.If) and any(s in (*up.body, *up.orelse) for s in within) and up not in path[1:] for up in within)
