"""Whether a loop starts with nothing each time it is run: then what it has added up is that of one run, and can be summed over ranks."""

from __future__ import annotations

import ast

from ddpify.facts.definitions import RESETS
from ddpify.facts.tree import Tree, last_name
from ddpify.facts.writes import Batches
from ddpify.rules.context import Context
from ddpify.rules.loop.live_out import LiveOut


def is_fresh(context: Context, loop: Batches, live: LiveOut) -> bool:
    """Whether something is zero, or empty, at the beginning of each run of a loop; or written by each pass before it is read."""
    definitions = context.facts.after.definitions
    if not definitions.exposed(loop, live.places):
        return True
    before = definitions.before(loop, live.places, {w.target for w in live.writes})
    return not (before.undefined or before.changes) and all(_is_empty(context.facts.tree_of(d), d) for d in before.definitions)


def _is_empty(tree: Tree, definition: ast.AST) -> bool:
    """Whether a definition leaves nothing: by what it assigns or makes, or since it is a reset."""
    if isinstance(definition, ast.Call) and isinstance(definition.func, ast.Attribute) and definition.func.attr in RESETS:
        return True
    if isinstance(definition, (ast.Name, ast.Attribute, ast.Subscript)):
        if isinstance(definition.ctx, ast.Load):
            return True  # `total.zero_()`
        value = assigned(tree, definition)
        return value is not None and _nothing(value)
    return isinstance(definition, ast.expr) and _nothing(definition)


def assigned(tree: Tree, target: ast.expr) -> ast.expr | None:
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
        name = last_name(value.func)
        if name in ("list", "dict", "set", "tuple", "deque", "OrderedDict", "tensor", "array", "as_tensor", "asarray", "float", "int"):
            return all(_nothing(a) for a in value.args[:1])
        if name in ("Tensor", "FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "HalfTensor"):
            return all(_nothing(a) for a in value.args if not isinstance(a, ast.Constant))
        if name in ("to", "cuda", "cpu", "double", "float", "long", "int", "copy", "clone"):
            return isinstance(value.func, ast.Attribute) and _nothing(value.func.value)
        return name[:1].isupper() or name in ("zeros", "zeros_like", "defaultdict", "namedtuple")
    return False
