"""Where models are wrapped: after which statement a name is to hold the wrapped model, and which calls get the model inside."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice, pairwise

from ddpify.facts import library, pickled
from ddpify.facts.collect import Facts, TrainedModel, Wrap, first_order, is_read, made_instead, training_calls
from ddpify.facts.library import effects
from ddpify.facts.model import NOTHING, Call, Func, Lit, Method, New, Obj, Part, Store, Tup, Value, outermost
from ddpify.facts.one_branch import is_there
from ddpify.facts.runs import RUNS_TO_SHOW, Run, place_of, run, run_by
from ddpify.facts.tree import Tree, arguments, inside, own_nodes, own_statements, same, structure, walk
from ddpify.records import replace

Place = tuple[ast.stmt, ast.expr]  # the statement after which a name holds the wrapped model, and that name
Event = tuple[int, ast.AST, tuple[ast.AST, ...]]  # when it happens, the call or store, and the calls that it runs under


_FOR_ANY_OBJECT = {"isinstance", "type", "id", "hasattr", "setattr", "dict", "list", "tuple", "functools.partial", *library.DDPS}


def place_wraps(facts: Facts) -> None:
    """Find, for each trained model, the statements after which its names shall hold the wrapped model; fills `wraps` and `after`."""
    facts.wraps, facts.after, facts.unwrapped_arguments = {}, facts.before, frozenset()
    todo: dict[TrainedModel, Iterator[tuple[Place, ...]]] = {}
    for model in sorted(facts.models, key=lambda m: first_order(facts, m)):
        model.wraps, model.wrapped = (), _is_wrapped_in(model, facts.before)
        if not model.wrapped and model not in facts.needs_no_wrapper:
            todo[model] = _ways(facts, model)
    best = {model: next(ways, ()) for model, ways in todo.items()}
    together = {model: places for model, places in best.items() if places}
    if len(todo) < 2 or len(together) < len(todo) or not _wrap(facts, together):
        for model, places in together.items():
            any(_wrap(facts, {model: way}) for way in chain((places,), todo[model]))
    if facts.after is facts.before and any(library.DATAPARALLEL in c.func.paths() for c in facts.before.trace.calls):
        facts.after = run(facts.project, replace(facts.wrapping, wraps=facts.wraps))
    trained: set[ast.expr] = set()
    for _ in range(8):  # what a call is handed decides what the calls inside it and after it are handed
        found = {arg: call for arg, call in _passed(facts) if arg not in trained}
        inner = {arg for arg, call in found.items() if all(set(c.stack) & set(found.values()) for c in facts.after.calls(call))}
        handed = _first_to_give_back(facts, {arg: call for arg, call in found.items() if arg not in inner})
        if not handed:
            break
        if not _unwrapped(facts, handed):
            trained.update(arg for arg in found if arg in handed and not _unwrapped(facts, frozenset((arg,))))
    for value in _beside_inner(facts):
        _unwrapped(facts, frozenset((value,)))
    found_saved = frozenset(pickled.entries(facts.after, facts.entry))
    facts.pickled = found_saved if found_saved and _unwrapped(facts, found_saved) else frozenset()


def _ways(facts: Facts, model: TrainedModel) -> Iterator[tuple[Place, ...]]:
    """The places to try for a model, the best first: one for all that it may be, or else one for each."""
    most = 20 if facts.before.interpreter.spent < 10_000 else 3  # each trial runs the script once more
    for place in islice(_places(facts, model), most):
        yield (place,)
    if len(model.objs) > 1:
        parts = [TrainedModel(frozenset((obj,)), model.forwards) for obj in sorted(model.objs, key=place_of)]
        found = [next(_places(facts, part), None) for part in parts]
        if None not in found:
            yield tuple(dict.fromkeys(place for place in found if place is not None))


def _places(facts: Facts, model: TrainedModel) -> Iterator[Place]:
    """The places where a name holds a model, the likeliest first."""
    for statement, target in candidates(facts, model):
        if not _part_of_a_module(facts, target, statement):
            known: dict[Hashable, ast.expr] = facts.project.memo.setdefault(("wraps", statement), {})  # type: ignore[assignment]
            yield statement, known.setdefault(structure(target), target)


def _wrap(facts: Facts, places: Mapping[TrainedModel, tuple[Place, ...]]) -> bool:
    """Wrap models at some places, beside what is wrapped already, where a run shows that they train through wrappers then."""
    trial = dict(facts.wraps)
    for statement, target in chain.from_iterable(places.values()):
        trial[statement] = (*trial.get(statement, ()), target)
    tried = run(facts.project, replace(facts.wrapping, wraps=trial))
    if not all(_is_wrapped_in(model, tried) for model in places) or _is_wrapped_twice(tried):
        return False
    for model, way in places.items():
        model.wraps = tuple(Wrap(statement, target, container_kind(facts, statement, target)) for statement, target in way)
    facts.wraps, facts.after = trial, tried
    return True


def _is_wrapped_twice(run: Run) -> bool:
    """Whether an edit's wrapper holds another wrapper."""
    held = {o: value for (o, name), value in run.memory.items() if name == "module" and isinstance(o, New) and o.path == library.DDP}
    made = [value for wrapper, value in held.items() if not isinstance(wrapper.node, ast.Call)]
    return any(getattr(o, "path", "") in library.DDPS for value in made for o in value.objs)


