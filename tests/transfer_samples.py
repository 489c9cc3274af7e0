"""Operands that the rows of the table of transfer rules are tried with: those with rows of a batch, constants, dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

SIZES = (4, 6, 5, 7)  # of the dimensions that are not the samples'


@dataclass(frozen=True)
class Rows:
    """A tensor with rows of a batch; `like` names how: as X, with fewer or more dimensions, or with the samples elsewhere."""

    kind: str = "float"
    more: int = 0
    seed: int = 0
    swapped: bool = False  # the last two dimensions
    narrow: bool = False  # the last dimension has one entry
    wide: int = 0  # another size of the last dimension
    axis: int | None = None  # of the samples, where it is not that of the variant
    flat: bool = False  # of one dimension
    leading: bool = False  # a dimension of one entry in front
    twice: bool = False  # each sample has two rows: all first ones, then all second ones


@dataclass(frozen=True)
class Constant:
    """A tensor that is the same on every rank; `sizes` may name a dimension of X by a negative number."""

    sizes: tuple[int, ...]
    kind: str = "float"


@dataclass(frozen=True)
class Size:
    """The number of samples."""


@dataclass(frozen=True)
class Dim:
    """Each dimension of X in turn, from the front and from the back."""


@dataclass(frozen=True)
class Sum:
    """Numbers that are added up over the samples ("sum"), or averaged ("mean"; "weighted": by weights): three of them, or one."""

    scale: Literal["sum", "mean", "weighted"] = "mean"
    one: bool = False


@dataclass(frozen=True)
class NoWeight:
    """Whether a rank has samples without weight only."""


@dataclass(frozen=True)
class Places:
    """The places of the samples in the batch: `torch.arange(len(x))`, with so many dimensions of one entry behind them."""

    more: int = 0


@dataclass(frozen=True)
class Block:
    """Rows from one multiple of the batch's length to another."""

    start: int
    end: int | None = None


@dataclass(frozen=True)
class Layer:
    """A module that another one is constructed with."""

    name: str
    args: tuple[Any, ...] = ()
    batch_first: bool = False


X, Y, Z = Rows(), Rows(seed=1), Rows(seed=2)
P, Q = Rows("positive"), Rows("positive", seed=1)
K, J = Rows("long"), Rows("long", seed=1)
M, M2 = Rows("bool"), Rows("bool", seed=1)
N, D = Size(), Dim()
C = Constant
LAST = C((-1,))
Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **keywords: Any) -> Call:
    return args, keywords


# What any row is tried with; those that torch refuses are left out.
POOL: list[Call] = [
    call(X),
    call(P),
    call(K),
    call(M),
    call(X, D),
    call(X, dim=D),
    call(X, D, True),
    call(X, dim=D, keepdim=True),
    call(X, (0, 1)),
    call(X, (-1, -2)),
    call(X, Y),
    call(P, Q),
    call(K, J),
    call(M, M2),
    call(X, LAST),
    call(X, 0.5),
    call(P, 2),
    call(K, 2),
    call(X, Rows(more=1, seed=1)),
    call(X, Rows(more=-1, seed=1)),
    call(X, Rows(seed=1, narrow=True)),
    call(Rows(narrow=True)),
    call(X, Y, Z),
    call(X, M, 0.0),
    call(M, X, Y),
    call(M, X, 0.0),
    call(X, -0.5, 0.5),
    call(X, Y, 0.5),
    call(X, N),
    call(Sum("mean"), N),
    call(Sum("sum"), N),
    call(Sum("sum"), Sum("sum")),
    call(Sum("mean"), Sum("mean")),
    call(Sum("mean")),
    call(Sum("sum")),
    call(Sum("mean"), 2.0),
    call(2.0, Sum("mean")),
    call(Sum("sum"), 2.0),
    call(X, Sum("mean")),
    call(N),
    call(N, 2),
    call(C((3, 4))),
    call(X, Rows(seed=1, axis=0)),
    call(X, Rows(seed=1, axis=1)),
]

# What rows are tried with that go entry by entry.
ENTRIES: list[Call] = [
    call(X),
    call(P),
    call(K),
    call(M),
    call(X, Y),
    call(P, Q),
    call(K, J),
    call(M, M2),
    call(X, LAST),
    call(P, 2),
    call(M, X, 0.0),
    call(X, M, 0.0),
    call(X, Rows(seed=1, narrow=True)),
    call(X, Rows(seed=1, axis=0)),
    call(Sum("mean")),
    call(Sum("sum")),
    call(X, Sum("mean")),
    call(X, N),
    call(Sum("mean"), 2.0),
    call(Sum("sum"), Sum("sum")),
    call(Sum("mean"), N),
    call(N),
    call(X, -0.5, 0.5),
]

