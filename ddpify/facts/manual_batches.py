"""Where a script makes its batches by hand: slices that follow one another, splits, and draws of a number of samples.

This is a reading of the first run over a script whose loss comes from no loader. The next run takes what is found here for batches:
each is an abstract loader of its own, of the path SLICE (all ranks hold the same rows) or DRAW (each rank draws its own).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ddpify.facts import library
from ddpify.facts.batch_source import JOINS, ORDERS, PATHS, BatchSource
from ddpify.facts.example_batches import example_batches
from ddpify.facts.library import numpy
from ddpify.facts.model import NOTHING, Call, Lit, New, Part, Trace, Tup
from ddpify.facts.tree import Tree, argument, arguments, is_number, last_name, names_in, resizes_alias, same, structure, walk

if TYPE_CHECKING:
    from ddpify.facts.runs import Run

_SPLITS = frozenset(("split", "chunk", "tensor_split", "array_split"))
_LOOPS = (ast.For, ast.AsyncFor, ast.While)

# Where the number of samples stands among a drawing function's arguments; None: the arguments are the shape.
_SIZES: dict[str, int | None] = {
    **dict.fromkeys(("torch.rand", "torch.randn", "numpy.random.rand", "numpy.random.randn"), None),
    **dict.fromkeys(("numpy.random.random_sample", "numpy.random.standard_normal"), 0),
    **dict.fromkeys(("torch.multinomial", "random.sample"), 1),
    **dict.fromkeys(("torch.randint", "torch.normal"), 2),
    **dict.fromkeys([f"numpy.random.{name}" for name in ("randint", "random_integers", "uniform", "normal")], 2),
    **{f"numpy.random.{name}": at for name, at in numpy.SIZE_AT.items()},
    "random.choices": 99,
}
_SIZES["numpy.random.integers"] = _SIZES["numpy.random.randint"]  # of a Generator
_GENERATORS = {  # of the script's own: a method draws as the function of its name does
    **dict.fromkeys([f"numpy.random.{name}" for name in ("RandomState", "default_rng", "Generator")], "numpy.random"),
    "random.Random": "random",
}
_APART = ("time", "process", "rank", "random", "drawn")  # what a seed may come from that is not the same on all ranks
_SIZE_NAMES = frozenset(("size", "k", "num_samples", "sample_shape"))


def find_batch_sources(run: Run, trees: Collection[Tree]) -> dict[ast.AST, BatchSource]:
    """All expressions of a project that may make batches; which of them do train is seen in the next run."""
    nodes = [(tree, node) for tree in trees for node in tree.nodes()]
    timed = {how for tree in trees for how in _timed(tree)}
    laid_out = [laid for tree, node in nodes if timed and (laid := _laid_out(tree, node)) is not None and laid.kind in timed]
    if laid_out:
        out: dict[ast.AST, BatchSource] = {laid.node: laid for laid in laid_out}
        calls = [node for _, node in nodes if isinstance(node, ast.Call) and node not in out]
        out |= {node: BatchSource("state", node, None) for node in calls if any(_sized(run, node, laid) for laid in laid_out)}
    else:
        out = {node: cut for tree, node in nodes if (cut := _batch_source(run, tree, node)) is not None}
        out |= {rest.node: rest for tree in trees for rest in _rests(tree, out)}
    return _without_parts(out, trees) | {each.node: each for each in example_batches(run, list(trees))}


def _batch_source(run: Run, tree: Tree, node: ast.AST) -> BatchSource | None:
    """The slice, split or draw that an expression may be."""
    match node:
        case ast.Subscript(ctx=ast.Load()):
            return _slice(run, tree, node)
        case ast.Call():
            return _split(run, tree, node) or _draw(run, node)
        case ast.ListComp():
            return _drawn_one_by_one(run, node)
    return None


def _without_parts(found: dict[ast.AST, BatchSource], trees: Collection[Tree]) -> dict[ast.AST, BatchSource]:
    """What was found, but for windows that become rows of something, and draws inside of draws: the permutation of `randperm(n)[:B]`."""
    out = dict(found)
    for node, cut in found.items():
        draws = [other.node for other in out.values() if other.kind == "draw" and other.node is not node] if cut.kind == "draw" else []
        if (cut.kind != "state" and _stacked(trees, node)) or any(node in walk(draw) for draw in draws):
            del out[node]
    return out


def _stacked(trees: Iterable[Tree], node: ast.AST) -> bool:
    """Whether a comprehension of slices is put together at once: windows of a sequence, which become the rows of something."""
    for tree in trees:
        for up in tree.ancestors(node):
            if isinstance(up, (ast.ListComp, ast.GeneratorExp)):
                call = tree.parent.get(up)
                return isinstance(call, ast.Call) and last_name(call.func) in JOINS
            if isinstance(up, ast.stmt):
                break
    return False


# ------------------------------------------------------------------------------------------------ slices


def _slice(run: Run, tree: Tree, node: ast.Subscript) -> BatchSource | None:
    rows = _rows(node)
    if not isinstance(rows, ast.Slice) or rows.upper is None or (rows.step is not None and not is_number(rows.step, 1)):
        return None
    if rows.lower is None or is_number(rows.lower, 0):
        order = _order(run, node.value)
        return BatchSource("rows", node, rows.upper) if order is not None and not measures(rows.upper) and _looped(run, order) else None
    size = _tile(run, tree, node, rows.lower, rows.upper)
    return BatchSource("rows", node, size) if size is not None else None


def _rests(tree: Tree, found: Mapping[ast.AST, BatchSource]) -> Iterator[BatchSource]:
    """The rows left for a loop's last batch, `x[i:]` or `x[i : len(x)]`, where another branch of an `if` cuts `x[i : i + size]`."""
    cuts = [(cut.node, cut.size) for cut in found.values() if cut.kind == "rows" and cut.node in tree.parent]
    for node, size in cuts:
        cut = _rows(node)
        if not (isinstance(node, ast.Subscript) and isinstance(cut, ast.Slice) and cut.lower is not None):
            continue
        for branch in (up for up in tree.path(node) if isinstance(tree.parent.get(up), ast.If)):
            for other in walk(tree.parent[branch]):
                match _rows(other):
                    case ast.Slice(lower=ast.expr() as start, upper=upper, step=None) if isinstance(other, ast.Subscript):
                        if same(start, cut.lower) and same(other.value, node.value) and (upper is None or goes_to_the_end(other, upper)):
                            yield BatchSource("rows", other, size)


