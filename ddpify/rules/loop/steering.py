"""Use rank 0's random numbers on all ranks where they decide how the training goes on.

What it does: a random number that decides how many steps are taken, whether one is, with which learning rate, or on which samples, is
    rank 0's on all ranks; what draws many of them for a data set, between epochs, goes under `with drawn_by_rank_zero():`. What is drawn
    for a batch (noise, augmentation, mixing) goes on differing.
Why: each rank draws its own numbers in training; ranks that take different steps wait for each other forever, or drift apart.
Safety: safe; MANUAL where the draw is made in another module, or under a rank's own condition.
References: https://docs.pytorch.org/docs/stable/notes/randomness.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, Replace
from ddpify.facts import batch_source, library, operands
from ddpify.facts.assumed import GATHERS, GIVEN, GRADED, IN_PARTS, SHARE
from ddpify.facts.model import NOTHING, Call, Decision, Func, Lit, New, Value, join
from ddpify.facts.origins import Origin
from ddpify.facts.tree import Tree, arguments, inside, is_generator, last_name, own_nodes, same, walk
from ddpify.facts.weight_writes import drawn
from ddpify.placement.values import is_rows
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.data import draws
from ddpify.rules.loop import caught, padding
from ddpify.rules.loop.branches import has_own_test, parts_ranks
from ddpify.rules.loop.coupled_losses import loss_in

CODE = "DDP406"
TITLE = "share random decisions between ranks"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "noise for a batch",
        "noise = torch.randn(8)\n"
        "loss = criterion(model(x + noise), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a draw that chooses what the batch becomes",
        "if random.random() < 0.5:\n"
        "    x = -x\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a number drawn before training, which nothing in it reads",
        "name = random.randint(0, 9)\n",
        frame="end",
    ),
    Example(
        "a step that is sometimes left out",
        "loss = criterion(model(x), y)\n"
        "if random.random() < 0.9:\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
        "loss = criterion(model(x), y)\n"
        "if same_on_all_ranks(random.random()) < 0.9:\n"
        "    loss.backward()\n"
        "    optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a learning rate that is drawn",
        'optimizer.param_groups[0]["lr"] = 10 ** random.uniform(-3, -1)\n',
        'optimizer.param_groups[0]["lr"] = 10 ** same_on_all_ranks(random.uniform(-3, -1))\n',
        frame="epoch",
    ),
)  # fmt: skip

_WHY = "this random number decides how the training goes on: all ranks use the one that rank 0 draws"
_DRAWN_FOLDS = frozenset(
    f"sklearn.model_selection.{name}"
    for name in ("ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit", "RepeatedKFold", "RepeatedStratifiedKFold")
)
_BEFORE_SIZE = {  # how many arguments a draw of NumPy has before the size of its array; those of Python have none
    **dict.fromkeys(("randint", "uniform", "normal", "beta"), 2),
    "choice": 1,
    "random": 0,
    "rand": 0,
    "randn": 0,
}
_APART = "this random number decides how the training goes on, and every rank draws another: the ranks would hang or drift apart"
_FIX = "draw it from a torch.Generator of its own that has the same seed on all ranks"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Share each draw that something reads which must not differ between ranks."""
    repeated: dict[ast.stmt, set[str]] = {}
    yield from _split(context)
    for node, statements in context.once(_draws).items():
        if not statements:
            yield context.manual(CODE, node, _APART, _FIX) if _must_differ(context, node) else _shared(context, node)
        for statement in statements:
            repeated.setdefault(statement, set()).update(_roots(context, node))
    for statement, roots in repeated.items():
        yield draws.under_rank_zero(context, CODE, _WHY, statement, roots)


def _draws(context: Context) -> dict[ast.Call, list[ast.stmt]]:
    """The draws of which all ranks use rank 0's; with the statements that make many of them for a data set."""
    out: dict[ast.Call, list[ast.stmt]] = {}
    whole = _of_whole_batches(context) if context.facts.whole_loaders else ()
    for values, apart in ((_steering(context), frozenset[ast.AST]()), (whole, _in_parts(context))):
        for node in (n for value in values for n in sorted(value.of_kind("drawn"), key=lambda n: (n.lineno, n.col_offset))):
            if node not in out and node not in context.facts.batch_sources and _in_training(context, node, apart):
                out[node] = _repeated(context, node, apart)
    return out


