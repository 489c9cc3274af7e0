"""What `torch.load` reads: a checkpoint, the state of a random generator, or data that are computed with as they are."""

from __future__ import annotations

import ast

from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import New, Value
from ddpify.facts.tree import arguments
from ddpify.rules.context import Context

_MOVED = frozenset(("to", "cuda", "cpu", "numpy", "tolist"))
_DATA = "torch.utils.data."
_MOVES_NOTHING = ("torch.save", "torch.is_tensor", "torch.numel", "torch.nn.Embedding.from_pretrained", "torch.nn.Parameter", _DATA)


def checkpoint(context: Context, node: ast.Call) -> bool:
    """Whether what is loaded is a model or reaches one; data stay where they were saved from."""
    run = context.facts.after
    if not run.calls(node) or _is_applied_to_loaded(context, node, frozenset(("load_state_dict", "load_checkpoint", "update"))):
        return True
    if any(_made_by(o, node) for o in context.facts.trained):
        return True
    return any(_is_loaded(context, c.receiver, node) for method in ("eval", "train", "state_dict") for c in run.calls_named(method))


def random_state(context: Context, node: ast.Call) -> bool:
    """Whether what is loaded holds the state of a random generator, which is set again."""
    return _is_applied_to_loaded(context, node, frozenset(("set_rng_state", "set_rng_state_all", "set_state")))


def computed_with(context: Context, node: ast.Call) -> bool:
    """Whether what is loaded, or a part of it, is computed with where it lies: nothing moves it before; or is run, as a model is."""
    run, tree = context.facts.after, context.tree
    if isinstance(moved := tree.parent[node], ast.Attribute) and moved.attr in _MOVED:
        return False
    if any(_made_by(root, node) for o in run.run for root in run.roots(o)):
        return True
    for used in tree.of(ast.Name, ast.Attribute, ast.Subscript, ast.Call):
        objs = run.value(used).objs
        up = tree.parent.get(used)
        up = tree.parent[up] if isinstance(up, ast.keyword) else up
        if isinstance(up, (ast.Attribute, ast.Subscript)) or not any(_made_by(root, node) for o in objs for root in run.roots(o)):
            continue
        if isinstance(up, ast.BinOp) or (isinstance(up, ast.Call) and used in arguments(up) and _computes(context, up)):
            return True
    return False


def _computes(context: Context, call: ast.Call) -> bool:
    """Whether a call computes with what it is given: a function or a loss of torch, or a model."""
    func = context.facts.after.value(call.func)
    if any(isinstance(o, New) for o in func.objs):
        return True
    paths = func.paths()
    return bool(paths) and all(p.startswith("torch.") and not p.startswith(_MOVES_NOTHING) for p in paths)


def _made_by(obj: object, node: ast.Call) -> bool:
    return getattr(obj, "node", None) is node


def _is_applied_to_loaded(context: Context, node: ast.Call, methods: frozenset[str]) -> bool:
    """Whether one of these functions is given what is loaded, or a part of it."""
    calls = (call for method in methods for call in context.facts.after.calls_named(method))
    given = [value for call in calls for value in (*call.args, *call.keywords.values())]
    return any(_is_loaded(context, v, node) or any(getattr(of, "node", None) is node for of in v.of_kind("from")) for v in given)


def _is_loaded(context: Context, value: Value, node: ast.Call) -> bool:
    """Whether a value is what a call has loaded, or a part of it, or holds such parts."""
    run = context.facts.after
    held = (v for o in value.instances() if o.path in COLLECTIONS for v in run.of(o).values())
    return any(_made_by(root, node) for v in (value, *held) for o in v.objs for root in run.roots(o))
