"""Where no wrapper can average gradients: the optimizers whose gradients are averaged by a call before each step, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts import collect, library, methods, runs, wrap_places
from ddpify.facts.collect import Averaged, Facts, Start, TrainedMethod, TrainedModel, TrainingLoop
from ddpify.facts.held_parts import HeldParts
from ddpify.facts.left_out import hides_outputs, is_used_beside
from ddpify.facts.library import flow
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.model import NOTHING, Call, Func, Lit, New, Obj, Part, Value, ordered
from ddpify.facts.moved_saves import moves
from ddpify.facts.runs import Run
from ddpify.facts.stepped import not_averaged, optimizers_of, owners
from ddpify.facts.tree import Tree, inside, names_in, same, scope_nodes, walk

CALL = "average_gradients"
_MADE = "torch.nn.Parameter", "torch.nn.Embedding.from_pretrained"  # of parameters that may be frozen from the start


def fill(facts: Facts) -> None:
    """Find the optimizers whose gradients no wrapper averages; where calls can average those of each, leave their models unwrapped."""
    done = {o for c in facts.before.trace.calls if CALL in c.method for a in c.args for o in a.objs if o in facts.optimizers}
    optimizers = ordered(_not_averaged(facts, done))
    starts = {o: _starts(facts, o) for o in optimizers}
    facts.averaged_optimizers = frozenset(done)
    if all(starts.values()):
        wrapped = _trained_methods(facts, starts)
        averaged = {o: _averaged(facts, o, starts[o]) for o in optimizers if wrapped is None}
        if None not in averaged.values():
            facts.averaged = {o: a for o, a in averaged.items() if a is not None}
            facts.trained_methods = wrapped or ()
            facts.averaged_optimizers = frozenset((*done, *optimizers))
    facts.needs_no_wrapper = frozenset(m for m in facts.models if (own := optimizers_of(facts, m)) and own <= facts.averaged_optimizers)
    if facts.needs_no_wrapper:
        wrap_places.place_wraps(facts)


def _not_averaged(facts: Facts, done: set[New]) -> set[New]:
    """The optimizers whose gradients nothing averages: of models that no wrapper serves, of no model at all, or of what these train, too.

    None of them where some parameters are moved without an optimizer: calls before its steps do not do for these.
    """
    unwrapped = {m for m in facts.models if optimizers_of(facts, m) & done}
    unserved = set(unfit(facts))
    apart = {m for m in facts.models if not (m.wraps or m.wrapped) or m in unserved} - unwrapped
    moving = [optimizers_of(facts, m) for m in apart]
    if not all(moving) or any(collect.moved_by_hand(facts)):
        return set()
    found = {o for o, _ in collect.uncovered(facts)}.union(*moving)
    return found.union(*(own for m in facts.models if (own := optimizers_of(facts, m)) & found)) - done


def _trained_methods(facts: Facts, starts: dict[New, list[Start]]) -> tuple[TrainedMethod, ...] | None:
    """The methods that stand for all of the training, if they do."""
    distinct = {(s.after, s.what): s for found in starts.values() for s in found}
    apart = {r for m in unfit(facts) for o in m.objs for r in facts.before.roots(o)}
    ways = [methods.trained_method(facts, s) for s in distinct.values() if s.module not in apart]
    if len(ways) < len(distinct):
        return None
    out = tuple(w for w in ways if w is not None)
    return out if out and len(out) == len(ways) and len({w.method for w in out}) == 1 else None


def unfit(facts: Facts) -> Iterator[TrainedModel]:
    """The models that a wrapper could be put around, but would not serve."""
    run, training = facts.before, facts.training_loops
    for loop in facts.loops:
        retained = [k for n in ("retain_graph", "keep_graph") for k in loop.backward.keywords.get(n, NOTHING).objs]
        if any(not (isinstance(o, Lit) and not o.value) for o in retained):
            yield from (m for m in facts.models if any(pair[0] in m.objs for pair in loop.loss.of_kind("forward")))
    for model in facts.models:
        if any(through_gradient_alone(loop, model) for loop in facts.loops) or any(not_averaged(facts, model)):
            yield model
        within = training - wrap_places.made_in(run, model)
        moved = any(any(loop.node in within for loop in c.loops) and moves(facts, c, model) for c in run.trace.calls)
        unseen = any(is_used_beside(run, model, loop) or hides_outputs(run, model, loop) for loop in facts.loops)
        if moved or unseen or _freed(facts, model, within):
            yield model


def through_gradient_alone(loop: TrainingLoop, model: TrainedModel) -> bool:
    """Whether a backward call reaches a model by nothing but a gradient of its output: parameters like the last bias get none then."""
    graded, direct = ({pair[0] for pair in loop.loss.of_kind(kind)} for kind in ("graded", "forward"))
    return bool(graded & model.objs) and not direct & model.objs


def _freed(facts: Facts, model: TrainedModel, within: frozenset[ast.AST]) -> bool:
    """Whether some parameters of a model are frozen or freed while it trains: a wrapper goes on with those it found."""
    run, first = facts.before, collect.first_order(facts, model)
    last = max((t.backward.last for t in facts.loops if any(p[0] in model.objs for p in t.loss.of_kind("forward"))), default=0)
    written = [(s.node, s.order, s.loops, s.receiver) for s in run.trace.stores if getattr(s.node, "attr", "") == "requires_grad"]
    written += [(c.node, c.order, c.loops, c.receiver) for c in run.trace.calls if c.method == "requires_grad_"]
    chosen = late = False
    early = any(_parts(run, model, c.result) for path in _MADE for c in run.calls_of(path) if _made_frozen(c))
    for node, order, loops, value in written:
        parts = _parts(run, model, value)
        if not parts:
            continue
        if any(loop.node in within for loop in loops):
            late = True
            chosen |= not parts <= model.objs or _by_name(facts.tree_of(node), node)
        else:
            early |= order < first
            chosen |= first < order < last
    return chosen or (early and late)


def _made_frozen(call: Call) -> bool:
    """Whether a call makes a parameter, or a layer, that is not trained until it is freed."""
    if _MADE[0] in call.func.paths():
        return flow.is_literal(call.argument(1, "requires_grad") or NOTHING, False)
    freeze = call.argument(1, "freeze")
    return freeze is None or not flow.is_literal(freeze, False)


def _parts(run: runs.Run, model: TrainedModel, value: Value) -> set[Obj]:
    """What a value is, or is made of the parameters of, as far as it belongs to a model."""
    named = frozenset(o for o in (*value.of_kind("parameters"), *value.objs) if isinstance(o, (New, Part)))
    return {o for o in run.unwrap(Value(named)) if run.part_of((o,), model.objs)}


def _by_name(tree: Tree, node: ast.AST) -> bool:
    """Whether a loop over parameters chooses the one that a statement is about."""
    for up in tree.ancestors(tree.statement(node)):
        if isinstance(up, ast.If):
            return any(isinstance(a, ast.For) for a in tree.ancestors(up))
        if isinstance(up, ast.For):
            statement = tree.statement(node)
            named = names_in(up.target)
            value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
            return isinstance(statement, ast.Assign) and any(isinstance(n, ast.Name) and n.id in named for n in walk(value))
    return False


def _starts(facts: Facts, optimizer: New) -> list[Start]:
    """Where what an optimizer moves is made the same on all ranks; nothing where that is not found for some of it."""
    moved, steps = owners(facts, optimizer), facts.before.steps((optimizer,))
    if not moved or not steps or not all(_reached(facts, o) for o in moved):
        return []
    found = [_start(facts, optimizer, owner, steps[0]) for owner in sorted(moved, key=runs.place_of)]
    return list(dict.fromkeys(s for s in found if s is not None)) if None not in found else []


def _averaged(facts: Facts, optimizer: New, starts: list[Start]) -> Averaged | None:
    """The places before an optimizer's steps; None where one of them was not found."""
    run = facts.before
    places: dict[tuple[ast.stmt, str], None] = {}
    for call in facts.before.steps((optimizer,)):
        given = call.node.func.value if optimizer in call.receiver.objs else call.node.args[0]  # type: ignore[attr-defined]
        value = call.receiver if optimizer in call.receiver.objs else call.args[0]
        if not all(run.is_optimizer(o) for o in value.objs) or not isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)):
            return None
        at = _place(facts, call)
        if at is None:
            return None
        places[at, ast.unparse(given)] = None
    return Averaged(tuple(places), tuple(starts))


