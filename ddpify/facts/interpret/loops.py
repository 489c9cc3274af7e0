"""Loops and comprehensions: run until what they carry round has been seen."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ddpify.facts import library, named, operands, orders, prefixes, tensors
from ddpify.facts.interpret import filled, written
from ddpify.facts.interpret.assignment import depends_on, may_know_more
from ddpify.facts.interpret.branches import chosen_by_class, decide
from ddpify.facts.interpret.expressions import listed
from ddpify.facts.interpret.literals import literal, literal_keys, marked_as_literal
from ddpify.facts.interpret.state import ELEMENT, UNNAMED, Interpreter
from ddpify.facts.model import NOTHING, Lit, Loop, Module, New, Tup, Value, join, just
from ddpify.facts.origins import Origin, only
from ddpify.facts.record import Kind
from ddpify.facts.recording import Recording
from ddpify.facts.tree import last_name, names_stored, same, walk
from ddpify.facts.writes import loop_carried
from ddpify.placement.shape import MASK, Scale, Shape


def _loop(
    run: Interpreter, node: ast.stmt, body: list[ast.stmt], orelse: list[ast.stmt], enter: Callable[[], Loop | None], endless: bool
) -> bool:
    """Run a loop's body; once more, where what one pass reads is something else after it."""
    zero = run.fork()
    run.breaks.append([])
    outer, around, idle = run.loops, run.memory.watch, run.frame.idle
    first, left, carries = run.record.current + 1, len(run.frame.exits), True
    for again in (False, True):
        if not carries:
            break
        if again:
            run.record.run_again(first)
            run.memory.go_on()
            run.breaks[-1].clear()
            del run.frame.exits[left:]
        before = None if run.frame.local is None else dict(run.frame.local)
        run.memory.watch = reads = Recording(len(run.driven), run.settings)
        loop = enter()
        head = run.heads.pop()
        run.loops = (*outer, loop) if loop is not None else outer
        alive = run.block(body)
        run.loops, run.frame.idle = outer, idle
        ends = [zero, *run.breaks[-1]] + ([run.end_of_branch()] if alive else [])
        back = [version.point for _, version in run.breaks[-1] if version.point in run.record.again]
        run.record.repeat(head, [*back, *([ends[-1][1].point] if alive else [])])
        if endless and (alive or run.breaks[-1]):
            ends = ends[1:]
        run.merge(ends)
        run.memory.watch = around
        if isinstance(around, Recording):
            around.add(reads)
        carries = not again and (not reads.sound or _carries(run, node, reads, before))
    run.breaks.pop()
    run.record.ran(node, first)
    return run.block(orelse) if orelse else True


def _carries(run: Interpreter, node: ast.stmt, reads: Recording, before: Mapping[str, Value] | None) -> bool:
    """Whether something that a pass of a loop has read from before it has another value for the next pass."""
    if any(run.memory.held(key) != reads.saved[key] for key in reads.overwritten()):
        return True
    if any(run.asked(key) != value for key, value in reads.other.items()):
        return True
    local = run.frame.local
    if local is None or before is None:
        return False
    key = ("loop-carried", node)
    if key not in run.project.memo:
        run.project.memo[key] = loop_carried(node)
    return any(local.get(name) != before.get(name) for name in run.project.memo[key])  # type: ignore[attr-defined]


def begin_pass(run: Interpreter) -> None:
    """Begin a pass of a loop: here control comes back to."""
    run.memory.fork()
    run.heads.append(run.record.current)


def execute_for(run: Interpreter, node: ast.For) -> bool:
    """A loop over elements, or over phases that are spelled out."""
    phases = _spelled(run, node.iter, node.body)
    if phases:
        return _phases(run, node, phases)

    rows = filled.rows_written(run, node)
    begun, passes = _read_once(run, node, rows), list[Loop]()

    def enter() -> Loop:
        local, now = run.frame.local or {}, dict(run.frame.local or {})
        local.update(begun)
        over = run.expression(node.iter)
        local.update({name: now[name] for name in begun})
        element = run.element(over, node)
        begin_pass(run)
        run.assign(node.target, element)
        written.name_entries(run, node.target, node.iter)
        run.note(node, element)
        passes.append(Loop(node, run.frame.file, over, element | run.fed.get(node, NOTHING)))
        return passes[-1]

    alive = _loop(run, node, node.body, node.orelse, enter, False)
    if alive and per_sample(run, passes[-1].over):
        filled.fill(run, node, passes[-1], rows)
    _rewritten(run, node)
    if passes and prefixes.is_round(run, passes[-1].over):
        _left_by_rounds(run, node, passes[-1].over)
    return alive


