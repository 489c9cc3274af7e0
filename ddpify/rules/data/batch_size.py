"""Divide the batch size wherever it means this rank's batch.

What it does: where the number given to a training loader as its batch size also shapes a tensor, cuts or counts rows of a batch, divides a
    loss, or is compared with a batch's length, it becomes this rank's share. Intervals, schedules, names and messages go on meaning the
    global batch.
Why: left global, a comparison skips every batch and a shape does not fit.
Safety: safe; MANUAL where a number is only equal to the batch size, or one read serves training and evaluation and cannot be told apart.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Call, Func, Lit, New, Obj, Part, Value, join
from ddpify.facts.tree import is_number, last_name, structure
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.process import cuda_visible_devices

CODE = "DDP303"
TITLE = "what else the batch size sizes"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a setting that is shown",
        'name = f"run_{args.batch_size}"\n',
        frame="end",
    ),
    Example(
        "a number of samples of the global batch",
        "seen = 100 * args.batch_size\n",
        frame="epoch",
    ),
    Example(
        "a shape of the model",
        "hidden = torch.zeros(8, 16)\n",
        frame="end",
    ),
    Example(
        "the loader's own argument, which another rule divides",
        "batches = DataLoader(test_set, batch_size=args.batch_size)\n",
        frame="end",
    ),
    Example(
        "a short batch that is skipped",
        "for x, y in loader:\n"
        "    if x.size(0) == args.batch_size:\n"
        "        update(x, y)\n",
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    if x.size(0) == per_rank(args.batch_size):\n"
        "        update(x, y)\n",
        frame="batches",
    ),
    Example(
        "noise for a batch",
        "noise = torch.randn(args.batch_size, 8)\n"
        "loss = criterion(model(x + noise), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "noise = torch.randn(per_rank(args.batch_size), 8)\n"
        "loss = criterion(model(x + noise), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a total that is divided by the batch size",
        "loss = (model(x) ** 2).sum() / args.batch_size\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "loss = (model(x) ** 2).sum() / per_rank(args.batch_size)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip

_TOGETHER = "a batch is spread over the ranks: together they have this many samples"
SHAPES = frozenset(
    """
        zeros ones full empty rand randn randint normal arange view reshape expand repeat init_hidden initHidden FloatTensor
        LongTensor Tensor resize_ new_zeros new_ones uniform standard_normal split chunk linspace logspace eye tile new_full new_empty
        repeat_interleave broadcast_to
    """.split()
)
_OTHER_NUMBERS = frozenset(("eye", "linspace", "logspace", "tile", "repeat_interleave"))  # of classes, steps or copies, as likely


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Divide the batch size where it means this rank's batch."""
    sources, arguments = _sizes(context)
    yield from _composed(context)
    if context.options.batch_size == "per-rank":
        return
    yield from _indivisible(context)
    yield from _of_loaders(context)
    if sources:
        yield from _shapes(context, sources, arguments)
        yield from _rows(context, sources)
        yield from _lists(context, sources)
        yield from _lengths(context, sources, arguments)


def _sizes(context: Context) -> tuple[set[Obj], set[ast.AST]]:
    """What the batch sizes of the loaders are, and the expressions that the loaders are given, which other rules divide."""
    run = context.facts.after
    sources: set[Obj] = set()
    arguments: set[ast.AST] = set()
    for loader in context.facts.feeding:
        size = join([run.attribute(o, "batch_size") for o in (loader, *run.attribute(loader, "batch_sampler").instances())])
        sources |= {o for o in size.objs if isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1)}
        sources |= {o for o in size.of_kind("from") if isinstance(o, (Part, Lit))}
        if loader.node in context.facts.batch_sources:
            arguments |= set(ast.walk(loader.node))
        elif isinstance(loader.node, ast.Call):
            given = argument(loader.node, 1, "batch_size")
            arguments |= set(ast.walk(given)) if given is not None else set()
    return sources, arguments


