"""Losses that couple the samples of a batch: their operands are gathered, so that each rank computes the loss of the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from ddpify.edits import Edit, InsertAfter, Replace
from ddpify.facts import collect, library
from ddpify.facts.assumed import GRADED
from ddpify.facts.collate import fills_up
from ddpify.facts.collect import loss_of
from ddpify.facts.held_parts import HeldParts
from ddpify.facts.interpret import collated
from ddpify.facts.model import NOTHING, Call, Class, Func, Lit, Method, New, Obj, Part, Tup, Value, join
from ddpify.facts.runs import Run
from ddpify.facts.tensors import uneven
from ddpify.facts.tree import inside, last_name, same, structure, walk
from ddpify.placement.shape import EXTREMES, Scale
from ddpify.placement.values import is_rows
from ddpify.records import dataclass, replace
from ddpify.rules.context import Context
from ddpify.rules.loop.branches import has_own_test, under_own_test
from ddpify.rules.loop.loss_terms import loss_terms, scales
from ddpify.rules.loop.sharded_parts import expressions, is_no_tensor

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict)
_OF_TENSORS = ("T", "mT", "shape", "dtype", "device", "ndim")
_NO_LOSSES = {"torch.autograd.grad", "torch.autograd.backward", "len"}  # gradients are of the rows that something was computed from
_OPEN = ("other", "weighted", *EXTREMES)
_REPEATED = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


@dataclass(frozen=True)
class WholeBatchLoss:
    """The edits that gather the operands of a loss: where they are, and the expressions that then hold all ranks' rows.

    Those that are `graded` do so where there are gradients: in training, and not in an evaluation that computes the loss, too.
    """

    node: ast.AST
    edits: tuple[Edit, ...]
    rows: tuple[ast.expr, ...]
    graded: frozenset[ast.expr] = frozenset()

    @property
    def redistributes(self) -> tuple[tuple[ast.expr, str], ...]:
        """The placement of these expressions once the edits are made."""
        return tuple((a, GRADED["whole"] if a in self.graded else "whole") for a in self.rows)

    @property
    def imports(self) -> tuple[str, ...]:
        """What the edits must have imported."""
        return ("import torch",) if self.graded else ()

    def outside(self, context: Context) -> frozenset[str]:
        """The modules that the edits stand in and that are not edited yet."""
        return frozenset(context.facts.tree_of(a).name for a in self.rows if not context.facts.is_edited(a))


def whole_batch_loss(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """The edits by which a backward call starts from the loss of the whole batch; None where none were found."""
    if pads(context, loss) or may_vary_in_shape(context, loss):
        return None
    calls, names = _by_calls(context, node, loss), _by_names(context, node, loss)
    if calls is None or names is None:
        return calls or names
    texts = [ast.unparse(row) for row in calls.rows]
    return names if len(set(texts)) < len(texts) and {ast.unparse(row) for row in names.rows} == set(texts) else calls


def _by_calls(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """Gather the arguments of the calls that compute the loss: of those that make no rows of rows, or else of all of them."""
    ends = {n for n in loss_terms(context, node) if isinstance(n, ast.Call)}  # a number of the loss is no row of the batch
    calls = _coupling_calls(context, node, loss)
    given = {n: row_arguments(context, n) for n in calls}
    rows = {n: r for n, r in given.items() if r and not any(ends & inside(a) for a in r)}
    numbers = {n: r for n, r in rows.items() if any(scale in _OPEN for scale in calls[n])}
    attempts = [numbers, rows] if len(numbers) < len(rows) else [rows]
    return next((found for some in attempts if some and (found := _by_some_calls(context, node, some)) is not None), None)


def _by_some_calls(context: Context, node: ast.Call, rows: dict[ast.Call, list[ast.expr]]) -> WholeBatchLoss | None:
    """Gather the arguments of those of some calls that the loss comes from."""
    marked = collect.redistributed_run(context.facts, dict.fromkeys(rows, "mark"))
    used = loss_in(marked, node).of_kind("mark")
    run = context.facts.after
    used = frozenset(n for n in used if not any(set(c.stack) & used for c in run.calls(n)))
    if not used or not all(context.facts.may_edit(n) and _called_by_all_ranks(context, n) for n in used) or _differentiates(run, used):
        return None
    calls = tuple(sorted(used, key=lambda n: (n.lineno, n.col_offset)))
    parts = tuple(a for n in calls for a in rows[n] if not marked.value(a).of_kind("mark") & used)  # what they give is whole then
    graded = frozenset(a for n in calls for a in rows[n] if any(c.no_grad for c in run.calls(n)))
    edits = [Replace(a, gathered(context, a, a in graded), (a,)) for a in parts]
    out = WholeBatchLoss(calls[0], tuple(edits), parts, graded)
    after = collect.redistributed_run(context.facts, dict(out.redistributes))
    if any(_draws_or_reads_keys(after, n) or _is_weighed_by_draws(context, n) for n in calls):
        return None
    return out if is_of_all_ranks(context, after, node) else None


def gathered(context: Context, node: ast.expr, graded: bool = False) -> str:
    """What gathers a tensor, or each tensor of a tuple, of a list or of a dict."""
    gather, rows = context.names["from_all_ranks"], context.facts.after.value(node)
    if graded:
        text = f"{gathered(context, node)} if torch.is_grad_enabled() else {{0}}"
        return text if isinstance(context.facts.tree_of(node).parent[node], (ast.Call, ast.keyword)) else f"({text})"
    several = rows.shape is not None and rows.shape.several is True
    if not several and (not rows.objs or is_rows(rows)):
        return f"{gather}({{0}})"
    if any(isinstance(o, New) and o.path == "dict" for o in rows.objs):
        return f"{{{{name: {gather}(part) for name, part in {{0}}.items()}}}}"
    each = f"{gather}(part) for part in {{0}}"
    return f"tuple({each})" if several or all(isinstance(o, Tup) for o in rows.objs) else f"[{each}]"


def _by_names(context: Context, node: ast.Call, loss: Value) -> WholeBatchLoss | None:
    """Gather the variables that the loss is computed from, under their own names, once the last forward is done or later."""
    if not context.facts.is_edited(node) or not evaluated_by_all_ranks(context, node, loss):
        return None
    around = next(up for up in context.tree.ancestors(node) if isinstance(up, _REPEATED))
    places = [(around, _from_last_forward(context, node, around)), *_inside_functions(context, node)]
    starts = [(around, s[n:]) for around, s in places for n, line in enumerate(s) if not n or isinstance(line, ast.Assign)]
    found = (_from_names(context, node, around, statements) for around, statements in starts)
    return next((names for names in found if names is not None), None)


def _from_names(context: Context, node: ast.Call, around: ast.AST, statements: list[ast.stmt]) -> WholeBatchLoss | None:
    """Gather the variables that the loss is computed from in some statements, after the first of them."""
    last, *rest = statements
    evaluated = _evaluated(context, last)
    if evaluated is None or _differentiates(context.facts.after, {n for s in rest for n in walk(s)}):
        return None
    reads = _rows_read(context, around, last, rest, evaluated)
    needed = {r.id for r in reads if not _only_length(context, r)}
    for some in ([r for r in reads if r.id in needed], reads):  # of what is only measured, a rank's own length may do
        if any(is_no_tensor(context, r) for r in some):
            continue
        how = WholeBatchLoss(last, (), tuple(some), frozenset(some) if evaluated else frozenset())
        if some and not set(some) & loss_terms(context, node) and _suffices(context, node, how, rest):
            firsts = {r.id: r for r in reversed(some)}
            names = dict.fromkeys(r.id for r in some)
            lines = [f"{name} = {gathered(context, firsts[name]).format(name)}" for name in names]
            block = "if torch.is_grad_enabled():" + "".join(f"\n    {line}" for line in lines) if evaluated else "\n".join(lines)
            return replace(how, edits=(InsertAfter(last, block),))
    return None


def _evaluated(context: Context, last: ast.stmt) -> list[Value] | None:
    """What a statement gives without gradients, in evaluation; None where some ranks may skip it in training.

    Where there are gradients, it is given batches of training loaders alone: all ranks are there then, with equally many rows.
    """
    calls = [c for s in _that_go_on(last) for n in walk(s) for c in context.facts.after.calls(n)]
    trained, evaluated = [c for c in calls if not c.no_grad], [c.result for c in calls if c.no_grad]
    if any(has_own_test(context, c) for c in trained):
        return None
    mixed = any(c.result.of_kind("batch") and not of_training(context, c.result) for c in trained)
    return None if mixed or (evaluated and not trained) else evaluated


def _that_go_on(node: ast.stmt) -> list[ast.AST]:
    """A statement, or of a condition the branches after which the next statement runs."""
    branches = [node.body, node.orelse] if isinstance(node, ast.If) else [[node]]
    go_on = [branch for branch in branches if not branch or not isinstance(branch[-1], (ast.Continue, ast.Break, ast.Return, ast.Raise))]
    return [s for branch in go_on for s in branch]


def _gives_back_rows(context: Context, after: Run, node: ast.AST) -> bool:
    """Whether a function gives back rows that are all ranks' now, for its caller to go on with beside rows of its own."""
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    given = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
    own = [n for n in given if context.facts.after.value(n).scale == "sample" and context.from_sharded_data(context.facts.after.value(n))]
    return any(not context.from_sharded_data(after.value(n)) for n in own)


