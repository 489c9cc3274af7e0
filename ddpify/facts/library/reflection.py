"""What is reached by a name that the run puts together: attributes, modules, what a text or a configuration names."""

from __future__ import annotations

from ddpify.facts import named
from ddpify.facts.library.containers import is_layer
from ddpify.facts.library.flow import texts_of
from ddpify.facts.library.paths import WRAPPERS
from ddpify.facts.library.row import Use
from ddpify.facts.model import NOTHING, Ext, Func, Lit, Module, New, Obj, Pick, Super, Value, join, just
from ddpify.facts.names import canonical


def attribute_by_name(use: Use) -> Value:
    """`getattr(obj, name, default)`."""
    if len(use.args) < 2:
        return NOTHING
    base, default = use.args[0], use.args[2:]
    names = texts_of(join([named.option(use.run, o, (named.CHOICES,)) for o in use.args[1].objs]))
    if names == ["module"] and default and (base.kinds() & WRAPPERS or default[0].objs == base.objs):  # a model, without a wrapper
        return join([_unwrapped(use, o) for o in base.objs])
    if names:
        return join([*(use.run.attribute(base, n) for n in names), *default])
    if any((of_key := named.under_each(use.run, use.args[1], o)).objs for o in base.objs):
        return join([of_key, *default])
    pattern = named.pattern(use.run, use.node.args[1])
    own = [o for o in base.instances() if o.cls is not None]
    if own:
        return join([*_parts_like(use, own, pattern), *default])
    picked = [just(Pick(o, pattern)) for o in base.objs if isinstance(o, Module)]
    return join([*picked, *(just(Ext(canonical(f"{path}.*"))) for path in base.paths()), *default])


def _unwrapped(use: Use, obj: Obj) -> Value:
    wraps = isinstance(obj, New) and (obj.path in WRAPPERS or (obj, "module") in use.run.memory)
    return use.run.memory.get((obj, "module"), NOTHING) if wraps else just(obj)


def _parts_like(use: Use, owners: list[New], pattern: str) -> list[Value]:
    """What objects hold by a name that is not known: what was put in by such a name, any of the modules among it, or else a method."""
    held = [(n, v) for o in owners for n, v in use.run.memory.of(o) if named.like(n, pattern)]
    alike = [v for n, v in held if n == pattern or any(is_layer(use.run, o) for o in v.objs)]
    alike += filter(None, (named.buffers(use.run, o, pattern) for o in owners))
    return alike or [just(Pick(o, pattern)) for o in owners]


def attribute_set_by_name(use: Use) -> Value:
    """`setattr(obj, name, value)`."""
    if len(use.args) != 3:
        return NOTHING
    base, name, value = use.args
    names = [str(o.value) for o in name.objs if isinstance(o, Lit)]
    for obj in base.objs:
        for text in names:
            use.run.set_attribute(obj, text, value, len(base.objs) == len(name.objs) == 1)
        if not names and isinstance(obj, New):
            named.set_by_pattern(use.run, obj, named.pattern(use.run, use.node.args[1]), value)
    return NOTHING


def parent_class(use: Use) -> Value:
    """`super()`."""
    frame = use.run.frame
    return Value(frozenset(Super(o, frame.cls) for o in frame.owners)) if frame.cls is not None else NOTHING


def imported(use: Use) -> Value | None:
    """`importlib.import_module(name, package)`."""
    return named.imported(use.run, use.args[0], use.argument(1, "package"), False) if use.args else None


def imported_top(use: Use) -> Value | None:
    """`__import__(name)`: the first package on the way, unless names are asked for."""
    top = "fromlist" not in use.keywords and len(use.args) < 4
    return named.imported(use.run, use.args[0], use.keywords.get("package", NOTHING), top) if use.args else None


def read_from_file(use: Use) -> Value | None:
    """`spec_from_file_location(name, location)`."""
    place = use.argument(1 if len(use.args) > 1 else 0, "location")
    return named.from_file(use.run, place) if place.objs else None


def of_specification(use: Use) -> Value | None:
    """`module_from_spec(spec)`: the module that the specification names."""
    return use.args[0] if use.args and any(isinstance(o, Module) for o in use.args[0].objs) else None


def filtered(use: Use) -> Value:
    """`filter(function, values)`: the values, of which the function sees each."""
    if len(use.args) < 2:
        return NOTHING
    function, values = use.args[:2]
    for obj in function.objs:
        if isinstance(obj, Func):
            use.run.call_function(obj, use.node, [use.run.element(values)], {})
    return values
