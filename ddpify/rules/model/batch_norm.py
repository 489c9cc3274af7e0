"""What becomes of batch norm, which sees the samples of one rank: taken over all ranks, or each rank's own."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterable, Iterator

from ddpify.edits import Replace
from ddpify.facts import library
from ddpify.facts.collect import TrainedModel, first_order, is_read
from ddpify.facts.library.networks import is_library_model
from ddpify.facts.library.transformers import LANGUAGE_MODELS
from ddpify.facts.model import NOTHING, Call, Class, Lit, New, Obj, Part, Store, Value, outermost
from ddpify.facts.tree import calls_in, same
from ddpify.rules.base import Change, Finding, Safety
from ddpify.rules.context import Context
from ddpify.rules.model.weight_gradients import keeps_graph

CODE = "DDP201"
_NORMS = ("torch.nn.BatchNorm", "torch.nn.LazyBatchNorm", "torch.nn.modules.batchnorm.")
_NO_MODULES = ("torch.device", "torch.optim.", "torch.utils.data.", "torch.amp.", "torch.cuda.", "torch.distributions.")
# the models of torchvision and timm that have none
_WITHOUT = ("vit", "swin", "convnext", "alexnet", "vgg", "squeezenet", "deit", "beit", "mixer", "cait")
_TWICE = "batch norm can only use each rank's own samples here: SyncBatchNorm cannot be differentiated twice, as this model's gradients are"
_IN_LISTS = "the forward takes batch norm layers out of a list: SyncBatchNorm, put in the place of the network's own, would not be in there"
_AS_MODULES = "keep them in an nn.ModuleList or nn.ModuleDict, or accept each rank's own statistics: --sync-bn off"
_PLAIN = ("list", "tuple", "dict")
_EACH_RANKS = "use a norm over single samples in this model (GroupNorm, LayerNorm), or accept each rank's own statistics: --sync-bn off"


def findings(context: Context, model: TrainedModel, statement: ast.stmt) -> Iterator[Finding]:
    """What the owner of a wrapped model must know of its batch norm."""
    if may_hold_batch_norm(context, model):
        if _is_asked_for(context, model) and not sync(context, model):
            why, fix = (_TWICE, _EACH_RANKS) if _is_differentiated_twice(context, model) else (_IN_LISTS, _AS_MODULES)
            yield context.manual(CODE, statement, why, fix, level=Safety.REVIEW)
        else:
            yield context.manual(
                CODE,
                statement,
                "batch norm uses the statistics of all ranks' samples on GPUs, as one GPU did; on the CPU those of each rank"
                if sync(context, model)
                else "batch norm computes its statistics over each rank's samples, as DataParallel did over each device's",
                level=Safety.NOTE,
            )
        if sync(context, model):
            yield from _replaced(context, model, statement)
        if _forwards_twice(context, model):
            why = "this model runs twice before one backward call: with batch norm that needs torch 2.12 or newer"
            yield context.manual(CODE, statement, why, level=Safety.NOTE)


def _replaced(context: Context, model: TrainedModel, statement: ast.stmt) -> Iterator[Finding]:
    """The project's own classes of batch norm whose forward a SyncBatchNorm, put in their place, does not run."""
    for cls in dict.fromkeys(o.cls for o in _modules_of(context, model.objs) if _is_own_norm(context, o) and isinstance(o, New)):
        if cls is not None and context.facts.after.interpreter.find(cls, "forward") is not None:
            why = (
                f"`{cls.node.name}` has a forward of its own, which a SyncBatchNorm in its place does not run: the network would be another"
            )
            fix = "let it hold a batch norm layer in place of being one, or convert with --sync-bn off and each rank's own statistics"
            yield context.manual(CODE, statement, why, fix)


def _is_own_norm(context: Context, obj: Obj) -> bool:
    """Whether an object is batch norm of a class of the project."""
    bases = context.facts.after.interpreter.library_bases
    return isinstance(obj, New) and obj.cls is not None and any(b.startswith(_NORMS) for b in bases(obj.cls))


