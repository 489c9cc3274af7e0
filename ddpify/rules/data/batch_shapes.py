"""Tensors and lists of the training that are as long as a batch: they are made for this rank's."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import AddParameter, FreshName, Replace, SetArgument
from ddpify.facts.collect import optimizer_parameters
from ddpify.facts.library import numpy
from ddpify.facts.library.flow import with_entries
from ddpify.facts.library.paths import PARAMETER
from ddpify.facts.manual_batches import parts_of, size_arguments
from ddpify.facts.model import Call, Class, Func, New, Value, join
from ddpify.facts.runs import Run
from ddpify.facts.stepped import owners
from ddpify.facts.tree import is_number, own_nodes, structure, walk
from ddpify.placement.shape import ROWS
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data.sizes import CODE, SHAPES, Sizes, divide, divide_inside, in_training, shaping, sizes_of

_OTHER_NUMBERS = frozenset(("eye", "linspace", "logspace", "tile", "repeat_interleave"))  # of classes, steps or copies, as likely
_RECURRENCES = frozenset(("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"))
_ALONG = frozenset(("cumsum", "cumprod", "logcumsumexp"))
_DIFFERENT_ROWS = frozenset(("linspace", "logspace", "repeat", "tile"))
_SIZE_AT = {  # where the sizes stand of what a function makes
    **dict.fromkeys("zeros ones empty rand randn full standard_normal FloatTensor LongTensor Tensor repeat tile".split(), 0),
    **dict.fromkeys("randint normal uniform".split(), 2),
    **numpy.SIZE_AT,
}
_DRAWN_ONCE = "this is drawn once for all samples of a batch, and every rank has only its part of one"
_BY_PLACE = "rows of this are written by their places in a batch, and every rank has only its part of one"
_AS_MANY = "this list is made with the batch size: it must have an entry for each sample of one rank's part of the batch"
_ONE_RANKS = "this shape is made with the batch size: on a rank, it must have the size of that rank's part of the batch"
_WRITTEN_OUT = "this number repeats the batch size, and every rank has only its part of a batch: shapes would not fit"
_PERHAPS_AS_LONG = "what is made with the batch size here may be as long as a batch, and every rank has only its part of one"
_NAMES = ("of_rank", "for_rank", "of_one_rank")
_AS_SAID = "this is made for training, and for full batches elsewhere: training says so, and gets one for its rank's part of a batch"
_AS_GIVEN = "this shape has a row for each sample of what is passed here: on a rank, those of its part of the batch in training"
_TRAINED = "this is trained, and has a row for each place of a batch: every rank has only its part of one, and meets other samples there"
_OTHERS_ROWS = "this may have the rows of another loader's whole batch by then, and every rank has only its part of a batch to put there"
FROM_BATCH = "take it from the batch: x.size(0)"
_FOR_A_SAMPLE = "give each sample of the data set a row, and look it up by the number of the sample: nn.Embedding(len(dataset), n)"


def shapes(context: Context, sizes: Sizes) -> Iterator[Change | Finding]:
    """Tensors of the training that are shaped by a batch size."""
    done: set[ast.AST] = set()
    global_batches = context.whole_batch_calls
    for call in shaping(context):
        node = call.node
        if node in sizes.arguments or node in context.facts.batch_sources or global_batches & {node, *call.stack}:
            continue
        if node not in done and (items := _row_per_sample(context, call, sizes)) is not None:
            done |= {node, *size_arguments(node)}
            yield from items
        for part in size_arguments(node):
            if part not in done and (items := list(_shape(context, call, part, sizes))):
                done.add(part)
                yield from items
    yield from _made_unseen(context, sizes)


def trained_rows(context: Context, sizes: Sizes) -> Iterator[Finding]:
    """What an optimizer moves and has a row for each place of a batch: tensors of a batch's size, or of its rows, that are made once."""
    facts, run = context.facts, context.facts.after
    owned = frozenset(o for optimizer in facts.optimizers for o in owners(facts, optimizer))
    made = {p: call for call in run.trace.calls for p in call.result.instances() if p.path == PARAMETER and p.node is call.node}
    moved = {p: call for p, call in made.items() if not owned.isdisjoint(run.roots(p)) and not any(o.element.batches() for o in call.loops)}
    found: list[ast.AST] = [
        call.node
        for p, call in moved.items()
        if _as_long_as_a_batch(context, call, sizes) or (_written_as_long(call, sizes, run) and _is_put_together_with_rows(context, p))
    ]
    found += [o.node for o in facts.optimizers if any(v.scale in ROWS for v in facts.before.held(optimizer_parameters(facts, o)))]
    for node in dict.fromkeys(found):
        yield context.manual(CODE, node, _TRAINED, _FOR_A_SAMPLE)


