"""Divide the batch size wherever it means this rank's batch.

What it does: where the number given to a training loader as its batch size also shapes a tensor, cuts or counts rows of a batch, divides a
    loss, or is compared with a batch's length, it becomes this rank's share. Intervals, schedules, names and messages go on meaning the
    global batch.
Why: left global, a comparison skips every batch and a shape does not fit.
Safety: safe; a NOTE where the default of an option is no multiple of the ranks, REVIEW where the script itself trains on batches of one
    sample, or a library makes something of the batch size in a way that is not known; MANUAL where a number is only equal to the batch
    size, one read serves training and evaluation and cannot be separated, or a row is read by a number that a rank may not have.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain

from ddpify.edits import Replace
from ddpify.facts import library
from ddpify.facts.library.flow import is_literal
from ddpify.facts.manual_batches import parts_of
from ddpify.facts.model import NOTHING, Lit, New, Part, Value
from ddpify.facts.tree import last_name, names_in, own_nodes, walk
from ddpify.rules.base import DIVIDED_BATCHES, Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import numbered_rows, single_samples
from ddpify.rules.data.batch_shapes import FROM_BATCH, lists, refilled, shapes, trained_rows
from ddpify.rules.data.sizes import CODE, SHAPES, Sizes, divide, divide_inside, is_size, names_reading, shaping, sizes_of
from ddpify.rules.process import cuda_visible_devices

TITLE = "adjust what depends on the batch size"
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

_TOGETHER = "the batch here is one rank's part: all ranks together have world_size times as many samples"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Divide the batch size where it means this rank's batch."""
    sizes = sizes_of(context)
    yield from _composed(context)
    if context.options.batch_size == "per-rank":
        return
    yield from _indivisible(context)
    yield from _of_loaders(context)
    yield from trained_rows(context, sizes)
    yield from numbered_rows.findings(context, sizes)
    yield from single_samples.kept(context, sizes)
    if sizes.numbers or sizes.computations:
        yield from shapes(context, sizes)
        yield from refilled(context, sizes)
        yield from _rows(context, sizes)
        yield from lists(context, sizes)
        yield from _lengths(context, sizes)


def _rows(context: Context, sizes: Sizes) -> Iterator[Change | Finding]:
    """Rows of a training batch that are counted by the batch size: slices, and loops over them."""
    for node in context.tree.of(ast.Subscript, ast.For):
        for bound in _bounds(context, node, sizes) if isinstance(node, ast.Subscript) else _range_over_rows(context, node, sizes):
            if not context.facts.after.value(bound).of_kind("world"):
                for name in names_reading(context, bound, sizes):
                    yield from divide(context, name, "a rank's batch has this many rows")


def _bounds(context: Context, node: ast.Subscript, sizes: Sizes) -> list[ast.expr]:
    """The bounds of a slice of a training batch."""
    sliced = context.facts.after.value(node.value)
    rows = next(iter(parts_of([node.slice])), None)
    if not isinstance(rows, ast.Slice) or sliced.scale != "sample" or not sizes.batches(sliced):
        return []
    return [bound for bound in (rows.lower, rows.upper) if bound is not None]


def _range_over_rows(context: Context, loop: ast.AST, sizes: Sizes) -> list[ast.expr]:
    """The bounds of `for i in range(...)`, where something of a training batch is picked by the number."""
    run = context.facts.after
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or "range" not in run.value(loop.iter.func).paths():
        return []
    numbers = names_in(loop.target)
    picks = (n for s in loop.body for n in walk(s) if isinstance(n, ast.Subscript))
    picked = [run.value(n.value) for n in picks if any(isinstance(i, ast.Name) and i.id in numbers for i in walk(n.slice))]
    return loop.iter.args if any(v.scale == "sample" and sizes.batches(v) for v in picked) else []


def _lengths(context: Context, sizes: Sizes) -> Iterator[Change | Finding]:
    """Lengths and totals of a batch that are compared with a batch size, or divided by one."""
    for file in context.facts.trees.values():
        for node in file.of(ast.Compare, ast.BinOp):
            if isinstance(node, ast.Compare):
                yield from _compared(context, node, sizes)
            elif isinstance(node, ast.BinOp):
                yield from _divided(context, node, sizes)


def _compared(context: Context, node: ast.Compare, sizes: Sizes) -> Iterator[Change | Finding]:
    """The length of a batch, compared with a number, which is that of all ranks' together, or with the batch size."""
    value, sides = context.facts.after.value, [node.left, *node.comparators]
    lengths = [side for side in sides if value(side).scale == "count"]
    if not lengths or not all(sizes.batches(value(side)) for side in lengths):
        return
    if any(_is_of_all(value(side), sizes) for side in sides):
        for side in lengths:
            if not (isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod)):
                yield _length_of_all(context, side)
    for side in sides:
        if sizes.read(value(side)) and side not in sizes.arguments:
            yield from divide(context, side, "a batch's length is compared with one rank's batch size")


