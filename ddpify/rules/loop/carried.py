"""Compute what one step keeps for later ones from the batches of all ranks.

What it does: a loop-carried variable that the loss of later steps reads (losses or features by sample, a running mean) is written with
    the values of all ranks' batches.
Why: each rank would keep values of its own batches only, and compute another loss than the others.
    A pool of earlier rows, from which a step draws, is that of all ranks' rows.
Safety: safe where rows are stored by sample, and where averages, totals and counts are carried on; a NOTE for pools; MANUAL for the rest.
References: https://docs.pytorch.org/docs/stable/distributed.html#collective-functions
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.edits import Edit
from ddpify.facts.collect import TrainingLoop, loss_of
from ddpify.facts.definitions import Place
from ddpify.facts.library import COLLECTIONS, mixed
from ddpify.facts.model import New, join, just
from ddpify.facts.writes import container
from ddpify.records import replace
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.loop import pools, state
from ddpify.rules.loop.branches import under_own_test
from ddpify.rules.loop.sharded_parts import gather_edits, reduce_edits, sharded_parts

CODE = "DDP408"
TITLE = "keep the state of later steps equal on all ranks"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a number that no loss reads",
        "loss = criterion(model(x), y)\n"
        "history = [loss.item()]\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a tensor that is filled anew in each step",
        "marks = torch.zeros(len(x), 2)\n"
        "marks[torch.arange(len(x)), y] = 1\n"
        "loss = F.mse_loss(model(x), marks)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a running mean that the loss is measured against",
        "centre = 0.0\n"
        "for x, y in loader:\n"
        "    out = model(x)\n"
        "    loss = ((out - centre) ** 2).mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    centre = 0.9 * centre + 0.1 * out.detach().mean(0)\n",
        "centre = 0.0\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    out = model(x)\n"
        "    loss = ((out - centre) ** 2).mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    centre = 0.9 * centre + sum_over_ranks(0.1 * out.detach().mean(0)) / world_size\n",
        frame="batches",
    ),
)  # fmt: skip

_Keeps = ast.Assign | ast.AugAssign | ast.Call
_WHY = "the loss of later steps reads this: it is computed from the batches of all ranks, so that it stays equal on all"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Write what the losses of later steps read with the values of all ranks."""
    run = context.facts.after
    stored: dict[_Keeps, ast.expr] = {}
    for loop in context.facts.loops:
        loss = join([loss_of(call) for call in run.calls(loop.backward.node)])
        for node in sorted(loss.of_kind("kept"), key=lambda n: n.lineno):
            if node not in stored and _carried(context, loop, node):
                stored[node] = container(_target(context, node))
    kept = state.buffers(context) | {node: of for node, of in stored.items() if isinstance(node, ast.stmt)}
    replicated = _assuming(context, kept) if kept else context
    for node, target in stored.items():
        if not _follows(replicated, node):
            yield from pools.shared(context, CODE, _target(context, node)) or (_over_ranks(replicated, node, target),)
    written = state.written(replicated)
    yield from (item for item in written if not isinstance(item, Change) or context.tree.statement(item.node) not in stored)


def _assuming(context: Context, stored: Mapping[ast.stmt, ast.expr]) -> Context:
    """The context in which the loop-carried variables are replicated at the start of a step, as the edits keep them."""
    replicated_after = dict(context.assumed.replicated_after)
    for node, target in stored.items():
        replicated_after[node] = (*replicated_after.get(node, ()), target)
    return context.assuming(replace(context.assumed, replicated_after=replicated_after))


def _carried(context: Context, loop: TrainingLoop, node: _Keeps) -> bool:
    """Whether a statement stores something computed from a rank's own batch that later batches read."""
    run = context.facts.after
    target = _target(context, node)
    if isinstance(node, ast.Call):
        value = join([v for call in run.calls(node) for v in (*call.args, *call.keywords.values())])
    else:
        value = run.value(node.value)
    held = mixed([value, *(run.interpreter.element(just(o)) for o in value.instances() if o.path in COLLECTIONS)], {})
    index = run.value(target.slice) if isinstance(target, ast.Subscript) else None
    decided = any(o.kind == "decided" and o.of in context.sharded_loaders for o in held.origins)
    if not (decided or context.from_sharded_data(held) or (index is not None and context.from_sharded_data(index))):
        return False
    contained = isinstance(node, ast.Call) or any(o.path in COLLECTIONS for o in run.value(target).instances())
    if index is None and not contained and (value.of_kind("forward") or value.scale == "sample"):
        return False  # a loss that is added up; rows that are used with the same rows of the next batch
    if index is None and run.interpreter.timed(value):
        return False  # a state that goes along with this rank's own sequences
    return is_read_later(context, loop, node)


