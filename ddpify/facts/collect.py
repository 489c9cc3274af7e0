"""What a script is: its trained models, optimizers, loaders and training loops, read off the values that flow through it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from itertools import islice

from ddpify.facts import batch_source, discarded, library, manual_batches, optional_wraps, pickled
from ddpify.facts.batch_source import BatchSource
from ddpify.facts.model import NOTHING, Call, Func, Lit, Loop, Method, New, Obj, Part, Value, join
from ddpify.facts.runs import Run, place_of, run, run_by
from ddpify.facts.tree import Forest, Tree, same, structure
from ddpify.project import Project
from ddpify.records import dataclass, field, replace


@dataclass(eq=False)
class TrainedModel:
    """A model whose parameters an optimizer moves: the objects it may be (alternatives of one variable)."""

    objs: frozenset[Obj]
    forwards: frozenset[ast.AST]
    wrap: tuple[ast.stmt, ast.expr] | None = None
    wrapped: bool = False
    container: str = ""  # "list" or "dict" where the target of the wrap holds several models

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
    models: list[TrainedModel] = field(default_factory=list)
    loops: list[TrainingLoop] = field(default_factory=list)
    optimizers: frozenset[New] = frozenset()
    passed: frozenset[ast.expr] = frozenset()
    pickled: frozenset[ast.expr] = frozenset()  # those of them that put a model into what is saved as a whole
    discarded: tuple[TrainingLoop, ...] = ()  # the backward calls whose gradients of parameters are zeroed before any step
    batch_sources: Mapping[ast.AST, BatchSource] = field(default_factory=dict)
    edited: tuple[str, ...] = ()  # the modules that are edited beside the entry
    wraps: Mapping[ast.stmt, tuple[ast.expr, ...]] = field(default_factory=dict)
    averaged: dict[New, Averaged] = field(default_factory=dict)
    trained_methods: tuple[TrainedMethod, ...] = ()
    averaged_optimizers: frozenset[New] = frozenset()  # the optimizers whose gradients such calls average, or wrapped methods
    needs_no_wrapper: frozenset[TrainedModel] = frozenset()  # the models that need no wrapper, since such calls serve them
    floor: tuple[int, ast.AST, tuple[ast.AST, ...]] | None = None  # an event that wraps come after

    @cached_property
    def prefixed(self) -> frozenset[ast.AST]:
        """The calls that save or load the state dict of a DataParallel: its keys carry the prefix, and go on doing so.

        Where only a setting asks for the wrapper, they are plain.
        """
        states = (c for c in self.before.trace.calls if c.method in ("state_dict", "load_state_dict"))
        kept = [c for c in states if library.DATAPARALLEL in c.receiver.kinds() and not optional_wraps.is_optional(self, c.receiver)]
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

    def in_main(self, node: ast.AST) -> bool:
        """Whether a node stands in the entry itself."""
        return node in self.trees["__main__"].parent

    @property
    def loaders(self) -> list[New]:
        """The loaders that feed training, in source order."""
        return [o for o in self.feeding if o.path not in batch_source.PATHS]

    @property
    def feeding(self) -> list[New]:
        """All that feeds training, in source order: the loaders, and the batches that are cut or drawn by hand."""
        found = {o for loop in self.loops for o in loop.loaders if isinstance(o, New)}
        return sorted(found, key=lambda o: (getattr(o.node, "lineno", 0), getattr(o.node, "col_offset", 0)))

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


def collect(project: Project) -> Facts:
    """Read the facts of a project."""
    before = run(project)
    files = {"__main__": project.entry, **project.files}
    trees = {name: f.standing for name, f in files.items()}
    facts = Facts(project, trees, before, before)
    facts.loops = [_loop(before, call) for call in _backwards(before)]
    if any(not loop.loaders for loop in facts.loops):
        _by_hand(facts)
        before = facts.before
    steps = [
        o
        for c in before.trace.calls
        if c.method in ("step", "minimize")
        for v in (c.receiver, *c.args)
        for o in v.objs
        if before.is_optimizer(o)
    ]
    facts.optimizers = frozenset(o for o in steps if isinstance(o, New))
    facts.discarded = tuple(discarded.discarded(facts, facts.loops, facts.optimizers))
    if len(facts.discarded) < len(facts.loops):
        facts.loops = [loop for loop in facts.loops if loop not in facts.discarded]
        if all(loop.loss.scale == "sum" for loop in facts.discarded):
            facts.optimizers = frozenset(o for o in facts.optimizers if not facts.discarded or not discarded.of_inputs(facts, o))
    facts.models = sorted(_trained(facts), key=lambda m: place_of(m.first))
    facts.edited = tuple(_edited(facts))
    return facts


def _edited(facts: Facts) -> Iterator[str]:
    """The modules that may be edited, and make the batches of the training or run over those of a loader."""
    run, project = facts.before, facts.project
    nodes: list[ast.AST] = [o.node for o in facts.loaders]
    nodes += [n for loop in facts.loops for n in (loop.backward.node, *loop.backward.stack)]
    around = [loop for call in run.trace.calls for loop in call.loops]
    nodes += [loop.node for loop in around if run.feeds(loop.over)]
    nodes += [c.node for c in run.trace.calls if any(p.startswith(("tqdm.", "progress.")) for p in c.func.paths())]
    nodes += [c.node for c in run.trace.calls if c.result.scale == "weighted" and c.result.of_kind("batch")]  # a loss to be scaled
    loaders = set(facts.loaders)
    nodes += [c.node for c in run.trace.calls if "iter" in c.func.paths() and c.args and loaders & c.args[0].objs]  # a prefetcher
    wanted = set(nodes)
    for name, tree in facts.trees.items():
        if name != "__main__" and project.may_edit(name) and any(n in tree.parent for n in wanted):
            yield name


def _by_hand(facts: Facts) -> None:
    """Look for batches made by hand, and run once more with them, where a loss then comes from one."""
    found = manual_batches.find_batch_sources(facts.before, list(facts.trees.values()))
    if not found:
        return
    again = run(facts.project, batch_sources=found)
    loops = [_loop(again, call) for call in _backwards(again)]
    if any(isinstance(o, New) and o.path in batch_source.PATHS for loop in loops for o in loop.loaders):
        facts.batch_sources, facts.before, facts.after, facts.loops = found, again, again, loops


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
    loaders = frozenset(o for o in loss.of_kind("batch") | loss.of_kind("whole") if isinstance(o, New))
    around = [loop for loop in call.loops if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While))]
    if loaders and not any(run.is_loader(o) for o in loaders):  # batches are drawn in a loop that a loader counts
        loaders |= frozenset(o for loop in around[-1:] for o in loop.element.batches() if run.is_loader(o))
    feeding = [i for i, loop in enumerate(around) if loaders & frozenset(o for o in loop.element.batches() if isinstance(o, New))]
    if feeding:
        at = feeding[-1]
    else:
        at = len(around) - 1
    batch = around[at] if around else None
    return TrainingLoop(call, loss, loaders, batch, around[at - 1] if at > 0 else None)


def _trained(facts: Facts) -> Iterator[TrainedModel]:
    """Group the objects whose forward reaches a backward and whose parameters are stepped."""
    run = facts.before
    stepped: set[Obj] = set()
    for optimizer in facts.optimizers:
        held = optimizer_parameters(facts, optimizer)
        stepped |= run.parameters(held) | run.single_parameters(held)
    stepped |= {o for target in moved_by_hand(facts) for o in run.parameters(run.value(target))}
    forwards: dict[Obj, set[ast.AST]] = {}
    for loop in facts.loops:
        for pair in loop.loss.of_kind("forward") | loop.loss.of_kind("graded"):
            obj, node = pair
            forwards.setdefault(obj, set()).add(node)
    touched = {obj for obj in forwards if any(obj in run.roots(p) for p in stepped) and not run.has_no_parameters(obj)}
    touched -= {obj for obj in touched if any(r in touched for r in run.roots(obj) if r != obj) and _inside(run, forwards, obj, touched)}
    groups: list[tuple[set[Obj], set[ast.AST]]] = []
    for obj in touched:
        nodes = forwards[obj]
        together = {obj}
        for node in nodes:
            for call in run.calls(node):
                called = run.unwrap(Value(run_by(call)))
                together |= {o for o in called if o in touched}
                if len(called) > 8:  # one of many by its name: those without parameters cannot be meant
                    together |= {o for o in called if isinstance(o, New) and run.has_no_parameters(o)}
        merged = (together, set(nodes))
        rest = []
        for objs, ns in groups:
            if objs & merged[0]:
                merged = (objs | merged[0], ns | merged[1])
            else:
                rest.append((objs, ns))
        groups = [*rest, merged]
    for objs, ns in groups:
        yield TrainedModel(frozenset(objs), frozenset(ns))


def moved_by_hand(facts: Facts) -> Iterator[ast.expr]:
    """What the script itself moves by a gradient: `w.data -= rate * w.grad`, `w.data.add_(-rate * w.grad)`, `w.data = ...`."""
    for tree in facts.trees.values():
        key = ("moved by hand", tree.root)
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
            target, by = node.func.value, [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == "data":
            target, by = node.targets[0].value, [node.value]
        if target is not None and not _grad_in(target) and any(map(_grad_in, by)):
            yield target


def _grad_in(node: ast.expr) -> bool:
    return any(map(_is_grad, ast.walk(node)))


def _is_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _inside(run: Run, forwards: dict[Obj, set[ast.AST]], part: Obj, touched: set[Obj]) -> bool:
    """Whether a submodule is only run inside the forward of a trained module that holds it."""
    around = {n for r in run.roots(part) if r != part and r in touched for n in forwards[r]}
    return all(any(n in around for n in call.stack) for node in forwards[part] for call in run.calls(node))


def uncovered(facts: Facts) -> Iterator[tuple[New, Obj | None]]:
    """Optimizers with parameters of a module whose forward was not seen to reach a backward; None: parameters of unknown origin."""
    run = facts.before
    trained = {o for m in facts.models for o in m.objs}
    for optimizer in sorted(facts.optimizers, key=lambda o: getattr(o.node, "lineno", 0)):
        held = optimizer_parameters(facts, optimizer)
        params = run.parameters(held)
        for loose in run.single_parameters(held):
            if not any(r in trained for r in run.roots(loose)):
                yield optimizer, loose
        if not params:
            yield optimizer, None
        for obj in params:
            if not any(r in trained for r in run.roots(obj)) and not run.has_no_parameters(obj):
                yield optimizer, obj


def optimizer_parameters(facts: Facts, optimizer: New) -> Value:
    """The parameters that an optimizer was given, at once and later."""
    run = facts.before
    added = [c.args for c in run.trace.calls if c.method == "add_param_group" and optimizer in c.receiver.objs]
    return join([run.held(optimizer, "params"), *(a for args in added for a in args)])


# ---------------------------------------------------------------------------------------------------- where to wrap


def place_wraps(facts: Facts) -> None:
    """Find, for each trained model, the statement after which its name shall hold the wrapped model; fills `wrap` and `after`."""
    wraps: dict[ast.stmt, tuple[ast.expr, ...]] = {}
    facts.after, facts.passed = facts.before, frozenset()
    for model in sorted(facts.models, key=lambda m: first_order(facts, m)):
        model.wrap, model.wrapped = None, _is_wrapped_in(facts, model, facts.before)
        most = 20 if facts.before.interpreter.spent < 10_000 else 3  # each trial runs the script once more
        for statement, target in () if model.wrapped or model in facts.needs_no_wrapper else islice(candidates(facts, model), most):
            if _part_of_a_module(facts, target, statement):
                continue
            known: dict[Hashable, ast.expr] = facts.project.memo.setdefault(("wraps", statement), {})  # type: ignore[assignment]
            target = known.setdefault(structure(target), target)
            trial: Mapping[ast.stmt, tuple[ast.expr, ...]] = {**wraps, statement: (*wraps.get(statement, ()), target)}
            tried = run(facts.project, trial, ignore_dp=True, batch_sources=facts.batch_sources)
            if _is_wrapped_in(facts, model, tried):
                model.wrap = statement, target
                model.container = container_kind(facts, statement, target)
                wraps = dict(trial)
                facts.after = tried
                break
    if facts.after is facts.before and any(library.DATAPARALLEL in c.func.paths() for c in facts.before.trace.calls):
        facts.after = run(facts.project, wraps, ignore_dp=True, batch_sources=facts.batch_sources)
    facts.wraps = wraps
    for _ in range(4):  # what a call is handed decides what the calls inside it are handed
        found = dict(_passed(facts))
        inner = {arg for arg, call in found.items() if all(set(c.stack) & set(found.values()) for c in facts.after.calls(call))}
        if not set(found) - inner:
            break
        facts.passed |= set(found) - inner
        facts.after = run(facts.project, wraps, ignore_dp=True, unwraps=facts.passed, batch_sources=facts.batch_sources)
    _unwrap_what_is_pickled(facts)


def _unwrap_what_is_pickled(facts: Facts) -> None:
    """Let what is saved as a whole hold the models themselves, where none is trained out of there."""
    facts.pickled = frozenset()
    found = frozenset(pickled.entries(facts.after, facts.entry))
    if not found:
        return
    tried = run(facts.project, facts.wraps, ignore_dp=True, unwraps=facts.passed | found, batch_sources=facts.batch_sources)
    if all(_is_wrapped_in(facts, model, tried) for model in facts.models if _is_wrapped_in(facts, model, facts.after)):
        facts.pickled, facts.passed, facts.after = found, facts.passed | found, tried


def _part_of_a_module(facts: Facts, target: ast.expr, statement: ast.stmt) -> bool:
    """Whether a target is an attribute of a module, whose state dict would get other keys if it held a wrapper."""
    run, tree = facts.before, facts.tree_of(statement)
    if not isinstance(target, ast.Attribute):
        return False
    function = tree.function(statement)
    held = [run.value(n) for n in ast.walk(function) if isinstance(n, (ast.Name, ast.Attribute, ast.arg)) and same(n, target.value)]
    return any(run.interpreter.is_module(o) for v in held for o in v.objs)


def with_redistribution(
    facts: Facts,
    replicated_after: Mapping[ast.stmt, tuple[ast.expr, ...]],
    replicated_branches: frozenset[ast.AST],
    shares: frozenset[New] | None = None,
    redistributed: Mapping[ast.expr, str] | None = None,
) -> Facts:
    """The facts of a run that knows what is replicated after edits: expressions after a statement, branches, redistributed operands."""
    after = run(
        facts.project,
        facts.wraps,
        ignore_dp=True,
        unwraps=facts.passed,
        replicated_after=replicated_after,
        replicated_branches=replicated_branches,
        shares=shares,
        redistributed=redistributed,
        batch_sources=facts.batch_sources,
    )
    return replace(facts, after=after)


def redistributed_run(facts: Facts, how: Mapping[ast.expr, str]) -> Run:
    """A run in which some expressions have the placement that an edit would give them."""
    return run(facts.project, facts.wraps, ignore_dp=True, unwraps=facts.passed, batch_sources=facts.batch_sources, redistributed=how)


def training_calls(facts: Facts) -> set[ast.AST]:
    """The calls under which a training forward runs, the forwards included."""
    out: set[ast.AST] = set()
    for model in facts.models:
        for node in model.forwards:
            for call in facts.after.calls(node):
                if not call.no_grad:
                    out |= {node, *call.stack}
    return out


def _passed(facts: Facts) -> Iterator[tuple[ast.expr, ast.Call]]:
    """The arguments that hand a wrapped model to a call that does not train, with that call: they are given the model itself."""
    run = facts.after
    training = training_calls(facts)
    for node in facts.entry.nodes():
        if not isinstance(node, ast.Call) or node in training or not run.calls(node):
            continue
        func = run.value(node.func)
        if facts.wrapped(func) is not False or any(isinstance(o, Method) and o.name in library.MODULE_METHODS for o in func.objs):
            continue
        if func.paths() & {"isinstance", "type", "id", "hasattr", "setattr", "dict", "list", "tuple", "functools.partial", *library.DDPS}:
            continue
        if any(isinstance(o, Method) and getattr(o.of, "path", "") in library.COLLECTIONS | library.CONTAINERS for o in func.objs):
            continue  # it is kept, and may be trained from there
        if func.paths() == {"getattr"} and _named_module(node):
            continue
        for arg in [*node.args, *(k.value for k in node.keywords)]:
            value = run.value(arg)
            if (
                isinstance(arg, (ast.Name, ast.Attribute))
                and facts.wrapped(value)
                and node not in facts.prefixed
                and not any(store.value.objs & value.objs and node in store.stack for store in run.trace.stores)
            ):
                yield arg, node


def _named_module(call: ast.Call) -> bool:
    """Whether a call is `getattr(model, "module", model)`."""
    return len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value == "module"


def first_node(model: TrainedModel) -> ast.AST:
    """The first forward of a model in its file."""
    return min(model.forwards, key=lambda n: getattr(n, "lineno", 0))


def first_order(facts: Facts, model: TrainedModel) -> int:
    """When a model is first trained through."""
    return min((c.order for n in model.forwards for c in facts.before.calls(n)), default=0)


def _is_wrapped_in(facts: Facts, model: TrainedModel, run: Run) -> bool:
    """Whether every training forward of the model goes through a wrapper in this run."""
    seen = False
    for node in model.forwards:
        for call in run.calls(node):
            called = run_by(call)
            mine = [o for o in called if o in model.objs]
            wrapped = [o for o in called if isinstance(o, New) and o.path in library.DDPS]
            if mine or (not wrapped and called):
                if call.no_grad:
                    continue
                return False
            seen = True
    return seen


def writes(
    facts: Facts, model: TrainedModel, before: int, loads: bool, around: set[ast.AST]
) -> list[tuple[int, ast.AST, tuple[ast.AST, ...]]]:
    """The events before `before` that create the model or may write to its parameters: (order, node, stack)."""
    run = facts.before
    around_model = run.around(model.objs)
    makers = {_base(o) for o in model.objs}
    out: list[tuple[int, ast.AST, tuple[ast.AST, ...]]] = []
    for call, about in run.writing:
        if call.order >= before or (about.isdisjoint(around_model | makers) and library.INITIALIZE not in call.func.paths()):
            continue
        if any(loop.node in around for loop in call.loops):
            continue
        if any(o.node is call.node for o in call.result.objs & makers if isinstance(o, New)):
            out.append((call.order, call.node, call.stack))
            continue
        writes = call.method in library.MODULE_WRITERS
        if writes and (run.unwrap(call.receiver) & around_model or _of(facts, model, call.receiver)):
            prefixed = any(o.path == library.DATAPARALLEL for o in call.receiver.made())
            if call.method == "load_state_dict" and (prefixed or not loads):
                continue
            out.append((call.order, call.node, call.stack))
        elif _touches(facts, model, call):
            out.append((call.order, call.node, call.stack))
    for store, about in run.storing:
        if (
            store.order < before
            and not about.isdisjoint(model.objs)
            and not any(loop.node in around for loop in store.loops)
            and (run.unwrap(store.receiver) & model.objs or _of(facts, model, store.receiver))
        ):
            out.append((store.order, store.node, store.stack))
    if facts.floor is not None and facts.floor[0] < before:
        out.append(facts.floor)
    return sorted(out, key=lambda e: e[0])


def _base(obj: Obj) -> Obj:
    """An object; of a part, such as an entry of what a file held, what it is a part of."""
    while isinstance(obj, Part):
        obj = obj.of
    return obj


def _of(facts: Facts, model: TrainedModel, value: Value) -> bool:
    """Whether a value is made of the model's parameters or submodules."""
    objs = set(value.of_kind("parameters")) | {o for o in value.objs if isinstance(o, (Part, New))}
    return any(
        r in model.objs
        for o in objs
        if isinstance(o, (New, Part))
        for r in facts.before.roots(o)
        if r is not o or "parameters" in {k.kind for k in value.origins}
    )


