"""Pin each rank to its own device.

What it does: `.cuda()` in all its spellings becomes `.to(device)`; a number of a GPU becomes this rank's, wherever it reaches a device;
    `set_device` and `with torch.cuda.device(...)` of the script's own go, since the set-up has chosen the device, and so does what
    fails where there are several GPUs. A plain "cuda" chosen behind `torch.cuda.is_available()` stays: `set_device` makes it this rank's.
Why: an index that is the same everywhere puts all ranks on one GPU, and `.cuda()` needs a GPU.
Safety: safe; MANUAL where another module names an index.
References: https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_device.html
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from ddpify.edits import Drop, Edit, Replace, Unwrap
from ddpify.facts import library
from ddpify.facts.devices import INDEXED, Devices
from ddpify.facts.model import Class, Func, Lit, New, Part, just, paths_of
from ddpify.facts.tree import is_main, is_none, walk
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument
from ddpify.rules.model import one_device

CODE = "DDP204"
TITLE = "place each rank on its own device"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a choice that falls back to the CPU",
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n',
        frame="start",
    ),
    Example(
        "a method of that name on something else",
        "class Meter:\n"
        "    def cuda(self):\n"
        "        return self\n"
        "\n"
        "\n"
        "meter = Meter().cuda()\n",
        frame="start",
    ),
    Example(
        "a plain device in a table of settings",
        'defaults = {"device": "cuda:0", "epochs": 9}\n',
        frame="start",
    ),
    Example(
        "a question about the device",
        "on_gpu = torch.cuda.is_available() and torch.cuda.device_count() > 0\n",
        frame="start",
    ),
    Example(
        "a tensor for the CPU",
        'x = torch.ones(8).to("cpu")\n',
        frame="start",
    ),
    Example(
        "a block of the device of a tensor",
        "x = torch.ones(8)\n"
        "with torch.cuda.device_of(x):\n"
        "    y = x + 1\n",
        frame="start",
    ),
    Example(
        "a checkpoint that is read to the CPU",
        'state = torch.load("last.pt", map_location=lambda storage, place: storage)\n',
        frame="start",
    ),
    Example(
        "a question about the number of GPUs, by which nothing fails",
        "several = torch.cuda.device_count() > 1\n",
        frame="start",
    ),
    Example(
        "a tensor",
        "x = torch.ones(8).cuda(non_blocking=True)\n",
        "x = torch.ones(8).to(device, non_blocking=True)\n",
        frame="start",
    ),
    Example(
        "one GPU, whether there is one or not",
        'device = torch.device("cuda:1")\n',
        'device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() else "cpu")\n',
        frame="start",
    ),
    Example(
        "an index",
        'device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")\n',
        'device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() else "cpu")\n',
        frame="start",
    ),
    Example(
        "a device without a fallback",
        'x = torch.ones(8).to("cuda")\n',
        "x = torch.ones(8).to(device)\n",
        frame="start",
    ),
    Example(
        "a device that is set",
        "torch.cuda.set_device(0)\n"
        "torch.backends.cudnn.benchmark = True\n",
        "torch.backends.cudnn.benchmark = True\n",
        frame="start",
    ),
    Example(
        "a block of a device",
        "with torch.cuda.device(int(args.gpu)):\n"
        "    x = torch.ones(8, device='cuda')\n"
        "    y = x + 1\n",
        "x = torch.ones(8, device='cuda')\n"
        "y = x + 1\n",
        frame="start",
    ),
    Example(
        "what fails where there are several GPUs",
        "gpus = torch.cuda.device_count()\n"
        "assert gpus == 1\n"
        "if torch.cuda.device_count() > 1:\n"
        '    raise RuntimeError("this needs a single GPU")\n',
        "gpus = torch.cuda.device_count()\n",
        frame="start",
    ),
)  # fmt: skip
_FILES = 200
_READ_FROM = ("yaml.", "json.", "omegaconf.", "toml", "configparser.", *library.ATTRIBUTE_DICTS, "types.SimpleNamespace")
_WHY = "each rank computes on the GPU of its local rank, or on the CPU where there is no GPU"
_CHOSEN = "the set-up has chosen this rank's device"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Edit device spellings in the entry; report indices elsewhere."""
    devices = Devices(context.facts)
    done: set[ast.AST] = set()
    for node in context.tree.of(ast.Call):
        for change in _of_call(context, devices, node):
            done |= {n for edit in change.edits if isinstance(edit, Replace) for n in walk(edit.node) if n not in edit.holes}
            yield change
    for text in context.tree.of(*_NAMING):
        if text not in done and _is_text(context, devices, text):
            yield _change(context, text, Replace(text, _text(context)))
    yield from _configured(context)
    yield from one_device.demanded(context, CODE)
    yield from one_device.orders(context, CODE)
    yield from _elsewhere(context, devices)


