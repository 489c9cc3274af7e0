"""What a writer gives back and the script keeps for more output, such as the window of a plot: rank 0 alone needs it."""

from __future__ import annotations

import ast

from ddpify.facts.model import Module
from ddpify.records import replace
from ddpify.rules.io.output_statements import Guards


def kept(guards: Guards) -> Guards:
    """The guards that know what is kept for output alone, in whatever: all reads of it are output, or decide on it."""
    found = frozenset(s for tree in guards.context.tree.trees for s in tree.of(ast.Assign) if _keeps(guards, s))
    edited = guards.context.facts.is_edited
    while found:
        assumed = replace(guards, kept=found)
        left = frozenset(s for s in found if all(edited(n) and assumed.silent(n) for n in _reads(guards, s.targets[0])))
        if left == found:
            return assumed
        found = left
    return guards


def _keeps(guards: Guards, statement: ast.Assign) -> bool:
    """Whether a statement keeps what a method of a writer gives."""
    call, target = statement.value, statement.targets[0]
    if len(statement.targets) > 1 or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    if isinstance(target, ast.Subscript):
        boxes = guards.run.value(target.value)
        return len(boxes.objs) == len(boxes.instances()) > 0 and guards.of_writer(guards.run.value(call.func.value))
    return isinstance(target, (ast.Name, ast.Attribute)) and guards.of_writer(guards.run.value(call.func.value))


def _reads(guards: Guards, target: ast.expr) -> list[ast.AST]:
    """The places that read a name, the container of an entry, or an attribute of that name of anything."""
    trees = guards.context.facts.trees.values()
    attributes = [n for tree in trees for n in tree.of(ast.Attribute) if isinstance(n.ctx, ast.Load)]
    if isinstance(target, ast.Attribute):
        return [n for n in attributes if n.attr == target.attr]
    names = [n for tree in trees for n in tree.of(ast.Name) if isinstance(n.ctx, ast.Load)]
    if isinstance(target, ast.Name):  # or, of a module's, by the module: `shown.window`
        of_module = [n for n in attributes if n.attr == target.id and any(isinstance(o, Module) for o in guards.run.value(n.value).objs)]
        return [*(n for n in names if n.id == target.id and guards.run.scopes.same(n, target)), *of_module]
    boxes = guards.run.value(target.value).instances() if isinstance(target, ast.Subscript) else frozenset()
    return [n for n in (*attributes, *names) if guards.run.value(n).instances() & boxes]
