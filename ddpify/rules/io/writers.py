"""Log metrics from rank 0 only.

What it does: an object that writes events, talks to a board (a SummaryWriter, Visdom) or is a database that is written to, is made on
    rank 0 and is None elsewhere, where every use of it, wherever it is passed, is guarded. A run of wandb, neptune or comet whose
    settings all ranks read is opened on all, and switched off on all but rank 0; then none of its calls needs a guard.
Why: N ranks would write N event files and start N runs.
Safety: MANUAL where other ranks read from the writer (`writer.log_dir`), or something else depends on whether there is one.
References: https://docs.pytorch.org/docs/stable/tensorboard.html, https://docs.wandb.ai/ref/python/init/
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from ddpify.edits import Replace, SetArgument
from ddpify.facts.library.effects import SWITCHES
from ddpify.facts.model import Call, Class, Ext, Func, New
from ddpify.facts.tree import Tree, arguments, calls_in, is_none, names_read, names_stored, outer_names, same
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument
from ddpify.rules.data import prepare
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.io.output_statements import Guards

CODE = "DDP505"
TITLE = "log metrics from rank 0 only"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a class of that name",
        "class Writer:\n"
        "    def add_scalar(self, name, value):\n"
        "        self.last = value\n"
        "\n"
        "\n"
        "writer = Writer()\n"
        'writer.add_scalar("lr", 0.1)\n',
        frame="end",
    ),
    Example(
        "a writer that there is none of",
        "writer = None\n",
        frame="end",
    ),
    Example(
        "a file that is read",
        'events = open("events.txt").read()\n',
        frame="end",
    ),
    Example(
        "a run that is only named",
        'name = "wandb.init"\n',
        frame="end",
    ),
    Example(
        "a class that is only named",
        "kind = SummaryWriter\n",
        frame="end",
    ),
    Example(
        "a writer",
        'writer = SummaryWriter("runs")\n'
        'writer.add_text("settings", str(args))\n',
        'writer = SummaryWriter("runs") if rank == 0 else None\n'
        "if rank == 0:\n"
        '    writer.add_text("settings", str(args))\n',
        frame="end",
    ),
    Example(
        "a writer that a setting asks for",
        "writer = SummaryWriter() if args.epochs > 1 else None\n"
        "if writer:\n"
        "    writer.close()\n",
        "writer = SummaryWriter() if rank == 0 and args.epochs > 1 else None\n"
        "if rank == 0 and writer:\n"
        "    writer.close()\n",
        frame="end",
    ),
    Example(
        "a run of wandb whose settings are read",
        "import wandb\n"
        "\n"
        'wandb.init(project="digits")\n'
        "rate = wandb.config.lr\n",
        "import wandb\n"
        "\n"
        'wandb.init(project="digits", mode=None if rank == 0 else "disabled")\n'
        "rate = wandb.config.lr\n",
        frame="end",
    ),
)  # fmt: skip
_NAMES = 4  # through so many names a value is followed
_STEERED = ("wandb.agent", "wandb.restore", "wandb.use_artifact")


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Make writers on rank 0, switch trackers off elsewhere."""
    guards = guards_of(context)
    for call in context.calls():
        path = next(iter(call.func.paths() & SWITCHES.keys()), None)
        if path is not None and guards.effects.switched:
            yield from _switch(context, call.node, path)
    for node, objs in _makers(context, guards).items():
        yield from _created_on_rank_zero(context, guards, node, objs)
    yield from _read_without_run(context, guards)
    for call in context.facts.after.trace.calls:
        steered = call.func.paths() & set(_STEERED)
        if steered and guards.effects.switched and context.facts.is_edited(call.node):
            yield context.manual(
                CODE, call.node, f"the runs of other ranks are switched off, and return nothing from `{min(steered)}`", _SHARE
            )


