"""Networks whose weights are drawn at random, and what gives their generators a seed: ranks must begin with the same ones."""

from __future__ import annotations

import ast
from collections.abc import Container

from ddpify.facts import batch_source, library
from ddpify.facts.model import NOTHING, Call, New, Obj, Part
from ddpify.facts.tree import is_main_test
from ddpify.rules.context import Context
from ddpify.rules.data import draws

SEEDS = {"torch": "torch.manual_seed", "numpy": "numpy.random.seed", "random": "random.seed", "sklearn": "numpy.random.seed"}
OTHER_SEEDS = frozenset(("torch.cuda.manual_seed", "torch.cuda.manual_seed_all"))
_READ = frozenset("clone detach norm sum mean std var abs pow square max min stack cat item tolist numpy".split())  # of weights


def seeded(context: Context, seed: str, draw: Call) -> bool:
    """Whether a generator has been seeded by the script when something is drawn, whatever it was asked to do."""
    tests, calls = {node for node, _ in draw.tests}, context.once(seeding_calls)
    before = [c for c in calls[seed] if c.order < draw.order and all(node in tests or is_main_test(node) for node, _ in c.tests)]
    return bool(before) and seeded_apart(context, draw) not in before


def seeding_calls(context: Context) -> dict[str, list[Call]]:
    """The calls of the function that seeds each generator, and of those that seed all."""
    run = context.facts.after
    return {seed: [c for path in (seed, *library.SEEDS_ALL) for c in run.calls_of(path)] for seed in SEEDS.values()}


def drawn_and_read(context: Context, call: Call, again: bool = False) -> set[New]:
    """The trained networks whose weights, which each rank drew, a call copies or reads before a wrapper gives all ranks rank 0's."""
    run = context.facts.after
    owners: set[Obj] = {o for o in call.func.instances() if run.interpreter.is_network(o)}  # it computes with them
    if call.method == "load_state_dict" or call.func.paths() & library.COPIES:
        owners |= {o for v in call.args[:1] for o in (*v.instances(), *v.of_kind("parameters"), *v.of_kind("state"))}
    if call.method in _READ:
        weights = {p for v in (call.receiver, *call.args[:1]) for p in run.parameters(v) | v.of_kind("state")}
        owners |= {o for p in weights if isinstance(p, (New, Part)) for o in run.roots(p)}
    above = context.facts.tree_of(call.node).parent[call.node] if owners else None
    sent = isinstance(above, ast.Call) and "torch.distributed.broadcast" in run.value(above.func).paths()
    if not owners or sent or inside_module(context, call):  # what a wrapped model holds is broadcast with it
        return set()
    trained = (o for o in owners if isinstance(o, New) and run.part_of((o,), context.facts.trained))
    return {o for o in trained if not _is_broadcast(context, o, call.order) and _has_drawn_weights(context, o, again)}


def random_network(context: Context, obj: object, again: bool = False) -> bool:
    """Whether a network that is not trained, and so not broadcast by a wrapper, feeds the loss with the weights it was drawn with."""
    run = context.facts.after
    if not isinstance(obj, New) or not run.interpreter.is_network(obj) or run.part_of((obj,), context.facts.trained):
        return False
    return _has_drawn_weights(context, obj, again)


def _has_drawn_weights(context: Context, obj: New, again: bool = False, depth: int = 0) -> bool:
    """Whether a network may have weights that its rank drew, or is a copy of such a one: nothing seeded, loaded or broadcast them.

    What seeds the first training does not seed one that is made `again` for each of several.
    """
    known = context.once(_with_drawn_weights)
    if (obj, again, depth) not in known:
        known[obj, again, depth] = _draws_weights(context, obj, again, depth)
    return known[obj, again, depth]


def _with_drawn_weights(context: Context) -> dict[tuple[New, bool, int], bool]:
    """Whether networks have weights that their rank drew, as far as it was asked."""
    return {}


def _draws_weights(context: Context, obj: New, again: bool, depth: int) -> bool:
    run = context.facts.after
    creations = run.calls(obj.node)
    originals = run.memory.get((obj, library.ORIGINAL), NOTHING).instances() if obj.path in library.COPIES else frozenset()
    sources = {(o, call.order) for o in originals for call in creations}
    tests = {node for call in creations for node, _ in call.tests}
    for call in run.calls_named("load_state_dict"):
        if obj in call.receiver.objs and all(node in tests for node, _ in call.tests):
            sources = {(o, call.order) for given in call.args[:1] for o in given.of_kind("state") if isinstance(o, New) and o is not obj}
            if not sources:
                return False
    if sources:
        apart = (o for o, at in sources if depth < 4 and not _is_broadcast(context, o, at))
        return any(_has_drawn_weights(context, o, again, depth + 1) for o in apart)
    known = not again and bool(creations) and all(seeded(context, SEEDS["torch"], call) for call in creations)
    return (obj.cls is not None or obj.path in ("torch.nn.Sequential", "torch.nn.Linear")) and not known


