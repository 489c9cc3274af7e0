"""How each thing that a loop leaves behind becomes that of all ranks: what is added up is summed, lists are gathered, the rest is told."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpify.edits import Edit, Replace
from ddpify.facts import collect, kept
from ddpify.facts.effects import effect
from ddpify.facts.kept import Write
from ddpify.facts.library import COLLECTIONS, DICTS
from ddpify.facts.model import NOTHING, Func, Lit, New, Tup, Value, join
from ddpify.facts.tree import Tree
from ddpify.records import dataclass, field, replace
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.branches import parts_ranks
from ddpify.rules.loop.numbers import fed, of_rows, own_parts

_GROWS = ("append", "extend", "appendleft")
_COUNTED = ("sum", "count", "total")
Batches = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True)
class Left:
    """What a loop leaves under one name, the writes that build it up, and a later read of it."""

    text: str
    writes: tuple[Write, ...]
    node: ast.AST
    value: Value
    shown: str  # `text` as the script writes it

    @property
    def hows(self) -> set[str]:
        """The ways in which it is written."""
        return {w.how for w in self.writes}


@dataclass
class Reduction:
    """What makes it all ranks': lines after the loop, edits inside it, or the reason why neither is known."""

    lines: list[str] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    settles: list[tuple[ast.stmt, str]] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    problem: str = ""
    fix: str = ""
    doubt: str = ""  # applied, but not proven equal


# ------------------------------------------------------------------------------------------------ what a loop leaves


def left_behind(context: Context, loop: Batches) -> list[Left]:
    """What the statements of a loop build up and something reads later, in the order of their names."""
    by_text: dict[str, list[Write]] = {}
    for write in (*kept.writes(loop), *_passed(context, loop)):
        by_text.setdefault(write.text, []).append(write)
    for text in [t for t in by_text if "[" in t and any(w.how == "cells" for w in by_text.get(t.partition("[")[0], ()))]:
        base = text.partition("[")[0]
        by_text[base] += [replace(w, text=base, how="cells" if w.how == "total" else w.how) for w in by_text.pop(text)]
    out = []
    for text, writes in sorted(by_text.items()):
        if any(text in context.settled.get(s, ()) for s in (loop, *(context.facts.tree_of(loop).statement(w.node) for w in writes))):
            continue
        node = _read_after(context, loop, text, writes)
        if node is not None:
            out.append(Left(text, tuple(writes), node, _value(context, text, node), context.source(writes[0].target)))
    return out


def _passed(context: Context, loop: Batches) -> Iterator[Write]:
    """Dicts that a loop hands to a function which adds to their elements."""
    run = context.facts.after
    for call in (n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Call)):
        for arg in (*call.args, *(k.value for k in call.keywords)):
            objs = {o for o in run.value(arg).made() if o.path in DICTS} if isinstance(arg, (ast.Name, ast.Attribute)) else set()
            stores = [s for s in run.trace.stores if objs & s.receiver.objs and call in s.stack] if objs else []
            for store in stores:
                up = context.facts.tree_of(store.node).parent.get(store.node)
                added = up.value if isinstance(up, ast.AugAssign) and isinstance(up.op, (ast.Add, ast.Sub)) else None
                yield Write(ast.unparse(arg), "cells" if added is not None else "last", call, None, arg)


