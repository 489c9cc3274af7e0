"""Shard the evaluation's batches over the ranks.

What it does: a loader that only evaluates, in loops that do nothing but add up or collect, gives each rank every N-th of its batches:
    whole batches, of the size they had, so that even a mean of batch means stays what it was. What the loops leave is then summed or
    gathered over the ranks (DDP404), unless the script does so itself where there is a process group. With `--eval replicate`, and where
    a loop does anything else, every rank evaluates all batches; what the script then adds up over the ranks is left out.
Why: DistributedSampler repeats samples until all ranks have equally many, and counts them twice; evaluating on rank 0 alone leaves the
    other ranks waiting. Ranks that evaluate with batch norm first take rank 0's statistics, which differ while training goes on.
Safety: safe where every use of the loader and of what the loop builds up was seen; else replicated, with a NOTE that says why. REVIEW
    where the script gives such a loader a DistributedSampler.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Sampler
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator

from ddpify.edits import Drop, Edit, FreshName, InsertAfter, InsertBefore, Replace, SetArgument, escaped
from ddpify.facts import library
from ddpify.facts.effects import of_run
from ddpify.facts.model import NOTHING, Call, New, ordered
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, inside, is_none, is_number, names_in, walk
from ddpify.rules.base import Alternative, Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import download, draws
from ddpify.rules.data.evaluation_loops import asks_all_ranks, normalised_models, obstacle, only_shown, test_of_model
from ddpify.rules.data.loader import sharded
from ddpify.rules.data.loader_call import POSITIONS, places, samples_around_nodes, seeds
from ddpify.rules.data.stream import ITERABLE
from ddpify.rules.loop.live_out import combining, live_out

CODE = "DDP304"
TITLE = "shard the evaluation"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "an evaluation that may end early",
        "val_loader = DataLoader(test_set, batch_size=100)\n"
        "hits = 0\n"
        "for x, y in val_loader:\n"
        "    hits += (y == 0).sum().item()\n"
        "    if hits > 50:\n"
        "        break\n",
        frame="end",
    ),
    Example(
        "an evaluation that draws its order",
        "val_loader = DataLoader(test_set, batch_size=100, shuffle=True)\n"
        "hits = 0\n"
        "for x, y in val_loader:\n"
        "    hits += (y == 0).sum().item()\n",
        frame="end",
    ),
    Example(
        "an evaluation in one expression",
        "val_loader = DataLoader(test_set, batch_size=100)\n"
        "shapes = [x.shape for x, y in val_loader]\n",
        frame="end",
    ),
    Example(
        "a count over all batches",
        "val_loader = DataLoader(test_set, batch_size=100, num_workers=2)\n"
        "hits = 0\n"
        "for x, y in val_loader:\n"
        "    hits += (y == 0).sum().item()\n"
        "accuracy = hits / len(test_set)\n",
        "val_loader = DataLoader(test_set, batch_size=100, num_workers=workers_per_rank(2), sampler=batches_of_rank(test_set, 100))\n"
        "hits = 0\n"
        "for x, y in val_loader:\n"
        "    hits += (y == 0).sum().item()\n"
        "hits = sum_over_ranks(hits)\n"
        "accuracy = hits / len(test_set)\n",
        frame="end",
    ),
    Example(
        "a mean of batch means",
        "val_loader = DataLoader(test_set, batch_size=100)\n"
        "total = 0.0\n"
        "for x, y in val_loader:\n"
        "    total += x.mean().item()\n"
        "total /= len(val_loader)\n",
        "val_loader = DataLoader(test_set, batch_size=100, sampler=batches_of_rank(test_set, 100))\n"
        "total = 0.0\n"
        "for x, y in val_loader:\n"
        "    total += x.mean().item()\n"
        "num_batches = sum_over_ranks(len(val_loader))\n"
        "total = sum_over_ranks(total)\n"
        "total /= num_batches\n",
        frame="end",
    ),
)  # fmt: skip
_COMBINE = {  # where calls take what they add up, or collect
    "torch.distributed.all_reduce": 0,
    "torch.distributed.reduce": 0,
    "torch.distributed.all_gather": 1,
    "torch.distributed.all_gather_object": 1,
}
_HARMLESS = frozenset(("enumerate", "len", "tqdm.tqdm", "print", "isinstance", "id"))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Give the loaders that are sharded their sampler, and say why others are not."""
    loaders = ordered(context.sharded_evaluation)
    for node in dict.fromkeys(o.node for o in loaders if not _is_sharded(context, o)):
        if isinstance(node, ast.Call):
            yield _given_sampler(context, node)
    yield from _loops(context)
    yield from _replicated_loops(context)
    yield from _drawn_alike(context)
    yield from _in_shares(context)
    yield from _combined_again(context)


