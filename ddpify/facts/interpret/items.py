"""What `base[index]` is, and an element of what is gone through."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ddpify.facts import library, named, operands, prefixes, tensor_entries, tensors, uniform
from ddpify.facts.assumed import WHOLE_BATCHES
from ddpify.facts.interpret.collated import batch_of
from ddpify.facts.interpret.literals import literal, literal_keys
from ddpify.facts.interpret.state import ELEMENT, UNNAMED, Interpreter
from ddpify.facts.library.effects import DRAWN, SWITCHES
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.library.paths import CONTAINERS
from ddpify.facts.model import NOTHING, Ext, Lit, Method, Module, New, Obj, Part, Tup, Value, join, just
from ddpify.facts.names import canonical
from ddpify.facts.origins import Origin, only, some_output, without
from ddpify.facts.record import Kind
from ddpify.facts.tree import inside
from ddpify.placement.shape import PLACES, ROWS, Scale


def evaluate_subscript(run: Interpreter, node: ast.Subscript) -> Value:
    """`base[index]`."""
    base, index = run.expression(node.value), run.expression(node.slice)
    if (run.batch_sources or _deals_rows(base, index)) and any(isinstance(o, Tup) for o in index.objs):
        flow = library.mixed([index], {})
        index = Value(index.objs, flow.origins, flow.scale, flow.shape)
    value = item(run, base, index, node)
    if of_one := _is_of_one_sample(index):
        origins = value.origins - {Origin("reordered", node)}  # the entries of one sample are in some order, not the samples
        value = Value(value.objs, origins, value.scale, value.shape)
    if of_one and (value.scale in ROWS or (value.scale is None and value.of_kind("whole"))):
        value = Value(value.objs, without(value.origins, "index", PLACES), "other")
    elif _is_of_a_round(base, index, value):
        value = Value(value.objs, without(value.origins, "index"), "other")
    elif value.scale == "sample" and any(_numbers_some(run, v) for v in _entries(index)):
        value = Value(value.objs, value.origins, "chosen", value.shape)
    elif value.scale == "sample" and _is_of_some_samples(run, base, index):
        value = Value(value.objs, without(value.origins, "index"), "other")
    elif tensors.uneven([*_entries(index), base]) or _is_length_of_some(run, node, index):
        value = Value(value.objs, value.origins, "other")
    elif tensor_entries.numbers_batches(run, index):
        value = _beside_a_batch(value)
    run.events.append((Kind.READ, node, base, value))
    return value


def _deals_rows(base: Value, index: Value) -> bool:
    """Whether the first index of a tensor that is none of a batch is a batch's rows: so is what it gives, `torch.eye(n)[labels, :]`."""
    firsts = [o.entries[0] for o in index.objs if isinstance(o, Tup) and o.entries]
    return not base.objs and base.scale is None and not base.of_kind("batch") and any(v.scale == "sample" for v in firsts)


def _beside_a_batch(value: Value) -> Value:
    """What goes with each batch and is from elsewhere: a tensor that is no number may have a row for each sample of a whole batch."""
    tensor = value.shape.ndim != 0 if value.shape is not None else bool(value.of_kind("sized"))
    if not tensor or value.objs or value.scale is not None or value.of_kind("whole"):
        return value
    return Value(frozenset(), value.origins, "other", value.shape)


def _is_of_one_sample(index: Value) -> bool:
    """Whether an index is the number of one sample, in a loop over those of a rank."""
    return any(v.of_kind(PLACES) and v.scale is None and not v.objs for v in _entries(index))


def _is_of_a_round(base: Value, index: Value, value: Value) -> bool:
    """Whether entries are those of a round that not every rank's loop has: of rows that go as far, and not the first of them alone.

    Of a list that is filled in such rounds, no rank has the same entries under a number.
    """
    rounds = any(v.of_kind(prefixes.ROUNDS) for v in _entries(index))
    if value.scale == "chosen" and value.of_kind(prefixes.FIRST):
        return bool(base.objs)
    return rounds and value.scale in ROWS


