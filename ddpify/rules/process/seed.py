"""Give all ranks the same random numbers before training, and different ones in it.

What it does: a script that draws something before training that all ranks must share (a split, a permutation, a subset) and does not seed
    it starts from rank 0's seed. Before each training of a script that is seeded, or takes up the random state of a checkpoint, each
    rank moves its seed on by its rank. Sets of texts are sorted where their order counts.
Why: ranks that split the data differently train on each other's validation set; ranks with one seed draw the same dropout masks, noise and
    augmentation.
Safety: NOTE; rank 0 goes on with the script's own seed, so a group of one trains as before. REVIEW where the script seeds its ranks apart
    before it draws what they must share.
References: https://docs.pytorch.org/docs/stable/notes/randomness.html
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ddpify.edits import InsertBefore, Replace
from ddpify.facts import batch_source, library
from ddpify.facts.model import Call, New
from ddpify.facts.tree import inside, is_main
from ddpify.records import dataclass
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import draws
from ddpify.rules.loop.branches import has_own_test
from ddpify.rules.process import set_order
from ddpify.rules.process.drawn_weights import (
    OTHER_SEEDS,
    SEEDS,
    drawn_again,
    drawn_and_read,
    given_seeds,
    in_a_buffer,
    inside_module,
    is_in,
    loops_of_runs,
    random_network,
    seeded,
    seeded_apart,
)

CODE = "DDP103"
TITLE = "seed the random numbers of each rank"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "nothing is drawn before training and nothing seeded",
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        frame="loop",
    ),
    Example(
        "a split by a generator of its own",
        "part, rest = random_split(test_set, [120, 40], generator=torch.Generator().manual_seed(0))\n",
        frame="end",
    ),
    Example(
        "random numbers that a data set draws for a sample",
        "class Noisy(Dataset):\n"
        "    def __len__(self):\n"
        "        return 640\n"
        "\n"
        "    def __getitem__(self, index):\n"
        "        return torch.randn(8), index % 2\n",
        frame="start",
    ),
    Example(
        "a method of the script's own that is called like one that draws",
        "class Deck:\n"
        "    def shuffle(self):\n"
        "        return self\n"
        "cards = Deck().shuffle()\n",
        frame="start",
    ),
    Example(
        "a set that is only asked for what it holds",
        "missing = '<pad>' not in set(open('words.txt').read().split())\n",
        frame="start",
    ),
    Example(
        "numbers of a generator of NumPy that has a seed",
        "offsets = np.random.default_rng(3).random(640)\n",
        frame="start",
    ),
    Example(
        "an order drawn by a generator that the script seeds",
        "order = list(range(640))\n"
        "random.Random(7).shuffle(order)\n",
        frame="start",
    ),
    Example(
        "an order drawn by a generator that the clock seeds",
        "order = list(range(640))\n"
        "random.Random(time.time()).shuffle(order)\n",
        "order = list(range(640))\n"
        "random.Random(same_on_all_ranks(time.time())).shuffle(order)\n",
        frame="start",
    ),
    Example(
        "a seeded script",
        "torch.manual_seed(1)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        "torch.manual_seed(1)\n"
        "if rank != 0:\n"
        "    torch.manual_seed(torch.initial_seed() + rank)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        frame="loop",
    ),
    Example(
        "a seed for each epoch",
        "for epoch in range(9):\n"
        "    torch.manual_seed(epoch)\n"
        "    torch.cuda.manual_seed_all(epoch)\n"
        "    train(epoch)\n",
        "for epoch in range(9):\n"
        "    torch.manual_seed(epoch + 1000 * rank)\n"
        "    torch.cuda.manual_seed_all(epoch + 1000 * rank)\n"
        "    train(epoch)\n",
        frame="loop",
    ),
    Example(
        "words numbered in the order of a set",
        "words = open('words.txt').read().split()\n"
        "number = {word: i for i, word in enumerate(set(words) | {'<pad>'})}\n",
        "words = open('words.txt').read().split()\n"
        "number = {word: i for i, word in enumerate(sorted(set(words) | {'<pad>'}))}\n",
        frame="start",
    ),
    Example(
        "a seed for every generator in use",
        "random.seed(1)\n"
        "np.random.seed(1)\n"
        "torch.manual_seed(1)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        "random.seed(1)\n"
        "np.random.seed(1)\n"
        "torch.manual_seed(1)\n"
        "if rank != 0:\n"
        "    torch.manual_seed(torch.initial_seed() + rank)\n"
        "    np.random.seed(torch.initial_seed() % 2**32)\n"
        "    random.seed(torch.initial_seed() % 2**32)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        frame="loop",
    ),
    Example(
        "a function of a package that seeds all generators",
        "def seed_all():\n"
        "    from transformers import set_seed\n"
        "    set_seed(1)\n"
        "seed_all()\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        "def seed_all():\n"
        "    from transformers import set_seed\n"
        "    set_seed(1)\n"
        "seed_all()\n"
        "if rank != 0:\n"
        "    torch.manual_seed(torch.initial_seed() + rank)\n"
        "    np.random.seed(torch.initial_seed() % 2**32)\n"
        "    random.seed(torch.initial_seed() % 2**32)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        frame="loop",
    ),
)  # fmt: skip


_DRAWS = tuple(
    """
        torch.utils.data.random_split torch.randperm numpy.random. random. sklearn.model_selection. sklearn.datasets.make_
        sklearn.utils.shuffle torch.rand torch.randn torch.randint torch.normal torch.bernoulli torch.multinomial
    """.split()
)
_RESTORES = {
    "torch.set_rng_state": "torch",
    "torch.random.set_rng_state": "torch",
    "torch.cuda.set_rng_state": "torch",
    "torch.cuda.set_rng_state_all": "torch",
    "numpy.random.set_state": "numpy",
    "random.setstate": "random",
}


_OTHER_ORDER = (
    "an order is drawn here during training, and each rank draws another: samples would be missed and repeated",
    "draw it from a torch.Generator of its own that has the same seed on all ranks",
)
_SAME_BATCH = "all ranks draw the same first batch here, since what is drawn after it must be alike on them: they train on the same samples"
_SEEDED_BY_SYSTEM = frozenset(
    "numpy.random.default_rng numpy.random.RandomState random.Random random.SystemRandom numpy.random.seed random.seed torch.seed".split()
)


def unseeded(context: Context) -> list[tuple[Call, str]]:
    """Draws before the training loop that nothing seeds, with the generator they draw from."""
    run = context.facts.after
    first = min((loop.backward.order for loop in context.facts.loops), default=0)
    training = context.facts.training_loops
    trains = [call for call in run.trace.calls if any(loop.node in training for loop in call.loops)]
    early = [call for call in run.trace.calls if call.order <= first and not any(loop.node in training for loop in call.loops)]
    out = [(call, root) for call in early for root in dict.fromkeys(_drawn_from(call)) if _is_unseeded(context, call, root)]
    out += [(call, "torch") for call in early if drawn_and_read(context, call)][:1]
    out += [(call, "torch") for call in _orders(context) if call.order <= first and _is_unseeded(context, call, "torch")]
    feeding = set(context.facts.feeding)
    whole = context.facts.whole_loaders
    trains += [call for call in early if whole or any(v.batches() & feeding for v in call.args)]  # what is computed of the data before
    drawn = {obj: random_network(context, obj) for obj in {o for call in trains for o in call.func.objs}}
    return out + [(call, "torch") for call in trains if any(drawn[obj] for obj in call.func.objs)][:1]


def _orders(context: Context) -> list[Call]:
    """The making of loaders that every rank goes through by itself, in an order that it draws, for the rows of a training data set."""
    run, feeding = context.facts.after, set(context.facts.feeding)
    into = {o for loader in context.facts.loaders for o in run.attribute(loader, "dataset").batches()}
    apart = [o for o in into - feeding - context.sharded_loaders if isinstance(o, New) and run.is_loader(o)]
    return [call for o in apart if not run.keeps_order(o) for call in run.calls(o.node)]


def _drawn_from(call: Call) -> Iterator[str]:
    """The generators that the call of a library's function or method draws from."""
    yield from library.drawn_by(call)
    for path in sorted(call.func.paths()):
        root = path.partition(".")[0]
        in_order = "make_" not in path and "shuffle" not in call.keywords
        unordered = root == "sklearn" and in_order and not path.endswith(("train_test_split", "ShuffleSplit", "shuffle"))
        if root in SEEDS and path.startswith(_DRAWS) and not path.endswith(library.NO_DRAWS) and not unordered:
            yield root


