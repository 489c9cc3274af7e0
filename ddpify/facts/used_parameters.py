"""Which parameters of a model every training forward uses: the others may have no gradient after a backward.

Each forward is read once more, for the object it belongs to, along all of its ways: what every way mentions is used. A condition that is
the same at every step (a flag, a part that is there or not) chooses among the parts that were built for it; one that is decided by an
argument, a draw or the data may choose other parts at each step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable

from ddpify.facts import library
from ddpify.facts.entry_ranges import EntryRanges
from ddpify.facts.held_parts import LISTS, NO_PARTS, HeldParts, Parts
from ddpify.facts.last_round import in_vain
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.listed_parts import ListedParts
from ddpify.facts.model import NOTHING, Call, Class, Func, New, Obj, Part
from ddpify.facts.named_parts import INSIDE, NamedParts
from ddpify.facts.runs import Run
from ddpify.facts.step_conditions import Conditions, Outcome, arguments_of
from ddpify.facts.tree import arguments, structure, walk

# What is asked of a tensor without computing with it: `next(self.parameters()).device`, `weight.new_zeros(2)`.
_ASKED = frozenset("device dtype is_cuda layout shape ndim requires_grad is_leaf".split())
_HALVES = ("weight", "bias")
_MADE_ALIKE = frozenset("new new_zeros new_ones new_full new_empty new_tensor size dim numel".split())


class Uses:
    """Reads the forwards of a project's models."""

    def __init__(self, run: Run) -> None:
        self.run, self.held = run, HeldParts(run)
        self.ranges = EntryRanges(self.held)
        self.known: dict[Obj, Parts] = {}
        self.busy: set[Obj] = set()
        self.by_condition: set[Obj] = set()  # what is used under a condition that is the same at every step
        self.detached: set[Obj] = set()  # layers of which a forward detaches a parameter: it has no gradient there
        self.passed_over: set[Obj] = set()  # what made entries of lists of which a forward takes some
        self.running: set[tuple[ast.AST, Obj]] = set()

    def called(self, obj: Obj) -> Parts:
        """The parts that calling a module uses, whatever its inputs are."""
        if obj in self.known:
            return self.known[obj]
        if obj in self.busy:
            return NO_PARTS
        self.busy.add(obj)
        if isinstance(obj, New) and obj.cls is not None and self.run.interpreter.is_module(obj):
            out = self.forward(obj, [])
        elif self.held.is_holder(obj) or (isinstance(obj, New) and obj.path in LISTS):
            out = frozenset(p for o in self.held.inside(obj) for p in self.called(o))
        else:
            out = self.held.parts(obj)
        self.busy.discard(obj)
        self.known[obj] = out
        return out

    def function(self, func: Func, owner: Obj, calls: list[Call]) -> Parts:
        """The parts that a function uses on all its ways, called like any of `calls`."""
        if isinstance(func.node, ast.Lambda) or not isinstance(owner, New) or (func.node, owner) in self.running:
            return NO_PARTS
        self.running.add((func.node, owner))
        out = _Body(self, func, owner, calls).used()
        self.running.discard((func.node, owner))
        return out

    def stored(self, func: Func, owner: Obj) -> Parts:
        """The parts that a lambda uses which a method stored in an attribute: it has the names of that method."""
        tree = self.run.scopes.tree(func.node)
        method = tree.function(func.node) if tree is not None else None
        makers = [f for f in self.run.methods(owner, getattr(method, "name", "")) if f.node is method]
        names = {a.arg for a in walk(func.node) if isinstance(a, ast.arg)}
        if not isinstance(func.node, ast.Lambda) or not isinstance(owner, New) or not makers or names & _stored(makers[0].node):
            return NO_PARTS
        known, around = set(self.by_condition), _Body(self, makers[0], owner, [])
        around.used()
        self.by_condition = known
        return around.mentioned(func.node.body)

    def forward(self, model: Obj, calls: list[Call]) -> Parts:
        """The parts that these forwards of a trained model use, each of them."""
        if not isinstance(model, New) or model.cls is None:
            return self.called(model)
        functions = self.run.methods(model, "forward")
        if not functions:
            return self.held.parts(model)
        outer, self.ranges = self.ranges, EntryRanges(self.held)
        used = _both([self.function(f, model, calls) for f in functions])
        used = used.union(*map(self.called, self.ranges.whole()))
        self.ranges = outer
        used -= self.passed_over
        halves = [p for p in used if isinstance(p, Part) and p.name in _HALVES]
        return used | {one.of for one in halves for other in halves if one.of is other.of and one is not other}

    def half(self, layer: Obj, name: str) -> Part | None:
        """The weight or the bias of a layer that has both, as a part of its own; None of other layers and parameters."""
        if name not in _HALVES or not isinstance(layer, New) or not self.held.has_bias(layer):
            return None
        return self.run.interpreter.objects.part(layer, name)


