"""There is no training loop.

What it does: leaves a script alone in which nothing computes gradients: an evaluation, a model's definition, a preparation of data, an
    empty file.
Why: data parallelism divides training. Where nothing is trained there is nothing to divide.
Safety: every `.backward()`, `autograd.grad` and optimizer step counts, in the script and in every local module that it imports. The
    sentence says how many files were read, and names modules that were not found.
References: https://docs.pytorch.org/docs/stable/autograd.html
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.frameworks import ROOTS
from ddpify.rules.refuse.reach import Reach, reach
from ddpify.rules.refuse.scan import Unit
from ddpify.rules.refuse.training import trains
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP913"
TITLE = "no training loop"

EXAMPLES = (
    Example("a loss goes backward", "import torch\nloss = model(x).sum()\nloss.backward()\n"),
    Example("the sum of two losses", "import torch\n(first + second).backward()\n"),
    Example("gradients taken by hand", "import torch\ngradients = torch.autograd.grad(loss, weights)\n"),
    Example("a closure", "import torch\n\n\ndef closure():\n    loss.backward()\n    return loss\n\n\noptimizer.step(closure)\n"),
    Example("nothing to do: an evaluation", "import torch\nmodel.eval()\nwith torch.no_grad():\n    print(model(x))\n"),
    Example("nothing to do: backward in a comment", "import torch\n# loss.backward()\nprint('loss.backward()')\n"),
    Example("nothing to do: an empty file", ""),
)

_WELL_KNOWN = frozenset({
    "torch", "torchvision", "torchaudio", "torchtext", "numpy", "scipy", "pandas", "sklearn", "matplotlib", "PIL", "cv2", "skimage",
    "imageio", "tqdm", "yaml", "wandb", "tensorboard", "tensorboardX", "visdom", "timm", "transformers", "datasets", "tokenizers",
    "einops", "h5py", "seaborn", "nltk", "requests", "hydra", "omegaconf", "click", "typer", "apex", "tensorflow", "rich", "networkx",
    "albumentations", "torchmetrics", "torchsummary", "thop", "psutil", "joblib", "plotly", "IPython", "librosa", "soundfile", "onnx",
    "onnxruntime", "six", "optuna",
    "huggingface_hub", "gym", "gymnasium", "pycocotools", "fastapi", "pydantic", "setuptools", "fire",
    "gradio", "streamlit", "flask", "pytest", "lmdb", "dotenv", "colorama", "absl", "gflags",
})  # fmt: skip


def check(project: Project) -> Verdict | None:
    """A refusal if no gradient is computed in anything that the script reaches."""
    reached = reach(project)
    if trains(reached) or trains(Reach(reached.resolver, _everything(reached))):
        return None
    by_name = any(unit.uses.imports_by_name or any(map(project.names, unit.uses.dotted)) for unit in reached.units)
    texts = itertools.chain((file.source.text for file in project.files.values()), (text for _, text in project.other_scripts()))
    if by_name and any(".backward(" in text for text in texts):
        return None  # what trains may be imported by a name that only the run tells, or by a function of a package
    if any(name in project.broken for name in reached.imported):
        return None  # the training may be there
    count = len(reached.files)
    read = "this file" if count == 1 else f"the {count} files read"
    reason = f"no training loop: nothing to do (no backward call was found in {read}{_unread(reached)})"
    return Verdict("nothing", CODE, reason, 1, project.entry.shown)


def _everything(reached: Reach) -> list[Unit]:
    """The whole entry, whatever is called; where names are looked up at run time, the other files as well."""
    entry = reached.resolver.entry
    modules = {unit.module for unit in reached.units} if reached.dynamic else {entry}
    units = [unit for module in modules for unit in module.definitions.values()]
    return [entry.main, *units, *(method for unit in units for method in unit.methods.values())]


def _unread(reached: Reach) -> str:
    names = list(dict.fromkeys(_missing(reached)))
    if not names:
        return ""
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    return f"; {shown} could not be read: if the training is there, run ddpify from the folder that holds it"


def _missing(reached: Reach) -> Iterator[str]:
    """Imported modules that are neither Python's own nor well known, and were not found among the project's."""
    for name in reached.imported:
        top = name.partition(".")[0]
        known = top in _WELL_KNOWN or top in ROOTS or top in sys.stdlib_module_names
        if not (known or reached.resolver.holds(name)):
            yield name
