"""How a variable that is live after a loop is reduced over the ranks: totals are summed, averages averaged, lists gathered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts.effects import is_bar
from ddpify.facts.library import COLLECTIONS, DICTS
from ddpify.facts.model import Func, Lit, New, Tup, Value, join
from ddpify.facts.tree import own_nodes
from ddpify.facts.writes import Batches, Write
from ddpify.placement.lattice import PerRank, Unknown
from ddpify.placement.values import CHOICE
from ddpify.records import dataclass, field
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.fresh import assigned, is_fresh
from ddpify.rules.loop.last_batch import of_one_batch, only_shown, sizes_read
from ddpify.rules.loop.live_out import LiveOut, steered
from ddpify.rules.loop.meters import is_meter, meter
from ddpify.rules.loop.sharded_parts import fed, of_rows, sharded_parts

_COUNTED = ("sum", "count", "total")


@dataclass
class Reduction:
    """The reduction of one live-out variable: lines after the loop, edits inside it, or the reason why neither is known."""

    lines: list[str] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    replicates: list[tuple[ast.stmt, ast.expr]] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    problem: str = ""
    fix: str = ""
    doubt: str = ""  # applied, but not proven equal
    note: str = ""  # left as it is: nothing is to be done


def loader_of(context: Context, loop: Batches) -> str:
    """The loader that a loop runs over, as the script writes it; empty where it has no such name."""
    return _loader_in(context, loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else ""


def _loader_in(context: Context, over: ast.expr) -> str:
    run = context.facts.after
    for part in ast.walk(over):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            instances = run.value(part).instances()
            if instances and all(run.is_loader(o) for o in instances):
                return ast.unparse(part)
            reaching = run.definitions.reaching(part).definitions if isinstance(part, ast.Name) and run.feeds(run.value(part)) else []
            last = reaching[0] if len(reaching) == 1 else None
            bar = assigned(context.facts.tree_of(over), last) if isinstance(last, ast.expr) else None  # bar = tqdm(loader)
            if bar is not None and (found := _loader_in(context, bar)):
                return found
    return ""


def reduce(context: Context, loop: Batches, live: LiveOut, loader: str, sharded: bool) -> Reduction | None:
    """The reduction of a live-out variable; None where it does not differ between ranks. `loader` is the loop's loader, as text."""
    out = Reduction()
    instances = live.value.instances()
    element = _element(context, live)
    if any(is_meter(context, o) for o in instances):
        return _meter(context, loop, live, out)
    if instances and all(is_bar(o) for o in instances):
        return None
    if instances and all(
        o.path.startswith("torchmetrics.") or (meter(context, o) is not None and not _holds_rank_numbers(context, o)) for o in instances
    ):
        return None  # its compute() is a collective of its own, or its totals are those of all ranks already
    if live.hows <= {"entries"}:
        return _list(context, loop, live, element, sharded, out)
    if live.hows <= {"samples"} or (live.hows <= {"total"} and any(o.path == "list" for o in instances)):
        if not (context.from_sharded_data(element) or sharded):
            return None
        trim = f"[: len({loader}.dataset)]" if loader and not sharded else ""
        batch_size = f", {loader}.batch_size" if sharded else ""
        return _gathered(context, loop, live, f"{live.whole_target()} = {{gather}}({live.shown}{batch_size}){trim}", out)
    if live.hows <= {"rows"}:
        return _joined_rows(context, loop, live, loader, out) if context.from_sharded_data(live.value) or sharded else None
    if not sharded and _by_index(context, loop, live, out):
        return out
    if "cells" in live.hows:
        return _cells(context, loop, live, element, sharded, out)
    if "object" in live.hows and instances:
        return _object(context, loop, live, instances, out)
    if instances and all(o.path in DICTS for o in instances) and any(_grows(context, loop, w) for w in live.writes):
        return _unknown(live, out) if any(_holds_rank_numbers(context, o) for o in instances) else None
    return _number(context, loop, live, sharded, out)


