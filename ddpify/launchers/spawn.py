"""Moves a script that is started once per process under torch.multiprocessing.spawn, which it then calls itself.

What each process does becomes a function of the module, the worker. Definitions, constants, the parser of the arguments and settings
such as `torch.backends` stay, since every process imports the file again; arguments are parsed once, before the processes start, and
handed to the worker. Statements move as they are written, with their comments.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import io
import re
import symtable
import tokenize
from collections.abc import Iterable, Sequence
from functools import cached_property

from ddpify.facts.tree import is_main, names_in, walk
from ddpify.launchers.dependence import Dependence
from ddpify.launchers.pure import Purity
from ddpify.records import dataclass, field
from ddpify.resources import template_dir
from ddpify.source import split_lines

OURS = "Join the process group that torchrun describes, or be a group of one."
_COMMANDS = re.compile(r"fire\.(core\.)?Fire|typer\.run|tyro\.cli|plac\.call")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PHASES = {"gone": -1, "kept": 0, "parent": 1, "worker": 2}
_WORKERS = "mp.set_start_method(None, force=True)  # loader workers start as they do without spawn"
_DEVICES = "torch.cuda.device_count() or 1"


@dataclass(frozen=True)
class Spawned:
    """What the move has to know of a script: `devices` is an expression for the list of GPUs that it names, empty where it has none.

    `workers` says that it starts processes of its own, such as loader workers, `environment` what a module asks the environment for, of
    the rank and the local rank, `own_classes` that it pickles objects of its own classes. `argument` is the parsed argument that holds
    the local rank.
    """

    devices: str = ""
    workers: bool = False
    environment: tuple[str, ...] = ()
    own_classes: bool = False
    argument: str = ""


class Immovable(Exception):
    """The script cannot be moved: the line, and the reason."""

    def __init__(self, line: int, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.line, self.reason, self.fix = line, reason, fix


@dataclass
class _Group:
    """Statements that share lines, with the blank lines and comments above them."""

    nodes: list[ast.stmt]
    lead: list[str]
    own: list[str]
    at: int
    indent: str = ""
    kind: str = "worker"  # or "kept", "parent", "gone"

    @property
    def bound(self) -> set[str]:
        return _bound(self.nodes)


@dataclass
class _Layout:
    """A file's statements as groups of lines."""

    text: str
    newline: str
    original: str
    tree: ast.Module = field(init=False)
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        self.lines = split_lines(self.text)
        if self.lines and not self.lines[-1].endswith(("\n", "\r")):
            self.lines[-1] += self.newline

    @cached_property
    def inside_strings(self) -> set[int]:
        """The lines, by index, that begin inside a string: their indentation is content."""
        out: set[int] = set()
        starts: list[int] = []
        for token in tokenize.generate_tokens(io.StringIO("".join(self.lines)).readline):
            name = tokenize.tok_name[token.type]
            if name in ("FSTRING_START", "TSTRING_START"):
                starts.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END"):
                out |= set(range(starts.pop(), token.end[0]))
            elif name == "STRING":
                out |= set(range(token.start[0], token.end[0]))
        return out

    def groups(self, block: Sequence[ast.stmt], begin: int) -> list[_Group]:
        """The statements of a block whose lines begin at index `begin`."""
        out: list[_Group] = []
        for node in block:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
            last = node.end_lineno or node.lineno
            if out and first < begin:
                out[-1].nodes.append(node)
                out[-1].own += self.lines[begin:last]
            else:
                line = self.lines[first]
                indent = line[: len(line) - len(line.lstrip(" \t\f"))]
                out.append(_Group([node], self.lines[begin:first], self.lines[first:last], first, indent))
            begin = last
        return out

    @cached_property
    def unit(self) -> str:
        """The indentation of a block: the main block's, else that of the file's first."""
        main = next((s for s in self.tree.body if is_main(s)), None)
        tree, lines = (self.tree, self.lines) if main else (ast.parse(self.original), split_lines(self.original))
        for node in [main] if main else tree.body:
            body = getattr(node, "body", None)
            if isinstance(body, list) and body[0].lineno > node.lineno:
                line = lines[body[0].lineno - 1]
                return str(line[: len(line) - len(line.lstrip(" \t"))])
        return "    "

    def moved(self, group: _Group, by: str) -> list[str]:
        """The lines of a group, further in by `by`."""
        first = group.at - len(group.lead)
        lines = [*group.lead, *group.own]
        return [line if first + i in self.inside_strings or not line.strip() else by + line for i, line in enumerate(lines)]


