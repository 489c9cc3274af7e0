"""Which apex a script needs: said at the head of what is emitted, and with the command that runs it."""

from __future__ import annotations

from collections.abc import Sequence

from ddpify.rules.base import Change
from ddpify.rules.context import Context

_GONE = ("apex.amp", "apex.parallel", "apex.fp16_utils", "apex.RNN")
_REMOVED = "# Needs NVIDIA's apex at its tag 25.05 or older: later ones have no amp and no DistributedDataParallel.\n"
_COMMENTS = {
    "removed": _REMOVED,
    "O1": _REMOVED + "# With torch 1.10 or newer, its amp/utils.py has to say next_functions[0][0] where it says next_functions[1][0].\n",
    "fused": "# Needs NVIDIA's apex with its CUDA extensions.\n",
}
_OTHER = "# The package `apex` of the Python package index is another project.\n"
_CLONE = "git clone --branch 25.05 https://github.com/NVIDIA/apex\n"
_MEND = "sed -i 's/next_functions\\[1\\]\\[0\\]/next_functions[0][0]/' apex/apex/amp/utils.py"
_BUILD = (
    "pip install -v --no-build-isolation "
    '--config-settings "--build-option=--cpp_ext" --config-settings "--build-option=--cuda_ext" ./apex\n'
)
_INSTALL = {
    "removed": _CLONE + _BUILD,
    "O1": f"{_CLONE}{_MEND}  # with torch 1.10 or newer, a module that runs twice in a step raises IndexError\n{_BUILD}",
    "fused": "git clone https://github.com/NVIDIA/apex\nAPEX_CPP_EXT=1 APEX_CUDA_EXT=1 pip install -v --no-build-isolation ./apex\n",
}


def comment(context: Context, changes: Sequence[Change]) -> str:
    """What the runtime block says of the apex that changes import."""
    kind = _kind(context, {_module(text) for change in changes for text in change.imports})
    return _COMMENTS[kind] + _OTHER if kind else ""


def install(context: Context, changes: Sequence[Change]) -> str:
    """The commands that install the apex which the result needs, and a GPU with it; empty where it needs none."""
    used = {p for call in context.facts.after.trace.calls for p in call.func.paths()}
    kind = _kind(context, {_module(text) for change in changes for text in change.imports} | used)
    return "# NVIDIA's apex, on a machine with GPUs; `pip install apex` gets another project\n" + _INSTALL[kind] if kind else ""


def _module(text: str) -> str:
    """`from apex import amp` -> `apex.amp`."""
    words = text.split()
    return f"{words[1]}.{words[3]}" if words[0] == "from" else words[1]


def _kind(context: Context, paths: set[str]) -> str:
    """Which apex some names need; a script's own level of precision may be O1, too."""
    if "apex.amp" in {".".join(p.split(".")[:2]) for p in paths} and (context.options.level or "O1") == "O1":
        return "O1"
    if any(p == gone or p.startswith(f"{gone}.") for p in paths for gone in _GONE):
        return "removed"
    return "fused" if any(p.startswith("apex.") for p in paths) else ""
