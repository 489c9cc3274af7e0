"""What differs between one process and several although both are right is taken out of both: dropout, batch statistics, rounding."""

from __future__ import annotations

import functools
import itertools
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import SyncBatchNorm

from ddpify_rehearsal import record, stage
from ddpify_rehearsal.stage import Call, mapped

SCALE = 1024.0  # of a loss for which there is a scaler
_exempt = 0  # calls of what is not widened
_LOW = (torch.float32, torch.float16, torch.bfloat16)
_SHORT = {"float": "double", "half": "double", "bfloat16": "double"}


# --- dropout --------------------------------------------------------------------------------------------------------------
def _kept(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if training and p:
        record.condition("dropout")
    return input


def _no_dropout() -> None:
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(F, name, _kept)
    torch.dropout = lambda input, p, train: _kept(input, p, train)  # type: ignore[assignment]
    attention: Any = F.scaled_dot_product_attention

    def without(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *args: Any, **kwargs: Any) -> Any:
        _kept(None, dropout_p)
        return attention(query, key, value, attn_mask, 0.0, *args, **kwargs)

    F.scaled_dot_product_attention = without  # type: ignore[assignment]
    rnn: Any = torch.nn.modules.rnn.RNNBase
    make = rnn.__init__

    @functools.wraps(make)
    def plain(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        _kept(None, self.dropout)
        self.dropout = 0.0

    rnn.__init__ = plain


# --- batch norm -----------------------------------------------------------------------------------------------------------
def _sample_norm(
    input: torch.Tensor, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> torch.Tensor:  # fmt: skip
    """Batch norm with each sample's own statistics: no sample depends on which others share its batch."""
    record.condition("batch_norm")
    if input.dim() > 1 and input[0].numel() > 1:
        input = F.layer_norm(input, input.shape[1:], eps=eps)
    shape = (1, -1) + (1,) * (input.dim() - 2)
    if weight is not None:
        input = input * weight.view(shape)
    return input if bias is None else input + bias.view(shape)


def _sync_norm(self: Any, input: torch.Tensor) -> torch.Tensor:
    if self.training and self.track_running_stats and self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
    return _sample_norm(input, None, None, self.weight, self.bias, eps=self.eps)


def _no_batch_statistics() -> None:
    F.batch_norm = _sample_norm
    SyncBatchNorm.forward = _sync_norm  # type: ignore[method-assign]


# --- precision ------------------------------------------------------------------------------------------------------------
def _one_scale() -> None:
    """Autocast off, and a loss scale that stays as it is, by torch's own classes.

    A power of two rounds nothing, and shows what takes scaled gradients for gradients.
    """
    scaler: Any = torch.amp.GradScaler
    make, scale = scaler.__init__, scaler.scale

    @functools.wraps(make)
    def at_one(self: Any, device: str = "cuda", *args: Any, enabled: bool = True, **kwargs: Any) -> None:
        record.condition("scaler")
        make(self, device, init_scale=SCALE, growth_interval=2**31 - 1, enabled=enabled)

    @functools.wraps(scale)
    def scaled(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        if isinstance(result, torch.Tensor) and result is not outputs:
            result.__dict__["_rehearsed_scale"] = SCALE
        return result

    scaler.__init__, scaler.scale = at_one, scaled
    for name in ("_lazy_init_scale_growth_tracker", "unscale_", "update"):
        setattr(scaler, name, _as_it_is(getattr(scaler, name)))
    autocast: Any = torch.amp.autocast_mode.autocast
    begin = autocast.__init__

    @functools.wraps(begin)
    def off(self: Any, device_type: str = "cuda", *args: Any, **kwargs: Any) -> None:
        record.condition("autocast")
        begin(self, "cpu", enabled=False)

    autocast.__init__ = off
    torch.compiler.set_stance("force_eager")


def _as_it_is(method: Call) -> Call:
    """A method whose tensors keep their precision: a scaler's own are of float32."""

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        global _exempt
        _exempt += 1
        try:
            return method(*args, **kwargs)
        finally:
            _exempt -= 1

    return called


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in float64, where the rehearsal computes in it; one that is not of floating point is itself."""
    if not record.DOUBLE or _exempt or tensor.dtype not in _LOW:
        return tensor
    where = tensor.__dict__.get("_rehearsed_on")
    result = tensor.double()
    if where is not None:
        result.__dict__["_rehearsed_on"] = where
    return result


def widened(value: Any) -> Any:
    """A batch or a checkpoint in float64."""
    return mapped(value, wide) if record.DOUBLE else value


def _in_double(call: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _exempt:
        return call(*args, **kwargs)
    if name in _SHORT:
        return args[0].double()
    if kwargs.get("dtype") in _LOW:
        kwargs = {**kwargs, "dtype": torch.float64}
    if name in ("to", "type", "view") and any(isinstance(a, torch.dtype) and a in _LOW for a in args[1:]):
        args = (args[0], *(torch.float64 if isinstance(a, torch.dtype) and a in _LOW else a for a in args[1:]))
    if name == "type" and len(args) > 1:
        args = (args[0], _double_type(args[1]))
    result = call(*args, **kwargs)
    if isinstance(result, torch.Tensor) and not name.startswith("__"):
        return result if args and result is args[0] else wide(result)
    return result


def _double_type(given: Any) -> Any:
    if isinstance(given, str):
        for low in ("FloatTensor", "HalfTensor", "BFloat16Tensor"):
            given = given.replace("." + low, ".DoubleTensor")
    return given


def _in_float64() -> None:
    record.condition("double")
    torch.set_default_dtype(torch.float64)
    set_dtype = torch.set_default_dtype
    torch.set_default_dtype = lambda d: set_dtype(torch.float64 if d in _LOW else d)  # type: ignore[assignment]
    torch.set_default_tensor_type = lambda t: None  # type: ignore[assignment]
    for low in ("FloatTensor", "HalfTensor", "BFloat16Tensor"):
        setattr(torch, low, torch.DoubleTensor)
        setattr(torch.cuda, low, torch.cuda.DoubleTensor)
    from_numpy: Any = torch.from_numpy
    torch.from_numpy = lambda array: wide(from_numpy(array))
    for name in ("half", "bfloat16", "float"):
        setattr(torch.nn.Module, name, lambda self: self.double())
    stage.around(_in_double)


def _another_clock() -> None:
    """A clock that runs faster, and goes on whenever it is looked at: what is said of time is never said twice."""
    reads = itertools.count(1)

    def faster(clock: Call, unit: int) -> Call:
        begun = clock()
        return lambda: begun + 7 * (clock() - begun) + next(reads) * unit

    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
        setattr(time, name, faster(getattr(time, name), 1))
        setattr(time, f"{name}_ns", faster(getattr(time, f"{name}_ns"), 10**9))


def install() -> None:
    """Take the differences out."""
    _no_dropout()
    _no_batch_statistics()
    _one_scale()
    if record.CLOCK:
        _another_clock()
    if record.DOUBLE:
        _in_float64()
