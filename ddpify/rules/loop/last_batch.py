"""Live-out variables of the last batch: where they are only shown or stored, rank 0's value is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.disk import passed
from ddpify.facts.model import Ext, New
from ddpify.facts.tree import walk
from ddpify.facts.writes import Batches
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.fresh import assigned, returned
from ddpify.rules.loop.live_out import LiveOut
from ddpify.rules.loop.sharded_parts import holds_rank_numbers

_NEW_TENSORS = frozenset(f"torch.{name}{end}" for name in "zeros ones empty full rand randn".split() for end in ("", "_like")) | {
    "torch.Tensor"
}


def only_shown(context: Context, live: LiveOut) -> bool:
    """Whether all uses after a loop only go into what is printed, drawn or written, by way of other variables, too."""
    seen = set[ast.AST]()
    return all(_shown(context, use, seen) for use in live.uses)


def sizes_read(context: Context, live: LiveOut) -> list[ast.expr] | None:
    """The expressions that ask for its number of samples, `len(images)`, where all uses after the loop do; None where some do not."""
    run, out = context.facts.after, list[ast.expr]()
    for use in live.uses:
        tree, size = context.facts.tree_of(use), use
        while isinstance(size, ast.expr) and (run.value(size).scale != "count" or run.value(size).shape is not None):
            size = tree.parent[size]
        if not isinstance(size, ast.expr) or not context.facts.is_edited(size):
            return None
        up = tree.parent[size]
        if not isinstance(up, ast.BinOp) or context.from_sharded_data(
            run.value(up)
        ):  # times the number of ranks, it is all of theirs already
            out.append(size)
    return out


def _shown(context: Context, use: ast.AST, seen: set[ast.AST]) -> bool:
    tree, guards = context.facts.tree_of(use), guards_of(context)
    inside = []
    if context.facts.is_edited(use) and any(map(guards.only_outputs, tree.path(use))):
        return True
    for up in tree.ancestors(use):
        if up in guards.effects.at:
            return True
        if isinstance(up, ast.stmt):
            break
        inside.append(up)
    statement = tree.statement(use)
    targets = (
        [n for t in statement.targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])] if isinstance(statement, ast.Assign) else []
    )
    if not targets or not all(isinstance(t, ast.Name) or _is_of_new_tensor(context, t) for t in targets):
        return False
    if not all(_computes(context, c) for c in inside if isinstance(c, ast.Call)):
        return False
    if statement in seen:
        return True
    seen.add(statement)
    return all(_shown(context, later, seen) for target in targets for later in _later(context, target))


def _later(context: Context, target: ast.expr) -> list[ast.AST]:
    """The uses that an assignment to a target reaches; of a tensor of which it fills a part, all uses."""
    definitions = context.facts.after.definitions
    if not isinstance(target, ast.Subscript):
        return definitions.uses(target)
    return [use for d in definitions.reaching(target.value).definitions for use in definitions.uses(d) if use is not target.value]


def _is_of_new_tensor(context: Context, target: ast.expr) -> bool:
    """Whether a target is a part of a tensor that was made anew, to be filled, under the name that it is filled by."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return False
    defined = context.facts.after.definitions.reaching(target.value).definitions
    return bool(defined) and all(
        isinstance(d, ast.expr) and _is_new_tensor(context, assigned(context.facts.tree_of(d), d)) for d in defined
    )


def _is_new_tensor(context: Context, node: ast.expr | None) -> bool:
    """Whether an expression makes a tensor, and may move it: `torch.zeros(n, 3).to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda", "cpu", "float"):
        node = node.func.value
    paths = context.facts.after.value(node.func).paths() if isinstance(node, ast.Call) else frozenset[str]()
    return bool(paths) and paths <= _NEW_TENSORS


def _computes(context: Context, call: ast.Call) -> bool:
    """Whether a call only makes a value: of a library or the project, a model, or a tensor's method that leaves the tensor as it is."""
    run = context.facts.after
    value = run.value(call.func)
    if value.functions() and not guards_of(context).effects.has_side_effects(call, samples=True):
        return True
    if isinstance(call.func, ast.Attribute) and not value.objs:
        return not call.func.attr.endswith("_") and not run.value(call.func.value).objs
    called = run.unwrap(value)
    return bool(called) and all(run.interpreter.is_module(o) or _of_library(o) for o in called)


