"""What the edits of several files have in common: a small module of the project's own, beside the entry, that these files import.

In it, and in all files but the entry, the rank is asked for when it is needed, since they are imported before the ranks have met; and
without a process group there is one rank, so that scripts which are not converted go on using the modules.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from ddpify.edits import Edit, InsertAfter, InsertBefore, Replace
from ddpify.project import ADDED, shown
from ddpify.records import dataclass, fields, replace
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import NAMES, Context

_USUAL = ("ddp_utils", "ddp_ranks", "distributed_utils")
_ASKED = {
    "rank": 'def get_rank():\n    """This process\'s place among the ranks."""\n    return int(os.environ.get("RANK", 0))\n',
    "world_size": "def get_world_size():\n"
    '    """How many ranks there are."""\n'
    "    return dist.get_world_size() if dist.is_initialized() else 1\n",
    "local_rank": "def get_local_rank():\n"
    '    """This process\'s place among those of its machine."""\n'
    '    return int(os.environ.get("LOCAL_RANK", 0))\n',
    "device": "def get_device():\n"
    '    """This rank\'s device."""\n'
    "    if not torch.cuda.is_available():\n"
    '        return torch.device("cpu")\n'
    '    if "LOCAL_RANK" in os.environ:  # the current one may not be chosen yet where a module asks as it is imported\n'
    '        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))\n'
    '    return torch.device("cuda", torch.cuda.current_device())\n',
}
_ALONE = {  # what a function that asks other ranks does where there are none
    "first_on_node": "yield\n        return",
    "drawn_by_rank_zero": "yield\n        return",
    "sharded": "return options",
    "sum_over_ranks": "return value",
    "largest_over_ranks": "return value",
    "smallest_over_ranks": "return value",
    "gather_over_ranks": "return values",
    "reduce_meter": "return",
    "mean_over_ranks": "return loss",
    "on_any_rank": "return bool(condition)",
    "from_rank_zero": "return value",
    "same_on_all_ranks": "return value",
    "from_all_ranks": "return rows",
    "average_of_all_ranks": "return value",
    "average_gradients": "return",
    "start_alike": "return",
    "with_averaged_gradient": "return hook",
    "averages_over_ranks": "return gradients",
}
_ITERATES_ALONE = {  # of a class that reads for the other ranks, by the line of its `__iter__` at which that begins
    "whole_batches": ("        if self.shared:\n            self.loader.collate_fn", "return iter(self.loader)"),
}
# What is done where there is a process group, and left out else, since scripts that are not converted use the module, too.
_IF_JOINED = frozenset(("DDP201", "DDP304", "DDP305", "DDP401", "DDP504"))
_IN_WORKERS = frozenset(("DDP104",))  # what is changed where no line of the script leads, but a loader's workers do
_GROUP = re.compile(r"\.set_epoch\(|\bDistributedDataParallel\(")
_WRAPPED = re.compile(r"^(\S+) = DistributedDataParallel\((.+?), (?:device_ids|delay_allreduce)=.*\n?\Z", re.M)
_INSIDE = "{0}.module"
_PLAIN = re.compile(r"""((?<![\w"'{}])(?:"[^"{}\n]*"|'[^'{}\n]*'))""")  # a string that holds no values


@dataclass(frozen=True)
class NewFile:
    """A file that is written beside the entry; `pieces` are the parts of the runtime block that it holds."""

    name: str
    path: Path
    text: str
    pieces: frozenset[str]


Place = tuple[str, Path]
"""A module's dotted name and its file."""


def by_file(context: Context, changes: Sequence[Change]) -> tuple[list[Change], Place]:
    """The changes, each of one file and worded for it, and where the module goes."""
    out: list[Change] = []
    visited, place = context.facts.after.trace.visited, _place(context, changes)
    for change in changes:
        used = any(context.facts.in_main(e.node) or context.tree.statement(e.node) in visited for e in change.edits)
        if change.edits and not used and change.code not in _IN_WORKERS:
            continue  # a part of a module that this script does not use
        files = dict.fromkeys(context.facts.tree_of(e.node).name for e in change.edits)
        if all(file == "__main__" for file in files):
            out.append(change)
            continue
        first, *others = (_part(context, change, file, place[0]) for file in files)
        out += [first, *(replace(part, discharges=(), replicates=(), replicated_branches=(), redistributes=()) for part in others)]
    return out, place


