"""A training loader that is given a batch sampler: each rank takes its share of each batch."""

from __future__ import annotations

import ast

from ddpify.edits import Edit, Replace, escaped
from ddpify.facts.model import New
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import sampler
from ddpify.rules.data.loader_call import LoaderCall

TORCHS = "torch.utils.data.BatchSampler"
_FIX = "give each rank its part of each batch: batch[rank::world_size]"
_SHARES = (
    "all ranks draw the same batches and each takes its part; a batch that they cannot divide repeats its first samples, "
    "so that all ranks have equally many"
)
_PARTS = "all ranks draw the same batches, and each reads its part"


def shard(site: LoaderCall, expression: ast.expr) -> Change | Finding:
    """Give each rank its share of each batch."""
    context, value = site.context, site.context.facts.after.value(expression)
    samplers = value.instances()
    if site.spread:
        return site.refuse("the loader's arguments are not written out here, so that no sampler can be added")
    if problem := sampler.differing_draws(site, value):
        return site.refuse(problem.replace("sampler", "batch sampler"), _FIX, expression)
    if samplers and all(o.path == TORCHS for o in samplers) and not site.when:
        return _shared_inside(site, expression, samplers)
    if context.options.batch_size == "per-rank":
        return site.refuse(
            "this batch sampler makes the batches of all ranks: with --batch-size per-rank, each rank would need its own", _FIX, expression
        )
    key = "endless_rank_batch_sampler" if any(sampler.endless(context, o) for o in samplers) else "rank_batch_sampler"
    forks, imports = sampler.forks(context, value)
    divided, needs = site.divided()
    whole = all(o.node in context.facts.base.read_whole for o in site.loaders)  # they are put together again: nothing may be repeated
    given = sampler.alike(context, value) + ", fill=False" * whole
    text = f"{site.name(key)}({given})" + (f" if {site.when} else {{0}}" if site.when else "")
    share = Replace(expression, text, (expression,))
    reads = sampler.inner_reads(site, "batch_sampler", "batches")
    if isinstance(reads, Finding):
        return reads
    why, level = (_PARTS, Safety.SAFE) if whole else (_SHARES, Safety.NOTE)
    return site.change([*divided, share, *reads], (key, *needs, *forks), imports, why, level)


def _shared_inside(site: LoaderCall, expression: ast.expr, samplers: frozenset[New]) -> Change | Finding:
    """Give torch's `BatchSampler(inner, batch_size, drop_last)` this rank's share of the inner sampler, and its batch size."""
    context, calls = site.context, {o.node for o in samplers}
    shares = [share for call in calls if (share := _share_of_inner(context, call)) is not None]
    if len(shares) < len(calls) or _serves_others(site, samplers):
        return site.refuse("the training loader draws by a batch sampler that is used in another way, too", _FIX, expression)
    forks, imports = sampler.forks(context, context.facts.after.value(expression))
    edits, needs = site.divided()
    for inner, helpers in shares:
        edits += inner
        needs += helpers
    return site.change(edits, ("rank_sampler", *needs, *forks), imports)


def _serves_others(site: LoaderCall, samplers: frozenset[New]) -> bool:
    """Whether a loader that does not train draws by a batch sampler, too."""
    run, trained = site.context.facts.after, {o.node for o in site.loaders}
    loaders = (o for call in run.trace.calls for o in call.result.instances() if o.node not in trained and run.is_loader(o))
    return any(run.attribute(o, "batch_sampler").instances() & samplers for o in loaders)


def _share_of_inner(context: Context, node: ast.AST) -> tuple[list[Edit], list[str]] | None:
    """The edits of a call of `BatchSampler`, and what they need; None where they cannot be made."""
    if not isinstance(node, ast.Call) or not context.facts.is_edited(node) or any(k.arg is None for k in node.keywords):
        return None
    inner, size, drop = argument(node, 0, "sampler"), argument(node, 1, "batch_size"), argument(node, 2, "drop_last")
    if inner is None or size is None or drop is None or any(o.path == TORCHS for o in context.facts.after.value(inner).instances()):
        return None
    keeps = isinstance(drop, ast.Constant) and drop.value is False
    dropping = "" if keeps else f", drop_last={escaped(context.source(drop))}"
    alike = sampler.alike(context, context.facts.after.value(inner))
    share, needs = context.divided(size)
    return [Replace(inner, f"{context.names['rank_sampler']}({alike}{dropping})", (inner,)), *share], list(needs)
