"""Give each rank its share of the training data, and keep the global batch.

What it does: the DataLoader of a training loop gets a DistributedSampler that shuffles as the loader did, a per-rank batch size and
    its share of the workers. Options passed as `**options` are turned into this rank's by one call. A sampler or batch sampler that the
    script gives it is drawn alike by all ranks, each of which takes its share: of the order, or of each batch. Of an iterable data set
    each rank takes every N-th sample. A loader that is only evaluated is another rule's (DDP304); where one call makes both
    kinds, it goes by the phase or parameter that tells them apart.
Why: without the sampler all ranks train on the same samples; with the batch size left, the global batch is N times the original's.
    `DistributedSampler` shuffles unless told not to, and must drop the tail itself where the loader drops it.
Safety: safe for map-style data with default batching; NOTE where a batch or the end of a stream may repeat samples. MANUAL for samplers
    that no seed makes the same on all ranks or that learn while training, for those that compose batches for a loss that compares samples,
    for iterable data sets that draw at random or that each worker reads whole, and for batches of one sample or made by the data set.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, FreshName, InsertBefore, NameArgument, Replace, SetArgument
from ddpify.facts import library
from ddpify.facts.collect import TrainingLoop
from ddpify.facts.model import NOTHING, Class, Func, Lit, New, Obj, Value, join
from ddpify.facts.tree import is_none, last_name, same, structure
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import batch_sampler, download, factory, loader_uses, sampler, stream
from ddpify.rules.data.call import JOINED, POSITIONS, RECIPE, LoaderCall, escaped

CODE = "DDP301"
TITLE = "shard the training data"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a loader that is only evaluated",
        "val_loader = DataLoader(test_set, batch_size=100, shuffle=True)\n"
        "for x, y in val_loader:\n"
        "    shape = x.shape\n",
        frame="end",
    ),
    Example(
        "a sampler of a loader that is evaluated",
        "order = torch.utils.data.SequentialSampler(test_set)\n"
        "val_loader = DataLoader(test_set, batch_size=100, sampler=order)\n"
        "for x, y in val_loader:\n"
        "    shape = x.shape\n",
        frame="end",
    ),
    Example(
        "a part of the data that no loader reads",
        "part = torch.utils.data.Subset(train_set, range(10))\n",
        frame="end",
    ),
    Example(
        "a loader that nothing reads",
        "spare = DataLoader(train_set, batch_size=32, shuffle=True)\n",
        frame="end",
    ),
    Example(
        "a sampler that no seed makes the same on all ranks, which is shown",
        "class Fresh(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        np.random.seed()\n"
        "        return iter(np.random.permutation(640))\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, batch_size=32, sampler=Fresh())\n",
        frame="data",
    ),
    Example(
        "a data set that draws what it yields, which is shown",
        "class Lines(torch.utils.data.IterableDataset):\n"
        "    def __iter__(self):\n"
        "        for _ in range(640):\n"
        "            yield torch.ones(8), random.randrange(2)\n"
        "\n"
        "\n"
        "loader = DataLoader(Lines(), batch_size=32)\n",
        frame="data",
    ),
    Example(
        "a data set that every worker reads whole, which is shown",
        "class Lines(torch.utils.data.IterableDataset):\n"
        "    def __iter__(self):\n"
        "        return iter([(torch.ones(8), 0)] * 640)\n"
        "\n"
        "\n"
        "loader = DataLoader(Lines(), batch_size=32, num_workers=4)\n",
        frame="data",
    ),
    Example(
        "a call that makes all loaders, of which nothing tells the one that trains, which is shown",
        "def make(dataset):\n"
        "    return DataLoader(dataset, batch_size=32)\n"
        "\n"
        "\n"
        "loader, val_loader = make(train_set), make(test_set)\n"
        "for x, y in val_loader:\n"
        "    shape = x.shape\n",
        frame="data",
    ),
    Example(
        "a sampler that knows its rank",
        "class Turns(torch.utils.data.Sampler):\n"
        "    def __init__(self):\n"
        "        self.epoch = 0\n"
        "\n"
        "    def set_epoch(self, epoch):\n"
        "        self.epoch = epoch\n"
        "\n"
        "    def __iter__(self):\n"
        "        return iter(range(RANK, 640, 2))\n"
        "\n"
        "\n"
        'RANK = int(os.environ.get("RANK", 0))\n'
        "loader = DataLoader(train_set, batch_size=16, sampler=Turns())\n",
        frame="data",
    ),
    Example(
        "a loader of batches that are made already, which is shown",
        "loader = DataLoader(train_set, batch_size=None)\n",
        frame="data",
    ),
    Example(
        "a loader that shuffles",
        "loader = DataLoader(train_set, batch_size=32, shuffle=True)\n",
        "loader = DataLoader(train_set, batch_size=per_rank(32), sampler=DistributedSampler(train_set))\n",
        frame="data",
    ),
    Example(
        "a loader that keeps the order and drops the last batch",
        "loader = DataLoader(train_set, 32, drop_last=True, num_workers=4)\n",
        "loader = DataLoader(\n"
        "    train_set,\n"
        "    per_rank(32),\n"
        "    drop_last=True,\n"
        "    num_workers=workers_per_rank(4),\n"
        "    sampler=DistributedSampler(train_set, shuffle=False, drop_last=True),\n"
        ")\n",
        frame="data",
    ),
    Example(
        "a sampler of torch's",
        "sampler = torch.utils.data.WeightedRandomSampler(torch.ones(640), 640)\n"
        "loader = DataLoader(train_set, batch_size=32, sampler=sampler)\n",
        "sampler = torch.utils.data.WeightedRandomSampler(torch.ones(640), 640)\n"
        "loader = DataLoader(train_set, batch_size=per_rank(32), sampler=RankSampler(sampler))\n",
        frame="data",
    ),
    Example(
        "a sampler of the script's own",
        "class Backwards(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        return iter(range(639, -1, -1))\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, batch_size=32, sampler=Backwards())\n",
        "class Backwards(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        return iter(range(639, -1, -1))\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, batch_size=per_rank(32), sampler=RankSampler(Backwards()))\n",
        frame="data",
    ),
    Example(
        "a batch sampler of torch's",
        "batches = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(train_set), 32, False)\n"
        "loader = DataLoader(train_set, batch_sampler=batches)\n",
        "batches = torch.utils.data.BatchSampler(RankSampler(torch.utils.data.RandomSampler(train_set)), per_rank(32), False)\n"
        "loader = DataLoader(train_set, batch_sampler=batches)\n",
        frame="data",
    ),
    Example(
        "a batch sampler of the script's own",
        "class Halves(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        return iter([range(320), range(320, 640)])\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, batch_sampler=Halves())\n",
        "class Halves(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        return iter([range(320), range(320, 640)])\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, batch_sampler=RankBatchSampler(Halves()))\n",
        frame="data",
    ),
    Example(
        "a data set that only yields",
        "class Lines(torch.utils.data.IterableDataset):\n"
        "    def __iter__(self):\n"
        "        return iter([(torch.ones(8), 0)] * 640)\n"
        "\n"
        "\n"
        "loader = DataLoader(Lines(), batch_size=32)\n",
        "class Lines(torch.utils.data.IterableDataset):\n"
        "    def __iter__(self):\n"
        "        return iter([(torch.ones(8), 0)] * 640)\n"
        "\n"
        "\n"
        "loader = DataLoader(ShareOfStream(Lines()), batch_size=per_rank(32))\n",
        frame="data",
    ),
    Example(
        "a batch for each rank, where that is asked for",
        "loader = DataLoader(train_set, batch_size=32, shuffle=True)\n",
        "# each rank loads batches of this size\n"
        "loader = DataLoader(train_set, batch_size=32, sampler=DistributedSampler(train_set))\n",
        frame="data",
        options=Options(batch_size="per-rank"),
    ),
    Example(
        "options in a dictionary",
        'options = {"batch_size": 32, "shuffle": True}\n'
        "loader = DataLoader(train_set, **options)\n",
        'options = {"batch_size": 32, "shuffle": True}\n'
        "loader = DataLoader(train_set, **sharded(train_set, options))\n",
        frame="data",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Shard every loader that feeds a training loop."""
    for items in context.once(_sharding).values():
        yield from items
    for loop in context.facts.loops:
        if loop.batch is not None and len({getattr(o, "node", None) for o in loop.loaders}) > 1 and _in_turn(context, loop):
            yield context.manual(
                CODE,
                loop.batch.node,
                "this loop runs over several loaders in turn: one that only evaluates would count the samples that its sampler repeats",
                "leave the loader that only evaluates without a sampler, and do not sum its numbers over the ranks",
                level=Safety.REVIEW,
            )
            break
    yield from loader_uses.findings(context)