def _part(context: Context, change: Change, file: str, name: str) -> Change:
    """The part of a change that is of one file; `name` is the module's."""
    edits = [e for e in change.edits if context.facts.tree_of(e.node).name == file]
    if file != "__main__":
        shared = context.facts.project.is_shared(file)
        edits = [_worded(context, _if_joined(context, e, change) if shared else e) for e in edits]
    dist = context.names["dist"]
    group = [f"import torch.distributed as {dist}"] if any(f"{dist}." in text for text in texts_of(edits)) else []
    imports = (*change.imports, *group, *(f"from {spelled(context, name, file)} import {n}" for n in _called(context, edits, file)))
    node = change.node if context.facts.tree_of(change.node).name == file else edits[0].node
    return replace(change, edits=tuple(edits), imports=imports, node=node, file=context.facts.trees[file].shown)


def spelled(context: Context, name: str, file: str) -> str:
    """A module's name as a file imports it: relative to the file where its package does so."""
    project, entry = context.facts.project, file == "__main__"
    package = project.package if entry else file if project.files[file].is_package else file.rpartition(".")[0]
    here, there = package.split("."), name.split(".")
    kin = [t for n, t in context.facts.trees.items() if n.partition(".")[0] == here[0] or (project.package and n == "__main__")]
    if here[0] != there[0] or not any(isinstance(n, ast.ImportFrom) and n.level for t in kin for n in t.nodes()):
        return name
    common = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there)))
    return "." * (len(here) - common + 1) + ".".join(there[common:])


def apart(context: Context, changes: Sequence[Change]) -> Iterator[Finding]:
    """Modules that a script knows by another name: there it does not find the module that they now import."""
    project = context.facts.project
    for name, file in project.files.items():
        mine = [
            c for c in changes if c.file == file.shown and any(re.search(r"\b(?:" + "|".join(_USUAL) + r")\d*\b", i) for i in c.imports)
        ]
        script = project.known_apart(name) if mine else None
        if script is not None:
            why = f"{shown(script)} imports this module as a part of {file.path.parent.name}, and does not find there what it now imports"
            fix = f"put {shown(file.path.parent)} on that script's sys.path"
            yield context.manual("DDP101", mine[0].node, why, fix, level=Safety.REVIEW)


def _place(context: Context, changes: Sequence[Change]) -> Place:
    """The module's name, one that nothing of the project has, and its file."""
    project = context.facts.project
    nodes = (e.node for c in changes for e in c.edits if not context.facts.in_main(e.node))
    folder, package = project.common_folder(sorted({context.facts.tree_of(n).name for n in nodes}))
    dotted = f"{package}." if package else ""
    names = (f"{dotted}{n}" for n in (*_USUAL, *(f"{_USUAL[-1]}{i}" for i in range(2, 99))))
    name = next(n for n in names if not project.is_local(n) or project.is_ours(n))
    return name, folder / f"{name.rpartition('.')[2]}.py"


def _if_joined(context: Context, edit: Edit, change: Change) -> Edit:
    """An edit that also holds without a process group: what asks other ranks is left out, and a model may have no wrapper."""
    if isinstance(edit, Replace) and edit.template == _INSIDE:
        return replace(edit, template='getattr({0}, "module", {0})')
    if not isinstance(edit, (InsertBefore, InsertAfter)) or change.code not in _IF_JOINED:
        return edit
    if not (_GROUP.search(edit.code) or f"{context.names['dist']}." in edit.code):
        return edit
    code = edit.code if edit.code.endswith("\n") else f"{edit.code}\n"
    text = f"if {context.names['dist']}.is_initialized():\n{textwrap.indent(code, '    ')}"
    wrap = _WRAPPED.search(code)
    if wrap is not None and wrap[1] != wrap[2]:  # a name of its own, which is read without a wrapper, too
        text += f"else:\n    {wrap[1]} = {wrap[2]}\n"
    return replace(edit, code=text)


def _worded(context: Context, edit: Edit) -> Edit:
    """An edit with the rank and its like asked for when they are needed."""
    found = {f.name: _with_calls(context, getattr(edit, f.name)) for f in fields(edit) if f.name in ("template", "code", "header")}
    return replace(edit, **found)  # type: ignore[arg-type]


def _with_calls(context: Context, text: str, own: bool = True) -> str:
    """The text with names made calls, but for what stands in plain strings."""
    parts = _PLAIN.split(text)
    return "".join(part if i % 2 else _called_for(context, part, own) for i, part in enumerate(parts))


