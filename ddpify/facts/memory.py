"""What objects and modules hold, in versions: reading is one look-up, taking a branch costs nothing, joining two costs what they wrote."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ddpify.facts.model import Value
from ddpify.facts.record import Record

if TYPE_CHECKING:
    from _collections_abc import dict_items

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


class Reads:
    """What is read while something runs that was there before, and what is written meanwhile."""

    __slots__ = ("_expected", "blended", "owners", "required", "saved", "sound", "written")

    def __init__(self) -> None:
        self.saved: dict[Key, Value | None] = {}  # what was held before, of all that is touched
        self.required: set[Key] = set()  # what of that was read
        self.blended: dict[Key, Value | None] = {}  # what was joined with what branches wrote, with the join, where that was read
        self.written: dict[Key, None] = {}
        self.owners: dict[Any, frozenset[str]] = {}  # of objects all that they hold is read: what they may hold
        self.sound = True  # nothing was read but this
        self._expected: tuple[list[Key], list[Value | None]] | None = None

    def read(self, key: Key, value: Value | None) -> None:
        """Note that something is read."""
        if key not in self.saved:
            self.saved[key] = value
            self.required.add(key)
        elif key in self.blended:
            if self.blended[key] is None:
                self.blended[key] = value
            elif self.blended[key] != value:
                self.required.add(key)
        elif value is self.saved[key]:
            self.required.add(key)

    @property
    def expected(self) -> tuple[list[Key], list[Value | None]]:
        """What was read, and what it held: asked once nothing more is read."""
        if self._expected is None:
            self._expected = list(self.required), list(map(self.saved.get, self.required))
        return self._expected

    def blend(self, key: Key, value: Value | None) -> None:
        """Note that what some branches wrote is joined with what was there before."""
        if key not in self.required and value is self.saved.setdefault(key, value):
            self.blended.setdefault(key, None)

    def overwritten(self) -> list[Key]:
        """All that was read of what was there before, on some way, and written."""
        return [key for key in self.written if key in self.required or self.blended.get(key) is not None]

    def include(self, inner: Reads, before: Callable[[Key], Value | None]) -> None:
        """Note what something inside has read and written; `before` gives what was held before it."""
        mine = self.saved
        new = set(inner.saved).difference(mine)
        mine.update(zip(new, map(before, new), strict=True))
        self.required |= inner.required if len(new) == len(inner.saved) else inner.required & new
        for key in inner.required.difference(self.required) | set(inner.blended).difference(self.required):
            value = before(key)
            if value is not mine[key]:
                continue
            if key in inner.required:
                self.required.add(key)
            elif key in inner.blended:
                self.blend(key, value)
                if (seen := inner.blended[key]) is not None:
                    self.read(key, seen)
        self.written.update(inner.written)
        for owner, names in inner.owners.items():
            self.look_into(owner, names)

    def look_into(self, owner: object, names: frozenset[str]) -> None:
        """Note that all is read that an object holds, which is held by some of the names."""
        known = self.owners.get(owner)
        if known is not names:
            self.owners[owner] = names if known is None else known & names


class Memory(dict[Key, Value]):
    """What each (object, name) holds in the current version; the others follow from what differs on the way there."""

    __slots__ = ("_owned", "_version", "record", "watch")
    held = dict.get  # what is held, which nobody has read by that

    def __init__(self) -> None:
        super().__init__()
        self.record = Record()
        self._owned: dict[Any, dict[str, None]] = {}  # all names that an owner ever held something as
        self._version = Version()
        self.watch: Reads | None = None  # what records reads and writes

    @overload  # type: ignore[override]
    def get(self, key: Key, default: None = None, /) -> Value | None: ...
    @overload
    def get(self, key: Key, default: Value, /) -> Value: ...
    def get(self, key: Key, default: Value | None = None, /) -> Value | None:
        """What is held, or else a default."""
        value = _get(self, key)
        if self.watch is not None and key not in self.watch.required:
            self.watch.read(key, value)
        return default if value is None else value

    def __getitem__(self, key: Key) -> Value:
        if self.watch is not None and key not in self.watch.required:
            self.watch.read(key, _get(self, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        if self.watch is not None and key not in self.watch.required:
            self.watch.read(key, _get(self, key))  # type: ignore[arg-type, misc]
        return super().__contains__(key)

    def items(self) -> dict_items[Key, Value]:
        """All that is held."""
        self.doubt()
        return super().items()

    def doubt(self) -> None:
        """Note that more is read than can be recorded."""
        if self.watch is not None:
            self.watch.sound = False

    def __setitem__(self, key: Key, value: Value) -> None:
        version, watch = self._version, self.watch
        if key not in version.new:
            version.old[key] = _get(self, key)
            self._owned.setdefault(key[0], {})[key[1]] = None
        if watch is not None:
            if key not in watch.saved:
                watch.saved[key] = _get(self, key)
            if value is watch.saved[key]:  # what is read from here on is not what was there before
                value = Value(value.objs, value.origins, value.scale, value.shape)
            watch.written[key] = None
        version.new[key] = value
        super().__setitem__(key, value)

    def add(self, key: Key, value: Value) -> None:
        """Let something hold a value, or what it held."""
        old = _get(self, key)
        if self.watch is not None:
            self.watch.blend(key, old)
        self[key] = value if old is None else old | value

    def of(self, owner: object) -> list[tuple[str, Value]]:
        """All that one object, or module, holds."""
        names = self._owned.get(owner, ())
        found = [(name, _get(self, (owner, name))) for name in names]
        if self.watch is not None:
            self.watch.look_into(owner, frozenset(names))
            for name, value in found:
                self.watch.read((owner, name), value)
        return [(name, value) for name, value in found if value is not None]

    def numbered(self, owner: object) -> list[Value]:
        """What an object holds under the numbers from 0 on: the entries of a list that was written out."""
        out: list[Value] = []
        while (owner, str(len(out))) in self:
            out.append(self[owner, str(len(out))])
        return out

    def written_out(self, owner: object) -> list[Value] | None:
        """The entries of a list that was written out, where none was added since; None of anything else."""
        node = getattr(owner, "node", None)
        if not isinstance(node, ast.List) or any((owner, key) in self for key in ("[?]", "[many]", "iterable")):
            return None
        entries = self.numbered(owner)
        whole = len(entries) == len(node.elts) and not any(isinstance(e, ast.Starred) for e in node.elts)
        return entries if whole else None

    def holds(self, reads: Reads, writes: Mapping[Key, Value]) -> bool:
        """Whether all that was read is now as it was, or makes no difference to what was written then."""
        saved = reads.saved
        keys, values = reads.expected
        if list(map(super().get, keys)) != values:
            return False
        for key, seen in reads.blended.items():
            value, then = _get(self, key), saved[key]
            if value is not then and value != then and not _within(value, then, writes.get(key), seen):
                return False
        return not any(
            name not in names and _get(self, (owner, name)) is not None
            for owner, names in reads.owners.items()
            for name in self._owned.get(owner, ())
        )

    def go_on(self) -> None:
        """Write to a version of its own, as from the current point on."""
        self._version = Version(self._version, self.record.current)

    def drop_versions(self) -> None:
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
        written, before = zip(*(_changes(version, base) for version in versions), strict=True)
        most = max(range(len(written)), key=lambda i: len(written[i]))
        self.restore(versions[most])  # of what it alone wrote, and nobody before, nothing is left to do
        self.record.before[-1] = points
        self._note_made(written, before, most)
        earlier: dict[Key, Value | None] = {key: value for olds in before for key, value in olds.items()}
        others = dict.fromkeys(key for i, all_of in enumerate(written) if i != most for key in all_of)
        for key in (*others, *(key for key, value in before[most].items() if value is not None and key not in others)):
            held = earlier[key]
            if self.watch is not None and not all(key in all_of for all_of in written):
                self.watch.blend(key, held)
            value: Value | None = None
            for all_of in written:
                found = all_of.get(key, held)
                if found is not None and found is not value:
                    value = found if value is None else value | found
            if value is not None and value is not _get(self, key):
                self[key] = value

    def _note_made(self, written: Sequence[Mapping[Key, Value]], before: Sequence[Mapping[Key, Value | None]], most: int) -> None:
        """Note what one branch alone has made that nothing was held for before."""
        if self.watch is not None:
            others = set[Key]().union(*(all_of for i, all_of in enumerate(written) if i != most))
            for key, value in before[most].items():
                if value is None and key not in others:
                    self.watch.blend(key, None)

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


_get = dict.get


def _within(value: Value | None, then: Value | None, made: Value | None, seen: Value | None) -> bool:
    """Whether a value makes the same of a join as the one then."""
    if value is None or made is None or (seen is not None and seen != made):
        return False
    return (then is None or (value | then) is value) and (made | value) is made


def _path(version: Version, base: Version) -> list[Version]:
    """The versions from one back to another that it comes from, that one left out."""
    out = []
    while version is not base:
        out.append(version)
        version = version.parent  # type: ignore[assignment]
    return out


def _changes(version: Version, base: Version) -> tuple[dict[Key, Value], dict[Key, Value | None]]:
    """What was written on the way from one version to another, and what was held before."""
    written, before = dict[Key, Value](), dict[Key, Value | None]()
    path = _path(version, base)
    for step in path:
        before.update(step.old)
    for step in reversed(path):
        written.update(step.new)
    return written, before


def _common(one: Version, other: Version) -> Version:
    """The last version that two come from."""
    while one is not other:
        if one.depth >= other.depth:
            one = one.parent  # type: ignore[assignment]
        else:
            other = other.parent  # type: ignore[assignment]
    return one
