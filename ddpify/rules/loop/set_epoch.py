"""Tell the sampler which epoch it is.

What it does: `loader.sampler.set_epoch(epoch)` before the loop over a training loader; where no epoch number is in reach, the sampler's
    own is moved on by one.
Why: without it every epoch has the same order.
Safety: safe.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertBefore
from ddpify.facts import cuts
from ddpify.facts.collect import TrainingLoop
from ddpify.facts.flow import spelled_out
from ddpify.facts.model import Loop, New
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof
from ddpify.rules.context import Context
from ddpify.rules.data.loader import refused

CODE = "DDP401"
TITLE = "advance the sampler's epoch"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a loop over a loader that is evaluated",
        "for x, y in test_loader:\n"
        "    shape = x.shape\n",
        frame="epoch",
    ),
    Example(
        "a loop over what is not a loader",
        'for name in ("train", "test"):\n'
        "    os.makedirs(name, exist_ok=True)\n",
        frame="end",
    ),
    Example(
        "a sampler that moves on already",
        "import os\n"
        "\n"
        "import torch\n"
        "import torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "from torch.utils.data.distributed import DistributedSampler\n"
        "\n"
        'dist.init_process_group("gloo")\n'
        "train_set = TensorDataset(torch.ones(64, 8), torch.ones(64, 1))\n"
        "sampler = DistributedSampler(train_set)\n"
        "loader = DataLoader(train_set, batch_size=16 // dist.get_world_size(), sampler=sampler)\n"
        "model = DistributedDataParallel(torch.nn.Linear(8, 1))\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for epoch in range(9):\n"
        "    sampler.set_epoch(epoch)\n"
        "    for x, y in loader:\n"
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "        optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n",
    ),
    Example(
        "an epoch in reach",
        "for x, y in loader:\n"
        "    update(x, y)\n",
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    update(x, y)\n",
        frame="batches",
    ),
    Example(
        "no number of the epoch",
        "while True:\n"
        "    for x, y in loader:\n"
        "        update(x, y)\n",
        "while True:\n"
        "    loader.sampler.set_epoch(loader.sampler.epoch + 1)\n"
        "    for x, y in loader:\n"
        "        update(x, y)\n",
        frame="loop",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """One call for each loop over a training loader."""
    seen: set[tuple[ast.AST, ast.AST]] = set()
    placed: set[tuple[ast.AST, str]] = set()
    for training in context.facts.loops:
        for loader in sorted(
            (o for o in training.loaders if isinstance(o, New) and o.path not in cuts.PATHS), key=lambda o: getattr(o.node, "lineno", 0)
        ):
            held = (Obligation("epoch", loader.node),)
            if refused(context, loader):
                yield Proof(held[0], "it has no distributed sampler")
                continue
            if _set(context, loader):
                yield Proof(held[0], "set_epoch is called")
                continue
            loop = _loop_over(training, loader)
            if loop is None:
                yield from _restarted(context, training, loader, held, placed)
                continue
            if (loop.node, loader.node) in seen:
                yield Proof(held[0], "set with the other backward calls of this loop")
                continue
            seen.add((loop.node, loader.node))
            yield from _advance(context, training, loop, loader, held, placed)


def _restarted(
    context: Context, training: TrainingLoop, loader: New, held: tuple[Obligation, ...], placed: set[tuple[ast.AST, str]]
) -> Iterator[Change | Finding | Proof]:
    """A loader whose batches are drawn by hand moves on wherever it starts again: at `iter(loader)`, or at a loop of a generator."""
    run, tree = context.facts.after, context.tree
    calls = [c for c in run.trace.calls if c.args and loader in c.args[0].objs]
    if any("itertools.cycle" in c.func.paths() for c in calls) and not any("iter" in c.func.paths() for c in calls):
        yield Proof(held[0], "itertools.cycle goes through the first pass again and again, as it did")
        return
    starts = [(c.node, c.node.args[0]) for c in calls if "iter" in c.func.paths() and c.node.args and context.facts.is_entry(c.node)]
    loops = [n for n in tree.nodes() if isinstance(n, ast.For) and loader in run.value(n.iter).objs]
    texts = [
        (tree.statement(node), context.source(given)) for node, given in starts if run.value(given).made() <= set(context.facts.loaders)
    ]
    texts += [(loop, text) for loop in loops if (text := _loader_text(context, loop.iter, loader)) is not None]
    if not texts:
        yield context.manual(
            CODE,
            training.backward.node,
            "batches are drawn from this training loader without a loop over it",
            "loader.sampler.set_epoch(n) with a new n each time the loader starts again",
            held,
        )
        return
    for place, text in texts:
        if (place, text) not in placed:
            placed.add((place, text))
            why = "a new order each time it starts again, the same on all ranks"
            code = f"{text}.sampler.set_epoch({text}.sampler.epoch + 1)"
            yield Change(CODE, why, tree.shown, place, (InsertBefore(place, code),), discharges=held)
        else:
            yield Proof(held[0], "set where it starts again")


def _loop_over(training: TrainingLoop, loader: New) -> Loop | None:
    for loop in training.backward.loops:
        if isinstance(loop.node, (ast.For, ast.AsyncFor)) and loader in loop.element.batches() and loader not in loop.over.of_kind("batch"):
            return loop
    return None


def _set(context: Context, loader: New) -> bool:
    run = context.facts.after
    samplers = run.held(loader, "sampler").objs
    return any(c.method == "set_epoch" and (c.receiver.objs & samplers or not samplers) for c in run.trace.calls)


def _advance(
    context: Context,
    training: TrainingLoop,
    loop: Loop,
    loader: New,
    held: tuple[Obligation, ...],
    placed: set[tuple[ast.AST, str]],
) -> Iterator[Change | Finding | Proof]:
    node = loop.node
    assert isinstance(node, (ast.For, ast.AsyncFor))
    places = [node, *(context.tree.statement(n) for n in reversed(training.backward.stack) if context.facts.is_entry(n))]
    for place in places:
        if not context.facts.is_entry(place):
            continue
        text = _loader_text(context, node.iter, loader) if place is node else None
        text = text or _name(context, place, loader)
        if text is not None:
            break
    else:
        yield context.manual(CODE, node, "the sampler's epoch must move on before this loop", "loader.sampler.set_epoch(epoch)", held)
        return
    if text.endswith("]"):
        place = _outside(context, place)
    epoch = _epoch(context, training, place)
    value = epoch or f"{text}.sampler.epoch + 1"
    if (place, text) in placed:
        yield Proof(held[0], "set with the other loaders of this loop")
        return
    placed.add((place, text))
    yield Change(
        CODE,
        "a new order each epoch, the same on all ranks",
        context.tree.shown,
        place,
        (InsertBefore(place, f"{text}.sampler.set_epoch({value})"),),
        discharges=held,
    )


def _name(context: Context, place: ast.stmt, loader: New) -> str | None:
    """A name in reach at `place` that holds the loader and nothing else."""
    run, tree = context.facts.after, context.tree
    function = tree.function(place)
    for scope in (function, tree.root):
        for node in ast.walk(scope):
            name = (
                node.id
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                else node.arg
                if isinstance(node, ast.arg)
                else None
            )
            if name is not None and tree.function(node) is scope and run.value(node).made() == {loader}:
                return name
    return None


def _loader_text(context: Context, node: ast.expr, loader: New) -> str | None:
    """The innermost expression that is the loader itself, or the element that it is of the dict the loop takes its loaders from."""
    run = context.facts.after
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            made = run.value(part).made()
            if loader not in made or not all(run.is_loader(o) for o in made):
                continue
            if made <= set(context.facts.loaders):
                return context.source(part)
            for holder in run.value(part.value).made() if isinstance(part, ast.Subscript) else ():
                for (owner, name), held in run.memory.items():
                    if owner is holder and not name.startswith("[") and held.made() == {loader}:
                        return f"{context.source(part.value)}[{context.quoted(name)}]"  # type: ignore[union-attr]
            return None
    return None


def _outside(context: Context, place: ast.stmt) -> ast.stmt:
    """The loop over phases around a loop over batches, in front of which the epoch is set once."""
    for up in context.tree.ancestors(place):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, ast.For) and spelled_out(up.iter):
            return up
    return place


def _epoch(context: Context, training: TrainingLoop, place: ast.stmt) -> str | None:
    """A name in reach at `place` that holds the number of the epoch."""
    run = context.facts.after
    outer = [loop.node for loop in training.backward.loops if loop.node is not place]
    function = context.tree.function(place)
    inside = set(context.tree.ancestors(place))
    names: list[tuple[int, str]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in function.args.args:
            value, name = run.value(node), node.arg
        elif isinstance(node, ast.For) and node in inside and isinstance(node.target, ast.Name):
            value, name = run.value(node.target), node.target.id
        else:
            continue
        loops = [n for n in value.of_kind("index") if n in outer]
        if loops:
            names.append((max(outer.index(n) for n in loops), name))
    return max(names)[1] if names else None
