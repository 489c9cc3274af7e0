"""Use the model inside the wrapper where the wrapper will not do.

What it does: own attributes and methods (also by `hasattr` and `setattr`), `state_dict`, `load_state_dict`, `parameters` and evaluation of
    a wrapped model go through `.module`; a call that only evaluates or reads the model is handed `model.module`; a whole-object save
    saves `model.module`, in a DataParallel if the original saved one and reads none back. Checkpoints keep the keys that the original
    wrote: a DataParallel original keeps its `module.` prefix, which a load into a model that is not wrapped takes off, and a save of one
    puts on.
Why: the wrapper has no attributes of the model's, its state dict prefixes every key, and a forward past the training ranks hangs them.
Safety: NOTE where a prefix stays; MANUAL where a name holds the wrapped model and the plain one.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Drop, Replace
from ddpify.facts import library, optional_wraps, pickled
from ddpify.facts.model import Class, Ext, Lit, New, Tup, outermost
from ddpify.facts.tree import Forest, argument, arguments, children, last_name, names_read, names_stored, same, structure, walk
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.model import dataparallel, evaluated_inputs, saved_copies, shown_runs, unseen_reads

CODE = "DDP203"
TITLE = "use the model inside the wrapper"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "what the wrapper passes on",
        "model.train()\n"
        "model.zero_grad()\n"
        "weights = sum(p.numel() for p in model.parameters())\n",
        frame="epoch",
    ),
    Example(
        "a state dict of something else",
        "settings = optimizer.state_dict()\n",
        frame="epoch",
    ),
    Example(
        "a model that is not trained",
        "teacher = Net()\n"
        "labels = torch.zeros(teacher.classes)\n",
        frame="end",
    ),
    Example(
        "a question about something that is no model",
        'seeded = hasattr(loader, "generator")\n',
        frame="epoch",
    ),
    Example(
        "an attribute of something that is no model",
        "samples = len(loader.dataset)\n",
        frame="epoch",
    ),
    Example(
        "a choice between two things that are no model",
        "data = test_set if args.gpu else train_set\n",
        frame="epoch",
    ),
    Example(
        "a checkpoint",
        'torch.save(model.state_dict(), "last.pt")\n',
        "if rank == 0:\n"
        '    torch.save(model.module.state_dict(), "last.pt")\n',
        frame="epoch",
    ),
    Example(
        "an attribute of the model's own",
        "labels = torch.zeros(model.classes)\n",
        "labels = torch.zeros(model.module.classes)\n",
        frame="epoch",
    ),
    Example(
        "a question about an attribute of the model's own",
        'if hasattr(model, "classes"):\n'
        "    classes = model.classes\n",
        'if hasattr(model.module, "classes"):\n'
        "    classes = model.module.classes\n",
        frame="epoch",
    ),
    Example(
        "a choice between what is the same here",
        "state = model.module.state_dict() if args.gpu else model.state_dict()\n",
        "state = model.module.state_dict()\n",
        frame="epoch",
    ),
    Example(
        "an evaluation",
        "with torch.no_grad():\n"
        "    scores = [model(x) for x, y in test_loader]\n",
        "with torch.no_grad():\n"
        "    scores = [model.module(x) for x, y in test_loader]\n",
        frame="epoch",
    ),
)  # fmt: skip

# What works on the wrapper as it does on the model.
_SAME = frozenset(
    """
        train eval to cuda cpu half float double zero_grad requires_grad_ parameters buffers apply training forward no_sync module
        register_comm_hook join __call__ share_memory
    """.split()
)


_REACHED = frozenset("train training apply forward __call__ no_sync module register_comm_hook join".split())
"""What of `_SAME` the wrapper has itself or asks the model inside for, so that a model's own is reached."""


_READ = frozenset("state_dict load_state_dict get items keys values".split()) | _SAME - {
    "forward"
}  # what reads an object, and does not run it


