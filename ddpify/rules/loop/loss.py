"""Make sure that averaging gradients over ranks averages over samples.

What it does: a loss that is an average over the batch needs nothing. A loss that is a total is multiplied by the number of ranks where it
    is differentiated (not where it is printed). Where a total is divided by a count or weights that differ between ranks, those of all
    ranks are divided by, and so is an average that is divided by a number of samples once more; a cross entropy that averages so by itself,
    alone or added to plain averages, is multiplied by this rank's part of them. Other numbers of the batch that no gradient goes through,
    such as the average of a mask, are made those of all ranks; where the same code evaluates, in training alone. So are averages and
    totals that gradients go through, such as the loads of experts, where nothing else is made of them than numbers that are added to the
    loss. A loss that couples the samples of a batch (pairs, the hardest few, overlap), or that a package computes nobody knows how, is
    computed by every rank from all ranks' rows: the whole batch in its order, of which each rank's rows get the gradients of all ranks'
    losses. A model's forward that combines the samples in training (a standard score, the deviation that a critic sees) gathers the rows
    there. Anything else is shown.
Why: DistributedDataParallel averages gradients; the average of totals is too small by the number of ranks, the average of averages over
    different counts is not the average, and a pair across two ranks would never be seen.
Safety: safe for averages, totals and divisors in view; a NOTE where rows are gathered, which costs communication; REVIEW where the form
    is not known, where rows have another length on every rank, and where a model's own forward combines samples in another way, or in an
    evaluation, too.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertAfter, Replace, escaped
from ddpify.facts.collect import loss_of
from ddpify.facts.library import LOADERS, SHARED_BY_HAND, row_of
from ddpify.facts.model import New, Obj, Value, join, paths_of
from ddpify.records import replace
from ddpify.rules.base import (
    SAME_GRADIENTS,
    SAME_GRADIENTS_OF_UNEQUAL_BATCHES,
    Alternative,
    Cause,
    Change,
    Example,
    Finding,
    Obligation,
    Proof,
    Safety,
)
from ddpify.rules.context import Context
from ddpify.rules.data import filled_sequences
from ddpify.rules.loop import (
    batch_parts,
    coupled_forwards,
    coupled_losses,
    divisors,
    doubts,
    padding,
    shared_numbers,
    unknown,
    valid_targets,
)
from ddpify.rules.loop.loss_terms import computed_elsewhere

CODE = "DDP402"
TITLE = "average the loss over all ranks' samples"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a mean over the batch",
        "loss = F.mse_loss(model(x), x)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a total divided by the number of samples",
        'loss = F.cross_entropy(model(x), y, reduction="sum") / x.size(0)\n'
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "averages, weighted and added",
        "out = model(x)\n"
        "loss = 0.7 * criterion(out, y) + 0.3 * F.cosine_similarity(out, out.detach()).mean()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "products of the entries of each sample",
        "maps = model(x).unsqueeze(2)\n"
        "loss = maps.bmm(maps.transpose(1, 2)).pow(2).mean()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a sum of products over the batch, divided by the number of samples",
        "loss = model(x)[:, 0] @ y.float() / len(y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "an average that is divided by a number of steps",
        "loss = F.cross_entropy(model(x), y) / 4\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "an average by class weights",
        "loss = F.cross_entropy(model(x), y, weight=weights)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "loss = mean_over_ranks(F.cross_entropy(model(x), y, weight=weights), weights[y].sum())\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "an average over valid entries",
        "each = F.cross_entropy(model(x), y, reduction=\"none\")\n"
        "loss = (each * (y > 0)).sum() / (y > 0).sum()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "each = F.cross_entropy(model(x), y, reduction=\"none\")\n"
        "loss = (each * (y > 0)).sum() * world_size / sum_over_ranks((y > 0).sum())\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "an average that is divided by the number of samples, too",
        "loss = F.cross_entropy(model(x), y) / len(x)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "loss = F.cross_entropy(model(x), y) / (len(x) * world_size)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a loss that compares each sample with all others",
        "points = model(x)\n"
        "loss = F.cross_entropy(points @ points.T, torch.arange(len(points)))\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "points = model(x)\n"
        "points = from_all_ranks(points)\n"
        "loss = F.cross_entropy(points @ points.T, torch.arange(len(points)))\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a total",
        'loss = F.cross_entropy(model(x), y, reduction="sum")\n'
        "loss.backward()\n"
        "optimizer.step()\n",
        'loss = F.cross_entropy(model(x), y, reduction="sum")\n'
        "(loss * world_size).backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip

_REASONS = {
    "weighted": "this loss is divided by a count or sum of weights that differs between ranks: gradients differ from the original's",
    "sample": "it is not clear how this loss averages over the batch: if counts differ between ranks, gradients are wrong",
    "other": "this loss may not be a mean over independent samples: then the ranks' average differs from the original's",
}
_COMPUTED_WHOLE = (
    "this loss is not a mean over independent samples: every rank gathers all ranks' rows and computes it for the global batch"
)
_SHARED = "this loss depends on averages or totals of the batch: every rank takes those of all ranks"
_COMBINED_WHOLE = "this is computed from all samples of a batch: every rank gathers all ranks' rows for it"
_GATHER = "gather the rows there, with torch.distributed.nn.functional.all_gather, which keeps gradients; or compute each sample by itself"
_ROWS_OF_ALL = (
    "rows = torch.cat(torch.distributed.nn.functional.all_gather(rows))  # before samples are combined; keeps gradients\n"
    "if the loss is a mean over the samples, write `# ddpify: mean` on the line that computes it"
)
_SHARED_OUT = "give each rank different rows of the inputs, equally many: x[rank::world_size]"


def _are_statistics(context: Context, places: list[ast.AST]) -> bool:
    """Whether batch norm is what combines the samples at one of these places."""
    calls = (c.func for n in places if isinstance(n, ast.Call) for c in context.facts.after.calls(n))
    return any("batchnorm" in path.lower().replace("_", "") for func in calls for path in (*func.paths(), *func.kinds()))


def _averages_unequally(context: Context, node: ast.Call, loss: Value) -> bool:
    """Whether the plain averages in a loss may be over different numbers of entries on the ranks."""
    return bool(loss.of_kind("thinned") or loss.of_kind("part")) or padding.averages_over_padding(context, loss, node)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Judge the loss of each backward call."""
    yield from context.once(_losses)


