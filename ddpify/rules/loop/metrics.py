"""Numbers that outlive the training loop speak for all ranks.

What it does: totals and averages that a loop over sharded data built up, and that are read after it, are summed or averaged over
    ranks right after the loop; so are meters with sum, count and avg. What is shown inside the loop stays rank 0's own, said once.
Why: each rank has seen its own share only; printed, compared or scheduled as they are, the numbers are one shard's.
Safety: safe where the way a number was built is known; MANUAL elsewhere.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertAfter, Replace
from ddpify.facts.effects import effect
from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import NOTHING, Call, Loop, New, Tup, Value
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP404"
TITLE = "reduce what outlives the training loop"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a loss that nothing reads after the step",
        "loss = criterion(model(x), y)\n"
        "value = loss.item()\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a number of the evaluation",
        "total = 0\n"
        "for x, y in test_loader:\n"
        "    total += len(y)\n",
        frame="epoch",
    ),
    Example(
        "the time that an epoch took",
        "start = time.time()\n"
        "train(epoch)\n"
        "seconds = time.time() - start\n",
        frame="epoch",
    ),
    Example(
        "a total and a count",
        "total, count = 0.0, 0\n"
        "for x, y in loader:\n"
        "    total += update(x, y) * len(y)\n"
        "    count += len(y)\n"
        "return total / count\n",
        "total, count = 0.0, 0\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    total += update(x, y) * len(y)\n"
        "    count += len(y)\n"
        "count = sum_over_ranks(count)\n"
        "total = sum_over_ranks(total)\n"
        "return total / count\n",
        frame="batches",
    ),
    Example(
        "a mean over the batches",
        "total = 0.0\n"
        "for x, y in loader:\n"
        "    total += update(x, y)\n"
        "return total / len(loader)\n",
        "total = 0.0\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    total += update(x, y)\n"
        "total = sum_over_ranks(total) / world_size\n"
        "return total / len(loader)\n",
        frame="batches",
    ),
)  # fmt: skip
_METERS = (("sum", "count", "avg"), ("sum", "cnt", "avg"))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Reduce after each training loop over a loader."""
    seen: set[ast.AST] = set()
    for training in context.facts.loops:
        loop = training.batch
        if loop is None or loop.node in seen or not training.loaders:
            continue
        seen.add(loop.node)
        if not context.facts.is_entry(loop.node):
            yield from _elsewhere(context, loop)
            continue
        yield from _reduce(context, loop)
    yield from _divisors(context)
    shown = next((c for c in _spoken(context) if any(loop.node in seen for loop in c.loops)), None)
    if shown is not None:
        yield context.manual(CODE, shown.node, "numbers shown inside the training loop are rank 0's own", level=Safety.NOTE)


def reduced(items: list[Change | Finding | Proof]) -> dict[ast.stmt, tuple[str, ...]]:
    """For each loop, the names that are reduced right after it."""
    out: dict[ast.stmt, tuple[str, ...]] = {}
    for item in items:
        for edit in item.edits if isinstance(item, Change) else ():
            if isinstance(edit, InsertAfter):
                texts = [
                    line.partition(" = ")[0] if " = " in line else line.partition("(")[2].rstrip(")") for line in edit.code.splitlines()
                ]
                out[edit.node] = (*out.get(edit.node, ()), *texts)
    return out


def _divisors(context: Context) -> Iterator[Change]:
    """A total over the ranks is divided by the samples they really saw: the sampler repeats a few so that all have equally many."""
    run = context.facts.after
    loaders = set(context.facts.loaders)
    for node in context.tree.nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left, right = node.left, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            left, right = node.target, node.value
        else:
            continue
        own = run.value(left)
        if (
            own.scale not in ("sum", "count", "total")
            or own.of_kind("forward")
            or not any(o.kind == "batch" and o.of in loaders for o in own.origins)
        ):
            continue
        if (
            isinstance(right, ast.Call)
            and "len" in run.value(right.func).paths()
            and right.args
            and isinstance(right.args[0], ast.Attribute)
            and right.args[0].attr == "dataset"
            and run.value(right.args[0].value).made()
            and run.value(right.args[0].value).made() <= loaders
        ):
            loader = ast.unparse(right.args[0].value)
            yield Change(
                CODE,
                "the sampler repeats samples until all ranks have equally many: the total counts those, too",
                context.tree.shown,
                right,
                (Replace(right, f"(len({loader}.sampler) * {context.names['world_size']})"),),
            )


