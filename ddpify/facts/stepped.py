"""Which gradients of a backward call are stepped along, rather than thrown away, and which of these a wrapper averages."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.facts.collect import Facts, TrainedModel, optimizer_parameters
from ddpify.facts.model import Call, New, Obj, Value
from ddpify.facts.runs import Run, run_by
from ddpify.facts.tree import names_stored, walk


def optimizers_of(facts: Facts, model: TrainedModel) -> set[New]:
    """The optimizers that move a model's parameters."""
    run = facts.before
    return {o for o in facts.optimizers if run.part_of(owners(facts, o), model.objs)}


def owners(facts: Facts, optimizer: New) -> frozenset[Obj]:
    """The modules and the single parameters that an optimizer was given."""
    known = facts.before.owned
    if optimizer not in known:
        parameters = optimizer_parameters(facts, optimizer)
        known[optimizer] = facts.before.parameters(parameters) | facts.before.single_parameters(parameters)
    return known[optimizer]


def steps_next(facts: Facts, run: Run, backward: Call, optimizer: New, steps: Iterable[Call]) -> bool:
    """Whether an optimizer steps before its gradients are set to zero."""
    own = [s for s in steps if any(optimizer in v.objs for v in (s.receiver, *s.args))]
    resets = [c for c in run.trace.calls if c.method == "zero_grad" and _resets(facts, run, c, optimizer)]
    events = sorted([(s.order, True) for s in own] + [(c.order, False) for c in resets if not _only_sometimes(c, backward, own)])
    later = [step for order, step in events if order > backward.order]
    return (later or [step for _, step in events] or [True])[0]


def _only_sometimes(reset: Call, backward: Call, steps: Iterable[Call]) -> bool:
    """Whether gradients are set to zero under a condition that neither the backward call nor a step is under."""
    known = {id(t) for c in (backward, *steps) for t, _ in c.tests}
    return any(id(t) not in known for t, _ in reset.tests)


def _resets(facts: Facts, run: Run, call: Call, optimizer: New) -> bool:
    if optimizer in call.receiver.objs:
        return True
    models = run.unwrap(call.receiver)
    owned = owners(facts, optimizer)
    return bool(owned) and all(run.part_of((p,), models) for p in owned)


def not_averaged(facts: Facts, model: TrainedModel, thrown_away: bool = False) -> Iterator[Call]:
    """The backward calls whose gradients a wrapper leaves as they are: it averages in the first one that follows a forward.

    With `thrown_away`, those that no step uses, too. https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design
    """
    run = facts.before
    every = [*facts.loops, *facts.discarded]
    calls = [loop.backward for loop in every if any(obj in model.objs for obj, _ in loop.loss.of_kind("forward"))]
    forwards = [c for n in model.forwards for c in run.calls(n) if not c.no_grad and run.unwrap(Value(run_by(c))) & model.objs]
    steps, optimizers = run.steps(facts.optimizers), optimizers_of(facts, model)
    for call in calls:
        if thrown_away or not optimizers or any(steps_next(facts, run, call, o, steps) for o in optimizers):
            last = max((f.order for f in forwards if f.order < call.order), default=0)
            if any(last < c.order < call.order and not _instead(facts, c, call) for c in calls) or _repeated(call, forwards, steps):
                yield call


def _repeated(call: Call, forwards: Iterable[Call], steps: Iterable[Call]) -> bool:
    """Whether a loop runs a call several times for one forward, and not each time for another optimizer's parameters."""
    around = {loop.node for forward in forwards for loop in forward.loops}
    loops = [loop.node for loop in call.loops if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While))]
    return any(loop not in around and not _takes_turns(loop, steps) for loop in loops)


def _takes_turns(loop: ast.For | ast.AsyncFor | ast.While, steps: Iterable[Call]) -> bool:
    """Whether the optimizers that step in a loop are named by what it goes through: `optimizers[i].step()`."""
    names = {n.id for n in names_stored(loop.target)} if not isinstance(loop, ast.While) else set[str]()
    inside = [step.node for step in steps if any(step.node is n for n in walk(loop))]
    return bool(inside) and all(any(isinstance(n, ast.Name) and n.id in names for n in walk(node.func)) for node in inside)


def _instead(facts: Facts, a: Call, b: Call) -> bool:
    """Whether one of two calls runs where a branch does not run the other."""
    x, y = next(((x, y) for x, y in zip((*a.stack, a.node), (*b.stack, b.node), strict=False) if x is not y), (a.node, b.node))
    for up in facts.tree_of(x).ancestors(x):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        branches = [up.body, up.orelse] if isinstance(up, ast.If) else []
        for branch in branches:
            if any(x in set(walk(part)) for part in branch):
                beside = any(y in set(walk(part)) for other in branches if other is not branch for part in other)
                if beside or isinstance(branch[-1], (ast.Continue, ast.Break, ast.Return, ast.Raise)):
                    return True
    return False
