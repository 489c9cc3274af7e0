"""Models that are trained through one method of theirs other than forward."""

from __future__ import annotations

import ast

from ddpify.facts.collect import Facts, Start, TrainedMethod
from ddpify.facts.model import Call, Func, New, Obj, Part
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, same, walk

_RUNS = ("forward", "__call__", "__init__")


def trained_method(facts: Facts, start: Start) -> TrainedMethod | None:
    """The one method that a module's training goes through, where a wrapper made at `start` can be called in its place."""
    run, module = facts.before, start.module
    if not isinstance(module, New) or module.cls is None:
        return None
    sites: dict[ast.Call, str] = {}
    for loop in facts.loops:
        if any(module in run.roots(p) for p in loop.loss.of_kind("weight")):
            return None  # a parameter of its own that is used by itself
        for obj, node in loop.loss.of_kind("forward"):
            if module not in run.roots(obj):
                continue
            for call in run.calls(node):
                site = None if call.no_grad else _site(run, call, module)
                if not call.no_grad and site is None:
                    return None
                if site is not None:
                    sites[site] = site.func.attr  # type: ignore[attr-defined]
    steps = any(node in sites for loop in facts.loops for node in loop.backward.stack)  # the method trains, and gives no loss
    if steps or len(set(sites.values())) != 1 or not all(_reaches(facts, start, s) for s in sites):
        return None
    return TrainedMethod(start, next(iter(sites.values())), tuple(sites), _leaves_out(facts, module, sites))


def _site(run: Run, call: Call, module: New) -> ast.Call | None:
    """The call of a method of the module, from outside, under which a call is made."""
    for node in (*call.stack, call.node):
        for event in run.calls(node):
            owners = {o.owner for o in event.func.objs if isinstance(o, Func)}
            if owners == {module} and isinstance(event.node.func, ast.Attribute):
                return event.node if event.method not in _RUNS else None
            if module in run.unwrap(event.func):
                return None
    return None


def _together(facts: Facts, *nodes: ast.AST) -> bool:
    """Whether places are of one file that is edited."""
    return all(facts.is_edited(n) for n in nodes) and len({facts.tree_of(n).name for n in nodes}) == 1


def _reaches(facts: Facts, start: Start, site: ast.Call) -> bool:
    """Whether the name of the wrapper, which stands beside the module's own, is seen where the method is called."""
    run, func, target = facts.before, site.func, start.target
    if not isinstance(func, ast.Attribute) or target is None or not same(func.value, target) or not _together(facts, site, start.after):
        return False
    if any(c.no_grad or run.unwrap(c.receiver) != {start.module} for c in run.calls(site)):
        return False
    if isinstance(func.value, ast.Name):
        return _is_seen(facts.entry, func.value.id, site, start.after)
    inside = any(run.interpreter.is_module(o) for s in run.trace.stores if same(s.node, target) for o in s.receiver.objs)
    return not inside and _is_own_attribute(facts.entry, func.value, site, start.after)


def _is_seen(tree: Tree, name: str, site: ast.AST, there: ast.AST) -> bool:
    """Whether a name that is bound `there` means the same at a place: in one function, or as a global one."""
    here, around = tree.function(site), tree.function(there)
    nodes = list(walk(here))
    local = any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name for n in nodes)
    local |= any(isinstance(n, ast.arg) and n.arg == name for n in nodes)
    return here is around or (isinstance(around, ast.Module) and not local)


def _is_own_attribute(tree: Tree, target: ast.expr, site: ast.AST, there: ast.AST) -> bool:
    """Whether a target is `self.name`, and both places stand in one class."""
    owners = [up for node in (site, there) for up in tree.ancestors(node) if isinstance(up, ast.ClassDef)]
    held = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return held and len(owners) == 2 and owners[0] is owners[1]


def _leaves_out(facts: Facts, module: New, sites: dict[ast.Call, str]) -> bool:
    """Whether some part of the module is not read by what its method runs."""
    run = facts.before
    parts = {name for name, held in run.of(module).items() if any(_trains(run, o) for o in held.objs)}
    read: set[str] = set()
    for call in run.trace.calls:
        if any(n in sites for n in (*call.stack, call.node)):
            bodies = [o.node for o in call.func.objs if isinstance(o, Func)]
            bodies += [f.node for o in call.func.objs if o is module for f in run.methods(module, "forward")]
            read |= {n.attr for b in bodies for n in walk(b) if isinstance(n, ast.Attribute)}
    return not parts <= read


def _trains(run: Run, obj: Obj) -> bool:
    """Whether an object may hold parameters."""
    return isinstance(obj, Part) or (isinstance(obj, New) and (run.interpreter.is_module(obj) or obj.path.startswith("torch.nn.")))
