"""DataParallel wrappers that a setting asks for: what the original wrote then depends on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddpify.facts import library
from ddpify.facts.model import Func, Part, Value
from ddpify.facts.tree import is_main, structure, walk

if TYPE_CHECKING:
    from ddpify.facts.collect import Facts
    from ddpify.facts.runs import Run


def is_optional(facts: Facts, value: Value) -> bool:
    """Whether a model is in a DataParallel only where a setting, not the number of devices, asks for it."""
    run = facts.before
    instances = [o for o in value.instances() if o.path == library.DATAPARALLEL]
    parts = [p for o in instances for call in run.calls(o.node) for _, test in call.tests for p in (*test.objs, *test.of_kind("from"))]
    asked = questions(facts, value) | questions(facts, value, otherwise=True)
    always = len(instances) == len(value.objs)
    return not always and (any(isinstance(p, Part) for p in parts) or any(not of_devices(facts, up.test) for up in asked))


def questions(facts: Facts, value: Value, otherwise: bool = False) -> set[ast.If]:
    """The conditions under which a model is put into a DataParallel, or `otherwise` is, where it may also be without one."""
    instances = [o for o in value.instances() if o.path == library.DATAPARALLEL]
    return {up for o in instances for up in _around(facts, o.node, otherwise)} if len(instances) < len(value.objs) else set()


def comes_out(facts: Facts, node: ast.expr, value: Value) -> bool:
    """Whether a function takes a model out of its wrapper, under the name of which it reads an attribute, where it was put into one.

    Both are done under the same test: `if many: model = DataParallel(model)` and `if many: model = model.module`.
    """
    if not isinstance(node, ast.Attribute):
        return False
    name, tests = structure(node.value), {structure(up.test) for up in questions(facts, value)}
    function = facts.tree_of(node).function(node)
    taken = (s for n in walk(function) if isinstance(n, ast.If) and structure(n.test) in tests for s in n.body if isinstance(s, ast.Assign))
    inside = (s.value for s in taken if [structure(t) for t in s.targets] == [name])
    return any(isinstance(n, ast.Attribute) and n.attr == "module" and structure(n.value) == name for n in inside)


def _around(facts: Facts, node: ast.AST, otherwise: bool) -> Iterator[ast.If]:
    """The conditions of a function under which a statement of it is made: where they hold, or where they do not."""
    inner = node
    for up in facts.tree_of(node).ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(up, ast.If) and inner in (up.orelse if otherwise else up.body) and not is_main(up):
            yield up
        inner = up


def of_devices(facts: Facts, test: ast.expr) -> bool:
    """Whether a question is about the machine's devices, by itself, by a name bound to such a question or by what a function answers.

    One that is also about a setting is no such question.
    """
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(of_devices(facts, part) for part in test.values)
    run, parts = facts.before, list(walk(test))
    read = {structure(n) for n in parts if isinstance(n, (ast.Name, ast.Attribute))}
    for node in (n for tree in facts.trees.values() for n in tree.of(ast.Assign)):
        if any(structure(t) in read for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])):
            parts += walk(node.value)
    parts += [p for n in parts if isinstance(n, ast.Call) for o in run.value(n.func).objs if isinstance(o, Func) for p in walk(o.node)]
    return any(_is_of_device(run, n) for n in parts if isinstance(n, ast.expr))


def _is_of_device(run: Run, node: ast.expr) -> bool:
    """Whether an expression is a device, the name of one, or something of torch.cuda."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.startswith("cuda")
    value = run.value(node)
    return "torch.device" in value.kinds() or any(path.startswith("torch.cuda.") for path in value.paths())
