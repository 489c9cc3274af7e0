"""Let all ranks train with the same settings.

What it does: a learning rate or another setting of an optimizer, what a scheduler is given, and what gradients are clipped by, follow
    rank 0's where they depend on an evaluation that every rank makes for itself, on the clock, or on what is not known to be the same in
    every process. Averages, totals and counts of a rank's own batch become those of all ranks; so does the loss that a closure returns
    to LBFGS.
Why: ranks that step with other settings drift apart, and nothing brings their parameters together again.
Safety: safe for an evaluation's numbers, and for averages, totals and counts; a NOTE where rank 0 is followed in what is not known; MANUAL
    for other numbers of a rank's own batch.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts import library, sources
from ddpify.facts.library.generic import needed
from ddpify.facts.model import Call, Func, Method, New, Value
from ddpify.facts.tree import own_statements
from ddpify.placement.lattice import REPLICATE
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.loop import unknown
from ddpify.rules.loop.branches import is_setting, under_own_test
from ddpify.rules.loop.sharded_parts import over_ranks, reduce_edits, sharded_parts

CODE = "DDP409"
TITLE = "keep settings equal on all ranks"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a rate that follows from the epoch",
        'optimizer.param_groups[0]["lr"] = 0.1 * 0.5**epoch\n',
        frame="epoch",
    ),
    Example(
        "a scheduler that counts epochs",
        "torch.optim.lr_scheduler.StepLR(optimizer, 3).step()\n",
        frame="epoch",
    ),
    Example(
        "an optimizer that is made with a number",
        "torch.optim.SGD(model.parameters(), lr=0.05)\n",
        frame="epoch",
    ),
    Example(
        "gradients that are clipped by a number",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a rate that comes from a package nobody has described",
        "import policies\n"
        'optimizer.param_groups[0]["lr"] = policies.rate()\n',
        "import policies\n"
        'optimizer.param_groups[0]["lr"] = same_on_all_ranks(policies.rate())\n',
        frame="epoch",
    ),
    Example(
        "an optimizer's rate that comes from a package nobody has described",
        "import policies\n"
        "other = torch.optim.SGD(model.parameters(), lr=policies.rate())\n",
        "import policies\n"
        "other = torch.optim.SGD(model.parameters(), lr=same_on_all_ranks(policies.rate()))\n",
        frame="epoch",
    ),
    Example(
        "a learning rate, by an evaluation of which every rank makes all",
        "with torch.no_grad():\n"
        "    score = sum(model(x).sum().item() for x, y in test_loader)\n"
        "scheduler.step(score)\n",
        "with torch.no_grad():\n"
        "    score = sum(model.module(x).sum().item() for x, y in test_loader)\n"
        "scheduler.step(from_rank_zero(score))\n",
        frame="epoch",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Broadcast the numbers that optimizers and schedulers are given."""
    yield from _driven(context)
    yield from _made(context)
    yield from _rates(context)
    yield from _schedulers(context)
    yield from _clips(context)
    yield from _closures(context)


def evaluated(value: Value) -> bool:
    """Whether a number is computed from batches, or decided by them."""
    return any(o.kind in ("batch", "decided") for o in value.origins)


def _driven(context: Context) -> Iterator[Finding]:
    """Training that a package which nobody described runs with something of its own, such as settings to try."""
    run = context.facts.after
    around = {node: None for loop in context.facts.loops for c in run.calls(loop.backward.node) for node in c.stack}
    for call in (c for node in around for c in run.calls(node)[:1]):
        handed = any(isinstance(o, Func) and needed(o) for v in (*call.args, *call.keywords.values()) for o in v.objs)
        said = context.facts.project.placements
        names = [p for p in sources.paths(run.interpreter, call) if handed and p not in said and sources.source(p) == "unknown"]
        if names:
            why = f"{unknown.listed(names)} may call the training with another argument on each rank: then each trains something else"
            fix = "let rank 0 alone call it, and broadcast to the other ranks what it hands to the training"
            yield context.manual(CODE, call.node, why, f"{fix}; {unknown.say(names)}")


def _made(context: Context) -> Iterator[Change | Finding]:
    """What optimizers are made with."""
    run, seen = context.facts.after, set[ast.AST]()
    for call in run.trace.calls:
        if call.node in seen or not any(map(library.optimizer_path, call.func.paths())):
            continue
        seen.add(call.node)
        for given in (*call.node.args[1:], *(k.value for k in call.node.keywords if k.arg not in ("params", None))):
            names = unknown.names(context, run.value(given))
            if names and context.facts.is_edited(given):
                edit = Replace(given, f"{context.names['same_on_all_ranks']}({{0}})", (given,))
                where = (CODE, unknown.followed(names), context.tree.shown, given)
                yield Change(*where, (edit,), level=Safety.NOTE, needs=("same_on_all_ranks",))
            elif names:
                why = "this setting would follow a value that differs between ranks: the ranks' parameters drift apart"
                yield context.manual(CODE, given, why, unknown.say(names))


