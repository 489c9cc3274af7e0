"""How a variable that is live after a loop is reduced over the ranks: totals are summed, averages averaged, lists gathered."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts import library
from ddpify.facts.effects import is_bar
from ddpify.facts.library import DICTS
from ddpify.facts.model import New, Tup, Value, just
from ddpify.facts.tree import inside, names_in, walk
from ddpify.facts.writes import Batches, Write, writes
from ddpify.placement.lattice import PerRank, Unknown
from ddpify.placement.shape import EXTREMES
from ddpify.placement.values import CHOICE, is_rows
from ddpify.records import replace
from ddpify.rules.context import Context
from ddpify.rules.data.stream import ITERABLE
from ddpify.rules.loop.branches import passes_alike, under_own_test
from ddpify.rules.loop.fresh import assigned, is_fresh
from ddpify.rules.loop.last_batch import of_one_batch, only_shown, sizes_read
from ddpify.rules.loop.live_out import LiveOut, of_same_batch, places_of, steered, written
from ddpify.rules.loop.meters import is_meter, meter
from ddpify.rules.loop.reduced_objects import is_iterator, of_attributes, of_meter
from ddpify.rules.loop.reduction import Reduction, Variable, carried_on, summed, sums, unknown
from ddpify.rules.loop.sharded_parts import gather_edits, holds_rank_numbers, over_ranks, reduce_edits, sharded_parts

_REDUCED = ("sum", "count", "total", "mean")


def loader_of(context: Context, loop: Batches) -> str:
    """The loader that a loop runs over, as the script writes it; empty where it has no such name."""
    return _loader_in(context, loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else ""


def _loader_in(context: Context, over: ast.expr) -> str:
    run = context.facts.after
    for part in walk(over):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            instances = run.value(part).instances()
            if instances and all(run.is_loader(o) for o in instances):
                return ast.unparse(part)
            reaching = run.definitions.reaching(part).definitions if isinstance(part, ast.Name) and run.feeds(run.value(part)) else []
            last = reaching[0] if len(reaching) == 1 else None
            bar = assigned(context.facts.tree_of(over), last) if isinstance(last, ast.expr) else None  # bar = tqdm(loader)
            if bar is not None and not names_in(part) & names_in(bar) and (loader := _loader_in(context, bar)):
                return loader
    return ""


def reduce(context: Context, loop: Batches, live: LiveOut, loader: str, sharded: bool) -> Reduction | None:
    """The reduction of a live-out variable; None where it does not differ between ranks. `loader` is the loop's loader, as text."""
    var = Variable(context, loop, live, loader, sharded)
    if any(is_meter(context, o) for o in var.objs):
        return of_meter(var)
    if var.objs and all(_is_bar_or_metric(context, o) or is_iterator(context, o) for o in var.objs):
        return None
    if any(of_same_batch(context, loop, use) for use in live.uses):
        return unknown(live)  # its entries for this rank's batches are read, too: all ranks' would take their places
    if live.hows <= {"entries"}:
        return _list(var)
    if live.hows <= {"samples"} or (live.hows <= {"total"} and any(o.path == "list" for o in var.objs)):
        return _samples(var)
    if live.hows <= {"rows"}:
        return _joined_rows(var)
    if not sharded and (reduction := _by_index(var)) is not None:
        return reduction
    if "cells" in live.hows:
        return _cells(var)
    if "object" in live.hows and var.objs:
        return of_attributes(var)
    if _is_growing_dict(var) or (len(var.live.hows) > 1 and var.live.hows <= {"entries", "samples", "rows"}):
        return unknown(live) if any(holds_rank_numbers(context, o) for o in var.objs) else None
    return _number(var)


def _is_bar_or_metric(context: Context, obj: New) -> bool:
    """Whether an object holds no numbers of a rank's own that are read, or reduces them itself: its compute() is a collective."""
    if is_bar(obj) or obj.path.startswith(library.METRICS):
        return True
    return meter(context, obj) is not None and not holds_rank_numbers(context, obj)


def _is_growing_dict(var: Variable) -> bool:
    """Whether a loop assigns to elements of a dict, and leaves what earlier batches did: the key differs, or the element is read."""
    dicts = bool(var.objs) and all(o.path in DICTS for o in var.objs)
    return dicts and any(_grows(var.context, var.loop, w) for w in var.live.writes)