_PRUNE = "torch.nn.utils.prune."
_PARAMETRIZES = ("torch.nn.utils.parametriz", "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", _PRUNE)


def _touches(facts: Facts, model: TrainedModel, call: Call) -> bool:
    """Whether a call writes to parameters it was given: `nn.init`, in-place methods, a library function that takes the model."""
    paths = call.func.paths()
    if library.INITIALIZE in paths:
        return True
    if any(p.startswith("torch.nn.init.") for p in paths):
        return any(_of(facts, model, a) for a in call.args)
    if call.method.endswith("_") and not call.method.endswith("__"):
        return _of(facts, model, call.receiver)
    if any(p.startswith(_PARAMETRIZES) for p in paths):
        return any(_of(facts, model, a) for a in call.args)
    if paths and not any(isinstance(o, Func) for o in call.func.objs):
        if any(p.startswith(("print", "torch.save", "torch.optim", "len", "isinstance", "sum", "copy.")) for p in paths):
            return False
        return any(facts.before.unwrap(a) & model.objs for a in (*call.args, *call.keywords.values()))
    return False


def candidates(facts: Facts, model: TrainedModel, train: Call | None = None) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Statements after which the model could be wrapped, and the names to wrap, the likeliest first; `train`: before that call."""
    run = facts.before
    seen: set[tuple[ast.stmt, Hashable]] = set()
    places: list[tuple[Tree, ast.stmt]] = []
    firsts = [c for n in model.forwards for c in run.calls(n) if not c.no_grad]
    first = min(firsts, key=lambda c: c.order, default=train)
    if first is None:
        return
    train = first
    anew = made_in(run, model)
    for loads in (True, False):
        events = writes(facts, model, train.order, loads, {loop.node for loop in train.loops} - anew)
        if not events:
            continue
        _, node, stack = events[-1]
        common = 0
        while common < len(stack) and common < len(train.stack) and stack[common] is train.stack[common]:
            common += 1
        for depth in [common, *range(len(stack), common, -1)]:
            at = stack[depth] if depth < len(stack) else node
            there = train.stack[depth] if depth < len(train.stack) else train.node
            if isinstance(at, ast.Module):
                continue
            tree = facts.tree_of(at)
            statement = dominating(tree, at, there if depth == common else None)
            if depth == common and _repeats(tree, statement, there, anew):
                continue
            places.append((tree, statement))
            for target in targets(facts, tree, statement, model):
                key = (statement, structure(target))
                if key not in seen:
                    seen.add(key)
                    yield statement, target
                if len(seen) > (8 if run.interpreter.spent < 10_000 else 2):
                    return
    written = writes(facts, model, train.order, True, {loop.node for loop in train.loops} - anew)
    for store in run.trace.stores:  # a model made in a call's arguments: where an object of the project takes it up
        if written and not any(store.node is node for _, node, _ in written[-1:]) and store.order < written[-1][0]:
            continue
        if isinstance(store.node, ast.Attribute) and store.order < train.order and run.unwrap(store.value) & model.objs:
            tree = facts.tree_of(store.node)
            if store.node in tree.parent and isinstance(tree.statement(store.node), ast.Assign):
                yield tree.statement(store.node), store.node
    for tree, statement in places:  # what another object holds it as
        for text in _names_of_model(facts, tree, statement, model, True):
            yield statement, ast.parse(text, mode="eval").body


def dominating(tree: Tree, at: ast.AST, there: ast.AST | None) -> ast.stmt:
    """The statement around `at` in the innermost block that also holds `there`; without `there`, in its function's own block."""
    path = tree.path(at)
    if there is None or there not in tree.parent:
        return path[-1]
    others = set(map(id, tree.path(there)))
    blocks = {id(s) for p in tree.path(there) for s in tree.block(p)}
    for statement in path:
        if id(statement) in blocks and id(statement) not in others:
            return statement
    return path[-1]


