"""Whether any code that was read computes gradients with torch and uses them."""

from __future__ import annotations

from ddpify.facts import library
from ddpify.rules.refuse.reach import Reach, Use

_BACKWARD = ("backward", "manual_backward")
_GRADIENTS = (
    *("torch.autograd.grad", "torch.autograd.backward", "torch.func.grad", "torch.func.grad_and_value", "torch.func.vjp"),
    *("timm.utils.NativeScaler", "timm.utils.cuda.NativeScaler", "timm.utils.ApexScaler"),  # they are called with a loss and an optimizer
)


def trains(reached: Reach) -> Use | None:
    """The call that shows it: a `.backward()`, a gradient taken by hand, or an optimizer's step."""
    return gradients(reached) if reached.imports("torch") else None


def gradients(reached: Reach) -> Use | None:
    """The same, where the imports need not be in view."""
    for use in reached.uses:
        if _is_backward(use) or any(name in _GRADIENTS for name in use.names):
            return use
    if any(library.optimizer_path(name) for use in reached.uses for name in use.names):
        return next(reached.methods("step"), None)
    return None


def _is_backward(use: Use) -> bool:
    return use.method in _BACKWARD and "." in use.shown and not use.shown.startswith(("ctx.", "super."))
