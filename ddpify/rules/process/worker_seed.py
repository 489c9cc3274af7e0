"""Let the loader workers of all ranks draw different numbers.

What it does: a `worker_init_fn` that seeds a generator with numbers that are alike on all ranks adds the rank; so do the seed of a
    `generator` that a training loader takes its workers' seeds from, and that of a generator which a data set keeps for its samples.
Why: torch seeds each worker by a number that every rank draws for itself; a seed of the script's own undoes that, and all ranks augment
    their samples in the same way.
Safety: safe; rank 0's workers draw what they drew.
References: https://docs.pytorch.org/docs/stable/notes/randomness.html#dataloader
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import Replace
from ddpify.facts.library.paths import DATALOADER
from ddpify.facts.model import Call, Class, Func, New, Obj
from ddpify.facts.tree import Tree, calls_in, last_name, names_read, names_stored, walk
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument
from ddpify.rules.data import draws

CODE = "DDP104"
TITLE = "seed the loader workers of each rank"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "workers seeded by torch's own number",
        "def seed_worker(worker_id):\n"
        "    np.random.seed(torch.initial_seed() % 2**32)\n"
        "\n"
        "\n"
        "test_loader = DataLoader(test_set, num_workers=2, worker_init_fn=seed_worker)\n",
        frame="end",
    ),
    Example(
        "workers of a loader that is only evaluated",
        "test_loader = DataLoader(test_set, num_workers=2, worker_init_fn=lambda i: random.seed(i))\n",
        frame="end",
    ),
    Example(
        "workers seeded alike on all ranks",
        "def seed_worker(worker_id):\n"
        "    np.random.seed(7 + worker_id)\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, 32, num_workers=2, worker_init_fn=seed_worker)\n",
        "def seed_worker(worker_id):\n"
        "    np.random.seed(7 + worker_id + 1000 * rank)\n"
        "\n"
        "\n"
        "loader = DataLoader(\n"
        "    train_set,\n"
        "    per_rank(32),\n"
        "    num_workers=workers_per_rank(2),\n"
        "    worker_init_fn=seed_worker,\n"
        "    sampler=DistributedSampler(train_set, shuffle=False),\n"
        ")\n",
        frame="data",
    ),
)  # fmt: skip

_SEEDS = frozenset(("numpy.random.seed", "random.seed", "torch.manual_seed", "torch.random.manual_seed"))
_OWN = frozenset(("initial_seed", "get_worker_info", "get_state", "get_rank", "default_rng", "randint"))
_RANK = frozenset(("get_rank", "rank_of_process"))
_PRIVATE = frozenset(("numpy.random.RandomState", "numpy.random.default_rng", "random.Random"))
_SAMPLES = frozenset(("__getitem__", "__getitems__", "__call__", "forward"))
_SAME_SAMPLES = (
    "all ranks draw the same numbers from this generator for their samples",
    "add 1000 * dist.get_rank() to its seed, where nothing that must be alike on all ranks is drawn from it",
)
_SAME_ROWS = (
    "all ranks draw the same numbers from this generator, each for its own rows of the batch",
    "add dist.get_rank() to its seed, where nothing that must be alike on all ranks is drawn from it",
)
_WHY = "the loader workers of each rank are seeded differently, so that their augmentation differs"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Add the rank to the seeds of a training loader's workers."""
    run = context.facts.after
    seen: set[ast.AST] = set()
    for loader in context.facts.loaders:
        for obj in run.attribute(loader, "worker_init_fn").objs:
            if isinstance(obj, Func) and obj.node not in seen:
                seen.add(obj.node)
                yield from _function(context, obj)
        workers = argument(loader.node, 5, "num_workers") if isinstance(loader.node, ast.Call) else None
        if workers is not None and not (isinstance(workers, ast.Constant) and workers.value == 0):
            yield from _generator(context, loader, seen)
    yield from _by_number(context, seen)
    yield from _of_samples(context, seen)
    yield from _of_rows(context)


def _function(context: Context, func: Func) -> Iterator[Change | Finding]:
    """The seeds that a `worker_init_fn` sets."""
    calls = calls_in(func.node)
    if any(last_name(c.func) in _OWN for c in calls) and not _reads_number(context, func.file, func.node):
        return
    for call in calls:
        seed = call.args[0] if context.library_path(func.file, call.func) in _SEEDS and call.args else None
        if seed is not None and not _has_rank(context, func.file, func.node, seed):
            yield _added(context, seed, "1000 * {rank}")