def _sharding(context: Context) -> dict[ast.AST, tuple[Change | Finding | Proof, ...]]:
    """For each call that makes loaders which feed a training loop, what is done about it."""
    calls: dict[ast.AST, list[New]] = {}
    for loader in context.facts.loaders:
        calls.setdefault(_edited_call(context, loader), []).append(loader)
    return {node: tuple(_loader_changes(context, node, loaders)) for node, loaders in calls.items()}


def _edited_call(context: Context, loader: New) -> ast.AST:
    """The call that is edited for a loader: the one that makes it, or the one that its class hands its arguments on by."""
    run = context.facts.after.interpreter
    cls, node = loader.cls, loader.node
    while cls is not None:
        found = run.find(cls, "__init__")
        func = next((f for f in found.objs if isinstance(f, Func)), None) if found is not None else None
        if func is None or func.cls is None:
            return node
        inits = [n for n in ast.walk(func.node) if isinstance(n, ast.Call) and last_name(n.func) == "__init__"]
        plain = [n for n in inits if isinstance(n.func, ast.Attribute) and _is_super(n.func.value)]
        if len(inits) == 1 and plain and _hands_on(func.node, plain[0], node):
            return node
        if len(inits) != 1 or not plain:
            return func.node
        node = plain[0]
        above = [b for base in func.cls.bases for b in base.objs if isinstance(b, Class)]
        cls = next((b for b in above if run.find(b, "__init__") is not None), None)  # a class of the project's own, between it and torch's
    return node


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _hands_on(function: ast.AST, init: ast.Call, made: ast.AST) -> bool:
    """Whether a class hands its keyword arguments on as they are: then they are the loader's where it is made, too."""
    if not isinstance(function, ast.FunctionDef) or not isinstance(made, ast.Call) or function.args.kwarg is None:
        return False
    whole = not init.args and [(k.arg, structure(k.value)) for k in init.keywords] == [(None, structure(function.args.kwarg))]
    named = {k.arg for k in made.keywords}
    return whole and all(name in named for name, position in POSITIONS.items() if position < len(made.args))


