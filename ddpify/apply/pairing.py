"""Which concrete node an abstract node is.

Statements are paired by structure and, inside a statement that matters, expressions in lockstep over every kind. What does not
fit is left unpaired: a node without a partner cannot be edited, and that is all that happens.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import libcst as cst

from ddpify.records import dataclass, field

Pair = tuple[Any, Any]
"""An `ast` node, or the list that is a body, and the libcst node that should be the same thing."""


class Mismatch(Exception):
    """The two trees differ here."""


@dataclass
class Pairs:
    """The partners found, by abstract node; `path` holds the `id` of every concrete statement that was looked into."""

    partner: dict[ast.AST, cst.CSTNode] = field(default_factory=dict)
    path: set[int] = field(default_factory=set)


def pair(tree: ast.Module, module: cst.Module, wanted: Iterable[ast.AST]) -> Pairs:
    """Pair the statements that hold a `wanted` node, with all that is in them except, in their bodies, statements without one."""
    wanted = list(wanted)
    found = _pair(tree, module, sorted({line for node in wanted for line in (node.lineno, node.end_lineno)}))  # type: ignore[attr-defined]
    if all(node in found.partner for node in wanted):
        return found
    return _pair(tree, module, None)  # before Python 3.12 the line of a node inside an f-string may be wrong


def pair_all(tree: ast.Module, module: cst.Module) -> Iterator[tuple[ast.AST, cst.CSTNode]]:
    """Every abstract node of the file that has a partner, with it."""
    yield from _pair(tree, module, None).partner.items()


def _pair(tree: ast.Module, module: cst.Module, lines: list[int] | None) -> Pairs:
    found = Pairs()
    bodies: list[Pair] = [(tree.body, module)]
    while bodies:
        body, partner = bodies.pop()
        statements = list(_statements(partner))
        if len(statements) != len(body):
            continue
        for node, (statement, line) in zip(body, statements, strict=True):
            if lines is None or _within(node, lines):
                found.path.add(id(line))
                bodies += _lockstep(node, statement, found)
    return found


def _statements(partner: Any) -> Iterator[tuple[Any, Any]]:
    """Each statement of a body, and the line it is written on (itself, for a compound statement)."""
    if isinstance(partner, (cst.If, cst.SimpleStatementSuite)):  # an `elif`, which for ast is a body of one; or `if x: a; b`
        yield from ((s, s) for s in ([partner] if isinstance(partner, cst.If) else partner.body))
        return
    for line in partner.body:
        if isinstance(line, cst.SimpleStatementLine):
            yield from ((small, line) for small in line.body)
        else:
            yield line, line


def _within(node: ast.stmt, lines: list[int]) -> bool:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    at = bisect_left(lines, first)
    return at < len(lines) and lines[at] <= (node.end_lineno or first)


def _lockstep(node: ast.stmt, partner: Any, found: Pairs) -> list[Pair]:
    """Pair one statement and the expressions in it; the bodies below are returned, not entered."""
    new: dict[ast.AST, cst.CSTNode] = {}
    bodies: list[Pair] = []
    todo: list[Pair] = [(node, partner)]
    try:
        while todo:
            one, other = todo.pop()
            if isinstance(one, list):
                bodies.append((one, other))
                continue
            new[one] = other
            todo += _step(one, other)
    except (Mismatch, AttributeError, TypeError, KeyError):  # the last three: a concrete node of another shape than expected
        return []
    found.partner.update(new)
    return bodies


def _need(same: bool) -> None:
    if not same:
        raise Mismatch


def _step(node: Any, partner: Any) -> list[Pair]:
    """What is directly below `node`, paired."""
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node, partner)
    kind, fields = _FIELDS[type(node).__name__.removeprefix("Async")]
    _need(isinstance(partner, kind))
    _check(node, partner)
    out: list[Pair] = []
    for name, path in fields:
        value, other = getattr(node, name), partner
        for step in path:
            other = None if other is None else getattr(other, step)
        out += _value(value, other)
    return out


def _check(node: Any, partner: Any) -> None:
    """Compare what is not a node: names, operators, `async`."""
    if isinstance(node, (ast.stmt, ast.comprehension)):
        asynchronous = getattr(partner, "asynchronous", None) is not None
        _need(type(node).__name__.startswith("Async") == asynchronous)
    for name in ("name", "arg"):
        mine = getattr(node, name, None)
        if mine is not None and isinstance(getattr(partner, "name", None), cst.Name):
            _need(mine == partner.name.value)
    op = getattr(node, "op", None)
    if op is not None:
        suffix = "Assign" if isinstance(node, ast.AugAssign) else ""
        _need(type(partner.operator).__name__ == _OPERATORS.get(type(op).__name__, type(op).__name__) + suffix)


def _value(value: Any, other: Any) -> list[Pair]:
    """Pair the values of one field: nodes, absent nodes, lists of nodes, bodies."""
    if not isinstance(value, list):
        _need((value is None) == (other is None))
        return [] if value is None else [(value, other)]
    if isinstance(other, (cst.Else, cst.Finally)):
        other = other.body
    if isinstance(other, (cst.BaseSuite, cst.If)):
        return [(value, other)]
    return _zip(value, other or ())


def _zip(nodes: Sequence[Any], partners: Iterable[Any]) -> list[Pair]:
    out = [(node, getattr(p, _WRAPPERS[type(p)]) if type(p) in _WRAPPERS else p) for node, p in zip_longest(nodes, partners)]
    _need(len(out) == len(nodes) and all(other is not None for _, other in out))
    return out


def _class(node: ast.ClassDef, partner: Any) -> list[Pair]:
    _need(node.name == partner.name.value)
    arguments = _arguments(node.bases, node.keywords, [*partner.bases, *partner.keywords])
    return [*_zip(node.decorator_list, partner.decorators), *arguments, (node.body, partner.body)]


def _delete(node: ast.Delete, partner: Any) -> list[Pair]:
    several = isinstance(partner.target, cst.Tuple) and not partner.target.lpar
    return _zip(node.targets, partner.target.elements if several else [partner.target])


def _import(node: Any, partner: Any) -> list[Pair]:
    _need(isinstance(partner, cst.Import if isinstance(node, ast.Import) else cst.ImportFrom))
    _need(isinstance(partner.names, cst.ImportStar) or len(node.names) == len(partner.names))
    return []


def _name(node: ast.Name, partner: Any) -> list[Pair]:
    _need(isinstance(partner, cst.Name) and node.id == partner.value)
    return []


def _attribute(node: ast.Attribute, partner: Any) -> list[Pair]:
    _need(isinstance(partner, cst.Attribute) and node.attr == partner.attr.value)
    return [(node.value, partner.value)]


def _constant(node: ast.Constant, partner: Any) -> list[Pair]:
    value = node.value
    if isinstance(value, (str, bytes)):
        parts = _strings(partner)
        _need(all(isinstance(part, cst.SimpleString) for part in parts))
        plain = len(parts) == 1 and "\\" not in parts[0].value  # an invalid escape would warn
        _need(not plain or parts[0].evaluated_value == value)
    elif value is None or isinstance(value, bool):
        _need(isinstance(partner, cst.Name) and partner.value == str(value))
    else:
        _need(isinstance(partner, cst.Ellipsis if value is ... else cst.BaseNumber))
    return []


def _strings(partner: Any) -> list[Any]:
    """The pieces of an implicit concatenation."""
    out: list[Any] = []
    while isinstance(partner, cst.ConcatenatedString):
        out.append(partner.left)
        partner = partner.right
    _need(isinstance(partner, (cst.SimpleString, cst.FormattedString)))
    return [*out, partner]


def _joined(node: ast.JoinedStr, partner: Any) -> list[Pair]:
    return _formatted(node, [part for piece in _strings(partner) if isinstance(piece, cst.FormattedString) for part in piece.parts])


def _formatted(node: Any, parts: Sequence[Any]) -> list[Pair]:
    holes = [part for part in parts if isinstance(part, cst.FormattedStringExpression)]
    return _zip([value for value in node.values if isinstance(value, ast.FormattedValue)], holes)


def _formatted_value(node: ast.FormattedValue, partner: Any) -> list[Pair]:
    spec = [] if partner.format_spec is None else _formatted(node.format_spec, partner.format_spec)
    return [(node.value, partner.expression), *spec]


def _call(node: ast.Call, partner: Any) -> list[Pair]:
    _need(isinstance(partner, cst.Call))
    return [(node.func, partner.func), *_arguments(node.args, node.keywords, partner.args)]


def _arguments(args: Sequence[ast.expr], keywords: Sequence[ast.keyword], partners: Sequence[Any]) -> list[Pair]:
    named = [p for p in partners if p.keyword is not None or p.star == "**"]
    plain = [p for p in partners if p.keyword is None and p.star != "**"]
    for keyword, partner in zip(keywords, named, strict=False):
        _need(keyword.arg == (partner.keyword.value if partner.keyword else None))
    for value, partner in zip(args, plain, strict=False):
        _need(isinstance(value, ast.Starred) == (partner.star == "*"))
    return _zip(keywords, named) + _zip(args, [p if p.star else p.value for p in plain])


def _subscript(node: ast.Subscript, partner: Any) -> list[Pair]:
    elements = [e.slice.value if isinstance(e.slice, cst.Index) and e.slice.star is None else e.slice for e in partner.slice]
    first = partner.slice[0]
    if len(elements) == 1 and not isinstance(first.comma, cst.Comma) and getattr(first.slice, "star", None) is None:
        return [(node.value, partner.value), (node.slice, elements[0])]
    _need(isinstance(node.slice, ast.Tuple))
    return [(node.value, partner.value), *_zip(getattr(node.slice, "elts", ()), elements)]


def _boolean(node: ast.BoolOp, partner: Any) -> list[Pair]:
    """`a and b and c` is one node of ast and two, nested, of libcst."""
    kind = cst.And if isinstance(node.op, ast.And) else cst.Or
    operands: list[Any] = []
    todo = [partner]
    while todo:
        part = todo.pop()
        if isinstance(part, cst.BooleanOperation) and isinstance(part.operator, kind) and (part is partner or not part.lpar):
            todo += [part.right, part.left]
        else:
            operands.append(part)
    _need(len(operands) > 1)
    return _zip(node.values, operands)


def _compare(node: ast.Compare, partner: Any) -> list[Pair]:
    for op, other in zip(node.ops, partner.comparisons, strict=False):
        _need(type(other.operator).__name__ == _OPERATORS.get(type(op).__name__, type(op).__name__))
    return [(node.left, partner.left), *_zip(node.comparators, partner.comparisons)]


def _parameters(node: ast.arguments, partner: Any) -> list[Pair]:
    plain, keyword_only = [*partner.posonly_params, *partner.params], list(partner.kwonly_params)
    args = [*node.posonlyargs, *node.args]
    defaults = [*[None] * (len(args) - len(node.defaults)), *node.defaults, *node.kw_defaults]
    out = _zip([*args, *node.kwonlyargs], [*plain, *keyword_only])
    for default, param in zip_longest(defaults, [*plain, *keyword_only]):
        out += _value(default, param.default)
    star = partner.star_arg if isinstance(partner.star_arg, cst.Param) else None
    return out + _value(node.vararg, star) + _value(node.kwarg, partner.star_kwarg)


def _display(node: Any, partner: Any) -> list[Pair]:
    _need(type(node).__name__ == type(partner).__name__)
    return _zip(node.elts, partner.elements)


def _dict(node: ast.Dict, partner: Any) -> list[Pair]:
    out: list[Pair] = []
    for key, value, element in zip_longest(node.keys, node.values, partner.elements):
        out += [*_value(key, getattr(element, "key", None)), (value, element.value)]
    return out


def _comprehension(node: Any, partner: Any) -> list[Pair]:
    _need(type(node).__name__ == type(partner).__name__)
    out = [(getattr(node, name), getattr(partner, name)) for name in node._fields if name != "generators"]
    clauses, clause = [], partner.for_in
    while clause is not None:
        clauses.append(clause)
        clause = clause.inner_for_in
    for generator, clause in zip_longest(node.generators, clauses):
        _need(bool(generator.is_async) == (clause.asynchronous is not None))
        out += [(generator.target, clause.target), (generator.iter, clause.iter), *_zip(generator.ifs, clause.ifs)]
    return out


def _yield_from(node: ast.YieldFrom, partner: Any) -> list[Pair]:
    return [(node.value, partner.value.item)]


def _starred(node: ast.Starred, partner: Any) -> list[Pair]:
    _need(isinstance(partner, cst.StarredElement) or getattr(partner, "star", None) == "*")
    return [(node.value, partner.value)]


_OPERATORS = {
    "Sub": "Subtract", "Mult": "Multiply", "Div": "Divide", "FloorDiv": "FloorDivide", "Mod": "Modulo", "Pow": "Power",
    "LShift": "LeftShift", "RShift": "RightShift", "MatMult": "MatrixMultiply", "UAdd": "Plus", "USub": "Minus", "Invert": "BitInvert",
    "Lt": "LessThan", "LtE": "LessThanEqual", "Gt": "GreaterThan", "GtE": "GreaterThanEqual", "Eq": "Equal", "NotEq": "NotEqual",
}  # fmt: skip
_WRAPPERS: dict[type[Any], str] = {
    cst.AssignTarget: "target",
    cst.ComparisonTarget: "comparator",
    cst.CompIf: "test",
    cst.Decorator: "decorator",
    cst.Element: "value",
}
_KINDS: dict[str, tuple[type[Any], str]] = {
    "AnnAssign": (cst.AnnAssign, "target annotation=annotation.annotation value"),
    "Assert": (cst.Assert, "test msg"),
    "Assign": (cst.Assign, "targets value"),
    "AugAssign": (cst.AugAssign, "target value"),
    "Await": (cst.Await, "value=expression"),
    "BinOp": (cst.BinaryOperation, "left right"),
    "Break": (cst.Break, ""),
    "Continue": (cst.Continue, ""),
    "ExceptHandler": ((cst.ExceptHandler, cst.ExceptStarHandler), "type body"),  # type: ignore[dict-item]
    "Expr": (cst.Expr, "value"),
    "For": (cst.For, "target iter body orelse"),
    "FunctionDef": (cst.FunctionDef, "decorator_list=decorators args=params returns=returns.annotation body"),
    "Global": (cst.Global, ""),
    "If": (cst.If, "test body orelse"),
    "IfExp": (cst.IfExp, "test body orelse"),
    "Lambda": (cst.Lambda, "args=params body"),
    "Match": (cst.Match, "subject cases"),
    "NamedExpr": (cst.NamedExpr, "target value"),
    "Nonlocal": (cst.Nonlocal, ""),
    "Pass": (cst.Pass, ""),
    "Raise": (cst.Raise, "exc cause=cause.item"),
    "Return": (cst.Return, "value"),
    "Slice": (cst.Slice, "lower upper step"),
    "Try": (cst.Try, "body handlers orelse finalbody"),
    "TryStar": (cst.TryStar, "body handlers orelse finalbody"),
    "UnaryOp": (cst.UnaryOperation, "operand=expression"),
    "While": (cst.While, "test body orelse"),
    "With": (cst.With, "items body"),
    "Yield": (cst.Yield, "value"),
    "arg": (cst.Param, "annotation=annotation.annotation"),
    "keyword": (cst.Arg, "value"),
    "match_case": (cst.MatchCase, "guard body"),  # patterns are no place for an edit
    "withitem": (cst.WithItem, "context_expr=item optional_vars=asname.name"),
}
_FIELDS = {
    name: (kind, [(spec.partition("=")[0], (spec.partition("=")[2] or spec).split(".")) for spec in specs.split()])
    for name, (kind, specs) in _KINDS.items()
}
_SPECIAL: dict[type[ast.AST], Callable[[Any, Any], list[Pair]]] = {
    ast.Attribute: _attribute, ast.BoolOp: _boolean, ast.Call: _call, ast.ClassDef: _class, ast.Compare: _compare,
    ast.Constant: _constant, ast.Delete: _delete, ast.Dict: _dict, ast.DictComp: _comprehension, ast.FormattedValue: _formatted_value,
    ast.GeneratorExp: _comprehension, ast.Import: _import, ast.ImportFrom: _import, ast.JoinedStr: _joined, ast.List: _display,
    ast.ListComp: _comprehension, ast.Name: _name, ast.Set: _display, ast.SetComp: _comprehension, ast.Starred: _starred,
    ast.Subscript: _subscript, ast.Tuple: _display, ast.YieldFrom: _yield_from, ast.arguments: _parameters,
}  # fmt: skip