def _is_of_some_samples(run: Interpreter, base: Value, index: Value) -> bool:
    """Whether an index is the number of one sample of a loader's labels, in a loop as often as a constant says: `for i in range(4)`."""
    labels = base.shape is not None and base.shape.ndim == 1 and base.shape.axis == 0 and not base.shape.several
    counts = not index.objs and index.scale is None and {o.kind for o in index.origins} == {"index"}
    return labels and counts and not run.batch_sources


def _numbers_some(run: Interpreter, index: Value) -> bool:
    """Whether an index holds the numbers of some of a rank's samples: a list that was filled with them, or that a condition chose."""
    filled = [o for o in index.instances() if o.path == "list" and isinstance(o.node, ast.List)]
    added = any(run.memory.get((o, ELEMENT), NOTHING).of_kind(PLACES) for o in filled)
    return added or bool(index.of_kind(PLACES) and index.of_kind("decided"))


def _entries(index: Value) -> list[Value]:
    """An index, and what is in it where it is a tuple."""
    return [index, *(e for o in index.objs if isinstance(o, Tup) for e in o.entries)]


def _is_length_of_some(run: Interpreter, node: ast.Subscript, index: Value) -> bool:
    """Whether it is `x.shape[0]` of rows of which it is not known how they depend on the number of samples."""
    sizes = isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and literal(index) == 0
    of = run.trace.values.get(node.value.value, NOTHING) if isinstance(node.value, ast.Attribute) else NOTHING
    return sizes and of.scale == "other" and not of.objs


def _of_steps(run: Interpreter, base: Value, index: Value, node: ast.Subscript) -> Value:
    """Some steps of sequences side by side, in which the innermost loop trains."""
    run.feed(base)
    own = frozenset(o for o in library.mixed([index], {}).origins if o.kind != "index")
    if not (how := run.timed(base)):
        found = tensor_entries.item(run, base, Value(index.objs, own, index.scale, index.shape), node)
        return Value(found.objs, found.origins - (only(found.origins, "index") - base.origins), found.scale, found.shape)
    rows = node.slice if how == "columns" else node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else None
    whole: Scale = "sample" if isinstance(rows, ast.Slice) else "other"
    return Value(frozenset(), base.origins | own, whole)


def item(run: Interpreter, base: Value, index: Value, node: ast.Subscript) -> Value:
    """What `base[index]` is; None has no entries, so that what may be None is none of it."""
    base = _but_none(base)
    if not base.objs:
        return _of_tensor(run, base, index, node)
    out = [value for obj in base.objs for value in _under(run, obj, base, index, node)]
    origins = base.origins
    if base.of_kind("parameters") and isinstance(literal(index), str) and literal(index) != "params":
        origins = without(origins, "parameters", "weight")  # a setting of a group
    found = join(out) | Value(frozenset(), origins | of_batches(run, index), base.scale, base.shape)
    return found | _chosen(run, base, found, index)


def _of_tensor(run: Interpreter, base: Value, index: Value, node: ast.Subscript) -> Value:
    """What a tensor, or what a network of transformers gives, has under an index."""
    if base.of_kind("labelled"):
        if isinstance(node.slice, ast.Slice) and node.slice.lower is None and node.slice.step is None:
            return base  # the first outputs
        key = literal(index)
        part = library.first_output_of(base) if key == 0 else library.output_of(base, str(key))
        return Value(frozenset(), part.origins | index.origins, part.scale, part.shape)
    if base.scale == "sample" and run.batch_sources and run.side_by_side(base):
        return _of_steps(run, base, index, node)
    if (seeds := library.seed_rows(run, base, node.slice)) is not None:
        return seeds
    found = tensor_entries.item(run, base, index, node)
    return library.agreed(found) if base.scale == "count" and found.scale is None else found