def _rows(node: ast.AST) -> ast.expr | None:
    """Which rows an expression takes of something: the `i:j` of `x[i:j]` and `x[i:j, 0]`."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)):
        return None
    return node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice


def goes_to_the_end(node: ast.Subscript, upper: ast.expr) -> bool:
    """Whether a slice goes to the end of what it is taken from: `x[i : len(x)]`."""
    match upper:
        case ast.Call(func=ast.Name(id="len"), args=[of]):
            return same(of, node.value)
    return False


def _order(run: Run, node: ast.expr) -> ast.Call | None:
    """The call that draws an order, as it is or handed on by what takes nothing else: `list(...)`, what makes it the same on all ranks."""
    while isinstance(node, ast.Call):
        if (run.value(node.func).paths() | _methods(node, _own_generators(run, node))) & ORDERS:
            return node
        if len(node.args) != 1 or node.keywords:
            break
        node = node.args[0]
    return None


def _tile(run: Run, tree: Tree, node: ast.expr, lower: ast.expr, upper: ast.expr) -> ast.expr | None:
    """The length of slices that follow one another without a gap or an overlap; None where they do not."""
    ends = list(_ends(tree, node, upper))
    sizes = (_tile_from(run, tree, node, lower, start, (end, upper)) for start in _options(tree, node, lower) for end in ends)
    return next((size for size in sizes if size is not None), None)


def _tile_from(run: Run, tree: Tree, node: ast.expr, lower: ast.expr, start: ast.expr, ends: tuple[ast.expr, ast.expr]) -> ast.expr | None:
    end = ends[0]
    size = _added(end, (lower, start))
    if size is None and isinstance(start, ast.BinOp) and isinstance(start.op, ast.Mult):
        size = _next_multiple(start, end)
    if size is None:
        return _moved_on(tree, node, start) if isinstance(start, ast.Attribute) and same(start, end) else None
    if _multiple(start, size) or _steps(run, tree, node, start, size) or _moves(tree, node, (lower, start), ends, size):
        return size
    if isinstance(start, ast.BinOp) and isinstance(start.op, ast.Mod) and _multiple(_without_int(start.left), size):
        return size
    return None


def _ends(tree: Tree, node: ast.expr, upper: ast.expr) -> Iterator[ast.expr]:
    """What the end of a slice may be: the operands of `min(i + size, n)`, each as its name was given it."""
    for end in (upper, *_options(tree, node, upper)):
        end = _without_int(end)
        if isinstance(end, ast.Call) and isinstance(end.func, ast.Name) and end.func.id == "min":
            yield from map(_without_int, end.args)
        yield end


def _without_int(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and len(node.args) == 1:
        node = node.args[0]
    return node


def resolved(tree: Tree, node: ast.AST, value: ast.expr) -> ast.expr:
    """What a name was given, where the assignments of its function all give it the same."""
    options = _options(tree, node, value)
    return options[0] if all(same(o, options[0]) for o in options) else _without_int(value)


def _options(tree: Tree, node: ast.AST, value: ast.expr, depth: int = 3) -> list[ast.expr]:
    """What a name was given, where assignments of its function are all that give it something; else the name."""
    value = _without_int(value)
    given = _given(tree, node, value.id) if isinstance(value, ast.Name) and depth else []
    if not given or None in given:
        return [value]
    return [option for each in given if each is not None for option in _options(tree, node, each, depth - 1)]


def _given(tree: Tree, node: ast.AST, name: str) -> list[ast.expr | None]:
    """What the function around a node assigns to a name; None for what is no assignment of one expression."""
    given: list[ast.expr | None] = []
    for other in walk(tree.function(node)):
        if isinstance(other, ast.Name) and other.id == name and isinstance(other.ctx, ast.Store):
            up = tree.parent.get(other)
            if isinstance(up, ast.Assign):
                given.append(up.value)
            elif isinstance(up, ast.Tuple) and isinstance(line := tree.parent.get(up), ast.Assign) and isinstance(line.value, ast.Tuple):
                given.append(line.value.elts[up.elts.index(other)] if len(line.value.elts) == len(up.elts) else None)
            else:
                given.append(None)
        elif isinstance(other, ast.arg) and other.arg == name:
            given.append(None)
    return given


def _added(end: ast.expr, starts: tuple[ast.expr, ...]) -> ast.expr | None:
    """The size in `start + size`."""
    if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add):
        if any(same(end.left, s) for s in starts):
            return end.right
        if any(same(end.right, s) for s in starts):
            return end.left
    return None


def _next_multiple(start: ast.BinOp, end: ast.expr) -> ast.expr | None:
    """The size in `b * size` to `(b + 1) * size`."""
    if not (isinstance(end, ast.BinOp) and isinstance(end.op, ast.Mult)):
        return None
    for number, size in ((start.left, start.right), (start.right, start.left)):
        for other, again in ((end.left, end.right), (end.right, end.left)):
            if same(again, size) and (one := _added(other, (number,))) is not None and is_number(one, 1):
                return size
    return None


def _multiple(start: ast.expr, size: ast.expr) -> bool:
    return isinstance(start, ast.BinOp) and isinstance(start.op, ast.Mult) and (same(start.left, size) or same(start.right, size))


def _steps(run: Run, tree: Tree, node: ast.expr, start: ast.expr, size: ast.expr) -> bool:
    """Whether the start is the number of loops over `range(first, last, size)`, here or where this function is called."""
    loops = run.value(start).of_kind("index")
    if not loops or not isinstance(start, (ast.Name, ast.Attribute)):
        return False
    around = [up for up in tree.ancestors(node) if isinstance(up, ast.For) and up in loops and same(up.target, start)]
    return all(any(_one_number(run, step, size) for step in _step_of(run, loop)) for loop in around or loops)


def _step_of(run: Run, loop: object) -> Iterator[ast.expr]:
    over = [loop.iter] if isinstance(loop, (ast.For, ast.AsyncFor)) else [g.iter for g in getattr(loop, "generators", ())]
    for part in (n for each in over for n in walk(each) if isinstance(n, ast.Call)):
        paths = run.value(part.func).paths()
        if paths & {"range", "xrange", "tqdm.trange", "numpy.arange", "torch.arange"} and len(part.args) == 3:
            yield part.args[2]


def _one_number(run: Run, a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are one number: written alike, or of one value."""
    if same(a, b):
        return True
    mine, other = ({o.value if isinstance(o, Lit) else o for o in run.value(n).objs if isinstance(o, (Lit, Part))} for n in (a, b))
    return len(mine) == 1 and mine == other