def _read_after(context: Context, loop: Batches, text: str, writes: list[Write]) -> ast.AST | None:
    """A read, after the loop, of what it left under a name: in its function, or anywhere for what others hold, too."""
    tree = context.facts.tree_of(loop)
    function = tree.function(loop)
    inside = set(ast.walk(loop))
    end = loop.end_lineno or 0
    base = text.partition("[")[0]
    reads, rebound = [], 1 << 30
    for node in ast.walk(function):
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or node in inside or node.lineno <= end:
            continue
        if ast.unparse(node) not in (text, base):
            continue
        if isinstance(node.ctx, ast.Store) and not isinstance(tree.parent.get(node), ast.AugAssign):
            statement = tree.statement(node)
            if not any(ast.unparse(n) == text for n in ast.walk(getattr(statement, "value", None) or ast.Pass())):
                rebound = min(rebound, node.lineno)
        elif not (_only_part(tree, node, text) or _of_comprehension(tree, node) or _ended(context, node)):
            reads.append(node)
    here = [n for n in reads if n.lineno <= rebound and not reduced(context, n, text)]
    ours = [n for n in reads if reduced(context, n, text)]
    if ours:
        here = [n for n in here if n.lineno < min(o.lineno for o in ours)]
    if here:
        return min(here, key=lambda n: (ast.unparse(n) != text, n.lineno, n.col_offset))
    totals = any(w.how == "total" for w in writes) and kept.from_before(loop.body, text)
    steering = _steered(context, loop, text) if totals else None
    if ours or rebound < 1 << 30 or steering is not None:
        return None if ours else steering
    if "." in base and isinstance(loop, ast.stmt):
        attr = base.rpartition(".")[2]
        return next(
            (
                n
                for n in tree.nodes()
                if isinstance(n, ast.Attribute) and n.attr == attr and isinstance(n.ctx, ast.Load) and n not in inside and _apart(n, base)
            ),
            None,
        )
    passed = {a.arg for a in getattr(function, "args", ast.arguments([], [], None, [], [], None, [])).args}
    named = {n for s in ast.walk(function) if isinstance(s, ast.Global) for n in s.names}
    grows = any(w.how in ("entries", "samples", "cells") for w in writes)
    if (base in passed and grows) or base in named or (grows and base not in _bound(function) and isinstance(function, ast.FunctionDef)):
        return writes[0].node
    return None


def _only_part(tree: Tree, node: ast.expr, text: str) -> bool:
    """Whether only another element of a container is read than the one that is meant."""
    up = tree.parent.get(node)
    return ast.unparse(node) != text and isinstance(up, ast.Subscript) and up.value is node and isinstance(up.slice, ast.Constant)


def _ended(context: Context, node: ast.expr) -> bool:
    """Whether a library's object is only told something, such as `bar.finish()`: nothing it was given is read."""
    tree, made = context.facts.tree_of(node), context.facts.after.value(node).made()
    attribute = tree.parent.get(node)
    call = tree.parent.get(attribute) if isinstance(attribute, ast.Attribute) else None
    told = isinstance(call, ast.Call) and call.func is attribute and isinstance(tree.parent.get(call), ast.Expr)
    return told and bool(made) and all(o.cls is None for o in made)


def _of_comprehension(tree: Tree, node: ast.expr) -> bool:
    """Whether a name is the variable of a comprehension around it."""
    return isinstance(node, ast.Name) and any(
        isinstance(n, ast.Name) and n.id == node.id
        for up in tree.ancestors(node)
        for generator in getattr(up, "generators", ())
        for n in ast.walk(generator.target)
    )


def _apart(node: ast.Attribute, base: str) -> bool:
    return ast.unparse(node).startswith(base.partition(".")[0])


def _bound(function: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def reduced(context: Context, node: ast.AST, text: str) -> bool:
    """Whether a read is the one that makes all ranks' number of this rank's own."""
    statement = context.facts.tree_of(node).statement(node)
    if isinstance(statement, ast.For) and ast.unparse(statement.iter) == text:  # for key in totals: totals[key] = ...
        only = statement.body[0]
        return isinstance(only, ast.Assign) and not context.shared(context.facts.after.value(only.value))
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1 and ast.unparse(statement.targets[0]) == text):
        return False
    value = context.facts.after.value(statement.value)
    inner = [context.facts.after.held(o, "[]") for o in value.made()]
    return not any(context.shared(v) for v in (value, *inner))


def _value(context: Context, text: str, node: ast.AST) -> Value:
    """What a name, or the part of it that is meant, holds when it is read."""
    run = context.facts.after
    if not isinstance(node, ast.expr):
        return NOTHING
    value = run.value(node)
    if text.endswith("]") and ast.unparse(node) != text:
        key = ast.literal_eval(text[text.index("[") + 1 : text.index("]")])
        held = [run.memory[o, str(key)] for o in value.made() if (o, str(key)) in run.memory]
        return held[0] if held else value
    return value


