"""Set the sampler's epoch before each pass over the training data.

What it does: `loader.sampler.set_epoch(epoch)` before the loop over a training loader, or `loader.batch_sampler.set_epoch(epoch)` where
    batches are drawn; where the script has no epoch number there, the sampler's own is incremented. A loader whose batches are drawn by
    hand moves on before each `iter(loader)`, wherever that stands: in a prefetcher's class, too. A loader made in the head of a loop is
    given a name first. One that is made anew for each epoch, where no number of the epoch is in reach, takes a number that rank 0 draws.
Why: without it every epoch has the same order.
Safety: safe; MANUAL where a loader that is made in the head of a loop is out of reach of the number of the epoch.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from itertools import takewhile

from ddpify.edits import FreshName, InsertBefore, Replace
from ddpify.facts import batch_source, library
from ddpify.facts.collect import TrainingLoop, batches_of
from ddpify.facts.interpret.loops import spelled_out
from ddpify.facts.model import Call, Like, Lit, New, ordered
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, names_in, names_stored, same, structure, walk
from ddpify.records import dataclass, replace
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof
from ddpify.rules.context import Context
from ddpify.rules.data.loader import epoch_of, refused, sampler_kinds, samplers, sharded
from ddpify.rules.data.remade import trains_anew
from ddpify.rules.data.sampler import Kinds
from ddpify.rules.loop.fresh import assigned
from ddpify.rules.loop.last_batch import given_as, given_to

CODE = "DDP401"
TITLE = "set the sampler's epoch"
_WHY = "the sampler shuffles by the epoch's number: without set_epoch, every epoch would have the same order"
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


_AGAIN = "loader.sampler.set_epoch(n) with a new n each time the loader starts again"


@dataclass(frozen=True)
class _Text:
    """How the script names a loader at a place, and others that its call has made too, `beside` it.

    The line about it stands under the head of a `loop`, and under a test of its sampler where only some loaders have one of these `kinds`.
    """

    code: str
    kinds: Kinds | None = None
    loop: str = ""
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Feed:
    """A training loop and one of the loaders that feed it."""

    context: Context
    training: TrainingLoop
    loader: New

    @property
    def obligation(self) -> Obligation:
        """That the epoch of the loader's sampler moves on."""
        return Obligation("epoch", self.loader.node)

    @property
    def proof(self) -> Proof:
        """That nothing is to be done."""
        return Proof(self.obligation)

    def by_hand(self, node: ast.AST, message: str, fix: str) -> Finding:
        """What the user has to do."""
        return self.context.manual(CODE, node, message, fix, (self.obligation,))

    def unless_ordered(self, node: ast.AST, message: str, fix: str) -> Finding | Proof:
        """What the user has to do where the loader shuffles."""
        return self.proof if self.context.facts.after.keeps_order(self.loader) else self.by_hand(node, message, fix)

    def change(
        self, why: str, place: ast.stmt, text: _Text, epoch: str = "", needs: tuple[str, ...] = (), around: ast.stmt | None = None
    ) -> Change:
        """The line before `place` that sets the epoch; without a number of it, the sampler's own is moved on by one.

        The sampler has a name of its own before the loop `around` in which the loader's is lost.
        """
        samplers = [f"{code}.{epoch_of(self.context, self.loader)}" for code in (text.code, *text.beside)]
        ahead: tuple[InsertBefore, ...] = ()
        if around is not None:
            name = FreshName(("sampler", "train_sampler", "epoch_sampler"), around, self.context.tree.function(around))
            ahead, samplers = (InsertBefore(around, f"{name} = {samplers[0]}", binds=(name,)),), [str(name)]
        line = "\n".join(f"{sampler}.set_epoch({epoch or f'{sampler}.epoch + 1'})" for sampler in samplers)
        for header in (text.kinds.test(text.code) if text.kinds else "", text.loop):
            line = f"{header}:\n{textwrap.indent(line, '    ')}" if header else line
        imports: tuple[str, ...] = ("import torch",) if needs else ()
        if text.kinds:
            imports, needs = (*imports, *text.kinds.imports), (*needs, *text.kinds.needs)
        shown, edits = self.context.tree.shown, (*ahead, InsertBefore(place, line))
        return Change(CODE, why, shown, place, edits, imports, discharges=(self.obligation,), needs=needs)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """One call for each loop over a training loader."""
    seen: set[tuple[ast.AST, New]] = set()
    placed: set[tuple[ast.AST, str]] = set()
    for training in context.facts.loops:
        loaders = [o for o in training.loaders if isinstance(o, New) and o.path not in batch_source.PATHS]
        for loader in ordered(loaders):
            feed, loop = _Feed(context, training, loader), _loop_over(context.facts.after, training, loader)
            if _needs_nothing(context, loader):
                yield feed.proof
            elif loop is None:
                yield from _restarted(feed, placed)
            elif (loop, loader) in seen:
                yield feed.proof
            else:
                seen.add((loop, loader))
                yield _advanced(feed, loop, placed)