def _grows(context: Context, loop: Batches, write: Write) -> bool:
    """Whether an assignment to an element of a dict leaves what earlier batches did: its key differs, or it reads it."""
    targets = write.node.targets if isinstance(write.node, ast.Assign) else []
    slices = [n.slice for t in targets for n in ast.walk(t) if isinstance(n, ast.Subscript) and isinstance(t, ast.Subscript)]
    bound = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    varies = any(isinstance(n, ast.Call) or (isinstance(n, ast.Name) and n.id in bound) for s in slices for n in ast.walk(s))
    read = write.added if slices and write.added is not None else ast.Pass()
    return varies or any(isinstance(n, ast.expr) and context.facts.after.scopes.same(n, write.target) for n in ast.walk(read))


def _joined_rows(context: Context, loop: Batches, live: LiveOut, loader: str, out: Reduction) -> Reduction:
    """An array that each batch's rows are concatenated to: gathered batch by batch."""
    text, size = live.shown, f"{loader}.batch_size"
    join = next(ast.unparse(w.node.value.func) for w in live.writes if isinstance(getattr(w.node, "value", None), ast.Call))  # type: ignore[attr-defined]
    join = join if not join.endswith("append") else join.rpartition(".")[0] + ".concatenate"
    library = join.rpartition(".")[0]
    batches = f"{text}.split({size})" if library.endswith("torch") else f"{library}.split({text}, range({size}, len({text}), {size}))"
    if not loader or not library:
        return _unknown(live, out)
    return _gathered(context, loop, live, f"{text} = {join}({{gather}}(list({batches})))", out)


def _object(context: Context, loop: Batches, live: LiveOut, instances: frozenset[New], out: Reduction) -> Reduction | None:
    """An object whose attributes the loop stores into."""
    apart = {(p.owner, p.name) for p in live.apart}
    own = {n for o in instances for n, v in context.facts.after.of(o).items() if context.from_sharded_data(v) and (o, n) not in apart}
    of_project = all(o.cls is not None for o in instances)
    if not own or (of_project and not _read_elsewhere(context, loop, own)):
        return _answers(context, live, out) if of_project else None
    return _unknown(live, out)


def _number(context: Context, loop: Batches, live: LiveOut, sharded: bool, out: Reduction) -> Reduction | None:
    """A number or tensor: a total is summed over ranks, an average is averaged."""
    value, made, text = live.value, live.value.instances(), live.shown
    chosen = (
        live.hows == {"total"} and not context.from_sharded_data(value) and (_by_choice(context, value) or _by_sample(context, loop, live))
    )
    if not (context.from_sharded_data(value) or chosen or (sharded and live.hows <= {"total"})):
        return None
    if value.scale is None and not sharded and not made and not chosen:
        return _at_source(context, loop, live, out) if _filled(context, live) else None
    if value.scale == "sample" and live.hows <= {"last"} and not sharded and (sizes := sizes_read(context, live)) is not None:
        for size in sizes:
            product = f"{{0}} * {context.names['world_size']}"
            bare = isinstance(context.facts.tree_of(size).parent[size], (ast.Call, ast.keyword, ast.Assign))
            out.edits.append(Replace(size, product if bare else f"({product})", (size,)))
        return out
    if value.scale not in (*_COUNTED, "mean") and live.hows <= {"last"} and only_shown(context, live):
        if value.scale != "sample" and not all(of_one_batch(context, use) for use in live.uses):
            return _unknown(live, out)
        out.note = f"`{live.name}` is of the last batch: what is shown of it is rank 0's own"
        return out
    doubtful = not sharded and value.scale in ("weighted", "other") and live.hows == {"total"}
    if doubtful:
        exact = _at_source(context, loop, live, Reduction())
        if not exact.problem:
            return exact
    if chosen and not made:
        return _counted(context, loop, live, sharded, out)
    if made or not (value.scale in (*_COUNTED, "mean") or sharded or doubtful):
        return _unknown(live, out)
    if doubtful:
        out.doubt = (
            f"`{live.name}` adds up numbers that are no plain averages over a batch: their mean over ranks may differ from the original's"
        )
    if any(
        isinstance(w.added, ast.JoinedStr) or (isinstance(w.added, ast.Constant) and isinstance(w.added.value, str)) for w in live.writes
    ):
        return _unknown(live, out) if sharded else None
    if not is_fresh(context, loop, live) or (not sharded and _steers_total(context, loop, live)):
        return _at_source(context, loop, live, out)
    share = f" / {context.names['world_size']}" if not sharded and (value.scale == "mean" or doubtful) else ""
    out.lines.append(f"{text} = {context.names['sum_over_ranks']}({text}){share}")
    out.needs.add("sum_over_ranks")
    return out