def _reached(facts: Facts, owner: Obj) -> bool:
    """Whether what a module or a parameter computes was seen to reach a backward call."""
    run = facts.before
    root, around = _outermost(run, owner), {*run.roots(owner)}
    for loop in facts.loops:
        for obj in (*(pair[0] for pair in loop.loss.of_kind("forward")), *loop.loss.of_kind("weight")):
            if obj in around or root in run.roots(obj):
                return True
    return False


def _start(facts: Facts, optimizer: New, owner: Obj, step: Call) -> Start | None:
    """Where all ranks can be given the same values of what an optimizer moves."""
    run = facts.before
    if isinstance(owner, New) and owner.path == "torch.nn.Parameter" and not any(_is_module(run, r) for r in run.roots(owner)):
        return _start_of_tensors(facts, optimizer, single=True)
    root = _outermost(run, owner)
    together = next((m for m in facts.models if root in m.objs), None)
    among = together.objs if together is not None else frozenset[Obj]()
    instead = frozenset(o for o in among if isinstance(o, New) and isinstance(root, New) and o.stack == root.stack)
    for model in (*(TrainedModel(objs, frozenset()) for objs in (frozenset((root,)), instead)), *([together] if together else [])):
        for statement, target in wrap_places.candidates(facts, model, step):
            own = any(
                isinstance(up, ast.ClassDef) and up is getattr(getattr(root, "cls", None), "node", None)
                for up in facts.tree_of(statement).ancestors(statement)
            )
            if own or _holds_the_last(facts, statement, target, root):
                continue
            if facts.is_edited(statement) and _refers_to(facts, statement, target, root):
                return Start(statement, ast.unparse(target), root, target)
    return None if _has_statistics(run, root) else _start_of_tensors(facts, optimizer, single=False)


