"""A training loader that is given a sampler: all ranks draw what it draws, each takes its share."""

from __future__ import annotations

import ast

from ddpify.edits import Edit, Replace
from ddpify.facts import library
from ddpify.facts.manual_batches import size_arguments
from ddpify.facts.model import NOTHING, Class, Func, Lit, New, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, last_name, scope_nodes, walk
from ddpify.records import dataclass, replace
from ddpify.rules.base import Finding
from ddpify.rules.context import Context, argument
from ddpify.rules.data import draws
from ddpify.rules.data.loader_call import SAMPLER_IMPORT, LoaderCall
from ddpify.rules.loop import loss

_TORCH = frozenset(f"torch.utils.data.{name}Sampler" for name in ("Random", "SubsetRandom", "WeightedRandom", "Sequential", "Batch"))
_LISTS = frozenset(("list", "range", "generator", "map", "filter", "zip", "itertools.chain"))
FIX = "give each rank every N-th index of the same draw: indices[rank::world_size]"
_MOST = 10**7  # indices that a rank draws at once
_ENDLESS = frozenset(("itertools.cycle", "itertools.count"))
_LAZY = {  # the argument that they go through
    **dict.fromkeys(("iter", "enumerate", *(f"itertools.{n}" for n in ("chain", "chain.from_iterable", "islice"))), 0),
    **dict.fromkeys(("map", "filter", "itertools.starmap"), 1),
}
IN_THREADS = frozenset(("threading.Thread", "prefetch_generator.BackgroundGenerator", "concurrent.futures.ThreadPoolExecutor"))


@dataclass(frozen=True)
class Kinds:
    """The classes of the samplers that training loaders have after the conversion, and what the runtime block needs to name them."""

    names: tuple[str, ...]
    needs: tuple[str, ...] = ()

    @property
    def imports(self) -> tuple[str, ...]:
        """The import that one of the classes takes."""
        return (SAMPLER_IMPORT,) if "DistributedSampler" in self.names else ()

    def test(self, loader: str) -> str:
        """The head of what is done where a loader has such a sampler."""
        text = ", ".join(self.names)
        return f"if isinstance({loader}.sampler, {text if len(self.names) == 1 else f'({text})'})"


