"""What objects and modules hold, as layers: taking a branch costs nothing, joining two costs what they wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import overload

from ddpify.facts.model import Value

Key = tuple[object, str]
_DEEP = 12


class Memory:
    """A mapping of (object, name) to what it holds. A layer that has children is not written to any more."""

    __slots__ = ("depth", "own", "parent")

    def __init__(self, parent: Memory | None = None, own: dict[Key, Value] | None = None) -> None:
        self.parent = parent
        self.own: dict[Key, Value] = {} if own is None else own
        self.depth: int = 0 if parent is None else parent.depth + 1

    @overload
    def get(self, key: Key) -> Value | None: ...
    @overload
    def get(self, key: Key, default: Value) -> Value: ...
    def get(self, key: Key, default: Value | None = None) -> Value | None:
        """The value held, or `default`."""
        layer: Memory | None = self
        while layer is not None:
            value = layer.own.get(key)
            if value is not None:
                return value
            layer = layer.parent
        return default

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: Key) -> Value:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Value) -> None:
        self.own[key] = value

    def items(self) -> list[tuple[Key, Value]]:
        """All that is held."""
        return list(self.flat().items())

    def flat(self) -> dict[Key, Value]:
        """All layers in one."""
        out: dict[Key, Value] = {}
        for layer in reversed(list(self._layers())):
            out.update(layer.own)
        return out

    def _layers(self) -> Iterator[Memory]:
        layer: Memory | None = self
        while layer is not None:
            yield layer
            layer = layer.parent


def join_all(memories: list[Memory]) -> Memory:
    """What holds whichever of `memories` is the case, on a layer of its own."""
    first = memories[0]
    if all(m is first for m in memories):
        return Memory(first) if first.depth <= _DEEP else Memory(None, first.flat())
    shared = set(map(id, first._layers()))
    for memory in memories[1:]:
        shared &= set(map(id, memory._layers()))
    base = next((layer for layer in first._layers() if id(layer) in shared), None)
    keys: set[Key] = set()
    for memory in memories:
        for layer in memory._layers():
            if layer is base:
                break
            keys.update(layer.own)
    own: dict[Key, Value] = {}
    for key in keys:
        value = None
        for memory in memories:
            held = memory.get(key)
            if held is not None:
                value = held if value is None or value is held else value | held
        if value is not None:
            own[key] = value
    if base is not None and base.depth > _DEEP:
        return Memory(None, {**base.flat(), **own})
    return Memory(base, own)