_SETTLED = frozenset(["len", "torch.cuda.is_available", "torch.cuda.device_count"])  # calls that answer alike wherever they stand
_OF_TEXT = frozenset(["startswith", "endswith", "lower", "upper"])  # methods that do so


_WRAPPING = library.WRAPPERS | {"torch.nn.Module"}


_INSIDE = "DDP hides the model's attributes and adds `module.` to the keys of its state dict: use the model inside"
_NO_WRAPPER = "the model is not in a wrapper here any more"


_EVALUATION = "evaluation calls the model inside DDP, whose forward would synchronize the ranks"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Edit attribute reads, evaluation and saves of wrapped models in the entry."""
    facts = context.facts
    yield from saved_copies.copies(context)
    yield from evaluated_inputs.moved(context)
    yield from _saved_wrapped(context)
    yield from unseen_reads.unseen_reads(context, _SAME)
    copied = saved_copies.of_objects(context) | shown_runs.copies(context)
    for node in context.tree.nodes():
        if node in facts.unwrapped_arguments and isinstance(node, ast.expr):
            if isinstance(context.tree.parent[node], ast.Assign) and node not in facts.pickled:
                yield _model_of(context, node, node, "the other branch takes the model inside the wrapper, too")
            else:
                yield from _passed(context, node, copied)
        for read in _as_a_list(node):
            wrapped = facts.wrapped(facts.after.value(read))
            if wrapped and read not in facts.unwrapped_arguments:
                yield _model_of(context, read, read, "DDP cannot be iterated, indexed or measured by len() like the model inside")
            elif wrapped is None:
                yield _either(context, read)
        for shown in _as_text(context, node):
            if facts.wrapped(facts.after.value(shown)) and shown not in facts.unwrapped_arguments:
                yield _model_of(context, shown, shown, "this is the text of the model, not of its wrapper")
        if isinstance(node, ast.Attribute):
            yield from _attribute(context, node)
        elif isinstance(node, ast.Call):
            yield from _call(context, node)
    for tree in facts.trees.values():
        for node in tree.of(ast.Attribute):
            if not facts.is_edited(node) and _reads_wrapper(context, node):
                yield context.manual(CODE, node, _NO_WRAPPER, "leave out `.module`")


def _model_of(context: Context, shown: ast.expr, wrapper: ast.expr, why: str) -> Change:
    """The model in the place of its wrapper."""
    return Change(CODE, why, context.tree.shown, shown, (Replace(wrapper, "{0}.module", (wrapper,)),))


def _passed(context: Context, node: ast.expr, copied: dict[ast.expr, str]) -> Iterator[Change | Finding]:
    """The model in the place of a wrapper that is handed to a call that does not train."""
    facts, tree, run = context.facts, context.tree, context.facts.after
    parent = tree.parent[node]
    saved = node in facts.pickled or (isinstance(parent, ast.Call) and "torch.save" in run.value(parent.func).paths())
    wrapped = saved and library.DATAPARALLEL in facts.before.value(node).kinds() and not _in_unwrapped_branch(context, node)
    if wrapped and node not in copied and (written := _saved_wrapper(context, node)):
        why = "the file holds the model in a DataParallel, as the original wrote it; saving `.module` alone writes the plain model"
        yield Change(CODE, why, tree.shown, node, (Replace(node, written, (node,)),), level=Safety.NOTE)
        return
    optional = wrapped and optional_wraps.is_optional(facts, facts.before.value(node))
    if wrapped and not optional:
        why = "the original saved the DataParallel object itself; this saves the model inside, which loads without any wrapper"
        yield context.manual(CODE, node, why, "make sure that what loads this file expects the plain model", level=Safety.REVIEW)
    if node not in copied and isinstance(parent, (ast.Call, ast.keyword)) and _hands_on_keys(context, node):
        kept, chosen = _optional(context, node)
        if kept:
            yield _keys_as_written(context, node, chosen)
            return
    edit = Replace(node, copied.get(node, "{0}").replace("{0}", "{0}.module"), (node,))
    imports = ("import copy",) if node in copied else ()
    why = "nothing is trained in this call: it gets the model inside DDP, whose forward would synchronize the ranks"
    if node in facts.pickled:
        why = "the model inside DDP is saved: the file loads without a process group"
    if optional:
        why = "whether the original saved a DataParallel depended on an option; the file holds the plain model, as that of one GPU"
    yield Change(CODE, why, tree.shown, node, (edit,), imports, level=Safety.NOTE if optional else Safety.SAFE)


def _saved_wrapper(context: Context, model: ast.expr) -> str:
    """The model inside `{0}` in a DataParallel where the original had one; empty if that is not known, or if a model that is read back
    may be in one where it is trained."""
    run, tree = context.facts.before, context.facts.tree_of(model)
    wrappers = [o for o in run.value(model).instances() if o.path == library.DATAPARALLEL]
    calls = (call for call in run.trace.calls if call.method not in _READ)
    called = {outermost(o) for call in calls for o in call.func.objs}
    called |= set(map(outermost, context.facts.trained))
    texts = {ast.unparse(o.node.func) if isinstance(o.node, ast.Call) and context.facts.tree_of(o.node) is tree else "" for o in wrappers}
    wrapping = (argument(o.node, 0, "module") for o in wrappers if isinstance(o.node, ast.Call))
    inside = {root for inner in wrapping if inner is not None for root in dataparallel.read_back(context, inner)}
    if any(isinstance(o, New) and o.path == "torch.load" for o in called - inside) or len(texts) > 1:
        return ""
    (text,) = texts
    imported = {
        a.asname or a.name.partition(".")[0] for s in tree.root.body if isinstance(s, (ast.Import, ast.ImportFrom)) for a in s.names
    }
    if text.partition(".")[0] not in imported:
        return ""
    written = f"{text}({{0}}.module)"
    if len(wrappers) == len(run.value(model).objs):
        return written
    asked = _question(context, model)
    return f"{written} if {ast.unparse(asked.test)} else {{0}}.module" if asked else ""


def _hands_on_keys(context: Context, model: ast.expr) -> bool:
    """Whether a call is handed a model for its keys, which may carry the prefix of DataParallel, and runs it nowhere."""
    run = context.facts.before
    call = next(up for up in context.tree.ancestors(model) if isinstance(up, ast.Call))
    inside = [c for c in run.trace.calls if call in c.stack]
    if any(context.facts.model_of(c.func) is not None for c in inside):
        return False
    keys = (c.node for c in inside if c.method in ("state_dict", "load_state_dict") and library.DATAPARALLEL in c.receiver.kinds())
    named = (n.func if isinstance(n, ast.Call) else None for n in keys)
    return any(n is None or not optional_wraps.comes_out(context.facts, n, run.value(model)) for n in named)


def _call(context: Context, node: ast.Call) -> Iterator[Change | Finding]:
    """Calls of a wrapped model in evaluation, and calls that ask which class it is of."""
    facts, run = context.facts, context.facts.after
    yield from _by_name(context, node)
    if node not in context.training and node in facts.prefixed and any(facts.wrapped(run.value(a)) for a in node.args):
        why = (
            "checkpoints keep the `module.` prefix of DataParallel, as the original wrote them; passing `.module` instead writes plain keys"
        )
        yield context.manual(CODE, node, why, level=Safety.NOTE)
    if _asks_for_names_elsewhere(context, node):
        why = "names keep the `module.` prefix that DataParallel gave them; passing `.module` instead gives plain ones"
        yield context.manual(CODE, node, why, level=Safety.NOTE)
    if "isinstance" in run.value(node.func).paths() and len(node.args) == 2 and facts.wrapped(run.value(node.args[0])) is not False:
        yield from _type_test(context, node.args[1])
    if _asks_the_class(context, node) and facts.wrapped(run.value(node.args[0])):
        yield _model_of(context, node.args[0], node.args[0], "this asks for the class of the model, not of its wrapper")
    if node in context.training or not run.calls(node):
        return
    called = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "forward" else node.func
    wrapped = facts.wrapped(run.value(called))
    if wrapped:
        yield _model_of(context, node, called, _EVALUATION)
    elif wrapped is None:
        yield _either(context, called)


def _asks_for_names_elsewhere(context: Context, node: ast.Call) -> bool:
    """Whether a call hands on a wrapped model to a module that is not edited, for its names, which carry the prefix of DataParallel."""
    facts = context.facts
    if node in context.training or node not in facts.naming or not any(facts.wrapped(facts.after.value(a)) for a in node.args):
        return False
    asked = (c.node for c in facts.before.trace.calls if c.method in library.NAMING_METHODS and node in c.stack)
    return not any(map(facts.is_edited, asked))


def _saved_wrapped(context: Context) -> Iterator[Finding]:
    """Whole objects that are saved with a wrapped model in them, which is trained out of there, or gets there in a way not seen."""
    for node in dict.fromkeys(call.node for call in pickled.saves(context.facts.after)):
        why = "the saved object contains the DDP wrapper: what loads the file needs a process group"
        yield context.manual(CODE, node, why, "save the model itself, model.module, or its state_dict()")
    wrapped_before = {call.node for call, _ in pickled.keys(context.facts.before)}
    for node in dict.fromkeys(call.node for call, _ in pickled.keys(context.facts.after) if call.node not in wrapped_before):
        why = "a model in this module is in a DDP wrapper, which puts `module.` into its keys"
        yield context.manual(CODE, node, why, "give the module the model itself, model.module")


def _either(context: Context, node: ast.expr, prefixed: bool = False) -> Change | Finding:
    """The model itself where a name may hold it with or without a wrapper; `prefixed`: the original's, too, may have had one."""
    if prefixed or any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)) for n in walk(node)):
        text = ast.unparse(node)
        return context.manual(
            CODE,
            node,
            f"`{text}` may be wrapped in DDP here or not, depending on the way taken: `.module` fails where it is not",
            f"{text}.module where it is wrapped",
        )
    edit = Replace(node, 'getattr({0}, "module", {0})', (node,))
    return Change(CODE, "the model is wrapped on one way through the script only", context.tree.shown, node, (edit,))