def _in_shares(context: Context) -> Iterator[Finding]:
    """The loaders of evaluation that the script gives a DistributedSampler where there are several ranks."""
    why = "with this loader each rank evaluates a share of the data, filled up with repeated samples: numbers of it are not those of all"
    run, drawn = context.facts.after, {o for _, over in _evaluations(context) for o in over}
    drawn |= {o for n in context.tree.of(ast.comprehension) for o in run.value(n.iter).instances()}
    for loader in ordered(_others(context) & drawn):
        given = argument(loader.node, 3, "sampler") if isinstance(loader.node, ast.Call) else None
        samplers = run.value(given).objs if given is not None else frozenset()
        if samplers and all(getattr(o, "path", "") == library.DISTRIBUTED_SAMPLER for o in samplers):
            yield context.manual(CODE, loader.node, why, "give it no sampler: every rank then evaluates all of it", level=Safety.REVIEW)


def _combined_again(context: Context) -> Iterator[Change | Finding]:
    """What the script itself adds up or collects over the ranks, of an evaluation that every rank runs over all of the data."""
    run = context.facts.after
    if context.begins_group:
        return  # it is converted
    combined: dict[ast.AST, list[frozenset[New]]] = {}
    for call in run.trace.calls:
        position = next((_COMBINE[path] for path in call.func.paths() if path in _COMBINE), None)
        value = call.args[position] if position is not None and position < len(call.args) else NOTHING
        loaders = value.batches() | {o for held in value.instances() for o in run.attribute(held, "[]").batches()}
        node = next((n for n in (*reversed(call.stack), call.node) if context.facts.is_edited(n)), call.node)
        if position is not None and not _averages(context, call):
            combined.setdefault(node, []).append(loaders)
    for node, fed in combined.items():
        if any(loaders and loaders.isdisjoint(context.sharded_loaders) for loaders in fed):
            yield _left_out(context, node, all(fed) and context.sharded_loaders.isdisjoint(frozenset().union(*fed)))


def _left_out(context: Context, node: ast.AST, always: bool) -> Change | Finding:
    """Take away what adds up or collects; by hand where it does more, or does it for others, too."""
    why = "every rank runs this whole evaluation, and what is combined here is of all of the data already"
    tree, effects = context.facts.tree_of(node), of_run(context.facts)
    statement, stored = tree.statement(node), effects.stores_under[node]
    alone = isinstance(statement, ast.Expr) and statement.value is node and not effects.kinds(node)
    alone = alone and all(s.value.origins and not context.from_sharded_data(s.value) for s in stored)
    alone = alone and not any(call.in_place for call in effects.under[node])
    if always and alone and not context.facts.project.is_shared(tree.name):
        return Change(CODE, f"{why}: it is left out", tree.shown, node, (Drop(statement),))
    fix = "leave it out, or have the evaluation shared out, too"
    return context.manual(CODE, node, f"{why}: it would be too much", fix, level=Safety.REVIEW)