def _in_parts(context: Context) -> frozenset[ast.AST]:
    """The forwards that each rank runs on its rows of whole batches: what they draw for these rows, no other rank draws."""
    gathers = (c for name in GATHERS for c in context.facts.after.calls_named(name) if isinstance(c.node, ast.Call) and c.node.args)
    given = {n for n, how in context.facts.base.redistributed.items() if how.startswith(IN_PARTS)}
    return frozenset(given | {c.node.args[0] for c in gathers})


def shared_draws(context: Context) -> frozenset[ast.AST]:
    """The draws in training that are the same on all ranks from the statement on that makes them."""
    return frozenset(n for n, statements in context.once(_draws).items() if statements or isinstance(_shared(context, n), Change))


def _steering(context: Context) -> Iterator[Value]:
    """What decides about steps, their settings and their samples."""
    run = context.facts.after
    yield from _tests(context)
    yield from (loop.over for trained in context.facts.loops for loop in trained.backward.loops)
    for store in run.trace.stores:
        if isinstance(store.node, ast.Subscript) and isinstance(store.node.slice, ast.Constant) and store.node.slice.value in _SETTINGS:
            yield store.value
    for call in run.trace.calls:
        if any(path.startswith("torch.optim.") for path in call.func.paths()):
            yield from (*call.args[1:], *(v for k, v in call.keywords.items() if k != "params"))
    yield from _of_loaders(context)
    yield from _of_epochs(context)
    yield from _of_lengths(context)
    yield from _of_slices(context)
    for part in context.tree.of(ast.Subscript):  # which loader the next batch is taken from, which model it trains, which batch it is
        if isinstance(part.ctx, ast.Load) and run.value(part.slice).of_kind("drawn"):
            instances = run.value(part).instances()
            chosen = any(run.is_loader(o) or (o, "iterable") in run.memory or run.interpreter.is_module(o) for o in instances)
            if chosen or _is_ready(context, part):
                yield run.value(part.slice)
    for write in context.weight_writes:
        shared = any(map(context.broadcasts, context.facts.tree_of(write.node).ancestors(write.node)))
        yield Value(frozenset(), frozenset((Origin("drawn", write.node),))) if write.draws and not shared else drawn(run, write)
    yield from (_drawn(call) for call in run.trace.calls if _orders(context, call))  # of the data, whoever reads it


def _is_ready(context: Context, part: ast.Subscript) -> bool:
    """Whether an entry of a list is a batch, of which each rank keeps its rows from before the steps that take one."""
    run = context.facts.after
    loops = {(t.batch or t.backward.loops[-1]).node for t in context.facts.loops if t.batch is not None or t.backward.loops}
    steps = frozenset[ast.AST]().union(*map(inside, loops))
    lists = {o for o in run.value(part.value).instances() if o.path == "list" and steps.isdisjoint((o.node, *o.stack))}
    puts = [c for c in run.trace.calls if c.method in _PUTS and lists & c.receiver.objs] if lists else []
    lists -= {o for c in puts if any(up.node in loops for up in c.loops) for o in c.receiver.instances()}
    entries = library.with_entries(run.interpreter.element(Value(frozenset((o,)))) for o in lists)
    return any(v.of_kind("whole") or not v.batches().isdisjoint(context.facts.feeding) for v in entries)


def _of_epochs(context: Context) -> Iterator[Value]:
    """What is drawn for many batches, and goes into their losses: a temperature of each epoch."""
    for trained in context.facts.loops:
        steps = {loop.node for loop in ([trained.batch] if trained.batch is not None else trained.backward.loops[-1:])}
        for node in trained.loss.of_kind("drawn"):
            if steps and not any(loop.node in steps for call in context.facts.after.calls(node) for loop in call.loops):
                yield Value(frozenset(), frozenset((Origin("drawn", node),)))


def _of_slices(context: Context) -> Iterator[Value]:
    """What batches are cut from, of which each rank takes its rows: samples that are drawn anew for each epoch are those of all ranks."""
    for obj in context.facts.feeding:
        if isinstance(obj, New) and obj.path == batch_source.SLICE and isinstance(obj.node, ast.Subscript):
            yield context.facts.after.value(obj.node.value)