def _as_a_list(node: ast.AST) -> list[ast.expr]:
    """What a node goes through, counts or indexes."""
    if isinstance(node, (ast.For, ast.comprehension)):
        return [node.iter]
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return [node.value]
    ordering = ("len", "list", "enumerate", "reversed", "tuple", "zip", "iter", "next")
    return node.args if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ordering else []


def _as_text(context: Context, node: ast.AST) -> list[ast.expr]:
    """What a node makes text of: `f"{model}"`, `"%s" % model`."""
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod):
        return []
    formats = (o for o in context.facts.after.value(node.left).objs if isinstance(o, Lit) and isinstance(o.value, str))
    given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    return given if any(formats) else []


def _by_name(context: Context, node: ast.Call) -> Iterator[Change | Finding]:
    """`hasattr(model, name)` and `setattr(model, name, value)` mean the model's own attribute."""
    facts = context.facts
    if len(node.args) < 2 or not facts.after.value(node.func).paths() & {"hasattr", "setattr"}:
        return
    asked, name = node.args[:2]
    if asked in facts.unwrapped_arguments or (isinstance(name, ast.Constant) and name.value in _SAME):
        return
    wrapped = facts.wrapped(facts.after.value(asked))
    if wrapped:
        yield _model_of(context, asked, asked, "DDP hides the model's attributes: use the model inside")
    elif wrapped is None:
        yield _either(context, asked)