def _from_last_forward(context: Context, node: ast.Call, around: ast.AST) -> list[ast.stmt]:
    """The innermost block that holds a training forward before a backward call, from the last forward on, where it is assigned."""
    for up in context.tree.path(node):
        if up is around:
            break
        block = context.tree.block(up)
        runs = [i for i, s in enumerate(block[: block.index(up)]) if not inside(s).isdisjoint(context.training)]
        if runs:
            return block[runs[-1] :] if isinstance(block[runs[-1]], (ast.Assign, ast.If)) else []
    return []


def _inside_functions(context: Context, node: ast.Call) -> list[tuple[ast.AST, list[ast.stmt]]]:
    """The functions, and forwards, that return the loss, each with its statements from the last that runs a network on."""
    terms, run, out = loss_terms(context, node), context.facts.after, list[tuple[ast.AST, list[ast.stmt]]]()
    called = [run.value(t.func) for t in terms if isinstance(t, ast.Call)]
    own = [f.node for value in called for o in run.unwrap(value) if isinstance(o, New) for f in run.methods(o, "forward")]
    for function in dict.fromkeys([*(f for value in called for f in value.functions()), *own]):
        if not context.facts.is_edited(function):
            continue
        runs = context.tree.in_order([n for n in walk(function) if context.tree.function(n) is function and _runs_network(context, n)])
        last = context.tree.statement(runs[-1]) if runs else None
        if isinstance(last, ast.Assign) and all(isinstance(up, ast.With) for up in context.tree.path(last)[1:]):
            blocks = [(up, context.tree.block(up)) for up in context.tree.path(last)]
            out.append((function, [last, *(s for up, block in blocks for s in block[block.index(up) + 1 :])]))
    return out