T5, T3 = C((5, 4)), C((3,))
SAMPLES: dict[str, list[Call]] = {
    "alpha_dropout": [call(X, 0.0)],
    "feature_alpha_dropout": [call(X, 0.0)],
    "dropout": [call(X, 0.0)],
    "rrelu": [call(X, 0.2, 0.2)],
    "dropout1d": [call(X, 0.0)],
    "dropout2d": [call(X, 0.0)],
    "dropout3d": [call(X, 0.0)],
    "lerp": [call(X, Y, 0.3), call(X, Y, Z)],
    "addmm": [
        call(C((5,)), X, C((-1, 5))),
        call(Rows(wide=5, seed=1), X, C((-1, 5))),
        call(Rows(narrow=True), X, C((-1, 5)), alpha=-2.0, beta=0.5),
        call(C((4, 4)), Rows(axis=1), X),
        call(C((3, 3)), C((3, 6)), X),
        call(Sum("mean"), X, C((-1, 3))),
        call(X, input=X, mat1=X, mat2=C((-1, 5))),
    ],
    "addmv": [call(C((1,)), X, C((-1,))), call(Rows("float", flat=True), X, C((-1,)))],
    "baddbmm": [call(C((1, 1)), X, Rows(seed=1, swapped=True)), call(C((4, 4)), Rows(swapped=True), X)],
    "addcmul": [call(X, Y, Z), call(X, Y, LAST)],
    "addcdiv": [call(P, Q, Rows("positive", seed=2))],
    "threshold": [call(X, 0.1, 0.0)],
    "heaviside": [call(X, Y)],
    "float_power": [call(P, 2.0), call(2.0, P)],
    "astype": [call(X, "float32")],
    "to": [call(X, "cpu")],
    "type": [call(X, "torch.FloatTensor")],
    "normal_": [call(X)],
    "copy_": [call(C((12, 4)), X), call(X, Y)],
    "fill_": [call(X, 0.5)],
    "fill": [call(X, 0.5)],
    "full_like": [call(X, 0.5)],
    "randint_like": [call(X, 5)],
    "poisson": [call(P)],
    "bernoulli": [call(Rows("unit"))],
    "zeros": [call(N, 4), call((N, 4)), call(3, 4), call(4, N)],
    "full": [call((N, 4), 1.0), call((3,), 1.0)],
    "randint": [call(0, 5, (N, 4))],
    "standard_normal": [call((N, 3))],
    "random_sample": [call((N, 3))],
    "new_tensor": [call(X, Y), call(X, C((3,))), call(X, 3.0)],
    "new_zeros": [call(X, N, 3), call(X, (N, 3)), call(X, 3)],
    "new_full": [call(X, (N, 3), 1.0)],
    "logsumexp": [call(X, D), call(X, D, True)],
    "softmax": [call(X, D), call(X, dim=D), call(X, None), call(Rows(leading=True), D)],
    "quantile": [call(X, 0.5, D), call(X, 0.5)],
    "nanquantile": [call(X, 0.5, D)],
    "norm": [call(X, 2, D), call(X, dim=D), call(X)],
    "renorm": [call(X, 2, D, 0.5), call(X, p=2, dim=D, maxnorm=0.5)],
    "vector_norm": [call(X, 2, D), call(X, dim=D)],
    "bincount": [call(Rows("long", flat=True), None, 12), call(Rows("long", flat=True))],
    "kthvalue": [call(X, 2, D), call(X, 2)],
    "topk": [call(X, 2, D), call(X, 2), call(X, 1, dim=D)],
    "std": [call(X, D), call(X, D, True, True), call(X, dim=D, keepdim=True)],
    "normalize": [call(X), call(X, dim=D), call(X, 2, D)],
    "gumbel_softmax": [],
    "roll": [call(X, 1, D), call(X, (1, 1), (0, 1)), call(X, 1)],
    "diff": [call(X), call(X, 1, D), call(X, dim=D)],
    "glu": [call(X, D), call(X)],
    "rot90": [call(X, 1, (1, 2)), call(X, 1, (-2, -1)), call(X), call(X, 1, (0, 2))],
    **{key: [call(X), call(X, None, D), call(X, dim=D), call(X, 4, dim=D)] for key in "fft ifft rfft irfft hfft ihfft".split()},
    **{key: [call(X), call(X, None, (1, 2)), call(X, dim=(-2, -1)), call(X, dim=(0, 1))] for key in "fft2 ifft2 rfft2 irfft2".split()},
    **{key: [call(X), call(X, None, (1, 2)), call(X, dim=(-1,)), call(X, dim=(0, 1))] for key in "fftn ifftn rfftn irfftn".split()},
    **{key: [call(X), call(X, D), call(X, dim=(1, 2)), call(X, dim=(-1,))] for key in ("fftshift", "ifftshift")},
    "flip": [call(X, D), call(X, (0,)), call(X, (1, 2)), call(X, dims=(-1,))],
    "cross": [call(Rows(wide=3), Rows(wide=3, seed=1), dim=-1)],
    "sort": [call(X, D), call(X, dim=D, descending=True)],
    "cosine_similarity": [call(X, Y), call(X, Y, D), call(X, Y, dim=-1), call(X, LAST, dim=-1)],
    "pairwise_distance": [call(X, Y), call(X, Y, 2, 1e-6, True)],
    "det": [call(Rows(wide=6)), call(Rows(wide=4))],
    "logdet": [call(Rows("covariance"))],
    "inverse": [call(Rows(wide=6)), call(Rows(wide=4))],
    "cholesky": [call(Rows("covariance"))],
    **{key: [call(X), call(Rows(wide=6))] for key in ("svd", "svdvals", "qr", "pinv", "cond")},
    **{key: [call(Rows("covariance"))] for key in ("eigh", "eigvalsh")},
    **{key: [call(Rows(wide=6)), call(Rows(wide=4))] for key in ("slogdet", "inv")},
    "solve": [call(Rows("covariance"), X), call(Rows("covariance"), Rows("covariance", seed=1))],
    "matrix_power": [call(Rows(wide=4), 2), call(Rows(wide=6), 3)],
    "multinomial": [call(P, 1), call(P, 2, True)],
    "tensordot": [call(X, C((-1, 3)), 1), call(X, C((-2, -1, 3)), 2), call(X, C((-2, -1))), call(X, C((-1, 3)), ([1], [0])), call(X, Y, 1)],
    "stft": [call(X, 4, return_complex=True), call(X, 4, 2, return_complex=True), call(X, 4, 2, 4, C((4,)), return_complex=True)],
    "imag": [call(Rows("complex"))],
    "istft": [call(Rows("complex"), 6), call(Rows("complex"), 6, 2)],
    "bucketize": [call(X, C((5,), "sorted")), call(X, Y)],
    "isin": [call(K, C((2,), "index")), call(K, J), call(K, 1)],
    "searchsorted": [call(C((5,), "sorted"), X), call(X, Y)],
    "matrix_exp": [call(Rows(wide=4)), call(Rows(wide=6))],
    "pinverse": [call(X)],
    "matmul": [
        call(X, Rows(seed=1, swapped=True)),
        call(X, C((-1, 3))),
        call(X, LAST),
        call(C((3, -2)), X),
        call(C((-2,)), X),
        call(Rows(axis=0), Rows(axis=0, swapped=True, seed=1)),
        call(Rows(swapped=True), Y),
        call(X, C((2, 1, -1, 3))),
    ],
    "mm": [call(X, C((-1, 3))), call(Rows(swapped=True), Y), call(X, Rows(swapped=True))],
    "mv": [call(X, LAST)],
    "bmm": [call(X, Rows(seed=1, swapped=True))],
    "outer": [call(X, T3), call(T3, X), call(X, Y)],
    "ger": [call(X, T3)],
    "linear": [call(X, C((3, -1))), call(X, C((3, -1)), T3)],
    "bilinear": [call(X, Y, C((3, -1, -1)))],
    "einsum": [
        call("bi,ij->bj", X, C((-1, 3))),
        call("bi,bi->b", X, Y),
        call("bi,bj->ij", X, Y),
        call("bi,cj->bc", X, Y),
        call("ib,ib->i", X, Y),
        call("bhid,bhjd->bhij", X, Y),
        call("b...i,b...i->b...", X, Y),
        call("...ij->...ji", X),
        call("bi->i", X),
        call("bij,bij->b", X, Y),
        call("bi,ci->bc", X, Y),
        call("bij,bkj->bik", X, Y),
        call("ij,jk", X, C((-1, 3))),
        call("...i,...i->...", X, Y),
        call("...i, ji -> ...j", X, C((3, -1))),
        call("...nk, ...mk -> ...nm", X, Y),
    ],
    "cdist": [call(X, Y), call(X, C((5, -1))), call(C((5, -1)), X)],
    "squeeze": [call(Rows(narrow=True)), call(Rows(narrow=True), -1), call(Rows(narrow=True), 1), call(Rows(narrow=True), 2), call(X)],
    "unsqueeze": [call(X, D), call(X, 1), call(X, 2)],
    "expand_dims": [call(X, D)],
    "permute": [call(X, 1, 0), call(X, (0, 2, 1)), call(X, 2, 0, 1), call(X, (0, 2, 3, 1)), call(X, (-1, 0, 1))],
    "transpose": [call(X, D, D), call(X, 0, 1), call(X, 1, 2), call(X, -1, -2), call(X, 1, -1)],
    "swapaxes": [call(X, D, D)],
    "swapdims": [call(X, D, D)],
    "movedim": [call(X, 0, 1), call(X, 1, -1), call(X, 2, 0)],
    "moveaxis": [call(X, 1, 0), call(X, 1, -1)],
    "view": [
        call(X, -1),
        call(X, (-1,)),
        call(X, N, -1),
        call(X, -1, 2),
        call(X, N, 2, -1),
        call(X, (N, 2, -1)),
        call(X, 1, N, -1),
        call(X, 4, -1),
        call(X, 4, N, -1),
        call(X, -1, 1),
        call(X, -1, 4, 3),
        call(X, 2, -1),
        call(X, 12, -1),
        call(X, N, 4, 6),
        call(X, 4, N, 2, 3),
        call(Rows(leading=True), N, -1),
        call(Rows(leading=True), N, 2, -1),
    ],
    "view_as": [call(X, Y), call(X, Rows(more=1, narrow=True)), call(Rows(more=1, narrow=True), X)],
    "reshape_as": [call(X, Y)],
    "expand_as": [call(X, Y), call(LAST, X), call(Rows(narrow=True), X)],
    "flatten": [
        call(X),
        call(X, end_dim=-2),
        call(X, 1, -2),
        call(X, 0, -3),
        call(X, 1),
        call(X, 2),
        call(X, 0, 1),
        call(X, 1, 2),
        call(X, 2, 3),
        call(X, 0, 0),
        call(X, start_dim=1),
        call(X, 1, -1),
        call(X, -2),
        call(X, -3, -2),
    ],
    "ravel": [call(X)],
    "unflatten": [call(X, 1, (2, 2)), call(X, -1, (2, -1)), call(X, 0, (-1, 2)), call(X, 1, (2, 3))],
    "repeat": [
        call(X, 2),
        call(X, 1, 2),
        call(X, 2, 1),
        call(X, 3, 1, 1),
        call(X, (1, 2)),
        call(X, 1, 1, 2),
        call(LAST, N, 1),
        call(LAST, (N, 1)),
    ],
    "tile": [call(X, (2,)), call(X, (1, 2)), call(LAST, (N, 1))],
    "expand": [
        call(X, -1, -1),
        call(X, 3, -1, -1),
        call(Rows(narrow=True), -1, 5),
        call(LAST, N, -1),
        call(C((1, 4)), N, -1),
        call(Rows(narrow=True), N, 5),
        call(C((1, 3, 4)), (N, 3, 4)),
    ],
    "broadcast_to": [call(LAST, (N, -1)), call(X, (3, -1, -1)), call(C((4,)), (N, 4))],
    "repeat_interleave": [
        *(call(X, 2), call(X, 2, 0), call(X, 2, 1), call(X, 2, -1)),
        *(call(Constant((1, 4, -1)), N, 0), call(Constant((2, 4, -1)), N, 0), call(Constant((1, 4, -1)), N, 1)),
    ],
    "cat": [call((X, Y)), call((X, Y), D), call((X, Y), dim=D), call((X, C((12, 4))), 1), call((X, LAST), 0)],
    "concat": [call((X, Y), D)],
    "concatenate": [call((X, Y), D)],
    **{key: [call((X, Y)), call((X, LAST)), call((X,))] for key in ("vstack", "row_stack", "hstack", "column_stack")},
    "broadcast_tensors": [call(X, Y), call(X, LAST), call(X, Rows(seed=1, narrow=True))],
    "stack": [
        call((X, Y)),
        call((X, Y), D),
        call((X, Y), dim=1),
        call((X, Y), -1),
        call((Sum("mean"), Sum("mean"))),
        call((Sum("sum"), Sum("sum"))),
    ],
    "chunk": [call(X, 2, D), call(X, 2)],
    "split_with_sizes": [call(X, (2, 2), D), call(X, (2, 2), 1)],
    "split": [call(X, 2, D), call(X, 2), call(X, (2, 2), 1), call(Rows(twice=True), (N, N))],
    "tensor_split": [call(X, 2, D)],
    "unbind": [call(X), call(X, D)],
    "select": [call(X, D, 0)],
    "narrow": [call(X, D, 1, 2), call(X, 0, 0, N)],
    "gather": [
        call(X, D, Rows("index")),
        call(X, 1, Rows("index")),
        call(C((12,)), 0, Rows("long", flat=True)),
        call(C((12,)), -1, Rows("long", flat=True)),
        call(C((12, 12)), D, K),
        call(C((12, 12, 12)), D, K),
    ],
    "take": [call(C((12,)), Rows("long", flat=True)), call(C((3, 4)), K), call(X, C((3,), "index")), call(X, K)],
    "take_along_dim": [call(X, Rows("index"), 1), call(X, Rows("index"), D)],
    "index_select": [call(X, D, C((3,), "index")), call(C((5, 3)), 0, K)],
    "scatter": [call(X, D, Rows("index"), 1.0)],
    "scatter_add": [call(X, D, Rows("index"), Y)],
    "index_fill": [call(X, D, C((3,), "index"), 0.0)],
    **{name: [call(X, 1, C((4,), "index"), Y)] for name in ("index_add", "index_copy")},
    "masked_select": [call(X, M)],
    **{name: [call(M), call(M, as_tuple=True)] for name in ("nonzero", "argwhere")},
    "masked_fill": [call(X, M, 0.0), call(X, M, Sum("mean", one=True)), call(Sum("weighted", one=True), NoWeight(), 0.0)],
    "diagonal": [call(X, 0, D, D), call(X), call(X, dim1=-2, dim2=-1), call(X, 0, 1, 2)],
    "diag_embed": [call(X)],
    "view_as_complex": [call(Rows(wide=2))],
    "view_as_real": [call(Rows("complex"))],
    "unfold": [call(X, D, 2, 1)],
    "arange": [call(N), call(0, N), call(5)],
    "layer_norm": [call(X, (5,)), call(Rows(leading=True), (5,)), call(X, (6,)), call(X, (6, 5)), call(X, (4,))],
    "rms_norm": [call(X, (5,)), call(X, (6, 5))],
    "batch_norm": [call(X, C((4,)), C((4,), "positive")), call(X, None, None, None, None, True)],
    "instance_norm": [call(X)],
    "group_norm": [call(X, 2)],
    "local_response_norm": [call(X, 2)],
    "embedding": [call(K, T5), call(Rows("long", leading=True), T5)],
    "one_hot": [call(K, 5)],
    "embedding_bag": [call(K, C((5, 3)))],
    "pad": [call(X, (1, 1)), call(X, (1, 0, 0, 0, 0, 0, 0, 0)), call(X, (1, 1, 1, 0)), call(X, (0, 0, 1, 1, 1, 1))],
    "prelu": [call(X, C((1,))), call(X, C((4,)))],
    "scaled_dot_product_attention": [call(X, Y, Z), call(X, C((4, 6, -1)), C((4, 6, -1)))],
    "interpolate": [call(X, scale_factor=2)],
    "upsample": [call(X, scale_factor=2)],
    "upsample_nearest": [call(X, scale_factor=2)],
    "upsample_bilinear": [call(X, scale_factor=2)],
    "pixel_shuffle": [call(X, 2)],
    "pixel_unshuffle": [call(Rows(wide=6), 2)],
    "channel_shuffle": [call(X, 2)],
    "grid_sample": [call(X, Rows(wide=2, axis=0))],
    "affine_grid": [call(Rows("affine", axis=0), (N, 1, 5, 5))],
    **{f"conv{n}d": [call(X, C((3, 4, *(2,) * n))), call(X, C((3, 4, *(2,) * n)), T3)] for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": [call(X, C((4, 3, *(2,) * n)))] for n in (1, 2, 3)},
    **{f"{how}_pool{n}d": [call(X, 2)] for n in (1, 2, 3) for how in ("max", "avg", "adaptive_avg", "adaptive_max")},
    **{f"lp_pool{n}d": [call(X, 2, 2)] for n in (1, 2, 3)},
    **{f"max_pool{n}d": [call(X, 2), call(X, 2, return_indices=True)] for n in (1, 2, 3)},
    **{f"max_unpool{n}d": [call(X, K, 2)] for n in (1, 2, 3)},
    "pad_sequence": [call(X), call(X, True), call(X, False)],
    "pack_padded_sequence": [call(X), call(X, True)],
    "pad_packed_sequence": [call(X), call(X, True)],
    "count_nonzero": [call(X), call(X, D), call(X, dim=D)],
    "item": [call(Sum("mean", one=True)), call(Sum("sum", one=True))],
    "linspace": [call(0.0, 1.0, 5)],
    "logspace": [call(0.0, 1.0, 5)],
    "eye": [call(3), call(3, 4)],
}
FUNCTIONAL: dict[str, list[Call]] = {"unfold": [call(X, 2), call(X, (2, 2))], "fold": [call(X, (3, 4), 2)]}
EINOPS: dict[str, list[Call]] = {
    "pack": [call((X,), "b * d"), call((X,), "b *"), call((X, Y), "b * d"), call((X,), "* d"), call((X,), "a b *")],
    "unpack": [call(X, ((4,),), "b * d"), call(X, ((2,), (2,)), "b * d"), call(X, ((4,),), "* b d"), call(X, ((2, 2),), "b *")],
    "einsum": [
        call(X, C((-1, 3)), "batch i, i out -> batch out"),
        call(X, Y, "b i, b i -> b"),
        call(X, Y, "b i, c i -> b c"),
        call(X, Y, "b ... i, b ... i -> b ..."),
        call(X, Y, "b ... i, b ... j -> b ... i j"),
        call(X, Y, "... heads d, ... keys d -> ... heads keys"),
        call(X, C((-1, 3)), "... i, i j -> ... j"),
    ],
    "rearrange": [
        *(
            call(X, pattern)
            for pattern in (
                "b c -> c b",
                "b c h -> b (c h)",
                "b c h -> (b c) h",
                "b c h -> (c b) h",
                "b c h -> c (b h)",
                "b c h -> h b c",
                "b c h w -> b (h w) c",
                "b c h w -> (b h w) c",
                "b ... -> b ...",
                "... c -> c ...",
                "b ... c -> b c ...",
                "b ... c -> b (... c)",
                "b ... c -> b (...) c",
                "... c -> (...) c",
                "... s d -> ... d s",
                "... h s d -> ... s (h d)",
            )
        ),
        call(X, "b (c d) -> b c d", c=2),
        call(X, "b (c d) h -> (b c) d h", c=2),
        call(X, "(b n) d -> b n d", n=1),
        call(X, "b c -> b c 1"),
        call(X, "b c h -> (b h) c", b=N),
        call(Rows(twice=True), "(v b) d -> b v d", v=2),
        call(Rows(twice=True), "(v b) d -> b v d", b=N),
    ],
    "repeat": [
        call(X, "b c -> b c n", n=2),
        call(X, "b c -> (n b) c", n=2),
        call(X, "b c -> (b n) c", n=2),
        call(X, "b c -> n b c", n=2),
        call(LAST, "c -> b c", b=N),
        call(C((3, 4)), "... d -> b ... d", b=N),
        call(C((3, 4)), "... d -> ... b d", b=N),
        call(X, "b ... -> b n ...", n=2),
        call(C((1, 3, 4)), "1 n d -> b n d", b=N),
        call(C((3, 4)), "n d -> (b n) d", b=N),
        call(C((3, 4)), "n d -> n d k", k=2),
    ],
    "reduce": [
        call(X, pattern, how)
        for pattern in ("b c -> b", "b c -> c", "b c -> ", "b c h -> b h", "b c h -> h c", "b ... -> b", "b ... -> ...")
        for how in ("mean", "sum", "max")
    ],
}
# The entries of an index.
INDEX: list[Call] = [
    *(
        call(X, *entries)
        for entries in (
            (),
            (0,),
            (-1,),
            (slice(None), 0),
            (slice(None), -1),
            (slice(None), slice(None), 1),
            (..., 0),
            (..., slice(1, 3)),
            (0, ..., 0),
            (None,),
            (slice(None), None),
            (..., None),
            (None, ..., 0),
            (slice(None), None, 0),
            (slice(None), slice(1, 3)),
            (slice(None), slice(1, None), None),
            (slice(1, None),),
            (slice(None), C((3,), "index")),
            (slice(None), slice(None), C((3,), "index")),
            (slice(None), C((3, 2), "index")),
            (slice(None), C((3, 1), "index"), C((3, 2), "index")),
            (slice(None), C((3, 2), "index"), None, C((3, 2), "index")),
            (slice(None), 0, slice(None), C((3,), "index")),
            (C((3,), "index"),),
            (slice(None), (0, 2)),
            (Places(), 0),
            (Places(), Rows("long", flat=True)),
            (Places(), Places()),
            (Places(more=1), C((3,), "index")),
            (Places(more=1), Rows("long", more=-1)),
            (Rows("bool", flat=True),),  # numbers of rows, of which each sample has one, would be of the whole batch's rows
            (slice(None), Rows("bool", flat=True)),
        )
    ),
    *(
        call(Rows(twice=True), *entries)
        for entries in (
            (Block(1),),
            (Block(-1),),
            (Block(0, -1),),
            (Block(1, 2),),
            (slice(None), Block(1)),
            (Block(1), 0),
            (Block(1), None),
            (None, Block(1)),
            (..., Block(1), slice(None)),
        )
    ),
    call(C((20, 3)), Block(0, 1)),
    call(C((20, 3), "four"), Block(0, 1)),
    call(C((20,), "two"), Block(0, 1)),
    call(C((20, 3), "four"), Block(0, 1), 0),
    call(C((20, 3), "four"), Block(0, 1), slice(None)),
    call(C((20, 3), "four"), slice(None), Block(0, 1)),
    call(X, M),
    call(C((5, 3)), K),
    call(C((5, 3)), K, J),
    call(C((5, 3)), slice(None), K),
    call(C((5, 3)), 0),
    call(C((5, 3)), Rows("long", flat=True)),
    call(Sum("mean"), 0),
    call(Sum("sum"), 0),
]
SIZE: list[Call] = [call(X, D), call(M, 0), call(Rows("chosen"), 0)]

_HOW = [{}, {"reduction": "mean"}, {"reduction": "sum"}, {"reduction": "none"}]
LOSSES: dict[str, list[Call]] = {
    **{
        name: [((X, Y), how) for how in _HOW]
        + [call(X, Rows(seed=1, narrow=True)), call(X, Y, "sum"), call(Rows("chosen"), Rows("chosen"))]
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    },
    **{
        name: [((Rows("unit"), Rows("unit", seed=1)), how) for how in _HOW]
        for name in ("sigmoid_focal_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss")
    },
    "kl_div": [((X, Rows("unit", seed=1)), how) for how in [*_HOW, {"reduction": "batchmean"}]],
    **{name: [((X, Rows("sign")), how) for how in _HOW] for name in ("soft_margin_loss", "hinge_embedding_loss")},
    "gaussian_nll_loss": [((X, Y, P), how) for how in _HOW],
    "margin_ranking_loss": [((X, Y, Rows("sign")), how) for how in _HOW],
    **{
        name: [((X, Rows("class")), how) for how in _HOW]
        + [((X, Rows("class")), {"weight": C((4,), "positive"), **how}) for how in _HOW]
        + [call(X, Rows("class"), ignore_index=1), call(X, Rows("class"), C((4,), "positive"))]
        for name in ("cross_entropy", "nll_loss")
    },
    "multi_margin_loss": [((X, Rows("class")), how) for how in _HOW],
    "multilabel_soft_margin_loss": [((X, Rows("unit")), how) for how in _HOW],
    "multilabel_margin_loss": [((X, Rows("class-list")), how) for how in _HOW],
    **{name: [((X, Y, Z), how) for how in _HOW] for name in ("triplet_margin_loss", "triplet_margin_with_distance_loss")},
    "ctc_loss": [
        ((Rows("scores", axis=1), Rows("label", more=-1, axis=0), Rows("four", more=-2, axis=0), Rows("two", more=-2, axis=0)), how)
        for how in _HOW
    ],
    "cosine_embedding_loss": [((X, Y, Rows("sign", more=-1)), how) for how in _HOW],
}

Setting = tuple[Call, Call]  # what a module is constructed with, and what it is called with


def built(settings: list[Call], *inputs: Call) -> list[Setting]:
    return [(setting, given) for setting in settings for given in inputs or (call(X),)]


_SEQUENCES = [call(X), call(Rows(axis=0)), call(Rows(axis=1))]
_KERNELS = [call(2), call(2, 1)]
_ENCODER, _DECODER = (Layer(f"Transformer{kind}Layer", (6, 2, 8), first) for kind, first in (("Encoder", False), ("Decoder", True)))
MODULES: dict[str, list[Setting]] = {
    "Threshold": built([call(0.1, 0.0)]),
    **dict.fromkeys(
        ("Softmax", "LogSoftmax", "Softmin", "GLU"), built([call(1), call(-1), call(0), call(dim=1), call(dim=2), call(-2), call()])
    ),
    "CosineSimilarity": built([call(), call(-1), call(dim=2), call(dim=0)], call(X, Y)),
    **{f"{kind}{n}d": built([call(4, 3, 2)]) for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)},
    **{f"{kind}Pool{n}d": built(_KERNELS[:1]) for kind in ("Max", "Avg", "AdaptiveMax", "AdaptiveAvg") for n in (1, 2, 3)},
    **{f"{kind}Norm{n}d": built([call(4)]) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **{f"MaxUnpool{n}d": built([call(2)], call(X, K)) for n in (1, 2, 3)},
    **{f"{how}Pad{n}d": built([call(1)]) for how in ("Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": built([call(1, 0.5)]) for n in (1, 2, 3)},
    **{f"Dropout{n}d": built([call(0.5)]) for n in (1, 2, 3)},
    "SyncBatchNorm": built([call(4)]),
    "GroupNorm": built([call(2, 4)]),
    "LocalResponseNorm": built([call(2)]),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), built([call(4), call(6), call((5,)), call((6, 5)), call(normalized_shape=(5,))])),
    "Identity": built([call()]),
    "Linear": built([call(4, 3), call(6, 3), call(5, 1), call(6, out_features=1)]),
    "LazyLinear": built([call(3), call(1)]),
    "Bilinear": built([call(4, 4, 3), call(6, 6, 3)], call(X, Y)),
    "Embedding": built([call(5, 3)], call(K)),
    "EmbeddingBag": built([call(5, 3)], call(K)),
    "Flatten": built([call(), call(0), call(2), call(1, 2), call(start_dim=0), call(0, 1)]),
    "Unflatten": built([call(1, (2, 2)), call(-1, (2, -1)), call(2, (3, 2))]),
    "Softmax2d": built([call()]),
    "PairwiseDistance": built([call(), call(1)], call(X, Y)),
    "PixelShuffle": built([call(2)]),
    "PixelUnshuffle": built([call(2)], call(Rows(wide=6))),
    "ChannelShuffle": built([call(2)]),
    **dict.fromkeys(("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"), built([call(scale_factor=2)])),
    "Unfold": built([call(2)]),
    "Fold": built([call((3, 4), 2)]),
    **{
        name: built(
            [call(6, 3), call(6, 3, batch_first=True), call(4, 3), call(4, 3, batch_first=True), call(6, 3, 2, True, True)], *_SEQUENCES
        )
        for name in ("LSTM", "GRU")
    },
    "RNN": built([call(6, 3), call(6, 3, batch_first=True), call(6, 3, 2, "relu", True, True)], *_SEQUENCES),
    **dict.fromkeys(("LSTMCell", "GRUCell", "RNNCell"), built([call(4, 3)])),
    "MultiheadAttention": built(
        [call(6, 2), call(6, 2, batch_first=True), call(4, 2), call(4, 2, batch_first=True)], call(X, Y, Z), call(X, X, X)
    ),
    "Transformer": built([call(6, 2, 1, 1, 8), call(6, 2, 1, 1, 8, batch_first=True)], call(X, Y)),
    "TransformerEncoderLayer": built([call(6, 2, 8), call(6, 2, 8, batch_first=True)], *_SEQUENCES),
    "TransformerDecoderLayer": built([call(6, 2, 8), call(6, 2, 8, batch_first=True)], call(X, Y)),
    "TransformerEncoder": built([call(_ENCODER, 1), call(Layer("TransformerEncoderLayer", (6, 2, 8), True), 1)], *_SEQUENCES),
    "TransformerDecoder": built([call(_DECODER, 1), call(Layer("TransformerDecoderLayer", (6, 2, 8)), 1)], call(X, Y)),
    "Rearrange": built(
        [call("b c h -> b (c h)"), call("b c h -> h b c"), call("b (c d) -> b c d", c=2), call("b c h w -> b (h w) c")],
    ),
    "Reduce": built([call("b c h -> b c", "mean"), call("b c -> c", reduction="mean"), call("b c h w -> b c", "max")]),
}