def _start_of_tensors(facts: Facts, optimizer: New, single: bool) -> Start | None:
    """Where the tensors that an optimizer is given, or the `single` ones of them, are made the same: after it has them all."""
    if not facts.is_edited(optimizer.node):
        return None
    statement = facts.entry.statement(optimizer.node)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    tensors = _tensors(facts, optimizer, statement, single)
    return Start(_given_all(facts, optimizer, statement), tensors, None) if tensors is not None else None


def _given_all(facts: Facts, optimizer: New, statement: ast.stmt) -> ast.stmt:
    """The statement beside the one that makes an optimizer after which it has all of its single tensors."""
    run, tree = facts.before, facts.entry
    added = {c.node for c in run.calls_named("add_param_group") if optimizer in c.receiver.objs}
    nodes = added | {made.node for made in run.single_parameters(collect.optimizer_parameters(facts, optimizer))}
    around = {up for n in nodes if n in tree.parent for up in (n, *tree.ancestors(n))}
    return [s for s in tree.block(statement) if s is statement or (s in around and not isinstance(s, (ast.For, ast.While)))][-1]


def _has_statistics(run: Run, owner: Obj) -> bool:
    """Whether a module has more than parameters that ranks must have in common, as batch norm has."""
    return not all(isinstance(o, New) and "Norm" not in o.path and not is_library_model(o) for o in (owner, *HeldParts(run).parts(owner)))


def _holds_the_last(facts: Facts, statement: ast.stmt, target: ast.expr, root: Obj) -> bool:
    """Whether a name holds, after a loop that makes several modules, the last of them alone."""
    if not isinstance(root, New) or not isinstance(target, ast.Name):
        return False
    tree = facts.tree_of(root.node)
    around = set(facts.tree_of(statement).ancestors(statement))
    return any(isinstance(up, (ast.For, ast.While)) and up not in around for up in tree.ancestors(root.node))