def moved(text: str, newline: str = "\n", asked: Spawned | None = None, original: str = "") -> tuple[str, list[int]]:
    """The script under mp.spawn, indented as `original` is, and the lines of `text` where a process would choose its devices too late.

    Raises Immovable where it cannot be taken apart.
    """
    layout = _Layout(text, newline, original or text)
    out, late = _chosen_by_parent(_Move(layout, asked or Spawned()).run(), layout)
    return _with_start(out, newline, layout.unit), late


class _Move:
    def __init__(self, layout: _Layout, asked: Spawned) -> None:
        self.layout, self.asked, self.devices = layout, asked, asked.devices
        self.tree = layout.tree
        self.pure = Purity(self.tree)
        self.dependence = Dependence(self.tree, self.pure)
        self._touched: dict[ast.stmt, tuple[set[str], set[str]]] = {}
        taken = names_in(self.tree) | {n.arg for n in walk(self.tree) if isinstance(n, ast.arg)}
        self.taken = taken | {n.name for n in walk(self.tree) if isinstance(n, _DEFINITIONS)} | set(self.pure.imports)
        self.process = self._free("process", "process_index")
        self.worker = self._free("worker", "train_worker", "spawned_worker")
        self.main = next((s for s in self.tree.body if is_main(s)), None)
        self.join = next((s for s in self.tree.body if isinstance(s, ast.FunctionDef) and ast.get_docstring(s) == OURS), None)
        self.places = self._places()
        self.pure.tainted |= set(self.places)
        self.groups = layout.groups(self.tree.body, 0)
        self.split: list[ast.stmt] = []
        self.function: ast.FunctionDef | None = None
        self.inner = self._main_groups()

    def _free(self, *names: str) -> str:
        name = next(n for n in (*names, *(f"{names[-1]}{i}" for i in range(2, 99))) if n not in self.taken)
        self.taken.add(name)
        return name

    def _places(self) -> dict[str, ast.stmt]:
        """The names of the module that hold this process's place, and their statements."""
        out: dict[str, ast.stmt] = {}
        for node in self.tree.body if self.join else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found = re.fullmatch(r"int\(os\.environ\.get\('(RANK|LOCAL_RANK|WORLD_SIZE)', [01]\)\)", ast.unparse(node.value))
                if found:
                    out.setdefault(node.targets[0].id, node)
        return out

    def _main_groups(self) -> list[_Group]:
        if self.main is None:
            return []
        assert isinstance(self.main, ast.If)
        if self.main.orelse:
            raise Immovable(self.main.lineno, "the main block has an else", "put what it holds into functions")
        if self.main.body[0].lineno == self.main.lineno:
            lines = [f"{self.layout.unit}{ast.unparse(s)}{self.layout.newline}" for s in self.main.body]
            return [_Group([s], [], [line], s.lineno - 1, self.layout.unit) for s, line in zip(self.main.body, lines, strict=True)]
        return self.layout.groups(self.main.body, self.main.lineno)

    # What becomes of each statement

    def run(self) -> str:
        joins = self._take_join()
        self._sort()
        text = self._split_function() if self._may_split() else None
        if text is None:
            self.function, self.split = None, []
            text = self._whole()
        text = self._with_set_up(text) if joins else text
        _prove(text, self.tree)
        return text

    def _take_join(self) -> bool:
        """Note the call that joins the group: what follows is the worker's; False where the script joins it in its own way."""
        if self.join is None:
            return False
        for group in (*self.groups, *self.inner):
            (node, *rest) = group.nodes
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == self.join.name
                and not rest
            ):
                group.kind = "gone"
                return True
        raise Immovable(
            self.join.lineno, "the process group is joined inside a function", "choose the devices before the main function is called"
        )

    def _sort(self) -> None:
        """Tell what stays, what runs before the processes start, and what each of them does."""
        started = False
        workers: list[_Group] = []
        for group in (*self.groups, *self.inner):
            (node, *_) = group.nodes
            inner = group in self.inner
            if group.kind == "gone":
                continue
            if node is self.main:
                group.kind = "gone"
            elif not inner and self._stays(group, started) and not self._collides(group, workers):
                group.kind = "kept"
            elif self._prepares(group, inner) and not self._collides(group, workers):
                group.kind = "parent"
            else:
                started = started or not self._only_sets_device(group)
                workers.append(group)
                self.pure.tainted |= group.bound
        self._place_in_worker()
        self._trim()
        self._place_in_worker()

    def _collides(self, group: _Group, before: Sequence[_Group]) -> bool:
        """Whether a group cannot run ahead of others that stand before it: one changes what the other reads or changes."""
        if isinstance(group.nodes[0], (*_DEFINITIONS, ast.Import, ast.ImportFrom)) or group.nodes[0] in self.places.values():
            return False
        reads, changes = self._touches(group)
        return any(changed & reads or changes & read for read, changed in map(self._touches, before))

    def _touches(self, group: _Group) -> tuple[set[str], set[str]]:
        """The names that a group reads, and those that it changes; a definition only what it does where it stands."""
        if (node := group.nodes[0]) not in self._touched:
            definition = isinstance(node, _DEFINITIONS)
            reads = _at_definition(node) if definition else self.dependence.reads(group.nodes)
            self._touched[node] = reads, group.bound if definition else self.dependence.changes(group.nodes) | group.bound
        return self._touched[node]

    def _only_sets_device(self, group: _Group) -> bool:
        """Whether nothing but this process's place keeps a statement from being calm, such as the choice of its device."""
        return all(Purity(self.tree).statement(node) for node in group.nodes)

    def _stays(self, group: _Group, started: bool) -> bool:
        node = group.nodes[0]
        if (
            isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom))
            or (not started and _is_docstring(node))
            or node in self.places.values()
        ):
            return True
        if any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in walk(node)):
            return True
        if _of_parser(node, self.pure.parsers):
            return self.pure.statement(node)
        calm = all(self.pure.setting(n) or (self.pure.statement(n) and not self.pure.parses(n)) for n in group.nodes)
        parsed = set().union(*(g.bound for g in self.groups if g.kind == "parent"))
        return calm and not started and not _names(group.nodes) & parsed

    def _prepares(self, group: _Group, inner: bool) -> bool:
        """Whether a statement may run once, before the processes start."""
        return all(
            self.pure.statement(n) or self.pure.chooses_devices(n) or (inner and isinstance(n, (ast.Import, ast.ImportFrom)))
            for n in group.nodes
        )

    def _place_in_worker(self) -> None:
        """What a statement needs that runs before the worker does, too, if it has no effect; else that statement is the worker's."""
        groups = [*self.groups, *self.inner]
        for _ in groups:
            moved = False
            for index, group in enumerate(groups):
                needs = self._needs_at_definition(group.nodes[0]) if isinstance(group.nodes[0], _DEFINITIONS) else _names(group.nodes)
                for before in reversed(groups[:index]) if group.kind in ("kept", "parent") else ():
                    early = ("kept",) if group.kind == "kept" else ("kept", "parent")
                    if before.kind in ("kept", "parent", "worker") and before.kind not in early and before.bound & needs:
                        calm = before not in self.inner and all(self.pure.statement(n) for n in before.nodes)
                        if before.kind == "worker" and not calm:
                            group.kind = "worker"
                        else:
                            before.kind = "kept"
                        moved = True
                        break
                later = [g for g in groups[:index] if _PHASES[g.kind] > _PHASES[group.kind]]
                if group.kind in ("kept", "parent") and self._collides(group, later):
                    group.kind = max((g.kind for g in later if self._collides(group, [g])), key=_PHASES.__getitem__)
                    moved = True
            if not moved:
                return

    def _needs_at_definition(self, node: ast.stmt) -> set[str]:
        """The names that must be bound when a definition is made: those that its decorators read, too, as they run."""
        return _at_definition(node) | self.dependence.reads(getattr(node, "decorator_list", ()))

    def _trim(self) -> None:
        """Leave in the parent only what leads to the arguments and to the choice of devices."""
        prepared = [g for g in (*self.groups, *self.inner) if g.kind == "parent"]
        parsed: set[str] = set().union(*(g.bound for g in prepared if any(map(self.pure.parses, g.nodes))))
        needed = set(self._device_names)
        for group in reversed(prepared):
            changes = _roots(group.nodes) & (parsed | needed) or any(map(self.pure.chooses_devices, group.nodes))
            if changes or group.bound & needed or any(map(self.pure.parses, group.nodes)):
                needed |= _names(group.nodes)
            else:
                group.kind = "worker"
        held = _used([g.nodes for g in (*self.groups, *self.inner) if g.kind == "worker"])
        if self._passed() & held & self.pure.parsers:
            for group in prepared:
                group.kind = "worker" if group in self.inner or group.kind == "worker" else "kept"

    def _passed(self) -> set[str]:
        """The names that the parent hands to the worker."""
        parent = [g for g in (*self.groups, *self.inner) if g.kind == "parent"]
        worker = [g.nodes for g in (*self.groups, *self.inner) if g.kind == "worker"]
        bound = set().union(*(g.bound for g in parent)) if parent else set()
        return bound & (_used(worker) | self._seen_by_definitions())

    def _seen_by_definitions(self) -> set[str]:
        """The names of the module that functions and classes which stay read, or declare global."""
        return _globals_of("".join(line for g in self.groups if g.kind == "kept" for line in g.own))

    # The text

    def _whole(self) -> str:
        """The worker holds all that runs."""
        layout = self.layout
        groups = [*self.groups, *self.inner]
        workers = [g for g in groups if g.kind == "worker"]
        names = sorted(self._passed(), key=lambda name: next(i for i, g in enumerate(groups) if name in g.bound))
        bound = set().union(*(g.bound for g in workers)) if workers else set()
        shared = self._seen_by_definitions() | set().union(*(g.bound for g in self.groups if g.kind == "kept")) | _declared(workers)
        if any(isinstance(n, ast.Name) and n.id in ("globals", "eval", "exec") for n in walk(self.tree)):
            shared |= bound
        body = self._body(workers)
        parent = [g for g in groups if g.kind == "parent"]
        lines = [line for g in parent for line in self._indented(g)]
        self._keep_devices({n for g in groups if g.kind in ("kept", "parent") for n in g.bound})
        start = [*self._head(), *lines, *(layout.unit + line for line in self._start(names))]
        before, after = self._remaining()
        worker = self._worker(names, sorted((bound | set(names)) & shared), body)
        return "".join([*before, *self._gap(), *worker, *self._gap(), *start, *after])

    def _keep_devices(self, known: set[str]) -> None:
        """Forget the list of GPUs where the parent does not know it."""
        if not self._device_names <= known | set(dir(builtins)):
            self.devices = ""

    @cached_property
    def _device_names(self) -> set[str]:
        return _names([ast.parse(self.devices)]) if self.devices else set()

    def _indented(self, group: _Group) -> list[str]:
        return [*group.lead, *group.own] if group in self.inner else self.layout.moved(group, self.layout.unit)

    def _body(self, workers: Sequence[_Group]) -> list[str]:
        """The worker's lines, without blank lines at the beginning and more than one in between."""
        lines = [line for group in workers for line in self._indented(group)]
        out: list[str] = []
        for line in lines:
            if line.strip() or (out and out[-1].strip()):
                out.append(line)
        return out

    def _remaining(self) -> tuple[list[str], list[str]]:
        """The lines that stay, and those below the last statement."""
        out: list[str] = []
        gap: list[str] = []
        for group in self.groups:
            if group.kind == "kept":
                blank = [line for line in group.lead if not line.strip()]
                out += [*(gap[len(blank) :] if out else []), *group.lead, *group.own]
                gap = []
            elif group.kind != "kept" and not gap:
                gap = [line for line in group.lead if not line.strip()]
        end = self.tree.body[-1].end_lineno or 0
        rest = self.layout.lines[end:]
        while out and not out[-1].strip():
            out.pop()
        return out, rest if any(line.strip() for line in rest) else []

    def _gap(self) -> list[str]:
        return [self.layout.newline] * 2

    def _head(self) -> list[str]:
        if self.main is None:
            return [f'if __name__ == "__main__":{self.layout.newline}']
        line = self.layout.lines[self.main.lineno - 1]
        at = next(g for g in self.groups if g.nodes[0] is self.main)
        inline = isinstance(self.main, ast.If) and self.main.body[0].lineno == self.main.lineno
        lead = [line for line in at.lead if line.strip()]
        return [*lead, f"{line[: line.index(':')]}:{self.layout.newline}" if inline else line]

    def _start(self, names: Sequence[str]) -> list[str]:
        count = self._count()
        given = f", args=({', '.join(names)}{',' * (len(names) == 1)})" if names else ""
        return [f"mp.spawn({self.worker}{given}, nprocs=prepare_spawn({count})){self.layout.newline}"]

    def _count(self) -> str:
        """How many processes there are: as many as the script's list of GPUs has entries, else as there are GPUs to be seen."""
        early = [g for g in (*self.groups, *self.inner) if g.kind in ("kept", "parent")]
        before = [*(n for g in early for n in g.nodes), *(self.function.body if self.function else ())]
        if not self.devices or any(_chooses_what_is_seen(n) for n in before if n not in self.split):
            return _DEVICES
        with contextlib.suppress(ValueError):
            return str(len(ast.literal_eval(self.devices)) or 1)
        return f"len({self.devices}) or 1"

    def _worker(self, names: Sequence[str], shared: Sequence[str], body: Sequence[str]) -> list[str]:
        """The worker's lines; a name that is handed to it and read by functions, too, is made known to the module."""
        given = {name: f"parsed_{name}" if name in shared else name for name in names}
        unit, end = self.layout.unit, self.layout.newline
        out = [f"def {self.worker}({', '.join([self.process, *given.values()])}):", f'{unit}"""What one of the spawned processes does."""']
        if shared:
            out.append(f"{unit}global {', '.join(shared)}")
        out += [f"{unit}{name} = {parameter}" for name, parameter in given.items() if name != parameter]
        out += [f"{unit}{line}" for line in self._joined()]
        return [*(line + end for line in out), *body]

    def _joined(self) -> list[str]:
        if self.join is not None:
            return [f"{self.join.name}({self.process})", *self._classes()]
        out = [f"os.environ.update(RANK=str({self.process}), LOCAL_RANK=str({self.process}))"]
        if self.asked.workers:
            out.append(_WORKERS)
        if self.asked.argument:
            out += [f"{name}.{self.asked.argument} = {self.process}" for name in self._arguments()]
        return out

    def _arguments(self) -> list[str]:
        """The names of the arguments that were parsed before the worker starts."""
        groups = [g for g in (*self.groups, *self.inner) if g.kind in ("kept", "parent")]
        parsed = [n for g in groups for n in g.nodes if self.pure.parses(n)]
        parsed += [n for n in (self.function.body if self.function else ()) if n not in self.split and self.pure.parses(n)]
        return _ordered(parsed)

    def _classes(self) -> list[str]:
        """A line that gives the classes which are pickled the name of the module that `python script` runs."""
        names: list[str] = []
        for node in (n for g in self.groups if g.kind == "kept" for n in g.nodes if isinstance(n, ast.ClassDef)):
            bases = [ast.unparse(base) for base in node.bases]
            if any(base in names or base.endswith(("Module", "Sequential", "ModuleList", "ModuleDict")) for base in bases):
                names.append(node.name)
        if not self.asked.own_classes or not names:
            return []
        kinds = f"({', '.join(names)}{',' * (len(names) == 1)})"
        end = self.layout.newline + self.layout.unit
        return [
            f'for kind in {kinds}:{end}{self.layout.unit}kind.__module__ = "__main__"  # models are pickled under the name that others load'
        ]

    # A main function that parses its arguments itself

    def _may_split(self) -> bool:
        self.function = self._called_main()
        return self.function is not None

    def _called_main(self) -> ast.FunctionDef | None:
        """The function that is called last, alone and nowhere else, and begins with the parsing of the arguments."""
        running = [g for g in (*self.groups, *self.inner) if g.kind in ("worker", "parent")]
        last = running[-1].nodes if running else []
        if not running or any(g.kind == "parent" for g in running) or len(last) != 1 or not isinstance(last[0], ast.Expr):
            return None
        call = last[0].value
        if not isinstance(call, ast.Call) or call.keywords:
            return None
        hands_over = bool(_COMMANDS.fullmatch(self.pure.path(call.func)) and call.args)
        callee = call.args[0] if hands_over else call.func
        function = self.pure.functions.get(callee.id) if isinstance(callee, ast.Name) and len(call.args) == hands_over else None
        if function is None or sum(isinstance(n, ast.Name) and n.id == function.name for n in walk(self.tree)) != 1:
            return None
        parsed = hands_over or any(self.pure.path(_callee(d)).partition(".")[0] in ("click", "hydra") for d in function.decorator_list)
        given = function.args
        if parsed and not (given.vararg or given.kwarg or given.posonlyargs):
            self.split = function.body[int(_is_docstring(function.body[0])) :]
        elif not function.decorator_list and not (given.args or given.kwonlyargs):
            cut = self._argument_statements(function)
            self.split = function.body[cut:] if cut else []
        return function if self.split else None

    def _argument_statements(self, function: ast.FunctionDef) -> int:
        """How many statements at the head of a function lead to its arguments."""
        cut = 0
        parsed: set[str] = set()
        for i, node in enumerate(function.body):
            if not (self.pure.statement(node) or self.pure.chooses_devices(node) or isinstance(node, (ast.Import, ast.ImportFrom))):
                break
            if self.pure.parses(node) or (parsed and (_roots([node]) & (parsed | self._device_names) or self.pure.chooses_devices(node))):
                parsed |= _bound([node]) if self.pure.parses(node) else set()
                cut = i + 1
        return cut if parsed else 0

    def _split_function(self) -> str | None:
        """Cut the main function where its arguments are known: the rest is the worker's."""
        function, layout = self.function, self.layout
        assert function is not None
        head = function.body[: function.body.index(self.split[0])]
        declared = {name for n in head if isinstance(n, ast.Global) for name in n.names}
        group = next(g for g in self.groups if function in g.nodes)
        others = [line for g in self.groups if g.kind == "kept" and g is not group for line in g.own]
        seen = _globals_of("".join(others)) | set().union(*(g.bound for g in self.groups if g.kind == "kept" and g is not group))
        parameters = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
        wanted = _used([self.split]) | (declared & seen)
        names = [n for n in dict.fromkeys([*parameters, *_ordered(head)]) if n in wanted]
        modules = {n for s in head if isinstance(s, (ast.Import, ast.ImportFrom)) for n in _bound([s])}
        if set(names) & (modules | self.pure.parsers) or any(isinstance(n, _DEFINITIONS) for n in head):
            return None
        line = layout.lines[function.body[-1].lineno - 1]
        unit = line[: len(line) - len(line.lstrip(" \t"))]
        before = [g for g in (*self.groups, *self.inner) if g.kind == "worker"][:-1]
        earlier: set[str] = set().union(*(g.bound for g in before))
        local = (_bound(self.split) | set(_ordered(head))) - declared
        if (
            unit != layout.unit
            or earlier & (local | (_names(head) - declared))
            or (head and self._collides(_Group(list(head), [], [], -1), before))
        ):
            return None
        self._keep_devices({*_ordered(head), *(n for g in self.groups if g.kind == "kept" for n in g.bound)})
        begins = self.split[0].lineno - 1
        at = ((head[-1].end_lineno or 0) if head else begins) - group.at
        rest = group.own[at:]
        shared = sorted((declared & (_bound(self.split) | set(names) | earlier)) | (earlier & (seen | _declared(before))))
        while rest and not rest[0].strip():
            rest.pop(0)
        worker = self._worker(names, shared, [*self._body(before), *rest])
        start = [unit + line for line in self._start(names)]
        group.own = [*group.own[:at], *start, *self._gap(), *worker]
        for other in before:
            other.kind = "gone"
        kept, after = self._remaining()
        (call,) = [g for g in (*self.groups, *self.inner) if g.kind == "worker"]
        return (
            "".join([*kept, *self._gap(), *self._head(), *self._indented(_Group(call.nodes, [], call.own, call.at)), *after])
            if (call in self.groups)
            else "".join([*kept, *self._gap(), *self._head(), *call.own, *after])
        )

    # The set-up

    def _with_set_up(self, text: str) -> str:
        """The set-up for processes that the script starts itself, in place of that of a launcher."""
        assert self.join is not None
        end = self.layout.newline
        names = {re.search(r"'(\w+)'", ast.unparse(s)).group(1): n for n, s in self.places.items()}  # type: ignore[union-attr]
        rank, local = names["RANK"], names["LOCAL_RANK"]
        text = re.sub(
            r"# One process per GPU: [^\r\n]*",
            f"# One process per GPU: mp.spawn starts them, and {self.join.name} tells each which one it is.",
            text,
            count=1,
        )
        first, second = (ast.get_source_segment("".join(self.layout.lines), self.places[n]) or "" for n in (rank, local))
        text = text.replace(f"{first}{end}{second}{end}", f"{rank} = {local} = 0{end}", 1)
        own = "".join(next(g for g in self.groups if self.join in g.nodes).own)
        first = self.layout.lines[self.join.body[0].lineno - 1]
        pad = first[: len(first) - len(first.lstrip())]
        joins = re.search(r"(\w+\.init_process_group)\((.*?)\)", own)
        assert joins is not None
        new = own.replace(f"def {self.join.name}():", f"def {self.join.name}({self.process}):")
        lines = [
            '"""Join the group of the processes that mp.spawn has started."""',
            f"global {rank}, {local}",
            f"{rank} = {local} = {self.process}",
        ]
        new = new.replace(f'"""{OURS}"""', f"{end}{pad}".join(lines))
        asked = [f"{pad}{line}{end}" for line in (f"{joins[1]}({joins[2]}, rank={rank})", *self._asked_for())]
        new = re.sub(rf"{pad}if \"RANK\" in os\.environ:\r?\n(.*\r?\n){{3}}", lambda _: "".join(asked), new)
        return text.replace(own, new, 1)

    def _asked_for(self) -> Iterable[str]:
        for name in self.asked.environment:
            yield f'os.environ["{name}"] = str({self.process})'
        if self.asked.workers:
            yield _WORKERS


