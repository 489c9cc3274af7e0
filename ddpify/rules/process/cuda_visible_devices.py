"""Leave the choice of GPUs to the launcher.

What it does: an assignment to `os.environ["CUDA_VISIBLE_DEVICES"]` is skipped when a launcher started the script; its value moves
    to the run command, with as many processes as it names devices. What reads the variable afterwards gets the value that the
    script chose.
Why: every rank would see the same devices whichever ones it was started for.
Safety: safe; without a launcher nothing changes. With mp.spawn the script itself is the launcher, and its choice stays.
References: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace, Under
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
        "reading another variable",
        'order = os.environ.get("CUDA_DEVICE_ORDER", "")\n',
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
    Example(
        "a choice of devices that is counted",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\n'
        'number = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))\n',
        'if "LOCAL_RANK" not in os.environ:\n'
        '    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\n'
        'number = len("0,1".split(","))\n',
        frame="start",
    ),
)  # fmt: skip

_READ = "under a launcher, this variable is what the run command sets, if it does: what the script makes of its choice is read from that"


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
        yield from _read_again(context, node)
    for call in context.tree.nodes():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("setdefault", "putenv", "update"):
            named = any(isinstance(n, ast.Constant) and n.value == "CUDA_VISIBLE_DEVICES" for n in walk(call))
            if named or any(k.arg == "CUDA_VISIBLE_DEVICES" for k in call.keywords):
                why = "every rank chooses the same devices here, over those that the launcher gives it"
                yield context.manual(CODE, call, why, f'if "LOCAL_RANK" not in os.environ: {ast.unparse(call)}')


def _read_again(context: Context, chosen: ast.Assign) -> Iterator[Change | Finding]:
    """What reads the variable after it was set: without the assignment it may find none."""
    alone = len(assignments(context)) == 1
    for read in _reads(context, chosen):
        if alone and _is_named_at(context, chosen, read):
            value = ast.unparse(chosen.value).replace("{", "{{").replace("}", "}}")
            yield Change(CODE, _READ, context.tree.shown, read, (Replace(read, value),))
        else:
            fix = "read the setting that the script chooses its devices by"
            yield context.manual(CODE, read, _READ, fix)


def _reads(context: Context, chosen: ast.Assign) -> Iterator[ast.Subscript | ast.Call]:
    """The expressions that ask for the variable's value and are not run before an assignment in the same function."""
    tree = context.facts.trees["__main__"]
    for node in (n for t in context.facts.trees.values() for n in t.nodes() if n in context.facts.after.trace.values):
        if isinstance(node, ast.Subscript):
            asked = isinstance(node.ctx, ast.Load) and last_name(node.value) == "environ" and _is_name(node.slice)
        else:
            asked = isinstance(node, ast.Call) and bool(node.args) and _is_name(node.args[0]) and _asks(node.func)
        if not asked or not isinstance(node, (ast.Subscript, ast.Call)):
            continue
        near = context.facts.in_main(node) and context.facts.in_main(chosen) and tree.function(node) is tree.function(chosen)
        if not near or tree.after(node, chosen):
            yield node


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "CUDA_VISIBLE_DEVICES"


def _asks(func: ast.expr) -> bool:
    """Whether a function is `os.environ.get` or `os.getenv`."""
    return last_name(func) == "getenv" or (isinstance(func, ast.Attribute) and func.attr == "get" and last_name(func.value) == "environ")


def _is_named_at(context: Context, chosen: ast.Assign, read: ast.AST) -> bool:
    """Whether the value that is assigned can be asked for again where the variable is read: it only names settings that are known there."""
    if not context.facts.in_main(read) or not context.facts.in_main(chosen):
        return False
    tree = context.facts.trees["__main__"]
    function, here = tree.function(chosen), tree.function(read)
    if any(not isinstance(n, (ast.Constant, ast.Name, ast.Attribute, ast.expr_context)) for n in walk(chosen.value)):
        return False
    if function is here:
        return True
    names = {n.id: context.facts.after.value(n).objs for n in walk(chosen.value) if isinstance(n, ast.Name)}
    given = {n.arg: context.facts.after.value(n).objs for n in walk(here) if isinstance(n, ast.arg)}
    bound = {n.id for n in walk(here) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own = {name for name in bound | given.keys() if name in bound or not names.get(name) or names[name] != given[name]}
    return isinstance(function, ast.Module) and own.isdisjoint(names)