def _grows(context: Context, loop: Batches, write: Write) -> bool:
    """Whether an assignment to an element of a dict leaves what earlier batches did: its key differs, or it reads it."""
    targets = write.node.targets if isinstance(write.node, ast.Assign) else []
    slices = [n.slice for t in targets for n in walk(t) if isinstance(n, ast.Subscript) and isinstance(t, ast.Subscript)]
    bound = {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    varies = any(isinstance(n, ast.Call) or (isinstance(n, ast.Name) and n.id in bound) for s in slices for n in walk(s))
    read = write.added if slices and write.added is not None else ast.Pass()
    return varies or any(isinstance(n, ast.expr) and context.facts.after.scopes.same(n, write.target) for n in walk(read))


# ---------------------------------------------------------------------------------------------------- lists, rows and cells


def _list(var: Variable) -> Reduction | None:
    """A list with one entry for each batch: numbers are reduced as they are appended, the rest is gathered after the loop."""
    context, live, element = var.context, var.live, var.element
    entries = [element, *_items(element), *(context.facts.after.attribute(o, "[]") for o in var.objs)]
    own = var.sharded or any(context.from_sharded_data(v) or context.differs(v) for v in entries)
    own = own or any(holds_rank_numbers(context, o) for o in element.instances())
    if not own and not _counts_samples(var):
        return None
    if any(o.path == "collections.deque" for o in var.objs):
        return unknown(live)
    if element.instances() and not var.sharded and not _is_written_out(var):
        return _entries_of_dicts(var)
    doubt = ""
    if element.scale != "sample" and not var.sharded:
        reduction = _at_source(var)
        if element.scale in _REDUCED or not reduction.problem:
            return reduction
        doubt = f"`{live.name}` collects values that are not plain means over a batch: each rank has those of its part of the data only"
    if any(o.path in DICTS for o in var.objs) or _has_rows_in_order(var):
        return unknown(live)
    return _gathered(var, f"{live.whole_target()} = {{gather}}({live.shown})", doubt)


def _has_rows_in_order(var: Variable) -> bool:
    """Whether rows are collected batch by batch in the order of the data: ranks' parts of a batch, one after the other, would lose it."""
    loaders = [o for o in var.context.facts.after.value(var.loop).batches() if isinstance(o, New)]
    return not var.sharded and var.element.scale == "sample" and any(var.context.facts.after.keeps_order(o) for o in loaders)


def _is_written_out(var: Variable) -> bool:
    """Whether each entry is a list or dict that is written where it is appended, of numbers that can be reduced there."""
    added = [w.added for w in var.live.writes if w.added is not None]
    return all(isinstance(n, (ast.List, ast.Dict)) for n in added) and not _at_source(var).problem


def _entries_of_dicts(var: Variable) -> Reduction:
    """A list of dicts of averages, one for each batch: each average becomes that of all ranks as it is appended."""
    run, names, objs = var.context.facts.after, var.context.names, var.element.instances()
    entries = [v for o in objs for name, v in run.of(o).items() if not name.startswith("[")]
    entries = entries or [run.attribute(o, "[]") for o in objs]
    averages = all(o.path in DICTS for o in objs) and all(v.scale in ("mean", None) and not v.instances() for v in entries)
    added = [w.added for w in var.live.writes if w.added is not None]
    if not averages or len(added) != 1:
        return unknown(var.live)
    mean = f"{{{{name: {names['sum_over_ranks']}(value) / {names['world_size']} for name, value in {{0}}.items()}}}}"
    statement = var.context.facts.tree_of(var.loop).statement(var.live.writes[0].node)
    return Reduction(edits=[Replace(added[0], mean, (added[0],))], replicates=[(statement, var.live.target)], needs={"sum_over_ranks"})


def _samples(var: Variable) -> Reduction | None:
    """A list with one entry for each sample: it is gathered after the loop, without what was repeated."""
    live, loader = var.live, var.loader
    if not var.sharded and not any(map(var.context.from_sharded_data, (var.element, *_entries(var, var.element.instances())))):
        return None
    if not var.sharded and _beside_batches(var):
        return unknown(live)
    trim = f"[: len({loader}.dataset)]" if loader and not var.sharded and not _without_length(var) else ""
    batch_size = f", {loader}.batch_size" if var.sharded else ""
    return _gathered(var, f"{live.whole_target()} = {{gather}}({live.shown}{batch_size}){trim}")


def _beside_batches(var: Variable) -> bool:
    """Whether the same loop collects rows batch by batch in another list, whose order and number the samples' must be."""
    added = [w.added for w in writes(var.loop) if w.how == "entries" and w.added is not None]
    return any(var.context.facts.after.value(n).scale == "sample" for n in added)


def _without_length(var: Variable) -> bool:
    """Whether the data of a loop's loader is a stream that has no length."""
    run = var.context.facts.after
    loaders = {o for o in run.value(var.loop).batches() if isinstance(o, New)}
    sets = {o for loader in loaders for o in run.attribute(loader, "dataset").instances()}
    streams = {o for o in sets if o.cls is not None and run.interpreter.is_a(o, ITERABLE)}
    return any(o.cls is not None and run.interpreter.find(o.cls, "__len__") is None for o in streams)


def _joined_rows(var: Variable) -> Reduction | None:
    """An array that each batch's rows are concatenated to: gathered batch by batch."""
    if not var.sharded and not var.context.from_sharded_data(var.live.value):
        return None
    if var.element.scale in _REDUCED and not var.sharded:
        return _at_source(var)
    if _has_rows_in_order(var):
        return unknown(var.live)
    text, size = var.live.shown, f"{var.loader}.batch_size"
    func = next(w.node.value.func for w in var.live.writes if isinstance(getattr(w.node, "value", None), ast.Call))  # type: ignore[attr-defined]
    roots = {path.partition(".")[0] for path in var.context.facts.after.value(func).paths()}
    if not var.loader or not isinstance(func, ast.Attribute) or var.element.scale != "sample" or roots not in ({"torch"}, {"numpy"}):
        return unknown(var.live)
    library = ast.unparse(func.value)
    concatenate = f"{library}.concatenate" if func.attr == "append" else ast.unparse(func)
    batches = f"{text}.split({size})" if roots == {"torch"} else f"{library}.split({text}, range({size}, len({text}), {size}))"
    return _gathered(var, f"{text} = {concatenate}({{gather}}(list({batches})))")


def _gathered(var: Variable, line: str, doubt: str = "") -> Reduction:
    if not is_fresh(var.context, var.loop, var.live):
        return unknown(var.live)
    return Reduction(lines=[line.format(gather=var.context.names["gather_over_ranks"])], needs={"gather_over_ranks"}, doubt=doubt)


def _by_index(var: Variable) -> Reduction | None:
    """Rows that are stored under the indices of their samples: every rank stores those of all. None where something else is written."""
    out = Reduction()
    for node in (write.node for write in var.live.writes):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript) or under_own_test(var.context, node):
            return None
        edits, needs = gather_edits(var.context, node.targets[0].slice, node.value)
        if not edits:
            return None
        out.edits += edits
        out.needs |= needs
        out.replicates.append((node, var.live.target))
    return out