def _as_long_as_a_batch(context: Context, made: Call, sizes: Sizes) -> bool:
    """Whether a tensor is made of the size of a batch, or of its rows, at once or from one that is."""
    given = _made_of(made, context.facts.after)
    return any(v.scale in ("sample", "count") or v.of_kind("share") or sizes.read(v) or sizes.derived(v) for v in with_entries(given))


def _written_as_long(made: Call, sizes: Sizes, run: Run) -> bool:
    """Whether the first size of a tensor is a number that is written out, and the batch size where that is written out."""
    return any(sizes.equal(v) for v in list(with_entries(_made_of(made, run)))[:1])


def _made_of(made: Call, run: Run) -> list[Value]:
    """The sizes, or the tensors, that a tensor is made of."""
    given = [*made.args, *made.keywords.values(), made.receiver]
    nodes = [n for v in given for n in v.of_kind("sized") if isinstance(n, ast.Call)]
    return [run.value(part) for n in nodes for part in size_arguments(n)] + given


def _is_put_together_with_rows(context: Context, parameter: New) -> bool:
    """Whether a tensor of several dimensions is put together, entry by entry, with rows of a batch of no more dimensions."""
    for node in context.tree.of(ast.BinOp):
        left, right = (context.facts.after.value(n) for n in (node.left, node.right))
        rows, tensor = (right, left) if parameter in left.objs else (left, right)
        if parameter in tensor.objs and rows.scale == "sample" and not isinstance(node.op, ast.MatMult) and tensor.shape is not None:
            ndim = rows.shape.ndim if rows.shape is not None else None
            return tensor.shape.dims > 1 and ndim in (None, tensor.shape.ndim)
    return False


def _made_unseen(context: Context, sizes: Sizes) -> Iterator[Finding]:
    """What a loss reads that a library makes of the batch size, in a way that is not known."""
    losses = [loop.loss for loop in context.facts.loops]
    read = {o for loss in losses for kind in ("drawn", "unknown") for o in loss.of_kind(kind)}
    for call in context.facts.after.trace.calls:
        own = call.method in SHAPES or any(isinstance(o, (Func, Class)) for o in call.func.objs) or call.node in context.facts.batch_sources
        if own or not ({call.node, *call.func.paths()} & read and in_training(context, call)):
            continue
        for part in size_arguments(call.node):
            if sizes.read(context.facts.after.value(part)):
                yield context.manual(CODE, part, _PERHAPS_AS_LONG, FROM_BATCH, level=Safety.REVIEW)


def _shape(context: Context, call: Call, part: ast.expr, sizes: Sizes) -> Iterator[Change | Finding]:
    """A number that a tensor of the training is shaped by."""
    value = context.facts.after.value(part)
    if structure(part) in sizes.computed:
        yield from divide(context, part, _ONE_RANKS) if not value.of_kind("world") else ()
    elif sizes.read(value):
        yield from _read_as_shape(context, call.node, part, sizes)
    elif sizes.derived(value):
        yield from divide_inside(context, part, sizes, _ONE_RANKS, "this shape is computed from the batch size")
    elif sizes.equal(value) and not _is_parameter(context, call.node):
        if _is_of_states(context, call.node, part):
            yield _as_many_as_given(context, part) or context.manual(CODE, part, _WRITTEN_OUT, FROM_BATCH)
        elif _counts_rows(call) and part in parts_of(call.node.args[:1]):
            yield context.manual(CODE, part, _WRITTEN_OUT, FROM_BATCH)


