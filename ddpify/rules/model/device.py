"""Pin each rank to its own device.

What it does: `.cuda()` in all its spellings becomes `.to(device)`; an explicit device index becomes this rank's; `set_device` of the
    script's own goes, since the set-up has done it. A plain "cuda" chosen behind `torch.cuda.is_available()` stays: `set_device` makes
    it this rank's.
Why: an index that is the same everywhere puts all ranks on one GPU, and `.cuda()` needs a GPU.
Safety: safe; MANUAL where another module names an index.
References: https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_device.html
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from ddpify.edits import Drop, Replace
from ddpify.facts import library
from ddpify.facts.model import Class, Func, Lit, Part, just, paths_of
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument

CODE = "DDP204"
TITLE = "pin each rank to its own device"
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
        "a tensor",
        "x = torch.ones(8).cuda(non_blocking=True)\n",
        "x = torch.ones(8).to(device, non_blocking=True)\n",
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
)  # fmt: skip
_INDEXED = re.compile(r"^(cuda|gpu):\d+$")
_FILES = 200
_READ_FROM = ("yaml.", "json.", "omegaconf.", "toml", "configparser.", "settings", *library.ATTRIBUTE_DICTS, "types.SimpleNamespace")
_WHY = "each rank computes on its own device, and on the CPU where there is no GPU"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Edit device spellings in the entry; report indices elsewhere."""
    names, tree, run = context.names, context.tree, context.facts.after
    rank_text = f'f"cuda:{{{{{names["local_rank"]}}}}}"'
    for node in tree.nodes():
        if isinstance(node, ast.Call):
            func = node.func
            if (
                isinstance(func, ast.Attribute)
                and func.attr == "cuda"
                and not any(isinstance(o, (Func, Class)) for o in run.value(func).objs)
                and not run.value(func.value).paths() & {"torch"}
                and not _where_there_is_one(context, node)
            ):
                yield _moved(context, node, func)
            elif "torch.cuda.set_device" in run.value(func).paths() and not _ours(context, node):
                statement = tree.statement(node)
                if isinstance(statement, ast.Expr) and statement.value is node:
                    yield Change(CODE, "the set-up has chosen this rank's device", tree.shown, statement, (Drop(statement),))
            elif "torch.device" in run.value(func).paths() and _loaded_to(context, node) and _fixed(node):
                yield _to_own(context, node)
            elif "torch.device" in run.value(func).paths():
                yield from _device(context, node, rank_text)
            elif isinstance(func, ast.Attribute) and func.attr == "to":
                yield from _to(context, node)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _INDEXED.match(node.value)
            and not _in_device_call(context, node)
            and not isinstance(tree.parent.get(node), (ast.Expr, ast.Dict))
        ):
            if isinstance(tree.parent.get(node), (ast.JoinedStr, ast.FormattedValue)):
                continue
            if _loaded_to(context, node):
                yield _to_own(context, node)
                continue
            yield Change(CODE, _WHY, tree.shown, node, (Replace(node, rank_text),))
    for node in tree.nodes():
        if (
            isinstance(node, (ast.BinOp, ast.JoinedStr, ast.Call))
            and _built(node)
            and not _in_device_call(context, node)
            and not any(o.kind == "rank" for n in ast.walk(node) if isinstance(n, ast.expr) for o in run.value(n).origins)
        ):
            yield Change(CODE, _WHY, tree.shown, node, (Replace(node, rank_text),))
    yield from _configured(context)
    yield from _elsewhere(context)


