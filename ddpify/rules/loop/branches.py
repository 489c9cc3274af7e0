"""Whether ranks may take different branches of a condition: not where the branches run other collectives, steps or settings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.facts import disk, exceptions, library
from ddpify.facts.collect import TrainedModel
from ddpify.facts.model import Call, Loop, Part
from ddpify.facts.operands import ENDS
from ddpify.facts.tree import own_statements, walk
from ddpify.rules.context import Context
from ddpify.rules.loop import caught
from ddpify.rules.model import batch_norm

NAMES = ("lr", "momentum", "weight_decay", "betas", "initial_lr", "max_lr", "eps", "alpha", "nesterov", "dampening")
_TRAINS = frozenset(("backward", "step", "load_state_dict", "zero_grad", "train"))


def is_setting(context: Context, node: ast.Subscript) -> bool:
    """Whether an element is a setting of an optimizer: of one of its parameter groups, or by the name that settings have."""
    if isinstance(node.slice, ast.Constant) and node.slice.value in NAMES:
        return True
    groups = (o for o in context.facts.after.value(node.value).objs if isinstance(o, Part))
    return any(_in_groups(o) for o in groups) and not (isinstance(node.slice, ast.Constant) and node.slice.value == "params")


def _in_groups(part: Part) -> bool:
    return part.name == "param_groups" or (isinstance(part.of, Part) and _in_groups(part.of))


def has_own_test(context: Context, call: Call) -> bool:
    """Whether a call depends on a test that ranks may answer differently."""
    return any(context.differs(test) for _, test in call.tests)


def under_own_test(context: Context, node: ast.AST) -> bool:
    """Whether a test around a node, in its function, may be answered differently by ranks."""
    around = (up for up in context.facts.tree_of(node).ancestors(node) if isinstance(up, (ast.If, ast.While, ast.IfExp)))
    agreed = context.assumed.replicated_branches
    return any(up not in agreed and context.differs(context.facts.after.value(up.test)) for up in around)


def made_once(context: Context, call: Call) -> bool:
    """Whether a call depends on a mark that is set where it is made: `if not self.started: ...; self.started = True`."""
    for test, _ in call.tests:
        branch = context.facts.tree_of(test).parent[test]
        inside = [n for s in (*branch.body, *branch.orelse) for n in walk(s)] if isinstance(branch, ast.If) else []
        called = (f for n in inside if isinstance(n, ast.Call) for f in context.facts.after.value(n.func).functions())
        nodes = [*inside, *(n for function in called for n in walk(function))]
        if not set(_marks(walk(test))).isdisjoint(mark for n in nodes for mark in _set(n)):
            return True
    return False


def _marks(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The attributes of what has a name: `started` of `self.started.item()`."""
    return (n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))


def _set(node: ast.AST) -> Iterator[str]:
    """The attributes that are set to something written out: `self.started = True`, `self.started.fill_(1)`."""
    match node:
        case ast.Assign(targets=[ast.Attribute() as target], value=value) if _is_written_out(value):
            yield from _marks(walk(target))
        case ast.Call(func=ast.Attribute(attr="fill_" | "copy_", value=target), args=[value]) if isinstance(value, ast.Constant):
            yield from _marks(walk(target))


