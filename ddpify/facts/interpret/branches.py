"""Conditions: which branches run, what is known of a test, and the join of what they leave."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ddpify.facts import library, prefixes, tensors
from ddpify.facts.interpret.dimensions import asks_for_dimensions
from ddpify.facts.interpret.literals import is_number, literal, marked_as_literal, sources_of
from ddpify.facts.interpret.settings import known_if
from ddpify.facts.interpret.state import Interpreter, State
from ddpify.facts.model import NOTHING, Class, Decision, Ext, Func, Known, Lit, Method, New, Obj, Tup, Value, join, origins_of
from ddpify.facts.origins import Origin, apart, by_kind, of_kind, only, without
from ddpify.facts.tree import last_name, same, walk
from ddpify.placement.shape import ROWS

_VARYING = frozenset(("index", "batch", "whole", "drawn", "random", "decided", "kept"))
_CONTAINERS = frozenset(("list", "tuple", "dict"))
_ABSTRACT = {"List": ("list",), "Tuple": ("tuple",), "Sequence": ("list", "tuple"), "Dict": ("dict",), "Mapping": ("dict",)}
_KINDS = {f"{package}.{name}": kinds for name, kinds in _ABSTRACT.items() for package in ("typing", "collections.abc")}
_ASK_FUNCTIONS = frozenset(("callable", "inspect.isfunction"))
_NUMBERS = frozenset(("float", "int", "bool"))
_FLAGS = (bool, str)


def execute_if(run: Interpreter, node: ast.If) -> bool:
    """Run the branches that may run, and join what they leave."""
    test = run.expression(node.test)
    if node in run.replicated_branches:
        test = library.agreed(test)
    decide(run, node, test)
    known = truth(run, node.test)
    expected = known_flag(run, node.test, settings=True) if known is None else None
    before, idle, ends, settings = run.fork(), run.frame.idle, list[tuple[State, bool]](), list[frozenset[Known]]()
    outputs = _Outputs(run, node)
    for branch, taken in ((node.body, True), (node.orelse, False)):
        if known is not None and known is not taken:
            continue
        run.restore(before)
        run.frame.idle = idle or expected is (not taken)
        saved, run.tests = (run.tests, run.deciding, run.settings), (*run.tests, (node.test, test))
        run.deciding |= deciding(test)
        run.settings |= known_if(run, node.test, taken)
        _as_asked(run, node.test, taken)
        if not branch:
            _as_made_equal(run, node)
        if run.block(branch):
            outputs.note()
            ends.append((run.end_of_branch(), run.frame.idle))
            settings.append(run.settings_left)
        run.tests, run.deciding, run.settings = saved
    run.settings = frozenset.intersection(*settings) if settings else run.settings
    live = [state for state, off in ends if not off]
    run.frame.idle = idle or not live
    alive = run.merge([_with_numbers_of(live, state) if off and live else state for state, off in ends])
    outputs.mark()
    if known is not None and alive:
        _follow_flags(run, node)
    return alive


def _follow_flags(run: Interpreter, node: ast.If) -> None:
    """Mark what the branches of a known test set as known, too: `training = False` where `optimizer is None`."""
    for name in {n.id for s in (*node.body, *node.orelse) for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}:
        if isinstance(literal(value := run.lookup(name)), _FLAGS):
            run.bind(name, marked_as_literal(value))


class _Outputs:
    """The outputs of networks that what a condition assigns is computed from in one branch alone, where steps answer it differently."""

    def __init__(self, run: Interpreter, node: ast.If) -> None:
        self._run, self._ends = run, list[dict[str, Value]]()
        stored = (n for s in (*node.body, *node.orelse) for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self._names = {n.id for n in stored} if _varies(run, node.test) else set()

    def note(self) -> None:
        """What a branch leaves."""
        self._ends.append({name: self._run.lookup(name) for name in self._names})

    def mark(self) -> None:
        """Mark them once the branches are joined."""
        for name in self._names if len(self._ends) == 2 else ():
            value = self._run.lookup(name)
            origins = _in_both(value.origins, [values[name] for values in self._ends])
            if origins != value.origins:
                self._run.bind(name, Value(value.objs, origins, value.scale, value.shape))


def _varies(run: Interpreter, test: ast.expr) -> bool:
    """Whether the steps of a training may answer a test differently."""
    values = {n: run.trace.values.get(n, NOTHING) for n in walk(test) if isinstance(n, ast.expr)}
    parts = {n.value for n in values if isinstance(n, (ast.Attribute, ast.Subscript))}
    asked = (o for n, value in values.items() if n not in parts for o in value.objs)
    filled = any(isinstance(o, New) and o.path in library.COLLECTIONS for o in asked)  # by the steps before
    names = (value for n, value in values.items() if isinstance(n, ast.Name))
    set_again = any(len({o.value for o in value.objs if isinstance(o, Lit)}) > 1 for value in names)
    return filled or set_again or any(not _VARYING.isdisjoint(by_kind(value.origins)) for value in values.values() if value.origins)


def _in_both(origins: frozenset[Origin], parts: list[Value]) -> frozenset[Origin]:
    """The origins of what two branches give, of which what one of them alone is computed from is so "sometimes"."""
    one, other = (frozenset(o for o in part.origins if o.kind == "output") for part in parts)
    return origins - (one ^ other) | {Origin("sometimes", o.of) for o in one ^ other} | apart(*(part.origins for part in parts))


def _as_asked(run: Interpreter, test: ast.expr, taken: bool) -> None:
    """Let each branch have what it then is: of what may be none (`if x is not None:`), of a name that is one of some texts, or a class."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts) if taken:
            for part in parts:
                _as_asked(run, part, taken)
            return
        case ast.Compare(left=asked, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            none = isinstance(op, ast.Is) is taken
        case ast.Compare(left=ast.Name(name), ops=[ast.In() | ast.NotIn() as op], comparators=[options]) if isinstance(op, ast.In) is taken:
            value, texts = run.lookup(name), _texts_in(run, options)
            of_both = frozenset(o for o in value.objs if isinstance(o, Lit) and o.value in texts)
            if of_both or (texts and not any(isinstance(o, Lit) for o in value.objs)):
                run.bind(name, Value(of_both or frozenset(map(Lit, texts)), value.origins, value.scale, value.shape))
            return
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(name), kind], keywords=[]):
            value = run.lookup(name)
            left = _of_class(run, value, _own_classes(run.trace.values.get(kind, NOTHING)), taken)
            if left is not value:
                run.bind(name, left)
            return
        case _:
            return
    value = _held_now(run, asked)
    missing = frozenset(o for o in value.objs if isinstance(o, Lit) and o.value is None)
    others = value.objs - missing
    models = bool(others) and all(isinstance(o, New) and (run.is_module(o) or o.path.startswith("torch.nn.")) for o in others)
    if not missing or not (models or (value.scale is not None and not others)):
        return
    _hold(run, asked, Value(missing, value.origins) if none else Value(others, value.origins, value.scale, value.shape))


