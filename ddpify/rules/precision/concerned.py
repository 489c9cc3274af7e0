"""Which optimizers a backward call makes gradients for, and by which names a place knows them."""

from __future__ import annotations

import ast

from ddpify.edits import Edit
from ddpify.facts import averaged
from ddpify.facts.collect import own_nodes
from ddpify.facts.model import Call, New, Part
from ddpify.rules.context import Context
from ddpify.rules.precision.home import Home, handed
from ddpify.rules.precision.present import Backward


def optimizers(context: Context, backward: Backward, steps: list[Call]) -> frozenset[New]:
    """The optimizers that step along the gradients of a backward call: not those whose gradients are thrown away before they step."""
    facts, run = context.facts, context.facts.after
    reached = {obj for obj, _ in backward.loss.of_kind("forward")} | set(backward.loss.of_kind("weight"))
    holding = set[New]()
    for optimizer in facts.optimizers:
        for owner in averaged.owners(facts, optimizer):
            around = set(run.roots(owner)) if isinstance(owner, (New, Part)) else {owner}
            if around & reached or any(owner in run.roots(r) for r in reached if isinstance(r, (New, Part))):
                holding.add(optimizer)
    stepping = {o for o in holding if _steps_next(context, backward.call, o, steps)}
    return frozenset(stepping or holding or facts.optimizers)


def _steps_next(context: Context, backward: Call, optimizer: New, steps: list[Call]) -> bool:
    """Whether an optimizer steps before its gradients are set to zero."""
    own = [s for s in steps if any(optimizer in v.objs for v in (s.receiver, *s.args))]
    resets = [c for c in context.facts.after.trace.calls if c.method == "zero_grad" and _resets(context, c, optimizer)]
    events = sorted([(s.order, True) for s in own] + [(c.order, False) for c in resets if not _only_sometimes(c, backward, own)])
    later = [step for order, step in events if order > backward.order]
    return (later or [step for _, step in events] or [True])[0]


def _only_sometimes(reset: Call, backward: Call, steps: list[Call]) -> bool:
    """Whether gradients are set to zero under a condition that neither the backward call nor a step is under."""
    known = {id(t) for c in (backward, *steps) for t, _ in c.tests}
    return any(id(t) not in known for t, _ in reset.tests)


def _resets(context: Context, call: Call, optimizer: New) -> bool:
    run = context.facts.after
    if optimizer in call.receiver.objs:
        return True
    models = run.unwrap(call.receiver)
    owned = averaged.owners(context.facts, optimizer)
    return bool(owned) and all(isinstance(p, (New, Part)) and any(r in models for r in run.roots(p)) for p in owned)


class Names:
    """The optimizers by their names at the places that speak of them; where one has none, it is handed on to there."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.homes: dict[str, Home] = {}

    @property
    def edits(self) -> list[Edit]:
        """The edits that hand optimizers on."""
        return [e for home in self.homes.values() for e in home.edits]

    def at(self, node: ast.AST, wanted: frozenset[New]) -> str:
        """An expression for one optimizer, or a list of several; empty where there is none."""
        whole = self._seen(node, wanted) if len(wanted) > 1 else ""
        if whole:
            return whole
        parts = [self._one(node, o) for o in sorted(wanted, key=lambda o: getattr(o.node, "lineno", 0))]
        if not parts or not all(parts):
            return ""
        distinct = list(dict.fromkeys(parts))
        return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"

    def _one(self, node: ast.AST, optimizer: New) -> str:
        return self._seen(node, frozenset((optimizer,))) or self._own(node, optimizer) or self._handed(node, optimizer)

    def _seen(self, node: ast.AST, wanted: frozenset[New]) -> str:
        """What the function around a node calls an optimizer, or all of several: alone or in a list."""
        run = self.context.facts.after
        function, line = self.context.facts.tree_of(node).function(node), getattr(node, "lineno", 0)
        for n in own_nodes(function):
            if not isinstance(n, (ast.Name, ast.Attribute, ast.arg)) or (_is_stored(n) and getattr(n, "lineno", 0) >= line):
                continue
            value = run.value(n)
            lists = [o for o in value.made() if o.path == "list"]
            held = run.held(lists[0], "[]").objs if len(lists) == 1 == len(value.objs) else value.objs
            if held == wanted and bool(lists) == (len(wanted) > 1):
                return n.arg if isinstance(n, ast.arg) else ast.unparse(n)
        return ""

    def _own(self, node: ast.AST, optimizer: New) -> str:
        """The attribute of the method's own object that holds an optimizer, or the module's name for it."""
        tree, run = self.context.facts.tree_of(node), self.context.facts.after
        function = tree.function(node)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.args.args:
            first = function.args.args[0]
            if isinstance(tree.parent[function], ast.ClassDef):
                for owner in run.value(first).made():
                    for (holder, name), value in run.memory.items():
                        if holder is owner and value.objs == {optimizer} and name.isidentifier():
                            return f"{first.arg}.{name}"
        bound = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}
        for statement in tree.root.body if not isinstance(function, ast.Module) else ():
            for n in ast.walk(statement) if isinstance(statement, ast.Assign) else ():
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and run.value(n).objs == {optimizer} and n.id not in bound:
                    return n.id
        return ""

    def _handed(self, node: ast.AST, optimizer: New) -> str:
        """The optimizer's first name, handed on through the calls that lead to a node."""
        site = self.context.amp
        for target in getattr(site, "optimizers", ()):
            if (
                optimizer in target.objs
                and isinstance(target.node, ast.Name)
                and len(target.objs) == 1
                and node in self.context.tree.parent
            ):
                name = target.node.id
                function = self.context.tree.function(site.after)  # type: ignore[union-attr]
                home = self.homes.setdefault(name, Home(name, [], {function}))
                known = home.at(self.context, node)
                if known or handed(self.context, home, node):
                    return name
        return ""


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)
