"""What changes a model after it was wrapped, and its wrapper does not see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.averaged import through_gradient_alone
from ddpify.facts.collect import TrainedModel, first_order, loss_of
from ddpify.facts.model import NOTHING, Call, Func, Lit, New, Tup, Value
from ddpify.facts.moved_saves import moves
from ddpify.facts.stepped import not_averaged
from ddpify.facts.weight_writes import DRAWS, Weights
from ddpify.facts.wrap_places import made_in
from ddpify.rules.base import Change, Finding, Obligation
from ddpify.rules.context import Context
from ddpify.rules.model import initialised_again, late_layers

CODE = "DDP201"

_FILLING = ("reset_parameters", "init_weights", "apply")


_Report = tuple[ast.AST, str, str, tuple[Obligation, ...]]  # the place, what is wrong there, what to do, what it answers for

_AVERAGE = "average .grad over the ranks before the step: for p in params: dist.all_reduce(p.grad); p.grad /= world_size"
_SECOND = "DDP does not average the gradients of a second backward through one forward: the ranks' parameters drift apart"
_REINITIALISED = "the model is initialised again after it is wrapped"


def findings(context: Context) -> Iterator[Change | Finding]:
    """Writes to a wrapped model that its wrapper does not see, one finding for each place; new weights are those of rank 0."""
    facts = context.facts
    refilled = {node for m in facts.models for node in made_in(facts.before, m)}  # folds: a model is made and wrapped anew
    training = facts.training_loops - refilled
    yield from late_layers.findings(context, training)
    seen: set[ast.AST] = set()
    again: list[ast.AST] = []
    for node, what, fix, discharges in (
        *_moved(context, training),
        *_initialised(context, training),
        *_changed_by_calls(context, training),
        *_gradient_penalties(context),
        *_second_backwards(context),
        *_frozen(context, training),
    ):
        if what == _REINITIALISED:
            again.append(node)
        elif node not in seen:
            yield context.manual(CODE, node, what, fix, discharges)
        seen.add(node)
    yield from initialised_again.broadcasts(context, again)


def _moved(context: Context, training: frozenset[ast.AST]) -> Iterator[_Report]:
    """Methods of a wrapped model, or of the model inside its wrapper, that replace its parameters."""
    facts = context.facts
    for model in (m for m in facts.models if m not in facts.needs_no_wrapper):
        first = first_order(facts, model)
        for call in facts.before.trace.calls:
            trained = call.order > first or any(loop.node in training for loop in call.loops)
            if trained and moves(facts, call, model) and not _afterwards(context, call, model):
                how = f"`.{call.method}()` moves the model's parameters after it is wrapped"
                what = f"{how}: DDP would go on averaging gradients of the old ones"
                fix = "do it where the model is made; to save it, copy it: {k: v.cpu() for k, v in model.module.state_dict().items()}"
                yield call.node, what, fix, ()


def _initialised(context: Context, training: frozenset[ast.AST]) -> Iterator[_Report]:
    """Functions applied to the wrapped model that fill its parameters again."""
    facts = context.facts
    for call in facts.after.trace.calls:
        if call.method != "apply" or facts.wrapped(call.receiver) is False:
            continue
        if initialised_again.only_settings(context, call) or initialised_again.keeps_alike(context, call):
            continue
        if any(loop.node in training for loop in call.loops) or _trained_before(context, call):
            yield call.node, _REINITIALISED, "", ()


def _changed_by_calls(context: Context, training: frozenset[ast.AST]) -> Iterator[_Report]:
    """Calls whose gradients a wrapper does not average, and those that initialise a model again."""
    for call in context.facts.after.trace.calls:
        inside = any(loop.node in training for loop in call.loops)
        kept = call.method == "backward" and _keeps_graph(call) and not _gradients_averaged(context, call)
        message = _SECOND if kept else _own_parameters(context, call, inside)
        if message:
            yield call.node, message, _AVERAGE, ()


def _own_parameters(context: Context, call: Call, inside: bool) -> str:
    """What is wrong with a call that gives a trained model, or its gradients, numbers of this rank's; `inside` the training."""
    weights = Weights(context.facts)
    if call.in_place and call.method in DRAWS and not inside and weights.hold(call.receiver) and _trained_before(context, call):
        return _REINITIALISED
    if _is_lazy(call):
        return "a lazy layer has no parameters yet when the model is wrapped: DDP fails"
    if call.method == "apply" and (initialised_again.only_settings(context, call) or initialised_again.keeps_alike(context, call)):
        return ""
    if initialised_again.draws_nothing(context, call):
        return ""
    if call.method in _FILLING or any(p.startswith("torch.nn.init.") for p in call.func.paths()):
        followed = bool(call.func.objs) and all(isinstance(o, Func) for o in call.func.objs)  # what it fills, it fills by calls of its own
        given = call.args if call.method != "apply" and not followed else ()  # `Function.apply(x, weight)` of torch.autograd fills nothing
        filled = any(weights.hold(v) for v in (call.receiver, *given))
        return _REINITIALISED if filled and (inside or _trained_before(context, call)) else ""
    return ""


