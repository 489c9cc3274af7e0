"""Batches that DataParallel moved to its device: where the model itself evaluates them, they are moved before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts import library
from ddpify.facts.model import New
from ddpify.facts.tree import names_read, names_stored, walk
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context
from ddpify.rules.model import dataparallel

CODE = "DDP203"
_WHY = "DataParallel moved its inputs to the device; the model itself needs them there"
_MOVES = frozenset(("cuda", "to"))  # methods that move a tensor


def moved(context: Context) -> Iterator[Change | Finding]:
    """Move what a loader gives to the device where a model evaluates it that the original had wrapped in DataParallel."""
    run = context.facts.before
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            wrapped = _through_dataparallel(context, node)
            if node in context.training or not run.calls(node) or not wrapped:
                continue
            always = wrapped == run.value(node.func).instances()
            if not always and all(map(run.has_no_parameters, run.unwrap(run.value(node.func)))):
                continue  # as a loss: on one device, it gets what it gets there
            for given in (*node.args, *(k.value for k in node.keywords)):
                if not isinstance(given, ast.Name) or not _is_unmoved_batch(context, given):
                    continue
                if not context.facts.is_edited(node):
                    yield context.manual(CODE, given, _WHY, f"{given.id}.to(device)")
                    continue
                device, needs = context.device_at(node) if always else (f"next({ast.unparse(node.func)}.parameters()).device", ())
                edit = Replace(given, f"{{0}}.to({device})", (given,))
                yield Change(CODE, _WHY, tree.shown, given, (edit,), needs=needs)


def _through_dataparallel(context: Context, node: ast.Call) -> frozenset[New]:
    """The DataParallel that a call may have been made through, where the model inside is called from here on, trained or not."""
    called = context.facts.before.value(node.func)
    wrappers = frozenset(o for o in called.instances() if o.path == library.DATAPARALLEL)
    known = called.objs == called.instances() and not any(dataparallel.stays(context, o.node) for o in wrappers)
    return wrappers if known else frozenset()


def _is_unmoved_batch(context: Context, name: ast.Name) -> bool:
    """Whether a name holds tensors as a loader gives them, and the function it stands in moves nothing that gets this name."""
    run, tree = context.facts.before, context.facts.tree_of(name)
    value = run.value(name)
    if value.objs or not any(run.is_loader(o) for o in value.batches()):
        return False
    bound = [n for n in names_stored(tree.function(name)) if n.id == name.id]
    read = {n.id for b in bound for n in names_read(tree.statement(b))}
    entries = [n for n in walk(tree.function(name)) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    bound += [n.value for n in entries if isinstance(n.value, ast.Name) and n.value.id in read]  # data[i] = data[i].to(device)
    return bool(bound) and not any(_moves(tree.statement(n)) for n in bound)


def _moves(statement: ast.stmt) -> bool:
    """Whether a statement may bind its names to something that is moved."""
    given = statement.iter if isinstance(statement, (ast.For, ast.AsyncFor)) else statement
    return any(isinstance(n, ast.Attribute) and n.attr in _MOVES for n in walk(given))
