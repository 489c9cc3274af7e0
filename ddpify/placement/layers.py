"""Transfer rules for what networks are built of: layers, normalization, attention, recurrence, losses.

Reference: https://docs.pytorch.org/docs/stable/nn.functional.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ddpify.placement.shape import COUPLED, MISSING, NO_CLAIM, ROWS, UNKNOWN, Argument, Just, Result, Shape, Use, shape_of
from ddpify.placement.transfer import elementwise, linear, of_constants, of_last, together


def layer(ndims: tuple[int, ...], out: int | None, use: Use) -> Result:
    """A function of each sample alone, of tensors with so many dimensions, samples first: convolution, pooling, resizing."""
    rows = [a for a in use.operands() if a.scale in ROWS]
    if not rows:
        return of_constants(use.operands())
    if any(a.scale not in (None, "sample", "count") for a in use.operands()):
        return NO_CLAIM
    shape = shape_of(rows[0])
    if shape.axis != 0 or any(shape_of(r).axis != 0 for r in rows) or (shape.ndim is not None and shape.ndim not in ndims):
        return COUPLED
    if shape.base is not None:
        use.shows.append((shape.base, min(ndims) - shape.dims))
        use.shows += [(Just(shape.base), ndims[0] - shape.dims)] if len(ndims) == 1 else []
    ndim = out if out is not None else shape.ndim if shape.ndim is not None else ndims[0] if len(ndims) == 1 else None
    return Result("sample", shape.resized() if ndim is None else Shape(None, ndim, 0, shape.sure, by_step=shape.by_step))


def pooled(ndims: tuple[int, ...], use: Use) -> Result:
    """Pooling, of each channel by itself: the samples may stand in the place of the channels, `x.view(1, len(x), -1)`."""
    x, spatial = use.get(0, "input"), min(ndims) - 1
    shape, alone = shape_of(x), all(a.scale is None for a in use.operands() if a is not x)
    if x.scale == "sample" and alone and shape.ndim in ndims and 0 < shape.axis < shape.dims - spatial:
        return Result("sample", shape.resized()._replace(front=shape.front))
    return layer(ndims, None, use)


def max_pool(ndims: tuple[int, ...], at: int, use: Use) -> Result:
    """Pooling; `return_indices`, which stands `at` this place where it has no name, gives where each largest entry was, too."""
    found, both = pooled(ndims, use), use.get(at, "return_indices")
    if both is MISSING or both.literal is False or found.shape is None:
        return found
    return found._replace(shape=found.shape._replace(several=True)) if both.literal is True else NO_CLAIM


def normed(ndims: tuple[int, ...], use: Use) -> Result:
    """Batch norm as a module: as other layers; rows of which ranks have different numbers, as nodes of graphs, are normed as such."""
    x = use.get(0, "input")
    if x.scale == "chosen" and shape_of(x).axis == 0:
        return Result("chosen", shape_of(x).resized()) if use.proves(shape_of(x), min(ndims)) else NO_CLAIM
    return layer(ndims, None, use)


def patches(ndim: int, out: int, use: Use) -> Result:
    """`unfold` and `fold` of images: with one dimension fewer, they take a single image."""
    x = use.get(0, "input")
    if x.scale not in ROWS or any(a.scale is not None for a in use.operands() if a is not x):
        return of_constants(use.operands())
    shape = shape_of(x)
    return (
        Result(x.scale, Shape(None, out, 0, shape.sure, by_step=shape.by_step))
        if shape.axis == 0 and use.at_least(shape, ndim)
        else COUPLED
    )


def weighted_layer(ndims: tuple[int, ...], out: int | None, use: Use) -> Result:
    """The same, with weights that must not come from the batch; sizes may, those of a tensor that the result is to be as large as."""
    if (apart := _grouped(ndims[0], use)) is not None:
        return apart
    sized = [a for a in use.operands() if a.scale == "count" and a.shape is not None]
    if any(a.scale is not None for a in use.operands() if a is not use.get(0, "input") and a not in sized):
        return of_constants(use.operands())
    return layer(ndims, out, use)


def _grouped(ndim: int, use: Use) -> Result | None:
    """A convolution of all samples as the groups of one image, each by its own weights: `conv2d(x.view(1, -1, h, w), w, groups=len(x))`."""
    x, weight, groups = use.get(0, "input"), use.get(1, "weight"), use.get(6, "groups")
    bias = use.get(2, "bias")
    shape = shape_of(x)
    if groups.scale != "count" or x.scale != "sample" or weight.scale != "sample" or bias.scale not in (None, "sample"):
        return None
    others = [a for a in use.operands() if a not in (x, weight, bias, groups)]
    whole = shape.axis == 1 and shape.front and shape.ndim in (ndim, None) and shape_of(weight).axis == 0
    return Result("sample", Shape(None, ndim, 1, front=True)) if whole and all(a.scale is None for a in others) else None


def instance_norm(ndim: int, use: Use) -> Result:
    """By statistics of each sample and channel; of one dimension fewer, of a single sample."""
    return patches(ndim, ndim, use)


def lazy_linear(use: Use) -> Result:
    """Each row times a matrix that is as large as the first input asks for."""
    x = use.get(0, "input")
    if x.scale not in ROWS:
        return linear(use)
    shape = shape_of(x)
    single = use.get(-1, "out_features").literal == 1
    return Result(x.scale, shape._replace(single=single, several=False)) if use.at_least(shape, shape.axis + 2) else COUPLED


def layer_norm(use: Use) -> Result:
    """Over the last dimensions, as many as `normalized_shape` has."""
    x, over = use.get(0, "input"), use.get(1, "normalized_shape")
    if x.scale not in ROWS or any(a.scale is not None for a in use.operands() if a is not x):
        return of_constants(use.operands())
    shape = shape_of(x)
    return Result(x.scale, x.shape) if use.at_least(shape, shape.axis + 1 + (len(over.items) if over.items else 1)) else COUPLED


def batch_norm(use: Use) -> Result:
    """`F.batch_norm`: by running statistics each sample alone; in training, by those of the batch, where samples are no channels."""
    x, training = use.get(0, "input"), use.get(5, "training")
    if training is MISSING or training.literal is False:
        return layer((2, 3, 4, 5), None, use.over(x))
    if x.scale != "sample":
        return COUPLED if x.scale in ROWS else NO_CLAIM
    by_channel = [use.get(3, "weight"), use.get(4, "bias")]
    apart = shape_of(x).axis == 1 and all(a.scale in (None, "sample") for a in by_channel)
    return Result(x.scale, shape_of(x)._replace(several=False)) if apart else COUPLED


def attention(use: Use) -> Result:
    """`scaled_dot_product_attention(q, k, v)`: among the last dimension but one of each sample."""
    named = [v for k, v in use.keywords.items() if k in ("query", "key", "value", "attn_mask")]
    return of_last(use.over(*use.args[:4], *named), 2)


def embedding(use: Use) -> Result:
    """A row of a table for each entry."""
    x, table = use.get(0, "input"), use.get(1, "weight")
    if x.scale in ROWS and table.scale is None:
        return Result(x.scale, shape_of(x).resized(1)._replace(front=shape_of(x).front))
    return of_constants((x, table))


def one_hot(use: Use) -> Result:
    """A row of zeros and a one for each entry."""
    x = use.get(0, "input")
    return Result(x.scale, shape_of(x).resized(1)) if x.scale in ROWS else NO_CLAIM if x.scale else Result()


def loss(rows: int, kind: str, default: str, use: Use) -> Result:
    """A loss: an average over all entries, unless it is asked for their total or for one each.

    `rows` is how many operands have rows; `kind` is "weights" for those that divide by the weights of valid targets, "classes" for those
    whose second dimension is that of classes, "labels" for those that take a single sample, too, "features" for those whose last dimension
    is that of features, "alike" for those that refuse operands of two sizes, else "entries".
    """
    given = [*use.args[:rows], *(v for k, v in use.keywords.items() if k in ("input", "target", "log_probs", "targets", "var", "inputs"))]
    more = [*use.args[rows:], *(v for k, v in use.keywords.items() if k in ("weight", "pos_weight"))]
    if any(a.scale not in (None, "sample") for a in more) or any(a.literal is False or isinstance(a.literal, str) for a in use.args[rows:]):
        return NO_CLAIM
    found = _OF_EACH.get(kind, _of_classes)(use, given)
    if found.scale not in ROWS:
        return found
    if use.keywords.get("reduction", MISSING).literal == "batchmean" and found.shape is not None and found.shape.axis != 0:
        return Result("sum", Shape())  # over the length of the first dimension, which is not that of the samples
    how = _reduction_of(use, default)
    if how == "none":
        return found
    if how != "mean":
        return Result("sum", Shape()) if how == "sum" else NO_CLAIM
    return Result("weighted" if found.scale == "chosen" or (kind == "weights" and _by_weights(use)) else "mean", Shape())


def _by_weights(use: Use) -> bool:
    """Whether targets have weights, or some of them are left out."""
    return len(use.args) > 2 or any(use.keywords.get(k, MISSING).literal is not None for k in ("weight", "ignore_index"))


def _of_classes(use: Use, given: list[Argument], one_sample: bool = False) -> Result:
    """One number for each sample, from scores in the second dimension; `one_sample`: scores of one dimension would be a sample's."""
    rows = [a for a in given if a.scale in ROWS]
    if not rows or any(a.scale not in (None, *ROWS) for a in given):
        return of_constants(given)
    shape, has = shape_of(given[0]), use.at_least if one_sample else use.proves
    if given[0].scale not in ROWS or len({r.scale for r in rows}) > 1 or not has(shape, 2) or shape.axis == 1:
        return NO_CLAIM
    return Result(rows[0].scale, shape.resized(-1, shape.axis - (shape.axis > 1)))


