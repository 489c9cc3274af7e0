"""Batches that a script makes by hand, and the rows that a rank takes of them."""

from __future__ import annotations

import ast

from ddpify.facts import library
from ddpify.facts.assumed import BY_RANK_ZERO, WHOLE_BATCHES
from ddpify.facts.batch_source import ANY_FIELD, DRAW, EXAMPLE_BATCH, EXAMPLES, OTHER_FIELDS, PATHS, SLICE, BatchSource
from ddpify.facts.interpret.literals import marked_as_sized
from ddpify.facts.interpret.state import ELEMENT, Interpreter
from ddpify.facts.model import NOTHING, Lit, New, Obj, Part, Tup, Value, join, just, origins_of
from ddpify.facts.origins import Origin, only, without
from ddpify.facts.tree import argument
from ddpify.placement.shape import Shape
from ddpify.placement.values import is_rows

_SIDE_BY_SIDE = {"columns": Shape(None, 2, 1), "lines": Shape(None, 2, 0)}  # sequences, and their steps
_OF_CONSTANTS = frozenset(("literal", "from", "sized", "kept", "forward", "output"))
_DEPTH = 4  # of containers in one another
_OF_SHARES = ("rank", "world", "index", "from", "fraction", "divided", "multiple", "offset")  # by which a rank numbers its rows
_KEPT_BY_CUTS = frozenset(("forward", "batch", "decided", "time", "listing"))


def cut(run: Interpreter, cut: BatchSource, value: Value) -> Value:
    """A batch made by hand: of an abstract loader of its own, which feeds the loop that is running."""
    if cut.kind == "state":
        return marked_as_sized(value, cut.node)
    if cut.kind in EXAMPLES:
        return _examples(run, cut, value)
    inner = run.element(value)
    inside = any(run.is_module(o) for f in run.frames for o in f.owners)
    if inside or value.batches() or inner.batches() or value.of_kind("parameters"):
        return value
    made = run.objects.new(DRAW if cut.kind == "draw" else SLICE, cut.node, run.stack)
    if cut.size is not None:
        size = run.trace.values.get(cut.size, NOTHING)
        run.memory[made, "batch_size"] = Value(size.objs, size.origins)
        if size.of_kind("world") and cut.kind == "draw":
            run.sharded_by_script.add(made)
    shape = _drawn(value) if cut.kind == "draw" else _SIDE_BY_SIDE.get(cut.kind)
    batch = Value(frozenset(), only(value.origins, *_KEPT_BY_CUTS) | {Origin("batch", made)}, "sample", shape)
    if cut.kind in ("rows", "draw"):
        run.feed(batch)
    if cut.kind != "parts":
        return batch
    parts = run.objects.new("list", cut.node, run.stack)
    run.memory[parts, ELEMENT] = batch
    return just(parts)


def _drawn(value: Value) -> Shape | None:
    """The dimensions of what is drawn: as many as it has as a constant, the first of them that of the samples."""
    shape = value.shape if value.scale is None else None
    return Shape(None, shape.dims, sure=False) if shape is not None and shape.ndim else None


def _examples(run: Interpreter, cut: BatchSource, iterator: Value) -> Value:
    """The batches of an iterator of torchtext: each has the tensors of its fields as attributes."""
    made, batch = run.objects.new(SLICE, cut.node, run.stack), run.objects.new(EXAMPLE_BATCH, cut.node, run.stack)
    if cut.kind == "own_examples":
        run.sharded_by_script.add(made)
    run.memory[made, "batch_size"] = _size_of_examples(run, iterator)
    origins = frozenset((Origin("batch", made),))
    for name, layout in cut.layouts:
        rows = Value(frozenset(), origins, "sample", Shape(None, layout.dims, layout.axis))
        lengths = Value(frozenset(), origins, "sample", Shape(None, 1))
        run.memory[batch, name or ANY_FIELD] = just(Tup((rows, lengths))) if layout.lengths else rows
    run.memory[batch, OTHER_FIELDS] = Value(frozenset(), origins, "other")
    run.memory[batch, "batch_size"] = Value(frozenset(), origins, "count")
    batches = run.objects.new("list", cut.node, run.stack)
    run.memory[batches, ELEMENT] = just(batch)
    return just(batches)


def _size_of_examples(run: Interpreter, iterator: Value) -> Value:
    """How many examples a batch of an iterator has: the first of several sizes is that of the training."""
    sizes = list[Value]()
    for obj in iterator.objs:
        while isinstance(obj, Part):
            obj = obj.of
        given = argument(obj.node, 1, "batch_size", "batch_sizes") if isinstance(obj, New) and isinstance(obj.node, ast.Call) else None
        size = NOTHING if given is None else run.trace.values.get(given, NOTHING)
        sizes += [just(o) if not isinstance(o, Tup) else o.items[0] if o.items else NOTHING for o in size.objs]
        sizes.append(Value(frozenset(), size.origins))
    size = join(sizes)
    return Value(size.objs, size.origins)


