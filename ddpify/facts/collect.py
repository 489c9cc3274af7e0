"""What a script is: its trained models, optimizers, loaders and training loops, read off the values that flow through it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from ddpify.facts import batch_source, collected_batches, discarded, library, manual_batches, optional_wraps, windows
from ddpify.facts.assumed import AS_WRITTEN, BY_RANK_ZERO, GATHERS, GIVEN, SHARES, WHOLE_BATCHES, AssumedEdits
from ddpify.facts.batch_source import BatchSource
from ddpify.facts.frozen import frozen
from ddpify.facts.interpret.attributes import opened
from ddpify.facts.interpret.settings import excluded
from ddpify.facts.model import NOTHING, Call, Func, Lit, Loop, Method, New, Obj, Part, Value, join, ordered
from ddpify.facts.runs import Run, place_of, run, run_by
from ddpify.facts.tree import Forest, Tree, arguments, walk
from ddpify.project import Project
from ddpify.records import dataclass, field, replace


@dataclass(frozen=True)
class Wrap:
    """After which statement a target is to hold a wrapped model."""

    after: ast.stmt
    target: ast.expr
    container: str  # "list" or "dict" where the target holds several models


@dataclass(eq=False)
class TrainedModel:
    """A model whose parameters an optimizer moves: the objects it may be (alternatives of one variable)."""

    objs: frozenset[Obj]
    forwards: frozenset[ast.AST]
    wraps: tuple[Wrap, ...] = ()  # several where it is made in several places
    wrapped: bool = False

    @property
    def first(self) -> Obj:
        """One of the objects, the same each time."""
        return min(self.objs, key=place_of)


@dataclass(eq=False)
class TrainingLoop:
    """One backward call, the loops around it, and the loaders that its loss comes from."""

    backward: Call
    loss: Value
    loaders: frozenset[Obj]
    batch: Loop | None
    epoch: Loop | None


@dataclass(frozen=True)
class Start:
    """After which statement something that is trained is made the same on all ranks: a module, or the tensors of an expression."""

    after: ast.stmt
    what: str
    module: Obj | None
    target: ast.expr | None = None  # `what`, where it is one expression


@dataclass(frozen=True)
class Averaged:
    """Where the gradients of an optimizer are averaged by a call: before which statements, under which name it has there."""

    steps: tuple[tuple[ast.stmt, str], ...]
    starts: tuple[Start, ...]


@dataclass(frozen=True)
class TrainedMethod:
    """A module that is trained through one of its methods, called at `sites`; `partly`: the method does not use all of the module."""

    start: Start
    method: str
    sites: tuple[ast.Call, ...]
    partly: bool


@dataclass(eq=False)
class Facts:
    """All that the rules may ask: `before` is the script as it stands, `after` the same with its models wrapped."""

    project: Project
    trees: dict[str, Tree]
    before: Run
    after: Run
    base: AssumedEdits = AS_WRITTEN  # what is assumed of the script as it stands
    models: list[TrainedModel] = field(default_factory=list)
    loops: list[TrainingLoop] = field(default_factory=list)
    optimizers: frozenset[New] = frozenset()
    unwrapped_arguments: frozenset[ast.expr] = frozenset()
    pickled: frozenset[ast.expr] = frozenset()  # those of them that put a model into what is saved as a whole
    discarded: tuple[TrainingLoop, ...] = ()  # the backward calls whose gradients of parameters are zeroed before any step
    batch_sources: Mapping[ast.AST, BatchSource] = field(default_factory=dict)
    edited: tuple[str, ...] = ()  # the modules that are edited beside the entry
    wraps: Mapping[ast.stmt, tuple[ast.expr, ...]] = field(default_factory=dict)
    averaged: dict[New, Averaged] = field(default_factory=dict)
    trained_methods: tuple[TrainedMethod, ...] = ()
    averaged_optimizers: frozenset[New] = frozenset()  # the optimizers whose gradients such calls average, or wrapped methods
    needs_no_wrapper: frozenset[TrainedModel] = frozenset()  # the models that need no wrapper, since such calls average their gradients
    wrap_after: tuple[int, ast.AST, tuple[ast.AST, ...]] | None = None  # an event that wraps come after

    @cached_property
    def prefixed(self) -> frozenset[ast.AST]:
        """The calls that save or load the state dict of a DataParallel: its keys carry the prefix, and go on doing so.

        Where only a setting asks for the wrapper, they are plain.
        """
        return self._inside_dataparallel(library.STATE_METHODS)

    @cached_property
    def naming(self) -> frozenset[ast.AST]:
        """The calls that ask a DataParallel for the names of its parameters or modules, which carry the prefix and go on doing so."""
        return self._inside_dataparallel(library.NAMING_METHODS)

    def _inside_dataparallel(self, methods: frozenset[str]) -> frozenset[ast.AST]:
        """The calls that lead to one of some methods of what is always in a DataParallel."""
        called = (c for c in self.before.trace.calls if c.method in methods)
        kept = [c for c in called if library.DATAPARALLEL in c.receiver.kinds() and not optional_wraps.is_optional(self, c.receiver)]
        return frozenset(node for c in kept for node in c.stack)

    @cached_property
    def training_loops(self) -> frozenset[ast.AST]:
        """The loops around the backward calls, those over epochs and folds included."""
        return frozenset(loop.node for t in self.loops for loop in t.backward.loops)

    @cached_property
    def entry(self) -> Forest:
        """The files that are edited: the entry, and the modules that make its batches or run over them."""
        key, memo = (f"edited: {' '.join(self.edited)}", self.project.entry.tree), self.project.memo
        if key not in memo:  # the same for all runs
            memo[key] = Forest([self.trees[name] for name in ("__main__", *self.edited)])
        return memo[key]  # type: ignore[return-value]

    def tree_of(self, node: ast.AST) -> Tree:
        """The tree that a node stands in."""
        tree = self.before.scopes.tree(node)
        if tree is None:
            raise KeyError(ast.dump(node))
        return tree

    def is_edited(self, node: ast.AST) -> bool:
        """Whether a node stands where edits are made."""
        return node in self.entry.parent

    def may_edit(self, node: ast.AST) -> bool:
        """Whether a node stands where edits are made, or could be made."""
        return self.is_edited(node) or self.project.may_edit(self.tree_of(node).name)

    def in_main(self, node: ast.AST) -> bool:
        """Whether a node stands in the entry itself."""
        return node in self.trees["__main__"].parent

    @property
    def trained(self) -> frozenset[Obj]:
        """All that the trained models may be."""
        return frozenset(o for model in self.models for o in model.objs)

    @property
    def loaders(self) -> list[New]:
        """The loaders that feed training of which each rank reads its part, in source order."""
        return [o for o in self._read if o.path not in batch_source.PATHS]

    @property
    def feeding(self) -> list[New]:
        """All that feeds training of which each rank has its part, in source order: loaders, and batches that are cut or drawn by hand."""
        return [o for o in self._read if o not in self.whole_loaders]

    @property
    def _read(self) -> list[New]:
        found = {o for loop in self.loops for o in loop.loaders if isinstance(o, New)}
        return sorted(found, key=lambda o: (getattr(o.node, "lineno", 0), getattr(o.node, "col_offset", 0)))

    @cached_property
    def whole_loaders(self) -> frozenset[New]:
        """The loaders of which all ranks have whole batches."""
        return frozenset(o for o, name in self.before.memory if name == WHOLE_BATCHES and isinstance(o, New))

    @property
    def wrapping(self) -> AssumedEdits:
        """The edits that wrap the models, hand them on unwrapped, and make batches by hand of each rank's rows."""
        unwraps, sources = self.unwrapped_arguments, self.batch_sources
        return replace(self.base, wraps=self.wraps, ignore_dp=True, unwraps=unwraps, batch_sources=sources)

    def wrapped(self, value: Value) -> bool | None:
        """After the wrap: True where a value is a trained model's wrapper, None where it may also be the model itself."""
        hits = [o for o in value.objs if isinstance(o, New) and o.path in library.WRAPPERS]
        if not hits:
            return False
        return None if any(isinstance(o, (New, Part)) and o not in hits for o in value.objs) else True

    def model_of(self, value: Value) -> TrainedModel | None:
        """The trained model that a value may be, wrapped or not."""
        for model in self.models:
            if self.after.unwrap(value) & model.objs:
                return model
        return None


