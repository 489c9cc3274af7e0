"""Reach through the wrapper where the model itself is meant.

What it does: own attributes and methods, `state_dict`, `load_state_dict`, `parameters` and evaluation of a wrapped model go through
    `.module`; a call that only evaluates or reads the model is handed `model.module`; a whole-object save saves `model.module`.
    Checkpoints keep the keys that the original wrote: a DataParallel original keeps its `module.` prefix.
Why: the wrapper has no attributes of the model's, its state dict prefixes every key, and a forward past the training ranks hangs them.
Safety: NOTE where a prefix stays; MANUAL where a name holds the wrapped model and the plain one.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts import library
from ddpify.facts.model import New, Part
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context

CODE = "DDP203"
TITLE = "names on the wrapped model"
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
        "an attribute of something that is no model",
        "samples = len(loader.dataset)\n",
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


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Edit attribute reads, evaluation and saves of wrapped models in the entry."""
    facts, tree, run = context.facts, context.tree, context.facts.after
    for node in tree.nodes():
        if node in facts.passed and isinstance(node, ast.expr):
            whole = tree.parent[node]
            if (
                isinstance(whole, ast.Call)
                and "torch.save" in run.value(whole.func).paths()
                and library.DATAPARALLEL in facts.before.value(node).kinds()
            ):
                yield context.manual(
                    CODE,
                    node,
                    "the original saved the DataParallel object itself; this saves the model inside, which loads without any wrapper",
                    "see that what loads this file expects the model itself",
                    level=Safety.REVIEW,
                )
            yield Change(
                CODE, "this call does not train: it is given the model itself", tree.shown, node, (Replace(node, "{0}.module", (node,)),)
            )
        if isinstance(node, ast.Attribute):
            yield from _attribute(context, node)
        elif isinstance(node, ast.Call):
            if node not in context.training and node in facts.prefixed and any(facts.wrapped(run.value(a)) for a in node.args):
                yield context.manual(
                    CODE,
                    node,
                    "checkpoints carry the `module.` prefix of DataParallel, as the original's do; handing over "
                    "`.module` instead writes plain keys",
                    level=Safety.NOTE,
                )
            if "isinstance" in run.value(node.func).paths() and len(node.args) == 2 and facts.wrapped(run.value(node.args[0])) is not False:
                yield from _type_test(context, node.args[1])
            if (
                isinstance(node.func, ast.Attribute)
                and node.func.attr == "forward"
                and facts.wrapped(run.value(node.func.value))
                and not _trains(context, node)
                and run.calls(node)
            ):
                yield Change(
                    CODE,
                    "evaluation runs on the model itself: it needs no gradients from other ranks",
                    tree.shown,
                    node,
                    (Replace(node.func.value, "{0}.module", (node.func.value,)),),
                )
            if facts.wrapped(run.value(node.func)) and not _trains(context, node) and run.calls(node):
                yield Change(
                    CODE,
                    "evaluation runs on the model itself: it needs no gradients from other ranks",
                    tree.shown,
                    node,
                    (Replace(node.func, "{0}.module", (node.func,)),),
                )


def _type_test(context: Context, kind: ast.expr) -> Iterator[Change]:
    """`isinstance(model, nn.DataParallel)` asks for the wrapper that took its place."""
    for part in kind.elts if isinstance(kind, ast.Tuple) else [kind]:
        if library.DATAPARALLEL in context.facts.after.value(part).paths():
            yield Change(
                CODE,
                "the model's wrapper is a DistributedDataParallel now",
                context.tree.shown,
                part,
                (Replace(part, "DistributedDataParallel"),),
                ("from torch.nn.parallel import DistributedDataParallel",),
            )


def _trains(context: Context, node: ast.Call) -> bool:
    return node in context.training


def _optional(context: Context, node: ast.Attribute) -> bool:
    """Whether the original wrapped the model only where a setting asked for it."""
    run = context.facts.before
    value = run.value(node.value)
    if all(isinstance(o, New) and o.path == library.DATAPARALLEL for o in value.objs):
        return False
    return any(
        isinstance(part, Part)
        for o in value.made()
        if o.path == library.DATAPARALLEL
        for call in run.calls(o.node)
        for _, test in call.tests
        for part in (*test.objs, *test.of_kind("from"))
    )


def _attribute(context: Context, node: ast.Attribute) -> Iterator[Change | Finding]:
    facts, tree = context.facts, context.tree
    value = facts.after.value(node.value)
    wrapped = facts.wrapped(value)
    if wrapped is False:
        if (
            node.attr == "module"
            and facts.model_of(value) is not None
            and any(isinstance(o, New) and o.path == library.DATAPARALLEL for o in facts.before.value(node.value).objs)
        ):
            yield Change(CODE, "the model is not wrapped here any more", tree.shown, node, (Replace(node, "{0}", (node.value,)),))
        return
    if node.attr in _SAME and wrapped:
        return
    prefixed = any(isinstance(o, New) and o.path == library.DATAPARALLEL for o in facts.before.value(node.value).objs)
    if node.attr in ("state_dict", "load_state_dict") and prefixed and wrapped:
        if _optional(context, node):
            yield context.manual(
                CODE,
                node,
                "whether the original wrote the `module.` prefix depended on an option; this always does",
                f"write plain keys: {ast.unparse(node.value)}.module.{node.attr}(...)",
                level=Safety.REVIEW,
            )
            return
        yield context.manual(
            CODE,
            node,
            "the original's checkpoints carry the `module.` prefix of DataParallel, and so do these; "
            "`.module." + node.attr + "(...)` reads and writes plain keys",
            level=Safety.NOTE,
        )
        return
    if wrapped is None:
        if node.attr in _SAME:
            return
        yield context.manual(
            CODE,
            node,
            f"`{ast.unparse(node.value)}` may be the wrapped model or the plain one here",
            f"{ast.unparse(node.value)}.module.{node.attr} where it is wrapped",
        )
        return
    yield Change(
        CODE,
        "the wrapper does not have the model's attributes, and its state dict has other keys",
        tree.shown,
        node,
        (Replace(node.value, "{0}.module", (node.value,)),),
    )
