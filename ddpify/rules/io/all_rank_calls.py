"""Calls inside a statement of output that all ranks must make: they are assigned to a name before it."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterator

from ddpify.edits import Edit, FreshName, InsertBefore, Replace
from ddpify.facts.effects import Effects
from ddpify.facts.model import Lit
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.io.stored_losses import stored_numbers

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CHOOSING = (ast.IfExp, ast.BoolOp, ast.Compare)
_PLAIN = frozenset(dir(builtins)) - {"next", "input", "iter", "eval", "exec"}
_PLACEHOLDER = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\{[^{}]*\}")
_VERBS = re.compile(r"^(get|compute|calc|calculate|eval|evaluate|run|do|make)_(?=\w)")


@dataclass(frozen=True)
class Part:
    """An expression inside a statement that all ranks must evaluate; `stuck` where it cannot be extracted."""

    node: ast.expr
    stuck: bool = False


class Required:
    """Finds the parts of an expression that all ranks must evaluate."""

    def __init__(self, context: Context, effects: Effects) -> None:
        self.context = context
        self.run = context.facts.after
        self.effects = effects

    def any(self, node: ast.AST) -> bool:
        """Whether something inside must happen on every rank."""
        return any(True for _ in self.parts(node))

    def parts(self, node: ast.AST, top: ast.AST | None = None) -> Iterator[Part]:
        """The outermost expressions that all ranks must evaluate, in the order in which they are; the call `top` itself may be output."""
        if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            yield Part(node, True)
        elif (isinstance(node, ast.expr) and node in stored_numbers(self.context)[0]) or (
            isinstance(node, ast.Call) and node is not top and self._is_collective(node)
        ):
            yield Part(node)
        elif isinstance(node, ast.Lambda):
            yield from (Part(p.node, True) for p in self.parts(node.body))
        elif isinstance(node, _COMPREHENSIONS) and (
            any(self._draws(g.iter) for g in node.generators) or any(True for c in ast.iter_child_nodes(node) for _ in self.parts(c))
        ):
            yield Part(node)
        elif isinstance(node, _CHOOSING) and node is not top:
            inner = [p for c in ast.iter_child_nodes(node) for p in self.parts(c)]
            yield from [Part(node, any(p.stuck for p in inner))] if inner else []
        else:
            for child in ast.iter_child_nodes(node):
                yield from self.parts(child, top)

    def _draws(self, iterable: ast.expr) -> bool:
        return any(self.run.is_loader(o) for o in self.run.value(iterable).objs)

    def _is_collective(self, node: ast.Call) -> bool:
        """Whether a call must be made by all ranks."""
        if node in self.context.collective_call_sites:
            return True
        if not self.run.calls(node):  # never seen to run: nothing is known of it
            return not (isinstance(node.func, ast.Attribute) or (isinstance(node.func, ast.Name) and node.func.id in _PLAIN))
        return self.effects.has_side_effects(node)


def chain(context: Context, node: ast.expr, top: ast.AST) -> ast.expr:
    """What is made of a value by the attributes, methods and subscripts behind it, up to the statement's own call."""
    while True:
        parent = context.tree.parent[node]
        if isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
            above = context.tree.parent[parent]
            if isinstance(above, ast.Call) and above.func is parent and above is top:
                return node
            node = parent
        elif isinstance(parent, ast.Call) and parent.func is node and parent is not top:
            node = parent
        else:
            return node


def extracted(context: Context, required: Required, statement: ast.stmt, top: ast.expr) -> tuple[Edit, ...] | None:
    """The edits that evaluate, before an output statement, what all ranks must; None where that cannot be done."""
    parts = list(required.parts(top, top))
    if not parts or any(p.stuck for p in parts):
        return None
    stored = stored_numbers(context)[0]
    nodes = [p.node if p.node in stored else chain(context, p.node, top) for p in parts]
    nodes = [n for i, n in enumerate(nodes) if n not in nodes[:i] and not any(n is not o and n in ast.walk(o) for o in nodes)]
    early = _affected(context, required, top, nodes)
    if early is None:
        return None
    edits: list[Edit] = []
    for node in context.tree.in_order({*nodes, *early}):
        names = _names(context, node, top)
        if node in stored:
            names[-1:] = [f"mean_{n.id}" for n in ast.walk(node) if isinstance(n, ast.Name)][:1]
        name = FreshName(tuple(names), node, context.tree.function(statement))
        edits += [InsertBefore(statement, f"{name} = {stored.get(node, '{0}')}", (node,), (name,)), Replace(node, str(name))]
    return tuple(edits)