@dataclass(frozen=True)
class Arm:
    """One of the expressions that a sampler is chosen from: it may be none, give each rank its share, or draw for all of them."""

    node: ast.expr
    may_be_none: bool
    shares: bool
    samplers: Value

    @property
    def draws(self) -> bool:
        """Whether it may be a sampler that draws for all ranks."""
        return bool(self.samplers.objs) or not (self.may_be_none or self.shares)

    def shared(self, site: LoaderCall, own: str) -> str:
        """The template of what gives each rank its share: of what the sampler draws, or `own` where there is none; empty for itself."""
        piece = key(site.context, self.samplers)
        ours = f"{site.name(piece)}({alike(site.context, self.samplers)}{site.dropping() if piece == 'rank_sampler' else ''})"
        tests = [test for test, holds in (("{0} is None", self.may_be_none), ("isinstance({0}, DistributedSampler)", self.shares)) if holds]
        instead = {"{0} is None": own, "isinstance({0}, DistributedSampler)": "{0}"}
        if not self.draws:
            ours = instead[tests.pop()] if tests else "{0}"
        for test in reversed(tests):
            ours = f"{instead[test]} if {test} else {ours}"
        if ours == "{0}" or not site.when:
            return "" if ours == "{0}" else ours
        return f"({ours}) if {site.when} else {{0}}" if tests else f"{ours} if {site.when} else {{0}}"

    def needs(self, context: Context) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the runtime block needs for it, and the imports."""
        needs, imports = forks(context, self.samplers) if self.draws else ((), ())
        named = (SAMPLER_IMPORT,) if self.draws and self.shares else ()
        return ((key(context, self.samplers), *needs) if self.draws else ()), (*imports, *named)


def arms(context: Context, expression: ast.expr) -> list[Arm]:
    """The expressions that a sampler is chosen from, of `one if test else other`; else the expression."""
    if isinstance(expression, ast.IfExp):
        return [*arms(context, expression.body), *arms(context, expression.orelse)]
    value = context.facts.after.value(expression)
    none = frozenset(o for o in value.objs if isinstance(o, Lit) and o.value is None)
    sharing = frozenset(o for o in value.instances() if o.path == library.DISTRIBUTED_SAMPLER)
    return [Arm(expression, bool(none), bool(sharing), Value(value.objs - none - sharing, value.origins))]


def differing_draws(site: LoaderCall, value: Value) -> str:
    """Why ranks would not draw alike from a sampler, or could not take their shares of it; empty where they can."""
    context, samplers = site.context, value.instances()
    if not _is_seen(value):
        return "the sampler of the training loader could not be found: every rank may train on the same samples"
    if context.differs(value) or draws.made_apart(context, samplers):
        return "this sampler is made from values that differ between ranks: samples would be missed and repeated"
    if any(_learns(context, o) for o in samplers):
        return "this sampler draws by values of each rank's own samples: the ranks' orders would differ, and samples be missed"
    if any(o.cls is not None or o.path == "generator" for o in samplers) and _compares_samples(site):
        return "this sampler may put certain samples together in a batch, which the loss may need: the ranks would separate them"
    if by_rank_zero(context, value) and any(IN_THREADS & call.func.paths() for call in context.facts.after.trace.calls):
        return "rank 0 must draw for all ranks here, since no seed does, and a thread may go through the loader: the ranks could hang"
    return ""


def by_rank_zero(context: Context, value: Value) -> bool:
    """Whether all ranks take what a sampler draws on rank 0: no seed, set when it starts, lets all of them draw alike."""
    drawn = draws.of(context, value.instances())
    roots = drawn.generators & draws.BESIDE_TORCH
    return bool(drawn.unshared) or (bool(roots) and any(endless(context, o) for o in value.instances()))


def alike(context: Context, value: Value) -> str:
    """The template of what draws alike on all ranks, of a sampler: itself, or what it draws on rank 0."""
    return f"{context.names['sampler_of_rank_zero']}({{0}})" if by_rank_zero(context, value) else "{0}"


def forks(context: Context, value: Value) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the runtime block needs to let all ranks draw alike, such as the generators that a sampler draws from, and their imports."""
    if by_rank_zero(context, value):
        return ("sampler_of_rank_zero",), ()
    roots = sorted(draws.of(context, value.instances()).generators & draws.BESIDE_TORCH)
    imports = tuple(text for root in roots for text in draws.import_of(context, root))
    return tuple(f"fork:{root}:{draws.generator_name(context, root)}" for root in roots), imports


def _is_seen(value: Value) -> bool:
    """Whether all that a sampler may be is code of the project, or a sampler or collection whose order is known."""
    samplers = value.instances()
    known = all(o.cls is not None or o.path in _TORCH | _LISTS for o in samplers)
    return known and all(isinstance(o, (New, Func, Class)) for o in value.objs) and bool(samplers or value.origins or not value.objs)


def _compares_samples(site: LoaderCall) -> bool:
    """Whether the loss, or the model's output on its way there, brings samples of a batch together."""
    context, nodes = site.context, {o.node for o in site.loaders}
    unaveraged = loss.unaveraged(context)
    fed = (o for t in context.facts.loops if t.backward.node in unaveraged for o in t.loaders if isinstance(o, New))
    return any(o.node in nodes for o in fed) or _regrouped(context, nodes)


def _regrouped(context: Context, loaders: set[ast.AST]) -> bool:
    """Whether training puts the rows of what a model makes of a batch together in groups: `out.view(-1, k, d)`."""
    inside = {n for model in context.facts.models for n in model.forwards}
    calls = [c for name in ("view", "reshape") for c in context.facts.after.calls_named(name) if len(size_arguments(c.node)) > 2]
    return any(
        call.receiver.scale == "sample"
        and any(getattr(o, "node", None) in loaders for o in call.receiver.of_kind("batch"))
        and bool(call.receiver.of_kind("forward"))
        and not inside & set(call.stack)
        for call in calls
    )