def _under(run: Interpreter, obj: Obj, base: Value, index: Value, node: ast.Subscript) -> list[Value]:
    """What an object that `base` may be has under an index."""
    match obj:
        case New(path=library.PARTS):
            return [run.memory[obj, "whole" if isinstance(literal(index), int) else ELEMENT]]
        case Tup():
            return [_of_tuple(run, obj, literal(index), node.slice)]
        case Part(name=named.SPACE):
            each = named.under_each(run, index, obj.of)
            return [each if each.objs else named.in_space(run, obj, literal_keys(index))]
        case Ext():
            return _of_path(run, obj.path, index)
        case New() if isinstance(node.slice, ast.Slice) and _of_models(run, obj):
            return [just(obj)]  # some of its networks
        case New() if obj.path in library.WRAPPERS:
            return [item(run, run.memory.get((obj, "module"), NOTHING), index, node)]
        case New() | Part():
            return _of_object(run, obj, base, index, node)
    return []


def _of_tuple(run: Interpreter, obj: Tup, at: object, index: ast.expr) -> Value:
    if isinstance(at, int) and (0 if obj.rest is not None else -len(obj.items)) <= at < len(obj.items):
        return obj.items[at]
    if obj.rest is not None and isinstance(at, int) and at >= 0:
        return obj.rest
    some = sliced(run, obj, index)
    if some is None and isinstance(index, ast.Slice) and obj.entries:
        some = Tup((), (), join(obj.entries))
    return just(some) if some is not None else join(obj.entries)


def _of_path(run: Interpreter, path: str, index: Value) -> list[Value]:
    """What something of a library has under an index: a module in `sys.modules`, a name in its `__dict__`, a setting of the process."""
    keys = literal_keys(index)
    if path == "sys.modules" and keys:
        return [just(Module(key)) if key == run.frame.file else run.import_module(key, key) for key in keys]
    if path.endswith(f".{named.SPACE}"):
        return [just(Ext(canonical(f"{path.removesuffix(named.SPACE)}{key}"))) for key in keys or ["*"]]
    kind = library.ENVIRONMENT.get(str(literal(index))) if path == "os.environ" else None
    if path in ("os.environ", "sys.argv") and keys and not kind:  # a setting of the run
        return [just(run.objects.part(Ext(path), keys[0]))]
    return [Value(frozenset(), frozenset((Origin(kind),))) if kind else just(Ext(f"{path}[]"))]


def _chosen(run: Interpreter, base: Value, found: Value, index: Value) -> Value:
    """What an entry of a list or dict owes to the draw, or to the rows of a batch, that say which one it is: `names[label]`."""
    by_rows = index.scale is not None and not index.objs and bool(index.of_kind("batch"))
    kept = all(run.is_a(o, *library.COLLECTIONS) or isinstance(o, Tup) for o in base.objs)
    if not kept or found.scale is not None or any(not isinstance(o, Lit) for o in found.objs):
        return NOTHING
    drawn = only(index.origins, "random", "drawn")
    return Value(frozenset(), frozenset(o for o in index.origins if o.kind != "index"), "other") if by_rows else Value(frozenset(), drawn)