def _of_call(context: Context, devices: Devices, node: ast.Call) -> Iterator[Change]:
    """What becomes of a call that is given a device, or moves something to one."""
    func, run = node.func, context.facts.after
    paths, given = run.value(func).paths(), devices.given(node)
    if "torch.load" in paths:
        if given is not None and _is_mapped(context, devices, given):
            yield _to_rank_device(context, given)
    elif isinstance(func, ast.Attribute) and func.attr == "cuda" and not paths:
        early = node in context.once(_placed_at_import)
        if early or (not _own(context, func) and not _is_loading(context, node) and not _where_there_is_one(context, node)):
            yield _moved(context, node, func)
    elif given is not None and devices.is_of_rank(given):
        return
    elif "torch.cuda.set_device" in paths:
        yield from _set(context, node, given)
    elif "torch.cuda.device" in paths:
        yield from _block(context, node, given)
    elif "torch.device" in paths:
        yield from _device(context, devices, node)
    elif given is not None and node in context.once(_placed_at_import):
        yield Change(CODE, _WHY, context.tree.shown, given, (Replace(given, context.names["device"]),), needs=("device",))
    elif given is not None and _takes_device(context, devices, node, given):
        yield _to_rank_device(context, given)


def _own(context: Context, func: ast.expr) -> bool:
    """Whether a method is the script's own."""
    return any(isinstance(o, (Func, Class)) for o in context.facts.after.value(func).objs)


def _change(context: Context, node: ast.expr, *edits: Edit, why: str = _WHY, imports: tuple[str, ...] = ()) -> Change:
    return Change(CODE, why, context.tree.shown, node, edits, imports)


def _text(context: Context) -> str:
    """This rank's device as a text, for a template."""
    return f'f"cuda:{{{{{context.names["local_rank"]}}}}}"'


def _takes_device(context: Context, devices: Devices, node: ast.Call, given: ast.expr) -> bool:
    """Whether a call is given a device that must become this rank's."""
    if devices.named(given) or devices.written(given):
        return True
    if "torch.set_default_device" in context.facts.after.value(node.func).paths():
        return _is_one(given)
    moves = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    return moves and isinstance(given, ast.Constant) and given.value == "cuda"


def _is_one(node: ast.expr | None) -> bool:
    """Whether an expression is the text of one device: `"cuda:1"`."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(INDEXED.match(node.value))


def _is_text(context: Context, devices: Devices, node: ast.expr) -> bool:
    """Whether an expression is a text of one device, which is this rank's from here on."""
    up = context.tree.parent[node]
    if isinstance(node, ast.Constant):
        return _is_one(node) and not isinstance(up, (ast.Expr, ast.Dict, ast.JoinedStr, ast.FormattedValue))
    return devices.built(node) and not devices.built(up)