def _asks_the_class(context: Context, node: ast.Call) -> bool:
    """Whether a call is `type(model).__name__`, or asks if a model is of a class that no wrapper is of."""
    run, up = context.facts.after, context.tree.parent.get(node)
    if len(node.args) == 1:
        return "type" in run.value(node.func).paths() and isinstance(up, ast.Attribute)
    if len(node.args) != 2 or "isinstance" not in run.value(node.func).paths():
        return False
    kinds = run.value(node.args[1]).objs
    asked = {p for kind in kinds for p in ([i for v in kind.items for i in v.objs] if isinstance(kind, Tup) else [kind])}
    return bool(asked) and all(isinstance(o, Class) or (isinstance(o, Ext) and o.path not in _WRAPPING) for o in asked)


def _type_test(context: Context, kind: ast.expr) -> Iterator[Change]:
    """`isinstance(model, nn.DataParallel)` asks for the wrapper that took its place."""
    for part in kind.elts if isinstance(kind, ast.Tuple) else [kind]:
        if library.DATAPARALLEL in context.facts.after.value(part).paths():
            why = "the model's wrapper is a DistributedDataParallel now"
            edit = Replace(part, "DistributedDataParallel")
            yield Change(CODE, why, context.tree.shown, part, (edit,), ("from torch.nn.parallel import DistributedDataParallel",))


