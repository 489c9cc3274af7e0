"""Give each rank a different part of the training data, and keep the global batch.

What it does: the DataLoader of a training loop gets a DistributedSampler that shuffles as the loader did, a per-rank batch size and
    its share of the workers, also where `functools.partial` passes those. Options passed as `**options` are turned into this rank's by
    one call. A sampler or batch sampler that the script gives it is drawn alike by all ranks, or by rank 0 for all where no seed makes it
    alike; each rank takes its share: of the order, or of each batch. A DistributedSampler stays; where a setting decides whether there is
    one, there always is. Of an iterable data set each rank takes every N-th sample; a
    NeighborLoader draws among the nodes that it samples around. A loader that is only evaluated is another
    rule's (DDP304); where one call makes both kinds, it goes by the phase or parameter that tells them apart, or by one that the
    function around it gets.
Why: without the sampler all ranks train on the same samples; with the batch size left, the global batch is N times the original's.
    `DistributedSampler` shuffles unless `shuffle=False` is passed, and must drop the tail itself where the loader drops it.
Safety: safe for map-style data with default batching; NOTE where a batch or the end of a stream may repeat samples. MANUAL for samplers
    that learn while training or that rank 0 would draw for all in a thread, those that compose batches for a loss that compares samples,
    for iterable data sets that draw at random or that each worker reads whole, and for batches of one sample or made by the data set.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts import library
from ddpify.facts.collect import TrainingLoop, batches_of
from ddpify.facts.model import NOTHING, Class, Func, Lit, New, Obj, ordered
from ddpify.facts.named import without_settings
from ddpify.facts.tree import inside, last_name, names_in, same, structure, walk
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import batch_sampler, loader_factory, loader_uses, resized, sampler, stream
from ddpify.rules.data.loader_call import JOINED, POSITIONS, LoaderCall, preset, recipe
from ddpify.rules.data.loader_edits import shard

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
        "a function that makes loaders that are only evaluated",
        "def make(dataset):\n"
        "    return DataLoader(dataset, batch_size=100, shuffle=True)\n"
        "\n"
        "\n"
        "for x, y in make(test_set):\n"
        "    shape = x.shape\n",
        frame="end",
    ),
    Example(
        "rows that are chosen again in each round",
        "for turn in range(3):\n"
        "    chosen = images[turn * 8 : turn * 8 + 8]\n"
        "    for row in chosen:\n"
        "        shape = row.shape\n",
        frame="end",
    ),
    Example(
        "loaders that are only evaluated, side by side",
        "first, second = [DataLoader(test_set, batch_size=100, shuffle=True) for _ in range(2)]\n"
        "for (x, y), _ in zip(first, second):\n"
        "    shape = x.shape\n",
        frame="end",
    ),
    Example(
        "a loader that nothing reads",
        "spare = DataLoader(train_set, batch_size=32, shuffle=True)\n",
        frame="end",
    ),
    Example(
        "a sampler that rank 0 would draw for all, beside a thread, which is shown",
        "import threading\n"
        "\n"
        "\n"
        "class Fresh(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        np.random.seed()\n"
        "        return iter(np.random.permutation(640))\n"
        "\n"
        "\n"
        "threading.Thread(target=len, args=([],)).start()\n"
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
        options=Options(whole_batches="never"),
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
        options=Options(whole_batches="never"),
    ),
    Example(
        "a call that makes all loaders, of which nothing tells the one that trains, which is shown",
        "make = lambda dataset: DataLoader(dataset, batch_size=32)\n"
        "loader, val_loader = make(train_set), make(test_set)\n"
        "for x, y in val_loader:\n"
        "    shape = x.shape\n",
        frame="data",
        options=Options(whole_batches="never"),
    ),
    Example(
        "a sampler that no loader has",
        "order = torch.utils.data.RandomSampler(range(640))\n",
        frame="start",
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
        options=Options(whole_batches="never"),
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
        "a function that makes all loaders, and is passed which one trains",
        "def make(dataset):\n"
        "    return DataLoader(dataset, batch_size=32)\n"
        "\n"
        "\n"
        "loader, val_loader = make(train_set), make(test_set)\n"
        "for x, y in val_loader:\n"
        "    shape = x.shape\n",
        "def make(dataset, training=False):\n"
        "    return DataLoader(\n"
        "        dataset,\n"
        "        batch_size=per_rank(32) if training else 32,\n"
        "        sampler=DistributedSampler(dataset, shuffle=False) if training else None,\n"
        "    )\n"
        "\n"
        "\n"
        "loader, val_loader = make(train_set, training=True), make(test_set)\n"
        "for x, y in val_loader:\n"
        "    shape = x.shape\n",
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
        "two loaders that shuffle, side by side",
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "\n"
        "first, second = torch.ones(640, 8).unsqueeze(1), torch.ones(640, 8).unsqueeze(1)\n"
        "model = torch.nn.Linear(8, 8)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "loader = DataLoader(first, batch_size=32, shuffle=True)\n"
        "other = DataLoader(second, batch_size=32, shuffle=True)\n"
        "for x, y in zip(loader, other):\n"
        "    optimizer.zero_grad()\n"
        "    torch.nn.functional.mse_loss(model(x), y).backward()\n"
        "    optimizer.step()\n",
        "loader = DataLoader(first, batch_size=per_rank(32), sampler=DistributedSampler(first))\n"
        "other = DataLoader(second, batch_size=per_rank(32), sampler=DistributedSampler(second, seed=1))\n",
    ),
    Example(
        "two loaders that one function makes, side by side",
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "\n"
        "\n"
        "def make(data):\n"
        "    return DataLoader(data, batch_size=32, shuffle=True)\n"
        "\n"
        "\n"
        "data = torch.ones(640, 8).unsqueeze(1)\n"
        "model = torch.nn.Linear(8, 8)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "loader, other = make(data), make(data)\n"
        "for x, y in zip(loader, other):\n"
        "    optimizer.zero_grad()\n"
        "    torch.nn.functional.mse_loss(model(x), y).backward()\n"
        "    optimizer.step()\n",
        "def make(data):\n"
        "    return DataLoader(data, batch_size=per_rank(32), sampler=DistributedSampler(data, seed=own_seed()))\n",
    ),
    Example(
        "a loader that is made again in each round of one training",
        "for turn in range(3):\n"
        "    part = DataLoader(train_set, batch_size=16, shuffle=True)\n"
        "    for epoch in range(4):\n"
        "        for x, y in part:\n"
        "            update(x, y)\n",
        "for turn in range(3):\n"
        "    part = DataLoader(train_set, batch_size=per_rank(16), sampler=DistributedSampler(train_set, seed=own_seed()))\n"
        "    for epoch in range(4):\n"
        "        part.sampler.set_epoch(epoch)\n"
        "        for x, y in part:\n"
        "            update(x, y)\n",
        frame="loop",
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


_BOTH = "this call makes both the training loader and an evaluation loader: a sampler would also cut the evaluation"
_OF_OWN_CLASS = "the training loader is not a DataLoader of torch: every rank would load all of the data"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Shard every loader that feeds a training loop."""
    for items in context.once(_sharding).values():
        yield from items
    shared = next((node for loop in context.facts.loops if (node := _loop_in_turn(context, loop)) is not None), None)
    if shared is not None:
        why = "this loop runs over several loaders in turn: one that only evaluates would count the samples that its sampler repeats"
        fix = "leave the loader that only evaluates without a sampler, and do not sum its numbers over the ranks"
        yield context.manual(CODE, shared, why, fix, level=Safety.REVIEW)
    yield from loader_uses.findings(context)
    yield from resized.findings(context)


