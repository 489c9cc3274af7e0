"""Losses that depend on numbers of their batch, which differ between ranks: the count or the weights that a total is divided by."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts import collect
from ddpify.facts.assumed import GRADED
from ddpify.facts.model import Ext, Obj, Part, Value
from ddpify.facts.origins import by_kind
from ddpify.facts.tree import walk
from ddpify.placement.shape import EXTREMES, Scale
from ddpify.records import dataclass, replace
from ddpify.rules.context import Context
from ddpify.rules.loop.branches import has_own_test, under_own_test
from ddpify.rules.loop.coupled_losses import loss_in, may_vary_in_shape, of_training, pads
from ddpify.rules.loop.sharded_parts import sharded_parts

_TRAINED = frozenset(("forward", "graded", "weight", "parameters", "state", "method"))
_HELPERS: dict[Scale | None, str] = {"largest": "largest_over_ranks", "smallest": "smallest_over_ranks"}
_Places = dict[ast.expr, tuple[bool, tuple[Edit, ...]]]  # expressions; whether they are evaluated without gradients, too; their edits


@dataclass(frozen=True)
class Counted:
    """Numbers of a batch that a loss depends on, what they become (`how`, as `redistributes` says), and the edits by which they do."""

    how: dict[ast.expr, str]
    edits: tuple[Edit, ...]

    @property
    def nodes(self) -> tuple[ast.expr, ...]:
        """The expressions, in the order of the source."""
        return tuple(sorted(self.how, key=lambda n: (n.lineno, n.col_offset)))

    @property
    def imports(self) -> tuple[str, ...]:
        """What the edits must have imported."""
        return () if set(self.how.values()).isdisjoint(GRADED.values()) else ("import torch",)

    @property
    def why(self) -> str:
        """What the edits are for."""
        if not {"mean", GRADED["mean"]}.isdisjoint(self.how.values()):
            return "each rank would divide by a count of its own samples: all divide by the count of all ranks, times the number of ranks"
        return "this loss depends on a number of the batch, and each rank would take that of its own samples: all take that of all ranks"

    def outside(self, context: Context) -> frozenset[str]:
        """The modules that the edits stand in and that are not edited yet."""
        return frozenset(context.facts.tree_of(n).name for n in self.how if not context.facts.is_edited(n))

    def needs(self, context: Context) -> tuple[str, ...]:
        """The helpers that the edits call."""
        return tuple(sorted({_HELPERS.get(context.facts.after.value(n).scale, "sum_over_ranks") for n in self.how}))


def find_averages(context: Context, node: ast.Call, loss: Value) -> Counted | None:
    """The edits by which the loss of a backward call is that of all samples; None where none are seen.

    An average of a part of a batch's entries is divided by what all ranks count. Any other number that no gradient goes through, as one
    that masks or weights are divided by, is made that of all ranks.
    """
    averages: _Places = {n: (g, e) for n, g in places(context, _is_average(context, loss)) if (e := _edits(context, n, g))}
    scales: tuple[Scale, ...] = ("sum", "mean") if may_vary_in_shape(context, loss) else ("sum", "mean", *EXTREMES)
    counted = [] if pads(context, loss) else places(context, _is_number(context, scales))  # padding counts in averages
    numbers: _Places = {n: (g, (_of_all(context, n, g),)) for n, g in counted}
    counts: _Places = {n: (g, (_counted_by_all(context, n),)) for n, g in places(context, _is_count_of_mean(context)) if not g}
    attempts = ((averages, "mean"), (counts, "agreed"), (numbers, "agreed"))
    found = next((found for some, how in attempts if some and (found := _by_some(context, node, some, how)) is not None), None)
    lengths = {n: p for n, p in numbers.items() if context.facts.after.value(n).scale in EXTREMES}
    return found or _by_lengths(context, node, lengths)


def _by_lengths(context: Context, node: ast.Call, lengths: _Places) -> Counted | None:
    """The edits by which all ranks pad to the same length, and those by which the loss is that of all samples once they do."""
    assumed = context.assumed
    becomes = _becomes(context, node, lengths, "agreed")
    if not becomes.keys() - assumed.redistributed.keys():
        return None
    padded = context.assuming(replace(assumed, redistributed={**assumed.redistributed, **becomes}))
    rest = find_averages(padded, node, loss_in(padded.facts.after, node))
    return rest and Counted(becomes | rest.how, (*(e for n in becomes for e in lengths[n][1]), *rest.edits))


def _by_some(context: Context, node: ast.Call, some: _Places, how: str) -> Counted | None:
    """Those of some edits that the loss depends on, if it is an average over all samples once they are made."""
    becomes = _becomes(context, node, some, how)
    after = loss_in(collect.redistributed_run(context.facts, becomes), node) if becomes else None
    if after is None or after.scale != "mean":
        return None
    found = Counted(becomes, ())
    return replace(found, edits=tuple(dict.fromkeys(e for n in found.nodes for e in some[n][1])))


def _becomes(context: Context, node: ast.Call, some: _Places, how: str) -> dict[ast.expr, str]:
    """What those of some expressions become that the loss depends on."""
    used = loss_in(collect.redistributed_run(context.facts, dict.fromkeys(some, "mark")), node).of_kind("mark") if some else frozenset()
    return {n: GRADED[how] if graded else how for n, (graded, _) in some.items() if n in used}


def _is_average(context: Context, loss: Value) -> Callable[[ast.expr, Value], bool]:
    """Quotients of a batch's totals, and means over some entries of a batch, as far as they are trained through."""
    run, forwards = context.facts.after, loss.of_kind("forward")
    running = {node for _, node in forwards}

    def test(node: ast.expr, value: Value) -> bool:
        if value.scale not in ("other", "weighted", *EXTREMES) or not (through := value.of_kind("forward")):
            return False
        if not through & forwards and all(running.isdisjoint(c.stack) for n in walk(node) for c in run.calls(n)):
            return False  # of another network, and not inside of this one
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            return _mean_of(context, node) is not None
        left, right = run.value(node.left), run.value(node.right)
        return left.scale == "sum" and not left.of_kind("offset") and not (right.of_kind("forward") or right.of_kind("weight"))

    return test


