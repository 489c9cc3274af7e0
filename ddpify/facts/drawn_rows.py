"""Random numbers that are drawn for each sample of a batch: of the batch size that its loader was given, and not of the batch's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, New, Tup, Value
from ddpify.facts.origins import Origin

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter


def for_each_sample(run: Interpreter, size: Value) -> Value:
    """A size, or a tuple of sizes: where one is the batch size of the loader that is gone through, it is the number of samples."""
    if len(size.objs) == 1 and isinstance(only := next(iter(size.objs)), Tup):
        each = only.each(lambda item: _counted(run, item))
        return size if each == only else Value(frozenset((each,)), size.origins.union(*(v.origins for v in each.items)))
    return _counted(run, size)


def _counted(run: Interpreter, size: Value) -> Value:
    """A size, as the count of the samples of a rank's batch where it is what the loader of the innermost loop over batches was given."""
    loaders = next((found for loop in reversed(run.loops) if (found := loop.element.batches())), frozenset())
    given = [run.memory.get((o, "batch_size"), NOTHING).objs for o in loaders if isinstance(o, New)]
    if size.scale is not None or not size.objs or len(given) != 1 or not size.objs <= given[0]:
        return size
    return Value(frozenset(), size.origins | {Origin("batch", o) for o in loaders}, "count")
