"""Which optimizers a backward call makes gradients for, and by which names a place knows them."""

from __future__ import annotations

import ast

from ddpify.edits import AddParameter, Edit, SetArgument
from ddpify.facts.model import Call, New, Part
from ddpify.facts.runs import place_of
from ddpify.facts.stepped import owners, steps_next
from ddpify.facts.tree import names_stored, own_nodes, walk
from ddpify.rules.context import Context
from ddpify.rules.precision import existing, scaler_scope
from ddpify.rules.precision.existing import Backward


def optimizers(context: Context, backward: Backward, steps: list[Call]) -> frozenset[New]:
    """The optimizers that step along the gradients of a backward call: not those whose gradients are thrown away before they step."""
    facts, run = context.facts, context.facts.after
    reached = {obj for obj, _ in backward.loss.of_kind("forward")} | set(backward.loss.of_kind("weight"))
    holding = set[New]()
    for optimizer in facts.optimizers:
        for owner in owners(facts, optimizer):
            around = set(run.roots(owner)) if isinstance(owner, (New, Part)) else {owner}
            if around & reached or any(owner in run.roots(r) for r in reached if isinstance(r, (New, Part))):
                holding.add(optimizer)
    stepping = {o for o in holding if steps_next(facts, run, backward.call, o, steps)}
    return frozenset(stepping or holding or facts.optimizers)


def of_backwards(context: Context) -> dict[ast.Call, frozenset[New]]:
    """The backward calls of the training, each with the optimizers that step along its gradients."""
    steps = existing.steps(context)
    out: dict[ast.Call, frozenset[New]] = {}
    for backward in existing.backwards(context):
        node = backward.call.node
        out[node] = out.get(node, frozenset()) | optimizers(context, backward, steps)
    return out


class Names:
    """The names of optimizers at the places that use them; where one has no name, it is passed there as an argument."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.edits: list[Edit] = []
        self.parameters: dict[tuple[ast.AST, New], str] = {}

    def at(self, node: ast.AST, wanted: frozenset[New]) -> str:
        """An expression for one optimizer, or a list of several; empty where there is none."""
        whole = self._seen(node, wanted) if len(wanted) > 1 else ""
        if whole:
            return whole
        parts = [self._one(node, o) for o in sorted(wanted, key=place_of)]
        if not parts or not all(parts):
            return ""
        distinct = list(dict.fromkeys(parts))
        return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"

    def _one(self, node: ast.AST, optimizer: New, depth: int = 0) -> str:
        """The name of one optimizer at a place: one that is there, or a parameter that is added; empty where there is none."""
        known = self._seen(node, frozenset((optimizer,))) or self._own_attribute(node, optimizer) or self._module_name(node, optimizer)
        return known or self._parameter(node, optimizer, depth)

    def _seen(self, node: ast.AST, wanted: frozenset[New]) -> str:
        """What the function around a node calls an optimizer, or all of several: alone or in a list."""
        run = self.context.facts.after
        tree = self.context.facts.tree_of(node)
        inside = ""
        for n in own_nodes(tree.function(node)):
            if not isinstance(n, (ast.Name, ast.Attribute, ast.arg)) or (_is_stored(n) and not tree.before(n, tree.statement(node))):
                continue
            value = run.value(n)
            lists = [o for o in value.instances() if o.path == "list"]
            optimizers = run.attribute(lists[0], "[]").objs if len(lists) == 1 == len(value.objs) else value.objs
            if optimizers == wanted and bool(lists) == (len(wanted) > 1):
                return _text(n)
            within = [
                name
                for (owner, name), v in run.memory.items()
                if len(wanted) == 1
                and value.objs == {owner}
                and v.objs == wanted
                and name.isidentifier()
                and isinstance(owner, New)
                and owner.cls is not None
            ]
            inside = inside or (f"{_text(n)}.{within[0]}" if within else "")
        return inside

    def _own_attribute(self, node: ast.AST, optimizer: New) -> str:
        """The attribute of the method's own object that holds an optimizer."""
        tree, run = self.context.facts.tree_of(node), self.context.facts.after
        function = tree.function(node)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not function.args.args:
            return ""
        own, is_method = function.args.args[0], isinstance(tree.parent[function], ast.ClassDef)
        attributes = (pair for owner in run.value(own).instances() if is_method for pair in run.of(owner).items())
        return next((f"{own.arg}.{name}" for name, value in attributes if value.objs == {optimizer} and name.isidentifier()), "")

    def _module_name(self, node: ast.AST, optimizer: New) -> str:
        """The module's name for an optimizer, where a function sees it."""
        tree, run = self.context.facts.tree_of(node), self.context.facts.after
        function = tree.function(node)
        if isinstance(function, ast.Module):
            return ""
        bound = [n for statement in tree.root.body if isinstance(statement, ast.Assign) for n in names_stored(statement)]
        hidden = {n.id for n in names_stored(function)} | {n.arg for n in walk(function) if isinstance(n, ast.arg)}
        return next((n.id for n in bound if run.value(n).objs == {optimizer} and n.id not in hidden), "")

    def _parameter(self, node: ast.AST, optimizer: New, depth: int) -> str:
        """A parameter of the function around a node that is given the optimizer, by the calls of the function; empty where it cannot be."""
        function = self.context.facts.tree_of(node).function(node)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or depth > 4:
            return ""
        if (function, optimizer) not in self.parameters and (name := self._add_parameter(function, optimizer, depth)):
            self.parameters[function, optimizer] = name
        return self.parameters.get((function, optimizer), "")

    def _add_parameter(self, function: scaler_scope.Function, optimizer: New, depth: int) -> str:
        """Pass the optimizer to a function by all of its calls: the new parameter's name; empty where that cannot be."""
        context = self.context
        if not context.facts.is_edited(function) or not scaler_scope.is_only_called(context, function):
            return ""
        calls = scaler_scope.calls(context, function)
        texts = [self._one(call, optimizer, depth + 1) if context.facts.is_edited(call) else "" for call in calls]
        names = {n.id for n in walk(function) if isinstance(n, ast.Name)} | {n.arg for n in walk(function) if isinstance(n, ast.arg)}
        usual = [text for text in texts if text.isidentifier()]
        name = next((n for n in (*usual, "optimizer", "amp_optimizer") if n not in names), "")
        if not name or not texts or not all(texts):
            return ""
        self.edits += [SetArgument(call, name, text) for call, text in zip(calls, texts, strict=True)]
        self.edits.append(AddParameter(function, name))
        return name


def _text(node: ast.Name | ast.Attribute | ast.arg) -> str:
    return node.arg if isinstance(node, ast.arg) else ast.unparse(node)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)
