"""Losses that couple the samples of a batch: the calls that are given all ranks' rows, so that each rank computes the loss of them all."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ddpify.edits import Edit, Replace
from ddpify.facts import collect
from ddpify.facts.collect import Run, loss_of
from ddpify.facts.library import WRAPPERS
from ddpify.facts.model import Call, New, Value, join
from ddpify.rules.context import Context

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
    used = _loss(marked, node).of_kind("mark")
    run = context.facts.after
    used = frozenset(n for n in used if not any(set(c.stack) & used for c in run.calls(n)))
    if not used or not all(context.facts.is_entry(n) and _alike(context, n) for n in used):
        return None
    calls = tuple(sorted(used, key=lambda n: (n.lineno, n.col_offset)))
    out = Whole(calls, tuple(a for n in calls for a in rows[n]))
    after = collect.turned(context.facts, dict(out.turns()))
    return out if is_whole(_loss(after, node)) and not any(_drawn(after, n) for n in calls) else None


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


def _loss(run: Run, node: ast.Call) -> Value:
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
    if call.node in context.training and not all(isinstance(o, New) and not run.interpreter.is_network(o) for o in call.func.objs):
        return True
    if any(isinstance(o, New) and (o.path in WRAPPERS or (o.cls is not None and run.interpreter.is_network(o))) for o in call.func.objs):
        return not all(isinstance(o, New) and not _network(run, o) for o in call.func.objs)
    if any(isinstance(o, New) and o.cls is None and o.path.startswith(("torch.nn.", "torchvision.")) for o in call.func.objs):
        return call.result.scale not in _OPEN
    return any(isinstance(o, New) and _network(run, o) for v in given for o in v.objs)


def _network(run: Run, obj: New) -> bool:
    held = run.unwrap(Value(frozenset((obj,))))
    return any(isinstance(o, New) and run.interpreter.is_module(o) and run.interpreter.is_network(o) for o in held)


def _rows(context: Context, node: ast.Call) -> list[ast.expr] | None:
    """The arguments of a call that hold one row for each sample; None where one depends on the batch in another way."""
    out: list[ast.expr] = []
    todo = [*node.args, *(k.value for k in node.keywords)]
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    while todo:
        arg = todo.pop(0)
        value = context.facts.after.value(arg)
        if isinstance(arg, (ast.List, ast.Tuple)):
            todo = [*arg.elts, *todo]
        elif value.scale is None and not (context.local(value) or value.of_kind("random")) and not _holds(context, value):
            continue
        elif value.scale == "sample" and not value.objs and not value.of_kind("turned") and not value.of_kind("decided"):
            out.append(arg)
        else:
            return None
    return out or None


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
    every = context.facts.after.calls(node)
    for call in every:
        batches = call.result.of_kind("batch")
        if call.no_grad or not batches or not batches <= trained or any(context.local(test) for _, test in call.tests):
            return False
    return True


def _drawn(run: Run, node: ast.Call) -> bool:
    """Whether a call draws random numbers of its own: the ranks' losses then differ."""
    return any(c.result.of_kind("random") for c in run.calls(node))