def _by_choice(context: Context, value: Value) -> bool:
    """Whether a number depends on what a rank decided by its own rows; one of its clock, or of its process, is rank 0's own."""
    placed = context.placement(value)
    return isinstance(placed, Unknown) or (isinstance(placed, PerRank) and CHOICE in placed.why)


def _read_elsewhere(context: Context, loop: Batches, names: set[str]) -> bool:
    """Whether attributes are read by what runs outside a loop."""
    inside = set(ast.walk(loop))
    outside: set[ast.AST] = {tree.root for tree in context.facts.trees.values()}
    for call in context.facts.after.trace.calls:
        if not any(up.node is loop for up in call.loops):
            outside |= {o.node for o in call.func.objs if isinstance(o, Func)}
    for function in outside:
        for node in own_nodes(function):
            if node in inside:
                continue
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in names:
                return True
            if isinstance(node, ast.Call) and context.facts.after.value(node.func).paths() & {"getattr", "vars"}:
                asked = context.facts.after.value(node.args[1]).objs if len(node.args) > 1 else frozenset()
                if not asked or not all(isinstance(o, Lit) and o.value not in names for o in asked):
                    return True
    return False


def _by_sample(context: Context, loop: Batches, live: LiveOut) -> bool:
    """Whether something is counted in a loop over the samples of a batch."""
    return any(_over_samples(context, loop, w) for w in live.writes)


def _over_samples(context: Context, loop: Batches, write: Write) -> bool:
    tree, run = context.facts.tree_of(loop), context.facts.after
    inner = (up for up in tree.ancestors(write.node) if isinstance(up, ast.For) and loop in tree.ancestors(up))
    return any(run.interpreter.per_sample(run.value(up.iter)) for up in inner)


def _counted(context: Context, loop: Batches, live: LiveOut, sharded: bool, out: Reduction) -> Reduction:
    """What is counted one sample at a time under a condition; a count of batches would be that of each rank's own."""
    for write in live.writes:
        added = context.facts.after.value(write.added).scale if write.added is not None else None
        if not _over_samples(context, loop, write) and not sharded and added != "sum":
            return _unknown(live, out)
    if not is_fresh(context, loop, live):
        return _unknown(live, out)
    out.lines.append(f"{live.shown} = {context.names['sum_over_ranks']}({live.shown})")
    out.needs.add("sum_over_ranks")
    return out


def _unknown(live: LiveOut, out: Reduction) -> Reduction:
    out.problem = f"`{live.name}` holds what this rank computed from its own share of the data, and is read after the loop"
    out.fix = f"gather it from all ranks first: dist.all_gather_object(parts, {live.name})"
    return out


def _element(context: Context, live: LiveOut) -> Value:
    """The values that the loop put into a container."""
    run = context.facts.after
    values = [run.value(w.added) for w in live.writes if w.added is not None]
    return join(values or [run.attribute(o, "[]") for o in live.value.instances() if o.path in COLLECTIONS] or [live.value])


