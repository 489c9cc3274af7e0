"""Which parameters of a model every training forward uses: the others may have no gradient after a backward.

Each forward is read once more, for the object it belongs to, along all of its ways: what every way mentions is used. A condition that is
the same at every step (a flag, a part that is there or not) chooses among the parts that were built for it; one that is told by an
argument, a draw or the data may choose other parts at each step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable
from typing import Literal

from ddpify.facts import library
from ddpify.facts.model import NOTHING, Call, Class, Func, Lit, New, Obj, Part, Tup, Value, join
from ddpify.facts.runs import Run
from ddpify.facts.tree import structure

Parts = frozenset[Obj]
Outcome = Literal["true", "false", "fixed", "each", "open"]
_NO_PARTS: Parts = frozenset()
_LISTS = frozenset(("list", "dict", "tuple"))
_ITERATORS = frozenset(("enumerate", "zip", "reversed", "list", "tuple", "iter", "sorted"))
_INSIDE = frozenset(("values", "items", "children", "named_children", "modules", "named_modules", "parameters", "named_parameters"))
_SHAPES = frozenset(
    """
        shape size dim ndim ndimension is_cuda dtype device requires_grad numel type is_floating_point
    """.split()
)
_SETTLED = frozenset(("torch", "numpy", "math", "typing", "collections", "functools", "itertools", "operator", "inspect"))  # but for draws
_CHANGING = frozenset(("random", "drawn", "index", "time", "decided"))


def is_library_model(obj: Obj) -> bool:
    """Whether an object is a network that another library made."""
    if not isinstance(obj, New) or obj.cls is not None:
        return False
    root, _, rest = obj.path.partition(".")
    if root == "transformers":
        return ("Model" in rest or "For" in rest) and not rest.partition(".")[0].endswith(("Config", "Tokenizer", "Processor"))
    return (root == "torchvision" and rest.startswith("models.")) or root in ("timm", "segmentation_models_pytorch", "efficientnet_pytorch")


class Uses:
    """Reads the forwards of a project's models."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.known: dict[Obj, Parts] = {}
        self.busy: set[Obj] = set()
        self.by_condition: set[Obj] = set()  # what is used under a condition that is the same at every step
        self.running: set[tuple[ast.AST, Obj]] = set()
        self.frozen = self._frozen()

    # ------------------------------------------------------------------------------------------------ what there is

    def parts(self, obj: Obj, seen: frozenset[Obj] = frozenset()) -> Parts:
        """The layers and parameters that a module holds, at any depth, as far as they are trained."""
        if obj in seen or obj in self.frozen:
            return _NO_PARTS
        if self.is_holder(obj):
            return frozenset(p for o in self.inside(obj) for p in self.parts(o, seen | {obj}))
        own = is_library_model(obj) or self.is_layer(obj)
        return frozenset((obj,)) if own and not self._is_frozen(obj) else _NO_PARTS

    def is_holder(self, obj: Obj) -> bool:
        """Whether an object is a module of the project's own, or a container of modules."""
        return self.run.interpreter.is_module(obj) or (isinstance(obj, New) and obj.path in library.CONTAINERS)

    def is_module(self, obj: Obj) -> bool:
        """Whether an object is a module, a parameter, or holds some."""
        listed = isinstance(obj, New) and obj.path in _LISTS
        return listed or self.is_holder(obj) or self.is_layer(obj) or is_library_model(obj)

    @staticmethod
    def is_layer(obj: Obj) -> bool:
        """Whether an object is a parameter, or a layer of torch that has some."""
        return isinstance(obj, New) and library.has_parameters(obj.path)

    def inside(self, obj: Obj) -> Parts:
        """What a module or container holds."""
        out: set[Obj] = set()
        for value in self.run.of(obj).values():
            for o in value.objs:
                out |= {i for item in o.items for i in item.objs} if isinstance(o, Tup) else {o}
        return frozenset(o for o in out if o is not obj and isinstance(o, New))

    def _frozen(self) -> Parts:
        """The modules whose parameters are set not to be trained."""
        out: set[Obj] = set()
        for store in self.run.trace.stores:
            if isinstance(store.node, ast.Attribute) and store.node.attr == "requires_grad" and _is(store.value, False):
                out |= set(store.receiver.of_kind("parameters")) | set(store.receiver.instances())
        for call in self.run.trace.calls:
            if call.method == "requires_grad_" and call.args and _is(call.args[0], False):
                out |= set(call.receiver.of_kind("parameters")) | set(call.receiver.instances())
        return frozenset(o for o in out if isinstance(o, (New, Part)))

    def _is_frozen(self, obj: Obj) -> bool:
        assert isinstance(obj, New)
        return any(_is(call.keywords.get("requires_grad", NOTHING), False) for call in self.run.calls(obj.node))

    def optional(self, obj: Obj, model: Obj) -> bool:
        """Whether a part was only built under a condition, within the making of its model."""
        assert isinstance(obj, New)
        outer = min((len(c.tests) for c in self.run.calls(getattr(model, "node", obj.node))), default=0)
        calls = self.run.calls(obj.node)
        if any(len(c.tests) > outer for c in calls):
            return True
        return obj in self.run.among_others

    # ------------------------------------------------------------------------------------------------ what is used

    def called(self, obj: Obj) -> Parts:
        """The parts that calling a module uses, whatever its inputs are."""
        if obj in self.known:
            return self.known[obj]
        if obj in self.busy:
            return _NO_PARTS
        self.busy.add(obj)
        if isinstance(obj, New) and obj.cls is not None and self.run.interpreter.is_module(obj):
            found = self.run.interpreter.find(obj.cls, "forward")
            functions = [f for f in found.objs if isinstance(f, Func)] if found is not None else []
            out = _both([self.function(f, obj, []) for f in functions]) if functions else self.parts(obj)
        elif self.is_holder(obj) or (isinstance(obj, New) and obj.path in _LISTS):
            out = frozenset(p for o in self.inside(obj) for p in self.called(o))
        else:
            out = self.parts(obj)
        self.busy.discard(obj)
        self.known[obj] = out
        return out

    def function(self, func: Func, owner: Obj, calls: list[Call]) -> Parts:
        """The parts that a function uses on all its ways, called like any of `calls`."""
        if isinstance(func.node, ast.Lambda) or not isinstance(owner, New) or (func.node, owner) in self.running:
            return _NO_PARTS
        self.running.add((func.node, owner))
        out = _Body(self, func, owner, calls).used()
        self.running.discard((func.node, owner))
        return out

    def forward(self, model: Obj, calls: list[Call]) -> Parts:
        """The parts that these forwards of a trained model use, each of them."""
        if not isinstance(model, New) or model.cls is None:
            return self.called(model)
        found = self.run.interpreter.find(model.cls, "forward")
        functions = [f for f in found.objs if isinstance(f, Func)] if found is not None else []
        return _both([self.function(f, model, calls) for f in functions]) if functions else self.parts(model)


