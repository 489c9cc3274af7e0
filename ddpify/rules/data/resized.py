"""Data sets that grow or shrink while they train: a DistributedSampler goes by the length that it has found when it was made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.definitions import GROWS
from ddpify.facts.model import NOTHING, Call, Func, New, Store
from ddpify.facts.tree import walk
from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context

CODE = "DDP301"
_SHRINKS = frozenset(("pop", "popleft", "remove", "clear"))
_ORDERS = frozenset(("torch.randperm", "numpy.random.permutation", "sorted"))
_WHY = "the training data may have another length from here on, and its DistributedSampler keeps the length that it was made with"
_FIX = "make the loader anew after this, with a new DistributedSampler"


def findings(context: Context) -> Iterator[Finding]:
    """The first line of the training that may change the length of what a loader goes through, of each such loader."""
    run, training = context.facts.after, context.facts.training_loops
    for loader in context.facts.loaders:
        around = {loop.node for c in run.calls(loader.node) for loop in c.loops}
        data = [o for o in run.attribute(loader, "dataset").instances() if o.cls is not None]
        if run.attribute(loader, "sampler").instances() or run.attribute(loader, "batch_sampler").instances():
            continue  # they are asked for their length whenever they begin
        for event in (e for o in data for e in _changes(context, o)):
            loops = {loop.node for loop in event.loops} & training
            if loops and not loops & around:
                yield context.manual(CODE, event.node, _WHY, _FIX, level=Safety.REVIEW)
                break


def _changes(context: Context, data: New) -> Iterator[Store | Call]:
    """What changes the attributes that the length of a data set is read from."""
    run, names = context.facts.after, _names(context, data)
    held = {o for name in names for o in run.attribute(data, name).instances()}
    for store in (s for name in sorted(names) for s in run.stores_as.get(name, ())):
        if data in store.receiver.objs and not _keeps(context, store):
            yield store
    for call in run.trace.calls:
        if call.method in GROWS | _SHRINKS and held & call.receiver.instances():
            yield call


def _names(context: Context, data: New) -> set[str]:
    """The attributes that the length of a data set is read from."""
    lengths = context.facts.after.interpreter.find(data.cls, "__len__") if data.cls is not None else None
    nodes = [n for o in (lengths or NOTHING).objs if isinstance(o, Func) for n in walk(o.node)]
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}


def _keeps(context: Context, store: Store) -> bool:
    """Whether what is stored is as long as what was there: another order of it, or of as many."""
    statement = context.facts.tree_of(store.node).statement(store.node)
    nodes = list(walk(statement.value)) if isinstance(statement, ast.Assign) else []
    ordered = any(isinstance(n, ast.Call) and context.facts.after.value(n.func).paths() & _ORDERS for n in nodes)
    return ordered and not any(isinstance(n, ast.Subscript) for n in nodes)
