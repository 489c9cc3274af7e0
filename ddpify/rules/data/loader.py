"""Give each rank its share of the training data, and keep the global batch.

What it does: the DataLoader of a training loop gets a DistributedSampler that shuffles as the loader did, a per-rank batch size and
    its share of the workers. Options passed as `**options` are turned into this rank's by one call. A loader that is only evaluated is
    left alone: every rank evaluates all of it.
Why: without the sampler all ranks train on the same samples; with the batch size left, the global batch is N times the original's.
    `DistributedSampler` shuffles unless told not to, and must drop the tail itself where the loader drops it.
Safety: safe for map-style data with default batching and torch's own samplers; a sampler class of the script's, batch samplers and
    iterable data sets are MANUAL here.
References: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, InsertBefore, NameArgument, Replace, SetArgument
from ddpify.facts import library
from ddpify.facts.collect import TrainingLoop
from ddpify.facts.model import NOTHING, Lit, New
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import download

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
        "a loader that nothing reads",
        "spare = DataLoader(train_set, batch_size=32, shuffle=True)\n",
        frame="end",
    ),
    Example(
        "a sampler of the script's own, which is shown",
        "class Backwards(torch.utils.data.Sampler):\n"
        "    def __iter__(self):\n"
        "        return iter(range(639, -1, -1))\n"
        "\n"
        "\n"
        "loader = DataLoader(train_set, batch_size=32, sampler=Backwards())\n",
        frame="data",
    ),
    Example(
        "a data set that only yields, which is shown",
        "class Lines(torch.utils.data.IterableDataset):\n"
        "    def __iter__(self):\n"
        "        return iter([(torch.ones(8), 0)] * 640)\n"
        "\n"
        "\n"
        "loader = DataLoader(Lines(), batch_size=32)\n",
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
        "options in a dictionary",
        'options = {"batch_size": 32, "shuffle": True}\n'
        "loader = DataLoader(train_set, **options)\n",
        'options = {"batch_size": 32, "shuffle": True}\n'
        "loader = DataLoader(train_set, **sharded(train_set, options))\n",
        frame="data",
    ),
)  # fmt: skip

_POSITIONS = {
    "dataset": 0,
    "batch_size": 1,
    "shuffle": 2,
    "sampler": 3,
    "batch_sampler": 4,
    "num_workers": 5,
    "collate_fn": 6,
    "pin_memory": 7,
    "drop_last": 8,
}
_SAMPLER = "from torch.utils.data.distributed import DistributedSampler"
_WHY = "each rank loads its own share of each global batch"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Shard every loader that feeds a training loop."""
    facts, run = context.facts, context.facts.after
    nodes: dict[ast.AST, list[New]] = {}
    for loader in facts.loaders:
        nodes.setdefault(loader.node, []).append(loader)
    evaluated = _evaluated(context)
    for node, loaders in nodes.items():
        held = (Obligation("inputs", node),)
        if all(_sharded(context, loader) for loader in loaders):
            yield Proof(held[0], "its sampler is distributed")
            continue
        if not isinstance(node, ast.Call):
            yield context.manual(CODE, node, "this loader feeds training", _recipe(context), held)
        elif not facts.is_entry(node):
            yield context.manual(
                CODE, node, "the training loader is made in another module, and every rank would load all of it", _recipe(context), held
            )
        elif any(e.node is node and e not in loaders for e in evaluated) and (phase := _phase(context, node, loaders)):
            yield from _shard_phase(context, node, phase, held)
        elif any(e.node is node and e not in loaders for e in evaluated):
            yield context.manual(CODE, node, "this call makes the training loader and an evaluation loader", _recipe(context), held)
        elif loaders[0].cls is not None or library.DATALOADER not in run.value(node.func).paths():
            yield context.manual(CODE, node, "the training loader is of a class of its own", _recipe(context), held)
        else:
            yield from _shard(context, node, held)
    for loop in facts.loops:
        if loop.batch is not None and len({getattr(o, "node", None) for o in loop.loaders}) > 1 and len(_batches(context, loop)) > 1:
            yield context.manual(
                CODE,
                loop.batch.node,
                "this loop runs over several loaders in turn: one that only evaluates would count the samples that its sampler repeats",
                "leave the loader that only evaluates without a sampler, and do not sum its numbers over the ranks",
                level=Safety.REVIEW,
            )
            break
    yield from _elsewhere(context)


