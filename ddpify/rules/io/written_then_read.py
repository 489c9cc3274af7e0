"""Let the ranks wait for a file that rank 0 wrote.

What it does: a barrier before all ranks read what rank 0 alone has written earlier in the same run: a checkpoint, an array, a table, a log.
    The same where rank 0 empties a folder that all ranks then make again; where they ask first whether it is there, they ask rank 0.
    Where the script ends by what it finds there, and a rank may make just that, all ranks ask rank 0.
    And a barrier after all ranks have read what rank 0 then removes or writes anew, before any step holds it up.
Why: rank 0 is still writing while the others look for the file, or has it changed before they have read it.
Safety: safe where every rank comes to the read; MANUAL under a condition that ranks may not share. Paths that are known to differ, and
    reads on rank 0 alone, need no barrier.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html (save and load checkpoints)
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from ddpify.edits import Edit, InsertAfter, InsertBefore, Replace
from ddpify.facts import disk, library
from ddpify.facts.disk import Paths, Touch
from ddpify.facts.library import files as library_files
from ddpify.facts.model import NOTHING, Call, Class, Func, Value, join
from ddpify.facts.tree import calls_in, last_name, names_read, same, walk
from ddpify.records import dataclass
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context
from ddpify.rules.data import prepare
from ddpify.rules.data.turns import in_turns
from ddpify.rules.io.guarded import guards_of

CODE = "DDP504"
TITLE = "wait for the files that rank 0 writes"
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
        "two files of other runs",
        'ones, twos = np.load("ones.npy"), np.load("twos.npy")\n',
        frame="start",
    ),
    Example(
        "a folder that must be there",
        'if not os.path.isdir("data"):\n'
        '    raise FileNotFoundError("data")\n',
        frame="start",
    ),
    Example(
        "a question asked and answered before anything is written",
        'there = os.path.exists("names.npy")\n',
        frame="start",
    ),
    Example(
        "an array of another run that is read in each round of a loop",
        "for turn in range(2):\n"
        '    start = np.load("start.npy")\n',
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
        "an array that is read in each round of a loop",
        'np.save("weights.npy", np.ones(3))\n'
        "for turn in range(2):\n"
        '    weights = np.load("weights.npy")\n',
        "if rank == 0:\n"
        '    np.save("weights.npy", np.ones(3))\n'
        "dist.barrier()\n"
        "for turn in range(2):\n"
        '    weights = np.load("weights.npy")\n',
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
    Example(
        "a file that is taken away once it is read",
        'np.save("ones.npy", np.ones(3))\n'
        'ones = np.load("ones.npy")\n'
        'os.remove("ones.npy")\n',
        "if rank == 0:\n"
        '    np.save("ones.npy", np.ones(3))\n'
        "dist.barrier()\n"
        'ones = np.load("ones.npy")\n'
        "dist.barrier()\n"
        "if rank == 0:\n"
        '    os.remove("ones.npy")\n',
        frame="start",
    ),
    Example(
        "a folder that must not be there yet",
        'if os.path.exists("first"):\n'
        '    raise FileExistsError("first")\n'
        'os.makedirs("first")\n',
        'if from_rank_zero(os.path.exists("first")):\n'
        '    raise FileExistsError("first")\n'
        'os.makedirs("first", exist_ok=True)\n',
        frame="start",
    ),
    Example(
        "two files that are written before the training, of which a data set reads one for each sample",
        "class Files(Dataset):\n"
        "    def __len__(self):\n"
        "        return 2\n"
        "\n"
        "    def __getitem__(self, index):\n"
        '        return np.load("rows.npy")[index]\n'
        "\n"
        "\n"
        'np.save("names.npy", np.ones(2))\n'
        "count = 2\n"
        'np.save("rows.npy", np.ones((2, 3)))\n',
        "class Files(Dataset):\n"
        "    def __len__(self):\n"
        "        return 2\n"
        "\n"
        "    def __getitem__(self, index):\n"
        '        return np.load("rows.npy")[index]\n'
        "\n"
        "\n"
        "if rank == 0:\n"
        '    np.save("names.npy", np.ones(2))\n'
        "count = 2\n"
        "if rank == 0:\n"
        '    np.save("rows.npy", np.ones((2, 3)))\n'
        "dist.barrier()\n",
        frame="start",
    ),
)  # fmt: skip


_READERS = frozenset("load open imread fromfile memmap File dcmread VideoReader VideoCapture read_video zarr".split()).union(
    path.rpartition(".")[2]
    for path, rows in library_files.FUNCTIONS.items()
    for row in rows
    if row.kind == "read" and not path.startswith(("os.", "shutil."))
)


@dataclass(frozen=True, eq=False)
class _Files:
    """What a script does to files, in its order; what rank 0 does to them alone, which folders it makes; and the barriers it has."""

    context: Context
    paths: Paths
    touched: list[Touch]
    alone: list[Touch]
    made: list[Touch]
    barriers: list[Call]

    def awaited(self, touch: Touch) -> list[Touch]:
        """What rank 0 alone does before something that depends on it."""
        before = (
            t
            for t in (*self.alone, *self.made)
            if _waits(touch, t) and t.call.order < touch.call.last and _paths_overlap(self.paths, t, touch)
        )
        return [t for t in before if not _in_other_branch(self.context, t.call, touch.call)]


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """A barrier between what rank 0 does to a file and what all ranks then do with it."""
    touched = disk.touched(context.facts.after)
    alone = [t for t in touched if t.kind in ("write", "remove") and _by_rank_zero(context, t)]
    made = [t for t in touched if t.kind == "make" and _by_rank_zero(context, t)]
    touched = sorted([*touched, *disk.handed(context.facts.after)], key=lambda t: t.call.order) if alone else touched
    files = _Files(context, Paths(context.facts), touched, alone, made, context.facts.after.calls_of("torch.distributed.barrier"))
    placed: dict[ast.stmt, list[int]] = {}
    yield from _before_reads(context, files, placed)
    for touch in touched:
        if touch.kind == "look" and context.facts.is_edited(touch.call.node):
            yield from _existence_checks(context, files, touch)
    yield from _after_reads(context, files, placed)
    yield from _before_errors(context, files)
    if _samples_are_read(context):
        yield from _prepared(context, files, placed)


def _before_reads(context: Context, files: _Files, placed: dict[ast.stmt, list[int]]) -> Iterator[Change | Finding]:
    """A barrier before each statement in which all ranks depend on what rank 0 did; `placed` is where, and when."""
    for touch in sorted((t for t in files.touched if t.kind != "remove" or t not in files.alone), key=lambda t: t.call.order):
        before = files.awaited(touch)
        where = _before_rounds(context, touch, before) if before and _by_all(context, touch) else None
        if where is None or _barrier_beside(context, where, -1) or all(_fenced(context, files, t, touch, placed) for t in before):
            continue
        if not context.facts.is_edited(touch.call.node) and any(_within(where, t) for t in before):
            yield _unclear(context, touch)
            continue
        if where not in placed:
            yield _barrier(context, files, touch, where, before)
        placed.setdefault(where, []).append(touch.call.order)


def _after_reads(context: Context, files: _Files, placed: Mapping[ast.stmt, list[int]]) -> Iterator[Change | Finding]:
    """A barrier after what all ranks read, before rank 0 removes that file or writes it anew; training steps would hold it up, too."""
    done: dict[ast.stmt, int] = {}
    for change in files.alone:
        named = files.paths.of(change) - {disk.ANY}
        earlier = (t for t in files.touched if t.kind in ("read", "handed") and t.call.order < change.call.order)
        before = [t for t in earlier if named & files.paths.of(t)]
        before = [t for t in before if _by_all(context, t) and not _in_other_branch(context, t.call, change.call)]
        read = max(before, key=lambda t: t.call.order, default=None)
        if read is None or _held_up(context, files, read, change, [*placed.values(), list(done.values())]):
            continue
        where = _place(context, read, [change])
        if where is None or where in done or _within(where, change) or _barrier_beside(context, where, 1):
            continue
        asked = _tests_above(context, read, where).intersection(_asked_in_turn(context, files, read))
        if asked or isinstance(where, ast.Return) or _lazily(context, where, read) or in_turns(context, where) != [where]:
            continue
        if _also_by_one(context, where):
            continue
        if same_on_all_ranks(context, read.call.tests):
            done[where] = read.call.order + 1
            edit = InsertAfter(where, f"{context.names['dist']}.barrier()")
            yield Change(CODE, "rank 0 waits until all ranks have read what it changes next", context.tree.shown, where, (edit,))


def _before_errors(context: Context, files: _Files) -> Iterator[Change | Finding]:
    """Rank 0's answer whether something is there, where the script ends by it, and a rank soon makes what another may then find."""
    done = set(context.assumed.replicated_branches)
    for look in (t for t in files.touched if t.kind in ("look", "list") and _at_once(context, t)):
        test = next(filter(None, (_asking(context, n) for n in (*look.call.stack, look.call.node))), None)
        if test is None or test in done or not (_ends(context, test.body) or _ends(context, test.orelse)):
            continue
        changes = [t for t in files.touched if t.kind in ("make", "write", "remove") and look.call.order < t.call.order]
        asked = files.paths.of(look)
        made = (t for t in changes if disk.may_hold(asked, files.paths.of(t)) and not _held_up(context, files, look, t, []))
        if disk.ANY in asked or not any(made):
            continue
        above = _tests_above(context, look, test).intersection(t.call.node for t in files.touched if t.kind in ("look", "list"))
        tests = dict.fromkeys((*(up for n in above if (up := _asking(context, n)) is not None and up not in done), test))
        helper, shown = context.names["from_rank_zero"], context.facts.tree_of(test).shown
        if not all(map(context.facts.is_edited, tests)) or not same_on_all_ranks(context, look.call.tests):
            yield _unclear(context, look)
            continue
        done.update(tests)
        edits = tuple(Replace(up.test, f"{helper}({{0}})", (up.test,)) for up in tests)
        why = "all ranks take rank 0's answer: one may have made already what another then finds"
        yield Change(CODE, why, shown, test, edits, needs=("from_rank_zero",))