def _callee(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _of_parser(node: ast.stmt, parsers: set[str]) -> bool:
    """Whether a statement makes or fills the parser of the arguments."""
    if isinstance(node, ast.Assign):
        return all(ast.unparse(t) in parsers for t in node.targets)
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr.startswith(("add_", "set_")) and any(
        ast.unparse(n) in parsers for n in walk(call.func.value) if isinstance(n, ast.expr)
    )


def _chooses_what_is_seen(node: ast.stmt) -> bool:
    """Whether a statement sets CUDA_VISIBLE_DEVICES: the GPUs that are there are then those of the script's list."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
        return False
    key = node.targets[0].slice
    return isinstance(key, ast.Constant) and key.value == "CUDA_VISIBLE_DEVICES"


def _source(nodes: Iterable[ast.AST]) -> str:
    return "\n".join(ast.unparse(n) for n in nodes)


def _table(source: str) -> symtable.SymbolTable:
    return symtable.symtable(source, "script", "exec")


def _bound(nodes: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind where they stand."""
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for s in nodes for n in walk(s)):
        nodes = [_Unstarred().visit(copy.deepcopy(n)) for n in nodes]  # no function may have one
    source = "".join(f"{line}\n" for line in _source(nodes).splitlines())
    symbols = _table("async def f():\n" + "".join(f" {line}\n" for line in source.splitlines()) + " pass\n").get_children()[0].get_symbols()
    declared = {name for s in nodes for n in _own(s) if isinstance(n, ast.Global) for name in n.names}
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()} | declared