def _of_object(run: Interpreter, obj: New | Part, base: Value, index: Value, node: ast.Subscript) -> list[Value]:
    """What a container or another object that `base` may be has under an index."""
    if isinstance(obj, New) and obj.path in SWITCHES:  # a part of a tracker's run, which writes what it is given
        return [just(run.objects.part(obj, next(iter(literal_keys(index)), ELEMENT)))]
    held = [run.memory[obj, key] for key in literal_keys(index) if (obj, key) in run.memory]
    if not held and (obj, ELEMENT) in run.memory and _has_others(run, obj, index):
        held = [just(run.objects.part(obj, key)) for key in literal_keys(index)[:1]] + [run.memory.get((obj, UNNAMED), NOTHING)]
    if not held and (obj, ELEMENT) in run.memory:
        other = literal_keys(index) and run.is_a(obj, *library.DICTS) and (obj, UNNAMED) in run.memory  # no key that is known
        held = [run.memory[obj, UNNAMED if other else ELEMENT]]
    if not held and isinstance(obj, New) and obj.path == "list" and (obj, "iterable") in run.memory:
        held = [run.element(just(obj))]
    if isinstance(node.slice, ast.Slice) and isinstance(obj, New) and obj.path == "list":
        whole = node.slice.lower is node.slice.upper is None
        held = [_several(v if whole else _some_of(v)) for v in held]
    elif isinstance(obj, New) and literal_keys(index) and not (literal(index) == -1 and isinstance(obj.node, ast.List)):
        # of a list that grows, the last one may come from all before it
        held = list(map(_some_of, held))
    elif isinstance(obj, New) and not literal_keys(index):
        held = [v if _goes_through(v, index, node) else _some_of(v) for v in held]
    parts = index.scale is not None or isinstance(node.slice, ast.Slice)
    if not held and isinstance(obj, New) and obj.path == "torch.nn.Parameter" and parts:
        held = [tensor_entries.item(run, Value(frozenset(), base.origins, None, base.shape), index, node)]
    if not held:
        keys = literal_keys(index) or [ELEMENT] * (_is_of_drawing(obj) or _is_of_network(obj))
        held = (
            [just(run.objects.part(obj, keys[0]))] if keys else [Value(frozenset(), base.origins | index.origins, base.scale, base.shape)]
        )
        if run.is_a(obj, *library.LOADERS):
            held = [NOTHING]
    return held


def _some_of(value: Value) -> Value:
    """One of several outputs of a forward that came out of one expression, or some of them."""
    return Value(value.objs, some_output(value.origins, ELEMENT), value.scale, value.shape)


def _goes_through(value: Value, index: Value, node: ast.Subscript) -> bool:
    """Whether an index counts the rounds of a loop in which the entries are read, after the forward that gave them."""
    forwards = {of[0] for of in value.of_kind("output")}
    around = (inside(loop) for loop in index.of_kind("index") if isinstance(loop, ast.AST))
    return any(node in within and within.isdisjoint(forwards) for within in around)


def _has_others(run: Interpreter, obj: New | Part, index: Value) -> bool:
    """Whether a key may be one of those that something had when it was read or given, where others were put in since."""
    filled = (*library.COLLECTIONS, *library.DICTS, *CONTAINERS)
    own = isinstance(obj, Part) or (obj.cls is None and not run.is_a(obj, *filled))
    return bool(literal_keys(index)) and (own or _is_of_settings(run.memory.get((obj, UNNAMED))))


def _is_of_settings(value: Value | None) -> bool:
    """Whether what a dict has under names that are not known are settings, and nothing made of the data."""
    return value is not None and value.scale is None and not value.origins and all(isinstance(o, (Lit, Part)) for o in value.objs)


def _is_of_drawing(obj: Obj) -> bool:
    """Whether an object is a part of a figure: of several axes, one is a part of it, too, whichever it is."""
    while isinstance(obj, (Part, Method)):
        obj = obj.of
    return isinstance(obj, New) and obj.path.startswith(DRAWN)


def _is_of_network(obj: Obj) -> bool:
    """Whether an object is a part of a library's network: one of its layers, whichever it is, is a part of it, too."""
    while isinstance(obj, Part):
        obj = obj.of
        if isinstance(obj, New) and is_library_model(obj):
            return True
    return False


def _but_none(value: Value) -> Value:
    """What a value may be other than None."""
    none = frozenset(o for o in value.objs if isinstance(o, Lit) and o.value is None)
    return Value(value.objs - none, value.origins, value.scale, value.shape) if none else value