def _read_without_run(context: Context, guards: Guards) -> Iterator[Finding]:
    """What all ranks read of a tracker's run that rank 0 alone opens."""
    opened = {p.partition(".")[0] for c in context.calls() for p in c.func.paths() & SWITCHES.keys()}
    for node in context.tree.nodes() if opened else ():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not guards.silent(node):
            roots = {p.partition(".")[0] for p in context.facts.after.value(node).paths() if p.endswith((".config", ".run", ".summary"))}
            if any(f"{root}." not in guards.effects.switched for root in roots & opened):
                fix = "give the run's settings one by one, so that it can be switched off on other ranks"
                yield context.manual(
                    CODE, node, f"every rank reads `{ast.unparse(node)}`, and only rank 0 has a run: the others would fail", fix
                )
                return


def _makers(context: Context, guards: Guards) -> dict[ast.expr, set[New]]:
    """The calls of the entry that make a writer on every rank, themselves or by a function of another module, with what they make."""
    out: dict[ast.expr, set[New]] = {}
    run = context.facts.after
    loaded = {o for (owner, _), value in run.memory.items() if run.is_loader(owner) for o in value.instances()}  # what all ranks need
    for call in context.calls():
        for obj in call.result.instances():
            if not guards.effects.is_writer(obj) or guards.guarded(call.node) or obj in loaded or prepare.preparation(context).covers(call):
                continue
            inside = [n for n in obj.stack if context.facts.is_edited(n)]
            if obj.node is call.node or (
                inside[-1:] == [call.node] and not context.facts.is_edited(obj.node) and _only_creates_writer(guards, call)
            ):
                out.setdefault(call.node, set()).add(obj)
    return out


def _only_creates_writer(guards: Guards, call: Call) -> bool:
    """Whether a call of another module's function does nothing but make a writer."""
    return not guards.effects.has_side_effects(call.node) and len(call.result.objs) == len(call.result.instances())


def alone(context: Context, guards: Guards) -> frozenset[ast.AST]:
    """The calls of the entry that make a writer which rank 0 alone will make."""
    return frozenset(node for node, objs in _makers(context, guards).items() if _needs(context, guards, objs, []) is None)


_FOLDER, _ASKS_FOLDER = frozenset(("log_dir", "logdir")), frozenset(("get_logdir",))
_SHARE = "read it on rank 0, and send it to the others with dist.broadcast_object_list"


def _switch(context: Context, node: ast.Call, path: str) -> Iterator[Change]:
    """Switch a run off on all ranks but one."""
    name, off = SWITCHES[path]
    given = argument(node, None, name)
    rank = context.names["rank"]
    if given is not None and context.asks_for_rank(given):
        return
    if off == "True":
        template = f"{rank} != 0" if given is None else f"{{0}} or {rank} != 0"
    else:
        template = f"{'None' if given is None else '{0}'} if {rank} == 0 else {off}"
    edit = SetArgument(node, name, template, () if given is None else (given,))
    yield Change(CODE, "only rank 0's run is recorded; otherwise every rank would start a run", context.tree.shown, node, (edit,))


def _created_on_rank_zero(context: Context, guards: Guards, node: ast.expr, objs: set[New]) -> Iterator[Change | Finding]:
    """Make a writer on rank 0, where no other rank needs it."""
    tree, rank = context.tree, context.names["rank"]
    statement = tree.statement(node)
    if guards.only_outputs(statement) or (isinstance(statement, ast.Expr) and statement.value is node):
        return
    wins: list[ast.Assign | ast.expr] = []
    use = _needs(context, guards, objs, wins)
    if use is not None:
        if not objs <= guards.effects.boards:  # what these write is reported where they do
            yield context.manual(CODE, use, _needed(context, use), f"make it on rank 0 only, and guard this with `if {rank} == 0:`")
        return
    yield _on_rank_zero(context, node, objs)
    for win in wins:
        if isinstance(win, ast.Assign):
            edit = Replace(win.value, f"{{0}} if {rank} == 0 else None", (win.value,))
            yield Change(CODE, "only rank 0 writes this; otherwise the ranks would overwrite one another", tree.shown, win, (edit,))
        else:
            edit = Replace(win, f"{context.names['same_on_all_ranks']}({{0}} if {rank} == 0 else None)", (win,))
            yield Change(
                CODE, "only rank 0 has this, and broadcasts it to the other ranks", tree.shown, win, (edit,), needs=("same_on_all_ranks",)
            )


