"""Give each rank its rows of the batches that a script makes by hand.

What it does: where a training step takes a slice, a part of a split, an index list or a list of rows that a loop collects, and all ranks
    have the same one, each rank takes every N-th row of it; the loop, its bounds and the batch size stay. An order drawn anew for each
    epoch is rank 0's on all ranks. Where a step draws its batch at random, each rank draws its own N-th part of it; a generator of the
    script's own draws the same on all ranks, and each takes its rows. A function that also serves the evaluation stays as it is: the rows
    are taken where training receives them.
Why: without a sampler every rank would train on the same rows, N times the work for the same step.
Safety: NOTE; where the number of ranks does not divide a batch, its last row is repeated. MANUAL where the slices may be
    windows of time, or columns are the batch.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, InsertBefore, Replace, escaped
from ddpify.facts import batch_source, manual_batches
from ddpify.facts.batch_source import BatchSource
from ddpify.facts.model import Func, Lit, New, Part, Tup, Value, join
from ddpify.facts.tree import inside, names_in, walk
from ddpify.records import dataclass
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import filled_sequences, repeated_rows, short_batches
from ddpify.rules.data.batch_windows import RECIPE, SIDE_BY_SIDE, as_long, calls_sized_by_batch, other_than_samples

CODE = "DDP307"
TITLE = "shard batches made without a loader"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "slices beside a loader that trains",
        "for i in range(0, 160, 20):\n"
        "    mean = images[i : i + 20].mean()\n",
        frame="end",
    ),
    Example(
        "a part of the data that is no batch",
        "images = images[:320]\n",
        frame="epoch",
    ),
    Example(
        "noise for the batch of a loader",
        "x = x + torch.randn(x.size(0), 8)\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "slices of the data",
        "for i in range(0, 640, 32):\n"
        "    update(images[i : i + 32], labels[i : i + 32])\n",
        "for i in range(0, 640, 32):\n"
        "    update(rows_of_rank(images[i : i + 32], 32), rows_of_rank(labels[i : i + 32], 32))\n",
        frame="batches",
    ),
    Example(
        "slices of an order drawn for each epoch",
        "order = torch.randperm(640)\n"
        "for rows in order.split(32):\n"
        "    update(images[rows], labels[rows])\n",
        "order = same_on_all_ranks(torch.randperm(640))\n"
        "for rows in (rows_of_rank(part, 32) for part in order.split(32)):\n"
        "    update(images[rows], labels[rows])\n",
        frame="batches",
    ),
)  # fmt: skip

_PADDED = "each rank trains on its own rows of each batch; where the number of ranks does not divide a batch, its last row is repeated"
_WHOLE = "each rank trains on its own rows of each batch, of which no short one is trained on"
_DRAWN = "each rank draws its own part of each batch: together they draw as many samples as before, but different ones"
_SEQUENCES = "each rank trains on its own sequences of the batch, over all their time steps"


@dataclass(frozen=True, eq=False)
class _Maker:
    """One expression that makes batches of the training, `trained`; it may make those of an evaluation, `others`, too."""

    context: Context
    node: ast.AST
    trained: list[New]
    others: list[New]

    @property
    def source(self) -> BatchSource:
        """What is known of the expression."""
        return self.context.facts.batch_sources[self.node]

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """What its change discharges."""
        return Obligation("inputs", self.node), Obligation("epoch", self.node)

    def proofs(self) -> Iterator[Proof]:
        """Its obligations, discharged."""
        return map(Proof, self.obligations)

    def refuse(self, message: str, fix: str = RECIPE, at: ast.AST | None = None) -> Finding:
        """The finding that leaves the batches as they are."""
        return self.context.manual(CODE, at or self.node, message, fix, self.obligations)

    def change(self, at: ast.AST, edit: Edit, need: str) -> Change:
        """The change by which each rank takes its share of the batches."""
        drawn, whole = self.trained[0].path == batch_source.DRAW, self.context.once(_leaves_out_short_ones)
        drawn = drawn and not self.source.alike
        why = _SEQUENCES if self.source.kind in SIDE_BY_SIDE else _DRAWN if drawn else _WHOLE if whole else _PADDED
        needs = (need, "rows_of_rank:whole") if why == _WHOLE else (need,)
        return Change(CODE, why, self.context.tree.shown, at, (edit,), (), Safety.NOTE, discharges=self.obligations, needs=needs)


def _leaves_out_short_ones(context: Context) -> bool:
    """Whether training leaves out all batches cut by hand that are short: then no row is repeated to fill one, or it would train."""
    by_hand = [[o for o in t.loaders if isinstance(o, New) and o.path in batch_source.PATHS] for t in context.facts.loops]
    cut = [[o for o in beside if o.path != batch_source.DRAW] for beside in by_hand]
    return all(any(short_batches.are_left_out(context, o) for o in beside) for beside in cut if beside)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Share the batches that are cut, and draw a part of those that are drawn."""
    trained = [o for o in context.facts.feeding if o.path in batch_source.PATHS]
    if not trained:
        return
    problem = other_than_samples(context, trained)
    others = manual_batches.instances_of(context.facts.after.trace) - set(trained)
    placed: set[ast.AST] = set()
    for node in dict.fromkeys(o.node for o in trained):
        maker = _Maker(context, node, [o for o in trained if o.node is node], [o for o in others if o.node is node])
        if all(o in context.facts.after.interpreter.sharded_by_script for o in maker.trained):
            yield from maker.proofs()
        elif problem is not None:
            yield maker.refuse(*problem)
        elif context.options.batch_size == "per-rank":
            yield from _whole_batches(maker)
        elif maker.source.kind in batch_source.EXAMPLES and maker.others:
            yield maker.refuse("this goes through the batches of both the training and an evaluation: the evaluation would be cut, too")
        elif maker.others or (maker.source.kind in SIDE_BY_SIDE and not context.facts.is_edited(node)):
            yield from _share_where_received(maker, placed)
        else:
            yield from _share_where_made(maker)
    if problem is None:
        rows = [n for n in as_long(context, trained) if isinstance(n, (ast.ListComp, ast.GeneratorExp))]
        yield from (change for node in rows if (change := repeated_rows.divided(context, node, CODE)).edits)
    if problem is None:
        yield from filled_sequences.filled_up(context, trained, CODE)
    if problem is None and any(o.path == batch_source.SLICE for o in trained):
        yield from _state_sizes(context, trained)


