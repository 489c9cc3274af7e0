"""Expressions: literals, containers, and what only mixes its parts."""

from __future__ import annotations

import ast

from ddpify.facts import library, named, tensor_entries, tensors
from ddpify.facts.interpret.literals import joined_texts, literal, literal_keys, sources_of
from ddpify.facts.interpret.state import ELEMENT, UNNAMED, Interpreter
from ddpify.facts.interpret.texts import as_texts
from ddpify.facts.model import (
    NOTHING,
    Lit,
    Obj,
    Part,
    Tup,
    Value,
    join,
    just,
    origins_of,
)
from ddpify.facts.record import Kind


def mixed_parts(run: Interpreter, node: ast.AST) -> Value:
    """Something that only mixes its parts."""
    parts = [run.expression(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
    return Value(frozenset(), origins_of(parts), tensors.any_function(parts))


def evaluate_constant(run: Interpreter, node: ast.Constant) -> Value:
    """A literal."""
    value = run.constants.get(node)
    if value is None:
        value = run.constants[node] = just(Lit(node.value, id(node))) if not isinstance(node.value, bytes) else NOTHING
    return value


def evaluate_name(run: Interpreter, node: ast.Name) -> Value:
    """A name."""
    value = run.lookup(node.id)
    run.events.append((Kind.READ, node, None, value))
    return value


def evaluate_tuple(run: Interpreter, node: ast.Tuple) -> Value:
    """`a, b`; a list where some are starred."""
    items = tuple(run.expression(e) for e in node.elts)
    if any(isinstance(e, ast.Starred) for e in node.elts):
        return _starred(run, node, items)
    return just(Tup(items))


def _starred(run: Interpreter, node: ast.Tuple, items: tuple[Value, ...]) -> Value:
    """A tuple of which some entries are taken from others: of a tensor's sizes as many as it has dimensions, else a list."""
    parts: list[Value] = []
    for e, item in zip(node.elts, items, strict=True):
        sizes = isinstance(e, ast.Starred) and item.shape is not None and item.shape.ndim
        taken = tensor_entries.unpacked(run, item, sizes, node) if sizes else None
        (only,) = item.objs if len(item.objs) == 1 else (None,)
        if isinstance(e, ast.Starred) and isinstance(only, Tup) and only.rest is None:
            taken = list(only.items)
        elif taken is None and e is node.elts[-1] and (more := tensor_entries.sizes_joined(run, just(Tup(tuple(parts))), item, node)):
            return more
        if taken is None and isinstance(e, ast.Starred):
            elements = [run.element(i) if isinstance(e, ast.Starred) else i for e, i in zip(node.elts, items, strict=True)]
            return listed(run, node, elements)
        parts += [library.agreed(t) if t.scale is None else t for t in taken] if taken is not None else [item]
    return just(Tup(tuple(parts)))


def evaluate_list(run: Interpreter, node: ast.List | ast.Set) -> Value:
    """`[a, b]` and `{a, b}`."""
    items = [run.element(run.expression(e.value)) if isinstance(e, ast.Starred) else run.expression(e) for e in node.elts]
    return listed(run, node, items)


def listed(run: Interpreter, node: ast.AST, items: list[Value]) -> Value:
    """The list, or set, of some values that is made at a node."""
    obj = run.objects.new("set" if isinstance(node, ast.Set) else "list", node, run.stack)
    run.memory[obj, ELEMENT] = join(items)
    for i, item in enumerate(items):
        run.memory[obj, str(i)] = item
    made = Value(frozenset((obj,)), origins_of(items))
    run.events.append((Kind.MAKE, node, None, made))
    return made


def evaluate_dict(run: Interpreter, node: ast.Dict) -> Value:
    """`{key: value, **other}`."""
    obj = run.objects.new("dict", node, run.stack)
    run.memory[obj, ELEMENT] = NOTHING
    for key, item in zip(node.keys, node.values, strict=True):
        value = run.expression(item)
        if key is None:
            update(run, obj, value)
            continue
        named = literal_keys(run.expression(key))
        for name in named:
            run.memory[obj, name] = value
            run.keys.setdefault(obj, set()).add(name)
        if not named:
            run.set_attribute(obj, UNNAMED, value, False)
        run.memory[obj, ELEMENT] = run.memory[obj, ELEMENT] | value
    made = just(obj)
    run.events.append((Kind.MAKE, node, None, made))
    return made


def update(run: Interpreter, obj: Obj, value: Value) -> None:
    """Put what other objects hold into a dict."""
    if value.origins and value.objs and not any(run.memory.of(o) for o in value.objs):  # a view that a package gives of its own data
        for name in (ELEMENT, UNNAMED):
            run.set_attribute(obj, name, Value(frozenset(), value.origins, value.scale), False)
    for other in value.objs:
        space = isinstance(other, Part) and other.name == named.SPACE
        held_by_name = named.entries(run, other) if space else run.memory.of(other)
        if space:  # and what nobody has said a name of
            for name in (ELEMENT, UNNAMED):
                run.set_attribute(obj, name, NOTHING, False)
        for name, held in held_by_name:
            run.set_attribute(obj, name, held, name not in (ELEMENT, UNNAMED))
            run.keys.setdefault(obj, set()).add(name)
        if [name for name, _ in held_by_name] == [ELEMENT]:  # under names that are not known
            run.set_attribute(obj, UNNAMED, held_by_name[0][1], False)


def evaluate_unary(run: Interpreter, node: ast.UnaryOp) -> Value:
    """`-a`, `not a`."""
    inner = run.expression(node.operand)
    known = not inner.origins and inner.scale is None  # and not what a loop may have added up, from 0 on
    if isinstance(node.op, ast.USub) and known and isinstance(literal(inner), (int, float)):
        return just(Lit(-literal(inner), id(node)))  # type: ignore[operator]
    if isinstance(node.op, ast.Not):
        return Value(frozenset(), inner.origins | sources_of(inner), tensors.any_function([inner]))
    linear = isinstance(node.op, (ast.USub, ast.UAdd))
    found = inner if linear else tensors.entrywise(run, [inner], inner.origins, node)
    return Value(frozenset(), found.origins | sources_of(inner), found.scale, found.shape)


def evaluate_joined(run: Interpreter, node: ast.JoinedStr) -> Value:
    """An f-string: its texts, where all are known."""
    parts = [run.expression(v.value) for v in node.values if isinstance(v, ast.FormattedValue)]
    parts += [text for value in parts for text in as_texts(run, value, node)]
    plain = [v for v in node.values if not isinstance(v, ast.FormattedValue) or (v.conversion == -1 and v.format_spec is None)]
    pieces = [run.expression(v.value) if isinstance(v, ast.FormattedValue) else run.expression(v) for v in plain]
    return Value(
        (joined_texts(pieces) or named.text(run, pieces)) if len(plain) == len(node.values) else frozenset(),
        origins_of(parts) | frozenset(s for p in parts for s in sources_of(p)),
        tensors.any_function(parts),
    )


def evaluate_named(run: Interpreter, node: ast.NamedExpr) -> Value:
    """`(a := value)`."""
    value = run.expression(node.value)
    run.assign(node.target, value)
    return value


def evaluate_starred(run: Interpreter, node: ast.Starred) -> Value:
    """`*a`."""
    return run.expression(node.value)


def evaluate_yield(run: Interpreter, node: ast.Yield) -> Value:
    """`yield value`."""
    if node.value is not None:
        run.frame.yielded = run.frame.yielded | run.expression(node.value)
    return NOTHING


def evaluate_yield_from(run: Interpreter, node: ast.YieldFrom) -> Value:
    """`yield from value`."""
    run.frame.yielded = run.frame.yielded | run.element(run.expression(node.value))
    return NOTHING


def evaluate_await(run: Interpreter, node: ast.Await) -> Value:
    """`await value`."""
    return run.expression(node.value)
