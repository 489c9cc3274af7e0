"""Use one name on all ranks for a folder or file that every rank uses.

What it does: a name made from the time, by chance or from what lies on the disk becomes rank 0's where other ranks read the file, list the
    folder or make it too; a number found by trying which folder is free becomes rank 0's after the loop, and the number of a device in
    the name of a file that all ranks read is that of rank 0's device.
Why: the clocks of the ranks differ, and a folder that one rank makes is counted by the next: each would look in a folder of its own.
Safety: safe where the name is made by a statement of its own that every rank runs; MANUAL elsewhere.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.broadcast_object_list
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ddpify.edits import InsertAfter, InsertBefore, Replace
from ddpify.facts import disk
from ddpify.facts.disk import Touch
from ddpify.facts.model import NOTHING, Class, Lit, Module, New, Tup, Value
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, calls_in, inside, last_name, names_read, names_stored, outer_names, own_statements, walk
from ddpify.records import dataclass, field
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.data.prepare import preparation
from ddpify.rules.io import run_folder
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.io.momentary import is_needed, momentary, momentary_paths, own_origins
from ddpify.rules.process.setup import works_at_import

CODE = "DDP506"
TITLE = "use one name on all ranks"
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
Read = ast.Name | ast.Attribute
Follows = Callable[[Read, ast.Assign], bool]
_WHY = "all ranks use the name that rank 0 makes: from a clock or at random, each rank would make another"
_WHY_OF_DEVICE = "all ranks read the file that rank 0 has named after its device: from its own device, each would make another name"


@dataclass
class Names:
    """What makes names that all ranks must share: statements, loops that find them, defaults of options, numbers of devices in a path;
    attributes that hold one, each with the first statement that reads it; and paths made in another way."""

    statements: list[ast.Assign | ast.With] = field(default_factory=list)
    loops: dict[ast.stmt, list[str]] = field(default_factory=dict)
    unknown: list[ast.expr] = field(default_factory=list)
    defaults: list[ast.expr] = field(default_factory=list)
    of_devices: list[ast.expr] = field(default_factory=list)
    held: dict[str, ast.stmt] = field(default_factory=dict)


def common_names(context: Context) -> Names:
    """Which names must be rank 0's."""
    touched, prepared = [*disk.touched(context.facts.after), *_named_to_others(context)], preparation(context)
    out = Names(loops=_found_free(context, touched))
    for path in momentary_paths(context, touched):
        for source in sources(context, path):
            if source is None or not _everywhere(context, source):
                held = held_names(context, path)
                out.held |= held or {}
                out.unknown += [path] if held is None else []
            elif source not in out.statements and not prepared.holds(source):  # which ranks run in turn, each with a name of its own
                out.statements.append(source)
    for statement in _searched(context):
        if any(_depends_on(context, t.path, statement) for t in touched) and statement not in out.statements:
            out.statements.append(statement)
    for default, name in _defaults(context):
        if any(is_needed(context, t) and _mentions(context, t.path, name) for t in touched):
            kept = out.defaults if _everywhere(context, context.tree.statement(default)) else out.unknown
            kept.append(default)
    _add_named_after_devices(context, touched, out)
    return out


def _named_to_others(context: Context) -> list[Touch]:
    """Momentary paths of files which the script writes, that are handed to another program or to what nobody has described."""
    run, paths = context.facts.after, disk.Paths(context.facts)
    handed = [t for t in disk.handed(run) if momentary(run, run.value(t.path))]
    written = [t for t in disk.touched(run) if t.kind == "write"] if handed else []
    return [t for t in handed if any(disk.names(paths.of(t), paths.of(file)) for file in written)]


