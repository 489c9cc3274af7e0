"""Let all ranks share the draws that steer the training.

What it does: a random number that decides how many steps are taken, whether one is, with which learning rate, or on which samples, is
    rank 0's on all ranks. What is drawn for a batch (noise, augmentation, mixing) goes on differing.
Why: each rank draws its own numbers in training; ranks that take different steps wait for each other for good, or drift apart.
Safety: safe; MANUAL where the draw is made in another module, or under a rank's own condition.
References: https://docs.pytorch.org/docs/stable/notes/randomness.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, Replace
from ddpify.facts import handmade, library
from ddpify.facts.model import Call, Origin, Value, join
from ddpify.facts.tree import Tree, same
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.loop.branches import parts_ranks

CODE = "DDP406"
TITLE = "draws that steer are shared"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "noise for a batch",
        "noise = torch.randn(8)\n"
        "loss = criterion(model(x + noise), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a draw that chooses what the batch becomes",
        "if random.random() < 0.5:\n"
        "    x = -x\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a number drawn before training, which nothing in it reads",
        "name = random.randint(0, 9)\n",
        frame="end",
    ),
    Example(
        "a step that is sometimes left out",
        "loss = criterion(model(x), y)\n"
        "if random.random() < 0.9:\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
        "loss = criterion(model(x), y)\n"
        "if same_on_all_ranks(random.random()) < 0.9:\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a learning rate that is drawn",
        'optimizer.param_groups[0]["lr"] = 10 ** random.uniform(-3, -1)\n',
        'optimizer.param_groups[0]["lr"] = 10 ** same_on_all_ranks(random.uniform(-3, -1))\n',
        frame="epoch",
    ),
)  # fmt: skip

_WHY = "this draw steers the training: all ranks follow rank 0's"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Share each draw that something reads which must not differ between ranks."""
    seen: set[ast.AST] = set()
    for value in _steering(context):
        for node in sorted(value.of_kind("drawn"), key=lambda n: (n.lineno, n.col_offset)):
            if node not in seen and node not in context.facts.cuts and _in_training(context, node):
                seen.add(node)
                yield _shared(context, node)


def _steering(context: Context) -> Iterator[Value]:
    """What decides about steps, their settings and their samples."""
    run = context.facts.after
    training, apart = context.facts.training_loops, dict[ast.AST, bool]()
    for decision in run.trace.decisions:
        node = decision.node
        if isinstance(node, (ast.If, ast.While)) and any(up.node in training for up in decision.loops):
            if node not in apart:
                apart[node] = parts_ranks(context, node)
            if apart[node]:
                yield decision.test
    for trained in context.facts.loops:
        for loop in trained.backward.loops:
            yield loop.over
    for store in run.trace.stores:
        if isinstance(store.node, ast.Subscript) and isinstance(store.node.slice, ast.Constant) and store.node.slice.value in _SETTINGS:
            yield store.value
    for loader in context.facts.loaders:
        given = join([run.held(loader, name) for name in ("dataset", "sampler", "batch_sampler", "batch_size")])
        yield given
        yield from (value for (owner, _), value in run.memory.items() if owner in given.made())
    for part in context.tree.nodes():  # which loader the next batch is taken from, which model it trains
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and run.value(part.slice).of_kind("drawn"):
            made = run.value(part).made()
            if any(run.is_loader(o) or (o, "iterable") in run.memory or run.interpreter.is_module(o) for o in made):
                yield run.value(part.slice)
    for call in run.trace.calls:
        if _orders(context, call):
            yield Value(frozenset(), frozenset((Origin("drawn", call.node),)))  # of the data, whoever reads it


def _orders(context: Context, call: Call) -> bool:
    """Whether a call draws an order of the data: it shuffles in place between batches, or permutes what batches are cut from."""
    tree, paths = context.facts.tree_of(call.node), call.func.paths()
    if any(k in call.keywords for k in ("generator", "random_state")) or any(a.batches() for a in call.args):
        return False
    if paths & library.SHUFFLES:
        batches = {t.batch.node for t in context.facts.loops if t.batch is not None and t.batch.element.batches()}
        own = isinstance(tree.parent.get(tree.function(call.node)), ast.ClassDef)  # a data set's or sampler's: another rule speaks of it
        return not own and not any(loop.node in batches for loop in call.loops) and not _shared_after(context, tree, call.node)
    cut = any(o.path == handmade.CUT for o in context.facts.feeding)
    return cut and bool(paths & handmade.ORDERS) and _follows(context, tree, call.node)


def _follows(context: Context, tree: Tree, node: ast.Call) -> bool:
    """Whether what is made of a draw still differs between ranks, and is no batch that each rank draws for itself."""
    up = tree.parent[node]
    if any(n in context.facts.cuts and context.facts.cuts[n].kind == "draw" for n in (node, up)):
        return False
    return not isinstance(up, ast.Call) or bool(context.facts.after.value(up).of_kind("drawn"))


def _shared_after(context: Context, tree: Tree, node: ast.Call) -> bool:
    """Whether what is shuffled in place is shared by the next statement."""
    statement = tree.statement(node)
    block = tree.block(statement)
    after = block[block.index(statement) + 1 :][:1]
    return any(
        isinstance(s, ast.Assign)
        and isinstance(s.targets[0], ast.Subscript)
        and same(s.targets[0].value, node.args[0])
        and not context.facts.after.value(s.value).of_kind("drawn")
        for s in after
    )


_SETTINGS = ("lr", "momentum", "weight_decay", "betas")


def _in_training(context: Context, node: ast.AST) -> bool:
    """Whether a draw is made again and again while training: before it, all ranks draw from one seed."""
    training = context.facts.training_loops
    return any(loop.node in training for call in context.facts.after.calls(node) for loop in call.loops)


def _shared(context: Context, node: ast.Call) -> Change | Finding:
    helper, tree = context.names["same_on_all_ranks"], context.tree
    calls = context.facts.after.calls(node)
    own = any(context.local(test) for call in calls for _, test in call.tests)
    listed = [context.facts.after.interpreter.element(a) for call in calls for a in call.args]
    own |= any(v.batches() & {*context.shares, *context.facts.feeding} for v in listed)  # batches of this rank's, kept in a list
    paths = {path for call in calls for path in call.func.paths()}
    if (
        not context.facts.is_edited(node)
        or own
        or (paths & library.SHUFFLES and not isinstance(node.args[0], (ast.Name, ast.Attribute)))
        or "torch.utils.data.random_split" in paths
    ):
        fix = "draw it from a generator that is seeded alike on all ranks and used for nothing else"
        return context.manual(CODE, node, "this draw steers the training, and every rank draws for itself", fix)
    cpu = ".cpu()" if any(k.arg == "device" for k in node.keywords) else ""
    edit: Edit = Replace(node, f"{helper}({{0}}{cpu})", (node,))
    if paths & library.SHUFFLES:
        text = context.source(node.args[0])
        edit = InsertAfter(tree.statement(node), f"{text}[:] = {helper}({text})")
    elif isinstance(tree.parent[node], ast.Expr) and isinstance(node.func, ast.Attribute):  # drawn in place
        text = context.source(node.func.value)
        edit = InsertAfter(tree.statement(node), f"{text} = {helper}({text})")
    return Change(CODE, _WHY, tree.shown, node, (edit,), needs=("same_on_all_ranks",))
