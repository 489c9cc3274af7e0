"""One name on all ranks for a folder or file that every rank uses.

What it does: a name made from the time, by chance or from what lies on the disk becomes rank 0's where other ranks read the file, list the
    folder or make it too; a number found by trying which folder is free becomes rank 0's after the loop.
Why: the clocks of the ranks differ, and a folder that one rank makes is counted by the next: each would look in a folder of its own.
Safety: safe where the name is made by a statement of its own that every rank runs; MANUAL elsewhere.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.broadcast_object_list
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import InsertAfter, InsertBefore, Replace
from ddpify.facts import disk
from ddpify.facts.disk import Touch
from ddpify.facts.model import NOTHING, Func, Lit, Origin, Tup, Value
from ddpify.facts.tree import own_statements
from ddpify.records import dataclass, field
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.io import run_folder
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.process.setup import works_at_import

CODE = "DDP506"
TITLE = "one name on all ranks"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a fixed name",
        'run = os.path.join("runs", "first")\n'
        "os.makedirs(run, exist_ok=True)\n",
        frame="start",
    ),
    Example(
        "a time that names nothing",
        "start = time.time()\n",
        frame="start",
    ),
    Example(
        "a dated folder that rank 0 alone uses",
        'name = time.strftime("%H-%M-%S")\n',
        frame="start",
    ),
    Example(
        "a dated folder that all ranks read",
        'name = os.path.join("runs", time.strftime("%H-%M-%S"))\n'
        "os.makedirs(name)\n"
        "files = os.listdir(name)\n",
        'name = same_on_all_ranks(os.path.join("runs", time.strftime("%H-%M-%S")))\n'
        "os.makedirs(name, exist_ok=True)\n"
        "files = os.listdir(name)\n",
        frame="start",
    ),
    Example(
        "the first number that is free",
        "number = 0\n"
        'while os.path.exists(f"run{number}"):\n'
        "    number += 1\n"
        'os.mkdir(f"run{number}")\n',
        "number = 0\n"
        'while os.path.exists(f"run{number}"):\n'
        "    number += 1\n"
        "number = same_on_all_ranks(number)\n"
        'os.makedirs(f"run{number}", exist_ok=True)\n',
        frame="start",
    ),
)  # fmt: skip
_MOMENTARY = ("time", "random", "listing")
_WHY = "rank 0's name, for all ranks use what it names"


@dataclass
class Names:
    """The statements that make names which all ranks must share, and the places where none was found."""

    made: list[ast.Assign | ast.With] = field(default_factory=list)
    found: dict[ast.stmt, list[str]] = field(default_factory=dict)
    unknown: list[ast.expr] = field(default_factory=list)
    defaults: list[ast.expr] = field(default_factory=list)


def common_names(context: Context) -> Names:
    """Which names must be rank 0's."""
    out = Names()
    touched = disk.touched(context.facts.after)
    for loop in _searches(context):
        names = _read_after(context, loop)
        if names and any(_leads_to(context, t.path, loop, names, 0) for t in touched):
            out.found[loop] = names
    new = {o for t in touched if t.kind in ("write", "make") for o in context.facts.after.value(t.path).origins if o.kind == "listing"}
    for touch in touched:
        value = context.facts.after.value(touch.path)
        if not momentary(value) or not _needed(context, touch) or (touch.kind != "make" and _walks(value, new)):
            continue
        for source in sources(context, touch.path):
            if source is None or not _everywhere(context, source):
                out.unknown.append(touch.path)
            elif source not in out.made:
                out.made.append(source)
    for statement in _searched(context):
        if any(_depends_on(context, t.path, statement, 0) for t in touched) and statement not in out.made:
            out.made.append(statement)
    for default, name in _defaults(context):
        if any(_needed(context, t) and _mentions(context, t.path, name, 0) for t in touched):
            kept = out.defaults if _everywhere(context, context.tree.statement(default)) else out.unknown
            kept.append(default)
    return out


