"""The live-out variables of a loop over batches: what it defines that is read after it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator

from ddpify.facts.definitions import Place
from ddpify.facts.effects import effects, file_writes, is_writer, maker
from ddpify.facts.library import AGREEING, DICTS
from ddpify.facts.model import NOTHING, New, Obj, Tup, Value
from ddpify.facts.record import Kind
from ddpify.facts.scopes import Path
from ddpify.facts.tree import argument, inside, last_name, names_stored, walk
from ddpify.facts.writes import Batches, Write, container, viewed, writes, writes_of
from ddpify.records import dataclass, replace
from ddpify.rules.context import Context
from ddpify.rules.loop.branches import is_setting, parts_ranks
from ddpify.rules.loop.meters import meter

_MADE_OF_NUMBERS = frozenset(("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.stack", "float", "int"))
_SAME_NUMBER = frozenset(("item", "float", "double", "detach", "clone", "cpu", "cuda", "to"))


@dataclass(frozen=True)
class LiveOut:
    """A live-out variable of a loop: how the loop writes it, and the first use of it after the loop."""

    target: ast.expr
    writes: tuple[Write, ...]
    places: frozenset[Place]
    uses: tuple[ast.AST, ...]
    node: ast.AST  # the use to show
    value: Value
    shown: str  # `target` as the script writes it
    aliased: bool  # some uses are by other names
    apart: frozenset[Place] = frozenset()  # attributes that are live-out of the same loop themselves

    @property
    def name(self) -> str:
        """Its name in messages."""
        return ast.unparse(self.target)

    def whole_target(self) -> str:
        """The target that replaces its value: the slice of all entries for a list that has other names, too."""
        lists = bool(self.value.objs) and all(isinstance(o, New) and o.path == "list" for o in self.value.objs)
        return f"{self.shown}[:]" if self.aliased and lists else self.shown

    @property
    def hows(self) -> set[str]:
        """The ways in which it is written."""
        return {w.how for w in self.writes}


def live_out(context: Context, loop: Batches) -> list[LiveOut]:
    """The live-out variables of a loop, in the order of their names."""
    out, called = [], list(_in_callees(context, loop))
    apart = frozenset(place for _, places in called for place in places)
    for group, places in (*((g, places_of(context, loop, g)) for g in written(context, loop)), *called):
        target = group[0].target
        uses = {} if is_reduced(context, loop, group) else _uses(context, loop, group, places)
        if uses:
            node = _first(context, list(uses.values()), target, places)
            shown = context.source(target) if target in context.facts.tree_of(loop).parent else ast.unparse(target)
            value, aliased = _value(context, target, node), _aliased(context, uses, target)
            if node in context.facts.after.definitions.unseen(places):
                value |= context.facts.after.value(target)  # what it holds by then
            out.append(LiveOut(target, tuple(group), places, tuple(uses.values()), node, value, shown, aliased, apart - places))
    return sorted(out, key=lambda live: live.name)


def written(context: Context, loop: Batches) -> list[list[Write]]:
    """The writes of a loop, by what they write to; writes to elements go with those that write to the whole of a container."""
    scopes = context.facts.after.scopes
    groups: dict[Path, list[Write]] = {}
    for write in (*writes(loop), *_passed(context, loop)):
        if any(is_writer(maker(o)) for o in context.facts.after.value(write.target).objs):
            continue  # a file or a board, which has the number already
        if (of := viewed(inner := container(write.target), context.facts.after.value)) is not inner:
            write = replace(write, target=of)
        groups.setdefault(scopes.path(write.target) or (write.target,), []).append(write)
    for path, group in list(groups.items()):
        outer = scopes.path(container(group[0].target))
        if outer is None or outer == path:
            continue
        in_array = all(w.how == "total" and _is_array(context.facts.after.value(container(w.target))) for w in group)
        if in_array or any(w.how == "cells" for w in groups.get(outer, ())):
            whole = [replace(w, target=container(w.target), how="cells" if w.how == "total" else w.how) for w in groups.pop(path)]
            groups[outer] = [*groups.get(outer, ()), *whole]
    return list(groups.values())


def _is_array(value: Value) -> bool:
    """Whether a value is a tensor or an array that was made of a certain size: what its elements hold is not followed one by one."""
    return not value.objs and bool(value.of_kind("sized"))


def _in_callees(context: Context, loop: Batches) -> Iterator[tuple[list[Write], frozenset[Place]]]:
    """Totals of globals and of attributes that functions add to which a loop calls: by the names that they have where the loop stands."""
    run, within = context.facts.after, inside(loop)
    groups: dict[frozenset[Place], list[Write]] = {}
    for event in run.definitions.happened_in(loop, Kind.WRITE):
        node = event.node
        if node in within or not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        tree = run.scopes.tree(node)  # none has what is only assumed to be written, such as a wrapper
        statement = tree.parent.get(node) if tree is not None else None
        totals = [w for w in writes_of(statement) if w.target is node and w.how == "total"] if statement is not None else []
        target = _seen_from(context, loop, node, event.base) if totals else None
        if target is not None:
            owners = event.base.objs if event.base is not None else ()
            places = frozenset(Place(o, target.attr) for o in owners if isinstance(target, ast.Attribute)) or run.definitions.variable(node)
            group = groups.setdefault(places, [])
            group += [replace(w, target=group[0].target if group else target) for w in totals if w.node not in {g.node for g in group}]
    for places, group in groups.items():
        yield group, places


def _seen_from(context: Context, loop: Batches, node: ast.Name | ast.Attribute, base: Value | None) -> ast.expr | None:
    """What a variable that a function writes is called where a loop stands; None where it has no name there that can be assigned."""
    run, tree = context.facts.after, context.facts.tree_of(loop)
    function = tree.function(loop)
    if isinstance(node, ast.Name):
        here = function is tree.root or node.id in run.scopes.names(function).of_module
        return node if here and run.scopes.owner(node) == tree.name else None
    instances = base.instances() if base is not None else frozenset()
    if base is None or len(base.objs) != 1 or any(made_under(o, inside(loop)) for o in instances):
        return None
    if any(run.interpreter.is_module(o) or meter(context, o) is not None for o in instances):
        return None
    for name in (n for s in loop.body for n in walk(s)):
        if isinstance(name, ast.Name) and run.value(name).objs == base.objs:
            return ast.copy_location(ast.Attribute(name, node.attr, ast.Load()), name)
    return None


def places_of(context: Context, loop: Batches, group: list[Write]) -> frozenset[Place]:
    """What some writes write to: a variable, or what the objects hold that it may be, unless each pass makes its own."""
    definitions, out = context.facts.after.definitions, frozenset[Place]()
    within = inside(loop)
    for write in group:
        places = frozenset[Place]()
        if write.how in ("entries", "samples", "cells", "object"):
            places = definitions.content(write.target)
        elif isinstance(write.target, ast.Subscript):
            places = definitions.element(write.target)
        out |= frozenset(p for p in places if not made_under(p.owner, within)) or definitions.variable(write.target)
    return out


def made_under(obj: object, nodes: Collection[ast.AST]) -> bool:
    """Whether an object is made by one of some nodes, or while one of them runs."""
    return isinstance(obj, New) and (obj.node in nodes or any(n in nodes for n in obj.stack))


def _passed(context: Context, loop: Batches) -> Iterator[Write]:
    """Dicts that a loop hands to a function which adds to their elements, and what it hands to a library's that changes it."""
    run, within = context.facts.after, inside(loop) - {w.target for w in writes(loop)}
    for event in run.definitions.happened_in(loop, Kind.CHANGE):
        if event.node in within and isinstance(event.node, (ast.Name, ast.Attribute)):
            yield Write("object", event.node, None, event.node)
    for call in (n for s in loop.body for n in walk(s) if isinstance(n, ast.Call)):
        for arg in (*call.args, *(k.value for k in call.keywords)):
            objs = {o for o in run.value(arg).instances() if o.path in DICTS} if isinstance(arg, (ast.Name, ast.Attribute)) else set()
            stores = [s for s in run.trace.stores if objs & s.receiver.objs and call in s.stack] if objs else []
            for store in stores:
                up = context.facts.tree_of(store.node).parent.get(store.node)
                added = up.value if isinstance(up, ast.AugAssign) and isinstance(up.op, (ast.Add, ast.Sub)) else None
                yield Write("cells" if added is not None else "last", call, None, arg)