def _reads_number(context: Context, file: str, function: ast.AST) -> bool:
    """Whether all that a function asks of torch about its worker is what number it has, which workers of all ranks have alike."""
    asked = {n.value for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and n.attr != "id"}
    own = [c for c in calls_in(function) if last_name(c.func) in _OWN]
    return all(last_name(c.func) == "get_worker_info" for c in own) and not any(_is_worker(context, file, function, n) for n in asked)


def _is_worker(context: Context, file: str, function: ast.AST, node: ast.expr) -> bool:
    """Whether an expression of a function is what torch tells of the worker that runs it."""
    if isinstance(node, ast.Call):
        return context.library_path(file, node.func) == "torch.utils.data.get_worker_info"
    if not isinstance(node, ast.Name):
        return False
    given = [a.value for a in walk(function) if isinstance(a, (ast.Assign, ast.NamedExpr)) and node.id in {n.id for n in names_stored(a)}]
    return bool(given) and all(isinstance(v, ast.Call) and _is_worker(context, file, function, v) for v in given)


def _by_number(context: Context, seen: set[ast.AST]) -> Iterator[Change | Finding]:
    """The seeds that training data, or their transforms, set by the number of the worker that makes a sample."""
    for file, function in _sample_functions(context):
        for call in calls_in(function):
            seed = call.args[0] if call.args else None
            if seed is None or call in seen or context.library_path(file, call.func) not in _SEEDS:
                continue
            numbers = [n for n in walk(seed) if isinstance(n, ast.Attribute) and n.attr == "id"]
            if any(_is_worker(context, file, function, n.value) for n in numbers) and not _has_rank(context, file, function, seed):
                seen.add(call)
                yield _added(context, seed, "1000 * {rank}")


