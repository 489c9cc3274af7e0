"""Functions with a gradient of their own: `class Product(torch.autograd.Function)`, whose `backward` runs in the backward pass.

What it gives flows where the gradients flow. What it changes, as a bank of earlier rows that it keeps, is changed at each step: it is run
once where the function is applied, with what `forward` saved for it, and what it changes is handed back to what `forward` was given.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, Class, Func, Method, Tup, Value, just
from ddpify.facts.tree import last_name, walk

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Frame, Interpreter

SAVED = "saved_tensors"
SAVE = "save_for_backward"
FUNCTION = "torch.autograd.Function"
Carry = Callable[[Func, list[Value]], dict[str, Value]]


def context(run: Interpreter, of: Class, name: str) -> Value | None:
    """What the context of a function of its own gradient gives by a name; None for other names."""
    if name not in (SAVE, SAVED) or FUNCTION not in run.library_bases(of):
        return None
    return just(run.objects.method(of, name)) if name == SAVE else run.memory.get((of, SAVED), NOTHING)


def save(run: Interpreter, method: Method, args: list[Value]) -> None:
    """`ctx.save_for_backward(*tensors)`."""
    run.memory[method.of, SAVED] = just(Tup(tuple(args)))


def run_backward(run: Interpreter, func: Func, frame: Frame, carry: Carry) -> None:
    """Run the backward of a function whose forward has run in `frame`, where it changes something; `carry` says which names it changes."""
    of = func.owner
    if not isinstance(of, Class) or getattr(func.node, "name", "") != "forward" or FUNCTION not in run.library_bases(of):
        return
    found = run.find(of, "backward") or NOTHING
    for f in found.objs:
        if not isinstance(f, Func) or not _changes(f.node) or frame.local is None:
            continue
        given, kept = frame.returned, _kept(func.node)
        before = {attribute: run.memory.get((of, attribute)) for attribute in kept}
        changed = carry(run.objects.bound(f, of, of), [Value(frozenset(), given.origins, given.scale, given.shape)])
        left = {mine: changed[its] for mine, its in zip(_saved(func.node), _taken(f.node), strict=False) if its in changed}
        for attribute, mine in kept.items():
            value = run.memory.get((of, attribute))
            if value is not None and value != before[attribute]:
                left[mine] = value
        for mine in left.keys() & frame.local.keys():
            frame.local[mine] = left[mine]
            frame.changes(mine)


def is_backward(run: Interpreter, func: Func) -> bool:
    """Whether a function is the backward of a function of its own gradient."""
    return getattr(func.node, "name", "") == "backward" and isinstance(func.owner, Class) and FUNCTION in run.library_bases(func.owner)


def _saved(forward: ast.AST) -> list[str]:
    """The names of what a forward saves, in their order."""
    saves = (n for n in walk(forward) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == SAVE)
    return [a.id if isinstance(a, ast.Name) else "" for call in saves for a in call.args]


def _kept(forward: ast.AST) -> dict[str, str]:
    """The attributes of its context that a forward gives something of its own to, and the name of that: `ctx.memory = memory`."""
    stores = (n for n in walk(forward) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name))
    return {t.attr: n.value.id for n in stores for t in n.targets if isinstance(t, ast.Attribute) and isinstance(n.value, ast.Name)}


def _taken(backward: ast.AST) -> list[str]:
    """The names that a backward gives to what was saved, in their order."""
    return [t.id if isinstance(t, ast.Name) else "" for target in _targets(backward) for t in getattr(target, "elts", [target])]


def _targets(backward: ast.AST) -> Iterator[ast.expr]:
    for node in walk(backward):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == SAVED:
            yield from node.targets[:1]


def _changes(function: ast.AST) -> bool:
    """Whether a function may change tensors in place, or keep something.

    Not one that differentiates anew: the gradients that it finds are those that it gives back, and are averaged as these.
    """
    if any(isinstance(n, (ast.Attribute, ast.Name)) and last_name(n) in ("grad", "enable_grad") for n in walk(function)):
        return False
    for node in walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr.endswith("_") and not node.func.attr.endswith("__"):
                return True
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return True
    return False
