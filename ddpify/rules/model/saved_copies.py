"""A save that moves the trained model to the CPU and back takes a copy instead: the wrapper loses sight of what is moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Drop, Edit, Replace
from ddpify.facts.moved_saves import MovedSave, is_part, moved_saves
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context

CODE = "DDP201"
_WHY = "moving the model to the CPU and back would detach it from DDP: a copy of its state is saved"


def copies(context: Context) -> Iterator[Change | Finding]:
    """`model.cpu().state_dict()` becomes a copy of the state dict on the CPU, and so on. Comes before what reaches through wrappers."""
    for save in _saves(context):
        if not context.facts.is_edited(save.call):
            yield context.manual(CODE, save.call, _WHY)  # until its module is edited, too
            continue
        dropped = save.statement is not None and isinstance(save.model, (ast.Name, ast.Attribute))
        edits: list[Edit] = [Drop(save.statement)] if dropped and save.statement is not None else []
        edits += [Replace(save.call, "{0}", (save.model,))] if not dropped and (save.states or save.statement is not None) else []
        edits += [Replace(s, "{{key: value.cpu() for key, value in {0}.items()}}", (s,)) for s in save.states]
        objects = {
            node: template.replace("{0}", "{0}.module") if context.facts.wrapped(context.facts.after.value(node)) else template
            for node, template in of_objects(context).items()
            if node in save.objects and node not in context.facts.unwrapped_arguments
        }
        edits += [Replace(node, template, (node,)) for node, template in objects.items()]
        if edits:
            yield Change(CODE, _WHY, context.tree.shown, save.call, tuple(edits), ("import copy",) if objects else ())


def of_objects(context: Context) -> dict[ast.expr, str]:
    """What becomes of the models that are saved as they are."""
    saves = [s for s in _saves(context) if context.facts.is_edited(s.call)]
    return {node: "copy.deepcopy({0}).cpu()" if s.statement is not None else "copy.deepcopy({0})" for s in saves for node in s.objects}


def _saves(context: Context) -> list[MovedSave]:
    """The saves of models whose gradients a wrapper averages, in source order."""
    facts, run = context.facts, context.facts.before
    wrapped = [m for m in facts.models if m not in facts.needs_no_wrapper]
    saves = [s for s in moved_saves(facts).values() if any(is_part(run, run.unwrap(run.value(s.model)), m.objs) for m in wrapped)]
    return sorted(saves, key=lambda s: (s.call.lineno, s.call.col_offset))