def _needs_nothing(context: Context, loader: New) -> bool:
    """Whether a loader is left alone: it has no distributed sampler, as a stream has none, or the script sets its epoch."""
    return refused(context, loader) or not epoch_of(context, loader) or _sets_epoch(context, loader)


def _restarted(feed: _Feed, placed: set[tuple[ast.AST, str]]) -> Iterator[Change | Finding | Proof]:
    """A loader whose batches are drawn by hand moves on wherever it starts again: at `iter(loader)`, or at a loop of a generator."""
    context, loader, run = feed.context, feed.loader, feed.context.facts.after
    calls = [c for c in run.trace.calls if c.args and loader in c.args[0].objs]
    through = [c for c in run.trace.calls if c.args and c not in calls and _starts(context, c) and _feeds(run, loader, c)]
    if all(_started_text(context, c.node, _gone_over(c), loader) is not None for c in through if context.facts.is_edited(c.node)):
        calls += through
    paths = {path for c in calls for path in c.func.paths()}
    begun = [(c.node, _gone_over(c)) for c in calls if _starts(context, c)] + list(_gone_through(context, loader))
    away = [node for node, _ in begun if not context.facts.is_edited(node)]
    if "itertools.cycle" in paths and "iter" not in paths:  # it goes through the first pass again and again, as it did
        yield feed.proof
        return
    if away:
        yield feed.by_hand(
            away[0],
            "a module that is not edited draws batches of the training loader: without set_epoch, every pass has the same order",
            _AGAIN,
        )
        return
    starts = [(context.tree.statement(n), text) for n, what in begun if (text := _started_text(context, n, what, loader)) is not None]
    if _starts_once(context, loader, calls):
        yield feed.proof
        return
    inline = [c for c in calls if _starts(context, c) and _gone_over(c) is loader.node]
    if len(inline) == len(begun) == 1 and (change := _named(feed, context.tree.statement(inline[0].node), loader.node)) is not None:
        yield change  # it is made anew where it starts again
        return
    if not starts or _remade(feed, len(starts)):
        message = "batches are drawn from this training loader without a loop over it: without set_epoch, every pass has the same order"
        yield feed.unless_ordered(feed.training.backward.node, message, _AGAIN)
        return
    for place, text in starts:
        if (place, text.code) in placed:
            yield feed.proof
        else:
            placed.add((place, text.code))
            yield feed.change(
                "the sampler gets a new number each time the loader starts again: otherwise the order would repeat", place, text
            )


def _starts_once(context: Context, loader: New, calls: list[Call]) -> bool:
    """Whether a loader is made where its one iterator is: `iter(DataLoader(...))`."""
    inline = [c for c in calls if _starts(context, c) and _gone_over(c) is loader.node and not c.loops]
    return bool(inline) and len(inline) == len([c for c in calls if "len" not in c.func.paths()])


