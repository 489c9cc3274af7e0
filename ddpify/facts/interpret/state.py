"""The state of an abstract run: what names and objects hold, which functions and loops run, and what is noted of it.

What evaluates code is declared here and carried out by `machine.Machine`: the rooms of this package call one another through it.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from ddpify.facts.aliases import Aliases, Holder
from ddpify.facts.assumed import AS_WRITTEN, AssumedEdits
from ddpify.facts.claims import Claims
from ddpify.facts.library.paths import MODULES, OF_REPLICAS
from ddpify.facts.memory import Key, Memory, Version
from ddpify.facts.model import (
    NOTHING,
    Call,
    Class,
    Ext,
    Func,
    Known,
    Lit,
    Loop,
    Module,
    New,
    Obj,
    Part,
    Stack,
    Store,
    Super,
    Trace,
    Value,
    join,
    just,
    library_bases,
)
from ddpify.facts.names import canonical
from ddpify.facts.origins import Origin, only
from ddpify.facts.record import Kind
from ddpify.facts.recording import Log, Recording, Seen, merge
from ddpify.project import Project, SourceFile

_BUILTINS = frozenset(dir(builtins))
_NO_NETWORKS = ("Loss", "Parameter", "CosineSimilarity", "Softmax", "Sigmoid")  # modules of torch that are none
_SAYING = (ast.UnaryOp, ast.Attribute, ast.Name)  # what may say that targets are ignored
STARS = "[stars]"  # of a module: the libraries of which it imports all names
State = tuple[dict[str, Value] | None, Version]
ELEMENT = "[]"  # what any element of a container is
UNNAMED = "[?]"  # what was put in under keys that are not known


class Frame:
    """One running function (or module, where `local` is None)."""

    def __init__(self, file: str, local: dict[str, Value] | None, node: ast.AST | None = None) -> None:
        self.file = file
        self.local = local
        self.node = node
        self.made: Stack = ()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.returned = NOTHING
        self.yielded = NOTHING
        self.exits: list[Version] = []
        self.given: tuple[Value, ...] = ()  # what the function is called with
        self.goes_into = False  # whether it calls itself for each part of a batch of which it is not known what it consists of
        self.idle = False  # whether control comes here only with other settings than the script has
        self.around: Frame | None = None  # the function in which this one was defined
        self.changed: set[str] = set()  # the names whose tensors are changed in place
        self.aside: set[str] = set()  # those of them that are of a function around it
        self.copied: set[str] = set()  # the names whose tensors were made here: what changes them in place, the caller does not see
        self.cls: Class | None = None
        self.owners: frozenset[Obj] = frozenset()  # whose method runs: all that it may be
        self.closure: tuple[ast.AST, Stack] | None = None  # what `around` is known by
        self.is_seen = False  # whether functions that are defined in this one see its names
        self.left: dict[str, Value] = {}  # what its names held where it returned objects, which may be such functions

    def changes(self, name: str) -> None:
        """Note that the tensor of a name is changed in place."""
        if name not in self.copied:
            self.changed.add(name)

    def holders(self, name: str) -> list[dict[str, Value]]:
        """The names of the function around it that holds a name, as they are by now and as it returned; of none where none does."""
        frame = self.around
        while frame is not None:
            held = [names for names in (frame.local, frame.left) if names is not None and name in names]
            if held and name not in frame.nonlocals:
                return held
            frame = frame.around
        return []

    def leaves(self) -> None:
        """Keep what its names hold where it returns an object."""
        for name, value in (self.local or {}).items() if self.is_seen else ():
            self.left[name] = self.left.get(name, value) | value


class Interpreter(ABC):
    """Runs a project abstractly, as it is once some edits have been made."""

    def __init__(self, project: Project, assumed: AssumedEdits = AS_WRITTEN) -> None:
        self.project = project
        self.assumed = assumed
        self.batch_sources = assumed.batch_sources
        self.fed: dict[ast.AST, Value] = {}
        self.changed_in_backward: dict[str, Value] = {}
        self.replicated_branches = assumed.replicated_branches
        self.shares = assumed.shares
        self.redistributed = assumed.redistributed
        self.unwraps = assumed.unwraps
        self.replicated_after = assumed.replicated_after
        self.wraps = assumed.wraps
        self._ignore_dp = assumed.ignore_dp
        self.special: frozenset[ast.AST] = self.unwraps.union(self.batch_sources, self.redistributed, assumed.read_whole)
        self.objects = project.objects
        self.trace = Trace()
        self.memory = Memory()
        self.record = self.memory.record
        self.log = Log()
        self.events = self.record.events
        self.frames: list[Frame] = []
        self.stack: Stack = ()
        self.loops: tuple[Loop, ...] = ()
        self.tests: tuple[tuple[ast.expr, Value], ...] = ()
        self.deciding: frozenset[Origin] = frozenset()
        self.settings: frozenset[Known] = frozenset()  # what is known of settings, by the conditions under which this runs
        self.settings_left = self.settings  # what was known at the end of the block that ran last
        self.made_under: dict[Obj, frozenset[Known]] = project.memo.setdefault(("made", project.entry.tree), {})  # type: ignore[assignment]
        self.no_grad = 0
        self.spent = 0
        self.order = 0
        self.calls: dict[tuple[ast.AST, Stack], Call] = {}
        self.stores: dict[tuple[ast.AST, Stack], Store] = {}
        self.closures: dict[tuple[ast.AST, Stack], Frame] = {}
        self.driven: set[ast.AST] = set()  # the functions whose parameters are settings
        self.commands: set[ast.AST] = set()  # those that their group runs
        self.imported: dict[str, dict[Key, tuple[Value, bool]]] = {}  # what each module that ran has written, and whether nothing was there
        self.breaks: list[list[State]] = []
        self.rows: set[New] = set()  # the sequences of modules that are being run
        self.classes: dict[ast.ClassDef, Class] = {}
        self.modules: dict[Class, bool] = {}  # whether classes are modules, as far as it was asked
        self.constants: dict[ast.Constant, Value] = {}
        self.keys: dict[Obj, set[str]] = {}
        self.sharded_by_script: set[New] = set()
        self.iterated: set[Obj] = set()  # whose elements are being asked for
        self.said: tuple[ast.expr | None, str] = None, ""  # what is said of a value of the statement that runs, by a comment beside it
        self.repeated: dict[tuple[object, Stack], list[Call]] = {}  # what earlier calls called that were repeated, and where
        self.earlier: set[Interpreter] = set()  # the runs from which such calls come
        self.hooks: dict[Obj, dict[ast.AST, tuple[str, Value]]] = {}  # what modules were given to call at their forward or backward
        self.recursions: dict[ast.AST, set[tuple[Func, Stack]]] = {}  # where functions were called that were running
        self.heads: list[int] = []  # of the loops that run: the point at which a pass begins
        self.claims = Claims()
        self.aliases = Aliases()
        self.access: ast.expr | None = None  # the attribute that is being read: where a property runs

    @property
    def frame(self) -> Frame:
        """The function that is running."""
        return self.frames[-1]

    def fork(self) -> State:
        """The state as it is; what runs on writes to another."""
        local = self.frame.local
        return (None if local is None else dict(local)), self.memory.fork()

    def end_of_branch(self) -> State:
        """The state at the end of a branch."""
        return self.frame.local, self.memory.fork()

    def restore(self, state: State) -> None:
        """Go back to a state."""
        local, version = state
        self.frame.local = None if local is None else dict(local)
        self.memory.restore(version)

    def merge(self, states: list[State]) -> bool:
        """Go on with the join of `states`; False when there is none."""
        if not states:
            return False
        local = None if states[0][0] is None else dict(states[0][0])
        for other, _ in states[1:]:
            if local is not None and other is not None:
                _join_into(local, other)
        self.frame.local = local
        self.memory.join([version for _, version in states])
        return True

    def lookup(self, name: str) -> Value:
        """What a name holds here."""
        frame = self.frames[-1]
        if frame.local is not None and name not in frame.globals:
            if name in frame.local:
                return frame.local[name]
            if frame.around is not None:
                self.asks("outer", (frame.closure, name))
                if holders := frame.holders(name):
                    return join([names[name] for names in holders])
        held = self.memory.get((frame.file, name))
        if held is not None:
            return held
        if name == "__name__":
            return just(Lit(frame.file))
        if name in _BUILTINS:
            return just(Ext(name))
        stars = self.memory.get((frame.file, STARS), NOTHING)
        return Value(frozenset(Ext(canonical(f"{base}.{name}")) for base in stars.paths()))

    def bind(self, name: str, value: Value) -> None:
        """Let a name hold `value` from here on; under a condition that depends on data, so does what was bound."""
        frame = self.frame
        value = self.decided(value)
        if frame.local is not None and name not in frame.globals:
            frame.local[name] = value
        else:
            self.memory[frame.file, name] = value
        if name in frame.nonlocals:
            self.memory.doubt()
            for names in frame.holders(name):
                names[name] |= value

    def change(self, name: str, value: Value) -> None:
        """Let the tensor that a name holds be `value`, changed in place: what a function does not bind itself is of what is around it."""
        frame = self.frame
        self.change_others((self.holder_of(name),), value)
        if frame.local is None or name in frame.globals or (name in frame.local and name not in frame.aside):
            self.bind(name, value)
            frame.changes(name)
        elif holders := frame.holders(name):
            self.memory.doubt()
            frame.aside.add(name)
            frame.local[name] = self.decided(value)
            for names in holders:
                names[name] |= frame.local[name]
        else:
            self.memory[frame.file, name] = self.decided(value)

    def holder_of(self, name: str) -> Holder:
        """What holds the tensor of a name: the function that is running, or its module."""
        frame = self.frame
        return frame if frame.local is not None and name in frame.local and name not in frame.globals else frame.file, name

    def change_others(self, holders: Iterable[Holder], value: Value) -> None:
        """Let what holds the same tensors by other names hold what they are by now, changed in place."""
        holders = list(holders)
        for holder in holders:
            self.asks_alias(holder)
        parts = self.aliases.parts
        for (owner, name), node in self.aliases.others(holders).items():
            base = None if isinstance(node, ast.Name) else just(owner)  # type: ignore[arg-type]
            held = self.memory.get((owner, name), NOTHING) if not isinstance(owner, Frame) else (owner.local or {}).get(name, NOTHING)
            now = value
            if (owner, name) in parts or any(holder in parts for holder in holders):
                now = held.changed(value)
            self.events.append((Kind.CHANGE, node, base, now))
            if not isinstance(owner, Frame):
                self.memory.add((owner, name), self.decided(now))
            elif owner.local is not None:
                if owner is not self.frame:
                    self.memory.doubt()
                owner.local[name] = held | self.decided(now)
                owner.changes(name)

    def asks_alias(self, holder: Holder) -> None:
        """Note that it is asked what else holds the tensor of a holder: a function that begins has no names for any."""
        if holder[0] is not self.frame:
            self.asks("alias", holder)

    def all_aliases(self) -> Iterator[Aliases]:
        """The names of tensors that have several, of the run and of the function that is recorded."""
        yield self.aliases
        if isinstance(self.memory.watch, Recording):
            yield self.memory.watch.aliases

    def set_attribute(self, obj: Obj, name: str, value: Value, strong: bool) -> None:
        """Let an object hold `value` as `name`; not `strong`: or what it held before."""
        if isinstance(obj, Module):
            key: tuple[object, str] = (obj.name, name)
        elif isinstance(obj, Super):
            key = (obj.owner, name)
        else:
            key = (obj, name)
        if strong:
            self.memory[key] = self.decided(value)
        else:
            self.memory.add(key, self.decided(value))

    def decided(self, value: Value) -> Value:
        """A value with what it owes to the conditions under which it is bound."""
        if not self.deciding:
            return value
        own = any(o.kind == "decided" for o in self.deciding) and value.scale in ("mean", "sum", "count", "total")
        return Value(value.objs, value.origins | self.deciding, "other" if own else value.scale, value.shape)

    def store(self, node: ast.expr, receiver: Value, value: Value) -> None:
        """Note what is stored into an attribute or entry."""
        self.order += 1
        self.stored(node, self.frame.file, self.stack, self.order, receiver, value, self.loops)

    def stored(self, node: ast.expr, file: str, stack: Stack, order: int, receiver: Value, value: Value, loops: tuple[Loop, ...]) -> None:
        """Note a store."""
        self.log.stores.append(Store(node, file, stack, order, receiver, value, loops))
        seen = self.stores.get((node, stack))
        if seen is not None:
            seen.receiver, seen.value = seen.receiver | receiver, seen.value | value
        else:
            self.stores[node, stack] = Store(node, file, stack, order, receiver, value, loops)

    def note(self, node: ast.AST, value: Value) -> None:
        """Note what an expression is seen to be."""
        self.log.noted.append((node, value))
        seen = self.trace.values.get(node)
        self.trace.values[node] = value if seen is None else seen | value

    def close_over(self, node: ast.AST, made: Stack) -> None:
        """Note what a function that is defined here sees around it."""
        frame = self.frame.around if isinstance(self.frame.node, ast.ClassDef) else self.frame
        if frame is not None:
            self.closures[node, made] = frame
            frame.is_seen = True
            if isinstance(self.memory.watch, Recording):
                self.memory.watch.closures[node, made] = frame

    def file_of(self, name: str) -> SourceFile:
        """The file of a module that runs."""
        return self.project.file(name)

    def feed(self, batch: Value) -> None:
        """Let the innermost loop that runs be one over batches."""
        loop = next((loop for loop in reversed(self.loops) if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While))), None)
        if loop is not None:
            self.memory.doubt()  # where the loop is around the function that runs, another call of that feeds another loop
            mine = Value(frozenset(), only(batch.origins, "batch"))
            self.fed[loop.node] = self.fed.get(loop.node, NOTHING) | mine
            self.note(loop.node, self.fed[loop.node])

    def timed(self, value: Value) -> str:
        """How a value is read through time whose dimensions are not known: as `side_by_side` says."""
        return "" if value.shape is not None and value.shape.sure else self.side_by_side(value)

    def side_by_side(self, value: Value) -> str:
        """How a value is read through time, where it is of sequences side by side: down its rows, or along its columns; else empty."""
        kinds = (
            {self.batch_sources[o.node].kind for o in value.batches() if isinstance(o, New) and o.node in self.batch_sources}
            if self.batch_sources
            else set()
        )
        return kinds.pop() if len(kinds) == 1 and kinds <= {"columns", "lines"} else ""

    def find(self, cls: Class, name: str, seen: tuple[Class, ...] = ()) -> Value | None:
        """A class attribute, looked up along the bases."""
        if (cls, name) in self.memory:
            return self.memory[cls, name]
        for base in cls.bases:
            for b in base.objs:
                if isinstance(b, Class) and b not in seen:
                    found = self.find(b, name, (*seen, cls))
                    if found is not None:
                        return found
        return None

    def library_bases(self, cls: Class) -> Iterator[str]:
        """The library classes that a class of the project descends from."""
        return library_bases(cls)

    def is_a(self, obj: object, *paths: str) -> bool:
        """Whether an object is an instance of one of the library classes named, or of a class derived from one."""
        if not isinstance(obj, New):
            return False
        return obj.path in paths or (obj.cls is not None and any(b in paths for b in self.library_bases(obj.cls)))

    def called(self, seen: Seen, stack: Stack, loops: tuple[Loop, ...], shift: int, tests: tuple[tuple[ast.expr, Value], ...]) -> Call:
        """Note a call that was seen under other calls and in other loops, and so many events earlier."""
        node, last = seen.call.node, seen.last + shift
        call = self.calls.get((node, stack))
        if call is not None:
            merge(call, seen, loops)
            call.result, call.last = call.result | seen.result, last
            return call
        given = seen.func, seen.args, dict(seen.keywords), loops, tests, seen.no_grad, seen.receiver
        call = Call(node, seen.call.file, stack, seen.order + shift, *given, NOTHING | seen.result, seen.now, last)
        self.calls[node, stack] = call
        return call

    def hooks_of(self, obj: Obj) -> Mapping[ast.AST, tuple[str, Value]]:
        """What a module was given to call at its forward or backward."""
        self.asks("hooks", obj if self.hooks else None)
        return self.hooks.get(obj, {})

    def ignores(self) -> bool:
        """Whether targets may be -100, which a cross entropy ignores of itself: the project writes or reads it, or a collator puts it."""
        key = ("ignores", self.project.entry.tree)
        if key not in self.project.memo:
            files = (self.project.entry, *self.project.files.values())
            self.project.memo[key] = any(_may_be_ignored(n) for file in files for kind in _SAYING for n in file.standing.of(kind))
        return bool(self.project.memo[key])

    def is_network(self, obj: New | Part) -> bool:
        """Whether a module holds layers, as losses do not."""
        if isinstance(obj, Part) or obj.cls is None:
            return True
        todo, seen = [obj], {obj}
        while todo:
            inside = {o for _, held in self.memory.of(todo.pop()) for o in held.objs if isinstance(o, New)} - seen
            if any(o.path.startswith("torch.nn.") and not o.path.endswith(_NO_NETWORKS) for o in inside):
                return True
            modules = [o for o in inside if self.is_module(o)]  # which may hold one another, where some took the place of others
            seen.update(modules)
            todo += modules
        return False

    def is_module(self, obj: object) -> bool:
        """Whether an object is an nn.Module of the project's own."""
        if not isinstance(obj, New) or obj.cls is None:
            return False
        if obj.cls not in self.modules:
            self.modules[obj.cls] = any(b.startswith("torch.nn.") or MODULES.search(b) for b in self.library_bases(obj.cls))
        return self.modules[obj.cls]

    def is_synced_norm(self, obj: object) -> bool:
        """Whether an object is batch norm of the project's own whose replicas in a DataParallel have their statistics in common."""
        if not isinstance(obj, New) or obj.cls is None or self.find(obj.cls, OF_REPLICAS) is None:
            return False
        return any(b.startswith("torch.nn.") and "BatchNorm" in b for b in self.library_bases(obj.cls))

    @property
    def ignore_dp(self) -> bool:
        """Whether DataParallel is left out."""
        self.asks("ignore_dp", None)
        return self._ignore_dp

    def asks(self, kind: str, of: object) -> None:
        """Note that something is asked of the run that its memory does not hold."""
        recording = self.memory.watch
        if isinstance(recording, Recording) and (kind != "outer" or of[0] not in recording.closures):  # type: ignore[index]
            recording.other.setdefault((kind, of), self.asked((kind, of)))

    def asked(self, key: tuple[str, object]) -> object:
        """What the run says now, where it is asked something."""
        kind, of = key
        if kind == "outer":
            seen = Frame("", {})
            seen.around = self.closures.get(of[0])  # type: ignore[index]
            return join([names[of[1]] for names in seen.holders(of[1])])  # type: ignore[index]
        if kind == "alias":
            return self.aliases.of(of)  # type: ignore[arg-type]
        if kind == "hooks":
            return tuple(self.hooks.get(of, {}).items()) if of is not None else bool(self.hooks)  # type: ignore[call-overload]
        return self._ignore_dp

    # what the other rooms carry out

    @abstractmethod
    def run(self) -> Trace:
        """Run the entry as `__main__`."""

    @abstractmethod
    def run_module(self, file: SourceFile) -> None:
        """Run a module of the project, once."""

    @abstractmethod
    def block(self, body: list[ast.stmt]) -> bool:
        """Run statements; False when control does not come out at the end."""

    @abstractmethod
    def statement(self, node: ast.stmt) -> bool:
        """Run one statement; False when control does not pass it."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value) -> None:
        """Carry out `target = value`."""

    @abstractmethod
    def imports(self, node: ast.Import | ast.ImportFrom, file: str) -> set[str]:
        """The modules that an import statement of a file may run, the packages around them left out."""

    @abstractmethod
    def import_module(self, name: str, bound: str) -> Value:
        """Import `name`, give what `bound` (itself or its first part) is."""

    @abstractmethod
    def overridden(self, node: ast.expr, value: Value) -> Value:
        """What an expression gives of which the interpreter assumes something."""

    @abstractmethod
    def of_library(self, path: str) -> Value:
        """What a dotted path of a library is."""

    @abstractmethod
    def expression(self, node: ast.expr) -> Value:
        """Evaluate an expression."""

    @abstractmethod
    def attribute(self, base: Value, name: str) -> Value:
        """What `base.name` is."""

    @abstractmethod
    def of_batches(self, value: Value) -> frozenset[Origin]:
        """The batches made by hand that a value comes from."""

    @abstractmethod
    def own_length(self, part: ast.expr) -> bool:
        """Whether a slice ends where the samples of a batch say: on each rank elsewhere."""

    @abstractmethod
    def update(self, obj: Obj, value: Value) -> None:
        """Let a dict hold what other ones hold."""

    @abstractmethod
    def binary(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        """What an operator makes of two values."""

    @abstractmethod
    def per_sample(self, over: Value, numbered: bool = True) -> bool:
        """Whether iterating over a value gives one sample of a batch at a time, or where `numbered` the number of one."""

    @abstractmethod
    def knows_batch(self, func: Value) -> bool:
        """Whether what is called holds something of a batch, or reads a name that does and is not its own."""

    @abstractmethod
    def element(self, over: Value, node: ast.AST | None = None) -> Value:
        """What iterating over a value gives."""

    @abstractmethod
    def invoke(self, call: Call, func: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
        """What calling `func` gives."""

    @abstractmethod
    def invoke_one(self, call: Call, obj: Obj, args: list[Value], keywords: dict[str, Value], alike: frozenset[Obj] = frozenset()) -> Value:
        """What calling one object gives."""

    @abstractmethod
    def in_a_row(self, obj: New, call: Call, value: Value) -> Value | None:
        """What the modules that an object holds give one after another."""

    @abstractmethod
    def construct(self, cls: Class, node: ast.AST, args: list[Value], keywords: dict[str, Value]) -> Value:
        """An instance of a class, its constructor run."""

    @abstractmethod
    def hooked(self, hooks: list[Value], node: ast.AST, args: list[Value]) -> None:
        """Run functions that were registered to be called with `args`."""

    @abstractmethod
    def invoke_named(
        self,
        obj: New,
        name: str,
        node: ast.AST,
        args: list[Value] | None = None,
        keywords: dict[str, Value] | None = None,
        alike: frozenset[Obj] = frozenset(),
    ) -> Value | None:
        """What the method `name` of an object gives; None where it has none."""

    @abstractmethod
    def call_function(
        self, func: Func, node: ast.AST, args: list[Value], keywords: dict[str, Value], owners: frozenset[Obj] = frozenset()
    ) -> Value:
        """Run a function of the project at this call; as a method of any of `owners`, where there are more than its own."""


def _join_into(into: dict[str, Value], other: Mapping[str, Value]) -> None:
    for key, value in other.items():
        mine = into.get(key)
        if mine is None:
            into[key] = value
        elif mine is not value:
            into[key] = mine | value


def _may_be_ignored(node: ast.AST) -> bool:
    """Whether an expression is -100, asks a loss which target it ignores, or names a collator of transformers that fills up labels."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return value == 100 and type(value) is int
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Name(id=name):
            return name.startswith("DataCollatorFor") or (name == "ignore_index" and isinstance(node, ast.Attribute))
    return False
