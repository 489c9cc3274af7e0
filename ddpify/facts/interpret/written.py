"""What the rows of a tensor are once some of their entries are written: still each sample's own, or not."""

from __future__ import annotations

import ast

from ddpify.facts import tensor_entries, tensors
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Value
from ddpify.facts.operands import argument
from ddpify.facts.origins import Origin
from ddpify.placement.shape import COUPLED, PLACES, ROWS, Use
from ddpify.placement.transfer import together


def write(run: Interpreter, target: ast.Subscript, value: Value) -> bool:
    """Carry out `rows[index] = value`, where the rows are not each sample's own from here on; whether that is so.

    They are where all samples are written to, or those that a mask chooses, each with a constant or with what is its own.
    """
    parts = list[ast.Subscript]()
    node: ast.expr = target
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        parts += [node] if isinstance(node, ast.Subscript) else []
        node = node.value
    rows = run.expression(node) if isinstance(node, (ast.Name, ast.Attribute)) else NOTHING
    if rows.scale != "sample" or rows.objs or rows.shape is None or rows.shape.several or _may_be_list(rows, parts[-1]):
        return False
    taken = rows
    for part in reversed(parts):
        taken = tensor_entries.entries(run, taken, run.trace.values.get(part.slice, NOTHING), part)
    given = argument(run, value)
    found = together(Use((), {}), (argument(run, taken), given)) if taken.scale in ROWS and given.literal != PLACES else COUPLED
    needs = frozenset(o for o in taken.origins if o.kind == "needs")
    if found.scale in ROWS and not value.of_kind("coupled") and not tensors.uneven([rows, value]):
        hold(run, node, Value(rows.objs, rows.origins | needs, rows.scale, rows.shape))
        return False
    coupled = {Origin(mark, target) for mark in found.marks} if taken.scale in ROWS else set()
    hold(run, node, Value(rows.objs, rows.origins | value.origins | coupled, "other", rows.shape))
    return True


def _may_be_list(rows: Value, part: ast.Subscript) -> bool:
    """Whether `x[0] = ...` may replace one of several tensors."""
    return rows.shape is not None and rows.shape.several is None and not isinstance(part.slice, (ast.Tuple, ast.Slice, ast.Compare))


def hold(run: Interpreter, node: ast.expr, value: Value) -> None:
    """Let a name or an attribute hold what its tensor is, in which entries have changed, from here on."""
    if isinstance(node, ast.Name):
        run.change(node.id, value)
    elif isinstance(node, ast.Attribute):
        for obj in run.expression(node.value).objs:
            run.set_attribute(obj, node.attr, value, False)
