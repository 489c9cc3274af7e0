"""Built-in functions of numbers and lengths: how what they give depends on the batch."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ddpify.facts import prefixes, tensors
from ddpify.facts.batch_source import EXAMPLE_BATCH
from ddpify.facts.library.containers import SIZE
from ddpify.facts.library.flow import agreed, without_graph
from ddpify.facts.library.paths import COLLECTIONS, DICTS, PARTS
from ddpify.facts.library.row import Use
from ddpify.facts.model import NOTHING, Lit, Loop, New, Obj, Part, Tup, Value, join, just, origins_of
from ddpify.facts.origins import Origin, only, without
from ddpify.facts.tree import last_name, walk
from ddpify.placement.shape import EXTREMES, ROWS, Scale


def converted(use: Use) -> Value:
    """`float(x)`: the number, cut off from the autograd graph."""
    value = without_graph(use.args[0]) if use.args else NOTHING
    return Value(frozenset(o for o in value.objs if isinstance(o, (Lit, Part))), value.origins, value.scale, value.shape)


def text(use: Use) -> Value:
    """`str(x)`, `json.dumps(x)`: what no sum over ranks combines."""
    value = converted(use)
    held = origins_of(_held(use, use.args[0])) if use.args else frozenset()
    scale = value.scale if value.scale in (None, *ROWS) and not only(held, "batch") else "other"
    return Value(value.objs, value.origins | held, scale, value.shape)


def _held(use: Use, value: Value) -> list[Value]:
    """What containers hold, and containers in them."""
    found, seen = [value], set[Obj]()
    for each in found:
        boxes = [o for o in each.objs if isinstance(o, New) and o.path in COLLECTIONS and o not in seen]
        seen.update(boxes)
        found += [held for o in boxes for _, held in use.run.memory.of(o)]
        found += [entry for o in each.objs if isinstance(o, Tup) for entry in o.entries]
    return found[1:]


def rounded(use: Use) -> Value:
    """`int(x)`, `round(x)`, `abs(x)`: of a mean, this is not the mean of what it is of its parts; nor is `abs` of the largest number."""
    value = converted(use)
    lost = value.scale == "mean" or (value.scale in EXTREMES and use.name == "abs")
    return Value(value.objs, value.origins, "other", value.shape) if lost else value


def curved(use: Use) -> Value:
    """`math.log(n)`, `math.sqrt(n)`: of a rank's number of samples, this is no part of what it is of all ranks'."""
    value = use.mixed
    return Value(value.objs, value.origins, "other") if value.scale == "count" else value


def _of_rows(use: Use, name: str, *dim: Value) -> Value | None:
    """What a function of Python makes of the rows of one tensor: what torch's function of this name does."""
    values = use.args[0] if len(use.args) == 1 and use.keywords.keys() <= {"default"} else NOTHING
    if values.objs or values.scale not in ROWS or values.shape is None or values.shape.several is not False:
        return None
    return tensors.function(use.run, name, use.node, [values, *dim], {}, values.origins)


def whether(use: Use) -> Value:
    """`any(values)`, `all(values)`."""
    found = _of_rows(use, use.name)
    return use.mixed if found is None else found


def added_up(use: Use) -> Value:
    """`sum(values)`."""
    if not use.args:
        return NOTHING
    values = use.args[0]
    if (total := _of_rows(use, "sum", just(Lit(0)))) is not None:
        return total
    element = use.run.element(values)
    origins = element.origins | values.origins
    listed = [v for o in values.instances() if o.path == "list" for v in use.run.memory.numbered(o)] if len(use.args) == 1 else []
    if len({v.scale for v in listed}) > 1:
        total = listed[0]
        for item in listed[1:]:
            total = use.run.binary(ast.Add(), total, item, use.node)
        return Value(frozenset(), origins, total.scale, total.shape)
    one_entry_a_sample = values.scale in ROWS and element.scale not in ROWS and bool(values.objs)
    shape = prefixes.counted(values) if one_entry_a_sample else None
    return Value(frozenset(), origins, "sum" if one_entry_a_sample else element.scale, shape or element.shape)


def extreme(use: Use, scale: Scale) -> Value:
    """`max(a, b)`: of the largest numbers of some entries each, that of all of them; a count of at least 1 is a count."""
    if (single := _of_rows(use, use.name)) is not None:
        return single
    listed = use.args[0] if len(use.args) == 1 and use.keywords.keys() <= {"default"} else NOTHING
    if listed.scale == "sample" and listed.shape is not None and listed.objs == {listed.shape.base} and not use.run.element(listed).objs:
        return Value(frozenset(), listed.origins, scale)  # of a list with a number for each sample
    scales, found = {a.scale for a in use.args}, use.mixed
    if len(use.args) > 1 and not use.keywords and scale in scales <= {None, scale}:
        return Value(found.objs, found.origins, scale)
    others = [o for a in use.args if a.scale is None for o in a.objs] if found.scale == "count" else []
    least = scale == "largest" and all(isinstance(o, Lit) and isinstance(o.value, (int, float)) and o.value <= 1 for o in others)
    return Value(found.objs, found.origins, "other", found.shape) if found.scale == "count" and len(scales) > 1 and not least else found


