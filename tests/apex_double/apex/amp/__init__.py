"""The contract of apex.amp: called in its order, with its words; losses are really scaled."""

import contextlib
import types

import torch

from .. import parallel
from . import utils

_LEVELS = {  # level: (patches torch, casts the model, master weights, loss scale)
    "O0": (False, False, False, 1.0),
    "O1": (True, False, None, "dynamic"),
    "O2": (False, True, True, "dynamic"),
    "O3": (False, True, False, 1.0),
}
_amp_state = types.SimpleNamespace()  # its handle is there at level O1 alone
_state = types.SimpleNamespace(done=False, enabled=True, scalers=[], optimizers=[], patches=False, masters=False)


class _Scaler:
    def __init__(self, scale):
        self.dynamic = scale == "dynamic"
        self.scale = 2.0**16 if self.dynamic else float(scale)
        self.unskipped = 0

    def update(self, overflow):
        if self.dynamic and overflow:
            self.scale, self.unskipped = self.scale / 2, 0
        elif self.dynamic:
            self.unskipped += 1
            if self.unskipped == 2000:
                self.scale, self.unskipped = min(self.scale * 2, 2.0**24), 0
        return self.dynamic and overflow


class _Stash:
    """What amp keeps of an optimizer: `pairs` are (the model's parameter, the one that is moved)."""

    def __init__(self):
        self.pairs = None
        self.kept = []
        self.scaled = False  # delay_unscale: gradients that no step may use yet
        self.foreign = False  # gradients of a backward call that this optimizer was not named for
        self.skips = False


def initialize(
    models,
    optimizers=None,
    enabled=True,
    opt_level="O1",
    cast_model_type=None,
    patch_torch_functions=None,
    keep_batchnorm_fp32=None,
    master_weights=None,
    loss_scale=None,
    cast_model_outputs=None,
    num_losses=1,
    verbosity=1,
    min_loss_scale=None,
    max_loss_scale=2.0**24,
):
    if _state.done:
        raise RuntimeError("amp.initialize should only be called once")
    _state.done, _state.enabled = True, enabled
    if not enabled:
        return models if optimizers is None else (models, optimizers)
    if opt_level not in _LEVELS:
        raise RuntimeError(f"Unexpected optimization level {opt_level}. Options are 'O0', 'O1', 'O2', 'O3'.")
    _state.patches, casts, masters, scale = _LEVELS[opt_level]
    if _state.patches and (keep_batchnorm_fp32 is not None or master_weights is not None):
        raise RuntimeError("With opt_level O1, keep_batchnorm_fp32 and master_weights should not be given")
    _state.masters = bool(masters if master_weights is None else master_weights)
    if not (isinstance(optimizers, (torch.optim.Optimizer, list)) or optimizers is None):
        raise TypeError("optimizers must be either a single optimizer or a list of optimizers.")
    if not isinstance(models, (torch.nn.Module, list)) or isinstance(models, (torch.nn.ModuleList, torch.nn.ModuleDict)):
        raise TypeError("models must be either a single model or a list of models.")
    for model in models if isinstance(models, list) else [models]:
        if isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel, parallel.DistributedDataParallel)):
            raise RuntimeError("Parallel wrappers should only be applied to the model(s) AFTER the model(s) have been returned")
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if tensor.dtype in (torch.float16, torch.bfloat16):
                raise RuntimeError(f"Found {name} with type {tensor.type()}: you do not need to call .half() on your model")
        if casts:
            model.forward = _cast(model.forward)
    _state.optimizers = [] if optimizers is None else list(optimizers) if isinstance(optimizers, list) else [optimizers]
    if not all(isinstance(o, torch.optim.Optimizer) for o in _state.optimizers):
        raise TypeError("optimizers must be either a single optimizer or a list of optimizers.")
    _state.scalers = [_Scaler(scale if loss_scale is None else loss_scale) for _ in range(num_losses)]
    for optimizer in _state.optimizers:
        _process(optimizer)
    if _state.patches:
        utils.patch()
        _amp_state.handle = types.SimpleNamespace(_clear_cache=utils.cache.clear)
    return models if optimizers is None else (models, optimizers)


def _cast(forward):
    def cast(*args, **kwargs):
        return forward(*args, **kwargs)

    return cast


def _process(optimizer):
    optimizer._amp_stash = _Stash()
    step, zero_grad = optimizer.step, optimizer.zero_grad

    def new_step(self, closure=None):
        stash = self._amp_stash
        if closure is not None:
            raise RuntimeError("Currently, Amp does not support closure use with optimizers.")
        if stash.scaled or stash.foreign:
            raise RuntimeError("a step along gradients that are still scaled")
        if stash.skips:
            stash.skips = False
            return None
        value = step()
        with torch.no_grad():
            for param, master in stash.pairs or ():
                if master is not param:
                    param.copy_(master)
                    master.grad = None
        return value

    def new_zero_grad(self):
        for param, master in _pairs(self):
            param.grad = master.grad = None
        self._amp_stash.foreign = False

    optimizer.step = types.MethodType(new_step, optimizer)
    if _state.masters:
        optimizer.zero_grad = types.MethodType(new_zero_grad, optimizer)
    else:

        def old_zero_grad(self, *args, **kwargs):
            self._amp_stash.foreign = False
            return zero_grad(*args, **kwargs)

        optimizer.zero_grad = types.MethodType(old_zero_grad, optimizer)


