"""Reduce what is read after a loop over the ranks, so that it is of the whole data set.

What it does: totals and averages that a loop over sharded data built up, and that are read after it, are summed or averaged over
    ranks right after the loop; so are meters with sum, count and avg. The largest or smallest number seen is that of all ranks, and the
    size of the last batch that of all ranks' parts of it. What is read of batches' numbers in any other way, as what an object keeps of
    them, is made of numbers that are each reduced as its batch is done. A score of a batch that no average over ranks gives, such as an
    F1 score, is computed of all ranks' rows, which are gathered for it.
    What is printed inside the loop is of rank 0's part of the batch; one NOTE says so.
    Files that a loop writes of the batches of a training loader without training on them are a REVIEW: those of other ranks are missing.
Why: each rank has seen only its part of the data; printed, compared or scheduled as they are, the numbers are of that part.
Safety: safe where the way a number was built is known; MANUAL elsewhere.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping

from ddpify.edits import InsertAfter, Replace
from ddpify.facts import batch_source, manual_batches
from ddpify.facts.effects import effect, effects, fills_file
from ddpify.facts.example_batches import is_iterator
from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import Call, Func, Lit, New, Obj, Tup, Value
from ddpify.facts.tree import inside, is_generator, last_name, same, value_of_line, walk
from ddpify.facts.writes import Batches
from ddpify.records import replace
from ddpify.rules.base import Alternative, Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.data.loader import epoch_of, sampler_kinds, samplers
from ddpify.rules.data.sampler import Kinds
from ddpify.rules.loop import by_batch as by_batches
from ddpify.rules.loop import unknown
from ddpify.rules.loop.counted_elsewhere import counted_elsewhere, keys
from ddpify.rules.loop.last_batch import of_one_batch
from ddpify.rules.loop.live_out import LiveOut, combined_within, live_out
from ddpify.rules.loop.meters import is_meter
from ddpify.rules.loop.reduction import Reduction
from ddpify.rules.loop.reductions import loader_of, reduce

CODE = "DDP404"
_Live = tuple[LiveOut, Reduction]
_DRAWING_ALL = frozenset(("torch.utils.data.RandomSampler", "torch.utils.data.SequentialSampler"))  # without num_samples
TITLE = "reduce metrics over the ranks"
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
        "the largest rate of an epoch",
        "largest = 0.0\n"
        "for group in optimizer.param_groups:\n"
        "    largest = max(largest, group[\"lr\"])\n",
        frame="epoch",
    ),
    Example(
        "lists in a dict of what is of no batch",
        "rates = {}\n"
        "rates.setdefault(epoch % 2, []).append(optimizer.param_groups[0][\"lr\"])\n",
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
    Example(
        "a score of each batch that is no average",
        "from sklearn.metrics import f1_score\n"
        "total = 0.0\n"
        "for x, y in loader:\n"
        "    output = model(x)\n"
        "    optimizer.zero_grad()\n"
        "    criterion(output, y).backward()\n"
        "    optimizer.step()\n"
        "    total += f1_score(y.cpu().numpy(), output.argmax(1).cpu().numpy())\n"
        "return total / len(loader)\n",
        "from sklearn.metrics import f1_score\n"
        "total = 0.0\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    output = model(x)\n"
        "    optimizer.zero_grad()\n"
        "    criterion(output, y).backward()\n"
        "    optimizer.step()\n"
        "    total += f1_score(from_all_ranks(y).cpu().numpy(), from_all_ranks(output.argmax(1)).cpu().numpy())\n"
        "return total / len(loader)\n",
        frame="batches",
    ),
    Example(
        "lists in a dict, each of some of the batches",
        "seen = {}\n"
        "for i, (x, y) in enumerate(loader):\n"
        "    loss = criterion(model(x), y)\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    seen.setdefault(i % 2, []).append(loss.item())\n"
        "print(seen)\n",
        "seen = {}\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for i, (x, y) in enumerate(loader):\n"
        "    loss = criterion(model(x), y)\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    seen.setdefault(i % 2, []).append(sum_over_ranks(loss.item()) / world_size)\n"
        "if rank == 0:\n"
        "    print(seen)\n",
        frame="batches",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Reduce after each loop over shares of the data."""
    seen, noted = set[ast.AST](context.once(_loops)), False
    found = {node: [*_reductions(context, node)] for node in context.once(_loops) if context.facts.is_edited(node)}
    now = _in_turn(context, found)
    for node in dict.fromkeys(context.once(_loops)):
        if node not in now:
            yield from _elsewhere(context, node)
            continue
        for item in _reduce(context, node, now[node]):
            noted |= isinstance(item, Finding) and item.level is Safety.NOTE
            sure = isinstance(item, Change) and item.level is Safety.SAFE  # else its own reason is worth more
            twice = sure and node not in context.facts.training_loops and _repeats_samples(context, node)
            yield replace(item, why=_TWICE, level=Safety.NOTE) if twice and isinstance(item, Change) else item
    yield from _comprehended(context)
    yield from _hidden(context, [node for node in seen if isinstance(node, (ast.For, ast.AsyncFor, ast.While))])
    yield from _divisors(context)
    yield from _sampled(context)
    yield from _progress(context)
    yield from _shown(context, seen, noted)