def _of_features(use: Use, given: list[Argument]) -> Result:
    """One number for each sample, from tensors whose last dimension is that of features (targets have none)."""
    shapes = [a for a in given if a.scale in ROWS]
    if not shapes or any(a.scale not in (None, *ROWS) for a in given) or len({r.scale for r in shapes}) > 1:
        return of_constants(given)
    shape = shape_of(shapes[0])
    return Result(shapes[0].scale, shape.resized(-1)) if shape.axis == 0 and use.at_least(shape, 2) else NO_CLAIM


def _of_alike(use: Use, given: list[Argument]) -> Result:
    """One number for each entry, of operands that have one size: where they would be paired, the loss fails."""
    found = together(use, given)
    rows = [a for a in given if a.scale == "sample" and a.shape is not None]
    first = all(shape_of(a).axis == 0 and shape_of(a).sure for a in rows)
    return Result("sample", shape_of(rows[0])) if found is COUPLED and len(rows) == len(given) and first else found


_OF_EACH: dict[str, Callable[[Use, list[Argument]], Result]] = {
    "entries": together,
    "alike": _of_alike,
    "features": _of_features,
    "labels": partial(_of_classes, one_sample=True),
}


def ctc_loss(use: Use) -> Result:
    """`ctc_loss(log_probs, targets, input_lengths, target_lengths)`: for each sample by the length of its target, then over the batch."""
    scores, how = use.get(0, "log_probs"), _reduction_of(use, "mean")
    given = [use.get(i, n) for i, n in enumerate(("log_probs", "targets", "input_lengths", "target_lengths"))]
    if scores.scale != "sample" or any(a.scale not in (None, "sample", "chosen") for a in given):
        return of_constants(given)
    if (shape_of(scores).sure and shape_of(scores).axis != 1) or not use.proves(shape_of(scores), 3) or how is None:
        return COUPLED
    return Result("sample", Shape(None, 1)) if how == "none" else Result("sum" if how == "sum" else "mean", Shape())


