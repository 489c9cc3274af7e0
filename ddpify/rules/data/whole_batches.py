"""Run models on each rank's rows of batches that are whole on all ranks.

What it does: where something of a script is right for whole batches only (a loss that combines samples,
    batches that a sampler composes, numbers of which no average is known), each rank reads its part of the batches of the loaders, and
    all ranks get the whole ones. Each rank runs the trained models on its own rows, and gets all ranks' rows of their outputs: all that
    follows is on every rank what it was on one device. Loaders that evaluate are read by rank 0; with
    `--whole-batches from-rank-zero`, so are those that cannot be shared out. Tensors of no loader, which all ranks have made alike (all of
    the data at once, batches that are cut by hand), are whole already; what is drawn for them is what rank 0 draws.
Why: this is what `nn.DataParallel` does, with a process for each GPU; no rank has only its part of what the script computes.
Safety: NOTE; only where every trained model gives one row of outputs for each of its rows, and nothing of the script is left to do then.
    Batches travel between the ranks: where that takes longer than the models do, convert with `--whole-batches never`, and answer what
    `--draft` marks.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from ddpify.edits import Edit, FreshName, InsertBefore, Replace, escaped
from ddpify.facts import library, orders
from ddpify.facts.assumed import AS_WRITTEN, BY_ALL_RANKS, BY_RANK_ZERO, GIVEN, IN_PARTS, SEVERAL_IN_PARTS, SHARE, AssumedEdits
from ddpify.facts.interpret.collated import is_foreign
from ddpify.facts.library.flow import with_entries
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.library.transformers import LANGUAGE_MODELS
from ddpify.facts.model import Call, Class, Func, Lit, Loop, New, Part, Tup, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import arguments, names_stored, walk
from ddpify.options import Options
from ddpify.placement.lattice import REPLICATE
from ddpify.placement.shape import ROWS
from ddpify.placement.values import is_rows
from ddpify.records import replace
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import sizes
from ddpify.rules.data.loader import read_in_parts, trains_where
from ddpify.rules.data.loader_factory import Condition
from ddpify.rules.data.sampler import IN_THREADS
from ddpify.rules.loop.coupled_losses import fills_up_rows, loss_in
from ddpify.rules.loop.loss_terms import plain_terms
from ddpify.rules.model.batch_norm import may_hold_batch_norm

CODE = "DDP308"
TITLE = "run models on parts of whole batches"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a mean over the samples",
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a loss of a package that is not known, where batches are not to be whole",
        "import margins\n"
        "loss = margins.loss(model(x), [float(v) for v in y])\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(whole_batches="never"),
    ),
    Example(
        "a loss of a package that is not known",
        "import margins\n"
        "loss = margins.loss(model(x), [float(v) for v in y])\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "import margins\n"
        "loss = margins.loss(rows_of_all_ranks(model(rows_of_rank(x)), len(x)), [float(v) for v in y])\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip

_WRAPPERS = library.WRAPPERS | {library.DATAPARALLEL}
_GRAPHS = library.LOADERS - {library.DATALOADER}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
_OF_A_BATCH = ("random", "unknown", "sized", "share")  # what else than rows may be as long as a batch
_GRADIENTS = ("grad", "register_hook")
_OF_ONE_SEQUENCE = frozenset(
    f"torch.nn.{name}"
    for name in "RNN LSTM GRU Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder MultiheadAttention".split()
)
_BATCHED = 3  # dimensions of what such a layer takes of several
_LABELS = frozenset(("label", "labels", "target", "targets"))  # given to a library's model, which then may give its loss
_MADE_OF_ROWS = ("other", "chosen")  # of which the next run tells whether a model can run on parts of them
_MOVES = frozenset("to cuda cpu float double half long contiguous detach requires_grad_ type".split())
_READ = {
    BY_RANK_ZERO: "rank 0 reads these batches for all ranks, since what is made of them is known of whole ones only",
    BY_ALL_RANKS: "all ranks get the whole batches, since what is made of them is known of whole ones only",
}
_SIDE_BY_SIDE = frozenset(("zip", "enumerate", "range"))
_RUN = "each rank runs the model on its own rows of the batch, and gets all ranks' rows of the outputs"
_FILLED = f"{_RUN}: filled up to the longest of its own, so that what the model makes of padding, without a mask, differs"


def assumed(context: Context, found: Iterable[Change | Finding]) -> AssumedEdits | None:
    """What is so of a script once all ranks have its batches whole; None where its models cannot run on parts of them.

    `found` is what else would be changed, or left to do.
    """
    facts, run = context.facts, context.facts.after
    by_hand = set(facts.feeding).difference(facts.loaders)
    given = {node: how for node, how in facts.base.redistributed.items() if how == GIVEN}
    if context.options.batch_size == "per-rank" or not (facts.feeding or given) or not facts.models:
        return None
    if _needs_all_rows(context):
        return None
    forwards = {node for model in facts.models for node in model.forwards}
    numbers = {node for loop in facts.loops for node in plain_terms(context, loop.backward.node)}  # the losses of whole batches
    parts, shares = dict[ast.expr, str](), dict[ast.expr, None]()
    for forward in forwards:
        rows: list[ast.expr] = []
        if isinstance(forward, ast.Call) and forward not in numbers:
            rows = _may_be_some(context, forward, forwards, bool(given))
        if isinstance(forward, ast.Call) and rows:
            parts[forward] = SEVERAL_IN_PARTS if _are_several(run, run.value(forward)) else IN_PARTS
            shares |= dict.fromkeys(rows)
        elif not _judges(run, forward, forwards) and not _is_of_single_samples(context, forward):
            return None
    if any(_is_inside(context, parts, item) for item in found if item.code == sizes.CODE):
        return None
    given |= {rows: GIVEN for rows in shares if not facts.loaders and run.value(rows).batches() & by_hand}
    parts |= {rows: f"{parts[rows]}, {SHARE}" if rows in parts else given.get(rows, SHARE) for rows in shares}
    loaders = {o for n in parts for o in run.value(n).batches() if o not in facts.whole_loaders}.union(facts.loaders) - by_hand
    if not parts.keys() >= given.keys():
        return None
    editable = all(isinstance(o, New) and isinstance(o.node, ast.Call) and facts.may_edit(o.node) for o in loaders)
    training = {o.node for o in facts.loaders}  # a call may make loaders that do not train, too
    by = {o.node: BY_ALL_RANKS if o.node in training else BY_RANK_ZERO for o in loaders}
    taken = {o for tree in facts.trees.values() for n in tree.of(ast.Subscript) for o in run.value(n.value).instances()}
    listed = any(o.node in by for o in taken)  # a list of batches, of which some are taken or set
    return AssumedEdits(read_whole=by, redistributed=parts) if parts and editable and not listed else None


def _needs_all_rows(context: Context) -> bool:
    """Whether something in a script would not be right any more where its models run on parts of the batches."""
    facts, run = context.facts, context.facts.after
    return (
        bool(facts.trained_methods)
        or any("torch.autograd.grad" in c.func.paths() or c.func.paths() & IN_THREADS for c in run.trace.calls)
        or any(o.path.partition(".")[0] in LANGUAGE_MODELS for o in facts.trained if isinstance(o, New))  # it gives its loss, or holds it
        or any(c.keywords.keys() & _LABELS and any(map(is_library_model, c.func.instances())) for c in run.trace.calls)
        or any(run.interpreter.is_a(o, *_GRAPHS) for o in facts.loaders)  # a batch of graphs is one graph
        or _reads_gradients(context)
        or _asks_for_class(run)
        or any(_runs_models(context, call) for call in run.trace.calls)
    )


def _may_be_some(context: Context, forward: ast.Call, forwards: Collection[ast.AST], given: bool) -> list[ast.expr]:
    """The arguments of a forward that may be some of their rows; `given`: where all ranks have made some alike, there is nothing else."""
    run = context.facts.after
    if _combines(run, forward) or _judges(run, forward, forwards) or _are_as_long(run, forward) or not context.facts.may_edit(forward):
        return []
    rows = _rows(context, forward)
    beside = [a for a in arguments(forward) if a not in rows] if given else []
    known = _are_alike(run, rows) and all(_as_many(run, run.value(each), run.value(forward)) for each in rows)
    return rows if known and all(_is_option(run.value(a)) for a in beside) else []


def given(context: Context) -> AssumedEdits:
    """What models are given in training that no loader makes, and that all ranks have made alike, is a batch of which each has rows."""
    facts, run = context.facts, context.facts.after
    if facts.feeding or facts.loaders:
        return AS_WRITTEN
    found: dict[ast.expr, str] = {}
    for forward in {node for model in facts.models for node in model.forwards}:
        tensors = [a for a in arguments(forward) if not _is_option(run.value(a))] if isinstance(forward, ast.Call) else []
        found |= {a: GIVEN for a in tensors if _is_alike(context, a)}  # the others may be what forwards make of such rows
    return AssumedEdits(redistributed=found)


def _is_option(value: Value) -> bool:
    """Whether a value is a number, a text or a flag."""
    return bool(value.objs) and all(isinstance(o, Lit) for o in value.objs)


def _is_alike(context: Context, node: ast.expr) -> bool:
    """Whether an expression is a tensor that every rank has made by itself, of the same numbers."""
    value = context.facts.after.value(node)
    own = any(map(value.of_kind, ("forward", "graded", "parameters", "weight")))
    alike = not value.objs and not own and context.placement(value) == REPLICATE
    columns = _has_columns(context.facts.after, value) if alike else False
    return _is_all_of_the_data(context, node) if columns is None else columns


def _is_all_of_the_data(context: Context, node: ast.expr) -> bool:
    """Whether each step has the same tensor, which is then no single sample, and no layer reads it that takes one sequence alone, too."""
    tree, run = context.facts.tree_of(node), context.facts.after
    names = [n for n in walk(node) if isinstance(n, ast.Name)]
    stored = {n.id for loop in context.facts.training_loops for n in names_stored(loop)}
    given = {a.arg for a in walk(tree.function(node)) if isinstance(a, ast.arg)}
    fixed = bool(names) and not any(n.id in stored | given for n in names) and not any(isinstance(n, ast.Subscript) for n in walk(node))
    sequences = (call for call in run.trace.calls if _OF_ONE_SEQUENCE & call.func.kinds())
    return fixed and all(_takes_a_batch(context, call) for call in sequences)


def _takes_a_batch(context: Context, call: Call) -> bool:
    """Whether a layer that also takes one sequence alone has a batch of them: its state, or what it gives, has three dimensions."""
    run, tree = context.facts.after, context.facts.tree_of(call.node)
    state = (v for given in call.args[1:] for v in (given, *_held(run, given)))
    if any(v.shape is not None and v.shape.ndim == _BATCHED for v in state):
        return True
    taken = [n.value for n in tree.of(ast.Subscript) if isinstance(n.slice, ast.Tuple) and len(n.slice.elts) == _BATCHED]
    given_by = (tree.statement(d) for name in taken if isinstance(name, ast.Name) for d in run.definitions.reaching(name).definitions)
    return any(isinstance(s, ast.Assign) and s.value is call.node for s in given_by)


def _has_columns(run: Run, value: Value) -> bool | None:
    """Whether a tensor has two dimensions or more: a single one may be that of the entries of one sample. None where it is not known."""
    if value.shape is None:
        return None
    if value.shape.ndim is not None:
        return value.shape.dims > 1
    made = value.shape.base
    if isinstance(made, ast.Subscript):
        return value.shape.dims >= 0  # a list of numbers picks them: those are of samples
    if not isinstance(made, ast.Call) or value.shape.dims < 0:
        return False
    rows = [row for given in made.args for row in _held(run, run.value(given))]
    if not rows:
        return None
    return all(row.objs and all(isinstance(o, Tup) or (isinstance(o, New) and o.path == "list") for o in row.objs) for row in rows)


def with_shares(context: Context) -> AssumedEdits | None:
    """What is assumed of a script whose batches are whole, where rank 0 reads the loaders that cannot be shared out, if it may."""
    training = {o.node for o in context.facts.loaders}  # now that what others give the training is whole
    left = {o.node for o in context.facts.loaders if not read_in_parts(context, o)}
    base = context.facts.base
    by = {node: by if node in training - left else BY_RANK_ZERO for node, by in base.read_whole.items()}
    return replace(base, read_whole=by) if not left or context.options.whole_batches == "from-rank-zero" else None


def _is_inside(context: Context, parts: Collection[ast.expr], item: Change | Finding) -> bool:
    """Whether a number that counts a batch's rows stands inside a forward that is given a part of them, or where its parts are made."""
    inside = context.inside(parts)
    classes = [up for f in inside for up in [context.facts.tree_of(f).parent.get(f)] if isinstance(up, ast.ClassDef)]
    made = [s for c in classes for s in c.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    places = ((context.facts.tree_of(f).shown, getattr(f, "lineno", 0), getattr(f, "end_lineno", 0)) for f in (*inside, *made))
    return any(file == item.file and first <= item.line <= last for file, first, last in places)


def _runs_models(context: Context, call: Call) -> bool:
    """Whether something that is not followed may run a trained model, over this batch or over several GPUs."""
    if any(p.startswith("torch.nn.parallel.") and p not in _WRAPPERS for p in call.func.paths()):
        return True
    given = (*call.args, *call.keywords.values())
    models = context.facts.trained
    runs = any(v.batches() for v in given) and any(context.facts.after.unwrap(v) & models for v in given)
    followed = any(isinstance(o, (Class, Func)) or (isinstance(o, New) and o.cls is not None) for o in call.func.objs)
    return runs and not call.no_grad and not followed


def _reads_gradients(context: Context) -> bool:
    """Whether gradients are read of something else than parameters: a rank has them of its own rows only."""
    run = context.facts.after
    read = [n.value for tree in context.facts.trees.values() for n in tree.nodes() if isinstance(n, ast.Attribute) and n.attr in _GRADIENTS]
    values = [run.value(n) for n in read if n in run.trace.values]
    return any(v.batches() or not (v.of_kind("parameters") or any(isinstance(o, Part) for o in v.objs)) for v in values)


def _asks_for_class(run: Run) -> bool:
    """Whether a script asks of what class a loader is, or has a function called for each of its batches, nobody knows when."""
    asked = [c for c in run.trace.calls if c.func.paths() & {"isinstance", "type", "map", "filter"}]
    return any(run.is_loader(o) for c in asked for given in c.args for o in given.objs)


def _combines(run: Run, forward: ast.Call) -> bool:
    """Whether samples meet in a forward, and not in what it is given: before it, or as rows in two orders."""
    given = [run.value(a) for a in arguments(forward)]
    return not run.value(forward).of_kind("coupled") <= frozenset[object]().union(
        *(v.of_kind("coupled") for v in given)
    ) and not orders.differ(given)


def _are_as_long(run: Run, forward: ast.Call) -> bool:
    """Whether a forward may give rows that are as long as the longest of those it is given: ranks could not gather theirs."""
    filled = [v for c in _filling(run, forward) for v in _held(run, c.result) or [c.result]]
    dims = max((v.shape.ndim or 0 for v in filled if v.shape is not None), default=0)
    made = run.value(forward)
    shapes = [v.shape for v in _held(run, made) or [made] if is_rows(v)]
    return bool(filled) and any(shape is None or shape.ndim is None or shape.ndim >= dims for shape in shapes)


def _filling(run: Run, forward: ast.Call) -> list[Call]:
    """The calls in a forward that fill rows up to the longest of them."""
    return [c for c in run.trace.calls if forward in c.stack and fills_up_rows(c)]


def _is_of_single_samples(context: Context, forward: ast.AST) -> bool:
    """Whether a forward is given one sample of a batch, or what is made of all of them: all ranks run it as it is written."""
    given = list(arguments(forward)) if isinstance(forward, ast.Call) else []
    single = [_is_single(context, a) for a in given]
    return any(single) and all(one or _is_option(context.facts.after.value(a)) for one, a in zip(single, given, strict=True))


def _is_single(context: Context, node: ast.expr, depth: int = 3) -> bool:
    """Whether an expression of a batch has no dimension of the samples: a number of all of them, or one sample, maybe with more axes."""
    value = context.facts.after.value(node)
    if not value.batches() or value.objs or value.scale in ROWS:
        return False
    if value.scale != "other":
        return value.scale is not None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Name) and depth:
        defined = context.facts.after.definitions.reaching(node).definitions
        bound = [context.facts.tree_of(d).statement(d) for d in defined]
        return bool(bound) and all(isinstance(s, ast.Assign) and _is_single(context, s.value, depth - 1) for s in bound)
    return node in value.of_kind("single")