def is_reduced(context: Context, loop: Batches, group: list[Write]) -> bool:
    """Whether a change that is made already replicates this variable, or a call right after the loop does."""
    scopes, tree, target = context.facts.after.scopes, context.facts.tree_of(loop), group[0].target
    statements = (loop, *(tree.statement(w.node) for w in group))
    made = any(scopes.same(target, done) for s in statements for done in context.assumed.replicated_after.get(s, ()))
    return made or _is_handed_to_reduce(context, loop, target)


def _is_handed_to_reduce(context: Context, loop: Batches, target: ast.expr) -> bool:
    """Whether a call after a loop makes what an object holds the same on all ranks: `reduce_meter(losses)`, `confusion.reduce()`."""
    run, objs = context.facts.after, context.facts.after.value(target).objs
    for statement in _following(context, loop):
        calls = [n for n in walk(statement) if isinstance(n, ast.Call) and any(run.scopes.same(a, target) for a in _given(n))]
        stores = [s for s in run.trace.stores if objs & s.receiver.objs and not set(calls).isdisjoint(s.stack)]
        if not stores and calls and _adds_up_totals(context, objs, calls):
            return True
        if stores or not isinstance(statement, (ast.Expr, ast.If)):
            return bool(stores) and all(s.value.origins and not context.from_sharded_data(s.value) for s in stores)
    return False