def _called_for(context: Context, text: str, own: bool = True) -> str:
    """The text with names made calls; with `own`, the script's own name for its device may be one of the file's, too."""
    for key in _ASKED:
        if key != "device" or context.own_device is None or not own:
            text = re.sub(rf"(?<![\w.\"']){context.names[key]}(?!\w|\s*=(?!=)|\()", f"{context.names[f'get_{key}']}()", text)
    return text


def _outside_docstring(context: Context, text: str) -> str:
    parts = text.split('"""')
    return '"""'.join(_with_calls(context, part, own=False) if i % 2 == 0 else part for i, part in enumerate(parts))


def texts_of(edits: Sequence[Edit]) -> list[str]:
    """What edits write, with places for what they keep."""
    return [getattr(e, f.name) for e in edits for f in fields(e) if f.name in ("template", "code", "header")]


def _called(context: Context, edits: Sequence[Edit], file: str) -> Iterator[str]:
    """The names of the module that a file's edits use."""
    texts = texts_of(edits)
    names = [context.names[key] for key in NAMES if file != "__main__" and key not in (*_ASKED, "dist", "init_distributed")]
    for name in names:
        if any(re.search(rf"(?<![\w.\"']){name}(?!\w|\s*=(?!=))", text) for text in texts):
            yield name


def new_file(
    context: Context, place: Place, changes: Sequence[Change], functions: dict[str, str], imports: Sequence[str]
) -> NewFile | None:
    """The module that the changes of other files than the entry need, of the `functions` that there are; None where they need none."""
    name, path = place
    ours = re.compile(rf"from (?:[\w.]*\.)?{name.rpartition('.')[2]} import ")
    entry = context.facts.trees["__main__"].shown
    used = [line.rpartition(" ")[2] for c in changes if c.file != entry for line in c.imports if ours.match(line)]
    if not used:
        return None
    texts = _needed_texts(context, used, functions)
    body = "\n\n".join(texts[key] for key in functions if key in texts)
    body = re.sub(rf"(?<![\w.\"']){context.names['dist']}\.", "dist.", body)  # the entry's other name for it is not needed here
    called = {
        context.names[f"get_{key}"]: re.sub(rf"\bget_{key}\b", context.names[f"get_{key}"], text, count=1) for key, text in _ASKED.items()
    }
    asked = [text for function, text in called.items() if f"{function}(" in body or function in used]
    code = "\n\n".join([*asked, body] if body else asked)
    lines = [line for line in imports if _is_used(line, code)]
    groups = ["".join(f"{line}\n" for line in lines if ("torch" in line) is third) for third in (False, True)]
    text = f'"""{ADDED}"""\n\n' + "\n".join(g for g in groups if g) + "\n\n" + code.rstrip() + "\n"
    return NewFile(name, path, text, frozenset(texts))


def _needed_texts(context: Context, used: list[str], functions: dict[str, str]) -> dict[str, str]:
    """The texts of those functions that are used, and of those that they call in turn."""
    keys = {context.names[key]: key for key in functions}
    texts: dict[str, str] = {}
    todo = list(used)
    while todo:
        key = keys.get(todo.pop())
        if key is not None and key not in texts:
            text = functions[key]
            texts[key] = _alone(context, key, _outside_docstring(context, text))
            todo += [name for name in keys if re.search(rf"(?<![\w.]){name}\(", text)]
    return texts


def _is_used(line: str, text: str) -> bool:
    name = line.rpartition(" ")[2].rpartition(".")[2]
    return bool(re.search(rf"(?<![\w.]){re.escape(line.rpartition(' ')[2])}\b|(?<![\w.]){name}\b", text))


def _alone(context: Context, key: str, text: str) -> str:
    """A function that also works where there is no process group."""
    if key in _ITERATES_ALONE:
        line, instead = _ITERATES_ALONE[key]
        alone = f"        if not {context.names['dist']}.is_initialized():\n            {instead}\n"
        return text.replace(line, alone + line)
    if key not in _ALONE:
        return text
    before, define, function = text.rpartition("\ndef ") if not text.startswith("def ") else ("", "", text)  # a class may come first
    head, quotes, rest = function.partition('"""\n')
    start = f"{before}{define}{head}{quotes}    if not {context.names['dist']}.is_initialized():\n        {_ALONE[key]}"
    return f"{start}\n{rest}"