def of_untrained(context: Context) -> Iterator[Finding]:
    """Networks that are not trained, such as the target of a momentum encoder, but normalise batches in training mode."""
    run, models = context.facts.after, context.facts.models
    trained = {o for m in models for o in _modules_of(context, m.objs)}
    if not any(sync(context, m) for m in models):
        return
    switching = [c for c in run.trace.calls if c.method == "eval" or (c.method == "train" and c.args)]
    switched = {o for c in switching for o in _modules_of(context, c.receiver.objs)}
    batches = {t.batch.node for t in context.facts.loops if t.batch is not None}
    for node in dict.fromkeys(
        o.node
        for c in run.trace.calls
        if any(loop.node in batches for loop in c.loops) and any(map(context.from_sharded_data, c.args))
        for o in c.func.instances() - trained - switched
        if run.interpreter.is_module(o) and (o.cls is not None or is_library_model(o)) and any_holds_batch_norm(context, (o,))
    ):
        why = "this network is not trained, but in training mode: its batch norm uses the statistics of each rank's samples, on GPUs, too"
        yield context.manual(CODE, node, why, level=Safety.NOTE)


def tests_of_class(context: Context) -> Iterator[Change | Finding]:
    """Where training, or what comes after some of it, asks whether a layer is batch norm: one that is synchronized is of another class."""
    run, models = context.facts.after, [m for m in context.facts.models if sync(context, m)]
    if not models:
        return
    kinds = {k for c in run.trace.calls for k in _norms(context, _classes_in(context, c.func))}
    tests = {node: _classes_in(context, given) for node, given in _tests(context, models)}
    for node, own in tests.items():
        either = [n for n in _either(context, node) if n in tests] or [node]
        asked = own.union(*(tests[n] for n in either))
        if not _norms(context, own) or "torch.nn.SyncBatchNorm" in asked:
            continue
        given = node.args[1] if isinstance(node, ast.Call) else node.comparators[0]
        several = isinstance(node, ast.Compare) and isinstance(given, (ast.Tuple, ast.List, ast.Set))
        bases = run.interpreter.library_bases if isinstance(node, ast.Call) else lambda _: ()  # `type(x)` is no class that x derives from
        found = all(k in asked or (isinstance(k, Class) and asked.intersection(bases(k))) for k in kinds)
        if found and context.facts.is_edited(node) and (several or isinstance(node, ast.Call)):
            if not any(_norms(context, tests[n]) for n in either[: either.index(node)]):  # one of them is enough
                yield _asked_of_both(context, node, given, given.elts if several else [given])  # type: ignore[attr-defined]
            continue
        why = "batch norm that uses all ranks' statistics is a SyncBatchNorm, and none of these classes: this does not find it on GPUs"
        fix = f"test for both, where the layer is one of these: isinstance(..., ({ast.unparse(given)}, torch.nn.SyncBatchNorm))"
        yield context.manual(CODE, node, why, fix, level=Safety.REVIEW)


def _tests(context: Context, models: list[TrainedModel]) -> Iterator[tuple[ast.Call | ast.Compare, ast.expr]]:
    """The tests of what class something is, made in training, or of a batch norm layer that may be synchronized by then."""
    facts, makers = context.facts, {o.node for m in models for o in m.objs if isinstance(o, New)}
    norms = {o for m in models for o in _modules_of(context, m.objs) if _is_norm(context, o)}
    first = min(first_order(facts, m) for m in models)
    late = {c.node for c in facts.before.trace.calls if c.order > first and not makers & set(c.stack)}
    for call in facts.after.trace.calls:
        asked = call.node
        if not isinstance(asked, ast.Call) or not call.args:
            continue
        if any(loop.node in facts.training_loops for loop in call.loops) or (asked in late and norms & call.args[0].instances()):
            up = facts.tree_of(asked).parent[asked]
            if "isinstance" in call.func.paths() and len(asked.args) > 1:
                yield asked, asked.args[1]
            elif "type" in call.func.paths() and isinstance(up, ast.Compare) and up.left is asked:
                yield up, up.comparators[0]


def _classes_in(context: Context, given: ast.expr | Value) -> set[str | Class]:
    """The classes that a value is, or holds: those of libraries by their names."""
    run = context.facts.after
    value = given if isinstance(given, Value) else run.value(given)
    values = (value, run.interpreter.element(value))
    own: set[str | Class] = {o for v in values for o in v.objs if isinstance(o, Class)}
    return own.union(*(v.paths() for v in values))