def _checked_text(context: Context, node: ast.expr, loader: New) -> _Text | None:
    """The text of a loader, asked for its sampler first where scripts that are not converted draw their batches there, too."""
    text, facts = _loader_text(context, node, loader), context.facts
    if text is None or text.kinds or facts.in_main(node) or not facts.project.is_shared(facts.tree_of(node).name):
        return text
    kinds = sampler_kinds(context, frozenset((loader,)))
    return _Text(text.code, kinds, text.loop) if kinds else None


def _feeds(run: Run, loader: New, call: Call) -> bool:
    """Whether what a call makes an iterator of takes its elements from a loader: `iter(tqdm(loader))`."""
    return any(loader in over.objs for over in run.iterated(call.args[0]))


def _started_text(context: Context, node: ast.AST, over: ast.expr, loader: New) -> _Text | None:
    """The text of a loader that starts again at a node, by its own name or by that of what goes through it."""
    text, place = _checked_text(context, over, loader), context.tree.statement(node)
    if text is not None or _handed_ahead(context, place, over, loader) is not None:
        return text
    return _given_text(context, place, over, loader)


def _gone_through(context: Context, loader: New) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Where a loader's batches are handed on one by one: a loop of a generator, a comprehension, or `yield from loader`."""
    run = context.facts.after
    for tree in context.facts.trees.values():
        for node in tree.nodes():
            over = node.iter if isinstance(node, (ast.For, ast.comprehension)) else node.value if isinstance(node, ast.YieldFrom) else None
            if isinstance(over, ast.Call) and over.args and _counts(context, over):
                over = over.args[0]
            if over is not None and loader in run.value(over).objs:
                yield node, over


def _gone_over(call: Call) -> ast.expr:
    """What `iter(loader)`, or `loader.__iter__()`, makes an iterator of."""
    func = call.node.func
    return func.value if not call.node.args and isinstance(func, ast.Attribute) else call.node.args[0]


def _starts(context: Context, call: Call) -> bool:
    """Whether a call makes an iterator that is kept: `iter(loader)`, or `enumerate(loader)` that no loop runs over."""
    paths, up = call.func.paths(), context.facts.tree_of(call.node).parent.get(call.node)
    passed_on = isinstance(up, ast.Call) and "iter" not in context.facts.after.value(up.func).paths()
    return "iter" in paths or ("enumerate" in paths and not passed_on and not isinstance(up, (ast.For, ast.comprehension)))


def _counts(context: Context, node: ast.Call) -> bool:
    """Whether a call numbers what is gone through: `enumerate(loader)`."""
    return "enumerate" in context.facts.after.value(node.func).paths()


def _remade(feed: _Feed, starts: int = 0) -> bool:
    """Whether a loader is made again in each epoch, or for each of its `starts`: then its sampler's epoch starts again, too."""
    training, context = feed.training, feed.context
    around = {loop.node for loop in (training.epoch, training.batch if starts == 1 else None) if loop is not None}
    return any(
        loop.node in around and not trains_anew(context, loop)
        for call in context.facts.after.calls(feed.loader.node)
        for loop in call.loops
    )


def _loop_over(run: Run, training: TrainingLoop, loader: New) -> ast.For | ast.AsyncFor | None:
    for loop in training.backward.loops:
        draws = loader in batches_of(run, loop.element)
        draws &= loader not in loop.over.of_kind("batch") or any(loader in over.objs for over in run.iterated(loop.over))
        draws &= not any(_was_drawn(run, o, loader) for o in loop.over.instances() if o.path == "list")
        if isinstance(loop.node, (ast.For, ast.AsyncFor)) and draws:
            return loop.node
    return None


def _was_drawn(run: Run, group: New, loader: New) -> bool:
    """Whether a list holds some batches of a loader that were drawn before: one after another, or from an iterator."""
    over = run.attribute(group, "iterable")
    iterators = (over, *(run.attribute(o, "iterable") for o in over.instances()))
    return loader in batches_of(run, run.attribute(group, "[]")) or any(o.path == "iter" for v in iterators for o in v.instances())


