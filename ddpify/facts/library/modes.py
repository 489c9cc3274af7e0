"""Whether modules are in training mode, where their forwards ask for it: `self.training`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts import named
from ddpify.facts.library import paths
from ddpify.facts.library.row import Use
from ddpify.facts.model import Class, Lit, New, Tup, Value, just
from ddpify.facts.origins import Origin
from ddpify.facts.tree import walk

_MODE = "training"


def begins(use: Use) -> None:
    """A module that is made: it is in training mode."""
    if isinstance(use.of, New) and use.of.cls is not None and _asks(use, use.of.cls):
        use.run.set_attribute(use.of, _MODE, _known(True), True)


def switched(use: Use) -> Value:
    """`model.train()`, `model.train(mode)`, `model.eval()`: the module, and all modules in it."""
    given = use.argument(0, "mode").objs
    asked = {o.value for o in given if isinstance(o, Lit) and isinstance(o.value, bool)}
    modes = {False} if use.name == "eval" else asked if len(asked) == len(given) and given else {True}
    sure = len(modes) == 1 and len(asked) == len(given)
    only = len(use.event.now.objs) <= 1
    for obj in _inside(use, use.of) if isinstance(use.of, New) else ():
        if obj.cls is None or not _asks(use, obj.cls):
            continue
        own = obj is not use.of and use.run.find(obj.cls, "train") is not None  # its own switch may do something else
        mode = _known(*modes) if sure and not own else just(use.run.objects.part(obj, _MODE))
        use.run.set_attribute(obj, _MODE, mode, only)
    now = use.event.now
    return Value(frozenset((use.of,)), now.origins, now.scale, now.shape)


def _known(mode: bool) -> Value:
    return Value(frozenset((Lit(mode),)), frozenset((Origin("literal"),)))


def _inside(use: Use, obj: New) -> Iterator[New]:
    """A module, and the modules that it holds, at any depth."""
    seen, todo = set[New](), [obj]
    while todo:
        inner = todo.pop()
        if inner in seen:
            continue
        seen.add(inner)
        yield inner
        values = [i for _, v in use.run.memory.of(inner) for o in v.objs for i in (o.entries if isinstance(o, Tup) else (just(o),))]
        held = (o for v in values for o in v.objs if isinstance(o, New))
        todo += [o for o in held if use.run.is_module(o) or o.path in (*paths.CONTAINERS, *paths.WRAPPERS, "list", "dict")]


def _asks(use: Use, cls: Class) -> bool:
    """Whether a class, or one that it descends from, asks which mode it is in."""
    memo, key = use.run.project.memo, ("asks for its mode", cls.node)
    if key not in memo:
        classes = (cls, *named.ancestors(cls))
        memo[key] = any(isinstance(n, ast.Attribute) and n.attr == _MODE for c in classes for n in walk(c.node))
    return bool(memo[key])