def _left_by_rounds(run: Interpreter, node: ast.For, over: Value) -> None:
    """After a loop that a rank's own rows end: what its last round has bound is not what that of the whole batch binds."""
    for name in dict.fromkeys(n.id for n in names_stored(node)):
        if (held := run.lookup(name)) != NOTHING:
            run.bind(name, prefixes.after_rounds(node, held, over))
    for target in (n for s in node.body for n in walk(s) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)):
        written.hold(run, target, prefixes.after_rounds(node, run.expression(target), over), alone=True)


def _read_once(run: Interpreter, node: ast.For, rows: Mapping[str, Value]) -> dict[str, Value]:
    """The variables that say what a loop goes through, and that it binds anew or writes into: what they hold where it begins counts."""
    local, stored = run.frame.local or {}, {n.id for n in names_stored(node)} | rows.keys()
    return {n.id: local[n.id] for n in walk(node.iter) if isinstance(n, ast.Name) and n.id in stored and n.id in local}


def _rewritten(run: Interpreter, node: ast.For) -> None:
    """After `for key in d: d[key] = ...`, every element of the dict is what the statement gave it."""
    only = node.body[0]
    if not (len(node.body) == 1 and isinstance(only, ast.Assign) and isinstance(only.targets[0], ast.Subscript)):
        return
    target = only.targets[0]
    if not same(target.slice, node.target) or not same(target.value, node.iter):
        return
    value = run.trace.values.get(only.value, NOTHING)
    for obj in run.expression(node.iter).instances():
        for name, _ in run.memory.of(obj):
            run.memory[obj, name] = value
    run.events.append((Kind.FILL, node, None, run.expression(node.iter)))


def _spelled(run: Interpreter, node: ast.expr, body: list[ast.stmt]) -> list[tuple[ast.AST, Value]]:
    """The phases that a loop goes through, where the script spells them out: in a list, side by side in lists, or as keys of a dict."""
    if spelled_out(node):
        return [(item, marked_as_literal(run.expression(item))) for item in getattr(node, "elts", ())]
    match node:
        case ast.Name() | ast.Attribute():
            return _names_in(run, run.expression(node), body)
        case ast.Call(func=ast.Name("dir"), args=[of], keywords=[]):
            return _names_in_module(run, run.expression(of), body)
        case ast.Call(func=ast.Name("zip"), args=[_, _, *_], keywords=[]):
            return _side_by_side(run, node.args)
        case ast.Call(func=ast.Attribute(value=of, attr="items"), args=[], keywords=[]):
            return _loaders_by_name(run, of, body)
    return []


def _side_by_side(run: Interpreter, lists: list[ast.expr]) -> list[tuple[ast.AST, Value]]:
    """The rows of lists that are written out side by side, one of them names or flags."""
    rows = [a.elts for a in lists if isinstance(a, (ast.List, ast.Tuple))]
    if len(rows) != len(lists) or len({len(r) for r in rows}) != 1 or not any(spelled_out(a) for a in lists):
        return []
    return [(row[0], marked_as_literal(just(Tup(tuple(run.expression(e) for e in row))))) for row in zip(*rows, strict=True)]


def _loaders_by_name(run: Interpreter, of: ast.expr, body: list[ast.stmt]) -> list[tuple[ast.AST, Value]]:
    """The entries of a dict that is written out, where each of them is a loader, or a loop over them makes one."""
    entries = _entries(run, of)
    loaders = all(any(run.is_a(o, *library.LOADERS) for o in v.objs) for _, v in entries) or _makes_loaders(run, body)
    return [(k, marked_as_literal(just(Tup((run.expression(k), v))))) for k, v in entries] if loaders else []


def _entries(run: Interpreter, of: ast.expr) -> list[tuple[ast.Constant, Value]]:
    """The entries of a dict whose few names are written out, in a literal or a comprehension over them; none of anything else."""
    held = run.expression(of).objs
    made = next(iter(held)) if len(held) == 1 else None
    keys = names_of_entries(made.node) if isinstance(made, New) else []
    return [(k, run.memory.get((made, str(k.value)), NOTHING)) for k in keys] if isinstance(made, New) else []