def _runs_network(context: Context, node: ast.AST) -> bool:
    """Whether a node is a training forward, or the call of a network inside one."""
    if node in context.training or not isinstance(node, ast.Call):
        return node in context.training
    called = context.facts.after.unwrap(context.facts.after.value(node.func))
    return any(context.once(_held).parts(o) for o in called if isinstance(o, New))


def _held(context: Context) -> HeldParts:
    return HeldParts(context.facts.after)


def _differentiates(run: Run, nodes: Collection[ast.AST]) -> bool:
    """Whether code, or what it calls, asks for gradients: what it differentiates by must be what was computed from."""
    return any(
        "torch.autograd.grad" in c.func.paths() and (c.node in nodes or not frozenset(nodes).isdisjoint(c.stack)) for c in run.trace.calls
    )


def _only_length(context: Context, node: ast.Name) -> bool:
    """Whether only the length of a tensor is read."""
    up = context.tree.parent[node]
    if isinstance(up, ast.Call):
        return "len" in context.facts.after.value(up.func).paths()
    return isinstance(up, ast.Attribute) and up.attr in ("shape", "size")


def _suffices(context: Context, node: ast.Call, how: WholeBatchLoss, rest: list[ast.stmt]) -> bool:
    """Whether the loss is that of the whole batch once these names are all ranks' rows, and no operand beside them is a rank's own."""
    after = collect.redistributed_run(context.facts, dict(how.redistributes))
    gathered = loss_in(after, node)
    nodes = [n for s in rest for n in walk(s)]
    names = {r.id for r in how.rows if isinstance(r, ast.Name)}
    again = [n for n in nodes if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Store)]
    return (
        gathered.scale is None
        and is_of_whole_batch(gathered)
        and not gathered.of_kind("random")
        and _keeps_other_losses(context, after, node)
        and not mixes(context, after, nodes)
        and not any(context.from_sharded_data(after.value(n)) for n in again)  # bound anew to this rank's own
    )