def _moves(tree: Tree, node: ast.expr, starts: tuple[ast.expr, ...], ends: tuple[ast.expr, ...], size: ast.expr) -> bool:
    """Whether a loop around, or the function itself, moves the start on by the size, or to the end."""
    loop = next((up for up in tree.ancestors(node) if isinstance(up, _LOOPS)), None)
    for other in walk(loop or tree.function(node)):
        if isinstance(other, ast.AugAssign) and any(same(other.target, s) for s in starts):
            return isinstance(other.op, ast.Add) and same(other.value, size)
        if isinstance(other, ast.Assign) and any(same(other.targets[0], s) for s in starts):
            added = _added(other.value, starts)
            if any(same(other.value, end) for end in ends) or (added is not None and same(added, size)):
                return True
            if loop is not None:
                return False
    return False


def _moved_on(tree: Tree, node: ast.expr, place: ast.expr) -> ast.expr | None:
    """By how much a function moves a place on between the start and the end that it takes from it: `self.at += size`."""
    added = (
        n.value for n in walk(tree.function(node)) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and same(n.target, place)
    )
    return next(added, None)


# ------------------------------------------------------------------------------------------------ splits


def _split(run: Run, tree: Tree, node: ast.Call) -> BatchSource | None:
    """`x.split(B)`, `torch.chunk(x, k)`, `np.array_split(x, k)`: along the first dimension, into parts that nobody unpacks."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr not in _SPLITS or not node.args:
        return None
    paths = run.value(func).paths()
    of_library = any(p.startswith(("torch.", "numpy.")) for p in paths)
    sizes = node.args[1:] if of_library else node.args
    first = all(k.arg in ("dim", "axis") and is_number(k.value, 0) for k in node.keywords)
    if (paths and not of_library) or len(sizes) != 1 or not first or not _may_be_number(run, sizes[0]):
        return None
    up = tree.parent.get(node)
    if isinstance(up, ast.Subscript) or (isinstance(up, ast.Assign) and isinstance(up.targets[0], (ast.Tuple, ast.List))):
        return None
    return BatchSource("parts", node, sizes[0] if func.attr == "split" else None)


def _may_be_number(run: Run, size: ast.expr) -> bool:
    """Whether a size may be one number, and is no list of sizes."""
    if isinstance(size, (ast.List, ast.Tuple)):
        return False
    return not any(isinstance(o, (Tup, New)) or (isinstance(o, Lit) and not isinstance(o.value, int)) for o in run.value(size).objs)


# ------------------------------------------------------------------------------------------------ sequences side by side


def _timed(tree: Tree) -> Iterator[str]:
    """How a sequence is read through time: a window of it, and the same one step later, both of its rows or both of its columns.

    Of columns, the later window may also begin where the first one ends, or be what the first one has after its first step.
    """
    seen: dict[tuple[ast.AST, Hashable, str], list[ast.Slice]] = {}
    windows: set[tuple[ast.AST, Hashable, str]] = set()  # names of windows
    for node in tree.of(ast.Subscript):
        if not isinstance(node.ctx, ast.Load):
            continue
        match node.slice:
            case ast.Tuple(elts=[ast.Slice(lower=None, upper=None), ast.Slice(lower=ast.expr()) as window]):
                kind = "lines"
            case ast.Slice(lower=ast.expr()) as window:
                kind = "columns"
            case _:
                continue
        seen.setdefault((tree.function(node), structure(node.value), kind), []).append(window)
        up = tree.parent.get(node)
        if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
            windows.add((tree.function(node), structure(up.targets[0]), kind))
    for (function, base, kind), found in seen.items():
        within = (function, base, kind) in windows and any(is_number(window.lower, 1) and window.upper is None for window in found)
        if within or any(_is_later(later, first, kind) for later in found for first in found):
            yield kind


def _is_later(later: ast.Slice, first: ast.Slice, kind: str) -> bool:
    """Whether a window begins one step after another, or, of columns, where that ends."""
    if later.lower is None or first.lower is None:
        return False
    step = _added(later.lower, (first.lower,))
    return (step is not None and is_number(step, 1)) or (kind == "lines" and first.upper is not None and same(later.lower, first.upper))


def _laid_out(tree: Tree, node: ast.AST) -> BatchSource | None:
    """`data.view(size, -1).t()`, whose columns are the batch; or `data.view(size, -1)`, whose rows are."""
    inner: ast.AST
    match node:
        case ast.Attribute(attr="T", value=inner) | ast.Call(func=ast.Attribute(attr="t" | "transpose", value=inner)):
            transposed = True
        case _:
            inner, transposed = node, False
    if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in ("view", "reshape")):
        return None
    shape = inner.args[0].elts if len(inner.args) == 1 and isinstance(inner.args[0], (ast.Tuple, ast.List)) else inner.args
    if len(shape) != 2 or is_number(shape[0], -1) or measures(shape[0]) or not isinstance(node, ast.expr):
        return None
    up = tree.parent.get(node)
    again = isinstance(up, ast.Attribute) and up.attr in ("t", "T", "transpose")
    return None if again and not transposed else BatchSource("columns" if transposed else "lines", node, shape[0])


def _sized(run: Run, node: ast.Call, cut: BatchSource) -> bool:
    """Whether a call is handed the number of samples of a batch, and is not the one that lays the batch out."""
    assert cut.size is not None
    sizes = {o for o in run.value(cut.size).objs if isinstance(o, (Lit, Part))}
    if (
        not sizes
        or run.value(node).of_kind("world")
        or "range" in run.value(node.func).paths()
        or any(node in c.stack for c in run.calls(cut.node))
    ):
        return False
    return any(run.value(p).objs & sizes for p in size_arguments(node))


def size_arguments(node: ast.Call) -> list[ast.expr]:
    """The arguments of a call, those in a tuple or list one by one."""
    return parts_of(arguments(node))


def parts_of(nodes: Iterable[ast.expr]) -> list[ast.expr]:
    """Expressions, those in a tuple or list one by one."""
    return [p for a in nodes for p in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]


# ------------------------------------------------------------------------------------------------ draws


def _draw(run: Run, node: ast.Call) -> BatchSource | None:
    """A draw of B samples at each step: `torch.randn(B, 100)`, `torch.empty(B, 100).uniform_()`."""
    own = _own_generators(run, node)
    paths = (run.value(node.func).paths() | _methods(node, own)) & _SIZES.keys()
    size = _size(node, _SIZES[min(paths)]) if paths else _filled_size(run, node) or _sampled_size(run, node)
    if size is None or measures(size) or is_number(size, 1) or not _looped(run, node):
        return None
    if all(map(_of_one_sample, run.calls(node))):
        return None
    value, alike = run.value(size), bool(own) or any(k.arg == "generator" for k in node.keywords)
    return BatchSource("draw", node, size, alike=alike) if not value.batches() and value.scale is None else None


def _own_generators(run: Run, node: ast.Call) -> list[Call]:
    """The calls that make the generators whose method a call is, where the script has seeded each of them, and all ranks alike."""
    made = run.value(node.func.value).of_kind("drawn") if isinstance(node.func, ast.Attribute) else ()
    found = [call for each in made for call in run.calls(each)]
    return found if all(c.func.paths() & _GENERATORS.keys() and _seeded_alike(c) for c in found) else []


def _seeded_alike(call: Call) -> bool:
    seed = next((v for v in (*call.args, *call.keywords.values())), NOTHING)
    return bool(seed.objs) and not seed.is_none() and not any(map(seed.of_kind, _APART))


def _methods(node: ast.Call, generators: Iterable[Call]) -> frozenset[str]:
    """The functions of a library that draw as a method of some generators does."""
    packages = {_GENERATORS[path] for call in generators for path in call.func.paths() & _GENERATORS.keys()}
    return frozenset(f"{package}.{last_name(node.func)}" for package in packages)


def _filled_size(run: Run, node: ast.Call) -> ast.expr | None:
    """The first size of a tensor that is filled: `noise.resize_(B, 100).normal_(0, 1)`, or of one that was made before."""
    match node.func:
        case ast.Attribute(attr=name, value=ast.Call(func=func) as made) if name in library.FILLS and not resizes_alias(func):
            sized = (isinstance(func, ast.Attribute) and func.attr == "resize_") or any(map(library.allocates, run.value(func).paths()))
            return _size(made, None) if sized else None
        case ast.Attribute(attr=name, value=buffer) if name in library.FILLS:
            makers = [n for n in run.value(buffer).of_kind("sized") if isinstance(n, ast.Call)]
            known = len(makers) == 1 and any(map(library.allocates, run.value(makers[0].func).paths()))
            return _size(makers[0], None) if known else None
    return None


def _sampled_size(run: Run, node: ast.Call) -> ast.expr | None:
    """How many samples are drawn of a distribution that is the same for all: `prior.sample((B, 100))`."""
    match node.func:
        case ast.Attribute(attr="sample" | "rsample", value=prior):
            of = run.value(prior)
            known = any(o.path.startswith("torch.distributions.") for o in of.instances())
            return _size(node, 0) if known and of.scale is None and not of.batches() and (node.args or node.keywords) else None
    return None


def _size(node: ast.Call, at: int | None) -> ast.expr | None:
    given = argument(node, None, *_SIZE_NAMES)
    if given is None and at is not None and last_name(node.func) == "randint" and len(node.args) == 2:
        given = node.args[1] if isinstance(node.args[1], ast.Tuple) else None  # torch.randint(high, size)
    if given is None and node.args:
        given = argument(node, at or 0)
    if isinstance(given, ast.Call) and last_name(given.func) == "Size" and given.args:  # torch.Size((B, 100))
        given = given.args[0]
    if isinstance(given, (ast.Tuple, ast.List)):
        given = given.elts[0] if given.elts else None
    return None if isinstance(given, ast.Starred) else given


def measures(size: ast.expr) -> bool:
    """Whether a number is the length of something: of the data, or of a batch."""
    return any(
        (isinstance(n, ast.Attribute) and n.attr == "shape") or (isinstance(n, ast.Call) and last_name(n.func) in ("len", "size", "numel"))
        for n in walk(size)
    )


def _drawn_one_by_one(run: Run, node: ast.ListComp) -> BatchSource | None:
    """`[random.randint(0, n - 1) for _ in range(B)]`."""
    match node.generators:
        case [ast.comprehension(iter=ast.Call(args=[count]) as over, ifs=[])] if _looped(run, over):
            ranges = "range" in run.value(over.func).paths() and not measures(count) and run.value(count).scale is None
            called = [p for n in walk(node.elt) if isinstance(n, ast.Call) for p in run.value(n.func).paths()]
            return BatchSource("draw", node, count) if ranges and any(p.startswith(("random.", "numpy.random.")) for p in called) else None
    return None


def is_other_draw(run: Run, node: ast.AST, found: Mapping[ast.AST, BatchSource]) -> bool:
    """Whether a node draws several numbers at a step, and is none of the draws known."""
    if not isinstance(node, ast.Call) or node in found or not run.value(node.func).paths() & set(_SIZES) or not _looped(run, node):
        return False
    given = arguments(node)
    if not given or any(run.value(g).batches() or run.value(g).scale for g in given):
        return False
    return not (
        all(measures(g) and not run.value(g).of_kind("unknown") for g in given) and all(_in_module(run, c) for c in run.calls(node))
    )


def _in_module(run: Run, call: Call) -> bool:
    """Whether a network makes a call: as many numbers as something has that is none of a batch are for its own parts, a graph's edges."""
    owners = (getattr(o, "owner", None) or o for above in call.stack for c in run.calls(above) for o in run.unwrap(c.func))
    return any(isinstance(o, New) and run.interpreter.is_module(o) for o in owners)


