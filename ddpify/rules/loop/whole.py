"""Losses that couple the samples of a batch: the calls that are given all ranks' rows, so that each rank computes the loss of them all."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ddpify.edits import Edit, Replace
from ddpify.facts import collect
from ddpify.facts.collect import Run, loss_of
from ddpify.facts.model import Call, New, Part, Value, join
from ddpify.rules.context import Context
from ddpify.rules.loop.numbers import expressions

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OPEN = ("other", "weighted")


@dataclass(frozen=True)
class Whole:
    """The calls that compute a loss from rows, and the arguments that hold rows."""

    calls: tuple[ast.Call, ...]
    rows: tuple[ast.expr, ...]

    def edits(self, context: Context) -> tuple[Edit, ...]:
        """What gives the calls all ranks' rows."""
        return tuple(Replace(a, f"{context.names['from_all_ranks']}({{0}})", (a,)) for a in self.rows)

    def turns(self) -> tuple[tuple[ast.expr, str], ...]:
        """What the arguments are then."""
        return tuple((a, "whole") for a in self.rows)


def found(context: Context, node: ast.Call, loss: Value) -> Whole | None:
    """The calls whose rows make the loss of a backward call that of the whole batch; None where that is not seen."""
    if pads(context, loss):
        return None
    rows = {n: r for n in _open(context, node, loss) if (r := _rows(context, n)) is not None}
    if not rows:
        return None
    marked = collect.turned(context.facts, dict.fromkeys(rows, "mark"))
    used = loss_in(marked, node).of_kind("mark")
    run = context.facts.after
    used = frozenset(n for n in used if not any(set(c.stack) & used for c in run.calls(n)))
    if not used or not all(context.facts.is_entry(n) and _alike(context, n) for n in used):
        return None
    calls = tuple(sorted(used, key=lambda n: (n.lineno, n.col_offset)))
    out = Whole(calls, tuple(a for n in calls for a in rows[n]))
    after = collect.turned(context.facts, dict(out.turns()))
    return out if is_whole(loss_in(after, node)) and not any(_drawn(after, n) for n in calls) else None


def is_whole(loss: Value) -> bool:
    """Whether a loss is computed from all ranks' rows, but for terms that are averages."""
    return bool(loss.of_kind("whole")) and (loss.scale == "mean" or (loss.scale is None and not loss.of_kind("batch")))


def pads(context: Context, loss: Value) -> bool:
    """Whether a loader pads its batches: each rank's then have their own length."""
    run = context.facts.after
    for loader in loss.of_kind("batch"):
        for obj in run.held(loader, "collate_fn").objs:
            inner = getattr(obj, "node", None) if not isinstance(obj, New) else obj.cls.node if obj.cls is not None else None
            if (isinstance(obj, New) and "Padding" in obj.path) or (
                isinstance(inner, ast.AST)
                and any(isinstance(n, ast.Call) and "pad" in ast.unparse(n.func).rpartition(".")[2].lower() for n in ast.walk(inner))
            ):
                return True
    return False


def loss_in(run: Run, node: ast.Call) -> Value:
    """What a backward call starts from in a run."""
    return join([loss_of(c) for c in run.calls(node)])


def _open(context: Context, backward: ast.Call, loss: Value) -> list[ast.Call]:
    """The calls that turn rows of what is trained into something that is no average over them."""
    run, forwards = context.facts.after, loss.of_kind("forward")
    out: dict[ast.Call, None] = {}
    ends = _ends(context, backward)
    for call in run.trace.calls:
        given = [*call.args, *call.keywords.values()]
        trained = any(v.of_kind("forward") & forwards for v in given)
        left = call.result.scale in _OPEN or (call.result.scale in ("sample", None) and call.node in ends)
        if trained and left and not call.no_grad and not _runs_model(context, call, given):
            out[call.node] = None
    return list(out)