def _searched(context: Context) -> Iterator[ast.Assign]:
    """The statements that take a name which a function of the project has found to be free."""
    facts, run = context.facts, context.facts.after
    for tree in facts.trees.values():
        loops: list[ast.While | ast.For] = [*tree.of(ast.While), *tree.of(ast.For)]
        for loop in (n for n in loops if n in run.trace.visited and _is_search(context, n)):
            function = tree.function(loop)
            names = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            given = [s.value for s in own_statements(function) if isinstance(s, ast.Return) and s.value is not None]
            if not any(isinstance(n, ast.Name) and n.id in names for value in given for n in ast.walk(value)):
                continue
            for call in run.trace.calls:
                statement = context.tree.statement(call.node) if facts.is_edited(call.node) else None
                called = any(_is(o, function) for o in call.func.objs)
                if (
                    called
                    and isinstance(statement, ast.Assign)
                    and _everywhere(context, statement)
                    and not context.broadcasts(statement.value)
                ):
                    yield statement


def _depends_on(context: Context, path: ast.expr, source: ast.Assign, depth: int) -> bool:
    """Whether a path is made from what a statement binds."""
    tree = context.tree
    if depth > 4 or path not in tree.parent:
        return False
    for node in ast.walk(path):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            stores = [tree.parent[n] for n in tree.nodes() if disk.stores(n, node)]
            later = [s for s in stores if isinstance(s, ast.Assign) and s is not source]
            if source in stores or any(_depends_on(context, s.value, source, depth + 1) for s in later):
                return True
    return False