def _as_made_equal(run: Interpreter, node: ast.If) -> None:
    """Let a number be the other where it is made so unless it is already: `if rows.size(0) != self.size: self.size = rows.size(0)`."""
    match node:
        case ast.If(ast.Compare(left, [ast.NotEq()], [right]), body=[ast.Assign(targets=[target], value=given)]):
            if (same(target, left) and same(given, right)) or (same(target, right) and same(given, left)):
                value = _held_now(run, given if isinstance(given, ast.Name) else left if same(given, left) else right)
                _hold(run, left if same(target, left) else right, value)


def _hold(run: Interpreter, asked: ast.expr, value: Value) -> None:
    """Let a name, or an attribute of one object, be something."""
    if isinstance(asked, ast.Name):
        run.bind(asked.id, value)
    elif isinstance(asked, ast.Attribute) and len(owners := run.trace.values.get(asked.value, NOTHING).objs) == 1:
        run.memory[next(iter(owners)), asked.attr] = value


def _texts_in(run: Interpreter, options: ast.expr) -> frozenset[str]:
    """The texts that a list consists of, if it is written out."""
    value = run.trace.values.get(options, NOTHING)
    if len(value.objs) == 1 and isinstance(given := next(iter(value.objs)), Tup):
        texts = [o.value for entry in given.entries if len(entry.objs) == 1 for o in entry.objs if isinstance(o, Lit)]
        parts: Sequence[object] = given.entries
    else:
        made = [options, *(o.node for o in value.objs if isinstance(o, New))]
        parts = next((node.elts for node in made if isinstance(node, (ast.List, ast.Tuple, ast.Set))), [])
        texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    known = [text for text in texts if isinstance(text, str)]
    return frozenset(known) if len(known) == len(parts) and len(value.objs) < 2 else frozenset()