def _list(context: Context, loop: Batches, live: LiveOut, element: Value, sharded: bool, out: Reduction) -> Reduction | None:
    """A list with one entry for each batch: numbers are reduced as they are appended, the rest is gathered after the loop."""
    mine = [element, *(i for o in element.objs if isinstance(o, Tup) for i in o.items)]
    mine += [context.facts.after.attribute(o, "[]") for o in live.value.instances()]
    if not sharded and not any(context.from_sharded_data(v) or context.differs(v) for v in mine) and not _by_sample(context, loop, live):
        return None
    if any(o.path == "collections.deque" for o in live.value.instances()):
        return _unknown(live, out)
    if not sharded and element.scale in (*_COUNTED, "mean") and not element.instances():
        return _at_source(context, loop, live, out)
    if not sharded and element.scale != "sample" and not element.instances():
        exact = _at_source(context, loop, live, Reduction())
        if not exact.problem:
            return exact
        out.doubt = f"`{live.name}` collects numbers that are no plain averages over a batch: each rank's are those of its own share"
    if element.instances() and not sharded:
        return _entries_of_dicts(context, loop, live, element, out)
    if any(o.path in DICTS for o in live.value.instances()):
        return _unknown(live, out)
    return _gathered(context, loop, live, f"{live.whole_target()} = {{gather}}({live.shown})", out)


def _entries_of_dicts(context: Context, loop: Batches, live: LiveOut, element: Value, out: Reduction) -> Reduction:
    """A list of dicts of averages, one for each batch: each average becomes that of all ranks as it is appended."""
    run, total = context.facts.after, context.names["sum_over_ranks"]
    entries = [v for o in element.instances() for name, v in run.of(o).items() if not name.startswith("[")]
    entries = entries or [run.attribute(o, "[]") for o in element.instances()]
    dicts = all(o.path in DICTS for o in element.instances())
    added = [w.added for w in live.writes if w.added is not None]
    if not dicts or len(added) != 1 or not all(v.scale in ("mean", None) and not v.instances() for v in entries):
        return _unknown(live, out)
    mean = f"{{{{name: {total}(value) / {context.names['world_size']} for name, value in {{0}}.items()}}}}"
    out.edits.append(Replace(added[0], mean, (added[0],)))
    out.replicates.append((context.facts.tree_of(loop).statement(live.writes[0].node), live.target))
    out.needs.add("sum_over_ranks")
    return out


def _answers(context: Context, live: LiveOut, out: Reduction) -> Reduction | None:
    """Averages that the methods of an object give after the loop, in a dict or one by one; None where they give nothing of this rank's."""
    run, total, world_size = context.facts.after, context.names["sum_over_ranks"], context.names["world_size"]
    for use in live.uses:
        tree = context.facts.tree_of(use)
        method = tree.parent.get(use)
        call = tree.parent.get(method) if isinstance(method, ast.Attribute) else None
        if not isinstance(call, ast.Call) or call.func is not method:
            continue
        statement, dicts = tree.statement(call), [o for o in run.value(call).instances() if o.path in DICTS]
        given = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else call
        if (isinstance(statement, ast.Expr) and given is call) or not any(
            context.from_sharded_data(v) for v in _contents(context, run.value(given))
        ):
            continue  # nothing is done with it, or it is all ranks' already
        passed = [run.value(a).batches() for a in (*call.args, *(k.value for k in call.keywords))]
        if all(v.batches() <= frozenset().union(*passed) for v in _contents(context, run.value(call))):
            continue  # it is of the batch that the method is given, as a network's output is
        named = isinstance(statement, ast.Assign) and given is call and not guards_of(context).guarded(statement)
        if not named or any(v.scale not in ("mean", None) or v.instances() for v in _contents(context, run.value(call))):
            return _unknown(live, out)
        mean = f"{total}({{0}}) / {world_size}"
        each = f"{{{{name: {mean.format('value')} for name, value in {{0}}.items()}}}}" if dicts else mean
        out.edits.append(Replace(call, each, (call,)))
        out.replicates.append((statement, statement.targets[0]))  # type: ignore[attr-defined]
        out.needs.add("sum_over_ranks")
    return out if out.edits else None


