"""What level O1 does to torch's functions: parameters are cast once and kept until a backward call is done; here, to copies in float32.

As apex's own, once the line that its run instructions mend is mended.
"""

import atexit
import functools

import torch

_FUNCTIONS = {  # a choice of those that are computed in float16
    torch.nn.functional: ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear"),
    torch: ("conv1d", "conv2d", "conv3d", "addmm", "matmul", "mm", "mv"),
    torch.Tensor: ("addmm", "matmul", "mm", "mv", "__matmul__"),
}
cache = {}
active = True


def cached_cast(x):
    if x in cache:
        cached_x = cache[x]
        if x.requires_grad and cached_x.requires_grad and cached_x.grad_fn.next_functions[0][0].variable is not x:
            raise RuntimeError("x and cache[x] both require grad, but x is not cache[x]'s parent.  This is likely an error.")
        if not torch.is_grad_enabled() or x.requires_grad == cached_x.requires_grad:
            return cached_x
    cache[x] = x.clone()
    return cache[x]


def patch():
    for where, names in _FUNCTIONS.items():
        for name in names:
            atexit.register(setattr, where, name, getattr(where, name))  # a process of the tests runs several scripts
            setattr(where, name, _casting(getattr(where, name)))


def _casting(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if not active:
            return function(*args, **kwargs)
        return function(*map(_cast, args), **{name: _cast(value) for name, value in kwargs.items()})

    return call


def _cast(value):
    return cached_cast(value) if isinstance(value, torch.nn.Parameter) and value.is_floating_point() else value