def _sets_epoch(context: Context, loader: New) -> bool:
    """Whether the script sets the epoch of the sampler that a loader has, or will have: by its name, where it is shared out already."""
    run, shared = context.facts.after, sharded(context, loader)
    mine = samplers(context, loader) if shared else frozenset()
    given = run.attribute(loader, "sampler").instances() | run.attribute(loader, "batch_sampler").instances()
    trained = (loop.backward for loop in context.facts.loops if loader in loop.loaders)
    begun = (c for c in run.trace.calls if c.args and loader in c.args[0].objs and _starts(context, c))
    around = {test for call in (*trained, *begun, *run.calls(loader.node)) for test, _ in call.tests}
    for call in (c for c in run.trace.calls if c.method == "set_epoch"):
        held = call.node.func.value if isinstance(call.node, ast.Call) and isinstance(call.node.func, ast.Attribute) else call.node
        of_it = (shared or not given) and isinstance(held, ast.Attribute) and loader in run.value(held.value).objs
        asked = [walk(test) for test, _ in call.tests if test not in around]  # a setting need not hold
        sure = all(any(same(n, held) or run.value(n).paths() & library.JOINED for n in nodes) for nodes in asked)
        if sure and (of_it or call.receiver.objs & mine):
            return True
    return False


def _advanced(feed: _Feed, loop: ast.For | ast.AsyncFor, placed: set[tuple[ast.AST, str]]) -> Change | Finding | Proof:
    """The epoch of a loop's loader is set before the loop, or further out."""
    context = feed.context
    located = _place(feed, loop)
    if located is None:
        return _unnamed(feed, loop, placed)
    place, text = located
    epoch, needs = _epoch(context, feed.training, place), tuple[str, ...]()
    if (place, text.code) in placed:
        return feed.proof
    if not epoch and _remade(feed):
        if context.facts.after.keeps_order(feed.loader):
            return feed.proof
        epoch, needs = _drawn(context)
    placed.add((place, text.code))
    ahead = _before_taken(context, place, text)
    if ahead is not None and text != _Text(text.code):
        message = f"`{text.code}` comes to hold something else: the epoch of its loader's sampler is not set"
        return feed.by_hand(loop, message, "leave the loader its name, and give what goes through it another one")
    return feed.change(_WHY, place, text, epoch, needs, ahead)


def _before_taken(context: Context, place: ast.stmt, text: _Text) -> ast.stmt | None:
    """The last statement before a place at which a name still holds its loader, and not what goes through it: `loader = tqdm(loader)`.

    That is the loop around the place in which the name is lost, or what loses it above. None where the place comes first.
    """
    run, tree = context.facts.after, context.tree
    function = tree.function(place)
    stored = [n for n in names_stored(function) if n.id == text.code] if isinstance(function, (ast.FunctionDef, ast.Module)) else []
    stored.sort(key=_position)
    lost = [n for n in stored if any(not run.is_loader(o) for o in run.value(n).instances())]
    bound = [n for n in stored if n not in lost]
    around = [up for up in tree.ancestors(place) if isinstance(up, (ast.For, ast.While)) and tree.function(up) is function]
    inside = [set(walk(up)) for up in around]
    again = [up for up, nodes in zip(around, inside, strict=True) if not nodes.isdisjoint(lost) and nodes.isdisjoint(bound)]
    if again:
        return again[-1]
    above = tree.statement(lost[0]) if lost and max(map(_position, bound), default=(0, 0)) < _position(lost[0]) < _position(place) else None
    return above if around and above in getattr(function, "body", ()) else None


