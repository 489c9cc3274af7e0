"""Losses that depend on averages or totals of their batch that gradients go through: every rank takes those of all ranks."""

from __future__ import annotations

import ast

from ddpify.edits import Edit, Replace
from ddpify.facts import collect
from ddpify.facts.assumed import GRADED
from ddpify.facts.model import Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import arguments
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.loop import coupled_losses
from ddpify.rules.loop.divisors import places

_RUN_AGAIN = frozenset(("torch.autograd.grad", "torch.utils.checkpoint.checkpoint"))  # what other gradients come from, or collectives
_MOST = 8  # so many numbers are tried one by one


@dataclass(frozen=True)
class SharedNumbers:
    """The averages and totals of a loss, what they become, and the edits by which they do."""

    how: dict[ast.expr, str]
    edits: tuple[Edit, ...]

    @property
    def node(self) -> ast.expr:
        """The first of them in the source."""
        return min(self.how, key=lambda n: (n.lineno, n.col_offset))

    @property
    def imports(self) -> tuple[str, ...]:
        """What the edits must have imported."""
        return ("import torch",) if GRADED["whole"] in self.how.values() else ()

    def outside(self, context: Context) -> frozenset[str]:
        """The modules that the edits stand in and that are not edited yet."""
        return frozenset(context.facts.tree_of(n).name for n in self.how if not context.facts.is_edited(n))


def find_shared(context: Context, node: ast.Call, loss: Value) -> SharedNumbers | None:
    """The averages and totals by which a loss becomes that of all samples, once they are those of all ranks; None where none are seen.

    Some of it must be a plain average, to which the rest is added. Nothing else of a rank's own may meet them: what it makes of them and
    of its own rows has other gradients.
    """
    if coupled_losses.pads(context, loss) or coupled_losses.may_vary_in_shape(context, loss):
        return None
    graded = dict(places(context, lambda n, value: _reduces_rows(context, n, value)))
    if not graded or any(c.func.paths() & _RUN_AGAIN for c in context.facts.after.trace.calls):
        return None
    marked = collect.redistributed_run(context.facts, dict.fromkeys(graded, "mark"))
    used = [n for n in graded if n in coupled_losses.loss_in(marked, node).of_kind("mark")]
    becomes = {n: GRADED["whole"] if graded[n] else "whole" for n in used}
    if not becomes or len(becomes) > _MOST or not _suffices(context, node, becomes):
        return None
    for each in used:
        fewer = {n: how for n, how in becomes.items() if n is not each}
        becomes = fewer if fewer and _may_be_own(context, node, each, fewer) else becomes
    if len(becomes) == len(used):
        return None  # no part of the loss is a plain average
    return SharedNumbers(becomes, tuple(edit(context, n, graded[n]) for n in becomes))


def _reduces_rows(context: Context, node: ast.expr, value: Value) -> bool:
    """Whether a call gives an average or a total of rows, or a number of them that something is divided by."""
    up = context.facts.tree_of(node).parent.get(node)
    counts = value.scale == "count" and isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.right is node
    if not isinstance(node, ast.Call) or not (counts or value.scale in ("mean", "sum")) or value.objs:
        return False
    calls = [c for c in context.facts.after.calls(node) if not c.no_grad]
    own = any(c.func.functions() for c in calls)
    return bool(calls) and not own and all(any(map(_is_of_samples, (c.receiver, *c.args, *c.keywords.values()))) for c in calls)


def _is_of_samples(value: Value) -> bool:
    return value.scale == "sample"


def _suffices(context: Context, node: ast.Call, becomes: dict[ast.expr, str]) -> bool:
    """Whether nothing of a loss is a rank's own once some numbers are those of all ranks."""
    after = collect.redistributed_run(context.facts, becomes)
    loss = coupled_losses.loss_in(after, node)
    return loss.scale is None and coupled_losses.is_of_all_ranks(context, after, node)


def _may_be_own(context: Context, node: ast.Call, number: ast.expr, others: dict[ast.expr, str]) -> bool:
    """Whether an average may stay a rank's own beside numbers of all ranks: it is added to what comes from those, and nothing else."""
    after = collect.redistributed_run(context.facts, others)
    if not coupled_losses.is_of_all_ranks(context, after, node):
        return False
    marked = collect.redistributed_run(context.facts, {**others, number: "mark"})
    return not any(_multiplies(marked, n, number) for tree in context.facts.trees.values() for n in tree.nodes())


def _multiplies(run: Run, node: ast.AST, number: ast.expr) -> bool:
    """Whether an expression makes something else than a total of what comes from one number, and what comes from those of all ranks."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
        added = isinstance(node.op, (ast.Add, ast.Sub))
    elif isinstance(node, ast.Call):
        parts = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *arguments(node)]
        added = bool(run.value(node.func).functions())
    else:
        return False
    values = [run.value(part) for part in parts]
    own, shared = [number in v.of_kind("mark") for v in values], [bool(v.of_kind("whole")) for v in values]
    return not added and any(o and any(shared[:i] + shared[i + 1 :]) for i, o in enumerate(own))


def edit(context: Context, node: ast.expr, graded: bool) -> Edit:
    """The edit that makes a number that of all ranks; where it is evaluated without gradients, too, only where there are some."""
    scale = context.facts.after.value(node).scale
    text = "{0}" if scale == "count" else f"{context.names['average_of_all_ranks']}({{0}})"
    if scale != "mean":
        text = f"{text} * {context.names['world_size']}"
    text = f"{text} if torch.is_grad_enabled() else {{0}}" if graded else text
    alone = isinstance(context.facts.tree_of(node).parent[node], (ast.stmt, ast.Call, ast.keyword)) or " " not in text
    return Replace(node, text if alone else f"({text})", (node,))
