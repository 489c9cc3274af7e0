"""How an object that is live after a loop is reduced over the ranks: a meter's totals are summed, what its methods answer is averaged."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts import library
from ddpify.facts.library import DICTS
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.model import Func, Lit, Method, New, Obj, Part, Value, join, just, outermost
from ddpify.facts.tree import inside, own_nodes, same, walk
from ddpify.records import replace
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.branches import under_own_test
from ddpify.rules.loop.fresh import is_fresh
from ddpify.rules.loop.meters import Meter, meter, methods_of, self_attribute, total_of
from ddpify.rules.loop.reduction import Reduction, Variable, carried_on, summed, sums, unknown
from ddpify.rules.loop.sharded_parts import holds_rank_numbers, over_ranks

_AS_TEXT = frozenset(("__str__", "__repr__", "__format__"))


def of_attributes(var: Variable) -> Reduction | None:
    """An object whose attributes the loop stores into."""
    var = _unwrapped(var)
    context, objs = var.context, var.objs
    apart = {(p.owner, p.name) for p in var.live.apart}
    kept = [(o, n, v) for o in objs for n, v in context.facts.after.of(o).items() if (o, n) not in apart]
    own = {n for _, n, v in kept if _differs(context, v)}
    of_project = all(o.cls is not None for o in objs)
    if not own or (of_project and not _read_elsewhere(var, own)):
        return _answers(var) if of_project else None
    averages = _averages(var, own)
    return sums(averages) if averages else unknown(var.live)


def is_iterator(context: Context, obj: New) -> bool:
    """Whether an object gives a loader's batches and holds nothing else: ranks take equally many of them."""
    return obj.cls is None and context.facts.after.feeds(just(obj))


def _unwrapped(var: Variable) -> Variable:
    """A network in place of its wrapper, which holds nothing else."""
    held = [var.context.facts.after.attribute(o, "module") if o.path in library.WRAPPERS else just(o) for o in var.objs]
    return replace(var, live=replace(var.live, value=replace(var.live.value, objs=join(held).objs))) if all(v.objs for v in held) else var


def _differs(context: Context, value: Value) -> bool:
    """Whether what an attribute holds has numbers of a rank's own; the layers of a library's network are none."""
    if value.objs and all(isinstance(o, (Part, Method)) and is_library_model(outermost(o.of)) for o in value.objs):
        return False
    layers = bool(value.objs) and all(isinstance(o, New) and o.cls is None and o.path.startswith("torch.nn.") for o in value.objs)
    return not layers and (context.from_sharded_data(value) or any(_holds_numbers(context, held) for held in value.instances()))


def _holds_numbers(context: Context, held: New) -> bool:
    """Whether what an attribute holds has numbers of a rank's own: not as a loader's iterator, or a generator of rows to come."""
    if held.path == "generator" and all(v.scale == "sample" for v in context.facts.after.of(held).values()):
        return False
    return holds_rank_numbers(context, held) and not is_iterator(context, held)


def _averages(var: Variable, names: Iterable[str]) -> list[str]:
    """The lines that average attributes which hold averages over batches, such as running ones; none where they may be anything else."""
    run, live = var.context.facts.after, var.live
    if var.sharded or len(var.objs) > 1 or any(isinstance(n, ast.Subscript) for n in walk(live.target)):
        return []
    kept = {name: run.attribute(o, name) for name in sorted(names) for o in var.objs}
    own = [v for v in kept.values() if v.scale != "mean" or v.of_kind("decided") or v.of_kind("forward")]  # a forward: with its graph
    if own or any(map(_is_of_class, kept)) or not all(map(_is_number, join(list(kept.values())).objs)):
        return []
    return [summed(var.context, f"{live.shown}.{name}", value, var.share("mean")) for name, value in kept.items()]


def _is_number(obj: Obj) -> bool:
    return isinstance(obj, Lit) and isinstance(obj.value, (int, float))


def _read_elsewhere(var: Variable, names: set[str]) -> bool:
    """Whether attributes of an object are read by what runs outside its loop."""
    context, loop, names = var.context, var.loop, _with_properties(var, names)
    if names & _AS_TEXT and any(not isinstance(context.facts.tree_of(use).parent[use], ast.Attribute) for use in var.live.uses):
        return True
    outside: set[ast.AST] = {tree.root for tree in context.facts.trees.values()}
    for call in context.facts.after.trace.calls:
        if not any(up.node is loop for up in call.loops):
            outside |= {o.node for o in call.func.objs if isinstance(o, Func)}
    nodes = (node for function in outside for node in own_nodes(function) if node not in inside(loop))
    return any(_reads_attribute(var, node, names) for node in nodes)