def _optional(context: Context, node: ast.expr) -> tuple[bool, str]:
    """Whether the original wrapped a model only where a setting asked for it; and the choice of what has its keys, if it can be made."""
    value = context.facts.before.value(node)
    for otherwise in (False, True):
        asked = _question(context, node, otherwise)
        if asked and not optional_wraps.of_devices(context.facts, asked.test):
            test = f"({ast.unparse(asked.test)})" if isinstance(asked.test, (ast.BoolOp, ast.IfExp)) else ast.unparse(asked.test)
            return True, f"({{0}}.module if {test} else {{0}})" if otherwise else f"({{0}} if {test} else {{0}}.module)"
    return optional_wraps.is_optional(context.facts, value), ""


def _question(context: Context, node: ast.expr, otherwise: bool = False) -> ast.If | None:
    """The one condition under which the original wrapped a model, or did not, if it can be asked here again."""
    value = context.facts.before.value(node)
    asked = optional_wraps.questions(context.facts, value, otherwise)
    if len(asked) != 1 or (otherwise and optional_wraps.questions(context.facts, value)):
        return None
    return next((up for up in asked if _readable(context, up, node)), None)


def _keys_as_written(context: Context, model: ast.expr, chosen: str, loaded: ast.expr | None = None) -> Change:
    """The keys that the original wrote: with the prefix where it was asked for a wrapper; plain ones where that cannot be asked here."""
    if chosen:
        why = "the keys have the `module.` prefix where the original's had it"
        return Change(CODE, why, context.tree.shown, model, (Replace(model, chosen, (model,)),))
    why = dataparallel.PLAIN
    edits = [Replace(model, "{0}.module", (model,))]
    if loaded is not None:
        why += ", and files with the prefix are read, too"
        edits.append(Replace(loaded, '{{key.removeprefix("module."): value for key, value in {0}.items()}}', (loaded,)))
    return Change(CODE, why, context.tree.shown, model, tuple(edits), level=Safety.NOTE)