def _cells(var: Variable) -> Reduction | None:
    """A list, a dict or an array whose elements are added to."""
    context, live, element = var.context, var.live, var.element
    keyed = any(context.from_sharded_data(k) for w in live.writes for k in _keys(context, w))
    counted = _counts_samples(var)
    own = keyed or counted or context.from_sharded_data(live.value) or (context.from_sharded_data(element) and not _reduced_each_time(var))
    if not own and not var.sharded:
        return None
    scales = {var.added(w).scale or ("sum" if counted else None) for w in live.writes if w.added is not None} or {element.scale}
    shares = {var.share(scale) for scale in scales}
    known = var.sharded or scales <= {*_REDUCED, "sample"} or (scales == {None} and keyed)
    keyed_dict = keyed and any(o.path in DICTS for o in var.objs)
    known = known and len(shares) == 1 and not keyed_dict and not _adds_constants(var)
    if not known or not live.hows <= {"cells", "total"} or not is_fresh(context, var.loop, live):
        return unknown(live)
    if any(_numbered_in_batch(var, w) for w in live.writes):
        return unknown(live)
    seen = bool(var.objs) or bool(live.value.of_kind("sized"))
    line = summed(context, live.shown, live.value, shares.pop(), live.whole_target()) if seen else ""
    return sums([line]) if line else unknown(live)


