"""Wrap each trained model in DistributedDataParallel.

What it does: `model = DistributedDataParallel(model, device_ids=...)` after the last statement that writes to the model's parameters
    (moving, loading, re-initialising, replacing layers, freezing) and before its first training forward.
Why: the wrapper broadcasts rank 0's parameters once and averages gradients only for what it was built over: what is changed later, or
    run past it, silently drifts apart.
Safety: applied where every training forward was seen to go through the wrapper; otherwise MANUAL. A NOTE on batch norm, which sees a
    rank's own samples.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertAfter
from ddpify.facts.collect import TrainedModel, TrainingLoop, made_in, uncovered
from ddpify.facts.model import Lit, New, Part, Value
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP201"
TITLE = "wrap the trained model"
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
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """The wraps, and what stands in the way of one."""
    facts = context.facts
    yield from _unseen(context)
    for model in facts.models:
        discharged = tuple(
            Obligation("gradients", loop.backward.node)
            for loop in facts.loops
            if any(pair[0] in model.objs for pair in loop.loss.of_kind("forward"))
        )
        if model.wrapped:
            yield from (Proof(o, "the model is wrapped") for o in discharged)
            continue
        if model.wrap is None:
            first = min(model.forwards, key=lambda n: getattr(n, "lineno", 0))
            yield context.manual(
                CODE,
                first,
                "no place was found where wrapping the model reaches this forward and nothing else",
                "wrap the model after its last change: model = DistributedDataParallel(model, device_ids=[local_rank])",
                discharged,
            )
            continue
        statement, target = model.wrap
        name = ast.unparse(target)
        options = f"device_ids=[{context.names['local_rank']}] if next({name}.parameters()).is_cuda else None"
        if unused(context, model):
            options += ", find_unused_parameters=True"
        code = f"{name} = DistributedDataParallel({name}, {options})"
        sync = sync_bn(context, model)
        if sync:
            code = f"if next({name}.parameters()).is_cuda:\n    {name} = torch.nn.SyncBatchNorm.convert_sync_batchnorm({name})\n" + code
        if not facts.is_entry(statement):
            yield context.manual(CODE, statement, "the model is made and trained in another module", f"after this line: {code}", discharged)
            continue
        yield Change(
            CODE,
            "gradients are averaged over the ranks; parameters start as rank 0's",
            context.tree.shown,
            statement,
            (InsertAfter(statement, code),),
            ("import torch", "from torch.nn.parallel import DistributedDataParallel"),
            Safety.SAFE,
            discharges=discharged,
        )
        if may_hold_batch_norm(context, model):
            yield context.manual(
                CODE,
                statement,
                "batch norm on GPUs takes its statistics over all ranks' samples, as the one GPU did; on the CPU each rank's own"
                if sync
                else "batch norm takes its statistics over each rank's own samples, as DataParallel did over each device's",
                level=Safety.NOTE,
            )
            if _forwards_twice(context, model):
                yield context.manual(
                    CODE,
                    statement,
                    "this model runs twice before one backward call: with batch norm that needs torch 2.12 or newer",
                    level=Safety.NOTE,
                )
        yield from _batch_statistics(context, model)
    yield from _later(context)


def _batch_statistics(context: Context, model: TrainedModel) -> Iterator[Finding]:
    """Buffers that the model computes from its batches: the wrapper overwrites them with rank 0's."""
    for obj in model.objs:
        if not isinstance(obj, New) or obj.cls is None:
            continue
        names = {
            n.args[0].value
            for n in ast.walk(obj.cls.node)
            if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr == "register_buffer"
            and n.args
            and isinstance(n.args[0], ast.Constant)
        }
        for method in obj.cls.node.body:
            if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
                continue
            for n in ast.walk(method):
                written = isinstance(n, ast.Attribute) and (isinstance(n.ctx, ast.Store) or n.attr.endswith("_"))
                at = (
                    n
                    if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                    else n.value
                    if isinstance(n, ast.Attribute)
                    else None
                )
                if written and isinstance(at, ast.Attribute) and at.attr in names and ast.unparse(at.value) == "self":
                    yield context.manual(
                        CODE,
                        n,
                        f"`{at.attr}` is computed from this rank's share of the batch, and rank 0's replaces it at the next step",
                        "sum or average what it is computed from over the ranks",
                        level=Safety.REVIEW,
                    )
                    return


