"""Losses that couple the samples of a batch: their operands are gathered, so that each rank computes the loss of the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ddpify.edits import Edit, InsertAfter, Replace
from ddpify.facts import collect
from ddpify.facts.collect import loss_of
from ddpify.facts.model import Call, Func, Lit, Method, New, Part, Tup, Value, join
from ddpify.facts.runs import Run
from ddpify.facts.tensors import uneven
from ddpify.records import dataclass
from ddpify.rules.context import Context
from ddpify.rules.loop.sharded_parts import expressions

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OF_TENSORS = ("T", "mT", "shape", "dtype", "device", "ndim")
_OPEN = ("other", "weighted")


@dataclass(frozen=True)
class WholeBatchLoss:
    """The edits that gather the operands of a loss: where they are, and the expressions that then hold all ranks' rows."""

    node: ast.AST
    edits: tuple[Edit, ...]
    rows: tuple[ast.expr, ...]

    @property
    def redistributes(self) -> tuple[tuple[ast.expr, str], ...]:
        """The placement of these expressions once the edits are made."""
        return tuple((a, "whole") for a in self.rows)


def whole_batch_loss(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """The edits by which a backward call starts from the loss of the whole batch; None where none were found."""
    if pads(context, loss) or _varied(context, loss):
        return None
    calls, names = _by_calls(context, node, loss), _by_names(context, node, loss)
    if calls is None or names is None:
        return calls or names
    texts = [ast.unparse(row) for row in calls.rows]
    return names if len(set(texts)) < len(texts) and {ast.unparse(row) for row in names.rows} == set(texts) else calls


def _by_calls(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """Gather the arguments of the calls that compute the loss."""
    rows = {n: r for n in _open(context, node, loss) if (r := _rows(context, n)) is not None}
    if not rows:
        return None
    marked = collect.redistributed_run(context.facts, dict.fromkeys(rows, "mark"))
    used = loss_in(marked, node).of_kind("mark")
    run = context.facts.after
    used = frozenset(n for n in used if not any(set(c.stack) & used for c in run.calls(n)))
    if not used or not all(context.facts.is_edited(n) and _called_by_all_ranks(context, n) for n in used) or _differentiates(run, used):
        return None
    calls = tuple(sorted(used, key=lambda n: (n.lineno, n.col_offset)))
    given = tuple(a for n in calls for a in rows[n])
    gather = context.names["from_all_ranks"]
    edits = [Replace(a, f"[{gather}(part) for part in {{0}}]" if run.value(a).objs else f"{gather}({{0}})", (a,)) for a in given]
    out = WholeBatchLoss(calls[0], tuple(edits), given)
    after = collect.redistributed_run(context.facts, dict(out.redistributes))
    whole = is_of_whole_batch(loss_in(after, node)) and _apart(context, after, node)
    return out if whole and not any(_drawn(after, n) for n in calls) else None


def _by_names(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """Gather the variables that the loss is computed from, under their own names, once the last forward is done."""
    if not context.facts.is_edited(node) or not evaluated_by_all_ranks(context, node, loss):
        return None
    tree = context.tree
    end = tree.statement(node)
    around = next(
        up for up in tree.ancestors(end) if isinstance(up, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))
    )
    body: list[ast.stmt] = []
    runs: list[int] = []
    for up in tree.path(end):  # the innermost block that also holds a forward
        if up is around:
            break
        body = tree.block(up)
        runs = [i for i, s in enumerate(body[: body.index(up)]) if any(n in context.training for n in ast.walk(s))]
        if runs:
            break
    if not runs or not isinstance(body[runs[-1]], ast.Assign):
        return None
    if any(
        c.no_grad or any(context.differs(test) for _, test in c.tests)
        for n in ast.walk(body[runs[-1]])
        for c in context.facts.after.calls(n)
    ):
        return None
    last, rest = body[runs[-1]], body[runs[-1] + 1 :]
    if _differentiates(context.facts.after, {n for s in rest for n in ast.walk(s)}):
        return None
    reads = _rows_read(context, around, last, rest)
    measured = {r.id for r in reads} - {r.id for r in reads if not _measured(context, r)}
    for some in ([r for r in reads if r.id not in measured], reads):  # of what is only measured, a rank's own length may do
        if some and not set(some) & _ends(context, node) and _suffices(context, node, some, rest):
            names = dict.fromkeys(r.id for r in some)
            lines = "\n".join(f"{name} = {context.names['from_all_ranks']}({name})" for name in names)
            return WholeBatchLoss(last, (InsertAfter(last, lines),), tuple(some))
    return None


def _differentiates(run: Run, nodes: Collection[ast.AST]) -> bool:
    """Whether code, or what it calls, asks for gradients: what it differentiates by must be what was computed from."""
    return any(
        "torch.autograd.grad" in c.func.paths() and (c.node in nodes or not frozenset(nodes).isdisjoint(c.stack)) for c in run.trace.calls
    )


def _measured(context: Context, node: ast.Name) -> bool:
    """Whether only the length of a tensor is read."""
    up = context.tree.parent[node]
    if isinstance(up, ast.Call):
        return "len" in context.facts.after.value(up.func).paths()
    return isinstance(up, ast.Attribute) and up.attr in ("shape", "size")


def _suffices(context: Context, node: ast.Call, reads: list[ast.Name], rest: list[ast.stmt]) -> bool:
    """Whether the loss is that of the whole batch once these names are all ranks' rows, and no operand beside them is a rank's own."""
    after = collect.redistributed_run(context.facts, dict.fromkeys(reads, "whole"))
    found = loss_in(after, node)
    nodes = [n for s in rest for n in ast.walk(s)]
    names = {r.id for r in reads}
    again = [n for n in nodes if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Store)]
    return (
        found.scale is None
        and is_of_whole_batch(found)
        and not found.of_kind("random")
        and _apart(context, after, node)
        and not any(_uneven(after, n) for n in nodes)
        and not any(context.from_sharded_data(after.value(n)) for n in again)  # bound anew to this rank's own
    )


def _rows_read(context: Context, around: ast.AST, last: ast.stmt, rest: list[ast.stmt]) -> list[ast.Name]:
    """The reads, after a statement, of names that hold rows until then; none where one of them cannot be all ranks' rows from there on."""
    tree, run = context.tree, context.facts.after
    nodes = sorted((n for n in ast.walk(around) if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset))
    first = {n.arg: n.lineno for n in ast.walk(around) if isinstance(n, ast.arg)}
    for n in nodes:
        if isinstance(n.ctx, ast.Store):
            first[n.id] = min(first.get(n.id, n.lineno), n.lineno)
    inside = {n for s in rest for n in ast.walk(s)}
    out: list[ast.Name] = []
    for n in nodes:
        value = run.value(n)
        bound = first.get(n.id, 1 << 30) <= (last.end_lineno or last.lineno)
        if n not in inside or isinstance(n.ctx, ast.Store) or not bound or value.scale != "sample" or not context.from_sharded_data(value):
            continue
        up = tree.parent[n]
        above = tree.parent[up]
        called = isinstance(above, ast.Call) and above.func is up
        part = isinstance(up, ast.Attribute) and up.attr not in _OF_TENSORS and not called
        keyed = isinstance(up, ast.Subscript) and up.value is n and isinstance(up.slice, ast.Constant)
        carried = any(m.id == n.id and isinstance(m.ctx, ast.Load) and m.lineno <= first[n.id] for m in nodes)
        whole_batch = isinstance(around, ast.For) and isinstance(around.target, ast.Name) and around.target.id == n.id
        elsewhere = not value.of_kind("batch") <= set(context.facts.loaders)  # this runs for evaluation, too
        if value.objs or not _is_rows(context, value) or part or keyed or carried or whole_batch or elsewhere:
            return []
        out.append(n)
    return out


def _uneven(run: Run, node: ast.AST) -> bool:
    """Whether an expression has operands of one rank's rows and operands of all ranks' rows."""
    return isinstance(node, (ast.BinOp, ast.Compare, ast.Call)) and uneven([run.value(n) for n in expressions(node)])


def _apart(context: Context, after: Run, node: ast.Call) -> bool:
    """Whether the losses of other backward calls do not change, or are of the whole batch, too."""
    for other in {loop.backward.node for loop in context.facts.loops} - {node}:
        was, now = loss_in(context.facts.after, other), loss_in(after, other)
        if now.scale != was.scale and not is_of_whole_batch(now):
            return False
        if was.scale == "sum" and now.of_kind("whole"):
            return False
    return True


def is_of_whole_batch(loss: Value) -> bool:
    """Whether a loss is computed from all ranks' rows, but for terms that are averages."""
    return bool(loss.of_kind("whole")) and (loss.scale == "mean" or (loss.scale is None and not loss.of_kind("batch")))


def pads(context: Context, loss: Value) -> bool:
    """Whether a loader pads its batches: each rank's then have their own length."""
    run = context.facts.after
    for loader in loss.of_kind("batch"):
        for obj in run.attribute(loader, "collate_fn").objs:
            inner = getattr(obj, "node", None) if not isinstance(obj, New) else obj.cls.node if obj.cls is not None else None
            if (isinstance(obj, New) and "Padding" in obj.path) or (
                isinstance(inner, ast.AST)
                and any(isinstance(n, ast.Call) and "pad" in ast.unparse(n.func).rpartition(".")[2].lower() for n in ast.walk(inner))
            ):
                return True
    return False


def _varied(context: Context, loss: Value) -> bool:
    """Whether rows may have another shape on every rank: a collate function of the script's own, or padding to the longest of a batch."""
    run = context.facts.after
    for loader in loss.of_kind("batch"):
        collate = run.attribute(loader, "collate_fn")
        if any(not (isinstance(o, Lit) and o.value is None) for o in collate.objs) and "default_collate" not in str(collate.paths()):
            return True
    for call in run.trace.calls:
        if not context.from_sharded_data(call.result):
            continue
        longest = any(isinstance(o, Lit) and o.value in (True, "longest") for o in call.keywords.get("padding", Value()).objs)
        if longest or any(p.endswith(("pad_packed_sequence", "pad_sequence")) for p in call.func.paths()):
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
        is_open = call.result.scale in _OPEN or (call.result.scale in ("sample", None) and call.node in ends)
        grads = bool(call.func.paths() & {"torch.autograd.grad", "torch.autograd.backward"})  # of rows it was computed from: not of others
        if trained and is_open and not grads and not call.no_grad and not _runs_model(context, call, given):
            out[call.node] = None
    return list(out)


def _ends(context: Context, backward: ast.Call) -> set[ast.AST]:
    """The names and calls whose values a backward call starts from, themselves, added up or scaled: single numbers."""
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
        if isinstance(node, (ast.Name, ast.Call)):
            out.add(node)
    return out


def _runs_model(context: Context, call: Call, given: list[Value]) -> bool:
    """Whether a call is, or is passed, a network: a network is run on each rank's own rows."""
    run = context.facts.after
    called = [o for o in run.unwrap(call.func) if isinstance(o, (New, Part))]
    if any(isinstance(o, New) and o.cls is None and o.path.startswith(("torch.nn.", "torchvision.")) for o in called):
        return call.result.scale not in _OPEN
    if any(_network(run, o) for o in called if isinstance(o, Part) or o.cls is not None):
        return True
    owners = [o.owner if isinstance(o, Func) else o.of if isinstance(o, Method) else None for o in call.func.objs]
    if (not called and call.node in context.training) or any(_network(run, o) for o in owners if isinstance(o, (New, Part))):
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
    if not (context.differs(value) or value.of_kind("random") or _holds_own_batch(context, value)):
        return True
    if _is_rows(context, value) or _are_rows(context, value):
        out.append(node)
        return True
    if isinstance(node, ast.Call) and (node in context.training or value.of_kind("random") - _random_origins(context, node)):
        return False  # a model that couples its rows would run over the whole batch on every rank
    inner = [n for n in expressions(node) if not (isinstance(node, ast.Call) and n is node.func)]
    return not isinstance(node, (ast.Name, ast.Lambda, *_COMPREHENSIONS)) and bool(inner) and all(_take(context, n, out) for n in inner)


def _is_rows(context: Context, value: Value) -> bool:
    """Whether a value is a tensor with one row for each sample in its first dimension."""
    if value.of_kind("turned") or value.of_kind("decided") or (value.shape is not None and value.shape.places):
        return False
    first = value.shape is None or value.shape.axis == 0
    return value.scale == "sample" and first and not value.objs


def _are_rows(context: Context, value: Value) -> bool:
    """Whether a value is a list or a tuple of such tensors."""
    inner: list[Value] = []
    for obj in value.objs:
        if isinstance(obj, Tup):
            inner += obj.items
        elif isinstance(obj, New) and obj.path == "list":
            inner.append(context.facts.after.attribute(obj, "[]"))
        else:
            return False
    return bool(inner) and all(_is_rows(context, v) for v in inner)


def _random_origins(context: Context, node: ast.Call) -> frozenset[object]:
    return frozenset(r for n in expressions(node) for r in context.facts.after.value(n).of_kind("random"))


def _holds_own_batch(context: Context, value: Value) -> bool:
    """Whether a container holds something of a rank's own batch."""
    run = context.facts.after
    boxes = [o for o in value.instances() if o.path in ("list", "dict", "set", "zip", "generator")]
    return any(context.differs(v) for o in boxes for v in (run.attribute(o, "[]"), run.attribute(o, "iterable"))) or any(
        context.differs(i) for o in value.objs for i in getattr(o, "items", ())
    )


def _called_by_all_ranks(context: Context, node: ast.Call) -> bool:
    """Whether all ranks make a call, for equally many rows: in training, under no condition of their own."""
    trained = set(context.facts.loaders)
    for call in context.facts.after.calls(node):
        batches = call.result.of_kind("batch")
        if call.no_grad or not batches or not batches <= trained or any(context.differs(test) for _, test in call.tests):
            return False
    return True


def evaluated_by_all_ranks(context: Context, node: ast.expr, value: Value) -> bool:
    """Whether all ranks evaluate an expression, in training only: under no condition of their own, and in no call of another kind."""
    batches = value.of_kind("batch")
    if not batches or not batches <= set(context.facts.loaders):
        return False
    tree, run = context.facts.tree_of(node), context.facts.after
    for up in tree.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and context.differs(run.value(up.test)):
            return False
    inside = [c for n in ast.walk(node) for c in run.calls(n)]
    return not any(c.no_grad or any(context.differs(test) for _, test in c.tests) for c in inside)


def _drawn(run: Run, node: ast.Call) -> bool:
    """Whether a call draws random numbers of its own, so that the ranks' losses differ, or takes what it is given for a dict."""
    keyed = any(c.method in ("items", "keys", "values") and node in c.stack and c.receiver.of_kind("whole") for c in run.trace.calls)
    return keyed or any(c.result.of_kind("random") for c in run.calls(node))