def _is_unseeded(context: Context, call: Call, root: str) -> bool:
    """Whether all ranks draw by themselves from a generator that nothing seeds."""
    given = [call.keywords[k] for k in library.GENERATORS if k in call.keywords]
    if seeded(context, SEEDS[root], call) or any(not seed.of_kind("drawn") for seed in given):
        return False
    if (inside_module(context, call) and not in_a_buffer(context, call)) or _is_sent(context, call):
        return False
    return not any(o.kind == "rank" for _, value in call.tests for o in value.origins)  # drawn by some ranks, for themselves


def _is_sent(context: Context, draw: Call) -> bool:
    """Whether what is drawn is handed to a function, there and then, that gives all ranks rank 0's."""
    around = {*context.facts.tree_of(draw.node).ancestors(draw.node)}
    sent = (c for c in context.facts.after.calls_of("torch.distributed.broadcast") if c.args and not around.isdisjoint(c.stack))
    return any(draw.node in c.args[0].of_kind("drawn") for c in sent)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Agree on the seed, and reseed before the first training loop."""
    run = context.facts.after
    yield from _undisclosed(context)
    unshared = context.once(unseeded)
    if apart := [(call, seed) for call, _ in unshared if (seed := seeded_apart(context, call)) is not None]:
        yield _seeded_apart(context, *apart[0])
        unshared = [(call, root) for call, root in unshared if seeded_apart(context, call) is None]
    if unshared and not any("agree_on_seed" in c.method for c in run.trace.calls):
        yield _from_rank_zero(context, unshared)
    seeds = given_seeds(context)
    restored = [c for c in run.trace.calls if c.func.paths() & _RESTORES.keys() and not _of_a_helper(context, c)]
    yield from _made_again(context)
    yield from set_order.sort_sets(context, CODE)
    if not any(argument.of_kind("rank") for c in seeds for argument in c.args):
        yield from _reseeded(context, seeds, [root for _, root in unshared], restored)


def _seeded_apart(context: Context, draw: Call, seed: Call) -> Finding:
    """The finding for what is drawn by each rank for itself, and read by all of them as if it were one."""
    node = next((n for n in (draw.node, *draw.stack) if context.facts.is_edited(n)), seed.node)
    why = "this is drawn by each rank for itself, since its seed is another on each rank, where all of them must have the same"
    return context.manual(CODE, node, why, "seed all ranks alike until training begins, and apart from there on", level=Safety.REVIEW)


def _from_rank_zero(context: Context, unshared: list[tuple[Call, str]]) -> Change:
    """Let all ranks start from rank 0's seed, for what they draw before training."""
    first = unshared[0][0]
    node = next((n for n in (first.node, *first.stack) if context.facts.is_edited(n)), context.tree.root.body[0])
    roots = dict.fromkeys(draws.GENERATOR_OF.get(root, root) for _, root in unshared if root != "torch")
    needs = ("agree_on_seed", *(f"seed:{draws.generator_name(context, root)}" for root in roots))
    imports = ("import torch", *(text for root in roots for text in draws.import_of(context, root)))
    why = "random numbers drawn here must be the same on all ranks, so that all use rank 0's seed"
    return Change(CODE, why, context.tree.shown, node, (), imports, Safety.NOTE, needs=needs)