def _loader_changes(context: Context, node: ast.AST, loaders: list[New]) -> Iterator[Change | Finding | Proof]:
    facts, run = context.facts, context.facts.after
    held = tuple(dict.fromkeys(Obligation("inputs", loader.node) for loader in loaders))
    if all(sharded(context, loader) for loader in loaders):
        for one in held:
            yield Proof(one, "its sampler is distributed")
        return
    others = [o for o in _others(context) if _edited_call(context, o) is node]
    problem = ""
    if not isinstance(node, ast.Call):
        problem = "the training loader is of a class of its own" if loaders[0].cls is not None else "this loader feeds training"
        node = loaders[0].node
    elif not facts.is_edited(node):
        problem = "the training loader is made in a module that is not this project's, and every rank would load all of it"
    elif loaders[0].cls is None and library.DATALOADER not in run.value(node.func).paths():
        problem = "the training loader is of a class of its own"
    elif any(_several(context, loader, node) and _evaluates(context, loader) for loader in loaders):
        problem = "this call makes the training loader and an evaluation loader"
    only = factory.condition(context, node, loaders, others) if isinstance(node, ast.Call) and others and not problem else ""
    if others and not only:
        problem = problem or "this call makes the training loader and an evaluation loader"
    joined = facts.is_edited(node) and not facts.in_main(node) and facts.project.is_shared(facts.tree_of(node).name)
    if problem or not isinstance(node, ast.Call):
        yield context.manual(CODE, node, problem, RECIPE, held)
    else:
        yield from _shard(LoaderCall(context, node, held, only, joined))


def _others(context: Context) -> list[New]:
    """The loaders that do not train."""
    run, trained = context.facts.after, set(context.facts.loaders)
    made = {o for c in run.trace.calls for o in c.result.made() if o.node is c.node and run.is_loader(o)} - trained
    return sorted(made & _read(context), key=lambda o: getattr(o.node, "lineno", 0))