def _learns(context: Context, sampler: New) -> bool:
    """Whether a sampler is given a rank's own share of the data."""
    run = context.facts.after
    if any(context.differs(value) for value in run.of(sampler).values()):
        return True
    for call in run.trace.calls:
        if sampler in call.receiver.objs and any(context.differs(v) for v in (*call.args, *call.keywords.values())):
            return True
    for store in run.trace.stores:
        inside = (n for n in walk(store.node) if isinstance(n, ast.expr))
        if context.differs(store.value) and any(sampler in run.value(n).objs for n in inside):
            return True
    return False


def key(context: Context, value: Value) -> str:
    """The sampler of the runtime block that gives each rank its share of what another one draws."""
    return "endless_rank_sampler" if any(endless(context, o) for o in value.instances()) else "rank_sampler"


def endless(context: Context, sampler: New) -> bool:
    """Whether iterating over a sampler does not end, or gives more than can be drawn at once."""
    run = context.facts.after
    if sampler.path.endswith(".RandomSampler") and isinstance(sampler.node, ast.Call):
        number = argument(sampler.node, 2, "num_samples")
        return number is not None and _count(number) > _MOST
    if sampler.cls is not None:
        functions = run.interpreter.find(sampler.cls, "__iter__") or NOTHING
    elif sampler.path == "generator" and isinstance(sampler.node, ast.Call):
        functions = run.value(sampler.node.func)
    else:
        return False
    return any(_forever(context, f) for f in functions.objs if isinstance(f, Func))


def _count(node: ast.expr) -> float:
    """The number that an expression such as `int(1e10)` spells out; 0 where it depends on more."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and len(node.args) == 1:
        return _count(node.args[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Pow)):
        left, right = _count(node.left), _count(node.right)
        return left * right if isinstance(node.op, ast.Mult) else left ** min(right, 20)
    number = node.value if isinstance(node, ast.Constant) else 0
    return number if isinstance(number, (int, float)) else 0


def _forever(context: Context, func: Func, depth: int = 0) -> bool:
    """Whether what a generator yields, or what a function returns to be gone through, never ends."""
    body = () if isinstance(func.node, ast.Lambda) else tuple(scope_nodes(*func.node.body))
    sources = (n.iter if isinstance(n, ast.For) else n.value for n in body if isinstance(n, (ast.For, ast.Return, ast.YieldFrom)))
    return any(map(_yields_forever, body)) or any(_is_endless(context, func, source, depth) for source in sources)


def _yields_forever(node: ast.AST) -> bool:
    """Whether a node is a `while True:` that yields and is not left."""
    if not isinstance(node, ast.While) or not isinstance(node.test, ast.Constant) or not node.test.value:
        return False
    kinds = {type(n) for n in scope_nodes(*node.body)}
    return bool(kinds & {ast.Yield, ast.YieldFrom}) and not kinds & {ast.Break, ast.Return}


def _is_endless(context: Context, func: Func, node: ast.expr | None, depth: int) -> bool:
    """Whether an expression in a function gives one thing after the other for ever: `itertools.cycle(...)`, `map(f, self.forever())`."""
    if isinstance(node, ast.GeneratorExp):
        return _is_endless(context, func, node.generators[0].iter, depth)
    if not isinstance(node, ast.Call) or depth > 3:
        return False
    run, path, name = context.facts.after, context.library_path(func.file, node.func), last_name(node.func)
    if path in _ENDLESS:
        return True
    named = run.memory.get((func.file, name), NOTHING) if isinstance(node.func, ast.Name) else NOTHING
    method = run.interpreter.find(func.cls, name) if func.cls is not None and isinstance(node.func, ast.Attribute) else None
    if any(_forever(context, f, depth + 1) for f in named.objs | (method or NOTHING).objs if isinstance(f, Func)):
        return True
    if path == "itertools.islice" and _stops(node):
        return False
    place = _LAZY.get(path, len(node.args))
    return place < len(node.args) and _is_endless(context, func, node.args[place], depth)


def _stops(call: ast.Call) -> bool:
    """Whether `islice(values, stop)`, or `islice(values, start, stop, step)`, comes to an end."""
    ends = call.args[1:3]
    return bool(ends) and not (isinstance(ends[-1], ast.Constant) and ends[-1].value is None)


def inner_reads(site: LoaderCall, attribute: str, holder: str) -> list[Edit] | Finding:
    """`loader.sampler.own_name`: what the script's sampler has is read off it, behind the one that shares it out."""
    run, loaders, edits = site.context.facts.after, site.loaders, list[Edit]()
    for tree in site.context.facts.trees.values():
        for node in (n for n in tree.of(ast.Attribute) if n.attr == attribute and isinstance(n.ctx, ast.Load)):
            over, samplers, name = run.value(node.value).instances(), run.value(node).instances(), _asked(tree.parent[node], node)
            if not over & loaders or not (any(_has(run, o, name) for o in samplers) or (samplers and _is_handed_on(run, tree, node))):
                continue
            if not site.context.facts.is_edited(node):
                found = site.refuse("the loader's own sampler is asked for more in a module that is not edited", FIX, node)
                return replace(found, needs_edits_in=frozenset((tree.name,)))
            own = over <= loaders and not site.when
            edits.append(Replace(node, f"{{0}}.{holder}" if own else f'getattr({{0}}, "{holder}", {{0}})', (node,)))
    return edits