def may_hold_batch_norm(context: Context, model: TrainedModel) -> bool:
    """Whether batch norm layers may be inside the model: some are made, or it comes from a library."""
    run = context.facts.after
    for obj in model.objs:
        if not (isinstance(obj, New) and obj.cls is not None) and not getattr(obj, "path", "").startswith("torch.nn."):
            return True
    return any(p.startswith("torch.nn.BatchNorm") for c in run.trace.calls for p in c.func.paths())


def sync_bn(context: Context, model: TrainedModel) -> bool:
    """Whether to take batch norm over all ranks: asked for, or a single-GPU original did."""
    asked = context.options.sync_bn
    if asked != "auto":
        return asked == "on"
    before = context.facts.before
    parallel = any("torch.nn.DataParallel" in c.func.paths() for c in before.trace.calls)
    return not parallel and may_hold_batch_norm(context, model)


_DRAWN = frozenset(("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "trunc_normal_"))


def _belongs(context: Context, value: Value) -> bool:
    """Whether a value is a trained model or a part of one."""
    run = context.facts.after
    return any(r in m.objs for o in run.unwrap(value) if isinstance(o, (New, Part)) for r in run.roots(o) for m in context.facts.models)


def _forwards_twice(context: Context, model: TrainedModel) -> bool:
    return any(len({pair[1] for pair in loop.loss.of_kind("forward") if pair[0] in model.objs}) > 1 for loop in context.facts.loops)


def _later(context: Context) -> Iterator[Finding]:
    """Writes to a wrapped model that its wrapper does not see."""
    facts, run = context.facts, context.facts.after
    seen: set[ast.AST] = set()
    training = facts.training_loops
    training -= {
        node for m in facts.models for node in made_in(facts.before, m)
    }  # folds, in which a model is made, filled and wrapped anew
    for call in run.trace.calls:
        if call.node in seen:
            continue
        wrapped = facts.wrapped(call.receiver) is not False
        if wrapped and call.method in ("cpu", "half", "float", "double", "bfloat16", "to_empty"):
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                f"`.{call.method}()` moves the wrapped model's parameters away from what the wrapper averages gradients for",
                "save a copy instead: {k: v.cpu() for k, v in model.module.state_dict().items()}",
            )
        elif wrapped and call.method == "apply" and any(loop.node in training for loop in call.loops):
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                "the model is initialised again after the wrap: each rank draws its own weights",
                "seed all ranks alike before it, or wrap the model again after it",
            )
    for call in run.trace.calls:
        if call.node in seen:
            continue
        inside = any(loop.node in training for loop in call.loops)
        mixed = [o.kind for v in (*call.args, *call.keywords.values()) for o in v.origins]
        own = call.receiver.of_kind("parameters") or (
            isinstance(call.node.func, ast.Attribute)
            and isinstance(call.node.func.value, ast.Attribute)
            and call.node.func.value.attr == "grad"
        )
        what = ""
        if call.method == "register_hook" and call.receiver.of_kind("parameters"):
            what = "a hook on a parameter sees this rank's own gradient, before it is averaged"
        elif "torch.autograd.grad" in call.func.paths() and any(v.of_kind("parameters") for v in call.args[1:2]):
            what = "autograd.grad over parameters gives this rank's own gradient: the wrapper averages `.backward()` alone"
        elif inside and call.method.endswith("_") and own and ({"random", "batch", "decided"} & set(mixed) or call.method in _DRAWN):
            what = "a parameter or its gradient is changed by numbers that differ between ranks"
        elif any(p.startswith("torch.nn.Lazy") for p in call.func.paths()):
            what = "a lazy layer has no parameters yet when the model is wrapped"
        elif (
            inside
            and (
                call.method in ("reset_parameters", "init_weights", "apply")
                or any(p.startswith("torch.nn.init.") for p in call.func.paths())
            )
            and any(v.of_kind("parameters") or _belongs(context, v) for v in (call.receiver, *call.args))
        ):
            what = "the model is initialised again after the wrap: each rank draws its own weights"
        elif call.method == "backward" and any(
            not (isinstance(o, Lit) and not o.value) for o in call.keywords.get("retain_graph", Value()).objs
        ):
            what = "a second backward through one forward is not averaged by the wrapper"
        if what:
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                what,
                "average .grad over the ranks before the step: for p in params: dist.all_reduce(p.grad); p.grad /= world_size",
            )
    for store in run.trace.stores:
        if isinstance(store.node, ast.Attribute) and store.node.attr in ("grad", "data") and store.node not in seen:
            if store.node.attr == "data" and not isinstance(facts.tree_of(store.node).parent[store.node], ast.AugAssign):
                continue
            inside = any(loop.node in training for loop in store.loops)
            own = store.receiver.of_kind("parameters") or any(
                isinstance(o, New) and o.path == "torch.nn.Parameter" for o in store.receiver.objs
            )
            if inside and own and (store.value.of_kind("drawn") or context.local(store.value)):
                seen.add(store.node)
                yield context.manual(
                    CODE,
                    store.node,
                    "a parameter or its gradient is changed by numbers that differ between ranks",
                    "draw them alike on all ranks, or average them first",
                )
    for store in run.trace.stores:
        attr = store.node.attr if isinstance(store.node, ast.Attribute) else ""
        if attr != "requires_grad" or store.node in seen or not any(loop.node in training for loop in store.loops):
            continue
        touched = store.receiver.of_kind("parameters")
        parts = [
            o
            for o in touched
            if not any(o in m.objs for m in facts.models) and not (isinstance(o, New) and o.path.endswith("DistributedDataParallel"))
        ]
        if parts and any(r in m.objs for o in parts if isinstance(o, (New, Part)) for r in run.roots(o) for m in facts.models):
            seen.add(store.node)
            yield context.manual(
                CODE,
                store.node,
                "parts of the wrapped model are frozen or freed while it trains: the wrapper goes on with the old set",
                "wrap the model again after each such change",
            )


