"""Reads of a wrapped model in functions that nothing is seen to run: what calls them may come before the wrap or after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts import library
from ddpify.rules.base import Change
from ddpify.rules.context import Context

CODE = "DDP203"
_WHY = "nothing was seen to call this function, whose model may be in its wrapper by then"


def unseen_reads(context: Context, passed_on: frozenset[str]) -> Iterator[Change]:
    """Attributes that the wrapper does not pass on, of a model that such a function reads from its module or its object."""
    before, after = context.facts.before, context.facts.after
    for node in context.tree.of(ast.Attribute):
        model = node.value
        if model in after.trace.values or node.attr in passed_on or not isinstance(model, (ast.Name, ast.Attribute)):
            continue
        wrapped = context.facts.wrapped(after.at_end(model)) is not False
        if wrapped and not before.at_end(model).kinds() & library.WRAPPERS:  # else the script reads the wrapper itself
            edit = Replace(model, 'getattr({0}, "module", {0})', (model,))
            yield Change(CODE, _WHY, context.tree.shown, model, (edit,))
