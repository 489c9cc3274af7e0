"""Every step sees the whole graph.

What it does: refuses a script without a loader whose training step passes the same tensors to the model each time and picks the training
    nodes from its output: `output = model(features, adj)`, `loss(output[idx_train], labels[idx_train])`.
Why: the nodes of a graph depend on one another, so a step has one sample: the graph. N ranks would do the same work N times.
Safety: reported only if the loss takes output and labels at one and the same index, and neither the index nor what goes into the model is
    made anew in the loop. Other scripts without a loader are left to the rules that divide slices.
References: https://arxiv.org/abs/1609.02907
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.facts.tree import same, walk
from ddpify.project import Project
from ddpify.rules.base import Example
from ddpify.rules.refuse.reach import Reach, Use, reach
from ddpify.rules.refuse.reinforcement import loads
from ddpify.rules.refuse.scan import Unit
from ddpify.rules.refuse.training import trains
from ddpify.rules.refuse.verdict import Verdict

CODE = "DDP917"
TITLE = "full-batch graph"

EXAMPLES = (
    Example("slices of a data set", "import torch\nfor i in range(0, n, 8):\n    out = model(x[i:i + 8], a)\n"
            "    loss(out, y[i:i + 8]).backward()\n"),
    Example("rows drawn anew", "import torch\nfor epoch in range(9):\n    rows = torch.randperm(9)[:4]\n    out = model(x, a)\n"
            "    loss(out[rows], y[rows]).backward()\n"),
    Example("one batch after another", "import torch\nfor x, a, mask, y in batches:\n    out = model(x, a)\n"
            "    loss(out[mask], y[mask]).backward()\n"),
    Example("the last step of a sequence", "import torch\nfor epoch in range(9):\n    out = model(x, h)\n"
            "    loss(out[-1], y[-1]).backward()\n"),
    Example("refused: a graph in every step", "import torch\nfor epoch in range(9):\n    out = model(features, adj)\n"
            "    loss(out[rows], labels[rows]).backward()\n"),
)  # fmt: skip

_PLACES = frozenset({"to", "cuda", "cpu", "float", "double", "half", "long", "detach", "requires_grad_", "t", "coalesce", "contiguous"})
_GRAPH_LIBRARIES = ("torch_geometric", "dgl", "torch_sparse")
_DEPTH = 4


def check(project: Project) -> Verdict | None:
    """A refusal if a training step has a full-batch graph's form and nothing is loaded."""
    reached = reach(project)
    if trains(reached) is None or loads(reached):
        return None
    graphs = any(map(reached.imports, _GRAPH_LIBRARIES))
    for unit in reached.units:
        if unit.kind == "class" or not any(use.method == "backward" for use in reached.uses_of(unit)):
            continue
        for use in reached.uses_of(unit):
            if forward := _whole_graph(reached, use, graphs):
                file = unit.module.file.shown
                reason = (f"full-batch graph: the model at {file}:{forward.lineno} sees the whole graph in every step and the loss picks "
                          "its training nodes, so there is nothing to divide among ranks")  # fmt: skip
                return Verdict("refuse", CODE, reason, forward.lineno, file)
    return None


def _whole_graph(reached: Reach, use: Use, graphs: bool) -> ast.Call | None:
    """The forward whose rows `use`, a loss, compares with the labels of the same rows."""
    picked = [argument for argument in use.arguments if isinstance(argument, ast.Subscript)]
    if len(picked) < 2 or not isinstance(use.node, ast.Call) or not same(picked[0].slice, picked[1].slice):
        return None
    rows = picked[0].slice
    if not isinstance(rows, (ast.Name, ast.Attribute)) or not _is_fixed(reached, use.unit, rows) or not _goes_backward(use):
        return None
    for forward in (*_producers(use.unit, picked[0].value), *_producers(use.unit, picked[1].value)):
        given = [*forward.args, *(keyword.value for keyword in forward.keywords)]
        inputs = sum(2 if isinstance(item, ast.Starred) else not isinstance(item, ast.Constant) for item in given)
        if (graphs or inputs > 1) and _is_model(reached, use.unit, forward) and all(_is_fixed(reached, use.unit, item) for item in given):
            return forward
    return None


def _goes_backward(use: Use) -> bool:
    """Whether the value of `use` is part of what goes backward."""
    values: list[ast.AST] = [node for node in use.unit.walk() if isinstance(node, ast.Attribute) and node.attr == "backward"]
    names: set[str] = set()
    size = -1
    while size < len(names):
        size = len(names)
        names |= {node.id for value in values for node in walk(value) if isinstance(node, ast.Name)}
        values += [node.value for node in use.unit.walk() if isinstance(node, (ast.Assign, ast.AugAssign)) and names & _bound_by(node)]
    return any(node is use.node for value in values for node in walk(value))