def _is_none_of(run: Interpreter, name: ast.Name, options: ast.expr) -> bool:
    """Whether a name is a module's, of those that it has, and none of those of a list that is written out; a setting may be another."""
    value, texts = _held_now(run, name), _texts_in(run, options)
    known = {o.value for o in value.objs if isinstance(o, Lit) and isinstance(o.value, str)}
    return bool(texts) and bool(value.of_kind("parameters")) and len(known) == len(value.objs) > 0 and known.isdisjoint(texts)


def _with_numbers_of(live: list[State], idle: State) -> State:
    """The end of a branch that a setting of the script leaves out, with the numbers that the other branch computes."""
    taken, (local, version) = live[0][0], idle
    if local is None or taken is None:
        return idle
    return {n: taken[n] if n in taken and is_number(v) and is_number(taken[n]) else v for n, v in local.items()}, version


def decide(run: Interpreter, node: ast.If | ast.While | ast.IfExp | ast.Try, test: Value) -> None:
    """Note a decision with its test."""
    run.trace.decisions.append(Decision(node, run.frame.file, run.stack, test, run.loops))


def truth(run: Interpreter, node: ast.expr) -> bool | None:
    """Whether a condition is known."""
    match node:
        case ast.Constant():
            return bool(node.value)
        case ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.Compare(left=ast.Name("__name__") as name, ops=[ast.Eq() | ast.NotEq() as equal], comparators=[other]):
            return (literal(run.expression(name)) == literal(run.expression(other))) is isinstance(equal, ast.Eq)
        case ast.Call(func=ast.Name("isinstance" | "hasattr"), args=[_, _]):
            return _wrapped_test(run, node)
        case ast.Call() if (joined := _asks_for_group(run, node)) is not None:
            return joined
        case ast.Compare() if (several := _asks_for_ranks(run, node)) is not None:
            return several
        case ast.Compare() if (has := asks_for_dimensions(run, node)) is not None:
            return has
        case ast.Compare(left=ast.Name() as name, ops=[ast.In() | ast.NotIn() as of], comparators=[texts]) if _is_none_of(run, name, texts):
            return isinstance(of, ast.NotIn)
        case ast.Call() if "torch.is_grad_enabled" in run.trace.values.get(node.func, NOTHING).paths():
            return not run.no_grad
        case ast.Call(args=[asked], keywords=[]) if (paths := run.trace.values.get(node.func, NOTHING).paths()) and paths <= _ASK_FUNCTIONS:
            return _is_function(_held_now(run, asked), "callable" in paths)
        case ast.UnaryOp(op=ast.Not()):
            inner = truth(run, node.operand)
            return None if inner is None else not inner
        case ast.BoolOp():
            parts = [truth(run, v) for v in node.values]
            ends = isinstance(node.op, ast.Or)
            return ends if ends in parts else None if None in parts else not ends
    flag_value = known_flag(run, node)
    if flag_value is not None:
        return flag_value
    match node:
        case ast.Compare(left=asked, ops=[ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=None)]):
            none = _is_none(_held_now(run, asked))
            return None if none is None else none is isinstance(op, (ast.Is, ast.Eq))
        case ast.Call(args=[asked], keywords=[]) if (for_none := _asks_for_none(run, node)) is not None:
            none = _is_none(_held_now(run, asked))
            return None if none is None else none is for_none
        case ast.Name() | ast.Attribute() if _is_none(_held_now(run, node)):
            return False
    return None


