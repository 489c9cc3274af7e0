"""What a loop leaves of its last batch: where that is only shown or stored, it is rank 0's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.writes import Batches
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.live_out import LiveOut


def only_shown(context: Context, live: LiveOut) -> bool:
    """Whether all uses after a loop only go into what is printed, drawn or written."""
    effects = guards_of(context).effects
    return all(any(up in effects.at for up in context.facts.tree_of(use).ancestors(use)) for use in live.uses)


def of_one_batch(context: Context, node: ast.AST) -> bool:
    """Whether what an expression has of a rank's own batches comes from one of them only: nothing was built up over several."""
    return any(True for _ in _own_reads(context, node)) and _of_one(context, node, set())


def _of_one(context: Context, node: ast.AST, seen: set[ast.AST]) -> bool:
    run = context.facts.after
    if any(_holds_own(context, part) for part in ast.walk(node)):
        return False
    for part in _own_reads(context, node):
        reaching = run.definitions.reaching(part)
        if reaching.changes or not reaching.definitions:
            return False
        for definition in reaching.definitions:
            if definition in seen:
                continue
            seen.add(definition)
            loop, value = _batches(context, definition), _assigned(context, definition)
            if loop is None or value is None or run.definitions.exposed(loop, run.definitions.variable(definition)):
                return False
            if value is not loop and not _of_one(context, value, seen):
                return False
    return True


def _holds_own(context: Context, node: ast.AST) -> bool:
    """Whether an object holds numbers of a rank's own: it may have got them from any batch."""
    run = context.facts.after
    return any(context.shared(value) for obj in run.value(node).made() for value in run.of(obj).values())


def _own_reads(context: Context, node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes in an expression that hold numbers of a rank's own."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load):
            run = context.facts.after
            known = isinstance(part, ast.Name) or run.definitions.variable(part)  # what a call gives has been looked into itself
            if known and context.shared(run.value(part)):
                yield part


def _batches(context: Context, node: ast.AST) -> Batches | None:
    """The loop over batches around a node."""
    run = context.facts.after
    for up in context.facts.tree_of(node).ancestors(node):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and run.value(up).batches() & context.shares:
            return up
    return None


def _assigned(context: Context, definition: ast.AST) -> ast.AST | None:
    """What a definition is assigned; for a loop's own variable, the loop."""
    tree = context.facts.tree_of(definition)
    up = tree.parent.get(definition)
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        up = tree.parent.get(up)
    if isinstance(up, (ast.For, ast.AsyncFor)):
        return up
    return up.value if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None