def _reseeded(context: Context, seeds: list[Call], unshared: list[str], restored: list[Call]) -> Iterator[Change | Finding]:
    """Let each rank draw its own numbers in each training; `unshared` are the generators that nothing seeds."""
    trainings = _trainings(context)
    if not trainings:
        return
    first = trainings[0]
    again = [c for c in restored if is_in(c, first.around)]
    if again:
        why = "a random state is restored during training: all ranks draw the same dropout, noise and augmentation from here on"
        fix = f"torch.manual_seed(... + {context.names['rank']})"
        yield context.manual(CODE, again[-1].node, why, fix, level=Safety.REVIEW)
        return
    asked = [*seeds, *(c for c in context.facts.after.trace.calls if draws.seed_of(c) is not None and c.func.paths() & OTHER_SEEDS)]
    repeated = {c.node: c for c in asked if any(t.runs(c) for t in trainings)}
    for call in repeated.values():
        yield _per_rank(context, call)
    before = [c for c in seeds if c.node not in repeated]
    for i, training in enumerate(trainings):
        since = [c for c in before if i and trainings[i - 1].order < c.order < training.order]
        if not any(earlier.branches <= training.branches for earlier in trainings[:i]):  # none of them may have run
            yield from _moved_on(context, training, _generators(context, before, unshared, restored))
        elif since:
            yield from _moved_on(context, training, _generators(context, since, [], []))