def _read_as_shape(context: Context, node: ast.Call, part: ast.expr, sizes: Sizes) -> Iterator[Change | Finding]:
    """A batch size in a shape: divided there, or, in a function that serves other batches, too, where training hands it over."""
    handed = _handed_by_training(context, node, sizes)
    if handed is None:
        others = context.once(_handed_elsewhere)
        handed = [at for at in _handed(context, context.facts.after.calls(node), sizes) if at in others]
        if not handed:
            yield from divide(context, part, _ONE_RANKS)
    if None in handed and (change := _where_called(context, node, part)) is not None:
        yield change
        return
    for at in handed:
        if at is None:
            yield context.manual(
                CODE,
                part,
                "this shape must be that of one rank's part of the batch in training, and that of a full batch elsewhere",
                FROM_BATCH,
            )
        else:
            yield from divide(context, at, _ONE_RANKS)


def _as_many_as_given(context: Context, part: ast.expr) -> Change | None:
    """The change of a batch size in a forward that is given rows: there are as many as the rows have, in training and elsewhere."""
    tree = context.facts.tree_of(part)
    function = tree.function(part)
    if not isinstance(function, ast.FunctionDef) or function not in context.forwards or not context.facts.is_edited(part):
        return None
    names, run = [n for n in own_nodes(function) if isinstance(n, ast.Name)], context.facts.after
    repeated = {n for up in tree.ancestors(part) if isinstance(up, (ast.For, ast.While)) for n in walk(up)}
    written = {n.id for n in names if isinstance(n.ctx, ast.Store) and (n in repeated or not tree.before(part, n))}
    parameters = {a.arg for a in function.args.args} - written
    for node in (n for n in names if isinstance(n.ctx, ast.Load) and n.id in parameters):
        axis = _rows_along(run.value(node))
        if axis is not None and run.definitions.reaching(node).definitions == [function]:
            edit = Replace(part, f"{node.id}.size({axis})", (part,))
            return Change(CODE, _AS_GIVEN, tree.shown, part, (edit,))
    return None


def _where_called(context: Context, node: ast.Call, part: ast.expr) -> Change | None:
    """The change of a batch size in what makes tensors of the training and others: by the rows that are given, or as each call says."""
    return _as_many_as_given(context, part) or _as_training_says(context, node, part)


def _as_training_says(context: Context, node: ast.Call, part: ast.expr) -> Change | None:
    """A function to which the calls of the training say that a tensor is for one rank's part of a batch."""
    facts, run = context.facts, context.facts.after
    function = facts.tree_of(part).function(part)
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or not facts.is_edited(part):
        return None
    sites: dict[ast.AST, set[bool]] = {}
    for call in run.calls(node):
        sites.setdefault(call.stack[-1] if call.stack else node, set()).add(in_training(context, call))
    training = [site for site, trains in sites.items() if trains == {True} and isinstance(site, ast.Call)]
    known = all({f for c in run.calls(site) for f in c.func.functions()} == {function} for site in training)
    if not training or not known or {True, False} in sites.values() or not all(map(facts.is_edited, training)):
        return None
    edits, needs = context.divided(part)
    if not edits:
        return None
    name = FreshName(_NAMES, function, function)
    own = Replace(part, f"{context.names['per_rank']}({{0}}) if {name} else {{0}}", (part,))
    said = [SetArgument(site, str(name), "True") for site in training]
    added = AddParameter(function, str(name), "False", optional=True, binds=(name,))
    return Change(CODE, _AS_SAID, facts.tree_of(part).shown, part, (added, own, *said), needs=needs)


