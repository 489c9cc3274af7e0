"""Every call fits the signature of what it calls: of the project's functions as they are defined, of a library's as listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.checks.problem import Problem
from ddpify.facts.model import Call, Class, Func, Method, New
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
_TRANSPARENT = frozenset(("staticmethod", "classmethod", "no_grad", "inference_mode", "contextmanager", "abstractmethod", "override"))


def problems(run: Run, changed: frozenset[str]) -> Iterator[Problem]:
    """The calls in changed modules that do not fit what they may call."""
    told: set[tuple[ast.AST, str]] = set()
    for call in run.trace.calls:
        if call.file not in changed:
            continue
        for label, spec, bound in _callees(run, call):
            wrong = misfit(spec, call.node, bound)
            if wrong and (call.node, wrong) not in told:
                told.add((call.node, wrong))
                name = ast.unparse(call.node.func)
                yield Problem(
                    call.file, call.node, f"this call of {name} does not fit its signature: {wrong}", ("call", call.file, label, wrong)
                )


Callee = tuple[str, ast.arguments, int]
"""What a call may call: its name, its signature, and how many of its positional parameters are bound already."""


def _callees(run: Run, call: Call) -> Iterator[Callee]:
    for obj in call.func.objs:
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
        elif isinstance(obj, Func) and _by_its_name(call, obj):
            yield from _function_signature(obj)
        elif isinstance(obj, Class):
            yield from _method_signatures(run, obj, "__init__")
        elif isinstance(obj, New) and obj.cls is not None:
            called = "__call__" if run.interpreter.find(obj.cls, "__call__") is not None else "forward"
            yield from _method_signatures(run, obj.cls, called)


def _method_signatures(run: Run, cls: Class, name: str) -> Iterator[Callee]:
    """The signatures of a method of a class, as it is called on an instance."""
    found = run.interpreter.find(cls, name)
    for func in found.objs if found is not None else ():
        if isinstance(func, Func) and _keeps_signature(func.node):
            yield cls.node.name, func.node.args, 1


def _by_its_name(call: Call, func: Func) -> bool:
    """Whether a function is called itself, and not through what hands it more, such as `Function.apply`."""
    return not isinstance(call.node.func, ast.Attribute) or call.node.func.attr == getattr(func.node, "name", "")


def _function_signature(func: Func) -> Iterator[Callee]:
    if _keeps_signature(func.node):
        static = "staticmethod" in set(_decorated(func.node))
        of_class = func.cls is not None and "classmethod" in set(_decorated(func.node))
        yield getattr(func.node, "name", ""), func.node.args, int((func.owner is not None and not static) or of_class)


def _keeps_signature(node: ast.AST) -> bool:
    """Whether nothing but what keeps its signature decorates a function."""
    return set(_decorated(node)) <= _TRANSPARENT


def _decorated(node: ast.AST) -> Iterator[str]:
    for decorator in getattr(node, "decorator_list", ()):
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        yield inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""


def misfit(spec: ast.arguments, call: ast.Call, bound: int = 0) -> str:
    """Why a call does not fit a signature whose first `bound` positional parameters have their values; empty where it fits."""
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)][bound:]
    by_position_only = {a.arg for a in spec.posonlyargs}
    names = {*positional, *(a.arg for a in spec.kwonlyargs)} - by_position_only
    opens, spread = any(isinstance(a, ast.Starred) for a in call.args), any(k.arg is None for k in call.keywords)
    given = len(call.args) - opens
    if given > len(positional) and spec.vararg is None:
        return f"{given} arguments by position where it takes {len(positional)}"
    keywords = [k.arg for k in call.keywords if k.arg is not None]
    for keyword in keywords:
        if keyword not in names and spec.kwarg is None:
            return f"it has no parameter {keyword}"
        if keyword in positional[:given] and not opens and keyword in names:
            return f"{keyword} is given twice"
    if opens or spread:
        return ""
    optional = set(positional[len(positional) - len(spec.defaults) :]) if spec.defaults else set()
    optional |= {a.arg for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is not None}
    missing = [n for n in (*positional[given:], *(a.arg for a in spec.kwonlyargs)) if n not in optional and n not in keywords]
    return f"{', '.join(missing)} is missing" if missing else ""