def _pairs(optimizer):
    """The parameters of an optimizer; the first time, at O2, it is given copies to move."""
    stash = optimizer._amp_stash
    if stash.pairs is None:
        stash.pairs = []
        for group in optimizer.param_groups:
            for i, param in enumerate(group["params"]):
                master = param
                if _state.masters and param.requires_grad:
                    master = group["params"][i] = param.detach().clone().requires_grad_()
                    if param in optimizer.state:
                        optimizer.state[master] = optimizer.state.pop(param)
                stash.pairs.append((param, master))
    return stash.pairs


@contextlib.contextmanager
def scale_loss(loss, optimizers, loss_id=0, model=None, delay_unscale=False, delay_overflow_check=False):
    if not _state.done:
        raise RuntimeError(
            "model, optimizer = amp.initialize(model, optimizer, opt_level=...) must be called before `with amp.scale_loss`."
        )
    if not _state.enabled:
        yield loss
        return
    optimizers = [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else optimizers
    if not isinstance(optimizers, list) or any(o not in _state.optimizers for o in optimizers):
        raise RuntimeError("optimizers must be an optimizer or a list of optimizers returned from amp.initialize")
    if not 0 <= loss_id < len(_state.scalers):
        raise IndexError(f"loss_id {loss_id} of {len(_state.scalers)} losses")
    scaler = _state.scalers[loss_id]
    if not _state.masters and not scaler.dynamic and scaler.scale == 1.0:
        yield loss
        utils.cache.clear()
        return
    others = [o for o in _state.optimizers if o not in optimizers]
    for optimizer in optimizers:
        stash = optimizer._amp_stash
        if stash.foreign and any(p.grad is not None and bool(p.grad.any()) for p, _ in _pairs(optimizer)):
            raise RuntimeError("gradients of a backward call that this optimizer was not named for are still there")
        stash.foreign = False
        if not stash.scaled:
            stash.kept = [m.grad for _, m in _pairs(optimizer)]
            for param, _ in _pairs(optimizer):
                param.grad = None
    before = {o: [None if p.grad is None else p.grad.clone() for p, _ in _pairs(o)] for o in others}
    yield loss * scaler.scale
    for other in others:
        for (param, _), old in zip(_pairs(other), before[other], strict=True):
            if param.grad is not None and (old is None or not torch.equal(old, param.grad)):
                other._amp_stash.foreign = True
    utils.cache.clear()
    if delay_unscale:
        for optimizer in optimizers:
            optimizer._amp_stash.scaled = True
        return
    overflow = False
    for optimizer in optimizers:
        stash = optimizer._amp_stash
        for (param, master), kept in zip(_pairs(optimizer), stash.kept, strict=True):
            if param.grad is None:
                master.grad = kept
                continue
            overflow |= not bool(torch.isfinite(param.grad).all())
            fresh = param.grad / scaler.scale  # at O2, the model's own gradients stay scaled
            master.grad = fresh if kept is None else fresh + kept
        stash.scaled = False
    if scaler.update(overflow) and not delay_overflow_check:
        for optimizer in optimizers:
            optimizer._amp_stash.skips = True


def master_params(optimizer):
    for group in optimizer.param_groups:
        yield from group["params"]


@contextlib.contextmanager
def disable_casts():
    if not _state.patches:
        raise AttributeError("amp has no handle at this level")
    utils.active = False
    yield
    utils.active = True


def state_dict(destination=None):
    if not _state.scalers:
        raise AttributeError("amp has no loss_scalers: it was not initialized")
    return {f"loss_scaler{i}": {"loss_scale": s.scale, "unskipped": s.unskipped} for i, s in enumerate(_state.scalers)}


def load_state_dict(state_dict):
    if not _state.scalers:
        raise AttributeError("amp has no loss_scalers: it was not initialized")
    if odd := [key for key in state_dict if "loss_scaler" not in key]:
        raise RuntimeError(f"Error(s) in loading state_dict. Unexpected key(s) in state_dict: {odd}")
    for scaler, state in zip(_state.scalers, state_dict.values(), strict=False):
        scaler.scale, scaler.unskipped = state["loss_scale"], state["unskipped"]


def half_function(fn):
    return fn


float_function = promote_function = half_function


def register_half_function(module, name):
    if _state.done:
        raise RuntimeError("functions are registered before amp.initialize")


register_float_function = register_promote_function = register_half_function