def held_names(context: Context, path: ast.expr) -> dict[str, ast.stmt] | None:
    """The attributes that hold what is momentary in a path, as settings do since they were imported: each with the statement of the entry
    that reads it first, but where ranks agree on it there already. None where something else is momentary."""
    run, out, found = context.facts.after, dict[str, ast.stmt](), False
    for read in _read_by(context, path):
        made = [s for s in _assignments(context, read) if momentary(run, run.value(s.value)) and not context.broadcasts(s.value)]
        if not momentary(run, run.value(read)) or made:
            continue
        first = _first_to_read(context, read) if isinstance(read, ast.Attribute) else None
        if first is None:
            return None
        found, (name, statement) = True, first
        if not (isinstance(statement, ast.Assign) and context.broadcasts(statement.value)):
            out[name] = statement
    return out if found else None


def _first_to_read(context: Context, read: ast.Attribute) -> tuple[str, ast.stmt] | None:
    """An attribute of one class, module or instance, as the statement names it that reads it first, in the function that calls all others
    which do so; None where there is no such function."""
    run, tree, holder = context.facts.after, context.tree, context.facts.after.value(read.value).objs
    if len(holder) != 1 or not all(isinstance(o, (Class, Module)) or (isinstance(o, New) and o.cls is not None) for o in holder):
        return None
    reads = [n for n in tree.of(ast.Attribute) if n.attr == read.attr and run.value(n.value).objs & holder]
    functions = dict.fromkeys(map(tree.function, reads))
    for function in functions:
        own = [n for n in reads if tree.function(n) is function]
        body = function.body if isinstance(function, ast.FunctionDef) else []
        first = next((s for s in body if any(n in own for n in walk(s))), None)
        names = {context.source(n) for n in own if isinstance(n.value, ast.Name)}
        if first is None or len(names) != 1 or not all(isinstance(n.value, ast.Name) for n in own):
            continue
        agreed = isinstance(first, ast.Assign) and context.broadcasts(first.value)
        if (agreed or _everywhere(context, first)) and all(f is function or _is_run_after(context, f, first) for f in functions):
            return names.pop(), first
    return None


def _is_run_after(context: Context, function: ast.AST, first: ast.stmt) -> bool:
    """Whether a function runs only in calls that come after a statement of another function."""
    tree, outer = context.tree, context.tree.function(first)
    calls = context.facts.after.calls_to(function)
    after = (any(n in tree.parent and tree.function(n) is outer and tree.after(n, first) for n in (*c.stack, c.node)) for c in calls)
    return bool(calls) and all(after)


def _add_named_after_devices(context: Context, touched: list[Touch], out: Names) -> None:
    """Add the paths with the number of a device that all ranks read; where they look for them first, each would look for its own."""
    found = [t for t in touched if _names_device(context, t.path)]
    alone = [t for t in found if guards_of(context).guarded_call(t.call.node, t.call.stack)]
    looked = any(t.kind == "look" for t in found if t not in alone)
    for path in dict.fromkeys(t.path for t in found if is_needed(context, t)):
        agreed = not looked and context.facts.is_edited(path) and _everywhere(context, context.tree.statement(path))
        (out.of_devices if agreed else out.unknown).append(path)


def _names_device(context: Context, path: ast.expr) -> bool:
    """Whether a path is made from the text of a device with a number, which is another on each rank."""
    if context.broadcasts(path):
        return False
    tree = context.tree
    before = _read_by(context, path, lambda read, source: tree.after(read, source))  # not `state = torch.load(state, map_location=device)`
    reads = (r for r in before if not (isinstance(up := tree.parent[r], ast.Attribute) and up.attr == "type"))
    made = (o.node for r in reads for o in context.facts.after.value(r).instances() if o.path == "torch.device")
    return any(isinstance(n, ast.Call) and not _is_plain_device(n) for n in made)


def _is_plain_device(call: ast.Call) -> bool:
    """Whether `torch.device(...)` is given nothing but "cuda" and "cpu"."""
    texts = {n.value for a in call.args for n in walk(a) if isinstance(n, ast.Constant)}
    return len(call.args) == 1 and not call.keywords and bool(texts) and texts <= {"cuda", "cpu"}


