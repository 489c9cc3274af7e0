"""Whether only the direction of a gradient is used: by its sign, divided by its own length, or asked whether there is one."""

from __future__ import annotations

import ast

from ddpify.facts.tree import Tree, last_name, same, walk

SAME = frozenset(("data", "detach", "clone", "detach_", "cpu", "contiguous"))
_DIRECTIONS = frozenset(("sign", "sign_", "sgn", "zero_", "shape", "size", "device", "dtype"))
_LENGTHS = frozenset(("norm", "vector_norm"))
_VIEWS = frozenset(("view", "reshape", "flatten", "unsqueeze", "squeeze", "expand_as", "view_as", "detach"))
_TINY = 1e-8  # what is added to a length so that nothing is divided by 0


def only_direction(tree: Tree, node: ast.AST, known: frozenset[str] = frozenset()) -> bool:
    """Whether only the direction of a gradient is used, or whether there is one."""
    up = tree.parent[node]
    if isinstance(node, ast.Name) and _by_own_length(tree, node):
        return True
    if isinstance(up, ast.Attribute):
        return up.attr in _DIRECTIONS or (up.attr in SAME and only_direction(tree, up, known))
    if isinstance(up, ast.Subscript) and up.value is node:
        return only_direction(tree, up, known)
    if isinstance(up, ast.Call):
        if node is up.func:
            return only_direction(tree, up, known)
        return isinstance(up.func, ast.Attribute) and up.func.attr in ("sign", "sgn", "normalize")
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        target = up.targets[0]
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        return all(isinstance(n, ast.Name) and (n.id in known or _directions(tree, n, known | {n.id})) for n in names)
    return isinstance(up, (ast.Compare, ast.If, ast.Expr, ast.BoolOp))


def _directions(tree: Tree, name: ast.Name, known: frozenset[str]) -> bool:
    """Whether every use of a name is of a direction."""
    return all(only_direction(tree, n, known) for n in _loads(tree, name))


def _loads(tree: Tree, name: ast.Name) -> list[ast.Name]:
    """The reads of a name in its function."""
    function = tree.function(name)
    return [n for n in walk(function) if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load)]


def _by_own_length(tree: Tree, name: ast.Name) -> bool:
    """Whether a gradient is divided by its length here, `g / g.norm()`, or gives the length that it is divided by, and nothing else."""
    up = tree.parent[name]
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.left is name:
        return any(_gives_length(tree, n, up.right) for n in _loads(tree, name))
    length = _length_from(tree, name)
    return length is not None and _only_divides(tree, length, name)


def _length_from(tree: Tree, name: ast.Name) -> ast.expr | None:
    """The length that is computed from a gradient, `norm(g.view(len(g), -1), dim=1)`, in whichever view; None of anything else."""
    node = _seen(tree, name)
    up = tree.parent[node]
    if isinstance(up, ast.Attribute) and up.attr in _LENGTHS and isinstance(call := tree.parent[up], ast.Call) and call.func is up:
        return _seen(tree, call)
    if isinstance(up, ast.Call) and node in up.args[:1] and last_name(up.func) in _LENGTHS:
        return _seen(tree, up)
    return None


def _seen(tree: Tree, node: ast.expr) -> ast.expr:
    """An expression with what is called on it for another view of it, and what is added so that it is not 0."""
    up = tree.parent[node]
    if isinstance(up, ast.Attribute) and up.attr in _VIEWS and isinstance(call := tree.parent[up], ast.Call) and call.func is up:
        return _seen(tree, call)
    if isinstance(up, ast.Subscript) and up.value is node:
        return _seen(tree, up)
    other = up.right if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add) and up.left is node else None
    tiny = isinstance(other, ast.Constant) and isinstance(other.value, float) and 0 < other.value <= _TINY
    return _seen(tree, up) if tiny and isinstance(up, ast.BinOp) else node


def _gives_length(tree: Tree, name: ast.Name, divisor: ast.expr) -> bool:
    """Whether a divisor is the length that is computed from this read of a gradient, or the one name of it."""
    length = _length_from(tree, name)
    if length is None or length is divisor:
        return length is divisor
    up = tree.parent[length]
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    return isinstance(target, ast.Name) and any(_seen(tree, n) is divisor for n in _loads(tree, target))


def _only_divides(tree: Tree, length: ast.expr, name: ast.Name) -> bool:
    """Whether a length does nothing but divide the gradient that it is of."""
    up = tree.parent[length]
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div):
        return up.right is length and same(up.left, name)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    return isinstance(target, ast.Name) and all(_only_divides(tree, _seen(tree, n), name) for n in _loads(tree, target))
