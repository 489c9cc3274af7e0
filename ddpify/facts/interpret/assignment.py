"""What names, attributes and entries hold once a statement has stored into them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ddpify.facts import batch_source, library, named, prefixes, tensor_entries, uniform
from ddpify.facts.interpret import views, written
from ddpify.facts.interpret.branches import deciding
from ddpify.facts.interpret.known_to_calls import depends, knows_batch
from ddpify.facts.interpret.literals import is_whole_number, literal, literal_keys
from ddpify.facts.interpret.operators import by_class
from ddpify.facts.interpret.state import ELEMENT, UNNAMED, Interpreter
from ddpify.facts.model import NOTHING, Func, Lit, New, Obj, Part, Tup, Value, join, just
from ddpify.facts.operands import ENDS
from ddpify.facts.origins import NONE, Origin, of_kind, without
from ddpify.facts.record import Kind
from ddpify.facts.tree import names_stored, same, walk
from ddpify.facts.writes import viewed
from ddpify.placement.shape import PLACES, ROWS

_MAKE_TENSORS = frozenset("clone copy masked_fill where cat stack scatter roll zeros_like ones_like full_like empty_like".split())
_NESTED = 4  # so deep containers are looked into that hold others


def reduce_in_place(run: Interpreter, target: ast.expr) -> None:
    """After a statement whose number is reduced, `target` holds that of all ranks."""
    happened = len(run.events)
    value = run.expression(target)
    del run.events[happened:]  # the script does not read it here
    for obj in value.instances():
        for name, held in run.memory.of(obj):
            run.memory[obj, name] = _agreed(run, held)
    if value.instances():
        run.events.append((Kind.FILL, target, None, value))
    else:
        assign(run, target, library.agreed(value, run.shares))


def _agreed(run: Interpreter, value: Value, depth: int = 0) -> Value:
    """What a container holds once it is that of all ranks: so is what the containers and tuples in it hold."""
    kept = set[Obj]()
    for obj in value.objs if depth < _NESTED else ():
        if isinstance(obj, Tup):
            rest = obj.rest and _agreed(run, obj.rest, depth + 1)
            obj = Tup(tuple(_agreed(run, item, depth + 1) for item in obj.items), obj.names, rest)
        for name, held in run.memory.of(obj) if isinstance(obj, New) and obj.path in library.COLLECTIONS else ():
            run.memory[obj, name] = _agreed(run, held, depth + 1)
        kept.add(obj)
    return library.agreed(Value(frozenset(kept) or value.objs, value.origins, value.scale, value.shape), run.shares)


def _inside(run: Interpreter, obj: Obj) -> frozenset[Obj]:
    """What an attribute of an object is set on: the module inside, where an edit puts a wrapper around it, and names that then."""
    wrapped = isinstance(obj, New) and obj.path == library.DDP and not isinstance(obj.node, ast.Call)
    return run.memory.get((obj, "module"), NOTHING).objs if wrapped else frozenset((obj,))


def wrap(run: Interpreter, node: ast.stmt, target: ast.expr) -> None:
    """After a statement that wraps a model, `target` holds the wrapper."""
    value = run.expression(target)
    at = node if len(run.wraps.get(node, ())) == 1 else target  # several of one statement are several wrappers
    held = [o for o in value.instances() if o.path in ("list", "dict")]
    if held and len(held) == len(value.objs):
        _wrap_each(run, at, target, held)
        return
    wrapped = run.objects.new(library.DDP, at, run.stack)
    if value.objs and wrapped not in value.objs:
        run.memory[wrapped, "module"] = value
        assign(run, target, just(wrapped))


def _wrap_each(run: Interpreter, at: ast.AST, target: ast.expr, held: list[New]) -> None:
    """`nets = [DistributedDataParallel(net) for net in nets]`, or the like for a dict."""
    made = run.objects.new(held[0].path, at, (*run.stack, target))
    for (owner, key), inner in list(run.memory.items()):
        if owner not in held:
            continue
        around = set[Obj]()
        for obj in inner.objs:
            wrapped = run.objects.new(library.DDP, getattr(obj, "node", at), (*run.stack, at))
            if not isinstance(obj, (New, Part)) or obj is wrapped:
                around.add(obj)
                continue
            run.memory[wrapped, "module"] = just(obj)
            around.add(wrapped)
        run.set_attribute(made, key, Value(frozenset(around), inner.origins), False)
        if key not in (ELEMENT, UNNAMED):
            run.keys.setdefault(made, set()).add(key)
    assign(run, target, just(made))


def assign(run: Interpreter, target: ast.expr, value: Value) -> None:
    """Carry out `target = value`."""
    if isinstance(target, ast.Name):
        value = run.overridden(target, value) if target in run.special else value
        run.bind(target.id, value)
        run.note(target, value)
        run.events.append((Kind.WRITE, target, None, value))
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item, part in zip(target.elts, unpack(run, value, target.elts), strict=True):
            assign(run, item, part)
    elif isinstance(target, ast.Starred):
        assign(run, target.value, value)
    elif isinstance(target, ast.Attribute):
        _into_attribute(run, target, value)
    elif isinstance(target, ast.Subscript):
        _into_entry(run, target, value)


def _into_attribute(run: Interpreter, target: ast.Attribute, value: Value) -> None:
    """Carry out `x.name = value`."""
    receiver = run.expression(target.value)
    run.store(target, receiver, value)
    run.events.append((Kind.WRITE, target, receiver, value))
    if target.attr == "requires_grad" and isinstance(target.value, ast.Name) and literal(value) is True:
        _freed(run, target.value, receiver)
    if target.attr == "data" and not combine(run, target.value, receiver, value):
        _refilled(run, target.value, receiver, value)
    held = frozenset(o for obj in receiver.objs for o in _inside(run, obj))
    strong = len(held) == 1 or held == run.frame.owners
    for obj in held:
        run.set_attribute(obj, target.attr, value, strong)
        if isinstance(obj, New) and obj.path in library.DICTS:
            run.keys.setdefault(obj, set()).add(target.attr)
            _joined_by_keys(run, obj)


def _joined_by_keys(run: Interpreter, obj: New) -> None:
    """Let what an entry of a dict or a list may be follow from its keys, one of which has a new value."""
    run.memory.of(obj)  # all of it makes a difference
    run.memory[obj, ELEMENT] = join([run.memory.get((obj, k), NOTHING) for k in (*run.keys[obj], UNNAMED)])


def _into_entry(run: Interpreter, target: ast.Subscript, value: Value) -> None:
    """Carry out `x[index] = value`; conditions that ask of one sample decide about what is written into its own rows alone."""
    saved, run.deciding = run.deciding, run.deciding - _asked_of_one_sample(run, target)
    _write_entry(run, target, value)
    run.deciding = saved


def _asked_of_one_sample(run: Interpreter, target: ast.Subscript) -> frozenset[Origin]:
    """What the conditions decide that a loop over the samples of a batch asks of each before it writes into the rows of that one."""
    loop = run.loops[-1] if run.loops else None
    within = set(walk(loop.node)) if loop is not None and run.deciding else set()
    asked = [(test, value) for test, value in run.tests if test in within]
    if loop is None or not isinstance(loop.node, ast.For) or not asked:
        return frozenset()
    own = {n.id for n in names_stored(loop.node.target)}
    if not _is_numbered(run, target, own) or not all(_is_of_one_sample(run, t) and not v.of_kind("decided") for t, v in asked):
        return frozenset()
    others = frozenset[Origin]().union(*(deciding(value) for test, value in run.tests if test not in within))
    return frozenset[Origin]().union(*(deciding(value) for _, value in asked)) - others


def _write_entry(run: Interpreter, target: ast.Subscript, value: Value) -> None:
    """Carry out `x[index] = value`, under the conditions that decide about it."""
    of = viewed(target.value, run.expression)
    receiver, index = run.expression(of), run.expression(target.slice)
    filled_with(run, target, False)
    run.store(target, receiver, value)
    run.events.append((Kind.WRITE, target, receiver, value))
    if _all_of(target) and receiver.of_kind("drawn") and not value.of_kind("drawn"):
        assign(run, target.value, library.agreed(receiver))  # an order that was shuffled in place is now that of all ranks
        return
    if (sizes := tensor_entries.sizes_with(run, receiver, index, value)) is not None:
        assign(run, of, sizes)
        return
    if _all_of(target) and _replaced(run, receiver, value):
        run.events.append((Kind.FILL, target, None, receiver))
        return
    for obj in receiver.objs:
        _under_keys(run, obj, index, value, target.slice, len(receiver.objs) == 1)
    origins = without(library.mixed([value, index], {}).origins, prefixes.ROUNDS, prefixes.FIRST)
    if not of_kind(origins, "batch"):  # rows of all ranks, put where all ranks have them
        origins = without(origins, "whole")
    if combine(run, of, receiver, value) or written.write(run, target, value):
        return
    _has_from_here_on(run, of, origins, index, value)


def _has_from_here_on(run: Interpreter, of: ast.expr, origins: frozenset[Origin], index: Value, value: Value) -> None:
    """Let a tensor be made of what one of its entries was computed from, too."""
    named_so = isinstance(of, (ast.Name, ast.Attribute))
    receiver = run.expression(of) if named_so else run.trace.values.get(of, NOTHING)
    shape = receiver.shape and receiver.shape._replace(uniform=False, falling="")  # entries of a constant may differ from here on
    if not receiver.objs and origins:
        other = isinstance(of, ast.Name) and receiver.scale == "sample" and _is_of_other_samples(run, index)
        other = other or (isinstance(of, ast.Name) and receiver.scale is None and _is_of_all(index, value))
        held = Value(receiver.objs, receiver.origins | origins, "other" if other else receiver.scale, shape)
        (written.hold if named_so else written.part_changed)(run, of, held)


def _is_of_all(index: Value, value: Value) -> bool:
    """Whether an entry, or which of them is written, comes from a batch as a whole, or from whichever of its samples."""
    counts = index.of_kind("index") or index.of_kind(PLACES)
    by_batch = index.scale is not None and bool(index.batches())
    return by_batch or (not counts and value.scale not in (None, *ROWS) and bool(value.batches()))


def entry_changed(run: Interpreter, entry: ast.Subscript, result: Value) -> None:
    """Carry out `x[index].add_(value)`: a later batch may meet what it is computed from."""
    if not result.of_kind("kept"):
        return
    of = viewed(entry.value, run.expression)
    held, index = run.expression(of), run.expression(entry.slice)
    for obj in held.objs:
        _under_keys(run, obj, index, result, entry.slice, len(held.objs) == 1)
    _has_from_here_on(run, of, result.origins, index, result)


def _under_keys(run: Interpreter, obj: Obj, index: Value, value: Value, at: ast.expr, alone: bool) -> None:
    """Let an object have a value under what an index may be; `alone` where the value is put into nothing else."""
    if isinstance(obj, Part) and obj.name == named.SPACE:
        named.set_in_space(run, obj, index, value, alone)
        return
    if isinstance(obj, New) and (copied := named.copied(run, index, value)).objs:
        run.update(obj, copied)
        return
    keys = literal_keys(index)
    for key in keys:
        run.set_attribute(obj, key, value, alone)
        run.keys.setdefault(obj, set()).add(key)
    if keys and isinstance(obj, New) and (run.is_a(obj, *library.DICTS) or _listed(run, obj, keys)):
        _joined_by_keys(run, obj)
        return
    part = run.element(value) if isinstance(at, ast.Slice) else value
    run.set_attribute(obj, ELEMENT, part, False)
    if not keys:
        run.set_attribute(obj, UNNAMED, part, False)
    _put_into(run, obj, part)


def _refilled(run: Interpreter, tensor: ast.expr, was: Value, value: Value) -> None:
    """Let the name of a tensor, or the attribute that it is, hold what its data are from here on."""
    if was.objs or not takes_on(was):
        return
    if isinstance(tensor, ast.Name):
        run.change(tensor.id, value)
    elif isinstance(tensor, ast.Attribute):
        written.hold(run, tensor, Value(frozenset(), value.origins, value.scale, value.shape), alone=True)


def takes_on(was: Value) -> bool:
    """Whether a tensor becomes what is written into it: one of the batch, a parameter and a weight stay what they are."""
    return not any(map(was.of_kind, ("parameters", "weight", "batch")))


def _is_of_other_samples(run: Interpreter, index: Value) -> bool:
    """Whether an entry of an index by the numbers of the samples is of nobody knows which of them."""
    entries = [i for o in index.objs if isinstance(o, Tup) for i in o.items]
    return any(e.of_kind("places") for e in entries) and any(e.scale == "other" for e in entries)


def combine(run: Interpreter, tensor: ast.expr, rows: Value, value: Value) -> bool:
    """Whether what is written into the rows of a tensor was computed from several of them: its rows depend on one another from here on."""
    while isinstance(tensor, ast.Attribute) and tensor.attr == "data":
        tensor = tensor.value
    if rows.scale != "sample" or rows.objs or not value.of_kind("coupled"):
        return False
    written.hold(run, tensor, Value(rows.objs, rows.origins | value.origins, "other", rows.shape))
    return True


def _put_into(run: Interpreter, obj: Obj, value: Value) -> None:
    """Numbers of a batch are put into a package's object, such as a table: what it gives from here on may be made of them."""
    known = library.COLLECTIONS | library.DICTS | library.HOLDERS
    plain = isinstance(obj, New) and obj.cls is None and obj.path not in known and not obj.path.startswith("torch.")
    if plain and value.of_kind("batch"):
        run.set_attribute(obj, library.GIVEN, Value(frozenset(), value.origins, "other"), False)