def _shapes(context: Context, sources: set[Obj], arguments: set[ast.AST]) -> Iterator[Change | Finding]:
    """Tensors of the training that are shaped by a batch size."""
    facts, run = context.facts, context.facts.after
    by_hand = [facts.batch_sources[o.node].size for o in facts.feeding if o.node in facts.batch_sources]
    computed = {structure(s) for s in by_hand if isinstance(s, ast.BinOp)}
    seen: set[ast.AST] = set()
    whole = context.whole_batch_calls
    for call in run.trace.calls:
        node = call.node
        if (
            call.method not in SHAPES
            or node in arguments
            or node in facts.batch_sources
            or whole & {node, *call.stack}
            or any(isinstance(o, Func) for o in call.func.objs)
            or any(isinstance(o, New) and o.cls is not None and call.method[:1].isupper() for o in call.func.objs)
        ):
            continue
        if not _in_training(context, call):
            continue
        numbered = _numbered(context, call, sources)
        if numbered is not None and node not in seen:
            seen |= {node, *node.args}
            yield from numbered
        given = [*node.args, *(k.value for k in node.keywords)]
        if node not in seen and _varies(context, call, sources):
            seen |= {node, *given}
            yield from _rows_of_rank(context, node)
        for arg in given:
            for part in arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg]:
                if part in seen:
                    continue
                if structure(part) in computed:
                    seen.add(part)
                    if not run.value(part).of_kind("world"):
                        yield from _divide(context, part, "a shape made with the batch size holds one rank's batch")
                    continue
                found = list(_shape(context, call, arg, part, sources, bool(computed)))
                seen |= {part} if found else set()
                yield from found


def _lengths(context: Context, sources: set[Obj], arguments: set[ast.AST]) -> Iterator[Change | Finding]:
    """Lengths and totals of a batch that are compared with a batch size, or divided by one."""
    run, trained = context.facts.after, set(context.facts.feeding)
    for file in context.facts.trees.values():
        for node in file.of(ast.Compare, ast.BinOp):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                lengths = [run.value(s).of_kind("batch") for s in sides if run.value(s).scale == "count"]
                if lengths and all(n and n <= trained for n in lengths):
                    if any(isinstance(s, ast.Constant) and type(s.value) is int and s.value for s in sides):
                        yield from _global_length(context, sides)
                    for side in sides:
                        if _reads(run.value(side), sources) and side not in arguments:
                            yield from _divide(context, side, "a batch's length is compared with one rank's batch size")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Div, ast.FloorDiv)):
                dividend = run.value(node.left)
                own = dividend.of_kind("batch")
                if not own or not own <= trained:
                    continue
                if isinstance(node.op, ast.Mod):
                    if dividend.scale == "count":
                        yield context.manual(CODE, node, _TOGETHER, "multiply the batch's length by dist.get_world_size()")
                elif dividend.scale in ("sum", "count", "total") and node.right not in arguments:
                    yield from _divisor(context, node.right, run.value(node.right), sources)


def _counts_rows(call: Call) -> bool:
    """Whether the first number that a call is given would count the samples of a batch, if it is the same as the batch size."""
    return call.method not in _OTHER_NUMBERS and (bool(call.loops) or call.method not in ("repeat", "expand"))


def _divisor(context: Context, node: ast.expr, value: Value, sources: set[Obj]) -> Iterator[Change | Finding]:
    """What a total over a rank's rows is divided by, where that is the batch size or computed from it: batches of this rank's size."""
    if _reads(value, sources):
        yield from _divide(context, node, "a batch's total is divided by one rank's batch size")
    elif _derived(value, sources, True):
        inner = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and _reads(context.facts.after.value(n), sources)]
        if not inner:
            fix = f"use {context.names['per_rank']}(...) where the batch size is read"
            yield context.manual(CODE, node, "this counts samples by the batch size, of which every rank now has its share", fix)
        for part in inner:
            yield from _divide(context, part, "a rank's total is divided by as many samples as it has seen")


def _shape(context: Context, call: Call, arg: ast.expr, part: ast.expr, sources: set[Obj], literals: bool) -> Iterator[Change | Finding]:
    """A number that a tensor of the training is shaped by."""
    run = context.facts.after
    value = run.value(part)
    if _reads(value, sources):
        if all(_in_training(context, other) for other in run.calls(call.node)):
            yield from _divide(context, part, "a shape made with the batch size holds one rank's batch")
            return
        handed = [_handed(context, other, sources) for other in run.calls(call.node) if _in_training(context, other)]
        for argument_ in dict.fromkeys(handed):
            if argument_ is None:
                fix = "take it from the batch: x.size(0)"
                yield context.manual(CODE, part, "this shape is one rank's batch in training, and a whole batch elsewhere", fix)
            else:
                yield from _divide(context, argument_, "a shape made with the batch size holds one rank's batch")
    elif _derived(value, sources, literals):
        inner = [n for n in ast.walk(part) if isinstance(n, (ast.Name, ast.Attribute)) and _reads(run.value(n), sources)]
        if not inner or not context.facts.is_edited(part):
            fix = f"use {context.names['per_rank']}(...) where the batch size is read"
            yield context.manual(CODE, part, "this shape is computed from the batch size, of which every rank now has its share", fix)
        for node in inner:
            yield from _divide(context, node, "a shape made with the batch size holds one rank's batch")
    elif _counts_rows(call) and call.node.args and arg is call.node.args[0] and _equal(value, sources):
        fix = "take it from the batch: x.size(0)"
        yield context.manual(
            CODE, part, "this number is the batch size written out once more, and every rank now has its share of a batch", fix
        )


