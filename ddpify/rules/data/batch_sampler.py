"""A training loader that is given a batch sampler: each rank takes its share of each batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts.model import New
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import sampler
from ddpify.rules.data.loader_call import CODE, LoaderCall

TORCHS = "torch.utils.data.BatchSampler"
_FIX = "give each rank its share of each batch: batch[rank::world_size]"
_SHARES = (
    "all ranks draw the same batches and each takes its share of each; a batch that they cannot divide repeats its first samples, "
    "so that all ranks have equally many"
)


def shard(site: LoaderCall, given: ast.expr) -> Iterator[Change | Finding]:
    """Give each rank its share of each batch."""
    context, run = site.context, site.context.facts.after
    if any(k.arg is None for k in site.node.keywords) or site.when:
        yield site.refuse("the loader's arguments cannot be seen")
        return
    found = run.value(given)
    abouts = frozenset(n.about for n in site.discharges)
    problem, fork, imports = sampler.same_draws(context, found, abouts)
    if problem:
        yield site.refuse(problem.replace("sampler", "batch sampler"), _FIX, given)
        return
    edits, needs = site.divided()
    if found.instances() and all(o.path == TORCHS for o in found.instances()):
        inside = _inside(context, found.instances(), abouts)
        if inside is None:
            yield site.refuse("the training loader draws by a batch sampler that is used in another way, too", _FIX, given)
            return
        yield Change(
            CODE,
            site.why,
            context.tree.shown,
            site.node,
            tuple(edits + inside[0]),
            imports,
            site.level,
            discharges=site.discharges,
            needs=("rank_sampler", *inside[1], *needs, *fork),
        )
        return
    if context.options.batch_size == "per-rank":
        yield site.refuse("this batch sampler makes batches that all ranks share: they cannot be each rank's own", _FIX, given)
        return
    key = "endless_rank_batch_sampler" if any(sampler.endless(context, o) for o in found.instances()) else "rank_batch_sampler"
    edits.append(Replace(given, f"{site.name(key)}({{0}})", (given,)))
    yield Change(
        CODE,
        _SHARES,
        context.tree.shown,
        site.node,
        (*edits, *sampler.inner_reads(site, "batch_sampler", "batches")),
        imports,
        Safety.NOTE,
        discharges=site.discharges,
        needs=(key, *needs, *fork),
    )


def _inside(context: Context, instances: frozenset[New], loaders: frozenset[ast.AST]) -> tuple[list[Edit], set[str]] | None:
    """The edits of `BatchSampler(inner, batch_size, drop_last)` and what they need; None where they cannot be made."""
    run, edits, needs = context.facts.after, list[Edit](), set[str]()
    others = {o.node for call in run.trace.calls for o in call.result.instances() if run.is_loader(o)} - loaders
    for other in others:
        if any(run.attribute(o, "batch_sampler").instances() & instances for c in run.calls(other) for o in c.result.instances()):
            return None
    for node in {o.node for o in instances}:
        if not isinstance(node, ast.Call) or not context.facts.is_edited(node) or any(k.arg is None for k in node.keywords):
            return None
        inner, size, drop = argument(node, 0, "sampler"), argument(node, 1, "batch_size"), argument(node, 2, "drop_last")
        if inner is None or size is None or drop is None or any(o.path == TORCHS for o in run.value(inner).instances()):
            return None
        no = isinstance(drop, ast.Constant) and drop.value is False
        dropping = "" if no else f", drop_last={context.source(drop)}".replace("{", "{{").replace("}", "}}")
        edits.append(Replace(inner, f"{context.names['rank_sampler']}({{0}}{dropping})", (inner,)))
        share, helpers = context.divided(size)
        edits += share
        needs.update(helpers)
    return edits, needs
