"""What mixed precision a script has: its autocasts, its grad scalers, and which forwards run under them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.collect import loss_of
from ddpify.facts.library import AUTOCASTS, SCALERS
from ddpify.facts.model import Call, Method, New, Value, in_common
from ddpify.facts.tree import Tree
from ddpify.records import dataclass
from ddpify.rules.context import Context, argument

GRAD = "torch.autograd.grad"
_HOOKS = ("register_hook", "register_full_backward_hook", "register_backward_hook", "register_post_accumulate_grad_hook")


@dataclass(frozen=True, eq=False)
class Backward:
    """One evaluation of a backward call: the value it starts from, and the trained forwards that this value comes from."""

    call: Call
    loss: Value
    forwards: tuple[Call, ...]

    @property
    def receiver(self) -> ast.expr:
        """The expression that is differentiated."""
        node = self.call.node
        method = isinstance(node.func, ast.Attribute) and not node.args and not any(k.arg == "tensors" for k in node.keywords)
        given = argument(node, 0, "tensors")
        called = "torch.autograd.backward" in self.call.func.paths()
        return node.func.value if (method or not called or given is None) and isinstance(node.func, ast.Attribute) else given or node


def backwards(context: Context) -> list[Backward]:
    """The backward calls of the training, in the order they run."""
    run = context.facts.after
    nodes = list(dict.fromkeys(loop.backward.node for loop in context.facts.loops))
    out = []
    for call in sorted((c for n in nodes for c in run.calls(n)), key=lambda c: c.order):
        loss = loss_of(call)
        pairs = {node for obj, node in loss.of_kind("forward") for m in context.facts.models if obj in m.objs and node in m.forwards}
        pairs = pairs or _outermost(context, loss)
        mine = [c for n in pairs for c in _of_this_pass([c for c in run.calls(n) if not c.no_grad], call)]
        out.append(Backward(call, loss, tuple(sorted(mine, key=lambda c: c.order))))
    return out


def _outermost(context: Context, loss: Value) -> set[ast.AST]:
    """The networks' forwards that a loss comes from, where no model is trained by its own: those of parts of one, run by another method."""
    run = context.facts.after
    nodes = {node for obj, node in loss.of_kind("forward") if run.interpreter.is_network(obj)}
    return {n for n in nodes if not any(n is not up and up in nodes for c in run.calls(n) for up in c.stack)}


def _of_this_pass(forwards: list[Call], backward: Call) -> list[Call]:
    """The evaluations of a forward that belong to a backward call: those of another pass through the same functions do not."""
    near = max((in_common(c.stack, backward.stack) for c in forwards), default=0)
    return [c for c in forwards if in_common(c.stack, backward.stack) == near]


def gradient_hooks(context: Context) -> list[ast.Call]:
    """The calls that have a function given the gradients of a tensor or a module."""
    hooked = (c for c in context.facts.after.trace.calls if c.method in _HOOKS and not c.func.functions())
    return list(dict.fromkeys(c.node for c in hooked))


def autocasts(context: Context) -> list[ast.Call]:
    """The calls that make an autocast, in all files."""
    return _constructor_calls(context, AUTOCASTS)


def scalers(context: Context) -> list[ast.Call]:
    """The calls that make a grad scaler, in all files."""
    return _constructor_calls(context, SCALERS)


def _constructor_calls(context: Context, paths: frozenset[str]) -> list[ast.Call]:
    calls = (c for c in context.facts.after.trace.calls if c.func.paths() & paths)
    return list(dict.fromkeys(c.node for c in calls))


def covered(context: Context, call: Call) -> bool:
    """Whether a call runs under an autocast, or runs one itself."""
    trees = context.facts.trees.values()
    if any(cast.func.paths() & AUTOCASTS and call.node in cast.stack for cast in context.facts.after.trace.calls):
        return True
    return any(under_autocast(context, tree, n) for n in (call.node, *call.stack) for tree in trees if n in tree.parent)


def under_autocast(context: Context, tree: Tree, node: ast.AST) -> bool:
    """Whether a node stands in a `with` block, or in a decorated function, that casts."""
    for up in tree.ancestors(node):
        if isinstance(up, (ast.With, ast.AsyncWith)) and any(_casts(context, item.context_expr) for item in up.items):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(_casts(context, d) for d in up.decorator_list)
    return False


def _casts(context: Context, node: ast.expr) -> bool:
    value = context.facts.after.value(node)
    return bool(value.kinds() & AUTOCASTS or (value.paths() & AUTOCASTS and not isinstance(node, ast.Call)))


def scaled(loss: Value) -> frozenset[New]:
    """The grad scalers that a loss has been multiplied by."""
    return frozenset(o for o in loss.of_kind("scaled") if isinstance(o, New))


def steps(context: Context) -> list[Call]:
    """The evaluations of `optimizer.step(...)`, in the order they run."""
    run = context.facts.after
    calls = (c for c in run.trace.calls if c.method == "step" and any(run.is_optimizer(o) for o in c.receiver.objs))
    return sorted(calls, key=lambda c: c.order)


def is_unseen_method(context: Context, node: ast.Call) -> bool:
    """Whether a call may be a method of an object that a library made: what it does with a loss was not seen."""
    return any(isinstance(o, Method) and isinstance(o.of, New) for c in context.facts.after.calls(node) for o in c.func.objs)


def trains(context: Context) -> frozenset[ast.AST]:
    """The calls under which gradients are made or parameters move, those included."""
    return frozenset(n for c in _training(context) for n in (c.node, *c.stack))


def _training(context: Context) -> Iterator[Call]:
    run = context.facts.after
    for call in run.trace.calls:
        if call.method in ("backward", "step", "unscale_") or call.func.paths() & {GRAD, "torch.autograd.backward"}:
            yield call
