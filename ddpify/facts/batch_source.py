"""Batches that a script makes by hand: what is known of an expression that makes them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ddpify.records import dataclass

if TYPE_CHECKING:
    pass


EXAMPLES = ("examples", "own_examples")
EXAMPLE_BATCH = "torchtext.data.Batch"
SLICE = "[slice]"
DRAW = "[draw]"
PATHS = frozenset((SLICE, DRAW))
ORDERS = frozenset(("torch.randperm", "numpy.random.permutation", "sklearn.utils.shuffle", "random.sample"))
JOINS = frozenset(("cat", "concat", "stack", "hstack", "vstack", "concatenate", "array", "tensor", "as_tensor", "asarray"))


@dataclass(frozen=True)
class BatchSource:
    """One expression that makes batches; `size` is the number of samples of a batch.

    `examples` goes through the batches of an iterator of torchtext, whose tensors have their samples along the dimension `axis`, and come
    with lengths where `lengths` says so; of `own_examples` a rank has its rows already. `rows` slices, `parts` splits, `draw` draws;
    `columns` and `lines` lay a sequence out as a batch that is read through time, down its rows or along its columns; `state` is made for
    so many samples, such as a hidden state.
    """

    kind: str
    node: ast.expr
    size: ast.expr | None
    axis: int = 0
    lengths: bool = False
