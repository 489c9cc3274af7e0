"""Whether a loop starts with nothing each time it is run: then what it has added up is that of one run, and can be summed over ranks."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ddpify.facts.definitions import RESETS
from ddpify.facts.model import Class, Func, Lit, New, Store, Value
from ddpify.facts.tree import Tree, arguments, last_name, names_stored, own_nodes
from ddpify.facts.writes import Batches
from ddpify.rules.context import Context
from ddpify.rules.loop.live_out import LiveOut

_CONVERTED = frozenset("list dict set tuple Counter deque OrderedDict tensor array as_tensor asarray float int".split())
_FILLED = frozenset("Tensor FloatTensor DoubleTensor LongTensor IntTensor HalfTensor".split())
_MOVED = frozenset("to cuda cpu double float long int copy clone".split())
_ZEROS = frozenset("zeros zeros_like new_zeros".split())


def is_fresh(context: Context, loop: Batches, live: LiveOut, totals: Collection[str] = ()) -> bool:
    """Whether something is zero, or empty, at the beginning of each run of a loop; or written by each pass before it is read.

    Of an object of the project, only the attributes in `totals` count, where there are any.
    """
    definitions = context.facts.after.definitions
    if not definitions.exposed(loop, live.places):
        return True
    before = definitions.before(loop, live.places, {w.target for w in live.writes})
    start = _Start(context, frozenset(totals))
    return not (before.undefined or before.changes) and all(start.leaves_nothing(context.facts.tree_of(d), d) for d in before.definitions)


def assigned(tree: Tree, target: ast.expr) -> ast.expr | None:
    """What an assignment gives one of its targets; None where it adds to it or takes it from somewhere unknown."""
    up = tree.parent.get(target)
    if isinstance(up, (ast.Tuple, ast.List)):
        statement = tree.parent.get(up)
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, (ast.List, ast.Tuple)):
            return value.left.elts[0] if len(value.left.elts) == 1 else None  # a, b = [0] * 2
        return value.elts[up.elts.index(target)] if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(up.elts) else None
    return up.value if isinstance(up, (ast.Assign, ast.AnnAssign)) else None


class _Start:
    """What something holds before a loop."""

    def __init__(self, context: Context, totals: frozenset[str]) -> None:
        self.context = context
        self.run = context.facts.after
        self.totals = totals

    def leaves_nothing(self, tree: Tree, definition: ast.AST) -> bool:
        """Whether a definition leaves nothing: by what it assigns or makes, or since it is a reset."""
        if isinstance(definition, ast.Call) and isinstance(definition.func, ast.Attribute) and definition.func.attr in RESETS:
            functions = self.run.value(definition.func).functions()
            return not functions or self._stores_nothing(definition)
        if isinstance(definition, (ast.Name, ast.Attribute, ast.Subscript)):
            if isinstance(definition.ctx, ast.Load):
                return True  # `total.zero_()`
            value = assigned(tree, definition)
            return value is not None and self._nothing(value)
        return isinstance(definition, ast.expr) and self._nothing(definition)

    def _nothing(self, value: ast.expr) -> bool:
        """Whether an expression is zero, or empty, or all of its parts are: then adding over the ranks adds nothing twice."""
        match value:
            case ast.Constant(value=number):
                return number is None or (isinstance(number, (int, float)) and abs(number) < 1e-6)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return all(map(self._nothing, parts))
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
                return self._nothing(part)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._nothing(left) or self._nothing(right)
            case ast.Call():
                return self._makes_nothing(value)
        return False

    def _makes_nothing(self, call: ast.Call) -> bool:
        """Whether a call makes zero, or something empty: out of nothing, or of what is so."""
        func = self.run.value(call.func)
        if any(isinstance(o, (Class, Func)) for o in func.objs):
            return self._stores_nothing(call) if all(isinstance(o, Class) for o in func.objs) else self._returns_nothing(func)
        names = {path.rpartition(".")[2] for path in func.paths()} or {last_name(call.func)}
        if names <= _MOVED and isinstance(call.func, ast.Attribute) and (not call.args or names.isdisjoint(_CONVERTED)):
            return self._nothing(call.func.value)
        if names == {"defaultdict"}:
            return all(map(self._gives_nothing, call.args[:1]))
        if names <= _CONVERTED:
            return all(map(self._nothing, call.args[:1]))
        if names <= _FILLED:
            return all(self._nothing(a) for a in call.args if not isinstance(a, ast.Constant))
        return names <= _ZEROS or (all(name[:1].isupper() for name in names) and all(map(self._nothing, arguments(call))))

    def _gives_nothing(self, factory: ast.expr) -> bool:
        """Whether what a defaultdict calls for a new key gives zero, or something empty: a type, or a function of the project."""
        value = self.run.value(factory)
        functions = value.functions()
        empty = {path.rpartition(".")[2] for path in value.paths()} <= _CONVERTED | {"defaultdict"}
        return self._returns_nothing(value) if functions else empty and not any(isinstance(o, Class) for o in value.objs)

    def _returns_nothing(self, called: Value) -> bool:
        """Whether functions of the project return zero, or something empty, and what is called can be nothing else."""
        functions = called.functions()
        results = [r for f in functions for r in returned(f)]
        return len(functions) == len(called.objs) and bool(results) and all(map(self._nothing, results))

    def _stores_nothing(self, call: ast.Call) -> bool:
        """Whether a constructor, or a method, of a class of the project stores zero, or something empty, in all totals of its object."""
        called = call.func.value if isinstance(call.func, ast.Attribute) else call
        objs = self.run.value(call).instances() or self.run.value(called).instances()
        stored: dict[str, list[Store]] = {name: [] for name in self.totals}
        for store in self.run.trace.stores:
            if call in store.stack and isinstance(store.node, ast.Attribute) and objs & store.receiver.instances():
                stored.setdefault(store.node.attr, []).append(store)
        given = all(map(self._nothing, arguments(call)))  # what a dataclass, or a list of the project's, is made of
        counted = {name: stored[name] for name in self.totals or stored}
        zero = (all(map(self._is_zero, stores)) if stores else given and self._default(objs, name) for name, stores in counted.items())
        return (bool(counted) or given) and all(zero)

    def _is_zero(self, store: Store) -> bool:
        """Whether a store into an attribute leaves zero, or something empty, there: as it is written, or by all that its value may be."""
        value = assigned(self.context.facts.tree_of(store.node), store.node)
        if value is None or self._nothing(value):
            return value is not None
        numbers = [o.value for o in store.value.objs if isinstance(o, Lit)]
        known = bool(numbers) and len(numbers) == len(store.value.objs) and not store.value.origins
        return known and all(isinstance(n, (int, float)) and abs(n) < 1e-6 for n in numbers)

    def _default(self, objs: frozenset[New], name: str) -> bool:
        """Whether the class of an object gives an attribute that its constructor does not store, as that of a dataclass: zero."""
        bodies = [o.cls.node.body if o.cls is not None else [] for o in objs]
        values = [[s.value for s in body if isinstance(s, (ast.Assign, ast.AnnAssign)) and name in _bound(s)] for body in bodies]
        return bool(values) and all(v and v[-1] is not None and self._nothing(v[-1]) for v in values)


def _bound(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    return {n.id for n in names_stored(statement)}


def returned(function: ast.AST) -> list[ast.expr]:
    """What a function returns."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    return [n.value for n in own_nodes(function) if isinstance(n, ast.Return) and n.value is not None]
