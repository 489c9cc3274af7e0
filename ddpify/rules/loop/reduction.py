"""A live-out variable of a loop over batches, and its reduction over the ranks."""

from __future__ import annotations

import ast

from ddpify.edits import Edit
from ddpify.facts.library import COLLECTIONS, DICTS
from ddpify.facts.model import NOTHING, New, Value, join
from ddpify.facts.writes import Batches, Write
from ddpify.placement.shape import Scale
from ddpify.records import dataclass, field
from ddpify.rules.base import Alternative
from ddpify.rules.context import Context
from ddpify.rules.loop.live_out import LiveOut


@dataclass
class Reduction:
    """The reduction of one live-out variable: lines after the loop, edits inside it, or the reason why neither is known."""

    lines: list[str] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    replicates: list[tuple[ast.stmt, ast.expr]] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    problem: str = ""
    fix: str = ""
    doubt: str = ""  # applied, but not proven equal
    alternatives: tuple[Alternative, ...] = ()  # what may be true of the values, for a run to tell
    note: str = ""  # left as it is: nothing is to be done


@dataclass(frozen=True, eq=False)
class Variable:
    """A live-out variable of a loop over batches; the loop is `sharded` where it evaluates, each rank its share of the data."""

    context: Context
    loop: Batches
    live: LiveOut
    loader: str  # the loop's loader, as the script writes it
    sharded: bool

    @property
    def objs(self) -> frozenset[New]:
        """The instances that it may be."""
        return self.live.value.instances()

    @property
    def element(self) -> Value:
        """The values that the loop put into a container."""
        run = self.context.facts.after
        values = [self.added(write) for write in self.live.writes if write.added is not None]
        return join(values or [run.attribute(o, "[]") for o in self.objs if o.path in COLLECTIONS] or [self.live.value])

    def added(self, write: Write) -> Value:
        """What a statement adds: a number of one sample is a part of the total that it adds up to."""
        run, node = self.context.facts.after, write.node
        value = run.value(write.added) if write.added is not None else NOTHING
        adds_up = isinstance(node, ast.AugAssign) and value.scale == "other" and run.value(node.target).scale == "sum"
        return Value(value.objs, value.origins, "sum") if adds_up else value

    def share(self, scale: Scale | None) -> str:
        """What a sum over ranks is divided by: an average by their number."""
        return f" / {self.context.names['world_size']}" if scale == "mean" and not self.sharded else ""


def unknown(live: LiveOut) -> Reduction:
    """What is said where it is not known how a variable is reduced."""
    return Reduction(
        problem=f"`{live.name}` is computed from this rank's part of the data only, and is read after the loop as if it were of all of it",
        fix=f"combine the parts of all ranks first: parts = [None] * world_size; dist.all_gather_object(parts, {live.name})",
    )


def carried_on(live: LiveOut) -> Reduction:
    """What is said where a variable does not start anew before the loop, and what is added to it is not known."""
    return Reduction(
        problem=f"`{live.name}` is not reset between passes over the data: summed over ranks after each, it would count passes twice",
        fix=f"reset {live.name} before the loop, or reduce a copy of it where it is read",
    )


def sums(lines: list[str], doubt: str = "") -> Reduction:
    """Lines after the loop that sum over the ranks."""
    return Reduction(lines=lines, needs={"sum_over_ranks"}, doubt=doubt)


def summed(context: Context, text: str, value: Value, share: str, target: str = "") -> str:
    """The line that sums a number, a list, a dict or an array over the ranks; empty where what it is was not seen."""
    total, objs = context.names["sum_over_ranks"], value.instances()
    if any(o.path in DICTS for o in objs):
        return f"for key in {text}:\n    {text}[key] = {total}({text}[key]){share}"
    if objs and all(o.path == "list" for o in objs):
        return f"{target or text} = [{total}(value){share} for value in {text}]"
    if objs:
        return ""
    return f"{text} = {total}({text}){share}"
