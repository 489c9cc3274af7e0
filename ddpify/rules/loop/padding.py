"""Losses of batches that each rank pads to a length of its own: whether an average counts the padding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts import batch_source, library
from ddpify.facts.definitions import GROWS
from ddpify.facts.library.paths import SCALERS
from ddpify.facts.model import Call, Loop, New, Value
from ddpify.facts.origins import Origin
from ddpify.facts.tree import last_name, own_nodes, same, walk
from ddpify.rules.base import Finding
from ddpify.rules.context import Context
from ddpify.rules.loop import coupled_losses
from ddpify.rules.loop.last_batch import given_as

_OF_ENTRIES = frozenset(
    "L1Loss MSELoss SmoothL1Loss BCELoss BCEWithLogitsLoss HuberLoss l1_loss mse_loss smooth_l1_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits huber_loss".split()
)
_OF_SAMPLES = frozenset(("CTCLoss", "ctc_loss"))  # given the length of each sample
_FLATTENING = frozenset(("view", "reshape", "flatten", "transpose", "permute"))
_OF_COUNTS = frozenset(("clamp", "clamp_min", "float", "to", "type_as", "double"))  # what leaves a count one


def averages_over_padding(context: Context, loss: Value, node: ast.Call) -> bool:
    """Whether batches are padded and a loss averages over all entries, those of the padding too."""
    pads = coupled_losses.pads(context, loss)
    if loss.of_kind("tokens") and (pads or coupled_losses.may_vary_in_shape(context, loss)):
        return True
    cut = any(node not in _in_forwards(context) for node in cuts_by_hand(context, loss))
    if not pads and not _padded_by_hand(context, loss) and not cut:
        return False
    losses = _torch_losses(context)
    if losses & _OF_ENTRIES:
        return True
    if losses and losses <= _OF_SAMPLES:
        return False
    if losses and any(c.result.scale == "mean" and own_length(context, c) is not None for c in context.facts.after.trace.calls):
        return True  # one average for each place of the longest sample
    start = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
    if start is not None and all(rows is not None and _by_own_count(context, rows) for rows in _averaged(context, start)):
        return False
    if cut:
        return True  # what is made of all places that are left, as an average or a softmax over them, differs
    places = {node, *(above for call in context.facts.after.calls(node) for above in call.stack)}
    functions = {context.facts.tree_of(place).function(place) for place in places}
    calls = (n for f in functions for n in own_nodes(f) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(last_name(n.func) in _FLATTENING and context.from_sharded_data(context.facts.after.value(n)) for n in calls)


def counts_padded_labels(context: Context, loss: Value) -> bool:
    """Whether a model of a library averages over labels of batches that a rank pads, and nothing says that the padding is ignored."""
    return bool(loss.of_kind("valid")) and coupled_losses.pads(context, loss) and not context.facts.after.interpreter.ignores()


def averages_beside(context: Context, loss: Value, node: ast.Call) -> bool:
    """Whether a loss that is divided by all ranks' count of entries has a term beside that averages over those of the padding, too."""
    if not coupled_losses.pads(context, loss):
        return False
    given = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
    starts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given] if given is not None else []
    means = (rows for start in starts for rows in _averaged(context, start) if rows is not None)
    return any(not _by_own_count(context, rows) and _summed(context, rows) is None for rows in means)


def waiting(context: Context) -> Iterator[Finding]:
    """Calls in which ranks wait for one another, in loops that each rank goes through as often as its own batch is long."""
    why = "each rank goes through this loop as often as its own padded batch is long, and ranks wait for one another in it: a hang"
    fix = "call it once, after the loop, or pad the batches of all ranks to one length"
    for call in context.facts.after.trace.calls:
        if call.func.paths() & library.COLLECTIVES and (loop := own_length(context, call)) is not None:
            yield context.manual("DDP900", loop, why, fix)


def own_length(context: Context, call: Call, seen: tuple[ast.AST, ...] = ()) -> ast.AST | None:
    """The loop around a call that is as long as a padded batch, of which each rank has its own; None where all are alike."""
    training = context.facts.training_loops
    inner = [loop for loop in call.loops if loop.node not in training] if any(loop.node in training for loop in call.loops) else []
    fed = Value(frozenset(), frozenset(Origin("batch", loader) for loader in context.facts.feeding))
    if not inner or not (coupled_losses.pads(context, fed) or coupled_losses.may_vary_in_shape(context, fed)):
        return None
    return next((loop.node for loop in inner if loop.node not in seen and _by_length(context, loop, (*seen, loop.node))), None)


def _by_length(context: Context, loop: Loop, seen: tuple[ast.AST, ...]) -> bool:
    """Whether a loop goes by the size of a batch, or over a list that such a loop has filled."""
    if any(_measures(value) for value in (loop.over, loop.element)):
        return True
    run, head = context.facts.after, loop.node.iter if isinstance(loop.node, (ast.For, ast.comprehension)) else None
    lists = {o for n in walk(head) if isinstance(n, ast.expr) for o in run.value(n).instances()} if head else set()
    filling = [c for c in run.trace.calls if c.method in GROWS and not lists.isdisjoint(c.receiver.objs)]
    return any(own_length(context, c, seen) is not None for c in filling)


def _measures(value: Value) -> bool:
    """Whether a range, or a test, goes by the size of a batch, or of what is computed from it."""
    numbers = all(isinstance(o, New) and o.path == "range" for o in value.objs) and value.scale != "sample"
    return numbers and any(value.of_kind(kind) for kind in ("agreed", "batch", "forward"))