def _sharding(context: Context) -> dict[ast.AST, tuple[Change | Finding | Proof, ...]]:
    """For each call that makes loaders which feed a training loop, what is done about it."""
    calls: dict[ast.AST, list[New]] = {}
    for loader in context.facts.loaders:
        calls.setdefault(_edited_call(context, loader), []).append(loader)
    return {node: tuple(_loader_changes(context, node, loaders)) for node, loaders in calls.items()}


def _edited_call(context: Context, loader: New) -> ast.AST:
    """The call that is edited for a loader: the one that makes it, or the one that its class hands its arguments on by."""
    find = context.facts.after.interpreter.find
    cls, node = loader.cls, loader.node
    while cls is not None:
        func = next((f for f in (find(cls, "__init__") or NOTHING).objs if isinstance(f, Func)), None)
        if func is None or func.cls is None:
            return node
        calls = [n for n in walk(func.node) if isinstance(n, ast.Call) and last_name(n.func) == "__init__"]
        if len(calls) != 1 or not _is_super(calls[0].func):
            return func.node
        if _hands_on(func.node, calls[0], node):
            return node
        node = calls[0]
        above = [b for base in func.cls.bases for b in base.objs if isinstance(b, Class)]
        cls = next((b for b in above if find(b, "__init__") is not None), None)  # a class of the project's own, between it and torch's
    return node


