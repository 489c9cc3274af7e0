"""Why a loop that evaluates cannot be sharded over the ranks: each rank must be able to run its batches alone, and add up afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpify.facts import library
from ddpify.facts.effects import Effects
from ddpify.facts.model import Call, New
from ddpify.facts.tree import Tree
from ddpify.facts.writes import Write, container
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.live_out import LiveOut, live_out, made_under, places_of, written
from ddpify.rules.loop.meters import meter
from ddpify.rules.loop.reductions import loader_of, reduce
from ddpify.rules.model.batch_norm import may_hold_batch_norm

_COPIES = library.COPIES | {"torch.optim.swa_utils.AveragedModel"}

_GROWS = frozenset(("append", "extend", "add", "update", "insert", "appendleft"))

_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.ListComp, ast.GeneratorExp)

_RESHAPES = frozenset(("flatten", "view", "reshape", "ravel", "repeat", "repeat_interleave", "nonzero", "masked_select", "topk", "chunk"))


def obstacle(context: Context, effects: Effects, loop: ast.For) -> str:
    """Why the batches of an evaluation loop cannot be sharded; empty where they can."""
    why = _in_body(context, effects, loop) or _in_what_is_live(context, loop) or _in_calls(context, loop)
    if why:
        return why
    calls = context.facts.after.trace.calls
    if not any(c.method == "eval" and context.facts.model_of(c.receiver) is not None for c in calls) and _may_normalise(context):
        return "the model was not seen to be in evaluation mode"
    if normalised_models(context, loop) is None:
        return "the evaluated model has no name here"
    return ""


def _in_body(context: Context, effects: Effects, loop: ast.For) -> str:
    """What a loop does at each batch that each rank would do for other batches: it ends early, shows something, counts batches."""
    run, tree = context.facts.after, context.tree
    inside = [n for s in loop.body for n in ast.walk(s)]
    if any(isinstance(n, (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)) for n in inside):
        return "it may end early"
    if loop.orelse or not isinstance(tree.statement(loop), ast.For) or isinstance(tree.parent.get(loop), ast.Try):
        return "it is part of something larger"
    asked = context.options.eval == "shard"  # then each rank may show its own batches
    for node in inside:
        call = node if isinstance(node, ast.Call) else None
        if node in context.training or (call is not None and effects.kinds(call) - ({"print"} if asked else set())):
            return "it shows or writes something for each batch"
        if call is not None and run.value(call.func).paths() & {"next", "iter", "zip"} and not isinstance(tree.parent[call], ast.For):
            return "it draws from something else, too"
    return "it counts its batches" if _reads_batch_number(context, loop, asked) else ""


def _in_what_is_live(context: Context, loop: ast.For) -> str:
    """What is loop-carried, or live after the loop, and cannot be summed or gathered over the ranks."""
    live = live_out(context, loop)
    for group in written(context, loop):
        if not any(x.target is group[0].target for x in live) and _is_carried(context, loop, group):
            return f"`{ast.unparse(group[0].target)}` goes on from batch to batch"
    if any(c.method.startswith("register_") and c.method.endswith("_hook") for c in context.facts.after.trace.calls):
        return "hooks may keep what they see"
    loader = loader_of(context, loop)
    for found in live:
        instances = found.value.instances()
        if _read_inside(context, loop, found.writes) or not _grows_evenly(context, loop, found):
            return f"`{found.name}` was not seen to be only added up"
        if "last" in found.hows or (found.hows == {"object"} and not any(_is_meter(context, o) for o in instances)):
            return f"`{found.name}` was not seen to be added up"
        if instances and all(o.path.startswith("torchmetrics.") for o in instances):
            continue
        answer = reduce(context, loop, found, loader, sharded=True)
        if answer is None or answer.problem or answer.edits:
            return f"`{found.name}` was not seen to be added up"
        if found.hows == {"samples"} and not loader:
            return "its loader has no name"
    return ""


def _in_calls(context: Context, loop: ast.For) -> str:
    """Whether a function that a loop calls changes an object from before the loop."""
    run, within = context.facts.after, set(ast.walk(loop))
    inside = {n for s in loop.body for n in ast.walk(s)}
    changed: list[New] = []
    for store in run.trace.stores:
        if not isinstance(store.node, ast.Subscript) and store.node not in inside and any(each.node is loop for each in store.loops):
            changed += [o for o in store.receiver.instances() if not _is_meter(context, o)]
    for call in run.trace.calls:
        if call.method in _GROWS and call.node not in inside and any(each.node is loop for each in call.loops):
            changed += call.receiver.instances()
    if any(not made_under(o, within) for o in changed):
        return "a function that it calls changes what goes on from batch to batch"
    return ""


def _is_carried(context: Context, loop: ast.For, group: list[Write]) -> bool:
    """Whether one pass of a loop takes something from the one before it that nothing reads after the loop."""
    for write in group:
        if write.how == "last":
            if context.facts.after.definitions.exposed(loop, places_of(context, loop, group)):
                return True
        elif _read_inside(context, loop, (write,)) or (write.how == "object" and _outlives(context, loop, write.target)):
            return True
    return False


def _read_inside(context: Context, loop: ast.For, writes: Sequence[Write]) -> bool:
    """Whether a loop reads what it builds up, other than to add to it or to show it on a bar."""
    tree, run = context.tree, context.facts.after
    own = {n for w in writes for n in ast.walk(w.target)}
    for write in writes:
        if isinstance(write.node, ast.Assign):  # total = total + x
            own |= {n for n in ast.walk(write.node.value) if n not in set(ast.walk(write.added or write.node))}
    base = container(writes[0].target)
    for node in (n for s in loop.body for n in ast.walk(s)):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not run.scopes.same(node, base) or node in own:
            continue
        shown = (up.func for up in tree.ancestors(node) if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute))
        if not any(o.path.startswith("tqdm.") for f in shown for o in run.value(f.value).instances()):
            return True
    return False


def _grows_evenly(context: Context, loop: ast.For, found: LiveOut) -> bool:
    """Whether a list or array grows alike with each batch: one entry of it, or one for each of its samples."""
    if not found.hows & {"entries", "samples", "rows"} and not any(o.path == "list" for o in found.value.instances()):
        return True
    tree, run = context.tree, context.facts.after
    if len(found.writes) != 1 or any(up is not loop and isinstance(up, _BRANCHES) for up in _within(tree, found.writes[0].node, loop)):
        return False
    if found.hows == {"entries"}:
        return True
    write = found.writes[0]
    added: list[ast.expr] = [write.added] if write.added is not None else [a for a in ast.walk(write.node) if isinstance(a, ast.expr)]
    names = {n.id for e in added for n in ast.walk(e) if isinstance(n, ast.Name)}
    for statement in (n for s in reversed(loop.body) for n in ast.walk(s)):
        if isinstance(statement, ast.Assign) and names & {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}:
            added.append(statement.value)
            names |= {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    reshaped = any(isinstance(n, ast.Attribute) and n.attr in _RESHAPES for e in added for n in ast.walk(e))
    if write.added is not None and run.value(write.added).scale != "sample":
        return False
    return not reshaped


def _within(tree: Tree, node: ast.AST, loop: ast.For) -> Iterator[ast.AST]:
    for up in tree.ancestors(node):
        if up is loop:
            return
        yield up


def _is_meter(context: Context, obj: New) -> bool:
    return meter(context, obj) is not None or obj.path.startswith("torchmetrics.")


def _reads_batch_number(context: Context, loop: ast.For, asked: bool) -> bool:
    """Whether the number of a batch is read; with `--eval shard`, for more than to show it."""
    index = _index_node(context, loop)
    if index is None:
        return not isinstance(loop.target, ast.Tuple) and any(
            isinstance(n, ast.Call) and "enumerate" in context.facts.after.value(n.func).paths() for n in ast.walk(loop.iter)
        )
    tree, guards = context.tree, guards_of(context)
    for node in ast.walk(tree.function(loop)):
        if isinstance(node, ast.Name) and node.id == index.id and node is not index:
            around = [n for n in (tree.statement(node), *tree.ancestors(node)) if isinstance(n, ast.stmt)]
            if not asked or not any(guards.only_outputs(s) for s in around):
                return True
    return False


def _index_node(context: Context, loop: ast.For) -> ast.Name | None:
    run, iterates = context.facts.after, loop.iter
    while isinstance(iterates, ast.Call) and iterates.args and any(p.startswith("tqdm.") for p in run.value(iterates.func).paths()):
        iterates = iterates.args[0]
    if isinstance(iterates, ast.Call) and "enumerate" in run.value(iterates.func).paths() and isinstance(loop.target, ast.Tuple):
        first = loop.target.elts[0]
        return first if isinstance(first, ast.Name) else None
    return None


def _outlives(context: Context, loop: ast.For, target: ast.expr) -> bool:
    """Whether an object whose method a loop calls was made before the loop, and is neither a bar nor a tensor of the batch."""
    run = context.facts.after
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    value = run.value(target) if isinstance(target, ast.Name) else None
    if value is None or context.from_sharded_data(value) or any(o.path.startswith("tqdm") for o in value.instances()):
        return False
    return any(not made_under(o, set(ast.walk(loop))) for o in value.instances()) or not value.objs


def _may_normalise(context: Context) -> bool:
    return any(may_hold_batch_norm(context, model) for model in context.facts.models)


def _runs_trained_model(context: Context, call: Call) -> bool:
    """Whether a call runs a trained model or a copy of one, whose buffers follow its own rank's batches."""
    run = context.facts.after
    if context.facts.model_of(call.func) is not None:
        return True
    attributes = [v for o in call.func.instances() for v in run.of(o).values()]
    return any(o.path in _COPIES for v in (call.func, *attributes) for o in v.instances())


def normalised_models(context: Context, loop: ast.For) -> list[str] | None:
    """The names, before the loop, of the networks with batch norm that it runs; None where one has no name."""
    if not _may_normalise(context):
        return []
    run = context.facts.after
    out: list[str] = []
    for call in run.trace.calls:
        if not any(each.node is loop for each in call.loops) or not _runs_trained_model(context, call):
            continue
        objs = run.unwrap(call.func)
        places = [call.node.func, *(a for n in call.stack if isinstance(n, ast.Call) for a in n.args)]
        name = next(
            (
                ast.unparse(p)
                for p in places
                if isinstance(p, (ast.Name, ast.Attribute))
                and run.unwrap(run.value(p)) & objs
                and context.facts.is_edited(p)
                and context.tree.function(p) is context.tree.function(loop)
            ),
            None,
        )
        if name is None:
            return None
        if name not in out:
            out.append(name)
    return out
