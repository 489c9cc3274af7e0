"""Methods and attributes of tensors, and of what is not known: by their names. Most are followed by their rows in `placement/rows.py`.

A row of `_OF_ANYTHING` is asked whatever the method is called on, one of `_OF_TENSORS` where something is known of that. A rule that gives
None leaves the method to the rows that follow.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from ddpify.facts import orders, tensor_entries, tensors, uniform
from ddpify.facts.library import flow, transformers
from ddpify.facts.library.generic import call_arguments
from ddpify.facts.library.paths import FILLS
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.library.torch import in_parts
from ddpify.facts.model import NOTHING, Call, Lit, Part, Tup, Value, just, origins_of
from ddpify.facts.origins import Origin
from ddpify.facts.tree import resizes_alias
from ddpify.placement.shape import ROWS

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter


def _all(use: Use) -> Value:
    """What an unknown function would make of the tensor and the arguments."""
    return flow.mixed([use.event.now, *use.args], use.keywords)


def _agreed(use: Use) -> Value:
    """A number that is the same on every rank."""
    return flow.agreed(Value(frozenset(), _all(use).origins))


def _no_rows(use: Use) -> Value:
    """Something of the batch that is of no sample."""
    return Value(frozenset(), _all(use).origins, "other")


def _copied(use: Use) -> Value | None:
    """`x.copy_(rows)`: it holds the rows."""
    if not use.args or _is_trained(use.event.now):
        return None
    (rows, *_) = use.args
    return Value(frozenset(), rows.origins, rows.scale, rows.shape)


def _resized(use: Use) -> Value | None:
    """`x.resize_as_(rows)`: as are inputs that are made once and filled anew for each batch."""
    if not use.args or _is_trained(use.event.now):
        return None
    if resizes_alias(use.event.node.func):
        return use.event.now
    sized_by_rows = any(v.scale in ("sample", "count") for v in flow.with_entries(use.args))
    return Value(frozenset(), use.event.now.origins | origins_of(use.args), "sample" if sized_by_rows else use.event.now.scale)


def _is_trained(value: Value) -> bool:
    return bool(value.of_kind("parameters") or value.of_kind("weight"))


def _filled(use: Use) -> Value:
    """`x.normal_()`."""
    given = _all(use)
    shape = use.event.now.shape.resized() if use.event.now.shape is not None else None
    return Value(frozenset(), given.origins | flow.drawn("torch", use.node), use.event.now.scale or given.scale, shape)


def _hooked(use: Use) -> None:
    """`x.register_hook(function)`: the function is called with the gradient."""
    if use.args:
        use.run.hooked([use.args[0]], use.node, [flow.gradient_of(use.event.now)])


def _trained(use: Use) -> Value | None:
    """`x.requires_grad_()`: a weight, unless it is a batch, or is made anew with one entry for each sample of one."""
    if use.event.now.of_kind("batch") or use.event.now.of_kind("parameters") or use.event.now.scale in ROWS:
        return None
    frozen = flow.is_literal(use.argument(0, "requires_grad"), False)
    return use.event.now if frozen else use.event.now | flow.weight(use.run, use.node)


def _counted(use: Use) -> Value | None:
    """`x.numel()` of what is read through time is no number of samples."""
    return _no_rows(use) if use.run.timed(use.event.now) else None


def _size(use: Use) -> Value:
    """`x.size()`, `x.size(dim)`: a length that is no batch's is the same on every rank."""
    if how := use.run.timed(use.event.now):
        along = len(use.args) == 1 and flow.is_index(use.args[0], 0 if how == "columns" else 1)
        return _agreed(use) if along else _no_rows(use)
    if use.args or use.keywords:
        length = tensors.length(use.run, use.event.now, use.args[0] if use.args else use.keywords.get("dim", NOTHING), use.node)
    else:
        length = tensors.attribute(use.run, use.event.now, "shape", use.node) or NOTHING
    return flow.agreed(length) if length.scale is None else length


def _into_cells(use: Use) -> Value | None:
    """`cells.index_add_(0, places, rows)`: the cells are no samples."""
    return _no_rows(use) if use.event.now.scale is None and _all(use).scale in ("sample", "chosen") else None


def _parts_by_name(use: Use) -> Value | None:
    """`items()`, `keys()`, `values()` of a batch that has names: each part has the rows that the batch has."""
    batch = use.event.now
    if use.args or batch.scale != "sample" or batch.shape is None or batch.shape.several is False:
        return None
    parts, part = use.instance("list"), tensor_entries.part_of_several(use.run, batch, use.node, unpacked=True) or batch
    entry = {"items": just(Tup((NOTHING, part))), "keys": NOTHING, "values": part}[use.name]
    use.run.set_attribute(parts, "[]", entry, True)
    return just(parts)