def _outermost(run: Run, owner: Obj) -> Obj:
    """The module that an owner of parameters is a part of, or itself."""
    root = owner
    for up in run.registered(owner) if isinstance(owner, (New, Part)) else ():
        root = up if _is_module(run, up) else root
    return root


def _refers_to(facts: Facts, statement: ast.stmt, target: ast.expr, root: Obj) -> bool:
    """Whether a name or attribute of a statement's function holds a module by then, or one of those that it may be."""
    run, tree = facts.before, facts.tree_of(statement)
    named = [n for n in walk(tree.function(statement)) if isinstance(n, (ast.Name, ast.arg, ast.Attribute)) and same(n, target)]
    values = [run.value(n) for n in named if not tree.after(n, statement)]
    stored = [s.value for s in run.trace.stores if isinstance(s.node, ast.Attribute) and same(s.node, target)]
    return any(root in run.unwrap(v) for v in (*values, *stored))


def _is_module(run: Run, obj: Obj) -> bool:
    if isinstance(obj, Part):
        return True
    kinds = ("list", "dict", "torch.nn.Parameter")
    return isinstance(obj, New) and (run.interpreter.is_module(obj) or (obj.path not in kinds and bool(obj.path)))


def _tensors(facts: Facts, optimizer: New, statement: ast.Assign | ast.AnnAssign, single: bool) -> str | None:
    """The single tensors that an optimizer is given: by their names, where they have some beside it, or by way of its groups."""
    names = [_named(facts, made, statement) for made in facts.before.single_parameters(collect.optimizer_parameters(facts, optimizer))]
    if single and all(name for _, name in names):
        return f"[{', '.join(name for _, name in sorted(names))}]"
    return _of_groups(facts, optimizer, statement)


def _of_groups(facts: Facts, optimizer: New, statement: ast.Assign | ast.AnnAssign) -> str | None:
    """What an optimizer moves, by way of its groups, as the name says that it has then, or the list that it is in; None where none does."""
    run, value = facts.before, statement.value
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        target, value = next((pair for pair in pairs if optimizer.node in inside(pair[1])), (target, value))
    given = run.value(value) if value is not None else NOTHING
    if optimizer in given.objs:
        return f'p for group in {ast.unparse(target)}.param_groups for p in group["params"]'
    listed = isinstance(target, (ast.Name, ast.Attribute)) and all(isinstance(o, New) and o.path == "list" for o in given.objs)
    if listed and any(optimizer in run.attribute(o, "[]").objs for o in given.objs):
        return f'p for each in {ast.unparse(target)} for group in each.param_groups for p in group["params"]'
    return None


def _named(facts: Facts, instance: New, beside: ast.stmt) -> tuple[int, str]:
    """The line and the name of a tensor that a statement of the same block as another makes; no name where there is none."""
    tree = facts.entry
    if instance.node not in tree.parent:
        return 0, ""
    statement = tree.statement(instance.node)
    if not isinstance(statement, ast.Assign) or statement not in tree.block(beside) or len(statement.targets) > 1:
        return 0, ""
    target = statement.targets[0]
    simple = isinstance(target, (ast.Name, ast.Attribute)) and instance in facts.before.value(statement.value).objs
    return (statement.lineno, ast.unparse(target)) if simple else (0, "")


# ---------------------------------------------------------------------------------------------------- before which statement


def _place(facts: Facts, step: Call) -> ast.stmt | None:
    """The statement before which gradients are averaged: the first after the last backward call that steps or reads them."""
    if not facts.is_edited(step.node):
        return None
    runs = _Runs(facts)
    tree = facts.entry
    statement = tree.statement(step.node)
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):
        return None
    if runs.backward(statement):
        return _in_closure(facts, runs, step)
    at: ast.stmt = statement
    for node in (statement, *reversed(step.stack)):
        if not facts.is_edited(node):
            return None
        inside = tree.statement(node)
        found = _before(tree, runs, inside, at if inside is statement else None)
        if found is None:
            return None
        at = found if inside is statement else at
        if runs.reached:
            return at
    return None