def _whole_batches(maker: _Maker) -> Iterator[Finding | Proof]:
    """Each rank has whole batches, as is asked for: so it is with those that it draws for itself."""
    if maker.trained[0].path == batch_source.DRAW:
        yield from maker.proofs()
    else:
        fix = "leave --batch-size global here, or move the loop on by world_size batches at a time"
        yield maker.refuse("batches made by hand are divided among the ranks: --batch-size per-rank has no effect on them", fix)


def _share_where_made(maker: _Maker) -> Iterator[Change | Finding]:
    """Give each rank its share where the batches are made."""
    context, node = maker.context, maker.node
    if not context.facts.is_edited(node):
        yield maker.refuse("batches are made by hand in a module that is not edited: every rank would train on the same samples")
        return
    yield maker.change(node, *_edit(context, node))
    if maker.source.kind == "parts" and maker.source.size is None:
        why = "it is not clear how many rows these parts have: where the ranks cannot divide one equally, its last row is repeated"
        yield context.manual(CODE, node, why, "split by a number of rows that the number of ranks divides", level=Safety.REVIEW)


def _share_where_received(maker: _Maker, placed: set[ast.AST]) -> Iterator[Change | Finding | Proof]:
    """Give each rank its share where training receives the batches: those of an evaluation stay whole. `placed` is where that is done."""
    context = maker.context
    for batches in maker.trained:
        call: ast.AST | None = next((c for c in reversed(batches.stack) if not any(c in o.stack for o in maker.others)), None)
        call = call or _loop_through(context, batches, maker.others)
        if call is None or not context.facts.is_edited(call):
            yield maker.refuse("this makes the batches of both the training and an evaluation: the evaluation would be cut, too")
            return
        if call in placed:
            continue
        size = _size_in_loop(context, call, maker.source.size) if isinstance(call, ast.For) else _size_at(context, call, maker.source.size)
        known = size or maker.source.kind == "columns" or batches.path == batch_source.DRAW  # all that are drawn are equally long
        edit = _received(context, call, size, maker.source.kind) if known else None
        if edit is None:
            yield maker.refuse(
                "the analysis could not tell how these batches reach the training: every rank may train on the same samples", at=call
            )
            return
        placed.add(call)
        yield maker.change(call, edit, "columns_of_rank" if maker.source.kind == "columns" else "rows_of_rank")
    yield from maker.proofs()