def _as_many(run: Run, given: Value, made: Value) -> bool:
    """Whether a model may be given some of the rows: none are several tensors', and rows that are cut already are not put together."""
    inner = [v for v in _held(run, made) if v is not made]
    if inner:
        return all(_as_many(run, given, v) for v in inner)
    if given.of_kind("joined") != made.of_kind("joined"):
        return False
    before, after = given.of_kind("parts"), made.of_kind("parts")
    return before <= after and not (before and any(map(_may_join, after - before)))


def _may_join(view: object) -> bool:
    """Whether a view makes rows of more dimensions, of which one may be several that follow one another: `x.view(-1, 2, 16)`."""
    return isinstance(view, ast.Call) and len(view.args) > 2


def _are_alike(run: Run, rows: list[ast.expr]) -> bool:
    """Whether all rows of a batch are one for each sample, or all may be several."""
    return len({bool(run.value(given).of_kind("parts")) for given in rows}) < 2


def _judges(run: Run, forward: ast.AST, forwards: Collection[ast.AST]) -> bool:
    """Whether a forward is that of a loss, which takes what other forwards give: all ranks compute it of the whole batch."""
    calls = [c for c in run.calls(forward) if not c.no_grad]
    given = [{node for v in (*c.args, *c.keywords.values()) for _, node in v.of_kind("forward")} - {forward} for c in calls]
    number = not run.value(forward).objs and run.value(forward).scale != "sample"
    return number and bool(calls) and all(not nodes.isdisjoint(forwards) for nodes in given)


