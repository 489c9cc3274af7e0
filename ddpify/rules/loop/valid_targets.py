"""How many targets, or what weights of them, a rank's loss is an average over: as expressions that the script has where it is computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from ddpify.edits import Edit, FreshName, InsertBefore, escaped
from ddpify.facts import collect
from ddpify.facts.effects import effect
from ddpify.facts.library import Labelled
from ddpify.facts.library.flow import is_literal
from ddpify.facts.model import Call, Method, Part, Value
from ddpify.facts.tensors import BY_WEIGHT
from ddpify.facts.tree import names_read, walk
from ddpify.rules.context import Context, argument
from ddpify.rules.loop.branches import has_own_test
from ddpify.rules.loop.coupled_losses import evaluated_by_all_ranks, loss_in

_IGNORED = "-100"  # the target that a cross entropy of torch leaves out by itself


class Amounts(NamedTuple):
    """Averages, each with what it divides by, and the lines that count before what is counted changes."""

    of: dict[ast.expr, str]
    before: tuple[Edit, ...] = ()


def amounts_of(context: Context, node: ast.Call, loss: Value) -> Amounts:
    """The averages that the loss of a backward call is made of, each with what it divides by; none where not all are seen."""
    run = context.facts.after
    weighted = [c for c in run.trace.calls if c.result.scale == "weighted" and c.result.of_kind("batch") & loss.of_kind("batch")]
    amounts = {c.node: (c, amount) for c in weighted if (amount := _amount(context, c))}
    if not all(_on_all_ranks(context, call) for call, _ in amounts.values()):
        return Amounts({})
    inside, before = _of_models(context, loss)
    out: dict[ast.expr, str] = {call: amount for call, (_, amount) in amounts.items()} | inside
    corrected = loss_in(collect.redistributed_run(context.facts, dict.fromkeys(out, "mean")), node) if out else loss
    return Amounts(out, before) if corrected.scale == "mean" else Amounts({})


def _of_models(context: Context, loss: Value) -> Amounts:
    """The reads of losses that models of a library computed inside, with how many labels each is an average over, where that is seen."""
    run, calls, out = context.facts.after, loss.of_kind("valid"), dict[ast.expr, str]()
    before = dict[ast.stmt, Edit]()
    for node, value in run.trace.values.items():
        taken = _taken_from(context, node)
        if not isinstance(node, ast.expr) or taken is None or value.scale != "weighted" or not value.of_kind("valid") & calls:
            continue
        outputs = run.value(taken).of_kind("labelled")
        if len(outputs) != 1 or not evaluated_by_all_ranks(context, node, value, True) or _only_shown(context, node):
            continue
        (given,) = outputs
        amount, changed = _labels_counted(context, node, given)
        if amount and changed:
            count, statement = FreshName(("valid", "num_valid", "num_labels"), given.call), context.tree.statement(given.call)
            before[statement] = InsertBefore(statement, f"{count} = {escaped(amount)}", binds=(count,))
            amount = str(count)
        if amount:
            out[node] = amount
    return Amounts(out, tuple(before.values()))


def _taken_from(context: Context, node: ast.AST) -> ast.expr | None:
    """What an expression reads an output of, or a name is given one of: `outputs.loss`, `loss, scores = outputs[:2]`."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return node.value
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store):
        return None
    tree = context.facts.tree_of(node)
    up = tree.parent.get(node)
    statement = tree.parent.get(up) if isinstance(up, ast.Tuple) else None
    return statement.value if isinstance(statement, ast.Assign) and statement.targets == [up] else None


def _labels_counted(context: Context, node: ast.expr, outputs: Labelled) -> tuple[str, bool]:
    """How many labels count, of what a model was given, and whether they may have changed since; empty where that is not seen."""
    call = outputs.call
    keyword = next((k.value for k in call.keywords if k.arg == "labels"), None)
    if keyword is None:
        mappings = [k.value for k in call.keywords if k.arg is None]
        text = f'{context.operand(mappings[0])}["labels"]' if len(mappings) == 1 else ""
        given = mappings[0] if text else None
    else:
        text, given = context.operand(keyword), keyword
    if given is None or any(isinstance(n, ast.Call) for n in walk(given)) or not context.facts.is_edited(node):
        return "", False
    between = _statements_between(context, call, node)
    if between is None:
        return "", False
    names = {n.id for n in names_read(given)}
    return outputs.over.format(text), any(names & {n.id for n in map(_root, _stores(s)) if n is not None} for s in between)


def _stores(node: ast.AST) -> Iterator[ast.expr]:
    return (n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load))