def _asking(context: Context, node: ast.AST) -> ast.If | None:
    """The condition in whose test an expression asks each rank for itself."""
    tree = context.facts.tree_of(node)
    around = [] if isinstance(node, ast.Module) else list(tree.ancestors(node))
    statement = next((up for up in around if isinstance(up, ast.stmt)), None)
    inner = isinstance(statement, ast.If) and node in set(walk(statement.test))
    run, called = context.facts.after, (up.func for up in around if isinstance(up, ast.Call))
    inside = (c for func in called for f in run.value(func).functions() if isinstance(f, ast.FunctionDef) for c in calls_in(f))
    agreed = any(path.startswith("torch.distributed.broadcast") for c in inside for path in run.value(c.func).paths())
    return statement if isinstance(statement, ast.If) and inner and not agreed else None


def _ends(context: Context, block: Sequence[ast.stmt]) -> bool:
    """Whether a block ends the script, by an error or otherwise."""
    last = block[-1] if block else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return bool(context.facts.after.value(last.value.func).paths() & library.NO_RETURN)
    return isinstance(last, ast.Raise)


def _at_once(context: Context, look: Touch) -> bool:
    """Whether all ranks ask, none after another."""
    guarded = guards_of(context).guarded_call(look.call.node, look.call.stack)
    return not guarded and not prepare.preparation(context).in_turns(look.call)


