"""Whether the conditions inside a function are known, the same at every step, or may come out otherwise at each."""

from __future__ import annotations

import ast
from typing import Literal

from ddpify.facts.model import Call, Func, Lit, New, Part, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import last_name, names_stored, walk

Outcome = Literal["true", "false", "fixed", "each", "open"]
_OPPOSITE: dict[Outcome, Outcome] = {"true": "false", "false": "true"}
_SHAPES = frozenset("shape size dim ndim ndimension is_cuda dtype device requires_grad numel type is_floating_point".split())
# libraries whose functions give the same for the same, but for draws
_REPEATABLE = frozenset("torch numpy math typing collections functools itertools operator inspect".split())
_FORS = (ast.For, ast.AsyncFor)
_LOOPS = (*_FORS, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_CHANGING = frozenset(("random", "drawn", "index", "time", "decided"))


class Conditions:
    """The conditions of a function that runs for an object, which is called `self_name` there; `arguments` are what it is given."""

    def __init__(self, run: Run, node: ast.AST, owner: New, self_name: str, arguments: dict[str, Value]) -> None:
        self.run, self.owner, self.self_name, self.arguments = run, owner, self_name, arguments
        self.loops = frozenset(n for n in walk(node) if isinstance(n, _LOOPS))
        self.by_turns = {name.id for n in walk(node) if isinstance(n, (*_FORS, ast.comprehension)) for name in names_stored(n.target)}

    def outcome(self, node: ast.expr) -> Outcome:
        """Whether a condition is known, the same at every step ("fixed"), met for some in each loop ("each"), or open."""
        match node:
            case ast.Constant():
                return _answer(node.value)
            case ast.UnaryOp(op=ast.Not()):
                inner = self.outcome(node.operand)
                return _OPPOSITE.get(inner, inner)
            case ast.BoolOp():
                return self._combined(node)
            case ast.Attribute(attr="training"):
                return "true"
            case ast.Compare(ops=[_]):
                known = self._compared(node)
                return self._changing(node) if known is None else _answer(known)
        only = self.constant(node)
        return self._changing(node) if only is None else _answer(only.value)

    def _combined(self, node: ast.BoolOp) -> Outcome:
        """What `and`, or `or`, makes of several conditions: one of them may decide, else the one that changes most does."""
        parts = [self.outcome(v) for v in node.values]
        decides: Outcome = "true" if isinstance(node.op, ast.Or) else "false"
        ranked: tuple[Outcome, ...] = (decides, "open", "each", "fixed")
        return next((kind for kind in ranked if kind in parts), _OPPOSITE[decides])

    def _compared(self, node: ast.Compare) -> bool | None:
        """Whether a comparison with a constant, or None, is known."""
        op, right = node.ops[0], node.comparators[0]
        if not isinstance(right, ast.Constant):
            return None
        if isinstance(op, (ast.Is, ast.IsNot)) and right.value is None:
            value = self._value(node.left)
            if value is None or not value.objs or any(isinstance(o, Part) for o in value.objs):
                return None if value is None or value.objs or not value.origins else isinstance(op, ast.IsNot)
            empty = {isinstance(o, Lit) and o.value is None for o in value.objs}
            return None if len(empty) > 1 else empty.pop() == isinstance(op, ast.Is)
        only = self.constant(node.left)
        if only is None or not isinstance(op, (ast.Eq, ast.NotEq)):
            return None
        return (only.value == right.value) == isinstance(op, ast.Eq)

    def _value(self, node: ast.expr) -> Value | None:
        """What a name or an attribute of the object may be; None where it may change or is not known."""
        if isinstance(node, ast.Name) and node.id in self.arguments:
            return self.arguments[node.id]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self_name:
            return None if self._changes(node.attr) else self.run.of(self.owner).get(node.attr)
        return self.run.value(node) if isinstance(node, ast.Name) else None

    def constant(self, node: ast.expr) -> Lit | None:
        """The one literal that a name or an attribute of the object is at every step."""
        value = self._value(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if value is None or len(value.objs) != 1 or value.origins - {o for o in value.origins if o.kind == "literal"}:
            return None
        (only,) = value.objs
        return only if isinstance(only, Lit) else None

    def _changes(self, name: str) -> bool:
        """Whether an attribute of the object is set again after it was made."""
        stores = self.run.stores_as.get(name, ())
        return any(self.owner in s.receiver.objs and self.owner.node not in s.stack for s in stores)

    def _changing(self, node: ast.expr) -> Outcome:
        """How a condition that is not known may change."""
        kinds: set[Outcome] = set()
        todo: list[ast.AST] = [node]
        while todo:
            part = todo.pop()
            match part:
                case ast.Call():
                    if self._draws(part):
                        return "open"
                    if last_name(part.func) in _SHAPES | {"len", "isinstance", "hasattr"}:
                        kinds.add(self._sized(part))
                        continue
                case ast.Attribute(attr=name) if name in _SHAPES:
                    kinds.add(self._sized(part))
                    continue
                case ast.Attribute(value=ast.Name(id=name)) if name == self.self_name:
                    kinds.add("open" if self._changes(part.attr) else "fixed")
                    continue
                case ast.Name(ctx=ast.Load()):
                    kinds.add(self._named(part))
            todo += ast.iter_child_nodes(part)
        return "open" if "open" in kinds else "each" if "each" in kinds else "fixed"

    def _sized(self, node: ast.expr) -> Outcome:
        """What is asked of a tensor without its numbers: how many rows were chosen of a batch may change."""
        return "open" if self.run.value(node).scale in ("sum", "other") else "fixed"

    def _draws(self, node: ast.Call) -> bool:
        """Whether a call may give something else each time: a draw, the time, a function of a library that is not known for less."""
        if any(o.kind in ("random", "drawn", "time") for o in self.run.value(node).origins):
            return True
        return any("." in p and p.partition(".")[0] not in _REPEATABLE for p in self.run.value(node.func).paths())

    def _named(self, node: ast.Name) -> Outcome:
        value = self.arguments.get(node.id, self.run.value(node))
        counts = {o for o in value.origins if o.kind == "index" and o.of in self.loops}
        known = {o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, (bool, int, str, float, type(None)))}
        if len(known) > 1 or value.scale is not None or any(o.kind in _CHANGING for o in value.origins - counts):
            return "open"
        return "each" if counts or node.id in self.by_turns else "fixed"


def arguments_of(run: Run, func: Func, calls: list[Call]) -> dict[str, Value]:
    """What the parameters of a function are in these calls."""
    assert not isinstance(func.node, ast.Lambda)
    spec = func.node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1:]
    defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    out: dict[str, Value] = {}
    for call in calls:
        if "**" in call.keywords:
            continue
        for i, name in enumerate([*names, *(a.arg for a in spec.kwonlyargs)]):
            given = call.argument(i if i < len(names) else -1, name)
            if given is None and name in defaults:
                given = run.value(defaults[name])
            if given is not None:
                out[name] = out[name] | given if name in out else given
    return out


def _answer(known: object) -> Outcome:
    return "true" if known else "false"
