"""Where apex.amp.initialize goes: after the models and optimizers are made, before checkpoints are loaded and models are wrapped."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from itertools import islice

from ddpify.facts import collect, library, runs, wrap_places
from ddpify.facts.collect import Facts, TrainedModel
from ddpify.facts.model import Call
from ddpify.facts.tree import own_nodes, same, structure, walk
from ddpify.facts.wrap_places import Event
from ddpify.records import dataclass


@dataclass(frozen=True, eq=False)
class Target:
    """What a name holds: a model or an optimizer, or a list or dict of them (`container`)."""

    node: ast.expr
    objs: frozenset[object]
    container: str = ""


@dataclass(frozen=True, eq=False)
class Site:
    """The statement after which amp is initialised, with what it is given by its names there; `event` is the last thing it waits for."""

    after: ast.stmt
    models: tuple[Target, ...]
    optimizers: tuple[Target, ...]
    event: Event


@dataclass(frozen=True)
class Nowhere:
    """No such place: at which node it fails, and why."""

    node: ast.AST
    why: str


def place(facts: Facts) -> Site | Nowhere | None:
    """Where amp can be initialised once for all that is trained; None where nothing was seen to be trained."""
    run = facts.before
    firsts = [c for m in facts.models for n in m.forwards for c in run.calls(n) if not c.no_grad]
    if not firsts or not facts.optimizers:
        return None
    train = min(firsts, key=lambda c: c.order)
    event = _last_awaited(facts, train)
    return event if isinstance(event, Nowhere) else _site(facts, event, train)


def _last_awaited(facts: Facts, train: Call) -> Event | Nowhere:
    """The last event before the training that makes an optimizer or a model, or writes to a model's parameters."""
    run, around = facts.before, {loop.node for loop in train.loops}
    events: list[Event] = []
    for optimizer in sorted(facts.optimizers, key=runs.place_of):
        creations = [c for c in run.calls(optimizer.node) if optimizer in c.result.objs] if isinstance(optimizer.node, ast.Call) else []
        if not creations or any(c.order > train.order for c in creations):
            return Nowhere(optimizer.node, "this optimizer is made after the training has begun, and amp.initialize runs once, before it")
        if any({loop.node for loop in c.loops} & around for c in creations):
            return Nowhere(optimizer.node, "this optimizer is made anew while the training goes on, and amp.initialize runs once")
        events += [(c.order, c.node, c.stack) for c in creations]
    for model in facts.models:
        if wrap_places.made_in(run, model) & around:
            return Nowhere(collect.first_node(model), "this model is made anew while the training goes on, and amp.initialize runs once")
        events += islice(wrap_places.writes(facts, model, train.order, False, around), 1)
    return max(events, key=lambda e: e[0])


def _site(facts: Facts, event: Event, train: Call) -> Site | Nowhere:
    """The statement after an event, and before checkpoints and wraps, where all that is trained has names."""
    loads = _loads(facts, event[0], train.order)
    stepped = [TrainedModel(frozenset({o}), frozenset()) for o in sorted(facts.optimizers, key=runs.place_of)]
    for _, statement, _ in wrap_places.statements_between(facts, event, train):
        inside = set(walk(statement))
        if any(inside & {c.node, *c.stack} for c in loads):
            continue
        models = [_target(facts, statement, model, False) for model in facts.models]
        optimizers = [_target(facts, statement, optimizer, True) for optimizer in stepped]
        early = any(t is not None and _is_wrapped(facts, statement, t.node) for t in models)
        if early and None not in optimizers:
            return Nowhere(statement, "this model is wrapped by then: amp.initialize comes between optimizer and wrapper")
        if None not in models and None not in optimizers:
            return Site(statement, _once(models), _once(optimizers), event)
    return Nowhere(event[1], "no place was found where all models and optimizers have names, to initialise amp with them")


def _loads(facts: Facts, after: int, before: int) -> list[Call]:
    """The calls between two events that load what a checkpoint holds: amp comes first."""
    return [c for c in facts.before.trace.calls if c.method == "load_state_dict" and after < c.order < before]


def _target(facts: Facts, statement: ast.stmt, model: TrainedModel, others: bool) -> Target | None:
    """What holds a model, or an optimizer, once a statement has run; with `others`, an attribute of any object, too."""
    for node in wrap_places.targets(facts, facts.tree_of(statement), statement, model, others):
        return Target(node, model.objs, wrap_places.container_kind(facts, statement, node))
    return None


def _is_wrapped(facts: Facts, statement: ast.stmt, target: ast.expr) -> bool:
    """Whether a name holds a DistributedDataParallel once a statement has run."""
    run, tree = facts.before, facts.tree_of(statement)
    named = [n for n in own_nodes(tree.function(statement)) if isinstance(n, (ast.Name, ast.Attribute)) and same(n, target)]
    bound = [n for n in named if isinstance(n.ctx, ast.Store) and not tree.after(n, statement)]
    last = next((n for n in bound if not any(tree.after(o, n) for o in bound)), None)
    return last is not None and bool((run.value(last) | wrap_places.stored(run, last)).kinds() & library.DDPS)


def _once(found: list[Target | None]) -> tuple[Target, ...]:
    """The targets, those that one list holds together as one."""
    out: dict[Hashable, Target] = {}
    for target in found:
        if target is not None:
            key = structure(target.node)
            out[key] = Target(target.node, target.objs | (out[key].objs if key in out else frozenset()), target.container)
    return tuple(out.values())