def _tests_above(context: Context, touch: Touch, where: ast.stmt) -> set[ast.AST]:
    """What is asked in the conditions on the way to a statement, of the functions that lead to it and of its own."""
    within = set(walk(where))
    above = [*itertools.takewhile(lambda n: n not in within, touch.call.stack), where]
    trees = ((context.facts.tree_of(n), n) for n in above if not isinstance(n, ast.Module))
    return {n for tree, node in trees for up in tree.ancestors(node) if isinstance(up, (ast.If, ast.While)) for n in walk(up.test)}


def _held_up(context: Context, files: _Files, read: Touch, change: Touch, placed: Sequence[Sequence[int]]) -> bool:
    """Whether rank 0 waits for the others anyway between a read and a change: at a barrier, or in a training step."""
    trained = (loop.backward.order for loop in context.facts.loops)
    orders = (*trained, *(b.order for b in files.barriers), *itertools.chain(*placed))
    return any(read.call.order < order <= change.call.order for order in orders)


def _samples_are_read(context: Context) -> bool:
    """Whether a data set of the project reads a file for each sample, which is done when a loader asks for it."""
    trees = context.facts.trees.items()
    todo = [(file, f) for file, tree in trees for f in tree.of(ast.FunctionDef) if f.name in ("__getitem__", "__iter__")]
    seen = set(todo)
    for file, function in todo:
        for call in calls_in(function):
            called = set(_functions(context, file, call.func))
            if not called and last_name(call.func) in _READERS:
                return True
            todo += called - seen
            seen |= called
    return False


