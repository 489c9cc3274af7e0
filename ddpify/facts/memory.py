"""What objects and modules hold, in versions: reading is one look-up, taking a branch costs nothing, joining two costs what they wrote."""

from __future__ import annotations

from typing import Any

from ddpify.facts.model import Value
from ddpify.facts.record import Record

Key = tuple[Any, str]


class Version:
    """What was written since another version. One that was handed out is not written to any more."""

    __slots__ = ("depth", "new", "old", "parent", "point")

    def __init__(self, parent: Version | None = None, point: int = 0) -> None:
        self.parent = parent
        self.point = point
        self.new: dict[Key, Value] = {}
        self.old: dict[Key, Value | None] = {}
        self.depth: int = 0 if parent is None else parent.depth + 1


class Memory(dict[Key, Value]):
    """What each (object, name) holds in the current version; the others are told by what differs on the way there."""

    __slots__ = ("_owned", "_version", "record")

    def __init__(self) -> None:
        super().__init__()
        self.record = Record()
        self._owned: dict[Any, dict[str, None]] = {}  # all names that an owner ever held something as
        self._version = Version()

    def __setitem__(self, key: Key, value: Value) -> None:
        version = self._version
        if key not in version.new:
            version.old[key] = self.get(key)
            self._owned.setdefault(key[0], {})[key[1]] = None
        version.new[key] = value
        super().__setitem__(key, value)

    def of(self, owner: object) -> list[tuple[str, Value]]:
        """All that one object, or module, holds."""
        return [(name, self[owner, name]) for name in self._owned.get(owner, ()) if (owner, name) in self]

    def settle(self) -> None:
        """Let go of all other versions."""
        self._version = Version()

    def fork(self) -> Version:
        """The current version; what is written from now on is written to one of its own."""
        version = self._version
        self._version = Version(version, self.record.point([version.point]))
        return version

    def restore(self, version: Version) -> None:
        """Go on from a version, on one of its own."""
        base = _common(self._version, version)
        self._back(base)
        for step in reversed(_path(version, base)):
            self.update(step.new)
        self._version = Version(version, self.record.point([version.point]))

    def join(self, versions: list[Version]) -> None:
        """Go on from what holds whichever of some versions is the case."""
        base = versions[0]
        for version in versions[1:]:
            base = _common(base, version)
        if all(version is base for version in versions):
            self.restore(base)
            return
        points = [version.point for version in versions]
        written: list[dict[Key, Value]] = []
        for version in versions:
            all_of: dict[Key, Value] = {}
            for step in reversed(_path(version, base)):
                all_of.update(step.new)
            written.append(all_of)
        self.restore(base)
        self.record.before[-1] = points
        for key in dict.fromkeys(key for all_of in written for key in all_of):
            before = self.get(key)
            value: Value | None = None
            for all_of in written:
                held = all_of.get(key, before)
                if held is not None and held is not value:
                    value = held if value is None else value | held
            if value is not None and value is not before:
                self[key] = value

    def _back(self, base: Version) -> None:
        version = self._version
        while version is not base:
            for key, value in version.old.items():
                if value is None:
                    del self[key]
                else:
                    super().__setitem__(key, value)
            version = version.parent  # type: ignore[assignment]
        self._version = base


def _path(version: Version, base: Version) -> list[Version]:
    """The versions from one back to another that it comes from, that one left out."""
    out = []
    while version is not base:
        out.append(version)
        version = version.parent  # type: ignore[assignment]
    return out


def _common(one: Version, other: Version) -> Version:
    """The last version that two come from."""
    while one is not other:
        if one.depth >= other.depth:
            one = one.parent  # type: ignore[assignment]
        else:
            other = other.parent  # type: ignore[assignment]
    return one
