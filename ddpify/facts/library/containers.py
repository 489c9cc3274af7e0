"""Lists, dicts, sets and what goes through them: what they hold, and the rows of their methods.

A container holds `"[]"`, any of its elements; `"[?]"`, what was put in under keys that are not known; and entries by their keys or numbers.
As `"[n]"` it holds the batches that say how many elements it has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddpify.facts import operands, orders, tensors
from ddpify.facts.library.flow import mixed, texts_of
from ddpify.facts.library.paths import COLLECTIONS, DICTS
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import NOTHING, Lit, New, Obj, Tup, Value, join, just, origins_of
from ddpify.facts.origins import Origin, only, without
from ddpify.facts.tree import is_main_test
from ddpify.placement.shape import EXTREMES, ROWS, Base, Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

SIZE = "[n]"
_COUNTER = "collections.Counter"
_COLUMNS = 8  # so many entries of a sample are known one by one
_ROWS = (set(COLLECTIONS) - DICTS) | {"zip", "enumerate"}  # whose elements are pairs where a dict is made of them

# ------------------------------------------------------------------------------------------------ making them


def dictionary(use: Use) -> Value:
    """`dict(...)`, `OrderedDict(...)`: the entries of dicts and of pairs, and those named by keywords."""
    run, obj = use.run, use.instance()
    named_values = {k: v for k, v in use.keywords.items() if k != "**"}
    run.memory[obj, "[]"] = join(list(named_values.values()))
    if "**" in use.keywords:
        run.update(obj, use.keywords["**"])
    for arg in use.args:
        put_in(run, obj, arg)
    for name, value in named_values.items():
        run.memory[obj, name] = value
    return just(obj)


def put_in(run: Interpreter, obj: Obj, given: Value) -> None:
    """Let a dict hold the entries of dicts and of pairs: `dict(zip(names, losses))`, `OrderedDict([("first", layer)])`."""
    dicts = frozenset(o for o in given.objs if not isinstance(o, Tup) and getattr(o, "path", "") not in _ROWS)
    run.update(obj, Value(dicts, given.origins, given.scale, given.shape))
    if given.objs:
        entries = [(texts_of(key) or ["[?]"], value) for key, value in _pairs(run, run.element(given))]
    else:  # dict(model.named_parameters())
        entries = [(["[?]"], given)] if given.origins else []
    for keys, value in entries:
        for key in ("[]", *keys):
            run.set_attribute(obj, key, value, False)


def _pairs(run: Interpreter, value: Value) -> Iterator[tuple[Value, ...]]:
    """The pairs that a value may be: tuples, or lists, of two."""
    for o in value.objs:
        items = o.items if isinstance(o, Tup) else run.memory.numbered(o) if isinstance(o, New) and o.path == "list" else ()
        if len(items) == 2:
            yield tuple(items)


def default_dict(use: Use) -> Value:
    """`defaultdict(list)`: any of its elements may be what the factory makes."""
    result = dictionary(use._replace(args=use.args[1:]))
    if use.args and use.args[0].objs:
        for obj in result.objs:
            given = use.run.invoke(use.event, use.args[0], [], {})
            use.run.set_attribute(obj, "[]", given, False)
            use.run.set_attribute(obj, "[?]", given, False)
    return result


def tally(use: Use) -> Value:
    """`Counter(values)`: numbers of what the rows of a batch are."""
    owed = use.mixed.origins.union(*(use.run.element(a).origins for a in use.args))
    if not any(o.kind == "batch" for o in owed):
        return dictionary(use)
    obj = use.instance()
    for key in ("[]", "[?]"):
        use.run.set_attribute(obj, key, Value(frozenset(), owed, "other"), False)
    return just(obj)


def by_keys(use: Use) -> Value:
    """`dict.fromkeys(values, value)`: of the rows of a batch, an entry for each that is not there before."""
    obj, keys = use.instance("dict"), use.run.element(use.argument(0))
    use.run.set_attribute(obj, "[]", use.argument(1), False)
    return Value(frozenset((obj,)), keys.origins, "other" if keys.batches() else None)


def unordered(use: Use) -> Value:
    """A set of what is gone through."""
    obj = use.instance("set")
    use.run.memory[obj, "[]"] = use.run.element(use.args[0]) if use.args else NOTHING
    return just(obj)


def _united(use: Use) -> Value:
    """`union`, `intersection` and the like: another set, of what the set and the arguments hold."""
    obj, others = use.instance("set"), use.args if use.name not in ("difference", "copy") else []
    use.run.memory[obj, "[]"] = join([use.run.element(v) for v in (just(use.of), *others)])
    return just(obj)


def shown_as_table(run: Interpreter, made: New, entry: Value) -> None:
    """Note that a tensor that is made of a list has two dimensions, where each of its entries is a list itself."""
    if entry.objs and all(isinstance(o, New) and o.path == "list" for o in entry.objs):
        run.claims.note("shown", made, 2)


def mapped(use: Use) -> Value:
    """`map(function, values)`: a list of what the function gives: of each sample, or of each part of a batch."""
    run, obj = use.run, use.instance("list")
    function, *values = use.args or [NOTHING]
    shapes = [v.shape for v in values if run.per_sample(v, numbered=False) and v.shape is not None]
    samples = bool(values) and len(shapes) == len(values) and all(shape.several is False for shape in shapes)
    elements = [run.element(v, use.node if samples else None) for v in values]
    item = run.memory[obj, "[]"] = run.invoke(use.event, function, elements, {})
    if not samples:
        return just(obj)
    origins = item.origins | only(mixed(values, {}).origins, "batch")
    if run.knows_batch(function):
        return Value(frozenset((obj,)), origins, "other")
    shown_as_table(run, obj, item)
    return Value(frozenset((obj,)), origins, "sample", Shape(obj, sure=False))


def reduced(use: Use) -> Value:
    """`reduce(function, values, first)`: what the function gives of what it gave before and an element."""
    run, (function, values, *first) = use.run, (*use.args, NOTHING, NOTHING)[: max(2, len(use.args))]
    element = run.element(values)
    so_far = join(first) if first else element
    for _ in range(2):
        so_far = run.invoke(use.event, function, [so_far, element], {}) | (so_far if not so_far.scale else NOTHING)
    return so_far


# ------------------------------------------------------------------------------------------------ going through them


def counted(use: Use) -> Value:
    """`enumerate(values)`."""
    obj = use.instance()
    use.run.memory[obj, "iterable"] = use.args[0] if use.args else NOTHING
    return just(obj)


def zipped(use: Use) -> Value:
    """`zip(first, second)`; `zip(*samples)`: what the samples of a batch have in one place, of all of them, and in the next."""
    match use.node:
        case ast.Call(args=[ast.Starred(samples)]):
            rows = use.run.trace.values.get(samples, NOTHING)
            if use.run.per_sample(rows, numbered=False):
                return just(columns(use.run, use.instance("list"), mixed([rows], {}).origins))
    obj = use.instance()
    for i, arg in enumerate(use.args):
        use.run.memory[obj, str(i)] = arg
    return just(obj)


def columns(run: Interpreter, obj: New, origins: frozenset[Origin]) -> New:
    """What the samples of a batch have in each place: a list of lists with one entry for each sample."""
    for place in ("[]", *map(str, range(_COLUMNS))):  # each of its own dimensions
        run.memory[obj, place] = Value(frozenset(), origins, "sample", Shape(Base((obj, place)), sure=False))
    return obj


def numbers(use: Use) -> Value:
    """`range(...)`: with what its ends depend on."""
    obj, ends = use.instance("range"), use.mixed
    if ends.scale is not None:
        scales = {a.scale for a in use.args if a.scale is not None}
        extreme = next(iter(scales)) if len(scales) == 1 and scales <= set(EXTREMES) else None
        use.run.memory[obj, operands.ENDS] = Value(frozenset(), ends.origins, extreme or ends.scale)
    if len(use.args) == 2:
        use.run.memory[obj, tensors.START] = use.args[0]
    return Value(frozenset((obj,)), ends.origins)


def passed_on(use: Use, path: str = "", values: Value | None = None) -> Value:
    """`tqdm(values)`, `iter(values)`: what gives the elements of its argument."""
    obj, values = use.instance(path), use.argument(0, "iterable") if values is None else values
    use.run.memory[obj, "iterable"] = values
    kept = only(values.origins, "batch") if path == "list" else frozenset()
    return Value(frozenset((obj,)), kept if values.objs else values.origins)


def in_order(use: Use) -> Value:
    """`sorted(values)`: a list; of the rows of a batch, rows in an order that all of them decide."""
    rows = use.argument(0, "iterable")
    if operands.is_places(use.run, rows):
        return orders.numbered(use.run, use.node, passed_on(use, "list"))
    found = orders.sorted_rows(use.run, use.node, rows) if rows.scale in ROWS and not rows.objs else None
    made = passed_on(use, "list") if found is None else found
    return Value(made.objs, made.origins | _of_keys(use, rows), made.scale, made.shape)


def _of_keys(use: Use, values: Value) -> frozenset[Origin]:
    """The draws by which values are sorted: `sorted(rows, key=lambda row: random.random())`."""
    key = use.keywords.get("key", NOTHING)
    if not key.functions():
        return frozenset()
    return only(use.run.invoke(use.event, key, [use.run.element(values)], {}).origins, "random", "drawn")


def some(use: Use) -> Value:
    """`reversed(values)`, `itertools.islice(values, 3)`: of the rows of a batch, rows that stand beside others, or some of them."""
    rows = use.argument(0, "iterable")
    return passed_on(use) if rows.objs or rows.scale not in ROWS else Value(frozenset(), rows.origins, "other")


def listed(use: Use) -> Value:
    """`list(values)`: a list of the elements; the rows of a batch stay what they are, and so do their sizes."""
    values = use.argument(0, "iterable")
    if use.name == "tuple" and len(values.objs) == len(values.instances()) == 1:
        (held,) = values.instances()
        entries = use.run.memory.numbered(held) if held.path == "list" else []
        if entries and use.run.memory.get((held, "[]")) == join(entries):  # as many as were written out
            return just(Tup(tuple(entries)))
    if use.args:
        return values if _is_mapped(use) or (not values.objs and values.scale in ("sample", "count", "other")) else passed_on(use, "list")
    empty = use.instance("list")
    use.run.memory[empty, "[]"] = NOTHING
    return just(empty)


def _is_mapped(use: Use) -> bool:
    """Whether a list is made of what `map` gives, one for each sample."""
    match use.node:
        case ast.Call(args=[ast.Call(func)]):
            return use.run.trace.values.get(func, NOTHING).paths() == {"map"} and use.args[0].scale == "sample"
    return False


def beside(use: Use) -> Value | None:
    """`itertools.combinations(values, 2)`, `product(rows, rows)`: of the samples of a batch, some beside others; None of anything else."""
    given = [*use.args, *map(use.run.element, use.args)]
    if not any(v.batches() for v in given):
        return None
    return passed_on(use, "", Value(frozenset(), origins_of(given), "other"))


def of_all(use: Use) -> Value | None:
    """`hash(values)`, `heapq.nsmallest(1, values)`: what all of the samples of a batch have a part in; None of anything else."""
    owed = use.mixed.origins.union(*(use.run.element(a).origins for a in use.args))
    return Value(frozenset(), owed, "other") if any(o.kind == "batch" for o in owed) else None


def chained(use: Use, elements: bool = False) -> Value:
    """`itertools.chain(first, second)`, `itertools.chain.from_iterable(values)`."""
    obj, parts = use.instance(), [use.run.element(a) for a in use.args] if elements else use.args
    use.run.memory[obj, "iterable"] = join(parts)
    return Value(frozenset((obj,)), origins_of(p for p in parts if not p.objs))


def following(use: Use) -> Value:
    """`next(values)`: what the `__next__` of a class of the project gives, and an element of everything else; of nothing, the default."""
    run = use.run
    if not use.args:
        return NOTHING
    (values, *otherwise) = use.args
    if otherwise and _is_empty(run, values):
        return otherwise[0]
    own = [o for o in values.instances() if o.cls is not None]
    given = [v for o in own if (v := run.invoke_named(o, "__next__", use.node)) is not None]
    rest = Value(values.objs - frozenset(own), values.origins, values.scale, values.shape)
    if not given and values.objs and values.scale in ROWS:  # of what was computed of each sample, the first
        return Value(frozenset(), run.element(values).origins | values.origins, "other")
    return join([*given, run.element(rest)]) if given and rest.objs else join(given) if given else run.element(values)


def _is_empty(run: Interpreter, iterator: Value) -> bool:
    """Whether an iterator is surely one over a list that is written out with nothing in it, and got nothing since."""
    over = [run.memory.get((o, "iterable"), NOTHING) for o in iterator.instances() if o.path == "iter"]
    lists = [o for value in over for o in value.objs]
    written = all(run.memory.written_out(o) == [] for o in lists)
    return bool(over) and len(over) == len(iterator.objs) and all(v.objs and not v.origins for v in over) and written


# ------------------------------------------------------------------------------------------------ methods


def _added(use: Use) -> Value:
    """`append`, `add`, `insert`, `extend`: one more element, or more of them."""
    if use.args:
        value = use.run.element(use.args[0]) if use.name == "extend" else use.args[-1]
        put(use.run, use.of, grown(use.run, use.of, use.node, value, use.name), use.name)
    return NOTHING


def grown(run: Interpreter, obj: Obj, node: ast.AST, value: Value, how: str = "", key: Value = NOTHING) -> Value:
    """What is put into a container by a method, marked where it is of a batch: later batches may meet it.

    How many elements there are from here on, the batch says where it gives several of them, or the key of one.
    """
    samples = [loop.element for loop in run.loops[-1:] if run.per_sample(loop.over)]
    several = how not in ("append", "appendleft", "insert") or bool(samples)
    given = mixed([value, key, *samples], {}).origins | run.deciding
    batches = only(given, "batch", "decided")
    if not run.loops or not batches:
        return value
    if several:
        through = next((loop for loop in run.loops if loop.element.batches()), run.loops[-1]).node
        run.set_attribute(obj, SIZE, Value(frozenset(), batches | {Origin("kept", node), Origin("index", through)}, "other"), False)
    return Value(value.objs, value.origins | {Origin("kept", node)}, value.scale, value.shape)


def put(run: Interpreter, obj: Obj, value: Value, how: str) -> None:
    """Let a container hold one more element, or more such elements, by a method of this name."""
    run.set_attribute(obj, "[?]", value, False)
    if how in ("append", "insert", "extend") and any(is_layer(run, o) for o in value.objs):
        _place_model(run, obj, value, how == "append")
    run.set_attribute(obj, "[]", value, False)


def _added_by_default(use: Use) -> Value:
    """`setdefault(key, value)`."""
    if use.args:
        put(use.run, use.of, grown(use.run, use.of, use.node, use.args[-1], key=use.args[0]), use.name)
    return use.run.memory.get((use.of, "[]"), NOTHING)


def _place_model(run: Interpreter, obj: Obj, value: Value, last: bool) -> None:
    """A network put into a list: known by its place at the end, as long as it is sure how many there are before it."""
    places = {name for name, _ in run.memory.of(obj) if name.isdigit()}
    sure = last and not run.loops and all(is_main_test(test) for test, _ in run.tests)
    if sure and (obj, "[many]") not in run.memory and (places or not run.memory.get((obj, "[]"), NOTHING).objs):
        run.memory[obj, str(len(places))] = value
    else:
        run.memory[obj, "[many]"] = NOTHING
    if last:
        run.memory[obj, "-1"] = value
    for name in places if not last else ():
        run.set_attribute(obj, name, run.memory.get((obj, "[]"), NOTHING), False)


def _put(use: Use, value: Value) -> None:
    """Some element of a container may be a value from here on."""
    for name in ("[?]", "[]"):
        use.run.set_attribute(use.of, name, value, False)


def _updated(use: Use) -> Value:
    """`update`: the entries of dicts, and the elements of everything else."""
    obj = use.of
    of_dict = use.run.is_a(obj, *DICTS, "torch.nn.ModuleDict") and not use.run.is_a(obj, _COUNTER)
    for value in use.args:
        if of_dict:
            put_in(use.run, obj, value)
        else:
            use.run.update(obj, value)
        entry = grown(use.run, obj, use.node, use.run.element(value))
        if of_dict or any(use.run.is_a(o, *DICTS) for o in value.objs):
            use.run.set_attribute(obj, "[]", Value(frozenset(), only(entry.origins, "kept")), False)
        else:
            _put(use, Value(frozenset(), entry.origins, "other" if entry.scale else None) if use.run.is_a(obj, _COUNTER) else entry)
    for key, value in use.keywords.items():
        if key == "**":
            use.run.update(obj, value)
        else:
            use.run.set_attribute(obj, key, value, True)
            if of_dict:
                use.run.set_attribute(obj, "[]", value, False)
    return NOTHING


def _unknown(use: Use) -> Value:
    """Any other method: unless it only asks, it may put what it is given into the container."""
    if use.name not in _ASKING and use.mixed.origins:
        _put(use, Value(frozenset(), use.mixed.origins, "other"))
    return Value(frozenset(), use.mixed.origins)


def _moved(use: Use) -> Value:
    """`values.sort()`, `values.reverse()`: the same elements in another order, which of rows of a batch nobody knows."""
    use.run.memory[use.of, operands.MOVED] = NOTHING
    orders.lost(use.run, use.event.node.func, use.event.now)
    if draws := _of_keys(use, just(use.of)):
        use.run.set_attribute(use.of, "[]", Value(frozenset(), draws), False)
    return _unknown(use)


def _of_all(use: Use) -> Value:
    """`count`, `index` and the like: a number that all elements have a part in."""
    asked, owed = _unknown(use), use.event.now.origins | _any_entry(use).origins
    return asked | Value(frozenset(), owed, "other") if any(o.kind == "batch" for o in owed) else asked


def _view(use: Use, element: Value) -> Value:
    """The list that a method of a dict gives, which is one for all dicts that it may be called on."""
    view = use.instance("list")
    use.run.set_attribute(view, "[]", element, len(use.event.now.objs) < 2)
    return just(view)


def _removed_entry(use: Use) -> Value:
    """`get(key, default)`, `pop()`: the entry of a key that is known, else any entry."""
    obj = use.of
    keys = [str(o.value) for o in use.args[0].objs if isinstance(o, Lit)] if use.args else []
    entries = [use.run.memory[obj, k] for k in keys if (obj, k) in use.run.memory]
    return join(entries + use.args[1:]) if entries else _any_entry(use) | join(use.args[1:])


def _popped(use: Use) -> Value:
    """`pop(index)`: which entries are left, and which one this is, a draw may say."""
    drawn = Value(frozenset(), only(use.mixed.origins, "random", "drawn"))
    if drawn.origins and use.args:
        use.run.set_attribute(use.of, "[]", drawn, False)
    return _removed_entry(use) | drawn


def _asked(use: Use) -> Value | None:
    """`get(key)` of a dict whose entries are attributes: by a known key it is asked as a configuration is."""
    return None if use.args and texts_of(use.args[0]) else _removed_entry(use)


def _key(use: Use) -> Value:
    return use.run.element(just(use.of))


def _any_entry(use: Use) -> Value:
    return join([v for name, v in use.run.memory.of(use.of) if name != SIZE])


def keys(run: Interpreter, obj: Obj) -> Value:
    """What is in a container, by the keys of a dict and by the elements of everything else."""
    if not run.is_a(obj, *DICTS):
        return run.element(just(obj))
    size = run.memory.get((obj, SIZE), NOTHING)
    return Value(frozenset(), without(size.origins, "index"), size.scale)


def is_layer(run: Interpreter, obj: Obj) -> bool:
    """Whether an object is a module, of the project's own or of torch."""
    return run.is_module(obj) or (isinstance(obj, New) and obj.path.startswith("torch.nn."))