def _bound_by(node: ast.Assign | ast.AugAssign) -> set[str]:
    return _names(node.targets if isinstance(node, ast.Assign) else [node.target])


def _producers(unit: Unit, value: ast.expr) -> Iterator[ast.Call]:
    """The calls whose result `value` may be."""
    if isinstance(value, ast.Call):
        yield value
    elif isinstance(value, ast.Name):
        for node in unit.walk():
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and value.id in _names(node.targets):
                yield node.value


def _is_model(reached: Reach, unit: Unit, call: ast.Call) -> bool:
    """Whether a value is called, not a function that the script or a library defines."""
    use = next((use for use in reached.uses_of(unit) if use.node is call), None)
    return use is not None and not use.targets and use.method not in _PLACES


def _is_fixed(reached: Reach, unit: Unit, value: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether `value` is the same at every step: built from names that no training loop binds to something new."""
    if depth == 0:
        return False
    if isinstance(value, (ast.Starred, ast.Attribute)):
        return _is_fixed(reached, unit, value.value, depth)
    if isinstance(value, (ast.Tuple, ast.List)):
        return all(_is_fixed(reached, unit, item, depth) for item in value.elts)
    if isinstance(value, ast.Subscript):
        return _is_fixed(reached, unit, value.value, depth) and _is_fixed(reached, unit, value.slice, depth)
    if isinstance(value, ast.Call):
        moved = value.func if isinstance(value.func, ast.Attribute) and value.func.attr in _PLACES else None
        return moved is not None and _is_fixed(reached, unit, moved.value, depth)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and _is_fixed_name(reached, unit, value.id, depth))


def _is_fixed_name(reached: Reach, unit: Unit, name: str, depth: int) -> bool:
    for block in _repeated(reached, unit):
        for bound in _bindings(block, name):
            if bound is None or not _is_fixed(reached, unit, bound, depth - 1):
                return False
    if name in _parameters(unit.node):
        return all(_is_fixed(reached, caller, argument, depth - 1) for caller, argument in _passed(reached, unit, name))
    outside = unit.kind == "function" and name not in unit.uses.stored
    return not outside or _is_fixed_name(reached, unit.module.main, name, depth)


def _repeated(reached: Reach, unit: Unit) -> Iterator[ast.AST]:
    """The code of `unit` that runs at every step: its loops, if they train; else all of it, since a loop elsewhere calls it."""
    trained = [node for node in unit.walk() if isinstance(node, (ast.For, ast.While)) and _has_backward(node)]
    if trained:
        yield from trained
    elif any(use.method == "backward" for use in reached.uses_of(unit)):
        yield from unit.body
    else:
        yield from (node for node in unit.walk() if isinstance(node, (ast.For, ast.While)))


def _has_backward(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in walk(node))


def _bindings(block: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """What `block` binds `name` to; None where that is something new each time."""
    for node in walk(block):
        if not isinstance(node, ast.Assign):
            if name in _names(_targets(node)):
                yield None
        elif name in _names(node.targets):
            plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            rebound = name in _names([node.value])
            yield None if not plain else _moved(node.value, name) if rebound else node.value


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.For, ast.comprehension, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        return [node.target]
    if isinstance(node, ast.withitem) and node.optional_vars:
        return [node.optional_vars]
    return []


def _moved(value: ast.expr, name: str) -> ast.Constant | None:
    """`x` of `x = x.to(device)` stays what it was; any other reuse of the name is new."""
    moved = value.func if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    same = moved is not None and moved.attr in _PLACES and isinstance(moved.value, ast.Name) and moved.value.id == name
    return ast.Constant(None) if same else None


def _passed(reached: Reach, unit: Unit, name: str) -> Iterator[tuple[Unit, ast.expr]]:
    """What the calls of a function pass for its parameter `name`."""
    position = _parameters(unit.node).index(name) - (1 if unit.owner else 0)
    for use in reached.uses:
        if unit in use.targets and isinstance(use.node, ast.Call):
            for keyword in use.node.keywords:
                if keyword.arg == name:
                    yield use.unit, keyword.value
            if len(use.node.args) > position >= 0:
                yield use.unit, use.node.args[position]


def _parameters(node: ast.AST) -> list[str]:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]


def _names(nodes: list[ast.expr]) -> set[str]:
    return {node.id for target in nodes for node in walk(target) if isinstance(node, ast.Name)}