class _Body:
    """One function, read for the object it belongs to."""

    def __init__(self, uses: Uses, func: Func, owner: New, calls: list[Call]) -> None:
        assert not isinstance(func.node, ast.Lambda)
        self.uses, self.run, self.owner, self.node, self.cls = uses, uses.run, owner, func.node, func.cls
        names = [a.arg for a in (*func.node.args.posonlyargs, *func.node.args.args)]
        self.self = names[0] if names else ""
        self.local: dict[str, Parts] = {}
        self.counted: set[str] = set()  # what a loop counts through
        self.arguments = _arguments(self.run, func, calls)
        self.exits: list[Parts] = []
        self.leaves: list[list[str]] = []
        self.loops = frozenset(
            n
            for n in ast.walk(func.node)
            if isinstance(n, (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
        )
        self.fixed = 0
        self.pending: dict[str, Parts] = {}  # what made the value of a name, until it is read: it may be dropped
        self.pending_by_condition: dict[str, Parts] = {}
        self.pending_where: dict[tuple[Hashable, bool], dict[str, Parts]] = {}  # the same, where a question was answered so

    def used(self) -> Parts:
        if any(map(self.without_graph, self.node.decorator_list)):
            return _NO_PARTS
        end = self.block(self.node.body, _NO_PARTS)
        ways = self.exits + ([end] if end is not None else [])
        return _both(ways)

    # ---- statements

    def block(self, body: list[ast.stmt], used: Parts | None) -> Parts | None:
        """What is used once `body` has run; None where control does not come out at its end."""
        for statement in body:
            if used is None:
                return None
            used = self.statement(statement, used)
        return used

    def statement(self, node: ast.stmt, used: Parts) -> Parts | None:
        if isinstance(node, ast.Return):
            self.leave(used | self.mentioned(node.value))
            return None
        if isinstance(node, ast.Raise):
            return None
        if isinstance(node, (ast.Break, ast.Continue)):
            if self.leaves and not self.fixed:
                self.leaves[-1].append(type(node).__name__)
            return None
        if isinstance(node, ast.If):
            return self.choice(node.test, lambda: self.block(node.body, used), lambda: self.block(node.orelse, used), used)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.bind_loop_names(node.target, node.iter)
            return self.loop(node.body, used | self.mentioned_by_iterating(node.iter))
        if isinstance(node, ast.While):
            return self.loop(node.body, used)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            if any(self.without_graph(item.context_expr) for item in node.items):
                return self.ungraded(node.body, used)
            if (flag := next(filter(None, (self.grad_flag(item.context_expr) for item in node.items)), None)) is not None:
                return self.choice(flag, lambda: self.block(node.body, used), lambda: self.ungraded(node.body, used), used)
            for item in node.items:
                used |= self.mentioned(item.context_expr)
            return self.block(node.body, used)
        if isinstance(node, ast.Try):
            out = self.block(node.body, used)
            return self.block(node.finalbody, out) if out is not None else None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):  # what is computed again, most often
            inner = _Body(self.uses, Func(node, "", None, self.cls), self.owner, [])
            inner.self, inner.local, inner.counted = self.self, dict(self.local), set(self.counted)
            inner.pending, inner.pending_by_condition = dict(self.pending), dict(self.pending_by_condition)
            return used | inner.used()
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.bind(target, self.resolve(node.value) or _NO_PARTS)
            if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                return used | self.keep(node.targets[0].id, node.value)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                used |= self.mentioned(child)
        return used

    def without_graph(self, node: ast.expr) -> bool:
        """Whether nothing that is computed under a context, or by a function with a decorator, has gradients: `torch.no_grad()`."""
        maker = node.func if isinstance(node, ast.Call) else node
        return bool(self.run.value(maker).paths() & library.NO_GRAD)

    def grad_flag(self, node: ast.expr) -> ast.expr | None:
        """What `torch.set_grad_enabled` is asked."""
        asked = isinstance(node, ast.Call) and "torch.set_grad_enabled" in self.run.value(node.func).paths()
        return node.args[0] if isinstance(node, ast.Call) and asked and node.args else None

    def ungraded(self, body: list[ast.stmt], used: Parts) -> Parts | None:
        """What is used once `body` has run without gradients: nothing of what it mentions."""
        kept = {**self.pending, **{name: _NO_PARTS for s in body for name in _stored(s)}}
        end, self.pending = self.block(body, used), kept
        return used if end is not None else None

    def keep(self, name: str, value: ast.expr) -> Parts:
        """Let a name hold a value: what is read for it is used; what makes it is once the name is read."""
        everything = self.mentioned(value)
        kept, self.pending = self.pending, {}
        own = self.mentioned(value)
        self.pending = {**kept, name: own}
        for known in (self.pending_by_condition, *self.pending_where.values()):
            known.pop(name, None)
        return everything - own

    def leave(self, used: Parts) -> None:
        if self.fixed:
            self.uses.by_condition |= used
        else:
            self.exits.append(used)

    def choice(self, test: ast.expr, yes: Callable[[], Parts | None], no: Callable[[], Parts | None], used: Parts) -> Parts | None:
        """What two ways use together: one of them where it is known which."""
        outcome = self.outcome(test)
        if outcome == "true":
            return yes()
        if outcome == "false":
            return no()
        self.fixed += outcome == "fixed"
        kept, ends, ways = self.pending, list[Parts](), list[dict[str, Parts]]()
        for answer, way in ((True, yes), (False, no)):
            asked = _question(test, answer)
            self.pending = {**kept, **(self.pending_where.get(asked, {}) if outcome == "fixed" else {})}
            if (end := way()) is not None:
                ends.append(end)
                ways.append(self.pending)
                if outcome == "fixed":
                    self.pending_where[asked] = dict(self.pending)
        self.fixed -= outcome == "fixed"
        self.join_ways(ways, outcome)
        if outcome == "fixed":
            self.uses.by_condition |= {p for end in ends for p in end}
        if not ends:
            return None if outcome != "fixed" else used
        return frozenset().union(*ends) if outcome == "each" else _both(ends)

    def join_ways(self, ways: list[dict[str, Parts]], outcome: Outcome) -> None:
        """What names hold where two branches join: what both gave them, or either where each may run."""
        self.pending = {}
        for name in {n for way in ways for n in way}:
            given = [way.get(name, _NO_PARTS) for way in ways]
            either = _NO_PARTS.union(*given)
            self.pending[name] = either if outcome == "each" else _both(given)
            if outcome == "fixed":
                self.pending_by_condition[name] = self.pending_by_condition.get(name, _NO_PARTS) | either

    def loop(self, body: list[ast.stmt], used: Parts) -> Parts:
        before = dict(self.pending)
        self.leaves.append([])
        end = self.block(body, used)
        if end is not None:  # what one round leaves in a name, the next one reads
            end = self.block(body, end)
        if self.leaves.pop() or end is None:
            self.join_ways([before, self.pending], "open")
            return used
        return end

    def bind(self, target: ast.expr, parts: Parts) -> None:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                self.local[name.id] = parts

    def bind_loop_names(self, target: ast.expr, over: ast.expr) -> None:
        """Let the names of a loop hold the modules that it goes through."""
        func = over.func if isinstance(over, ast.Call) else None
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        given = over.args if isinstance(over, ast.Call) else []
        if name == "zip" and len(parts) == len(given):
            for one, inner in zip(parts, given, strict=True):
                self.bind_loop_names(one, inner)
        elif len(parts) == 2 and name in ("enumerate", "items", "named_children", "named_modules", "named_parameters"):
            self.bind(parts[0], _NO_PARTS)
            if name == "enumerate" and given:
                self.bind_loop_names(parts[1], given[0])
            else:
                self.bind(parts[1], self.iterated(over))
        else:
            self.bind(target, self.iterated(over))

    # ---- expressions

    def mentioned(self, node: ast.AST | None) -> Parts:
        """The parts that evaluating an expression uses."""
        if node is None:
            return _NO_PARTS
        if isinstance(node, ast.Name) and node.id in self.pending:
            self.uses.by_condition |= self.pending_by_condition.get(node.id, _NO_PARTS)
            return self.pending[node.id] | self.evaluated(node)
        return self.evaluated(node)

    def evaluated(self, node: ast.AST) -> Parts:
        """The same, but for what a name may hold."""
        if isinstance(node, ast.IfExp):
            return self.choice(node.test, lambda: self.mentioned(node.body), lambda: self.mentioned(node.orelse), _NO_PARTS) or _NO_PARTS
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return self.comprehension(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            return _NO_PARTS
        if isinstance(node, ast.Call):
            own = self.call(node)
            if own is not None:
                return own
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            found = self.resolve(node)
            if found is not None:
                rest = self.mentioned(node.slice) if isinstance(node, ast.Subscript) else _NO_PARTS
                return rest.union(*(self.uses.called(o) if o is not self.owner else self.uses.parts(o) for o in found))
            if isinstance(node, ast.Attribute) and any(is_library_model(o) for o in self.resolve(node.value) or ()):
                return _NO_PARTS  # a part of it, or one of its methods: others may rest
            plain = node.value if isinstance(node, ast.Attribute) else node
            if isinstance(node, ast.Attribute) and (run := self.property(node)):
                return _NO_PARTS.union(*(self.uses.function(f, o, []) for f, o in run))
            if isinstance(plain, ast.Name):
                return _NO_PARTS if plain is node or plain.id == self.self else self.mentioned(plain)
        return _NO_PARTS.union(*(self.mentioned(c) for c in ast.iter_child_nodes(node) if isinstance(c, (ast.expr, ast.keyword))))

    def property(self, node: ast.Attribute) -> list[tuple[Func, Obj]]:
        """The functions that reading an attribute runs, each with its object."""
        out: list[tuple[Func, Obj]] = []
        for owner in self.resolve(node.value) or ():
            found = self.run.interpreter.find(owner.cls, node.attr) if isinstance(owner, New) and owner.cls is not None else None
            out += [(f, owner) for f in found.objs if isinstance(f, Func)] if found is not None else []
        return [(f, owner) for f, owner in out if getattr(f.node, "decorator_list", ())]

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> Parts:
        used = _NO_PARTS
        for generator in node.generators:
            used |= self.mentioned_by_iterating(generator.iter)
            self.bind_loop_names(generator.target, generator.iter)
            if any(self.outcome(test) == "open" for test in generator.ifs):
                return used
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return used.union(*(self.mentioned(p) for p in parts))

    def call(self, node: ast.Call) -> Parts | None:
        """What calling a method of the object itself uses; None for other calls."""
        func = node.func
        given = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(func, ast.Name) and func.id == "getattr" and node.args and self.resolve(node.args[0]) == frozenset((self.owner,)):
            if len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                return None
            return self.uses.parts(self.owner)
        if not isinstance(func, ast.Attribute):
            return None
        base = func.value
        if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super":
            functions = [
                f
                for b in (self.cls.bases if self.cls is not None else ())
                for c in b.objs
                if isinstance(c, Class)
                for f in (self.run.interpreter.find(c, func.attr) or NOTHING).objs
                if isinstance(f, Func)
            ]
            if not functions:
                return self.uses.parts(self.owner) if func.attr == "forward" else _NO_PARTS
        else:
            owners = self.resolve(base)
            if owners is None or not any(isinstance(o, New) and o.cls is not None for o in owners):
                return None
            if func.attr in _INSIDE and owners == {self.owner}:
                return self.uses.parts(self.owner)
            out = _NO_PARTS.union(*(self.mentioned(g) for g in given))
            seen = False
            for owner in owners:
                found = self.run.interpreter.find(owner.cls, func.attr) if isinstance(owner, New) and owner.cls is not None else None
                held = (owner, func.attr) in self.run.memory
                for f in found.objs if found is not None and not held else ():
                    if isinstance(f, Func):
                        seen = True
                        out |= self.uses.function(f, owner, [])
            return out if seen else None
        out = _NO_PARTS.union(*(self.mentioned(g) for g in given))
        return out.union(*(self.uses.function(f, self.owner, []) for f in functions))

    def iterated(self, node: ast.expr) -> Parts:
        """The modules that a loop goes through."""
        base: Iterable[ast.expr] = [node]
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _ITERATORS:
                return _NO_PARTS.union(*(self.iterated(a) for a in node.args))
            base = [node.func.value] if isinstance(node.func, ast.Attribute) and name in _INSIDE else []
        if isinstance(node, (ast.List, ast.Tuple)):
            return _NO_PARTS.union(*(self.resolve(e) or _NO_PARTS for e in node.elts))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            if any(self.outcome(b) == "open" for b in (node.slice.lower, node.slice.upper) if b is not None):
                return _NO_PARTS
            base = [node.value]
        return _NO_PARTS.union(*(self.uses.inside(o) for b in base for o in self.resolve(b) or ()))

    def mentioned_by_iterating(self, node: ast.expr) -> Parts:
        """What the expression of a loop uses beside what the loop goes through."""
        return _NO_PARTS if self.iterated(node) else self.mentioned(node) if not isinstance(node, ast.Subscript) else _NO_PARTS

    def resolve(self, node: ast.AST) -> Parts | None:
        """The modules and parameters that an expression is; none where which one is open, None where it is something else."""
        if isinstance(node, ast.Name):
            if node.id == self.self:
                return frozenset((self.owner,))
            if node.id in self.local:
                return self.local[node.id] or None
            return self._modules(self.run.value(node).objs) or None
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            if not base:
                return None
            found = join([self.uses.run.of(o).get(node.attr, NOTHING) for o in base])
            return self._modules(found.objs) or None
        if isinstance(node, ast.Subscript):
            base = self.resolve(node.value)
            if not base:
                return base
            if not any(self.uses.is_holder(o) or o.path in _LISTS for o in base if isinstance(o, New)):
                return base  # some of a parameter
            if isinstance(node.slice, ast.Slice):
                return self.iterated(node)
            literal = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
            only = self._only(literal)
            if isinstance(literal, ast.Constant) or only is not None:
                key = literal.value if isinstance(literal, ast.Constant) else only.value if only is not None else ""
                exact = [self.uses.run.of(o).get(str(key), NOTHING) for o in base if literal is node.slice]
                several = frozenset(i for o in base for i in self.uses.inside(o))
                return self._modules(join(exact).objs) or (several if isinstance(literal, ast.Constant) else _NO_PARTS)
            if self.outcome(node.slice) in ("open", "fixed"):
                return _NO_PARTS  # one of several
            return frozenset(i for o in base for i in self.uses.inside(o))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            base, name = self.resolve(node.args[0]), node.args[1]
            if base and isinstance(name, ast.Constant):
                return self._modules(join([self.uses.run.of(o).get(str(name.value), NOTHING) for o in base]).objs) or None
        if isinstance(node, (ast.List, ast.Tuple)):
            inner = [self.resolve(e) for e in node.elts]
            return None if None in inner else _NO_PARTS.union(*(i for i in inner if i is not None))
        return None

    def _modules(self, objs: Iterable[Obj]) -> Parts:
        return frozenset(o for o in objs if self.uses.is_module(o))

    # ---- conditions

    def outcome(self, node: ast.expr) -> Outcome:
        """Whether a condition is known, the same at every step ("fixed"), met for some in each loop ("each"), or open."""
        if isinstance(node, ast.Constant):
            return "true" if node.value else "false"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.outcome(node.operand)
            return "false" if inner == "true" else "true" if inner == "false" else inner
        if isinstance(node, ast.BoolOp):
            parts = [self.outcome(v) for v in node.values]
            ends: Outcome = "true" if isinstance(node.op, ast.Or) else "false"
            if ends in parts:
                return ends
            for kind in ("open", "each", "fixed"):
                if kind in parts:
                    return kind
            return "false" if ends == "true" else "true"
        if isinstance(node, ast.Attribute) and node.attr == "training":
            return "true"
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            known = self._compared(node)
            if known is not None:
                return "true" if known else "false"
        elif (only := self._only(node)) is not None:
            return "true" if only.value else "false"
        return self._kind(node)

    def _compared(self, node: ast.Compare) -> bool | None:
        """Whether a comparison with a constant, or None, is known."""
        op, right = node.ops[0], node.comparators[0]
        if not isinstance(right, ast.Constant):
            return None
        if isinstance(op, (ast.Is, ast.IsNot)) and right.value is None:
            value = self._value(node.left)
            if value is None or not value.objs or any(isinstance(o, Part) for o in value.objs):
                return None if value is None or value.objs or not value.origins else isinstance(op, ast.IsNot)
            empty = {isinstance(o, Lit) and o.value is None for o in value.objs}
            return None if len(empty) > 1 else empty.pop() == isinstance(op, ast.Is)
        only = self._only(node.left)
        if only is None or not isinstance(op, (ast.Eq, ast.NotEq)):
            return None
        return (only.value == right.value) == isinstance(op, ast.Eq)

    def _value(self, node: ast.expr) -> Value | None:
        """What a name or an attribute of the object may be; None where it may change or is not known."""
        if isinstance(node, ast.Name) and node.id in self.arguments:
            return self.arguments[node.id]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self:
            return None if self._changes(node.attr) else self.uses.run.of(self.owner).get(node.attr)
        return self.run.value(node) if isinstance(node, ast.Name) else None

    def _only(self, node: ast.expr) -> Lit | None:
        value = self._value(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if value is None or len(value.objs) != 1 or value.origins - {o for o in value.origins if o.kind == "told"}:
            return None
        (only,) = value.objs
        return only if isinstance(only, Lit) else None

    def _changes(self, name: str) -> bool:
        """Whether an attribute of the object is set again after it was made."""
        stores = self.run.stores_as.get(name, ())
        return any(self.owner in s.receiver.objs and self.owner.node not in s.stack for s in stores)

    def _kind(self, node: ast.expr) -> Outcome:
        """How a condition that is not known may change."""
        kinds: set[Outcome] = set()
        todo: list[ast.AST] = [node]
        while todo:
            part = todo.pop()
            if isinstance(part, ast.Call):
                paths = self.run.value(part.func).paths()
                drawn = any(o.kind in ("random", "drawn", "time") for o in self.run.value(part).origins)
                if drawn or any("." in p and p.partition(".")[0] not in _SETTLED for p in paths):
                    return "open"
                name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
                if name in _SHAPES or name in ("len", "isinstance", "hasattr"):
                    continue
            if isinstance(part, ast.Attribute) and part.attr in _SHAPES:
                continue
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == self.self:
                kinds.add("open" if self._changes(part.attr) else "fixed")
                continue
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                kinds.add(self._named(part))
            todo += ast.iter_child_nodes(part)
        return "open" if "open" in kinds else "each" if "each" in kinds else "fixed"

    def _named(self, node: ast.Name) -> Outcome:
        value = self.arguments.get(node.id, self.run.value(node))
        counts = {o for o in value.origins if o.kind == "index" and o.of in self.loops}
        known = {o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, (bool, int, str, float, type(None)))}
        if len(known) > 1 or value.scale is not None or any(o.kind in _CHANGING for o in value.origins - counts):
            return "open"
        return "each" if counts else "fixed"


def _arguments(run: Run, func: Func, calls: list[Call]) -> dict[str, Value]:
    """What the parameters of a function are in these calls."""
    assert not isinstance(func.node, ast.Lambda)
    spec = func.node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1:]
    defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    out: dict[str, Value] = {}
    for call in calls:
        if "**" in call.keywords:
            continue
        for i, name in enumerate([*names, *(a.arg for a in spec.kwonlyargs)]):
            given = call.argument(i if i < len(names) else -1, name)
            if given is None and name in defaults:
                given = run.value(defaults[name])
            if given is not None:
                out[name] = out[name] | given if name in out else given
    return out


def _stored(node: ast.AST) -> set[str]:
    """The names that a statement binds."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _question(test: ast.expr, answer: bool) -> tuple[Hashable, bool]:
    """A condition and what it is answered, the same for its opposite."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, answer = test.operand, not answer
    return structure(test), answer


def _both(ways: list[Parts]) -> Parts:
    return ways[0].intersection(*ways[1:]) if ways else _NO_PARTS


def _is(value: Value, what: object) -> bool:
    return bool(value.objs) and all(isinstance(o, Lit) and o.value is what for o in value.objs)