def _needs(context: Context, guards: Guards, objs: set[New], wins: list[ast.Assign | ast.expr]) -> ast.expr | None:
    """A place where other ranks need the writer; `wins` takes the assignments of what its methods give, and reads of its folder."""
    for tree in context.facts.trees.values():
        for use in tree.nodes():
            if (
                isinstance(use, (ast.Name, ast.Attribute))
                and isinstance(use.ctx, ast.Load)
                and context.facts.after.value(use).instances() & objs
                and not _harmless(context, guards, use, objs, wins)
            ):
                return use
    return None


def _otherwise(context: Context, parent: ast.AST) -> str:
    """What other ranks have in a writer's place: None, or what stood there before, where a library's module reads it: `sys.stdout`."""
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    of_library = isinstance(target, ast.Attribute) and any(isinstance(o, Ext) for o in context.facts.after.value(target.value).objs)
    return context.source(target) if isinstance(target, ast.Attribute) and of_library else "None"


def _entered(context: Context, objs: set[New]) -> list[ast.expr]:
    """Where a `with` enters a writer by its name, or one of two contexts: rank 0 alone has it there, and others one that does nothing."""
    withs: list[ast.With] = [w for tree in context.facts.trees.values() for w in tree.of(ast.With)]
    items = (item.context_expr for w in withs for item in w.items)
    return [e for e in items if not isinstance(e, ast.Call) and context.facts.after.value(e).instances() & objs]


def _on_rank_zero(context: Context, node: ast.expr, objs: set[New]) -> Change:
    """The change that makes a writer on rank 0 alone."""
    rank, parent = context.names["rank"], context.tree.parent[node]
    imports: tuple[str, ...] = ()
    if isinstance(parent, ast.IfExp) and parent.body is node and is_none(parent.orelse):
        loose = isinstance(parent.test, ast.BoolOp) and isinstance(parent.test.op, ast.Or)
        edit = Replace(parent.test, f"{rank} == 0 and ({{0}})" if loose else f"{rank} == 0 and {{0}}", (parent.test,))
    elif isinstance(parent, ast.withitem) or _entered(context, objs):
        edit = Replace(node, f"{{0}} if {rank} == 0 else nullcontext()", (node,))
        imports = ("from contextlib import nullcontext",)
    else:
        edit = Replace(node, f"{{0}} if {rank} == 0 else {_otherwise(context, parent)}", (node,))
    return Change(
        CODE, "only rank 0 writes this; otherwise the ranks would overwrite one another", context.tree.shown, node, (edit,), imports
    )


def _needed(context: Context, use: ast.expr) -> str:
    parent = context.facts.tree_of(use).parent[use]
    text = ast.unparse(parent if isinstance(parent, ast.Attribute) else use)
    return f"`{ast.unparse(use)}` writes files, and `{text}` is used here by every rank"


def _harmless(context: Context, guards: Guards, use: ast.expr, objs: set[New], wins: list[ast.Assign | ast.expr]) -> bool:
    """Whether a use of a writer is guarded, or only passes it on; assignments of what its calls give go to `wins`."""
    tree = context.facts.tree_of(use)
    parent = tree.parent[use]
    if entered := _entered(context, objs):
        asked = _asks_if_there(guards, tree, use) and any(same(use, e) for e in entered)  # what does nothing is there, too
        if asked or use in entered:
            return not asked
    if _passed_on(context, use, parent, tree.parent.get(parent)) or _asks_if_there(guards, tree, use) or _looked_up(guards, tree, use):
        return True
    if isinstance(use, ast.Name) and any(_within(context, use, o) for o in objs):
        return True
    if tree not in context.tree.trees:
        return False
    statement = tree.statement(use)
    if (
        guards.silent(use)
        or (isinstance(statement, ast.Expr) and guards.is_output_statement(statement))
        or _is_created_on_demand(context, guards, use)
    ):
        return True
    if isinstance(statement, ast.Assign) and _result(guards, statement) and statement.value is tree.parent[parent]:
        wins += [] if statement in wins else [statement]
        return True
    folder = _folder(tree, use)
    if folder is not None and isinstance(statement, ast.Assign) and _result(guards, statement):
        wins += [] if statement in wins else [statement]
        return True
    if folder is None or any(
        isinstance(up, (ast.If, ast.While, ast.IfExp)) and context.differs(context.facts.after.value(up.test)) for up in tree.ancestors(use)
    ):
        return False
    wins += [] if folder in wins else [folder]
    return True