def _is_written_out(node: ast.expr) -> bool:
    """Whether an expression is a constant, or a tensor of one."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Call) and bool(node.args) and all(map(_is_written_out, node.args)))


def passes_alike(context: Context, loop: Loop) -> bool:
    """Whether all ranks go through a loop equally often: over their batches, the rows of one, or what is the same on all of them."""
    run, over = context.facts.after, loop.over
    if loop.node in context.facts.training_loops or run.feeds(over):
        return True
    ends = [run.attribute(o, ENDS) for o in over.instances() if o.path == "range"]
    held = [run.attribute(o, "[]") for o in over.instances() if o.path in ("set", "frozenset")]
    own = [v for v in (*ends, *([] if over.objs else [over])) if context.from_sharded_data(v) and v.scale not in ("sample", "count")]
    return not own and not any(context.from_sharded_data(v) for v in held)


def parts_ranks(context: Context, node: ast.If | ast.While) -> bool:
    """Whether a test that ranks answer differently leads them to other collectives, other steps or other settings."""
    if isinstance(node, ast.While):
        return any(n in context.once(_collectives) or _changes_training(context, n) for n in walk(node)) or _leaves(context, node)
    if any(_changes_training(context, n) or n in context.once(_that_train) for n in walk(node)):
        return True
    sites = [_sites(context, branch) for branch in (node.body, node.orelse)]
    if any(n in context.backwards for branch in sites for n in branch):
        return True
    if bool(sites[0]) != bool(sites[1]) or _leaves(context, node):
        return True
    return bool(sites[0]) and _models(context, node.body) != _models(context, node.orelse)  # one forward of each is one on every rank


def _collectives(context: Context) -> set[ast.AST]:
    """The calls and tests under which ranks wait for one another, those of batch norm over all ranks included."""
    return context.collective_call_sites | context.once(batch_norm.synced_forwards)


def _models(context: Context, body: Iterable[ast.stmt]) -> set[TrainedModel]:
    """The trained models that run in statements."""
    nodes = {n for s in body for n in walk(s)}
    calls = (c for c in context.facts.after.trace.calls if c.node in nodes or not nodes.isdisjoint(c.stack))
    return {model for c in calls if (model := context.facts.model_of(c.func)) is not None}


def _sites(context: Context, body: Iterable[ast.stmt]) -> list[ast.AST]:
    """The collective call sites in statements."""
    return [n for s in body for n in walk(s) if n in context.once(_collectives)]


def _leaves(context: Context, node: ast.If | ast.While) -> bool:
    """Whether a branch leaves a part of a trained forward, or a loop or a function with a collective call site."""
    tree = context.facts.tree_of(node)
    for statement in own_statements(node):
        if not isinstance(statement, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
            continue
        if statement in context.once(caught.leaving):
            return True
        function = tree.function(statement)
        around: ast.AST = function
        if isinstance(statement, (ast.Break, ast.Continue)):
            around = loop_around(context, statement)
        if function in context.forwards or any(n in context.once(_collectives) for n in walk(around)):
            return True
    return False


def loop_around(context: Context, statement: ast.stmt) -> ast.AST:
    """The loop that a `break` or a `continue` is about."""
    return next(up for up in context.facts.tree_of(statement).ancestors(statement) if isinstance(up, (ast.For, ast.AsyncFor, ast.While)))


def _changes_training(context: Context, node: ast.AST) -> bool:
    """Whether a node steps, ends the process, or writes to what trains or is loaded into a model again."""
    if isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return method in _TRAINS or bool(context.facts.after.value(node.func).paths() & library.NO_RETURN)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and is_setting(context, node):
        return True
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in context.rates:
        return True
    return isinstance(node, ast.Assign) and (_is_loaded(context, node) or _names_file(context, node))


def _that_train(context: Context) -> set[ast.AST]:
    """What writes to the parameters of models, and the calls of functions that do, or in which an optimizer steps or is set anew."""
    run, out = context.facts.after, set[ast.AST]()
    for write in context.weight_writes:
        out.update((write.node, *write.stack))
    for store in run.trace.stores:
        if isinstance(store.node, ast.Subscript) and is_setting(context, store.node):
            out.update(store.stack)
        elif getattr(store.node, "attr", "") == "requires_grad":
            out.update((store.node, *store.stack))
    for call in run.trace.calls:
        if call.method == "step" and any(o.path.startswith("torch.optim.") for o in call.receiver.instances()):
            out.update(call.stack)
    return out


def _names_file(context: Context, node: ast.Assign) -> bool:
    """Whether a statement keeps the number of an epoch, and a file that is named by such a number is read after the training."""
    numbers = {n for part in walk(node.value) if isinstance(part, ast.expr) for n in context.facts.after.value(part).of_kind("index")}
    return not numbers.isdisjoint(context.once(_naming_files))


def _naming_files(context: Context) -> set[ast.AST]:
    """The loops around the training whose numbers name files that are read after them."""
    run, training, out = context.facts.after, context.facts.training_loops, set[ast.AST]()
    for touch in disk.touched(run):
        if touch.kind == "read":
            out |= run.value(touch.path).of_kind("index") & training - {loop.node for loop in touch.call.loops}
    return out


def _is_loaded(context: Context, node: ast.Assign) -> bool:
    """Whether what a statement keeps is loaded into a model again."""
    value = context.facts.after.value(node.value)
    for call in context.facts.after.calls_named("load_state_dict"):
        for given in call.args:
            instances = {o for o in given.instances() if o.path not in library.COLLECTIONS}
            if value.instances() & instances or value.of_kind("state") & given.of_kind("state"):
                return True
    return False


def ends_with_error(context: Context, node: ast.If | ast.While) -> bool:
    """Whether a branch ends with an error: the launcher then ends the other ranks, too."""
    last = node.body[-1]
    if isinstance(last, ast.Raise):
        return last not in context.once(caught.leaving)
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return bool(context.facts.after.value(last.value.func).paths() & library.NO_RETURN) and not exceptions.exits(last.value)
    return False
