"""How a call that makes a training loader is edited: its sampler, its batch size, and options that it is passed as a dict."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, FreshName, InsertBefore, NameArgument, Replace, SetArgument
from ddpify.facts.model import Lit, New, Value, join
from ddpify.facts.tree import is_none, same
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context
from ddpify.rules.data import batch_sampler, download, loader_factory, sampler, stream
from ddpify.rules.data.loader_call import CODE, JOINED, POSITIONS, LoaderCall, escaped


def shard(site: LoaderCall) -> Iterator[Change | Finding]:
    """Give each rank its share of what the loader draws, by the kind of sampling that it is called with."""
    context, node = site.context, site.node
    if any(isinstance(a, ast.Starred) for a in node.args):
        yield site.refuse("the loader's arguments cannot be seen")
        return
    spread = next((k for k in node.keywords if k.arg is None), None)
    if (given := site.given("sampler")) is not None and spread is None:
        if may_be_none(context, given) and not site.when:
            yield from _sampler_or_none(site, given)
        else:
            yield from sampler.shard(site, given)
        return
    if (given := site.given("batch_sampler")) is not None:
        yield from batch_sampler.shard(site, given)
        return
    dataset = site.argument("dataset")
    if dataset is None and (spread := _with_dataset(site)) is not None:
        yield from _options(site, spread, f'{ast.unparse(spread.value)}["dataset"]', [], [])
        return
    if dataset is None:
        yield site.refuse("the loader's data set cannot be seen")
        return
    if stream.is_stream(context, context.facts.after.value(dataset)):
        yield from stream.shard(site, dataset)
        return
    if site.when and spread is not None and _leave_order_alone(context, spread.value):
        spread = None
    if spread is None and (finding := site.unbatched()) is not None:
        yield finding
        return
    if any(isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) for up in context.tree.ancestors(node)) and not isinstance(
        dataset, (ast.Name, ast.Attribute, ast.Subscript)
    ):
        yield site.refuse("the data set has no name of its own here", f"assign it to a name first: {ast.unparse(dataset)}")
        return
    name, edits, needs = _named(site, dataset)
    if spread is not None:
        yield from _options(site, spread, name, edits, needs)
        return
    divided, more = site.divided()
    edits += [*_sampler_edits(site, name), *divided]
    wanted = (*needs, *more)
    yield Change(CODE, site.why, context.tree.shown, node, tuple(edits), site.imports, site.level, discharges=site.discharges, needs=wanted)


def may_be_none(context: Context, given: ast.expr) -> bool:
    """Whether a sampler is made under a condition, and there may be none."""
    objs = context.facts.after.value(given).objs
    none = any(isinstance(o, Lit) and o.value is None for o in objs)
    return isinstance(given, (ast.Name, ast.Attribute)) and none and len(objs) > 1


def _sampler_or_none(site: LoaderCall, given: ast.expr) -> Iterator[Change | Finding]:
    """`shuffle=sampler is None, sampler=sampler`: the sampler is shared out where there is one, else the loader's own order."""
    context, dataset, shuffle = site.context, site.argument("dataset"), site.argument("shuffle")
    value = context.facts.after.value(given)
    samplers = Value(frozenset(o for o in value.objs if not isinstance(o, Lit)), value.origins)
    problem, fork, imports = sampler.same_draws(context, samplers, frozenset(n.about for n in site.discharges))
    finding = site.unbatched()
    map_style = dataset is not None and not stream.is_stream(context, context.facts.after.value(dataset))
    if problem or finding is not None or dataset is None or not map_style or any(k.arg is None for k in site.node.keywords):
        yield finding or site.refuse(problem or "the loader's arguments cannot be seen", at=given)
        return
    if len(site.node.args) > POSITIONS["shuffle"]:
        yield site.refuse("the loader's arguments cannot be seen")
        return
    name, edits, needs = _named(site, dataset)
    divided, more = site.divided()
    text = site.source(given)
    shuffles = shuffle is not None and (site.is_(shuffle, True) or _is_missing(shuffle, given))
    how = "" if shuffles else f", shuffle={site.source(shuffle)}" if shuffle is not None else ", shuffle=False"
    ours = f"{site.name('rank_sampler')}({text}{site.dropping()})"
    own = f"DistributedSampler({escaped(name)}{how}{site.dropping()})"
    edits += [SetArgument(site.node, "sampler", f"{ours} if {text} is not None else {own}", position=POSITIONS["sampler"]), *divided]
    edits += [DropArgument(site.node, "shuffle")] if shuffle is not None else []
    wanted = ("rank_sampler", *needs, *more, *fork)
    needed = (*site.imports, *imports)
    yield Change(CODE, site.why, context.tree.shown, site.node, tuple(edits), needed, site.level, discharges=site.discharges, needs=wanted)


