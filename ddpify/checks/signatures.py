"""Every call fits the signature of what it calls: of the project's functions as they are defined, of a library's as listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.checks.problem import Problem
from ddpify.facts.interpret.signatures import Callee, callees, fitting, misfit
from ddpify.facts.model import Call, Method, New
from ddpify.facts.runs import Run

SIGNATURES = """
os.makedirs(name, mode=0o777, exist_ok=False)
os.mkdir(path, mode=0o777, *, dir_fd=None)
torch.utils.data.DataLoader(dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
    pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *,
    prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True)
torch.utils.data.DistributedSampler(dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False)
torch.nn.parallel.DistributedDataParallel(module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
    process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False,
    static_graph=False, delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None,
    skip_all_reduce_unused_params=False, bucket_cap_mb_list=None, batched_grad_copy=False,
    forward_sync_buffers=True)
torch.load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args)
torch.save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, _disable_byteorder_record=False)
torch.autocast(device_type, dtype=None, enabled=True, cache_enabled=None)
torch.amp.GradScaler(device="cuda", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True)
torch.manual_seed(seed)
"""
_METHODS = {"mkdir": "mkdir(mode=0o777, parents=False, exist_ok=False)", "set_epoch": "set_epoch(epoch)"}


def _listed(text: str) -> dict[str, ast.arguments]:
    """Signatures written as calls, by the dotted path of what is called."""
    out: dict[str, ast.arguments] = {}
    for statement in text.replace("\n    ", " ").strip().splitlines():
        path, _, parameters = statement.partition("(")
        (function,) = ast.parse(f"def f({parameters}: pass").body
        assert isinstance(function, ast.FunctionDef)
        out[path] = function.args
    return out


LIBRARY = _listed(SIGNATURES)
_OF_METHODS = _listed("\n".join(_METHODS.values()))


def problems(run: Run, changed: frozenset[str]) -> Iterator[Problem]:
    """The calls in changed modules that do not fit what they may call."""
    reported: set[tuple[ast.AST, str]] = set()
    for call in run.trace.calls:
        if call.file not in changed:
            continue
        for label, spec, bound in _callees(run, call):
            wrong = misfit(spec, call.node, bound)
            if wrong and (call.node, wrong) not in reported:
                reported.add((call.node, wrong))
                name = ast.unparse(call.node.func)
                yield Problem(
                    call.file, call.node, f"this call of {name} does not fit its signature: {wrong}", ("call", call.file, label, wrong)
                )


def _callees(run: Run, call: Call) -> Iterator[Callee]:
    for obj in fitting(run.interpreter, call.node, call.func.objs):
        path = getattr(obj, "path", "") if not isinstance(obj, New) else ""
        if path in LIBRARY:
            yield path, LIBRARY[path], 0
        elif (
            isinstance(obj, Method)
            and obj.name in _METHODS
            and isinstance(obj.of, New)
            and obj.of.path.startswith(("pathlib.", "torch.utils.data."))
        ):
            yield obj.name, _OF_METHODS[obj.name], 0
        else:
            yield from callees(run.interpreter, call.node, obj)
