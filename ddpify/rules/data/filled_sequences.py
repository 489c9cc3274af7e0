"""Packed sequences of batches that were padded before they are shared out: filled up again to the length of the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ddpify.edits import SetArgument
from ddpify.facts import batch_source
from ddpify.facts.library.flow import with_entries
from ddpify.facts.model import Call, New, Obj
from ddpify.facts.tree import own_nodes
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context, argument

_PACKS, _UNPACKS = "torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pad_packed_sequence"
_AS_LONG = "a rank's own sequences may be shorter than the longest of the batch, as long as which its other tensors are"
_FIX = "pad_packed_sequence(packed, total_length=embedded.size(0)), of what was packed; batch_first: size(1)"


def filled_up(context: Context, trained: Collection[New], code: str) -> Iterator[Change | Finding]:
    """What fills up packed sequences of examples, where anything reads them: as long as what was packed."""
    run, padded = context.facts.after, {o for o in trained if _is_of_examples(context, o)}
    for node in dict.fromkeys(call.node for call in run.trace.calls if padded and _UNPACKS in call.func.paths() and _is_of(call, padded)):
        length = _length(context, node) if context.facts.is_edited(node) else None
        if argument(node, 4, "total_length") is not None or not _reads_rows(context, node):
            continue
        if length is None:
            yield context.manual(code, node, _AS_LONG, _FIX, level=Safety.REVIEW)
        else:
            yield Change(code, _AS_LONG, context.facts.tree_of(node).shown, node, (SetArgument(node, "total_length", length, (), 4),))


def are_as_long(context: Context, batches: Collection[Obj]) -> bool:
    """Whether sequences of all ranks' parts of some batches are filled up to one length."""
    return bool(batches) and all(isinstance(o, New) and _is_of_examples(context, o) for o in batches)


def _is_of_examples(context: Context, batches: New) -> bool:
    """Whether batches are an iterator's of examples, padded to the longest of each batch."""
    known = context.facts.batch_sources.get(batches.node)
    of_examples = known is not None and known.kind in batch_source.EXAMPLES
    return of_examples and not any("fix_length" in call.keywords for call in context.facts.after.trace.calls)


def _is_of(call: Call, padded: Collection[New]) -> bool:
    """Whether a call is given sequences of some batches."""
    return any(not value.batches().isdisjoint(padded) for value in with_entries(call.args[:1]))


def _reads_rows(context: Context, node: ast.AST) -> bool:
    """Whether anything reads the first of several things that a call gives: `rows, lengths = call()`."""
    tree = context.facts.tree_of(node)
    match tree.parent.get(node):
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), *_])]):
            return any(n.id == name and isinstance(n.ctx, ast.Load) for n in own_nodes(tree.function(node)) if isinstance(n, ast.Name))
    return True


def _length(context: Context, node: ast.Call) -> str | None:
    """How long the sequences were that the same function has packed, and has not named anew since; None where that is not seen."""
    nodes = list(own_nodes(context.facts.tree_of(node).function(node)))
    packing = [n for n in nodes if isinstance(n, ast.Call) and _PACKS in context.facts.after.value(n.func).paths()]
    rows = argument(packing[0], 0, "input") if len(packing) == 1 else None
    first = argument(packing[0], 2, "batch_first") if rows is not None else None
    if not isinstance(rows, ast.Name) or not (first is None or isinstance(first, ast.Constant)):
        return None
    tree = context.facts.tree_of(node)
    again = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == rows.id)
    if any(not tree.before(n, packing[0]) and not tree.before(node, n) for n in again):
        return None
    return f"{rows.id}.size({int(first is not None and first.value is True)})"