@lru_cache(1024)
def _as_subscript(node: ast.Call) -> ast.Subscript:
    """`batch["ids"]`, in the place of `batch.get("ids")`."""
    assert isinstance(node.func, ast.Attribute)
    return ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)


def _looked_up(use: Use) -> Value | None:
    """`batch.get("ids")` of what a loader gives: its entry of that name, as there is one."""
    rows, key, node = use.event.now, use.argument(0, "key"), use.event.node
    named = bool(key.objs) and all(isinstance(o, Lit) and isinstance(o.value, str) for o in key.objs)
    if rows.scale != "sample" or not named or not isinstance(node, ast.Call) or not node.args:
        return None
    return tensor_entries.item(use.run, rows, key, _as_subscript(node))


def _moved(use: Use) -> Value | None:
    """`rows.reverse()`, `rows.sort(key=...)` of a list of the rows of a batch; a tensor's own `sort` gives a copy."""
    copies = use.name == "sort" and "key" not in use.keywords and "reverse" not in use.keywords
    return NOTHING if not copies and orders.lost(use.run, use.event.node.func, use.event.now) else None


_OF_ANYTHING: dict[str, Rule] = {
    **dict.fromkeys(("reverse", "sort", "rotate"), _moved),
    **dict.fromkeys(
        "append appendleft insert extend remove pop popleft".split(),
        lambda use: _moved(use) if use.event.now.shape is not None and use.event.now.shape.several is False else None,
    ),
    "copy_": _copied,
    **dict.fromkeys(("resize_", "resize_as_"), _resized),
    **dict.fromkeys(FILLS, _filled),
    "register_hook": _hooked,
    "type_as": lambda use: use.event.now,
    "to": lambda use: use.event.now if use.args and use.args[0].scale in ROWS else None,  # the kind of numbers, and the device, of others
    "get": _looked_up,
}
_OF_TENSORS: dict[str, Rule] = {
    **dict.fromkeys(("items", "keys", "values"), _parts_by_name),
    **dict.fromkeys(("split", "chunk"), lambda use: in_parts(use, use.event.now)),
    "requires_grad_": _trained,
    "size": _size,
    **dict.fromkeys(("numel", "nelement"), _counted),
    **dict.fromkeys("dim ndimension element_size data_ptr get_device stride".split(), _agreed),
    **dict.fromkeys(tensors.INTO_CELLS, _into_cells),
}
_SIZING = frozenset("repeat expand tile new new_zeros new_ones new_full new_empty repeat_interleave".split())
OF_GIVEN_SIZES = frozenset("repeat expand tile new new_zeros new_ones new_full new_empty".split())


def call_tensor(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A method of a tensor, or an unknown function."""
    name, tensor = event.method, event.now
    use, of = Use(run, event, name, args, keywords), [tensor, *args]
    result = flow.mixed([*of, call_arguments(use)], keywords)
    if name == "repeat":
        result = _with(result, uniform.repeats(name, event.node, of))
    if name in _OF_ANYTHING and (found := _OF_ANYTHING[name](use)) is not None:
        return found
    if tensor.scale is None and result.scale is None and name in _SIZING and any(map(_is_number, flow.with_entries(args))):
        result = _with(result, frozenset((Origin("sized", event.node),)))
        if tensor.shape is None:
            return result
    known = tensor.shape is not None or (name in OF_GIVEN_SIZES and result.scale == "count")
    if not tensor.origins and not tensor.scale and not known:
        return result
    if name in _OF_TENSORS and (found := _OF_TENSORS[name](use)) is not None:
        return found
    if tensor.scale is None and tensor.shape is None and name not in tensors.KNOWN:
        return result
    return tensors.function(run, name, event.node, of, keywords, result.origins)


def _with(value: Value, origins: frozenset[Origin]) -> Value:
    return Value(value.objs, value.origins | origins, value.scale, value.shape)


def _is_number(value: Value) -> bool:
    """Whether a value may be a setting or a number above one, or is computed from such."""
    numbers = any(isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1) for o in value.objs)
    return numbers or bool(value.of_kind("from"))


_WITHOUT_ORIGINS = frozenset("device dtype ndim is_cuda requires_grad layout".split())


def tensor_attribute(base: Value, name: str) -> Value:
    """An attribute of something that is no known object, most often a tensor."""
    if name in _WITHOUT_ORIGINS:
        return NOTHING
    value = transformers.output_of(base, name)
    if name in transformers.OF_LAYERS and value.scale == "sample" and value.shape is not None:
        return Value(value.objs, value.origins, value.scale, value.shape._replace(several=True))
    if name == "data" and value.shape is not None and value.shape.packed:
        return Value(value.objs, value.origins, "chosen", value.shape.steps())
    if name == "shape":
        return Value(value.objs, uniform.lengths(value), value.scale, value.shape)
    return flow.without_graph(value) if name in ("data", "grad") else value
