"""Let the loader workers of all ranks draw different numbers.

What it does: a `worker_init_fn` that seeds a generator with numbers that are alike on all ranks adds the rank; so does the seed of a
    `generator` that a training loader takes its workers' seeds from.
Why: torch seeds each worker by a number that every rank draws for itself; a seed of the script's own undoes that, and all ranks augment
    their samples in the same way.
Safety: safe; rank 0's workers draw what they drew.
References: https://docs.pytorch.org/docs/stable/notes/randomness.html#dataloader
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Func, New
from ddpify.facts.tree import calls_in, last_name, names_read, names_stored, walked
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument

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


def _function(context: Context, func: Func) -> Iterator[Change | Finding]:
    """The seeds that a `worker_init_fn` sets."""
    calls = calls_in(func.node)
    if any(last_name(c.func) in _OWN for c in calls):
        return
    for call in calls:
        if context.library_path(func.file, call.func) in _SEEDS and call.args and not _has_rank(context, func, call.args[0]):
            yield _added(context, call.args[0], "1000 * {rank}")


def _has_rank(context: Context, func: Func, seed: ast.expr) -> bool:
    """Whether a seed is computed from the rank, in a function that only workers may run: from a name of the module that is the rank."""
    own = {n.id for n in names_stored(func.node)} | {n.arg for n in walked(func.node) if isinstance(n, ast.arg)}
    names = {n.id for n in names_read(func.node)} - own
    run = context.facts.after
    return context.asks_for_rank(seed) or any(run.attribute(func.file, name).of_kind("rank") for name in names)  # type: ignore[arg-type]


def _generator(context: Context, loader: New, seen: set[ast.AST]) -> Iterator[Change | Finding]:
    """The seed of a generator that only gives the workers of training loaders theirs."""
    run = context.facts.after
    mine = run.attribute(loader, "generator").instances()
    if not mine:
        return
    trained = {o.node for o in context.facts.loaders}
    for call in run.trace.calls:
        used = call.keywords.get("generator")
        if used is not None and used.instances() & mine and call.node not in trained:
            return  # what it draws there must be the same on all ranks
    for call in run.trace.calls:
        if call.method == "manual_seed" and call.receiver.instances() & mine and call.node.args and call.node not in seen:
            seen.add(call.node)
            if not any(v.of_kind("rank") for v in call.args):
                yield _added(context, call.node.args[0], "{rank}")


def _added(context: Context, seed: ast.expr, more: str) -> Change | Finding:
    if not context.facts.is_edited(seed):
        fix = f"{ast.unparse(seed)} + {more.format(rank='dist.get_rank()')}"
        return context.manual(CODE, seed, "the loader workers of all ranks have the same seeds, and would draw the same augmentation", fix)
    more = more.format(rank=context.names["rank"])
    zero = isinstance(seed, ast.Constant) and seed.value == 0
    edit = Replace(seed, more) if zero else Replace(seed, f"{{0}} + {more}", (seed,))
    return Change(CODE, _WHY, context.tree.shown, seed, (edit,))
