"""Methods of a library's objects that draw an order or a part of the data: `dataset.shuffle()`, `frame.sample(100)`."""

from __future__ import annotations

from ddpify.facts.library import flow, paths
from ddpify.facts.model import Call, Method, New, Part, Value, paths_of
from ddpify.facts.origins import only


def drawn_by(call: Call) -> tuple[str, ...]:
    """The generators that a method of a library's object draws an order from, as its package says: `dataset.shuffle()`."""
    packages = paths.ORDERING.get(call.method)
    known = any(not isinstance(o, (Method, Part)) for o in call.func.objs)  # a function, or of the project
    if packages is None or known or (call.method == "shuffle" and call.node.args):  # a list that a generator shuffles, or a seed
        return ()
    made_by = (o.of[0] if isinstance(o.of, tuple) else o.of for o in only(call.receiver.origins, "from", "method"))
    objs = (*call.receiver.objs, *(o for o in made_by if isinstance(o, (New, Part))))
    roots = {path.partition(".")[0] for path in paths_of(Value(frozenset(objs)))} - {""}
    if call.method == "sample" and "frac" in call.keywords:
        roots.add("pandas")
    return next((packages[root] for root in sorted(roots) if root in packages), packages.get("", ()))


def with_order(call: Call, result: Value) -> Value:
    """What a call gives, with the draw that decides which samples it has and where; with a seed of its own, it is the same on all ranks."""
    generators = drawn_by(call) if call.method in paths.ORDERING else ()
    if len(generators) != 1 or any(name in call.keywords for name in paths.GENERATORS):
        return result
    return Value(result.objs, result.origins | flow.drawn(generators[0], call.node), result.scale, result.shape)
