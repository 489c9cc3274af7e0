"""Tell the sampler which epoch it is.

What it does: `loader.sampler.set_epoch(epoch)` before the loop over a training loader, or `loader.batch_sampler.set_epoch(epoch)` where
    batches are drawn; where no epoch number is in reach, the sampler's own is moved on by one. A loader whose batches are drawn by hand
    moves on before each `iter(loader)`, wherever that stands: in a prefetcher's class, too. A loader made in the head of a loop is given
    a name first. One that is made anew for each epoch, where no number of the epoch is in reach, takes a number that rank 0 draws.
Why: without it every epoch has the same order.
Safety: safe; MANUAL where a loader that is made in the head of a loop is out of reach of the number of the epoch.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from ddpify.edits import FreshName, InsertBefore, Replace
from ddpify.facts import batch_source, library
from ddpify.facts.collect import TrainingLoop
from ddpify.facts.interpret.loops import spelled_out
from ddpify.facts.model import Call, Lit, Loop, New, Value
from ddpify.facts.tree import structure
from ddpify.records import dataclass
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof
from ddpify.rules.context import Context
from ddpify.rules.data.loader import epoch_of, refused, sampler_name, samplers

CODE = "DDP401"
TITLE = "advance the sampler's epoch"
_WHY = "a new order each epoch, the same on all ranks; a sampler that is not told the epoch repeats its order"
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
        "a loop over a data set",
        "for x, y in test_set:\n"
        "    shape = x.shape\n",
        frame="end",
    ),
    Example(
        "an iterator over a loader that is evaluated",
        "batches = iter(test_loader)\n"
        "x, y = next(batches)\n",
        frame="end",
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
        "batches that are drawn before the loop",
        "kept = list(loader)\n"
        "for x, y in kept:\n"
        "    update(x, y)\n",
        "loader.sampler.set_epoch(epoch)\n"
        "kept = list(loader)\n"
        "for x, y in kept:\n"
        "    update(x, y)\n",
        frame="batches",
    ),
    Example(
        "an iterator that starts again",
        "feed = iter(loader)\n"
        "for step in range(90):\n"
        "    try:\n"
        "        x, y = next(feed)\n"
        "    except StopIteration:\n"
        "        feed = iter(loader)\n"
        "        x, y = next(feed)\n"
        "    update(x, y)\n",
        "loader.sampler.set_epoch(loader.sampler.epoch + 1)\n"
        "feed = iter(loader)\n"
        "for step in range(90):\n"
        "    try:\n"
        "        x, y = next(feed)\n"
        "    except StopIteration:\n"
        "        loader.sampler.set_epoch(loader.sampler.epoch + 1)\n"
        "        feed = iter(loader)\n"
        "        x, y = next(feed)\n"
        "    update(x, y)\n",
        frame="loop",
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


_FIX = "loader.sampler.set_epoch(epoch), with the number of the epoch handed to where the loader is"


@dataclass(frozen=True)
class _Text:
    """How the script names a loader at a place; `guard` and `loop` are heads that the line about it stands under."""

    code: str
    guard: str = ""
    loop: str = ""


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """One call for each loop over a training loader."""
    seen: set[tuple[ast.AST, ast.AST]] = set()
    placed: set[tuple[ast.AST, str]] = set()
    for training in context.facts.loops:
        for loader in sorted(
            (o for o in training.loaders if isinstance(o, New) and o.path not in batch_source.PATHS),
            key=lambda o: getattr(o.node, "lineno", 0),
        ):
            obligations = (Obligation("epoch", loader.node),)
            if refused(context, loader):
                yield Proof(obligations[0], "it has no distributed sampler")
                continue
            if not epoch_of(context, loader):
                yield Proof(obligations[0], "a stream has no sampler")
                continue
            if _set(context, loader):
                yield Proof(obligations[0], "set_epoch is called")
                continue
            loop = _loop_over(training, loader)
            if loop is None:
                yield from _restarted(context, training, loader, obligations, placed)
                continue
            if (loop.node, loader.node) in seen:
                yield Proof(obligations[0], "set with the other backward calls of this loop")
                continue
            seen.add((loop.node, loader.node))
            yield from _advance(context, training, loop, loader, obligations, placed)


def _restarted(
    context: Context, training: TrainingLoop, loader: New, obligations: tuple[Obligation, ...], placed: set[tuple[ast.AST, str]]
) -> Iterator[Change | Finding | Proof]:
    """A loader whose batches are drawn by hand moves on wherever it starts again: at `iter(loader)`, or at a loop of a generator."""
    run, tree = context.facts.after, context.tree
    calls = [c for c in run.trace.calls if c.args and loader in c.args[0].objs]
    if any("itertools.cycle" in c.func.paths() for c in calls) and not any("iter" in c.func.paths() for c in calls):
        yield Proof(obligations[0], "itertools.cycle goes through the first pass again and again, as it did")
        return
    begun = [(c.node, c.node.args[0]) for c in calls if _starts(context, c)] + list(_gone_through(context, loader))
    away = [n for n, _ in begun if not context.facts.is_edited(n)]
    if away:
        yield context.manual(CODE, away[0], "batches of the training loader are drawn here", _AGAIN, obligations)
        return
    starts = [(tree.statement(n), found) for n, what in begun if (found := _guarded(context, what, loader)) is not None]
    inline = [c for c in calls if _starts(context, c) and c.node.args[0] is loader.node and not c.loops]
    if inline and len(inline) == len([c for c in calls if "len" not in c.func.paths()]):
        yield Proof(obligations[0], "it starts once")
        return
    if not starts or _remade(context, training, loader, len(starts)):
        if _keeps_order(context, loader):
            yield Proof(obligations[0], "it keeps the order of its data")
            return
        yield context.manual(
            CODE,
            training.backward.node,
            "batches are drawn from this training loader without a loop over it",
            _AGAIN,
            obligations,
        )
        return
    for place, text in starts:
        if (place, text.code) not in placed:
            placed.add((place, text.code))
            why = "a new order each time it starts again, the same on all ranks"
            at = f"{text.code}.{epoch_of(context, loader)}"
            yield _change(context, why, place, text, f"{at}.set_epoch({at}.epoch + 1)", obligations)
        else:
            yield Proof(obligations[0], "set where it starts again")


_AGAIN = "loader.sampler.set_epoch(n) with a new n each time the loader starts again"


def _guarded(context: Context, node: ast.expr, loader: New) -> _Text | None:
    """The text of a loader, asked for its sampler first where scripts that are not converted draw their batches there, too."""
    found, facts = _loader_text(context, node, loader), context.facts
    if found is None or found.guard or facts.in_main(node) or not facts.project.is_shared(facts.tree_of(node).name):
        return found
    kind = sampler_name(context, frozenset((loader,)))
    return _Text(found.code, f"if isinstance({found.code}.sampler, {kind})", found.loop) if kind else None


def _gone_through(context: Context, loader: New) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Where a loader's batches are handed on one by one: a loop of a generator, or `yield from loader`."""
    run = context.facts.after
    for tree in context.facts.trees.values():
        for node in tree.nodes():
            over = node.iter if isinstance(node, ast.For) else node.value if isinstance(node, ast.YieldFrom) else None
            if over is not None and loader in run.value(over).objs:
                yield node, over