def _readable(context: Context, asked: ast.If, node: ast.expr) -> bool:
    """Whether a question has the same answer where a model is saved: it is made of names that are bound once and seen in both places."""
    tree = context.tree
    there, here = tree.function(asked), tree.function(node)
    if context.facts.tree_of(asked) is not context.facts.tree_of(node):
        return False
    calls = (n for n in walk(asked.test) if isinstance(n, ast.Call))
    if any(_SETTLED.isdisjoint(context.facts.before.value(call.func).paths()) and last_name(call.func) not in _OF_TEXT for call in calls):
        return False
    file = list(walk(context.facts.tree_of(node).root))
    stores = [structure(n) for n in file if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)]
    reads = [n for n in walk(asked.test) if isinstance(n, (ast.Name, ast.Attribute))]
    for read in reads:
        seen = not isinstance(read, ast.Name) or read.id == "self" or _seen(context, read, there, here)
        if stores.count(structure(read)) > 1 or not seen:
            return False
    own = any(isinstance(n, ast.Name) and n.id == "self" for n in reads)
    return not own or _class_of(tree, there) is _class_of(tree, here)


def _seen(context: Context, read: ast.Name, there: ast.AST, here: ast.AST) -> bool:
    """Whether a name is the same one in two functions: they are one, it is the module's, or the other function is given what it names."""
    run = context.facts.before
    given = {o for n in names_read(here) if n.id == read.id for o in run.value(n).objs} if isinstance(here, ast.FunctionDef) else set()
    if there is not here and len(given) == 1 and given == run.value(read).objs and all(isinstance(o, New) for o in given):
        return not any(n.id == read.id for f in (there, here) if not isinstance(f, ast.Module) for n in names_stored(f))
    functions = [f for f in (there, here) if there is not here and not isinstance(f, ast.Module)]
    parameters = {a.arg for f in functions for a in walk(f) if isinstance(a, ast.arg)}
    names = (n for f in functions for n in walk(f) if isinstance(n, ast.Name))
    return read.id not in parameters and not any(n.id == read.id and isinstance(n.ctx, ast.Store) for n in names)


def _class_of(tree: Forest, function: ast.AST) -> ast.AST | None:
    return next((up for up in tree.ancestors(function) if isinstance(up, ast.ClassDef)), None) if function in tree.parent else None


def _in_unwrapped_branch(context: Context, model: ast.expr) -> bool:
    """Whether a model is read in the branch for one without a wrapper: the other branch reads its `.module`."""
    inner: ast.AST = model
    for up in context.tree.ancestors(model):
        if isinstance(up, (ast.If, ast.IfExp)):
            body, other = (up.body, up.orelse) if isinstance(up, ast.If) else ([up.body], [up.orelse])
            across = other if any(inner is part for part in body) else body if any(inner is part for part in other) else []
            if any(isinstance(n, ast.expr) and _is_inside(n, model) for part in across for n in walk(part)):
                return True
        inner = up
    return False


def _unprefixed_keys(context: Context, node: ast.Attribute) -> Iterator[Change | Finding]:
    """The state dict of a model that the original had wrapped by then, and that is not wrapped here, or not yet."""
    facts, call = context.facts, context.tree.parent[node]
    wrappers = [o for o in facts.before.value(node.value).objs if isinstance(o, New) and o.path == library.DATAPARALLEL]
    unwrapped = any(facts.before.unwrap(facts.before.value(node.value)) & m.objs for m in facts.needs_no_wrapper)  # `average` reports it
    if not wrappers or unwrapped or all(dataparallel.stays(context, o.node) for o in wrappers) or not isinstance(call, ast.Call):
        return
    if optional_wraps.comes_out(facts, node, facts.before.value(node.value)):
        return
    if node.attr == "state_dict" and len(wrappers) < len(facts.before.value(node.value).objs):
        asked = optional_wraps.is_optional(facts, facts.before.value(node.value)) and not _in_unwrapped_branch(context, node.value)
        if asked:
            yield context.manual(CODE, node, dataparallel.PLAIN, level=Safety.NOTE)
        return  # else the original took the model out, or may have wrapped none
    yield from dataparallel.keys_as_wrapped(context, call, node.attr)