def _asks_for_none(run: Interpreter, node: ast.Call) -> bool | None:
    """Whether a function of the project says if what it is given is None; False where it says if it is not; None for any other."""
    objs = run.trace.values.get(node.func, NOTHING).objs
    said = {_says_if_none(o.node) if isinstance(o, Func) else None for o in objs}
    return said.pop() if len(said) == 1 else None


def _says_if_none(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool | None:
    """The same of a function that does nothing else: `def exists(x): return x is not None`."""
    body = function.body[-1] if isinstance(function, ast.FunctionDef) and len(function.body) == 1 else function
    given = [a.arg for a in function.args.args]
    match body.value if isinstance(body, ast.Return) else getattr(body, "body", None):
        case ast.Compare(ast.Name(id=name), [ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq() as op], [ast.Constant(value=None)]):
            return isinstance(op, (ast.Is, ast.Eq)) if given == [name] else None
    return None


def _asks_for_group(run: Interpreter, node: ast.Call) -> bool | None:
    """Whether there is a process group, as there is once a script is converted: what torch says, or a function that asks it."""
    func = run.trace.values.get(node.func, NOTHING)
    if func.paths() & library.JOINED:
        return True
    inside = (n for o in func.objs if isinstance(o, Func) for n in walk(o.node) if isinstance(n, ast.Call))
    said = {o.value for o in run.trace.values.get(node, NOTHING).objs if isinstance(o, Lit)}
    if len(func.objs) != 1 or not any(run.trace.values.get(n.func, NOTHING).paths() & library.JOINED for n in inside):
        return None
    return said == {True} if said in ({True}, {False}) and len(run.trace.values[node].objs) == 1 else None


def _asks_for_ranks(run: Interpreter, node: ast.Compare) -> bool | None:
    """Whether there are several ranks, as there may be once a script is converted: `world_size > 1`, `local_rank != -1`."""
    left, bound = run.trace.values.get(node.left, NOTHING), literal(run.trace.values.get(node.comparators[0], NOTHING))
    kinds = {o.kind for o in left.origins}
    if len(node.ops) > 1 or kinds not in ({"world"}, {"rank"}) or type(bound) is not int:
        return None
    least, op = 2 if kinds == {"world"} else 0, node.ops[0]
    if isinstance(op, (ast.GtE, ast.Lt)):
        return isinstance(op, ast.GtE) if least >= bound else None
    return isinstance(op, (ast.Gt, ast.NotEq)) if least > bound and isinstance(op, (ast.Gt, ast.NotEq, ast.Eq, ast.LtE)) else None


def _held_now(run: Interpreter, node: ast.expr) -> Value:
    """What a name holds here, or another expression was when it was last evaluated."""
    return run.lookup(node.id) if isinstance(node, ast.Name) else run.trace.values.get(node, NOTHING)


def _is_function(value: Value, or_class: bool) -> bool | None:
    """Whether a value is a function of the project, or a class where that will do; None where that is not known."""
    if not value.objs and value.scale is not None:
        return False  # a tensor or a number
    kinds = {(isinstance(o, Func) and (or_class or o.owner is None)) or (or_class and isinstance(o, Class)) for o in value.objs}
    others = all(isinstance(o, (Func, Class, Lit, Tup)) for o in value.objs)
    return kinds.pop() if len(kinds) == 1 and others and value.scale is None else None


def _is_none(value: Value) -> bool | None:
    """Whether a value is None; None where that is not known."""
    if not value.objs and value.scale is not None:
        return False  # a tensor or a number
    if len(value.objs) != 1 or value.origins:
        return None
    (only,) = value.objs
    none = isinstance(only, Lit) and only.value is None
    return none if none or isinstance(only, (New, Func, Class, Tup)) else None


def known_flag(run: Interpreter, node: ast.expr, settings: bool = False) -> bool | None:
    """Whether a test of a flag or phase that the script spells out (`train=True`, `for phase in ["train", "val"]`) is known.

    `settings`: or of an argument, or of an attribute of the object itself, that is the same wherever the script gives it, which somebody
    may change: `self.reduction == "mean"`. Constants of a module are switches that are there to be changed.
    """
    if settings and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = known_flag(run, node.operand, settings)
        return None if inner is None else not inner
    comparison = node if isinstance(node, ast.Compare) and len(node.ops) == 1 else None
    tested = node if comparison is None else comparison.left
    flag = _flag_tested(run, tested, settings)
    spelled_out = flag.of_kind("literal") or (settings and _is_setting(run, tested, flag))
    if not spelled_out or [isinstance(o, Lit) for o in flag.objs] != [True]:  # a list of what flags chose is none
        return None
    value = literal(flag)
    if comparison is None:
        return bool(value)
    op, other = comparison.ops[0], comparison.comparators[0]
    if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) and isinstance(other, ast.Constant):
        return (value == other.value) == isinstance(op, (ast.Eq, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(other, (ast.List, ast.Tuple, ast.Set)):
        values = [e.value for e in other.elts if isinstance(e, ast.Constant)]
        return (value in values) == isinstance(op, ast.In) if len(values) == len(other.elts) else None
    return None


def _flag_tested(run: Interpreter, tested: ast.expr, settings: bool) -> Value:
    """What a name, or an attribute that may be a flag, is here; where all that it may be is the same, that once."""
    flag = run.lookup(tested.id) if isinstance(tested, ast.Name) else NOTHING
    if isinstance(tested, ast.Call):
        return _number_given(run, tested)
    if isinstance(tested, ast.Attribute) and tested.attr == "training":
        flag = run.expression(tested)
    if settings and isinstance(tested, ast.Attribute) and isinstance(tested.value, ast.Name):
        flag = run.expression(tested) if run.lookup(tested.value.id).objs <= run.frame.owners else NOTHING
    if len({repr(o.value) if isinstance(o, Lit) else o for o in flag.objs}) == 1:
        return Value(frozenset((next(iter(flag.objs)),)), flag.origins)
    return flag


def _number_given(run: Interpreter, asked: ast.Call) -> Value:
    """How many arguments a function was given: `len(args)` in `def forward(self, *args)`; nothing of any other call."""
    rest = getattr(getattr(run.frame.node, "args", None), "vararg", None)
    match asked:
        case ast.Call(ast.Name("len"), [ast.Name(name)], []) if rest is not None and rest.arg == name:
            given = run.lookup(name).objs
            known = [len(o.items) for o in given if isinstance(o, Tup) and o.rest is None]
            return Value(frozenset((Lit(known[0]),)), frozenset((Origin("literal", asked),))) if len(known) == len(given) == 1 else NOTHING
    return NOTHING


def _is_setting(run: Interpreter, node: ast.expr, value: Value) -> bool:
    """Whether an argument or an attribute is a flag or a name that the script spells out, and nothing else."""
    arguments = getattr(run.frame.node, "args", None)
    names = {a.arg for a in walk(arguments) if isinstance(a, ast.arg)} if arguments is not None else set()
    passed = isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id in names)
    return passed and not value.origins and isinstance(literal(value), (str, bool))


def _flag(run: Interpreter, node: ast.expr, value: Value) -> Value:
    """A test whose outcome is known, as the flag that it is."""
    flag_value = known_flag(run, node)
    if flag_value is None and isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return is_known(run, node, value)
    return _as_flag(flag_value, node, value)


def _as_flag(flag_value: bool | None, node: ast.expr, value: Value) -> Value:
    return value if flag_value is None else Value(frozenset((Lit(flag_value),)), frozenset((Origin("literal", node),)))


def _classes_of(obj: Obj) -> frozenset[str] | None:
    """Which of the containers an object may be; None where that is not known."""
    if isinstance(obj, Tup):
        return frozenset(("tuple",))
    if not isinstance(obj, New):
        return None
    if obj.path == "list" and not isinstance(obj.node, (ast.List, ast.ListComp)):
        return frozenset(("list", "tuple"))  # other sequences are followed as lists, too
    if obj.path in _CONTAINERS:
        return frozenset((obj.path,))
    return frozenset() if obj.path.startswith("torch.nn.") or obj.cls is not None else None


def is_known(run: Interpreter, node: ast.expr, value: Value) -> Value:
    """The outcome of a test as a flag, where it is known."""
    return _as_flag(truth(run, node), node, value)


def _is_container(asked: Value, named: set[str]) -> bool | None:
    """Whether a value is one of the containers that a test names; None where that is not known."""
    if is_number(asked) and asked.shape is not None and asked.shape.several is False:
        return False  # a tensor
    options = [_classes_of(o) for o in asked.objs]
    outcomes = {False if c is not None and not c & named else True if c is not None and c <= named else None for c in options}
    if (asked.scale is not None or asked.shape is not None) and any(isinstance(o, Tup) for o in asked.objs):
        outcomes.add(False)  # it may be a tensor; a list that is passed on tells how what it holds depends on the batch
    return outcomes.pop() if len(outcomes) == 1 else None


def _is_tensor_of_rows(value: Value) -> bool:
    """Whether a value is a tensor that has a dimension for the samples, and neither one sample's number nor several tensors."""
    shape = value.shape
    return value.scale in ROWS and not value.objs and shape is not None and shape.several is False and shape.ndim != 0


def _is_of(classes: set[Class], samplers: Value) -> bool | None:
    """Whether samplers are torch's that share samples out, or of some classes of the project; None where only some are."""
    objs = [o for o in samplers.objs if not isinstance(o, Method)]
    kinds = {isinstance(o, New) and (o.path == library.DISTRIBUTED_SAMPLER or o.cls in classes) for o in objs}
    return kinds.pop() if len(kinds) == 1 else None


def _wrapped_test(run: Interpreter, node: ast.Call) -> bool | None:
    """Whether `isinstance(model, DataParallel)` or `hasattr(model, "module")` is known; or which sampler a loader has."""
    asked, what = run.expression(node.args[0]), run.trace.values.get(node.args[1], NOTHING)
    is_of = node.func.id == "isinstance"  # type: ignore[attr-defined]
    classes = {o for o in what.objs if isinstance(o, Class)}
    of_sampler = isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "sampler"
    if of_sampler and (library.DISTRIBUTED_SAMPLER in what.paths() or (classes and is_of)) and asked.objs:
        return _is_of(classes, asked)
    if is_of and asked.scale is None and (own := _own_classes(what)):
        outcomes = {_is_one(run, o, own) for o in asked.objs}
        return outcomes.pop() if len(outcomes) == 1 else None
    paths = [e.path for o in what.objs for v in getattr(o, "items", (what,)) for e in v.objs if isinstance(e, Ext)]
    named = {kind for path in paths for kind in _KINDS.get(path, (path,))}
    if named and named <= _CONTAINERS and len(what.objs) == 1 and is_of and (known := _is_container(asked, named)) is not None:
        return known
    if named and named <= _NUMBERS and is_of and _is_tensor_of_rows(asked):
        return False
    if named == {"torch.Tensor"} and is_of and not asked.objs and asked.of_kind("parameters") and asked.of_kind("sized"):
        return True  # made like a weight: `weight.new_zeros(2, n)`
    if "list" in what.paths() and is_of and run.batch_sources and not asked.objs and asked.scale == "sample":
        return False  # a batch, whatever it holds
    if not asked.instances() or len(asked.instances()) != len(asked.objs) or not (named & library.WRAPPERS or literal(what) == "module"):
        return None
    wrapped = {o.path in library.WRAPPERS for o in asked.instances()}
    return wrapped.pop() if len(wrapped) == 1 else None


def execute_match(run: Interpreter, node: ast.Match) -> bool:
    """`match subject:`, as a chain of branches."""
    subject = run.expression(node.subject)
    before, idle, ends, whole = run.fork(), run.frame.idle, [], False
    for case in node.cases:
        run.restore(before)
        run.frame.idle = idle
        for part in walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(part, ast.MatchValue):
                run.expression(part.value)
            elif isinstance(name, str):
                run.bind(name, subject if part is case.pattern else run.element(subject))
        test = run.expression(case.guard) if case.guard is not None else NOTHING
        saved, run.tests = (run.tests, run.deciding), (*run.tests, (node.subject, subject))
        run.deciding |= deciding(subject) | deciding(test)
        if run.block(case.body):
            ends.append(run.end_of_branch())
        run.tests, run.deciding, run.frame.idle = *saved, idle
        whole |= case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
    return run.merge(ends if whole else [*ends, before])


def execute_try(run: Interpreter, node: ast.Try) -> bool:
    """Run the body, then the handlers from what it may have left."""
    before, idle = run.fork(), run.frame.idle
    alive = run.block(node.body)
    if alive and node.orelse:
        alive = run.block(node.orelse)
    run.frame.idle = idle
    if node.handlers:
        decide(run, node, NOTHING)
    ends = [run.end_of_branch()] if alive else []
    after = run.fork()
    for handler in node.handlers:
        run.merge([before, after])
        if handler.type is not None:
            run.expression(handler.type)
        if handler.name:
            run.bind(handler.name, NOTHING)
        if run.block(handler.body):
            ends.append(run.end_of_branch())
        run.frame.idle = idle
    alive = run.merge(ends)
    if node.finalbody:
        if not alive:
            run.merge([before])
        return run.block(node.finalbody) and alive
    return alive


def evaluate_ifexp(run: Interpreter, node: ast.IfExp) -> Value:
    """`a if test else b`."""
    test = run.expression(node.test)
    decide(run, node, test)
    known = truth(run, node.test)
    parts, settings = list[Value](), run.settings
    for part, taken in ((node.body, True), (node.orelse, False)):
        if known is None or known is taken:
            run.settings = settings | known_if(run, node.test, taken)
            parts.append(_as_answered(run, node.test, part, taken))
    run.settings = settings
    tuples = {any(isinstance(o, Tup) for o in part.objs) for part in parts}
    plain = all(map(is_number, parts)) or len(tuples) == 2 or all(map(_is_written_out, (node.body, node.orelse)))
    expected = known_flag(run, node.test, settings=True) if plain else None
    if expected is not None and len(parts) == 2:
        return parts[0 if expected else 1]
    if known is not None and isinstance(literal(parts[0]), _FLAGS):
        return marked_as_literal(parts[0])
    chosen, decides = join(parts), deciding(test) if len(parts) == 2 else frozenset()
    rows = chosen.scale in ROWS and test.scale is not None and not same(node.body, node.orelse)
    own = of_kind(decides, "decided") and (rows or chosen.scale in ("mean", "sum", "count", "total"))
    origins = _in_both(chosen.origins, parts) if len(parts) == 2 and _varies(run, node.test) else chosen.origins
    return Value(chosen.objs, origins | decides, "other" if own else chosen.scale, chosen.shape)


def _is_written_out(node: ast.expr) -> bool:
    """Whether an expression is a list of numbers, such as sizes."""
    return isinstance(node, ast.List) and all(isinstance(e, (ast.Constant, ast.UnaryOp, ast.Name, ast.Attribute)) for e in node.elts)


def _as_answered(run: Interpreter, test: ast.expr, part: ast.expr, taken: bool) -> Value:
    """What an arm of `a if test else b` gives: of a sampler that the test asks about, what it then is."""
    value = run.expression(part)
    left = frozenset[Obj]()
    match test:
        case ast.Compare(left=asked, ops=[ast.Is()], comparators=[ast.Constant(value=None)]) if same(asked, part):
            left = frozenset(o for o in value.objs if (isinstance(o, Lit) and o.value is None) is taken)
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, kind]) if same(asked, part):
            if library.DISTRIBUTED_SAMPLER in run.trace.values.get(kind, NOTHING).paths():
                left = frozenset(o for o in value.objs if run.is_a(o, library.DISTRIBUTED_SAMPLER) is taken)
    return Value(left, value.origins, value.scale, value.shape) if left else value


