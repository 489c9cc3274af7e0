"""What whoever started a script is asked: by rank 0, whose answer all ranks get. The others would wait for answers of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Call
from ddpify.facts.tree import inside
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.process.setup import works_at_import

_WHY = "rank 0 asks this, and all ranks get the answer: the others would wait for answers of their own"


def asked(context: Context, code: str) -> Iterator[Change | Finding]:
    """The questions that every rank would ask, and of which rank 0's answer is not everybody's yet."""
    calls, helper, rank = context.facts.after.calls_of("input"), context.names["same_on_all_ranks"], context.names["rank"]
    joined = context.main_block is None or context.once(works_at_import) if calls else False
    for node in dict.fromkeys(c.node for c in calls):
        evaluated = [c for c in calls if c.node is node]
        if node in context.assumed.redistributed or _is_shared(context, node) or _by_rank_zero(context, evaluated):
            continue
        if context.facts.is_edited(node) and (joined or all(_is_in_main(context, c) for c in evaluated)):
            edit = Replace(node, f"{helper}({{0}} if {rank} == 0 else None)", (node,))
            agreed = ((node, "agreed"),)
            yield Change(code, _WHY, context.tree.shown, node, (edit,), needs=("same_on_all_ranks",), redistributes=agreed)
        else:
            fix = f"ask on rank 0 alone: answer = {helper}(input(...) if {rank} == 0 else None)"
            yield context.manual(code, node, "every rank asks this, and waits for an answer of its own", fix)


def _is_shared(context: Context, node: ast.Call) -> bool:
    """Whether an answer is broadcast where it is given."""
    return any(isinstance(up, ast.Call) and context.broadcasts(up) for up in context.facts.tree_of(node).ancestors(node))


def _by_rank_zero(context: Context, calls: list[Call]) -> bool:
    """Whether rank 0 alone makes some calls, or will."""
    return all(guards_of(context).guarded_call(c.node, c.stack) for c in calls)


def _is_in_main(context: Context, call: Call) -> bool:
    """Whether a call is made by what the script does when it is run, after the process group is joined."""
    return context.main_block is not None and (*call.stack, call.node)[0] in inside(context.main_block)