def _with_properties(var: Variable, names: set[str]) -> set[str]:
    """Some attributes, and what the objects compute from them where it is read: their properties, and what they are as a text."""
    methods = [m for o in var.objs for m in methods_of(o) if m.decorator_list or m.name in _AS_TEXT]
    reading = {m.name for m in methods if any(isinstance(n, ast.Attribute) and self_attribute(n) in names for n in walk(m))}
    return names if reading <= names else _with_properties(var, names | reading)


def _reads_attribute(var: Variable, node: ast.AST, names: set[str]) -> bool:
    """Whether an expression reads one of some attributes of an object, or may do so: by `getattr` or `vars`."""
    context = var.context
    if isinstance(node, ast.Attribute):
        reads = isinstance(node.ctx, ast.Load) and node.attr in names and _may_be_of(var, node.value)
        return reads and not _just_assigned(context, node)
    if not isinstance(node, ast.Call) or not context.facts.after.value(node.func).paths() & {"getattr", "vars"}:
        return False
    if node.args and not _may_be_of(var, node.args[0]):
        return False
    asked = context.facts.after.value(node.args[1]).objs if len(node.args) > 1 else frozenset()
    return not asked or not all(isinstance(o, Lit) and o.value not in names for o in asked)


def _just_assigned(context: Context, node: ast.Attribute) -> bool:
    """Whether a function has assigned to an attribute in any case before it reads it: `self.out = net(x)`, then `head(self.out)`."""
    tree = context.facts.tree_of(node)
    function, own = tree.function(node), set(tree.path(node))
    if not isinstance(function, ast.FunctionDef):
        return False
    before = itertools.takewhile(lambda statement: statement not in own, function.body)
    return any(same(target, node) for s in before if isinstance(s, ast.Assign) for target in s.targets)


def _may_be_of(var: Variable, node: ast.expr) -> bool:
    """Whether an expression may be one of the variable's objects: what it is is not known, or it is one."""
    value = var.context.facts.after.value(node)
    return not value.objs or any(not isinstance(o, New) or o in var.objs for o in value.objs)


def _answers(var: Variable) -> Reduction | None:
    """Averages that the methods of an object give after the loop, in a dict or one by one; None where they give nothing of this rank's."""
    run, names = var.context.facts.after, var.context.names
    out = Reduction(needs={"sum_over_ranks"})
    for call in _asked(var):
        answer, statement = run.value(call), var.context.facts.tree_of(call).statement(call)
        if not isinstance(statement, ast.Assign) or statement.value is not call or guards_of(var.context).guarded(statement):
            return unknown(var.live)
        if any(v.scale not in ("mean", None) or v.instances() for v in _contents(var.context, answer)):
            return unknown(var.live)
        mean = f"{names['sum_over_ranks']}({{0}}) / {names['world_size']}"
        if any(o.path in DICTS for o in answer.instances()):
            mean = f"{{{{name: {mean.format('value')} for name, value in {{0}}.items()}}}}"
        out.edits.append(Replace(call, mean, (call,)))
        out.replicates.append((statement, statement.targets[0]))
    return out if out.edits else None


def _asked(var: Variable) -> Iterator[ast.Call]:
    """The calls of methods of an object after the loop whose answer is a rank's own, and is used."""
    context, run = var.context, var.context.facts.after
    for use in var.live.uses:
        tree = context.facts.tree_of(use)
        method = tree.parent.get(use)
        call = tree.parent.get(method) if isinstance(method, ast.Attribute) else None
        if not isinstance(call, ast.Call) or call.func is not method:
            continue
        statement = tree.statement(call)
        answer = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else call
        unused = isinstance(statement, ast.Expr) and answer is call
        own = any(context.from_sharded_data(v) for v in _contents(context, run.value(answer)))
        passed = frozenset[object]().union(*(run.value(a).batches() for a in (*call.args, *(k.value for k in call.keywords))))
        of_passed = all(v.batches() <= passed for v in _contents(context, run.value(call)))  # as a network's output is
        if own and not unused and not of_passed:
            yield call


def _contents(context: Context, value: Value) -> list[Value]:
    """What is in the dicts that a value is; the value, where it is none."""
    dicts = [o for o in value.instances() if o.path in DICTS]
    return [v for o in dicts for name, v in context.facts.after.of(o).items() if name != "**"] if dicts else [value]


