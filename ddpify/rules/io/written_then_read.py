"""Let the ranks wait for a file that rank 0 wrote.

What it does: a barrier before all ranks read what rank 0 alone has written earlier in the same run: a checkpoint, an array, a table, a log.
    The same where rank 0 empties a folder that all ranks then make again.
Why: rank 0 is still writing while the others look for the file.
Safety: safe where every rank comes to the read; MANUAL under a condition that ranks may not share. Paths that are known to differ, and
    reads on rank 0 alone, need no barrier.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html (save and load checkpoints)
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from ddpify.edits import InsertAfter, InsertBefore
from ddpify.facts import disk
from ddpify.facts.disk import Paths, Touch
from ddpify.facts.model import Call, Value
from ddpify.facts.tree import last_name
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.data import prepare
from ddpify.rules.io.guarded import guards_of

CODE = "DDP504"
TITLE = "wait for what rank 0 wrote"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a checkpoint of an earlier run",
        'state = torch.load("start.pt", map_location="cpu")\n',
        frame="start",
    ),
    Example(
        "a file that nothing here writes",
        'labels = torch.load("labels.pt")\n',
        frame="end",
    ),
    Example(
        "a file that numpy wrote in another run",
        'names = np.load("names.npy")\n',
        frame="end",
    ),
    Example(
        "a text beside others that are written",
        'settings = open("settings.txt").read().split()\n',
        frame="end",
    ),
    Example(
        "a question asked and answered before anything is written",
        'there = os.path.exists("names.npy")\n',
        frame="start",
    ),
    Example(
        "the checkpoint that training has written",
        'torch.save(model.state_dict(), "last.pt")\n'
        'model.load_state_dict(torch.load("last.pt", map_location="cpu"))\n',
        "if rank == 0:\n"
        '    torch.save(model.module.state_dict(), "last.pt")\n'
        "dist.barrier()\n"
        'model.module.load_state_dict(torch.load("last.pt", map_location="cpu"))\n',
        frame="end",
    ),
    Example(
        "an array that is written and read",
        'np.save("weights.npy", np.ones(3))\n'
        'other = np.load("other.npy")\n'
        'weights = np.load("weights.npy")\n',
        "if rank == 0:\n"
        '    np.save("weights.npy", np.ones(3))\n'
        'other = np.load("other.npy")\n'
        "dist.barrier()\n"
        'weights = np.load("weights.npy")\n',
        frame="start",
    ),
    Example(
        "a file that is looked for first and written then",
        'there = os.path.exists("ones.npy")\n'
        "if there:\n"
        '    ones = np.load("ones.npy")\n'
        "else:\n"
        "    ones = np.ones(3)\n"
        '    np.save("ones.npy", ones)\n',
        'there = os.path.exists("ones.npy")\n'
        "dist.barrier()\n"
        "if there:\n"
        '    ones = np.load("ones.npy")\n'
        "else:\n"
        "    ones = np.ones(3)\n"
        "    if rank == 0:\n"
        '        np.save("ones.npy", ones)\n',
        frame="start",
    ),
)  # fmt: skip


_READERS = frozenset("load open imread fromfile memmap read_csv read_pickle read_image loadtxt loadmat File".split())


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """A barrier between what rank 0 does to a file and what all ranks then do with it."""
    paths = Paths(context.facts)
    touched = disk.touched(context.facts.after)
    alone = [t for t in touched if t.kind in ("write", "remove") and _by_rank_zero(context, t)]
    barriers = [c for c in context.facts.after.trace.calls if "torch.distributed.barrier" in c.func.paths()]
    placed: dict[ast.stmt, int] = {}
    for touch in sorted((t for t in touched if t.kind != "remove" or t not in alone), key=lambda t: t.call.order):
        before = [t for t in alone if _waits(touch, t) and t.call.order < touch.call.last and _paths_overlap(paths, t, touch)]
        if not before or not _by_all(context, touch):
            continue
        where = _place(context, touch, before)
        if where is None or _has_barrier(context, where) or all(_fenced(context, t, touch, barriers, placed) for t in before):
            continue
        if any(_within(context, where, t) and not context.facts.is_edited(touch.call.node) for t in before):
            fix = f"{context.names['dist']}.barrier() before it, where all ranks come by"
            yield context.manual(CODE, touch.call.node, "rank 0 may still be writing what is read here", fix)
            continue
        if where not in placed:
            placed[where] = touch.call.order
            yield from _barrier(context, touch, where, before)
    for touch in touched:
        if touch.kind == "look" and context.facts.is_edited(touch.call.node):
            yield from _existence_checks(context, paths, touch, touched, alone)
    if _samples_are_read(context):
        yield from _prepared(context, [t for t in alone if t.kind == "write"], barriers)


def _samples_are_read(context: Context) -> bool:
    """Whether a data set of the project reads a file for each sample, which is done when a loader asks for it."""
    lazily = [f for tree in context.facts.trees.values() for f in tree.of(ast.FunctionDef) if f.name in ("__getitem__", "__iter__")]
    return any(isinstance(n, ast.Call) and last_name(n.func) in _READERS for f in lazily for n in ast.walk(f))


def _prepared(context: Context, written: list[Touch], barriers: list[Call]) -> Iterator[Change]:
    """A barrier after the data that rank 0 writes before the training, which loaders may read for each sample."""
    tree, seen = context.tree, set[ast.stmt]()
    trained = min((loop.backward.order for loop in context.facts.loops), default=0)
    for touch in written:
        nodes = [n for n in (*touch.call.stack, touch.call.node) if context.facts.is_edited(n)]
        if (
            not nodes
            or not touch.call.order < trained
            or any(touch.call.last < b.order < trained for b in barriers)
            or any(loop.node in context.facts.training_loops for loop in touch.call.loops)
        ):
            continue
        where = tree.statement(nodes[max((i for i, n in enumerate(nodes) if context.facts.in_main(n)), default=0)])
        around = [
            up for up in tree.ancestors(where) if isinstance(up, (ast.For, ast.While, ast.With, ast.If)) and up is not context.main_block
        ]
        where = around[-1] if around else where
        block = tree.block(where)
        after = block[block.index(where) + 1 :]
        if where in seen or (after and is_barrier(context, after[0])) or any(n in context.training for n in ast.walk(where)):
            continue
        seen.add(where)
        why = "rank 0 may still be writing what loaders read for each sample"
        yield Change(CODE, why, tree.shown, where, (InsertAfter(where, f"{context.names['dist']}.barrier()"),))


def _existence_checks(context: Context, paths: Paths, touch: Touch, touched: list[Touch], alone: list[Touch]) -> Iterator[Change]:
    """`there = os.path.exists(f)`, where rank 0 writes next what all ranks read if it is there: all ranks ask before it does."""
    tree = context.tree
    statement = tree.statement(touch.call.node)
    trained = min((loop.backward.order for loop in context.facts.loops), default=0)
    same = [t for t in touched if t.kind in ("read", "write") and disk.may_be_one(paths.of(t), paths.of(touch))]
    written = [t for t in same if t in alone and touch.call.order < t.call.order < trained]
    read = any(disk.one_format(w, r) for w in written for r in same if r.kind == "read")
    if not isinstance(statement, ast.Assign) or not read or not _by_all(context, touch) or not same_on_all_ranks(context, touch.call.tests):
        return
    block = tree.block(statement)
    at = block.index(statement) + 1
    if at < len(block) and is_barrier(context, block[at]):
        return
    yield Change(
        CODE,
        "all ranks look before rank 0 writes the file",
        tree.shown,
        statement,
        (InsertAfter(statement, f"{context.names['dist']}.barrier()"),),
    )


def _barrier(context: Context, touch: Touch, where: ast.stmt, before: list[Touch]) -> Iterator[Change | Finding]:
    """The barrier before a statement, where all ranks pass it."""
    emptied = all(t.kind == "remove" for t in before)
    if not same_on_all_ranks(context, touch.call.tests) or _lazily(context, where, touch):
        yield context.manual(
            CODE,
            touch.call.node,
            "rank 0 may still be writing what is read here",
            f"{context.names['dist']}.barrier() before it, where all ranks come by",
        )
        return
    yield Change(
        CODE,
        "rank 0 may still be emptying the folder" if emptied else "rank 0 may still be writing what all ranks read here",
        context.tree.shown,
        where,
        (InsertBefore(where, f"{context.names['dist']}.barrier()"),),
    )


def same_on_all_ranks(context: Context, tests: tuple[tuple[ast.expr, Value], ...]) -> bool:
    """Whether all ranks answer the conditions of a place alike."""
    run = context.facts.after
    return not any(o.kind in ("batch", "decided", "rank", "time") for test, _ in tests for o in run.value(test).origins)


def _lazily(context: Context, where: ast.stmt, touch: Touch) -> bool:
    """Whether a statement runs for one sample at a time, perhaps in a worker of a loader."""
    inside = set(ast.walk(where))
    above = itertools.takewhile(lambda n: n not in inside, touch.call.stack)
    names = [getattr(context.facts.tree_of(n).function(n), "name", "") for n in (*above, where) if not isinstance(n, ast.Module)]
    return any(name in ("__getitem__", "__iter__", "collate_fn") for name in names)


def _by_rank_zero(context: Context, touch: Touch) -> bool:
    """Whether rank 0 alone does this to a file."""
    guards = guards_of(context)
    alone = guards.effects.at.get(touch.call.node) == "file" or guards.by_rank_zero(touch.call)
    return alone and not prepare.preparation(context).covers(touch.call)


def _by_all(context: Context, touch: Touch) -> bool:
    """Whether all ranks do this, and what they find matters to all."""
    if guards_of(context).by_rank_zero(touch.call) or prepare.preparation(context).covers(touch.call):
        return False
    if touch.kind in ("look", "list"):
        return not _idle(context, touch)
    return touch.kind in ("read", "make")


def _waits(touch: Touch, earlier: Touch) -> bool:
    """Whether something done to a file depends on what was done before."""
    return touch.kind == "make" if earlier.kind == "remove" else touch.kind in ("read", "look", "list")


def _paths_overlap(paths: Paths, earlier: Touch, touch: Touch) -> bool:
    """Whether two paths may be one, or one the other's folder where that counts."""
    one, two = paths.of(earlier), paths.of(touch)
    if earlier.kind == "remove":
        return earlier.call.func.paths() == {"shutil.rmtree"} and disk.may_hold(one, two)
    return disk.may_hold(two, one) if touch.kind == "list" else disk.may_be_one(one, two) and disk.one_format(earlier, touch)


