"""Models that are initialised again after they were wrapped: all ranks take rank 0's new weights."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import InsertAfter
from ddpify.facts import library
from ddpify.facts.collect import TrainedModel
from ddpify.facts.model import Call, Func, in_common
from ddpify.facts.runs import Run
from ddpify.facts.tree import Tree, last_name, same, walk
from ddpify.facts.wrap_places import is_all, statements_between, targets
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context
from ddpify.rules.loop.branches import has_own_test

CODE = "DDP201"

_ASKING = frozenset("isinstance issubclass hasattr getattr type len str print find startswith endswith lower train eval".split())
_LAYERS = frozenset("parameters named_parameters modules named_modules children named_children size dim numel sqrt".split())
_COMPUTING = _LAYERS | frozenset(
    """
        clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ clip clip_ abs sign norm renorm renorm_ normalize mean std sum detach clone
        mul mul_ div div_ add add_ sub sub_ fill_ zero_ view reshape expand_as no_grad
    """.split()
)  # what draws nothing, of weights
_NUMBERS = frozenset("momentum inplace eps p negative_slope training track_running_stats".split())  # of layers, none a weight
_SAME = tuple(f"torch.nn.init.{name}_" for name in ("zeros", "ones", "constant", "eye", "dirac"))  # on all ranks: nothing is drawn


def broadcasts(context: Context, nodes: Iterable[ast.AST]) -> Iterator[Change | Finding]:
    """Broadcasts after the statements that some calls initialise a model in."""
    placed: dict[tuple[ast.stmt, str], Change] = {}
    for node in dict.fromkeys(nodes):
        places = [_broadcast(context, call) for call in context.facts.after.calls(node)]
        if not places or None in places:
            why = "the model is initialised again after it is wrapped: each rank would draw different weights"
            yield context.manual(CODE, node, why, "give all ranks the same seed before it, or wrap the model again after it")
            continue
        for place in places:
            if place is not None and place[1]:
                placed[place] = _change(context, *place)
    yield from placed.values()


def only_settings(context: Context, call: Call) -> bool:
    """Whether `model.apply(function)` only asks what each layer is and sets its numbers: `layer.momentum = 0.1`, `layer.eval()`."""
    return all(not called and not others for called, others in _bodies(context, call)) and bool(_given(context.facts.after, call))


def keeps_alike(context: Context, call: Call) -> bool:
    """Whether `model.apply(function)` computes the new weights of those that are there: they stay the same on all ranks."""
    run = context.facts.after
    computed = [c for calls, _ in _bodies(context, call) for c in calls]
    read = [n for f in _given(run, call) if f is not None for n in walk(f) if isinstance(n, (ast.Name, ast.Attribute))]
    return bool(computed) and all(_computes(context, c) for c in computed) and not any(context.differs(run.value(n)) for n in read)


def _computes(context: Context, node: ast.Call) -> bool:
    """Whether a call in such a function makes of equal tensors equal ones."""
    path = context.library_path(context.facts.tree_of(node).name, node.func)
    return last_name(node.func) in _COMPUTING or path in _SAME or path.startswith("math.")


def draws_nothing(context: Context, call: Call) -> bool:
    """Whether a call fills parameters with a number that is the same on all ranks."""
    constant = bool(call.func.paths()) and all(p in _SAME for p in call.func.paths())
    return constant and not has_own_test(context, call) and not any(context.differs(v) for v in (*call.args[1:], *call.keywords.values()))


def _given(run: Run, call: Call) -> list[ast.AST | None]:
    """The functions that `model.apply(function)` calls, or the method by which an object is called; None for one that is not known."""
    out: list[ast.AST | None] = []
    for obj in (o for value in call.args[:1] for o in value.objs):
        functions = [obj] if isinstance(obj, Func) else run.methods(obj, "__call__")
        out += [f.node for f in functions] or [None]
    return out


def _bodies(context: Context, call: Call) -> Iterator[tuple[list[ast.Call], list[ast.AST]]]:
    """What each function that `model.apply(function)` calls does besides asking and setting numbers: its calls, and what it stores."""
    todo, seen = _given(context.facts.after, call), set[ast.AST | None]()
    while todo:
        function = todo.pop()
        if function is None:
            yield [call.node], [call.node]
            return
        if function in seen:
            continue
        seen.add(function)
        named = context.facts.tree_of(function).of(ast.FunctionDef)
        calls: list[ast.Call] = []
        for node in (n for n in walk(function) if isinstance(n, ast.Call) and last_name(n.func) not in _ASKING):
            called = [n for n in named if isinstance(node.func, ast.Name) and n.name == node.func.id]
            todo += called if len(called) == 1 else []
            calls += [node] if len(called) != 1 else []
        yield calls, [n for n in walk(function) if _stores(context, n)]


def _stores(context: Context, node: ast.AST) -> bool:
    """Whether a node stores into an object what may be a parameter: not where it is a number, or a layer's own number."""
    if not isinstance(node, (ast.Attribute, ast.Subscript)) or isinstance(node.ctx, ast.Load):
        return False
    if isinstance(node, ast.Subscript) or node.attr in ("requires_grad", "data", "grad"):
        return True
    up = context.facts.tree_of(node).parent[node]
    value = up.value if isinstance(up, ast.Assign) else None
    of_layer = isinstance(value, ast.Attribute) and value.attr in _NUMBERS
    number = isinstance(value, ast.Constant) and value.value is not None
    return node.attr not in _NUMBERS and not of_layer and not number