def _shown(context: Context, seen: set[ast.AST], noted: bool) -> Iterator[Finding]:
    """What is shown, or written, of a rank's part of the data; once, and not where a reduction said so (`noted`)."""
    decided = (c for c, _ in effects(context.facts.after) if any(context.from_sharded_data(test) for _, test in c.tests))
    within = [c for c in (*_output_calls(context), *decided) if any(loop.node in seen for loop in c.loops)]
    if within:
        yield context.manual(
            CODE, within[0].node, "what is printed inside the batch loop is about rank 0's part of the batch", level=Safety.NOTE
        )
    apart = [c for c in _output_calls(context) if not any(loop.node in seen for loop in c.loops) and _shows_one_batch(context, c)]
    if apart and not within and not noted:
        yield context.manual(CODE, apart[0].node, "this is about rank 0's part of one batch", level=Safety.NOTE)
    evaluating = seen - context.facts.training_loops
    part = next((c for c in within if effect(c) == "file" and any(loop.node in evaluating for loop in c.loops)), None)
    if part is not None:
        why = "this loop reads the training loader, of which rank 0 has only its part: the batches of the other ranks are never written"
        yield context.manual(CODE, part.node, why, "give this loop a loader of its own, without a DistributedSampler", level=Safety.REVIEW)


_TWICE = "summed over ranks; the sampler of this loader, which trains, too, repeats samples until all ranks have equally many"


def _repeats_samples(context: Context, loop: ast.AST) -> bool:
    """Whether a loop goes over the share of a sampler that repeats samples so that all ranks have equally many."""
    loaders = set(context.facts.loaders).difference(context.facts.whole_loaders) & context.facts.after.value(loop).batches()
    return any(epoch_of(context, o) == "sampler" and not _drops_the_rest(context, o) for o in loaders)


def _comprehended(context: Context) -> Iterator[Change | Finding]:
    """What comprehensions that train gather: the numbers of each batch are made those of all ranks."""
    run, kinds = context.facts.after, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
    found = dict.fromkeys(loop.node for t in context.facts.loops for loop in t.backward.loops if isinstance(loop.node, kinds))
    over = {n: [run.value(part) for generator in n.generators for part in walk(generator.iter)] for n in found}
    uses = [n for n, parts in over.items() if any(map(run.feeds, parts)) and by_batches.are_own(context, [n])]
    change = by_batches.reduce(context, CODE, uses) if uses else None
    if change is not None:
        yield change
    elif uses:
        why = "what this comprehension gathers is of one rank's part of the data, not of all of it"
        yield context.manual(CODE, uses[0], why, "write it as a loop, and sum or average what it counts over the ranks after it")


