"""Join the process group before anything touches a device, and leave it at exit.

What it does: puts a block of a few lines after the imports: this process's place in the group, and a function that joins the
    group. Under torchrun the place comes from the environment; without a launcher the process is a group of one, so that
    `python train.py` still runs and no later line needs a condition. The function is called first in the main block, or right
    after the block where the script works at import.
Why: device, sampler and wrap all need the group; joining it twice or late raises or hangs.
Safety: always safe; the script's own names are respected.
References: https://docs.pytorch.org/docs/stable/elastic/run.html (environment variables),
    https://docs.pytorch.org/docs/stable/distributed.html (init_process_group, HashStore)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ddpify.edits import Edit, InsertAfter, InsertBefore
from ddpify.facts import disk
from ddpify.facts.devices import Devices
from ddpify.facts.model import Call, New
from ddpify.facts.tree import is_main, walk
from ddpify.resources import template_dir
from ddpify.rules.base import Change, Example, Safety
from ddpify.rules.context import NAMES, Context
from ddpify.rules.io.momentary import momentary_paths, own_origins
from ddpify.rules.precision import apex_version
from ddpify.rules.process import joining, runtime_module
from ddpify.rules.process.runtime_module import NewFile, Place
from ddpify.runtime import HELPERS

CODE = "DDP101"
TITLE = "set up the process group"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a script that joins a group itself",
        "import os\n"
        "import torch\n"
        "import torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "from torch.utils.data.distributed import DistributedSampler\n"
        "\n"
        'dist.init_process_group("gloo")\n'
        "dataset = TensorDataset(torch.ones(64, 8), torch.ones(64, 1))\n"
        "sampler = DistributedSampler(dataset)\n"
        "loader = DataLoader(dataset, batch_size=16, sampler=sampler)\n"
        "model = DDP(torch.nn.Linear(8, 1))\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for epoch in range(3):\n"
        "    sampler.set_epoch(epoch)\n"
        "    for x, y in loader:\n"
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "        optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
        "dist.destroy_process_group()\n",
    ),
    Example(
        "a script that only evaluates",
        "import torch\n"
        "\n"
        'model = torch.load("model.pt", weights_only=False)\n'
        "model.eval()\n"
        "with torch.no_grad():\n"
        "    print(model(torch.ones(1, 8)))\n",
    ),
    Example(
        "settings before the main function runs",
        "torch.backends.cudnn.benchmark = True\n",
        frame="start",
    ),
    Example(
        "a main block",
        'if __name__ == "__main__":\n'
        "    main()\n",
        'if __name__ == "__main__":\n'
        "    init_distributed()\n"
        "    main()\n",
        frame="main",
    ),
)  # fmt: skip

_QUIET = ("quiet", "quiet_logging")
_MODULE = ("import os", "import torch", "import torch.distributed as dist")
_BASE = ("import atexit", "import os", "import torch", "import torch.distributed as dist")


def change(context: Context, changes: Sequence[Change], place: Place) -> tuple[list[Change], NewFile | None]:
    """The set-up that `changes` need, and the module at `place` that holds what several files need of it."""
    tree, names, needs = context.tree, context.names, _needs(changes)
    pieces = _pieces(context, needs)
    away = runtime_module.new_file(context, place, changes, pieces, _module_imports(needs, pieces))
    elsewhere = away.pieces if away is not None else frozenset[str]()
    own = [text for piece, text in pieces.items() if piece not in elsewhere]
    here = {n for c in changes if c.file == tree.shown for n in c.needs}

    def is_used(piece: str) -> bool:
        """Whether the entry uses a function or name of the runtime block."""
        return piece in here or any(_reads(names[piece], text) for text in own)

    with_device = context.own_device is None and is_used("device")
    before, working = _anchor(context, changes)
    behind = joining.device_behind(context, changes) if with_device and not working else None
    behind = None if behind is not None and tree.after(before, behind) else behind  # the block stands behind it as it is
    code = _block(context, apex_version.comment(context, changes), own, with_device and behind is None)
    anchor, edits, late = _placed(context, changes, code, _calls(context, needs))
    if behind is not None:
        edits += (InsertAfter(behind, _template("device", names)),)
    elif with_device:  # which asks CUDA for its devices
        late = late or joining.chooses_later(context, anchor)
    imports = [*_BASE[:-1], f"import torch.distributed as {names['dist']}"]
    imports += [i for p, helper in HELPERS.items() if p in needs - elsewhere for i in helper.imports if not _has(context, i)]
    if away is not None:
        home = runtime_module.spelled(context, away.name, "__main__")
        imports += [f"from {home} import {names[p]}" for p in pieces if p in elsewhere and is_used(p)]
    level = Safety.NOTE if late else Safety.SAFE
    return [Change(CODE, _why(context, late), tree.shown, anchor, edits, tuple(imports), level)], away


def _has(context: Context, line: str) -> bool:
    """Whether the entry has a module that an import would give it under its name already, from another module of the project."""
    name = line.removeprefix("import ")
    froms: list[ast.ImportFrom] = context.facts.trees["__main__"].of(ast.ImportFrom)
    taken = any((alias.asname or alias.name) == name for node in froms for alias in node.names)
    return taken and context.facts.after.attribute("__main__", name).paths() == {name}  # type: ignore[arg-type]


def _module_imports(needs: set[str], pieces: dict[str, str]) -> tuple[str, ...]:
    """The imports that the functions of the runtime block need in a module of their own."""
    forks = (_imported(*need.split(":")[1:3]) for need in sorted(needs) if need.startswith(("fork:", "draws:")))
    return tuple(dict.fromkeys((*_MODULE, *forks, *(i for piece in pieces for i in HELPERS[piece].imports))))


def _block(context: Context, comment: str, functions: list[str], with_device: bool) -> str:
    """The text of the runtime block."""
    head = comment + _launched(context, _template("setup", context.names))
    if with_device:
        head += _template("device", context.names)
    joins = _backend(context, _launched(context, _template("init_distributed", context.names)))
    return "\n\n".join([head, joins, *functions]) + "\n\n"


def _why(context: Context, late: bool) -> str:
    why = "every process joins the process group before it does anything else"
    why += "; without a launcher, the group has one process" * (context.options.starts != "spawn")
    return why + ", and takes the devices that it sees then: make the choice that comes later in the shell" * late


def _needs(changes: Sequence[Change]) -> set[str]:
    """The pieces of the runtime block that changes need, and those that these pieces call."""
    needs = {n for c in changes for n in c.needs}
    needs |= {"reduce_meter"} if "reduce_meter:cnt" in needs else set()
    for piece in list(needs):
        needs |= set(HELPERS[piece].needs if piece in HELPERS else ())
    return needs - {"per_rank"} if "sharded:whole" in needs else needs  # each rank has a batch of its own


def _pieces(context: Context, needs: set[str]) -> dict[str, str]:
    """The text of each function of the runtime block, as this script needs it."""
    pieces = {p: _forked(_template(p, context.names), needs) for p in HELPERS if p in needs and p not in _QUIET}
    if "drawn_by_rank_zero" in needs:
        pieces["drawn_by_rank_zero"] = _states(pieces["drawn_by_rank_zero"], needs)
    if "sharded" in needs:
        pieces["sharded"] = _options(pieces["sharded"], needs)
    if "rows_of_rank:whole" in needs:  # no row is repeated, which could make a short batch whole
        if "rows_of_rank" in pieces:
            pieces["rows_of_rank"] = _template("rows_of_rank_alone", context.names)
        if "examples_of_rank" in pieces:
            pieces["examples_of_rank"] = re.sub(r"-\(-(batch.batch_size // \w+)\)", r"\1", pieces["examples_of_rank"])
    elif "rows_of_rank" in needs and "rows_of_rank:dict" not in needs:
        before, of_dict, after = pieces["rows_of_rank"].partition('    if hasattr(rows, "items")')
        pieces["rows_of_rank"] = before + after.partition("rows.items()}\n")[2] if of_dict else before
    if "same_on_all_ranks" in needs and "same_on_all_ranks:tensor" not in needs:
        before, tensor, after = pieces["same_on_all_ranks"].partition("    if isinstance(value, torch.Tensor)")
        pieces["same_on_all_ranks"] = before + after.partition("return value\n")[2] if tensor else before
    if "reduce_meter:cnt" in needs:
        pieces["reduce_meter"] = pieces["reduce_meter"].replace("meter.count", "meter.cnt")
    for method in (need.partition(":")[2] for need in needs if need.startswith("method:")):
        pieces["training_loss"] = pieces["training_loss"].replace("self.model.method(", f"self.model.{method}(")
    if "agree_on_seed" in needs:
        pieces["agree_on_seed"] += _others(needs)
    return pieces


def _calls(context: Context, needs: set[str]) -> str:
    """The lines that join the process group, agree on the seed and close the output of other ranks."""
    names = context.names
    call = f"{names['init_distributed']}()\n" + f"{names['agree_on_seed']}()\n" * ("agree_on_seed" in needs)
    quiet = [_template(piece, names) for piece in _QUIET if piece in needs]
    return call + "".join(text if i == 0 else text.partition("\n")[2] for i, text in enumerate(quiet))  # under one condition


def _placed(context: Context, changes: Sequence[Change], code: str, call: str) -> tuple[ast.stmt, tuple[Edit, ...], bool]:
    """Where the functions of the set-up and the calls of them go; and whether the script chooses its devices after that."""
    anchor, working = _anchor(context, changes)
    early = isinstance(anchor, (ast.Import, ast.ImportFrom))  # other imports stand before the block, which needs them
    code = "\n" * early + code
    chosen, main = joining.behind_choice_of_devices(context, changes), context.main_block
    if chosen is not None:
        return anchor, (InsertBefore(anchor, code, first=not early), InsertAfter(chosen, call)), False
    if working or main is None:
        return anchor, (InsertBefore(anchor, code + call + "\n", first=not early),), joining.chooses_later(context, anchor)
    first = next((s for s in main.body if not isinstance(s, (ast.Import, ast.ImportFrom))), main.body[0])
    edits = (InsertBefore(anchor, code, first=True), InsertBefore(first, call, first=True))
    return anchor, edits, joining.chooses_later(context, first)


def _launched(context: Context, text: str) -> str:
    """The text with the launcher that was asked for."""
    return text.replace("torchrun", "torch.distributed.launch") if context.options.starts == "launch" else text


def _backend(context: Context, text: str) -> str:
    """The text with the backend that was asked for."""
    if context.options.backend == "auto":
        return text
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("    backend =")).replace(
        "(backend", f'("{context.options.backend}"'
    )


def _reads(name: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.\"'])\b{name}\b(?!\s*=(?!=))", text))


def _imported(module: str, spelled: str) -> str:
    """The import that makes a module known as the first word of how it is spelled."""
    name = spelled.partition(".")[0]
    return f"import {module}" if name == module else f"import {module} as {name}"


def _others(needs: set[str]) -> str:
    """The lines that seed the other generators in use."""
    return "".join(f"    {need.partition(':')[2]}.seed(seed.item())\n" for need in sorted(needs) if need.startswith("seed:"))


def _forked(text: str, needs: set[str]) -> str:
    """A sampler's text with the lines that fork the other generators which it draws from, as it forks torch's."""
    lines = text.splitlines(keepends=True)
    fork = next((i for i, line in enumerate(lines) if "fork_rng" in line), None)
    if fork is None or "seed(self.epoch)" not in lines[fork + 1]:
        return text
    before, seeds, after = [], [], []
    for _, root, name in (need.split(":") for need in sorted(needs) if need.startswith("fork:")):
        get, put = ("get_state", "set_state") if root == "numpy" else ("getstate", "setstate")
        before.append(f"        {root}_state = {name}.{get}()\n")
        seeds.append(f"            {name}.seed(self.epoch)\n")
        after.append(f"        {name}.{put}({root}_state)\n")
    return "".join([*lines[:fork], *before, *lines[fork : fork + 2], *seeds, lines[fork + 2], *after, *lines[fork + 3 :]])


def _states(text: str, needs: set[str]) -> str:
    """The text with the states of the generators that are drawn from, in the place of torch's."""
    drawn = [need.split(":")[1:] for need in sorted(needs) if need.startswith("draws:")]
    if drawn and not any(root == "torch" for root, _ in drawn):
        text = re.sub(r" +if torch\.cuda.*\n +read, write = .*\n", "", text)
    for torchs, numpys, pythons in (("get_rng_state", "get_state", "getstate"), ("set_rng_state", "set_state", "setstate")):
        states = [f"{name}.{ {'torch': torchs, 'numpy': numpys}.get(root, pythons) }" for root, name in drawn]
        text = text.replace(f"torch.{torchs}", ", ".join(states))
    return text


