"""Where a loss stops being known to average over samples: the operation, as a message names it."""

from __future__ import annotations

import ast

from ddpify.facts import collect, library
from ddpify.facts.model import Value
from ddpify.facts.runs import Run
from ddpify.rules.base import Cause
from ddpify.rules.context import Context
from ddpify.rules.loop.coupled_losses import loss_in

_LONGEST = 60  # characters of an expression in a message
_MOST = 40  # operations that are looked at


def cause(context: Context, node: ast.Call, loss: Value) -> Cause | None:
    """The first operation after which a backward call's loss is not known to average over samples; None where no single one is found."""
    run = context.facts.after
    trees = [context.facts.entry, *(t for t in context.facts.trees.values() if t is not context.facts.entry)]
    first = [n for tree in trees for n in tree.nodes() if isinstance(n, ast.expr) and _is_first(run, n, loss)][:_MOST]
    if not first:
        return _where_collated(context, loss)
    used = loss_in(collect.redistributed_run(context.facts, dict.fromkeys(first, "mark")), node).of_kind("mark")
    reached = [n for n in first if n in used]
    found = next((n for n in reached if not _is_followed(run, n)), reached[0] if reached else None)
    if found is None:
        return None
    return _cause(context, found, _why(run, found))


def _cause(context: Context, node: ast.expr, why: str) -> Cause:
    text = ast.unparse(node)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return Cause(text, why, context.facts.tree_of(node).shown, node.lineno)


def _where_collated(context: Context, loss: Value) -> Cause | None:
    """Where a collate function lets samples meet."""
    values = context.facts.after.trace.values
    nodes = [n for n in loss.of_kind("coupled") if isinstance(n, ast.expr) and n not in values]
    return _cause(context, min(nodes, key=lambda n: n.lineno), "combines samples of a batch with one another") if nodes else None


def _is_followed(run: Run, node: ast.expr) -> bool:
    """Whether a value is what a network of the project gives, inside which an operation may be found."""
    called = run.value(node.func).instances() if isinstance(node, ast.Call) else ()
    return any(o.cls is not None or o.path in library.WRAPPERS for o in called)


def _is_first(run: Run, node: ast.expr, loss: Value) -> bool:
    """Whether a value that the loss may come from is of its kind, and nothing that it is computed from is."""
    value = run.value(node)
    if value.scale != loss.scale or not value.of_kind("batch") & loss.of_kind("batch") or isinstance(node, (ast.Name, ast.Starred)):
        return False
    if isinstance(node, ast.Call) and run.value(node.func).functions():
        return False  # what it returns is looked at itself
    operands = _operands(node)
    return bool(operands) and all(run.value(n).scale != loss.scale for n in operands)


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*receiver, *node.args, *(k.value for k in node.keywords)]
    return [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]


def _why(run: Run, node: ast.expr) -> str:
    """What an operation does with the samples."""
    scales = {run.value(n).scale for n in _operands(node)} - {None}
    if isinstance(node, ast.Subscript) and "sample" in scales:
        return "takes some of the rows that a rank has"
    if scales == {"sample"}:
        return "may combine samples with one another"
    if "sample" in scales:
        return "combines samples with a number of a rank's whole batch"
    if scales and scales <= {"count", "total"}:
        return "depends on how many samples a rank has"
    if scales:
        return "is computed from averages or totals over a rank's batch"
    return "depends on the samples in a way that is not known"
