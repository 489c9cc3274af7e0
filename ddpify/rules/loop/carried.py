"""Compute what one step keeps for later ones from the batches of all ranks.

What it does: a loop-carried variable that the loss of later steps reads (losses or features by sample, a running mean) is written with
    the values of all ranks' batches.
Why: each rank would keep values of its own batches only, and compute another loss than the others.
    A pool of earlier rows, from which a step draws, is that of all ranks' rows.
Safety: safe where rows are stored by sample, and where averages, totals and counts are carried on, or a model's buffers follow statistics
    of gathered rows; a NOTE for pools; MANUAL for the rest.
References: https://docs.pytorch.org/docs/stable/distributed.html#collective-functions
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.edits import Edit, Replace
from ddpify.facts.collect import TrainingLoop, loss_of
from ddpify.facts.definitions import Place
from ddpify.facts.interpret import views
from ddpify.facts.library import COLLECTIONS, REFILLS, mixed
from ddpify.facts.model import Loop, New, join, just
from ddpify.facts.tree import inside, last_name
from ddpify.facts.writes import container
from ddpify.records import replace
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.loop import pools, state
from ddpify.rules.loop.branches import has_own_test, under_own_test
from ddpify.rules.loop.coupled_losses import of_training, row_arguments
from ddpify.rules.loop.last_batch import given_to
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
    found = _found(context)
    stuck = [node for node, item in found if isinstance(item, Finding)]
    handed = _handed(context, stuck)
    if handed:
        after = _found(context.after_changes(handed))
        if len([node for node, item in after if isinstance(item, Finding)]) < len(stuck):
            yield from handed
            found = after
    yield from (item for _, item in found)


def _found(context: Context) -> list[tuple[ast.AST, Change | Finding]]:
    """What is to be done where something is kept, each with the node that keeps it."""
    run = context.facts.after
    stored: dict[_Keeps, ast.expr] = {}
    for loop in context.facts.loops:
        loss = join([loss_of(call) for call in run.calls(loop.backward.node)])
        for node in sorted(loss.of_kind("kept"), key=lambda n: n.lineno):
            if node not in stored and _carried(context, loop, node):
                stored[node] = container(_target(context, node))
    kept = state.buffers(context) | {node: of for node, of in stored.items() if isinstance(node, ast.stmt)}
    replicated = _assuming(context, kept) if kept else context
    out: list[tuple[ast.AST, Change | Finding]] = []
    for node, target in stored.items():
        if not _follows(replicated, node):
            shared = pools.shared(context, CODE, _target(context, node)) or (_over_ranks(replicated, node, target),)
            out += [(node, item) for item in shared]
    written = state.written(replicated)
    return out + [(n, item) for n, item in written if not isinstance(item, Change) or context.tree.statement(item.node) not in stored]


def _handed(context: Context, stuck: list[ast.AST]) -> list[Change]:
    """The changes by which the functions that keep something are handed the rows of all ranks, where they are called for nothing else."""
    functions = dict.fromkeys(context.facts.tree_of(node).function(node) for node in stuck)
    calls = {call.node: None for function in functions for call in context.facts.after.calls_to(function)}
    kept = {context.facts.tree_of(n).statement(n): container(_target(context, n)) for n in stuck if isinstance(n, _Keeps)}
    alike, changes = _assuming(context, kept) if calls and kept else context, []
    for node in calls:
        rows = row_arguments(alike, node) if context.facts.is_edited(node) and _only_keeps(alike, node) else None
        if rows:
            edits = tuple(Replace(a, f"{context.names['from_all_ranks']}({{0}})", (a,)) for a in rows)
            shown, whole = context.facts.tree_of(node).shown, tuple((a, "whole") for a in rows)
            changes.append(Change(CODE, _WHY, shown, node, edits, needs=("from_all_ranks",), redistributes=whole))
    return changes


def _only_keeps(context: Context, node: ast.Call) -> bool:
    """Whether all ranks make a call, for equally many rows and without drawing numbers, and nobody takes what it gives."""
    run, calls = context.facts.after, context.facts.after.calls(node)
    given = (v for c in calls for v in (*c.args, *c.keywords.values()) if context.from_sharded_data(v))
    draws = any(node in c.stack and c.result.of_kind("random") for c in run.trace.calls)
    alike = all(of_training(context, v) for v in given) and not any(has_own_test(context, c) for c in calls)
    return isinstance(context.facts.tree_of(node).parent[node], ast.Expr) and alike and not draws


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
    within = run.value(target.value).objs if isinstance(target, ast.Subscript) else ()
    entry = index is None or (within and not context.from_sharded_data(index))  # of a dict: it is replaced, as a variable is
    if entry and not contained and (value.of_kind("forward") or value.scale == "sample"):
        return False  # a loss that is added up; rows that are used with the same rows of the next batch
    if isinstance(node, ast.Call) and last_name(node.func) in REFILLS and value.scale == "sample" and not value.objs:
        return False  # a tensor that each batch fills with its rows
    if index is None and (run.interpreter.timed(value) or (isinstance(node, ast.Assign) and _is_made_of_rows(context, node.value))):
        return False  # a state that goes along with this rank's own sequences
    return is_read_later(context, loop, node)


def _is_made_of_rows(context: Context, node: ast.expr) -> bool:
    """Whether an expression makes a tuple or a list, all of whose entries are rows: `tuple(part.detach() for part in state)`."""
    run, made = context.facts.after, inside(node)
    lists = [o for o in run.value(node).objs if isinstance(o, New) and o.path == "list" and o.node in made]
    entries = [run.interpreter.element(just(o)) for o in lists]
    return bool(lists) and len(lists) == len(run.value(node).objs) and all(entry.scale == "sample" for entry in entries)


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
    batches, target = loop.batch or loop.epoch, _target(context, node)
    in_place = isinstance(node, (ast.Call, ast.AugAssign)) or isinstance(target, ast.Subscript)
    return batches is not None and _is_read_later(context, batches, target, 4 * in_place)


def _is_read_later(context: Context, batches: Loop, target: ast.expr, depth: int) -> bool:
    """Whether later passes of a loop read what is written; a parameter that is changed in place is what its function is given."""
    definitions, tree, base = context.facts.after.definitions, context.facts.tree_of(target), container(target)
    if batches.node not in tree.ancestors(target) and isinstance(base, ast.Name) and _is_local(context, base):
        function = tree.function(base)
        given = given_to(context, function, base.id) if depth and isinstance(function, ast.FunctionDef) else []
        return any(g is not None and _is_read_later(context, batches, g, depth - 1) for g in given)
    if depth and any(_is_read_later(context, batches, tensor, depth - 1) for tensor in _viewed(context, base)):
        return True
    held = [p for p in _places(context, target) if not isinstance(p.owner, New) or definitions.outlives(batches.node, p.owner)]
    return definitions.exposed(batches.node, held)


def _viewed(context: Context, base: ast.expr) -> set[ast.expr]:
    """What tensors something may be a view of."""
    run, tree = context.facts.after, context.facts.tree_of(base)
    held = views.viewed(run.interpreter, base)
    if held is not None and held.tensor is not base:
        return {held.tensor}
    function = tree.function(base)
    bound = {n: of for n, of in run.trace.views.items() if isinstance(base, ast.Name) and n.id == base.id}
    return {of for n, of in bound.items() if context.facts.tree_of(n) is tree and tree.function(n) is function}


def _is_local(context: Context, base: ast.Name) -> bool:
    """Whether a name is bound by its function, and neither declared global nor nonlocal there."""
    names = context.facts.after.scopes.names(context.facts.tree_of(base).function(base))
    return base.id in names.bound - names.of_module - names.of_function


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
        index = target.slice if isinstance(target, ast.Subscript) else None
        if index is not None:
            edits, needs = gather_edits(context, index, node.value)
        own = index is not None and context.from_sharded_data(context.facts.after.value(index))
        if not edits and not own and (parts := sharded_parts(context, node.value, written if index is None else target)):
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
        out = next((k.value for k in node.keywords if k.arg == "out"), None)
        return out or (node.args[0] if node.args else node)
    while isinstance(of, ast.Attribute) and isinstance(of.value, ast.Call):
        of = of.value.func  # an element, made where there was none: `groups.setdefault(key, []).append(value)`
    return of.value if isinstance(of, ast.Attribute) else of
