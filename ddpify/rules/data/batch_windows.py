"""Why the rows of a batch made by hand may be something else than its samples, such as steps of one sequence through time."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterator

from ddpify.facts import batch_source, collect, manual_batches
from ddpify.facts.manual_batches import parts_of
from ddpify.facts.model import Call, Class, Func, Lit, New, Obj, Part, Tup, Value, join, paths_of
from ddpify.facts.origins import Origin
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, arguments, last_name, same, structure, walk
from ddpify.placement.rows import ALIGNED
from ddpify.rules.context import Context
from ddpify.rules.data import repeated_rows
from ddpify.rules.data.sizes import SHAPES, shaping, sizes_of

SIDE_BY_SIDE = ("columns", "lines")
RECIPE = "give each rank different rows of each batch, equally many: x[i : i + B][rank::world_size]"
COLUMNS = "give each rank its own columns, data[:, rank::world_size], and a hidden state of that many; do not cut the time steps"
_REPEATS = frozenset(("tile", "repeat", "repeat_interleave", "linspace", "eye", "expand"))
_COUNTING = frozenset("range xrange trange tqdm print format len int float min max round str isinstance info debug update log".split())
_PICKS = frozenset(("narrow", "index_select", "select", "take", "gather"))
_TIME_FIRST = ("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.Transformer", "torch.nn.MultiheadAttention")
_ORDER = "draw the order with torch.randperm, and let all ranks use rank 0's"


def other_than_samples(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Why the rows of what is cut may be something else than the samples of a batch, and what to do then."""
    known = context.facts.batch_sources
    if all(known[o.node].kind in SIDE_BY_SIDE for o in trained):
        return _states(context)
    reason = _through_time(context, set(trained)) or _other_draws(context, trained)
    reason = reason or _one_by_one(context, trained) or _slices(context, trained) or _beside_constants(context, trained)
    sizes = {_number(context, s) for o in trained if (s := known[o.node].size) is not None}
    if reason is None and len(sizes) > 1 and any(o.path == batch_source.DRAW for o in trained):
        return "these random tensors have several sizes, or not a batch's: it is not clear which dimension counts samples", RECIPE
    return reason


def _through_time(context: Context, trained: set[New]) -> tuple[str, str] | None:
    """Whether the slices go to a model that reads them as windows of one sequence."""
    run, forwards = context.facts.after, {node for model in context.facts.models for node in model.forwards}
    for call in run.trace.calls:
        if call.node in forwards and any(_carried(context, v, call) for v in (*call.args, *call.keywords.values())):
            why = "the model continues from its output for the batch before: these slices are windows of time, not rows of samples"
            return why, COLUMNS
        rows_first = [a for a in call.args[:1] if a.batches() & trained and a.scale == "sample" and not _samples_second(a)]
        if rows_first and any(_time_first(o) for o in run.unwrap(call.func)):
            return (
                "the first dimension of this layer's input is time: cut by rows, each rank would get other time steps, not samples",
                COLUMNS,
            )
    return None


def _samples_second(value: Value) -> bool:
    """Whether the rows that are cut have come to lie along the second dimension of a tensor, or are packed sequences."""
    return value.shape is not None and (value.shape.axis == 1 or value.shape.packed)