def length(use: Use) -> Value:
    """`len(values)`; None, which has no length, is none of them."""
    value = use.args[0] if use.args else NOTHING
    objs = frozenset(o for o in value.objs if not (isinstance(o, Lit) and o.value is None))
    if objs and all(isinstance(o, New) and o.path == EXAMPLE_BATCH for o in objs):
        return join([use.run.memory.get((o, "batch_size"), NOTHING) for o in objs])
    value = Value(objs, without(value.origins, "output", "sometimes"), value.scale, value.shape)
    if PARTS in value.kinds():
        return Value(frozenset(), frozenset((Origin("agreed"),)))
    sizes = value.scale in ("count", "sum") and value.of_kind("sizes") and value.shape is not None  # of a tensor: its dimensions
    if (sizes and not value.objs) or _is_same_on_all_ranks(use, value):
        return agreed(Value(frozenset(), value.origins))
    lengths = frozenset(Origin("length", o) for o in value.objs if isinstance(o, (New, Part)))
    listed = bool(value.objs) and all(isinstance(o, New) and o.path == "list" for o in value.objs)
    origins = without(value.origins, "random", "drawn", *(["index"] if listed else []))  # those of what is in it, not of how much there is
    if grown := [v for o in value.objs if _within((v := use.run.memory.get((o, SIZE), NOTHING)), use.run.loops)]:
        return Value(frozenset(), origins | lengths | without(origins_of(grown), "index"), "other")
    if value.scale == "sample" and _has_one_a_step(use, value):
        return Value(frozenset(), lengths | without(origins, "batch", "kept"))
    if value.scale == "chosen" or (value.scale == "sample" and value.objs and value.of_kind("decided")):  # some of the samples
        return Value(frozenset(), origins | lengths | ({Origin("rows")} if value.scale == "chosen" and not value.objs else set()), "sum")
    if (value.scale == "other" and not value.objs) or any(_is_distinct(use, o, value) for o in value.instances()):
        return Value(frozenset(), origins | origins_of(map(use.run.element, map(just, value.instances()))), "other")
    one_row_each = bool(value.objs) and (value.shape is None or value.shape.base not in value.objs)  # entries are rows, not one row
    return Value(frozenset(), origins | lengths, "count" if value.scale == "sample" and not one_row_each else None)


def _is_distinct(use: Use, obj: New, value: Value) -> bool:
    """Whether something is a set of what the rows of a batch are, or a dict with them as its keys: of equal ones, there is one."""
    if obj.path == "set":
        return bool(use.run.element(just(obj)).batches())
    filled = value.scale == "other" or (value.scale == "sample" and value.shape is not None and value.shape.base is obj)
    return filled and obj.path in DICTS


def _within(size: Value, loops: Sequence[Loop]) -> bool:
    """Whether a loop is running whose batches say how many elements a container has."""
    return not size.of_kind("index").isdisjoint(loop.node for loop in loops)


def _has_one_a_step(use: Use, value: Value) -> bool:
    """Whether a list that began empty got one entry at a time, such as a batch of each step, whatever is in it."""
    lists = value.instances()
    if not lists or lists < value.objs or not all(isinstance(o.node, ast.List) and not o.node.elts for o in lists):
        return False
    memory = use.run.memory
    entries = [memory.get((o, "[]"), NOTHING) for o in lists]
    return not any((o, SIZE) in memory for o in lists) and not any(e.of_kind("decided") for e in entries)


def _is_same_on_all_ranks(use: Use, value: Value) -> bool:
    """Whether a length is no number of samples: of steps through time, of a tuple of tensors, of one sample's entries."""
    if use.run.timed(value) == "columns":
        return True
    if value.objs and all(_is_written_out(use, o) for o in value.objs):
        return True
    if value.scale != "sample":
        return False
    shape, node = value.shape, use.node.args[0] if use.node.args else None
    if shape is not None and (shape.several or (shape.sure and shape.axis)):
        return True
    return isinstance(node, ast.Name) and _is_taken_apart(use, node.id)  # how many inputs and targets there are


def _is_written_out(use: Use, obj: Obj) -> bool:
    """Whether all entries of a tuple or a list were written out, and none was added since."""
    if isinstance(obj, Tup):
        return obj.rest is None
    return bool(use.run.memory.written_out(obj))


def _is_taken_apart(use: Use, name: str) -> bool:
    """Whether the function that is running takes a name apart: `x, y = batch`, or `batch[0]` and `batch[1]` of what a loop gives."""
    scope = use.run.frame.node
    if scope is None:
        return False
    key = (f"parts of {name}", scope)
    if key not in use.run.project.memo:
        use.run.project.memo[key] = any(_unpacks(n, name) or _takes_entries(n, name) for n in walk(scope))
    return bool(use.run.project.memo[key])


def _unpacks(node: ast.AST, name: str) -> bool:
    """Whether a statement is `x, y = name`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return False
    return isinstance(node.value, ast.Name) and node.value.id == name


def _takes_entries(node: ast.AST, name: str) -> bool:
    """Whether a statement is a loop whose elements are called `name`, and takes `name[0]` and `name[1]`, or `name["x"]`, of them."""
    if not isinstance(node, ast.For):
        return False
    target: ast.expr = node.target
    if isinstance(target, ast.Tuple) and any(last_name(n.func) == "enumerate" for n in walk(node.iter) if isinstance(n, ast.Call)):
        target = target.elts[-1]
    if not isinstance(target, ast.Name) or target.id != name:
        return False
    keys = {_key(n, name) for s in node.body for n in walk(s)} - {None}
    return len(keys) > 1 or any(isinstance(k, str) for k in keys)


def _key(node: ast.AST, name: str) -> object:
    """The key of `name[key]`, where it is written out; None of anything else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    return node.slice.value if isinstance(node.value, ast.Name) and node.value.id == name else None