def _padded_by_hand(context: Context, loss: Value) -> bool:
    """Whether batches that the script cuts or draws itself are passed to something that pads, by its name, or sequences of any to torch.

    Those of an iterator of examples have been padded before they are shared out.
    """
    by_hand = {o for o in loss.of_kind("batch") if isinstance(o, New) and o.path in batch_source.PATHS}
    padded = {o for o in by_hand if context.facts.batch_sources[o.node].kind in batch_source.EXAMPLES}
    return any(
        ("pad" in c.method.lower() and any(a.batches() & (by_hand - padded) for a in c.args))
        or ("torch.nn.utils.rnn.pad_sequence" in c.func.paths() and bool(c.result.batches() & loss.of_kind("batch")))
        for c in context.facts.after.trace.calls
    )


def cuts_by_hand(context: Context, loss: Value) -> Iterator[ast.Subscript]:
    """Where rows of a loss are cut to a length that is computed of a batch: `rows[:, : lengths.max()]`."""
    run = context.facts.after
    for node in (n for tree in context.facts.trees.values() for n in tree.of(ast.Subscript) if n in run.trace.values):
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        shape = run.value(node).shape
        along = shape.axis if shape is not None and run.value(node).scale == "sample" else None  # that of the samples, as many as there are
        cuts = [e.upper for i, e in enumerate(entries) if i and i != along and isinstance(e, ast.Slice) and e.upper is not None]
        every = bool(entries) and isinstance(entries[0], ast.Slice) and entries[0].upper is None
        if (
            every
            and run.value(node).batches() & loss.of_kind("batch")
            and any(run.value(e).scale and context.from_sharded_data(run.value(e)) for e in cuts)
        ):
            yield node


def _in_forwards(context: Context) -> set[ast.AST]:
    """What stands in the functions that run inside a training forward."""
    return {n for function in context.forwards for n in walk(function)}


def _torch_losses(context: Context) -> set[str]:
    """The names of torch's losses that are called anywhere."""
    calls = context.facts.after.trace.calls
    paths = {p for c in calls for p in c.func.kinds() if p.startswith("torch.nn.")}
    paths |= {p for c in calls for p in c.func.paths() if p.startswith("torch.nn.functional.")}
    return {name for name in (p.rpartition(".")[2] for p in paths) if name.endswith(("Loss", "_loss", "cross_entropy"))}


def _averaged(context: Context, node: ast.expr, outer: frozenset[ast.expr] = frozenset()) -> Iterator[ast.expr | None]:
    """The rows whose averages add up to a loss; None for a term that is anything else. What a loop adds up, `outer`, holds itself."""
    run, seen = context.facts.after, outer | {node}
    if node in outer:
        return
    match node:
        case ast.Name():
            values = _assigned(context, node) or given_as(context, node)
            for value in values:
                yield from _averaged(context, value, seen)
            if not values:
                yield None
        case ast.Call(func=ast.Attribute(value=scaler, attr="scale"), args=[term]) if frozenset() < run.value(scaler).kinds() <= SCALERS:
            yield from _averaged(context, term, seen)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            yield from _averaged(context, left, seen)
            yield from _averaged(context, right, seen)
        case ast.BinOp(left=term, op=ast.Mult() | ast.Div(), right=by) if not context.from_sharded_data(run.value(by)):
            yield from _averaged(context, term, seen)
        case ast.BinOp(left=by, op=ast.Mult(), right=term) if not context.from_sharded_data(run.value(by)):
            yield from _averaged(context, term, seen)
        case ast.Call(func=ast.Attribute(value=rows, attr="mean"), args=[], keywords=[]) if run.value(rows).scale == "sample":
            yield rows
        case _:
            yield None


def _by_own_count(context: Context, rows: ast.expr) -> bool:
    """Whether each sample's entries are masked and added up, and divided by how many of its own the mask leaves: padding counts nothing."""
    match _written(context, rows):
        case ast.BinOp(left=total, op=ast.Div(), right=count):
            entries, mask = _summed(context, total), _summed(context, count)
        case _:
            return False
    match _written(context, entries) if entries is not None else None:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return mask is not None and (same(left, mask) or same(right, mask)) and context.facts.after.value(mask).scale == "sample"
    return False


def _summed(context: Context, node: ast.expr) -> ast.expr | None:
    """What is added up along other dimensions than that of the samples, and at most kept from being zero; None for anything else."""
    match _written(context, node):
        case ast.Call(func=ast.Attribute(value=of, attr="sum")) as call:
            return of if context.facts.after.value(call).scale == "sample" else None
        case ast.Call(func=ast.Attribute(value=of, attr=attr)) if attr in _OF_COUNTS:
            return _summed(context, of)
        case ast.BinOp(left=of, op=ast.Add(), right=ast.Constant()):
            return _summed(context, of)
    return None


def _written(context: Context, node: ast.expr) -> ast.expr:
    """What a name stands for, where one assignment says so."""
    values = _assigned(context, node) if isinstance(node, ast.Name) else []
    return _written(context, values[0]) if len(values) == 1 else node


def _assigned(context: Context, name: ast.Name) -> list[ast.expr]:
    """What a name was assigned where it is read; nothing where it may have been given something else."""
    reaching = context.facts.after.definitions.reaching(name)
    ups = [context.facts.tree_of(d).parent.get(d) for d in reaching.definitions]
    values = [up.value for up in ups if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name)]
    return values if len(values) == len(ups) and not reaching.changes and not reaching.undefined else []
