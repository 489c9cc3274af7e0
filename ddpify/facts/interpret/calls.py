"""What calling a function, a class or an instance gives."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ddpify.facts import drivers, library, named, sources, tensors, uniform
from ddpify.facts.assumed import BY_ALL_RANKS, BY_RANK_ZERO, GATHERS, READERS
from ddpify.facts.flags import flags
from ddpify.facts.interpret import own_gradients, starred, written
from ddpify.facts.interpret.assignment import combine, entry_changed, filled_with, kept_of, takes_on
from ddpify.facts.interpret.attributes import opened, read
from ddpify.facts.interpret.batches import gathered, read_whole, rows_of_rank
from ddpify.facts.interpret.branches import is_known
from ddpify.facts.interpret.definitions import apply, carry_out
from ddpify.facts.interpret.literals import decorator_names, is_own, marked_as_literal
from ddpify.facts.interpret.settings import note_made
from ddpify.facts.interpret.signatures import fitting
from ddpify.facts.interpret.state import ELEMENT, UNNAMED, Frame, Interpreter
from ddpify.facts.interpret.texts import as_texts
from ddpify.facts.library import effects
from ddpify.facts.library.paths import CONTAINERS
from ddpify.facts.library.row import row_of
from ddpify.facts.model import (
    NOTHING,
    Call,
    Class,
    Ext,
    Func,
    Like,
    Lit,
    Method,
    New,
    Obj,
    Part,
    Pick,
    Tup,
    Value,
    join,
    just,
    ordered,
    origins_of,
    outermost,
)
from ddpify.facts.operands import is_open
from ddpify.facts.origins import Origin, of_kind, only, without
from ddpify.facts.record import Kind
from ddpify.facts.recording import Recording, Seen, merge
from ddpify.facts.tensor_entries import part_of_several
from ddpify.facts.tree import resizes_alias, walk
from ddpify.placement.shape import Shape

_Called = TypeVar("_Called", bound=Obj)
_DEPTH = 24
_NESTED = 4  # so deep outputs are looked into that hold lists of others
_LAYERS = frozenset(f"torch.nn.{name}" for name in "LayerNorm RMSNorm GroupNorm Linear Embedding Conv1d Conv2d Conv3d GELU".split())
_CALLED_FOR = {"__iter__": "iter", "__next__": "next"}
_TEXTS = ("str", "repr", "format")
_OF_PARTS = re.compile(r"\{\w*[.\[]")
_FILL_IN = (*effects.LOG_METHODS, "format", "join")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PYTHON = sys.stdlib_module_names | frozenset(dir(builtins))
_RECURSIONS = 40  # in so many places a function is followed that is running already
_OF_LOSSES = ("reduction", "weight", "ignore_index", "pos_weight")  # the options that say what losses average


def evaluate_call(run: Interpreter, node: ast.Call) -> Value:
    """A call: its arguments, its record, and what it gives."""
    receiver = NOTHING
    if isinstance(node.func, ast.Attribute):
        receiver = _with_attribute(run.expression(node.func.value), node.func.attr)
        func = read(run, receiver, node.func)
        run.note(node.func, func)
    else:
        func = run.expression(node.func)
    args: list[Value] = []
    looks_inside = bool(func.objs) and all(isinstance(o, Func) for o in func.objs)  # and reads the entries themselves
    for a in node.args:
        value = run.expression(a) if looks_inside else _filled(run, run.expression(a))
        if isinstance(a, ast.Starred):
            args += starred.entries(run, a, value, func, len(args))
        else:
            args.append(value)
    keywords: dict[str, Value] = {}
    for k in node.keywords:
        value = run.expression(k.value)
        if k.arg is None:
            keywords.update(_spread(run, value))
        else:
            keywords[k.arg] = value
    if builtin := _as_builtin(node, receiver):
        func, args = just(Ext(builtin)), [_filled(run, receiver)]
        run.note(node.func, func)
    call, seen = _record(run, node, func, args, keywords, receiver)
    texts = [text for value in (*args, *keywords.values()) for text in as_texts(run, value, node)] if _shows(func, receiver) else []
    _hook_parts(run, node, receiver, args)
    result = library.with_order(call, invoke(run, call, func, args, keywords))
    if texts:
        result = Value(result.objs, result.origins | origins_of(texts), result.scale or tensors.any_function(texts), result.shape)
    if isinstance(node.func, ast.Name) and func.paths() == {"isinstance"}:
        result = is_known(run, node, result)
    if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and not receiver.objs and not resizes_alias(node.func):
        kept = kept_of(run, node, library.mixed([*args, *keywords.values()], {}))
        now = Value(result.objs, result.origins | kept, result.scale, result.shape) if kept else result
        changed_in_place(run, node.func, receiver, now, uniform.keeps_rows_alike(node.func.attr, receiver, args))
    _put_out(run, node, func, result)
    note_made(run, node, result)
    call.result = call.result | result
    run.events.append((Kind.CALL, node, receiver, result))
    run.order += 1
    call.last = seen.last = run.order
    seen.result = result
    return result


def _put_out(run: Interpreter, node: ast.Call, func: Value, result: Value) -> None:
    """`torch.maximum(a, b, out=c)`: what holds the tensor holds the result from here on."""
    out = next((k.value for k in node.keywords if k.arg == "out"), None)
    if out is not None and result.batches() and any(path.startswith(("torch.", "numpy.")) for path in func.paths()):
        kept = kept_of(run, node, result)
        written.hold(run, out, Value(result.objs, result.origins | kept, result.scale, result.shape))


def _shows(func: Value, receiver: Value) -> bool:
    """Whether a function of a library makes texts of what it is given, to show or to return them: all of it, and not `"{0.avg}"` of it."""
    if any(isinstance(o, Lit) and _OF_PARTS.search(str(o.value)) for o in receiver.objs):
        return False
    texts = any(isinstance(o, Method) and o.name in _FILL_IN for o in func.objs)
    return texts or any(isinstance(o, Ext) and (o.path in _TEXTS or row_of(effects.EFFECTS, o.path) == "print") for o in func.objs)


def _with_attribute(value: Value, name: str) -> Value:
    """What may be a tensor or several, as a network gives one or the other: the tensor, where only it has the method."""
    kept = any(hasattr(kind, name) for kind in (tuple, list, dict)) or any(name in getattr(o, "names", ()) for o in value.objs)
    return value if kept else tensors.as_tensor(value)


def _as_builtin(node: ast.Call, receiver: Value) -> str:
    """The function that a method of a library's object is called for: `loader.__iter__()` is `iter(loader)`; else empty."""
    if not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
        return ""
    own = any(isinstance(o, (Class, Func)) or (isinstance(o, New) and o.cls is not None) for o in receiver.objs)
    return "" if own else _CALLED_FOR.get(node.func.attr, "")