def _fills(context: Context, call: Call) -> bool:
    """Whether a call only writes into parameters that are there: `model.apply(function)` gives the model no new ones."""
    if call.method != "apply":
        return call.method != "init_weights" or any(isinstance(o, Func) for o in call.func.objs)
    given = list(_bodies(context, call))
    return all(not stored and all(_in_place(context, c) for c in calls) for calls, stored in given) and bool(given)


def _in_place(context: Context, node: ast.Call) -> bool:
    """Whether a call in such a function writes into a tensor, or only reads."""
    name = last_name(node.func)
    path = context.library_path(context.facts.tree_of(node).name, node.func)
    return path.startswith(("torch.nn.init.", "math.", "numpy.")) or name in _LAYERS or name == "reset_parameters" or _trailing(name)


def _trailing(name: str) -> bool:
    """Whether a method is named as those that write into their tensor."""
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


def _models(context: Context, call: Call) -> list[TrainedModel]:
    """The trained models that a call is made on or handed, or parts of."""
    run = context.facts.after
    reached = run.reached((call.receiver, *call.args))
    return [m for m in context.facts.models if reached & m.objs]


def _broadcast(context: Context, call: Call) -> tuple[ast.stmt, str] | None:
    """The statement after which rank 0's weights go to all ranks, and what the model is called there; no name where they do already."""
    models = _models(context, call)
    if len(models) != 1 or has_own_test(context, call) or not _fills(context, call):
        return None
    model, run = models[0], context.facts.after
    forwards = [c for n in model.forwards for c in run.calls(n) if not c.no_grad]
    if not forwards:
        return None
    train = max(forwards, key=lambda c: in_common(c.stack, call.stack))
    tree, statement, there = next(statements_between(context.facts, (call.order, call.node, call.stack), train))
    if there is None or there in walk(statement) or not context.facts.is_edited(statement):
        return None
    if _is_alike_after(context, tree, statement, model):
        return statement, ""
    target = next(iter(targets(context.facts, tree, statement, model)), None)
    names = [n for n in walk(tree.function(statement)) if isinstance(n, (ast.Name, ast.Attribute))]
    wrapped = {context.facts.wrapped(v) for n in names if target is not None and same(n, target) and is_all(run, v := run.value(n), model)}
    if target is None or not wrapped or None in wrapped:
        return None
    return statement, ast.unparse(target) + ".module" * (True in wrapped)


def _is_alike_after(context: Context, tree: Tree, statement: ast.stmt, model: TrainedModel) -> bool:
    """Whether a later statement of the same block wraps the model, or broadcasts what it holds."""
    run, block = context.facts.after, tree.block(statement)
    rest = block[block.index(statement) :]
    if any(wrap.after in rest for wrap in model.wraps):
        return True
    alike = {"torch.distributed.broadcast", *library.DDPS}
    sites = {n for c in run.trace.calls if c.func.paths() & alike for n in (c.node, *c.stack)}
    for later in rest[1:]:
        nodes = list(walk(later))
        named = any(isinstance(n, (ast.Name, ast.Attribute)) and run.unwrap(run.value(n)) & model.objs for n in nodes)
        if named and not sites.isdisjoint(nodes):
            return True
    return False


def _change(context: Context, statement: ast.stmt, name: str) -> Change:
    why = "the model is initialised again here: all ranks go on from rank 0's parameters"
    edit = InsertAfter(statement, f"{context.names['start_alike']}({name}.state_dict().values())")
    return Change(CODE, why, context.tree.shown, statement, (edit,), ("import torch",), needs=("start_alike",))