def _hidden(context: Context, loops: list[Batches]) -> Iterator[Finding]:
    """A rank's own numbers kept where they are not followed: in a function's attributes, or in names of the function around."""
    run = context.facts.after
    followed = {n for loop in loops for n in inside(loop)}
    own = [s for s in run.trace.stores if context.from_sharded_data(s.value) or context.differs(s.value)]
    nodes = [s.node for s in own if any(isinstance(o, Func) for o in s.receiver.objs)]
    for tree in context.facts.trees.values():
        for statement in tree.of(ast.Nonlocal):
            stores = [
                n for n in walk(tree.function(statement)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in followed
            ]
            nodes += [n for n in stores if n.id in statement.names and context.from_sharded_data(run.value(n))]
    for element in (e for loop in loops for e in counted_elsewhere(context, loop)):
        nodes += [element.value] if any(context.from_sharded_data(run.value(n)) for n in keys(element)) else []
    for node in dict.fromkeys(nodes):
        text = ast.unparse(node)
        why = f"`{text}` is computed from this rank's part of the data only"
        yield context.manual(CODE, node, why, f"sum {text} over the ranks before it is read")


def _loops(context: Context) -> list[Batches]:
    """The loops over shares of the data: those that train, and those that evaluate such loaders; no steps on one of their batches."""
    run = context.facts.after
    found = dict.fromkeys(t.batch.node for t in context.facts.loops if t.batch is not None and t.loaders)
    over: dict[ast.For | ast.While, None] = {node: None for node in context.facts.entry.of(ast.For) if _goes_over_shares(context, node)}
    over |= dict.fromkeys(_take_batches(context))
    training = [node for node in found if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
    steps = {node for node in training if any(up in found or up in over for up in context.facts.tree_of(node).ancestors(node))}
    steps -= {node for node in steps if isinstance(node, ast.AsyncFor) or _deals_batches(context, node)}
    drawn = {call.loops[-1].node for source in context.facts.batch_sources for call in run.calls(source) if call.loops} - steps
    batches = {t.batch.node for t in context.facts.loops if t.batch is not None}
    around = [loop for t in context.facts.loops for loop in (t.backward.loops if t.batch is not None else (t.epoch,)) if loop is not None]
    drawn -= {loop.node for loop in around} - batches  # what is split there is gone through in a loop of its own
    both: list[ast.For | ast.While] = [*context.facts.entry.of(ast.For), *context.facts.entry.of(ast.While)]
    return [*(node for node in training if node not in steps), *(node for node in both if node in drawn or node in over)]


def _take_batches(context: Context) -> Iterator[ast.For | ast.While]:
    """The loops outside the training that ask for a batch by `next` in each pass, of a loader of which each rank has its share."""
    run = context.facts.after
    for call in (*run.calls_of("next"), *run.calls_named("next"), *run.calls_named("__next__")):
        if not call.loops or not call.result.batches() & context.sharded_loaders:
            continue
        node, tree = call.loops[-1].node, context.facts.tree_of(call.node)
        trains = any(loop.node in context.facts.training_loops for loop in call.loops)
        if isinstance(node, (ast.For, ast.While)) and not trains and not is_generator(tree.function(call.node)):
            yield node


def _goes_over_shares(context: Context, loop: ast.For) -> bool:
    """Whether a loop goes over a loader of which each rank has its share."""
    run = context.facts.after
    feeds = any(run.feeds(run.value(part)) for part in walk(loop.iter))
    return feeds and bool(run.value(loop).batches() & context.sharded_loaders)


def _deals_batches(context: Context, loop: ast.AST) -> bool:
    """Whether each pass of a loop has a batch of its own, rather than being one of several steps on the same one."""
    run, known = context.facts.after, context.facts.batch_sources
    cut = {call.loops[-1].node for source in known if known[source].kind != "draw" for call in run.calls(source) if call.loops}
    feeds = isinstance(loop, ast.For) and any(run.feeds(run.value(part)) for part in walk(loop.iter))
    takes = (n.func for n in walk(loop) if isinstance(n, ast.Call))
    return feeds or loop in cut or any(last_name(func) == "next" for func in takes)


def _divisors(context: Context) -> Iterator[Change]:
    """A total is divided by the samples that were really seen: the sampler repeats a few so that all ranks have equally many."""
    feeding, loops, products = set(context.facts.feeding), set(_loops(context)), set(context.once(_samples_seen))
    for total, divisor in _quotients(context):
        if not products.isdisjoint(walk(total)):
            continue  # of the samples that all ranks have seen
        own = not loops.isdisjoint(context.tree.ancestors(divisor)) and _is_shown(context, divisor)
        value = context.facts.after.value(total)
        loaders = {o for o in value.of_kind("batch") if o in feeding}
        if loaders and value.scale in ("sum", "count", "total") and not value.of_kind("forward"):
            cut = any(o.path == batch_source.SLICE for o in loaders)
            change = _repeated_rows(context, divisor, own) if cut else _repeated_samples(context, divisor, loaders, own)
            if change is not None:
                yield change


_REPEATED = "the sampler repeats samples until all ranks have equally many, so that the total counts some samples twice"
_ON_BARS = ("set_postfix", "set_postfix_str", "set_description", "set_description_str")


def _is_shown(context: Context, node: ast.expr) -> bool:
    """Whether a line of output has what is computed of an expression, and nothing else reads it: no total over the ranks is made of it."""
    run, statement = context.facts.after, context.tree.statement(node)
    bars = (call for method in _ON_BARS for call in run.calls_named(method))
    shown = {n for call in (*_output_calls(context), *bars) for n in walk(call.node)}
    if node in shown or not isinstance(statement, ast.Assign):
        return node in shown
    named = all(isinstance(target, ast.Name) for target in statement.targets)
    uses = [use for target in statement.targets for use in run.definitions.uses(target)] if named else []
    return bool(uses) and shown.issuperset(uses)


def _quotients(context: Context) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is divided, and by what."""
    for node in context.tree.nodes():
        match node:
            case ast.BinOp(left=total, op=ast.Div(), right=divisor) | ast.AugAssign(target=total, op=ast.Div(), value=divisor):
                yield total, divisor


def _repeated_rows(context: Context, divisor: ast.expr, own: bool) -> Change | None:
    """The change of a divisor that is the number of rows which batches are cut from; `own`: where the total is a rank's own."""
    if not _counts_rows(context, divisor):
        return None
    why = "where the number of ranks does not divide a batch, its last row is repeated, and the total counts it more than once"
    of_all = f"{context.names['with_repeated']}({{0}})"
    edit = Replace(divisor, f"({of_all} / {context.names['world_size']})" if own else of_all, (divisor,))
    return Change(CODE, why, context.tree.shown, divisor, (edit,), needs=("with_repeated",))


def _repeated_samples(context: Context, divisor: ast.expr, loaders: set[New], own: bool) -> Change | None:
    """The change of a divisor that is the length of the data set of a loader; `own`: where the total is a rank's own."""
    loader, kinds = _measured(context, divisor), {epoch_of(context, o) for o in loaders}
    if loader and own:
        why = "of the data that all ranks go through, this rank has its share so far"
        return Change(CODE, why, context.tree.shown, divisor, (Replace(divisor, f"({{0}} / {context.names['world_size']})", (divisor,)),))
    if all(_drops_the_rest(context, o) for o in loaders):
        return None
    if not loader:
        return None if own else _repeated_in_training(context, divisor, loaders)
    if kinds == {"batch_sampler"}:
        why = "where the number of ranks does not divide a batch, samples are repeated, and this total counts those twice"
        return Change(CODE, why, context.tree.shown, divisor, (), level=Safety.REVIEW)
    why = _REPEATED
    where = f"{loader}.{(kinds.pop() if len(kinds) == 1 else 'sampler') or 'dataset'}"
    edit = Replace(divisor, f"(len({where}) * {context.names['world_size']})")
    if any(_draws_a_part(context, o) for o in loaders):
        edit = Replace(divisor, f"({{0}} * (len({where}) * {context.names['world_size']}) / len({where}.sampler))", (divisor,))
    return Change(CODE, why, context.tree.shown, divisor, (edit,))


def _repeated_in_training(context: Context, divisor: ast.expr, loaders: set[New]) -> Change | None:
    """The change of a divisor that is the length of the data set of whichever loader a loop goes over, to train or to evaluate."""
    run, around = context.facts.after, set(context.tree.ancestors(divisor))
    data = divisor.args[0] if isinstance(divisor, ast.Call) and divisor.args and "len" in run.value(divisor.func).paths() else None
    measured = run.value(data).instances() if data is not None else run.value(divisor).of_kind("length")
    for loop in context.once(_loops):
        over, loader = _over(context, loop), loader_of(context, loop)
        sets = frozenset[object](o for made in over for o in run.attribute(made, "dataset").instances())
        if not loader or context.tree.parent[loop] not in around or not loaders < over or sets != measured:
            continue
        kinds = sampler_kinds(context, frozenset(loaders))
        if kinds is not None and {epoch_of(context, o) for o in loaders} == {"sampler"}:
            seen = f"len({loader}.sampler) * {context.names['world_size']} {kinds.test(loader)} else {{0}}"
            edit = Replace(divisor, f"({seen})", (divisor,))
            return Change(CODE, _REPEATED, context.tree.shown, divisor, (edit,), kinds.imports, needs=kinds.needs)
    return None


def _drops_the_rest(context: Context, loader: New) -> bool:
    """Whether a loader drops a batch that is not full, and with it what a sampler would repeat."""
    given = context.facts.after.attribute(loader, "drop_last").objs
    return bool(given) and all(isinstance(o, Lit) and o.value is True for o in given)


def _draws_a_part(context: Context, loader: New) -> bool:
    """Whether a loader has a sampler of the script's own, which need not draw each sample of the data set once."""
    run = context.facts.after
    own = run.attribute(loader, "sampler").instances() - samplers(context, loader)
    return any(o.path not in _DRAWING_ALL or run.attribute(o, "num_samples").objs for o in own)


def _counts_rows(context: Context, node: ast.expr) -> bool:
    """Whether a number is how many rows there are of data that is cut: its length, or where the loop over it ends."""
    run, value = context.facts.after, context.facts.after.value(node)
    if value.batches() or value.scale is not None or value.of_kind("world"):
        return False
    if manual_batches.measures(node):
        measured = [argument for n in walk(node) if isinstance(n, ast.Call) for argument in n.args]
        return not any(isinstance(n, ast.BinOp) for n in walk(node)) and not any(is_iterator(run.value(n)) for n in measured)
    if isinstance(node, (ast.Name, ast.Attribute)):
        assignments = [context.tree.parent.get(d) for d in run.definitions.reaching(node).definitions]
        values = [up.value for up in assignments if isinstance(up, ast.Assign)]
        if values and len(values) == len(assignments):
            return all(_counts_rows(context, v) for v in values)
    return any(same(node, end) for end in _ends_of_cuts(context))


def _ends_of_cuts(context: Context) -> Iterator[ast.expr]:
    """Where loops that cut batches end: `n` of `range(0, n, size)`."""
    for node in (t.batch.node for t in context.facts.loops if t.batch is not None):
        for part in walk(node.iter) if isinstance(node, ast.For) else ():
            if isinstance(part, ast.Call) and len(part.args) == 3 and "range" in context.facts.after.value(part.func).paths():
                yield part.args[1]


def _progress(context: Context) -> Iterator[Change]:
    """Lines inside the training loop that say how many samples were seen: `step * len(batch)` is one rank's part of them."""
    for node in context.once(_samples_seen):
        why = "the batch here is one rank's part: all ranks together have seen world_size times as many samples"
        edit = Replace(node, f"{{0}} * {{1}} * {context.names['world_size']}", (node.left, node.right))
        yield Change(CODE, why, context.tree.shown, node, (edit,))


def _samples_seen(context: Context) -> list[ast.BinOp]:
    """The products in lines of output inside the training loop that are the numbers of the samples that a rank has seen."""
    run, tree = context.facts.after, context.tree
    training = {t.batch.node for t in context.facts.loops if t.batch is not None}
    out: list[ast.BinOp] = []
    seen: set[ast.AST] = set()
    for call in _output_calls(context):
        if not context.facts.is_edited(call.node) or not any(up in training for up in tree.ancestors(call.node)):
            continue
        for node in walk(call.node):
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)) or node in seen:
                continue
            seen |= set(walk(node))
            if run.value(node).scale == "count" and context.from_sharded_data(run.value(node)) and not run.value(node).of_kind("world"):
                out.append(node)
    return out