def loader_of(context: Context, loop: Batches) -> str:
    """The loader that a loop runs over, as the script writes it; empty where it has no such name."""
    run = context.facts.after
    for part in ast.walk(loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else ():
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            made = run.value(part).made()
            if made and all(run.is_loader(o) for o in made):
                return ast.unparse(part)
    return ""


# ------------------------------------------------------------------------------------------------ how it is reduced


def reduce(context: Context, loop: Batches, left: Left, loader: str, dealt: bool) -> Reduction | None:
    """What to do about one of them; None where it is nothing that differs between ranks. `loader` is the loop's loader, as text."""
    out = Reduction()
    text, value, total = left.shown, left.value, context.names["sum_over_ranks"]
    made = value.made()
    element = _element(context, left)
    if any(is_meter(context, o) for o in made):
        return _meter(context, loop, left, out)
    if made and all(o.path.startswith("torchmetrics.") or meter(context, o) is not None for o in made):
        return None  # its compute() is a collective of its own, or its totals are those of all ranks already
    if left.hows <= {"entries"}:
        return _list(context, loop, left, element, dealt, out)
    if left.hows <= {"samples"} or (left.hows <= {"total"} and any(o.path == "list" for o in made)):
        if not (context.shared(element) or dealt):
            return None
        trim = f"[: len({loader}.dataset)]" if loader and not dealt else ""
        turns = f", {loader}.batch_size" if dealt else ""
        return _gathered(context, loop, left, f"{text} = {{gather}}({text}{turns}){trim}", out)
    if left.hows <= {"rows"}:
        if not (context.shared(value) or dealt):
            return None
        join = next(ast.unparse(w.node.value.func) for w in left.writes if isinstance(getattr(w.node, "value", None), ast.Call))  # type: ignore[attr-defined]
        join = join if not join.endswith("append") else join.rpartition(".")[0] + ".concatenate"
        size = f"{loader}.batch_size"
        library = join.rpartition(".")[0]
        batches = f"{text}.split({size})" if library.endswith("torch") else f"{library}.split({text}, range({size}, len({text}), {size}))"
        if not loader or not library:
            return _told(left, out)
        return _gathered(context, loop, left, f"{text} = {join}({{gather}}(list({batches})))", out)
    if not dealt and _by_index(context, loop, left, out):
        return out
    if "cells" in left.hows:
        return _cells(context, loop, left, element, dealt, out)
    if "object" in left.hows and made:
        own = {n for o in made for n, v in context.facts.after.of(o).items() if context.shared(v)}
        if not own or (all(o.cls is not None for o in made) and not _read_elsewhere(context, loop, own)):
            return None
        return _told(left, out)
    chosen = left.hows == {"total"} and not context.shared(value) and (context.local(value) or _by_sample(context, loop, left))
    if not (context.shared(value) or chosen or (dealt and left.hows <= {"total"})):
        return None
    if value.scale is None and not dealt and not made and not chosen:
        return None
    if value.scale == "sample" and left.hows <= {"last"} and _shown(context, left.node):
        return None  # a picture or a line about some samples: rank 0's own
    doubtful = not dealt and value.scale in ("weighted", "other") and left.hows == {"total"}
    if doubtful:
        exact = _at_source(context, loop, left, Reduction())
        if not exact.problem:
            return exact
    if chosen and not made:
        return _counted(context, loop, left, dealt, out)
    if made or not (value.scale in (*_COUNTED, "mean") or dealt or doubtful):
        return _told(left, out)
    if doubtful:
        out.doubt = (
            f"`{left.text}` adds up numbers that are no plain averages over a batch: their mean over ranks may differ from the original's"
        )
    if any(
        isinstance(w.added, ast.JoinedStr) or (isinstance(w.added, ast.Constant) and isinstance(w.added.value, str)) for w in left.writes
    ):
        return _told(left, out) if dealt else None
    if not is_fresh(context, loop, left.text) or (not dealt and _steers_total(context, loop, left)):
        return _at_source(context, loop, left, out)
    if not dealt and (value.scale == "mean" or doubtful):
        out.lines.append(f"{text} = {total}({text}) / {context.names['world_size']}")
    else:
        out.lines.append(f"{text} = {total}({text})")
    out.needs.add("sum_over_ranks")
    return out


def _read_elsewhere(context: Context, loop: Batches, names: set[str]) -> bool:
    """Whether attributes are read by what runs outside a loop."""
    inside = set(ast.walk(loop))
    outside: set[ast.AST] = {tree.root for tree in context.facts.trees.values()}
    for call in context.facts.after.trace.calls:
        if not any(up.node is loop for up in call.loops):
            outside |= {o.node for o in call.func.objs if isinstance(o, Func)}
    for function in outside:
        for node in collect.own_nodes(function):
            if node in inside:
                continue
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in names:
                return True
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "vars"):
                asked = context.facts.after.value(node.args[1]).objs if len(node.args) > 1 else frozenset()
                if not asked or not all(isinstance(o, Lit) and o.value not in names for o in asked):
                    return True
    return False