def _looped(run: Run, node: ast.AST) -> bool:
    """Whether a call is made at each step: in the innermost loop around a backward call, or in the loop of a generator."""
    steps = {loops[-1] for c in run.trace.calls if c.method == "backward" and (loops := _around(c))}
    for call in run.calls(node):
        loops = _around(call)
        if steps & set(loops) or any(map(_yields, loops)):
            return True
    return False


def _of_one_sample(call: Call) -> bool:
    """Whether the innermost loop around a call puts samples together one by one."""
    loops = _around(call)
    return bool(loops) and puts_together(loops[-1])


def puts_together(loop: ast.AST) -> bool:
    """Whether a loop makes rows one by one, and takes no step: `for i in range(B): points.append(...)`, or `points[i] = ...`."""
    if not isinstance(loop, ast.For):
        return False
    nodes = list(walk(loop))
    if any(isinstance(n, ast.Yield) or (isinstance(n, ast.Attribute) and n.attr == "backward") for n in nodes):
        return False
    index = names_in(loop.target)
    places = [n.slice for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    filled = any(isinstance(place, ast.Name) and place.id in index for place in places)
    return filled or any(isinstance(n, ast.Call) and last_name(n.func) == "append" for n in nodes)


def _yields(loop: ast.AST) -> bool:
    return any(isinstance(n, ast.Yield) for n in walk(loop))


def _around(call: Call) -> list[ast.AST]:
    return [loop.node for loop in call.loops if isinstance(loop.node, _LOOPS)]


# ------------------------------------------------------------------------------------------------ what a run saw of them


def instances_of(trace: Trace) -> frozenset[New]:
    """The cuts and draws, one for each way of calls they were made on."""
    out: set[New] = set()
    for value in trace.values.values():
        out |= {o for o in value.of_kind("batch") if isinstance(o, New) and o.path in PATHS}
    return frozenset(out)
