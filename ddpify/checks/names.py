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

    On which paths a script binds its own names is its own affair: those that the same scope binds in `others`, the texts to compare with,
    and those that the module bound on some paths only, wherever its statements run now.
    """
    for module, binding in bindings.items():
        before: Binding | None = None
        for use in binding.uses:
            if use.how == "perhaps" and module in others:
                before = before or Binding(others[module])
                if _is_own(before, use):
                    continue
            where = " where this call runs" if use.call is not None else ""
            yield Problem(module, use.call or use.node, _SAYS[use.how].format(use.name) + where, ("name", module, *_place(use)))


def _place(use: Use) -> tuple[str, ...]:
    return (use.how, use.name) if use.how == "never" else (use.how, use.name, use.scope)


def _is_own(before: Binding, use: Use) -> bool:
    """Whether the text to compare with binds a name in the same scope, or may leave it unbound itself."""
    if any(use.name in scope.bound for scope in before.scopes.values() if scope.name == use.scope):
        return True
    return any((other.name, other.how, other.scope) == (use.name, "perhaps", "") for other in before.uses)
