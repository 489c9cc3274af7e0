"""The table of transfer rules: which rule is that of which function or method of torch (and numpy's of the same name), and which module's.

A name without a row is unknown. tests/test_transfer.py runs every row by torch on whole tensors and on shares of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ddpify.placement import creation, falling, indexing, layers, matrices, patterns, reshaping, transfer
from ddpify.placement.layers import layer, loss, weighted_layer
from ddpify.placement.shape import Argument, Result, Use
from ddpify.placement.transfer import Rule, along, of_last, reduction

_ELEMENTWISE = """
    abs absolute acos acosh addcdiv addcmul alpha_dropout angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
    atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bool ceil celu clamp clamp_max
    clamp_min clip complex conj copysign cos cosh deg2rad digamma dropout elu entr eq erf erfc erfcx erfinv exp exp2 expit expm1
    feature_alpha_dropout fix float_power floor fmod frac gammaln gcd ge gelu greater greater_equal gt hardshrink hardsigmoid
    hardswish hardtanh heaviside hypot i0 i0e i1 i1e igamma igammac imag isclose isfinite isinf isnan isneginf isposinf isreal lcm
    ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_ndtr logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit logsigmoid lt mish nan_to_num ndtr ndtri ne nextafter not_equal polar positive pow power rad2deg
    real reciprocal relu relu6 round rrelu rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt
    square tan tanh tanhshrink threshold trunc xlog1py xlogy
""".split()
_KEPT = """
    to cuda cpu float double half bfloat16 type type_as detach clone contiguous requires_grad_ pin_memory item tolist numpy astype copy
    share_memory_ to_dense toarray todense float16 float32 float64 ascontiguousarray
""".split()
_OF_DATA = "as_tensor from_numpy asarray array tensor".split()
_ROUNDED = "int long short byte int8 int16 int32 int64 uint8".split()
_RANDOM = "rand_like randn_like randint_like bernoulli normal_ uniform_ exponential_ random_ bernoulli_ poisson".split()
_FILLED = "zeros_like ones_like empty_like full_like zero_ fill_ fill".split()
_MADE = """
    zeros ones empty rand randn standard_normal random_sample Tensor BoolTensor IntTensor ByteTensor HalfTensor FloatTensor
    DoubleTensor LongTensor
""".split()
_DISTRIBUTIONS = """
    Normal LogNormal Laplace Cauchy HalfNormal HalfCauchy Gumbel StudentT Uniform Gamma Beta Chi2 Exponential Weibull Pareto Kumaraswamy
    VonMises Poisson Bernoulli Geometric