def _is_handed_on(run: Run, tree: Tree, node: ast.expr) -> bool:
    """Whether an expression is given a name, or given to a function, but for that of its length."""
    up = tree.parent[node]
    return isinstance(up, (ast.Assign, ast.AnnAssign, ast.keyword, ast.Return)) or (
        isinstance(up, ast.Call) and node in up.args and not run.value(up.func).paths() & {"len", *_ASKING}
    )


def data_reads(site: LoaderCall) -> list[Edit]:
    """`loader.sampler.data_source`, `.num_samples`: the sampler of a rank's share has its data under another name, and fewer samples."""
    run, edits, instead = site.context.facts.after, list[Edit](), {"data_source": "{0}.dataset", "num_samples": "len({0}.dataset)"}
    for node in site.context.facts.entry.of(ast.Attribute):
        of = node.value if node.attr in instead else None
        over = run.value(of.value).instances() if isinstance(of, ast.Attribute) and of.attr == "sampler" else frozenset()
        if of is not None and over and over <= site.loaders and not site.when:
            edits.append(Replace(node, instead[node.attr], (of,)))
    return edits


def _asked(up: ast.AST, node: ast.expr) -> str:
    """The name of the attribute that is asked of an expression, also by `hasattr` and its like; empty for none."""
    if isinstance(up, ast.Attribute):
        return up.attr
    if isinstance(up, ast.Call) and last_name(up.func) in _ASKING and len(up.args) > 1 and up.args[0] is node:
        name = up.args[1]
        return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
    return ""


_ASKING = frozenset(("hasattr", "getattr", "setattr"))
_OF_TORCH = {
    "torch.utils.data.SubsetRandomSampler": ("indices", "generator"),
    "torch.utils.data.WeightedRandomSampler": ("weights", "num_samples", "replacement", "generator"),
    "torch.utils.data.RandomSampler": ("data_source", "num_samples", "replacement", "generator"),
    "torch.utils.data.SequentialSampler": ("data_source",),
}


def _has(run: Run, sampler: New, name: str) -> bool:
    """Whether a sampler holds something by a name, or is of a class that has it."""
    own = sampler.cls is not None and run.interpreter.find(sampler.cls, name) is not None
    return own or name in run.of(sampler) or any(name in names and run.interpreter.is_a(sampler, path) for path, names in _OF_TORCH.items())