def first_run(facts: Facts, models: Sequence[TrainedModel], objs: Set[Obj]) -> int:
    """When training first runs one of some objects of models: of several that one function trains, each has a time of its own."""
    run = facts.before
    calls = (c for m in models for n in m.forwards for c in run.calls(n) if run.unwrap(Value(run_by(c))) & objs)
    return min((c.order for c in calls), default=min((first_order(facts, m) for m in models), default=0))


def _unwrapped(facts: Facts, handed: frozenset[ast.expr]) -> bool:
    """Let these expressions give the models themselves, where none is trained out of there, as by a function that keeps it; or do not."""
    tried = run(facts.project, replace(facts.wrapping, unwraps=facts.unwrapped_arguments | handed))
    kept = all(_is_wrapped_in(model, tried) for model in facts.models if _is_wrapped_in(model, facts.after))
    if kept:
        facts.unwrapped_arguments, facts.after = facts.unwrapped_arguments | handed, tried
    return kept


def _part_of_a_module(facts: Facts, target: ast.expr, statement: ast.stmt) -> bool:
    """Whether a target is an attribute of a module, whose state dict would get other keys if it held a wrapper."""
    run, tree = facts.before, facts.tree_of(statement)
    if not isinstance(target, ast.Attribute):
        return False
    function = tree.function(statement)
    values = [run.value(n) for n in walk(function) if isinstance(n, (ast.Name, ast.Attribute, ast.arg)) and same(n, target.value)]
    return any(run.interpreter.is_module(o) for v in values for o in v.objs)


def _first_to_give_back(facts: Facts, handed: Mapping[ast.expr, ast.Call]) -> frozenset[ast.expr]:
    """Of some models that calls are handed, those of the first call that gives back a wrapper: what comes after it has the model inside
    from then on. All of them, if no call does."""
    run = facts.after
    giving = [call for call in handed.values() if any(facts.wrapped(v) is not False for v in library.with_entries([run.value(call)]))]
    orders = {call: run.calls(call)[0].order for call in giving}
    if not orders:
        return frozenset(handed)
    first = min(orders, key=orders.__getitem__)
    return frozenset(arg for arg, call in handed.items() if call is first)


_GIVES_ITSELF = frozenset(("eval", "train", "to", "cuda", "requires_grad_"))


def _passed(facts: Facts) -> Iterator[tuple[ast.expr, ast.Call]]:
    """The arguments that hand a wrapped model to a call that does not train, with that call: they are given the model itself."""
    run, training = facts.after, training_calls(facts)
    for node in facts.entry.nodes():
        if not isinstance(node, ast.Call) or node in training or node in facts.prefixed | facts.naming:
            continue
        if not run.calls(node) or _takes_wrappers(facts, node):
            continue
        for arg in arguments(node):
            value = run.value(arg)
            if not isinstance(_switched(arg), (ast.Name, ast.Attribute, ast.Subscript)) or not facts.wrapped(value):
                continue
            kept = (store for store in run.trace.stores if store.value.objs & value.objs and node in store.stack)
            if all(any(map(run.interpreter.is_module, store.receiver.objs)) for store in kept):  # else it may be trained from there
                yield arg, node


