"""Average accumulated gradients once, before the step.

What it does: where a step is taken after every k-th batch, forward and backward of the batches between go under `model.no_sync()`:
    their gradients stay on each rank, and the backward before the step averages what has added up.
Why: averaging after each batch gives the same gradients, and costs k times the communication.
Safety: safe, and left out unless every step was seen to follow a backward that averages: where one condition beside the backward holds
    all steps and counts batches, does not change after the forward, and the model uses all of its parameters.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html (no_sync)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Within
from ddpify.facts import library
from ddpify.facts.assumed import GRADED
from ddpify.facts.collect import TrainedModel
from ddpify.facts.tree import inside, structure, walk
from ddpify.facts.wrapper import reentrant
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.model import unused

CODE = "DDP206"
TITLE = "average accumulated gradients once"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a step after each batch",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a condition that counts nothing",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "if args.epochs > 3:\n"
        "    optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a step that does not wait for the condition",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "if args.epochs % 3 == 0:\n"
        "    optimizer.step()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a step after every second batch",
        "for i, (x, y) in enumerate(loader):\n"
        "    loss = criterion(model(x), y) / 2\n"
        "    loss.backward()\n"
        "    if (i + 1) % 2 == 0:\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad()\n",
        "loader.sampler.set_epoch(epoch)\n"
        "for i, (x, y) in enumerate(loader):\n"
        "    with contextlib.nullcontext() if (i + 1) % 2 == 0 else model.no_sync():\n"
        "        loss = criterion(model(x), y) / 2\n"
        "        loss.backward()\n"
        "    if (i + 1) % 2 == 0:\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad()\n",
        frame="batches",
    ),
)  # fmt: skip
_PURE = (
    *(ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.expr_context),
    *(ast.operator, ast.boolop, ast.unaryop, ast.cmpop),
)
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Put what comes before the condition of the step, from forward to backward, under `no_sync`."""
    model, backward = _only_model(context), _only_backward(context)
    if model is None or backward is None or _meets_at_each_backward(context):
        return
    last = context.tree.statement(backward)
    block = context.tree.block(last)
    branch, name = _branch(context, block, last), _name(context, model.forwards)
    part = _from_forward(model, block, last)
    if branch is None or not name or not part or _looks_at_gradients(block, branch):
        return
    if not _fixed(branch.test, block[block.index(part[0]) : block.index(branch)]) or not _movable(context, part):
        return
    if unused.unused(context, model) or reentrant(context.facts, model) is not None:
        return
    header = f"with contextlib.nullcontext() if {context.source(branch.test)} else {name}.no_sync()"
    yield Change(
        CODE,
        "gradients that accumulate over several batches are averaged over the ranks once, before the step",
        context.tree.shown,
        part[0],
        (Within(part[0], last, header),),
        ("import contextlib",),
        without="gradients are averaged after every part of a batch: the result is the same, but slower",
    )


def _meets_at_each_backward(context: Context) -> bool:
    """Whether apex looks for overflows after each backward: ranks must have met by then."""
    own = any(library.INITIALIZE in c.func.paths() for c in context.facts.after.trace.calls)
    return own or bool(context.options.level) or context.apex_ddp


def _only_model(context: Context) -> TrainedModel | None:
    """The one model that is trained, where it is wrapped by an edit."""
    facts, model = context.facts, context.facts.models[0] if len(context.facts.models) == 1 else None
    edited = model is not None and not model.wrapped and len(model.wraps) == 1 and facts.is_edited(model.wraps[0].after)
    return model if edited else None


def _only_backward(context: Context) -> ast.Call | None:
    """The one backward call, where it is edited."""
    nodes = list({loop.backward.node: None for loop in context.facts.loops})
    return nodes[0] if len(nodes) == 1 and context.facts.is_edited(nodes[0]) else None


def _from_forward(model: TrainedModel, block: list[ast.stmt], last: ast.stmt) -> list[ast.stmt]:
    """The statements of a block from the first forward to the backward, where all forwards are among them."""
    first = next((i for i, s in enumerate(block) if not inside(s).isdisjoint(model.forwards)), len(block))
    part = block[first : block.index(last) + 1]
    return part if _all_inside(model.forwards, part) else []


def _branch(context: Context, block: list[ast.stmt], last: ast.stmt) -> ast.If | None:
    """The condition after the backward, in its block, that holds all steps of optimizers."""
    facts = context.facts
    steps = {call.node for call in facts.after.steps(facts.optimizers)}
    for statement in block[block.index(last) + 1 :] if isinstance(last, ast.Expr) else ():
        if isinstance(statement, ast.If) and steps and not statement.orelse and _all_inside(steps, statement.body):
            value = facts.after.value(statement.test)
            counts = any(isinstance(n, ast.Mod) for n in walk(statement.test))
            return statement if counts and _pure(statement.test) and not context.differs(value) and not value.of_kind("drawn") else None
    return None


def _all_inside(nodes: frozenset[ast.AST] | set[ast.Call], block: list[ast.stmt]) -> bool:
    return {n for s in block for n in walk(s)}.issuperset(nodes)


def _pure(test: ast.expr) -> bool:
    """Whether a condition may be asked twice: it calls nothing but `len`."""
    for node in walk(test):
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "len"):
            return False
        if not isinstance(node, (*_PURE, ast.Call)):
            return False
    return True


def _fixed(test: ast.expr, between: list[ast.stmt]) -> bool:
    """Whether no statement between assigns what the condition reads."""
    read = {n.id if isinstance(n, ast.Name) else n.attr for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute))}
    return not any(
        (n.id if isinstance(n, ast.Name) else n.attr) in read
        for s in between
        for n in walk(s)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)
    )


def _movable(context: Context, statements: list[ast.stmt]) -> bool:
    """Whether statements may go into a block of their own: none is output, leaves the loop, or is edited as a whole."""
    nodes = [n for s in statements for n in walk(s)]
    guarded = any(isinstance(n, ast.stmt) and guards_of(context).only_outputs(n) for n in nodes)
    gathered = {n for n, how in context.assumed.redistributed.items() if how in ("whole", GRADED["whole"])}
    return not guarded and not any(isinstance(n, _LEAVES) or n in gathered for n in nodes)


def _looks_at_gradients(block: list[ast.stmt], branch: ast.If) -> bool:
    """Whether gradients are read or changed before the condition is met, or beside it."""
    nodes = [n for s in block if s is not branch for n in walk(s) if isinstance(n, ast.Attribute)]
    return any(n.attr == "grad" or n.attr == "unscale_" or library.clips(n.attr) for n in nodes)


def _name(context: Context, forwards: frozenset[ast.AST]) -> str:
    """What the wrapped model is called where it is run; empty where that is not one name."""
    called = [n.func for n in forwards if isinstance(n, ast.Call)]
    plain = all(isinstance(f, (ast.Name, ast.Attribute)) and context.facts.wrapped(context.facts.after.value(f)) for f in called)
    return ast.unparse(called[0]) if plain and len({structure(f) for f in called}) == 1 else ""