""".split()  # of single numbers
_CONVOLUTIONS: dict[str, Rule] = {
    f"conv{'_transpose' if t else ''}{n}d": partial(weighted_layer, (n + 2,), None) for n in (1, 2, 3) for t in (0, 1)
}
_POOLS: dict[str, Rule] = {
    **{f"{how}pool{n}d": partial(layers.pooled, (n + 1, n + 2)) for how in ("avg_", "lp_", "adaptive_avg_", "max_un") for n in (1, 2, 3)},
    **{f"{how}_pool{n}d": partial(layers.max_pool, (n + 1, n + 2), at) for how, at in (("max", 6), ("adaptive_max", 2)) for n in (1, 2, 3)},
}
_NORMS = dict.fromkeys(("instance_norm", "group_norm", "local_response_norm"), partial(layer, (2, 3, 4, 5), None))
_IMAGES: dict[str, Rule] = {
    **dict.fromkeys(("interpolate", "upsample", "upsample_nearest", "upsample_bilinear"), partial(layer, (3, 4, 5), None)),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), partial(of_last, dims=3)),
    **dict.fromkeys(("dropout1d", "dropout2d", "dropout3d"), transfer.elementwise),
    "channel_shuffle": partial(layer, (3, 4), None),
    "grid_sample": partial(layer, (4,), None),
    "affine_grid": partial(layer, (3,), 4),
}
_LOSSES: dict[str, Rule] = {
    **{name: partial(loss, 2, "entries", "mean") for name in "mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss "
       "soft_margin_loss hinge_embedding_loss".split()},
    **dict.fromkeys(("binary_cross_entropy", "binary_cross_entropy_with_logits"), partial(loss, 2, "alike", "mean")),
    **{name: partial(loss, 3, "entries", "mean") for name in ("gaussian_nll_loss", "margin_ranking_loss")},
    **dict.fromkeys(("cross_entropy", "nll_loss"), partial(loss, 2, "weights", "mean")),
    "multi_margin_loss": partial(loss, 2, "classes", "mean"),
    **dict.fromkeys(("multilabel_soft_margin_loss", "multilabel_margin_loss"), partial(loss, 2, "labels", "mean")),
    **dict.fromkeys(("triplet_margin_loss", "triplet_margin_with_distance_loss"), partial(loss, 3, "features", "mean")),
    "cosine_embedding_loss": partial(loss, 3, "features", "mean"),
    "ctc_loss": layers.ctc_loss,
    "sigmoid_focal_loss": partial(loss, 2, "entries", "none"),
}  # fmt: skip

JOINS = ("cat", "concat", "concatenate")
NAMES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, transfer.elementwise),
    **dict.fromkeys(("pow", "power"), transfer.power),
    "square": transfer.squared,
    "masked_fill": transfer.masked_fill,
    **dict.fromkeys(_KEPT, transfer.kept),
    **dict.fromkeys(_OF_DATA, creation.of_data),
    **dict.fromkeys(_ROUNDED, transfer.rounded),
    **dict.fromkeys(_RANDOM, transfer.random),
    **dict.fromkeys(_FILLED, transfer.filled),
    **dict.fromkeys(("log_prob", "cdf", "icdf", "entropy"), transfer.elementwise),  # of a distribution
    **dict.fromkeys(("rsample", "sample"), transfer.drawn_once),
    **dict.fromkeys(_MADE, creation.of_sizes),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), creation.new),
    "new": creation.new_data,
    "new_tensor": creation.new_tensor,
    "randint": creation.integers,
    "full": creation.full,
    "new_full": creation.new_full,
    "linspace": creation.spaced,
    "logspace": creation.spaced,
    "eye": creation.eye,
    **dict.fromkeys(("add",), transfer.added),
    **dict.fromkeys(("neg", "negative"), transfer.negated),
    **dict.fromkeys(("mul", "multiply"), transfer.multiplied),
    **dict.fromkeys(("div", "divide", "true_divide"), transfer.divided),
    **dict.fromkeys(("sub", "subtract"), partial(transfer.added, subtracted=True)),
    **dict.fromkeys(("floor_divide",), transfer.floored),
    **dict.fromkeys(("remainder",), transfer.remainder),
    **dict.fromkeys(("copy_",), transfer.copied),
    # reductions
    **dict.fromkeys(("mean",), partial(reduction, "mean")),
    "nanmean": partial(reduction, "weighted"),
    **dict.fromkeys(("sum", "nansum", "count_nonzero"), partial(reduction, "sum")),
    "max": partial(transfer.extreme, "largest"),
    "min": partial(transfer.extreme, "smallest"),
    **dict.fromkeys(("maximum", "fmax"), partial(transfer.extreme_of_two, "largest")),
    **dict.fromkeys(("minimum", "fmin"), partial(transfer.extreme_of_two, "smallest")),
    **dict.fromkeys(("amax", "any"), partial(transfer.extreme_of_all, "largest")),
    **dict.fromkeys(("amin", "all"), partial(transfer.extreme_of_all, "smallest")),
    **dict.fromkeys(("logsumexp", "argmax", "argmin"), partial(reduction, None)),
    **dict.fromkeys(("prod",), partial(reduction, None)),
    **dict.fromkeys(("median", "nanmedian"), partial(reduction, None, several=True)),
    **dict.fromkeys(("mode",), partial(reduction, None, default=-1, several=True)),
    **dict.fromkeys(("std", "var"), partial(reduction, None, keep_at=3)),
    **dict.fromkeys(("std_mean", "var_mean"), partial(reduction, None, keep_at=3, several=True)),
    "norm": transfer.norm,
    "renorm": transfer.renormed,
    **dict.fromkeys(("vector_norm", "quantile", "nanquantile"), partial(reduction, None, dim_at=2, keep_at=3)),
    "kthvalue": partial(reduction, None, default=-1, dim_at=2, keep_at=3, several=True),
    "bincount": transfer.counted_up,
    # along one dimension
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), transfer.softmax),
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp", "flip"), along),
    **dict.fromkeys(("cummax", "cummin"), partial(along, several=True)),
    **dict.fromkeys(("argsort",), partial(along, default=-1)),
    "sort": partial(along, default=-1, several=True),
    "topk": partial(along, position=2, default=-1, several=True),
    "glu": partial(along, default=-1),
    "normalize": transfer.normalize,
    "gumbel_softmax": partial(along, position=4, default=-1),
    "roll": partial(along, position=2),
    "diff": partial(along, position=2, default=-1),
    "rot90": partial(along, position=2, default=(0, 1)),
    "flipud": partial(along, default=0),
    "fliplr": partial(along, default=1),
    "msort": partial(along, default=0),
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), partial(along, position=2, default=-1)),
    **dict.fromkeys(("fft2", "ifft2", "rfft2", "irfft2"), partial(along, position=2, default=(-2, -1))),
    **dict.fromkeys(("fftn", "ifftn", "rfftn", "irfftn"), partial(along, position=2)),
    **dict.fromkeys(("fftshift", "ifftshift"), along),
    "cross": transfer.cross,
    "cosine_similarity": transfer.cosine_similarity,
    "pairwise_distance": transfer.pairwise_distance,
    "numel": transfer.counted,
    "nelement": transfer.counted,
    # of the last dimensions of each sample
    **dict.fromkeys("tril triu inverse inv cholesky matrix_exp pinverse pinv solve".split(), partial(of_last, dims=2)),
    **dict.fromkeys(("det", "logdet", "cond"), partial(of_last, dims=2, grow=-2)),
    **dict.fromkeys(("eigvalsh", "svdvals"), partial(of_last, dims=2, grow=-1)),
    "svd": partial(matrices.factors, (0, -1, 0)),
    "qr": partial(matrices.factors, (0, 0)),
    "eigh": partial(matrices.factors, (-1, 0)),
    "slogdet": partial(matrices.factors, (-2, -2)),
    "matrix_power": matrices.power,
    "multinomial": partial(of_last, dims=1),
    "stft": matrices.spectrogram,
    "istft": matrices.signal,
    "bucketize": partial(matrices.by_table, 0, 1),
    "isin": partial(matrices.by_table, 0, 1),
    "searchsorted": partial(matrices.by_table, 1, 0),
    "diag_embed": partial(of_last, dims=1, grow=1),
    "view_as_complex": partial(of_last, grow=-1),
    "view_as_real": partial(of_last, dims=0, grow=1),
    "rms_norm": layers.layer_norm,
    "layer_norm": layers.layer_norm,
    # products
    **dict.fromkeys(("matmul", "mm", "mv"), transfer.matmul),
    "bmm": transfer.batched_product,
    **dict.fromkeys(("addmm", "addmv", "baddbmm"), transfer.added_product),
    **dict.fromkeys(("dot", "vdot"), transfer.vecdot),
    "inner": transfer.inner,
    "where": indexing.chosen_by,
    **dict.fromkeys(("outer", "ger"), transfer.outer),
    "linear": transfer.linear,
    "einsum": transfer.einsum,
    "tensordot": matrices.tensordot,
    "cdist": transfer.cdist,
    # moving entries
    **dict.fromkeys(("squeeze", "squeeze_"), reshaping.squeeze),
    "atleast_1d": reshaping.at_least_one,
    **dict.fromkeys(("unsqueeze", "expand_dims"), reshaping.unsqueeze),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), reshaping.transposed),
    **dict.fromkeys(("movedim", "moveaxis"), reshaping.moved),
    **dict.fromkeys(("view", "reshape"), reshaping.reshaped),
    **dict.fromkeys(("view_as", "reshape_as"), reshaping.as_other),
    **dict.fromkeys(("flatten", "ravel"), reshaping.flatten),
    **dict.fromkeys(("repeat", "tile"), reshaping.repeated),
    **dict.fromkeys(JOINS, reshaping.joined),
    **dict.fromkeys(("vstack", "row_stack"), partial(reshaping.joined_or_stacked, 0, 0)),
    "hstack": partial(reshaping.joined_or_stacked, 1, None),
    "column_stack": partial(reshaping.joined_or_stacked, 1, 1),
    **dict.fromkeys(("chunk", "split", "tensor_split", "split_with_sizes"), reshaping.listed),
    "index_select": reshaping.looked_up,
    "gather": reshaping.gathered,
    "take": reshaping.taken,
    "take_along_dim": reshaping.taken_along,
    **dict.fromkeys(("scatter", "scatter_add", "index_fill"), reshaping.picked),
    **dict.fromkeys(("index_add", "index_copy"), indexing.added_at),
    **dict.fromkeys(("nonzero", "argwhere"), indexing.places_of_chosen),
    "narrow": reshaping.narrowed,
    "permute": reshaping.permuted,
    "t": reshaping.transposed_matrix,
    "T": reshaping.reversed_dims,
    "mT": reshaping.matrices_transposed,
    "adjoint": reshaping.matrices_transposed,
    "unflatten": reshaping.unflatten,
    "expand": reshaping.expanded,
    "expand_as": reshaping.expanded_as,
    "broadcast_tensors": reshaping.all_expanded,
    "broadcast_to": reshaping.expanded,
    "repeat_interleave": reshaping.each_repeated,
    "stack": reshaping.stacked,
    "pad_sequence": reshaping.padded,
    "unbind": reshaping.unbound,
    "select": reshaping.selected,
    "masked_select": reshaping.masked,
    "diagonal": reshaping.diagonal,
    "unfold": reshaping.windows,
    "arange": creation.numbered,
    # layers
    **_CONVOLUTIONS,
    **_POOLS,
    **_NORMS,
    **_IMAGES,
    **_LOSSES,
    "batch_norm": layers.batch_norm,
    "embedding": layers.embedding,
    "embedding_bag": layers.embedding_bag,
    "one_hot": layers.one_hot,
    "pad": layers.padded,
    "prelu": layers.prelu,
    "bilinear": layers.bilinear,
    "scaled_dot_product_attention": layers.attention,
    "pack_padded_sequence": layers.packed,
    "pad_packed_sequence": layers.unpacked,
}

FUNCTIONAL: dict[str, Rule] = {  # names that mean something else in torch.nn.functional than among the methods of a tensor
    "unfold": partial(layers.patches, 4, 3),
    "fold": partial(layers.patches, 3, 4),
}
LINALG: dict[str, Rule] = {"norm": partial(reduction, None, dim_at=2, keep_at=3)}  # of a matrix, `2` stands for another norm
DISTRIBUTIONS: dict[str, Rule] = {  # a distribution depends on the batch as its parameters do, and is as large as they are
    **dict.fromkeys((*_DISTRIBUTIONS, "kl_divergence"), transfer.elementwise)
}
POINTNET2: dict[str, Rule] = {  # pointnet2_ops 3.0
    "furthest_point_sample": partial(transfer.of_clouds, dims=2),
    **dict.fromkeys(("gather_operation", "three_interpolate", "ball_query"), partial(transfer.of_clouds, dims=3)),
    "grouping_operation": partial(transfer.of_clouds, dims=4),
    "three_nn": partial(transfer.of_clouds, dims=3, several=True),
}
EINOPS: dict[str, Rule] = {
    "rearrange": patterns.rearranged,
    "repeat": patterns.rearranged,
    "reduce": patterns.reduced,
    "pack": patterns.packed,
    "unpack": patterns.unpacked,
    "einsum": patterns.einsum,
}


def _module(rule: Rule | str, settings: str = "", **defaults: object) -> tuple[Rule, tuple[str, ...], dict[str, Argument]]:
    found = NAMES[rule] if isinstance(rule, str) else rule
    return found, tuple(settings.split()), {k: Argument(literal=v) for k, v in defaults.items()}


_ACTIVATIONS = """
    ReLU:relu ReLU6:relu6 LeakyReLU:leaky_relu ELU:elu SELU:selu CELU:celu GELU:gelu SiLU:silu Mish:mish Sigmoid:sigmoid Tanh:tanh
    Softplus:softplus Softsign:softsign Tanhshrink:tanhshrink Hardtanh:hardtanh Hardswish:hardswish Hardsigmoid:hardsigmoid
    Hardshrink:hardshrink Softshrink:softshrink LogSigmoid:logsigmoid Threshold:threshold RReLU:rrelu PReLU:relu Dropout:dropout
    AlphaDropout:dropout FeatureAlphaDropout:dropout