def _hook_parts(run: Interpreter, node: ast.Call, receiver: Value, args: list[Value]) -> None:
    """`for part in net.modules(): part.register_forward_hook(see)`: some part calls it whenever the module is called."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in library.FORWARD_HOOKS and args and not receiver.objs:
        for module in receiver.of_kind("parameters"):
            run.hooks.setdefault(module, {})[node] = (node.func.attr, args[0])
            run.memory.doubt()


def changed_in_place(run: Interpreter, method: ast.Attribute, was: Value, result: Value, alike: bool = False) -> None:
    """`x.copy_(rows)`, `x.resize_(n, 8).normal_()`, `run.x.data.copy_(rows)`: what holds the tensor holds the result from here on.

    Rows that were `alike` before are so afterwards.
    """
    if not alike and (result.scale is not None or result.shape is None or not result.shape.uniform):
        uniform.written(run, was)
    parts = (n for n in walk(method) if isinstance(n, ast.Attribute) and n.attr.startswith("resize"))
    resized = not all(map(resizes_alias, parts))  # else it stays as long as it was
    if not resized:
        given = method.attr in library.REFILLS and result.shape is not None  # and no number that is the same on all ranks
        rows = given or was.of_kind("whole") or result.of_kind("batch")
        origins = result.origins if rows else without(result.origins, "whole")  # what all ranks' rows are added to is no more rows
        origins |= only(was.origins, "sized")
        result = Value(result.objs, origins, result.scale, result.shape)
    inner, filled = refilled(method.value), method.attr in library.REFILLS and not was.of_kind("parameters")
    if isinstance(inner, ast.Name) and (inner is method.value or filled or takes_on(was)):
        run.change(inner.id, result)
    elif isinstance(inner, ast.Attribute) and (result.batches() if filled else not was.objs and takes_on(was)):
        written.hold(run, inner, Value(frozenset(), result.origins, result.scale, result.shape), alone=True)
    elif isinstance(inner, ast.Subscript):
        if not written.write(run, inner, result):
            filled_with(run, inner, result.scale is None and result.shape is not None and result.shape.uniform)
            entry_changed(run, inner, result)
    elif not combine(run, inner, was, result):
        filled_with(run, inner, result.scale is None and result.shape is not None and result.shape.uniform)
        if isinstance(inner, ast.Call):
            written.part_changed(run, inner, result)


def _filled(run: Interpreter, value: Value) -> Value:
    """A container with the origins of what it holds by now."""
    for obj in value.objs:
        if isinstance(obj, New) and obj.path in library.COLLECTIONS:
            held = run.memory.get((obj, ELEMENT))
            if held is not None and held.origins:
                value = Value(value.objs, value.origins | held.origins, value.scale or held.scale, value.shape or held.shape)
    return value


def _spread(run: Interpreter, value: Value) -> dict[str, Value]:
    """The keywords that `**value` passes, as far as known; `**` holds the whole."""
    out = {"**": value}
    for obj in value.objs:
        for name, held in run.memory.of(obj):
            if name != ELEMENT:
                out[name] = out[name] | held if name in out else held
    return out


def _record(
    run: Interpreter, node: ast.Call, func: Value, args: list[Value], keywords: dict[str, Value], receiver: Value
) -> tuple[Call, Seen]:
    run.order += 1
    call = run.calls.get((node, run.stack))
    if call is None:
        here = run.frame.file, run.stack, run.order
        call = Call(node, *here, func, args, dict(keywords), run.loops, run.tests, run.no_grad > 0, receiver)
        run.calls[node, run.stack] = call
        call.now = receiver
        seen = Seen(call, func, args, keywords, receiver, run.loops, run.order, run.no_grad > 0)
    else:
        seen = Seen(call, func, args, keywords, receiver, run.loops, run.order, run.no_grad > 0)
        merge(call, seen, run.loops)
    run.log.calls.append(seen)
    return call, seen


def invoke(run: Interpreter, call: Call, func: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
    """What calling `func` gives."""
    if not func.objs:
        return library.call_tensor(run, call, args, keywords)
    methods = any(isinstance(o, Method) for o in func.objs)
    objs = [o for o in ordered(func.objs) if not (methods and isinstance(o, Part))]
    objs = [o for o in objs if not isinstance(o, Lit)] or objs  # a layer that may be None is called where it is not
    if len(objs) == 1 and not isinstance(objs[0], New):
        return invoke_one(run, call, objs[0], args, keywords)
    objs = list(opened(run, objs))
    if "**" not in keywords and not any(isinstance(a, ast.Starred) for a in call.node.args):
        objs = _fit_for(objs, len(args) + len(keywords), args[0] if args else NOTHING) or objs
    called = _alternatives(run, fitting(run, call.node, objs))
    return join([invoke_one(run, call, o, args, keywords, alike) for o, alike in called])


def _fit_for(objs: list[_Called], inputs: int, batch: Value) -> list[_Called]:
    """Those of some objects that can be called with so many inputs, the first of which is `batch`: others fail."""
    return [o for o in objs if not isinstance(o, New) or tensors.takes(o, inputs, batch)]


def _alternatives(run: Interpreter, objs: Iterable[Obj]) -> Iterator[tuple[Obj, frozenset[Obj]]]:
    """What is called, each with what else runs the same code: modules of one class, and their methods, are run as one."""
    alike: dict[object, list[Obj]] = {}
    for obj in objs:
        alike.setdefault(_code(run, obj), []).append(obj)
    for group in alike.values():
        owners = [o.owner if isinstance(o, Func) else o.of if isinstance(o, Method) else o for o in group]
        yield group[0], frozenset(o for o in owners if o is not None)


def _code(run: Interpreter, obj: Obj) -> object:
    """What is run where an object is called: the same for modules of one class, else the object itself."""
    if isinstance(obj, Func):
        owner = obj.owner
        return (obj.node, owner.cls, obj.made) if isinstance(owner, New) and run.is_module(owner) else obj
    if isinstance(obj, Method) and obj.name == "apply" and isinstance(obj.of, New):
        layer = run.is_module(obj.of) or obj.of.path.startswith("torch.nn.")
        return obj.name if layer else obj  # of one module or another, a function is called for all layers that there may be
    if not isinstance(obj, New):
        return obj
    if obj.cls is None and obj.path.startswith("torch.nn."):
        own = bool(run.hooks_of(obj)) or obj.path == library.SEQUENTIAL or any((obj, name) in run.memory for name in _OF_LOSSES)
        return obj if own else tensors.kind_of(run, obj)
    return obj.cls if run.is_module(obj) else obj


def invoke_one(
    run: Interpreter, call: Call, obj: Obj, args: list[Value], keywords: dict[str, Value], alike: frozenset[Obj] = frozenset()
) -> Value:
    """What calling one object gives, which may be any of those that are `alike`."""
    if isinstance(obj, Func):
        owner, func = obj.owner, call.node.func
        if isinstance(func, ast.Attribute) and func.attr == "forward" and isinstance(owner, New) and _is_own_method(run, obj, owner):
            return _call_instance(run, call, owner, args, keywords, alike)
        return call_function(run, obj, call.node, args, keywords, alike)
    if isinstance(obj, Class):
        return construct(run, obj, call.node, args, keywords)
    if isinstance(obj, Pick):
        return named.call(run, call, obj, args, keywords)
    if isinstance(obj, New) and obj.path == named.PARTIAL:
        bound, more = named.bound(run, obj)
        return invoke(run, call, run.memory.get((obj, named.FUNCTION), NOTHING), [*bound, *args], {**more, **keywords})
    if isinstance(obj, New) and obj.path == named.TUPLE and (fields := named.tuple_of(run, obj, args, keywords)) is not None:
        return fields
    if isinstance(obj, New) and drivers.runs(obj):
        return drivers.run_group(run, call.node, obj)
    if isinstance(obj, (New, Part)):
        return _call_instance(run, call, obj, args, keywords, alike)
    if isinstance(obj, Method) and isinstance(obj.of, Class) and obj.name == own_gradients.SAVE:
        own_gradients.save(run, obj, args)
        return NOTHING
    if isinstance(obj, Method) and isinstance(obj.of, Class):
        return construct(run, obj.of, call.node, *library.construction(obj.name, args, keywords))
    if isinstance(obj, Method):
        if obj.name == "forward" and (found := _of_layer(run, call, obj.of, args, keywords)) is not None:
            return found
        path = sources.path_of(run, obj.of)
        result = library.call_method(run, call, obj, args, keywords, alike)
        return sources.marked(run, call.node, f"{path}.{obj.name}", result) if path else result
    if isinstance(obj, Ext):
        return sources.marked(run, call.node, obj.path, library.call(run, call, obj.path, args, keywords))
    if isinstance(obj, Like):  # one of more than are followed
        flow = library.mixed(args, keywords)
        return Value(frozenset(), flow.origins | only(call.func.origins, "parameters"), flow.scale, flow.shape)
    return library.mixed(args, keywords)


def _is_own_method(run: Interpreter, func: Func, module: New) -> bool:
    """Whether a function is a module's own method of its name, and not that of a base class, which `super()` gives."""
    own = run.find(module.cls, getattr(func.node, "name", "")) if module.cls is not None else None
    return run.is_module(module) and (own is None or func.node in own.functions())


