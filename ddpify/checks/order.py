"""The process group is joined before anything asks for it, on every path: through calls, and where modules are imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.checks.binding import Binding
from ddpify.checks.problem import Problem
from ddpify.facts import library
from ddpify.facts.model import Call, Class, Func, Stack
from ddpify.facts.runs import Run
from ddpify.project import SourceFile

JOINED = "joined"
_JOINS = frozenset(("torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"))
_ASKS = frozenset(f"torch.distributed.{name}" for name in ("get_rank", "get_world_size", "is_initialized", "get_backend", "new_group"))
_PREFIXES = ("all_", "broadcast", "reduce", "gather", "scatter", "send", "recv", "barrier", "monitored_barrier", "isend", "irecv")


def needs_group(call: Call) -> bool:
    """Whether a call fails, or answers for one rank alone, where there is no process group."""
    paths = call.func.paths()
    if paths & _ASKS or paths & library.DDPS or any(is_collective(path) for path in paths):
        return True
    return library.DISTRIBUTED_SAMPLER in paths and not {"rank", "num_replicas"} <= {k.arg for k in call.node.keywords}


def is_collective(path: str) -> bool:
    """Whether a function of torch needs all ranks of the group, or two of them."""
    package, _, name = path.rpartition(".")
    return package == "torch.distributed" and name.startswith(_PREFIXES)


def joining(run: Run) -> dict[ast.AST, frozenset[str]]:
    """The calls after which the group is joined for sure: of torch's function, and of functions that join it wherever they end."""
    marks: dict[ast.AST, frozenset[str]] = {call.node: frozenset((JOINED,)) for call in run.trace.calls if call.func.paths() & _JOINS}
    if not marks:
        return {}
    callers: dict[ast.AST, list[ast.AST]] = {}
    callees: dict[ast.AST, set[ast.AST]] = {}
    for call in run.trace.calls:
        callees.setdefault(call.node, set()).update(_functions(run, call))
        for callee in callees[call.node]:
            callers.setdefault(callee, []).append(call.node)
    todo = list(dict.fromkeys(_function_around(run, node) for node in marks))
    joins: set[ast.AST] = set()
    while todo:
        function = todo.pop()
        if function in joins or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if JOINED not in Binding(ast.Module([function], []), marks).leaves.get(function, ()):
            continue
        joins.add(function)
        for caller in callers.get(function, ()):
            if callees[caller] <= joins:
                marks[caller] = frozenset((JOINED,))
        todo += [_function_around(run, caller) for caller in callers.get(function, ()) if caller in marks]
    return marks


def _functions(run: Run, call: Call) -> Iterator[ast.AST]:
    """What a call may run: a function of the project, or something else."""
    for obj in call.func.objs:
        if isinstance(obj, Func):
            yield obj.node
        elif isinstance(obj, Class) and (init := run.interpreter.find(obj, "__init__")) is not None:
            yield from (f.node for f in init.objs if isinstance(f, Func))
        else:
            yield call.node


def _function_around(run: Run, node: ast.AST) -> ast.AST:
    """The innermost function around a node, or its module."""
    tree = run.scopes.tree(node)
    return node if tree is None else tree.function(node)


class Order:
    """Which calls of a run come after the group is joined, whatever path leads to them."""

    def __init__(self, run: Run, bindings: Mapping[str, Binding]) -> None:
        self.run, self.bindings = run, bindings
        self.reached = {node: marks for binding in bindings.values() for node, marks in binding.reached.items()}
        self._imports: dict[ast.AST, bool] = {}

    def joined(self, node: ast.AST, stack: Stack) -> bool:
        """Whether the group is joined by the time that a node is evaluated under a stack of calls."""
        return any(self._surely(n) for n in (node, *stack))

    def _surely(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Module):
            if node not in self._imports:
                self._imports[node] = False  # modules that import one another
                self._imports[node] = self._imported_later(node)
            return self._imports[node]
        return JOINED in self.reached.get(node, ())

    def _imported_later(self, module: ast.Module) -> bool:
        """Whether every import that runs a module comes after the group is joined."""
        interpreter, visited = self.run.interpreter, self.run.trace.visited
        name = next((n for n, f in interpreter.project.files.items() if f.tree is module), "")
        found: list[tuple[ast.AST, SourceFile]] = []
        for file in (interpreter.project.entry, *interpreter.project.files.values()):
            imports: list[ast.Import | ast.ImportFrom] = file.standing.of(ast.Import, ast.ImportFrom)
            found += [(node, file) for node in imports if node in visited and name in interpreter.imports(node, file.name)]
        return bool(found) and all(JOINED in self.reached.get(node, ()) or self._in_late_module(node, file) for node, file in found)

    def _in_late_module(self, node: ast.AST, file: SourceFile) -> bool:
        """Whether an import stands in a module that is imported after the group is joined."""
        entry = self.run.interpreter.project.entry
        return file is not entry and isinstance(_function_around(self.run, node), ast.Module) and self._surely(file.tree)


def problems(run: Run, bindings: Mapping[str, Binding]) -> Iterator[Problem]:
    """The calls that need the group, and run before it is joined on some path."""
    order = Order(run, bindings)
    reported: set[ast.AST] = set()
    for call in run.trace.calls:
        if call.node in reported or not needs_group(call) or order.joined(call.node, call.stack):
            continue
        reported.add(call.node)
        what = ast.unparse(call.node.func)
        yield Problem(call.file, call.node, f"{what} runs before the process group is joined", ("order", call.file, what))
