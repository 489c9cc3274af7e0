"""What torch has in place of the other parts of apex: optimizers, layer norms, batch norm over ranks, the wrapper."""

from __future__ import annotations

import ast

from ddpify.edits import DropArgument, Edit, Replace, SetArgument
from ddpify.facts.tree import walk
from ddpify.records import dataclass, field
from ddpify.rules.context import Context, argument


@dataclass(eq=False)
class Out:
    """What is taken out of one script: `gone` are statements, `handled` the expressions that an edit takes care of."""

    edits: list[Edit] = field(default_factory=list)
    gone: set[ast.stmt] = field(default_factory=set)
    handled: set[ast.AST] = field(default_factory=set)
    to_do: list[tuple[ast.AST, str, str]] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    notes: list[tuple[ast.AST, str]] = field(default_factory=list)
    places: list[ast.AST] = field(default_factory=list)
    imports: dict[str, None] = field(default_factory=dict)


_NORMS = {
    "apex.normalization.FusedLayerNorm": "LayerNorm",
    "apex.normalization.MixedFusedLayerNorm": "LayerNorm",
    "apex.normalization.FusedRMSNorm": "RMSNorm",
    "apex.normalization.MixedFusedRMSNorm": "RMSNorm",
    "apex.parallel.SyncBatchNorm": "SyncBatchNorm",
}
_WRAPPER_ONLY = (
    *("message_size", "delay_allreduce", "shared_param", "allreduce_trigger_params", "retain_allreduce_buffers", "allreduce_always_fp32"),
    *("num_allreduce_streams", "allreduce_communicators", "prof"),
)


def parts(context: Context, out: Out) -> None:
    """Replace what torch has as well; note what it has not."""
    tree, run = context.tree, context.facts.before
    for node in tree.of(ast.Call):
        path = next((p for p in run.value(node.func).paths() if p.startswith("apex.") and not p.startswith("apex.amp.")), "")
        name = path.rpartition(".")[2]
        asked = (path.startswith("apex.parallel.") and context.options.apex_ddp) or (name == "FusedAdam" and context.options.fused_adam)
        if not path or asked:
            continue
        out.places.append(node)
        out.handled |= set(walk(node.func))
        if path in _NORMS:
            out.edits += [Replace(node.func, f"torch.nn.{_NORMS[path]}"), *_without(node, "memory_efficient", "channel_last")]
            out.imports["import torch"] = None
        elif path == "apex.parallel.convert_syncbn_model":
            out.edits += [Replace(node.func, "torch.nn.SyncBatchNorm.convert_sync_batchnorm"), *_without(node, "channel_last")]
            out.imports["import torch"] = None
        elif path == "apex.parallel.DistributedDataParallel":
            _wrapper(out, node)
        elif name == "FusedAdam":
            _adam(out, node)
        elif name == "FusedSGD":
            _sgd(out, node)
        else:
            out.to_do.append((node, f"torch has no equivalent of apex's {name}", "keep it, or choose another by hand"))


def _without(node: ast.Call, *keywords: str) -> list[Edit]:
    return [DropArgument(node, k.arg) for k in node.keywords if k.arg in keywords]


def _wrapper(out: Out, node: ast.Call) -> None:
    """apex's wrapper: torch's, which needs no device where the model has one."""
    given = {k.arg: k.value for k in node.keywords}
    if len(node.args) > 1 or given.keys() & {"gradient_average", "gradient_predivide_factor", None}:
        out.to_do.append((node, "torch's wrapper averages gradients as it does: these settings have no equivalent", "leave them out"))
        return
    delayed = given.get("delay_allreduce")
    out.edits += [Replace(node.func, "torch.nn.parallel.DistributedDataParallel"), *_without(node, *_WRAPPER_ONLY)]
    if delayed is not None and not (isinstance(delayed, ast.Constant) and not delayed.value):
        out.edits.append(SetArgument(node, "find_unused_parameters", "True"))
    out.imports["import torch"] = None


def _adam(out: Out, node: ast.Call) -> None:
    """FusedAdam is AdamW without decay, unless its arguments say otherwise."""
    given = {k.arg: k.value for k in node.keywords}
    mode = argument(node, 5, "adam_w_mode")
    if len(node.args) > 2:
        out.to_do.append((node, "the arguments of FusedAdam come in another order than torch's", "name them: betas=..., weight_decay=..."))
        return
    if (bias := given.get("bias_correction")) is not None and not (isinstance(bias, ast.Constant) and bias.value is True):
        out.to_do.append((node, "torch has no Adam without bias correction", "leave bias_correction out; the first steps are larger then"))
        return
    if mode is not None and not isinstance(mode, ast.Constant):
        out.to_do.append((node, "whether this is Adam or AdamW is decided at run time", "choose torch.optim.Adam or torch.optim.AdamW"))
        return
    plain = isinstance(mode, ast.Constant) and not mode.value
    out.edits.append(Replace(node.func, "torch.optim.Adam" if plain else "torch.optim.AdamW"))
    out.edits += _without(node, "adam_w_mode", "bias_correction", "set_grad_none", "master_weights")
    if not plain and "weight_decay" not in given:
        out.edits.append(SetArgument(node, "weight_decay", "0.0"))
    out.imports["import torch"] = None


def _sgd(out: Out, node: ast.Call) -> None:
    given = {k.arg: k.value for k in node.keywords}
    after = given.get("wd_after_momentum")
    if len(node.args) > 6 or (after is not None and not (isinstance(after, ast.Constant) and not after.value)):
        out.to_do.append((node, "torch's SGD decays weights before momentum", "leave wd_after_momentum out"))
        return
    out.edits += [Replace(node.func, "torch.optim.SGD"), *_without(node, "wd_after_momentum", "materialize_master_grads", "set_grad_none")]
    out.imports["import torch"] = None