def filled_with(run: Interpreter, node: ast.expr, one_number: bool) -> None:
    """Entries of a constant are changed in place; all of them to one number, or some, so that they may differ from here on."""
    while isinstance(node, ast.Subscript):
        node, one_number = node.value, False
    held = run.trace.values.get(node, NOTHING)
    if not one_number:
        uniform.written(run, held)
    if not isinstance(node, (ast.Name, ast.Attribute)) or held.shape is None or held.scale is not None or held.shape.uniform == one_number:
        return
    filled = Value(held.objs, held.origins, None, held.shape._replace(uniform=one_number))
    if isinstance(node, ast.Attribute):
        assign(run, node, filled)
    else:
        run.change(node.id, filled)
        run.events.append((Kind.WRITE, node, None, filled))


def _replaced(run: Interpreter, receiver: Value, value: Value) -> bool:
    """Let a list hold nothing but other entries, where it is known to be but that list."""
    held = [o for o in receiver.instances() if o.path == "list"]
    if len(held) != 1 or len(receiver.objs) != 1:
        return False
    for name, _ in run.memory.of(held[0]):
        run.memory[held[0], name] = run.element(value)
    return True


def _freed(run: Interpreter, name: ast.Name, tensor: Value) -> None:
    """`w.requires_grad = True`: gradients are computed for a tensor from here on."""
    if not tensor.objs and not tensor.batches() and not tensor.of_kind("parameters") and not tensor.of_kind("forward"):
        run.bind(name.id, tensor | library.weight(run, name))


