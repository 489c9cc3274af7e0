"""Where checkpoints hold an optimizer's state, and the scaler's beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import AddEntry, Edit, InsertAfter, SetArgument
from ddpify.facts.model import Call, New
from ddpify.records import dataclass
from ddpify.rules.context import Context


@dataclass(frozen=True, eq=False)
class Site:
    """A place where an optimizer's state is put into a dict, or loaded from one: `node` is the dict display, its call, or the statement."""

    node: ast.AST
    base: str = ""
    loads: bool = False

    def edits(self, scaler: str, key: str = "scaler") -> Iterator[Edit]:
        """What puts the scaler's state beside the optimizer's, or loads it if it is there."""
        if not scaler:
            return
        if self.loads:
            assert isinstance(self.node, ast.stmt)
            yield InsertAfter(self.node, f'if {self.base}.get("{key}"):\n    {scaler}.load_state_dict({self.base}["{key}"])')
        elif isinstance(self.node, ast.Dict):
            yield AddEntry(self.node, f'"{key}"', f"{scaler}.state_dict()")
        elif isinstance(self.node, ast.Call):
            yield SetArgument(self.node, key, f"{scaler}.state_dict()")
        elif isinstance(self.node, ast.stmt):
            yield InsertAfter(self.node, f'{self.base}["{key}"] = {scaler}.state_dict()')


def sites(context: Context, optimizers: set[New], key: str = "scaler") -> Iterator[Site]:
    """The places of the entry, each once: after the last optimizer of a dict that is filled or read key by key."""
    saves = _calls(context, "state_dict", optimizers)
    found: dict[object, Site] = {}
    for call in saves:
        parent = context.tree.parent[call.node]
        if isinstance(parent, ast.Dict) and all(k is not None for k in parent.keys) and not _has_key(parent, key):
            found[parent] = Site(parent)
        elif isinstance(parent, ast.keyword) and isinstance(up := context.tree.parent[parent], ast.Call) and _is_dict(up):
            found[up] = Site(up)
        elif isinstance(parent, ast.Assign) and isinstance(target := parent.targets[0], ast.Subscript):
            base = ast.unparse(target.value)
            if isinstance(target.slice, ast.Constant):
                found[context.tree.function(parent), base] = Site(parent, base)
    for call in _calls(context, "load_state_dict", optimizers):
        given, statement = call.node.args[0] if call.node.args else None, context.tree.statement(call.node)
        if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant) and isinstance(statement, ast.Expr):
            base = ast.unparse(given.value)
            found[context.tree.function(statement), base, "load"] = Site(statement, base, True)
    yield from found.values()


def _calls(context: Context, method: str, optimizers: set[New]) -> list[Call]:
    calls = [c for c in context.facts.after.trace.calls if c.method == method and c.receiver.objs & optimizers]
    return list({c.node: c for c in calls if context.facts.is_edited(c.node)}.values())


def _has_key(node: ast.Dict, key: str) -> bool:
    return any(isinstance(k, ast.Constant) and k.value == key for k in node.keys)


def _is_dict(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "dict"
