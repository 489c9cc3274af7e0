"""Which values reach which expressions: the script is run once over abstract values.

Statements run in order (a name holds the unwrapped model before the wrap and the wrapped one after it), branches are joined,
loop bodies run until what they carry round has been seen, calls of the project's own functions are run at each call. What a
library does is told by `library.py`. What cannot be followed is `NOTHING`: no object, and the origins of all that went in.
"""

from __future__ import annotations

import ast
import builtins
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ddpify import comments
from ddpify.facts import drivers, library, named, scales, sources
from ddpify.facts.cuts import CUT, DRAW, PATHS, Cut
from ddpify.facts.flags import flags
from ddpify.facts.memory import Memory, Version
from ddpify.facts.model import (
    NOTHING,
    Call,
    Class,
    Decision,
    Ext,
    Func,
    Lit,
    Loop,
    Method,
    Module,
    New,
    Obj,
    Origin,
    Part,
    Pick,
    Stack,
    Store,
    Super,
    Trace,
    Tup,
    Value,
    forget_unions,
    join,
    just,
    ordered,
    origins_of,
)
from ddpify.facts.names import canonical
from ddpify.facts.record import Kind
from ddpify.facts.repeats import Log, Outcome, Outcomes, Recording, Seen, find, keep, merge
from ddpify.facts.tree import same
from ddpify.facts.writes import loop_carried
from ddpify.progress import doing
from ddpify.project import Project, SourceFile

_BUILTINS = frozenset(dir(builtins))
_DEPTH = 24
_BUDGET = 150_000
_TOLD = 500  # after so many statements
State = tuple[dict[str, Value] | None, Version]
ELEMENT = "[]"  # what any element of a container is
GIVEN = library.GIVEN
_KEPT_BY_CUTS = frozenset(("forward", "batch", "decided", "time", "listing"))
_OF_LOSSES = ("reduction", "weight", "ignore_index", "pos_weight")  # what losses average is told by
_ALL_NAMES = frozenset(("locals", "vars", "eval", "exec", "dir"))  # what reads names that are not written out
UNNAMED = "[?]"  # what was put in under keys that are not known


class Frame:
    """One running function (or module, where `local` is None)."""

    def __init__(self, file: str, local: dict[str, Value] | None, node: ast.AST | None = None) -> None:
        self.file = file
        self.local = local
        self.node = node
        self.made: Stack = ()
        self.globals: set[str] = set()
        self.returned = NOTHING
        self.yielded = NOTHING
        self.exits: list[Version] = []
        self.outer: Mapping[str, Value] = {}
        self.changed: set[str] = set()  # the names whose tensors are changed in place
        self.cls: Class | None = None
        self.owners: frozenset[Obj] = frozenset()  # whose method runs: all that it may be
        self.closure: tuple[ast.AST, Stack] | None = None  # what `outer` is known by


