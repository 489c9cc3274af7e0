"""Numbers that outlive the training loop are those of all ranks.

What it does: totals and averages that a loop over sharded data built up, and that are read after it, are summed or averaged over
    ranks right after the loop; so are meters with sum, count and avg. The size of the last batch is that of all ranks' parts of it.
    What is shown inside the loop stays rank 0's own, said once.
    Files that a loop writes of the batches of a training loader without training on them are a REVIEW: those of other ranks are missing.
Why: each rank has seen its own share only; printed, compared or scheduled as they are, the numbers are one shard's.
Safety: safe where the way a number was built is known; MANUAL elsewhere.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, Replace
from ddpify.facts import batch_source, manual_batches
from ddpify.facts.effects import effect
from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import Call, Func, New, Tup, Value
from ddpify.facts.tree import same
from ddpify.facts.writes import Batches
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.data.loader import epoch_of, sampler_name
from ddpify.rules.loop.last_batch import of_one_batch
from ddpify.rules.loop.live_out import live_out
from ddpify.rules.loop.meters import is_meter
from ddpify.rules.loop.reductions import Reduction, loader_of, reduce

CODE = "DDP404"
TITLE = "reduce what outlives the training loop"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a loss that nothing reads after the step",
        "loss = criterion(model(x), y)\n"
        "value = loss.item()\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a number of the evaluation",
        "total = 0\n"
        "for x, y in test_loader:\n"
        "    total += len(y)\n",
        frame="epoch",
    ),
    Example(
        "the time that an epoch took",
        "start = time.time()\n"
        "train(epoch)\n"
        "seconds = time.time() - start\n",
        frame="epoch",
    ),
    Example(
        "a total and a count",
        "total, count = 0.0, 0\n"
        "for x, y in loader:\n"
        "    total += update(x, y) * len(y)\n"
        "    count += len(y)\n"
        "return total / count\n",
        "total, count = 0.0, 0\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    total += update(x, y) * len(y)\n"
        "    count += len(y)\n"
        "count = sum_over_ranks(count)\n"
        "total = sum_over_ranks(total)\n"
        "return total / count\n",
        frame="batches",
    ),
    Example(
        "a mean over the batches",
        "total = 0.0\n"
        "for x, y in loader:\n"
        "    total += update(x, y)\n"
        "return total / len(loader)\n",
        "total = 0.0\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    total += update(x, y)\n"
        "total = sum_over_ranks(total) / world_size\n"
        "return total / len(loader)\n",
        frame="batches",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Reduce after each loop over shares of the data."""
    seen: set[ast.AST] = set()
    for node in _loops(context):
        if node in seen:
            continue
        seen.add(node)
        if not context.facts.is_edited(node):
            yield from _elsewhere(context, node)
            continue
        yield from _reduce(context, node)
    yield from _hidden(context)
    yield from _divisors(context)
    yield from _sampled(context)
    yield from _progress(context)
    within = [c for c in _output_calls(context) if any(loop.node in seen for loop in c.loops)]
    if within:
        yield context.manual(CODE, within[0].node, "numbers shown inside the loop over batches are rank 0's own", level=Safety.NOTE)
    evaluating = seen - context.facts.training_loops
    part = next((c for c in within if effect(c) == "file" and any(loop.node in evaluating for loop in c.loops)), None)
    if part is not None:
        why = "this loop goes over the training loader, of which rank 0 has a share: what it writes of the other ranks' batches is missing"
        yield context.manual(CODE, part.node, why, "give this loop a loader of its own, without a DistributedSampler", level=Safety.REVIEW)