@dataclass(frozen=True)
class _Training:
    """A statement that trains, the loops of it around a backward call, the order of that call, and the branches that it is run on."""

    node: ast.stmt
    around: list[ast.AST]
    order: int
    branches: frozenset[tuple[ast.AST, bool]]

    def runs(self, call: Call) -> bool:
        """Whether a call is made while the statement runs."""
        return is_in(call, self.around) or not inside(self.node).isdisjoint((call.node, *call.stack))


def _trainings(context: Context) -> list[_Training]:
    """The statements that train, in the order in which they run."""
    out: dict[ast.stmt, _Training] = {}
    for backward in sorted((loop.backward for loop in context.facts.loops), key=lambda call: call.order):
        around = _loops_of_training(context, backward)
        node = _training_statement(context, backward, around)
        if node is not None:
            out.setdefault(node, _Training(node, around, backward.order, _branches(context, backward, node)))
    return list(out.values())


def _branches(context: Context, backward: Call, node: ast.stmt) -> frozenset[tuple[ast.AST, bool]]:
    """The branches that a statement of a backward call stands on, in its function and in those that call it."""
    out, within = set[tuple[ast.AST, bool]](), inside(node)
    for start in (node, *(call for call in backward.stack if call not in within)):
        tree = context.facts.tree_of(start)
        for part, up in itertools.pairwise((start, *tree.ancestors(start))):
            if isinstance(up, ast.If) and part is not up.test and not is_main(up):
                out.add((up, part in up.body))
    return frozenset(out)


def _moved_on(context: Context, training: _Training, generators: set[str]) -> Iterator[Change | Finding]:
    """Each rank moves the seeds of some generators on by its rank before a training, and before its first batch is drawn."""
    node, between = _first_drawn(context, training)
    lines, imports = _seed_lines(context, node, generators)
    if lines and between:
        fix = f"draw it after the others, behind torch.manual_seed(torch.initial_seed() + {context.names['rank']})"
        yield context.manual(CODE, node, _SAME_BATCH, fix, level=Safety.REVIEW)
        node = training.node
    if lines:
        rank = context.names["rank"]
        why = "from here on, each rank draws different random numbers for dropout, noise and augmentation"
        code = f"if {rank} != 0:\n" + "".join(f"    {line}\n" for line in lines)
        edit = InsertBefore(node, code.format(rank))
        yield Change(CODE, why, context.tree.shown, node, (edit,), tuple(imports), Safety.NOTE)


