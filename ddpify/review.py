"""The choice of a conversion's changes, one after another, by keys as `git add -p` has them. Nothing is read, shown or written here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ddpify.choices import INSTEAD
from ddpify.rules.base import Change, Safety

Decision = Literal["take", "leave", "edit"]

HELP = """\
y  take this change
n  leave it out
a  take this change and all that is undecided in the rest of its file
d  leave them out, of those that can be left out; the core is taken
e  take this change and edit its lines: $EDITOR opens once all is decided
j  decide later    k  back to the change before
q  quit: no file is changed; the command for what was decided so far is shown
?  this help"""


@dataclass(frozen=True)
class Review:
    """What was decided so far of `changes`, in the order they are shown; `at` is the one that is asked about.

    `decided` is by id. `said` answers the last key, where there is more to say than the next change. `ended` is empty until all is
    decided ("done") or nothing is to be done ("quit").
    """

    changes: tuple[Change, ...]
    at: int = 0
    decided: Mapping[str, Decision] = field(default_factory=dict)
    said: str = ""
    ended: Literal["", "done", "quit"] = ""

    @property
    def change(self) -> Change:
        """The change that is asked about."""
        return self.changes[self.at]

    @property
    def core(self) -> tuple[Change, ...]:
        """The changes that stand or fall together."""
        return tuple(change for change in self.changes if not change.without)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The ids of what was left out."""
        return tuple(change.id for change in self.changes if self.decided.get(change.id) == "leave")

    @property
    def to_edit(self) -> tuple[Change, ...]:
        """What is to be edited."""
        return tuple(change for change in self.changes if self.decided.get(change.id) == "edit")

    @property
    def keys(self) -> str:
        """The keys that do something here."""
        others = any(change.id not in self.decided for change in self.changes if change is not self.change)
        return f"y{'n' if self.change.without else ''}ade{'j' if others else ''}{'k' if self.at else ''}q?"

    def press(self, key: str) -> Review:
        """What is so after a key; one that is not known is reported."""
        here = self.change
        rest = [here, *(c for c in self.changes[self.at + 1 :] if c.file == here.file and c.id not in self.decided)]
        match key:
            case "y":
                return self._with({here.id: "take"})
            case "n" if here.without:
                return self._with({here.id: "leave"})
            case "n":
                return replace(self, said=self._refusal())
            case "e":
                return self._with({here.id: "edit"}, "its lines are opened once all is decided")
            case "a":
                return self._with({c.id: "take" for c in rest}, f"{len(rest)} taken in {here.file}")
            case "d":
                leave = [c for c in rest if c.without]
                kept = f"; {len(rest) - len(leave)} of the core taken" if len(leave) < len(rest) else ""
                return self._with({c.id: "leave" if c.without else "take" for c in rest}, f"{len(leave)} left out in {here.file}{kept}")
            case "j":
                return (
                    replace(self, at=self._next(self.decided), said="") if "j" in self.keys else replace(self, said="nothing else is open")
                )
            case "k":
                return replace(self, at=self.at - 1, said="") if self.at else replace(self, said="this is the first change")
            case "q":
                return replace(self, said="", ended="quit")
            case "?":
                return replace(self, said=HELP)
        return replace(self, said="no such key; ? shows them all")

    def _with(self, decisions: Mapping[str, Decision], said: str = "") -> Review:
        decided = {**self.decided, **decisions}
        done = all(change.id in decided for change in self.changes)
        return replace(self, decided=decided, said=said, ended="done" if done else "", at=self.at if done else self._next(decided))

    def _next(self, decided: Mapping[str, Decision]) -> int:
        """The next change that is not decided; after the last, the first."""
        count = len(self.changes)
        order = ((self.at + by) % count for by in range(1, count + 1))
        return next(at for at in order if self.changes[at].id not in decided)

    def _refusal(self) -> str:
        here = self.change
        codes = ", ".join(sorted({change.code for change in self.core}))
        text = f"{here.id} cannot be left out: without it the script would hang, fail or train wrongly.\n"
        text += f"It belongs to the core, changes that need one another: {_counted(self.core)} of {codes}.\n"
        if here.code in INSTEAD:
            text += f"{INSTEAD[here.code]} decides it otherwise: q, and review with that.\n"
        return text + "To take nothing at all: q."


def in_order(changes: Sequence[Change], files: Sequence[str], beside: Collection[str] = ()) -> tuple[Change, ...]:
    """The changes as they are shown: what is to be reviewed first, then by file, as `files` has them, and by line.

    `beside` has the ids of those that stand beside findings to review, or to do by hand.
    """
    place = {file: at for at, file in enumerate(files)}
    return tuple(sorted(changes, key=lambda c: (c.level < Safety.REVIEW and c.id not in beside, place.get(c.file, len(place)), c.line)))


def _counted(changes: Sequence[Change]) -> str:
    return f"{len(changes)} change{'s' if len(changes) != 1 else ''}"