def _functions(context: Context, file: str, node: ast.expr) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of the project that an expression names in a file, in code that only workers run, too, with their files."""
    run, tree = context.facts.after, context.facts.trees[file]
    found = run.value(node)
    if isinstance(node, ast.Name) and not found.objs:
        found = run.attribute(file, node.id)  # type: ignore[arg-type]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and not found.objs:
        around = (up for up in tree.ancestors(node) if isinstance(up, ast.ClassDef))
        classes = [o for up in around for o in run.attribute(file, up.name).objs if isinstance(o, Class)]  # type: ignore[arg-type]
        found = join([run.interpreter.find(cls, node.attr) or NOTHING for cls in classes])
    yield from ((o.file, o.node) for o in found.objs if isinstance(o, Func) and isinstance(o.node, ast.FunctionDef))


def _prepared(context: Context, files: _Files, placed: Mapping[ast.stmt, list[int]]) -> Iterator[Change]:
    """A barrier after the data that rank 0 writes before the training, which loaders may read for each sample."""
    found: dict[ast.stmt, tuple[int, int]] = {}
    for touch in files.alone:
        trained = _trained_after(context, touch.call)
        early = touch.call.order < trained and not any(touch.call.last < b.order < trained for b in files.barriers)
        if (
            touch.kind != "write"
            or not early
            or _joined_later(context, touch.call)
            or any(loop.node in context.facts.training_loops for loop in touch.call.loops)
        ):
            continue
        where = _outermost(context, _place(context, touch))
        if where is None or _barrier_beside(context, where, 1) or not context.training.isdisjoint(walk(where)):
            continue
        found[where] = touch.call.last, trained
    for where, (last, trained) in found.items():
        reads = {s for s, orders in placed.items() if any(last < order < trained for order in orders)}
        if not _waits_soon(context, where, reads, found):
            why = "all ranks wait until rank 0 has written what the loaders read for each sample"
            yield Change(CODE, why, context.tree.shown, where, (InsertAfter(where, f"{context.names['dist']}.barrier()"),))


def _waits_soon(context: Context, where: ast.stmt, reads: Collection[ast.stmt], others: Collection[ast.stmt]) -> bool:
    """Whether all ranks pass the barrier before or after another statement of a block, and nothing can have read a sample until then."""
    block = context.facts.tree_of(where).block(where)
    for statement in block[block.index(where) + 1 :]:
        if statement in reads:
            return True
        if any(isinstance(n, (ast.For, ast.While, ast.Return)) or last_name(n) in ("next", "iter") for n in walk(statement)):
            return False
        if statement in others:
            return True
    return False


def _joined_later(context: Context, call: Call) -> bool:
    """Whether a call is made as the entry imports a module: each rank then waits for the others where it joins a group of gloo."""
    return bool(call.stack) and isinstance(call.stack[0], ast.Module) and context.options.backend in ("auto", "gloo")


def _trained_after(context: Context, call: Call) -> int:
    """When training first goes on where a call has been made, in the order of calls; 0 where it only does in another branch."""
    made = _branches(context, *call.stack, call.node)
    backwards = (loop.backward for loop in context.facts.loops)
    after = (b for b in backwards if all(made.get(up, way) == way for up, way in _branches(context, *b.stack, b.node).items()))
    return min((b.order for b in after), default=0)


def _in_other_branch(context: Context, one: Call, other: Call) -> bool:
    """Whether two calls stand in different branches of a condition that a run comes to once."""
    if {loop.node for loop in one.loops} & {loop.node for loop in other.loops}:
        return False
    pairs = zip((*one.stack, one.node), (*other.stack, other.node), strict=False)
    first, second = next((pair for pair in pairs if pair[0] is not pair[1]), (one.node, one.node))
    others = _branches(context, second)
    return any(others.get(test, way) != way for test, way in _branches(context, first).items())


def _branches(context: Context, *calls: ast.AST) -> dict[ast.AST, bool]:
    """The conditions that some calls stand under, and whether they hold there."""
    out: dict[ast.AST, bool] = {}
    for node in (n for n in calls if not isinstance(n, ast.Module)):
        tree = context.facts.tree_of(node)
        path = tree.path(tree.statement(node))
        out.update({up: inner in up.body for inner, up in itertools.pairwise(path) if isinstance(up, ast.If)})
    return out


def _outermost(context: Context, statement: ast.stmt | None) -> ast.stmt | None:
    """The outermost loop, condition or `with` around a statement; itself, where there is none."""
    above = context.tree.ancestors(statement) if statement is not None else ()
    around = [up for up in above if isinstance(up, (ast.For, ast.While, ast.With, ast.If)) and up is not context.main_block]
    return around[-1] if around else statement


def _existence_checks(context: Context, files: _Files, touch: Touch) -> Iterator[Change]:
    """`there = os.path.exists(f)`, where rank 0 writes next what all ranks read if it is there: all ranks ask before it does."""
    tree, paths = context.tree, files.paths
    statement = tree.statement(touch.call.node)
    trained = min((loop.backward.order for loop in context.facts.loops), default=0)
    same = [t for t in files.touched if t.kind in ("read", "write") and disk.may_be_one(paths.of(t), paths.of(touch))]
    written = [t for t in same if t in files.alone and touch.call.order < t.call.order < trained]
    read = any(disk.one_format(w, r) for w in written for r in same if r.kind == "read")
    if not isinstance(statement, ast.Assign) or not read or _barrier_beside(context, statement, 1) or _also_by_one(context, statement):
        return
    if _by_all(context, touch) and same_on_all_ranks(context, touch.call.tests):
        edit = InsertAfter(statement, f"{context.names['dist']}.barrier()")
        yield Change(CODE, "all ranks look for the file before rank 0 writes it", tree.shown, statement, (edit,))


def _barrier(context: Context, files: _Files, touch: Touch, where: ast.stmt, before: list[Touch]) -> Change | Finding:
    """The barrier before a statement, where all ranks pass it; what they ask of files on the way there, they ask rank 0."""
    asked = _asked_in_turn(context, files, touch)
    alike = same_on_all_ranks(context, touch.call.tests) and all(isinstance(n, ast.Call) and context.facts.is_edited(n) for n in asked)
    if not alike or _lazily(context, where, touch) or in_turns(context, where) != [where] or _also_by_one(context, where):
        return _unclear(context, touch)
    emptied = all(t.kind == "remove" for t in before)
    why = "all ranks wait until rank 0 has emptied the folder" if emptied else "all ranks wait until rank 0 has written what they read here"
    ask = f"{context.names['from_rank_zero']}({{0}})"
    edits: list[Edit] = [InsertBefore(where, f"{context.names['dist']}.barrier()", first=True)]
    edits += [Replace(n, ask, (n,)) for n in asked]
    return Change(CODE, why, context.tree.shown, where, tuple(edits), needs=("from_rank_zero",) if asked else ())


def _asked_in_turn(context: Context, files: _Files, touch: Touch) -> list[ast.expr]:
    """The questions about files, in the conditions of a place, that one rank may ask before and another after a rank changes the file."""
    out: dict[ast.expr, None] = {}
    for test, _ in touch.call.tests:
        inside = set(walk(test))
        for look in files.touched:
            node = next((n for n in (*look.call.stack, look.call.node) if n in inside), None)
            if look.kind in ("look", "list") and isinstance(node, ast.expr) and _changed_after(files, look):
                out[node] = None
    return list(out)


def _changed_after(files: _Files, look: Touch) -> bool:
    """Whether what was asked about is changed after that by some rank, and no barrier comes between."""
    changes = [t for t in files.touched if t.kind in ("make", "write", "remove") and look.call.order < t.call.order]
    near = (t for t in changes if not any(look.call.last < b.order < t.call.order for b in files.barriers))
    return any(disk.may_be_one(files.paths.of(t), files.paths.of(look)) for t in near)


def _unclear(context: Context, touch: Touch) -> Finding:
    """What is said where no place was found that all ranks come by."""
    fix = f"{context.names['dist']}.barrier() before it, on a line that all ranks run"
    return context.manual(CODE, touch.call.node, "a rank may read this before rank 0 has written it", fix)


def same_on_all_ranks(context: Context, tests: tuple[tuple[ast.expr, Value], ...]) -> bool:
    """Whether all ranks answer the conditions of a place alike."""
    run = context.facts.after
    return not any(o.kind in ("batch", "decided", "rank", "time") for test, _ in tests for o in run.value(test).origins)


def _lazily(context: Context, where: ast.stmt, touch: Touch) -> bool:
    """Whether a statement runs for one sample at a time, perhaps in a worker of a loader."""
    inside = set(walk(where))
    above = itertools.takewhile(lambda n: n not in inside, touch.call.stack)
    names = [getattr(context.facts.tree_of(n).function(n), "name", "") for n in (*above, where) if not isinstance(n, ast.Module)]
    return any(name in ("__getitem__", "__iter__", "collate_fn") for name in names)


def _by_rank_zero(context: Context, touch: Touch) -> bool:
    """Whether rank 0 alone does this to a file."""
    guards = guards_of(context)
    alone = guards.effects.at.get(touch.call.node) == "file" or guards.guarded_call(touch.call.node, touch.call.stack)
    return alone and not prepare.preparation(context).covers(touch.call)


def _by_all(context: Context, touch: Touch) -> bool:
    """Whether all ranks do this, and what they find matters to all."""
    guards = guards_of(context)
    if guards.guarded_call(touch.call.node, touch.call.stack) or prepare.preparation(context).in_turns(touch.call):
        return False
    if any(map(guards.effects.is_writer, touch.call.result.instances())):
        return False  # rank 0 alone makes it
    if touch.kind in ("look", "list"):
        return not _idle(context, touch)
    return touch.kind in ("read", "make", "handed")


def _waits(touch: Touch, earlier: Touch) -> bool:
    """Whether something done to a file depends on what was done before."""
    if earlier.kind == "make":
        return touch.kind == "list"
    return touch.kind == "make" if earlier.kind == "remove" else touch.kind in ("read", "look", "list", "handed")


def _paths_overlap(paths: Paths, earlier: Touch, touch: Touch) -> bool:
    """Whether two paths may be one, or one the other's folder where that counts."""
    one, two = paths.of(earlier), paths.of(touch)
    if earlier.kind == "make":
        return not (one & two).isdisjoint(one - {disk.ANY})
    if earlier.kind == "remove":
        return earlier.call.func.paths() == {"shutil.rmtree"} and disk.may_hold(one, two)
    if touch.kind == "handed":
        return disk.names(two, one) or (isinstance(touch.path, (ast.Name, ast.Attribute)) and same(touch.path, earlier.path))
    return disk.may_hold(two, one) if touch.kind == "list" else disk.may_be_one(one, two) and disk.one_format(earlier, touch)