def _holds_rank_numbers(context: Context, obj: New, depth: int = 0) -> bool:
    """Whether an object holds numbers that differ between ranks, in containers, too."""
    attributes = list(context.facts.after.of(obj).values()) if depth < 4 else []
    return any(
        context.from_sharded_data(v) or any(_holds_rank_numbers(context, o, depth + 1) for o in v.instances() if o.path in COLLECTIONS)
        for v in attributes
    )


def _contents(context: Context, value: Value) -> list[Value]:
    """What is in the dicts that a value is; the value, where it is none."""
    dicts = [o for o in value.instances() if o.path in DICTS]
    return [v for o in dicts for name, v in context.facts.after.of(o).items() if name != "**"] if dicts else [value]


def _gathered(context: Context, loop: Batches, live: LiveOut, line: str, out: Reduction) -> Reduction:
    if not is_fresh(context, loop, live):
        return _unknown(live, out)
    out.lines.append(line.format(gather=context.names["gather_over_ranks"]))
    out.needs.add("gather_over_ranks")
    return out


def _filled(context: Context, live: LiveOut) -> bool:
    """Whether numbers of sharded batches are stored in the elements of a tensor or an array, one after another."""
    run = context.facts.after
    return all(
        isinstance(w.node, ast.Assign)
        and isinstance(w.node.targets[0], ast.Subscript)
        and run.value(w.node.value).scale in (*_COUNTED, "mean")
        and context.from_sharded_data(run.value(w.node.value))
        for w in live.writes
    )


def _by_index(context: Context, loop: Batches, live: LiveOut, out: Reduction) -> bool:
    """Rows that are stored under the indices of their samples: every rank stores those of all."""
    tree = context.facts.tree_of(loop)
    for write in live.writes:
        node = write.node
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            return False
        if any(context.differs(context.facts.after.value(up.test)) for up in tree.ancestors(node) if isinstance(up, (ast.If, ast.While))):
            return False
        edits, needs = of_rows(context, node.targets[0].slice, node.value)
        if not edits:
            return False
        out.edits += edits
        out.needs |= needs
        out.replicates.append((node, live.target))
    return True


def _cells(context: Context, loop: Batches, live: LiveOut, element: Value, sharded: bool, out: Reduction) -> Reduction | None:
    """A list, a dict or an array whose elements are added to."""
    text = live.shown
    run = context.facts.after
    objs = live.value.instances()
    keys = [part for w in live.writes for k in _subscripts(w.node) for part in (run.value(k), *_items(run.value(k)))]
    entries = [run.attribute(o, "[]") for o in objs if o.path in DICTS]  # of each run of the loop, which may have been reduced
    reduced = bool(entries) and len(entries) == len(objs) and all(v.origins and not context.from_sharded_data(v) for v in entries)
    if not sharded and not any(context.from_sharded_data(v) for v in (*(() if reduced else (element,)), live.value, *keys)):
        return None
    if not is_fresh(context, loop, live):
        return _unknown(live, out)
    if any(w.how not in ("cells", "total") for w in live.writes):
        return _unknown(live, out)
    share = f" / {context.names['world_size']}" if element.scale == "mean" and not sharded else ""
    counted = element.scale is None and any(context.from_sharded_data(k) for k in keys)
    if not sharded and element.scale not in (*_COUNTED, "mean", "sample") and not counted:
        return _unknown(live, out)
    if any(o.path in DICTS for o in objs) and any(context.from_sharded_data(k) for k in keys):
        return _unknown(live, out)
    line = _summed(context, text, live.value, share, live.whole_target()) if objs or live.value.of_kind("sized") else ""
    if not line:
        return _unknown(live, out)
    out.lines.append(line)
    out.needs.add("sum_over_ranks")
    return out