def _switched(node: ast.expr) -> ast.expr:
    """What an expression is, or the one that it calls a method of which gives back the model: `model.eval()`."""
    method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return method.value if method is not None and method.attr in _GIVES_ITSELF else node


def _beside_inner(facts: Facts) -> list[ast.expr]:
    """The models in the branches for one without a wrapper: the other branch takes the model inside, as in `inner = net.module`."""
    found = list[ast.expr]()
    for node in facts.entry.of(ast.If):
        block = facts.entry.block(node)
        before = block[block.index(node) - 1 : block.index(node)]
        for plain, other in ((node.body, node.orelse), (node.orelse or before, node.body)):
            inner = [s for s in other if isinstance(s, ast.Assign) and isinstance(s.value, ast.Attribute) and s.value.attr == "module"]
            found += [s.value for s in plain if isinstance(s, ast.Assign) and any(_beside(s, i) for i in inner)]
    return [value for value in found if facts.wrapped(facts.after.value(value))]


def _beside(plain: ast.Assign, inner: ast.Assign) -> bool:
    """Whether two statements give one name a model, and what is inside its wrapper."""
    targets = len(plain.targets) == len(inner.targets) and all(map(same, plain.targets, inner.targets))
    return targets and isinstance(inner.value, ast.Attribute) and same(plain.value, inner.value.value)


def _takes_wrappers(facts: Facts, call: ast.Call) -> bool:
    """Whether a call does with a wrapper what it does with a model: it is of what may be in one or not, asks what it is, or keeps it."""
    func = facts.after.value(call.func)
    if facts.wrapped(func) is None or func.paths() & _FOR_ANY_OBJECT:
        return True
    methods = [o for o in func.objs if isinstance(o, Method)]
    if any(m.name in library.MODULE_METHODS or getattr(m.of, "path", "") in library.COLLECTIONS | library.CONTAINERS for m in methods):
        return True  # what is kept may be trained from there
    return func.paths() == {"getattr"} and _named_module(call)


def _named_module(call: ast.Call) -> bool:
    """Whether a call is `getattr(model, "module", model)`."""
    return len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value == "module"


def _is_wrapped_in(model: TrainedModel, run: Run) -> bool:
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


def writes(facts: Facts, model: TrainedModel, before: int, loads: bool, around: set[ast.AST]) -> Iterator[Event]:
    """The events before `before` that create the model or may write to its parameters, the last first."""
    run = facts.before
    around_model = run.around(model.objs)
    makers = {outermost(o) for o in model.objs}
    events: list[Call | Store] = [*run.calls_of(library.INITIALIZE), *(s for obj in model.objs for s in run.storing.get(obj, ()))]
    events += (c for obj in around_model | makers for c in run.writing.get(obj, ()))
    early = {id(e): e for e in events if e.order < before and not any(loop.node in around for loop in e.loops)}
    after = facts.wrap_after if facts.wrap_after is not None and facts.wrap_after[0] < before else None
    for event in sorted(early.values(), key=lambda e: e.order, reverse=True):
        if after is not None and after[0] >= event.order:
            yield after
            after = None
        if isinstance(event, Call):
            makes = any(o.node is event.node for o in event.result.objs & makers if isinstance(o, New))
            written = makes or _writes_to(facts, model, event, around_model, loads)
        else:
            settings = _are_settings(event.receiver)
            into = bool(run.unwrap(event.receiver) & model.objs) or (not settings and _of(facts, model, event.receiver))
            written = into and not (_has_no_weights(event.value) and getattr(event.node, "attr", "") != "requires_grad")
        if written:
            yield event.order, event.node, event.stack
    if after is not None:
        yield after


