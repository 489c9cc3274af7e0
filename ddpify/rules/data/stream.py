"""A training loader over data that only yields: each rank takes every N-th sample of the same stream."""

from __future__ import annotations

import ast

from ddpify.edits import Replace
from ddpify.facts import library
from ddpify.facts.model import NOTHING, Lit, New, Value, outermost
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import draws
from ddpify.rules.data.loader_call import LoaderCall

ITERABLE = "torch.utils.data.IterableDataset"
_FIX = "in its __iter__, yield every (rank * workers + worker)-th item only"
_WHY = "each rank takes every N-th sample of the stream, for N ranks; the last samples are repeated so that all ranks have equally many"


def shard(site: LoaderCall, dataset: ast.expr) -> Change | Finding:
    """Let each rank read its share of the stream."""
    if problem := _differing_streams(site, dataset) or _other_readers(site, dataset):
        return site.refuse(problem, _FIX)
    if (finding := site.unbatched()) is not None:
        return finding
    size = site.argument("batch_size")
    divided, needs = site.context.divided(size) if size is not None else ([], ())
    share = Replace(dataset, f"{site.name('share_of_stream')}({{0}}{site.dropping()})", (dataset,))
    return site.change([share, *divided], ("share_of_stream", *needs), (), _WHY, Safety.NOTE)


def is_stream(context: Context, data: Value) -> bool:
    """Whether data only yields."""
    is_a = context.facts.after.interpreter.is_a
    of = data.objs or {owner for owner, _ in data.of_kind("method")}  # `stream.shuffle(...)`, `stream["train"].take(640)`
    return any(
        is_a(o, ITERABLE) or (_defines(context, o, "__iter__") and not _defines(context, o, "__getitem__")) or _streamed(context, o)
        for o in data.instances() | {outermost(o) for o in of}
        if isinstance(o, New)
    )


def _streamed(context: Context, data: New) -> bool:
    """Whether data is a package's stream, or asked for as one: `load_dataset(..., streaming=True)`."""
    if data.path.startswith(library.STREAMS):
        return True
    asked = (c.keywords.get("streaming", NOTHING) for c in context.facts.after.calls(data.node) if data.path.startswith("datasets."))
    return any(isinstance(o, Lit) and o.value is True for value in asked for o in value.objs)


def _differing_streams(site: LoaderCall, dataset: ast.expr) -> str:
    """Why ranks would not read the same stream; empty where they do."""
    context, value = site.context, site.context.facts.after.value(dataset)
    interpreter = context.facts.after.interpreter
    seen = all(interpreter.is_a(o, ITERABLE) and _defines(context, o, "__iter__") for o in value.instances())
    if not value.objs or len(value.instances()) != len(value.objs) or not seen or site.only or site.spread:
        return "an iterable data set has no sampler: every rank would train on all of it"
    drawn = draws.of(context, value.instances())
    if context.differs(value) or value.of_kind("random") or draws.made_apart(context, value.instances()):
        return "this iterable data set is made from values that differ between ranks: samples would be missed and repeated"
    if drawn.generators or drawn.unshared:
        return "this iterable data set draws at random: each rank would read another stream, so that samples would be missed and repeated"
    return ""


def _other_readers(site: LoaderCall, dataset: ast.expr) -> str:
    """What reads the stream, or its length, other than through the share of it that the loader is given; empty where nothing does."""
    context, run, loaders = site.context, site.context.facts.after, site.loaders
    streams, workers = run.value(dataset).instances(), site.argument("num_workers")
    if workers is not None and not site.is_(workers, 0) and not draws.of(context, streams).workers:
        return "every worker of this loader reads all of the data set, and so would every rank: samples would be repeated"
    if any(k.arg == "worker_init_fn" and draws.of(context, run.value(k.value).objs).workers for k in site.node.keywords):
        return "the workers of this loader look up the data set, and would find the one that wraps it for the ranks instead"
    attributes = (n for tree in context.facts.trees.values() for n in tree.of(ast.Attribute) if n.attr == "dataset")
    if any(run.value(n.value).instances() & loaders for n in attributes):
        return "this iterable data set is read from its loader, which holds only a part of it on each rank"
    counted = any(call.args and call.args[0].instances() & loaders for call in run.calls_of("len"))
    if counted and not all(_defines(context, o, "__len__") for o in streams):
        return (
            "the number of batches of this iterable data set is not known: ranks with fewer batches would leave the others waiting forever"
        )
    return ""


def _defines(context: Context, data: New, method: str) -> bool:
    """Whether data is of a class of the project that has a method."""
    return data.cls is not None and context.facts.after.interpreter.find(data.cls, method) is not None