def _is_super(node: ast.expr) -> bool:
    """Whether an expression is a method of `super()`."""
    base = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"


def _hands_on(function: ast.AST, init: ast.Call, call: ast.AST) -> bool:
    """Whether a class hands its keyword arguments, or all of them, on as they are: then they are the loader's where it is called, too."""
    if not isinstance(function, ast.FunctionDef) or not isinstance(call, ast.Call):
        return False
    if _hands_on_all(function.args, init):
        return True
    if function.args.kwarg is None:
        return False
    unchanged = not init.args and [(k.arg, structure(k.value)) for k in init.keywords] == [(None, structure(function.args.kwarg))]
    named = {k.arg for k in call.keywords}
    return unchanged and all(name in named for name, position in POSITIONS.items() if position < len(call.args))


def _hands_on_all(spec: ast.arguments, init: ast.Call) -> bool:
    """Whether a constructor takes what torch's DataLoader takes, in that order, and hands all of it on."""
    names = [a.arg for a in spec.args[1:]]
    taken = [*names, *(["*"] if spec.vararg is not None else []), *(["**"] if spec.kwarg is not None else [])]
    handed = [_name_of(a, spec.vararg, "*") for a in init.args]
    handed += ["**" if k.arg is None and spec.kwarg is not None and _is_named(k.value, spec.kwarg.arg) else "" for k in init.keywords]
    own = spec.posonlyargs or spec.kwonlyargs or any(POSITIONS.get(name) != i for i, name in enumerate(names))
    return spec.kwarg is not None and not own and taken == handed


def _name_of(node: ast.expr, rest: ast.arg | None, mark: str) -> str:
    """The name that an argument is; of the rest of them, the mark."""
    if isinstance(node, ast.Starred):
        return mark if rest is not None and _is_named(node.value, rest.arg) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _loader_changes(context: Context, node: ast.AST, loaders: list[New]) -> Iterator[Change | Finding | Proof]:
    """What is done about a call that makes training loaders."""
    facts = context.facts
    obligations = tuple(dict.fromkeys(Obligation("inputs", loader.node) for loader in loaders))
    if all(sharded(context, loader) for loader in loaders):
        yield from _batches_divided(context, node, loaders, obligations) or map(Proof, obligations)
        return
    problem, only = _obstacle(context, node, loaders), loader_factory.Condition("")
    if not problem and (others := _made_beside(context, node)) and isinstance(node, ast.Call):
        found = loader_factory.condition(context, node, loaders, others)
        problem, only = ("", found) if found is not None else (_BOTH, only)
    if problem or not isinstance(node, ast.Call):
        at = node if isinstance(node, ast.Call) else loaders[0].node
        yield context.manual(CODE, at, problem, recipe(at), obligations)
    else:
        joined = not facts.in_main(node) and facts.project.is_shared(facts.tree_of(node).name)
        yield shard(LoaderCall(context, node, obligations, only.text, only.edits, joined))


def _batches_divided(context: Context, node: ast.AST, loaders: list[New], obligations: tuple[Obligation, ...]) -> list[Change]:
    """The change of a loader with a DistributedSampler whose batches have nothing to do with the number of ranks; none of others."""
    sizes = [context.facts.after.attribute(loader, "batch_size") for loader in loaders]
    torchs = all(o.path == library.DISTRIBUTED_SAMPLER for loader in loaders for o in samplers(context, loader))
    if not isinstance(node, ast.Call) or not context.facts.is_edited(node) or not torchs or any(s.of_kind("world") for s in sizes):
        return []
    site = LoaderCall(context, node, obligations)
    given = context.options.batch_size == "global" and site.argument("batch_size") is not None
    edits, needs = site.divided() if given else ([], [])
    return [site.change(edits, needs)] if edits else []


def _made_beside(context: Context, node: ast.AST) -> list[New]:
    """The loaders that do not train of a call that is edited for those that do."""
    return [o for o in _others(context) if _edited_call(context, o) is node]


