"""Update torch's mixed precision to its current names.

What it does: `torch.cuda.amp.autocast()` becomes `torch.autocast("cuda")`, `torch.cuda.amp.GradScaler()` becomes
    `torch.amp.GradScaler("cuda")`, and so for `torch.cpu.amp`; `from torch.cuda.amp import ...` becomes `from torch.amp import ...`, and
    what is called by those names is given its device; `@custom_fwd` and `@custom_bwd` are given theirs.
Why: the old names warn since torch 2.4, on every rank, and will go.
Safety: safe: the meaning is the same. An import is left alone where its names are handed on instead of called.
References: https://docs.pytorch.org/docs/stable/amp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import AddFirst, Drop, Edit, InsertBefore, NameArgument, Replace, SetArgument
from ddpify.facts.tree import dotted
from ddpify.rules.base import Change, Example
from ddpify.rules.context import Context

CODE = "DDP410"
TITLE = "update the spelling of mixed precision"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "today's names",
        'scaler = torch.amp.GradScaler("cuda", enabled=False)\n'
        'with torch.autocast("cpu", enabled=False):\n'
        "    pass\n",
        frame="data",
    ),
    Example(
        "an import whose names are handed on",
        "import contextlib\n"
        "from torch.cuda.amp import autocast\n"
        "cast = autocast if args.epochs > 5 else contextlib.nullcontext\n",
        frame="data",
    ),
    Example(
        "something else that is called autocast",
        "def autocast(enabled=True):\n"
        "    return enabled\n"
        "autocast(False)\n",
        frame="data",
    ),
    Example(
        "names of torch.cuda.amp",
        "scaler = torch.cuda.amp.GradScaler(1024.0, enabled=False)\n"
        "with torch.cuda.amp.autocast(False):\n"
        "    pass\n",
        'scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, enabled=False)\n'
        'with torch.autocast("cuda", enabled=False):\n'
        "    pass\n",
        frame="data",
    ),
    Example(
        "imported names",
        "from torch.cuda.amp import GradScaler, autocast\n"
        "scaler = GradScaler(enabled=False)\n"
        "with autocast(enabled=False):\n"
        "    pass\n",
        "from torch.amp import GradScaler, autocast\n"
        'scaler = GradScaler("cuda", enabled=False)\n'
        'with autocast("cuda", enabled=False):\n'
        "    pass\n",
        frame="data",
    ),
)  # fmt: skip

_POSITIONS = {
    "autocast": ("enabled", "dtype", "cache_enabled"),
    "GradScaler": ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
    "custom_fwd": ("fwd",),
    "custom_bwd": ("bwd",),
}
_OLD = {f"torch.{device}.amp.{name}": (device, name) for device in ("cuda", "cpu") for name in _POSITIONS}
_WHY = "the old spelling warns since torch 2.4"


def changes(context: Context) -> Iterator[Change]:
    """The imports, with what is called by their names; then the names written out."""
    for statement in context.tree.nodes():
        if isinstance(statement, (ast.ImportFrom, ast.Import)):
            yield from _import(context, statement)
    edits = [
        e for node in _uses(context) if isinstance(node, ast.Attribute) and _written_out(context, node) for e in _dotted(context, node)
    ]
    if edits:
        yield Change(CODE, _WHY, context.tree.shown, edits[0].node, tuple(edits), ("import torch",), without=_without(context))


def _without(context: Context) -> str:
    """What is so with the old words; nothing where other edits build on the new ones."""
    return "torch keeps warning" if context.options.amp == "keep" else ""


def _uses(context: Context) -> list[ast.expr]:
    """Where one of the old names is read."""
    names = [n for n in context.tree.nodes() if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
    return [n for n in names if _named(context, n) is not None]


def _named(context: Context, node: ast.expr) -> tuple[str, str] | None:
    """The device and the name that an expression means, if it is one of the old ones and nothing else."""
    value = context.facts.after.value(node)
    found = [_OLD[p] for p in value.paths() if p in _OLD]
    return found[0] if len(found) == 1 == len(value.objs) else None


def _written_out(context: Context, node: ast.Attribute) -> bool:
    """Whether a name is spelled `torch.cuda.amp.x`."""
    return dotted(node.value) in ("torch.cuda.amp", "torch.cpu.amp") and _is_called(context, node)


def _is_called(context: Context, node: ast.expr) -> bool:
    parent = context.tree.parent[node]
    called = isinstance(parent, ast.Call) and parent.func is node and not any(isinstance(a, ast.Starred) for a in parent.args)
    return called or _is_decorator(context, node)


def _is_decorator(context: Context, node: ast.expr) -> bool:
    parent = context.tree.parent[node]
    return isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in parent.decorator_list


def _is_annotation(context: Context, node: ast.expr) -> bool:
    parent = context.tree.parent[node]
    return getattr(parent, "annotation", None) is node or getattr(parent, "returns", None) is node


def _dotted(context: Context, node: ast.Attribute) -> Iterator[Edit]:
    _, name = _named(context, node) or ("", node.attr)
    yield from _with_device(context, node, "torch.autocast" if name == "autocast" else f"torch.amp.{name}")


def _with_device(context: Context, node: ast.expr, name: str) -> Iterator[Edit]:
    """The call of an old name, with its device, under its new name (empty: it keeps its name)."""
    device, kind = _named(context, node) or ("cuda", "autocast")
    call, quoted = context.tree.parent[node], context.quoted(device)
    if _is_decorator(context, node) and kind.startswith("custom"):
        yield Replace(node, f"{name or '{0}'}(device_type={quoted})", () if name else (node,))
        return
    if _is_decorator(context, node):
        yield Replace(node, f"{name or '{0}'}({quoted})", () if name else (node,))
        return
    assert isinstance(call, ast.Call)
    if name:
        yield Replace(node, name)
    if kind.startswith("custom"):
        yield SetArgument(call, "device_type", quoted)
        return
    for position, keyword in enumerate(_POSITIONS[kind][: len(call.args)]):
        yield NameArgument(call, keyword, position)
    yield AddFirst(call, quoted)


def _import(context: Context, statement: ast.ImportFrom | ast.Import) -> Iterator[Change]:
    """An import of old names, where all that it gives is only called."""
    new = _moved(statement)
    if not new:
        return
    bound = {(a.asname or a.name) for a in statement.names}
    reads = [n for n in context.tree.nodes() if isinstance(n, ast.Name) and n.id in bound]
    used = [_outermost(context, n) for n in reads]
    if any(isinstance(n.ctx, ast.Store) for n in reads):
        return
    seen = [n for n in used if not _is_annotation(context, n)]
    if not seen or any(_named(context, n) is None or not _is_called(context, n) for n in seen):
        return
    edits: list[Edit] = [InsertBefore(statement, new), Drop(statement)]
    edits += [e for n in seen for e in _with_device(context, n, "")]
    yield Change(CODE, _WHY, context.tree.shown, statement, tuple(edits), without=_without(context))


def _outermost(context: Context, node: ast.Name) -> ast.expr:
    """`amp.autocast` of the name `amp`; the name itself, where it is what is meant."""
    parent = context.tree.parent[node]
    return parent if isinstance(parent, ast.Attribute) and _named(context, node) is None else node


def _moved(statement: ast.ImportFrom | ast.Import) -> str:
    """The import from where things are today; empty where it has none of them, or others, too."""
    names = ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in statement.names)
    if isinstance(statement, ast.Import):
        only = statement.names[0]
        old = only.name in ("torch.cuda.amp", "torch.cpu.amp") and only.asname and len(statement.names) == 1
        return f"import torch.amp as {only.asname}" if old else ""
    if statement.level:
        return ""
    if statement.module in ("torch.cuda.amp", "torch.cpu.amp") and all(a.name in _POSITIONS for a in statement.names):
        return f"from torch.amp import {names}"
    homes = ("torch.cuda.amp.autocast_mode", "torch.cuda.amp.grad_scaler", "torch.cpu.amp.autocast_mode", "torch.cpu.amp.grad_scaler")
    if statement.module in homes and all(a.name in _POSITIONS for a in statement.names):
        return f"from torch.amp import {names}"
    if statement.module in ("torch.cuda", "torch.cpu") and [a.name for a in statement.names] == ["amp"]:
        return f"from torch import {names}"
    return ""
