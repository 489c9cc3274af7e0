"""CUDA that is absent, played by the CPU: each tensor is marked with the device it would be on, and mixing devices is an error."""

from __future__ import annotations

import functools
import sys
import time
import types
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ddpify_rehearsal import record, stage
from ddpify_rehearsal.stage import Call, mapped, tensors

PLAYED = not torch.cuda.is_available()

_current = 0
_used: set[tuple[int, int]] = set()
_hidden = 0  # while DDP is made it sees where tensors really are

# calls whose arguments may be on several devices
_MIXING = frozenset(
    """
        copy_ to cpu cuda type type_as __getitem__ __setitem__ index index_put_ set_ clone __deepcopy__ backward autograd_grad equal
        broadcast_tensors isin new_tensor tensor as_tensor __set__:data __set__:grad load_state_dict __reduce_ex__ __repr__ __format__
    """.split()
)


# --- marks ----------------------------------------------------------------------------------------------------------------
def mark_of(tensor: torch.Tensor) -> str | None:
    """The device that a tensor would be on, `cpu` or `cuda:0`; None where it is not known."""
    mark = tensor.__dict__.get("_rehearsed_on")
    return "cpu" if mark is None and isinstance(tensor, torch.nn.Parameter) else mark


def mark(tensor: torch.Tensor, device: str | None) -> torch.Tensor:
    """Note where a tensor would be."""
    if device is not None:
        tensor.__dict__["_rehearsed_on"] = device
    return tensor


def put(value: Any, device: str) -> Any:
    """A batch or a checkpoint as it would be on a device: its tensors marked."""
    if not PLAYED:
        return value
    for tensor in tensors(value):
        mark(tensor, device)
    return value


def _moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """A tensor on a device: the tensor itself where it is there already, else a copy."""
    return tensor if mark_of(tensor) == device else mark(tensor.clone(), device)


def index_of(device: Any) -> int:
    """The index that a device's name, number or object means."""
    if device is None:
        return _current
    if isinstance(device, torch.device):
        return _current if device.index is None else device.index
    if isinstance(device, int):
        return _current if device < 0 else device
    text = str(device)
    return int(text.split(":")[1]) if ":" in text else _current


def _cuda(device: Any) -> str | None:
    """The mark of a CUDA device, which is thereby used; None for anything else."""
    if isinstance(device, torch.device):
        found = device.type == "cuda"
    elif isinstance(device, str):
        found = device.startswith("cuda")
    else:
        found = isinstance(device, int) and not isinstance(device, bool)
    return _use(index_of(device)) if found else None


def _use(index: int) -> str:
    if index >= record.RANKS:
        raise RuntimeError("CUDA error: invalid device ordinal")
    who = record.rank()
    if (index, who) not in _used:
        _used.add((index, who))
        record.condition("cuda")
        record.emit("device", index=index)
    return f"cuda:{index}"