def _position(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _drawn(context: Context) -> tuple[str, tuple[str, ...]]:
    """The epoch of a sampler that is made for each epoch, by what knows no number of the epoch: rank 0 draws one."""
    return f"int({context.names['from_rank_zero']}(torch.randint(2**31, ())))", ("from_rank_zero",)


def _place(feed: _Feed, loop: ast.For | ast.AsyncFor) -> tuple[ast.stmt, _Text] | None:
    """The statement before which the epoch is set: the loop, or a call that leads to it, where the loader has a name; and that name."""
    context, loader = feed.context, feed.loader
    places = [context.tree.statement(n) for n in (loop, *reversed(feed.training.backward.stack)) if context.facts.is_edited(n)]
    if not context.facts.in_main(loop):  # a module runs the batches, and the script the epochs
        places = sorted(places, key=lambda p: not (context.facts.in_main(p) and _epoch(context, feed.training, p)))
    for place in places:
        text = _loader_text(context, loop.iter, loader) or _given_text(context, loop, loop.iter, loader) if place is loop else None
        text = text or _name(context, place, loader)
        if text is None:
            continue
        if text.code.endswith("]"):
            place = _outside(context, place)
        ahead = _handed_ahead(context, loop, loop.iter, loader) if place is loop else None
        if ahead is not None:
            return ahead, _loader_text(context, ahead.value, loader) or _name(context, ahead, loader) or text
        return place, text
    return None


def _handed_ahead(context: Context, place: ast.stmt, over: ast.expr, loader: New) -> ast.Assign | None:
    """The statement above a place, in its block, that gives the loader to what may draw batches from then on, such as a thread.

    Or that takes the loader's name for what goes through it: `loader = tqdm(loader)`.
    """
    run, read = context.facts.after, {structure(n) for n in walk(over) if isinstance(n, (ast.Name, ast.Attribute))}
    block = context.tree.block(place)
    for statement in reversed(block[: block.index(place)]):
        if not isinstance(statement, ast.Assign) or not {structure(t) for t in statement.targets} & read:
            continue
        taken = {structure(t) for t in statement.targets}
        calls = [n for n in walk(statement.value) if isinstance(n, ast.Call)]
        given = [(call, a) for call in calls for a in (*call.args, *(k.value for k in call.keywords)) if loader in run.value(a).objs]
        if any(structure(a) in taken or not _waits(context, call) for call, a in given):
            return statement
        read |= {structure(n) for n in walk(statement.value) if isinstance(n, (ast.Name, ast.Attribute))}
    return None


def _given_text(context: Context, place: ast.stmt, over: ast.expr, loader: New) -> _Text | None:
    """The loader that a name in what is gone over stands for, as the script writes it in the block before: `bar = tqdm(loader)`."""
    block, bound = context.tree.block(place), set[str]()
    for statement in reversed(block[: block.index(place)]):
        stored = {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if stored & names_in(over):
            given = statement.value if isinstance(statement, ast.Assign) and not bound & names_in(statement) else None
            return _loader_text(context, given, loader) if given is not None else None
        bound |= stored
    return None


def _waits(context: Context, call: ast.Call) -> bool:
    """Whether a call draws nothing before a loop asks it to."""
    paths = context.facts.after.value(call.func).paths()
    # `enumerate` and `zip` start a loader at once
    return bool(paths) and all(p == "len" or p.startswith(("tqdm.", "progressbar.")) for p in paths)


def _unnamed(feed: _Feed, loop: ast.For | ast.AsyncFor, placed: set[tuple[ast.AST, str]]) -> Change | Finding | Proof:
    """A loop over a loader that is made in its head."""
    run, made, alike = feed.context.facts.after, feed.loader.node, set(feed.context.facts.loaders)
    if len(run.calls(made)) == 1 and len(feed.training.backward.loops) == 1:
        return feed.proof  # a single pass
    calls = [n for n in walk(loop.iter) if isinstance(n, ast.Call) and feed.loader in run.value(n).instances() <= alike]
    change = _named(feed, loop, calls[0]) if calls and feed.context.facts.is_edited(loop) else None
    if change is not None and (calls[0], "") in placed:
        return feed.proof  # its function is called for several data sets
    placed.update((call, "") for call in calls[:1])
    fix = "loader.sampler.set_epoch(epoch), with the number of the epoch handed to where the loader is"
    return change or feed.unless_ordered(loop, "the sampler's epoch is not set before this loop: every epoch has the same order", fix)


def _named(feed: _Feed, place: ast.stmt, made: ast.AST) -> Change | None:
    """The loader gets a name before the statement that it is made in; None where its order is not drawn."""
    context = feed.context
    epoch, needs = _epoch(context, feed.training, place), tuple[str, ...]()
    if not isinstance(made, ast.expr) or (not epoch and context.facts.after.keeps_order(feed.loader)):
        return None
    if not epoch:
        epoch, needs = _drawn(context)
    name = FreshName(("loader", "train_loader", "train_batches"), made, context.tree.function(place))
    code = f"{name} = {{0}}\n{name}.{epoch_of(context, feed.loader)}.set_epoch({epoch})"
    edits = (InsertBefore(place, code, (made,), (name,)), Replace(made, str(name)))
    return Change(CODE, _WHY, context.tree.shown, place, edits, needs=needs, discharges=(feed.obligation,))


def _name(context: Context, place: ast.stmt, loader: New) -> _Text | None:
    """A name in reach at `place`, or an attribute of one, that holds the loader, or it or another that feeds the training."""
    run, tree, feeding = context.facts.after, context.tree, set(context.facts.loaders)
    function = tree.function(place)
    for scope in (function, context.facts.tree_of(place).root):
        holding = [n for n in walk(scope) if loader in run.value(n).instances() <= feeding]
        bound = [n for n in holding if isinstance(n, ast.arg) or (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))]
        names = [n.arg if isinstance(n, ast.arg) else n.id for n in bound if tree.function(n) is scope]
        attributes = [context.source(n) for n in holding if isinstance(n, ast.Attribute) and scope is function and _reachable(n, function)]
        if names or attributes:
            return _Text(names[0] if names else min(attributes))
    return None


def _reachable(node: ast.Attribute, function: ast.AST) -> bool:
    """Whether an attribute that a function reads is that of one of its parameters, and not written by it."""
    stored = any(isinstance(n, ast.Attribute) and n.attr == node.attr and isinstance(n.ctx, ast.Store) for n in walk(function))
    given = function.args.args if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return not stored and isinstance(node.value, ast.Name) and node.value.id in {p.arg for p in given}


def _loader_text(context: Context, node: ast.expr, loader: New) -> _Text | None:
    """The innermost expression that is the loader itself, or the element that it is of the dict the loop takes its loaders from."""
    run = context.facts.after
    for part in walk(node):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            instances = run.value(part).instances()
            if loader in instances and all(map(run.is_loader, instances)):
                text = _text_of_one(context, part, loader)
                return text and replace(text, beside=_beside(context, node, part, loader))
            if attribute := _attribute_holding(context, instances, loader):
                return _Text(f"{context.source(part)}.{attribute}")
    return None


def _beside(context: Context, node: ast.expr, first: ast.expr, loader: New) -> tuple[str, ...]:
    """The other names in an expression that one call has made loaders for: `first, second = [DataLoader(...) for data in both]`."""
    named = [n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and context.facts.after.value(n).instances() == {loader}]
    return tuple(text for text in dict.fromkeys(map(context.source, named)) if text != context.source(first))


def _attribute_holding(context: Context, instances: frozenset[New], loader: New) -> str:
    """The attribute by which an object of the script's own holds a loader; empty where there is none."""
    holders = [(o, n) for o in instances for n, v in context.facts.after.of(o).items() if v.instances() == {loader} and n.isidentifier()]
    return holders[0][1] if len(instances) == 1 and holders and holders[0][0].cls is not None else ""


def _text_of_one(context: Context, part: ast.Name | ast.Attribute | ast.Subscript, loader: New) -> _Text | None:
    """How one of the loaders is named that an expression may be: training loaders alike, another by its key or by its sampler."""
    run, code, training = context.facts.after, context.source(part), set(context.facts.loaders)
    if run.value(part).instances() <= training:
        return _Text(code, loop=_comprehended(context, part))
    if isinstance(part, ast.Subscript):
        alike = {o for o in training if epoch_of(context, o) == epoch_of(context, loader)}
        entries = (pair for holder in run.value(part.value).instances() for pair in run.of(holder).items())
        keys = [name for name, value in entries if not name.startswith("[") and loader in value.instances() <= alike]
        return _Text(f"{context.source(part.value)}[{context.quoted(keys[0])}]") if keys else None
    kinds = sampler_kinds(context, frozenset((loader,)))
    return _Text(code, kinds, _comprehended(context, part)) if kinds and part in context.tree.parent else None


def _comprehended(context: Context, part: ast.expr) -> str:
    """The head of the loop that gives a name of a comprehension what it has there; empty where it is not of one."""
    for up in context.tree.ancestors(part):
        if isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) and len(up.generators) == 1:
            head = up.generators[0]
            bound = names_in(head.target)
            if bound & names_in(part) and not head.ifs:
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