_ASKING = frozenset(
    """
        index count union intersection difference symmetric_difference issubset issuperset isdisjoint most_common elements total
        sort reverse rotate clear remove discard move_to_end
    """.split()
)
# What each method of a container gives; "": any other.
METHODS: dict[str, Rule] = {
    **dict.fromkeys(("append", "appendleft", "add", "insert", "extend"), _added),
    "setdefault": _added_by_default,
    "update": _updated,
    "copy": lambda use: just(use.of),
    "keys": lambda use: _view(use, _key(use)),
    "values": lambda use: _view(use, _any_entry(use)),
    "items": lambda use: _view(use, just(Tup((_key(use), _any_entry(use))))),
    **dict.fromkeys(("sort", "reverse", "rotate"), _moved),
    **dict.fromkeys(("get", "popleft", "popitem"), _removed_entry),
    "pop": _popped,
    **dict.fromkeys(("count", "index", "most_common", "total"), _of_all),
    "": _unknown,
}
SET_METHODS: dict[str, Rule] = {
    **METHODS,
    **dict.fromkeys("copy union intersection difference symmetric_difference".split(), _united),
}
ATTRIBUTE_DICT_METHODS: dict[str, Rule] = {**METHODS, "get": _asked}
MODULE_LIST_METHODS: dict[str, Rule] = {name: METHODS[name] for name in ("append", "extend", "insert", "update", "pop")}
