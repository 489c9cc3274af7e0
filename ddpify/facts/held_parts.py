"""What modules hold: the layers and parameters inside them, at any depth, as far as they are trained."""

from __future__ import annotations

import ast

from ddpify.facts import library
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.model import NOTHING, Lit, New, Obj, Part, Tup, Value
from ddpify.facts.runs import Run

Parts = frozenset[Obj]
NO_PARTS: Parts = frozenset()
LISTS = frozenset(("list", "dict", "tuple"))


class HeldParts:
    """The parts of the modules of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.frozen = self._frozen()

    def parts(self, obj: Obj, seen: frozenset[Obj] = frozenset()) -> Parts:
        """The layers and parameters that a module holds, at any depth, as far as they are trained."""
        if obj in seen or obj in self.frozen:
            return NO_PARTS
        if self.is_holder(obj):
            return frozenset(p for o in self.inside(obj) for p in self.parts(o, seen | {obj}))
        own = isinstance(obj, New) and (is_library_model(obj) or self.is_layer(obj)) and obj.node not in _made_frozen(self.run)
        return frozenset((obj,)) if own else NO_PARTS

    def is_holder(self, obj: Obj) -> bool:
        """Whether an object is a module of the project's own, or a container of modules."""
        return self.run.interpreter.is_module(obj) or (isinstance(obj, New) and obj.path in library.CONTAINERS)

    def is_module(self, obj: Obj) -> bool:
        """Whether an object is a module, a parameter, or holds some."""
        listed = isinstance(obj, New) and obj.path in LISTS
        return listed or self.is_holder(obj) or self.is_layer(obj) or is_library_model(obj)

    @staticmethod
    def is_layer(obj: Obj) -> bool:
        """Whether an object is a parameter, or a layer of torch that has some."""
        return isinstance(obj, New) and library.has_parameters(obj.path)

    def has_bias(self, layer: New) -> bool:
        """Whether a layer is known to have a bias beside its weight, which is trained."""
        kept = "bias" not in self.run.of(layer) and not any(isinstance(o, Part) and o.of is layer for o in self.frozen)
        given = [c.argument(2 if layer.path == "torch.nn.Linear" else -1, "bias") for c in self.run.calls(layer.node)]
        return kept and library.may_have_bias(layer.path) and bool(given) and all(g is None or _is(g, True) for g in given)

    def inside(self, obj: Obj) -> Parts:
        """What a module or container holds; of parts of a library's network, such as `*list(net.children())[:-1]`, that network."""
        out: set[Obj] = set()
        for value in self.run.of(obj).values():
            for o in value.objs:
                out |= {i for item in o.entries for i in item.objs} if isinstance(o, Tup) else {o}
            if isinstance(obj, New) and obj.path in library.CONTAINERS:
                out |= {o for o in value.of_kind("parameters") if is_library_model(o)}
        return frozenset(o for o in out if o is not obj and isinstance(o, New))

    def _frozen(self) -> Parts:
        """The modules whose parameters are set not to be trained."""
        receivers = [s.receiver for s in self.run.stores_as.get("requires_grad", ()) if _is(s.value, False)]
        receivers += [c.receiver for c in self.run.calls_named("requires_grad_") if c.args and _is(c.args[0], False)]
        return frozenset(o for r in receivers for o in (*r.of_kind("parameters"), *r.instances()) if isinstance(o, (New, Part)))

    def optional(self, obj: Obj, model: Obj) -> bool:
        """Whether a part was only built under a condition, within the making of its model."""
        assert isinstance(obj, New)
        outer = min((len(c.tests) for c in self.run.calls(getattr(model, "node", obj.node))), default=0)
        return any(len(c.tests) > outer for c in self.run.calls(obj.node)) or obj in self.run.among_others


def _made_frozen(run: Run) -> frozenset[ast.AST]:
    """The calls that make something whose parameters are not trained: `nn.Parameter(x, requires_grad=False)`."""
    if _made_frozen not in run.known:
        made = (call.node for call in run.trace.calls if _is(call.keywords.get("requires_grad", NOTHING), False))
        run.known[_made_frozen] = frozenset(made)
    return run.known[_made_frozen]  # type: ignore[return-value]


def _is(value: Value, what: object) -> bool:
    return bool(value.objs) and all(isinstance(o, Lit) and o.value is what for o in value.objs)