def _configured(context: Context) -> Iterator[Change]:
    """A device that a configuration file names by its number: the file stays as it is, and what is read from it is this rank's."""
    run, tree = context.facts.after, context.tree
    numbered: bool | None = None
    for node in tree.nodes():
        if not isinstance(node, (ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
            continue
        told = [o for o in run.value(node).objs if isinstance(o, Part) and "device" in o.name.lower()]
        if not any(path.startswith(_READ_FROM) for o in told for path in paths_of(just(o))):
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


def _loaded_to(context: Context, node: ast.expr) -> bool:
    """Whether an expression says where `torch.load` puts what it reads."""
    up = context.tree.parent.get(node)
    call = context.tree.parent.get(up) if isinstance(up, ast.keyword) else up
    return (
        isinstance(call, ast.Call)
        and "torch.load" in context.facts.after.value(call.func).paths()
        and argument(call, 1, "map_location") is node
    )


def _fixed(node: ast.Call) -> bool:
    """Whether `torch.device(...)` names one device by its number."""
    first, index = argument(node, 0, "type"), argument(node, 1, "index")
    return isinstance(first, ast.Constant) and (bool(_INDEXED.match(str(first.value))) or (first.value == "cuda" and index is not None))


def _to_own(context: Context, node: ast.expr) -> Change:
    """A checkpoint goes to this rank's device, which may be the CPU."""
    name, needs = context.device_at(node)
    return Change(CODE, _WHY, context.tree.shown, node, (Replace(node, name),), needs=needs)


def _built(node: ast.expr) -> bool:
    """Whether an expression builds "cuda:N" from a number."""
    if isinstance(node, ast.BinOp):
        first: ast.expr | None = node.left if isinstance(node.op, (ast.Add, ast.Mod)) else None
    elif isinstance(node, ast.JoinedStr):
        first = node.values[0] if len(node.values) == 2 else None
    else:
        assert isinstance(node, ast.Call)
        first = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "format" else None
    return (
        isinstance(first, ast.Constant)
        and isinstance(first.value, str)
        and first.value in ("cuda:", "cuda:{}", "cuda:{0}", "cuda:%d", "cuda:%s")
    )


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
    texts = [context.names["device"], *(f"non_blocking={ast.unparse(a)}" for a in args), *(f"{k.arg}={ast.unparse(k.value)}" for k in rest)]
    return Change(
        CODE,
        _WHY,
        context.tree.shown,
        node,
        (Replace(node, "{0}.to(" + ", ".join(texts).replace("{", "{{").replace("}", "}}") + ")", (func.value,)),),
        needs=("device",),
    )


def _ours(context: Context, node: ast.Call) -> bool:
    return any(o.kind == "rank" for a in node.args for o in context.facts.after.value(a).origins)


def _device(context: Context, node: ast.Call, rank_text: str) -> Iterator[Change]:
    """Constants and formatted strings with an index inside `torch.device(...)`."""
    if any(o.kind == "rank" for n in ast.walk(node) if isinstance(n, ast.expr) for o in context.facts.after.value(n).origins):
        return
    first = argument(node, 0, "type")
    index = argument(node, 1, "index")
    if index is not None and isinstance(first, ast.Constant) and first.value == "cuda":
        yield Change(CODE, _WHY, context.tree.shown, node, (Replace(index, context.names["local_rank"]),))
        return
    if isinstance(first, ast.Constant) and first.value == "cuda" and not _conditional(context, node):
        yield Change(
            CODE, _WHY, context.tree.shown, node, (Replace(first, '"cuda" if torch.cuda.is_available() else "cpu"'),), ("import torch",)
        )
        return
    for part in _alternatives(first) if first is not None else ():
        literal = isinstance(part, ast.Constant) and (isinstance(part.value, int) or bool(_INDEXED.match(str(part.value))))
        if literal or (isinstance(part, (ast.JoinedStr, ast.BinOp, ast.Call)) and _names_index(part)):
            yield Change(CODE, _WHY, context.tree.shown, node, (Replace(part, rank_text),))


def _conditional(context: Context, node: ast.AST) -> bool:
    """Whether an expression is evaluated only where a test says so."""
    return any(isinstance(up, (ast.If, ast.IfExp, ast.BoolOp)) and not context.is_main(up) for up in context.tree.ancestors(node))  # type: ignore[arg-type]


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _alternatives(node.body)
        yield from _alternatives(node.orelse)
    else:
        yield node


def _names_index(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("cuda:") for n in ast.walk(node))


def _in_device_call(context: Context, node: ast.AST) -> bool:
    for up in context.tree.ancestors(node):
        if isinstance(up, ast.Call) and "torch.device" in context.facts.after.value(up.func).paths():
            return True
        if isinstance(up, ast.stmt):
            return False
    return False


def _to(context: Context, node: ast.Call) -> Iterator[Change]:
    """`.to("cuda")` without a fallback, and `.to(x)` where x is a number or a setting that names a GPU."""
    first = argument(node, 0, "device")
    if first is None:
        return
    objs = context.facts.after.value(first).objs
    number = any((isinstance(o, Lit) and type(o.value) is int) or (isinstance(o, Part) and re.search("gpu|cuda", o.name)) for o in objs)
    if number or (isinstance(first, ast.Constant) and first.value == "cuda"):
        yield Change(CODE, _WHY, context.tree.shown, node, (Replace(first, context.names["device"]),), needs=("device",))


_NAMING = (ast.Constant, ast.Call, ast.BinOp, ast.JoinedStr)


def _elsewhere(context: Context) -> Iterator[Finding]:
    """Device indices in the modules that are not edited."""
    visited = context.facts.after.trace.visited
    for tree in context.facts.trees.values():
        if tree in context.tree.trees:
            continue
        told: set[ast.stmt] = set()
        for node in tree.of(*_NAMING):
            if (statement := tree.statement(node)) not in visited or statement in told:
                continue
            if _names_one(context, node):
                told.add(statement)
                yield context.manual(
                    CODE, node, f"{ast.unparse(node)} is the same device on every rank", 'the device of the model, or plain "cuda"'
                )


def _names_one(context: Context, node: ast.AST) -> bool:
    """Whether an expression names one device by its number, whatever the rank."""
    run = context.facts.after
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(_INDEXED.match(node.value))
    if not isinstance(node, _NAMING):
        return False
    if not (_built(node) or (isinstance(node, ast.Call) and _takes_one(context, node))):
        return False
    parts = [run.value(n) for n in ast.walk(node) if isinstance(n, ast.expr)]
    return not any("torch.cuda.current_device" in v.paths() or v.of_kind("rank") or v.of_kind("local") for v in parts)


def _takes_one(context: Context, node: ast.Call) -> bool:
    """Whether a call is given one device by its number."""
    func = context.facts.after.value(node.func)
    if "torch.cuda.set_device" in func.paths():
        return True
    moved = isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and bool(node.args)
    own = any(isinstance(o, (Func, Class)) for o in func.objs)
    return (moved and not own and not isinstance(getattr(node.args[0], "value", 0), bool)) or (
        "torch.device" in func.paths() and _fixed(node)
    )