def _rows_along(value: Value) -> int | None:
    """The dimension of the samples in the rows of a batch, where it is known."""
    shape = value.shape
    if value.scale != "sample" or not value.batches() or value.objs or shape is None:
        return None
    return shape.axis if shape.sure and not shape.packed and not shape.several else None


def _is_of_states(context: Context, made: ast.Call, part: ast.expr) -> bool:
    """Whether a number is how many samples the first state of a recurrence has, which must be as many as the rows it is run on."""
    sizes = parts_of(size_arguments(made))
    if len(sizes) != 3 or sizes[1] is not part:
        return False
    recurrences = (c for c in context.facts.after.trace.calls if not c.func.kinds().isdisjoint(_RECURRENCES))
    states = (v for c in recurrences for v in with_entries([*c.args[1:2], *(c.keywords[k] for k in c.keywords if k == "hx")]))
    return any(made in v.of_kind("sized") for v in states)


def _handed_by_training(context: Context, node: ast.Call, sizes: Sizes) -> list[ast.expr | None] | None:
    """Where training hands over the batch size to what makes a tensor for others, too; None where that is for training alone."""
    calls = context.facts.after.calls(node)
    given = [_is_given(context, call, sizes) for call in calls]
    trains = [in_training(context, call) and (here or not any(given)) for call, here in zip(calls, given, strict=True)]
    return None if all(trains) else _handed(context, [call for call, training in zip(calls, trains, strict=True) if training], sizes)


def _handed(context: Context, calls: Iterable[Call], sizes: Sizes) -> list[ast.expr | None]:
    """Where some calls are handed the batch size, each place once."""
    return list(dict.fromkeys(_handed_over(context, call, sizes) for call in calls))


def _handed_elsewhere(context: Context) -> set[ast.expr | None]:
    """Where training hands over the batch size to what makes tensors for others, too: it is divided there for all that is handed it."""
    sizes, out, value = context.once(sizes_of), set[ast.expr | None](), context.facts.after.value
    for node in dict.fromkeys(call.node for call in shaping(context)):
        if any(sizes.read(context.facts.after.value(part)) for part in size_arguments(node)):
            handed = _handed_by_training(context, node, sizes) or []
            apart = None in handed and all(_where_called(context, node, p) for p in size_arguments(node) if sizes.read(value(p)))
            out.update(at for at in handed if at is not None and not apart)
    return out


def _is_given(context: Context, call: Call, sizes: Sizes) -> bool:
    """Whether a call is given the batch size where it is made from, rather than another number by the same name."""
    given = list(with_entries([*call.args, *call.keywords.values()]))
    lists = [context.facts.after.attribute(o, "[]") for v in given for o in v.instances() if o.path == "list"]
    return any(map(sizes.read, [*given, *lists]))


def _handed_over(context: Context, call: Call, sizes: Sizes) -> ast.expr | None:
    """The argument that passes the batch size to the function around a call."""
    for node in reversed(call.stack):
        if isinstance(node, ast.Call) and context.facts.is_edited(node):
            sizes_passed = [a for a in (*node.args, *(k.value for k in node.keywords)) if sizes.read(context.facts.after.value(a))]
            if len(sizes_passed) == 1:
                return sizes_passed[0]
    return None


def _counts_rows(call: Call) -> bool:
    """Whether the first number that a call is given would count the samples of a batch, if it is the same as the batch size."""
    return call.method not in _OTHER_NUMBERS and (bool(call.loops) or call.method not in ("repeat", "expand"))


def _is_parameter(context: Context, made: ast.Call) -> bool:
    """Whether a tensor is made to be a parameter, which has no row for each sample of a batch."""
    return any(made in call.node.args[:1] and "torch.nn.Parameter" in call.func.paths() for call in context.facts.after.trace.calls)