def _options(text: str, needs: set[str]) -> str:
    """`sharded` without the lines that no loader needs: those for samplers of the script's own, and those that divide the batch."""
    lines = text.splitlines(keepends=True)
    if "sharded:sampler" not in needs:
        at = next(i for i, line in enumerate(lines) if 'options.get("sampler")' in line)
        lines[at - 1 : at + 3] = [lines[at - 1].replace("sampler =", 'options["sampler"] =')]
    return "".join(line for line in lines if "sharded:whole" not in needs or "per_rank(options.get" not in line)


def _template(name: str, names: dict[str, str]) -> str:
    text = (template_dir() / "runtime" / f"{name}.py").read_text(encoding="utf-8")
    for usual, *_ in NAMES.values():
        key = next(k for k, v in NAMES.items() if v[0] == usual)
        if names[key] != usual:
            words = r'""".*?"""|#[^\n]*|' if usual.isalpha() else ""  # where `rank` is English
            name = rf'{words}(?<![\w."]){usual}(?!\w|=)'
            text = re.sub(name, lambda f, old=usual, new=names[key]: new if f[0] == old else f[0], text, flags=re.DOTALL)  # type: ignore[misc]
    return text


def _anchor(context: Context, changes: Sequence[Change]) -> tuple[ast.stmt, bool]:
    """The statement that the block goes before, and whether the module works at import (then the group is joined there).

    It goes after the imports, but not after a statement that an edit lets use it, or an import of what asks for the group at once.
    """
    early = joining.early_import(context, changes)
    body = context.tree.root.body
    edited = {n for c in changes if c.edits and c.code != "DDP102" for n in (c.node, *context.tree.ancestors(c.node))}
    drawn = (call.stack[0] if call.stack else call.node for call in joining.draws_of_shared_seed(context, changes))
    edited |= {n for node in drawn if node in context.tree.parent for n in (node, *context.tree.ancestors(node))}
    at = 0
    for i, statement in enumerate(body):
        defines = isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
        if (
            (defines and at > 0)  # one above all imports is for one of them, such as what silences warnings
            or is_main(statement)
            or statement is early
            or (statement in edited and not isinstance(statement, (ast.Import, ast.ImportFrom)))
        ):
            break
        if _imports(statement):
            at = i + 1
    if at >= len(body):
        at = len(body) - 1
    if at == 0 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        at = 1
    return body[at], early is not None or context.once(works_at_import) or joining.needed_at_import(context, changes)


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return True
    return isinstance(statement, (ast.Try, ast.If)) and any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in statement.body)


