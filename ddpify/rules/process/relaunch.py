"""Move a distributed script to the launcher that is asked for.

What it does: a script that is complete is changed only where it meets its launcher. From torch.distributed.launch to torchrun, the local
    rank's argument gets the environment's value for its default, and without a launcher keeps its own. From mp.spawn, the worker is
    called with the launcher's local rank, and the process group takes rank, size and address from the environment. To
    torch.distributed.launch, the parser accepts the local rank; to mp.spawn, see DDP106.
Why: torchrun passes no argument, torch.distributed.launch passes one that not every parser knows, and mp.spawn sets no environment.
Safety: what one machine does stays as it was. A script that computes ranks in its own way is left alone, and the line is named.
References: https://docs.pytorch.org/docs/stable/elastic/run.html#transitioning-from-torch-distributed-launch-to-torchrun
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from ddpify.edits import Drop, DropArgument, Edit, InsertBefore, Replace, SetArgument
from ddpify.facts.tree import calls_in, last_name, same, walk
from ddpify.launchers import start
from ddpify.launchers.pure import Purity
from ddpify.launchers.spawn import Spawned
from ddpify.options import Launcher, Options
from ddpify.project import Project, SourceFile
from ddpify.records import dataclass, field
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import argument
from ddpify.rules.process import cuda_visible_devices, local_rank

CODE = "DDP107"
TITLE = "move a distributed script to another launcher"
_BEGIN = (
    "import argparse\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n"
)
_BODY = (
    "    model = DDP(torch.nn.Linear(8, 1))\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "    model(torch.ones(4, 8)).mean().backward()\n    optimizer.step()\n"
)
_LAUNCHED = (
    _BEGIN + "\ndef main():\n    parser = argparse.ArgumentParser()\n"
    '    parser.add_argument("--local_rank", type=int, default=0)\n'
    '    args = parser.parse_args()\n    print("rank", args.local_rank)\n    dist.init_process_group("gloo")\n' + _BODY + "\n\nmain()\n"
)
_SPAWNED = (
    _BEGIN + '\ndef train(rank, size):\n    dist.init_process_group("gloo", rank=rank, world_size=size)\n' + _BODY + "\n\n"
    'if __name__ == "__main__":\n    mp.spawn(train, args=(2,), nprocs=2)\n'
)
EXAMPLES: tuple[Example, ...] = (
    Example("no launcher is asked for", _LAUNCHED),
    Example("the launcher that it has", _SPAWNED, options=Options(launcher="spawn")),
    Example("a script without a process group", "import torch\nmodel = torch.nn.Linear(8, 1)\n", options=Options(launcher="launch")),
    *(
        Example(
            f"a local rank that {word} gives",
            _LAUNCHED.replace("import argparse\n", "import argparse\nimport os\n").replace("default=0", f'default={word}("LOCAL_RANK", 0)'),
            options=Options(launcher="torchrun"),
        )
        for word in ("os.getenv", "os.environ.get")
    ),
    Example(
        "from torch.distributed.launch to torchrun",
        _LAUNCHED,
        '    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))\n',
        options=Options(launcher="torchrun"),
    ),
    Example(
        "a script that runs without a launcher, too",
        _LAUNCHED.replace("default=0", "default=-1"),
        '    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)))\n',
        options=Options(launcher="torchrun"),
    ),
    Example(
        "a local rank without a default",
        _LAUNCHED.replace(", default=0", ""),
        '    parser.add_argument("--local_rank", type=int, '
        'default=int(os.environ["LOCAL_RANK"]) if "LOCAL_RANK" in os.environ else None)\n',
        options=Options(launcher="torchrun"),
    ),
    Example(
        "from spawn to torchrun",
        _SPAWNED,
        'if __name__ == "__main__":\n    train(int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))\n',
        options=Options(launcher="torchrun"),
    ),
)
_WHY = "the launcher gives the rank, the number of processes and where they meet"
_LOCAL_RANK = 'int(os.environ.get("LOCAL_RANK", {0}))'
_LOCAL_RANK_OR_NONE = 'int(os.environ["LOCAL_RANK"]) if "LOCAL_RANK" in os.environ else None'
_ENVIRONMENT = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK")


@dataclass
class Move:
    """What moves a script to its new launcher; `spawned` where it is to start its processes itself."""

    command: str
    changes: list[Change] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    spawned: Spawned | None = None


def present(project: Project) -> Launcher | None:
    """The launcher that a distributed script is written for; None where it starts processes in a way of its own.

    A script that reads the environment alone is torchrun's.
    """
    files = (project.entry, *project.files.values())
    if any(True for file in files for _ in _spawns(file)):
        return "spawn"
    if any(_started(file, call) for file in files for call in calls_in(file.tree)):
        return None
    return "launch" if any(_passed(file) for file in files) else "torchrun"


def move(project: Project, asked: Launcher) -> Move | None:
    """How the script comes to the launcher asked for; None where it is there already."""
    entry, old = project.entry, present(project)
    use_env = local_rank.needs_environment(project, ())
    result = Move(start.command(asked, None, use_env, project.runs))
    if old == asked != "launch":
        return None
    if old is None:
        return _not_moved(
            result, entry, _Obstacle(entry.tree.body[0], "the script starts its processes in a way of its own", "start them with mp.spawn")
        )
    if old == "spawn":
        try:
            _called_once(entry, result)
        except _Obstacle as stuck:
            _not_moved(result, entry, stuck)
    elif asked != "launch":
        away = next((file for file in project.files.values() if _passed(file)), None)
        if away is not None:
            call = _passed(away)[0]
            obstacle = _Obstacle(call, "the local rank is declared here", f"give it default={_local_rank(call)}")
            return _not_moved(result, away, obstacle)
        result.changes += map(partial(_from_environment, entry), _passed(entry))
    if old == "spawn" or asked != "spawn":
        result.changes += _launcher_defaults(entry)
    if asked == "launch":
        result.changes += local_rank.accepting(entry.standing)
    if asked == "spawn":
        texts = [file.source.text for file in (entry, *project.files.values())]
        workers = any("num_workers" in text or "multiprocessing" in text for text in texts)
        result.spawned = Spawned(workers=workers, argument=next(map(_destination, _passed(entry)), ""))
    return result if result.changes or result.findings or result.spawned else None


def _from_environment(file: SourceFile, call: ast.Call) -> Change:
    """An argument for the local rank takes its default from the environment."""
    edits = (SetArgument(call, "default", _local_rank(call)), DropArgument(call, "required"))
    return Change(CODE, "torchrun passes no argument but the environment", file.shown, call, edits, ("import os",))


def _local_rank(call: ast.Call) -> str:
    """What an argument for the local rank is by default: what the environment says; without a launcher, what it was."""
    given, required = argument(call, None, "default"), argument(call, None, "required")
    if required is not None and given is None:
        return _LOCAL_RANK.format(0)
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return _LOCAL_RANK_OR_NONE
    return _LOCAL_RANK.format(ast.unparse(given))


class _Obstacle(Exception):
    """Why a script cannot be moved; `node` is where, `fix` what to write."""

    def __init__(self, node: ast.AST, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.node, self.fix = node, fix


def _not_moved(result: Move, file: SourceFile, obstacle: _Obstacle) -> Move:
    """A move that leaves the script as it is, and says why."""
    line, column = getattr(obstacle.node, "lineno", 1), getattr(obstacle.node, "col_offset", 0) + 1
    why = f"not moved to another launcher: {obstacle}"
    result.findings.append(Finding(CODE, Safety.MANUAL, why, file.shown, line, column, obstacle.fix))
    return result


def _started(file: SourceFile, call: ast.Call) -> bool:
    """Whether a call makes a process that trains: one in a file that starts a process group."""
    return (
        last_name(call.func) == "Process"
        and "init_process_group" in file.source.text
        and "multiprocessing" in Purity(file.tree).path(call.func)
    )


def _spawns(file: SourceFile) -> Iterator[ast.Call]:
    """The calls of mp.spawn."""
    if "spawn" in file.source.text:
        known = Purity(file.tree)
        paths = ("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn", "torch.multiprocessing.start_processes")
        yield from (call for call in calls_in(file.tree) if known.path(call.func) in paths)


def _passed(file: SourceFile) -> list[ast.Call]:
    """The declarations of a local rank that comes as an argument, and is read."""
    calls = local_rank.known(file.standing)
    read = {n.attr for n in walk(file.tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    return [c for c in calls if not any(last_name(n) in ("environ", "getenv") for n in walk(c)) and _destination(c) in read]


def _destination(call: ast.Call) -> str:
    given = next((k.value for k in call.keywords if k.arg == "dest"), None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else "local_rank"


def _launcher_defaults(file: SourceFile) -> Iterator[Change]:
    """Each assignment of what the launcher sets becomes a default."""
    for node in walk(file.tree):
        name = cuda_visible_devices.variable(node) if isinstance(node, ast.Assign) else ""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and name in _ENVIRONMENT:
            line = f'{ast.unparse(node.targets[0].value)}.setdefault("{name}", {{0}})\n'
            edits = (InsertBefore(node, line, (node.value,)), Drop(node))
            yield Change(CODE, f"{name} is the launcher's to set", file.shown, node, edits)


def _called_once(file: SourceFile, result: Move) -> None:
    """The function that was spawned is called by each process of the launcher. Raises _Obstacle where it cannot be."""
    calls = list(_spawns(file))
    if len(calls) != 1:
        raise _Obstacle(
            calls[0] if calls else file.tree.body[0],
            "processes are spawned at several places, or in another module",
            "spawn them once, here",
        )
    (call,) = calls
    given = {k.arg: k.value for k in call.keywords} | dict(zip(("fn", "args", "nprocs", "join"), call.args, strict=False))
    worker, number = _worker(file, call, given.get("fn")), given.get("nprocs")
    edits = [*_without_ranks(file, call), _call_of(worker, call, _inputs(call, given.get("args"), number)), *_not_needed(file, call)]
    result.changes.append(Change(CODE, _WHY, file.shown, call, tuple(edits), ("import os",)))
    count = number.value if isinstance(number, ast.Constant) and isinstance(number.value, int) else 2
    result.command = result.command.replace("--nproc-per-node=2", f"--nproc-per-node={count}")
    shown = ast.unparse(number) if number is not None else "1"
    why = f"start as many processes as were spawned ({shown}), on one machine: the function's first argument is the rank on it"
    result.findings.append(Finding(CODE, Safety.NOTE, why, file.shown, call.lineno, call.col_offset + 1))


def _worker(file: SourceFile, call: ast.Call, spawned: ast.expr | None) -> str:
    """The name of the function that is spawned."""
    functions = {n.name: n for n in file.tree.body if isinstance(n, ast.FunctionDef)}
    if not isinstance(spawned, ast.Name) or spawned.id not in functions or not functions[spawned.id].args.args:
        raise _Obstacle(call, "what is spawned is not a function of this file", "spawn a function of this file that takes the rank first")
    return spawned.id


def _without_ranks(file: SourceFile, call: ast.Call) -> list[Edit]:
    """The edits that leave rank, size and address of the process group to the launcher."""
    groups = [n for n in calls_in(file.tree) if last_name(n.func) == "init_process_group"]
    for group in groups:
        rank = argument(group, 4, "rank")
        if rank is not None and not isinstance(rank, ast.Name):
            raise _Obstacle(rank, "the rank is computed here", "leave rank, world_size and init_method to the launcher")
        if len(group.args) > 1:
            raise _Obstacle(group, "the process group's arguments are not named", "pass only the backend")
    if not groups:
        raise _Obstacle(call, "the process group is started in another module", "leave rank and world_size to the launcher there")
    return [DropArgument(group, name) for group in groups for name in ("rank", "world_size", "init_method")]


def _call_of(worker: str, call: ast.Call, inputs: list[ast.expr | str]) -> Edit:
    """The call of the function in the place of the call that spawned it."""
    holes = tuple(n for n in inputs if isinstance(n, ast.expr))
    words = ['int(os.environ["LOCAL_RANK"])', *(f"{{{holes.index(n)}}}" if isinstance(n, ast.expr) else n for n in inputs)]
    return Replace(call, f"{worker}({', '.join(words)})", holes)


def _inputs(call: ast.Call, passed: ast.expr | None, number: ast.expr | None) -> list[ast.expr | str]:
    """What the function is given behind its rank; the number of processes is the launcher's."""
    if passed is None:
        return []
    if not isinstance(passed, ast.Tuple) or any(isinstance(n, ast.Starred) for n in passed.elts):
        raise _Obstacle(call, "what the spawned function is given is not written out here", "write it here: args=(..., ...)")
    return ['int(os.environ["WORLD_SIZE"])' if number is not None and same(n, number) else n for n in passed.elts]


def _not_needed(file: SourceFile, call: ast.Call) -> Iterator[Edit]:
    """What was there for the spawning alone."""
    statements = [n for n in file.tree.body if isinstance(n, (ast.Import, ast.FunctionDef))]
    gone = [n for n in statements if isinstance(n, ast.FunctionDef) and n.name == "prepare_spawn"]
    inside = {id(n) for s in (call, *gone) for n in walk(s)}
    used = {n.id for n in walk(file.tree) if isinstance(n, ast.Name) and id(n) not in inside}
    for node in statements:
        names = {a.asname or a.name.partition(".")[0] for a in node.names} if isinstance(node, ast.Import) else set()
        spare = names <= {"mp", "socket", "multiprocessing"} and not names & used and names
        if node in gone or spare:
            yield Drop(node)
