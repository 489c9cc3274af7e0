"""Remove nn.DataParallel.

What it does: `nn.DataParallel(model, ...)` becomes `model`; a statement left saying `model = model` goes, and so does a test for several
    GPUs that held nothing else. `.module` on what is not wrapped yet goes, too.
    Around a model that is not trained, such as a teacher, or around a part of one that is, it stays for the keys of checkpoints, on the
    device of each rank.
Why: DistributedDataParallel takes its place, one process per device.
Safety: safe; a NOTE where it stays.
References: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Drop, Replace
from ddpify.facts import library
from ddpify.facts.model import Class, New, Obj
from ddpify.facts.tree import is_main, same
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.model import batch_norm

CODE = "DDP202"
TITLE = "remove DataParallel"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a class of the project's own with that name",
        "class DataParallel(nn.Module):\n"
        "    def __init__(self, module):\n"
        "        super().__init__()\n"
        "        self.module = module\n"
        "\n"
        "    def forward(self, x):\n"
        "        return self.module(x)\n"
        "\n"
        "\n"
        "layers = DataParallel(nn.Linear(8, 8))\n",
        frame="start",
    ),
    Example(
        "a number of devices that is only shown",
        "devices = torch.cuda.device_count()\n",
        frame="start",
    ),
    Example(
        "a question about the wrapper",
        "wrapped = isinstance(train_set, nn.DataParallel)\n",
        frame="end",
    ),
    Example(
        "its name in a string",
        'parser.add_argument("--wrapper", default="DataParallel")\n',
        frame="start",
    ),
    Example(
        "a question about the wrapper of something that is no model",
        'whole = test_set.module if hasattr(test_set, "module") else test_set\n',
        frame="end",
    ),
    Example(
        "a statement of its own",
        "model = Net().cuda()\n"
        "model = nn.DataParallel(model)\n",
        "model = Net().to(device)\n"
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
    ),
    Example(
        "where there are several devices",
        "model = Net().cuda()\n"
        "if torch.cuda.device_count() > 1:\n"
        "    model = nn.DataParallel(model)\n",
        "model = Net().to(device)\n"
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
    ),
    Example(
        "around a call",
        "model = nn.DataParallel(Net().cuda(), device_ids=[0, 1])\n",
        "model = Net().to(device)\n"
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
    ),
    Example(
        "a question that finds no wrapper",
        "model = Net().cuda()\n"
        "if args.gpu:\n"
        "    model = nn.DataParallel(model)\n"
        'inside = model.module if hasattr(model, "module") else model\n',
        "model = Net().to(device)\n"
        'inside = model.module if hasattr(model, "module") else model\n'
        "model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)\n",
        frame="model",
    ),
)  # fmt: skip


PLAIN = "whether the original's keys carried `module.` depended on an option; these are plain, as those of one GPU"


def calls(context: Context) -> list[ast.Call]:
    """The DataParallel calls of the entry, but for those that put one around the model in a DDP for a file."""
    found = [n for n in context.tree.of(ast.Call) if _makes_one(context, n)]
    return [n for n in found if not _is_inside_ddp(context, argument(n, 0, "module"))]


def _makes_one(context: Context, node: ast.Call) -> bool:
    """Whether a call makes a DataParallel, or would: under a test, in a function that runs, of what is one already."""
    run, tree = context.facts.before, context.facts.tree_of(node)
    if library.DATAPARALLEL in run.value(node.func).paths():
        return True
    function = tree.function(node)
    runs = isinstance(function, ast.FunctionDef) and not run.trace.visited.isdisjoint(function.body)
    return runs and context.library_path(tree.name, node.func) == library.DATAPARALLEL


def _is_inside_ddp(context: Context, model: ast.expr | None) -> bool:
    """Whether an expression is the `.module` of a DistributedDataParallel."""
    if not isinstance(model, ast.Attribute) or model.attr != "module":
        return False
    paths = {o.path for o in context.facts.before.value(model.value).instances()}
    return bool(paths & library.DDPS)


def keys_matter(context: Context, node: ast.AST) -> bool:
    """Whether the state dict of what a DataParallel call makes is saved, or loaded where no edit can take the prefix off."""
    return any(
        (c.method == "state_dict" or (c.method == "load_state_dict" and not context.facts.is_edited(c.node)))
        and any(o.node is node for o in c.receiver.instances())
        for c in context.facts.before.trace.calls
    )


def stays(context: Context, node: ast.AST) -> bool:
    """Whether a DataParallel call stays for its keys: its model is not trained, or a part of one that is."""
    inner = argument(node, 0, "module") if isinstance(node, ast.Call) else None
    if inner is None or context.facts.model_of(context.facts.after.value(inner)) is not None:
        return False
    return keys_matter(context, node) or (isinstance(node, ast.Call) and _inside_saved(context, node))


def _inside_saved(context: Context, node: ast.Call) -> bool:
    """Whether what a DataParallel call makes is a part of a model whose state dict is saved or loaded."""
    run = context.facts.before
    around = {up for call in run.calls(node) for o in call.result.instances() if o.node is node for up in run.roots(o) if up is not o}
    return any(c.method in ("state_dict", "load_state_dict") and run.unwrap(c.receiver) & around for c in run.trace.calls)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Remove each wrapper."""
    gone: set[ast.stmt] = set()
    for call in calls(context):
        inner = argument(call, 0, "module")
        if inner is None:
            continue
        if stays(context, call):
            if not _has_own_device(context, call):
                yield _on_own_device(context, call, inner)
            continue
        yield _replaced(context, call, inner, gone)
    yield from _without_replicas(context, gone)
    yield from _own(context)
    for call in context.tree.of(ast.Call):
        if "torch.nn.parallel.data_parallel" in context.facts.before.value(call.func).paths():
            module, inputs = argument(call, 0, "module"), argument(call, 1, "inputs")
            if module is not None and inputs is not None:
                why, edit = "DistributedDataParallel replaces data_parallel", Replace(call, "{0}({1})", (module, inputs))
                yield Change(CODE, why, context.tree.shown, call, (edit,))