def _writes_to(facts: Facts, model: TrainedModel, call: Call, around_model: set[Obj], loads: bool) -> bool:
    """Whether a call may write to the model's parameters; `loads`: loading them counts, but into a DataParallel."""
    receiver = call.receiver
    if call.method in library.MODULE_WRITERS and (facts.before.unwrap(receiver) & around_model or _of(facts, model, receiver)):
        plain = library.DATAPARALLEL not in receiver.kinds() or _loads_a_bare_model(facts, call)
        return call.method != "load_state_dict" or (loads and plain)
    return _touches(facts, model, call)


def _loads_a_bare_model(facts: Facts, call: Call) -> bool:
    """Whether a call, of a function for several models, also loads one that is never wrapped: their keys are best alike there."""
    wrapped = {o for m in facts.models if m not in facts.needs_no_wrapper for o in m.objs}
    return any(facts.before.unwrap(c.receiver) - wrapped for c in facts.before.calls(call.node))


def _of(facts: Facts, model: TrainedModel, value: Value) -> bool:
    """Whether a value is made of the model's parameters or submodules."""
    made = value.of_kind("parameters")
    return any(r in model.objs for o in made | value.objs for r in facts.before.roots(o) if r is not o or made)


def _are_settings(value: Value) -> bool:
    """Whether a value is settings alone, which a model may keep, and which no parameter is among."""
    return bool(value.objs) and all(getattr(o, "path", "") == "argparse.Namespace" for o in value.objs)


def _has_no_weights(value: Value) -> bool:
    """Whether a value is a number, a text, a time, a file or a list, by which no parameter of a module comes or goes.

    None is no such value: it takes a layer's place.
    """
    known = (_is_number(o) or (isinstance(o, New) and o.cls is None and o.path in _NO_WEIGHTS) for o in value.objs)
    return all(known) and (bool(value.objs) or bool(value.of_kind("time")))


def _is_number(obj: Obj) -> bool:
    return isinstance(obj, Tup) or (isinstance(obj, Lit) and obj.value is not None)


_NO_WEIGHTS = ("open", "list", "dict", "set", "str", "collections.deque")
_ONLY_READ = ("print", "torch.save", "torch.optim", "len", "isinstance", "sum", "copy.", *effects.PASSIVE)
_UTILITIES = tuple(f"torch.nn.utils.{name}" for name in ("parametriz", "weight_norm", "spectral_norm", "prune."))


def _touches(facts: Facts, model: TrainedModel, call: Call) -> bool:
    """Whether a call writes to parameters it was given: `nn.init`, in-place methods, a library function that takes the model."""
    paths = call.func.paths()
    if library.INITIALIZE in paths:
        return True
    if any(p.startswith(("torch.nn.init.", *_UTILITIES)) for p in paths):
        return any(_of(facts, model, a) for a in call.args)
    if call.in_place:
        return _of(facts, model, call.receiver)
    if (paths or call.method in RUNS_TO_SHOW) and not any(isinstance(o, Func) for o in call.func.objs):
        if any(p.startswith(_ONLY_READ) for p in paths):
            return False
        return any(facts.before.unwrap(a) & model.objs for a in (*call.args, *call.keywords.values()))
    return False


