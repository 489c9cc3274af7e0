"""How a call that makes a training loader is edited: its sampler, its batch size, and options that it is passed as a dict."""

from __future__ import annotations

import ast
import itertools

from ddpify.edits import DropArgument, Edit, FreshName, InsertBefore, NameArgument, Replace, SetArgument, escaped
from ddpify.facts import library
from ddpify.facts.model import Lit, New, Value, join
from ddpify.facts.tree import same, walk
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context, argument
from ddpify.rules.data import batch_sampler, download, loader_factory, sampler, stream
from ddpify.rules.data.loader_call import JOINED, POSITIONS, LoaderCall, seeds
from ddpify.rules.data.remade import made_in_rounds

# What a loader of timm may be given that its own sampler does not serve, or that joins the samples of a batch.
_NOT_SHARED = frozenset(
    "distributed num_aug_repeats num_aug_splits re_split collate_fn use_multi_epochs_loader input_size_choices num_batches".split()
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_PASSED_ON = frozenset(("pin_memory", "collate_fn", "worker_init_fn", "persistent_workers", "timeout", "prefetch_factor", "num_workers"))


def shard(site: LoaderCall) -> Change | Finding:
    """Give each rank its share of what the loader draws, by the kind of sampling that it is called with."""
    context, value = site.context, site.context.facts.after.value
    dataset = site.argument("dataset")
    if any(isinstance(a, ast.Starred) for a in site.node.args):
        return site.refuse("the loader's arguments are not written out here, so that no sampler can be added")
    if site.kind == library.IMAGE_LOADER:
        return _of_images(site)
    if (expression := site.given("sampler")) is not None and not site.spread:
        return _given_sampler(site, expression)
    if (expression := site.given("batch_sampler")) is not None:
        return batch_sampler.shard(site, expression)
    if site.of_nodes:
        return _around_nodes(site)
    if dataset is None:
        return _dataset_among_options(site)
    return stream.shard(site, dataset) if stream.is_stream(context, value(dataset)) else _default_sampling(site, dataset)


def _default_sampling(site: LoaderCall, dataset: ast.expr) -> Change | Finding:
    """A loader that draws by itself, in order or shuffled: each rank's draws by a DistributedSampler."""
    spread = next(iter(site.spread), None)
    if spread is not None and site.when and _leave_order_alone(site.context, spread.value):
        spread = None
    if spread is None and (finding := site.unbatched()) is not None:
        return finding
    if not _is_name(dataset) and any(isinstance(up, _COMPREHENSIONS) for up in site.context.tree.ancestors(site.node)):
        return site.refuse("the data set has no name of its own here", f"assign it to a name first: {ast.unparse(dataset)}")
    name, edits, needs = _named(site, dataset)
    if spread is not None:
        return _options(site, spread, name, edits, needs)
    divided, more = site.divided()
    edits += [*_sampler_edits(site, name), *sampler.data_reads(site)]
    return site.change([*edits, *divided], (*needs, *more, *_seed_needs(site)), site.imports)


def _of_images(site: LoaderCall) -> Change | Finding:
    """A loader of timm that is asked to train: asked for distributed training, it shares out its samples itself."""
    training, dataset = argument(site.node, 3, "is_training"), site.argument("dataset")
    asked = training is not None and (site.is_(training, True) or site.same(training))
    plain = all(k.arg not in _NOT_SHARED or any(site.is_(k.value, v) for v in (None, False, 0)) for k in site.node.keywords)
    if not asked or not plain or site.spread or dataset is None or stream.is_stream(site.context, site.context.facts.after.value(dataset)):
        return site.refuse(*library.SHARED_BY_HAND[library.IMAGE_LOADER])
    divided, more = site.divided()
    edits = [*divided, SetArgument(site.node, "distributed", escaped(site.when) or "True")]
    edits.append(Replace(site.node, f"{site.name('without_repeats')}({{0}})", (site.node,)))
    return site.change(edits, ("without_repeats", *more))


def _around_nodes(site: LoaderCall) -> Change | Finding:
    """A loader that samples around nodes of a graph: each rank's are drawn by a DistributedSampler, as long as there are such nodes."""
    graph, given, nodes = argument(site.node, 0, "data"), argument(site.node, 2, "input_nodes"), seeds(site.context, site.node)
    whole = given is None or site.is_(given, None)
    if (finding := site.unbatched() if not site.spread else None) is not None:
        return finding
    if graph is None or not (_is_name(graph) if whole else nodes):
        return site.refuse(*library.SHARED_BY_HAND[library.NODE_LOADER])
    name, edits, needs = _named(site, nodes or graph)
    text = f"range({name}.num_nodes)" if whole else f"{site.name('seed_nodes')}({name})"
    needs += [] if whole else ["seed_nodes"]
    if site.spread:
        return _options(site, site.spread[0], text, edits, needs)
    divided, more = site.divided()
    return site.change([*edits, *_sampler_edits(site, text), *divided], (*needs, *more, *_seed_needs(site)), site.imports)


def _given_sampler(site: LoaderCall, expression: ast.expr) -> Change | Finding:
    """A loader that is given a sampler, or one of several: each is shared out, if it does not do so itself; for none, torch's is made."""
    arms = sampler.arms(site.context, expression)
    mixed = [arm for arm in arms if arm.may_be_none + arm.shares + arm.draws > 1 and not isinstance(arm.node, (ast.Name, ast.Attribute))]
    if site.spread or mixed:
        return site.refuse("the loader's arguments are not written out here, so that no sampler can be added")
    for arm in arms:
        if arm.draws and (problem := sampler.differing_draws(site, arm.samplers)):
            return site.refuse(problem, sampler.FIX, arm.node)
    if (finding := site.unbatched()) is not None:
        return finding
    divided, needs = site.divided()
    edits, imports, own = list(divided), list[str](), ""
    if any(arm.may_be_none for arm in arms):
        dataset, shuffle = site.argument("dataset"), site.argument("shuffle")
        if dataset is None or stream.is_stream(site.context, site.context.facts.after.value(dataset)):
            return site.refuse("the loader's data set is not written out here, so that no sampler can be added")
        name, named, more = _named(site, dataset)
        own = _distributed(site, name, shuffle is not None and (site.is_(shuffle, True) or _is_missing(shuffle, expression)))
        edits += [*named, *(_without_shuffling(site, shuffle, False) if shuffle is not None else ())]
        needs, imports = [*needs, *more, *_seed_needs(site)], [*site.imports]
    for arm in arms:
        text = arm.shared(site, own)
        edits += [Replace(arm.node, text, (arm.node,))] if text else []
        needs, imports = [*needs, *arm.needs(site.context)[0]], [*imports, *arm.needs(site.context)[1]]
    if [arm.node for arm in arms if arm.draws] == [expression]:
        reads = sampler.inner_reads(site, "sampler", "sampler")
        if isinstance(reads, Finding):
            return reads
        edits += reads
    return site.change(edits, tuple(dict.fromkeys(needs)), tuple(dict.fromkeys(imports)))


def _distributed(site: LoaderCall, name: str, shuffles: bool) -> str:
    """The DistributedSampler over a data set that shuffles as the loader does, and drops what it drops."""
    shuffle = site.argument("shuffle")
    how = "" if shuffles else f", shuffle={site.source(shuffle)}" if shuffle is not None else ", shuffle=False"
    turn = f"{site.name('own_seed')}()" if _seed_needs(site) else _turn(site)
    seed = f", seed={turn}" if turn and how != ", shuffle=False" else ""
    return f"DistributedSampler({escaped(name)}{how}{seed}{site.dropping()})"


def _seed_needs(site: LoaderCall) -> tuple[str, ...]:
    """What seeds need where one call makes loaders that shuffle, and train side by side or one after the other in one training."""
    mine = site.loaders
    beside = any(len(mine & loop.loaders) > 1 for loop in site.context.facts.loops)
    beside |= any(loader_factory.several(site.context, loader, site.node) or made_in_rounds(site.context, loader) for loader in mine)
    return ("own_seed",) if beside and not _in_order(site, site.node) else ()


def _turn(site: LoaderCall) -> int:
    """Which of the loaders that shuffle and train side by side this one is: with one seed, they would draw the same orders."""
    trained = (loop.loaders for loop in site.context.facts.loops)
    made = ({o.node for o in loaders if isinstance(o, New)} for loaders in trained)
    beside = next((nodes for nodes in made if site.node in nodes), set())
    nodes = {n for n in beside if isinstance(n, ast.Call) and site.context.facts.is_edited(n) and not _in_order(site, n)}
    return [*site.context.tree.in_order(nodes), site.node].index(site.node)


def _in_order(site: LoaderCall, node: ast.Call) -> bool:
    """Whether a loader surely goes through its data in order."""
    shuffle = argument(node, POSITIONS["shuffle"], "shuffle")
    return shuffle is None or site.is_(shuffle, False)


def _is_missing(test: ast.expr, expression: ast.expr) -> bool:
    """Whether a condition asks if there is no such thing: `x is None`, `not x`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=tested) | ast.Compare(left=tested, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return same(tested, expression)
    return False


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))


def _named(site: LoaderCall, dataset: ast.expr) -> tuple[str, list[Edit], list[str]]:
    """The data set by a name that the sampler can be given, and the edits and needs that make one."""
    context = site.context
    if _is_name(dataset) and not any(isinstance(n, (ast.Call, ast.NamedExpr)) for n in walk(dataset)):
        return context.source(dataset), [], []
    if isinstance(dataset, ast.NamedExpr):
        return dataset.target.id, [], []
    statement = context.tree.statement(site.node)
    fresh = FreshName((*(("dataset",) if site.when else ()), "train_dataset", "train_set", "training_data"), site.node)
    name = str(fresh)
    if isinstance(statement, (ast.If, ast.While, ast.With)) or _conditional(context, site.node):  # it is made here, and only here
        return name, [Replace(dataset, f"({name} := {{0}})", (dataset,), (fresh,))], []
    line, needs = download.first_on_node(context, dataset, f"{name} = {{0}}")
    return name, [InsertBefore(statement, line, (dataset,), (fresh,)), Replace(dataset, name)], needs


def _sampler_edits(site: LoaderCall, name: str) -> list[Edit]:
    """The edits that put a distributed sampler in the place of the loader's own shuffling."""
    shuffle = site.argument("shuffle")
    shuffles = shuffle is not None and (site.same(shuffle) or (site.is_sure(shuffle) and site.is_(shuffle, True)))
    text = _distributed(site, name, shuffles)
    if site.when:
        text += f" if {escaped(site.when)} else None"
    instead = _without_shuffling(site, shuffle, shuffles) if shuffle is not None else []
    return [*instead, SetArgument(site.node, "sampler", text)]


def _without_shuffling(site: LoaderCall, shuffle: ast.expr, shuffles: bool) -> list[Edit]:
    """The edits by which a loader does not shuffle where it is given a sampler."""
    node = site.node
    if site.when and site.is_(shuffle, False):
        return []
    if site.joined and site.same(shuffle):
        return [Replace(shuffle, f"not {JOINED} and {{0}}", (shuffle,))]
    if site.when and not site.same(shuffle):
        left = loader_factory.negated(site.when)
        return [Replace(shuffle, left if shuffles else f"{left} and {{0}}", () if shuffles else (shuffle,))]
    if any(k.arg == "shuffle" for k in node.keywords):
        return [DropArgument(node, "shuffle")]
    later = {p: n for n, p in POSITIONS.items()}  # positional: what follows must be named
    names: list[Edit] = [NameArgument(node, later.get(p, ""), p) for p in range(len(node.args) - 1, POSITIONS["shuffle"], -1)]
    return [*names, DropArgument(node, "shuffle", POSITIONS["shuffle"])]


def _dataset_among_options(site: LoaderCall) -> Change | Finding:
    """`DataLoader(**options)`, with the data set among the options."""
    run, spread = site.context.facts.after, site.spread
    if len(spread) == 1 and not site.node.args and isinstance(spread[0].value, (ast.Name, ast.Attribute)):
        options = run.value(spread[0].value)
        data = [run.attribute(o, "dataset") for o in options.objs]
        if _are_dicts(options) and all(v.objs and not stream.is_stream(site.context, v) for v in data):
            return _options(site, spread[0], f'{ast.unparse(spread[0].value)}["dataset"]', [], [])
    return site.refuse("the loader's data set is not written out here, so that no sampler can be added")


def _are_dicts(options: Value) -> bool:
    """Whether options are dicts that the script makes."""
    return bool(options.objs) and all(isinstance(o, New) and o.path == "dict" for o in options.objs)


def _options(site: LoaderCall, spread: ast.keyword, name: str, edits: list[Edit], needs: list[str]) -> Change | Finding:
    """`DataLoader(dataset, **options)`: the options become this rank's in one call, those given beside them go in."""
    context, node = site.context, site.node
    samplers = _options_value(site, spread)
    own_order = samplers is not None and bool(samplers.objs or samplers.origins)
    sometimes = bool(site.only) and (own_order or site.leaves_out or site.of_nodes)
    if len(node.args) > (3 if site.of_nodes else 1) or sometimes or samplers is None or site.spread != [spread]:
        return site.refuse("the loader's arguments are not written out here, so that no sampler can be added")
    imports, shared, outer = site.imports, tuple[str, ...](), "{0}"
    if own_order:
        own, piece = site.given("sampler"), sampler.key(context, samplers)
        endless = piece != "rank_sampler" and own is not None
        problem = sampler.differing_draws(site, samplers)
        if problem or (not endless and (piece != "rank_sampler" or sampler.by_rank_zero(context, samplers))):
            return site.refuse(
                problem or "the loader's arguments are not written out here, so that no sampler can be added", at=spread.value
            )
        forks, more = sampler.forks(context, samplers)
        imports, shared = (*imports, *more), (*forks, piece, *(() if endless else ("sharded:sampler",)))
        if endless and own is not None:
            outer = f"dict({{0}}, sampler={site.name(piece)}({sampler.alike(context, samplers).format(site.source(own))}))"
    beside = [k for k in node.keywords if k.arg in ("batch_size", "shuffle", "drop_last", "num_workers", "sampler")]
    edits += [DropArgument(node, str(k.arg)) for k in beside]
    beside = [k for k in beside if k.arg != "sampler" or outer == "{0}"]
    given = [f"{k.arg}={escaped(ast.unparse(k.value))}" for k in beside]
    if site.leaves_out and not any("drop_last" in context.facts.after.of(o) for o in context.facts.after.value(spread.value).objs):
        given, outer = [*given, "drop_last=True"], outer.replace("{0}", "dict({0}, drop_last=False)")  # the sampler alone drops them
    inner = f"dict({{0}}, {', '.join(given)})" if given else "{0}"
    text = outer.replace("{0}", f"{context.names['sharded']}({escaped(name)}, {inner})")
    text += f" if {escaped(site.only)} else {inner}" if site.only else ""
    edits.append(Replace(spread.value, text, (spread.value,)))
    wanted = "per_rank" if context.options.batch_size == "global" else "sharded:whole"
    return site.change(edits, (wanted, *needs, "sharded", *shared), imports)


def _options_value(site: LoaderCall, spread: ast.keyword) -> Value | None:
    """The sampler that is given beside a loader's options, or among them, without None; None of what cannot be shared out."""
    run, own = site.context.facts.after, site.argument("sampler")
    options = [o for o in run.value(spread.value).objs if {"sampler", "batch_sampler"} & set(run.of(o))]
    in_batches = site.argument("batch_sampler") is not None or any("batch_sampler" in run.of(o) for o in options)
    if in_batches or (own is not None and options):
        return None
    value = run.value(own) if own is not None else join([run.attribute(o, "sampler") for o in options])
    return Value(frozenset(o for o in value.objs if not isinstance(o, Lit) or o.value is not None), value.origins)


def _leave_order_alone(context: Context, options: ast.expr) -> bool:
    """Whether options that are passed on do not say what a loader draws."""
    run = context.facts.after
    keys = {name for o in run.value(options).objs for name in run.of(o) if not name.startswith("[")}
    return _are_dicts(run.value(options)) and keys <= _PASSED_ON


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether an expression may not be evaluated, or more than once, when its statement runs."""
    around = itertools.takewhile(lambda up: not isinstance(up, ast.stmt), context.tree.ancestors(node))
    return any(isinstance(up, (ast.IfExp, ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.BoolOp)) for up in around)