def _row_per_sample(context: Context, call: Call, sizes: Sizes) -> list[Change | Finding] | None:
    """What is done about a call that makes a row, or a number, of its own for each sample of a batch; None for any other call."""
    node, value = call.node, context.facts.after.value
    if call.method == "arange":
        if _moves_with_batches(context, node, sizes):
            return [_every_nth(context, node, "these are the numbers of the batch's samples")] if _stride(context, node) is None else []
        end = _counted_to(node)
        counts = end is not None and (sizes.equal(value(end)) or sizes.read(value(end)))
        return _numbers_of_rows(context, node, end, sizes) if end is not None and counts else None
    rows, drawn = _number_of_rows(call), _drawn_once(context, call)
    if drawn and (rows is None or not sizes.read(value(rows))):
        given = ((p, value(p)) for p in size_arguments(node))
        of_batch = next((p for p, v in given if v.scale == "count" or sizes.read(v) or sizes.derived(v)), None)
        return [context.manual(CODE, of_batch, _DRAWN_ONCE, FROM_BATCH)] if of_batch is not None else None
    if rows is None or not (sizes.read(value(rows)) or sizes.derived(value(rows))):
        return None
    if _written_by_place(context, node) or _goes_on_from_row_to_row(context, node):
        return [context.manual(CODE, rows, _BY_PLACE, FROM_BATCH)]
    if not context.facts.is_edited(node) or not (drawn or call.method in _DIFFERENT_ROWS):
        return None
    return [] if _stride(context, node) is not None else [_every_nth(context, node, "this has a row for each sample of the batch")]


def _number_of_rows(call: Call) -> ast.expr | None:
    """How many rows a call makes, where its arguments say so."""
    if call.method in ("linspace", "logspace"):
        return argument(call.node, 2, "steps")
    at = _SIZE_AT.get(call.method)
    size = argument(call.node, at, "size") if at is not None else None
    return next(iter(parts_of([size])), None) if size is not None else None


def _drawn_once(context: Context, call: Call) -> bool:
    """Whether all ranks draw the same here, before training begins: what has a row for each sample of a batch keeps it."""
    return not call.loops and call.result.scale in (None, "sample") and bool(call.result.of_kind("drawn"))


def _written_by_place(context: Context, made: ast.Call) -> bool:
    """Whether rows of what a call makes are written that are chosen by their places in the batch: `mask[:4] = 1`."""
    run = context.facts.after
    for store in run.trace.stores:
        if isinstance(store.node, ast.Subscript) and made in run.value(store.node.value).of_kind("sized"):
            first = next(iter(parts_of([store.node.slice])))
            everywhere = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
            named = [run.value(n) for n in walk(first) if isinstance(n, ast.expr)]
            rows = any(v.scale or any(map(v.of_kind, ("batch", "index", "sized"))) for v in named)
            if not (everywhere or rows or (isinstance(first, ast.Constant) and first.value is ...)):
                return True
    return False


def _goes_on_from_row_to_row(context: Context, made: ast.Call) -> bool:
    """Whether each row of what a call makes, at once or after others, gets what stands in those before it: `ones(n).cumsum(0)`."""
    for call in context.facts.after.trace.calls:
        for at, of in enumerate((call.receiver, *call.args[:1])) if call.method in _ALONG else ():
            dim = argument(call.node, at, "dim")
            if made in of.of_kind("sized") and not of.batches() and (dim is None or is_number(dim, 0)):
                return True
    return False


def _counted_to(node: ast.Call) -> ast.expr | None:
    """The end of `arange(end)` or `arange(0, end)`."""
    match node.args:
        case [end]:
            return end
        case [start, end] if is_number(start, 0):
            return end
    return None


def _moves_with_batches(context: Context, node: ast.Call, sizes: Sizes) -> bool:
    """Whether `arange(i * size, (i + 1) * size)` counts the samples of each batch on from those of the one before."""
    ends = [context.facts.after.value(end) for end in node.args]
    counted = len(ends) == 2 and any(sizes.derived(end) for end in ends) and all(end.of_kind("index") for end in ends)
    return counted and context.facts.is_edited(node)