def _listed(run: Interpreter, obj: New, places: list[str]) -> bool:
    """Whether places are among the entries that a list was written out with."""
    entries = getattr(obj.node, "elts", ()) if obj.path == "list" else ()
    run.keys.setdefault(obj, set()).update(str(i) for i in range(len(entries)))
    return all(place.isdigit() and int(place) < len(entries) for place in places)


def execute_assign(run: Interpreter, node: ast.Assign) -> bool:
    """`a = b = value`."""
    value = run.expression(node.value)
    for target in node.targets:
        given = value
        if isinstance(node.value, ast.BinOp) and same(node.value.left, target):
            old, added = (run.trace.values.get(n, NOTHING) for n in (node.value.left, node.value.right))
            if isinstance(node.value.op, ast.Add) and (part := _added_up(run, node.value.right, added)) is not added:
                given = run.binary(node.value.op, old, part, node.value)
            given = _counted_on(run, old, given)
        assign(run, target, marked_as_kept(run, node, target, given))
        written.name_again(run, target, node.value)
        if isinstance(target, ast.Name) and _makes_tensor(node.value) and node in getattr(run.frame.node, "body", ()):
            run.frame.copied.add(target.id)
        elif isinstance(target, ast.Name) and not _makes_tensor(node.value):
            run.frame.copied.discard(target.id)  # it may be another name of something given
    return True