def _by_sample(context: Context, loop: Batches, left: Left) -> bool:
    """Whether something is counted in a loop over the samples of a batch."""
    return any(_over_samples(context, loop, w) for w in left.writes)


def _over_samples(context: Context, loop: Batches, write: Write) -> bool:
    tree, run = context.facts.tree_of(loop), context.facts.after
    inner = (up for up in tree.ancestors(write.node) if isinstance(up, ast.For) and loop in tree.ancestors(up))
    return any(run.interpreter.per_sample(run.value(up.iter)) for up in inner)


def _counted(context: Context, loop: Batches, left: Left, dealt: bool, out: Reduction) -> Reduction:
    """What is counted one sample at a time under a condition; a count of batches would be that of each rank's own."""
    for write in left.writes:
        added = context.facts.after.value(write.added).scale if write.added is not None else None
        if not _over_samples(context, loop, write) and not dealt and added != "sum":
            return _told(left, out)
    if not is_fresh(context, loop, left.text):
        return _told(left, out)
    out.lines.append(f"{left.shown} = {context.names['sum_over_ranks']}({left.shown})")
    out.needs.add("sum_over_ranks")
    return out


def _shown(context: Context, node: ast.AST) -> bool:
    """Whether a read only goes into what is printed, drawn or written."""
    effects = guards_of(context).effects
    return any(up in effects.at for up in context.facts.tree_of(node).ancestors(node))


def _told(left: Left, out: Reduction) -> Reduction:
    out.problem = f"`{left.text}` holds what this rank computed from its own share of the data, and is read after the loop"
    out.fix = f"gather it from all ranks first: dist.all_gather_object(parts, {left.text})"
    return out


def _element(context: Context, left: Left) -> Value:
    """What a container holds that the loop filled."""
    run = context.facts.after
    values = [run.value(w.added) for w in left.writes if w.added is not None]
    return join(values or [run.held(o, "[]") for o in left.value.made() if o.path in COLLECTIONS] or [left.value])


def _list(context: Context, loop: Batches, left: Left, element: Value, dealt: bool, out: Reduction) -> Reduction | None:
    """A list with one entry for each batch: numbers are reduced as they are appended, the rest is gathered after the loop."""
    mine = [element, *(i for o in element.objs if isinstance(o, Tup) for i in o.items)]
    mine += [context.facts.after.held(o, "[]") for o in left.value.made()]
    if not dealt and not any(context.shared(v) or context.local(v) for v in mine) and not _by_sample(context, loop, left):
        return None
    if any(o.path == "collections.deque" for o in left.value.made()):
        return _told(left, out)
    if not dealt and element.scale in (*_COUNTED, "mean") and not element.made():
        return _at_source(context, loop, left, out)
    if not dealt and element.scale != "sample" and not element.made():
        exact = _at_source(context, loop, left, Reduction())
        if not exact.problem:
            return exact
        out.doubt = f"`{left.text}` collects numbers that are no plain averages over a batch: each rank's are those of its own share"
    if element.made() and not dealt:
        return _entries_of_dicts(context, loop, left, element, out)
    return _gathered(context, loop, left, f"{left.shown} = {{gather}}({left.shown})", out)


def _entries_of_dicts(context: Context, loop: Batches, left: Left, element: Value, out: Reduction) -> Reduction:
    """A list of dicts of averages, one for each batch: each average becomes that of all ranks as it is appended."""
    run, total = context.facts.after, context.names["sum_over_ranks"]
    held = [v for o in element.made() for name, v in run.of(o).items() if not name.startswith("[")]
    held = held or [run.held(o, "[]") for o in element.made()]
    dicts = all(o.path in DICTS for o in element.made())
    added = [w.added for w in left.writes if w.added is not None]
    if not dicts or len(added) != 1 or not all(v.scale in ("mean", None) and not v.made() for v in held):
        return _told(left, out)
    mean = f"{{{{name: {total}(value) / {context.names['world_size']} for name, value in {{0}}.items()}}}}"
    out.edits.append(Replace(added[0], mean, (added[0],)))
    out.settles.append((context.facts.tree_of(loop).statement(left.writes[0].node), left.text))
    out.needs.add("sum_over_ranks")
    return out


