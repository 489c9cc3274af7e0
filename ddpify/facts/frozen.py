"""Modules of which no parameter is trained, whatever the settings: DistributedDataParallel refuses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.facts.held_parts import NO_PARTS, HeldParts
from ddpify.facts.model import NOTHING, Call, Lit, New, Obj, Part, Store, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import is_main


def frozen(run: Run, trained: Mapping[Obj, int]) -> frozenset[Obj]:
    """The modules whose parameters are all frozen, on every way to the training, and not freed after that.

    `trained` has the order of the first backward call that goes back through a module: what is frozen later was trained before.
    """
    changes: list[tuple[Store | Call, Value]] = [(s, s.value) for s in run.stores_as.get("requires_grad", ())]
    changes += [(c, c.args[0] if c.args else NOTHING) for c in run.calls_named("requires_grad_")]
    off, on = dict[Obj, int](), set[Obj]()
    for event, value in sorted(changes, key=lambda change: change[0].order):
        objs = event.receiver.of_kind("parameters") | event.receiver.instances()
        if _is_false(value) and not _is_conditional(run, event):
            objs -= {o for o in objs if any(trained.get(up, event.order) < event.order for up in run.roots(o))}
            off.update((o, event.order) for o in objs)
            on -= objs if not _is_repeated(event) else set()
        else:
            on |= objs
    if not off:
        return frozenset()
    freed = {up for o in (*on, *_added(run, off)) for up in run.roots(o)}
    held = HeldParts(run)
    held.frozen = NO_PARTS
    modules = {up for o in off for up in run.roots(o)}
    return frozenset(m for m in modules - freed if m in off or _all_in(run, held, m, off, freed))


def _added(run: Run, off: dict[Obj, int]) -> Iterator[Obj]:
    """What is put into a module after it has been frozen: a new last layer."""
    for (owner, _), value in run.memory.items():
        frozen_at = [off[up] for up in run.roots(owner) if up in off] if isinstance(owner, (New, Part)) else []
        if frozen_at and any(c.order > min(frozen_at) for o in value.instances() for c in run.calls(o.node)):
            yield owner


def _all_in(run: Run, held: HeldParts, module: Obj, off: dict[Obj, int], freed: set[Obj]) -> bool:
    """Whether every part of a module that has parameters is frozen, by itself or with what holds it."""
    parts = held.parts(module)
    return bool(parts) and all(p not in freed and any(up in off for up in run.roots(p)) for p in parts)


def _is_repeated(event: Store | Call) -> bool:
    """Whether something is done in a loop that goes through anything but parameters."""
    return any(not loop.over.of_kind("parameters") for loop in event.loops)


def _is_false(value: Value) -> bool:
    return bool(value.objs) and all(isinstance(o, Lit) and o.value is False for o in value.objs)


def _is_conditional(run: Run, event: Store | Call) -> bool:
    """Whether parameters are only frozen under a condition, or some of them."""
    trees = [(n, run.scopes.tree(n)) for n in (*event.stack, event.node)]
    around = (up for n, tree in trees if tree is not None for up in tree.ancestors(n))
    return any(isinstance(up, (ast.If, ast.IfExp, ast.Try, ast.While)) and not is_main(up) for up in around)