def computes_alike(context: Context) -> bool:
    """Whether all ranks compute the same losses, of whole batches alone."""
    run = context.facts.after
    losses = [loss_in(run, loop.backward.node) for loop in context.facts.loops]
    parts = context.facts.base.redistributed.items()
    fed = [run.value(n) for n, how in parts if how.endswith(SHARE)]
    return (
        not context.facts.feeding
        and not any(loss.of_kind("mixed") for loss in losses)
        and not (any(loss.of_kind("unknown") for loss in losses) and any(v.of_kind("unknown") for v in fed))
    )


def _are_several(run: Run, value: Value) -> bool:
    """Whether a value may have several rows for each sample, one after another."""
    unknown = value.scale == "other" and not value.objs
    return bool(value.of_kind("parts")) or unknown or any(_are_several(run, v) for v in _held(run, value) if v is not value)


def _held(run: Run, value: Value) -> list[Value]:
    """What the containers hold that a value may be."""
    return [v for o in value.objs if isinstance(o, (Tup, New)) for v in (o.entries if isinstance(o, Tup) else run.of(o).values())]


def _rows(context: Context, node: ast.Call) -> list[ast.expr]:
    """The arguments of a forward that hold a row for each sample; none where another one depends on the batch, too."""
    out: list[ast.expr] = []
    if any(isinstance(a, ast.Starred) for a in node.args) or _is_for_each_sample(context, node):
        return []
    for given in arguments(node):
        value = context.facts.after.value(given)
        if given in _spread(node):
            if not isinstance(given, ast.Name) or not (is_rows(value) or _is_dict_of_rows(context.facts.after, value)):
                return []
            out.append(given)
            continue
        if any(is_foreign(context.facts.after.attribute(loader, "collate_fn")) for loader in value.batches()):
            return []  # what there is of it may be no tensor, or have nothing that could be shared out
        if value.shape is not None and value.shape.several:
            return []
        made = value.scale in _MADE_OF_ROWS and not _is_single(context, given)
        made = made or any(map(value.of_kind, ("ordered", "reordered", "steps")))
        if is_rows(value, several=True) or (value.batches() and not value.objs and made):
            out.append(given)
        elif any(v.batches() or any(map(v.of_kind, _OF_A_BATCH)) for v in with_entries([value])):
            return []
    repeated = any(isinstance(up, _COMPREHENSIONS) for up in context.facts.tree_of(node).ancestors(node))
    return out if _counted(out) is not None or not repeated else []