def _rows_read(context: Context, around: ast.AST, last: ast.stmt, rest: list[ast.stmt], evaluated: list[Value]) -> list[ast.Name]:
    """The reads, after a statement, of names that hold rows until then; none where one of them cannot be all ranks' rows from there on."""
    tree, run = context.tree, context.facts.after
    names = tree.in_order([n for n in walk(around) if isinstance(n, (ast.Name, ast.arg))])
    first = {structure(n): n for n in reversed(names)}
    bound = {structure(n) for n in names if _binds(n) and not tree.after(n, last)}
    later = {n for s in rest for n in walk(s)}
    reads = [n for n in names if n in later and isinstance(n, ast.Name) and not _binds(n) and structure(n) in bound]
    rows = [n for n in reads if run.value(n).scale == "sample" and context.from_sharded_data(run.value(n))]
    return rows if all(_binds(first[structure(n)]) and _may_be_gathered(context, around, n, evaluated) for n in rows) else []


def _binds(name: ast.Name | ast.arg) -> bool:
    return isinstance(name, ast.arg) or isinstance(name.ctx, ast.Store)


def _may_be_gathered(context: Context, around: ast.AST, read: ast.Name, evaluated: list[Value]) -> bool:
    """Whether a name that is read may hold all ranks' rows: it is a tensor of a training batch's, and no part of it is asked for."""
    value, up = context.facts.after.value(read), context.tree.parent[read]
    above = context.tree.parent[up]
    if isinstance(up, ast.Attribute) and up.attr not in _OF_TENSORS and not (isinstance(above, ast.Call) and above.func is up):
        return False
    if isinstance(up, ast.Subscript) and up.value is read and isinstance(up.slice, ast.Constant):
        return False
    if isinstance(around, ast.For) and same(around.target, read):
        return False
    batches = value.of_kind("batch") - frozenset[object]().union(*(v.of_kind("batch") for v in evaluated))
    ours = of_training(context, value) if not evaluated else value.of_kind("batch") and batches <= set(context.facts.loaders)
    return is_rows(value) and bool(ours)


def mixes(context: Context, after: Run, nodes: Iterable[ast.AST]) -> bool:
    """Whether code has rows of one rank beside rows that are all ranks' now, or gives such rows to what goes on with its own."""
    return any(_uneven(after, n) or _gives_back_rows(context, after, n) for n in nodes)


