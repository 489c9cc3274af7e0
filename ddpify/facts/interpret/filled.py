"""What a loop over the samples of a batch fills: `rows = []`, and in the loop `rows.append(...)`, has an entry for each of them.

A tensor of rows stays one, in each row of which a pass writes what is of that sample: `mask[i, :lengths[i]] = 1`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ddpify.facts import library
from ddpify.facts.interpret.assignment import counts, ends_elsewhere
from ddpify.facts.interpret.known_to_calls import depends, knows_batch
from ddpify.facts.interpret.state import ELEMENT, Interpreter
from ddpify.facts.model import NOTHING, Loop, New, Value
from ddpify.facts.origins import only, without
from ddpify.facts.tree import names_stored, walk
from ddpify.placement.shape import PLACES, Shape

_CHANGING = frozenset("append extend insert pop remove clear sort reverse".split())
_ENDS = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Try, ast.Global, ast.Nonlocal)


def rows_written(run: Interpreter, loop: ast.For) -> dict[str, Value]:
    """The tensors of rows, as they are before a loop, in whose entries it writes."""
    bound = {n.id for s in loop.body for n in names_stored(s)}
    written = {name for s in loop.body for n in walk(s) if (name := _written(n))}
    held = {name: run.lookup(name) for name in written - bound}
    return {n: v for n, v in held.items() if v.scale == "sample" and not v.objs and v.shape is not None and v.shape.axis == 0}


def _written(node: ast.AST) -> str:
    """The name of the tensor whose entries a node writes to: `x[i, 0] = ...`, `x[i][0] = ...`, `x[i].fill_(1)`; empty where it does not."""
    match node:
        case ast.Subscript(value=of, ctx=ast.Store()) | ast.Call(ast.Attribute(ast.Subscript(of))):
            while isinstance(of, ast.Subscript):
                of = of.value
            return of.id if isinstance(of, ast.Name) else ""
    return ""


def fill(run: Interpreter, loop: ast.For, passes: Loop, before: Mapping[str, Value]) -> None:
    """After a loop over samples, a list that got one entry in each pass, of that sample alone, is a list of rows.

    And so are the tensors of rows that there were before it, where each pass wrote to its sample's row alone.
    """
    if loop.orelse or any(isinstance(n, _ENDS) for s in loop.body for n in walk(s)) or ends_elsewhere(run, passes.over):
        return
    element = passes.element
    for name, rows in before.items():
        if _Passes(run, loop, before).are_apart():
            # what it numbers has an entry for each sample, be it a tensor or a tuple
            origins = without(run.lookup(name).origins, "entry") | only(rows.origins, "entry")
            run.bind(name, Value(rows.objs, origins, "sample", rows.shape))
    for statement in loop.body:
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name), "append"), [entry], [])) if not isinstance(entry, ast.Starred):
                held = run.lookup(name)
                made = next(iter(held.objs)) if len(held.objs) == 1 else None
                if not (isinstance(made, New) and made.path == "list" and _was_empty(run, loop, name)):
                    continue
                if _Passes(run, loop, {}).are_apart():
                    inner = run.memory.get((made, ELEMENT), NOTHING)
                    origins = inner.origins | only(library.mixed([element], {}).origins, "batch")
                    library.shown_as_table(run, made, inner)
                    run.bind(name, Value(held.objs, origins, "sample", Shape(made, sure=False)))


def _was_empty(run: Interpreter, loop: ast.For, name: str) -> bool:
    """Whether a list is made empty before a loop, in its block, and is not mentioned again but where the loop fills it, and alone does."""
    block = _block(run, loop)
    if _changes(run, name) != 1:
        return False
    before = block[: block.index(loop)] if loop in block else []
    last = next((s for s in reversed(before) if any(n.id == name for n in _names(s))), None)
    match last:
        case ast.Assign([ast.Name()], value):
            values = [value]
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(given)) if len(targets) == len(given):
            values = [v for t, v in zip(targets, given, strict=True) if isinstance(t, ast.Name) and t.id == name]
        case _:
            return False
    match values:
        case [ast.List([]) | ast.Call(ast.Name("list"), [], [])]:
            return sum(n.id == name for n in _names(loop)) == 1
    return False


def _changes(run: Interpreter, name: str) -> int:
    """How often the function that is running changes what a list of this name holds."""
    key = (f"changes of {name}", _scope(run))
    if key not in run.project.memo:
        run.project.memo[key] = sum(_changed(n) == name for n in walk(_scope(run)))
    return run.project.memo[key]  # type: ignore[return-value]


def _changed(node: ast.AST) -> str:
    """The name of the list that a node changes; empty where it does not."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(id=name), method)) if method in _CHANGING:
            return name
        case ast.AugAssign(ast.Name(id=name)) | ast.AugAssign(ast.Subscript(ast.Name(id=name))):
            return name
        case ast.Subscript(ast.Name(id=name), _, ast.Store() | ast.Del()):
            return name
    return ""