_ADDED = {None, "mean", "sum", "count", "total"}  # what ranks can add up each by itself
_HELPERS = {"count": "reduce_meter", "cnt": "reduce_meter:cnt"}  # by the attribute that counts


def _is_average(kind: Meter, count: str) -> bool:
    """Whether a meter is `avg = sum / count` and nothing more."""
    average = ast.parse(f"self.sum / self.{count}", mode="eval").body
    derived = [name for name, _ in kind.derived] == ["avg"] and same(kind.derived[0][1], average)
    return derived and {*kind.totals} == {"sum", count} and not kind.running


def of_meter(var: Variable) -> Reduction:
    """An object of a class of the project that adds up what it is given: its totals are summed, the rest is computed from them again."""
    context, live = var.context, var.live
    meters = {meter(context, o) for o in var.objs}
    kind = next((m for m in meters if m is not None), None)
    running = _averages(var, kind.running) if kind is not None else []
    if kind is None or len(meters) > 1 or len(running) < len(kind.running) or _is_private(kind):
        return unknown(live)
    if not is_fresh(context, var.loop, live, kind.totals):
        return carried_on(live)
    totals = {name: join([total_of(context, o, name) for o in var.objs]) for name in kind.totals}
    if any(o.path in DICTS for t in totals.values() for o in t.instances()) and not _same_keys(var, kind):
        return unknown(live)
    edits = [] if var.sharded or {t.scale for t in totals.values()} <= _ADDED else _whole_arguments(var)
    doubt = f"`{live.name}` adds up numbers that are no plain averages over a batch: its average may differ from the original's"
    doubt = doubt if edits is None else ""
    by_batch = {name for name, total in totals.items() if total.scale == "mean" or (total.scale is None and name not in kind.by_sample)}
    by_batch = set() if var.sharded or edits or doubt else by_batch
    alike = not by_batch or (by_batch == set(totals) and not _totals_read(var, by_batch))
    helper = next((name for count, name in _HELPERS.items() if _is_average(kind, count)), "")
    if helper and alike:
        lines = [f"{context.names['reduce_meter']}({live.shown})"]
        return Reduction(lines=lines, edits=edits or [], needs={helper, *(["sum_over_ranks"] if edits else [])}, doubt=doubt)
    share = {name: "" if alike or name not in by_batch else var.share("mean") for name in totals}
    lines = [summed(context, f"{live.shown}.{name}", total, share[name], "") for name, total in totals.items()]
    for name, value in kind.derived:
        lines.append(f"{live.shown}.{name} = {re.sub(r'(?<![A-Za-z0-9_])self(?=[.])', lambda _: live.shown, ast.unparse(value))}")
    return replace(sums([*lines, *running], doubt), edits=edits or []) if all(lines) else unknown(live)


def _is_private(kind: Meter) -> bool:
    """Whether only the methods of a class can read by these names what a meter holds: Python puts the class's name before `__total`."""
    derived = {n.attr for _, value in kind.derived for n in walk(value) if isinstance(n, ast.Attribute)}
    return any(map(_is_of_class, (*kind.totals, *kind.running, *(name for name, _ in kind.derived), *derived)))


def _is_of_class(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _same_keys(var: Variable, kind: Meter) -> bool:
    """Whether the dicts of a meter have the same keys on all ranks: names that each batch gives, on whichever rank it is."""
    return not (var.sharded or kind.by_sample or any(under_own_test(var.context, w.node) for w in var.live.writes))


def _totals_read(var: Variable, totals: set[str]) -> bool:
    """Whether totals of a meter are read by their names, outside its class."""
    run = var.context.facts.after
    own = {n for o in var.objs if o.cls is not None for n in walk(o.cls.node)}
    reads = (n for tree in var.context.facts.trees.values() for n in tree.of(ast.Attribute) if n.attr in totals and n not in own)
    return any(run.value(n.value).instances() & var.objs for n in reads)


def _whole_arguments(var: Variable) -> list[Edit] | None:
    """The edits that give a meter each batch's totals and averages of all ranks, to multiply them; None where they are something else."""
    run, edits = var.context.facts.after, list[Edit]()
    for call in (w.node for w in var.live.writes):
        values = [(a, run.value(a)) for a in (*call.args, *(k.value for k in call.keywords))] if isinstance(call, ast.Call) else []
        if not values or any(v.scale not in (None, "count", "sum", "mean") or v.instances() for _, v in values):
            return None
        edits += [over_ranks(var.context, a) for a, v in values if v.scale in ("sum", "mean")]
    return edits
