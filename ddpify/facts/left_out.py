"""The parts of a model that its training forwards leave out, and those of them that a loss uses nevertheless."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ddpify.facts import library
from ddpify.facts.collect import TrainedModel, TrainingLoop
from ddpify.facts.held_parts import NO_PARTS, HeldParts, Parts
from ddpify.facts.interpret.state import ELEMENT
from ddpify.facts.model import Call, New, Obj, Part, Value
from ddpify.facts.record import Kind
from ddpify.facts.runs import Run
from ddpify.facts.tree import inside, last_name
from ddpify.facts.used_parameters import Uses

LeftOut = tuple[Obj, Obj, Uses]


def left_out(run: Run, model: TrainedModel, loop: TrainingLoop) -> tuple[LeftOut, ...]:
    """The parts that forwards leave out which a backward goes back through: each with its module, and with what is known of the uses."""
    key = left_out, model.objs, loop.backward.node, loop.backward.stack
    if key not in run.known:
        run.known[key] = tuple(_left_out(run, model, loop))
    return run.known[key]  # type: ignore[return-value]


def _left_out(run: Run, model: TrainedModel, loop: TrainingLoop) -> Iterator[LeftOut]:
    forwards: dict[Obj, list[list[Call]]] = {}
    for obj, node in loop.loss.of_kind("forward"):
        calls = [c for c in run.calls(node) if not c.no_grad]
        if obj in model.objs and calls:
            forwards.setdefault(obj, []).append(calls)
    for obj, several in forwards.items():
        uses = Uses(run)
        if parts := uses.held.parts(obj):
            used = [uses.forward(obj, calls) for calls in several]
            ways = {_way(run, c) for calls in several for c in calls}
            if len(ways) == 1:  # all of them run before the backward
                used = [frozenset().union(*used)]
            detached = _detached(run, parts, loop)
            uses.by_condition -= detached  # whichever of them was built, no gradient reaches it
            unused = (parts - used[0].intersection(*used[1:])) | detached | (parts & uses.detached)
            yield from ((obj, part, uses) for part in unused)


def leaves_out(run: Run, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether a part of the model may be left out, or detached, by the forwards that a backward goes back through."""
    return any(not (part in uses.by_condition and uses.held.optional(part, obj)) for obj, part, uses in left_out(run, model, loop))


def leaves_out_outputs(run: Run, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether parts of the model only lead to outputs that a backward does not start from, or not in every step."""
    held, reached = HeldParts(run), dict[object, set[object]]()
    outputs: dict[object, set[frozenset[tuple[object, frozenset[Obj]]]]] = {}
    always, sometimes = loop.loss.of_kind("output"), loop.loss.of_kind("sometimes")
    for node, name, all_of in (*always, *(s for s in sometimes if not any(a[0] is s[0] for a in always))):
        if node in model.forwards:
            reached.setdefault(node, set()).add(name)
            outputs.setdefault(node, set()).add(frozenset(all_of))
    for node, names in reached.items():
        one = ELEMENT in names and not any(a[:2] == (node, ELEMENT) for a in always)  # of a list of them
        if one and any(held.parts(part) for given in outputs[node] for part in dict(given).get(ELEMENT, NO_PARTS) - model.objs):
            return True
        steps = [{name} for name in names] if node in loop.loss.of_kind("apart") else [names]
        for given, chosen in itertools.product(map(dict, outputs[node]), steps):
            used = frozenset().union(*(given.get(n, frozenset()) for n in chosen))
            if any(held.parts(part) for parts in given.values() for part in parts - used - model.objs):
                return True
    return False


def hides_outputs(run: Run, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether forwards that leave something out give it in an object, in which a wrapper does not look for what is used.

    In a data class it does, but lets no gradient of zero flow into what a loss does not read, as it does in tuples, lists and dicts.
    """
    given = (o for node in model.forwards for call in run.calls(node) for o in call.result.instances())
    objects = [o for o in given if not run.interpreter.is_module(o) and (o.cls is not None or o.path in library.HOLDERS)]
    if not objects:
        return False
    return leaves_out_outputs(run, model, loop) or (not all(map(_is_data_class, objects)) and leaves_out(run, model, loop))


def _is_data_class(obj: New) -> bool:
    decorators = obj.cls.node.decorator_list if obj.cls is not None else ()
    return any(last_name(d.func if isinstance(d, ast.Call) else d) == "dataclass" for d in decorators)


def _way(run: Run, call: Call) -> frozenset[ast.AST | tuple[ast.AST, bool]]:
    """The branches that a call stands in: each by its condition, and whether it is the other one of the two."""
    way = set[ast.AST | tuple[ast.AST, bool]](test for test, _ in call.tests)
    for node in (call.node, *(n for n in call.stack if isinstance(n, ast.Call))):
        tree = run.scopes.tree(node)
        for around in tree.ancestors(node) if tree is not None else ():
            if isinstance(around, (ast.If, ast.IfExp)) and node not in inside(around.test):
                other = around.orelse if isinstance(around.orelse, list) else [around.orelse]
                way.add((around, any(node in inside(part) for part in other)))
    return frozenset(way)


def _detached(run: Run, parts: Parts, loop: TrainingLoop) -> Parts:
    """The parts that run, and whose outputs the loss does not come from through the graph: those of a teacher, for example."""
    outputs_of = run.trace.outputs_of
    todo: list[Obj] = [obj for obj, _ in loop.loss.of_kind("forward")]
    reached = set[Obj]()
    while todo:
        obj = todo.pop()
        if obj not in reached:
            reached.add(obj)
            todo += outputs_of.get(obj, ())
    return frozenset(p for p in parts if p in outputs_of and p not in reached)


def is_used_beside(run: Run, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether a loss uses, beside the forward, a part that the forward leaves out.

    A wrapper that looks for parameters without gradient takes them as done, and fails at the gradient that comes nevertheless:
    https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design
    """
    parts = {part for _, part, _ in left_out(run, model, loop)}
    if not parts:
        return False
    owners = run.unwrap(Value(frozenset(o for o in loop.loss.of_kind("parameters") if isinstance(o, (New, Part)))))
    penalised = {r for o in owners for r in (o, *run.roots(o))}
    if run.part_of(parts, penalised):
        return True
    used = {o[0] if isinstance(o, tuple) else o for kind in ("weight", "method", "forward", "from") for o in loop.loss.of_kind(kind)}
    within = {r for part in parts for r in run.roots(part)} & used - model.objs  # what runs, and holds such a part
    used = {r for o in used if isinstance(o, (New, Part)) for r in run.roots(o)} & parts | within
    around = loop.batch.node if loop.batch is not None else None
    if not used or around is None:
        return False
    beside = run.definitions.happened_beside(around, model.forwards, Kind.READ)
    return any(run.part_of(event.value.objs, used) for event in beside)