def names_of_entries(node: ast.AST) -> list[ast.Constant]:
    """The names of a dict's entries where they are few and all written out: `{"train": a, "val": b}`, or `{k: make(k) for k in [...]}`."""
    keys = list(node.keys) if isinstance(node, ast.Dict) else []
    if isinstance(node, ast.DictComp) and same(node.key, node.generators[0].target) and spelled_out(node.generators[0].iter):
        keys = getattr(node.generators[0].iter, "elts", [])
    names = [k for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    return names if 2 <= len(names) <= 4 and len(names) == len(keys) else []


def _names_in(run: Interpreter, value: Value, body: list[ast.stmt]) -> list[tuple[ast.AST, Value]]:
    """The entries of a list of names that was written out elsewhere, where a loop over it reads or sets attributes by them."""
    made = next(iter(value.objs)) if len(value.objs) == 1 else None
    if not (isinstance(made, New) and spelled_out(made.node)):
        return []
    if not _reads_by_name(body):
        return []
    items = getattr(made.node, "elts", [])
    whole = run.memory.get((made, ELEMENT), NOTHING)
    entries = [run.memory.get((made, str(i)), NOTHING) for i in range(len(items))]
    if not all(isinstance(literal(e), str) for e in entries) or whole.objs != join(entries).objs:
        return []  # names were added to it since
    return [(item, marked_as_literal(entry)) for item, entry in zip(items, entries, strict=True)]


def _names_in_module(run: Interpreter, value: Value, body: list[ast.stmt]) -> list[tuple[ast.AST, Value]]:
    """The constants of a module of settings, where a loop over its names reads or sets attributes by them."""
    made = next(iter(value.objs)) if len(value.objs) == 1 else None
    if not isinstance(made, Module) or not run.project.has_file(made.name) or not _reads_by_name(body):
        return []
    bound = {n.id: n for s in run.file_of(made.name).tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in names_stored(s)}
    return [(node, marked_as_literal(just(Lit(name)))) for name, node in bound.items()]


def _reads_by_name(body: list[ast.stmt]) -> bool:
    """Whether statements read or set attributes by names that are put together."""
    calls = [n.func for s in body for n in walk(s) if isinstance(n, ast.Call)]
    return any(isinstance(f, ast.Name) and f.id in ("getattr", "setattr") for f in calls)


def _makes_loaders(run: Interpreter, body: list[ast.stmt]) -> bool:
    """Whether a loop makes loaders, each its own."""
    calls = [n.func for s in body for n in walk(s) if isinstance(n, ast.Call)]
    names = [f for f in calls if isinstance(f, ast.Name) or (isinstance(f, ast.Attribute) and f.attr == "DataLoader")]
    return any(not library.LOADERS.isdisjoint(run.expression(f).paths()) for f in names)


def _phases(run: Interpreter, node: ast.For, phases: list[tuple[ast.AST, Value]]) -> bool:
    """Run a loop over a few names or flags that are spelled out once for each."""
    over, outer, calls = run.expression(node.iter), run.loops, run.stack
    run.breaks.append([])
    first = run.record.current + 1
    run.memory.fork()
    for item, element in phases:
        run.assign(node.target, element)
        run.loops, run.stack = (*outer, Loop(node, run.frame.file, over, element)), (*calls, item)
        idle, alive = run.frame.idle, run.block(node.body)
        run.loops, run.stack, run.frame.idle = outer, calls, idle
        if not run.merge([*run.breaks[-1], *([run.end_of_branch()] if alive else [])]):
            run.breaks.pop()
            return False
    run.breaks.pop()
    run.record.ran(node, first)
    return run.block(node.orelse) if node.orelse else True


def execute_while(run: Interpreter, node: ast.While) -> bool:
    """A loop under a condition."""

    def enter() -> Loop:
        begin_pass(run)
        test = run.expression(node.test)
        decide(run, node, test)
        return Loop(node, run.frame.file, NOTHING, test | run.fed.get(node, NOTHING))

    return _loop(run, node, node.body, node.orelse, enter, isinstance(node.test, ast.Constant) and bool(node.test.value))


def evaluate_comprehension(run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    """A comprehension: its element, for what its loops go through."""
    moved = _moved(run, node)
    if moved is not None:
        return moved
    saved, outer = (dict(run.frame.local) if run.frame.local is not None else None), run.loops
    if phases := _phases_of(run, node):
        return _of_phases(run, node, phases, saved)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and (entries := _tensors_of_tuple(run, node)):
        return _of_each(run, node, entries, saved)
    chosen: frozenset[Origin] = frozenset()
    samples, some, own = False, False, {n.id for g in node.generators for n in names_stored(g.target)}
    for generator in node.generators:
        over = run.expression(generator.iter)
        element = run.element(over, node)
        chosen |= only(over.origins, "listing")  # as many entries as there are files
        some = some or (samples and bool(over.of_kind("batch")))  # as many entries of each sample as it has itself
        if per_sample(run, over, numbered=False):  # as many entries as there are samples
            samples = True
            chosen |= only(library.mixed([element], {}).origins, "batch")
        run.loops = (*run.loops, Loop(node, run.frame.file, over, element))
        run.assign(generator.target, element)
        for test in generator.ifs:
            decides = run.expression(test)
            chosen |= only(decides.origins, "decided") | {Origin("decided", of) for of in decides.of_kind("batch")}
            some = some or bool(decides.of_kind("batch"))
    if isinstance(node, ast.DictComp):
        key, item = run.expression(node.key), run.expression(node.value)
        keys = literal_keys(key)
    else:
        item, keys = chosen_by_class(run, node.elt, run.expression(node.elt), [test for g in node.generators for test in g.ifs]), []
    apart = samples and depends_on(run, node.value if isinstance(node, ast.DictComp) else node.elt, own, [], may_know_more)
    run.loops = outer
    if saved is not None:
        run.frame.local = saved
    obj = run.objects.new({ast.DictComp: "dict", ast.SetComp: "set"}.get(type(node), "list"), node, run.stack)
    if isinstance(node, ast.DictComp) and (copied := named.copied(run, key, item)).objs:
        run.update(obj, copied)
        return just(obj)
    run.memory[obj, ELEMENT] = item
    for k in keys or ([UNNAMED] if isinstance(node, ast.DictComp) else []):
        run.memory[obj, k] = item
    tests = apart and isinstance(node, (ast.ListComp, ast.GeneratorExp)) and prefixes.tests_each(run, node, over)
    rows = Shape(obj, sure=False, falling=MASK if tests else "") if apart else None  # one entry for each sample
    library.shown_as_table(run, obj, item)
    scale: Scale | None = "chosen" if apart and some else "sample" if apart else "other" if samples else None
    made = Value(frozenset((obj,)), item.origins | chosen, scale, rows)
    run.events.append((Kind.MAKE, node, None, made))
    return made


def _tensors_of_tuple(run: Interpreter, node: ast.ListComp | ast.GeneratorExp) -> tuple[Value, ...]:
    """The entries of a tuple of tensors that a comprehension goes through, each of which it keeps; none of anything else."""
    first = node.generators[0]
    over = run.expression(first.iter) if len(node.generators) == 1 and not first.ifs else NOTHING
    tuples = [
        o
        for o in over.objs
        if isinstance(o, Tup) and o.rest is None and any(i.scale is not None or i.of_kind("parameters") for i in o.items)
    ]
    if len(tuples) < len(over.objs) or len({len(t.items) for t in tuples}) != 1:
        return ()
    return tuple(join(list(items)) for items in zip(*(t.items for t in tuples), strict=True))


def _of_each(run: Interpreter, node: ast.ListComp | ast.GeneratorExp, entries: tuple[Value, ...], saved: dict[str, Value] | None) -> Value:
    """`[part.float() for part in (rows, targets)]`: a list of as many, each of its own."""
    first, outer, made = node.generators[0], run.loops, list[Value]()
    for entry in entries:
        run.loops = (*outer, Loop(node, run.frame.file, run.expression(first.iter), entry))
        run.assign(first.target, entry)
        made.append(run.expression(node.elt))
    run.loops = outer
    if saved is not None:
        run.frame.local = saved
    return listed(run, node, made)


def _moved(run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value | None:
    """`[part.to(device) for part in batch]`: a batch whose parts are somewhere else is the batch, also with fewer of its keys."""
    first = node.generators[0]
    if len(node.generators) > 1 or isinstance(node, ast.SetComp):
        return None
    over, part, whole = first.iter, node.value if isinstance(node, ast.DictComp) else node.elt, first.target
    if isinstance(node, ast.DictComp):
        items = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items" and not over.args
        if not items or not isinstance(whole, ast.Tuple) or len(whole.elts) != 2 or not same(node.key, whole.elts[0]):
            return None
        over, whole = over.func.value, whole.elts[1]  # type: ignore[attr-defined]
    called = isinstance(over, ast.Call) and last_name(over.func) != "next"
    if not isinstance(whole, ast.Name) or not _is_moved(part, whole) or called:
        return None
    if first.ifs and (isinstance(node, ast.ListComp) or any(_reads(test, whole) for test in first.ifs)):
        return None
    batch = run.expression(over)
    return batch if not batch.objs and batch.scale == "sample" else None


def _is_moved(part: ast.expr, whole: ast.Name) -> bool:
    """Whether an expression is `whole` on any device: `part.to(device) if torch.is_tensor(part) else part`."""
    if isinstance(part, ast.IfExp):
        return _is_moved(part.body, whole) and _is_moved(part.orelse, whole)
    while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("to", "cuda", "cpu"):
        part = part.func.value
    return same(part, whole)


def _reads(test: ast.expr, whole: ast.Name) -> bool:
    """Whether a test reads what `whole` holds, more than its kind."""
    if isinstance(test, ast.Call) and last_name(test.func) in ("is_tensor", "isinstance", "hasattr"):
        return False
    return same(test, whole) or any(_reads(n, whole) for n in ast.iter_child_nodes(test) if isinstance(n, ast.expr))


def _are_no_rows(value: Value) -> bool:
    """Whether a value depends on the batch, and its entries are not of one sample after another."""
    return value.scale not in (None, "sample") or any(map(value.of_kind, ("parts", "joined", "reordered", "steps")))


def per_sample(run: Interpreter, over: Value, numbered: bool = True) -> bool:
    """Whether iterating over a value gives one sample of a batch at a time, or where `numbered` the number of one."""
    if not over.objs:
        return over.scale == "sample" and not (over.shape is not None and over.shape.several)
    if over.scale == "sample" and over.shape is not None and over.objs == {over.shape.base}:
        return True  # a list with an entry for each sample, be it an object or a container
    inner = [run.memory.get((o, "iterable"), NOTHING) for o in over.instances() if o.path == "enumerate"]
    for together in (run.memory.numbered(o) for o in over.instances() if o.path == "zip"):
        if any(map(_are_no_rows, together)) or orders.differ(together) or tensors.uneven(together):
            return False
        inner += together
    ranges = (o for o in over.instances() if o.path == "range" and numbered and len(getattr(o.node, "args", ())) < 3)
    ends = (run.memory.get((o, operands.ENDS), NOTHING) for o in ranges)
    return any(per_sample(run, v, numbered) for v in inner) or any(end.scale == "count" for end in ends)


def _phases_of(run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> list[tuple[ast.AST, Value]]:
    """The phases that a comprehension goes through, where they are spelled out; none where it is over anything else."""
    first = node.generators[0]
    if len(node.generators) > 1 or isinstance(node, ast.SetComp) or (first.ifs and not isinstance(node, ast.DictComp)):
        return []
    if spelled_out(first.iter):
        return [(item, marked_as_literal(run.expression(item))) for item in getattr(first.iter, "elts", ())]
    made = ast.Expr(node.value if isinstance(node, ast.DictComp) else node.elt)
    match first.iter:
        case ast.Call(func=ast.Attribute(value=of, attr="items"), args=[], keywords=[]) if _makes_loaders(run, [made]):
            return _loaders_by_name(run, of, [made])
        case ast.Name() | ast.Attribute() if _makes_loaders(run, [made]):
            return [(k, marked_as_literal(run.expression(k))) for k, _ in _entries(run, first.iter)]
    return []


def _of_phases(
    run: Interpreter,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    phases: list[tuple[ast.AST, Value]],
    saved: dict[str, Value] | None,
) -> Value:
    """`{phase: DataLoader(...) for phase in ["train", "val"]}`: one entry for each name."""
    outer, calls, made = run.loops, run.stack, list[tuple[list[str], Value]]()
    over = run.expression(node.generators[0].iter)
    for part, element in phases:
        run.loops, run.stack = (*outer, Loop(node, run.frame.file, over, element)), (*calls, part)
        run.assign(node.generators[0].target, element)
        if isinstance(node, ast.DictComp):
            made.append((literal_keys(run.expression(node.key)), run.expression(node.value)))
        else:
            made.append(([], run.expression(node.elt)))
        run.loops, run.stack = outer, calls
    if saved is not None:
        run.frame.local = saved
    if not isinstance(node, ast.DictComp):
        return listed(run, node, [item for _, item in made])
    obj = run.objects.new("dict", node, run.stack)
    run.memory[obj, ELEMENT] = join([item for _, item in made])
    for names, item in made:
        for name in names:
            run.memory[obj, name] = item
    return Value(frozenset((obj,)), frozenset(origin for _, item in made for origin in item.origins))


def spelled_out(node: ast.AST) -> bool:
    """Whether an expression is a short list of names or flags, or of tuples with one each: phases that are treated differently."""
    if not isinstance(node, (ast.List, ast.Tuple)) or not 2 <= len(node.elts) <= 4:
        return False
    parts = [p for e in node.elts for p in (e.elts if isinstance(e, ast.Tuple) else [e])]
    return all(any(_phase(p) for p in (e.elts if isinstance(e, ast.Tuple) else [e])) for e in node.elts) and len(parts) <= 16


def _phase(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bool))