def _is_broadcast(context: Context, obj: New, order: int) -> bool:
    """Whether a network is wrapped at that time, which has given it rank 0's weights."""
    run = context.facts.after
    made = max((call.order for call in run.calls(obj.node) if call.order < order), default=-1)
    for wrapper, calls in context.once(_wrapper_calls).items():
        wraps = any(made < call.order < order for call in calls)
        if wraps and run.part_of((obj,), run.attribute(wrapper, "module").objs):
            return True
    return obj.path in library.DDPS


def _wrapper_calls(context: Context) -> dict[New, list[Call]]:
    """The wrappers that are called somewhere, with the calls of them and those that make them: an edit's has none of these."""
    run, found = context.facts.after, dict[New, list[Call]]()
    for call in run.trace.calls:
        for wrapper in (o for o in call.func.instances() if o.path in library.DDPS):
            found.setdefault(wrapper, list(run.calls(wrapper.node))).append(call)
    return found


def in_a_buffer(context: Context, call: Call) -> bool:
    """Whether what is drawn becomes a buffer, which apex's wrapper does not broadcast."""
    buffers = [v for c in context.facts.after.calls_named("register_buffer") for v in (*c.args, *c.keywords.values())]
    return context.apex_ddp and any(call.node in v.of_kind("drawn") for v in buffers)


def inside_module(context: Context, call: Call) -> bool:
    """Whether a draw happens while a model is built that is trained: its parameters are broadcast at the wrap."""
    run, known = context.facts.after, context.once(_builds_trained)
    for above in call.stack:
        if above not in known:
            instances = {o for c in run.calls(above) for o in c.result.instances()}
            known[above] = run.part_of(filter(run.interpreter.is_module, instances), context.facts.trained)
    return any(known[above] for above in call.stack)


def _builds_trained(context: Context) -> dict[ast.AST, bool]:
    """Whether calls build a model that is trained, as far as it was asked."""
    return {}


def loops_of_runs(context: Context) -> set[ast.AST]:
    """The loops that train several times: each pass makes anew what is trained in it."""
    run = context.facts.after
    return {loop.node for o in context.facts.trained if isinstance(o, New) for call in run.calls(o.node) for loop in call.loops}


def given_seeds(context: Context) -> list[Call]:
    """The calls that give a generator of the training a seed."""
    drawn_by_hand = any(o.path == batch_source.DRAW for o in context.facts.feeding)  # what one rank draws, the others must not
    paths = OTHER_SEEDS.union(SEEDS.values()) if drawn_by_hand else frozenset(SEEDS.values())
    calls = (c for c in context.facts.after.trace.calls if draws.seed_of(c) is not None)
    return [c for c in calls if c.func.paths() & paths or draws.seeds_all(c)]


def made_together(context: Context) -> frozenset[ast.AST]:
    """The calls under which all ranks draw the weights of a network together, in each of several trainings."""
    calls = (c for made in context.once(drawn_again) for c in context.facts.after.calls(made.node))
    return frozenset(n for call in calls for n in (call.node, *call.stack))


def drawn_again(context: Context) -> list[Call]:
    """The calls that make those networks, in their order."""
    run, runs = context.facts.after, loops_of_runs(context)
    if not runs or any(is_in(c, runs) for c in given_seeds(context)):
        return []
    calls = [c for c in run.trace.calls if is_in(c, runs)]
    apart = {o for o in {o for c in calls for o in c.func.objs} if random_network(context, o, again=True)}
    apart |= {o for c in calls for o in drawn_and_read(context, c, again=True)}
    made = {c.node: c for o in apart if isinstance(o, New) for c in run.calls(o.node) if is_in(c, runs)}
    return [c for c in sorted(made.values(), key=lambda c: c.order) if not draws.by_rank_zero(context, (*c.stack, c.node))]


def is_in(call: Call, loops: Container[ast.AST]) -> bool:
    """Whether a call runs in one of some loops."""
    return any(loop.node in loops for loop in call.loops)


def seeded_apart(context: Context, draw: Call) -> Call | None:
    """What seeds torch last before something is drawn, where it gives each rank a seed of its own."""
    calls = context.once(seeding_calls)[SEEDS["torch"]]
    last = max((c for c in calls if c.order < draw.order), key=lambda c: c.order, default=None)
    on_some = last is not None and any(value.of_kind("rank") for _, value in last.tests)  # as this rule has it
    return last if last is not None and not on_some and any(v.of_kind("rank") for v in last.args) else None
