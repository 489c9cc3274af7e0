"""The pieces of the runtime block (templates/runtime): what each takes, what it asks for, and in which order they are written."""

from __future__ import annotations

from typing import Literal

from ddpify.records import dataclass

Kind = Literal["tensor", "number", "array", "list", "tuple", "dict", "set", "text", "none", "function", "object"]
"""What a value may be, as far as a helper cares: an "array" is numpy's, an "object" an instance of any other class."""

_NUMBERS: frozenset[Kind] = frozenset(("tensor", "number", "array"))
_ROWS: frozenset[Kind] = frozenset(("tensor", "array", "list"))
_PART: frozenset[Kind] = _ROWS | {"tuple"}  # a slice of a list of tuples is followed as one of them
_NUMBER: frozenset[Kind] = frozenset(("number", "tensor", "array"))  # a tensor of one entry, too


@dataclass(frozen=True)
class Helper:
    """One piece: `takes` has the kinds that its first arguments may be of, one set each; None where any will do.

    `group` says that it asks the process group, `needs` which other pieces its text uses, `imports` what it needs besides the block's own.
    """

    takes: tuple[frozenset[Kind] | None, ...] = ()
    group: bool = False
    needs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


HELPERS: dict[str, Helper] = {
    "per_rank": Helper((_NUMBER,)),
    "workers_per_rank": Helper((_NUMBER,)),
    "sharded": Helper(
        (None, None),
        True,
        ("per_rank", "workers_per_rank"),
        ("from torch.utils.data.distributed import DistributedSampler",),
    ),
    "own_seed": Helper(imports=("import itertools",)),
    "sampler_of_rank_zero": Helper((None,), True),
    "whole_batches": Helper(
        (None, None),
        True,
        (),
        (
            *("import copyreg", "import functools", "import itertools", "import pickle", "from io import BytesIO"),
            "from torch.utils.data.distributed import DistributedSampler",
        ),
    ),
    "rank_sampler": Helper((None,)),
    "rank_batch_sampler": Helper((None,)),
    "endless_rank_sampler": Helper((None,)),
    "endless_rank_batch_sampler": Helper((None,)),
    "share_of_stream": Helper((None,)),
    "seed_nodes": Helper((None,)),
    "without_repeats": Helper((None,), imports=("from torch.utils.data.distributed import DistributedSampler",)),
    "rows_of_rank": Helper((_PART | {"dict"}, _NUMBER), needs=("per_rank",)),  # written for dicts where it is given some
    "columns_of_rank": Helper((frozenset(("tensor", "array")),), needs=("per_rank",)),
    "examples_of_rank": Helper((None,), True, ("per_rank",)),
    "with_repeated": Helper((_NUMBER,)),
    "size_on_all_ranks": Helper((_NUMBER, None), imports=("from torch.utils.data.distributed import DistributedSampler",)),
    "batches_of_rank": Helper((None, _NUMBER)),
    "first_on_node": Helper((), True, (), ("from contextlib import contextmanager",)),
    "drawn_by_rank_zero": Helper((), True, (), ("from contextlib import contextmanager",)),
    "sum_over_ranks": Helper((_NUMBERS,), True),
    "largest_over_ranks": Helper((_NUMBER,), True),
    "smallest_over_ranks": Helper((_NUMBER,), True),
    "gather_over_ranks": Helper((_ROWS, _NUMBER), True),
    "reduce_meter": Helper((frozenset(("object",)),), True, ("device",)),
    "from_rank_zero": Helper((_NUMBER,), True, ("device",)),
    "same_on_all_ranks": Helper((None,), True),
    "on_any_rank": Helper((None,), True, ("device",)),
    "mean_over_ranks": Helper((None, frozenset(("tensor",))), True),
    "from_all_ranks": Helper((frozenset(("tensor",)),), True),
    "average_of_all_ranks": Helper((frozenset(("tensor",)),), True),
    "rows_of_all_ranks": Helper((None, _NUMBER), True, ("from_all_ranks",)),
    "training_loss": Helper((None,)),
    "start_alike": Helper((None,), True),
    "average_gradients": Helper((frozenset(("object",)),), True, ("device",)),
    "with_averaged_gradient": Helper((None,), True),
    "averages_over_ranks": Helper((None,), True),
    "agree_on_seed": Helper((), True),
    "quiet": Helper(imports=("import sys",)),
    "quiet_logging": Helper(imports=("import logging",)),
}
"""In the order in which they are written."""
