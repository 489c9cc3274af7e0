"""What training computes from its batches and writes into a model's buffers, or into the data that it reads.

Each rank would write what its own rows say: a buffer then follows rank 0's rows alone, and a data set differs from
rank to rank. Averages, totals and rows of samples are those of all ranks once they are reduced or gathered; the rest is MANUAL.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit
from ddpify.facts.interpret.calls import refilled
from ddpify.facts.model import Call, New, Obj, Part, Store, Value, join
from ddpify.facts.tree import evaluated, same
from ddpify.placement.shape import EXTREMES
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.loop import gathered_rows
from ddpify.rules.loop.branches import under_own_test
from ddpify.rules.loop.sharded_parts import gather_edits, reduce_edits, sharded_parts

CODE = "DDP408"
_BY_ALL = "later steps read this: it is computed from the batches of all ranks, so that it stays equal on all"
_GROWS = frozenset("append extend insert add update setdefault remove discard pop".split())
_DATA_SETS = ("torch.utils.data.", "list", "dict")


def buffers(context: Context) -> dict[ast.stmt, ast.expr]:
    """The buffers of the trained models that are written from batches, by the statements that do: they are equal on all ranks before."""
    state, out = _State(context), dict[ast.stmt, ast.expr]()
    for event, value in _writes(context):
        tensor = _tensor(event)
        if tensor is not None and context.from_sharded_data(value) and state.written(event):
            out[context.facts.tree_of(event.node).statement(event.node)] = tensor
    return out


def written(context: Context) -> Iterator[tuple[ast.AST, Change | Finding]]:
    """Each write of state, with reduced numbers where that can be done, and its node."""
    state, data = _State(context), _data(context)
    seen: set[ast.AST] = set()
    for event, value in _writes(context):
        if event.node in seen or not context.from_sharded_data(value):
            continue
        names = state.written(event)
        if names or _reaches(context, _base(event), data):
            seen.add(event.node)
            yield event.node, _over_ranks(context, event, names)


def _writes(context: Context) -> Iterator[tuple[Store | Call, Value]]:
    """The stores into attributes and elements, and the calls in place, each with what it writes and where."""
    run = context.facts.after
    for store in run.trace.stores:
        if isinstance(store.node, ast.Subscript):
            yield store, join([store.value, run.value(store.node.slice)])
        elif isinstance(store.node, ast.Attribute):
            yield store, store.value
    for call in run.trace.calls:
        if isinstance(call.node.func, ast.Attribute) and _in_place(call.method):
            yield call, join([Value(frozenset(), v.origins, v.scale) for v in (*call.args, *call.keywords.values())])


def _in_place(method: str) -> bool:
    return (method.endswith("_") and not method.startswith("_")) or method in _GROWS


class _State:
    """The buffers of the models that are trained, and the tensors of their layers; for parameters see rules/model/changes_after_wrap.py."""

    def __init__(self, context: Context) -> None:
        run = context.facts.after
        self._context, self._run = context, run
        self._modules = context.facts.trained
        self._buffers = {
            (obj, str(getattr(name, "value", "")))
            for call in run.calls_named("register_buffer")
            for obj in call.receiver.objs
            for name in (call.argument(0, "name") or Value()).objs
        }

    def written(self, event: Store | Call) -> str:
        """The name of what a store or a call in place changes, where that is a buffer or the like; else empty."""
        if isinstance(event, Store) and isinstance(event.node, ast.Attribute) and event.node.attr not in ("data", "grad"):
            mine = [o for o in self._run.unwrap(event.receiver) if self._trained(o)]
            buffer = any((o, event.node.attr) in self._buffers for o in mine)
            return event.node.attr if buffer or (mine and self._outlives(event)) else ""
        tensor = _tensor(event)
        held = self._run.unwrap(self._run.value(tensor.value)) if tensor is not None else ()
        if tensor is not None and any((o, tensor.attr) in self._buffers and self._trained(o) for o in held):
            return tensor.attr
        chained = {pair[0] for pair in event.receiver.of_kind("method") if _in_place(pair[1])}  # x.mul_(a).add_(b)
        for obj in event.receiver.objs | chained:
            while isinstance(obj, Part) and not self._is_tensor(obj):
                obj = obj.of
            if isinstance(obj, Part) and self._trained(obj):
                return obj.name
        return ""

    def _outlives(self, event: Store) -> bool:
        """Whether a method of a model reads, before it writes it, a number of an earlier batch: as a scale that the first batch sets."""
        if event.value.of_kind("forward") or event.value.scale not in ("mean", "sum", "weighted", "other", *EXTREMES):
            return False
        function = self._context.facts.tree_of(event.node).function(event.node)
        return isinstance(function, ast.FunctionDef) and bool(_read_first(function, event.node))

    def _is_tensor(self, obj: Part) -> bool:
        """Whether an attribute is a buffer, or a tensor of one of torch's layers."""
        layer = isinstance(obj.of, New) and obj.of.path.startswith("torch.nn.") and obj.of.path != "torch.nn.Parameter"
        return layer or (obj.of, obj.name) in self._buffers

    def _trained(self, obj: Obj) -> bool:
        return self._run.part_of((obj,), self._modules)