def made_in(run: Run, model: TrainedModel) -> set[ast.AST]:
    """The loops in which the model is made anew, such as one over folds; what is made after the last training is not trained."""
    last = max((c.last for n in model.forwards for c in run.calls(n)), default=0)
    calls = [c for o in model.objs if isinstance(o, New) for c in run.calls(o.node) if c.order < last]
    return {loop.node for c in calls for loop in c.loops} if all(c.loops for c in calls) else set()


def _repeats(tree: Tree, statement: ast.stmt, there: ast.AST, anew: set[ast.AST]) -> bool:
    """Whether a loop holds both the statement and the training, and not the making: the model would be wrapped again each time."""
    if there not in tree.parent:
        return False
    inner = tree.path(there)
    return any(isinstance(s, (ast.For, ast.While)) and s in inner and s not in anew for s in tree.path(statement))


def targets(facts: Facts, tree: Tree, statement: ast.stmt, model: TrainedModel) -> Iterator[ast.expr]:
    """The names and attributes that hold the model once `statement` has run, the latest assigned first."""
    run = facts.before
    function = tree.function(statement)
    found: list[tuple[int, ast.expr]] = []
    globals_ = {n for s in ast.walk(function) if isinstance(s, ast.Global) for n in s.names}
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [e for t in node.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        if not targets or tree.function(node) is not function or tree.after(node, statement):
            continue
        for target in targets:
            if isinstance(target, (ast.Name, ast.Attribute)):
                value = run.value(target) if isinstance(target, ast.Name) else stored(run, target)
                if is_all(run, value, model):
                    found.append((node.lineno, target))  # type: ignore[attr-defined]
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for arg in function.args.args:
            if run.unwrap(run.value(arg)) & model.objs and arg.arg not in globals_:
                found.append((0, ast.Name(arg.arg, ast.Load())))
    names: set[str] = set()
    for text in (*(ast.unparse(t) for _, t in sorted(found, key=lambda f: -f[0])), *_names_of_model(facts, tree, statement, model, False)):
        if text not in names:
            names.add(text)
            yield ast.parse(text, mode="eval").body


def _names_of_model(facts: Facts, tree: Tree, statement: ast.stmt, model: TrainedModel, others: bool) -> Iterator[str]:
    """What lists, dicts and the method's own object (or others) hold the model as once `statement` has run: as a whole or by a key."""
    run, function = facts.before, tree.function(statement)
    named: dict[str, Value] = {}
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        named |= {arg.arg: run.value(arg) for arg in (*function.args.args, *function.args.kwonlyargs)}
    for node in own_nodes(function):
        if tree.placed(node) and tree.after(node, statement):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            named[node.id] = named.get(node.id, NOTHING) | run.value(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            held = run.value(node) if isinstance(node.ctx, ast.Load) else stored(run, node)
            named[ast.unparse(node)] = named.get(ast.unparse(node), NOTHING) | held
    first = next((a.arg for a in getattr(getattr(function, "args", None), "args", ())), "")
    for text, value in list(named.items()):
        for obj in value.made() if len(value.objs) == 1 and (text == first or others) else ():
            if obj.cls is not None and not (run.interpreter.is_module(obj) and (obj in run.run or _saved(run, obj))):
                named |= {f"{text}.{name}": held for name, held in run.of(obj).items() if name.isidentifier()}
    for text, value in named.items():
        if is_all(run, value, model) and "." in text:
            yield text
        for obj in value.made() if len(value.objs) == 1 else ():
            if obj.path in library.HOLDERS:
                yield from (f"{text}.{key}" for key, held in run.of(obj).items() if key.isidentifier() and is_all(run, held, model))
            if obj.path not in ("list", "dict") and (obj.path not in library.CONTAINERS or _saved(run, obj)):
                continue
            if is_all(run, run.held(obj, "[]"), model) and obj.path in ("list", "dict"):
                yield text
                continue
            for key, held in run.of(obj).items():
                if not key.startswith("[") and is_all(run, held, model):
                    yield f"{text}[{key}]" if key.lstrip("-").isdigit() and obj.path != "dict" else f"{text}[{key!r}]"


def _saved(run: Run, obj: New) -> bool:
    """Whether a state dict is taken of an object, or of one that holds it: its keys must stay."""
    holders = run.around((obj,))
    return any(c.method in ("state_dict", "load_state_dict") and c.receiver.objs & holders for c in run.trace.calls)


def is_all(run: Run, value: Value, model: TrainedModel) -> bool:
    """Whether a value is the model and nothing else."""
    objs = run.unwrap(value)
    return bool(objs & model.objs) and all(o in model.objs or isinstance(o, (Part, Lit, Method)) for o in objs)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, those of inner functions and classes left out."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def container_kind(facts: Facts, statement: ast.stmt, target: ast.expr) -> str:
    """The kind of container that a target is; empty where it is a model itself."""
    run, function = facts.before, facts.tree_of(statement).function(statement)
    values = [run.value(n) | stored(run, n) for n in ast.walk(function) if isinstance(n, (ast.Name, ast.Attribute)) and same(n, target)]
    return next((o.path for v in values for o in v.made() if o.path in ("list", "dict")), "")


def stored(run: Run, target: ast.AST) -> Value:
    """All that was stored into an attribute or subscript expression."""
    out = NOTHING
    for store in run.trace.stores:
        if store.node is target:
            out = out | store.value
    return out
