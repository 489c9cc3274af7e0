"""Every call of torch passes here, in every thread: the parts of the rehearsal take hold of those that concern them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Call = Callable[..., Any]
Around = Callable[[Call, str, tuple[Any, ...], dict[str, Any]], Any]

# what no part looks at, and what is called most
_PLAIN = frozenset(
    """
        _set_grad_enabled size dim numel stride is_floating_point is_complex __len__ _record_function_enter_new item __bool__
        _has_compatible_shallow_copy_type _record_function_exit._RecordFunction storage_offset is_contiguous __hash__ data_ptr
        element_size register_hook tolist requires_grad_
    """.split()
)
_PLAIN_READS = frozenset(("shape", "grad_fn", "requires_grad", "is_leaf", "ndim", "dtype", "is_sparse", "is_nested", "layout", "_version"))
_around: list[Around] = []


class Stage(TorchFunctionMode):
    """Calls torch's functions through what has been added by `around`, the last added first."""

    def __torch_function__(self, func: Call, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Hand the call on."""
        name = getattr(func, "__name__", "")
        if name in _PLAIN:
            return func(*args, **(kwargs or {}))
        if name in ("__get__", "__set__"):
            name = f"{name}:{getattr(getattr(func, '__self__', None), '__name__', '')}"
            if name[8:] in _PLAIN_READS:
                return func(*args, **(kwargs or {}))
        return _through(len(_around) - 1, func, name, args, kwargs or {})


def _through(level: int, func: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if level < 0:
        return func(*args, **kwargs)
    return _around[level](lambda *a, **k: _through(level - 1, func, name, a, k), name, args, kwargs)


def around(part: Around) -> None:
    """Add a part: `part(call, name, args, kwargs)` returns the call's result, by way of `call(*args, **kwargs)` or not.

    Attributes are read and set as the functions `__get__:name` and `__set__:name`.
    """
    _around.append(part)


def again() -> Stage:
    """The stage once more, for code of the script's that runs inside a call, such as the hooks of a backward."""
    return Stage()


def tensors(value: Any, depth: int = 6) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth and isinstance(value, dict):
        value = list(value.values())
    if depth and isinstance(value, (list, tuple)):
        return [t for part in value for t in tensors(part, depth - 1)]
    return []


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = 12, copies: bool = False) -> Any:
    """Nested lists, tuples and dicts with each tensor changed; other objects are changed in place where they hold tensors.

    With `copies`, nothing is changed in place: dicts are new ones, and other objects stay as they are.
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if not depth:
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(part, change, depth - 1, copies) for part in value))
    if type(value) in (list, tuple):
        return type(value)(mapped(part, change, depth - 1, copies) for part in value)
    if isinstance(value, dict):
        found = copy.copy(value) if copies else value
        for key in list(found):
            found[key] = mapped(found[key], change, depth - 1, copies)
        return found
    if hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)) and not callable(value) and not copies:
        for key, part in list(vars(value).items()):
            if isinstance(part, (torch.Tensor, list, tuple, dict)):
                vars(value)[key] = mapped(part, change, depth - 1)
    return value


def install() -> None:
    """Enter the stage here and in every thread that starts."""
    Stage().__enter__()
    bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def on_stage(thread: threading.Thread) -> None:
        with Stage():
            bootstrap(thread)

    threading.Thread._bootstrap_inner = on_stage  # type: ignore[attr-defined]