class _Unstarred(ast.NodeTransformer):
    """Takes out imports of all names of a module."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if node.names[0].name == "*" else node


def _own(node: ast.AST) -> Iterable[ast.AST]:
    """A statement and what is in it, functions and classes left out."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_DEFINITIONS, ast.Lambda)):
            yield from _own(child)


def _ordered(nodes: Sequence[ast.stmt]) -> list[str]:
    return [name for node in nodes if not isinstance(node, ast.Global) for name in sorted(_bound([node]))]


def _roots(nodes: Sequence[ast.stmt]) -> set[str]:
    """The names whose values statements may change: what is assigned to, wholly or in part, and what methods are called on."""
    out: set[str] = set()
    for statement in nodes:
        for node in walk(statement):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and (isinstance(node.ctx, (ast.Store, ast.Del))):
                root: ast.expr = node
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(statement, (ast.Expr, ast.For, ast.If)):
                root = node.func.value
            else:
                continue
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                out.add(root.id)
    return out | _bound(nodes)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names in nodes, without the variables of comprehensions."""
    out: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            out.add(node.id)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            own = {n.id for g in node.generators for n in walk(g.target) if isinstance(n, ast.Name)}
            out |= _names([node.generators[0].iter]) | (_names(ast.iter_child_nodes(node)) - own)
        else:
            out |= _names(ast.iter_child_nodes(node))
    return out


def _used(blocks: Iterable[Sequence[ast.stmt]]) -> set[str]:
    return set().union(*(_names(nodes) for nodes in blocks))


def _globals_of(source: str) -> set[str]:
    """The names that the functions and classes of a module take from it."""
    out: set[str] = set()
    todo = list(_table(source).get_children())
    while todo:
        table = todo.pop()
        out |= {s.get_name() for s in table.get_symbols() if s.is_global()}
        todo += table.get_children()
    return out


def _declared(groups: Iterable[_Group]) -> set[str]:
    """The names that functions inside the worker declare global."""
    return {name for g in groups for s in g.nodes for n in walk(s) if isinstance(n, ast.Global) for name in n.names}


def _at_definition(node: ast.stmt) -> set[str]:
    """The names that a definition reads as it is made."""
    parts: list[ast.AST] = [*getattr(node, "decorator_list", ())]
    if isinstance(node, ast.ClassDef):
        parts += [*node.bases, *node.keywords]
        parts += [s for s in node.body if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return _names(parts) | set().union(
            *(_at_definition(s) for s in node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)))
        )
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    parts += [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *(a.annotation for a in every if a and a.annotation)]
    return _names([*parts, *([node.returns] if node.returns else [])])


def _chosen_by_parent(text: str, layout: _Layout) -> tuple[str, list[int]]:
    """The script in which no started process chooses its devices: it sees the parent's; and the lines of `layout` where it would have."""
    tree, lines = ast.parse(text), split_lines(text)
    functions = [f for f in tree.body if isinstance(f, _DEFINITIONS) and "mp.spawn(" not in ast.unparse(f)]
    chosen = [n for f in functions for n in walk(f) if isinstance(n, ast.Assign) and _chooses_what_is_seen(n)]
    for node in sorted(chosen, key=lambda n: -n.lineno):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        indent = lines[first][: node.col_offset]
        if indent.strip():
            raise Immovable(node.lineno, "the devices are chosen on a line with other statements", "give it a line of its own")
        environ = ast.unparse(node.targets[0].value)  # type: ignore[attr-defined]
        lines[first:last] = [
            f'{indent}if "WORLD_SIZE" not in {environ}:{layout.newline}',
            *(layout.unit + line for line in lines[first:last]),
        ]
    texts = {ast.unparse(n) for n in chosen}
    late = [n.lineno for n in walk(layout.tree) if isinstance(n, ast.Assign) and ast.unparse(n) in texts]
    return "".join(lines), sorted(late)