def _items(value: Value) -> list[Value]:
    """What is in the tuples that a value may be."""
    return [item for o in value.objs if isinstance(o, Tup) for item in o.items]


def _subscripts(node: ast.AST) -> Iterator[ast.expr]:
    target = getattr(node, "target", None)
    while isinstance(target, ast.Subscript):
        yield target.slice
        target = target.value


def _at_source(context: Context, loop: Batches, live: LiveOut, out: Reduction) -> Reduction:
    """The reduction of a loop-carried variable, or of one that steers inside the loop: each value that is added to it is reduced."""
    run, tree = context.facts.after, context.facts.tree_of(loop)
    for write in live.writes:
        if write.how == "last" and isinstance(write.added, ast.Constant):
            continue  # started anew inside the loop
        parts = sharded_parts(context, write.added, live.target) if write.added is not None else None
        tests = [up for up in tree.ancestors(write.node) if isinstance(up, (ast.If, ast.While)) and up is not loop]
        if (
            not parts
            or write.added is None
            or any(context.from_sharded_data(run.value(t.test)) for t in tests)
            or write.how not in ("total", "entries", "last")
        ):
            out.problem = f"`{live.name}` is carried on from one pass over the data to the next, so it cannot be reduced after each"
            out.fix = f"start {live.name} anew before the loop, or reduce a copy of it where it is read"
            return out
        edits, needs = fed(context, parts)
        out.edits += edits
        out.needs |= needs
        out.replicates.append((tree.statement(write.node), live.target))
    return out


def _steers_total(context: Context, loop: Batches, live: LiveOut) -> bool:
    """Whether a total that is carried from run to run of the loop decides inside it what is trained or written."""
    exposed = "total" in live.hows and context.facts.after.definitions.exposed(loop, live.places)
    return exposed and steered(context, loop, live.target) is not None


def _meter(context: Context, loop: Batches, live: LiveOut, out: Reduction) -> Reduction:
    if not is_fresh(context, loop, live):
        out.problem = f"`{live.name}` is carried on from one pass over the data to the next, so it cannot be reduced after each"
        out.fix = f"start {live.name} anew before the loop, or reduce a copy of it where it is read"
        return out
    found = {meter(context, o) for o in live.value.instances()}
    kind = next((m for m in found if m is not None), None)
    if kind is None or len(found) > 1:
        return _unknown(live, out)
    names = {*kind.totals, *(n for n, _ in kind.derived)}
    if names in ({"sum", "count", "avg"}, {"sum", "cnt", "avg"}):
        out.lines.append(f"{context.names['reduce_meter']}({live.shown})")
        out.needs.add("reduce_meter:cnt" if "cnt" in names else "reduce_meter")
        return out
    for name in kind.totals:
        held = join([context.facts.after.attribute(o, name) for o in live.value.instances()])
        line = _summed(context, f"{live.shown}.{name}", held, "")
        if not line:
            return _unknown(live, out)
        out.lines.append(line)
    for name, value in kind.derived:
        out.lines.append(f"{live.shown}.{name} = {re.sub(r'(?<![A-Za-z0-9_])self(?=[.])', lambda _: live.shown, ast.unparse(value))}")
    out.needs.add("sum_over_ranks")
    return out


def _summed(context: Context, text: str, value: Value, share: str, target: str = "") -> str:
    """The line that sums a number, a list, a dict or an array over the ranks; empty where what it is was not seen."""
    total, objs = context.names["sum_over_ranks"], value.instances()
    if any(o.path in DICTS for o in objs):
        return f"for key in {text}:\n    {text}[key] = {total}({text}[key]){share}"
    if objs and all(o.path == "list" for o in objs):
        return f"{target or text} = [{total}(value){share} for value in {text}]"
    if objs:
        return ""
    return f"{text} = {total}({text}){share}"
