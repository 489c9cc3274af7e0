"""Files, folders and checkpoints.

What it does: a handle opened for writing and used all over is opened on the null device by other ranks; folders are made with
    `exist_ok=True`; what is opened with `r+` and only read is opened with `r`; `torch.load` puts what it reads on this rank's device.
Why: N ranks would write one file, race for a folder, and load N copies onto the first GPU.
Safety: safe.
References: https://docs.pytorch.org/docs/stable/generated/torch.load.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace, SetArgument, Under
from ddpify.facts.disk import to_nowhere
from ddpify.facts.model import Class, Func, Lit
from ddpify.facts.tree import walk
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument
from ddpify.rules.data import prepare
from ddpify.rules.io import loaded, momentary, run_names
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.io.only_read import mode_of_read_file
from ddpify.rules.io.output_statements import OPENS, Guards, is_method_of_path
from ddpify.rules.loop import caught

CODE = "DDP503"
TITLE = "create folders and load checkpoints on every rank"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a folder that may be there",
        'os.makedirs("runs", exist_ok=True)\n',
        frame="start",
    ),
    Example(
        "a folder whose presence is handled",
        "try:\n"
        '    os.mkdir("runs")\n'
        "except FileExistsError:\n"
        "    pass\n",
        frame="start",
    ),
    Example(
        "a checkpoint that goes where the script says",
        'state = torch.load("last.pt", map_location="cpu")\n',
        frame="start",
    ),
    Example(
        "a file that is read",
        'settings = open("settings.txt").read()\n',
        frame="start",
    ),
    Example(
        "data that a loader reads",
        'rows = TensorDataset(torch.load("rows.pt"))\n',
        frame="start",
    ),
    Example(
        "a folder that is looked for",
        'there = os.path.isdir("runs")\n',
        frame="start",
    ),
    Example(
        "data that stay where they were saved from",
        'labels = torch.load("labels.pt")\n',
        frame="start",
    ),
    Example(
        "data that are moved",
        'scores = torch.load("scores.pt").to("cpu") + 1\n',
        frame="start",
    ),
    Example(
        "a checkpoint that goes to the device of the model",
        "where = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\n"
        'state = torch.load("last.pt", map_location=where)\n',
        frame="start",
    ),
    Example(
        "a folder",
        'if not os.path.exists("runs"):\n'
        '    os.makedirs("runs")\n',
        'if not os.path.exists("runs"):\n'
        '    os.makedirs("runs", exist_ok=True)\n',
        frame="start",
    ),
    Example(
        "os.mkdir for a folder",
        'os.mkdir("runs")\n',
        'os.makedirs("runs", exist_ok=True)\n',
        frame="start",
    ),
    Example(
        "a log that is open all the time",
        'log = open("log.txt", "w")\n',
        'log = open("log.txt" if rank == 0 else os.devnull, "w")\n',
        frame="start",
    ),
    Example(
        "a file that is opened as if to change it",
        "import h5py\n"
        'rows = h5py.File("rows.h5", "r+")["rows"][:]\n',
        "import h5py\n"
        'rows = h5py.File("rows.h5", "r")["rows"][:]\n',
        frame="end",
    ),
    Example(
        "a checkpoint that is loaded",
        "model = Net()\n"
        'model.load_state_dict(torch.load("last.pt"))\n',
        "model = Net()\n"
        'model.load_state_dict(torch.load("last.pt", map_location=device))\n'
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
    ),
    Example(
        "numbers that are computed with, wherever they were saved from",
        'moments = torch.load("moments.pt")\n'
        'scaled = (torch.ones(8) - moments["mean"]) / moments["deviation"]\n',
        'moments = torch.load("moments.pt", map_location={"cuda:0": f"cuda:{local_rank}"})\n'
        'scaled = (torch.ones(8) - moments["mean"]) / moments["deviation"]\n',
        frame="end",
    ),
    Example(
        "a checkpoint with the state of the random numbers",
        'state = torch.load("last.pt", weights_only=False)\n'
        'model.load_state_dict(state["model"])\n'
        'torch.set_rng_state(state["random"])\n',
        'state = torch.load("last.pt", weights_only=False, map_location="cpu")\n'
        'model.module.load_state_dict(state["model"])\n'
        'torch.set_rng_state(state["random"])\n',
        frame="end",
    ),
)  # fmt: skip
_ENDS = "the script ends where this folder is there already, as all ranks but the first find it"
_FOLDERS = frozenset(("os.makedirs", "os.mkdir"))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Edit opens, folders and loads in the entry."""
    guards = guards_of(context)
    for node in context.tree.of(ast.Call):
        paths = context.facts.after.value(node.func).paths()
        if (mode := mode_of_read_file(context, node)) is not None:
            why = "nothing is written to this file, and not all ranks can have it open for writing"
            yield Change(CODE, why, context.tree.shown, node, (Replace(mode, '"r"'),))
        elif (paths & OPENS or is_method_of_path(guards, node)) and guards.effects.at.get(node) == "file":
            yield from _open(context, guards, node)
        elif paths & _FOLDERS or (not paths and _is_path_mkdir(context, guards, node)):
            yield from _folder(context, guards, node)
        elif "torch.load" in paths and argument(node, 1, "map_location") is None:
            if loaded.checkpoint(context, node):
                yield _load(context, node)
            elif loaded.computed_with(context, node):
                yield _data(context, node)


