"""The lists that a function fills with what one layer after the other computes, and those of which it takes only some entries."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ddpify.facts.held_parts import NO_PARTS, Parts
from ddpify.facts.named_parts import NamedParts
from ddpify.facts.tree import walk

_COMPREHENSIONS = (ast.ListComp, ast.DictComp)


class ListedParts:
    """The lists and dicts of one function: which parts each entry is made by alone."""

    def __init__(self, named: NamedParts) -> None:
        self.named, self.conditions = named, named.conditions
        self.made_by: dict[str, Parts] = {}  # what a name holds comes from these layers of a loop, one of them in each round
        self.lists: dict[str, Parts] = {}
        self.some: set[str] = set()  # lists of which some entries are read
        self.whole: set[str] = set()
        self.others: Parts = NO_PARTS  # what makes the entries of lists that have no name

    def passed_over(self) -> Parts:
        """The parts that make entries of lists of which only some entries are read."""
        return self.others.union(*(self.lists[name] for name in self.some - self.whole if name in self.lists))

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """A statement gives names a value."""
        for target in targets:
            match target:
                case ast.Name(id=name) if isinstance(value, _COMPREHENSIONS):
                    self.lists[name] = self.in_turn(_entry(value))
                case ast.Name(id=name):
                    carried = any(isinstance(n, ast.Name) and n.id == name for n in walk(value))
                    self.made_by[name] = NO_PARTS if carried else self.in_turn(value)
                case ast.Subscript(value=ast.Name(id=name), slice=index) if not isinstance(index, ast.Constant):
                    self.put(name, value)

    def put(self, name: str, value: ast.expr) -> None:
        """A list gets one more entry."""
        self.lists[name] = self.lists.get(name, NO_PARTS) | self.in_turn(value)

    def in_turn(self, node: ast.expr | ast.stmt) -> Parts:
        """The parts of which an expression or a statement uses another one in each round of a loop."""
        found = NO_PARTS
        for inner in walk(node):
            match inner:
                case ast.Name(id=name):
                    found |= self.made_by.get(name, NO_PARTS)
                    found |= self.named.local.get(name, NO_PARTS) if name in self.conditions.by_turns else NO_PARTS
                case ast.Subscript(value=base, slice=index) if self._counts(index):
                    found = found.union(*map(self.named.ranges.entries, self.named.resolve(base) or ()))
                case ast.Call(func=ast.Name(id="getattr"), args=[base, name, *_]) if self._counts(name):
                    found |= self.named.put_together(base, name) or NO_PARTS
        return NO_PARTS.union(*map(self.named.held.parts, found))

    def _counts(self, node: ast.expr) -> bool:
        """Whether an expression names what a loop goes through."""
        return any(isinstance(n, ast.Name) and n.id in self.conditions.by_turns for n in walk(node))

    def takes_some(self, node: ast.Subscript) -> bool:
        """Whether it is some entries of a list that is read, and not each of them in turn; one that is set reads none."""
        match node.slice:
            case ast.Slice(lower=None, upper=None):
                return False
            case ast.Slice():
                return True
        return isinstance(node.ctx, ast.Store) or self.conditions.outcome(node.slice) != "each"

    def take_some(self, node: ast.Subscript) -> None:
        """Some entries of a list are read."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()):
                self.some.add(name)
            case ast.Subscript(value=ast.ListComp() | ast.DictComp() as made):
                self.others |= self.in_turn(_entry(made))


def _entry(node: ast.ListComp | ast.DictComp) -> ast.expr:
    """What a comprehension makes for each round."""
    return node.elt if isinstance(node, ast.ListComp) else node.value