def _unseen(context: Context) -> Iterator[Finding]:
    for optimizer, obj in uncovered(context.facts):
        what = (
            "parameters that belong to no module seen"
            if obj is None
            else "parameters of a module whose forward does not lead to a backward call seen"
        )
        yield context.manual(
            CODE,
            optimizer.node,
            f"this optimizer moves {what}: their gradients would differ between ranks",
            "average them before the step: for p in params: dist.all_reduce(p.grad); p.grad /= world_size",
        )


def unused(context: Context, model: TrainedModel) -> bool:
    """Whether the model may hold parameters that its forward does not use."""
    asked = context.options.find_unused_parameters
    if asked != "auto":
        return asked == "on"
    for obj in model.objs:
        if isinstance(obj, New) and obj.cls is not None and _forgotten(obj.cls.node):
            return True
    return any(_dropped(context, model, loop) for loop in context.facts.loops) or any(
        _conditional(context, node) for node in model.forwards
    )


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether one of the names that a forward's outputs are unpacked to is read nowhere, or only under a condition."""
    tree = context.facts.tree_of(node)
    statement = tree.parent.get(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        return False
    around = set(tree.ancestors(statement))
    function = tree.function(statement)
    for target in statement.targets[0].elts:
        if not isinstance(target, ast.Name):
            continue
        reads = [
            n
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and n.lineno >= statement.lineno
        ]
        if all(any(isinstance(up, (ast.If, ast.IfExp)) and up not in around for up in tree.ancestors(n)) for n in reads):
            return True
    return False


def _dropped(context: Context, model: TrainedModel, loop: TrainingLoop) -> bool:
    """Whether a backward starts from some of what a forward of the model returns, and not from the rest."""
    reached: dict[object, set[int]] = {}
    lengths: dict[object, int] = {}
    for node, index, length in loop.loss.of_kind("output"):
        if node in model.forwards:
            reached.setdefault(node, set()).add(index)
            lengths[node] = length
    return any(len(found) < lengths[node] for node, found in reached.items())


def _forgotten(node: ast.ClassDef) -> bool:
    """Whether a class assigns a submodule in `__init__` that no other line mentions."""
    made: set[str] = set()
    read: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self":
            (made if isinstance(n.ctx, ast.Store) else read).add(n.attr)
        if isinstance(n, ast.Call) and ast.unparse(n.func) in (
            "getattr",
            "self.children",
            "self.modules",
            "self.named_children",
            "self.__getattr__",
        ):
            return False
    layers = {
        t.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Assign)
        and isinstance(n.value, ast.Call)
        and ast.unparse(n.value.func).startswith(("nn.", "torch.nn."))
        and ast.unparse(n.value.func).rpartition(".")[2][:1].isupper()
        and not ast.unparse(n.value.func)
        .rpartition(".")[2]
        .startswith(
            (
                "ReLU",
                "Dropout",
                "MaxPool",
                "AvgPool",
                "Softmax",
                "LogSoftmax",
                "Sigmoid",
                "Tanh",
                "Flatten",
                "Identity",
                "Upsample",
                "LeakyReLU",
                "Adaptive",
                "Parameter",
            )
        )
        for t in n.targets
        if isinstance(t, ast.Attribute)
    }
    return bool(layers & (made - read))