def _sampled(context: Context) -> Iterator[Change]:
    """The length of a training loader's sampler, which draws this rank's share from now on."""
    run = context.facts.after
    for node in context.tree.of(ast.Call):
        sampler, up = node.args[0] if node.args else None, context.tree.parent[node]
        if not isinstance(sampler, ast.Attribute) or sampler.attr != "sampler" or "len" not in run.value(node.func).paths():
            continue
        loaders = run.value(sampler.value).instances()
        factors = (up.left, up.right) if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult) else ()
        of_all = any(run.value(factor).of_kind("world") for factor in factors)
        if loaders and loaders <= set(context.facts.loaders) and not of_all and {epoch_of(context, o) for o in loaders} == {"sampler"}:
            why = "a rank's sampler draws only its part: all ranks together draw world_size times as many"
            yield Change(CODE, why, context.tree.shown, node, (Replace(node, f"({{0}} * {context.names['world_size']})", (node,)),))


def _measured(context: Context, node: ast.expr) -> str:
    """The training loader, as the script writes it, whose whole data set a length is; empty where it is something else's."""
    run = context.facts.after
    data = node.args[0] if isinstance(node, ast.Call) and node.args and "len" in run.value(node.func).paths() else None
    if isinstance(data, ast.Attribute) and data.attr == "dataset":
        loaders = run.value(data.value).instances()
        return context.source(data.value) if loaders and loaders <= set(context.facts.loaders) else ""
    if data is None and not isinstance(node, (ast.Name, ast.Attribute)):
        return ""
    measured = run.value(data).instances() if data is not None else run.value(node).of_kind("length")
    for loop in context.once(_loops):
        text = loader_of(context, loop)
        if text and context.tree.function(loop) is context.tree.function(node) and _data_sets(context, loop) == measured != frozenset():
            return text
    return ""