def _norms(context: Context, classes: set[str | Class]) -> set[str | Class]:
    """Those of some classes that are batch norm."""
    bases = context.facts.after.interpreter.library_bases
    return {k for k in classes if any(b.startswith(_NORMS) for b in ((k,) if isinstance(k, str) else bases(k)))}


def _is_norm(context: Context, obj: Obj) -> bool:
    """Whether an object is a batch norm layer, of torch or of a class of the project."""
    return getattr(obj, "path", "").startswith(_NORMS) or _is_own_norm(context, obj)


def _either(context: Context, test: ast.AST) -> list[ast.expr]:
    """The tests of one thing of which one must hold, as in `isinstance(m, A) or isinstance(m, B)`: a test, and those beside it."""
    up = context.facts.tree_of(test).parent[test]
    beside = up.values if isinstance(up, ast.BoolOp) and isinstance(up.op, ast.Or) else [test]
    return [n for n in beside if isinstance(n, ast.Call) and isinstance(test, ast.Call) and n.args and same(n.args[0], test.args[0])]


def _asked_of_both(context: Context, node: ast.expr, given: ast.expr, classes: list[ast.expr]) -> Change:
    """The class that batch norm has on GPUs, beside those it has elsewhere."""
    named = next((c.value for c in classes if isinstance(c, ast.Attribute)), None)
    other = f"{ast.unparse(named) if named is not None else 'torch.nn'}.SyncBatchNorm"
    why = "batch norm over all ranks' samples is a SyncBatchNorm, which this finds, too"
    text = ", ".join(f"{{{i}}}" for i in range(len(classes)))
    edit = Replace(given, f"({text}, {other})", tuple(classes))
    return Change(CODE, why, context.tree.shown, node, (edit,), () if named is not None else ("import torch",))


def may_hold_batch_norm(context: Context, model: TrainedModel) -> bool:
    """Whether batch norm layers may be inside a trained model: a file's is like the one that the script makes, if it makes any."""
    made = [o for o in model.objs if not is_read(context.facts.before, o)]
    return any_holds_batch_norm(context, made or model.objs)


def any_holds_batch_norm(context: Context, objs: Iterable[Obj]) -> bool:
    """Whether batch norm layers may be inside modules: made within one or held by it, or it is, or holds, a library's model."""
    makers = {o.node for o in objs if isinstance(o, New)}
    within = [c for c in context.facts.after.trace.calls if makers & set(c.stack)]
    if any(p.startswith(_NORMS) for c in within for p in c.func.paths()):
        return True
    models = {o for c in within for o in c.result.instances() if is_library_model(o)}
    modules = [*_modules_of(context, objs)]
    return any(_batch_normed(context, o) for o in models) or any(_may_be_normed(context, o) or _runs_unknown(context, o) for o in modules)


def _runs_unknown(context: Context, obj: New | Part) -> bool:
    """Whether a module calls a part of its own that nothing is known of, as one that was made by a class named in the settings."""
    if not isinstance(obj, New) or obj.cls is None:
        return False
    functions = (f for f in obj.cls.node.body if isinstance(f, ast.FunctionDef) and f.args.args)
    called = {
        c.func.attr
        for f in functions
        for c in calls_in(f)
        if isinstance(c.func, ast.Attribute) and isinstance(c.func.value, ast.Name) and c.func.value.id == f.args.args[0].arg
    }
    run = context.facts.after
    stored = (s.node.attr for s in run.trace.stores if isinstance(s.node, ast.Attribute) and obj in s.receiver.objs and not s.value.objs)
    return any(name in called and not run.attribute(obj, name).objs for name in stored)


def _may_be_normed(context: Context, obj: New | Part) -> bool:
    """Whether a module is batch norm, or a library's model that may hold some."""
    path = getattr(obj, "path", "")
    if _is_norm(context, obj):
        return True
    own = isinstance(obj, New) and obj.cls is not None
    return not own and not path.startswith("torch.nn.") and path not in ("list", "dict", "tuple") and _batch_normed(context, obj)