def _idle(context: Context, touch: Touch) -> bool:
    """Whether nothing but output and new folders depends on what is looked for."""
    tree = context.tree
    if not context.facts.is_edited(touch.call.node):
        return True
    statement = tree.statement(touch.call.node)
    if isinstance(statement, (ast.If, ast.While)):
        return not any(
            isinstance(n, ast.Call) and any(t.kind == "read" for c in context.facts.after.calls(n) for t in disk.touches(c))
            for s in statement.body
            for n in ast.walk(s)
        )
    return isinstance(statement, ast.Assign) and _read_by_rank_zero_only(context, statement, 0)


def _read_by_rank_zero_only(context: Context, statement: ast.Assign, depth: int) -> bool:
    """Whether the names that a statement binds are read by nothing but what rank 0 does alone."""
    tree, guards = context.tree, guards_of(context)
    if depth > 4 or not all(isinstance(t, ast.Name) for t in statement.targets):
        return False
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    for node in ast.walk(tree.function(statement)):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            inside = tree.statement(node)
            if any(isinstance(s, ast.stmt) and guards.only_outputs(s) for s in (inside, *tree.ancestors(inside))) or guards.guarded(node):
                continue
            if not (isinstance(inside, ast.Assign) and inside is not statement and _read_by_rank_zero_only(context, inside, depth + 1)):
                return False
    return True