def _defaults(context: Context) -> Iterator[tuple[ast.expr, str]]:
    """The momentary defaults of command-line options, with the option's name."""
    for call in context.calls():
        if call.method == "add_argument" and momentary(call.keywords.get("default", NOTHING)) and call.node.args:
            options = [a.value for a in call.node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            name = next((o for o in options if o.startswith("--")), options[0] if options else "")
            yield next(k.value for k in call.node.keywords if k.arg == "default"), name.lstrip("-").replace("-", "_")


def _mentions(context: Context, path: ast.expr, name: str, depth: int) -> bool:
    """Whether a path is made from an option."""
    tree = context.tree
    if depth > 4 or path not in tree.parent:
        return False
    for node in ast.walk(path):
        if isinstance(node, ast.Attribute) and node.attr == name:
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            for store in (n for n in tree.nodes() if disk.stores(n, node)):
                statement = tree.parent[store]
                if isinstance(statement, ast.Assign) and _mentions(context, statement.value, name, depth + 1):
                    return True
    return False


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Agree on names."""
    names, tree = common_names(context), context.tree
    helper = context.names["same_on_all_ranks"]
    for source in names.made:
        if isinstance(source, ast.With):
            yield _for_a_while(context, source)
            continue
        yield Change(
            CODE, _WHY, tree.shown, source, (Replace(source.value, f"{helper}({{0}})", (source.value,)),), needs=("same_on_all_ranks",)
        )
    for default in names.defaults:
        yield Change(CODE, _WHY, tree.shown, default, (Replace(default, f"{helper}({{0}})", (default,)),), needs=("same_on_all_ranks",))
    for loop, bound in names.found.items():
        if not _everywhere(context, loop):
            yield context.manual(CODE, loop, "each rank would find another free name", f"{bound[0]} = {helper}({bound[0]})")
            continue
        lines = "\n".join(f"{name} = {helper}({name})" for name in bound)
        yield Change(CODE, _WHY, tree.shown, loop, (InsertAfter(loop, lines),), needs=("same_on_all_ranks",))
    for path in dict.fromkeys(names.unknown):
        yield context.manual(
            CODE,
            path,
            "this name comes from the time, from chance or from a listing, so that every rank has its own",
            f"make it in a statement of its own: name = {helper}(...)",
        )
    yield from run_folder.findings(context, CODE)


def _for_a_while(context: Context, block: ast.With) -> Change | Finding:
    """`with TemporaryDirectory() as folder`: rank 0's folder, which stays until all ranks have done with it."""
    helper, dist = context.names["same_on_all_ranks"], context.names["dist"]
    names = [
        i.optional_vars.id
        for i in block.items
        if isinstance(i.optional_vars, ast.Name) and momentary(context.facts.after.value(i.optional_vars))
    ]
    loops = [n for n in ast.walk(block) if isinstance(n, (ast.For, ast.AsyncFor, ast.While))]
    inner = {s for loop in loops for s in ast.walk(loop) if isinstance(s, (ast.Break, ast.Continue))}
    ends = [s for s in own_statements(block) if isinstance(s, (ast.Return, ast.Break, ast.Continue)) and s not in inner]
    late = any(isinstance(n, ast.Call) for s in ends for n in ast.walk(s))
    if len(names) != 1 or late:
        why = "every rank makes a temporary folder of its own here, and reads what rank 0 has written to its own"
        return context.manual(CODE, block, why, f"use rank 0's: folder = {helper}(folder), and dist.barrier() before it is left")
    edits = [InsertBefore(block.body[0], f"{names[0]} = {helper}({names[0]})")]
    leave = f"{dist}.barrier()  # rank 0 removes the folder when all have done with it"
    edits += [InsertBefore(s, leave) for s in ends]
    last = [] if isinstance(block.body[-1], ast.Return) else [InsertAfter(block.body[-1], leave)]
    return Change(
        CODE, _WHY, context.tree.shown, block, (*edits, *last), (f"import torch.distributed as {dist}",), needs=("same_on_all_ranks",)
    )


def momentary(value: Value) -> bool:
    """Whether a value may differ from rank to rank because of when, or by what chance, it was made."""
    return any(o.kind in _MOMENTARY for o in value.origins)


def _needed(context: Context, touch: Touch) -> bool:
    """Whether a path that is touched must be the same on all ranks."""
    tree = context.tree
    entry = [n for n in (*touch.call.stack, touch.call.node) if n in tree.parent]
    if touch.kind not in ("read", "list", "make") or not entry:
        return False
    if guards_of(context).by_rank_zero(touch.call):
        return False
    statement = tree.statement(touch.call.node) if context.facts.is_edited(touch.call.node) else None
    alone = isinstance(statement, ast.Expr) and statement.value is touch.call.node and bool(touch.call.func.paths())
    return touch.kind != "make" or not alone


def _walks(path: Value, new: set[Origin]) -> bool:
    """Whether a path is one of those that were listed, not a new one made from them: all ranks list the same."""
    kinds = {o.kind for o in path.origins if o.kind in _MOMENTARY}
    return kinds == {"listing"} and not path.origins & new


def sources(context: Context, node: ast.expr) -> Iterator[ast.Assign | ast.With | None]:
    """The statements that make what is momentary in an expression; None where there is no statement of its own."""
    made = {o.of for o in context.facts.after.value(node).origins if o.kind in ("time", "drawn", "listing")}
    for call in sorted(made, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))) or [None]:
        yield from _makers(context, call, frozenset())


def _makers(context: Context, node: object, seen: frozenset[ast.AST]) -> Iterator[ast.Assign | ast.With | None]:
    """The statement that a momentary call is in; where it returns what it makes, or is not edited, those of the calls of its function."""
    run = context.facts.after
    tree = run.scopes.tree(node) if isinstance(node, ast.expr) else None
    statement = tree.statement(node) if tree is not None and isinstance(node, ast.expr) else None
    edited, named = statement in context.tree.parent, [i.optional_vars for i in getattr(statement, "items", ()) if i.optional_vars]
    if edited and isinstance(statement, ast.With) and any(momentary(run.value(name)) for name in named):
        yield statement
    elif edited and isinstance(statement, ast.Assign) and momentary(run.value(statement.value)):
        constant = all(isinstance(o, (Lit, Tup)) or getattr(o, "path", "") in ("list", "dict") for o in run.value(statement.value).objs)
        yield statement if constant else None
    elif tree is not None and statement is not None and statement not in seen and (not edited or isinstance(statement, ast.Return)):
        function = tree.function(statement)
        calls = dict.fromkeys(c.node for c in run.trace.calls if any(_is(o, function) for o in c.func.objs))
        for call in calls or [None]:
            yield from _makers(context, call, seen | {statement})
    else:
        yield None


