"""In which order a grad scaler is used: what is unscaled before it is read, and where an iteration ends."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ddpify.facts import library
from ddpify.facts.model import Call, Method, New, in_common
from ddpify.facts.tree import Tree, walk
from ddpify.rules.context import Context
from ddpify.rules.precision.existing import Backward


class Unclear(Exception):
    """The order was not seen; `node` is where."""

    def __init__(self, node: ast.AST, why: str) -> None:
        super().__init__(why)
        self.node = node


# ---------------------------------------------------------------------------------------------------------- where it ends


def places(context: Context, every: list[Backward], steps: list[Call]) -> list[ast.stmt]:
    """The statements after which the scaler is updated: after the last step of each iteration."""
    groups: dict[tuple[object, ...], list[Call]] = {}
    for step in steps:
        groups.setdefault(_iteration(context, step), []).append(step)
    out: list[ast.stmt] = []
    for group in groups.values():
        out += _ends(context, every, sorted(group, key=lambda c: c.order))
    return list(dict.fromkeys(out))


def _loop(call: Call) -> ast.AST | None:
    """The innermost loop that a call runs in."""
    around = [loop.node for loop in call.loops if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While, ast.ListComp))]
    return around[-1] if around else None


def _iteration(context: Context, call: Call) -> tuple[object, ...]:
    """What tells the iterations that a call runs in: its innermost loop, and the calls through which that is reached."""
    loop = _loop(call)
    for depth, anchor in enumerate((*call.stack, call.node)):
        if loop is None or any(loop is up for tree in context.facts.trees.values() if anchor in tree.parent for up in tree.path(anchor)):
            return loop, *call.stack[:depth]
    return loop, *call.stack


def _ends(context: Context, every: list[Backward], steps: list[Call]) -> Iterator[ast.stmt]:
    """The statements that end an iteration which takes these steps. Raises Unclear where they are not known."""
    tree, loop = context.tree, _loop(steps[0])
    anchors = list(dict.fromkeys(_partings(steps)))
    if any(a not in tree.parent for a in anchors):
        raise Unclear(steps[0].node, "the steps of one iteration are taken in several modules")
    if len(anchors) == 1:  # one step, whichever optimizer it is
        yield tree.statement(anchors[0])
        return
    paths = {a: _within(tree.path(a), loop) for a in anchors}
    leaving = [a for a in anchors if _leaves(tree, paths[a])]
    yield from map(tree.statement, leaving)  # `continue` behind it: the end is not reached
    staying = [a for a in anchors if a not in leaving]
    if not staying:
        return
    tops = _side_by_side(tree, [paths[a] for a in staying])
    assert tops is not None  # they stand in one loop, or in one function
    if any(map(_always, tops, staying)) or _exclusive(tops, staying):
        yield max(tops, key=tree.block(tops[0]).index)
        return
    for step, following in itertools.pairwise(steps):
        if not any(step.order < b.call.order < following.order for b in every):
            raise Unclear(following.node, "which steps an iteration takes is decided for each of them")
    yield from map(tree.statement, staying)


def _partings(calls: list[Call]) -> list[ast.AST]:
    """Where the ways to some calls part: for each of them, the call that leads there from the function that they have in common."""
    depth = min(in_common(calls[0].stack, c.stack) for c in calls)
    return [c.stack[depth] if depth < len(c.stack) else c.node for c in calls]


def _side_by_side(tree: Tree, paths: list[list[ast.stmt]]) -> list[ast.stmt] | None:
    """The statements of one block, the innermost there is, that hold several places; None where no block holds them all."""
    for statement in paths[0]:
        block = tree.block(statement)
        tops = [s for path in paths for s in path if s in block]
        if len(tops) == len(paths):
            return tops
    return None


def _leaves(tree: Tree, path: list[ast.stmt]) -> bool:
    """Whether the iteration is left behind a step, inside a branch that holds it."""
    for level in path[:-1]:
        block = tree.block(level)
        if any(isinstance(n, (ast.Continue, ast.Break, ast.Return)) for s in block[block.index(level) + 1 :] for n in walk(s)):
            return True
    return False


def _within(path: list[ast.stmt], loop: ast.AST | None) -> list[ast.stmt]:
    """The statements around a node that stand in the loop."""
    return path[: path.index(loop)] if loop in path else path


def _always(top: ast.stmt, anchor: ast.AST) -> bool:
    """Whether a step is taken each time that its statement runs."""
    if isinstance(top, (ast.With, ast.AsyncWith)):
        return any(_always(s, anchor) for s in top.body)
    return isinstance(top, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)) and any(n is anchor for n in walk(top))


def _exclusive(tops: list[ast.stmt], anchors: list[ast.AST]) -> bool:
    """Whether one `if` with an `else` holds all steps, one on each side."""
    top = tops[0]
    if any(t is not top for t in tops) or not isinstance(top, ast.If) or not top.orelse:
        return False
    sides = [[any(_always(s, a) for s in side) for a in anchors] for side in (top.body, top.orelse)]
    return all(any(side) for side in sides)


# ------------------------------------------------------------------------------------------------------- before it is read


def unscaled(context: Context, every: list[Backward], steps: list[Call]) -> Iterator[tuple[ast.stmt, str]]:
    """Before which statements which optimizer's gradients are unscaled: where they are clipped or read before its step."""
    found = readers(context)
    done: set[tuple[ast.stmt, str]] = set()
    handled: set[ast.AST] = set()
    for step in steps:
        last = max((b.call.order for b in every if b.call.order < step.order), default=None)
        mine = [r for r in found if last is not None and last < r.order < step.order and _concerns(context, r, step)]
        handled |= {r.node for r in mine}
        if mine:
            place = _first_read(context, min(mine, key=lambda c: c.order), step)
            if place not in done:
                done.add(place)
                yield place
    last_step = max((s.order for s in steps), default=0)
    for reader in found:
        early = any(b.call.order < reader.order for b in every) and reader.order < last_step
        if reader.node not in handled and early and context.facts.is_edited(reader.node) and reader.loops:
            raise Unclear(reader.node, "gradients are read here, and the analysis could not tell which optimizer step uses them")