def _found_free(context: Context, touched: list[Touch]) -> dict[ast.stmt, list[str]]:
    """The loops that find a name which is free, and that a file is then called by, with the names that they bind."""
    bound = {loop: _read_after(context, loop) for loop in _searches(context, context.tree)}
    return {loop: names for loop, names in bound.items() if any(_leads_to(context, t.path, loop, names) for t in touched)}


def _searched(context: Context) -> Iterator[ast.Assign]:
    """The statements that take a name which a function of the project has found to be free."""
    trees, calls = context.facts.trees.values(), context.facts.after.trace.calls
    searching = {tree.function(loop) for tree in trees for loop in _searches(context, tree) if _returns(tree.function(loop), loop)}
    for call in calls:
        if context.facts.is_edited(call.node) and call.func.functions() & searching:
            statement = context.tree.statement(call.node)
            if isinstance(statement, ast.Assign) and _everywhere(context, statement) and not context.broadcasts(statement.value):
                yield statement


def _returns(function: ast.AST, loop: ast.stmt) -> bool:
    """Whether a function returns what a loop in it binds."""
    returned = {n.id for s in own_statements(function) if isinstance(s, ast.Return) for n in names_read(s)}
    return any(n.id in returned for n in names_stored(loop))


def _placing(context: Context, call: ast.Call) -> Iterator[ast.expr]:
    """What of a call only says on which device tensors are to lie: it gives the same numbers and names wherever that is."""
    called = context.facts.after.value(call.func)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and not called.functions():
        yield from call.args
    paths = called.paths()
    if paths and all(path.startswith("torch.") for path in paths):
        yield from (k.value for k in call.keywords if k.arg in ("map_location", "device"))
        yield from call.args[1:2] if "torch.load" in paths else ()


def _read_by(context: Context, path: ast.expr, follows: Follows = lambda read, source: True) -> Iterator[Read]:
    """The names and attributes that a path is made from, through the assignments that `follows` admits."""
    todo, seen = [path], set[ast.expr]()
    while todo:
        made = todo.pop()
        if made in seen or not context.facts.is_edited(made):
            continue
        seen.add(made)
        placing = {n for call in calls_in(made) for part in _placing(context, call) for n in walk(part)}
        for node in walk(made):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and node not in placing:
                yield node
                todo += [source.value for source in _assignments(context, node) if follows(node, source)]


def _assignments(context: Context, read: Read) -> list[ast.Assign]:
    """The assignments of a name, those of its function where that stores it, or to attributes of that name, in the edited files."""
    found = context.once(_all_assignments).get((type(read), last_name(read)), [])
    function = context.tree.function(read)
    own = {n.id for n in names_stored(function)} - outer_names(function) if isinstance(function, ast.FunctionDef) else set()
    return [s for s in found if context.tree.function(s) is function] if isinstance(read, ast.Name) and read.id in own else found


def _all_assignments(context: Context) -> dict[tuple[type, str], list[ast.Assign]]:
    """The assignments in the edited files, by the name, or the attribute of that name, that each binds."""
    out: dict[tuple[type, str], list[ast.Assign]] = {}
    nodes: list[Read] = context.tree.of(ast.Name, ast.Attribute)
    for node in nodes:
        if isinstance(node.ctx, ast.Store) and isinstance(statement := context.tree.parent[node], ast.Assign):
            out.setdefault((type(node), last_name(node)), []).append(statement)
    return out


def _depends_on(context: Context, path: ast.expr, source: ast.Assign) -> bool:
    """Whether a path is made from what a statement binds."""
    return any(source in _assignments(context, read) for read in _read_by(context, path))