def _is_path_mkdir(context: Context, guards: Guards, node: ast.Call) -> bool:
    """Whether a call is the method of a path that makes a folder, and none of the project's own."""
    method = isinstance(node.func, ast.Attribute) and node.func.attr == "mkdir" and guards.effects.at.get(node) == "folder"
    return method and not any(isinstance(o, (Func, Class)) for o in context.facts.after.value(node.func).objs)


def _folder(context: Context, guards: Guards, node: ast.Call) -> Iterator[Change | Finding]:
    """A folder is made by rank 0, where its name is rank 0's own, else by whichever rank comes first."""
    tree, paths = context.tree, context.facts.after.value(node.func).paths()
    if _in_turns(context, node):
        return
    if _momentary(context, node):
        statement = tree.statement(node)
        why = "only rank 0 creates this folder, since only rank 0 has its name"
        yield Change(CODE, why, tree.shown, statement, (Under(statement, f"if {context.names['rank']} == 0"),))
        return
    plain = "os.mkdir" in paths  # which has no exist_ok
    if guards.guarded(node) or (not plain and _may_be_there(context, node)):
        return
    if handlers := _handlers(context, node):
        looked = any(isinstance(up, ast.If) and run_names.looks(context, up.test) for up in tree.ancestors(node))
        if not any(caught.quits(context, h) for h in handlers):
            return  # the script lives with a folder that is there
        if not looked:
            yield context.manual(CODE, node, _ENDS, "make it on rank 0 alone, and let the others wait for it: torch.distributed.barrier()")
            return
    why, there = "several ranks may create this folder at once: it may exist already", SetArgument(node, "exist_ok", "True", position=2)
    if plain:
        yield Change(CODE, why, tree.shown, node, (Replace(node.func, "os.makedirs"), there), ("import os",))
    else:
        yield Change(CODE, why, tree.shown, node, (there,))


def _load(context: Context, node: ast.Call) -> Change:
    """A checkpoint is loaded to this rank's device, the state of a random generator to the CPU."""
    name, needs = ('"cpu"', ()) if loaded.random_state(context, node) else context.device_at(node)
    why = (
        "a random state must be on the CPU"
        if name == '"cpu"'
        else "each rank loads the checkpoint to its own device; otherwise all would load it to the GPU that saved it"
    )
    without = "every rank loads to the device that it was saved from"
    return Change(CODE, why, context.tree.shown, node, (SetArgument(node, "map_location", name),), needs=needs, without=without)


def _data(context: Context, node: ast.Call) -> Change:
    """Data that were on the first GPU are loaded to this rank's; those of the CPU stay there."""
    why = "what was saved from the first GPU is loaded to this rank's own, where it is computed with"
    where = f'{{{{"cuda:0": f"cuda:{{{{{context.names["local_rank"]}}}}}"}}}}'
    without = "every rank loads to the device that it was saved from"
    return Change(CODE, why, context.tree.shown, node, (SetArgument(node, "map_location", where),), without=without)


def _may_be_there(context: Context, node: ast.Call) -> bool:
    """Whether a folder is made with `exist_ok` on, or with arguments that cannot be seen."""
    given = argument(node, 2, "exist_ok")
    if given is None:
        return any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    literals = {o.value if isinstance(o, Lit) else None for o in context.facts.after.value(given).objs}
    return literals == {True}


def _handlers(context: Context, node: ast.Call) -> list[ast.ExceptHandler]:
    """What the script does where a folder is there already, if it thinks of that."""
    child: ast.AST = node
    for up in context.tree.ancestors(node):
        if isinstance(up, ast.Try) and child in up.body:
            handlers = [h for h in up.handlers if h.type is None or _catches(context, h.type)]
            if handlers:
                return handlers
        child = up
    return []


def _catches(context: Context, kind: ast.expr) -> bool:
    """Whether an exception handler is for a folder that is there already."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(context.facts.after.value(k).paths() & {"OSError", "IOError", "FileExistsError", "Exception"} for k in kinds)


def _momentary(context: Context, node: ast.Call) -> bool:
    """Whether a folder's name comes from the clock or from chance, in a statement of its own that is not guarded yet."""
    statement, method = context.tree.statement(node), node.func.value if isinstance(node.func, ast.Attribute) else None
    path = method if not context.facts.after.value(node.func).paths() else node.args[0] if node.args else None
    if path is None or not isinstance(statement, ast.Expr) or statement.value is not node or guards_of(context).guarded(node):
        return False
    agreed, run = context.once(run_names.common_names).statements, context.facts.after
    return momentary.momentary(run, run.value(path)) and not set(run_names.sources(context, path)) <= set(agreed)


def _open(context: Context, guards: Guards, node: ast.Call) -> Iterator[Change]:
    """A file that is written all over is the null device on other ranks."""
    by_method = is_method_of_path(guards, node)
    path = node.func.value if by_method else argument(node, 0, "file") or argument(node, 0, "filename")  # type: ignore[attr-defined]
    if path is None or _in_turns(context, node) or guards.silent(node) or any(to_nowhere(context.facts.after, n) for n in walk(path)):
        return
    rank, imports = context.names["rank"], ("import os", "import pathlib") if by_method else ("import os",)
    text = f"({{0}} if {rank} == 0 else pathlib.Path(os.devnull))" if by_method else f"{{0}} if {rank} == 0 else os.devnull"
    why = "only rank 0 writes this file: the others write to os.devnull"
    yield Change(CODE, why, context.tree.shown, node, (Replace(path, text, (path,)),), imports)


def _in_turns(context: Context, node: ast.Call) -> bool:
    """Whether ranks run a call one after another, the first of which makes what the others then find."""
    return any(prepare.preparation(context).covers(c) for c in context.facts.after.calls(node))