def _is_for_each_sample(context: Context, node: ast.Call) -> bool:
    """Whether a loop over the samples of a batch runs a forward, of one without a batch's axis: there is nothing to be shared out."""
    run, batches = context.facts.after, {loop.batch.node for loop in context.facts.loops if loop.batch is not None}
    for call in run.calls(node):
        inner = list(itertools.dropwhile(lambda loop: loop.node not in batches, call.loops))[1:]
        if any(_goes_through_rows(run, loop) for loop in inner):
            return not all(map(_is_batch_of_one, node.args))
    return False


def _goes_through_rows(run: Run, loop: Loop) -> bool:
    """Whether a loop takes one sample after the other, alone or beside another, and not parts of a batch."""
    if any(map(loop.over.of_kind, ("joined", "parts"))) or not all(o.path in _SIDE_BY_SIDE for o in loop.over.instances()):
        return False
    return run.interpreter.per_sample(loop.over) or any(v.scale == "other" and v.batches() for v in with_entries([loop.element]))


def _is_batch_of_one(given: ast.expr) -> bool:
    """Whether an expression gives a sample a batch's axis: `row.unsqueeze(0)`, `row[None]`, `rows[i : i + 1]`."""
    match given:
        case ast.Call(ast.Attribute(attr="unsqueeze"), [ast.Constant(0)]) | ast.Subscript(slice=ast.Constant(None) | ast.Slice()):
            return True
    return False