def unaveraged(context: Context) -> set[ast.AST]:
    """The backward calls of losses that are not seen to be averages over samples."""
    items = context.once(_losses)
    return {o.about for f in items if isinstance(f, Finding) and f.level >= Safety.REVIEW for o in f.discharges}


def _losses(context: Context) -> tuple[Change | Finding | Proof, ...]:
    return tuple(_each_once(context))


def _each_once(context: Context) -> Iterator[Change | Finding | Proof]:
    """The judgement of each loss; two that start from one loss, as with and without a scaler, share one change."""
    corrected: set[tuple[ast.expr, str]] = set()
    for item in _judged(context):
        if not isinstance(item, Change) or not corrected.intersection(item.redistributes):
            corrected |= set(item.redistributes) if isinstance(item, Change) else set()
            yield item
        elif corrected.issuperset(item.redistributes):
            yield from map(Proof, item.discharges)
        else:
            why = "this loss shares an operand with another loss, and the two need different corrections of it"
            yield context.manual(CODE, item.node, why, _weighed(context, item.node), item.discharges, Safety.REVIEW)


def _judged(context: Context) -> Iterator[Change | Finding | Proof]:
    by_node: dict[ast.Call, Value] = {}
    for loop in context.facts.loops:
        node = loop.backward.node
        by_node[node] = join([loss_of(call) for call in context.facts.after.calls(node)])
    for node, loss in by_node.items():
        obligations = (Obligation("loss", node),)
        if coupled_losses.is_of_whole_batch(loss):
            yield Proof(obligations[0])
        elif (
            loss.of_kind("alike")
            or _by_hand(context, node)
            or not all(loss_of(c).of_kind("batch") for c in context.facts.after.calls(node))
        ):
            yield context.manual(CODE, node, *_unseen(context, node), obligations)
        elif functions := _unknown_rows(context, node, loss):
            why = f"the model may also train on what {unknown.listed(functions)} returns: every rank may get the same rows of it"
            found = context.manual(CODE, node, why, _SHARED_OUT, obligations)
            yield replace(found, alternatives=unknown.alternatives(("shard", functions)))
        elif (gradient := _given_gradient(context, node)) is not None:
            yield _with_gradient(context, node, loss, gradient, obligations)
        elif padding.counts_padded_labels(context, loss):
            yield _of_padding(context, node, obligations)
        elif loss.scale == "mean" and not computed_elsewhere(context, loss):
            yield from _mean(context, node, loss, obligations)
        elif loss.scale == "sum" and any(o.kind == "world" for o in loss.origins):
            yield Proof(obligations[0])
        elif loss.scale == "sum" and context.facts.is_edited(node) and isinstance(node.func, ast.Attribute) and not node.args:
            why = "this loss is a sum, and DDP averages gradients over ranks: it is multiplied by the number of ranks"
            edit = Replace(node.func.value, f"({{0}} * {context.names['world_size']})", (node.func.value,))
            yield Change(CODE, why, context.tree.shown, node, (edit,), discharges=obligations)
        else:
            corrected = _corrected(context, node, loss, obligations)
            yield corrected
            if isinstance(corrected, Change):
                yield from _own_lengths(context, node, loss)