def _edit(context: Context, node: ast.AST) -> tuple[Edit, str]:
    """The edit of an expression that makes batches, and what it needs."""
    source, names, tree = context.facts.batch_sources[node], context.names, context.facts.tree_of(node)
    if source.kind == "draw" and not source.alike:
        assert source.size is not None
        return Replace(source.size, f"{names['per_rank']}({{0}})", (source.size,)), "per_rank"
    if source.kind == "columns":
        return Replace(source.node, f"{names['columns_of_rank']}({{0}})", (source.node,)), "columns_of_rank"
    if source.kind in batch_source.EXAMPLES:
        return Replace(source.node, f"{names['examples_of_rank']}({{0}})", (source.node,)), "examples_of_rank"
    size = "" if source.size is None else f", {escaped(context.source(source.size))}"
    text = f"{names['rows_of_rank']}({{0}}{size})"
    if source.kind == "parts":
        up = tree.parent[source.node]
        zipped = isinstance(up, ast.Call) and context.facts.after.value(up.func).paths() & {"zip", "enumerate"}
        iterated = zipped or (isinstance(up, (ast.For, ast.comprehension)) and up.iter is source.node)
        text = f"{names['rows_of_rank']}(part{size}) for part in {{0}}"
        text = f"({text})" if iterated else f"[{text}]"
    return Replace(source.node, text, (source.node,)), "rows_of_rank"


def _size_at(context: Context, call: ast.AST, size: ast.expr | None) -> str:
    """The size of a batch where a call of the function that makes it stands; empty where it has no name there."""
    if size is None:
        return ""
    names = names_in(size)
    function, root = context.facts.tree_of(size).function(size), size
    if isinstance(size, (ast.Attribute, ast.Subscript)) and names == {"self"}:
        owner = _called_on(context, call, _method_of_self(context, function)) or _assigned_to(context, call)
        return owner and owner + context.source(size)[len("self") :]
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and isinstance(function, ast.FunctionDef) and any(a.arg == root.id for a in function.args.args):
        passed = _argument(context, call, function, root.id)
        if root is size and isinstance(passed, (ast.Tuple, ast.List)) and passed.elts:
            passed = passed.elts[0]  # a shape begins with the size of the batch
        if passed is None or not (root is size or isinstance(passed, (ast.Name, ast.Attribute))):
            return ""
        if any(isinstance(o, Tup) for o in context.facts.after.value(passed).objs):
            return ""
        return context.source(passed) + context.source(size)[len(root.id) :]
    return context.source(size) if all(name in context.facts.after.of("__main__") for name in names) else ""


def _loop_through(context: Context, batches: New, others: list[New]) -> ast.For | None:
    """The training loop that goes through an object which makes batches, and no others."""
    for training in context.facts.loops:
        loop = training.batch.node if training.batch is not None and batches in training.loaders else None
        if isinstance(loop, ast.For) and context.facts.is_edited(loop):
            received = {o for n in walk(loop.target) for o in _by_hand(context.facts.after.value(n))}
            if received.isdisjoint(others):
                return loop
    return None


def _size_in_loop(context: Context, loop: ast.For, size: ast.expr | None) -> str:
    """The size of a batch that the object holds which a loop goes through; empty where the loop does not name it."""
    if not (isinstance(size, ast.Attribute) and isinstance(size.value, ast.Name) and size.value.id == "self"):
        return ""
    holders = context.facts.after.value(size.value).objs
    named = (n for n in walk(loop.iter) if isinstance(n, (ast.Name, ast.Attribute)) and context.facts.after.value(n).objs & holders)
    return next((f"{context.source(n)}.{size.attr}" for n in named), "")


def _argument(context: Context, call: ast.AST, function: ast.FunctionDef, name: str) -> ast.expr | None:
    """What a call of a function passes as one of its parameters, or its default."""
    names = [a.arg for a in function.args.args]
    if not isinstance(call, ast.Call) or name not in names:
        return None
    if not any(isinstance(o, Func) and o.node is function for o in context.facts.after.value(call.func).objs):
        return None
    passed = argument(call, names.index(name) - (names[0] == "self"), name)
    return passed or dict(zip(reversed(names), reversed(function.args.defaults), strict=False)).get(name)


def _method_of_self(context: Context, function: ast.AST) -> ast.AST:
    """The function whose `self` a function reads: its own, or that of the one around it."""
    tree = context.facts.tree_of(function)
    around = (f for f in (function, *tree.ancestors(function)) if isinstance(f, ast.FunctionDef))
    return next((f for f in around if any(a.arg == "self" for a in f.args.args)), function)