def _reduced_each_time(var: Variable) -> bool:
    """Whether a dict holds, after each run of the loop, numbers that are those of all ranks already."""
    run = var.context.facts.after
    entries = [run.attribute(o, "[]") for o in var.objs if o.path in DICTS]
    reduced = all(v.origins and not var.context.from_sharded_data(v) for v in entries)
    return bool(entries) and len(entries) == len(var.objs) and reduced


def _keys(context: Context, write: Write) -> Iterator[Value]:
    """The keys under which an element is added to, and what is in those that are tuples."""
    target = getattr(write.node, "target", None)
    while isinstance(target, ast.Subscript):
        key = context.facts.after.value(target.slice)
        yield from (key, *_items(key))
        target = target.value


def _items(value: Value) -> list[Value]:
    """What is in the tuples that a value may be."""
    return [item for o in value.objs if isinstance(o, Tup) for item in o.entries]


def _entries(var: Variable, objs: Iterable[New]) -> Iterator[Value]:
    """What going through some objects gives, and what is in the tuples that it gives."""
    for obj in objs:
        element = var.context.facts.after.interpreter.element(just(obj))
        yield from (element, *_items(element))


# ---------------------------------------------------------------------------------------------------- numbers


def _number(var: Variable) -> Reduction | None:
    """A number or tensor: a total is summed over ranks, an average is averaged."""
    live, scale, by_choice = var.live, var.live.value.scale, _is_by_choice(var)
    if not by_choice and not _is_of_shares(var):
        return None
    if scale is None and not (var.sharded or var.objs or by_choice or _items(live.value)):
        return _filled(var)
    by_own_rows = any(under_own_test(var.context, w.node) for w in live.writes)
    if scale in EXTREMES and live.hows <= {"last"} and not (var.objs or by_own_rows):
        return _extreme(var)
    if live.hows <= {"last"} and (reduction := _of_last_batch(var)) is not None:
        return reduction
    if live.hows <= {"last"} and not (var.sharded or by_own_rows) and all(map(is_rows, _items(live.value) or [live.value])):
        return None  # each rank goes on with its rows of that batch: what is computed of them is looked at where it is read
    known = (scale in _REDUCED or var.sharded) and not _adds_constants(var)
    doubtful = not known and scale in ("weighted", "other") and live.hows == {"total"}
    if doubtful and not (reduction := _at_source(var)).problem:
        return reduction
    if by_choice and not var.objs:
        return _counted(var)
    if var.objs or not (known or doubtful) or (scale == "mean" and any(_repeated_by_rows(var, w) for w in live.writes)):
        return unknown(live)
    return _total(var, doubtful)


def _adds_constants(var: Variable) -> bool:
    """Whether a number of each batch is added up with something more, which totals over ranks would count several times."""
    added = (var.added(w) for w in var.live.writes if w.added is not None)
    return any(value.scale in ("sum", "count", "total") and value.of_kind("offset") for value in added)


def _extreme(var: Variable) -> Reduction:
    """The largest or the smallest of what a rank has seen: that of all ranks is the largest of theirs, however often it is asked for."""
    helper = f"{var.live.value.scale}_over_ranks"
    return Reduction(lines=[f"{var.live.shown} = {var.context.names[helper]}({var.live.shown})"], needs={helper})