def _defaults(context: Context) -> Iterator[tuple[ast.expr, str]]:
    """The momentary defaults of command-line options, with the option's name."""
    for call in context.calls():
        if call.method == "add_argument" and momentary(context.facts.after, call.keywords.get("default", NOTHING)) and call.node.args:
            options = [a.value for a in call.node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            name = next((o for o in options if o.startswith("--")), options[0] if options else "")
            yield next(k.value for k in call.node.keywords if k.arg == "default"), name.lstrip("-").replace("-", "_")


def _mentions(context: Context, path: ast.expr, name: str) -> bool:
    """Whether a path is made from an option."""
    return any(isinstance(read, ast.Attribute) and read.attr == name for read in _read_by(context, path))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Agree on names."""
    names, tree = context.once(common_names), context.tree
    helper = context.names["same_on_all_ranks"]
    for source in names.statements:
        if isinstance(source, ast.With):
            yield _for_a_while(context, source)
        else:
            edit = Replace(source.value, f"{helper}({{0}})", (source.value,))
            yield Change(CODE, _WHY, tree.shown, source, (edit,), needs=("same_on_all_ranks",))
    for made, why in (*((d, _WHY) for d in names.defaults), *((p, _WHY_OF_DEVICE) for p in names.of_devices)):
        edit = Replace(made, f"{helper}({{0}})", (made,))
        yield Change(CODE, why, tree.shown, made, (edit,), needs=("same_on_all_ranks",))
    for name, first in names.held.items():
        lines = f"{name} = {helper}({name})"
        yield Change(CODE, _WHY, tree.shown, first, (InsertBefore(first, lines),), needs=("same_on_all_ranks",))
    for loop, bound in names.loops.items():
        if not _everywhere(context, loop):
            yield context.manual(CODE, loop, "each rank would find another free name", f"{bound[0]} = {helper}({bound[0]})")
            continue
        lines = "\n".join(f"{name} = {helper}({name})" for name in bound)
        yield Change(CODE, _WHY, tree.shown, loop, (InsertAfter(loop, lines),), needs=("same_on_all_ranks",))
    for path in dict.fromkeys(names.unknown):
        why = "this name comes from the clock, a random number, a folder listing or a device: every rank would use another name"
        yield context.manual(CODE, path, why, f"make it in a statement of its own: name = {helper}(...)")
    yield from run_folder.findings(context, CODE)


def _for_a_while(context: Context, block: ast.With) -> Change | Finding:
    """`with TemporaryDirectory() as folder`: rank 0's folder, which stays until all ranks have done with it."""
    helper, dist = context.names["same_on_all_ranks"], context.names["dist"]
    names = [
        i.optional_vars.id
        for i in block.items
        if isinstance(i.optional_vars, ast.Name) and momentary(context.facts.after, context.facts.after.value(i.optional_vars))
    ]
    loops = [n for n in walk(block) if isinstance(n, (ast.For, ast.AsyncFor, ast.While))]
    inner = {s for loop in loops for s in walk(loop) if isinstance(s, (ast.Break, ast.Continue))}
    ends = [s for s in own_statements(block) if isinstance(s, (ast.Return, ast.Break, ast.Continue)) and s not in inner]
    late = any(map(calls_in, ends))
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


def sources(context: Context, node: ast.expr) -> Iterator[ast.Assign | ast.With | None]:
    """The statements that make what is momentary in an expression; None where there is no statement of its own."""
    run = context.facts.after
    calls = {o.of for o in own_origins(run, run.value(node)) if o.kind in ("time", "drawn", "listing")}
    for call in sorted(calls, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))) or [None]:
        yield from _makers(context, call, frozenset())


def _makers(context: Context, node: object, seen: frozenset[ast.AST]) -> Iterator[ast.Assign | ast.With | None]:
    """The statement that a momentary call is in; where it returns what it makes, or is not edited, those of the calls of its function."""
    run = context.facts.after
    tree = run.scopes.tree(node) if isinstance(node, ast.expr) else None
    statement = tree.statement(node) if tree is not None and isinstance(node, ast.expr) else None
    if tree is None or statement is None or statement in seen:
        yield None
    elif context.facts.is_edited(statement) and (binding := _momentary_binding(run, statement)):
        yield binding if isinstance(binding, ast.With) or _is_plain(run.value(binding.value)) else None
    elif isinstance(statement, ast.Return) or not context.facts.is_edited(statement):
        function = tree.function(statement)
        calls = dict.fromkeys(c.node for c in run.calls_to(function))
        for call in calls or [None]:
            yield from _makers(context, call, seen | {statement})
    else:
        yield None


