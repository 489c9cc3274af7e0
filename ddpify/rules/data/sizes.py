"""Numbers of samples by which the batches of the training are made, and how an expression becomes this rank's share of one."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Hashable, Iterator

from ddpify.facts.library import numpy
from ddpify.facts.manual_batches import size_arguments
from ddpify.facts.model import Call, Func, Lit, New, Obj, Part, Value, join
from ddpify.facts.origins import Origin
from ddpify.facts.tree import inside, structure, walk
from ddpify.records import dataclass
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context, argument
from ddpify.rules.data.loader_call import places

CODE = "DDP303"
SHAPES = frozenset(
    """
        zeros ones full empty rand randn randint normal arange view reshape expand repeat init_hidden initHidden FloatTensor
        LongTensor Tensor resize_ new new_zeros new_ones uniform standard_normal split chunk linspace logspace eye tile new_full new_empty
        repeat_interleave broadcast_to
    """.split()
).union(numpy.SIZE_AT)


@dataclass(frozen=True, eq=False)
class Sizes:
    """Some numbers of samples, and what tells whether a value is one of them.

    `trained` are the loaders of the training, `arguments` the expressions that they are given as their batch sizes, which other rules
    divide; `computed` are the structures of expressions that compute the size of batches made by hand, `computations` what sizes come from
    that are no settings and are not written out.
    """

    numbers: frozenset[Obj]
    trained: frozenset[New] = frozenset()
    arguments: frozenset[ast.AST] = frozenset()
    computed: frozenset[Hashable] = frozenset()
    computations: frozenset[frozenset[Origin]] = frozenset()

    def read(self, value: Value) -> bool:
        """Whether a value is one of the sizes, and not yet a rank's share of it."""
        if value.scale is not None or value.of_kind("world"):
            return False
        return bool(self.numbers & value.objs) or (self._computed_alike(value) and bool(value.of_kind("from")))

    def unsure(self, value: Value) -> bool:
        """Whether a value is one of the sizes or another number: a setting that is overwritten by a name that is not known."""
        return bool(self.numbers & value.objs) and any(is_size(o) and o not in self.numbers for o in value.objs)

    def equal(self, value: Value) -> bool:
        """Whether a value is a literal that equals a size which is written out, or is read where a size is, such as of one file."""
        if self._computed_alike(value) and not self.read(value):
            return True
        if self.numbers & value.objs or len(value.objs) != 1:
            return False
        sizes = {o.value for o in self.numbers if isinstance(o, Lit)}
        return any(isinstance(o, Lit) and type(o.value) is int and o.value in sizes for o in value.objs)

    def _computed_alike(self, value: Value) -> bool:
        return not value.objs and value.origins in self.computations

    def derived(self, value: Value) -> bool:
        """Whether a value is computed from a size rather than being one."""
        if value.scale is not None or value.of_kind("world") or self.read(value):
            return False
        return not self.numbers.isdisjoint(value.of_kind("from"))

    def batches(self, value: Value) -> bool:
        """Whether a value is computed from batches of the training, and no others."""
        return bool(value.of_kind("batch")) and value.of_kind("batch") <= self.trained


def sizes_of(context: Context) -> Sizes:
    """The batch sizes of the training."""
    run, by_hand = context.facts.after, context.facts.batch_sources
    numbers: set[Obj] = set()
    arguments: set[ast.AST] = set()
    computed: set[Hashable] = set()
    computations: set[frozenset[Origin]] = set()
    for loader in context.facts.feeding:
        size = join([run.attribute(o, "batch_size") for o in (loader, *run.attribute(loader, "batch_sampler").instances())])
        numbers |= {o for o in size.objs if is_size(o)} | {o for o in size.of_kind("from") if isinstance(o, (Part, Lit))}
        if not size.objs and not size.of_kind("world") and any(map(size.of_kind, ("from", "method"))):
            computations.add(size.origins)
        if loader.node in by_hand:
            arguments |= inside(loader.node)
            computed |= {structure(s) for s in (by_hand[loader.node].size,) if isinstance(s, ast.BinOp)}
        elif isinstance(loader.node, ast.Call):
            given = argument(loader.node, places(loader.path)["batch_size"], "batch_size")
            arguments |= inside(given) if given is not None else set()
    trained = frozenset(context.facts.feeding)
    numbers |= _repeated(context, Sizes(frozenset(numbers), trained))
    return Sizes(frozenset(numbers), trained, frozenset(arguments), frozenset(computed), frozenset(computations))


