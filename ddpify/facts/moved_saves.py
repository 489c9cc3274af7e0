"""Saves for which a trained model is moved to the CPU and back: a wrapper loses sight of parameters that are moved, a copy serves as well.

Moving a parameter to another device gives it a new gradient accumulator (torch, `VariableHooks::set_data`); the hooks of
DistributedDataParallel sit on the old one, so that its gradients are averaged no more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpify.facts.collect import Facts, TrainedModel
from ddpify.facts.model import Call, Obj, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, same, walk

_BACK = frozenset(("cuda", "to"))


@dataclass(frozen=True)
class MovedSave:
    """A call of `.cpu()` on what is trained: the model, the statement that does nothing else, and what is saved before it moves back.

    `states` are the calls of `state_dict()`, `objects` the expressions that are saved as they are.
    """

    call: ast.Call
    model: ast.expr
    statement: ast.stmt | None
    states: tuple[ast.Call, ...]
    objects: tuple[ast.expr, ...]


def moved_saves(facts: Facts) -> dict[ast.AST, MovedSave]:
    """The calls that move what is trained to the CPU for nothing but a save."""
    known = facts.before.known
    if "moved saves" not in known:
        calls = {c.node for c in facts.before.trace.calls if c.method == "cpu" and is_trained(facts, c.receiver)}
        found = {node: _read(facts, node) for node in calls}
        known["moved saves"] = {node: save for node, save in found.items() if save is not None}
    return known["moved saves"]  # type: ignore[return-value]


def is_trained(facts: Facts, value: Value) -> bool:
    """Whether a value is a trained model, a part of one, or a module that holds one."""
    run = facts.before
    return is_part(run, run.unwrap(value), facts.trained)


def is_part(run: Run, objs: frozenset[Obj], trained: frozenset[Obj]) -> bool:
    """Whether some objects are of these models, or parts of one, or modules that hold one."""
    return run.part_of(objs, trained) or bool(run.around(trained) & objs)


def _read(facts: Facts, node: ast.Call) -> MovedSave | None:
    tree = facts.tree_of(node)
    if (
        (tree.name != "__main__" and not facts.project.may_edit(tree.name))
        or not isinstance(node.func, ast.Attribute)
        or node.args
        or node.keywords
    ):
        return None
    model, up = node.func.value, tree.parent[node]
    above = tree.parent[up]
    if isinstance(up, ast.Attribute) and up.attr == "state_dict" and isinstance(above, ast.Call) and not above.args:
        return MovedSave(node, model, None, (above,), ())
    if _is_saved(facts, tree, node):
        return MovedSave(node, model, None, (), (model,))
    alone = isinstance(up, ast.Expr) or (isinstance(up, ast.Assign) and len(up.targets) == 1 and same(up.targets[0], model))
    return _until_back(facts, tree, node, model, up) if alone and isinstance(up, ast.stmt) else None


def _until_back(facts: Facts, tree: Tree, node: ast.Call, model: ast.expr, statement: ast.stmt) -> MovedSave | None:
    """What is done with the model between the statement that moves it and the one of its block that moves it back."""
    block = tree.block(statement)
    states: list[ast.Call] = []
    objects: list[ast.expr] = []
    for later in block[block.index(statement) + 1 :]:
        for use in _uses(facts, later, model):
            up = tree.parent[use]
            above = tree.parent[up]
            called = isinstance(up, ast.Attribute) and isinstance(above, ast.Call) and above.func is up
            if called and up.attr in _BACK:  # type: ignore[attr-defined]
                return MovedSave(node, model, statement, tuple(states), tuple(objects)) if states or objects else None
            if called and up.attr == "state_dict":  # type: ignore[attr-defined]
                states.append(above)  # type: ignore[arg-type]
            elif _is_saved(facts, tree, use):
                objects.append(use)
            else:
                return None
    return None


def _uses(facts: Facts, statement: ast.stmt, model: ast.expr) -> Iterator[ast.expr]:
    """The reads, in a statement, of the object that an expression is, in source order."""
    run = facts.before
    objs = run.value(model).objs
    found = [n for n in walk(statement) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
    reads = [n for n in found if run.value(n).objs & objs]
    yield from sorted(reads, key=lambda n: (n.lineno, n.col_offset))


def _is_saved(facts: Facts, tree: Tree, node: ast.expr) -> bool:
    """Whether an expression is saved as it is: an argument of torch.save, by itself or inside a dict or list written there."""
    for up in tree.ancestors(node):
        if isinstance(up, ast.Call):
            return "torch.save" in facts.before.value(up.func).paths()
        if not isinstance(up, (ast.Dict, ast.List, ast.Tuple)):
            return False
    return False


def moves(facts: Facts, call: Call, model: TrainedModel) -> bool:
    """Whether a call moves a model, or a part of it, away from the tensors that a wrapper was built over, for more than a save."""
    run = facts.before
    if call.method not in ("cpu", "half", "float", "double", "bfloat16", "to_empty") or call.node in moved_saves(facts):
        return False
    return run.part_of(run.unwrap(call.receiver), model.objs)
