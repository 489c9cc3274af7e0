"""Where the process group is joined: behind the script's choice of its devices, if that comes before all that needs the group."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpify.checks.binding import Binding
from ddpify.checks.order import JOINED, Order
from ddpify.facts.model import Call, Stack
from ddpify.facts.tree import is_main, walk
from ddpify.project import Project
from ddpify.rules.base import Change
from ddpify.rules.context import Context
from ddpify.rules.process import cuda_visible_devices, runtime_module, seed
from ddpify.runtime import HELPERS

_GROUP = ("import torch.distributed", "from torch.utils.data.distributed", "from torch.nn.parallel", "from apex.parallel")


def behind_choice_of_devices(context: Context, changes: Sequence[Change]) -> ast.stmt | None:
    """The statement that chooses the visible devices, where the group is joined behind it; None where it is joined at its usual place.

    Without a launcher a process that has joined the group has looked for its devices, and no choice counts from then on.
    """
    run, tree = context.facts.after, context.tree
    nodes = [n for n in cuda_visible_devices.assignments(context) if context.facts.in_main(n) and n in run.trace.visited]
    if len(nodes) != 1 or context.options.starts == "spawn":
        return None
    *_, outermost = around = tree.path(nodes[0])
    function = tree.function(nodes[0])
    if is_main(outermost):
        outermost = around[-2]
    elif isinstance(function, ast.Module):
        return None
    if len(_stacks(context, function)) > 1:
        return None
    root = tree.trees[0].root
    order = Order(run, {"__main__": Binding(root, {outermost: frozenset((JOINED,))})})
    return outermost if all(order.joined(node, stack) for node, stack in _uses(context, changes)) else None


def device_behind(context: Context, changes: Sequence[Change]) -> ast.stmt | None:
    """The statement of the module that chooses the visible devices, where the group is joined, and this rank's device used, behind it only.

    What asks whether there is a GPU has looked for the devices as well.
    """
    run, tree = context.facts.after, context.tree
    nodes = [n for n in cuda_visible_devices.assignments(context) if context.facts.in_main(n) and n in run.trace.visited]
    if len(nodes) != 1 or tree.parent[nodes[0]] is not tree.root or context.options.starts == "spawn":
        return None
    order = Order(run, {"__main__": Binding(tree.trees[0].root, {nodes[0]: frozenset((JOINED,))})})
    used = [*_uses(context, changes), *_edited(context, [c for c in changes if "device" in c.needs])]
    return nodes[0] if all(order.joined(node, stack) for node, stack in used) else None


def chooses_later(context: Context, first: ast.stmt) -> bool:
    """Whether the entry chooses the visible devices after the group is joined before the statement `first`, of the module or main block."""
    if context.options.starts == "spawn":
        return False
    tree, run = context.tree, context.facts.after
    nodes = [n for n in cuda_visible_devices.assignments(context) if context.facts.in_main(n) and n in run.trace.visited]
    if not nodes:
        return False
    marks: dict[ast.AST, frozenset[str]] = {first: frozenset((JOINED,))}
    order = Order(run, {"__main__": Binding(tree.trees[0].root, marks)})
    for node in nodes:
        for stack in _stacks(context, tree.function(node)):
            if order.joined(node, stack) or any(first in (n, *tree.ancestors(n)) for n in (node, *stack)):
                return True
    return False


def needed_at_import(context: Context, changes: Sequence[Change]) -> bool:
    """Whether the entry comes to what needs the group outside its main block; what a decorator runs is called later."""
    main, tree = context.main_block, context.tree
    first = (stack[0] if stack else node for node, stack in _asking(context, changes))
    standing = [n for n in first if not isinstance(n, ast.Module) and context.facts.in_main(n)]
    return any(main not in (n, *tree.ancestors(n)) and isinstance(tree.function(n), ast.Module) for n in standing)


def early_import(context: Context, changes: Sequence[Change]) -> ast.stmt | None:
    """The first import of the entry that leads to a module which asks for the group as it is imported; None where there is none."""
    if context.options.starts == "spawn":
        return None
    run, tree = context.facts.after, context.tree
    first = (stack[0] if stack and isinstance(stack[0], ast.Module) else tree.function(node) for node, stack in _asking(context, changes))
    asking = {n for n in first if isinstance(n, ast.Module) and n is not tree.root}
    names = {name for name, file in run.interpreter.project.files.items() if file.tree in asking}
    for statement in tree.root.body if names else ():
        found = [n for n in walk(statement) if isinstance(n, (ast.Import, ast.ImportFrom))]
        modules = [run.interpreter.imports(n, "__main__") for n in found if isinstance(tree.function(n), ast.Module)]
        if any(not names.isdisjoint(_led_to(run.interpreter.project, some)) for some in modules):
            return statement
    return None


def _led_to(project: Project, modules: set[str]) -> set[str]:
    """Some modules of the project, and those that they import."""
    todo, seen = list(modules), set[str]()
    while todo:
        name = todo.pop()
        file = None if name in seen else project.module(name)
        seen.add(name)
        todo += project.imports(file) if file is not None else []
    return seen


def _uses(context: Context, changes: Sequence[Change]) -> Iterator[tuple[ast.AST, Stack]]:
    """What needs the group, or the device that is chosen with it: nodes, with the calls that they run under."""
    run = context.facts.after
    yield from ((c.node, c.stack) for c in run.trace.calls if c.method == "cuda" or "torch.cuda.set_device" in c.func.paths())
    yield from _asking(context, changes)


def _asking(context: Context, changes: Sequence[Change]) -> Iterator[tuple[ast.AST, Stack]]:
    """What changes make ask for the group: statements, and draws of rank 0's seed, with the calls that they run under."""
    dist = f"{context.names['dist']}."
    yield from ((call.node, call.stack) for call in draws_of_shared_seed(context, changes))
    for change in changes:
        helped = any(n in HELPERS and HELPERS[n].group for n in change.needs) or any(line.startswith(_GROUP) for line in change.imports)
        if helped or any(dist in text for text in runtime_module.texts_of(change.edits)):
            yield from _edited(context, [change])


def draws_of_shared_seed(context: Context, changes: Sequence[Change]) -> list[Call]:
    """What is drawn before training from generators that changes let all ranks start alike."""
    agreed = any("agree_on_seed" in change.needs for change in changes)
    return [call for call, _ in context.once(seed.unseeded)] if agreed else []


def _edited(context: Context, changes: Sequence[Change]) -> Iterator[tuple[ast.AST, Stack]]:
    """The statements that changes edit, with the calls that they run under."""
    for node in (edit.node for change in changes for edit in change.edits):
        yield from ((context.tree.statement(node), stack) for stack in _stacks(context, context.tree.function(node)))


def _stacks(context: Context, function: ast.AST) -> set[Stack]:
    """The calls under which a function runs; none for the module itself."""
    return {()} if isinstance(function, ast.Module) else context.once(_all_stacks).get(function, set())


def _all_stacks(context: Context) -> dict[ast.AST, set[Stack]]:
    """The calls under which each function runs."""
    out: dict[ast.AST, set[Stack]] = {}
    for call in context.facts.after.trace.calls:
        if call.node in context.tree.parent:
            out.setdefault(context.tree.function(call.node), set()).add(call.stack)
        for function in call.func.functions():
            out.setdefault(function, set()).add((*call.stack, call.node))
    return out
