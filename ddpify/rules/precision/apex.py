"""Initialize the mixed precision of NVIDIA's apex.

What it does: with `--amp apex-O0` to `apex-O3`, `amp.initialize` gets the models and optimizers as soon as all of them are made: before
    checkpoints are loaded and before models are wrapped, whatever order the script had. Losses are scaled by DDP415. At O1, the casts
    that apex keeps of weights are dropped where weights are written between two evaluations.
Why: apex changes models and optimizers in place: what is made, wrapped or loaded before it is ready trains in another precision, or not
    at all.
Safety: safe; numbers differ by what was asked for. MANUAL where amp would be initialised twice, where an optimizer is given a closure,
    where gradients are looked at, or averaged by calls, that apex keeps elsewhere, or weights and gradients are written (O2), and where a
    whole model is pickled (O2, O3). apex.amp needs GPUs and is gone from apex since its tag 25.07.
References: https://nvidia.github.io/apex/amp.html, https://nvidia.github.io/apex/advanced.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertAfter
from ddpify.facts import averaged, library, pickled
from ddpify.facts.initialize import Nowhere, Site, Target
from ddpify.facts.model import Call, Lit, New, Obj
from ddpify.facts.tree import own_nodes, same, walk
from ddpify.facts.weight_writes import weight_writes
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.model import batch_norm
from ddpify.rules.precision import backward_optimizers, clipping, existing, region, scaler_update, stale_casts
from ddpify.rules.precision.existing import Backward

CODE = "DDP414"
TITLE = "initialize apex's mixed precision"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "precision stays as it is, unless something else is asked for",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a script that trains nothing",
        "import torch\n"
        "\n"
        "model = torch.nn.Linear(8, 1)\n"
        "print(model(torch.ones(1, 8)))\n",
        options=Options(amp="apex-O1"),
    ),
    Example(
        "an evaluation",
        "other = Net()\n"
        "with torch.no_grad():\n"
        "    other(images)\n",
        frame="end",
        options=Options(amp="apex-O2"),
    ),
    Example(
        "an optimizer that is made last",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.2)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.2)\n"
        'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
        "model = DistributedDataParallel(model)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        frame="loop",
        options=Options(amp="apex-O1"),
    ),
)  # fmt: skip

IMPORT = "from apex import amp"
_LATE = "these gradients are averaged by a call, after apex has looked for overflows: ranks could skip different steps"
_OTHERS = "these gradients are averaged by a call, before apex at O2 copies them to the parameters that the optimizer moves"
_SCALED = "with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()"
_CLEAR = "amp._amp_state.handle._clear_cache()"
_STALE = "the next evaluation would go on with the casts that apex has kept of the weights before"
_USE_TORCH = "use --amp torch or --amp torch-bf16"


def changes(context: Context) -> Iterator[Change | Finding]:
    """The call of amp.initialize, or what stands in the way of it and of all that belongs to it."""
    every = wanted(context)
    if not every:
        return
    stopped = list(obstacles(context, every))
    yield from stopped
    site = context.amp
    if any(f.level is Safety.MANUAL for f in stopped) or not isinstance(site, Site):
        return
    losses = len({b.call.node for b in every})
    begin = InsertAfter(site.after, _begun(context, site, losses))
    yield Change(CODE, "amp is initialised once, before models are wrapped", context.tree.shown, site.after, (begin,), (IMPORT,))
    if context.options.level == "O1":
        yield from _without_stale_casts(context, every)


def _without_stale_casts(context: Context, every: list[Backward]) -> Iterator[Change | Finding]:
    """Drop the casts of an evaluation where weights are written before the next one."""
    written = stale_casts.writes_between(context, [b.call for b in every])
    for statement in dict.fromkeys(s for s in written.values() if s is not None):
        edit = InsertAfter(statement, f"{_CLEAR}  # casts of the weights before")
        yield Change(CODE, _STALE, context.facts.tree_of(statement).shown, statement, (edit,), (IMPORT,))
    for node in (n for n, statement in written.items() if statement is None):
        yield context.manual(CODE, node, _STALE, f"after this: {_CLEAR}")


def wanted(context: Context) -> list[Backward]:
    """The backward calls that amp is to scale; none where nothing is asked for, or another mixed precision is there."""
    if not context.options.level or initialized(context) or existing.autocasts(context) or existing.scalers(context):
        return []
    return existing.backwards(context)


def initialized(context: Context) -> list[Call]:
    """The calls of amp.initialize that a script has."""
    return [c for c in context.facts.after.trace.calls if library.INITIALIZE in c.func.paths()]


def scales(context: Context) -> bool:
    """Whether apex scales losses: because the script has it so, or because it was asked for and nothing stands in the way."""
    return bool(initialized(context)) or begins(context)


def begins(context: Context) -> bool:
    """Whether the losses of the training are given to apex."""
    every = wanted(context)
    return bool(every) and isinstance(context.amp, Site) and all(f.level is not Safety.MANUAL for f in obstacles(context, every))


def _begun(context: Context, site: Site, losses: int) -> str:
    """The statements that initialise amp; batch norm is taken over all ranks before."""
    models, optimizers = (_initialize_argument(targets) for targets in (site.models, site.optimizers))
    optional = any(_may_be_none(context, site, target) for target in site.models)
    if optional:
        models = f"[model for model in {models if models.startswith('[') else f'[{models}]'} if model is not None]"
    scale = context.options.loss_scale
    how = f"opt_level={context.quoted(context.options.level)}"
    if scale != "auto":
        how += f", loss_scale={context.quoted(scale) if scale == 'dynamic' else float(scale)}"
    if losses > 1:
        how += f", num_losses={losses}"
    call = f"amp.initialize({models}, {optimizers}, {how})"
    plain = all(t.container != "dict" for t in (*site.models, *site.optimizers))
    mixed = any(len(ts) > 1 and any(t.container for t in ts) for ts in (site.models, site.optimizers))
    code = f"{models}, {optimizers} = {call}\n" if plain and not mixed and not optional else f"{call}\n"
    sync = ""
    for model in context.facts.models:
        target = next((t for t in site.models if t.objs & model.objs), None)
        if target is not None and not target.container and not model.wrapped and batch_norm.sync(context, model):
            sync += batch_norm.converted(context, model, ast.unparse(target.node))
    return sync + code


def _may_be_none(context: Context, site: Site, target: Target) -> bool:
    """Whether a model may not be made at all."""
    tree, run = context.facts.tree_of(site.after), context.facts.before
    later = [n for n in own_nodes(tree.function(site.after)) if same(n, target.node) and tree.after(n, site.after)]
    return any(isinstance(o, Lit) and o.value is None for n in later for o in run.value(n).objs)


def _initialize_argument(targets: tuple[Target, ...]) -> str:
    """What amp.initialize is given: one thing, or a list, which must be a real one."""
    texts = [ast.unparse(t.node) for t in targets]
    if len(targets) == 1 and targets[0].container != "dict":
        return texts[0]
    if len(targets) == 1:
        return f"list({texts[0]}.values())"
    starred = {"": "{}", "list": "*{}", "dict": "*{}.values()"}
    return f"[{', '.join(starred[t.container].format(text) for t, text in zip(targets, texts, strict=True))}]"


# ----------------------------------------------------------------------------------------------------- what stands in the way


def obstacles(context: Context, every: list[Backward]) -> Iterator[Finding]:
    """What amp cannot go through."""
    yield from _no_site(context, every)
    yield from _not_scaled(context, every)
    yield from _by_calls(context, every)
    yield from _rewritten(context, context.amp if isinstance(context.amp, Site) else None)
    if context.options.level == "O2":
        yield from looked_at(context, every)


def _no_site(context: Context, every: list[Backward]) -> Iterator[Finding]:
    """Why there is no place where amp can be initialised."""
    site, call = context.amp, _initialize(context.options.level)
    if isinstance(site, Nowhere):
        yield context.manual(CODE, site.node, site.why, call)
    elif site is None:
        yield context.manual(CODE, every[0].call.node, "no optimizer was found that updates what is trained here", call)
    elif not context.facts.is_edited(site.after):
        yield context.manual(
            CODE,
            site.after,
            "models and optimizers are made in a module that is not edited, and amp must be initialised there",
            f"after this line: {call}",
        )


def _not_scaled(context: Context, every: list[Backward]) -> Iterator[Finding]:
    """Losses that cannot be scaled, and steps that apex does not take."""
    steps, names = existing.steps(context), backward_optimizers.Names(context)
    for node in dict.fromkeys(b.call.node for b in every):
        if why := _backward_obstacle(context, node, names, [b for b in every if b.call.node is node], steps):
            yield context.manual(CODE, node, why, _SCALED)
    for node in dict.fromkeys(s.node for s in steps):
        if node.args or node.keywords:
            yield context.manual(CODE, node, "apex does not step an optimizer that is given a closure", _USE_TORCH)


def _by_calls(context: Context, every: list[Backward]) -> Iterator[Finding]:
    """Calls that work on gradients or models beside amp."""
    facts, run, level = context.facts, context.facts.after, context.options.level
    if level != "O0":
        for node in existing.gradient_hooks(context):
            yield context.manual(
                CODE, node, "this hook sees gradients multiplied by the loss scale: thresholds in it no longer fit", _USE_TORCH
            )
        for call in {c.node: c for c in run.calls_of(existing.GRAD)}.values():
            through = region.differentiated_by(context, call)
            if level != "O1" or not through or not all(map(facts.is_edited, through)):
                why = "what autograd.grad gives is not scaled, and small gradients become zero in float16"
                yield context.manual(CODE, call.node, why, _USE_TORCH)
    if any(averaged.CALL in c.method for c in run.trace.calls):
        yield context.manual(CODE, every[0].call.node, _LATE, _USE_TORCH)
    yield from not_averaged(context, every[0].call.node, level)
    for call in run.calls_named("half"):
        if not call.no_grad and facts.model_of(call.receiver) is not None:
            yield context.manual(CODE, call.node, "apex makes models float16 by itself, and refuses those that are", "take .half() out")
    for call in run.calls_of("torch.compile") if level == "O1" else ():
        why = "apex replaces torch's functions by its own while it runs: what was compiled may go past them"
        yield context.manual(CODE, call.node, why, "look at a profile, or use --amp torch", level=Safety.REVIEW)


def not_averaged(context: Context, node: ast.Call, level: str) -> Iterator[Finding]:
    """Gradients that no call can average while they are scaled; `level` is that of the script or the one asked for."""
    if context.facts.averaged and level == "O2":
        yield context.manual(CODE, node, _OTHERS, "use apex-O1, or --amp torch")
    elif not context.facts.averaged.keys() <= frozenset().union(*backward_optimizers.of_backwards(context).values()):
        yield context.manual(CODE, node, _LATE, _USE_TORCH)


def _backward_obstacle(context: Context, node: ast.Call, names: backward_optimizers.Names, mine: list[Backward], steps: list[Call]) -> str:
    """Why the loss of a backward call cannot be scaled; empty where it can."""
    facts = context.facts
    statement = facts.tree_of(node).statement(node)
    if not facts.is_edited(node):
        return "this backward call is made in a module that is not edited: its loss is not scaled"
    if not isinstance(statement, ast.Expr) or statement.value is not node:
        return "this backward call is part of a larger statement, which no block can stand around"
    if existing.is_unseen_method(context, node):
        return "the analysis could not tell what this backward call does with the loss"
    optimizers = frozenset[New]().union(*(backward_optimizers.optimizers(context, b, steps) for b in mine))
    if not names.at(node, optimizers):
        return "the optimizers that this backward call is for have no names here"
    return ""


def _rewritten(context: Context, site: Site | None) -> Iterator[Finding]:
    """What does not go with models whose forward and parameters apex replaces."""
    facts, run, level = context.facts, context.facts.after, context.options.level
    for call in region.unsafe(context) if level == "O1" else ():
        if not facts.is_edited(call.node):
            yield context.manual(CODE, call.node, "apex refuses this loss of probabilities on float16", "put .float() on what it compares")
    if level not in ("O2", "O3"):
        return
    for through in facts.trained_methods:
        why = "at this level apex casts what goes through a model's forward: this method would be given float32"
        yield context.manual(CODE, through.sites[0], why, "use apex-O1")
    models = frozenset[Obj]().union(*(m.objs for m in facts.models))
    for node in dict.fromkeys(c.node for c in pickled.whole(facts.before, models)):
        why = "apex has replaced the model's forward by a function that cannot be pickled"
        yield context.manual(CODE, node, why, "save model.state_dict(), or use apex-O1")
    for call in run.trace.calls:
        copies = call.func.paths() & {"copy.deepcopy", "copy.copy"}
        late = site is not None and min(c.order for c in facts.before.calls(call.node) or [call]) > site.event[0]
        if copies and late and any(facts.model_of(value) is not None for value in call.args):
            why = "apex has replaced the model's forward by then: the copy would run the model's own"
            yield context.manual(CODE, call.node, why, "copy it before amp.initialize, or use apex-O1")


def looked_at(context: Context, every: list[Backward]) -> Iterator[Finding]:
    """Gradients that are read, and what is written: at O2 the model's stay scaled, and the optimizer has other parameters."""
    handled = {c.node for c in clipping.clipping_calls(context) if clipping.clipped(context, c)}
    masters = {c.node for c in context.facts.after.trace.calls if library.MASTER_PARAMS in c.func.paths()}
    handled |= {c.node for c in context.facts.after.trace.calls if masters & set(walk(c.node))}
    writes = dict.fromkeys(write.node for write in weight_writes(context.facts))
    for node in dict.fromkeys((*(c.node for c in scaler_update.readers(context)), *writes)):
        if node in writes and not any(node in walk(other) for other in handled):
            why = "at O2 the optimizer moves float32 copies of the parameters, which do not get what is written here"
            yield context.manual(CODE, node, why, "write into amp.master_params(optimizer), or use apex-O1")
        elif node not in handled and any(b.call.order < c.order for b in every for c in context.facts.after.calls(node)):
            why = "at O2 the model's gradients stay scaled: the optimizer moves parameters of its own"
            yield context.manual(CODE, node, why, "for p in amp.master_params(optimizer): ... p.grad")


def _initialize(level: str) -> str:
    return f'model, optimizer = amp.initialize(model, optimizer, opt_level="{level}")  # lists of several; before models are wrapped'