def _of_lengths(context: Context) -> Iterator[Value]:
    """Where rows are cut or resized of which all ranks' are gathered: these are one tensor only if they are equally long."""
    run, gathered = context.facts.after, [n for n, how in context.assumed.redistributed.items() if how in ("whole", GRADED["whole"])]
    loaders = {loader for rows in gathered for loader in run.value(rows).of_kind("whole")}
    for tree in context.facts.trees.values() if loaders else ():
        for part in tree.of(ast.Subscript):
            parts = part.slice.elts if isinstance(part.slice, ast.Tuple) and isinstance(part.ctx, ast.Load) else []
            each = parts[1:]
            ends = [e for cut in each for e in ((cut.lower, cut.upper) if isinstance(cut, ast.Slice) else (cut,)) if e is not None]
            if ends and not loaders.isdisjoint(run.value(part.value).of_kind("batch")):
                yield join([v for v in map(run.value, ends) if not v.of_kind("batch")])
        for call in tree.of(ast.Call):
            values = [run.value(n) for n in (call.func.value if isinstance(call.func, ast.Attribute) else call.func, *arguments(call))]
            if any(is_rows(v, several=True) and not loaders.isdisjoint(v.of_kind("batch")) for v in values):
                yield from (_numbers_drawn(context, v) for v in library.with_entries(values) if not v.of_kind("batch"))


def _numbers_drawn(context: Context, value: Value) -> Value:
    """A value, as far as it comes from numbers that are drawn, and not from tensors of them."""
    return Value(frozenset(), frozenset(Origin("drawn", node) for node in value.of_kind("drawn") if _is_number(context, node)))


def _is_number(context: Context, draw: ast.Call) -> bool:
    """Whether a draw gives one number: of Python, of NumPy without a size, or of torch where `.item()` takes it out."""
    paths, up = context.facts.after.value(draw.func).paths(), context.facts.tree_of(draw).parent[draw]
    if any(path.startswith("torch.") for path in paths):
        return (isinstance(up, ast.Attribute) and up.attr == "item") or (
            isinstance(up, ast.Call) and last_name(up.func) in ("int", "float")
        )
    ends = [path.rpartition(".")[2] for path in paths if path.startswith("numpy.random.")]
    if ends:
        return all(len(draw.args) <= _BEFORE_SIZE.get(end, -1) for end in ends) and not any(k.arg == "size" for k in draw.keywords)
    return bool(paths) and all(p.startswith("random.") and not p.endswith(("sample", "choices", "randbytes")) for p in paths)


def _of_whole_batches(context: Context) -> Iterator[Value]:
    """What all ranks compute alike: whole batches of no loader, the losses, and the tests outside of what each rank runs on its rows."""
    run, forwards = context.facts.after, {n for m in context.facts.models for n in m.forwards}
    yield from (run.value(node) for node, how in context.facts.base.redistributed.items() if how == GIVEN)
    yield from (value for node, how in context.facts.base.redistributed.items() if how.endswith(SHARE) for value in _stored(context, node))
    yield from (loss_in(run, loop.backward.node) for loop in context.facts.loops)
    in_training = (d for d in run.trace.decisions if any(up.node in context.facts.training_loops for up in d.loops))
    yield from (d.test for d in in_training if forwards.isdisjoint(d.stack))
    yield from (loop.over for node in forwards for call in run.calls(node) for loop in call.loops)  # ranks gather what they give


