"""Where ranks go in turn, none waits for the others: a collective there would wait for ranks that wait for their turn."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from ddpify.checks.order import is_collective
from ddpify.checks.problem import Problem
from ddpify.facts.model import Func
from ddpify.facts.runs import Run
from ddpify.facts.tree import inside, walk

_FIX = "take this out of the block: give all ranks the value before it, or let each rank work with its own"


def problems(run: Run, helpers: Mapping[ast.AST, str], trees: Iterable[ast.Module]) -> Iterator[Problem]:
    """The calls under `first_on_node` that lead to a collective; `helpers` has the runtime block's definitions, and what they are."""
    turns = {node for node, key in helpers.items() if key == "first_on_node"}
    if not turns:
        return
    waiting = {n for node in turns for n in inside(node)}
    asked = {c.node for c in run.trace.calls if any(isinstance(o, Func) and o.node in turns for o in c.func.objs)}
    blocks = (n for tree in trees for n in walk(tree) if isinstance(n, ast.With) and any(i.context_expr in asked for i in n.items))
    within = {n for block in blocks for statement in block.body for n in inside(statement)}
    reported: set[ast.AST] = set()
    for call in run.trace.calls:
        if call.node in waiting or not any(is_collective(path) for path in call.func.paths()):
            continue
        for node in (n for n in (*call.stack, call.node) if n in within and isinstance(n, ast.Call) and n not in reported):
            reported.add(node)
            what = ast.unparse(node.func)
            file = next((c.file for c in run.calls(node)), call.file)
            why = f"{what} needs all ranks, and runs where they go in turn: the others wait for the first one to be done, and it for them"
            yield Problem(file, node, why, ("turn", file, what), _FIX)
            break