def _read(context: Context) -> set[Obj]:
    """What is gone through, handed on, or kept by an object: not what a function makes and leaves."""
    run = context.facts.after
    out = {o for c in run.trace.calls for v in (c.receiver, *c.args, *c.keywords.values()) for o in v.objs}
    out |= {o for store in run.trace.stores for o in store.value.objs}
    out |= {o for (owner, _), held in run.memory.items() if not isinstance(owner, str) for o in held.objs}
    trees = context.facts.trees.values()
    through = [*(n.iter for t in trees for n in t.of(ast.For)), *(n.iter for t in trees for n in t.of(ast.comprehension))]
    return out | {o for node in through for o in run.value(node).objs}


def _several(context: Context, loader: New, node: ast.Call) -> bool:
    """Whether one object stands for loaders that are kept side by side: made in a comprehension, or put into a list or dict in a loop."""
    tree, run = context.tree, context.facts.after
    if len(run.held(loader, "dataset").made()) > 1:
        return True
    if any(isinstance(n, ast.Call) and run.value(n.func).paths() & {"map", "filter"} for n in loader.stack):
        return True
    for at in (node, *(n for n in loader.stack if isinstance(n, ast.Call) and n in tree.parent)):
        statement = tree.statement(at)
        kept = isinstance(statement, ast.Expr) or (
            isinstance(statement, ast.Assign) and any(isinstance(t, ast.Subscript) for t in statement.targets)
        )
        for up in tree.ancestors(at):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
            over = up.generators[0].iter if isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)) else None
            over = up.iter if isinstance(up, ast.For) and kept else over
            if over is not None and not any(part in loader.stack for part in getattr(over, "elts", ())):
                return True
    return False


def _evaluates(context: Context, loader: New) -> bool:
    """Whether a loop over a loader, or over something of the project's own that draws from it, does not train."""
    run, training = context.facts.after, context.facts.training_loops
    loops = {loop.node: loop for call in run.trace.calls for loop in call.loops if loop.node not in training}
    for node, loop in loops.items():
        if loader not in loop.element.of_kind("batch") | loop.element.batches():
            continue
        over = [g.iter for g in getattr(node, "generators", ())] or [getattr(node, "iter", None)]
        drawn = [o for n in over if n is not None for part in ast.walk(n) for o in run.value(part).made()]
        if over == [None] or any(o == loader or o.cls is not None for o in drawn):
            return True  # not over what is in a batch
    return False


def _in_turn(context: Context, loop: TrainingLoop) -> bool:
    """Whether one name of a loop may hold batches of several loaders, and only some are trained on."""
    if loop.batch is None or len(loop.batch.element.of_kind("batch") & set(context.facts.loaders)) < 2:
        return False
    inside = set(ast.walk(loop.batch.node))
    return any(test in inside for test, _ in loop.backward.tests)


def sampler_name(context: Context, loaders: frozenset[New]) -> str:
    """The class of the samplers that training loaders have after the conversion; empty where they differ."""
    names: set[str] = set()
    for loader in loaders:
        given = argument(loader.node, 3, "sampler") if isinstance(loader.node, ast.Call) else None
        if epoch_of(context, loader) != "sampler":
            return ""
        if sharded(context, loader):
            names |= {"DistributedSampler" if o.cls is None else o.cls.node.name for o in samplers(context, loader)}
        elif given is None or all(isinstance(o, Lit) for o in context.facts.after.value(given).objs):
            names.add("DistributedSampler")
        elif _maybe_none(context, given):
            return ""
        else:
            names.add(context.names[sampler.key(context, context.facts.after.value(given))])
    return names.pop() if len(names) == 1 else ""


def epoch_of(context: Context, loader: New) -> str:
    """Where a sharded loader's epoch is set: the attributes from the loader to its sampler; empty for a stream, which has none."""
    run = context.facts.after
    if stream.is_stream(context, run.held(loader, "dataset")):
        return ""
    batches = run.held(loader, "batch_sampler").made()
    if not batches:
        return "sampler"
    return "batch_sampler.sampler" if all(o.path == batch_sampler.TORCHS for o in batches) else "batch_sampler"


def samplers(context: Context, loader: New) -> frozenset[New]:
    """The samplers of a loader that give each rank its share."""
    run = context.facts.after
    given = run.held(loader, "sampler").made() | run.held(loader, "batch_sampler").made()
    given |= frozenset(o for b in given for o in run.held(b, "sampler").made() if b.path == batch_sampler.TORCHS)
    return frozenset(o for o in given if o.path == library.DISTRIBUTED_SAMPLER or _of_rank(context, o))