def _given_gradient(context: Context, node: ast.Call) -> ast.expr | None:
    """The gradient that a loss is given, where it comes from the batch: `loss.backward(loss)`."""
    run = context.facts.after
    given = next((k.value for k in node.keywords if k.arg == "gradient"), node.args[0] if node.args else None)
    started = all(loss_of(call) is call.receiver for call in run.calls(node)) and isinstance(node.func, ast.Attribute)
    return given if given is not None and started and run.value(given).of_kind("batch") and run.value(given).scale != "sample" else None


def _with_gradient(context: Context, node: ast.Call, loss: Value, given: ast.expr, obligations: tuple[Obligation, ...]) -> Change | Finding:
    """A loss whose gradients are multiplied by a number of the batch: by that of all ranks' batch, where it is an average, too."""
    run, whole = context.facts.after, f"{context.names['sum_over_ranks']}({{0}}) / {context.names['world_size']}"
    if loss.scale == run.value(given).scale == "mean" and context.facts.is_edited(given):
        why = "the gradients are multiplied by a number of the batch: by that of all ranks' samples"
        return Change(
            CODE, why, context.tree.shown, node, (Replace(given, whole, (given,)),), discharges=obligations, needs=("sum_over_ranks",)
        )
    itself = isinstance(node.func, ast.Attribute) and run.scopes.same(node.func.value, given)
    weighed = _by_weight(context, node, loss, obligations) if itself and context.facts.is_edited(given) else None
    if weighed is not None:  # an average, too, by then
        return replace(weighed, edits=(*weighed.edits, Replace(given, whole, (given,))), needs=(*weighed.needs, "sum_over_ranks"))
    why = "the gradients are multiplied by a number of this rank's part of the batch: they differ from the original's"
    return context.manual(CODE, node, why, "give it the number of all ranks' samples, the same on each rank", obligations)