def _starts(context: Context, call: Call) -> bool:
    """Whether a call makes an iterator that is kept: `iter(loader)`, or `enumerate(loader)` that no loop runs over."""
    paths, up = call.func.paths(), context.tree.parent.get(call.node)
    return "iter" in paths or ("enumerate" in paths and not isinstance(up, (ast.For, ast.comprehension, ast.Call)))


def _change(
    context: Context, why: str, place: ast.stmt, text: _Text, line: str, obligations: tuple[Obligation, ...], needs: str = ""
) -> Change:
    imports: tuple[str, ...] = ("import torch",) if needs else ()
    for header in (text.guard, text.loop):
        line = f"{header}:\n{textwrap.indent(line, '    ')}" if header else line
    if "DistributedSampler" in text.guard:
        imports += ("from torch.utils.data.distributed import DistributedSampler",)
    wanted = (needs,) if needs else ()
    return Change(CODE, why, context.tree.shown, place, (InsertBefore(place, line),), imports, discharges=obligations, needs=wanted)


def _remade(context: Context, training: TrainingLoop, loader: New, starts: int = 0) -> bool:
    """Whether a loader is made again in each epoch, or for each of its `starts`: then its sampler's epoch starts again, too."""
    around = {loop.node for loop in (training.epoch, training.batch if starts == 1 else None) if loop is not None}
    return any(loop.node in around for call in context.facts.after.calls(loader.node) for loop in call.loops)