def _data_sets(context: Context, loop: Batches) -> frozenset[New]:
    """The data sets of the training loaders that a loop goes over; none where it goes over others, too."""
    run = context.facts.after
    over = {o for o in run.value(loop).batches() if isinstance(o, New)}
    sets = frozenset(o for loader in over for o in run.attribute(loader, "dataset").instances())
    return sets if over <= set(context.facts.loaders) else frozenset()


def _output_calls(context: Context, also: Callable[[Value], bool] = lambda value: False) -> Iterator[Call]:
    """Calls that print, log or write something computed from a rank's own batches, or of which something else holds."""
    run = context.facts.after
    for call in (*(call for call, _ in effects(run)), *filter(fills_file, run.trace.calls)):
        if any(context.from_sharded_data(v) or also(v) for v in _inner(context, call)):
            yield call


def _inner(context: Context, call: Call) -> Iterator[Value]:
    """What a call is given, as it is, within f-strings or as texts of it, and what tuples and containers among it hold."""
    given = [*call.node.args, *(k.value for k in call.node.keywords)]
    formatted = [context.facts.after.value(n.value) for a in given for n in walk(a) if isinstance(n, ast.FormattedValue)]
    tables = [v for c in _tables(context, call) for v in (*c.args, *c.keywords.values())]
    todo, seen = [*call.args, *call.keywords.values(), *formatted, call.result, *tables], set[New]()
    for value in todo:
        yield value
        for obj in value.objs:
            if isinstance(obj, Tup):
                todo += obj.entries
            elif isinstance(obj, New) and obj not in seen and (obj.path in COLLECTIONS or _is_record(context, obj, call)):
                seen.add(obj)
                todo += context.facts.after.of(obj).values()


