"""Which names and attributes hold the same tensor, or parts of it: what changes it in place changes it for all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

Holder = tuple[object, str]  # what holds a tensor, and by which name: a running function, a module or an object
Named = Mapping[Holder, ast.expr]  # what holds a tensor, each with the expression that names it


class Aliases:
    """The names of tensors that have several."""

    def __init__(self) -> None:
        self.together: dict[Holder, dict[Holder, ast.expr]] = {}  # by what holds a tensor: all that holds the same
        self.parts: dict[Holder, bool] = {}  # those of them that hold a part of it, and whether that is sure

    def share(self, some: Named, others: Named) -> None:
        """Let these hold the same tensor."""
        if some and others:
            together: dict[Holder, ast.expr] = {}
            for holder, node in (*some.items(), *others.items()):
                together |= {holder: node, **self.together.get(holder, {})}
            self.together |= dict.fromkeys(together, together)

    def forget(self, holder: Holder) -> None:
        """A name holds another tensor from here on."""
        self.together.pop(holder, {}).pop(holder, None)
        self.parts.pop(holder, None)

    def others(self, holders: Iterable[Holder]) -> dict[Holder, ast.expr]:
        """What else holds the tensors of some holders."""
        return {other: node for holder in holders for other, node in self.together.get(holder, {}).items() if other != holder}

    def hand(self, owner: object, name: str, given: Named) -> None:
        """After a call: what holds a parameter's tensor holds that of what was given."""
        kept = dict(self.together.get((owner, name), {}))
        self.share(kept, given if kept else {})

    def leave(self, owner: object) -> None:
        """After a call: the names of a function hold nothing any more."""
        for holder in [h for h in self.together if h[0] is owner]:
            self.forget(holder)

    def include(self, more: Aliases, owner: object = None, now: object = None) -> None:
        """Let what something has named again be named so here, too; what `owner` holds there, `now` holds here."""
        groups = {id(group): group for group in more.together.values()}
        for group in groups.values():
            moved = {(now if of is owner else of, name): node for (of, name), node in group.items()}
            self.share(moved, moved)
        self.parts |= {(now if of is owner else of, name): sure for (of, name), sure in more.parts.items()}

    def of(self, holder: Holder) -> frozenset[tuple[Holder, bool | None]]:
        """What holds the same tensor, and which of it holds a part."""
        return frozenset((each, self.parts.get(each)) for each in self.together.get(holder, ()))
