"""Let the script start its processes itself, with torch.multiprocessing.spawn.

What it does: what each process does becomes a function of the module, the worker, and the guarded main starts it once per GPU: as often
    as the script's own list of GPUs has entries, else as there are devices, or as WORLD_SIZE says, so that a CPU can have several.
    Definitions, constants, settings and the parser stay; arguments are parsed once and handed over; names that functions read are global.
    Master address and port are set unless the environment has them, the port to a free one.
Why: `python train.py` then needs no launcher. Each process imports the file again, so what runs at import would run in all of them.
Safety: safe; what cannot be taken apart is left for torchrun, and the reason is given. The environment tells the rank once the worker
    begins; what reads it as a file is imported is MANUAL. Loader workers start as they do without spawn, so that data sets need not be
    pickled.
References: https://docs.pytorch.org/docs/stable/multiprocessing.html#spawning-subprocesses
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import New, Part
from ddpify.facts.tree import Tree, is_none, last_name
from ddpify.launchers.spawn import Spawned
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.process import cuda_visible_devices
from ddpify.rules.process.runtime_module import NewFile

CODE = "DDP106"
TITLE = "start the processes with mp.spawn"
_RANKS = ("RANK", "LOCAL_RANK")  # what a launcher tells each process of its place
_ASKED = Options(launcher="spawn")
EXAMPLES: tuple[Example, ...] = (
    Example(
        "another launcher",
        'if __name__ == "__main__":\n    pass\n',
        frame="start",
    ),
    Example(
        "a script that only evaluates",
        "import torch\n\nmodel = torch.load('model.pt', weights_only=False)\nwith torch.no_grad():\n    print(model(torch.ones(1, 8)))\n",
        options=_ASKED,
    ),
    Example(
        "a main function that parses its arguments",
        "import argparse\n"
        "import torch\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "\n"
        "\n"
        "def main():\n"
        "    parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--lr", type=float, default=0.1)\n'
        "    args = parser.parse_args()\n"
        "    loader = DataLoader(TensorDataset(torch.ones(640, 8), torch.ones(640, 1)), batch_size=32)\n"
        "    model = torch.nn.Linear(8, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)\n"
        "    for x, y in loader:\n"
        "        optimizer.zero_grad()\n"
        "        torch.nn.functional.mse_loss(model(x), y).backward()\n"
        "        optimizer.step()\n"
        "\n"
        "\n"
        'if __name__ == "__main__":\n'
        "    main()\n",
        "def main():\n"
        "    parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--lr", type=float, default=0.1)\n'
        "    args = parser.parse_args()\n"
        "    mp.spawn(worker, args=(args,), nprocs=prepare_spawn(torch.cuda.device_count() or 1))\n"
        "\n"
        "\n"
        "def worker(process, args):\n"
        '    """What one of the spawned processes does."""\n'
        "    init_distributed(process)\n",
        options=_ASKED,
    ),
)  # fmt: skip


def change(context: Context) -> list[Change]:
    """The move, which is carried out on the converted text."""
    if context.options.starts != "spawn":
        return []
    node = context.main_block or context.tree.root.body[-1]
    return [Change(CODE, "the script starts its processes itself; each runs the worker", context.tree.shown, node, ())]


def asked(context: Context, added: NewFile | None) -> Spawned:
    """What the move has to know of the script."""
    texts = [context.facts.project.entry.source.text, *(file.source.text for file in context.facts.project.files.values())]
    workers = any("num_workers" in text or "multiprocessing" in text for text in texts)
    read = {node.value for _, node in _read(context)}
    environment = tuple(name for name in _RANKS if name in read or (added is not None and f'"{name}"' in added.text))
    return Spawned(devices(context), workers, environment, saves_own_classes(context))


def read_too_early(context: Context) -> Iterator[Finding]:
    """Where the rank is read from the environment as a process imports its files, before `init_distributed` says which one it is."""
    entry = context.facts.trees["__main__"]
    for tree, node in _read(context) if context.options.starts == "spawn" else ():
        statement = [node, *tree.ancestors(node)][-2]
        in_worker = tree is entry and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if isinstance(tree.function(node), ast.Module) and not in_worker:
            why = "a spawned process reads this as it imports the file, before it has a rank"
            yield context.manual(CODE, node, why, "read it in a function, or start the script with torchrun")


def _read(context: Context) -> list[tuple[Tree, ast.Constant]]:
    """The names by which the script and its modules ask the environment for the rank."""
    return [(tree, node) for tree in context.facts.trees.values() for node in tree.of(ast.Constant) if node.value in _RANKS]


def devices(context: Context) -> str:
    """The expression by which the script lists the GPUs that DataParallel spreads a model over; empty where it has none."""
    ids = _listed(context)
    return "" if ids is None else ast.unparse(ids)


def _listed(context: Context) -> ast.expr | None:
    """The list of GPUs that a DataParallel is given."""
    for call in context.calls():
        ids = argument(call.node, 1, "device_ids") if "torch.nn.DataParallel" in call.func.paths() else None
        if ids is not None and not is_none(ids):
            return ids
    return None


def one_by_default(context: Context) -> list[Finding]:
    """What is said where the script's list of GPUs comes from an argument that names one GPU by default: one process is started."""
    ids = _listed(context) if context.options.starts == "spawn" else None
    read = _options_in(context, ids) if ids is not None else frozenset[str]()
    for node in context.tree.of(ast.Call) if read else ():
        names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        default = argument(node, None, "default")
        if last_name(node.func) != "add_argument" or not isinstance(default, ast.Constant) or not str(default.value).strip().isdigit():
            continue
        if any(name.lstrip("-").replace("-", "_") in read for name in names):
            why = f"one GPU is listed unless {names[0]} names more, so one process is started"
            level = Safety.NOTE if cuda_visible_devices.assignments(context) else Safety.REVIEW
            return [context.manual(CODE, node, why, f"start it with {names[0]} 0,1 or give it another default", level=level)]
    return []


def _options_in(context: Context, node: ast.expr) -> frozenset[str]:
    """The command-line options that an expression is computed from."""
    value = context.facts.after.value(node)
    origins = [part for o in value.origins for part in (o.of if isinstance(o.of, tuple) else (o.of,))]
    options = (p for p in (*value.objs, *origins) if isinstance(p, Part) and getattr(p.of, "path", "") == "argparse.Namespace")
    return frozenset(option.name for option in options)


def saves_own_classes(context: Context) -> bool:
    """Whether an object of one of the script's own classes is saved as a whole."""
    run = context.facts.after
    for call in context.calls():
        if call.func.paths() & {"torch.save", "pickle.dump", "joblib.dump"} and call.node.args:
            saved = call.node.args[0]
            parts = [v for v in saved.values if v] if isinstance(saved, ast.Dict) else [saved]
            objects = [o for part in parts for o in run.unwrap(run.value(part))]
            if any(isinstance(o, New) and o.cls is not None and o.cls.file == "__main__" for o in objects):
                return True
    return False