def _folder(tree: Tree, use: ast.expr) -> ast.expr | None:
    """The text that a writer's folder is read as: `writer.log_dir`, `writer.file_writer.get_logdir()`."""
    read = tree.parent[use]
    while isinstance(read, ast.Attribute) and isinstance(read.ctx, ast.Load):
        above = tree.parent[read]
        if read.attr in _FOLDER:
            return read
        if read.attr in _ASKS_FOLDER and isinstance(above, ast.Call) and above.func is read:
            return above
        read = above
    return None


def _is_created_on_demand(context: Context, guards: Guards, use: ast.expr) -> bool:
    """Whether a use only asks if the writer is there, to make it where it is not: where it stays None, it is asked again."""
    tree = context.facts.tree_of(use)
    test = tree.parent[use]
    asks = isinstance(test, ast.Compare) and test.left is use and isinstance(test.ops[0], ast.Is) and is_none(test.comparators[0])
    branch = tree.parent[test]
    if not (asks or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))) or not isinstance(branch, ast.If):
        return False
    given = {s: context.facts.after.value(s.value).instances() for s in branch.body if isinstance(s, ast.Assign)}
    creations = [s for s, objs in given.items() if any(map(guards.effects.is_writer, objs))]
    others = [s for s in branch.body if s not in creations]
    alone = all(guards.only_outputs(s) or _only_names(guards, s) for s in others)
    return branch.test is test and not branch.orelse and bool(creations) and alone


def _only_names(guards: Guards, statement: ast.stmt) -> bool:
    """Whether a statement does nothing but name a value, which any rank may do."""
    named = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
    return named and not any(map(guards.effects.has_side_effects, calls_in(statement)))


def _asks_if_there(guards: Guards, tree: Tree, use: ast.expr) -> bool:
    """Whether a use only asks if there is a writer, before what rank 0 alone may do: `if writer is not None:`."""
    if tree not in guards.context.tree.trees:
        return False
    test: ast.AST = use
    match tree.parent[use]:
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[other]) as test if left is use and is_none(other):
            pass
        case _:
            test = use
    while isinstance(tree.parent[test], ast.BoolOp) and isinstance(tree.parent[test].op, ast.And):  # type: ignore[attr-defined]
        test = tree.parent[test]
    branch = tree.parent[test]
    if not isinstance(branch, ast.If) or branch.test is not test or branch.orelse or guards.required.any(test):
        return False
    return all(_of_rank_zero(guards, s, branch) for s in branch.body)


def _looked_up(guards: Guards, tree: Tree, use: ast.expr) -> bool:
    """Whether a method of the writer is looked up, and None is taken where there is no writer: `write = getattr(writer, name, None)`.

    Each read of its name must then ask whether it is there, before what rank 0 alone may do.
    """
    call = tree.parent[use]
    match call:
        case ast.Call(func=ast.Name(id="getattr"), args=[first, _, other], keywords=[]) if first is use and is_none(other):
            statement = tree.parent[call]
        case _:
            return False
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            scope = tree.function(statement)
        case _:
            return False
    if isinstance(scope, ast.Module) or name in outer_names(tree.root) or sum(n.id == name for n in names_stored(scope)) > 1:
        return False
    reads = [n for n in names_read(scope) if n.id == name]
    branches = {tree.statement(n) for n in reads if _asks_if_there(guards, tree, n)}
    return all(guards.silent(n) or branches & {tree.statement(n), *tree.ancestors(n)} for n in reads)


def _of_rank_zero(guards: Guards, statement: ast.stmt, branch: ast.If) -> bool:
    """Whether rank 0 alone may run a statement of a branch: it is output, or computes what only the branch reads."""
    if guards.only_outputs(statement):
        return True
    if isinstance(statement, ast.If):
        own = (*statement.body, *statement.orelse)
        return not guards.required.any(statement.test) and all(_of_rank_zero(guards, s, branch) for s in own)
    if not isinstance(statement, ast.Assign) or not all(isinstance(n, (ast.Name, ast.Tuple)) for n in statement.targets):
        return False
    return not guards.required.any(statement.value) and not guards.read_outside(statement, branch)