def trains_where(context: Context, node: ast.AST) -> loader_factory.Condition | None:
    """What tells where a call makes a loader that trains; None where it always does."""
    loaders, others = [o for o in context.facts.loaders if _edited_call(context, o) is node], _made_beside(context, node)
    return loader_factory.condition(context, node, loaders, others) if isinstance(node, ast.Call) and loaders and others else None


def _obstacle(context: Context, node: ast.AST, loaders: list[New]) -> str:
    """Why a call that makes training loaders cannot be edited; empty where it can."""
    own = loaders[0].cls is not None
    if not isinstance(node, ast.Call):
        return _OF_OWN_CLASS
    if not context.facts.is_edited(node):
        return "the training loader is made in a module that is not edited: every rank would train on all of the data"
    called, run = context.facts.after.value(node.func), context.facts.after.interpreter
    made_by = without_settings(run, called) if preset(context, node) else called
    if not own and library.LOADERS.isdisjoint(made_by.paths()):
        return _OF_OWN_CLASS
    return _BOTH if any(loader_factory.several(context, loader, node) and _evaluates(context, loader) for loader in loaders) else ""


def _others(context: Context) -> list[New]:
    """The loaders that do not train."""
    run, trained = context.facts.after, set(context.facts.loaders)
    instances = {o for c in run.trace.calls for o in c.result.instances() if o.node is c.node and run.is_loader(o)} - trained
    return list(ordered(instances & _read(context)))


def _read(context: Context) -> set[Obj]:
    """What is gone through, handed on, or kept by an object: not what a function makes and leaves."""
    run = context.facts.after
    out = {o for c in run.trace.calls for v in (c.receiver, *c.args, *c.keywords.values()) for o in v.objs}
    out |= {o for store in run.trace.stores for o in store.value.objs}
    out |= {o for (owner, _), value in run.memory.items() if not isinstance(owner, str) for o in value.objs}
    trees = context.facts.trees.values()
    through = [*(n.iter for t in trees for n in t.of(ast.For)), *(n.iter for t in trees for n in t.of(ast.comprehension))]
    return out | {o for node in through for o in run.value(node).objs}


def _evaluates(context: Context, loader: New) -> bool:
    """Whether a loop over a loader, or over something of the project's own that draws from it, does not train."""
    run, training = context.facts.after, context.facts.training_loops
    loops = {loop.node: loop for call in run.trace.calls for loop in call.loops if loop.node not in training}
    for node, loop in loops.items():
        if loader not in loop.element.of_kind("batch") | batches_of(run, loop.element):
            continue
        over = [g.iter for g in getattr(node, "generators", ())] or [getattr(node, "iter", None)]
        drawn = [o for n in over if n is not None for part in walk(n) for o in run.value(part).instances()]
        if over == [None] or any(o == loader or o.cls is not None for o in drawn):
            return True  # not over what is in a batch
    return False


def _loop_in_turn(context: Context, loop: TrainingLoop) -> ast.AST | None:
    """The loop of a training whose batches may be of one loader or another, and are trained on under a condition only."""
    if loop.batch is None or len({getattr(o, "node", None) for o in loop.loaders}) < 2:
        return None
    several = len(loop.batch.element.of_kind("batch") & set(context.facts.loaders)) > 1
    within = inside(loop.batch.node)
    return loop.batch.node if several and any(test in within for test, _ in loop.backward.tests) else None


def sampler_kinds(context: Context, loaders: frozenset[New]) -> sampler.Kinds | None:
    """The classes of the samplers that training loaders have after the conversion; None where a loader has none of its own."""
    names, needs = set[str](), set[str]()
    for loader in loaders:
        expression = argument(loader.node, 3, "sampler") if isinstance(loader.node, ast.Call) else None
        if epoch_of(context, loader) != "sampler":
            return None
        if sharded(context, loader):
            names |= {"DistributedSampler" if o.cls is None else o.cls.node.name for o in samplers(context, loader)}
        elif expression is None or all(isinstance(o, Lit) for o in context.facts.after.value(expression).objs):
            names.add("DistributedSampler")
        else:
            chosen = sampler.arms(context, expression)
            needs |= {sampler.key(context, arm.samplers) for arm in chosen if arm.draws}
            names |= {"DistributedSampler" for arm in chosen if arm.may_be_none or arm.shares}
    names |= {context.names[piece] for piece in needs}
    return sampler.Kinds(tuple(sorted(names)), tuple(sorted(needs))) if names else None