def _rates(context: Context) -> Iterator[Change | Finding]:
    """What is written into an optimizer's parameter groups."""
    seen: set[ast.AST] = set()
    for store in context.facts.after.trace.stores:
        node = store.node
        if node in seen or not isinstance(node, ast.Subscript) or not is_setting(context, node):
            continue
        statement = context.facts.tree_of(node).statement(node)
        factor = statement.value if isinstance(statement, ast.AugAssign) and not under_own_test(context, statement) else None
        value = store.value if factor is None else context.facts.after.value(factor)  # what it is set to elsewhere is looked at there
        names, owned = unknown.names(context, value), context.differs(value)
        if not owned and not evaluated(value):
            continue
        seen.add(node)
        if names and isinstance(statement, (ast.Assign, ast.AugAssign)) and context.facts.is_edited(node):
            edit = Replace(statement.value, f"{context.names['same_on_all_ranks']}({{0}})", (statement.value,))
            why = unknown.followed(names)
            yield Change(CODE, why, context.tree.shown, statement, (edit,), level=Safety.NOTE, needs=("same_on_all_ranks",))
            continue
        alone = isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.Assign) and len(statement.targets) == 1)
        given = statement.value if alone and isinstance(statement, (ast.Assign, ast.AugAssign)) else None
        if given is not None and (change := _reduced(context, given)) is not None:
            yield change
            continue
        why = "this setting would follow a value that differs between ranks: the ranks' parameters drift apart"
        yield context.manual(CODE, node, why, "sum or average what it is computed from over the ranks first")


def _reduced(context: Context, given: ast.expr) -> Change | None:
    """What computes a setting from the batches of all ranks; None where it is not known how, or not all ranks come there."""
    parts = sharded_parts(context, given) if context.facts.is_edited(given) and not under_own_test(context, given) else None
    if not parts:
        return None
    edits, needs = reduce_edits(context, parts)
    why = "this setting follows the batches of all ranks, so that it stays equal on all"
    return Change(CODE, why, context.tree.shown, given, tuple(edits), needs=tuple(sorted(needs)))


def _schedulers(context: Context) -> Iterator[Change | Finding]:
    """The metrics that schedulers are given."""
    run, seen = context.facts.after, set[ast.AST]()
    for call in run.trace.calls:
        value, metric = call.argument(0, "metrics"), argument(call.node, 0, "metrics")
        if call.method != "step" or value is None or call.node in seen or not _is_scheduler(call):
            continue
        seen.add(call.node)
        names, owned = unknown.names(context, value), context.differs(value)
        if metric is None or not (evaluated(value) or owned):
            continue
        if not context.facts.is_edited(call.node) or (owned and not names):
            why = "the learning rate would follow a value that differs between ranks: the ranks' parameters drift apart"
            yield _reduced(context, metric) or context.manual(CODE, call.node, why, _averaged(metric))
            continue
        edit = Replace(metric, f"{context.names['from_rank_zero']}({{0}})", (metric,))
        why = unknown.followed(names) if names else "all ranks use rank 0's value, so that their learning rates stay equal"
        level = Safety.NOTE if names else Safety.SAFE
        yield Change(CODE, why, context.tree.shown, call.node, (edit,), level=level, needs=("from_rank_zero",))


def _is_scheduler(call: Call) -> bool:
    return any(isinstance(o, Method) and isinstance(o.of, New) and "lr_scheduler" in o.of.path for o in call.func.objs)


def _clips(context: Context) -> Iterator[Change | Finding]:
    """What gradients are clipped by."""
    seen: set[ast.AST] = set()
    for call in context.facts.after.trace.calls:
        limit = call.argument(1, "max_norm") or call.argument(1, "clip_value")
        if call.node in seen or not call.method.startswith("clip_grad_") or limit is None or context.placement(limit) == REPLICATE:
            continue
        seen.add(call.node)
        names = unknown.names(context, limit)
        given = argument(call.node, 1, "max_norm") or argument(call.node, 1, "clip_value")
        if names and given is not None and context.facts.is_edited(given):
            edit = Replace(given, f"{context.names['from_rank_zero']}({{0}})", (given,))
            why = unknown.followed(names)
            yield Change(CODE, why, context.tree.shown, call.node, (edit,), level=Safety.NOTE, needs=("from_rank_zero",))
            continue
        why = "gradients would be clipped by a value that differs between ranks: the ranks' parameters drift apart"
        yield (_reduced(context, given) if given is not None else None) or context.manual(CODE, call.node, why, _averaged(given))


def _averaged(given: ast.expr | None) -> str:
    """What to write for a value that differs between ranks."""
    value = f"`{ast.unparse(given)}`" if given is not None else "it"
    return f"average {value} over the ranks first, as a tensor: dist.all_reduce(value); value /= dist.get_world_size()"


def _closures(context: Context) -> Iterator[Change | Finding]:
    """Optimizers that decide by the loss a closure returns."""
    run = context.facts.after
    for call in run.trace.calls:
        if call.method != "step" or not call.args or "torch.optim.LBFGS" not in call.receiver.kinds():
            continue
        for loss in _returned(call.args[0]):
            value = run.value(loss)
            if not context.differs(value):
                continue
            if not context.facts.is_edited(loss) or value.scale not in ("mean", "sum"):
                why = "LBFGS decides by the loss that the closure returns, which differs between ranks: the ranks' parameters drift apart"
                fix = "let the closure return the average over ranks: dist.all_reduce(loss); loss /= dist.get_world_size()"
                yield context.manual(CODE, call.node, why, fix)
                continue
            why = "LBFGS decides by the loss that the closure returns: it is averaged over all ranks, so that all take the same decision"
            where = (CODE, why, context.tree.shown, loss)
            yield Change(*where, (over_ranks(context, loss),), needs=("sum_over_ranks",), redistributes=((loss, "agreed"),))


def _returned(closure: Value) -> list[ast.expr]:
    """What the functions that a value may be return."""
    functions = [o.node for o in closure.objs if isinstance(o, Func) and isinstance(o.node, ast.FunctionDef)]
    return [s.value for f in functions for s in own_statements(f) if isinstance(s, ast.Return) and s.value is not None]