def _following(context: Context, loop: Batches) -> Iterator[ast.stmt]:
    """The statements after a loop in its block, and after the with-statements around it."""
    tree = context.facts.tree_of(loop)
    for at in itertools.takewhile(lambda up: up is loop or isinstance(up, ast.With), tree.path(loop)):
        block = tree.block(at)
        yield from block[block.index(at) + 1 :]


def _given(call: ast.Call) -> tuple[ast.expr, ...]:
    """The arguments of a call, and the object whose method it calls."""
    return (*call.args, call.func.value) if isinstance(call.func, ast.Attribute) else (*call.args,)


def _adds_up_totals(context: Context, objs: frozenset[Obj], calls: Collection[ast.Call]) -> bool:
    """Whether some calls add up all totals of a meter over the ranks, each where it is: `dist.all_reduce(self.counts)`."""
    run, kinds = context.facts.after, [meter(context, o) if isinstance(o, New) else None for o in objs]
    totals = {name for kind in kinds if kind is not None for name in kind.totals}
    for call in (c for c in run.calls_of("torch.distributed.all_reduce") if not set(calls).isdisjoint(c.stack)):
        given, op = (argument(call.node, i, name) for i, name in enumerate(("tensor", "op")))
        if isinstance(given, ast.Attribute) and op is None and objs & run.value(given.value).objs:
            totals.discard(given.attr)
    return bool(kinds) and not totals and all(kind is not None and not kind.others for kind in kinds)


def _uses(context: Context, loop: Batches, group: list[Write], places: frozenset[Place]) -> dict[int, ast.AST]:
    """The uses after a loop of what it has defined; or one inside it that steers the training by what goes on from run to run."""
    definitions, target = context.facts.after.definitions, group[0].target
    after = definitions.after(loop, places, {w.target for w in group})
    uses = {at: n for at, n in after.items() if context.facts.after.scopes.tree(n) is not None}
    done = {n for n in uses.values() if reduced(context, n, target)}
    calls = _calls(context, done)
    whole = min((at for at, n in uses.items() if n in done and _in_place(context, n)), default=None)  # from there on, of all ranks
    own = {at: n for at, n in uses.items() if n not in done and not definitions.under(calls, at) and (whole is None or at < whole)}
    own = {} if all(of_same_batch(context, loop, n) for n in own.values()) else own
    if not uses and any(w.node is not loop for w in group) and (unseen := definitions.unseen(places)):
        return dict(enumerate(unseen))
    if uses or not any(w.how == "total" for w in group) or not definitions.exposed(loop, places):
        return own
    read = steered(context, loop, target) or _shown_count(context, loop, group)
    return {} if read is None else {0: read}


def _shown_count(context: Context, loop: Batches, group: list[Write]) -> ast.expr | None:
    """A read inside the loop that shows how many samples there were since the beginning, where nothing is divided by that number."""
    run, tree, target = context.facts.after, context.facts.tree_of(loop), group[0].target
    if not all(w.how == "total" and w.added is not None and run.value(w.added).scale == "count" for w in group):
        return None
    reads = [n for s in loop.body for n in walk(s) if isinstance(n, (ast.Name, ast.Attribute)) and run.scopes.same(n, target)]
    outputs = {call.node for call, _ in effects(run)}
    above = {n: list(tree.ancestors(n)) for n in reads if isinstance(n.ctx, ast.Load)}
    if any(isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) for ups in above.values() for up in ups):
        return None
    return next((n for n, ups in above.items() if not outputs.isdisjoint(ups)), None)