def epoch_of(context: Context, loader: New) -> str:
    """Where a sharded loader's epoch is set: the attributes from the loader to its sampler; empty for a stream, which has none."""
    run = context.facts.after
    if stream.is_stream(context, run.attribute(loader, "dataset")):
        return ""
    made = {o for o in context.facts.loaders if o.node is loader.node} | {loader}  # which one call may give batch samplers of several kinds
    batches = {batches for o in made for batches in run.attribute(o, "batch_sampler").instances()}
    if not batches:
        return "sampler"
    return "batch_sampler.sampler" if all(o.path == batch_sampler.TORCHS for o in batches) else "batch_sampler"


def samplers(context: Context, loader: New) -> frozenset[New]:
    """The samplers of a loader that give each rank its share."""
    objs = (o for o in _given_samplers(context, loader) if isinstance(o, New))
    return frozenset(o for o in objs if o.path == library.DISTRIBUTED_SAMPLER or _of_rank(context, o))


def _given_samplers(context: Context, loader: New) -> set[Obj]:
    """What a loader has for samplers; of torch's batch samplers those that they go through."""
    run = context.facts.after
    objs = run.attribute(loader, "sampler").objs | run.attribute(loader, "batch_sampler").objs
    return {part for o in objs for part in (run.attribute(o, "sampler").objs if getattr(o, "path", "") == batch_sampler.TORCHS else (o,))}


def sharded(context: Context, loader: New) -> bool:
    """Whether a loader gives each rank its share already."""
    given, shares = _given_samplers(context, loader), samplers(context, loader)
    some = {o for o in given if isinstance(o, New)}
    if (some != given and not _none_for_others(context, loader)) or (shares and shares != some):
        return False  # as where a flag asks for several processes
    data = context.facts.after.attribute(loader, "dataset").instances()
    is_a = context.facts.after.interpreter.is_a
    return bool(shares) or any(is_a(o, stream.ITERABLE) and _reads_rank(context, o) for o in data)


def _none_for_others(context: Context, loader: New) -> bool:
    """Whether it is the loaders made beside one that trains which are given no sampler: `sampler=... if training else None`."""
    node = _edited_call(context, loader)
    given, only = argument(node, 3, "sampler") if isinstance(node, ast.Call) else None, trains_where(context, node)
    if only is None or not isinstance(given, ast.IfExp):
        return False
    return any(same(given.test, ast.parse(text, mode="eval").body) for text in (only.text, f"{JOINED} and {only.text}"))


def read_in_parts(context: Context, loader: New) -> bool:
    """Whether each rank can read its part of a training loader: it goes through its batches as torch's does."""
    run, call = context.facts.after, _edited_call(context, loader)
    goes_through = run.interpreter.find(loader.cls, "__iter__") if loader.cls is not None else None
    alone = call is loader.node or not _made_beside(context, call)
    return run.interpreter.is_a(loader, library.DATALOADER) and goes_through is None and alone and not refused(context, loader)


def refused(context: Context, loader: New) -> bool:
    """Whether a training loader is left as it is, with a finding."""
    items = (item for items in context.once(_sharding).values() for item in items)
    stuck = (item for item in items if isinstance(item, Finding) and item.level is Safety.MANUAL)
    return not sharded(context, loader) and any(o.about is loader.node for item in stuck for o in item.discharges)


def _of_rank(context: Context, obj: New) -> bool:
    """Whether a sampler of the script's own class reads the rank."""
    own = obj.cls is not None and context.facts.after.interpreter.find(obj.cls, "set_epoch") is not None
    return own and _reads_rank(context, obj)


def _reads_rank(context: Context, obj: New) -> bool:
    if obj.cls is None:
        return False
    if obj.cls.file != "__main__" and context.facts.project.is_ours(obj.cls.file):
        return True  # a conversion has added it, with functions that ask for the rank
    run, names = context.facts.after, names_in(obj.cls.node)
    read = [run.memory.get((obj.cls.file, name), NOTHING) for name in names]
    asking = [n for v in read for o in v.objs if isinstance(o, Func) for n in walk(o.node) if isinstance(n, ast.Call)]
    return any(v.of_kind("rank") for v in read) or any("torch.distributed.get_rank" in run.value(n.func).paths() for n in asking)