def _stored(context: Context, rows: ast.expr) -> Iterator[Value]:
    """What the names were given in their function of which rows are taken: a step drawn for each sample, to which its loss may be added."""
    read = {n.id for n in walk(rows) if isinstance(n, ast.Name)}
    stored = (n for n in walk(context.facts.tree_of(rows).function(rows)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    yield from (context.facts.after.value(n) for n in stored if n.id in read)


def _tests(context: Context) -> Iterator[Value]:
    """The tests in training by which ranks would take other steps."""
    training = context.facts.training_loops
    noted = [d for d in context.facts.after.trace.decisions if any(up.node in training for up in d.loops)]
    decisions = [d for d in noted if not _refuses(context, d.node)]
    apart: set[ast.AST] = {n for n in {d.node for d in decisions} if isinstance(n, (ast.If, ast.While)) and parts_ranks(context, n)}
    apart |= {d.node for d in decisions if d.test.of_kind("drawn") and _skips_layers(context, d)}
    return (d.test for d in decisions if d.node in apart)


def _refuses(context: Context, node: ast.AST) -> bool:
    """Whether a test only ends in an error, by which the training ends, on whatever rank it is."""
    last = node.body[-1] if isinstance(node, ast.If) and not node.orelse else None
    return isinstance(last, ast.Raise) and last not in context.once(caught.leaving)


def _skips_layers(context: Context, decision: Decision) -> bool:
    """Whether a trained forward decides, in training alone, which layers run: of one batch, all ranks run the same."""
    run = context.facts.after
    forwards = {n for m in context.facts.models for n in m.forwards}
    if forwards.isdisjoint(decision.stack) or not isinstance(decision.node, (ast.If, ast.IfExp)):
        return False
    if decision.test.of_kind("batch"):
        return False  # the batch decides, whatever is drawn
    evaluated = (d for d in run.trace.decisions if d.node is decision.node and d.test.of_kind("drawn"))
    if any(not any(up.node in context.facts.training_loops for up in d.loops) for d in evaluated):
        return False  # where ranks may have another number of batches
    function = context.facts.tree_of(decision.node).function(decision.node)
    calls = (c for n in own_nodes(decision.node if _chooses_rows(context, decision.node) else function) for c in run.calls(n))
    return any(isinstance(o, New) and run.interpreter.is_network(o) for c in calls for o in c.func.objs)


def _chooses_rows(context: Context, node: ast.If | ast.IfExp) -> bool:
    """Whether a choice does nothing but to give rows of the batch: the word that was read, or the one that the model has said."""
    if isinstance(node, ast.IfExp):
        return bool(context.facts.after.value(node).batches())
    assigned = [*node.body, *node.orelse]
    return all(isinstance(s, ast.Assign) and bool(context.facts.after.value(s.value).batches()) for s in assigned)


def _of_loaders(context: Context) -> Iterator[Value]:
    """What training loaders are made of: their data sets, samplers and batch sizes, and what these hold."""
    run = context.facts.after
    for loader in context.facts.loaders:
        given = join([run.attribute(loader, name) for name in ("dataset", "sampler", "batch_sampler", "batch_size")])
        yield given
        instances = given.instances()
        values = (value for (owner, _), value in run.memory.items() if owner in instances)
        yield from (Value(frozenset(), v.origins | operands.drawn_inside(run.interpreter, [v])) for v in values)


def _drawn(call: Call) -> Value:
    return Value(frozenset(), frozenset((Origin("drawn", call.node),)))


def _orders(context: Context, call: Call) -> bool:
    """Whether a call draws an order of the data: it shuffles in place between batches, or permutes what batches are cut from."""
    tree, paths = context.facts.tree_of(call.node), call.func.paths()
    if any(k in call.keywords for k in library.GENERATORS) or any(a.batches() for a in call.args):
        return False
    sliced = any(o.path == batch_source.SLICE for o in (*context.facts.feeding, *context.facts.whole_loaders))
    if paths & library.SHUFFLES:
        batches = set() if sliced else _batch_loops(context)  # which goes on to the next epoch by itself
        return (
            not _by_data(context, call)
            and not _by_model(context, call)
            and not any(loop.node in batches for loop in call.loops)
            and not _shared_after(context, tree, call.node)
        )
    return sliced and bool(paths & batch_source.ORDERS) and _follows(context, tree, call.node)


def _by_data(context: Context, call: Call) -> bool:
    """Whether a method of a data set or sampler makes a call: another rule covers it."""
    tree, run = context.facts.tree_of(call.node), context.facts.after
    function = tree.function(call.node)
    if not isinstance(tree.parent.get(function), ast.ClassDef):
        return False
    methods = (
        {o for c in run.calls(call.stack[-1]) for o in c.func.objs if isinstance(o, Func) and o.node is function} if call.stack else set()
    )
    return not methods or any(o.owner in context.once(draws.drawn_from) for o in methods)


def _by_model(context: Context, call: Call) -> bool:
    """Whether the forward of a model makes a call: what it draws is for the rows that it is given."""
    run = context.facts.after
    called = (o for n in call.stack for c in run.calls(n) for o in run.unwrap(c.func))
    return any(isinstance(o, New) and run.interpreter.is_module(o) for o in called)


def _batch_loops(context: Context) -> set[ast.AST]:
    """The loops over batches that train."""
    return {t.batch.node for t in context.facts.loops if t.batch is not None and t.batch.element.batches()}


def _follows(context: Context, tree: Tree, node: ast.Call) -> bool:
    """Whether what is made of a draw still differs between ranks, and is no batch that each rank draws for itself."""
    up = tree.parent[node]
    if any(n in context.facts.batch_sources and context.facts.batch_sources[n].kind == "draw" for n in (node, up)):
        return False
    return not isinstance(up, ast.Call) or bool(context.facts.after.value(up).of_kind("drawn"))


def _shared_after(context: Context, tree: Tree, node: ast.Call) -> bool:
    """Whether what is shuffled in place is shared by the next statement."""
    statement = tree.statement(node)
    block = tree.block(statement)
    after = block[block.index(statement) + 1 :][:1]
    return any(
        isinstance(s, ast.Assign)
        and isinstance(s.targets[0], ast.Subscript)
        and same(s.targets[0].value, node.args[0])
        and not context.facts.after.value(s.value).of_kind("drawn")
        for s in after
    )


_PUTS = frozenset(("append", "insert", "extend"))
_SETTINGS = ("lr", "momentum", "weight_decay", "betas")


def _in_training(context: Context, node: ast.AST, apart: frozenset[ast.AST]) -> bool:
    """Whether a draw is made again and again while training, by each rank for itself: before it, all ranks draw from one seed."""
    calls = [call for call in _since_training(context, node, apart) if not _draws_alike(context, call)]
    redrawn = context.once(draws.redrawn) if calls else {}
    return any(not redrawn.keys() & set(call.stack) and not draws.by_rank_zero(context, (*call.stack, node)) for call in calls)


def _since_training(context: Context, node: ast.AST, apart: frozenset[ast.AST]) -> list[Call]:
    """The calls of a draw while training, or after one, and not `apart`, where nothing has seeded the ranks alike again."""
    run, training = context.facts.after, context.facts.training_loops
    trained = [c.order for t in context.facts.loops for c in run.calls(t.backward.node)]
    seeded = [c.order for c in context.once(draws.seeding_calls)]
    out = []
    for call in (c for c in run.calls(node) if apart.isdisjoint(c.stack)):
        last = max((order for order in trained if order < call.order), default=None)
        inside = _is_of_generator(context, call) or any(loop.node in training for loop in call.loops)
        if inside or (last is not None and not any(last < order < call.order for order in seeded)):
            out.append(call)
    return out


def _is_of_generator(context: Context, call: Call) -> bool:
    """Whether a generator function makes a call: when somebody asks for more, and not where the generator is made."""
    return any(is_generator(context.facts.tree_of(n).function(n)) for n in (*call.stack, call.node))


def _draws_alike(context: Context, call: Call) -> bool:
    """Whether a call draws from a generator of its own, which the script seeds on all ranks alike."""
    given = [call.keywords[k] for k in library.GENERATORS if k in call.keywords]
    system = any(isinstance(o, Lit) and o.value is None for v in given for o in v.objs)
    return bool(given) and not system and not any(map(context.differs, given))


def _roots(context: Context, node: ast.AST) -> set[str]:
    """The libraries whose generators a call draws from: those of what it calls, or of what a method of a tensor gives."""
    named = {path.partition(".")[0] for call in context.facts.after.calls(node) for path in call.func.paths()}
    return named or set(context.facts.after.value(node).of_kind("random"))


def _repeated(context: Context, node: ast.Call, apart: frozenset[ast.AST]) -> list[ast.stmt]:
    """The statements that split a data set between batches, or draw again and again for its samples; empty where it is one draw.

    Or those of a draw that each rank makes `apart`, too, which must stay its own there.
    """
    facts = context.facts
    calls, own = _since_training(context, node, apart), _drawn_apart(context, node, apart)
    splits = any("torch.utils.data.random_split" in c.func.paths() for c in calls)
    around = {loop.node for c in calls for loop in c.loops}
    again = splits or own or bool(around - facts.training_loops) or any(_in_callback(context, c) for c in calls)
    if any(_is_of_generator(context, c) for c in calls) or (around & _batch_loops(context) and not own) or not again:
        return []
    backwards = {n for t in facts.loops for n in (*t.backward.stack, t.backward.node)}
    trains = {up for n in backwards for up in (n, *facts.tree_of(n).ancestors(n))}
    statements = [_outermost(context, call, trains) for call in calls]
    simple = [s for s in statements if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr))]
    return list(dict.fromkeys(simple)) if len(simple) == len(statements) else []


