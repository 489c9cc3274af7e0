"""Shard the evaluation's batches over the ranks.

What it does: a loader that only evaluates, in loops that do nothing but add up or collect, gives each rank every N-th of its batches:
    whole batches, of the size they had, so that even a mean of batch means stays what it was. What the loops leave is then summed or
    gathered over the ranks (DDP404). With `--eval replicate`, and where a loop does anything else, every rank evaluates all batches.
Why: DistributedSampler repeats samples until all ranks have equally many, and counts them twice; evaluating on rank 0 alone leaves the
    other ranks waiting. Ranks that evaluate with batch norm first take rank 0's statistics, which differ while training goes on.
Safety: safe where every use of the loader and of what the loop builds up was seen; else replicated, with a NOTE that says why.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Sampler
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, FreshName, InsertAfter, InsertBefore, Replace, SetArgument
from ddpify.facts import library
from ddpify.facts.effects import of_run
from ddpify.facts.model import New
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data.evaluation_loops import normalised_models, obstacle
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.live_out import live_out

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
_HARMLESS = frozenset(("enumerate", "len", "tqdm.tqdm", "print", "isinstance", "id"))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Give the loaders that are sharded their sampler, and say why others are not."""
    tree, names = context.tree, context.names
    done: set[ast.AST] = set()
    for loader in sorted(context.sharded_evaluation, key=lambda o: getattr(o.node, "lineno", 0)):
        node = loader.node
        if node in done or _is_sharded(context, loader) or not isinstance(node, ast.Call):
            continue
        done.add(node)
        dataset, size = argument(node, 0, "dataset"), argument(node, 1, "batch_size")
        assert dataset is not None
        name, edits = context.source(dataset), list[Edit]()
        if not isinstance(dataset, (ast.Name, ast.Attribute)):
            fresh = FreshName(("val_dataset", "test_dataset", "eval_dataset"), node)
            name = str(fresh)
            edits += [InsertBefore(tree.statement(node), f"{name} = {{0}}", (dataset,), (fresh,)), Replace(dataset, name)]
        batch = context.source(size) if size is not None else "1"
        sampler = f"{names['batches_of_rank']}({name}, {batch})".replace("{", "{{").replace("}", "}}")
        edits.append(SetArgument(node, "sampler", sampler))
        workers = argument(node, 5, "num_workers")
        needs = ["batches_of_rank"]
        if workers is not None and not (isinstance(workers, ast.Constant) and workers.value == 0):
            edits.append(Replace(workers, f"{names['workers_per_rank']}({{0}})", (workers,)))
            needs.append("workers_per_rank")
        yield Change(CODE, "each rank evaluates every N-th batch, and none twice", tree.shown, node, tuple(edits), needs=tuple(needs))
    yield from _loops(context)
    yield from _replicated_loops(context)


def _replicated_loops(context: Context) -> Iterator[Finding]:
    """Why loops that only evaluate run over all of the data on every rank."""
    run = context.facts.after
    if context.options.eval == "replicate":
        return
    trial = Context(
        context.facts,
        context.options,
        frozenset(o for o in _others(context) if _default_sampling(context, o)) | context.sharded_evaluation,
    )
    effects = of_run(context.facts)
    for loop in context.tree.nodes():
        over = run.value(loop).batches() if isinstance(loop, ast.For) else frozenset()
        if (
            isinstance(loop, ast.For)
            and over
            and not over & context.sharded_loaders
            and any(map(run.is_loader, over))
            and not _iterates_results(run, loop)
        ):
            why = obstacle(trial, effects, loop) or "its loader draws its order, or is used in another way, too"
            asked = context.options.eval == "shard"
            text = f"every rank evaluates all of this, not a share, since {why}"
            yield context.manual(CODE, loop, text, level=Safety.REVIEW if asked else Safety.NOTE)
            metric = next((x for x in live_out(trial, loop) if any(o.path.startswith("torchmetrics.") for o in x.value.instances())), None)
            if metric is not None:
                yield context.manual(
                    CODE,
                    metric.node,
                    f"`{metric.name}` adds up what all ranks saw, and here each saw all of the data",
                    "make this metric with sync_on_compute=False",
                    level=Safety.REVIEW,
                )


def _others(context: Context) -> set[New]:
    """The loaders made in the entry that do not train."""
    run = context.facts.after
    trained = set(context.facts.loaders)
    instances = {o for values in run.trace.values.values() for o in values.instances()}
    return {o for o in instances if o not in trained and run.is_loader(o) and context.facts.is_edited(o.node)}


def _loops(context: Context) -> Iterator[Change]:
    """Before a loop over sharded batches the model's buffers are broadcast; after it, the number of batches is summed."""
    run, tree, names = context.facts.after, context.tree, context.names
    for loop in tree.nodes():
        if not isinstance(loop, ast.For):
            continue
        loaders = {o for o in run.value(loop).batches() if o in context.sharded_evaluation}
        if not loaders or all(_is_sharded(context, o) for o in loaders):
            continue
        for model in normalised_models(context, loop) or ():
            yield Change(
                CODE,
                "batch norm statistics differ between ranks after a step: all evaluate rank 0's",
                tree.shown,
                loop,
                (
                    InsertBefore(
                        loop, f"for buffer in {model}.buffers():  # batch norm's statistics\n    {names['dist']}.broadcast(buffer, 0)"
                    ),
                ),
                (f"import torch.distributed as {names['dist']}",),
            )
        lengths = list(_lengths(context, loop, loaders))
        if lengths:
            first = min((tree.statement(n) for n in lengths), key=lambda s: s.lineno)
            name = FreshName(("num_batches", "batches_of_all", "total_batches"), loop)
            line = f"{name} = {names['sum_over_ranks']}({context.source(lengths[0])})"
            yield Change(
                CODE,
                "a rank's loader has its own batches only; the average is over those of all",
                tree.shown,
                first,
                (InsertAfter(loop, line, (name,)), *(Replace(n, str(name)) for n in lengths)),
                needs=("sum_over_ranks",),
            )