def candidates(facts: Facts, model: TrainedModel, train: Call | None = None) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Statements after which the model could be wrapped, and the names to wrap, the likeliest first; `train`: before that call."""
    run = facts.before
    forwards = [c for n in model.forwards for c in run.calls(n) if not c.no_grad and run.unwrap(Value(run_by(c))) & model.objs]
    first = min(forwards, key=lambda c: c.order, default=train)
    if first is None:
        return
    anew = made_in(run, model)
    around = {loop.node for loop in first.loops} - anew
    seen: set[tuple[ast.stmt, Hashable]] = set()
    places: list[tuple[Tree, ast.stmt]] = []
    for loads in (True, False):
        for event in _last_write(facts, model, first, loads, around):
            for tree, statement, there in statements_between(facts, event, first):
                if there is not None and (there in inside(statement) or _repeats(tree, statement, there, anew)):
                    continue  # it trains itself, or is run again
                places.append((tree, statement))
                around_event = {s for n in (*event[2], event[1]) if n in tree.parent for s in tree.path(n)}
                for target in targets(facts, tree, statement, model):
                    place = _where_given(tree, statement, target, around_event)
                    if place is not None and (key := (place, structure(target))) not in seen:
                        seen.add(key)
                        yield place, target
                    if len(seen) > (8 if run.interpreter.spent < 10_000 else 2):
                        return
    yield from _taken_up(facts, model, first, _last_write(facts, model, first, True, around))
    yield from _out_of_files(facts, model, first, anew)
    yield from _at_entries(facts, model, first)
    for tree, statement in places:  # what another object holds it as
        for text in _names_of_model(facts, tree, statement, model, True):
            target = ast.parse(text, mode="eval").body
            if is_there(tree, target, statement):
                yield statement, target


def _last_write(facts: Facts, model: TrainedModel, train: Call, loads: bool, around: set[ast.AST]) -> list[Event]:
    """The last event before the training that may write to the model's parameters, if there is one."""
    return list(islice((e for e in writes(facts, model, train.order, loads, around) if not _is_beside(facts, e, train)), 1))


def _is_beside(facts: Facts, event: Event, train: Call) -> bool:
    """Whether an event lies in another branch of an `if` than the training, so that only one of them runs."""
    pairs = zip((*event[2], event[1]), (*train.stack, train.node), strict=False)
    apart = next((pair for pair in pairs if pair[0] is not pair[1]), None)
    tree = facts.tree_of(apart[0]) if apart and not isinstance(apart[0], ast.Module) else None
    if apart is None or tree is None or not all(node in tree.parent for node in apart):
        return False
    ways = tree.path(apart[0]), tree.path(apart[1])
    shared = [up for up in ways[0] if isinstance(up, ast.If) and up in ways[1]]
    return any(any(s in up.body for s in ways[i]) and any(s in up.orelse for s in ways[1 - i]) for up in shared for i in (0, 1))


def _taken_up(facts: Facts, model: TrainedModel, train: Call, last: list[Event]) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The attributes that a model is stored into which is made in a call's arguments."""
    run = facts.before
    for store in run.trace.stores:
        if last and store.node is not last[0][1] and store.order < last[0][0]:
            continue
        if isinstance(store.node, ast.Attribute) and store.order < train.order and run.unwrap(store.value) & model.objs:
            tree = facts.tree_of(store.node)
            if store.node in tree.parent and isinstance(tree.statement(store.node), ast.Assign):
                yield tree.statement(store.node), store.node


def _out_of_files(facts: Facts, model: TrainedModel, train: Call, anew: set[ast.AST]) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The assignments that take a model out of what a file holds, before the training."""
    if not any(isinstance(o, Part) and is_read(facts.before, o) for o in model.objs):
        return
    for there in (*train.stack, train.node):
        tree = facts.tree_of(there)
        for statement in reversed(own_statements(tree.function(there))):
            if tree.after(there, statement) and not _repeats(tree, statement, there, anew):
                yield from ((statement, t) for t in _assigned(statement) if is_all(facts.before, facts.before.value(t), model))


def _at_entries(facts: Facts, model: TrainedModel, train: Call) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The first statements of the functions that run the training, and their parameters that a model is which a call's argument makes."""
    for call, there in pairwise((*train.stack, train.node)):
        tree = facts.tree_of(there)
        function = tree.function(there)
        made_there = any(isinstance(o, New) and o.node in inside(call) for o in model.objs)
        if made_there and isinstance(function, ast.FunctionDef) and there not in inside(function.body[0]):
            names = {a.arg for a in function.args.args}
            parameters = (t for t in targets(facts, tree, function.body[0], model) if isinstance(t, ast.Name) and t.id in names)
            yield from ((function.body[0], t) for t in parameters)


