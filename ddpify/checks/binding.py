"""Which names are bound where they are used: on every path before the use, on some path, or on none.

A name is resolved as Python does it: to the scope that binds it, class bodies left out but for their own code, else to the module,
else to the builtins. Inside the scope that is running, the order of statements counts; a function runs when it is called, so what it
takes from the scopes around it must be bound by then. Besides names, marks can be followed: a mark is set by the calls and statements
that are given for it, such as those that join the process group, and holds where every path has passed one of them.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple

from ddpify.facts.tree import last_name, scope_nodes, walk
from ddpify.records import dataclass, field

BUILTINS = frozenset(dir(builtins)) | frozenset(("__file__", "__path__", "__builtins__", "__annotations__", "__class__", "WindowsError"))
_IN_CLASS = frozenset(("__module__", "__qualname__"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDING = (
    *(*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS, ast.NamedExpr, ast.alias, ast.ExceptHandler),
    *(ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal),
)
_EXITS = frozenset(("exit", "quit", "_exit", "abort"))
_CALLERS = frozenset(("map", "filter", "sorted", "min", "max", "iter", "exec", "eval", "__import__"))  # builtins that may call an object
_CONSTRUCTING = ("torch.nn.parallel", "torch.utils.data", "torch.optim")  # packages whose classes call no object that they are made with
_MARK = -1  # where a scope's number stands in a key, for marks

Key = tuple[int, str]
How = Literal["never", "not yet", "perhaps"]


class Use(NamedTuple):
    """A name that is not surely bound where it is used; `call` is the call that makes a function use it, where it is not `node` itself."""

    name: str
    node: ast.AST
    scope: str
    how: How
    call: ast.AST | None = None


@dataclass(eq=False)
class Scope:
    """A module, function, class or comprehension, and the names that it binds."""

    node: ast.AST
    number: int
    name: str
    parent: Scope | None
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    reads: list[ast.Name] = field(default_factory=list)

    @property
    def module(self) -> Scope:
        """The module around it."""
        return self if self.parent is None else self.parent.module

    def owner(self, name: str) -> Scope | None:
        """The scope that `name` belongs to, as read from this one; None where it is a builtin, or bound nowhere."""
        if name in self.globals:
            return self.module if name in self.module.bound else None
        if name in self.bound and name not in self.nonlocals:
            return self
        up = self.parent
        while up is not None and (isinstance(up.node, ast.ClassDef) or (up.parent is not None and name not in up.bound)):
            up = up.parent
        return up if up is not None and name in up.bound else None


@dataclass
class _State:
    """What is bound on every path, and on some."""

    sure: set[Key]
    some: set[Key]

    def copy(self) -> _State:
        return _State(set(self.sure), set(self.some))


def _joined(states: Sequence[_State | None]) -> _State | None:
    """What holds where paths meet; None stands for a path that does not come out."""
    live = [s for s in states if s is not None]
    if not live:
        return None
    sure, some = set(live[0].sure), set(live[0].some)
    for other in live[1:]:
        sure &= other.sure
        some |= other.some
    return _State(sure, some)


class Binding:
    """One file. `marks` has the marks that calls and statements set; `reached` are then those that hold before each of both."""

    def __init__(self, tree: ast.Module, marks: Mapping[ast.AST, frozenset[str]] | None = None) -> None:
        self.tree = tree
        self.marks = marks or {}
        self.reached: dict[ast.AST, frozenset[str]] = {}
        self.leaves: dict[ast.AST, frozenset[str]] = {}  # the marks that hold wherever a function ends
        self.uses: list[Use] = []
        self.scopes: dict[ast.AST, Scope] = {}
        self._number = 0
        self._scope = self._open(tree, "", None)
        self._declare(self._scope, tree.body)
        self._free: dict[ast.AST, dict[Key, ast.AST]] = {}
        self._given: dict[ast.AST, set[Key]] = {}
        self._definitions: dict[Key, list[ast.AST]] = {}
        self._waiting: list[ast.AST] = []
        self._made: dict[ast.ClassDef, Key] = {}
        self._state: _State | None = _State(set(), set())
        self._loops: list[list[_State | None]] = []
        self._ends: list[_State | None] = []
        self._running = {self._scope.number}
        self._imported: set[Key] = set()  # names of classes that call no object that they are made with
        self._gather()
        self._run(tree, tree.body)

    # ------------------------------------------------------------------------------------------------ scopes

    def _open(self, node: ast.AST, name: str, parent: Scope | None) -> Scope:
        self._number += 1
        scope = self.scopes[node] = Scope(node, self._number, name, parent)
        return scope

    def _declare(self, scope: Scope, nodes: Sequence[ast.AST]) -> None:
        """Note what nodes bind in `scope`, and open the scopes inside them."""
        todo = list(reversed(nodes))
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    scope.reads.append(node)
                else:
                    scope.bound.add(node.id)
                continue
            inner = self._declared_by(scope, node) if isinstance(node, _BINDING) else None
            todo += reversed(_children(node) if inner is None else inner)
        scope.bound -= scope.globals
        scope.module.bound |= scope.globals

    def _declared_by(self, scope: Scope, node: ast.AST) -> list[ast.AST] | None:
        """Note what one node binds; the parts that belong to `scope`, where these are not all of it."""
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            name = getattr(node, "name", "<lambda>")
            if not isinstance(node, ast.Lambda):
                scope.bound.add(name)
            inner = self._open(node, f"{scope.name}.{name}".lstrip("."), scope)
            if isinstance(node, ast.ClassDef):
                self._declare(inner, node.body)
                return [*node.decorator_list, *node.bases, *node.keywords]
            inner.bound |= {a.arg for a in _parameters(node.args)}
            self._declare(inner, [node.body] if isinstance(node, ast.Lambda) else node.body)
            return [*getattr(node, "decorator_list", ()), *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        if isinstance(node, _COMPREHENSIONS):
            inner = self._open(node, scope.name, scope)
            first, *rest = node.generators
            parts = [first.target, *first.ifs, *rest]
            self._declare(inner, [*parts, *((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,))])
            return [first.iter]
        if isinstance(node, ast.NamedExpr):
            up = scope
            while isinstance(up.node, _COMPREHENSIONS) and up.parent is not None:
                up = up.parent
            up.bound.add(node.target.id)
            if up is not scope:
                scope.nonlocals.add(node.target.id)
            return [node.value]
        if isinstance(node, ast.alias):
            if node.name != "*":
                scope.bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            scope.bound |= {node.name} if node.name else set()
        elif isinstance(node, ast.MatchMapping):
            scope.bound |= {node.rest} if node.rest else set()
        elif isinstance(node, ast.Global):
            scope.globals |= set(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.nonlocals |= set(node.names)
        return None

    def _gather(self) -> None:
        """What each function and class takes from the scopes around it: the names, and a place where each is read."""
        for scope in self.scopes.values():
            around: Scope | None = scope if scope.globals else None
            while around is not None:
                self._given.setdefault(around.node, set()).update((self._scope.number, name) for name in scope.globals)
                around = around.parent
        for node, scope in self.scopes.items():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and scope.parent is not None:
                self._definitions.setdefault((scope.parent.number, node.name), []).append(node)
            for read in scope.reads:
                owner, up = scope.owner(read.id), scope
                while owner is not None and up is not owner and up.parent is not None:
                    self._free.setdefault(up.node, {}).setdefault((owner.number, read.id), read)
                    up = up.parent

    # ------------------------------------------------------------------------------------------------ running

    def _run(self, node: ast.AST, body: Sequence[ast.AST]) -> None:
        """Run the module, then each function where it has been defined."""
        for statement in body:
            self._statement(statement)  # type: ignore[arg-type]
        while self._waiting:
            self._function(self._waiting.pop(0))

    def _function(self, node: ast.AST) -> None:
        scope = self.scopes[node]
        assert isinstance(node, _FUNCTIONS)
        given = {(scope.number, a.arg) for a in _parameters(node.args)}
        saved = self._scope, self._running
        self._scope, self._running = scope, {scope.number}
        self._state, self._loops, self._ends = _State(set(given), given), [], []
        if isinstance(node, ast.Lambda):
            self._expression(node.body)
        else:
            self._block(node.body)
        end = _joined([self._state, *self._ends])
        self.leaves[node] = frozenset() if end is None else _marks(end)
        self._scope, self._running = saved

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if self._state is None:  # no path leads here
            return
        if self.marks:
            self.reached[node] = self._held()
        run = _STATEMENTS.get(type(node))
        if run is not None:
            run(self, node)
        else:
            for child in _children(node):
                self._visit(child)
        if self._state is not None and node in self.marks:
            self._state.sure |= {(_MARK, mark) for mark in self.marks[node]}

    def _visit(self, node: ast.AST | None) -> None:
        """Evaluate an expression, or what holds some."""
        if node is None or self._state is None:
            return
        if isinstance(node, ast.Name):
            self._name(node)
        elif isinstance(node, ast.expr):
            self._expression(node)
        else:
            for child in _children(node):
                self._visit(child)

    def _bind(self, name: str) -> None:
        owner = self._scope.owner(name)
        if owner is not None and self._state is not None:
            self._imported.discard((owner.number, name))
            self._state.sure.add((owner.number, name))
            self._state.some.add((owner.number, name))

    def _unbind(self, name: str) -> None:
        owner = self._scope.owner(name)
        if owner is not None and self._state is not None:
            self._state.sure.discard((owner.number, name))
            self._state.some.discard((owner.number, name))

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        elif isinstance(node.ctx, ast.Del):
            self._unbind(node.id)
        else:
            self._read(node.id, node)

    def _read(self, name: str, node: ast.AST) -> None:
        scope, state = self._scope, self._state
        assert state is not None
        owner = scope.owner(name)
        if isinstance(scope.node, ast.ClassDef) and owner is scope and (owner.number, name) not in state.some:
            owner = scope.parent.owner(name) if scope.parent is not None else None  # a class body looks further out
        if owner is None:
            if name not in BUILTINS and not (isinstance(scope.node, ast.ClassDef) and name in _IN_CLASS):
                self.uses.append(Use(name, node, scope.name, "never"))
            return
        if owner.number in self._running:
            self._bound((owner.number, name), node, None)

    def _bound(self, key: Key, node: ast.AST, call: ast.AST | None) -> None:
        assert self._state is not None
        if key not in self._state.sure:
            if key[1] in BUILTINS:
                return
            self.uses.append(Use(key[1], node, self._scope.name, "perhaps" if key in self._state.some else "not yet", call))

    def _held(self) -> frozenset[str]:
        return frozenset() if self._state is None else _marks(self._state)

    # ------------------------------------------------------------------------------------------------ expressions

    def _expression(self, node: ast.AST) -> None:
        run = _EXPRESSIONS.get(type(node))
        if run is not None:
            run(self, node)
        else:
            for child in _children(node):
                self._visit(child)

    def _call(self, node: ast.Call) -> None:
        if self.marks and self._state is not None:
            self.reached[node] = self._held()
        for child in _children(node):
            self._visit(child)
        if self._state is None:
            return
        for inner in (*node.args, *(k.value for k in node.keywords)):
            if isinstance(inner, ast.Name):
                self._runs(inner, node)
        self._calls(node.func, node)
        marks = self.marks.get(node, ())
        self._state.sure |= {(_MARK, mark) for mark in marks}
        if isinstance(node.func, (ast.Name, ast.Attribute)) and _exits(node.func):
            self._state = None

    def _calls(self, func: ast.expr, call: ast.Call) -> None:
        """What is called: a class runs its constructor, and its other methods wherever something is called by their names."""
        owner = self._scope.owner(func.id) if isinstance(func, ast.Name) else None
        if isinstance(func, ast.Name) and (func.id not in _CALLERS if owner is None else (owner.number, func.id) in self._imported):
            return
        definitions = self._definitions.get((owner.number, func.id), ()) if owner is not None and isinstance(func, ast.Name) else ()
        made = [d for d in definitions if isinstance(d, ast.ClassDef) and _is_plain(d)]
        if isinstance(func, ast.Name) and len(made) < len(definitions):
            self._runs(func, call)
            return
        names = {func.attr} if isinstance(func, ast.Attribute) else {"forward", "__call__"} if not made else set()
        methods = [m for c in self._made for m in _methods(c) if m.name in names]
        methods += [m for c in made for m in _constructing(c)]
        if owner is not None and made and isinstance(func, ast.Name):
            self._made.update(dict.fromkeys(made, (owner.number, func.id)))
        for key, at in self._taken(methods, frozenset(self._made.values())).items() if methods else ():  # known: super(Net, self)
            if key[0] in self._running:
                self._bound(key, at, call)

    def _runs(self, name: ast.Name, call: ast.AST) -> None:
        """A function or class that a call may run: what it takes from the running scopes must be bound by now."""
        owner = self._scope.owner(name.id)
        if owner is None or owner.number not in self._running:
            return
        for key, at in self._taken(self._definitions.get((owner.number, name.id), ())).items():
            if key[0] in self._running:
                self._bound(key, at, call)

    def _taken(self, definitions: Sequence[ast.AST], known: Set[Key] = frozenset()) -> dict[Key, ast.AST]:
        """What definitions, and those that they mention, take from the scopes around them; not what one of them declares global."""
        out: dict[Key, ast.AST] = {}
        given: set[Key] = set()
        todo, seen = [list(definitions)], set(known)
        while todo:
            for node in todo.pop():
                given |= self._given.get(node, set())
                for key, at in self._free.get(node, {}).items():
                    out.setdefault(key, at)
                    if key not in seen:
                        seen.add(key)
                        todo.append(self._definitions.get(key, []))
        return {key: at for key, at in out.items() if key not in given}

    def _short(self, node: ast.BoolOp) -> None:
        self._visit(node.values[0])
        before = self._state
        for value in node.values[1:]:
            self._state = None if self._state is None else self._state.copy()
            self._visit(value)
        self._state = _joined([before, self._state])

    def _either(self, node: ast.IfExp) -> None:
        self._visit(node.test)
        before = self._state
        ends = []
        for value in (node.body, node.orelse):
            self._state = None if before is None else before.copy()
            self._visit(value)
            ends.append(self._state)
        self._state = _joined(ends)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self._visit(node.generators[0].iter)
        saved, before = self._scope, self._state
        self._state = None if before is None else before.copy()
        self._scope = self.scopes[node]
        self._running = self._running | {self._scope.number}
        for i, generator in enumerate(node.generators):
            if i:
                self._visit(generator.iter)
            self._visit(generator.target)
            for test in generator.ifs:
                self._visit(test)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._visit(part)
        self._running = self._running - {self._scope.number}
        self._scope, self._state = saved, _joined([before, self._state])

    def _named(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        self._bind(node.target.id)

    def _lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            self._visit(default)
        self._waiting.append(node)

    # ------------------------------------------------------------------------------------------------ statements

    def _assign(self, node: ast.Assign) -> None:
        self._visit(node.value)
        for target in node.targets:
            self._visit(target)

    def _annotated(self, node: ast.AnnAssign) -> None:
        self._visit(node.value)
        if node.value is not None or not isinstance(node.target, ast.Name):
            self._visit(node.target)

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and self._state is not None:
            self._read(node.target.id, node.target)
        self._visit(node.value)
        self._visit(node.target)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self._visit(decorator)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            self._visit(default)
        self._bind(node.name)
        self._waiting.append(node)

    def _class(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self._visit(part)
        saved = self._scope
        self._scope = self.scopes[node]
        self._running = self._running | {self._scope.number}
        self._block(node.body)
        self._running = self._running - {self._scope.number}
        self._scope = saved
        self._bind(node.name)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                continue
            name = (alias.asname or alias.name).partition(".")[0]
            self._bind(name)
            owner = self._scope.owner(name)
            if owner is not None and isinstance(node, ast.ImportFrom) and _only_constructs(node, alias):
                self._imported.add((owner.number, name))

    def _return(self, node: ast.Return) -> None:
        self._visit(node.value)
        self._ends.append(self._state)
        self._state = None

    def _raise(self, node: ast.Raise) -> None:
        self._visit(node.exc)
        self._visit(node.cause)
        self._state = None

    def _jump(self, node: ast.Break | ast.Continue) -> None:
        if isinstance(node, ast.Break) and self._loops:
            self._loops[-1].append(self._state)
        self._state = None

    def _if(self, node: ast.If) -> None:
        self._visit(node.test)
        before, ends = self._state, []
        for body in (node.body, node.orelse):
            self._state = None if before is None else before.copy()
            self._block(body)
            ends.append(self._state)
        self._state = _joined(ends)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        self._visit(node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else None)
        before = self._state
        if before is None:
            return
        self._state = self._again(before, [node])
        if isinstance(node, ast.While):
            self._visit(node.test)
            entered = self._state
        else:
            entered = self._state.copy()
            self._visit(node.target)
        none = None if entered is None or endless else entered.copy()
        self._loops.append([])
        self._block(node.body)
        if none is not None and self._state is not None:
            none.some |= self._state.some
        breaks = self._loops.pop()
        self._state = none
        self._block(node.orelse)
        self._state = _joined([self._state, *breaks])

    def _again(self, state: _State, nodes: Sequence[ast.AST]) -> _State:
        """The state at the head of a loop, or of a handler: what is bound inside may be bound, what is deleted there may not be."""
        out = state.copy()
        for node in scope_nodes(*nodes):
            for name, deleted in _changed(node):
                owner = self._scope.owner(name)
                if owner is not None:
                    (out.sure.discard if deleted else out.some.add)((owner.number, name))
        return out

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self._visit(item.context_expr)
            self._visit(item.optional_vars)
        self._block(node.body)

    def _try(self, node: ast.Try) -> None:
        before = self._state
        assert before is not None
        failed = self._again(before, node.body)
        self._state = before.copy()
        self._block(node.body)
        self._block(node.orelse)
        ends = [self._state]
        for handler in node.handlers:
            self._state = failed.copy()
            self._visit(handler.type)
            if handler.name:
                self._bind(handler.name)
            self._block(handler.body)
            if handler.name and self._state is not None:
                self._unbind(handler.name)
            ends.append(self._state)
        self._state = _joined(ends)
        if node.finalbody:
            after, self._state = self._state, self._again(before, [*node.body, *node.handlers, *node.orelse])
            bound = set() if after is None else after.sure
            self._state.sure |= bound if after is not None else set()
            self._block(node.finalbody)
            if after is None:
                self._state = None

    def _match(self, node: ast.Match) -> None:
        self._visit(node.subject)
        before = self._state
        ends = [before]
        for case in node.cases:
            self._state = None if before is None else before.copy()
            for part in walk(case.pattern):
                if isinstance(part, (ast.MatchAs, ast.MatchStar)) and part.name:
                    self._bind(part.name)
                elif isinstance(part, ast.MatchMapping) and part.rest:
                    self._bind(part.rest)
                elif isinstance(part, (ast.MatchValue, ast.MatchClass)):
                    self._visit(part.value if isinstance(part, ast.MatchValue) else part.cls)
            self._visit(case.guard)
            self._block(case.body)
            ends.append(self._state)
            last = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
            if last:
                ends.pop(0)
                break
        self._state = _joined(ends)

    def _nothing(self, node: ast.stmt) -> None:
        """A statement that evaluates nothing."""


def _marks(state: _State) -> frozenset[str]:
    return frozenset(name for number, name in state.sure if number == _MARK)


def _parameters(spec: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (spec.vararg, spec.kwarg) if a is not None]
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *rest]


def _children(node: ast.AST) -> list[ast.AST]:
    """The nodes inside one, in their order, but for those without parts of their own: contexts and operators."""
    out: list[ast.AST] = []
    for name in node._fields:
        child = getattr(node, name, None)
        if isinstance(child, list):
            out += [part for part in child if isinstance(part, ast.AST)]
        elif isinstance(child, ast.AST) and child._fields:
            out.append(child)
    return out


def _is_plain(node: ast.ClassDef) -> bool:
    """Whether no class that a class comes from calls methods of it as one is made: torch's modules and data sets do not."""
    return all(last_name(b) in ("object", "Module", "Dataset") for b in node.bases) and not node.keywords and not node.decorator_list


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [s for s in node.body if isinstance(s, ast.FunctionDef)]


