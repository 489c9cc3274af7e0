"""Which modules and parameters the expressions of a method name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from fnmatch import fnmatchcase

from ddpify.facts.entry_ranges import EntryRanges, Place, Range
from ddpify.facts.held_parts import LISTS, NO_PARTS, Parts
from ddpify.facts.model import NOTHING, Func, New, Obj, Tup, join
from ddpify.facts.named import pattern
from ddpify.facts.step_conditions import Conditions
from ddpify.facts.tree import is_none, last_name, structure, walk

_ITERATORS = frozenset(("enumerate", "zip", "reversed", "list", "tuple", "iter", "sorted", "islice"))
_NUMBER = (ast.Constant, ast.UnaryOp, ast.USub)  # what a number that is written out consists of
INSIDE = frozenset(("values", "items", "children", "named_children", "modules", "named_modules", "parameters", "named_parameters"))


class NamedParts:
    """The expressions of a function that runs for `owner`; `local` are its names that hold modules."""

    def __init__(self, ranges: EntryRanges, conditions: Conditions, local: dict[str, Parts]) -> None:
        self.ranges, self.held, self.run, self.conditions, self.local = ranges, ranges.held, ranges.run, conditions, local
        self.loops: dict[str, ast.expr] = {}  # what the names of loops count

    def resolve(self, node: ast.AST) -> Parts | None:
        """The modules and parameters that an expression is; none where which one is open, None where it is something else."""
        match node:
            case ast.Name(id=name):
                if name == self.conditions.self_name:
                    return frozenset((self.conditions.owner,))
                return (self.local[name] if name in self.local else self._modules(self.run.value(node).objs)) or None
            case ast.Attribute(value=base, attr=name):
                return self._held_as(self.resolve(base), name) or None
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=name), *_]):
                return self._held_as(self.resolve(base), str(name)) or None
            case ast.Subscript():
                return self._entries(node)
            case ast.List(elts=entries) | ast.Tuple(elts=entries):
                inner = [self.resolve(e) for e in entries]
                return None if None in inner else NO_PARTS.union(*(i for i in inner if i is not None))
        return None

    def put_together(self, base: ast.expr, name: ast.expr) -> Parts | None:
        """The modules that `getattr` may find by a name that is put together, such as those of the numbers of a loop; None: not known."""
        known = pattern(self.run.interpreter, name)
        before, _, after = known.partition("*")
        if not before + after or "*" in after:
            return None
        numbers = self._numbers(name)
        named = [(attr, v) for o in self.resolve(base) or () for attr, v in self.run.of(o).items() if fnmatchcase(attr, known)]
        held = [v for attr, v in named if _is_among(attr[len(before) : len(attr) - len(after)], numbers)]
        found = self._modules(join(held).objs)
        if numbers is None or not found or any(attr != known for attr, _ in named):
            return found or None
        return self.ranges.note_named(found, numbers)

    def methods(self, base: ast.expr, name: ast.expr) -> list[tuple[Func, Obj]]:
        """The methods that `getattr` may find by a name that is put together, each with its object."""
        known = pattern(self.run.interpreter, name)
        owners = [o for o in self.resolve(base) or () if known.strip("*") and isinstance(o, New) and o.cls is not None]
        defined = {o: [s.name for s in o.cls.node.body if isinstance(s, ast.FunctionDef)] for o in owners if o.cls is not None}
        return [(f, o) for o, names in defined.items() for n in names if fnmatchcase(n, known) for f in self.run.methods(o, n)]

    def _numbers(self, name: ast.expr) -> Range | None:
        """The numbers that a name is put together with."""
        match name:
            case ast.JoinedStr(values=pieces):
                given = [p.value for p in pieces if isinstance(p, ast.FormattedValue)]
            case ast.BinOp(op=ast.Mod(), right=one) | ast.BinOp(op=ast.Add(), right=ast.Call(func=ast.Name(id="str"), args=[one])):
                given = [one]
            case ast.Call(func=ast.Attribute(attr="format"), args=given):
                pass
            case _:
                return None
        return self.ranges.chosen(NO_PARTS, given[0], self.loops) if len(given) == 1 else None

    def _held_as(self, owners: Parts | None, name: str) -> Parts:
        """What objects hold by a name."""
        return self._modules(join([self.run.of(o).get(name, NOTHING) for o in owners or ()]).objs)

    def _modules(self, objs: Iterable[Obj]) -> Parts:
        return frozenset(o for o in objs if self.held.is_module(o))

    def _entries(self, node: ast.Subscript) -> Parts | None:
        """What `blocks[i]` may be: the one that is meant, any of them in turn, or none where it is another one at each step."""
        base = self.resolve(node.value)
        keyed = frozenset(o for o in base or () if self.ranges.has_keys(o))
        if base and keyed and self.conditions.outcome(node.slice) != "each":
            self.ranges.note_key(keyed, node.slice)
            return base - keyed
        if not base or not any(self.held.is_holder(o) or o.path in LISTS or self.ranges.length(o) for o in base if isinstance(o, New)):
            return base  # nothing known, or some of a parameter
        if isinstance(node.slice, ast.Slice):
            return self.iterated(node)
        counted = frozenset(o for o in base if self.ranges.length(o) is not None)
        if counted and (entries := self.ranges.chosen(counted, node.slice, self.loops)) is not None:
            self.ranges.note(counted, entries)
            base -= counted
        several = NO_PARTS.union(*map(self.ranges.entries, base))
        index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
        only = index if isinstance(index, ast.Constant) else self.conditions.constant(index)
        if only is None:
            varies = self.conditions.outcome(node.slice) in ("open", "fixed")
            return NO_PARTS if varies or not self._in_all_rounds(base, node.slice) else several
        exact = self._held_as(base, str(only.value)) if index is node.slice else NO_PARTS
        return exact or (several if isinstance(index, ast.Constant) else NO_PARTS)

    def _in_all_rounds(self, lists: Parts, index: ast.expr) -> bool:
        """Whether lists are read at a place in all rounds of a loop: where it has a condition for that, in both of its branches."""
        for test, answer in self.ranges.tests:
            if self.conditions.outcome(test) == "each":
                answers = self.ranges.answers.setdefault((lists, structure(index), structure(test)), set())
                answers.add(answer)
                if len(answers) < 2:
                    return False
        return True

    def iterated(self, node: ast.expr) -> Parts:
        """The modules that a loop goes through."""
        over: ast.expr = node
        match node:
            case ast.Call(func=func, args=[_, *_]) if last_name(func) == "islice":
                return self.iterated(_cut_out(node))
            case ast.Call(func=func) if last_name(func) in _ITERATORS:
                return NO_PARTS.union(*map(self.iterated, self._as_far(node)))
            case ast.Call(func=ast.Attribute(value=base, attr=name)) if name in INSIDE:
                over = base
            case ast.Call():
                return NO_PARTS
            case ast.List(elts=entries) | ast.Tuple(elts=entries):
                return NO_PARTS.union(*(self.resolve(e) or NO_PARTS for e in entries))
            case ast.Subscript(value=base, slice=ast.Slice(lower=lower, upper=upper) as rows):
                if any(self.conditions.outcome(b) == "open" for b in (lower, upper) if b is not None):
                    return NO_PARTS
                return NO_PARTS.union(*(self._cut(o, rows) for o in self.resolve(base) or ()))
        return NO_PARTS.union(*map(self.held.inside, self.resolve(over) or ()))

    def goes_through(self, node: ast.expr) -> bool:
        """Whether a loop goes through modules, all or some of them."""
        if isinstance(node, ast.Call) and last_name(node.func) in _ITERATORS:
            return any(map(self.goes_through, node.args))
        return isinstance(node, ast.Subscript) or bool(self.iterated(node))

    def _as_far(self, node: ast.Call) -> list[ast.expr]:
        """What an iterator goes through; of lists side by side, as far as the shortest goes, where their lengths are known."""
        lengths = {a: self._length(a) for a in node.args}
        known = [n for n in lengths.values() if n is not None]
        if last_name(node.func) != "zip" or len({n.base for n in known}) != 1:
            return node.args
        least = min(n.offset for n in known)
        longer = {a: n.offset - least for a, n in lengths.items() if n is not None and n.offset > least}
        ends = {a: ast.UnaryOp(ast.USub(), ast.Constant(more)) for a, more in longer.items()}
        return [ast.Subscript(a, ast.Slice(upper=ends[a])) if a in ends else a for a in node.args]

    def _length(self, node: ast.expr) -> Place | None:
        """How many entries a list has: one that is written out, or a list of modules that an expression names."""
        written = {self._written(o) for o in self.run.value(node).objs}
        if len(written) == 1 and (count := written.pop()) is not None:
            return Place(count)
        lists = self.resolve(node) or NO_PARTS
        if len(lists) != 1 or not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        (one,) = lists
        numbers = [name for name in self.run.of(one) if name.isdecimal()]
        return self.ranges.length(one) or (Place(len(numbers)) if numbers and len(numbers) == len(self.held.inside(one)) else None)

    def _written(self, obj: Obj) -> int | None:
        """How many entries a tuple has, or a list that is written out and stays so."""
        if isinstance(obj, Tup):
            return len(obj.items) if obj.rest is None else None
        node = obj.node if isinstance(obj, New) and obj not in self.run.calls_on else None
        return len(node.elts) if isinstance(node, ast.List) and not any(isinstance(e, ast.Starred) for e in node.elts) else None

    def _cut(self, obj: Obj, rows: ast.Slice) -> Parts:
        """The modules that a slice of a list takes."""
        if self.ranges.length(obj) is not None:
            self.ranges.note(frozenset((obj,)), self.ranges.cut(obj, rows))
            return NO_PARTS
        numbered = {int(name): value for name, value in self.run.of(obj).items() if name.isdecimal()}
        inside, bounds = self.held.inside(obj), (rows.lower, rows.upper, rows.step)
        written = [ast.literal_eval(b) for b in bounds if b is not None and all(isinstance(n, _NUMBER) for n in walk(b))]
        if len(numbered) < len(inside) or len(written) < sum(b is not None for b in bounds):
            return inside
        given = iter(written)
        taken = sorted(numbered)[slice(*(next(given) if b is not None else None for b in bounds))]
        return self._modules(join([numbered[i] for i in taken]).objs) & inside

    def bind(self, target: ast.expr, parts: Parts) -> None:
        """Let all names of a target hold some modules."""
        self.local.update((n.id, parts) for n in walk(target) if isinstance(n, ast.Name))

    def bind_loop_names(self, target: ast.expr, over: ast.expr) -> None:
        """Let the names of a loop hold the modules that it goes through."""
        name, given = (last_name(over.func), over.args) if isinstance(over, ast.Call) else ("", [])
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if isinstance(over, ast.Call) and name == "zip" and len(parts) == len(given):
            for one, inner in zip(parts, self._as_far(over), strict=True):
                self.bind_loop_names(one, inner)
        elif len(parts) == 2 and name == "enumerate" and given:
            self.bind(parts[0], NO_PARTS)
            self.loops.update((n.id, over) for n in walk(parts[0]) if isinstance(n, ast.Name))
            self.bind_loop_names(parts[1], given[0])
        elif len(parts) == 2 and name in ("enumerate", "items", "named_children", "named_modules", "named_parameters"):
            self.bind(parts[0], NO_PARTS)
            self.bind(parts[1], self.iterated(over))
        else:
            self.bind(target, self.iterated(over))
            if isinstance(target, ast.Name):
                self.loops[target.id] = over


def _is_among(text: str, numbers: Range | None) -> bool:
    """Whether a text may be one of some numbers."""
    if numbers is None or not text.isdecimal() or (numbers.start.base, numbers.end.base) != (None, None):
        return True
    return numbers.start.offset <= int(text) < numbers.end.offset


def _cut_out(node: ast.Call) -> ast.expr:
    """The slice that `islice(layers, ...)` takes."""
    bounds = [None if is_none(a) else a for a in node.args[1:4]]
    return ast.Subscript(node.args[0], ast.Slice(*([None, *bounds] if len(bounds) == 1 else bounds)))