def _averages(context: Context, call: Call) -> bool:
    """Whether what a call adds up over the ranks is divided by their number in the same function, as it is called."""
    run, tree, function = context.facts.after, context.facts.tree_of(call.node), context.facts.tree_of(call.node).function(call.node)
    for node in walk(function):
        parts = (node.op, node.value) if isinstance(node, ast.AugAssign) else (node.op, node.right) if isinstance(node, ast.BinOp) else None
        if parts is None or not isinstance(parts[0], ast.Div) or not run.value(parts[1]).of_kind("world"):
            continue
        tests = [up.test for up in tree.ancestors(node) if isinstance(up, ast.If) and up in walk(function)]
        if all(_is_asked(test, function, call.stack[-1] if call.stack else None) for test in tests):
            return True
    return False


def _is_asked(test: ast.expr, function: ast.AST, call: ast.AST | None) -> bool:
    """Whether the parameters that a function tests, such as `average`, are true where it is called; a test may ask for others, too."""
    given = function.args if isinstance(function, ast.FunctionDef) else None
    names = [a.arg for a in given.args] if given is not None else []
    default = dict(zip(reversed(names), reversed(given.defaults), strict=False)) if given is not None else {}
    asked = names_in(test) & set(names)
    passed = [argument(call, names.index(n), n) if isinstance(call, ast.Call) else None for n in asked]
    values = [value or default.get(name) for name, value in zip(asked, passed, strict=True)]
    plain = not any(isinstance(n, ast.Not) for n in walk(test))
    return not asked or (plain and all(isinstance(v, ast.Constant) and bool(v.value) for v in values))


def _given_sampler(context: Context, node: ast.Call) -> Change:
    """The change of a loader to one that draws every N-th batch."""
    names = context.names
    dataset, size, workers = _arguments(context, node)
    assert dataset is not None
    name, edits, needs = context.source(dataset), list[Edit](), ["batches_of_rank"]
    if not isinstance(dataset, (ast.Name, ast.Attribute)):
        fresh = FreshName(("val_dataset", "test_dataset", "eval_dataset"), node)
        name = str(fresh)
        line, needed = download.first_on_node(context, dataset, f"{name} = {{0}}")
        edits += [InsertBefore(context.tree.statement(node), line, (dataset,), (fresh,)), Replace(dataset, name)]
        needs += needed
    if samples_around_nodes(context, node):
        name, needs = f"{names['seed_nodes']}({name})", [*needs, "seed_nodes"]
    batch = context.source(size) if size is not None else "1"
    edits.append(SetArgument(node, "sampler", escaped(f"{names['batches_of_rank']}({name}, {batch})")))
    if workers is not None and not is_number(workers, 0):
        edits.append(Replace(workers, f"{names['workers_per_rank']}({{0}})", (workers,)))
        needs.append("workers_per_rank")
    why = "each rank evaluates every N-th of the batches, for N ranks: together they evaluate each batch once"
    whole = Alternative("eval", "replicate", ("DDP404", "DDP403", CODE))
    alternatives = (whole,) if context.options.eval == "auto" else ()
    return Change(CODE, why, context.tree.shown, node, tuple(edits), needs=tuple(needs), alternatives=alternatives)


def _arguments(context: Context, node: ast.Call) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    """What a loader draws from, its batch size and its workers, as they are written."""
    at = places(library.NODE_LOADER if samples_around_nodes(context, node) else "")
    dataset = seeds(context, node) if samples_around_nodes(context, node) else argument(node, 0, "dataset")
    return dataset, argument(node, at["batch_size"], "batch_size"), argument(node, at["num_workers"], "num_workers")