def _spoken(context: Context) -> Iterator[Call]:
    """Calls that print, log or write something computed from a rank's own batches."""
    loaders = set(context.facts.loaders)
    for call in context.facts.after.trace.calls:
        if effect(call) is not None and any(o.kind == "batch" and o.of in loaders for v in _inner(context, call) for o in v.origins):
            yield call


def _inner(context: Context, call: Call) -> Iterator[Value]:
    for value in (*call.args, *call.keywords.values()):
        yield value
        for obj in value.objs:
            if isinstance(obj, Tup):
                yield from obj.items
            elif isinstance(obj, New) and obj.path in COLLECTIONS:
                yield context.facts.after.held(obj, "[]")


def residue(context: Context) -> Iterator[Finding]:
    """What a converted script still shows, compares or schedules of one rank's own numbers after a training loop."""
    facts = context.facts
    loaders = set(facts.loaders)
    loops = {t.batch.node for t in facts.loops if t.batch is not None}
    message = "this is one rank's own number here"
    fix = "sum or average it over the ranks first"
    for call in _spoken(context):
        own = [v for v in _inner(context, call) if any(o.kind == "batch" and o.of in loaders for o in v.origins)]
        if (
            not any(loop.node in loops for loop in call.loops)
            and "torch.save" not in call.func.paths()
            and any(v.scale != "count" for v in own)
        ):
            yield context.manual(CODE, call.node, message, fix)
    for decision in facts.after.trace.decisions:
        mine = any(o.kind == "batch" and o.of in loaders for o in decision.test.origins)
        if mine and not any(loop.node in loops for loop in decision.loops) and isinstance(decision.node, (ast.If, ast.While)):
            yield context.manual(CODE, decision.node, message, fix)


def _names_after(context: Context, loop: Loop) -> dict[str, tuple[ast.AST, Value]]:
    """The names and attributes that are read after a loop, in its function, and hold what the loop computed from its batches."""
    facts, run = context.facts, context.facts.after
    tree = facts.tree_of(loop.node)
    function = tree.function(loop.node)
    inside = set(ast.walk(loop.node))
    loaders = set(facts.loaders)
    written = {ast.unparse(n) for n in inside if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)}
    written |= {ast.unparse(n.func.value) for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    end = getattr(loop.node, "end_lineno", 0) or 0
    out: dict[str, tuple[ast.AST, Value]] = {}
    rebound: dict[str, int] = {}
    for n in ast.walk(function):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in inside and n.lineno > end:
            rebound.setdefault(n.id, n.lineno)
    for node in ast.walk(function):
        if node in inside or not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load) or node.lineno <= end:
            continue
        text = ast.unparse(node)
        if _reduced(context, node, text):
            rebound[text] = min(rebound.get(text, 1 << 30), node.lineno)
            continue
        if text not in written or rebound.get(text, 1 << 30) < node.lineno:
            continue
        if isinstance(tree.parent.get(node), ast.Attribute) and text + "." + tree.parent[node].attr in written:  # type: ignore[attr-defined]
            continue
        value = run.value(node)
        if (
            any(o.kind == "batch" and o.of in loaders for o in value.origins)
            or any(_is_meter(context, o) for o in value.made())
            or any(o.path in COLLECTIONS and _holds(context, o) for o in value.made())
        ):
            out.setdefault(text, (node, value))
    return out


def _reduced(context: Context, node: ast.AST, text: str) -> bool:
    """Whether a read is the one that makes all ranks' number of this rank's own."""
    statement = context.facts.tree_of(node).statement(node)
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1 and ast.unparse(statement.targets[0]) == text):
        return False
    loaders = set(context.facts.loaders)
    return not any(o.kind == "batch" and o.of in loaders for o in context.facts.after.value(statement.value).origins)


def _holds(context: Context, obj: New) -> bool:
    loaders = set(context.facts.loaders)
    held = context.facts.after.held(obj, "[]")
    return any(o.kind == "batch" and o.of in loaders for o in held.origins)


def _is_meter(context: Context, obj: New) -> bool:
    """Whether an object of the project's own class keeps sum, count and avg of what a training loop gave it."""
    run = context.facts.after
    loaders = set(context.facts.loaders)
    names = _meter(context, obj)
    return any(o.kind == "batch" and o.of in loaders for n in names for o in run.held(obj, n).origins)