def _idle(context: Context, touch: Touch) -> bool:
    """Whether nothing but output and new folders depends on what is looked for."""
    if not context.facts.is_edited(touch.call.node):
        return True
    statement = context.tree.statement(touch.call.node)
    if isinstance(statement, (ast.If, ast.While)):
        blocks = [statement.body, statement.orelse]
        if any(isinstance(s, ast.Return) for block in blocks for s in block[-1:]) or any(_ends(context, block) for block in blocks):
            return False
        calls = (c for s in statement.body for node in calls_in(s) for c in context.facts.after.calls(node))
        return not any(t.kind == "read" for c in calls for t in disk.touches(c))
    return isinstance(statement, ast.Assign) and _read_by_rank_zero_only(context, statement, 0)


def _read_by_rank_zero_only(context: Context, statement: ast.Assign, depth: int) -> bool:
    """Whether the names that a statement binds are read by nothing but what rank 0 does alone."""
    tree, guards = context.tree, guards_of(context)
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    if depth > 4 or len(names) < len(statement.targets):
        return False
    for node in names_read(tree.function(statement)):
        if node.id in names and not guards.silent(node):
            inside = tree.statement(node)
            if not isinstance(inside, ast.Assign) or inside is statement or not _read_by_rank_zero_only(context, inside, depth + 1):
                return False
    return True


