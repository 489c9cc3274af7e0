"""Why a loop that evaluates cannot be sharded over the ranks: each rank must be able to run its batches alone, and add up afterwards."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence, Set

from ddpify.facts import library
from ddpify.facts.effects import Effects
from ddpify.facts.model import Call, New, Store
from ddpify.facts.one_branch import lone_branch
from ddpify.facts.tree import Tree, inside, names_in, same, structure, walk
from ddpify.facts.writes import Write, container
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop.counted_elsewhere import counted_elsewhere
from ddpify.rules.loop.decisions import needs_one_answer
from ddpify.rules.loop.live_out import LiveOut, is_reduced, live_out, made_under, places_of, written
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
    if asks_all_ranks(context, loop) or _runs_collective(context, loop):
        return "what it calls asks all ranks, as in training: each needs as many batches"
    calls = context.facts.after.trace.calls
    if not any(c.method == "eval" and context.facts.model_of(c.receiver) is not None for c in calls) and _may_normalise(context):
        return "the model may not be in evaluation mode"
    if normalised_models(context, loop) is None:
        return "the evaluated model has no name here"
    return ""


def _in_body(context: Context, effects: Effects, loop: ast.For) -> str:
    """What a loop does at each batch that each rank would do for other batches: it ends early, shows something, counts batches."""
    run, tree = context.facts.after, context.tree
    inside = [n for s in loop.body for n in walk(s)]
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
        after = any(x.target is group[0].target for x in live) or is_reduced(context, loop, group)
        if not after and _is_carried(context, loop, group):
            return f"`{ast.unparse(group[0].target)}` depends on the batch before"
    if any(c.method.startswith("register_") and c.method.endswith("_hook") for c in context.facts.after.trace.calls):
        return "hooks may keep what they see"
    return next(filter(None, (_not_added_up(context, loop, variable) for variable in live)), "")


def _not_added_up(context: Context, loop: ast.For, variable: LiveOut) -> str:
    """Why a variable that is live after a loop cannot be summed or gathered over the ranks; empty where it can."""
    instances, loader = variable.value.instances(), loader_of(context, loop)
    if _read_inside(context, loop, variable.writes) or not _grows_evenly(context, loop, variable):
        return f"`{variable.name}` may be more than a running sum"
    if "last" not in variable.hows and (variable.hows != {"object"} or any(_is_meter(context, o) for o in instances)):
        if instances and all(o.path.startswith(library.METRICS) for o in instances):
            return ""
        answer = reduce(context, loop, variable, loader, sharded=True)
        if answer is not None and not answer.problem and not answer.edits:
            return "its loader has no name" if variable.hows == {"samples"} and not loader else ""
    return f"`{variable.name}` may be more than a running sum"


def _in_calls(context: Context, loop: ast.For) -> str:
    """Whether a function that a loop calls changes an object from before the loop."""
    trace, within = context.facts.after.trace, inside(loop)
    body = {n for s in loop.body for n in walk(s)}
    changes: list[Call | Store] = [s for s in trace.stores if not isinstance(s.node, ast.Subscript)]
    changes += [c for c in trace.calls if c.method in _GROWS]
    called = [change for change in changes if change.node not in body and any(each.node is loop for each in change.loops)]
    changed = [o for change in called for o in change.receiver.instances() if isinstance(change, Call) or not _is_meter(context, o)]
    counts = not all(made_under(o, within) for o in changed) or any(counted_elsewhere(context, loop))
    return "a function that it calls changes what depends on the batch before" if counts else ""


def asks_all_ranks(context: Context, loop: ast.For) -> bool:
    """Whether a loop calls what asks all ranks, as in training: to divide a loss by an amount of all, or to decide alike."""
    run, feeding = context.facts.after, set(context.facts.feeding)
    under = (c for c in run.trace.calls if c.result.scale == "weighted" and any(each.node is loop for each in c.loops))
    if any(other.result.batches() & feeding for c in under for other in run.calls(c.node) if c.node not in inside(loop)):
        return True
    decided = {d.node for d in run.trace.decisions if any(each.node is loop for each in d.loops)} - inside(loop)
    others = (d for d in run.trace.decisions if d.node in decided and all(e.element.batches() <= feeding for e in d.loops))
    return any(isinstance(d.node, (ast.If, ast.While)) and needs_one_answer(context, d.node, d, d.test) for d in others)


def _runs_collective(context: Context, loop: ast.For) -> bool:
    """Whether a collective runs in a loop: all ranks pad alike, or a converted script agrees on a decision."""
    calls = context.facts.after.trace.calls
    return any(c.func.paths() & library.COLLECTIVES and any(each.node is loop for each in c.loops) for c in calls)


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
    own = {n for w in writes for n in walk(w.target)}
    for write in writes:
        if isinstance(write.node, ast.Assign) and write.added is not None:  # total = total + x
            own |= inside(write.node.value) - inside(write.added)
    base = container(writes[0].target)
    for node in (n for s in loop.body for n in walk(s)):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not run.scopes.same(node, base) or node in own:
            continue
        shown = (up.func for up in tree.ancestors(node) if isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute))
        if not any(o.path.startswith("tqdm.") for f in shown for o in run.value(f.value).instances()):
            return True
    return False


def _grows_evenly(context: Context, loop: ast.For, variable: LiveOut) -> bool:
    """Whether a list or array grows alike with each batch: one entry of it, or one for each of its samples."""
    if not variable.hows & {"entries", "samples", "rows"} and not any(o.path == "list" for o in variable.value.instances()):
        return True
    write = variable.writes[0]
    around = itertools.takewhile(lambda up: up is not loop, context.tree.ancestors(write.node))
    if len(variable.writes) != 1 or any(isinstance(up, _BRANCHES) for up in around):
        return False
    if variable.hows == {"entries"}:
        return True
    per_sample = write.added is None or context.facts.after.value(write.added).scale == "sample"
    return per_sample and not _reshaped(loop, write.added or write.node)


def _reshaped(loop: ast.For, node: ast.AST) -> bool:
    """Whether what a loop adds is given other rows on its way there."""
    parts, names = list(walk(node)), names_in(node)
    for statement in (n for s in reversed(loop.body) for n in walk(s)):
        if isinstance(statement, ast.Assign) and any(names & names_in(target) for target in statement.targets):
            parts += walk(statement.value)
            names |= names_in(statement.value)
    return any(isinstance(n, ast.Attribute) and n.attr in _RESHAPES for n in parts)


def _is_meter(context: Context, obj: New) -> bool:
    return meter(context, obj) is not None or obj.path.startswith(library.METRICS)


def _reads_batch_number(context: Context, loop: ast.For, asked: bool) -> bool:
    """Whether the number of a batch is read; with `--eval shard`, for more than to show it."""
    index = _index_node(context, loop)
    if index is None:
        return not isinstance(loop.target, ast.Tuple) and any(
            isinstance(n, ast.Call) and "enumerate" in context.facts.after.value(n.func).paths() for n in walk(loop.iter)
        )
    return any(not asked or not only_shown(context, context.tree, n) for n in context.facts.after.definitions.uses(index))


def only_shown(context: Context, tree: Tree, node: ast.AST) -> bool:
    """Whether an expression stands in a statement that does nothing but output."""
    return any(isinstance(up, ast.stmt) and guards_of(context).only_outputs(up) for up in tree.ancestors(node))


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
    instances = value.instances()
    if instances and all(o.path.startswith(library.METRICS) for o in instances):
        return False  # it adds up over the ranks by itself
    return any(not made_under(o, inside(loop)) for o in instances) or not value.objs


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
        places = [call.node.func, *(a for n in call.stack if isinstance(n, ast.Call) for a in n.args)]
        named = [p for p in places if isinstance(p, (ast.Name, ast.Attribute)) and run.unwrap(run.value(p)) & run.unwrap(call.func)]
        here = [p for p in named if context.facts.is_edited(p) and context.tree.function(p) is context.tree.function(loop)]
        if not here:
            return None
        out.append(ast.unparse(here[0]))
    return list(dict.fromkeys(out))


def test_of_model(context: Context, loop: ast.For, model: str) -> str:
    """The test under which alone a loop runs a model that one branch makes, so that there may be none; empty where there is one."""
    tree, function = context.tree, context.tree.function(loop)
    target = ast.parse(model, mode="eval").body
    named = [n for n in tree.of(ast.Name, ast.Attribute) if same(n, target)]
    stores = [n for n in named if isinstance(getattr(n, "ctx", None), ast.Store)]
    own = [n for n in stores if isinstance(n, ast.Attribute) or tree.function(n) is function]
    own = own or [n for n in stores if tree.function(n) is tree.root]
    if not own or any(lone_branch(tree, n, own) is None for n in own):
        return ""
    within = inside(loop)
    tests = [_test_around(tree, n, within) for n in named if n in within]
    first = tests[0] if tests else None
    changed = {n.id for n in within if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    if first is None or any(t is None or structure(t) != structure(first) for t in tests):
        return ""
    return "" if names_in(first) & changed or any(isinstance(n, ast.Call) for n in walk(first)) else context.source(first)


def _test_around(tree: Tree, node: ast.AST, within: Set[ast.AST]) -> ast.expr | None:
    """The test of the outermost branch around a node among those within a loop, where it lies in the first branch."""
    path = [s for s in tree.path(node) if s in within]
    return next((up.test for up in reversed(path) if isinstance(up, ast.If) and any(s in up.body for s in path)), None)