def _numbered(context: Context, call: Call, sources: set[Obj]) -> list[Change | Finding] | None:
    """`arange` over a batch whose numbers a loss reads: each rank takes those of its own rows; None for anything else."""
    node, run = call.node, context.facts.after
    start, end = (ast.Constant(0), node.args[0]) if len(node.args) == 1 else (*node.args[:2], None, None)[:2]
    if call.method != "arange" or end is None or len(node.args) > 2 or (len(node.args) == 2 and not is_number(start, 0)):
        return None
    if not (_equal(run.value(end), sources) or _reads(run.value(end), sources)):
        return None
    up = context.tree.parent.get(node)
    if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Slice) and up.slice.step and run.value(up.slice.step).of_kind("world"):
        return []
    trained = frozenset(context.facts.feeding)
    for other in run.trace.calls:
        mine = [v for v in other.args if node in v.of_kind("sized") and not v.batches()]
        if mine and any(v.of_kind("whole") for v in other.args):  # beside the rows of all ranks, all numbers are meant
            return []
        rows = [v for v in other.args if v.batches() and v.batches() <= trained and v.scale == "sample"]
        if mine and rows and other.result.scale in ("mean", "sum", "total") and context.facts.is_edited(node):
            names = context.names
            why = "the numbers of a batch's rows: a rank has every world_size-th of them"
            edit = Replace(node, f"{{0}}[{names['rank']}::{names['world_size']}]", (node,))
            return [Change(CODE, why, context.tree.shown, node, (edit,))]
    if len(node.args) == 2 and _equal(run.value(end), sources):
        why = "this number is the batch size written out once more, and every rank now has its share of a batch"
        return [context.manual(CODE, end, why, "take it from the batch: x.size(0)")]
    return None


def _varies(context: Context, call: Call, sources: set[Obj]) -> bool:
    """Whether a call makes a tensor with a row of its own for each sample of a batch."""
    node, run = call.node, context.facts.after
    if call.method in ("linspace", "logspace"):
        rows = argument(node, 2, "steps")
    elif call.method in ("repeat", "tile"):
        rows = node.args[0] if node.args else None
        rows = rows.elts[0] if isinstance(rows, (ast.Tuple, ast.List)) and rows.elts else rows
    else:
        return False
    value = run.value(rows) if rows is not None else Value()
    return (_reads(value, sources) or _derived(value, sources, True)) and context.facts.is_edited(node)


def _rows_of_rank(context: Context, node: ast.Call) -> Iterator[Change]:
    up, names = context.tree.parent.get(node), context.names
    if not (isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Slice) and up.slice.step is not None):
        why = "a row for each sample of a batch: a rank has every world_size-th of them"
        edit = Replace(node, f"{{0}}[{names['rank']}::{names['world_size']}]", (node,))
        yield Change(CODE, why, context.tree.shown, node, (edit,))


def _handed(context: Context, call: Call, sources: set[Obj]) -> ast.expr | None:
    """The argument that passes the batch size to the function around a call."""
    run = context.facts.after
    for node in reversed(call.stack):
        if isinstance(node, ast.Call) and context.facts.is_edited(node):
            given = [a for a in (*node.args, *(k.value for k in node.keywords)) if _reads(run.value(a), sources)]
            if len(given) == 1:
                return given[0]
    return None


