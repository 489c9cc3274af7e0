"""No import that a conversion adds takes a name from what the script means by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ddpify.checks.binding import Binding
from ddpify.checks.problem import Problem
from ddpify.facts.names import canonical
from ddpify.facts.tree import walk


def problems(trees: Mapping[str, ast.Module], others: Mapping[str, ast.Module]) -> Iterator[Problem]:
    """The imports of modules, by their dotted names, that are not in `others` and bind a name that is bound to something else there."""
    for module, tree in trees.items():
        if module not in others:
            continue
        before = _imported(others[module])
        binding = Binding(others[module])
        own = binding.scopes[others[module]].bound
        for name, places in _imported(tree).items():
            new = places.keys() - before.get(name, {}).keys()
            if new and name in own:
                path = min(new)
                message = f"this import takes the name {name} from what the script calls so"
                yield Problem(module, places[path], message, ("rebound", module, name), f"give the script's own {name} another name")


def _imported(tree: ast.Module) -> dict[str, dict[str, ast.stmt]]:
    """For each name that imports bind: what they bind it to, by its canonical path, with the import."""
    out: dict[str, dict[str, ast.stmt]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = alias.name if alias.asname else alias.name.partition(".")[0]
                out.setdefault(alias.asname or path, {})[canonical(path)] = node
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                path = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                out.setdefault(alias.asname or alias.name, {})[canonical(path)] = node
    return out