def _batches(context: Context, loop: TrainingLoop) -> frozenset[object]:
    """The loaders whose batches one name of the loop may hold."""
    return loop.batch.element.of_kind("batch") & set(context.facts.loaders) if loop.batch is not None else frozenset()


_HARMLESS = (
    "enumerate",
    "len",
    "tqdm.",
    "iter",
    "zip",
    "print",
    "next",
    "isinstance",
    "itertools.",
    "range",
    "list",
    "torch.utils.data.",
    "type",
    "hasattr",
    "getattr",
    "prefetch_generator.",
    "reversed",
    "id",
    "str",
)


def _elsewhere(context: Context) -> Iterator[Finding]:
    """Other uses of a training loader, which holds this rank's share only, and data sets that its indices do not reach."""
    run = context.facts.after
    loaders = set(context.facts.loaders)
    seen: set[ast.AST] = set()
    for call in run.trace.calls:
        paths = call.func.paths()
        if call.node not in seen and paths and not any(p.startswith(_HARMLESS) for p in paths) and any(a.objs & loaders for a in call.args):
            seen.add(call.node)
            yield context.manual(
                CODE,
                call.node,
                f"`{ast.unparse(call.node.func)}` sees this rank's share of the data only",
                "give it a loader over all of the data",
                level=Safety.REVIEW,
            )
    for loader in context.facts.loaders:
        for obj in run.held(loader, "dataset").made():
            found = run.interpreter.find(obj.cls, "__getitem__") if obj.cls is not None else None
            for func in found.objs if found is not None else ():
                node = getattr(func, "node", None)
                if isinstance(node, ast.FunctionDef) and len(node.args.args) > 1 and not _asked(node):
                    yield context.manual(
                        CODE,
                        node,
                        "this data set ignores the index it is asked for: a sampler cannot give each rank other samples",
                        "draw the sample from the index, or from a generator seeded by rank",
                    )


def sampler_name(context: Context, loaders: frozenset[New]) -> str:
    """The class of the samplers that training loaders have after the conversion; empty where they differ."""
    drawn = {
        bool(isinstance(o.node, ast.Call) and (given := argument(o.node, 3, "sampler")) is not None and _drawing(context, given))
        or any(_of_rank(context, s) for s in context.facts.after.held(o, "sampler").made())
        for o in loaders
    }
    return "" if len(drawn) != 1 else context.names["rank_sampler"] if drawn.pop() else "DistributedSampler"


def refused(context: Context, loader: New) -> bool:
    """Whether a training loader is left as it is, with a finding."""
    return not _sharded(context, loader) and any(
        isinstance(item, Finding) and item.level is Safety.MANUAL and any(o.about is loader.node for o in item.discharges)
        for item in changes(context)
    )


def _recipe(context: Context) -> str:
    return (
        "DataLoader(dataset, batch_size=B // dist.get_world_size(), sampler=DistributedSampler(dataset, shuffle=...)), "
        "and loader.sampler.set_epoch(epoch) before each epoch"
    )


def _evaluated(context: Context) -> set[New]:
    """Loaders whose batches are iterated somewhere without training."""
    run = context.facts.after
    trained = set(context.facts.loaders)
    return {o for c in run.trace.calls for loop in c.loops for o in loop.element.of_kind("batch") if run.is_loader(o) and o not in trained}


def _sharded(context: Context, loader: New) -> bool:
    run = context.facts.after
    samplers = run.held(loader, "sampler").made()
    return any(o.path == library.DISTRIBUTED_SAMPLER or _of_rank(context, o) for o in samplers)


def _of_rank(context: Context, sampler: New) -> bool:
    """Whether a sampler of the script's own class reads the rank."""
    if sampler.cls is None or context.facts.after.interpreter.find(sampler.cls, "set_epoch") is None:
        return False
    names = {n.id for n in ast.walk(sampler.cls.node) if isinstance(n, ast.Name)}
    return any(context.facts.after.memory.get((sampler.cls.file, name), NOTHING).of_kind("rank") for name in names)


