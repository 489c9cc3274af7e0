"""Wrap each trained model in DistributedDataParallel.

What it does: `model = DistributedDataParallel(model, device_ids=...)` after the last statement that writes to the model's parameters
    (moving, loading, re-initialising, replacing layers, freezing) and before its first training forward. Hooks on parameters, and what
    `torch.autograd.grad` gives by parameters, get the average over the ranks, which the wrapper takes too late for them.
Why: the wrapper broadcasts rank 0's parameters once and averages gradients only for what it was built over: what is changed later, or
    run past it, silently drifts apart.
Safety: applied where every training forward was seen to go through the wrapper; otherwise MANUAL. Batch norm becomes SyncBatchNorm on
    GPUs, which sees the samples of all ranks, and a NOTE says so; on the CPU, and with `--sync-bn off`, it sees a rank's own. REVIEW where
    the gradients of a model with batch norm are differentiated again, which SyncBatchNorm cannot be. Tests of a layer's class during the
    training ask for SyncBatchNorm, too.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html,
    https://github.com/pytorch/pytorch/issues/61222
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from ddpify.edits import InsertAfter
from ddpify.facts.collect import TrainedModel, Wrap, uncovered
from ddpify.facts.initialize import Site
from ddpify.facts.model import Lit
from ddpify.facts.wrapper import apex_fails, reentrant
from ddpify.rules.base import Alternative, Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.model import (
    batch_norm,
    buffers,
    changes_after_wrap,
    checkpointing,
    hooks,
    moved_in_loop,
    named_modules,
    trained_methods,
    unused,
    weight_gradients,
)

CODE = "DDP201"
TITLE = "wrap the trained model in DistributedDataParallel"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a network that is not trained",
        "teacher = Net()\n"
        "teacher.eval()\n"
        "for p in teacher.parameters():\n"
        "    p.requires_grad = False\n",
        frame="end",
    ),
    Example(
        "a model that is wrapped already",
        "import torch\n"
        "import torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel\n"
        "\n"
        'dist.init_process_group("gloo")\n'
        "model = DistributedDataParallel(torch.nn.Linear(8, 1))\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        'batches = torch.load(f"batches{dist.get_rank()}.pt")\n'
        "for x, y in batches:\n"
        "    loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
    ),
    Example(
        "a loss with no parameters",
        "criterion = nn.CrossEntropyLoss()\n",
        frame="end",
    ),
    Example(
        "hooks that scale the gradients of parameters",
        "for p in model.parameters():\n"
        "    p.register_hook(lambda gradient: 0.1 * gradient)\n",
        frame="end",
    ),
    Example(
        "a hook on what is no parameter",
        "start = torch.ones(8, requires_grad=True)\n"
        "start.register_hook(print)\n",
        frame="end",
    ),
    Example(
        "a model",
        "model = Net()\n",
        "model = Net()\n"
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
    ),
    Example(
        "after the last change of its parameters",
        "model = Net()\n"
        'model.load_state_dict(torch.load("start.pt", map_location="cpu"))\n'
        "nn.init.zeros_(model.fc.bias)\n"
        "print(model.classes)\n",
        "model = Net()\n"
        'model.load_state_dict(torch.load("start.pt", map_location="cpu"))\n'
        "nn.init.zeros_(model.fc.bias)\n"
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n"
        "if rank == 0:\n"
        "    print(model.module.classes)\n",
        frame="model",
    ),
    Example(
        "a hook that limits the gradients of a parameter",
        "model.fc.weight.register_hook(lambda gradient: gradient.clamp(-1, 1))\n",
        "model.module.fc.weight.register_hook(with_averaged_gradient(lambda gradient: gradient.clamp(-1, 1)))\n",
        frame="end",
    ),
    Example(
        "a term that is weighted by its gradients",
        "loss = criterion(model(x), y)\n"
        "slope = torch.autograd.grad(loss, model.fc.weight, retain_graph=True)[0]\n"
        "loss = loss / slope.norm()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "loss = criterion(model(x), y)\n"
        "slope = averages_over_ranks(torch.autograd.grad(loss, model.module.fc.weight, retain_graph=True))[0]\n"
        "loss = loss / slope.norm()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """The wraps, and what stands in the way of one."""
    facts = context.facts
    yield from _unseen(context)
    for model in facts.models:
        kinds = ("forward", "graded") if model in facts.needs_no_wrapper else ("forward",)
        discharged = tuple(
            Obligation("gradients", loop.backward.node)
            for loop in facts.loops
            if any(pair[0] in model.objs for kind in kinds for pair in loop.loss.of_kind(kind))
        )
        if model.wrapped or model in facts.needs_no_wrapper:
            yield from map(Proof, discharged)
        else:
            yield from _wrapped(context, model, discharged)
    yield from batch_norm.of_untrained(context)
    yield from batch_norm.tests_of_class(context)
    yield from trained_methods.wraps(context)
    yield from hooks.findings(context)
    yield from weight_gradients.averages(context)
    yield from buffers.copied(context)
    yield from changes_after_wrap.findings(context)
    yield from named_modules.findings(context)


def _wrapped(context: Context, model: TrainedModel, discharged: tuple[Obligation, ...]) -> Iterator[Change | Finding]:
    """The wraps of a model, and what is to be known of them."""
    if not model.wraps:
        first = min(model.forwards, key=lambda n: getattr(n, "lineno", 0))
        why = "there is no line where the model can be wrapped for this forward alone: its gradients would not be averaged"
        fix = "wrap the model after its last change: model = DistributedDataParallel(model, device_ids=[local_rank])"
        yield context.manual(CODE, first, why, fix, discharged)
    for wrap in model.wraps:
        yield from _wrapped_at(context, model, wrap, discharged)
    facts = context.facts
    again = reentrant(facts, model)
    if again is not None and unused.unused(context, model):
        yield from checkpointing.findings(context, again)
    node, fails = apex_fails(facts, model) if context.options.apex_ddp else (None, "")
    if fails and context.apex_ddp:
        at, level = (node, Safety.MANUAL) if node else (model.wraps[0].after, Safety.REVIEW)
        yield context.manual(CODE, at, fails, "convert with --ddp torch", level=level)
    elif fails:
        yield context.manual(CODE, node or model.wraps[0].after, f"{fails}; torch's is used", level=Safety.NOTE)


def _wrapped_at(context: Context, model: TrainedModel, wrap: Wrap, discharged: tuple[Obligation, ...]) -> Iterator[Change | Finding]:
    """One wrap of a model."""
    facts, statement = context.facts, wrap.after
    text = ast.unparse(wrap.target)
    name = text.replace("'", '"') if context.quoted("") == '""' else text
    code = _code(context, model, name, wrap.container)
    if not facts.is_edited(statement):
        why = "the model is made and trained in a module that is not edited: its gradients would not be averaged"
        yield context.manual(CODE, statement, why, f"after this line: {code}", discharged)
        return
    moved, needs = moved_in_loop.move(context, model.objs, name, statement) if not wrap.container else ("", ())
    why = "backward averages the gradients over all ranks, and every rank starts from rank 0's parameters"
    if "find_unused_parameters=True" in code:
        why += "; DDP looks for parameters that get no gradient in a step, for which it would wait forever"
    yield Change(
        CODE,
        why,
        context.tree.shown,
        statement,
        (InsertAfter(statement, _if_made(context, wrap.target, name, moved + code)),),
        context.wrapper_imports,
        Safety.SAFE,
        discharges=discharged,
        needs=needs,
        alternatives=(Alternative("find_unused_parameters", "on"),) if context.options.find_unused_parameters == "auto" else (),
    )
    yield from batch_norm.findings(context, model, statement)


def _if_made(context: Context, target: ast.expr, name: str, code: str) -> str:
    """The statements that wrap a model, where one may not be made at all: only if there is one."""
    held = context.facts.after.value(target).objs
    if not any(isinstance(o, Lit) and o.value is None for o in held):
        return code
    return f"if {name} is not None:\n" + textwrap.indent(code, "    ")


def _code(context: Context, model: TrainedModel, target: str, container: str) -> str:
    """The statements that wrap what `target` holds: a model, or each model of a list or dict."""
    name = target if not container else "net" if target != "net" else "model"
    again = reentrant(context.facts, model)
    still = again is not None and context.options.find_unused_parameters == "auto"
    rests = ", static_graph=True" if still else ", find_unused_parameters=True"  # it cannot look for them and go back through a part twice
    wrapped = context.wrapper(name, name, rests if unused.unused(context, model) else "")
    synced = f"torch.nn.SyncBatchNorm.convert_sync_batchnorm({name})"
    sync = batch_norm.sync(context, model)
    if not container:
        code = f"{name} = {wrapped}"
        return batch_norm.converted(context, model, name) + code if sync and not isinstance(context.amp, Site) else code
    many = f"{target} = [{{}} for {name} in {target}]"
    if container == "dict":
        many = f"{target} = {{{{key: {{}} for key, {name} in {target}.items()}}}}"
    each = many.format(wrapped)
    return many.format(f"{synced} if {batch_norm.test(context, model, name)} else {name}") + "\n" + each if sync else each


def _unseen(context: Context) -> Iterator[Finding]:
    for optimizer, obj in uncovered(context.facts):
        if optimizer in context.facts.averaged_optimizers:
            continue
        what = (
            "parameters of which the analysis found no module"
            if obj is None
            else "parameters of a module whose forward leads to no backward call that the analysis found"
        )
        why = f"this optimizer updates {what}: no DDP averages their gradients, and the ranks' parameters drift apart"
        fix = "average them before the step: for p in params: dist.all_reduce(p.grad); p.grad /= world_size"
        yield context.manual(CODE, optimizer.node, why, fix)