def _makes_tensor(node: ast.expr) -> bool:
    """Whether an expression gives a tensor of its own, which is no view of another one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _MAKE_TENSORS
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare))


def _counted_on(run: Interpreter, old: Value, new: Value) -> Value:
    """What a loop makes of a whole number, as `i += 1` does: more than the number that was written out."""
    number = not new.objs and new.scale is None and {o.kind for o in new.origins} <= {"from", "index"}
    if not run.loops or not number or not is_whole_number(old):
        return new
    return Value(frozenset(), new.origins | {Origin("index", run.loops[-1].node)}, None, new.shape)


def marked_as_kept(run: Interpreter, node: ast.Assign | ast.AugAssign, target: ast.expr, value: Value) -> Value:
    """A value computed from a batch, marked where it becomes a part of what was there before: a later batch may meet it."""
    if not run.loops:
        return value
    held = [o for o in value.instances() if o.path in library.COLLECTIONS]
    of_batch = library.mixed([value, *(run.element(just(o)) for o in held)], {})
    if isinstance(target, ast.Subscript):
        index = run.expression(target.slice)
        part = bool(value.of_kind("batch") or index.of_kind("batch"))
        for obj in run.expression(target.value).instances() if part else ():
            if run.is_a(obj, *library.DICTS):
                library.grown(run, obj, node, NOTHING, key=index)
    elif not (of_batch.of_kind("batch") or of_batch.of_kind("decided") or of_kind(run.deciding, "decided")):
        return value
    else:
        part = isinstance(node, ast.AugAssign) or _reads_target(run, node.value, target)
    if not part:
        return value
    for obj in held if not isinstance(target, ast.Subscript) else ():
        run.set_attribute(obj, ELEMENT, library.grown(run, obj, node, run.element(just(obj))), False)
    return Value(value.objs, value.origins | {Origin("kept", node)}, value.scale, value.shape)


def kept_of(run: Interpreter, node: ast.Call, given: Value) -> frozenset[Origin]:
    """The mark of what a call in place makes of a batch: a later batch may meet it where the tensor was there before."""
    return frozenset((Origin("kept", node),)) if run.loops and (given.of_kind("batch") or given.of_kind("decided")) else NONE


def _reads_target(run: Interpreter, node: ast.expr, target: ast.expr) -> bool:
    key = ("mentions", target)
    if key not in run.project.memo:
        run.project.memo[key] = isinstance(target, (ast.Name, ast.Attribute)) and any(same(n, target) for n in walk(node))
    return bool(run.project.memo[key])


def execute_annassign(run: Interpreter, node: ast.AnnAssign) -> bool:
    """`a: int = value`."""
    if node.value is not None:
        assign(run, node.target, run.expression(node.value))
    return True


def execute_augassign(run: Interpreter, node: ast.AugAssign) -> bool:
    """`a += value`."""
    old, value = run.expression(node.target), run.expression(node.value)
    run.note(node.target, old)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        value = _added_up(run, node.value, value)
    given = by_class(run, node.op, old, value, node, "i")
    new = run.binary(node.op, old, value, node) if given is None else given
    if any(o.path in library.COLLECTIONS for o in old.instances()):
        for obj in old.instances():
            if run.is_a(obj, *library.DICTS):
                run.update(obj, value)
            library.put(run, obj, library.grown(run, obj, node, run.element(value), "extend"), "extend")
        new = old
    assign(run, node.target, marked_as_kept(run, node, node.target, _counted_on(run, old, new)))
    if isinstance(node.target, ast.Attribute) and not old.objs and old.shape is not None:
        written.hold(run, node.target, run.expression(node.target))
    if isinstance(node.target, ast.Name) and not old.objs:  # a tensor is changed in place
        run.frame.changes(node.target.id)
        if views.is_in_place(run, node.target, old):
            run.change_others([run.holder_of(node.target.id)], run.expression(node.target))
        if old.of_kind("parameters") and (run.no_grad or not value.of_kind("forward")):  # a weight or its gradient, and no sum of a loss
            run.store(node.target, old, new)
    return True


def _added_up(run: Interpreter, node: ast.expr, value: Value) -> Value:
    """What is added in each pass of a loop, as a part of the total: over the samples of a batch, that is a sum."""
    if value.scale == "other" and _is_of_one_sample(run, node):
        return Value(value.objs, value.origins, "sum")
    samples = _counted(run, value)
    return Value(value.objs, value.origins | samples, "sum") if samples else value


def _counted(run: Interpreter, value: Value) -> frozenset[Origin]:
    """The batches over whose samples a loop runs that adds a number of the script's own: the total tells how many there are."""
    number = bool(value.objs) and all(isinstance(o, Lit) and isinstance(o.value, (int, float)) for o in value.objs)
    if not number or value.origins or not run.loops or not run.per_sample(run.loops[-1].over):
        return frozenset()
    return frozenset(o for o in library.mixed([run.loops[-1].element], {}).origins if o.kind == "batch")