def _shard(context: Context, node: ast.Call, held: tuple[Obligation, ...]) -> Iterator[Change | Finding]:
    tree = context.tree
    if any(isinstance(a, ast.Starred) for a in node.args):
        yield context.manual(CODE, node, "the loader's arguments cannot be seen", _recipe(context), held)
        return
    for name in ("sampler", "batch_sampler"):
        given = argument(node, _POSITIONS[name], name)
        if given is not None and not _is(context, given, None):
            if name == "sampler" and _drawing(context, given):
                yield from _drawn(context, node, given, held)
                return
            yield context.manual(
                CODE,
                given,
                f"the training loader draws by a {name} of its own",
                "give each rank every N-th index of the same draw: indices[rank::world_size]",
                held,
            )
            return
    dataset = argument(node, 0, "dataset")
    if dataset is None:
        yield context.manual(CODE, node, "the loader's data set cannot be seen", _recipe(context), held)
        return
    if _iterable(context, dataset):
        yield context.manual(
            CODE,
            node,
            "an iterable data set has no sampler: each rank would read all of it",
            "in its __iter__, yield every (rank * workers + worker)-th item only",
            held,
        )
        return
    edits: list[Edit] = []
    needs = ["per_rank"]
    imports = [_SAMPLER]
    name = ast.unparse(dataset)
    if not isinstance(dataset, (ast.Name, ast.Attribute)):
        statement = tree.statement(node)
        name = context.fresh("train_dataset", "train_set", "training_data")
        if isinstance(statement, (ast.If, ast.For, ast.While, ast.With)) or _conditional(context, node):
            yield context.manual(
                CODE, node, "the data set has no name of its own here", f"assign it to a name first: {name} = {ast.unparse(dataset)}", held
            )
            return
        line = f"{name} = {{0}}"
        if download.downloads(dataset):
            line = f"with {context.names['first_on_node']}():\n    {line}"
            needs.append("first_on_node")
        edits += [InsertBefore(statement, line, (dataset,)), Replace(dataset, name)]
    spread = next((k for k in node.keywords if k.arg is None), None)
    if spread is not None:
        yield from _options(context, node, spread, name, edits, imports, held, needs)
        return
    size = argument(node, _POSITIONS["batch_size"], "batch_size")
    if isinstance(size, ast.Constant) and size.value is None:
        yield context.manual(CODE, node, "the loader does no batching of its own", _recipe(context), held)
        return
    edits += _sampler_edits(context, node, name)
    if size is None:
        yield context.manual(
            CODE,
            node,
            "batches of one sample cannot be divided among ranks",
            "give the loader a batch size that the number of ranks divides",
            held,
        )
        return
    edits.append(Replace(size, f"{context.names['per_rank']}({{0}})", (size,)))
    workers = argument(node, _POSITIONS["num_workers"], "num_workers")
    if workers is not None and not _is(context, workers, 0):
        edits.append(Replace(workers, f"{context.names['workers_per_rank']}({{0}})", (workers,)))
        needs.append("workers_per_rank")
    yield Change(CODE, _WHY, tree.shown, node, tuple(edits), tuple(imports), discharges=held, needs=tuple(needs))


def _phase(context: Context, node: ast.Call, loaders: list[New]) -> str:
    """Where one call makes the loaders of all phases: the condition under which it is the one that trains; else empty."""
    around = next((up for up in context.tree.ancestors(node) if isinstance(up, (ast.DictComp, ast.stmt))), None)
    if isinstance(around, ast.DictComp):
        target, phases = around.generators[0].target, around.generators[0].iter
    else:
        loop = next((up for up in context.tree.ancestors(node) if isinstance(up, ast.For)), None)
        if loop is None:
            return ""
        target, phases = loop.target, loop.iter
    train = [part for part in getattr(phases, "elts", ()) if any(part in loader.stack for loader in loaders)]
    if not isinstance(target, ast.Name) or len(train) != 1 or not isinstance(train[0], ast.Constant):
        return ""
    return f"{target.id} == {context.source(train[0])}"