class Interpreter:
    """Runs a project abstractly.

    `wraps` names the targets that hold a DistributedDataParallel after a statement, `unwraps` the expressions that give the model inside,
    `settled` the expressions whose numbers are those of all ranks after a statement, `agreed` the branches that all ranks take alike,
    `shares` the loaders whose batches those numbers are computed from, `cuts` the expressions that make batches by hand. `turned` tells
    which expressions give all ranks' rows ("whole"), or numbers whose average over ranks is that of all samples ("mean").
    """

    def __init__(
        self,
        project: Project,
        wraps: Mapping[ast.stmt, tuple[ast.expr, ...]] | None = None,
        ignore_dp: bool = False,
        unwraps: frozenset[ast.expr] = frozenset(),
        settled: Mapping[ast.stmt, tuple[ast.expr, ...]] | None = None,
        agreed: frozenset[ast.AST] = frozenset(),
        shares: frozenset[New] | None = None,
        turned: Mapping[ast.expr, str] | None = None,
        cuts: Mapping[ast.AST, Cut] | None = None,
    ) -> None:
        self.project = project
        self.cuts = cuts or {}
        self.fed: dict[ast.AST, Value] = {}
        self.agreed = agreed
        self.shares = shares
        self.turned = turned or {}
        self.unwraps = unwraps
        self.settled = settled or {}
        self.wraps = wraps or {}
        self._ignore_dp = ignore_dp
        self.special: frozenset[ast.AST] = unwraps | self.cuts.keys() | self.turned.keys()
        self.objects = project.objects
        self.trace = Trace()
        self.memory = Memory()
        self.record = self.memory.record
        self.log = Log()
        self.outcomes: Outcomes = project.memo.setdefault(("outcomes", project.entry.tree), {})  # type: ignore[assignment]
        self.events = self.record.events
        self.frames: list[Frame] = []
        self.stack: Stack = ()
        self.loops: tuple[Loop, ...] = ()
        self.tests: tuple[tuple[ast.expr, Value], ...] = ()
        self.deciding: frozenset[Origin] = frozenset()
        self.no_grad = 0
        self.spent = 0
        self.order = 0
        self.calls: dict[tuple[ast.AST, Stack], Call] = {}
        self.stores: dict[tuple[ast.AST, Stack], Store] = {}
        self.closures: dict[tuple[ast.AST, Stack], Mapping[str, Value]] = {}
        self.driven: set[ast.AST] = set()  # the functions whose parameters are settings
        self.commands: set[ast.AST] = set()  # those that their group runs
        self.imported: set[str] = set()
        self.breaks: list[list[State]] = []
        self.classes: dict[ast.ClassDef, Class] = {}
        self.modules: dict[Class, bool] = {}  # whether classes are modules, as far as it was asked
        self.constants: dict[ast.Constant, Value] = {}
        self.keys: dict[Obj, set[str]] = {}
        self.shared_out: set[New] = set()
        self.said = ""  # what a comment says of the statement that runs
        self.hooks: dict[Obj, dict[ast.AST, tuple[str, Value]]] = {}  # what modules were given to call at their forward or backward
        self.heads: list[int] = []  # of the loops that run: the point at which a pass begins
        self.access: ast.expr | None = None  # the attribute that is being read: where a property runs

    # ------------------------------------------------------------------------------------------------ running

    def run(self) -> Trace:
        """Run the entry as `__main__`."""
        self._module(self.project.entry)
        self.memory.settle()
        forget_unions()
        self.trace.calls = sorted(self.calls.values(), key=lambda c: c.order)
        self.trace.stores = sorted(self.stores.values(), key=lambda s: s.order)
        return self.trace

    def _module(self, file: SourceFile) -> None:
        recording = self.memory.watch
        if file.name in self.imported:
            if isinstance(recording, Recording):
                recording.imports.add(file.name)
            return
        if recording is not None:
            recording.sound = False
        self.imported.add(file.name)
        saved = self.stack, self.loops, self.tests, self.no_grad, self.deciding
        if file is not self.project.entry:
            self.stack, self.loops, self.tests, self.no_grad, self.deciding = (*self.stack, file.tree), (), (), 0, frozenset()
        self.frames.append(Frame(file.name, None, file.tree))
        self.block(file.tree.body)
        self.frames.pop()
        self.stack, self.loops, self.tests, self.no_grad, self.deciding = saved

    @property
    def frame(self) -> Frame:
        """The function that is running."""
        return self.frames[-1]

    def block(self, body: list[ast.stmt]) -> bool:
        """Run statements; False when control does not come out at the end."""
        return all(map(self.statement, body))

    def statement(self, node: ast.stmt) -> bool:
        """Run one statement; False when control does not pass it."""
        self.spent += 1
        self.log.visited.append(node)
        if self.spent > _BUDGET:
            self.trace.exhausted = True
            return False
        if not self.spent % _TOLD:
            doing(f"following {self._file(self.frame.file).shown}")
        self.trace.visited.add(node)
        self.said = self._said(node)
        run = _STATEMENTS.get(type(node))
        alive = True if run is None else run(self, node)
        if alive and node in self.wraps:
            for target in self.wraps[node]:
                self._wrap(node, target)
        if alive and node in self.settled:
            for target in self.settled[node]:
                self._settle(target)
        return alive

    def _said(self, node: ast.stmt) -> str:
        """What a comment beside a statement says of how its value differs between ranks; empty without one."""
        file = self._file(self.frame.file)
        key = ("said", file.tree)
        if key not in self.project.memo:
            self.project.memo[key] = comments.placements(file.source.text)
        lines: Mapping[int, str] = self.project.memo[key]  # type: ignore[assignment]
        if not lines:
            return ""
        body = getattr(node, "body", None)
        last = body[0].lineno if isinstance(body, list) and body else (node.end_lineno or node.lineno) + 1
        said = next((lines[at] for at in range(node.lineno, last) if at in lines), "")
        if said:
            self.trace.believed[node] = f"what this line computes is {said}"
        return said

    def _as_said(self, value: Value) -> Value:
        return sources.as_said(self.said, value) if self.said else value

    def _settle(self, target: ast.expr) -> None:
        happened = len(self.events)
        value = self.expression(target)
        del self.events[happened:]  # the script does not read it here
        for obj in value.made():
            for name, held in self.memory.of(obj):
                self.memory[obj, name] = library.agreed(held, self.shares)
        if value.made():
            self.events.append((Kind.FILL, target, None, value))
        else:
            self.assign(target, library.agreed(value, self.shares))

    def _wrap(self, node: ast.stmt, target: ast.expr) -> None:
        value = self.expression(target)
        at = node if len(self.wraps.get(node, ())) == 1 else target  # several of one statement are several wrappers
        held = [o for o in value.made() if o.path in ("list", "dict")]
        if held and len(held) == len(value.objs):
            self._wrap_each(at, target, held)
            return
        wrapped = self.objects.new(library.DDP, at, self.stack)
        if value.objs and wrapped not in value.objs:
            self.memory[wrapped, "module"] = value
            self.assign(target, just(wrapped))

    def _wrap_each(self, at: ast.AST, target: ast.expr, held: list[New]) -> None:
        """`nets = [DistributedDataParallel(net) for net in nets]`, or the like for a dict."""
        made = self.objects.new(held[0].path, at, (*self.stack, target))
        for (owner, key), inner in list(self.memory.items()):
            if owner not in held:
                continue
            around = set[Obj]()
            for obj in inner.objs:
                wrapped = self.objects.new(library.DDP, getattr(obj, "node", at), (*self.stack, at))
                if not isinstance(obj, (New, Part)) or obj is wrapped:
                    around.add(obj)
                    continue
                self.memory[wrapped, "module"] = just(obj)
                around.add(wrapped)
            self.set_attribute(made, key, Value(frozenset(around), inner.origins), False)
            if key not in (ELEMENT, UNNAMED):
                self.keys.setdefault(made, set()).add(key)
        self.assign(target, just(made))

    # ------------------------------------------------------------------------------------------------ state

    def _fork(self) -> State:
        """The state as it is; what runs on writes to another."""
        local = self.frame.local
        return (None if local is None else dict(local)), self.memory.fork()

    def _end(self) -> State:
        """The state at the end of a branch."""
        return self.frame.local, self.memory.fork()

    def _restore(self, state: State) -> None:
        local, version = state
        self.frame.local = None if local is None else dict(local)
        self.memory.restore(version)

    def _merge(self, states: list[State]) -> bool:
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
            if frame.outer:
                self.asks("outer", (frame.closure, name))
                if name in frame.outer:
                    return frame.outer[name]
        held = self.memory.get((frame.file, name))
        if held is not None:
            return held
        if name == "__name__":
            return just(Lit(frame.file))
        return just(Ext(name)) if name in _BUILTINS else NOTHING

    def bind(self, name: str, value: Value) -> None:
        """Let a name hold `value` from here on; under a condition that depends on data, so does what was bound."""
        frame = self.frame
        value = self._decided(value)
        if frame.local is not None and name not in frame.globals:
            frame.local[name] = value
        else:
            self.memory[frame.file, name] = value

    def assign(self, target: ast.expr, value: Value) -> None:
        """Carry out `target = value`."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
            self._note(target, value)
            self.events.append((Kind.WRITE, target, None, value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item, part in zip(target.elts, self.unpack(value, target.elts), strict=True):
                self.assign(item, part)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Attribute):
            receiver = self.expression(target.value)
            self._store(target, receiver, value)
            self.events.append((Kind.WRITE, target, receiver, value))
            if target.attr == "requires_grad" and isinstance(target.value, ast.Name) and _one(value) is True:
                self._freed(target.value, receiver)
            strong = len(receiver.objs) == 1 or receiver.objs == self.frame.owners
            for obj in receiver.objs:
                self.set_attribute(obj, target.attr, value, strong)
                if isinstance(obj, New) and obj.path in library.DICTS:
                    self.keys.setdefault(obj, set()).add(target.attr)
                    self.asks("keys", obj)
                    self.memory[obj, ELEMENT] = join([self.memory.get((obj, k), NOTHING) for k in (*self.keys[obj], UNNAMED)])
        elif isinstance(target, ast.Subscript):
            receiver, index = self.expression(target.value), self.expression(target.slice)
            self._store(target, receiver, value)
            self.events.append((Kind.WRITE, target, receiver, value))
            if _all_of(target) and receiver.of_kind("drawn") and not value.of_kind("drawn"):
                self.assign(target.value, library.agreed(receiver))  # an order that was shuffled in place is now that of all ranks
                return
            if _all_of(target) and self._replaced(receiver, value):
                self.events.append((Kind.FILL, target, None, receiver))
                return
            for obj in receiver.objs:
                for key in _keys(index):
                    self.set_attribute(obj, key, value, len(receiver.objs) == 1)
                    self.keys.setdefault(obj, set()).add(key)
                if _keys(index) and isinstance(obj, New) and (self.is_a(obj, *library.DICTS) or self._listed(obj, _keys(index))):
                    self.asks("keys", obj)
                    self.memory[obj, ELEMENT] = join([self.memory.get((obj, k), NOTHING) for k in (*self.keys[obj], UNNAMED)])
                    continue
                self.set_attribute(obj, ELEMENT, value, False)
                self.set_attribute(obj, UNNAMED, value, False)
            origins = library.mixed([value, index], {}).origins
            if not any(o.kind == "batch" for o in origins):  # rows of all ranks, put where all ranks have them
                origins = frozenset(o for o in origins if o.kind != "whole")
            if not receiver.objs and origins and isinstance(target.value, ast.Name):
                self.bind(target.value.id, Value(receiver.objs, receiver.origins | origins, receiver.scale))
            elif not receiver.objs and origins and isinstance(target.value, ast.Attribute):
                for obj in self.expression(target.value.value).objs:
                    self.set_attribute(obj, target.value.attr, Value(receiver.objs, receiver.origins | origins, receiver.scale), False)

    def _replaced(self, receiver: Value, value: Value) -> bool:
        """Let a list hold nothing but other entries, where it is known to be but that list."""
        held = [o for o in receiver.made() if o.path == "list"]
        if len(held) != 1 or len(receiver.objs) != 1:
            return False
        for name, _ in self.memory.of(held[0]):
            self.memory[held[0], name] = self.element(value)
        return True

    def _freed(self, name: ast.Name, tensor: Value) -> None:
        """`w.requires_grad = True`: gradients are computed for a tensor from here on."""
        if not tensor.objs and not tensor.batches() and not tensor.of_kind("parameters") and not tensor.of_kind("forward"):
            self.bind(name.id, tensor | library.weight(self, name))

    def _listed(self, obj: New, places: list[str]) -> bool:
        """Whether places are among the entries that a list was written out with."""
        entries = getattr(obj.node, "elts", ()) if obj.path == "list" else ()
        self.keys.setdefault(obj, set()).update(str(i) for i in range(len(entries)))
        return all(place.isdigit() and int(place) < len(entries) for place in places)

    def set_attribute(self, obj: Obj, name: str, value: Value, strong: bool) -> None:
        """Let an object hold `value` as `name`; not `strong`: or what it held before."""
        if isinstance(obj, Module):
            key: tuple[object, str] = (obj.name, name)
        elif isinstance(obj, Super):
            key = (obj.owner, name)
        else:
            key = (obj, name)
        if strong:
            self.memory[key] = self._decided(value)
        else:
            self.memory.add(key, self._decided(value))

    def _decided(self, value: Value) -> Value:
        if not self.deciding:
            return value
        own = any(o.kind == "decided" for o in self.deciding) and value.scale in ("mean", "sum", "count", "total")
        return Value(value.objs, value.origins | self.deciding, "other" if own else value.scale)

    def _store(self, node: ast.expr, receiver: Value, value: Value) -> None:
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

    def _note(self, node: ast.AST, value: Value) -> None:
        self.log.noted.append((node, value))
        seen = self.trace.values.get(node)
        self.trace.values[node] = value if seen is None else seen | value

    # ------------------------------------------------------------------------------------------------ statements

    def _do_expr(self, node: ast.Expr) -> bool:
        self.expression(node.value)
        return not (isinstance(node.value, ast.Call) and self.trace.values.get(node.value.func, NOTHING).paths() & library.NO_RETURN)

    def _do_assign(self, node: ast.Assign) -> bool:
        value = self._as_said(self.expression(node.value))
        for target in node.targets:
            self.assign(target, self._kept(node, target, value))
        return True

    def _kept(self, node: ast.Assign | ast.AugAssign, target: ast.expr, value: Value) -> Value:
        """A value computed from a batch, marked where it becomes a part of what was there before: a later batch may meet it."""
        if not self.loops:
            return value
        if isinstance(target, ast.Subscript):
            chosen = not isinstance(target.slice, ast.Constant)
            part = chosen and bool(value.of_kind("batch") or self.expression(target.slice).of_kind("batch"))
        elif not value.of_kind("batch"):
            return value
        else:
            part = isinstance(node, ast.AugAssign) or self._mentions(node.value, target)
        if not part:
            return value
        return Value(value.objs, value.origins | {Origin("kept", node)}, value.scale)

    def _mentions(self, node: ast.expr, target: ast.expr) -> bool:
        key = ("mentions", target)
        if key not in self.project.memo:
            self.project.memo[key] = isinstance(target, (ast.Name, ast.Attribute)) and any(same(n, target) for n in ast.walk(node))
        return bool(self.project.memo[key])

    def _do_annassign(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.assign(node.target, self._as_said(self.expression(node.value)))
        return True

    def _do_augassign(self, node: ast.AugAssign) -> bool:
        old, value = self.expression(node.target), self.expression(node.value)
        self._note(node.target, old)
        new = self._binary(node.op, old, value)
        if isinstance(node.op, ast.Add) and any(o.path == "list" for o in old.made()):
            for obj in old.made():
                self.set_attribute(obj, ELEMENT, self.element(value), False)
            new = old
        self.assign(node.target, self._kept(node, node.target, new))
        return True

    def _do_return(self, node: ast.Return) -> bool:
        value = self.expression(node.value) if node.value is not None else NOTHING
        self.frame.returned = self.frame.returned | value
        self.frame.exits.append(self.memory.fork())
        return False

    def _do_raise(self, node: ast.Raise) -> bool:
        for part in (node.exc, node.cause):
            if part is not None:
                self.expression(part)
        return False

    def _do_assert(self, node: ast.Assert) -> bool:
        self.expression(node.test)
        return True

    def _do_delete(self, node: ast.Delete) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.expression(target.value)
            elif isinstance(target, ast.Name):
                self.events.append((Kind.WRITE, target, None, NOTHING))
        return True

    def _do_global(self, node: ast.Global) -> bool:
        self.frame.globals.update(node.names)
        return True

    def _do_jump(self, node: ast.stmt) -> bool:
        if self.breaks:
            self.breaks[-1].append(self._fork())
            if isinstance(node, ast.Continue):
                self.record.come_again(self.breaks[-1][-1][1].point)
        return False

    def _do_if(self, node: ast.If) -> bool:
        test = self._as_said(self.expression(node.test))
        if node in self.agreed:
            test = library.agreed(test)
        self._decide(node, test)
        known = self.truth(node.test, test)
        before, ends = self._fork(), []
        for branch, runs in ((node.body, known is not False), (node.orelse, known is not True)):
            if not runs:
                continue
            self._restore(before)
            saved, self.tests = (self.tests, self.deciding), (*self.tests, (node.test, test))
            self.deciding |= _deciding(test)
            if self.block(branch):
                ends.append(self._end())
            self.tests, self.deciding = saved
        return self._merge(ends)

    def _decide(self, node: ast.If | ast.While | ast.IfExp | ast.Try, test: Value) -> None:
        self.trace.decisions.append(Decision(node, self.frame.file, self.stack, test, self.loops))

    def truth(self, node: ast.expr, value: Value) -> bool | None:
        """Whether a condition is known."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            left, right = self.expression(node.left), self.expression(node.comparators[0])
            if isinstance(node.left, ast.Name) and node.left.id == "__name__":
                same = _one(left) == _one(right)
                return same if isinstance(node.ops[0], ast.Eq) else not same
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)) and (node.id if isinstance(node, ast.Name) else node.attr) == "TYPE_CHECKING":
            return False
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "hasattr")
            and len(node.args) == 2
        ):
            return self._wrapped_test(node)
        if isinstance(node, ast.Call) and self.trace.values.get(node.func, NOTHING).paths() & library.JOINED:
            return True  # once the script is converted
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, self.trace.values.get(node.operand, NOTHING))
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(v, self.trace.values.get(v, NOTHING)) for v in node.values]
            ends = isinstance(node.op, ast.Or)
            return ends if ends in parts else None if None in parts else not ends
        told = self._told(node)
        if told is not None:
            return told
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.Is, ast.IsNot))
            and isinstance(node.comparators[0], ast.Constant)
            and node.comparators[0].value is None
        ):
            left = self.trace.values.get(node.left, NOTHING) if not isinstance(node.left, ast.Name) else self.lookup(node.left.id)
            if not left.objs and left.scale is not None:
                return isinstance(node.ops[0], ast.IsNot)  # a tensor or a number
            if len(left.objs) == 1 and not left.origins:
                (only,) = left.objs
                none = isinstance(only, Lit) and only.value is None
                if none or isinstance(only, (New, Func, Class, Tup)):
                    return none if isinstance(node.ops[0], ast.Is) else not none
        return None

    def _told(self, node: ast.expr) -> bool | None:
        """Whether a test of a flag or phase that the script spells out (`train=True`, `for phase in ["train", "val"]`) is known."""
        if isinstance(node, ast.Name):
            flag = self.lookup(node.id)
            return bool(_one(flag)) if len(flag.objs) == 1 and flag.of_kind("told") else None
        if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name)):
            return None
        left, op, right = self.lookup(node.left.id), node.ops[0], node.comparators[0]
        if len(left.objs) != 1 or not left.of_kind("told"):
            return None
        if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) and isinstance(right, ast.Constant):
            return (_one(left) == right.value) == isinstance(op, (ast.Eq, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            values = [e.value for e in right.elts if isinstance(e, ast.Constant)]
            return (_one(left) in values) == isinstance(op, ast.In) if len(values) == len(right.elts) else None
        return None

    def _flag(self, node: ast.expr, value: Value) -> Value:
        """A test whose outcome is told, as the flag that it is."""
        told = self._told(node)
        if told is None and isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            told = self.truth(node, value)
        return value if told is None else Value(frozenset((Lit(told),)), frozenset((Origin("told", node),)))

    def _wrapped_test(self, node: ast.Call) -> bool | None:
        """Whether `isinstance(model, DataParallel)` or `hasattr(model, "module")` is known; or which sampler a loader has."""
        asked, what = self.expression(node.args[0]), self.trace.values.get(node.args[1], NOTHING)
        classes = {o for o in what.objs if isinstance(o, Class)}
        if (library.DISTRIBUTED_SAMPLER in what.paths() or (classes and node.func.id == "isinstance")) and asked.objs:  # type: ignore[attr-defined]
            kinds = {
                isinstance(o, New) and (o.path == library.DISTRIBUTED_SAMPLER or (o.cls is not None and o.cls in classes))
                for o in asked.objs
                if not isinstance(o, Method)
            }
            return kinds.pop() if len(kinds) == 1 and _sampler_of(node.args[0]) else None
        if what.paths() and what.paths() <= {"list", "dict"} and len(what.objs) == 1 and node.func.id == "isinstance":  # type: ignore[attr-defined]
            known = {o.path in what.paths() for o in asked.made() if o.path.startswith(("list", "dict", "torch.nn.")) or o.cls is not None}
            if asked.objs and len(asked.made()) == len(asked.objs) and len(known) == 1:
                return known.pop()
        if "list" in what.paths() and node.func.id == "isinstance" and self.cuts and not asked.objs and asked.scale == "sample":  # type: ignore[attr-defined]
            return False  # a batch, whatever it holds
        wrappers = [
            p
            for o in what.objs
            for p in ([o] if isinstance(o, Ext) else [e for i in getattr(o, "items", ()) for e in i.objs])
            if isinstance(p, Ext) and p.path in library.WRAPPERS
        ]
        if not asked.made() or len(asked.made()) != len(asked.objs) or not (wrappers or _one(what) == "module"):
            return None
        wrapped = {o.path in library.WRAPPERS for o in asked.made()}
        return wrapped.pop() if len(wrapped) == 1 else None

    def _loop(self, node: ast.stmt, body: list[ast.stmt], orelse: list[ast.stmt], enter: Callable[[], Loop | None], endless: bool) -> bool:
        """Run a loop's body; once more, where what one pass reads is something else after it."""
        zero = self._fork()
        self.breaks.append([])
        outer, around = self.loops, self.memory.watch
        first, carries = self.record.current + 1, True
        for again in (False, True):
            if not carries:
                break
            if again:
                self.record.go_on([version.point for _, version in self.breaks[-1]])
            before = None if self.frame.local is None else dict(self.frame.local)
            self.memory.watch = reads = Recording(self)
            loop = enter()
            head = self.heads.pop()
            self.loops = (*outer, loop) if loop is not None else outer
            alive = self.block(body)
            self.loops = outer
            ends = [zero, *self.breaks[-1]] + ([self._end()] if alive else [])
            back = [version.point for _, version in self.breaks[-1] if version.point in self.record.again]
            self.record.repeat(head, [*back, *([ends[-1][1].point] if alive else [])])
            if endless and (alive or self.breaks[-1]):
                ends = ends[1:]
            self._merge(ends)
            self.memory.watch = around
            if isinstance(around, Recording):
                around.add(reads)
            carries = not reads.sound or self._carries(node, reads, before)
        self.breaks.pop()
        self.record.ran(node, first)
        return self.block(orelse) if orelse else True

    def _carries(self, node: ast.stmt, reads: Recording, before: Mapping[str, Value] | None) -> bool:
        """Whether something that a pass of a loop has read from before it has another value for the next pass."""
        if any(self.memory.held(key) != reads.saved[key] for key in reads.asked_for()):
            return True
        if any(self.asked(key) != value for key, value in reads.other.items()):
            return True
        local = self.frame.local
        if local is None or before is None:
            return False
        key = ("loop-carried", node)
        if key not in self.project.memo:
            self.project.memo[key] = loop_carried(node)
        return any(local.get(name) != before.get(name) for name in self.project.memo[key])  # type: ignore[attr-defined]

    def _head(self) -> None:
        """Begin a pass of a loop: here control comes back to."""
        self.memory.fork()
        self.heads.append(self.record.current)

    def _do_for(self, node: ast.For) -> bool:
        phases = self._spelled(node.iter, node.body)
        if phases:
            return self._phases(node, phases)

        def enter() -> Loop:
            over = self.expression(node.iter)
            element = self.element(over, node)
            self._head()
            self.assign(node.target, element)
            self._note(node, element)
            return Loop(node, self.frame.file, over, element | self.fed.get(node, NOTHING))

        alive = self._loop(node, node.body, node.orelse, enter, False)
        self._rewritten(node)
        return alive

    def _rewritten(self, node: ast.For) -> None:
        """After `for key in d: d[key] = ...`, every element of the dict is what the statement gave it."""
        only = node.body[0]
        if not (len(node.body) == 1 and isinstance(only, ast.Assign) and isinstance(only.targets[0], ast.Subscript)):
            return
        target = only.targets[0]
        if not same(target.slice, node.target) or not same(target.value, node.iter):
            return
        value = self.trace.values.get(only.value, NOTHING)
        for obj in self.expression(node.iter).made():
            for name, _ in self.memory.of(obj):
                self.memory[obj, name] = value
        self.events.append((Kind.FILL, node, None, self.expression(node.iter)))

    def _spelled(self, node: ast.expr, body: list[ast.stmt]) -> list[tuple[ast.AST, Value]]:
        """The phases that a loop goes through, where the script spells them out: in a list, side by side in lists, or as keys of a dict."""
        if spelled_out(node):
            return [(item, told(self.expression(item))) for item in getattr(node, "elts", ())]
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._names(self.expression(node), body)
        if not isinstance(node, ast.Call) or node.keywords:
            return []
        func = node.func
        if isinstance(func, ast.Name) and func.id == "zip" and len(node.args) > 1:
            rows = [a.elts for a in node.args if isinstance(a, (ast.List, ast.Tuple))]
            if len(rows) != len(node.args) or len({len(r) for r in rows}) != 1 or not any(spelled_out(a) for a in node.args):
                return []
            return [(row[0], told(just(Tup(tuple(self.expression(e) for e in row))))) for row in zip(*rows, strict=True)]
        if not (isinstance(func, ast.Attribute) and func.attr == "items" and not node.args):
            return []
        held = self.expression(func.value).objs
        made = next(iter(held)) if len(held) == 1 else None
        if not (isinstance(made, New) and isinstance(made.node, ast.Dict) and 2 <= len(made.node.keys) <= 4):
            return []
        keys = [k for k in made.node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        values = [self.memory.get((made, str(k.value)), NOTHING) for k in keys]
        loaders = len(keys) == len(made.node.keys) and all(any(self.is_a(o, library.DATALOADER) for o in v.objs) for v in values)
        loaders |= len(keys) == len(made.node.keys) and self._makes_loaders(body)
        return [(k, told(just(Tup((self.expression(k), v))))) for k, v in zip(keys, values, strict=True)] if loaders else []

    def _names(self, value: Value, body: list[ast.stmt]) -> list[tuple[ast.AST, Value]]:
        """The entries of a list of names that was written out elsewhere, where a loop over it reads or sets attributes by them."""
        made = next(iter(value.objs)) if len(value.objs) == 1 else None
        if not (isinstance(made, New) and spelled_out(made.node)):
            return []
        calls = [n.func for s in body for n in ast.walk(s) if isinstance(n, ast.Call)]
        if not any(isinstance(f, ast.Name) and f.id in ("getattr", "setattr") for f in calls):
            return []
        items = getattr(made.node, "elts", [])
        whole = self.memory.get((made, ELEMENT), NOTHING)
        entries = [self.memory.get((made, str(i)), NOTHING) for i in range(len(items))]
        if not all(isinstance(_one(e), str) for e in entries) or whole.objs != join(entries).objs:
            return []  # names were added to it since
        return [(item, told(entry)) for item, entry in zip(items, entries, strict=True)]

    def _makes_loaders(self, body: list[ast.stmt]) -> bool:
        """Whether a loop makes loaders, each its own."""
        calls = [n.func for s in body for n in ast.walk(s) if isinstance(n, ast.Call)]
        names = [f for f in calls if isinstance(f, ast.Name) or (isinstance(f, ast.Attribute) and f.attr == "DataLoader")]
        return any(library.DATALOADER in self.expression(f).paths() for f in names)

    def _phases(self, node: ast.For, phases: list[tuple[ast.AST, Value]]) -> bool:
        """Run a loop over a few names or flags that are spelled out once for each."""
        over, outer, calls = self.expression(node.iter), self.loops, self.stack
        self.breaks.append([])
        first = self.record.current + 1
        self.memory.fork()
        for item, element in phases:
            self.assign(node.target, element)
            self.loops, self.stack = (*outer, Loop(node, self.frame.file, over, element)), (*calls, item)
            alive = self.block(node.body)
            self.loops, self.stack = outer, calls
            if not self._merge([*self.breaks[-1], *([self._end()] if alive else [])]):
                self.breaks.pop()
                return False
        self.breaks.pop()
        self.record.ran(node, first)
        return self.block(node.orelse) if node.orelse else True

    def _do_while(self, node: ast.While) -> bool:
        def enter() -> Loop:
            self._head()
            test = self._as_said(self.expression(node.test))
            self._decide(node, test)
            return Loop(node, self.frame.file, NOTHING, test | self.fed.get(node, NOTHING))

        return self._loop(node, node.body, node.orelse, enter, isinstance(node.test, ast.Constant) and bool(node.test.value))

    def _do_with(self, node: ast.With) -> bool:
        quiet = 0
        for item in node.items:
            value = self.expression(item.context_expr)
            if value.kinds() & library.NO_GRAD or any(_one(self.memory.get((o, "mode"), NOTHING)) is False for o in value.made()):
                quiet += 1
            if item.optional_vars is not None:
                entered = [self._invoke_named(o, "__enter__", node) for o in value.made() if o.cls is not None]
                made = join([e for e in entered if e is not None]) if any(e is not None for e in entered) else value
                if any(o.path == "generator" for o in value.made()):
                    made = self.element(value)
                self.assign(item.optional_vars, made)
        self.no_grad += quiet
        alive = self.block(node.body)
        self.no_grad -= quiet
        return alive

    def _do_match(self, node: ast.Match) -> bool:
        """`match subject:`, as a chain of branches."""
        subject = self.expression(node.subject)
        before, ends, whole = self._fork(), [], False
        for case in node.cases:
            self._restore(before)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(part, ast.MatchValue):
                    self.expression(part.value)
                elif isinstance(name, str):
                    self.bind(name, subject if part is case.pattern else self.element(subject))
            test = self.expression(case.guard) if case.guard is not None else NOTHING
            saved, self.tests = (self.tests, self.deciding), (*self.tests, (node.subject, subject))
            self.deciding |= _deciding(subject) | _deciding(test)
            if self.block(case.body):
                ends.append(self._end())
            self.tests, self.deciding = saved
            whole |= case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
        return self._merge(ends if whole else [*ends, before])

    def _do_try(self, node: ast.Try) -> bool:
        before = self._fork()
        alive = self.block(node.body)
        if alive and node.orelse:
            alive = self.block(node.orelse)
        if node.handlers:
            self._decide(node, NOTHING)
        ends = [self._end()] if alive else []
        after = self._fork()
        for handler in node.handlers:
            self._merge([before, after])
            if handler.type is not None:
                self.expression(handler.type)
            if handler.name:
                self.bind(handler.name, NOTHING)
            if self.block(handler.body):
                ends.append(self._end())
        alive = self._merge(ends)
        if node.finalbody:
            if not alive:
                self._merge([before])
            return self.block(node.finalbody) and alive
        return alive

    def _do_def(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        inside, made = isinstance(self.frame.node, ast.ClassDef), () if self.frame.local is None else self.stack
        value = just(self.objects.func(node, self.frame.file, None, self.frame.cls if inside else None, made))
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.expression(default)
        decorators = [(decorator, self.expression(decorator)) for decorator in node.decorator_list]
        if self.frame.local is not None:  # a method does not see the names of its class
            self._close(node, made, self.frame.outer if inside else self._seen_within())
        self.bind(node.name, value)
        self.bind(node.name, self._decorated(decorators, value))
        return True

    def _close(self, node: ast.AST, made: Stack, outer: Mapping[str, Value]) -> None:
        self.closures[node, made] = outer
        if isinstance(self.memory.watch, Recording):
            self.memory.watch.closures[node, made] = outer

    def _seen_within(self) -> Mapping[str, Value]:
        """The names that a function defined here sees."""
        local = {} if self.frame.local is None else self.frame.local
        return ChainMap(local, self.frame.outer) if self.frame.outer else local  # type: ignore[arg-type]

    def _decorated(self, decorators: list[tuple[ast.expr, Value]], value: Value) -> Value:
        """What a definition's name holds, once the project's own decorators have been given it."""
        if any(isinstance(d, ast.Name) and d.id in ("property", "staticmethod", "classmethod") for d, _ in decorators):
            return value
        for node, decorator in reversed(decorators):
            drivers.adopt(self, node, decorator, value)
            given = [self.apply(o, node, [value], {}) for o in ordered(decorator.objs) if isinstance(o, (Func, Class, New)) and _is_own(o)]
            value = drivers.grouped(self, node, decorator, next((v for v in [join(given)] if v.objs), value))
        return value

    def apply(self, obj: Obj, node: ast.AST, args: list[Value], keywords: dict[str, Value]) -> Value:
        """Call something of the project's own where no call is written: as a decorator, or by a library."""
        if isinstance(obj, Func):
            return self.call_function(obj, node, args, keywords)
        if isinstance(obj, Class):
            return self._construct(obj, node, args, keywords)
        return (self._invoke_named(obj, "__call__", node, args, keywords) if isinstance(obj, New) else None) or NOTHING

    def _do_class(self, node: ast.ClassDef) -> bool:
        cls = self.classes.get(node)
        if cls is None:
            cls = self.classes[node] = self.objects.cls(node, self.frame.file, tuple(self.expression(b) for b in node.bases))
        decorators = [(decorator, self.expression(decorator)) for decorator in node.decorator_list]
        self.frames.append(Frame(self.frame.file, {}, node))
        self.frame.outer, self.frame.cls = self.frames[-2].local or {}, cls
        self.block(node.body)
        body = self.frames.pop().local or {}
        for name, value in body.items():
            owned = frozenset(self.objects.bound(o, None, cls) if isinstance(o, Func) else o for o in value.objs)
            self.memory[cls, name] = Value(owned, value.origins, value.scale)
        self.bind(node.name, just(cls))
        self.bind(node.name, self._decorated(decorators, just(cls)))
        return True

    def _do_import(self, node: ast.Import) -> bool:
        for alias in node.names:
            top = alias.name if alias.asname else alias.name.partition(".")[0]
            self.bind(alias.asname or top, self._import(alias.name, top))
        return True

    def _do_from(self, node: ast.ImportFrom) -> bool:
        base = self._absolute(node, self.frame.file)
        if base is not None:
            self._packages(base)
        file = self.project.module(base) if base else None
        for alias in node.names:
            if alias.name == "*":
                self._star(base, file)
                continue
            value = NOTHING
            if file is not None:
                value = self.memory.get((base, alias.name), NOTHING)
            if not value.objs and base is not None and self.project.is_local(f"{base}.{alias.name}"):
                value = self._import(f"{base}.{alias.name}", f"{base}.{alias.name}")
            if not value.objs and file is None and base:
                value = just(Ext(canonical(f"{base}.{alias.name}")))
            self.bind(alias.asname or alias.name, value)
        return True

    def _star(self, base: str | None, file: SourceFile | None) -> None:
        if file is None or base is None:
            if base:
                for name in library.STARS.get(base, ()):
                    self.bind(name, just(Ext(canonical(f"{base}.{name}"))))
            return
        for name, value in self.memory.of(base):
            if not name.startswith("_"):
                self.bind(name, value)

    def imports(self, node: ast.Import | ast.ImportFrom, file: str) -> set[str]:
        """The modules that an import statement of a file may run, the packages around them left out."""
        if isinstance(node, ast.Import):
            return {alias.name for alias in node.names}
        base = self._absolute(node, file) or ""
        return {base, *(f"{base}.{alias.name}" for alias in node.names)}

    def _absolute(self, node: ast.ImportFrom, file: str) -> str | None:
        if not node.level:
            return node.module
        here = self._file(file)
        name = here.name if here is not self.project.entry else f"{self.project.package}.{here.name}".lstrip(".")
        parts = name.split(".")
        drop = node.level - (1 if here.is_package and here is not self.project.entry else 0)
        if drop > len(parts):  # more dots than packages: Python refuses it
            return None
        parts = parts[: len(parts) - drop]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def _file(self, name: str) -> SourceFile:
        return self.project.entry if name == self.project.entry.name else self.project.files[name]

    def _import(self, name: str, bound: str) -> Value:
        """Import `name`, give what `bound` (itself or its first part) is."""
        self._packages(name)
        return just(Module(bound)) if self.project.is_local(bound) else just(Ext(canonical(bound)))

    def _packages(self, name: str) -> None:
        """Run a local module, and the packages around it first."""
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            file = self.project.module(".".join(parts[:i]))
            if file is not None:
                self._module(file)

    # ------------------------------------------------------------------------------------------------ expressions

    def expression(self, node: ast.expr) -> Value:
        """Evaluate an expression."""
        run = _EXPRESSIONS.get(type(node))
        value = self._all(node) if run is None else run(self, node)
        if node in self.special:
            value = self._special(node, value)
        self.log.noted.append((node, value))
        seen = self.trace.values.get(node)
        if seen is not value:
            self.trace.values[node] = value if seen is None else seen | value
        return value

    def _special(self, node: ast.expr, value: Value) -> Value:
        """What an expression gives of which the interpreter was told something."""
        if node in self.cuts:
            value = self._cut(self.cuts[node], value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in library.FILLS:
                self._changed_in_place(node.func, NOTHING, value)
        if node in self.unwraps:
            value = join(
                [
                    self.memory.get((o, "module"), NOTHING) if isinstance(o, New) and o.path in library.WRAPPERS else just(o)
                    for o in value.objs
                ]
            )
        how = self.turned.get(node)
        return value if how is None else _turn(value, how, node)

    def _cut(self, cut: Cut, value: Value) -> Value:
        """A batch made by hand: of an abstract loader of its own, which feeds the loop that is running."""
        if cut.kind == "state":
            return _marked_as_sized(value, cut.node)
        inner = self.element(value)
        inside = any(self.is_module(o) for f in self.frames for o in f.owners)
        if inside or value.batches() or inner.batches() or value.of_kind("parameters"):
            return value
        made = self.objects.new(DRAW if cut.kind == "draw" else CUT, cut.node, self.stack)
        if cut.size is not None:
            size = self.trace.values.get(cut.size, NOTHING)
            self.memory[made, "batch_size"] = Value(size.objs, size.origins)
            if size.of_kind("world") and cut.kind == "draw":
                self.shared_out.add(made)
        batch = Value(frozenset(), frozenset(o for o in value.origins if o.kind in _KEPT_BY_CUTS) | {Origin("batch", made)}, "sample")
        if cut.kind in ("rows", "draw"):
            self._feed(batch)
        if cut.kind != "parts":
            return batch
        parts = self.objects.new("list", cut.node, self.stack)
        self.memory[parts, ELEMENT] = batch
        return just(parts)

    def _feed(self, batch: Value) -> None:
        """Let the innermost loop that runs be one over batches."""
        loop = next((loop for loop in reversed(self.loops) if isinstance(loop.node, (ast.For, ast.AsyncFor, ast.While))), None)
        if loop is not None:
            mine = Value(frozenset(), frozenset(o for o in batch.origins if o.kind == "batch"))
            self.fed[loop.node] = self.fed.get(loop.node, NOTHING) | mine
            self._note(loop.node, self.fed[loop.node])

    def timed(self, value: Value) -> str:
        """How a value is read through time, where it is of sequences side by side: down its rows, or along its columns; else empty."""
        kinds = {self.cuts[o.node].kind for o in value.batches() if isinstance(o, New) and o.node in self.cuts} if self.cuts else set()
        return kinds.pop() if len(kinds) == 1 and kinds <= {"columns", "lines"} else ""

    def _rows_of_rank(self, args: list[Value], result: Value) -> Value:
        """What a function of the script made of a batch with the rank's number: this rank's rows of it."""
        cuts = frozenset(o for a in args for o in a.batches() if isinstance(o, New) and o.path in PATHS)
        if not cuts or not (result.of_kind("rank") or any(i.of_kind("rank") for o in result.objs if isinstance(o, Tup) for i in o.items)):
            return result
        self.shared_out |= cuts
        return Value(frozenset(), frozenset(o for o in result.origins if o.kind not in ("rank", "world", "index", "from")), "sample")

    def _all(self, node: ast.AST) -> Value:
        """Something that only mixes its parts."""
        parts = [self.expression(c) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        return Value(frozenset(), origins_of(parts), scales.mixed(parts))

    def _ev_constant(self, node: ast.Constant) -> Value:
        value = self.constants.get(node)
        if value is None:
            value = self.constants[node] = just(Lit(node.value, id(node))) if not isinstance(node.value, bytes) else NOTHING
        return value

    def _ev_name(self, node: ast.Name) -> Value:
        value = self.lookup(node.id)
        self.events.append((Kind.READ, node, None, value))
        return value

    def _ev_attribute(self, node: ast.Attribute) -> Value:
        return self._read(self.expression(node.value), node)

    def _read(self, base: Value, node: ast.Attribute) -> Value:
        self.access = node
        value = self.attribute(base, node.attr)
        self.access = None
        self.events.append((Kind.READ, node, base, value))
        return value

    def attribute(self, base: Value, name: str) -> Value:
        """What `base.name` is."""
        if not base.objs or (name in ("device", "dtype") and all(isinstance(o, New) and o.path in library.COLLECTIONS for o in base.objs)):
            return library.tensor_attribute(base, name)
        held = join([self._attribute_of(obj, name, base) for obj in ordered(base.objs)])
        picked = self.cuts and name not in ("device", "dtype") and any(isinstance(o, (New, Part)) for o in base.objs)
        return held | Value(frozenset(), self._of_batches(base)) if picked else held

    def _attribute_of(self, obj: Obj, name: str, base: Value) -> Value:
        if name == "module" and self.ignore_dp and isinstance(obj, New) and self._was_inside(obj):
            return just(obj)
        if name == "param_groups" and isinstance(obj, New) and library.is_optimizer(self, obj):
            return self._groups(obj)
        if name == named.SPACE and isinstance(obj, (Module, New, Part, Class)):
            return just(self.objects.part(obj, name))
        if isinstance(obj, Ext):
            if obj.path in library.SETTINGS:
                return self.memory.get((obj, name)) or just(self.objects.part(obj, name))
            return just(Ext(canonical(f"{obj.path}.{name}")))
        if isinstance(obj, Pick):
            return named.attribute(self, obj, name)
        if isinstance(obj, Module):
            found = self.memory.get((obj.name, name))
            if found is None:
                full = f"{obj.name}.{name}"
                return self._import(full, full) if self.project.is_local(full) else NOTHING
            return found
        if isinstance(obj, Class):
            if name == "apply" and "torch.autograd.Function" in self.library_bases(obj):
                found = self.find(obj, "forward") or NOTHING
                return join([just(self.objects.bound(f, obj, obj)) for f in found.objs if isinstance(f, Func)])
            return self.find(obj, name) or NOTHING
        if isinstance(obj, Super):
            return self._super(obj, name)
        if isinstance(obj, New) and obj.cls is not None:
            return self._instance_attribute(obj, obj.cls, name)
        if isinstance(obj, (New, Part)):
            held = self.memory.get((obj, name)) if name != "batch_size" or not self.is_a(obj, library.DATALOADER) else None
            if held is not None:
                return held
            if isinstance(obj, New) and obj.path in library.HOLDERS and name not in library.OF_DICTS and (obj, UNNAMED) in self.memory:
                return self.memory[obj, UNNAMED] | just(self.objects.method(obj, name))  # put in by a key that is not known
            if isinstance(obj, New) and obj.path in library.WRAPPERS:
                inner = self.memory.get((obj, "module"), NOTHING)
                if name == "module":
                    return NOTHING
                if inner is not None and inner.objs and name not in library.MODULE_METHODS and obj not in inner.objs:
                    return self.attribute(inner, name)
            if name == "batch_size" and self.is_a(obj, library.DATALOADER):
                return Value(frozenset(), frozenset((Origin("share", obj),)))  # this rank's already, once the loader is sharded
            given = self.memory.get((obj, GIVEN), NOTHING)
            return Value(
                frozenset((self.objects.part(obj, name), self.objects.method(obj, name))), base.origins | given.origins, given.scale
            )
        if isinstance(obj, Tup) or (isinstance(obj, Lit) and obj.value is None):
            return NOTHING
        tensor = library.tensor_attribute(Value(frozenset(), base.origins, base.scale), name)
        if isinstance(obj, Lit):  # a number that a loop adds tensors to is a tensor after it
            return just(self.objects.method(obj, name)) | (tensor if base.scale or base.origins else NOTHING)
        return tensor

    def _was_inside(self, obj: New) -> bool:
        """Whether an object is a module without an attribute `module`: the script reads what its DataParallel holds."""
        own = (obj, "module") in self.memory or (obj.cls is not None and self.find(obj.cls, "module") is not None)
        network = self.is_module(obj) or obj.path in library.CONTAINERS or obj.path.startswith("torch.nn.")
        return network and not own and obj.path not in library.WRAPPERS

    def _groups(self, obj: New) -> Value:
        """The parameter groups of an optimizer: parts of it, made of the parameters that it was given."""
        made = self._parameters_in(self.memory.get((obj, "params"), NOTHING))
        return Value(frozenset((self.objects.part(obj, "param_groups"),)), made) | self.memory.get((obj, "param_groups"), NOTHING)

    def _parameters_in(self, value: Value, depth: int = 0) -> frozenset[Origin]:
        """Whose parameters a value holds, in lists and dicts, too."""
        out = frozenset(o for o in value.origins if o.kind in ("parameters", "weight"))
        inner = [self.memory.get((o, key), NOTHING) for o in value.objs for key in (ELEMENT, "params", "iterable")] if depth < 4 else []
        inner += [item for o in value.objs if isinstance(o, Tup) for item in o.items]
        return out.union(*(self._parameters_in(v, depth + 1) for v in inner))

    def _instance_attribute(self, obj: New, cls: Class, name: str) -> Value:
        held = self.memory.get((obj, name))
        if held is not None:
            return held
        found = self.find(cls, name)
        if found is not None:
            return self._bound(found, obj)
        if name == "__class__":
            return just(cls)
        if name in library.MODULE_METHODS or any(True for _ in self.library_bases(cls)):
            return Value(frozenset((self.objects.part(obj, name), self.objects.method(obj, name))))
        return just(self.objects.part(obj, name))

    def _bound(self, found: Value, obj: New) -> Value:
        out: list[Value] = []
        for f in found.objs:
            if not isinstance(f, Func) or f.owner is not None:
                out.append(just(f))
                continue
            kinds = _decorators(f.node)
            if "staticmethod" in kinds:
                out.append(just(f))
            elif "classmethod" in kinds and f.cls is not None:
                out.append(just(self.objects.bound(f, None, obj.cls)))
            elif "property" in kinds:
                out.append(self.call_function(self.objects.bound(f, obj, f.cls), self.access or f.node, [], {}))
            else:
                out.append(just(self.objects.bound(f, obj, f.cls)))
        return join(out) | Value(frozenset(), found.origins, found.scale)

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
        for base in cls.bases:
            for b in base.objs:
                if isinstance(b, Ext):
                    yield b.path
                elif isinstance(b, Class) and b is not cls:
                    yield from self.library_bases(b)

    def is_a(self, obj: object, *paths: str) -> bool:
        """Whether an object is an instance of one of the library classes named, or of a class derived from one."""
        if not isinstance(obj, New):
            return False
        return obj.path in paths or (obj.cls is not None and any(b in paths for b in self.library_bases(obj.cls)))

    def _super(self, obj: Super, name: str) -> Value:
        for base in obj.cls.bases:
            for b in base.objs:
                if isinstance(b, Class):
                    found = self.find(b, name)
                    if found is not None and isinstance(obj.owner, New):
                        return self._bound(found, obj.owner)
        return just(self.objects.method(obj.owner, name))

    def _ev_subscript(self, node: ast.Subscript) -> Value:
        base, index = self.expression(node.value), self.expression(node.slice)
        if self.cuts and any(isinstance(o, Tup) for o in index.objs):
            flow = library.mixed([index], {})
            index = Value(index.objs, flow.origins, flow.scale)
        value = self.item(base, index, node)
        self.events.append((Kind.READ, node, base, value))
        return value

    def item(self, base: Value, index: Value, node: ast.Subscript) -> Value:
        """What `base[index]` is."""
        if not base.objs and base.of_kind("labelled"):
            part = library.output_of(base, _one(index) == 0)
            return Value(frozenset(), part.origins | index.origins, part.scale)
        if not base.objs:
            whole = scales.indexed(base.scale, node.slice)
            if base.scale == "sample" and self._steps_through(node.slice):
                return Value(frozenset(), base.origins | {Origin("part", node)}, "sample")
            if base.scale == "sample" and self.cuts and (how := self.timed(base)):
                self._feed(base)
                rows = node.slice if how == "columns" else node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else None
                whole = "sample" if isinstance(rows, ast.Slice) else "other"
                return Value(
                    frozenset(), base.origins | frozenset(o for o in library.mixed([index], {}).origins if o.kind != "index"), whole
                )
            if base.scale is None and index.scale == "sample":
                return Value(frozenset(), base.origins | index.origins, "sample")  # the rows that a batch of indices picks
            if whole == "sample" and not isinstance(node.slice, (ast.Tuple, ast.Slice, ast.Constant)):
                if index.scale in ("sample", "weighted"):  # a mask or a choice of rows: how many, differs from rank to rank
                    whole = "weighted"
                elif (index.of_kind("random") or index.of_kind("index")) and base.of_kind("forward"):
                    whole = "other"  # rows paired with other rows
                elif index.scale == "other":
                    whole = "other"
            if base.scale == "count" and whole is None:
                return library.agreed(Value(frozenset(), base.origins | index.origins))  # a length that is no batch's
            rows = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            if base.scale is None and self._own_length(rows):
                ends = library.mixed([self.trace.values.get(n, NOTHING) for n in ast.iter_child_nodes(rows)], {})
                return Value(frozenset(), base.origins | ends.origins, "sample")  # as many rows as the batch has
            cut = whole == "sample" and isinstance(node.slice, ast.Tuple) and any(self._own_length(s) for s in node.slice.elts)
            return Value(frozenset(), base.origins | index.origins | ({Origin("turned", node)} if cut else set()), whole)
        out = []
        for obj in base.objs:
            if isinstance(obj, New) and obj.path == library.PARTS:
                out.append(self.memory[obj, "whole" if isinstance(_one(index), int) else ELEMENT])
            elif isinstance(obj, Tup):
                at = _one(index)
                if isinstance(at, int) and -len(obj.items) <= at < len(obj.items):
                    out.append(obj.items[at])
                else:
                    out.append(join(obj.items))
            elif isinstance(obj, Part) and obj.name == named.SPACE:
                out.append(named.in_space(self, obj, _keys(index)))
            elif isinstance(obj, Ext) and obj.path == "sys.modules" and _keys(index):
                out.append(join([just(Module(key)) if key == self.frame.file else self._import(key, key) for key in _keys(index)]))
            elif isinstance(obj, Ext):
                kind = library.ENVIRONMENT.get(str(_one(index))) if obj.path == "os.environ" else None
                if obj.path.endswith(f".{named.SPACE}"):
                    out += [just(Ext(canonical(f"{obj.path.removesuffix(named.SPACE)}{key}"))) for key in _keys(index) or ["*"]]
                    continue
                out.append(Value(frozenset(), frozenset((Origin(kind),))) if kind else just(Ext(f"{obj.path}[]")))
            elif isinstance(obj, New) and obj.path == "list" and isinstance(node.slice, ast.Slice) and self._of_models(obj):
                out.append(just(obj))  # some of its networks
            elif isinstance(obj, New) and obj.path in library.WRAPPERS:
                out.append(self.item(self.memory.get((obj, "module"), NOTHING), index, node))
            elif isinstance(obj, (New, Part)):
                held = [self.memory[obj, key] for key in _keys(index) if (obj, key) in self.memory]
                if not held and (obj, ELEMENT) in self.memory:
                    held = [self.memory[obj, ELEMENT]]
                if not held and isinstance(obj, (New, Part)):
                    keys = _keys(index)
                    held = (
                        [just(self.objects.part(obj, keys[0]))] if keys else [Value(frozenset(), base.origins | index.origins, base.scale)]
                    )
                    if self.is_a(obj, library.DATALOADER):
                        held = [NOTHING]
                out += held
        origins = base.origins
        if base.of_kind("parameters") and isinstance(_one(index), str) and _one(index) != "params":
            origins = frozenset(o for o in origins if o.kind not in ("parameters", "weight"))  # a setting of a group
        return join(out) | Value(frozenset(), origins | self._of_batches(index), base.scale)

    def _steps_through(self, rows: ast.expr) -> bool:
        """Whether `x[i : i + n]` takes a batch's rows part by part, in a loop over `range(0, len(x), n)`."""
        if not (isinstance(rows, ast.Slice) and isinstance(rows.lower, ast.Name) and isinstance(rows.upper, ast.BinOp)):
            return False
        first, more = rows.upper.left, rows.upper.right
        if not isinstance(rows.upper.op, ast.Add) or not same(first, rows.lower):
            return False
        for loop in self.trace.values.get(rows.lower, NOTHING).of_kind("index"):
            over = loop.iter if isinstance(loop, ast.For) else None
            if isinstance(over, ast.Call) and len(over.args) == 3 and same(over.args[2], more):
                return self.trace.values.get(over.args[1], NOTHING).scale == "count"
        return False

    def _of_models(self, obj: New) -> bool:
        return any(
            isinstance(o, New) and (self.is_module(o) or o.path in library.WRAPPERS or o.path.startswith("torch.nn."))
            for o in self.memory.get((obj, ELEMENT), NOTHING).objs
        )

    def _of_batches(self, value: Value) -> frozenset[Origin]:
        """The batches made by hand that a value comes from."""
        return frozenset(o for o in value.origins if o.kind == "batch") if self.cuts else frozenset()

    def _own_length(self, part: ast.expr) -> bool:
        """Whether a slice ends where the samples of a batch say: on each rank elsewhere."""
        ends = [e for e in (part.lower, part.upper) if e is not None] if isinstance(part, ast.Slice) else []
        return any(self.trace.values.get(e, NOTHING).of_kind("batch") for e in ends)

    def _ev_tuple(self, node: ast.Tuple) -> Value:
        items = tuple(self.expression(e) for e in node.elts)
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return self._container(
                "list", node, [self.element(i) if isinstance(e, ast.Starred) else i for e, i in zip(node.elts, items, strict=True)]
            )
        return just(Tup(items))

    def _ev_list(self, node: ast.List | ast.Set) -> Value:
        items = [self.element(self.expression(e.value)) if isinstance(e, ast.Starred) else self.expression(e) for e in node.elts]
        return self._container("list", node, items)

    def _container(self, kind: str, node: ast.AST, items: list[Value]) -> Value:
        obj = self.objects.new(kind, node, self.stack)
        self.memory[obj, ELEMENT] = join(items)
        for i, item in enumerate(items):
            self.memory[obj, str(i)] = item
        made = Value(frozenset((obj,)), origins_of(items))
        self.events.append((Kind.MAKE, node, None, made))
        return made

    def _ev_dict(self, node: ast.Dict) -> Value:
        obj = self.objects.new("dict", node, self.stack)
        self.memory[obj, ELEMENT] = NOTHING
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.expression(item)
            if key is None:
                self._update(obj, value)
                continue
            named = _keys(self.expression(key))
            for name in named:
                self.memory[obj, name] = value
                self.keys.setdefault(obj, set()).add(name)
            if not named:
                self.set_attribute(obj, UNNAMED, value, False)
            self.memory[obj, ELEMENT] = self.memory[obj, ELEMENT] | value
        made = just(obj)
        self.events.append((Kind.MAKE, node, None, made))
        return made

    def _update(self, obj: Obj, value: Value) -> None:
        for other in value.objs:
            for name, held in self.memory.of(other):
                self.set_attribute(obj, name, held, name not in (ELEMENT, UNNAMED))
                self.keys.setdefault(obj, set()).add(name)

    def _ev_ifexp(self, node: ast.IfExp) -> Value:
        test = self.expression(node.test)
        self._decide(node, test)
        known = self.truth(node.test, test)
        parts = [self.expression(n) for n, runs in ((node.body, known is not False), (node.orelse, known is not True)) if runs]
        return join(parts) | Value(frozenset(), _deciding(test) if len(parts) == 2 else frozenset())

    def _ev_boolop(self, node: ast.BoolOp) -> Value:
        return join([self.expression(v) for v in node.values])

    def _ev_binop(self, node: ast.BinOp) -> Value:
        left, right = self.expression(node.left), self.expression(node.right)
        value = self._binary(node.op, left, right)
        literal = isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)
        if isinstance(node.op, ast.Mult) and not literal and any(o.path == "list" for v in (left, right) for o in v.made()):
            return _marked_as_sized(value, node)  # so many entries
        return value

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        texts = [o for o in (_one(left), _one(right)) if isinstance(o, str)]
        if isinstance(op, ast.Add) and (joined := _texts([left, right])):
            return Value(joined, left.origins | right.origins)
        if isinstance(op, ast.Add) and texts and (like := named.text(self, [left, right])):
            return Value(like, left.origins | right.origins)
        origins = library.mixed([left, right], {}).origins | _sources(left) | _sources(right)
        if isinstance(op, ast.Add):
            tuples = [o for v in (left, right) for o in v.objs if isinstance(o, Tup)]
            if len(tuples) == 2 and len(left.objs) == len(right.objs) == 1:
                return Value(frozenset((Tup(tuples[0].items + tuples[1].items),)))
            lists = frozenset(o for v in (left, right) for o in v.made() if o.path == "list")
            if lists:
                return Value(lists, origins)
        if isinstance(op, ast.Div) and texts:
            return Value(left.objs, origins)
        scale = "other" if scales.uneven([left, right]) else scales.binary(op, left.scale, right.scale)
        if scales.coupled(left.scale, right.scale):
            origins |= {Origin("coupled")}
        if isinstance(op, ast.Div) and (left.scale, right.scale) == ("sum", "count") and not right.of_kind("part"):
            origins = frozenset(o for o in origins if o.kind != "part")  # a part's total, of all rows: the parts add up to the average
        if isinstance(op, ast.Mult) and any(a.scale == "weighted" and b.of_kind("world") for a, b in ((left, right), (right, left))):
            scale = "mean"  # an average by weights, times this rank's part of them
        if isinstance(op, ast.Mult) and scale == "count" and any(v.scale is None and v.of_kind("world") for v in (left, right)):
            origins, scale = (
                frozenset(o for o in origins if o.kind != "batch"),
                None,
            )  # all ranks' batches have one length: this counts them all
        if isinstance(op, ast.Div) and right.scale is None and self._is_batch_size(right, left.of_kind("batch")):
            if left.scale == "sum":
                scale = "mean"
            elif left.scale == "count":  # how full a batch is: the same on all ranks
                origins, scale = frozenset(o for o in origins if o.kind != "batch"), None
        if scale in ("mean", "sum", "count", "total") and any(v.scale is None and v.of_kind("decided") for v in (left, right)):
            scale = "other"  # a number chosen by a rank's own batch
        constant = right if left.scale == "sum" else left
        if scale == "sum" and isinstance(op, (ast.Add, ast.Sub)) and constant.scale is None and _one(constant) != 0:
            origins |= {Origin("offset")}  # a total and something more, which totals over ranks would count several times
        if isinstance(op, ast.Mult) and scale == "sum" and any(v.scale is None and _is_world(v) for v in (left, right)):
            scale = "mean"  # a rank's total, times the number of ranks
        if scale == "sum" and isinstance(op, (ast.Add, ast.Sub)) and constant.scale is None and _of_all(constant):
            scale = "other"  # a total and a term that is the same on every rank: no one factor fits
        return Value(frozenset(), origins, scale)

    def add(self, left: Value, right: Value) -> Value:
        """What `left + right` is."""
        return self._binary(ast.Add(), left, right)

    def _is_batch_size(self, value: Value, loaders: frozenset[Any]) -> bool:
        """Whether a number is the batch size of one of `loaders`."""
        mine = {*value.objs, *value.of_kind("from")}
        if {o.kind for o in value.origins} == {"share"} and value.of_kind("share") <= loaders:
            return True  # the loader's own number
        batches = [o for loader in loaders for o in self.memory.get((loader, "batch_sampler"), NOTHING).made()]
        for loader in (*loaders, *batches):
            size = self.memory.get((loader, "batch_size"))
            if (
                size is not None
                and mine & {*size.objs, *size.of_kind("from")}
                and bool(size.of_kind("world")) == bool(value.of_kind("world"))
            ):
                return True
        return False

    def _ev_compare(self, node: ast.Compare) -> Value:
        parts = [self.expression(node.left), *(self.expression(c) for c in node.comparators)]
        flag = self._flag(node, NOTHING)
        if flag.objs or all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return flag
        origins = origins_of(parts) | frozenset(s for p in parts for s in _sources(p))
        if {p.scale for p in parts} <= {None, "count"} and any(p.scale == "count" for p in parts):
            return Value(frozenset(), frozenset(o for o in origins if o.kind != "batch"))  # the lengths of batches: all ranks' are equal
        return Value(frozenset(), origins, scales.compared(p.scale for p in parts))

    def _ev_unary(self, node: ast.UnaryOp) -> Value:
        inner = self.expression(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(_one(inner), (int, float)):
            return just(Lit(-_one(inner), id(node)))  # type: ignore[operator]
        return Value(
            frozenset(),
            inner.origins | _sources(inner),
            inner.scale if isinstance(node.op, (ast.USub, ast.UAdd)) else scales.mixed([inner]),
        )

    def _ev_lambda(self, node: ast.Lambda) -> Value:
        if self.frame.local is not None:
            self._close(node, self.stack, self._seen_within())
        return just(self.objects.func(node, self.frame.file, made=() if self.frame.local is None else self.stack))

    def _ev_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        moved = self._moved(node)
        if moved is not None:
            return moved
        saved, outer = (dict(self.frame.local) if self.frame.local is not None else None), self.loops
        if isinstance(node, ast.DictComp) and len(node.generators) == 1 and spelled_out(node.generators[0].iter):
            return self._spelled_dict(node, saved)
        chosen: frozenset[Origin] = frozenset()
        samples = False
        for generator in node.generators:
            over = self.expression(generator.iter)
            element = self.element(over, node)
            samples |= self.per_sample(over)
            self.loops = (*self.loops, Loop(node, self.frame.file, over, element))
            self.assign(generator.target, element)
            for test in generator.ifs:
                chosen |= frozenset(Origin("decided", o.of) for o in self.expression(test).origins if o.kind in ("batch", "decided"))
        if isinstance(node, ast.DictComp):
            key, item = self.expression(node.key), self.expression(node.value)
            keys = _keys(key)
        else:
            item, keys = self.expression(node.elt), []
        self.loops = outer
        if saved is not None:
            self.frame.local = saved
        obj = self.objects.new("dict" if isinstance(node, ast.DictComp) else "list", node, self.stack)
        self.memory[obj, ELEMENT] = item
        for k in keys:
            self.memory[obj, k] = item
        made = Value(frozenset((obj,)), item.origins | chosen, "sample" if samples else None)
        self.events.append((Kind.MAKE, node, None, made))
        return made

    def _moved(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value | None:
        """`[part.to(device) for part in batch]`: a batch whose parts are somewhere else is the batch."""
        first = node.generators[0]
        if len(node.generators) > 1 or first.ifs or isinstance(node, ast.SetComp):
            return None
        over, part, whole = first.iter, node.value if isinstance(node, ast.DictComp) else node.elt, first.target
        if isinstance(node, ast.DictComp):
            items = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items" and not over.args
            if not items or not isinstance(whole, ast.Tuple) or len(whole.elts) != 2 or not same(node.key, whole.elts[0]):
                return None
            over, whole = over.func.value, whole.elts[1]  # type: ignore[attr-defined]
        while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("to", "cuda", "cpu"):
            part = part.func.value
        if not isinstance(whole, ast.Name) or not same(part, whole) or isinstance(over, ast.Call):
            return None
        batch = self.expression(over)
        return batch if not batch.objs and batch.scale == "sample" else None

    def per_sample(self, over: Value) -> bool:
        """Whether iterating over a value gives one sample of a batch at a time."""
        if not over.objs:
            return over.scale == "sample"
        inner = [self.memory.get((o, "iterable"), NOTHING) for o in over.made() if o.path == "enumerate"]
        inner += [v for o in over.made() if o.path == "zip" for v in self._zipped(o)]
        return any(self.per_sample(v) for v in inner)

    def _spelled_dict(self, node: ast.DictComp, saved: dict[str, Value] | None) -> Value:
        """`{phase: DataLoader(...) for phase in ["train", "val"]}`: one entry for each name."""
        obj = self.objects.new("dict", node, self.stack)
        self.memory[obj, ELEMENT] = NOTHING
        outer, calls, origins = self.loops, self.stack, frozenset[Origin]()
        over = self.expression(node.generators[0].iter)
        for part in getattr(node.generators[0].iter, "elts", ()):
            element = told(self.expression(part))
            self.loops, self.stack = (*outer, Loop(node, self.frame.file, over, element)), (*calls, part)
            self.assign(node.generators[0].target, element)
            key, item = self.expression(node.key), self.expression(node.value)
            self.loops, self.stack = outer, calls
            for name in _keys(key):
                self.memory[obj, name] = item
            self.memory[obj, ELEMENT] = self.memory[obj, ELEMENT] | item
            origins |= item.origins
        if saved is not None:
            self.frame.local = saved
        return Value(frozenset((obj,)), origins)

    def _ev_joined(self, node: ast.JoinedStr) -> Value:
        parts = [self.expression(v.value) for v in node.values if isinstance(v, ast.FormattedValue)]
        plain = [v for v in node.values if not isinstance(v, ast.FormattedValue) or (v.conversion == -1 and v.format_spec is None)]
        pieces = [self.expression(v.value) if isinstance(v, ast.FormattedValue) else self.expression(v) for v in plain]
        return Value(
            (_texts(pieces) or named.text(self, pieces)) if len(plain) == len(node.values) else frozenset(),
            origins_of(parts) | frozenset(s for p in parts for s in _sources(p)),
            scales.mixed(parts),
        )

    def _ev_named(self, node: ast.NamedExpr) -> Value:
        value = self.expression(node.value)
        self.assign(node.target, value)
        return value

    def _ev_starred(self, node: ast.Starred) -> Value:
        return self.expression(node.value)

    def _ev_yield(self, node: ast.Yield) -> Value:
        if node.value is not None:
            self.frame.yielded = self.frame.yielded | self.expression(node.value)
        return NOTHING

    def _ev_yield_from(self, node: ast.YieldFrom) -> Value:
        self.frame.yielded = self.frame.yielded | self.element(self.expression(node.value))
        return NOTHING

    def _ev_await(self, node: ast.Await) -> Value:
        return self.expression(node.value)

    # ------------------------------------------------------------------------------------------------ iteration

    def unpack(self, value: Value, targets: list[ast.expr]) -> list[Value]:
        """The parts of `a, b = value`."""
        out = [NOTHING] * len(targets)
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        fitting = {o for o in value.objs if isinstance(o, Tup) and len(o.items) == len(targets)} if star is None else set()
        for obj in value.objs or (None,):
            if fitting and isinstance(obj, Tup) and obj not in fitting:
                continue  # what a function returns in another case
            if isinstance(obj, New) and obj.path == library.PARTS:
                parts = [self.memory[obj, "whole"]] * len(targets)
            elif obj in fitting and isinstance(obj, Tup):
                parts = list(obj.items)
            elif isinstance(obj, New) and all((obj, str(i)) in self.memory for i in range(len(targets))):
                parts = [self.memory[obj, str(i)] for i in range(len(targets))]
            elif obj is None and value.scale == "count" and star is None and len(targets) > 1:  # rows, columns = x.shape
                length = library.agreed(Value(frozenset(), value.origins))
                parts = [value, *(length for _ in targets[1:])]
            else:
                part = self.element(Value(frozenset() if obj is None else frozenset((obj,)), value.origins, value.scale))
                parts = [part] * len(targets)
                if isinstance(obj, New) and not part.objs:
                    parts = [Value(frozenset((self.objects.part(obj, str(i)),)), part.origins, part.scale) for i in range(len(targets))]
            out = [a | b for a, b in zip(out, parts, strict=True)]
        return out

    def element(self, over: Value, node: ast.AST | None = None) -> Value:
        """What iterating over a value gives."""
        if not over.objs:
            if over.scale == "sample" and node is not None:
                return Value(frozenset(), over.origins, "other")  # one sample at a time
            return over
        rest = over.origins
        if all(self.is_a(o, library.DATALOADER) for o in over.objs):  # data made from the batches of another loader is data of its own
            rest = frozenset(o for o in rest if o.kind not in ("batch", "forward"))
        return join([self._element_of(obj, over, node) for obj in over.objs]) | Value(frozenset(), rest)

    def _element_of(self, obj: Obj, over: Value, node: ast.AST | None) -> Value:
        if isinstance(obj, Tup):
            return join(obj.items)
        if self.is_a(obj, library.DATALOADER):
            return Value(frozenset(), frozenset((Origin("batch", obj),)), "sample")
        if isinstance(obj, New) and obj.path in library.WRAPPERS:
            return self.element(self.memory.get((obj, "module"), NOTHING), node)
        if isinstance(obj, New):
            if obj.path in ("range",):
                return Value(frozenset(), frozenset((Origin("index", node),)) | over.origins)
            inner = self.memory.get((obj, "iterable"))
            if obj.path == "enumerate" and inner is not None:
                return just(Tup((Value(frozenset(), frozenset((Origin("index", node),))), self.element(inner, node))))
            if obj.path == library.PARTS:
                return self.memory[obj, ELEMENT]
            if obj.path == "zip":
                return just(Tup(tuple(self.element(i, node) for i in self._zipped(obj))))
            if inner is not None:
                return self.element(inner, node)
            if self.is_a(obj, *library.DICTS) and (obj, ELEMENT) in self.memory and self._own(obj, "__iter__") is None:
                return self._keys_of(obj)
            if (obj, ELEMENT) in self.memory:
                return self.memory[obj, ELEMENT]
            if obj.cls is not None:
                made = self._invoke_named(obj, "__iter__", obj.node)
                if made is not None:
                    if any(o is obj for o in made.objs):
                        return self._invoke_named(obj, "__next__", obj.node) or NOTHING
                    return self.element(made, node)
        if isinstance(obj, (New, Part)):
            return Value(frozenset((self.objects.part(obj, ELEMENT),)), over.origins, over.scale)
        return Value(frozenset(), over.origins, over.scale)

    def _own(self, obj: New, name: str) -> Value | None:
        return self.find(obj.cls, name) if obj.cls is not None else None

    def _keys_of(self, obj: New) -> Value:
        """The keys of a dict, where they are known names."""
        self.asks("keys", obj)
        if (obj, UNNAMED) in self.memory or not self.keys.get(obj):
            return Value(frozenset(), self.memory[obj, ELEMENT].origins)
        return Value(frozenset(Lit(key) for key in self.keys[obj]))

    def _zipped(self, obj: New) -> list[Value]:
        out: list[Value] = []
        while (obj, str(len(out))) in self.memory:
            out.append(self.memory[obj, str(len(out))])
        return out

    # ------------------------------------------------------------------------------------------------ calls

    def _ev_call(self, node: ast.Call) -> Value:
        receiver = NOTHING
        if isinstance(node.func, ast.Attribute):
            receiver = self.expression(node.func.value)
            func = self._read(receiver, node.func)
            self._note(node.func, func)
        else:
            func = self.expression(node.func)
        args: list[Value] = []
        for a in node.args:
            value = self._filled(self.expression(a))
            if isinstance(a, ast.Starred):
                (only,) = value.objs if len(value.objs) == 1 else (None,)
                args += only.items if isinstance(only, Tup) else [self.element(value)]
            else:
                args.append(value)
        keywords: dict[str, Value] = {}
        for k in node.keywords:
            value = self.expression(k.value)
            if k.arg is None:
                keywords.update(self._spread(value))
            else:
                keywords[k.arg] = value
        call, seen = self._record(node, func, args, keywords, receiver)
        result = self.invoke(call, func, args, keywords)
        if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and not receiver.objs:
            self._changed_in_place(node.func, receiver, result)
        call.result = call.result | result
        self.events.append((Kind.CALL, node, receiver, result))
        self.order += 1
        call.last = seen.last = self.order
        seen.result = result
        return result

    def _changed_in_place(self, method: ast.Attribute, was: Value, result: Value) -> None:
        """`x.copy_(rows)`, `x.resize_(n, 8).normal_()`, `self.x.data.copy_(rows)`: what holds the tensor holds the result from here on."""
        inner, filled = refilled(method.value), method.attr in library.REFILLS and not was.of_kind("parameters")
        if isinstance(inner, ast.Name) and (inner is method.value or filled):
            self.bind(inner.id, result)
            self.frame.changed.add(inner.id)
        elif isinstance(inner, ast.Attribute) and result.batches() and filled:
            owners = self.expression(inner.value).objs
            for obj in owners:
                self.set_attribute(obj, inner.attr, Value(frozenset(), result.origins, result.scale), len(owners) == 1)

    def _filled(self, value: Value) -> Value:
        """A container with the origins of what it holds by now."""
        for obj in value.objs:
            if isinstance(obj, New) and obj.path in library.COLLECTIONS:
                held = self.memory.get((obj, ELEMENT))
                if held is not None and held.origins:
                    value = Value(value.objs, value.origins | held.origins, value.scale or held.scale)
        return value

    def _spread(self, value: Value) -> dict[str, Value]:
        """The keywords that `**value` passes, as far as known; `**` holds the whole."""
        out = {"**": value}
        for obj in value.objs:
            for name, held in self.memory.of(obj):
                if name != ELEMENT:
                    out[name] = out[name] | held if name in out else held
        return out

    def _record(self, node: ast.Call, func: Value, args: list[Value], keywords: dict[str, Value], receiver: Value) -> tuple[Call, Seen]:
        self.order += 1
        call = self.calls.get((node, self.stack))
        if call is None:
            here = self.frame.file, self.stack, self.order
            call = Call(node, *here, func, args, dict(keywords), self.loops, self.tests, self.no_grad > 0, receiver)
            self.calls[node, self.stack] = call
            call.now = receiver
            seen = Seen(call, func, args, keywords, receiver, self.loops, self.order, self.no_grad > 0)
        else:
            seen = Seen(call, func, args, keywords, receiver, self.loops, self.order, self.no_grad > 0)
            merge(call, seen)
        self.log.calls.append(seen)
        return call, seen

    def called(self, seen: Seen, tests: tuple[tuple[ast.expr, Value], ...]) -> None:
        """Note a call that another run has seen."""
        like = seen.call
        call = self.calls.get((like.node, like.stack))
        if call is None:
            call = Call(
                *(like.node, like.file, like.stack, seen.order, seen.func, seen.args, dict(seen.keywords), seen.loops, tests),
                seen.no_grad,
                seen.receiver,
            )
            self.calls[like.node, like.stack] = call
            call.now = seen.now
        else:
            merge(call, seen)
        call.result, call.last = call.result | seen.result, seen.last

    def invoke(self, call: Call, func: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
        """What calling `func` gives."""
        if not func.objs:
            return library.call_tensor(self, call, args, keywords, self.no_grad > 0)
        methods = any(isinstance(o, Method) for o in func.objs)
        objs = [o for o in ordered(func.objs) if not (methods and isinstance(o, Part))]
        if len(objs) == 1 and not isinstance(objs[0], New):
            return self._invoke(call, objs[0], args, keywords)
        return join([self._invoke(call, o, args, keywords, alike) for o, alike in self._alternatives(objs)])

    def _alternatives(self, objs: Iterable[Obj]) -> Iterator[tuple[Obj, frozenset[Obj]]]:
        """What is called, each with what else runs the same code: modules of one class, and their methods, are run as one."""
        alike: dict[object, list[Obj]] = {}
        for obj in self._unwrapped(objs):
            alike.setdefault(self._code(obj), []).append(obj)
        for group in alike.values():
            owners = [o.owner if isinstance(o, Func) else o for o in group]
            yield group[0], frozenset(o for o in owners if o is not None)

    def _code(self, obj: Obj) -> object:
        """What is run where an object is called: the same for modules of one class, else the object itself."""
        if isinstance(obj, Func):
            owner = obj.owner
            return (obj.node, owner.cls, obj.made) if isinstance(owner, New) and self.is_module(owner) else obj
        if not isinstance(obj, New):
            return obj
        if obj.cls is None and obj.path.startswith("torch.nn."):
            own = bool(self.hooks_of(obj)) or obj.path in library.PARTICULAR or any((obj, name) in self.memory for name in _OF_LOSSES)
            return obj if own else obj.path
        return obj.cls if self.is_module(obj) else obj

    def _unwrapped(self, objs: Iterable[Obj]) -> Iterator[Obj]:
        """Objects, in the place of wrappers what these hold: to call a wrapper is to call that."""
        todo, seen = list(objs)[::-1], set[Obj]()
        while todo:
            obj = todo.pop()
            if obj in seen:
                continue
            seen.add(obj)
            inner = self.memory.get((obj, "module"), NOTHING) if isinstance(obj, New) and obj.path in library.WRAPPERS else NOTHING
            held = [o for o in ordered(inner.objs) if isinstance(o, (New, Part))]
            todo += held[::-1]
            if not held:
                yield obj

    def _invoke(self, call: Call, obj: Obj, args: list[Value], keywords: dict[str, Value], alike: frozenset[Obj] = frozenset()) -> Value:
        """What calling one object gives, which may be any of those that are `alike`."""
        if isinstance(obj, Func):
            owner, func = obj.owner, call.node.func
            if isinstance(func, ast.Attribute) and func.attr == "forward" and isinstance(owner, New) and self.is_module(owner):
                return self._call_instance(call, owner, args, keywords, alike)
            return self.call_function(obj, call.node, args, keywords, alike)
        if isinstance(obj, Class):
            return self._construct(obj, call.node, args, keywords)
        if isinstance(obj, Pick):
            return named.call(self, call, obj, args, keywords)
        if isinstance(obj, New) and obj.path == named.PARTIAL:
            bound, more = named.bound(self, obj)
            return self.invoke(call, self.memory.get((obj, named.FUNCTION), NOTHING), [*bound, *args], {**more, **keywords})
        if isinstance(obj, New) and drivers.runs(obj):
            return drivers.run_group(self, call.node, obj)
        if isinstance(obj, (New, Part)):
            return self._call_instance(call, obj, args, keywords, alike)
        if isinstance(obj, Method):
            path = sources.path_of(self, obj.of)
            result = library.call_method(self, call, obj, args, keywords)
            return sources.marked(self, call.node, f"{path}.{obj.name}", result) if path else result
        if isinstance(obj, Ext):
            return sources.marked(self, call.node, obj.path, library.call(self, call, obj.path, args, keywords))
        return library.mixed(args, keywords)

    def _construct(self, cls: Class, node: ast.AST, args: list[Value], keywords: dict[str, Value]) -> Value:
        """An instance of a class of the project."""
        made = self.objects.new("", node, self.stack, cls)
        init = self.find(cls, "__init__")
        for f in init.objs if init is not None else ():
            if isinstance(f, Func):
                self.call_function(self.objects.bound(f, made, f.cls), node, args, keywords)
        if init is None:
            library.construct(self, made, args, keywords)
            named.fill(self, made, args, keywords)
        return just(made)

    def _call_instance(
        self, call: Call, obj: New | Part, args: list[Value], keywords: dict[str, Value], alike: frozenset[Obj] = frozenset()
    ) -> Value:
        """Call an object: a module's forward, or `__call__`; it may be any of those that are `alike`."""
        flow = library.mixed(args, keywords)
        if isinstance(obj, New) and obj.path in library.WRAPPERS:
            return Value(frozenset(), flow.origins, flow.scale)  # one that holds nothing known
        if isinstance(obj, New) and obj.cls is not None:
            out = self._invoke_named(obj, "__call__", call.node, args, keywords, alike)
            if out is not None:
                return out
            if not self.is_module(obj):
                return flow
            out = self._invoke_named(obj, "forward", call.node, args, keywords, alike)
            return self._forwarded(obj, call, flow, out if out is not None else flow, alike)
        if isinstance(obj, New) and obj.path in self.project.placements:
            self.trace.believed[call.node] = f"`{obj.path}` is {self.project.placements[obj.path]}"
            return sources.as_said(self.project.placements[obj.path], flow)
        if isinstance(obj, New) and obj.path == library.SEQUENTIAL and args and self._holds_own(obj):
            return self._forwarded(obj, call, flow, self._in_turn(obj, call, args[0]))
        scale = scales.of_module(
            obj.path if isinstance(obj, New) else "",
            self.memory.get((obj, "reduction"), NOTHING),
            flow.scale,
            any((obj, n) in self.memory for n in _OF_LOSSES[1:]) or self.ignores(),
        )
        labelled = isinstance(obj, New) and "labels" in keywords and library.averages(obj.path)
        if scale == "sample" and args and library.goes_over_rows(self, obj) and self._rows_first(args[0]):
            return self._forwarded(obj, call, flow, Value(frozenset(), flow.origins | {Origin("coupled")}, "other"))
        out = self._forwarded(obj, call, flow, Value(frozenset(), flow.origins, scale), alike)
        return Value(out.objs, out.origins | {Origin("labelled", call.node)}, out.scale) if labelled else out

    def _rows_first(self, value: Value) -> bool:
        """Whether the first dimension is surely that of the samples: as loaders put them together, and never turned since."""
        loaders = value.of_kind("batch")
        plain = all(self.is_a(o, library.DATALOADER) and not self.memory.get((o, "collate_fn"), NOTHING).objs for o in loaders)
        return bool(loaders) and plain and value.scale == "sample" and not value.of_kind("turned")

    def _holds_own(self, obj: New, depth: int = 0) -> bool:
        """Whether a Sequential holds modules of the project's own, or ones with hooks."""
        inside = [o for _, held in self.memory.of(obj) for o in held.objs if isinstance(o, New)]
        return any(
            self.is_module(o) or self.hooks_of(o) or (depth < 4 and o.path == obj.path and self._holds_own(o, depth + 1)) for o in inside
        )

    def _in_turn(self, obj: New, call: Call, value: Value) -> Value:
        """What the modules of a Sequential make of a value, one after another; several that may stand in one place all do."""
        places = {name: held for name, held in self.memory.of(obj) if name not in (ELEMENT, UNNAMED)}
        for held in places.values():
            for child in ordered(held.objs):
                if isinstance(child, (New, Part)):
                    value = self.invoke(call, just(child), [value], {})
        return value

    def _forwarded(self, obj: New | Part, call: Call, flow: Value, out: Value, alike: frozenset[Obj] = frozenset()) -> Value:
        couples = out.of_kind("coupled") and not flow.of_kind("coupled")
        if out.scale == "other" and flow.scale == "sample" and self.is_network(obj) and not couples:
            out = Value(out.objs, out.origins, "sample")  # what a network makes of a sample is one entry of the batch it returns
        kept = out.origins - _inner_forwards(out, flow)
        mark = frozenset() if self.no_grad else frozenset(Origin("forward", (o, call.node)) for o in alike or (obj,))
        made = self._marked(Value(out.objs, kept | flow.origins | mark, out.scale), mark, flow)
        for name, hook in [h for o in alike or (obj,) for h in self.hooks_of(o).values()]:
            graded = library.gradient_of(made)
            given = [flow] if name == "register_forward_pre_hook" else [flow, made] if name in library.FORWARD_HOOKS else [graded, graded]
            self.hooked([hook], call.node, [just(obj), *given])
        return made

    def hooks_of(self, obj: Obj) -> Mapping[ast.AST, tuple[str, Value]]:
        """What a module was given to call at its forward or backward."""
        self.asks("hooks", obj if self.hooks else None)
        return self.hooks.get(obj, {})

    def hooked(self, hooks: list[Value], node: ast.AST, args: list[Value]) -> None:
        """Run functions that were registered to be called with `args`."""
        for hook in hooks:
            for obj in ordered(hook.objs):
                if isinstance(obj, (Func, Class, New)) and _is_own(obj):
                    self.apply(obj, node, args, {})

    def _marked(self, value: Value, mark: frozenset[Origin], flow: Value) -> Value:
        """Put the mark of a forward on the tensors inside tuples and dicts, too."""
        objs: set[Obj] = set()
        at = next((o.of[1] for o in mark), None)  # type: ignore[index]
        for obj in value.objs:
            if isinstance(obj, Tup):
                made = self._output(at, dict(enumerate(obj.items)), flow)
                objs.add(Tup(tuple(self._part(item, mark | made[n], flow) for n, item in enumerate(obj.items))))
            elif isinstance(obj, New) and obj.path in ("dict", "list"):
                held = dict(self.memory.of(obj))
                made = self._output(at, {n: item for n, item in held.items() if n not in (ELEMENT, UNNAMED)}, flow)
                for name, item in held.items():
                    self.memory[obj, name] = Value(item.objs, item.origins | mark | made.get(name, frozenset()), item.scale)
                objs.add(obj)
        return Value(frozenset(objs), value.origins, value.scale)

    def _part(self, item: Value, mark: frozenset[Origin], flow: Value) -> Value:
        return Value(item.objs, (item.origins - _inner_forwards(item, flow)) | mark, item.scale)

    def _output(self, at: object, items: Mapping[Any, Value], flow: Value) -> dict[Any, frozenset[Origin]]:
        """The marks of a forward's several outputs: which one it is, and which parts of the model each of them comes from."""
        if at is None:
            return {name: frozenset() for name in items}
        parts = tuple((n, frozenset(o.of[0] for o in i.origins - flow.origins if o.kind == "forward")) for n, i in items.items())  # type: ignore[index]
        return {name: frozenset((Origin("output", (at, name, parts)),)) for name in items}

    def ignores(self) -> bool:
        """Whether the project writes -100, the target that a cross entropy ignores of itself."""
        key = ("ignores", self.project.entry.tree)
        if key not in self.project.memo:
            self.project.memo[key] = any(
                isinstance(n.op, ast.USub) and isinstance(n.operand, ast.Constant) and n.operand.value == 100
                for file in (self.project.entry, *self.project.files.values())
                for n in file.standing.of(ast.UnaryOp)
            )
        return bool(self.project.memo[key])

    def is_network(self, obj: New | Part) -> bool:
        """Whether a module holds layers, as losses do not."""
        if isinstance(obj, Part) or obj.cls is None:
            return True
        return any(
            isinstance(o, New)
            and (
                (self.is_module(o) and o is not obj and self.is_network(o))
                or (o.path.startswith("torch.nn.") and not o.path.endswith(("Loss", "Parameter", "CosineSimilarity", "Softmax", "Sigmoid")))
            )
            for _, held in self.memory.of(obj)
            for o in held.objs
        )

    def is_module(self, obj: object) -> bool:
        """Whether an object is an nn.Module of the project's own."""
        if not isinstance(obj, New) or obj.cls is None:
            return False
        if obj.cls not in self.modules:
            self.modules[obj.cls] = any(b.startswith("torch.nn.") or b.endswith((".Module", "Model")) for b in self.library_bases(obj.cls))
        return self.modules[obj.cls]

    def _invoke_named(
        self,
        obj: New,
        name: str,
        node: ast.AST,
        args: list[Value] | None = None,
        keywords: dict[str, Value] | None = None,
        alike: frozenset[Obj] = frozenset(),
    ) -> Value | None:
        found = self.find(obj.cls, name) if obj.cls is not None else None
        if found is None:
            return None
        return join(
            [
                self.call_function(self.objects.bound(f, obj, f.cls), node, args or [], keywords or {}, alike)
                for f in found.objs
                if isinstance(f, Func)
            ]
        )

    def _hand_back(self, func: Func, node: ast.AST, frame: Frame) -> None:
        """What a function has filled in place with rows of a batch, the caller's names hold from here on."""
        if not frame.changed or not isinstance(node, ast.Call) or frame.local is None:
            return
        names = [p.arg for p in (*func.node.args.posonlyargs, *func.node.args.args)][func.owner is not None :]
        for name, given in [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]:
            if name in frame.changed and isinstance(given, ast.Name):
                value = frame.local.get(str(name), NOTHING)
                if value.batches() and not self.expression(given).objs:
                    self.bind(given.id, value)

    def call_function(
        self, func: Func, node: ast.AST, args: list[Value], keywords: dict[str, Value], owners: frozenset[Obj] = frozenset()
    ) -> Value:
        """Run a function of the project at this call; as a method of any of `owners`, where there are more than its own."""
        if isinstance(self.memory.watch, Recording):
            self.memory.watch.functions.add((func.node, func.made))
        again = sum(1 for f in self.frames if f.node is func.node and f.made == func.made)
        if len(self.stack) >= _DEPTH or again > 1 or self.trace.exhausted:
            return library.mixed(args, keywords)
        bound = (
            [Value(owners or frozenset((func.owner,)))]
            if func.owner is not None
            else [just(func.cls)]
            if func.cls is not None and "classmethod" in _decorators(func.node)
            else []
        ) + args
        frame = Frame(func.file, _parameters(self, func, bound, keywords), func.node)
        frame.outer, frame.made = self.closures.get((func.node, func.made), {}), func.made
        frame.closure = func.node, func.made
        frame.cls, frame.owners = func.cls, frozenset(() if func.owner is None else owners or (func.owner,))
        if func.owner is None and func.cls is not None and args and len(args[0].made()) == len(args[0].objs) == 1:
            frame.owners = args[0].objs  # a method that a decorator calls
        saved = self.stack, self.breaks
        self.stack, self.breaks = (*self.stack, node), []
        quiet = isinstance(func.node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            self.trace.values.get(d.func if isinstance(d, ast.Call) else d, NOTHING).paths() & library.NO_GRAD
            for d in func.node.decorator_list
        )
        self.no_grad += quiet
        entered = len(self.events)
        self._carry_out(func, frame)
        self.record.called(node, entered)
        self.no_grad -= quiet
        self.stack, self.breaks = saved
        self._hand_back(func, node, frame)
        if frame.yielded.objs or frame.yielded.origins or frame.yielded.scale:
            made = self.objects.new("generator", node, self.stack)
            self.memory[made, ELEMENT] = frame.yielded
            return just(made)
        return self._rows_of_rank(args, frame.returned) if self.cuts else frame.returned

    def _carry_out(self, func: Func, frame: Frame) -> None:
        """Run a function's body; what it does is known where it has run so before."""
        if self.cuts or frame.local is None:
            self._body(func, frame)
            return
        tests = () if self.loops else tuple(test for test, _ in self.tests)
        key = func, self.stack, frame.owners, self.no_grad > 0, bool(self.loops), tests, self.deciding, self._given(func.node, frame.local)
        outcome = find(self, self.outcomes, key)
        if outcome is not None:
            outcome.repeat(self, frame)
            return
        around = self.memory.watch
        self.memory.watch = recording = Recording(self)
        self._body(func, frame)
        self.memory.watch = around
        if recording.sound and len(self.driven) == recording.driven and not self.trace.exhausted:
            recording.functions.add((func.node, func.made))
            keep(self.outcomes, key, Outcome(self, frame, recording))
        if isinstance(around, Recording):
            around.add(recording)

    def _given(self, function: ast.AST, local: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
        """The parameters that a function reads, with their values."""
        key = ("read", function)
        if key not in self.project.memo:
            self.project.memo[key] = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        names: set[str] = self.project.memo[key]  # type: ignore[assignment]
        return tuple(local.items()) if names & _ALL_NAMES else tuple(item for item in local.items() if item[0] in names)

    def _body(self, func: Func, frame: Frame) -> None:
        self.frames.append(frame)
        self.events.append((Kind.ENTER, func.node, None, NOTHING))
        if isinstance(func.node, ast.Lambda):
            frame.returned = self.expression(func.node.body)
        else:
            if self.block(func.node.body):
                frame.exits.append(self.memory.fork())
            if frame.exits:
                self.memory.join(frame.exits)
        self.frames.pop()

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
            return self.closures.get(of[0], {}).get(of[1])  # type: ignore[index]
        if kind == "keys":
            return frozenset(self.keys.get(of, ()))  # type: ignore[call-overload]
        if kind == "hooks":
            return tuple(self.hooks.get(of, {}).items()) if of is not None else bool(self.hooks)  # type: ignore[call-overload]
        return self._ignore_dp


def refilled(node: ast.expr) -> ast.expr:
    """The tensor that a chain of calls changes in place, each of which gives back the tensor: `x` in `x.data.resize_(n).copy_`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            return node


def _parameters(run: Interpreter, func: Func, args: list[Value], keywords: dict[str, Value]) -> dict[str, Value]:
    """The locals that a call starts with."""
    spec = func.node.args
    positional = [*spec.posonlyargs, *spec.args]
    local: dict[str, Value] = {}
    for parameter, default in zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True):
        local[parameter.arg] = run.trace.values.get(default, NOTHING)
    for parameter, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        local[parameter.arg] = run.trace.values.get(keyword_default, NOTHING) if keyword_default is not None else NOTHING
    for parameter, value in zip(positional, args, strict=False):
        local[parameter.arg] = value
    names = {p.arg for p in (*positional, *spec.kwonlyargs)}
    rest = run.objects.new("dict", func.node, run.stack)
    for name, value in keywords.items():
        if name in names:
            local[name] = value
        elif spec.kwarg is not None and name != "**":
            run.memory[rest, name] = value
    if spec.vararg is not None:
        local[spec.vararg.arg] = just(Tup(tuple(args[len(positional) :])))
    if spec.kwarg is not None:
        local[spec.kwarg.arg] = just(rest)
    if func.node in run.driven:
        passed = {*(p.arg for p in positional[: len(args)]), *keywords}
        local.update(drivers.given(run, func, [p.arg for p in (*positional, *spec.kwonlyargs) if p.arg not in passed]))
    for parameter in positional:
        local.setdefault(parameter.arg, NOTHING)
    flagged = flags(run.project, func.node)
    for parameter in (*positional, *spec.kwonlyargs):
        if parameter.arg in flagged:
            local[parameter.arg] = told(local[parameter.arg])
        run._note(parameter, local[parameter.arg])
    return local


def _is_own(obj: Obj) -> bool:
    """Whether something is defined by the project."""
    return not isinstance(obj, New) or obj.cls is not None


def _deciding(test: Value) -> frozenset[Origin]:
    """What a value owes to the condition under which it was chosen."""
    return frozenset(o if o.kind == "drawn" else Origin("decided", o.of) for o in test.origins if o.kind in ("batch", "decided", "drawn"))


def _inner_forwards(made: Value, flow: Value) -> frozenset[Origin]:
    """The forwards that a module ran to make something of `flow`."""
    return frozenset([o for o in made.origins - flow.origins if o.kind == "forward"])


def _turn(value: Value, how: str, node: ast.expr) -> Value:
    if how == "whole":
        return library.whole(value)
    if how == "mean":
        return Value(value.objs, value.origins, "mean")
    return Value(value.objs, value.origins | {Origin(how, node)}, value.scale)


def _marked_as_sized(value: Value, node: ast.AST) -> Value:
    objs = frozenset(Tup(tuple(_marked_as_sized(i, node) for i in o.items)) if isinstance(o, Tup) else o for o in value.objs)
    return Value(objs, value.origins | {Origin("sized", node)}, value.scale)


def told(value: Value) -> Value:
    """A name or flag that the script spells out, marked as such; parts of tuples, too."""
    objs = frozenset(Tup(tuple(told(i) for i in o.items)) if isinstance(o, Tup) else o for o in value.objs)
    literal = len(objs) == 1 and isinstance(next(iter(objs)), Lit)
    return Value(objs, value.origins | {Origin("told")} if literal else value.origins, value.scale)


def spelled_out(node: ast.AST) -> bool:
    """Whether an expression is a short list of names or flags, or of tuples with one each: phases that are treated differently."""
    if not isinstance(node, (ast.List, ast.Tuple)) or not 2 <= len(node.elts) <= 4:
        return False
    parts = [p for e in node.elts for p in (e.elts if isinstance(e, ast.Tuple) else [e])]
    return all(any(_phase(p) for p in (e.elts if isinstance(e, ast.Tuple) else [e])) for e in node.elts) and len(parts) <= 16


def _phase(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bool))


def _all_of(target: ast.Subscript) -> bool:
    """Whether a target is all of what a name or an attribute holds: `x[:]`."""
    rows = target.slice
    return isinstance(target.value, (ast.Name, ast.Attribute)) and isinstance(rows, ast.Slice) and rows.lower is rows.upper is None


def _texts(parts: list[Value]) -> frozenset[Obj]:
    """The texts that several put together make, where each is one of a few literals."""
    made = [""]
    for part in parts:
        options = [o.value for o in part.objs if isinstance(o, Lit) and isinstance(o.value, str)]
        if not options or len(options) != len(part.objs) or len(options) * len(made) > 16:
            return frozenset()
        made = [a + str(b) for a in made for b in options]
    return frozenset(Lit(text) for text in made)


def _sampler_of(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "sampler"


def _join_into(into: dict[str, Value], other: Mapping[str, Value]) -> None:
    for key, value in other.items():
        mine = into.get(key)
        if mine is None:
            into[key] = value
        elif mine is not value:
            into[key] = mine | value


def _keys(index: Value) -> list[str]:
    """The literal keys that an index may be."""
    return [str(o.value) for o in index.objs if isinstance(o, Lit) and isinstance(o.value, (str, int))]


def _one(value: Value) -> object:
    """The literal that a value is, if it can be but one."""
    if len(value.objs) == 1:
        (only,) = value.objs
        if isinstance(only, Lit):
            return only.value
    return None


def _sources(value: Value) -> frozenset[Origin]:
    """The settings and numbers that a computed value comes from."""
    return frozenset(
        Origin("from", o) for o in value.objs if isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1)
    )


def _is_world(value: Value) -> bool:
    """Whether a number is how many ranks there are."""
    return {o.kind for o in value.origins} == {"world"}


def _of_all(value: Value) -> bool:
    """Whether a number is the same on every rank though it is not a constant of the script."""
    return bool(value.of_kind("parameters") or value.of_kind("whole"))


def _decorators(node: ast.AST) -> frozenset[str]:
    out = set()
    for d in getattr(node, "decorator_list", ()):
        d = d.func if isinstance(d, ast.Call) else d
        out.add(d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", ""))
    return frozenset(out)


_STATEMENTS: dict[type, Callable[..., bool]] = {
    ast.Expr: Interpreter._do_expr,
    ast.Assign: Interpreter._do_assign,
    ast.AnnAssign: Interpreter._do_annassign,
    ast.AugAssign: Interpreter._do_augassign,
    ast.Return: Interpreter._do_return,
    ast.Raise: Interpreter._do_raise,
    ast.Assert: Interpreter._do_assert,
    ast.Delete: Interpreter._do_delete,
    ast.Global: Interpreter._do_global,
    ast.Break: Interpreter._do_jump,
    ast.Continue: Interpreter._do_jump,
    ast.If: Interpreter._do_if,
    ast.For: Interpreter._do_for,
    ast.AsyncFor: Interpreter._do_for,
    ast.While: Interpreter._do_while,
    ast.With: Interpreter._do_with,
    ast.AsyncWith: Interpreter._do_with,
    ast.Try: Interpreter._do_try,
    ast.Match: Interpreter._do_match,
    ast.FunctionDef: Interpreter._do_def,
    ast.AsyncFunctionDef: Interpreter._do_def,
    ast.ClassDef: Interpreter._do_class,
    ast.Import: Interpreter._do_import,
    ast.ImportFrom: Interpreter._do_from,
}
_EXPRESSIONS: dict[type, Callable[..., Value]] = {
    ast.Constant: Interpreter._ev_constant,
    ast.Name: Interpreter._ev_name,
    ast.Attribute: Interpreter._ev_attribute,
    ast.Subscript: Interpreter._ev_subscript,
    ast.Tuple: Interpreter._ev_tuple,
    ast.List: Interpreter._ev_list,
    ast.Set: Interpreter._ev_list,
    ast.Dict: Interpreter._ev_dict,
    ast.IfExp: Interpreter._ev_ifexp,
    ast.BoolOp: Interpreter._ev_boolop,
    ast.BinOp: Interpreter._ev_binop,
    ast.Compare: Interpreter._ev_compare,
    ast.UnaryOp: Interpreter._ev_unary,
    ast.Lambda: Interpreter._ev_lambda,
    ast.ListComp: Interpreter._ev_comprehension,
    ast.SetComp: Interpreter._ev_comprehension,
    ast.GeneratorExp: Interpreter._ev_comprehension,
    ast.DictComp: Interpreter._ev_comprehension,
    ast.JoinedStr: Interpreter._ev_joined,
    ast.NamedExpr: Interpreter._ev_named,
    ast.Starred: Interpreter._ev_starred,
    ast.Yield: Interpreter._ev_yield,
    ast.YieldFrom: Interpreter._ev_yield_from,
    ast.Await: Interpreter._ev_await,
    ast.Call: Interpreter._ev_call,
}