def collect(project: Project, base: AssumedEdits = AS_WRITTEN) -> Facts:
    """Read the facts of a project, of which something may be assumed already."""
    before = run(project, base)
    files = {"__main__": project.entry, **project.analysed}
    trees = {name: f.standing for name, f in files.items()}
    facts = Facts(project, trees, before, before, base)
    if before.trace.exhausted:
        return facts
    facts.loops = [_loop(before, call) for call in _backwards(before)]
    if not facts.whole_loaders and any(not loop.loaders for loop in facts.loops):
        _of_no_loader(facts) if any(_calls(before, GATHERS)) else _by_hand(facts)
    facts.optimizers = _stepped_optimizers(facts.before)
    _leave_out_discarded(facts)
    facts.models = sorted(_trained(facts), key=lambda m: place_of(m.first))
    facts.edited = tuple(edited(facts))
    return facts


def _stepped_optimizers(run: Run) -> frozenset[New]:
    """The optimizers that are stepped, by themselves or by a scaler."""
    steps = (*run.calls_named("step"), *run.calls_named("minimize"))
    return frozenset(o for c in steps for v in (c.receiver, *c.args) for o in v.instances() if run.is_optimizer(o))


def _leave_out_discarded(facts: Facts) -> None:
    """Take no backward call for training whose gradients are zeroed before any step, nor what moves rows of a batch alone by them."""
    facts.discarded = tuple(discarded.discarded(facts, facts.loops, facts.optimizers))
    if 0 < len(facts.discarded) < len(facts.loops):
        facts.loops = [loop for loop in facts.loops if loop not in facts.discarded]
        if all(loop.loss.scale == "sum" for loop in facts.discarded):
            facts.optimizers = frozenset(o for o in facts.optimizers if not discarded.of_inputs(facts, o))


