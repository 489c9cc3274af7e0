"""The operands of an expression that are sharded or partial, and the edits that make them those of all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import New
from ddpify.facts.tree import same, walk
from ddpify.rules.context import Context

_DISPLAYS = (ast.Tuple, ast.List, ast.Dict, ast.JoinedStr, ast.FormattedValue, ast.Starred)


def sharded_parts(context: Context, node: ast.expr, carried: ast.expr | None = None) -> list[ast.expr] | None:
    """The largest operands of an expression that are averages, totals or counts over one rank's samples.

    With each of them reduced over all ranks, the expression has the value it has in one process. None where the expression depends on
    the rank in another way, too. `carried` is a loop-carried variable, which holds the value of all ranks already.
    """
    parts: list[ast.expr] = []
    return parts if _gather(context, node, carried, parts) else None


def reduce_edits(context: Context, parts: list[ast.expr]) -> tuple[list[Edit], set[str]]:
    """The edits that make parts of an expression the numbers of all ranks, and the helpers they call."""
    names, edits, needs = context.names, list[Edit](), set[str]()
    for part in parts:
        scale = context.facts.after.value(part).scale
        if scale == "count":
            factor = f"{{0}} * {names['world_size']}"
            edits.append(Replace(part, factor if isinstance(part, (ast.Call, ast.Name)) else f"({{0}}) * {names['world_size']}", (part,)))
            continue
        edits.append(over_ranks(context, part))
        needs.add("sum_over_ranks")
    return edits, needs


def over_ranks(context: Context, part: ast.expr) -> Replace:
    """The edit that sums a total over the ranks, and averages an average."""
    share = f" / {context.names['world_size']}" if context.facts.after.value(part).scale == "mean" else ""
    return Replace(part, f"{context.names['sum_over_ranks']}({{0}}){share}", (part,))


def gather_edits(context: Context, index: ast.expr, value: ast.expr) -> tuple[list[Edit], set[str]]:
    """The edits that store the rows of all ranks, under the indices of all where they are the samples'; none where that is not seen."""
    run, name = context.facts.after, context.names["from_all_ranks"]
    counts: list[ast.expr] = []
    if isinstance(index, ast.Slice):  # as many rows as a rank has of its batch
        bounds = [sharded_parts(context, b) for b in (index.lower, index.upper, index.step) if b is not None]
        counts = [part for parts in bounds for part in parts or ()]
        if None in bounds or any(run.value(part).scale != "count" for part in counts):
            return [], set()
    own = [n for n in ((value,) if counts else (index, value)) if context.from_sharded_data(run.value(n))]
    rows = all(run.value(n).scale == "sample" and not run.value(n).instances() for n in own)
    place = index in own if not isinstance(index, ast.Slice) else index not in own and value in own
    if not rows or not place or isinstance(index, ast.Tuple) or any(is_no_tensor(context, n) for n in own):
        return [], set()
    return [*(Replace(n, f"{name}({{0}})", (n,)) for n in own), *reduce_edits(context, counts)[0]], {"from_all_ranks"}


def is_no_tensor(context: Context, node: ast.expr, depth: int = 4) -> bool:
    """Whether an expression is the list or the array that a tensor was turned into, at once or where its name is assigned.

    So is a batch whose entries were read: a tuple or a dict of tensors.
    """
    shape = context.facts.after.value(node).shape
    if shape is not None and shape.several is None and context.facts.after.interpreter.claims.is_tuple(shape.base):
        return True
    if isinstance(node, ast.Name) and depth:
        defined = context.facts.after.definitions.reaching(node).definitions
        ups = [next((n for n in context.facts.tree_of(d).ancestors(d) if isinstance(n, ast.stmt)), None) for d in defined]
        return any(is_no_tensor(context, up.value, depth - 1) for up in ups if isinstance(up, ast.Assign))
    if not isinstance(node, ast.Call):
        return False
    arrays = any(p == "list" or p.startswith("numpy.") for p in context.facts.after.value(node.func).paths())
    return arrays or (isinstance(node.func, ast.Attribute) and node.func.attr in ("tolist", "numpy"))


def _gather(context: Context, node: ast.expr, carried: ast.expr | None, parts: list[ast.expr]) -> bool:
    value = context.facts.after.value(node)
    if isinstance(node, _DISPLAYS):
        return all(_is_plain(context, c) and _gather(context, c, carried, parts) for c in expressions(node))
    if (carried is not None and same(node, carried)) or not (context.from_sharded_data(value) or context.differs(value)):
        return True
    is_carried = carried is not None and any(same(n, carried) for n in walk(node))
    known = value.scale in ("sum", "count", "mean") and not value.instances() and not value.of_kind("offset")
    if known and not is_carried and not _is_chosen(context, node, carried is not None):
        parts.append(node)
        return True
    if isinstance(node, (ast.Name, ast.Attribute, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.Starred)):
        return False
    inner = [c for c in expressions(node) if not (isinstance(node, ast.Call) and c is node.func and isinstance(c, ast.Name))]
    return bool(inner) and all(_gather(context, c, carried, parts) for c in inner)


def _is_chosen(context: Context, node: ast.expr, kept: bool) -> bool:
    """Whether a rank's own batch chooses between numbers: an average of such is not what the average would choose.

    What is `kept` from step to step must not be computed from such a choice either.
    """
    value = context.facts.after.value(node)
    if isinstance(node, ast.IfExp):
        return context.differs(context.facts.after.value(node.test))
    return kept and value.scale == "mean" and not context.sharded_loaders.isdisjoint(value.of_kind("decided"))


def _is_plain(context: Context, node: ast.expr) -> bool:
    """Whether an entry of a display is a display itself, or no container that holds a rank's own numbers."""
    run = context.facts.after
    return isinstance(node, _DISPLAYS) or not any(holds_rank_numbers(context, o) for o in run.value(node).instances())


def holds_rank_numbers(context: Context, obj: New, depth: int = 0) -> bool:
    """Whether an object holds numbers that differ between ranks, in containers, too."""
    attributes = list(context.facts.after.of(obj).values()) if depth < 4 else []
    return any(
        context.from_sharded_data(v) or any(holds_rank_numbers(context, o, depth + 1) for o in v.instances() if o.path in COLLECTIONS)
        for v in attributes
    )


def expressions(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of an expression: of a method call, what it is called on."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func.value
        yield from node.args
        yield from (k.value for k in node.keywords)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.keyword):
                yield child.value
