"""One run of the interpreter, and questions about its values."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from functools import cached_property
from typing import TypeVar

from ddpify.facts import library
from ddpify.facts.assumed import AS_WRITTEN, AssumedEdits
from ddpify.facts.definitions import Definitions
from ddpify.facts.interpret.machine import Machine
from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import NOTHING, Call, Class, Func, Lit, New, Obj, Part, Store, Tup, Value, join, outermost
from ddpify.facts.scopes import Scopes
from ddpify.facts.tree import walk
from ddpify.project import Project
from ddpify.records import dataclass, field

_NESTED = 4  # so deep lists are looked into for parameters
_K = TypeVar("_K")
_V = TypeVar("_V")


def _grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Values by their keys, in their order."""
    out: dict[_K, list[_V]] = {}
    for key, value in pairs:
        out.setdefault(key, []).append(value)
    return out


@dataclass(eq=False)
class Run:
    """One run of the interpreter, and questions about its values."""

    interpreter: Interpreter
    known: dict[object, object] = field(default_factory=dict, init=False)  # what was found out about this run already

    def __post_init__(self) -> None:
        self.trace = self.interpreter.run()
        self.memory = dict(self.interpreter.memory)
        self._by_node: dict[ast.AST, list[Call]] = _grouped((call.node, call) for call in self.trace.calls)
        self._held: dict[object, dict[str, Value]] = {}
        for (holder, name), value in self.memory.items():
            self._held.setdefault(holder, {})[name] = value
        self.owner = self._owners()
        self._known_without_parameters: dict[Obj, bool] = {}

    @cached_property
    def definitions(self) -> Definitions:
        """Which of its writes reach which of its reads."""
        return Definitions(self.interpreter.record, self.scopes, self.memory)

    @cached_property
    def owned(self) -> dict[New, frozenset[Obj]]:
        """The modules and the single parameters that optimizers were given, once somebody has asked for them."""
        return {}

    @cached_property
    def scopes(self) -> Scopes:
        """To what the names of the project belong."""
        project = self.interpreter.project
        key = ("scopes", project.entry.tree)
        if key not in project.memo:
            project.memo[key] = Scopes([project.entry.standing, *(f.standing for f in project.analysed.values())])
        return project.memo[key]  # type: ignore[return-value]

    def calls(self, node: ast.AST) -> list[Call]:
        """The evaluations of a call expression, one a stack of calls."""
        return self._by_node.get(node, [])

    @cached_property
    def _by_path(self) -> dict[str, list[Call]]:
        return _grouped((path, call) for call in self.trace.calls for path in call.func.paths())

    def calls_of(self, path: str) -> list[Call]:
        """The calls of a function of a library, in their order."""
        return self._by_path.get(path, [])

    @cached_property
    def _by_method(self) -> dict[str, list[Call]]:
        return _grouped((call.method, call) for call in self.trace.calls)

    def calls_named(self, method: str) -> list[Call]:
        """The calls of what has this name, in their order."""
        return self._by_method.get(method, [])

    @cached_property
    def _by_function(self) -> dict[ast.AST, list[Call]]:
        return _grouped((function, call) for call in self.trace.calls for function in call.func.functions())

    def calls_to(self, function: ast.AST | None) -> list[Call]:
        """The calls of a function of the project, in their order."""
        return self._by_function.get(function, []) if function is not None else []

    @cached_property
    def calls_on(self) -> dict[Obj, list[Call]]:
        """The calls of methods of each object, in their order."""
        return _grouped((obj, call) for call in self.trace.calls for obj in call.receiver.objs)

    @cached_property
    def writing(self) -> dict[Obj, list[Call]]:
        """The calls that may make some model, or write to its parameters, by the objects that they may be about."""
        calls = (c for c in self.trace.calls if may_write(c))
        return _grouped((obj, c) for c in calls for obj in self.reached((c.result, c.receiver, *c.args, *c.keywords.values())))

    @cached_property
    def storing(self) -> dict[Obj, list[Store]]:
        """The stores, by the objects that they may be about."""
        return _grouped((obj, s) for s in self.trace.stores for obj in self.reached((s.receiver,)))

    @cached_property
    def stores_as(self) -> dict[str, list[Store]]:
        """The stores into attributes, by the name of the attribute."""
        return _grouped((store.node.attr, store) for store in self.trace.stores if isinstance(store.node, ast.Attribute))

    @cached_property
    def among_others(self) -> frozenset[Obj]:
        """The objects of which an attribute of a module may be one, or another."""
        held = (value for (owner, _), value in self.memory.items() if self.interpreter.is_module(owner))
        return frozenset(o for value in held if len(value.objs) > 1 for o in value.objs)

    def reached(self, values: Iterable[Value]) -> frozenset[Obj]:
        """All objects that values are, hold in a wrapper, are parts of or are made of the parameters of."""
        out = set[Obj]()
        for value in values:
            for obj in {*self.unwrap(value), *value.objs, *value.of_kind("parameters")}:
                if obj not in out:
                    out |= set(self.roots(obj))
        return frozenset(out)

    def value(self, node: ast.AST) -> Value:
        """All that an expression was seen to be."""
        return self.trace.values.get(node, NOTHING)

    def at_end(self, node: ast.AST) -> Value:
        """What an expression would be once all has run, where nothing runs it: a name of its module, or what its class's objects hold."""
        if node in self.trace.values or not isinstance(node, (ast.Name, ast.Attribute)):
            return self.value(node)
        if isinstance(node, ast.Name):
            owner = self.scopes.owner(node)
            return self.of(owner).get(node.id, NOTHING) if isinstance(owner, str) else NOTHING
        if not isinstance(node.value, ast.Name) or not (cls := self._class_of_self(node.value)):
            return NOTHING
        return join([value for (owner, name), value in self.memory.items() if name == node.attr and _is_of(owner, cls)])

    def _class_of_self(self, name: ast.Name) -> ast.ClassDef | None:
        """The class of whose methods a name is the first parameter."""
        method, tree = self.scopes.owner(name), self.scopes.tree(name)
        if tree is None or not isinstance(method, ast.FunctionDef) or [a.arg for a in method.args.args[:1]] != [name.id]:
            return None
        cls = tree.parent[method]
        return cls if isinstance(cls, ast.ClassDef) else None

    def attribute(self, obj: Obj, name: str) -> Value:
        """What an object holds as `name` at the end."""
        return self.memory.get((obj, name), NOTHING)

    def methods(self, obj: Obj, name: str) -> list[Func]:
        """The project's functions that are an object's method of this name."""
        found = self.interpreter.find(obj.cls, name) if isinstance(obj, New) and obj.cls is not None else None
        return [o for o in found.objs if isinstance(o, Func)] if found is not None else []

    def parts(self, obj: Obj) -> list[Obj]:
        """What a module, or a container, holds."""
        return [inner for value in self.of(obj).values() for inner in value.objs]

    def of(self, obj: object) -> Mapping[str, Value]:
        """All that an object, or a module, holds at the end, by the names it has there."""
        return self._held.get(obj, {})

    def _owners(self) -> dict[Obj, Obj]:
        """For each module inside a module: the one that holds it; for others, the list that does."""
        out: dict[Obj, Obj] = {}
        for kinds in (library.CONTAINERS, ("list", "dict")):
            for (owner, _), value in self.memory.items():
                own = isinstance(owner, New) and (
                    owner.path in kinds or (kinds is library.CONTAINERS and self.interpreter.is_module(owner))
                )
                for obj in value.objs if own else ():
                    if isinstance(obj, New) and obj is not owner:
                        out.setdefault(obj, owner)
        for obj, holder in self._put_into_library_models():
            out.setdefault(obj, holder)
        return out

    def _put_into_library_models(self) -> Iterator[tuple[New, New | Part]]:
        """The modules that are stored into a library's model, or into a part of one, and what they are stored into."""
        for store in self.trace.stores:
            layers = [o for o in store.value.instances() if o.path.startswith("torch.nn.") or self.interpreter.is_module(o)]
            for holder in store.receiver.objs if layers else ():
                model = outermost(holder)
                if isinstance(holder, (New, Part)) and isinstance(model, New) and model.cls is None and model in self.run:
                    yield from ((layer, holder) for layer in layers if layer not in (holder, model))

    @cached_property
    def _holders(self) -> dict[Obj, set[Obj]]:
        """For each module in modules, or in lists of modules: all that hold it."""
        out: dict[Obj, set[Obj]] = {}
        for (owner, _), value in self.memory.items():
            if isinstance(owner, New) and (self.interpreter.is_module(owner) or owner.path in library.CONTAINERS):
                for obj in self.unwrap(value):
                    if isinstance(obj, New) and obj is not owner:
                        out.setdefault(obj, set()).add(owner)
        for obj, holder in self._put_into_library_models():
            out.setdefault(obj, set()).add(holder)
        return out

    def around(self, objs: Iterable[Obj]) -> set[Obj]:
        """Objects, and all modules that hold them."""
        out, todo = set[Obj](), list(objs)
        while todo:
            obj = todo.pop()
            if obj not in out:
                out.add(obj)
                todo += self._holders.get(obj, ())
        return out

    def roots(self, obj: Obj) -> Iterator[Obj]:
        """An object and, outwards, what it is a part of."""
        seen: set[Obj] = set()
        current: Obj | None = obj
        while current is not None and current not in seen:
            seen.add(current)
            yield current
            current = current.of if isinstance(current, Part) else self.owner.get(current)

    def part_of(self, objs: Iterable[Obj], owners: Set[Obj]) -> bool:
        """Whether one of some objects is one of `owners`, or a part of one."""
        return any(not owners.isdisjoint(self.roots(o)) for o in objs)

    def registered(self, obj: Obj) -> Iterator[Obj]:
        """An object and, outwards, the modules whose parameters its own are: a list that a module keeps registers nothing."""
        return itertools.takewhile(lambda o: not (isinstance(o, New) and o.path in ("list", "dict")), self.roots(obj))

    def parameters(self, value: Value) -> frozenset[Obj]:
        """The modules whose parameters a value holds: through lists, groups and generators."""
        values, objs = self._nested(value)
        out = {o for o in objs if self._is_weight(o)}.union(*(v.of_kind("parameters") for v in values))
        inner = {o for p in out if isinstance(p, (New, Part)) for o in self._listed(p)}
        return frozenset(u for o in inner for u in self.unwrap(Value(frozenset((o,)))) if not isinstance(u, Lit))  # None has none

    def held(self, value: Value) -> list[Value]:
        """A value and those in it, through lists, groups and generators."""
        return self._nested(value)[0]

    def _nested(self, value: Value) -> tuple[list[Value], set[Obj]]:
        """A value and those in it, through lists, groups and generators; and the objects that were looked into, each once."""
        values, level, seen = list[Value](), [value], set[Obj]()
        for _ in range(_NESTED):
            values += level
            objs = {o for held in level for o in held.objs} - seen
            seen |= objs
            into = (o for o in objs if not self._is_weight(o))
            level = [v for o in into for v in self._entries(o) or [v for name, v in self.of(o).items() if name == "iterable"]]
        return values + level, seen

    def _is_weight(self, obj: Obj) -> bool:
        """Whether an object is a part of what is run: `model.weight`."""
        return isinstance(obj, Part) and self.part_of((obj,), self.run)

    def _entries(self, obj: Obj) -> list[Value]:
        """What a tuple, list, dict or generator holds, or the groups of an optimizer."""
        if isinstance(obj, Tup):
            return list(obj.items)
        if isinstance(obj, New) and obj.path in ("list", "dict", "generator", "torch.nn.ParameterList"):
            return list(self.of(obj).values())
        groups = isinstance(obj, Part) and obj.name == "param_groups" and self.is_optimizer(obj.of)
        return [self.attribute(obj.of, "params")] if groups else []  # type: ignore[union-attr]

    def _listed(self, obj: New | Part, depth: int = 0) -> Iterator[New | Part]:
        """A module; of a list or dict of modules, which is never run itself, each of them."""
        if isinstance(obj, New) and obj.path in library.CONTAINERS and obj not in self.run and depth < 4:
            for inner in self.attribute(obj, "[]").objs:
                if isinstance(inner, (New, Part)):
                    yield from self._listed(inner, depth + 1)
        else:
            yield obj

    @cached_property
    def run(self) -> frozenset[Obj]:
        """What was called: modules by their forward."""
        return frozenset(o for c in self.trace.calls for o in self.unwrap(Value(run_by(c))) if isinstance(o, (New, Part)))

    def single_parameters(self, value: Value) -> frozenset[New]:
        """The single parameters that a value holds, as they were made: through lists and groups."""
        return frozenset(o for held in self._nested(value)[0] for o in held.instances() if o.path == "torch.nn.Parameter")

    def copied(self, value: Value) -> Value:
        """What a value may be a copy of, or the value: `copy.deepcopy(model)`."""
        out, todo = set[Obj](), [*value.objs]
        while todo:
            obj = todo.pop()
            if isinstance(obj, New) and obj.path in library.COPIES:
                todo += self.attribute(obj, library.ORIGINAL).objs
            else:
                out.add(obj)
        return Value(frozenset(out), value.origins)

    def unwrap(self, value: Value) -> frozenset[Obj]:
        """The objects of a value, wrappers replaced by what they hold."""
        out: set[Obj] = set()
        todo, seen = list(value.objs), set()
        while todo:
            obj = todo.pop()
            if obj in seen:
                continue
            seen.add(obj)
            if isinstance(obj, New) and obj.path in library.WRAPPERS:
                todo += self.attribute(obj, "module").objs
            else:
                out.add(obj)
        return frozenset(out)

    def has_no_parameters(self, obj: Obj, depth: int = 0) -> bool:
        """Whether a module surely has no parameters, as most losses have none."""
        if not isinstance(obj, New) or depth > 6:
            return False
        if obj not in self._known_without_parameters:
            self._known_without_parameters[obj] = self._finds_no_parameters(obj, depth)
        return self._known_without_parameters[obj]

    def _finds_no_parameters(self, obj: New, depth: int) -> bool:
        held = self.of(obj)
        if obj.cls is None:
            holds = obj.path in library.CONTAINERS or obj.path in library.COLLECTIONS
            known = library.bare(obj.path) and all(value.objs for name, value in held.items() if name.isdigit())
            return known and all(self.has_no_parameters(o, depth + 1) for o in self.attribute(obj, "[]").objs if holds and o is not obj)
        if not self.interpreter.is_module(obj):
            return True
        bases = self.interpreter.library_bases(obj.cls)
        if self._registers_parameters(obj.cls) or not all(b.startswith("torch.nn.") and library.bare(b) for b in bases):
            return False
        return all(self.has_no_parameters(o, depth + 1) for o in self.parts(obj) if isinstance(o, (New, Part)) and o is not obj)

    def _registers_parameters(self, cls: Class) -> bool:
        """Whether a class makes parameters of itself."""
        key, memo = ("makes parameters", cls.node), self.interpreter.project.memo
        if key not in memo:
            names = (n.attr for n in walk(cls.node) if isinstance(n, ast.Attribute))
            memo[key] = any(name.endswith(("Parameter", "register_parameter")) for name in names)
        return bool(memo[key])

    def is_optimizer(self, obj: object) -> bool:
        """Whether an object is an optimizer."""
        return library.is_optimizer(self.interpreter, obj)

    def steps(self, optimizers: Collection[New]) -> list[Call]:
        """The calls that step one of some optimizers, by itself or by way of a scaler."""
        calls = (c for c in self.trace.calls if c.method in ("step", "minimize"))
        return [c for c in calls if any(o in optimizers for v in (c.receiver, *c.args) for o in v.objs)]

    def is_loader(self, obj: object) -> bool:
        """Whether an object is a DataLoader."""
        return self.interpreter.is_a(obj, *library.LOADERS)

    def keeps_order(self, loader: New) -> bool:
        """Whether a loader does not shuffle, so that its epoch says nothing."""
        given = self.attribute(loader, "sampler").instances() | self.attribute(loader, "batch_sampler").instances()
        if given:
            return all(o.path == library.DISTRIBUTED_SAMPLER and _is_false(self.memory.get((o, "shuffle"))) for o in given)
        seen = isinstance(loader.node, ast.Call) and all(k.arg for k in loader.node.keywords)
        return seen and ((loader, "shuffle") not in self.memory or _is_false(self.memory[loader, "shuffle"]))

    def feeds(self, value: Value) -> bool:
        """Whether iterating over a value draws from a loader."""
        return any(self.is_loader(obj) for over in self.iterated(value) for obj in over.objs)

    def iterated(self, value: Value, depth: int = 0) -> Iterator[Value]:
        """A value, and what `enumerate`, `zip`, `tqdm` and their like take their elements from when one iterates over it."""
        yield value
        for obj in value.objs if depth < 5 else ():
            if isinstance(obj, New) and not self.is_loader(obj) and obj.path not in library.COLLECTIONS:
                for name in ("iterable", "0", "1", "2"):
                    yield from self.iterated(self.attribute(obj, name), depth + 1)


