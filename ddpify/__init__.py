"""Convert PyTorch training scripts to DistributedDataParallel.

>>> from pathlib import Path
>>> import ddpify
>>> done = ddpify.convert(Path("train.py"))
>>> print(done.diff())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["Conversion", "DdpifyError", "Options", "convert"]

if TYPE_CHECKING:
    from ddpify.conversion import Conversion, convert
    from ddpify.errors import DdpifyError
    from ddpify.options import Options

_HOME = {"Conversion": "conversion", "convert": "conversion", "DdpifyError": "errors", "Options": "options"}


def __getattr__(name: str) -> object:
    """The public names, imported when first used: `ddpify --help` needs none of them."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