def _other_draws(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Whether other data changes with each step, or the order of the rows is drawn by each rank for itself."""
    run, known = context.facts.after, context.facts.batch_sources
    other = _otherwise(context)
    if other is not None:
        return f"`{ast.unparse(other)}` changes at each step, too, and the analysis could not tell its batch dimension", RECIPE
    for node in {n for loss in _losses(context) for n in loss.of_kind("sized")}:
        if manual_batches.is_other_draw(run, node, known):
            return f"`{ast.unparse(node)}` is drawn at each step, too, and the analysis could not tell its batch dimension", RECIPE
    sampled = next((c for c in run.trace.calls if "frac" in c.keywords and c.loops), None)
    return (
        (f"`{ast.unparse(sampled.node)}` draws an order, which may differ between ranks: samples would be missed and repeated", _ORDER)
        if sampled is not None
        else None
    )


def _beside_constants(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Whether what is drawn is no batch, but added to other data, or the like: a rank's part of it would have fewer rows."""
    run, drawn = context.facts.after, {o for o in trained if o.path == batch_source.DRAW}
    for node in run.trace.values if drawn else ():
        operands = list(map(run.value, _combined(node)))
        rows = [v for v in operands if v.scale == "sample" and not v.batches().isdisjoint(drawn)]
        if rows and any(_is_table(v) and not all(_is_for_each(run, v, r) for r in rows) for v in operands):
            text = ast.unparse(node)
            return f"`{text}` combines what is drawn with other data that may have as many rows, and that every rank has all of", RECIPE
    return None


def _combined(node: ast.AST) -> list[ast.expr]:
    """The operands whose entries at the same place an expression combines."""
    if isinstance(node, ast.BinOp):
        return [] if isinstance(node.op, ast.MatMult) else [node.left, node.right]
    if not isinstance(node, ast.Call) or last_name(node.func).rstrip("_") not in ALIGNED:
        return []
    return [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *arguments(node)]


def _is_table(value: Value) -> bool:
    """Whether a value is a constant of several rows, for all that is known."""
    tensor = value.shape is not None and value.shape.ndim != 1 and not value.shape.front and not value.objs
    return tensor and value.scale is None and not any(map(value.of_kind, ("parameters", "weight", "forward", "batch")))


def _is_for_each(run: Run, table: Value, rows: Value) -> bool:
    """Whether a constant has so few dimensions that it meets each sample by itself: a mask of (time, time) for (samples, time, time)."""
    if table.shape is None or rows.shape is None or table.shape.ndim is None or not rows.shape.sure:
        return False
    least, base = table.shape.ndim + rows.shape.axis + 1 - rows.shape.dims, rows.shape.base
    return least <= 0 if base is None else run.interpreter.claims.has(base, least)


def _slices(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Whether what is sliced has its samples along another dimension, is no tensor, or is sliced in several places."""
    run, known = context.facts.after, context.facts.batch_sources
    bounds: dict[tuple[ast.AST, Hashable], set[Hashable]] = {}
    for node in {o.node for o in trained}:
        if not isinstance(node, ast.Subscript):
            continue
        if known[node].kind == "rows":
            tree, data = context.facts.tree_of(node), structure(node.value)
            around = next((up for up in tree.ancestors(node) if isinstance(up, (ast.For, ast.While))), tree.function(node))
            bounds[around, data] = {
                structure(n.slice)
                for n in walk(around)
                if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice) and structure(n.value) == data and _varies(n.slice)
                if n not in known or (n.slice.upper is not None and not manual_batches.goes_to_the_end(n, n.slice.upper))
            }
        if any(_transposes(n) for n in (node.value, *_assigned_expressions(context, node.value))):
            return "the data is transposed: its columns are the batch, its rows are time steps", COLUMNS
        paths = paths_of(run.value(node.value))
        if any(p.startswith("pandas.") for p in paths):
            return (
                "this slices a pandas table, which the conversion cannot divide among the ranks: all would train on the same rows",
                "take the rows as a tensor first: torch.tensor(table.values)",
            )
        if any(p.startswith("torch.utils.data.") for p in paths):
            return (
                "this slices a data set: all ranks would train on the same rows",
                "let a DataLoader with a DistributedSampler make the batches",
            )
    if any(len(slices) > 1 for slices in bounds.values()):
        return "two slices of one sequence: these may be windows of time, not rows of samples, and cannot be divided by rows", COLUMNS
    return None


def _states(context: Context) -> tuple[str, str] | None:
    """Why what is made for the samples of a batch, such as a hidden state, cannot be made for this rank's."""
    facts, run = context.facts, context.facts.after
    sized = set(calls_sized_by_batch(context))
    for call in run.trace.calls:
        passed = (*call.args, *call.keywords.values())
        if call.node in context.training:
            if any(not _may_be_none(v) and not _makers(context, v) & sized and _carried(context, v, call) for v in passed):
                return (
                    "it is not clear that the hidden state has a row for each sample: its shape may not fit a rank's part of a batch",
                    COLUMNS,
                )
        elif facts.model_of(call.func) is not None and any(_makers(context, v) & sized for v in passed):
            return "a state made for the batches of the training is used elsewhere, too", COLUMNS
    for node in sized:
        trains = all(any(t.backward.stack[: len(c.stack)] == c.stack for t in facts.loops) for c in run.calls(node))
        if not trains or not facts.is_edited(node):
            return f"`{ast.unparse(node)}` is made for the batches of the training, and elsewhere", COLUMNS
    return None


def _makers(context: Context, value: Value) -> set[object]:
    """The calls, handed a number of samples, that made a value or what it holds."""
    return {o.of for o in _all_origins(context, value) if o.kind == "sized"}


def _may_be_none(value: Value) -> bool:
    return any(isinstance(o, Lit) and o.value is None for o in value.objs)


def calls_sized_by_batch(context: Context) -> list[ast.AST]:
    """The calls of the entry, handed the number of samples of a batch, whose result reaches a loss."""
    known = context.facts.batch_sources
    calls = {n for t in context.facts.loops for n in t.loss.of_kind("sized") if n in known and known[n].kind == "state"}
    inner = {n for n in calls for c in context.facts.after.calls(n) if calls & set(c.stack)}
    return sorted(calls - inner, key=lambda n: getattr(n, "lineno", 0))


def _all_origins(context: Context, value: Value, depth: int = 0) -> frozenset[Origin]:
    """The origins of a value and of what it holds."""
    run, out = context.facts.after, value.origins
    for obj in value.objs if depth < 5 else ():
        parts = [run.attribute(obj, name) for name in ("[]", "iterable")] if isinstance(obj, New) else []
        for inner in obj.items if isinstance(obj, Tup) else parts:
            out |= _all_origins(context, inner, depth + 1)
    return out


def _varies(rows: ast.Slice) -> bool:
    return rows.lower is not None and any(isinstance(n, ast.Name) for n in walk(rows.lower))


def _losses(context: Context) -> list[Value]:
    return [loop.loss for loop in context.facts.loops if collect.comes_from_no_loader(context.facts.after, loop)]


def _otherwise(context: Context) -> ast.expr | None:
    """What else in a loss is picked from data by the number of the step, or by chance."""
    run, steps = context.facts.after, context.facts.training_loops
    origins = {o for loss in _losses(context) for o in loss.origins}
    moving = {o for o in origins if (o.kind == "index" and o.of in steps) or (o.kind == "drawn" and _at_steps(run, o.of, steps))}
    for tree in context.facts.trees.values() if moving else ():
        for node in tree.of(ast.Subscript, ast.Call):
            index, picked = join([run.value(n) for n in _picked_by(node)]), run.value(node)
            own = (
                index.origins & moving
                and not index.batches()
                and not picked.batches()
                and not picked.of_kind("output")
                and not picked.of_kind("sometimes")
            )
            if own and node not in context.facts.batch_sources and not _in_module(context, tree, node):
                return node
    return None


def _at_steps(run: Run, node: object, steps: Collection[ast.AST]) -> bool:
    """Whether something is drawn in a loop of training: a parameter, for one, is drawn before."""
    return any(loop.node in steps for call in run.calls(node) for loop in call.loops) if isinstance(node, ast.AST) else True


def _picked_by(node: ast.expr) -> list[ast.expr]:
    """The places at which an expression reads data: its index, the starts of its slices, or the arguments of a method that picks."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return [index.lower or index if isinstance(index, ast.Slice) else index for index in parts_of([node.slice])]
    picks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PICKS
    return node.args if picks and isinstance(node, ast.Call) else []


def _one_by_one(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Whether something else is made with the batch size of a draw: by a comprehension, a loop, or a call that may make as many."""
    for node in as_long(context, trained):
        if not repeated_rows.repeats_one_row(context, node):
            shown = node.iter if isinstance(node, ast.For) else node
            why = f"`{ast.unparse(shown)}` is as long as a batch, and every rank has only its part of one: shapes would not fit"
            return why, "use the rank's part of the batch size there"
    return None


def as_long(context: Context, trained: list[New]) -> Iterator[ast.ListComp | ast.GeneratorExp | ast.Call | ast.For]:
    """What else is made with the batch size of a draw, and of no loader's batch."""
    run = context.facts.after
    drawn = [run.attribute(o, "batch_size") for o in trained if o.path == batch_source.DRAW]
    numbers = {o for size in drawn for o in size.objs if isinstance(o, (Part, Lit))}
    shared_out = {source.size for source in context.facts.batch_sources.values()}
    read, shaped = context.once(sizes_of).read, {call.node for call in shaping(context)}
    for tree in context.facts.trees.values() if numbers else ():
        nodes: list[ast.ListComp | ast.GeneratorExp | ast.Call | ast.For] = tree.of(ast.ListComp, ast.GeneratorExp, ast.Call, ast.For)
        for node in nodes:
            loaded = any(map(run.is_loader, run.value(node).batches()))
            sizes = _sizes_in(context, node) if node not in context.facts.batch_sources and not loaded else []
            sizes = [s for s in sizes if not (node in shaped and read(run.value(s)))]  # divided beside those of the loaders
            if any(run.value(s).objs & numbers and not run.value(s).of_kind("world") for s in sizes if s not in shared_out):
                yield node


def _sizes_in(context: Context, node: ast.AST) -> list[ast.expr]:
    """The numbers that what a call, a comprehension or a loop makes may be as long as."""
    if isinstance(node, ast.Call):
        return manual_batches.size_arguments(node) if _may_size_by_argument(context, node) else []
    over = node.generators[0].iter if isinstance(node, (ast.ListComp, ast.GeneratorExp)) else None
    over = node.iter if isinstance(node, ast.For) and manual_batches.puts_together(node) else over
    return over.args if isinstance(over, ast.Call) and "range" in context.facts.after.value(over.func).paths() else []


def _may_size_by_argument(context: Context, node: ast.Call) -> bool:
    """Whether a call may make something as long as a number it is handed: by its name, or at a step by a library."""
    run, name = context.facts.after, last_name(node.func)
    if name in _REPEATS:
        return True
    if (made := run.value(node).objs) and all(isinstance(o, (Lit, Part)) for o in made):
        return False  # a number itself: `config.get("batch_size", 4)`
    if name in _COUNTING or any(isinstance(o, (Func, Class)) for o in run.value(node.func).objs):
        return False
    steps = {t.batch.node for t in context.facts.loops if t.batch is not None}
    return name not in SHAPES and any(loop.node in steps for call in run.calls(node) for loop in call.loops)


def _in_module(context: Context, tree: Tree, node: ast.AST) -> bool:
    """Whether a node stands in the class of a network."""
    classes = context.facts.after.interpreter.classes
    around = (classes.get(up) for up in tree.ancestors(node) if isinstance(up, ast.ClassDef))
    return any(cls is not None and any("torch.nn" in b for b in context.facts.after.interpreter.library_bases(cls)) for cls in around)


def _carried(context: Context, value: Value, call: Call) -> bool:
    """Whether a forward's argument is what it returned the time before: by its origin, or by a name that a loop carries round."""
    if any(isinstance(o.of, tuple) and o.of[0] is call.node for o in _all_origins(context, value) if o.kind in ("output", "sometimes")):
        return True
    return any(_by_name(context, value, node) for node in (call.node, *call.stack) if isinstance(node, ast.Call))


def _by_name(context: Context, value: Value, node: ast.Call) -> bool:
    """Whether a call is handed a value by a name that it is assigned to, and a loop carries the name round."""
    run = context.facts.after
    tree = run.scopes.tree(node)
    statement = tree.statement(node) if tree is not None else None
    loop = next((up for up in tree.path(node) if isinstance(up, (ast.For, ast.While))), None) if tree is not None else None
    if loop is None or not isinstance(statement, ast.Assign):
        return False
    passed = [a for a in (*node.args, *(k.value for k in node.keywords)) if run.value(a) == value]
    again = (name for name in parts_of(statement.targets) if any(run.scopes.same(name, a) for a in passed))
    return any(run.definitions.exposed(loop, run.definitions.variable(name)) for name in again)


def _time_first(obj: Obj) -> bool:
    """Whether an object is a layer whose input has time as its first dimension."""
    if not isinstance(obj, New) or not obj.path.startswith(_TIME_FIRST):
        return False
    keywords = obj.node.keywords if isinstance(obj.node, ast.Call) else []
    return not any(k.arg == "batch_first" and not (isinstance(k.value, ast.Constant) and k.value.value is False) for k in keywords)


def _transposes(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("t", "T", "mT", "transpose", "permute") for n in walk(node))


def _assigned_expressions(context: Context, node: ast.expr) -> Iterator[ast.expr]:
    """What the name of some data was given, anywhere, and what the function returns that made it."""
    if not isinstance(node, ast.Name):
        return
    assigned = [s for tree in context.facts.trees.values() for s in tree.of(ast.Assign) if any(same(t, node) for t in s.targets)]
    for value in (s.value for s in assigned):
        yield value
        for func in context.facts.after.value(value.func).objs if isinstance(value, ast.Call) else ():
            if isinstance(func, Func):
                yield from (n for n in walk(func.node) if isinstance(n, ast.expr))


def _number(context: Context, size: ast.expr) -> object:
    """What makes two sizes the same."""
    objs = context.facts.after.value(size).objs
    only = next(iter(objs)) if len(objs) == 1 else structure(size)
    return only.value if isinstance(only, Lit) else only