def _repeated(context: Context, sizes: Sizes) -> set[Obj]:
    """The numbers, written out, that the length of a training batch is to be, and by which tensors of the training are shaped."""
    value = context.facts.after.value
    compared = set[Obj]()
    for node in (n for tree in context.facts.trees.values() for n in tree.of(ast.Compare)):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                for length, number in ((value(left), value(right)), (value(right), value(left))):
                    if length.scale == "count" and sizes.batches(length) and number.scale is None and len(number.objs) == 1:
                        compared |= {o for o in number.objs if isinstance(o, Lit) and is_size(o)}
    shaped = (part for call in shaping(context) for part in size_arguments(call.node)) if compared else ()
    return {o for part in shaped for o in value(part).objs & compared}


def shaping(context: Context) -> Iterator[Call]:
    """The calls of libraries that make a tensor of the training by its shape."""
    for call in context.facts.after.trace.calls:
        if call.method in SHAPES and not any(isinstance(o, Func) for o in call.func.objs) and in_training(context, call):
            yield call


def is_size(obj: Obj) -> bool:
    """Whether an object is a setting, or a number larger than one that is written out."""
    return isinstance(obj, Part) or (isinstance(obj, Lit) and type(obj.value) is int and obj.value > 1)


def in_training(context: Context, call: Call) -> bool:
    """Whether what a call makes is used with a training batch: it runs in a loop over training data, or reaches a loss."""
    loaders = set(context.facts.feeding)
    feeding = [loop for loop in call.loops if loop.element.batches()]
    if _serves_others(context, call):
        return False
    if feeding:
        return bool(feeding[-1].element.batches() & loaders)
    over = {loop.node for loop in call.loops}
    return any(call.node in t.loss.of_kind("sized") or (t.batch is not None and t.batch.node in over) for t in context.facts.loops)


def _serves_others(context: Context, call: Call) -> bool:
    """Whether the name that is given what a call makes is used in loops over other loaders than those of the training, and only there."""
    loaders, known = set(context.facts.feeding), context.once(_usage)
    for node in (n for n in (call.node, *reversed(call.stack)) if isinstance(n, ast.expr)):
        if node not in known:
            known[node] = _used_with(context, node)
        if known[node]:
            return all(batches.isdisjoint(loaders) for batches in known[node])
    return False


def _usage(_: Context) -> dict[ast.expr, list[frozenset[Obj]]]:
    """The loaders that the names are used with which expressions are assigned to, as far as they were asked for."""
    return {}


def _used_with(context: Context, node: ast.expr) -> list[frozenset[Obj]]:
    """The loaders of the loops over batches in which the names are used that an expression is assigned to."""
    tree = context.facts.tree_of(node)
    statement = tree.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [n for target in targets for n in walk(target) if isinstance(n, ast.Name)]
    uses = (use for name in names for use in context.facts.after.definitions.uses(name))
    return [batches for use in uses if (batches := _batches_around(context, use, set(tree.ancestors(statement))))]


def _batches_around(context: Context, node: ast.AST, shared: set[ast.AST]) -> frozenset[Obj]:
    """The loaders of the nearest loop over batches around a node; none where that is one of those `shared` with another one."""
    run = context.facts.after
    for up in itertools.takewhile(lambda up: up not in shared, context.facts.tree_of(node).ancestors(node)):
        if isinstance(up, ast.For) and (batches := run.value(up).batches()):
            return batches
    return frozenset()


def divide(context: Context, node: ast.expr, why: str) -> Iterator[Change | Finding]:
    """Make an expression that reads a batch size this rank's share of it."""
    while isinstance(node, ast.Call) and context.facts.after.value(node.func).paths() & {"float"} and node.args:
        node = node.args[0]  # what `int` is given may be a text
    if not context.facts.is_edited(node) or context.once(sizes_of).unsure(context.facts.after.value(node)):
        yield context.manual(
            CODE, node, f"{why}, and every rank has only its part of a batch", f"{ast.unparse(node)} // dist.get_world_size()"
        )
        return
    edits, needs = context.divided(node)
    if edits:
        yield Change(CODE, why, context.tree.shown, node, tuple(edits), needs=needs)


def divide_inside(context: Context, node: ast.expr, sizes: Sizes, why: str, otherwise: str) -> Iterator[Change | Finding]:
    """Divide the batch size where an expression that is computed from it reads it; where it reads something else, say so."""
    names = names_reading(context, node, sizes)
    for name in names:
        yield from divide(context, name, why)
    if not names:
        fix = f"use {context.names['per_rank']}(...) where the batch size is read"
        yield context.manual(CODE, node, f"{otherwise}, and every rank has only its part of a batch", fix)


def names_reading(context: Context, node: ast.expr, sizes: Sizes) -> list[ast.expr]:
    """The names in an expression that read a batch size."""
    return [n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and sizes.read(context.facts.after.value(n))]
