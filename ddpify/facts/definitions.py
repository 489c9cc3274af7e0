"""Definitions and uses: which writes of a run reach which of its reads, and what a loop defines that is live after it.

A place is what is written and read: a name in its scope, an attribute of an object, or what a container or another object holds. The
answers follow the points of a run (`record.py`) forwards from a definition, or backwards from a use, through branches, loops and calls.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeVar

from ddpify.facts.library import COLLECTIONS, optimizer_path
from ddpify.facts.memory import Key
from ddpify.facts.model import NOTHING, Func, Module, New, Obj, Value
from ddpify.facts.record import Event, Extent, Kind, Record
from ddpify.facts.scopes import Scopes
from ddpify.facts.tree import last_name, walk

GROWS = frozenset(("append", "extend", "appendleft", "insert", "add"))
RESETS = frozenset(("clear", "reset", "zero_"))


class Place(NamedTuple):
    """A variable: `name` of a function, module or object. With `content`: what the object holds, or the one element that `name` says."""

    owner: object
    name: str
    content: bool = False


class Effect(Enum):
    """What an event does to a place."""

    USE = 1  # reads it
    AUGMENT = 2  # reads it only to write it: `total += x`
    CHANGE = 3  # writes a part of it, or may write it
    DEFINE = 4  # writes all of it: what was there is gone


_Key = TypeVar("_Key")
_Happened = tuple[tuple[Kind, ast.AST, Value | None, Value], list[int]]  # an event, and its indices in the record
_at = attrgetter("at")
_READING = (Effect.USE, Effect.AUGMENT)
_WRITING = (Effect.CHANGE, Effect.DEFINE)


class Step(NamedTuple):
    """An event that matters to a place."""

    at: int
    effect: Effect
    node: ast.AST


class Reaching(NamedTuple):
    """The definitions that reach a point: those that write all of a place, those that change it, and whether there may be none."""

    definitions: list[ast.AST]
    changes: list[ast.AST]
    undefined: bool


class Definitions:
    """Questions about the definitions and uses of one run."""

    def __init__(self, record: Record, scopes: Scopes, memory: Mapping[Key, Value]) -> None:
        self._record = record
        self._scopes = scopes
        self._memory = memory
        self._steps: dict[Place, dict[int, list[Step]]] = {}
        self._insides: dict[ast.AST, bytearray] = {}

    # ------------------------------------------------------------------------------------------------ what is asked

    def variable(self, target: ast.AST) -> frozenset[Place]:
        """The variables that a name or attribute is; of an element, those of what it is an element of."""
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            owner = self._scopes.owner(target)
            return frozenset() if owner is None else frozenset((Place(owner, target.id),))
        if not isinstance(target, ast.Attribute):
            return frozenset()
        bases = [e.base for e in self._of(target) if e.base is not None]
        owners = {_owner(o) for base in bases for o in base.objs}
        return frozenset(Place(owner, target.attr) for owner in owners) or self.variable(target.value)

    def content(self, target: ast.AST) -> frozenset[Place]:
        """What the objects hold that an expression may be."""
        containers = {o for e in self._of(target) if e.kind is Kind.READ for o in e.value.objs if isinstance(o, New)}
        return frozenset(Place(o, "", True) for o in containers)

    def element(self, target: ast.Subscript) -> frozenset[Place]:
        """The element of a container that an expression with a constant key is; none where the container was not seen to be made."""
        containers = {o for e in self._of(target) if e.base is not None for o in e.base.objs if isinstance(o, New)}
        key = str(target.slice.value) if isinstance(target.slice, ast.Constant) else ""
        return frozenset(Place(o, key, True) for o in containers)

    def after(self, loop: ast.AST, places: Iterable[Place], written: Collection[ast.AST] = ()) -> dict[int, ast.AST]:
        """The uses elsewhere that what a loop defines reaches, by their events; the nodes in `written` are known to write the places."""
        inside = self._inside_of(loop)
        uses: dict[int, ast.AST] = {}
        for place in places:
            uses |= {s.at: s.node for s in self._forward(self.steps(place), inside, written)}
        return dict(sorted(uses.items()))

    def unseen(self, places: Collection[Place]) -> list[ast.AST]:
        """Reads of places in functions that are handed to something else: nobody knows when they run."""
        held = {p.owner for p in places if p.content}
        out: list[ast.AST] = []
        for function in self._handed_on:
            nodes = walk(function)
            inside = set(nodes)
            for node in nodes:
                found: list[tuple[object, str]]
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    owner = self._scopes.owner(node)
                    found = [(owner, node.id)] if owner not in inside else []  # each of its runs has names of its own
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    modules = {_owner(o) for e in self._of(node) if e.base is not None for o in e.base.objs}
                    owners = self._owners.get(node.attr, set())
                    found = [(o, node.attr) for o in owners if not isinstance(o, str) or o in modules]
                else:
                    continue
                if any(Place(*key) in places or not held.isdisjoint(self._memory.get(key, NOTHING).objs) for key in found):
                    out.append(node)
        return out

    @cached_property
    def _handed_on(self) -> set[ast.AST]:
        """The functions that are read other than to call them."""
        out: set[ast.AST] = set()
        for (kind, node, _, value), _ in self._events:
            functions = {o.node for o in value.objs if isinstance(o, Func)} if kind is Kind.READ and value.objs else set()
            up = self._parent(node) if functions else None
            if functions and not (isinstance(up, ast.Call) and (up.func is node or self._is_step(up))):
                out |= functions
        return out

    def _is_step(self, call: ast.Call) -> bool:
        """Whether a call is an optimizer's step, which calls the closure that it is given and forgets it."""
        func = call.func
        owners = [o for e in self._of(func) if e.base is not None for o in e.base.objs]
        named = isinstance(func, ast.Attribute) and func.attr == "step"
        return named and bool(owners) and all(isinstance(o, New) and optimizer_path(o.path) for o in owners)

    @cached_property
    def _owners(self) -> dict[str, set[object]]:
        """What holds something by each name."""
        out: dict[str, set[object]] = {}
        for owner, name in self._memory:
            out.setdefault(name, set()).add(owner)
        return out

    def before(self, loop: ast.AST, places: Iterable[Place], written: Collection[ast.AST] = ()) -> Reaching:
        """The definitions of places that reach the beginning of a loop from outside it; those of its own earlier runs are changes."""
        extents, inside = self._record.extents.get(loop, []), self._inside_of(loop)
        found = []
        for place in places:
            own = [e for e in extents if any(e.first <= point < e.after for point in self.steps(place))]
            starts = [(p, len(self._record.events)) for e in own for p in self._record.before[e.first] if not inside[p]]
            found.append(self._reaching([place], starts, inside, written))
        definitions, changes = (list(dict.fromkeys(n for r in found for n in getattr(r, kind))) for kind in ("definitions", "changes"))
        return Reaching(definitions, changes, any(r.undefined for r in found))

    def reaching(self, use: ast.AST) -> Reaching:
        """The definitions that reach a use of a name or attribute."""
        starts = [(self._point(i), i) for i in self._indices(use, Kind.READ)]
        return self._reaching(self.variable(use), starts)

    def uses(self, definition: ast.AST) -> list[ast.AST]:
        """The uses that a definition of a name or attribute reaches."""
        return _in_order({s.at: s.node for s in self._reached(definition) if s.effect in _READING})

    def touches(self, definition: ast.AST) -> list[ast.AST]:
        """The uses that a definition of a name or attribute reaches, and the changes of what it defines."""
        return _in_order({s.at: s.node for s in self._reached(definition)})

    def _reached(self, definition: ast.AST) -> Iterator[Step]:
        starts = [(self._point(i), i + 1) for i in self._indices(definition, Kind.WRITE)]
        for place in self.variable(definition):
            yield from self._walk(self.steps(place), starts)

    def exposed(self, loop: ast.AST, places: Iterable[Place]) -> bool:
        """Whether a pass of a loop reads, or adds to, what places held before it."""
        extents = self._record.extents.get(loop, [])
        return any(True for place in places for e in extents for _ in self._walk(self.steps(place), [(e.first, 0)], e))

    def outlives(self, loop: ast.AST, obj: Obj, seen: frozenset[Obj] = frozenset()) -> bool:
        """Whether a pass of a loop may come to an object by way of a place that held it before the pass."""
        events, inside_of = self._events_by_object.get(obj, ()), self._inside_of(loop)
        made = [i for (kind, node, _, value), indices in events if _makes(kind, node, value, obj) for i in indices]
        if not made or not all(inside_of[self._point(i)] for i in made):
            return True
        held = [(o, name) for (o, name), value in self._memory.items() if obj in value.objs]
        inside = {o for o, _ in held if isinstance(o, New) and o.path in COLLECTIONS}
        places = {Place(o, name) for o, name in held if o not in inside}
        places |= {Place(o, "", True) for o in inside - seen - {obj} if self.outlives(loop, o, seen | {obj})}
        return self.exposed(loop, places.union(*(self.variable(node) for (_, node, _, _), _ in self._writes_of.get(obj, ()))))

    def happened_in(self, loop: ast.AST, kind: Kind) -> Iterator[Event]:
        """The events of a kind that happen while a loop runs, in functions that it calls, too; what is repeated is one."""
        record, found = self._record, dict[int, tuple[Kind, ast.AST, Value | None, Value]]()
        for extent in record.extents.get(loop, ()):
            stretch = record.events[record.starts[extent.first] : record.starts[extent.after]]
            found |= zip(map(id, stretch), stretch, strict=True)
        return (Event(*event) for event in found.values() if event[0] is kind)

    def happened_beside(self, loop: ast.AST, calls: Collection[ast.AST], kind: Kind) -> Iterator[Event]:
        """The events of a kind that happen while a loop runs, but not while one of some calls does."""
        record = self._record
        under = bytearray(len(record.events))
        for first, last in (stretch for call in calls for stretch in record.calls.get(call, ())):
            under[first:last] = b"\1" * (last - first)
        for extent in record.extents.get(loop, ()):
            for at in range(record.starts[extent.first], record.starts[extent.after]):
                if record.events[at][0] is kind and not under[at]:
                    yield Event(*record.events[at])

    def under(self, calls: Collection[ast.AST], at: int) -> bool:
        """Whether an event happens while one of some calls runs."""
        return any(first <= at < last for call in calls for first, last in self._record.calls.get(call, ()))

    # ------------------------------------------------------------------------------------------------ walking

    def _forward(self, steps: dict[int, list[Step]], inside: bytearray, written: Collection[ast.AST]) -> Iterator[Step]:
        """The uses outside a loop that are reached by the definitions inside it."""
        reached = {s.at for p in steps if not inside[p] for s in steps[p] if s.effect in _READING}
        if not reached:
            return
        todo = [(p, s.at + 1, False) for p in steps if inside[p] for s in steps[p] if s.effect in _WRITING or s.node in written]
        seen = bytearray(2 * len(inside))  # for each point: whether it was come to before the loop was over, and after
        following = self._following
        while todo and reached:
            point, first, over = todo.pop()
            own, passed = _before_definition(steps.get(point, ()), first)
            for step in own:
                if over and step.at in reached:
                    reached.discard(step.at)
                    yield step
            for other in following[point] if passed else ():
                out = over or not inside[other]
                if not seen[2 * other + out]:
                    seen[2 * other + out] = 1
                    todo.append((other, 0, out))

    def _inside_of(self, loop: ast.AST) -> bytearray:
        """For each point whether it is one of a loop's."""
        if loop not in self._insides:
            inside = bytearray(len(self._record.starts))
            for extent in self._record.extents.get(loop, ()):
                inside[extent.first : extent.after] = b"\1" * (extent.after - extent.first)
            self._insides[loop] = inside
        return self._insides[loop]

    def _walk(self, steps: dict[int, list[Step]], starts: list[tuple[int, int]], within: Extent | None = None) -> Iterator[Step]:
        """The steps that are reached from points before the place is defined anew."""
        todo, seen = list(starts), set[int]()
        while todo:
            point, index = todo.pop()
            own, passed = _before_definition(steps.get(point, ()), index)
            yield from own
            for following in self._following[point] if passed else ():
                if following not in seen and (within is None or within.first <= following < within.after):
                    seen.add(following)
                    todo.append((following, 0))

    def _reaching(
        self,
        places: Iterable[Place],
        starts: Collection[tuple[int, int]],
        inside: bytearray | None = None,
        written: Collection[ast.AST] = (),
    ) -> Reaching:
        definitions: dict[int, ast.AST] = {}
        changes: dict[int, ast.AST] = {}
        undefined = False
        for place in places:
            steps, todo, seen = self.steps(place), list(starts), set[int]()
            while todo:
                point, end = todo.pop()
                for step in reversed(steps.get(point, ())):
                    if step.at >= end:
                        continue
                    if step.effect is Effect.DEFINE:
                        (changes if inside is not None and inside[point] else definitions)[step.at] = step.node
                        break
                    if step.effect is Effect.CHANGE or step.node in written:
                        changes[step.at] = step.node
                else:
                    undefined |= point == 0
                    for before in self._record.before[point]:
                        if before not in seen:
                            seen.add(before)
                            todo.append((before, len(self._record.events)))
        return Reaching(_in_order(definitions), _in_order(changes), undefined)

    @cached_property
    def _following(self) -> list[list[int]]:
        """For each point those that control goes on to."""
        out: list[list[int]] = [[] for _ in self._record.starts]
        for point, before in enumerate(self._record.before):
            for earlier in before:
                out[earlier].append(point)
        return out

    def _point(self, index: int) -> int:
        return bisect_right(self._record.starts, index) - 1

    # ------------------------------------------------------------------------------------------------ what an event does

    def steps(self, place: Place) -> dict[int, list[Step]]:
        """The events that matter to a place, by their points."""
        if place not in self._steps:
            found: list[Step] = []
            for plain, indices in self._acting(place.owner) if place.content else self._candidates(place):
                event = Event(*plain)
                effect = self._on_content(place, event) if place.content else self._on_variable(place, event)
                if effect is not None:
                    found += [Step(index, effect, event.node) for index in indices]
            out: dict[int, list[Step]] = {}
            for step in sorted(found, key=_at):
                out.setdefault(self._point(step.at), []).append(step)
            self._steps[place] = out
        return self._steps[place]

    def _acting(self, obj: object) -> Iterable[_Happened]:
        """The events that make an object, give it, or act on it, and those that give a container of it."""
        return {id(found[0]): found for each in (obj, *self._holders(obj)) for found in self._events_by_object.get(each, ())}.values()

    def _holders(self, obj: object) -> set[object]:
        """The containers that hold an object, and those that hold these."""
        out: set[object] = set()
        todo = [obj]
        while todo:
            for holder in self._containers.get(todo.pop(), ()):
                if holder not in out:
                    out.add(holder)
                    todo.append(holder)
        return out - {obj}

    @cached_property
    def _containers(self) -> dict[object, set[object]]:
        out: dict[object, set[object]] = {}
        for (owner, _), value in self._memory.items():
            if isinstance(owner, New) and owner.path in COLLECTIONS:
                for obj in value.objs:
                    if isinstance(obj, New) and obj is not owner:
                        out.setdefault(obj, set()).add(owner)
        return out

    def _candidates(self, place: Place) -> list[_Happened]:
        return [*self._named.get(place.name, ()), *self._entered.get(place.owner, ())]

    def _on_variable(self, place: Place, event: Event) -> Effect | None:
        """What an event does to a variable."""
        if event.kind is Kind.ENTER:
            return Effect.DEFINE
        if isinstance(event.node, ast.Name):
            if self._scopes.owner(event.node) != place.owner:
                return None
            sure = True
        else:
            owners = [_owner(o) for o in event.base.objs] if event.base is not None else []
            if place.owner not in owners:
                return None
            sure = len(owners) == 1
        if event.kind is Kind.WRITE:
            return Effect.DEFINE if sure else Effect.CHANGE
        if event.kind is Kind.CHANGE:
            return Effect.CHANGE
        return self._role(event.node, event.value)

    def _on_content(self, place: Place, event: Event) -> Effect | None:
        """What an event does to what an object holds."""
        obj, node = place.owner, event.node
        if obj not in event.value.objs and (event.base is None or obj not in event.base.objs):
            return self._on_holder(event)
        if event.kind in (Kind.MAKE, Kind.FILL):
            return Effect.DEFINE
        if event.kind is Kind.CHANGE:
            return Effect.CHANGE
        if event.kind is Kind.CALL:
            if event.base is None or obj not in event.base.objs:
                return Effect.DEFINE  # it is made
            resets = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RESETS
            return Effect.DEFINE if resets and len(event.base.objs) == 1 else Effect.CHANGE
        if isinstance(node, ast.Subscript) and event.base is not None and obj in event.base.objs:
            return self._on_element(place, event, node)
        if event.kind is Kind.READ and obj in event.value.objs:
            up = self._parent(node)
            return None if isinstance(up, ast.Subscript) and up.value is node else self._role(node, event.value)
        return None

    def _on_holder(self, event: Event) -> Effect | None:
        """What an event does to what an object holds that is itself held by a container: it is used with it."""
        up = self._parent(event.node)
        if event.kind is not Kind.READ or (isinstance(up, ast.Subscript) and up.value is event.node):
            return None
        return Effect.USE if self._role(event.node, event.value) is Effect.USE else None

    def _on_element(self, place: Place, event: Event, node: ast.Subscript) -> Effect | None:
        key = str(node.slice.value) if isinstance(node.slice, ast.Constant) else None
        if place.name and key is not None and key != place.name:
            return None
        if event.kind is Kind.WRITE:
            sure = event.base is not None and len(event.base.objs) == 1 and key is not None and key == place.name
            return Effect.DEFINE if sure else Effect.CHANGE
        return self._role(node, event.value)

    def _role(self, node: ast.AST, value: Value) -> Effect | None:
        """What the evaluation of an expression is for: to read it, or only to write to it."""
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return Effect.AUGMENT
        below, up = node, self._parent(node)
        while isinstance(up, (ast.Subscript, ast.Attribute)) and up.value is below:
            if isinstance(up.ctx, (ast.Store, ast.Del)):
                return Effect.CHANGE
            if isinstance(up, ast.Attribute):
                return self._by_method(up, value if below is node else None)
            below, up = up, self._parent(up)
        return Effect.USE

    def _by_method(self, method: ast.Attribute, value: Value | None) -> Effect:
        """What `x.append(...)`, in a statement of its own, does to `value`; None: to something inside it."""
        call = self._parent(method)
        if not (isinstance(call, ast.Call) and call.func is method and isinstance(self._parent(call), ast.Expr)):
            return Effect.USE
        resets = method.attr in RESETS
        if method.attr in GROWS or method.attr.endswith("_"):
            return Effect.DEFINE if resets and value is not None and not value.objs else Effect.CHANGE
        instances = value.instances() if value is not None else ()
        return Effect.CHANGE if resets or (instances and all(o.cls is None for o in instances)) else Effect.USE

    def _parent(self, node: ast.AST | None) -> ast.AST | None:
        tree = self._scopes.tree(node) if node is not None else None
        return tree.parent.get(node) if tree is not None and node is not None else None

    # ------------------------------------------------------------------------------------------------ indices

    @cached_property
    def _events(self) -> list[_Happened]:
        """What happens, each with its indices: a call that is repeated repeats its events."""
        out: dict[int, _Happened] = {}
        for i, event in enumerate(self._record.events):
            known = out.get(id(event))
            if known is None:
                out[id(event)] = event, [i]
            else:
                known[1].append(i)
        return list(out.values())

    def _of(self, node: ast.AST) -> list[Event]:
        """The reads and writes of a node, each once."""
        return [Event(*event) for event, _ in self._accesses.get(node, ())]

    def _indices(self, node: ast.AST, kind: Kind) -> list[int]:
        """When a node is read, or written."""
        return sorted(i for event, indices in self._accesses.get(node, ()) if event[0] is kind for i in indices)

    @cached_property
    def _accesses(self) -> dict[ast.AST, list[_Happened]]:
        """The reads and writes of each node."""
        return _grouped((found[0][1], found) for found in self._events if found[0][0] in (Kind.READ, Kind.WRITE, Kind.CHANGE))

    @cached_property
    def _named(self) -> dict[str, list[_Happened]]:
        """The reads and writes of each name and attribute; those of elements under the empty name."""
        return _grouped((last_name(node), found) for node, each in self._accesses.items() for found in each)

    @cached_property
    def _entered(self) -> dict[object, list[_Happened]]:
        """The calls of each function."""
        return _grouped((found[0][1], found) for found in self._events if found[0][0] is Kind.ENTER)

    @cached_property
    def _writes_of(self) -> dict[object, list[_Happened]]:
        """The events that let a variable hold each object."""
        return _grouped((o, found) for found in self._events if found[0][0] is Kind.WRITE for o in found[0][3].objs if isinstance(o, New))

    @cached_property
    def _events_by_object(self) -> dict[object, list[_Happened]]:
        """The events that make each object, give it, or act on it."""
        return _grouped((obj, found) for found in self._events for obj in _concerned(*found[0]))