def _epoch(context: Context, training: TrainingLoop, place: ast.stmt) -> str:
    """A name in reach at `place` that holds the number of the epoch; empty where there is none."""
    run = context.facts.after
    outer = [loop.node for loop in training.backward.loops if loop.node is not place]
    function = context.tree.function(place)
    inside = set(context.tree.ancestors(place))
    names: list[tuple[int, str]] = []
    for node in walk(function):
        given: list[ast.expr | None] = []
        if isinstance(node, ast.arg) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in function.args.args:
            value, name, given = run.value(node), node.arg, given_to(context, function, node.arg)
        elif isinstance(node, ast.For) and node in inside and isinstance(node.target, ast.Name):
            value, name = run.value(node.target), node.target.id
        else:
            continue
        loops = [n for n in value.of_kind("index") if n in outer]
        if loops and all(_may_count(context, g) for g in given):
            names.append((max(outer.index(n) for n in loops), name))
    at, name = max(names, default=(0, ""))
    return "" if name and _counted_again(context, training, outer[at]) else name


def _counted_again(context: Context, training: TrainingLoop, epochs: ast.AST) -> bool:
    """Whether a loop over epochs starts anew with a loader that it went through before, so that its numbers come again."""
    run, tree = context.facts.after, context.facts.tree_of(epochs)
    ways = {_before(tree, loop.backward, epochs) for loop in context.facts.loops if loop.loaders & training.loaders}
    if len(ways - {None}) > 1:
        return True
    around = [loop.node for loop in training.backward.loops]
    made = [c for o in training.loaders if isinstance(o, New) for c in run.calls(o.node)]
    return any(node not in {loop.node for loop in call.loops} for call in made for node in around[: around.index(epochs)])