def _is_count_of_mean(context: Context) -> Callable[[ast.expr, Value], bool]:
    """The numbers of samples that an average over them is divided by, once more: `F.cross_entropy(model(x), y) / len(x)`."""
    run = context.facts.after

    def test(node: ast.expr, value: Value) -> bool:
        if value.scale != "count" or value.of_kind("world"):
            return False
        match context.facts.tree_of(node).parent.get(node):
            case ast.BinOp(left=total, op=ast.Div(), right=divisor) | ast.AugAssign(target=total, op=ast.Div(), value=divisor):
                return divisor is node and run.value(total).scale == "mean"
        return False

    return test


def _counted_by_all(context: Context, node: ast.expr) -> Edit:
    """The edit that makes the number of a rank's samples that of all ranks' samples."""
    product, up = f"{{0}} * {context.names['world_size']}", context.facts.tree_of(node).parent[node]
    return Replace(node, product if isinstance(up, ast.AugAssign) else f"({product})", (node,))


def _is_number(context: Context, scales: Collection[Scale]) -> Callable[[ast.expr, Value], bool]:
    """Totals, averages and extremes that a call makes of rows, that no gradient goes through: outside of forwards, and of no weights."""
    run, trained = context.facts.after, context.facts.trained

    forwards = {
        c.node for c in run.trace.calls if any(run.interpreter.is_module(o) and run.part_of((o,), trained) for o in run.unwrap(c.func))
    }
    outside = [c for c in run.trace.calls if forwards.isdisjoint(c.stack) and not c.no_grad]
    weighs = [
        c for c in outside if c.result.of_kind("batch") and run.part_of((o for v in c.args for o in v.objs if isinstance(o, Part)), trained)
    ]
    if any("torch.autograd.grad" in c.func.paths() for c in outside) or any(map(_is_of_torch, {o for c in weighs for o in c.func.objs})):
        return lambda node, value: False  # what goes through weights is not seen

    def test(node: ast.expr, value: Value) -> bool:
        if not isinstance(node, ast.Call) or value.scale not in scales or value.objs or _TRAINED & by_kind(value.origins).keys():
            return False
        calls = [c for c in run.calls(node) if forwards.isdisjoint(c.stack)]
        return any(v.scale == "sample" for c in calls for v in (c.receiver, *c.args, *c.keywords.values()))

    return test


