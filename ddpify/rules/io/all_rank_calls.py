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
from ddpify.facts.tree import arguments, calls_in, children, last_name, walk
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.io.stored_losses import stored_numbers
from ddpify.rules.process.drawn_weights import made_together

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
        return bool(self.parts(node))

    def any_of_loop(self, loop: ast.For) -> bool:
        """Whether a loop draws from a loader, or something in what it iterates over must happen on every rank."""
        return self._draws(loop.iter) or self.any(loop.iter)

    def parts(self, node: ast.AST, top: ast.AST | None = None) -> list[Part]:
        """The outermost expressions that all ranks must evaluate, in the order in which they are; the call `top` itself may be output."""
        if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return [Part(node, True)]
        if isinstance(node, ast.expr) and self._is_required(node, top):
            return [Part(node)]
        evaluated = [node.body] if isinstance(node, ast.Lambda) else children(node)
        inner = [part for child in evaluated for part in self.parts(child, top)]
        if isinstance(node, ast.Lambda):
            return [Part(part.node, True) for part in inner]
        if isinstance(node, _COMPREHENSIONS) and (inner or any(self._draws(g.iter) for g in node.generators)):
            return [Part(node)]
        if isinstance(node, _CHOOSING) and node is not top and inner:
            return [Part(node, any(part.stuck for part in inner))]
        return inner

    def _is_required(self, node: ast.expr, top: ast.AST | None) -> bool:
        """Whether all ranks must evaluate an expression for what it is itself."""
        if node in self.context.assumed.redistributed or self._reads_for_all(node):
            return True
        return node in stored_numbers(self.context)[0] or (isinstance(node, ast.Call) and node is not top and self._is_collective(node))

    def _reads_for_all(self, node: ast.expr) -> bool:
        """Whether batches are read here, or may be where this is handed to, of a loader that rank 0 reads for all ranks."""
        if not self.context.holds_whole_loader(node):
            return False
        up = self.context.facts.tree_of(node).parent.get(node)
        if isinstance(up, ast.Call):
            return node in arguments(up) and "len" not in self.run.value(up.func).paths()
        return isinstance(up, (ast.For, ast.AsyncFor, ast.comprehension)) and up.iter is node

    def _draws(self, iterable: ast.expr) -> bool:
        return self.run.feeds(self.run.value(iterable))

    def _is_collective(self, node: ast.Call) -> bool:
        """Whether a call must be made by all ranks."""
        if node in self.context.collective_call_sites or node in self.context.once(made_together):
            return True
        lazy = [a for a in arguments(node) if isinstance(a, ast.GeneratorExp)]
        if any(self.parts(a) for a in lazy):  # the call runs it
            return True
        if not self.run.calls(node):  # never seen to run: nothing is known of it
            return not (isinstance(node.func, ast.Attribute) or (isinstance(node.func, ast.Name) and node.func.id in _PLAIN))
        writes = self.effects.at.get(node) in ("print", "file")  # as the statement around it does
        return not writes and self.effects.has_side_effects(node)


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
    parts = required.parts(top, top)
    if not parts or any(p.stuck for p in parts):
        return None
    stored = stored_numbers(context)[0]
    nodes = [p.node if p.node in stored else chain(context, p.node, top) for p in parts]
    nodes = [n for i, n in enumerate(nodes) if n not in nodes[:i] and not any(n is not o and n in walk(o) for o in nodes)]
    early = _affected(context, required, top, nodes)
    if early is None:
        return None
    edits: list[Edit] = []
    for node in context.tree.in_order({*nodes, *early}):
        names = _names(context, node, top)
        if node in stored:
            names[-1:] = [f"mean_{n.id}" for n in walk(node) if isinstance(n, ast.Name)][:1]
        name = FreshName(tuple(names), node, context.tree.function(statement))
        edits += [InsertBefore(statement, f"{name} = {stored.get(node, '{0}')}", (node,), (name,)), Replace(node, str(name))]
    return tuple(edits)