def _total(var: Variable, doubtful: bool) -> Reduction | None:
    """A number that the loop adds up; doubtful where it is no total or average over samples."""
    context, live = var.context, var.live
    if any(_is_text(w.added) for w in live.writes):
        return unknown(live) if var.sharded else None
    if not is_fresh(context, var.loop, live) or (not var.sharded and _steers_total(var)):
        return _at_source(var)
    share = var.share("mean" if doubtful else live.value.scale)
    doubt = f"`{live.name}` adds up values that are not plain means over a batch: averaged over ranks, it may differ from the original's"
    return sums([f"{live.shown} = {context.names['sum_over_ranks']}({live.shown}){share}"], doubt if doubtful else "")


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _of_last_batch(var: Variable) -> Reduction | None:
    """The size of the last batch is that of all ranks' parts of it, and the rest may be rank 0's where it is shown; None for others."""
    context, live, scale = var.context, var.live, var.live.value.scale
    sizes = sizes_read(context, live) if scale == "sample" and not var.sharded else None
    if sizes is not None:
        return Reduction(edits=[_of_all_ranks(context, size) for size in sizes])
    if scale in _REDUCED or not only_shown(context, live):
        return None
    if not all(of_one_batch(context, use) for use in live.uses) or any(_is_best(context, w) for w in live.writes):
        return unknown(live)
    return Reduction(note=f"`{live.name}` is from the last batch: the value shown is that of rank 0's part")


def _is_best(context: Context, write: Write) -> bool:
    """Whether a write replaces what an earlier batch gave, by a test of both: the worst sample of all."""
    tree, scopes = context.facts.tree_of(write.node), context.facts.after.scopes
    tests = [up.test for up in tree.ancestors(write.node) if isinstance(up, ast.If)]
    return any(context.differs(context.facts.after.value(t)) and any(scopes.same(n, write.target) for n in walk(t)) for t in tests)


def _of_all_ranks(context: Context, size: ast.expr) -> Edit:
    """The edit that makes the size of a rank's batch that of all ranks' batches."""
    product, up = f"{{0}} * {context.names['world_size']}", context.facts.tree_of(size).parent[size]
    bare = not isinstance(up, ast.expr) or isinstance(up, ast.Call) or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add))
    return Replace(size, product if bare else f"({product})", (size,))


def _is_by_choice(var: Variable) -> bool:
    """Whether a total depends on what a rank decided by its own rows; one of its clock, or of its process, is rank 0's own."""
    if var.live.hows != {"total"} or var.context.from_sharded_data(var.live.value):
        return False
    placed = var.context.placement(var.live.value)
    return isinstance(placed, Unknown) or (isinstance(placed, PerRank) and CHOICE in placed.why) or _counts_samples(var)


def _counted(var: Variable) -> Reduction:
    """What is counted one sample at a time under a condition; a count of batches would be that of each rank's own."""
    live, run = var.live, var.context.facts.after
    scales = [(w, run.value(w.added).scale if w.added is not None else None) for w in live.writes]
    by_sample = var.sharded or all(scale == "sum" or _over_samples(var, write) for write, scale in scales)
    if not by_sample or not is_fresh(var.context, var.loop, live):
        return unknown(live)
    return sums([f"{live.shown} = {var.context.names['sum_over_ranks']}({live.shown})"])


def _counts_samples(var: Variable) -> bool:
    """Whether something is counted in a loop over the samples of a batch."""
    return any(_over_samples(var, w) for w in var.live.writes)


def _over_samples(var: Variable, write: Write) -> bool:
    return any(True for _ in _loops_over_samples(var, write))


def _loops_over_samples(var: Variable, write: Write) -> Iterator[ast.For]:
    """The loops around a write that go through the samples of a batch, or through their numbers."""
    tree, run = var.context.facts.tree_of(var.loop), var.context.facts.after
    inner = (up for up in tree.ancestors(write.node) if isinstance(up, ast.For) and var.loop in tree.ancestors(up))
    return (up for up in inner if run.interpreter.per_sample(run.value(up.iter)))


def _numbered_in_batch(var: Variable, write: Write) -> bool:
    """Whether an element is added to under a sample's place in its batch: in a rank's share, other samples have that place."""
    target = getattr(write.node, "target", None)
    keys = [target.slice] if isinstance(target, ast.Subscript) else []
    numbers = {n.id for up in _loops_over_samples(var, write) for n in walk(up.target) if isinstance(n, ast.Name)}
    return any(isinstance(k, ast.Name) and k.id in numbers and var.context.facts.after.value(k).scale is None for k in keys)