def _before(tree: Tree, runs: _Runs, inside: ast.stmt, at: ast.stmt | None) -> ast.stmt | None:
    """Walk back from a statement to the last backward call; `at` None: no other statement may read gradients on the way."""
    first = at or inside
    while True:
        block = tree.block(inside)
        for earlier in reversed(block[: block.index(inside)]):
            if runs.backward(earlier):
                runs.reached = not runs.reads_after_backward(tree, earlier)
                return first if runs.reached else None
            if runs.reads(earlier):
                if at is None or _bound_between(first, block, inside):
                    return None
                first = earlier
        up = tree.parent.get(inside)
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and runs.backward(up):
            return None  # the step of one turn comes before the backward call of the next
        if not isinstance(up, ast.stmt) or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return first
        inside = up


def _bound_between(first: ast.stmt, block: list[ast.stmt], inside: ast.stmt) -> bool:
    """Whether names that the call would use are bound by the loop or branch that it would be moved out of."""
    if first in block:
        return False
    return isinstance(inside, (ast.For, ast.AsyncFor)) or any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) for n in walk(inside)
    )


def _in_closure(facts: Facts, runs: _Runs, step: Call) -> ast.stmt | None:
    """The place inside the function that an optimizer calls: after its backward call."""
    functions = [o.node for v in (*step.args, *step.keywords.values()) for o in v.objs if isinstance(o, Func)]
    if len(functions) != 1 or not isinstance(functions[0], ast.FunctionDef) or not facts.is_edited(functions[0]):
        return None
    body = functions[0].body
    if not isinstance(body[-1], ast.Return) or sum(isinstance(n, ast.Return) for n in walk(functions[0])) > 1:
        return None
    found = _before(facts.entry, runs, body[-1], body[-1])
    return found if runs.reached else None


class _Runs:
    """What statements run, by the calls seen under them."""

    def __init__(self, facts: Facts) -> None:
        self.reached = False
        self._backward: set[ast.AST] = {loop.backward.node for loop in facts.loops}
        self._steps: set[ast.AST] = {c.node for c in facts.before.steps(facts.optimizers)}
        self._by: dict[ast.AST, list[Call]] = {}
        for call in facts.before.trace.calls:
            for node in {call.node, *call.stack}:
                self._by.setdefault(node, []).append(call)
        self._run = facts.before

    def _nodes(self, statement: ast.stmt) -> set[ast.AST]:
        """The nodes that run when a statement does; the bodies of functions that it only defines left out."""
        own = set(scope_nodes(statement))
        called = {o.node for n in own for c in self._by.get(n, ()) for v in (c.func, *c.args) for o in v.objs if isinstance(o, Func)}
        return own.union(*(walk(f) for f in called))

    def backward(self, statement: ast.stmt) -> bool:
        """Whether a statement runs a backward call."""
        return self._any(statement, self._backward)

    def _any(self, statement: ast.stmt, nodes: set[ast.AST]) -> bool:
        return not nodes.isdisjoint(self._nodes(statement))

    def reads(self, statement: ast.stmt) -> bool:
        """Whether a statement reads or changes gradients."""
        return any(self._reads(n) for n in self._nodes(statement))

    def _reads(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            return not self._run.value(node.value).paths()
        if isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            return method in ("unscale_", "clip_master_grads") or any(
                library.clips(p) for p in (*self._run.value(node.func).paths(), method)
            )
        return False

    def reads_after_backward(self, tree: Tree, statement: ast.stmt) -> bool:
        """Whether gradients are read between a backward call and the last one, before they are averaged."""
        if self.reads(statement):
            return True
        between = False
        while True:
            block = tree.block(statement)
            for earlier in reversed(block[: block.index(statement)]):
                if self._any(earlier, self._steps):
                    return False
                if self.backward(earlier):
                    return between or self.reads(earlier)
                between = between or self.reads(earlier)
            up = tree.parent.get(statement)
            if not isinstance(up, (ast.If, ast.With, ast.Try)):
                return False
            statement = up