def _unknown_rows(context: Context, node: ast.Call, loss: Value) -> list[str]:
    """The functions of which nothing is known that may give a loss's forwards their rows, or loops their batches, in place of a loader."""
    run, paths = context.facts.after, loss.of_kind("unknown")
    over = {o.path for value in _gone_through(context, node) for o in value.instances() if o.cls is None and o.path}
    found = {made for made in over if any(path == made or path.startswith(f"{made}.[]") for path in paths)}
    forwards = {node for _, node in loss.of_kind("forward")}
    for call in run.trace.calls:
        if call.node in forwards:
            for rows in (*call.args, *call.keywords.values()):
                made = {root.path for obj in rows.objs for root in run.roots(obj) if isinstance(root, New)}
                found |= made & rows.of_kind("unknown") if rows.of_kind("batch") else set()
    return sorted(found)


def _mean(context: Context, node: ast.Call, loss: Value, obligations: tuple[Obligation, ...]) -> Iterator[Change | Finding | Proof]:
    """An average over a batch, which is right where all ranks average over equally many numbers."""
    if loss.of_kind("thinned"):
        why = "the collate function may drop samples: ranks average over different numbers of rows, and gradients are wrong"
        yield context.manual(CODE, node, why, _weighed(context, node), obligations, Safety.REVIEW)
    elif padding.averages_beside(context, loss, node) if loss.of_kind("world") else padding.averages_over_padding(context, loss, node):
        yield _of_padding(context, node, obligations)
    elif loss.of_kind("part"):
        yield from batch_parts.share_parts(context, node, loss, obligations)
    else:
        yield Proof(obligations[0])
        yield from _own_lengths(context, node, loss)


def _own_lengths(context: Context, node: ast.Call, loss: Value) -> Iterator[Finding]:
    """Models that see padding, of which each rank has as much as its own samples need."""
    by_own_length = (c for c in context.facts.after.trace.calls if not filled_sequences.are_as_long(context, c.result.batches()))
    filled = coupled_losses.pads(context, loss) or any(map(coupled_losses.fills_up_rows, by_own_length))
    filled = filled or any(padding.cuts_by_hand(context, loss))
    if filled and any(_may_see_padding(context, o) for o, _ in loss.of_kind("forward")):
        why = "each rank pads or cuts its batches to the longest of its own samples: what a model makes of padding, without a mask, differs"
        yield context.manual(CODE, node, why, level=Safety.NOTE)


def _may_see_padding(context: Context, model: Obj) -> bool:
    """Whether a module is one of the project's, or of torch's that goes along a sequence."""
    along = isinstance(model, New) and model.path.startswith(("torch.nn.RNN", "torch.nn.GRU", "torch.nn.LSTM", "torch.nn.Conv"))
    return along or context.facts.after.interpreter.is_module(model)


def _of_padding(context: Context, node: ast.Call, obligations: tuple[Obligation, ...]) -> Finding:
    """An average over all entries of batches that each rank pads to a length of its own."""
    why = "each rank pads its batches to another length, and this mean counts the padding: gradients differ from the original's"
    # Padding that does nothing leaves the gradients as they are; where no rank's batch is longer, a run says nothing of it.
    answered_by = SAME_GRADIENTS_OF_UNEQUAL_BATCHES
    return context.manual(CODE, node, why, _weighed(context, node), obligations, Safety.REVIEW, answered_by)


def _corrected(context: Context, node: ast.Call, loss: Value, obligations: tuple[Obligation, ...]) -> Change | Finding:
    """The edits that make a loss of another kind that of the whole batch, or why none is known."""
    if (change := _by_weight(context, node, loss, obligations)) is not None:
        return change
    change, outside = next(_ways(context, node, loss, obligations), (None, _unedited(context, loss)))
    if change is not None and not outside:
        return change
    return replace(_left_open(context, node, loss, obligations), needs_edits_in=outside)


