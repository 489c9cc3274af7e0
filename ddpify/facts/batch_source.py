"""Batches that a script makes by hand: what is known of an expression that makes them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from ddpify.records import dataclass

if TYPE_CHECKING:
    pass


EXAMPLES = ("examples", "own_examples")
EXAMPLE_BATCH = "torchtext.data.Batch"
ANY_FIELD, OTHER_FIELDS = "[any field]", "[other fields]"
SLICE = "[slice]"
DRAW = "[draw]"
PATHS = frozenset((SLICE, DRAW))
ORDERS = frozenset(("torch.randperm", "numpy.random.permutation", "sklearn.utils.shuffle", "random.sample"))
JOINS = frozenset(("cat", "concat", "stack", "hstack", "vstack", "concatenate", "array", "tensor", "as_tensor", "asarray"))


class Layout(NamedTuple):
    """How the tensors of a field lie: the dimension of the samples, of how many, and whether lengths come with them."""

    axis: int
    dims: int = 2
    lengths: bool = False


@dataclass(frozen=True)
class BatchSource:
    """One expression that makes batches; `size` is the number of samples of a batch.

    `examples` goes through the batches of an iterator of torchtext, with the `layouts` of its fields by their names ("": of any); of
    `own_examples` a rank has its rows already. `rows` slices, `parts` splits, `draw` draws;
    `columns` and `lines` lay a sequence out as a batch that is read through time, down its rows or along its columns; `state` is made for
    so many samples, such as a hidden state. `alike` says that a generator which the script hands over draws: on all ranks the same.
    """

    kind: str
    node: ast.expr
    size: ast.expr | None
    layouts: tuple[tuple[str, Layout], ...] = ()
    alike: bool = False
