"""What the script's settings exclude: an object that is made where a setting has one value is not there where it has another.

`if args.cell == "gru": net = GRU() else: net = Transformer()`, and later `if args.cell == "gru": out, h = net(x, h)`: there it is the GRU.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ddpify.facts import library
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Known, Lit, Method, New, Obj, Part, Value
from ddpify.facts.recording import Recording

TRUE = "[true]"  # in the place of the constant, where a setting itself is the condition


def known_if(run: Interpreter, test: ast.expr, holds: bool) -> frozenset[Known]:
    """What is known of settings where a test holds, or does not."""
    return frozenset(_known(run, test, holds))


def _known(run: Interpreter, test: ast.expr, holds: bool) -> Iterator[Known]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _known(run, inner, not holds)
        case ast.BoolOp(op=op, values=parts):
            if isinstance(op, ast.And) is holds:
                for part in parts:
                    yield from _known(run, part, holds)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if (setting := _setting(run, left)) is not None:
            equal = holds is isinstance(op, (ast.Eq, ast.Is, ast.In))
            if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) and isinstance(right, ast.Constant):
                yield setting, right.value, equal
            elif isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)) and not equal:
                yield from ((setting, e.value, False) for e in right.elts if isinstance(e, ast.Constant))
        case ast.Name() | ast.Attribute() | ast.Subscript() if (setting := _setting(run, test)) is not None:
            yield setting, TRUE, holds


def _setting(run: Interpreter, node: ast.expr) -> Obj | None:
    """The one setting that an expression is: an argument of the command line that nothing changes, or a constant of the script."""
    value = run.lookup(node.id) if isinstance(node, ast.Name) else run.trace.values.get(node, NOTHING)
    held = [o for o in value.objs if not isinstance(o, Method)]
    if len(held) != 1 or value.origins:
        return None
    (only,) = held
    if isinstance(only, Lit):
        return only if only.node else None
    of = only.of if isinstance(only, Part) else None
    return only if isinstance(of, New) and of.path in library.HOLDERS else None


@lru_cache(4096)
def excluded(one: frozenset[Known], other: frozenset[Known]) -> bool:
    """Whether what is known in two places cannot be true at once."""
    return any(a[0] is b[0] and _contradict(a, b) for a in one for b in other)


def _contradict(one: Known, other: Known) -> bool:
    (_, constant, equal), (_, again, equal_again) = one, other
    if constant is TRUE or again is TRUE:
        held, true = (other, equal) if constant is TRUE else (one, equal_again)
        return held[2] is not true if held[1] is TRUE else held[2] and bool(held[1]) is not true
    if equal and equal_again:
        return constant != again
    return equal is not equal_again and constant == again


def note_made(run: Interpreter, node: ast.Call, value: Value) -> None:
    """Note under which settings a call makes an object; made under several, it is known of what they share."""
    for obj in value.objs:
        if isinstance(obj, New) and obj.node is node:
            made_under(run, obj, run.settings)
            if isinstance(run.memory.watch, Recording):
                run.memory.watch.make(obj, run.settings)


def made_under(run: Interpreter, obj: Obj, settings: frozenset[Known]) -> None:
    """Let an object be one that is made where this is known of settings."""
    run.made_under[obj] = run.made_under.get(obj, settings) & settings


def possible(run: Interpreter, value: Value) -> Value:
    """A value without those of its objects that are not there under the settings that are known; as it is, where none would be left."""
    if len(value.objs) < 2:
        return value
    conditions = {o: known for o in value.objs if (known := run.made_under.get(o))}
    if isinstance(run.memory.watch, Recording):
        run.memory.watch.settings_asked.update(setting for known in conditions.values() for setting, _, _ in known)
    kept = frozenset(o for o in value.objs if o not in conditions or not excluded(conditions[o], run.settings))
    return value if not kept or len(kept) == len(value.objs) else Value(kept, value.origins, value.scale, value.shape)