def of_same_batch(context: Context, loop: Batches, node: ast.AST) -> bool:
    """Whether a use is the entry for a batch of another loop over the same loader: `outputs[i]` in `for i, batch in enumerate(loader)`."""
    tree = context.facts.tree_of(node)
    entry = node if isinstance(node, ast.Subscript) else tree.parent.get(node)
    if not isinstance(entry, ast.Subscript) or not isinstance(entry.slice, ast.Name):
        return False
    for up in tree.ancestors(entry):
        match up:
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=counter), _]), iter=ast.Call(func=ast.Name(id="enumerate"))):
                if counter == entry.slice.id:
                    return bool(_loaders(context, up)) and _loaders(context, up) == _loaders(context, loop)
    return False


def _loaders(context: Context, loop: Batches) -> frozenset[Obj]:
    """The loaders whose batches a loop goes through."""
    named = walk(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else ()
    return frozenset(o for n in named if isinstance(n, ast.Name) for o in context.facts.after.value(n).batches())


def _calls(context: Context, nodes: Collection[ast.AST]) -> list[ast.Call]:
    """The calls in the statements around some nodes."""
    return [c for n in nodes for c in walk(context.facts.tree_of(n).statement(n)) if isinstance(c, ast.Call)]


def _aliased(context: Context, uses: dict[int, ast.AST], target: ast.expr) -> bool:
    """Whether some uses are by other names than the one that a loop writes, and not of what a call is given by that name."""
    run, objs = context.facts.after, context.facts.after.value(target).objs
    named = [n for n in uses.values() if run.scopes.same(n, target)]
    others = [at for at, n in uses.items() if n not in named and not (isinstance(n, ast.Subscript) and run.value(n).objs.isdisjoint(objs))]
    calls = _calls(context, named) if others else []
    return any(not run.definitions.under(calls, at) for at in others)


def _first(context: Context, uses: list[ast.AST], target: ast.expr, places: frozenset[Place]) -> ast.AST:
    """The first use by the name that the loop writes, if there is one; of an element of a container, the container."""
    node = next((n for n in uses if context.facts.after.scopes.same(n, target)), uses[0])
    owners = {p.owner for p in places if p.content and not p.name}
    while isinstance(node, ast.Subscript) and owners and not owners & set(context.facts.after.value(node).objs):
        node = node.value
    return node


def reduced(context: Context, node: ast.AST, target: ast.expr) -> bool:
    """Whether a use is the one that makes all ranks' number of this rank's own: `total = sum_over_ranks(total)`."""
    run, scopes, tree = context.facts.after, context.facts.after.scopes, context.facts.tree_of(node)
    statement = tree.statement(node)
    around = tree.parent.get(statement)
    if scopes.same(node, target) and (found := combining(context, node)) is not None and found[1]:
        return True
    for each in (statement, around):
        if isinstance(each, ast.For) and scopes.same(each.iter, target):  # for key in totals: totals[key] = ...
            only = each.body[0]
            into = only.targets[0] if isinstance(only, ast.Assign) else None
            of_it = isinstance(into, ast.Subscript) and scopes.same(into.value, target)
            return isinstance(only, ast.Assign) and of_it and not context.from_sharded_data(run.value(only.value))
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return False
    written = statement.targets[0]
    if isinstance(written, ast.Subscript) and isinstance(written.slice, ast.Slice):
        written = written.value  # losses[:] = ...
    if not scopes.same(written, target):
        return False
    if not context.begins_group and combining(context, node) is not None:
        return False
    return not any(context.from_sharded_data(v) for v in _held(context, run.value(statement.value)))


def _combines(context: Context, call: ast.Call, value: Value) -> bool:
    """Whether a call makes one value of what all ranks have: `dist.all_reduce(total)`, or a function of the script's that does with it."""
    run, loaders = context.facts.after, {o for v in _held(context, value) for o in v.batches()}
    if run.value(call.func).paths() & AGREEING:
        return True
    within = (c for path in AGREEING for c in run.calls_of(path) if call in c.stack)
    of_it = any(not loaders or any(v.batches() & loaders for a in c.args for v in _held(context, a)) for c in within)
    return of_it and not any(context.from_sharded_data(v) for v in _held(context, run.value(call)))


def combining(context: Context, node: ast.AST) -> tuple[ast.Call, bool] | None:
    """The call around a number that combines it over the ranks, and whether it does so with the number alone, not a share of it."""
    alone, tree = True, context.facts.tree_of(node)
    for up in itertools.takewhile(lambda up: not isinstance(up, ast.stmt), tree.ancestors(node)):
        if isinstance(up, ast.Call) and node is not up.func and _combines(context, up, context.facts.after.value(node)):
            return up, alone
        paths = context.facts.after.value(up.func).paths() if isinstance(up, ast.Call) else ()
        plain = isinstance(up, ast.Call) and (not _MADE_OF_NUMBERS.isdisjoint(paths) or last_name(up.func) in _SAME_NUMBER)
        alone &= plain or isinstance(up, (ast.List, ast.Tuple)) or (isinstance(up, ast.Attribute) and up.attr in _SAME_NUMBER)
    return None


def _in_place(context: Context, node: ast.AST) -> bool:
    """Whether what a name holds is combined over the ranks where it is: by the call that is given it, or as a parameter of that."""
    run, call = context.facts.after, context.facts.tree_of(node).parent.get(node)
    if not isinstance(call, ast.Call) or node not in call.args:
        return False
    if run.value(call.func).paths() & AGREEING:
        return True
    for collective in (c for path in AGREEING for c in run.calls_of(path) if c.stack and c.stack[-1] is call):
        function = context.facts.tree_of(collective.node).function(collective.node)
        given = argument(collective.node, 0, "tensor") if isinstance(collective.node, ast.Call) else None
        names = [a.arg for a in function.args.args] if isinstance(function, ast.FunctionDef) else []
        here = names[[*call.args].index(node) :][:1]
        if isinstance(given, ast.Name) and given.id in here and given.id not in {n.id for n in names_stored(function)}:
            return True
    return False


def combined_within(context: Context, live: LiveOut) -> ast.AST | None:
    """A use of a live-out variable inside of what a call combines over the ranks, such as its share of an average."""
    return next((n for n in live.uses if not context.begins_group and (found := combining(context, n)) is not None and not found[1]), None)


def _held(context: Context, value: Value) -> Iterator[Value]:
    """A value, and what a list or a tuple that it may be holds."""
    yield value
    for obj in value.instances():
        yield context.facts.after.attribute(obj, "[]")
    for entry in (e for o in value.objs if isinstance(o, Tup) for e in o.entries):
        yield from _held(context, entry)


def steered(context: Context, loop: Batches, target: ast.expr) -> ast.expr | None:
    """A read inside the loop by a test that decides what is trained or written, or by a setting of an optimizer."""
    found = context.once(_read_by_tests)
    if loop not in found:
        deciding = [test for s in loop.body for n in walk(s) if (test := _steering(context, n)) is not None]
        found[loop] = [part for test in deciding for part in walk(test) if isinstance(part, (ast.Name, ast.Attribute))]
    return next((part for part in found[loop] if context.facts.after.scopes.same(part, target)), None)


def _read_by_tests(context: Context) -> dict[Batches, list[ast.expr]]:
    """What such tests and settings in a loop read, of each loop that was asked about."""
    return {}


def _steering(context: Context, node: ast.AST) -> ast.expr | None:
    """What decides in a statement how the training goes on, or what is written."""
    if isinstance(node, (ast.If, ast.While)):
        writes_file = any(n in file_writes(context.facts.after) for s in node.body for n in walk(s))
        return node.test if writes_file or parts_ranks(context, node) else None
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    sets = any(isinstance(t, ast.Subscript) and is_setting(context, t) for t in targets)
    return node.value if sets and isinstance(node, (ast.Assign, ast.AugAssign)) else None


def _value(context: Context, target: ast.expr, node: ast.AST) -> Value:
    """The value of a live-out variable at its use."""
    run = context.facts.after
    if not isinstance(node, ast.expr):
        return NOTHING
    value = run.value(node)
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and not run.scopes.same(node, target):
        entries = [run.memory[o, str(target.slice.value)] for o in value.instances() if (o, str(target.slice.value)) in run.memory]
        return entries[0] if entries else value
    return value