def _must_differ(context: Context, node: ast.AST) -> bool:
    """Whether a draw is also made in forwards on the rows of one rank, and decides about no steps."""
    return _drawn_apart(context, node, _in_parts(context)) and not any(node in value.of_kind("drawn") for value in _steering(context))


def _drawn_apart(context: Context, node: ast.AST, apart: frozenset[ast.AST]) -> bool:
    """Whether a draw is also made in forwards on the rows of one rank."""
    return any(not apart.isdisjoint(c.stack) for c in context.facts.after.calls(node))


def _in_callback(context: Context, call: Call) -> bool:
    """Whether a call stands in a function that a library is handed, which may call it for each of many rows."""
    function = context.facts.tree_of(call.node).function(call.node)
    above = context.facts.after.calls(call.stack[-1]) if call.stack else []
    return any(function not in c.func.functions() and function in v.functions() for c in above for v in (*c.args, *c.keywords.values()))


def _outermost(context: Context, call: Call, trains: set[ast.AST]) -> ast.stmt | None:
    """The outermost statement that makes a call on all ranks, and does not train."""
    statements = (context.tree.statement(n) for n in (*call.stack, call.node) if context.facts.is_edited(n))
    return None if has_own_test(context, call) else next((s for s in statements if s not in trains), None)