def _ends(context: Context, backward: ast.Call) -> set[ast.AST]:
    """The calls whose results a backward call starts from, themselves, added up or scaled: single numbers."""
    tree = context.facts.tree_of(backward)
    assigned: dict[str, list[ast.expr]] = {}
    for n in ast.walk(tree.function(backward)):
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
            assigned.setdefault(n.targets[0].id, []).append(n.value)
    out: set[ast.AST] = set()
    todo: list[ast.expr] = [backward.func.value] if isinstance(backward.func, ast.Attribute) else list(backward.args)
    seen: set[ast.AST] = set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, ast.BinOp):
            todo += [node.left, node.right]
        elif isinstance(node, ast.Name):
            todo += assigned.get(node.id, [])
        elif isinstance(node, ast.Call):
            out.add(node)
    return out


def _runs_model(context: Context, call: Call, given: list[Value]) -> bool:
    """Whether a call is, or is handed, a network: that sees each rank's own rows."""
    run = context.facts.after
    called = [o for o in run.unwrap(call.func) if isinstance(o, (New, Part))]
    if any(isinstance(o, New) and o.cls is None and o.path.startswith(("torch.nn.", "torchvision.")) for o in called):
        return call.result.scale not in _OPEN
    if any(_network(run, o) for o in called if isinstance(o, Part) or o.cls is not None):
        return True
    if not called and call.node in context.training:
        return True
    return any(_network(run, o) for v in given for o in run.unwrap(v) if isinstance(o, New))


def _network(run: Run, obj: New | Part) -> bool:
    return isinstance(obj, Part) or (run.interpreter.is_module(obj) and run.interpreter.is_network(obj))


def _rows(context: Context, node: ast.Call) -> list[ast.expr] | None:
    """The arguments of a call that hold one row for each sample; None where one depends on the batch in another way."""
    out: list[ast.expr] = []
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    return out if all(_take(context, a, out) for a in (*node.args, *(k.value for k in node.keywords))) and out else None


def _take(context: Context, node: ast.expr, out: list[ast.expr]) -> bool:
    """Collect the parts of an expression that hold one row for each sample; False where another part depends on the batch."""
    value = context.facts.after.value(node)
    if not (context.local(value) or value.of_kind("random") or _holds(context, value)):
        return True
    if value.scale == "sample" and not value.objs and not value.of_kind("turned") and not value.of_kind("decided"):
        out.append(node)
        return True
    if isinstance(node, ast.Call) and context.facts.after.value(node).of_kind("random") - _given(context, node):
        return False
    inner = [n for n in expressions(node) if not (isinstance(node, ast.Call) and n is node.func)]
    return not isinstance(node, (ast.Name, ast.Lambda, *_COMPREHENSIONS)) and bool(inner) and all(_take(context, n, out) for n in inner)


def _given(context: Context, node: ast.Call) -> frozenset[object]:
    return frozenset(r for n in expressions(node) for r in context.facts.after.value(n).of_kind("random"))


def _holds(context: Context, value: Value) -> bool:
    """Whether a container holds something of a rank's own batch."""
    run = context.facts.after
    boxes = [o for o in value.made() if o.path in ("list", "dict", "set", "zip", "generator")]
    return any(context.local(v) for o in boxes for v in (run.held(o, "[]"), run.held(o, "iterable"))) or any(
        context.local(i) for o in value.objs for i in getattr(o, "items", ())
    )


def _alike(context: Context, node: ast.Call) -> bool:
    """Whether all ranks make a call, for equally many rows: in training, under no condition of their own."""
    trained = set(context.facts.loaders)
    for call in context.facts.after.calls(node):
        batches = call.result.of_kind("batch")
        if call.no_grad or not batches or not batches <= trained or any(context.local(test) for _, test in call.tests):
            return False
    return True


def alike(context: Context, node: ast.expr, value: Value) -> bool:
    """Whether all ranks evaluate an expression, in training only: under no condition of their own, and in no call of another kind."""
    batches = value.of_kind("batch")
    if not batches or not batches <= set(context.facts.loaders):
        return False
    tree, run = context.facts.tree_of(node), context.facts.after
    for up in tree.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and context.local(run.value(up.test)):
            return False
    inside = [c for n in ast.walk(node) for c in run.calls(n)]
    return not any(c.no_grad or any(context.local(test) for _, test in c.tests) for c in inside)


def _drawn(run: Run, node: ast.Call) -> bool:
    """Whether a call draws random numbers of its own: the ranks' losses then differ."""
    return any(c.result.of_kind("random") for c in run.calls(node))
