"""Leave the choice of GPUs to the launcher.

What it does: an assignment to `os.environ["CUDA_VISIBLE_DEVICES"]` is skipped when a launcher started the script; its value moves
    to the run command, with as many processes as it names devices.
Why: every rank would see the same devices whichever ones it was started for.
Safety: safe; without a launcher nothing changes. With mp.spawn the script itself is the launcher, and its choice stays.
References: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Under
from ddpify.facts.tree import last_name, walk
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP102"
TITLE = "leave CUDA_VISIBLE_DEVICES to the launcher"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "reading the variable",
        'visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")\n',
        frame="start",
    ),
    Example(
        "another variable",
        'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"\n',
        frame="start",
    ),
    Example(
        "a choice made without a launcher only",
        'if "LOCAL_RANK" not in os.environ:\n'
        '    os.environ["CUDA_VISIBLE_DEVICES"] = "0"\n',
        frame="start",
    ),
    Example(
        "a choice of devices",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\n',
        'if "LOCAL_RANK" not in os.environ:\n'
        '    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\n',
        frame="start",
    ),
    Example(
        "a choice left to the command line",
        'os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu\n',
        'if "LOCAL_RANK" not in os.environ:\n'
        '    os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu\n',
        frame="start",
    ),
)  # fmt: skip


def assignments(context: Context) -> list[ast.Assign]:
    """The statements of the entry that set CUDA_VISIBLE_DEVICES."""
    return [n for n in context.tree.of(ast.Assign) if len(n.targets) == 1 and variable(n) == "CUDA_VISIBLE_DEVICES"]


def variable(statement: ast.Assign) -> str:
    """The variable of the environment that `os.environ["NAME"] = ...` sets; empty for other statements."""
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant) or last_name(target.value) != "environ":
        return ""
    return str(target.slice.value)


def devices(context: Context) -> str | None:
    """The devices that the script chose, where they are a literal."""
    for node in assignments(context):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) and node.value.value.strip():
            return node.value.value.replace(" ", "")
    return None


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Guard each assignment, unless the script starts its processes itself: then it chooses before they start."""
    if context.options.starts == "spawn":
        return
    for node in assignments(context):
        tests = [up.test for up in context.tree.ancestors(node) if isinstance(up, ast.If)]
        if any("LOCAL_RANK" in (getattr(n, "value", None), last_name(n)) for test in tests for n in walk(test)):
            continue
        environ = ast.unparse(node.targets[0].value)  # type: ignore[attr-defined]
        why = "the launcher assigns the GPUs: CUDA_VISIBLE_DEVICES is set in the run command instead"
        yield Change(CODE, why, context.tree.shown, node, (Under(node, f'if "LOCAL_RANK" not in {environ}'),))
        if not context.facts.in_main(node):
            why = "this choice of devices comes after the group is joined: without a launcher, make it in the shell"
            yield context.manual(CODE, node, why, level=Safety.NOTE)
    for call in context.tree.nodes():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("setdefault", "putenv", "update"):
            named = any(isinstance(n, ast.Constant) and n.value == "CUDA_VISIBLE_DEVICES" for n in walk(call))
            if named or any(k.arg == "CUDA_VISIBLE_DEVICES" for k in call.keywords):
                why = "every rank chooses the same devices here, over those that the launcher gives it"
                yield context.manual(CODE, call, why, f'if "LOCAL_RANK" not in os.environ: {ast.unparse(call)}')
