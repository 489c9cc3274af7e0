"""Loaders whose batches the training writes into weights or their gradients, beside a backward call: they feed it, too.

As where a search for an architecture moves its gates by batches of their own: `p.grad = grad(loss(held_out), gates)`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ddpify.facts import library
from ddpify.facts.collect import Facts, batches_of, edited, fetches
from ddpify.facts.model import NOTHING, Loop, New, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import walk
from ddpify.facts.weight_writes import Weights, weight_writes


def feed(facts: Facts) -> None:
    """Let them feed the training in whose loops their batches are read."""
    found = _loaders(facts)
    for training in facts.loops if found else ():
        training.loaders |= found & _read_in(facts.before, training.backward.loops)
    facts.edited = tuple(edited(facts)) if found else facts.edited


def _read_in(run: Run, loops: Collection[Loop]) -> frozenset[New]:
    """The loaders of which batches are read in some loops: in loops over these, one by one or side by side, or fetched."""
    nodes = {loop.node for loop in loops}
    within = [c for c in run.trace.calls if any(around.node in nodes for around in c.loops)]
    read = [*(around.element for c in within for around in c.loops), *(c.result for c in within if fetches(c))]
    return frozenset(o for v in library.with_entries(read) for o in batches_of(run, v))


def _loaders(facts: Facts) -> frozenset[New]:
    """Those that no backward call starts from, where each rank would draw an order of its own."""
    run, feeding = facts.before, {*facts.feeding, *facts.whole_loaders}
    others = {o for o, _ in run.memory if isinstance(o, New) and run.is_loader(o)} - feeding
    drawing = {o for o in others if not run.keeps_order(o)}
    values = library.with_entries((*_written(facts), *_differentiated(facts))) if drawing else ()
    return frozenset(o for v in values for o in drawing & v.of_kind("batch"))


def _written(facts: Facts) -> Iterator[Value]:
    """What the training writes, and what it is computed from where it is written: a converted script reduces it there."""
    for write in weight_writes(facts):
        yield from write.values
        yield from (facts.before.value(n) for given in write.given for n in walk(given) if isinstance(n, ast.expr))


def _differentiated(facts: Facts) -> Iterator[Value]:
    """What the training asks for gradients of by weights: these are averaged over the ranks, whatever becomes of them."""
    run, weights = facts.before, Weights(facts)
    for call in run.calls_of("torch.autograd.grad"):
        by = call.argument(1, "inputs") or NOTHING
        if any(loop.node in facts.training_loops for loop in call.loops) and any(map(weights.hold, (by, run.interpreter.element(by)))):
            yield call.argument(0, "outputs") or NOTHING