def padded(use: Use) -> Result:
    """`pad(x, widths)`: the last dimensions become longer, one for each two widths; those that get nothing stay."""
    x, widths = use.get(0, "input"), use.get(1, "pad", "padding")
    if x.scale not in ROWS or any(a.scale is not None for a in (*use.args[1:], *(widths.items or ()))):
        return of_constants((x,))
    shape = shape_of(x)
    dims = -(-max((i for i, w in enumerate(widths.items, 1) if w.literal != 0), default=0) // 2) if widths.items is not None else 1
    return Result(x.scale, shape.resized()) if use.at_least(shape, shape.axis + 1 + dims) else COUPLED


def prelu(use: Use) -> Result:
    """`prelu(x, weight)`: entry by entry, by a constant of each channel."""
    return elementwise(use.over(use.get(0, "input"))) if use.get(1, "weight").scale is None else NO_CLAIM


def bilinear(use: Use) -> Result:
    """`bilinear(a, b, weight)`: of two rows of each sample."""
    found = together(use, use.args[:2])
    if any(a.scale is not None for a in use.args[2:]) or found.scale not in ROWS or found.shape is None:
        return found if found.scale is None else NO_CLAIM
    return Result(found.scale, found.shape.resized()) if use.proves(found.shape, found.shape.axis + 2) else COUPLED


def _reduction_of(use: Use, default: str) -> str | None:
    """ "mean", "sum" or "none"; None where it is not known."""
    given = use.keywords.get("reduction", use.keywords.get("**"))
    how = default if given is None else given.literal
    if use.keywords.get("size_average", MISSING).literal is False:
        how = "sum"
    if use.keywords.get("reduce", MISSING).literal is False:
        how = "none"
    return {"mean": "mean", "batchmean": "mean", "sum": "sum", "none": "none", "elementwise_mean": "mean"}.get(str(how))


def identity(use: Use) -> Result:
    """What goes in."""
    x = use.get(0, "input")
    return Result(x.scale, x.shape)


def _in_order(use: Use, x: Argument) -> Shape | None:
    """The dimensions of a batch of sequences, samples where `batch_first` says; None where they lie elsewhere."""
    first = use.keywords.get("batch_first", use.keywords.get("**", MISSING)).literal
    if first is UNKNOWN:
        return None
    shape, axis = shape_of(x), 0 if first else 1
    if (shape.sure and shape.axis != axis) or not use.proves(shape, 3):
        return None
    return Shape(None, 3, axis, shape.sure)


def _sequences(use: Use, *operands: Argument) -> Result | Shape:
    """The dimensions that all sequences have, or what is so where they have none in common."""
    if not any(o.scale in ROWS for o in operands):
        return of_constants(operands)
    if any(o.scale not in (None, "sample") for o in operands):
        return NO_CLAIM
    shapes = [_in_order(use, o) for o in operands if o.scale == "sample"]
    return next((s for s in shapes if s is not None), COUPLED) if None not in shapes else COUPLED


def recurrent(use: Use, cell_state: bool = False) -> Result:
    """LSTM, GRU, RNN: the outputs of all steps, and the last state, whose second dimension is that of the samples."""
    found = _sequences(use, use.get(0, "input"))
    if isinstance(found, Result):
        return found
    if any(a.scale not in (None, "sample", "count") for a in use.operands()):
        return NO_CLAIM  # a state that is not known to be each sample's own
    layers, directions = use.get(-1, "num_layers").literal, use.get(-1, "bidirectional").literal
    state = Result("sample", Shape(None, 3, 1, front=layers in (None, 1) and directions in (None, False)))
    given = shape_of(use.get(0, "input"))
    steps = found._replace(packed=given.packed, front=given.front and found.axis == 1)
    return Result("sample", parts=(Result("sample", steps), Result("sample", parts=(state, state)) if cell_state else state))


def cell(use: Use, cell_state: bool = False) -> Result:
    """One step of a recurrence."""
    x = use.get(0, "input")
    if x.scale not in ROWS:
        return elementwise(use)
    if any(a.scale not in (None, x.scale, "count") for a in use.operands()):
        return NO_CLAIM
    shape = shape_of(x)
    if not use.proves(shape, 2) or shape.axis != 0:
        return COUPLED
    state = Result(x.scale, Shape(None, 2))
    return Result(x.scale, parts=(state, state)) if cell_state else state


def multihead_attention(use: Use) -> Result:
    """`nn.MultiheadAttention`: what is attended, and the weights."""
    named = [use.get(0, "query"), use.get(1, "key"), use.get(2, "value")]
    found = _sequences(use, *named)
    return found if isinstance(found, Result) else Result("sample", parts=(Result("sample", found), Result("sample", Shape(None, 3))))


def transformer(use: Use) -> Result:
    """Encoders, decoders and their layers: sequences in, sequences out."""
    given = [use.get(0, "src", "tgt")] + [a for a in (use.get(1, "tgt", "memory"),) if a.scale in ROWS]
    masks = {k for k in use.keywords if k.endswith(("mask", "is_causal"))}
    sequences = [g for g in given if g not in [use.keywords[m] for m in masks]]
    found = _sequences(use, *sequences)
    return found if isinstance(found, Result) else Result("sample", found)


def embedding_bag(use: Use) -> Result:
    """A row for each sample: of its words, or of those between its offset and the next."""
    x, offsets = use.get(0, "input"), use.get(1, "offsets")
    if x.scale not in ROWS and offsets.scale not in ROWS:
        return of_constants((x, offsets))
    shape = shape_of(x)
    if offsets.scale is None and (shape.ndim == 1 or shape.axis != 0):
        return NO_CLAIM
    return Result("sample", Shape(None, 2))


def packed(use: Use) -> Result:
    """`pack_padded_sequence`: a batch of sequences, ready for a recurrence."""
    x, first = use.get(0, "input"), use.get(2, "batch_first").literal
    if x.scale != "sample":
        return Result(x.scale) if x.scale is None else NO_CLAIM
    shape = shape_of(x)
    if first is UNKNOWN or (shape.sure and shape.axis != (0 if first else 1)):
        return COUPLED
    return Result("sample", shape.resized(0, 0)._replace(sure=False, packed=True))


def unpacked(use: Use) -> Result:
    """`pad_packed_sequence`: padded sequences, and their lengths."""
    x, first = use.get(0, "sequence"), use.get(1, "batch_first").literal
    if x.scale != "sample" or first is UNKNOWN:
        return NO_CLAIM if x.scale else Result()
    padded = shape_of(x).resized(0, 0 if first else 1)._replace(sure=True)
    return Result("sample", parts=(Result("sample", padded), Result("sample", Shape(None, 1))))