def _uneven(run: Run, node: ast.AST) -> bool:
    """Whether an expression has operands of one rank's rows and operands of all ranks' rows, or decides by how many rows one rank has."""
    if not isinstance(node, (ast.BinOp, ast.Compare, ast.Call)):
        return False
    operands = [run.value(n) for n in expressions(node)]
    return uneven(operands) or (isinstance(node, ast.Compare) and any(v.scale == "count" for v in operands))


def _keeps_other_losses(context: Context, after: Run, node: ast.Call) -> bool:
    """Whether the losses of other backward calls do not change, or are of the whole batch, too."""
    for other in {loop.backward.node for loop in context.facts.loops} - {node}:
        was, now = loss_in(context.facts.after, other), loss_in(after, other)
        if now.scale != was.scale and not is_of_whole_batch(now):
            return False
        if was.scale == "sum" and now.of_kind("whole"):
            return False
    return True


def is_of_all_ranks(context: Context, after: Run, node: ast.Call) -> bool:
    """Whether a backward call starts from a loss of the whole batch in a run, and other backward calls start from what they did."""
    return is_of_whole_batch(loss_in(after, node)) and _keeps_other_losses(context, after, node)


def is_of_whole_batch(loss: Value) -> bool:
    """Whether a loss is computed from all ranks' rows, and chosen by no rank's own, but for terms that are averages."""
    own = loss.of_kind("batch") or loss.of_kind("decided")
    return bool(loss.of_kind("whole")) and (loss.scale == "mean" or not own)


def pads(context: Context, loss: Value) -> bool:
    """Whether a loader pads its batches: each rank's then have their own length."""
    run = context.facts.after
    return any(_pads(run, o) for loader in loss.of_kind("batch") for o in run.attribute(loader, "collate_fn").objs)


def fills_up_rows(call: Call) -> bool:
    """Whether a call fills sequences or graphs of the batch up to the longest of them."""
    filled = any(p.endswith(("pad_packed_sequence", "pad_sequence", "to_dense_batch", "to_dense_adj")) for p in call.func.paths())
    return filled and bool(call.result.batches()) and "total_length" not in call.keywords


def _pads(run: Run, collate: Obj) -> bool:
    """Whether a collate function pads, by what it, or a function of the project that it calls, calls, or the lengths of what it makes."""
    todo: list[Obj] = [collate]
    seen = set[ast.AST]()
    while todo:
        obj = todo.pop()
        if isinstance(obj, New) and "Padding" in obj.path:
            return True
        node = obj.cls.node if isinstance(obj, New) and obj.cls is not None else obj.node if isinstance(obj, (Func, Class)) else None
        if node is None or node in seen:
            continue
        seen.add(node)
        calls = [n for n in walk(node) if isinstance(n, ast.Call)]
        if any(map(_is_padding, calls)) or fills_up(node):
            return True
        todo += [o for c in calls for o in run.value(c.func).objs if isinstance(o, Func)]
        names = collated.FileNames(run.interpreter, obj.file, obj.cls) if isinstance(obj, Func) else None
        found = [names.function(c.func) for c in calls] if names is not None else []
        todo += [Func(own[0], own[1].file, None, own[1].cls) for own in found if own is not None]
        tree, named = run.scopes.tree(node), {c.func.id for c in calls if isinstance(c.func, ast.Name)}
        if tree is not None and isinstance(node, ast.Lambda):
            todo += [Func(d, "", None, None) for d in tree.of(ast.FunctionDef) if d.name in named]
    return False


def _is_padding(node: ast.Call) -> bool:
    """Whether a call pads rows to the longest, by its name, or as a tokenizer that is asked to: `tokenizer(texts, padding=True)`."""
    asked = (k.value for k in node.keywords if k.arg == "padding")
    longest = any(not isinstance(v, ast.Constant) or v.value is True or v.value == "longest" for v in asked)
    return longest or "pad" in last_name(node.func).lower()


