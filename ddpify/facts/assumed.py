"""What a run of the interpreter assumes of a script: that edits which are planned have been made."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ddpify.facts.batch_source import BatchSource
from ddpify.facts.model import New
from ddpify.records import dataclass, field

GRADED = {how: f"{how} with gradients" for how in ("whole", "agreed", "mean")}
"""Of what an edit makes something else: how it is called where the edit does so only where there are gradients."""

BY_RANK_ZERO, BY_ALL_RANKS = "rank 0", "all ranks"
READERS = ("WholeBatches", "DDPWholeBatches")
"""What a converted script calls the class that gives all ranks whole batches of a loader."""
WHOLE_BATCHES = "whole batches"
"""What the memory calls who reads a loader so."""
GATHERS = ("rows_of_all_ranks", "ddp_rows_of_all_ranks")
"""What a converted script calls the function that gathers the outputs of such a forward."""
IN_PARTS = "in parts"
"""What a forward becomes that each rank runs on its rows of a batch: what it gives is gathered, in the containers that it gives."""
SEVERAL_IN_PARTS = f"{IN_PARTS}, several rows for each sample"
SHARE = "share"
"""What rows become of which a forward is given this rank's; what another forward in parts gives is gathered before."""
GIVEN = "given share"
"""What a tensor becomes of which a forward is given this rank's rows, and that all ranks have made alike."""
SHARES = ("rows_of_rank", "ddp_rows_of_rank")
"""What a converted script calls the function that takes a rank's rows."""


@dataclass(frozen=True, eq=False)
class AssumedEdits:
    """Statements and expressions of a script that differ from how they are written, and how.

    `wraps` names the targets that hold a DistributedDataParallel after a statement, `unwraps` the expressions that give the model inside;
    with `ignore_dp`, DataParallel gives its module. `batch_sources` are the expressions that make batches by hand. `replicated_after` names
    the expressions that are the same on all ranks after a statement, computed from the batches of the loaders `shares` (None: of any).
    All ranks take the same way through `replicated_branches`. `redistributed` maps expressions to what an edit makes of them: all ranks'
    rows ("whole"), a number that is the same on all ranks ("agreed"), numbers whose average over ranks is that of all samples ("mean"), or
    whose total is ("sum"); GRADED: not where nothing has gradients. The loaders that the calls `read_whole` make give all ranks whole
    batches: those that rank 0 reads, or those whose parts all ranks read.
    """

    wraps: Mapping[ast.stmt, tuple[ast.expr, ...]] = field(default_factory=dict)
    ignore_dp: bool = False
    unwraps: frozenset[ast.expr] = frozenset()
    batch_sources: Mapping[ast.AST, BatchSource] = field(default_factory=dict)
    shares: frozenset[New] | None = None
    replicated_after: Mapping[ast.stmt, tuple[ast.expr, ...]] = field(default_factory=dict)
    replicated_branches: frozenset[ast.AST] = frozenset()
    redistributed: Mapping[ast.expr, str] = field(default_factory=dict)
    read_whole: Mapping[ast.AST, str] = field(default_factory=dict)

    def key(self) -> tuple[object, ...]:
        """What two equal assumptions share."""
        maps = (self.wraps, self.batch_sources, self.replicated_after, self.redistributed, self.read_whole)
        return (
            *(frozenset(each.items()) for each in maps),
            self.ignore_dp,
            self.unwraps,
            self.replicated_branches,
            self.shares,
        )


AS_WRITTEN = AssumedEdits()
