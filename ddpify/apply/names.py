"""The names that emitted code takes: chosen once, when all edits are known."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from ddpify.edits import FRESH, FRESH_END, Edit
from ddpify.facts.tree import first_free
from ddpify.records import fields, replace
from ddpify.rules.base import Change

_FRESH = re.compile(rf"{FRESH}\w+?{FRESH_END}")


def chosen(changes: Sequence[Change], bound: Collection[str]) -> tuple[Change, ...]:
    """The changes with a name in the place of each fresh one, which neither is `bound` nor another's.

    Changes are gone through in their order, which is that of the names.
    """
    fresh = dict.fromkeys(name for change in changes for edit in change.edits for name in getattr(edit, "binds", ()))
    if not fresh:
        return tuple(changes)
    taken: dict[ast.AST | None, set[str]] = {None: {*bound, *_imported(changes)}}
    texts: dict[str, str] = {}
    for name in fresh:
        there = set().union(*taken.values()) if name.scope is None else taken[None] | taken.get(name.scope, set())
        texts[str(name)] = first_free(name.preferred, there | name.avoid)
        taken.setdefault(name.scope, set()).add(texts[str(name)])
    return tuple(replace(change, edits=tuple(_named(edit, texts) for edit in change.edits)) for change in changes)


def _named(edit: Edit, texts: dict[str, str]) -> Edit:
    values = {field.name: getattr(edit, field.name) for field in fields(edit)}
    found = {
        key: _FRESH.sub(lambda token: texts[token[0]], text) for key, text in values.items() if isinstance(text, str) and FRESH in text
    }
    return replace(edit, **found) if found else edit  # type: ignore[arg-type]


def _imported(changes: Sequence[Change]) -> set[str]:
    """What the imports that the changes need bind."""
    statements = [s for text in {t for change in changes for t in change.imports} for s in ast.parse(text).body]
    aliases = [a for s in statements if isinstance(s, (ast.Import, ast.ImportFrom)) for a in s.names]
    return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
