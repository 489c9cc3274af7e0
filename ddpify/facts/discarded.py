"""Backward calls whose parameter gradients are zeroed before any step, or come after all steps: those that perturb or explain inputs."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from ddpify.facts import library
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.model import Call, New, Tup, Value
from ddpify.facts.tree import walk

if TYPE_CHECKING:
    from ddpify.facts.collect import Facts, TrainingLoop
    from ddpify.facts.runs import Run

_STEPS = frozenset(("step", "minimize"))


def discarded(facts: Facts, loops: Collection[TrainingLoop], optimizers: Collection[New]) -> list[TrainingLoop]:
    """The backward calls after which, on every way to a step, the gradients of what the step moves are zeroed, and never read."""
    run = facts.before
    zeroing = run.calls_named("zero_grad")
    if len(loops) < 2 or _reads_gradients(facts):
        return []
    moved = {o: _moved(facts, o) for o in optimizers}
    return [loop for loop in loops if _is_discarded(facts, loop, loops, moved, zeroing)]


def of_inputs(facts: Facts, optimizer: New) -> bool:
    """Whether an optimizer moves rows of a batch alone, such as a perturbation of its samples: those are a rank's own."""
    values = _entries(facts.before, facts.before.attribute(optimizer, "params"))
    rows = all(v.scale == "sample" and v.batches() and not v.objs and not v.of_kind("parameters") for v in values)
    return bool(values) and rows and optimizer.path != "torch.optim.LBFGS"


def _entries(run: Run, value: Value, depth: int = 0) -> list[Value]:
    """The tensors that lists and groups of parameters hold."""
    out: list[Value] = []
    for obj in value.objs if depth < 3 else ():
        if isinstance(obj, Tup):
            out += [v for item in obj.items for v in _entries(run, item, depth + 1)]
        elif isinstance(obj, New) and obj.path in ("list", "dict"):
            name = "[]" if obj.path == "list" else "params"
            out += _entries(run, run.attribute(obj, name), depth + 1)
    return out if value.objs else [value]


def _moved(facts: Facts, optimizer: New) -> set[object]:
    """The modules that an optimizer moves parameters of, and all that hold them."""
    run = facts.before
    parameters = run.parameters(run.attribute(optimizer, "params"))
    return {r for o in parameters for r in run.roots(o)}


def _is_discarded(
    facts: Facts, loop: TrainingLoop, loops: Collection[TrainingLoop], moved: dict[New, set[object]], zeroing: list[Call]
) -> bool:
    run = facts.before
    reached = {r for pair in loop.loss.of_kind("forward") for r in run.roots(pair[0])}
    stepped = [o for o, objs in moved.items() if objs & reached]
    steps = [c for c in run.steps(stepped) if c.method in _STEPS]
    others = [other.backward for other in loops if other is not loop]
    later = [c for c in steps if c.order > loop.backward.order or _loops_around(loop.backward, c) or not _follows(c, others)]
    if not steps:
        return _moves_nothing(facts, loop, moved)
    return all(any(_zeroes(run, b, d, moved) for b in _between(loop.backward, d, zeroing)) for d in later)


def _moves_nothing(facts: Facts, loop: TrainingLoop, moved: dict[New, set[object]]) -> bool:
    """Whether a backward call is for the gradient of rows, through modules of the script that no optimizer was given."""
    run, node = facts.before, loop.backward.node
    if not any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in walk(facts.tree_of(node).function(node))):
        return False
    reached = {pair[0] for pair in loop.loss.of_kind("forward")}
    through = loop.loss.of_kind("parameters") | loop.loss.of_kind("weight")
    return bool(reached) and all(_is_network(run, o) for o in reached) and not through and all(moved.values())


def _is_network(run: Run, obj: object) -> bool:
    """Whether an object is a module of the script, of torch or of another library."""
    if not isinstance(obj, New):
        return False
    return run.interpreter.is_module(obj) or obj.path.startswith("torch.nn.") or is_library_model(obj)


def _follows(step: Call, backwards: Collection[Call]) -> bool:
    """Whether a step follows one of some backward calls in a loop of both: a step that calls its closure, or runs in a hook, does not."""
    return any(backward.order < step.order and _loops_around(backward, step) for backward in backwards)


def _loops_around(backward: Call, step: Call) -> list[ast.AST]:
    """The loops that a backward call and a step both run in."""
    return [loop.node for loop in backward.loops if any(loop.node is other.node for other in step.loops)]


def _between(backward: Call, step: Call, zeroing: list[Call]) -> list[Call]:
    """The calls that zero gradients on every way from a backward call to a step."""
    if step.order > backward.order:
        found = [b for b in zeroing if backward.order < b.order < step.order]
    else:
        around = _loops_around(backward, step)
        found = [b for b in zeroing if b.order < step.order and around and any(loop.node is around[-1] for loop in b.loops)]
    return [b for b in found if _nodes(b) <= _nodes(step)]


def _nodes(call: Call) -> set[ast.AST]:
    """The conditions and the loops that a call stands under."""
    return {test for test, _ in call.tests} | {loop.node for loop in call.loops}


def _zeroes(run: Run, call: Call, step: Call, moved: dict[New, set[object]]) -> bool:
    """Whether a call zeroes the gradients that a step is taken by."""
    own = {o for v in (step.receiver, *step.args) for o in v.objs if o in moved}
    if own and own <= call.receiver.objs:
        return len(call.receiver.objs) == len(own)
    return bool(own) and all(moved[o] & set(run.unwrap(call.receiver)) for o in own if isinstance(o, New))


def _reads_gradients(facts: Facts) -> bool:
    """Whether something but the gradients of a batch's rows is read, or clipped."""
    run = facts.before
    if any(library.clips(path) for call in run.trace.calls for path in call.func.paths()):
        return True
    reads = [n for tree in facts.trees.values() for n in tree.of(ast.Attribute) if n.attr == "grad" and isinstance(n.ctx, ast.Load)]
    bases = [run.value(n.value) for n in reads if not run.value(n.value).paths()]
    return any(v.scale != "sample" or v.of_kind("parameters") for v in bases)