def _affected(context: Context, required: Required, top: ast.expr, nodes: list[ast.expr]) -> list[ast.expr] | None:
    """What stands before the last of `nodes` and reads what one of them changes: it must be read before; None where it cannot be."""
    effects, run = required.effects, context.facts.after
    calls = [c for n in nodes for c in calls_in(n)]
    changed = {o for c in calls for o in effects.changed(c)}
    names = {n for c in calls for n in effects.changed_names(c)}
    if not changed and not names:
        return []
    found: list[ast.expr] = []
    for piece in _before(context, top, nodes):
        inside = [n for n in walk(piece) if isinstance(n, ast.expr)]
        if not any(run.value(n).objs & changed or (isinstance(n, ast.Name) and n.id in names) for n in inside):
            continue
        if not isinstance(piece, ast.Name):
            found.append(piece)
        elif piece.id in names or isinstance(context.tree.parent[piece], ast.FormattedValue):
            return None
    return found


def _before(context: Context, node: ast.AST, nodes: list[ast.expr]) -> Iterator[ast.expr]:
    """The largest expressions without one of `nodes` in them that are evaluated before the last of these."""
    for child in children(node):
        if child in nodes:
            continue
        if isinstance(child, (ast.keyword, ast.FormattedValue)) or any(n in nodes for n in walk(child)):
            yield from _before(context, child, nodes)
        elif not isinstance(child, ast.expr) or isinstance(child, ast.Constant) or getattr(node, "func", None) is child:
            continue
        elif any(context.tree.before(child, n) for n in nodes):
            yield child


# ------------------------------------------------------------------------------------------------ names


def _names(context: Context, node: ast.expr, top: ast.expr) -> list[str]:
    """Names for a value that is extracted from a line of output: its label there, or the function that computes it."""
    function = next((call for call in calls_in(node) if not isinstance(call.func, ast.Call)), None)
    name = last_name(function.func) if function is not None else ""
    computed = _VERBS.sub("", name) if _VERBS.match(name) else ""
    return [n for n in (_label(context, node, top).strip("_"), computed) if _usable(n)] + ["result"]


def _usable(name: str) -> bool:
    return name.isidentifier() and 1 < len(name) <= 24 and not keyword.iskeyword(name) and name not in dir(builtins)


def _label(context: Context, node: ast.expr, top: ast.expr) -> str:
    """What a line of output calls one of its values; empty where it does not name it."""
    child: ast.AST = node
    for up in context.tree.ancestors(node):
        label = _label_in(context, up, child, node)
        if label is not None or up is top:
            return label or ""
        child = up
    return ""


def _label_in(context: Context, up: ast.AST, child: ast.AST, node: ast.expr) -> str | None:
    """What an expression calls `node`, which stands in its part `child`; None where the expressions around it may say it."""
    match up:
        case ast.keyword(arg=str(name)) if name not in ("file", "end", "sep"):
            return name
        case ast.Dict() if child in up.values:
            return _word(_text(context, up.keys[up.values.index(child)]))
        case ast.JoinedStr():
            at = next(i for i, part in enumerate(up.values) if part is child)
            return _word(_text(context, up.values[at - 1])) if at else ""
        case ast.BinOp(op=ast.Mod()) if child is up.right:
            return _label_before(_text(context, up.left), node, up.right) or None
        case ast.Call() if child in up.args:
            return _label_of_argument(context, up, child)
    return None


def _label_of_argument(context: Context, call: ast.Call, given: ast.expr) -> str | None:
    """What a call names an argument: in the text that is formatted, or in the text passed before it; None where there is neither."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "format":
        label = _label_before(_text(context, call.func.value), given, ast.Tuple(call.args))
        if label:
            return label
    at = call.args.index(given)
    text = _text(context, call.args[at - 1]) if at else ""
    return _label_before(text, given, ast.Tuple(call.args[at:])) if text else None


def _text(context: Context, node: ast.expr | None) -> str:
    """The text that an expression is; empty where it is not known."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return next((str(o.value) for o in context.facts.after.value(node).objs if isinstance(o, Lit)), "")


def _label_before(text: str, node: ast.AST, values: ast.expr) -> str:
    """The word before the place in a format that one of `values` fills."""
    pieces = _PLACEHOLDER.split(text)
    items = values.elts if isinstance(values, ast.Tuple) else [values]
    at = next((i for i, item in enumerate(items) if item is node or any(n is node for n in walk(item))), 0)
    return _word(pieces[at]) if at < len(pieces) else ""


def _word(text: str) -> str:
    """The last words of a text, as a name."""
    words = re.findall(r"[A-Za-z]\w*", re.split(r"[|,;(\[]", text.strip())[-1])
    return "_".join(words[-2:]).lower()
