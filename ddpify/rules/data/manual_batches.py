"""Give each rank its rows of the batches that a script makes by hand.

What it does: where a training step takes a slice, a part of a split or an index list that all ranks hold alike, each rank takes every
    N-th row of it; the loop, its bounds and the batch size stay. An order drawn anew for each epoch is rank 0's on all ranks. Where a
    step draws its batch at random, each rank draws its own N-th part of it. A function that also serves the evaluation stays as it is:
    the rows are taken where training receives them.
Why: without a sampler every rank would train on the same rows, N times the work for the same step.
Safety: NOTE; where the ranks cannot share a batch equally, its first rows are repeated. MANUAL where the slices may be windows of time, or
    columns are the batch.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator

from ddpify.edits import Edit, InsertAfter, InsertBefore, Replace
from ddpify.facts import batch_source, manual_batches
from ddpify.facts.model import Call, Class, Func, Lit, New, Origin, Part, Tup, Value, join, paths_of
from ddpify.facts.tree import Tree, last_name, same, structure
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import batch_size

CODE = "DDP307"
TITLE = "this rank's rows of batches made by hand"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "slices beside a loader that trains",
        "for i in range(0, 160, 20):\n"
        "    mean = images[i : i + 20].mean()\n",
        frame="end",
    ),
    Example(
        "a part of the data that is no batch",
        "images = images[:320]\n",
        frame="epoch",
    ),
    Example(
        "noise for the batch of a loader",
        "x = x + torch.randn(x.size(0), 8)\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "slices of the data",
        "for i in range(0, 640, 32):\n"
        "    update(images[i : i + 32], labels[i : i + 32])\n",
        "for i in range(0, 640, 32):\n"
        "    update(rows_of_rank(images[i : i + 32], 32), rows_of_rank(labels[i : i + 32], 32))\n",
        frame="batches",
    ),
    Example(
        "slices of an order drawn for each epoch",
        "order = torch.randperm(640)\n"
        "for rows in order.split(32):\n"
        "    update(images[rows], labels[rows])\n",
        "order = same_on_all_ranks(torch.randperm(640))\n"
        "for rows in (rows_of_rank(part, 32) for part in order.split(32)):\n"
        "    update(images[rows], labels[rows])\n",
        frame="batches",
    ),
)  # fmt: skip

_SIDE_BY_SIDE = ("columns", "lines")
_PICKS = frozenset(("narrow", "index_select", "select", "take", "gather"))
_TIME_FIRST = ("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.Transformer", "torch.nn.MultiheadAttention")
_PADDED = "each rank trains on its own rows of each batch; where the ranks cannot share a batch equally, its first rows are repeated"
_DRAWN = "each rank draws its own part of each batch: together they draw as many samples as before, but others"
_RECIPE = "give each rank other rows of each batch, as many on all: x[i : i + B][rank::world_size]"
_ORDER = "draw the order with torch.randperm, and let all ranks use rank 0's"
_COLUMNS = "give each rank its columns, data[:, rank::world_size], a hidden state of that many, and leave the steps through time whole"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Share the batches that are cut, and draw a part of those that are drawn."""
    trained = [o for o in context.facts.feeding if o.path in batch_source.PATHS]
    if not trained:
        return
    run = context.facts.after
    done = run.interpreter.shared_out
    problem = _windows(context, trained)
    others = manual_batches.instances_of(run.trace) - set(trained)
    nodes: dict[ast.AST, list[New]] = {}
    for cut in trained:
        nodes.setdefault(cut.node, []).append(cut)
    placed: set[ast.AST] = set()
    for node, made in nodes.items():
        obligations = (Obligation("inputs", node), Obligation("epoch", node))
        if all(o in done for o in made):
            yield from (Proof(o, "these are one rank's rows") for o in obligations)
        elif problem is not None:
            yield context.manual(CODE, node, *problem, obligations)
        else:
            yield from _share(context, node, made, [o for o in others if o.node is node], obligations, placed)
    if problem is None and any(o.path == batch_source.CUT for o in trained):
        yield from _sized(context, trained)


# ------------------------------------------------------------------------------------------------ what is no batch


