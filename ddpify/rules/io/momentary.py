"""Paths made from the time, by chance or from what lies on the disk, which all ranks must share."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from ddpify.facts.disk import Touch
from ddpify.facts.model import New, Value, just, origins_of
from ddpify.facts.origins import Origin
from ddpify.facts.runs import Run
from ddpify.facts.tree import last_name
from ddpify.rules.context import Context
from ddpify.rules.data import prepare
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop import steering

_MOMENTARY = ("time", "random", "listing")
_DRAWN_FROM_GIVEN = frozenset(("shuffle", "choice", "choices", "sample", "permutation"))


def momentary_paths(context: Context, touched: list[Touch]) -> Iterator[ast.expr]:
    """The paths that all ranks must share, and that are made from the time, by chance, or anew from a listing."""
    run, prepared = context.facts.after, prepare.preparation(context)
    new = {o for t in touched if t.kind in ("write", "make") for o in run.value(t.path).origins if o.kind in ("listing", "drawn")}
    for touch in touched:
        value = run.value(touch.path)
        in_turns = prepared.covers(touch.call)  # the first rank makes them all
        listed = (touch.kind != "make" or in_turns) and _walks(value, frozenset() if in_turns else new)
        if momentary(run, value) and not listed and not _is_shared(context, value) and is_needed(context, touch):
            yield touch.path


def _is_shared(context: Context, path: Value) -> bool:
    """Whether what was drawn for a path is rank 0's on all ranks already, since it also decides how the training goes on."""
    origins = own_origins(context.facts.after, path)
    drawn = {o.of for o in origins if o.kind == "drawn"}
    return bool(drawn) and drawn <= steering.shared_draws(context) and not any(o.kind in ("time", "listing") for o in origins)


def momentary(run: Run, value: Value) -> bool:
    """Whether a value may differ from rank to rank because of when, or by what chance, it was made."""
    return any(o.kind in _MOMENTARY for o in own_origins(run, value))


def own_origins(run: Run, value: Value) -> frozenset[Origin]:
    """What a value was made from beside data: how its samples were drawn matters for what a metric is, and not for where it is written."""
    loaders = [o for o in value.of_kind("batch") if isinstance(o, New)]
    return value.origins - origins_of([v for o in loaders for v in (run.value(o.node), run.interpreter.element(just(o)))])


def is_needed(context: Context, touch: Touch) -> bool:
    """Whether a path that is touched must be the same on all ranks."""
    tree = context.tree
    entry = [n for n in (*touch.call.stack, touch.call.node) if n in tree.parent]
    if touch.kind not in ("read", "list", "make", "handed") or not entry:
        return False
    if guards_of(context).guarded_call(touch.call.node, touch.call.stack):
        return False
    statement = tree.statement(touch.call.node) if context.facts.is_edited(touch.call.node) else None
    alone = isinstance(statement, ast.Expr) and statement.value is touch.call.node
    return touch.kind != "make" or not alone


def _walks(path: Value, new: Set[Origin]) -> bool:
    """Whether a path is one of those that were listed, or one of given ones that was drawn: not a new one made from them."""
    kinds = {o.kind for o in path.origins if o.kind in _MOMENTARY}
    draws = [o.of for o in path.origins if o.kind == "drawn"]
    given = all(isinstance(n, ast.Call) and last_name(n.func) in _DRAWN_FROM_GIVEN for n in draws)
    return (kinds == {"listing"} or (kinds == {"random"} and bool(draws) and given)) and not path.origins & new
