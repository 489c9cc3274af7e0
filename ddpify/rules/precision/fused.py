"""Let apex's FusedAdam take the steps of Adam and AdamW.

What it does: with `--fused-adam`, `torch.optim.AdamW(...)` becomes `FusedAdam(...)` of apex, and `torch.optim.Adam(...)` the same with
    `adam_w_mode=False`. FusedAdam decays no weights by default: AdamW's default of 0.01 is written down.
Why: one kernel moves all parameters at once.
Safety: safe: the same steps. MANUAL for `amsgrad` and `maximize`, which FusedAdam has not; it needs GPUs and apex's CUDA extensions.
References: https://nvidia.github.io/apex/optimizers.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, NameArgument, Replace, SetArgument
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding
from ddpify.rules.context import Context, argument

CODE = "DDP417"
TITLE = "step with apex's FusedAdam"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "an optimizer, unless something else is asked for",
        "optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)\n",
        frame="loop",
    ),
    Example(
        "another optimizer",
        "other = torch.optim.RMSprop(model.parameters(), lr=0.1)\n",
        frame="end",
        options=Options(fused_adam=True),
    ),
    Example(
        "decay that is a default",
        "optimizer = torch.optim.AdamW(model.parameters(), 0.1)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        "optimizer = FusedAdam(model.parameters(), 0.1, weight_decay=0.01)\n"
        "for epoch in range(9):\n"
        "    train(epoch)\n",
        frame="loop",
        options=Options(fused_adam=True),
    ),
)  # fmt: skip

_PLACES = ("params", "lr", "betas", "eps", "weight_decay", "amsgrad")


def changes(context: Context) -> Iterator[Change | Finding]:
    """The optimizers, and the calls that FusedAdam takes without arguments."""
    if not context.options.fused_adam:
        return
    run = context.facts.after
    for node in context.tree.of(ast.Call):
        paths = run.value(node.func).paths()
        if paths not in ({"torch.optim.Adam"}, {"torch.optim.AdamW"}) or not any(o.node is node for o in context.facts.optimizers):
            continue
        refused = [k for k in ("amsgrad", "maximize", "decoupled_weight_decay", "differentiable") if _is_set(node, k)]
        if refused:
            yield context.manual(CODE, node, f"FusedAdam has no `{refused[0]}`", "leave this optimizer torch's")
            continue
        edits: list[Edit] = [Replace(node.func, "FusedAdam")]
        edits += [NameArgument(node, name, at) for at, name in enumerate(_PLACES[: len(node.args)]) if at > 1]
        edits += [DropArgument(node, k.arg) for k in node.keywords if k.arg in ("foreach", "fused", "amsgrad", "maximize", "capturable")]
        if len(node.args) > 5:
            edits.append(DropArgument(node, "amsgrad", 5))
        if paths == {"torch.optim.Adam"}:
            edits.append(SetArgument(node, "adam_w_mode", "False"))
        elif argument(node, 4, "weight_decay") is None:
            edits.append(SetArgument(node, "weight_decay", "0.01"))
        why = "apex updates all parameters in one kernel"
        all_edits, imports = (*edits, *_zeroed(context, node)), ("from apex.optimizers import FusedAdam",)
        yield Change(CODE, why, context.tree.shown, node, all_edits, imports, without="this optimizer stays torch's")


def _zeroed(context: Context, creation: ast.Call) -> Iterator[Edit]:
    """FusedAdam's `zero_grad` takes no argument: it always sets to None."""
    run = context.facts.after
    for node in dict.fromkeys(c.node for c in context.calls() if c.method == "zero_grad"):
        mine = any(o.node is creation for c in run.calls(node) for o in c.receiver.instances())
        if mine and (node.args or node.keywords) and context.options.level != "O2":
            yield DropArgument(node, "set_to_none", 0)


def _is_set(node: ast.Call, keyword: str) -> bool:
    given = argument(node, _PLACES.index(keyword) if keyword in _PLACES else None, keyword)
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)