def _ways(context: Context, node: ast.Call, loss: Value, obligations: tuple[Obligation, ...]) -> Iterator[tuple[Change, frozenset[str]]]:
    """The edits by which a loss becomes that of the whole batch, the cheapest first, each with the modules to be edited for it."""
    shown = context.tree.shown
    if (averages := divisors.find_averages(context, node, loss)) is not None:
        needs, how = averages.needs(context), tuple(averages.how.items())
        change = Change(CODE, averages.why, shown, averages.nodes[0], averages.edits, averages.imports, needs=needs, redistributes=how)
        yield replace(change, discharges=obligations), averages.outside(context)
    if (rows := coupled_losses.whole_batch_loss(context, node, loss)) is not None:
        needs, how = ("from_all_ranks",), rows.redistributes
        change = Change(CODE, _COMPUTED_WHOLE, shown, rows.node, rows.edits, rows.imports, needs=needs, redistributes=how)
        yield replace(change, level=Safety.NOTE, discharges=obligations), rows.outside(context)
    if (shared := shared_numbers.find_shared(context, node, loss)) is not None:
        needs, how = ("average_of_all_ranks",), tuple(shared.how.items())
        change = Change(CODE, _SHARED, shown, shared.node, shared.edits, shared.imports, needs=needs, redistributes=how)
        yield replace(change, discharges=obligations), shared.outside(context)
    if (inside := coupled_forwards.gathered(context, node, loss)) is not None:
        needs, how = ("from_all_ranks",), tuple(inside.how.items())
        change = Change(CODE, _COMBINED_WHOLE, shown, inside.node, inside.edits, inside.imports, needs=needs, redistributes=how)
        yield replace(change, level=Safety.NOTE, discharges=obligations), inside.outside(context)


def _unedited(context: Context, loss: Value) -> frozenset[str]:
    """The modules that could be edited, and are not yet, in whose forwards the samples of a batch meet, or labels are counted."""
    places = [*coupled_forwards.places(context, context.facts.after, loss), *(outputs.call for outputs in loss.of_kind("valid"))]
    places = [n for n in places if context.facts.may_edit(n) and not context.facts.is_edited(n)]
    return frozenset(context.facts.tree_of(n).name for n in places)


def _left_open(context: Context, node: ast.Call, loss: Value, obligations: tuple[Obligation, ...]) -> Finding:
    """Why no edit is known that makes a loss that of the whole batch."""
    if places := coupled_forwards.places(context, context.facts.after, loss):
        at = f"{context.facts.tree_of(places[0]).shown}:{getattr(places[0], 'lineno', 1)}"
        why = "the model's forward combines samples of a batch, and each rank has only its part: outputs differ from the original's"
        # What samples do to one another shows in the gradients of any step; but for what is taken out of a comparison.
        answered_by = "" if _are_statistics(context, places) else SAME_GRADIENTS
        return context.manual(CODE, node, why, f"samples are combined at {at}: {_GATHER}", obligations, Safety.REVIEW, answered_by)
    why = _REASONS.get(loss.scale or "", _REASONS["other"])
    # Ranks' averaged gradients are the original's for a mean and for nothing else; counts that are known to matter may be equal by chance.
    answered_by = "" if loss.scale == "weighted" else SAME_GRADIENTS
    fix = _weighed(context, node) if loss.scale in ("weighted", "sample") else _ROWS_OF_ALL
    return context.manual(CODE, node, why, fix, obligations, Safety.REVIEW, answered_by)


def explained(context: Context, finding: Finding) -> Finding:
    """A finding about a loss of which no edit is known, with where the loss stops being an average, and what else it may be."""
    node = next((o.about for o in finding.discharges if finding.message in _REASONS.values()), None)
    if not isinstance(node, ast.Call):
        return finding
    loss = join([loss_of(call) for call in context.facts.after.calls(node)])
    functions, cause = unknown.names(context, loss), doubts.cause(context, node, loss)
    why = f"; what {unknown.listed(functions)} makes of the samples is not known" if functions and cause is None else ""
    alternatives = _alternatives(context, node, functions, cause) if finding.answered_by else ()
    return replace(finding, message=finding.message + why, cause=cause, alternatives=alternatives)