def sharded(context: Context, loader: New) -> bool:
    """Whether a loader gives each rank its share already."""
    data = context.facts.after.held(loader, "dataset").made()
    is_a = context.facts.after.interpreter.is_a
    return bool(samplers(context, loader)) or any(is_a(o, stream.ITERABLE) and _reads_rank(context, o) for o in data)


def refused(context: Context, loader: New) -> bool:
    """Whether a training loader is left as it is, with a finding."""
    items = (item for items in context.once(_sharding).values() for item in items)
    stuck = (item for item in items if isinstance(item, Finding) and item.level is Safety.MANUAL)
    return not sharded(context, loader) and any(o.about is loader.node for item in stuck for o in item.discharges)


def _of_rank(context: Context, given: New) -> bool:
    """Whether a sampler of the script's own class reads the rank."""
    own = given.cls is not None and context.facts.after.interpreter.find(given.cls, "set_epoch") is not None
    return own and _reads_rank(context, given)


def _reads_rank(context: Context, obj: New) -> bool:
    if obj.cls is None:
        return False
    if obj.cls.file != "__main__" and context.facts.project.is_ours(obj.cls.file):
        return True  # a conversion has added it, with functions that ask for the rank
    run, names = context.facts.after, {n.id for n in ast.walk(obj.cls.node) if isinstance(n, ast.Name)}
    read = [run.memory.get((obj.cls.file, name), NOTHING) for name in names]
    asking = [n for v in read for o in v.objs if isinstance(o, Func) for n in ast.walk(o.node) if isinstance(n, ast.Call)]
    return any(v.of_kind("rank") for v in read) or any("torch.distributed.get_rank" in run.value(n.func).paths() for n in asking)


def _shard(made: LoaderCall) -> Iterator[Change | Finding]:
    context, node = made.context, made.node
    if any(isinstance(a, ast.Starred) for a in node.args):
        yield made.refuse("the loader's arguments cannot be seen")
        return
    spread = next((k for k in node.keywords if k.arg is None), None)
    if (given := made.given("sampler")) is not None and spread is None:
        if _maybe_none(context, given) and not made.when:
            yield from _either(made, given)
        else:
            yield from sampler.shared_out(made, given)
        return
    if (given := made.given("batch_sampler")) is not None:
        yield from batch_sampler.shared_out(made, given)
        return
    dataset = made.argument("dataset")
    if dataset is None and (spread := _with_dataset(made)) is not None:
        yield from _options(made, spread, f'{ast.unparse(spread.value)}["dataset"]', [], [])
        return
    if dataset is None:
        yield made.refuse("the loader's data set cannot be seen")
        return
    if stream.is_stream(context, context.facts.after.value(dataset)):
        yield from stream.shared_out(made, dataset)
        return
    if made.when and spread is not None and _harmless(context, spread.value):
        spread = None
    if spread is None and (finding := made.unbatched()) is not None:
        yield finding
        return
    if any(isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) for up in context.tree.ancestors(node)) and not isinstance(
        dataset, (ast.Name, ast.Attribute, ast.Subscript)
    ):
        yield made.refuse("the data set has no name of its own here", f"assign it to a name first: {ast.unparse(dataset)}")
        return
    name, edits, needs = _named(made, dataset)
    if spread is not None:
        yield from _options(made, spread, name, edits, needs)
        return
    divided, more = made.divided()
    edits += [*_sampler_edits(made, name), *divided]
    wanted = (*needs, *more)
    yield Change(CODE, made.why, context.tree.shown, node, tuple(edits), made.imports, made.level, discharges=made.held, needs=wanted)


def _maybe_none(context: Context, given: ast.expr) -> bool:
    """Whether a sampler is made under a condition, and there may be none."""
    objs = context.facts.after.value(given).objs
    none = any(isinstance(o, Lit) and o.value is None for o in objs)
    return isinstance(given, (ast.Name, ast.Attribute)) and none and len(objs) > 1