def _is(obj: object, function: ast.AST) -> bool:
    return isinstance(obj, Func) and obj.node is function


def _everywhere(context: Context, statement: ast.stmt) -> bool:
    """Whether every rank runs a statement, when the process group is joined."""
    run, tree, main = context.facts.after, context.tree, context.main_block
    parts = [i.context_expr for i in statement.items] if isinstance(statement, ast.With) else [statement]
    calls = [c for part in parts for n in ast.walk(part) if isinstance(n, ast.Call) for c in run.calls(n)]
    if guards_of(context).guarded(statement) or any(guards_of(context).guarded_call(c.node, c.stack) for c in calls):
        return False
    if any(o.kind in ("batch", "decided", "rank") for c in calls for _, test in c.tests for o in test.origins):
        return False
    if main is None or works_at_import(context):
        return True
    inside = set(ast.walk(main))
    return bool(calls) and all((*c.stack, c.node)[0] in inside for c in calls) and statement in tree.parent


def _searches(context: Context) -> Iterator[ast.stmt]:
    """Loops that end at the first name which is not taken, and do nothing else."""
    loops: list[ast.While | ast.For] = [*context.tree.of(ast.While), *context.tree.of(ast.For)]
    for node in loops:
        if node in context.facts.after.trace.visited and _is_search(context, node):
            yield node


def _is_search(context: Context, loop: ast.While | ast.For) -> bool:
    """Whether a loop ends at the first name which is not taken, and does nothing else."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    tests += [s.test for s in loop.body if isinstance(s, ast.If) and any(isinstance(n, ast.Break) for n in s.body)]
    return any(_looks(context, test) for test in tests) and not loop.orelse and _only_names(loop)


def _looks(context: Context, test: ast.expr) -> bool:
    run = context.facts.after
    return any(t.kind == "look" for n in ast.walk(test) if isinstance(n, ast.Call) for c in run.calls(n) for t in disk.touches(c))


def _only_names(loop: ast.While | ast.For) -> bool:
    inner = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.stmt)]
    return all(isinstance(s, (ast.Assign, ast.AugAssign, ast.If, ast.Break, ast.Continue, ast.Pass)) for s in inner)


def _read_after(context: Context, loop: ast.stmt) -> list[str]:
    """The names that a loop binds and that are read after it."""
    bound = [n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    after = [n for n in ast.walk(context.tree.function(loop)) if isinstance(n, ast.Name) and context.tree.after(n, loop)]
    read = {n.id for n in after if isinstance(n.ctx, ast.Load)}
    agreed = {
        t.id
        for s in own_statements(context.tree.function(loop))
        if isinstance(s, ast.Assign) and context.tree.after(s, loop) and context.broadcasts(s.value)
        for t in s.targets
        if isinstance(t, ast.Name)
    }
    return [name for name in dict.fromkeys(bound) if name in read - agreed]


def _leads_to(context: Context, path: ast.expr, loop: ast.stmt, names: list[str], depth: int) -> bool:
    """Whether a path outside a loop is made from a name that the loop has found."""
    tree = context.tree
    if depth > 4 or path not in tree.parent or path in set(ast.walk(loop)):
        return False
    for node in ast.walk(path):
        if isinstance(node, ast.Name) and tree.function(node) is tree.function(loop):
            if node.id in names and tree.after(node, loop):
                return True
            stores = [tree.parent[n] for n in ast.walk(tree.function(loop)) if disk.stores(n, node)]
            if any(
                isinstance(s, ast.Assign) and tree.after(s, loop) and _leads_to(context, s.value, loop, names, depth + 1) for s in stores
            ):
                return True
    return False
