"""Classes of named fields, declared like dataclasses, that take no time to import.

`dataclasses` compiles up to six methods of every class when its module is imported, half a millisecond a class. Here `__init__` is
compiled when the first instance is made; what compares, hashes and shows instances is the same few functions for all classes.
Type checkers take these classes for dataclasses, and refuse assignments to the fields of a frozen one; so does the class itself, but for
one with slots, of which many are made.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, fields, replace

_MISSING: Any = object()


class _Field(NamedTuple):
    """One field: its name, its default, and which methods know of it."""

    name: str
    default: Any = _MISSING
    default_factory: Callable[[], Any] | None = None
    init: bool = True
    repr: bool = True
    compare: bool = True


if not TYPE_CHECKING:

    def field(*, default=_MISSING, default_factory=None, init=True, repr=True, compare=True):
        """What a field is that has more to it than a default."""
        return _Field("", default, default_factory, init, repr, compare)

    def fields(record):
        """The fields of a record, or of a class of records, in their order."""
        return record.__fields__

    def replace(record, **changes):
        """A record with other values in some of its fields."""
        if not hasattr(record, "__fields__"):
            from dataclasses import replace

            return replace(record, **changes)
        return type(record)(**{f.name: getattr(record, f.name) for f in record.__fields__ if f.init} | changes)

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False):
        """Make a class one of records, as the decorator of `dataclasses` does."""
        if cls is None:
            return lambda cls: _record(cls, frozen, eq, slots)
        return _record(cls, frozen, eq, slots)


def _record(cls: Any, frozen: bool, eq: bool, slots: bool) -> Any:
    own = dict(vars(cls))
    known = {f.name: f for base in reversed(cls.__mro__[1:]) for f in getattr(base, "__fields__", ())}
    for name in own.get("__annotations__", {}):
        given = own.pop(name, _MISSING)
        known[name] = given._replace(name=name) if isinstance(given, _Field) else _Field(name, given)
    methods: dict[str, Any] = {"__init__": _first, "__repr__": _shown}
    if eq:
        compared = [f.name for f in known.values() if f.compare]
        methods |= {"__key__": staticmethod(attrgetter(*compared) if compared else lambda self: ()), "__eq__": _equal}
        methods["__hash__"] = _hashed if frozen else None
    methods = {"__fields__": tuple(known.values())} | {name: method for name, method in methods.items() if name not in own}
    if frozen and not slots:
        methods["__setattr__"] = methods["__delattr__"] = _refused
    if slots:
        own = {name: held for name, held in own.items() if name not in ("__dict__", "__weakref__")}
        return type(cls)(cls.__name__, cls.__bases__, own | methods | {"__slots__": tuple(known), "__qualname__": cls.__qualname__})
    for f in known.values():
        if f.default is not _MISSING:
            methods[f.name] = f.default
        elif f.name in vars(cls):
            delattr(cls, f.name)
    for name, held in methods.items():
        setattr(cls, name, held)
    return cls


def _first(self: Any, /, *args: Any, **keywords: Any) -> None:
    """The `__init__` of a class until its first instance is made."""
    cls: Any = next(c for c in type(self).__mro__ if vars(c).get("__init__") is _first)
    cls.__init__ = _initializer(cls)
    cls.__init__(self, *args, **keywords)


def _initializer(cls: Any) -> Any:
    """An `__init__` as one would write it for the fields of a class."""
    names: dict[str, Any] = {"_MISSING": _MISSING}
    parameters, body = ["self"], []
    target = "self.__dict__[{!r}]" if vars(cls).get("__setattr__") is _refused else "self.{}"
    for f in cls.__fields__:
        made, given = f"_make_{f.name}()", f"_default_{f.name}"
        names |= {made[:-2]: f.default_factory, given: f.default}
        if f.init:
            has_default = f.default_factory is not None or f.default is not _MISSING
            parameters.append(f"{f.name}={'_MISSING' if f.default_factory is not None else given}" if has_default else f.name)
            otherwise = f" if {f.name} is not _MISSING else {made}" if f.default_factory is not None else ""
            body.append(f"{target.format(f.name)} = {f.name}{otherwise}")
        elif f.default_factory is not None or f.default is not _MISSING:
            body.append(f"{target.format(f.name)} = {made if f.default_factory is not None else given}")
    body.append("self.__post_init__()" if hasattr(cls, "__post_init__") else "pass")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body), names)
    return names["__init__"]


def _refused(self: Any, name: str, value: object = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _equal(self: Any, other: Any) -> Any:
    return self.__key__(self) == self.__key__(other) if type(self) is type(other) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(self.__key__(self))


def _shown(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in self.__fields__ if f.repr)})"


__all__ = ["dataclass", "field", "fields", "replace"]
