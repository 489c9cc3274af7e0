"""Switch the mixed precision that a script has.

What it does: with `--amp none` every autocast and grad scaler is given `enabled=False`. With `--amp torch` what is cast is cast to
    float16, with `--amp torch-bf16` to bfloat16, whose range needs no scaler: that is given `enabled=False`. `keep`, the default, leaves
    all as it is.
Why: a disabled autocast or scaler passes everything through, so nothing else of the script need change.
Safety: safe. Where the script decides by a flag of its own whether it casts, that flag goes on deciding, and a NOTE says so. What another
    module casts is MANUAL. A script of apex's mixed precision can be given another of its levels.
References: https://docs.pytorch.org/docs/stable/amp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import DropArgument, Edit, SetArgument
from ddpify.facts.tree import is_main, walk
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.precision import apex, backward_optimizers, clipping, existing

CODE = "DDP411"
TITLE = "switch mixed precision"
_STEP = (
    'with torch.autocast("cuda"{dtype}):\n'
    "    loss = criterion(model(x), y)\n"
    "optimizer.zero_grad()\n"
    "loss.backward()\n"
    "optimizer.step()\n"
)  # fmt: skip
EXAMPLES: tuple[Example, ...] = (
    Example("precision that is kept", _STEP.replace("{dtype}", ", dtype=torch.bfloat16"), frame="step"),
    Example(
        "what is asked for already",
        _STEP.replace("{dtype}", ", dtype=torch.bfloat16"),
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
    Example(
        "a script without mixed precision",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="none"),
    ),
    Example(
        "a part that stays in float32",
        'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
        "    out = model(x)\n"
        '    with torch.autocast("cuda", enabled=False):\n'
        "        loss = criterion(out.float(), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
    Example(
        "switched off",
        _STEP.replace("{dtype}", ""),
        _STEP.replace("{dtype}", ", enabled=False"),
        frame="step",
        options=Options(amp="none"),
    ),
    Example(
        "from float16 to bfloat16",
        _STEP.replace("{dtype}", ", dtype=torch.float16"),
        _STEP.replace("{dtype}", ", dtype=torch.bfloat16"),
        frame="step",
        options=Options(amp="torch-bf16"),
    ),
)  # fmt: skip

_AT = {"autocast": {"dtype": 1, "enabled": 2}, "GradScaler": {"enabled": 5}}
_OLD_AT = {"autocast": {"dtype": 1, "enabled": 0}, "GradScaler": {"enabled": 4}}


def changes(context: Context) -> Iterator[Change | Finding]:
    """One change for each autocast and scaler."""
    amp = context.options.amp
    yield from _apex(context)
    if amp == "keep" or context.options.level:
        return
    casts, scalers = existing.autocasts(context), existing.scalers(context)
    off = all(_constant(context, c, "enabled") is False for c in casts)  # else one that is off is a part that stays in float32
    for call in (*casts, *scalers):
        edits = list(_edits(context, call, call in scalers, off))
        if edits and not context.facts.is_edited(call):
            yield context.manual(CODE, call, "mixed precision in another module is left as it is", f"here: {_fix(amp, call in scalers)}")
        elif edits:
            yield Change(CODE, f"asked for by --amp {amp}", context.tree.shown, call, tuple(edits), ("import torch",))
        if amp != "none" and call in casts and _chosen(context, call):
            why = "the script's own flag still decides whether this casts"
            yield context.manual(CODE, call, why, level=Safety.NOTE)


def _edits(context: Context, call: ast.Call, scaler: bool, off: bool) -> Iterator[Edit]:
    amp, enabled = context.options.amp, _constant(context, call, "enabled")
    if amp == "none" or (scaler and amp == "torch-bf16"):
        if enabled is not False:
            yield SetArgument(call, "enabled", "False", position=_position(context, call, "enabled"))
        return
    if enabled is False and not (off or scaler):
        return
    if enabled is False:
        yield DropArgument(call, "enabled", _position(context, call, "enabled"))
    if scaler:
        return
    dtype, wanted = _passed(context, call, "dtype"), "float16" if amp == "torch" else "bfloat16"
    default = dtype is None and amp == "torch" and not _on_cpu(context, call)
    if not default and (dtype is None or context.facts.after.value(dtype).paths() != {f"torch.{wanted}"}):
        yield SetArgument(call, "dtype", f"torch.{wanted}", position=_position(context, call, "dtype"))


def _position(context: Context, call: ast.Call, keyword: str) -> int:
    path = next(iter(context.facts.after.value(call.func).paths()))
    places = _OLD_AT if path.startswith(("torch.cuda.amp.", "torch.cpu.amp.")) else _AT
    return places[path.rpartition(".")[2]][keyword]


def _passed(context: Context, call: ast.Call, keyword: str) -> ast.expr | None:
    return argument(call, _position(context, call, keyword), keyword)


def _constant(context: Context, call: ast.Call, keyword: str) -> object:
    """The constant passed as `keyword`; None where there is none."""
    given = _passed(context, call, keyword)
    return given.value if isinstance(given, ast.Constant) else None


def _on_cpu(context: Context, call: ast.Call) -> bool:
    device = argument(call, 0, "device_type")
    return "torch.cpu.amp.autocast" in context.facts.after.value(call.func).paths() or (
        isinstance(device, ast.Constant) and device.value == "cpu"
    )


def _chosen(context: Context, call: ast.Call) -> bool:
    """Whether a setting of the script decides if an autocast is on."""
    given = _passed(context, call, "enabled")
    return given is not None and not isinstance(given, ast.Constant) and not asks_for_gpu(context, given)


def asks_for_gpu(context: Context, node: ast.expr) -> bool:
    """Whether an expression asks if there is a GPU."""
    return any("torch.cuda.is_available" in context.facts.after.value(n).paths() for n in walk(node) if isinstance(n, ast.expr))


def _fix(amp: str, scaler: bool) -> str:
    if amp == "none" or (scaler and amp == "torch-bf16"):
        return "enabled=False"
    return "enabled=True" if scaler else f"dtype=torch.{'float16' if amp == 'torch' else 'bfloat16'}"


def _apex(context: Context) -> Iterator[Change | Finding]:
    """apex in the input: another level, or as it is."""
    asked, level = context.options.amp, context.options.level
    for call in {c.node: c for c in apex.initialized(context)}.values():
        node = call.node
        given = argument(node, 3, "opt_level")
        own = given.value if isinstance(given, ast.Constant) else "O2"  # which it may be
        own = "O1" if given is None and all(k.arg for k in node.keywords) else own
        yield from apex.not_averaged(context, node, level or str(own))
        if asked == "keep":
            why = "apex.amp was taken out of apex after its tag 25.05, and runs on GPUs only"
            yield context.manual(CODE, node, why, "--amp torch moves the script over to torch's own mixed precision", level=Safety.NOTE)
        elif not level:
            why = f"apex's mixed precision is left as it is: --amp {asked} has no effect on it"
            yield context.manual(CODE, node, why, "take apex out of the script first")
        elif not (given is None and level == "O1") and not (isinstance(given, ast.Constant) and given.value == level):
            if not context.facts.is_edited(node):
                yield context.manual(CODE, node, "mixed precision in another module is left as it is", f'here: opt_level="{level}"')
                continue
            edits: list[Edit] = [SetArgument(node, "opt_level", context.quoted(level), position=3)]
            if level in ("O0", "O1"):
                edits += [DropArgument(node, k.arg) for k in node.keywords if k.arg in ("keep_batchnorm_fp32", "master_weights")]
            edits += clipping.zeroed(context)
            flags = [up.test for up in context.tree.ancestors(node) if isinstance(up, ast.If) and not is_main(up)]
            if flags:
                why = f"`{ast.unparse(flags[0])}` still decides whether there is mixed precision"
                yield context.manual(CODE, node, why, level=Safety.NOTE)
            names = backward_optimizers.Names(context)
            edits += [*clipping.clips(context, names), *names.edits]
            yield Change(CODE, f"asked for by --amp {asked}", context.tree.shown, node, tuple(edits))
            yield from apex.looked_at(context, existing.backwards(context)) if level == "O2" else ()