def statements_between(facts: Facts, event: Event, train: Call) -> Iterator[tuple[Tree, ast.stmt, ast.AST | None]]:
    """The statements after an event and before the training: in the innermost function that runs both, then in those that the event is in.

    With each, the node there that leads to the training; None in the functions that run the event alone.
    """
    _, node, stack = event
    common = 0
    while common < len(stack) and common < len(train.stack) and stack[common] is train.stack[common]:
        common += 1
    for depth in [common, *range(len(stack), common, -1)]:
        at = stack[depth] if depth < len(stack) else node
        there = train.stack[depth] if depth < len(train.stack) else train.node
        if not isinstance(at, ast.Module):
            tree, leads = facts.tree_of(at), there if depth == common else None
            yield tree, _dominating(tree, at, leads), leads


def _dominating(tree: Tree, at: ast.AST, there: ast.AST | None) -> ast.stmt:
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


def _where_given(tree: Tree, statement: ast.stmt, target: ast.expr, last: Set[ast.stmt]) -> ast.stmt | None:
    """A statement, or the last in its branch that gives the target a model or is of `last`, where no other branch gives it any.

    None where a branch before it does alone: there may be no model.
    """
    if is_there(tree, target, statement):
        return statement
    given = {n for n in walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store) and same(n, target)}
    while isinstance(statement, ast.If):
        branches = [[s for s in block if s in last or given & inside(s)] for block in (statement.body, statement.orelse)]
        giving = [branch for branch in branches if any(given & inside(s) for s in branch)]
        if len(giving) != 1:
            break
        statement = giving[0][-1]
    return statement if given else None


def made_in(run: Run, model: TrainedModel) -> set[ast.AST]:
    """The loops in which the model is made anew, such as one over folds; what is made after the last training is not trained."""
    last = max((c.last for n in model.forwards for c in run.calls(n)), default=0)
    calls = [c for o in model.objs if isinstance(o, New) for c in run.calls(o.node) if c.order < last and c.stack == o.stack]
    return {loop.node for c in calls for loop in c.loops} if all(c.loops for c in calls) else set()


def _repeats(tree: Tree, statement: ast.stmt, there: ast.AST, anew: set[ast.AST]) -> bool:
    """Whether a loop holds both the statement and the training, and not the making: the model would be wrapped again each time."""
    if there not in tree.parent:
        return False
    inner = tree.path(there)
    return any(isinstance(s, (ast.For, ast.While)) and s in inner and s not in anew for s in tree.path(statement))


def targets(facts: Facts, tree: Tree, statement: ast.stmt, model: TrainedModel, others: bool = False) -> Iterator[ast.expr]:
    """The names and attributes that hold the model once `statement` has run, the latest assigned first; `others`: of any object."""
    run, function = facts.before, tree.function(statement)
    found: list[tuple[int, ast.expr]] = []
    for node in walk(function):
        assigned = _assigned(node)
        if assigned and tree.function(node) is function and not tree.after(node, statement):
            values = [run.value(t) if isinstance(t, ast.Name) else stored(run, t) for t in assigned]
            at = getattr(node, "lineno", 0)
            found += [(at, t) for t, value in zip(assigned, values, strict=True) if is_all(run, value, model)]
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        globals_ = {n for s in walk(function) if isinstance(s, ast.Global) for n in s.names}
        given = [a for a in function.args.args if _is_no_tensor(run.value(a)) and run.unwrap(run.value(a)) & model.objs]
        given = [a for a in given if a.arg not in globals_]
        found += [(0, ast.Name(arg.arg, ast.Load())) for arg in given]
    latest_first = [ast.unparse(target) for _, target in sorted(found, key=lambda f: -f[0])]
    for text in dict.fromkeys((*latest_first, *_names_of_model(facts, tree, statement, model, others))):
        yield ast.parse(text, mode="eval").body