def _prove(text: str, before: ast.Module) -> None:
    """Raise Immovable where a name of the result is bound nowhere, though it was before."""
    try:
        tree = ast.parse(text)
        compile(text, "script", "exec")
    except SyntaxError as error:
        raise Immovable(1, f"what runs when the file is imported cannot be moved into a function ({error.msg})") from error
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("input", "breakpoint"):
            raise Immovable(node.lineno, f"{node.func.id}() cannot ask in a process without a terminal", "take the value as an argument")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exec":
            raise Immovable(node.lineno, "exec() binds names that a function would not see", "bind them by name")
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in walk(tree)):
        return
    had, known = _bound(before.body), set(dir(builtins))
    for statement in tree.body:
        known |= _bound([statement])
        unknown = set() if isinstance(statement, _DEFINITIONS) else _names([statement]) & had - known
        if unknown:
            raise Immovable(1, f"what runs before the processes start needs {', '.join(sorted(unknown))}")
    parents = [s for s in tree.body if isinstance(s, ast.FunctionDef) and "mp.spawn(" in ast.unparse(s)]
    elsewhere = {id(n) for s in parents for n in walk(s)}
    known |= {n for s in walk(tree) if isinstance(s, ast.Global) and id(s) not in elsewhere for n in s.names}
    if lost := _globals_of(text) & had - known:
        raise Immovable(1, f"functions read {', '.join(sorted(lost))}, which only a part of the script knows")


