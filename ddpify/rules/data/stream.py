"""A training loader over data that only yields: each rank takes every N-th sample of the same stream."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import New, Value
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import draws
from ddpify.rules.data.loader_call import CODE, LoaderCall

ITERABLE = "torch.utils.data.IterableDataset"
_FIX = "in its __iter__, yield every (rank * workers + worker)-th item only"
_WHY = "each rank takes every N-th sample of the stream; the last samples are repeated, so that all ranks have equally many"


def shard(site: LoaderCall, dataset: ast.expr) -> Iterator[Change | Finding]:
    """Let each rank read its share of the stream."""
    problem = _problem(site, dataset)
    if problem:
        yield site.refuse(problem, _FIX)
        return
    if (finding := site.unbatched()) is not None:
        yield finding
        return
    size = site.argument("batch_size")
    divided, needs = site.context.divided(size) if size is not None else ([], ())
    share = Replace(dataset, f"{site.name('share_of_stream')}({{0}}{site.dropping()})", (dataset,))
    wanted = ("share_of_stream", *needs)
    yield Change(
        CODE, _WHY, site.context.tree.shown, site.node, (share, *divided), (), Safety.NOTE, discharges=site.discharges, needs=wanted
    )


def is_stream(context: Context, data: Value) -> bool:
    """Whether data only yields."""
    find = context.facts.after.interpreter.find
    for obj in data.instances():
        if context.facts.after.interpreter.is_a(obj, ITERABLE):
            return True
        if obj.cls is not None and find(obj.cls, "__getitem__") is None and find(obj.cls, "__iter__") is not None:
            return True
    return False


def _problem(site: LoaderCall, dataset: ast.expr) -> str:
    """Why ranks cannot share a stream; empty where they can."""
    context, run = site.context, site.context.facts.after
    value = run.value(dataset)
    own = [o for o in value.instances() if o.cls is not None and run.interpreter.is_a(o, ITERABLE)]
    seen = all(run.interpreter.find(o.cls, "__iter__") is not None for o in own if o.cls is not None)
    if not own or len(own) != len(value.objs) or not seen or site.only or any(k.arg is None for k in site.node.keywords):
        return "an iterable data set has no sampler: each rank would read all of it"
    found = draws.of(context, value.instances())
    if context.differs(value) or value.of_kind("random"):
        return "this iterable data set is made from what each rank draws or computes by itself"
    if found.generators or found.unshared:
        return "this iterable data set draws at random, so that ranks do not read the same stream and could not share it"
    workers = site.argument("num_workers")
    if workers is not None and not site.is_(workers, 0) and not found.workers:
        return "every worker of this loader reads all of the iterable data set, and so would every rank"
    if any(k.arg == "worker_init_fn" and draws.of(context, run.value(k.value).objs).workers for k in site.node.keywords):
        return "the workers of this loader find the iterable data set by themselves, which is inside another one then"
    loaders = {o for o in context.facts.loaders if any(o.node is held.about for held in site.discharges)}
    for tree in context.facts.trees.values():
        for node in tree.nodes():
            if isinstance(node, ast.Attribute) and node.attr == "dataset" and run.value(node.value).instances() & loaders:
                return "this iterable data set is read off its loader, which holds a share of it"
    for call in run.trace.calls:
        if "len" in call.func.paths() and call.args and call.args[0].instances() & loaders and not _measured(context, own):
            return "the number of batches of this iterable data set cannot be told"
    return ""


def _measured(context: Context, own: list[New]) -> bool:
    return all(context.facts.after.interpreter.find(o.cls, "__len__") is not None for o in own if o.cls is not None)