# --- calls ----------------------------------------------------------------------------------------------------------------
def _call(call: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of torch on marked tensors."""
    if _hidden:
        return call(*args, **kwargs)
    if name.startswith("__get__:"):
        return _read(call, name[8:], args)
    if name == "_parse_to":
        return call(*map(_as_device, args), **{k: _as_device(v) if k == "device" else v for k, v in kwargs.items()})
    if name in ("to", "cuda", "cpu", "type"):
        return _placed(call, name, args, kwargs)
    if name in ("numpy", "__array__") and (where := mark_of(args[0])) is not None and where != "cpu":
        raise TypeError(f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    if name == "pin_memory":
        return args[0]
    if name == "record_stream":
        return None
    if name == "get_device":
        where = mark_of(args[0])
        return int(where.split(":")[1]) if where and where != "cpu" else -1
    target = None
    if "device" in kwargs:
        device = kwargs["device"]
        target = _cuda(device)
        if target is not None:
            kwargs = {**kwargs, "device": None}
        elif device is not None and str(device) == "cpu":
            target = "cpu"
    given = [t for t in tensors((args, kwargs), 3) if isinstance(t, torch.Tensor)]
    if name in ("gru", "lstm", "rnn_tanh", "rnn_relu"):
        given = [t for t in given if t.dtype != torch.int64]  # the lengths of a packed sequence stay on the CPU
    marks = {m for t in given if (m := mark_of(t)) is not None and (t.dim() or m != "cpu")}
    if len(marks) > 1 and name not in _MIXING and not name.startswith("_"):
        first, second = sorted(marks, reverse=True)[:2]
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!")
    result = call(*args, **kwargs)
    if name in ("__set__:data", "__set__:grad"):
        if name.endswith("data") and isinstance(args[1], torch.Tensor):
            mark(args[0], mark_of(args[1]))
        return result
    if target is None:
        if name in ("copy_", "__setitem__", "__getitem__", "index_put_", "set_", "type_as") and given:
            target = mark_of(args[1] if name in ("type_as", "set_") and len(given) > 1 else given[0])
        elif marks:
            target = max(marks)
        elif not given or all(mark_of(t) == "cpu" for t in given):
            target = "cpu"
    for tensor in tensors(result, 3):
        mark(tensor, target)
    if name in ("_pack_padded_sequence", "_pad_packed_sequence"):
        mark(result[1], "cpu")  # the lengths
    return result


def _as_device(value: Any) -> Any:
    where = None if isinstance(value, torch.Tensor) else _cuda(value)
    return value if where is None else torch.device(where)


def _read(call: Call, name: str, args: tuple[Any, ...]) -> Any:
    tensor = args[0]
    if name == "device":
        where = mark_of(tensor)
        return call(*args) if where in (None, "cpu") else torch.device(str(where))
    if name == "is_cuda":
        return (mark_of(tensor) or "cpu") != "cpu"
    if name == "is_cpu":
        return (mark_of(tensor) or "cpu") == "cpu"
    result = call(*args)
    if isinstance(result, torch.Tensor):
        mark(result, mark_of(tensor))
    return result


def _placed(call: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`to`, `cuda`, `cpu` and `type` of a tensor: what they change but the device, then the device."""
    tensor, rest, target = args[0], list(args[1:]), None
    if name == "cuda":
        target = _use(index_of(rest[0] if rest else kwargs.get("device")))
        return _moved(tensor, target)
    if name == "cpu":
        return _moved(tensor, "cpu")
    if name == "type":
        if not rest and not kwargs:
            return str(call(tensor)).replace("torch.", "torch.cuda." if (mark_of(tensor) or "cpu") != "cpu" else "torch.")
        if rest and isinstance(rest[0], str) and "cuda." in rest[0]:
            target, rest[0] = _use(_current), rest[0].replace("torch.cuda.", "torch.")
        elif rest and isinstance(rest[0], _Kind):
            target, rest[0] = _use(_current), f"torch.{rest[0].__name__}"
        result = call(tensor, *rest, **kwargs)
    else:
        given = [kwargs.get("device"), kwargs.get("other"), *rest[:1]]
        for value in given:
            if isinstance(value, torch.Tensor):
                target = mark_of(value)
                kwargs = {**kwargs, "dtype": value.dtype}
            elif isinstance(value, (str, torch.device)) or (isinstance(value, int) and not isinstance(value, bool)):
                target = _cuda(value) or ("cpu" if str(value) == "cpu" else None)
        dtypes = [value for value in (*rest, kwargs.get("dtype")) if isinstance(value, torch.dtype)]
        others = {k: v for k, v in kwargs.items() if k in ("memory_format", "copy")}
        if target is None and str(given[0] or given[-1]).startswith("meta"):
            return call(*args, **kwargs)
        result = call(tensor, dtype=dtypes[0], **others) if dtypes else call(tensor, **others) if others else tensor
    if target is None:
        return mark(result, mark_of(tensor))
    return _moved(tensor, target) if result is tensor else mark(result, target)


# --- torch.cuda -----------------------------------------------------------------------------------------------------------
class _Device:
    """`with torch.cuda.device(i):`."""

    def __init__(self, device: Any) -> None:
        self._index, self._before = index_of(device), 0

    def __enter__(self) -> None:
        global _current
        self._before, _current = _current, self._index

    def __exit__(self, *_: object) -> None:
        global _current
        _current = self._before


class _Stream:
    """A stream or an event: there is nothing to wait for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = torch.device("cuda", _current)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return (lambda *a, **k: time.time() * 1000) if name == "elapsed_time" else (lambda *a, **k: None)


def _set_device(device: Any) -> None:
    global _current
    _current = index_of(device)
    if _current >= record.RANKS:
        raise RuntimeError("CUDA error: invalid device ordinal")


def _play_cuda() -> None:
    cuda: Any = torch.cuda
    cuda.is_available = cuda.is_initialized = lambda: True
    cuda.device_count = lambda: record.RANKS
    cuda.current_device = lambda: _current
    cuda.set_device = _set_device
    cuda.get_device_name = lambda *a: "rehearsal"
    cuda.get_device_capability = lambda *a: (9, 0)
    cuda.is_bf16_supported = lambda *a, **k: True
    cuda.mem_get_info = lambda *a: (1 << 34, 1 << 34)
    cuda.get_device_properties = lambda *a: types.SimpleNamespace(
        name="rehearsal", total_memory=1 << 34, major=9, minor=0, multi_processor_count=1
    )
    cuda.get_rng_state = lambda *a: torch.get_rng_state()
    cuda.get_rng_state_all = lambda: [torch.get_rng_state()] * record.RANKS
    nothing = "synchronize empty_cache manual_seed manual_seed_all seed seed_all reset_peak_memory_stats init _lazy_init ipc_collect"
    nothing += " memory_summary reset_max_memory_allocated set_rng_state set_rng_state_all reset_max_memory_cached"
    for name in nothing.split():
        setattr(cuda, name, lambda *a, **k: None)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached"):
        setattr(cuda, name, lambda *a, **k: 0)
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Char", "Bool"):
        setattr(cuda, f"{name}Tensor", _Kind(f"{name}Tensor", (), {}))
    cuda.device, cuda.Stream, cuda.Event, cuda.stream = _Device, _Stream, _Stream, _Stream
    cuda.current_stream = cuda.default_stream = lambda *a: _Stream()
    set_type, set_device = torch.set_default_tensor_type, torch.set_default_device
    torch.set_default_tensor_type = lambda t: set_type(t.replace("torch.cuda.", "torch.") if isinstance(t, str) else t)  # type: ignore[assignment]
    torch.set_default_device = lambda d: None if _cuda(d) else set_device(d)  # type: ignore[assignment]
    if hasattr(torch, "accelerator"):
        accelerator: Any = torch.accelerator
        accelerator.is_available = lambda: True
        accelerator.current_accelerator = lambda *a, **k: torch.device("cuda")
        accelerator.device_count = lambda: record.RANKS
        accelerator.set_device_index = accelerator.set_device_idx = _set_device
        accelerator.current_device_index = accelerator.current_device_idx = lambda: _current
        accelerator.synchronize = lambda *a: None
    for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
        if hasattr(torch.optim.Optimizer, name):
            setattr(torch.optim.Optimizer, name, lambda self: None)


class _Kind(type):
    """A type of torch.cuda, such as FloatTensor: it makes tensors of torch's type of that name, on the current device."""

    def __call__(cls, *args: Any) -> Any:
        return mark(getattr(torch, cls.__name__)(*args), _use(_current))

    def __instancecheck__(cls, value: Any) -> bool:
        of_kind = isinstance(value, torch.Tensor) and value.dtype == getattr(torch, cls.__name__).dtype
        return of_kind and (mark_of(value) or "cpu") != "cpu"


# --- parameters, wrappers, process groups, files --------------------------------------------------------------------------
def _keep_marks() -> None:
    make = torch.nn.Parameter.__new__

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = make(cls, data, requires_grad)
        return mark(made, mark_of(data) if isinstance(data, torch.Tensor) else None)

    torch.nn.Parameter.__new__ = parameter  # type: ignore[assignment]
    state_of: Any = torch._utils._get_obj_state

    def state(obj: Any) -> Any:
        found = state_of(obj)
        if isinstance(found, dict) and "_rehearsed_on" in found:
            found = {k: v for k, v in found.items() if k != "_rehearsed_on"} or None
        return found

    torch._utils._get_obj_state = state


class _DataParallel(torch.nn.Module):
    """DataParallel with one replica, which gets the whole batch."""

    def __init__(self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        ids = list(range(record.RANKS)) if device_ids is None else [index_of(d) for d in device_ids]
        self.module, self.device_ids, self.dim = module, ids, dim
        self.output_device = ids[0] if output_device is None else output_device
        self.src_device_obj = torch.device("cuda", ids[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's outputs for inputs that are moved to its device."""
        target = _use(self.device_ids[0])
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            if mark_of(tensor) not in (target, None):
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {target} but found one on device: {mark_of(tensor)}"
                )
        return self.module(*_sent(inputs, target), **_sent(kwargs, target))


def _sent(value: Any, target: str) -> Any:
    """What a wrapper hands on: it moves tensors in lists, tuples and dicts, and none that another object holds."""
    return mapped(value, lambda t: _moved(t, target), copies=True)


def _play_parallel() -> None:
    _DataParallel.__name__ = _DataParallel.__qualname__ = "DataParallel"
    _DataParallel.__module__ = "torch.nn.parallel.data_parallel"  # a model saved whole names its class
    for module in (torch.nn, torch.nn.parallel, sys.modules["torch.nn.parallel.data_parallel"]):
        module.DataParallel = _DataParallel  # type: ignore[attr-defined]
    make, forward = DistributedDataParallel.__init__, DistributedDataParallel.forward

    @functools.wraps(make)
    def wrap(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any) -> None:
        global _hidden
        places = {mark_of(p) or "cpu" for p in module.parameters()}
        ids = list(device_ids or [])
        record.emit("ddp", device_ids=[str(i) for i in ids], current=_current, places=sorted(places))
        if ids and places == {"cpu"}:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules "
                "or CPU modules, but got device_ids "
                + f"{ids}, output_device {output_device}, and module parameters {{device(type='cpu')}}."
            )
        if places == {"cpu"} and any(isinstance(m, torch.nn.SyncBatchNorm) for m in module.modules()):
            raise ValueError("SyncBatchNorm layers only work with GPU modules")
        if len(ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        _hidden += 1
        try:
            make(self, module, None, None, *args, **kwargs)
        finally:
            _hidden -= 1
        self._rehearsed_on = _use(index_of(ids[0])) if ids else None

    @functools.wraps(forward)
    def run(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        if self._rehearsed_on is not None:
            inputs, kwargs = _sent(inputs, self._rehearsed_on), _sent(kwargs, self._rehearsed_on)
        return forward(self, *inputs, **kwargs)

    DistributedDataParallel.__init__, DistributedDataParallel.forward = wrap, run  # type: ignore[method-assign, assignment]
    DistributedDataParallel._passing_sync_batchnorm_handle = lambda self, module: None  # type: ignore[method-assign]


_nccl_alone = False


def _play_groups() -> None:
    """gloo in the place of nccl, which takes no tensors of the CPU."""
    begin, new, barrier = dist.init_process_group, dist.new_group, dist.barrier

    @functools.wraps(begin)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> None:
        global _nccl_alone
        _nccl_alone = backend == "nccl"
        kwargs.pop("device_id", None)
        begin("gloo", *args, **kwargs)

    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, **kwargs: Any) -> Any:
        return new(ranks, timeout, "gloo" if backend else None, **{k: v for k, v in kwargs.items() if k != "device_id"})

    dist.init_process_group, dist.new_group = init_process_group, new_group
    dist.barrier = lambda group=None, async_op=False, device_ids=None: barrier(group, async_op)  # type: ignore[assignment]
    dist.is_nccl_available = lambda: True
    for name in ("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_gather_into_tensor"):
        setattr(dist, name, _collective(getattr(dist, name)))


def _collective(function: Call) -> Call:
    @functools.wraps(function)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if _nccl_alone and any(mark_of(t) == "cpu" for t in tensors((args, kwargs), 3)):
            raise RuntimeError("No backend type associated with device type cpu")
        return function(*args, **kwargs)

    return collective


def install() -> None:
    """Play CUDA where there is none."""
    if not PLAYED:
        return
    _keep_marks()
    _play_cuda()
    _play_parallel()
    _play_groups()
    stage.around(_call)