def _shard_phase(context: Context, node: ast.Call, phase: str, held: tuple[Obligation, ...]) -> Iterator[Change | Finding]:
    """One call makes the loaders of all phases: the one that trains is sharded, the others stay."""
    dataset = argument(node, 0, "dataset")
    size = argument(node, _POSITIONS["batch_size"], "batch_size")
    shuffle = argument(node, _POSITIONS["shuffle"], "shuffle")
    drop_last = argument(node, _POSITIONS["drop_last"], "drop_last")
    given = [argument(node, _POSITIONS[n], n) for n in ("sampler", "batch_sampler")]
    plain = isinstance(dataset, (ast.Name, ast.Attribute, ast.Subscript)) and not any(isinstance(n, ast.Call) for n in ast.walk(dataset))
    seen = not any(isinstance(a, ast.Starred) for a in node.args) and all(k.arg for k in node.keywords) and len(node.args) <= 3
    if not plain or not seen or dataset is None or size is None or any(given) or _iterable(context, dataset):
        yield context.manual(CODE, node, "this call makes the training loader and an evaluation loader", _recipe(context), held)
        return
    how = "" if shuffle is None or _is(context, shuffle, True) else f", shuffle={context.source(shuffle)}"
    if shuffle is None:
        how = ", shuffle=False"
    if shuffle is not None and ast.unparse(shuffle) == ast.unparse(ast.parse(phase)):
        how = ""
    if drop_last is not None and not _is(context, drop_last, False):
        how += f", drop_last={context.source(drop_last)}"
    sampler = f"DistributedSampler({context.source(dataset)}{how}) if {phase} else None".replace("{", "{{").replace("}", "}}")
    edits: list[Edit] = [Replace(size, f"{context.names['per_rank']}({{0}}) if {phase} else {{0}}", (size,))]
    if shuffle is not None:
        if not how:
            left = "False" if not _is(context, shuffle, True) else phase.replace(" == ", " != ")
        else:
            left = f"{phase.replace(' == ', ' != ')} and {context.source(shuffle)}"
        edits.append(Replace(shuffle, left))
    edits.append(SetArgument(node, "sampler", sampler))
    needs = ["per_rank"]
    workers = argument(node, _POSITIONS["num_workers"], "num_workers")
    if workers is not None and not _is(context, workers, 0):
        edits.append(Replace(workers, f"{context.names['workers_per_rank']}({{0}})", (workers,)))
        needs.append("workers_per_rank")
    yield Change(
        CODE,
        "each rank loads its own share of each training batch; the other phases are evaluated whole",
        context.tree.shown,
        node,
        tuple(edits),
        (_SAMPLER,),
        discharges=held,
        needs=tuple(needs),
    )


_DRAWING = frozenset(f"torch.utils.data.{name}Sampler" for name in ("Random", "SubsetRandom", "WeightedRandom", "Sequential"))


def _drawing(context: Context, sampler: ast.expr) -> bool:
    """Whether a sampler is one of torch's own, which draw from torch's generator alone."""
    value = context.facts.after.value(sampler)
    return bool(value.objs) and all(isinstance(o, New) and o.path in _DRAWING for o in value.objs)


def _drawn(context: Context, node: ast.Call, sampler: ast.expr, held: tuple[Obligation, ...]) -> Iterator[Change | Finding]:
    """A loader with a sampler of torch's: every rank takes its share of the same draw."""
    size = argument(node, _POSITIONS["batch_size"], "batch_size")
    if size is None or any(k.arg is None for k in node.keywords):
        yield context.manual(CODE, node, "the loader's arguments cannot be seen", _recipe(context), held)
        return
    drop_last = argument(node, _POSITIONS["drop_last"], "drop_last")
    dropping = "" if drop_last is None or _is(context, drop_last, False) else f", drop_last={context.source(drop_last)}"
    edits: list[Edit] = [
        Replace(sampler, f"{context.names['rank_sampler']}({{0}}{dropping})", (sampler,)),
        Replace(size, f"{context.names['per_rank']}({{0}})", (size,)),
    ]
    needs = ["per_rank", "rank_sampler"]
    workers = argument(node, _POSITIONS["num_workers"], "num_workers")
    if workers is not None and not _is(context, workers, 0):
        edits.append(Replace(workers, f"{context.names['workers_per_rank']}({{0}})", (workers,)))
        needs.append("workers_per_rank")
    yield Change(CODE, _WHY, context.tree.shown, node, tuple(edits), discharges=held, needs=tuple(needs))