def _place(context: Context, touch: Touch, before: Sequence[Touch] = ()) -> ast.stmt | None:
    """The statement that a barrier goes before: of the entry, or where that also runs what is waited for, of a module."""
    nodes = [n for n in (*touch.call.stack, touch.call.node) if context.facts.is_edited(n)]
    if not nodes:
        return None
    at = max((i for i, n in enumerate(nodes) if context.facts.in_main(n)), default=0)
    while at < len(nodes) - 1 and any(_within(context, context.tree.statement(nodes[at]), t) for t in before):
        at += 1
    return context.tree.statement(nodes[at])


def _within(context: Context, where: ast.stmt, touch: Touch) -> bool:
    """Whether something is done to a file while a statement runs, so that nothing before the statement comes after it."""
    return any(isinstance(n, ast.Call) and n in touch.call.stack for n in ast.walk(where))


def _has_barrier(context: Context, where: ast.stmt) -> bool:
    """Whether a barrier stands before a statement."""
    block = context.tree.block(where)
    at = block.index(where)
    return at > 0 and is_barrier(context, block[at - 1])


def is_barrier(context: Context, statement: ast.stmt) -> bool:
    """Whether a statement is a barrier."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and "torch.distributed.barrier" in context.facts.after.value(statement.value.func).paths()
    )


def _fenced(context: Context, earlier: Touch, touch: Touch, barriers: list[Call], placed: dict[ast.stmt, int]) -> bool:
    """Whether all ranks pass a barrier between the two."""
    here = _place(context, touch)
    if touch.call.order < earlier.call.order:  # written in the round before: what all ranks pass in this round counts
        return here is not None and any(s in placed or is_barrier(context, s) for s in _passed(context, here, True))
    if any(earlier.call.last < b.last and b.order < touch.call.order for b in barriers):
        return True
    passed = _passed(context, here, False) if here is not None else set()
    return any(earlier.call.last < order < touch.call.order and where in passed for where, order in placed.items())


def _passed(context: Context, here: ast.stmt, round_only: bool) -> set[ast.stmt]:
    """The statements of a function, or of one round of the loop, that are passed on the way to one of them, itself included."""
    tree = context.tree
    out: set[ast.stmt] = set()
    for up in tree.path(here):
        out.update(_until(tree.block(up), up))
        if round_only and isinstance(tree.parent[up], (ast.For, ast.While)):
            break
    return out


def _until(block: list[ast.stmt], statement: ast.stmt) -> list[ast.stmt]:
    """The statements of a block up to one of them, itself included."""
    return block[: block.index(statement) + 1]