def sliced(run: Interpreter, obj: Tup, index: ast.expr) -> Tup | None:
    """Some entries of a tuple; None where it is not known which."""
    if not isinstance(index, ast.Slice):
        return None
    bounds = [b for b in (index.lower, index.upper, index.step) if b is not None]
    numbers = {b: n for b in bounds if isinstance(n := literal(run.trace.values.get(b, NOTHING)), int)}
    if len(numbers) < len(bounds):
        return None
    lower, upper, step = (numbers[b] if b is not None else None for b in (index.lower, index.upper, index.step))
    if obj.rest is not None and (step is not None or (lower or 0) < 0 or not 0 <= (upper or 0) <= len(obj.items)):
        return None
    return Tup(obj.items[lower:upper:step], (), obj.rest if upper is None else None)


def _several(value: Value) -> Value:
    """Some entries of a list, of what one of them is."""
    origins = without(value.origins, "index")
    return Value(value.objs, origins, value.scale, value.shape._replace(several=True) if value.scale and value.shape else value.shape)


def _of_models(run: Interpreter, obj: New) -> bool:
    """Whether a list holds networks, or one network others in a row, as a list does."""
    if obj.path != "list":
        return run.is_a(obj, *CONTAINERS)
    return any(
        isinstance(o, New) and (run.is_module(o) or o.path in library.WRAPPERS or o.path.startswith("torch.nn."))
        for o in run.element(just(obj)).objs
    )


def of_batches(run: Interpreter, value: Value) -> frozenset[Origin]:
    """The batches made by hand that a value comes from."""
    return only(value.origins, "batch") if run.batch_sources else frozenset()


def own_length(run: Interpreter, part: ast.expr) -> bool:
    """Whether a slice ends where the samples of a batch say: on each rank elsewhere."""
    ends = [e for e in (part.lower, part.upper) if e is not None] if isinstance(part, ast.Slice) else []
    return any(run.trace.values.get(e, NOTHING).of_kind("batch") for e in ends)


def element(run: Interpreter, over: Value, node: ast.AST | None = None) -> Value:
    """What iterating over a value gives."""
    over = _but_none(over)
    if not over.objs:
        if over.shape is not None and over.shape.several:
            return Value(frozenset(), over.origins, over.scale, over.shape._replace(several=False))
        if over.scale in ROWS and node is not None:
            return Value(frozenset(), over.origins, "other")  # one sample at a time
        return uniform.part(over, node)
    rest = frozenset() if _keys_as_written(run, over.objs) else over.origins
    if all(run.is_a(o, *library.LOADERS) for o in over.objs):  # data made from the batches of another loader is data of its own
        rest = without(rest, "batch", "forward")
    if prefixes.is_round(run, over):
        rest = without(rest, "coupled")
    made = [o for o in over.objs if o not in run.iterated]  # `names = chain(names, more)` in a loop holds itself
    run.iterated.update(made)
    items = [_element_of(run, obj, over, node) for obj in made]
    run.iterated.difference_update(made)
    fed = [any(v.batches() for v in library.with_entries([item])) for item in items]
    alike = any(fed) and any(isinstance(o, New) and o.cls is not None and not of for o, of in zip(made, fed, strict=True))
    found = _or_alike(join(items), node) if alike else join(items)
    return found | Value(frozenset(), rest)


def _or_alike(item: Value, node: ast.AST | None) -> Value:
    """What iterates over a loader, or over something in its place that all ranks may have alike."""
    mark = Value(frozenset(), frozenset((Origin("alike", node),)))
    objs = frozenset(o.each(lambda entry: entry | mark) if isinstance(o, Tup) else o for o in item.objs)
    return Value(objs, item.origins, item.scale, item.shape) | mark