class _Body:
    """One function, read for the object it belongs to; one that is defined in `outer` has its names."""

    def __init__(self, uses: Uses, func: Func, owner: New, calls: list[Call], outer: _Body | None = None) -> None:
        assert not isinstance(func.node, ast.Lambda)
        self.uses, self.run, self.owner, self.node, self.cls = uses, uses.run, owner, func.node, func.cls
        names = [a.arg for a in (*func.node.args.posonlyargs, *func.node.args.args)]
        self.self: str = outer.self if outer is not None else names[0] if names else ""
        self.conditions = Conditions(self.run, func.node, owner, self.self, arguments_of(self.run, func, calls))
        self.named: NamedParts = NamedParts(uses.ranges, self.conditions, dict(outer.named.local) if outer is not None else {})
        self.listed = ListedParts(self.named)
        self.exits: list[Parts] = []
        self.leaves: list[bool] = []  # for each loop around: whether it may be left early
        self.fixed = 0
        self.pending: dict[str, Parts] = dict(outer.pending) if outer is not None else {}  # what made a name's value: it may be dropped
        self.attributes: set[str] = set(outer.attributes) if outer is not None else set()  # names that hold one, and nothing computed
        self.pending_by_condition: dict[str, Parts] = dict(outer.pending_by_condition) if outer is not None else {}
        self.pending_where: dict[tuple[Hashable, bool], dict[str, Parts]] = {}  # the same, where a question was answered so

    def used(self) -> Parts:
        if any(map(self.without_graph, self.node.decorator_list)):
            return NO_PARTS
        end = self.block(self.node.body, NO_PARTS)
        self.uses.passed_over |= self.listed.passed_over()
        return _both(self.exits + ([end] if end is not None else []))

    # ---- statements

    def block(self, body: list[ast.stmt], used: Parts | None) -> Parts | None:
        """What is used once `body` has run; None where control does not come out at its end."""
        for statement in body:
            if used is None:
                return None
            used = self.statement(statement, used)
        return used

    def statement(self, node: ast.stmt, used: Parts) -> Parts | None:
        """What is used once a statement has run; None where control does not come out behind it."""
        match node:
            case ast.Return():
                self.leave(used | self.mentioned(node.value))
                return None
            case ast.Raise():
                return None
            case ast.Break() | ast.Continue():
                if self.leaves and not self.fixed:
                    self.leaves[-1] = True
                return None
            case ast.If():
                return self.choice(node.test, lambda: self.block(node.body, used), lambda: self.block(node.orelse, used), used)
            case ast.For() | ast.AsyncFor():
                self.named.bind_loop_names(node.target, node.iter)
                if isinstance(node, ast.For):
                    vain, others = in_vain(node, self.node)
                    self.uses.passed_over |= self.in_turn(vain) - self.in_turn(others)
                return self.loop(node.body, used | self.mentioned_by_iterating(node.iter))
            case ast.While():
                return self.loop(node.body, used)
            case ast.With() | ast.AsyncWith():
                return self.context(node, used)
            case ast.Try():
                out = self.block(node.body, used)
                return self.block(node.finalbody, out) if out is not None else None
            case ast.FunctionDef() | ast.AsyncFunctionDef():  # what is computed again, most often
                return used | _Body(self.uses, Func(node, "", None, self.cls), self.owner, [], self).used()
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
                self.listed.put(name, value)
                return used | self.mentioned(value)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.named.bind(target, self.named.resolve(value) or NO_PARTS)
                kept = self.keep(targets[0].id, value) if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
                self.listed.assign(targets, value)
                if kept is not None:
                    return used | kept
        return used.union(*(self.mentioned(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)))

    def in_turn(self, statements: list[ast.stmt]) -> Parts:
        """The parts of which some statements use another one in each round of a loop."""
        return NO_PARTS.union(*map(self.listed.in_turn, statements))

    def context(self, node: ast.With | ast.AsyncWith, used: Parts) -> Parts | None:
        """What is used once a `with` has run: nothing in it, where it computes without gradients."""
        if any(self.without_graph(item.context_expr) for item in node.items):
            return self.ungraded(node.body, used)
        if (flag := next(filter(None, (self.grad_flag(item.context_expr) for item in node.items)), None)) is not None:
            return self.choice(flag, lambda: self.block(node.body, used), lambda: self.ungraded(node.body, used), used)
        return self.block(node.body, used.union(*(self.mentioned(item.context_expr) for item in node.items)))

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
        kept = {**self.pending, **{name: NO_PARTS for s in body for name in _stored(s)}}
        chosen = set(self.uses.by_condition)
        end, self.pending, self.uses.by_condition = self.block(body, used), kept, chosen
        return used if end is not None else None

    def keep(self, name: str, value: ast.expr) -> Parts:
        """Let a name hold a value: what is read for it is used; what makes it is once the name is read."""
        everything = self.mentioned(value)
        (self.attributes.add if isinstance(value, ast.Attribute) else self.attributes.discard)(name)
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
        outcome = self.conditions.outcome(test)
        if outcome == "true":
            return yes()
        if outcome == "false":
            return no()
        self.fixed += outcome == "fixed"
        kept, ends, ways = self.pending, list[Parts](), list[dict[str, Parts]]()
        for answer, way in ((True, yes), (False, no)):
            asked = _question(test, answer)
            self.pending = {**kept, **(self.pending_where.get(asked, {}) if outcome == "fixed" else {})}
            self.uses.ranges.tests.append((test, answer))
            end = way()
            self.uses.ranges.tests.pop()
            if end is not None:
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
            given = [way.get(name, NO_PARTS) for way in ways]
            either = NO_PARTS.union(*given)
            self.pending[name] = either if outcome == "each" else _both(given)
            if outcome == "fixed":
                self.pending_by_condition[name] = self.pending_by_condition.get(name, NO_PARTS) | either

    def loop(self, body: list[ast.stmt], used: Parts) -> Parts:
        before = dict(self.pending)
        self.leaves.append(False)
        end = self.block(body, used)
        if end is not None:  # what one round leaves in a name, the next one reads
            end = self.block(body, end)
        if self.leaves.pop() or end is None:
            self.join_ways([before, self.pending], "open")
            return used
        return end

    # ---- expressions

    def mentioned(self, node: ast.AST | None) -> Parts:
        """The parts that evaluating an expression uses."""
        if node is None:
            return NO_PARTS
        if isinstance(node, ast.Name):
            self.listed.whole.add(node.id)
            return self.by_name(node)
        return self.evaluated(node)

    def by_name(self, node: ast.Name) -> Parts:
        """The same of a name."""
        if node.id in self.pending:
            self.uses.by_condition |= self.pending_by_condition.get(node.id, NO_PARTS)
            return self.pending[node.id] | self.evaluated(node)
        return self.evaluated(node)

    def evaluated(self, node: ast.AST) -> Parts:
        """The same, but for what a name may hold."""
        own: Parts | None = None
        match node:
            case ast.IfExp():
                chosen = self.choice(node.test, lambda: self.mentioned(node.body), lambda: self.mentioned(node.orelse), NO_PARTS)
                return chosen or NO_PARTS
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return self.comprehension(node)
            case ast.Subscript(value=ast.Dict(values=entries) | ast.List(elts=entries) | ast.Tuple(elts=entries), slice=index) if (
                entries and not isinstance(index, (ast.Slice, ast.Constant))
            ):
                return self.mentioned(index) | self.one_of(entries, index)
            case ast.Subscript(value=ast.Name() | ast.ListComp() | ast.DictComp()) if self.listed.takes_some(node):
                return self.some_entries(node)
            case ast.Attribute(value=of, attr=asked) if asked in _ASKED and self.named.resolve(of) is None:
                return NO_PARTS
            case ast.Call(func=ast.Attribute(value=of, attr=made)) if made in _MADE_ALIKE and self.named.resolve(of) is None:
                return self.given(node)
            case ast.Call(func=ast.Attribute(value=of, attr="detach")):
                self.uses.detached |= self.parameter(of)
                return NO_PARTS
            case ast.Call():
                own = self.call(node)
                own = self.read(node) if own is None else own
            case ast.Name() | ast.Attribute() | ast.Subscript():
                own = self.read(node)
        if own is not None:
            return own
        return NO_PARTS.union(*(self.mentioned(c) for c in ast.iter_child_nodes(node) if isinstance(c, (ast.expr, ast.keyword))))

    def one_of(self, entries: list[ast.expr], index: ast.expr) -> Parts:
        """What any of some entries uses, of which an index chooses one."""
        ways, outcome = list(map(self.mentioned, entries)), self.conditions.outcome(index)
        if outcome == "fixed":
            self.uses.by_condition |= NO_PARTS.union(*ways)
        return NO_PARTS.union(*ways) if outcome == "each" else _both(ways)

    def some_entries(self, node: ast.Subscript) -> Parts:
        """What reading some entries of a list uses, as if it were all."""
        base = node.value
        used = self.by_name(base) if isinstance(base, ast.Name) else self.mentioned(base)
        self.listed.take_some(node)
        found = self.read(node) if isinstance(base, ast.Name) else None
        return used | self.mentioned(node.slice) if found is None else found

    def read(self, node: ast.expr) -> Parts | None:
        """What reading a module, or something of one, uses; None where what stands inside the expression tells."""
        found = self.named.resolve(node)
        if found is not None:
            rest = self.mentioned(node.slice) if isinstance(node, ast.Subscript) else NO_PARTS
            return rest.union(*(self.uses.called(o) if o is not self.owner else self.uses.held.parts(o) for o in found))
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        return NO_PARTS if isinstance(node, ast.Name) else None

    def parameter(self, node: ast.expr) -> Parts:
        """The layers or parameters that an expression names, or a name holds; nothing for what is computed."""
        held = isinstance(node, ast.Name) and node.id in self.attributes
        return self.mentioned(node) if held or isinstance(node, ast.Attribute) else NO_PARTS

    def attribute(self, node: ast.Attribute) -> Parts | None:
        """The same of an attribute that is no module: what a property runs, or what computed the object."""
        owners = self.named.resolve(node.value) or NO_PARTS
        if any(map(is_library_model, owners)):
            return NO_PARTS  # a part of it, or one of its methods: others may rest
        halves = [self.uses.half(o, node.attr) for o in owners]
        if halves and None not in halves:
            return frozenset(h for h in halves if h is not None)
        functions = [(f, o) for o in owners for f in self.run.methods(o, node.attr) if getattr(f.node, "decorator_list", ())]
        if functions:
            return NO_PARTS.union(*(self.uses.function(f, o, []) for f, o in functions))
        if owners and all(isinstance(o, New) and o.cls is not None and node.attr in self.run.of(o) for o in owners):
            return NO_PARTS  # what a module holds that has no parameters, such as a pool: the rest of it does not run for that
        if not isinstance(node.value, ast.Name):
            return None
        return NO_PARTS if node.value.id == self.self else self.mentioned(node.value)

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> Parts:
        used = NO_PARTS
        for generator in node.generators:
            used |= self.mentioned_by_iterating(generator.iter)
            self.named.bind_loop_names(generator.target, generator.iter)
            if any(self.conditions.outcome(test) == "open" for test in generator.ifs):
                return used
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return used.union(*map(self.mentioned, parts))

    def mentioned_by_iterating(self, node: ast.expr) -> Parts:
        """What the expression of a loop uses beside what the loop goes through."""
        return NO_PARTS if self.named.goes_through(node) else self.mentioned(node)

    # ---- calls

    def call(self, node: ast.Call) -> Parts | None:
        """What calling a method of the project's modules uses, or looking up any part of the object; None for other calls."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(), *_]):
                return None
            case ast.Call(func=ast.Name(id="getattr"), args=[base, name, *_]):
                if (found := self.named.put_together(base, name)) is not None:
                    return NO_PARTS.union(*map(self.uses.called, found))
                if methods := self.named.methods(base, name):
                    return _both([self.uses.function(f, o, []) for f, o in methods])
                return self.uses.held.parts(self.owner) if self.named.resolve(base) == frozenset((self.owner,)) else None
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name)):
                return self.inherited(node, name)
            case ast.Call(func=ast.Attribute(value=base, attr=name)):
                return self.method(node, self.named.resolve(base), name)
        return None

    def given(self, node: ast.Call) -> Parts:
        """What evaluating the arguments of a call uses."""
        return NO_PARTS.union(*map(self.mentioned, arguments(node)))

    def inherited(self, node: ast.Call, name: str) -> Parts:
        """What `super().name(...)` uses."""
        bases = [c for b in (self.cls.bases if self.cls is not None else ()) for c in b.objs if isinstance(c, Class)]
        found = [f for c in bases for f in (self.run.interpreter.find(c, name) or NOTHING).objs if isinstance(f, Func)]
        if not found:
            return self.uses.held.parts(self.owner) if name == "forward" else NO_PARTS
        return self.given(node).union(*(self.uses.function(f, self.owner, []) for f in found))

    def method(self, node: ast.Call, owners: Parts | None, name: str) -> Parts | None:
        """What `owner.name(...)` uses, where it is a method of the project's own."""
        if owners is None or not any(isinstance(o, New) and o.cls is not None for o in owners):
            return None
        if name in INSIDE and owners == {self.owner}:
            return self.uses.held.parts(self.owner)
        names = library.RUN_BY.get(name, (name,))
        found = [(f, o) for o in owners if (o, name) not in self.run.memory for each in names for f in self.run.methods(o, each)]
        parts = [self.uses.function(f, o, []) for f, o in found]
        held = [(self.run.memory.get((o, name), NOTHING).objs, o) for o in owners]
        parts += [self.uses.stored(f, o) for objs, o in held if len(objs) == 1 for f in objs if isinstance(f, Func)]
        return self.given(node).union(*parts) if parts else None


def _stored(node: ast.AST) -> set[str]:
    """The names that a statement binds."""
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _question(test: ast.expr, answer: bool) -> tuple[Hashable, bool]:
    """A condition and what it is answered, the same for its opposite."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, answer = test.operand, not answer
    return structure(test), answer


def _both(ways: list[Parts]) -> Parts:
    return ways[0].intersection(*ways[1:]) if ways else NO_PARTS
