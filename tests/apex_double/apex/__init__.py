"""What NVIDIA's apex demanded of scripts while it had amp and parallel, on the CPU: the rules, not the speed."""

from . import amp, normalization, optimizers, parallel

__all__ = ["amp", "normalization", "optimizers", "parallel"]