def _first_drawn(context: Context, training: _Training) -> tuple[ast.stmt, bool]:
    """The statement that draws the first batch of a training, before it or in it; whether something else is drawn between the two."""
    block = context.facts.tree_of(training.node).block(training.node)
    earlier = [s for s in block[: block.index(training.node)] if not isinstance(s, (ast.FunctionDef, ast.ClassDef))]
    batches = [o for o in context.facts.feeding if o.path == batch_source.DRAW]
    first = next((i for i, s in enumerate(earlier) if any(not inside(s).isdisjoint((o.node, *o.stack)) for o in batches)), None)
    if first is None:
        return training.node, False
    made, between = {o.node for o in batches}, {n for s in earlier[first:] for n in inside(s)}
    others = (c for c in context.facts.after.trace.calls if c.node not in made and not between.isdisjoint((c.node, *c.stack)))
    return earlier[first], any(any(_drawn_from(call)) for call in others)


def _loops_of_training(context: Context, backward: Call) -> list[ast.AST]:
    """The loops around a backward call, but for those that train several times."""
    return [loop.node for loop in backward.loops if loop.node not in loops_of_runs(context)]


def _made_again(context: Context) -> Iterator[Change | Finding]:
    """Networks that each of several trainings makes, with weights that ranks would draw apart by then and no wrapper gives them."""
    why = "each training draws these weights anew, and ranks draw apart by then: all have those that rank 0 draws"
    for call in context.once(drawn_again):
        statement = context.tree.statement(call.node) if context.facts.is_edited(call.node) else None
        if statement is not None:
            yield draws.under_rank_zero(context, CODE, why, statement, {"torch"})
        else:
            yield context.manual(CODE, call.node, why, "give it a seed that is the same on all ranks")


def _generators(context: Context, seeds: list[Call], unshared: list[str], restored: list[Call]) -> set[str]:
    """The generators in use: those that are seeded, those that nothing seeds and those whose state is taken up, with torch's."""
    imported = {n.name for t in context.facts.trees.values() for n in t.of(ast.alias) if isinstance(t.parent[n], ast.Import)}
    seeded = {path for call in seeds for path in call.func.paths()}
    used = {root for root, path in SEEDS.items() if path in seeded} | set(unshared)
    used |= {_RESTORES[path] for call in restored for path in call.func.paths() if path in _RESTORES}
    used |= {"torch"} if unshared or restored else set()
    used |= {"torch", *({"numpy", "random"} & imported)} if any(map(draws.seeds_all, seeds)) else set()
    return {draws.GENERATOR_OF.get(root, root) for root in used}


def _training_statement(context: Context, backward: Call, around: list[ast.AST]) -> ast.stmt | None:
    """The edited statement that runs the training: the outermost of the loops around a backward call, or a call that leads there."""
    node = around[0] if around else None
    if node is None or (context.facts.is_edited(node) and isinstance(node, ast.stmt)):
        return node
    calls = [n for n in backward.stack if context.facts.is_edited(n)]
    return context.tree.statement(calls[-1]) if calls else None


def _seed_lines(context: Context, node: ast.stmt, generators: set[str]) -> tuple[list[str], list[str]]:
    """What moves each generator on by the rank, and the imports that it needs."""
    lines, imports = ["torch.manual_seed(torch.initial_seed() + {0})"] if "torch" in generators else [], ["import torch"]
    for root in sorted(generators - {"torch"}):
        module = draws.generator_name(context, root, node)
        imports += draws.import_of(context, root, node)
        if "torch" in generators:
            lines.append(f"{module}.seed(torch.initial_seed() % 2**32)")
        else:
            draw = "randint" if root == "numpy" else "randrange"
            lines.append(f"{module}.seed({module}.{draw}(2**31) + {{0}})")
    return lines, imports


def _of_a_helper(context: Context, call: Call) -> bool:
    """Whether a random state is restored by the helper that lets all ranks draw what rank 0 draws."""
    return context.broadcasts(context.facts.tree_of(call.node).function(call.node))