def _is_missing(test: ast.expr, given: ast.expr) -> bool:
    """Whether a condition asks if there is no such thing: `x is None`, `not x`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return same(test.operand, given)
    none = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and is_none(test.comparators[0])
    return none and isinstance(test, ast.Compare) and same(test.left, given)


def _named(site: LoaderCall, dataset: ast.expr) -> tuple[str, list[Edit], list[str]]:
    """The data set by a name that the sampler can be given, and the edits and needs that make one."""
    context, tree = site.context, site.context.tree
    if isinstance(dataset, (ast.Name, ast.Attribute, ast.Subscript)) and not any(
        isinstance(n, (ast.Call, ast.NamedExpr)) for n in ast.walk(dataset)
    ):
        return context.source(dataset), [], []
    if isinstance(dataset, ast.NamedExpr):
        return dataset.target.id, [], []
    statement = tree.statement(site.node)
    fresh = FreshName((*(("dataset",) if site.when else ()), "train_dataset", "train_set", "training_data"), site.node)
    name = str(fresh)
    if isinstance(statement, (ast.If, ast.While, ast.With)) or _conditional(context, site.node):  # it is made here, and only here
        return name, [Replace(dataset, f"({name} := {{0}})", (dataset,), (fresh,))], []
    line = f"{name} = {{0}}"
    loads = download.downloads(dataset)
    if loads:
        line = f"with {context.names['first_on_node']}():\n    {line}"
    return name, [InsertBefore(statement, line, (dataset,), (fresh,)), Replace(dataset, name)], ["first_on_node"] if loads else []


def _sampler_edits(site: LoaderCall, name: str) -> list[Edit]:
    """The edits that put a distributed sampler in the place of the loader's own shuffling."""
    node, shuffle = site.node, site.argument("shuffle")
    shuffles = shuffle is not None and (site.is_(shuffle, True) or site.same(shuffle))
    how = "" if shuffles else f", shuffle={site.source(shuffle)}" if shuffle is not None else ", shuffle=False"
    text = f"DistributedSampler({escaped(name)}{how}{site.dropping()})"
    if site.when:
        text += f" if {escaped(site.when)} else None"
    given = SetArgument(node, "sampler", text)
    if shuffle is None:
        return [given]
    if site.when and site.is_(shuffle, False):
        return [given]
    if site.joined and site.same(shuffle):
        return [Replace(shuffle, f"not {JOINED} and {{0}}", (shuffle,)), given]
    if site.when and not site.same(shuffle):
        left = loader_factory.negated(site.when)
        return [Replace(shuffle, left if shuffles else f"{left} and {{0}}", () if shuffles else (shuffle,)), given]
    if any(k.arg == "shuffle" for k in node.keywords):
        return [DropArgument(node, "shuffle"), given]
    later = {p: n for n, p in POSITIONS.items()}  # positional: what follows must be named
    names: list[Edit] = [NameArgument(node, later.get(p, ""), p) for p in range(len(node.args) - 1, POSITIONS["shuffle"], -1)]
    return [*names, DropArgument(node, "shuffle", POSITIONS["shuffle"]), given]


def _options(site: LoaderCall, spread: ast.keyword, name: str, edits: list[Edit], needs: list[str]) -> Iterator[Change | Finding]:
    """`DataLoader(dataset, **options)`: the options become this rank's in one call, those given beside them go in."""
    context, node = site.context, site.node
    given = [k for k in node.keywords if k.arg in ("batch_size", "shuffle", "drop_last", "num_workers", "sampler")]
    samplers = _options_value(site, spread)
    if len(node.args) > 1 or site.only or samplers is None or any(k.arg is None and k is not spread for k in node.keywords):
        yield site.refuse("the loader's arguments cannot be seen")
        return
    imports, forks = site.imports, tuple[str, ...]()
    if samplers.objs or samplers.origins:
        problem, forks, more = sampler.same_draws(context, samplers, frozenset(n.about for n in site.discharges))
        if problem or sampler.key(context, samplers) != "rank_sampler":
            yield site.refuse(problem or "the loader's arguments cannot be seen", at=spread.value)
            return
        imports, forks = (*imports, *more), (*forks, "rank_sampler", "sharded:sampler")
    inner = "{0}"
    if given:
        inner = "dict({0}, " + ", ".join(f"{k.arg}={escaped(ast.unparse(k.value))}" for k in given) + ")"
        edits += [DropArgument(node, str(k.arg)) for k in given]
    edits.append(Replace(spread.value, f"{context.names['sharded']}({escaped(name)}, {inner})", (spread.value,)))
    wanted = ("per_rank" if context.options.batch_size == "global" else "sharded:whole", *needs, "sharded", *forks)
    yield Change(CODE, site.why, context.tree.shown, node, tuple(edits), imports, site.level, discharges=site.discharges, needs=wanted)


def _options_value(site: LoaderCall, spread: ast.keyword) -> Value | None:
    """The sampler that is given beside a loader's options, or among them, without None; None of what cannot be shared out."""
    run, own = site.context.facts.after, site.argument("sampler")
    options = [o for o in run.value(spread.value).objs if {"sampler", "batch_sampler"} & set(run.of(o))]
    in_batches = site.argument("batch_sampler") is not None or any("batch_sampler" in run.of(o) for o in options)
    if in_batches or (own is not None and options):
        return None
    value = run.value(own) if own is not None else join([run.attribute(o, "sampler") for o in options])
    return Value(frozenset(o for o in value.objs if not isinstance(o, Lit) or o.value is not None), value.origins)


def _with_dataset(site: LoaderCall) -> ast.keyword | None:
    """The options that a loader is made with, where its data set is among them."""
    run, spread = site.context.facts.after, [k for k in site.node.keywords if k.arg is None]
    if len(spread) != 1 or site.node.args or not isinstance(spread[0].value, (ast.Name, ast.Attribute)):
        return None
    options = run.value(spread[0].value).objs
    data = [run.attribute(o, "dataset") for o in options]
    known = bool(options) and all(isinstance(o, New) and o.path == "dict" for o in options) and all(v.objs for v in data)
    return spread[0] if known and not any(stream.is_stream(site.context, v) for v in data) else None


_PASSED_ON = frozenset(("pin_memory", "collate_fn", "worker_init_fn", "persistent_workers", "timeout", "prefetch_factor", "num_workers"))


def _leave_order_alone(context: Context, options: ast.expr) -> bool:
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