def _place(context: Context, touch: Touch, before: Sequence[Touch] = ()) -> ast.stmt | None:
    """The statement that a barrier goes before: of the entry, or where that also runs what is waited for, of a module."""
    nodes = [n for n in (*touch.call.stack, touch.call.node) if context.facts.is_edited(n)]
    if not nodes:
        return None
    alone = next((i for i, n in enumerate(nodes) if guards_of(context).silent(n)), len(nodes))
    nodes = nodes[: alone + 1]  # inside a call that rank 0 alone makes, no other rank comes by
    at = max((i for i, n in enumerate(nodes) if context.facts.in_main(n)), default=0)
    while at < len(nodes) - 1 and any(_within(context.tree.statement(nodes[at]), t) for t in before):
        at += 1
    around = (context.tree.statement(n) for n in nodes[at::-1])
    shared = (s for s in around if not _also_by_one(context, s) and not any(_within(s, t) for t in before))
    return next(shared, context.tree.statement(nodes[at]))


def _before_rounds(context: Context, touch: Touch, before: Sequence[Touch]) -> ast.stmt | None:
    """The outermost loop on the way to what all ranks wait for, in whose rounds nothing of that is done; else the statement itself."""
    where = _place(context, touch, before)
    awaited = {n for t in before for n in (*t.call.stack, t.call.node)}
    for node in (*touch.call.stack, touch.call.node) if where is not None else ():
        edited = not isinstance(node, ast.Module) and context.facts.is_edited(node)
        around = context.facts.tree_of(node).ancestors(node) if edited else ()
        inside = itertools.takewhile(lambda up: not isinstance(up, (ast.FunctionDef, ast.Lambda, ast.ClassDef)), around)
        loops = [up for up in inside if isinstance(up, (ast.For, ast.While)) and awaited.isdisjoint(walk(up))]
        if loops and not _also_by_one(context, loops[-1]):
            return loops[-1]
    return where


