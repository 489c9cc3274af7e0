"""The rules that rows of many libraries share: what a call gives, and whether what it is handed is called.

A new row nearly always takes one of these: `computed` for a package that works on what it is given, `instance` for one that makes objects,
`drawn`, `clock` or `listing` where ranks differ, `first` for what gives its argument back, `nothing` for what is only asked or shown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping

from ddpify.facts import sources, tensors
from ddpify.facts.library import flow
from ddpify.facts.library.constructors import construct
from ddpify.facts.library.row import Use
from ddpify.facts.model import NOTHING, Func, Value, join, just
from ddpify.facts.origins import Origin, only
from ddpify.placement.transfer import Rule as PlacementRule

_KEPT_BY_OBJECTS = frozenset(("batch", "whole", "forward", "state", "random", "drawn"))


def nothing(use: Use) -> Value:
    """Nothing that training depends on."""
    return NOTHING


def first(use: Use) -> Value:
    """Its first argument."""
    return use.argument(0, "module")


def combined(use: Use) -> Value:
    """Something computed from all arguments, none of which is called."""
    return use.mixed


def instance(use: Use) -> Value:
    """An object that keeps its arguments, and calls those that are functions."""
    call_arguments(use)
    return uncalled(use)


def uncalled(use: Use) -> Value:
    """An object that keeps its arguments, and calls none of them."""
    obj = use.instance()
    construct(use.run, obj, use.args, use.keywords)
    given = use.mixed
    kept = only(given.origins, *_KEPT_BY_OBJECTS)
    followed = given.scale == "sample" or (given.scale == "other" and use.name[:1].islower() and bool(given.of_kind("batch")))
    return Value(frozenset((obj,)), kept, given.scale if followed else None)  # a function of what is not known is not, either


def path(use: Use) -> Value:
    """A path, which has all that its text was made from: the time and what was drawn, too."""
    made = uncalled(use)
    return Value(made.objs, use.mixed.origins, made.scale)


def called_later(use: Use) -> Value:
    """An object that calls the functions it is given at a moment of its own, which may differ between processes."""
    saved = use.run.deciding
    use.run.deciding |= {Origin("process", use.path)}
    call_arguments(use)
    use.run.deciding = saved
    return uncalled(use)


def fresh(use: Use) -> Value:
    """An object that has nothing to do with what it is given."""
    return just(use.instance())


def drawn(use: Use) -> Value:
    """Random numbers, or an order that is drawn."""
    return Value(frozenset(), use.mixed.origins | flow.drawn(use.path, use.node), tensors.any_function(use.args))


def shuffled(use: Use) -> Value:
    """What is shuffled in place is in an order that was drawn."""
    target = use.node.args[0] if use.node.args else None
    if isinstance(target, (ast.Name, ast.Attribute)):
        value = use.args[0]
        use.run.assign(target, Value(value.objs, value.origins | flow.drawn(use.path, use.node), value.scale, value.shape))
    return drawn(use)


def clock(use: Use) -> Value:
    """What the moment or the process tells."""
    return Value(frozenset(), frozenset((Origin("time", use.node),)))


def listing(use: Use) -> Value:
    """What a folder holds, in an order that the disk decides."""
    return Value(frozenset(), use.mixed.origins | {Origin("listing", use.node)})


def array_function(use: Use, particular: Mapping[str, PlacementRule] = {}) -> Value:
    """A function of arrays, which is followed by its name: by some particular placement rules, or those of `placement/rows.py`."""
    return tensors.function(use.run, use.name, use.node, use.args, use.keywords, use.mixed.origins, particular)


def call_arguments(use: Use, left_out: Collection[ast.AST] = ()) -> Value:
    """What the functions of the project that a library is handed give, which are run, whatever it calls them with; not those `left_out`."""
    given = (obj for value in (*use.args, *use.keywords.values()) for obj in value.objs)
    functions = [obj for obj in given if isinstance(obj, Func) and obj.node not in left_out]
    return join([use.run.call_function(function, use.node, _of_unknown(use, function), {}) for function in functions])


def _of_unknown(use: Use, function: Func) -> list[Value]:
    """What a package that nobody described calls a function with: it may differ between processes, as settings to try do."""
    path = sources.path_of(use.run, use.of)
    path = f"{path}.{use.name}" if path else use.path
    return [sources.marked(use.run, use.node, path, NOTHING)] * needed(function) if "." in path else []


def needed(function: Func) -> int:
    """How many arguments a function must be given."""
    arguments = function.node.args
    bound = function.owner is not None
    return max(len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults) - bound, 0)


def _of_arguments(use: Use) -> Value:
    return flow.mixed([*use.args, call_arguments(use)], use.keywords)


def cased(function: Callable[[Use], Value], of_class: Callable[[Use], Value]) -> Callable[[Use], Value]:
    """A rule for the functions of a package, whose names are in lower case, and another for its classes."""
    return lambda use: (function if use.name[:1].islower() else of_class)(use)


computed = cased(_of_arguments, instance)  # a function computes from its arguments, and calls those that are functions