def _split(context: Context) -> Iterator[Change]:
    """Folds that are drawn where a loop over them begins, which is when ranks draw for themselves already."""
    run, tree = context.facts.after, context.tree
    for node in {loop.node: None for t in context.facts.loops for loop in t.backward.loops}:
        for call in walk(node.iter) if isinstance(node, ast.For) and context.facts.is_edited(node) else ():
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "split":
                continue
            instances = run.value(call.func.value).instances()
            drawn = [c for o in instances if o.path.startswith("sklearn.model_selection.") for c in run.calls(o.node) if _draws_folds(c)]
            if drawn and not any(context.broadcasts(up) for up in tree.ancestors(call)):
                edit = Replace(call, f"{context.names['same_on_all_ranks']}(list({{0}}))", (call,))
                yield Change(CODE, _WHY, tree.shown, call, (edit,), needs=("same_on_all_ranks",))


def _draws_folds(splitter: Call) -> bool:
    """Whether a splitter of sklearn shuffles, with no generator of its own."""
    shuffles = splitter.keywords.get("shuffle", NOTHING)
    drawn = bool(splitter.func.paths() & _DRAWN_FOLDS) or any(not isinstance(o, Lit) or bool(o.value) for o in shuffles.objs)
    given = splitter.keywords.get("random_state")
    return drawn and (given is None or any(isinstance(o, Lit) and o.value is None for o in given.objs))


def _shared(context: Context, node: ast.Call) -> Change | Finding:
    helper, tree = context.names["same_on_all_ranks"], context.tree
    calls = context.facts.after.calls(node)
    own = any(has_own_test(context, call) or padding.own_length(context, call) is not None for call in calls)
    listed = [context.facts.after.interpreter.element(a) for call in calls for a in call.args]
    own |= any(v.batches() & {*context.sharded_loaders, *context.facts.feeding} for v in listed)  # batches of this rank's, kept in a list
    paths = {path for call in calls for path in call.func.paths()}
    if (
        not context.facts.is_edited(node)
        or own
        or (paths & library.SHUFFLES and not isinstance(node.args[0], (ast.Name, ast.Attribute)))
        or "torch.utils.data.random_split" in paths
    ):
        return context.manual(CODE, node, _APART, _FIX)
    edit: Edit = Replace(node, f"{helper}({{0}})", (node,))
    needs: tuple[str, ...] = ("same_on_all_ranks",)
    if not any(path.startswith(("random.", "numpy.")) for path in paths):
        needs += ("same_on_all_ranks:tensor",)
    if paths & library.SHUFFLES:
        text = context.source(node.args[0])
        edit = InsertAfter(tree.statement(node), f"{text}[:] = {helper}({text})")
    elif isinstance(tree.parent[node], ast.Expr) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        text = node.func.value.id  # drawn in place
        edit = InsertAfter(tree.statement(node), f"{text} = {helper}({text})")
    return Change(CODE, _WHY, tree.shown, node, (edit,), needs=needs)