def _either(made: LoaderCall, given: ast.expr) -> Iterator[Change | Finding]:
    """`shuffle=sampler is None, sampler=sampler`: the sampler is shared out where there is one, else the loader's own order."""
    context, dataset, shuffle = made.context, made.argument("dataset"), made.argument("shuffle")
    value = context.facts.after.value(given)
    held = Value(frozenset(o for o in value.objs if not isinstance(o, Lit)), value.origins)
    problem, fork, imports = sampler.shared(context, held, frozenset(n.about for n in made.held))
    finding = made.unbatched()
    plain = dataset is not None and not stream.is_stream(context, context.facts.after.value(dataset))
    if problem or finding is not None or dataset is None or not plain or any(k.arg is None for k in made.node.keywords):
        yield finding or made.refuse(problem or "the loader's arguments cannot be seen", at=given)
        return
    if len(made.node.args) > POSITIONS["shuffle"]:
        yield made.refuse("the loader's arguments cannot be seen")
        return
    name, edits, needs = _named(made, dataset)
    divided, more = made.divided()
    text = made.source(given)
    shuffles = shuffle is not None and (made.is_(shuffle, True) or _is_missing(shuffle, given))
    how = "" if shuffles else f", shuffle={made.source(shuffle)}" if shuffle is not None else ", shuffle=False"
    ours = f"{made.name('rank_sampler')}({text}{made.dropping()})"
    own = f"DistributedSampler({escaped(name)}{how}{made.dropping()})"
    edits += [SetArgument(made.node, "sampler", f"{ours} if {text} is not None else {own}", position=POSITIONS["sampler"]), *divided]
    edits += [DropArgument(made.node, "shuffle")] if shuffle is not None else []
    wanted = ("rank_sampler", *needs, *more, *fork)
    needed = (*made.imports, *imports)
    yield Change(CODE, made.why, context.tree.shown, made.node, tuple(edits), needed, made.level, discharges=made.held, needs=wanted)


def _is_missing(test: ast.expr, given: ast.expr) -> bool:
    """Whether a condition asks if there is no such thing: `x is None`, `not x`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return same(test.operand, given)
    none = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and is_none(test.comparators[0])
    return none and isinstance(test, ast.Compare) and same(test.left, given)


def _named(made: LoaderCall, dataset: ast.expr) -> tuple[str, list[Edit], list[str]]:
    """The data set by a name that the sampler can be given, and the edits and needs that make one."""
    context, tree = made.context, made.context.tree
    if isinstance(dataset, (ast.Name, ast.Attribute, ast.Subscript)) and not any(
        isinstance(n, (ast.Call, ast.NamedExpr)) for n in ast.walk(dataset)
    ):
        return context.source(dataset), [], []
    if isinstance(dataset, ast.NamedExpr):
        return dataset.target.id, [], []
    statement = tree.statement(made.node)
    fresh = FreshName((*(("dataset",) if made.when else ()), "train_dataset", "train_set", "training_data"), made.node)
    name = str(fresh)
    if isinstance(statement, (ast.If, ast.While, ast.With)) or _conditional(context, made.node):  # it is made here, and only here
        return name, [Replace(dataset, f"({name} := {{0}})", (dataset,), (fresh,))], []
    line = f"{name} = {{0}}"
    loads = download.downloads(dataset)
    if loads:
        line = f"with {context.names['first_on_node']}():\n    {line}"
    return name, [InsertBefore(statement, line, (dataset,), (fresh,)), Replace(dataset, name)], ["first_on_node"] if loads else []


def _sampler_edits(made: LoaderCall, name: str) -> list[Edit]:
    """The edits that put a distributed sampler in the place of the loader's own shuffling."""
    node, shuffle = made.node, made.argument("shuffle")
    shuffles = shuffle is not None and (made.is_(shuffle, True) or made.same(shuffle))
    how = "" if shuffles else f", shuffle={made.source(shuffle)}" if shuffle is not None else ", shuffle=False"
    text = f"DistributedSampler({escaped(name)}{how}{made.dropping()})"
    if made.when:
        text += f" if {escaped(made.when)} else None"
    given = SetArgument(node, "sampler", text)
    if shuffle is None:
        return [given]
    if made.when and made.is_(shuffle, False):
        return [given]
    if made.joined and made.same(shuffle):
        return [Replace(shuffle, f"not {JOINED} and {{0}}", (shuffle,)), given]
    if made.when and not made.same(shuffle):
        left = factory.negated(made.when)
        return [Replace(shuffle, left if shuffles else f"{left} and {{0}}", () if shuffles else (shuffle,)), given]
    if any(k.arg == "shuffle" for k in node.keywords):
        return [DropArgument(node, "shuffle"), given]
    later = {p: n for n, p in POSITIONS.items()}  # positional: what follows must be named
    names: list[Edit] = [NameArgument(node, later.get(p, ""), p) for p in range(len(node.args) - 1, POSITIONS["shuffle"], -1)]
    return [*names, DropArgument(node, "shuffle", POSITIONS["shuffle"]), given]