def _within(context: Context, use: ast.Name, obj: New) -> bool:
    """Whether a name stands in the class of an object (its `self`), or in a function that the object is made in: that is its own affair."""
    tree = context.facts.tree_of(use)
    if obj.cls is not None:
        return any(up is obj.cls.node for up in tree.ancestors(use))
    return tree not in context.tree.trees and obj.node in tree.parent and tree.function(use) is tree.function(obj.node)


def _passed_on(context: Context, use: ast.expr, parent: ast.AST, above: ast.AST | None) -> bool:
    """Whether a writer only goes on to another name: by an assignment, a return, or a call of one of the project's functions."""
    call = above if isinstance(parent, ast.keyword) else parent
    if isinstance(call, ast.Call) and call.func is not use:
        called = context.facts.after.value(call.func).objs
        return bool(called) and all(isinstance(o, (Func, Class)) for o in called)
    if isinstance(parent, ast.Tuple) and isinstance(above, (ast.Assign, ast.Return)):
        return above.value is parent  # whoever takes it apart has the writer by a name again
    return isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return)) and getattr(parent, "value", None) is use


def _only_shown(guards: Guards, read: ast.expr, depth: int = 0) -> bool:
    """Whether rank 0 alone reads a value, or all ranks give it names that rank 0 alone reads."""
    tree = guards.context.tree
    statement = tree.statement(read)
    if guards.silent(read):
        return True
    if depth > _NAMES or not isinstance(statement, ast.Assign) or not _only_names(guards, statement):
        return False
    scope, names = tree.function(statement), {t.id for t in statement.targets if isinstance(t, ast.Name)}
    if any(names & outer_names(file.root) for file in tree.trees):
        return False
    return all(_only_shown(guards, n, depth + 1) for n in names_read(scope) if n.id in names)


def _goes_to_writer(guards: Guards, read: ast.expr) -> bool:
    """Whether a value is only given to a writer's method, which rank 0 alone will call: `self.win = vis.line(win=self.win)`."""
    statement = guards.context.tree.statement(read)
    call = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(call, ast.Call) and _calls_writer(guards, call) and read in arguments(call)


def _tells_if_first(guards: Guards, read: ast.expr) -> bool:
    """Whether a value is only asked if it is there, where both ways do nothing but call a writer: `if self.win is None:`."""
    tree = guards.context.tree
    test = tree.parent[read]
    branch = tree.parent[test]
    if not isinstance(branch, ast.If) or branch.test is not test:
        return False
    asks = (
        isinstance(test, ast.Compare)
        and test.left is read
        and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        and is_none(test.comparators[0])
    )
    calls = (isinstance(s, ast.Assign) and len(s.targets) == 1 and _calls_writer(guards, s.value) for s in (*branch.body, *branch.orelse))
    return asks and all(calls)


def _calls_writer(guards: Guards, node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether an expression calls a method of a writer."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    objs = guards.context.facts.after.value(node.func.value).objs
    return bool(objs) and all(isinstance(o, New) and guards.effects.is_writer(o) for o in objs)


def _result(guards: Guards, statement: ast.Assign) -> bool:
    """Whether what a writer's method gives is only used by guarded statements: `win = vis.line(...)`."""
    tree = guards.context.tree
    target = statement.targets[0]
    if len(statement.targets) != 1 or guards.required.any(statement.value):
        return False
    if isinstance(target, ast.Attribute):
        reads = [n for n in tree.of(ast.Attribute) if n.attr == target.attr and isinstance(n.ctx, ast.Load)]
        elsewhere = any(
            n.attr == target.attr for t in guards.context.facts.trees.values() if t not in tree.trees for n in t.of(ast.Attribute)
        )
        return not elsewhere and all(_only_shown(guards, n) or _goes_to_writer(guards, n) or _tells_if_first(guards, n) for n in reads)
    if not isinstance(target, ast.Name):
        return False
    scope = tree.function(statement)
    if any(target.id in outer_names(file.root) for file in tree.trees):
        return False
    return all(guards.silent(n) for n in names_read(scope) if n.id == target.id)