def _also_by_one(context: Context, statement: ast.stmt) -> bool:
    """Whether the function that a statement stands in is called by rank 0 alone, too."""
    function, guards = context.facts.tree_of(statement).function(statement), guards_of(context)
    return any(guards.guarded_call(c.node, c.stack) for c in context.facts.after.calls_to(function))


def _within(where: ast.stmt, touch: Touch) -> bool:
    """Whether something is done to a file while a statement runs, so that nothing before the statement comes after it."""
    return any(call in touch.call.stack for call in calls_in(where))


def _barrier_beside(context: Context, where: ast.stmt, offset: int) -> bool:
    """Whether a barrier stands right before a statement (offset -1), or right after it (1)."""
    block = context.tree.block(where)
    at = block.index(where) + offset
    return 0 <= at < len(block) and is_barrier(context, block[at])


def is_barrier(context: Context, statement: ast.stmt) -> bool:
    """Whether a statement is a barrier, or one wherever there is a process group."""
    if isinstance(statement, ast.If) and _calls(context, statement.test, "torch.distributed.is_initialized"):
        return any(is_barrier(context, inner) for inner in statement.body)
    return isinstance(statement, ast.Expr) and _calls(context, statement.value, "torch.distributed.barrier")


def _calls(context: Context, node: ast.expr, path: str) -> bool:
    """Whether an expression is a call of a function of the library."""
    return isinstance(node, ast.Call) and path in context.facts.after.value(node.func).paths()


def _fenced(context: Context, files: _Files, earlier: Touch, touch: Touch, placed: dict[ast.stmt, list[int]]) -> bool:
    """Whether all ranks pass a barrier between the two."""
    here = _place(context, touch)
    if touch.call.order < earlier.call.order:  # written in the round before: what all ranks pass in this round counts
        return here is not None and any(s in placed or is_barrier(context, s) for s in _passed(context, here, True))
    if any(earlier.call.last < b.last and b.order < touch.call.order for b in files.barriers):
        return True
    frames = (context.tree.statement(n) for n in (*touch.call.stack, touch.call.node) if context.facts.is_edited(n))
    passed = {s for statement in frames for s in _passed(context, statement, False)}
    written = earlier.call.order if touch.call.order < earlier.call.last else earlier.call.last  # in the same round of a loop
    return any(written < order < touch.call.order for where, orders in placed.items() if where in passed for order in orders)


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