def _spread(node: ast.Call) -> Sequence[ast.AST | None]:
    """The dicts that a call is passed as `**batch`."""
    return [k.value for k in node.keywords if k.arg is None]


def _is_dict_of_rows(run: Run, value: Value) -> bool:
    """Whether a value is a dict that holds nothing but rows of the batch."""
    held = [run.of(o).values() for o in value.objs if isinstance(o, New) and o.path == "dict"]
    return len(held) == len(value.objs) > 0 and all(some and all(is_rows(v) and not v.objs for v in some) for some in held)


def _counted(rows: Iterable[ast.expr]) -> ast.expr | None:
    """A name of some rows, or an entry of what has one, by which they can be counted."""
    for given in rows:
        while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in _MOVES:
            given = given.func.value
        held = given.value if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant) else given
        if isinstance(held, ast.Name):
            return given
    return None


def changes(context: Context) -> Iterator[Change]:
    """Give all ranks the batches whole, and run the forwards on parts of them."""
    base, tree = context.facts.base, context.tree
    for node in tree.in_order([n for n in base.read_whole if isinstance(n, ast.expr)]):
        by = base.read_whole[node]
        trains = Condition("False") if by == BY_RANK_ZERO else trains_where(context, node)
        shared = f", shared={escaped(trains.text)}" if trains is not None else ""
        edit = Replace(node, f"{context.names['whole_batches']}({{0}}{shared})", (node,))
        edits = (*trains.edits, edit) if trains is not None else (edit,)
        yield Change(CODE, _READ[by], tree.shown, node, edits, level=Safety.NOTE, needs=("whole_batches",))
    for node in tree.in_order([n for n, how in base.redistributed.items() if how.startswith(IN_PARTS)]):
        if isinstance(node, ast.Call):
            yield _in_parts(context, node)