def chooses_for_loss(context: Context, node: ast.AST) -> bool:
    """Whether a statement stores a number that the loss of later steps reads, and that is not itself computed from a batch."""
    if not isinstance(node, (ast.Assign, ast.AugAssign)) or context.from_sharded_data(context.facts.after.value(node.value)):
        return False
    run = context.facts.after
    return any(
        node in loss_of(call).of_kind("kept") and is_read_later(context, loop, node)
        for loop in context.facts.loops
        for call in run.calls(loop.backward.node)
    )


def is_read_later(context: Context, loop: TrainingLoop, node: _Keeps) -> bool:
    """Whether later batches read what a statement stores."""
    target = _target(context, node)
    batches, tree = loop.batch or loop.epoch, context.facts.tree_of(node)
    if batches is None or (batches.node not in tree.ancestors(node) and _is_local(context, container(target))):
        return False
    definitions = context.facts.after.definitions
    held = [p for p in _places(context, target) if not isinstance(p.owner, New) or definitions.outlives(batches.node, p.owner)]
    return definitions.exposed(batches.node, held)


def _is_local(context: Context, base: ast.expr) -> bool:
    """Whether a name is neither declared global nor nonlocal in its function."""
    names = context.facts.after.scopes.names(context.facts.tree_of(base).function(base))
    return isinstance(base, ast.Name) and base.id not in names.of_module | names.of_function


def _places(context: Context, target: ast.expr) -> frozenset[Place]:
    """What an assignment writes to: a variable, or what the objects hold of which its target is an element."""
    definitions, base = context.facts.after.definitions, container(target)
    return (definitions.content(base) if base is not target else frozenset()) or definitions.variable(base)


def _follows(context: Context, node: _Keeps) -> bool:
    """Whether a variable is written with what is equal on all ranks once the variables are: `k = min(max(k, 0), 1)`."""
    if isinstance(node, ast.Call):
        return False
    value = context.facts.after.value(node.value)
    if any(o.path in COLLECTIONS for o in value.instances()):
        return False  # whose elements are equal by then
    return isinstance(_target(context, node), ast.Name) and not context.differs(value) and not under_own_test(context, node)


def _over_ranks(context: Context, node: _Keeps, written: ast.expr) -> Change | Finding:
    tree = context.facts.tree_of(node)
    target = _target(context, node)
    edits: list[Edit] = []
    needs: set[str] = set()
    if not isinstance(node, ast.Call) and context.facts.is_edited(node) and not under_own_test(context, node):
        if isinstance(target, ast.Subscript):
            edits, needs = gather_edits(context, target.slice, node.value)
        elif parts := sharded_parts(context, node.value, written):
            edits, needs = reduce_edits(context, parts)
    if not edits:
        why = f"`{ast.unparse(written)}` keeps values of this rank's batches only, which the loss of later steps reads"
        return context.manual(CODE, node, why, "store the rows of all ranks: gather them and their indices with dist.all_gather first")
    return Change(
        CODE,
        _WHY,
        tree.shown,
        node,
        tuple(edits),
        needs=tuple(sorted(needs)),
        replicates=((node, written),) if isinstance(node, ast.stmt) else (),
    )


def _target(context: Context, node: _Keeps) -> ast.expr:
    """What a statement writes to: a call, to what its method is called on, or a library's function to its first argument."""
    if not isinstance(node, ast.Call):
        return node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    of, paths = node.func, context.facts.after.value(node.func).paths()
    if paths:
        return node.args[0] if node.args else node
    while isinstance(of, ast.Attribute) and isinstance(of.value, ast.Call):
        of = of.value.func  # an element, made where there was none: `groups.setdefault(key, []).append(value)`
    return of.value if isinstance(of, ast.Attribute) else of
