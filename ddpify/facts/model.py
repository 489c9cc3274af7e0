"""The abstract values that flow through a script, and the events seen on the way.

A value is a set of abstract objects (what it may be), a set of origins (what it was computed from), and, for numbers
computed from a batch, how they scale with it. All are immutable; what objects hold lies in the interpreter's memory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from ddpify.facts.origins import Origin, of_kind, union
from ddpify.placement.shape import INVERSE, ROOT, ROWS, Base, Scale, Shape
from ddpify.records import dataclass, field

Stack = tuple[ast.AST, ...]
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Ext:
    """Something of a library, by its dotted path: `torch.nn.Linear`, `print`."""

    path: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal. `node` tells two equal literals apart."""

    value: object
    node: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the project."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of the project: its definition, its file, and its bases' values at definition."""

    node: ast.ClassDef
    file: str
    bases: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Func:
    """A function of the project; `owner` is the instance it is bound to, `made` the calls under which an inner function is defined."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    file: str
    owner: Obj | None = None
    cls: Class | None = None
    made: Stack = ()
    place: tuple[object, ...] = field(init=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class New:
    """What one call made: an instance of a class of the project (`cls`) or of a library (`path`). `stack`: the calls it was made under."""

    path: str
    node: ast.AST
    stack: Stack
    cls: Class | None = None
    place: tuple[object, ...] = field(init=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """An attribute of an object that nobody was seen to set: `args.lr`, `resnet.fc`."""

    of: Obj
    name: str
    place: tuple[object, ...] = field(init=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A library object's method."""

    of: Obj
    name: str
    place: tuple[object, ...] = field(init=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple of known length; `names` are those of the fields of a named one. With a `rest`, any number of such entries may follow."""

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()
    rest: Value | None = None

    @property
    def entries(self) -> tuple[Value, ...]:
        """What is known of its entries: each one, and those that may follow."""
        return self.items if self.rest is None else (*self.items, self.rest)

    def each(self, change: Callable[[Value], Value]) -> Tup:
        """A tuple of what each entry is changed to."""
        return Tup(tuple(map(change, self.items)), self.names, None if self.rest is None else change(self.rest))


@dataclass(frozen=True, slots=True)
class Pick:
    """One of the things that a module or an object of the project holds, by a name of which only a pattern is known."""

    of: Module | New
    pattern: str = "*"


@dataclass(frozen=True, slots=True)
class Like:
    """A dotted name of which only a pattern is known: `models.*_model`."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` inside a method of `cls` called on `owner`."""

    owner: Obj
    cls: Class


class Objects:
    """Makes each abstract object once, so that equal ones are the same object in every run over a project."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], object] = {}

    def _get(self, kind: type[_Kind], *fields: object) -> _Kind:
        key = (kind, *fields)
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = kind(*fields)
        return known  # type: ignore[return-value]

    def new(self, path: str, node: ast.AST, stack: Stack, cls: Class | None = None) -> New:
        """What one call made."""
        return self._get(New, path, node, stack, cls)

    def part(self, of: Obj, name: str) -> Part:
        """An attribute that nobody was seen to set."""
        return self._get(Part, of, name)

    def method(self, of: Obj, name: str) -> Method:
        """A library object's method."""
        return self._get(Method, of, name)

    def func(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        file: str,
        owner: Obj | None = None,
        cls: Class | None = None,
        made: Stack = (),
    ) -> Func:
        """A function of the project."""
        return self._get(Func, node, file, owner, cls, made)

    def bound(self, func: Func, owner: Obj | None, cls: Class | None) -> Func:
        """A function as a method: of an instance, or of a class."""
        return self.func(func.node, func.file, owner, cls, func.made)

    def cls(self, node: ast.ClassDef, file: str, bases: tuple[Value, ...]) -> Class:
        """A class of the project."""
        return self._made.setdefault((Class, node), Class(node, file, bases))  # type: ignore[return-value]


def ordered(objs: Collection[_Kind]) -> Collection[_Kind]:
    """Objects in an order that is the same in every run: sets go by addresses and hashes."""
    return objs if len(objs) < 2 else sorted(objs, key=_known_place)


def _known_place(obj: object) -> tuple[object, ...]:
    if not isinstance(obj, (New, Part, Func, Method)):
        return _place(obj)
    if not hasattr(obj, "place"):
        object.__setattr__(obj, "place", _place(obj))
    return obj.place


def _place(obj: object, depth: int = 3) -> tuple[object, ...]:
    """Where an object comes from, in its file, and what it is called."""
    node, inner = getattr(obj, "node", None), getattr(obj, "owner", None) or getattr(obj, "of", None)
    names = (str(getattr(obj, name, "")) for name in ("file", "path", "name", "value", "pattern"))
    around = tuple(_line(call) for call in getattr(obj, "stack", ()))
    return type(obj).__name__, *_line(node), *names, around, _place(inner, depth - 1) if inner is not None and depth else ()


def _line(node: object) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


Obj: TypeAlias = "Ext | Lit | Module | Class | Func | New | Part | Method | Tup | Super | Pick | Like"


Known = tuple[Obj, object, bool]  # a setting, a constant, and whether the setting equals it


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression may be."""

    objs: frozenset[Obj] = frozenset()
    origins: frozenset[Origin] = frozenset()
    scale: Scale | None = None
    shape: Shape | None = None  # of a tensor, as far as known
    _paths: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)
    _instances: frozenset[New] | None = field(default=None, init=False, repr=False, compare=False)

    def __or__(self, other: Value) -> Value:
        if self is other or not (other.objs or other.origins or other.scale):
            return self if other.shape is None else _or_tensor(self, other)
        if not (self.objs or self.origins or self.scale):
            return other if self.shape is None else _or_tensor(other, self)
        scale = self.scale if self.scale == other.scale else _either_scale(self.scale, other.scale)
        origins = union(self.origins, other.origins)
        shape = self.shape if self.shape is other.shape or self.shape == other.shape else _either(self, other)
        scale = "chosen" if scale == "other" and (_are_some(self, other) or _are_some(other, self)) else scale
        if scale in ROWS and (_elsewhere(self, other) or _of_all_ranks(self) or _of_all_ranks(other)):
            scale = "other"
        if scale == self.scale and shape is self.shape and origins is self.origins and other.objs <= self.objs:
            return self
        objs = self.objs | other.objs
        if len(objs) > _MANY and objs != _ANYTHING:
            objs = _ANYTHING  # and so it stays, whatever is added
        return Value(objs if _ANYTHING.isdisjoint(objs) else _ANYTHING, origins, scale, shape)

    def changed(self, by: Value) -> Value:
        """What a tensor is once a view of it, or what it is a view of, has been changed in place."""
        alike = by.scale is None or by.scale == self.scale or (by.scale in ROWS and self.scale in ROWS)
        alike = alike or (self.scale is None and by.scale not in ROWS)
        shape = self.shape and self.shape._replace(uniform=False, falling="")  # entries of a constant may differ from here on
        return Value(self.objs, union(self.origins, by.origins), self.scale if alike else "other", shape)

    def of_kind(self, kind: str) -> frozenset[Any]:
        """What the origins of one kind name."""
        return of_kind(self.origins, kind)

    def batches(self) -> frozenset[Any]:
        """The loaders whose batches it may be, or hold as a tuple."""
        out = self.of_kind("batch")
        for obj in self.objs:
            if isinstance(obj, Tup):
                for item in obj.entries:
                    out |= item.batches()
        return out

    def paths(self) -> frozenset[str]:
        """The paths of the library's functions, classes and modules that it may be."""
        if self._paths is None:
            self._paths = frozenset([o.path for o in self.objs if isinstance(o, Ext)]) if self.objs else _NONE  # type: ignore[misc]
        return self._paths

    def kinds(self) -> frozenset[str]:
        """The paths of the library's classes that it may be an instance of."""
        return frozenset(o.path for o in self.objs if isinstance(o, New) and o.path)

    def instances(self) -> frozenset[New]:
        """The instances it may be."""
        if self._instances is None:
            self._instances = frozenset([o for o in self.objs if isinstance(o, New)]) if self.objs else _NONE  # type: ignore[misc]
        return self._instances

    def is_none(self) -> bool:
        """Whether it is None, and nothing else that is known."""
        none = all(isinstance(o, Lit) and o.value is None for o in self.objs)
        return none and bool(self.objs) and self.shape is None and self.scale is None

    def functions(self) -> frozenset[ast.AST]:
        """The project's functions that it may be, by their definitions."""
        return frozenset(o.node for o in self.objs if isinstance(o, Func))


_NONE = frozenset[Any]()


def _or_tensor(value: Value, constant: Value) -> Value:
    """A value or a tensor that is the same on all ranks: `None` or such a tensor has the tensor's dimensions, and is no mere `None`."""
    if value == NOTHING:
        return constant
    return Value(value.objs, value.origins, None, constant.shape) if value.is_none() else value


def _either_scale(one: Scale | None, other: Scale | None) -> Scale | None:
    """How one of two numbers depends on the batch, where they do so differently."""
    return one if other is None else other if one is None else "other"


def _are_some(rows: Value, first: Value) -> bool:
    """Whether there are rows of all samples, or of the first of them in an order of their own numbers, as a loop leaves fewer and fewer."""
    return rows.scale == "sample" and first.scale == "chosen" and bool(first.of_kind("prefix"))


def _either(one: Value, other: Value) -> Shape | None:
    """The dimensions of one of two tensors."""
    if one.shape is None or other.shape is None:
        alone = one.shape or other.shape
        lost = alone in (INVERSE, ROOT) or (one if one.shape is None else other).scale in ROWS
        return None if lost or alone is None else alone._replace(uniform=False)
    sure, several = one.shape.sure and other.shape.sure, one.shape.several if one.shape.several == other.shape.several else None
    mine, others = _counted_from(one.shape), _counted_from(other.shape)
    axis = (other.shape if other.scale in ROWS and one.scale not in ROWS else one.shape).axis  # a constant has no samples
    if mine >= others or others >= mine:
        return (one.shape if mine >= others else other.shape)._replace(
            axis=axis,
            sure=sure,
            several=several,
            single=False,
            front=False,
            second=False,
            falling="",
            uniform=one.shape.uniform and other.shape.uniform,
            sizes=(),
        )
    return Shape(Base(mine | others), 0, axis, sure, several=several)


def _counted_from(shape: Shape) -> frozenset[Shape]:
    """The dimensions of each of several tensors that a tensor may be, or its own."""
    held = shape.base.of if isinstance(shape.base, Base) and isinstance(shape.base.of, frozenset) else (shape._replace(dims=0),)
    plain = Shape()
    return frozenset(plain._replace(base=s.base, dims=s.dims + shape.dims) for s in held)


def _elsewhere(one: Value, other: Value) -> bool:
    """Whether the samples of two values lie along different dimensions."""
    return one.shape is not None and other.shape is not None and one.shape.axis != other.shape.axis and one.scale == other.scale


def _of_all_ranks(value: Value) -> bool:
    """Whether a value is all ranks' rows of a batch, which are not as many as those of one rank, or is made of them."""
    return value.scale is None and bool(value.of_kind("whole"))


_MANY = 240  # so many alternatives are followed
_ANYTHING: frozenset[Obj] = frozenset((Like("*"),))
NOTHING = Value()


def just(obj: Obj) -> Value:
    """The value that is `obj` and nothing else."""
    return Value(frozenset((obj,)))


def only_literal(value: Value) -> Lit | None:
    """The literal that a value is, if it can be but one; of equal ones that stand in several places, any."""
    objs = value.objs
    first = next(iter(objs)) if objs else None
    if not isinstance(first, Lit):
        return None
    equal = len(objs) == 1 or all(isinstance(o, Lit) and type(o.value) is type(first.value) and o.value == first.value for o in objs)
    return first if equal else None


def in_common(one: Stack, other: Stack) -> int:
    """How many calls two stacks begin with in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a is not b), min(len(one), len(other)))


def outermost(obj: Obj) -> Obj:
    """What something is a part of, through all that it is in; what is no part of anything, itself."""
    while isinstance(obj, Part):
        obj = obj.of
    return obj


def paths_of(value: Value) -> set[str]:
    """The paths of the library's objects that a value may be, or a part of."""
    out: set[str] = set()
    for obj in value.objs:
        out.add(str(getattr(outermost(obj), "path", "")))
    return out


def join(values: list[Value] | tuple[Value, ...]) -> Value:
    """What any of `values` may be."""
    out = NOTHING
    for v in values:
        if v is not out:
            out = out | v
    return out


def library_bases(cls: Class) -> Iterator[str]:
    """The library classes that a class of the project descends from."""
    for base in cls.bases:
        for b in base.objs:
            if isinstance(b, Ext):
                yield b.path
            elif isinstance(b, Class) and b is not cls:
                yield from library_bases(b)


def origins_of(values: Iterable[Value]) -> frozenset[Origin]:
    """What all of `values` were computed from."""
    out = frozenset[Origin]()
    for v in values:
        out = union(out, v.origins)
    return out


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop being run: its statement (or comprehension), its file and what it iterates over."""

    node: ast.AST
    file: str
    over: Value
    element: Value


@dataclass(slots=True)
class Call:
    """All evaluations of one call expression under one stack of calls, joined.

    `order` counts events; `loops` are the loops around it, outermost first, across calls; `tests` the conditions it depends on; `now`
    is the receiver of the evaluation that runs, where `receiver` joins all.
    """

    node: ast.Call
    file: str
    stack: Stack
    order: int
    func: Value
    args: list[Value]
    keywords: dict[str, Value]
    loops: tuple[Loop, ...]
    tests: tuple[tuple[ast.expr, Value], ...]
    no_grad: bool
    receiver: Value = NOTHING
    result: Value = NOTHING
    now: Value = NOTHING
    last: int = 0
    method: str = field(init=False)  # the name behind the dot, or of the function

    def __post_init__(self) -> None:
        f = self.node.func
        self.method = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""

    @property
    def in_place(self) -> bool:
        """Whether a method is called that changes its tensor, as its name says: `add_`; not something of the project that is called so."""
        return self.method.endswith("_") and not self.method.endswith("__") and not any(isinstance(o, (New, Func)) for o in self.func.objs)

    def argument(self, position: int, keyword: str) -> Value | None:
        """The value passed at `position` or as `keyword`."""
        if keyword in self.keywords:
            return self.keywords[keyword]
        return self.args[position] if position is not None and 0 <= position < len(self.args) else None


@dataclass(slots=True)
class Store:
    """All stores into one attribute or subscript expression, joined."""

    node: ast.expr
    file: str
    stack: Stack
    order: int
    receiver: Value
    value: Value
    loops: tuple[Loop, ...]


@dataclass(slots=True)
class Decision:
    """A branch or `while` whose condition was evaluated."""

    node: ast.If | ast.While | ast.IfExp | ast.Try
    file: str
    stack: Stack
    test: Value
    loops: tuple[Loop, ...]


@dataclass(slots=True)
class Trace:
    """What one run of the interpreter saw."""

    calls: list[Call] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    values: dict[ast.AST, Value] = field(default_factory=dict)
    visited: set[ast.AST] = field(default_factory=set)
    views: dict[ast.Name, ast.expr] = field(default_factory=dict)  # where a name is given a tensor that another holds: that one
    exhausted: bool = False
    believed: dict[ast.AST, tuple[str, str]] = field(default_factory=dict)  # where it is said how values differ: of what function, and how
    outputs_of: dict[Obj, set[Obj]] = field(default_factory=dict)  # the modules that a module's outputs come from, through the graph