def _sampler_edits(context: Context, node: ast.Call, name: str) -> list[Edit]:
    shuffle = argument(node, _POSITIONS["shuffle"], "shuffle")
    drop_last = argument(node, _POSITIONS["drop_last"], "drop_last")
    how = (
        ""
        if shuffle is not None and _is(context, shuffle, True)
        else f", shuffle={ast.unparse(shuffle)}"
        if shuffle is not None
        else ", shuffle=False"
    )
    if drop_last is not None and not _is(context, drop_last, False):
        how += f", drop_last={ast.unparse(drop_last)}"
    text = f"DistributedSampler({name}{how})".replace("{", "{{").replace("}", "}}")
    edits: list[Edit] = []
    if shuffle is not None and any(k.arg == "shuffle" for k in node.keywords):
        edits += [SetArgument(node, "shuffle", "False"), DropArgument(node, "shuffle"), SetArgument(node, "sampler", text)]
        return [*edits[1:]]
    if shuffle is not None:  # positional: what follows must be named
        later = {p: n for n, p in _POSITIONS.items()}
        for p in range(len(node.args) - 1, _POSITIONS["shuffle"], -1):
            edits.append(NameArgument(node, later.get(p, ""), p))
        edits.append(DropArgument(node, "shuffle", _POSITIONS["shuffle"]))
    return [*edits, SetArgument(node, "sampler", text)]


def _options(
    context: Context,
    node: ast.Call,
    spread: ast.keyword,
    name: str,
    edits: list[Edit],
    imports: list[str],
    held: tuple[Obligation, ...],
    needs: list[str],
) -> Iterator[Change | Finding]:
    """`DataLoader(dataset, **options)`: the options become this rank's in one call, those given beside them go in."""
    given = [k for k in node.keywords if k.arg in ("batch_size", "shuffle", "drop_last", "num_workers", "sampler")]
    if len(node.args) > 1 or any(k.arg is None and k is not spread for k in node.keywords):
        yield context.manual(CODE, node, "the loader's arguments cannot be seen", _recipe(context), held)
        return
    inner = "{0}"
    if given:
        inner = "dict({0}, " + ", ".join(f"{k.arg}={ast.unparse(k.value)}" for k in given).replace("{", "{{").replace("}", "}}") + ")"
        edits += [DropArgument(node, str(k.arg)) for k in given]
    edits.append(Replace(spread.value, f"{context.names['sharded']}({name}, {inner})", (spread.value,)))
    yield Change(CODE, _WHY, context.tree.shown, node, tuple(edits), tuple(imports), discharges=held, needs=(*needs, "sharded"))


def _is(context: Context, node: ast.expr, what: object) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is what or (type(node.value) is type(what) and node.value == what)
    objs = context.facts.after.value(node).objs
    return len(objs) == 1 and all(isinstance(o, Lit) and o.value is what for o in objs)


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether an expression may not be evaluated, or more than once, when its statement runs."""
    for up in context.tree.ancestors(node):
        if isinstance(up, (ast.IfExp, ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.BoolOp)):
            return True
        if isinstance(up, ast.stmt):
            return False
    return False


def _iterable(context: Context, dataset: ast.expr) -> bool:
    run = context.facts.after
    for obj in run.value(dataset).made():
        if run.interpreter.is_a(obj, "torch.utils.data.IterableDataset"):
            return True
        if (
            obj.cls is not None
            and run.interpreter.find(obj.cls, "__getitem__") is None
            and run.interpreter.find(obj.cls, "__iter__") is not None
        ):
            return True
    return False


def _asked(node: ast.FunctionDef) -> bool:
    """Whether a `__getitem__` reads the index it is given before it puts another in its place."""
    index = node.args.args[1].arg
    uses = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == index]
    first = min(uses, key=lambda n: (n.lineno, isinstance(n.ctx, ast.Store), n.col_offset), default=None)
    return first is not None and isinstance(first.ctx, ast.Load)