def _attribute(context: Context, node: ast.Attribute) -> Iterator[Change | Finding]:
    """An attribute of a model: the model's own is read from the model, keys are those that the original wrote."""
    facts = context.facts
    wrapped = facts.wrapped(facts.after.value(node.value))
    keys = node.attr in library.STATE_METHODS
    prefixed = library.DATAPARALLEL in facts.before.value(node.value).kinds()
    if wrapped is False:
        if _reads_wrapper(context, node):
            stays = any(dataparallel.stays(context, n) for n in _wrappers(context, node.value))  # another model, that is not trained
            text = 'getattr({0}, "module", {0})' if stays else "{0}"
            gone = None if stays else _without_sense(context, node)
            edit = Drop(gone) if gone is not None else Replace(node, text, (node.value,))
            yield Change(CODE, _NO_WRAPPER, context.tree.shown, node, (edit,))
        if keys:
            yield from _unprefixed_keys(context, node)
    elif node.attr in _SAME and not (node.attr not in _REACHED and _is_own(context, node)):
        return
    elif wrapped is None and node.attr in library.NAMING_METHODS and facts.before.value(node.value).kinds() & library.WRAPPERS:
        yield from [_prefixed_names(context, node)] if prefixed else []  # with a wrapper of its own, the script has the names of that
    elif wrapped is None:
        if not isinstance(node.value, ast.IfExp) and not (keys and _is_chosen_by_callers(context, node)):  # the script says which
            yield _either(context, node.value, prefixed)
    elif keys and prefixed and not _in_unwrapped_branch(context, node.value):
        yield _prefixed_keys(context, node)
    elif node.attr in library.NAMING_METHODS and prefixed and not optional_wraps.is_optional(facts, facts.before.value(node.value)):
        yield _prefixed_names(context, node)
    elif (either := next(_of_equal_arms(context, node), None)) is not None:
        yield Change(CODE, _INSIDE, context.tree.shown, node, (Replace(either, "{0}", (either.body,)),))
    else:
        yield _model_of(context, node, node.value, _INSIDE)


def _without_sense(context: Context, node: ast.Attribute) -> ast.If | None:
    """The question that only asks whether a name is to hold the `.module` of what it holds: `if many: model = model.module`."""
    statement = context.tree.parent[node]
    up = context.tree.parent.get(statement)
    if not isinstance(statement, ast.Assign) or not all(same(t, node.value) for t in statement.targets) or not isinstance(up, ast.If):
        return None
    plain = all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in walk(up.test))
    alone = len(context.tree.block(up)) < 3  # a function of one statement writes its file by itself
    return up if plain and up.body == [statement] and not up.orelse and not alone else None


def _of_equal_arms(context: Context, node: ast.Attribute) -> Iterator[ast.IfExp]:
    """The choice between a wrapped model and one without a wrapper whose arms are the same here: `m.module.x if wrapped else m.x`."""
    inner: ast.AST = node
    for up in context.tree.ancestors(node):
        if isinstance(up, ast.IfExp) and inner is up.orelse and _is_same_inside(up.body, up.orelse, node.value):
            yield up
        inner = up


def _is_same_inside(one: ast.AST, other: ast.AST, model: ast.expr) -> bool:
    """Whether an expression is another one with the `.module` of a model in the model's place."""
    if other is model:
        return isinstance(one, ast.expr) and _is_inside(one, model)
    plain = [[v for f in n._fields if not isinstance(v := getattr(n, f, None), (ast.AST, list))] for n in (one, other)]
    mine, its = children(one), children(other)
    same_kind = type(one) is type(other) and plain[0] == plain[1] and len(mine) == len(its)
    return same_kind and all(_is_same_inside(a, b, model) for a, b in zip(mine, its, strict=True))


def _prefixed_names(context: Context, node: ast.Attribute) -> Finding:
    """What is said of names that a wrapper gives, as the original's did."""
    why = f"names keep the `module.` prefix that DataParallel gave them; `.module.{node.attr}()` gives plain ones"
    return context.manual(CODE, node, why, level=Safety.NOTE)