def may_vary_in_shape(context: Context, loss: Value) -> bool:
    """Whether rows may have another shape on every rank: a collate function that does more than to stack, padding to a batch's longest."""
    run = context.facts.after
    for loader in loss.of_kind("batch"):
        collate = run.attribute(loader, "collate_fn")
        own = any(not (isinstance(o, Lit) and o.value is None) for o in collate.objs) and not collate.paths() & library.STACKING
        known = [collated.layouts(run.interpreter, collate, of_dict) for of_dict in (False, True)] if own else []
        if own and not any(parts and all(isinstance(layout, int) for layout in parts) for parts in known):
            return True
    for call in run.trace.calls:
        longest = any(isinstance(o, Lit) and (o.value is True or o.value == "longest") for o in call.keywords.get("padding", NOTHING).objs)
        if (longest or fills_up_rows(call)) and context.from_sharded_data(call.result):
            return True
    return False


def loss_in(run: Run, node: ast.Call) -> Value:
    """What a backward call starts from in a run."""
    return join([loss_of(c) for c in run.calls(node)])


def _coupling_calls(context: Context, backward: ast.Call, loss: Value) -> dict[ast.Call, set[Scale | None]]:
    """The calls that turn rows of what is trained into something that is no average over them, and what they give."""
    run, forwards = context.facts.after, loss.of_kind("forward")
    running = {node for _, node in forwards}  # inside of these, rows come from parts of what is trained
    out: dict[ast.Call, set[Scale | None]] = {}
    ends = loss_terms(context, backward)
    for call in run.trace.calls:
        unknown = any(not path.startswith("torch.") for path in call.func.paths())
        ending = call.node in ends and (unknown or running.isdisjoint(call.stack))  # a network's own layers end no loss
        is_open = call.result.scale in _OPEN or (call.result.scale in ("sample", None) and ending)
        other = bool(call.func.paths() & _NO_LOSSES) or scales(context, call.node)
        if call.no_grad or other or not is_open:
            continue
        trained = [v.of_kind("forward") for v in (*call.args, *call.keywords.values())]
        if any(f & forwards or (f and not running.isdisjoint(call.stack)) for f in trained) and not _runs_model(context, call):
            out.setdefault(call.node, set()).add(call.result.scale)
    return out


def _runs_model(context: Context, call: Call) -> bool:
    """Whether a call is, or is passed, a network: a network is run on each rank's own rows."""
    run = context.facts.after
    called = [o for o in run.unwrap(call.func) if isinstance(o, (New, Part))]
    if any(isinstance(o, New) and o.cls is None and o.path.startswith(("torch.nn.", "torchvision.")) for o in called):
        return call.result.scale not in _OPEN
    owners = [o.owner if isinstance(o, Func) else o.of for o in call.func.objs if isinstance(o, (Func, Method))]
    passed = [o for v in (*call.args, *call.keywords.values()) for o in run.unwrap(v) if isinstance(o, New)]
    return (not called and call.node in context.training) or any(_network(run, o) for o in (*called, *owners, *passed))


def _network(run: Run, obj: Obj | None) -> bool:
    return isinstance(obj, Part) or (isinstance(obj, New) and run.interpreter.is_module(obj) and run.interpreter.is_network(obj))


def row_arguments(context: Context, node: ast.Call) -> list[ast.expr] | None:
    """The arguments of a call that hold one row for each sample; None where one depends on the batch in another way."""
    out: list[ast.expr] = []
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    return out if all(_collect_rows(context, a, out) for a in (*node.args, *(k.value for k in node.keywords))) and out else None


def _collect_rows(context: Context, node: ast.expr, out: list[ast.expr]) -> bool:
    """Collect the parts of an expression that hold one row for each sample; False where another part depends on the batch."""
    value = context.facts.after.value(node)
    if not (context.differs(value) or value.of_kind("random") or _holds_own_batch(context, value)):
        return True
    if is_no_tensor(context, node):
        return False
    if not isinstance(node, _DISPLAYS) and (is_rows(value) or _are_rows(context, value)):
        out.append(node)
        return True
    if isinstance(node, ast.Call) and (node in context.training or value.of_kind("random") - _random_origins(context, node)):
        return False  # a model that couples its rows would run over the whole batch on every rank
    inner = [n for n in expressions(node) if not (isinstance(node, ast.Call) and n is node.func)]
    return (
        not isinstance(node, (ast.Name, ast.Lambda, *_COMPREHENSIONS))
        and bool(inner)
        and all(_collect_rows(context, n, out) for n in inner)
    )