def _gathered(context: Context, loop: Batches, left: Left, line: str, out: Reduction) -> Reduction:
    if not is_fresh(context, loop, left.text):
        return _told(left, out)
    out.lines.append(line.format(gather=context.names["gather_over_ranks"]))
    out.needs.add("gather_over_ranks")
    return out


def _by_index(context: Context, loop: Batches, left: Left, out: Reduction) -> bool:
    """Rows that are stored under the indices of their samples: every rank stores those of all."""
    tree = context.facts.tree_of(loop)
    for write in left.writes:
        node = write.node
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            return False
        if any(context.local(context.facts.after.value(up.test)) for up in tree.ancestors(node) if isinstance(up, (ast.If, ast.While))):
            return False
        edits, needs = of_rows(context, node.targets[0].slice, node.value)
        if not edits:
            return False
        out.edits += edits
        out.needs |= needs
        out.settles.append((node, left.text))
    return True


def _cells(context: Context, loop: Batches, left: Left, element: Value, dealt: bool, out: Reduction) -> Reduction | None:
    """A list, a dict or an array whose elements are added to."""
    text = left.shown
    run = context.facts.after
    objs = left.value.made()
    keys = [run.value(k) for w in left.writes for k in _subscripts(w.node)]
    if not dealt and not any(context.shared(v) for v in (element, left.value, *keys)):
        return None
    if not is_fresh(context, loop, left.text):
        return _told(left, out)
    if any(w.how not in ("cells", "total") for w in left.writes):
        return _told(left, out)
    share = f" / {context.names['world_size']}" if element.scale == "mean" and not dealt else ""
    counted = element.scale is None and any(context.shared(k) for k in keys)
    if not dealt and element.scale not in (*_COUNTED, "mean", "sample") and not counted:
        return _told(left, out)
    if any(o.path in DICTS for o in objs) and any(context.shared(k) for k in keys):
        return _told(left, out)
    line = _summed(context, text, left.value, share) if objs or left.value.of_kind("sized") else ""
    if not line:
        return _told(left, out)
    out.lines.append(line)
    out.needs.add("sum_over_ranks")
    return out


def _subscripts(node: ast.AST) -> Iterator[ast.expr]:
    target = getattr(node, "target", None)
    while isinstance(target, ast.Subscript):
        yield target.slice
        target = target.value


def _at_source(context: Context, loop: Batches, left: Left, out: Reduction) -> Reduction:
    """What goes on from one pass to the next, or steers inside the loop, is fed with the numbers of all ranks."""
    run, tree = context.facts.after, context.facts.tree_of(loop)
    for write in left.writes:
        if write.how == "last" and isinstance(write.added, ast.Constant):
            continue  # started anew inside the loop
        parts = own_parts(context, write.added, left.text) if write.added is not None else None
        tests = [up for up in tree.ancestors(write.node) if isinstance(up, (ast.If, ast.While)) and up is not loop]
        if (
            not parts
            or write.added is None
            or any(context.shared(run.value(t.test)) for t in tests)
            or write.how not in ("total", "entries", "last")
        ):
            out.problem = f"`{left.text}` is carried on from one pass over the data to the next, so it cannot be reduced after each"
            out.fix = f"start {left.text} anew before the loop, or reduce a copy of it where it is read"
            return out
        edits, needs = fed(context, parts)
        out.edits += edits
        out.needs |= needs
        out.settles.append((tree.statement(write.node), left.text))
    return out


def _steers_total(context: Context, loop: Batches, left: Left) -> bool:
    return "total" in left.hows and kept.from_before(loop.body, left.text) and _steered(context, loop, left.text) is not None


def _steered(context: Context, loop: Batches, text: str) -> ast.expr | None:
    """A read of the name in a test inside the loop that decides what is trained or written."""
    writing = {c.node for c in context.facts.after.trace.calls if effect(c) == "file"}
    for node in (n for s in loop.body for n in ast.walk(s) if isinstance(n, (ast.If, ast.While))):
        if parts_ranks(context, node) or any(n in writing for s in node.body for n in ast.walk(s)):
            for part in ast.walk(node.test):
                if isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part) == text:
                    return part
    return None