def rows_of_rank(run: Interpreter, args: list[Value], result: Value) -> Value:
    """What a function of the script made of a batch, or of all ranks' rows, with the rank's number: this rank's rows of it."""
    if not (result.of_kind("rank") or any(i.of_kind("rank") for o in result.objs if isinstance(o, Tup) for i in o.entries)):
        return result
    if whole := [a for a in args if a.of_kind("whole")]:
        return library.share_of(whole[0])
    cuts = frozenset(o for a in args for o in a.batches() if isinstance(o, New) and o.path in PATHS)
    if not cuts:
        return result
    run.sharded_by_script |= cuts
    shape = next((a.shape for a in args if not a.batches().isdisjoint(cuts) and a.shape is not None and a.shape.sure), None)
    return Value(frozenset(), without(result.origins, *_OF_SHARES), "sample", shape)


def given_rows(run: Interpreter, node: ast.expr, value: Value) -> Value:
    """This rank's rows of what a model is given, which all ranks have made alike: a batch that no loader makes; of no parameter."""
    if value.of_kind("weight"):
        return value
    made = run.objects.new(SLICE, node, ())
    run.memory[made, WHOLE_BATCHES] = just(Lit(BY_RANK_ZERO))
    return Value(frozenset(), only(value.origins, "drawn", *_KEPT_BY_CUTS) | {Origin("batch", made)}, "sample", value.shape)


def read_whole(run: Interpreter, loaders: Value, by: str) -> Value:
    """All ranks get whole batches of loaders, which rank 0 reads, or of which each rank reads its part."""
    for obj in loaders.instances():
        run.memory[obj, WHOLE_BATCHES] = just(Lit(by))
    return loaders


def gathered(run: Interpreter, node: ast.AST, value: Value, several: bool = True) -> Value:
    """All ranks' rows of what a forward gives, alone or in containers; "mixed", where some of it is no row for each sample."""
    if _all_rows(run, value, several):
        return _gathered(run, node, value)
    return Value(frozenset(), origins_of(library.with_entries([value])) | {Origin("mixed", node)}, "other")


def _all_rows(run: Interpreter, value: Value, several: bool, depth: int = _DEPTH) -> bool:
    """Whether a value is rows, or a container of such; with `several`, there may be more than one for each sample."""
    inner = [v for obj in value.objs if not _is_empty(run, obj) for v in _held(run, obj) or (NOTHING,)]
    alone = not inner or value.scale is not None
    if depth == _DEPTH and not all(map(_is_alike, inner)) and all(isinstance(o, Tup) for o in value.objs):
        inner = [v for v in inner if not _is_alike(v)]  # what is made of no row stays as it is: a model's anchors beside its outputs
    if (
        not depth
        or value.of_kind("joined")
        or (alone and not is_rows(Value(frozenset(), value.origins, value.scale, value.shape), several))
    ):
        return False
    return all(_all_rows(run, v, several, depth - 1) for v in inner)


def _is_alike(value: Value) -> bool:
    """Whether a value is a constant, or None: the same on every rank, and for each sample."""
    constant = value.scale is None and all(isinstance(o, Lit) and o.value is None for o in value.objs)
    return constant and {o.kind for o in value.origins} <= _OF_CONSTANTS


def _is_empty(run: Interpreter, obj: Obj) -> bool:
    """Whether an object is a list to which nothing was added on the way to here: `outputs = []`."""
    empty = isinstance(obj, New) and obj.path == "list" and isinstance(obj.node, ast.List) and not obj.node.elts
    return empty and all(not v.objs and v.scale is None and {o.kind for o in v.origins} <= {"forward"} for v in _held(run, obj))


def _held(run: Interpreter, obj: Obj) -> list[Value]:
    """What a tuple, a list or a dict holds; nothing of anything else."""
    if isinstance(obj, Tup):
        return [] if obj.names else list(obj.entries)
    return [v for _, v in run.memory.of(obj)] if isinstance(obj, New) and obj.path in ("list", "dict") else []


def _gathered(run: Interpreter, node: ast.AST, value: Value) -> Value:
    objs: set[Obj] = set()
    for obj in value.objs:
        if isinstance(obj, Tup):
            objs.add(obj.each(lambda entry: entry if _is_alike(entry) else _gathered(run, node, entry)))
        elif isinstance(obj, New):
            made = run.objects.new(obj.path, node, run.stack)
            for name, entry in list(run.memory.of(obj)):
                run.memory[made, name] = _gathered(run, node, entry)
            objs.add(made)
    return Value(frozenset(objs), library.whole(value).origins, None, value.shape)