def _are_rows(context: Context, value: Value) -> bool:
    """Whether a value is a list, a tuple or a dict of such tensors, and can be nothing else."""
    inner: list[Value] = []
    if value.scale is not None or len({getattr(o, "path", "") for o in value.objs}) > 1:
        return False
    for obj in value.objs:
        if isinstance(obj, Tup) and not obj.names:
            inner += obj.entries
        elif isinstance(obj, New) and obj.path in ("list", "dict"):
            inner += context.facts.after.of(obj).values()
        else:
            return False
    return bool(inner) and all(is_rows(v) for v in inner)


def _random_origins(context: Context, node: ast.Call) -> frozenset[object]:
    return frozenset(r for n in expressions(node) for r in context.facts.after.value(n).of_kind("random"))


def _holds_own_batch(context: Context, value: Value) -> bool:
    """Whether a container holds something of a rank's own batch."""
    run = context.facts.after
    boxes = [o for o in value.instances() if o.path in ("list", "dict", "set", "zip", "generator")]
    return any(context.differs(v) for o in boxes for v in (run.attribute(o, "[]"), run.attribute(o, "iterable"))) or any(
        context.differs(i) for o in value.objs for i in getattr(o, "entries", ())
    )


def _called_by_all_ranks(context: Context, node: ast.Call) -> bool:
    """Whether all ranks make a call, where it has gradients, for equally many rows: in training, under no condition of their own."""
    calls = [c for c in context.facts.after.calls(node) if not c.no_grad]
    return bool(calls) and all(of_training(context, c.result) and not has_own_test(context, c) for c in calls)


def evaluated_by_all_ranks(context: Context, node: ast.expr, value: Value, by_hand: bool = False) -> bool:
    """Whether all ranks evaluate an expression, in training only: under no condition of their own, and in no call of another kind."""
    return of_training(context, value, by_hand) and not under_own_test(context, node) and not _is_skipped_by_some(context, node)


def of_training(context: Context, value: Value, by_hand: bool = False) -> bool:
    """Whether a value is computed from batches of training loaders alone, or with `by_hand` from those that are made without a loader."""
    batches = value.of_kind("batch")
    return bool(batches) and batches <= {*context.facts.loaders, *(context.facts.feeding if by_hand else ())}


def _is_skipped_by_some(context: Context, node: ast.AST) -> bool:
    """Whether calls in an expression or a statement are made without gradients, or on some ranks only."""
    return any(c.no_grad or has_own_test(context, c) for n in walk(node) for c in context.facts.after.calls(n))


def _draws_or_reads_keys(run: Run, node: ast.Call) -> bool:
    """Whether a call draws random numbers of its own, so that the ranks' losses differ, or takes what it is given for a dict."""
    keyed = any(c.method in ("items", "keys", "values") and node in c.stack and c.receiver.of_kind("whole") for c in run.trace.calls)
    return keyed or any(c.result.of_kind("random") for c in run.calls(node))


def _is_weighed_by_draws(context: Context, node: ast.expr) -> bool:
    """Whether a loss is multiplied by a number that each rank draws for its own samples: `lam * loss(model(mixed), kinds)`."""
    tree, inner = context.facts.tree_of(node), node
    while isinstance(up := tree.parent[inner], ast.BinOp):
        other = up.left if up.right is inner else up.right
        value = context.facts.after.value(other)
        if isinstance(up.op, (ast.Mult, ast.Div)) and value.of_kind("drawn") and not value.of_kind("batch"):
            return True
        inner = up
    return False