def _alternatives(context: Context, node: ast.Call, functions: list[str], cause: Cause | None) -> tuple[Alternative, ...]:
    """What a loss may be that is no mean: most often a sum; a number of the whole batch costs that all ranks' rows are gathered."""
    here = f"{context.tree.shown}:{node.lineno}"
    totals = functions or [here]
    coupled = functions or [f"{cause.file}:{cause.line}" if cause is not None else here]
    return unknown.alternatives(("sum", totals), ("coupled", coupled))


def _weighed(context: Context, node: ast.AST) -> str:
    """What to write for a loss that is divided by a count which differs between ranks."""
    called = node.func if isinstance(node, ast.Call) else None
    loss = context.source(called.value) if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else "loss"
    return (
        f"count = torch.tensor(float(n), device={loss}.device)  # n: by what this rank divides, such as its valid samples\n"
        f"{context.names['dist']}.all_reduce(total := count.clone())\n"
        f"({loss} * count * {context.names['dist']}.get_world_size() / total).backward()"
    )


def _by_hand(context: Context, node: ast.Call) -> bool:
    """Whether a loop around a backward call may go through a loader that is not edited, in place of another."""
    paths = {p for value in _gone_through(context, node) for p in paths_of(value)} - LOADERS
    return any(row_of(SHARED_BY_HAND, p) is not None for p in paths)


def _gone_through(context: Context, node: ast.Call) -> list[Value]:
    """What the loops around a backward call go through, and what that goes through itself: `enumerate(loader)`."""
    run = context.facts.after
    return [value for call in run.calls(node) for loop in call.loops for value in run.iterated(loop.over)]


def _unseen(context: Context, node: ast.Call) -> tuple[str, str]:
    """What to say of a loss that no loader, cut or draw was seen to feed, and what to do about it."""
    over = _gone_through(context, node)
    if any(p.startswith("torchtext.") for value in over for p in paths_of(value)):
        return (
            "an iterator of torchtext makes these batches: every rank would train on the same samples",
            "leave its batch size, let random.seed(...) be alike on all ranks when it is made, and take this rank's samples of each batch: "
            "text = batch.text[:, rank::world_size] and label = batch.label[rank::world_size] (batch_first: batch.text[rank::world_size]); "
            "of a BPTTIterator the columns of text and target, with a hidden state of batch_size // world_size",
        )
    rows = (row_of(SHARED_BY_HAND, p) for value in over for p in paths_of(value))
    if (known := next((row for row in rows if row is not None), None)) is not None:
        return known
    return "this loss does not come from a data loader: every rank may train on the same inputs", _SHARED_OUT


def _weighed_by(context: Context, node: ast.expr, text: str) -> Edit:
    """The edit of an average: of the expression, or after the statement that gives it a name."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return InsertAfter(context.facts.tree_of(node).statement(node), f"{node.id} = {text.format(node.id)}")
    return Replace(node, text, (node,))


def _by_weight(context: Context, node: ast.Call, loss: Value, obligations: tuple[Obligation, ...]) -> Change | None:
    """Multiply averages by class weights, or over valid targets, by this rank's part of them; None where that is not seen."""
    if loss.scale != "weighted" and _averages_unequally(context, node, loss):
        return None
    amounts, before = valid_targets.amounts_of(context, node, loss)
    if not amounts:
        return None
    helper = context.names["mean_over_ranks"]
    return Change(
        CODE,
        "this loss is divided by a count or a sum of weights that differs between ranks: it is divided by that of all ranks",
        context.tree.shown,
        next(iter(amounts)),
        (*before, *(_weighed_by(context, node, f"{helper}({{0}}, {escaped(amount)})") for node, amount in amounts.items())),
        ("import torch",) if any("torch." in amount for amount in amounts.values()) else (),
        discharges=obligations,
        needs=("mean_over_ranks",),
        redistributes=tuple((node, "mean") for node in amounts),
    )
