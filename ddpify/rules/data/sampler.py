"""A training loader that is given a sampler: all ranks draw what it draws, each takes its share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts.model import Class, Func, New, Value
from ddpify.facts.tree import scope_nodes
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context, argument
from ddpify.rules.data import draws
from ddpify.rules.data.loader_call import CODE, LoaderCall
from ddpify.rules.loop import loss

_TORCH = frozenset(f"torch.utils.data.{name}Sampler" for name in ("Random", "SubsetRandom", "WeightedRandom", "Sequential", "Batch"))
_LISTS = frozenset(("list", "range", "generator", "map", "filter", "zip", "itertools.chain"))
_FIX = "give each rank every N-th index of the same draw: indices[rank::world_size]"
_MOST = 10**7  # indices that a rank draws at once
_ROOTS = {"numpy": "import numpy as np", "random": "import random"}


def shard(site: LoaderCall, given: ast.expr) -> Iterator[Change | Finding]:
    """Give each rank its share of what the sampler draws."""
    if any(k.arg is None for k in site.node.keywords):
        yield site.refuse("the loader's arguments cannot be seen")
        return
    problem, fork, imports = same_draws(site.context, site.context.facts.after.value(given), frozenset(n.about for n in site.discharges))
    if problem:
        yield site.refuse(problem, _FIX, given)
        return
    if (finding := site.unbatched()) is not None:
        yield finding
        return
    divided, needs = site.divided()
    piece = key(site.context, site.context.facts.after.value(given))
    sampler = f"{site.name(piece)}({{0}}{site.dropping() if piece == 'rank_sampler' else ''})"
    if site.when:
        sampler = f"{sampler} if {site.when} else {{0}}"
    edits: list[Edit] = [Replace(given, sampler, (given,)), *divided, *inner_reads(site, "sampler", "sampler")]
    yield Change(
        CODE,
        site.why,
        site.context.tree.shown,
        site.node,
        tuple(edits),
        imports,
        site.level,
        discharges=site.discharges,
        needs=(piece, *needs, *fork),
    )


def same_draws(context: Context, given: Value, loaders: frozenset[ast.AST]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Whether all ranks can draw alike from a sampler: why not, else what its fork needs and imports."""
    instances = given.instances()
    unknown = [o for o in given.objs if not isinstance(o, (New, Func, Class))]
    if context.differs(given):
        return "this sampler is made from what each rank computes by itself", (), ()
    if (
        unknown
        or any(o.cls is None and o.path not in _TORCH | _LISTS for o in instances)
        or not (instances or given.origins or not given.objs)
    ):
        return "the training loader draws by a sampler that cannot be seen", (), ()
    if any(_learns(context, o) for o in instances):
        return "this sampler learns from what each rank computes by itself, and ranks would draw by different ones", (), ()
    own = [o for o in instances if o.cls is not None or o.path == "generator"]
    if own and (any(about in loaders for about in _coupled(context)) or _regrouped(context, loaders)):
        return (
            "this sampler may compose batches, and the loss was not seen to be an average over samples, so that a share would do",
            (),
            (),
        )
    found = draws.of(context, instances)
    if found.unshared:
        return "this sampler draws what no seed makes the same on all ranks", (), ()
    if any(endless(context, o) for o in instances) and found.generators & _ROOTS.keys():
        return "this sampler never ends, and draws by generators that training draws from, too", (), ()
    fork, imports = [], []
    for root in sorted(found.generators & _ROOTS.keys()):
        name = draws.bound(context, root)
        if not name and ("np" if root == "numpy" else root) in context.tree.bound:
            return f"this sampler draws from `{root}`, which has no name in this file", (), ()
        imports += [] if name else [_ROOTS[root]]
        fork.append(f"fork:{root}:{name or ('np.random' if root == 'numpy' else root)}")
    return "", tuple(fork), tuple(imports)


def _coupled(context: Context) -> set[ast.AST]:
    """The calls that make the loaders of losses that are not averages over samples."""
    unaveraged = loss.unaveraged(context)
    return {o.node for t in context.facts.loops if t.backward.node in unaveraged for o in t.loaders if isinstance(o, New)}