def sharded_loaders(context: Context) -> frozenset[New]:
    """The loaders of evaluation that are sharded over the ranks: by the script, or by this rule, with all that share a loop with them."""
    run = context.facts.after
    trained = set(context.facts.loaders)
    others = _others(context)
    already = {o for o in others if _is_sharded(context, o)}
    if context.options.eval == "replicate":
        return frozenset(already)
    candidates = {o for o in others - already if _default_sampling(context, o)}
    nodes = {n for n in (o.node for o in others | trained) if any(o.node is n and o not in candidates for o in others | trained)}
    candidates = {o for o in candidates if o.node not in nodes}
    through = [n for n in context.tree.nodes() if isinstance(n, ast.For) and not _iterates_results(run, n)]
    loops = {n: over for n in through if (over := run.value(n).batches()) & others}
    trial = Context(context.facts, context.options, frozenset(candidates | already))
    effects = of_run(context.facts)
    while candidates:
        fine = {n for n, over in loops.items() if over <= candidates | already and not obstacle(trial, effects, n)}
        remaining = {
            o
            for o in candidates
            if all(n in fine for n, over in loops.items() if o in over) and any(o in over for over in loops.values()) and _seen(context, o)
        }
        if remaining == candidates:
            break
        candidates = remaining
    return frozenset(candidates | already)


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
    if not isinstance(node, ast.Call) or library.DATALOADER not in run.value(node.func).paths():
        return False
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords) or len(node.args) > 3:
        return False
    if any(argument(node, p, k) is not None for p, k in ((3, "sampler"), (4, "batch_sampler"))):
        return False
    for position, keyword in ((2, "shuffle"), (8, "drop_last")):
        given = argument(node, position, keyword)
        if given is not None and not (isinstance(given, ast.Constant) and given.value is False):
            return False
    dataset, size = argument(node, 0, "dataset"), argument(node, 1, "batch_size")
    if dataset is None or (isinstance(size, ast.Constant) and size.value is None):
        return False
    statement = context.tree.statement(node)
    if not isinstance(dataset, (ast.Name, ast.Attribute)) and not (isinstance(statement, ast.Assign) and statement.value is node):
        return False
    if any(isinstance(n, ast.Call) for n in ast.walk(size)) if size is not None else False:
        return False
    comprehended = any(isinstance(up, (ast.DictComp, ast.ListComp, ast.Lambda)) for up in context.tree.ancestors(node))
    iterable = any(
        "torch.utils.data.IterableDataset" in run.interpreter.library_bases(o.cls)
        for o in run.value(dataset).instances()
        if o.cls is not None
    )
    return not comprehended and not iterable


def _seen(context: Context, loader: New) -> bool:
    """Whether every use of a loader is a loop, a length, or handing it on within the entry."""
    run = context.facts.after
    for call in run.trace.calls:
        paths = call.func.paths()
        takes = any(loader in v.objs for v in (*call.args, *call.keywords.values()))
        if takes and (not call.func.objs or (paths and not paths <= _HARMLESS)):
            return False
        if takes and not context.facts.is_edited(call.node):
            return False
        if takes and "len" in paths and not _divides(context, call.node, loader):
            return False
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Attribute, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp):
            if isinstance(node, ast.Attribute) and loader in run.value(node.value).objs:
                up = tree.parent[node]
                measured = isinstance(up, ast.Call) and "len" in run.value(up.func).paths()
                if not (node.attr == "dataset" and measured) and node.attr != "batch_size":
                    return False
            if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) and any(
                loader in run.value(g.iter).objs for g in node.generators
            ):
                return False
    return True


def _divides(context: Context, node: ast.Call, loader: New) -> bool:
    """Whether `len(loader)` is read after the loop over it, in the same function; or only to show a bar."""
    tree, run = context.facts.tree_of(node), context.facts.after
    up = tree.parent.get(node)
    if isinstance(up, ast.keyword) and up.arg == "total":
        return True
    if context.options.eval == "shard" and context.facts.is_edited(node):
        statements = [n for n in (tree.statement(node), *tree.ancestors(node)) if isinstance(n, ast.stmt)]
        if any(guards_of(context).only_outputs(s) for s in statements):
            return True
    loops = [n for n in tree.nodes() if isinstance(n, ast.For) and loader in run.value(n).batches()]
    return len(loops) == 1 and _past(tree, node, loops[0])


def _past(tree: Tree, node: ast.Call, loop: ast.For) -> bool:
    """Whether a place comes after a loop in its own function, on every way."""
    if tree.function(node) is not tree.function(loop) or not tree.after(node, loop):
        return False
    around = [up for up in tree.path(loop) if up is not loop and isinstance(up, (ast.If, ast.For, ast.While, ast.Try))]
    return all(up in set(tree.ancestors(node)) for up in around)


def _lengths(context: Context, loop: ast.For, loaders: set[New]) -> Iterator[ast.Call]:
    """The reads of the number of a sharded loader's batches, after its loop."""
    run = context.facts.after
    for node in context.tree.nodes():
        if not (isinstance(node, ast.Call) and node.args and "len" in run.value(node.func).paths()):
            continue
        instances = run.value(node.args[0]).instances()
        if instances and instances <= loaders and _past(context.tree, node, loop):
            yield node
