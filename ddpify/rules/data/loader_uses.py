"""Other uses of a training loader and its data, which a share of the data does not serve."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.library.paths import COPIES, DDPS
from ddpify.facts.model import NOTHING, Call, Func, Lit, New, Obj
from ddpify.facts.tree import walk
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import draws
from ddpify.rules.data.loader_call import CODE
from ddpify.rules.data.stream import ITERABLE
from ddpify.rules.model.batch_norm import any_holds_batch_norm

_HARMLESS = tuple(
    """
        enumerate len tqdm. iter zip print next isinstance itertools. range list torch.utils.data. type hasattr getattr prefetch_generator.
        fastprogress. monai.utils.first
        rich.progress.track alive_progress.alive_it
        reversed id str super
    """.split()
)


_STATISTICS = frozenset(("torch.optim.swa_utils.update_bn",))  # what goes through a loader's batches for numbers of all of the data


def findings(context: Context) -> Iterator[Change | Finding]:
    """Other uses of a training loader, which holds this rank's share only, and data sets that its indices do not reach."""
    run, loaders = context.facts.after, set(context.facts.loaders) - context.facts.whole_loaders
    takers: dict[ast.Call, Call] = {}
    for call in run.trace.calls:
        if call.func.paths() and not any(p.startswith(_HARMLESS) for p in call.func.paths()) and any(a.objs & loaders for a in call.args):
            takers.setdefault(call.node, call)
    for node, call in takers.items():
        why = f"`{ast.unparse(node.func)}` sees this rank's part of the data only"
        of_all = _global_batches(context, call) if call.func.paths() <= _STATISTICS else None
        yield of_all or context.manual(CODE, node, why, "give it a loader over all of the data", level=Safety.REVIEW)
    yield from _statistics_of_a_share(context)
    for loader, data in ((o, data) for o in context.facts.loaders for data in run.attribute(o, "dataset").instances()):
        methods = run.interpreter.find(data.cls, "__getitem__") if data.cls is not None else None
        for func in (methods or NOTHING).objs:
            method = func.node if isinstance(func, Func) else None
            if not isinstance(method, ast.FunctionDef) or len(method.args.args) < 2 or _reads_index(method):
                continue
            if not _draws_apart(context, loader, func):
                why = "this data set ignores the index it is asked for: a sampler cannot give each rank other samples"
                yield context.manual(CODE, method, why, "draw the sample from the index, or from a generator seeded by rank")


def _draws_apart(context: Context, loader: New, method: Obj) -> bool:
    """Whether a sample is drawn, whatever its index is, from a generator that each rank seeds in its own way before it trains.

    The workers of a loader are seeded when the loop over it starts: one that starts before has the same seed on all ranks.
    """
    run = context.facts.after
    workers = run.attribute(loader, "num_workers")
    early = any(loader in a.objs for c in run.calls_of("iter") if not c.loops for a in c.args)
    drawn = draws.of(context, frozenset((method,)))
    return bool(drawn.generators) and (not early or not workers.objs or all(isinstance(o, Lit) and o.value == 0 for o in workers.objs))


def _statistics_of_a_share(context: Context) -> Iterator[Finding]:
    """Loops over training data that run a network which is not trained, in training mode: for its batch norm's statistics."""
    run, loaders = context.facts.after, set(context.facts.loaders) - context.facts.whole_loaders
    trained = context.facts.trained
    for loop in context.tree.of(ast.For):
        if loop in context.facts.training_loops or not run.value(loop).batches() & loaders:
            continue
        for call in (c for c in run.trace.calls if any(each.node is loop for each in c.loops)):
            networks = {o for o in call.func.instances() if o not in trained and o.path not in DDPS and _is_network(context, o)}
            copied = {o for o in networks if o.path in COPIES}
            held = networks - copied | (trained if copied else set())
            if networks and _in_training_mode(context, call) and any_holds_batch_norm(context, held):
                why = "batch norm computes its statistics here from this rank's part of the data"
                fix = "loop over a loader of all of the data, with batches as large as those of all ranks together"
                yield context.manual(CODE, call.node, why, fix, level=Safety.REVIEW)
                break


def _is_network(context: Context, obj: New) -> bool:
    return context.facts.after.interpreter.is_module(obj) or obj.path.startswith("torch.nn.") or obj.path in COPIES


def _in_training_mode(context: Context, forward: Call) -> bool:
    """Whether the network that a call runs was last put in training mode."""
    modes = (c for name in ("train", "eval") for c in context.facts.after.calls_named(name) if c.receiver.objs & forward.func.objs)
    last = max((c for c in modes if c.order < forward.order), key=lambda c: c.order, default=None)
    off = last is not None and any(isinstance(o, Lit) and not o.value for v in last.args for o in v.objs)
    return last is not None and last.method == "train" and not off


def _global_batches(context: Context, call: Call) -> Change | None:
    """Give a call batches of all of the data, as large as all ranks' together, in the place of a loader that has this rank's share."""
    run, loader = context.facts.after, call.node.args[0] if call.node.args else None
    instances = call.args[0].instances() if isinstance(loader, (ast.Name, ast.Attribute)) else frozenset()
    sets = {d for o in instances for d in run.attribute(o, "dataset").instances()}
    other = any(run.attribute(o, "batch_sampler").objs for o in instances) or any(
        ITERABLE in run.interpreter.library_bases(d.cls) for d in sets if d.cls
    )
    if loader is None or not instances <= set(context.facts.loaders) or not instances or other or not context.facts.is_edited(loader):
        return None
    same = ", ".join(f"{name}={{0}}.{name}" for name in ("num_workers", "collate_fn", "drop_last"))
    asked = [k.value for o in instances if isinstance(o.node, ast.Call) for k in o.node.keywords if k.arg == "shuffle"]
    shuffled = any(not isinstance(value, ast.Constant) or value.value for value in asked)
    order = "shuffle=True, " if shuffled else ""  # one class after another, the batches would vary too little
    text = f"DataLoader({{0}}.dataset, {{0}}.batch_size * {context.names['world_size']}, {order}{same})"
    why = "these statistics are computed over all of the data, in batches as large as those of all ranks together"
    imports = ("from torch.utils.data import DataLoader",)
    return Change(CODE, why, context.tree.shown, loader, (Replace(loader, text, (loader,)),), imports)


def _reads_index(node: ast.FunctionDef) -> bool:
    """Whether a `__getitem__` reads the index it is given before it puts another in its place."""
    index = node.args.args[1].arg
    uses = [n for n in walk(node) if isinstance(n, ast.Name) and n.id == index]
    first = min(uses, key=lambda n: (n.lineno, isinstance(n.ctx, ast.Store), n.col_offset), default=None)
    return first is not None and isinstance(first.ctx, ast.Load)