def run(project: Project, assumed: AssumedEdits = AS_WRITTEN) -> Run:
    """Run a project; what was run under the same assumptions already is not run again."""
    done: dict[object, Run] = project.memo.setdefault(("runs", project.entry.tree), {})  # type: ignore[assignment]
    key = assumed.key()
    if key not in done:
        done[key] = Run(Machine(project, assumed))
    return done[key]


Place = tuple[int, int, str, tuple[tuple[int, int], ...]]


def place_of(obj: Obj) -> Place:
    """Where an object is made, and under which calls: an order that is the same in every run."""
    node, stack = getattr(obj, "node", None), getattr(obj, "stack", ())
    calls = tuple((getattr(n, "lineno", 0), getattr(n, "col_offset", 0)) for n in stack)
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0), str(getattr(obj, "path", getattr(obj, "name", ""))), calls


def _is_false(value: Value | None) -> bool:
    return value is not None and bool(value.objs) and all(isinstance(o, Lit) and not o.value for o in value.objs)


def _is_of(obj: object, node: ast.ClassDef) -> bool:
    """Whether an object is of a class of the project, or of one derived from it."""
    todo = [obj.cls] if isinstance(obj, New) and obj.cls is not None else []
    while todo:
        cls = todo.pop()
        if cls.node is node:
            return True
        todo += [b for base in cls.bases for b in base.objs if isinstance(b, Class)]
    return False


def run_by(call: Call) -> frozenset[Obj]:
    """What a call runs; of `model.forward(x)`, the model."""
    forward = isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "forward"
    return call.receiver.objs if forward and call.receiver.objs else call.func.objs


RUNS_TO_SHOW = frozenset(("add_graph",))  # methods that run a model to show it, and so write to its batch norm's statistics


def may_write(call: Call) -> bool:
    """Whether a call makes an object, or is one of those that `_touches` looks at, whatever the model is."""
    return (
        any(isinstance(o, (New, Part)) for o in call.result.objs)
        or call.method in RUNS_TO_SHOW
        or call.method in library.MODULE_WRITERS
        or call.in_place
        or bool(call.func.paths())
    )
