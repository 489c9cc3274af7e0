"""Every name that a text uses is bound where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.checks.binding import Binding, Use
from ddpify.checks.problem import Problem

_SAYS = {
    "never": "{0} is bound nowhere",
    "not yet": "{0} is not bound yet",
    "perhaps": "{0} is not bound on every path",
}


def problems(bindings: Mapping[str, Binding], others: Mapping[str, ast.Module]) -> Iterator[Problem]:
    """The uses of names in modules, by their dotted names, that are not bound there.

    On which paths a script binds its own names is its own affair: those that the same scope binds in `others`, the texts to compare with.
    """
    for module, binding in bindings.items():
        own: set[tuple[str, str]] | None = None
        for use in binding.uses:
            if use.how == "perhaps":
                own = _bound(others[module]) if own is None and module in others else own
                if own is not None and (use.scope, use.name) in own:
                    continue
            where = " where this call runs" if use.call is not None else ""
            yield Problem(module, use.call or use.node, _SAYS[use.how].format(use.name) + where, ("name", module, *_place(use)))


def _place(use: Use) -> tuple[str, ...]:
    return (use.how, use.name) if use.how == "never" else (use.how, use.name, use.scope)


def _bound(tree: ast.Module) -> set[tuple[str, str]]:
    """The names that each scope binds, by the scope's name."""
    return {(scope.name, name) for scope in Binding(tree).scopes.values() for name in scope.bound}