def _momentary_binding(run: Run, statement: ast.stmt) -> ast.Assign | ast.With | None:
    """A statement, if it binds what is momentary."""
    match statement:
        case ast.With() if any(momentary(run, run.value(item.optional_vars)) for item in statement.items if item.optional_vars):
            return statement
        case ast.Assign() if momentary(run, run.value(statement.value)):
            return statement
    return None


def _is_plain(value: Value) -> bool:
    """Whether a value is a literal or a container, which can be broadcast."""
    return all(isinstance(o, (Lit, Tup)) or getattr(o, "path", "") in ("list", "dict") for o in value.objs)


def _everywhere(context: Context, statement: ast.stmt) -> bool:
    """Whether every rank runs a statement, when the process group is joined."""
    run, tree, main = context.facts.after, context.tree, context.main_block
    parts = [i.context_expr for i in statement.items] if isinstance(statement, ast.With) else [statement]
    calls = [c for part in parts for node in calls_in(part) for c in run.calls(node)]
    if guards_of(context).guarded(statement) or any(guards_of(context).guarded_call(c.node, c.stack) for c in calls):
        return False
    if any(o.kind in ("batch", "decided", "rank") for c in calls for _, test in c.tests for o in test.origins):
        return False
    if main is None or context.once(works_at_import):
        return True
    return bool(calls) and all((*c.stack, c.node)[0] in inside(main) for c in calls) and statement in tree.parent


def _searches(context: Context, tree: Tree) -> Iterator[ast.While | ast.For]:
    """Loops of some files that end at the first name which is not taken, and do nothing else."""
    loops: list[ast.While | ast.For] = [*tree.of(ast.While), *tree.of(ast.For)]
    return (loop for loop in loops if loop in context.facts.after.trace.visited and _is_search(context, loop))


def _is_search(context: Context, loop: ast.While | ast.For) -> bool:
    """Whether a loop ends at the first name which is not taken, and does nothing else."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    tests += [s.test for s in loop.body if isinstance(s, ast.If) and any(isinstance(n, ast.Break) for n in s.body)]
    return any(looks(context, test) for test in tests) and not loop.orelse and _only_names(loop)


def looks(context: Context, test: ast.expr) -> bool:
    """Whether a test asks for a file or a folder."""
    run = context.facts.after
    return any(t.kind == "look" for node in calls_in(test) for c in run.calls(node) for t in disk.touches(c))


def _only_names(loop: ast.While | ast.For) -> bool:
    inner = [n for s in loop.body for n in walk(s) if isinstance(n, ast.stmt)]
    return all(isinstance(s, (ast.Assign, ast.AugAssign, ast.If, ast.Break, ast.Continue, ast.Pass)) for s in inner)


def _read_after(context: Context, loop: ast.stmt) -> list[str]:
    """The names that a loop binds and that are read after it."""
    tree, function = context.tree, context.tree.function(loop)
    read = {n.id for n in names_read(function) if tree.after(n, loop)}
    later = [s for s in own_statements(function) if isinstance(s, ast.Assign) and tree.after(s, loop)]
    agreed = {t.id for s in later if context.broadcasts(s.value) for t in s.targets if isinstance(t, ast.Name)}
    return [name for name in dict.fromkeys(n.id for n in names_stored(loop)) if name in read - agreed]


def _leads_to(context: Context, path: ast.expr, loop: ast.stmt, names: list[str]) -> bool:
    """Whether a path outside a loop is made from a name that the loop has found."""
    tree, function = context.tree, context.tree.function(loop)

    def is_later(read: Read, node: ast.AST) -> bool:
        """Whether a name of the loop's function is read, and a node of that function comes after the loop."""
        return isinstance(read, ast.Name) and tree.function(read) is function and node in inside(function) and tree.after(node, loop)

    reads = _read_by(context, path, is_later) if path not in inside(loop) else ()
    return any(last_name(read) in names and is_later(read, read) for read in reads)