def _rows(context: Context, sources: set[Obj]) -> Iterator[Change | Finding]:
    """Rows of a training batch that are counted by the batch size: slices, and loops over them."""
    run, trained = context.facts.after, set(context.facts.feeding)
    for node in context.tree.nodes():
        parts: list[ast.expr] = []
        if isinstance(node, ast.Subscript):
            own, index = run.value(node.value), node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            if own.scale == "sample" and own.of_kind("batch") and own.of_kind("batch") <= trained and isinstance(index, ast.Slice):
                parts = [p for p in (index.lower, index.upper) if p is not None]
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and "range" in run.value(node.iter.func).paths():
            names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            picks = [
                n
                for s in node.body
                for n in ast.walk(s)
                if isinstance(n, ast.Subscript) and names & {i.id for i in ast.walk(n.slice) if isinstance(i, ast.Name)}
            ]
            owns = [run.value(n.value) for n in picks]
            if any(o.scale == "sample" and o.of_kind("batch") and o.of_kind("batch") <= trained for o in owns):
                parts = node.iter.args
        for part in parts:
            for inner in ast.walk(part) if not run.value(part).of_kind("world") else ():
                if isinstance(inner, (ast.Name, ast.Attribute)) and _reads(run.value(inner), sources):
                    yield from _divide(context, inner, "a rank's batch has this many rows")


def _lists(context: Context, sources: set[Obj]) -> Iterator[Change | Finding]:
    """`[value] * batch_size`, which a loss reads."""
    read = {n for loop in context.facts.loops for n in loop.loss.of_kind("sized") if isinstance(n, ast.BinOp)}
    for node in sorted(read, key=lambda n: (n.lineno, n.col_offset)):
        for side in (node.left, node.right):
            if _reads(context.facts.after.value(side), sources):
                yield from _divide(context, side, "a list made with the batch size has an entry for each sample of one rank's batch")


def _composed(context: Context) -> Iterator[Finding]:
    """The numbers by which a sampler of the script's own composes batches, where training takes the batches apart by them."""
    run = context.facts.after
    samplers = {o for x in context.facts.loaders for n in ("sampler", "batch_sampler") for o in run.attribute(x, n).instances()}
    given = (v for o in samplers if o.cls is not None for c in run.calls(o.node) for v in (*c.args, *c.keywords.values()))
    numbers: set[Obj] = {
        o for v in given for o in v.objs if isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1)
    }
    for place in dict.fromkeys(_uses_of(context, numbers)) if numbers else ():
        why = "batches are composed by this number, and every rank now has its share of each"
        yield context.manual(CODE, place, why, "take it from the batch: x.size(0)")


def _uses_of(context: Context, numbers: set[Obj]) -> Iterator[ast.expr]:
    """The shapes and lengths of the training that some numbers are used for."""
    run = context.facts.after
    for call in run.trace.calls:
        if call.method in SHAPES and _in_training(context, call) and not any(isinstance(o, Func) for o in call.func.objs):
            parts = [p for a in call.node.args for p in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
            grouped = call.method in ("view", "reshape") and len(parts) > 2
            yield from (p for p in parts if _reads(run.value(p), numbers) or (grouped and _equal(run.value(p), numbers)))
    for node in context.tree.nodes():
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(run.value(s).scale == "count" and context.from_sharded_data(run.value(s)) for s in sides):
                yield from (s for s in sides if _reads(run.value(s), numbers))


def _global_length(context: Context, sides: list[ast.expr]) -> Iterator[Change | Finding]:
    """A batch's length, compared with a number: that of all ranks' together."""
    world = context.names["world_size"]
    for side in sides:
        if context.facts.after.value(side).scale == "count" and not (isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod)):
            if not context.facts.is_edited(side) or isinstance(side, ast.BinOp):
                yield context.manual(CODE, side, _TOGETHER, "multiply the batch's length by dist.get_world_size()")
            else:
                yield Change(CODE, _TOGETHER, context.tree.shown, side, (Replace(side, f"{{0}} * {world}", (side,)),))


def _of_loaders(context: Context) -> Iterator[Change]:
    """`loader.batch_size`: the loader has this rank's, and what does not divide or count this rank's rows means all ranks'."""
    run, tree, trained = context.facts.after, context.tree, set(context.facts.loaders)
    for node in tree.nodes():
        if not (isinstance(node, ast.Attribute) and node.attr == "batch_size" and isinstance(node.ctx, ast.Load)):
            continue
        instances = run.value(node.value).instances()
        if instances and instances <= trained and not _of_this_rank(context, node):
            why = "the loader's own number is this rank's: all ranks' together is meant here"
            yield Change(CODE, why, tree.shown, node, (Replace(node, f"{{0}} * {context.names['world_size']}", (node,)),))