def _reads_wrapper(context: Context, node: ast.Attribute) -> bool:
    """Whether an attribute is the `.module` of a model that the original had in a DataParallel, and that is in no wrapper here."""
    facts = context.facts
    if node.attr != "module" or library.DATAPARALLEL not in facts.before.copied(facts.before.value(node.value)).kinds():
        return False
    if node not in facts.after.trace.values:
        return False  # nothing reads it: `model.module if hasattr(model, "module") else model`
    bare = facts.wrapped(facts.after.copied(facts.after.value(node.value))) is False and _is_unwrapped(context, node.value)
    return bare and not _holds_saved_wrapper(context, node.value)


def _holds_saved_wrapper(context: Context, entry: ast.expr) -> bool:
    """Whether an entry of a dict that is saved is the DataParallel that is written into it: `torch.save(states["model"].module, path)`."""
    if not isinstance(entry, ast.Subscript):
        return False
    facts = context.facts
    made = [argument(n, 0, "module") for n in _wrappers(context, entry) if isinstance(n, ast.Call)]
    if made and all(isinstance(n, ast.Attribute) and n.attr == "module" and facts.wrapped(facts.after.value(n.value)) for n in made):
        return True
    read = facts.before.value(entry).objs
    saved = (n for n in facts.pickled & facts.unwrapped_arguments if isinstance(n, ast.expr))
    return any(facts.before.value(n).objs & read and _saved_wrapper(context, n) for n in saved)


def _is_own(context: Context, node: ast.Attribute) -> bool:
    """Whether a model's class has a method of its own in the place of one that all modules have."""
    run = context.facts.after
    models = (o for o in run.unwrap(run.value(node.value)) if isinstance(o, New) and o.cls is not None)
    return any(run.interpreter.find(o.cls, node.attr) is not None for o in models if o.cls is not None)


def _is_chosen_by_callers(context: Context, keys: ast.Attribute) -> bool:
    """Whether all that lead to a state dict hand the model on by `model if question else model.module`."""
    calls = context.facts.after.calls(context.tree.parent[keys])
    given = ([a for n in call.stack if isinstance(n, ast.Call) for a in arguments(n)] for call in calls)
    return bool(calls) and all(any(isinstance(a, ast.IfExp) and _is_inside(a.orelse, a.body) for a in args) for args in given)


def _is_inside(node: ast.expr, model: ast.expr) -> bool:
    """Whether a node is the `.module` of a model."""
    return isinstance(node, ast.Attribute) and node.attr == "module" and same(node.value, model)


def _wrappers(context: Context, model: ast.expr) -> list[ast.AST]:
    """Where the DataParallels are made that a model may have been in."""
    run = context.facts.before
    return [o.node for o in run.copied(run.value(model)).instances() if o.path == library.DATAPARALLEL]


def _is_unwrapped(context: Context, model: ast.expr) -> bool:
    """Whether nothing is wrapped in what the original had wrapped in DataParallel: it is trained otherwise, or its wrapper goes."""
    facts = context.facts
    wrappers = _wrappers(context, model)
    return facts.model_of(facts.after.copied(facts.after.value(model))) is not None or not any(
        dataparallel.stays(context, n) for n in wrappers
    )


def _prefixed_keys(context: Context, node: ast.Attribute) -> Change | Finding:
    """The state dict of a wrapped model that the original had wrapped, too."""
    optional, chosen = _optional(context, node.value)
    if optional:
        call = context.tree.parent[node]
        loads = node.attr == "load_state_dict" and isinstance(call, ast.Call) and call.func is node
        given = call.args[:1] if loads and isinstance(call, ast.Call) else []
        return _keys_as_written(context, node.value, chosen, *given)
    why = "checkpoints keep the `module.` prefix of DataParallel, as the original wrote them; "
    return context.manual(CODE, node, f"{why}`.module.{node.attr}(...)` reads and writes plain keys", level=Safety.NOTE)