def _constructing(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The methods that run as an object is made, or by operators: those with names of Python's, and what they call by its name."""
    methods = _methods(node)
    todo = [m for m in methods if m.name.startswith("__") and m.name != "__call__"]
    for method in todo:
        named = {n.attr for n in walk(method) if isinstance(n, ast.Attribute)}
        todo += [m for m in methods if m.name in named and m not in todo]
    return todo


def _only_constructs(node: ast.ImportFrom, alias: ast.alias) -> bool:
    """Whether an imported name is a class of torch that calls no object that it is made with: a wrapper, a sampler, a loader."""
    return (node.module or "").startswith(_CONSTRUCTING) and not node.level and alias.name[:1].isupper()


def _exits(func: ast.Name | ast.Attribute) -> bool:
    """Whether a call ends the process: `sys.exit()`, `exit()`."""
    if isinstance(func, ast.Name):
        return func.id in ("exit", "quit")
    return func.attr in _EXITS and isinstance(func.value, ast.Name) and func.value.id in ("sys", "os")


def _changed(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names that one node binds or deletes; with whether it deletes them."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, isinstance(node.ctx, ast.Del)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, False
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0], False
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id, False
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name, True
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name, False


_STATEMENTS: dict[type, Callable[..., None]] = {
    ast.Assign: Binding._assign,
    ast.AnnAssign: Binding._annotated,
    ast.AugAssign: Binding._augmented,
    ast.FunctionDef: Binding._definition,
    ast.AsyncFunctionDef: Binding._definition,
    ast.ClassDef: Binding._class,
    ast.Import: Binding._import,
    ast.ImportFrom: Binding._import,
    ast.Return: Binding._return,
    ast.Raise: Binding._raise,
    ast.Break: Binding._jump,
    ast.Continue: Binding._jump,
    ast.If: Binding._if,
    ast.For: Binding._loop,
    ast.AsyncFor: Binding._loop,
    ast.While: Binding._loop,
    ast.With: Binding._with,
    ast.AsyncWith: Binding._with,
    ast.Try: Binding._try,
    ast.Match: Binding._match,
    ast.Global: Binding._nothing,
    ast.Nonlocal: Binding._nothing,
}
if hasattr(ast, "TryStar"):  # from Python 3.11 on
    _STATEMENTS[ast.TryStar] = Binding._try
_EXPRESSIONS: dict[type, Callable[..., None]] = {
    ast.Call: Binding._call,
    ast.BoolOp: Binding._short,
    ast.IfExp: Binding._either,
    ast.ListComp: Binding._comprehension,
    ast.SetComp: Binding._comprehension,
    ast.DictComp: Binding._comprehension,
    ast.GeneratorExp: Binding._comprehension,
    ast.NamedExpr: Binding._named,
    ast.Lambda: Binding._lambda,
}