def _sample_functions(context: Context) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions that make the samples of training data, each with its file."""
    run = context.facts.after
    loaders = {o for v in run.trace.values.values() for o in v.instances() if run.interpreter.is_a(o, DATALOADER)}
    evaluated = _parts_of_data(context, loaders - set(context.facts.loaders))  # ranks may all need the same of these
    owners = _classes(_parts_of_data(context, context.facts.loaders)) - _classes(evaluated)
    for file, tree in context.facts.trees.items():
        functions = set(tree.of(ast.FunctionDef))
        roots = {f for f in functions if f.name in _SAMPLES and tree.parent[f] in owners}
        yield from ((file, f) for f in tree.in_order(_reached(roots, functions)))


def _has_rank(context: Context, file: str, function: ast.AST, seed: ast.expr) -> bool:
    """Whether a seed is computed from the rank, in a function that only workers may run: from a name of the module that is the rank."""
    own = {n.id for n in names_stored(function)} | {n.arg for n in walk(function) if isinstance(n, ast.arg)}
    names = {n.id for n in names_read(function)} - own
    run = context.facts.after
    asked = any(last_name(c.func) in _RANK for c in calls_in(seed)) or context.asks_for_rank(seed)
    return asked or any(run.attribute(file, name).of_kind("rank") for name in names)  # type: ignore[arg-type]


def _generator(context: Context, loader: New, seen: set[ast.AST]) -> Iterator[Change | Finding]:
    """The seed of a generator that only gives the workers of training loaders theirs."""
    run = context.facts.after
    mine = run.attribute(loader, "generator").instances()
    if not mine:
        return
    trained = {o.node for o in context.facts.loaders}
    for call in run.trace.calls:
        used = call.keywords.get("generator")
        if used is not None and used.instances() & mine and call.node not in trained and not _draws_no_order(context, call):
            return  # what it draws there must be the same on all ranks
    for call in run.trace.calls:
        if call.method == "manual_seed" and call.receiver.instances() & mine and call.node.args and call.node not in seen:
            seen.add(call.node)
            if not any(v.of_kind("rank") for v in call.args):
                yield _added(context, call.node.args[0], "{rank}")


def _draws_no_order(context: Context, call: Call) -> bool:
    """Whether a call makes a loader that goes through its data as they stand: its generator seeds its workers, and nothing more."""
    made = call.result.instances()
    return bool(made) and all(context.facts.after.interpreter.is_a(o, DATALOADER) and context.facts.after.keeps_order(o) for o in made)


def _of_samples(context: Context, seen: set[ast.AST]) -> Iterator[Change | Finding]:
    """The seeds of generators that training data, or their transforms, keep for the samples."""
    run = context.facts.after
    parts = _parts_of_data(context, context.facts.loaders)
    owners = _classes(parts)
    elsewhere = _classes({o for v in run.trace.values.values() for o in v.instances()} - parts)
    for call in run.trace.calls:
        seed = draws.seed_of(call)
        apart = any(v.of_kind("rank") or context.differs(v) for v in call.args)
        if not call.func.paths() & _PRIVATE or seed is None or apart or call.node in seen:
            continue
        drawing, alone = _drawn_in(context.facts.tree_of(call.node), call.node, owners)
        if drawing:
            seen.add(call.node)
            plain = isinstance(seed, ast.Constant) and type(seed.value) is int
            mine = alone and plain and elsewhere.isdisjoint(drawing) and context.facts.is_edited(seed)
            yield _added(context, seed, "1000 * {rank}") if mine else context.manual(CODE, call.node, *_SAME_SAMPLES)


def _of_rows(context: Context) -> Iterator[Finding]:
    """Generators that draw a number for each row of a batch: each rank has other rows, and would give them the same numbers."""
    run, training, found = context.facts.after, context.facts.training_loops, set[ast.AST]()
    for call in run.trace.calls:
        if "generator" not in call.keywords or call.node in found or "torch.randperm" in call.func.paths():
            continue
        seeded = [c for o in call.keywords["generator"].instances() for c in run.calls_named("manual_seed") if o in c.receiver.objs]
        apart = any(v.of_kind("rank") or context.differs(v) for c in seeded for v in c.args)
        sizes = (run.value(n) for a in call.node.args for n in walk(a) if isinstance(n, (ast.Name, ast.Attribute)))
        if not apart and any(loop.node in training for loop in call.loops) and any(map(context.from_sharded_data, sizes)):
            found.add(call.node)
            yield context.manual(CODE, call.node, *_SAME_ROWS)


def _parts_of_data(context: Context, loaders: Iterable[New]) -> set[New]:
    """The data of loaders, and the objects that they hold."""
    run = context.facts.after
    found: set[New] = set()
    todo = [o for loader in loaders for o in run.attribute(loader, "dataset").instances()]
    while todo:
        obj = todo.pop()
        if obj not in found:
            found.add(obj)
            todo += [o for value in run.of(obj).values() for o in value.instances()]
    return found


def _classes(objs: set[New]) -> set[ast.ClassDef]:
    """The classes of objects, with those that they derive from."""
    found: set[Class] = set()
    todo: list[Obj] = [o.cls for o in objs if o.cls is not None]
    while todo:
        cls = todo.pop()
        if isinstance(cls, Class) and cls not in found:
            found.add(cls)
            todo += [o for base in cls.bases for o in base.objs]
    return {cls.node for cls in found}


def _drawn_in(tree: Tree, made: ast.AST, owners: set[ast.ClassDef]) -> tuple[set[ast.AST], bool]:
    """The classes of `owners` that make samples with a generator, and whether nothing but that reads it."""
    statement = tree.parent.get(made)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if isinstance(target, ast.Attribute):
        reads: list[ast.AST] = [n for n in tree.of(ast.Attribute) if n.attr == target.attr and isinstance(n.ctx, ast.Load)]
    elif isinstance(target, ast.Name) and isinstance(tree.function(target), ast.Module):
        reads = [n for n in tree.of(ast.Name) if n.id == target.id and isinstance(n.ctx, ast.Load)]
    else:
        return set(), False
    functions = set(tree.of(ast.FunctionDef))
    roots = {f: tree.parent[f] for f in functions if f.name in _SAMPLES and tree.parent[f] in owners}
    drawing, samples = {tree.function(n) for n in reads}, _reached(set(roots), functions)
    named = {last_name(n) for f in functions - samples for n in walk(f) if isinstance(n, (ast.Name, ast.Attribute))}
    alone = drawing <= samples and not any(f.name in named for f in samples - roots.keys())
    return {owner for root, owner in roots.items() if _reached({root}, functions) & drawing}, alone


def _reached(roots: set[ast.FunctionDef], functions: set[ast.FunctionDef]) -> set[ast.FunctionDef]:
    """The functions of a file that some of them call, with these."""
    found, todo = set(roots), list(roots)
    while todo:
        called = {last_name(call.func) for call in calls_in(todo.pop())}
        new = {f for f in functions if f.name in called} - found
        found |= new
        todo += new
    return found


def _added(context: Context, seed: ast.expr, more: str) -> Change | Finding:
    if not context.facts.is_edited(seed):
        fix = f"{ast.unparse(seed)} + {more.format(rank='dist.get_rank()')}"
        return context.manual(CODE, seed, "the loader workers of all ranks have the same seeds, and would draw the same augmentation", fix)
    more = more.format(rank=context.names["rank"])
    zero = isinstance(seed, ast.Constant) and seed.value == 0
    edit = Replace(seed, more) if zero else Replace(seed, f"{{0}} + {more}", (seed,))
    return Change(CODE, _WHY, context.tree.shown, seed, (edit,))