def _options(made: LoaderCall, spread: ast.keyword, name: str, edits: list[Edit], needs: list[str]) -> Iterator[Change | Finding]:
    """`DataLoader(dataset, **options)`: the options become this rank's in one call, those given beside them go in."""
    context, node = made.context, made.node
    given = [k for k in node.keywords if k.arg in ("batch_size", "shuffle", "drop_last", "num_workers", "sampler")]
    samplers = _among(made, spread)
    if len(node.args) > 1 or made.only or samplers is None or any(k.arg is None and k is not spread for k in node.keywords):
        yield made.refuse("the loader's arguments cannot be seen")
        return
    imports, forks = made.imports, tuple[str, ...]()
    if samplers.objs or samplers.origins:
        problem, forks, more = sampler.shared(context, samplers, frozenset(n.about for n in made.held))
        if problem or sampler.key(context, samplers) != "rank_sampler":
            yield made.refuse(problem or "the loader's arguments cannot be seen", at=spread.value)
            return
        imports, forks = (*imports, *more), (*forks, "rank_sampler", "sharded:sampler")
    inner = "{0}"
    if given:
        inner = "dict({0}, " + ", ".join(f"{k.arg}={escaped(ast.unparse(k.value))}" for k in given) + ")"
        edits += [DropArgument(node, str(k.arg)) for k in given]
    edits.append(Replace(spread.value, f"{context.names['sharded']}({escaped(name)}, {inner})", (spread.value,)))
    wanted = ("per_rank" if context.options.batch_size == "global" else "sharded:whole", *needs, "sharded", *forks)
    yield Change(CODE, made.why, context.tree.shown, node, tuple(edits), imports, made.level, discharges=made.held, needs=wanted)


def _among(made: LoaderCall, spread: ast.keyword) -> Value | None:
    """The sampler that is given beside a loader's options, or among them, without None; None of what cannot be shared out."""
    run, own = made.context.facts.after, made.argument("sampler")
    options = [o for o in run.value(spread.value).objs if {"sampler", "batch_sampler"} & set(run.of(o))]
    in_batches = made.argument("batch_sampler") is not None or any("batch_sampler" in run.of(o) for o in options)
    if in_batches or (own is not None and options):
        return None
    value = run.value(own) if own is not None else join([run.held(o, "sampler") for o in options])
    return Value(frozenset(o for o in value.objs if not isinstance(o, Lit) or o.value is not None), value.origins)


def _with_dataset(made: LoaderCall) -> ast.keyword | None:
    """The options that a loader is made with, where its data set is among them."""
    run, spread = made.context.facts.after, [k for k in made.node.keywords if k.arg is None]
    if len(spread) != 1 or made.node.args or not isinstance(spread[0].value, (ast.Name, ast.Attribute)):
        return None
    options = run.value(spread[0].value).objs
    data = [run.held(o, "dataset") for o in options]
    known = bool(options) and all(isinstance(o, New) and o.path == "dict" for o in options) and all(v.objs for v in data)
    return spread[0] if known and not any(stream.is_stream(made.context, v) for v in data) else None


_PASSED_ON = frozenset(("pin_memory", "collate_fn", "worker_init_fn", "persistent_workers", "timeout", "prefetch_factor", "num_workers"))


def _harmless(context: Context, options: ast.expr) -> bool:
    """Whether options that are passed on do not say what a loader draws."""
    run = context.facts.after
    given = run.value(options)
    keys = {name for o in given.objs for name in run.of(o) if not name.startswith("[")}
    return bool(given.objs) and all(isinstance(o, New) and o.path == "dict" for o in given.objs) and keys <= _PASSED_ON


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether an expression may not be evaluated, or more than once, when its statement runs."""
    for up in context.tree.ancestors(node):
        if isinstance(up, (ast.IfExp, ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.BoolOp)):
            return True
        if isinstance(up, ast.stmt):
            return False
    return False