def _in_parts(context: Context, node: ast.Call) -> Change:
    names, parts = context.names, context.facts.base.redistributed
    rows, fresh = _shared(context, node), FreshName(("rows", "given_rows", "model_rows"), node)
    counted = _counted(rows)
    size = str(fresh) if counted is None else escaped(context.source(counted))
    size = f"next(iter({size}.values()))" if counted in _spread(node) else size
    several = ", several=True" * parts[node].startswith(SEVERAL_IN_PARTS)
    several += _as_they_are(context, node)
    text = _given(context, node, f"{names['rows_of_all_ranks']}({{0}}, len({size}){several})")
    edits: list[Edit] = [Replace(given, _given(context, given, "{0}"), (given,)) for given in rows if not parts[given].startswith(IN_PARTS)]
    edits.append(Replace(node, text, (node,), (fresh,) if counted is None else ()))
    of_dict = ("rows_of_rank:dict",) if any(given in _spread(node) for given in rows) else ()
    needs = ("rows_of_rank", "rows_of_all_ranks", *of_dict)
    if isinstance(node.func, (ast.Name, ast.Attribute)) and _needs_statistics(context, node):
        model = context.source(node.func)
        code = f"if not {model}.training:\n    {names['start_alike']}({model}.buffers())  # batch norm's statistics"
        edits.append(InsertBefore(context.tree.statement(node), code))
        needs = (*needs, "start_alike")
    if _filling(context.facts.after, node):
        return Change(CODE, _FILLED, context.tree.shown, node, tuple(edits), level=Safety.NOTE, needs=needs)
    return Change(CODE, _RUN, context.tree.shown, node, tuple(edits), needs=needs)