def chosen_by_class(run: Interpreter, part: ast.expr, value: Value, tests: Sequence[ast.expr]) -> Value:
    """What a comprehension keeps of what `part` is: with `if isinstance(part, Head)`, what may be one."""
    for test in tests:
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, kind], keywords=[]) if same(asked, part):
                value = _of_class(run, value, _own_classes(run.trace.values.get(kind, NOTHING)), True)
    return value


def _own_classes(kinds: Value) -> frozenset[Class]:
    """The classes of the project that a test names, one or a tuple of them; none where it names others, too."""
    named = [o for k in kinds.objs for o in (join(list(k.items)).objs if isinstance(k, Tup) else (k,))]
    return frozenset(o for o in named if isinstance(o, Class)) if all(isinstance(o, Class) for o in named) else frozenset()


def _of_class(run: Interpreter, value: Value, classes: frozenset[Class], taken: bool) -> Value:
    """What a value is where it is an instance of one of some classes, or is not; as it is where it cannot be that."""
    left = frozenset(o for o in value.objs if _is_one(run, o, classes) is not (not taken)) if classes else value.objs
    return Value(left, value.origins, value.scale, value.shape) if left and left != value.objs else value


def _is_one(run: Interpreter, obj: Obj, classes: frozenset[Class]) -> bool | None:
    """Whether an object is an instance of one of some classes of the project; a layer of torch is none. None where that is not known.

    Of a wrapper, the module inside is asked: by the script where there was none, or by the edit that then asks for it.
    """
    if isinstance(obj, New) and obj.path in library.WRAPPERS:
        inside = {_is_one(run, o, classes) for o in run.memory.get((obj, "module"), NOTHING).objs if o is not obj}
        return inside.pop() if len(inside) == 1 else None
    if not isinstance(obj, New):
        return None
    todo = [obj.cls] if obj.cls is not None else []
    for cls in todo:
        if cls in classes:
            return True
        todo += [b for base in cls.bases for b in base.objs if isinstance(b, Class) and b not in todo]
    known = all(base.objs for cls in todo for base in cls.bases)
    return False if (todo or obj.path.startswith("torch.nn.")) and known else None