def _element_of(run: Interpreter, obj: Obj, over: Value, node: ast.AST | None) -> Value:
    if isinstance(obj, Tup):
        return join(obj.entries)
    if run.is_a(obj, *library.LOADERS):
        graphs = library.batch_of_graphs(run, obj) if isinstance(obj, New) else None
        batch = batch_of(run, obj) if graphs is None else graphs
        return library.same_rows(batch) if (obj, WHOLE_BATCHES) in run.memory else batch
    if isinstance(obj, New) and obj.path in library.WRAPPERS:
        return element(run, run.memory.get((obj, "module"), NOTHING), node)
    if isinstance(obj, New) and (found := _gone_through(run, obj, over, node)) is not None:
        return found
    if isinstance(obj, Part) and obj.name == named.SPACE:
        return named.each_of_space(run, obj)[0]
    if isinstance(obj, Part) and (obj, ELEMENT) in run.memory:
        return run.memory[obj, ELEMENT]
    if isinstance(obj, (New, Part)):
        return Value(frozenset((run.objects.part(obj, ELEMENT),)), over.origins, over.scale, over.shape)
    return Value(frozenset(), over.origins, over.scale, over.shape)


def _gone_through(run: Interpreter, obj: New, over: Value, node: ast.AST | None) -> Value | None:
    """What a collection, an iterator or an object with an `__iter__` of its own gives; None where that is not known."""
    if obj.path == "range":
        if (counted := prefixes.number(over, obj, run, node)) is not None:
            return counted
        place = frozenset((Origin(PLACES, obj),)) if (obj, operands.ENDS) in run.memory else frozenset()
        return Value(frozenset(), frozenset((Origin("index", node),)) | place | over.origins)
    inner = run.memory.get((obj, "iterable"))
    if obj.path == "enumerate" and inner is not None:
        place = frozenset((Origin(PLACES, obj),)) if run.per_sample(inner, numbered=False) else frozenset()
        return just(Tup((Value(frozenset(), frozenset((Origin("index", node),)) | place), element(run, inner, node))))
    if obj.path == library.PARTS:
        return run.memory[obj, ELEMENT]
    if obj.path == "zip":
        parts = run.memory.numbered(obj)
        items = [element(run, part, node) for part in parts]
        beside = any(item.batches() and not library.mixed([part], {}).batches() for part, item in zip(parts, items, strict=True))
        return just(Tup(tuple(_beside_a_batch(item) if beside and not item.batches() else item for item in items)))
    if inner is not None:  # `list(values)`, to which more was added since
        return element(run, inner, node) | run.memory.get((obj, ELEMENT), NOTHING)
    if run.is_a(obj, *library.DICTS) and (obj, ELEMENT) in run.memory and own_method(run, obj, "__iter__") is None:
        return _keys_of(run, obj)
    if (obj, ELEMENT) in run.memory:
        return run.memory[obj, ELEMENT]
    made = run.invoke_named(obj, "__iter__", obj.node)
    if made is not None and any(o is obj for o in made.objs):
        return run.invoke_named(obj, "__next__", obj.node) or NOTHING
    return element(run, made, node) if made is not None else None


def own_method(run: Interpreter, obj: New, name: str) -> Value | None:
    """A method of the class of an object, where it is of the project."""
    return run.find(obj.cls, name) if obj.cls is not None else None


def _keys_as_written(run: Interpreter, objs: Iterable[Obj]) -> bool:
    """Whether all of the objects are dicts with the keys of one literal and no other, whatever their values are."""
    written = set[frozenset[str]]()
    for obj in objs:
        if not isinstance(obj, New) or not isinstance(obj.node, ast.Dict) or (obj, UNNAMED) in run.memory:
            return False
        keys = {key.value for key in obj.node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        if len(keys) < len(obj.node.keys) or keys != run.keys.get(obj):
            return False
        written.add(frozenset(keys))
    return len(written) == 1


def _keys_of(run: Interpreter, obj: New) -> Value:
    """The keys of a dict, where they are known names."""
    run.memory.of(obj)  # all of it makes a difference
    if (obj, UNNAMED) in run.memory or not run.keys.get(obj):
        return Value(frozenset(), run.memory[obj, ELEMENT].origins)
    return Value(frozenset(Lit(key) for key in run.keys[obj]))