def _is_lazy(call: Call) -> bool:
    """Whether a layer is made that finds out its number of inputs when it is first called: torch's, or a graph layer of -1 inputs."""
    inputs = call.argument(0, "in_channels") or NOTHING
    sizes = (o for v in (inputs, *(i for o in inputs.objs if isinstance(o, Tup) for i in o.entries)) for o in v.objs)
    open_size = any(isinstance(o, Lit) and o.value == -1 for o in sizes)
    of_graphs = any(p.startswith("torch_geometric.nn.") for p in call.func.paths())
    return any(p.startswith("torch.nn.Lazy") for p in call.func.paths()) or (of_graphs and open_size)


def _keeps_graph(call: Call) -> bool:
    asked = call.keywords.get("retain_graph", Value()).objs
    return any(not (isinstance(o, Lit) and not o.value) for o in asked)


def _gradient_penalties(context: Context) -> Iterator[_Report]:
    """Backward calls that reach a model by nothing but a gradient of its output."""
    what = "a gradient penalty has a backward of its own that leaves some parameters without gradient: DDP would wait for them forever"
    facts = context.facts
    for loop in facts.loops:
        if any(through_gradient_alone(loop, m) and m not in facts.needs_no_wrapper for m in facts.models):
            node = loop.backward.node
            yield node, what, "add the penalty to the loss, so that one backward does both", (Obligation("gradients", node),)


def _second_backwards(context: Context) -> Iterator[_Report]:
    """Backward calls before which another one went back, with no forward between them."""
    for model in context.facts.models:
        for call in not_averaged(context.facts, model) if model not in context.facts.needs_no_wrapper else ():
            yield call.node, _SECOND, "add the losses: one backward does for all of them", (Obligation("gradients", call.node),)


def _frozen(context: Context, training: frozenset[ast.AST]) -> Iterator[_Report]:
    """Assignments to `requires_grad` of a part of a wrapped model, while it trains."""
    facts, run = context.facts, context.facts.after
    what = "parts of the model are frozen or unfrozen during training: DDP goes on with the parameters it was given"
    for store in run.trace.stores:
        if getattr(store.node, "attr", "") != "requires_grad" or not any(loop.node in training for loop in store.loops):
            continue
        parts = [
            o
            for o in store.receiver.of_kind("parameters")
            if not any(o in m.objs for m in facts.models) and not (isinstance(o, New) and o.path.endswith("DistributedDataParallel"))
        ]
        if any(run.part_of(parts, m.objs) for m in facts.models if m not in facts.needs_no_wrapper):
            yield store.node, what, "wrap the model again after each such change", ()


def _afterwards(context: Context, call: Call, model: TrainedModel) -> bool:
    """Whether a call is made when the model is not trained any more; in a loop that makes the model anew, that is in one pass of it."""
    facts = context.facts
    backwards = (t.backward for t in facts.loops if any(pair[0] in model.objs for pair in t.loss.of_kind("forward")))
    last = max((b.last for b in backwards), default=0)
    own = {loop.node for loop in call.loops} - made_in(facts.before, model)
    run = facts.before
    moving = (c for c in run.calls(call.node) if run.part_of(run.unwrap(c.receiver), model.objs))
    return min((c.order for c in moving), default=0) > last and not own & facts.training_loops


def _trained_before(context: Context, call: Call) -> bool:
    """Whether a call is made on a model that was trained already, or a part of it."""
    run = context.facts.before
    calls = run.calls(call.node)
    reached = ((c, r) for c in calls for r in run.reached((c.receiver, *c.args)))
    roots = {r for c, r in reached if not (isinstance(r, New) and r.node in c.stack)}  # not while it is made
    first = min(c.order for c in calls)
    return any(roots & m.objs and first > first_order(context.facts, m) for m in context.facts.models)


def _gradients_averaged(context: Context, call: Call) -> bool:
    """Whether the gradients of all that a backward call reaches are averaged before the steps."""
    models = [m for m in context.facts.models for pair in loss_of(call).of_kind("forward") if pair[0] in m.objs]
    return all(m in context.facts.needs_no_wrapper for m in models) and bool(context.facts.averaged_optimizers)