def evaluate_boolop(run: Interpreter, node: ast.BoolOp) -> Value:
    """`a and b`: any of the operands."""
    value = join([run.expression(v) for v in node.values])
    asks = all(isinstance(v, ast.Call) and (last_name(v.func) == "isinstance" or _asks_for_group(run, v)) for v in node.values)
    return is_known(run, node, value) if asks else value


def evaluate_compare(run: Interpreter, node: ast.Compare) -> Value:
    """A comparison, as the flag that it is where its outcome is known."""
    parts = [run.expression(node.left), *(run.expression(c) for c in node.comparators)]
    flag = _flag(run, node, NOTHING)
    if flag.objs or all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return flag
    origins = origins_of(parts) | frozenset(s for p in parts for s in sources_of(p))
    if isinstance(node.ops[-1], (ast.In, ast.NotIn)):
        origins |= origins_of(library.keys(run, o) for o in parts[-1].instances() if o.path in library.COLLECTIONS)
    if {p.scale for p in parts} <= {None, "count"} and any(p.scale == "count" for p in parts):
        return Value(frozenset(), without(origins, "batch"))  # the lengths of batches: all ranks' are equal
    found = tensors.entrywise(run, parts, origins | {Origin("compared")}, node)
    return prefixes.tested(node, parts[0], parts[-1], found)


def deciding(test: Value) -> frozenset[Origin]:
    """What a value owes to the condition under which it was chosen."""
    return only(test.origins, "decided", "drawn", "time", "kept") | {Origin("decided", of) for of in test.of_kind("batch")}