def edited(facts: Facts) -> Iterator[str]:
    """The modules that may be edited, and make the batches of the training or run over those of a loader."""
    wanted = _concerned(facts)
    for name, tree in facts.trees.items():
        if name in facts.project.files and facts.project.may_edit(name) and any(n in tree.parent for n in wanted):
            yield name


def _concerned(facts: Facts) -> set[ast.AST]:
    """The nodes that make, count, show or go through the batches of the training, its backward calls, and wrappers to be taken off.

    With those that read or load the keys of such a wrapper.
    """
    run, loaders = facts.before, set(facts.loaders)
    nodes: set[ast.AST] = {o.node for o in facts.loaders}
    nodes.update(call.node for call in run.calls_of(library.DATAPARALLEL))
    nodes.update(n for loop in facts.loops for n in (loop.backward.node, *loop.backward.stack))
    loops = {id(loop): loop for call in run.trace.calls for loop in call.loops}
    nodes.update(loop.node for loop in loops.values() if run.feeds(loop.over))
    for call in run.trace.calls:
        paths = call.func.paths()
        prefetches = "iter" in paths and call.args and loaders & call.args[0].objs
        scaled = call.result.scale == "weighted" and call.result.of_kind("batch")  # a loss to be scaled
        keyed = call.method in library.STATE_METHODS and library.DATAPARALLEL in call.receiver.kinds()
        if prefetches or scaled or keyed or any(p.startswith(("tqdm.", "progress.")) for p in paths):
            nodes.add(call.node)
    return nodes


def _by_hand(facts: Facts) -> None:
    """Look for batches made by hand, and run once more with them, where a loss then comes from one."""
    trees = list(facts.trees.values())
    found = manual_batches.find_batch_sources(facts.before, trees)
    laid_out = windows.windows(trees)
    if laid_out:  # what is cut for them, `tokens[at : at + B * T]`, are no rows
        found = {n: each for n, each in found.items() if each.kind != "rows" or not isinstance(each.size, ast.BinOp)} | laid_out
    if not _fed_by(facts, found):
        _fed_by(facts, {each.node: each for tree in trees for each in collected_batches.collected_batches(facts.before, tree)})