def _with_start(text: str, newline: str, unit: str) -> str:
    """The script with what starts processes imported and defined, before the first definition that stays."""
    tree = ast.parse(text)
    lines = split_lines(text)
    have = {a.asname or a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    wanted = {"socket": "import socket", "mp": "import torch.multiprocessing as mp"}
    anchors = {"socket": ("os", "sys", "argparse"), "mp": ("dist", "torch")}
    plain = [n for n in tree.body if isinstance(n, ast.Import)]
    other = [n for n in tree.body if not isinstance(n, _DEFINITIONS) and any(isinstance(i, ast.Import) for i in walk(n))]
    for name, line in wanted.items():
        if name not in have:
            named = (n for a in anchors[name] for n in plain if any(a == (x.asname or x.name) for x in n.names))
            lines[(next(named, (plain or other)[-1]).end_lineno or 0) - 1] += line + newline
    text = "".join(lines)
    block = (template_dir() / "runtime" / "prepare_spawn.py").read_text(encoding="utf-8")
    block = block.replace("    ", unit).replace("\n", newline)
    tree = ast.parse(text)
    after: ast.stmt | None = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and _joins(n)), None)
    lines = split_lines(text)
    if after is None:
        after = next(n for n in reversed(tree.body) if isinstance(n, (ast.Import, ast.ImportFrom)))
    lines[(after.end_lineno or 0) - 1] += newline * 2 + block
    return "".join(lines)


def _joins(node: ast.FunctionDef) -> bool:
    return "init_process_group" in ast.unparse(node)