def _own(context: Context) -> Iterator[Finding]:
    """Wrappers of the script's own that spread batches over GPUs: no rule knows what to put in their place."""
    run = context.facts.before
    for node in dict.fromkeys(c.node for c in run.trace.calls if any(_spreads(o) for o in c.func.objs)):
        why = "this class is a DataParallel of the script's own: each rank would spread batches over all GPUs, and average nothing"
        fix = "leave it out where there are several ranks: give each rank the model itself, and its part of a batch"
        yield context.manual(CODE, node, why, fix)


def _spreads(obj: Obj) -> bool:
    """Whether an object is a class of the script's own that is a DataParallel."""
    bases = obj.bases if isinstance(obj, Class) else ()
    return any(library.DATAPARALLEL in base.paths() or any(map(_spreads, base.objs)) for base in bases)


def _without_replicas(context: Context, gone: set[ast.stmt]) -> Iterator[Change | Finding]:
    """What tells a DataParallel how to make its replicas: there are none in DistributedDataParallel."""
    for store in batch_norm.replication(context):
        place = store.stack[-1] if store.stack else store.node
        if not context.facts.is_edited(place):
            why = "this tells a DataParallel how to make its replicas, of which there are none in DistributedDataParallel"
            yield context.manual(CODE, place, why, "leave it out")
            continue
        statement = context.tree.statement(place)
        if statement not in gone:
            gone.add(statement)
            why = "DistributedDataParallel makes no replicas; batch norm that shares their statistics becomes SyncBatchNorm"
            yield Change(CODE, why, context.tree.shown, statement, (Drop(statement),))


def _has_own_device(context: Context, call: ast.Call) -> bool:
    """Whether a wrapper has one device, which each rank chooses for itself."""
    devices = argument(call, 1, "device_ids")
    return isinstance(devices, ast.List) and [bool(context.facts.before.value(e).of_kind("rank")) for e in devices.elts] == [True]


def _on_own_device(context: Context, call: ast.Call, inner: ast.expr) -> Change | Finding:
    """A wrapper that stays for its keys, with a rank's device in the place of all."""
    if len(call.args) > 3 or not {k.arg for k in call.keywords} <= {"module", "device_ids", "output_device"}:
        why = "this wrapper's model is not trained here, but its state dict, with the prefix of DataParallel, is read or written"
        return context.manual(CODE, call, why, "give the wrapper the device of this rank alone: device_ids=[local_rank]")
    why = "what this wraps is not trained by itself: DataParallel stays, on the device of each rank, for the `module.` in its keys"
    edit = Replace(call, f"{{0}}({{1}}, device_ids=[{context.names['local_rank']}])", (call.func, inner))
    return Change(CODE, why, context.tree.shown, call, (edit,), level=Safety.NOTE)


def _replaced(context: Context, call: ast.Call, inner: ast.expr, gone: set[ast.stmt]) -> Change:
    """The model takes its wrapper's place; a statement left saying `model = model` goes, and so do tests that held nothing else."""
    tree, why = context.tree, "DistributedDataParallel replaces DataParallel"
    statement = tree.statement(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call or any(not same(t, inner) for t in statement.targets):
        return Change(CODE, why, tree.shown, call, (Replace(call, "{0}", (inner,)),))
    if read_back(context, inner):
        why = "a checkpoint holds the model in a DataParallel, as the original wrote it: DistributedDataParallel takes the model inside"
        edit = Replace(call, 'getattr({0}, "module", {0})', (inner,))
        return Change(CODE, why, tree.shown, call, (edit,))
    gone.add(statement)
    dropped: ast.stmt = statement
    while isinstance(up := tree.parent[dropped], ast.If) and gone.issuperset((*up.body, *up.orelse)) and not is_main(up):
        gone.add(up)
        dropped = up
    return Change(CODE, why, tree.shown, dropped, (Drop(dropped),))


def read_back(context: Context, inner: ast.expr) -> set[Obj]:
    """What the model that is put into a DataParallel, under its own name, may be of a file that holds it in one."""
    run, up = context.facts.before, context.facts.tree_of(inner).parent[inner]
    statement = context.facts.tree_of(inner).parent[up]
    if not isinstance(statement, ast.Assign) or not all(same(t, inner) for t in statement.targets):
        return set()
    return {root for o in run.value(inner).objs for root in run.roots(o) if isinstance(root, New) and root.path == "torch.load"}


def keys_as_wrapped(context: Context, call: ast.Call, method: str) -> Iterator[Change]:
    """A state dict of a model that the original had in a DataParallel, and that is in no wrapper: with the prefix of its keys."""
    if method == "state_dict":
        why = "checkpoints keep the `module.` prefix of DataParallel, as the original wrote them; the model has no wrapper here"
        edit = Replace(call, '{{f"module.{{key}}": value for key, value in {0}.items()}}', (call,))
        yield Change(CODE, why, context.tree.shown, call, (edit,))
    elif call.args and not isinstance(call.args[0], ast.Starred):
        why = "the original's checkpoints have the `module.` prefix of DataParallel, and the model has no wrapper here"
        edit = Replace(call.args[0], '{{key.removeprefix("module."): value for key, value in {0}.items()}}', (call.args[0],))
        yield Change(CODE, why, context.tree.shown, call, (edit,))