def _fed_by(facts: Facts, found: Mapping[ast.AST, BatchSource]) -> bool:
    """Run once more with batches made by hand; whether a loss comes from one.

    What is drawn in a loop in which each loss comes from a loader is noise.
    """
    again = run(facts.project, replace(facts.base, batch_sources=found)) if found else facts.before
    loops = [_loop(again, call) for call in _backwards(again)] if found else []
    fed = {o for loop in loops for o in loop.loaders if isinstance(o, New) and o.path in batch_source.PATHS}
    alone = [loop for loop in loops if comes_from_no_loader(again, loop)]
    around = {loop.batch.node for loop in alone if loop.batch is not None}
    there = {o.node for t in loops if t in alone or any(loop.node in around for loop in t.backward.loops) for o in fed & t.loaders}
    noise = {o.node for o in fed if there} - there
    if not noise.isdisjoint(found):
        return _fed_by(facts, {node: each for node, each in found.items() if node not in noise})
    if fed:
        facts.batch_sources, facts.before, facts.after, facts.loops = found, again, again, loops
    return bool(fed)


def comes_from_no_loader(run: Run, loop: TrainingLoop) -> bool:
    """Whether a loss comes from batches that are made by hand alone: what is drawn beside a loader's batches is noise."""
    return not any(map(run.is_loader, loop.loss.of_kind("batch")))


def _of_no_loader(facts: Facts) -> None:
    """Run once more where a converted script gives a model this rank's rows of what no loader makes."""
    given: dict[ast.expr, str] = {c.node: GIVEN for c in _calls(facts.before, SHARES) if isinstance(c.node, ast.expr)}
    if given:
        facts.base = replace(facts.base, redistributed={**facts.base.redistributed, **given})
        facts.before = facts.after = run(facts.project, facts.base)
        facts.loops = [_loop(facts.before, call) for call in _backwards(facts.before)]


def _calls(run: Run, names: Collection[str]) -> Iterator[Call]:
    """The calls of functions of these names, as a converted script has them."""
    return (c for c in run.trace.calls if any(getattr(n, "name", "") in names for n in c.func.functions()))


def _backwards(run: Run) -> list[Call]:
    return [c for c in run.trace.calls if c.method == "backward" and not any(isinstance(o, Func) for o in c.func.objs)]


def loss_of(call: Call) -> Value:
    """The value that a backward call starts from."""
    if "torch.autograd.backward" in call.func.paths():
        return call.args[0] if call.args else NOTHING
    if any(isinstance(o, Method) for o in call.func.objs) and call.args:  # optimizer.backward(loss), scaler-like wrappers
        return call.args[0]
    return call.receiver


def _loop(run: Run, call: Call) -> TrainingLoop:
    loss = loss_of(call)
    fed = (o for o in loss.of_kind("batch") | loss.of_kind("whole") if isinstance(o, New))
    loaders = frozenset(o for o in fed if not by_rank_zero(run, o))
    around = [loop for loop in call.loops if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While))]
    if loaders and not any(run.is_loader(o) for o in loaders):  # batches are drawn in a loop that a loader counts
        loaders |= frozenset(o for loop in around[-1:] for o in loop.element.batches() if run.is_loader(o))
    feeding = [i for i, loop in enumerate(around) if loaders & batches_of(run, loop.element)]
    if not feeding:
        fetching = {c.loops[-1].node for c in run.trace.calls if c.loops and fetches(c) and loaders & batches_of(run, c.result)}
        feeding = [i for i, loop in enumerate(around) if loop.node in fetching]
    at = feeding[-1] if feeding else len(around) - 1
    batch = around[at] if around else None
    return TrainingLoop(call, loss, loaders, batch, around[at - 1] if at > 0 else None)


def batches_of(run: Run, value: Value) -> frozenset[New]:
    """The loaders whose batches a value may be: a rank's parts of them, or whole ones."""
    whole = (o for v in library.with_entries([value]) for o in v.of_kind("whole") if (o, WHOLE_BATCHES) in run.memory)
    return frozenset(o for o in (*value.batches(), *whole) if isinstance(o, New))


def by_rank_zero(run: Run, loader: New) -> bool:
    """Whether rank 0 reads a loader for all ranks."""
    by = run.memory.get((loader, WHOLE_BATCHES), NOTHING)
    return any(isinstance(o, Lit) and o.value == BY_RANK_ZERO for o in by.objs)


