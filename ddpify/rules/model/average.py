"""Average gradients that no wrapper sees.

What it does: where DistributedDataParallel cannot stand for the training (tensors outside modules, several methods of one model, a step
    inside the model, a second backward through one graph, a penalty on gradients with a backward of its own, layers that are freed on
    the way), the model stays as it is;
    `average_gradients(optimizer)` goes before each step, in front of what reads or clips the gradients, and what the optimizer moves starts
    as rank 0's. Where apex scales the loss, it follows each backward call: all ranks have to see the same overflows.
Why: each rank would step by its own gradients, and the copies drift apart.
Safety: applied where the parameters of the optimizer, all its steps and the last backward call before each were seen; otherwise MANUAL.
    REVIEW where gradients are clipped of layers that are freed later and that the optimizer may not hold.
References: https://docs.pytorch.org/tutorials/intermediate/dist_tuto.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, InsertBefore
from ddpify.facts import library
from ddpify.facts.collect import TrainedModel, moved_by_hand
from ddpify.facts.model import Call, Func, Loop, New, Obj
from ddpify.facts.runs import place_of
from ddpify.facts.stepped import owners
from ddpify.facts.tree import last_name, walk
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.model import batch_norm, dataparallel, moved_in_loop
from ddpify.rules.precision import apex, backward_optimizers

CODE = "DDP205"
TITLE = "average gradients outside the wrapper"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a model that is wrapped",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "gradients clipped after they were averaged by the wrapper",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "two backward calls through one graph",
        "out = model(x)\n"
        "loss = criterion(out, y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward(retain_graph=True)\n"
        "out.pow(2).mean().backward()\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "optimizer.step()\n",
        "out = model(x)\n"
        "loss = criterion(out, y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward(retain_graph=True)\n"
        "out.pow(2).mean().backward()\n"
        "average_gradients(optimizer)\n"
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip


_BESIDE = "gradients that this clips by may not all be the optimizer's: those of layers that are freed later are not averaged"
_ALL = "give the optimizer all parameters that are trained, or clip those of the optimizer alone"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """The calls before the steps, and the common start."""
    averaged = context.facts.averaged.values()
    names, shown = context.names, context.tree.shown
    starts: dict[tuple[ast.stmt, str], set[Obj]] = {}  # the modules that may be found there, such as those of several branches
    for start in (start for a in averaged for start in a.starts):
        starts.setdefault((start.after, start.what), set()).update(() if start.module is None else (start.module,))
    for (after, what), modules in starts.items():
        code, more = f"{names['start_alike']}({what})", tuple[str, ...]()
        if modules:
            model = TrainedModel(frozenset(modules), frozenset())
            code = f"{names['start_alike']}({what}.state_dict().values())"
            if batch_norm.sync(context, model):
                code = batch_norm.converted(context, model, what) + code
            moved, more = moved_in_loop.move(context, model.objs, what, after)
            code = moved + code
            yield from batch_norm.findings(context, model, after)
        why = "all ranks start from rank 0's parameters"
        yield Change(CODE, why, shown, after, (InsertAfter(after, code),), ("import torch",), needs=("start_alike", *more))
    for statement, edits in _averages(context).items():
        why = "DDP does not see these gradients: they are averaged over the ranks before they are used"
        yield Change(CODE, why, shown, statement, tuple(edits), needs=("average_gradients",))
    yield from _clipped_beside(context)
    yield from _proven(context)
    yield from _prefixed(context)


def _clipped_beside(context: Context) -> Iterator[Finding]:
    """Clips by the gradients of a whole model whose optimizer was given the parameters that were not frozen, and no others later."""
    facts, run = context.facts, context.facts.before
    added = {o for c in run.trace.calls if c.method == "add_param_group" for o in c.receiver.objs}
    chosen = [o for o in facts.averaged if o not in added and _chooses(context, o)]
    late = [s.receiver for s in run.trace.stores if getattr(s.node, "attr", "") == "requires_grad" and _trains_at(context, s.loops)]
    late += [c.receiver for c in run.trace.calls if c.method == "requires_grad_" and _trains_at(context, c.loops)]
    freed = {r for value in late for o in (*value.of_kind("parameters"), *value.objs) for r in run.roots(o)} if chosen else set()
    clips = [c for c in run.trace.calls if library.clips(c.method) or any(map(library.clips, c.func.paths()))] if freed else []
    for call in {c.node: c for c in clips}.values():
        whole = isinstance(call.node, ast.Call) and any(last_name(getattr(a, "func", a)) == "parameters" for a in call.node.args[:1])
        if whole and not freed.isdisjoint(call.args[0].of_kind("parameters")) and len(chosen) == len(facts.optimizers):
            yield context.manual(CODE, call.node, _BESIDE, _ALL, level=Safety.REVIEW)


def _trains_at(context: Context, loops: tuple[Loop, ...]) -> bool:
    """Whether a loop that trains is among those around."""
    return any(loop.node in context.facts.training_loops for loop in loops)


def _chooses(context: Context, optimizer: New) -> bool:
    """Whether an optimizer is given those of some parameters that are not frozen: by what its arguments, or what made these, read."""
    nodes, run = list(walk(optimizer.node)), context.facts.before
    functions = {o.node for n in nodes if isinstance(n, ast.Call) for c in run.calls(n) for o in c.func.objs if isinstance(o, Func)}
    nodes += [n for f in functions for n in walk(f)]
    return any(isinstance(n, ast.Attribute) and n.attr == "requires_grad" and isinstance(n.ctx, ast.Load) for n in nodes)


def _averages(context: Context) -> dict[ast.stmt, list[Edit]]:
    """What averages gradients: before each step, or within the scope of each loss that apex scales."""
    out: dict[ast.stmt, list[Edit]] = {}
    averaged, call = context.facts.averaged, context.names["average_gradients"]
    if averaged and apex.scales(context):
        names = backward_optimizers.Names(context)
        for node, optimizers in backward_optimizers.of_backwards(context).items():
            texts = [names.at(node, frozenset((o,))) for o in sorted(optimizers & averaged.keys(), key=place_of)]
            statement = context.tree.statement(node)
            edits = [InsertAfter(statement, f"{call}({text})", inside=True) for text in dict.fromkeys(texts) if text]
            if edits:
                out[statement] = [*edits, *names.edits]
        return out
    for statement, optimizer in dict.fromkeys(step for a in averaged.values() for step in a.steps):
        out.setdefault(statement, []).append(InsertBefore(statement, f"{call}({optimizer})"))
    return out


def _prefixed(context: Context) -> Iterator[Change | Finding]:
    """State dicts of a DataParallel that no wrapper takes the place of."""
    run, facts = context.facts.before, context.facts
    for node in dict.fromkeys(c.node for c in run.trace.calls if c.method in ("state_dict", "load_state_dict")) if facts.averaged else ():
        calls = run.calls(node)
        lost = [c for c in calls if library.DATAPARALLEL in c.receiver.kinds() and _has_no_wrapper(context, c)]
        always = all(isinstance(o, New) and o.path == library.DATAPARALLEL for c in calls for o in c.receiver.objs)
        if lost and (len(lost) < len(calls) or not facts.is_edited(node)):
            why = "the original's checkpoints have the `module.` prefix of DataParallel; these do not, and the original cannot load them"
            fix = "rename the keys where they are saved, or remove `module.` where they are loaded"
            yield context.manual(CODE, node, why, fix, level=Safety.REVIEW)
        elif lost and (always or lost[0].method == "load_state_dict"):
            yield from dataparallel.keys_as_wrapped(context, node, lost[0].method)
        elif lost:
            yield context.manual(CODE, node, dataparallel.PLAIN, level=Safety.NOTE)


def _has_no_wrapper(context: Context, call: Call) -> bool:
    """Whether a call is made on a model whose gradients are averaged without one."""
    return any(context.facts.before.unwrap(call.receiver) & m.objs for m in context.facts.needs_no_wrapper)


def _proven(context: Context) -> Iterator[Proof]:
    """Backward calls whose gradients are averaged: those of every optimizer are, or all that they flow to are single weights of some."""
    facts = context.facts
    everything = facts.optimizers and facts.optimizers <= facts.averaged_optimizers and not any(moved_by_hand(facts))
    held = {o for optimizer in facts.averaged_optimizers for o in owners(facts, optimizer)}
    for loop in facts.loops:
        weights, others = loop.loss.of_kind("weight"), map(loop.loss.of_kind, ("forward", "graded", "parameters"))
        if everything or (weights and weights <= held and not any(others)):
            yield Proof(Obligation("gradients", loop.backward.node))