def _before(tree: Tree, call: Call, loop: ast.AST) -> tuple[ast.AST, ...] | None:
    """The calls on the way to a loop that another call runs in; None if it does not."""
    if loop not in [around.node for around in call.loops]:
        return None
    return tuple(takewhile(lambda node: node not in tree.parent or loop not in tree.ancestors(node), call.stack))


def _may_count(context: Context, node: ast.expr | None, depth: int = 0) -> bool:
    """Whether an expression that is made of a loop's index may be a whole number, and no rate, text or path."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
            return _may_count(context, left, depth) and _may_count(context, right, depth)
        case ast.Call(func=ast.Name(id="int" | "len" | "min" | "max")) | None:
            return True
        case ast.Name() | ast.Attribute() | ast.Subscript():
            run = context.facts.after
            if any(isinstance(o, Like) or (isinstance(o, Lit) and type(o.value) is not int) for o in run.value(node).objs):
                return False
            reaching = run.definitions.reaching(node).definitions if depth < 4 else []
            stored = [assigned(context.facts.tree_of(d), d) for d in reaching if isinstance(d, ast.expr)]
            values = [v for v in stored if v is not None] + (given_as(context, node) if isinstance(node, ast.Name) and reaching else [])
            return all(_may_count(context, v, depth + 1) for v in values)
    return False
