"""Which statements an autocast goes around: from the first trained forward to the one that makes the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.model import NOTHING, Call, in_common
from ddpify.facts.tree import Tree, calls_in, walk
from ddpify.records import dataclass, field
from ddpify.rules.context import Context
from ddpify.rules.precision import existing
from ddpify.rules.precision.existing import Backward

UNSAFE = frozenset(("torch.nn.functional.binary_cross_entropy", "torch.binary_cross_entropy"))
_FILLS = ("append", "extend", "insert", "update", "add")
UNSAFE_MODULE = "torch.nn.BCELoss"


@dataclass(eq=False)
class Regions:
    """The statements to cast, in runs of one block each.

    `within` are the losses that must not be cast, inside those statements; `alone` are those that stand beside them; `joined` are
    differentiated in the expression that makes them. `penalties` are the calls that differentiate by themselves, lifted out in front of
    their statement; `missed` are the forwards that no run holds.
    """

    runs: list[tuple[ast.stmt, ast.stmt]] = field(default_factory=list)
    alone: list[Call] = field(default_factory=list)
    within: list[Call] = field(default_factory=list)
    joined: list[Backward] = field(default_factory=list)
    penalties: dict[ast.stmt, ast.Call] = field(default_factory=dict)
    missed: list[Call] = field(default_factory=list)


def find_regions(context: Context, todo: list[Backward]) -> Regions:
    """The statements that lead to these backward calls."""
    out = Regions()
    breaks = existing.trains(context) | _differentiated(context)
    chosen: set[ast.stmt] = set()
    spans: list[list[ast.stmt]] = []
    for backward in todo:
        for span in _Slice(context, backward, breaks, out).spans():
            spans.append(span)
            chosen.update(span)
    for span in spans:
        inner = any(up in chosen for up in context.tree.ancestors(span[0]))
        if not inner:
            out.runs.append((span[0], span[-1]))
    out.runs = _merged(context.tree, out.runs, set(out.penalties))
    _verify(context, todo, out)
    return out


def _differentiated(context: Context) -> frozenset[ast.AST]:
    """The forwards whose outputs `autograd.grad` differentiates: a penalty is computed in float32, its gradients are not scaled."""
    run = context.facts.after
    calls = [c for c in run.trace.calls if existing.GRAD in c.func.paths()]
    outputs = [v for c in calls for v in (c.argument(0, "outputs"),) if v is not None]
    return frozenset(node for v in outputs for _, node in v.of_kind("forward"))


def differentiated_by(context: Context, call: Call) -> set[ast.Call]:
    """The outermost forwards that a call of `autograd.grad` goes back through, from outputs to inputs."""
    run = context.facts.after
    outputs, inputs = (call.argument(i, name) or NOTHING for i, name in enumerate(("outputs", "inputs")))
    nodes: set[ast.Call] = {node for _, node in outputs.of_kind("forward") - inputs.of_kind("forward")}
    return {n for n in nodes if not any(n is not up and up in nodes for c in run.calls(n) for up in c.stack)}


def _merged(tree: Tree, runs: list[tuple[ast.stmt, ast.stmt]], heads: set[ast.stmt]) -> list[tuple[ast.stmt, ast.stmt]]:
    """Runs that touch or overlap, as one, save where one must begin."""
    out: list[tuple[ast.stmt, ast.stmt]] = []
    for first, last in sorted(runs, key=lambda r: r[0].lineno * 1000 + r[0].col_offset):
        block = tree.block(first)
        if out and first not in heads and out[-1][1] in block and block.index(first) <= block.index(out[-1][1]) + 1 and out[-1][0] in block:
            end = max(out[-1][1], last, key=block.index)
            out[-1] = out[-1][0], end
        else:
            out.append((first, last))
    return out


def _verify(context: Context, todo: list[Backward], out: Regions) -> None:
    """Note the forwards that no run holds."""
    tree = context.tree
    inside = {n for first, last in out.runs for s in _between(tree, first, last) for n in walk(s)}
    inside |= {n for u in out.alone for a in arguments(u) for n in walk(a)}
    inside |= {n for b in out.joined for n in walk(b.receiver)} | _differentiated(context)
    for backward in todo:
        for call in backward.forwards:
            if not {call.node, *call.stack} & inside and call not in out.missed:
                out.missed.append(call)


def _between(tree: Tree, first: ast.stmt, last: ast.stmt) -> list[ast.stmt]:
    block = tree.block(first)
    return block[block.index(first) : block.index(last) + 1]


def arguments(call: Call) -> list[ast.expr]:
    """What a loss compares."""
    return [*call.node.args, *(k.value for k in call.node.keywords if k.arg in ("input", "target"))][:2]


def unsafe(context: Context) -> list[Call]:
    """The losses that CUDA refuses under autocast."""
    calls = context.facts.after.trace.calls
    found = [c for c in calls if c.func.paths() & UNSAFE or any(o.path == UNSAFE_MODULE for o in c.func.instances())]
    return list({c.node: c for c in found}.values())


class _Slice:
    """The statements that make the loss of one backward call."""

    def __init__(self, context: Context, backward: Backward, breaks: frozenset[ast.AST], out: Regions) -> None:
        self.context = context
        self.backward = backward
        self.breaks = breaks
        self.out = out
        self.tree = context.tree
        self.forwards = {n for c in backward.forwards for n in (c.node, *c.stack)}
        pairs = backward.loss.of_kind("forward")
        touching = [c for c in context.facts.after.trace.calls if c.result.of_kind("forward") & pairs and not c.no_grad]
        self.touching = {c.node for c in touching}
        self.inside = {n for c in touching for n in c.stack} | self.forwards
        self.pairs = pairs

    def spans(self) -> Iterator[list[ast.stmt]]:
        """Runs of statements, each of one block."""
        stack = self.backward.call.stack
        depths = {in_common(c.stack, stack) for c in self.backward.forwards} | {len(stack)}
        for depth in sorted(depths):
            anchor = stack[depth] if depth < len(stack) else self.backward.call.node
            if anchor not in self.tree.parent:
                continue
            own = depth == len(stack)
            yield from self._frame(anchor, self.backward.receiver if own else anchor)

    def _frame(self, anchor: ast.AST, read: ast.AST) -> Iterator[list[ast.stmt]]:
        statement = self.tree.statement(anchor)
        needed = set(_loaded(read))
        own = {n for n in walk(statement) if n in self.forwards and n is not anchor}
        if own and isinstance(statement, ast.Expr) and anchor is self.backward.call.node:
            self.out.joined.append(self.backward)
        for level in self.tree.path(anchor):
            block = self.tree.block(level)
            at = block.index(level)
            relevant = []
            for s in reversed(block[:at]):
                if self._touches(s) and (needed & set(_stored(s)) or self._calls(s)):
                    needed |= set(_loaded(s))
                    relevant.append(s)
            relevant += [s for s in block[at + 1 :] if any(n in self.forwards for n in walk(s))]
            yield from self._split(block, relevant)

    def _split(self, block: list[ast.stmt], relevant: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
        """From the first to the last of what is relevant, without what must stay outside."""
        if not relevant:
            return
        places = sorted(block.index(s) for s in relevant)
        run: list[ast.stmt] = []
        for s in block[places[0] : places[-1] + 1]:
            if (call := self._penalty(s)) is not None and s in relevant:
                yield from self._trimmed(run, relevant)
                self.out.penalties[s] = call
                run = [s]
            elif self._stays_outside(s, s in relevant):
                yield from self._trimmed(run, relevant)
                run = []
            else:
                run.append(s)
        yield from self._trimmed(run, relevant)

    def _trimmed(self, run: list[ast.stmt], relevant: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
        inside = [i for i, s in enumerate(run) if s in relevant]
        if any(calls_in(run[i]) for i in inside):  # sums of losses are float32 already
            yield run[inside[0] : inside[-1] + 1]

    def _penalty(self, s: ast.stmt) -> ast.Call | None:
        """The one call of a simple statement that differentiates, where the statement does other things, too."""
        if not isinstance(s, (ast.Assign, ast.AugAssign)) or isinstance(s.value, ast.Call):
            return None
        grads = [c for c in self.context.facts.after.trace.calls if existing.GRAD in c.func.paths()]
        found = [n for n in calls_in(s) if any(n is c.node or n in c.stack for c in grads)]
        only = found[0] if found else None
        rest = set(walk(s)) - (set(walk(only)) if only is not None else set())
        return only if only is not None and not rest & self.breaks else None

    def _stays_outside(self, s: ast.stmt, relevant: bool) -> bool:
        nodes = set(walk(s))
        if nodes & self.breaks or isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.Return, ast.Break, ast.Continue)):
            return True
        if not relevant:
            return False
        for call in unsafe(self.context):
            if call.node in nodes and isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)):
                self._note(self.out.alone, call, nodes)
                return True
            if nodes & {call.node, *call.stack}:
                self._note(self.out.within, call, nodes)
        return False

    def _note(self, where: list[Call], call: Call, nodes: set[ast.AST]) -> None:
        every = [c for c in unsafe(self.context) if c.node in nodes] if where is self.out.alone else [call]
        for c in every:
            if all(c.node is not other.node for other in where):
                where.append(c)

    def _touches(self, s: ast.stmt) -> bool:
        run = self.context.facts.after
        return any(n in self.inside or (isinstance(n, ast.expr) and bool(run.value(n).of_kind("forward") & self.pairs)) for n in walk(s))

    def _calls(self, s: ast.stmt) -> bool:
        """Whether a statement runs a forward, or only a function that works on what the loss is made of."""
        alone = isinstance(s, ast.Expr) and s.value in self.inside
        return alone or any(n in self.forwards for n in walk(s))


def _dotted(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _stored(s: ast.stmt) -> Iterator[str]:
    """The names and attributes that a statement gives a value, those of lists that it appends to included."""
    for n in walk(s):
        if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store):
            yield _dotted(n)
    call = s.value if isinstance(s, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and (call.func.attr in _FILLS or call.func.attr.endswith("_")):
        yield _dotted(call.func.value)


def _loaded(node: ast.AST) -> Iterator[str]:
    """The names and attributes that are read."""
    for n in walk(node):
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load):
            yield _dotted(n)
    if isinstance(node, ast.AugAssign):
        yield _dotted(node.target)