def _is_of_one_sample(run: Interpreter, node: ast.expr) -> bool:
    """Whether a loop over the samples of a batch runs, and an expression depends on the batch by the sample of this pass alone."""
    loop = run.loops[-1] if run.loops else None
    if loop is None or not isinstance(loop.node, ast.For) or not run.per_sample(loop.over) or ends_elsewhere(run, loop.over):
        return False
    return depends_on(run, node, {n.id for n in names_stored(loop.node.target)}, loop.node.body, may_know_more)


def ends_elsewhere(run: Interpreter, over: Value) -> bool:
    """Whether a loop over the numbers of samples leaves some of them out: `range(1, n)`, `range(n // 2)`."""
    ranges = [o for o in over.instances() if o.path == "range"]
    ends = [run.memory.get((o, ENDS), NOTHING) for o in ranges]
    starts = any(len(getattr(o.node, "args", ())) > 1 for o in ranges)
    return starts or any(end.of_kind(kind) for end in ends for kind in ("offset", "fraction", "divided", "multiple"))


def may_know_more(run: Interpreter, call: ast.Call) -> bool:
    """Whether a call is of something that may know more of the batch than it is given."""
    func = run.trace.values.get(call.func, NOTHING)
    own = any(isinstance(o, (Func, New)) for o in func.objs)
    return knows_batch(run, func) if own else not (func.paths() or isinstance(call.func, ast.Attribute))