def _windows(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Why the rows of what is cut may be something else than the samples of a batch, and what to do then."""
    known = context.facts.batch_sources
    if all(known[o.node].kind in _SIDE_BY_SIDE for o in trained):
        return _states(context)
    found = _through_time(context, set(trained)) or _other_draws(context, trained)
    if found is not None:
        return found
    entry = _one_by_one(context, trained)
    if entry is not None:
        return (
            f"`{ast.unparse(entry)}` is as long as a batch, of which every rank now has its share",
            "use the rank's part of the batch size there",
        )
    found = _slices(context, trained)
    if found is not None or not any(o.path == batch_source.DRAW for o in trained):
        return found
    sizes = {_number(context, s) for o in trained if (s := known[o.node].size) is not None}
    if len(sizes) > 1:
        return "what is drawn has several sizes, or another than a batch: which of them counts samples was not seen", _RECIPE
    return None


def _through_time(context: Context, trained: set[New]) -> tuple[str, str] | None:
    """Whether the slices go to a model that reads them as windows of one sequence."""
    run = context.facts.after
    for call in run.trace.calls:
        if call.node in context.training and any(_carried(context, v, call) for v in (*call.args, *call.keywords.values())):
            return (
                "the model takes up what it returned for the batch before: these slices are windows of time, not rows of samples",
                _COLUMNS,
            )
        if any(_time_first(o) for o in run.unwrap(call.func)) and any(a.batches() & trained and a.scale == "sample" for a in call.args[:1]):
            return "the first dimension of this layer's input is time, not the batch", _COLUMNS
        if call.method in batch_source.JOINS and any(_joined(context, a, trained) for a in call.args):
            return "these slices are put together again: they may be windows of one sequence", _RECIPE
    return None


def _other_draws(context: Context, trained: list[New]) -> tuple[str, str] | None:
    """Whether other data changes with each step, or the order of the rows is drawn by each rank for itself."""
    run, known = context.facts.after, context.facts.batch_sources
    other = _otherwise(context)
    if other is not None:
        return f"`{ast.unparse(other)}` is other data at each step, too, and was not seen to be a batch", _RECIPE
    for node in {n for t in context.facts.loops for n in t.loss.of_kind("sized")}:
        if manual_batches.is_other_draw(run, node, known):
            return f"`{ast.unparse(node)}` is drawn at each step, too, and was not seen to be a batch", _RECIPE
    drawn_from = manual_batches.drawn_at_steps(run, known)
    for node in [n for n in known if isinstance(n, ast.Subscript) and any(o.node is n and o.path == batch_source.CUT for o in trained)]:
        if drawn_from & {str(o) for o in run.value(node.value).of_kind("random")}:
            return "the order of these rows is drawn in a way that was not followed: each rank may have an order of its own", _ORDER
    for call in run.trace.calls:
        if "frac" in call.keywords and call.loops:
            return f"`{ast.unparse(call.node)}` draws an order, and each rank may draw one of its own", _ORDER
    return None


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
                for n in ast.walk(around)
                if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice) and structure(n.value) == data and _varies(n.slice)
            }
        if any(_transposes(context, n) for n in (node.value, *_assigned_expressions(context, node.value))):
            return "the data is turned round: its columns are the batch, its rows are steps through time", _COLUMNS
        paths = paths_of(run.value(node.value))
        if any(p.startswith("pandas.") for p in paths):
            return "this slices a table of pandas", "take the rows as a tensor first: torch.tensor(table.values)"
        if any(p.startswith("torch.utils.data.") for p in paths):
            return "this slices a data set", "let a DataLoader with a DistributedSampler make the batches"
    if any(len(found) > 1 for found in bounds.values()):
        return "one sequence is cut in two places: these slices may be windows of time, not rows of samples", _COLUMNS
    return None


def _states(context: Context) -> tuple[str, str] | None:
    """Why what is made for the samples of a batch, such as a hidden state, cannot be made for this rank's."""
    run = context.facts.after
    sized = set(_calls_sized_by_batch(context))
    for call in run.trace.calls:
        runs = context.facts.model_of(call.func) is not None
        passed = (*call.args, *call.keywords.values())
        taken = [v for v in passed if _carried(context, v, call)] if call.node in context.training else []
        if any(not any(o.of in sized for o in _all_origins(context, v) if o.kind == "sized") and not _may_be_none(v) for v in taken):
            return "the state that the model carries on was not seen to be made for as many samples as a batch has", _COLUMNS
        given = [o.of for v in passed for o in _all_origins(context, v) if o.kind == "sized"]
        if runs and call.node not in context.training and any(n in sized for n in given):
            return "a state made for the batches of the training is used elsewhere, too", _COLUMNS
    for node in sized:
        stacks = [c.stack for c in run.calls(node)]
        if any(not any(t.backward.stack[: len(s)] == s for t in context.facts.loops) for s in stacks) or not context.facts.is_edited(node):
            return f"`{ast.unparse(node)}` is made for the batches of the training, and elsewhere", _COLUMNS
    return None


def _may_be_none(value: Value) -> bool:
    return any(isinstance(o, Lit) and o.value is None for o in value.objs)


def _calls_sized_by_batch(context: Context) -> list[ast.AST]:
    """The calls of the entry, handed the number of samples of a batch, whose result reaches a loss."""
    known = context.facts.batch_sources
    found = {n for t in context.facts.loops for n in t.loss.of_kind("sized") if n in known and known[n].kind == "state"}
    inner = {n for n in found for c in context.facts.after.calls(n) if found & set(c.stack)}
    return sorted(found - inner, key=lambda n: getattr(n, "lineno", 0))


def _all_origins(context: Context, value: Value, depth: int = 0) -> frozenset[Origin]:
    """The origins of a value and of what it holds."""
    run, out = context.facts.after, set(value.origins)
    for obj in value.objs if depth < 5 else ():
        held = (
            obj.items
            if isinstance(obj, Tup)
            else (run.attribute(obj, "[]"), run.attribute(obj, "iterable"))
            if isinstance(obj, New)
            else ()
        )
        for inner in held:
            out |= _all_origins(context, inner, depth + 1)
    return frozenset(out)


def _varies(rows: ast.Slice) -> bool:
    return any(isinstance(n, ast.Name) for bound in (rows.lower,) if bound is not None for n in ast.walk(bound))


def _otherwise(context: Context) -> ast.expr | None:
    """What else in a loss is picked from data by the number of the step, or by chance."""
    run = context.facts.after
    steps = context.facts.training_loops
    moving = {o for t in context.facts.loops for o in t.loss.origins if o.kind == "random" or (o.kind == "index" and o.of in steps)}
    for tree in context.facts.trees.values() if moving else ():
        for node in tree.nodes():
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                bounds = [b.lower or b if isinstance(b, ast.Slice) else b for b in getattr(node.slice, "elts", [node.slice])]
                index = join([run.value(b) for b in bounds])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PICKS:
                index = join([run.value(a) for a in node.args])
            else:
                continue
            if _in_module(context, tree, node):
                continue
            if index.origins & moving and not index.batches() and not run.value(node).batches() and node not in context.facts.batch_sources:
                return node
    return None


_REPEATS = frozenset(("tile", "repeat", "repeat_interleave", "linspace", "eye", "expand"))
_COUNTING = frozenset("range xrange trange tqdm print format len int float min max round str isinstance info debug update log".split())


def _one_by_one(context: Context, trained: list[New]) -> ast.expr | None:
    """What is made with the batch size of a draw, outside of the training step."""
    run = context.facts.after
    sources = {
        o for cut in trained if cut.path == batch_source.DRAW for o in run.attribute(cut, "batch_size").objs if isinstance(o, (Part, Lit))
    }
    for tree in context.facts.trees.values() if sources else ():
        for node in tree.nodes():
            if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and node not in context.facts.batch_sources:
                over = node.generators[0].iter
                sizes = over.args if isinstance(over, ast.Call) and "range" in run.value(over.func).paths() else []
            elif isinstance(node, ast.Call) and node not in context.facts.batch_sources and _may_size_by_argument(context, node):
                sizes = manual_batches.size_arguments(node)
            else:
                continue
            if any(run.value(s).objs & sources and not run.value(s).of_kind("world") for s in sizes):
                return node
    return None


def _may_size_by_argument(context: Context, node: ast.Call) -> bool:
    """Whether a call may make something as long as a number it is handed: by its name, or at a step by a library."""
    run, name = context.facts.after, last_name(node.func)
    if name in _REPEATS:
        return True
    if name in _COUNTING or any(isinstance(o, (Func, Class)) for o in run.value(node.func).objs):
        return False
    steps = {t.batch.node for t in context.facts.loops if t.batch is not None}
    return name not in batch_size.SHAPES and any(loop.node in steps for call in run.calls(node) for loop in call.loops)


def _in_module(context: Context, tree: Tree, node: ast.AST) -> bool:
    """Whether a node stands in the class of a network."""
    classes = context.facts.after.interpreter.classes
    around = (classes.get(up) for up in tree.ancestors(node) if isinstance(up, ast.ClassDef))
    return any(cls is not None and any("torch.nn" in b for b in context.facts.after.interpreter.library_bases(cls)) for cls in around)


def _carried(context: Context, value: Value, call: Call) -> bool:
    """Whether a forward's argument is what it returned the time before: by its origin, or by a name that a loop carries round."""
    if any(isinstance(o.of, tuple) and o.of[0] is call.node for o in _all_origins(context, value) if o.kind == "output"):
        return True
    for node in (call.node, *call.stack):
        tree = next((t for t in context.facts.trees.values() if node in t.parent), None)
        statement = tree.statement(node) if tree is not None else None
        loop = next((up for up in tree.path(node) if isinstance(up, (ast.For, ast.While))), None) if tree is not None else None
        if not isinstance(node, ast.Call) or not isinstance(statement, ast.Assign) or loop is None:
            continue
        run = context.facts.after
        written = [e for t in statement.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
        taken = [a for a in (*node.args, *(k.value for k in node.keywords)) if run.value(a) == value]
        again = [e for e in written if any(run.scopes.same(e, a) for a in taken)]
        if any(run.definitions.exposed(loop, run.definitions.variable(e)) for e in again):
            return True
    return False


def _time_first(obj: object) -> bool:
    made = obj.node if isinstance(obj, New) else None
    return (
        isinstance(obj, New)
        and obj.path.startswith(_TIME_FIRST)
        and not (isinstance(made, ast.Call) and any(k.arg == "batch_first" and not _is_false(k.value) for k in made.keywords))
    )


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _joined(context: Context, value: Value, mine: set[New]) -> bool:
    """Whether a list of batches, not of samples, is what a value may be."""
    run = context.facts.after
    entries = [run.attribute(o, "[]") for o in value.instances() if o.path == "list" and value.scale != "sample"]
    return any(v.scale == "sample" and v.batches() & mine and not v.of_kind("forward") for v in entries)


def _transposes(context: Context, node: ast.expr) -> bool:
    return any((isinstance(n, ast.Attribute) and n.attr in ("t", "T", "mT", "transpose", "permute")) for n in ast.walk(node))


def _assigned_expressions(context: Context, node: ast.expr) -> Iterator[ast.expr]:
    """What the name of some data was given, anywhere, and what the function returns that made it."""
    if not isinstance(node, ast.Name):
        return
    run = context.facts.after
    for tree in context.facts.trees.values():
        for other in tree.nodes():
            if not (isinstance(other, ast.Assign) and any(same(t, node) for t in other.targets)):
                continue
            yield other.value
            called = run.value(other.value.func).objs if isinstance(other.value, ast.Call) else ()
            for func in called:
                if isinstance(func, Func):
                    yield from (n for n in ast.walk(func.node) if isinstance(n, ast.expr))


def _number(context: Context, size: ast.expr) -> object:
    """What makes two sizes the same."""
    objs = context.facts.after.value(size).objs
    only = next(iter(objs)) if len(objs) == 1 else None
    return only.value if isinstance(only, Lit) else only if only is not None else ast.unparse(size)


# ------------------------------------------------------------------------------------------------ this rank's rows


def _share(
    context: Context, node: ast.AST, instances: list[New], others: list[New], obligations: tuple[Obligation, ...], placed: set[ast.AST]
) -> Iterator[Change | Finding | Proof]:
    """One expression that makes batches: edited itself, or, where it also makes those of an evaluation, what training receives."""
    draws = instances[0].path == batch_source.DRAW
    why = _DRAWN if draws else _PADDED
    if context.options.batch_size == "per-rank":
        if draws:
            yield from (Proof(o, "each rank draws a batch of its own") for o in obligations)
        else:
            fix = "leave --batch-size global here, or move the loop on by world_size batches at a time"
            yield context.manual(
                CODE, node, "batches made by hand are shared out among the ranks, and are not each rank's own", fix, obligations
            )
        return
    side = context.facts.batch_sources[node].kind in _SIDE_BY_SIDE
    if side:
        why = "each rank trains on its own sequences of the batch, all the way through time"
    if not others and not (side and not context.facts.is_edited(node)):
        if not context.facts.is_edited(node):
            yield context.manual(
                CODE, node, "batches are made by hand in another module, and every rank would train on all rows", _RECIPE, obligations
            )
            return
        kind = context.facts.batch_sources[node].kind
        edit, need = _edit(context, node), {"draw": "per_rank", "columns": "columns_of_rank"}.get(kind, "rows_of_rank")
        yield Change(CODE, why, context.tree.shown, node, (edit,), (), Safety.NOTE, discharges=obligations, needs=(need,))
        if context.facts.batch_sources[node].kind == "parts" and context.facts.batch_sources[node].size is None:
            yield context.manual(
                CODE,
                node,
                "how many rows these parts have was not seen: where the ranks cannot share one equally, its first rows are repeated",
                "split by a number of rows that the number of ranks divides",
                level=Safety.REVIEW,
            )
        return
    for one in instances:
        call = next((c for c in reversed(one.stack) if not any(c in o.stack for o in others)), None)
        if call is None or not context.facts.is_edited(call):
            yield context.manual(CODE, node, "this makes the batches of the training and of an evaluation", _RECIPE, obligations)
            return
        if call in placed:
            continue
        size = _handed(context, call, context.facts.batch_sources[node].size)
        kind = context.facts.batch_sources[node].kind
        edits = _received(context, call, size, kind) if size or kind == "columns" else None
        if edits is None:
            yield context.manual(CODE, call, "how training receives these batches was not seen", _RECIPE, obligations)
            return
        placed.add(call)
        need = "columns_of_rank" if kind == "columns" else "rows_of_rank"
        yield Change(CODE, why, context.tree.shown, call, tuple(edits), (), Safety.NOTE, discharges=obligations, needs=(need,))
    yield from (Proof(o, "taken where training receives them") for o in obligations)


def _edit(context: Context, node: ast.AST) -> Edit:
    cut, rows, tree = context.facts.batch_sources[node], context.names["rows_of_rank"], context.facts.tree_of(node)
    if cut.kind == "draw":
        assert cut.size is not None
        return Replace(cut.size, f"{context.names['per_rank']}({{0}})", (cut.size,))
    size = _text(context, cut.size)
    if cut.kind == "columns":
        return Replace(cut.node, f"{context.names['columns_of_rank']}({{0}})", (cut.node,))
    if cut.kind in ("rows", "lines"):
        return Replace(cut.node, f"{rows}({{0}}, {size})", (cut.node,))
    up = tree.parent[cut.node]
    iterated = (isinstance(up, (ast.For, ast.comprehension)) and up.iter is cut.node) or (
        isinstance(up, ast.Call) and context.facts.after.value(up.func).paths() & {"zip", "enumerate"}
    )
    part = f"{rows}(part{', ' * bool(size)}{size}) for part in {{0}}"
    return Replace(cut.node, f"({part})" if iterated else f"[{part}]", (cut.node,))


def _text(context: Context, size: ast.expr | None) -> str:
    """The size of a batch, as code; empty where only the number of parts is known."""
    return "" if size is None else context.source(size).replace("{", "{{").replace("}", "}}")


def _handed(context: Context, call: ast.AST, size: ast.expr | None) -> str:
    """The size of a batch where a call of the function that makes it stands; empty where it has no name there."""
    run, tree = context.facts.after, context.tree
    names = {n.id for n in ast.walk(size) if isinstance(n, ast.Name)} if size is not None else set()
    if isinstance(size, ast.Attribute) and names == {"self"}:
        return _of_object(context, call, size.attr)
    if size is None or isinstance(size, ast.Constant) or all(isinstance(run.memory.get(("__main__", n), None), Value) for n in names):
        return "" if size is None else context.source(size)
    made_in = tree.function(size) if size in tree.parent else None
    if isinstance(call, ast.Call) and isinstance(size, ast.Name) and isinstance(made_in, ast.FunctionDef):
        names_of = [a.arg for a in made_in.args.args]
        if size.id in names_of and any(getattr(o, "node", None) is made_in for o in run.value(call.func).objs):
            at = names_of.index(size.id) - (names_of[:1] == ["self"])
            given = argument(call, at, size.id)
            defaults = dict(zip(reversed(names_of), reversed(made_in.args.defaults), strict=False))
            given = given if given is not None else defaults.get(size.id)
            return context.source(given) if given is not None else ""
    return ""


def _of_object(context: Context, call: ast.AST, name: str) -> str:
    """An attribute of the object that a call makes, by the object's name."""
    up = context.tree.parent.get(call)
    if isinstance(up, ast.Tuple) and isinstance(line := context.tree.parent.get(up), ast.Assign):
        target: ast.AST = line.targets[0]
        elements = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == len(up.elts) else []
        target = elements[[id(e) for e in up.elts].index(id(call))] if elements else target
    else:
        target = up.targets[0] if isinstance(up, ast.Assign) else ast.Pass()
    return f"{target.id}.{name}" if isinstance(target, ast.Name) else ""


def _received(context: Context, call: ast.AST, size: str, kind: str) -> list[Edit] | None:
    """The names that take up what a call returns become this rank's rows of it; None where there are no such names."""
    tree, run = context.tree, context.facts.after
    statement = tree.statement(call)
    if isinstance(statement, ast.For) and call in set(ast.walk(statement.iter)):
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1 and not _iterates(run.value(call)):
        targets = list(statement.targets)
    else:  # what the call made is gone through later
        loops = [n for n in tree.nodes() if isinstance(n, ast.For) and _from(join([run.value(t) for t in ast.walk(n.target)]), call)]
        if len(loops) != 1:
            return None
        statement, targets = loops[0], [loops[0].target]
    found = [n for t in targets for n in ast.walk(t) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)]
    mine = [n.id for n in found if isinstance(n, ast.Name) and run.value(n).scale == "sample" and _from(run.value(n), call)]
    whole = all(
        call in o.stack for n in found for o in run.value(n).of_kind("batch") if isinstance(o, New) and o.path in batch_source.PATHS
    )
    if not mine or not whole or any(not isinstance(n, ast.Name) for n in found):
        return None
    rows, given = context.names["rows_of_rank"], f", {size}"
    if kind == "columns":
        rows, given = context.names["columns_of_rank"], ""
    line = f"{', '.join(mine)} = {', '.join(f'{rows}({name}{given})' for name in mine)}"
    return [InsertBefore(statement.body[0], line)] if isinstance(statement, ast.For) else [InsertAfter(statement, line)]


def _iterates(value: Value) -> bool:
    return any(isinstance(o, New) and o.path not in ("list", "dict") for o in value.objs)


def _from(value: Value, call: ast.AST) -> bool:
    return any(isinstance(o, New) and o.path in batch_source.PATHS and call in o.stack for o in value.of_kind("batch"))


def _sized(context: Context, trained: list[New]) -> Iterator[Change]:
    """States that go along with the sequences of a batch are made for those of this rank."""
    run = context.facts.after
    sources = {o for cut in trained for o in run.attribute(cut, "batch_size").objs if isinstance(o, (Part, Lit))}
    for node in _calls_sized_by_batch(context):
        assert isinstance(node, ast.Call)
        for part in manual_batches.size_arguments(node):
            edits, needs = context.divided(part)
            if edits and run.value(part).objs & sources and not run.value(part).of_kind("world"):
                why = "this is made for as many sequences as the rank has"
                yield Change(CODE, why, context.tree.shown, part, tuple(edits), needs=needs)