def fetches(call: Call) -> bool:
    """Whether a call takes one batch of an iterator."""
    return call.method in ("next", "__next__") or "next" in call.func.paths()


def _trained(facts: Facts) -> Iterator[TrainedModel]:
    """Group the objects whose forward reaches a backward and whose parameters are stepped."""
    run, stepped = facts.before, _stepped(facts)
    forwards: dict[Obj, set[ast.AST]] = {}
    for loop in facts.loops:
        for obj, node in loop.loss.of_kind("forward") | loop.loss.of_kind("graded"):
            forwards.setdefault(obj, set()).add(node)
    touched = {obj for obj in forwards if any(obj in run.roots(p) for p in stepped) and not run.has_no_parameters(obj)}
    touched -= {obj for obj in touched if any(r in touched for r in run.roots(obj) if r != obj) and _inside(run, forwards, obj, touched)}
    groups: list[tuple[set[Obj], set[ast.AST]]] = []
    for obj in touched:
        objs = {obj} | _called_there(run, forwards[obj], touched)
        joined = [g for g in groups if g[0] & objs]
        groups = [g for g in groups if g not in joined]
        groups.append((objs.union(*(g[0] for g in joined)), forwards[obj].union(*(g[1] for g in joined))))
    for objs, nodes in groups:
        yield TrainedModel(frozenset(objs), frozenset(nodes))


def _stepped(facts: Facts) -> set[Obj]:
    """The modules and single parameters that an optimizer, or the script itself, moves."""
    run = facts.before
    stepped = {o for target in moved_by_hand(facts) for o in run.parameters(run.value(target))}
    for optimizer in facts.optimizers:
        parameters = optimizer_parameters(facts, optimizer)
        stepped |= run.parameters(parameters) | run.single_parameters(parameters)
    if any(is_read(run, o) for call in run.trace.calls if call.method == "step" for o in call.receiver.objs):
        stepped |= {pair[0] for loop in facts.loops for pair in loop.loss.of_kind("forward") if is_read(run, pair[0])}
    return stepped - _frozen(facts)


def is_read(run: Run, obj: Obj) -> bool:
    """Whether an object comes out of a file that holds whole objects."""
    return any(isinstance(root, New) and root.path in library.UNPICKLES for root in run.roots(obj))


def _frozen(facts: Facts) -> frozenset[Obj]:
    """The modules that are frozen before a backward call goes back through them."""
    trained: dict[Obj, int] = {}
    for loop in sorted(facts.loops, key=lambda loop: loop.backward.order, reverse=True):
        trained |= {pair[0]: loop.backward.order for pair in loop.loss.of_kind("forward")}
    return frozen(facts.before, trained)


def _called_there(run: Run, nodes: set[ast.AST], touched: set[Obj]) -> set[Obj]:
    """The trained modules that some forwards run; of many by one name, those without parameters cannot be meant, but run there, too."""
    out: set[Obj] = set()
    for call in (c for node in nodes for c in run.calls(node)):
        called = run.unwrap(Value(run_by(call)))
        out |= called & touched
        if len(called) > 8:
            out |= {o for o in called if isinstance(o, New) and run.has_no_parameters(o)}
    return out


def moved_by_hand(facts: Facts) -> Iterator[ast.expr]:
    """What the script itself moves by a gradient: `w.data -= rate * w.grad`, `w.data.add_(-rate * w.grad)`, `w.data = ...`."""
    for tree in facts.trees.values():
        key = ("moved", tree.root)
        if key not in facts.project.memo:
            facts.project.memo[key] = list(_moved_by_hand(tree))
        yield from facts.project.memo[key]  # type: ignore[misc]