def _replicated_loops(context: Context) -> Iterator[Finding]:
    """Why loops that only evaluate run over all of the data on every rank."""
    run, asked = context.facts.after, context.options.eval
    if asked == "replicate":
        return
    trial = _trial(context, {o for o in _others(context) if _default_sampling(context, o)} | context.sharded_evaluation)
    effects = of_run(context.facts)
    for loop, over in _evaluations(context):
        if over & context.sharded_loaders or not any(map(run.is_loader, over)):
            continue
        why = obstacle(trial, effects, loop) or "its loader shuffles, or is used elsewhere, too"
        text = f"every rank runs this whole evaluation instead of a part, since {why}"
        yield context.manual(CODE, loop, text, level=Safety.REVIEW if asked == "shard" else Safety.NOTE)
        metric = next((x for x in live_out(trial, loop) if any(o.path.startswith(library.METRICS) for o in x.value.instances())), None)
        if metric is not None:
            why = f"`{metric.name}` adds up what all ranks saw, and here each saw all of the data"
            yield context.manual(CODE, metric.node, why, "make this metric with sync_on_compute=False", level=Safety.REVIEW)


def _drawn_alike(context: Context) -> Iterator[Change]:
    """Loops that every rank runs whole, of batches that are drawn, whose losses are divided by the counts of all ranks' batches."""
    why = "losses are divided by the counts of all ranks here: all evaluate the same batches"
    for loop, over in _evaluations(context):
        drawn = any(not isinstance(o.node, ast.Call) or not _leaves_sampling(context, o.node) for o in over)
        training = loop in context.facts.training_loops or over & (context.sharded_loaders | set(context.facts.feeding))
        if drawn and not training and asks_all_ranks(context, loop) and not draws.by_rank_zero(context, (loop,)):
            roots = {"torch", *draws.of(context, over).generators}
            yield draws.under_rank_zero(context, CODE, why, loop, roots)


def _trial(context: Context, sharded: Iterable[New]) -> Context:
    """The context of the same script with some loaders sharded."""
    return Context(context.facts, context.options, frozenset(sharded))


def _evaluations(context: Context) -> list[tuple[ast.For, frozenset[New]]]:
    """The loops that draw batches, other than those through a dict of results, and what makes these batches."""
    run = context.facts.after
    loops = [(loop, run.value(loop).batches()) for loop in context.tree.of(ast.For)]
    return [(loop, over) for loop, over in loops if over and not _iterates_results(run, loop)]


def _others(context: Context) -> set[New]:
    """The loaders made in the entry that do not train."""
    run = context.facts.after
    trained = context.facts.whole_loaders.union(context.facts.loaders)
    instances = {o for values in run.trace.values.values() for o in values.instances()}
    return {o for o in instances if o not in trained and run.is_loader(o) and context.facts.is_edited(o.node)}


def _loops(context: Context) -> Iterator[Change]:
    """Before a loop that evaluates sharded batches the model's buffers are broadcast; after it, the number of batches is summed."""
    tree, names, given = context.tree, context.names, set[tuple[ast.For, str]]()
    for loop in tree.of(ast.For):
        batches = context.facts.after.value(loop).batches()
        loaders = batches & context.sharded_evaluation
        trained = frozenset() if loop in context.facts.training_loops else batches.intersection(context.facts.loaders)
        if (all(_is_sharded(context, o) for o in loaders) and all(sharded(context, o) for o in trained)) or _is_of_a_step(context, loop):
            continue
        for model in normalised_models(context, loop) or ():
            why = "batch norm statistics differ between ranks after a step: all ranks evaluate with those of rank 0"
            text = f"for buffer in {model}.buffers():  # batch norm's statistics\n    {names['dist']}.broadcast(buffer, 0)"
            test = test_of_model(context, loop, model)
            text = f"if {test}:\n{textwrap.indent(text, '    ')}" if test else text
            place = _first_to_run(context, model, loop)
            if (place, model) in given:
                continue
            given.add((place, model))
            yield Change(CODE, why, tree.shown, place, (InsertBefore(place, text),), (f"import torch.distributed as {names['dist']}",))
        lengths = list(_lengths(context, loop, loaders))
        if lengths:
            first = min((tree.statement(n) for n in lengths), key=lambda s: s.lineno)
            name = FreshName(("num_batches", "batches_of_all", "total_batches"), loop)
            line = f"{name} = {names['sum_over_ranks']}({context.source(lengths[0])})"
            why = "len(loader) counts one rank's batches: the average is over the batches of all ranks"
            edits: tuple[Edit, ...] = (InsertAfter(loop, line, (name,)), *(Replace(n, str(name)) for n in lengths))
            yield Change(CODE, why, tree.shown, first, edits, needs=("sum_over_ranks",))


