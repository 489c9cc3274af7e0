"""Files, folders and checkpoints.

What it does: a handle opened for writing and used all over is opened on the null device by other ranks; folders are made with
    `exist_ok=True`; `torch.load` puts what it reads on this rank's device.
Why: N ranks would write one file, race for a folder, and load N copies onto the first GPU.
Safety: safe.
References: https://docs.pytorch.org/docs/stable/generated/torch.load.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpify.edits import Replace, SetArgument, Under
from ddpify.facts.disk import to_nowhere
from ddpify.facts.effects import HANDLERS
from ddpify.facts.model import Class, Func, Lit, New, Part
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument
from ddpify.rules.data import prepare
from ddpify.rules.io import run_names
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.io.output_statements import Guards

CODE = "DDP503"
TITLE = "files, folders and checkpoints"
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
        "a checkpoint that is loaded",
        "model = Net()\n"
        'model.load_state_dict(torch.load("last.pt"))\n',
        "model = Net()\n"
        'model.load_state_dict(torch.load("last.pt", map_location=device))\n'
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
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


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Edit opens, folders and loads in the entry."""
    guards = guards_of(context)
    run, tree = context.facts.after, context.tree
    agreed = run_names.common_names(context).made
    for node in tree.nodes():
        if not isinstance(node, ast.Call):
            continue
        paths = run.value(node.func).paths()
        if paths & ({"open", "io.open", "codecs.open", "gzip.open"} | HANDLERS) and guards.effects.at.get(node) == "file":
            yield from _open(context, guards, node)
        elif paths & {"os.makedirs", "os.mkdir"} and _momentary(context, node, agreed):
            yield Change(
                CODE,
                "this folder's name is rank 0's own, and so is the folder",
                tree.shown,
                tree.statement(node),
                (Under(tree.statement(node), f"if {context.names['rank']} == 0"),),
            )
        elif paths & {"os.makedirs"}:
            if not _may_be_there(context, node) and not guards.guarded(node) and not _tried(context, node):
                yield Change(
                    CODE,
                    "whichever rank comes first makes the folder",
                    tree.shown,
                    node,
                    (SetArgument(node, "exist_ok", "True", position=2),),
                )
        elif paths & {"os.mkdir"}:
            if not guards.guarded(node) and not _tried(context, node):
                yield Change(
                    CODE,
                    "whichever rank comes first makes the folder",
                    tree.shown,
                    node,
                    (Replace(node.func, "os.makedirs"), SetArgument(node, "exist_ok", "True", position=2)),
                    ("import os",),
                )
        elif (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "mkdir"
            and not paths
            and guards.effects.at.get(node) == "folder"
            and not any(isinstance(o, (Func, Class)) for o in run.value(node.func).objs)  # a path's method, none of the project's own
        ):
            if not _may_be_there(context, node) and not guards.guarded(node) and not _tried(context, node):
                yield Change(
                    CODE,
                    "whichever rank comes first makes the folder",
                    tree.shown,
                    node,
                    (SetArgument(node, "exist_ok", "True", position=2),),
                )
        elif "torch.load" in paths and argument(node, 1, "map_location") is None and _checkpoint(context, node):
            name, needs = ('"cpu"', ()) if _random_state(context, node) else context.device_at(node)
            why = "a random state lies on the CPU" if name == '"cpu"' else "each rank loads to its own device"
            without = "every rank loads to the device that it was saved from"
            yield Change(CODE, why, tree.shown, node, (SetArgument(node, "map_location", name),), needs=needs, without=without)


def _checkpoint(context: Context, node: ast.Call) -> bool:
    """Whether what is loaded is a model or reaches one; data stay where they were saved from."""
    run = context.facts.after
    if not run.calls(node) or _is_applied_to_loaded(context, node, frozenset(("load_state_dict", "load_checkpoint", "update"))):
        return True
    return any(getattr(o, "node", None) is node for m in context.facts.models for o in m.objs) or any(
        c.method in ("eval", "train", "state_dict")
        and any(getattr(r, "node", None) is node for o in c.receiver.objs if isinstance(o, (New, Part)) for r in run.roots(o))
        for c in run.trace.calls
    )


def _random_state(context: Context, node: ast.Call) -> bool:
    """Whether what is loaded holds the state of a random generator, which is set again."""
    return _is_applied_to_loaded(context, node, frozenset(("set_rng_state", "set_rng_state_all", "set_state")))


def _is_applied_to_loaded(context: Context, node: ast.Call, methods: frozenset[str]) -> bool:
    """Whether one of these functions is given what is loaded, or a part of it."""
    run = context.facts.after
    for call in run.trace.calls:
        if call.method in methods:
            for value in (*call.args, *call.keywords.values()):
                if any(
                    getattr(root, "node", None) is node for o in value.objs if isinstance(o, (New, Part)) for root in run.roots(o)
                ) or any(getattr(o.of, "node", None) is node for o in value.origins if o.kind == "from"):
                    return True
    return False


def _may_be_there(context: Context, node: ast.Call) -> bool:
    """Whether a folder is made with `exist_ok` on, or with arguments that cannot be seen."""
    given = argument(node, 2, "exist_ok")
    if given is None:
        return any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    literals = {o.value if isinstance(o, Lit) else None for o in context.facts.after.value(given).objs}
    return literals == {True}


def _tried(context: Context, node: ast.Call) -> bool:
    """Whether the script already lives with a folder that is there."""
    child: ast.AST = node
    for up in context.tree.ancestors(node):
        if isinstance(up, ast.Try) and child in up.body and any(h.type is None or _catches(context, h.type) for h in up.handlers):
            return True
        child = up
    return False


def _catches(context: Context, kind: ast.expr) -> bool:
    """Whether an exception handler is for a folder that is there already."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(context.facts.after.value(k).paths() & {"OSError", "IOError", "FileExistsError", "Exception"} for k in kinds)


def _momentary(context: Context, node: ast.Call, agreed: Sequence[ast.stmt]) -> bool:
    """Whether a folder's name comes from the clock or from chance, in a statement of its own that is not guarded yet."""
    statement = context.tree.statement(node)
    drawn = any(
        run_names.momentary(context.facts.after.value(a)) and not set(run_names.sources(context, a)) <= set(agreed) for a in node.args[:1]
    )
    return drawn and isinstance(statement, ast.Expr) and statement.value is node and not guards_of(context).guarded(node)


def _open(context: Context, guards: Guards, node: ast.Call) -> Iterator[Change]:
    tree = context.tree
    path = argument(node, 0, "file")
    if path is None:
        path = argument(node, 0, "filename")
    holders = [s for s in (tree.statement(node), *tree.ancestors(node)) if isinstance(s, ast.stmt)]
    covered = any(prepare.preparation(context).covers(c) for c in context.facts.after.calls(node))
    if path is None or covered or guards.guarded(node) or any(guards.only_outputs(s) for s in holders):
        return
    if any(to_nowhere(context.facts.after, n) for n in ast.walk(path)):
        return
    yield Change(
        "DDP503",
        "other ranks write to nowhere",
        tree.shown,
        node,
        (Replace(path, f"{{0}} if {context.names['rank']} == 0 else os.devnull", (path,)),),
        ("import os",),
    )