def works_at_import(context: Context) -> bool:
    """Whether a model, a loader, a device or a name that ranks must share is made or used by the module outside its main block."""
    main = context.main_block
    if main is None:
        return True
    run = context.facts.after
    places: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [
        (o.node, o.stack)
        for o in (*context.facts.loaders, *context.facts.feeding, *(m for model in context.facts.models for m in model.objs))
        if isinstance(o, New)
    ]
    places += [(c.node, c.stack) for c in run.trace.calls if "torch.cuda.set_device" in c.func.paths() or _places(context, c)]
    read = [run.value(t.path) for t in disk.touched(run) if t.kind in ("read", "list")]
    named = [own_origins(run, run.value(path)) for path in momentary_paths(context, disk.touched(run))]
    made = {o.of for v in read for o in v.origins if o.kind == "time"} | {
        o.of for os in named for o in os if o.kind in ("drawn", "listing")
    }
    places += [(c.node, c.stack) for node in made for c in run.calls(node)]  # type: ignore[arg-type]
    inside = set(walk(main))
    return any(
        (stack[0] if stack else node) not in inside and not isinstance(stack[0] if stack else node, ast.Module) for node, stack in places
    )


def _places(context: Context, call: Call) -> bool:
    """Whether a call puts something on the current GPU."""
    if call.method == "cuda":
        return True
    given = Devices(context.facts).given(call.node) if "torch.device" not in call.func.paths() else None
    return given is not None and any(
        o.path == "torch.device" and not context.is_cpu(o) for o in context.facts.after.value(given).instances()
    )
