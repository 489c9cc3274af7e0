"""What trains: backward passes, optimizer steps, the process group, and where the rehearsal ends."""

from __future__ import annotations

import functools
import itertools
import math
import os
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ddpify_rehearsal import devices, draws, record, stage
from ddpify_rehearsal.stage import Call

_CHUNK = 1 << 14
_WHOLE = 60  # steps that are recorded parameter by parameter
_probe: torch.Tensor | None = None
_optimizers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count()
_modules: list[weakref.ref[torch.nn.Module]] = []
_known: set[int] = set()
_steps = 0
_over = False
_asked: dict[int, int] = {}  # loader: steps when its last batch was handed out
_trains: set[tuple[int, int]] = set()


# --- parameters as numbers ------------------------------------------------------------------------------------------------
def digest(tensor: torch.Tensor) -> list[float]:
    """Four random projections of a tensor and its norm: what is compared in its place."""
    global _probe
    with torch.no_grad(), torch._C.DisableTorchFunction():
        if _probe is None:
            generator = torch.Generator().manual_seed(7)
            _probe = torch.randn(_CHUNK, 4, generator=generator, dtype=torch.float64)
        tensor = tensor.detach()
        flat = (tensor if tensor.layout is torch.strided else tensor.to_dense()).reshape(-1).to("cpu", torch.float64)
        if flat.numel() <= _CHUNK:
            projected = flat @ _probe[: flat.numel()]
        else:
            rows = torch.nn.functional.pad(flat, (0, -flat.numel() % _CHUNK)).view(-1, _CHUNK)
            turn = torch.randn(len(rows), 4, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
            projected = ((rows @ _probe) * turn).sum(0)
        return [*projected.tolist(), float(flat.norm())]


def _parameters(optimizer: Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _names(optimizer: Optimizer) -> list[str]:
    """The names of an optimizer's parameters, by the modules that were asked for theirs."""
    names: dict[int, str] = {}
    for reference in _modules:
        module = reference()
        if module is not None:
            for name, parameter in module.named_parameters():
                name = name.replace("_orig_mod.", "").removeprefix("module.")
                if len(name) > len(names.get(id(parameter), "")):
                    names[id(parameter)] = name
    return [names.get(id(p), f"parameter {i}") for i, p in enumerate(_parameters(optimizer))]


def _remember_modules() -> None:
    named = torch.nn.Module.named_parameters

    @functools.wraps(named)
    def remembering(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if id(self) not in _known:
            _known.add(id(self))
            _modules.append(weakref.ref(self))
        return named(self, *args, **kwargs)

    torch.nn.Module.named_parameters = remembering  # type: ignore[method-assign]


# --- steps ----------------------------------------------------------------------------------------------------------------
def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    if optimizer not in _optimizers:
        _optimizers[optimizer] = number = next(_numbers)
        parameters = list(_parameters(optimizer))
        if not devices.PLAYED:
            for index in {p.device.index for p in parameters if p.is_cuda}:
                record.emit("device", index=index)
        record.emit(
            "optimizer",
            optimizer=number,
            type=type(optimizer).__name__,
            names=_names(optimizer),
            shapes=[list(p.shape) for p in parameters],
            parameters=[digest(p) for p in parameters],
            seed=torch.initial_seed(),
        )
    if _steps < _WHOLE:
        grads = [None if p.grad is None else digest(p.grad) for p in _parameters(optimizer)]
        record.emit("gradients", optimizer=_optimizers[optimizer], gradients=grads)


def _after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    global _steps
    _steps += 1
    parameters = [digest(p) for p in _parameters(optimizer)]
    if _steps > _WHOLE:  # the whole as one
        total = [math.fsum(p[i] for p in parameters) for i in range(4)]
        parameters = [[*total, math.sqrt(math.fsum(p[4] ** 2 for p in parameters))]]
    rates = [float(group.get("lr", 0.0)) for group in optimizer.param_groups]
    record.emit("step", optimizer=_optimizers[optimizer], parameters=parameters, rates=rates)
    draws.stepped()
    if record.STEPS and _steps >= record.STEPS:
        _end()


def _end() -> None:
    """End the script: as many steps as were asked for are done."""
    global _over
    if _over:  # something caught the first attempt
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(0)
    _over = True
    record.close()
    raise SystemExit(0)


def asked_for_batch(loader: int, number: int) -> None:
    """A loader is asked for its next batch: did the script train on the last one?"""
    if _asked.get(loader, _steps) < _steps and (loader, number) not in _trains:
        _trains.add((loader, number))
        record.emit("trains", loader=loader, number=number)


def began_pass(loader: int) -> None:
    """A loader starts anew: steps since its last pass were not on its batches."""
    _asked.pop(loader, None)


def got_batch(loader: int) -> None:
    """A loader has handed out a batch."""
    _asked[loader] = _steps


def _watch_plateaus() -> None:
    plateau: Any = torch.optim.lr_scheduler.ReduceLROnPlateau
    step = plateau.step

    @functools.wraps(step)
    def telling(self: Any, metrics: Any, *args: Any, **kwargs: Any) -> None:
        record.emit("plateau", value=float(metrics))
        step(self, metrics, *args, **kwargs)

    plateau.step = telling


# --- losses ---------------------------------------------------------------------------------------------------------------
def _loss(call: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name != "backward" or not args or not isinstance(args[0], torch.Tensor):
        return call(*args, **kwargs)
    draws.trains()
    loss, rest = args[0], dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), args[1:], strict=False)) | kwargs
    if loss.numel() == 1:
        record.emit("loss", value=float(loss.detach().double()) / loss.__dict__.get("_rehearsed_scale", 1.0), before_step=_steps)
    with stage.again():
        return torch.autograd.backward(
            (loss,), rest.get("gradient"), rest.get("retain_graph"), rest.get("create_graph", False), inputs=rest.get("inputs")
        )


# --- the process group ----------------------------------------------------------------------------------------------------
def _watch_group() -> None:
    begin, end = dist.init_process_group, dist.destroy_process_group

    @functools.wraps(begin)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        result = begin(*args, **kwargs)
        record.emit("joined")
        _kept.append(dist.group.WORLD)
        return result

    @functools.wraps(end)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        record.emit("left")
        return end(*args, **kwargs)

    dist.init_process_group, dist.destroy_process_group = init_process_group, destroy_process_group


_kept: list[Any] = []  # freeing a gloo group while the interpreter ends can wait for ever (pytorch#190489)


def install() -> None:
    """Watch the training."""
    _remember_modules()
    register_optimizer_step_pre_hook(_before_step)
    register_optimizer_step_post_hook(_after_step)
    _watch_group()
    _watch_plateaus()
    stage.around(_loss)
