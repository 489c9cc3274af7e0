"""How a collate function of the script's own lays a batch out: along which dimension of each part that it gives the samples lie.

The function is read once, statement by statement. A part is known where it is made of a list with one entry for each sample: padded,
stacked, concatenated, or put into a tensor. A part is thinned where samples were left out of it, or have several rows in it; it is
mixed where rows are combined with a number of all of the samples, or with rows in another order.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ddpify.facts import dataset_items
from ddpify.facts.dataset_items import KEEP, Item, Same, is_one_row
from ddpify.facts.library.paths import STACKING
from ddpify.facts.tree import argument, is_number, last_name, scope_nodes, walk
from ddpify.placement.rows import ALIGNED


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """What depends on all of the samples, by the expression where they meet: `rows` of theirs, or numbers that may just say how long."""

    node: ast.expr
    rows: bool = True


Layout = Literal["list", "columns", "empty", "count", "rows", "thinned", "plain", "turned"] | int | Mixed | Same | None
"""A list with one entry for each sample, several of such lists, an empty one, their number; rows of which samples have several; samples
left out; what is of no sample; rows in another order, or one of them; a dimension; samples that meet; what is the same for all samples."""


class Padded(int):
    """The dimension of the samples, of sequences that were filled up: there is another one, that of the steps."""


class Names(Protocol):
    """What the names of a file stand for."""

    def path(self, node: ast.expr) -> str:
        """The dotted path of something of a library, or of Python; empty of anything else."""

    def function(self, node: ast.expr) -> tuple[ast.FunctionDef, Names] | None:
        """A function of the project, and the names of its file."""


_TENSORS = dataset_items.TENSORS | {"from_numpy"}
_JOINS = frozenset("cat concat concatenate hstack vstack chain".split())
_REDUCE = frozenset("mean sum std var max min amax amin median norm prod quantile logsumexp argmax argmin bincount".split())
_OVER_ALL = _REDUCE | frozenset("cumsum cumprod softmax log_softmax argsort".split())
_FILLS = frozenset(("pad", "concatenate", "cat", "hstack"))
_TURNS = frozenset("flip flipud roll".split())
_ASKED = frozenset("shape dtype device ndim".split())


def layouts(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, known: Names, of_dict: bool = False, items: Sequence[Item] = ()
) -> list[Layout]:
    """The layouts of the parts of the tuple that a function gives, or of the one thing; those of the entries of a dict, where asked.

    `items`: the entries of each sample.
    """
    names = _parameters(function)[:1]
    reader = _Reader(known, dict.fromkeys(names, "list"), of_dict)
    reader.samples, reader.items = frozenset(names), items
    return _read(function, reader)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    return [a.arg for a in (*function.args.posonlyargs, *function.args.args) if a.arg not in ("self", "cls")]


def _read(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, reader: _Reader) -> list[Layout]:
    if isinstance(function, ast.Lambda):
        return reader.parts(function.body)
    returns = [n for n in scope_nodes(*function.body) if isinstance(n, ast.Return)]
    before = _before(function.body, returns[0]) if len(returns) == 1 else None
    if before is None or returns[0].value is None:
        return [
            "thinned" if any(map(reader.is_thinned, function.body)) else reader.meets(function.body, [r.value for r in returns if r.value])
        ]
    reader.block(before)
    return reader.parts(returns[0].value)


def _before(body: Sequence[ast.stmt], last: ast.stmt) -> list[ast.stmt] | None:
    """The statements that run before one, which may stand under conditions; None where it stands in a loop or the like."""
    at = next(i for i, statement in enumerate(body) if last in walk(statement))
    around = body[at]
    if around is last:
        return [*body[:at]]
    blocks = [around.body, around.orelse] if isinstance(around, ast.If) else [around.body] if isinstance(around, ast.With) else []
    rest = next((_before(block, last) for block in blocks if any(last in walk(s) for s in block)), None)
    return None if rest is None else [*body[:at], *rest]


_CREATE = frozenset("zeros ones full empty new_zeros new_ones new_full new_empty".split())
_LONGEST = frozenset("max amax sort sorted".split())


def fills_up(function: ast.AST) -> bool:
    """Whether a function makes rows as long as the longest that it is given: tensors of that length, or lists filled up to it."""
    nodes = list(walk(function))
    longest: set[str] = set()

    def depends(node: ast.AST) -> bool:
        parts = list(walk(node))
        called = any(isinstance(n, ast.Call) and last_name(n.func) in _LONGEST for n in parts)
        return called or any(isinstance(n, ast.Name) and n.id in longest for n in parts)

    size = -1
    while size < len(longest):
        size = len(longest)
        for node in nodes:
            if isinstance(node, ast.Assign) and depends(node.value):
                longest |= {n.id for target in node.targets for n in walk(target) if isinstance(n, ast.Name)}
    created = (n.args for n in nodes if isinstance(n, ast.Call) and last_name(n.func) in _CREATE and n.args)
    sizes = (list(given[0].elts) if isinstance(given[0], (ast.Tuple, ast.List)) else given for given in created)
    filled = (n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult))
    lists = (other for n in filled for one, other in ((n.left, n.right), (n.right, n.left)) if isinstance(one, ast.List))
    return any(depends(extent) for given in sizes for extent in given[1:]) or any(map(depends, lists))


class _Reader:
    """What the names of a function hold, from statement to statement."""

    def __init__(self, known: Names, names: dict[str, Layout], of_dict: bool = False, depth: int = 3) -> None:
        self.known_names, self.path_of, self.function_of = known, known.path, known.function
        self.of_dict, self.depth = of_dict, depth
        self.names = names
        self.single = set[str]()  # the names of lists each entry of which has one row
        self.samples = frozenset[str]()  # the names of the list of samples, each of which has these entries
        self.items: Sequence[Item] = ()

    def parts(self, given: ast.expr) -> list[Layout]:
        if self.of_dict and isinstance(given, ast.Dict):
            return [self.layout(part) for part in given.values if not isinstance(part, ast.Constant)]
        if self.are_columns(given):
            return ["columns"]
        return [self.layout(part) for part in (given.elts if isinstance(given, ast.Tuple) else [given])]

    def are_columns(self, node: ast.expr) -> bool:
        """Whether an expression is `zip(*samples)`, maybe in a tuple or a list."""
        match node:
            case ast.Call(func, [ast.Starred(samples)], []):
                return self.path_of(func) == "zip" and self.is_list(samples)
            case ast.Call(func, [given], []):
                return self.path_of(func) in ("tuple", "list") and self.are_columns(given)
        return False

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self.bind(statement.targets[0], statement.value)
            elif isinstance(statement, ast.AugAssign):
                mixed = self.entrywise([statement.target, statement.value], statement.value)
                self.lose(statement)
                self.mix(statement.target, mixed)
            elif isinstance(statement, ast.Expr) and (changed := _changed_in_place(statement.value)):
                mixed = self.entrywise(changed, statement.value)
                self.lose(statement)
                self.mix(changed[0], mixed)
            elif isinstance(statement, ast.If):
                self.either(statement)
            elif isinstance(statement, ast.For) and self.is_list(statement.iter):
                self.filled(statement.body)
            else:
                self.lose(statement)

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        """Carry out an assignment."""
        self.samples -= {n.id for n in walk(target) if isinstance(n, ast.Name)}
        if isinstance(target, ast.Name):
            self.names[target.id] = self.layout(value)
            self.single = self.single - {target.id} | ({target.id} if self.are_single(value) else set())
        elif isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts):
            given = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
            stacked = isinstance(value, ast.Call) and self.stacks(value)
            found = [self.layout(v) for v in given] if given else [0 if stacked else self.layout(value)] * len(target.elts)
            for name, layout in zip(target.elts, found, strict=True):
                self.names[getattr(name, "id", "")] = layout if given or stacked or layout == "list" else None
            if not given and self.are_columns(value) and self.samples & {n.id for n in walk(value) if isinstance(n, ast.Name)}:
                self.single |= {t.id for t, item in zip(target.elts, self.items, strict=False) if item == "row"}  # type: ignore[attr-defined]
        else:
            mixed = self.entrywise([target.value, value], value) if isinstance(target, ast.Subscript) else None
            self.lose(target)
            self.mix(target, mixed)

    def stacks(self, node: ast.Call) -> bool:
        """Whether a call stacks each part of the samples: `default_collate(batch)`, `map(torch.stack, zip(*batch))`."""
        path, given = self.path_of(node.func), node.args
        if path == "map":
            return len(given) > 1 and self.path_of(given[0]).endswith(".stack") and self.is_list(node)
        return path in STACKING and any(map(self.is_list, given))

    def meets(self, body: Sequence[ast.stmt], returned: Sequence[ast.expr]) -> Layout:
        """Where samples meet in what is returned at one of several places, as far as the names tell at the end."""
        self.block(body)
        found = (layout for value in returned for layout in self.parts(value))
        return next((layout for layout in found if isinstance(layout, Mixed) and layout.rows), None)

    def mix(self, target: ast.expr, layout: Layout) -> None:
        """Let a name hold samples that meet, where a statement changes some of its rows by such."""
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and isinstance(layout, Mixed):
            self.names[target.id] = layout

    def either(self, node: ast.If) -> None:
        """Carry out a condition: of what its branches do, samples that meet are known after it."""
        before, found = dict(self.names), dict[str, Layout]()
        for branch in (node.body, node.orelse):
            self.block(branch)
            found |= {name: layout for name, layout in self.names.items() if isinstance(layout, Mixed)}
            self.names = dict(before)
        self.lose(node)
        self.names |= found

    def lose(self, node: ast.AST) -> None:
        """Know no more of what a statement may bind or change; samples may be left out under a condition."""
        thinned = isinstance(node, (ast.If, ast.For, ast.While, ast.Try))
        for part in walk(node):
            name = part.func.value if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) else part
            if isinstance(part, ast.Call) and name is not part.func and getattr(part.func, "attr", "") == "sort":
                continue
            stored = isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            if isinstance(name, ast.Name) and (stored or (name is not part and self.names.get(name.id) in ("list", "empty"))):
                self.names[name.id] = "thinned" if thinned and name is not part else None

    def filled(self, body: Sequence[ast.stmt]) -> None:
        """Carry out a loop over the samples: what is appended to in each round has one entry for each, if no round ends early."""
        early = any(isinstance(n, (ast.Continue, ast.Break)) for n in scope_nodes(*body))
        for statement in body:
            call = statement.value if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
            to = call.func.value if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "append" else None
            if isinstance(to, ast.Name) and self.names.get(to.id) == "empty":
                self.names[to.id] = "thinned" if early else "list"
                self.single |= {to.id} if call is not None and call.args and is_one_row(call.args[0], self.known_names, {}) else set()
            elif isinstance(statement, ast.Assign) and all(isinstance(t, ast.Subscript) for t in statement.targets):
                continue  # rows that are there are filled
            else:
                self.lose(statement)

    def is_list(self, node: ast.expr) -> bool:
        """Whether something has one entry for each sample, in their order."""
        if isinstance(node, ast.Call) and self.path_of(node.func) in ("zip", "enumerate", "list", "tuple", "sorted", "map"):
            given = node.args[1:] if self.path_of(node.func) == "map" else node.args
            return bool(given) and all(self.is_list(a.value if isinstance(a, ast.Starred) else a) for a in given)
        if isinstance(node, ast.Call) and self.path_of(node.func) == "range":
            return len(node.args) == 1 and self.counts(node.args[0])
        return self.layout(node) == "list"

    def is_thinned(self, node: ast.AST) -> bool:
        """Whether samples may be left out of what is computed, or have several rows in it."""
        for part in walk(node):
            if isinstance(part, ast.comprehension) and part.ifs and not self.is_of_one_sample(part.iter):
                return True
            if isinstance(part, ast.Call) and last_name(part.func) in {*_JOINS, "filter", "compress", "extend"} and not _is_beside(part):
                return True
            if isinstance(part, ast.Name) and self.names.get(part.id) == "thinned":
                return True
        return False

    def is_of_one_sample(self, node: ast.expr) -> bool:
        """Whether something is a sample, `batch[0]`, or the names of its entries: to leave some of these out leaves no sample out."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items", "values"):
            node = node.func.value
        one = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)
        return one and self.is_list(node.value)  # type: ignore[attr-defined]

    def layout(self, node: ast.expr) -> Layout:
        """How what an expression gives is laid out."""
        found = self.known(node)
        return "thinned" if found is None and self.is_thinned(node) else found

    def known(self, node: ast.expr) -> Layout:
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "plain")
        if isinstance(node, ast.Attribute):
            held = self.layout(node.value)
            return held if held == "plain" or (isinstance(held, Mixed) and node.attr not in _ASKED) else None
        if isinstance(node, (ast.Constant, ast.UnaryOp, ast.BinOp)):
            return self.entrywise([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)], node)
        if isinstance(node, ast.IfExp):
            held = self.entrywise([node.body, node.orelse], node)
            return None if isinstance(held, Mixed) and held.node is node else held  # either of two orders, of all
        if isinstance(node, ast.Compare):
            held = self.entrywise([node.left, *node.comparators], node)
            return held if isinstance(held, Mixed) else None
        if isinstance(node, ast.Dict) or (isinstance(node, (ast.List, ast.Tuple)) and node.elts):
            found = [self.layout(n) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            return next((layout for layout in found if isinstance(layout, Mixed) and layout.rows), None)
        if isinstance(node, ast.Subscript):
            return self.cut(node)
        if isinstance(node, (ast.List, ast.Tuple)) and not node.elts:
            return "empty"
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            whole = len(node.generators) == 1 and not node.generators[0].ifs and self.is_list(node.generators[0].iter)
            return "list" if whole else None
        if isinstance(node, ast.Call):
            return self.called(node)
        return None

    def entrywise(self, operands: Sequence[ast.expr], node: ast.expr) -> Layout:
        """What is computed from each entry of operands that are laid out alike, and of what is of no sample."""
        found = {self.layout(n) for n in operands} - {"plain"}
        if not found:
            return "plain"
        if mixed := [layout for layout in found if isinstance(layout, Mixed)]:
            rows = any(isinstance(layout, int) for layout in found)
            return next((layout for layout in mixed if layout.rows), Mixed(mixed[0].node, rows))
        if "turned" in found:
            return "turned" if len(found) == 1 else Mixed(node) if any(isinstance(layout, int) for layout in found) else None
        only = found.pop() if len(found) == 1 else None
        return only if isinstance(only, int) else None

    def cut(self, node: ast.Subscript) -> Layout:
        """`rows[:, a:b]`: all samples, of each a part; `samples[0][1]`: an entry of one, which may be the same for all."""
        of_one = isinstance(node.value, ast.Subscript) and isinstance(node.value.value, ast.Name) and node.value.value.id in self.samples
        if of_one and isinstance(same := self.item(node.slice), Same) and not isinstance(node.value.slice, ast.Slice):  # type: ignore[attr-defined]
            return same
        held, first = self.layout(node.value), node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        every = isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None
        if isinstance(held, Mixed):
            return Mixed(held.node, held.rows or isinstance(self.layout(first), int))
        if held == "turned":
            return held if every else None
        if held != 0:
            return None
        if isinstance(first, ast.Slice):
            return 0 if every and first is not node.slice else None
        return "turned" if self.layout(first) == "plain" or isinstance(self.layout(first), Mixed) else None

    def called(self, node: ast.Call) -> Layout:
        path, given = self.path_of(node.func), node.args[0] if node.args else None
        name = path.rpartition(".")[2]
        if path in ("list", "tuple", "zip", "map", "sorted") and self.is_list(node):
            return "list"
        if path == "len" and given is not None:
            return "count" if self.is_list(given) else None
        if given is not None and name and name in {*_JOINS, *_TENSORS, "stack", "pad_sequence"}:
            held = self.layout(given)
            kept = isinstance(held, int) and name in _TENSORS
            if held == "list":
                return _put_together(node, name, self.are_sequences(given), self.are_single(given))
            return held if kept or isinstance(held, Mixed) else None
        if path.startswith(("torch.", "numpy.")) and name in ALIGNED:
            return self.entrywise(node.args, node)
        rows = self.layout(given) if path.startswith(("torch.", "numpy.")) and given is not None else None
        if (met := self.met(node, rows, name, 1)) is not None:
            return met
        if name == "arange":
            return "plain"
        if name in ("zeros", "ones", "full", "empty"):
            sizes = list(given.elts) if isinstance(given, (ast.Tuple, ast.List)) else node.args
            return 0 if sizes and self.counts(sizes[0]) else None
        if self.depth and not node.keywords and (own := self.function_of(node.func)) is not None:
            return self.of_function(*own, [self.layout(a) for a in node.args])
        return self.method(node.func, node) if isinstance(node.func, ast.Attribute) else None

    def of_function(self, function: ast.FunctionDef, known: Names, given: Sequence[Layout]) -> Layout:
        """What a function of the project gives for operands of these layouts."""
        names = _parameters(function)
        inner = _Reader(known, {**dict.fromkeys(names, "plain"), **dict(zip(names, given, strict=False))}, depth=self.depth - 1)
        (only, *more) = _read(function, inner)
        return only if not more and len(given) <= len(names) else None

    def method(self, func: ast.Attribute, node: ast.Call) -> Layout:
        held = self.layout(func.value)
        if func.attr in KEEP or isinstance(held, Mixed):
            return held
        if held != "list" and (met := self.met(node, held, func.attr, 0)) is not None:
            return met
        if held == 0 and func.attr in ALIGNED and not node.keywords:
            return self.entrywise([func.value, *node.args], node)
        swapped = [a.value for a in node.args if isinstance(a, ast.Constant)]
        if held in (0, 1) and (func.attr == "t" or (func.attr in ("transpose", "permute") and sorted(map(str, swapped[:2])) == ["0", "1"])):
            moved = func.attr != "permute" or swapped[:2] == [1, 0]
            return 1 - held if moved and isinstance(held, int) else held
        return None

    def met(self, node: ast.Call, held: Layout, name: str, position: int) -> Layout:
        """What rows, or a list of samples, become where a call goes along them; None for other calls.

        `position`: that of the dimension, or of the first number of places by which they are moved.
        """
        if name in _TURNS and held in (0, "turned"):
            return "turned" if name == "flipud" or any(isinstance(n, ast.Constant) and n.value == 0 for n in walk(node)) else None
        if name not in _OVER_ALL or held not in (0, "list"):
            return None
        along = _argument(node, position, "dim", None)
        if along in (None, 0):
            return Mixed(node, name not in _REDUCE)
        return 0 if held == 0 and isinstance(along, int) and along > 0 else None

    def are_sequences(self, node: ast.expr) -> bool:
        """Whether an expression is what was filled up, or joined, and so has a dimension of its own; or a list of such."""
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.are_sequences(node.elt)
        if not isinstance(node, ast.Call):
            return False
        own = self.function_of(node.func)
        ends = own[0].body[-1] if own is not None else None
        if own is not None and isinstance(ends, ast.Return) and ends.value is not None and self.depth:
            return _Reader(own[1], {}, depth=self.depth - 1).are_sequences(ends.value)
        return self.path_of(node.func).rpartition(".")[2] in _FILLS

    def are_single(self, node: ast.expr) -> bool:
        """Whether each entry of a list has one row: `[part.unsqueeze(0) for part in parts]`, or a name of such a list."""
        if isinstance(node, ast.Name):
            return node.id in self.single
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return False
        names = [n.id for n in walk(node.generators[0].target) if isinstance(n, ast.Name)]
        of_samples = isinstance(node.generators[0].iter, ast.Name) and node.generators[0].iter.id in self.samples
        match node.elt:
            case ast.Subscript(value=ast.Name(id=name), slice=at) if of_samples and names == [name]:
                return self.item(at) == "row"
            case ast.Name(id=name) if of_samples and isinstance(node.generators[0].target, ast.Tuple) and name in names:
                return len(names) == len(self.items) and self.items[names.index(name)] == "row"
        return is_one_row(node.elt, self.known_names, {})

    def item(self, at: ast.expr) -> Item:
        """The entry of each sample at a place."""
        return next((item for i, item in enumerate(self.items) if is_number(at, i) or is_number(at, i - len(self.items))), "")

    def counts(self, node: ast.expr) -> bool:
        """Whether a number is that of the samples."""
        return self.layout(node) == "count"


def _put_together(node: ast.Call, name: str, sequences: bool, single: bool) -> Layout:
    """How the entries of a list of samples, maybe `sequences` or of a `single` row each, are laid out in one tensor."""
    if name == "pad_sequence":
        first = _argument(node, 1, "batch_first", False)
        return None if first is None else Padded(1 - bool(first))
    at = _argument(node, 1, "dim", 0)
    if name == "stack":
        return None if not isinstance(at, int) or at < 0 else Padded(at) if sequences else at
    if name in _JOINS:
        return (0 if single else "rows") if at == 0 else None
    return 0


def _changed_in_place(node: ast.expr) -> list[ast.expr]:
    """What a method changes in place, and what it is given: `rows.sub_(other)`; nothing for any other expression."""
    changes = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_")
    return [node.func.value, *node.args] if changes else []  # type: ignore[attr-defined]


def _is_beside(node: ast.Call) -> bool:
    """Whether parts that are written out are joined along another dimension than the first: `torch.cat([a, b], dim=1)`."""
    written = (
        bool(node.args)
        and isinstance(node.args[0], (ast.List, ast.Tuple))
        and not any(isinstance(a, ast.Starred) for a in node.args[0].elts)
    )
    at = argument(node, 1, "dim", "axis")
    along = at.operand if isinstance(at, ast.UnaryOp) and isinstance(at.op, ast.USub) else at
    return written and isinstance(along, ast.Constant) and isinstance(along.value, int) and along.value > 0


def _argument(node: ast.Call, position: int, name: str, default: object) -> object:
    """A literal argument of a call; None where it is none."""
    given = argument(node, position, name, *(["axis"] if name == "dim" else []))
    return default if given is None else given.value if isinstance(given, ast.Constant) else None