def _first_read(context: Context, first: Call, step: Call) -> tuple[ast.stmt, str]:
    """The statement that first reads the gradients of a step, and the name of the optimizer there. Raises Unclear where it has none."""
    tree = context.tree
    read, anchor = _partings([first, step])
    if read not in tree.parent or anchor not in tree.parent:
        raise Unclear(first.node, "gradients are read in another module before they are unscaled")
    tops = _side_by_side(tree, [tree.path(read), tree.path(anchor)])
    assert tops is not None  # both are in one function
    statement, top = tops
    if not _always(top, anchor) and not isinstance(top, (ast.With, ast.Try)):
        raise Unclear(statement, "gradients are read more often than the optimizer steps: they would be unscaled twice")
    block = tree.block(statement)
    between = block[block.index(statement) : block.index(top)]
    if any(isinstance(n, ast.Continue) for s in between for n in walk(s)):
        raise Unclear(statement, "an iteration may end between reading the gradients and the step: they would be unscaled twice")
    return statement, _named(context, step, statement, anchor)


def readers(context: Context) -> list[Call]:
    """The calls that clip or read gradients, or that run a function in which a `.grad` is read."""
    run = context.facts.after
    out = []
    for call in run.trace.calls:
        if not call.loops:
            continue
        paths = call.func.paths()
        clips = any(library.clips(p) for p in paths)
        reads = any(map(_reads, call.func.functions())) and not any(_trains_inside(run_call, call) for run_call in run.trace.calls)
        inline = isinstance(call.node.func, ast.Attribute) and _of_grad(call.node.func.value) and not call.method.startswith("zero")
        if clips or reads or inline or any(_of_grad(a) for a in call.node.args):
            out.append(call)
    return sorted(out, key=lambda c: c.order)


def _trains_inside(inner: Call, outer: Call) -> bool:
    """Whether a call runs inside another and trains: then what is read there is looked at there."""
    return outer.node in inner.stack and inner.method in ("backward", "step")


def _reads(node: ast.AST) -> bool:
    """Whether a `.grad` is read in a node."""
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.ctx, ast.Load) for n in walk(node))


def _of_grad(node: ast.expr) -> bool:
    """Whether an expression is computed from a `.grad`, as `p.grad.data.norm(2)` is."""
    return _reads(node) and not any(isinstance(n, ast.Attribute) and n.attr in ("autograd", "zero_") for n in walk(node))


def _concerns(context: Context, reader: Call, step: Call) -> bool:
    """Whether a call may read the gradients that an optimizer steps along."""
    run = context.facts.after
    given = [*reader.args, *reader.keywords.values(), reader.receiver]
    roots = {r for v in given for o in run.parameters(v) for r in run.roots(o)}
    roots |= {o for v in given for o in run.unwrap(v) if isinstance(o, New) and not run.is_optimizer(o)}
    moved = {r for o in step.receiver.instances() for p in run.parameters(run.attribute(o, "params")) for r in run.roots(p)}
    optimizers = {o for v in given for o in v.objs if run.is_optimizer(o)}
    if optimizers:
        return bool(optimizers & step.receiver.objs)
    return not (roots & {r for r in roots if isinstance(r, New)}) or not moved or bool(roots & moved)


def _named(context: Context, step: Call, statement: ast.stmt, anchor: ast.AST) -> str:
    """The optimizer as it is called at a statement."""
    tree = context.tree
    assert isinstance(step.node.func, ast.Attribute)
    receiver = step.node.func.value
    if tree.function(statement) is tree.function(step.node):
        return context.source(receiver)
    call = anchor if isinstance(anchor, ast.Call) else step.node
    for given in (*call.args, *(k.value for k in call.keywords)):
        if context.facts.after.value(given).objs & step.receiver.objs:
            return context.source(given)
    if isinstance(receiver, ast.Attribute) and isinstance(receiver.value, ast.Name) and receiver.value.id == "self":
        return context.source(receiver)
    raise Unclear(statement, "the optimizer has no name where its gradients are read")


# ------------------------------------------------------------------------------------------------------------- schedulers


def scheduler(context: Context, place: ast.stmt) -> ast.stmt | None:
    """The statement that moves a scheduler with each step, right behind it in its block."""
    tree = context.tree
    block = tree.block(place)
    for statement in block[block.index(place) + 1 :]:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and _moves(context, call):
            return statement
        if not isinstance(statement, ast.Expr):
            return None
    return None


def _moves(context: Context, call: ast.Call) -> bool:
    run = context.facts.after
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "step"
        and not call.args
        and any(isinstance(o, Method) and isinstance(o.of, New) and "lr_scheduler" in o.of.path for o in run.value(call.func).objs)
    )