def depends_on(
    run: Interpreter, node: ast.expr, own: set[str], body: list[ast.stmt], knows: Callable[[Interpreter, ast.Call], bool] | None = None
) -> bool:
    """Whether all that an expression has of a batch comes from some names, at once or by what a loop's body computes from these alone.

    The entry of a tensor that one of them numbers is of that sample, too. Calls that know more of the batch are `knows`.
    """
    own = own | {n.id for c in walk(node) if isinstance(c, ast.comprehension) for n in names_stored(c.target)}
    if counts(run, node, own):
        return False
    for part in _without_numbered(run, node, own):
        value = run.lookup(part.id) if isinstance(part, ast.Name) else run.trace.values.get(part, NOTHING)
        if isinstance(part, ast.Call) and knows is not None and knows(run, part):
            return False
        if not isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) or not _holds_rows(run, value):
            continue
        if value.scale is None and value.of_kind(prefixes.ROUNDS):
            continue  # which is the same on all ranks
        base: ast.expr = part
        while isinstance(base, (ast.Attribute, ast.Subscript, ast.Call)) and not _is_numbered(run, base, own):
            base = base.func if isinstance(base, ast.Call) else base.value
        if isinstance(base, ast.Subscript):
            continue
        if not isinstance(base, ast.Name):
            return False
        if base is not part and not _holds_rows(run, run.lookup(base.id)):
            continue  # data, of which the names say which
        given = [s for s in body if isinstance(s, ast.Assign) and any(n.id == base.id for n in names_stored(s))]
        others = [s for s in body if s not in given]  # what a name held in the pass before is of another sample
        if base.id not in own and not (len(given) == 1 and depends_on(run, given[0].value, own - {base.id}, others, knows)):
            return False
    return True