def _of_layer(run: Interpreter, call: Call, obj: Obj, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    """What `super().forward(x)` gives in a class that is made of one of torch's layers, of which each sample goes through by itself."""
    if not isinstance(obj, New) or obj.cls is None:
        return None
    layer = next((base for base in run.library_bases(obj.cls) if base in _LAYERS), None)
    made = run.objects.new(layer, obj.node, obj.stack) if layer is not None else None
    return tensors.module(run, made, call.node, args, keywords, library.mixed(args, keywords).origins) if made is not None else None


def construct(run: Interpreter, cls: Class, node: ast.AST, args: list[Value], keywords: dict[str, Value]) -> Value:
    """An instance of a class of the project."""
    if cls.node.name in READERS and args:
        shared = keywords.get("shared", NOTHING).objs
        return read_whole(run, args[0], BY_RANK_ZERO if any(isinstance(o, Lit) and not o.value for o in shared) else BY_ALL_RANKS)
    made = run.objects.new("", node, run.stack, cls)
    init = run.find(cls, "__init__")
    if init is None:
        library.construct(run, made, args, keywords)
        named.fill(run, made, args, keywords)
        init, args, keywords = run.find(cls, "__post_init__"), [], {}
    for f in init.objs if init is not None else ():
        if isinstance(f, Func):
            call_function(run, run.objects.bound(f, made, f.cls), node, args, keywords)
    return just(made)


def _call_instance(
    run: Interpreter, call: Call, obj: New | Part, args: list[Value], keywords: dict[str, Value], alike: frozenset[Obj] = frozenset()
) -> Value:
    """Call an object: a module's forward, or `__call__`; it may be any of those that are `alike`."""
    flow = library.mixed(args, keywords)
    if isinstance(obj, New) and obj.path in library.WRAPPERS:
        return Value(frozenset(), flow.origins, flow.scale, flow.shape)  # one that holds nothing known
    if isinstance(obj, New) and obj.cls is not None:
        out = invoke_named(run, obj, "__call__", call.node, args, keywords, alike)
        if out is not None:
            return out
        if not run.is_module(obj):
            return flow
        if run.is_synced_norm(obj):
            normed = tensors.synced_norm(run, call.node, args, keywords, flow.origins)
            return _forwarded(run, obj, call, flow, normed, alike)
        out = invoke_named(run, obj, "forward", call.node, args, keywords, alike)
        if out is None and args and run.is_a(obj, library.SEQUENTIAL):
            out = in_a_row(run, obj, call, args[0])
        return _forwarded(run, obj, call, flow, out if out is not None else flow, alike)
    if isinstance(obj, New) and obj.path in run.project.placements:
        run.trace.believed[call.node] = obj.path, run.project.placements[obj.path]
        return sources.as_said(run.project.placements[obj.path], flow)
    if isinstance(obj, New) and (copied := _of_copy(run, obj, call, args, keywords)) is not None:
        return _forwarded(run, obj, call, flow, copied, alike)
    if isinstance(obj, New) and (losses := library.detector_losses(run, obj, call, len(args) + len(keywords), flow)) is not None:
        return _forwarded(run, obj, call, flow, losses, alike)
    known = library.compared(run, obj, call, flow)
    if known is None and isinstance(obj, New):
        known = _of_library(run, obj, call, args, keywords, flow)
    if known is not None:
        return _forwarded(run, obj, call, flow, known, alike)
    scale = flow.scale if flow.scale is None or (flow.scale == "sample" and not _is_unknown(run, obj)) else "other"
    labelled = library.labelled(obj.path, call.node, frozenset(keywords)) if isinstance(obj, New) else None
    known_shape = library.output_shape(obj) if isinstance(obj, New) else None
    shape = (known_shape or Shape(call.node, several=None)) if scale else None
    out = _forwarded(run, obj, call, flow, Value(frozenset(), flow.origins, scale, shape), alike)
    return Value(out.objs, out.origins | {labelled}, out.scale, out.shape) if labelled is not None else out


def _is_unknown(run: Interpreter, obj: New | Part) -> bool:
    """Whether what is called is no network of a library: a part of the project's own that nobody was seen to set, or what Python made."""
    root = outermost(obj)
    if not isinstance(root, New):
        return False
    if root.cls is None:
        return (root is not obj and root.path in CONTAINERS) or root.path in library.MAPPED or root.path.partition(".")[0] in _PYTHON
    return root is not obj and all(b in ("object", "torch.nn.Module") for b in run.library_bases(root.cls))


def _of_copy(run: Interpreter, obj: New, call: Call, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    """What a copy of modules gives: what they give; None of anything else."""
    originals = run.memory.get((obj, library.ORIGINAL), NOTHING).objs if obj.path in library.COPIES else frozenset()
    modules = [o for o in opened(run, ordered(originals)) if isinstance(o, New)]
    if not modules or len(modules) < len(originals):
        return None
    return join([_call_instance(run, call, o, args, keywords, alike) for o, alike in _alternatives(run, modules) if isinstance(o, New)])


def _of_library(run: Interpreter, obj: New, call: Call, args: list[Value], keywords: dict[str, Value], flow: Value) -> Value | None:
    """What a module of torch gives, or modules one after another; None of what has no row."""
    if (along := library.graph_layer(run, obj, args, keywords)) is not None:
        return along
    if obj.path != library.SEQUENTIAL or not args:
        return tensors.module(run, obj, call.node, args, keywords, flow.origins)
    return in_a_row(run, obj, call, args[0])


def in_a_row(run: Interpreter, obj: New, call: Call, value: Value) -> Value | None:
    """What the modules that an object holds give one after another; None where none is known.

    One that may hold itself, as `net = Sequential(net, layer)` in a loop may, adds nothing to what its other modules give.
    """
    if obj in run.rows:
        return NOTHING
    run.rows.add(obj)
    try:
        return _in_a_row(run, obj, call, value)
    finally:
        run.rows.discard(obj)


def _in_a_row(run: Interpreter, obj: New, call: Call, value: Value) -> Value | None:
    flow, steps = value, run.memory.numbered(obj)
    if steps and (obj, "[many]") not in run.memory:
        for step in steps:
            value = _step(run, step, call, value)
        return value
    each = _in_any_order(run, ordered(run.memory.get((obj, ELEMENT), NOTHING).objs), call, value)
    return _of_any(each, call, flow) if each else None


def _of_any(each: list[Value], call: Call, flow: Value) -> Value:
    """What modules give one after another, of which each gives one of these values; of tuples, entry by entry."""
    tuples = [o for v in each for o in v.objs if isinstance(o, Tup) and o.rest is None]
    if len(tuples) == len(each) == sum(len(v.objs) for v in each) and len({len(t.items) for t in tuples}) == 1:
        entries = zip(*(t.items for t in tuples), strict=True)
        return Value(frozenset((Tup(tuple(_of_any(list(e), call, flow) for e in entries)),)), origins_of(each))
    same = all(v.scale == "sample" and v.shape == each[0].shape for v in each)
    if same:
        return Value(each[0].objs, origins_of(each), each[0].scale, each[0].shape)
    failed = next((v for v in each if v.scale not in (None, "sample")), None)
    scale, shape = (flow.scale, Shape(call.node, several=None) if flow.scale else None) if failed is None else (failed.scale, failed.shape)
    return Value(failed.objs if failed else frozenset(), origins_of(each), scale, shape)


def _in_any_order(run: Interpreter, children: Iterable[Obj], call: Call, value: Value) -> list[Value]:
    """What each of some modules gives, of which it is not known which comes after which: of the input, or of what another one gives."""
    each: list[Value] = []
    left = list(children)
    while left:
        pairs = {o: next((v for v in (value, *each) if _fit_for([o], 1, v)), None) for o in left}
        fitting = {o: v for o, v in pairs.items() if v is not None} or dict.fromkeys(left, value)
        each += [_step(run, just(o), call, v) for o, v in fitting.items()]
        left = [o for o in left if o not in fitting]
    return each


def _step(run: Interpreter, child: Value, call: Call, value: Value) -> Value:
    """What one of several modules in a row gives; one of which nothing is known may combine samples."""
    modules = [o for o in opened(run, ordered(child.objs)) if isinstance(o, (New, Part))]
    modules = _fit_for(modules, 1, value) or modules
    if modules:
        return join(
            [_call_instance(run, call, o, [value], {}, alike) for o, alike in _alternatives(run, modules) if isinstance(o, (New, Part))]
        )
    scale = value.scale if value.scale != "sample" or child.of_kind("parameters") else "other"
    return Value(frozenset(), value.origins, scale, Shape(call.node, several=None) if scale else None)


def _forwarded(run: Interpreter, obj: New | Part, call: Call, flow: Value, out: Value, alike: frozenset[Obj] = frozenset()) -> Value:
    kept = out.origins - _inner_forwards(out, flow) - _own_parts(out, flow, alike or (obj,))
    mark = frozenset() if run.no_grad else frozenset(Origin("forward", (o, call.node)) for o in alike or (obj,))
    if not run.no_grad:
        inner = {of[0] for of in of_kind(_deep_origins(run, out), "forward") - flow.of_kind("forward")}
        for o in alike or (obj,):
            run.trace.outputs_of.setdefault(o, set()).update(inner)
    of_all = out.scale is None and bool(out.of_kind("whole")) and not out.of_kind("batch")
    origins = library.whole(flow).origins if of_all else flow.origins
    made = _marked(run, Value(out.objs, kept | origins | mark, out.scale, out.shape), mark, flow)
    for name, hook in [h for o in alike or (obj,) for h in run.hooks_of(o).values()]:
        graded = library.gradient_of(made)
        given = [flow] if name == "register_forward_pre_hook" else [flow, made] if name in library.FORWARD_HOOKS else [graded, graded]
        hooked(run, [hook], call.node, [just(obj), *given])
    return made


def _deep_origins(run: Interpreter, value: Value, depth: int = 0) -> frozenset[Origin]:
    """What a value owes its origin to, and what tuples, lists and objects in it do."""
    inner = [v for o in value.objs if isinstance(o, Tup) for v in o.entries]
    inner += [v for o in value.objs if isinstance(o, New) and not run.is_module(o) for _, v in run.memory.of(o)]
    return value.origins.union(*(_deep_origins(run, v, depth + 1) for v in inner)) if depth < _NESTED else value.origins


def hooked(run: Interpreter, hooks: list[Value], node: ast.AST, args: list[Value]) -> None:
    """Run functions that were registered to be called with `args`."""
    for hook in hooks:
        for obj in ordered(hook.objs):
            if isinstance(obj, (Func, Class, New)) and is_own(obj):
                apply(run, obj, node, args, {})


def _marked(run: Interpreter, value: Value, mark: frozenset[Origin], flow: Value) -> Value:
    """Put the mark of a forward on the tensors inside tuples and dicts, too."""
    objs: set[Obj] = set()
    at = next((o.of[1] for o in mark), None)  # type: ignore[index]
    for obj in value.objs:
        if isinstance(obj, Tup):
            made = outputs(run, at, dict(enumerate(obj.items)), flow)
            rest = None if obj.rest is None else _part_of(obj.rest, mark, flow)
            marked = [(item, mark | made[n]) for n, item in enumerate(obj.items)]
            items = [_part_of(_marked_inside(run, item, marks, flow), marks, flow) for item, marks in marked]
            objs.add(Tup(tuple(items), obj.names, rest))
        elif isinstance(obj, New) and _holds_outputs(run, obj):
            held = dict(run.memory.of(obj))
            named = {n: item for n, item in held.items() if n not in (ELEMENT, UNNAMED)}
            alike = _made_in_turn(run, named, flow)
            named = {} if alike else named
            made = outputs(run, at, named or {n: item for n, item in held.items() if n == ELEMENT}, flow)
            for name, each in held.items():
                marks = mark | made.get(ELEMENT if name == UNNAMED or alike else name, frozenset())
                item = _marked_inside(run, each, marks, flow)
                run.memory[obj, name] = _part_of(item, marks, flow)
            objs.add(obj)
    return Value(frozenset(objs), value.origins, value.scale, value.shape)


def _holds_outputs(run: Interpreter, obj: New) -> bool:
    """Whether an object holds what a forward computed: a collection, parts of rows, or an object of the project that is no module."""
    return not run.is_module(obj) if obj.cls is not None else obj.path in library.COLLECTIONS | library.HOLDERS | {library.PARTS}


def _part_of(item: Value, mark: frozenset[Origin], flow: Value) -> Value:
    return Value(item.objs, (item.origins - _inner_forwards(item, flow)) | mark, item.scale, item.shape)


def _marked_inside(run: Interpreter, value: Value, mark: frozenset[Origin], flow: Value, depth: int = 0) -> Value:
    """Put the mark of a forward on what its parts computed in tuples, lists and dicts that its outputs hold."""
    objs: set[Obj] = set()
    for obj in value.objs:
        if isinstance(obj, Tup) and depth < _NESTED:
            items = [_marked_inside(run, item, mark, flow, depth + 1) for item in obj.items]
            objs.add(Tup(tuple(items), obj.names, obj.rest and _marked_inside(run, obj.rest, mark, flow, depth + 1)))
            continue
        for name, item in run.memory.of(obj) if isinstance(obj, New) and _holds_outputs(run, obj) and depth < _NESTED else ():
            made = _marked_inside(run, item, mark, flow, depth + 1)
            if made != item:
                run.memory[obj, name] = made
        objs.add(obj)
    made = Value(frozenset(objs), value.origins, value.scale, value.shape)
    return _part_of(made, mark, flow) if _inner_forwards(value, flow) else made


def _made_in_turn(run: Interpreter, items: Mapping[Any, Value], flow: Value) -> bool:
    """Whether outputs came out of one expression, which runs another layer for each: `out[name] = heads[name](x)`."""
    owed = {frozenset(of_kind(_deep_origins(run, item), "forward") - flow.of_kind("forward")) for item in items.values()}
    forwards = owed.pop() if len(items) > 1 and len(owed) == 1 else frozenset()
    return len({node for _, node in forwards}) < len(forwards)


def outputs(run: Interpreter, at: object, items: Mapping[Any, Value], flow: Value) -> dict[Any, frozenset[Origin]]:
    """The marks of a forward's several outputs: which one it is, and which parts of the model each of them comes from."""
    if at is None:
        return {name: frozenset() for name in items}
    owed = {name: of_kind(_deep_origins(run, item), "forward") - flow.of_kind("forward") for name, item in items.items()}
    parts = tuple((n, frozenset(of[0] for of in forwards)) for n, forwards in owed.items())
    return {name: frozenset((Origin("output", (at, name, parts)),)) for name in items}


def invoke_named(
    run: Interpreter,
    obj: New,
    name: str,
    node: ast.AST,
    args: list[Value] | None = None,
    keywords: dict[str, Value] | None = None,
    alike: frozenset[Obj] = frozenset(),
) -> Value | None:
    """What a method of an object gives; None where it has none."""
    found = run.find(obj.cls, name) if obj.cls is not None else None
    if found is None:
        return None
    return join(
        [
            call_function(run, run.objects.bound(f, obj, f.cls), node, args or [], keywords or {}, alike)
            for f in found.objs
            if isinstance(f, Func)
        ]
    )


def _hand_back(run: Interpreter, func: Func, node: ast.AST, frame: Frame) -> None:
    """What a function has filled in place with rows of a batch, the caller's names hold from here on."""
    if not (frame.changed or run.aliases.together) or not isinstance(node, ast.Call) or frame.local is None:
        return
    names = [p.arg for p in (*func.node.args.posonlyargs, *func.node.args.args)][func.owner is not None :]
    for name, given in [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]:
        value = frame.local.get(str(name), NOTHING) if name in frame.changed else NOTHING
        written.handed(run, frame, str(name), given)
        if not value.batches() or run.trace.values.get(given, NOTHING).objs:
            continue
        while isinstance(given, ast.Subscript):  # of a view of it
            given = given.value
            value = Value(
                run.expression(given).objs, run.expression(given).origins | value.origins, run.expression(given).scale, value.shape
            )
        run.events.append((Kind.CHANGE, given, None, value))
        written.hold(run, given, value)


def call_function(
    run: Interpreter, func: Func, node: ast.AST, args: list[Value], keywords: dict[str, Value], owners: frozenset[Obj] = frozenset()
) -> Value:
    """Run a function of the project at this call; as a method of any of `owners`, where there are more than its own."""
    if isinstance(run.memory.watch, Recording):
        run.memory.watch.functions.add((func.node, func.made))
    if len(run.stack) >= _DEPTH or run.trace.exhausted:
        run.memory.doubt()  # called from elsewhere, it is followed
        return library.mixed(args, keywords)
    if getattr(func.node, "name", "") in GATHERS and args:
        return gathered(run, node, args[0])
    if _goes_into(run, func, args):
        return NOTHING
    if not _followed(run, func):
        return library.mixed(args, keywords)
    bound = (
        [Value(owners or frozenset((func.owner,)))]
        if func.owner is not None
        else [just(func.cls)]
        if func.cls is not None and "classmethod" in decorator_names(func.node)
        else []
    ) + args
    frame = Frame(func.file, _parameters(run, func, bound, keywords), func.node)
    frame.around, frame.made = run.closures.get((func.node, func.made)), func.made
    frame.closure = func.node, func.made
    frame.cls, frame.owners = func.cls, frozenset(() if func.owner is None else owners or (func.owner,))
    if func.owner is None and func.cls is not None and args and len(args[0].instances()) == len(args[0].objs) == 1:
        frame.owners = args[0].objs  # a method that a decorator calls
    frame.given = tuple(args)
    saved = run.stack, run.breaks
    run.stack, run.breaks = (*run.stack, node), []
    quiet = isinstance(func.node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        run.trace.values.get(d.func if isinstance(d, ast.Call) else d, NOTHING).paths() & library.NO_GRAD for d in func.node.decorator_list
    )
    run.no_grad += quiet
    entered = len(run.events)
    carry_out(run, func, frame)
    if own_gradients.is_backward(run, func):
        run.changed_in_backward = {name: value for name, value in (frame.local or {}).items() if name in frame.changed}
        frame.changed.clear()
    own_gradients.run_backward(run, func, frame, lambda back, gradient: _changed_by(run, back, node, gradient))
    run.record.called(node, entered)
    run.no_grad -= quiet
    run.stack, run.breaks = saved
    _hand_back(run, func, node, frame)
    for aliases in run.all_aliases():
        aliases.leave(frame)
    if frame.yielded.objs or frame.yielded.origins or frame.yielded.scale:
        made = run.objects.new("generator", node, run.stack)
        run.memory[made, ELEMENT] = frame.yielded
        return just(made)
    return rows_of_rank(run, args, frame.returned)


def _changed_by(run: Interpreter, backward: Func, node: ast.AST, gradient: list[Value]) -> dict[str, Value]:
    """The names whose tensors a backward changes in place, and what they then hold."""
    run.changed_in_backward = {}
    call_function(run, backward, node, gradient, {})
    return run.changed_in_backward


def _goes_into(run: Interpreter, func: Func, args: list[Value]) -> bool:
    """Whether a running function calls itself for each part of a batch of which it is not known what it consists of.

    It then does with each tensor what it does with one: `{k: to(v) for k, v in batch.items()}` of a dict, `batch.to(device)` of a tensor.
    """
    frame = next((f for f in reversed(run.frames) if f.node is func.node), None)
    given = zip(frame.given, args, strict=False) if frame is not None else ()
    parts = [(v, a) for v, a in given if _is_of_unknown_structure(v) and a != v and a.batches() and a.batches() <= v.batches()]
    if frame is None or not parts:
        return False
    whole = {b for v, _ in parts for b in v.batches()}
    own = {n for n in walk(func.node) if isinstance(n, (ast.For, *_COMPREHENSIONS))}
    within = any(loop.node in own and whole & {*loop.over.batches(), *loop.element.batches()} for loop in run.loops)
    frame.goes_into |= within
    return within


def _is_of_unknown_structure(value: Value) -> bool:
    return value.scale == "sample" and not value.objs and bool(value.batches())


def _followed(run: Interpreter, func: Func) -> bool:
    """Whether a function is followed that may be running already: once more, and not on ever new ways that lead back to it."""
    running = [f.made == func.made for f in run.frames if f.node is func.node]
    if running:
        ways = run.recursions.setdefault(func.node, set())
        ways.add((func, run.stack))
        return sum(running) <= 1 and len(ways) <= _RECURSIONS
    return True


def refilled(node: ast.expr) -> ast.expr:
    """The tensor that a chain of calls changes in place, each of which gives back the tensor: `x` in `x.data.resize_(n).copy_`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            return node


def _parameters(run: Interpreter, func: Func, args: list[Value], keywords: dict[str, Value]) -> dict[str, Value]:
    """The locals that a call starts with."""
    spec = func.node.args
    positional = [*spec.posonlyargs, *spec.args]
    local: dict[str, Value] = {}
    for parameter, default in zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True):
        local[parameter.arg] = run.trace.values.get(default, NOTHING)
    for parameter, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        local[parameter.arg] = run.trace.values.get(keyword_default, NOTHING) if keyword_default is not None else NOTHING
    for parameter, value in zip(positional, args, strict=False):
        local[parameter.arg] = value
    names = {p.arg for p in (*positional, *spec.kwonlyargs)}
    rest = run.objects.new("dict", func.node, run.stack)
    for name, value in keywords.items():
        if name in names:
            local[name] = value
        elif spec.kwarg is not None and (name != "**" or is_open(run, value)):
            run.memory[rest, name] = value
    if spec.vararg is not None:
        local[spec.vararg.arg] = just(Tup(tuple(args[len(positional) :])))
    if spec.kwarg is not None:
        local[spec.kwarg.arg] = just(rest)
    if "**" in keywords:
        _by_name(run, keywords["**"], local, [p.arg for p in (*positional[len(args) :], *spec.kwonlyargs) if p.arg not in keywords])
    if func.node in run.driven:
        passed = {*(p.arg for p in positional[: len(args)]), *keywords}
        local.update(drivers.given(run, func, [p.arg for p in (*positional, *spec.kwonlyargs) if p.arg not in passed]))
    for parameter in positional:
        local.setdefault(parameter.arg, NOTHING)
    made = func.cls.node.name if func.cls is not None else ""
    flagged = flags(run.project, func.node, made) | _left_out(run, func, {*(p.arg for p in positional[: len(args)]), *keywords})
    for parameter in (*positional, *spec.kwonlyargs):
        if parameter.arg in flagged:
            local[parameter.arg] = marked_as_literal(local[parameter.arg])
        run.note(parameter, local[parameter.arg])
    return local


def _left_out(run: Interpreter, func: Func, passed: set[str]) -> set[str]:
    """The flags of a function of another file that a call leaves as they are: what they would ask for is of another script."""
    spec = func.node.args
    if func.file == "__main__" or getattr(func.node, "name", "__").startswith("__") or "**" in passed:
        return set()
    placed = [*spec.posonlyargs, *spec.args]
    given = [*zip(placed[len(placed) - len(spec.defaults) :], spec.defaults, strict=True)]
    given += [(p, default) for p, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is not None]
    return {p.arg for p, default in given if isinstance(default, ast.Constant) and isinstance(default.value, bool)} - passed


def _by_name(run: Interpreter, given: Value, local: dict[str, Value], names: Iterable[str]) -> None:
    """Parameters that `**given` may pass hold what it has under their names: rows of a batch, or what has keys that are not known."""
    spaces = [o for o in given.objs if isinstance(o, Part) and o.name == named.SPACE]
    for name in names:
        if spaces and (name not in local or all(name in dict(named.entries(run, o)) for o in spaces)):
            local[name] = join([named.in_space(run, o, [name]) for o in spaces])
            continue
        held = [run.memory[o, UNNAMED] for o in given.objs if (o, UNNAMED) in run.memory]
        if not given.objs and given.scale is not None:
            held.append(part_of_several(run, given, name) or given)
        if held:
            local[name] = join([*held, *([local[name]] if name in local else [])])


def _inner_forwards(made: Value, flow: Value) -> frozenset[Origin]:
    """The forwards that a module ran to make something of `flow`."""
    return only(made.origins, "forward") - flow.origins


def _own_parts(made: Value, flow: Value, modules: Iterable[Obj]) -> set[Origin]:
    """What modules have of their own that went into something made of `flow`: the mark of their forward stands for it."""
    makers = {(*o.stack, o.node) for o in modules if isinstance(o, New)}
    out = set()
    for origin in only(made.origins, "from", "method") - flow.origins:
        root: object = origin.of[0] if isinstance(origin.of, tuple) else origin.of
        while isinstance(root, (Part, Method)):
            root = root.of
        if isinstance(root, New) and any((*root.stack, root.node)[: len(made_by)] == made_by for made_by in makers):
            out.add(origin)
    return out