def _scope(run: Interpreter) -> ast.AST:
    return run.frame.node if run.frame.node is not None else run.file_of(run.frame.file).tree


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (n for n in walk(node) if isinstance(n, ast.Name))


def _block(run: Interpreter, loop: ast.For) -> list[ast.stmt]:
    """The statements among which a loop stands."""
    key = ("block of", loop)
    if key not in run.project.memo:
        bodies = (getattr(n, field, None) for n in walk(_scope(run)) for field in ("body", "orelse", "finalbody"))
        run.project.memo[key] = next((b for b in bodies if isinstance(b, list) and loop in b), [])
    return run.project.memo[key]  # type: ignore[return-value]


class _Passes:
    """The passes of a loop: whether each has of the batch what its own sample tells, and nothing else."""

    def __init__(self, run: Interpreter, loop: ast.For, rows: Mapping[str, Value]) -> None:
        self.run, self.loop, self.rows = run, loop, rows
        self.targets = {n.id for n in names_stored(loop.target)}

    def are_apart(self) -> bool:
        """Whether no pass reads what is of another sample, or of several."""
        return not any(counts(self.run, s, self.targets) for s in self.loop.body) and self._block(self.loop.body, set(self.targets))

    def _block(self, body: Sequence[ast.stmt], own: set[str]) -> bool:
        """Whether statements read of the batch only what `own` names hold; what they store is of the same sample from there on."""
        for statement in body:
            inner = [b for field in ("body", "orelse") if (b := getattr(statement, field, None))]
            heads = [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.expr)] if inner else [statement]
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.With)) or not all(self._reads_own(h, own) for h in heads):
                return False
            stored = {n.id for h in heads for n in names_stored(h)}
            if not all(self._block(b, own | stored) for b in inner):
                return False
            own |= set() if inner else stored
        return True

    def _reads_own(self, node: ast.AST, own: set[str]) -> bool:
        own = own | {n.id for c in walk(node) if isinstance(c, ast.comprehension) for n in names_stored(c.target)}
        if isinstance(node, ast.AugAssign) and not (
            self._is_numbered(node.target) if isinstance(node.target, ast.Subscript) else getattr(node.target, "id", "") in own
        ):
            return False
        return self._is_own(node, own)

    def _is_own(self, node: ast.AST, own: set[str]) -> bool:
        match node:
            case ast.Call(ast.Attribute(ast.Name(), "append"), [entry], []):  # which reads nothing of the list
                return self._is_own(entry, own)
        if isinstance(node, ast.Subscript) and self._is_numbered(node):
            return self._is_own(node.slice, own)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self.run.trace.values.get(node, NOTHING).scale is None and isinstance(node.slice, ast.Constant)  # of each sample
        if isinstance(node, ast.Name):
            return node.id in own or isinstance(node.ctx, ast.Store) or not depends(self.run, self.run.lookup(node.id))
        if isinstance(node, ast.Attribute) and not self._is_of(node, own) and depends(self.run, self.run.trace.values.get(node, NOTHING)):
            return False
        if isinstance(node, ast.Call) and knows_batch(self.run, self.run.trace.values.get(node.func, NOTHING)):
            return False
        return all(self._is_own(child, own) for child in ast.iter_child_nodes(node))

    def _is_numbered(self, node: ast.Subscript) -> bool:
        """Whether an expression is the entry of rows that the loop numbers: `x[i]`, `x[i, :4]`."""
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if not (isinstance(first, ast.Name) and first.id in self.targets and isinstance(node.value, ast.Name)):
            return False
        rows = self.rows.get(node.value.id) or self.run.lookup(node.value.id)
        if not self.run.lookup(first.id).of_kind(PLACES):
            return False
        return rows.scale == "sample" and not any(map(rows.of_kind, ("parts", "joined", "reordered", "steps")))

    def _is_of(self, node: ast.AST, own: set[str]) -> bool:
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            if isinstance(node, ast.Subscript) and self._is_numbered(node):
                return True
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id in own