def _regrouped(context: Context, loaders: frozenset[ast.AST]) -> bool:
    """Whether training puts the rows of what a model makes of a batch together in groups: `out.view(-1, k, d)`."""
    inside = {n for model in context.facts.models for n in model.forwards}
    return any(
        call.method in ("view", "reshape")
        and len([a for arg in call.node.args for a in (arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg])]) > 2
        and call.receiver.scale == "sample"
        and any(getattr(o, "node", None) in loaders for o in call.receiver.of_kind("batch"))
        and bool(call.receiver.of_kind("forward"))
        and not inside & set(call.stack)
        for call in context.facts.after.trace.calls
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
        inside = (n for n in ast.walk(store.node) if isinstance(n, ast.expr))
        if context.differs(store.value) and any(sampler in run.value(n).objs for n in inside):
            return True
    return False


def key(context: Context, given: Value) -> str:
    """The sampler of the runtime block that gives each rank its share of what another one draws."""
    return "endless_rank_sampler" if any(endless(context, o) for o in given.instances()) else "rank_sampler"


def endless(context: Context, sampler: New) -> bool:
    """Whether iterating over a sampler does not end, or gives more than can be drawn at once."""
    run = context.facts.after
    if sampler.path.endswith(".RandomSampler") and isinstance(sampler.node, ast.Call):
        number = argument(sampler.node, 2, "num_samples")
        return number is not None and _count(number) > _MOST
    if sampler.cls is not None:
        found = run.interpreter.find(sampler.cls, "__iter__")
        return found is not None and any(_forever(context, f) for f in found.objs if isinstance(f, Func))
    if sampler.path == "generator" and isinstance(sampler.node, ast.Call):
        return any(_forever(context, f) for f in run.value(sampler.node.func).objs if isinstance(f, Func))
    return False


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
    run = context.facts.after
    body = [n for s in (func.node.body if not isinstance(func.node, ast.Lambda) else ()) for n in scope_nodes(s)]
    for node in body:
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
            inside = [n for s in node.body for n in scope_nodes(s)]
            if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inside) and not any(
                isinstance(n, (ast.Break, ast.Return)) for n in inside
            ):
                return True
        value = node.value if isinstance(node, (ast.Return, ast.YieldFrom)) else node.iter if isinstance(node, ast.For) else None
        while isinstance(value, ast.Call) and depth < 4:
            paths = run.value(value.func).paths() or run.memory.get((func.file, getattr(value.func, "id", "")), Value()).paths()
            name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
            if name in ("cycle", "count") or paths & {"itertools.cycle", "itertools.count"}:
                return True
            inner = run.memory.get((func.file, name), Value()).objs
            if func.cls is not None:
                inner |= getattr(run.interpreter.find(func.cls, name), "objs", frozenset())
            if any(_forever(context, f, depth + 1) for f in inner if isinstance(f, Func)):
                return True
            value = value.args[0] if name in ("iter", "from_iterable", "chain", "map", "enumerate") and value.args else None
    return False


def inner_reads(site: LoaderCall, attribute: str, holder: str) -> list[Edit]:
    """`loader.sampler.own_name`: what the script's own sampler has is read off it, behind the one that shares it out."""
    context, run = site.context, site.context.facts.after
    loaders = {o for o in context.facts.loaders if any(o.node is held.about for held in site.discharges)}
    edits: list[Edit] = []
    for node in context.tree.nodes():
        if not (isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)):
            continue
        over, up = run.value(node.value).instances(), context.tree.parent[node]
        if over and over <= loaders and isinstance(up, ast.Attribute):
            owns = [o.cls for o in run.value(node).instances() if o.cls is not None]
            held = any((o, up.attr) in run.memory for o in run.value(node).instances())
            if held or any(run.interpreter.find(cls, up.attr) is not None for cls in owns):
                edits.append(Replace(node, f"{{0}}.{holder}", (node,)))
    return edits