def _root(node: ast.expr) -> ast.Name | None:
    """The name whose parts an expression reads or stores."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _statements_between(context: Context, first: ast.expr, last: ast.expr) -> list[ast.stmt] | None:
    """The statements from one that holds an expression to one that holds another, which is evaluated whenever the first is; else None."""
    tree = context.facts.tree_of(first)
    if tree is not context.facts.tree_of(last):
        return None
    mine, others = ([n, *tree.ancestors(n)] for n in (first, last))
    above = next((up for up in others if up in mine), None)
    bodies = [getattr(above, name, None) for name in ("body", "orelse", "finalbody")]
    for body in [b for b in bodies if isinstance(b, list)]:
        places = [next((i for i, s in enumerate(body) if s in chain), None) for chain in (mine, others)]
        start, end = places
        if start is not None and end is not None:
            inner = others[: others.index(body[end])]
            return body[start : end + 1] if all(_is_unconditional(n) for n in inner) else None
    if isinstance(above, (ast.expr, ast.Assign, ast.AugAssign, ast.Return, ast.Expr)):
        return [tree.statement(first)] if above is not first else []
    return None


def _is_unconditional(node: ast.AST) -> bool:
    """Whether what a node holds is evaluated whenever the node is."""
    return not isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.IfExp, ast.BoolOp, ast.Lambda, ast.FunctionDef, ast.ClassDef))


def _only_shown(context: Context, node: ast.expr) -> bool:
    """Whether an expression is evaluated for a call of output or files, which rank 0 alone will make."""
    return any(
        effect(c) for up in context.facts.tree_of(node).ancestors(node) if isinstance(up, ast.Call) for c in context.facts.after.calls(up)
    )


def _on_all_ranks(context: Context, call: Call) -> bool:
    """Whether a loss can ask all ranks: it may be edited, and each of its calls is made on every rank, and as often."""
    run = context.facts.after
    given = [call.argument(2, "weight"), *(run.memory.get((o, "weight")) for o in call.func.instances())]
    if not context.facts.is_edited(call.node) or any(v is not None and context.from_sharded_data(v) for v in given):
        return False  # or the weights are those that each rank takes from its own batch
    every = run.calls(call.node)
    whole_data = not any(c.result.of_kind("batch") & context.sharded_evaluation for c in every)
    trains = all(c.result.of_kind("batch") for c in every)
    return trains and whole_data and not any(has_own_test(context, c) for c in every)


def _amount(context: Context, call: Call) -> str:
    """What a loss divides by: the weights of valid targets, how many are valid, or how many were chosen; empty where that is not seen.

    Smoothed labels are divided by the same (https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/LossNLL.cpp).
    """
    node, chosen = call.node, all(v.scale == "chosen" for v in call.args[:2])
    options = _weight_and_ignored(context, call, chosen)
    if options is None or len(node.args) < 2 or any(k.arg == "reduction" for k in node.keywords):
        return ""
    weight, ignored = options
    target = context.operand(node.args[1])
    by_class = any(map(_is_weighted, (*call.func.paths(), *(o.path for o in call.func.instances()))))
    if not ignored and by_class and context.facts.after.interpreter.ignores():
        ignored = _IGNORED
    valid, count = (f"{target}[{target} != {ignored}]", f"({target} != {ignored}).sum()") if ignored else (target, "")
    if weight:
        weights = f"{weight}[{valid}].sum()"
        count = count or _number_of(target)
        return f"{weights} if {weight} is not None else {count}" if _may_be_none(context, call) else weights
    return count or (_number_of(target) if chosen else "")


def _number_of(target: str) -> str:
    return f"torch.tensor({target}.numel(), device={target}.device)"


def _may_be_none(context: Context, call: Call) -> bool:
    """Whether the class weights of a loss are given in some runs only, or kept by a class of a library, which may have been given none."""
    given = [call.argument(2, "weight"), *(context.facts.after.memory.get((o, "weight")) for o in call.func.instances())]
    return any(is_literal(v, None) or (v.objs and all(isinstance(o, (Part, Method)) for o in v.objs)) for v in given if v is not None)


def _weight_and_ignored(context: Context, call: Call, chosen: bool) -> tuple[str, str] | None:
    """The class weights and the ignored class of a loss, as the script writes them, where it has any; None where that is not seen."""
    run, node = context.facts.after, call.node
    if any(_is_weighted(p) for p in call.func.paths()):
        weight, ignored = argument(node, 2, "weight"), argument(node, None, "ignore_index")
        given = call.argument(2, "weight")
        weight = None if given is not None and given.is_none() else weight
        return context.operand(weight) if weight else "", context.operand(ignored) if ignored else ""
    instances = call.func.instances()
    paths = call.func.paths()
    if chosen and paths and not instances and all(p.startswith("torch.nn.functional.") for p in paths):
        return "", ""
    known = chosen or all(_is_weighted(o.path) for o in instances)
    if not instances or not known:
        return None
    attributes = {a: f"{context.source(node.func)}.{a}" for o in instances for a in ("weight", "ignore_index") if (o, a) in run.memory}
    return attributes.get("weight", ""), attributes.get("ignore_index", "")


def _is_weighted(path: str) -> bool:
    return path.rpartition(".")[2] in BY_WEIGHT