def _is_of_a_step(context: Context, loop: ast.For) -> bool:
    """Whether a loop runs a model on parts of a batch that is trained on."""
    within, training = inside(loop), context.facts.training_loops
    trained = {node for model in context.facts.models for node in model.forwards}
    return any(up in training for up in context.tree.ancestors(loop)) and not trained.isdisjoint(within)


def _first_to_run(context: Context, model: str, loop: ast.For) -> ast.For:
    """The first loop of a block that runs a model as it is in `loop`: one that all ranks run whole, as for a memory bank, comes before."""
    tree, first = context.tree, loop
    before = tree.block(loop)[: tree.block(loop).index(loop)]
    trained = {s for n in context.backwards if tree.placed(n) for s in tree.path(n)}
    for statement in reversed(before):
        if statement in trained:
            break
        if isinstance(statement, ast.For) and context.facts.after.value(statement).batches():
            first = statement if model in (normalised_models(context, statement) or ()) else first
    return first


def sharded_loaders(context: Context) -> frozenset[New]:
    """The loaders of evaluation that are sharded over the ranks: by the script, or by this rule, with all that share a loop with them."""
    others = _others(context)
    already = {o for o in others if _is_sharded(context, o)}
    if context.options.eval == "replicate":
        return frozenset(already)
    candidates = _candidates(context, others - already, already.union(context.facts.loaders))
    loops = {loop: over for loop, over in _evaluations(context) if over & others}
    trial, effects = _trial(context, candidates | already), of_run(context.facts)
    alone = [n for n, over in loops.items() if over <= candidates | already and not context.holds_whole_loader(n.iter)]
    free = {n for n in alone if not obstacle(trial, effects, n)}
    candidates = {o for o in candidates if any(o in over for over in loops.values()) and _seen(context, o)}
    while stuck := {o for n, over in loops.items() if n not in free or not over <= candidates | already for o in over} & candidates:
        candidates -= stuck
    return frozenset(candidates | already)


def _candidates(context: Context, loaders: set[New], others: set[New]) -> set[New]:
    """Those of some loaders that draw in order, and whose call makes no others."""
    plain = {o for o in loaders if _default_sampling(context, o)}
    mixed = {o.node for o in others | loaders - plain}
    return {o for o in plain if o.node not in mixed}


def _iterates_results(run: Run, loop: ast.For) -> bool:
    """Whether a loop goes through a dict of results."""
    over = loop.iter
    named = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in ("items", "values", "keys")
    instances = run.value(over.func.value).instances() if named else []  # type: ignore[attr-defined]
    return any(o.path == "dict" for o in instances) and not run.feeds(run.value(over))


def _is_sharded(context: Context, loader: New) -> bool:
    """Whether a loader that does not train has a sampler made for this rank."""
    return bool(context.facts.after.attribute(loader, "sampler").of_kind("rank"))


def _default_sampling(context: Context, loader: New) -> bool:
    """Whether a loader is made by a plain call: in order, whole, with default sampling, over data with a length."""
    node, run = loader.node, context.facts.after
    made = run.value(node.func).paths() & library.LOADERS - {library.IMAGE_LOADER} if isinstance(node, ast.Call) else ()
    if not isinstance(node, ast.Call) or not made or not _leaves_sampling(context, node):
        return False
    dataset, size, _ = _arguments(context, node)
    if dataset is None or is_none(size) or (size is not None and any(isinstance(n, ast.Call) for n in walk(size))):
        return False
    statement = context.tree.statement(node)
    if not isinstance(dataset, (ast.Name, ast.Attribute)) and not (isinstance(statement, ast.Assign) and statement.value is node):
        return False
    iterable = any(ITERABLE in run.interpreter.library_bases(o.cls) for o in run.value(dataset).instances() if o.cls is not None)
    return not iterable and not any(isinstance(up, (ast.DictComp, ast.ListComp, ast.Lambda)) for up in context.tree.ancestors(node))


