"""Another framework drives the training.

What it does: refuses a script whose training is driven by a library that has its own way to several GPUs, or that does not train with
    torch. frameworks.py says which calls drive, and what each framework offers.
Why: process groups, samplers and gradients are in the framework's hands: a second set of them would fight the first.
Safety: only a call counts (or making a local class that derives from the framework's), in code that the script reaches. An optional
    import that is never used proves nothing, nor does a name in a comment or a string, nor a local class of the same name.
References: https://huggingface.co/docs/accelerate/quicktour,
    https://lightning.ai/docs/pytorch/stable/accelerators/gpu_basic.html,
    https://www.deepspeed.ai/getting-started/
"""

from __future__ import annotations

from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.frameworks import FRAMEWORKS, Framework
from ddpify.rules.refuse.reach import Reach, Use, reach
from ddpify.rules.refuse.training import trains
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP912"
TITLE = "driven by another framework"

EXAMPLES = (
    Example("an optional import", "try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\nloss.backward()\n"),
    Example("a local class that is called Trainer", "class Trainer:\n    def fit(self):\n        pass\n\n\nTrainer().fit()\n"),
    Example("a metric of a framework", "from ignite.metrics import Accuracy\naccuracy = Accuracy()\nloss.backward()\n"),
    Example("a name in a string", "parser.add_argument('--engine', help='deepspeed.initialize is not supported')\n"),
    Example("refused: Accelerate", "from accelerate import Accelerator\naccelerator = Accelerator()\naccelerator.backward(loss)\n"),
    Example("refused: Lightning", "import lightning as L\ntrainer = L.Trainer()\ntrainer.fit(model)\n"),
)


def check(project: Project) -> Verdict | None:
    """A refusal if a framework of the table drives."""
    reached = reach(project)
    for framework in FRAMEWORKS:
        if use := _driver(reached, framework):
            reason = f"{framework.name} drives this training ({use.place}, `{use.shown}`): {framework.offers}"
            return Verdict("refuse", CODE, reason, use.line, use.file)
    return None


def _driver(reached: Reach, framework: Framework) -> Use | None:
    if not any(map(reached.imports, framework.roots)) or (framework.alone and trains(reached)):
        return None
    run = next(reached.methods(*framework.runs), None)
    if framework.runs and run is None:
        return None
    for name in framework.makes:
        if use := next(reached.calls(framework.roots, (name,)), None):
            return use
    creations = None if framework.makes else next(reached.calls(framework.roots), None)
    return run if creations and run else creations
