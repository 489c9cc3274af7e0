"""Where a script goes through the batches of an iterator of torchtext, and how their tensors lie: as all of its fields say alike."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddpify.facts.batch_source import BatchSource
from ddpify.facts.model import Call, Func, Lit, Value, paths_of
from ddpify.facts.tree import Tree

if TYPE_CHECKING:
    from ddpify.facts.runs import Run

SHARES = ("examples_of_rank", "ddp_examples_of_rank")
"""What a converted script calls the function that takes a rank's rows of such batches."""
_ITERATOR = re.compile(r"torchtext\.(legacy\.)?data\.(iterator\.)?(Bucket)?Iterator(\.splits)?")
_FIELD = re.compile(r"torchtext\.(legacy\.)?data\.(\w+\.)?\w*Field")
_PLAIN = re.compile(r".*\.Field")


def example_batches(run: Run, trees: list[Tree]) -> Iterator[BatchSource]:
    """The expressions that loops go through, and that are iterators of torchtext with batches whose layout is known."""
    layout = _layout(run)
    for tree in trees if layout is not None else ():
        loops: list[ast.For | ast.comprehension] = tree.of(ast.For, ast.comprehension)
        for loop in loops:
            for part in ast.walk(loop.iter):
                if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and is_iterator(run.value(part)):
                    yield from _of_loop(tree, part, *layout)  # type: ignore[misc]


def _of_loop(tree: Tree, part: ast.expr, axis: int, lengths: bool) -> Iterator[BatchSource]:
    if getattr(tree.function(part), "name", "") in SHARES:
        return  # it takes the rows itself
    up = tree.parent.get(part)
    if isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id in SHARES:
        yield BatchSource("own_examples", up, None, axis, lengths)
    elif not isinstance(up, (ast.Attribute, ast.Subscript)):
        yield BatchSource("examples", part, None, axis, lengths)


def is_iterator(value: Value) -> bool:
    """Whether a value is an iterator of torchtext over examples, and nothing else."""
    paths = paths_of(value)
    return bool(paths) and all(_ITERATOR.fullmatch(path) for path in paths)


def _layout(run: Run) -> tuple[int, bool] | None:
    """Along which dimension all fields lay samples, and whether they give lengths, too; None where they differ, or are not seen."""
    fields = [call for call in run.trace.calls if any(_FIELD.fullmatch(path) for path in call.func.paths())]
    splits = any(
        call.method in ("split", "stratify") and any("torchtext" in p for p in paths_of(call.receiver)) for call in run.trace.calls
    )
    splits |= any("batch_size_fn" in call.keywords for call in run.trace.calls)  # batches of so many tokens, not samples
    plain = all(_PLAIN.fullmatch(path) for call in fields for path in call.func.paths())
    first, lengths, sequential = ({_flag(call, name, default) for call in fields} for name, default in _FLAGS)
    if splits or not plain or len(first) != 1 or len(lengths) != 1 or sequential != {True} or None in first | lengths:
        return None
    return 0 if first == {True} else 1, lengths == {True}


_FLAGS = (("batch_first", False), ("include_lengths", False), ("sequential", True))


def _flag(call: Call, name: str, default: bool) -> bool | None:
    """What a field is told by a name; None where that is not known."""
    if any(k.arg is None for k in call.node.keywords) or len(call.node.args) > 1:
        return None
    given = call.keywords.get(name)
    if given is None and name == "sequential" and call.args:
        return True if call.args[0].objs and all(isinstance(o, Func) for o in call.args[0].objs) else None  # which counts as true
    if given is None:
        return default
    values = {o.value for o in given.objs if isinstance(o, Lit) and isinstance(o.value, bool)}
    return values.pop() if len(values) == 1 == len(given.objs) else None