def _batch_normed(context: Context, obj: Obj) -> bool:
    """Whether a library's model, or the one that something is a part of, may hold batch norm, by its name."""
    path = str(getattr(outermost(obj), "path", ""))
    package, name = path.partition(".")[0], path.rpartition(".")[2].lower()
    if package in LANGUAGE_MODELS:
        return any(n in name for n in ("resnet", "mobilenet", "regnet", "levit", "efficientnet", "mobilevit"))
    if package == "einops":
        return False
    if package == "timm" and isinstance(obj, New):
        calls = context.facts.after.calls(obj.node)
        asked = {str(o.value).lower() for c in calls for v in (c.argument(0, "model_name"),) if v for o in v.objs if isinstance(o, Lit)}
        return not asked or not all(n.startswith(_WITHOUT) for n in asked)
    return package != "torchvision" or not name.startswith(_WITHOUT) or name.endswith("_bn")


def sync(context: Context, model: TrainedModel) -> bool:
    """Whether to take batch norm over all ranks, as is asked for; not where that would fail, or not reach what runs."""
    return _is_asked_for(context, model) and not (_is_differentiated_twice(context, model) or _is_taken_from_lists(context, model))


def synced_forwards(context: Context) -> set[ast.AST]:
    """The calls under which batch norm waits for all ranks: forwards in training mode of models that take it over all of them."""
    run, out = context.facts.after, set[ast.AST]()
    for model in context.facts.models:
        switches = [c for c in run.trace.calls if c.method in ("train", "eval") and run.unwrap(c.receiver) & model.objs]
        for call in run.trace.calls if sync(context, model) else ():
            if context.facts.model_of(call.func) is model:
                mode = max((c for c in switches if c.order < call.order), key=lambda c: c.order, default=None)
                off = mode is not None and (mode.method == "eval" or any(isinstance(o, Lit) and o.value is False for o in _given(mode)))
                out.update(() if off else (call.node, *call.stack))
    return out


def _given(call: Call) -> frozenset[Obj]:
    """What `model.train(mode)` is given."""
    return (call.argument(0, "mode") or NOTHING).objs


def _is_taken_from_lists(context: Context, model: TrainedModel) -> bool:
    """Whether batch norm layers run that are taken out of a list of the network, which knows nothing of layers put in their place."""
    run = context.facts.after
    lists = [o for o in _modules_of(context, model.objs) if getattr(o, "path", "") in _PLAIN]
    kept = {o for held in lists for o in run.parts(held) if _is_norm(context, o)}
    return any(kept & c.func.objs for c in run.trace.calls if isinstance(c.node.func, (ast.Name, ast.Subscript)))


def _is_differentiated_twice(context: Context, model: TrainedModel) -> bool:
    """Whether a gradient of what a model gives is itself differentiated, as that of a gradient penalty is."""
    run = context.facts.after
    for call in run.calls_of("torch.autograd.grad"):
        outputs, inputs = (call.argument(i, name) or NOTHING for i, name in enumerate(("outputs", "inputs")))
        after, before = ({*v.of_kind("forward"), *run.interpreter.element(v).of_kind("forward")} for v in (outputs, inputs))
        if keeps_graph(call) and any(pair[0] in model.objs for pair in after - before):
            return True
    return False


def _is_asked_for(context: Context, model: TrainedModel) -> bool:
    """Whether batch norm is to be taken over all ranks: an option says so, or a single-GPU original did."""
    paths = {p for c in context.facts.before.trace.calls for p in c.func.paths()}
    if model.wrapped or paths & {"torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.convert_syncbn_model"}:
        return False  # the script decides so itself
    asked = context.options.sync_bn
    if asked != "auto":
        return asked == "on"
    return _synced_by_replicas(context, model) if _ran_on_several(context, model) else may_hold_batch_norm(context, model)


def _ran_on_several(context: Context, model: TrainedModel) -> bool:
    """Whether the original may run a model, or a part of it, on several GPUs: not where a DataParallel is around other networks only."""
    run = context.facts.before
    wrapped = [c.argument(0, "module") or NOTHING for c in run.calls_of(library.DATAPARALLEL)]
    around = run.around(model.objs)
    return any(not v.objs or around & run.around(run.unwrap(v)) for v in wrapped)