def _leaves_sampling(context: Context, node: ast.Call) -> bool:
    """Whether the arguments of a loader can all be seen, and leave it to draw every sample in order."""
    placed = () if samples_around_nodes(context, node) else node.args
    arguments = dict(zip(POSITIONS, placed, strict=False)) | {str(k.arg): k.value for k in node.keywords}
    hidden = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    if hidden or len(node.args) > 3 or {"sampler", "batch_sampler"} & arguments.keys():
        return False
    switches = [arguments[name] for name in ("shuffle", "drop_last") if name in arguments]
    return all(isinstance(s, ast.Constant) and s.value is False for s in switches)


def _seen(context: Context, loader: New) -> bool:
    """Whether every use of a loader is a loop, a length, or handing it on within the entry."""
    run, trees = context.facts.after, context.facts.trees.values()
    calls = (c for c in run.trace.calls if any(loader in v.objs for v in (*c.args, *c.keywords.values())))
    reads = (n for tree in trees for n in tree.of(ast.Attribute) if loader in run.value(n.value).objs)
    comprehended = any(loader in run.value(g.iter).objs for tree in trees for g in tree.of(ast.comprehension))
    return not comprehended and all(_may_take(context, c, loader) for c in calls) and all(_reads_size(context, n) for n in reads)


def _may_take(context: Context, call: Call, loader: New) -> bool:
    """Whether a call of the entry does nothing with a loader that it is passed but measure it, go through it or hand it on."""
    paths = call.func.paths()
    if not call.func.objs or not paths <= _HARMLESS or not context.facts.is_edited(call.node):
        return False
    return "len" not in paths or _divides(context, call.node, loader)


def _reads_size(context: Context, node: ast.Attribute) -> bool:
    """Whether an attribute of a loader is read for its batch size, or for the length of its data set."""
    up = context.facts.tree_of(node).parent[node]
    measured = isinstance(up, ast.Call) and "len" in context.facts.after.value(up.func).paths()
    return node.attr == "batch_size" or (node.attr == "dataset" and measured)


def _divides(context: Context, node: ast.Call, loader: New) -> bool:
    """Whether `len(loader)` is read after the loop over it, in the same function; or only to show a bar."""
    tree, run = context.facts.tree_of(node), context.facts.after
    up = tree.parent.get(node)
    if isinstance(up, ast.keyword) and up.arg == "total":
        return True
    if context.options.eval == "shard" and context.facts.is_edited(node) and only_shown(context, tree, node):
        return True
    loops = [n for n in tree.of(ast.For) if loader in run.value(n).batches()]
    return len(loops) == 1 and _past(tree, node, loops[0])


def _past(tree: Tree, node: ast.Call, loop: ast.For) -> bool:
    """Whether a place comes after a loop in its own function, on every way."""
    if tree.function(node) is not tree.function(loop) or not tree.after(node, loop):
        return False
    around = [up for up in tree.path(loop) if up is not loop and isinstance(up, (ast.If, ast.For, ast.While, ast.Try))]
    return all(up in set(tree.ancestors(node)) for up in around)


def _lengths(context: Context, loop: ast.For, loaders: frozenset[New]) -> Iterator[ast.Call]:
    """The reads of the number of a sharded loader's batches, after its loop, but for those that the script combines over the ranks."""
    run = context.facts.after
    for node in context.tree.of(ast.Call):
        instances = run.value(node.args[0]).instances() if node.args and "len" in run.value(node.func).paths() else frozenset()
        if instances and instances <= loaders and _past(context.tree, node, loop) and combining(context, node) is None:
            yield node
