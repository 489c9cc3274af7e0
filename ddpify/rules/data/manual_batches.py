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
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, InsertBefore, Replace
from ddpify.facts import batch_source, manual_batches
from ddpify.facts.model import Lit, New, Part, Value, join
from ddpify.rules.base import Change, Example, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data.batch_windows import RECIPE, SIDE_BY_SIDE, calls_sized_by_batch, other_than_samples

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

_PADDED = "each rank trains on its own rows of each batch; where the ranks cannot share a batch equally, its first rows are repeated"
_DRAWN = "each rank draws its own part of each batch: together they draw as many samples as before, but others"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Share the batches that are cut, and draw a part of those that are drawn."""
    trained = [o for o in context.facts.feeding if o.path in batch_source.PATHS]
    if not trained:
        return
    run = context.facts.after
    done = run.interpreter.sharded_by_script
    problem = other_than_samples(context, trained)
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
        yield from _state_sizes(context, trained)


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
    side = context.facts.batch_sources[node].kind in SIDE_BY_SIDE
    if side:
        why = "each rank trains on its own sequences of the batch, all the way through time"
    if not others and not (side and not context.facts.is_edited(node)):
        if not context.facts.is_edited(node):
            yield context.manual(
                CODE, node, "batches are made by hand in another module, and every rank would train on all rows", RECIPE, obligations
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
            yield context.manual(CODE, node, "this makes the batches of the training and of an evaluation", RECIPE, obligations)
            return
        if call in placed:
            continue
        size = _handed(context, call, context.facts.batch_sources[node].size)
        kind = context.facts.batch_sources[node].kind
        edits = _received(context, call, size, kind) if size or kind == "columns" else None
        if edits is None:
            yield context.manual(CODE, call, "how training receives these batches was not seen", RECIPE, obligations)
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


def _state_sizes(context: Context, trained: list[New]) -> Iterator[Change]:
    """States that go along with the sequences of a batch are made for those of this rank."""
    run = context.facts.after
    sources = {o for cut in trained for o in run.attribute(cut, "batch_size").objs if isinstance(o, (Part, Lit))}
    for node in calls_sized_by_batch(context):
        assert isinstance(node, ast.Call)
        for part in manual_batches.size_arguments(node):
            edits, needs = context.divided(part)
            if edits and run.value(part).objs & sources and not run.value(part).of_kind("world"):
                why = "this is made for as many sequences as the rank has"
                yield Change(CODE, why, context.tree.shown, part, tuple(edits), needs=needs)