def _holds_rows(run: Interpreter, value: Value) -> bool:
    """Whether a value is of a batch, or a collection that was filled from one."""
    return bool(value.of_kind("batch")) or any(
        o.path in library.COLLECTIONS and depends(run, just(o), whole=False) for o in value.instances()
    )


def counts(run: Interpreter, node: ast.AST, own: set[str]) -> bool:
    """Whether the number of a sample, which some names hold, does more than take entries of a batch: on each rank it is another."""
    entries = [n for n in walk(node) if isinstance(n, ast.Subscript)]
    rows = [n for n in entries if (v := run.trace.values.get(n.value, NOTHING)).objs or v.of_kind("batch") or v.of_kind("whole")]
    taking = {n.slice.elts[0] if isinstance(n.slice, ast.Tuple) and n.slice.elts else n.slice for n in rows}
    read = (n for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in own and n not in taking)
    return any(v.of_kind(PLACES) and v.scale is None and not v.objs for v in (run.lookup(n.id) for n in read))


def _without_numbered(run: Interpreter, node: ast.AST, own: set[str]) -> Iterator[ast.expr]:
    """An expression and what it is made of, but for entries of tensors that some names number: `x[i]`, `x[i, :4]`."""
    if isinstance(node, ast.Subscript) and _is_numbered(run, node, own):
        yield from (part for entry in ast.iter_child_nodes(node.slice) for part in _without_numbered(run, entry, own))
        return
    if _is_length_of_all(run, node):
        return
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _without_numbered(run, child, own)


def _is_length_of_all(run: Interpreter, node: ast.AST) -> bool:
    """Whether an expression is a length that each sample of a batch has, as its loader puts them together itself: `x.shape[1]`."""
    sizes = run.trace.values.get(node.value, NOTHING) if isinstance(node, ast.Subscript) else NOTHING
    value = run.trace.values.get(node, NOTHING)
    if sizes.scale != "count" or sizes.shape is None or value.scale is not None or value.objs:
        return False
    loaders = value.batches()
    return bool(loaders) and all(isinstance(o, New) and not run.memory.get((o, "collate_fn"), NOTHING).objs for o in loaders)