def _moved_by_hand(tree: Tree) -> Iterator[ast.expr]:
    if not any(map(_is_grad, tree.of(ast.Attribute))):
        return
    for node in tree.nodes():
        target: ast.expr | None = None
        by: list[ast.expr] = []
        if isinstance(node, ast.AugAssign):
            target, by = node.target, [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            target, by = node.func.value, arguments(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == "data":
            target, by = node.targets[0].value, [node.value]
        if target is not None and not _grad_in(target) and any(map(_grad_in, by)):
            yield target


def _grad_in(node: ast.expr) -> bool:
    return any(map(_is_grad, walk(node)))


def _is_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _inside(run: Run, forwards: dict[Obj, set[ast.AST]], part: Obj, touched: set[Obj]) -> bool:
    """Whether a submodule is only run inside the forward of a trained module that holds it."""
    around = {n for r in run.roots(part) if r != part and r in touched for n in forwards[r]}
    return all(any(n in around for n in call.stack) for node in forwards[part] for call in run.calls(node))


def uncovered(facts: Facts) -> Iterator[tuple[New, Obj | None]]:
    """Optimizers with parameters of a module whose forward was not seen to reach a backward; None: parameters of unknown origin."""
    run = facts.before
    trained = facts.trained | _frozen(facts)
    for optimizer in ordered(facts.optimizers):
        parameters = optimizer_parameters(facts, optimizer)
        params, single = run.parameters(parameters), run.single_parameters(parameters)
        for loose in single:
            if not any(r in trained for r in run.registered(loose)):
                yield optimizer, loose
        if not params and not single:
            yield optimizer, None
        for obj in params:
            roots = set(run.registered(obj))
            instead = any(made_instead(run, root, model) for root in roots for model in facts.models)
            if not instead and trained.isdisjoint(roots) and not run.has_no_parameters(obj):
                yield optimizer, obj


def made_instead(run: Run, obj: Obj, model: TrainedModel) -> bool:
    """Whether an object is made instead of the model: where a setting has another value, by the same call of what is chosen, or to fail.

    What may stand where the model is called, and reaches no backward from there, cannot be called with what the model is given.
    """
    if not isinstance(obj, New) or not (run.interpreter.is_module(obj) or obj.path.startswith("torch.nn.")):
        return False
    if any(obj in opened(run.interpreter, run.value(node.func).objs) for node in model.forwards if isinstance(node, ast.Call)):
        return True
    under = run.interpreter.made_under
    if all(excluded(under.get(obj, frozenset()), under.get(other, frozenset())) for other in model.objs):
        return True
    made = frozenset((obj.node, *obj.stack))
    for other in model.objs:
        made &= frozenset((other.node, *other.stack)) if isinstance(other, New) else frozenset()
    return any(isinstance(n, ast.Call) and (len(run.value(n.func).objs) > 1 or obj in run.value(n).instances()) for n in made)


def optimizer_parameters(facts: Facts, optimizer: New) -> Value:
    """The parameters that an optimizer was given, at once and later; of one that was given none, those of the optimizers it holds."""
    run = facts.before
    held, seen = [optimizer], set[New]()
    parameters = NOTHING
    while held and not (run.parameters(parameters) or run.single_parameters(parameters)):
        inner = held.pop()
        if inner in seen:
            continue
        seen.add(inner)
        added = [c.args for c in run.trace.calls if c.method == "add_param_group" and inner in c.receiver.objs]
        parameters = join([parameters, run.attribute(inner, "params"), *(a for args in added for a in args)])
        held += [
            o for _, value in run.interpreter.memory.of(inner) for o in ordered(value.objs) if isinstance(o, New) and run.is_optimizer(o)
        ]
    return parameters


# ---------------------------------------------------------------------------------------------------- where to wrap


def redistributed_run(facts: Facts, how: Mapping[ast.expr, str]) -> Run:
    """A run in which some expressions have the placement that an edit would give them, beside the edits that are known by now."""
    known = facts.wrapping if facts.after is facts.before else replace(facts.after.interpreter.assumed, ignore_dp=True)
    return run(facts.project, replace(known, redistributed={**known.redistributed, **how}))


def training_calls(facts: Facts) -> set[ast.AST]:
    """The calls under which a training forward runs, the forwards included."""
    out: set[ast.AST] = set()
    for model in facts.models:
        for node in model.forwards:
            for call in facts.after.calls(node):
                if not call.no_grad:
                    out |= {node, *call.stack}
    return out


def first_node(model: TrainedModel) -> ast.AST:
    """The first forward of a model in its file."""
    return min(model.forwards, key=lambda n: getattr(n, "lineno", 0))


def first_order(facts: Facts, model: TrainedModel) -> int:
    """When a model is first trained through."""
    return min((c.order for n in model.forwards for c in facts.before.calls(n)), default=0)