# ------------------------------------------------------------------------------------------------ meters


@dataclass(frozen=True)
class Meter:
    """How a class of the project's own adds up what it is given: the attributes it adds to, and those it computes from them."""

    totals: tuple[str, ...]
    derived: tuple[tuple[str, ast.expr], ...]
    others: frozenset[str]


def meter(context: Context, obj: New) -> Meter | None:
    """The meter that an object is; None where its class adds nothing up, or keeps more than that."""
    if obj.cls is None or context.facts.after.interpreter.is_module(obj):
        return None
    totals: dict[str, None] = {}
    assigned: dict[str, list[ast.expr]] = {}
    methods = list(_methods(context, obj))
    adding = {m.name for m in methods if any(isinstance(n, ast.AugAssign) and _own(n.target) for n in ast.walk(m))}
    for method in methods:
        if not adding & {method.name, *_asks(method)} and not _called_between(context, obj, method.name, adding):
            continue  # it shows what there is after the loop
        starts = method.name in ("__init__", "reset", "clear")
        for node in ast.walk(method):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS and _own(node.func.value):
                return None
            if isinstance(node, ast.AugAssign) and _own(node.target):
                totals.setdefault(_own(node.target))
            elif isinstance(node, ast.Assign) and not starts:
                for target in node.targets:
                    if _own(target):
                        assigned.setdefault(_own(target), []).append(node.value)
    derived, others = [], set()
    for name, values in assigned.items():
        reads = {_own(n) for v in values for n in ast.walk(v) if isinstance(n, ast.Attribute)} - {""}
        loose = {n.id for v in values for n in ast.walk(v) if isinstance(n, ast.Name)} - {"self", "float", "max"}
        if len(values) == 1 and reads and reads <= set(totals) and not loose:
            derived.append((name, values[0]))
        elif name in totals:
            return None
        else:
            others.add(name)
    return Meter(tuple(totals), tuple(derived), frozenset(others)) if totals else None


def _asks(method: ast.FunctionDef) -> set[str]:
    """The methods of its own object that a method calls."""
    return {n.func.attr for n in ast.walk(method) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and _own(n.func)}


def _called_between(context: Context, obj: New, name: str, adding: set[str]) -> bool:
    """Whether a method of an object is called in a loop that adds to it."""
    calls = [c for c in context.facts.after.trace.calls if obj in c.receiver.objs and c.loops]
    growing = {c.loops[-1].node for c in calls if c.method in adding}
    return any(loop.node in growing for c in calls if c.method == name for loop in c.loops)


def _methods(context: Context, obj: New) -> Iterator[ast.FunctionDef]:
    todo = [obj.cls]
    while todo:
        cls = todo.pop()
        if cls is not None:
            yield from (n for n in cls.node.body if isinstance(n, ast.FunctionDef))
            todo += [b for base in cls.bases for b in base.objs if isinstance(b, type(cls))]


def _own(node: ast.AST) -> str:
    """The attribute of `self` that an expression is, or an element of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else ""


def is_meter(context: Context, obj: New) -> bool:
    """Whether an object of the project's own class adds up what a loop over shares gives it."""
    found = meter(context, obj)
    return found is not None and any(context.shared(context.facts.after.held(obj, n)) for n in found.totals)


def _meter(context: Context, loop: Batches, left: Left, out: Reduction) -> Reduction:
    if not is_fresh(context, loop, left.text):
        out.problem = f"`{left.text}` is carried on from one pass over the data to the next, so it cannot be reduced after each"
        out.fix = f"start {left.text} anew before the loop, or reduce a copy of it where it is read"
        return out
    found = {meter(context, o) for o in left.value.made()}
    kind = next((m for m in found if m is not None), None)
    if kind is None or len(found) > 1:
        return _told(left, out)
    names = {*kind.totals, *(n for n, _ in kind.derived)}
    if names in ({"sum", "count", "avg"}, {"sum", "cnt", "avg"}):
        out.lines.append(f"{context.names['reduce_meter']}({left.shown})")
        out.needs.add("reduce_meter:cnt" if "cnt" in names else "reduce_meter")
        return out
    for name in kind.totals:
        held = join([context.facts.after.held(o, name) for o in left.value.made()])
        line = _summed(context, f"{left.shown}.{name}", held, "")
        if not line:
            return _told(left, out)
        out.lines.append(line)
    for name, value in kind.derived:
        out.lines.append(f"{left.shown}.{name} = {re.sub(r'(?<![A-Za-z0-9_])self(?=[.])', lambda _: left.shown, ast.unparse(value))}")
    out.needs.add("sum_over_ranks")
    return out