def _meter(context: Context, obj: New) -> tuple[str, ...]:
    """The names under which an object of the project's own class keeps a sum, a count and their ratio."""
    memory = context.facts.after.memory
    return next((names for names in _METERS if obj.cls is not None and all((obj, n) in memory for n in names)), ())


def _reduce(context: Context, loop: Loop) -> Iterator[Change | Finding]:
    assert isinstance(loop.node, ast.stmt)
    names = context.names
    lines: list[str] = []
    needs: set[str] = set()
    shared = _also_evaluates(context, loop)
    for text, (node, value) in sorted(_names_after(context, loop).items()):
        if shared and (value.scale != "mean" or value.made()):
            yield context.manual(
                CODE,
                node,
                f"`{text}` is a total over one rank's share in training, and over all of the data in evaluation, of the same loop",
                f"sum {text} over the ranks where the loop trained, and only there",
            )
            continue
        numeric = (value.scale in ("sum", "count", "total", "mean") and not value.made()) or any(
            _is_meter(context, o) for o in value.made()
        )
        if numeric and not _fresh(context, loop, text):
            yield context.manual(
                CODE,
                node,
                f"`{text}` is carried on from one pass over the data to the next, so it cannot be reduced after each",
                f"start {text} anew before the loop, or reduce a copy of it where it is read",
            )
            continue
        if any(_is_meter(context, o) for o in value.made()):
            short = any("cnt" in _meter(context, o) for o in value.made())
            lines.append(f"{names['reduce_meter']}({text})")
            needs.add("reduce_meter:cnt" if short else "reduce_meter")
        elif value.made() or value.scale in ("sample", "other", "weighted", None):
            if value.scale is None and not value.made() and not value.of_kind("forward"):
                continue
            yield context.manual(
                CODE,
                node,
                f"`{text}` holds what this rank computed from its own share of the data, and is read after the loop",
                f"gather it from all ranks first: dist.all_gather_object(parts, {text})",
            )
        elif value.scale == "mean":
            lines.append(f"{text} = {names['sum_over_ranks']}({text}) / {names['world_size']}")
            needs.add("sum_over_ranks")
        else:
            lines.append(f"{text} = {names['sum_over_ranks']}({text})")
            needs.add("sum_over_ranks")
    if lines:
        yield Change(
            CODE,
            "each rank has counted its own share; from here on the numbers are those of all",
            context.tree.shown,
            loop.node,
            (InsertAfter(loop.node, "\n".join(lines)),),
            needs=tuple(sorted(needs)),
        )


def _fresh(context: Context, loop: Loop, text: str) -> bool:
    """Whether a name is set anew before each run of the loop."""
    tree = context.facts.tree_of(loop.node)
    function = tree.function(loop.node)
    around = next(
        (up for up in tree.ancestors(loop.node) if isinstance(up, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))),
        function,
    )
    first, last = getattr(around, "lineno", 0), getattr(loop.node, "lineno", 0)
    for node in ast.walk(around):
        if not first <= getattr(node, "lineno", 0) < last:
            continue
        if (
            isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node) == text
            and not isinstance(tree.parent.get(node), ast.AugAssign)
        ):
            return True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "reset"
            and ast.unparse(node.func.value) == text
        ):
            return True
    inside = [
        n
        for n in ast.walk(loop.node)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store) and ast.unparse(n) == text
    ]
    return bool(inside) and not any(isinstance(tree.parent.get(n), ast.AugAssign) for n in inside) and not _carried(loop, text)


def _also_evaluates(context: Context, loop: Loop) -> bool:
    """Whether the loop also runs over loaders that do not train."""
    trained = set(context.facts.loaders)
    over = {o for c in context.facts.after.trace.calls for each in c.loops if each.node is loop.node for o in each.element.batches()}
    return bool(over - trained)


def _carried(loop: Loop, text: str) -> bool:
    """Whether the loop reads a name before it sets it."""
    for node in sorted(
        (n for n in ast.walk(loop.node) if isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == text),
        key=lambda n: (n.lineno, isinstance(n.ctx, ast.Store), n.col_offset),
    ):
        return isinstance(node.ctx, ast.Load)
    return False


def _elsewhere(context: Context, loop: Loop) -> Iterator[Finding]:
    for text, (node, value) in sorted(_names_after(context, loop).items()):
        if value != NOTHING:
            yield context.manual(CODE, node, f"`{text}` is one rank's own number here", f"average {text} over the ranks after the loop")
