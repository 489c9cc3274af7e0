"""A network's module that is imported by an option of the command line: which one was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ddpify.facts import named
from ddpify.facts.model import Lit, Obj
from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context

CODE = "DDP201"
_IMPORTS = frozenset(("importlib.import_module", "__import__"))


def findings(context: Context) -> Iterator[Finding]:
    """A note for each option without choices whose default is a module of the project: another module was not looked at."""
    run = context.facts.after
    for node in dict.fromkeys(c.node for c in run.trace.calls if _IMPORTS & c.func.paths() and c.args):
        options = run.value(node.args[0]).objs
        if _texts(context, options, named.CHOICES):
            continue
        for name in sorted(_texts(context, options, named.DEFAULT) & context.facts.project.files.keys()):
            why = f"the module that this imports is taken to be `{name}`, the option's default: no other one was looked at"
            yield context.manual(CODE, node, why, level=Safety.NOTE)


def _texts(context: Context, options: Iterable[Obj], kind: str) -> set[str]:
    """What options of the command line may be, by their defaults or choices."""
    run = context.facts.after.interpreter
    found = [o for option in options if not isinstance(option, Lit) for o in named.option(run, option, (kind,)).objs]
    return {str(o.value) for o in found if isinstance(o, Lit)}