def _read_first(node: ast.AST, what: ast.AST) -> bool | None:
    """Whether the first that a function does with what an expression says is to read it, or to add to it; None where it does neither."""
    for child in evaluated(node):
        if isinstance(node, ast.AugAssign) and child is node.target and same(child, what):
            return True
        first = _read_first(child, what)
        if first is not None:
            return first
    return isinstance(node.ctx, ast.Load) if isinstance(node, (ast.Name, ast.Attribute)) and same(node, what) else None


def _data(context: Context) -> set[Obj]:
    """The data sets that training reads, and what they hold."""
    run = context.facts.after
    todo: list[Obj] = [o for loader in context.facts.feeding for o in run.attribute(loader, "dataset").objs]
    out: set[Obj] = set()
    while todo:
        obj = todo.pop()
        if obj not in out and isinstance(obj, New) and (obj.cls is not None or obj.path.startswith(_DATA_SETS)):
            out.add(obj)
            todo += run.parts(obj)
    return out


def _base(event: Store | Call) -> ast.expr:
    """What a store or a call in place is about: `x` of `x.y[i] = v` and of `x.y.copy_(v)`."""
    node: ast.expr = event.node.func if isinstance(event, Call) else event.node
    return node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else node


def _tensor(event: Store | Call) -> ast.Attribute | None:
    """The attribute that `self.x.data[i] = v` or `self.x.mul_(a).add_(b)` changes."""
    node = refilled(_base(event))
    while isinstance(node, ast.Subscript):
        node = refilled(node.value)
    return node if isinstance(node, ast.Attribute) else None


def _reaches(context: Context, node: ast.expr, data: set[Obj]) -> bool:
    """Whether an expression is a data set, a part of one, or a tensor that one was made of."""
    run = context.facts.after
    while True:
        if run.value(node).objs & data:
            return True
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            break
        node = node.value
    tree = context.facts.tree_of(node)
    return isinstance(node, ast.Name) and any(
        isinstance(o, New)
        and o.path == "torch.utils.data.TensorDataset"
        and isinstance(o.node, ast.Call)
        and any(isinstance(a, ast.Name) and a.id == node.id for a in o.node.args)
        and context.facts.tree_of(o.node) is tree
        and tree.function(o.node) is tree.function(node)
        for o in data
    )


def _over_ranks(context: Context, event: Store | Call, name: str) -> Change | Finding:
    """The edit that reduces what is written, or what is to be done by hand."""
    tree = context.facts.tree_of(event.node)
    edits: list[Edit] = []
    needs: set[str] = set()
    if context.facts.is_edited(event.node) and _reached_by_all_ranks(context, event):
        edits, needs = _edits(context, event)
        if not edits and (rows := gathered_rows.gathered(context, _given(context, event), loss_follows=True)) is not None:
            return Change(CODE, _BY_ALL, tree.shown, event.node, rows.edits, needs=rows.needs, redistributes=rows.redistributes)
    if edits:
        parts = [e.node for e in edits if isinstance(e.node, ast.expr)]
        become = tuple((part, "whole" if context.facts.after.value(part).scale == "sample" else "agreed") for part in parts)
        return Change(CODE, _BY_ALL, tree.shown, event.node, tuple(edits), needs=tuple(sorted(needs)), redistributes=become)
    if name:
        why = f"`{name}` is computed from this rank's part of the batch, and later steps read it: it differs between ranks"
        return context.manual(CODE, event.node, why, "sum or average what it is computed from over the ranks", level=Safety.REVIEW)
    why = "each rank writes results of its own batches into the training data: in later epochs the data differs between ranks"
    return context.manual(CODE, event.node, why, "gather the indices and the values of all ranks first, and write them on every rank")


def _reached_by_all_ranks(context: Context, event: Store | Call) -> bool:
    """Whether all ranks come to a write equally often: in a loop over training batches, under no condition of their own."""
    feeding = set(context.facts.feeding)
    around = [loop.element.batches() for loop in event.loops if loop.element.batches()]
    equally = bool(around) and around[-1] & feeding and not around[-1] & set(context.sharded_evaluation)  # `zip` may have others, too
    return bool(equally) and not under_own_test(context, event.node)


def _given(context: Context, event: Store | Call) -> list[ast.expr]:
    """What is written."""
    if isinstance(event, Call):
        return [*event.node.args, *(k.value for k in event.node.keywords)]
    statement = context.facts.tree_of(event.node).statement(event.node)
    return [statement.value] if isinstance(statement, ast.Assign) and statement.targets == [event.node] else []


def _edits(context: Context, event: Store | Call) -> tuple[list[Edit], set[str]]:
    if isinstance(event, Call):
        parts = [sharded_parts(context, a) for a in _given(context, event)]
        return reduce_edits(context, [p for of_argument in parts for p in of_argument or ()]) if None not in parts else ([], set())
    statement = context.facts.tree_of(event.node).statement(event.node)
    if not isinstance(statement, (ast.Assign, ast.AugAssign)) or (isinstance(statement, ast.Assign) and statement.targets != [event.node]):
        return [], set()
    if isinstance(event.node, ast.Subscript):
        return gather_edits(context, event.node.slice, statement.value) if isinstance(statement, ast.Assign) else ([], set())
    added = sharded_parts(context, statement.value, event.node)
    return reduce_edits(context, added) if added else ([], set())