def _is_record(context: Context, obj: New, call: Call) -> bool:
    """Whether all that an object holds is shown or written with it: a table, or an object of the script's own that goes into a file."""
    if obj.cls is None:
        return obj.path.startswith("pandas.")
    return fills_file(call) and not context.facts.after.interpreter.is_module(obj)


def _tables(context: Context, call: Call) -> list[Call]:
    """The calls that have made tables of what they were given, which a call shows or writes: `pd.DataFrame(rows).to_csv(path)`."""
    objs = (o for v in (call.receiver, *call.args, *call.keywords.values()) for o in v.instances())
    return [made for o in objs if o.path.startswith("pandas.") for made in context.facts.after.calls(o.node)]


def unreduced_numbers(context: Context) -> Iterator[Finding]:
    """What a converted script still shows, compares or schedules of one rank's own numbers after a training loop."""
    message, fix = "this value is computed from one rank's part of the data, not from all of it", "sum or average it over the ranks first"
    yield from (context.manual(CODE, node, message, fix) for node, _ in _own_numbers(context))


def _own_numbers(context: Context) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
    """What shows or decides by one rank's own numbers after a training loop, and what it is given."""
    loops = set(context.once(_loops))
    first = min((c.order for c in context.facts.after.trace.calls if any(loop.node in loops for loop in c.loops)), default=0)
    for call in _output_calls(context, context.chosen_by_own_batch):
        if call.last < first:
            continue  # what a container will hold later is not there yet
        own = [v for v in _inner(context, call) if context.from_sharded_data(v) or context.chosen_by_own_batch(v)]
        scales = {v.scale for v in own}
        of_rows = scales <= {"sample", "count"} or _shows_one_batch(context, call)  # shown as rank 0's own, and said so
        if not (of_rows or any(loop.node in loops for loop in call.loops)):
            given = [n for c in (call, *_tables(context, call)) for n in (*c.node.args, *(k.value for k in c.node.keywords))]
            yield call.node, given
    for decision in context.facts.after.trace.decisions:
        if not isinstance(decision.node, (ast.If, ast.While)) or any(loop.node in loops for loop in decision.loops):
            continue
        if context.from_sharded_data(decision.test) and not _divides_among_ranks(context, decision.node):
            yield decision.node, [decision.node.test]