def _is_of_torch(obj: Obj) -> bool:
    return isinstance(obj, Ext) and obj.path.startswith("torch.")


def places(context: Context, test: Callable[[ast.expr, Value], bool]) -> Iterator[tuple[ast.expr, bool]]:
    """The expressions that pass a test and that all ranks evaluate in training; for each, whether some do without gradients, too."""
    run = context.facts.after
    for node, value in run.trace.values.items():
        if not isinstance(node, ast.expr) or run.scopes.tree(node) is None:  # of no tree is what an edit names
            continue
        if value.of_kind("batch") and test(node, value) and context.facts.may_edit(node):
            graded = _without_gradients_too(context, node, value)
            if graded is not None:
                yield node, graded


def _without_gradients_too(context: Context, node: ast.expr, value: Value) -> bool | None:
    """Whether an expression that all ranks evaluate in training is evaluated without gradients, too; None where not all ranks do."""
    calls = [c for n in walk(node) for c in context.facts.after.calls(n)]
    trained = [c for c in calls if not c.no_grad]
    if under_own_test(context, node) or any(has_own_test(context, c) for c in trained):
        return None
    if of_training(context, value, by_hand=True):
        return len(trained) < len(calls)
    rows = [c.result for c in trained if c.result.of_kind("batch")]
    alike = all(of_training(context, r, by_hand=True) or not context.differs(r) for r in rows)  # other batches are the same on all ranks
    return len(trained) < len(calls) if rows and alike else None


def _mean_of(context: Context, node: ast.expr) -> ast.expr | None:
    """What `x.mean()` or `torch.mean(x)` averages."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "mean" and not node.keywords):
        return None
    if "torch.mean" in context.facts.after.value(node.func).paths():
        return node.args[0] if len(node.args) == 1 else None
    return None if node.args else node.func.value


def _edits(context: Context, node: ast.expr, graded: bool) -> tuple[Edit, ...]:
    """The edits that divide a total by the reduced divisor, and multiply it by the number of ranks."""
    run, total, world = context.facts.after, context.names["sum_over_ranks"], context.names["world_size"]
    if isinstance(node, ast.BinOp):
        divisor = _divisor(context, node.right)
        parts = sharded_parts(context, divisor)
        if not parts:
            return ()
        sums = [Replace(p, _summed(context, p, p is divisor), (p,)) for p in parts]
        if graded:
            share = f"{{0}} / {world}" if divisor in parts else f"({{0}}) / {world}"
            return *sums, Replace(divisor, f"({share} if torch.is_grad_enabled() else {ast.unparse(divisor)})", (divisor,))
        return *sums, Replace(node, f"{{0}} * {world} / {{1}}", (node.left, node.right))
    entries = _mean_of(context, node)
    if graded or entries is None or run.value(entries).scale != "chosen" or len(ast.unparse(entries)) > 60:
        return ()
    return (Replace(node, f"{{0}}.sum() * {world} / {total}({{0}}.numel())", (entries,)),)


def _of_all(context: Context, node: ast.expr, graded: bool) -> Edit:
    """The edit that makes a number that of all ranks."""
    summed = _summed(context, node, True)
    return Replace(node, f"{summed} if torch.is_grad_enabled() else {{0}}" if graded else summed, (node,))


def _summed(context: Context, part: ast.expr, alone: bool) -> str:
    scale = context.facts.after.value(part).scale
    code = f"{context.names[_HELPERS.get(scale, 'sum_over_ranks')]}({{0}})"
    if scale != "mean":
        return code
    return f"{code} / {context.names['world_size']}" if alone else f"({code} / {context.names['world_size']})"


def _divisor(context: Context, node: ast.expr) -> ast.expr:
    """The expression that a divisor is, or was assigned, where it has a name of its own and no other use."""
    tree, definitions = context.facts.tree_of(node), context.facts.after.definitions
    if not isinstance(node, ast.Name) or context.facts.after.value(node).scale in ("sum", "count"):
        return node
    reaching = definitions.reaching(node)
    only = reaching.definitions[0] if len(reaching.definitions) == 1 and not reaching.changes and not reaching.undefined else None
    up = tree.parent.get(only) if only is not None and definitions.uses(only) == [node] else None
    return up.value if isinstance(up, ast.Assign) and len(up.targets) == 1 else node