def _hidden(context: Context) -> Iterator[Finding]:
    """A rank's own numbers kept where they are not followed: in a function's attributes, or in names of the function around."""
    run = context.facts.after
    places: list[tuple[ast.AST, str]] = []
    for store in run.trace.stores:
        if any(isinstance(o, Func) for o in store.receiver.objs) and (
            context.from_sharded_data(store.value) or context.differs(store.value)
        ):
            places.append((store.node, ast.unparse(store.node)))
    for tree in context.facts.trees.values():
        for nonlocals in tree.of(ast.Nonlocal):
            function, names = tree.parent[nonlocals], set(nonlocals.names)
            for node in ast.walk(function) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
                if (
                    isinstance(node, ast.Name)
                    and node.id in names
                    and isinstance(node.ctx, ast.Store)
                    and context.from_sharded_data(run.value(node))
                ):
                    places.append((node, node.id))
    for node, text in places:
        yield context.manual(
            CODE,
            node,
            f"`{text}` holds what this rank computed from its own share of the data",
            f"sum {text} over the ranks before it is read",
        )


def _loops(context: Context) -> Iterator[Batches]:
    """The loops over shares of the data: those that train, and those that evaluate such loaders."""
    for training in context.facts.loops:
        if training.batch is not None and training.loaders and isinstance(training.batch.node, (ast.For, ast.AsyncFor, ast.While)):
            yield training.batch.node
    run = context.facts.after
    drawn = {call.loops[-1].node for source in context.facts.batch_sources for call in run.calls(source) if call.loops}
    for node in context.facts.entry.of(ast.For):
        feeds = any(run.feeds(run.value(part)) for part in ast.walk(node.iter))
        if node in drawn or (feeds and run.value(node).batches() & context.sharded_loaders):
            yield node


def _divisors(context: Context) -> Iterator[Change]:
    """A total over the ranks is divided by the samples they really saw: the sampler repeats a few so that all have equally many."""
    run = context.facts.after
    feeding = set(context.facts.feeding)
    cut = {o for o in feeding if o.path == batch_source.CUT}
    for node in context.tree.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left, right = node.left, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            left, right = node.target, node.value
        else:
            continue
        own = run.value(left)
        if (
            own.scale not in ("sum", "count", "total")
            or own.of_kind("forward")
            or not any(o.kind == "batch" and o.of in feeding for o in own.origins)
        ):
            continue
        if own.of_kind("batch") & cut:
            if _counts_rows(context, right):
                yield Change(
                    CODE,
                    "a batch that the ranks cannot share equally repeats its first rows: the total counts those, too",
                    context.tree.shown,
                    right,
                    (Replace(right, f"{context.names['with_repeated']}({{0}})", (right,)),),
                    needs=("with_repeated",),
                )
            continue
        loader = _measured(context, right)
        kinds = {epoch_of(context, o) for o in own.of_kind("batch") if o in feeding}
        if loader and kinds == {"batch_sampler"}:
            why = "batches that the ranks cannot divide repeat samples, and this total counts those, too"
            yield Change(CODE, why, context.tree.shown, right, (), level=Safety.REVIEW)
        elif loader:
            where = f"{loader}.{(kinds.pop() if len(kinds) == 1 else 'sampler') or 'dataset'}"
            yield Change(
                CODE,
                "the sampler repeats samples until all ranks have equally many: the total counts those, too",
                context.tree.shown,
                right,
                (Replace(right, f"(len({where}) * {context.names['world_size']})"),),
            )


def _counts_rows(context: Context, node: ast.expr) -> bool:
    """Whether a number is how many rows there are of data that is cut: its length, or where the loop over it ends."""
    run, tree = context.facts.after, context.tree
    if run.value(node).batches() or run.value(node).scale is not None or run.value(node).of_kind("world"):
        return False
    if manual_batches.measures(node):
        return not any(isinstance(n, ast.BinOp) for n in ast.walk(node))
    if isinstance(node, (ast.Name, ast.Attribute)):
        found = [tree.parent.get(d) for d in run.definitions.reaching(node).definitions]
        if found and all(isinstance(up, ast.Assign) for up in found):
            return all(_counts_rows(context, up.value) for up in found if isinstance(up, ast.Assign))
    ends = [
        part.args[1]
        for t in context.facts.loops
        if t.batch is not None and isinstance(t.batch.node, ast.For)
        for part in ast.walk(t.batch.node.iter)
        if isinstance(part, ast.Call) and "range" in run.value(part.func).paths() and len(part.args) == 3
    ]
    return any(same(node, end) for end in ends)