def _numbers_of_rows(context: Context, node: ast.Call, end: ast.expr, sizes: Sizes) -> list[Change | Finding] | None:
    """`arange` over a batch whose numbers a loss reads: each rank takes those of its own rows; None where nothing is known of them."""
    run, stride = context.facts.after, _stride(context, node)
    if stride is not None and run.value(stride).of_kind("world"):
        return []
    for call in run.trace.calls:
        if not any(node in v.of_kind("sized") and not v.batches() for v in call.args):
            continue
        if any(v.of_kind("whole") for v in call.args):  # beside the rows of all ranks, all numbers are meant
            return []
        rows = any(v.scale == "sample" and v.batches() and v.batches() <= sizes.trained for v in call.args)
        if rows and call.result.scale in ("mean", "sum", "total") and context.facts.is_edited(node):
            return [_every_nth(context, node, "these are the row numbers of the batch")]
    if context.facts.is_edited(node) and any(_meets_rows(context, n, node, sizes) for n in context.facts.entry.nodes()):
        return [_every_nth(context, node, "these are the row numbers of the batch")]
    written_out = len(node.args) == 2 and sizes.equal(run.value(end))
    return [context.manual(CODE, end, _WRITTEN_OUT, FROM_BATCH)] if written_out else None


def _meets_rows(context: Context, node: ast.AST, made: ast.Call, sizes: Sizes) -> bool:
    """Whether numbers that a call makes are computed with the rows of a batch of the training: `rows * position`."""
    if not isinstance(node, ast.BinOp):
        return False
    sides = [context.facts.after.value(side) for side in (node.left, node.right)]
    return any(made in v.of_kind("sized") and not v.batches() for v in sides) and any(
        v.scale == "sample" and sizes.batches(v) for v in sides
    )


def _stride(context: Context, node: ast.Call) -> ast.expr | None:
    """The step of the slice that is taken of what a call makes."""
    up = context.tree.parent.get(node)
    return up.slice.step if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Slice) else None


def _every_nth(context: Context, node: ast.Call, what: str) -> Change:
    rank, world = context.names["rank"], context.names["world_size"]
    why = f"{what}: each rank has every world_size-th of them"
    return Change(CODE, why, context.tree.shown, node, (Replace(node, f"{{0}}[{rank}::{world}]", (node,)),))


def refilled(context: Context, sizes: Sizes) -> Iterator[Finding]:
    """Tensors that are filled with a batch of the training, and may hold one of another loader by then."""
    run = context.facts.after
    resized = [c.node.func for c in run.trace.calls if c.method.startswith("resize")]
    for call in run.calls_named("copy_"):
        rows, here = join(call.args), call.receiver
        others = here.batches() - rows.batches() - sizes.trained
        if not (others and rows.scale == here.scale == "sample" and rows.batches() & sizes.trained and in_training(context, call)):
            continue
        buffer = call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node.func
        if not any(isinstance(n, ast.Attribute) and run.scopes.same(n.value, buffer) for n in resized) and not isinstance(buffer, ast.Call):
            yield context.manual(CODE, call.node, _OTHERS_ROWS, "give the batches of the other loader a name of their own")


def lists(context: Context, sizes: Sizes) -> Iterator[Change | Finding]:
    """`[value] * batch_size`, which a loss reads."""
    read = {n for loop in context.facts.loops for n in loop.loss.of_kind("sized") if isinstance(n, ast.BinOp)}
    for node in sorted(read, key=lambda n: (n.lineno, n.col_offset)):
        for side in (node.left, node.right):
            value = context.facts.after.value(side)
            if sizes.read(value):
                yield from divide(context, side, _AS_MANY)
            elif sizes.derived(value):
                yield from divide_inside(context, side, sizes, _AS_MANY, "this shape is computed from the batch size")