def _is_of_all(value: Value, sizes: Sizes) -> bool:
    """Whether a number is about whole batches: it is written out, a setting, or computed from the batch size."""
    if value.scale is not None or sizes.read(value):
        return False
    written = any(isinstance(o, Lit) and type(o.value) in (int, float) and o.value for o in value.objs)
    setting = any(isinstance(o, Part) and isinstance(o.of, New) and o.of.path in library.HOLDERS for o in value.objs)
    return written or setting or sizes.derived(value)


def _length_of_all(context: Context, side: ast.expr) -> Change | Finding:
    """The length of a rank's batch becomes that of all ranks' together."""
    offset = context.facts.after.value(side).of_kind("offset")
    if not context.facts.is_edited(side) or isinstance(side, ast.BinOp) or offset:
        return context.manual(CODE, side, _TOGETHER, "multiply the batch's length by dist.get_world_size()")
    loader = _loader_around(context, side)
    if loader is None:
        return Change(CODE, _TOGETHER, context.tree.shown, side, (Replace(side, f"{{0}} * {context.names['world_size']}", (side,)),))
    edit = Replace(side, f"{context.names['size_on_all_ranks']}({{0}}, {loader})", (side,))
    return Change(CODE, _TOGETHER, context.tree.shown, side, (edit,), needs=("size_on_all_ranks",))


def _loader_around(context: Context, side: ast.expr) -> str | None:
    """The name of the loader that a batch comes from, which gets our sampler, as a loop or the function around names it."""
    run, tree = context.facts.after, context.facts.tree_of(side)
    loaders = run.value(side).batches()
    known = {o for o in context.facts.loaders if run.attribute(o, "sampler") == run.attribute(o, "batch_sampler") == NOTHING}
    loops = [walk(loop.iter) for loop in tree.path(side) if isinstance(loop, ast.For)]
    for node in chain(*loops, own_nodes(tree.function(side))) if loaders <= known else ():
        named = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if named and run.value(node).instances() == loaders:
            return ast.unparse(node)
    return None


def _divided(context: Context, node: ast.BinOp, sizes: Sizes) -> Iterator[Change | Finding]:
    """A length or total of a batch, divided by the batch size or by what is computed from it."""
    dividend, divisor = context.facts.after.value(node.left), context.facts.after.value(node.right)
    if not isinstance(node.op, (ast.Mod, ast.Div, ast.FloorDiv)) or not sizes.batches(dividend):
        return
    if isinstance(node.op, ast.Mod):
        if dividend.scale == "count" and not divisor.of_kind("world"):
            yield context.manual(CODE, node, _TOGETHER, "multiply the batch's length by dist.get_world_size()")
    elif dividend.scale not in ("sum", "count", "total") or node.right in sizes.arguments or divisor.of_kind("world"):
        return
    elif dividend.of_kind("offset") and (sizes.read(divisor) or sizes.derived(divisor)):
        yield context.manual(CODE, node, _TOGETHER, "divide the totals of all ranks' batches: dist.all_reduce(total)")
    elif sizes.read(divisor):
        yield from divide(context, node.right, "a rank's sum over its part of the batch is divided by the size of that part")
    elif sizes.derived(divisor):
        why = "a rank's total is divided by the number of samples that this rank has seen"
        names = names_reading(context, node.right, sizes)
        if names and context.facts.is_edited(node) and not _is_proportional(node.right, names):
            edit = Replace(node.right, f"({{0}} / {context.names['world_size']})", (node.right,))
            yield Change(CODE, why, context.tree.shown, node, (edit,))
        else:
            yield from divide_inside(context, node.right, sizes, why, "this counts samples by the batch size")


def _is_proportional(node: ast.expr, names: Sequence[ast.expr]) -> bool:
    """Whether a number is twice as large where one of some names is."""
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(_is_proportional(a, names) and names_in(a).isdisjoint(names_in(b)) for a, b in ((left, right), (right, left)))
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return _is_proportional(left, names) and names_in(left).isdisjoint(names_in(right))
        case ast.Call(func=ast.Name("float" | "int" | "abs"), args=[inner], keywords=[]):
            return _is_proportional(inner, names)
    return node in names


def _composed(context: Context) -> Iterator[Finding]:
    """The numbers by which a sampler of the script's own composes batches, where training takes the batches apart by them."""
    run = context.facts.after
    parted = (x for x in context.facts.loaders if x not in context.facts.whole_loaders)
    samplers = {o for x in parted for n in ("sampler", "batch_sampler") for o in run.attribute(x, n).instances()}
    given = (v for o in samplers if o.cls is not None for c in run.calls(o.node) for v in (*c.args, *c.keywords.values()))
    sizes = Sizes(frozenset(o for v in given for o in v.objs if is_size(o)))
    for place in dict.fromkeys(_uses_of(context, sizes)) if sizes.numbers else ():
        yield context.manual(
            CODE, place, "this number says how a batch is composed, and every rank has only its part of each batch", FROM_BATCH
        )


