"""What training writes into the weights of trained models and their gradients: by a method, an assignment or a function of torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpify.facts.collect import Facts
from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import Call, Obj, Stack, Store, Value
from ddpify.facts.operands import drawn_inside
from ddpify.facts.runs import Run

_OF_TENSORS = frozenset(("data", "grad", "requires_grad"))
DRAWS = frozenset(("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "trunc_normal_", "log_normal_", "cauchy_", "geometric_"))
_INTO_WEIGHTS = "torch.nn.utils.vector_to_parameters"


@dataclass(frozen=True, slots=True)
class Write:
    """A write: the call or what is assigned to, the calls above it, and what is written, of which `given` are the expressions.

    `draws` says that the method draws the numbers itself: `weight.normal_()`.
    """

    node: ast.expr
    stack: Stack
    values: tuple[Value, ...]
    given: tuple[ast.expr, ...]
    draws: bool = False


def weight_writes(facts: Facts) -> list[Write]:
    """The writes in training."""
    training = facts.training_loops
    trace, weights = facts.after.trace, Weights(facts)
    stores = (weights.stored(s) for s in trace.stores if any(loop.node in training for loop in s.loops))
    calls = (w for c in trace.calls if any(loop.node in training for loop in c.loops) for w in weights.called(c))
    return [*(s for s in stores if s is not None), *calls]


class Weights:
    """The weights of trained models, or of others, their gradients, and state dicts."""

    def __init__(self, facts: Facts, models: frozenset[Obj] | None = None) -> None:
        self._run: Run = facts.after
        self._facts = facts
        self._models = facts.trained if models is None else models

    def stored(self, store: Store) -> Write | None:
        """The write that an assignment is, if it is one."""
        node = store.node
        if _is_setting(store):
            return None
        if (isinstance(node, ast.Attribute) and node.attr not in _OF_TENSORS) or not self.hold(
            store.receiver, isinstance(node, ast.Subscript)
        ):
            return None
        statement = self._facts.tree_of(node).statement(node)
        alone = isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.Assign) and statement.targets == [node])
        given = (statement.value,) if alone and isinstance(statement, (ast.Assign, ast.AugAssign)) else ()
        return Write(node, store.stack, (store.value,), given)

    def called(self, call: Call) -> Iterator[Write]:
        """The writes of a call: of a method that changes its tensor, of `out=`, of what torch itself copies into parameters."""
        given, values = [*call.node.args], [*call.args]
        if call.in_place and (self.hold(call.receiver, True) or self._is_gradient(call.node.func)):
            given += [k.value for k in call.node.keywords]
            yield Write(call.node, call.stack, (*values, *call.keywords.values()), tuple(given), call.method in DRAWS)
        elif call.method.startswith("_foreach_") and call.in_place and values and self.hold(values[0]):
            yield Write(call.node, call.stack, tuple(values[1:]), tuple(given[1:]))
        elif _INTO_WEIGHTS in call.func.paths():
            yield Write(call.node, call.stack, tuple(values[:1]), tuple(given[:1]))
        elif call.method == "load_state_dict" and self.hold(call.receiver) and values:
            yield Write(call.node, call.stack, (values[0], self._run.interpreter.element(values[0])), tuple(given[:1]))
        elif self.hold(call.keywords.get("out", Value())):
            yield Write(call.node, call.stack, tuple(values), tuple(given))

    def hold(self, value: Value, of_state: bool = False) -> bool:
        """Whether a value is a weight, or a part of a trained model; or one of a state dict, which has the model's tensors."""
        if value.batches():
            return False
        held = (o for o in self._run.unwrap(value) if getattr(o, "path", "") not in COLLECTIONS)
        parts = self._run.part_of(held, self._models)
        return parts or bool(value.of_kind("parameters")) or bool(of_state and value.of_kind("state"))

    def _is_gradient(self, function: ast.expr) -> bool:
        """Whether a method is of a gradient, not of that of a batch's rows, which is a rank's own."""
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Attribute) or function.value.attr != "grad":
            return False
        of = self._run.value(function.value.value)
        return of.scale != "sample" or not of.batches()


def _is_setting(store: Store) -> bool:
    """Whether an assignment is to a setting of an optimizer's group of parameters: `group["lr"] = 0.1`."""
    key = store.node.slice if isinstance(store.node, ast.Subscript) else None
    named = isinstance(key, ast.Constant) and isinstance(key.value, str)
    return named and bool(store.receiver.of_kind("parameters")) and not store.receiver.of_kind("state")


def drawn(run: Run, write: Write) -> Value:
    """What is drawn of what is written."""
    found = {o for v in write.values for o in v.origins if o.kind == "drawn"} | drawn_inside(run.interpreter, write.values)
    return Value(frozenset(), frozenset(o for o in found if o.kind == "drawn"))