def _configured(context: Context) -> Iterator[Change]:
    """A device that a configuration file names by its number: the file stays as it is, and what is read from it is this rank's."""
    run, tree = context.facts.after, context.tree
    numbered: bool | None = None
    for node in tree.nodes():
        if not isinstance(node, (ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
            continue
        settings = [o for o in run.value(node).objs if isinstance(o, Part) and "device" in o.name.lower()]
        if not any(path.startswith(_READ_FROM) for o in settings for path in paths_of(just(o))):
            continue
        up = tree.parent.get(node)
        if (
            isinstance(up, ast.keyword)
            or (isinstance(up, ast.Assign) and up.value is node)
            or (isinstance(up, ast.Call) and node in up.args)
        ):
            if isinstance(up, ast.Call) and run.value(up.func).paths() & {"print", "str", "repr"}:
                continue
            numbered = _numbered(context) if numbered is None else numbered
            if numbered:
                yield Change(CODE, _WHY, tree.shown, node, (Replace(node, '{0}.split(":")[0]', (node,)),))


def _numbered(context: Context) -> bool:
    """Whether a configuration file of the project names a device by its number."""
    folder = context.facts.project.entry.path.parent
    files = (p for end in ("yaml", "yml", "json", "toml", "ini", "cfg") for p in folder.rglob(f"*.{end}"))
    for file in itertools.islice(files, _FILES):
        try:
            if re.search(r"""[:=]\s*["']?cuda:\d""", file.read_text(encoding="utf-8", errors="replace")):
                return True
        except OSError:
            continue
    return False


def _is_loading(context: Context, node: ast.AST) -> bool:
    """Whether an expression is part of the `map_location` of `torch.load`."""
    calls = (up for up in context.tree.ancestors(node) if isinstance(up, ast.Call))
    return any("torch.load" in context.facts.after.value(call.func).paths() for call in calls)


def _is_mapped(context: Context, devices: Devices, place: ast.expr) -> bool:
    """Whether the `map_location` of `torch.load` is one device, by its number."""
    run = context.facts.after
    if devices.is_of_rank(place):
        return False
    if isinstance(place, ast.Constant):
        return _is_one(place)
    if isinstance(place, ast.Lambda):
        return any(isinstance(n, ast.Attribute) and n.attr == "cuda" for n in walk(place.body))
    if isinstance(place, ast.Call) and "torch.device" in run.value(place.func).paths():
        return _is_fixed(place)
    tables = [o for o in run.value(place).objs if isinstance(o, New) and o.path == "dict"]
    entries = [v for table in tables for v in run.of(table).values()]
    return any(isinstance(o, Lit) and INDEXED.match(str(o.value)) for v in entries for o in v.objs) or devices.written(place)


def _is_fixed(node: ast.Call) -> bool:
    """Whether `torch.device(...)` names one device by its number."""
    first, index = argument(node, 0, "type"), argument(node, 1, "index")
    return _is_one(first) or (isinstance(first, ast.Constant) and first.value == "cuda" and index is not None)


def _to_rank_device(context: Context, node: ast.expr) -> Change:
    """This rank's device, which may be the CPU, in the place of another."""
    name, needs = context.device_at(node)
    return Change(CODE, _WHY, context.tree.shown, node, (Replace(node, name),), needs=needs)


def _where_there_is_one(context: Context, node: ast.Call) -> bool:
    """Whether `.cuda()` only runs where there is a GPU: then it is this rank's, which the set-up has chosen."""
    inner: ast.AST = node
    for up in context.tree.ancestors(node):
        if isinstance(up, ast.If) and inner in up.body:
            tests = up.test.values if isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And) else [up.test]
            if any(isinstance(t, ast.Call) and "torch.cuda.is_available" in context.facts.after.value(t.func).paths() for t in tests):
                return not node.args and not node.keywords
        inner = up
    return False


def _moved(context: Context, node: ast.Call, func: ast.Attribute) -> Change:
    rest = [k for k in node.keywords if k.arg not in ("device",)]
    args = node.args[1:]
    unnamed = context.is_early(node) or (context.own_device is not None and not context.facts.in_main(node))
    device = context.device_at(node)[0] if unnamed else context.names["device"]
    texts = [device, *(f"non_blocking={ast.unparse(a)}" for a in args), *(f"{k.arg}={ast.unparse(k.value)}" for k in rest)]
    edit = Replace(node, "{0}.to(" + ", ".join(texts).replace("{", "{{").replace("}", "}}") + ")", (func.value,))
    return Change(CODE, _WHY, context.tree.shown, node, (edit,), needs=("device",))


def _set(context: Context, node: ast.Call, given: ast.expr | None) -> Iterator[Change]:
    """`torch.cuda.set_device(...)`: the set-up has done that."""
    statement = context.tree.statement(node)
    if isinstance(statement, ast.Expr) and statement.value is node:
        yield Change(CODE, _CHOSEN, context.tree.shown, statement, (Drop(statement),))
    elif given is not None:
        yield _change(context, node, Replace(given, context.names["local_rank"]))


def _block(context: Context, node: ast.Call, given: ast.expr | None) -> Iterator[Change]:
    """`with torch.cuda.device(...):`: this rank's device is the current one already."""
    item = context.tree.parent.get(node)
    if isinstance(item, ast.withitem):
        block = context.tree.parent[item]
        alone = isinstance(block, ast.With) and len(block.items) == 1 and item.optional_vars is None
        if alone and isinstance(block, ast.With):
            yield Change(CODE, _CHOSEN, context.tree.shown, block, (Unwrap(block),))
        else:
            yield _change(context, node, Replace(node, "nullcontext()"), why=_CHOSEN, imports=("from contextlib import nullcontext",))
    elif given is not None:
        here = f"{context.names['local_rank']} if torch.cuda.is_available() else -1"
        yield _change(context, node, Replace(given, here), imports=("import torch",))


def _device(context: Context, devices: Devices, node: ast.Call) -> Iterator[Change]:
    """`torch.device(...)` with a number, or without a fallback for where there is no GPU."""
    run, up = context.facts.after, context.tree.parent.get(node)
    first, index = argument(node, 0, "type"), argument(node, 1, "index")
    if first is None or devices.is_of_rank(node) or (isinstance(up, ast.Attribute) and up.attr == "type"):
        return
    plain = isinstance(first, ast.Constant) and first.value == "cuda"
    if index is not None and not is_none(index):
        if plain or not any(isinstance(o, Lit) and o.value == "cpu" for o in run.value(first).objs):
            yield _change(context, node, Replace(index, context.names["local_rank"]))
    elif plain and not _conditional(context, node) and node not in context.once(_used_at_import):
        yield _change(context, node, Replace(first, '"cuda" if torch.cuda.is_available() else "cpu"'), imports=("import torch",))
    elif _is_one(first) and not _conditional(context, node):
        text = f'{_text(context)} if torch.cuda.is_available() else "cpu"'
        yield _change(context, node, Replace(first, text), imports=("import torch",))
    else:
        early = node in context.once(_used_at_import)
        for part in _alternatives(first):
            if _is_indexed(devices, part) or (early and isinstance(part, ast.Constant) and part.value == "cuda"):
                yield _change(context, node, Replace(part, _text(context)))
            elif isinstance(part, (ast.Name, ast.Call)) and not run.value(part).objs:  # whatever it is, its kind is this rank's
                yield _change(context, node, Replace(part, "torch.device({0}).type", (part,)), imports=("import torch",))


def _used_at_import(context: Context) -> set[ast.AST]:
    """The calls of torch.device that give what a module puts on its device as it is imported: ranks have not chosen theirs by then."""
    run, devices = context.facts.after, Devices(context.facts)
    places = [c for c in run.trace.calls if c.stack and isinstance(c.stack[0], ast.Module) and "torch.device" not in c.func.paths()]
    given = [g for c in places if (g := devices.given(c.node)) is not None]
    return {o.node for g in given for o in run.value(g).instances() if o.path == "torch.device" and not context.is_cpu(o)}


def _placed_at_import(context: Context) -> set[ast.AST]:
    """The calls that put something on "cuda" as a module is imported: ranks have not chosen theirs by then."""
    run, devices, found = context.facts.after, Devices(context.facts), set[ast.AST]()
    for call in run.trace.calls:
        if not call.stack or not isinstance(call.stack[0], ast.Module) or not isinstance(call.node, ast.Call):
            continue
        func, given = call.node.func, devices.given(call.node)
        moved = isinstance(func, ast.Attribute) and func.attr == "cuda" and not call.func.paths() and not _own(context, func)
        if given is None and moved:
            found.add(call.node)
        elif given is not None and "torch.device" not in call.func.paths():
            found |= {call.node for o in run.value(given).objs if isinstance(o, Lit) and o.value == "cuda"}
    return found


def _is_indexed(devices: Devices, node: ast.expr) -> bool:
    """Whether an expression names a device by its number."""
    if _is_one(node) or (isinstance(node, ast.Constant) and isinstance(node.value, int)):
        return True
    text = isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)) and _holds_index(node)
    return text or devices.named(node) or devices.written(node)


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether an expression is evaluated only where a test says so."""
    return any(isinstance(up, (ast.If, ast.IfExp, ast.BoolOp)) and not is_main(up) for up in context.tree.ancestors(node))


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _alternatives(node.body)
        yield from _alternatives(node.orelse)
    else:
        yield node


def _holds_index(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("cuda:") for n in walk(node))


_NAMING = (ast.Constant, ast.Call, ast.BinOp, ast.JoinedStr)


def _elsewhere(context: Context, devices: Devices) -> Iterator[Finding]:
    """Device indices in the modules that are not edited."""
    visited = context.facts.after.trace.visited
    for name, tree in context.facts.trees.items():
        if tree in context.tree.trees or context.facts.project.is_ours(name):
            continue
        reported: set[ast.stmt] = set()
        for node in tree.of(*_NAMING):
            if (statement := tree.statement(node)) not in visited or statement in reported:
                continue
            early = node in context.once(_used_at_import) or node in context.once(_placed_at_import)
            if early or _names_one(context, devices, node):
                reported.add(statement)
                why = f"{ast.unparse(node)} is the same device on every rank"
                yield context.manual(CODE, node, why, 'the device of the model, or plain "cuda"')


def _names_one(context: Context, devices: Devices, node: ast.expr) -> bool:
    """Whether an expression names one device by its number, whatever the rank."""
    if isinstance(node, ast.Constant):
        return _is_one(node)
    if not isinstance(node, ast.Call) or devices.built(node):
        return devices.built(node)
    paths, given = context.facts.after.value(node.func).paths(), devices.given(node)
    set_here = bool(paths & {"torch.cuda.set_device", "torch.cuda.device"})
    named = set_here or (given is not None and devices.named(given)) or ("torch.device" in paths and _is_fixed(node))
    return named and not devices.is_of_rank(node)