def _as_they_are(context: Context, node: ast.Call) -> str:
    """The argument that names which of a forward's outputs have no rows, as anchors have none."""
    tuples = [o.entries for o in context.facts.after.value(node).objs if isinstance(o, Tup)]
    places = tuple(sorted({i for entries in tuples for i, entry in enumerate(entries) if not entry.of_kind("whole")}))
    return f", alike={places}" if places else ""


def _needs_statistics(context: Context, node: ast.Call) -> bool:
    """Whether a forward that evaluates, too, uses batch norm's statistics, of which no wrapper gives all ranks those of rank 0."""
    facts, run = context.facts, context.facts.after
    func = run.value(node.func)
    model = facts.model_of(func)
    if model is None or model not in facts.needs_no_wrapper or not func.objs <= run.unwrap(func):
        return False
    training = {loop.batch.node for loop in facts.loops if loop.batch is not None}
    evaluates = any(training.isdisjoint(loop.node for loop in call.loops) for call in run.calls(node))
    return evaluates and may_hold_batch_norm(context, model)


def _shared(context: Context, node: ast.Call) -> list[ast.expr]:
    """The arguments of a forward in parts of which it is given this rank's rows."""
    return [given for given in arguments(node) if context.facts.base.redistributed.get(given, "").endswith(SHARE)]


def _given(context: Context, node: ast.expr, text: str) -> str:
    """The text of an expression, of which a forward in parts may be given this rank's rows; the first gets a name where none has one."""
    if not context.facts.base.redistributed[node].endswith(SHARE):
        return text
    call = next(up for up in context.tree.ancestors(node) if isinstance(up, ast.Call))
    rows = _shared(context, call)
    named = f"{FreshName(('rows', 'given_rows', 'model_rows'), call)} := " if _counted(rows) is None and node is rows[0] else ""
    return f"{context.names['rows_of_rank']}({named}{text})"