def _assigned(node: ast.AST) -> list[ast.Name | ast.Attribute]:
    """The names and attributes that a statement assigns to, those in a tuple or list one by one."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [e for t in node.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    return [t for t in targets if isinstance(t, (ast.Name, ast.Attribute))]


def _names_of_model(facts: Facts, tree: Tree, statement: ast.stmt, model: TrainedModel, others: bool) -> Iterator[str]:
    """What lists, dicts and the method's own object (or others) hold the model as once `statement` has run: as a whole or by a key."""
    run, function = facts.before, tree.function(statement)
    named = list(_named_by(run, tree, statement).items())
    own = next((a.arg for a in getattr(getattr(function, "args", None), "args", ())), "")
    for text, value in list(named):
        obj = _only_instance(value) if text == own or others else None
        if obj is not None and obj.cls is not None and not (run.interpreter.is_module(obj) and (obj in run.run or _saved(run, obj))):
            named += [(f"{text}.{name}", held) for name, held in run.of(obj).items() if name.isidentifier()]  # in the end
    for text, value in named:
        if "." in text and is_all(run, value, model):
            yield text
        if (obj := _only_instance(value)) is not None:
            yield from _held_in(run, text, obj, model)


def _named_by(run: Run, tree: Tree, statement: ast.stmt) -> dict[str, Value]:
    """What the names of a function, and attributes of what they name, hold once a statement of it has run."""
    function, named = tree.function(statement), dict[str, Value]()
    bound = {structure(n) for n in own_nodes(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        named |= {arg.arg: run.value(arg) for arg in (*function.args.args, *function.args.kwonlyargs)}
    for node in own_nodes(function):
        kept = isinstance(node, ast.Attribute) and structure(node) not in bound
        if tree.placed(node) and tree.after(node, statement) and not kept:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            named[node.id] = named.get(node.id, NOTHING) | run.value(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            held = run.value(node) if isinstance(node.ctx, ast.Load) else stored(run, node)
            named[ast.unparse(node)] = named.get(ast.unparse(node), NOTHING) | held
    return named


def _only_instance(value: Value) -> New | None:
    """The one object that a value is."""
    return next(iter(value.instances()), None) if len(value.objs) == 1 else None


def _held_in(run: Run, text: str, obj: New, model: TrainedModel) -> Iterator[str]:
    """What `text`, a list, dict or other container, holds the model as: all of a list that holds nothing else is its own name."""
    keys = [key for key, held in run.of(obj).items() if not key.startswith("[") and is_all(run, held, model)]
    if obj.path in library.HOLDERS:
        yield from (f"{text}.{key}" for key in keys if key.isidentifier())
    plain = obj.path in ("list", "dict")
    if plain and is_all(run, run.attribute(obj, "[]"), model):
        yield text
    elif plain or (obj.path in library.CONTAINERS and not _saved(run, obj)):
        for key in keys:
            yield f"{text}[{key}]" if key.lstrip("-").isdigit() and obj.path != "dict" else f"{text}[{key!r}]"


def _saved(run: Run, obj: New) -> bool:
    """Whether a state dict is taken of an object, or of one that holds it: its keys must stay."""
    holders = run.around((obj,))
    return any(c.method in ("state_dict", "load_state_dict") and c.receiver.objs & holders for c in run.trace.calls)


def is_all(run: Run, value: Value, model: TrainedModel) -> bool:
    """Whether a value is the model and nothing else."""
    objs = run.unwrap(value)
    others = [o for o in objs - model.objs if not isinstance(o, (Part, Lit, Method))]
    return bool(objs & model.objs) and _is_no_tensor(value) and all(made_instead(run, o, model) for o in others)


def _is_no_tensor(value: Value) -> bool:
    """Whether a value is no batch, nor anything computed from one: in a function that moves models and batches, it may be either."""
    return value.scale is None and not value.of_kind("batch")


def container_kind(facts: Facts, statement: ast.stmt, target: ast.expr) -> str:
    """The kind of container that a target is; empty where it is a model itself."""
    run, function = facts.before, facts.tree_of(statement).function(statement)
    values = [run.value(n) | stored(run, n) for n in walk(function) if isinstance(n, (ast.Name, ast.Attribute)) and same(n, target)]
    return next((o.path for v in values for o in v.instances() if o.path in ("list", "dict")), "")


def stored(run: Run, target: ast.AST) -> Value:
    """All that was stored into an attribute or subscript expression."""
    out = NOTHING
    for store in run.trace.stores:
        if store.node is target:
            out = out | store.value
    return out