def _is_numbered(run: Interpreter, node: ast.expr, own: set[str]) -> bool:
    """Whether an expression is the entry of a tensor that some names number: `x[i]`, `x[i, :4]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return False
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return isinstance(first, ast.Name) and first.id in own and _numbers(run, first, node.value)


def _numbers(run: Interpreter, name: ast.Name, of: ast.Name) -> bool:
    """Whether a name is the number of a sample among rows of the batch, or stands for an entry of what the batch has no part in."""
    return bool(run.lookup(name.id).of_kind(PLACES)) or not _holds_rows(run, run.lookup(of.id))


def execute_delete(run: Interpreter, node: ast.Delete) -> bool:
    """`del a[i]`: what it is taken from is read."""
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            run.expression(target.value)
        elif isinstance(target, ast.Name):
            run.events.append((Kind.WRITE, target, None, NOTHING))
    return True


def _fits(obj: Tup, n: int) -> bool:
    """Whether a tuple may have so many entries."""
    return len(obj.items) == n or (obj.rest is not None and len(obj.items) < n)


def unpack(run: Interpreter, value: Value, targets: list[ast.expr]) -> list[Value]:
    """The parts of `a, b = value`."""
    star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if not value.objs:
        return _of_tensor(run, value, targets, star)
    fitting = {o for o in value.objs if isinstance(o, Tup) and _fits(o, len(targets))} if star is None else set()
    # others are of another case of a function: tuples of other lengths, and loaders, of which nobody names each batch
    objs = [o for o in value.objs if not fitting or o in fitting or not (isinstance(o, Tup) or run.is_a(o, *library.LOADERS))]
    parts = (_of_object(run, o, value, len(targets), star) for o in objs)
    return [join(each) for each in zip(*parts, strict=True)]


def _of_object(run: Interpreter, obj: Obj, value: Value, n: int, star: int | None) -> list[Value]:
    """The parts that an object is unpacked into, so many targets."""
    if isinstance(obj, New) and obj.path == library.PARTS:
        return [just(obj) if i == star else run.memory[obj, "whole"] for i in range(n)]
    if isinstance(obj, Tup) and star is not None and obj.rest is None and len(obj.items) >= n - 1:
        last = star + len(obj.items) - n + 1
        return [*obj.items[:star], just(Tup(obj.items[star:last])), *obj.items[last:]]
    if isinstance(obj, Tup) and star is None and _fits(obj, n):
        return [*obj.items, *([obj.rest or NOTHING] * (n - len(obj.items)))]
    if isinstance(obj, New) and all((obj, str(i)) in run.memory for i in range(n)):
        return [run.memory[obj, str(i)] for i in range(n)]
    if isinstance(obj, New) and obj.path == library.GRAPHS:  # of samples that are several graphs: a batch of each
        return [Value(frozenset((obj,)), value.origins)] * n
    part = run.element(Value(frozenset((obj,)), value.origins, value.scale, value.shape))
    cut = part.scale == "sample" and all(isinstance(o, New) and o.path == batch_source.SLICE for o in part.batches())
    if isinstance(obj, New) and not part.objs and part.shape is None and not cut:  # tensors are no objects
        return [Value(frozenset((run.objects.part(obj, str(i)),)), part.origins, part.scale, part.shape) for i in range(n)]
    return [part] * n


def _of_tensor(run: Interpreter, value: Value, targets: list[ast.expr], star: int | None) -> list[Value]:
    """The parts that a tensor, or what a network of transformers gives, is unpacked into."""
    n = len(targets)
    if value.of_kind("labelled"):
        parts = [library.output_of(value, "")] * n
        return [library.first_output_of(value), *parts[1:]] if star != 0 else parts
    if star is None and (taken := tensor_entries.unpacked(run, value, n, targets[0])) is not None:
        return [library.agreed(t) if t.scale is None else t for t in taken]
    if star is not None and value.shape is not None and value.scale in ROWS and value.shape.several is not False:
        parts = tensor_entries.unpacked(run, value, n, targets[0]) or []
        parts[star] = Value(frozenset(), value.origins, value.scale, value.shape._replace(several=True))
        return parts
    if value.scale == "count" and star is not None and value.shape is not None and n > 1:
        return tensor_entries.unpacked(run, value, n, targets[0], star) or []
    if value.scale == "count" and star is None and n > 1:
        return [value, *[library.agreed(Value(frozenset(), value.origins))] * (n - 1)]
    return [run.element(value)] * n


def _all_of(target: ast.Subscript) -> bool:
    """Whether a target is all of what a name or an attribute holds: `x[:]`."""
    rows = target.slice
    return isinstance(target.value, (ast.Name, ast.Attribute)) and isinstance(rows, ast.Slice) and rows.lower is rows.upper is None
