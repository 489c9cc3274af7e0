"""How numbers computed from a batch depend on its samples: an average, a total, a count, or something else.

Averages over ranks with equally many samples are the average over all; totals add up; nothing is known of the rest.
Reference: https://docs.pytorch.org/docs/stable/notes/ddp.html (gradients are averaged over processes).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ddpify.facts.model import Lit, Scale, Value

_LOSSES = frozenset(
    """
        cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
        kl_div poisson_nll_loss gaussian_nll_loss soft_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
        multi_margin_loss hinge_embedding_loss margin_ranking_loss triplet_margin_loss triplet_margin_with_distance_loss
        cosine_embedding_loss ctc_loss
    """.split()
)
_LOSS_MODULES = frozenset(
    """
        CrossEntropyLoss NLLLoss NLLLoss2d MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss
        GaussianNLLLoss SoftMarginLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss HingeEmbeddingLoss
        MarginRankingLoss TripletMarginLoss TripletMarginWithDistanceLoss CosineEmbeddingLoss CTCLoss
    """.split()
)
# These divide by the weights of the valid targets; the others by how many entries there are, whatever their weights.
BY_WEIGHT = frozenset(("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "NLLLoss2d"))
_WEIGHTED = frozenset(["masked_select", "nonzero", "take_along_dim", "compress"])
_KEEP = frozenset(
    """
        item tolist numpy cpu cuda to float double half long int detach clone contiguous requires_grad_ data_ptr round type type_as
        detach_ squeeze view reshape str format
    """.split()
)
_ROWS = frozenset(
    """
        relu sigmoid tanh exp log log2 log10 log1p expm1 softmax log_softmax logsigmoid softplus gelu silu elu selu leaky_relu pow
        abs clamp clip clamp_min clamp_max clamp_ sqrt rsqrt square neg reciprocal sign floor ceil flatten unsqueeze unsqueeze_
        squeeze_ eq ne gt lt ge le logical_and logical_or logical_not view_as expand_as reshape_as gather scatter scatter_
        one_hot normalize dropout dropout2d masked_fill masked_fill_ add sub mul div add_ sub_ mul_ div_ true_divide cat concat
        stack narrow where isnan isinf bool byte type_as to_dense data chunk split unbind select index_select copy_ float16 bfloat16
        numpy astype asnumpy eq_ interpolate pad upsample grid_sample embedding cosine_similarity pairwise_distance mse binarize
        requires_grad get pop values items pin_memory fill_ zero_ normal_ uniform_ bernoulli_ random_ grad log_prob sample
        rsample mul_ sin cos erf lerp addcmul interp2d unfold fold pixel_shuffle softmin hardtanh relu_ apply_ permute data new
        share_memory_ bmm baddbmm linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d layer_norm group_norm instance_norm rms_norm prelu glu mish
        hardswish hardsigmoid upsample_nearest upsample_bilinear scaled_dot_product_attention
    """.split()
)
_WHOLE = frozenset(
    """
        max min median var std norm logsumexp prod amax amin aminmax std_mean var_mean any all argmax argmin nansum nanmean
    """.split()
)


def uneven(parts: Sequence[Value]) -> bool:
    """Whether a rank's own rows meet all ranks' rows, or numbers made of those."""
    return any(p.scale == "sample" for p in parts) and any(p.scale is None and p.of_kind("whole") for p in parts)


_OF_SEVERAL = frozenset(("mean", "sum", "total", "weighted", "other"))
_ELEMENTWISE = frozenset(
    """
        add sub mul div add_ sub_ mul_ div_ true_divide clamp clip clamp_ clamp_min clamp_max masked_fill masked_fill_ where eq ne gt lt
        ge le
        pow lerp addcmul maximum minimum fill_ copy_
    """.split()
)
_OVER = frozenset("std var std_mean var_mean max min amax amin median norm logsumexp softmax log_softmax normalize cumsum".split())
INTO_CELLS = frozenset("index_add index_add_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_put index_put_ put_".split())


def coupled(left: Scale | None, right: Scale | None) -> bool:
    """Whether the samples of a batch meet a number that was made of all of them."""
    return "sample" in (left, right) and bool({left, right} & {"mean", "sum"})


def couples(name: str, scale: Scale | None, args: Sequence[Value], keywords: dict[str, Value]) -> bool:
    """Whether `tensor.name(...)` lets the samples of a batch meet: by a number made of all, or by going over the first dimension."""
    if scale != "sample":
        return False
    if name in _ELEMENTWISE:
        return any(v.scale in ("mean", "sum") for v in (*args, *keywords.values()))
    return name in _OVER and _literal(keywords.get("dim", keywords.get("axis", args[0] if args else Value()))) == 0


def compared(parts: Iterable[Scale | None]) -> Scale | None:
    """What comparing samples gives: an answer for each, unless they meet a number that was made of several."""
    seen = set(parts) - {None}
    return None if not seen else "sample" if "sample" in seen and seen <= {"sample", "count"} else "other"


def mixed(parts: Sequence[Value]) -> Scale | None:
    """What an unknown function of `parts` gives."""
    if uneven(parts):
        return "other"
    seen = {p.scale for p in parts} - {None}
    if not seen:
        return None
    if seen <= {"sample", "count", "weighted"} and "weighted" in seen:
        return "weighted"
    if "sample" in seen:
        return "sample" if seen <= {"sample", "count"} else "other"
    return "count" if seen <= {"count", "total"} else "other"


def binary(op: ast.operator, left: Scale | None, right: Scale | None) -> Scale | None:
    """The scale of `left op right`."""
    if left is None and right is None:
        return None
    added = isinstance(op, (ast.Add, ast.Sub)) and {left, right} <= {None, "count", "total"}
    if not added:
        left, right = ("count" if s == "total" else s for s in (left, right))
    pair = {left, right}
    if isinstance(op, (ast.Add, ast.Sub)):
        if pair <= {None, "count", "total"} and isinstance(op, ast.Add):
            return "total"  # counts that are added up
        if left == right or None in pair:
            return left or right
        return "sample" if pair <= {"sample", "count"} else "other"
    if isinstance(op, ast.Mult):
        if None in pair:
            return left or right
        if pair == {"mean", "count"}:
            return "sum"
        return "sample" if "sample" in pair and pair <= {"sample", "count"} else "other"
    if isinstance(op, ast.Div):
        if right is None:
            return left
        if left == "sum" and right == "count":
            return "mean"
        if left == "count" and right == "count":
            return "mean"
        return "sample" if left in ("sample", None) and right == "sample" else "other"
    if isinstance(op, ast.MatMult):
        return (left or right) if None in pair else "other"
    if isinstance(op, ast.Mod) and "sample" not in pair:
        return left or right
    if isinstance(op, ast.FloorDiv) and "sample" not in pair:
        return "count" if pair <= {None, "count"} else "other"
    return "sample" if "sample" in pair else "other"


def indexed(scale: Scale | None, index: ast.expr) -> Scale | None:
    """The scale of `x[index]`."""
    if (
        scale == "sample"
        and isinstance(index, ast.Slice)
        and (index.lower is not None or index.upper is not None or index.step is not None)
    ):
        return "other"  # some rows of this rank's share
    if scale == "count":  # x.shape[0]
        return "count" if isinstance(index, ast.Constant) and index.value == 0 else None
    return scale


def method(name: str, scale: Scale | None, args: Sequence[Value], keywords: dict[str, Value]) -> Scale | None:
    """The scale of `tensor.name(...)` or `torch.name(tensor, ...)` (then `args` leaves the tensor out)."""
    if name in ("size", "__len__", "shape", "numel", "nelement", "dim"):
        if scale is None or name == "dim":
            return None
        if scale == "weighted" and name in ("numel", "nelement"):
            return "sum"  # of the rows that were chosen: other ranks have chosen other ones
        return "count" if name in ("numel", "nelement", "__len__", "shape") or not args or _literal(args[0]) == 0 else None
    if scale == "mean" and name in ("int", "long", "round"):
        return "other"
    if scale is None or name in _KEEP:
        return scale
    if scale == "weighted" and name in _ROWS | {"mean", "sum"}:
        return "weighted"
    if name in ("mean", "sum", "nanmean", "nansum"):
        dim = keywords.get("dim", keywords.get("axis", args[0] if args else None))
        if scale != "sample":
            return scale
        over = _literal(dim) if dim is not None else None
        if dim is None or over is None or over == 0 or isinstance(over, tuple):
            return "mean" if "mean" in name else "sum"
        if type(over) is int and over < -1:
            return "other"  # of two dimensions, the first
        return "sample"
    if name in ("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "new"):
        flat = [i for a in args for i in (a, *_items(a))]
        if any(i.scale == "count" for i in flat):
            return "sample"
        if args and all(i.scale is None for i in flat):
            return None  # the same whatever the batch is
    if scale == "sample":
        dim = keywords.get("dim", keywords.get("axis", args[0] if args else None))
        over = _literal(dim) if dim is not None else None
        if name in ("mm", "matmul", "mv") and args and args[0].scale is None:
            return "sample"
        if name in _ELEMENTWISE and any(v.scale in _OF_SEVERAL for v in (*args, *keywords.values())):
            return "other"
        if name == "index_select" and over == 0:
            return "other"  # rows paired with other rows
        if type(over) is int and over < -1 and name in _OVER:
            return "other"  # of two dimensions, the first
        if name in _WHOLE:
            return "sample" if dim is not None and over != 0 and not isinstance(over, tuple) else "other"
        if (name in ("softmax", "log_softmax", "unsqueeze", "cumsum") and over == 0) or (
            name == "normalize" and _literal(keywords.get("dim", Value())) == 0
        ):
            return "other"
        if name in ("transpose", "swapaxes", "swapdims") and len(args) == 2:
            return "sample" if all(type(_literal(a)) is int and _literal(a) != 0 for a in args) else "other"
        if name in ("repeat", "tile", "expand") and args:
            return "sample" if _literal(args[0]) in (1, -1) or (name == "expand" and args[0].scale == "count") else "other"
        if name == "flip":
            axes = [_literal(a) for a in args] or [_literal(dim) if dim is not None else None]
            return "sample" if all((type(a) is int and a != 0) for a in axes) else "other"
        if name == "topk":
            over = _literal(keywords.get("dim", args[1] if len(args) > 1 else Value()))
            return "sample" if type(over) is int and over > 0 else "other"
        return "sample" if name in _ROWS else "weighted" if name in _WEIGHTED else "other"
    if name in ("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_", "true_divide"):
        op: ast.operator = {"ad": ast.Add(), "su": ast.Sub(), "mu": ast.Mult(), "di": ast.Div(), "tr": ast.Div()}[name[:2]]
        return binary(op, scale, args[0].scale if args else None)
    return "other"


def turns(name: str, args: Sequence[Value], keywords: dict[str, Value]) -> bool:
    """Whether `tensor.name(...)`, or `torch.name(tensor, ...)`, may leave the samples in another than the first dimension."""
    first = keywords.get("dim", keywords.get("axis", args[0] if args else Value()))
    if name in ("permute", "movedim", "moveaxis"):
        return _literal(first) != 0
    if name == "stack":
        return _literal(first) in (None, 0)
    if name in ("view", "reshape"):
        return first.scale != "count" and (_literal(first) != -1 or len(args) > 1)  # (-1, n): several rows for a sample
    if name == "flatten":
        return _literal(first) == 0 and len(args) > 1
    return False


def function(name: str, args: Sequence[Value], keywords: dict[str, Value]) -> Scale | None:
    """The scale of `torch.name(...)` or `torch.nn.functional.name(...)`."""
    if name in _LOSSES:
        rows = 3 if name.startswith(("triplet", "margin", "cosine")) else 2
        inner = mixed(args[:rows] if args else list(keywords.values()))
        weighted = name in BY_WEIGHT and ("weight" in keywords or "ignore_index" in keywords or len(args) > 2)
        more = [*args[rows:], *(v for k, v in keywords.items() if k in ("weight", "pos_weight"))]
        if any(v.scale in _OF_SEVERAL | {"count"} or _literal(v) is False or isinstance(_literal(v), str) for v in more):
            return "other"  # weights that are each rank's own, or a reduction given by its place
        return _reduced(keywords, inner, weighted)
    if not args:
        return mixed(list(keywords.values()))
    if name in ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like"):
        return args[0].scale
    if name in (
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
        "where",
        "cat",
        "stack",
        "add",
        "mul",
        "sub",
        "matmul",
        "mm",
        "bmm",
        "dot",
        "cdist",
        "einsum",
    ):
        if name in ("matmul", "mm", "cdist", "dot", "einsum") and sum(a.scale == "sample" for a in args) > 1:
            return "other"
        return mixed(args) if "sample" in {a.scale for a in args} else method(name, args[0].scale, args[1:], keywords)
    whole = mixed(args)
    if whole == "sample" and name in ("from_numpy", "tensor", "asarray"):
        return "sample"
    return method(name, whole if whole == "sample" else args[0].scale or whole, args[1:], keywords)


def of_module(path: str, reduction: Value, inner: Scale | None, weighted: bool) -> Scale | None:
    """The scale of what a library's module returns for inputs of scale `inner`."""
    name = path.rpartition(".")[2]
    if name in _LOSS_MODULES:
        return _reduced({"reduction": reduction} if reduction.objs else {}, inner, weighted and name in BY_WEIGHT)
    return inner if inner in (None, "sample") else "other"


def _reduced(keywords: dict[str, Value], inner: Scale | None, weighted: bool) -> Scale | None:
    if inner not in ("sample", "count"):
        return None if inner is None else "weighted" if inner == "weighted" else "other"
    how = _literal(keywords.get("reduction", Value()))
    if "reduction" in keywords and how is None:
        return "other"
    if _literal(keywords.get("size_average", Value())) is False:
        how = "sum"
    if _literal(keywords.get("reduce", Value())) is False:
        how = "none"
    if how in ("none", "sum"):
        return "sample" if how == "none" else "sum"
    return "weighted" if weighted else "mean"


def _items(value: Value) -> tuple[Value, ...]:
    return tuple(i for o in value.objs for i in getattr(o, "items", ()))


def _literal(value: Value) -> object:
    if len(value.objs) == 1:
        (only,) = value.objs
        if isinstance(only, Lit):
            return only.value
        items = getattr(only, "items", None)
        if isinstance(items, tuple):
            found = tuple(_literal(i) for i in items)
            return found if 0 in found else 1
    return None