def _keeps_order(context: Context, loader: New) -> bool:
    """Whether a loader does not shuffle, so that its epoch says nothing."""
    run = context.facts.after
    given = run.attribute(loader, "sampler").instances() | run.attribute(loader, "batch_sampler").instances()
    if given:
        return all(o.path == library.DISTRIBUTED_SAMPLER and _false(run.memory.get((o, "shuffle"))) for o in given)
    seen = isinstance(loader.node, ast.Call) and all(k.arg for k in loader.node.keywords)
    return seen and ((loader, "shuffle") not in run.memory or _false(run.memory[loader, "shuffle"]))


def _false(value: Value | None) -> bool:
    return value is not None and bool(value.objs) and all(isinstance(o, Lit) and not o.value for o in value.objs)


def _loop_over(training: TrainingLoop, loader: New) -> Loop | None:
    for loop in training.backward.loops:
        if isinstance(loop.node, (ast.For, ast.AsyncFor)) and loader in loop.element.batches() and loader not in loop.over.of_kind("batch"):
            return loop
    return None


def _set(context: Context, loader: New) -> bool:
    run = context.facts.after
    mine, given = samplers(context, loader), run.attribute(loader, "sampler").objs | run.attribute(loader, "batch_sampler").objs
    return any(c.method == "set_epoch" and (c.receiver.objs & mine or not given) for c in run.trace.calls)


def _advance(
    context: Context,
    training: TrainingLoop,
    loop: Loop,
    loader: New,
    obligations: tuple[Obligation, ...],
    placed: set[tuple[ast.AST, str]],
) -> Iterator[Change | Finding | Proof]:
    node = loop.node
    assert isinstance(node, (ast.For, ast.AsyncFor))
    places = [node, *(context.tree.statement(n) for n in reversed(training.backward.stack) if context.facts.is_edited(n))]
    if not context.facts.in_main(node):  # a module runs the batches, and the script the epochs
        places = sorted(places, key=lambda p: not (context.facts.in_main(p) and _epoch(context, training, p)))
    for place in places:
        if not context.facts.is_edited(place):
            continue
        text = _loader_text(context, node.iter, loader) if place is node else None
        text = text or _name(context, place, loader)
        if text is not None:
            break
    else:
        yield from _unnamed(context, training, node, loader, obligations)
        return
    if text.code.endswith("]"):
        place = _outside(context, place)
    ahead = _drawn_ahead(context, node, loader) if place is node else None
    if ahead is not None:
        place, text = ahead, _loader_text(context, ahead.value, loader) or _name(context, ahead, loader) or text
    epoch = _epoch(context, training, place)
    at = f"{text.code}.{epoch_of(context, loader)}"
    value, needs = epoch or f"{at}.epoch + 1", ""
    if (place, text.code) in placed:
        yield Proof(obligations[0], "set with the other loaders of this loop")
        return
    if not epoch and _remade(context, training, loader):
        if _keeps_order(context, loader):
            yield Proof(obligations[0], "it keeps the order of its data")
            return
        needs = "from_rank_zero"  # a sampler that is made for each epoch, by what knows no number of the epoch: rank 0 draws one
        value = f"int({context.names[needs]}(torch.randint(2**31, ())))"
    placed.add((place, text.code))
    yield _change(context, _WHY, place, text, f"{at}.set_epoch({value})", obligations, needs)


def _drawn_ahead(context: Context, loop: ast.For | ast.AsyncFor, loader: New) -> ast.Assign | None:
    """The statement before a loop, in its block, that gives the loader to what may draw batches from then on, such as a thread."""
    run, read = context.facts.after, {structure(n) for n in ast.walk(loop.iter) if isinstance(n, (ast.Name, ast.Attribute))}
    block = context.tree.block(loop)
    for statement in reversed(block[: block.index(loop)]):
        if not isinstance(statement, ast.Assign) or not {structure(t) for t in statement.targets} & read:
            continue
        calls = [n for n in ast.walk(statement.value) if isinstance(n, ast.Call) and not _waits(context, n)]
        given = [a for call in calls for a in (*call.args, *(k.value for k in call.keywords))]
        if any(loader in run.value(a).objs for a in given):
            return statement
        read |= {structure(n) for n in ast.walk(statement.value) if isinstance(n, (ast.Name, ast.Attribute))}
    return None


def _waits(context: Context, call: ast.Call) -> bool:
    """Whether a call draws nothing before a loop asks it to."""
    paths = context.facts.after.value(call.func).paths()
    return bool(paths) and all(p in ("len", "enumerate", "zip") or p.startswith(("tqdm.", "itertools.", "progressbar.")) for p in paths)