def _progress(context: Context) -> Iterator[Change]:
    """Lines inside the training loop that say how many samples were seen: `step * len(batch)` is one rank's part of them."""
    run, tree = context.facts.after, context.tree
    training = {t.batch.node for t in context.facts.loops if t.batch is not None}
    seen: set[ast.AST] = set()
    for call in _output_calls(context):
        if not context.facts.is_edited(call.node) or not any(up in training for up in tree.ancestors(call.node)):
            continue
        for node in ast.walk(call.node):
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)) or node in seen:
                continue
            seen |= set(ast.walk(node))
            if run.value(node).scale == "count" and context.from_sharded_data(run.value(node)) and not run.value(node).of_kind("world"):
                yield Change(
                    CODE,
                    "a batch is spread over the ranks: together they have seen this many samples",
                    tree.shown,
                    node,
                    (Replace(node, f"{{0}} * {{1}} * {context.names['world_size']}", (node.left, node.right)),),
                )


def _sampled(context: Context) -> Iterator[Change]:
    """The length of a training loader's sampler, which draws this rank's share from now on."""
    run = context.facts.after
    for node in context.tree.nodes():
        if not (isinstance(node, ast.Call) and node.args and "len" in run.value(node.func).paths()):
            continue
        sampler, up = node.args[0], context.tree.parent[node]
        made = run.value(sampler.value).instances() if isinstance(sampler, ast.Attribute) and sampler.attr == "sampler" else None
        counted = (
            isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult) and any(run.value(s).of_kind("world") for s in (up.left, up.right))
        )
        if made and made <= set(context.facts.loaders) and not counted and {epoch_of(context, o) for o in made} == {"sampler"}:
            yield Change(
                CODE,
                "a rank's sampler draws its share only: the ranks together draw this many",
                context.tree.shown,
                node,
                (Replace(node, f"({{0}} * {context.names['world_size']})", (node,)),),
            )


def _measured(context: Context, node: ast.expr) -> str:
    """The training loader, as the script writes it, whose whole data set a length is; empty where it is something else's."""
    run = context.facts.after
    loaders = set(context.facts.loaders)
    if isinstance(node, (ast.Name, ast.Attribute)):
        measured = frozenset(run.value(node).of_kind("length"))
    elif isinstance(node, ast.Call) and "len" in run.value(node.func).paths() and node.args:
        measured = frozenset(run.value(node.args[0]).instances())
    else:
        return ""
    data = node.args[0] if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Call) and isinstance(data, ast.Attribute) and data.attr == "dataset":
        made = run.value(data.value).instances()
        return context.source(data.value) if made and made <= loaders else ""
    function = context.tree.function(node)
    for loop in _loops(context):
        text = loader_of(context, loop)
        over = {o for o in run.value(loop).batches() if isinstance(o, New)}
        sets = {o for loader in over for o in run.attribute(loader, "dataset").instances()}
        if text and over and over <= loaders and sets and measured == sets and context.tree.function(loop) is function:
            return text
    return ""


def _output_calls(context: Context) -> Iterator[Call]:
    """Calls that print, log or write something computed from a rank's own batches."""
    for call in context.facts.after.trace.calls:
        if effect(call) is not None and any(context.from_sharded_data(v) for v in _inner(context, call)):
            yield call


def _inner(context: Context, call: Call) -> Iterator[Value]:
    for value in (*call.args, *call.keywords.values()):
        yield value
        for obj in value.objs:
            if isinstance(obj, Tup):
                yield from obj.items
            elif isinstance(obj, New) and obj.path in COLLECTIONS:
                yield context.facts.after.attribute(obj, "[]")