def _affected(context: Context, required: Required, top: ast.expr, nodes: list[ast.expr]) -> list[ast.expr] | None:
    """What stands before the last of `nodes` and reads what one of them changes: it must be read before; None where it cannot be."""
    effects, run = required.effects, context.facts.after
    calls = [c for n in nodes for c in ast.walk(n) if isinstance(c, ast.Call)]
    changed = {o for c in calls for o in effects.changed(c)}
    names = {n for c in calls for n in effects.changed_names(c)}
    if not changed and not names:
        return []
    found: list[ast.expr] = []
    for piece in _before(context, top, nodes):
        inside = [n for n in ast.walk(piece) if isinstance(n, ast.expr)]
        if not any(run.value(n).objs & changed or (isinstance(n, ast.Name) and n.id in names) for n in inside):
            continue
        if not isinstance(piece, ast.Name):
            found.append(piece)
        elif piece.id in names or isinstance(context.tree.parent[piece], ast.FormattedValue):
            return None
    return found


def _before(context: Context, node: ast.AST, nodes: list[ast.expr]) -> Iterator[ast.expr]:
    """The largest expressions without one of `nodes` in them that are evaluated before the last of these."""
    for child in ast.iter_child_nodes(node):
        if child in nodes:
            continue
        if isinstance(child, (ast.keyword, ast.FormattedValue)) or any(n in nodes for n in ast.walk(child)):
            yield from _before(context, child, nodes)
        elif not isinstance(child, ast.expr) or isinstance(child, ast.Constant) or getattr(node, "func", None) is child:
            continue
        elif any(context.tree.before(child, n) for n in nodes):
            yield child


# ------------------------------------------------------------------------------------------------ names


def _names(context: Context, node: ast.expr, top: ast.expr) -> list[str]:
    """Names for a value that is extracted from a line of output: its label there, or the function that computes it."""
    labels = [t for t in (_label(context, node, top),) if t]
    function = next((n for n in ast.walk(node) if isinstance(n, ast.Call) and not isinstance(n.func, ast.Call)), None)
    made = []
    if function is not None:
        name = function.func.attr if isinstance(function.func, ast.Attribute) else getattr(function.func, "id", "")
        made = [_VERBS.sub("", name)] if _VERBS.match(name) else []
    return [n for n in (*labels, *made) if _usable(n)] + ["result"]


def _usable(name: str) -> bool:
    return name.isidentifier() and 1 < len(name) <= 24 and not keyword.iskeyword(name) and name not in dir(builtins)


def _label(context: Context, node: ast.expr, top: ast.expr) -> str:
    """What a line of output calls one of its values."""
    tree = context.tree
    child: ast.AST = node
    for up in tree.ancestors(node):
        if isinstance(up, ast.keyword) and up.arg and up.arg not in ("file", "end", "sep"):
            return up.arg
        if isinstance(up, ast.Dict) and child in up.values:
            return _word(_text(context, up.keys[up.values.index(child)]))
        if isinstance(up, ast.JoinedStr):
            before = up.values[: next(i for i, v in enumerate(up.values) if v is child)]
            return _word(_text(context, before[-1])) if before else ""
        if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mod) and child is up.right:
            labels = _label_before(_text(context, up.left), node, up.right)
            if labels:
                return labels
        if isinstance(up, ast.Call) and child in up.args:
            at = up.args.index(child)
            if isinstance(up.func, ast.Attribute) and up.func.attr == "format":
                labels = _label_before(_text(context, up.func.value), child, ast.Tuple(up.args))
                if labels:
                    return labels
            text = _text(context, up.args[at - 1]) if at else ""
            if text or up is top:
                return _label_before(text, child, ast.Tuple(up.args[at:]))
        if up is top:
            break
        child = up
    return ""


def _text(context: Context, node: ast.expr | None) -> str:
    value = context.facts.after.value(node) if node is not None else None
    if isinstance(node, ast.Constant):
        return str(node.value)
    return next((str(o.value) for o in value.objs if isinstance(o, Lit)), "") if value is not None else ""


def _label_before(text: str, node: ast.AST, values: ast.expr) -> str:
    """The word before the place in a format that one of `values` fills."""
    pieces = _PLACEHOLDER.split(text)
    items = values.elts if isinstance(values, ast.Tuple) else [values]
    at = next((i for i, item in enumerate(items) if item is node or any(n is node for n in ast.walk(item))), 0)
    return _word(pieces[at]) if at < len(pieces) else ""


def _word(text: str) -> str:
    """The last words of a text, as a name."""
    words = re.findall(r"[A-Za-z]\w*", re.split(r"[|,;(\[]", text.strip())[-1])
    return "_".join(words[-2:]).lower()