def _synced_by_replicas(context: Context, model: TrainedModel) -> bool:
    """Whether batch norm of the project's own has the statistics of all replicas that a DataParallel makes, and tells it of."""
    run = context.facts.before
    return any(replication(context)) and any(run.interpreter.is_synced_norm(o) for o in _modules_of(context, model.objs))


def replication(context: Context) -> Iterator[Store]:
    """Where a DataParallel is given another way to make its replicas, as a batch norm needs which has their statistics in common."""
    stores = context.facts.before.stores_as.get("replicate", ())
    return (s for s in stores if library.DATAPARALLEL in s.receiver.kinds())


def test(context: Context, model: TrainedModel, name: str) -> str:
    """Under which condition a model's batch norm is taken over all ranks; none where it always is."""
    tests = [] if context.options.level or context.apex_ddp else [f"next({name}.parameters()).is_cuda"]  # there are no others then
    if context.options.sync_bn == "auto" and _synced_by_replicas(context, model):
        part = "part" if name != "part" else "module"
        tests.append(f'any(hasattr({part}, "{library.OF_REPLICAS}") for {part} in {name}.modules())')
    return " and ".join(tests)


def converted(context: Context, model: TrainedModel, name: str) -> str:
    """The statement that takes a model's batch norm over all ranks, on GPUs."""
    tested, code = test(context, model, name), f"{name} = torch.nn.SyncBatchNorm.convert_sync_batchnorm({name})\n"
    return f"if {tested}:\n    {code}" if tested else code


def _forwards_twice(context: Context, model: TrainedModel) -> bool:
    """Whether one loss comes from two forwards of a model, which are not those of the two branches of an `if`."""
    for loop in context.facts.loops:
        nodes = {pair[1] for pair in loop.loss.of_kind("forward") if pair[0] in model.objs}
        if any(not _apart(context, a, b) for a, b in itertools.combinations(nodes, 2)):
            return True
    return False


def _apart(context: Context, first: ast.AST, second: ast.AST) -> bool:
    """Whether two nodes stand in the two branches of one `if`, or of one `a if test else b`."""
    if context.facts.tree_of(second) is not context.facts.tree_of(first):
        return False
    ways, others = (dict(_branches(context, node)) for node in (first, second))
    return any({ways[up], others[up]} == {"body", "orelse"} for up in ways.keys() & others.keys())


def _branches(context: Context, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The choices around a node, with the name of the branch of each that it stands in; empty for the test."""
    for child, up in itertools.pairwise((node, *context.facts.tree_of(node).ancestors(node))):
        if isinstance(up, ast.If):
            yield up, "body" if child in up.body else "orelse" if child in up.orelse else ""
        elif isinstance(up, ast.IfExp):
            yield up, "body" if child is up.body else "orelse" if child is up.orelse else ""


def _is_setting(context: Context, obj: Obj) -> bool:
    """Whether an object is no module: a device, an optimizer, a loader, of an own class that is none, of the standard library, or a part.

    What the standard library unpickles, copies or imports may be anything.
    """
    obj = outermost(obj)
    if not isinstance(obj, New) or obj.cls is not None:
        return isinstance(obj, New) and not context.facts.after.interpreter.is_module(obj)
    root = obj.path.partition(".")[0]
    standard = root in sys.stdlib_module_names and root not in ("pickle", "copy", "importlib", "functools")
    return standard or obj.path.startswith(_NO_MODULES) or context.facts.after.is_optimizer(obj)


def _modules_of(context: Context, objs: Iterable[Obj]) -> Iterator[New | Part]:
    """Some modules and all modules within them; their settings, what the standard library made, and parameters of a layer are none."""
    todo, seen = list(objs), set[Obj]()
    while todo:
        obj = todo.pop()
        parameter = isinstance(obj, Part) and isinstance(obj.of, New) and obj.of.path.startswith("torch.nn.")
        if obj not in seen and isinstance(obj, (New, Part)) and not parameter and not _is_setting(context, obj):
            seen.add(obj)
            yield obj
            todo += context.facts.after.parts(obj)
            if getattr(obj, "path", "") in library.CONTAINERS:  # of parts of another network: `*list(net.children())[:-1]`
                todo += [o for v in context.facts.after.of(obj).values() for o in v.of_kind("parameters") if isinstance(o, New)]