def _is_of_shares(var: Variable) -> bool:
    """Whether a number is computed from a rank's share of the data, or counts it; or such numbers are put into a container."""
    context, run = var.context, var.context.facts.after
    changed = any(not isinstance(w.node, ast.Assign) or isinstance(w.node.targets[0], ast.Subscript) for w in var.live.writes)
    added = "entries" not in var.live.hows and (changed or run.definitions.exposed(var.loop, var.live.places))
    held = _entries(var, (o for o in var.objs if o.cls is None)) if added else ()
    return any(map(context.from_sharded_data, (var.live.value, *_items(var.live.value), *held))) or (
        var.sharded and var.live.hows <= {"total"}
    )


def _filled(var: Variable) -> Reduction | None:
    """A tensor or an array of whose elements each is a number of a batch; None where something else is stored in it."""
    run, targets = var.context.facts.after, [getattr(w.node, "targets", [None])[0] for w in var.live.writes]
    values = [run.value(w.node.value) for w in var.live.writes if isinstance(w.node, ast.Assign)]
    numbers = all(v.scale in _REDUCED and var.context.from_sharded_data(v) for v in values)
    stored = len(values) == len(targets) and all(isinstance(t, ast.Subscript) for t in targets)
    return _at_source(var) if numbers and stored else None


def _at_source(var: Variable) -> Reduction:
    """The reduction of a loop-carried variable, or of one that steers inside the loop: each value that is added to it is reduced."""
    context, live, tree = var.context, var.live, var.context.facts.tree_of(var.loop)
    out = Reduction()
    for write in live.writes:
        if write.how == "last" and isinstance(write.added, ast.Constant):
            continue  # started anew inside the loop
        parts = sharded_parts(context, write.added, live.target) if write.added is not None else None
        total = None if parts else _total_put_in(var, write)
        if not (parts or total) or write.how not in ("total", "entries", "rows", "last") or _decided_by_rows(var, write):
            return carried_on(live)
        if total is not None:
            out.edits += total.edits
            out.needs |= total.needs
            out.replicates += total.replicates
        elif parts:
            edits, needs = reduce_edits(context, parts)
            out.edits += edits
            out.needs |= needs
        out.replicates.append((tree.statement(write.node), live.target))
    return out


def _total_put_in(var: Variable, write: Write) -> Reduction | None:
    """The reduction of a total that the same loop adds up and puts into a list: as it is read there, or where it is added to."""
    context, loop, node = var.context, var.loop, write.added
    if write.how != "entries" or not isinstance(node, (ast.Name, ast.Attribute)) or context.facts.after.value(node).scale != "total":
        return None
    group = next((g for g in written(context, loop) if context.facts.after.scopes.same(g[0].target, node)), [])
    if not group or any(w.how != "total" for w in group):
        return None
    places = places_of(context, loop, group)
    total = replace(var.live, target=group[0].target, writes=tuple(group), places=places, node=node, value=context.facts.after.value(node))
    inner = replace(var, live=total)
    if is_fresh(context, loop, total) and not _steers_total(inner):
        return Reduction(edits=[over_ranks(context, node)], needs={"sum_over_ranks"})
    reduction = _at_source(inner)
    return None if reduction.problem else reduction


def _decided_by_rows(var: Variable, write: Write) -> bool:
    """Whether a rank's own rows decide if a write is made, or how often."""
    if _repeated_by_rows(var, write):
        return True
    around = (up for up in var.context.facts.tree_of(var.loop).ancestors(write.node) if up is not var.loop)
    tests = [up.test for up in around if isinstance(up, (ast.If, ast.While))]
    return any(var.context.from_sharded_data(var.context.facts.after.value(test)) for test in tests)


def _repeated_by_rows(var: Variable, write: Write) -> bool:
    """Whether a rank's own rows decide how often a write is made."""
    calls = [c for n in walk(write.node) for c in var.context.facts.after.calls(n)]
    return not all(passes_alike(var.context, loop) for c in calls for loop in c.loops)


def _steers_total(var: Variable) -> bool:
    """Whether a total that is carried from run to run of the loop decides inside it what is trained or written, or is shown there alone."""
    exposed = "total" in var.live.hows and var.context.facts.after.definitions.exposed(var.loop, var.live.places)
    return exposed and (steered(var.context, var.loop, var.live.target) is not None or var.live.node in inside(var.loop))
