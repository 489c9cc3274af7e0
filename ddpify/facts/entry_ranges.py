"""Which entries of a list of layers are used, where its layers are made one like the other in a loop: `blocks[i]`, `blocks[:-1]`.

The entries that a forward reads are ranges of places. Together they are the whole list where they lead from its first to its end.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import NamedTuple

from ddpify.facts import library
from ddpify.facts.held_parts import LISTS, HeldParts, Parts
from ddpify.facts.model import Lit, New, Obj
from ddpify.facts.tree import last_name, same, structure, walk


class Place(NamedTuple):
    """A place in a list: so many entries behind its start, or behind a number that is known by what it is read from."""

    offset: int
    base: Hashable = None

    def moved(self, by: int) -> Place:
        """The place so many entries further on."""
        return Place(self.offset + by, self.base)

    def reaches(self, other: Place) -> bool:
        """Whether a place is known not to lie before another one."""
        return self.base == other.base and self.offset >= other.offset


class Range(NamedTuple):
    """The entries from one place to another, which is not among them."""

    start: Place
    end: Place


_PARAMETERS, _KEYED = "torch.nn.ParameterList", "torch.nn.ParameterDict"
_START = Place(0)
_BACKWARDS = ast.UnaryOp(ast.USub(), ast.Constant(1))
_OPPOSITE = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


class EntryRanges:
    """The ranges of entries that one forward reads of each list whose length is known, as a number or by what it is made from."""

    def __init__(self, held: HeldParts) -> None:
        self.held, self.run = held, held.run
        self.read: dict[New, set[Range]] = {}
        self.keys: dict[New, set[object]] = {}  # the keys by which dicts of parameters are read
        self.in_turn: dict[New, Place] = {}  # layers with names that a loop counts, as many as it has rounds
        self.tests: list[tuple[ast.expr, bool]] = []  # the conditions of a loop around what is read, and what they are answered
        self.answers: dict[Hashable, set[bool]] = {}  # what they were answered where lists were read at one place

    def note(self, lists: Parts, entries: Range | None) -> None:
        """Some lists are read there; None: at places that are not known."""
        for one in lists:
            if isinstance(one, New):
                self.read.setdefault(one, set()).update([entries] if entries is not None else [])

    def note_named(self, layers: Parts, numbers: Range) -> Parts:
        """The layers of some numbers in their names are read there; returns those that are not known to be made in a loop."""
        rounds = {o: self._rounds(o) for o in layers}
        self.in_turn |= (known := {o: n for o, n in rounds.items() if isinstance(o, New) and n is not None})
        self.note(frozenset(known), numbers)
        return layers - known.keys()

    @staticmethod
    def has_keys(obj: Obj) -> bool:
        """Whether an object is a dict of parameters."""
        return isinstance(obj, New) and obj.path == _KEYED

    def note_key(self, dicts: Parts, key: ast.expr) -> None:
        """Dicts of parameters are read by a key, which is not that of a loop over them."""
        for one in dicts:
            if isinstance(one, New):
                self.keys.setdefault(one, set()).update([key.value] if isinstance(key, ast.Constant) else [])

    def _keys_of(self, one: New) -> set[object] | None:
        """The keys of a dict of parameters, where it is made of one that is written out."""
        made = one.node.args[0] if isinstance(one.node, ast.Call) and one.node.args else None
        keys = [k.value if isinstance(k, ast.Constant) else None for k in made.keys] if isinstance(made, ast.Dict) else [None]
        return set(keys) if None not in keys and one not in self.run.calls_on else None

    def _rounds(self, layer: Obj) -> Place | None:
        calls = self.run.calls(layer.node) if isinstance(layer, New) else []
        loops = {c.loops[-1].node if c.loops else None for c in calls}
        loop = loops.pop() if len(loops) == 1 else None
        return self._counted(loop.iter) if isinstance(loop, ast.For) else None

    def whole(self) -> Parts:
        """What the lists hold of which all entries are read."""
        keyed = frozenset(one for one, read in self.keys.items() if (keys := self._keys_of(one)) is not None and keys <= read)
        return keyed.union(*(self.entries(one) for one, ranges in self.read.items() if self._are_all(one, ranges)))

    def entries(self, one: Obj) -> Parts:
        """What a list holds; a list of parameters is one part itself, and so are layers of several names."""
        return frozenset((one,)) if self.held.is_layer(one) or one in self.in_turn else self.held.inside(one)

    def _are_all(self, one: New, ranges: set[Range]) -> bool:
        length, place = self.in_turn.get(one) or self.length(one), _START
        for _ in ranges:
            for start, end in ranges:
                if place.reaches(start) and not place.reaches(end):
                    place = end
        return length is not None and place.reaches(length)

    # ---- lengths

    def length(self, obj: Obj) -> Place | None:
        """How many layers a list has that a comprehension, or a loop that appends to it, makes one like the other."""
        if not isinstance(obj, New) or not isinstance(obj.node, ast.Call) or obj.path not in (*library.CONTAINERS, _PARAMETERS):
            return None
        given = [a.value if isinstance(a, ast.Starred) else a for a in obj.node.args]
        if obj.path == _PARAMETERS and given and isinstance(given[0], ast.List):
            return Place(len(given[0].elts)) if not any(isinstance(e, ast.Starred) for e in given[0].elts) else None
        if len(given) > 1:
            return None
        if given and isinstance(given[0], (ast.ListComp, ast.GeneratorExp)):
            return self._generated(given[0])
        lists = {o for o in self.run.value(given[0]).instances() if o.path in LISTS} if given else {obj}
        grown = [c for o in lists for c in self.run.calls_on.get(o, ())]
        nodes = {c.node for c in grown}
        around = {loop.node for c in grown for loop in c.loops[-1:]}
        if len(lists) != 1 or len(nodes) != 1 or {c.method for c in grown} != {"append"} or len(around) != 1:
            return None
        made, loop, (start,) = nodes.pop(), around.pop(), lists
        alone = isinstance(start.node, ast.Call) or (isinstance(start.node, ast.List) and not start.node.elts)
        if not isinstance(loop, ast.For) or not alone:
            return None
        return self._counted(loop.iter) if any(isinstance(s, ast.Expr) and s.value is made for s in loop.body) else None

    def _generated(self, node: ast.ListComp | ast.GeneratorExp) -> Place | None:
        if len(node.generators) != 1 or node.generators[0].ifs:
            return None
        return self._counted(node.generators[0].iter)

    def _counted(self, over: ast.expr) -> Place | None:
        """How often a loop runs."""
        passes = self.counted(over)
        if passes is not None:
            return passes.end.moved(-passes.start.offset) if passes.start.base is None else None
        return self._length_of(over) if isinstance(over, (ast.Name, ast.Attribute)) else None

    def counted(self, over: ast.expr) -> Range | None:
        """The numbers that `range` or `enumerate` counts, in any order; None of anything else, and where it leaves some out."""
        if isinstance(over, ast.Call) and last_name(over.func) in ("reversed", "tqdm") and len(over.args) == 1:
            over = over.args[0]
        if isinstance(over, ast.Call) and last_name(over.func) == "enumerate" and len(over.args) == 1 and not over.keywords:
            return Range(_START, self._length_of(over.args[0]))
        if not isinstance(over, ast.Call) or last_name(over.func) not in ("range", "xrange") or len(over.args) not in (1, 2):
            return None
        return Range(self.place(over.args[0]) if len(over.args) == 2 else _START, self.place(over.args[-1]))

    def place(self, node: ast.expr) -> Place:
        """The number that an expression is."""
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int(by))):
                return self.place(left).moved(by if isinstance(op, ast.Add) else -by)
            case ast.Call(func=ast.Name(id="len"), args=[of]):
                return self._length_of(of)
            case ast.Constant(value=int(number)):
                return Place(number)
        value = self.run.value(node)
        only = next(iter(value.objs)) if len(value.objs) == 1 else None
        if isinstance(only, Lit) and type(only.value) is int:
            return Place(only.value)
        return Place(0, (value.objs, value.origins) if value.objs or value.origins else structure(node))

    def _length_of(self, node: ast.expr) -> Place:
        lengths = {self.length(o) for o in self.run.value(node).instances()}
        known = lengths.pop() if len(lengths) == 1 else None
        return known if known is not None else Place(0, ("len", structure(node)))

    # ---- what is read

    def chosen(self, lists: Parts, index: ast.expr, loops: dict[str, ast.expr]) -> Range | None:
        """The entries that an index chooses, by its own number or those of a loop; None where that is not known."""
        match index:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(back))):
                ends = {self.length(o) for o in lists}
                end = ends.pop() if len(ends) == 1 else None
                return Range(end.moved(-back), end.moved(1 - back)) if end is not None else None
            case ast.Name(id=name) if name in loops:
                counted = self.counted(loops[name])
                return self._narrowed(name, counted) if counted is not None else None
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int(by))) if (
                inner := self.chosen(lists, left, loops)
            ):
                by = by if isinstance(op, ast.Add) else -by
                return Range(inner.start.moved(by), inner.end.moved(by))
            case ast.Constant(value=int()) | ast.Name() | ast.Attribute() if not self.run.value(index).origins:
                at = self.place(index)
                return Range(at, at.moved(1))
        return None

    def cut(self, one: Obj, rows: ast.Slice) -> Range | None:
        """The entries that a slice of a list takes; None where it leaves some out between them."""
        end = self.length(one)
        if end is None or (rows.step is not None and not (same(rows.step, _BACKWARDS) and rows.lower is rows.upper is None)):
            return None
        bounds = []
        for bound, other in ((rows.lower, _START), (rows.upper, end)):
            match bound:
                case None:
                    bounds.append(other)
                case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(back))):
                    bounds.append(end.moved(-back))
                case _:
                    bounds.append(self.place(bound))
        return Range(*bounds)

    def _narrowed(self, name: str, entries: Range) -> Range | None:
        """The numbers of a loop for which the conditions around hold."""
        for test, answer in self.tests:
            if not any(isinstance(n, ast.Name) and n.id == name for n in walk(test)):
                continue
            match test:
                case ast.Compare(left=ast.Name(id=left), ops=[op], comparators=[right]) if left == name and type(op) in _OPPOSITE:
                    start, end = self._within(entries, type(op) if answer else _OPPOSITE[type(op)], self.place(right))
                    entries = Range(start, end)
                case _:
                    return None
        return entries

    @staticmethod
    def _within(entries: Range, op: type[ast.cmpop], at: Place) -> Range:
        """The numbers of a range that compare so with another one."""
        start, end = entries
        if op in (ast.Lt, ast.LtE):
            upper = at if op is ast.Lt else at.moved(1)
            return Range(start, end if upper.reaches(end) else upper)
        if op in (ast.Gt, ast.GtE):
            lower = at if op is ast.GtE else at.moved(1)
            return Range(start if start.reaches(lower) else lower, end)
        if op is ast.Eq:
            return Range(at, at.moved(1))
        return Range(start.moved(1), end) if at == start else Range(start, at) if at.moved(1) == end else entries