def _summed(context: Context, text: str, value: Value, share: str) -> str:
    """The line that sums a number, a list, a dict or an array over the ranks; empty where what it is was not seen."""
    total, objs = context.names["sum_over_ranks"], value.made()
    if any(o.path in DICTS for o in objs):
        return f"for key in {text}:\n    {text}[key] = {total}({text}[key]){share}"
    if objs and all(o.path == "list" for o in objs):
        return f"{text} = [{total}(value){share} for value in {text}]"
    if objs:
        return ""
    return f"{text} = {total}({text}){share}"


# ------------------------------------------------------------------------------------------------ fresh for each pass


def is_fresh(context: Context, loop: Batches, text: str) -> bool:
    """Whether a name is set to nothing before each run of the loop, and nothing is added to it in between."""
    tree = context.facts.tree_of(loop)
    around = next(
        (up for up in tree.ancestors(loop) if isinstance(up, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))),
        tree.root,
    )
    first, last = getattr(around, "lineno", 0), loop.lineno
    base = text.partition("[")[0]
    holding = set(tree.ancestors(loop))
    started, touched = 0, 0
    for node in ast.walk(around):
        line = getattr(node, "lineno", 0)
        if not first <= line < last:
            continue
        always = not any(isinstance(up, (ast.If, ast.For, ast.While, ast.Try)) and up not in holding for up in tree.ancestors(node))
        if (
            isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node) in (text, base)
        ):
            value = _given(tree, node)
            if always and value is not None and _nothing(value):
                started = max(started, line)
            else:
                touched = max(touched, line)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in (text, base):
            if always and node.func.attr in ("reset", "clear", "zero_"):
                started = max(started, line)
            elif node.func.attr in (*_GROWS, "update", "add", "add_", "insert"):
                touched = max(touched, line)
    if started:
        return touched <= started
    inside = [
        n for n in ast.walk(loop) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store) and ast.unparse(n) == text
    ]
    return bool(inside) and not any(isinstance(tree.parent.get(n), ast.AugAssign) for n in inside) and not kept.from_before(loop.body, text)


def _given(tree: Tree, target: ast.expr) -> ast.expr | None:
    """What an assignment gives one of its targets; None where it adds to it or takes it from somewhere unknown."""
    up = tree.parent.get(target)
    if isinstance(up, (ast.Tuple, ast.List)):
        statement = tree.parent.get(up)
        value = statement.value if isinstance(statement, ast.Assign) else None
        return value.elts[up.elts.index(target)] if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(up.elts) else None
    return up.value if isinstance(up, (ast.Assign, ast.AnnAssign)) else None


def _nothing(value: ast.expr) -> bool:
    """Whether an expression is zero, or empty, or all of its parts are: then adding over the ranks adds nothing twice."""
    if isinstance(value, ast.Constant):
        return value.value is None or (isinstance(value.value, (int, float)) and abs(value.value) < 1e-6)
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        return all(_nothing(e) for e in value.elts)
    if isinstance(value, ast.Dict):
        return all(_nothing(v) for v in value.values)
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return _nothing(value.elt)
    if isinstance(value, ast.DictComp):
        return _nothing(value.value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _nothing(value.left) or _nothing(value.right)
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func).rpartition(".")[2]
        if name in ("list", "dict", "set", "tuple", "deque", "OrderedDict", "tensor", "array", "as_tensor", "asarray", "float", "int"):
            return all(_nothing(a) for a in value.args[:1])
        if name in ("Tensor", "FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "HalfTensor"):
            return all(_nothing(a) for a in value.args if not isinstance(a, ast.Constant))
        if name in ("to", "cuda", "cpu", "double", "float", "long", "int", "copy", "clone"):
            return isinstance(value.func, ast.Attribute) and _nothing(value.func.value)
        return name[:1].isupper() or name in ("zeros", "zeros_like", "defaultdict", "namedtuple")
    return False
