"""Averages whose divisor is in view and differs between ranks: a total, divided by the count or the weights of valid entries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts import collect
from ddpify.facts.model import Value
from ddpify.placement.shape import EXTREMES
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.loop.coupled_losses import evaluated_by_all_ranks, loss_in
from ddpify.rules.loop.sharded_parts import sharded_parts


@dataclass(frozen=True)
class Counted:
    """Averages, and the edits that divide their totals by what all ranks count."""

    nodes: tuple[ast.expr, ...]
    edits: tuple[Edit, ...]


def find_averages(context: Context, node: ast.Call, loss: Value) -> Counted | None:
    """The averages by which the loss of a backward call is that of all samples once they are corrected; None where that is not seen."""
    here = {n: e for n in _averages(context, loss) if (e := _edits(context, n))}
    if not here:
        return None
    used = loss_in(collect.redistributed_run(context.facts, dict.fromkeys(here, "mark")), node).of_kind("mark")
    nodes = sorted(used, key=lambda n: (n.lineno, n.col_offset))
    if not nodes or loss_in(collect.redistributed_run(context.facts, dict.fromkeys(nodes, "mean")), node).scale != "mean":
        return None
    return Counted(tuple(nodes), tuple(dict.fromkeys(e for n in nodes for e in here[n])))


def _averages(context: Context, loss: Value) -> Iterator[ast.expr]:
    """Quotients of a batch's totals, and means over some entries of a batch, as far as they are trained through."""
    run, forwards = context.facts.after, loss.of_kind("forward")
    for node in context.facts.entry.nodes():
        value = run.value(node)
        if not isinstance(node, ast.expr) or not value.of_kind("forward") & forwards or value.scale not in ("other", "weighted", *EXTREMES):
            continue
        if not evaluated_by_all_ranks(context, node, value):
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left, right = run.value(node.left), run.value(node.right)
            if left.scale == "sum" and not left.of_kind("offset") and not right.of_kind("forward"):
                yield node
        elif _mean_of(context, node) is not None:
            yield node


def _mean_of(context: Context, node: ast.expr) -> ast.expr | None:
    """What `x.mean()` or `torch.mean(x)` averages."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "mean" and not node.keywords):
        return None
    if "torch.mean" in context.facts.after.value(node.func).paths():
        return node.args[0] if len(node.args) == 1 else None
    return None if node.args else node.func.value


def _edits(context: Context, node: ast.expr) -> tuple[Edit, ...]:
    """The edits that divide a total by the reduced divisor, and multiply it by the number of ranks."""
    run, total, world = context.facts.after, context.names["sum_over_ranks"], context.names["world_size"]
    if isinstance(node, ast.BinOp):
        divisor = _divisor(context, node.right)
        parts = sharded_parts(context, divisor)
        if not parts:
            return ()
        sums = [Replace(p, _summed(context, p, p is divisor), (p,)) for p in parts]
        return *sums, Replace(node, f"{{0}} * {world} / {{1}}", (node.left, node.right))
    entries = _mean_of(context, node)
    if entries is None or run.value(entries).scale != "chosen" or len(ast.unparse(entries)) > 60:
        return ()
    return (Replace(node, f"{{0}}.sum() * {world} / {total}({{0}}.numel())", (entries,)),)


def _summed(context: Context, part: ast.expr, alone: bool) -> str:
    code = f"{context.names['sum_over_ranks']}({{0}})"
    if context.facts.after.value(part).scale != "mean":
        return code
    return f"{code} / {context.names['world_size']}" if alone else f"({code} / {context.names['world_size']})"


def _divisor(context: Context, node: ast.expr) -> ast.expr:
    """The expression that a divisor is, or was assigned, where it has a name of its own and no other use."""
    tree, definitions = context.facts.tree_of(node), context.facts.after.definitions
    if not isinstance(node, ast.Name) or context.facts.after.value(node).scale in ("sum", "count"):
        return node
    reaching = definitions.reaching(node)
    only = reaching.definitions[0] if len(reaching.definitions) == 1 and not reaching.changes and not reaching.undefined else None
    up = tree.parent.get(only) if only is not None and definitions.uses(only) == [node] else None
    return up.value if isinstance(up, ast.Assign) and len(up.targets) == 1 else node