def _of_library(obj: object) -> bool:
    """Whether what is called is a library's function, or a layer of torch."""
    function = isinstance(obj, Ext) and obj.path.split(".")[0] in ("torch", "numpy", "torchvision")
    return function or (isinstance(obj, New) and obj.path.startswith("torch.nn."))


def of_one_batch(context: Context, node: ast.AST) -> bool:
    """Whether an expression depends on one batch alone: nothing in it was accumulated over several."""
    return any(True for _ in _rank_reads(context, node)) and _reads_one_batch(context, node, set())


def _reads_one_batch(context: Context, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether all that an expression reads of a rank's own depends on one batch; `seen` are the definitions that were looked into."""
    if any(_holds_rank_numbers(context, part) or _goes_through(context, part) for part in walk(node)):
        return False
    for read in _rank_reads(context, node):
        reaching = context.facts.after.definitions.reaching(read)
        filled = [_filled_with(context, change) for change in reaching.changes]
        if not all(given is not None and _reads_one_batch(context, given, seen) for given in filled):
            return False
        if not filled and not any(_may_give(context, d) for d in reaching.definitions):
            return False
        if not all(_defined_by_one(context, read, d, seen) for d in reaching.definitions):
            return False
    return all(_reads_one_batch(context, given, seen) for given in _returned(context, node, seen))


def _goes_through(context: Context, node: ast.AST) -> bool:
    """Whether an expression is made of one batch after the other: `[model(x) for x, y in loader]`."""
    run = context.facts.after
    over = [part for head in getattr(node, "generators", ()) for part in walk(head.iter)]
    return any(run.feeds(run.value(part)) and run.value(part).instances() & context.sharded_loaders for part in over)


def _filled_with(context: Context, change: ast.AST) -> ast.expr | None:
    """What a part of a new tensor is filled with, outside of loops over batches; None where a change does anything else."""
    tree = context.facts.tree_of(change)
    part = tree.parent.get(change)  # the name that is changed stands within it
    if not isinstance(part, ast.Subscript) or _batches(context, change) is not None or not _is_of_new_tensor(context, part):
        return None
    return assigned(tree, part) if part.value is change else None


def _returned(context: Context, node: ast.AST, seen: set[ast.AST]) -> Iterator[ast.expr]:
    """What the project's functions return of a rank's own that an expression calls; each function once."""
    run = context.facts.after
    for call in walk(node):
        if not isinstance(call, ast.Call) or not context.from_sharded_data(run.value(call)):
            continue
        for function in run.value(call.func).functions() - seen:
            seen.add(function)
            yield from returned(function)


def _may_give(context: Context, definition: ast.AST) -> bool:
    """Whether a definition may be where a rank's own number comes from: where none is, something unseen has set it."""
    return not isinstance(definition, ast.expr) or context.from_sharded_data(context.facts.after.value(definition))


def _defined_by_one(context: Context, read: ast.expr, definition: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether what a definition gives to a read depends on one batch alone."""
    run = context.facts.after
    if definition in seen or _unbound(read, definition):
        return True
    if isinstance(definition, ast.FunctionDef) and isinstance(read, ast.Name):
        return all(given is not None and _reads_one_batch(context, given, seen) for given in given_to(context, definition, read.id))
    seen.add(definition)
    loop, value = _batches(context, definition), _assigned(context, definition)
    if value is None or (loop is not None and run.definitions.exposed(loop, run.definitions.variable(definition))):
        return False
    if loop is None and len({_statements(context, part) for part in _rank_reads(context, value)}) > 1:
        return False  # may be put together from several batches, from pass to pass of a loop around
    return value is loop or _reads_one_batch(context, value, seen)


def _statements(context: Context, read: ast.expr) -> frozenset[ast.AST]:
    """The statements that may give a variable what a read gets."""
    definitions = context.facts.after.definitions.reaching(read).definitions
    return frozenset(context.facts.tree_of(d).statement(d) for d in definitions)


def given_to(context: Context, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> list[ast.expr | None]:
    """What a function is given as a parameter, by its calls or as its default; None where that is not one expression."""
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    nodes = {c.node: None for c in context.facts.after.calls_to(function)}
    default = dict(zip(reversed(names), reversed(spec.defaults), strict=False)).get(name)
    spread = {n for n in nodes if any(isinstance(a, ast.Starred) for a in n.args) or any(k.arg is None for k in n.keywords)}
    return [(passed(n, names, name) or default) if name in names and n not in spread else None for n in nodes]


def given_as(context: Context, name: ast.Name) -> list[ast.expr]:
    """What a parameter is given by all calls of its function; nothing where that is not known, or where the function calls itself."""
    definitions = context.facts.after.definitions.reaching(name).definitions
    functions = [d for d in definitions if isinstance(d, ast.FunctionDef)]
    given = [g for f in functions for g in given_to(context, f, name.id)]
    known = [g for g in given if g is not None and not any(up in functions for up in context.facts.tree_of(g).ancestors(g))]
    return known if len(known) == len(given) and len(functions) == len(definitions) else []


def _unbound(read: ast.expr, definition: ast.AST) -> bool:
    """Whether a definition is the entry of a function that has no value yet for the variable that is read: no pass of a loop has set it."""
    root = read
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return all(node.arg != root.id for node in walk(definition.args) if isinstance(node, ast.arg))


def _holds_rank_numbers(context: Context, node: ast.AST) -> bool:
    """Whether an object holds numbers that differ between ranks: they may be of any batch, unless one expression gave it all."""
    if isinstance(node, (ast.List, ast.Dict)) and isinstance(context.facts.tree_of(node).parent.get(node), (ast.Call, ast.keyword)):
        return False  # written out as an argument: nothing else is put into it, and its entries are looked into themselves
    objs = (obj for obj in context.facts.after.value(node).instances() if not isinstance(obj.node, (ast.ListComp, ast.DictComp)))
    return any(holds_rank_numbers(context, obj) for obj in objs)


def _rank_reads(context: Context, node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes in an expression that hold numbers which differ between ranks."""
    run, methods = context.facts.after, {call.func for call in walk(node) if isinstance(call, ast.Call)}
    for part in walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Load) and part not in methods:
            known = isinstance(part, ast.Name) or run.definitions.variable(part)  # what a call gives has been looked into itself
            if known and context.from_sharded_data(run.value(part)):
                yield part


def _batches(context: Context, node: ast.AST) -> Batches | None:
    """The loop over batches around a node."""
    run, training = context.facts.after, {t.batch.node for t in context.facts.loops if t.batch is not None}
    for up in context.facts.tree_of(node).ancestors(node):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and run.value(up).batches() & context.sharded_loaders:
            through = [] if isinstance(up, ast.While) else walk(up.iter)
            if isinstance(up, ast.While) or up in training or any(run.feeds(run.value(part)) for part in through):
                return up  # and not one over numbers of batches: `for name, loss in losses.items()`
    return None


def _assigned(context: Context, definition: ast.AST) -> ast.AST | None:
    """What a definition is assigned; for a loop's own variable, the loop."""
    tree = context.facts.tree_of(definition)
    up = tree.parent.get(definition)
    if isinstance(up, (ast.Tuple, ast.List)) and isinstance(definition, ast.expr) and (value := assigned(tree, definition)) is not None:
        return value  # a, b = one, other
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        up = tree.parent.get(up)
    if isinstance(up, (ast.For, ast.AsyncFor)):
        return up
    if isinstance(up, ast.comprehension):
        return up.iter
    return up.value if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None