def _shows_one_batch(context: Context, call: Call) -> bool:
    """Whether a call shows or writes what depends on one batch alone, or pictures of samples."""
    return "torchvision.utils.save_image" in call.func.paths() or of_one_batch(context, call.node)


def _divides_among_ranks(context: Context, node: ast.AST) -> bool:
    """Whether a condition is what is left over where the ranks share so many rows."""
    match node:
        case ast.If(test=ast.BinOp(op=ast.Mod(), right=ranks)):
            return bool(context.facts.after.value(ranks).of_kind("world"))
    return False


def by_batch(context: Context, start: Context) -> Iterator[Change]:
    """Reduce the numbers of each batch, where nothing else makes what is read of them after a loop that of all ranks.

    `context` is that of what is reduced already, `start` that of nothing.
    """
    uses = [use for live, r in _found(context) if r.problem or r.doubt for use in live.uses]
    uses += [part for _, given in _own_numbers(context) for part in given]
    change = by_batches.reduce(context, CODE, uses) if uses else None
    if uses and change is None:
        lists = [use for live, r in _found(start) if "gather_over_ranks" in r.needs for use in live.uses]
        change = by_batches.gather(context, CODE, uses, start, lists)
    if change is not None:
        yield change


def _found(context: Context) -> Iterator[_Live]:
    """What is live after the loops that are edited, and how it is reduced."""
    for loop in context.once(_loops):
        if context.facts.is_edited(loop):
            yield from _reductions(context, loop)


def _in_turn(context: Context, found: Mapping[Batches, list[_Live]]) -> Mapping[Batches, list[_Live]]:
    """What is reduced now: what is made of another loop's numbers waits until those are of all ranks, or it would sum them again."""
    run, around = context.facts.after, dict[ast.AST, set[ast.AST]]()
    for call in run.trace.calls if len(found) > 1 else ():
        nodes = [loop.node for loop in call.loops]
        for i, node in enumerate(nodes):
            around.setdefault(node, set()).update(nodes[:i])
    given = {loop: {o for live, r in pairs if not (r.problem or r.note) for o in _batches(context, live)} for loop, pairs in found.items()}
    now = dict[Batches, list[_Live]]()
    for loop, pairs in found.items():
        own, first = run.value(loop).batches(), set[Obj]()
        for other, batches in given.items():
            first |= batches if loop in around.get(other, ()) else batches - own if other is not loop else set()
        now[loop] = [(live, reduction) for live, reduction in pairs if first.isdisjoint(_batches(context, live))]
    return now if any(now.values()) else found


def _batches(context: Context, live: LiveOut) -> frozenset[Obj]:
    """What makes the batches of which a live-out variable, or what it holds, is computed."""
    held = context.facts.after.held(live.value)
    kept = (v for value in held for o in value.instances() for v in context.facts.after.of(o).values())
    return frozenset(o for value in (*held, *kept) for o in value.batches())