def _unnamed(
    context: Context, training: TrainingLoop, node: ast.For | ast.AsyncFor, loader: New, obligations: tuple[Obligation, ...]
) -> Iterator[Change | Finding | Proof]:
    """A loop over a loader that is made in its head: the loader is given a name first."""
    epoch = _epoch(context, training, node) if context.facts.is_edited(node) else None
    made = [n for n in ast.walk(node.iter) if isinstance(n, ast.Call) and context.facts.after.value(n).instances() == {loader}]
    if epoch is None or not made:
        yield _not_advanced(context, node, loader, obligations)
        return
    name = FreshName(("loader", "train_loader", "train_batches"), node, context.tree.function(node))
    code = f"{name} = {{0}}\n{name}.{epoch_of(context, loader)}.set_epoch({epoch})"
    edits = (InsertBefore(node, code, (made[0],), (name,)), Replace(made[0], str(name)))
    yield Change(CODE, _WHY, context.tree.shown, node, edits, discharges=obligations)


def _not_advanced(context: Context, node: ast.AST, loader: New, obligations: tuple[Obligation, ...]) -> Finding | Proof:
    if _keeps_order(context, loader):
        return Proof(obligations[0], "it keeps the order of its data")
    return context.manual(CODE, node, "the sampler's epoch must move on before this loop", _FIX, obligations)


def _name(context: Context, place: ast.stmt, loader: New) -> _Text | None:
    """A name in reach at `place`, or an attribute of one, that holds the loader and nothing else."""
    run, tree = context.facts.after, context.tree
    function, attributes = tree.function(place), set[str]()
    for scope in (function, context.facts.tree_of(place).root):
        for node in ast.walk(scope):
            name = (
                node.id
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                else node.arg
                if isinstance(node, ast.arg)
                else None
            )
            if name is not None and tree.function(node) is scope and run.value(node).instances() == {loader}:
                return _Text(name)
            if (
                isinstance(node, ast.Attribute)
                and scope is function
                and run.value(node).instances() == {loader}
                and _reachable(node, function)
            ):
                attributes.add(context.source(node))
        if attributes:
            return _Text(min(attributes))
    return None


def _reachable(node: ast.Attribute, function: ast.AST) -> bool:
    """Whether an attribute that a function reads is that of one of its parameters, and not written by it."""
    stored = any(isinstance(n, ast.Attribute) and n.attr == node.attr and isinstance(n.ctx, ast.Store) for n in ast.walk(function))
    given = function.args.args if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return not stored and isinstance(node.value, ast.Name) and node.value.id in {p.arg for p in given}


def _loader_text(context: Context, node: ast.expr, loader: New) -> _Text | None:
    """The innermost expression that is the loader itself, or the element that it is of the dict the loop takes its loaders from."""
    run, tree = context.facts.after, context.tree
    for part in ast.walk(node):
        if not isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            continue
        instances = run.value(part).instances()
        if len(instances) == 1 and loader not in instances:  # an object of the script's own around it
            (around,) = instances
            attributes = [n for n, v in run.of(around).items() if v.instances() == {loader} and n.isidentifier()]
            if around.cls is not None and attributes:
                return _Text(f"{context.source(part)}.{attributes[0]}")
        if loader not in instances or not all(run.is_loader(o) for o in instances):
            continue
        if instances <= set(context.facts.loaders):
            return _Text(context.source(part), loop=_comprehended(context, part))
        for holder in run.value(part.value).instances() if isinstance(part, ast.Subscript) else ():
            for name, value in run.of(holder).items():
                if not name.startswith("[") and value.instances() == {loader}:
                    return _Text(f"{context.source(part.value)}[{context.quoted(name)}]")  # type: ignore[union-attr]
        kind = sampler_name(context, frozenset((loader,)))
        if isinstance(part, (ast.Name, ast.Attribute)) and kind and part in tree.parent:
            code = context.source(part)
            return _Text(code, f"if isinstance({code}.sampler, {kind})", _comprehended(context, part))
        return None
    return None


def _comprehended(context: Context, part: ast.expr) -> str:
    """The head of the loop that gives a name of a comprehension what it has there; empty where it is not of one."""
    for up in context.tree.ancestors(part):
        if isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) and len(up.generators) == 1:
            head = up.generators[0]
            bound = {n.id for n in ast.walk(head.target) if isinstance(n, ast.Name)}
            if bound & {n.id for n in ast.walk(part) if isinstance(n, ast.Name)} and not head.ifs:
                return f"for {context.source(head.target)} in {context.source(head.iter)}"
        if isinstance(up, ast.stmt):
            break
    return ""


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