def _of_this_rank(context: Context, node: ast.Attribute) -> bool:
    """Whether a loader's batch size stands where this rank's rows are divided, compared, shaped or cut by it."""
    run, tree = context.facts.after, context.tree
    up: ast.AST = tree.parent[node]
    if isinstance(up, ast.BinOp):
        other = run.value(up.left if up.right is node else up.right)
        if isinstance(up.op, ast.Mult) and other.of_kind("world") and not other.scale:
            return True
        if isinstance(up.op, (ast.Div, ast.FloorDiv)) and up.right is node and other.scale in ("sum", "count", "total", "other"):
            return True
    for around in tree.ancestors(node):
        if isinstance(around, ast.Slice):
            return True
        if isinstance(around, ast.Compare):
            return any(run.value(s).scale == "count" for s in (around.left, *around.comparators))
        if isinstance(around, ast.Call):
            name = last_name(around.func)
            return name in SHAPES or name in context.names.values() or name == "split"
        if isinstance(around, ast.stmt):
            return False
    return False


def _reads(value: Value, sources: set[Obj]) -> bool:
    if value.scale is not None or any(o.kind == "world" for o in value.origins):
        return False
    return bool(sources & value.objs)


def _in_training(context: Context, call: Call) -> bool:
    """Whether what a call makes is used with a training batch: it runs in a loop over training data, or reaches a loss."""
    loaders = set(context.facts.feeding)
    feeding = [loop for loop in call.loops if loop.element.batches()]
    if feeding:
        return bool(feeding[-1].element.batches() & loaders)
    over = {loop.node for loop in call.loops}
    return any(call.node in t.loss.of_kind("sized") or (t.batch is not None and t.batch.node in over) for t in context.facts.loops)


def _equal(value: Value, sources: set[Obj]) -> bool:
    """Whether a literal equals the loader's literal batch size."""
    sizes = {o.value for o in sources if isinstance(o, Lit)}
    return (
        bool(sizes)
        and not sources & value.objs
        and len(value.objs) == 1
        and any(isinstance(o, Lit) and type(o.value) is int and o.value in sizes for o in value.objs)
    )


def _derived(value: Value, sources: set[Obj], literals: bool) -> bool:
    """Whether a number is computed from the batch size rather than being it; `literals`: or from what the batch size is computed from."""
    if value.scale is not None or any(o.kind == "world" for o in value.origins) or sources & value.objs:
        return False
    return bool(sources & {o for o in value.of_kind("from") if literals or isinstance(o, Part)})


def _indivisible(context: Context) -> Iterator[Finding]:
    """Literal or default batch sizes that the ranks of the usual command cannot share."""
    run = context.facts.after
    devices = cuda_visible_devices.devices(context)
    ranks = len(devices.split(",")) if devices else 2
    for loader in context.facts.feeding:
        for obj in run.attribute(loader, "batch_size").objs:
            size = obj.value if isinstance(obj, Lit) else _default(context, obj.name) if isinstance(obj, Part) else None
            if type(size) is int and size % ranks:
                yield context.manual(
                    CODE,
                    loader.node,
                    f"a batch of {size} cannot be divided among {'two' if ranks == 2 else ranks} ranks; the script says so when it starts",
                    "train with a batch size that the number of ranks divides, or give each rank one of its own: --batch-size per-rank",
                    level=Safety.REVIEW if size == 1 or ranks != 2 else Safety.NOTE,
                )


def _default(context: Context, name: str) -> object:
    """The literal default of a command-line option."""
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            if (
                isinstance(node.func, ast.Attribute)
                and node.func.attr == "add_argument"
                and any(isinstance(a, ast.Constant) and str(a.value).lstrip("-").replace("-", "_") == name for a in node.args)
            ):
                default = argument(node, None, "default")
                if isinstance(default, ast.Constant):
                    return default.value
    return None


def _divide(context: Context, node: ast.expr, why: str) -> Iterator[Change | Finding]:
    while isinstance(node, ast.Call) and context.facts.after.value(node.func).paths() & {"float", "int"} and node.args:
        node = node.args[0]
    if not context.facts.is_edited(node):
        yield context.manual(CODE, node, f"{why}, and every rank now has its share of it", f"{ast.unparse(node)} // dist.get_world_size()")
        return
    edits, needs = context.divided(node)
    if edits:
        yield Change(CODE, why, context.tree.shown, node, tuple(edits), needs=needs)