def _uses_of(context: Context, sizes: Sizes) -> Iterator[ast.expr]:
    """The shapes and lengths of the training that some numbers are used for."""
    value = context.facts.after.value
    for call in shaping(context):
        parts = parts_of(call.node.args)
        grouped = call.method in ("view", "reshape") and len(parts) > 2
        yield from (p for p in parts if sizes.read(value(p)) or (grouped and sizes.equal(value(p))))
    for node in context.tree.of(ast.Compare):
        sides = [node.left, *node.comparators]
        if any(value(s).scale == "count" and context.from_sharded_data(value(s)) for s in sides):
            yield from (s for s in sides if sizes.read(value(s)))


def _of_loaders(context: Context) -> Iterator[Change]:
    """`loader.batch_size`: the loader has this rank's, and what does not divide or count this rank's rows means all ranks'."""
    run, tree = context.facts.after, context.tree
    trained = {o for o in context.facts.loaders if o not in context.facts.whole_loaders and not _draws_batches(context, o)}
    for node in tree.nodes():
        if not (isinstance(node, ast.Attribute) and node.attr == "batch_size" and isinstance(node.ctx, ast.Load)):
            continue
        instances = run.value(node.value).instances()
        if instances and instances <= trained and not _of_this_rank(context, node):
            why = "the loader's batch size is one rank's: here the batch size of all ranks together is meant"
            yield Change(CODE, why, tree.shown, node, (Replace(node, f"{{0}} * {context.names['world_size']}", (node,)),))


def _draws_batches(context: Context, loader: New) -> bool:
    """Whether a loader is given a sampler of whole batches, and so has no batch size."""
    given = context.facts.after.memory.get((loader, "batch_sampler"), NOTHING)
    return given != NOTHING and not is_literal(given, None)


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
        if isinstance(around, ast.Call) and (name := last_name(around.func)) != "range":  # np.split(rows, range(size, len(rows), size))
            return name in SHAPES or name in context.names.values() or name == "split"
        if isinstance(around, ast.stmt):
            return False
    return False


def devices(context: Context) -> str | None:
    """The devices of the run command: as many of those that the script chose as can share batches that no option sizes, if two can."""
    chosen = cuda_visible_devices.devices(context)
    names = chosen.split(",") if chosen and context.options.starts != "spawn" else []
    sizes = [size for _, option, size in _sizes(context) if not option]
    fitting = (n for n in range(len(names), 1, -1) if not any(size % n for size in sizes))
    return ",".join(names[: next(fitting, len(names))]) or chosen


def _sizes(context: Context) -> Iterator[tuple[New, str | None, int]]:
    """The batch sizes of the training loaders that are literals, or the defaults of options, with the option."""
    run = context.facts.after
    for loader in dict.fromkeys((*context.facts.loaders, *context.facts.feeding)):
        for obj in run.attribute(loader, "batch_size").objs:
            literal = (None, obj.value) if isinstance(obj, Lit) else (None, None)
            option, size = _default(context, obj.name) if isinstance(obj, Part) else literal
            if type(size) is int:
                yield loader, option, size


def _indivisible(context: Context) -> Iterator[Finding]:
    """Literal or default batch sizes that the ranks of the usual command cannot share."""
    chosen, used = cuda_visible_devices.devices(context), devices(context)
    ranks = len(used.split(",")) if used else 2
    shared = "two" if ranks == 2 else ranks
    for loader, option, size in _sizes(context):
        if size % ranks == 0:
            if chosen and used != chosen and size % (wanted := len(chosen.split(","))):
                why = f"a batch of {size} cannot be divided among {wanted} ranks: the command starts {ranks} of them"
                yield context.manual(CODE, loader.node, why, level=Safety.NOTE)
            continue
        finding = f"a batch of {size} cannot be divided among {shared} ranks; the script then stops"
        fix = "train with a batch size that the number of ranks divides, or give each rank one of its own: --batch-size per-rank"
        if option:  # the script is right as it stands: whoever runs it chooses the size
            finding = f"by default {option} is {size}, which cannot be divided among {shared} ranks: the script then stops"
            fix = f"run it with a {option} that the number of ranks divides, or give each rank one of its own: --batch-size per-rank"
        yield context.manual(
            CODE,
            loader.node,
            finding,
            fix,
            level=Safety.REVIEW if not option and (size == 1 or ranks != 2) else Safety.NOTE,
            answered_by=DIVIDED_BATCHES,  # the size is the script's own, or what its arguments say
        )


def _default(context: Context, name: str) -> tuple[str | None, object]:
    """A command-line option as it is written, and its default, where that is one number."""
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            if not (isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
                continue
            flags = [a.value for a in node.args if isinstance(a, ast.Constant) and str(a.value).lstrip("-").replace("-", "_") == name]
            default = argument(node, None, "default")
            found = context.facts.after.value(default).objs if flags and default is not None else frozenset()
            if len(found) == 1 and isinstance(number := next(iter(found)), Lit):
                return str(flags[0]), number.value
    return None, None