def _per_rank(context: Context, call: Call) -> Change | Finding:
    """A seed that is set again and again while training."""
    seed = draws.seed_of(call) or call.node
    if not context.facts.is_edited(seed):
        why = "the seed is set during training: all ranks would draw the same dropout, noise and augmentation from here on"
        return context.manual(CODE, seed, why, f"{ast.unparse(seed)} + 1000 * dist.get_rank()", level=Safety.REVIEW)
    why = "the seed is set during training: with the rank added, each rank goes on drawing different numbers"
    edit = Replace(seed, f"{{0}} + 1000 * {context.names['rank']}", (seed,))
    return Change(CODE, why, context.tree.shown, seed, (edit,), level=Safety.NOTE)


def _undisclosed(context: Context) -> Iterator[Change | Finding]:
    """Generators that nobody can seed from outside."""
    yield from _reordered(context)
    first = min((loop.backward.order for loop in context.facts.loops), default=0)
    for node in dict.fromkeys(
        call.node for call in _orders(context) if call.order > first and not draws.by_rank_zero(context, [call.node])
    ):
        yield context.manual(CODE, node, *_OTHER_ORDER)
    calls = (c for c in context.facts.after.trace.calls if not c.node.args and not c.node.keywords)
    why = "this generator is seeded by the operating system: it draws different numbers on each rank"
    asked = [call for call in calls if call.func.paths() & _SEEDED_BY_SYSTEM and not _goes_on_by_itself(context, call)]
    for node in dict.fromkeys(call.node for call in asked):
        yield context.manual(CODE, node, why, "give it a seed that is the same on all ranks")
    yield from _of_own_seed(context)


def _of_own_seed(context: Context) -> Iterator[Change | Finding]:
    """Generators that are given a seed which each rank finds for itself: the clock, the process."""
    first = min((loop.backward.order for loop in context.facts.loops), default=0)
    done = set[ast.AST]()
    for call in context.facts.after.trace.calls:
        seed, known = draws.seed_of(call), call.func.paths() & _SEEDED_BY_SYSTEM.union(SEEDS.values())
        if seed is None or call.node in done or call.order > first or not (known or draws.seeds_all(call)):
            continue
        value = context.facts.after.value(seed)
        if value.of_kind("rank") or not context.differs(value):
            continue
        done.add(call.node)
        if context.facts.is_edited(seed) and not has_own_test(context, call):  # all ranks ask rank 0, or none does
            why = "each rank would find another seed here, and draw other orders and splits: all use rank 0's"
            edit = Replace(seed, f"{context.names['same_on_all_ranks']}({{0}})", (seed,))
            yield Change(CODE, why, context.tree.shown, seed, (edit,), needs=("same_on_all_ranks",))
        else:
            why = "each rank finds another seed here, and draws other orders and splits"
            yield context.manual(CODE, seed, why, "give it a seed that is the same on all ranks")


def _goes_on_by_itself(context: Context, call: Call) -> bool:
    """Whether the generator that all use is seeded anew while training, where each rank draws its own numbers anyway."""
    of_all = call.func.paths() <= {*SEEDS.values(), "torch.seed"}
    return of_all and bool(context.facts.loops) and all(is_in(call, _loops_of_training(context, t.backward)) for t in context.facts.loops)


def _reordered(context: Context) -> Iterator[Change | Finding]:
    """Orders of the training data that a method of the data set or sampler draws between epochs: all ranks draw rank 0's."""
    why = "random numbers for the data set must be the same on all ranks: all use those that rank 0 draws"
    for node, found in context.once(draws.redrawn).items():
        statement = context.tree.statement(node) if context.facts.is_edited(node) else None
        known = isinstance(statement, ast.Expr) and not found.unshared
        if statement is not None and known:
            yield draws.under_rank_zero(context, CODE, why, statement, found.generators)
        else:
            yield context.manual(CODE, node, *_OTHER_ORDER)