def _reduce(context: Context, loop: Batches, pairs: Iterable[_Live]) -> Iterator[Change | Finding]:
    """Reduce what is live after one loop, where it differs between ranks."""
    over, sharded = _over(context, loop), context.sharded_loaders
    evaluates = bool(over & sharded) and not over <= sharded  # of which every rank reads all
    kinds = sampler_kinds(context, over & frozenset(context.facts.loaders)) if evaluates else None
    loader = loader_of(context, loop)
    reductions: dict[bool, list[Reduction]] = {False: [], True: []}  # by whether they are of evaluation, too
    for live, reduction in pairs:
        of = over & _batches(context, live) or over
        mixed = bool(of & sharded) and not of <= sharded
        if (within := combined_within(context, live)) is not None:
            why = f"`{live.name}` is a part of what the script combines over the ranks itself, by what it takes for its share"
            yield context.manual(CODE, within, why, f"combine {live.name} alone, and compute with what is of all ranks")
            continue
        known = not reduction.note and not reduction.problem
        if mixed and known and not (loader and kinds and (not reduction.edits or live.value.scale == "mean")):
            reduction.problem = (
                f"`{live.name}` is of this rank's part of the data in training, and of all of it in evaluation, in the same loop"
            )
            reduction.fix = f"sum {live.name} over the ranks where the loop trained, and only there"
        if reduction.note:
            yield context.manual(CODE, live.node, reduction.note, level=Safety.NOTE)
        elif reduction.problem:
            found = context.manual(CODE, live.node, reduction.problem, reduction.fix)
            yield replace(found, alternatives=_alternatives(context, live))
        else:
            reduction.replicates = reduction.replicates or [(loop, live.target)]
            reduction.alternatives = _alternatives(context, live) if reduction.doubt else ()
            reductions[mixed].append(reduction)
    for mixed, group in reductions.items():
        yield from _after_loop(context, loop, group, loader, kinds if mixed else None)


def _over(context: Context, loop: Batches) -> frozenset[New]:
    """The loaders that a loop goes over."""
    return frozenset(o for o in context.facts.after.value(loop).batches() if isinstance(o, New))


def _reductions(context: Context, loop: Batches) -> Iterator[_Live]:
    """What is live after a loop and differs between ranks, and how it is reduced."""
    sharded = bool(_over(context, loop) & context.sharded_evaluation)
    for live in live_out(context, loop):
        reduction = reduce(context, loop, live, loader_of(context, loop), sharded)
        if reduction is not None:
            yield live, reduction


def _alternatives(context: Context, live: LiveOut) -> tuple[Alternative, ...]:
    """What may be true of the values that a loop adds up or collects: averages, totals or a number for each sample."""
    run = context.facts.after
    added = {write.added: write.node for write in live.writes if write.added is not None}
    functions = sorted({name for value in map(run.value, added) for name in unknown.names(context, value)})
    statements = [(tree, tree.statement(node), value) for value, node in added.items() for tree in (context.facts.tree_of(node),)]
    lines = [f"{tree.shown}:{node.lineno}" for tree, node, value in statements if value_of_line(node) is value]
    return unknown.alternatives(*((word, functions or lines) for word in ("mean", "sum", "shard")))


def _after_loop(context: Context, loop: Batches, reductions: list[Reduction], loader: str, kinds: Kinds | None) -> Iterator[Change]:
    """One change for all reductions that are proven, and one for each that is not; with `kinds`, only where the sampler is of these."""
    header = [kinds.test(loader) + ":" + "  # in evaluation, each process sees all of the data"] if kinds else []
    imports = kinds.imports if kinds else ()
    why = "each rank counted only its part of the data: summed over ranks, the numbers are those of the whole data set"
    groups = [(Safety.SAFE, why, [r for r in reductions if not r.doubt])]
    groups += [(Safety.REVIEW, r.doubt, [r]) for r in reductions if r.doubt]
    for level, reason, group in groups:
        edits = list({(e.node, e.template) if isinstance(e, Replace) else e: e for r in group for e in r.edits}.values())
        lines = [textwrap.indent(line, "    ") if kinds else line for r in group for line in r.lines]
        edits += [InsertAfter(loop, "\n".join(header + lines))] if lines else []
        if edits:
            where = (CODE, reason, context.tree.shown, loop)
            alternatives = tuple(a for r in group for a in r.alternatives)
            named = kinds.needs if kinds and lines else ()
            needs, replicates = sorted({n for r in group for n in r.needs}.union(named)), [pair for r in group for pair in r.replicates]
            made = Change(*where, tuple(edits), imports if lines else (), level, needs=tuple(needs), replicates=tuple(replicates))
            yield replace(made, alternatives=alternatives)


def _elsewhere(context: Context, loop: Batches) -> Iterator[Finding]:
    for live in live_out(context, loop):
        if context.from_sharded_data(live.value) or any(is_meter(context, o) for o in live.value.instances()):
            yield context.manual(
                CODE,
                live.node,
                f"`{live.name}` is computed from one rank's part of the data here, not from all of it",
                f"average {live.name} over the ranks",
            )
