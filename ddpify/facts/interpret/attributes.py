"""What `base.name` is."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from ddpify.facts import library, named, tensors
from ddpify.facts.assumed import WHOLE_BATCHES
from ddpify.facts.batch_source import ANY_FIELD, EXAMPLE_BATCH, OTHER_FIELDS
from ddpify.facts.interpret import own_gradients
from ddpify.facts.interpret.literals import decorator_names
from ddpify.facts.interpret.settings import possible
from ddpify.facts.interpret.state import ELEMENT, UNNAMED, Interpreter
from ddpify.facts.library.paths import CONTAINERS
from ddpify.facts.model import NOTHING, Class, Ext, Func, Lit, Module, New, Obj, Part, Pick, Super, Tup, Value, join, just, ordered
from ddpify.facts.names import canonical
from ddpify.facts.origins import Origin, only
from ddpify.facts.record import Kind
from ddpify.placement.shape import ROWS, Shape

_OF_MATRICES = frozenset(f"torch.nn.{name}" for name in ("Linear", "Embedding", "EmbeddingBag"))
_OF_CLASSES = frozenset(("__name__", "__qualname__", "__module__", "__doc__"))


def evaluate_attribute(run: Interpreter, node: ast.Attribute) -> Value:
    """`base.name`."""
    return read(run, run.expression(node.value), node)


def read(run: Interpreter, base: Value, node: ast.Attribute) -> Value:
    """The value of an attribute expression whose base is known."""
    run.access = node
    value = attribute(run, base, node.attr)
    run.access = None
    value = possible(run, value)
    run.events.append((Kind.READ, node, base, value))
    return value


def attribute(run: Interpreter, base: Value, name: str) -> Value:
    """What `base.name` is."""
    if base.scale is not None and all(isinstance(o, Lit) and o.value is None for o in base.objs):
        base = Value(frozenset(), base.origins, base.scale, base.shape)  # None has none
    if not base.objs or (name in ("device", "dtype") and all(isinstance(o, New) and o.path in library.COLLECTIONS for o in base.objs)):
        found = tensors.attribute(run, base, name, run.access) if base.scale is not None else None
        return library.tensor_attribute(base, name) if found is None else found
    if base.scale in ROWS and name in tensors.TRANSPOSES:
        return tensors.attribute(run, base, name, run.access) or NOTHING
    held = join([_attribute_of(run, obj, name, base) for obj in _without_read(run, ordered(base.objs))])
    if name in tensors.TRANSPOSES and base.shape is not None and held.scale is None:  # a weight: it has as many dimensions
        held = Value(held.objs, held.origins, None, Shape(base.shape.base, base.shape.dims))
    picked = run.batch_sources and name not in ("device", "dtype") and any(isinstance(o, (New, Part)) for o in base.objs)
    return held | Value(frozenset(), run.of_batches(base)) if picked else held


def _without_read(run: Interpreter, objs: Collection[Obj]) -> Collection[Obj]:
    """Objects without those that were read from a file, where another one is a network: what was saved then is such a network."""
    read = [o for o in objs if isinstance(o, New) and o.cls is None and o.path in library.UNPICKLES]
    known = bool(read) and any(isinstance(o, New) and o.cls is not None and run.is_module(o) for o in objs)
    return [o for o in objs if o not in read] if known else objs


def opened(run: Interpreter, objs: Iterable[Obj]) -> Iterator[Obj]:
    """Objects, in the place of wrappers what these hold: to call a wrapper is to call that."""
    todo, seen = list(objs)[::-1], set[Obj]()
    while todo:
        obj = todo.pop()
        if obj in seen:
            continue
        seen.add(obj)
        inner = run.memory.get((obj, "module"), NOTHING) if isinstance(obj, New) and obj.path in library.WRAPPERS else NOTHING
        held = [o for o in ordered(possible(run, inner).objs) if isinstance(o, (New, Part))]
        todo += held[::-1]
        if not held:
            yield obj


def _attribute_of(run: Interpreter, obj: Obj, name: str, base: Value) -> Value:
    if name == "module" and isinstance(obj, New) and _was_inside(run, obj):
        if run.ignore_dp:
            return just(obj)
        if base.kinds() & library.WRAPPERS:
            return NOTHING  # where the model is not wrapped, this fails
    if name == "_modules" and isinstance(obj, New) and (run.is_module(obj) or obj.path in CONTAINERS):
        return just(obj)  # its layers by their names
    if name == "param_groups" and isinstance(obj, New) and library.is_optimizer(run, obj):
        return _groups(run, obj)
    if name == named.SPACE and isinstance(obj, (Module, New, Part, Class)):
        return just(run.objects.part(obj, name))
    match obj:
        case Ext() if obj.path in library.SETTINGS:
            return run.memory.get((obj, name)) or just(run.objects.part(obj, name))
        case Ext() if name in _OF_CLASSES:
            return NOTHING  # a text
        case Ext():
            return run.of_library(canonical(f"{obj.path}.{name}"))
        case Pick():
            return named.attribute(run, obj, name)
        case Module():
            return _of_module(run, obj, name)
        case Class():
            return _of_class(run, obj, name)
        case Super():
            return _super(run, obj, name)
        case New() if obj.cls is not None:
            return _instance_attribute(run, obj, obj.cls, name)
        case New() | Part():
            return _of_object(run, obj, name, base)
        case Tup() if name in obj.names:
            return obj.items[obj.names.index(name)]
        case Tup() | Lit(value=None):
            return NOTHING
    tensor = library.tensor_attribute(Value(frozenset(), base.origins, base.scale, base.shape), name)
    if isinstance(obj, Lit):  # a number that a loop adds tensors to is a tensor after it
        return just(run.objects.method(obj, name)) | (tensor if base.scale or base.origins else NOTHING)
    return tensor


def _of_module(run: Interpreter, obj: Module, name: str) -> Value:
    found = run.memory.get((obj.name, name))
    if found is None:
        full = f"{obj.name}.{name}"
        return run.import_module(full, full) if run.project.is_local(full) else NOTHING
    return found


def _of_class(run: Interpreter, obj: Class, name: str) -> Value:
    if (of_context := own_gradients.context(run, obj, name)) is not None:
        return of_context
    if name == "apply" and own_gradients.FUNCTION in run.library_bases(obj):
        found = run.find(obj, "forward") or NOTHING
        return join([just(run.objects.bound(f, obj, obj)) for f in found.objs if isinstance(f, Func)])
    inherited = name in library.CLASS_CONSTRUCTORS and any(True for _ in run.library_bases(obj))
    return run.find(obj, name) or (just(run.objects.method(obj, name)) if inherited else NOTHING)


def _of_object(run: Interpreter, obj: New | Part, name: str, base: Value) -> Value:
    """An attribute of an object that a library made, or of a part of one."""
    if name == "__class__" and isinstance(obj, New) and obj.path.startswith("torch.nn."):
        return just(Ext(obj.path))
    loads = name == "batch_size" and run.is_a(obj, *library.LOADERS)
    held = run.memory.get((obj, name)) if not loads else None
    if held is not None:
        return held
    if isinstance(obj, New) and obj.path == EXAMPLE_BATCH and name not in ("dataset", "fields", "__class__"):
        return run.memory.get((obj, ANY_FIELD)) or run.memory.get((obj, OTHER_FIELDS), NOTHING)
    if isinstance(obj, New) and obj.path in library.HOLDERS and name not in library.OF_DICTS and (obj, UNNAMED) in run.memory:
        return run.memory[obj, UNNAMED] | just(run.objects.method(obj, name))  # put in by a key that is not known
    if isinstance(obj, New) and obj.path in library.WRAPPERS:
        inner = [o for o in opened(run, [obj]) if o is not obj and name not in library.MODULE_METHODS]
        if name == "module":
            return NOTHING
        if inner:
            return attribute(run, Value(frozenset(inner)), name)
    if loads and (obj, WHOLE_BATCHES) not in run.memory:
        return Value(frozenset(), frozenset((Origin("share", obj),)))  # this rank's already, once the loader is sharded
    given = run.memory.get((obj, library.GIVEN), NOTHING)
    matrix = Shape(None, 2) if name == "weight" and isinstance(obj, New) and obj.path in _OF_MATRICES else None
    parts: frozenset[Obj] = frozenset((run.objects.part(obj, name), run.objects.method(obj, name)))
    return Value(parts, base.origins | given.origins, given.scale, matrix)


def _was_inside(run: Interpreter, obj: New) -> bool:
    """Whether an object is a module without an attribute `module`: the script reads what its DataParallel holds."""
    own = (obj, "module") in run.memory or (obj.cls is not None and run.find(obj.cls, "module") is not None)
    network = run.is_module(obj) or obj.path in library.CONTAINERS or obj.path.startswith("torch.nn.")
    return network and not own and obj.path not in library.WRAPPERS


def _groups(run: Interpreter, obj: New) -> Value:
    """The parameter groups of an optimizer: parts of it, made of the parameters that it was given."""
    made = _parameters_in(run, run.memory.get((obj, "params"), NOTHING))
    return Value(frozenset((run.objects.part(obj, "param_groups"),)), made) | run.memory.get((obj, "param_groups"), NOTHING)


def _parameters_in(run: Interpreter, value: Value, depth: int = 0) -> frozenset[Origin]:
    """Whose parameters a value holds, in lists and dicts, too."""
    out = only(value.origins, "parameters", "weight")
    inner = [run.memory.get((o, key), NOTHING) for o in value.objs for key in (ELEMENT, "params", "iterable")] if depth < 4 else []
    inner += [item for o in value.objs if isinstance(o, Tup) for item in o.entries]
    return out.union(*(_parameters_in(run, v, depth + 1) for v in inner))


def _instance_attribute(run: Interpreter, obj: New, cls: Class, name: str) -> Value:
    held = run.memory.get((obj, name))
    if held is not None:
        return held
    found = run.find(cls, name)
    if found is not None:
        return bound_to(run, found, obj)
    if name == "__class__":
        return just(cls)
    by_pattern = named.held_like(run, obj, name) if name not in library.MODULE_METHODS else None
    if by_pattern is not None:
        return by_pattern
    if name in library.MODULE_METHODS or any(True for _ in run.library_bases(cls)):
        return Value(frozenset((run.objects.part(obj, name), run.objects.method(obj, name))))
    return _given_by_class(run, obj, cls, name) or just(run.objects.part(obj, name))


def _given_by_class(run: Interpreter, obj: New, cls: Class, name: str) -> Value | None:
    """What the class's own `__getattr__` returns for an attribute that nothing else gives; None where it has none, or is at it already."""
    found = run.find(cls, "__getattr__") if not name.startswith("__") else None
    methods = [f for f in found.objs if isinstance(f, Func) and f.owner is None] if found is not None else []
    if not methods or any(frame.node is f.node for f in methods for frame in run.frames):
        return None
    return join([run.call_function(run.objects.bound(f, obj, f.cls), run.access or f.node, [just(Lit(name))], {}) for f in methods])


def bound_to(run: Interpreter, found: Value, obj: New) -> Value:
    """The functions of a class as methods of an object; a property is called."""
    out: list[Value] = []
    for f in found.objs:
        if not isinstance(f, Func) or f.owner is not None:
            out.append(just(f))
            continue
        kinds = decorator_names(f.node)
        if "staticmethod" in kinds:
            out.append(just(f))
        elif "classmethod" in kinds and f.cls is not None:
            out.append(just(run.objects.bound(f, None, obj.cls)))
        elif "property" in kinds:
            out.append(run.call_function(run.objects.bound(f, obj, f.cls), run.access or f.node, [], {}))
        else:
            out.append(just(run.objects.bound(f, obj, f.cls)))
    return join(out) | Value(frozenset(), found.origins, found.scale, found.shape)


def _super(run: Interpreter, obj: Super, name: str) -> Value:
    for base in obj.cls.bases:
        for b in base.objs:
            if isinstance(b, Class):
                found = run.find(b, name)
                if found is not None and isinstance(obj.owner, New):
                    return bound_to(run, found, obj.owner)
    return just(run.objects.method(obj.owner, name))