""".split()
_LOSS_MODULES = """
    MSELoss:mse_loss L1Loss:l1_loss SmoothL1Loss:smooth_l1_loss HuberLoss:huber_loss BCELoss:binary_cross_entropy
    BCEWithLogitsLoss:binary_cross_entropy_with_logits KLDivLoss:kl_div PoissonNLLLoss:poisson_nll_loss
    SoftMarginLoss:soft_margin_loss HingeEmbeddingLoss:hinge_embedding_loss GaussianNLLLoss:gaussian_nll_loss
    MarginRankingLoss:margin_ranking_loss CrossEntropyLoss:cross_entropy NLLLoss:nll_loss NLLLoss2d:nll_loss
    MultiMarginLoss:multi_margin_loss MultiLabelMarginLoss:multilabel_margin_loss MultiLabelSoftMarginLoss:multilabel_soft_margin_loss
    TripletMarginLoss:triplet_margin_loss TripletMarginWithDistanceLoss:triplet_margin_with_distance_loss
    CosineEmbeddingLoss:cosine_embedding_loss CTCLoss:ctc_loss
""".split()
_BY_DIM = "Softmax:softmax LogSoftmax:log_softmax Softmin:softmin GLU:glu CosineSimilarity:cosine_similarity".split()
_POOLED = {"Max": "kernel_size stride padding dilation return_indices ceil_mode", "AdaptiveMax": "output_size return_indices"}
_PADS = ("Zero", "Constant", "Reflection", "Replication", "Circular")
_RECURRENT = "input_size hidden_size num_layers bias batch_first dropout bidirectional"

MODULES: dict[str, tuple[Rule, tuple[str, ...], dict[str, Argument]]] = {
    **{name: _module(rule) for name, _, rule in (pair.partition(":") for pair in (*_ACTIVATIONS, *_LOSS_MODULES))},
    **{name: _module(rule, "dim") for name, _, rule in (pair.partition(":") for pair in _BY_DIM)},
    **{f"{kind}{n}d": _module(f"conv{'_transpose' * ('T' in kind)}{n}d") for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)},
    **{
        f"{kind}Pool{n}d": _module(
            f"{kind[:-3].lower()}_{kind[-3:].lower()}_pool{n}d" if kind[:-3] else f"{kind.lower()}_pool{n}d", _POOLED.get(kind, "")
        )
        for kind in ("Max", "Avg", "AdaptiveMax", "AdaptiveAvg")
        for n in (1, 2, 3)
    },
    **{f"MaxUnpool{n}d": _module(f"max_unpool{n}d") for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": _module(partial(layers.normed, ((2, 3), (4,), (5,))[n - 1])) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": _module(partial(layers.instance_norm, n + 2)) for n in (1, 2, 3)},
    **{f"{how}Pad{n}d": _module(partial(of_last, dims=n)) for how in _PADS for n in (1, 2, 3)},
    **{f"Dropout{n}d": _module("dropout") for n in (1, 2, 3)},
    "SyncBatchNorm": _module(partial(layers.normed, (2, 3, 4, 5))),
    "GroupNorm": _module("group_norm"),
    "LocalResponseNorm": _module("local_response_norm"),
    "LayerNorm": _module("layer_norm", "normalized_shape"),
    "RMSNorm": _module("layer_norm", "normalized_shape"),
    "Identity": _module(layers.identity),
    "Linear": _module("linear", "in_features out_features"),
    "LazyLinear": _module(layers.lazy_linear, "out_features"),
    "Bilinear": _module("bilinear"),
    "Embedding": _module("embedding"),
    "EmbeddingBag": _module("embedding_bag"),
    "Flatten": _module("flatten", "start_dim end_dim", start_dim=1),
    "Unflatten": _module("unflatten", "dim unflattened_size"),
    "Softmax2d": _module(partial(along, default=-3)),
    "PairwiseDistance": _module("pairwise_distance"),
    "PixelShuffle": _module("pixel_shuffle"),
    "PixelUnshuffle": _module("pixel_unshuffle"),
    "ChannelShuffle": _module("channel_shuffle"),
    "Upsample": _module("interpolate"),
    "UpsamplingNearest2d": _module("interpolate"),
    "UpsamplingBilinear2d": _module("interpolate"),
    "Unfold": _module(FUNCTIONAL["unfold"]),
    "Fold": _module(FUNCTIONAL["fold"]),
    "LSTM": _module(partial(layers.recurrent, cell_state=True), _RECURRENT),
    "GRU": _module(layers.recurrent, _RECURRENT),
    "RNN": _module(layers.recurrent, _RECURRENT.replace("bias", "nonlinearity bias")),
    "LSTMCell": _module(partial(layers.cell, cell_state=True)),
    "GRUCell": _module(layers.cell),
    "RNNCell": _module(layers.cell),
    "Rearrange": _module(patterns.rearranged, "pattern"),
    "Reduce": _module(patterns.reduced, "pattern reduction"),
    "MultiheadAttention": _module(
        layers.multihead_attention, "embed_dim num_heads dropout bias add_bias_kv add_zero_attn kdim vdim batch_first"
    ),
    **{
        name: _module(layers.transformer)
        for name in "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer".split()
    },
}

ALIGNED = frozenset(
    [*_ELEMENTWISE, *"add sub subtract mul multiply div divide true_divide where masked_fill scatter scatter_add gather".split()]
)
"""What combines the entries that stand at the same place: where operands have as many dimensions, they have as many rows."""


def function(name: str, args: Iterable[Argument], keywords: Mapping[str, Argument], particular: Mapping[str, Rule] = {}) -> Result:
    """What `name(...)` gives: a function of torch, or a method, then with the tensor in front of `args`.

    `particular` are the rows of a place where some names mean something else.
    """
    rule = particular.get(name) or NAMES.get(name) or (NAMES.get(name[:-1]) if name.endswith("_") else None)
    return _claimed(rule or unknown, Use(args, keywords))


def module(name: str, settings: Mapping[str, Argument], args: Iterable[Argument], keywords: Mapping[str, Argument]) -> Result | None:
    """What a module of torch.nn gives; None where it has no row. Settings given by place are named by it ("0", "1", ...)."""
    row = MODULES.get(name)
    if row is None:
        return None
    rule, names, defaults = row
    named = {names[int(k)] if k.isdigit() and int(k) < len(names) else k: v for k, v in settings.items()}
    return _claimed(rule, Use(args, {**defaults, **named, **keywords}))


def dimensions(name: str) -> tuple[int, ...]:
    """How many dimensions a batch may have that a module of torch.nn takes; none where any number will do, or it is not known."""
    rule = MODULES[name][0] if name in MODULES else None
    by_ndim = isinstance(rule, partial) and rule.func in (layer, weighted_layer, layers.pooled, layers.max_pool, layers.normed)
    return tuple(rule.args[0]) if by_ndim and isinstance(rule, partial) else ()


def index(x: Argument, entries: Iterable[Argument]) -> Result:
    """What `x[...]` gives, by the entries of the index."""
    return _claimed(indexing.indexed, Use((x, *entries), {}))


def size(x: Argument, dim: Argument) -> Result:
    """What `x.size(dim)` gives."""
    return _claimed(indexing.size, Use((x, dim), {}))


def unknown(use: Use) -> Result:
    """What a function without a row gives: nothing is known of it where it is given something of a batch."""
    return transfer.of_constants(use.operands())


def _claimed(rule: Rule, use: Use) -> Result:
    found = rule(use)
    held = tuple(use.needs) if found.scale != "other" else ()
    found = falling.kept(rule, use, found if rule in _KEEPS_SECOND else _forgets_second(found))
    return found._replace(needs=held, shows=tuple(use.shows))


_KEEPS_SECOND = (reshaping.unsqueeze, transfer.batched_product, transfer.softmax, transfer.kept)


def _forgets_second(found: Result) -> Result:
    """Only what says so leaves a dimension of one entry where it was."""
    if found.shape is not None and found.shape.second:
        found = found._replace(shape=found.shape._replace(second=False))
    return found._replace(parts=tuple(map(_forgets_second, found.parts))) if found.parts else found