def unreduced_numbers(context: Context) -> Iterator[Finding]:
    """What a converted script still shows, compares or schedules of one rank's own numbers after a training loop."""
    facts = context.facts
    loops = set(_loops(context))
    message = "this is one rank's own number here"
    fix = "sum or average it over the ranks first"
    for call in _output_calls(context):
        own = [v for v in _inner(context, call) if context.from_sharded_data(v)]
        if (
            not any(loop.node in loops for loop in call.loops)
            and "torch.save" not in call.func.paths()
            and any(v.scale != "count" for v in own)
        ):
            if all(v.scale in ("sample", "count") for v in own):
                yield context.manual(CODE, call.node, "what is shown here are samples of rank 0's share", level=Safety.NOTE)
            elif of_one_batch(context, call.node):
                yield context.manual(CODE, call.node, "what is shown here is of rank 0's last batch", level=Safety.NOTE)
            else:
                yield context.manual(CODE, call.node, message, fix)
    for decision in facts.after.trace.decisions:
        mine = context.from_sharded_data(decision.test)
        if mine and not any(loop.node in loops for loop in decision.loops) and isinstance(decision.node, (ast.If, ast.While)):
            yield context.manual(CODE, decision.node, message, fix)


def _reduce(context: Context, loop: Batches) -> Iterator[Change | Finding]:
    sharded = bool(context.facts.after.value(loop).batches() & context.sharded_evaluation)
    mixed = _also_evaluates(context, loop)
    over = frozenset(o for o in context.facts.after.value(loop).batches() if isinstance(o, New))
    kind = sampler_name(context, over & frozenset(context.facts.loaders)) if mixed else ""
    loader = loader_of(context, loop)
    lines: list[str] = []
    edits: list[Edit] = []
    needs: set[str] = set()
    replicates: list[tuple[ast.stmt, ast.expr]] = []
    doubts: list[Reduction] = []
    for live in live_out(context, loop):
        found = reduce(context, loop, live, loader, sharded)
        if found is None:
            continue
        if found.note:
            yield context.manual(CODE, live.node, found.note, level=Safety.NOTE)
            continue
        if mixed and not found.problem and (not loader or not kind or (found.edits and live.value.scale != "mean")):
            found.problem = f"`{live.name}` is this rank's share in training, and all of the data in evaluation, of the same loop"
            found.fix = f"sum {live.name} over the ranks where the loop trained, and only there"
        if found.problem:
            yield context.manual(CODE, live.node, found.problem, found.fix)
            continue
        needs |= found.needs
        replicates += found.replicates or [(loop, live.target)]
        if found.doubt:
            doubts.append(found)
        else:
            lines += found.lines
            edits += found.edits
    header = f"if isinstance({loader}.sampler, {kind}):  # in evaluation, each process sees all of the data"
    own = "each rank has counted its own share; from here on the numbers are those of all"
    imports = ("from torch.utils.data.distributed import DistributedSampler",) if kind == "DistributedSampler" else ()
    for level, why, after, inside in (
        (Safety.SAFE, own, lines, edits),
        *((Safety.REVIEW, d.doubt, d.lines, d.edits) for d in doubts),
    ):
        code = [header, *(textwrap.indent(line, "    ") for line in after)] if mixed else after
        parts = [*inside, *([InsertAfter(loop, "\n".join(code))] if after else [])]
        if parts:
            wanted = tuple(sorted(needs))
            here = context.tree.shown
            yield Change(CODE, why, here, loop, tuple(parts), imports if after else (), level, needs=wanted, replicates=tuple(replicates))


def _also_evaluates(context: Context, loop: Batches) -> bool:
    """Whether the loop runs over shares of the data, and over loaders that every rank reads whole."""
    over = {o for o in context.facts.after.value(loop).batches() if isinstance(o, New)}
    return bool(over & context.sharded_loaders) and bool(over - context.sharded_loaders)


def _elsewhere(context: Context, loop: Batches) -> Iterator[Finding]:
    for live in live_out(context, loop):
        if context.from_sharded_data(live.value) or any(is_meter(context, o) for o in live.value.instances()):
            yield context.manual(CODE, live.node, f"`{live.name}` is one rank's own number here", f"average {live.name} over the ranks")