def _called_on(context: Context, call: ast.AST, method: ast.AST | None) -> str:
    """The object that a call runs this method of; empty where a call gives it, or none is named."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    runs = any(isinstance(o, Func) and o.node is method for o in context.facts.after.value(call.func).objs)
    named = not any(isinstance(n, (ast.Call, ast.NamedExpr)) for n in walk(call.func.value))
    return context.source(call.func.value) if runs and named else ""


def _assigned_to(context: Context, call: ast.AST) -> str:
    """The name of the object that a call makes; empty where it has none."""
    up = context.tree.parent.get(call)
    line = context.tree.parent.get(up) if isinstance(up, ast.Tuple) else up
    target = line.targets[0] if isinstance(line, ast.Assign) else None
    if isinstance(up, ast.Tuple):
        pairs = zip(target.elts, up.elts, strict=False) if isinstance(target, ast.Tuple) and len(target.elts) == len(up.elts) else ()
        target = next((name for name, value in pairs if value is call), None)
    return target.id if isinstance(target, ast.Name) else ""


def _received(context: Context, call: ast.AST, size: str, kind: str) -> Edit | None:
    """The names that take up what a call returns become this rank's rows of it; None where there are no such names.

    Without the `size` of a batch, what is taken up must have as many rows each time.
    """
    value = context.facts.after.value
    receiver = (call, call.target) if isinstance(call, ast.For) else _receiver(context, call)
    if receiver is None:
        return None
    statement, target = receiver
    names = [n for n in walk(target) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)]
    batches = [o for n in names for o in _by_hand(value(n))]
    looped = isinstance(call, ast.For)
    rows = {n.id: value(n) for n in names if isinstance(n, ast.Name) and _are_rows(value(n)) and (looped or _from(value(n), call))}
    if not rows or (not looped and any(call not in o.stack for o in batches)) or any(isinstance(n, ast.Attribute) for n in names):
        return None
    share = context.names["columns_of_rank" if kind == "columns" else "rows_of_rank"]
    rest, of_part = ("", "") if kind == "columns" else (f", {size or 'len({0})'}", f", {size or 'len(part)'}")
    of_tuple = f"tuple({share}(part{of_part}) for part in {{0}})"
    each = {name: (f"{share}({{0}}{rest})" if v.scale else of_tuple).format(name) for name, v in rows.items()}
    line = f"{', '.join(each)} = {', '.join(each.values())}"
    return InsertBefore(statement.body[0], line) if isinstance(statement, ast.For) else InsertAfter(statement, line)


def _receiver(context: Context, call: ast.AST) -> tuple[ast.stmt, ast.expr] | None:
    """The statement that takes up what a call returns, and its target: an assignment, or the loop that goes through it, here or later."""
    run, statement = context.facts.after, context.tree.statement(call)
    if isinstance(statement, ast.For) and call in inside(statement.iter):
        return statement, statement.target
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1 and not _iterates(run.value(call)):
        return statement, statement.targets[0]
    loops = [n for n in context.tree.of(ast.For) if _from(join([run.value(t) for t in walk(n.target)]), call)]
    return (loops[0], loops[0].target) if len(loops) == 1 else None


def _are_rows(value: Value) -> bool:
    """Whether a value has a row for each sample, or is a tuple of such."""
    tuples = [o for o in value.objs if isinstance(o, Tup)]
    inner = [i for t in tuples for i in t.entries]
    return value.scale == "sample" or (bool(inner) and len(tuples) == len(value.objs) and all(i.scale == "sample" for i in inner))


def _iterates(value: Value) -> bool:
    return any(isinstance(o, New) and o.path not in ("list", "dict") for o in value.objs)


def _from(value: Value, call: ast.AST) -> bool:
    return any(call in o.stack for o in _by_hand(value))


def _by_hand(value: Value) -> list[New]:
    """The batches made by hand that a value, or an entry of a tuple, is computed from."""
    values = (value, *(i for o in value.objs if isinstance(o, Tup) for i in o.entries))
    return [o for v in values for o in v.of_kind("batch") if isinstance(o, New) and o.path in batch_source.PATHS]


def _state_sizes(context: Context, trained: list[New]) -> Iterator[Change]:
    """States that go along with the sequences of a batch are made for those of this rank."""
    run = context.facts.after
    sources = {o for cut in trained for o in run.attribute(cut, "batch_size").objs if isinstance(o, (Part, Lit))}
    for node in calls_sized_by_batch(context):
        assert isinstance(node, ast.Call)
        for part in manual_batches.size_arguments(node):
            edits, needs = context.divided(part)
            if edits and run.value(part).objs & sources and not run.value(part).of_kind("world"):
                why = "this is made for the number of sequences that one rank has"
                yield Change(CODE, why, context.tree.shown, part, tuple(edits), needs=needs)