def _before_definition(steps: Sequence[Step], first: int) -> tuple[Sequence[Step], bool]:
    """The steps from an event on, up to one that defines the place anew, and whether there is none such."""
    out: list[Step] = []
    for step in steps:
        if step.at >= first:
            if step.effect is Effect.DEFINE:
                return out, False
            out.append(step)
    return out, True


def _makes(kind: Kind, node: ast.AST, value: Value, obj: Obj) -> bool:
    """Whether an event makes an object."""
    return kind is Kind.MAKE or (kind is Kind.CALL and isinstance(obj, New) and obj.node is node and obj in value.objs)


def _concerned(kind: Kind, node: ast.AST, base: Value | None, value: Value) -> set[Obj]:
    """The objects that an event makes, gives, or acts on."""
    objs: set[Obj] = set()
    if kind is Kind.CALL:
        objs = {o for o in value.objs if isinstance(o, New) and o.node is node}
    elif kind in (Kind.READ, Kind.MAKE, Kind.FILL, Kind.CHANGE):
        objs = {o for o in value.objs if isinstance(o, New)}
    if base is not None and (kind is Kind.CALL or isinstance(node, ast.Subscript)):
        objs |= {o for o in base.objs if isinstance(o, New)}
    return objs


def _grouped(pairs: Iterable[tuple[_Key, _Happened]]) -> dict[_Key, list[_Happened]]:
    out: dict[_Key, list[_Happened]] = {}
    for key, found in pairs:
        out.setdefault(key, []).append(found)
    return out


def _in_order(found: dict[int, ast.AST]) -> list[ast.AST]:
    """The nodes of some events, each once."""
    return list(dict.fromkeys(found[i] for i in sorted(found)))


def _owner(obj: Obj) -> object:
    """What an attribute belongs to: of a module its name, as for names inside it."""
    return obj.name if isinstance(obj, Module) else obj
